#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
#
# count.py [-q] [--record | --functions] [--compiler CC] [--beside NAME] [--most N] PROGRAM FILE:
# what each hot path does, whatever the clock and the machine
#
# Runs PROGRAM (count.c) under valgrind's lackey, which tells every instruction and every
# memory access, and counts between the program's marks:
#
#   instructions  executed, the call and its arguments included
#   locked        of these, with a lock prefix, or xchg with memory
#   lines         distinct lines of 64 bytes that data was read from or written to,
#                 without the stack
#   own           of these, lines that fewer than one operation in a hundred touches: the
#                 timeout and its neighbours, which caches do not hold when there are
#                 many; the others stay in the cache
#
# The median of the operations; of what the engine does for all timeouts in one go
# (collect, expire), the average. Prints it beside what FILE has, the figures of the last
# release, or with --record writes FILE. With --functions says where the instructions are.
# Fails if it cannot count, or, with --most, if an operation takes over N instructions more than
# FILE says. NAME is what FILE is of, if not the last release.

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
COLUMNS = ("instructions", "locked", "lines", "own")

HEADER = """\
# SPDX-License-Identifier: GPL-2.0-only
#
# Instructions, locked operations and cache lines of each hot path at the last release,
# written by "make record"; count.py says what they mean. Compiled by
# {compiler}
#
"""


def functions(program):
    """Sorted list of (address, name)."""
    lines = subprocess.run(["nm", program], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    fields = (line.split() for line in lines)
    return sorted((int(f[0], 16), f[2]) for f in fields if len(f) == 3 and f[1] in "tTwW")


def locked_instructions(program):
    """Addresses of the instructions that lock the bus, or would have."""
    found = set()
    pattern = re.compile(r"^\s*([0-9a-f]+):\s+(?:lock\b|xchg\s.*\()")
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", program], text=True,
                          stdout=subprocess.PIPE) as objdump:
        for line in objdump.stdout:
            match = pattern.match(line)
            if match:
                found.add(int(match[1], 16))
    return found


class Counter:
    """Counts between the marks of a trace."""

    def __init__(self, program):
        self.functions = functions(program)
        addresses = {name: address for address, name in self.functions}
        self.begin = b"\nI  %08x," % addresses["mark_begin"]
        self.end = b"\nI  %08x," % addresses["mark_end"]
        self.locked = locked_instructions(program)
        self.known = {}

    def intervals(self, stream):
        """Yields the trace between each pair of marks."""
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
            # A mark may be half here; what comes before the first one is nobody's.
            if wanted == self.begin:
                text = text[-len(wanted):]
            text += chunk

    def classify(self, event):
        """(function, locked, lines) of one event of a trace."""
        address, size = event[3:].split(b",")
        address = int(address, 16)
        if event.startswith(b"I"):
            at = bisect.bisect(self.functions, (address, "\x7f")) - 1
            return self.functions[at][1], address in self.locked, ()
        return None, 0, range(address >> 6, (address + int(size) + 63) >> 6)

    def count(self, trace):
        """(instructions by function, locked, set of lines) of an interval."""
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


def run(program, operations):
    """Runs the program. Returns a list of (name, ops per interval, counts)."""
    counter = Counter(program)
    receive, send = os.pipe()
    command = ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-fd={send}",
               program, str(operations)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                          pass_fds=[send]) as valgrind:
        os.close(send)
        with os.fdopen(receive, "rb") as stream:
            counts = [counter.count(trace) for trace in counter.intervals(stream)]
        said = valgrind.stdout.read().splitlines()
    if valgrind.returncode:
        sys.exit(f"{' '.join(command)}: exit code {valgrind.returncode}")

    stack = int(said[0].split()[1], 16)
    result = []
    for line in said[1:]:
        _, name, intervals, ops = line.split()
        taken, counts = counts[:int(intervals)], counts[int(intervals):]
        if len(taken) != int(intervals):
            sys.exit(f"{name}: {len(taken)} intervals were found, not {intervals}")
        taken = [(i, locked, {n for n in lines if abs((n << 6) - stack) > STACK})
                 for i, locked, lines in taken]
        result.append((name, int(ops), taken))
    return result


