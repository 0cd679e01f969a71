# SPDX-License-Identifier: GPL-2.0-only
"""Static checks of the manual pages."""
import os
import re
import shutil

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


@check
def manual():
    """Pages are made of all comments, all render without a warning, and each exported symbol has one."""
    made = checks.OUT / "man"
    shutil.rmtree(made, ignore_errors=True)
    output("man/generate.py", made, "3", "4", "9")
    yield from once(renders, [*files("man/*.[0-9]"), *map(str, sorted(made.iterdir()))], checks.program("man"))
    # Declarations after a "Private:" comment, up to an empty line, are for hwt.h's own functions.
    private = "".join(re.findall(r"^/\* Private: .*?\n\n", read("hwt.h"), re.M | re.S))
    for file in files("hwt_*.c", "core/*.c", "device/*.c"):
        for symbol in re.findall(r"^EXPORT_SYMBOL_GPL\(_*(.*)\);", read(file), re.M):
            # A variable has no page, but a mention in hwt(9).
            if (f"__{symbol}(" not in private and not (made / f"{symbol}.9").exists()
                    and f".I {symbol}\n" not in read("man/hwt.9.in")):
                yield f"man/hwt.9.in: {symbol} is missing"
