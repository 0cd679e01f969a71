# SPDX-License-Identifier: GPL-2.0-only
"""Shared by the static checks: their list, the files of the tree, commands, cached verdicts."""
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
# Files that passed a check, in this or another checkout.
PASSED = host.CACHE / "static"
CHECKS = {}


class Check:
    """A check: its name, whether it is a quick one, and its function.

    The function yields the problems, line by line. It may also yield functions that return or yield
    problems; these run in parallel.
    """

    def __init__(self, function, quick):
        self.name = function.__name__.replace("_", "-")
        self.quick = quick
        self.function = function
        self.problems, self.parts = [], []

    def begin(self, pool):
        """Run the check's function, and submit the functions that it yields to the pool."""
        def collect():
            for found in self.function():
                if callable(found):
                    self.parts.append(pool.submit(found_by, found))
                else:
                    yield found

        self.problems = found_by(collect)

    def end(self):
        """Wait for the functions in the pool."""
        for part in self.parts:
            self.problems += part.result()
        self.problems = [line for line in self.problems if line]


def check(function=None, quick=False):
    """Register a check. Checks with @quick are part of "make check"."""
    if function is None:
        return functools.partial(check, quick=quick)
    made = Check(function, quick)
    CHECKS[made.name] = made
    return function


def found_by(function):
    """Return the problems that a function finds. An exception is a problem, too."""
    try:
        return list(function())
    except (host.Failed, OSError) as error:
        return [str(error)]
    except Exception:                           # pylint: disable=broad-except
        return traceback.format_exc().splitlines()


# --- Commands --------------------------------------------------------------------------------

def run(*command, **options):
    """Run a command in the top directory, and return its exit code and its output."""
    return host.said(command, **{"cwd": host.TOP, "stdin": subprocess.DEVNULL, **options})


def problems(*command, **options):
    """Return the output of a command that prints only problems; its failure is a problem, too."""
    code, text = run(*command, **options)
    lines = text.splitlines()
    return lines + [f"{command[0]}: exit code {code}"] if code and not lines else lines


def output(*command, **options):
    """Return a command's output; raise Failed if the command fails."""
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
    """Return the files that match one of the patterns, in which "*" matches "/", too."""
    found = [file for file in sources()
             if any(fnmatch.fnmatchcase(file, pattern) for pattern in patterns)]
    if not found:
        raise host.Failed(f"no file matches {' or '.join(patterns)}")
    return found


def scripts(language, *suffixes):
    """Return the files with a suffix, and those without one whose first line names the language."""
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


# --- Cached verdicts -------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def digest(*paths):
    """Return a hash of the contents of files."""
    total = hashlib.sha256()
    for path in paths:
        total.update(hashlib.sha256((host.TOP / path).read_bytes()).digest())
    return total.hexdigest()


@functools.lru_cache(maxsize=None)
def program(name):
    """Return a text that identifies the build of a program."""
    path = os.path.realpath(shutil.which(name) or "")
    if not os.path.isfile(path):
        raise host.Failed(f"{name} is not installed: run make setup")
    return f"{path} {os.path.getsize(path)} {os.stat(path).st_mtime_ns}"


def once(function, group, *facts, size=1):
    """Yield functions that check files, except the files that are known to pass.

    Each function checks @size files, which pass if it finds nothing. A verdict is cached by the
    source of the check, a file and its name, and the facts.
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
