#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make run: boot a guest in which demo.sh demonstrates the module.

The exit code is 0 only if the demo passed.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/vm"))
import boot
import build
import host
import kernels
import setup
from listing import Test


def main():
    setup.ensure("run")

    def show(line, kernel):
        if not kernel and not line.startswith("hwt-"):
            print(line.rstrip("\r"), flush=True)

    good = boot.boot(kernels.find("stock"), "demo", [Test("demo", "script", 600, "demo.sh", noload=True)],
                     words=(build.PLAIN,), watch=show, silence=120)
    return 0 if good else 1


if __name__ == "__main__":
    host.main(main)
