#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make soak: run the torture in a guest for hours, print its summaries as they come, and a verdict.

soak.py [--kernel NAME] HOURS [PARAMETER=VALUE...]: HOURS may be a fraction. The parameters are
those of hwt_torture.ko; seed=N repeats the run of that seed.
"""

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))
import boot
import host
import kernels
import setup
from listing import Test

TOLD = re.compile(r"hwt_torture: ((begins|after|ends|FAILED|not ok|  ).*)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="stock", help="a kernel of tests/vm/kernels/table, including uml")
    parser.add_argument("hours", type=float)
    parser.add_argument("parameters", nargs="*")
    args = parser.parse_args()
    seconds = int(args.hours * 3600)
    if seconds <= 0:
        raise host.Failed("HOURS must be at least a second")
    setup.ensure("guest")
    last = ["nothing"]

    def show(line, kernel):
        told = kernel and TOLD.search(line)
        if told:
            if told.group(2) in ("after", "ends"):
                last[0] = told.group(1).rstrip()
            print("    " + told.group(1).rstrip(), flush=True)

    # The guest needs time to boot, and a run that hangs takes minutes to report it.
    limit = seconds + 1800
    test = Test("torture", "script", limit, "torture.sh",
                args=" ".join([f"seconds={seconds}", "report=30", *args.parameters]))
    name = f"soak-{args.kernel}"
    good = boot.boot(kernels.find(args.kernel), name, [test], programs=False, watch=show, silence=900,
                     limit=limit + 600)
    print(f"[hwt] soak: {'passed' if good else 'FAILED'}; {last[0]}\n[hwt] its logs: {host.BUILD}/guest/{name}")
    return 0 if good else 1


if __name__ == "__main__":
    host.main(main)
