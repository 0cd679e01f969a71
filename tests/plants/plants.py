#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Plants faults, one at a time, and checks that the test named for each notices it. Prints TAP.

The faults are in *.faults beside this file; README.md describes the format. Builds and logs are in
BUILD/plants.
"""
import argparse
import concurrent.futures
import contextlib
import difflib
import fnmatch
import os
import queue
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))
import boot
import build
import host
import kernels
import listing
import tap

HERE = Path(__file__).resolve().parent
OUT = host.BUILD / "plants"
TREE = OUT / "tree"
# every(N) in an edit is replaced by an expression that is true each Nth time.
EVERY = re.compile(r"every\((\d+)\)")
EVERY_C = r"({ static atomic_t planted; atomic_inc_return(\\&planted) % \1 == 0; })"
# In a guest: a failed point; otherwise a failed script, or memory left behind. Not a crash.
NOTICED = re.compile(r"(\w+: )?not ok\b")
OTHERWISE = re.compile(r" # (exit code 1|slab caches left behind.*)$")
EDIT = re.compile(r"(?:(?P<file>[\w/-]+\.\w+): )?(?:(?P<times>\d+)x )?(?P<script>\S.*)")


class Fault:
    """A fault: what is broken, the edits, and the test that must notice it."""

    def __init__(self, subject, name, settings):
        self.subject, self.name = subject, name
        self.settings = dict(settings)
        self.edits = []

    def __str__(self):
        return f"{self.subject}: {self.name}"

    @property
    def test(self):
        return self.settings["test"].split()

    @property
    def log(self):
        return OUT / "logs" / re.sub(r"\W+", "-", str(self))

    def matches(self, pattern):
        """Return whether a pattern matches the subject or the name."""
        return any(fnmatch.fnmatchcase(text, pattern)
                   for text in (self.subject, self.name, str(self)))

    def apply(self):
        """Return {file: faulty text}; raise Failed unless each edit changes its number of lines."""
        texts = {}
        for edit in self.edits:
            found = EDIT.fullmatch(edit)
            files = found["file"] or self.settings["file"]
            script = EVERY.sub(EVERY_C, found["script"])
            changed = 0
            for file in files.split():
                old = texts.get(file) or (host.TOP / file).read_text(encoding="utf-8")
                texts[file] = subprocess.run(["sed", script], input=old, check=True,
                                             stdout=subprocess.PIPE, text=True).stdout
                changed += lines_changed(old, texts[file])
            times = int(found["times"] or 1)
            if changed != times:
                raise host.Failed(f"{self}: '{edit}' changes {changed} lines, not {times}")
        return texts


def lines_changed(old, new):
    """Return the number of lines in which two texts differ."""
    old, new = old.splitlines(), new.splitlines()
    if len(old) == len(new):
        return sum(a != b for a, b in zip(old, new))
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return sum(max(a2 - a1, b2 - b1) for tag, a1, a2, b1, b2 in blocks if tag != "equal")


def read(path):
    """Return the faults of a file."""
    settings, faults = {"tier": "all"}, []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split(None, 1)
        if not words or line.startswith("#"):
            continue
        if words[0].startswith("@"):
            (settings if line[0] == "@" else faults[-1].settings)[words[0][1:]] = words[1]
        elif line[0].isspace():
            faults[-1].edits.append(line.strip())
        else:
            name, *edits = re.split(r"  +|\t+", line, maxsplit=1)
            faults.append(Fault(path.stem, name, settings))
            faults[-1].edits += edits
    return faults


def write(path, text):
    """Write a file unless it has that text already, so that make builds only what changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


def logged(fault, command, mode="w", **options):
    """Run a command with its output in the fault's log; return its exit code."""
    fault.log.parent.mkdir(parents=True, exist_ok=True)
    with open(fault.log, mode, encoding="utf-8") as log:
        return host.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **options)


# --- The tests: each returns what noticed the fault, or a false value -------------------------


def make_unit(fault, room, target, *words):
    """Build a program of tests/unit for a fault, in a directory of its own."""
    if logged(fault, ["make", "-s", "-C", host.TOP / "tests/unit", f"OUT={room}", *words, target]):
        raise host.Failed(f"{fault}: does not build (log: {fault.log})")


