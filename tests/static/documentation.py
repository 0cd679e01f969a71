# SPDX-License-Identifier: GPL-2.0-only
"""Static checks of the documentation: its code, links, parameters and log messages.

Each block of README.md, CONTRIBUTING.md and docs/ names its language and its source file
("```c samples/first.c"), which has the block word for word, and which other tests compile and run.
Each command of a block in sh ("```sh tests/vm/...") is a line of that test, which may redirect its
output. A block that is no code ("```text") has no source. README.md shows a kernel client and a
program. Each link of a page leads to a file and, with "#", to a heading in it. Figures are quoted as
the tables have them.
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


def section(link, page):
    """Return the text below the heading to which a link of a page leads."""
    target, anchor = link
    there = (checks.host.TOP / page).parent / target if target else checks.host.TOP / page
    text = there.read_text(encoding="utf-8")
    names = anchors(there)
    plain = re.sub(r"^```.*?^```", lambda block: " " * len(block[0]), text, flags=re.M | re.S)
    heading = list(re.finditer(r"^(#+) .*", plain, re.M))[names.index(anchor)]
    end = re.search(rf"^#{{1,{len(heading[1])}}} ", text[heading.end():], re.M)
    return text[heading.end():heading.end() + end.start() if end else None]


def numbers(text):
    return [number.replace(",", "") for number in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", text)]


def unknown_figures(text, page):
    """Yield the numbers of a text that no section has to which the text links, rounded or in another unit."""
    links = re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", text)
    known = [float(number) for link in links for number in numbers(section(link, page))]
    for number in numbers(re.sub(r"\]\([^)]*\)", "", text)) if links else ():
        half = 0.5 * 10 ** -len(number.partition(".")[2]) + 1e-9
        if not any(abs(figure / unit - float(number)) <= half for figure in known for unit in (1, 1000, 1000000)):
            yield number


@check(quick=True)
def quotes():
    """README's costs, and the conclusions of performance.md, have the figures of the tables they link to."""
    costs = r"^What it gives.*?\n\n- .*?\n\n|^The next table has the costs.*?\n\n\|.*?\n\n"
    texts = [("README.md", text) for text in re.findall(costs, read("README.md"), re.M | re.S)]
    conclusions = re.search(r"^## Conclusions.*?^## ", read("docs/performance.md"), re.M | re.S)[0]
    texts += [("docs/performance.md", text) for text in re.findall(r"^- .*?(?=\n- |\n\n)", conclusions, re.M | re.S)]
    yield from (f"{page}: no table has {number}: {text[:40]}" for page, text in texts for number in unknown_figures(text, page))


@check(quick=True)
def parameters():
    """docs/parameters.md has each parameter of the module."""
    rows = set(re.findall(r"^\| `(\w+)` \|", read("docs/parameters.md"), re.M))
    names = {name for file in files("hwt_*.c", "core/*.c", "device/*.c")
             for name in re.findall(r"^module_param(?:_named)?\((\w+),", read(file), re.M)}
    yield from (f"docs/parameters.md: {name} is missing" for name in sorted(names - rows))
    yield from (f"docs/parameters.md: the module has no {name}" for name in sorted(rows - names))


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
