#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make check-coverage: measure the coverage of hwt.ko with gcov, in guests. See coverage/README.md.

coverage.py [--quick] [--kernels "NAME..."] [--pattern NAMES]
coverage.py --report: only print the report of the last counts
"""

import argparse
import base64
import collections
import concurrent.futures
import contextlib
import glob
import io
import json
import os
import re
import sys
import tarfile
import threading
from pathlib import Path

import boot
import host
import kernels
import listing
import setup

OUT = host.BUILD / "coverage"
HERE = Path(__file__).resolve().parent / "coverage"
# These tests run again with thread contexts and an isolated CPU.
THREADS = ("device|events|ids|lib_*|lifecycle|limits|list|pass|periodic|place|poison|process|races|realtime|recover_kill|"
           "rings*|stalled|test_bh|timens|users")
APART = ["HWT_PARAMS=thread_contexts=1", "isolcpus=1"]
# The tests of a kernel, the number of guests that share them (one that dies loses its counts), and words for their command lines.
PARTS = {"debug": ("*", 3, []), "debug.apart": (THREADS, 1, APART), "debug612": ("uring*|module-debug", 1, [])}
LINES, BRANCHES, FEW = 95.0, 85.0, 12   # Of fewer than FEW branches of a file, a share says little.
# Guests of one kernel share the tree into which their counts are unpacked.
TREE = threading.Lock()
# Kernel macros with branches of their own. On such a line they cannot be told from those of hwt.
MACROS = re.compile(r"\b(" + "|".join((
    r"pr_[a-z]+_(once|ratelimited)", r"hwt_debug_report", r"local_irq_(save|restore)", r"preempt(_count|ible)", r"DEFINE_SEQ_ATTRIBUTE",
    r"WARN_ON(_ONCE)?", r"lockdep_assert_held", r"lockdep_depth", r"list_for_each_entry_rcu", r"wait_(var_)?event(_[a-z]+)*",
    r"set_current_state", r"preempt_enable", r"cond_resched(_[a-z_]+)?", r"test_bit_acquire", r"__(set|clear)_bit", r"fls64",
    r"roundup_pow_of_two", r"ilog2", r"module_name")) + r")\(")
FUNCTION = re.compile(r"^(?!struct \w+ \{|static const|#|\s|/\*|\})[a-z_].*?\b(\w+)\(")


class Source:
    """A source file: its lines, and the function of each line."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().splitlines()
        self.functions = []
        function = ""
        for line in self.lines:
            match = FUNCTION.match(line)
            if match:
                function = match.group(1)
            self.functions.append(function)
            if line == "}":
                function = ""

    def key(self, number):
        """Return the function and the text of a line."""
        return self.functions[number - 1], self.lines[number - 1].strip()

    def keys(self):
        """Count the lines of each (function, text)."""
        return collections.Counter(self.key(number + 1) for number in range(len(self.lines)))


class Reasons:
    """A file's explained lines, by (function, text); those reached elsewhere are apart."""

    def __init__(self):
        self.here, self.elsewhere = collections.Counter(), collections.Counter()

    def add(self, key, reason):
        (self.elsewhere if reason.startswith("elsewhere: ") else self.here)[key] += 1

    @staticmethod
    def take(counter, key):
        """Use up an explanation; return false if none is left."""
        if not counter[key]:
            return False
        counter[key] -= 1
        return True


def read_reasons(path):
    """Return {file: Reasons}, and {file: reason} for whole files."""
    reasons, files, where = {}, {}, None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("\t"):
                if where is None:
                    sys.exit(f"{path}:{number}: a line of code before any FILE:FUNCTION: REASON")
                name, function, reason = where
                reasons.setdefault(name, Reasons()).add((function, line.strip()), reason)
            elif line.strip() and not line.startswith("#"):
                match = re.match(r"([^\s:]+):(?:(\w+):)? (.+)", line)
                if not match:
                    sys.exit(f"{path}:{number}: FILE:FUNCTION: REASON is expected")
                where = match.groups()
                if not where[1]:
                    files[where[0]] = where[2]
                    where = None
    return reasons, files


def percent(part, whole):
    return 100.0 * part / whole if whole else 100.0


