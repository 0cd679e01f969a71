// SPDX-License-Identifier: GPL-2.0-only
/* The module: its parameters, initialisation and exit */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/module.h>

#include "core/debug.h"
#include "core/debugfs.h"
#include "core/params.h"
#include "core/registry.h"
#include "core/wheel.h"
#include "hwt_chardev.h"

#define HWT_USEC_MAX		(3600U * USEC_PER_SEC)	/* an hour, which fits into 32 bits */

unsigned int hwt_tick_us = 1000;
module_param_named(tick_us, hwt_tick_us, uint, 0444);
MODULE_PARM_DESC(tick_us, "Default tick, microseconds (1 to 3600000000, default 1000)");

unsigned int hwt_ticks_per_wheel = 8192;
module_param_named(ticks_per_wheel, hwt_ticks_per_wheel, uint, 0444);
MODULE_PARM_DESC(ticks_per_wheel, "Default buckets of level 0, rounded up to a power of two (2 to 65536, default 8192)");

unsigned int hwt_levels = 3;
module_param_named(levels, hwt_levels, uint, 0444);
MODULE_PARM_DESC(levels, "Default levels of a wheel (1 to 6, default 3)");

unsigned int hwt_min_tick_us = 1000;
module_param_named(min_tick_us, hwt_min_tick_us, uint, 0444);
MODULE_PARM_DESC(min_tick_us, "Shortest tick, microseconds; shorter ones are raised to it (1 to 1000000, default 1000)");

unsigned int hwt_shards;
module_param_named(shards, hwt_shards, uint, 0444);
MODULE_PARM_DESC(shards, "Default shards of a wheel, each an engine with a thread (1 to 256; 0: one, or on more than 16 CPUs one for each last-level cache; default 0)");

unsigned int hwt_reclaim_ms = 100;
module_param_named(reclaim_ms, hwt_reclaim_ms, uint, 0444);
MODULE_PARM_DESC(reclaim_ms, "Longest time that a cancelled timeout is kept, milliseconds (1 to 10000, default 100)");

unsigned int hwt_slow_callback_us = 10000;
module_param_named(slow_callback_us, hwt_slow_callback_us, uint, 0644);
MODULE_PARM_DESC(slow_callback_us, "Callbacks that take longer are logged, microseconds (0: none are, default 10000)");

static bool debug;
module_param(debug, bool, 0444);
MODULE_PARM_DESC(debug, "Report timeouts that are not initialised, initialised or moved while held, left by an unloaded module, or, with CONFIG_DEBUG_OBJECTS_FREE, freed while held (default N)");

static int __init hwt_param_check(const char *name, unsigned int value,
				  unsigned int min, unsigned int max)
{
	if (value >= min && value <= max)
		return 0;
	pr_err("%s=%u is out of range: %u to %u\n", name, value, min, max);
	return -EINVAL;
}

static int __init hwt_params_check(void)
{
	return hwt_param_check("tick_us", hwt_tick_us, 1, HWT_USEC_MAX) ?:
	       hwt_param_check("ticks_per_wheel", hwt_ticks_per_wheel, 2, HWT_TICKS_MAX) ?:
	       hwt_param_check("levels", hwt_levels, 1, HWT_LEVELS_MAX) ?:
	       hwt_param_check("min_tick_us", hwt_min_tick_us, 1, USEC_PER_SEC) ?:
	       hwt_param_check("shards", hwt_shards, 0, HWT_SHARDS_MAX) ?:
	       hwt_param_check("reclaim_ms", hwt_reclaim_ms, 1, 10000);
}

static int __init hwt_init(void)
{
	int ret;

	ret = hwt_params_check();
	if (ret)
		return ret;
	ret = hwt_registry_init();
	if (ret)
		return ret;
	if (debug)
		static_branch_enable(&hwt_debug);
	hwt_debugfs_init();
	ret = hwt_wheels_init();
	if (ret)
		goto err_debugfs;
	ret = hwt_chardev_init(hwt_debugfs_root);
	if (!ret)
		return 0;
	hwt_wheels_exit();
err_debugfs:
	debugfs_remove(hwt_debugfs_root);
	hwt_registry_exit();
	return ret;
}

/* No file of /dev/hwt is open, and no client has a wheel: either would keep hwt loaded. */
static void __exit hwt_exit(void)
{
	hwt_chardev_exit();
	hwt_wheels_exit();
	debugfs_remove(hwt_debugfs_root);
	hwt_registry_exit();
}

module_init(hwt_init);
module_exit(hwt_exit);

MODULE_DESCRIPTION("Hashed and hierarchical timing wheels");
MODULE_VERSION(HWT_VERSION);
MODULE_LICENSE("GPL");
