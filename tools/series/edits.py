# SPDX-License-Identifier: GPL-2.0-only
"""What the series changes in the sources of hwt and in files of the kernel.

A condition is the name of a feature (see the file "patches"), "!" and a feature, or None. A text
that is to be replaced must be there exactly once, so that an edit that is out of date is an error.
"""
import functools
from pathlib import Path

import guides

HERE = Path(__file__).resolve().parent

# Guides that become parts of the kernel's documentation.
DOCUMENTS = {"design": "core-api/hwt.rst", "kernel": "core-api/hwt.rst", "statistics": "core-api/hwt.rst",
             "limits": "userspace-api/hwt.rst"}

# Sources whose objects depend on an option of their own.
OPTIONAL = ["core/debug.c"]

# Headers that hwt_compat.h includes for a file of the series.
COMPAT_INCLUDES = {"kernel/time/hwt/cpus.c": ["linux/processor.h"], "drivers/misc/hwt/uring.h": ["linux/io_uring/cmd.h"]}

# Sections of hwt.h, and the features to which they belong.
SECTIONS = {"Groups": "groups"}

# Modules that call functions of the core that hwt.h does not declare, by their features.
IMPORTERS = {"kunit": "hwt_test", "exports": "hwt_dev"}
# These functions, and the features of the modules.
EXPORTS = {
    "core/buckets.c": (["kunit", "exports"],
                       ["hwt_buckets_insert", "hwt_buckets_remove", "hwt_buckets_next_tick", "hwt_buckets_skip",
                        "hwt_buckets_advance", "hwt_buckets_rebase", "hwt_buckets_size", "hwt_buckets_init"]),
    "core/params.c": (["exports"], ["hwt_params_get"]),
}

EDITS = [
    ("core/buckets.c", "kunit", "#include <linux/bitmap.h>\n", "#include <linux/bitmap.h>\n#include <linux/export.h>\n"),
    ("core/params.c", "exports", "#include <linux/errno.h>\n", "#include <linux/errno.h>\n#include <linux/export.h>\n"),
    # CONFIG_HWT_DEBUG: without it, the compiler removes the calls of core/debug.c.
    ("core/debug.h", None, "DECLARE_STATIC_KEY_FALSE(hwt_debug);\nu32 hwt_debug_mark(const struct hwt_timeout *timeout);\n",
     """#ifdef CONFIG_HWT_DEBUG
DECLARE_STATIC_KEY_FALSE(hwt_debug);

static inline bool hwt_debug_enabled(void)
{
	return static_branch_unlikely(&hwt_debug);
}
#else
static inline bool hwt_debug_enabled(void)
{
	return false;
}
#endif

/* Return the value that @check has in a timeout that was initialised at this address. */
static inline u32 hwt_debug_mark(const struct hwt_timeout *timeout)
{
	return (u32)(unsigned long)timeout ^ __HWT_CHECK_PLACE;
}

"""),
    ("core/debug.h", None, "\tif (static_branch_unlikely(&hwt_debug))\n", "\tif (hwt_debug_enabled())\n"),
    ("core/debug.h", None, "!static_branch_unlikely(&hwt_debug) ||", "!hwt_debug_enabled() ||"),
    ("core/debug.c", None, """/* Return the value that @check has in a timeout that was initialised at this address. */
u32 hwt_debug_mark(const struct hwt_timeout *timeout)
{
	return (u32)(unsigned long)timeout ^ __HWT_CHECK_PLACE;
}

""", ""),
    ("hwt_main.c", "!debug", "\tif (debug)\n\t\tstatic_branch_enable(&hwt_debug);\n", ""),
    ("hwt_main.c", "debug", "\tif (debug)\n\t\tstatic_branch_enable(&hwt_debug);\n",
     "#ifdef CONFIG_HWT_DEBUG\n\tif (debug)\n\t\tstatic_branch_enable(&hwt_debug);\n#endif\n"),
    ("hwt_main.c", "!debug", """static bool debug;
module_param(debug, bool, 0444);
MODULE_PARM_DESC(debug, "Report timeouts that are not initialised, initialised or moved while held, left by an unloaded module, or, with CONFIG_DEBUG_OBJECTS_FREE, freed while held (default N)");

""", ""),
    ("hwt_main.c", "debug", "static bool debug;\n", "#ifdef CONFIG_HWT_DEBUG\nstatic bool debug;\n"),
    ("hwt_main.c", "debug", "freed while held (default N)\");\n", "freed while held (default N)\");\n#endif\n"),
    # The device is a module of its own, with the core's directory in debugfs.
    ("hwt_main.c", None, '#include "hwt_chardev.h"\n', ""),
    ("hwt_main.c", None, """	if (ret)
		goto err_debugfs;
	ret = hwt_chardev_init(hwt_debugfs_root);
	if (!ret)
		return 0;
	hwt_wheels_exit();
err_debugfs:
""", """	if (!ret)
		return 0;
"""),
    ("hwt_main.c", None, "\thwt_chardev_exit();\n", ""),
    ("hwt_main.c", None, "/* No file of /dev/hwt is open, and no client has a wheel: either would keep hwt loaded. */",
     "/* No client has a wheel, which would keep hwt loaded. */"),
    # Built in, hwt is there before the drivers that use it.
    ("hwt_main.c", None, "module_init(hwt_init);", "subsys_initcall(hwt_init);"),
    ("hwt_main.c", None, 'MODULE_VERSION(HWT_VERSION);\n', ""),
    ("core/debugfs.c", "device", "struct dentry *hwt_debugfs_root;\n",
     'struct dentry *hwt_debugfs_root;\nEXPORT_SYMBOL_FOR_MODULES(hwt_debugfs_root, "hwt_dev");\n\n'),
    ("core/debugfs.c", "device", "#include <linux/debugfs.h>\n", "#include <linux/debugfs.h>\n#include <linux/export.h>\n"),
    # The tests and models of the project are not part of the series.
    ("core/state.h", None, """ * side effects. tests/unit/state.c calls them with every combination of bits, and "make
 * check-verify" compares their results with those of the model in tests/verify.
""", " * side effects.\n"),
    ("core/buckets.h", None, """ * Its users are the core, the device and, in user space, libhwt and tests. They serialize all calls
 * on the same buckets: the core by the shard's lock, the device by the context's lock.
""", """ * The callers serialize all calls on the same buckets: the core by the shard's lock, the device by
 * the context's lock.
"""),
    ("device/event.c", None, " (tests/verify/litmus/poll-wake)", ""),
    ("device/pass.c", None, " (tests/verify/litmus/pass-wake)", ""),
    ("device/pass.c", None, "\n\t * (tests/verify/litmus/pass-event).", "."),
    ("device/context.h", None, " docs/design.md lists the files of device/.", ""),
    ("hwt_uapi.h", None, " in a second call, until a deadline. libhwt does so.\n",
     " in a second call, until a deadline.\n"),
    ("tests/user/lifecycle.c", None, """ For ids, see ids.c; for races of
 * cancel and modify, see process.c; for deadlines that never come, kernel/test_basics.c and
 * timens.c. "Netty" marks a test that Netty's timer has as well.
""", """ "Netty" marks a test that Netty's
 * timer has as well.
"""),
    ("tests/user/list.c", None, " For saving and restoring, see lib_basic.c; for overruns, see periodic.c.", ""),
    ("core/trace.h", None, '#include "core/clock.h"\n#include "core/wheel.h"\n',
     '#include "hwt.h"\n\nstruct hwt_shard;\nstruct hwt_timeout;\nstruct hwt_wheel;\n'),
    ("core/trace.h", None, """#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH core
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
""", "/* This part must be outside protection */\n"),
    ("core/trace.c", None, "#define CREATE_TRACE_POINTS\n#include \"core/trace.h\"\n",
     '#include "core/clock.h"\n#include "core/wheel.h"\n\n#define CREATE_TRACE_POINTS\n#include <trace/events/hwt.h>\n'),
]

