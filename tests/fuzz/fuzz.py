#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make fuzz: boot a guest in which the fuzzer runs, and print its progress.

The fuzzer begins with the programs that earlier runs have kept. The environment may set KERNEL,
MINUTES and SEED, or PROGRAM, to run only that program, AGAIN times.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))
import boot
import host
import kernels
import setup
from listing import Test

HERE = Path(__file__).resolve().parent
KEPT = host.BUILD / "fuzz.kept"
# The same as in tests/user/fuzz.sh.
LOAD = "max_timeouts=300 max_user_timeouts=500"


def arguments(seconds):
    """Return the fuzzer's arguments."""
    if os.environ.get("PROGRAM"):
        return ["--again", os.environ.get("AGAIN") or "100", os.environ["PROGRAM"]]
    words = ["--seconds", str(seconds)]
    if os.environ.get("SEED"):
        words += ["--seed", os.environ["SEED"]]
    return words + (["--corpus", "/hwt/fuzz.kept"] if KEPT.exists() else [])


def keep(programs):
    """Keep a set of programs that reaches every edge reached, for the next run."""
    if programs["corpus"]:
        KEPT.write_text("".join(programs["corpus"]), encoding="utf-8")
        host.say(f"{len(programs['corpus'])} programs, which reach every edge reached, are in {KEPT}")
    else:
        # The run did not reach its end: keep the programs that were new so far.
        with open(KEPT, "a", encoding="utf-8") as file:
            file.writelines(programs["new"])


def main():
    seconds = int(os.environ.get("MINUTES") or 10) * 60
    setup.ensure("guest")
    kernel = kernels.find(os.environ.get("KERNEL") or "debug")
    if kernel.arch != "x86_64":
        raise host.Failed(f"kernel {kernel.name} is for {kernel.arch}, the fuzzer is built for this machine only")
    files = {"hwt/fuzz.arguments": "".join(word + "\n" for word in arguments(seconds))}
    if KEPT.exists():
        files["hwt/fuzz.kept"] = KEPT
    host.logged(host.BUILD / "fuzz.log", "building the fuzzer", ["make", "-C", HERE, f"OUT={host.BUILD}/user"])
    programs = {"run": [], "new": [], "corpus": []}

    def show(line, kernel):
        word, _, program = line.rstrip("\r").partition(" ")
        if not kernel and word in programs:
            programs[word].append(program + "\n")
            # Keep only the last one that was begun.
            del programs["run"][:-1]
        if not kernel and word not in ("run", "corpus") and not word.startswith("hwt-"):
            print(line.rstrip("\r"), flush=True)

    # Leave time for the search for lost memory at the end, which prints nothing.
    good = boot.boot(kernel, "fuzz", [Test("fuzz", "script", seconds + 1800, "fuzz.sh", load=LOAD)],
                     files, watch=show, silence=300, limit=seconds + 1900)
    if not os.environ.get("PROGRAM"):
        keep(programs)
    if not good:
        host.say("the last program; to repeat it, make fuzz PROGRAM='...':")
        print("".join(programs["run"]), end="", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    host.main(main)
