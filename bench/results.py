# SPDX-License-Identifier: GPL-2.0-only
"""Results of the measuring programs, and the format of figures."""
import json
import re
import statistics

# A line of a measuring program.
BENCH = re.compile(r"@bench (.*)$", re.M)


def number(text):
    """Convert a value to its type."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def parsed(text):
    """Return the rows of "@bench" lines. Lines that differ in the value only are repetitions."""
    found = {}
    for match in BENCH.finditer(text):
        row = {name: number(value) for name, value in (item.split("=", 1) for item in match[1].split())}
        value = row.pop("value", None)
        found.setdefault(tuple(row.items()), []).append(value)
    return [dict(row) if values[0] is None else
            {**dict(row), "median": statistics.median(values), "low": min(values), "high": max(values),
             "runs": len(values)} for row, values in found.items()]


def unique(values):
    """Return each value once, in the order of their first occurrence."""
    return list(dict.fromkeys(values))


def short(count):
    """Write a number of objects."""
    for size, letter in ((1000000, "M"), (1000, "k")):
        if count >= size and count % (size // 10) == 0:
            return f"{count / size:g}{letter}"
    return str(count)


def figure(value):
    """Write a figure with few digits."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def duration(ns):
    """Write a time in a unit that fits."""
    for unit, size in (("h", 3600e9), ("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"


class Results:
    """Rows, each a dictionary with the names of an "@bench" line and where it was measured."""

    def __init__(self, path):
        """Load results.json from a directory, or a log."""
        if path.is_dir():
            self.facts = json.loads((path / "results.json").read_text(encoding="utf-8"))
            self.rows = self.facts.pop("results")
        else:
            text = path.read_text(encoding="utf-8", errors="replace")
            self.facts, self.rows = {}, [{"where": "machine", **row} for row in parsed(text)]
        # Add the two parts of a timer's memory, seen from user space.
        for slab in self.find(bench="user", op="mem-slab"):
            for rss in self.find(bench="user", op="mem-rss", **{key: slab[key] for key in ("where", "peer", "n")}):
                both = {key: slab[key] + rss[key] for key in ("median", "low", "high")}
                self.rows.append({**slab, **both, "op": "memory"})

    def find(self, **keys):
        """Return all rows with these values."""
        return [row for row in self.rows if all(row.get(key) == value for key, value in keys.items())]

    def places(self, bench):
        """Return the places where a benchmark was run."""
        return unique(row["where"] for row in self.rows if row["bench"] == bench)

    def pair(self, ours, theirs, wanted=1000000):
        """Return two rows of one place that match the keys, with @wanted objects or the most."""
        for where in self.places(ours["bench"]):
            rows = [{row["n"]: row for row in self.find(where=where, **keys)} for keys in (ours, theirs)]
            both = rows[0].keys() & rows[1].keys()
            if both:
                count = wanted if wanted in both else max(both)
                return rows[0][count], rows[1][count]
        return None
