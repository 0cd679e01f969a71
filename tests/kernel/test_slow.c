// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slow callbacks in a wheel's statistics: who is the slowest, what is late, and what had to
 * wait for others. What the log says of them is seen by scripts/slow-callbacks.sh.
 *
 * hwt-test: timeout 120
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

/* How long the slow ones take at least. */
static u64 slow_ns;

static void take_time(void)
{
	u64 end = ktime_get_ns() + READ_ONCE(slow_ns);

	while (ktime_get_ns() < end)
		usleep_range(500, 1000);
}

/* Each does something of its own: a compiler may make one of two that are the same. */
static void slow_expire(struct hwt_timeout *timeout)
{
	take_time();
	kt_expire(timeout);
}

static void slow_cancelled(struct hwt_timeout *timeout)
{
	take_time();
	kt_cancelled(timeout);
}

static void slow_hand_back(struct hwt_timeout *timeout, void *arg)
{
	take_time();
	atomic_inc(arg);
}

static const struct hwt_ops slow_ops = {
	.expire		= slow_expire,
	.cancelled	= slow_cancelled,
};

static struct hwt_wheel_stats __init stats_of(struct hwt_wheel *wheel)
{
	struct hwt_wheel_stats stats;

	hwt_wheel_get_stats(wheel, &stats);
	return stats;
}

/* Runs, and is let go. */
static void __init run(struct kt *kt)
{
	int n = kt_expirations(kt);

	hwt_schedule(&kt->timeout, 0);
	KT_WAIT(kt_expirations(kt) > n);
	KT_WAIT(!hwt_held(&kt->timeout));
}

/* -- The slowest ------------------------------------------------------------ */

static void __init test_slowest(void)
{
	struct hwt_wheel *wheel = kt_wheel("slowest");
	struct hwt_wheel_stats stats, before;
	atomic_t handed = ATOMIC_INIT(0);
	struct kt quick, slow;

	kt_init(&quick, wheel, &kt_plain_ops);
	kt_init(&slow, wheel, &slow_ops);
	stats = stats_of(wheel);
	KTEST(!stats.slowest && !stats.slowest_ns, "of none there is no slowest");
	run(&quick);
	stats = stats_of(wheel);
	KTEST(stats.slowest == kt_expire && stats.slowest_ns, "the only one is the slowest");
	slow_ns = stats.slowest_ns + 20 * KT_MS;
	run(&slow);
	stats = stats_of(wheel);
	KTEST(stats.slowest == slow_expire && stats.slowest_ns >= slow_ns,
	      "a slower one takes its place: %ps, %llu ns", stats.slowest, stats.slowest_ns);
	before = stats;
	hwt_schedule(&slow.timeout, KT_HOUR);
	slow_ns = stats.slowest_ns + 20 * KT_MS;
	hwt_cancel_sync(&slow.timeout);
	stats = stats_of(wheel);
	KTEST(stats.slowest == slow_cancelled && stats.slowest_ns >= slow_ns,
	      "so does ->cancelled, in the caller of cancel_sync: %ps, %llu ns",
	      stats.slowest, stats.slowest_ns);
	KTEST(stats.slowest_ns > before.slowest_ns, "it never becomes shorter");
	hwt_schedule(&slow.timeout, KT_HOUR);
	slow_ns = stats.slowest_ns + 20 * KT_MS;
	hwt_wheel_stop(wheel, slow_hand_back, &handed);
	stats = stats_of(wheel);
	KTEST(stats.slowest == slow_hand_back && stats.slowest_ns >= slow_ns &&
	      atomic_read(&handed) == 1, "and what a stop calls: %ps", stats.slowest);
	hwt_wheel_destroy(wheel);
}

/* -- Late, and behind -------------------------------------------------------- */

static struct kt slow, victims[3];

/* Three become due while a slow one runs, in that order, on the wheel's one thread. */
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

static void __init test_late(void)
{
	struct hwt_wheel *wheel = kt_wheel("late");
	struct hwt_wheel_stats stats, before;
	int n = ARRAY_SIZE(victims);
	struct kt kt;

	kt_init(&kt, wheel, &kt_plain_ops);
	run(&kt);
	before = stats_of(wheel);
	hwt_schedule_at(&kt.timeout, hwt_wheel_now(wheel) - 10 * KT_MS);
	KTEST(KT_WAIT(kt_expirations(&kt) == 2) && KT_WAIT(!hwt_held(&kt.timeout)),
	      "one that is due for long fires");
	stats = stats_of(wheel);
	KTEST(stats.late == before.late + 1, "and is late");

	/* A turn is 512 ms. */
	before = stats;
	fall_behind(wheel, 100 * KT_MS);
	stats = stats_of(wheel);
	KTEST(stats.late >= before.late + n, "three wait for a slow one: they are late");
	before = stats;
	fall_behind(wheel, KT_SECOND);
	stats = stats_of(wheel);
	KTEST(stats.late >= before.late + n && stats.behind >= before.behind + n &&
	      stats.behind <= before.behind + n + 1,
	      "for longer than a turn: they are behind, %llu", stats.behind - before.behind);
	hwt_wheel_destroy(wheel);
}

