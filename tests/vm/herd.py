# SPDX-License-Identifier: GPL-2.0-only
"""Provides herd7, which tells which outcomes a memory model allows.

If herd7 is not installed, it is unpacked into the cache from a later suite of the distribution,
with the C library that it needs. Nothing is installed, so root is not needed.
"""

from pathlib import Path

import apt
import cache
import host

SUITE = "sid"

# Finds its files beside itself, so that the directory can be renamed.
SCRIPT = """#!/bin/sh
dir=${{0%/*}}
exec "$dir/{loader}" --library-path "$dir/{libraries}" "$dir/usr/bin/herd7" \\
	-set-libdir "$dir/usr/share/herdtools7/herd" "$@"
"""


def fetch(tmp):
    """Unpack herd7 into a directory."""
    suite = apt.Suite(tmp / "apt", SUITE)
    # The other tools of the package are large.
    for deb in suite.download("herdtools7", "libc6", "libgmp10"):
        tools = ("./usr/bin/herd7", "./usr/share/herdtools7/*")
        apt.extract(deb, tmp, *(tools if deb.name.startswith("herdtools7") else ()))
    loader = next((tmp / "usr/lib").glob("*-linux-gnu*/ld-linux*.so.*"), None)
    if not loader:
        raise host.Failed(f"libc6 of {suite.name} has no loader")
    loader = loader.relative_to(tmp)
    script = tmp / "herd7"
    script.write_text(SCRIPT.format(loader=loader, libraries=loader.parent))
    script.chmod(0o755)
    host.output([script, "-version"])
    cache.remove(tmp / "apt")


def ensure():
    """Return the path of herd7; raise Unavailable if its suite cannot be fetched."""
    installed = host.have("herd7")
    return Path(installed) if installed else cache.once(host.CACHE / "herd", "herd", fetch) / "herd7"
