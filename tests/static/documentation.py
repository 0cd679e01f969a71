# SPDX-License-Identifier: GPL-2.0-only
"""Static checks of the documentation: its code, links, parameters and log messages.

Each block of README.md, CONTRIBUTING.md and docs/ names its language and its source file
("```c samples/first.c"), which has the block word for word, and which other tests compile and run.
Each command of a block in sh ("```sh tests/vm/...") is a line of that test, which may redirect its
output. A block that is no code ("```text") has no source. README.md shows a kernel client and a
program. Each link of a page leads to a file and, with "#", to a heading in it.
"""
import re

import checks
from checks import check, files, read


def blocks(page):
    """Return line, words and text of each block. Indented text outside a list is a block, too."""
    found, inside, in_list = [], None, False
    for number, line in enumerate(read(page).splitlines(), 1):
        if line.startswith("```"):
            inside = None if inside else (number, line[3:].split(), [])
            found += [inside] if inside else []
        elif inside:
            inside[2].append(line)
        elif line.startswith("    ") and not in_list:
            found.append((number, [], []))
        elif line and not line.startswith(" "):
            in_list = re.match(r"[-*] |[0-9]+\. ", line)
    return found


def wrong(words, text):
    """Yield the problems of a block."""
    if words == ["text"]:
        return
    if len(words) != 2:
        yield "a block without a language or a file"
        return
    language, source = words
    if language == "sh":
        lines = [line.lstrip() for line in read(source).splitlines()]
        for command in (re.sub(r" +# .*", "", line) for line in text):
            if not any(re.fullmatch(re.escape(command) + r"( >\S+)?( &)?", line) for line in lines):
                yield f"not in {source}: {command}"
    elif not text or "\n".join(text) not in read(source):
        yield f"not in {source}"


def anchors(page):
    """Return the names by which links reach the headings of a page."""
    found = []
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.*)", text, re.M):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).lower()).replace(" ", "-")
        count = sum(re.sub(r"-\d+$", "", other) == name for other in found)
        found.append(f"{name}-{count}" if count else name)
    return found


def dead_links(page):
    """Yield the links of a page that lead nowhere."""
    here = checks.host.TOP / page
    for target, anchor in re.findall(r"\]\(([^)#\n]*)(?:#([^)\n]+))?\)", read(page)):
        there = here.parent / target if target else here
        if "://" in target or target.startswith("mailto:"):
            continue
        if not there.exists():
            yield f"{page}: a link to '{target}'"
        elif anchor and anchor not in anchors(there):
            yield f"{page}: a link to '{target}#{anchor}'"


@check(quick=True)
def documentation():
    """Blocks are in their source files, and links lead to files and headings."""
    for page in files("*.md"):
        yield from dead_links(page)
        if not re.fullmatch(r"(docs/)?[^/]*", page):
            continue
        for number, words, text in blocks(page):
            for what in wrong(words, text):
                yield f"{page}:{number}: {what}"
    for source in ("samples/hwt_first.c", "samples/first.c"):
        if not any(words == ["c", source] for _, words, _ in blocks("README.md")):
            yield f"README.md does not show {source}"


def parameter_rows():
    """Return the tables of docs/parameters.md and of hwt(4): the plain text of their cells by name."""
    page = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", read("docs/parameters.md")).replace("`", "")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")]
    manual = read("man/hwt.4").partition(".SH MODULE PARAMETERS")[2].partition(".SH")[0]
    manual = re.sub(r"T\{\n(.*?)\nT\}", lambda text: text[1].replace("\n", " "), manual, flags=re.S)
    pages = rows, [line.replace("\\-", "-").split("\t") for line in manual.splitlines() if "\t" in line]
    return [{row[0]: row[1:] for row in table if row[0] not in ("parameter", "---")} for table in pages]


@check(quick=True)
def parameters():
    """docs/parameters.md and hwt(4) describe each parameter of the module in the same words."""
    page, manual = parameter_rows()
    for file in files("hwt_*.c", "core/*.c", "device/*.c"):
        for name in re.findall(r"^module_param(?:_named)?\((\w+),", read(file), re.M):
            if name not in page:
                yield f"docs/parameters.md: {name} is missing"
    for name in sorted({*page, *manual}):
        if page.get(name) != manual.get(name):
            yield f"{name}: docs/parameters.md says {page.get(name)}, hwt(4) says {manual.get(name)}"


@check(quick=True)
def messages():
    """docs/statistics.md has each message that the module logs, with a <word> for each value."""
    logged = set()
    for file in files("hwt_*.c", "core/*.c", "device/*.c"):
        for call, text in re.findall(r'(pr_(?!fmt|cont)\w+|hwt_debug_report)\(\s*"((?:[^"\\]|\\.)*)"', read(file)):
            text = "BUG: " + text if call == "hwt_debug_report" else text
            logged.add(re.sub(r"%(?:ps|\*pbl|#?\d*(?:ll)?[duxps])", "<>", text.replace("\\n", "")))
    logged.discard("BUG: ")     # From the definition of the macro.
    written = {re.sub(r"<[^>]*>", "<>", text) for text in re.findall(r"`hwt: ([^`]+)`", read("docs/statistics.md"))}
    yield from (f"docs/statistics.md does not have: {text}" for text in logged - written)
    yield from (f"docs/statistics.md only: {text}" for text in written - logged)
