// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submissions that wake the engine (a backlog, a cancel) and those that do not. (For an earlier
 * deadline see test_contexts.c, for the delay of a release test_wait.c.) A pass is bounded, so that
 * many submissions or overfull buckets do not keep due timeouts from firing. The test counts
 * passes, not time.
 *
 * hwt-test: timeout 180
 */
#include "hwt_ktest.h"

#define MANY	60000	/* more than a backlog on each of two CPUs */

static u64 passes(struct hwt_wheel *wheel)
{
	return kt_stats(wheel).passes;
}

static u64 collected(struct hwt_wheel *wheel)
{
	return kt_stats(wheel).collected;
}

static void __init test_backlog(void)
{
	struct kt *kt = kt_alloc(MANY, sizeof(*kt));
	struct hwt_wheel *wheel = kt_wheel("backlog");
	u64 before, taken;
	unsigned int i;

	for (i = 0; i < MANY; i++)
		kt_init(&kt[i], wheel, &kt_plain_ops);
	hwt_schedule(&kt[0].timeout, KT_HOUR);
	hwt_schedule(&kt[1].timeout, KT_HOUR);
	hwt_cancel(&kt[1].timeout);
	/* Longer than reclaim_ms. */
	KTEST(KT_WAIT(!hwt_held(&kt[1].timeout)) && kt_asleep(wheel, 300),
	      "a cancelled timeout is released, and the engine sleeps for an hour");
	before = passes(wheel);
	taken = collected(wheel);
	for (i = 1; i < 1000; i++)
		hwt_schedule(&kt[i].timeout, 2 * KT_HOUR);
	/* Let some time pass before the push-backs. */
	msleep(600);
	for (i = 0; i < 1000; i++)
		hwt_schedule(&kt[i].timeout, 2 * KT_HOUR);
	msleep(200);
	KTEST(passes(wheel) == before && collected(wheel) == taken,
	      "a thousand with later deadlines do not wake it, neither when pushed back");
	for (; i < MANY; i++)
		hwt_schedule(&kt[i].timeout, 2 * KT_HOUR);
	KTEST(KT_WAIT(collected(wheel) > MANY / 4), "a backlog of %u wakes it", MANY);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == MANY, "a stop hands back all");
	hwt_wheel_destroy(wheel);
	vfree(kt);
}

#define DUE	50000
#define EACH	4	/* timeouts that each callback submits */

static struct hwt_timeout *more;
static atomic_t fired;
static u64 first_pass, last_pass;

/* Submit in callbacks, so that the test does not depend on the speed of other CPUs. */
static void flood_expire(struct hwt_timeout *timeout)
{
	struct hwt_wheel *wheel = hwt_timeout_wheel(timeout);
	unsigned int n = atomic_read(&fired), i;

	for (i = 0; i < EACH; i++)
		hwt_schedule(&more[n * EACH + i], KT_HOUR);
	if (!n)
		first_pass = passes(wheel);
	if (n == DUE - 1)
		last_pass = passes(wheel);
	atomic_inc_return_release(&fired);
}

static void __init test_submissions(void)
{
	struct hwt_timeout *due = kt_alloc(DUE, sizeof(*due));
	struct hwt_wheel *wheel = kt_wheel("flood");
	unsigned int i;
	u64 at;

	more = kt_alloc(DUE * EACH, sizeof(*more));
	for (i = 0; i < DUE * EACH; i++)
		hwt_timeout_init(&more[i], wheel, &kt_nothing_ops);
	/* Time enough to collect all before that. */
	at = hwt_wheel_now(wheel) + 2 * KT_SECOND;
	for (i = 0; i < DUE; i++) {
		hwt_timeout_setup(&due[i], wheel, flood_expire);
		hwt_schedule_at(&due[i], at);
	}
	KTEST(KT_WAIT(atomic_read_acquire(&fired) == DUE), "%u fire, each submits %u", DUE, EACH);
	/*
	 * Each pass fires as many timeouts as it has collected, four times as many as the previous
	 * pass. With a fixed number of 1024 there would be 49 passes.
	 */
	KTEST(last_pass - first_pass < 12, "they fire in %llu passes", last_pass - first_pass + 1);
	hwt_wheel_destroy(wheel);
	vfree(more);
	vfree(due);
}

