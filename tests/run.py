#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The runner of all tests. See tests/README.md.

run.py check | ci | all        a tier: set up, run its jobs in parallel, count their results
run.py JOB...                  only these jobs of "all", or series, the whole of series-quick
run.py list                    list the jobs of "all"
run.py guest KERNEL            all tests (--quick: the quick ones) in one guest
run.py times                   the times of the last run's guests and tests

The last line of a tier is "N passed, N failed" (", N skipped"), and the exit code is 0 only if
nothing failed. A job is a program that writes a file of results (vm/tap.py). A job that dies before
that has failed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "vm"))
import boot
import build
import coverage
import host
import kernels
import listing
import setup

RESULTS = host.BUILD / "results"
TESTS = host.TOP / "tests"
# Memory of a guest and its emulator, in MiB.
GUEST_MEMORY = 1500


# --- A guest -----------------------------------------------------------------------------------

def run_guest(args):
    """Build for a kernel, pack, boot, judge."""
    kernel = kernels.find(args.kernel)
    name = args.name or guest_name(args.kernel, args.shard)
    results = Path(args.results or RESULTS / f"guest-{name}")
    results.unlink(missing_ok=True)
    tests = listing.tests(kernel, args.quick, args.named, args.pattern)
    if args.shard:
        part, parts = map(int, args.shard.split("/"))
        tests = tests[part - 1::parts]
    if not tests:
        raise host.Failed(f"no test matches '{args.pattern}'")

    begin = time.monotonic()
    checked = build.checked(kernel)
    counts = coverage.Counts(kernel, f"{kernel.name}-{args.shard.partition('/')[0] or 1}") if args.coverage else None
    words = counts.options if counts else {"tree": kernel.name, "words": checked, "ktests": True}
    machine = boot.start(kernel, name, tests, results=results, label=name, quick=int(args.quick), append=args.append.split(),
                         cpus=args.cpus, nodes=args.nodes, **words)
    if checked:
        machine.results.passed("static/gcc-W1: no warning in any module")
        machine.results.passed("static/sparse: no warning in any module")
    good = machine.run()
    booted = machine.booted or machine.start
    times = {"building": machine.start - begin, "booting": booted - machine.start,
             "tests": time.monotonic() - booted, "idle": machine.judge.idle,
             "each": {test.name: test.seconds for test in machine.judge.tests.values()}}
    (machine.options.out / "times.json").write_text(json.dumps(times), encoding="utf-8")
    if counts:
        counts.read()
        coverage.report()
    return 0 if good else 1


def guest_name(kernel, shard):
    return kernel + (f".{shard.replace('/', '-of-')}" if shard else "")


def print_times(count):
    """Print the times of the guests, and of the @count slowest tests by the guests' clocks."""
    slowest = []
    for path in sorted(host.BUILD.glob("guest/*/times.json")):
        times = json.loads(path.read_text(encoding="utf-8"))
        name = path.parent.name
        idle = ""
        if times["idle"]:
            idle = f", processors idle {100 * times['idle'][0] / times['idle'][1] / 2:.0f} % of it"
        print(f"{name}: building {times['building']:.0f} s, booting {times['booting']:.0f} s, "
              f"{len(times['each'])} tests {times['tests']:.0f} s{idle}")
        slowest += [(seconds, f"{name}/{test}") for test, seconds in times["each"].items()]
    for seconds, name in sorted(slowest, reverse=True)[:count]:
        print(f"{seconds:7.1f} s  {name}")
    return 0


# --- Jobs --------------------------------------------------------------------------------------

