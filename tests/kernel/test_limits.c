// SPDX-License-Identifier: GPL-2.0-only
/*
 * max_pending: exact, over it -EAGAIN and nothing changed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

#define OBJECTS	16
#define LIMIT	5

static struct kt kt[OBJECTS];

static struct hwt_wheel * __init limited(u64 max_pending)
{
	struct hwt_wheel_params params = {
		.name = "limited", .max_pending = max_pending,
	};
	struct hwt_wheel *wheel = hwt_wheel_create(&params);
	int i;

	for (i = 0; i < OBJECTS; i++)
		kt_init(&kt[i], wheel, &kt_ops);
	return wheel;
}

static void __init test_two(void)
{
	struct hwt_wheel *wheel = limited(2);
	struct hwt_wheel_params params;
	struct hwt_wheel_stats stats;

	hwt_wheel_get_params(wheel, &params);
	KTEST(params.max_pending == 2, "a wheel for two");
	KTEST(hwt_schedule(&kt[0].timeout, KT_HOUR) == 0 &&
	      hwt_schedule(&kt[1].timeout, KT_HOUR) == 0, "two are accepted");
	KTEST(hwt_schedule(&kt[2].timeout, KT_HOUR) == -EAGAIN &&
	      hwt_schedule_at(&kt[2].timeout, 0) == -EAGAIN &&
	      hwt_schedule_earlier(&kt[2].timeout, 0) == -EAGAIN,
	      "the third is refused");
	KTEST(!hwt_held(&kt[2].timeout) && !hwt_pending(&kt[2].timeout) &&
	      !hwt_cancel(&kt[2].timeout) && hwt_wheel_pending(wheel) == 2,
	      "and has not changed");
	hwt_wheel_get_stats(wheel, &stats);
	KTEST(stats.rejected == 3, "three refusals are counted");
	KTEST(hwt_schedule(&kt[1].timeout, 2 * KT_HOUR) ==
	      (HWT_WAS_PENDING | HWT_WAS_HELD), "a pending one can be moved");
	KTEST(hwt_schedule_pending(&kt[2].timeout, KT_HOUR) == -ENOENT,
	      "what wants no place is not refused for lack of one");

	KTEST(hwt_cancel(&kt[0].timeout) &&
	      hwt_schedule(&kt[2].timeout, KT_HOUR) == 0,
	      "after a cancel there is a place, at once");
	KTEST(hwt_schedule(&kt[0].timeout, KT_HOUR) == -EAGAIN &&
	      hwt_cancelled(&kt[0].timeout), "one, not two");
	KTEST(hwt_cancel_sync(&kt[2].timeout) == 1 &&
	      !(hwt_schedule(&kt[0].timeout, KT_HOUR) & HWT_WAS_PENDING),
	      "after a cancel_sync too");

	hwt_schedule(&kt[1].timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt[1]) == 1) &&
	      hwt_schedule(&kt[3].timeout, KT_HOUR) == 0,
	      "after an expiry there is a place");
	KTEST(hwt_schedule(&kt[1].timeout, KT_HOUR) == -EAGAIN, "one, not two");
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 2, "stop hands back two");
	hwt_wheel_destroy(wheel);
}

/* A callback's own place is free while it runs. */
static int self_ret, other_ret;

static void self_expire(struct hwt_timeout *timeout)
{
	self_ret = hwt_schedule(timeout, KT_HOUR);
	other_ret = hwt_schedule(&kt[1].timeout, KT_HOUR);
	kt_expire(timeout);
}

static const struct hwt_ops self_ops = { .expire = self_expire };

static void periodic_expire(struct hwt_timeout *timeout)
{
}

static const struct hwt_ops periodic_ops = { .expire = periodic_expire };

static void __init test_self(void)
{
	struct hwt_wheel *wheel = limited(1);
	struct hwt_periodic periodic;

	kt_init(&kt[0], wheel, &self_ops);
	hwt_schedule(&kt[0].timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt[0]) == 1) && self_ret == HWT_WAS_HELD &&
	      other_ret == -EAGAIN, "a callback can take its own place again");
	KTEST(hwt_cancel_sync(&kt[0].timeout) == 1, "it was pending");

	hwt_periodic_init(&periodic, wheel, &periodic_ops);
	KTEST(hwt_schedule_periodic(&periodic, KT_HOUR, KT_HOUR,
				    HWT_FIXED_RATE) == 0 &&
	      hwt_schedule(&kt[1].timeout, KT_HOUR) == -EAGAIN,
	      "a periodic one takes a place");
	KTEST(hwt_cancel_sync(&periodic.timeout) == 1 &&
	      hwt_schedule(&kt[1].timeout, KT_HOUR) == 0,
	      "and gives it back once");
	KTEST(hwt_schedule_periodic(&periodic, KT_HOUR, KT_HOUR,
				    HWT_FIXED_RATE) == -EAGAIN,
	      "a periodic one is refused");
	hwt_wheel_destroy(wheel);
}

/* -- Exact under contention ---------------------------------------------- */

static atomic_t accepted, refused;

static int contend(void *arg)
{
	unsigned int i = 0;
	int ret;

	while (!kthread_should_stop()) {
		struct hwt_timeout *timeout = &kt[i++ * 7 % OBJECTS].timeout;

		ret = hwt_schedule(timeout, i % 3 ? KT_HOUR : KT_MS);
		if (ret == -EAGAIN)
			atomic_inc(&refused);
		else if (ret >= 0)
			atomic_inc(&accepted);
		if (i % 5 == 0)
			hwt_cancel(&kt[i % OBJECTS].timeout);
		if (i % 1024 == 0)
			usleep_range(100, 200);
	}
	return 0;
}

static void __init test_contention(void)
{
	struct hwt_wheel *wheel = limited(LIMIT);
	struct task_struct *thread[3];
	int i, n, most = 0;

	for (i = 0; i < ARRAY_SIZE(thread); i++)
		thread[i] = kt_thread(contend, NULL, i);
	for (i = 0; i < 1000; i++) {
		int pending = 0;

		for (n = 0; n < OBJECTS; n++)
			pending += hwt_pending(&kt[n].timeout);
		most = max(most, pending);
		usleep_range(1000, 1100);
	}
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		kt_thread_stop(thread[i]);
	for (n = 0; n < OBJECTS; n++)
		hwt_cancel_sync(&kt[n].timeout);
	pr_info("# %d accepted, %d refused, %d seen pending at the most\n",
		atomic_read(&accepted), atomic_read(&refused), most);
	KTEST(atomic_read(&accepted) && atomic_read(&refused),
	      "threads at the limit: some accepted, some refused");
	KTEST(hwt_wheel_pending(wheel) == 0, "none pending in the end");
	for (i = 0, n = 0; i < OBJECTS; i++)
		n += hwt_schedule(&kt[i].timeout, KT_HOUR) == 0;
	KTEST(n == LIMIT, "then exactly %d are accepted again: %d", LIMIT, n);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == LIMIT, "and handed back");
	hwt_wheel_destroy(wheel);
}

static void __init selftest(void)
{
	test_two();
	test_self();
	test_contention();
}

KSTM_MODULE_LOADERS(test_limits);
MODULE_DESCRIPTION("hwt: max_pending");
MODULE_LICENSE("GPL");
