#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests cache.py on a made-up cache; prints TAP."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TEMPORARY = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = TEMPORARY.name + "/cache"
import cache
import host
import tap

NAMED = {"kernels/6.1.0-2-amd64", "kernels/linux-source-6.12-*-debug612-*", "source/linux-6.1",
         "roots/trace-1.tar"}
KEPT = ("kernels/6.1.0-2-amd64/vmlinuz", "kernels/6.1.0-2-amd64.log", "source/linux-6.1/Makefile",
        "kernels/linux-source-6.12-9-debug612-0/vmlinuz", "roots/trace-1.tar", "qemu/bin/qemu",
        "other/file", ".lock-build-1", "apt-install.log")
GONE = ("kernels/6.1.0-1-amd64/vmlinuz", "kernels/linux-source-6.12-9-debug612-1.tmp/vmlinuz",
        "kernels/6.12-amd64.tmp.log", "source/linux-6.0/Makefile", "roots/trace-0.tar",
        "qemu.tmp/usr/file", "cross/gcc-11/bin/gcc")
points = tap.Points()
check = points.point


def write(path):
    """Write a file of 8 KiB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 8192)


def refused(path):
    """Return whether remove() refuses a path."""
    try:
        cache.remove(path)
    except host.Failed:
        return True
    return False


def once_elsewhere(*paths):
    """Start a process that holds entries until its standard input ends; return it."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys, cache; from pathlib import Path\n"
         "for path in sys.argv[1:]: cache.hold(Path(path))\n"
         "print('held', flush=True); sys.stdin.read()", *paths],
        cwd=Path(__file__).parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    return child


def main():
    """Run all test points; return the exit code."""
    outside = Path(TEMPORARY.name) / "outside"
    write(outside / "file")
    for name in KEPT + GONE:
        write(host.CACHE / name)
    (host.CACHE / "source/link").symlink_to(outside)
    (host.CACHE / "kernels/6.1.0-1-amd64/link").symlink_to(outside)
    total = sum(cache.usage(host.CACHE).values())

    held = ("kernels/6.1.0-1-amd64", "kernels/linux-source-6.12-9-debug612-1.tmp")
    child = once_elsewhere(*(host.CACHE / name for name in held))
    freed = cache.prune(NAMED)
    check("an entry that a process holds is kept", all((host.CACHE / name / "vmlinuz").exists()
                                            for name in held))
    child.communicate()
    freed += cache.prune(NAMED)
    for name in GONE:
        check(f"removed: {name}", not (host.CACHE / name).exists())
    for name in KEPT:
        check(f"kept: {name}", (host.CACHE / name).exists())
    check("a link is removed, but not its target",
          not os.path.lexists(host.CACHE / "source/link") and (outside / "file").exists())
    after = sum(cache.usage(host.CACHE).values())
    check("prune() returns the bytes freed", 0 < freed <= total - after)
    check("a second prune() removes nothing", cache.prune(NAMED) == 0)

    os.rename(host.CACHE / "source", Path(TEMPORARY.name) / "source")
    (host.CACHE / "source").symlink_to(Path(TEMPORARY.name) / "source")
    cache.prune(set())
    check("the entries of a part that is a link are kept", (host.CACHE / KEPT[2]).exists())
    check("without names, prune() removes all entries", not any((host.CACHE / "kernels").iterdir()))
    check("remove() refuses a path outside", refused(outside) and refused(host.CACHE / "../outside")
          and refused(host.CACHE / "source/linux-6.1") and (outside / "file").exists())
    check("remove() refuses the cache itself", refused(host.CACHE) and host.CACHE.exists())

    made = []

    def make(tmp):
        made.append(sorted(tmp.iterdir()))
        write(tmp / "file")

    path = host.CACHE / "kernels/new"
    write(Path(f"{path}.tmp") / "left")
    cache.once(path, "new", make)
    cache.once(path, "new", make)
    check("an entry is made once, and the rest of an interrupted attempt is removed",
          made == [[]] and [file.name for file in path.iterdir()] == ["file"])
    cache.prune(set())
    check("an entry that this process holds is kept", path.exists())
    cache.release(path)
    cache.prune(set())
    check("after release(), prune() removes it", not path.exists())
    return points.end()


if __name__ == "__main__":
    try:
        code = main()
    finally:
        TEMPORARY.cleanup()
    sys.exit(code)
