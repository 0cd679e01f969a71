#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Builds the modules for a kernel of the table, and the programs of its guest.

build.py KERNEL [MAKE-WORD...]. Kbuild builds an external module where its sources are, so each
kernel has its own tree of links to the sources, build/modules/KERNEL.
"""

import fcntl
import os
import re
import sys

import host
import kernels

FOLDERS = (".", "core", "device", "samples", "tests/kernel", "tests/kernel/lib", "bench", "tests/torture")
# With these words for make, any warning of gcc or sparse fails the build.
CHECKED = ("W=1", "C=2", "CF=-D__CHECK_ENDIAN__ -Wsparse-error")
# With this word for make, only hwt.ko and the samples are built.
PLAIN = "HWT_TESTS=samples"


def checked(kernel):
    """Return the words for make with which the tests of a kernel build its modules."""
    return CHECKED if kernel.name == "stock" else ()


def kselftest():
    """Return the directory of the kernel's test harness."""
    return kernels.source("linux-source-6.1") / "tools/testing/selftests"


def link(tree, tests):
    """Create a tree of links, or bring it up to date."""
    for folder in FOLDERS:
        directory, wanted = tree / folder, set()
        directory.mkdir(parents=True, exist_ok=True)
        top = host.TOP / folder
        for source in [top / "Kbuild", top / "dkms.conf", *top.glob("*.[ch]")]:
            # Test modules need the kernel's source. Building in the checkout leaves *.mod.c.
            if (source.exists() and not source.name.endswith(".mod.c")
                    and (tests or not (folder.startswith("tests/kernel") and source.suffix == ".c"))):
                wanted.add(source.name)
                there = directory / source.name
                if not there.is_symlink() or os.readlink(there) != str(source):
                    there.unlink(missing_ok=True)
                    there.symlink_to(source)
        # Remove links whose source is gone, and the objects built from them.
        for there in list(directory.iterdir()):
            if there.is_symlink() and there.name not in wanted:
                there.unlink()
                for suffix in (".o", ".ko", ".mod", ".mod.c", ".mod.o"):
                    there.with_suffix(suffix).unlink(missing_ok=True)


def locked(path, refuse=""):
    """Return an open file that holds a lock. If it is taken, wait, or raise Failed(@refuse)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path, "w", encoding="ascii")  # pylint: disable=consider-using-with
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if refuse else 0))
    except BlockingIOError:
        raise host.Failed(refuse) from None
    return file


def modules(kernel, tree=None, tests=True, words=()):
    """Build hwt.ko, samples, benchmarks, the torture and, with @tests, the test modules; return the tree.

    The word PLAIN leaves out all but hwt.ko and the samples.
    """
    kernel.get()
    name = tree or kernel.name
    directory = host.BUILD / "modules" / name
    with locked(host.BUILD / "modules" / f"{name}.lock"):
        link(directory, tests)
        host.logged(f"{directory}.log", f"building the modules for kernel {kernel.name}",
                    ["make", "-C", kernel.kdir, f"M={directory}", "HWT_TESTS=1",
                     f"HWT_KSELFTEST={kselftest() if tests else ''}", "KCFLAGS=-Werror", *kernel.make_words,
                     f"-j{host.JOBS}", *words, "modules"])
    return directory


def foreign(kernel, directory):
    """Build the programs that need no library for another architecture."""
    cc = "gcc -m32" if kernel.arch == "i386" else kernels.cross() + "gcc"
    names = [directory / path.stem for path in sorted((host.TOP / "tests/user").glob("*.c"))
             if not re.search(r"hwt-test:\s*libs", path.read_text(encoding="utf-8"))]
    host.logged(f"{directory}.log", f"building the programs for {kernel.arch}",
                ["make", "-C", host.TOP / "tests/user", f"CC={cc}", f"OUT={directory}",
                 f"HWT_KSELFTEST={kselftest()}", f"-j{host.JOBS}", *names])


def programs(kernel, tests=True):
    """Build the programs of a kernel's guests; return their directory."""
    directory = host.BUILD / ("user" if kernel.arch == "x86_64" else f"user-{kernel.arch}")
    with locked(host.BUILD / f"{directory.name}.lock"):
        directory.mkdir(parents=True, exist_ok=True)
        if kernel.arch != "x86_64":
            if tests:
                foreign(kernel, directory)
            return directory
        log = host.BUILD / "user.log"
        host.logged(log, "building hwtctl", ["make", "-C", host.TOP / "tools", f"OUT={directory}", "STATIC=1",
                                             "CFLAGS=-O2 -Werror"])
        if tests:
            host.logged(log, "building the fuzzer", ["make", "-C", host.TOP / "tests/fuzz", f"OUT={directory}"])
        host.logged(log, "building the programs for guests",
                    ["make", "-C", host.TOP / "tests/user", f"OUT={directory}", f"-j{host.JOBS}",
                     *([f"HWT_KSELFTEST={kselftest()}"] if tests else ["samples"])])
    return directory


def main():
    kernel = kernels.find(sys.argv[1])
    modules(kernel, words=sys.argv[2:])
    programs(kernel)
    return 0


if __name__ == "__main__":
    host.main(main)
