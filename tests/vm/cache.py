#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The cache: kernels, sources and programs that are fetched or built once for all checkouts.

Each entry is made in a directory "ENTRY.tmp" beside it and moved to its place when it is complete.
A process that makes or uses an entry holds a shared lock on it for as long as the process lives;
prune() leaves such entries alone.

    cache.py clean          remove what no table, configuration or package version names any more
"""

import contextlib
import fcntl
import fnmatch
import os
import shutil
import subprocess
import sys
from pathlib import Path

import host

# The directories of which every entry must be named. The other directories have one version only.
PARTS = ("kernels", "source", "roots", "cross")

# --- Making and using entries ----------------------------------------------------------------

_held = {}


def hold(path):
    """Keep prune() from removing an entry while this process lives; return whether it exists."""
    while path not in _held:
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        fcntl.flock(file, fcntl.LOCK_SH)
        # prune() may have removed it while this process waited.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                _held[path] = file
                return True
        os.close(file)
    return path.exists()


def release(path):
    """Undo hold()."""
    if path in _held:
        os.close(_held.pop(path))


@contextlib.contextmanager
def making(path):
    """Give a fresh directory PATH.tmp, to be renamed to its place; what is left of it is removed.

    After a failure it stays, for the logs in it, until the next attempt.
    """
    tmp = Path(f"{path}.tmp")
    remove(tmp)
    tmp.mkdir(parents=True)
    hold(tmp)
    try:
        yield tmp
        remove(tmp)
    finally:
        release(tmp)


def once(path, lock, make):
    """Return an entry and hold it; make(tmp) makes it, if it is not there.

    make() returns the part of the directory tmp to keep, or None for all of it.
    """
    if not hold(path):
        with host.lock(lock):
            if not hold(path):
                with making(path) as tmp:
                    (make(tmp) or tmp).rename(path)
                hold(path)
    return path


def remove(path):
    """Remove an entry and all below it. Refuses anything outside of the cache."""
    root = host.CACHE.resolve()
    parent = Path(path).parent.resolve()
    if root != parent and root not in parent.parents:
        raise host.Failed(f"{path} is not in the cache {root}")
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        # A Debian of root's.
        host.as_root(["rm", "-rf", "--", path])


def discard(path):
    """Remove an entry unless a process holds it; return whether it is gone."""
    if path.is_symlink():
        remove(path)
        return True
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(path)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(file)


# --- The whole cache -------------------------------------------------------------------------


def usage(*paths):
    """Return the bytes that each path takes on the disk; hard links count once."""
    said = subprocess.run(["du", "-s", "-B1", "--", *paths], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, check=False).stdout
    return {Path(path): int(size)
            for size, path in (line.split("\t") for line in said.splitlines())}


def human(count):
    """Return a number of bytes for people: "12.3 GiB"."""
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024 or unit == "GiB":
            return f"{count:.1f} {unit}"


def unnamed(named):
    """Yield the entries that none of the patterns "PART/ENTRY" names."""
    for part in PARTS:
        directory = host.CACHE / part
        # A part that somebody linked to another disk is not removed from there.
        if directory.is_symlink() or not directory.is_dir():
            continue
        for path in sorted(directory.iterdir()):
            # A log goes with what it is of.
            name = path.name.removesuffix(".log")
            if name.endswith(".tmp") or not path.with_name(name).exists() or not any(
                    fnmatch.fnmatchcase(f"{part}/{name}", pattern) for pattern in named):
                yield path
    yield from sorted(host.CACHE.glob("*.tmp"))
    yield from sorted(host.CACHE.glob("*.tmp.log"))


def prune(named):
    """Remove the entries that none of the patterns names; return how many bytes that freed."""
    freed = 0
    for path in list(unnamed(named)):
        count = sum(usage(path).values())
        name = path.relative_to(host.CACHE)
        if discard(path):
            freed += count
            host.say(f"removed {name}: {human(count)}")
        else:
            host.say(f"kept {name}: a running process uses it")
    return freed


def main():
    """The command line."""
    if sys.argv[1:] != ["clean"]:
        raise host.Failed("usage: cache.py clean")
    import debian
    import kernels
    freed = prune(kernels.named() | debian.named())
    print(f"freed {human(freed)}; the cache {host.CACHE} has {human(sum(usage(host.CACHE).values()))}")


if __name__ == "__main__":
    host.main(main)
