# SPDX-License-Identifier: GPL-2.0-only
"""Selects the tests of a guest, by the directives in their sources: see tests/README.md."""

import fnmatch
import re
from dataclasses import dataclass

import host
import kernels

DIRECTIVE = re.compile(r"^[\s*#/]*hwt-test:\s*(\S+)\s*(.*?)[\s*/]*$")
WORDS = {"long", "timeout", "args", "load", "noload", "only", "check", "m32", "libs", "disk", "shared", "driver"}
SOURCES = ("tests/kernel/test_*.c", "tests/user/*.c", "tests/kernel/*.sh", "tests/user/*.sh",
           "tests/torture/torture*.sh", "commands/demo.sh")
LIMIT = 60


@dataclass
class Test:
    """One run of a test."""
    name: str
    kind: str               # program, script, module
    limit: int              # seconds; 0: only the guest's own limit
    file: str
    noload: bool = False
    load: str = ""          # parameters of hwt.ko
    disk: str = ""          # a Debian of debian.py
    args: str = ""
    shared: bool = False    # runs beside other tests, on one load of hwt.ko
    driver: str = ""        # one of driver.py

    def line(self):
        """Return the test as a line of the list that tests/vm/tests.sh reads."""
        return "|".join((self.name, self.kind, str(self.limit), str(int(self.noload)), self.load, self.disk,
                         self.file, str(int(self.shared)), self.args))


class Source:
    """A test's source and its directives."""

    def __init__(self, path):
        self.path = path
        self.found = {}
        for line in path.read_text(encoding="utf-8").splitlines()[:40]:
            match = DIRECTIVE.match(line)
            if match:
                self.found.setdefault(match.group(1), []).append(match.group(2))
        self.name = path.stem
        self.kind = "script" if path.suffix == ".sh" else "module" if path.parent.name == "kernel" else "program"

    def has(self, word):
        return word in self.found

    def words(self, word):
        return " ".join(self.found.get(word, ())).split()

    def value(self, word):
        return self.found.get(word, [""])[0]

    def check(self, names):
        """Raise Failed if a directive, or a kernel in a directive, is unknown."""
        where = self.path.relative_to(host.TOP)
        for word in self.found:
            if word not in WORDS:
                raise host.Failed(f"{where}: unknown directive 'hwt-test: {word}'")
        for name in self.words("only") + self.words("check"):
            if name not in names:
                raise host.Failed(f"{where}: 'hwt-test: only' or 'check': no kernel {name}")

    def wanted(self, kernel, quick, named):
        # Other architectures run only modules, the torture, and programs without libraries.
        if kernel.arch != "x86_64" and (self.has("libs") or
                                        self.kind == "script" and self.path.parent.name != "torture"):
            return False
        if quick and self.has("long"):
            return False
        # With @named, run the test only on the kernels of its directive "check".
        if named and self.has("check") and kernel.name not in self.words("check"):
            return False
        if self.has("only"):
            return kernel.name in self.words("only")
        return not (named and kernel.tests == "named")

    def runs(self, kernel, quick=False):
        """Yield a Test for each "args" directive, or one, and one for the 32-bit program."""
        limit = int(self.value("timeout") or LIMIT) * (3 if kernel.slow else 1)
        # The quick tiers run only the first of several.
        args = self.found.get("args", [""])[:1 if quick else None]
        file = self.name + {"module": ".ko", "script": ".sh", "program": ""}[self.kind]
        for number, words in enumerate(args, 1):
            yield Test(self.name if number == 1 else f"{self.name}#{number}", self.kind, limit, file,
                       self.has("noload"), self.value("load"), self.value("disk"), words,
                       # A module cannot be loaded twice at the same time.
                       self.has("shared") and not (self.kind == "module" and len(args) > 1),
                       self.value("driver"))
        # One kernel is enough: all have the same code for 32-bit programs.
        if self.has("m32") and kernel.name == "stock" and (not quick or "quick" in self.words("m32")):
            yield Test(self.name + "-32", self.kind, limit, file + "-32", self.has("noload"), self.value("load"),
                       self.value("disk"), args[0], self.has("shared"))


def sources():
    """Yield the sources of all tests."""
    for pattern in SOURCES:
        for path in sorted(host.TOP.glob(pattern)):
            # Building modules in the checkout leaves *.mod.c.
            if not path.name.endswith(".mod.c"):
                yield Source(path)


def matches(name, pattern):
    """Return whether a name, or the name without its number, matches "A|B"; "!A|B" inverts that."""
    if pattern.startswith("!"):
        return not matches(name, pattern[1:])
    pattern = pattern.removeprefix("@").removeprefix("(").removesuffix(")")
    return any(fnmatch.fnmatchcase(n, p) for p in pattern.split("|") for n in (name, name.split("#")[0]))


def tests(kernel, quick=False, named=False, pattern="*"):
    """Return the tests of a kernel of the table; those that share a load come first."""
    names = {k.name for k in kernels.table()}
    found = []
    for source in sources():
        source.check(names)
        if source.wanted(kernel, quick, named):
            found += [test for test in source.runs(kernel, quick) if matches(test.name, pattern)]
    return sorted(found, key=lambda test: not test.shared)


def silences(found):
    """Return {test: seconds that a guest may be silent while it runs}, for tests with a limit."""
    # Each test prints when it ends. Tests that share a load have twice the time.
    return {test.name: test.limit * (2 if test.shared else 1) + 90 for test in found if test.limit}
