#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The cache: kernels, sources and programs that are fetched or built once for all checkouts.

Each entry is created in a directory "ENTRY.tmp" beside it, and renamed when it is complete. A
process that creates or uses an entry holds a shared lock on it until the process ends, and prune()
keeps such entries.

    cache.py clean          remove entries that no table, configuration or package version names
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

# prune() removes unnamed entries of these directories. The others have one version only.
PARTS = ("kernels", "source", "roots", "cross")

# --- Creating and using entries --------------------------------------------------------------

_held = {}


def hold(path):
    """Keep prune() from removing an entry while this process lives; return whether it exists."""
    while path not in _held:
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        fcntl.flock(file, fcntl.LOCK_SH)
        # prune() may have removed the entry while this process waited.
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
    """Provide a new directory PATH.tmp for the caller to rename; remove what the caller leaves.

    After a failure the directory stays until the next attempt, because it has the logs.
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
    """Return an entry and hold it. If it does not exist, make(tmp) creates it.

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
    """Remove an entry and all below it; refuse a path outside the cache."""
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
        # A Debian, whose files belong to root.
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
    """Return the disk usage of each path in bytes; hard links count once."""
    said = subprocess.run(["du", "-s", "-B1", "--", *paths], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, check=False).stdout
    return {Path(path): int(size)
            for size, path in (line.split("\t") for line in said.splitlines())}


def human(count):
    """Return a number of bytes as text: "12.3 GiB"."""
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024 or unit == "GiB":
            return f"{count:.1f} {unit}"


def unnamed(named):
    """Yield the entries that match none of the patterns "PART/ENTRY"."""
    for part in PARTS:
        directory = host.CACHE / part
        # Keep the entries of a part that is a link to another disk.
        if directory.is_symlink() or not directory.is_dir():
            continue
        for path in sorted(directory.iterdir()):
            # A log is removed with its entry.
            name = path.name.removesuffix(".log")
            if name.endswith(".tmp") or not path.with_name(name).exists() or not any(
                    fnmatch.fnmatchcase(f"{part}/{name}", pattern) for pattern in named):
                yield path
    yield from sorted(host.CACHE.glob("*.tmp"))
    yield from sorted(host.CACHE.glob("*.tmp.log"))


def prune(named):
    """Remove the entries that match no pattern; return the number of bytes freed."""
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
    """Carry out the command line."""
    if sys.argv[1:] != ["clean"]:
        raise host.Failed("usage: cache.py clean")
    import debian
    import kernels
    freed = prune(kernels.named() | debian.named())
    print(f"freed {human(freed)}; the cache {host.CACHE} has {human(sum(usage(host.CACHE).values()))}")


if __name__ == "__main__":
    host.main(main)
