// SPDX-License-Identifier: GPL-2.0-only
/*
 * A wheel for debugfs.sh and other scripts to look at: "shown/one", on which some timeouts are
 * pending, and callbacks have been called, one of them slow. With others=1, three more wheels with
 * other parameters.
 */
#include <linux/cpumask.h>
#include <linux/module.h>

#include "hwt.h"
#include "hwt_ktest_util.h"

#define SLOW_MS		50
/* A tick of 10 ms and 8 buckets per level: revolutions of 80 ms, 640 ms and 5.12 s. */
#define TICK_NS		(10 * KT_MS)

static bool others;
module_param(others, bool, 0444);
MODULE_PARM_DESC(others, "Create three more wheels");

static struct hwt_wheel *wheel, *more[3];
static struct kt fired[5], waiting[3];

static void shown_slow(struct hwt_timeout *timeout)
{
	kt_take_time(SLOW_MS * KT_MS);
	kt_expire(timeout);
}

static const struct hwt_timeout_ops slow_ops = { .expire = shown_slow };

/* Shown as the wheel's creator. */
static noinline struct hwt_wheel *shown_make(void)
{
	struct hwt_wheel_params params = {
		.name = "shown/one",
		.tick_ns = TICK_NS,
		.ticks_per_wheel = 8,
		.levels = 3,
		.clock = HWT_CLOCK_BOOTTIME,
		.max_pending = 100,
		.shards = 1,
	};

	return hwt_wheel_create(&params);
}

static void shown_unmake(void)
{
	int i;

	hwt_wheel_destroy(wheel);
	for (i = 0; i < ARRAY_SIZE(more); i++)
		if (!IS_ERR_OR_NULL(more[i]))
			hwt_wheel_destroy(more[i]);
}

static int __init shown_make_others(void)
{
	more[0] = kt_wheel("two", .tick_ns = KT_HOUR, .ticks_per_wheel = 65536, .levels = 6,
			   .clock = HWT_CLOCK_REALTIME, .shards = 1,
			   .flags = HWT_COARSE_CLOCK | HWT_FREEZABLE, .workers = 2,
			   .priority = HWT_PRIO_FIFO_LOW);
	more[1] = kt_wheel("three", .cpus = cpumask_of(0), .wait = HWT_WAIT_BUSY);
	more[2] = kt_wheel("four", .priority = HWT_PRIO_FIFO);
	return PTR_ERR_OR_ZERO(more[2]) ?: hwt_wheel_stop(more[2], NULL, NULL);
}

static bool __init shown_fire(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(fired); i++) {
		kt_init(&fired[i], wheel, i < 4 ? &kt_plain_ops : &slow_ops);
		hwt_schedule(&fired[i].timeout, 1);
		if (!KT_WAIT(kt_expirations(&fired[i]) == 1))
			return false;
	}
	return true;
}

static int __init kt_shown_init(void)
{
	int i;

	wheel = shown_make();
	if (IS_ERR(wheel))
		return PTR_ERR(wheel);
	if (!shown_fire() || (others && shown_make_others())) {
		shown_unmake();
		return -EIO;
	}
	/* All on the highest level, two in one bucket; then one move and one cancel. */
	for (i = 0; i < ARRAY_SIZE(waiting); i++) {
		kt_init(&waiting[i], wheel, &kt_plain_ops);
		hwt_schedule_at(&waiting[i].timeout,
				(kt_wheel_tick(wheel) / 64 + 1000 + i / 2) * 64 * TICK_NS);
	}
	hwt_schedule(&waiting[0].timeout, hwt_remaining(&waiting[0].timeout));
	hwt_schedule(&fired[0].timeout, KT_HOUR);
	hwt_cancel_sync(&fired[0].timeout);
	hwt_wheel_flush(wheel);
	return 0;
}
module_init(kt_shown_init);

static void __exit kt_shown_exit(void)
{
	shown_unmake();
}
module_exit(kt_shown_exit);

MODULE_DESCRIPTION("hwt: a wheel to look at");
MODULE_LICENSE("GPL");
