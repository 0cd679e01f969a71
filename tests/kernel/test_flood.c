// SPDX-License-Identifier: GPL-2.0-only
/*
 * A pass of the engine has its share of everything: those who submit a lot, and buckets
 * with a lot in them, do not keep what is due from firing. Counted in passes, not in time.
 *
 * hwt-test: timeout 120
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/vmalloc.h>

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

static u64 passes(struct hwt_wheel *wheel)
{
	struct hwt_wheel_stats stats;

	hwt_wheel_get_stats(wheel, &stats);
	return stats.passes;
}

static void nop_expire(struct hwt_timeout *timeout)
{
}

static const struct hwt_ops nop_ops = { .expire = nop_expire };

/* -- Submissions --------------------------------------------------------- */

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

static const struct hwt_ops flood_ops = { .expire = flood_expire };

static void __init test_submissions(void)
{
	struct hwt_timeout *due = vzalloc(array_size(DUE, sizeof(*due)));
	struct hwt_wheel *wheel = kt_wheel("flood");
	unsigned int i;
	u64 at;

	more = vzalloc(array_size(DUE * EACH, sizeof(*more)));
	if (!due || !more) {
		KTEST_SKIP("no memory");
		goto out;
	}
	for (i = 0; i < DUE * EACH; i++)
		hwt_timeout_init(&more[i], wheel, &nop_ops);
	/* Long enough to have them all in the buckets by then. */
	at = hwt_wheel_now(wheel) + 2 * KT_SECOND;
	for (i = 0; i < DUE; i++) {
		hwt_timeout_init(&due[i], wheel, &flood_ops);
		hwt_schedule_at(&due[i], at);
	}
	KTEST(KT_WAIT(atomic_read_acquire(&fired) == DUE), "%u fire, each submits %u",
	      DUE, EACH);
	/*
	 * Each pass fires as many as it has collected: four times as many as the one
	 * before. A fixed number, 1024, would make it 49 passes.
	 */
	KTEST(last_pass - first_pass < 12, "in %llu passes", last_pass - first_pass + 1);
out:
	hwt_wheel_destroy(wheel);
	vfree(more);
	vfree(due);
}

/* -- Buckets ------------------------------------------------------------- */

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

static const struct hwt_ops near_ops = { .expire = near_expire };

static u64 wait_until;

/* Keeps the engine until all the near ones are due. */
static void wait_expire(struct hwt_timeout *timeout)
{
	while (hwt_wheel_now(hwt_timeout_wheel(timeout)) < wait_until)
		msleep(20);
}

static const struct hwt_ops wait_ops = { .expire = wait_expire };

/*
 * Two buckets, no levels: whatever is due, half of all are looked at for it: half a million
 * for all the near ones, and in a pass 100,000. What it has found on the way fires, and not
 * only when all is found.
 */
static void __init test_buckets(void)
{
	struct hwt_wheel_params params = {
		.name = "overfull", .ticks_per_wheel = 2, .levels = 1,
	};
	struct hwt_wheel *wheel = hwt_wheel_create(&params);
	struct hwt_timeout *far = vzalloc(array_size(FAR, sizeof(*far)));
	static struct near near[NEAR];
	static struct hwt_timeout wait;
	unsigned int i, done = 0;
	u64 now;

	if (!far) {
		KTEST_SKIP("no memory");
		goto out;
	}
	for (i = 0; i < FAR; i++) {
		hwt_timeout_init(&far[i], wheel, &nop_ops);
		hwt_schedule(&far[i], KT_HOUR + i * KT_MS);
	}
	now = hwt_wheel_now(wheel);
	for (i = 0; i < NEAR; i++) {
		hwt_timeout_init(&near[i].timeout, wheel, &near_ops);
		hwt_schedule_at(&near[i].timeout,
				now + KT_SECOND + (i + 1) * APART * KT_MS);
	}
	wait_until = now + KT_SECOND + (NEAR + 1) * APART * KT_MS;
	hwt_timeout_init(&wait, wheel, &wait_ops);
	hwt_schedule_at(&wait, now + KT_SECOND);
	for (i = 0; i < NEAR; i++)
		done += KT_WAIT(atomic_read_acquire(&near[i].fired));
	KTEST(done == NEAR, "%u of %u fire among %u that are far away", done, NEAR, FAR);
	KTEST(near[NEAR - 1].pass - near[0].pass >= 3,
	      "%llu passes between the first and the last of them",
	      near[NEAR - 1].pass - near[0].pass);
out:
	hwt_wheel_destroy(wheel);
	vfree(far);
}

static void __init selftest(void)
{
	test_submissions();
	test_buckets();
}

KSTM_MODULE_LOADERS(test_flood);
MODULE_DESCRIPTION("hwt: fairness of the engine's passes");
MODULE_LICENSE("GPL");
