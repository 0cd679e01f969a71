#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the static checks in parallel. Each is a test point; its problems are printed.

Warnings of the compiler and sparse about modules are not checked here: they fail the build.
"""
import argparse
import importlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "vm")]
import checks
import host
from tap import Results
# Each module registers its checks. The output has this order.
for module in ("style", "abi", "documentation", "manual", "hwtctl", "programs"):
    importlib.import_module(module)


def show(check, results):
    """Print and record a check's verdict, and write all problems to its log."""
    log = checks.OUT / f"{check.name}.log"
    log.write_text("".join(line + "\n" for line in check.problems), encoding="utf-8")
    word = "FAIL" if check.problems else "ok"
    print(f"{word:>6}  {check.name}", flush=True)
    results.check(f"static/{check.name}", not check.problems, f"{len(check.problems)} lines in {log}")
    for line in check.problems[:40]:
        print(f"        | {line}", flush=True)


def main():
    """Run the requested checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help='only the checks of "make check"')
    parser.add_argument("check", nargs="*", help=", ".join(checks.CHECKS))
    args = parser.parse_args()
    for name in args.check:
        if name not in checks.CHECKS:
            parser.error(f"there is no check {name}")
    chosen = [check for check in checks.CHECKS.values()
              if (check.name in args.check if args.check else check.quick or not args.quick)]

    checks.OUT.mkdir(parents=True, exist_ok=True)
    checks.PASSED.mkdir(parents=True, exist_ok=True)
    checks.kernel_source()
    pool, results = ThreadPoolExecutor(host.JOBS), Results()
    begun = [pool.submit(check.begin, pool) for check in chosen]
    for check, beginning in zip(chosen, begun):
        beginning.result()
        check.end()
        show(check, results)
    results.write(os.environ.get("HWT_RESULTS") or host.BUILD / "results/static")
    return 1 if results.failures() else 0


if __name__ == "__main__":
    host.main(main)
