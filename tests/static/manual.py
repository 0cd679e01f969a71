# SPDX-License-Identifier: GPL-2.0-only
"""Static checks of the manual pages."""
import os
import re

import checks
from checks import check, files, once, output, read, run

PLAIN = {**os.environ, "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"}


def renders(page):
    """Yield the warnings of man about a page, and whether whatis cannot read it."""
    _, errors = run("sh", "-c", 'man --warnings -E UTF-8 -l -Tutf8 -Z "$1" 2>&1 >/dev/null', "-", page,
                    env=PLAIN)
    yield from (f"{page}: {line}" for line in errors.splitlines())
    if run("lexgrog", page)[0]:
        yield f"{page}: lexgrog finds no name in it"


def made_names(made):
    """Yield the name and the description of each page that is made from a comment."""
    for page in made:
        name, what = re.search(r"^\.SH NAME.*\n(.*?) \\- (.*)", page.read_text(), re.M).groups()
        yield re.sub("^(struct|enum)_", r"\1 ", name), what


def listed_names():
    """Return the same from the tables of hwt(9), whose second column may be a text block."""
    row = r"^((?:(?:struct|enum) )?(?:hwt|HWT)_\w*)\t(?:T\{\n)?(.*?)(?:\t.*)?$"
    return re.findall(row, read("man/hwt.9"), re.M)


@check
def manual():
    """All pages render without a warning; hwt(9) describes each symbol in the words of hwt.h."""
    made = checks.OUT / "man"
    output("man/generate.sh", checks.kernel_source() / "scripts/kernel-doc", made)
    pages = sorted(made.glob("*.9"))
    yield from once(renders, files("man/*.[0-9]") + [str(page) for page in pages],
                    checks.program("man"))
    names, listed = set(made_names(pages)), set(listed_names())
    yield from (f"missing or different in man/hwt.9: {name}: {what}" for name, what in names - listed)
    yield from (f"in man/hwt.9 only: {name}: {what}" for name, what in listed - names)
    # Declarations after a "Private:" comment, up to an empty line, are for hwt.h's own functions.
    private = "".join(re.findall(r"^/\* Private: .*?\n\n", read("hwt.h"), re.M | re.S))
    for file in files("hwt_*.c", "core/*.c", "device/*.c"):
        for symbol in re.findall(r"^EXPORT_SYMBOL_GPL\(_*(.*)\);", read(file), re.M):
            if f"__{symbol}(" in private:
                continue
            # A variable has no page, but a mention in hwt(9).
            if symbol not in dict(listed) and f".I {symbol}\n" not in read("man/hwt.9"):
                yield f"man/hwt.9: {symbol} is missing"
