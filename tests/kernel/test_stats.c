// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters of a wheel: each changes when it should, by as much as it should. Slow callbacks:
 * the slowest, callbacks that are late, and timeouts that wait behind slow ones. The script
 * slow-callbacks.sh checks the log messages.
 *
 * hwt-test: timeout 120
 */
#include <linux/moduleparam.h>

#include "hwt_ktest.h"

static char *what;
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "For slow-callbacks.sh. one, other: a function that expires; cancelled: a cancel");

static unsigned int ms, times = 1;
module_param(ms, uint, 0444);	/* duration of the callback */
module_param(times, uint, 0444);	/* number of its calls */

static struct hwt_wheel *wheel;
static struct hwt_wheel_stats was;

/* Check the changes of the counters since the last check; handed_back and overruns must stay. */
static void __init moved(const char *what, s64 pending, s64 scheduled, s64 rearmed,
			 s64 expired, s64 cancelled, s64 rejected)
{
	struct hwt_wheel_stats is;
	bool ok;

	is = kt_stats(wheel);
	ok = is.pending - was.pending == pending &&
	     is.scheduled - was.scheduled == scheduled &&
	     is.rearmed - was.rearmed == rearmed &&
	     is.expired - was.expired == expired &&
	     is.cancelled - was.cancelled == cancelled &&
	     is.rejected - was.rejected == rejected &&
	     is.handed_back == was.handed_back && is.overruns == was.overruns &&
	     is.pending == hwt_wheel_pending(wheel);
	if (!ok)
		pr_info("# %s: pending %+lld, scheduled %+lld, rearmed %+lld, expired %+lld, cancelled %+lld, rejected %+lld, handed back %+lld, overruns %+lld\n",
			what, is.pending - was.pending,
			is.scheduled - was.scheduled, is.rearmed - was.rearmed,
			is.expired - was.expired, is.cancelled - was.cancelled,
			is.rejected - was.rejected, is.handed_back - was.handed_back,
			is.overruns - was.overruns);
	was = is;
	KTEST(ok, "%s", what);
}