@dataclass
class Job:
    """A program that writes a file of results."""
    name: str
    command: list
    weight: int = 1         # rough duration: the longest jobs begin first
    guest: bool = False     # needs a slot for guests; other jobs run at low priority
    env: dict = field(default_factory=dict)
    begin: float = 0
    child: object = None

    @property
    def results(self):
        return RESULTS / self.name

    @property
    def log(self):
        return RESULTS / f"{self.name}.log"

    def start(self):
        """Start the job, with its output in a log."""
        self.results.unlink(missing_ok=True)
        self.begin = time.monotonic()
        low = ["nice", "-n", "19"] if not self.guest else []
        with open(self.log, "wb") as log:
            self.child = host.start(low + self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=host.TOP,
                                    env={**os.environ, "HWT_RESULTS": str(self.results), **self.env})

    def lines(self):
        """Return the job's results. A job that died before "done" has failed."""
        code = self.child.poll() if self.child else None
        try:
            lines = self.results.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        if not lines or lines[-1] != "done":
            ended = f"exit code {code}" if code is not None else "not run to its end"
            return lines + [f"not ok {self.name} # died without reporting ({ended})"]
        if code and not any(line.startswith("not ok ") for line in lines):
            lines.append(f"not ok {self.name} # exit code {code}")
        return lines[:-1]


def tap(name, *command, timeout=4800, **options):
    """Return a job whose program prints TAP."""
    return Job(name, [sys.executable, TESTS / "vm/tap.py", "--name", name, "--results", RESULTS / name,
                      "--timeout", timeout, "--", *command], **options)


def python(path, *words):
    return [sys.executable, TESTS / path, *words]


def guest_jobs(name, quick, named=False, shards=1, weight=1):
    """Return the jobs that run a kernel's tests, divided among @shards guests."""
    jobs = []
    for part in range(shards):
        shard = f"{part + 1}/{shards}" if shards > 1 else ""
        # The debug kernel of check-all counts the coverage besides.
        words = [*(["--quick"] if quick else []), *(["--named"] if named else []), *(["--shard", shard] if shard else []),
                 *(["--coverage"] if name == "debug" and not quick else [])]
        job = f"guest-{guest_name(name, shard)}"
        jobs.append(Job(job, python("run.py", "guest", name, "--results", RESULTS / job, *words),
                        weight=weight, guest=True))
    return jobs


def shards_job():
    """Return a job with the quick tests on eight CPUs of two nodes, with wheels of four shards.

    Tests of libhwt, hwtctl and samples are left out: they are programs that do not see shards.
    """
    results = RESULTS / "guest-shards"
    return Job("guest-shards", python("run.py", "guest", "stock", "--quick", "--name", "shards", "--cpus", "8", "--nodes", "2",
                                      "--append", "HWT_PARAMS=shards=4", "--results", results,
                                      "--pattern", "!hwtctl*|lib_*|samples*|python*|documented"),
               weight=17, guest=True)


def threads_job():
    """Return a job with the quick tests of the device, each context with a kernel thread, and of an isolated CPU."""
    results = RESULTS / "guest-threads"
    return Job("guest-threads", python("run.py", "guest", "stock", "--quick", "--name", "threads",
                                       "--append", " ".join(coverage.APART), "--results", results, "--pattern", coverage.THREADS),
               weight=9, guest=True)


def check_jobs():
    """Return the jobs of "make check", for every change."""
    return [
        *guest_jobs("stock", quick=True, named=True, weight=9),
        *guest_jobs("rt", quick=True, named=True, weight=8),
        Job("static", python("static/static.py", "--quick"), weight=7),
        tap("verify", *python("verify/verify.py", "--quick"), weight=6),
        tap("wheel", "make", "-s", "--no-print-directory", "-C", TESTS / "unit", f"OUT={host.BUILD}/unit", "check-quick",
            weight=5),
        tap("libhwt", *python("unit/libhwt.py", "--quick"), weight=4),
    ]


def ci_jobs():
    """Return the jobs for every submission: those of "make check", and the debug kernel."""
    return [*guest_jobs("debug", quick=True, named=True, weight=20), *check_jobs()]


