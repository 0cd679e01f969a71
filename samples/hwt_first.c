// SPDX-License-Identifier: GPL-2.0-only
/* The first kernel client of README.md */
#include <linux/module.h>
#include "hwt.h"

static struct hwt_timeout hello;

static void hello_expire(struct hwt_timeout *timeout)
{
	pr_info("hwt_first: a second has passed\n");
}

static int __init first_init(void)
{
	hwt_timeout_setup(&hello, hwt_system_wheel, hello_expire);
	hwt_schedule(&hello, hwt_secs(1));
	return 0;
}
module_init(first_init);

static void __exit first_exit(void)
{
	hwt_shutdown_sync(&hello);	/* waits for a callback under way */
}
module_exit(first_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("hwt sample: one timeout");
