#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Boots a guest, follows it, ends it, and has its logs judged.

Test mode shows each test as it ends and writes the results file; demo mode
passes on what the demo prints. Exit code 0 only if all is well.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from judge import Judge
from tap import Results

NMI = re.compile(r"hwt-host: inject-nmi (\d+) (\d+)")
PAUSE = re.compile(r"hwt-host: pause (\d+)")
DEMO_END = re.compile(r"^hwt-demo: end (\d+)")
# Of each architecture: the emulator, its machine and processor, the console, the other serial line.
# Emulating pointer authentication as it is specified takes half of the time.
MACHINES = {
    "x86_64": ("qemu-system-x86_64", "pc", "max", "ttyS0", "ttyS1"),
    # As an AMD processor it would be one that its kernel does not trust with SMP.
    "i386": ("qemu-system-i386", "pc", "max,vendor=GenuineIntel", "ttyS0", "ttyS1"),
    "arm64": ("qemu-system-aarch64", "virt,gic-version=3", "max,pauth-impdef=on", "ttyAMA0", "ttyS0"),
}
# Seconds without output, until the guest's init has reported.
BOOT_SILENCE = 120


def kvm_works():
    """/dev/kvm may be there without hardware for it, and then a guest hangs."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        flags = re.search(r"^flags\s*:.*\b(vmx|svm)\b", info.read(), re.M)
    return bool(flags) and os.access("/dev/kvm", os.W_OK)


def emulator_version(emulator):
    said = subprocess.run([emulator, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.search(r"version (\d+)\.(\d+)", said).groups())


def escaped(path):
    """As the value of an option that others may follow."""
    return path.replace(",", ",,")


def second_line(arch, path):
    """That machine's own second line is not the kernel's to use."""
    if arch == "arm64":
        return ["-chardev", "file,id=tests,path=" + escaped(path), "-device", "pci-serial,chardev=tests"]
    return ["-serial", "file:" + path]


def boot_failed(log, why):
    """Did the kernel fail before it ran anything of ours? From its log, a bytes.

    It waits ten ticks for the timer interrupt, which an emulator that does not get the
    processor for so long cannot deliver. Seldom an emulated machine stands still, or runs
    an instruction as it was while the kernel patched it (QEMU 7.2 does, with 6.12).
    """
    if b"Run /init as init process" in log:
        return False
    return (b"IO-APIC + timer doesn't work" in log or b"int3: 0000 [#1]" in log or
            why.startswith("hang"))


def excerpt(lines, most=40):
    """The last lines that a failed test has printed, and of those before what says that something failed."""
    told = [line for line in lines[:-most] if "not ok " in line or "FAILED" in line]
    return told[-most:] + lines[-most:]


class Qemu:
    """The virtual machine."""

    def __init__(self, args):
        self.kvm = args.arch == "x86_64" and kvm_works()
        self.qmp = os.path.join(args.out, "qmp")
        # An absolute path may be too long for a socket's address.
        self.qmp = os.path.relpath(self.qmp)
        self.logs = {name: os.path.join(args.out, name + ".log") for name in ("kernel", "tests")}
        for path in [self.qmp, *self.logs.values()]:
            if os.path.exists(path):
                os.unlink(path)
        for path in self.logs.values():
            with open(path, "wb"):
                pass
        emulator, machine, processor, console, tests = MACHINES[args.arch]
        append = [
            f"console={console},115200", f"HWT_TTY={tests}", "ignore_loglevel", "printk.time=1", "printk.devkmsg=on",
            # Any oops ends the guest (with -no-reboot) at once.
            "oops=panic", "panic=-1",
            # An NMI that no test has asked for, too, and shows what all processors do.
            "unknown_nmi_panic", "panic_print=64",
            # Emulated, a guest takes the HPET: each read an exit.
            "tsc=reliable", "clocksource=tsc",
            # Caches keep their names, so that what hwt leaves behind is seen.
            "slab_nomerge", "mitigations=off", "net.ifnames=0",
            f"HWT_MODE={args.mode}", f"HWT_KERNEL={args.kernel}",
            f"HWT_QUICK={args.quick}", f"HWT_SLOW={int(args.slow == 'slow')}", f"HWT_TCG={int(not self.kvm)}",
            # May code change while another processor runs it? See emulator.sh.
            f"HWT_PATCHING={int(self.kvm or emulator_version(emulator) >= (8, 1))}",
        ] + args.append.split()
        command = [
            emulator, "-machine", machine, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-smp", "2", "-m", args.memory,
            "-accel", "kvm" if self.kvm else "tcg,thread=multi",
            "-cpu", "host" if self.kvm else processor,
            "-kernel", args.vmlinuz, "-initrd", args.initrd, "-append", " ".join(append),
            "-serial", "file:" + self.logs["kernel"], *second_line(args.arch, self.logs["tests"]),
            "-qmp", f"unix:{escaped(self.qmp)},server=on,wait=off",
        ]
        if args.disk:
            # What it writes there is for this time only.
            command += ["-drive", f"file={escaped(args.disk)},format=raw,if=virtio,snapshot=on"]
        with open(os.path.join(args.out, "qemu.log"), "wb") as log:
            log.write((" ".join(command) + "\n").encode())
            log.flush()
          
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def running(self):
        return self.process.poll() is None

    def end(self):
        if self.running():
            self.process.kill()
        self.process.wait()
        if os.path.exists(self.qmp):
            os.unlink(self.qmp)

    def command(self, steps):
        """Commands for the monitor, and seconds to wait after each; in the background."""
        threading.Thread(target=self._command, args=(steps,), daemon=True).start()

    def _command(self, steps):
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(10)
                sock.connect(self.qmp)
                lines = sock.makefile("rw", encoding="utf-8")
                lines.readline()        # the greeting
                for command, seconds in [("qmp_capabilities", 0)] + steps:
                    lines.write(json.dumps({"execute": command}) + "\n")
                    lines.flush()
                    while "return" not in (answer := json.loads(lines.readline())):
                        if "error" in answer:
                            raise OSError(answer["error"])
                    time.sleep(seconds)
        except (OSError, ValueError) as error:
            if self.running():
                print(f"[hwt] {steps[0][0]} was not done: {error}", flush=True)

    def inject_nmis(self, count, interval_ms):
        """The guest notices if they do not come."""
        self.command([("inject-nmi", interval_ms / 1000)] * count)

    def pause(self, seconds):
        """All of the guest stands still."""
        self.command([("stop", seconds), ("cont", 0)])


class Tail:
    """Whole lines of a growing file."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.rest = b""

    def lines(self, last=False):
        data = self.rest + self.file.read()
        *whole, self.rest = data.split(b"\n")
        if last and self.rest:
            whole.append(self.rest)
            self.rest = b""
        return [line.decode(errors="replace") for line in whole]


