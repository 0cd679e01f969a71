# SPDX-License-Identifier: GPL-2.0-only
"""Judges a run by a guest's two logs.

The guest writes its kernel log to one serial line and the tests' output to another, so that
neither splits lines of the other. Marker lines go to both:

    hwt-guest: boot RELEASE         init has begun
    hwt-test: begin NAME KIND       (KIND: program, script, module)
    hwt-test: problem TEXT          found by tests.sh, such as a module that does not load
    hwt-test: end NAME RC SECONDS
    hwt-guest: problem TEXT         the same, outside any test
    hwt-guest: idle IDLE UPTIME     idle seconds of all processors, and seconds since the boot
    hwt-guest: end COUNT            COUNT tests were run

Several tests may run at once in the kernel log; the output of each comes in one piece. A missing
marker is a failure.
"""

import re

from tap import Tap

STAMP = re.compile(r"^(?:<\d+>)?\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?")
MARK = r"^{}-(test|guest): (boot|begin|problem|idle|end) ?(.*)$"
EXPECT = re.compile(r"hwt-expect-(begin|end)(?::\s*(.*))?")
SUMMARY = re.compile(r"^(all|remaining) \d+ tests passed|^failed \d+ out of \d+ tests")

# The first line of a report of any of the kernel's checkers.
HEAD = re.compile("|".join((
    r"\bWARNING: ", r"\bBUG: ", r"\bBUG at ", r"\bBUG \S+ \(", r"\bOops\b", r"\bINFO: possible ",
    r"INFO: task .* blocked for more than", r"INFO: trying to register non-static key",
    r"INFO: rcu_", r"rcu: INFO: ", r"\bstall(s|ed)? (detected|on) ", r"kthread .* starved",
    r"(soft|hard) lockup", r"hard LOCKUP", r"workqueue lockup", r"hung_task", r"blocked for more than",
    r"possible (circular|irq|recursive)", r"inconsistent lock state", r"suspicious RCU",
    r"sleeping function called", r"scheduling while atomic", r"Invalid wait context",
    r"bad unlock balance", r"held lock freed", r"lock held when returning", r"still has locks held",
    r"DEBUG_LOCKS_WARN_ON", r"turning off the locking correctness validator",
    r"\bKASAN: ", r"\bUBSAN: ", r"\bKCSAN: ", r"kmemleak: \d+ new suspected", r"kmemleak: .*(disabled|Cannot)",
    r"\bODEBUG: ", r"refcount_t: ", r"list_(add|del) (corruption|double)",
    r"general protection fault", r"unable to handle", r"Unable to handle", r"paging request",
    r"double fault", r"stack guard page", r"stack-protector", r"corrupted stack end",
    r"Kernel panic", r"kernel tried to execute", r"Bad page (state|map)", r"page allocation failure",
    r"Out of memory", r"out of memory", r"invoked oom-killer", r"Slab cache still has objects",
    r"Objects remaining in", r"Uhhuh\. NMI", r"Do you have a strange power saving", r"nobody cared",
    r"Timekeeping watchdog", r"preempt_count .* leaked", r"returned with preemption imbalance",
    r"leaked (atomic|lock)", r"Loading of unsigned module is rejected", r"disagrees about version",
    r"trap invalid opcode", r"invalid opcode: ", r"divide error", r"bad: scheduling",
)))
CUT = "[ cut here ]"
# The line before and after some reports. KCSAN's have no "Call Trace:" to end at.
RULE = re.compile(r"^={60,}$")
TRACE = re.compile(r"Call Trace:")
END_TRACE = "---[ end trace"

# Lines that match HEAD and are no reports.
HARMLESS = re.compile(r"^((hwt|here)-(test|guest): |Command line: |Kernel command line: |Unknown kernel command line "
                      r"|.*FAULT_INJECTION: forcing a failure|gcov: could not add |kmemleak: Cannot allocate a scan area"
                      r"|Booting paravirtualized |.*WARNING: CPU: unsupported microcode)")

# The scheduler reads its masks of CPUs with real-time tasks without a lock, on purpose
# (kernel/sched/rt.c, cpupri.c). Strict KCSAN reports that, whichever task sleeps or wakes.
ACCESS = re.compile(r"\b(read|write) (\(.*\) )?to 0x")
SCHEDULER = re.compile(r"^ (pull_rt_task|cpupri_find_fitness)\+")
SEARCH = re.compile(r"^ _find_\w+\+")


