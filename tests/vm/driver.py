# SPDX-License-Identifier: GPL-2.0-only
"""Kernel drivers that tools/timer_list.cocci converts to hwt: built for a guest, packed with their programs.

What a human decides for one of them is a patch for the converted driver, tests/kernel/NAME.patch.
"""

import re
import shutil

import apt
import build
import host
import kernels

SOURCE = "linux-source-6.1"
SCRIPT = host.TOP / "tools/timer_list.cocci"
PACKAGES = ("patch", "coccinelle", "libpython3.11", "wireguard-tools")
# The folder in the kernel's source, the kernel option, and the program.
DRIVERS = {"wireguard": ("drivers/net/wireguard", "CONFIG_WIREGUARD", "/usr/bin/wg")}


def converted(name, folder, directory):
    """Copy a driver's source, and convert and patch the copy, unless an up-to-date copy exists."""
    patch = host.TOP / f"tests/kernel/{name}.patch"
    source = kernels.source(SOURCE) / folder
    done = directory / "converted"
    text = "\n".join([str(source), *(path.read_text(encoding="utf-8") for path in (SCRIPT, patch) if path.exists())])
    if done.exists() and done.read_text(encoding="utf-8") == text:
        return
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(source, directory)
    host.logged(f"{directory}.log", f"converting {folder}",
                ["spatch", "--very-quiet", "--sp-file", SCRIPT, "--in-place", *sorted(directory.glob("*.[ch]"))])
    if patch.exists():
        try:
            host.logged(f"{directory}.log", f"patching {folder}",
                        ["patch", "-d", directory, "-p1", "--fuzz=0", "-i", patch])
        except host.Failed as error:
            raise host.Failed(f"{patch.relative_to(host.TOP)} does not apply to {folder} of {SOURCE}, converted. The "
                              f"rejected parts are in {directory}/*.rej: port them to the converted folder, and "
                              "replace the patch by its differences (diff -U1)") from error
    done.write_text(text, encoding="utf-8")


def module(kernel, name, tree):
    """Build a driver outside @tree, against its modules, as any client of hwt; return its path."""
    folder, option, _ = DRIVERS[name]
    apt.install(*PACKAGES)
    directory = tree.with_name(f"{tree.name}-{name}")
    with build.locked(directory.with_name(f"{directory.name}.lock")):
        converted(name, folder, directory)
        host.logged(f"{directory}.log", f"building {name} with hwt for kernel {kernel.name}",
                    ["make", "-C", kernel.kdir, f"M={directory}", f"{option}=m",
                     f"KBUILD_EXTRA_SYMBOLS={tree}/Module.symvers", f"KCFLAGS=-I{host.TOP}",
                     *kernel.make_words, f"-j{host.JOBS}", "modules"])
    return directory / f"{name}.ko"


def files(kernel, tests, tree):
    """Return the files that the tests' drivers need: {path in the guest: file}."""
    found = {}
    for name in sorted({test.driver for test in tests if test.driver}):
        if name not in DRIVERS:
            raise host.Failed(f"'hwt-test: driver': there is no {name}; there are: {', '.join(DRIVERS)}")
        ko = module(kernel, name, tree)
        found[f"hwt/modules/{ko.name}"] = ko
        # Kernels that are built here have these modules in their image.
        found |= {f"hwt/network/{path.name}": path for path in (kernel.dir / "network").glob("*.ko")}
        program = DRIVERS[name][2]
        # The program needs its libraries at their paths on this machine.
        found |= {path[1:]: path for path in [program, *re.findall(r"(/\S+) \(0x", host.output(["ldd", program]))]}
    return found
