#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes a series of patches for the kernel's source tree from the sources of hwt.

series.py LINUX [OUT]      write OUT/0000-cover-letter.patch, OUT/0001-*.patch, ... (default
                           build/series/patches), to be applied to the source LINUX by "git am"

The file "patches" beside this one lists the patches. A patch has the name of a feature, and adds
files. The other files of the series are rendered anew for each patch, because some of their lines
depend on the features that are there. LINUX is only read.
"""
import functools
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import edits

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
CORE, DEVICE, SELFTESTS = "kernel/time/hwt", "drivers/misc/hwt", "tools/testing/selftests/hwt"
WIDTH = 100


class Failed(Exception):
    """The series cannot be made; the text says why."""


def run(*command, text="", good=(0,), **options):
    """Run a command with a text as its input; return its output."""
    done = subprocess.run(list(map(str, command)), input=text, stdout=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode not in good:
        raise Failed(f"{' '.join(map(str, command))}: exit code {done.returncode}")
    return done.stdout


def once(text, old, new, what):
    """Replace a part of a text that must be there exactly once."""
    if text.count(old) != 1:
        raise Failed(f"{what}: {text.count(old)} times in the file, instead of once: {old!r}")
    return text.replace(old, new)


# --- hwt_compat.h ----------------------------------------------------------------------------

class Compat:
    """The definitions of hwt_compat.h for one version of the kernel: new names, macros, functions."""

    def __init__(self, linux):
        makefile = (linux / "Makefile").read_text()
        version, patchlevel = (int(re.search(rf"^{name} = (\d+)", makefile, re.M)[1]) for name in ("VERSION", "PATCHLEVEL"))
        text = re.sub(r"KERNEL_VERSION\((\d+), (\d+), (\d+)\)",
                      lambda m: str(int(m[1]) << 16 | int(m[2]) << 8 | int(m[3])), (TOP / "hwt_compat.h").read_text())
        # The header tests for this macro of the kernel.
        lazy = "IO_URING_CMD_TASK_WORK_ISSUE_FLAGS"
        there = re.search(rf"#define\s+{lazy}\b", (linux / "include/linux/io_uring/cmd.h").read_text())
        text = run("unifdef", "-k", f"-DLINUX_VERSION_CODE={version << 16 | patchlevel << 8}",
                   f"-{'D' if there else 'U'}{lazy}", text=text, good=(0, 1))
        if "LINUX_VERSION_CODE" in text:
            raise Failed("hwt_compat.h: a condition on the version is left")
        self.names, self.macros, self.functions = {"HWT_URING": "CONFIG_IO_URING"}, {}, {}
        for name, words, body in re.findall(r"^#define (\w+)\(([^)]*)\)((?:.*\\\n)*.*)\n", text, re.M):
            self.macro(name, words.split(", "), body)
        for name, body in re.findall(r"^static inline [\w ]*?(\w+)\([^)]*\)\n(\{\n.*?^\}\n)", text, re.M | re.S):
            call = re.fullmatch(r"\{\n\t(\w+)\([\w, ]*\);\n\}\n", body)
            if call:
                self.names[name] = call[1]
            else:
                self.functions[name] = re.search(rf"(?:/\*[^/]*\*/\n)?static inline [^;{{]*\b{name}\(.*?^\}}\n", text, re.M | re.S)[0]

    def macro(self, name, words, body):
        """Note a macro: another name for a function, or lines to expand."""
        lines = [line.rstrip("\\").rstrip() for line in body.split("\n")]
        call = re.fullmatch(r"(\w+)\((.*)\)", "".join(map(str.strip, lines)))
        if call and [word.strip(" ()") for word in call[2].split(",")] == words:
            self.names[name] = call[1]
        else:
            self.macros[name] = words, "\n".join(line.removeprefix("\t") for line in lines[1:])

    def expand(self, match):
        """Return the text of a macro that stands in a line of its own."""
        words, body = self.macros[match[1]]
        for word, value in zip(words, match[2].split(", ")):
            body = rename_call(body, word, value)
        return body

    def resolve(self, text):
        """Return a source that does not need hwt_compat.h."""
        for name in self.macros:
            text = re.sub(rf"^({name})\((.*)\)$", self.expand, text, flags=re.M)
        for name, body in self.functions.items():
            if re.search(rf"\b{name}\(", text) and f"inline unsigned int {name}" not in text:
                place = re.search(r'(?:^#include "[^\n]*\n)+', text, re.M)
                text = text[:place.end()] + "\n" + body + text[place.end():]
        for name, new in self.names.items():
            text = rename_call(text, name, new)
        return text


def rename_call(text, name, new):
    """Rename a function or symbol. Align the further lines of its calls."""
    lines, at = text.split("\n"), 0
    while at < len(lines):
        column = re.search(rf"\b{name}\b", lines[at])
        if column:
            width = len(re.sub(rf"\b{name}\b", new, lines[at][:column.end()]).expandtabs(8)) + 1
            old = len(lines[at][:column.end()].expandtabs(8)) + 1
            lines[at] = re.sub(rf"\b{name}\b", new, lines[at])
            while at + 1 < len(lines) and len(indent(lines[at + 1])) == old:
                at += 1
                lines[at] = "\t" * (width // 8) + " " * (width % 8) + lines[at].lstrip()
        at += 1
    return "\n".join(lines)


def indent(line):
    """Return the blanks before a line, without tabs."""
    line = line.expandtabs(8)
    return line[:len(line) - len(line.lstrip())]


# --- Names, includes, comments ---------------------------------------------------------------

def place(source):
    """Return the path in the kernel of a source of hwt."""
    fixed = {"hwt.h": "include/linux/hwt.h", "hwt_uapi.h": "include/uapi/linux/hwt.h", "core/trace.h": "include/trace/events/hwt.h",
             "hwt_main.c": f"{CORE}/main.c", "hwt_wheel.c": f"{CORE}/wheel.c",
             "hwt_chardev.c": f"{DEVICE}/chardev.c", "hwt_chardev.h": f"{DEVICE}/chardev.h"}
    if source in fixed:
        return fixed[source]
    folder, name = source.rsplit("/", 1)
    return {"core": CORE, "device": DEVICE, "tests/user": SELFTESTS, "tests/user/lib": SELFTESTS}[folder] + "/" + name


def includes(text, target):
    """Rewrite the first block of #include lines: the kernel's headers first, in alphabetical order."""
    block = re.search(r"(?:^#include [<\"].*\n|^\n(?=#include))+", text, re.M)
    if not block:
        return text
    files = re.findall(r'^#include (<.*>|".*")', block[0], re.M)
    system, local = {name for name in files if name[0] == "<"}, []
    for name in (name.strip('"') for name in files if name[0] == '"'):
        if name == "hwt_compat.h":
            system |= {f"<{header}>" for header in edits.COMPAT_INCLUDES.get(target, ())}
        elif name == "hwt_uapi.h":
            system.add("<uapi/linux/hwt.h>" if target.startswith("include/") else "<linux/hwt.h>")
        elif name in ("hwt.h", "core/trace.h"):
            system.add(f"<{place(name).removeprefix('include/')}>")
        else:
            local.append(f'"{Path(place(name)).name}"')
    lines = "\n".join("".join(f"#include {name}\n" for name in group) for group in (sorted(system), local) if group)
    return text[:block.start()] + lines + text[block.end():]


