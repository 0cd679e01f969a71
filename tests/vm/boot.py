# SPDX-License-Identifier: GPL-2.0-only
"""Builds, packs and boots a guest, in one call."""

import shutil
from pathlib import Path

import build
import debian
import guest
import host
import listing
import pack


def overlay(directory, files):
    """Create a directory of files, {path in the guest: a Path to copy, or a text}; return it."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            shutil.copy(content, path)
    return directory


def start(kernel, name, tests, files=None, tree=None, words=(), ktests=False, programs=True, disk="", **options):
    """Start a guest for tests (listing.Test), with logs in build/guest/NAME; return its Guest.

    @files: for overlay(), or a directory like its result. @tree: the name of a build of the
    modules, by default one without test modules; False: no modules. @words: for make.
    @ktests, @programs: also build the test modules, the programs. @options: for guest.Options.
    """
    out = host.BUILD / "guest" / name
    out.mkdir(parents=True, exist_ok=True)
    kernel.get()
    modules = None if tree is False else build.modules(kernel, tree or f"{kernel.name}-plain", ktests, words)
    binaries = build.programs(kernel, ktests) if programs else None
    initrd = out / "initramfs.gz"
    files = files if isinstance(files, Path) else overlay(out / "overlay", files or {})
    pack.initramfs(kernel, tests, initrd, modules, binaries, files)
    # A guest has one disk at most.
    for name in {test.disk for test in tests if test.disk} if not disk else ():
        disk = debian.disk(name)
    options = {"limits": listing.silences(tests), **options}
    return guest.Guest(guest.Options(kernel=kernel, initrd=initrd, out=out, planned=len(tests), disk=disk,
                                     **options))


def boot(*arguments, **options):
    """Run tests in a guest, with the arguments of start(); return whether all passed."""
    return start(*arguments, **options).run()
