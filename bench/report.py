#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make a report and plots from the benchmarks' results.

report.py [--markdown] DIR|LOG

DIR has results.json, which bench.py writes. The report is printed and written to DIR/report.txt,
the plots are written to DIR/plots. LOG is a kernel log, or another text with "@bench" lines;
report.txt and plots are written beside it. With --markdown the report also replaces the text
between "<!-- figures: begin -->" and "<!-- figures: end -->" in bench/figures.md, and the plots are
copied to docs/plots.
"""
import argparse
import shutil
import sys
import textwrap
from pathlib import Path

from plots import draw_all
from results import Results, duration, figure, short, unique

WIDTH = 100
PAGE = Path(__file__).resolve().parent / "figures.md"
PLOTS = PAGE.parents[1] / "docs/plots"
MARKS = ("<!-- figures: begin -->", "<!-- figures: end -->")

WHERE = {
    "uml": "the kernel in User Mode Linux: native speed, one CPU",
    "qemu": "a guest in an emulator: relative costs only",
    "qemu-6.12": "the same with kernel 6.12, which has io_uring commands for devices",
    "kvm": "a guest in a virtual machine",
    "kvm-6.12": "the same with kernel 6.12, which has io_uring commands for devices",
    "host": "a program on this machine",
    "here": "the kernel of this machine",
    "machine": "a kernel on the machine of the log",
}

# -- Tables ------------------------------------------------------------------


def spread(row):
    """Return a median, and the distance of the farthest repetition from it."""
    middle = row["median"]
    if row.get("runs", 1) == 1 or not middle:
        return figure(middle)
    far = max(row["high"] - middle, middle - row["low"]) / middle
    return f"{figure(middle)} ±{100 * far:.0f}%"


def median(row):
    """Return a median without the spread, for tables with many columns."""
    return figure(row["median"])


def wrapped(text):
    """Return the lines of a text."""
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def table(head, rows, left=1):
    """Return the lines of a table; the first @left columns are text."""
    rows = [[str(text) for text in row] for row in [head, *rows]]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(text.ljust(width) if i < left else text.rjust(width)
                      for i, (text, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


def pivot(rows, left, across, cell=spread, head=str):
    """Return a table: a line for each value of the keys @left, a column for each of @across."""
    columns = unique(row[across] for row in rows)
    cells = {(tuple(row[key] for key in left), row[across]): cell(row) for row in rows}
    return table(["" for _ in left] + list(map(head, columns)),
                 [[*line, *(cells.get((line, column), "-") for column in columns)]
                  for line in unique(line for line, _ in cells)], len(left))


# -- Targets of the design -----------------------------------------------------

# Label; hwt's peer and operation; name, operation and largest ratio (None: no goal) of other peers.
OPERATIONS = (
    ("schedule, absolute", "hwt", "schedule", (("bare", "schedule", 1.4), ("timer_list", "schedule", 0.8))),
    ("schedule, coarse clock", "hwt-coarse", "schedule-relative",
     (("bare", "schedule", 1.4), ("timer_list", "schedule-relative", 0.8))),
    ("schedule, fine clock", "hwt", "schedule-relative", (("bare", "schedule-relative", 1.4),)),
    ("schedule + cancel", "hwt", "schedule+cancel",
     (("timer_list", "schedule+cancel", 0.6), ("delayed_work", "schedule+cancel", 0.6))),
    ("push back", "hwt", "push-back", (("bare", "push-back", 1.3), ("timer_list", "push-back", 0.6),
                                       ("delayed_work", "push-back", 0.4), ("hrtimer", "push-back", 0.05))),
    ("push back a little", "hwt", "push-back-a-little", (("timer_list", "push-back-a-little", None),)),
    ("cancel", "hwt", "cancel", (("bare", "cancel", 1.3), ("timer_list", "cancel", 0.7))),
    ("schedule + delete", "hwt-bh", "schedule+cancel", (("timer_list", "schedule+cancel", 0.7),)),
    ("touch", "hwt-touch", "push-back", (("lazy", "push-back", 1.1), ("timer_list", "push-back", None))),
)
GROWING = ("schedule", "schedule-relative", "push-back", "pull-forward", "cancel", "schedule+cancel")
GROWTH = 1.3
# The same for other benchmarks, with the number of timeouts if only that counts.
OTHERS = (
    ("schedule to callback", "through", "hwt", "schedule-to-callback",
     (("timer_list", 1.0), ("delayed_work", 0.5))),
    ("  a tick of a jiffy", "through", "hwt-jiffy", "schedule-to-callback",
     (("timer_list", 1.0), ("delayed_work", 0.5))),
    ("  a BH wheel", "through", "hwt-bh", "schedule-to-callback", (("timer_list", 0.9),)),
    ("  the same, 1 ms", "through", "hwt-bh-1ms", "schedule-to-callback", (("timer_list", 1.0),)),
    ("/dev/hwt, by rings", "user", "hwt-rings", "create", (("timerfd", 0.1),)),
    ("/dev/hwt, one by one", "user", "hwt", "create", (("timerfd", None),)),
    ("/dev/hwt, io_uring", "user", "hwt-uring-batch", "create",
     (("timerfd", None), ("io_uring-batch", None))),
    ("  push back", "user", "hwt-uring-batch", "rearm", (("io_uring-batch", None),)),
    ("/dev/hwt, bytes", "user", "hwt", "memory", (("timerfd", 0.25),)),
    ("  open", "user", "hwt", "open", (("timerfd", None),)),
    ("  close", "user", "hwt", "close", (("timerfd", None),)),
    ("  a single timer", "user", "hwt", "late", (("timerfd", 1.1),)),
    ("  the same, by rings", "user", "hwt-rings", "late", (("timerfd", 1.1),)),
    ("  due at once, rings", "user", "hwt-rings", "cpu", (("timerfd", 0.7),), 1000),
    ("", "user", "hwt-rings", "cpu", (("timerfd", 0.4),), 10000),
    ("  due at once, read", "user", "hwt", "cpu", (("timerfd", 0.9),), 1000),
    ("", "user", "hwt", "cpu", (("timerfd", 0.7),), 10000),
)
MODES = ("one-at-a-time", "in-a-loop")
COLUMNS = f"{'hwt':>6} {'other':>6} {'ratio':>6} {'ok?':4}"
TARGETS = """\
Ratios of the medians of one run, with a million timeouts pending or the largest number measured.
goal: the largest acceptable ratio. yes~, no~: the extreme repetitions give the other verdict.
Creating a timerfd includes epoll_ctl()."""


def target(label, count, against, goal, *rest):
    """Return a line of the table of targets."""
    return (f"{label:23}{count:>4} {against:14} {'' if goal is None else goal:>5} " + "  ".join(rest)).rstrip()


def judge(found, goal):
    """Return the figures of hwt and the peer, their ratio, and the verdict on the goal."""
    if not found or not all(found):
        return f"{'not measured':>25}"
    ours, theirs = found
    verdict = ""
    if goal is not None:
        reached = [ours[a] <= goal * theirs[b] for a, b in (("median", "median"), ("low", "high"), ("high", "low"))]
        verdict = ("yes" if reached[0] else "no") + ("" if len(set(reached)) == 1 else "~")
    return f"{median(ours):>6} {median(theirs):>6} {ours['median'] / theirs['median']:6.3f} {verdict:4}"


def targets_operations(results, pending):
    """Return the lines on single operations in ns, for each mode, with @pending timeouts."""
    lines = [target("", "", "", "", *(f"{f' {mode} ':-^25}" for mode in MODES)),
             target("ns, " + ", ".join(results.places("ops")), "n", "against", "goal", COLUMNS, COLUMNS)]
    for label, peer, operation, others in OPERATIONS:
        for other, theirs, goal in others:
            found = [results.pair({"bench": "ops", "mode": mode, "peer": peer, "op": operation},
                                  {"bench": "ops", "mode": mode, "peer": other, "op": theirs}, pending)
                     for mode in MODES]
            count = short(found[0][0]["n"]) if found[0] else ""
            lines.append(target(label, count, other, goal, *(judge(pair, goal) for pair in found)))
            label = ""
    return lines


def targets_growth(results):
    """Return the lines on the growth of the cost with the number of pending timeouts."""
    found = {(row["mode"], row["op"], row["n"]): row for row in results.find(bench="ops", peer="hwt")}
    return [target(operation, "10M", "at 1M", GROWTH,
                   *(judge([found.get((mode, operation, count)) for count in (10000000, 1000000)], GROWTH)
                     for mode in MODES)) for operation in GROWING]


def targets_others(results):
    """Return the lines on the other benchmarks."""
    lines = [target("", "n", "against", "goal", COLUMNS, "where")]
    for label, bench, peer, operation, others, *count in OTHERS:
        ours = {"bench": bench, "peer": peer, "op": operation, **({"n": count[0]} if count else {})}
        for other, goal in others:
            found = results.pair(ours, {**ours, "peer": other})
            lines.append(target(label, short(found[0]["n"]) if found else "", other, goal, judge(found, goal),
                                found[0]["where"] if found else ""))
            label = ""
    return lines


def targets(results):
    """Return the lines on all targets, with an explanation."""
    clock = [f"The fine clock's read is {median(row)} ns." for row in results.find(bench="ops", peer="clock")[:1]]
    return [*wrapped(" ".join([TARGETS, *clock])), "",
            *targets_operations(results, 1000000), *targets_growth(results), "",
            "The same with few timeouts, all in the cache: the cost of the code itself.", "",
            *targets_operations(results, 1000), "", *targets_others(results)]


# -- Sections: rows of one benchmark and place to lines ----------------------


def by_count(rows):
    """Return the cost by n, in a table for each operation and mode."""
    lines = []
    for operation, mode in unique((row["op"], row["mode"]) for row in rows):
        some = [row for row in rows if (row["op"], row["mode"]) == (operation, mode)]
        lines += [f"{operation}, {mode}", *pivot(some, ("peer",), "n", head=short), ""]
    return lines[:-1]


def by_unit(left):
    """Return a function that makes a table with a column for each operation and unit."""
    return lambda rows: pivot([{**row, "op": f"{row['op']} {row['unit']}"} for row in rows], left, "op")


def slack(rows):
    """Return a table like that of by_unit(), with a line for each slack."""
    return by_unit(("slack",))([{**row, "slack": duration(row["slack_ns"])} for row in rows])


def lateness(rows):
    """Return the lateness by load and delay."""
    return table(["load", "delays to", "", "fired", "median", "90%", "99%", "latest", "early"],
                 [[row["load"], duration(row["span_ns"]), row["peer"], row["n"],
                   *(duration(row[key]) for key in ("median", "p90", "p99", "high")), row["early"]] for row in rows], 3)


def contention(rows):
    """Return the cost by operation and peer, with a column for each number of threads."""
    order = unique(row["op"] for row in rows)
    return pivot(sorted(rows, key=lambda row: (order.index(row["op"]), row["peer"])), ("op", "peer"), "threads",
                 head="threads: {}".format)


def scale(rows):
    """Return, by threads: throughput, CPU time, and the throughput relative to one engine."""
    order = unique(row["op"] for row in rows)
    rows = sorted(rows, key=lambda row: (order.index(row["op"]), row["threads"]))
    rate = [{**row, **{key: row[key] / 1e6 for key in ("median", "low", "high")}} for row in rows if row["unit"] == "per_s"]
    rates = {(row["op"], row["threads"], row["peer"]): row["median"] for row in rate}
    ratios = [{"op": op, "threads": threads, "median": rates[op, threads, "hwt-shards"] / one}
              for (op, threads, peer), one in rates.items()
              if peer == "hwt" and one and (op, threads, "hwt-shards") in rates]
    head = "threads: {}".format
    return ["millions a second, by the wall clock", *pivot(rate, ("op", "peer"), "threads", head=head), "",
            "ns of CPU time", *pivot([row for row in rows if row["unit"] == "ns"], ("op", "peer"), "threads", head=head),
            *(["", "millions a second: hwt-shards / hwt", *pivot(ratios, ("op",), "threads", median, head)] if ratios else [])]


def user(rows):
    """Return a table for each number of timers."""
    lines = []
    every = ("create", "rearm", "cancel", "cpu", "due", "mem-slab", "mem-rss", "memory")
    for count in unique(row["n"] for row in rows):
        some = {(row["peer"], row["op"]): row for row in rows if row["n"] == count}
        peers = unique(peer for peer, _ in some)
        columns = ("open", "close", "late") if count == 1 else every
        lines += ["a single timer" if count == 1 else f"{count:,} timers",
                  *table(["", *columns], [[peer, *(median(some[peer, name]) if (peer, name) in some else "-"
                                                   for name in columns)] for peer in peers]), ""]
    return lines[:-1]


def by_peer(rows):
    """Return the least cost by operation, with a column for each peer, in a table for each n."""
    lines = []
    for count in unique(row["n"] for row in rows):
        some = [row for row in rows if row["n"] == count]
        lines += [f"{count:,} timers", *pivot(some, ("op",), "peer", lambda row: figure(row["low"])), ""]
    return lines[:-1]


SECTIONS = {
    "ops": ("Single operations", by_count, """\
