#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs hwt_year.ko under User Mode Linux whose time jumps, and judges it. See run.sh.

What the guest prints and its kernel log are judged as those of other guests are.
"""

import argparse
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from judge import STAMP, Judge
from run_guest import Tail
from tap import Results

# Noon on the last day of 2027: the year that follows has a 29th of February.
START_NS = 1830254400 * 10**9


class Year:
    """The guest, what it says, and what that is worth."""

    def __init__(self, args):
        self.args = args
        self.results = Results()
        self.judge = Judge("year", self.results)
        self.log = os.path.join(args.out, "guest.log")
        command = [
            # Time jumps when all is idle, and stands still while anybody computes.
            args.linux, "mem=512M", "time-travel=inf-cpu", f"time-travel-start={START_NS}",
            "initrd=" + args.initrd, "con=null", "con0=fd:0,fd:1", "ignore_loglevel",
            "printk.devkmsg=on", "oops=panic", f'HWT_YEAR="{" ".join(args.parameters)}"',
        ]
        with open(self.log, "wb") as log:
            # Its memory is a file there. A group of its own: it is more than one process.
          
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "TMPDIR": "/dev/shm"}, start_new_session=True)
        self.tail = Tail(self.log)

    def poll(self, last=False):
        """Takes and shows what has come since; true if anything has.

        The kernel's lines are known by their stamps. Nobody cuts another's line in two: there
        is one processor, and each line is one write.
        """
        lines = self.tail.lines(last)
        for line in lines:
            stamp = STAMP.match(line)
            if not stamp:
                self.judge.feed_output(line)
                continue
            self.judge.feed_kernel(line)
            text = line[stamp.end():].rstrip()
            if text.startswith("hwt_year: "):
                print("    " + text[len("hwt_year: "):], flush=True)
        list(self.judge.finished_tests())
        return bool(lines)

    def follow(self):
        """Until its end; returns what cut it short, or None."""
        start = heard = time.monotonic()
        while self.process.poll() is None:
            now = time.monotonic()
            if self.poll():
                heard = now
            if now - heard > self.args.silence:
                return f"hang: nothing from the guest for {self.args.silence} s"
            if now - start > self.args.limit:
                return f"not finished after {self.args.limit} s"
            time.sleep(0.1)
        self.poll(last=True)
        if self.process.returncode or len(self.judge.ended) < 2:
            return f"the guest ended by itself, exit code {self.process.returncode}"
        return None

    def show_end(self):
        """For whoever asks why."""
        with open(self.log, "rb") as log:
            for line in log.read().decode(errors="replace").splitlines()[-25:]:
                print("        | " + line)

    def run(self):
        """All of it; the exit code."""
        began = time.monotonic()
        try:
            why = self.follow()
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        self.poll(last=True)
        self.judge.finish(1, why)
        if why:
            self.show_end()
        self.results.write(self.args.results)
        failures = self.results.failures()
        print(f"[hwt] the year took {time.monotonic() - began:.0f} s; its log: {self.log}", flush=True)
        for line in failures:
            print("        " + line, flush=True)
        return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--linux", required=True, help="the kernel, a program")
    parser.add_argument("--initrd", required=True)
    parser.add_argument("--out", required=True, help="directory of the log")
    parser.add_argument("--results", required=True, help="file to write verdicts to")
    parser.add_argument("--silence", type=int, default=300, help="seconds without output that are a hang")
    parser.add_argument("--limit", type=int, default=1800, help="seconds for all of it")
    parser.add_argument("parameters", nargs="*", help="of hwt_year.ko")
    # Being told to end is no reason to leave the guest behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return Year(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
