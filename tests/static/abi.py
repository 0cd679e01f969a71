#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Nothing in hwt_uapi.h may be forgotten.

abi.py guard: tests/user/abi.c, which holds on to each number for 64-bit and 32-bit
programs, names every structure, member and number of the header.

abi.py page: man/hwt.4 has every structure, member and number of the header in its
tables, with the offset, size and value that the compiler says, and nothing else.
"""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HEADER = os.path.join(TOP, "hwt_uapi.h")
GUARD = os.path.join(TOP, "tests", "user", "abi.c")
PAGE = os.path.join(TOP, "man", "hwt.4")

# Members that are given the size of a structure.
SIZES_OF = {"entry_size": "hwt_list_entry", "op_size": "hwt_op"}

problems = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def header():
    """The structures with their members, and the numbers. All of the header is
    understood, or this fails."""
    structs, numbers, struct, depth = {}, [], None, 0
    text = re.sub(r"/\*.*?\*/", " ", read(HEADER), flags=re.S).replace("\\\n", " ")
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
            sys.exit(f"{os.path.basename(HEADER)}: not understood here: {line}")
    return structs, numbers


def compiled(structs, numbers):
    """What the compiler says: sizes, (offset, size) of members, values."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "hwt_uapi.h"',
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
        source, program = os.path.join(tmp, "a.c"), os.path.join(tmp, "a")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines + ["return 0;", "}", ""]))
        subprocess.run([os.environ.get("CC", "cc"), "-I", TOP, "-o", program, source],
                       check=True)
        out = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {words[0]: tuple(int(word) for word in words[1:])
            for words in (line.split() for line in out.splitlines())}


def named(structs, numbers):
    return [*structs, *(f"{s}.{m}" for s in structs for m in structs[s]), *numbers]


def compare(where, wanted, found):
    for name in wanted:
        if name not in found:
            problems.append(f"{where}: {name} is missing")
    for name in found:
        if name not in wanted:
            problems.append(f"{where}: {name} is not in the header")


def guard(structs, numbers):
    text = read(GUARD)
    found = re.findall(r"^SIZE\((\w+), \d+, \d+\);", text, flags=re.M)
    found += (".".join(pair) for pair in
              re.findall(r"^FIELD\((\w+), (\w+), \d+, \d+\);", text, flags=re.M))
    found += re.findall(r"^NUMBER\((\w+), (?:0x[0-9a-f]+|\d+)(?:U|ULL)?\);", text, flags=re.M)
    compare("tests/user/abi.c", named(structs, numbers), found)


def page(structs, numbers):
    truth, found, struct = compiled(structs, numbers), {}, None

    def tell(name, *values):
        if name in found:
            problems.append(f"man/hwt.4: {name} is there twice")
        found[name] = values
        if name in truth and truth[name] != values:
            problems.append(f"man/hwt.4: {name}: {values}, but the compiler says {truth[name]}")

    for line in read(PAGE).splitlines():
        head = re.match(r'\.IR "struct (\w+)" ", (\d+) bytes"$', line)
        member = re.match(r"(\d+)\t(\d+)\t(\w+)\t(\d*)", line)
        number = re.match(r"(HWT_\w+)\t(0x[0-9a-f]+|\d+)(?:\t(hwt_\w+)\t(\d+))?", line)
        if head:
            struct = head[1]
            tell(struct, int(head[2]))
        elif member:
            tell(f"{struct}.{member[3]}", int(member[1]), int(member[2]))
            of = struct if member[3] == "size" else SIZES_OF.get(member[3])
            if of and member[4] and truth.get(of) != (int(member[4]),):
                problems.append(f"man/hwt.4: {struct}.{member[3]} is not {member[4]}")
        elif number:
            tell(number[1], int(number[2], 0))
            if number[3] and truth.get(number[3]) != (int(number[4]),):
                problems.append(f"man/hwt.4: {number[3]} is not of {number[4]} bytes")
    compare("man/hwt.4", named(structs, numbers), found)


{"guard": guard, "page": page}[sys.argv[1]](*header())
print("\n".join(problems), end="\n" if problems else "")
sys.exit(1 if problems else 0)