ns per operation, by the number of pending timeouts. one-at-a-time: each operation waits for the
previous one, as in a program that does other things in between. in-a-loop: the processor overlaps
the cache misses of several. ±: distance of the repetition farthest from the median. bare: the atomic
operations that any design with a word and a list needs, on the same memory in the same order."""),
    "through": ("From schedule to callback", lambda rows: pivot(rows, ("op", "peer"), "n", head=short), """\
ns of all CPU time for each timeout, by the number of timeouts: the call, the engine or the softirq,
the callback, and the wake-ups. hwt-jiffy has ticks of a jiffy, like timer_list; hwt-jiffies reads
jiffies as its clock, too; hwt-bh is a BH wheel with ticks of a jiffy. passes: in one round, in which
all timeouts are scheduled and fire once."""),
    "passes": ("Passes of a life", lambda rows: pivot(rows, ("op",), "n", head=short), """\
The engine in user space: ns per timeout, by the number of timeouts. schedule; collect: link the
submitted timeouts; cascade: move them to a lower level; fire, with the callback."""),
    "slack": ("Slack", slack, """\
Evenly spread deadlines, by slack: wake-ups of the engine, and the share of CPU time that is not
idle."""),
    "storm": ("A storm of connections", by_unit(("peer",)), """\
Connections push back their idle timeouts of 10 s in turn, as fast as possible. push-back: calls per
second. elsewhere: share of time outside of the calls, on one CPU that of the engine or the softirq.
memory: bytes per timeout. At a higher rate each push is shorter: mod_timer() returns at once if the
bucket stays the same. hwt-touch and lazy only store the new deadline; with lazy, the callback arms
the timer again."""),
    "trace": ("A real trace", by_unit(("peer", "n")), """\
