# SPDX-License-Identifier: GPL-2.0-only
"""What was measured, and how figures are written; for report.py and plots.py."""

import json
import os
import re

# What every measuring program prints.
BENCH = re.compile(r"@bench (.*)$")


def number(text):
    """A value as what it is."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def parsed(line):
    """The names and values of a line with "@bench", or None."""
    match = BENCH.search(line)
    return {name: number(value) for name, value in
            (item.split("=", 1) for item in match.group(1).split())} if match else None


def unique(values):
    """Each once, in the order in which they come first."""
    return list(dict.fromkeys(values))


def short(count):
    """How many."""
    for size, letter in ((1000000, "M"), (1000, "k")):
        if count >= size and count % (size // 10) == 0:
            return f"{count / size:g}{letter}"
    return str(count)


def figure(value):
    """A figure, with no more digits than one wants to read."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def duration(ns):
    """A time, in a unit that fits."""
    for unit, size in (("h", 3600e9), ("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"


class Results:
    """Rows, each a dictionary of what an "@bench" line says and where it was measured."""

    def __init__(self, facts, rows):
        self.facts = facts
        self.rows = rows
        # The two parts of a timer's memory, seen from user space.
        for slab in self.find(bench="user", op="mem-slab"):
            for rss in self.find(bench="user", op="mem-rss", where=slab["where"],
                                 peer=slab["peer"], n=slab["n"]):
                both = {key: slab[key] + rss[key] for key in ("median", "low", "high")}
                self.rows.append({**slab, **both, "op": "memory"})

    @classmethod
    def load(cls, path):
        """From results.json in a directory, or from a log."""
        if os.path.isdir(path):
            with open(os.path.join(path, "results.json"), encoding="utf-8") as file:
                facts = json.load(file)
            return cls(facts, facts.pop("results"))
        with open(path, encoding="utf-8", errors="replace") as file:
            rows = [{"where": "machine", **row} for row in filter(None, map(parsed, file))]
        return cls({}, rows)

    def find(self, **keys):
        """All rows with these values."""
        return [row for row in self.rows
                if all(row.get(key) == value for key, value in keys.items())]

    def places(self, bench):
        """Where a benchmark was run."""
        return unique(row["where"] for row in self.rows if row["bench"] == bench)

    def pair(self, ours, theirs, wanted=1000000):
        """Two rows that match these keys: of the same place, at so many or else the most.

        None if there are none.
        """
        for where in self.places(ours["bench"]):
            rows = [{row["n"]: row for row in self.find(where=where, **keys)}
                    for keys in (ours, theirs)]
            both = rows[0].keys() & rows[1].keys()
            if both:
                count = wanted if wanted in both else max(both)
                return rows[0][count], rows[1][count]
        return None
