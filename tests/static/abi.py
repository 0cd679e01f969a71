# SPDX-License-Identifier: GPL-2.0-only
"""Static checks of the ABI."""
import ctypes
import importlib.util
import re
import tempfile
from pathlib import Path

import checks
from checks import check, output, read


def compiled(structs, numbers, include):
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


def prototypes():
    """Return the types of libhwt's functions, in the words of python/hwt/_abi.py."""
    def word(declared):
        return "pointer" if "*" in declared else declared.split()[0].replace("uint64_t", "u64")

    text = re.sub(r"/\*.*?\*/", " ", read("lib/libhwt.h") + read("lib/libhwt_timers.h"), flags=re.S)
    return {name: " ".join(map(word, [returned, *arguments.split(", ")])) for returned, name, arguments in
            re.findall(r"^(\w[\w ]* \*?)(libhwt_\w+)\(([^)]*)\);", re.sub(r",\s+", ", ", text), re.M)}


@check(quick=True)
def python_abi():
    """The declarations of python/hwt/_abi.py agree with hwt_uapi.h and the headers of libhwt."""
    spec = importlib.util.spec_from_file_location("_abi", checks.host.TOP / "python/hwt/_abi.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    structs = {name: value for name, value in vars(module).items() if isinstance(value, type(ctypes.Structure))}
    # The names of reserved members do not matter: the size shows whether all are there.
    members = {name: [member for member, _ in struct._fields_ if not member.startswith("reserved")]
               for name, struct in structs.items()}
    found = {name: (value,) for name, value in vars(module).items() if re.match("(LIB)?HWT_", name)}
    numbers = list(found)
    for name, struct in structs.items():
        found[name] = (ctypes.sizeof(struct),)
        for member in members[name]:
            found[f"{name}.{member}"] = (getattr(struct, member).offset, getattr(struct, member).size)
    truth = compiled(members, numbers, "libhwt.h")
    functions = {name: types for table in (module.FUNCTIONS, module.TIMERS) for types, names in table.items()
                 for name in names.split()}
    for wanted, there in ((truth, found), (prototypes(), functions)):
        yield from (f"python/hwt/_abi.py: {name}: {value}, but in C {wanted.get(name)}"
                    for name, value in there.items() if wanted.get(name) != value)



def interface():
    """Return the interface of programs, by name: values, offsets and sizes of members, types of functions."""
    text = re.sub(r"/\*.*?\*/", " ", read("hwt_uapi.h"), flags=re.S)
    structs = {name: re.findall(r"\b(?!reserved)(\w+)(?:\[\w*\])?;", body)
               for name, body in re.findall(r"^struct (\w+) \{(.*?)^\}", text, re.M | re.S)}
    numbers = re.findall(r"^#define (HWT_\w+)[ \t]", text, re.M)
    found = compiled(structs, numbers, "hwt_uapi.h")
    values = {f"struct {name}": ["{} {} {}".format(member, *found[f"{name}.{member}"]) for member in members]
              for name, members in structs.items()}
    # Numbers and functions in groups, by the beginnings of their names.
    for name, value in [(name, str(*found[name])) for name in numbers] + sorted(prototypes().items()):
        values.setdefault(re.match(r"HWT_[A-Z]+|libhwt(_timers?|_queue)?", name)[0], []).append(f"{name} {value}")
    return {name: ", ".join(pieces) for name, pieces in values.items()}


@check(quick=True)
def abi():
    """Programs for the first version find its whole interface: tests/static/abi-1.0.0, which this file prints."""
    now = interface()
    for line in read("tests/static/abi-1.0.0").splitlines()[1:]:
        name, then = line.split(": ")
        gone = set(then.split(", ")) - set(now.get(name, "").split(", "))
        yield from (f"{name}: {what} in 1.0.0, not now" for what in sorted(gone))


if __name__ == "__main__":
    print("# SPDX-License-Identifier: GPL-2.0-only")
    for item in interface().items():
        print(*item, sep=": ")
