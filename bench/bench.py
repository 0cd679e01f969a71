#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the benchmarks and gathers what they print. See bench/README.md.

bench.py [--quick] [--only PART,...] --uml DIR --stock DIR [--newer DIR] --out DIR

Every measuring program prints lines "@bench name=value ...", here or in a guest. They
become a list of dictionaries in DIR/results.json, each with "where" it was measured and by which
"part"; report.py makes the table and the plots of it.

Parts that are not run keep the results that are there already, if those are of the same hwt,
machine and kernels.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TOP, "tests", "vm"))
from run_guest import kvm_works

BENCH = re.compile(r"@bench (.*)$")
# What is worth showing while it runs.
SHOWN = re.compile(r"hwt_bench: (?!@bench)|^(?!@bench)\S.*(pending|running|n=|\.\.\.)")


def say(text):
    """Progress; results go elsewhere."""
    print(f"[hwt] {text}", flush=True)


def number(text):
    """A value as what it is."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class Bench:
    """All parts, and what they have found."""

    def __init__(self, args):
        self.args = args
        self.built = os.path.join(os.environ["HWT_BUILD"], "bench")
        self.out = args.out
        self.part = None
        self.results = []
        self.failed = []
        os.makedirs(self.out, exist_ok=True)

    def follow(self, what, where, command, limit, **kwargs):
        """Runs a command, keeps its log, takes its results."""
        log_path = os.path.join(self.out, what.replace(" ", "-") + ".log")
        say(f"{what} (log: {log_path})")
        began = said = time.monotonic()
        found = 0
        with open(log_path, "w", encoding="utf-8") as log, \
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, errors="replace", **kwargs) as process:
            timer = threading.Timer(limit, process.kill)
            timer.start()
            for line in process.stdout:
                log.write(line)
                match = BENCH.search(line)
                if match:
                    pairs = dict(item.split("=", 1) for item in match.group(1).split())
                    self.results.append({"part": self.part, "where": where,
                                         **{k: number(v) for k, v in pairs.items()}})
                    found += 1
                elif SHOWN.search(line) and time.monotonic() - said > 10:
                    said = time.monotonic()
                    say(f"  ... {said - began:.0f} s: {line.strip()[-70:]}")
            code = process.wait()
            timer.cancel()
        if not found:
            self.failed.append(f"{what}: no results (exit code {code}), see {log_path}")
            say(f"  failed: no results, exit code {code}")
        else:
            say(f"  {found} results in {time.monotonic() - began:.0f} s")

    def uml(self, what, bench, extra=(), where="uml", limit=3600, initrd=None):
        """The kernel module in User Mode Linux."""
        env = {**os.environ, "TMPDIR": "/dev/shm"}
        memory = "2G" if self.args.quick and self.part != "many" else "6G"
        self.follow(what, where, [
            os.path.join(self.args.uml, "linux"), "mem=" + memory,
            "initrd=" + (initrd or os.path.join(self.built, "uml.gz")), "con=null", "con0=fd:0,fd:1",
            *extra, f'HWT_BENCH="{bench}"'], limit, env=env)

    def qemu(self, what, limit, cpus=2, newer=False, **variables):
        """The kernel module or the program in an emulated machine."""
        kvm = kvm_works()
        kernel, archive, suffix = (self.args.newer, "stock612.gz", "-6.12") if newer else \
            (self.args.stock, "stock.gz", "")
        append = "console=ttyS0 ignore_loglevel panic=-1 tsc=reliable clocksource=tsc mitigations=off " + \
            " ".join(f'{name}="{value}"' for name, value in variables.items())
        self.follow(what, ("kvm" if kvm else "qemu") + suffix, [
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-machine", "pc", "-smp", str(cpus), "-m", "4G",
            "-accel", "kvm" if kvm else "tcg,thread=multi", "-cpu", "host" if kvm else "max",
            "-kernel", os.path.join(kernel, "vmlinuz"),
            "-initrd", os.path.join(self.built, archive), "-append", append,
            "-serial", "stdio", "-serial", "file:/dev/stdout"], limit)

    def part_ops(self):
        """Single operations, but for those with very many pending."""
        self.uml("operations", "run=ops" +
                 (self.quick(" quick=1") or " pending=1000,10000,100000,1000000"))

    def part_many(self):
        """Likewise, with very many."""
        self.uml("operations, ten million pending", "run=ops pending=10000000" +
                 self.quick(" runs=1"))

    def part_life(self):
        """From schedule to callback; idle; slack; the storm."""
        self.uml("whole lives", "run=through,idle,slack,storm" + self.quick(" quick=1"))

    def part_late(self):
        """How late, natively and over hours."""
        self.uml("lateness", "run=late" + self.quick(" quick=1"))
        self.uml("lateness of long spans, in jumping time",
                 "run=late spans_ms=60000,3600000,36000000 quick=1", ("time-travel=inf-cpu",),
                 where="uml-time-travel")

    def part_smp(self):
        """Several CPUs: in the kernel, emulated; the hot path on real cores."""
        self.qemu("two CPUs, emulated", 1200, HWT_BENCH="run=smp quick=1 runs=3", HWT_USER="no")
        self.follow("contention on real cores", "host",
                    ["make", "-s", "-C", os.path.join(HERE, "hot"), "contention",
                     "QUICK=" + self.quick("1")], 1200)

    def part_count(self):
        """What does not depend on the clock."""
        self.follow("instructions, locked operations, cache lines", "host",
                    ["make", "-s", "-C", os.path.join(HERE, "hot"), "count",
                     "QUICK=" + self.quick("1")], 1200)

    def part_trace(self):
        """What a guest at work has done with timers, again. A quick run takes an old recording."""
        out = os.path.join(self.out, "trace")
        archive = os.path.join(out, "trace.gz")
        if not self.args.quick or not os.path.exists(archive):
            record = [os.path.join(HERE, "trace", "record.sh"), self.quick("3") or "10", out]
            if subprocess.run(record, check=False).returncode:
                self.failed.append("recording a guest's timers")
                return
        # The kernel takes several archives, one behind the other.
        initrd = os.path.join(out, "uml.gz")
        with open(initrd, "wb") as both:
            for part in (os.path.join(self.built, "uml.gz"), archive):
                with open(part, "rb") as one:
                    both.write(one.read())
        self.uml("a real trace", "run=trace" + self.quick(" quick=1"), limit=900, initrd=initrd)

    def part_user(self):
        """From user space."""
        arguments = "-n 1000,10000 -r 3 -t 2" if self.args.quick \
            else "-n 1000,10000,100000 -r 3 -t 2"
        self.qemu("from user space, emulated", 3000, cpus=1, HWT_BENCH="no", HWT_USER=arguments)
        if self.args.newer:
            self.qemu("from user space, emulated, kernel 6.12", 3000, cpus=1, newer=True,
                      HWT_BENCH="no", HWT_USER=arguments)
        self.follow("from user space, on this machine's kernel", "host",
                    [os.path.join(self.built, "user", "user_bench"),
                     *(["-q"] if self.args.quick else ["-r", "3", "-t", "2"])], 3000)

    def part_java(self):
        """Netty and the JDK; only if asked for."""
        self.follow("Java", "host", [os.path.join(HERE, "java", "run.sh"),
                                     *(["-q"] if self.args.quick else [])], 1800)

    def quick(self, text):
        """@text in a quick run, else nothing."""
        return text if self.args.quick else ""

    def run(self):
        """All parts that are wanted; writes results.json after each."""
        facts = {
            "hwt": source_version(),
            "machine": f"{processor()}, {os.cpu_count()} CPUs",
            "kernel": platform.release(),
            "uml": read(os.path.join(self.args.uml, "release")),
            "stock": read(os.path.join(self.args.stock, "release")),
            "quick": self.args.quick,
        }
        parts = self.args.only.split(",")
        path = os.path.join(self.out, "results.json")
        dates, self.results = earlier(path, facts, parts)
        dates.append(datetime.date.today().isoformat())
        for self.part in parts:
            getattr(self, "part_" + self.part)()
            with open(path, "w", encoding="utf-8") as out:
                json.dump({"date": " to ".join(sorted({min(dates), max(dates)})), **facts,
                           "results": self.results}, out, indent=1)
        for why in self.failed:
            say("failed: " + why)
        return 1 if self.failed else 0


def earlier(path, facts, parts):
    """Dates and results of an earlier run that may stand beside those of @parts."""
    try:
        with open(path, encoding="utf-8") as file:
            old = json.load(file)
    except (FileNotFoundError, ValueError):
        return [], []
    rows = [row for row in old["results"] if row.get("part") not in parts]
    if not rows or any(old.get(key) != value for key, value in facts.items()):
        return [], []
    return old["date"].split(" to "), rows


def processor():
    """What this machine computes with."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        model = re.search(r"^model name\s*:\s*(.*)$", info.read(), re.M)
    return model.group(1) if model else platform.machine()


def source_version():
    """The commit that has changed the module last."""
    module = ["--", ":(glob)*.[ch]", "Kbuild"]
    try:
        commit, changed = (subprocess.run(["git", "-C", TOP, *command, *module], check=True,
                                          text=True, stdout=subprocess.PIPE).stdout.strip()
                           for command in (["log", "-1", "--format=%h"], ["status", "--porcelain"]))
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"
    return commit + (" and changes" if changed else "")


def read(path):
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="ops,many,life,late,smp,trace,count,user",
                        help="parts, with commas between")
    parser.add_argument("--uml", required=True, help="directory of the User Mode Linux kernel")
    parser.add_argument("--stock", required=True, help="directory of the guest's kernel")
    parser.add_argument("--newer", help="directory of kernel 6.12 for a guest, if it is there")
    parser.add_argument("--out", required=True, help="directory for the results")
    return Bench(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
