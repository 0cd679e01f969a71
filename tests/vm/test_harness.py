#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the harness: it reports failures, and an interrupted run leaves no process. Prints TAP.

First the judge on made-up logs, then the runner, then guests with faults.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import build
import guest
import host
import kernels
import pack
import setup
from judge import Judge
from listing import Test
from tap import Results, Tap

OUT = host.BUILD / "guest" / "harness"
RUN = host.TOP / "tests/run.py"

# --- the judge on made-up logs: (name, kind, exit code, output, kernel log, counts, text) ---
# Counts: the numbers of ok, failed, skipped. Text: part of a failure.

WARN = ["------------[ cut here ]------------", "leak by cb_one", "WARNING: CPU: 1 PID: 7 at x.c:1 f+0x1/0x2 [hwt]",
        "Modules linked in: hwt", "Call Trace:", " cb_two+0x1/0x2", "---[ end trace 0000000000000000 ]---"]
LOCKDEP = ["=====================================", "WARNING: possible circular locking dependency detected",
           "cb_one is here", "stack backtrace:", "Call Trace:", " f+0x1/0x2"]
KCSAN = ["=" * 66, "BUG: KCSAN: data-race in hwt_a [hwt] / hwt_b [hwt]", "", "write to 0xffff of 8 bytes by task 7 on cpu 0:",
         " hwt_a+0x1/0x2 [hwt]", "Reported by Kernel Concurrency Sanitizer on:", "=" * 66]


def race(*functions):
    """Return KCSAN's report of a race between functions."""
    lines = ["=" * 66, "BUG: KCSAN: data-race in _find_next_bit+0x3d/0xb0", ""]
    for function in functions:
        lines += ["race at unknown origin, with read to 0xffff of 8 bytes by task 7 on cpu 0:",
                  " _find_next_bit+0x3d/0xb0", f" {function}+0x1/0x2", " schedule+0x1/0x2", " hwt_a+0x1/0x2 [hwt]", ""]
    return [*lines, "value changed: 0x2 -> 0x0", "", "Reported by Kernel Concurrency Sanitizer on:", "=" * 66]


PASSED = "test_x: all 2 tests passed"