static void __init test_counters(void)
{
	static struct hwt_wheel_stats is, before;
	static struct hwt_periodic periodic;
	static struct kt kt, other, third, fourth;

	wheel = kt_wheel("stats", .max_pending = 3);
	kt_init(&kt, wheel, &kt_ops);
	kt_init(&other, wheel, &kt_ops);
	kt_init(&third, wheel, &kt_ops);
	kt_init(&fourth, wheel, &kt_ops);
	hwt_periodic_init(&periodic, wheel, &kt_nothing_ops);

	/* The engine may have made a pass already. */
	was = kt_stats(wheel);
	was.passes = 0;
	was.wakeups = 0;
	KTEST(!memchr_inv(&was, 0, sizeof(was)), "all counters of a new wheel are 0");

	hwt_schedule(&kt.timeout, KT_HOUR);
	moved("a schedule", 1, 1, 0, 0, 0, 0);
	hwt_schedule(&kt.timeout, KT_HOUR * 2);
	moved("pushed back: rearmed", 0, 0, 1, 0, 0, 0);
	hwt_schedule(&kt.timeout, KT_HOUR);
	moved("moved to an earlier tick: rearmed", 0, 0, 1, 0, 0, 0);
	hwt_schedule_earlier(&kt.timeout, KT_HOUR * 3);
	moved("schedule_earlier to a later tick: no change", 0, 0, 0, 0, 0, 0);
	hwt_schedule_pending(&other.timeout, KT_HOUR);
	moved("schedule_pending of an idle timeout: no change", 0, 0, 0, 0, 0, 0);
	hwt_cancel(&kt.timeout);
	moved("a cancel", -1, 0, 0, 0, 1, 0);
	hwt_cancel(&kt.timeout);
	hwt_cancel_sync(&kt.timeout);
	hwt_cancel_sync(&other.timeout);
	moved("cancels of idle timeouts: no change", 0, 0, 0, 0, 0, 0);
	hwt_schedule(&kt.timeout, KT_HOUR);
	hwt_cancel_sync(&kt.timeout);
	moved("a schedule and a cancel_sync", 0, 1, 0, 0, 1, 0);
	hwt_schedule(&kt.timeout, 0);
	KT_WAIT(kt_releases(&kt) == 3);
	moved("a schedule and an expiry", 0, 1, 0, 1, 0, 0);
	hwt_shutdown_sync(&other.timeout);
	hwt_schedule(&other.timeout, 0);
	moved("a schedule after a shutdown is not counted as rejected", 0, 0, 0, 0, 0, 0);

	is = kt_stats(wheel);
	KTEST(is.collected >= 3, "collected submissions are counted: %llu", is.collected);
	/* Let the engine fall asleep, so that the next schedule wakes it. */
	msleep(50);
	before = is;
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(({
		is = kt_stats(wheel);
		is.wakeups > before.wakeups && is.passes > before.passes;
	})), "passes and wake-ups are counted: %llu, %llu", is.passes, is.wakeups);
	KT_WAIT(kt_releases(&kt) == 4);
	is = kt_stats(wheel);

	was = is;
	hwt_schedule_periodic(&periodic, KT_HOUR, KT_MS, HWT_MODE_FIXED_RATE);
	moved("a periodic schedule", 1, 1, 0, 0, 0, 0);
	hwt_schedule(&kt.timeout, KT_HOUR);
	hwt_schedule(&third.timeout, KT_HOUR);
	moved("two more schedules", 2, 2, 0, 0, 0, 0);
	hwt_schedule(&fourth.timeout, 0);
	hwt_schedule(&fourth.timeout, 0);
	moved("two refusals at the limit", 0, 0, 0, 0, 0, 2);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 3, "a stop hands back three");
	is = kt_stats(wheel);
	KTEST(is.handed_back == 3 && is.pending == 0 &&
	      is.scheduled == is.expired + is.cancelled + is.handed_back,
	      "all schedules are expired, cancelled or handed back");
	hwt_schedule(&fourth.timeout, 0);
	was = kt_stats(wheel);
	KTEST(was.rejected == is.rejected + 1, "a schedule after the stop counts as rejected");
	hwt_wheel_destroy(wheel);

	/* Each firing of a periodic timeout counts as expired, and its overruns count. */
	wheel = kt_wheel("stats");
	hwt_periodic_init(&periodic, wheel, &kt_nothing_ops);
	hwt_schedule_periodic_at(&periodic, hwt_wheel_now(wheel) - KT_SECOND, KT_MS,
				 HWT_MODE_FIXED_RATE);
	KT_WAIT(kt_stats(wheel).expired >= 3);
	hwt_cancel_sync(&periodic.timeout);
	is = kt_stats(wheel);
	KTEST(is.scheduled == 1 && is.cancelled == 1 && is.pending == 0 &&
	      is.expired >= 3 && is.overruns >= 999 && is.overruns == hwt_overruns_total(&periodic),
	      "a periodic timeout: %llu expired, %llu overruns", is.expired, is.overruns);
	hwt_wheel_destroy(wheel);
}

/* The minimum duration of a slow callback. */
static u64 slow_ns;

/* Slow functions with different bodies: a compiler may merge identical ones. */
static void slow_expire(struct hwt_timeout *timeout)
{
	kt_take_time(READ_ONCE(slow_ns));
	kt_expire(timeout);
}

static void slow_cancelled(struct hwt_timeout *timeout)
{
	kt_take_time(READ_ONCE(slow_ns));
	kt_cancelled(timeout);
}

static atomic_t others;

static void slow_other(struct hwt_timeout *timeout)
{
	kt_take_time(READ_ONCE(slow_ns));
	atomic_inc(&others);
	kt_expire(timeout);
}

static void slow_hand_back(struct hwt_timeout *timeout, void *arg)
{
	kt_take_time(READ_ONCE(slow_ns));
	atomic_inc(arg);
}

static const struct hwt_timeout_ops slow_ops = {
	.expire = slow_expire, .cancelled = slow_cancelled,
};

static const struct hwt_timeout_ops other_ops = { .expire = slow_other };

/* Fire a timeout, and wait for the end of its hold. */
static void __init run(struct kt *kt)
{
	int n = kt_expirations(kt);

	hwt_schedule(&kt->timeout, 0);
	KT_WAIT(kt_expirations(kt) > n);
	KT_WAIT(!hwt_held(&kt->timeout));
}

