#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Reads TAP strictly (numbers and plan must be right), and prints TAP for other programs.

As a program, tap.py --name NAME --results FILE [--timeout S] -- command...
runs the command, shows its output, and writes the results to FILE.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading

import host

PLAN = re.compile(r"^1\.\.(\d+)")
POINT = re.compile(r"^(not )?ok\b\s*(\d+)?\s*-?\s*(.*?)\s*(?:#\s*(SKIP|TODO|XFAIL)\b\s*(.*))?$", re.I)


class Results:
    """Results: lines "ok NAME", "skip NAME # WHY", "not ok NAME # WHY"."""

    def __init__(self):
        self.lines = []

    def add(self, verdict, name, why=""):
        self.lines.append(f"{verdict} {name}" + (f" # {why}" if why else ""))

    def passed(self, name):
        self.add("ok", name)

    def skipped(self, name, why=""):
        self.add("skip", name, why)

    def failed(self, name, why):
        self.add("not ok", name, why)

    def check(self, name, good, why):
        """Add "ok" if @good, else "not ok" and the reason."""
        self.add("ok" if good else "not ok", name, "" if good else why)

    def failures(self):
        return [line for line in self.lines if line.startswith("not ok ")]

    def write(self, path):
        """Write the results to a file. Its last line, "done", tells that it is complete."""
        path = os.path.abspath(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".tmp", "w", encoding="utf-8") as out:
            out.write("".join(line + "\n" for line in self.lines) + "done\n")
        os.rename(path + ".tmp", path)

    def print_tap(self):
        """Print the results as TAP; return the program's exit code."""
        print(f"TAP version 13\n1..{len(self.lines)}")
        for number, line in enumerate(self.lines, 1):
            verdict, _, rest = line.partition(" ")
            if verdict == "not":
                print(f"not ok {number} {rest.removeprefix('ok ')}")
            elif verdict == "skip":
                name, _, why = rest.partition(" # ")
                print(f"ok {number} {name} # SKIP {why}")
            else:
                print(f"ok {number} {rest}")
        return 1 if self.failures() else 0


class Points:
    """Test points of a program, printed as TAP."""

    def __init__(self):
        self.count = self.failed = 0

    def point(self, text, good, said=()):
        """Print a test point, and @said as comments."""
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {text}")
        print("".join(f"# {line}\n" for line in said), end="", flush=True)

    def end(self):
        """Print the plan; return the program's exit code."""
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed else 0


class Tap:
    """A TAP stream. Indented lines, which are nested TAP, do not count."""

    def __init__(self):
        self.plan = None
        self.points = []        # (number, passed, skipped, text)
        self.bail = None

    def feed(self, line):
        """Read a line; return whether it is a test point."""
        if line.startswith("Bail out!"):
            self.bail = line
        plan = PLAN.match(line)
        if plan and self.plan is None:
            self.plan = int(plan.group(1))
        point = POINT.match(line)
        if not point:
            return False
        number = int(point.group(2)) if point.group(2) else len(self.points) + 1
        kind = (point.group(4) or "").upper()
        text = point.group(3) or point.group(5) or "?"
        self.points.append((number, not point.group(1), kind == "SKIP", text))
        return True

    def seen(self):
        return self.plan is not None or bool(self.points)

    def report(self, name, results, need_plan=True):
        """Add every point to the results, and a failure for each violation of TAP."""
        for number, passed, skipped, text in self.points:
            full = f"{name}: {text}" if text != "?" else f"{name}: {number}"
            if not passed:
                results.failed(full, "not ok")
            elif skipped:
                results.skipped(full)
            else:
                results.passed(full)
        if self.bail:
            results.failed(name, self.bail)
        if [p[0] for p in self.points] != list(range(1, len(self.points) + 1)):
            results.failed(name, "test numbers are not 1, 2, 3, ...: output lost or mixed up")
        if self.plan is None:
            if need_plan:
                results.failed(name, "no plan (1..N)")
        elif self.plan != len(self.points):
            results.failed(name, f"planned {self.plan} tests, {len(self.points)} reported")


def run(args):
    """Run the command, print its output, and write its results."""
    tap, results = Tap(), Results()
    child = host.start(args.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
    late = threading.Event()

    def expire():
        late.set()
        os.killpg(child.pid, signal.SIGKILL)

    timer = threading.Timer(args.timeout, expire)
    timer.start()
    try:
        for line in child.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            tap.feed(line.rstrip("\n"))
        code = child.wait()
    finally:
        timer.cancel()
        host.finished(child)

    tap.report(args.name, results)
    if late.is_set():
        results.failed(args.name, f"no end within {args.timeout} s")
    elif code:
        results.failed(args.name, f"exit code {code}")
    elif not tap.points:
        results.failed(args.name, "no tests reported")
    results.write(args.results)
    return 1 if results.failures() else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--timeout", type=int, default=900)
    parser.add_argument("command", nargs="+")
    return run(parser.parse_args())


if __name__ == "__main__":
    host.main(main)