CASES = (
    ("script passes", "script", 0, [], [], (2, 0, 0), ""),
    ("script fails", "script", 1, ["# no"], [], (0, 1, 0), "exit code 1"),
    ("script skips", "script", 4, ["# not here"], [], (1, 0, 1), ""),
    ("script is killed", "script", 143, [], [], (0, 1, 0), "time limit"),
    ("points count", "program", 0, ["1..2", "ok 1 - a", "ok 2 # SKIP b"], [], (2, 0, 1), ""),
    ("a point fails", "program", 1, ["1..2", "ok 1 a", "not ok 2 b"], [], (1, 2, 0), "b"),
    ("exit code alone", "program", 1, ["1..1", "ok 1 a"], [], (1, 1, 0), "exit code 1"),
    ("a point is missing", "program", 0, ["1..2", "ok 1 a"], [], (1, 1, 0), "planned 2"),
    ("a number is missing", "program", 0, ["1..2", "ok 1 a", "ok 3 c"], [], (2, 1, 0), "not 1, 2, 3"),
    ("no plan", "program", 0, ["ok 1 a"], [], (1, 1, 0), "no plan"),
    ("module passes", "module", 0, [], [PASSED], (2, 0, 0), ""),
    ("module counts", "module", 0, [], ["test_x: ok 1 - a", "test_x: ok 2 - b", PASSED], (3, 0, 0), ""),
    ("module skips", "module", 0, [], ["test_x: ok 1 - # SKIP a", "test_x: skipped 1 tests",
                                       "test_x: remaining 0 tests passed"], (1, 0, 1), ""),
    ("module fails", "module", 1, [], ["test_x: not ok 1 - a", "test_x: failed 1 out of 1 tests"],
     (0, 3, 0), "failed 1 out of 1"),
    ("module has no summary", "module", 0, [], ["test_x: ok 1 - a"], (1, 1, 0), "no summary"),
    ("module's point is lost", "module", 0, [], ["test_x: ok 2 - b", PASSED], (1, 1, 0), "not 1, 2, 3"),
    ("module is not loaded", "module", 1, [], [], (0, 2, 0), "insmod failed"),
    ("problem from init", "script", 0, ["hwt-test: problem caches left"], [], (1, 1, 0), "caches left"),
    ("warning", "script", 0, [], WARN, (1, 1, 0), "kernel log: WARNING: CPU: 1"),
    ("lockdep", "script", 0, [], LOCKDEP, (1, 1, 0), "possible circular"),
    ("sanitizers", "script", 0, [], ["BUG: KASAN: use-after-free in f+0x1/0x2", "Call Trace:"], (1, 1, 0), "KASAN"),
    ("race", "script", 0, [], KCSAN, (1, 1, 0), "data-race in hwt_a"),
    ("race ends", "script", 0, [], ["hwt-expect-begin: later", *KCSAN, "later", "hwt-expect-end"],
     (1, 1, 0), "data-race in hwt_a"),
    ("scheduler's race", "script", 0, [], race("pull_rt_task"), (2, 0, 0), ""),
    ("not the scheduler's race", "script", 0, [], race("hwt_a"), (1, 1, 0), "data-race in _find_next_bit"),
    ("not the scheduler's alone", "script", 0, [], race("pull_rt_task", "hwt_a"), (1, 1, 0), "data-race in"),
    ("undefined", "script", 0, [], ["UBSAN: shift-out-of-bounds in x.c:1:2", "Call Trace:"], (1, 1, 0), "UBSAN"),
    ("rcu", "script", 0, [], ["WARNING: suspicious RCU usage"], (1, 1, 0), "suspicious RCU"),
    ("sleep", "script", 0, [], ["BUG: sleeping function called from invalid context at x.c:1"], (1, 1, 0), "sleeping"),
    ("hung task", "script", 0, [], ["INFO: task hwt/0:77 blocked for more than 30 seconds."], (1, 1, 0), "blocked"),
    ("stall", "script", 0, [], ["rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"], (1, 1, 0), "stalls"),
    ("lockup", "script", 0, [], ["watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [a:1]"], (1, 1, 0), "soft lockup"),
    ("objects", "script", 0, [], ["ODEBUG: free active (active state 0) object type: work_struct"], (1, 1, 0), "ODEBUG"),
    ("slab", "script", 0, [], ["kmem_cache_destroy hwt: Slab cache still has objects when called from f"],
     (1, 1, 0), "Slab cache"),
    ("leak", "script", 0, [], ["kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)"],
     (1, 1, 0), "kmemleak"),
    ("bare stack dump", "script", 0, [], ["CPU: 0 PID: 1 Comm: sh", "Call Trace:"], (1, 1, 0), "stack dump"),
    ("wanted warning", "script", 0, [], ["hwt-expect-begin: cb_one", *WARN, "hwt-expect-end"], (2, 0, 0), ""),
    ("wanted lockdep", "script", 0, [], ["hwt-expect-begin: cb_one", *LOCKDEP, "hwt-expect-end"], (2, 0, 0), ""),
    ("wanted line, no report", "script", 0, [], ["hwt-expect-begin: abc", "an abc", "hwt-expect-end"], (2, 0, 0), ""),
    ("a stack is no head", "script", 0, [], ["hwt-expect-begin: cb_two", *WARN, "hwt-expect-end"],
     (1, 1, 0), "kernel log"),
    ("another besides", "script", 0, [], ["hwt-expect-begin: cb_one", *WARN, "BUG: other", "hwt-expect-end"],
     (1, 1, 0), "BUG: other"),
    ("wanted, did not come", "script", 0, [], ["hwt-expect-begin: cb_one", "hwt-expect-end"], (1, 1, 0), "not in the log"),
    ("wanted, no end", "script", 0, [], ["hwt-expect-begin: cb_one", *WARN], (1, 1, 0), "no hwt-expect-end"),
    ("after the end", "script", 0, [], ["hwt-expect-begin: cb_one", *WARN, "hwt-expect-end", *WARN],
     (1, 1, 0), "kernel log"),
)


def judged(case, feed=None):
    """Return the results of a guest with one test, whose logs are those of a case."""
    _, kind, code, output, log, _, _ = case
    results = Results()
    judge = Judge("k", results)
    name = "test_x" if kind == "module" else "x"
    frame = (["hwt-guest: boot 6.1", f"hwt-test: begin {name} {kind}"],
             [f"hwt-test: end {name} {code}", "hwt-guest: end 1"])
    both = [(judge.feed_output, frame[0] + output + frame[1]),
            (judge.feed_kernel, [f"[    1.000001] {line}\r\n" for line in frame[0] + log + frame[1]])]
    if feed:
        both = [(take, feed(lines)) for take, lines in both]
    for take, lines in both:
        for line in lines:
            take(line)
    list(judge.finished_tests())
    judge.finish(1, None)
    return results