# Files of tree/ that come with a feature; all others come with the first patch.
TEMPLATES = {
    "kernel/time/hwt/Makefile": "buckets",
    "kernel/time/hwt/Kconfig": "buckets",
    "kernel/time/hwt/hwt_test.c": "kunit",
    "kernel/time/hwt/.kunitconfig": "kunit",
    "drivers/misc/hwt/Kconfig": "entries",
    "drivers/misc/hwt/Makefile": "entries",
    "drivers/misc/hwt/main.c": "device",
    "tools/testing/selftests/hwt/Makefile": "selftests",
    "tools/testing/selftests/hwt/config": "selftests",
    "tools/testing/selftests/hwt/.gitignore": "selftests",
    "tools/testing/selftests/hwt/settings": "selftests",
}

# Files that are made: their condition, and a function of the top directory of hwt and of series.run().
MADE = {target: (feature, functools.partial(guides.page, target))
        for target, feature in {"Documentation/core-api/hwt.rst": "guide", "Documentation/userspace-api/hwt.rst": "guide_dev"}.items()}

# The driver that the last patch converts.
CONVERTED = "drivers/net/wireguard"

# Files of the kernel: the condition, the text before which lines are added, and these lines.
CHANGED = [
    ("MAINTAINERS", "interface", "HYCON HY46XX TOUCHSCREEN SUPPORT\n", (HERE / "MAINTAINERS").read_text().partition("\n")[2] + "\n"),
    ("kernel/time/Kconfig", "buckets", "config POSIX_AUX_CLOCKS\n", 'source "kernel/time/hwt/Kconfig"\n\n'),
    ("kernel/time/Makefile", "buckets", "obj-$(CONFIG_TIME_KUNIT_TEST)", "obj-$(CONFIG_HWT)\t\t\t\t+= hwt/\n"),
    ("Documentation/userspace-api/ioctl/ioctl-number.rst", "uapi", "0xEC  00-01  drivers/platform/chrome/cros_ec_dev.h",
     "0xE7  00-4F  linux/hwt.h\n"),
    ("drivers/misc/Kconfig", "entries", 'source "drivers/misc/c2port/Kconfig"\n', 'source "drivers/misc/hwt/Kconfig"\n'),
    ("drivers/misc/Makefile", "entries", "obj-$(CONFIG_MISC_RP1)", "obj-$(CONFIG_HWT_DEV)\t\t+= hwt/\n"),
    ("Documentation/core-api/index.rst", "guide", "   errseq\n", "   hwt\n"),
    ("Documentation/userspace-api/index.rst", "guide_dev", "   iommufd\n", "   hwt\n"),
    ("tools/testing/selftests/Makefile", "selftests", "TARGETS += intel_pstate\n", "TARGETS += hwt\n"),
    ("drivers/net/Kconfig", "wireguard", "\tselect CRYPTO_LIB_CURVE25519\n\tselect CRYPTO_LIB_CHACHA20POLY1305\n\tselect CRYPTO_LIB_UTILS\n",
     "\tselect HWT\n"),
]
