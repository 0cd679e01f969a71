# SPDX-License-Identifier: GPL-2.0-only
"""Static checks of the form of sources: licences, style, scripts, directives, versions."""
import ast
import re
import sys

import checks
import kernels
import listing
from checks import check, files, first_line, once, problems, read, run

KERNEL_CODE = ("hwt*.[ch]", "core/*.[ch]", "device/*.[ch]", "samples/hwt_*.c", "tests/kernel/*.[ch]", "bench/bench*.[ch]",
               "tests/torture/*.[ch]")

# Message types of checkpatch that are ignored, with reasons. Sources have no suppressions.
IGNORED = (
    # The only files that depend on the kernel's version. checkpatch takes a name in upper case on
    # the left of a comparison for a constant.
    (r"(.*/)?\w*compat\.h", "LINUX_VERSION_CODE,CONSTANT_COMPARISON"),
    # User space has no kernel helpers or attributes, but has stand-ins for kernel headers, and uses
    # the macros of kselftest_harness.h.
    (r"(tests/(user|unit|fuzz)|bench/(user|hot)|samples|lib|tools)/.*",
     "PREFER_KERNEL_TYPES,PREFER_DEFINED_ATTRIBUTE_MACRO,NEW_TYPEDEFS,CAMELCASE,AVOID_EXTERNS,"
     "VOLATILE,MACRO_ARG_REUSE"),
    # The macro of the benchmarks takes code as an argument.
    (r"bench/.*", "MACRO_ARG_REUSE,MACRO_ARG_PRECEDENCE"),
)


@check(quick=True)
def spdx():
    """Each file has an SPDX line, except Markdown, licences, debian/, and empty or binary files."""
    for file in files("*"):
        if re.match(r".*\.md$|LICENSES/|COPYING$|debian/", file):
            continue
        data = (checks.host.TOP / file).read_bytes()
        if data and b"\0" not in data and \
                b"SPDX-License-Identifier: " not in b"".join(data.splitlines(True)[:3]):
            yield f"{file}: no SPDX line"


@check(quick=True)
def layers():
    """Includes point down: the device uses hwt.h and two headers of core/; the core does not name it."""
    allowed = {
        "hwt.h": ("hwt_uapi.h",), "hwt_uapi.h": (), "hwt_compat.h": (), "hwt_chardev.h": (),
        "core/buckets.*": ("hwt.h", "core/buckets.h"),
        "core/*": ("hwt.h", "hwt_compat.h", "core/"),
        "hwt_wheel.c": ("hwt.h", "core/"),
        "device/*": ("hwt.h", "hwt_compat.h", "hwt_uapi.h", "core/buckets.h", "core/params.h", "device/"),
        "hwt_chardev.c": ("hwt.h", "hwt_chardev.h", "hwt_compat.h", "device/"),
    }
    for pattern, below in allowed.items():
        for file in files(pattern):
            text = read(file)
            yield from (f'{file}: includes "{name}"' for name in re.findall(r'^#include "(.*)"', text, re.M)
                        if not name.startswith(below))
            if file.startswith("core/"):
                yield from (f"{file}: names the device: {name}" for name in
                            re.findall(r"\bhwt_(?:chardev|context|entry|entries|event|op|rings?|uring|user|home|keys|setup|show|time|read_iter)_\w+|dev/hwt\b", text))


@check(quick=True)
def places():
    """No file names a directory of an author's machine, or a server of packages."""
    place = re.compile(r"(deb|security|ftp[.a-z]*|snapshot)\.debian" r"\.org|"
                       r"(^|[^a-zA-Z0-9_.])/(root|work|home)/[a-z]", re.M)
    for file in files("*"):
        text = read(file)
        if "\0" not in text and not file.startswith("LICENSES/") and place.search(text):
            yield from (f"{file}:{number}: {line}" for number, line in enumerate(text.splitlines(), 1)
                        if place.search(line))


@check(quick=True)
def comments():
    """A comment of several lines begins with a line of its own, as the kernel's coding style asks."""
    begin = re.compile(r"^\t*/\*+[ \t]*[^*\s](?!.*\*/)", re.M)
    for file in files("*.[ch]"):
        for number, line in enumerate(read(file).splitlines(), 1):
            if begin.search(line):
                yield f"{file}:{number}: {line.strip()}"