def numbers(results):
    return tuple(sum(line.startswith(verdict) for line in results.lines)
                 for verdict in ("ok ", "not ok ", "skip "))


def check_judge(report):
    for case in CASES:
        name, counts, text = case[0], case[5], case[6]
        results = judged(case)
        got = numbers(results)
        said = not text or any(text in line for line in results.failures())
        report.check(f"judge: {name}", got == counts and said,
                     f"(ok, failed, skipped) is {got}, expected {counts}, and a failure with '{text}': {results.lines}")

    for name, feed in (("no end of the guest", lambda lines: lines[:-1]),
                       ("no end of the test", lambda lines: lines[:-2]),
                       ("no test at all", lambda lines: lines[:1]),
                       ("silence", lambda lines: [])):
        report.check(f"judge: {name} is a failure", judged(CASES[0], feed).failures(), "passed")

    tap = Tap()
    for line in ("TAP version 13", "1..1", "Bail out! no"):
        tap.feed(line)
    results = Results()
    tap.report("x", results)
    report.check("tap: a bail-out is a failure", len(results.failures()) == 2, str(results.lines))


def check_boot(report):
    """Only a machine that fails before it runs init is booted again."""
    init = b"Run /init as init process\n"
    for name, log, why, again in (("a hang before init", b"Loading\n", "hang: nothing", True),
                                  ("the timer check", b"IO-APIC + timer doesn't work\n", "the guest ended", True),
                                  ("a stale int3", b"Oops: int3: 0000 [#1] SMP\n", "the guest ended", True),
                                  ("a wrong clock", b"Loading\n", guest.WRONG_CLOCK, True),
                                  ("an int3 in init", init + b"Oops: int3: 0000 [#1]\n", "the guest ended", False),
                                  ("a hang in init", b"Loading\n" + init, "hang: nothing", False),
                                  ("a panic", b"Kernel panic - not syncing\n", "the guest ended", False),
                                  ("a panic in init", init + b"Kernel panic\n", "the guest ended", False)):
        report.check(f"boot: {name}", guest.boot_failed(log, why) == again, f"booted again: {not again}")


def check_excerpt(report):
    """The lines that tell of a failure are shown, even if much was printed after them."""
    lines = ["ok 1 - a", "x: not ok 2 - b", "# FAILED: c"] + [f"ok {n}" for n in range(3, 100)]
    shown = guest.excerpt(lines)
    good = shown[:2] == lines[1:3] and shown[2:] == lines[-40:] and guest.excerpt(lines[:3]) == lines[:3]
    report.check("excerpt: the failure is shown", good, str(shown))


def check_together(report):
    """Tests that share a load have overlapping parts of the kernel log."""
    results = Results()
    judge = Judge("k", results)
    for line in ("hwt-guest: boot 6.1", "hwt-test: begin test_x module", "hwt-test: begin test_y module",
                 "test_y: ok 1 - y", "test_x: ok 1 - x", *WARN, "test_x: all 1 tests passed", "hwt-test: end test_x 0 1.0",
                 "BUG: later", "test_y: all 1 tests passed", "hwt-test: end test_y 0 2.0", "hwt-guest: end 2"):
        judge.feed_kernel("[    1.000001] " + line)
    for line in ("hwt-guest: boot 6.1", "hwt-test: begin test_y module", "hwt-test: end test_y 0 2.0",
                 "hwt-test: begin test_x module", "hwt-test: problem test_x.ko does not unload", "hwt-test: end test_x 0 1.0",
                 "hwt-guest: end 2"):
        judge.feed_output(line)
    list(judge.finished_tests())
    judge.finish(2, None)
    want = ["not ok k/test_x # test_x.ko does not unload", "not ok k/test_x # kernel log: WARNING: CPU: 1 PID: 7 at x.c:1 f+0x1/0x2 "
            "[hwt] (beside test_y)", "not ok k/test_y # kernel log: BUG: later"]
    good = numbers(results) == (2, 3, 0) and sorted(results.failures()) == sorted(want)
    report.check("judge: two tests at once", good, str(results.lines))


