// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creates the wheels on which test_debug_leaver.ko leaves its timeouts, and keeps some timeouts of
 * its own there. When unloaded, logs how many other timeouts remain. Run by module-debug.sh.
 */
#include <linux/delay.h>
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

struct hwt_timeout test_debug_busy;
EXPORT_SYMBOL_GPL(test_debug_busy);

static void host_sleep(struct hwt_timeout *timeout)
{
	msleep(500);
}

void test_debug_fn(struct hwt_handle *handle)
{
	host_sleep(&handle->timeout);
}
EXPORT_SYMBOL_GPL(test_debug_fn);

static atomic_t host_beats;

/* Executes for most of the time: its period is 1 ms. */
static void host_beat(struct hwt_timeout *timeout)
{
	atomic_inc(&host_beats);
	usleep_range(1000, 1500);
}

const struct hwt_timeout_ops test_debug_ops = { .expire = host_sleep };
EXPORT_SYMBOL_GPL(test_debug_ops);

static const struct hwt_timeout_ops beat_ops = { .expire = host_beat };

static struct hwt_timeout host_far;
static struct hwt_periodic host_periodic;

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
	hwt_timeout_init(&test_debug_busy, test_debug_own, &test_debug_ops);
	hwt_timeout_init(&host_far, test_debug_shared, &test_debug_ops);
	hwt_schedule(&host_far, 3600ULL * NSEC_PER_SEC);
	hwt_periodic_init(&host_periodic, test_debug_shared, &beat_ops);
	hwt_schedule_periodic(&host_periodic, 0, NSEC_PER_MSEC, HWT_MODE_FIXED_RATE);
	return 0;
}
module_init(test_debug_host_init);

static void __exit test_debug_host_exit(void)
{
	int far = hwt_cancel_sync(&host_far), periodic = hwt_cancel_sync(&host_periodic.timeout);

	pr_info("its own are %s\n", far == 1 && periodic == 1 && atomic_read(&host_beats) ?
		"there" : "gone");
	hwt_cancel_sync(&test_debug_busy);
	pr_info("%llu and %llu are pending\n", hwt_wheel_pending(test_debug_shared),
		hwt_wheel_pending(test_debug_own));
	hwt_wheel_put(test_debug_shared);
	hwt_wheel_destroy(test_debug_own);
	kfree(test_debug_memory);
}
module_exit(test_debug_host_exit);

MODULE_DESCRIPTION("hwt: wheels for a module that leaves timeouts behind");
MODULE_LICENSE("GPL");
