# SPDX-License-Identifier: GPL-2.0-only
"""Shared by all scripts on the host: paths, messages, child processes that end with the script.

Each child process is started in a process group of its own and is registered here. On SIGINT,
SIGTERM, SIGHUP, an exception or a normal exit all registered groups are killed, so that no child
outlives its script.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# Shared by all checkouts of this user, and kept when a checkout is removed.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hwt"
# Everything that the tests build from this checkout.
BUILD = Path(os.environ.get("HWT_BUILD") or TOP / "build").absolute()
# First the emulator that emulator.py may have fetched. modprobe and depmod are not in the PATH of a
# Debian user.
os.environ["PATH"] = f"{CACHE}/qemu/bin:{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"

JOBS = int(os.environ.get("HWT_JOBS") or os.cpu_count() or 1)
# Seconds for children to end. A script has half of the time of its parent script, so that it ends
# before the parent kills it.
GRACE = float(os.environ.get("HWT_GRACE") or 8)
os.environ["HWT_GRACE"] = str(GRACE / 2)


class Failed(Exception):
    """A step of the set-up or of a build did not work; the text says which."""


class Unavailable(Failed):
    """Something is not available on this machine."""


def say(text):
    """Print a message to standard error; standard output is for results."""
    print(f"[hwt] {text}", file=sys.stderr, flush=True)


def have(program):
    """Return the path of a program, or None."""
    return shutil.which(program)


# --- Child processes -------------------------------------------------------------------------

_children = set()
_children_lock = threading.Lock()
# @starting: the main thread is in Popen(); @signal: the signal that has arrived meanwhile.
_main = types.SimpleNamespace(starting=False, signal=0)


def start(command, **options):
    """Start a command in a process group of its own, which end_children() kills.

    The returned object's wait() does not unregister the group: call finished() after it, or use
    run().
    """
    command = [str(word) for word in command]
    # The lock keeps end_children() from running between the start and the registration. A signal's
    # exception waits until then: raised in Popen(), it would lose the child.
    main_thread = threading.current_thread() is threading.main_thread()
    with _children_lock:
        _main.starting = main_thread
        try:
            child = subprocess.Popen(command, process_group=0, **options)
            _children.add(child)
        finally:
            _main.starting = False
    if main_thread and _main.signal:
        raise Interrupted(_main.signal)
    return child


def finished(child):
    """Kill the rest of a child's process group, and unregister it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    with _children_lock:
        _children.discard(child)


def end_children():
    """End all children: SIGTERM, then SIGKILL to each process group that is left."""
    with _children_lock:
        children = list(_children)
        _children.clear()
    for child in children:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGTERM)
    end = time.monotonic() + GRACE
    for child in children:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, end - time.monotonic()))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1)


class Interrupted(BaseException):
    """A signal asked this script to end."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


def _interrupt(number, _frame):
    # Ignore further signals, so that they do not interrupt the clean-up.
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    if not _main.starting:
        raise Interrupted(number)
    _main.signal = number


def main(function):
    """Run a script's main function, end all children, and exit with its result."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A shell ignores SIGINT for its background jobs: keep that.
        if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGTERM:
            signal.signal(number, _interrupt)
    code = 1
    try:
        code = function()
    except Failed as error:
        say(f"error: {error}")
    except Interrupted as error:
        say(f"interrupted ({signal.Signals(error.number).name})")
        code = 128 + error.number
    finally:
        end_children()
    sys.stdout.flush()
    # Do not wait for threads that still wait for a killed child.
    os._exit(code or 0)


def run(command, **options):
    """Run a command to its end, and return its exit code. @options: for Popen."""
    child = start(command, **options)
    try:
        return child.wait()
    finally:
        finished(child)


def said(command, stderr=subprocess.STDOUT, **options):
    """Run a command to its end, and return its exit code and its output."""
    child = start(command, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace", **options)
    try:
        text, _ = child.communicate()
    finally:
        finished(child)
    return child.returncode, text


def output(command, **options):
    """Return a command's output without the last newline; raise Failed if the command fails."""
    code, text = said(command, stderr=None, **options)
    if code:
        raise Failed(f"{' '.join(map(str, command))}: exit code {code}")
    return text.rstrip("\n")


def logged(log, what, command, **options):
    """Run a command with its output in a file, and report progress every 15 seconds.

    If the command fails, print the end of the log and raise Failed.
    """
    log = Path(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"{what} (log: {log})")
    begin = told = time.monotonic()
    with open(log, "wb") as file:
        child = start(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, **options)
    try:
        while child.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(0.5)
            if time.monotonic() - told >= 15:
                told = time.monotonic()
                say(f"  ... {told - begin:.0f} s: {last_line(log)[:60]}")
    finally:
        finished(child)
    if child.returncode:
        print("\n".join(tail(log, 30)), file=sys.stderr, flush=True)
        raise Failed(f"failed after {time.monotonic() - begin:.0f} s: {what}")


def tail(path, count):
    """Return the last lines of a text file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()[-count:]


def last_line(path):
    """Return the last line of a text file that is not blank."""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 4096))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")


def root_words():
    """Return the words before a command that needs root: none, or sudo."""
    if os.geteuid() == 0:
        return []
    if not have("sudo"):
        raise Failed("this needs root, or sudo")
    if subprocess.run(["sudo", "-n", "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        raise Failed("sudo failed: run as root, or allow sudo without a password")
    return ["sudo", "-n"]


def as_root(command, **options):
    """Run a command as root; raise Failed if it fails."""
    if run(root_words() + list(command), **options):
        raise Failed("as root: " + " ".join(map(str, command)))


@contextlib.contextmanager
def lock(name):
    """Hold a lock that all checkouts of this user share."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f".lock-{name}", "w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that holds '{name}'")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
