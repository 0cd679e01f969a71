#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Install requirements of the benchmarks, build, measure, make tables and plots. See README.md."""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests/vm"), str(HERE.parent / "commands"), str(HERE / "trace")]
import boot
import build
import guest
import here
import host
import kernels
import record
import setup
from listing import Test
from results import parsed

# Lines that are shown during a run.
SHOWN = re.compile(r"hwt_bench: (?!@bench)|^(?!@bench)\S.*(pending|running|n=|\.\.\.)")
BUILT = host.BUILD / "bench"
NETTY = Path("/usr/share/java/netty-common.jar")
# The script in a guest; its arguments are parameters of hwt_bench.ko.
SCRIPT = """#!/bin/sh
set -eu
. "$HWT_DIR/lib.sh"
load hwt_bench "$@"
unload hwt_bench
"""


class Bench:
    """All parts, and their results."""

    def __init__(self, args):
        self.args = args
        # "scale" alone needs no kernels, and keeps the results of other parts.
        self.alone = args.only == "scale"
        self.out = BUILT / ("scale" if self.alone else "") / ("quick" if args.quick else "")
        self.kernels = {name: kernels.find(name) for name in ("uml", "stock", "stock612")}
        self.part = None
        self.results = []
        self.failed = []
        self.out.mkdir(parents=True, exist_ok=True)

    def measure(self, what, where, run):
        """Collect the results from the lines that @run(show) passes to show()."""
        host.say(what)
        begin = told = time.monotonic()
        lines = []

        def show(line, _kernel=False):
            nonlocal told
            if "@bench " in line:
                lines.append(line.rstrip("\r\n"))
            elif SHOWN.search(line) and time.monotonic() - told > 10:
                told = time.monotonic()
                host.say(f"  ... {told - begin:.0f} s: {line.strip()[-70:]}")

        said = run(show)
        found = [{"part": self.part, "where": where, **row} for row in parsed("\n".join(lines))]
        self.results += found
        if found:
            host.say(f"  {len(found)} results in {time.monotonic() - begin:.0f} s")
        else:
            self.failed.append(f"{what}: no results ({said})")

    def here(self, what, command, limit):
        """Measure by a program on this machine."""
        log = self.out / (what.replace(" ", "-").replace("/", "-") + ".log")

        def run(show):
            child = host.start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace")
            timer = threading.Timer(limit, child.kill)
            timer.start()
            with open(log, "w", encoding="utf-8") as file:
                for line in child.stdout:
                    file.write(line)
                    show(line)
            child.wait()
            timer.cancel()
            host.finished(child)
            return f"exit code {child.returncode}, see {log}"

        self.measure(what, "host", run)

    def boot(self, what, name, test, limit, where, files=None, **options):
        """Measure by a test in a guest."""
        kernel = self.kernels[name]
        files = {"hwt/scripts/bench.sh": SCRIPT, **({} if self.alone else {"hwt/bin/user_bench": BUILT / "user/user_bench"}),
                 **(files or {})}

        def run(show):
            # A part may print nothing for long; a complaint of the kernel about it is no failure.
            boot.boot(kernel, "bench", [test], files, programs=False, silence=limit,
                      limit=limit + 600, watch=show, **options)
            return f"its logs are in {host.BUILD}/guest/bench"

        self.measure(what, where, run)

    def uml(self, what, bench, limit=3600, files=None):
        """Measure by the kernel module in User Mode Linux."""
        memory = "2G" if self.args.quick and self.part != "many" else "6G"
        self.boot(what, "uml", Test("bench", "script", 0, "bench.sh", args=bench), limit, "uml", files,
                  memory=memory)

    def qemu(self, what, test, limit, name="stock", **options):
        """Measure by the kernel module, or by a program, in an emulated machine."""
        where = ("kvm" if guest.kvm_works() else "qemu") + ("" if name == "stock" else "-6.12")
        self.boot(what, name, test, limit, where, memory="4G", **options)

    def native(self, what, *params):
        """Measure by the kernel module in the running kernel of this machine."""
        tree = build.modules(here.Running(), "here-plain", tests=False)
        log = self.out / "kernel.log"

        def run(show):
            try:
                code, lines = here.measure(tree, *params)
            finally:
                if not here.unload(tree):
                    self.failed.append("hwt.ko does not unload")
            log.write_text("\n".join(lines), encoding="utf-8")
            for line in lines:
                show(line)
            return f"insmod: exit code {code}, see {log}"

        self.measure(what, "here", run)

    def part_ops(self):
        """Single operations, except those with ten million timeouts pending."""
        self.uml("operations", "run=ops" + (self.quick(" quick=1") or " pending=1000,10000,100000,1000000"))

    def part_many(self):
        """Single operations with ten million timeouts pending."""
        self.uml("operations, ten million pending", "run=ops pending=10000000" + self.quick(" runs=1"))

    def part_life(self):
        """From schedule to callback; slack; the storm."""
        self.uml("whole lives", "run=through,slack,storm" + self.quick(" quick=1"))
        self.here("the passes of a life", [BUILT / "hot/life", *(["-q"] if self.args.quick else [])], 600)

    def part_late(self):
        """Lateness."""
        self.uml("lateness", "run=late" + self.quick(" quick=1"))

    def part_contention(self):
        """The hot path on real cores."""
        self.here("contention on real cores", [BUILT / "hot/contention", *(["-q"] if self.args.quick else [])], 1200)

    def part_scale(self):
        """One engine, and one for each CPU: in user space, and in a kernel, here or in a guest."""
        self.here("many threads on real cores", [BUILT / "hot/scale", *(["-q"] if self.args.quick else [])], 7200)
        quick = self.quick(" quick=1")
        if self.args.here:
            self.native("many CPUs", "run=scale", *quick.split())
        else:
            quick = quick if guest.kvm_works() else " quick=1"
            self.qemu("many CPUs, in a guest", Test("bench", "script", 0, "bench.sh", args="run=scale" + quick), 3600,
                      cpus=self.args.cpus, nodes=self.args.nodes)

    def part_count(self):
        """Instructions, locked operations and cache lines, which do not depend on the clock."""
        self.here("instructions, locked operations, cache lines",
                  ["make", "-s", "-C", HERE / "hot", "count", "QUICK=" + self.quick("1")], 1200)

    def part_trace(self):
        """The recorded timer operations of a guest at work. A quick run uses an old recording."""
        out = self.out / "trace"
        if not self.args.quick or not (out / "trace.bin").exists():
            try:
                record.record(int(self.quick("3") or 10), out)
            except host.Failed as error:
                self.failed.append(f"recording a guest's timers: {error}")
                return
        self.uml("a real trace", "run=trace" + self.quick(" quick=1"), limit=900,
                 files={"hwt/trace.bin": out / "trace.bin"})

    def part_user(self):
        """Timers from user space."""
        numbers = "1000,10000" + ("" if self.args.quick else ",100000")
        test = Test("user", "program", 0, "user_bench", args=f"-n {numbers} -r 3 -t 2")
        self.qemu("from user space, emulated", test, 3000, cpus=1)
        # Kernel 6.12 has commands of io_uring for devices, but is not available everywhere.
        try:
            self.kernels["stock612"].get()
        except host.Failed as error:
            host.say(f"without kernel 6.12, and so without commands of io_uring: {error}")
        else:
            self.qemu("from user space, emulated, kernel 6.12", test, 3000, "stock612", cpus=1)
        self.here("from user space, on this machine's kernel",
                  [BUILT / "user/user_bench", *(["-q"] if self.args.quick else ["-r", "3", "-t", "2"])], 3000)

    def part_process(self):
        """Timers of one event loop, in C, Python and Java. /dev/hwt is among them in a guest."""
        counts = ["1000", "10000", *([] if self.args.quick else ["100000", "1000000"])]
        self.here("timers in the process", [BUILT / "user/timers", *counts], 1800)
        self.qemu("timers in the process, emulated", Test("timers", "program", 0, "timers", args="10000"), 1200, cpus=1,
                  files={"hwt/bin/timers": BUILT / "user/timers"})
        lib = BUILT / "lib"
        host.logged(BUILT / "lib.log", "building libhwt", ["make", "-C", HERE.parent / "lib", f"O={lib}"])
        self.here("timers in Python", ["env", f"LD_LIBRARY_PATH={lib}", f"PYTHONPATH={HERE.parent}/python",
                                       "PYTHONDONTWRITEBYTECODE=1", sys.executable, HERE / "user/aio.py", *counts[:3]], 600)
        if not shutil.which("java") or not NETTY.exists():
            host.say("without timers in Java: these need openjdk-17-jdk-headless and libnetty-java")
            return
        self.here("timers in Java", ["java", "--add-modules", "jdk.incubator.foreign", "--enable-native-access=ALL-UNNAMED",
                                     f"-Djava.library.path={lib}", "-cp", NETTY, HERE / "user/Wheels.java", *counts[1:]], 1800)

    def part_neighbours(self):
        """A busy process beside an attacker."""
        self.qemu("neighbours", Test("neighbours", "program", 0, "neighbours"), 600, cpus=1,
                  files={"hwt/bin/neighbours": BUILT / "user/neighbours"})

    def quick(self, text):
        """Return @text in a quick run, else nothing."""
        return text if self.args.quick else ""

    def run(self):
        """Run all requested parts, and write results.json after each."""
        model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(errors="replace"), re.M)
        facts = {
            "hwt": source_version(),
            "machine": f"{model[1] if model else platform.machine()}, {os.cpu_count()} CPUs",
            "kernel": platform.release(),
            **{name: self.kernels[name].get().release for name in (() if self.alone else ("uml", "stock"))},
            "quick": self.args.quick,
        }
        parts = self.args.only.split(",")
        path = self.out / "results.json"
        dates, self.results = earlier(path, facts, parts)
        dates.append(datetime.date.today().isoformat())
        for self.part in parts:
            getattr(self, "part_" + self.part)()
            path.write_text(json.dumps({"date": " to ".join(sorted({min(dates), max(dates)})), **facts,
                                        "results": self.results}, indent=1), encoding="utf-8")
        for why in self.failed:
            host.say("failed: " + why)
        return 1 if self.failed else 0