static void __init test_slowest(void)
{
	struct hwt_wheel *wheel = kt_wheel("slowest");
	struct hwt_wheel_stats stats;
	atomic_t handed = ATOMIC_INIT(0);
	struct kt quick, slow;

	kt_init(&quick, wheel, &kt_plain_ops);
	kt_init(&slow, wheel, &slow_ops);
	stats = kt_stats(wheel);
	KTEST(!stats.slowest_ns, "without callbacks there is no slowest one");
	run(&quick);
	stats = kt_stats(wheel);
	KTEST(stats.slowest_ns, "the only callback is the slowest");
	slow_ns = stats.slowest_ns + 20 * KT_MS;
	run(&slow);
	stats = kt_stats(wheel);
	KTEST(stats.slowest_ns >= slow_ns, "then a slower callback is: %llu ns", stats.slowest_ns);
	hwt_schedule(&slow.timeout, KT_HOUR);
	slow_ns = stats.slowest_ns + 20 * KT_MS;
	hwt_cancel_sync(&slow.timeout);
	stats = kt_stats(wheel);
	KTEST(stats.slowest_ns >= slow_ns, "then ->cancelled in the caller of cancel_sync: %llu ns",
	      stats.slowest_ns);
	hwt_schedule(&slow.timeout, KT_HOUR);
	slow_ns = stats.slowest_ns + 20 * KT_MS;
	hwt_wheel_stop(wheel, slow_hand_back, &handed);
	stats = kt_stats(wheel);
	KTEST(stats.slowest_ns >= slow_ns && atomic_read(&handed) == 1,
	      "then the function of a stop: %llu ns", stats.slowest_ns);
	hwt_wheel_destroy(wheel);
}

/* hwt times only some of many quick callbacks in a row. */
static void __init test_slow_among_quick(void)
{
	struct hwt_wheel *wheel = kt_wheel("quick");
	static struct kt quick[400], slow;
	struct hwt_wheel_stats stats;
	u64 deadline;
	int i;

	kt_init(&slow, wheel, &slow_ops);
	slow_ns = 50 * KT_MS;
	for (i = 0; i < ARRAY_SIZE(quick); i++)
		kt_init(&quick[i], wheel, &kt_plain_ops);
	deadline = hwt_wheel_now(wheel) + 100 * KT_MS;
	for (i = 0; i < ARRAY_SIZE(quick); i++) {
		hwt_schedule_at(&quick[i].timeout, deadline);
		if (i == ARRAY_SIZE(quick) / 2)
			hwt_schedule_at(&slow.timeout, deadline);
	}
	KT_WAIT(kt_expirations(&slow) && !hwt_held(&slow.timeout));
	for (i = 0; i < ARRAY_SIZE(quick); i++)
		KT_WAIT(kt_expirations(&quick[i]) && !hwt_held(&quick[i].timeout));
	stats = kt_stats(wheel);
	KTEST(stats.slowest_ns >= slow_ns, "a slow callback among quick ones is found: %llu ns",
	      stats.slowest_ns);
	hwt_wheel_destroy(wheel);
}

static struct kt slow, victims[30];

/* Many timeouts become due, in order, while a slow callback occupies the only thread. */
static void __init fall_behind(struct hwt_wheel *wheel, u64 ns)
{
	u64 now;
	int i;

	kt_init(&slow, wheel, &slow_ops);
	for (i = 0; i < ARRAY_SIZE(victims); i++)
		kt_init(&victims[i], wheel, &kt_plain_ops);
	slow_ns = ns;
	now = hwt_wheel_now(wheel);
	hwt_schedule_at(&slow.timeout, now + 20 * KT_MS);
	for (i = 0; i < ARRAY_SIZE(victims); i++)
		hwt_schedule_at(&victims[i].timeout, now + 30 * KT_MS + i * KT_MS);
	for (i = 0; i < ARRAY_SIZE(victims); i++)
		KT_WAIT(kt_expirations(&victims[i]) && !hwt_held(&victims[i].timeout));
	KT_WAIT(!hwt_held(&slow.timeout));
}

