# SPDX-License-Identifier: GPL-2.0-only
"""Draw results with gnuplot."""
import math
import re
import subprocess

from results import short, unique

# Each peer's colour and shape of points in all plots. Also distinct for colour-blind readers.
STYLES = {
    "hwt": ("#d55e00", 7), "hwt-coarse": ("#e69f00", 6),
    "hwt-rings": ("#882255", 13), "hwt-uring": ("#117733", 9), "hwt-uring-batch": ("#44aa99", 5),
    "timer_list": ("#0072b2", 5), "timerfd": ("#0072b2", 5),
    "hrtimer": ("#cc79a7", 9),
    "delayed_work": ("#009e73", 11), "io_uring": ("#009e73", 11), "io_uring-batch": ("#56b4e9", 10),
    "libuv": ("#000000", 4), "libev": ("#999933", 12),
    "bare": ("#8c8c8c", 8), "syscall": ("#8c8c8c", 8),
}
OTHERS = ("#332288", 1)
LICENCE = "<!-- SPDX-License-Identifier: GPL-2.0-only -->"


class Plot:
    """A picture of panels with the same axes, and one key."""

    columns = 2

    def __init__(self, name, what, xlabel, ylabel):
        self.name = re.sub(r"[^a-z0-9]+", "-", name.lower()) + ".svg"
        self.what = what
        self.labels = {"x": xlabel, "y": ylabel}
        self.panels = {}

    def add(self, panel, peer, *points):
        """Add points to a peer's line in a panel."""
        self.panels.setdefault(panel, {}).setdefault(peer, []).extend(points)

    def values(self, which):
        """Return all x (0) or y (1) values."""
        return [point[which] for lines in self.panels.values() for line in lines.values() for point in line]

    def axes(self):
        """Return the commands for the axes: x for numbers of objects, y for a cost."""
        costs = self.values(1)
        low, high = min(costs) / 1.2, max(costs) * 1.2
        steps = (1, 2, 5) if high / low < 1000 else (1,)
        marks = [step * 10.0 ** power for power in range(-3, 12) for step in steps]
        return ["set logscale xy", f"set yrange [{low}:{high}]",
                ticks("x", {count: short(count) for count in self.values(0)}),
                ticks("y", {mark: f"{mark:,.9g}" for mark in marks if low < mark < high})]

    def script(self):
        """Return the commands for gnuplot."""
        peers = unique(peer for lines in self.panels.values() for peer in lines)
        places = self.values(0)
        rows = math.ceil(len(self.panels) / self.columns)
        height = 50 + 330 * rows
        lines = [f"set terminal svg size 800,{height} font 'sans-serif,13' background 'white' noenhanced",
                 f"set output '{self.name}'", "set encoding utf8", "set grid lc rgb '#dddddd' lt 1", "set border 3",
                 "set tics nomirror", "unset key", *(f"set {axis}label '{text}'" for axis, text in self.labels.items()),
                 f"set xrange [{min(places) / 1.2}:{max(places) * 1.2}]", *self.axes()]
        # The key has the names in the colours of the lines, in rows at the top.
        for i, peer in enumerate(peers):
            colour, shape = STYLES.get(peer, OTHERS)
            across, down = 0.13 + 0.21 * (i % 4), 1 - (18 + 20 * (i // 4)) / height
            lines.append(f"set label '{peer}' at screen {across},{down} offset 1,-0.3 point pt {shape}"
                         f" ps 0.8 lw 2 lc rgb '{colour}' textcolor rgb '{colour}'")
        lines.append(f"set multiplot layout {rows},{self.columns} margins 0.12,0.98,"
                     f"{55 / height},{1 - 85 / height} spacing 0.13,{115 / height}")
        for title, panel in self.panels.items():
            styles = [(peer, *STYLES.get(peer, OTHERS)) for peer in panel]
            lines += [f"set title '{title}'", "plot " + ", ".join(
                f"'-' with linespoints pt {shape} ps 0.6 lw {3 if peer == 'hwt' else 1.5} lc rgb '{colour}'"
                for peer, colour, shape in styles)]
            for points in panel.values():
                lines += [*(f"{x} {y}" for x, y in points), "e"]
            lines.append("unset label")
        return "\n".join([*lines, "unset multiplot", ""])

    def draw(self, directory):
        """Write the file."""
        subprocess.run(["gnuplot"], input=self.script(), text=True, check=True, cwd=directory)
        path = directory / self.name
        declaration, picture = path.read_text(encoding="utf-8").split("\n", 1)
        path.write_text("\n".join([declaration, LICENCE, picture]), encoding="utf-8")


def ticks(axis, labels):
    """Return the command for the labels of an axis."""
    return f"set {axis}tics (" + ", ".join(f"'{text}' {at}" for at, text in labels.items()) + ")"


def plot_ops(results, where):
    """Yield a plot for each operation: cost against the number of pending timeouts."""
    rows = [row for row in results.find(bench="ops", where=where) if "mode" in row]
    for operation in unique(row["op"] for row in rows):
        plot = Plot(f"ops-{where}-{operation}", f"{operation}: cost against number pending",
                    "timeouts pending", "ns per operation")
        for row in rows:
            if row["op"] == operation:
                plot.add(f"{operation}, {row['mode']}", row["peer"], (row["n"], row["median"]))
        yield plot


def plot_user(results, where):
    """Yield a plot of the cost from user space against the number of timers."""
    plot = Plot(f"user-{where}", f"from user space ({where}): cost against number of timers", "timers", "ns per timer")
    for operation in ("create", "rearm"):
        for row in results.find(bench="user", where=where, op=operation):
            plot.add(operation, row["peer"], (row["n"], row["median"]))
    yield plot


def draw_all(results, directory):
    """Draw all available plots into a directory. Return {bench: [plot, ...]}."""
    directory.mkdir(exist_ok=True)
    drawn = {}
    for bench, plots in (("ops", plot_ops), ("user", plot_user)):
        for where in results.places(bench):
            for plot in plots(results, where):
                if plot.panels:
                    plot.draw(directory)
                    drawn.setdefault(bench, []).append(plot)
    return drawn
