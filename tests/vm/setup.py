#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Installs and fetches what is missing for a tier of tests, and reports progress.

    setup.py WHAT           WHAT is a key of the table below; fast if nothing is missing
"""

import os
import sys
import threading
from pathlib import Path

import apt
import debian
import driver
import emulator
import herd
import host
import kernels

SOURCE = "linux-source-6.1"

# A guest: an emulator, and the programs that build the modules and the initramfs.
GUEST = ("gcc", "libc6-dev", "make", "libjson-c-dev", "python3", "xz-utils", "kmod", "cpio", "busybox-static",
         *emulator.PACKAGES)
# The test programs of the guest: 32-bit ones, io_uring, libev, libuv, BPF.
PROGRAMS = (SOURCE, "gcc-multilib", "liburing-dev", "libev-dev", "libuv1-dev", "libbpf-dev", "clang-14")
# The quick static checks: the kernel's own tools, sparse, shell and Python.
STATIC = (SOURCE, "perl", "sparse", "shellcheck", "pyflakes3")
# All static checks: other readers of C, type hints, manual pages, figures, planted faults, instructions, shells.
STATIC_ALL = ("cppcheck", "clang-14", "clang-tidy", "man-db", "graphviz", "fonts-dejavu-core",
              "mypy", "patch", "valgrind", "fish", "zsh")
# All unit tests: 32 bits, clang, C++, another C library, a program that uses pkg-config, loops.
UNIT_ALL = (SOURCE, "gcc", "libc6-dev", "make", "gcc-multilib", "clang-14", "g++", "musl-tools", "pkgconf",
            "libev-dev", "libuv1-dev")
VERIFY = (SOURCE, "gcc", "libc6-dev", "make", "spin")
# To build Debian packages and to look at them.
DEB = ("build-essential", "dpkg-dev", "debhelper", "dh-dkms", "lintian")
# To convert drivers of the kernel's source, by rules in Python, and to compile them.
CONVERT = (SOURCE, "gcc", "libc6-dev", "make", "coccinelle", "libpython3.11")
# To make and check the series of patches for the kernel's tree: its build, selftests, KUnit under User Mode Linux.
SERIES = (*CONVERT, "git", "patch", "unifdef", "pandoc", "perl", "flex", "bison", "bc", "libelf-dev", "libssl-dev",
          "busybox-static", "cpio", "rsync")
# To measure, against the timers of these libraries, and to draw.
BENCH = ("valgrind", "gnuplot-nox", "liburing-dev", "libuv1-dev", "libev-dev")


def together(*functions):
    """Call functions in parallel; raise the first exception that one of them raised."""
    errors = []

    def call(function):
        try:
            function()
        except Exception as error:
            errors.append(error)

    # Daemon threads: after a signal, the main thread must not wait for them to end.
    threads = [threading.Thread(target=call, args=(function,), daemon=True)
               for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def get_herd():
    """Fetch herd7. If it is not available, the tests that need it are skipped."""
    try:
        herd.ensure()
    except host.Unavailable as error:
        host.say(f"continuing without herd7: {error}")


def get(packages, names=(), *functions):
    """Install packages in one run of apt; then get kernels and call functions in parallel."""
    wanted = [kernels.find(name) for name in names]
    built = [kernel for kernel in wanted if isinstance(kernel, kernels.Built)]
    fetched = [kernel for kernel in wanted if kernel not in built]
    apt.install(*packages, *(package for kernel in wanted for package in kernel.packages()))
    jobs = list(functions) + [kernel.get for kernel in fetched]
    if SOURCE in packages:
        jobs.append(lambda: kernels.source(SOURCE))
    if set(emulator.PACKAGES) & set(packages):
        jobs.append(emulator.ensure)
    # One after the other, because each build uses all processors.
    jobs.append(lambda: [kernel.get() for kernel in built])
    together(*jobs)
    if wanted:
        host.say("kernels: " + ", ".join(f"{kernel.name} {kernel.release}" for kernel in wanted))


def for_here():
    """Set up builds of modules and programs for the running kernel; no emulator."""
    release = os.uname().release
    headers = [] if Path(f"/lib/modules/{release}/build").exists() else [f"linux-headers-{release}"]
    get(("gcc", "libc6-dev", "make", "libjson-c-dev", "kmod", *PROGRAMS, *headers))


def for_all():
    names = [kernel.name for kernel in kernels.table() if kernel.tests != "-"]
    get((*GUEST, *PROGRAMS, *STATIC, *STATIC_ALL, *UNIT_ALL, *VERIFY, *SERIES, *DEB, *debian.PACKAGES, *driver.PACKAGES, "gcovr"),
        [*names, "uml"], get_herd, lambda: debian.disk("trace"), lambda: debian.root("packages"))


# Entries without kernels: the program that runs a kernel fetches it.
WHAT = {
    "run": lambda: get(GUEST, ["stock"]),
    # kernel-doc needs Perl, two samples need libev and libuv.
    "shell": lambda: get((*GUEST, "perl", "libev-dev", "libuv1-dev", *debian.PACKAGES), [], lambda: debian.disk("trace")),
    "check": lambda: get((*GUEST, *PROGRAMS, *STATIC, *VERIFY), ["stock", "rt"], get_herd),
    "ci": lambda: get((*GUEST, *PROGRAMS, *STATIC, *VERIFY), ["stock", "rt", "debug"], get_herd),
    "all": for_all,
    "guest": lambda: get((*GUEST, *PROGRAMS)),
    "static": lambda: get((*GUEST, *PROGRAMS, *STATIC, *STATIC_ALL), ["stock"]),
    "unit": lambda: get(UNIT_ALL),
    "verify": lambda: get(VERIFY, [], get_herd),
    "coverage": lambda: get((*GUEST, *PROGRAMS, "gcovr")),
    "convert": lambda: get(CONVERT, ["stock"]),
    "series": lambda: get(SERIES),
    "packages": lambda: get((*GUEST, *DEB, *debian.PACKAGES), ["stock"], lambda: debian.root("packages")),
    "year": lambda: get((*GUEST, SOURCE), ["uml"]),
    "bench": lambda: get((*GUEST, SOURCE, *BENCH), ["stock", "uml"]),
    "scale": lambda: get((*GUEST, SOURCE)),
    "here": for_here,
}


def ensure(what):
    """Install and fetch what is missing for a key of the table."""
    if what not in WHAT:
        raise host.Failed(f"there is no set-up for '{what}'; there are: {', '.join(WHAT)}")
    WHAT[what]()


def main():
    """Carry out the command line."""
    if len(sys.argv) != 2:
        raise host.Failed(f"usage: setup.py {'|'.join(WHAT)}")
    ensure(sys.argv[1])


if __name__ == "__main__":
    host.main(main)