static void __init test_late(unsigned int workers)
{
	/* A revolution of level 0 is 64 ms: timeouts that wait for longer are behind. */
	struct hwt_wheel *wheel = kt_wheel("late", .ticks_per_wheel = 64, .workers = workers);
	int n = ARRAY_SIZE(victims);
	struct hwt_wheel_stats stats;

	fall_behind(wheel, 300 * KT_MS);
	stats = kt_stats(wheel);
	KTEST(stats.late >= n && stats.behind >= n && stats.behind <= n + 1,
	      "%u workers: all wait for a slow callback, for more than a revolution: %llu behind",
	      workers, stats.behind);
	KTEST(stats.slowest_ns >= 300 * KT_MS, "the slow callback is the slowest: %llu ns",
	      stats.slowest_ns);
	hwt_wheel_destroy(wheel);
}

/* A timeout scheduled for the past has not waited since then, nor since an earlier due one. */
static void __init test_past(void)
{
	struct hwt_wheel *wheel = kt_wheel("past");
	/* The last one is later than the last pass. */
	u64 ago[] = { U64_MAX, 2 * KT_SECOND, 600 * KT_MS }, now;
	static struct kt kt, other;
	struct hwt_wheel_stats stats;
	int i, odd = 0;

	kt_init(&kt, wheel, &kt_plain_ops);
	kt_init(&other, wheel, &kt_plain_ops);
	for (i = 0; i < ARRAY_SIZE(ago); i++) {
		if (i == ARRAY_SIZE(ago) - 1)
			msleep(1000);
		now = hwt_wheel_now(wheel);
		hwt_schedule_at(&kt.timeout, now - min(now, ago[i]));
		odd += !KT_WAIT(kt_expirations(&kt) == i + 1 && !hwt_held(&kt.timeout));
	}
	stats = kt_stats(wheel);
	KTEST(odd == 0 && stats.behind == 0, "deadlines in the past: not behind");

	for (i = 0; i < 6; i++) {
		run(&other);
		msleep(600);
		if (i % 2)
			hwt_schedule(&other.timeout, KT_HOUR);
		hwt_schedule_at(&kt.timeout, 0);
		if (i % 2)
			hwt_cancel_sync(&other.timeout);
		else
			odd += hwt_wheel_flush(wheel) != 0;
		odd += !KT_WAIT(kt_expirations(&kt) == ARRAY_SIZE(ago) + 1 + i &&
				!hwt_held(&kt.timeout));
	}
	stats = kt_stats(wheel);
	KTEST(odd == 0 && stats.behind == 0,
	      "not behind after a flush, nor after a collection by cancel_sync");
	hwt_wheel_destroy(wheel);
}

static bool again_stop;

static void again_expire(struct hwt_timeout *timeout)
{
	kt_expire(timeout);
	if (!READ_ONCE(again_stop))
		hwt_schedule_at(timeout, 1);
}

/*
 * Timeouts that schedule themselves for the past are served in turn. Each waits for the others, and
 * none for as long as this goes on. If the machine stalls, a few wait for that long.
 */
static void __init test_again(void)
{
	struct hwt_wheel *wheel = kt_wheel("again");
	struct hwt_wheel_stats stats;
	unsigned int i, n = 1000;
	struct kt *again = kt_alloc(n, sizeof(*again));

	for (i = 0; i < n; i++) {
		kt_setup(&again[i], wheel, again_expire);
		hwt_schedule(&again[i].timeout, KT_MS);
	}
	msleep(2000);
	KT_WAIT(kt_stats(wheel).expired >= 3 * n);
	WRITE_ONCE(again_stop, true);
	for (i = 0; i < n; i++)
		hwt_shutdown_sync(&again[i].timeout);
	stats = kt_stats(wheel);
	KTEST(stats.expired >= 3 * n && 10 * stats.behind <= stats.expired,
	      "timeouts that are due again and again: %llu of %llu behind", stats.behind,
	      stats.expired);
	hwt_wheel_destroy(wheel);
	vfree(again);
}

static struct kt waiting[100];
static atomic_t came;
static int disordered;

static void waiting_expire(struct hwt_timeout *timeout)
{
	if (timeout != &waiting[atomic_read(&came)].timeout)
		disordered++;
	atomic_inc(&came);
}

