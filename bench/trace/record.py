# SPDX-License-Identifier: GPL-2.0-only
"""Record the timer operations of a guest at work, for bench_trace.c.

load.c and init are the guest's work; it has one CPU.
"""

import re
import shutil
import sys
from pathlib import Path

import host
import kernels
import pack

HERE = Path(__file__).resolve().parent


def initramfs(kernel, root, output):
    """Pack busybox, the load, and the modules for a disk in the order to load them."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    shutil.copy(HERE / "init", root / "init")
    (root / "init").chmod(0o755)
    shutil.copytree(kernel.dir / "modules", root / "load")
    if host.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", root / "load/load", HERE / "load.c"]):
        raise host.Failed("load.c does not build")
    pack.archive(root, output)


def record(seconds, out):
    """Write out/trace.bin: the given number of seconds of the guest."""
    kernel = kernels.find("stock").get()
    out.mkdir(parents=True, exist_ok=True)
    initramfs(kernel, out / "root", out / "guest.gz")
    images = [out / name for name in ("disk.img", "result.img")]
    for image in images:
        image.write_bytes(b"")
        with open(image, "r+b") as file:
            file.truncate(256 << 20)
    host.output(["mkfs.ext4", "-q", "-F", images[0]])
    log = out / "record.log"
    host.logged(log, f"recording the timers of a guest that works for {seconds} s", [
        "timeout", "300", "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", "pc", "-cpu", "max", "-accel", "tcg", "-smp", "1", "-m", "2G", "-serial", "stdio",
        "-kernel", kernel.vmlinuz, "-initrd", out / "guest.gz",
        *(word for image in images for word in ("-drive", f"file={image},format=raw,if=virtio")),
        "-append", f"console=ttyS0 panic=-1 tsc=reliable clocksource=tsc HWT_SECONDS={seconds}"])
    said = log.read_text(encoding="utf-8", errors="replace")
    if not re.search(r"^hwt-trace: end", said, re.M):
        raise host.Failed(f"the guest did not get through: {log}")
    if not re.search(r"^dropped events: 0", said, re.M):
        host.say("the end of the recording is lost: the buffer is too small")
    hertz = re.search(r"^CONFIG_HZ=(\d+)", (kernel.kdir / ".config").read_text(encoding="utf-8"), re.M).group(1)
    print(host.output([sys.executable, HERE / "convert.py", hertz, images[1], out / "trace.bin"]))
    for image in [*images, out / "guest.gz"]:
        image.unlink()
