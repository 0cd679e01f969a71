// SPDX-License-Identifier: GPL-2.0-only
/*
 * One timeout, many hands: moved forward and backward by one CPU while another one
 * cancels it, waits for it, asks about it. However it went, the counts add up: each
 * schedule that found it not pending has ended in one expiry or one cancel, and each
 * one that found it not held in one release.
 *
 * hwt-test: long
 * hwt-test: timeout 120
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/prandom.h>

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

static struct {
	struct hwt_periodic	periodic;
	atomic_t		armed, holds, hits, sync_hits, expired, released;
	atomic_t		cancelled, refused, strange;
	bool			rearm, repeat;
} one;

#define TIMEOUT	(&one.periodic.timeout)

static void note_schedule(int ret)
{
	if (ret == -ENOENT || ret == -ESHUTDOWN) {
		atomic_inc(&one.refused);
		return;
	}
	if (ret < 0) {
		atomic_inc(&one.strange);
		return;
	}
	if (!(ret & HWT_WAS_PENDING))
		atomic_inc(&one.armed);
	if (!(ret & HWT_WAS_HELD))
		atomic_inc(&one.holds);
	if (ret == HWT_WAS_PENDING)
		atomic_inc(&one.strange);	/* pending and not held? */
}

static void one_expire(struct hwt_timeout *timeout)
{
	if (!hwt_running(timeout))
		atomic_inc(&one.strange);
	if (atomic_inc_return(&one.expired) % 2 && one.rearm)
		note_schedule(hwt_schedule(timeout, 0));
}

static void one_cancelled(struct hwt_timeout *timeout)
{
	atomic_inc(&one.cancelled);
}

static void one_release(struct hwt_timeout *timeout)
{
	atomic_inc(&one.released);
}

static const struct hwt_ops one_ops = {
	.expire		= one_expire,
	.cancelled	= one_cancelled,
	.release	= one_release,
};

static int forward_and_backward(void *arg)
{
	struct rnd_state rnd;
	u32 random;
	u64 delay;

	prandom_seed_state(&rnd, 1);
	while (!kthread_should_stop()) {
		random = prandom_u32_state(&rnd);
		delay = random % 4 ? random >> 12 : KT_HOUR;	/* up to a ms */
		switch (random >> 2 & 7) {
		case 0:
		case 1:
			note_schedule(hwt_schedule_earlier(TIMEOUT, delay));
			break;
		case 2:
			note_schedule(hwt_schedule_pending(TIMEOUT, delay));
			break;
		case 3:
			if (one.repeat && !arg) {
				note_schedule(hwt_schedule_periodic(&one.periodic,
								    0, 1,
								    HWT_FIXED_RATE));
				break;
			}
			fallthrough;
		default:
			note_schedule(hwt_schedule(TIMEOUT, delay));
		}
		if ((random >> 5 & 7) == 0)
			usleep_range(1, 3000);
	}
	return 0;
}

static int cancels(void *arg)
{
	unsigned int n = 0;

	while (!kthread_should_stop()) {
		if (n % 2)
			atomic_add(hwt_cancel(TIMEOUT), &one.hits);
		else if (hwt_try_cancel(TIMEOUT) & HWT_WAS_PENDING)
			atomic_inc(&one.hits);
		if (++n % 3 == 0)
			usleep_range(1, 3000);
	}
	return 0;
}

static int waits(void *arg)
{
	while (!kthread_should_stop()) {
		atomic_add(hwt_cancel_sync(TIMEOUT), &one.sync_hits);
		usleep_range(1, 3000);
	}
	return 0;
}