/*
 * Schedule timeouts, and keep the CPU from the wheel's thread until long after their deadlines. The
 * first schedule wakes the thread before any deadline; if the machine stalls, once more.
 */
static int occupy(void *unused)
{
	struct hwt_wheel *wheel = hwt_timeout_wheel(&waiting[0].timeout);
	u64 first;
	int i;

	sched_set_fifo(current);
	do {
		first = hwt_wheel_now(wheel) + 300 * KT_MS;
		for (i = 0; i < ARRAY_SIZE(waiting); i++)
			hwt_schedule_at(&waiting[i].timeout, first + i * KT_MS);
	} while (hwt_wheel_now(wheel) >= first);
	while (hwt_wheel_now(wheel) < first + (ARRAY_SIZE(waiting) + 200) * KT_MS)
		cpu_relax();
	sched_set_normal(current, 0);
	return kt_thread_end(0);
}

/* Timeouts that wait for more than a revolution, 64 ms, until they are collected */
static void __init test_starved(void)
{
	struct hwt_wheel *wheel = kt_wheel("starved", .ticks_per_wheel = 64, .cpus = cpumask_of(0));
	struct hwt_wheel_stats stats;
	struct task_struct *task;
	int i;

	for (i = 0; i < ARRAY_SIZE(waiting); i++)
		kt_setup(&waiting[i], wheel, waiting_expire);
	hwt_wheel_flush(wheel);
	task = kt_thread(occupy, NULL, 0);
	KTEST(!IS_ERR(task) && KT_WAIT(atomic_read(&came) == ARRAY_SIZE(waiting)) && !disordered,
	      "without a CPU, timeouts fire in the order of ticks: %d do not", disordered);
	kt_thread_stop(task);
	/* The last callback is counted when it has returned. */
	KT_WAIT(!hwt_held(&waiting[ARRAY_SIZE(waiting) - 1].timeout));
	stats = kt_stats(wheel);
	KTEST(stats.late == ARRAY_SIZE(waiting) && stats.behind == ARRAY_SIZE(waiting),
	      "all of them are behind: %llu", stats.behind);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* Fire two timeouts at once, the first with a slow release. Return the slowest duration. */
static u64 __init slowest_beside_release(void)
{
	struct hwt_wheel *wheel = kt_wheel("slow");
	u64 deadline = hwt_wheel_now(wheel) + 20 * KT_MS, slowest_ns = U64_MAX;
	struct kt first, next;

	kt_init(&first, wheel, &kt_slow_ops);
	kt_init(&next, wheel, &kt_ops);
	hwt_schedule_at(&first.timeout, deadline);
	hwt_schedule_at(&next.timeout, deadline);
	if (KT_WAIT(kt_releases(&next) == 1))
		slowest_ns = kt_stats(wheel).slowest_ns;
	hwt_wheel_destroy(wheel);
	return slowest_ns;
}

/* The duration of a release must not count for the next callback. */
static void __init test_slow_release(void)
{
	u64 slowest_ns;
	int n;

	/* The machine may stall for that long, but not each time. */
	for (n = 0; n < 5; n++) {
		slowest_ns = slowest_beside_release();
		if (slowest_ns < KT_RELEASE_MS * KT_MS)
			break;
	}
	KTEST(slowest_ns < KT_RELEASE_MS * KT_MS,
	      "after a slow release, the slowest callback took %llu ns", slowest_ns);
}

/* The script checks the log messages. */
static void __init test_logged(void)
{
	struct hwt_wheel *wheel = kt_wheel("slow");
	struct kt kt;

	slow_ns = ms * KT_MS;
	kt_init(&kt, wheel, strcmp(what, "other") ? &slow_ops : &other_ops);
	if (!strcmp(what, "cancelled")) {
		hwt_schedule(&kt.timeout, KT_HOUR);
		KTEST(hwt_cancel_sync(&kt.timeout) == 1, "cancel_sync returns 1");
	} else {
		while (times--)
			run(&kt);
	}
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init selftest(void)
{
	if (what) {
		test_logged();
		return;
	}
	test_counters();
	test_slowest();
	test_slow_among_quick();
	test_late(0);
	test_late(1);
	test_past();
	test_again();
	test_starved();
	test_slow_release();
}

KSTM_MODULE_LOADERS(test_stats);
