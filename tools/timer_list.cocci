// SPDX-License-Identifier: GPL-2.0-only
//
// Convert a driver from timer_list to timeouts of hwt on hwt_system_bh_wheel.
//
// Run it on all sources and headers of one driver together (Coccinelle 1.1.1; in Debian, the
// packages coccinelle and libpython3.11):
//
//   spatch --sp-file tools/timer_list.cocci --in-place DIRECTORY/*.[ch]
//
// Convert drivers that share a directory one by one: members of the same name are one timer.
//
// A timer is converted as a whole or not at all. It is converted if its struct timer_list and its
// timer_setup() are in these files, and hwt has a counterpart for each use. Timers with the same
// callback or the same function's argument are converted together. The rules below convert
//
//   - the type, in members, variables and parameters; timer_setup(), from_timer() and its
//     name of 6.16, timer_container_of();
//   - mod_timer(), mod_timer_pending(), timer_reduce(), and their results;
//   - del_timer(), del_timer_sync(), try_to_del_timer_sync(), timer_shutdown_sync(), and their names
//     of 6.2; timer_pending();
//   - t.expires = x, followed at once by add_timer(&t); reads of t.expires, with a comment.
//
// jiffies + n becomes hwt_jiffies(n) only if n consists of constants, HZ and members of structures,
// without a subtraction: hwt_jiffies() takes a negative number for "never", and mod_timer() for
// "now". Each other time becomes hwt_jiffies_until(time), which returns 0 if the time has passed.
//
// These assumptions get no comment: that a member in n is not negative; that a result of
// try_to_del_timer_sync() that is stored is not compared with -1 later; and that "t.expires -
// jiffies" is not read for a timer that has expired, for which it becomes 0.
//
// A comment "hwt: ..." asks for a decision: "grep -rn 'hwt: ' DIRECTORY". Timers remain timer_list
// timers if they have flags, are defined by DEFINE_TIMER() or live on the stack, if they have a
// function from a table, or are passed to a function of another file; and where add_timer_on() or
// timer_shutdown() is called, or t.expires is written otherwise. The timer of a delayed_work remains.
// If it is passed to a function of converted timers, a comment says so, and the call does not compile.
//
// docs/kernel.md, "Coming from timer_list", has the differences that remain.

@initialize:python@
@@
import os
import re

API = {"mod_timer", "mod_timer_pending", "timer_reduce", "del_timer", "timer_delete", "del_timer_sync",
       "timer_delete_sync", "try_to_del_timer_sync", "timer_shutdown_sync", "timer_pending",
       "add_timer"}
HUMAN = {"add_timer_on", "timer_shutdown", "timer_setup_on_stack", "destroy_timer_on_stack"}
NOT_CALLS = {"if", "while", "for", "switch", "return", "sizeof", "typeof"}

# A node is a timer or a pointer to one: ("m", member), ("v", function or "", variable),
# ("a", function, number of the parameter). Nodes that share code are in one set.
parent, stored, ready = {}, set(), set()
# Why a node cannot be converted; comments on the spot, by position.
blocked = {}
# Members and variables that are delayed works: their timers are not those of the driver.
works = set()
pairs, uses = {}, []
texts, types_at, converted_in, include_at = {}, {}, set(), set()


def text(file):
    """Return a file's text, in which comments and strings are blank."""
    if file not in texts:
        def blank(found):
            return re.sub(r"[^\n]", " ", found[0])
        source = open(file, encoding="utf-8", errors="replace").read()
        source = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", blank, source, flags=re.S)
        starts = [0]
        for line in source.splitlines(True):
            starts.append(starts[-1] + len(line))
        texts[file] = source, starts
    return texts[file]


def offset(place):
    return text(place.file)[1][int(place.line) - 1] + int(place.column)


def find(node):
    while parent.setdefault(node, node) != node:
        node = parent[node]
    return node


def join(one, other):
    parent[find(one)] = find(other)


def block(node, why):
    blocked.setdefault(node, why)


def node_of(name, function, member):
    """Return the node of a member, or of a variable or parameter of a function; or None."""
    if member:
        return ("m", name) if ("m", name) in parent else None
    return next((node for node in (("v", function, name), ("v", "", name)) if node in parent), None)


