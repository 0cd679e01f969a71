#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make manual pages from the comments of the headers and sources.

generate.py DIR SECTION...: write the pages of these sections (3, 4, 9) to DIR. Each man/*.in
becomes a page. Lines in it that begin with "@" are replaced:

    @front FILE         the first comment of a header after the SPDX line, without its first paragraph
    @device FILE        the rest of hwt_uapi.h: structures with offsets, constants with numbers
    @functions FILE     the functions and types of a header, with their first lines
    @list NAME, ...     the same for these names
    @parameters         the table of docs/parameters.md
    @code FILE          a program, from its first #include on

In sections 3 and 9, each function and type that has a kernel-doc comment has a page of its own,
except options of functions, which are on the functions' pages.

A comment is paragraphs. A line that is directly above indented lines is their heading. Indented
lines are a list if their first line is "term, tab, text"; else they are code.
"""
import errno
import re
import sys
import textwrap
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
SIZES = {"__u32": 4, "__s32": 4, "__aligned_u64": 8}
ERRNO = "|".join(name for name in dir(errno) if name.startswith("E"))
MARKUP = re.compile(r"[@&](?P<arg>[a-z_]\w*(?:\.\w+)?)"
                    r"|(?P<open>\(?)(?:"
                    rf"(?P<bold>(?<![\w/])(?:-?\b(?:{ERRNO})|[A-Z]+_[A-Z0-9_]*)(?![\w(])(?:\.\.\.)?)"
                    r"|(?P<call>\b[a-z_]\w*)(?P<paren>\(\d?\))"
                    r"|(?P<type>struct (?:lib)?hwt\w*))")


class Wrong(Exception):
    """A comment or a page that cannot be understood."""


# --- Text ----------------------------------------------------------------------------------------

def plain(text):
    """Return text for roff, without markup."""
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", r"\e").replace("-", r"\-"), flags=re.M)


def marked(text):
    """Return text for roff: parameters in italics, functions, errors and constants in bold."""
    def font(match):
        if match["arg"]:
            return rf"\fI{match['arg']}\fP"
        word = (match["bold"] or match["call"] or match["type"]).replace("-", r"\-")
        return rf"\%{match['open']}\fB{word}\fP{match['paren'] or ''}"
    return re.sub(r"^([.'])", r"\\&\1", MARKUP.sub(font, text.replace("\\", r"\e").replace("^", r"\(ha")), flags=re.M)


def indented(lines, at):
    """Return the indented lines from a place on, one tab less, and the place after them."""
    end = at
    while end < len(lines) and (lines[end].startswith("\t") or not lines[end]):
        end += 1
    while not lines[end - 1]:
        end -= 1
    return [line[1:] for line in lines[at:end]], end


def paragraphs(lines, headings=False):
    """Yield roff for the lines of a comment."""
    at, new = 0, False
    while at < len(lines):
        line, below = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        item = re.match(r"(\S[^\t]*)\t+(\S.*)", line)
        if not line:
            new, at = True, at + 1
        elif line.startswith("\t"):
            body, at = indented(lines, at)
            if re.match(r"\S[^\t]*\t", body[0]):
                yield from listed(body)
            else:
                yield from (".PP", ".in +4n", ".EX", *(plain(text.expandtabs(8)) for text in body), ".EE", ".in")
            new = True
        elif item:
            end = at
            while end < len(lines) and lines[end]:
                end += 1
            yield from listed(lines[at:end])
            new, at = True, end
        elif headings and below.startswith("\t") and (not at or not lines[at - 1]):
            body, at = indented(lines, at + 1)
            yield f'.SS "{line}"'
            yield from paragraphs(body)
            new = True
        else:
            if new:
                yield ".PP"
            yield marked(line)
            new, at = False, at + 1


def listed(lines):
    """Yield roff for a list: each item begins at the left, "term, tab, text"."""
    at = 0
    while at < len(lines):
        term, _, text = lines[at].partition("\t")
        body, at = indented(lines, at + 1)
        if term:
            yield from (".TP", rf"\fB{plain(term)}\fP", *filter(None, [marked(text.strip())]))
            yield from (marked(line.strip()) if line else ".IP" for line in body)


def cell(text):
    """Return roff for a cell of a table, a text block."""
    return f"T{{\n{marked(text)}\nT}}" if text else ""


def table(formats, rows):
    """Yield roff for a table. nokeep: a terminal has no pages on which tbl could keep it together."""
    yield from (".TS", "nokeep;", formats, *("\t".join(row).rstrip("\t") for row in rows), ".TE")


# --- Sources -------------------------------------------------------------------------------------

def read(file):
    """Return the text of a file of the tree."""
    return (TOP / file).read_text(encoding="utf-8")


def comments(file):
    """Yield each comment that begins a line, as lines, with the code after it."""
    for match in re.finditer(r"^/\*(.*?)\*/\n(.*?)(?=^/\*|\Z)", read(file), re.M | re.S):
        lines = match[1].rstrip(" \n").split("\n")
        yield [re.sub(r"^ (\* ?)?", "", line).rstrip() for line in (lines if lines[0] else lines[1:])], match[2]


