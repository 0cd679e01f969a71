// SPDX-License-Identifier: GPL-2.0-only
/*
 * cancel_sync and shutdown_sync: whom they wait for, and whom they do not.
 *
 * hwt-test: timeout 120
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

/* A callback that stays inside until it is let out, or for so long. */
static struct {
	struct kt		kt;
	struct completion	out;
	unsigned long		longest;	/* jiffies */
	atomic_t		inside;
	bool			finished, expired_early;
} sleeper;

static void sleeper_expire(struct hwt_timeout *timeout)
{
	kt_note_expired(timeout);
	atomic_set(&sleeper.inside, 1);
	wait_for_completion_timeout(&sleeper.out, sleeper.longest);
	sleeper.finished = true;
	atomic_set_release(&sleeper.inside, 0);
	atomic_inc_return_release(&sleeper.kt.expired);
}

static const struct hwt_ops sleeper_ops = {
	.expire		= sleeper_expire,
	.release	= kt_release,
};

/* A release that takes its time. */
static void slow_release(struct hwt_timeout *timeout)
{
	msleep(50);
	kt_release(timeout);
}

static const struct hwt_ops slow_release_ops = {
	.expire		= kt_expire,
	.cancelled	= kt_cancelled,
	.release	= slow_release,
};

static void __init sleeper_start(struct hwt_wheel *wheel, unsigned int seconds)
{
	memset(&sleeper, 0, sizeof(sleeper));
	kt_init(&sleeper.kt, wheel, &sleeper_ops);
	init_completion(&sleeper.out);
	sleeper.longest = seconds * HZ;
	hwt_schedule(&sleeper.kt.timeout, 0);
	KTEST(KT_WAIT(atomic_read(&sleeper.inside)), "a callback sleeps for %u s",
	      seconds);
}

/* Whatever is to return at once: the sleeper is still inside then. */
static bool asleep(void)
{
	return atomic_read(&sleeper.inside);
}

static void __init sleeper_end(void)
{
	complete_all(&sleeper.out);
	hwt_shutdown_sync(&sleeper.kt.timeout);
}

/* -- Others' callbacks --------------------------------------------------- */