def names(text, target):
    """Rewrite the names of files in comments, and the guards of headers."""
    def file(match):
        path = place(match[0])
        return Path(path).name if Path(path).parent == Path(target).parent else path

    text = re.sub(r"\b(?:core|device)/\w+\.[ch]\b|\bhwt_(?:main|wheel|chardev)\.c\b", file, text)
    for old, new in edits.DOCUMENTS.items():
        text = re.sub(rf"\bdocs/{old}\.md\b", f"Documentation/{new}", text)
    guard = re.search(r"(?:^#ifndef |!defined\()(_HWT\w*_H)\b", text, re.M)
    if guard and target.endswith(".h"):
        text = text.replace(guard[1], "_" + re.sub(r"\W", "_", target.removeprefix("include/")).upper())
    return text


def reflow(text):
    """Wrap paragraphs of comments with a line that has become too long."""
    lines, out = text.split("\n"), []
    while lines:
        line = lines.pop(0)
        part = re.fullmatch(r"(\s*(?:/\*\*?|\*)[ \t]+(?:@\w+:[ \t]+)?)(\S.*)", line)
        if not part or len(line.expandtabs(8)) <= WIDTH:
            out.append(line)
            continue
        first, words = part[1], [part[2]]
        further = re.match(r"\s*\*[ \t]+(?=\S)(?!@|\*?/)", lines[0])
        rest = further[0] if further else re.sub(r"@\w+:[ \t]+", lambda m: " " * len(m[0]), first.replace("/*", " *"))
        while lines and lines[0].startswith(rest) and re.match(r"[^\s@*]", lines[0][len(rest):]):
            words.append(lines.pop(0)[len(rest):])
        out += textwrap.wrap(" ".join(words), WIDTH - len(rest.expandtabs(8)) + len(rest), initial_indent=first,
                             subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)
    return "\n".join(out)


