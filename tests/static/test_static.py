#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests that each static check can fail, by violations in copies of the tree. Prints TAP."""
import importlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "vm")]
import checks
import host
import tap

importlib.import_module("static")     # Registers the checks.

# Check, file, a text and its replacement (or "" and text to append), pattern of the problem.
PLANTS = (
    ("spdx", "core/group.c", "SPDX-License-Identifier", "Licence", "core/group.c: no SPDX line"),
    ("places", "README.md", "", "\nSee /ro" "ot/somewhere.\n", "README.md:"),
    ("layers", "core/group.c", "#include <linux/list.h>\n", "#include \"device/context.h\"\n", "core/group.c: includes"),
    ("layers", "device/pass.h", "core/buckets.h", "core/submit.h", "device/pass.h: includes"),
    ("comments", "core/group.c", "", "\n/* One\n * comment.\n */\n", "core/group.c:.*One"),
    ("columns", "docs/limits.md", "", "\n" + "word " * 21 + "\n", "docs/limits.md:.*columns"),
    ("checkpatch", "core/group.c", "", "\nint hwt_planted( int a );\n", "core/group.c:.*SPACING"),
    ("kernel-doc", "core/group.c", "", "\n/**\n * hwt_planted() - x\n * @b: y\n */\nvoid hwt_planted(int a)\n{\n}\n",
     "core/group.c:.*'a'"),
    ("shellcheck", "lib/vendor.sh", "", "\nplanted=1\n", "SC2034"),
    ("python", "tests/vm/tap.py", "import os\n", "import os\nimport shutil\n", "'shutil' imported but unused"),
    ("python", "tests/vm/tap.py", "import os\n", "import os\nmatch os:\n    case 1:\n        pass\n",
     "tap.py:.*3.10"),
    ("python-types", "samples/hwt_asyncio.py", "idle: float) -> None", "idle) -> None", "missing a type annotation"),
    ("directives", "tests/user/ids.c", "hwt-test: ", "hwt-test: planted\n * hwt-test: ", "planted"),
    ("versions", "dkms.conf", 'VERSION="', 'VERSION="9', "debian/changelog has another version"),
    ("abi", "hwt_uapi.h", "#define HWT_OP_GET\t\t4", "#define HWT_OP_GET\t\t5", "HWT_OP: HWT_OP_GET 4 in 1.0.0, not now"),
    ("abi", "lib/libhwt.h", "int libhwt_cancel_all(", "int libhwt_cancel_every(", "libhwt_cancel_all .* in 1.0.0, not now"),
    ("python-abi", "python/hwt/_abi.py", "HWT_NEVER = 0xf", "HWT_NEVER = 0x", "HWT_NEVER: .*but in C"),
    ("python-abi", "lib/libhwt.h", "libhwt_modify(struct libhwt *context, uint64_t", "libhwt_modify(struct libhwt *context, int",
     "libhwt_modify: .*but in C"),
    ("documentation", "samples/first.c", ".user_data = 42", ".user_data = 43", "README.md:.*not in samples/first.c"),
    ("documentation", "README.md", "", "\n    code\n", "a block without a language or a file"),
    ("documentation", "docs/design.md", "", "\n[planted](nowhere.md)\n", "a link to 'nowhere.md'"),
    ("documentation", "docs/limits.md", "", "\n[planted](security.md#nowhere)\n", "a link to 'security.md#nowhere'"),
    ("quotes", "docs/performance.md", "1,832 of", "1,833 of", "no table has 1833"),
    ("quotes", "README.md", "`delayed_work` 681;", "`delayed_work` 6811;", "README.md: no table has 6811"),
    ("quotes", "README.md", "265 | 1,832 |", "265 | 1,833 |", "no table has 1833"),
    ("messages", "core/callback.c", "callback %ps took", "function %ps took", "does not have: <>: function <> took"),
    ("messages", "docs/statistics.md", "are not online`", "are offline`", "statistics.md only: .*are offline"),
    ("parameters", "docs/parameters.md", "| `shards` |", "| `shard` |", "the module has no shard"),
    ("parameters", "hwt_main.c", "", "\nmodule_param(planted, bool, 0444);\n", "planted is missing"),
    ("manual", "man/hwt.9.in", "", "\n.SH \"PLANTED\n.BOGUS\n", "hwt.9: .*BOGUS"),
    ("manual", "man/hwt.9.in", "hwt_touch, ", "", "hwt.9.in does not list hwt_touch"),
    ("manual", "hwt_uapi.h", "\t__u32\t\tkind;\n", "\t__u64\t\tkind;\n", "not understood: .*kind"),
    ("hwtctl", "tools/hwtctl.bash-completion", "--json --pid --fd --wheels", "--json --pid --wheels",
     "stats: options of help and completion"),
    ("hwtctl", "man/hwtctl.1", "SS hwtctl restore", "SS hwtctl restor", "nothing on restore"),
    ("hwtctl", "tools/run.c", '{ "echo", do_echo', '{ "eco", do_echo', "run --help: eco is missing"),
    ("hwtctl", "tools/hwtctl.bash-completion", "monotonic boottime", "monotonic", "completion of .*--clock"),
    ("figures", "docs/figures/life.dot", "}\n", "planted; }\n", "life.svg is not what life.dot says"),
    ("cppcheck", "tools/times.c", "", "\nint planted(void);\nint planted(void)\n{\n\tint a[2];\n\n"
     "\treturn a[2];\n}\n", "arrayIndexOutOfBounds"),
    ("clang-tidy", "tools/times.c", "", "\nint planted(int *p);\nint planted(int *p)\n{\n\tif (!p)\n"
     "\t\treturn *p;\n\treturn 0;\n}\n", "NullDereference"),
    ("bench-builds", "bench/hot/contention.c", "", "\nint planted;\nint planted(void);\n", "planted"),
    ("off-is-free", "core/submit.c", "bool hwt_cancel(struct hwt_timeout *timeout)\n{\n",
     "bool hwt_cancel(struct hwt_timeout *timeout)\n{\n#ifndef SHIM_BARE\n"
     "\tfor (volatile int i = 0; i < 100; i++)\n\t\t;\n#endif\n", "cancel"),
    ("plants", "tests/plants/torture.faults", "s/if (now < shard->buckets.cursor)/", "s/if (now <= shard->buckets.cursor)/",
     "the wall clock goes back"),
)


