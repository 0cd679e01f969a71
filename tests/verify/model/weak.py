#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks the model of the handshakes on a machine that reorders, with spin; prints TAP.

weak.py quick|check|deep   configurations that must hold, mutations that must fail
weak.py trail MUTATION     how a mutation fails, step by step
"""

import os
import re
import subprocess
import sys

import run

CONFIGS = {c[0]: c for c in run.table("weak.configs", 4)}
MUTATIONS = list(run.table("weak.mutations", 5))
NUMBERS = {m[0]: str(i + 1) for i, m in enumerate(MUTATIONS)}


def build(config, mutation=None):
    """From the macros of a configuration to a program that explores it."""
    directory = os.path.join(run.BUILD, "-".join(filter(None, ["weak", config, mutation])))
    os.makedirs(directory, exist_ok=True)
    for name in os.listdir(directory):
        os.unlink(os.path.join(directory, name))
    with open(os.path.join(directory, "mutations.h"), "w", encoding="utf-8") as out:
        out.writelines(f"#define {name} {number}\n" for name, number in NUMBERS.items())
    macros = [f"-D{name}=({value})" for name, value in
              (item.split("=", 1) for item in CONFIGS[config][2].split())]
    if mutation:
        macros.append("-DMUTATION=" + mutation)
    run.command(directory, "gcc", "-E", "-x", "c", "-I.", *macros, "-o", "model.pml",
                os.path.join(run.HERE, "weak.pml"))
    run.command(directory, "spin", "-a", "model.pml", output="pan.c")
    # Collapse compression: exact. What is optimised is explored in seconds less, and compiled
    # in more.
    run.command(directory, "gcc", "-O0", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=4000",
                "-o", "pan", "pan.c")
    return directory


def check(level):
    names = [c[0] for c in CONFIGS.values()
             if run.LEVELS.index(c[1]) <= run.LEVELS.index(level)]
    # That something is not needed takes a look at all there is.
    mutations = [m for m in MUTATIONS if m[2] in names and (m[3] != "-" or level == "deep")]
    tap = run.Tap(len(names) + len(mutations))
    # What is deep here takes no more than the rest.
    for name, found in zip(names, run.each(lambda n: run.explore(build(n)), names, "check")):
        verdict = "holds" if found["whole"] else f"fails: {found['error'] or 'not explored whole'}"
        tap.point(found["whole"], f"weak {name} {verdict}: {CONFIGS[name][3]}", found)
    for mutation, found in zip(mutations,
                               run.each(lambda m: run.explore(build(m[2], m[0])), mutations,
                                        "check")):
        mutation, barrier, config, wanted, text = mutation
        error = found["error"]
        if wanted == "-":
            passed, verdict = found["whole"], "holds even so"
        else:
            passed, verdict = bool(error and re.search(wanted, error)), "fails as it must"
        if not passed:
            verdict = f"gives '{error}', not '{wanted}'"
        tap.point(passed, f"weak {config} {verdict}: without {text} ({mutation}, {barrier})", found)
    return 1 if tap.failed else 0


def trail(name):
    """What leads to a mutation's failure, one line a step."""
    mutation = next(m for m in MUTATIONS if m[0] == name)
    directory = build(mutation[2], name)
    print(run.explore(directory)["error"])
    subprocess.run(["spin", "-t", "-p", "model.pml"], cwd=directory, check=False)
    return 0


def main():
    if len(sys.argv) == 2 and sys.argv[1] in run.LEVELS:
        return check(sys.argv[1])
    if len(sys.argv) == 3 and sys.argv[1] == "trail":
        return trail(sys.argv[2])
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