def check_tap_runner(report):
    """tap.py reports commands that fail."""
    for name, command, limit in (("exit code", "echo ok 1; echo 1..1; exit 3", 10),
                                 ("nothing reported", "true", 10),
                                 ("killed", "echo 1..1; echo ok 1; kill -9 $$", 10),
                                 ("no end", "echo 1..1; echo ok 1; sleep 60", 1)):
        with tempfile.TemporaryDirectory() as scratch:
            code = host.run([sys.executable, host.TOP / "tests/vm/tap.py", "--name", "x", "--timeout", limit,
                             "--results", os.path.join(scratch, "r"), "--", "sh", "-c", command], stdout=subprocess.DEVNULL)
        report.check(f"tap: {name} is a failure", code, "passed")


# --- the runner, with jobs that replace those of a tier ---

# A job has a child in a process group of its own, as the emulator is, and so has that child.
TIER = """
import sys
sys.path[:0] = [{tests!r}, {vm!r}]
import host, pathlib, run
run.RESULTS = pathlib.Path({scratch!r})
nest = "import sys; sys.path.insert(0, {vm!r}); import host; host.main(lambda: host.run({deep!r}))"
jobs = [run.Job("nested", [sys.executable, "-c", nest]),
        run.tap("points", "sh", "-c", "echo ok 1 - a; echo not ok 2 - b; echo ok 3 - c '# SKIP d'; echo 1..3", guest=True),
        run.Job("dies", ["sh", "-c", "exit 3"], guest=True)]
run.TIERS["check"] = (lambda: jobs[{first}:], "this", "that")
host.main(lambda: run.run_jobs("check", run.TIERS["check"][0], []))
"""
AT_ONCE = """
import os, signal, subprocess, sys
sys.path.insert(0, {vm!r})
import host
class Popen(subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        os.kill(os.getpid(), signal.SIGTERM)
subprocess.Popen = Popen
host.main(lambda: host.run({deep!r}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
"""
MARK = "1001.77"


