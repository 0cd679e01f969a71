#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs a guest that is tortured, shows its summaries as they come, ends with a verdict.

Either follows the kernel log that run_guest.py (the command) writes, or runs User Mode Linux
itself and judges what it says as run_guest.py does. See soak.sh.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "vm"))
from judge import STAMP, Judge
from run_guest import Tail
from tap import Results

TOLD = re.compile(r"hwt_torture: ((begins|after|ends|FAILED|not ok|  ).*)")


class Soak:
    """A run: the process, its log, what was last said."""

    def __init__(self, args):
        self.args = args
        self.log = os.path.join(args.out, "guest.log" if args.uml else "kernel.log")
        # What a run before has left is not this one's.
        if os.path.exists(self.log):
            os.unlink(self.log)
        self.last = "nothing"
        self.judge = None
        command, said = args.command, sys.stdout
        if args.uml:
            self.results = Results()
            self.judge = Judge("uml", self.results)
            command = [args.uml, "mem=1G", "initrd=" + args.initrd, "con=null", "con0=fd:0,fd:1",
                       "ignore_loglevel", "printk.devkmsg=on", "oops=panic",
                       f'HWT_TORTURE="{" ".join(args.command)}"']
            # Its memory is a file there.
            os.environ["TMPDIR"] = "/dev/shm"
            said = open(self.log, "wb")
        # A group of its own: it is more than one process.
      
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                        start_new_session=True)
        self.tail = None

    def poll(self, last=False):
        """Takes and shows what has come since."""
        if self.tail is None:
            # It is made anew when the guest is about to begin.
            if not os.path.exists(self.log):
                return
            self.tail = Tail(self.log)
        for line in self.tail.lines(last):
            told = TOLD.search(line)
            if told:
                if told.group(2) in ("after", "ends"):
                    self.last = told.group(1)
                print("    " + told.group(1).rstrip(), flush=True)
            if self.judge and STAMP.match(line):
                self.judge.feed_kernel(line)
            elif self.judge:
                self.judge.feed_output(line)

    def uml_verdict(self, why):
        """What the harness of the other guests would say."""
        list(self.judge.finished_tests())
        if not why and self.process.returncode:
            why = f"the guest ended by itself, exit code {self.process.returncode}"
        self.judge.finish(1, why)
        for line in self.results.failures():
            print("        " + line, flush=True)
        return bool(self.results.failures())

    def run(self):
        """All of it; the exit code."""
        why = None
        began = time.monotonic()
        try:
            while self.process.poll() is None and not why:
                self.poll()
                if time.monotonic() - began > self.args.limit + 600:
                    why = "it does not end"
                time.sleep(0.5)
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        self.poll(last=True)
        failed = self.uml_verdict(why) if self.judge else bool(why or self.process.returncode)
        print(f"[hwt] soak: {'FAILED' if failed else 'passed'}; {self.last}")
        print(f"[hwt] its log: {self.log}", flush=True)
        return 1 if failed else 0


def main():
    # The guest does not go on alone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--uml", help="the kernel, a program; the rest are parameters of hwt_torture.ko")
    parser.add_argument("--initrd")
    parser.add_argument("--out", required=True, help="directory of the log")
    parser.add_argument("--limit", type=int, required=True, help="seconds for all of it")
    parser.add_argument("command", nargs="+", help="what to run, if it is not --uml")
    return Soak(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
