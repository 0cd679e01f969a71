// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creates the wheels on which test_debug_leaver.ko leaves its timeouts, and keeps some timeouts of
 * its own there. When unloaded, logs how many other timeouts remain. Run by module-debug.sh.
 *
 * hwt only reports what a module leaves. So that the guest survives, a notifier of a lower priority
 * than hwt's ends these timeouts, before the kernel frees the module.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/slab.h>

#include "hwt.h"
#include "test_debug_host.h"

struct hwt_wheel *test_debug_shared;
EXPORT_SYMBOL_GPL(test_debug_shared);

struct hwt_wheel *test_debug_own;
EXPORT_SYMBOL_GPL(test_debug_own);

void *test_debug_memory;
EXPORT_SYMBOL_GPL(test_debug_memory);

void (*test_debug_mend)(void);
EXPORT_SYMBOL_GPL(test_debug_mend);

static int host_module_event(struct notifier_block *block, unsigned long event, void *data)
{
	void (*mend)(void) = test_debug_mend;

	if (event != MODULE_STATE_GOING || !mend || !within_module((unsigned long)mend, data))
		return NOTIFY_DONE;
	mend();
	test_debug_mend = NULL;
	return NOTIFY_OK;
}

static struct notifier_block host_notifier = {
	.notifier_call = host_module_event, .priority = INT_MIN,
};

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
	register_module_notifier(&host_notifier);
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
	unregister_module_notifier(&host_notifier);
	hwt_wheel_put(test_debug_shared);
	hwt_wheel_destroy(test_debug_own);
	kfree(test_debug_memory);
}
module_exit(test_debug_host_exit);

MODULE_DESCRIPTION("hwt: wheels for a module that leaves timeouts behind");
MODULE_LICENSE("GPL");
