#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Convert drivers of the packaged kernel from timer_list to hwt, and compile them. Print TAP.

The drivers are copies of folders of the kernel's source, converted by tools/timer_list.cocci. Each
converted file is a test point, and must compile without a change by hand.

The copies and the converted files remain in build/convert/tree, the compiler's output in
build/convert/compile.log.
"""
import argparse
import collections
import functools
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))
import host
import kernels
import tap

OUT = host.BUILD / "convert"
SOURCE = functools.partial(kernels.source, "linux-source-6.1")
PATCH = host.TOP / "tools/timer_list.cocci"
# Drivers: folders or files, each with other headers that declare timers, and the least number of .c
# files that are converted. Left out are
#   drivers of other machines: they do not compile on x86 (a2065, declance, sunlance, tsi108_eth);
#   net/packet, net/atm/lec.c, hdlc_fr: their timers remain, with comments for a human;
#   hamachi: its callback is also in a table, so the converted file does not compile;
#   atp: a call in code that is disabled by #if is not converted;
#   net/ax25, lapb, llc, netrom, rose, sctp, x25: their timers are in structures of include/net;
#   large drivers of Ethernet and of wireless networks: the conversion takes minutes.
DRIVERS = {
    "drivers/net/can/grcan.c": 1,
    "drivers/net/can/kvaser_pciefd.c": 1,
    "drivers/net/can/sja1000/peak_pcmcia.c": 1,
    "drivers/net/can/usb/peak_usb/pcan_usb.c": 1,
    "drivers/net/ethernet/3com/3c515.c": 1,
    "drivers/net/ethernet/3com/3c574_cs.c": 1,
    "drivers/net/ethernet/3com/3c589_cs.c": 1,
    "drivers/net/ethernet/3com/3c59x.c": 1,
    "drivers/net/ethernet/8390/pcnet_cs.c": 1,
    "drivers/net/ethernet/agere/et131x.c": 1,
    "drivers/net/ethernet/amd/pcnet32.c": 1,
    "drivers/net/ethernet/dec/tulip/dmfe.c": 1,
    "drivers/net/ethernet/dec/tulip/uli526x.c": 1,
    "drivers/net/ethernet/dec/tulip/winbond-840.c": 1,
    "drivers/net/ethernet/dlink/sundance.c": 1,
    "drivers/net/ethernet/intel/e100.c": 1,
    "drivers/net/ethernet/marvell/mv643xx_eth.c": 1,
    "drivers/net/ethernet/natsemi/natsemi.c": 1,
    "drivers/net/ethernet/packetengines/yellowfin.c": 1,
    "drivers/net/ethernet/sis/sis190.c": 1,
    "drivers/net/ethernet/sis/sis900.c": 1,
    "drivers/net/ethernet/smsc/epic100.c": 1,
    "drivers/net/ethernet/smsc/smc91c92_cs.c": 1,
    "drivers/net/hamradio/6pack.c": 1,
    "drivers/net/ntb_netdev.c": 1,
    "drivers/net/phy/phylink.c": 1,
    "drivers/net/tun.c": 1,
    "drivers/net/usb/catc.c": 1,
    "drivers/net/usb/lan78xx.c": 1,
    "drivers/net/usb/sierra_net.c": 1,
    "drivers/net/wan/hdlc_cisco.c": 1,
    "drivers/net/wan/hdlc_ppp.c": 1,
    "drivers/net/wireguard": 2,
    "drivers/net/wireless/atmel/atmel.c": 1,
    "drivers/net/xen-netfront.c": 1,
    "net/appletalk/aarp.c": 1,
    "net/atm": 1,
    "net/batman-adv": 1,
    "net/bluetooth/hidp": 1,
    "net/bridge": 7,
    "net/hsr": 3,
    "net/mac80211": 19,
    "net/ncsi": 2,
    "net/nfc": 2,
    "net/nfc/hci": 1,
    "net/rxrpc": 3,
    "net/tipc": 4,
}
# Files of these drivers that do not compile with the distribution's configuration, converted or not.
NOT_COMPILED = ("net/hsr/hsr_device.c", "net/ncsi/ncsi-manage.c", "net/nfc/hci/llc_shdlc.c")
LEAST = 60
# What sample.c becomes, without line breaks, and the first words of the comments in it.
CONVERTED = (
    "struct timer_list pinned; struct timer_list on_cpu; struct timer_list table; struct timer_list foreign; "
    "struct timer_list down; struct timer_list far; struct hwt_timeout plain; struct hwt_timeout slot[4];",
    "struct one *one = container_of(t, typeof(*one), plain);",
    "hwt_schedule(t, hwt_jiffies_until(jiffies + one->n - 1)); hwt_schedule(&one->plain, hwt_jiffies_until(one->when));",
    "if ((hwt_schedule_pending(&one->plain, hwt_jiffies(HZ / 2)) & HWT_WAS_PENDING)) return;",
    "one->n = (hwt_schedule_earlier(&one->plain, hwt_msecs(one->n)) & HWT_WAS_PENDING);",
    "hwt_schedule_unless_pending(&one->slot[one->n], hwt_secs(1));",
    "if (hwt_delete(&one->plain) && hwt_try_delete(&one->plain) < 0)",
    "if (hwt_try_delete(t) < 0) hwt_schedule(t, hwt_jiffies(HZ * FACTOR));",
    "if (!hwt_pending(t)) hwt_schedule(t, hwt_jiffies_until(jiffies + next(one)));",
    "if (is_set(&one->timer) && !timer_pending(&one->works[one->n].timer))",
    "static void other(struct timer_list *t)",
    "hwt_timeout_setup(&one->slot[i], hwt_system_bh_wheel, expire);",
)
COMMENTS = ["a", "was", "the", "TIMER_PINNED", "kept", "add_timer_on()", "a", "passed", "kept", "timer_shutdown()", "expires", "a"]
CALL = re.compile(r"\b(hwt_(?:timeout_setup|schedule(?:_pending|_earlier|_unless_pending)?|pending|delete|try_delete|"
                  r"cancel_sync|shutdown_sync|remaining))\(")
OLD = re.compile(r"\b(?:timer_setup|mod_timer|mod_timer_pending|timer_reduce|add_timer|del_timer|del_timer_sync|"
                 r"try_to_del_timer_sync|timer_shutdown_sync|timer_pending)\(\s*(&?[\w>.\[\]-]+)")
NEW = re.compile(r"\bhwt_\w+\(\s*(&?[\w>.\[\]-]+)")
COMMENT = re.compile(r"/\* hwt: (.*?) \*/", re.S)


def calls_of(text):
    """Return the calls of hwt in a text, without those that a comment names."""
    return CALL.findall(COMMENT.sub("", text))


def copy(path):
    """Copy a file of the kernel's source; return the copy."""
    target = OUT / "tree" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copyfile(SOURCE() / path, target)
    return target


