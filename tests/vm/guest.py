# SPDX-License-Identifier: GPL-2.0-only
"""Boots a guest, follows its logs, ends it, and has the logs judged.

Prints each test as it ends, and writes a file of results.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import emulator
import host
from judge import STAMP, Judge
from tap import Results

# The kernel has measured the processor's clock by another that stood still meanwhile: its time runs too fast.
WRONG_CLOCK = "tsc: PIT calibration deviates from HPET"
NMI = re.compile(r"hwt-host: inject-nmi (\d+) (\d+)")
# The emulator of each architecture, its machine and processor, the console, the other serial line.
# pauth-impdef: pointer authentication as specified would take half of the emulation's time.
MACHINES = {
    "x86_64": ("qemu-system-x86_64", "pc", "max", "ttyS0", "ttyS1"),
    # An i386 kernel does not trust an AMD processor with SMP.
    "i386": ("qemu-system-i386", "pc", "max,vendor=GenuineIntel", "ttyS0", "ttyS1"),
    "arm64": ("qemu-system-aarch64", "virt,gic-version=3", "max,pauth-impdef=on", "ttyAMA0", "ttyS0"),
}
# Seconds without output, until the guest's init has reported.
BOOT_SILENCE = 120


@dataclass
class Options:
    """The kernel to boot, and how to boot it."""
    kernel: object              # of kernels.py, or a stand-in with its attributes
    initrd: Path
    out: Path                   # directory of the logs
    planned: int = 0            # number of tests in the list
    results: Path = None        # file to write verdicts to
    label: str = ""             # prefix of verdicts; default the kernel's name
    quick: int = 0
    memory: str = "1G"
    cpus: int = 2
    nodes: int = 1              # NUMA nodes, which share the processors evenly
    disk: str = ""              # an image of a file system
    share: str = ""             # a directory of this machine, for a read-only 9p mount, tag "host"
    serial: str = ""            # target of the second serial line ("stdio"); default a log
    append: list = field(default_factory=list)  # more for the kernel's command line
    silence: int = 240          # seconds without output that count as a hang
    limits: dict = field(default_factory=dict)  # {test: the same, while the test runs}
    boots: int = 3              # attempts, if the kernel fails before it runs init
    limit: int = 3600           # seconds for the whole run
    # Called with each line, and whether the line is from the kernel log.
    watch: object = lambda line, kernel: None


def kvm_works():
    """Return whether KVM works. With /dev/kvm, but no hardware for it, a guest would hang."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        flags = re.search(r"^flags\s*:.*\b(vmx|svm)\b", info.read(), re.M)
    return bool(flags) and os.access("/dev/kvm", os.W_OK)


def escaped(path):
    """Return a path as a value inside an option of the emulator, where a comma ends the value."""
    return str(path).replace(",", ",,")


def numa(options):
    """Return the emulator's words for several NUMA nodes."""
    words = []
    if options.nodes == 1:
        return words
    size, each = int(options.memory.removesuffix("G")) * 1024 // options.nodes, options.cpus // options.nodes
    for node in range(options.nodes):
        words += ["-object", f"memory-backend-ram,id=memory{node},size={size}M",
                  "-numa", f"node,nodeid={node},memdev=memory{node},cpus={node * each}-{(node + 1) * each - 1}"]
    return words


def second_line(arch, path):
    """Return the words for the second serial line. An arm64 kernel cannot use the machine's own."""
    if arch == "arm64":
        return ["-chardev", "file,id=tests,path=" + escaped(path), "-device", "pci-serial,chardev=tests"]
    return ["-serial", "file:" + str(path)]


def boot_failed(log, why):
    """Return whether the emulator made the kernel fail before init. @log: the kernel log, as bytes.

    The kernel waits ten ticks for a timer interrupt, which is late if the emulator does not get a
    processor. Rarely, an emulated machine stands still, or executes the old instruction while the
    kernel patches it (QEMU 7.2 does, with 6.12).
    """
    if b"Run /init as init process" in log:
        return False
    return (b"IO-APIC + timer doesn't work" in log or b"int3: 0000 [#1]" in log or
            why.startswith("hang") or why == WRONG_CLOCK)


def excerpt(lines, most=40):
    """Return the last lines of a failed test's output, after earlier lines that name a failure."""
    told = [line for line in lines[:-most] if "not ok " in line or "FAILED" in line]
    return told[-most:] + lines[-most:]


def fresh(paths):
    """Create these files, empty."""
    for path in paths:
        path.unlink(missing_ok=True)
        path.touch()


