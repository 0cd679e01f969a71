// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel's counters: each moves when it should, by what it should, and no other.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

static struct hwt_wheel *wheel;
static struct hwt_wheel_stats was;

/* How the counters that a call decides have changed since the last look. */
static void __init moved(const char *what, s64 pending, s64 scheduled, s64 rearmed,
			 s64 expired, s64 cancelled, s64 rejected)
{
	struct hwt_wheel_stats is;
	bool ok;

	hwt_wheel_get_stats(wheel, &is);
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
			is.rejected - was.rejected,
			is.handed_back - was.handed_back,
			is.overruns - was.overruns);
	was = is;
	KTEST(ok, "%s", what);
}

/* How long it took at least, ns. Written before its expiry is counted. */
static u64 slow_took;

static void slow_expire(struct hwt_timeout *timeout)
{
	u64 begin = ktime_get_ns();

	msleep(30);
	slow_took = ktime_get_ns() - begin;
	kt_expire(timeout);
}

static const struct hwt_ops slow_ops = {
	.expire		= slow_expire,
	.release	= kt_release,
};

static void periodic_expire(struct hwt_timeout *timeout)
{
}

static const struct hwt_ops periodic_ops = { .expire = periodic_expire };

static void __init selftest(void)
{
	struct hwt_wheel_params params = { .name = "stats", .max_pending = 3 };
	static struct hwt_wheel_stats is, before;
	static struct hwt_periodic periodic;
	static struct kt kt, other, slow, behind;

	wheel = hwt_wheel_create(&params);
	kt_init(&kt, wheel, &kt_ops);
	kt_init(&other, wheel, &kt_ops);
	kt_init(&slow, wheel, &slow_ops);
	kt_init(&behind, wheel, &kt_ops);
	hwt_periodic_init(&periodic, wheel, &periodic_ops);

	/* The thread may have looked around once. */
	hwt_wheel_get_stats(wheel, &was);
	was.passes = 0;
	was.wakeups = 0;
	KTEST(!memchr_inv(&was, 0, sizeof(was)), "all counters of a new wheel are 0");

	hwt_schedule(&kt.timeout, KT_HOUR);
	moved("a schedule", 1, 1, 0, 0, 0, 0);
	hwt_schedule(&kt.timeout, KT_HOUR * 2);
	moved("pushed back: re-armed", 0, 0, 1, 0, 0, 0);
	hwt_schedule(&kt.timeout, KT_HOUR);
	moved("pulled forward: re-armed", 0, 0, 1, 0, 0, 0);
	hwt_schedule_earlier(&kt.timeout, KT_HOUR * 3);
	moved("left where it was: nothing", 0, 0, 0, 0, 0, 0);
	hwt_schedule_pending(&other.timeout, KT_HOUR);
	moved("not pending: nothing", 0, 0, 0, 0, 0, 0);
	hwt_cancel(&kt.timeout);
	moved("a cancel", -1, 0, 0, 0, 1, 0);
	hwt_cancel(&kt.timeout);
	hwt_cancel_sync(&kt.timeout);
	hwt_cancel_sync(&other.timeout);
	moved("cancels that miss: nothing", 0, 0, 0, 0, 0, 0);
	hwt_schedule(&kt.timeout, KT_HOUR);
	hwt_cancel_sync(&kt.timeout);
	moved("a schedule and a cancel_sync", 0, 1, 0, 0, 1, 0);
	hwt_schedule(&kt.timeout, 0);
	KT_WAIT(kt_releases(&kt) == 3);
	moved("a schedule and an expiry", 0, 1, 0, 1, 0, 0);
	hwt_shutdown_sync(&other.timeout);
	hwt_schedule(&other.timeout, 0);
	moved("a dead timeout is not the wheel's refusal", 0, 0, 0, 0, 0, 0);

	hwt_wheel_get_stats(wheel, &is);
	KTEST((is.slowest == kt_expire || is.slowest == kt_cancelled) &&
	      is.slowest_ns > 0 && is.slowest_ns < KT_HOUR,
	      "the slowest callback is one of those that ran: %ps, %llu ns",
	      is.slowest, is.slowest_ns);
	KTEST(is.collected >= 3, "submissions are counted when collected: %llu",
	      is.collected);
	/* Asleep by then, it is woken. */
	msleep(50);
	before = is;
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(({
		hwt_wheel_get_stats(wheel, &is);
		is.wakeups > before.wakeups && is.passes > before.passes;
	})), "passes and wake-ups are counted: %llu, %llu", is.passes, is.wakeups);
	KT_WAIT(kt_releases(&kt) == 4);
	hwt_wheel_get_stats(wheel, &is);

	/* One that is behind a slow one by 30 ticks is late. */
	was = is;
	kt_stay_on(cpumask_of(raw_smp_processor_id()));
	hwt_schedule(&slow.timeout, 5 * KT_MS);
	hwt_schedule(&behind.timeout, 10 * KT_MS);
	kt_stay_on(NULL);
	KT_WAIT(kt_releases(&behind) == 1);
	moved("two schedules and two expiries", 0, 2, 0, 2, 0, 0);
	hwt_wheel_get_stats(wheel, &is);
	KTEST(is.late >= 1, "what waits behind a slow callback is late: %llu",
	      is.late);
	/* Another one may have taken longer, if the host did not go on meanwhile. */
	KTEST(is.slowest_ns >= slow_took &&
	      (is.slowest == slow_expire || is.slowest_ns > slow_took),
	      "the slowest callback: %ps, %llu ns; slept %llu ns", is.slowest, is.slowest_ns,
	      slow_took);

	hwt_schedule_periodic(&periodic, KT_HOUR, KT_MS, HWT_FIXED_RATE);
	moved("a periodic one", 1, 1, 0, 0, 0, 0);
	hwt_schedule(&kt.timeout, KT_HOUR);
	hwt_schedule(&slow.timeout, KT_HOUR);
	moved("two more", 2, 2, 0, 0, 0, 0);
	hwt_schedule(&behind.timeout, 0);
	hwt_schedule(&behind.timeout, 0);
	moved("two refusals at the limit", 0, 0, 0, 0, 0, 2);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 3, "stop");
	hwt_wheel_get_stats(wheel, &is);
	KTEST(is.handed_back == 3 && is.pending == 0 &&
	      is.scheduled == is.expired + is.cancelled + is.handed_back,
	      "three are handed back, and all is accounted for");
	hwt_schedule(&behind.timeout, 0);
	hwt_wheel_get_stats(wheel, &was);
	KTEST(was.rejected == is.rejected + 1, "a schedule after it is refused");
	hwt_wheel_destroy(wheel);

	/* Each firing of a periodic one is an expiry; its overruns are the wheel's. */
	params.max_pending = 0;
	wheel = hwt_wheel_create(&params);
	hwt_periodic_init(&periodic, wheel, &periodic_ops);
	hwt_schedule_periodic_at(&periodic, hwt_wheel_now(wheel) - KT_SECOND, KT_MS,
				 HWT_FIXED_RATE);
	KT_WAIT(({ hwt_wheel_get_stats(wheel, &is); is.expired >= 3; }));
	hwt_cancel_sync(&periodic.timeout);
	hwt_wheel_get_stats(wheel, &is);
	KTEST(is.scheduled == 1 && is.cancelled == 1 && is.pending == 0 &&
	      is.expired >= 3 && is.overruns >= 999 &&
	      is.overruns == hwt_overruns_total(&periodic),
	      "a periodic one: %llu expiries, %llu overruns", is.expired, is.overruns);
	hwt_wheel_destroy(wheel);
}

KSTM_MODULE_LOADERS(test_stats);
MODULE_DESCRIPTION("hwt: a wheel's counters");
MODULE_LICENSE("GPL");