def files(driver):
    """Copy a driver, with the files beside it; return the copies in which timers may be used."""
    found = []
    for word in driver.split():
        folder = word if (SOURCE() / word).is_dir() else str(Path(word).parent)
        beside = sorted(str(path.relative_to(SOURCE())) for path in (SOURCE() / folder).glob("*.[ch]"))
        copies = {path: copy(path) for path in beside if not path.startswith("include/") or path == word}
        found += [path for name, path in copies.items() if name.startswith(word)]
    return [path for path in found if "timer" in read(path)]


def read(path):
    """Return the text of a file."""
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def convert(sources):
    """Convert files together; return the problems, and the texts of changed files before and after."""
    before = {path: read(path) for path in sources}
    code, said = host.said(["timeout", "600", "spatch", "--very-quiet", "--sp-file", PATCH, "--in-place", *sources],
                           cwd=host.TOP)
    after = {path: read(path) for path in sources}
    return said.splitlines() if code else [], {path: (before[path], after[path]) for path in sources
                                               if before[path] != after[path]}


def mixed(text):
    """Return the timers of a file that functions of both interfaces take, by their expressions."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return sorted(set(OLD.findall(text)) & set(NEW.findall(text)))


def sample(points):
    """Convert sample.c, which has a use of each kind: points for the calls and for the comments."""
    path = OUT / "sample.c"
    shutil.copyfile(Path(__file__).with_name("sample.c"), path)
    problems, texts = convert([path])
    after = " ".join(texts[path][1].split()) if texts else ""
    missing = [text for text in CONVERTED if text not in after]
    points.point("sample.c: calls and times", not problems and not missing, [*problems, *missing])
    found = [text.partition(":")[0].partition(" ")[0] for text in COMMENT.findall(after)]
    points.point("sample.c: comments for a human, in order", found == COMMENTS, [str(found)])


def compile_all(objects, name):
    """Compile objects with the headers of the distribution's kernel; return the log."""
    tree = OUT / "tree"
    (tree / "include/trace").mkdir(parents=True, exist_ok=True)
    words = [f"obj-m := {' '.join(objects)}",
             # Headers of tracepoints name their folder as seen from include/trace.
             f"ccflags-y := -I{host.TOP} -I$(src)/include/trace -Werror=incompatible-pointer-types",
             # Before the kernel's headers: headers that were converted.
             "NOSTDINC_FLAGS += -I$(src)/include",
             *(f"CFLAGS_{name} := -I$(src)/{Path(name).parent}" for name in objects)]
    (tree / "Kbuild").write_text("# SPDX-License-Identifier: GPL-2.0-only\n" + "".join(word + "\n" for word in words),
                                 encoding="utf-8")
    _, said = host.said(["make", "-k", f"-j{host.JOBS}", "-C", kernels.find("stock").get().kdir, f"M={tree}", *objects])
    (OUT / f"{name}.log").write_text(said, encoding="utf-8")
    return said