class Uml:
    """User Mode Linux: a kernel as a program. Its log and the tests' output are one stream."""

    kvm = False

    def __init__(self, options):
        self.logs = {"guest": options.out / "guest.log"}
        fresh(self.logs.values())
        command = [options.kernel.dir / "linux", f"mem={options.memory}", f"initrd={options.initrd}", "con=null",
                   "con0=fd:0,fd:1", "ignore_loglevel", "printk.time=1", "printk.devkmsg=on", "oops=panic",
                   # Slab caches keep their names, so that those which hwt leaves behind are found.
                   "slab_nomerge",
                   "HWT_TTY=-", *arguments(options, False), *options.append]
        with open(self.logs["guest"], "wb") as log:
            # The guest's memory is a file in TMPDIR.
            self.process = host.start(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                      env={**os.environ, "TMPDIR": "/dev/shm"})

    def running(self):
        return self.process.poll() is None

    def end(self):
        host.finished(self.process)

    def inject_nmis(self, count, interval_ms):
        """Do nothing: User Mode Linux has no NMIs."""


def arguments(options, patching):
    """Return the words for init and the tests on the kernel's command line."""
    return [f"HWT_KERNEL={options.label or options.kernel.name}", f"HWT_QUICK={options.quick}",
            f"HWT_SLOW={int(options.kernel.slow)}", f"HWT_PATCHING={int(patching)}"]


class Qemu:
    """A machine of QEMU."""

    def __init__(self, options):
        arch = options.kernel.arch
        self.kvm = arch == "x86_64" and kvm_works()
        # An absolute path may be too long for a socket's address.
        self.qmp = os.path.relpath(options.out / "qmp")
        self.logs = {name: options.out / (name + ".log") for name in ("kernel", "tests")}
        if os.path.exists(self.qmp):
            os.unlink(self.qmp)
        fresh(self.logs.values())
        program, machine, processor, console, tests = MACHINES[arch]
        append = [
            f"console={console},115200", f"HWT_TTY={tests}", "ignore_loglevel", "printk.time=1", "printk.devkmsg=on",
            # With -no-reboot, any oops ends the guest at once.
            "oops=panic", "panic=-1",
            # So does the NMI of ask_why(), which prints what all processors do.
            "unknown_nmi_panic", "panic_print=64",
            # Otherwise an emulated guest uses the HPET, each read of which is an exit.
            "tsc=reliable", "clocksource=tsc",
            # As under User Mode Linux; with five levels of page tables, KASAN may report a good address at boot.
            "slab_nomerge", "no5lvl", "mitigations=off", "net.ifnames=0", f"HWT_TCG={int(not self.kvm)}",
            # HWT_PATCHING=1: code may change while another processor runs it. See emulator.py.
            *arguments(options, self.kvm or emulator.version(program) >= (8, 1)), *options.append,
        ]
        command = [
            program, "-machine", machine, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-smp", f"{options.cpus},sockets={options.nodes}", "-m", options.memory, *numa(options),
            "-accel", "kvm" if self.kvm else "tcg,thread=multi",
            "-cpu", "host" if self.kvm else processor,
            "-kernel", options.kernel.vmlinuz, "-initrd", options.initrd, "-append", " ".join(append),
            "-serial", f"file:{self.logs['kernel']}",
            *(["-serial", options.serial] if options.serial else second_line(arch, self.logs["tests"])),
            "-qmp", f"unix:{escaped(self.qmp)},server=on,wait=off",
        ]
        if options.disk:
            # The guest's writes are discarded.
            command += ["-drive", f"file={escaped(options.disk)},format=raw,if=virtio,snapshot=on"]
        if options.share:
            command += ["-virtfs", f"local,path={escaped(options.share)},mount_tag=host,security_model=none,readonly=on,"
                                   "multidevs=remap"]
        with open(options.out / "qemu.log", "wb") as log:
            log.write((" ".join(map(str, command)) + "\n").encode())
            log.flush()
            self.process = host.start(command, stdin=None if options.serial == "mon:stdio" else subprocess.DEVNULL,
                                      stdout=None if options.serial else log, stderr=log)

    def running(self):
        return self.process.poll() is None

    def end(self):
        host.finished(self.process)
        if os.path.exists(self.qmp):
            os.unlink(self.qmp)

    def command(self, steps):
        """Send commands to the monitor, in a thread. @steps: (command, seconds to wait after)."""
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
                print(f"[hwt] the emulator did not carry out {steps[0][0]}: {error}", flush=True)

    def inject_nmis(self, count, interval_ms):
        """Inject NMIs. If they fail, the test notices."""
        self.command([("inject-nmi", interval_ms / 1000)] * count)