The recorded operations of a guest, repeated on the given number of timers: ns per operation.
all-cpu-time: all CPU time of the replay, divided by the operations, with expiries and the sleeps in
between (bare: the replay itself). recorded: the recording's operations, and expired timers (fired)."""),
    "late": ("Lateness", lateness, """\
Time from the deadline to the callback. Delays are between half of the span and the whole span.
busy: a thread on each CPU computes. early: number of callbacks before the deadline."""),
    "neighbours": ("Neighbours", by_unit(("row",)), """\
Shares of one CPU: of a busy process, and of an attacker in another cgroup with 15 contexts, each
with 1,500 periodic timeouts of 1 ms. spins: 15 busy threads instead. silent: makes no further call.
reads: reads all its events. max: cpu.max of 10 %. weight: cpu.weight of 25, with 100 of the other.
nice: nice value 19, in the same cgroup."""),
    "contention": ("Contention on real cores", contention, """\
The hot path in user space: ns of CPU time per operation, by the number of threads. hwt-all: with
the engine's part. locked: the same buckets under one lock."""),
    "scale": ("Many CPUs", scale, """\
Throughput by the number of threads, each on a CPU of its own and with timeouts of its own. hwt: one
engine. hwt-shards: an engine for each thread in user space, for each CPU in the kernel. locked: the
same buckets under one lock, with one thread for callbacks. percpu: buckets and a lock for each
thread, which calls back itself. life: timeouts are scheduled for the present, and called back. All
figures include the engines' part, except arm and cancel in the kernel by the wall clock, which end
with the last call."""),
    "count": ("Instructions and cache lines", lambda rows: pivot(rows, ("op",), "unit", median), """\
Medians of each hot path. collect and expire, which the engine does for all timeouts together, are
averages and depend on the number of timeouts. locked: locked operations. own_lines: the cache lines
of the timeout and its neighbours, which are cold with many timeouts."""),
    "user": ("From user space", user, """\
ns or bytes for each timer. cpu: all timers are due at once; all CPU time until the last event, with
that of interrupts. due: the same by the wall clock, from the deadline on. late: from the deadline
to the program. memory: the kernel's objects (mem-slab) and the process's pages (mem-rss)."""),
    "process": ("Timers in the process", by_peer, """\
ns of CPU time for each operation, with system calls; the least of the repetitions. store: two
stores, and no timer. lazy: libev, with a store for each push, and a timer that looks when it fires.
lists: a list for each duration. put-off-by-it: for each timer, once a period. mix: for each request
of a server, with its part of the turns of the loop."""),
    "aio": ("Timers in Python", by_peer, """\
ns of CPU time for each operation, with the turns of asyncio's loop; the least of the repetitions.
lazy: asyncio, with a store for each push, and a callback that looks. hwt-30ms: with a granularity
of 30 ms. put-off-by-it: for each timer, once a period."""),
    "java": ("Timers in Java", by_peer, """\
ns of CPU time of the process for each operation, with all of its threads, until 300 ms after the
last; the least of the repetitions. netty: HashedWheelTimer with ticks of 100 ms. libhwt: by the
foreign-function interface."""),
}


