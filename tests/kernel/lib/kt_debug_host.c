// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creates the wheels on which kt_debug_leaver.ko leaves its timeouts, and keeps some timeouts of
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
#include "kt_debug_host.h"

struct hwt_wheel *kt_debug_shared;
EXPORT_SYMBOL_GPL(kt_debug_shared);

struct hwt_wheel *kt_debug_own;
EXPORT_SYMBOL_GPL(kt_debug_own);

void *kt_debug_memory;
EXPORT_SYMBOL_GPL(kt_debug_memory);

void (*kt_debug_mend)(void);
EXPORT_SYMBOL_GPL(kt_debug_mend);

static int host_module_event(struct notifier_block *block, unsigned long event, void *data)
{
	void (*mend)(void) = kt_debug_mend;

	if (event != MODULE_STATE_GOING || !mend || !within_module((unsigned long)mend, data))
		return NOTIFY_DONE;
	mend();
	kt_debug_mend = NULL;
	return NOTIFY_OK;
}

static struct notifier_block host_notifier = {
	.notifier_call = host_module_event, .priority = INT_MIN,
};

struct hwt_timeout kt_debug_busy;
EXPORT_SYMBOL_GPL(kt_debug_busy);

static void host_sleep(struct hwt_timeout *timeout)
{
	msleep(500);
}

static atomic_t host_beats;

/* Executes for most of the time: its period is 1 ms. */
static void host_beat(struct hwt_timeout *timeout)
{
	atomic_inc(&host_beats);
	usleep_range(1000, 1500);
}

const struct hwt_timeout_ops kt_debug_ops = { .expire = host_sleep };
EXPORT_SYMBOL_GPL(kt_debug_ops);

static const struct hwt_timeout_ops beat_ops = { .expire = host_beat };

static struct hwt_timeout host_far;
static struct hwt_periodic host_periodic;

static int __init kt_debug_host_init(void)
{
	struct hwt_wheel_params params = { .name = "host", .workers = 1 };

	kt_debug_shared = hwt_wheel_get_shared(NULL);
	if (IS_ERR(kt_debug_shared))
		return PTR_ERR(kt_debug_shared);
	kt_debug_own = hwt_wheel_create(&params);
	if (IS_ERR(kt_debug_own)) {
		hwt_wheel_put(kt_debug_shared);
		return PTR_ERR(kt_debug_own);
	}
	register_module_notifier(&host_notifier);
	hwt_timeout_init(&kt_debug_busy, kt_debug_own, &kt_debug_ops);
	hwt_timeout_init(&host_far, kt_debug_shared, &kt_debug_ops);
	hwt_schedule(&host_far, 3600ULL * NSEC_PER_SEC);
	hwt_periodic_init(&host_periodic, kt_debug_shared, &beat_ops);
	hwt_schedule_periodic(&host_periodic, 0, NSEC_PER_MSEC, HWT_MODE_FIXED_RATE);
	return 0;
}
module_init(kt_debug_host_init);

static void __exit kt_debug_host_exit(void)
{
	int far = hwt_cancel_sync(&host_far), periodic = hwt_cancel_sync(&host_periodic.timeout);

	pr_info("its own are %s\n", far == 1 && periodic == 1 && atomic_read(&host_beats) ?
		"there" : "gone");
	hwt_cancel_sync(&kt_debug_busy);
	pr_info("%llu and %llu are pending\n", hwt_wheel_pending(kt_debug_shared),
		hwt_wheel_pending(kt_debug_own));
	unregister_module_notifier(&host_notifier);
	hwt_wheel_put(kt_debug_shared);
	hwt_wheel_destroy(kt_debug_own);
	kfree(kt_debug_memory);
}
module_exit(kt_debug_host_exit);

MODULE_DESCRIPTION("hwt: wheels for a module that leaves timeouts behind");
MODULE_LICENSE("GPL");