class Doc:
    """A kernel-doc comment: a name, what it is, members or arguments, text, and its declaration."""

    def __init__(self, lines, code):
        text = "\n".join(lines[1:])
        head = re.match(r"((?:struct |enum |typedef )?\w+)(?:\(\))? - ((?:.+\n?)*?)(?=@|\n|\Z)", text)
        if not head:
            raise Wrong(f"no name and description: {lines}")
        self.name = head[1].replace("typedef ", "")
        self.kind = head[1].partition(" ")[0] if " " in head[1] else "function"
        self.what = " ".join(head[2].split())
        members, _, body = text[head.end():].partition("\n\n")
        if not members.startswith("@"):
            members, body = "", text[head.end():]
        self.members = [(name, " ".join(words.split())) for name, words in
                        re.findall(r"^@(\w+):\s*(.*?)(?=^@|\Z)", members + "\n", re.M | re.S)]
        self.text, *result = re.split("^Return: ", body.strip("\n"), 1, re.M)
        self.result = result[0].split("\n") if result else []
        self.code = code

    def synopsis(self):
        """Return the declaration, as lines."""
        macro = re.match(r"#define (\w+)(\([^)]*\))", self.code)
        if macro:
            return wrapped(f"{macro[1]}{macro[2]};")
        if self.kind in ("struct", "enum"):
            code = re.sub(r"\s*/\*.*?\*/", "", re.split(r"\n}|\n\t/\* private:", self.code)[0] + "\n};", flags=re.S)
            return re.sub(r"^#.*\n", "", code, flags=re.M).split("\n")
        return wrapped(re.sub(r"^static inline ", "", re.split(r"\n{|;", self.code)[0]) + ";")


def wrapped(text):
    """Return a declaration as lines of a manual page."""
    joined = re.sub("(?<!,) ", "\0", " ".join(text.split()))
    return [line.replace("\0", " ") for line in textwrap.wrap(joined, 72, subsequent_indent=" " * 8)]


def docs(file):
    """Return the kernel-doc comments of a file by their names."""
    found = (Doc(lines, code) for lines, code in comments(file) if lines[0] == "*")
    return {doc.name: doc for doc in found}


def kernel():
    """Return the comments of hwt.h and of the functions that the module exports."""
    known = docs("hwt.h")
    for path in sorted([*TOP.glob("hwt_*.c"), *TOP.glob("core/*.c")]):
        exported = re.findall(r"^EXPORT_SYMBOL_GPL\((\w+)\);", read(path), re.M)
        known.update((name, doc) for name, doc in docs(path).items() if name in exported)
    return known


def sections(file):
    """Return title, comment and documented names of each section of a header, except options of functions."""
    found = [("Types", [], [])]
    for lines, code in list(comments(file))[2:]:
        section = re.fullmatch(r"-- (.*?) -+", lines[0])
        if section:
            found.append((section[1], [], []))
        elif lines[0] == "*" and not Doc(lines, code).name.endswith("_options"):
            found[-1][2].append(Doc(lines, code).name)
        elif "" in lines[1:] and lines[0] != "*":
            found[-1][1].extend(lines)
    return [section for section in found if section[2]]


# --- Pages of functions and types ----------------------------------------------------------------

def members(heading, rows):
    """Yield roff for members or arguments."""
    if rows:
        yield heading
        for name, text in rows:
            yield from (".TP", rf"\fI{name}\fP", marked(text))


