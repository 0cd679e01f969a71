#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Run programs side by side, and print their test points as one TAP stream.

run.py COMMAND...: shell commands that print "ok - text" and "not ok - text" lines; other lines become
diagnostics. A command that fails, or reports nothing, is a test that failed. One that the machine cannot
run, since its kernel has no 32-bit programs, is skipped.
"""
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))
import host
import tap


def points(command):
    """Run a command; return its test points and diagnostics, as (passed or None, text)."""
    code, said = host.said(["sh", "-c", command])
    found = []
    for line in said.splitlines():
        point = re.match(r"(not )?ok - (.*)", line)
        found.append((not point[1], point[2]) if point else (None, re.sub("^# ?", "", line)))
    verdicts = [passed for passed, _ in found if passed is not None]
    if code == 126 and "Exec format error" in said:
        return [(True, f"{Path(command.split()[0]).parent.name} bit: {command} # SKIP this machine does not run it")]
    if code and False not in verdicts:
        found.append((False, f"{command}: exit code {code}"))
    elif not verdicts:
        found.append((False, f"{command}: no test reported"))
    return found


def main():
    """Number the points in the order of the commands."""
    printed = tap.Points()
    print("TAP version 13")
    for found in ThreadPoolExecutor(host.JOBS).map(points, sys.argv[1:]):
        for passed, text in found:
            if passed is None:
                print(f"# {text}", flush=True)
            else:
                printed.point(text, passed)
    return printed.end()


if __name__ == "__main__":
    host.main(main)