def node_in(expression, place):
    """Return the node of an expression like "& x -> timers [ i ]"."""
    word = expression.replace(" ", "").lstrip("&(").rstrip(")")
    while word.endswith("]"):
        word = word[:word.rindex("[")]
    found = re.search(r"(->|\.|^)(\w+)$", word)
    if found and found[2] == "timer" and found[1] and is_work(word[:found.start()]):
        return None
    return node_of(found[2], place.current_element, bool(found[1])) if found else None


def enclosing(source, at):
    """Return the innermost call around an offset: name, number of the argument, offset of "("."""
    depth = number = 0
    while at > 0:
        at -= 1
        char = source[at]
        if char in ")]":
            depth += 1
        elif char in "([":
            if depth == 0:
                name = re.search(r"(\w+)\s*$", source[:at][-80:])
                if name and char == "(" or source[:at].rstrip().endswith(")"):
                    return name and name[1], number, at
                if char == "(":
                    number = 0
            else:
                depth -= 1
        elif char == "," and depth == 0:
            number += 1
        elif char in ";{}" and depth == 0:
            break
    return None, 0, at


def arguments(source, at):
    """Return the arguments of the call whose "(" is at an offset."""
    depth, words = 0, [""]
    for char in source[at:at + 2000]:
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            break
        if char == "," and depth == 1:
            words.append("")
        elif depth > 1 or char != "(":
            words[-1] += char
    return [" ".join(word.split()) for word in words]


def block_around(source, at):
    """Return what precedes the innermost open brace: "struct", "code", or "" at top level."""
    # In the style of the kernel, a function and a structure begin and end in column 0.
    depth = 0
    while at > 0:
        at -= 1
        if source[at] == "}":
            depth += 1
        elif source[at] == "{":
            if depth == 0:
                before = source[max(0, at - 300):at].rstrip()
                return "struct" if re.search(r"\b(struct|union)(\s+\w+)*$", before) else "code"
            depth -= 1
    return ""


def declares(place):
    """Record the timers and pointers that are declared after "struct timer_list"."""
    source, at = text(place.file)[0], offset(place)
    rest = source[at:].split("timer_list", 1)[1]
    function, number, _ = enclosing(source, at)
    nodes = []
    if function and function not in NOT_CALLS:
        nodes.append(("a", function, number))
        name = re.match(r"[\s*]*(?:const\s+)?(\w+)\s*[,)]", rest)
        if name:
            nodes.append(("v", function, name[1]))
    else:
        end = re.match(r"[^;{}]*", rest)[0]
        around = block_around(source, at)
        for word in re.sub(r"=[^,;]*", "", end).split(","):
            name = re.match(r"([\s*]*)(\w+)\s*(\[[^]]*\])*\s*$", word)
            if not name:
                continue
            where = place.current_element if around == "code" else ""
            nodes.append(("m", name[2]) if around == "struct" else ("v", where, name[2]))
            if "*" not in name[1]:
                stored.add(nodes[-1])
    for node in nodes:
        join(node, nodes[0])
    types_at[place.file, int(place.line), int(place.column)] = nodes[0] if nodes else None


def is_work(expression):
    """Tell whether an expression ends with the name of a delayed work; "." or "->" may follow."""
    plain = re.sub(r"\[[^][]*\]", "", expression)
    return re.search(r"(\w*)[\s)]*(\.|->)?\s*$", plain)[1] in works


def is_name(name):
    return any(node[-1] == name for node in parent if node[0] != "a")