class Tail:
    """Reads whole lines of a growing file."""

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
    """A run: the machine, its logs, the time limits."""

    def __init__(self, options):
        self.options = options
        options.out.mkdir(parents=True, exist_ok=True)
        self.label = options.label or options.kernel.name
        self.results = Results()
        self.begin()

    def begin(self):
        """Start the machine."""
        options = self.options
        self.machine = (Uml if options.kernel.kind == "uml" else Qemu)(options)
        self.tails = {name: Tail(path) for name, path in self.machine.logs.items()}
        self.judge = Judge(self.label, self.results)
        self.start = self.heard = time.monotonic()
        self.booted = None
        self.wrong_clock = False

    def poll(self, last=False):
        """Read the new lines of the logs; return whether there were any."""
        heard = False
        for name, tail in self.tails.items():
            for line in tail.lines(last):
                heard = True
                # In a single stream the kernel's lines are those with a time stamp.
                if name == "kernel" or (name == "guest" and STAMP.match(line)):
                    self.kernel_line(line)
                else:
                    self.output_line(line)
        if self.judge.booted and not self.booted:
            self.booted = time.monotonic()
        for test in self.judge.finished_tests():
            self.show_test(test)
        return heard

    def kernel_line(self, line):
        self.options.watch(line, True)
        self.wrong_clock |= WRONG_CLOCK in line
        self.judge.feed_kernel(line)
        if nmi := NMI.search(line):
            self.machine.inject_nmis(int(nmi.group(1)), int(nmi.group(2)))

    def output_line(self, line):
        self.options.watch(line, False)
        self.judge.feed_output(line)

    def show_test(self, test):
        verdict = "FAIL" if test.failed else "ok"
        print(f"{verdict:>6}  {self.label}/{test.name}  ({test.seconds:.1f} s)", flush=True)
        if test.failed:
            for line in excerpt(test.output) + excerpt(test.log):
                print("        | " + line)
            sys.stdout.flush()

    def over(self):
        return self.judge.ended.keys() >= {"kernel", "output"}

    def follow(self):
        """Follow the guest to its end; return why it ended early, or None."""
        while not self.over():
            alive = self.machine.running()
            now = time.monotonic()
            if self.poll():
                self.heard = now
            if not alive and not self.over():
                self.poll(last=True)
                return None if self.over() else "the guest ended by itself: panic, or the emulator failed"
            if self.wrong_clock and self.options.boots > 1 and not self.judge.booted:
                return WRONG_CLOCK
            silence = self.silence()
            if now - self.heard > silence:
                self.ask_why()
                return f"hang: nothing from the guest for {silence} s"
            if now - self.start > self.options.limit:
                return f"not finished after {self.options.limit} s"
            time.sleep(0.1)
        return None

    def silence(self):
        """Return the seconds without output that are a hang now."""
        if not self.judge.booted:
            return min(self.options.silence, BOOT_SILENCE)
        running = {test.name for tests in self.judge.running.values() for test in tests}
        return max((limit for name, limit in self.options.limits.items() if name in running), default=self.options.silence)

    def ask_why(self):
        """Have a guest that hangs print to its log what it executes."""
        self.machine.inject_nmis(1, 0)
        end = time.monotonic() + 20
        while self.machine.running() and time.monotonic() < end:
            time.sleep(0.1)

    def run(self):
        """Run the guest to its end; return whether all tests passed."""
        print(f"[hwt] guest {self.label}: booting ({'KVM' if self.machine.kvm else 'emulated'}), "
              f"{self.options.planned} tests", flush=True)
        try:
            why = self.follow()
        finally:
            self.machine.end()
        self.poll(last=True)
        if why and self.boot_failed(why) and self.options.boots > 1:
            print(f"[hwt] the emulated machine did not come up ({why}): booting again", flush=True)
            self.options.boots -= 1
            self.begin()
            return self.run()
        self.judge.finish(self.options.planned, why)
        if why:
            for path in self.machine.logs.values():
                self.show_end(path)
        if self.options.results:
            self.results.write(self.options.results)
        return self.verdict()

    def boot_failed(self, why):
        if self.judge.booted:
            return False
        return boot_failed(next(iter(self.machine.logs.values())).read_bytes(), why)

    def show_end(self, path):
        print(f"[hwt] the end of {path}:")
        for line in host.tail(path, 60):
            print("        | " + line)

    def verdict(self):
        failures = self.results.failures()
        count = {v: sum(line.startswith(v + " ") for line in self.results.lines) for v in ("ok", "skip")}
        times = f"{time.monotonic() - self.start:.0f} s"
        if self.booted:
            times += f" ({self.booted - self.start:.0f} of them booting)"
        print(f"[hwt] guest {self.label}: {count['ok']} passed, {len(failures)} failed, "
              f"{count['skip']} skipped, {times}")
        for line in failures:
            print("        " + line)
        sys.stdout.flush()
        return not failures
