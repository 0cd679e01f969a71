// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls back slowly while it is loaded, for scripts/slow-callbacks.sh.
 *
 * hwt-test: manual
 */
#include <linux/module.h>

#include "hwt.h"
#include "hwt_ktest_util.h"

static char *what = "one";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "one or other: that function expires; cancelled: it is cancelled; behind: others wait for it");

static unsigned int ms;
module_param(ms, uint, 0444);	/* how long it takes */

static unsigned int times = 1;
module_param(times, uint, 0444);	/* how often it is called */

/* Each does something of its own: a compiler may make one of two that are the same. */
static atomic_t others;

static void slow_one(struct hwt_timeout *timeout)
{
	kt_take_time(ms * KT_MS);
	kt_expire(timeout);
}

static void slow_other(struct hwt_timeout *timeout)
{
	kt_take_time(ms * KT_MS);
	atomic_inc(&others);
	kt_expire(timeout);
}

static void slow_cancelled(struct hwt_timeout *timeout)
{
	kt_take_time(ms * KT_MS);
	kt_cancelled(timeout);
}

static void slow_victim(struct hwt_timeout *timeout)
{
	kt_expire(timeout);
}

static const struct hwt_timeout_ops one_ops = { .expire = slow_one, .cancelled = slow_cancelled };
static const struct hwt_timeout_ops other_ops = { .expire = slow_other };
static const struct hwt_timeout_ops victim_ops = { .expire = slow_victim };

static struct hwt_wheel *wheel;
static struct kt kt, victims[30];

static bool run(void)
{
	unsigned int n;

	for (n = 0; n < times; n++) {
		hwt_schedule(&kt.timeout, 0);
		if (!KT_WAIT(kt_expirations(&kt) == n + 1))
			return false;
		KT_WAIT(!hwt_held(&kt.timeout));
	}
	return true;
}

static bool run_cancelled(void)
{
	hwt_schedule(&kt.timeout, 3600ULL * NSEC_PER_SEC);
	return hwt_cancel_sync(&kt.timeout) == 1;
}

static bool run_behind(void)
{
	u64 now = hwt_wheel_now(wheel);
	int i;

	hwt_schedule_at(&kt.timeout, now + 20 * KT_MS);
	for (i = 0; i < ARRAY_SIZE(victims); i++) {
		kt_init(&victims[i], wheel, &victim_ops);
		hwt_schedule_at(&victims[i].timeout, now + 30 * KT_MS);
	}
	for (i = 0; i < ARRAY_SIZE(victims); i++)
		if (!KT_WAIT(kt_expirations(&victims[i]) == 1))
			return false;
	return true;
}

static int __init test_slow_call_init(void)
{
	bool ok;

	wheel = kt_wheel("slow");
	if (IS_ERR(wheel))
		return PTR_ERR(wheel);
	kt_init(&kt, wheel, strcmp(what, "other") ? &one_ops : &other_ops);
	if (!strcmp(what, "cancelled"))
		ok = run_cancelled();
	else if (!strcmp(what, "behind"))
		ok = run_behind();
	else
		ok = run();
	hwt_wheel_destroy(wheel);
	return ok ? 0 : -EIO;
}
module_init(test_slow_call_init);

static void __exit test_slow_call_exit(void)
{
}
module_exit(test_slow_call_exit);

MODULE_DESCRIPTION("hwt: calls back slowly");
MODULE_LICENSE("GPL");
