#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make check-here: the tests and the quick benchmark on the running kernel of this machine.

here.py [--yes] [--tap] [--targets "kernel user"] [PATTERN]: builds hwt.ko and its tests for the
running kernel, loads hwt.ko, runs the tests that do no harm to a machine in use (directive
"shared"), and unloads hwt.ko. The last line is "N passed, N failed"; --tap: TAP instead.
"""

import argparse
import os
import platform
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/vm"))
import build
import host
import listing
import pack
import setup
from judge import Judge
from tap import Results

TARGETS = ("kernel", "user")
# Prefix of the markers. test_here.py runs this in a guest, whose own markers begin with "hwt".
BY = "here"


class Running:
    """The running kernel, with the interface of kernels.Kernel."""
    name = kind = "here"
    tests = "all"
    slow = False
    make_words = ()
    arch = {"i686": "i386", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    release = platform.release()
    kdir = Path("/lib/modules") / release / "build"

    def get(self):
        return self


def content(path):
    """Return the text of a file, or "" if it cannot be read."""
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def hwt_users():
    """Return the use count and the users of hwt in /proc/modules, or None if hwt is not loaded."""
    for line in content("/proc/modules").splitlines():
        words = line.split()
        if words[0] == "hwt":
            return words[2], words[3].rstrip(",-")
    return None


def refuse():
    """Raise Failed, with a remedy, if this machine cannot run the tests."""
    kernel = Running()
    if os.geteuid() != 0:
        raise host.Failed("loading modules needs root: sudo make check-here")
    if not os.path.exists("/proc/modules"):
        raise host.Failed("the running kernel cannot load modules")
    if content("/proc/sys/kernel/modules_disabled") == "1":
        raise host.Failed("kernel.modules_disabled is set: no module can be loaded until the next boot")
    if content("/sys/module/module/parameters/sig_enforce") in ("Y", "1"):
        raise host.Failed("this kernel loads signed modules only (module.sig_enforce), and those built here are not signed; "
                          "docs/packages.md says how to sign")
    lockdown = content("/sys/kernel/security/lockdown")
    if lockdown and "[none]" not in lockdown:
        raise host.Failed(f"this kernel is locked down ({lockdown}): it loads signed modules only; docs/packages.md says how to sign")
    if not (kernel.kdir / "Makefile").exists():
        raise host.Failed(f"no headers of the running kernel in {kernel.kdir}: install linux-headers-{kernel.release}")
    users = hwt_users()
    if users:
        count, by = users
        why = f"in use ({count}{' by ' + by if by else ''})" if count != "0" else "loaded"
        raise host.Failed(f"hwt is {why}: stop its users and unload it first (rmmod hwt)")


def agreed(tests, yes):
    """Tell what the run is going to do, and ask."""
    ask(f"""This is going to
- build hwt.ko, samples, tests and a benchmark for the running kernel, {Running.release}, in {host.BUILD};
- load hwt.ko several times, run {len(tests)} tests that are meant to do no harm to a machine in use,
  and the quick benchmark, for some minutes in all. A fault in hwt would crash this machine: save your work;
- unload everything again.""", yes)


def ask(what, yes):
    """Print what is going to happen; raise Failed if the user does not agree."""
    print(what, flush=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise host.Failed("nobody to ask: set YES=1 to agree")
    if input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        raise host.Failed("nothing was done")


def install(root, tests, tree, programs):
    """Copy everything that tests.sh needs below @root, with busybox's commands in applets/."""
    shutil.rmtree(root, ignore_errors=True)
    for name in ("bin", "scripts", "modules", "applets"):
        (root / name).mkdir(parents=True)
    pack.contents(root, tests, tree, programs)
    host.run([shutil.which("busybox"), "--install", "-s", root / "applets"])


class KernelLog(threading.Thread):
    """Calls a function with each new line of the kernel log."""

    def __init__(self, take):
        super().__init__(daemon=True)
        self.take = take
        self.file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.file, 0, os.SEEK_END)
        self.stop = False
        self.start()

    def run(self):
        while not self.stop:
            if select.select([self.file], [], [], 0.2)[0]:
                self.read()

    def read(self):
        while True:
            try:
                record = os.read(self.file, 8192).decode(errors="replace")
            except BlockingIOError:
                return
            except BrokenPipeError:     # overrun: lost lines fail the run, if the judge needs them
                continue
            self.take(record.split("\n", 1)[0].partition(";")[2])

    def end(self):
        self.stop = True
        self.join()
        self.read()
        os.close(self.file)


def show_ended(judge, tap):
    """Print the tests that have ended."""
    for test in judge.finished_tests():
        if not tap:
            print(f"{'FAIL' if test.failed else 'ok':>6}  {test.name}  ({test.seconds:.1f} s)", flush=True)
        if test.failed:
            for line in test.output[-40:] + test.log[-20:]:
                print("# " + line, flush=True)