# --- Rendering -------------------------------------------------------------------------------

def conditions(text, features, known):
    """Resolve the lines "#ifdef FEATURE" of a template."""
    words = [f"-{'D' if name in features else 'U'}{name}" for name in known]
    return run("unifdef", "-t", *words, text=text, good=(0, 1))


class Tree:
    """The files of the series at one of its patches."""

    def __init__(self, linux, known):
        self.linux, self.known = linux, known
        self.compat = Compat(linux)
        self.features, self.sources = set(), []

    def objects(self, folder):
        """Return the objects of the folder's sources."""
        found = [Path(place(source)).stem for source in self.sources
                 if source.endswith(".c") and place(source).startswith(folder + "/") and source not in edits.OPTIONAL]
        if folder == DEVICE and "device" in self.features:
            found.append("main")
        return " \\\n\t".join(textwrap.wrap(" ".join(f"{name}.o" for name in sorted(found)), 80))

    def programs(self):
        """Return the names of the selftests."""
        return [Path(name).stem for name in self.sources if re.match(r"tests/user/\w+\.c", name)]

    def template(self, path):
        """Return a file of tree/ for the present features."""
        text = conditions(path.read_text(), self.features, self.known)
        return text.replace("@CORE@", self.objects(CORE)).replace("@DEVICE@", self.objects(DEVICE)).replace("@STATE@\n", state_test()).replace(
            "@SELFTESTS@", ("\n" if path.name == ".gitignore" else " ").join(self.programs()))

    def source(self, name):
        """Return a source of hwt as a file of the kernel."""
        target, text = place(name), (TOP / name).read_text()
        for file, needs, old, new in edits.EDITS:
            if file == name and self.holds(needs):
                text = once(text, old, new, name)
        importers, symbols = edits.EXPORTS.get(name, ((), ()))
        users = [edits.IMPORTERS[feature] for feature in importers if feature in self.features]
        for symbol in symbols if users else ():
            body = re.search(rf"^[\w ]+[\s*]{symbol}\([^;{{]*\n\{{\n.*?^\}}\n", text, re.M | re.S)
            text = text[:body.end()] + f'EXPORT_SYMBOL_FOR_MODULES({symbol}, "{",".join(users)}");\n' + text[body.end():]
        text = text.replace("static_branch_unlikely(&hwt_debug)", "hwt_debug_enabled()") if name != "core/debug.h" else text
        if name.startswith("tests/"):
            return selftest(text)
        if "kmalloc_obj(" in (self.linux / "include/linux/slab.h").read_text():
            text = re.sub(r"\bk([mz])alloc\(sizeof\((\*\w+)\), ", r"k\1alloc_obj(\2, ", text)
        text = self.compat.resolve(includes(text, target))
        if name == "hwt_uapi.h" and "uapi" not in self.features:
            text = constants(text)
        if name == "hwt.h":
            text = sections(text, self.features)
        return reflow(names(text, target))

    def holds(self, needs):
        """Return true if a condition of an edit holds: a feature, "!" and a feature, or None."""
        return not needs or (needs[1:] not in self.features if needs[0] == "!" else needs in self.features)

    def files(self):
        """Return the path and the text of each file."""
        texts = {place(name): self.source(name) for name in self.sources}
        for path in sorted(HERE.glob("tree/**/*")):
            target = str(path.relative_to(HERE / "tree"))
            if path.is_file() and self.holds(edits.TEMPLATES.get(target)):
                texts[target] = self.template(path)
        for target, (needs, make) in edits.MADE.items():
            if self.holds(needs):
                texts[target] = make(TOP, run)
        if "wireguard" in self.features:
            texts |= converted(self.linux, edits.CONVERTED)
        for target, needs, before, new in edits.CHANGED:
            if self.holds(needs):
                text = texts.get(target) or (self.linux / target).read_text()
                texts[target] = once(text, before, new + before, target)
        return texts


