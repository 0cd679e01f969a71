# SPDX-License-Identifier: GPL-2.0-only
"""Static checks of the ABI: its tables have everything that hwt_uapi.h declares."""
import ctypes
import importlib.util
import re
import tempfile
from pathlib import Path

import checks
from checks import check, output, read

# Members that hold the size of a structure.
SIZES_OF = {"entry_size": "hwt_list_entry", "op_size": "hwt_op"}


def header():
    """Return the structures of hwt_uapi.h with their members, and the numbers.

    Raise Failed for a line that does not match any pattern.
    """
    structs, numbers, struct, depth = {}, [], None, 0
    text = re.sub(r"/\*.*?\*/", " ", read("hwt_uapi.h"), flags=re.S).replace("\\\n", " ")
    for line in (line.strip() for line in text.split("\n")):
        define = re.match(r"#define\s+(HWT_\w+)\s+\S", line)
        begin = re.match(r"struct (\w+) {$", line)
        member = re.match(r"(?:__u32|__s32|__aligned_u64)\s+(\w+)(?:\[\d+\])?;$", line)
        if define:
            numbers.append(define[1])
        elif begin and not struct:
            struct, depth = begin[1], 1
            structs[struct] = []
        elif member and struct:
            structs[struct].append(member[1])
        elif struct and line in ("union {", "struct {"):
            depth += 1
        elif struct and line == "};":
            depth -= 1
            struct = struct if depth else None
        elif line and not re.match(r"#(ifndef|define|endif|include)\b(?!\s+HWT_)", line):
            raise checks.host.Failed(f"hwt_uapi.h: tests/static/abi.py does not understand: {line}")
    return structs, numbers


def compiled(structs, numbers, include="hwt_uapi.h"):
    """Return the compiler's sizes of structures, (offset, size) of members, values of numbers."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", f'#include "{include}"',
             "int main(void)", "{"]
    for struct, members in structs.items():
        lines.append(f'printf("{struct} %zu\\n", sizeof(struct {struct}));')
        for member in members:
            lines.append(f'printf("{struct}.{member} %zu %zu\\n",'
                         f"offsetof(struct {struct}, {member}),"
                         f"sizeof(((struct {struct} *)0)->{member}));")
    for number in numbers:
        lines.append(f'printf("{number} %llu\\n", (unsigned long long){number});')
    with tempfile.TemporaryDirectory() as tmp:
        source, program = Path(tmp, "a.c"), Path(tmp, "a")
        source.write_text("\n".join(lines + ["return 0;", "}", ""]), encoding="ascii")
        output("cc", "-I.", "-Ilib", "-o", program, source)
        out = output(program)
    return {words[0]: tuple(int(word) for word in words[1:])
            for words in (line.split() for line in out.splitlines())}


def compare(where, structs, numbers, found):
    """Yield the names that are only in the header, or only in @found."""
    wanted = [*structs, *(f"{s}.{m}" for s in structs for m in structs[s]), *numbers]
    yield from (f"{where}: {name} is missing" for name in wanted if name not in found)
    yield from (f"{where}: {name} is not in the header" for name in found if name not in wanted)


def wrong_values(truth, found):
    """Yield the values of man/hwt.4 that differ from the compiler's; add the names to @found."""
    struct = None
    for line in read("man/hwt.4").splitlines():
        head = re.match(r'\.IR "struct (\w+)" ", (\d+) bytes"$', line)
        member = re.match(r"(\d+)\t(\d+)\t(\w+)\t(\d*)", line)
        number = re.match(r"(HWT_\w+)\t(0x[0-9a-f]+|\d+)(?:\t(hwt_\w+)\t(\d+))?", line)
        of = None
        if head:
            struct = head[1]
            name, values = struct, (int(head[2]),)
        elif member:
            name, values = f"{struct}.{member[3]}", (int(member[1]), int(member[2]))
            if member[4]:
                of = struct if member[3] == "size" else SIZES_OF.get(member[3])
                size = member[4]
        elif number:
            name, values = number[1], (int(number[2], 0),)
            of, size = number[3], number[4]
        else:
            continue
        if name in found:
            yield f"man/hwt.4: {name} is there twice"
        found.append(name)
        if truth.get(name, values) != values:
            yield f"man/hwt.4: {name}: {values}, but the compiler says {truth[name]}"
        if of and truth.get(of) != (int(size),):
            yield f"man/hwt.4: {name}: struct {of} is not of {size} bytes"


@check(quick=True)
def abi():
    """The tables of man/hwt.4 have all of hwt_uapi.h, with the compiler's sizes, offsets and values.

    header() accepts only members of types with the same layout in 32-bit and 64-bit programs.
    """
    structs, numbers = header()
    found = []
    yield from wrong_values(compiled(structs, numbers), found)
    yield from compare("man/hwt.4", structs, numbers, found)


def prototypes():
    """Return the types of libhwt.h's functions, in the words of python/hwt/_abi.py."""
    def word(declared):
        return "pointer" if "*" in declared else declared.split()[0].replace("uint64_t", "u64")

    text = re.sub(r"/\*.*?\*/", " ", read("lib/libhwt.h"), flags=re.S)
    return {name: " ".join(map(word, [returned, *arguments.split(", ")])) for returned, name, arguments in
            re.findall(r"^(\w[\w ]* \*?)(libhwt_\w+)\(([^)]*)\);", re.sub(r",\s+", ", ", text), re.M)}


@check(quick=True)
def python_abi():
    """The declarations of python/hwt/_abi.py agree with hwt_uapi.h and libhwt.h."""
    spec = importlib.util.spec_from_file_location("_abi", checks.host.TOP / "python/hwt/_abi.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    structs = {name: value for name, value in vars(module).items() if isinstance(value, type(ctypes.Structure))}
    # The names of reserved members do not matter: the size shows whether all are there.
    members = {name: [member for member, _ in struct._fields_ if not member.startswith("reserved")]
               for name, struct in structs.items()}
    found = {name: (value,) for name, value in vars(module).items() if name.startswith("HWT_")}
    numbers = list(found)
    for name, struct in structs.items():
        found[name] = (ctypes.sizeof(struct),)
        for member in members[name]:
            found[f"{name}.{member}"] = (getattr(struct, member).offset, getattr(struct, member).size)
    truth = compiled(members, numbers, "libhwt.h")
    functions = {name: types for types, names in module.FUNCTIONS.items() for name in names.split()}
    for wanted, there in ((truth, found), (prototypes(), functions)):
        yield from (f"python/hwt/_abi.py: {name}: {value}, but in C {wanted.get(name)}"
                    for name, value in there.items() if wanted.get(name) != value)
