#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make check-matrix: all tests on each kernel that has a cell in kernels/table, or in the named cells.

matrix.py [--quick] [CELL...]: builds hwt.ko with W=1, which may print no warning, runs the tests,
and prints a line per cell with the date, and "N passed, N failed" at the end. The lines are kept in
build/matrix/results, so that a cell that was not run now has its latest result.
"""

import argparse
import datetime
import re
import shutil
import subprocess
import sys
from pathlib import Path

import build
import host
import kernels
import setup

OUT = host.BUILD / "matrix"
RESULTS = OUT / "results"
WARNING = re.compile(r"(^|/)(hwt\w*|(core|device)/\w+)\.[ch]:.*(warning|error):|^(WARNING|ERROR): modpost:")


def cells():
    """Return {cell: (kernel, description)}, from the last columns of the table."""
    rows = (line.split(None, 7) for line in (kernels.HERE / "table").read_text(encoding="utf-8").splitlines()
            if not line.startswith("#"))
    return {row[6]: (row[0], row[7]) for row in rows if len(row) == 8}


def kept():
    """Return the latest results: {cell: (date, text)}."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {cell: (date, text) for cell, date, text in (line.split("|", 2) for line in lines)}


def keep(cell, text):
    """Replace the result of a cell, and print it."""
    results = kept() | {cell: (datetime.date.today().isoformat(), text)}
    RESULTS.write_text("".join(f"{c}|{date}|{t}\n" for c, (date, t) in results.items()), encoding="utf-8")
    print(f"{cell}: {text}", flush=True)


def show():
    print("| cell | | date | result |\n| --- | --- | --- | --- |")
    results = kept()
    for cell, (_, what) in cells().items():
        print("|", " | ".join((cell, what, *results.get(cell, ("", "never run")))), "|")


def warnings(kernel, cell):
    """Return the first warning of W=1 about hwt.ko itself, or why it does not build."""
    tree = host.BUILD / "modules" / f"matrix-{cell}"
    # Build everything: make does not repeat the warnings of earlier builds.
    shutil.rmtree(tree, ignore_errors=True)
    try:
        build.modules(kernel, tree.name, tests=False, words=("W=1", "KCFLAGS="))
    except host.Failed as error:
        return f"does not build: {error}"
    lines = Path(f"{tree}.log").read_text(encoding="utf-8", errors="replace").splitlines()
    return next(filter(WARNING.search, lines), "")


def run(cell, kernel, quick):
    """Run a cell; return its result, and whether it passed."""
    directory = OUT / cell
    directory.mkdir(parents=True, exist_ok=True)
    try:
        kernel.get()
    except host.Failed as error:
        return f"no kernel: {error}", False
    host.say(f"{cell}: {kernel.release} (log: {directory}/log)")
    results = directory / "tests"
    results.unlink(missing_ok=True)
    warning = warnings(kernel, cell)
    with open(directory / "log", "wb") as log:
        # The results tell more than the exit code.
        host.run([sys.executable, host.TOP / "tests/run.py", "guest", kernel.name, "--name", f"matrix-{cell}",
                  "--results", results, *(["--quick"] if quick else [])],
                 stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    count = {word: sum(line.startswith(f"{word} ") for line in lines) for word in ("ok", "not ok", "skip")}
    if warning:
        text = f"W=1: {warning}"
    elif lines[-1:] != ["done"]:
        text = f"died without reporting: {host.last_line(directory / 'log')}"
    else:
        text = f"{count['ok']} passed, {count['not ok']} failed, {count['skip']} skipped"
    good = not warning and lines[-1:] == ["done"] and count["ok"] and not count["not ok"]
    return f"{kernel.release}: {text}{' (quick)' if quick else ''}", bool(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the tests that take long")
    parser.add_argument("cells", nargs="*")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    there = cells()
    for cell in args.cells:
        if cell not in there:
            raise host.Failed(f"no cell '{cell}' in tests/vm/kernels/table; there are: {', '.join(there)}")
    setup.ensure("guest")
    wanted, failed = args.cells or list(there), []
    for cell in wanted:
        text, good = run(cell, kernels.find(there[cell][0]), args.quick)
        keep(cell, text)
        failed += [] if good else [cell]
    print()
    show()
    print(f"\n{len(wanted) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    host.main(main)