def state_test():
    """Return the part of tests/unit/state.c that checks the changes of a state, for the KUnit test."""
    text = (TOP / "tests/unit/state.c").read_text()
    part = re.search(r"^#define MIDDLE.*?^(?=/\* -- The table)", text, re.M | re.S)
    if not part:
        raise Failed("tests/unit/state.c: no checks before the table")
    return part[0].replace("printf(\"# ", "pr_err(\"")


def selftest(text):
    """Return a test program, or a header of the tests, as a selftest of the kernel."""
    text = re.sub(r"^ \* hwt-test:.*\n", "", text, flags=re.M)
    text = re.sub(r"^ \*\n \*/\n", " */\n", text, count=1, flags=re.M)
    return text.replace('#include "hwt_uapi.h"', "#include <linux/hwt.h>")


def constants(text):
    """Return the part of hwt_uapi.h that hwt.h needs: the constants of kernel code and programs."""
    kept = re.findall(r"^#define HWT_(?:MODE|PRIO)_\w+\s+\d+.*\n", text, re.M)
    guard = re.search(r"^#ifndef \w+\n#define \w+\n", text, re.M)[0]
    end = re.search(r"^#endif.*\n\Z", text, re.M)[0]
    return (text.split("\n", 1)[0] + "\n/*\n * hwt - constants that kernel code and programs have in common\n */\n" + guard + "\n" +
            "".join(kept) + "\n" + end)


