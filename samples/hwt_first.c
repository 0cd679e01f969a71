// SPDX-License-Identifier: GPL-2.0-only
/* The first kernel client of README.md, where all that follows stands too. */
#include <linux/module.h>
#include "hwt.h"

static struct hwt_wheel *wheel;
static struct hwt_timeout hello;

static void hello_expire(struct hwt_timeout *timeout)
{
	pr_info("hwt_first: a second has passed\n");
}

static const struct hwt_timeout_ops hello_ops = { .expire = hello_expire };

static int __init first_init(void)
{
	wheel = hwt_wheel_get_shared(NULL);	/* NULL: the defaults */
	if (IS_ERR(wheel))
		return PTR_ERR(wheel);
	hwt_timeout_init(&hello, wheel, &hello_ops);
	hwt_schedule(&hello, NSEC_PER_SEC);
	return 0;
}
module_init(first_init);

static void __exit first_exit(void)
{
	hwt_shutdown_sync(&hello);	/* waits for a callback under way */
	hwt_wheel_put(wheel);
}
module_exit(first_exit);

MODULE_LICENSE("GPL");