def evaluate(operations):
    """From the counts to {name: {column: list of values}}."""
    # Between the marks there is one call that is not the operation's.
    extra = statistics.median(i.total() for name, _, taken in operations
                              if name == "nothing" for i, _, _ in taken)
    table = {}
    for name, ops, taken in operations:
        if name in ("-", "nothing"):
            continue
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


def read_record(path):
    """{name: {column: value}} of the last release."""
    try:
        with open(path, encoding="utf-8") as record:
            rows = [line.split() for line in record if not line.startswith("#")]
    except FileNotFoundError:
        return {}
    return {row[0]: {c: float(v) for c, v in zip(COLUMNS, row[1:]) if v != "-"}
            for row in rows if row}


def show(value):
    """As short as it goes."""
    return "-" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def print_bench(table, operations):
    """The lines for programs."""
    for name, values in table.items():
        for column in values:
            unit = "own_lines" if column == "own" else column
            v = values[column]
            print(f"@bench bench=count peer=hwt op={name} n={operations} unit={unit} "
                  f"median={show(statistics.median(v))} low={show(min(v))} "
                  f"high={show(max(v))} runs={len(v)}")


def print_table(table, record, beside):
    """The table for people."""
    print(f"\n{'':16s}" + "".join(f"{column:>24s}" for column in COLUMNS))
    print(f"{'operation':16s}" + f"{'now':>8s}{beside:>8s}{'':8s}" * len(COLUMNS))
    for name, values in table.items():
        row = f"{name:16s}"
        for column in COLUMNS:
            now = statistics.median(values[column]) if column in values else None
            last = record.get(name, {}).get(column)
            change = ""
            if now is not None and last is not None and show(now) != show(last):
                change = f"({now - last:+.4g})"
            row += f"{show(now):>8s}{show(last):>8s}{change:8s}"
        print(row.rstrip())
    if beside == "last":
        print("\nlast: of the last release.")
    print("own: lines that stay cold when there are many.")


def over(table, record, most):
    """Names of operations that take too many instructions more."""
    return [name for name, values in table.items() if name in record and
            statistics.median(values["instructions"]) > record[name]["instructions"] + most]


def print_functions(operations):
    """Where the instructions are, on average."""
    for name, ops, taken in operations:
        if name in ("-", "nothing"):
            continue
        total = sum((i for i, _, _ in taken), collections.Counter())
        print(f"\n{name}: instructions by function")
        for function, n in total.most_common(12):
            print(f"{n / len(taken) / ops:10.1f}  {function}")


def write_record(path, table, compiler):
    """The figures of a release."""
    version = subprocess.run([*compiler.split(), "--version"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.splitlines()[0]
    with open(path, "w", encoding="utf-8") as record:
        record.write(HEADER.format(compiler=version))
        record.write(f"# {'operation':14s}" + "".join(f"{c:>14s}" for c in COLUMNS) + "\n")
        for name, values in table.items():
            cells = (show(statistics.median(values[c])) if c in values else "-"
                     for c in COLUMNS)
            record.write(f"{name:16s}" + "".join(f"{cell:>14s}" for cell in cells) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-q", "--quick", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--beside", default="last")
    parser.add_argument("--most", type=float)
    parser.add_argument("program")
    parser.add_argument("file")
    args = parser.parse_args()

    operations = OPERATIONS // 10 if args.quick else OPERATIONS
    print(f"counting {operations} of each operation under valgrind"
          f" ({6 if args.quick else 60} s or so)", flush=True)
    try:
        counted = run(args.program, operations)
    except FileNotFoundError as missing:
        sys.exit(f"{missing.filename}: not found; it is needed to count")
    table = evaluate(counted)
    print_bench(table, operations)
    record = read_record(args.file)
    if args.quick and args.beside == "last":
        # What is done in one go depends on how many there are.
        record = {name: row for name, row in record.items() if "lines" in row}
    print_table(table, record, args.beside)
    if args.functions:
        print_functions(counted)
    if args.record:
        write_record(args.file, table, args.compiler)
    if args.most is not None and (not record or over(table, record, args.most)):
        sys.exit("too many instructions more than " + args.beside + ": " +
                 (" ".join(over(table, record, args.most)) or "there is nothing to compare with"))


main()
