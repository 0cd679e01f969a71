// SPDX-License-Identifier: GPL-2.0-only
/*
 * What wakes the engine, and what does not: a backlog, a cancelled timeout that is let go. (An
 * earlier deadline: test_contexts.c. How soon a cancelled one is let go: test_wait.c.) And what it
 * does in a pass: many submissions, and buckets with a lot in them, do not keep what is due from
 * firing. Counted in passes, not in time.
 *
 * hwt-test: timeout 180
 */
#include "hwt_ktest.h"

#define MANY	60000	/* enough for a backlog on each of two CPUs, and more */

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
	/* For longer than reclaim_ms. */
	KTEST(KT_WAIT(!hwt_held(&kt[1].timeout)) && kt_asleep(wheel, 300),
	      "one is cancelled and let go, and the engine sleeps for an hour");
	before = passes(wheel);
	taken = collected(wheel);
	for (i = 1; i < 1000; i++)
		hwt_schedule(&kt[i].timeout, 2 * KT_HOUR);
	/* Level 0 goes round meanwhile. */
	msleep(600);
	for (i = 0; i < 1000; i++)
		hwt_schedule(&kt[i].timeout, 2 * KT_HOUR);
	msleep(200);
	KTEST(passes(wheel) == before && collected(wheel) == taken,
	      "a thousand with a later deadline do not wake it, nor when they are pushed back");
	for (; i < MANY; i++)
		hwt_schedule(&kt[i].timeout, 2 * KT_HOUR);
	KTEST(KT_WAIT(collected(wheel) > MANY / 4), "a backlog of %u does", MANY);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == MANY, "all are handed back");
	hwt_wheel_destroy(wheel);
	vfree(kt);
}

#define DUE	50000
#define EACH	4	/* new ones for each that fires */

static struct hwt_timeout *more;
static atomic_t fired;
static u64 first_pass, last_pass;

/* As if others submitted meanwhile, but independent of how fast they are. */
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
	/* Long enough to have them all in the buckets by then. */
	at = hwt_wheel_now(wheel) + 2 * KT_SECOND;
	for (i = 0; i < DUE; i++) {
		hwt_timeout_setup(&due[i], wheel, flood_expire);
		hwt_schedule_at(&due[i], at);
	}
	KTEST(KT_WAIT(atomic_read_acquire(&fired) == DUE), "%u fire, each submits %u", DUE, EACH);
	/*
	 * Each pass fires as many as it has collected: four times as many as the one
	 * before. A fixed number, 1024, would make it 49 passes.
	 */
	KTEST(last_pass - first_pass < 12, "in %llu passes", last_pass - first_pass + 1);
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

/* Keeps the engine until all the near ones are due. */
static void wait_expire(struct hwt_timeout *timeout)
{
	while (hwt_wheel_now(hwt_timeout_wheel(timeout)) < wait_until)
		msleep(20);
}

/*
 * Two buckets, no levels: whatever is due, half of all are looked at for it: half a million
 * for all the near ones, and in a pass 100,000. What it has found on the way fires, and not
 * only when all is found.
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
	KTEST(done == NEAR, "%u of %u fire among %u that are far away", done, NEAR, FAR);
	KTEST(near[NEAR - 1].pass - near[0].pass >= 3,
	      "%llu passes between the first and the last of them",
	      near[NEAR - 1].pass - near[0].pass);
	hwt_wheel_destroy(wheel);
	vfree(far);
}

#define WORKERS	8

static struct kt_stay stay[WORKERS];

/* They come due in one tick, and none returns until all have begun. */
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
	      "as many wake up as have something to do: %u", kt_count_inside(stay, WORKERS));
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