class Guest:
    """A run: the machine, its two logs, the watchdogs."""

    def __init__(self, args):
        self.args = args
        self.qemu = Qemu(args)
        self.kernel = Tail(self.qemu.logs["kernel"])
        self.tests = Tail(self.qemu.logs["tests"])
        self.results = Results()
        self.judge = Judge(args.kernel, self.results)
        self.demo_code = None
        self.start = self.heard = self.test_start = time.monotonic()

    def poll(self, last=False):
        """Takes what has come since; true if anything has."""
        kernel, tests = self.kernel.lines(last), self.tests.lines(last)
        if not self.judge.booted:
            self.test_start = time.monotonic()
        for line in kernel:
            self.judge.feed_kernel(line)
            nmi = NMI.search(line)
            if nmi:
                self.qemu.inject_nmis(int(nmi.group(1)), int(nmi.group(2)))
            pause = PAUSE.search(line)
            if pause:
                self.qemu.pause(int(pause.group(1)))
        for line in tests:
            self.judge.feed_output(line)
            if self.args.mode == "demo":
                self.show_demo(line.rstrip("\r"))
        for test in self.judge.finished_tests():
            self.show_test(test)
        return bool(kernel or tests)

    def show_demo(self, line):
        end = DEMO_END.match(line)
        if end:
            self.demo_code = int(end.group(1))
        elif not line.startswith(("hwt-guest:", "hwt-demo:")) and self.demo_code is None:
            print(line, flush=True)

    def show_test(self, test):
        now = time.monotonic()
        verdict = "FAIL" if test.failed else "ok"
        print(f"{verdict:>6}  {self.args.kernel}/{test.name}  ({now - self.test_start:.1f} s)", flush=True)
        self.test_start = now
        if test.failed:
            for line in excerpt(test.output) + excerpt(test.log):
                print("        | " + line)
            sys.stdout.flush()

    def over(self):
        return self.judge.ended.keys() >= {"kernel", "output"}

    def follow(self):
        """Until its end; returns what cut it short, or None."""
        while not self.over():
            alive = self.qemu.running()
            now = time.monotonic()
            if self.poll():
                self.heard = now
            if not alive and not self.over():
                self.poll(last=True)
                return "the guest ended by itself: panic, or QEMU failed"
            silence = self.args.silence if self.judge.booted else min(self.args.silence, BOOT_SILENCE)
            if now - self.heard > silence:
                self.ask_why()
                return f"hang: nothing from the guest for {silence} s"
            if now - self.start > self.args.limit:
                return f"not finished after {self.args.limit} s"
            time.sleep(0.1)
        return None

    def ask_why(self):
        """Of a guest that hangs: where it does, into its log."""
        self.qemu.inject_nmis(1, 0)
        end = time.monotonic() + 20
        while self.qemu.running() and time.monotonic() < end:
            time.sleep(0.1)

    def run(self):
        if self.args.mode == "test":
            print(f"[hwt] guest {self.args.kernel}: booting ({'KVM' if self.qemu.kvm else 'emulated'}), "
                  f"{self.args.planned} tests", flush=True)
        try:
            why = self.follow()
        finally:
            self.qemu.end()
        self.poll(last=True)
        if why and self.boot_failed(why) and self.args.boots > 1:
            print(f"[hwt] the emulated machine did not come up ({why}): booting again", flush=True)
            self.args.boots -= 1
            return Guest(self.args).run()
        if self.args.mode == "demo" and self.demo_code != 0:
            self.results.failed("demo", f"exit code {self.demo_code}")
        self.judge.finish(self.args.planned, why)
        if why:
            for path in self.qemu.logs.values():
                self.show_end(path)
        if self.args.results:
            self.results.write(self.args.results)
        return self.verdict()

    def boot_failed(self, why):
        if self.judge.booted:
            return False
        with open(self.qemu.logs["kernel"], "rb") as log:
            return boot_failed(log.read(), why)

    def show_end(self, path):
        print(f"[hwt] the end of {path}:")
        with open(path, "rb") as log:
            for line in log.read().decode(errors="replace").splitlines()[-60:]:
                print("        | " + line)

    def verdict(self):
        failures = self.results.failures()
        if self.args.mode == "test" or failures:
            count = {v: sum(line.startswith(v + " ") for line in self.results.lines) for v in ("ok", "skip")}
            print(f"[hwt] guest {self.args.kernel}: {count['ok']} passed, {len(failures)} failed, "
                  f"{count['skip']} skipped, {time.monotonic() - self.start:.0f} s")
        for line in failures:
            print("        " + line)
        sys.stdout.flush()
        return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", required=True, help="its name in the table")
    parser.add_argument("--arch", choices=sorted(MACHINES), default="x86_64")
    parser.add_argument("--vmlinuz", required=True)
    parser.add_argument("--initrd", required=True)
    parser.add_argument("--out", required=True, help="directory of the logs")
    parser.add_argument("--mode", choices=("test", "demo"), default="test")
    parser.add_argument("--planned", type=int, default=0, help="number of tests in the list")
    parser.add_argument("--results", help="file to write verdicts to")
    parser.add_argument("--quick", type=int, default=0)
    parser.add_argument("--slow", default="", help="slow: one of the table's that are")
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--disk", default="", help="a file system, for tests with the directive")
    parser.add_argument("--append", default="", help="more for the kernel's command line")
    parser.add_argument("--silence", type=int, default=240, help="seconds without output that are a hang")
    parser.add_argument("--boots", type=int, default=3, help="attempts, if the kernel fails before it runs anything of ours")
    parser.add_argument("--limit", type=int, default=3600, help="seconds for all of it")
    return Guest(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