#define FAR	10000
#define NEAR	100
#define APART	5	/* ticks */

struct near {
	struct hwt_timeout	timeout;
	u64			pass;
	atomic_t		fired;
};

static void near_expire(struct hwt_timeout *timeout)
{
	struct near *near = container_of(timeout, struct near, timeout);

	near->pass = passes(hwt_timeout_wheel(timeout));
	atomic_inc_return_release(&near->fired);
}

static u64 wait_until;

/* Occupies the engine until all timeouts in near[] are due. */
static void wait_expire(struct hwt_timeout *timeout)
{
	while (hwt_wheel_now(hwt_timeout_wheel(timeout)) < wait_until)
		msleep(20);
}

/*
 * One level of two buckets: each advance visits half of all timeouts, which makes half a million
 * visits for near[], and a pass visits at most 100,000. The timeouts that a pass finds must fire at
 * its end, not only when all are found.
 */
static void __init test_buckets(void)
{
	struct hwt_wheel *wheel = kt_wheel("overfull", .ticks_per_wheel = 2, .levels = 1);
	struct hwt_timeout *far = kt_alloc(FAR, sizeof(*far));
	static struct near near[NEAR];
	static struct hwt_timeout wait;
	unsigned int i, done = 0;
	u64 now;

	for (i = 0; i < FAR; i++) {
		hwt_timeout_init(&far[i], wheel, &kt_nothing_ops);
		hwt_schedule(&far[i], KT_HOUR + i * KT_MS);
	}
	now = hwt_wheel_now(wheel);
	for (i = 0; i < NEAR; i++) {
		hwt_timeout_setup(&near[i].timeout, wheel, near_expire);
		hwt_schedule_at(&near[i].timeout,
				now + KT_SECOND + (i + 1) * APART * KT_MS);
	}
	wait_until = now + KT_SECOND + (NEAR + 1) * APART * KT_MS;
	hwt_timeout_setup(&wait, wheel, wait_expire);
	hwt_schedule_at(&wait, now + KT_SECOND);
	for (i = 0; i < NEAR; i++)
		done += KT_WAIT(atomic_read_acquire(&near[i].fired));
	KTEST(done == NEAR, "%u of %u fire, with %u far away in the same buckets", done, NEAR, FAR);
	KTEST(near[NEAR - 1].pass - near[0].pass >= 3,
	      "%llu passes between the first and the last firing",
	      near[NEAR - 1].pass - near[0].pass);
	hwt_wheel_destroy(wheel);
	vfree(far);
}

#define WORKERS	8

static struct kt_stay stay[WORKERS];

/* All are due on one tick, and no callback returns until all have begun. */
static void __init test_workers(void)
{
	struct hwt_wheel *wheel = kt_wheel("all", .workers = WORKERS);
	unsigned int i;
	u64 deadline;

	KTEST(kt_asleep(wheel, 50), "a wheel with %d workers, asleep", WORKERS);
	deadline = hwt_wheel_now(wheel) + 200 * KT_MS;
	for (i = 0; i < WORKERS; i++) {
		kt_stay_init(&stay[i], wheel, &kt_stay_ops);
		hwt_schedule_at(&stay[i].kt.timeout, deadline);
	}
	KTEST(KT_WAIT(kt_count_inside(stay, WORKERS) == WORKERS),
	      "a worker wakes up for each callback: %u", kt_count_inside(stay, WORKERS));
	for (i = 0; i < WORKERS; i++)
		complete_all(&stay[i].out);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init selftest(void)
{
	test_backlog();
	test_submissions();
	test_buckets();
	test_workers();
}

KSTM_MODULE_LOADERS(test_wakeup);