def used(name, place, member):
    """Judge a use of a timer by the code around it."""
    node = node_of(name, place.current_element, member)
    if not node:
        return
    source, at = text(place.file)[0], offset(place)
    if member and name == "timer" and is_work(source[max(0, at - 200):at]):
        return
    after = source[at + len(name):].lstrip()
    while after.startswith("["):
        after = after[after.index("]") + 1:].lstrip()
    field = re.match(r"(?:\)\s*)*(?:->|\.)\s*(\w+)\s*(=(?!=)|[-+|&]=)?", after)
    if field:
        if field[1] != "expires":
            block(node, "field")
        uses.append((node, place.file))
        return
    call, number, at = enclosing(source, at)
    words = arguments(source, at) if call else []
    if call in API or call == "timer_setup":
        uses.append((node, place.file))
    if call in NOT_CALLS or not call:
        # A pointer may be assigned and compared; from_timer() and the like name a member.
        target = re.search(r"(\w+)\s*=\s*[&\w\s.>\[\]()-]*$", source[max(0, at):offset(place)])
        target = target and node_of(target[1], place.current_element, False)
        if target:
            join(node, target)
        elif node in stored and (member or source[:offset(place)].rstrip().endswith("&")):
            block(node, "use")
    elif call in ("from_timer", "container_of", "timer_container_of"):
        other = node_of(re.split(r"[.\[]|->", words[-1])[0] if "." not in words[-1] else words[-1].split(".")[-1],
                        "", True) if len(words) == 3 else None
        if number == (0 if call == "container_of" else 1):
            if other:
                join(node, other)
            else:
                block(node, "foreign")
    elif call == "timer_setup" and number == 0:
        ready.add(node)
        function = words[1].lstrip("&")
        if ("a", function, 0) in parent:
            join(node, ("a", function, 0))
        else:
            block(node, "function")
        if words[2] not in ("0", "TIMER_DEFERRABLE"):
            block(node, "flags")
    elif call in HUMAN:
        block(node, "call")
    elif ("a", call, number) in parent:
        join(node, ("a", call, number))
    elif call not in API or number:
        block(node, "passed")


def paired(kind, place):
    pairs.setdefault(kind, []).append((place.file, int(place.line), int(place.column)))


def decide():
    """Find the sets of nodes that are converted, and the files that need <hwt.h>."""
    good = set(pairs.get("expires", []))
    count = {at: pairs["add"].count(at) for at in pairs.get("add", [])}
    for node, place in expires_writes:
        if (place.file, int(place.line), int(place.column)) not in good:
            block(node, "expires")
    for node, place in add_calls:
        if count.get((place.file, int(place.line), int(place.column))) != 1:
            block(node, "expires")
    bad = {find(node): why for node, why in blocked.items()}
    for node in stored:
        # Without timer_setup(), another file sets the timer up.
        if find(node) not in {find(other) for other in ready}:
            bad.setdefault(find(node), "setup")
    homes = {find(node) for node in stored}
    chosen.update(node for node in parent if find(node) in homes and find(node) not in bad)
    reasons.update({node: blocked.get(node, "shared") for node in parent if find(node) in bad})
    converted_in.update(file for node, file in uses if node in chosen)
    converted_in.update(file for (file, _, _), node in types_at.items() if node in chosen)
    for file in converted_in:
        lines, last = text(file)[0].split("\n"), 0
        raw = open(file, encoding="utf-8", errors="replace").read().split("\n")
        depth = 0
        for number, line in enumerate(raw, 1):
            depth += bool(re.match(r"\s*#\s*if", line)) - bool(re.match(r"\s*#\s*endif", line))
            guard = file.endswith(".h")
            if re.match(r"\s*#\s*include\s*<", line) and depth <= guard and lines[number - 1].strip():
                last = number
            elif last and re.match(r"[a-z{]", line):
                break
        if last:
            include_at.add((os.path.basename(file), last))
        else:
            first = next((number for number, line in enumerate(raw, 1) if re.match(r'\s*#\s*include\s*"', line)), 0)
            include_at.add((os.path.basename(file), first))


chosen, reasons, expires_writes, add_calls = set(), {}, [], []


def timer(expression, place):
    """Tell whether the timer of an expression is converted."""
    return node_in(expression, place[0]) in chosen


def kept(expression, place, why):
    """Tell whether the timer of an expression remains, for a reason."""
    return reasons.get(node_in(expression, place[0])) == why


def takes_timeout(function):
    return any(node[:2] == ("a", function) for node in chosen)


def left(expression, place):
    return node_in(expression, place[0]) in reasons


def type_here(place):
    return types_at.get((place[0].file, int(place[0].line), int(place[0].column))) in chosen


def include_here(place):
    # After the first change, Coccinelle reads a temporary file whose name ends with that of the file.
    name = os.path.basename(place[0].file)
    if name.startswith("cocci_small_output"):
        name = name.split("-", 3)[-1]
    return (name, int(place[0].line)) in include_at


