// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client that is unloaded and leaves timeouts behind. Run by module-debug.sh, with debug=1.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "hwt_ktest_util.h"
#include "kt_debug_host.h"

static char *how = "none";
module_param(how, charp, 0444);
MODULE_PARM_DESC(how, "What stays behind: none, kmalloc, static, never, periodic, released, deferred, copied, borrowed, running, late, many");

static bool own;
module_param(own, bool, 0444);
MODULE_PARM_DESC(own, "Use the host's private wheel instead of the shared wheel");

/* The timeouts are not due before the module is unloaded. */
#define LEAVER_NS	(3600ULL * NSEC_PER_SEC)
#define LEAVER_MANY	100

/* Completed by a callback that executes, and when hwt has reported it. */
static DECLARE_COMPLETION(leaver_inside);
static DECLARE_COMPLETION(leaver_reported);

static void leaver_expire(struct hwt_timeout *timeout)
{
	pr_err("has fired\n");
}

static void leaver_sleep(struct hwt_timeout *timeout)
{
	complete(&leaver_inside);
	wait_for_completion(&leaver_reported);
}

static void leaver_release(struct hwt_timeout *timeout)
{
	wait_for_completion(&leaver_reported);
}

static const struct hwt_timeout_ops leaver_ops = { .expire = leaver_expire };
static const struct hwt_timeout_ops sleep_ops = { .expire = leaver_sleep };
static const struct hwt_timeout_ops released_ops = {
	.expire = leaver_expire, .release = leaver_release,
};

static struct hwt_timeout leaver_static = HWT_TIMEOUT_INIT(leaver_static, &leaver_ops);
static struct hwt_periodic leaver_periodic;
static struct hwt_timeout leaver_borrowed;

/* End all timeouts. That is what the exit of a correct client does. */
static void leaver_mend(void)
{
	struct hwt_timeout *timeouts = kt_debug_memory;
	int i;

	complete_all(&leaver_reported);
	for (i = 0; i < LEAVER_MANY; i++)
		hwt_shutdown_sync(&timeouts[i]);
	hwt_shutdown_sync(&leaver_static);
	hwt_shutdown_sync(&leaver_borrowed);
	hwt_shutdown_sync(&leaver_periodic.timeout);
}

static int __init leaver_init(void)
{
	const struct hwt_timeout_ops *first = &leaver_ops;
	struct hwt_wheel *wheel = own ? kt_debug_own : kt_debug_shared;
	struct hwt_timeout *timeouts;
	struct hwt_timeout_ops *ops;
	unsigned int i;

	if (!strcmp(how, "running"))
		first = &sleep_ops;
	else if (!strcmp(how, "released") || !strcmp(how, "deferred"))
		first = &released_ops;
	/* The host frees the memory, because a leak of memory is not tested here. */
	kfree(kt_debug_memory);
	timeouts = kcalloc(LEAVER_MANY + 1, sizeof(*timeouts), GFP_KERNEL);
	kt_debug_memory = timeouts;
	if (!timeouts)
		return -ENOMEM;
	for (i = 0; i < LEAVER_MANY; i++)
		hwt_timeout_init(&timeouts[i], wheel, i ? &leaver_ops : first);
	hwt_timeout_set_wheel(&leaver_static, wheel);
	hwt_periodic_init(&leaver_periodic, wheel, &kt_nothing_ops);
	hwt_timeout_init(&leaver_borrowed, wheel, &kt_debug_ops);
	kt_debug_mend = leaver_mend;
	if (!strcmp(how, "kmalloc") || !strcmp(how, "released")) {
		hwt_schedule(&timeouts[0], LEAVER_NS);
	} else if (!strcmp(how, "static")) {
		hwt_schedule(&leaver_static, LEAVER_NS);
	} else if (!strcmp(how, "never")) {
		hwt_schedule(&leaver_static, U64_MAX);
	} else if (!strcmp(how, "periodic")) {
		hwt_schedule_periodic(&leaver_periodic, 0, NSEC_PER_MSEC, HWT_MODE_FIXED_RATE);
	} else if (!strcmp(how, "deferred")) {
		/* While the worker is busy, the end of the hold waits on shard->owed. */
		hwt_schedule(&kt_debug_busy, 0);
		while (!hwt_running(&kt_debug_busy))
			usleep_range(100, 200);
		hwt_schedule(&timeouts[0], LEAVER_NS);
		hwt_cancel(&timeouts[0]);
		msleep(150);
	} else if (!strcmp(how, "copied")) {
		/* The operations are not in the module, but their functions are. */
		ops = (struct hwt_timeout_ops *)&timeouts[LEAVER_MANY];
		*ops = leaver_ops;
		hwt_timeout_init(&timeouts[0], wheel, ops);
		hwt_schedule(&timeouts[0], LEAVER_NS);
	} else if (!strcmp(how, "borrowed")) {
		/* Only the memory of the timeout is in the module. */
		hwt_schedule(&leaver_borrowed, LEAVER_NS);
	} else if (!strcmp(how, "running")) {
		hwt_schedule(&timeouts[0], 0);
		wait_for_completion(&leaver_inside);
	} else if (!strcmp(how, "many")) {
		for (i = 0; i < LEAVER_MANY; i++)
			hwt_schedule(&timeouts[i], LEAVER_NS + i * NSEC_PER_SEC);
	} else if (strcmp(how, "late")) {
		hwt_schedule(&timeouts[0], LEAVER_NS);
		hwt_schedule(&leaver_static, LEAVER_NS);
	}
	return 0;
}
module_init(leaver_init);

static void __exit leaver_exit(void)
{
	struct hwt_timeout *timeouts = kt_debug_memory;

	/* As late as possible. */
	if (!strcmp(how, "late"))
		hwt_schedule(&timeouts[0], LEAVER_NS);
	if (!strcmp(how, "none")) {
		hwt_shutdown_sync(&timeouts[0]);
		hwt_shutdown_sync(&leaver_static);
	} else if (!strcmp(how, "released")) {
		/* The timeout does not fire, but its release is yet to be called. */
		hwt_cancel(&timeouts[0]);
	}
}
module_exit(leaver_exit);

MODULE_DESCRIPTION("hwt: leaves timeouts behind");
MODULE_LICENSE("GPL");