class Report:
    """A table of the files and their sum, and the problems found."""

    def __init__(self, top, reasons, files):
        self.top, self.reasons, self.files = top, reasons, files
        self.seen = set()
        self.problems, self.lucky, self.open_branches = [], [], []
        self.sums = [0, 0, 0, 0]

    def row(self, name, counts, explained):
        lines, all_lines, branches, all_branches = counts
        print(f"{name:<20} {lines:>5} / {all_lines:<5} {percent(lines, all_lines):6.1f} % "
              f"{branches:>6} / {all_branches:<5} {percent(branches, all_branches):6.1f} %  {explained:>4}")

    def file(self, entry):
        name = entry["file"]
        self.seen.add(name)
        source = Source(os.path.join(self.top, name))
        reasons = self.reasons.pop(name, Reasons())
        explained = reasons.here + reasons.elsewhere
        lines = [line for line in entry["lines"] if not line.get("gcovr/noncode")]
        for line in lines:
            taken = [branch for branch in line["branches"] if branch["count"]]
            if line["count"] and taken == line["branches"]:
                continue
            if reasons.take(reasons.elsewhere, source.key(line["line_number"])):
                line["branches"] = taken
                line["elsewhere"] = not line["count"]
        lines = [line for line in lines if not line.get("elsewhere")]
        missed = [line["line_number"] for line in lines if not line["count"]]
        for line in lines:
            if MACROS.search(source.lines[line["line_number"] - 1]):
                line["branches"] = []
        branches = [branch for line in lines for branch in line["branches"]]
        counts = (len(lines) - len(missed), len(lines),
                  sum(branch["count"] > 0 for branch in branches), len(branches))
        self.sums = [a + b for a, b in zip(self.sums, counts)]
        unexplained = [number for number in missed if not reasons.take(reasons.here, source.key(number))]
        self.row(name, counts, len(missed) - len(unexplained))
        for what, share, wanted in (("lines", percent(*counts[:2]), LINES),
                                    ("branches", percent(*counts[2:]), BRANCHES)):
            if share < wanted and (what == "lines" or counts[3] >= FEW):
                self.problems.append(f"{name}: {share:.1f} % of the {what}, not {wanted:.0f} %")
        for number in unexplained:
            function, text = source.key(number)
            self.problems.append(f"{name}:{number}: {function}: not reached, and not explained: {text}")
        for key, count in (explained - source.keys()).items():
            self.problems.append(f"{name}: {key[0]}: explained, but not there"
                                 f"{' as often' if explained[key] > count else ''}: {key[1]}")
            del reasons.here[key]
        for key in reasons.here.elements():
            self.lucky.append(f"{name}: {key[0]}: {key[1]}")
        for line in lines:
            taken = sum(branch["count"] > 0 for branch in line["branches"])
            if line["count"] and taken < len(line["branches"]):
                number = line["line_number"]
                self.open_branches.append(f"{name}:{number}: {taken} of {len(line['branches'])}: "
                                          f"{source.key(number)[1]}")

    def finish(self):
        self.row("all", self.sums, "")
        for path in sorted(path for pattern in ("hwt_*.c", "core/*.c", "device/*.c")
                           for path in glob.glob(os.path.join(self.top, pattern))):
            name = os.path.relpath(path, self.top)
            if name in self.files:
                print(f"{name:<20} " + ("measured, though not expected" if name in self.seen else self.files[name]))
            elif name not in self.seen:
                self.problems.append(f"{name}: not measured, and not explained")
        for name in self.reasons:
            self.problems.append(f"{name}: explained, but not measured")
        for name in self.files:
            if not os.path.exists(os.path.join(self.top, name)):
                self.problems.append(f"{name}: explained, but not there")
        for title, items in (("Lines that are reached, but not all of their branches", self.open_branches),
                             ("Explained, but reached this time", self.lucky),
                             ("Wrong", self.problems)):
            if items:
                print(f"\n{title}:\n  " + "\n  ".join(items))
        passed = not self.problems
        print(f"\n{'ok' if passed else 'FAILED'}: at least {LINES:.0f} % of the lines and "
              f"{BRANCHES:.0f} % of the branches of each file, every other line explained")
        return passed