def copy(number):
    """Return a copy of the tree in hard links, in which a plant replaces a file."""
    top = checks.OUT / "test" / str(number)
    shutil.rmtree(top, ignore_errors=True)
    for file in checks.sources():
        (top / file).parent.mkdir(parents=True, exist_ok=True)
        os.link(host.TOP / file, top / file, follow_symlinks=False)
    return top


def noticed(numbered):
    """Plant a violation; return None if the check finds it, else what happened."""
    number, (check, file, old, new, words) = numbered
    top = copy(number)
    text = (top / file).read_text(encoding="utf-8")
    if old not in text:
        return f"{file} no longer has '{old}'"
    (top / file).unlink()
    (top / file).write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")
    shutil.copymode(host.TOP / file, top / file)
    code, said = host.said([sys.executable, top / "tests/static/static.py", check], stdin=subprocess.DEVNULL,
                           env={**os.environ, "HWT_BUILD": str(top / "build"), "HWT_JOBS": "1",
                                "HWT_RESULTS": str(top / "build/results")})
    log = top / "build/static" / f"{check}.log"
    if code != 1 or not log.exists() or not re.search(words, log.read_text(encoding="utf-8")):
        return f"exit code {code}\n{said}"
    shutil.rmtree(top)
    return None


def main():
    """Try all plants in parallel, and check that each check has a plant."""
    checks.PASSED.mkdir(parents=True, exist_ok=True)
    wrong = [f"{name} has no plant" for name in checks.CHECKS if name not in {plant[0] for plant in PLANTS}]
    points = tap.Points()
    points.point("each check has a plant", not wrong, wrong)
    for plant, found in zip(PLANTS, ThreadPoolExecutor(host.JOBS).map(noticed, enumerate(PLANTS))):
        points.point(f"{plant[0]}: a plant in {plant[1]} is noticed", not found, (found or "").splitlines()[:20])
    return points.end()


if __name__ == "__main__":
    host.main(main)
