# SPDX-License-Identifier: GPL-2.0-only
"""Makes the pages of the kernel's documentation from sections of the guides in docs/."""
import re
import textwrap

# The pages: a title, an introduction, the sections of guides, and what follows them.
PAGES = {
    "Documentation/core-api/hwt.rst": (
        "Timing wheels", "This page describes timing wheels for kernel code: include/linux/hwt.h.",
        {"design": ["The problem", "Glossary"],
         "kernel": ["Three decisions", "Memory", "Contexts", "Choosing a wheel", "Shards", "Tick, buckets and levels", "Slack",
                    "Callbacks", "Periodic timeouts", "Ending many timeouts", "Unloading", "Coming from timer_list",
                    "Coming from delayed_work"],
         "statistics": ["Wheels", "Log messages"]},
        ["include/linux/hwt.h", *(f"kernel/time/hwt/{name}.c\n   :export:"
                                  for name in ("submit", "sync", "delete", "wheel", "group"))]),
    "Documentation/userspace-api/hwt.rst": (
        "Timeouts of programs: /dev/hwt", "This page describes /dev/hwt for programs: include/uapi/linux/hwt.h.",
        {"programs": ["Contexts", "In an event loop", "Events", "Clocks", "Threads, fork, exec"],
         "limits": ["Permissions", "Users", "CPU time", "Memory", "Threads"]},
        ["include/uapi/linux/hwt.h"]),
}


def section(text, title):
    """Return a section of a guide, up to the next heading of its level."""
    found = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", text, re.M | re.S)
    if not found:
        raise ValueError(f"no section '{title}'")
    return found[0]


def unlinked(text, titles):
    """Replace links by their text, except those to sections of the page."""
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-"): title for title in titles}

    def link(match):
        anchor = match[2].partition("#")[2]
        return f"[{match[1]}](#{anchor})" if anchor in anchors else match[1]

    text = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n", "", text, flags=re.M)
    text = re.sub(r"\[([^\]]*)\]\(((?!http)[^)]*)\)", link, text)
    # The second word names the file from which the code is.
    return re.sub(r"^```(\w+) \S+$", r"```\1", text, flags=re.M)


def wrapped(match):
    """Wrap a paragraph or an item of a list."""
    lead = re.match(r" *(?:- +|\d+\. +)?", match[0])[0]
    return textwrap.fill(match[0], 100, subsequent_indent=" " * len(lead), break_long_words=False, break_on_hyphens=False)


def page(target, top, run):
    """Return a page in reStructuredText."""
    title, start, guides, references = PAGES[target]
    parts = [section((top / f"docs/{guide}.md").read_text(), name) for guide, names in guides.items() for name in names]
    titles = re.findall(r"^##+ (.*)$", "".join(parts), re.M)
    # Without wrapping, pandoc breaks no word of a table, but makes a line of each paragraph.
    text = run("pandoc", "-f", "gfm", "-t", "rst", "--wrap=none", "--columns=300", text=unlinked("".join(parts), titles))
    text = re.sub(r"^(?![+|]).{101,}$", wrapped, text, flags=re.M)
    text = re.sub(r"^\.\. code:: (\w+)$", r".. code-block:: \1", text, flags=re.M)
    line = "=" * len(title)
    reference = "".join(f".. kernel-doc:: {name}\n" for name in references)
    return (f".. SPDX-License-Identifier: GPL-2.0-only\n\n{line}\n{title}\n{line}\n\n{start}\n\n{text}\n"
            f"Reference\n---------\n\n{reference}")