def none(flags):
    return flags.strip() == "0"


def positive(expression):
    """Tell whether a number of jiffies cannot be negative, by its form."""
    word = expression.replace(" ", "")
    word = re.sub(r"\b(msecs|usecs|secs)_to_jiffies\((\w|->|[.*+/]|\([^()]*\))*\)", "1", word)
    if re.search(r"\w\(", word) or re.search(r"-(?!>)|[?~!&^<]|(?<!-)>", word):
        return False
    # Each name is a constant, or part of a member of a structure.
    names = re.finditer(r"[A-Za-z_]\w*", word)
    return not re.search(r"\)[\w(]", word) and all(
        name[0].isupper() or word[:name.start()].endswith(("->", ".")) or word[name.end():].startswith(("->", ".", "["))
        for name in names)


def pure(expression):
    """Tell whether an expression may be evaluated once more: no assignment, no call but of these."""
    word = re.sub(r"\b(\w+_to_jiffies|READ_ONCE|(__)?round_jiffies(_up)?(_relative)?|max(_t)?|min(_t)?)\s*\(", "(",
                  expression)
    return not re.search(r"[\w)\]]\s*\(|\+\s*\+|-\s*-|(?<![=!<>])=(?!=)|[<>]\s*[<>]\s*=", word)


def unsigned(expression):
    return not re.search(r"-(?!\s*>)|[?~!]", expression)


@symbols@
symbol jiffies, HZ;
@@
 hwt_symbols(jiffies, HZ)

// ---- Which timers there are, and what they are used for ----

@work@
position p;
@@
 struct delayed_work@p

@script:python@
p << work.p;
@@
for place in p:
    names = text(place.file)[0][offset(place):].split("delayed_work", 1)[1]
    works.update(re.findall(r"\w+", re.match(r"[^;{}()=]*", names)[0]))

@types@
position p;
@@
 struct timer_list@p

@script:python@
p << types.p;
@@
for place in p:
    declares(place)

@pair@
expression X, E;
position w, a;
@@
(
 X.expires@w = E;
 add_timer@a(&X);
|
 X->expires@w = E;
 add_timer@a(X);
)

@script:python@
w << pair.w;
a << pair.a;
@@
paired("expires", w[0])
paired("add", a[0])

@write@
expression X, E;
position w;
@@
(
 X.expires@w = E
|
 X->expires@w = E
|
 X.expires@w += E
|
 X->expires@w += E
)

@script:python@
x << write.X;
w << write.w;
@@
if node_in(x, w[0]):
    expires_writes.append((node_in(x, w[0]), w[0]))

@adds@
expression TP;
position a;
@@
 add_timer@a(TP)

@script:python@
t << adds.TP;
a << adds.a;
@@
if node_in(t, a[0]):
    add_calls.append((node_in(t, a[0]), a[0]))

@member@
identifier fld : script:python() { is_name(fld) };
expression X;
position p;
@@
(
 X->fld@p
|
 X.fld@p
)

@script:python@
fld << member.fld;
p << member.p;
@@
used(fld, p[0], True)

@variable@
identifier v : script:python() { is_name(v) };
position p;
@@
 v@p

@script:python@
v << variable.v;
p << variable.p;
@@
used(v, p[0], False)

@script:python@
@@
decide()

// ---- Types and headers ----

@@
position p : script:python() { type_here(p) };
@@
- struct timer_list@p
+ struct hwt_timeout

@@
position p : script:python() { include_here(p) };
@@
 #include <...>@p
+#include <hwt.h>

@@
position p : script:python() { include_here(p) };
@@
+#include <hwt.h>
 #include "..."@p

// ---- Timers that remain ----

@@
declarer name DEFINE_TIMER;
identifier t, f;
@@
+/* hwt: a static timer: define it by HWT_TIMEOUT_INIT(), and set its wheel */
 DEFINE_TIMER(t, f);

@@
expression TP;
expression list es;
position p : script:python(TP) { kept(TP, p, "flags") };
@@
+/* hwt: TIMER_PINNED and TIMER_IRQSAFE have no counterpart: keep timer_list? */
 timer_setup@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { kept(TP, p, "function") };