def processes(text):
    """Return the processes whose command line contains a text."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if text.encode() in file.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def wait_for(seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def check_runner(report):
    """Check the summary of a tier, and that no process is left after an interruption."""
    with tempfile.TemporaryDirectory() as scratch:
        def tier(first):
            words = {"tests": str(host.TOP / "tests"), "vm": str(host.TOP / "tests/vm"), "scratch": scratch,
                     # Ignores SIGTERM and SIGINT.
                     "deep": ["sh", "-c", f"trap : TERM INT; while :; do sleep {MARK}; done"], "first": first}
            return TIER.format(**words)

        done = subprocess.run([sys.executable, "-c", tier(1)], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        good = done.returncode == 1 and lines[-2:] == ["Left out: that.", "1 passed, 2 failed, 1 skipped"] \
            and "  dies # died without reporting (exit code 3)" in lines
        report.check("runner: prints the counts, and what it leaves out", good, f"{done.returncode}: {lines[-8:]}")

        makefile = os.path.join(scratch, "Makefile")
        script = os.path.join(scratch, "tier.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(tier(0))
        with open(makefile, "w", encoding="utf-8") as file:
            file.write(f"check:\n\t@{sys.executable} {script}\n")
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # A shell starts background jobs like this, and so would the scripts be.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, command, number in (("SIGTERM to make", ["make", "-f", makefile], signal.SIGTERM),
                                      ("SIGTERM to the script", [sys.executable, script], signal.SIGTERM),
                                      ("SIGINT to the script", [sys.executable, script], signal.SIGINT)):
            check_interrupted(report, f"runner: {name}", command, number, MARK)

        # The signal arrives when the child exists, and Popen() has not returned.
        code = AT_ONCE.format(vm=str(host.TOP / "tests/vm"), deep=["sleep", MARK])
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        gone = wait_for(2, lambda: not processes(MARK))
        for pid in processes(MARK):
            os.kill(pid, signal.SIGKILL)
        report.check("runner: SIGTERM during the start of a child does not lose it", gone and done.returncode == 143,
                     f"gone: {gone}, exit code {done.returncode}, said: {done.stderr.splitlines()[-3:]}")


def check_interrupted(report, name, command, number, text, verdict=True):
    """Check that a signal to @command ends the processes with @text, and prints a verdict."""
    with tempfile.TemporaryFile("w+") as output:
        child = host.start(command, stdout=output, stderr=output)
        begun = wait_for(600, lambda: processes(text) or child.poll() is not None) and child.poll() is None
        child.send_signal(number)
        begin = time.monotonic()
        gone = wait_for(10, lambda: child.poll() is not None and not processes(text))
        seconds = time.monotonic() - begin
        left = processes(text)
        host.finished(child)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        output.seek(0)
        lines = output.read().splitlines() or [""]
    # make may print a line after the verdict.
    told = not verdict or any(re.match(r"\d+ passed, [1-9]\d* failed", line) for line in lines[-2:])
    report.check(f"{name} ends all processes", begun and gone and told and child.returncode,
                 f"begun: {begun}, gone: {gone} after {seconds:.1f} s, left: {left}, "
                 f"exit code {child.returncode}, said: {lines[-3:]}")


# --- guests ---

SCRIPT = "#!/bin/sh\n. /hwt/lib.sh\n"
PROVOKE = "load kt_provoke what={} && unload kt_provoke\n"
SCRIPTS = {
    "good": "exit 0\n",
    "broken": "exit 1\n",
    "stuck": "sleep 100\n",
    "warn": PROVOKE.format("warn"),
    "expected": PROVOKE.format("expected"),
    "unexpected": PROVOKE.format("unexpected"),
    "leftover": "load kt_provoke what=expected\n",
    "oops": PROVOKE.format("oops"),
}

# Name, tests, a replacement of init, texts that failures must have, tests that must pass.
GUESTS = (
    ("mixed", ("good", "broken", "stuck", "warn", "expected", "unexpected", "leftover"), None,
     ("/broken # exit code 1", "/stuck # killed after its time limit", "/warn # kernel log: WARNING",
      "/unexpected # kernel log: WARNING", "/leftover # left loaded: kt_provoke"), ("good", "expected")),
    ("oops", ("good", "oops"), None,
     ("/oops # kernel log: BUG: kernel NULL pointer", "ended by itself", "did not report its end"), ("good",)),
    ("silent", ("good",), "#!/bin/busybox sh\nexec /bin/busybox sleep 1000\n",
     ("hang: nothing from the guest", "init never reported", "Kernel panic - not syncing: NMI"), ()),
    ("dead", ("good",), "#!/bin/busybox sh\nexit 1\n",
     ("Kernel panic", "ended by itself", "init never reported"), ()),
)


class Broken:
    """A guest of GUESTS."""

    def __init__(self, row, kernel, tree):
        self.name, self.tests, init, self.texts, self.passes = row
        out = OUT / self.name
        overlay = out / "overlay"
        scripts = overlay / "hwt/scripts"
        scripts.mkdir(parents=True, exist_ok=True)
        for test in self.tests:
            (scripts / f"{test}.sh").write_text(SCRIPT + SCRIPTS[test], encoding="ascii")
        if init:
            (overlay / "init").write_text(init, encoding="ascii")
            (overlay / "init").chmod(0o755)
        tests = [Test(test, "script", 3 if test == "stuck" else 30, f"{test}.sh", noload=True) for test in self.tests]
        pack.initramfs(kernel, tests, out / "initramfs.gz", tree, overlay=overlay)
        self.options = guest.Options(kernel=kernel, initrd=out / "initramfs.gz", out=out, planned=len(tests), label=self.name,
                                     memory="512M", silence=30, limit=300)
        self.lines, self.good = [], True

    def run(self):
        machine = guest.Guest(self.options)
        self.good = machine.run()
        self.lines = machine.results.lines

    def verdict(self, report):
        failures = [line for line in self.lines if line.startswith("not ok ")]
        missing = [text for text in self.texts if not any(text in line for line in failures)]
        missing += [test for test in self.passes if f"ok {self.name}/{test}" not in self.lines]
        report.check(f"guest {self.name}: reported as failed, for the right reasons", not self.good and not missing,
                     f"reported as passed: {self.good}, missing: {missing}, failures: {failures}")


def check_guests(report):
    """Run the guests in parallel, because they mostly wait."""
    kernel = kernels.find("stock").get()
    tree = build.modules(kernel, words=build.CHECKED)
    guests = [Broken(row, kernel, tree) for row in GUESTS]
    setup.together(*(broken.run for broken in guests))
    for broken in guests:
        broken.verdict(report)


def check_interrupted_guest(report):
    """A guest ends with the program that booted it."""
    name = "harness-interrupted"
    command = [sys.executable, RUN, "guest", "stock", "--name", name, "--pattern", "test_basics"]
    check_interrupted(report, "guest: SIGTERM", command, signal.SIGTERM, f"file:{host.BUILD}/guest/{name}/kernel.log", False)


def main():
    report = Results()
    for check in (check_judge, check_together, check_boot, check_excerpt, check_tap_runner, check_runner, check_guests,
                  check_interrupted_guest):
        check(report)
    return report.print_tap()


if __name__ == "__main__":
    host.main(main)