def about(results):
    """Return the lines on date, machine, kernels and places."""
    facts = {"date": "date", "hwt": "hwt of commit", "machine": "machine", "kernel": "its kernel",
             "uml": "User Mode Linux", "stock": "emulated kernel"}
    lines = [f"{name + ':':18}{results.facts[key]}" for key, name in facts.items() if key in results.facts]
    if results.facts.get("quick"):
        lines.append("A quick run: fewer objects, fewer repetitions. The figures are rough.")
    lines += [f"{place + ':':18}{WHERE.get(place, '')}".rstrip()
              for place in unique(row["where"] for row in results.rows)]
    return lines


def report(results):
    """Return a list of (key, title, lines)."""
    parts = [("about", "hwt: benchmarks", about(results))]
    if unique(row["bench"] for row in results.rows) not in (["contention"], ["passes"], ["scale"], ["process"]):
        parts.append(("targets", "Targets", targets(results)))
    for bench, (title, make, intro) in SECTIONS.items():
        lines = wrapped(intro)
        for where in results.places(bench):
            rows = [row for row in results.find(bench=bench, where=where) if row["peer"] != "clock"]
            if rows:
                lines += ["", f"-- {where} --", "", *make(rows)]
        if results.places(bench):
            parts.append((bench, title, lines))
    return parts


