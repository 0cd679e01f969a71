# SPDX-License-Identifier: GPL-2.0-only
"""Check the names and pairs of the barriers in the module's sources. See README.md.

A comment above a loop or a chain of else also belongs to the conditions in and after it.
"""

import re
from collections import namedtuple

import host

# Operations that order memory accesses, except locks and reference counts.
ORDERS = re.compile(
    r"(?<![\w>.])(smp_(?!processor_id)\w+|(?:dma_|virt_)?[rw]?mb|"
    r"(?:atomic(?:64)?|test_bit|set_bit|clear_bit|x?chg|cmpxchg)\w*_(?:acquire|release)|"
    r"set_current_state|set_special_state|prepare_to_wait\w*|wq_has_sleeper|"
    r"synchronize_\w+|call_s?rcu|kfree_rcu|rcu_read_lock\w*|rcu_dereference\w*|"
    r"rcu_assign_pointer|list_\w+_rcu|llist_add\w*|llist_del_\w+|hwt_state_change|"
    r"\w*cmpxchg\w*|xchg\w*|atomic\w*_xchg\w*|atomic\w*_and_test|"
    r"atomic\w*_(?:fetch_\w+|\w+_return\w*)|"
    r"test_and_\w+|barrier\w*|"
    r"queue_work\w*|irq_work_queue\w*|wake_up_var|wait_var_event\w*)\s*\(")
NAME = r"[a-z]+\.[a-z0-9_]+"
TAG = re.compile(rf"\bBarrier ({NAME}), (?:pairs with ([^:]+)|unpaired): (.*?)(?=\bBarrier |$)")
# In the text of a tag: a weaker operation "would do: " something else orders the accesses already.
SPARE = re.compile(r"\bwould do: ")
# A reason that stands elsewhere.
SHORT = re.compile(r"\b[Aa]s (?:above|below|in \w+(?:\(\)|\.)|for \w+\(\))|\b[Ss]ee (?:above|there)\b")
BEGUN = re.compile(rf"\bBarrier {NAME}")
NONE = re.compile(r"\bNo barrier\b")
# Prefixes of barriers outside of the module: in the kernel, or in a program that uses the rings.
OUTSIDE = ("kernel.", "program.")

# A name at a place; peers: the names with which it pairs -> their functions.
Place = namedtuple("Place", "name file function line spare peers")


def sources():
    """Return the module's sources: name -> text."""
    return {str(path.relative_to(host.TOP)): path.read_text(encoding="utf-8")
            for pattern in ("hwt*.[ch]", "core/*.[ch]", "device/*.[ch]")
            for path in sorted(host.TOP.glob(pattern))}


def peers(text):
    """Return the names with which a tag pairs, as a dictionary: name -> list of functions."""
    found, group, named = {}, [], False
    for name, function in re.findall(rf"\b({NAME})\b|\b(\w+)\(\)", text or ""):
        if name:
            group, named = ([] if named else group) + [name], False
            found.setdefault(name, [])
        else:
            named = True
            for one in group:
                found[one].append(function)
    return found


class File:
    """A source: its lines without comments and strings, and its comments by their last line."""

    def __init__(self, text):
        self.comments = {}
        for match in re.finditer(r"/\*.*?\*/", text, re.S):
            words = re.sub(r"\s+\*\s|/\*+|\*/", " ", match.group(0))
            last = text.count("\n", 0, match.end())
            self.comments[last] = " ".join([self.comments.get(last, ""), *words.split()])
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
        self.code = re.sub(r'"(\\.|[^"\\\n])*"', '""', text).split("\n")

    def function(self, number):
        """Return the function of a line, or "-"."""
        for line in reversed(self.code[:number]):
            begins = re.match(r"[A-Za-z_][\w \t*]*?\b(\w+)\(", line)
            if begins and not line.rstrip().endswith(";"):
                return begins.group(1)
            if line.startswith("}"):
                break
        return "-"

    def above(self, number):
        """Return the last line of the comment above a line's statement, or None."""
        while number not in self.comments:
            line = self.code[number]
            if line.lstrip().startswith("}"):
                # Go to the head of that block, which has the same indentation.
                indent = re.match(r"\s*", line).group(0)
                number -= 1
                while not re.match(rf"{indent}\S", self.code[number]):
                    number -= 1
                if not self.code[number].lstrip().startswith("}"):
                    if number - 1 in self.comments:
                        return number - 1
                continue
            before = self.code[number - 1].rstrip()
            if number - 1 in self.comments and not before:
                return number - 1
            if not before or before[-1] in ";{}:":
                return None
            number -= 1
        return number


