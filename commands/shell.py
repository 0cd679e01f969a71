#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make shell: a guest with hwt loaded, and a shell in it. README.md documents it.

The options are environment variables: KERNEL, CPUS, MEMORY, PARAMS, PROGRAM and MODULE as for make;
HWT_ARGS and HWT_RUN are ARGS and RUN; HWT_HERE is the directory that the guest mounts.

The exit code is that of the commands or, if these succeed, of the first module or program that
failed. It is 0 after a shell, and 1 if the kernel panicked or the guest did not boot.
"""

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import signal
import sys
import termios
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/vm"))
import build
import debian
import guest
import host
import kernels
import pack
import setup
from listing import Test

OUT = host.BUILD / "guest/shell"
# The pattern and the default of each option. MAKEFLAGS and MFLAGS are here so that the builds below
# do not inherit them.
OPTIONS = {"KERNEL": ("stock|rt|stock612", "stock"), "CPUS": (r"[1-9]\d?", "2"), "MEMORY": (r"[1-9]\d*[MG]", "1G"),
         **dict.fromkeys(("PARAMS", "PROGRAM", "MODULE", "HWT_ARGS", "HWT_RUN", "MAKEFLAGS", "MFLAGS"), (r"(?s:.*)", "")),
         "HWT_HERE": (".*", os.getcwd())}


def take_options():
    """Remove the options from the environment, check them, and return them."""
    ask = {name: os.environ.pop(name, "") or default for name, (_, default) in OPTIONS.items()}
    for name, (pattern, default) in OPTIONS.items():
        if not re.fullmatch(pattern, ask[name]):
            raise host.Failed(f"{name}={ask[name]} does not match {pattern}; the default is {default}")
    return ask


def taken_along(ask, kind):
    """Return the paths of PROGRAM or MODULE, each with its parameters; raise Failed if a file is missing or of a wrong kind."""
    found = {}
    # A blank between double quotes belongs to the word, as the kernel reads parameters.
    for word in re.findall(r'(?:"[^"]*"|\S)+', ask[kind]):
        if kind == "MODULE" and "=" in word:
            if not found:
                raise host.Failed(f"{kind}: the parameter {word} is not behind a module")
            list(found.values())[-1].append(word)
        else:
            found[Path(ask["HWT_HERE"], word)] = []
    for path in found:
        if not path.is_file():
            raise host.Failed(f"{kind}: there is no file {path}")
        head = path.read_bytes()[:17]
        # The type of an ELF file: 1 is an object, such as a module; 2 and 3 are programs.
        elf = head[16] if head[:4] == b"\x7fELF" else 0
        if kind == "MODULE" and not (elf == 1 and release(path)):
            raise host.Failed(f"{kind}: {path} is no kernel module")
        if kind == "PROGRAM" and elf not in (2, 3) and head[:2] != b"#!":
            raise host.Failed(f"{kind}: {path} is neither an ELF program nor a script that begins with #!")
    return found


def release(module):
    """Return the kernel release that a module is built for; "" if the file is no module."""
    found = re.search(rb"vermagic=(\S+) ", module.read_bytes())
    return found[1].decode(errors="replace") if found else ""


def fill(own, ask, kernel, programs, modules):
    """Fill /hwt/shell: hwt as installed, samples, the user's files, and variables for shell.sh."""
    with build.locked(host.BUILD / "user.lock"):
        # Apart from the programs that "make tools lib" has built, with options of the user.
        for what, directory, *words in (
                ("hwtctl, libhwt and manual pages", ".", f"HWT_BUILD={host.BUILD}/shell", f"KDIR={kernel.kdir}", "STATIC=1",
                 "install-tools", "install-lib", "install-man"),
                ("samples", "tests/user", f"OUT={host.BUILD}/user", "install-samples")):
            host.logged(OUT / "install.log", f"building {what}",
                        ["make", "-C", host.TOP / directory, f"DESTDIR={own}/root", *words])
    shutil.copytree(host.TOP / "python/hwt", own / "root/usr/lib/python3/dist-packages/hwt",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for path in (host.TOP / "samples").glob("*.py"):
        shutil.copy(path, own / "root/usr/local/bin")
    (own / "files").mkdir()
    for path in [*programs, *modules]:
        shutil.copy(path, own / "files")
        (own / "files" / path.name).chmod(0o755)
    size = shutil.get_terminal_size()
    words = {"PARAMS": ask["PARAMS"], "ARGS": ask["HWT_ARGS"], "HERE": ask["HWT_HERE"], "TERM": os.environ.get("TERM", "linux"),
             "INSERT": "\n".join(shlex.join(["keep", "insert", path.name, *parameters]) for path, parameters in modules.items()),
             "PROGRAMS": " ".join(path.name for path in programs), "SIZE": f"rows {size.lines} cols {size.columns}"}
    (own / "words").write_text("".join(f"SHELL_{name}={shlex.quote(value)}\n" for name, value in words.items()))
    if ask["HWT_RUN"]:
        (own / "run").write_text(ask["HWT_RUN"] + "\n")


class Shell(guest.Guest):
    """A guest whose second serial line is the user's. It writes its exit status to the kernel log."""
    code = None

    def kernel_line(self, line):
        super().kernel_line(line)
        if told := re.search(r"hwt-shell: exit (\d+)", line):
            self.code = int(told[1])

    def over(self):
        return self.code is not None


@contextlib.contextmanager
def terminal(group):
    """With @group, restore the terminal and its foreground group, which the emulator changes."""
    if group:
        # Allow changes of the terminal from the background.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        mode, flags = termios.tcgetattr(0), fcntl.fcntl(0, fcntl.F_GETFL)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, termios.error):
            if group:
                os.tcsetpgrp(0, group)
                termios.tcsetattr(0, termios.TCSANOW, mode)
                fcntl.fcntl(0, fcntl.F_SETFL, flags)


def boot(options, group):
    """Boot, up to options.boots times. Return the guest, and why it ended early, or None."""
    for _ in range(options.boots):
        shell = Shell(options)
        try:
            if group:
                os.tcsetpgrp(0, shell.machine.process.pid)
                # The emulator was stopped if it read from the terminal before that.
                os.killpg(shell.machine.process.pid, signal.SIGCONT)
            why = shell.follow()
        finally:
            shell.machine.end()
        if not why or not shell.boot_failed(why):
            break
        host.say("the emulated machine did not come up: booting again")
    return shell, why


def main():
    ask, group = take_options(), None
    programs, modules = taken_along(ask, "PROGRAM"), taken_along(ask, "MODULE")
    if not ask["HWT_RUN"]:
        try:
            group = os.tcgetpgrp(0)
        except OSError:
            raise host.Failed("a shell needs a terminal; without one use RUN='COMMANDS'") from None
    setup.ensure("shell")
    kernel = kernels.find(ask["KERNEL"]).get()
    for path in modules:
        if release(path) != kernel.release:
            raise host.Failed(f"MODULE: {path} is built for Linux {release(path)}, the guest has {kernel.release}: "
                              f"build it against {kernel.kdir}")
    with build.locked(OUT / "lock", "another make shell is running in this tree: set HWT_BUILD to another directory"):
        tree = build.modules(kernel, f"{kernel.name}-plain", tests=False, words=(build.PLAIN,))
        overlay = OUT / "overlay"
        shutil.rmtree(overlay, ignore_errors=True)
        shutil.copytree(kernel.dir / "shell", overlay / "hwt/disk")
        (overlay / "hwt/scripts").mkdir()
        shutil.copy(host.TOP / "commands/shell.sh", overlay / "hwt/scripts")
        fill(overlay / "hwt/shell", ask, kernel, programs, modules)
        pack.initramfs(kernel, [Test("shell", "script", 0, "shell.sh", noload=True)], OUT / "initramfs.gz", tree, overlay=overlay)
        options = guest.Options(kernel, OUT / "initramfs.gz", OUT, label="shell", disk=debian.disk("trace"), memory=ask["MEMORY"],
                                cpus=int(ask["CPUS"]), share=ask["HWT_HERE"], serial="mon:stdio" if group else "stdio",
                                append=["HWT_TTY=null"], silence=10**9, limit=10**9)
        host.say(f"booting Linux {kernel.release} ({'KVM' if guest.kvm_works() else 'emulated, half a minute'}); "
                 + ("leave with 'exit', or at once with Ctrl-A X" if group else "Ctrl-C ends it"))
        with terminal(group):
            shell, why = boot(options, group)
    log = shell.machine.logs["kernel"]
    for report in shell.judge.reports[:1]:
        if why:
            host.say("\n".join(["the end of the guest's kernel log:", *host.tail(log, 60)]))
        host.say(f"the guest's kernel {'panicked' if why else 'has reported'}: {report.name()} (log: {log})")
    # After Ctrl-A X the emulator exits with 0.
    if why and (shell.judge.reports or not group or shell.machine.process.returncode):
        raise host.Failed(f"{why} (logs: {log}, {OUT / 'qemu.log'})")
    return shell.code


if __name__ == "__main__":
    host.main(main)