# -- Output ------------------------------------------------------------------


def as_text(parts):
    """Return the report for the terminal."""
    return "\n".join("\n".join([title, "=" * len(title), "", *lines, ""]) for _, title, lines in parts)


def as_markdown(parts, drawn):
    """Return the report for the documentation, with the plots."""
    text = []
    for bench, title, lines in parts:
        text += [f"## {title}", "", "```text", *lines, "```", ""]
        for plot in drawn.get(bench, ()):
            text += [f"![{plot.what}](../docs/plots/{plot.name})", ""]
    return "\n".join(text)


def replace_figures(text, plots):
    """Replace the text between the marks of bench/figures.md, and copy the plots."""
    page = PAGE.read_text(encoding="utf-8")
    begin, end = (page.find(mark) for mark in MARKS)
    if begin < 0 or end < begin:
        sys.exit(f"{PAGE}: needs a line '{MARKS[0]}' and then one '{MARKS[1]}'")
    PAGE.write_text(f"{page[:begin]}{MARKS[0]}\n\n{text}\n{page[end:]}", encoding="utf-8")
    for plot in plots:
        shutil.copy(plot, PLOTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="replace the figures in bench/figures.md, too")
    parser.add_argument("path", metavar="DIR|LOG", type=Path, help="where results.json is, or a log")
    args = parser.parse_args()
    try:
        results = Results(args.path)
    except FileNotFoundError as missing:
        sys.exit(f"{missing.filename}: not found; bench.py writes it")
    out = args.path if args.path.is_dir() else args.path.parent
    parts = report(results)
    (out / "report.txt").write_text(as_text(parts), encoding="utf-8")
    print(as_text(parts))
    try:
        drawn = draw_all(results, out / "plots")
    except FileNotFoundError as missing:
        sys.exit(f"{missing.filename}: not found; no plots without it")
    if args.markdown:
        replace_figures(as_markdown(parts, drawn),
                        [out / "plots" / plot.name for plots in drawn.values() for plot in plots])


if __name__ == "__main__":
    main()
