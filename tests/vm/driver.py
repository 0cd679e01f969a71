# SPDX-License-Identifier: GPL-2.0-only
"""Kernel drivers that tools/timer_list.cocci converts to hwt: built for a guest, packed with their programs.

What a human decides for one of them is a patch for the converted driver, tests/kernel/NAME.patch.
"""

import re
import shutil
from pathlib import Path

import apt
import build
import host
import kernels

SOURCE = "linux-source-6.1"
SCRIPT = host.TOP / "tools/timer_list.cocci"
PACKAGES = ("patch", "coccinelle", "libpython3.11", "wireguard-tools", "bash", "iproute2", "jq", "netsniff-ng")
# The folder in the kernel's source, the kernel option, the programs, and the selftests in the kernel's source.
DRIVERS = {
    "wireguard": ("drivers/net/wireguard", "CONFIG_WIREGUARD", ["wg"], []),
    "bridge": ("net/bridge", "CONFIG_BRIDGE", ["bash", "bridge", "ip", "jq", "mausezahn", "tc"],
               [f"tools/testing/selftests/net/forwarding/{name}.sh" for name in ("lib", "bridge_igmp", "bridge_mld")]),
}


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
    folder, option, _, _ = DRIVERS[name]
    apt.install(*PACKAGES)
    directory = tree.with_name(f"{tree.name}-{name}")
    with build.locked(directory.with_name(f"{directory.name}.lock")):
        converted(name, folder, directory)
        host.logged(f"{directory}.log", f"building {name} with hwt for kernel {kernel.name}",
                    ["make", "-C", kernel.kdir, f"M={directory}", f"{option}=m",
                     f"KBUILD_EXTRA_SYMBOLS={tree}/Module.symvers",
                     # Headers of tracepoints include a driver's header by its path in the kernel's source.
                     f"KCFLAGS=-I{host.TOP} -iquote{kernels.source(SOURCE)}/include/trace/events",
                     *kernel.make_words, f"-j{host.JOBS}", f"{name}.ko"])
    return directory / f"{name}.ko"


def files(kernel, tests, tree):
    """Return the files that the tests' drivers need: {path in the guest: file}. "veth" is the kernel's own."""
    found = {}
    for name in sorted({test.driver for test in tests if test.driver}):
        # Kernels that are built here have these modules in their image, except an unconverted driver.
        found |= {f"hwt/network/{path.name}": path
                  for path in [*(kernel.dir / "network").glob("*.ko"), *(kernel.dir / "build/net").rglob("*.ko")]}
        if name == "veth":
            continue
        if name not in DRIVERS:
            raise host.Failed(f"'hwt-test: driver': there is no {name}; there are: veth, {', '.join(DRIVERS)}")
        ko = module(kernel, name, tree)
        found[f"hwt/modules/{ko.name}"] = ko
        _, _, programs, selftests = DRIVERS[name]
        found |= {f"hwt/selftests/{Path(path).name}": kernels.source(SOURCE) / path for path in selftests}
        for program in (shutil.which(program, path="/usr/sbin:/usr/bin") for program in programs):
            # The program needs its libraries at their paths on this machine.
            found |= {path[1:]: path for path in [program, *re.findall(r"(/\S+) \(0x", host.output(["ldd", program]))]}
    return found