@functools.lru_cache
def converted(linux, folder):
    """Return the files of a driver after its conversion from timer_list to hwt."""
    with tempfile.TemporaryDirectory() as tmp:
        driver = Path(tmp, "driver")
        shutil.copytree(linux / folder, driver)
        run("spatch", "--very-quiet", "--sp-file", TOP / "tools/timer_list.cocci", "--in-place", *sorted(driver.glob("*.[ch]")))
        # What a human decides after the conversion.
        patch = TOP / f"tests/kernel/{Path(folder).name}.patch"
        run("patch", "-s", "-p1", "--fuzz=0", "-d", driver, "-i", patch)
        texts = {f"{folder}/{path.name}": path.read_text().replace("#include <hwt.h>", "#include <linux/hwt.h>")
                 for path in sorted(driver.glob("*.[ch]"))}
    # spatch indents some lines by blanks.
    texts = {target: re.sub(r"^(\t+)((?: {8})+)", lambda m: m[1] + "\t" * (len(m[2]) // 8), text, flags=re.M)
             for target, text in texts.items()}
    return {target: text for target, text in texts.items() if text != (linux / target).read_text()}


def sections(text, features):
    """Leave out the sections of hwt.h whose feature is not there yet."""
    for title, feature in edits.SECTIONS.items():
        if feature not in features:
            text, count = re.subn(rf"^/\* -- {title} -+ \*/\n.*?(?=^/\* -- |^#endif /\* _)", "", text, flags=re.M | re.S)
            if count != 1:
                raise Failed(f"hwt.h: no section '{title}'")
    return text


# --- Patches ---------------------------------------------------------------------------------

def patches():
    """Return the patches: their features, subjects and bodies, and the sources that they add."""
    found = []
    for block in re.split(r"^--- *", (HERE / "patches").read_text(), flags=re.M)[1:]:
        head, _, message = block.partition("\n")
        feature, _, files = head.partition(":")
        found.append((feature.strip(), files.split(), message.strip() + "\n"))
    return found


def identity():
    """Return the name and address of the person who makes the series."""
    name, mail = re.match(r"(.*) <(.*)>", run("git", "-C", TOP, "var", "GIT_AUTHOR_IDENT")).groups()
    return name, mail


def covered(path, entry):
    """Return true if an entry of MAINTAINERS names a file."""
    return any(path == pattern or (pattern.endswith("/") and path.startswith(pattern))
               for pattern in re.findall(r"^F:\t(.*)", entry, re.M))


def costs():
    """Return the table of costs of README.md as plain text."""
    found = re.search(r"(?:^\|.*\n)*^\| push back, one at a time \|.*\n(?:^\|.*\n)*", (TOP / "README.md").read_text(), re.M)
    if not found:
        raise Failed("README.md: no table with the row 'push back, one at a time'")
    return run("pandoc", "-f", "gfm", "-t", "plain", "--columns=76", text=re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`]", r"\1", found[0]))


def make(linux, out):
    """Write the patches of the series."""
    shutil.rmtree(out, ignore_errors=True)
    work = out.with_name(out.name + ".git")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    git = functools.partial(run, "git", "-C", work)
    name, mail = identity()
    git("init", "-q", "-b", "base")
    git("config", "user.name", name)
    git("config", "user.email", mail)
    series = patches()
    tree = Tree(linux, [feature for feature, _, _ in series])
    # Only the files that the series changes.
    for target in {target for target, *_ in edits.CHANGED}:
        (work / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(linux / target, work / target)
    shutil.copytree(linux / edits.CONVERTED, work / edits.CONVERTED)
    git("add", "-A", "-f")
    git("commit", "-q", "-m", "base")
    git("checkout", "-q", "-b", "hwt")
    entry = (HERE / "MAINTAINERS").read_text()
    for feature, sources, message in series:
        tree.features.add(feature)
        tree.sources += sources
        for target, text in sorted(tree.files().items()):
            path = work / target
            if not path.exists() and not (linux / target).exists() and not covered(target, entry):
                raise Failed(f"MAINTAINERS does not name {target}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git("add", "-A", "-f")
        git("commit", "-q", "-s", "-F", "-", text=message)
    git("format-patch", "-q", "--cover-letter", "-o", out, "base..hwt")
    cover = out / "0000-cover-letter.patch"
    subject, _, body = (HERE / "cover").read_text().partition("\n")[2].replace("@COSTS@\n", costs()).partition("\n")
    text = once(cover.read_text(), "*** SUBJECT HERE ***", subject, cover)
    cover.write_text(once(text, "*** BLURB HERE ***", body.strip(), cover))
    shutil.rmtree(work)


def main():
    """Carry out the command line."""
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    linux = Path(sys.argv[1]).resolve()
    out = Path(sys.argv[2] if len(sys.argv) > 2 else TOP / "build/series/patches").resolve()
    if not (linux / "kernel/time/Kconfig").exists():
        sys.exit(f"{linux} is not the source of a kernel")
    try:
        make(linux, out)
    except Failed as error:
        sys.exit(f"error: {error}")
    print(f"{out}: apply the series with git -C LINUX am --empty=drop {out}/*.patch")


if __name__ == "__main__":
    main()