def look(texts):
    """Return (places, number of operations, faults) in the sources."""
    places, operations, faults = [], 0, []
    for name, text in texts.items():
        file, used = File(text), set()
        for number, line in enumerate(file.code):
            for match in ORDERS.finditer(line):
                if re.match(r"[A-Za-z_]", line) and not line.rstrip().endswith(";"):
                    continue        # the head of a function
                operations += 1
                at = file.above(number)
                comment = file.comments.get(at, "")
                if not (TAG.search(comment) or NONE.search(comment)):
                    faults.append(f"{name}:{number + 1}: {match.group(1)}() without a name")
                used.add(at)
        for at, comment in file.comments.items():
            tags = list(TAG.finditer(comment))
            if len(tags) != len(BEGUN.findall(comment)):
                faults.append(f"{name}:{at + 1}: not of the form of a barrier's comment: {comment}")
            faults += [f"{name}:{at + 1}: {tag.group(1)} does not give its reason here: "
                       f"{tag.group(3)}" for tag in tags
                       if SHORT.search(tag.group(3)) or len(tag.group(3).split()) < 6]
            if tags and at not in used:
                faults.append(f"{name}:{at + 1}: {tags[0].group(1)} is above nothing that orders")
            places += [Place(tag.group(1), name, file.function(at), at + 1,
                             bool(SPARE.search(tag.group(3))), peers(tag.group(2))) for tag in tags]
    return places, operations, faults


def check_pairs(places):
    """Return the faults of the pairs."""
    faults = []
    for place in places:
        where = f"{place.file}:{place.line}: {place.name}"
        for peer, functions in place.peers.items():
            if peer.startswith(OUTSIDE):
                continue
            others = [other for other in places if other.name == peer]
            if not functions:
                faults.append(f"{where} names no function of {peer}")
            faults += [f"{where} pairs with {peer} in {function}(), where that is not"
                       for function in functions
                       if function not in [other.function for other in others]]
            if place.name not in {name for other in others for name in other.peers}:
                faults.append(f"{where} pairs with {peer}, which does not say so")
        if len({other.spare for other in places if other.name == place.name}) > 1:
            faults.append(f"{where} is spare at one place, and not at another")
    return faults


def check(texts, tests):
    """Yield (text of a test point, list of faults)."""
    places, operations, faults = look(texts)
    names = {place.name for place in places}
    yield (f"each of the {operations} ordering operations names its barrier",
           faults or ([] if operations > 50 else ["hardly any operation was found"]))
    yield "both sides of each pair exist and name each other", check_pairs(places)

    marked = {name for test in tests for name in test.names()}
    pairs = {tuple(sorted((place.name, peer))) for place in places for peer in place.peers}
    yield (f"each of the {len(names)} barriers and {len(pairs)} pairs is in a litmus test",
           [f"{name}: in no test" for name in sorted(names - marked)] +
           [f"{one} and {other}: in no test together" for one, other in sorted(pairs)
            if not any({one, other} <= test.names() for test in tests)])
    yield ("the litmus tests name no barrier that the sources do not have",
           [name for name in sorted(marked - names) if not name.startswith(OUTSIDE)])
    needed = {name for test in tests for name in test.needed()}
    spare = {place.name for place in places if place.spare}
    yield ("the barriers marked as spare are those that no test needs",
           [f"{name} is needed" for name in sorted(spare & needed)] +
           [f"{name} is not needed" for name in sorted(names & marked - spare - needed)])


