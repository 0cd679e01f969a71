#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Build libhwt, install it, and compile and link programs with it. Print TAP.

tests/user/lib_*.c test the functions of the library, in guests. --quick leaves out the points that
need clang, C++, pkg-config or man.
"""
import argparse
import errno
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))
import host
import tap

OUT = host.BUILD / "libhwt"
ROOT = OUT / "root"
PREFIX = ROOT / "opt/hwt"
LIB = PREFIX / "lib"
SHARED = OUT / "build/libhwt.so"
WARN = ("-Wall", "-Wextra", "-Werror")
INCLUDE = ("-Ilib", "-I.")
VERSION = re.search(r'^PACKAGE_VERSION="(.*)"', (host.TOP / "dkms.conf").read_text(encoding="utf-8"), re.M)[1]
# Functions for inline functions only.
PARTS = {"libhwt_timer_link", "libhwt_timer_set_slow", "libhwt_word_read"}


class Wrong(Exception):
    """A point has failed."""


def expect(true, *what):
    """Fail the point if something is not true."""
    if not true:
        raise Wrong(" ".join(map(str, what)))


def run(*command, code=0, env=(), timeout=240, **options):
    """Run a command in the top directory, expect an exit code, and return the output."""
    child = host.start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, errors="replace",
                       stderr=subprocess.STDOUT, text=True, env={**os.environ, **dict(env)},
                       **{"cwd": host.TOP, **options})
    try:
        said, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Wrong(f"{command[0]}: no end in {timeout} s") from None
    finally:
        host.finished(child)
    expect(child.returncode == code, *command, f": exit code {child.returncode}\n{said}")
    return said


def read(path):
    """Return the text of a file."""
    return (host.TOP / path).read_text(encoding="utf-8")


def same(one, other):
    """Expect two lists of names to be equal, and not empty."""
    one, other = set(one), set(other)
    expect(one and one == other, "only here:", sorted(one - other), "only there:", sorted(other - one))


def build(directory, *words):
    """Run make for the library."""
    run("make", "-s", "-C", "lib", f"O={OUT / directory}", *words)


def sanitizer(name, *words):
    """Build libhwt_threads.c and the library, by default with the address sanitizer."""
    run("make", "-s", "-C", "tests/unit", f"OUT={OUT / name}", "OPTIMIZE=-O1", *words, "threads")


def header(compiler, language, standard):
    """The header compiles by itself and included twice, without a pedantic warning."""
    source = OUT / f"header-{standard}.{language}"
    source.write_text('#include "libhwt.h"\n#include "libhwt.h"\nstruct libhwt_options options;\n')
    run(compiler, "-x", {"cc": "c++"}.get(language, language), f"-std={standard}", *WARN, "-Wpedantic",
        *INCLUDE, "-fsyntax-only", source)


def cxx(standard):
    """The C sample links as a C++ program, together with a file that names each function."""
    every = OUT / f"every-{standard}.cc"
    every.write_text('#include "libhwt.h"\ntypedef void (*any)();\nextern any all[];\nany all[] = {' +
                     "".join(f"(any){name}, " for name in sorted(declared())) + "0 };\n")
    program = OUT / f"first-{standard}"
    run("g++", "-x", "c++", f"-std={standard}", "-O2", *WARN, *INCLUDE, "-o", program,
        "samples/libhwt_first.c", every, f"-L{OUT / 'build'}", "-lhwt")
    ends(program, OUT / "build")


def declarations():
    """Return the headers, with inline functions as in the manual."""
    return read("lib/libhwt.h") + read("lib/libhwt_timers.h")


def declared():
    """Return the functions of the headers that are not inline."""
    return set(re.findall(r"^(?!static|\t)[a-z].*\b(libhwt_[a-z_]+)\((?!\))", declarations(), re.M))


def inline():
    """Return the inline functions of the headers."""
    return set(re.findall(r"^static inline .*\b(libhwt_[a-z_]+)\(", declarations(), re.M))


def names(*words):
    """Return type and name of each symbol that nm shows."""
    return [tuple(line.split()[-2:]) for line in run("nm", *words).splitlines() if line.count(" ") >= 2]


def exported():
    """Return the functions that the shared library exports, each with its version."""
    return [name for kind, name in names("-D", "--defined-only", SHARED) if kind == "T"]


def version_script():
    """The shared library exports the functions of the version script, with their version."""
    listed = re.findall(r"^\t(libhwt_[a-z_]*);$", read("lib/libhwt.map"), re.M)
    same((f"{name}@@LIBHWT_1.0" for name in listed), exported())


def soname():
    """The shared library has its soname, and needs the C library only."""
    dynamic = run("readelf", "-d", SHARED)
    expect(re.search(r"SONAME.*\[libhwt\.so\.1\]", dynamic) and "TEXTREL" not in dynamic, dynamic)
    expect(re.findall(r"NEEDED.*\[(.*)\]", dynamic) == ["libc.so.6"], dynamic)


def static_names():
    """The static library defines only names of its own prefixes, and no variables."""
    found = names("--defined-only", OUT / "build/libhwt.a")
    functions = [name for kind, name in found if kind.isupper() and
                 kind == "T" and re.fullmatch(r"(libhwt|hwtlib)_[a-z_]+", name)]
    others = [name for kind, name in found if kind.isupper() and name not in functions]
    variables = [name for kind, name in found if kind in "bBdDC"]
    expect(functions and not others and not variables, others, variables)


def config(*words):
    """Return the words that pkg-config prints."""
    return run("pkg-config", *words, "hwt", env={"PKG_CONFIG_SYSROOT_DIR": str(ROOT),
                                                 "PKG_CONFIG_PATH": f"{LIB}/pkgconfig"}).split()


def pkg_config():
    """pkg-config returns version, directories and libraries."""
    for words, said in ((["--modversion"], [VERSION]), (["--libs-only-L"], [f"-L{LIB}"]),
                        (["--libs-only-l"], ["-lhwt"])):
        expect(config(*words) == said, words, config(*words))
    expect(f"-I{PREFIX}/include" in config("--cflags"), "--cflags")
    expect("-pthread" in config("--static", "--libs"), "--static --libs")


def ends(program, path=""):
    """Without a device, the program prints an error and ends."""
    if not Path("/dev/hwt").exists():
        said = run(program, code=1, env={"LD_LIBRARY_PATH": str(path)})
        expect(said == "/dev/hwt: No such file or directory\n", said)


def program(name, path, *words):
    """Build a program in a directory of its own, with the flags of pkg-config."""
    directory = OUT / f"program-{name}"
    directory.mkdir()
    shutil.copy(host.TOP / "samples/libhwt_first.c", directory / "first.c")
    run("cc", "-Wall", "-Werror", *config("--cflags"), "-o", "first", "first.c", *words,
        *config("--libs", *(["--static"] if words else [])), cwd=directory)
    ends(directory / "first", path)
    return run("readelf", "-d", directory / "first")


def program_shared():
    """The program needs the library by its soname."""
    dynamic = program("shared", LIB)
    expect(re.search(r"NEEDED.*\[libhwt\.so\.1\]", dynamic), dynamic)


def man(*words):
    """Return a page as text."""
    return re.sub(".\b", "", run("man", *words, env={"LC_ALL": "C.UTF-8", "MANWIDTH": "80",
                                                     "MAN_KEEP_FORMATTING": "", "PAGER": "cat"}))


def pages():
    """Each function has a page under its own name."""
    for name in (declared() | inline()) - PARTS:
        expect(f"{name}(" in man("-M", PREFIX / "share/man", "3", name), name)


def sessions(name, *libraries):
    """A sample calls back what is due: the late request, and each session after its last packet."""
    program = OUT / f"libhwt_{name}"
    run("cc", "-O2", *WARN, *INCLUDE, "-o", program, f"samples/libhwt_{name}.c", OUT / "build/libhwt.a", *libraries)
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = host.start([program], stdin=its, stdout=subprocess.PIPE, text=True)
    its.close()
    try:
        for packet in (b"a?", b"a!", b"b!", b"c?"):
            ours.send(packet)
        time.sleep(2)
        begin = time.monotonic()
        ours.send(b"a!")
        said = [child.stdout.readline() for _ in range(4)]
        expect(said == ["c is late\n", "b is idle\n", "c is idle\n", "a is idle\n"], said)
        expect(time.monotonic() - begin >= 3, "early")
        ours.close()
        expect(child.wait(timeout=60) == 0, "exit code", child.returncode)
    finally:
        child.kill()
        child.stdout.close()
        host.finished(child)


def devices():
    """Without a device, LIBHWT_DEVICE fails, also in the two files to copy, and LIBHWT_ANY does not."""
    source = OUT / "devices.c"
    source.write_text('#include <errno.h>\n#include HEADER\nint main(void)\n{\n'
                      '\tstruct libhwt_timers_options device = { sizeof(device), LIBHWT_DEVICE, 0, 0 };\n'
                      '\tstruct libhwt_timers_options any = { sizeof(any), LIBHWT_ANY, 0, 0 };\n'
                      '\tint error = libhwt_timers_new(&device) ? 0 : errno;\n'
                      '\tstruct libhwt_timers *timers = libhwt_timers_new(&any);\n\n'
                      '\treturn timers && !libhwt_timers_context(timers) ? error : 99;\n}\n')
    run("lib/vendor.sh", OUT / "vendor")
    for header, files, error in (("libhwt_timers.h", ["-Ilib", OUT / "build/libhwt.a"], errno.ENOENT),
                                 ("hwt_timers.h", [f"-I{OUT}/vendor", OUT / "vendor/hwt_timers.c"], errno.ENOTSUP)):
        run("cc", *WARN, f'-DHEADER="{header}"', "-o", OUT / "devices", source, *files)
        if not Path("/dev/hwt").exists() or error == errno.ENOTSUP:
            run(OUT / "devices", code=error)


def python():
    """The Python package loads the library, and passes the tests that need no device."""
    run(sys.executable, "tests/user/python_test.py", "Bare", "Timers", "Loop", "Samples",
        env={"LD_LIBRARY_PATH": str(LIB), "PYTHONPATH": "python", "PYTHONDONTWRITEBYTECODE": "1"})


# --- Points --------------------------------------------------------------------------------------

def points(quick):
    """Yield groups of points, each (text, function, arguments), which run side by side."""
    werror = "CFLAGS=-O2 -Werror"
    yield [("it builds", build, "build", werror),
           ("it builds for 32 bits", build, "build32", werror + " -m32"),
           ("it builds with the thread sanitizer", sanitizer, "threads", "SANITIZE=-fsanitize=thread"),
           ("it builds with other sanitizers", sanitizer, "memory"),
           *([] if quick else [("it builds with clang", build, "clang", "CC=clang-14", werror, "static")])]
    yield [("it installs", build, "build", f"DESTDIR={ROOT}", "PREFIX=/opt/hwt", "install")]
    yield [("threads", threads, "threads"),
           ("memory", threads, "memory"),
           *((f"the header compiles as {std}", header, "gcc", "c", std) for std in ("c11", "gnu11", "c2x")),
           ("it exports the functions of the version script, with a version", version_script),
           ("... which are those that the header declares",
            lambda: same(declared(), (name.split("@")[0] for name in exported()))),
           ("its soname, and the libraries that it needs", soname),
           ("names in the static library", static_names),
           ("the package for Python", python),
           ("timers without a device", devices),
           *((f"sessions with two timers each, on {name}", sessions, name, *libraries)
             for name, *libraries in (("epoll",), ("uv", "-luv"), ("ev", "-lev")))]
    if not quick:
        yield [*((f"the header compiles as {std}", header, "g++", "cc", std)
                 for std in ("c++98", "c++11", "c++20")),
               *((f"programs in {std}", cxx, std) for std in ("c++98", "c++11", "c++20")),
               ("pkg-config", pkg_config),
               ("a program built with pkg-config", program_shared),
               ("the same, static", program, "static", "", "-static"),
               ("a page for each function", pages)]


def threads(name):
    """Run libhwt_threads."""
    run(OUT / name / "threads", env={"TSAN_OPTIONS": "halt_on_error=1"})


def found_by(point):
    """Run a point; return the failure, or None."""
    try:
        point[1](*point[2:])
    except (Wrong, OSError, host.Failed) as error:
        return str(error) or "?"
    except Exception as error:                  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"
    return None


def main():
    """Run the points of each group side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    pool, printed = ThreadPoolExecutor(host.JOBS), tap.Points()
    for group in points(args.quick):
        for point, wrong in zip(group, pool.map(found_by, group)):
            printed.point(point[0], not wrong, (wrong or "").splitlines()[:20])
    return printed.end()


if __name__ == "__main__":
    host.main(main)
