#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Verify the life of a timeout and the barriers of the module; print TAP. See README.md.

verify.py [--quick|--deep] [model] [weak] [shards] [litmus]   all if none is named
verify.py one NAME         one configuration of a model, or one litmus test with all its outcomes
verify.py trail MUTATION   how a model fails without a rule, step by step
verify.py table            each barrier: its place, its pairs, the tests that have it
"""

import concurrent.futures
import os
import re
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "vm"))
import barriers
import host
import litmus
import tap

BUILD = host.BUILD / "verify"
MODELS = ["life", "weak", "shards"]
LEVELS = ["quick", "full", "deep"]
DEPTH = 200000
# The memory limit of an explorer, and the most that one has taken. (Not known for "deep".)
MEGABYTES = {"quick": 2000, "full": 8000, "deep": 6000}
TAKES = {"quick": 300, "full": 2000, "deep": 6000}


def table(name, columns):
    """Yield the lines of a table, as lists of fields."""
    for line in (HERE / "model" / name).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            fields = [field.strip() for field in line.split("|")]
            # The macros, in the third field, may contain "|".
            if columns == 4:
                fields = fields[:2] + ["|".join(fields[2:-1])] + fields[-1:]
            assert len(fields) == columns, line
            yield fields


def step(directory, *command, output=None):
    """Run a tool; raise Failed, with the end of its output, if the tool fails."""
    log = directory / "log"
    with open(log, "wb") as file:
        code = host.run(command, cwd=directory, stdout=file, stderr=file)
    if code or (output and not (directory / output).exists()):
        raise host.Failed("\n".join([f"{command[0]} failed in {directory}", *host.tail(log, 12)]))


class Model:
    """A model in Promela, its configurations, and its mutations: a rule or a barrier left out.

    life.pml is explored without partial order reduction, and has all mutations compiled in: the
    environment selects one. The other models are compiled with one mutation at a time.
    """

    def __init__(self, name):
        self.name = name
        self.compiled_in = name == "life"
        self.configs = {c[0]: c for c in table(f"{name}.configs", 4)}
        self.defaults = self.configs.pop("default")[2]
        self.mutations = {m[0]: m for m in table(f"{name}.mutations", 5)}
        self.numbers = {m: str(i + 1) for i, m in enumerate(self.mutations)}

    def variant(self, mutation):
        """Return the build that explores a mutation; "" is the model without mutations."""
        return mutation and ("mutated" if self.compiled_in else mutation)

    def build(self, config, variant, level):
        """Build an explorer, and return its directory."""
        directory = BUILD / "-".join(filter(None, [self.name, config, variant]))
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.iterdir():
            old.unlink()
        (directory / "mutations.h").write_text(
            "".join(f"#define {name} {number}\n" for name, number in self.numbers.items()),
            encoding="ascii")
        values = dict(item.split("=", 1) for item in
                      f"{self.defaults} {self.configs[config][2]}".split())
        macros = [f"-D{name}=({value})" for name, value in values.items()]
        if variant:
            macros.append("-DMUTATED" if self.compiled_in else f"-DMUTATION={variant}")
        step(directory, "gcc", "-E", "-x", "c", "-I.", *macros, "-o", "model.pml",
             HERE / "model" / f"{self.name}.pml")
        step(directory, "spin", "-a", "model.pml", output="pan.c")
        # Only long explorations are worth optimising. Collapse compression, which loses no states,
        # takes half of the memory and twice the time.
        large = self.compiled_in and not variant and level != "quick"
        step(directory, "gcc", *(["-O3", "-march=native"] if large else ["-O0"]), "-w", "-DSAFETY",
             *([] if large and level == "full" else ["-DCOLLAPSE"]), *(["-DNOREDUCE"] if self.compiled_in else []),
             f"-DMEMLIM={MEGABYTES[level]}", "-o", "pan", "pan.c")
        return directory

    def explore(self, directory, mutation, *options):
        """Visit all states; return the result as a dictionary."""
        began = time.monotonic()
        out = directory / f"out-{mutation}"
        with open(out, "wb") as file:
            host.run(["./pan", "-n", *(options or [f"-m{DEPTH}"])], cwd=directory, stdout=file,
                     stderr=file, env={**os.environ, "MUTATION": self.numbers.get(mutation, "0")})
        text = out.read_text(encoding="utf-8", errors="replace")

        def number(pattern):
            match = re.search(pattern, text)
            return int(float(match.group(1))) if match else 0

        error = re.search(r"^pan:1: (.*) \(at depth", text, re.M)
        return {
            "figures": f"{number(r'([0-9.e+]+) states, stored'):,} states, "
                       f"depth {number(r'depth reached ([0-9]+)')}, "
                       f"{time.monotonic() - began:.1f} s, "
                       f"{number(r'([0-9.]+)[ 	]+total actual memory usage')} MB",
            "error": error.group(1) if error else None,
            # The search was not cut off by depth or memory.
            "whole": "errors: 0" in text and "Search not completed" not in text
                     and "max search depth too small" not in text,
            "text": text,
        }

    def judge(self, config, mutation, found):
        """Return (passed, text, notes): no error without a mutation, the expected one with it."""
        error, notes = found["error"], [found["figures"]]
        if not mutation:
            passed = found["whole"]
            verdict = "holds" if passed else f"fails: {error or 'not explored completely'}"
            text = f"{verdict}: {self.configs[config][3]}"
        else:
            _, rule, _, wanted, words = self.mutations[mutation]
            passed = found["whole"] if wanted == "-" else \
                bool(error and re.search(wanted, error))
            verdict = "holds nevertheless" if wanted == "-" else "fails as expected"
            if not passed:
                verdict = f"gives '{error}', not '{wanted}'"
            text = f"{verdict}: without {words}" if self.name == "weak" else f"{verdict}: {words}"
            text += f" ({mutation}, {rule})"
            if error and passed:
                notes.append(f"spin: {error}")
        if not passed:
            notes += found["text"].splitlines()[-12:]
        return passed, f"{self.name} {config} {text}", notes

    def tasks(self, level, pool):
        """Start all explorers of a level; return the futures of their results, in order."""
        configs = [c for c in self.configs
                   if LEVELS.index(self.configs[c][1]) <= LEVELS.index(level)]
        # If a rule is not needed, the search takes as long as that of the configuration.
        wanted = [(c, "") for c in configs] + [
            (m[2], m[0]) for m in self.mutations.values()
            if m[2] in configs and (m[3] != "-" or level != "quick")]
        # One pool runs all tasks in this order, so a task waits only for a build that has begun.
        builds = {}
        for config, mutation in wanted:
            key = config, self.variant(mutation)
            if key not in builds:
                builds[key] = pool.submit(self.build, *key, level)

        def one(config, mutation):
            directory = builds[config, self.variant(mutation)].result()
            return [self.judge(config, mutation, self.explore(directory, mutation))]

        return [pool.submit(one, *pair) for pair in wanted]


def points(function, *args):
    """Return the test points that a function yields as (text, list of faults)."""
    try:
        return [(not faults, text, faults) for text, faults in function(*args)]
    except host.Unavailable:
        return [(True, "the litmus tests # SKIP herd7 cannot be installed here", [])]


def check_transitions():
    """Compare the changes of a state in life.pml with those of core/state.h: yield a test point."""
    directory = BUILD / "transitions"
    directory.mkdir(parents=True, exist_ok=True)
    step(directory, "make", "-s", "-C", HERE.parent / "unit", f"OUT={directory}", f"{directory}/state")
    step(directory, "gcc", "-E", "-P", "-x", "c", "-o", "model.pml", HERE / "model/transitions.pml")
    tables = [sorted(line.strip() for line in host.output(command, cwd=directory).splitlines() if "process" not in line)
              for command in (["./state", "table"], ["spin", "-T", "model.pml"])]
    odd = sorted(set(tables[0]) ^ set(tables[1]))
    yield (f"life and core/state.h agree on {len(tables[0])} changes of a state",
           odd[:12] if odd else [] if len(tables[0]) > 2000 else ["hardly any change was printed"])


def litmus_tasks(pool):
    """Start herd7 on all litmus tests, and the checks of the sources."""
    texts, tests = barriers.sources(), litmus.tests()
    return [pool.submit(points, *task) for task in (
        (litmus.check_kernel,), (litmus.check, tests), (barriers.check, texts, tests),
        (barriers.check_plants, texts, tests))]


def megabytes_free():
    """Return the available memory, including caches."""
    info = Path("/proc/meminfo").read_text(encoding="ascii")
    return int(re.search(r"^MemAvailable:\s*(\d+) kB", info, re.M).group(1)) // 1024


def check(level, parts):
    """Run the parts side by side, and print their results as TAP."""
    if set(parts) - {"litmus"} and not host.have("spin"):
        raise host.Failed("spin is not installed")
    jobs = max(1, min(host.JOBS, megabytes_free() // TAKES[level]))
    printed = tap.Points()
    print("TAP version 13", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = [task for part in parts for task in
                 (litmus_tasks(pool) if part == "litmus" else Model(part).tasks(level, pool))
                 + ([pool.submit(points, check_transitions)] if part == "life" else [])]
        try:
            for task in tasks:
                for passed, text, notes in task.result():
                    printed.point(text, passed, notes)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            host.end_children()
            raise
    return printed.end()


def one(name):
    """Run one configuration, or one litmus test."""
    for model in map(Model, MODELS):
        if name in model.configs:
            found = model.explore(model.build(name, "", "deep"), "")
            passed, text, notes = model.judge(name, "", found)
            print("\n".join([text, *notes]))
            return 0 if passed else 1
    if not (litmus.HERE / f"{name}.litmus").exists():
        raise host.Failed(f"no configuration or litmus test {name}")
    litmus.show(name)
    return 0


def trail(mutation):
    """Print the steps that lead to a mutation's failure, one on each line."""
    model = next((m for m in map(Model, MODELS) if mutation in m.mutations), None)
    if not model:
        raise host.Failed(f"no mutation {mutation}")
    directory = model.build(model.mutations[mutation][2], model.variant(mutation), "full")
    print(model.explore(directory, mutation)["error"])
    if model.compiled_in:
        # spin's simulator does not support c_expr, so the explorer replays the trail.
        print(model.explore(directory, mutation, "-r", "-g")["text"])
    else:
        host.run(["spin", "-t", "-p", "model.pml"], cwd=directory)
    return 0


def main():
    words = sys.argv[1:]
    if words == ["table"]:
        barriers.table(litmus.tests())
        return 0
    if len(words) == 2 and words[0] in ("one", "trail"):
        return (one if words[0] == "one" else trail)(words[1])
    levels = [word[2:] for word in words if word in ("--quick", "--deep")]
    parts = [word for word in words if not word.startswith("--")]
    if len(levels) > 1 or len(levels) + len(parts) != len(words) or \
            set(parts) - {"model", "weak", "shards", "litmus"}:
        sys.exit(__doc__)
    parts = ["life" if part == "model" else part for part in parts or ["litmus", "model", "weak", "shards"]]
    return check(levels[0] if levels else "full", parts)


if __name__ == "__main__":
    host.main(main)
