# SPDX-License-Identifier: GPL-2.0-only
"""Litmus tests of the module's barriers, by herd7 and the kernel's memory model."""

import re
from pathlib import Path

import herd
import host
import kernels

HERE = Path(__file__).resolve().parent / "litmus"
BUILD = host.BUILD / "verify/litmus"

# Patterns of barriers, and their weaker forms. Fences are left out.
WEAKER = [
    (r"\b(smp_(?:r|w)?mb|smp_mb__\w+|rcu_read_(?:un)?lock|synchronize_rcu)\(\);", ""),
    (r"\bsmp_store_release\((\w+), ", r"WRITE_ONCE(*\1, "),
    (r"\bsmp_load_acquire\((\w+)\)", r"READ_ONCE(*\1)"),
    (r"\b((?:cmp)?xchg|atomic_\w+_return)\(", r"\1_relaxed("),
    (r"\brcu_assign_pointer\(", "WRITE_ONCE("),
    (r"\brcu_dereference\(", "READ_ONCE("),
]
# Locks stay, except in tests that need no single barrier.
LOCK = r"\bspin_(?:un)?lock\(\w+\);"
MARK = re.compile(r"//\s*([\w.]+(?: [\w.]+)*): (needed|spare)$")


class Litmus:
    """A litmus test, with the marks of its barriers."""

    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8")
        self.name = path.stem
        assert self.text.startswith(f"C {self.name}\n"), f"{path}: another name inside"
        self.expect = (re.findall(r"^ \* expect: (\w+)$", self.text, re.M) or ["Never"])[0]
        self.together = [line.split() for line in
                         re.findall(r"^ \* together: (.*)$", self.text, re.M)]
        self.marks = {}
        for line in self.text.splitlines():
            mark = MARK.search(line)
            if mark:
                verdict = self.marks.setdefault(mark.group(1), mark.group(2))
                assert verdict == mark.group(2), f"{path}: {line}"
            # Each barrier has a mark, and each mark is at a barrier.
            assert bool(mark) == any(re.search(p, line.split("//")[0])
                                     for p, _ in WEAKER), f"{path}: {line}"

    def names(self):
        """Return the names of all barriers in the test."""
        return {name for mark in self.marks for name in mark.split()}

    def needed(self):
        """Return the names of the barriers that the test needs, alone or together with others."""
        return {name for mark, verdict in self.marks.items() if verdict == "needed"
                for name in mark.split()} | {name for names in self.together for name in names}

    def weakened(self, marks):
        """Return the test without these barriers."""
        out = []
        for line in self.text.splitlines():
            mark = MARK.search(line)
            if mark and mark.group(1) in marks:
                for pattern, weaker in WEAKER:
                    line = re.sub(pattern, weaker, line)
            if "lock" in marks:
                line = re.sub(LOCK, "", line)
            out.append(line.split("//")[0].rstrip())
        out[0] = "C " + self.title(marks)
        return "\n".join(out) + "\n"

    def title(self, marks):
        """Return the name of a weakened form."""
        return "+".join([self.name, *marks]).replace(" ", "-")

    def points(self):
        """Yield (the barriers that are left out, the expected outcome, a description)."""
        yield [], self.expect, "with all barriers"
        for mark, verdict in self.marks.items():
            if verdict == "needed":
                yield [mark], "Sometimes", f"needs {mark}"
            else:
                yield [mark], self.expect, f"does not need {mark} alone"
        for names in self.together:
            yield names, "Sometimes", "needs one of " + ", ".join(names)
        # A test without any failing form would show nothing.
        if self.expect == "Never" and not self.together and "needed" not in self.marks.values():
            yield [*self.marks, "lock"], "Sometimes", "needs the lock, or one of its barriers"


def tests():
    """Return all litmus tests."""
    return [Litmus(path) for path in sorted(HERE.glob("*.litmus"))]


def model():
    """Return the directory of the kernel's memory model."""
    return kernels.source("linux-source-6.1") / "tools/memory-model"


def ask(paths):
    """Return the output of herd7 for these files, and a dictionary: test -> observation."""
    _, text = host.said([herd.ensure(), "-conf", "linux-kernel.cfg", *paths], cwd=model())
    return text, dict(re.findall(r"^Observation (\S+) (\w+)", text, re.M))


def check_kernel():
    """Yield a test point: the kernel's own litmus tests have their documented outcomes."""
    want = {}
    for path in sorted((model() / "litmus-tests").glob("*.litmus")):
        result = re.search(r"^ \* Result: (\w+)", path.read_text(encoding="utf-8"), re.M)
        if result:
            want[path] = result.group(1)
    _, said = ask(want)
    wrong = [f"{path}: {said.get(path.stem)}, not {result}"
             for path, result in want.items() if said.get(path.stem) != result]
    yield (f"the kernel's own {len(want)} tests have their documented outcomes",
           wrong or ([] if len(want) > 20 else ["too few"]))


def check(some):
    """Yield (text of a test point, faults) for these tests and their weakened forms."""
    BUILD.mkdir(parents=True, exist_ok=True)
    points = [(test, *point) for test in some for point in test.points()]
    paths = []
    for test, marks, _, _ in points:
        paths.append(BUILD / f"{test.title(marks)}.litmus")
        paths[-1].write_text(test.weakened(marks), encoding="utf-8")
    text, said = ask(paths)
    for test, marks, expected, words in points:
        got = said.get(test.title(marks), "no answer")
        yield f"{test.name}: {words}", [] if got == expected else [f"{got}, not {expected}"]
    # A warning, for example about a plain access, makes the rest of the output useless.
    yield ("herd7 prints no warnings",
           [line for line in text.splitlines() if re.search(r"^(Flag|Warning)|error", line)])


def show(name):
    """Print all outcomes of a test and of its weakened forms."""
    test = Litmus(HERE / f"{name}.litmus")
    list(check([test]))
    print(ask([BUILD / f"{test.title(marks)}.litmus" for marks, _, _ in test.points()])[0])
