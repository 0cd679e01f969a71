#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Count the instructions and memory accesses of each hot path, independent of clock and machine.

PROGRAM (count.c) runs under valgrind's lackey, which prints each instruction and memory access.
Between the program's marks, the following are counted:

  instructions  executed, the call and its arguments included
  locked        of these, with a lock prefix, or xchg with memory
  lines         distinct lines of 64 bytes that were read or written, without the stack
  own           of these, lines that fewer than one operation in a hundred touches: the timeout and
                its neighbours, which are cold when there are many; the others stay in the cache

The figures are medians; for work of the engine for all timeouts at once (collect, expire), they are
averages. With --beside PROGRAM, that program is counted as well, and the figures of both are shown.
"""
import argparse
import bisect
import collections
import os
import re
import statistics
import subprocess
import sys

OPERATIONS = 10000
RARE = 100
STACK = 1 << 16
# Operations of more than one call.
CALLS = {"pair": 2, "arm_delete": 2}
COLUMNS = ("instructions", "locked", "lines", "own")


def said(*command):
    """Return the lines that a command prints."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()


def functions(program):
    """Return a sorted list of (address, name)."""
    fields = (line.split() for line in said("nm", program))
    return sorted((int(f[0], 16), f[2]) for f in fields if len(f) == 3 and f[1] in "tTwW")


def locked_instructions(program):
    """Return the addresses of the locked instructions."""
    pattern = re.compile(r"^\s*([0-9a-f]+):\s+(?:lock\b|xchg\s.*\()")
    matches = map(pattern.match, said("objdump", "-d", "--no-show-raw-insn", program))
    return {int(match[1], 16) for match in matches if match}


class Counter:
    """Counts the events between the marks of a trace."""

    def __init__(self, program):
        self.functions = functions(program)
        addresses = {name: address for address, name in self.functions}
        self.begin = b"\nI  %08x," % addresses["mark_begin"]
        self.end = b"\nI  %08x," % addresses["mark_end"]
        self.locked = locked_instructions(program)
        self.known = {}

    def intervals(self, stream):
        """Yield the trace between each pair of marks."""
        text = b""
        wanted, other = self.begin, self.end
        while True:
            at = text.find(wanted)
            if at >= 0:
                if wanted == self.end:
                    yield text[:at].split(b"\n")[1:]
                text = text[at + len(wanted):]
                wanted, other = other, wanted
                continue
            chunk = stream.read(1 << 20)
            if not chunk:
                return
            # Keep the beginning of a mark; the events before it belong to no interval.
            if wanted == self.begin:
                text = text[-len(wanted):]
            text += chunk

    def classify(self, event):
        """Return (function, locked, lines) of an event of a trace."""
        address, size = event[3:].split(b",")
        address = int(address, 16)
        if event.startswith(b"I"):
            at = bisect.bisect(self.functions, (address, "\x7f")) - 1
            return self.functions[at][1], address in self.locked, ()
        return None, 0, range(address >> 6, (address + int(size) + 63) >> 6)

    def count(self, trace):
        """Return (instructions by function, locked, set of lines) of an interval."""
        instructions = collections.Counter()
        locked = 0
        lines = set()
        for event in trace:
            known = self.known.get(event)
            if known is None:
                known = self.known[event] = self.classify(event)
            if known[0]:
                instructions[known[0]] += 1
                locked += known[1]
            else:
                lines.update(known[2])
        return instructions, locked, lines


def run(program, operations, wheel=()):
    """Run the program. Return the instructions between empty marks, and a list of (name, ops per interval, counts)."""
    counter = Counter(program)
    receive, send = os.pipe()
    command = ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-fd={send}", program, str(operations),
               *wheel]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[send]) as valgrind:
        os.close(send)
        with os.fdopen(receive, "rb") as stream:
            counts = [counter.count(trace) for trace in counter.intervals(stream)]
        lines = valgrind.stdout.read().splitlines()
    if valgrind.returncode:
        sys.exit(f"{' '.join(command)}: exit code {valgrind.returncode}")

    stack = int(lines[0].split()[1], 16)
    result = []
    for line in lines[1:]:
        _, name, intervals, ops = line.split()
        taken, counts = counts[:int(intervals)], counts[int(intervals):]
        if len(taken) != int(intervals):
            sys.exit(f"{name}: {len(taken)} intervals were found, not {intervals}")
        if name != "-":
            result.append((name, int(ops), [(i, locked, {n for n in touched if abs((n << 6) - stack) > STACK})
                                            for i, locked, touched in taken]))
    # An interval has one call that does not belong to the operation.
    extra = statistics.median(i.total() for i, _, _ in result.pop(0)[2])
    return extra, result


