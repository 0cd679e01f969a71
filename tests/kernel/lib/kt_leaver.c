// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client that is unloaded without giving up its wheel. The second load does that. Run by
 * module-leaves.sh.
 */
#include <linux/module.h>

#include "hwt.h"
#include "kt_keeper.h"

static bool shared;
module_param(shared, bool, 0444);	/* leave a reference to a shared wheel */

static struct hwt_timeout timeout;

static void leaver_expire(struct hwt_timeout *timeout)
{
}

static int __init leaver_init(void)
{
	struct hwt_wheel_params params = { .name = "left", .levels = 1 };
	struct hwt_wheel *wheel;

	if (test_kept) {
		if (shared)	/* -ENOENT: the module that had it is no more */
			__hwt_wheel_put(test_kept, ERR_PTR(-ENOENT));
		else
			hwt_wheel_destroy(test_kept);
		test_kept = NULL;
		return 0;
	}
	wheel = shared ? hwt_wheel_get_shared(&params) : hwt_wheel_create(&params);
	if (IS_ERR(wheel))
		return PTR_ERR(wheel);
	hwt_timeout_setup(&timeout, wheel, leaver_expire);
	test_kept = wheel;
	return 0;
}
module_init(leaver_init);

static void __exit leaver_exit(void)
{
	hwt_shutdown_sync(&timeout);
}
module_exit(leaver_exit);

MODULE_DESCRIPTION("hwt: leaves its wheel behind");
MODULE_LICENSE("GPL");