def all_jobs():
    """Return all jobs that do not take hours."""
    jobs = []
    rows = [kernel for kernel in kernels.table() if kernel.tests in ("all", "named") and kernel.kind != "uml"]
    whole = [kernel for kernel in rows if kernel.tests == "all"]
    shards = max(1, guest_slots() // max(1, len(whole)))
    for kernel in rows:
        jobs += guest_jobs(kernel.name, quick=False, named=True,
                           shards=shards if kernel.tests == "all" else 1,
                           weight=60 if kernel.slow else 30 if kernel.tests == "all" else 5)
    return jobs + [
        shards_job(),
        threads_job(),
        Job("static", python("static/static.py"), weight=20),
        tap("verify", *python("verify/verify.py"), weight=25),
        tap("wheel", "make", "-s", "--no-print-directory", "-C", TESTS / "unit", f"OUT={host.BUILD}/unit", "check",
            weight=15),
        tap("libhwt", *python("unit/libhwt.py"), weight=4),
        tap("plants", *python("plants/plants.py"), weight=22),
        tap("convert", *python("convert/convert.py"), weight=9),
        tap("series-quick", *python("series/series.py", "--quick"), weight=14),
        tap("packages", *python("../commands/packages.py"), weight=12, guest=True),
        Job("year", python("vm/year.py"), weight=3, guest=True),
        tap("here", *python("vm/test_here.py"), weight=13, guest=True),
        tap("shell", *python("vm/test_shell.py"), weight=5, guest=True),
        tap("self-tests", *python("static/test_static.py"), weight=4),
        tap("harness", *python("vm/test_harness.py"), weight=4, guest=True),
    ]


def named_jobs():
    """Return the jobs that run only by their names."""
    return [tap("series", *python("series/series.py"), timeout=14400)]


IN_ALL = ("long tests, whole models, io_uring's commands (6.12), eight CPUs, contexts with threads, an isolated CPU, Python with a device, packages, a simulated year, "
          "planted faults and the tests of the harness are in make check-all; other kernels in make check-matrix")
TIERS = {
    "check": (check_jobs, "quick tests, on the distribution's 6.1 and its PREEMPT_RT kernel", f"the debug kernel, {IN_ALL}"),
    "ci": (ci_jobs, "quick tests, on the distribution's 6.1, its PREEMPT_RT kernel and the debug kernel", IN_ALL),
    "all": (all_jobs, "all tests, on the kernels that tests/vm/kernels/table selects",
            "all other kernels are in make check-matrix; make fuzz, soak and bench run for any length of time"),
}


# The set-up of a job that is run alone, if it is not that of the job's name.
NEEDS = {"wheel": "unit", "libhwt": "unit", "harness": "guest", "here": "packages", "plants": "all", "self-tests": "static",
         "series-quick": "series"}


# --- The scheduler -----------------------------------------------------------------------------

def guest_slots():
    """Return the number of guests to run in parallel, by the processors and the free memory."""
    with open("/proc/meminfo", encoding="ascii") as info:
        available = next(int(line.split()[1]) for line in info if line.startswith("MemAvailable:")) // 1024
    return max(1, min(max(2, host.JOBS // 2), available // GUEST_MEMORY))


class Runner:
    """Runs jobs in parallel, reports their progress, and counts their results."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.waiting = sorted(jobs, key=lambda job: -job.weight)
        self.running = []
        self.ended = []
        self.slots = {True: guest_slots(), False: max(1, host.JOBS // 2)}
        self.start = self.told = time.monotonic()

    def tell(self, text):
        seconds = int(time.monotonic() - self.start)
        print(f"{seconds // 60:3d}:{seconds % 60:02d}  {text}", flush=True)

    def begin(self):
        """Start the jobs for which there is a slot."""
        for job in list(self.waiting):
            if sum(other.guest == job.guest for other in self.running) < self.slots[job.guest]:
                self.waiting.remove(job)
                self.running.append(job)
                job.start()
                self.tell(f"{job.name} begins (log: {job.log})")

    def end(self, job):
        """Report the results of a job that has ended."""
        host.finished(job.child)
        self.running.remove(job)
        self.ended.append(job)
        lines = job.lines()
        failed = [line for line in lines if line.startswith("not ok ")]
        self.tell(f"{job.name}: {sum(line.startswith('ok ') for line in lines)} passed, {len(failed)} failed, "
                  f"{time.monotonic() - job.begin:.0f} s")
        if failed:
            for line in host.tail(job.log, 60):
                print("        | " + line)
            for line in failed[:40]:
                print("        " + line)
            sys.stdout.flush()

    def run(self):
        while self.waiting or self.running:
            self.begin()
            for job in list(self.running):
                if job.child.poll() is not None:
                    self.end(job)
            if time.monotonic() - self.told >= 15:
                self.told = time.monotonic()
                for job in self.running:
                    self.tell(f"  ... {job.name}: {host.last_line(job.log)[:80]}")
            time.sleep(0.2)

    def verdict(self, tier, interrupted=False):
        """Print the results of all jobs; return the exit code."""
        lines = [line for job in self.jobs for line in job.lines()]
        if interrupted:
            lines.append(f"not ok {tier or 'jobs'} # interrupted")
        passed, failed, skipped = ([line for line in lines if line.startswith(verdict)]
                                   for verdict in ("ok ", "not ok ", "skip "))
        print()
        if failed:
            print("Failures:")
            for line in failed:
                print("  " + line.removeprefix("not ok "))
            print()
        seconds = int(time.monotonic() - self.start)
        took = f"in {seconds // 60} min {seconds % 60} s"
        if tier:
            _, what, without = TIERS[tier]
            print(f"{'interrupted: ' if interrupted else ''}make {'check-all' if tier == 'all' else tier}: {what}; {took}.\n"
                  f"Left out: {without}.")
        else:
            print(f"Only {', '.join(job.name for job in self.jobs)}; {took}.")
        print(f"{len(passed)} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""), flush=True)
        return 0 if passed and not failed else 1


def run_jobs(tier, jobs, needs):
    """Set up, run the jobs, count. The last line is a verdict, even after an error."""
    begin = time.monotonic()
    RESULTS.mkdir(parents=True, exist_ok=True)
    runner = None
    try:
        for what in needs:
            setup.ensure(what)
        runner = Runner(jobs())
        runner.tell(f"set-up took {runner.start - begin:.0f} s")
        runner.start = begin
        runner.run()
        return runner.verdict(tier)
    except host.Failed as error:
        print(f"error: {error}\n0 passed, 1 failed", flush=True)
        return 1
    except host.Interrupted as error:
        host.end_children()
        if runner:
            runner.verdict(tier, interrupted=True)
        else:
            print("interrupted in the set-up\n0 passed, 1 failed", flush=True)
        return 128 + error.number


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+")
    parser.add_argument("--quick", action="store_true", help="guest: without the tests that take long")
    parser.add_argument("--named", action="store_true", help="guest: on a kernel whose tests are \"named\", only the tests that name it")
    parser.add_argument("--shard", default="", help="guest: I/N, the I-th of N parts")
    parser.add_argument("--coverage", action="store_true", help="guest: count the lines of hwt.ko that the tests reach")
    parser.add_argument("--name", default="", help="guest: name of its directory, and in verdicts")
    parser.add_argument("--pattern", default="*", help="guest: names of tests, divided by |; after !, all other tests")
    parser.add_argument("--append", default="", help="guest: words for the kernel's command line")
    parser.add_argument("--cpus", type=int, default=2, help="guest: number of processors")
    parser.add_argument("--nodes", type=int, default=1, help="guest: number of NUMA nodes")
    parser.add_argument("--results", help="guest: where to write them")
    args = parser.parse_args()
    what = args.what[0]
    if what == "guest":
        args.kernel = args.what[1]
        if not args.results:
            setup.ensure("guest")
        return run_guest(args)
    if what == "times":
        return print_times(int(args.what[1]) if len(args.what) > 1 else 30)
    if what == "list":
        print("\n".join(job.name for job in all_jobs()))
        return 0
    # Send errors to standard output, so that a file has all lines in order.
    os.dup2(1, 2)
    if what in TIERS:
        return run_jobs(what, TIERS[what][0], [what])
    jobs = {job.name: job for job in [*all_jobs(), *named_jobs()]}
    for name in args.what:
        if name not in jobs:
            raise host.Failed(f"no job '{name}': run.py list names them")
    return run_jobs("", lambda: [jobs[name] for name in args.what],
                    ["guest" if name.startswith("guest-") else NEEDS.get(name, name) for name in args.what])


if __name__ == "__main__":
    host.main(main)