def errors(log, path):
    """Return the compiler's errors about a file and what it includes."""
    return [line for line in log.splitlines() if " error: " in line and path in line][:5]


def main():
    """Convert and compile; a point for each file, and one for their number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("driver", nargs="*", help="only these folders or files")
    args = parser.parse_args()
    drivers = args.driver or list(DRIVERS)
    shutil.rmtree(OUT, ignore_errors=True)
    points = tap.Points()
    # Copy all files first: drivers may share a folder.
    sources = [files(driver) for driver in drivers]
    with ThreadPoolExecutor(host.JOBS) as pool:
        results = dict(zip(drivers, pool.map(convert, sources)))

    changed, kinds, calls = {}, collections.Counter(), collections.Counter()
    for driver, (problems, texts) in results.items():
        converted = {path: text for path, text in texts.items() if path.suffix == ".c" and calls_of(text[1])}
        expected = DRIVERS.get(driver, 1)
        points.point(f"{driver}: spatch converts at least {expected} files", not problems and len(converted) >= expected,
                     problems[:20] or [f"{len(converted)}: {' '.join(path.name for path in converted)}"])
        changed |= {path: text for path, text in converted.items()
                    if str(path.relative_to(OUT / "tree")) not in NOT_COMPILED}
        for _, after in texts.values():
            kinds.update(" ".join(text.split()) for text in COMMENT.findall(after))
            calls.update(calls_of(after))

    names = {path: str(path.relative_to(OUT / "tree")) for path in changed}
    log = compile_all([name.removesuffix(".c") + ".o" for name in names.values()], "compile")
    good = 0
    for path, (_, after) in changed.items():
        compiled = path.with_suffix(".o").exists()
        both = mixed(after)
        good += compiled and not both
        points.point(f"{names[path]}: converted, and compiles", compiled and not both,
                     [*errors(log, names[path]), *(f"of both interfaces: {word}" for word in both)])
    if not args.driver:
        sample(points)
        points.point(f"at least {LEAST} files are converted and compile", good >= LEAST, [str(good)])
        points.point("a call that is left out of the conversion does not compile", planted())

    print(f"# {good} of {len(changed)} files; {sum(calls.values())} calls, {sum(kinds.values())} comments for a human")
    for counter in (calls, kinds):
        for text, count in counter.most_common():
            print(f"# {count:5} {text}")
    return points.end()


def planted():
    """Put one old call back into a converted file; return whether the file fails to compile."""
    path = OUT / "tree/drivers/net/wireguard/timers.c"
    text = path.read_text(encoding="utf-8")
    old = text.replace("hwt_schedule(timer, hwt_jiffies_until(expires))", "mod_timer(timer, expires)")
    wrong = path.with_name("planted.c")
    wrong.write_text(old, encoding="utf-8")
    log = compile_all(["drivers/net/wireguard/planted.o"], "planted")
    return old != text and not wrong.with_suffix(".o").exists() and "incompatible pointer type" in log


if __name__ == "__main__":
    host.main(main)