def page(doc, options, overview, include):
    """Yield the page of a function or a type."""
    number = overview[1]
    yield from (rf'.TH {doc.name.replace(" ", "_")} {number} {overview[2]} hwt "hwt manual"', ".ad l",
                ".SH NAME", rf'{doc.name.replace(" ", "_")} \- {plain(doc.what)}')
    if number == "3":
        yield from (".SH LIBRARY", r"libhwt (\fB\-lhwt\fP)")
    yield from (".SH SYNOPSIS", ".nf", rf'\fB#include "{include}"\fP' if number == "9" else rf"\fB#include <{include}>\fP",
                ".PP", *(rf"\fB{plain(line.expandtabs(8))}\fP" for line in doc.synopsis()), ".fi")
    yield from members(".SH " + {"struct": "MEMBERS", "enum": "CONSTANTS"}.get(doc.kind, "ARGUMENTS"), doc.members)
    if doc.text.strip():
        yield ".SH DESCRIPTION"
        yield from paragraphs(doc.text.strip("\n").split("\n"))
    for option in options:
        yield from members(f'.SS "{option.name}: {option.what}"', option.members)
        for name, text in re.findall(r"^#define (LIBHWT_\w+)\s+\w+\s+/\* (.*) \*/$", option.code, re.M):
            yield from (".TP", rf"\fB{name}\fP", marked(text))
        if option.text.strip():
            yield ".PP"
            yield from paragraphs(option.text.strip("\n").split("\n"))
    if doc.result:
        yield ".SH RETURN VALUE"
        yield from paragraphs(doc.result)
    yield from (".SH SEE ALSO", f".BR {overview[0]} ({number}),", ".BR hwt (4)")


def index(names, known):
    """Yield a table of functions or types with their first lines."""
    for name in names:
        if name not in known:
            raise Wrong(f"{name} has no comment")
    yield from table("l lx.", [(name, cell(known[name].what)) for name in names])


# --- The page of the device ----------------------------------------------------------------------

def layout(code):
    """Return offset, size and name of each member of a structure, and its size."""
    rows, offset, union, widest = [], 0, False, 0
    for line in code[:code.index("\n}")].split("\n")[1:]:
        member = re.fullmatch(r"\s*(\w+)\s+(\w+)(?:\[(\d+)\])?;", line)
        if line.strip() == "union {":
            union, widest = True, 0
        elif line.strip() == "};" and union:
            union, offset = False, offset + widest
        elif member and member[1] in SIZES:
            one = SIZES[member[1]]
            if offset % one:
                raise Wrong(f"{member[2]} is not aligned, so its place depends on the architecture")
            size = one * int(member[3] or 1)
            rows.append((offset, size, member[2]))
            widest = max(widest, size)
            offset += 0 if union else size
        else:
            raise Wrong(f"not understood: {line}")
    if offset % 8:
        raise Wrong(f"a size of {offset} depends on the architecture")
    return rows, offset


def number(value):
    """Return the value of a constant, as the page has it."""
    command = re.fullmatch(r"_IO\(HWT_IOC_MAGIC, (0x\w+)\)", value)
    if command:
        magic = re.search(r"^#define HWT_IOC_MAGIC\s+(\w+)", read("hwt_uapi.h"), re.M)[1]
        return hex(int(magic, 0) << 8 | int(command[1], 0))
    if value == "(~(__u64)0)":
        return hex(2 ** 64 - 1)
    if not re.fullmatch(r"0x[0-9a-fA-F]+|\d+", value):
        raise Wrong(f"not understood: {value}")
    return value.lower()


def constants(code):
    """Yield the table of the constants in code."""
    found = re.findall(r"^#define\s+(HWT_\w+)[ \t]+(\S.*?)[ \t]*(?:/\*(.*?)\*/)?$", code, re.M)
    if len(found) != len(re.findall(r"^#define\s+HWT_\w+[ \t]+\S", code, re.M)):
        raise Wrong(f"not understood: {code}")
    if found:
        yield ".PP"
        yield from table("l l lx." if any(text for *_, text in found) else "l l.",
                         [(name, number(value), cell(text.strip())) for name, value, text in found])


