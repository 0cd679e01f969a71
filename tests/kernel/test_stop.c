// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stop under load: what was armed has fired, was cancelled, or is handed back, once.
 *
 * hwt-test: timeout 120
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/prandom.h>

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

/* -- Under load ---------------------------------------------------------- */

#define THREADS	4
#define EACH	500

/* A timeout of which everything that was done to it is counted. */
struct load {
	struct hwt_timeout	timeout;
	atomic_t		armed;		/* schedules that found it not pending */
	atomic_t		holds;		/* schedules that found it not held */
	atomic_t		hits;		/* cancels that hit */
	atomic_t		expired, cancelled, released, handed;
};

static struct load load[THREADS][EACH];
static atomic_t gone, others;
/* Cancel also when the stop has begun. */
static bool cancel_on;

static struct load *load_of(struct hwt_timeout *timeout)
{
	return container_of(timeout, struct load, timeout);
}

static void load_arm(struct load *one, u64 delay)
{
	int ret = hwt_schedule(&one->timeout, delay);

	if (ret == -ESHUTDOWN) {
		atomic_inc(&gone);
	} else if (ret < 0) {
		atomic_inc(&others);
	} else {
		if (!(ret & HWT_WAS_PENDING))
			atomic_inc(&one->armed);
		if (!(ret & HWT_WAS_HELD))
			atomic_inc(&one->holds);
	}
}

static void load_expire(struct hwt_timeout *timeout)
{
	struct load *one = load_of(timeout);

	/* Some go on by themselves. */
	if (atomic_inc_return(&one->expired) % 4)
		load_arm(one, KT_MS);
}

static void load_cancelled(struct hwt_timeout *timeout)
{
	atomic_inc(&load_of(timeout)->cancelled);
}

static void load_release(struct hwt_timeout *timeout)
{
	atomic_inc(&load_of(timeout)->released);
}

static const struct hwt_ops load_ops = {
	.expire		= load_expire,
	.cancelled	= load_cancelled,
	.release	= load_release,
};

static void load_take(struct hwt_timeout *timeout, void *arg)
{
	atomic_inc(&load_of(timeout)->handed);
}

static int load_thread(void *arg)
{
	struct load *mine = arg;
	struct rnd_state rnd;
	u32 random;

	prandom_seed_state(&rnd, (unsigned long)mine);
	while (!kthread_should_stop()) {
		random = prandom_u32_state(&rnd);
		if (random >> 30)
			load_arm(&mine[random % EACH],
				 random & 256 ? KT_HOUR : random >> 9 & 0xffffff);
		else if (cancel_on ||
			 !hwt_wheel_stopped(hwt_timeout_wheel(&mine->timeout)))
			atomic_add(hwt_cancel(&mine[random % EACH].timeout),
				   &mine[random % EACH].hits);
		if (random % 128 == 0)
			cond_resched();
	}
	return 0;
}

