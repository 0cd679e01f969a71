# SPDX-License-Identifier: GPL-2.0-only
"""Newly installed Debians with some packages: as tar files, and as disks for guests.

mmdebstrap makes them from this system's package sources; the cache keys them by their packages.
"""

import hashlib

import apt
import cache
import host

PACKAGES = ("mmdebstrap", "e2fsprogs")
ROOTS = {
    # Programs that read tracepoints (linux-perf brings Python), and tools for "make shell".
    "trace": "bpftrace,trace-cmd,linux-perf,kmod,less,man-db,procps",
    # The dependencies of hwt's packages, a compiler for a program that uses libhwt, and the
    # programs that an installation by hand needs.
    "packages": "dkms,linux-headers-amd64,udev,adduser,kmod,gcc,libc6-dev,libjson-c-dev,make,pkgconf,sudo,"
                "openssl,systemd,python3,busybox-static",
}


def _tar(name):
    if name not in ROOTS:
        raise host.Failed(f"there is no Debian '{name}'; there are: {', '.join(ROOTS)}")
    key = hashlib.sha256(f"{apt.codename()} {ROOTS[name]}\n".encode()).hexdigest()[:12]
    return host.CACHE / "roots" / f"{name}-{key}.tar"


def named():
    """Return patterns of the cache's entries that are in use."""
    return {f"roots/{_tar(name).stem}.{suffix}" for name in ROOTS for suffix in ("tar", "ext4")}


def root(name):
    """Return the path of a tar file of a Debian."""
    tar = _tar(name)

    def make(tmp):
        apt.install(*PACKAGES)
        suite, files = apt.sources(tmp / "sources", "")
        host.logged(f"{tar}.log", f"making a Debian with {ROOTS[name]}", host.root_words() + [
            "mmdebstrap", "--format=tar", "--variant=minbase", f"--include={ROOTS[name]}",
            suite, tmp / "root.tar", *files])
        for old in tar.parent.glob(f"{name}-*"):
            if old.suffix in (".tar", ".ext4"):
                cache.discard(old)
        return tmp / "root.tar"

    return cache.once(tar, f"root-{name}", make)


def disk(name, output=None):
    """Return the path of a disk with a Debian; with @output, make a disk of the directory @name."""
    if output:
        _fill(name, output, f"{output}.log")
        return output
    tar = root(name)
    image = tar.with_suffix(".ext4")

    def make(tmp):
        apt.install(*PACKAGES)
        (tmp / "root").mkdir()
        host.as_root(["tar", "-C", tmp / "root", "-xf", tar])
        _fill(tmp / "root", tmp / "disk", f"{image}.log")
        return tmp / "disk"

    return cache.once(image, f"disk-{name}", make)


def _fill(directory, output, log):
    """Make an ext4 of a directory, with half of its size and 64 MiB left free."""
    size = int(host.output(host.root_words() + ["du", "-sm", directory]).split()[0])
    host.as_root(["rm", "-f", output])
    host.logged(log, f"making a disk of {size} MiB", host.root_words() + [
        "mke2fs", "-q", "-t", "ext4", "-d", directory, output, f"{size * 3 // 2 + 64}M"])
    host.as_root(["chmod", "a+r", output])