class Counts:
    """The counts of hwt.ko, built for gcov, in a guest."""

    def __init__(self, kernel, name):
        self.name = name
        self.tree = host.BUILD / "modules" / f"coverage-{kernel.name}"
        self.lines, self.inside = [], False
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / f"{name}.json").unlink(missing_ok=True)
        # For boot.start().
        self.options = {"tree": self.tree.name, "words": [f"HWT_COVERAGE={HERE}"], "ktests": True, "watch": self.take}

    def take(self, line, of_kernel):
        """Keep a line of the guest that has counts."""
        if of_kernel:
            return
        if line.startswith("hwt-coverage: "):
            self.inside = line.startswith("hwt-coverage: begin")
        elif self.inside:
            self.lines.append(line)

    def read(self):
        """Convert the counts for report(), when the guest has ended."""
        if not self.lines:
            raise host.Failed(f"the guest reported no counts: {self.name}")
        with TREE:
            for old in self.tree.rglob("*.gcda"):
                old.unlink()
            with tarfile.open(fileobj=io.BytesIO(base64.b64decode("".join(self.lines)))) as archive:
                archive.extractall(self.tree)
            # The guest has sent them in folders without parents.
            for counts in (self.tree / self.tree.name).glob("*.gcda"):
                counts.rename(self.tree / counts.name)
            # The tree has links to the sources, so filter by the sources' own paths. Exclude
            # tracepoints, which are the kernel's macros except for their fields.
            host.logged(OUT / f"{self.name}.log", "reading the counts", [
                "gcovr", "--root", self.tree, "--filter", f"{host.TOP}/(hwt|core/|device/)", "--exclude", host.TOP / "core/trace",
                "--json", OUT / f"{self.name}.json", self.tree])


def count(kernel, name, tests, quick, append):
    """Run tests, and read the counts of hwt.ko; return whether the tests passed."""
    host.say(f"{len(tests)} tests on {kernel.name}, with hwt.ko built for gcov")
    counts = Counts(kernel, name)
    good = boot.boot(kernel, f"coverage-{name}", tests, quick=int(quick), results=OUT / f"{name}.results", append=append,
                     **counts.options)
    if not good:
        host.say("tests failed: the coverage is not that of a passing run")
    counts.read()
    return good


def report():
    """Add up the counts and print the report; return whether the coverage is sufficient."""
    (OUT / "html").mkdir(exist_ok=True)
    tracefiles = [word for path in sorted(OUT.glob("*-[0-9].json")) for word in ("--add-tracefile", path)]
    host.logged(OUT / "gcovr.log", "adding up", [
        "gcovr", "--root", host.TOP, *tracefiles, "--json", OUT / "coverage.json",
        "--html-details", OUT / "html/index.html", "--html-title", "hwt.ko, by its tests"])
    entries = json.loads((OUT / "coverage.json").read_text(encoding="utf-8"))["files"]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        result = Report(host.TOP, *read_reasons(HERE / "not-reached"))
        print(f"{'':<20} {'lines':>13} {'':>8} {'branches':>14} {'':>8}  explained")
        for entry in sorted(entries, key=lambda entry: entry["file"]):
            result.file(entry)
        passed = result.finish()
    (OUT / "report.txt").write_text(text.getvalue(), encoding="utf-8")
    print(text.getvalue(), end="", flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the tests that take long")
    parser.add_argument("--kernels", default="", help="kernels with CONFIG_GCOV_KERNEL, whose counts are added up")
    parser.add_argument("--pattern", default="", help="only tests with these names")
    parser.add_argument("--report", action="store_true", help="only print the report of the last counts")
    args = parser.parse_args()
    setup.ensure("coverage")
    OUT.mkdir(parents=True, exist_ok=True)
    good = True
    if not args.report:
        guests = []
        for name in args.kernels.split() or PARTS:
            for old in OUT.glob(f"{name}-[0-9].json"):
                old.unlink()
            kernel = kernels.find(name.partition(".")[0])
            pattern, parts, append = PARTS.get(name, PARTS["debug"])
            pattern, parts = (args.pattern, 1) if args.pattern else (pattern, parts)
            tests = listing.tests(kernel, args.quick, pattern=pattern)
            if not tests:
                raise host.Failed(f"no test matches '{pattern}'")
            guests += [(kernel, f"{name}-{part}", tests[part::parts], args.quick, append) for part in range(parts)]
        with concurrent.futures.ThreadPoolExecutor(max(2, host.JOBS // 2)) as pool:
            good = all(list(pool.map(lambda words: count(*words), guests)))
    return 0 if report() and good else 1


if __name__ == "__main__":
    host.main(main)