class Report:
    """A report of the kernel: the lines of its head."""

    def __init__(self, tests, head):
        self.tests = tests      # the tests that were running
        self.title = None
        self.head = list(head)

    def name(self):
        return (self.title or self.head[-1] if self.head else "?").strip()

    def of_the_scheduler(self):
        """Return whether this is a race of the scheduler with itself: all accesses are its own."""
        if not self.title or "KCSAN: data-race" not in self.title:
            return False
        accesses = [i for i, line in enumerate(self.head) if ACCESS.search(line)]
        for i in accesses:
            frames = [line for line in self.head[i + 1:] if not SEARCH.match(line)]
            if not frames or not SCHEDULER.match(frames[0]):
                return False
        return bool(accesses)


class Test:
    """A test's lines of both logs."""

    def __init__(self, name, kind):
        self.name, self.kind = name, kind
        self.output = []        # the test's output
        self.log = []           # the kernel log during the test
        self.ends = {}          # stream -> exit code
        self.seconds = 0.0
        self.failed = False
        self.problems = []

    def complete(self):
        return {"output", "kernel"} <= set(self.ends)


class Judge:
    """Takes both logs line by line. Judges each test as it ends, and the rest in finish()."""

    def __init__(self, kernel, results, by="hwt"):
        self.kernel, self.results = kernel, results
        self.mark = re.compile(MARK.format(by))
        self.tests = {}
        self.order = []
        self.running = {"kernel": [], "output": []}
        self.idle = None        # idle seconds of all processors, seconds since the boot
        self.booted = False
        self.ended = {}         # stream -> number of tests run
        self.judged = set()
        self.reports = []
        self.scheduler = 0      # races of the scheduler with itself
        self.report = None      # the report whose head is being read
        self.recent = []        # the last lines, for a stack dump without a report
        self.expect = None      # {regex, matched, index of the first report, tests}

    # --- reading ---

    def feed_output(self, line):
        line = line.rstrip("\r\n")
        if not self.marker("output", line):
            for test in self.running["output"]:
                test.output.append(line)

    def feed_kernel(self, line):
        line = STAMP.sub("", line.rstrip("\r\n"))
        if self.marker("kernel", line):
            self.report = None
            return
        for test in self.running["kernel"]:
            test.log.append(line)
        expect = EXPECT.search(line)
        if expect:
            self.report = None
            self.bracket(expect.group(1), expect.group(2))
            return
        if self.expect and re.search(self.expect["regex"], line):
            self.expect["matched"] = True
        self.scan(line)

    def marker(self, stream, line):
        mark = self.mark.match(line)
        if not mark:
            return False
        what, event, rest = mark.groups()
        if what == "guest":
            self.guest_event(stream, event, rest)
        elif event == "begin":
            name, kind = rest.split()
            if name not in self.tests:
                self.tests[name] = Test(name, kind)
                self.order.append(name)
            self.running[stream].append(self.tests[name])
        elif event == "problem" and stream == "output":
            for test in self.running[stream]:
                test.problems.append(rest)
        elif event == "end":
            self.end(stream, *rest.split())
        return True

    def end(self, stream, name, code, seconds="0"):
        test = self.tests.get(name)
        if test not in self.running[stream]:
            return
        if stream == "kernel" and self.expect and self.expect["tests"] == [test]:
            self.close_expect()
        test.ends[stream] = int(code)
        test.seconds = float(seconds)
        self.running[stream].remove(test)

    def guest_event(self, stream, event, rest):
        if event == "boot":
            self.booted = True
        elif event == "problem" and stream == "output":
            self.results.failed(self.kernel, rest)
        elif event == "idle":
            self.idle = tuple(float(word) for word in rest.split())
        elif event == "end":
            self.ended[stream] = int(rest)

    # --- reports in the kernel log ---

    def scan(self, line):
        """Find the first lines of reports, and gather their heads."""
        self.recent = (self.recent + [line])[-6:]
        if HARMLESS.match(line):
            return
        if CUT in line:
            self.begin_report([line])
        elif HEAD.search(line):
            # "cut here" and the next line are one report.
            if self.report and self.report.title is None and CUT in self.report.head[0]:
                self.report.head.append(line)
                self.report.title = line
            else:
                self.begin_report([line])
                self.report.title = line
        elif TRACE.search(line):
            if not self.report:
                self.begin_report(self.recent)
                self.report.title = "stack dump: " + self.recent[0]
            self.report = None
        elif END_TRACE in line or RULE.match(line):
            self.report = None
        elif self.report:
            self.report.head.append(line)

    def begin_report(self, head):
        self.report = Report(list(self.running["kernel"]), head)
        self.reports.append(self.report)

    def count_reports(self, test, full):
        """Count each report as a failure of the test that was running, the first of several."""
        for report in self.reports:
            if report.tests[:1] != ([test] if test else []):
                continue
            if report.of_the_scheduler():
                self.scheduler += 1
            else:
                beside = f" (beside {', '.join(other.name for other in report.tests[1:])})" if report.tests[1:] else ""
                self.results.failed(full, f"kernel log: {report.name()}{beside}")

    # --- expected reports ---

    def bracket(self, edge, regex):
        tests = list(self.running["kernel"])
        if len(tests) > 1:
            self.problem(tests, "hwt-expect is not for tests that share a load")
        if edge == "end":
            if not self.expect:
                self.problem(tests, "hwt-expect-end without a begin")
            self.close_expect(properly=True)
            return
        if self.expect:
            self.close_expect()
        try:
            re.compile(regex or "")
        except re.error as error:
            self.problem(tests, f"hwt-expect-begin: {regex}: {error}")
            return
        if not regex:
            self.problem(tests, "hwt-expect-begin without a regex")
            return
        self.expect = {"regex": regex, "matched": False, "first": len(self.reports), "tests": tests}

    def close_expect(self, properly=False):
        if not self.expect:
            return
        regex, first, tests = (self.expect[k] for k in ("regex", "first", "tests"))
        if not properly:
            self.problem(tests, f"hwt-expect-begin: {regex}: no hwt-expect-end")
        elif not self.expect["matched"]:
            self.problem(tests, f"hwt-expect-begin: {regex}: not in the log")
        self.reports[first:] = [r for r in self.reports[first:]
                                if not any(re.search(regex, line) for line in r.head)]
        self.expect = None

    def problem(self, tests, text):
        if tests:
            tests[0].problems.append(text)
        else:
            self.results.failed(self.kernel, text)

    # --- verdicts ---

    def finished_tests(self):
        """Judge and yield the tests that have ended in both logs."""
        for name in self.order:
            test = self.tests[name]
            if name not in self.judged and test.complete():
                self.judge(test)
                yield test

    def judge(self, test):
        self.judged.add(test.name)
        full = f"{self.kernel}/{test.name}"
        code = test.ends.get("output", test.ends.get("kernel"))
        before = len(self.results.failures())
        if test.kind == "module":
            self.judge_module(test, full, code)
        else:
            self.judge_output(test, full, code)
        for text in test.problems:
            self.results.failed(full, text)
        self.count_reports(test, full)
        test.failed = len(self.results.failures()) > before

    def judge_output(self, test, full, code):
        tap = Tap()
        for line in test.output:
            tap.feed(line)
        if code == 4 and not tap.points:
            why = [line for line in test.output if line.strip()]
            self.results.skipped(full, why[-1].lstrip("# ") if why else "")
            return
        if tap.seen():
            tap.report(full, self.results)
        if code == 0:
            if not tap.seen():
                self.results.passed(full)
            elif not tap.points:
                self.results.failed(full, "a plan and no tests")
        elif code in (124, 137, 143):
            self.results.failed(full, f"killed after its time limit (exit code {code})")
        elif not (code == 4 and tap.points):
            self.results.failed(full, f"exit code {code}")

    def judge_module(self, test, full, code):
        tap, summary = Tap(), None
        prefix = test.name.split("#")[0] + ": "
        for line in test.log:
            if line.startswith(prefix):
                line = line[len(prefix):]
                if not tap.feed(line) and SUMMARY.match(line):
                    summary = line
        if tap.seen():
            tap.report(full, self.results, need_plan=False)
        if code in (124, 137, 143):
            self.results.failed(full, "insmod: killed after its time limit")
        elif code:
            self.results.failed(full, f"insmod failed with {code}")
        if summary is None:
            self.results.failed(full, "no summary (\"all N tests passed\") in the log")
        elif summary.startswith("failed"):
            self.results.failed(full, summary)
        elif not tap.points and not code:
            self.results.passed(full)

    def finish(self, planned, why):
        """Judge the rest at the end of both logs.

        @planned: the number of tests. @why: why the guest ended early, or None.
        """
        self.close_expect()
        for name in self.order:
            if name not in self.judged:
                test = self.tests[name]
                missing = "the guest ended during it" if not test.ends else "its end is missing in one log"
                test.problems.append(missing)
                self.judge(test) if test.ends else self.abort(test)
        self.count_reports(None, self.kernel)
        if why:
            self.results.failed(self.kernel, why)
        if not self.booted:
            self.results.failed(self.kernel, "the guest's init never reported")
        elif set(self.ended) != {"kernel", "output"}:
            self.results.failed(self.kernel, "the guest did not report its end")
        if len(self.order) != planned or any(n != planned for n in self.ended.values()):
            self.results.failed(self.kernel, f"{planned} tests planned, {len(self.order)} begun")
        if not self.results.failures():
            but = f" but {self.scheduler} races of the scheduler with itself" if self.scheduler else ""
            self.results.passed(f"{self.kernel}: booted, ended, nothing in the kernel log{but}")

    def abort(self, test):
        full = f"{self.kernel}/{test.name}"
        for text in test.problems:
            self.results.failed(full, text)
        self.count_reports(test, full)
