#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks the module's barriers with the kernel's memory model, and prints TAP.

run.py check      the kernel's own tests; ours, and each with a barrier left out; the tables
run.py one NAME   one of ours, with all that it can come to
run.py table      where each barrier is, what it orders, what needs it
"""

import fnmatch
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.join(os.environ["HWT_BUILD"], "litmus") if "HWT_BUILD" in os.environ else \
    os.path.join(HERE, "build")
# Of get.sh: where herd7 comes from cannot be had here. See suite.sh.
SUITE_NONE = 77

# What a barrier is weakened to, in a litmus test. Fences are left out.
FENCE = r"\b(smp_(?:r|w)?mb|smp_mb__\w+|rcu_read_(?:un)?lock|synchronize_rcu)\(\);"
WEAKER = [
    (FENCE, ""),
    (r"\bsmp_store_release\((\w+), ", r"WRITE_ONCE(*\1, "),
    (r"\bsmp_load_acquire\((\w+)\)", r"READ_ONCE(*\1)"),
    (r"\b((?:cmp)?xchg|atomic_\w+_return)\(", r"\1_relaxed("),
    (r"\brcu_assign_pointer\(", "WRITE_ONCE("),
    (r"\brcu_dereference\(", "READ_ONCE("),
]
# In these tests locks stay, but where it is shown that it is they that matter.
LOCK = r"\bspin_(?:un)?lock\(\w+\);"
MARK = re.compile(r"//\s*([\w.]+): (needed|spare)$")

# What orders, in the module's source. Locks and reference counts do, too; those are the kernel's.
ORDERS = re.compile(
    r"(?<![\w>.])(smp_(?!processor_id)\w+|(?:dma_|virt_)?[rw]?mb|"
    r"(?:atomic(?:64)?|test_bit|set_bit|clear_bit|x?chg|cmpxchg)\w*_(?:acquire|release)|"
    r"set_current_state|set_special_state|prepare_to_wait\w*|wq_has_sleeper|"
    r"synchronize_\w+|call_s?rcu|kfree_rcu|rcu_read_lock\w*|rcu_dereference\w*|"
    r"rcu_assign_pointer|list_\w+_rcu|llist_add\w*|llist_del_\w+|hwt_word_change|"
    r"\w*cmpxchg\w*|xchg\w*|atomic\w*_and_test|atomic\w*_(?:fetch_\w+|\w+_return\w*)|"
    r"test_and_\w+|barrier\w*|"
    r"queue_work\w*|irq_work_queue\w*|wake_up_var|wait_var_event\w*)\s*\(")
# What does not, but is read or written while others do so.
ONCE = re.compile(
    r"(?<![\w>.])(READ_ONCE|WRITE_ONCE|atomic(?:64)?_(?:read|set|inc|dec|add|sub)|"
    r"refcount_(?:read|set)|percpu_counter_read_positive|data_race|"
    r"set_bit|clear_bit|test_bit|find_next_bit|find_first_bit)\(")


def table(name, columns):
    """The lines of a table, as lists of fields."""
    with open(os.path.join(HERE, name), encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                fields = [field.strip() for field in line.split("|")]
                assert len(fields) == columns, line
                yield fields


# -- Litmus tests --------------------------------------------------------------


class Litmus:
    """One of ours, and what its comments say of it."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as text:
            self.text = text.read()
        self.name = os.path.basename(path)[:-len(".litmus")]
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
            # None without a name, none that would not be weakened.
            assert bool(mark) == any(re.search(p, line.split("//")[0])
                                     for p, _ in WEAKER), f"{path}: {line}"

    def weakened(self, names):
        """The test without these."""
        out = []
        for line in self.text.splitlines():
            mark = MARK.search(line)
            if mark and mark.group(1) in names:
                for pattern, weaker in WEAKER:
                    line = re.sub(pattern, weaker, line)
            if "lock" in names:
                line = re.sub(LOCK, "", line)
            # herd7 warns of nothing so.
            out.append(line.split("//")[0].rstrip())
        out[0] = "C " + "+".join([self.name, *names])
        return "\n".join(out) + "\n"

    def points(self):
        """(names of what is left out, what must come of it, in words)."""
        yield [], self.expect, "as it is"
        for name, verdict in self.marks.items():
            if verdict == "needed":
                yield [name], "Sometimes", f"needs {name}"
            else:
                yield [name], self.expect, f"does not need {name} alone"
        for names in self.together:
            yield names, "Sometimes", "needs one of " + ", ".join(names)
        # Nor would it be a test if nothing could come of it at all.
        if self.expect == "Never" and not self.together and "needed" not in self.marks.values():
            yield [*self.marks, "lock"], "Sometimes", "needs the lock, or one of its barriers"


def litmus_all():
    return [Litmus(path) for path in sorted(glob.glob(os.path.join(HERE, "*.litmus")))]


