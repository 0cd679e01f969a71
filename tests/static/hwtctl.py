# SPDX-License-Identifier: GPL-2.0-only
"""Static check of hwtctl: help, manual page, completion and installation agree."""
import os
import re
import tempfile
from pathlib import Path

from checks import OUT, check, host, output, read

# Print the completions of bash: $0 is the file of completions, the arguments are the words so far.
COMPLETE = """. "$0"; COMP_WORDS=(hwtctl "$@"); COMP_CWORD=$#; _hwtctl; printf '%s\\n' "${COMPREPLY[@]}" """

# The same for fish: the arguments are the file of completions and the line.
FISH = 'source "$argv[1]"; complete --do-complete "$argv[2]"'

# Replace zsh's functions, and print the words that it would describe, for a command if given.
ZSH = """_arguments() { print -rl -- "$@"; state=command; }
_describe() { print -rl -- ${(P)2}; }
words=(hwtctl $2 '') CURRENT=$#words
. $1
"""

# Words after hwtctl, and the completions of the last one, in a directory with two scripts.
COMPLETED = (
    (("s",), "save sleep stats"),
    (("top", "--c"), "--count"),
    (("run", "--v"), "--verbose"),
    (("run", "--clock", "b"), "boottime"),
    (("run", "o"), "one.script"),
    (("--device", "/dev/hwt", "restore", ""), "one.script two.script"),
    (("t",), "top"),
    (("save", "--output", ""), "one.script two.script"),
    (("sleep", ""), ""),
    (("list", "--fd", ""), ""),
    (("help", "st"), "stats"),
)

INSTALLED = """\
lib/udev/rules.d/60-hwt.rules
usr/bin/hwtctl
usr/sbin/hwt-callbacks.bt
usr/sbin/hwt-lateness.bt
usr/share/bash-completion/completions/hwtctl
usr/share/fish/vendor_completions.d/hwtctl.fish
usr/share/man/man1/hwtctl.1
usr/share/man/man8/hwt-callbacks.bt.8
usr/share/man/man8/hwt-lateness.bt.8
usr/share/zsh/vendor-completions/_hwtctl""".split()


def differ(what, one, other):
    """Yield how two sets of words differ."""
    one, other = set(one), set(other)
    if one != other:
        yield f"{what}: only here: {sorted(one - other)}, only there: {sorted(other - one)}"


@check
def hwtctl():
    """Help, manual page, completion and installation agree."""
    out = OUT / "hwtctl"
    make = ("make", "-s", "-C", "tools", f"OUT={out}", "CFLAGS=-O2 -Werror")
    output(*make)
    ctl = out / "hwtctl"
    words = {**os.environ, "PATH": f"{out}:{os.environ['PATH']}"}

    def complete(*line, cwd=host.TOP):
        return output("bash", "-c", COMPLETE, host.TOP / "tools/hwtctl.bash-completion", *line,
                      cwd=cwd, env=words).split()

    def fish(*line, cwd=host.TOP):
        said = output("fish", "--no-config", "--command", FISH, host.TOP / "tools/hwtctl.fish-completion",
                      " ".join(("hwtctl", *line)), cwd=cwd, env=words)
        return [row.partition("\t")[0] for row in said.splitlines()]

    def zsh(what, command=""):
        said = output("zsh", "-f", "-c", ZSH, "zsh", host.TOP / "tools/hwtctl.zsh-completion", command, env=words)
        return re.findall(what, said, re.M)

    def options(*command):
        return re.findall(r"--[a-z-]+", "\n".join(
            line for line in output(ctl, *command, "--help").splitlines() if line.startswith(" ")))

    # Commands and options of the help, the completion, and the manual page.
    text = output(ctl, "--help")
    commands = re.findall(r"^  ([a-z]+) ", re.search(r"^Commands:\n(.*?)(^$|\Z)", text, re.M | re.S)[1],
                          re.M)
    manual = re.sub(r"\\f[A-Z]", "", read("man/hwtctl.1")).replace("\\-", "-")
    yield from differ("commands of help and completion", commands, complete(""))
    yield from differ("options of help and completion", options(), complete("--"))
    yield from differ("commands of help and fish", commands, (word for word in fish("") if not word.startswith("-")))
    yield from differ("options of help and fish", options(), fish("--"))
    yield from differ("commands of help and zsh", commands, zsh("^([a-z]+):"))
    yield from differ("options of help and zsh", options(), zsh(r"^(--[a-z-]+)\["))
    for command in commands:
        yield from differ(f"{command}: options of help and completion", options(command),
                          complete(command, "--"))
        yield from differ(f"{command}: options of help and fish", options(command), fish(command, "--"))
        yield from differ(f"{command}: options of help and zsh", options(command), zsh(r"^(--[a-z-]+)\[", command))
        section = re.search(rf"^\.SS hwtctl {command}\b.*?(?=^\.S[SH] |\Z)", manual, re.M | re.S)
        if not section:
            yield f"hwtctl.1 has nothing on {command}"
            continue
        for option in set(options(command)) - {"--help"}:
            if not re.search(rf"{option}\b", section[0]):
                yield f"hwtctl.1: {command} {option} is missing"

    # The words of scripts that the program knows are in its help and in the page.
    known = re.search(r"^} line_commands\[\].*?^};", read("tools/run.c"), re.M | re.S)[0]
    script_help = output(ctl, "run", "--help")
    scripts = re.search(r"^\.SH SCRIPTS.*?^\.SH JSON", manual, re.M | re.S)[0]
    for word in re.findall(r'^\t\{ "([a-z]*)"', known, re.M):
        if not re.search(rf"^  (.* )?{word}\b", script_help, re.M):
            yield f"run --help: {word} is missing"
        if not re.search(rf'^\.(B|BI) "?{word}\b', scripts, re.M):
            yield f"hwtctl.1: {word} is missing"

    with tempfile.TemporaryDirectory() as scratch:
        for name in ("one.script", "two.script"):
            Path(scratch, name).touch()
        for line, want in COMPLETED:
            yield from differ(f"completion of {line}", want.split(), complete(*line, cwd=scratch))
            # fish also offers options for an empty word.
            yield from differ(f"fish: completion of {line}", want.split(),
                              [word for word in fish(*line, cwd=scratch) if line[-1] or not word.startswith("-")])

    root = out / "root"
    output("rm", "-rf", root)
    output(*make, f"DESTDIR={root}", "PREFIX=/usr", "install")
    yield from differ("installed files", INSTALLED,
                      (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()))
    output(root / "usr/bin/hwtctl", "--version")