static void __init test_load(bool give, bool cancel)
{
	struct hwt_wheel *wheel = kt_wheel("load");
	struct task_struct *thread[THREADS];
	unsigned int i, n, odd = 0, held = 0, fired = 0, handed = 0, armed = 0;
	struct hwt_wheel_stats stats;
	long ret;

	cancel_on = cancel;
	memset(load, 0, sizeof(load));
	atomic_set(&gone, 0);
	atomic_set(&others, 0);
	for (i = 0; i < THREADS; i++)
		for (n = 0; n < EACH; n++)
			hwt_timeout_init(&load[i][n].timeout, wheel, &load_ops);
	for (i = 0; i < THREADS; i++)
		thread[i] = kt_thread(load_thread, load[i], i);
	msleep(300);
	ret = hwt_wheel_stop(wheel, give ? load_take : NULL, NULL);
	/* Stopped means stopped, while the threads go on trying. */
	for (i = 0; i < THREADS; i++)
		for (n = 0; n < EACH; n++) {
			held += hwt_held(&load[i][n].timeout);
			fired -= atomic_read(&load[i][n].expired);
		}
	KTEST(hwt_wheel_pending(wheel) == 0 && held == 0,
	      "stop under load: nothing is pending or held");
	msleep(100);
	for (i = 0; i < THREADS; i++)
		kt_thread_stop(thread[i]);
	for (i = 0; i < THREADS; i++)
		for (n = 0; n < EACH; n++) {
			struct load *one = &load[i][n];
			unsigned int ends = atomic_read(&one->expired) +
					    atomic_read(&one->hits) +
					    atomic_read(&one->handed);

			fired += atomic_read(&one->expired);
			armed += atomic_read(&one->armed);
			handed += atomic_read(&one->handed);
			/* Without a function ->cancelled is called, as for a cancel. */
			if (give)
				odd += ends != atomic_read(&one->armed);
			else
				odd += ends > atomic_read(&one->armed) ||
				       atomic_read(&one->handed);
			odd += atomic_read(&one->released) != atomic_read(&one->holds);
			odd += atomic_read(&one->handed) > 1;
		}
	KTEST(fired == 0, "nothing fires after it: %u", fired);
	KTEST(odd == 0, "each that was armed fired, was cancelled or handed back, once: %u odd",
	      odd);
	hwt_wheel_get_stats(wheel, &stats);
	KTEST(!give || ret == handed, "%ld were handed back", ret);
	KTEST((ret > 0 || cancel) && stats.handed_back == ret && stats.scheduled == armed &&
	      stats.scheduled == stats.expired + stats.cancelled + stats.handed_back,
	      "the wheel's counters agree: %llu = %llu + %llu + %llu",
	      stats.scheduled, stats.expired, stats.cancelled, stats.handed_back);
	KTEST(atomic_read(&gone) && !atomic_read(&others) &&
	      stats.rejected == atomic_read(&gone),
	      "%d schedules came too late", atomic_read(&gone));
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- While a callback runs ----------------------------------------------- */

static struct {
	struct kt	kt;
	atomic_t	inside;
	bool		done;
	int		rearm;
} slow;

static void slow_expire(struct hwt_timeout *timeout)
{
	atomic_set(&slow.inside, 1);
	/* Long enough for the stop to begin. */
	KT_WAIT(hwt_wheel_stopped(hwt_timeout_wheel(timeout)));
	msleep(100);
	slow.rearm = hwt_schedule(timeout, 0);
	slow.done = true;
	kt_expire(timeout);
}

static const struct hwt_ops slow_ops = {
	.expire		= slow_expire,
	.release	= kt_release,
};

static void __init test_callback(void)
{
	struct hwt_wheel *wheel = kt_wheel("callback");
	struct kt behind;

	memset(&slow, 0, sizeof(slow));
	kt_init(&slow.kt, wheel, &slow_ops);
	kt_init(&behind, wheel, &kt_ops);
	hwt_schedule(&slow.kt.timeout, 0);
	KT_WAIT(atomic_read(&slow.inside));
	hwt_schedule(&behind.timeout, 0);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 1 && slow.done &&
	      kt_releases(&slow.kt) == 1, "stop waits for the callback that runs");
	KTEST(slow.rearm == -ESHUTDOWN, "which cannot schedule any more");
	KTEST(kt_expirations(&behind) == 0 && atomic_read(&behind.cancelled) == 1,
	      "what was due behind it is handed back");
	hwt_wheel_destroy(wheel);
}

/* It re-arms itself for ever: stop must end that. */
static void forever_expire(struct hwt_timeout *timeout)
{
	hwt_schedule(timeout, 0);
	kt_expire(timeout);
}

static const struct hwt_ops forever_ops = {
	.expire		= forever_expire,
	.release	= kt_release,
};

static long stopped[2];

static int stop_it(void *arg)
{
	struct hwt_wheel *wheel = arg;
	long ret = hwt_wheel_stop(wheel, NULL, NULL);

	if (hwt_wheel_state(wheel) != HWT_SHUTDOWN || hwt_wheel_pending(wheel))
		ret = -EBADE;
	return kt_thread_end(ret);
}

static void __init test_twice(void)
{
	struct task_struct *thread[2];
	struct hwt_wheel *wheel;
	int i, round, odd = 0;
	struct kt kt;

	for (round = 0; round < 20; round++) {
		wheel = kt_wheel("twice");
		kt_init(&kt, wheel, &forever_ops);
		hwt_schedule(&kt.timeout, 0);
		KT_WAIT(kt_expirations(&kt) > round);
		for (i = 0; i < 2; i++)
			thread[i] = kt_thread(stop_it, wheel, i);
		for (i = 0; i < 2; i++)
			stopped[i] = kt_thread_stop(thread[i]);
		odd += stopped[0] < 0 || stopped[1] < 0 ||
		       (stopped[0] && stopped[1]) || stopped[0] + stopped[1] > 1;
		odd += kt_releases(&kt) != 1 || hwt_held(&kt.timeout);
		hwt_wheel_destroy(wheel);
	}
	KTEST(odd == 0, "two stops at once: both wait, one hands back");
}

/* -- From another wheel's callback --------------------------------------- */

static struct hwt_wheel *victim;
static long victim_ret;

static void killer_expire(struct hwt_timeout *timeout)
{
	victim_ret = hwt_wheel_stop(victim, NULL, NULL);
	if (!victim_ret)
		victim_ret = hwt_wheel_destroy(victim);
	kt_expire(timeout);
}

static const struct hwt_ops killer_ops = { .expire = killer_expire };

static void __init test_other_wheel(void)
{
	struct hwt_wheel *wheel = kt_wheel("killer");
	struct kt kt;

	victim = kt_wheel("victim");
	kt_init(&kt, wheel, &killer_ops);
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1) && victim_ret == 0,
	      "a callback may stop and destroy another wheel");
	hwt_wheel_destroy(wheel);
}

static void __init selftest(void)
{
	test_load(true, false);
	test_load(true, true);
	test_load(false, false);
	test_load(false, true);
	test_callback();
	test_twice();
	test_other_wheel();
}

KSTM_MODULE_LOADERS(test_stop);
MODULE_DESCRIPTION("hwt: stopping a wheel");
MODULE_LICENSE("GPL");
