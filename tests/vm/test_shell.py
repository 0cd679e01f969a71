#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests make shell; prints TAP. Four guests are booted."""

import contextlib
import os
import re
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import build
import host
import kernels
import setup
import tap

SHELL = host.TOP / "commands/shell.py"
# Seconds that a boot may take.
LIMIT = 900
points = tap.Points()

# docs/kernel.md has the first and the last of these lines.
DOCUMENTED = r"""
make HWT=$hwt/build/modules/stock-plain KDIR=$($hwt/tests/vm/kernels.py kdir stock)
export PROGRAM='./a.out ./script' ARGS='"one two" $HOME' PARAMS='debug=1 shards=2' RUN='grep -H . /sys/module/hwt/parameters/debug /sys/module/hwt/parameters/shards
cat /host/here
touch /host/here 2>&1
until dmesg | grep "hwt_first: a second has passed"; do sleep 1; done
libhwt_first
hwt_first.py | sed "s/^/python: /"
man 1 hwtctl | grep -q SYNOPSIS && man hwt_schedule | grep -q SYNOPSIS && echo manual
useradd --groups hwt member && su member -c "hwtctl sleep 1ms && id --user --name"
hwtctl run <(echo schedule a 9ms) >/dev/stderr
test -t 0 -o -t 1 -o -t 2 || : </dev/tty || echo commands: no terminal
sleep 1000 &
echo schedule a 1ms >thread
bpftrace -e "tracepoint:hwt:hwt_schedule { @[comm] = count(); exit(); }" -c "hwtctl run --thread thread"
hwt-lateness.bt >lateness &
until grep "^Tracing" lateness; do sleep 1; done
kill $!
(exit 7)'
make -C $hwt shell MODULE=./hwt_first.ko
"""
# Patterns of the output.
PRINTED = {
    "a module": "^# insmod hwt_first.ko$", "it is called back": "hwt_first: a second has passed",
    "a program": "^a second has passed for 42$", "arguments": "^<one two></root>$",
    "a script fails": "program script: exit status 3$",
    "parameters": "debug:Y\n.*shards:2$", "the directory": "^a file of the host$", "... is read-only": "Read-only file system",
    "libhwt": "^an event for 7$", "Python": "^python: half a second has passed$", "manual pages": "^manual$", "the group hwt": "^member$",
    "hwtctl": "^a expired", "bpftrace": r"^@\[hwtctl\]: 1",
    "its scripts": "^Tracing hwt:", "a program has no terminal": "^script: no terminal$", "commands have none": "^commands: no terminal$"}
# Options that are refused, and the messages.
WRONG = (
    ("PROGRAM=./none", "there is no file"), ("PROGRAM=./here", "neither an ELF program nor a script"),
    ("PROGRAM=./hwt_first.ko", "neither an ELF program nor a script"), ("MODULE=./a.out", "is no kernel module"),
    ("MODULE=n=1 ./hwt_first.ko", "is not behind a module"),
    ("MODULE=./other.ko", "is built for Linux 5."), ("KERNEL=none", "does not match stock|rt|stock612"),
    ("MEMORY=much", "does not match"), ("HWT_RUN=", "use RUN='COMMANDS'"))
# Texts to wait for on a terminal, and the answers to type.
TYPED = (("leave with 'exit'", ""), ("hwt ~ # ", "hwtctl inf\t"), ("hwtctl info ", "\n"), ("hwt ~ # ", "sleep 1000\n"),
         ("sleep 1000\r", "\x03"), ("hwt ~ # ", "echo status $?\n"), ("status 130", "exit\n"), (" icanon ", ""))


def check(name, good, said=""):
    """Print a test point, and the output if it failed."""
    points.point(name, good, [] if good else said.splitlines()[-60:])


def run(here, command, *words):
    """Run a command with words for its environment. Return its exit code, its standard output and its errors."""
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        code = host.run(["env", f"PWD={here}", f"HWT_HERE={here}", *words, *command], cwd=here, stdin=subprocess.DEVNULL,
                        stdout=out, stderr=err)
        return code, *(file.seek(0) or file.read() for file in (out, err))


