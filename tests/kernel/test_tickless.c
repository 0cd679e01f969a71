// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine wakes up when something is due, and at no other time: with a million timeouts
 * pending and none due for an hour, never; with one due each second, once a second.
 *
 * hwt-test: long
 * hwt-test: timeout 180
 * hwt-test: args levels=3
 * hwt-test: args levels=3 workers=2 pending=100000 seconds=3
 * hwt-test: args levels=1 pending=100000 seconds=3
 */
#include <linux/module.h>
#include <linux/prandom.h>

#include "hwt_ktest.h"

/* Kernels that take longer for everything. */
#define SLOW	(KT_SLOW || IS_ENABLED(CONFIG_PREEMPT_RT))

static unsigned int seconds = SLOW ? 5 : 10;
module_param(seconds, uint, 0444);	/* how long to look on, each time */

static unsigned int pending = SLOW ? 200000 : 1000000;
module_param(pending, uint, 0444);	/* timeouts that are not due for an hour */

/* Of the wheel. */
static unsigned int levels = 3, workers;
module_param(levels, uint, 0444);
module_param(workers, uint, 0444);

static struct hwt_wheel *wheel;

/*
 * The while is to be longer than a pass, or than it may have to wait for a processor. (It need
 * not have collected all: who comes behind those that it sleeps for does not wake it.)
 */
static bool __init asleep(void)
{
	return kt_asleep(wheel, KT_SLOW ? 3000 : 1000);
}

/* Anywhere from 1 to 30 hours ahead. */
static void __init arm_far(struct hwt_timeout *timeout)
{
	u64 base = hwt_wheel_now(wheel) + KT_HOUR, ahead;
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, pending);
	for (i = 0; i < pending; i++) {
		ahead = prandom_u32_state(&rnd) % (29 * 3600 * MSEC_PER_SEC) * KT_MS;
		hwt_timeout_init(&timeout[i], wheel, &kt_nothing_ops);
		hwt_schedule_at(&timeout[i], base + ahead);
	}
}

static void __init test_none_due(void)
{
	struct hwt_wheel_stats before, after;

	KTEST(asleep(), "the engine sleeps");
	before = kt_stats(wheel);
	KTEST(before.pending == pending, "%llu timeouts are pending, none due for an hour",
	      before.pending);
	msleep(seconds * MSEC_PER_SEC);
	after = kt_stats(wheel);
	KTEST(after.wakeups == before.wakeups && after.passes == before.passes,
	      "the engine has not woken in %u s: %llu times", seconds,
	      after.wakeups - before.wakeups);
	KTEST(after.pending == pending && after.expired == 0, "and nothing has fired");
}

static void __init test_each_second(struct kt *each)
{
	u64 first = hwt_wheel_now(wheel) + (KT_SLOW ? 10 : 3) * KT_SECOND;
	unsigned int i, fired = 0, early = 0;
	u64 worst = 0;
	struct hwt_wheel_stats before, after;
	bool slow;

	for (i = 0; i < seconds; i++) {
		kt_init(&each[i], wheel, &kt_ops);
		hwt_schedule_at(&each[i].timeout, first + i * KT_SECOND);
		/* The tick that it is rounded up to. */
		each[i].earliest = hwt_deadline(&each[i].timeout);
	}
	KTEST(asleep(), "%u more, one due each second: the engine sleeps", seconds);
	before = kt_stats(wheel);
	/* A guest that gets little of a processor may come too late to see that. */
	slow = hwt_wheel_now(wheel) >= first;
	KTEST(slow || (before.expired == 0 && before.pending == pending + seconds),
	      "all are pending");
	for (i = 0; i < seconds; i++) {
		fired += KT_WAIT(kt_releases(&each[i]) == 1) &&
			 kt_expirations(&each[i]) == 1;
		early += atomic_read(&each[i].early);
		worst = max(worst, each[i].at - each[i].earliest);
	}
	KTEST(fired == seconds && early == 0, "%u of %u fire, %u before their tick", fired,
	      seconds, early);
	KTEST(asleep(), "the engine sleeps again");
	after = kt_stats(wheel);
	/* One that is late by a second is served together with the next. */
	slow |= worst >= KT_SECOND;
	KTEST((slow || after.wakeups - before.wakeups >= seconds) &&
	      after.wakeups - before.wakeups <= seconds + 1,
	      "the engine woke once for each: %llu times", after.wakeups - before.wakeups);
	KTEST(after.expired == seconds && after.pending == pending, "nothing else has fired");
}

static void __init selftest(void)
{
	struct hwt_timeout *timeout = kt_alloc(pending, sizeof(*timeout));
	struct kt *each = kt_alloc(seconds, sizeof(*each));

	wheel = kt_wheel("tickless", .levels = levels, .workers = workers);
	arm_far(timeout);
	test_none_due();
	test_each_second(each);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == pending && hwt_wheel_destroy(wheel) == 0,
	      "stop hands back all others");
	vfree(each);
	vfree(timeout);
}

KSTM_MODULE_LOADERS(test_tickless);