/* Scheduled for long ago, one has not waited since then; nor since the last one was due. */
static void __init test_past(void)
{
	struct hwt_wheel *wheel = kt_wheel("past");
	u64 long_ago[] = { 0, hwt_wheel_now(wheel) - 2 * KT_SECOND };
	struct hwt_wheel_stats stats;
	struct kt kt, other;
	int i, odd = 0;

	kt_init(&kt, wheel, &kt_plain_ops);
	kt_init(&other, wheel, &kt_plain_ops);
	for (i = 0; i < 2; i++) {
		hwt_schedule_at(&kt.timeout, long_ago[i]);
		odd += !KT_WAIT(kt_expirations(&kt) == i + 1 && !hwt_held(&kt.timeout));
	}
	stats = stats_of(wheel);
	KTEST(odd == 0 && stats.late == 2 && stats.behind == 0,
	      "scheduled for long ago: late, and not behind");

	for (i = 0; i < 3; i++) {
		run(&other);
		msleep(1000);
		hwt_schedule_at(&kt.timeout, 0);
		odd += hwt_wheel_flush(wheel) != 0 || kt_expirations(&kt) != 3 + i;
	}
	stats = stats_of(wheel);
	KTEST(odd == 0 && stats.behind == 0, "nor is it when a flush makes it due");
	for (i = 0; i < 3; i++) {
		run(&other);
		msleep(1000);
		hwt_schedule(&other.timeout, KT_HOUR);
		hwt_schedule_at(&kt.timeout, 0);
		hwt_cancel_sync(&other.timeout);
		odd += !KT_WAIT(kt_expirations(&kt) == 6 + i && !hwt_held(&kt.timeout));
	}
	stats = stats_of(wheel);
	KTEST(odd == 0 && stats.behind == 0, "nor when another one's cancel_sync collects it");
	hwt_wheel_destroy(wheel);
}

/* -- Workers ----------------------------------------------------------------- */

static struct {
	struct kt		kt;
	struct completion	out;
	atomic_t		inside;
} blocker;

static void blocker_expire(struct hwt_timeout *timeout)
{
	atomic_set(&blocker.inside, 1);
	wait_for_completion_timeout(&blocker.out, KT_PATIENCE * HZ);
	kt_expire(timeout);
}

static const struct hwt_ops blocker_ops = { .expire = blocker_expire };

static void __init test_workers(void)
{
	struct hwt_wheel_params params = { .name = "slow", .workers = 1 };
	struct hwt_wheel *wheel = hwt_wheel_create(&params);
	struct hwt_wheel_stats stats;
	u64 longest;
	struct kt kt;

	fall_behind(wheel, KT_SECOND);
	stats = stats_of(wheel);
	KTEST(stats.behind >= 3 && stats.slowest == slow_expire,
	      "behind the slow one of one worker: %llu", stats.behind);
	hwt_wheel_destroy(wheel);

	/* A turn of 4 s: nobody waits for that long while there is a free worker. */
	params.workers = 2;
	params.ticks_per_wheel = 4096;
	wheel = hwt_wheel_create(&params);
	init_completion(&blocker.out);
	kt_init(&blocker.kt, wheel, &blocker_ops);
	kt_init(&kt, wheel, &kt_plain_ops);
	hwt_schedule(&blocker.kt.timeout, 0);
	KT_WAIT(atomic_read(&blocker.inside));
	run(&kt);
	stats = stats_of(wheel);
	longest = stats.slowest_ns;
	KTEST(kt_expirations(&kt) == 1 && !kt_expirations(&blocker.kt) && stats.behind == 0,
	      "one of two workers is blocked: nothing is behind");
	msleep(20);
	complete_all(&blocker.out);
	KT_WAIT(!hwt_held(&blocker.kt.timeout));
	stats = stats_of(wheel);
	KTEST(stats.slowest_ns > longest && stats.slowest == blocker_expire,
	      "a callback is measured when it has returned: %ps", stats.slowest);
	hwt_wheel_destroy(wheel);
}

static void __init selftest(void)
{
	test_slowest();
	test_late();
	test_past();
	test_workers();
}

KSTM_MODULE_LOADERS(test_slow);
MODULE_DESCRIPTION("hwt: slow callbacks");
MODULE_LICENSE("GPL");