# Faults that check() must find: description, file, old text, new text, and the expected report.
PLANTS = [
    ("a barrier loses its name", "core/engine.c", "Barrier sleep.mb, pairs", "This pairs",
     r"core/engine.c:\d+: smp_mb\(\) without a name"),
    ("a new barrier without a name", "core/engine.c", "\tshard->engine.stamp = 0;\n",
     "\tshard->engine.stamp = 0;\n\tsmp_mb();\n", r"core/engine.c:\d+: smp_mb\(\) without a name"),
    ("one side is renamed", "core/engine.c", "Barrier sleep.mb,", "Barrier sleep.fence,",
     r"push.add pairs with sleep.mb in hwt_engine_publish\(\), where that is not"),
    ("one side no longer names the other", "core/engine.c",
     "pass.mb, pairs with kick.before in __hwt_engine_kick() and", "pass.mb, pairs with",
     "kick.before pairs with pass.mb, which does not say so"),
    ("the other side's function is renamed", "core/submit.c", "void hwt_push(", "void hwt_put(",
     r"sleep.mb pairs with push.add in hwt_push\(\), where that is not"),
    ("the other side's function is not named", "device/ring.c", "fill.wmb in hwt_rings_fill():",
     "fill.wmb:", "ready.rmb names no function of fill.wmb"),
    ("an operation goes, and its name stays", "device/ring.c", "\tsmp_rmb();\n", "",
     "ready.rmb is above nothing that orders"),
    ("a name in another form", "device/ring.c", "Barrier ready.rmb, pairs with",
     "Barrier ready.rmb with", "not of the form"),
    ("a barrier in no litmus test", "core/thread.c", "Barrier worker.state,", "Barrier worker.idle,",
     "worker.idle: in no test"),
    ("a name of the tests that the sources do not have", "core/thread.c", "Barrier worker.state,",
     "Barrier worker.idle,", "^worker.state$"),
    ("a needed barrier is called spare", "core/kick.c", "hwt_engine_sleep_until(): the engine",
     "hwt_engine_sleep_until(): READ_ONCE() would do: the engine", "kick.after is needed"),
    ("a spare barrier is not called so", "core/registry.c", " would do: ", " would not do: ",
     "clock.list is not needed"),
    ("a reason that stands elsewhere", "core/engine.c",
     "the caller of hwt_arm() that\n\t * begins the timeout's next hold sees everything that was done in this hold.",
     "as in hwt_collect_one().", "state.finish does not give its reason here: as in"),
]


def check_plants(texts, tests):
    """Yield (text of a test point, list of faults) for faults planted in a copy of the sources."""
    for words, file, old, new, wanted in PLANTS:
        text = texts[file].replace(old, new, 1)
        found = [fault for _, faults in check({**texts, file: text}, tests) for fault in faults]
        before = [fault for _, faults in check(texts, tests) for fault in faults]
        passed = old in texts[file] and any(re.search(wanted, fault) for fault in found) \
            and not any(re.search(wanted, fault) for fault in before)
        yield f"a planted fault is found: {words}", [] if passed else found or ["not found"]


def table(tests):
    """Print each barrier: its place, its pairs, the tests that have it."""
    for place in sorted(look(sources())[0], key=lambda one: one[:2]):
        needs = [test.name for test in tests if place.name in test.needed()]
        has = [test.name for test in tests if place.name in test.names() - test.needed()]
        print(f"{place.name}{', not needed' if place.spare else ''}: {place.file}:{place.line}, "
              f"{place.function}()\n\tpairs with {', '.join(place.peers) or 'nothing'}\n"
              f"\tneeded by {', '.join(needs) or 'no test'}; also in {', '.join(has) or 'none'}")