@check(quick=True)
def columns():
    """Lines of prose have at most 100 columns; those of tables, code and unbroken code spans may be longer."""
    for file in files("*.md"):
        code = False
        for number, line in enumerate(read(file).splitlines(), 1):
            code ^= line.lstrip().startswith("```")
            words = re.sub(r"`[^`]*`", "`", line).split()
            if len(line) > 100 and not code and not line.startswith(("|", "    ")) and len(words) > 1:
                yield f"{file}:{number}: {len(line)} columns"


@check(quick=True)
def checkpatch():
    """The sources have the kernel's style."""
    script = checks.kernel_source() / "scripts/checkpatch.pl"

    def ignored(file):
        return next((types for pattern, types in IGNORED if re.fullmatch(pattern, file)), None)

    def style(*group):
        types = ignored(group[0])
        found = problems(script, "--no-tree", "--strict", "--terse", "--show-types", "--quiet",
                         "--no-summary", *(["--ignore", types] if types else []), "-f", *group)
        # The script leaves a cache in the working directory.
        for cache in checks.host.TOP.glob(".checkpatch-camelcase*"):
            cache.unlink(missing_ok=True)
        return found

    # Check several files at a time, because the script takes a tenth of a second to start.
    sources = files("*.[ch]")
    for types in {ignored(file) for file in sources}:
        yield from once(style, [file for file in sources if ignored(file) == types],
                        checks.digest(script), size=8)


@check(quick=True)
def kernel_doc():
    """kernel-doc understands all comments with two asterisks."""
    script = checks.kernel_source() / "scripts/kernel-doc"
    documented = [file for file in files(*KERNEL_CODE) if "/**" in read(file).splitlines()]
    if not documented:
        yield "no file has a kernel-doc comment"
    yield from problems(script, "-none", "-Werror", *documented)


@check(quick=True)
def shellcheck():
    """Shell scripts pass shellcheck, as bash or dash, which has "local" as the guest's busybox."""
    scripts = checks.scripts("sh", ".sh")
    facts = checks.program("shellcheck"), checks.digest(*scripts)

    def look(script):
        bash = "bash" in first_line(script) or "shell=bash" in read(script)
        # SC1091: /hwt/lib.sh exists only in guests.
        return problems("shellcheck", "-x", "-P", "SCRIPTDIR:tests/user/lib", "-S", "warning",
                        "-e", "SC1091", "-s", "bash" if bash else "dash", script)

    yield from once(look, scripts, *facts)


@check(quick=True)
def python():
    """Scripts are Python 3.9, and pyflakes finds nothing."""
    scripts = checks.scripts("python", ".py")
    for script in scripts:
        try:
            ast.parse(read(script), script, feature_version=(3, 9))
        except SyntaxError as error:
            yield f"{script}:{error.lineno}: {error.msg}"
    yield from problems("pyflakes3", *scripts)


@check()
def python_types():
    """The type hints of the package for Python and of its samples are complete."""
    yield from problems("mypy", "--strict", "--no-error-summary", "--cache-dir", checks.OUT / "mypy",
                        "python/hwt", *files("samples/*.py"))


@check(quick=True)
def directives():
    """All directives of tests are known."""
    listing.tests(kernels.find("stock"))
    return []


@check(quick=True)
def versions():
    """Texts name the version of dkms.conf, from which all builds take it."""
    version = re.search(r'^PACKAGE_VERSION="(.*)"', read("dkms.conf"), re.M)[1]
    for file, line in (("debian/changelog", f"hwt ({version}) "), ("CHANGELOG.md", f"\n## {version}"),
                       ("README.md", f"Version {version}"), ("docs/packages.md", f"/usr/src/hwt-{version}/hwt.h")):
        if line not in read(file):
            yield f"{file} has another version than {version}"


@check(quick=True)
def plants():
    """The faults of tests/plants can be planted, and the sources edited for the series of patches."""
    code, said = run("tests/plants/plants.py", "--apply")
    yield from [line for line in said.splitlines() if line.startswith("not ok")] or (said.splitlines() if code else [])
    sys.path.append(str(checks.host.TOP / "tools/series"))
    from edits import EDITS  # pylint: disable=import-outside-toplevel
    yield from (f"{edit[0]}: {edit[2]!r} is not there once" for edit in EDITS if read(edit[0]).count(edit[2]) != 1)


@check
def figures():
    """The drawings are up to date with their sources."""
    return problems("make", "-s", "-C", "docs/figures", "check", f"OUT={checks.OUT / 'figures'}")