@@
+/* hwt: a function that is not a constant: make a table of struct hwt_timeout_ops */
 timer_setup@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { kept(TP, p, "passed") };
@@
+/* hwt: passed to a function of another file, which expects a timer_list */
 timer_setup@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { kept(TP, p, "foreign") };
@@
+/* hwt: the callback is also that of a timer of another file's structure */
 timer_setup@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { kept(TP, p, "field") };
@@
+/* hwt: a private member of struct timer_list is used */
 timer_setup@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { kept(TP, p, "use") };
@@
+/* hwt: the address of the timer is used otherwise */
 timer_setup@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { kept(TP, p, "expires") };
@@
+/* hwt: expires is set apart from add_timer(): pass the delay to hwt_schedule() */
 timer_setup@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { kept(TP, p, "call") };
@@
+/* hwt: kept for a call that has no counterpart */
 timer_setup@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { kept(TP, p, "shared") };
@@
+/* hwt: its callback, or another function, is also that of a timer that remains */
 timer_setup@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { left(TP, p) };
@@
+/* hwt: add_timer_on() has no counterpart: keep timer_list, or let any CPU run it */
 add_timer_on@p(TP, es);

@@
expression TP;
expression list es;
position p : script:python(TP) { left(TP, p) };
@@
+/* hwt: a timer on the stack: set up, then hwt_cancel_sync() before the return */
 timer_setup_on_stack@p(TP, es);

@@
expression TP;
position p : script:python(TP) { left(TP, p) };
@@
+/* hwt: timer_shutdown() does not wait: hwt_shutdown_sync() does */
 timer_shutdown@p(TP);

@@
identifier f : script:python() { takes_timeout(f) };
expression W : script:python() { is_work(W) };
@@
 f(...,
-  &W.timer
+  /* hwt: the timer of a delayed_work remains, and is passed as a timeout */ &W.timer
 , ...)

// ---- Calls ----

@@
expression TP, FN;
expression FLAGS : script:python() { none(FLAGS) };
position p : script:python(TP) { timer(TP, p) };
@@
- timer_setup@p(TP, FN, FLAGS);
+ hwt_timeout_setup(TP, hwt_system_bh_wheel, FN);

@@
expression TP, FN, FLAGS;
position p : script:python(TP) { timer(TP, p) };
@@
- timer_setup@p(TP, FN, FLAGS);
+ /* hwt: was TIMER_DEFERRABLE: schedule it with a slack? */
+ hwt_timeout_setup(TP, hwt_system_bh_wheel, FN);

@@
expression TP, F;
identifier v;
position p : script:python(TP) { timer(TP, p) };
@@
- from_timer@p(v, TP, F)
+ container_of(TP, typeof(*v), F)

@@
expression TP, F;
identifier v;
position p : script:python(TP) { timer(TP, p) };
@@
- timer_container_of@p(v, TP, F)
+ container_of(TP, typeof(*v), F)

@@
expression X, E;
position p : script:python(X) { timer(X, p) };
@@
- X.expires@p = E;
- add_timer(&X);
+ hwt_schedule(&X, hwt_jiffies_until(E));

@disable ptr_to_array@
expression X, E;
position p : script:python(X) { timer(X, p) };
@@
- X->expires@p = E;
- add_timer(X);
+ hwt_schedule(X, hwt_jiffies_until(E));

// The difference to jiffies needs no decision, unless it is negative: hwt_remaining() is not.
@@
expression X;
position p : script:python(X) { timer(X, p) };
@@
- X.expires@p - jiffies
+ nsecs_to_jiffies(hwt_remaining(&X))

@disable ptr_to_array@
expression X;
position p : script:python(X) { timer(X, p) };
@@
- X->expires@p - jiffies
+ nsecs_to_jiffies(hwt_remaining(X))

@@
expression X;
position p : script:python(X) { timer(X, p) };
@@
- X.expires@p
+ /* hwt: was expires; now, if not pending */ (jiffies + nsecs_to_jiffies(hwt_remaining(&X)))

@disable ptr_to_array@
expression X;
position p : script:python(X) { timer(X, p) };
@@
- X->expires@p
+ /* hwt: was expires; now, if not pending */ (jiffies + nsecs_to_jiffies(hwt_remaining(X)))