def perform(root, tests, judge, tap):
    """Run tests.sh in @root; return why it ended early, or None."""
    log = KernelLog(judge.feed_kernel)
    with tempfile.TemporaryDirectory(prefix="hwt-") as scratch:
        env = {"PATH": f"{root}/applets:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": scratch, "TMPDIR": scratch, "HWT_TMP": scratch,
               "HWT_DIR": str(root), "HWT_KERNEL": "here", "HWT_QUICK": "1", "HWT_SLOW": "0", "HWT_TCG": "0", "HWT_PATCHING": "1",
               "HWT_BY": BY}
        script = f'. "$HWT_DIR/tests.sh"; mark "{BY}-guest: boot $(uname -r)"; run_tests'
        child = host.start([root / "applets/sh", "-c", script], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors="replace")
        limit = 60 + sum(test.limit for test in tests)
        late = threading.Timer(limit, lambda: os.killpg(child.pid, 9))
        late.start()
        try:
            for line in child.stdout:
                judge.feed_output(line)
                show_ended(judge, tap)
            child.wait()
        finally:
            late.cancel()
            host.finished(child)
            time.sleep(0.3)
            log.end()
    show_ended(judge, tap)
    return f"tests.sh: exit code {child.returncode}" if child.returncode else None


def unload(tree):
    """Unload the modules that were built here. Return whether hwt is unloaded."""
    for _ in range(20):
        for line in content("/proc/modules").splitlines():
            name = line.split()[0]
            if name.startswith(("hwt", "kt_", "test_")) and list(tree.glob(f"**/{name}.ko")):
                subprocess.run(["rmmod", name], check=False, stderr=subprocess.DEVNULL)
        if not hwt_users():
            return True
        time.sleep(0.2)
    return False


def measure(tree, *params):
    """Load hwt.ko and hwt_bench.ko, which measures; return the exit code and the kernel log."""
    lines = []
    log = KernelLog(lines.append)
    try:
        code = host.run(["insmod", tree / "hwt.ko"]) or host.run(["insmod", tree / "bench/hwt_bench.ko", *params])
    finally:
        log.end()
    if not code:
        host.run(["rmmod", "hwt_bench"])
    return code, lines


def benchmark(tree):
    """Run and print the quick benchmark; return its exit code. Its figures are not judged."""
    code, lines = measure(tree, "quick=1")
    print("\n".join(line for line in lines if "hwt_bench" in line), flush=True)
    return code


def chosen(pattern, targets):
    """Return the tests that are safe on a real machine."""
    found = []
    for source in listing.sources():
        folder = source.path.parent.name
        if folder in targets and source.has("shared") and source.wanted(Running, True, False):
            found += [test for test in source.runs(Running, True) if listing.matches(test.name, pattern) and not test.disk]
    return sorted(found, key=lambda test: not test.shared)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="*", help="names of tests, divided by |")
    parser.add_argument("--yes", action="store_true", default=bool(os.environ.get("YES")), help="do not ask")
    parser.add_argument("--tap", action="store_true", help="print TAP")
    parser.add_argument("--no-bench", action="store_true", help="without the quick benchmark")
    parser.add_argument("--targets", default=" ".join(TARGETS), help="of: " + " ".join(TARGETS))
    args = parser.parse_args()
    targets = args.targets.split()
    for target in targets:
        if target not in TARGETS:
            raise host.Failed(f"no target '{target}': there are {', '.join(TARGETS)}")
    results, judge, begin = Results(), None, time.monotonic()
    if args.tap:
        # Only TAP on standard output.
        tap_output = os.dup(1)
        os.dup2(2, 1)
    try:
        refuse()
        tests = chosen(args.pattern, targets)
        if not tests:
            raise host.Failed(f"no test matches '{args.pattern}'")
        agreed(tests, args.yes)
        setup.ensure("here")
        kernel, root = Running(), host.BUILD / "here"
        tree = build.modules(kernel)
        install(root, tests, tree, build.programs(kernel))
        try:
            judge = Judge("here", results, BY)
            why = perform(root, tests, judge, args.tap)
            judge.finish(len(tests), why)
            if not args.no_bench:
                results.check("here: the quick benchmark", not benchmark(tree), "it failed")
        finally:
            if not unload(tree):
                results.failed("here", "hwt.ko does not unload")
            shutil.rmtree(root, ignore_errors=True)
    except (host.Failed, host.Interrupted) as error:
        results.failed("here", str(error) if isinstance(error, host.Failed) else "interrupted")
        host.end_children()
    sys.stdout.flush()
    if args.tap:
        os.dup2(tap_output, 1)
        results.print_tap()
    count = {verdict: sum(line.startswith(verdict + " ") for line in results.lines) for verdict in ("ok", "not ok", "skip")}
    if not args.tap:
        for line in results.failures():
            print("  " + line)
        print(f"make check-here: tests that do no harm to a machine in use, on {Running.release}; {time.monotonic() - begin:.0f} s.\n"
              "Left out: all tests that need a machine of their own (make check).")
        print(f"{count['ok']} passed, {count['not ok']} failed" + (f", {count['skip']} skipped" if count["skip"] else ""))
    return 0 if count["ok"] and not count["not ok"] else 1


if __name__ == "__main__":
    host.main(main)