def structure(doc, tables):
    """Yield a structure: its heading, the constants that belong to it, its members, its text."""
    rows, size = layout(doc.code)
    ioctl = doc.what.startswith("HWT_IOC_")
    yield f'.SS "{doc.what}"' if ioctl else f'.SS "{doc.name}: {doc.what}"'
    yield rf"\fI{doc.name}\fP, {size} bytes:"
    texts = dict(doc.members)
    if set(texts) != {name for *_, name in rows}:
        raise Wrong(f"{doc.name}: members and their comments differ")
    yield from table("l l l lx.", [("offset", "size", "member", "meaning"),
                                   *((str(offset), str(length), name, cell(texts[name])) for offset, length, name in rows)])
    if doc.text.strip():
        yield ".PP"
        yield from paragraphs(doc.text.strip("\n").split("\n"))
    yield from tables


def device(file):
    """Yield the sections of hwt_uapi.h. Constants belong to the next structure, except those that begin a section."""
    waiting, begun = [], False
    for lines, code in list(comments(file))[2:]:
        section = re.fullmatch(r"-- (.*?) -+", lines[0])
        if section:
            yield from waiting
            waiting = []
            yield f".SH {section[1].upper()}"
            yield from constants(code)
        elif lines[0] == "*":
            yield from structure(Doc(lines, code), waiting)
            waiting = list(constants(code[code.index("\n}"):]))
        elif begun and lines[-1].endswith("."):
            yield from paragraphs(lines)
            yield from constants(code)
        else:
            about = lines if lines[-1].endswith(".") else [*lines[:-1], lines[-1] + ":"]
            waiting += [".PP", *map(marked, about), *constants(code)]
        begun = bool(section)
    yield from waiting


def parameters():
    """Yield the table of the module's parameters."""
    text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", read("docs/parameters.md")).replace("`", "")
    rows = [[word.strip() for word in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    yield from table("l l l lx.", [(*map(plain, row[:3]), cell(row[3])) for row in rows if "---" not in row[0]])


# --- Pages ---------------------------------------------------------------------------------------

def filled(template, known):
    """Yield the lines of a page, with its directives replaced."""
    names = ""
    for line in read(template).splitlines() + [""]:
        word, _, rest = line.partition(" ")
        if word != "@list" and names:
            yield from index([name.strip() for name in names.split(",")], known)
            names = ""
        if word == "@front":
            text = list(comments(rest))[1][0]
            yield from paragraphs(text[text.index("") + 1:], True)
        elif word == "@list":
            names += ", " + rest if names else rest
        elif word == "@functions":
            for title, text, found in sections(rest):
                yield f'.SS "{title}"'
                yield from paragraphs(text)
                yield from index(found, known)
        elif word in ("@device", "@parameters"):
            yield from device(rest) if rest else parameters()
        elif word == "@code":
            text = read(rest)
            yield from (".EX", *plain(text[text.index("#include"):].expandtabs(4)).splitlines(), ".EE")
        else:
            yield line


def main(directory, *wanted):
    """Write the pages of the sections that are wanted."""
    directory.mkdir(parents=True, exist_ok=True)
    for template in sorted(TOP.glob("man/*.in")):
        overview = re.search(r"^\.TH (\w+) (\d) (\S+)", read(template), re.M).groups()
        name, section, _ = overview = (overview[0].lower(), *overview[1:])
        if section not in wanted:
            continue
        include = {"libhwt": "libhwt.h", "libhwt_timers": "libhwt_timers.h"}.get(name, "hwt.h")
        known = {"3": lambda: docs(f"lib/{include}"), "4": dict, "9": kernel}[section]()
        lines = list(filled(template, known))
        for missing in set(known) - {line.partition("\t")[0] for line in lines} if section == "9" else ():
            raise Wrong(f"{template.name} does not list {missing}")
        (directory / f"{name}.{section}").write_text("\n".join(lines), encoding="utf-8")
        options = [doc for doc in known.values() if section == "3" and doc.name.endswith("_options")]
        for doc in known.values():
            if doc in options or (section == "3" and "private" in doc.what):
                continue
            used = [option for option in options if option.name in doc.code.split(";")[0]]
            text = "\n".join(page(doc, used, overview, include))
            (directory / f"{doc.name.replace(' ', '_')}.{section}").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        main(Path(sys.argv[1]), *sys.argv[2:])
    except Wrong as wrong:
        sys.exit(f"{sys.argv[0]}: {wrong}")