def command(*args):
    return subprocess.run(args, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def herd(paths):
    """What herd7 says of these files."""
    source = command(os.path.join(TOP, "tests/vm/kernels/source.sh"), "linux-source-6.1")
    model = os.path.join(source, "tools/memory-model")
    done = subprocess.run([command(os.path.join(HERE, "get.sh")), "-conf", "linux-kernel.cfg",
                           *paths], cwd=model, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.stdout


def observations(text):
    """Test -> Never, Sometimes or Always."""
    return dict(re.findall(r"^Observation (\S+) (\w+)", text, re.M))


def write(name, text):
    os.makedirs(BUILD, exist_ok=True)
    path = os.path.join(BUILD, name + ".litmus")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def kernel_tests():
    """Files of the kernel's own tests -> what they say is their result."""
    source = command(os.path.join(TOP, "tests/vm/kernels/source.sh"), "linux-source-6.1")
    tests = {}
    for path in sorted(glob.glob(os.path.join(source, "tools/memory-model/litmus-tests/*.litmus"))):
        with open(path, encoding="utf-8") as text:
            result = re.search(r"^ \* Result: (\w+)", text.read(), re.M)
        if result:
            tests[path] = result.group(1)
    return tests


# -- The module's source -------------------------------------------------------


def stripped(text):
    """Without comments and strings, line by line as before."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', text)


def argument(text, start, number):
    """The number-th argument of a call whose parenthesis opens before start."""
    depth, arguments = 0, [""]
    for char in text[start:]:
        depth += char in "([{"
        depth -= char in ")]}"
        if depth < 0:
            break
        if char == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += char
    return arguments[number].strip().lstrip("&")


def sources():
    """Of each file: its name and its lines, each with the function that it is in."""
    for path in sorted(glob.glob(os.path.join(TOP, "hwt*.[ch]"))):
        name, function = os.path.basename(path), "-"
        with open(path, encoding="utf-8") as text:
            lines = stripped(text.read()).split("\n")
        placed = []
        for line in lines:
            begins = re.match(r"[A-Za-z_][\w \t*]*?\b(\w+)\(", line)
            if begins and not line.rstrip().endswith(";"):
                function = begins.group(1)
                line = ""
            placed.append((function, line))
            if line.startswith("}"):
                function = "-"
        yield name, placed


def orders_found():
    """(file, function, what, number in the function) of all that orders."""
    found = []
    for name, lines in sources():
        count = {}
        for function, line in lines:
            for match in ORDERS.finditer(line):
                key = (name, function, match.group(1))
                count[key] = count.get(key, 0) + 1
                found.append((*key, count[key]))
    return found


def once_found():
    """file and expression of all that is read or written while others do so."""
    found = set()
    for name, lines in sources():
        text = "\n".join(line for _, line in lines)
        for match in ONCE.finditer(text):
            bit = match.group(1) in ("set_bit", "clear_bit", "test_bit")
            expression = argument(text, match.end(), 1 if bit else 0)
            # Not data_race(find_first_bit(...)), which is found as the latter.
            if not ONCE.match(expression):
                found.add((name, expression))
    return found


def order_wrong(row):
    """Of a line of the table of orders: what is not where it must be, or None."""
    for name, lines in sources():
        if name == row[0]:
            text = re.sub(r"\s", "", "".join(line for function, line in lines
                                             if function == row[1]))
            at, pieces = 0, row[2].split(" < ")
            for piece in pieces:
                at = text.find(piece, at)
                if at < 0 or text.count(piece) != pieces.count(piece):
                    return f"{row[0]}, {row[1]}(): {piece}"
                at += len(piece)
            return None
    return f"{row[0]}: no such file"


def barriers():
    """The table of them, by where they are."""
    rows = {}
    for row in table("barriers", 7):
        what, _, number = row[3].partition(" #")
        key = (row[1], row[2], what, int(number or 1))
        assert key not in rows, row
        rows[key] = row
    return rows


# -- TAP -----------------------------------------------------------------------


class Tap:
    """Numbered results."""

    def __init__(self):
        self.count = self.failed = 0
        print("TAP version 13", flush=True)

    def point(self, passed, text, *notes):
        self.count += 1
        self.failed += not passed
        print(f"{'ok' if passed else 'not ok'} {self.count} - {text}")
        for note in notes:
            print(f"# {note}")

    def skip(self, text, why):
        self.count += 1
        print(f"ok {self.count} - {text} # SKIP {why}")

    def end(self):
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed else 0


def check_kernel(tap):
    """Is this the model that we think it is?"""
    tests = kernel_tests()
    said = observations(herd(tests))
    wrong = [f"{path}: {said.get(os.path.basename(path)[:-7])}, not {result}"
             for path, result in tests.items()
             if said.get(os.path.basename(path)[:-7]) != result]
    tap.point(len(tests) > 20 and not wrong,
              f"the kernel's own {len(tests)} tests come to what they say", *wrong)


def check_ours(tap, tests):
    points = [(test, *point) for test in tests for point in test.points()]
    paths = [write("+".join([test.name, *names]), test.weakened(names))
             for test, names, _, _ in points]
    text = herd(paths)
    said = observations(text)
    for test, names, expected, words in points:
        got = said.get("+".join([test.name, *names]), "no answer")
        tap.point(got == expected, f"{test.name}: {words}",
                  *([] if got == expected else [f"{got}, not {expected}"]))
    # Of something that is not marked, for one: what herd7 says would mean nothing.
    odd = [line for line in text.splitlines() if re.search(r"^(Flag|Warning)|error", line)]
    tap.point(not odd, "herd7 has nothing to say against the tests", *odd)


def check_tables(tap, tests):
    rows, found = barriers(), orders_found()
    missing = [" ".join(map(str, place)) for place in found if place not in rows]
    gone = [" ".join(map(str, place)) for place in rows if place not in found]
    tap.point(found and not missing and not gone,
              f"the table has each of the {len(found)} places in the source that order something",
              *("not in the table: " + line for line in missing),
              *("not in the source: " + line for line in gone))

    marked = {name for test in tests for name in test.marks}
    idle = sorted({name for row in rows.values() if row[6] == "-"
                   for name in row[0].split()} - marked)
    tap.point(not idle, "each of them is in a test, or the table says why not", *idle)
    names = {name for row in rows.values() for name in row[0].split()}
    strange = sorted(name for name in marked - names
                     if not name.startswith(("kernel.", "program.")))
    tap.point(not strange, "the tests name none that is not there", *strange)
    needed = {name for test in tests for name, verdict in test.marks.items()
              if verdict == "needed"} | {name for test in tests for names in test.together
                                         for name in names}
    said = {row[0] for row in rows.values() if row[6].startswith("spare")}
    wrong = sorted((marked & names) - needed - said) + sorted(said & needed)
    tap.point(not wrong, "those that no test needs are called so, and no others", *wrong)

    orders = list(table("order", 3))
    moved = list(filter(None, map(order_wrong, orders)))
    tap.point(orders and not moved, "what they order comes in the order that the tests have",
              *("not there, earlier, or once more: " + line for line in moved))
    # Of those that are in the table of barriers, none has no place there.
    apart = {row[1] for row in orders}
    stray = sorted({f"{row[1]}, {row[2]}()" for row in rows.values()
                    if row[3].startswith(("smp_", "set_current_state", "synchronize_rcu"))
                    and row[2] not in apart})
    tap.point(not stray, "each barrier that is a call of its own is in that table", *stray)

    once, places = list(table("once", 3)), once_found()
    unknown = [f"{name}: {text}" for name, text in sorted(places)
               if not any(fnmatch.fnmatchcase(text, row[0]) for row in once)]
    unused = [row[0] for row in once
              if not any(fnmatch.fnmatchcase(text, row[0]) for _, text in places)]
    tap.point(places and not unknown and not unused,
              f"each of the {len(places)} variables that are read or written without a lock is "
              "accounted for", *("not in the table: " + line for line in unknown),
              *("not in the source: " + line for line in unused))


def check():
    tap, tests = Tap(), litmus_all()
    code = subprocess.run([os.path.join(HERE, "get.sh")], stdout=subprocess.DEVNULL, check=False).returncode
    if code == SUITE_NONE:
        tap.skip("what the model says of each test", "herd7 cannot be had here")
    elif code:
        tap.point(False, "what the model says of each test", f"herd7: get.sh failed with {code}")
    else:
        check_kernel(tap)
        check_ours(tap, tests)
    check_tables(tap, tests)
    return tap.end()


def one(name):
    test = Litmus(os.path.join(HERE, name + ".litmus"))
    print(herd([write("+".join([test.name, *names]), test.weakened(names))
                for names, _, _ in test.points()]))
    return 0


def show():
    tests = litmus_all()
    for file, function, what, number in sorted(barriers()):
        row = barriers()[file, function, what, number]
        own = row[0].split()
        by = [test.name for test in tests
              if any(test.marks.get(name) == "needed" for name in own)]
        some = [f"{test.name} (or {', '.join(n for n in names if n not in own)})"
                for test in tests for names in test.together if set(own) & set(names)]
        print(f"{row[0]}: {file}, {function}(): {row[3]}\n"
              f"\torders  {row[4]}\n\tpairs   {row[5]}\n"
              f"\tneeded  {', '.join(by + some) or row[6]}")
        if (by or some) and row[6] != "-":
            print(f"\tnote    {row[6]}")
    return 0


def main():
    if sys.argv[1:] == ["check"]:
        return check()
    if sys.argv[1:] == ["table"]:
        return show()
    if len(sys.argv) == 3 and sys.argv[1] == "one":
        return one(sys.argv[2])
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
