// SPDX-License-Identifier: GPL-2.0-only
/*
 * Performs a known sequence of operations on a wheel named "traced" when it is loaded, for
 * trace-events.sh.
 */
#include <linux/module.h>

#include "hwt.h"
#include "hwt_ktest_util.h"

/* Deadlines far in the future, multiples of the tick. */
#define FAR		1000000000000000ULL
#define FARTHER		2000000000000000ULL
/* A deadline in the past. */
#define OVER		1

static void traced_once(struct hwt_timeout *timeout)
{
	kt_expire(timeout);
}

static atomic_t again_expired;

static void traced_again(struct hwt_timeout *timeout)
{
	atomic_inc(&again_expired);
}

static const struct hwt_timeout_ops again_ops = { .expire = traced_again };

static struct kt once, left;
static struct hwt_periodic again;

/* Traced as the wheel's creator. */
static noinline struct hwt_wheel *traced_make(void)
{
	struct hwt_wheel_params params = { .name = "traced", .shards = 1 };

	return hwt_wheel_create(&params);
}

static int __init kt_traced_init(void)
{
	struct hwt_wheel *wheel = traced_make();
	bool ok = true;

	if (IS_ERR(wheel))
		return PTR_ERR(wheel);
	kt_setup(&once, wheel, traced_once);
	kt_setup(&left, wheel, traced_once);
	hwt_periodic_init(&again, wheel, &again_ops);

	hwt_schedule_at(&once.timeout, FAR);
	hwt_schedule_at(&once.timeout, FARTHER);
	hwt_cancel(&once.timeout);
	hwt_cancel(&once.timeout);
	hwt_cancel_sync(&once.timeout);

	hwt_schedule_at(&once.timeout, U64_MAX);
	hwt_cancel_sync(&once.timeout);

	hwt_schedule_at(&once.timeout, OVER);
	ok &= KT_WAIT(kt_expirations(&once) == 1);
	hwt_schedule_periodic_at(&again, OVER, FAR, HWT_MODE_FIXED_RATE);
	ok &= KT_WAIT(atomic_read(&again_expired) == 1);
	hwt_wheel_flush(wheel);
	hwt_cancel_sync(&again.timeout);

	hwt_shutdown_sync(&once.timeout);
	hwt_schedule_at(&once.timeout, FAR);

	hwt_schedule_at(&left.timeout, FAR);
	ok &= hwt_wheel_stop(wheel, NULL, NULL) == 1;
	hwt_schedule_at(&left.timeout, FAR);
	hwt_wheel_destroy(wheel);
	return ok ? 0 : -EIO;
}
module_init(kt_traced_init);

static void __exit kt_traced_exit(void)
{
}
module_exit(kt_traced_exit);

MODULE_DESCRIPTION("hwt: a known sequence of operations to trace");
MODULE_LICENSE("GPL");
