# SPDX-License-Identifier: GPL-2.0-only
"""Static check: the documentation shows real code.

Each block of README.md, CONTRIBUTING.md and docs/ names its language and the file it is taken from
("```c samples/first.c"), and stands there word for word; that file is compiled and run by other
tests. Of a block in sh ("```sh tests/vm/...") each command begins a line of that test. A block that
is no code ("```text") is from nowhere. README.md has a kernel client and a program. No link in these
files leads nowhere.
"""
import re

import checks
from checks import check, files, read


def blocks(page):
    """Return line, words and text of each block; what is indented outside a list is one, too."""
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
    """Yield what is wrong with a block."""
    if words == ["text"]:
        return
    if len(words) != 2:
        yield "a block of no file, or of no language"
        return
    language, source = words
    if language == "sh":
        lines = [line.lstrip() for line in read(source).splitlines()]
        for command in (re.sub(r" +# .*", "", line) for line in text):
            if not any(line.startswith(command) for line in lines):
                yield f"not in {source}: {command}"
    elif not text or "\n".join(text) not in read(source):
        yield f"this is not what {source} says"


@check(quick=True)
def documentation():
    """Blocks say what their files say, and links lead to files."""
    for page in [file for file in files("*.md") if re.fullmatch(r"(docs/)?[^/]*", file)]:
        for number, words, text in blocks(page):
            for what in wrong(words, text):
                yield f"{page}:{number}: {what}"
        for target in re.findall(r"\]\(([^)#\n]+)", read(page)):
            if "://" not in target and not (checks.host.TOP / page).parent.joinpath(target).exists():
                yield f"{page}: a link to '{target}'"
    for source in ("samples/hwt_first.c", "samples/first.c"):
        if not any(words == ["c", source] for _, words, _ in blocks("README.md")):
            yield f"README.md does not show {source}"