def builds(here):
    """Build hwtctl for this machine. Each way of linking makes another program."""
    programs = []
    for words in (), ("STATIC=1",), ():
        check(" ".join(("make tools", *words)), not host.run(["make", "-s", "-C", host.TOP / "tools", f"OUT={here}/tools", *words]))
        programs.append((here / "tools/hwtctl").read_bytes())
    check("a static hwtctl is another program",
          [b"libjson-c.so" in program for program in programs] == [True, False, True])
    code, _, said = run(host.TOP / "samples/client", ["make", "-s", "modules"])
    check("a client's Makefile asks for HWT", code == 2 and 'run "make HWT=DIRECTORY"' in said, said)
    check("hwtctl as a user builds it", not host.run(["make", "-s", "-C", host.TOP, f"HWT_BUILD={host.BUILD}", "tools"]))


def documented(here):
    """Run the commands of docs/kernel.md, with a module, programs and commands."""
    build.modules(kernels.find("stock"), "stock-plain", tests=False, words=(build.PLAIN,))
    for name in ("hwt_first.c", "client/Makefile"):
        shutil.copy(host.TOP / "samples" / name, here)
    (here / "here").write_text("a file of the host\n", encoding="ascii")
    (here / "script").write_text('#!/bin/sh\nprintf "<%s>" "$@"; echo\n'
                                 'test -t 0 -o -t 1 -o -t 2 || echo script: no terminal\nexit 3\n', encoding="ascii")
    check("a program is built", not host.run(["cc", "-I", host.TOP, "-o", here / "a.out", host.TOP / "samples/first.c"]))
    script = DOCUMENTED.replace("$hwt/build", str(host.BUILD)).replace("$hwt", str(host.TOP))
    code, out, err = run(here, ["sh", "-c", script])
    for name, text in PRINTED.items():
        check(name, re.search(text, out, re.M), out + err)
    check("the exit status of the last command", code and "Error 7" in err, err)
    check("lines end as they should", "\r" not in out, out)


def typed(here):
    """Use a shell on a terminal."""
    child = host.start(["script", "-qec", f"{SHELL}; code=$?; stty -a; exit $code", "/dev/null"], cwd=here,
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for text, answer in TYPED:
        end, said, data = time.monotonic() + LIMIT, "", b"-"
        while text not in said and data and time.monotonic() < end:
            if select.select([child.stdout], [], [], 1)[0]:
                data = os.read(child.stdout.fileno(), 1)
                said += data.decode(errors="replace")
        check(f"on a terminal: {text.strip()}", text in said, said)
        time.sleep(1)
        os.write(child.stdin.fileno(), answer.encode())
    check("the exit code of a shell is 0", child.wait(60) == 0)
    host.finished(child)


def emulated():
    """Return whether the emulator of a make shell of this tree is running."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"{host.BUILD}/guest/shell/initramfs.gz\0" in path.read_bytes().decode(errors="replace"):
                return True
    return False


def main():
    setup.ensure("shell")
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        builds(here)
        documented(here)
        for module in "hwt_retry.ko", "hwt_idle.ko":
            shutil.copy(host.BUILD / "modules/stock-plain/samples" / module, here)
        check("make shell leaves the hwtctl of the user", b"libjson-c.so" in (host.BUILD / "tools/hwtctl").read_bytes())
        (here / "other.ko").write_bytes((here / "hwt_first.ko").read_bytes().replace(b"vermagic=6.", b"vermagic=5."))
        for word, text in WRONG:
            code, _, said = run(here, [SHELL], "HWT_RUN=true", word)
            check(f"refused: {word}", code == 1 and "error: " in said and text in said and "booting" not in said, said)
        code, out, said = run(here, [SHELL], 'MODULE=./hwt_first.ko ./hwt_retry.ko limit=7 text="a b" base_ms=50 ./hwt_idle.ko',
                              "HWT_RUN=cd /sys/module/hwt_retry/parameters; cat limit base_ms; sleep 1; echo c >/proc/sysrq-trigger; sleep 60")
        check("parameters of a module", '# insmod hwt_retry.ko limit=7 text="a b" base_ms=50\n' in out and "7\n50\n" in out
              and re.findall("unknown parameter '(.*)' ignored", out) == ["text"] and "# insmod hwt_idle.ko\n" in out, out + said)
        check("a panic is reported", code == 1 and "the guest's kernel panicked" in said and "sysrq triggered crash" in said, said)
        typed(here)
        child = host.start([SHELL], cwd=here, stdin=subprocess.DEVNULL, env={**os.environ, "HWT_RUN": "sleep 1000"})
        end = time.monotonic() + LIMIT
        while not emulated() and time.monotonic() < end:
            time.sleep(0.2)
        child.terminate()
        check("SIGTERM ends it", child.wait(60) == 128 + 15)
        check("... and the emulator", not emulated())
        host.finished(child)
    return points.end()


if __name__ == "__main__":
    host.main(main)
