// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine wakes up only when a timeout is due: never with a million timeouts pending and none
 * due for an hour, and once a second with one due each second.
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

/* Slower kernels. */
#define SLOW	(KT_SLOW || IS_ENABLED(CONFIG_PREEMPT_RT))

static unsigned int seconds = SLOW ? 5 : 10;
module_param(seconds, uint, 0444);	/* duration of each measurement */

static unsigned int pending = SLOW ? 200000 : 1000000;
module_param(pending, uint, 0444);	/* number of timeouts due after more than an hour */

/* Parameters of the wheel. */
static unsigned int levels = 3, workers;
module_param(levels, uint, 0444);
module_param(workers, uint, 0444);

static struct hwt_wheel *wheel;

/*
 * Wait for an idle time longer than a pass, and than any wait of the engine for a CPU. (Submissions
 * may be left on the lists: those due after the planned wake-up do not wake the engine.)
 */
static bool __init asleep(void)
{
	return kt_asleep(wheel, KT_SLOW ? 3000 : 1000);
}

/* Arm the timeouts for 1 to 30 hours from now. */
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
	      "in %u s the engine does not wake: %llu times", seconds,
	      after.wakeups - before.wakeups);
	KTEST(after.pending == pending && after.expired == 0, "no timeout has fired");
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
		/* The deadline rounded up to a tick. */
		each[i].earliest = hwt_deadline(&each[i].timeout);
	}
	KTEST(asleep(), "%u more, one due each second: the engine sleeps", seconds);
	before = kt_stats(wheel);
	/* A guest that gets too little CPU time may be too late for this check. */
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
	/* A timeout that is late by a second shares the wake-up of the next one. */
	slow |= worst >= KT_SECOND;
	KTEST((slow || after.wakeups - before.wakeups >= seconds) &&
	      after.wakeups - before.wakeups <= seconds + 1,
	      "the engine woke once for each: %llu times", after.wakeups - before.wakeups);
	KTEST(after.expired == seconds && after.pending == pending, "no other timeout has fired");
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
	      "a stop hands back all others");
	vfree(each);
	vfree(timeout);
}

KSTM_MODULE_LOADERS(test_tickless);