def evaluate(extra, operations):
    """Convert the counts to {name: {column: list of values}}."""
    table = {}
    for name, ops, taken in operations:
        users = collections.Counter(line for _, _, lines in taken for line in lines)
        rare = {line for line, n in users.items() if n * RARE < len(taken)}
        table[name] = values = {
            "instructions": [(i.total() - extra) / ops for i, _, _ in taken],
            "locked": [locked / ops for _, locked, _ in taken],
        }
        if ops == 1:
            values["lines"] = [len(lines) for _, _, lines in taken]
            values["own"] = [len(lines & rare) for _, _, lines in taken]
        else:
            values["own"] = [len(lines) / ops for _, _, lines in taken]
    return table


def show(value):
    """Return a figure with as few digits as possible."""
    return "-" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def print_all(table, other, operations):
    """Print the "@bench" lines, and a table; with the figures of @other, if there is another program."""
    widths = "24s" if other else "14s"
    lines = [f"\n{'operation':16s}" + "".join(f"{column:>{widths}}" for column in COLUMNS)]
    for name, values in table.items():
        row = f"{name:16s}"
        for column in COLUMNS:
            now = None
            if column in values:
                v = values[column]
                now = statistics.median(v)
                print(f"@bench bench=count peer=hwt op={name} n={operations} "
                      f"unit={'own_lines' if column == 'own' else column} "
                      f"median={show(now)} low={show(min(v))} high={show(max(v))} runs={len(v)}")
            text = show(now)
            if other and now is not None:
                text += f" ({now - statistics.median(other[name][column]):+.4g})"
            row += f"{text:>{widths}}"
        lines.append(row)
    print("\n".join(lines + ["own: lines that stay cold when there are many."]))


def print_functions(operations):
    """Print the average number of instructions in each function."""
    for name, ops, taken in operations:
        total = sum((i for i, _, _ in taken), collections.Counter())
        print(f"\n{name}: instructions by function")
        for function, n in total.most_common(12):
            print(f"{n / len(taken) / ops:10.1f}  {function}")


def measure(program, operations, wheel=()):
    """Return what run() has counted, and the table of it."""
    try:
        extra, counted = run(program, operations, wheel)
    except FileNotFoundError as missing:
        sys.exit(f"{missing.filename}: not found; it is needed to count")
    return counted, evaluate(extra, counted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-q", "--quick", action="store_true")
    parser.add_argument("--functions", action="store_true", help="say where the instructions are")
    parser.add_argument("--beside", metavar="PROGRAM", help="show the difference to this program")
    parser.add_argument("--most", type=float, help="fail if a call takes over so many instructions more than there")
    parser.add_argument("--bh", action="store_true", help="count on a BH wheel with ticks of a jiffy")
    parser.add_argument("program")
    args = parser.parse_args()

    operations = OPERATIONS // 10 if args.quick else OPERATIONS
    print(f"counting {operations} of each operation under valgrind ({6 if args.quick else 60} s or so)", flush=True)
    counted, table = measure(args.program, operations, ("bh",) if args.bh else ())
    other = measure(args.beside, operations)[1] if args.beside else {}
    print_all(table, other, operations)
    if args.functions:
        print_functions(counted)
    over = [name for name in table if args.most is not None and
            statistics.median(table[name]["instructions"]) >
            statistics.median(other[name]["instructions"]) + args.most * CALLS.get(name, 1)]
    if over:
        sys.exit(f"too many instructions more than {args.beside}: " + " ".join(over))


if __name__ == "__main__":
    main()
