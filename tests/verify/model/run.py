#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks the model of a timeout's life with spin, and prints TAP.

run.py quick|check|deep   configurations that must hold, mutations that must fail
run.py one NAME           one configuration
run.py trail MUTATION     how a mutation fails, step by step
"""

import concurrent.futures
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.environ["HWT_BUILD"], "model") if "HWT_BUILD" in os.environ else \
    os.path.join(HERE, "build")
LEVELS = ["quick", "check", "deep"]
DEPTH = 200000
JOBS = int(os.environ.get("HWT_JOBS") or os.cpu_count() or 1)
# How much an explorer may take, and what it does take, at the most. (Of the deep ones nobody knows.)
MEGABYTES = {"quick": 2000, "check": 4000, "deep": 6000}
TAKES = {"quick": 300, "check": 800, "deep": 6000}


def table(name, columns):
    """The lines of a table, as lists of fields."""
    with open(os.path.join(HERE, name), encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                fields = [field.strip() for field in line.split("|")]
                # Macros may have "|" in them: they are all but the outer fields.
                if columns == 4:
                    fields = fields[:2] + ["|".join(fields[2:-1])] + fields[-1:]
                assert len(fields) == columns, line
                yield fields


# What the assertions of life.pml mean.
MEANINGS = [
    ("invalid end state", "a deadlock, or a _sync that would poll for ever"),
    ("lost_wake_up", "the engine sleeps past a deadline"),
    ("never_let_go", "the engine sleeps, and a cancelled timeout stays held"),
    ("left_deferred", "the engine sleeps, and its release waits for it"),
    ("freed", "used after it was freed, or never freed"),
    ("releasing", "_sync has returned too early"),
    ("fresh", "fired with the period of before"),
    ("!(live", "scheduled, and let go without having fired"),
    ("live", "fired or handed back after a cancel, or twice"),
    ("busy", "two callbacks of one timeout at once"),
    ("ops", "the callbacks of another life"),
    ("owed", "a hold was not released, or twice"),
    ("word[1]&7", "held when stop had returned"),
    ("current", "a callback was executing when stop had returned"),
]

CONFIGS = {c[0]: c for c in table("configs", 4)}
MUTATIONS = list(table("mutations", 5))
NUMBERS = {m[0]: str(i + 1) for i, m in enumerate(MUTATIONS)}


def command(directory, *args, output=None):
    """Runs a tool; on failure its output is the explanation."""
    done = subprocess.run(args, cwd=directory, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode or (output and not os.path.exists(os.path.join(directory, output))):
        sys.stdout.write("".join(f"# {line}\n" for line in done.stdout.splitlines()))
        print(f"Bail out! {args[0]} failed in {directory}")
        sys.exit(1)


def megabytes_free():
    """With what is cached, where the kernel says how much that is."""
    try:
        with open("/proc/meminfo", encoding="ascii") as info:
            return int(re.search(r"^MemAvailable:\s*(\d+) kB", info.read(), re.M).group(1)) // 1024
    except (OSError, AttributeError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024 // 1024


def each(work, items, level):
    """What work returns for each item, in their order; as many at once as there may be,
    and have memory."""
    jobs = max(1, min(JOBS, megabytes_free() // TAKES[level]))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(work, items)


def build(config, mutated, optimise, megabytes):
    """From the macros of a configuration to a program that explores it."""
    directory = os.path.join(BUILD, config + ("-mutated" if mutated else ""))
    os.makedirs(directory, exist_ok=True)
    for name in os.listdir(directory):
        os.unlink(os.path.join(directory, name))
    with open(os.path.join(directory, "mutations.h"), "w", encoding="utf-8") as out:
        out.writelines(f"#define {name} {number}\n" for name, number in NUMBERS.items())
    macros = [f"-D{name}=({value})" for name, value in
              (item.split("=", 1) for item in CONFIGS[config][2].split())]
    if mutated:
        macros.append("-DMUTATED")
    command(directory, "gcc", "-E", "-x", "c", "-I.", *macros, "-o", "model.pml",
            os.path.join(HERE, "life.pml"))
    command(directory, "spin", "-a", "model.pml", output="pan.c")
    # Collapse compression: exact. No bit-state hashing, no partial order reduction.

    command(directory, "gcc", optimise, "-w", "-DSAFETY", "-DCOLLAPSE",
            "-DNOREDUCE",
            f"-DMEMLIM={megabytes}", "-o", "pan", "pan.c")
    return directory


def explore(directory, mutation="0"):
    """Runs it. Returns what it found, as a dictionary."""
    began = time.monotonic()
    name = os.path.join(directory, "out-" + mutation)
    with open(name, "w", encoding="utf-8") as out:
        subprocess.run(["./pan", "-n", f"-m{DEPTH}"], cwd=directory, stdout=out,
                       stderr=subprocess.STDOUT, check=False,
                       env={**os.environ, "MUTATION": mutation})
    with open(name, encoding="utf-8") as out:
        text = out.read()

    def number(pattern):
        match = re.search(pattern, text)
        return float(match.group(1)) if match else 0

    error = re.search(r"^pan:1: (.*) \(at depth", text, re.M)
    usage = number(r"([\d.]+)\s+total actual memory usage")
    return {
        "seconds": time.monotonic() - began,
        "states": int(number(r"([\d.e+]+) states, stored")),
        "depth": int(number(r"depth reached (\d+)")),
        "megabytes": int(usage),
        "error": error.group(1) if error else None,
        # Nothing was cut off: not by depth, not by memory.
        "whole": "errors: 0" in text and "Search not completed" not in text
                 and "max search depth too small" not in text,
        "text": text,
    }


class Tap:
    """Numbered results."""

    def __init__(self, plan):
        self.count = self.failed = 0
        print(f"TAP version 13\n1..{plan}", flush=True)

    def point(self, passed, text, found):
        """One result, with its figures."""
        self.count += 1
        self.failed += not passed
        print(f"{'ok' if passed else 'not ok'} {self.count} - {text}")
        print(f"# {found['states']:,} states, depth {found['depth']}, "
              f"{found['seconds']:.1f} s, {found['megabytes']} MB", flush=True)


def explore_whole(name, level):
    """Every state of a configuration."""
    optimise = "-O0" if level == "quick" else "-O1"
    return explore(build(name, False, optimise, MEGABYTES[level]))


def must_hold(tap, name, found):
    """That is without an error."""
    verdict = "holds" if found["whole"] else f"fails: {found['error'] or 'not explored whole'}"
    tap.point(found["whole"], f"{name} {verdict}: {CONFIGS[name][3]}", found)
    if not found["whole"]:
        for line in found["text"].splitlines()[-12:]:
            print("#   " + line)


def must_fail(tap, mutation, found):
    """A rule left out: the right error must be found; or none, where "-" says so."""
    name, rule, config, wanted, text = mutation
    error = found["error"]
    if wanted == "-":
        passed, verdict = found["whole"], "holds even so"
    else:
        passed, verdict = bool(error and re.search(wanted, error)), "fails as it must"
    if not passed:
        verdict = f"gives '{error}', not '{wanted}'"
    tap.point(passed, f"{config} {verdict}: {text} ({name}, {rule})", found)
    if error and passed:
        print(f"# spin: {error}: {next((m for e, m in MEANINGS if e in error), '?')}")


def run(level):
    """All configurations and mutations of a level."""
    names = [c[0] for c in CONFIGS.values() if LEVELS.index(c[1]) <= LEVELS.index(level)]
    mutations = MUTATIONS
    if level == "quick":
        mutations = [m for m in MUTATIONS if m[2] in names]
    tap = Tap(len(names) + len(mutations))
    for name, found in zip(names, each(lambda n: explore_whole(n, level), names, level)):
        must_hold(tap, name, found)
    configs = sorted({m[2] for m in mutations})
    built = dict(zip(configs, each(lambda c: build(c, True, "-O0", MEGABYTES[level]), configs,
                                   level)))
    for mutation, found in zip(mutations, each(lambda m: explore(built[m[2]], NUMBERS[m[0]]),
                                               mutations, level)):
        must_fail(tap, mutation, found)
    return 1 if tap.failed else 0


def trail(name):
    """What leads to a mutation's failure, one line a step."""
    mutation = next(m for m in MUTATIONS if m[0] == name)
    directory = build(mutation[2], True, "-O0", MEGABYTES["check"])
    print(explore(directory, NUMBERS[name])["error"])
    # spin's own simulator knows no c_expr: the explorer replays it.
    replay = subprocess.run(["./pan", "-r", "-g", "-n"], cwd=directory, text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={**os.environ, "MUTATION": NUMBERS[name]})
    print(replay.stdout)
    return 0


def main():
    if len(sys.argv) == 2 and sys.argv[1] in LEVELS:
        return run(sys.argv[1])
    if len(sys.argv) == 3 and sys.argv[1] == "one":
        tap = Tap(1)
        must_hold(tap, sys.argv[2], explore_whole(sys.argv[2], "deep"))
        return tap.failed
    if len(sys.argv) == 3 and sys.argv[1] == "trail":
        return trail(sys.argv[2])
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
