// SPDX-License-Identifier: GPL-2.0-only
/*
 * Callbacks within callbacks: a _sync or a stop that is called from one may itself call
 * back, beside the engine.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

/* -- Neighbours of one class ----------------------------------------------- */

#define CHAIN	4

static struct kt chain[CHAIN];

/* Lets go of the next one, whose ->cancelled runs within this. */
static void chain_expire(struct hwt_timeout *timeout)
{
	struct kt *next = kt_of(timeout) + 1;

	if (next < chain + CHAIN)
		hwt_cancel_sync(&next->timeout);
	kt_expire(timeout);
}

static void chain_cancelled(struct hwt_timeout *timeout)
{
	struct kt *next = kt_of(timeout) + 1;

	if (next < chain + CHAIN)
		hwt_cancel_sync(&next->timeout);
	kt_cancelled(timeout);
}

static const struct hwt_ops chain_ops = {
	.expire		= chain_expire,
	.cancelled	= chain_cancelled,
	.release	= kt_release,
};

static void __init test_chain(void)
{
	struct hwt_wheel *wheel = kt_wheel("chain");
	int i, odd = 0;

	/* Of one place, so of one lockdep class. */
	for (i = 0; i < CHAIN; i++)
		kt_init(&chain[i], wheel, &chain_ops);
	for (i = 1; i < CHAIN; i++)
		kt_schedule(&chain[i], KT_HOUR);
	kt_schedule(&chain[0], KT_MS);
	KTEST(KT_WAIT(kt_releases(&chain[0]) == 1), "a chain of neighbours");
	for (i = 1; i < CHAIN; i++)
		odd += hwt_held(&chain[i].timeout) || kt_releases(&chain[i]) != 1 ||
		       atomic_read(&chain[i].cancelled) != 1;
	KTEST(odd == 0, "each cancels and lets go of the next");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Oneself, in two lives ---------------------------------------------------- */

static struct kt twice;
static atomic_t twice_done;
static int twice_ret;

/* The second life: stays until the release of the first one has asked. */
static void twice_expire(struct hwt_timeout *timeout)
{
	kt_expire(timeout);
	KT_WAIT(atomic_read_acquire(&twice_done));
}

static void twice_release(struct hwt_timeout *timeout)
{
	if (kt_releases(kt_of(timeout)) == 0) {
		hwt_schedule(timeout, 0);
		KT_WAIT(kt_expirations(kt_of(timeout)) == 1);
		twice_ret = hwt_cancel_sync(timeout);
		atomic_set_release(&twice_done, 1);
	}
	kt_release(timeout);
}

static const struct hwt_ops twice_ops = {
	.expire		= twice_expire,
	.release	= twice_release,
};

static void __init test_twice(void)
{
	struct hwt_wheel *wheel = kt_wheel("twice");

	kt_init(&twice, wheel, &twice_ops);
	kt_schedule(&twice, KT_HOUR);
	KTEST(hwt_cancel_sync(&twice.timeout) == 1 && kt_expirations(&twice) == 1,
	      "a release schedules it anew, and sees it fire");
	KTEST(twice_ret == -EDEADLK, "_sync of oneself from there: %d", twice_ret);
	KTEST(KT_WAIT(kt_releases(&twice) == 2), "both lives are released");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- A stop within a stop ------------------------------------------------------ */

static struct hwt_wheel *inner;
static int inner_ret;

static void stop_inner(struct hwt_timeout *timeout, void *arg)
{
	inner_ret = hwt_wheel_destroy(inner);
}

static void __init test_stops(void)
{
	struct hwt_wheel *outer = kt_wheel("outer");
	struct kt in, out;

	inner = kt_wheel("inner");
	kt_init(&in, inner, &kt_ops);
	kt_init(&out, outer, &kt_ops);
	kt_schedule(&in, KT_HOUR);
	kt_schedule(&out, KT_HOUR);
	KTEST(hwt_wheel_stop(outer, stop_inner, NULL) == 1 && inner_ret == 0,
	      "the function of a stop destroys another wheel");
	KTEST(atomic_read(&in.cancelled) == 1 && kt_releases(&in) == 1 &&
	      kt_releases(&out) == 1, "both let go of what they had");
	KTEST(hwt_wheel_destroy(outer) == 0, "the wheel is destroyed");
}

/* -- Sleeping ------------------------------------------------------------------ */

static long slept_short;
static bool asleep;

static void sleeper_expire(struct hwt_timeout *timeout)
{
	WRITE_ONCE(asleep, true);
	slept_short = schedule_timeout_uninterruptible(HZ);
	kt_expire(timeout);
}

static const struct hwt_ops sleeper_ops = { .expire = sleeper_expire };

/* Who submits while a callback sleeps does not wake it. */
static void __init test_sleep(void)
{
	struct hwt_wheel *wheel = kt_wheel("sleep");
	struct kt sleeper, other;
	int n;

	kt_init(&sleeper, wheel, &sleeper_ops);
	kt_init(&other, wheel, &kt_plain_ops);
	slept_short = -1;
	/* This very schedule may wake it, if an emulated CPU stands still there: not each time. */
	for (n = 0; n < 5 && slept_short; n++) {
		asleep = false;
		kt_schedule(&sleeper, 0);
		/* Not only RUNNING: who submits just before the callback may yet wake it. */
		while (!READ_ONCE(asleep))
			usleep_range(500, 1000);
		while (kt_expirations(&sleeper) == n) {
			hwt_schedule(&other.timeout, 0);
			hwt_cancel(&other.timeout);
			usleep_range(5000, 10000);
		}
	}
	KTEST(slept_short == 0, "a callback sleeps as long as it wants: %ld jiffies short",
	      slept_short);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/*
 * In an interrupt, so that the kick is left to another one. That comes when this is over,
 * and finds the callback of another timeout, which sleeps.
 */
static bool submitted;

static void kick_late(void *arg)
{
	struct kt *other = arg;
	ktime_t end = ktime_add_ms(ktime_get(), 1000);

	hwt_schedule(&other->timeout, KT_HOUR);
	WRITE_ONCE(submitted, true);
	while (!READ_ONCE(asleep) && ktime_before(ktime_get(), end))
		cpu_relax();
	/* Asleep in truth. */
	mdelay(20);
}

static void __init test_late_kick(void)
{
	unsigned int here = cpumask_first(cpu_online_mask), there = kt_other_cpu(here);
	struct hwt_wheel_params params = { .name = "kick", .cpus = cpumask_of(here) };
	struct kt sleeper, other;
	struct hwt_wheel *wheel;

	if (here == there) {
		KTEST_SKIP("there is one CPU only");
		return;
	}
	wheel = hwt_wheel_create(&params);
	kt_init(&sleeper, wheel, &sleeper_ops);
	kt_init(&other, wheel, &kt_plain_ops);
	slept_short = -1;
	asleep = false;
	/* The engine sleeps without an end. */
	msleep(100);
	kt_stay_on(cpumask_of(here));
	smp_call_function_single(there, kick_late, &other, false);
	while (!READ_ONCE(submitted))
		cpu_relax();
	kt_schedule(&sleeper, 0);
	KTEST(KT_WAIT(kt_expirations(&sleeper) == 1) && slept_short == 0,
	      "a kick that comes late does not wake a callback: %ld jiffies short", slept_short);
	kt_stay_on(NULL);
	KTEST(hwt_cancel_sync(&other.timeout) == 1, "what it was for is there");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Whose time it was ---------------------------------------------------------- */

static void slow_release(struct hwt_timeout *timeout)
{
	msleep(3000);
	kt_release(timeout);
}

static const struct hwt_ops slow_ops = {
	.expire		= kt_expire,
	.release	= slow_release,
};

/* The time of a release is not that of the callback that comes next. */
static void __init test_slow_release(void)
{
	struct hwt_wheel *wheel = kt_wheel("slow");
	struct hwt_wheel_stats stats;
	struct kt slow, next;
	u64 deadline;

	kt_init(&slow, wheel, &slow_ops);
	kt_init(&next, wheel, &kt_ops);
	deadline = hwt_wheel_now(wheel) + 20 * KT_MS;
	hwt_schedule_at(&slow.timeout, deadline);
	hwt_schedule_at(&next.timeout, deadline);
	KTEST(KT_WAIT(kt_releases(&next) == 1), "a slow release, and a callback behind it");
	hwt_wheel_get_stats(wheel, &stats);
	KTEST(stats.slowest_ns < 2 * KT_SECOND, "the slowest took %llu ns", stats.slowest_ns);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init selftest(void)
{
	test_chain();
	test_twice();
	test_stops();
	test_sleep();
	test_late_kick();
	test_slow_release();
}

KSTM_MODULE_LOADERS(test_nested);
MODULE_DESCRIPTION("hwt: callbacks within callbacks");
MODULE_LICENSE("GPL");