static int asks(void *arg)
{
	struct hwt_wheel *wheel = hwt_timeout_wheel(TIMEOUT);
	unsigned int n = 0;
	u64 word;

	while (!kthread_should_stop()) {
		word = hwt_timeout_word(TIMEOUT);
		/* Repeating is something that only a running one does. */
		if ((word & HWT_F_REPEAT) &&
		    !(word & (HWT_F_RUNNING | HWT_F_ARMED)))
			atomic_inc(&one.strange);
		if ((word & HWT_F_CANCELLED) && (word & HWT_F_ARMED))
			atomic_inc(&one.strange);
		if (hwt_wheel_pending(wheel) > 2)
			atomic_inc(&one.strange);
		hwt_deadline(TIMEOUT);
		hwt_remaining(TIMEOUT);
		if (++n % 256 == 0)
			usleep_range(1, 500);
	}
	return 0;
}

/* Has each thing happened, and not just once? How often depends on the scheduler. */
static bool __init all_happened(struct hwt_wheel *wheel, int (*other)(void *arg))
{
	struct hwt_wheel_stats stats;

	hwt_wheel_get_stats(wheel, &stats);
	return stats.expired > 5 && stats.rearmed > 5 &&
	       (stats.cancelled > 5 || other == forward_and_backward);
}

static void __init test_race(const char *what, int (*other)(void *arg),
			     bool rearm, bool repeat)
{
	struct hwt_wheel *wheel = kt_wheel("race");
	struct task_struct *thread[3];
	struct hwt_wheel_stats stats;
	int i;

	memset(&one, 0, sizeof(one));
	one.rearm = rearm;
	one.repeat = repeat;
	hwt_periodic_init(&one.periodic, wheel, &one_ops);
	thread[0] = kt_thread(forward_and_backward, NULL, 0);
	thread[1] = kt_thread(other, NULL, 1);
	thread[2] = kt_thread(asks, NULL, 0);
	msleep(kt_quick() ? 500 : 2000);
	KT_WAIT(all_happened(wheel, other));
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		kt_thread_stop(thread[i]);
	one.rearm = false;
	atomic_add(hwt_cancel_sync(TIMEOUT), &one.sync_hits);
	hwt_wheel_get_stats(wheel, &stats);

	KTEST(stats.pending == 0 && !hwt_held(TIMEOUT), "%s: idle in the end", what);
	KTEST(stats.scheduled == atomic_read(&one.armed) &&
	      stats.expired == atomic_read(&one.expired), "%s: the counts agree",
	      what);
	/* What is periodic fires more often than it is scheduled. */
	KTEST(stats.expired + stats.cancelled == stats.scheduled || repeat,
	      "%s: %llu armed = %llu fired + %llu cancelled", what, stats.scheduled,
	      stats.expired, stats.cancelled);
	KTEST(stats.cancelled >= atomic_read(&one.hits) + atomic_read(&one.sync_hits) &&
	      (stats.cancelled == atomic_read(&one.hits) + atomic_read(&one.sync_hits) ||
	       other == waits), "%s: the callers know of the cancels", what);
	KTEST(atomic_read(&one.holds) == atomic_read(&one.released),
	      "%s: %d holds, %d releases", what, atomic_read(&one.holds),
	      atomic_read(&one.released));
	KTEST(atomic_read(&one.cancelled) <= stats.cancelled,
	      "%s: ->cancelled at most once for each", what);
	KTEST(atomic_read(&one.strange) == 0, "%s: nothing strange was seen", what);
	KTEST(all_happened(wheel, other),
	      "%s: all of it happened: %llu fired, %llu cancelled, %llu re-armed",
	      what, stats.expired, stats.cancelled, stats.rearmed);
	hwt_wheel_destroy(wheel);
}

static void __init selftest(void)
{
	test_race("cancel", cancels, false, false);
	test_race("cancel_sync", waits, false, false);
	test_race("schedule", forward_and_backward, true, false);
	test_race("cancel, re-armed in its callback", cancels, true, false);
	test_race("cancel_sync, re-armed in its callback", waits, true, false);
	test_race("cancel, periodic", cancels, false, true);
	test_race("cancel_sync, periodic", waits, true, true);
}

KSTM_MODULE_LOADERS(test_race);
MODULE_DESCRIPTION("hwt: one timeout, many hands");
MODULE_LICENSE("GPL");
