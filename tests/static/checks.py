# SPDX-License-Identifier: GPL-2.0-only
"""What the static checks share: their list, the files of the tree, commands, verdicts that stay."""
import fnmatch
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))
import host
import kernels

OUT = host.BUILD / "static"
# Files that were found all right, in this or another checkout.
PASSED = host.CACHE / "static"
CHECKS = {}


class Check:
    """A check: its name, whether it is a quick one, and its function.

    The function yields what is wrong, line by line. It may also yield functions that do so: these
    run side by side.
    """

    def __init__(self, function, quick):
        self.name = function.__name__.replace("_", "-")
        self.quick = quick
        self.function = function
        self.problems, self.parts = [], []

    def begin(self, pool):
        """Run the check's function, and leave the functions that it yields to the pool."""
        def collect():
            for found in self.function():
                if callable(found):
                    self.parts.append(pool.submit(found_by, found))
                else:
                    yield found

        self.problems = found_by(collect)

    def end(self):
        """Wait for the functions that were left to the pool."""
        for part in self.parts:
            self.problems += part.result()
        self.problems = [line for line in self.problems if line]


def check(function=None, quick=False):
    """Register a check. Those with quick are part of "make check"."""
    if function is None:
        return functools.partial(check, quick=quick)
    made = Check(function, quick)
    CHECKS[made.name] = made
    return function


def found_by(function):
    """Return what a function finds. A check that breaks has found something, and the others go on."""
    try:
        return list(function())
    except (host.Failed, OSError) as error:
        return [str(error)]
    except Exception:                           # pylint: disable=broad-except
        return traceback.format_exc().splitlines()


# --- Commands --------------------------------------------------------------------------------

def run(*command, **options):
    """Run a command in the top directory, and return its exit code and what it says."""
    return host.said(command, **{"cwd": host.TOP, "stdin": subprocess.DEVNULL, **options})


def problems(*command, **options):
    """Return what is wrong by a command that says nothing and succeeds if all is well."""
    code, text = run(*command, **options)
    lines = text.splitlines()
    return lines + [f"{command[0]}: exit code {code}"] if code and not lines else lines


def output(*command, **options):
    """Return what a command prints; Failed if it fails."""
    code, text = run(*command, **options)
    if code:
        raise host.Failed(f"{' '.join(map(str, command))}: exit code {code}\n{text}")
    return text


# --- Files -----------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def sources():
    """Return all files of the tree."""
    return sorted(subprocess.run(["tools/sources.sh"], cwd=host.TOP, stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.splitlines())


def files(*patterns):
    """Return the files that match one of the patterns, whose "*" includes "/"."""
    found = [file for file in sources()
             if any(fnmatch.fnmatchcase(file, pattern) for pattern in patterns)]
    if not found:
        raise host.Failed(f"no file is called {' or '.join(patterns)}")
    return found


def scripts(language, *suffixes):
    """Return the files with a suffix, and those without one that say what their interpreter is."""
    return [file for file in sources() if file.endswith(suffixes) or
            ("." not in Path(file).name and first_line(file).startswith("#!") and
             language in first_line(file))]


def read(file):
    """Return the text of a file of the tree."""
    return (host.TOP / file).read_text(encoding="utf-8", errors="replace")


def first_line(file):
    """Return the first line of a file of the tree."""
    with open(host.TOP / file, encoding="utf-8", errors="replace") as lines:
        return lines.readline()


def kernel_source():
    """Return the directory of the kernel's source, which has the kernel's own tools."""
    return kernels.source("linux-source-6.1")


# --- Verdicts that stay ----------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def digest(*paths):
    """Return a hash of the contents of files."""
    total = hashlib.sha256()
    for path in paths:
        total.update(hashlib.sha256((host.TOP / path).read_bytes()).digest())
    return total.hexdigest()


@functools.lru_cache(maxsize=None)
def program(name):
    """Return which build of a program this is."""
    path = os.path.realpath(shutil.which(name) or "")
    if not os.path.isfile(path):
        raise host.Failed(f"{name} is not there: make setup")
    return f"{path} {os.path.getsize(path)} {os.stat(path).st_mtime_ns}"


def once(function, group, *facts, size=1):
    """Yield functions that find what is wrong with files, but for those known to be all right.

    Each is given that many files, which are all right if it finds nothing. The verdict depends on the
    check's own source, a file and its name, and the facts.
    """
    def verdict(file):
        words = [function.__qualname__, digest(function.__code__.co_filename), file, digest(file), *facts]
        return PASSED / hashlib.sha256("\n".join(words).encode()).hexdigest()

    def find(part):
        found = [line for line in function(*part) if line]
        if not found:
            for file in part:
                verdict(file).touch()
        return found

    unknown = [file for file in group if not verdict(file).exists()]
    for first in range(0, len(unknown), size):
        yield functools.partial(find, unknown[first:first + size])