static void __init test_others(unsigned int seconds)
{
	struct hwt_wheel *wheel = kt_wheel("others");
	static struct kt far, due, fresh, gone, deferred, slow;

	kt_init(&far, wheel, &kt_ops);
	kt_init(&due, wheel, &kt_ops);
	kt_init(&fresh, wheel, &kt_ops);
	kt_init(&gone, wheel, &kt_ops);
	kt_init(&deferred, wheel, &kt_ops);
	kt_init(&slow, wheel, &slow_release_ops);

	hwt_schedule(&far.timeout, KT_HOUR);
	hwt_schedule(&gone.timeout, KT_HOUR);
	hwt_schedule(&deferred.timeout, KT_HOUR);
	hwt_schedule(&slow.timeout, KT_HOUR);
	/* Collected before the sleeper runs, due while it sleeps. */
	hwt_schedule(&due.timeout, 20 * KT_MS);
	sleeper_start(wheel, seconds);

	KTEST(hwt_cancel_sync(&far.timeout) == 1 && asleep(),
	      "cancel_sync of one in a bucket returns meanwhile");
	KTEST(kt_releases(&far) == 1 && atomic_read(&far.cancelled) == 1,
	      "its callbacks have run, here");
	KTEST(hwt_schedule(&far.timeout, KT_HOUR) == 0 &&
	      hwt_cancel_sync(&far.timeout) == 1 && asleep() &&
	      kt_releases(&far) == 2, "and so it is once more");
	KTEST(hwt_schedule(&fresh.timeout, 0) == 0 &&
	      hwt_shutdown_sync(&fresh.timeout) == 1 && asleep() &&
	      kt_releases(&fresh) == 1 && kt_expirations(&fresh) == 0,
	      "shutdown_sync of one that nobody has collected");
	hwt_cancel(&gone.timeout);
	KTEST(hwt_cancel_sync(&gone.timeout) == 0 && asleep() &&
	      kt_releases(&gone) == 1,
	      "cancel_sync of one that was cancelled and not let go");
	/* The one that collects may not run strangers' callbacks. */
	hwt_cancel(&deferred.timeout);
	hwt_schedule(&far.timeout, KT_HOUR);
	hwt_cancel(&far.timeout);
	KTEST(hwt_cancel_sync(&far.timeout) == 0 && asleep() &&
	      kt_releases(&far) == 3 && kt_releases(&deferred) == 0,
	      "cancel_sync does not run a stranger's release");
	KTEST(hwt_cancel_sync(&deferred.timeout) == 0 && asleep() &&
	      kt_releases(&deferred) == 1 && atomic_read(&deferred.cancelled) == 1,
	      "cancel_sync of one that was collected by another");
	KTEST(hwt_cancel_sync(&slow.timeout) == 1 && asleep() &&
	      kt_releases(&slow) == 1, "a slow release is done on return");
	while (asleep() && hwt_remaining(&due.timeout))
		usleep_range(500, 1000);
	KTEST(hwt_cancel_sync(&due.timeout) == 1 && asleep() &&
	      kt_releases(&due) == 1 && kt_expirations(&due) == 0,
	      "cancel_sync of one that is due, behind the sleeper");
	KTEST(hwt_wheel_pending(wheel) == 0, "nothing is pending");

	/* The same as on the deferred list, but scheduled again from there. */
	hwt_schedule(&deferred.timeout, KT_HOUR);
	hwt_cancel(&deferred.timeout);
	hwt_schedule(&far.timeout, KT_HOUR);
	hwt_cancel_sync(&far.timeout);
	hwt_cancel(&far.timeout);
	KTEST(hwt_schedule(&deferred.timeout, 0) == HWT_WAS_HELD &&
	      hwt_pending(&deferred.timeout), "one waits to be let go, and is scheduled");
	sleeper_end();
	KTEST(KT_WAIT(kt_expirations(&deferred) == 1) &&
	      KT_WAIT(kt_releases(&deferred) == 2) &&
	      atomic_read(&deferred.cancelled) == 1, "it fires");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- One's own callback -------------------------------------------------- */

static int cancel_it(void *arg)
{
	int ret = hwt_cancel_sync(arg);

	if (!sleeper.finished || kt_releases(&sleeper.kt) != 1)
		sleeper.expired_early = true;
	return kt_thread_end(ret);
}

static void __init test_own(void)
{
	struct hwt_wheel *wheel = kt_wheel("own");
	struct task_struct *thread[2];
	int ret;

	sleeper_start(wheel, KT_PATIENCE);
	thread[0] = kt_thread(cancel_it, &sleeper.kt.timeout, 0);
	thread[1] = kt_thread(cancel_it, &sleeper.kt.timeout, 1);
	msleep(100);
	KTEST(!sleeper.expired_early && asleep(),
	      "cancel_sync of a running one waits");
	complete_all(&sleeper.out);
	ret = kt_thread_stop(thread[0]) + kt_thread_stop(thread[1]);
	KTEST(!sleeper.expired_early && ret == 0,
	      "until its callback has returned and its release is done");

	sleeper_start(wheel, KT_PATIENCE);
	hwt_schedule(&sleeper.kt.timeout, KT_HOUR);
	thread[0] = kt_thread(cancel_it, &sleeper.kt.timeout, 0);
	thread[1] = kt_thread(cancel_it, &sleeper.kt.timeout, 1);
	msleep(100);
	KTEST(asleep() && !hwt_pending(&sleeper.kt.timeout),
	      "two of them, of one that runs and is pending: it is cancelled");
	complete_all(&sleeper.out);
	ret = kt_thread_stop(thread[0]) + kt_thread_stop(thread[1]);
	KTEST(!sleeper.expired_early && ret == 1, "and one of them says so: %d", ret);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Neighbours ---------------------------------------------------------- */

static struct kt neighbour[4];
static int neighbour_ret[4];

static void caller_expire(struct hwt_timeout *timeout)
{
	int i;

	/* One that nobody has collected yet. */
	hwt_schedule(&neighbour[2].timeout, 0);
	for (i = 0; i < 4; i++)
		neighbour_ret[i] = i % 2 ? hwt_shutdown_sync(&neighbour[i].timeout) :
					   hwt_cancel_sync(&neighbour[i].timeout);
	kt_expire(timeout);
}

static const struct hwt_ops caller_ops = { .expire = caller_expire };

static void __init test_neighbours(const struct hwt_ops *ops, const char *what)
{
	struct hwt_wheel *wheel = kt_wheel("neighbours");
	u64 deadline = hwt_wheel_now(wheel) + 30 * KT_MS;
	struct kt caller;
	int i, odd = 0;

	kt_init(&caller, wheel, &caller_ops);
	for (i = 0; i < 4; i++)
		kt_init(&neighbour[i], wheel, ops);
	hwt_schedule_at(&caller.timeout, deadline);
	hwt_schedule_at(&neighbour[0].timeout, deadline);
	hwt_schedule(&neighbour[1].timeout, KT_HOUR);
	KTEST(KT_WAIT(kt_expirations(&caller) == 1), "%s: a callback _syncs four",
	      what);
	KTEST(neighbour_ret[2] == 1 && neighbour_ret[1] == 1 && neighbour_ret[3] == 0,
	      "%s: one uncollected, one far away, one idle", what);
	/* Armed second for the same tick by this CPU, unless it was moved meanwhile. */
	KTEST(neighbour_ret[0] == 1 || kt_expirations(&neighbour[0]) == 1,
	      "%s: and one that is due with it", what);
	for (i = 0; i < 4; i++)
		odd += hwt_held(&neighbour[i].timeout) ||
		       (ops->release && i < 3 && kt_releases(&neighbour[i]) != 1);
	KTEST(odd == 0, "%s: all are let go", what);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Those who schedule again and again ---------------------------------- */

static struct kt stubborn;

static atomic_t refusals[2];
static atomic_t revived;

static int rearm(void *arg)
{
	unsigned int n = 0, self = (unsigned long)arg;
	int ret;

	while (!kthread_should_stop()) {
		ret = hwt_schedule(&stubborn.timeout, n++ % 2 ? 0 : KT_MS);
		if (ret == -ESHUTDOWN)
			atomic_inc(&refusals[self]);
		else if (atomic_read(&refusals[self]))
			atomic_inc(&revived);	/* refused once, it must stay so */
		if (n % 256 == 0 || ret < 0)
			usleep_range(100, 200);
	}
	return 0;
}

static void stubborn_expire(struct hwt_timeout *timeout)
{
	hwt_schedule(timeout, 0);
	kt_expire(timeout);
}

static const struct hwt_ops stubborn_ops = {
	.expire		= stubborn_expire,
	.release	= kt_release,
};

static void __init test_stubborn(const char *what, const struct hwt_ops *ops,
				 unsigned int threads)
{
	struct hwt_wheel *wheel = kt_wheel("stubborn");
	struct task_struct *thread[2];
	int i, n, round, ended = 0, odd = 0;

	for (round = 0; round < 10; round++) {
		kt_init(&stubborn, wheel, ops);
		atomic_set(&refusals[0], 0);
		atomic_set(&refusals[1], 0);
		atomic_set(&revived, 0);
		hwt_schedule(&stubborn.timeout, 0);
		for (i = 0; i < threads; i++)
			thread[i] = kt_thread(rearm, (void *)(unsigned long)i, i);
		KT_WAIT(kt_expirations(&stubborn) > 3);
		hwt_shutdown_sync(&stubborn.timeout);
		odd += hwt_held(&stubborn.timeout) || hwt_pending(&stubborn.timeout);
		n = kt_expirations(&stubborn);
		usleep_range(5000, 6000);
		odd += kt_expirations(&stubborn) != n;
		odd += hwt_schedule(&stubborn.timeout, 0) != -ESHUTDOWN;
		for (i = 0; i < threads; i++)
			odd += !KT_WAIT(atomic_read(&refusals[i]));
		for (i = 0; i < threads; i++)
			kt_thread_stop(thread[i]);
		odd += atomic_read(&revived) + hwt_wheel_pending(wheel) != 0;
		ended++;
	}
	KTEST(ended == 10 && odd == 0, "%s: shutdown_sync ends it, ten times", what);
	hwt_wheel_destroy(wheel);
}

static void __init selftest(void)
{
	test_others(kt_quick() ? 3 : 10);
	test_own();
	test_neighbours(&kt_ops, "with release");
	test_neighbours(&kt_plain_ops, "without");
	test_stubborn("its callback re-arms it", &stubborn_ops, 0);
	test_stubborn("two threads re-arm it", &kt_ops, 2);
	test_stubborn("its callback and two threads re-arm it", &stubborn_ops, 2);
}

KSTM_MODULE_LOADERS(test_sync);
MODULE_DESCRIPTION("hwt: the _sync calls");
MODULE_LICENSE("GPL");
