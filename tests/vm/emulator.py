# SPDX-License-Identifier: GPL-2.0-only
"""Provides a QEMU whose emulated processors notice code that another processor has changed.

Before 8.1 ("accel/tcg: Always lock pages before translation") an emulated processor may execute the
old instruction: a removed breakpoint, an old static branch. The kernel changes its own code, and
tests that use kprobes make it do so continually.

If the system's QEMU is older, the QEMU of the distribution's backports is unpacked into the cache,
and host.py puts it first in the PATH. Nothing is installed, so root is not needed. If the backports
cannot be fetched, the system's QEMU is used.
"""

import re
import subprocess

import apt
import cache
import host

# The system's QEMU, whose libraries the newer one needs, too.
PACKAGES = ("qemu-system-x86",)
PROGRAMS = ("qemu-system-x86_64", "qemu-system-i386", "qemu-system-aarch64")
FETCHED = ("qemu-system-x86", "qemu-system-arm", "qemu-system-common", "qemu-system-data", "seabios")
DIRECTORY = host.CACHE / "qemu"


def version(program="qemu-system-x86_64"):
    """Return the version of an emulator as two numbers; (0, 0) if it does not run."""
    try:
        said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return (0, 0)
    found = re.match(r"QEMU emulator version (\d+)\.(\d+)", said.stdout)
    return (int(found[1]), int(found[2])) if found and not said.returncode else (0, 0)


def runs():
    """Return whether the programs in the cache run on this machine."""
    return all(version(DIRECTORY / "bin" / program) > (0, 0) for program in PROGRAMS)


def fetch():
    """Unpack the backports' QEMU into the cache."""
    with cache.making(DIRECTORY) as tmp:
        suite = apt.Suite(tmp / "apt", "-backports")
        for deb in suite.download(*FETCHED):
            apt.extract(deb, tmp)
        (tmp / "bin").mkdir()
        for program in PROGRAMS:
            script = tmp / "bin" / program
            script.write_text(f'#!/bin/sh\nexec "{DIRECTORY}/usr/bin/{program}"'
                              f' -L "{DIRECTORY}/usr/share/qemu" -L "{DIRECTORY}/usr/share/seabios"'
                              ' "$@"\n')
            script.chmod(0o755)
            if version(tmp / "usr/bin" / program) == (0, 0):
                raise host.Failed(f"{program} of {suite.name} does not run here")
        for name in ("apt", "usr/share/doc"):
            cache.remove(tmp / name)
        tmp.rename(DIRECTORY)


def ensure():
    """Install QEMU, and fetch a newer one if it is needed and available."""
    apt.install(*PACKAGES)
    if runs() if DIRECTORY.exists() else version() >= (8, 1):
        return
    with host.lock("qemu"):
        # Remove a QEMU that another machine has fetched and that does not run here.
        if not runs():
            cache.remove(DIRECTORY)
        if version() >= (8, 1):
            return
        try:
            fetch()
        except host.Failed as error:
            host.say(f"{error}; continuing with QEMU {'.'.join(map(str, version()))} of the system")
