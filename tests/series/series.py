#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Check the series of patches that tools/series makes for the newest packaged kernel. Print TAP.

--quick     only: checkpatch, the series applies, the objects of the last patch build, as y and as m on x86-64
Without it, each patch is built, the last one for i386 and arm64, too, and linked; KUnit and selftests run under User Mode Linux.
"""
import argparse
import os
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))
import host
import kernels
import tap

OUT = host.BUILD / "series"
FOLDERS = ("kernel/time/hwt", "drivers/misc/hwt", "drivers/net/wireguard")
# Options beyond tinyconfig ("!": off). With y, few of those on which hwt depends are on; with m, all are.
COMMON = ("64BIT", "SMP", "MODULES", "PRINTK", "HIGH_RES_TIMERS", "NO_HZ_IDLE", "NET", "INET", "NETDEVICES", "!CPU_MITIGATIONS")
CONFIGS = {
    "y": [*COMMON],
    "m": [*COMMON, "BUG", "DEBUG_FS", "FTRACE", "ENABLE_DEFAULT_TRACERS", "PROC_FS", "IO_URING", "SUSPEND", "MEMCG", "CGROUPS",
          "NUMA", "TIME_NS", "NAMESPACES", "DEBUG_KERNEL", "PROVE_LOCKING", "DEBUG_OBJECTS", "DEBUG_OBJECTS_FREE", "HWT_DEBUG", "KUNIT"],
    "i386": COMMON[1:], "arm64": [*COMMON],
}
# For the selftests, in addition to kernel/time/hwt/.kunitconfig.
USER = ("HOSTFS", "DEVTMPFS", "PROC_FS", "TMPFS", "EPOLL", "EVENTFD", "MULTIUSER", "TIME_NS", "NAMESPACES", "UNIX", "NET")
# The root of the guest is that of its host.
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
%s run_tests
busybox poweroff -f
"""


class Tree:
    """A copy of the kernel's source, to which the patches are applied, and its builds."""

    def __init__(self, linux):
        self.path = OUT / "linux"
        shutil.rmtree(self.path, ignore_errors=True)
        # Hard links: patch writes new files.
        host.output(["sh", "-c", 'cp -al "$0" "$1" 2>/dev/null || { rm -rf "$1"; cp -a "$0" "$1"; }', linux, self.path])

    def make(self, config, *words):
        """Run make in the build of a configuration; return its exit code and its output."""
        build = OUT / f"build-{config}"
        build.mkdir(exist_ok=True)
        cross = [f"CROSS_COMPILE={kernels.cross()}"] if config == "arm64" else []
        return host.said(["make", "-C", self.path, f"O={build}", f"ARCH={config if len(config) > 1 else 'x86_64'}", *cross,
                          f"-j{host.JOBS}", *words])

    def configure(self, config):
        """Make or renew a configuration; return what is wrong. Options that come with later patches are left out."""
        path = OUT / f"build-{config}/.config"
        if not path.exists():
            self.make(config, "tinyconfig")
        value = "m" if config == "m" else "y"
        hwt = {option: value for option in ("HWT", "HWT_DEV", "HWT_KUNIT_TEST", "WIREGUARD")}
        with open(path, "a", encoding="ascii") as file:
            file.writelines(f"# CONFIG_{option[1:]} is not set\n" if option[0] == "!" else f"CONFIG_{option}=y\n"
                            for option in CONFIGS[config])
            file.writelines(f"CONFIG_{option}={value}\n" for option, value in hwt.items())
        code, text = self.make(config, "olddefconfig")
        if code:
            return text
        chosen = path.read_text()
        there = "".join(file.read_text() for file in self.path.glob("*/*/hwt/Kconfig"))
        lost = [option for option in ("HWT", "HWT_DEV") if f"config {option}\n" in there and f"CONFIG_{option}={value}\n" not in chosen]
        return f"not in .config: {' '.join(lost)}" if lost else ""

    def apply(self, patch):
        return host.said(["patch", "-p1", "-s", "-N", "--fuzz=0", "-d", self.path, "-i", patch])

    def build(self, config):
        """Build the objects of hwt; return what is wrong."""
        if not (self.path / FOLDERS[0] / "Kconfig").exists():
            return ""
        wrong = self.configure(config)
        if wrong:
            return wrong
        code, text = self.make(config, "W=1", *(f"{folder}/" for folder in FOLDERS if (self.path / folder).exists()))
        return text if code or re.search(r"\bwarning:", text) else ""


