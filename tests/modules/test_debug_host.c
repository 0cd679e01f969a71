// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has the wheels on which test_debug_leaver.ko leaves its timeouts, and says when it goes
 * whether they are empty. Run by scripts/module-debug.sh.
 *
 * hwt-test: manual
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "hwt.h"
#include "test_debug_host.h"

struct hwt_wheel *test_debug_shared;
EXPORT_SYMBOL_GPL(test_debug_shared);

struct hwt_wheel *test_debug_own;
EXPORT_SYMBOL_GPL(test_debug_own);

void *test_debug_memory;
EXPORT_SYMBOL_GPL(test_debug_memory);

static int __init test_debug_host_init(void)
{
	struct hwt_wheel_params params = { .name = "host", .workers = 1 };

	test_debug_shared = hwt_wheel_get_shared(NULL);
	if (IS_ERR(test_debug_shared))
		return PTR_ERR(test_debug_shared);
	test_debug_own = hwt_wheel_create(&params);
	if (IS_ERR(test_debug_own)) {
		hwt_wheel_put(test_debug_shared);
		return PTR_ERR(test_debug_own);
	}
	return 0;
}
module_init(test_debug_host_init);

static void __exit test_debug_host_exit(void)
{
	pr_info("%llu and %llu are pending\n", hwt_wheel_pending(test_debug_shared),
		hwt_wheel_pending(test_debug_own));
	hwt_wheel_put(test_debug_shared);
	hwt_wheel_destroy(test_debug_own);
	kfree(test_debug_memory);
}
module_exit(test_debug_host_exit);

MODULE_DESCRIPTION("hwt: wheels for a module that leaves timeouts behind");
MODULE_LICENSE("GPL");