def earlier(path, facts, parts):
    """Return dates and results of an earlier run: those of other parts, of the same hwt, machine and kernels."""
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return [], []
    rows = [row for row in old["results"] if row.get("part") not in parts]
    if not rows or any(old.get(key) != value for key, value in facts.items()):
        return [], []
    return old["date"].split(" to "), rows


def source_version():
    """Return the last commit that has changed the module."""
    module = ["--", ":(glob)*.[ch]", "core", "device", "Kbuild"]
    try:
        commit, changed = (host.output(["git", "-C", host.TOP, *command, *module])
                           for command in (["log", "-1", "--format=%h"], ["status", "--porcelain"]))
    except (FileNotFoundError, host.Failed):
        return "unknown"
    return commit + (" and changes" if changed else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="ops,many,life,late,contention,scale,trace,count,user,process,neighbours",
                        help="parts, with commas between")
    parser.add_argument("--cpus", type=int, default=os.cpu_count(), help="scale: of the guest")
    parser.add_argument("--nodes", type=int, default=1, help="scale: NUMA nodes of the guest")
    parser.add_argument("--here", action="store_true", help="scale: in the running kernel instead of a guest")
    parser.add_argument("--yes", action="store_true", help="scale: do not ask before hwt.ko is loaded")
    args = parser.parse_args()
    if args.here:
        here.refuse()
        here.ask(f"This is going to load hwt.ko and a benchmark into the running kernel, {here.Running.release}, for some "
                 "minutes, and to unload them.\nA fault in hwt would crash this machine: save your work.", args.yes)
        setup.ensure("here")
    bench = Bench(args)
    setup.ensure("scale" if bench.alone else "bench")
    if not bench.alone:
        host.logged(BUILT / "user.log", "building the user-space benchmark",
                    ["make", "-C", HERE / "user", f"OUT={BUILT}/user", f"-j{host.JOBS}"])
    host.logged(BUILT / "hot.log", "building the hot path in user space",
                ["make", "-C", HERE / "hot", f"OUT={BUILT}/hot", "programs", f"-j{host.JOBS}"])
    if "neighbours" in args.only.split(","):
        program = BUILT / "user/neighbours"
        host.logged(BUILT / "neighbours.log", "building the test of neighbours",
                    ["make", "-C", HERE.parent / "tests/user", f"OUT={program.parent}", program])
    failed = bench.run()
    return host.run([sys.executable, HERE / "report.py", bench.out]) or failed


if __name__ == "__main__":
    host.main(main)