def test_wheel(fault, texts, room):
    """Run the unit and random tests, limited to ten times the processor time that they need."""
    for name in ("core/buckets.c", "core/buckets.h"):
        write(room / name, texts.get(name) or (host.TOP / name).read_bytes())
    make_unit(fault, room, "programs", f"WHEEL={room}", "WARN=-w", "SANITIZE=", "OPTIMIZE=-O1")
    tests = {"unit": [room / "unit"], "random": [room / "random", "-o", "300000"]}
    return " and ".join(name for name, command in tests.items()
                        if logged(fault, ["prlimit", "--cpu=2", *command], "a"))


def test_libhwt(fault, texts, room):
    """Run libhwt under the thread sanitizer until it reports a data race, 20 times at most."""
    for file in (host.TOP / "lib").glob("*.[ch]"):
        write(room / file.name, texts.get(f"lib/{file.name}") or file.read_bytes())
    make_unit(fault, room, "threads", f"LIB={room}", "SANITIZE=-fsanitize=thread", "OPTIMIZE=-O1")
    command = ["timeout", "60", room / "threads"]
    for _ in range(20 if texts else 3):
        logged(fault, command, env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1"})
        text = fault.log.read_text(errors="replace")
        if "WARNING: ThreadSanitizer: data race" in text:
            return "the thread sanitizer"
    return None


def test_timers(fault, texts, room):
    """Run the tests of libhwt's timers, limited to ten times the processor time that they need."""
    for file in (*(host.TOP / "lib").glob("*.[chs]*"), host.TOP / "core/buckets.c", host.TOP / "core/buckets.h"):
        name = str(file.relative_to(host.TOP))
        write(room / name, texts.get(name) or file.read_bytes())
    (room / "lib/vendor.sh").chmod(0o755)
    make_unit(fault, room, room / "timers", f"LIB={room}/lib", f"WHEEL={room}", "WARN=-w", "SANITIZE=", "OPTIMIZE=-O1")
    return logged(fault, ["prlimit", "--cpu=20", room / "timers", "1", "200000"], "a") and "timers"


def make_tree(fault, *words):
    """Run a target of the top Makefile in the copy; return the exit code."""
    return logged(fault, ["make", "-s", "-C", TREE, *words],
                  env={**os.environ, "HWT_BUILD": str(TREE / "build")})


def test_torture(fault, seconds, *parameters):
    """Run the torture for some seconds."""
    kernel, logs = "uml", TREE / "build/guest/soak-uml"
    for log in logs.glob("*.log"):
        log.unlink()
    words = " ".join(("seed=1", *parameters))
    make_tree(fault, "soak", f"KERNEL={kernel}", f"HOURS={(int(seconds) + 0.5) / 3600}",
              f"SOAK={words}")
    text = "".join(log.read_text(errors="replace") for log in logs.glob("*.log"))
    if "hwt_torture: begins" not in text:
        raise host.Failed(f"{fault}: the torture did not begin (log: {fault.log})")
    kinds = sorted(set(re.findall(r"hwt_torture: FAILED \(([^)]*)\)", text)))
    reports = re.findall(r"(?:BUG|KASAN): .*|general protection fault.*", text)
    return ", ".join(kinds[:3] + reports[:1])


def test_fuzz(fault, minutes):
    """Run the fuzzer, beginning with the corpus only."""
    (TREE / "build/fuzz.kept").unlink(missing_ok=True)
    logs = TREE / "build/guest/fuzz"
    passed = not make_tree(fault, "fuzz", f"MINUTES={minutes}", f"SEED={os.environ.get('SEED', 1)}")
    text = fault.log.read_text(errors="replace")
    if not re.search("^fuzz: seed", text, re.M):
        raise host.Failed(f"{fault}: the fuzzer did not begin (log: {fault.log})")
    why = re.search(r"kernel log: .*|fuzz: not allowed: .*|FAILED: .*", text)
    if passed or not why:
        return None
    # The host sends an NMI to a guest that hangs. A hang counts only if hwt.ko was executing;
    # otherwise the emulated machine is to blame.
    why = why[0]
    if "NMI received for unknown reason" in why:
        where = re.search(r"NMI received for unknown reason[\s\S]*?(hwt_\S+) \[hwt\]",
                          (logs / "kernel.log").read_text(errors="replace"))
        why = where and f"hangs in {where[1]}"
    programs = len(re.findall("^run ", (logs / "tests.log").read_text(errors="replace"), re.M))
    return why and f"{why}, after {programs} programs"


# ROOMS: tests on the host, each in a directory of its own. TREES: tests in the copy, one at a time.
ROOMS = {"wheel": test_wheel, "libhwt": test_libhwt, "timers": test_timers}
TREES = {"torture": test_torture, "fuzz": test_fuzz}
KINDS = {*ROOMS, *TREES, "guest"}


# --- Running them -----------------------------------------------------------------------------


def copy_tree():
    """Bring the copy up to date with this checkout."""
    files = host.output(["git", "-C", host.TOP, "ls-files", "-z", "--cached", "--others",
                         "--exclude-standard"]).strip("\0").split("\0")
    files = {file for file in files if (host.TOP / file).is_file()}
    known = TREE / "build/copied"
    if known.exists():
        for file in set(known.read_text(encoding="utf-8").split("\n")) - files:
            (TREE / file).unlink(missing_ok=True)
    for file in files:
        write(TREE / file, (host.TOP / file).read_bytes())
        (TREE / file).chmod((host.TOP / file).stat().st_mode)
    write(known, "\n".join(sorted(files)))


def in_room(fault, rooms):
    """Plant a fault in a room, and run its test; return what noticed it, or a false value."""
    kind, *words = fault.test
    room = rooms.get()
    try:
        return ROOMS[kind](fault, fault.apply(), OUT / f"{kind}.{room}", *words)
    finally:
        rooms.put(room)


@contextlib.contextmanager
def planted(fault):
    """Plant a fault in the copy, and restore the copy at the end."""
    texts = fault.apply()
    for file, text in texts.items():
        write(TREE / file, text)
    try:
        yield texts
    finally:
        for file in texts:
            write(TREE / file, (host.TOP / file).read_bytes())


def in_tree(fault):
    """Plant a fault in the copy, and run its test; return what noticed it, or a false value."""
    kind, *words = fault.test
    with planted(fault):
        return TREES[kind](fault, *words)


def verdict(fault, trial):
    """Return (passed, text) for a fault. @trial returns what noticed it."""
    try:
        by = trial()
    except host.Failed as error:
        return False, str(error)
    if not fault.edits:
        return not by, f"{fault}: does not pass: {by}" if by else f"{fault}: passes"
    return bool(by), f"{fault}: {f'noticed by {by}' if by else f'not noticed (log: {fault.log})'}"


# --- Guests: one for all faults of a kernel, each with its own hwt.ko or program --------------


def build_planted(fault, kernel, tests, room):
    """Build hwt.ko or the program with a fault into the room; return a test that uses it."""
    number, test = room.name, tests[fault.test[2]]
    # busybox loads a module a second time if the first load fails.
    test = replace(test, name=f"{test.name}#{number}", shared=False)
    with planted(fault) as texts:
        if any(file.startswith(("lib/", "tools/", "tests/")) for file in texts):
            built = TREE / "build/user" / test.file
            words = ["-C", TREE / "tests/user", f"OUT={built.parent}",
                     f"HWT_KSELFTEST={build.kselftest()}", built]
            test.file = f"../planted/{number}/{test.file}"
        else:
            built = TREE / "hwt.ko"
            words = ["-C", kernel.kdir, f"M={TREE}", *kernel.make_words, "modules"]
            test.load = f"/hwt/planted/{number}/hwt.ko {test.load}"
        if logged(fault, ["make", "-s", f"-j{host.JOBS}", *words]):
            raise host.Failed(f"{fault}: does not build (log: {fault.log})")
    room.mkdir(parents=True)
    # Debug information of each file would add a second to the boot.
    host.output(["strip", "--strip-debug", "-o", room / built.name, built])
    return test


def run_guest(kernel, tests, overlay):
    """Run tests in a guest; return {name of the test: Seen}."""
    # The words of the kernel's tests, so that their builds are reused, but without sparse.
    words = [word for word in build.checked(kernel) if word.startswith("W")]
    machine = boot.start(kernel, f"plants-{kernel.name}", tests, overlay, kernel.name, words, ktests=True, quick=1)
    with open(machine.options.out / "log", "w", encoding="utf-8") as log, contextlib.redirect_stdout(log):
        machine.run()
    return {test.name: Seen(test.name, machine) for test in tests}


class Seen:
    """The results of a test in a guest."""

    def __init__(self, name, machine):
        test = machine.judge.tests.get(name)
        self.lines = lines = test.output + test.log if test else []
        verdicts = [line for line in machine.results.failures()
                    if re.search(rf"/{re.escape(name)}(:| )", line)]
        # The test has not run if an earlier hwt.ko was still loaded.
        self.ran = test and not any("hwt.ko does not load" in line for line in verdicts)
        self.crash = verdicts[0] if verdicts else None
        # Failed points count even if the fault crashed the guest after them.
        self.points = [line for line in lines if NOTICED.match(line)] or [
            line for line in verdicts if OTHERWISE.search(line)]


def in_guest(name, faults):
    """Yield (passed, text) for the faults of a kernel's guests.

    A fault may crash the guest, or keep hwt.ko from unloading. Then the remaining faults are tried
    in another guest.
    """
    kernel = kernels.find(name).get()
    tests = {test.name: test for test in listing.tests(kernel, quick=True)}
    overlay = OUT / f"overlay-{name}"
    shutil.rmtree(overlay, ignore_errors=True)
    left = {}
    for number, fault in enumerate(faults, 1):
        try:
            left[fault] = build_planted(fault, kernel, tests, overlay / "hwt/planted" / str(number))
        except host.Failed as error:
            yield False, str(error)
    while left:
        seen = run_guest(kernel, list(left.values()), overlay)
        for first, (fault, test) in enumerate(list(left.items())):
            mine = seen[test.name]
            if not mine.ran and first:
                break
            del left[fault]
            fault.log.write_text("\n".join(mine.lines) + "\n", encoding="utf-8")
            if not mine.ran:
                yield False, f"{fault}: its test did not run (logs: {host.BUILD}/guest/plants-{name})"
            elif mine.crash and not mine.points:
                yield False, f"{fault}: noticed by no failed point, but {mine.crash}"
            else:
                yield verdict(fault, lambda mine=mine: "".join(mine.points[:1]))


def check_names(fault):
    """Raise Failed if a fault names an unknown kind of test or an unknown test of a guest."""
    kind, *words = fault.test
    # A test with "noload" would itself load hwt.ko without the fault.
    if kind not in KINDS or kind == "guest" and words[1] not in (
            test.name for test in listing.tests(kernels.find(words[0]), quick=True)
            if not test.noload):
        raise host.Failed(f"{fault}: no such quick test: {' '.join(fault.test)}")


def check_apply(faults):
    """Yield (passed, text) for each subject: whether its faults apply, and their tests exist."""
    for subject in dict.fromkeys(fault.subject for fault in faults):
        try:
            for fault in faults:
                if fault.subject == subject:
                    fault.apply()
                    check_names(fault)
            yield True, f"faults apply: {subject}"
        except (host.Failed, OSError, subprocess.CalledProcessError) as error:
            yield False, f"faults apply: {error}"


def try_all(faults):
    """Yield (passed, text) of each fault's trial."""
    rooms = queue.Queue()
    for number in range(host.JOBS):
        rooms.put(number)
    with concurrent.futures.ThreadPoolExecutor(host.JOBS) as pool:
        kinds = [fault for fault in faults if fault.test[0] in ROOMS]
        # The code without faults must pass, or the results for the faults mean nothing.
        whole = [Fault(kind, "as it is", {"test": kind})
                 for kind in dict.fromkeys(fault.test[0] for fault in kinds)]
        yield from pool.map(lambda fault: verdict(fault, lambda: in_room(fault, rooms)),
                            whole + kinds)
    rest = [fault for fault in faults if fault.test[0] not in ROOMS]
    if rest:
        copy_tree()
    guests = [fault for fault in rest if fault.test[0] == "guest"]
    for kernel in dict.fromkeys(fault.test[1] for fault in guests):
        yield from in_guest(kernel, [fault for fault in guests if fault.test[1] == kernel])
    for fault in rest:
        if fault.test[0] in TREES:
            yield verdict(fault, lambda fault=fault: in_tree(fault))


def main():
    """Plants faults, one at a time, and checks that the test named for each notices it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", metavar="PATTERN", nargs="+",
                        help="a subject, or the name of a fault; also of the tier manual")
    parser.add_argument("--apply", action="store_true", help="only check that each fault can be planted")
    args = parser.parse_args()
    faults = [fault for path in sorted(HERE.glob("*.faults")) for fault in read(path)]
    if args.only:
        faults = [fault for fault in faults if any(map(fault.matches, args.only))]
    elif not args.apply:
        faults = [fault for fault in faults if fault.settings["tier"] == "all"]
    if not faults:
        raise host.Failed("no fault matches")
    points = tap.Points()
    print("TAP version 13", flush=True)
    for passed, text in check_apply(faults) if args.apply else try_all(faults):
        points.point(text, passed)
    return points.end()


if __name__ == "__main__":
    host.main(main)