// One rule for each call: of a disjunction, only one branch is applied to an expression.

@@
expression TP;
expression E : script:python() { pure(E) };
position p : script:python(TP) { timer(TP, p) };
@@
- if (!timer_pending@p(TP)) mod_timer(TP, E);
+ hwt_schedule_unless_pending(TP, hwt_jiffies_until(E));

@@
expression TP, E;
position p : script:python(TP) { timer(TP, p) };
@@
- mod_timer@p(TP, E);
+ hwt_schedule(TP, hwt_jiffies_until(E));

@@
expression TP, E;
position p : script:python(TP) { timer(TP, p) };
@@
- mod_timer@p(TP, E)
+ (hwt_schedule(TP, hwt_jiffies_until(E)) & HWT_WAS_PENDING)

@@
expression TP, E;
position p : script:python(TP) { timer(TP, p) };
@@
- mod_timer_pending@p(TP, E);
+ hwt_schedule_pending(TP, hwt_jiffies_until(E));

@@
expression TP, E;
position p : script:python(TP) { timer(TP, p) };
@@
- mod_timer_pending@p(TP, E)
+ (hwt_schedule_pending(TP, hwt_jiffies_until(E)) & HWT_WAS_PENDING)

@@
expression TP, E;
position p : script:python(TP) { timer(TP, p) };
@@
- timer_reduce@p(TP, E);
+ hwt_schedule_earlier(TP, hwt_jiffies_until(E));

@@
expression TP, E;
position p : script:python(TP) { timer(TP, p) };
@@
- timer_reduce@p(TP, E)
+ (hwt_schedule_earlier(TP, hwt_jiffies_until(E)) & HWT_WAS_PENDING)

@@
expression TP;
position p : script:python(TP) { timer(TP, p) };
@@
- timer_pending@p(TP)
+ hwt_pending(TP)

@@
expression TP;
position p : script:python(TP) { timer(TP, p) };
@@
- del_timer@p(TP)
+ hwt_delete(TP)

@@
expression TP;
position p : script:python(TP) { timer(TP, p) };
@@
- timer_delete@p(TP)
+ hwt_delete(TP)

@@
expression TP;
position p : script:python(TP) { timer(TP, p) };
@@
- del_timer_sync@p(TP)
+ hwt_cancel_sync(TP)

@@
expression TP;
position p : script:python(TP) { timer(TP, p) };
@@
- timer_delete_sync@p(TP)
+ hwt_cancel_sync(TP)

@@
expression TP;
position p : script:python(TP) { timer(TP, p) };
@@
- try_to_del_timer_sync@p(TP) == -1
+ hwt_try_delete(TP) < 0

@@
expression TP;
position p : script:python(TP) { timer(TP, p) };
@@
- try_to_del_timer_sync@p(TP) != -1
+ hwt_try_delete(TP) >= 0

@@
expression TP;
position p : script:python(TP) { timer(TP, p) };
@@
- try_to_del_timer_sync@p(TP)
+ hwt_try_delete(TP)

@@
expression TP;
position p : script:python(TP) { timer(TP, p) };
@@
- timer_shutdown_sync@p(TP)
+ hwt_shutdown_sync(TP)

// ---- Times ----

@@
@@
- hwt_jiffies_until(jiffies)
+ 0

@@
expression E : script:python() { positive(E) };
@@
- hwt_jiffies_until(jiffies + E)
+ hwt_jiffies(E)

@@
expression E : script:python() { positive(E) };
@@
- hwt_jiffies_until(E + jiffies)
+ hwt_jiffies(E)

@@
expression A : script:python() { positive(A) };
expression E : script:python() { positive(E) };
@@
- hwt_jiffies_until(jiffies + A + E)
+ hwt_jiffies(A + E)

@@
expression E : script:python() { unsigned(E) };
@@
- hwt_jiffies(msecs_to_jiffies(E))
+ hwt_msecs(E)

@@
@@
- hwt_jiffies(HZ)
+ hwt_secs(1)

@@
constant C : script:python() { C.isdigit() };
@@
- hwt_jiffies(C * HZ)
+ hwt_secs(C)

@@
constant C : script:python() { C.isdigit() };
@@
- hwt_jiffies(HZ * C)
+ hwt_secs(C)