def check(results, name, code, text):
    """Note a result. Print what went wrong."""
    if code:
        print(re.sub("^", "# ", text[-4000:], flags=re.M), flush=True)
    print(f"{'not ok' if code else 'ok'} - {name}", file=sys.stderr, flush=True)
    results.check(name, not code, "see above")


def check_patch(results, linux, patch, name):
    """Run checkpatch. series.py itself has checked that MAINTAINERS names each new file."""
    # Programs: the reasons are in tests/static/style.py.
    ignored = "FILE_PATH_CHANGES" + (",VOLATILE,MACRO_ARG_REUSE" if name.startswith("selftests") else "")
    check(results, f"checkpatch {name}", *host.said(
        ["perl", linux / "scripts/checkpatch.pl", "--no-tree", "--strict", "--show-types", "-q", "--ignore", ignored, patch]))


def kunit(tree, command, *words):
    """Run a command of kunit.py; return its exit code and its output."""
    return host.said([sys.executable, "tools/testing/kunit/kunit.py", command, "--kunitconfig=kernel/time/hwt",
                      f"--build_dir={OUT}/build-um", *words], cwd=tree.path)


def check_uml(results, tree):
    """Run the KUnit test and the selftests under User Mode Linux."""
    options = [f"--kconfig_add=CONFIG_{option}=y" for option in USER]
    code, text = kunit(tree, "run", f"--jobs={host.JOBS}", *options)
    passed = len(re.findall(r"\[PASSED\] \w+_test", text))
    check(results, f"KUnit: {passed} tests", code or passed < 6, text)
    code, text = tree.make("y", "headers")
    words = ["make", "-C", tree.path / "tools/testing/selftests", "TARGETS=hwt", f"O={OUT}/build-y"]
    if not code:
        code, text = host.said(words)
    check(results, "selftests: build", code, text)
    (OUT / "init").write_text(INIT % " ".join(map(str, words)))
    (OUT / "init").chmod(0o755)
    code, text = host.said(["timeout", "1200", OUT / "build-um/linux", "mem=1G", "rootfstype=hostfs", "rw", f"init={OUT}/init", "con=null",
                            "con0=fd:0,fd:1", "kunit.enable=0"])
    programs = sorted(path.name for path in (OUT / "build-y/kselftest/hwt").glob("*") if path.is_file() and os.access(path, os.X_OK))
    for name in programs:
        check(results, f"selftest {name}", not re.search(rf"^ok \d+ selftests: hwt: {name}\b(?!.*SKIP)", text, re.M), text)
    check(results, "selftests: programs", not programs, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    linux = kernels.source("newest")
    OUT.mkdir(parents=True, exist_ok=True)
    host.output([sys.executable, host.TOP / "tools/series/series.py", linux, OUT / "patches"])
    results, tree = tap.Results(), Tree(linux)
    patches = sorted((OUT / "patches").glob("*.patch"))[1:]
    for patch in patches:
        name = re.sub(r"^\d+-|\.patch$", "", patch.name)
        check_patch(results, linux, patch, name)
        check(results, f"{name} applies", *tree.apply(patch))
        last = patch == patches[-1]
        for config in CONFIGS if last and not args.quick else ("y", "m") if last or not args.quick else ():
            wrong = tree.build(config)
            check(results, f"{name}, {config}", bool(wrong), wrong)
    if not args.quick:
        for config in ("y", "m"):
            check(results, f"the kernel and its modules, {config}", *tree.make(config))
        check_uml(results, tree)
    return results.print_tap()


if __name__ == "__main__":
    host.main(main)
