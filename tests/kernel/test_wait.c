// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwt_wait() waits for one timeout, hwt_wheel_flush() for all that are due.
 *
 * hwt-test: timeout 180
 */
#include <linux/kprobes.h>

#include "hwt_ktest.h"

static struct kt_stay sleeper;

/* -- hwt_wait() -------------------------------------------------------------------- */

static long wait_for(void *timeout)
{
	return hwt_wait(timeout, U64_MAX);
}

/* Schedules itself again until it has fired four times. */
static void again_expire(struct hwt_timeout *timeout)
{
	struct kt *kt = kt_note_expired(timeout);

	if (kt_expirations(kt) < 3)
		hwt_schedule(timeout, 10 * KT_MS);
	atomic_inc_return_release(&kt->expired);
}

static void __init test_ends(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = workers);
	struct kt kt, again;
	unsigned int i, ok;

	kt_init(&kt, NULL, &kt_ops);
	KTEST(hwt_wait(&kt.timeout, U64_MAX) == 0, "wait for one without a wheel: 0");
	kt_init(&kt, wheel, &kt_ops);
	KTEST(hwt_wait(&kt.timeout, U64_MAX) == 0, "wait for one never scheduled: 0");
	for (i = 0, ok = 0; i < 50; i++) {
		hwt_schedule(&kt.timeout, i % 5 * KT_MS);
		ok += hwt_wait(&kt.timeout, U64_MAX) == 1 && kt_expirations(&kt) == i + 1;
	}
	KTEST(ok == 50, "wait for one that expires: 1, after its callback, %u of 50", ok);
	KTEST(hwt_wait(&kt.timeout, 0) == 1, "wait for an expired timeout: 1");
	hwt_schedule(&kt.timeout, KT_HOUR);
	hwt_cancel_sync(&kt.timeout);
	KTEST(hwt_wait(&kt.timeout, 0) == 0, "wait for a cancelled timeout: 0");

	kt_setup(&again, wheel, again_expire);
	hwt_schedule(&again.timeout, 0);
	KTEST(hwt_wait(&again.timeout, U64_MAX) == 1 && kt_expirations(&again) == 4,
	      "wait for a timeout that schedules itself: until its last callback");
	hwt_cancel_sync(&kt.timeout);
	hwt_cancel_sync(&again.timeout);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* Too large for the stack of a debug kernel. */
static struct kt_call waiters[3];
static struct hwt_periodic periodic;

static void __init test_cancelled(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = workers);
	/* reclaim_ms is 100; the rest is for slow machines. */
	u64 margin = (KT_SLOW ? 20 : 10) * 100 * KT_MS;
	struct kt_call *waiter = waiters;
	u64 best = U64_MAX, worst = 0, began, took;
	unsigned int i, ok = 0;
	struct kt kt;

	kt_init(&kt, wheel, &kt_plain_ops);
	for (i = 0; i < 5; i++) {
		hwt_schedule(&kt.timeout, KT_HOUR);
		kt_call_begin(&waiter[0], wait_for, &kt.timeout);
		msleep(20);
		ok += !kt_call_done(&waiter[0]);
		began = ktime_get_ns();
		hwt_cancel(&kt.timeout);
		ok += kt_call_end(&waiter[0]) == 0;
		took = ktime_get_ns() - began;
		best = min(best, took);
		worst = max(worst, took);
	}
	KTEST(ok == 10 && best < margin,
	      "a cancel ends a wait: 0, after %llu to %llu ms", kt_ms(best), kt_ms(worst));
	for (i = 0, ok = 0; i < 15; i++) {
		hwt_schedule(&kt.timeout, KT_HOUR);
		kt_call_begin(&waiter[0], wait_for, &kt.timeout);
		kt_call_begin(&waiter[1], wait_for, &kt.timeout);
		usleep_range(1000, 20000);
		if (i % 3 == 0)
			hwt_cancel_sync(&kt.timeout);
		else if (i % 3 == 1)
			hwt_shutdown_sync(&kt.timeout);
		else
			hwt_schedule(&kt.timeout, 10 * KT_MS);
		/* After a _sync the timeout is idle, so both waits must end. */
		ok += i % 3 == 2 || !hwt_held(&kt.timeout);
		ok += kt_call_end(&waiter[0]) == (i % 3 == 2);
		ok += kt_call_end(&waiter[1]) == (i % 3 == 2);
		hwt_cancel_sync(&kt.timeout);
		kt_init(&kt, wheel, &kt_plain_ops);
	}
	KTEST(ok == 45, "two waits for one timeout: 0 after a _sync, 1 after a move and a firing");

	hwt_periodic_init(&periodic, wheel, &kt_nothing_ops);
	hwt_schedule_periodic(&periodic, 0, 5 * KT_MS, HWT_MODE_FIXED_RATE);
	kt_call_begin(&waiter[0], wait_for, &periodic.timeout);
	msleep(50);
	KTEST(!kt_call_done(&waiter[0]), "the wait for a periodic timeout lasts");
	hwt_cancel(&periodic.timeout);
	KTEST(kt_call_end(&waiter[0]) == 0, "a cancel ends it: 0");
	hwt_cancel_sync(&periodic.timeout);

	hwt_schedule(&kt.timeout, KT_HOUR);
	kt_call_begin(&waiter[0], wait_for, &kt.timeout);
	msleep(20);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 1 && kt_call_end(&waiter[0]) == 0,
	      "wait for a timeout that a stop hands back: 0");
	KTEST(hwt_wait(&kt.timeout, U64_MAX) == 0, "wait on a stopped wheel: 0");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init test_limits(unsigned int workers)
{
	static const u64 limit[] = { 0, 1, KT_MS, 20 * KT_MS, 150 * KT_MS };
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = workers, .shards = 1);
	unsigned int i, ok = 0, early = 0;
	struct kt_call waiter;
	struct kt kt;
	u64 began;

	kt_init(&kt, wheel, &kt_ops);
	hwt_schedule(&kt.timeout, KT_HOUR);
	for (i = 0; i < ARRAY_SIZE(limit) * 4; i++) {
		began = ktime_get_ns();
		ok += hwt_wait(&kt.timeout, limit[i / 4]) == -ETIME;
		early += ktime_get_ns() - began < limit[i / 4];
	}
	KTEST(ok == i && early == 0, "limited wait: -ETIME, %u of %u, %u too early", ok, i, early);
	KTEST(hwt_pending(&kt.timeout) && kt_expirations(&kt) == 0, "the timeout is still pending");

	kt_call_begin(&waiter, wait_for, &kt.timeout);
	msleep(50);
	KTEST(!kt_call_done(&waiter), "the wait lasts");
	send_sig(SIGUSR1, waiter.thread, 1);
	KTEST(kt_call_end(&waiter) == -ERESTARTSYS && hwt_pending(&kt.timeout),
	      "a signal ends it: -ERESTARTSYS");

	KTEST(kt_stay_begin(&sleeper, wheel), "a callback sleeps");
	KTEST(hwt_wait(&sleeper.kt.timeout, 100 * KT_MS) == -ETIME,
	      "the wait lasts while the callback executes");
	kt_call_begin(&waiter, wait_for, &sleeper.kt.timeout);
	hwt_cancel(&kt.timeout);
	complete_all(&sleeper.out);
	KTEST(kt_call_end(&waiter) == 1 && !kt_inside(&sleeper) &&
	      kt_expirations(&sleeper.kt) == 1, "the end of the callback ends it: 1");
	KTEST(kt_stay_begin(&sleeper, wheel), "a callback sleeps");
	hwt_schedule(&sleeper.kt.timeout, KT_HOUR);
	kt_call_begin(&waiter, wait_for, &sleeper.kt.timeout);
	hwt_cancel(&sleeper.kt.timeout);
	msleep(50);
	KTEST(!kt_call_done(&waiter), "scheduled and cancelled in its callback: the wait lasts");
	complete_all(&sleeper.out);
	KTEST(kt_call_end(&waiter) == 0, "the end of the callback ends it: 0");
	hwt_cancel_sync(&sleeper.kt.timeout);
	hwt_cancel_sync(&kt.timeout);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

#define HERD	50

/* A waiter sleeps once, because only the end of its own hold wakes it. */
static void __init test_herd(void)
{
	/* On PREEMPT_RT a waiter may also sleep for the wheel's lock. */
	unsigned long most = IS_ENABLED(CONFIG_PREEMPT_RT) ? HERD / 5 : 1, worst = 0;
	struct hwt_wheel *wheel = kt_wheel("herd", .workers = HERD);
	struct kt_call *waiter = kt_alloc(HERD, sizeof(*waiter));
	struct kt_stay *stay = kt_alloc(HERD, sizeof(*stay));
	unsigned int i, begun = 0, ended = 0;

	for (i = 0; i < HERD; i++)
		begun += kt_stay_begin(&stay[i], wheel);
	for (i = 0; i < HERD; i++) {
		kt_call_begin(&waiter[i], i % 2 ? kt_do_cancel_sync : wait_for,
			      &stay[i].kt.timeout);
		begun += KT_WAIT(READ_ONCE(waiter[i].thread->nvcsw) > waiter[i].switches);
	}
	KTEST(begun == 2 * HERD, "%u callbacks sleep, each with a waiter: %u", HERD, begun);
	for (i = 0; i < HERD; i++) {
		complete_all(&stay[i].out);
		ended += kt_call_end(&waiter[i]) == !(i % 2);
		worst = max(worst, waiter[i].slept);
	}
	KTEST(ended == HERD && worst <= most,
	      "%u waiters return, one by one, and each slept at most %lu times", ended,
	      worst);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	vfree(waiter);
	vfree(stay);
}

/* A barrier that waits for one callback is not woken by the ends of others. */
static void __init test_barrier_sleeps(void)
{
	unsigned long most = IS_ENABLED(CONFIG_PREEMPT_RT) ? HERD / 2 : 3;
	struct hwt_wheel *wheel = kt_wheel("herd", .workers = 2, .shards = 1);
	struct kt_call barrier;
	unsigned int i;
	struct kt kt;

	KTEST(kt_stay_begin(&sleeper, wheel), "a callback sleeps");
	kt_call_begin(&barrier, kt_do_barrier, wheel);
	KTEST(KT_WAIT(READ_ONCE(barrier.thread->nvcsw) > barrier.switches) &&
	      !kt_call_done(&barrier), "a barrier waits for it");
	kt_init(&kt, wheel, &kt_ops);
	for (i = 0; i < HERD; i++) {
		kt_schedule(&kt, 0);
		KT_WAIT(kt_releases(&kt) == i + 1);
	}
	complete_all(&sleeper.out);
	KTEST(kt_call_end(&barrier) == 0 && barrier.slept <= most,
	      "after %u other callbacks it has slept %lu times", HERD, barrier.slept);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- hwt_wheel_flush() ----------------------------------------------------------------- */

#define FLUSHED	10000

struct item {
	struct hwt_timeout	timeout;
	int			begun, ended;
};

static struct item *item;

static void item_expire(struct hwt_timeout *timeout)
{
	struct item *one = container_of(timeout, struct item, timeout);
	unsigned int n = one - item;

	WRITE_ONCE(one->begun, one->begun + 1);
	/* Some callbacks are slow, so that they are still executing when all have begun. */
	if (n % 1000 == 999)
		usleep_range(2000, 4000);
	WRITE_ONCE(one->ended, one->ended + 1);
}

static const struct hwt_timeout_ops item_ops = { .expire = item_expire, .release = kt_nothing };

/* Each of two threads arms one half. */
static int arm_half(void *arg)
{
	unsigned int half = (unsigned long)arg, i;
	u64 now;

	for (i = half * FLUSHED / 2; i < (half + 1) * FLUSHED / 2; i++) {
		now = hwt_wheel_now(hwt_timeout_wheel(&item[i].timeout));
		switch (i % 4) {
		case 0:
			hwt_schedule_at(&item[i].timeout, 0);
			break;
		case 1:
			/* The present tick. */
			hwt_schedule_at(&item[i].timeout, kt_ms(now) * KT_MS);
			break;
		case 2:
			hwt_schedule_at(&item[i].timeout, now - i % 1000 * KT_MS - KT_MS);
			break;
		case 3:
			/* Moved to now from a bucket of any level. */
			hwt_schedule(&item[i].timeout, KT_MS << i % 24);
			hwt_schedule_at(&item[i].timeout, 1);
			break;
		}
	}
	return kt_thread_end(0);
}

static void __init test_flush(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = workers);
	struct task_struct *thread[2];
	unsigned int i, round, unbegun = 0, running = 0;
	int ret = 0;
	struct kt far;

	item = kt_alloc(FLUSHED, sizeof(*item));
	KTEST(hwt_wheel_flush(wheel) == 0, "a flush of an unused wheel returns 0");
	kt_init(&far, wheel, &kt_ops);
	hwt_schedule(&far.timeout, KT_HOUR);
	for (i = 0; i < FLUSHED; i++)
		hwt_timeout_init(&item[i].timeout, wheel, &item_ops);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 2; i++)
			thread[i] = kt_thread(arm_half, (void *)(unsigned long)i, i);
		for (i = 0; i < 2; i++)
			ret |= kt_thread_stop(thread[i]);
		ret |= hwt_wheel_flush(wheel);
		for (i = 0; i < FLUSHED; i++) {
			unbegun += !READ_ONCE(item[i].begun);
			running += READ_ONCE(item[i].begun) != READ_ONCE(item[i].ended);
		}
		for (i = 0; i < FLUSHED; i++) {
			hwt_cancel_sync(&item[i].timeout);
			item[i].begun = 0;
			item[i].ended = 0;
		}
	}
	KTEST(ret == 0 && unbegun == 0 && running == 0,
	      "three flushes of %u timeouts from two CPUs: %u have not begun, %u are running",
	      FLUSHED, unbegun, running);
	KTEST(kt_expirations(&far) == 0 && hwt_pending(&far.timeout),
	      "a flush does not wait for a later timeout");
	hwt_cancel_sync(&far.timeout);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	vfree(item);
}

/* The flush waits for a due timeout whose callback is slow. */
static void __init test_flush_running(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = workers, .shards = 1);
	struct kt_call *waiter = waiters;
	struct kt behind;

	KTEST(kt_stay_begin(&sleeper, wheel), "a callback sleeps");
	kt_call_begin(&waiter[2], kt_do_flush, wheel);
	msleep(50);
	KTEST(!kt_call_done(&waiter[2]), "a flush waits for the callback");
	kt_init(&behind, wheel, &kt_ops);
	hwt_schedule_at(&behind.timeout, 0);
	kt_call_begin(&waiter[0], kt_do_flush, wheel);
	kt_call_begin(&waiter[1], kt_do_flush, wheel);
	msleep(100);
	KTEST(!kt_call_done(&waiter[0]) && !kt_call_done(&waiter[1]) &&
	      kt_inside(&sleeper), "two more flushes wait for it");
	KTEST(workers ? KT_WAIT(kt_expirations(&behind) == 1) :
			kt_expirations(&behind) == 0,
	      "a timeout due after it has %s", workers ? "fired" : "not fired");
	complete_all(&sleeper.out);
	KTEST(kt_call_end(&waiter[0]) == 0 && kt_call_end(&waiter[1]) == 0 &&
	      kt_call_end(&waiter[2]) == 0 &&
	      kt_expirations(&behind) == 1 && kt_expirations(&sleeper.kt) == 1,
	      "all flushes return when all due timeouts have fired");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/*
 * A release begins when all due timeouts have been taken, while the flush still waits for one of
 * them. Return true if the flush did not wait for the release.
 */
static bool __init flush_not_for_release(struct hwt_wheel *wheel, unsigned int ms)
{
	static struct kt_stay due, gone;
	struct kt_call waiter;
	bool ok;

	ok = kt_stay_begin(&sleeper, wheel);
	kt_call_begin(&waiter, kt_do_flush, wheel);
	msleep(ms);
	/* The flush waits for the sleeper. @due is linked before its mark, and takes longer. */
	kt_stay_init(&due, wheel, &kt_stay_ops);
	hwt_schedule_at(&due.kt.timeout, 0);
	ok &= KT_WAIT(kt_inside(&due));
	complete(&sleeper.out);
	/* Wait for the mark, whose removal cannot be seen. */
	msleep(ms);
	kt_stay_init(&gone, wheel, &kt_stay_release_ops);
	hwt_schedule(&gone.kt.timeout, KT_HOUR);
	hwt_cancel(&gone.kt.timeout);
	ok &= KT_WAIT(kt_inside(&gone));
	complete(&due.out);
	ok &= KT_WAIT(kt_call_done(&waiter)) && kt_inside(&gone);
	complete(&gone.out);
	ok &= kt_call_end(&waiter) == 0 && KT_WAIT(kt_releases(&gone.kt) == 1) &&
	      KT_WAIT(kt_releases(&due.kt) == 1);
	return ok;
}

static void __init test_flush_release(void)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = 2);
	unsigned int ms = 20;
	bool ok;

	/* On a busy machine a runner may reach the mark later. */
	do {
		ok = flush_not_for_release(wheel, ms);
		ms *= 3;
	} while (!ok && ms < 1000);
	KTEST(ok, "a flush does not wait for a release that begins later");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Floods ------------------------------------------------------------------------------ */

static struct kt flood[50];
static bool flood_end;
static atomic_t flood_runs;

static void flood_expire(struct hwt_timeout *timeout)
{
	atomic_inc(&flood_runs);
	if (!READ_ONCE(flood_end))
		hwt_schedule_at(timeout, 0);
}

/* Keep the submission lists filled, from another thread. */
static int submit_flood(void *arg)
{
	unsigned int i;

	while (!kthread_should_stop()) {
		for (i = 0; i < FLUSHED; i++) {
			hwt_schedule(&item[i].timeout, KT_HOUR);
			hwt_cancel(&item[i].timeout);
		}
		cond_resched();
	}
	return 0;
}

static void __init test_flush_flood(unsigned int workers, bool submitted)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = workers);
	struct task_struct *thread = NULL;
	unsigned int i, ok = 0, done = 0;
	static struct kt kt, later;
	struct kt_call waiter;
	u64 worst = 0;

	kt_init(&kt, wheel, &kt_ops);
	kt_init(&later, wheel, &kt_ops);
	WRITE_ONCE(flood_end, false);
	item = kt_alloc(FLUSHED, sizeof(*item));
	if (submitted) {
		for (i = 0; i < FLUSHED; i++)
			hwt_timeout_init(&item[i].timeout, wheel, &item_ops);
		thread = kt_thread(submit_flood, NULL, 1);
	} else {
		for (i = 0; i < ARRAY_SIZE(flood); i++) {
			kt_setup(&flood[i], wheel, flood_expire);
			hwt_schedule_at(&flood[i].timeout, 0);
		}
	}
	kt_schedule(&later, 30 * KT_MS);
	KTEST(KT_WAIT(kt_expirations(&later) == 1), "a timeout of a later tick fires meanwhile");
	for (i = 0; i < 5; i++) {
		hwt_schedule_at(&kt.timeout, 0);
		kt_call_begin(&waiter, kt_do_flush, wheel);
		done += KT_WAIT(kt_call_done(&waiter));
		ok += kt_expirations(&kt) == i + 1;
		if (done != i + 1)
			break;
		worst = max(worst, waiter.took_ns);
		kt_thread_stop(waiter.thread);
	}
	WRITE_ONCE(flood_end, true);
	if (submitted)
		kt_thread_stop(thread);
	if (done != 5)
		kt_call_end(&waiter);
	KTEST(done == 5 && ok == 5,
	      "flushes in a flood of %s: %u of 5 end, within %llu ms; the due timeout fired: %u",
	      submitted ? "submissions" : "timeouts that schedule themselves", done,
	      kt_ms(worst), ok);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	vfree(item);
}

/* -- hwt_wait() in a callback -------------------------------------------------------------- */

static struct kt awaited;

static struct {
	struct kt	kt;
	bool		inside;
	int		ret;
} awaiting;

static void awaiting_expire(struct hwt_timeout *timeout)
{
	WRITE_ONCE(awaiting.inside, true);
	awaiting.ret = hwt_wait(&awaited.timeout, KT_PATIENCE * KT_SECOND / 2);
	kt_expire(timeout);
}

/* The engine, or a worker, executes the waiting callback; another worker fires @awaited. */
static void __init test_wait_inside(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = workers, .shards = 1);
	int wanted = workers > 1 ? 1 : -EDEADLK;

	memset(&awaiting, 0, sizeof(awaiting));
	kt_setup(&awaiting.kt, wheel, awaiting_expire);
	kt_init(&awaited, wheel, &kt_ops);
	hwt_schedule(&awaited.timeout, KT_HOUR);
	hwt_schedule(&awaiting.kt.timeout, 0);
	KTEST(KT_WAIT(READ_ONCE(awaiting.inside)), "a callback waits for another timeout");
	msleep(20);
	if (workers > 1)
		KTEST(hwt_schedule(&awaited.timeout, 0) > 0, "that timeout is fired");
	KTEST(KT_WAIT(kt_expirations(&awaiting.kt) == 1) && awaiting.ret == wanted,
	      "%u workers: the wait returns %d", workers, awaiting.ret);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static const struct hwt_timeout_ops told_ops = { .expire = kt_nothing, .cancelled = kt_stay_here };

/* After a cancel, the wait lasts until ->cancelled has returned. */
static void __init test_wait_told(void)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .shards = 1);
	static struct kt_stay stay, told;
	struct kt_call waiter;

	KTEST(kt_stay_begin(&stay, wheel), "a callback keeps the engine busy");
	kt_stay_init(&told, wheel, &told_ops);
	hwt_schedule(&told.kt.timeout, KT_HOUR);
	hwt_cancel(&told.kt.timeout);
	KTEST(hwt_wait(&told.kt.timeout, 0) == -ETIME, "a wait after a cancel: not over");
	kt_call_begin(&waiter, wait_for, &told.kt.timeout);
	complete_all(&stay.out);
	KTEST(KT_WAIT(kt_inside(&told)) && !kt_call_done(&waiter),
	      "it lasts while ->cancelled executes");
	complete_all(&told.out);
	KTEST(kt_call_end(&waiter) == 0 && !kt_inside(&told), "it ends after that: %ld",
	      waiter.ret);

	kt_stay_init(&told, wheel, &kt_stay_release_ops);
	hwt_schedule(&told.kt.timeout, 20 * KT_MS);
	kt_call_begin(&waiter, wait_for, &told.kt.timeout);
	KTEST(KT_WAIT(kt_inside(&told)) && kt_call_end(&waiter) == 1 && kt_inside(&told),
	      "it does not wait for a ->release: %ld", waiter.ret);
	complete_all(&told.out);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* Without a ->cancelled, for which a wait lasts. */
static const struct hwt_timeout_ops released_ops = { .expire = kt_expire, .release = kt_release };

/* The only worker is in a callback when a cancelled timeout is left to it. */
static void __init test_wait_deferred(void)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = 1, .shards = 1);
	struct kt_call waiter;

	kt_init(&awaited, wheel, &released_ops);
	KTEST(kt_stay_begin(&sleeper, wheel), "a callback sleeps");
	hwt_schedule(&awaited.timeout, KT_HOUR);
	hwt_cancel(&awaited.timeout);
	/* Written under the wheel's lock. */
	KTEST(KT_WAIT(data_race(awaited.timeout.owed != 0)),
	      "a cancelled timeout is on shard->owed");
	hwt_schedule(&awaited.timeout, KT_HOUR);
	kt_call_begin(&waiter, wait_for, &awaited.timeout);
	msleep(50);
	KTEST(!kt_call_done(&waiter) && hwt_cancel(&awaited.timeout),
	      "scheduled again, it is waited for, and cancelled");
	KTEST(kt_call_end(&waiter) == 0 && kt_inside(&sleeper),
	      "the wait returns without the worker: %ld", waiter.ret);
	complete_all(&sleeper.out);
	hwt_shutdown_sync(&awaited.timeout);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Reused memory ------------------------------------------------------------------------- */

static const struct hwt_timeout_ops staying_ops = { .release = kt_stay_here };
static const struct hwt_timeout_ops recycled_ops = { };

/* When ->release has begun, the memory may hold another timeout, which is independent of it. */
static void __init test_recycled(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .workers = workers);
	struct kt_call waiter;

	kt_stay_init(&sleeper, wheel, &staying_ops);
	hwt_schedule(&sleeper.kt.timeout, KT_HOUR);
	hwt_cancel(&sleeper.kt.timeout);
	KTEST(KT_WAIT(kt_inside(&sleeper)), "a release sleeps");
	hwt_timeout_init(&sleeper.kt.timeout, wheel, &recycled_ops);
	hwt_schedule(&sleeper.kt.timeout, KT_HOUR);
	kt_call_begin(&waiter, kt_do_cancel_sync, &sleeper.kt.timeout);
	KTEST(kt_call_end(&waiter) == 1 && kt_inside(&sleeper),
	      "cancel_sync of the next timeout in this memory does not wait: %ld", waiter.ret);
	complete_all(&sleeper.out);
	KTEST(KT_WAIT(!kt_inside(&sleeper)), "the release returns");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Many releases ------------------------------------------------------------------------- */

static struct kt ordered[16];
static atomic_t ordered_fired, disordered;

static void ordered_expire(struct hwt_timeout *timeout)
{
	struct kt *kt = container_of(timeout, struct kt, timeout);

	if (atomic_inc_return(&ordered_fired) - 1 != kt - ordered)
		atomic_inc(&disordered);
	kt_expire(timeout);
}

/* The first call schedules timeouts, and returns when all have come due. */
static void ordering_release(struct hwt_timeout *timeout)
{
	static bool called;
	int i;

	if (called)
		return;
	called = true;
	for (i = 0; i < ARRAY_SIZE(ordered); i++)
		hwt_schedule(&ordered[i].timeout, (i + 1) * 2 * KT_MS);
	msleep(100);
}

static const struct hwt_timeout_ops ordering_ops = { .release = ordering_release };

/* Between the ends of holds, the cursor does not pass timeouts that are not collected yet. */
static void __init test_order(void)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .shards = 1);
	/* More holds than the engine ends in one step. */
	static struct hwt_timeout ordering[500];
	int i;

	for (i = 0; i < ARRAY_SIZE(ordered); i++)
		kt_setup(&ordered[i], wheel, ordered_expire);
	for (i = 0; i < ARRAY_SIZE(ordering); i++) {
		hwt_timeout_init(&ordering[i], wheel, &ordering_ops);
		hwt_schedule(&ordering[i], KT_HOUR);
		hwt_cancel(&ordering[i]);
	}
	KTEST(KT_WAIT(atomic_read(&ordered_fired) == ARRAY_SIZE(ordered)) &&
	      !atomic_read(&disordered),
	      "timeouts that come due during a release fire in the order of ticks");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* More holds than the engine ends in one pass. */
#define DEFERRED	150000

static atomic_t let_go, let_go_by_stop;
static int let_go_before;
static struct task_struct *stopper;

static void count_release(struct hwt_timeout *timeout)
{
	atomic_inc(&let_go);
	if (READ_ONCE(stopper) == current)
		atomic_inc(&let_go_by_stop);
}

static const struct hwt_timeout_ops counted_ops = { .release = count_release };

static void between_expire(struct hwt_timeout *timeout)
{
	let_go_before = atomic_read(&let_go);
	kt_expire(timeout);
}

/* Cancel many timeouts while the engine is in a callback. */
static struct hwt_timeout * __init cancel_many(struct hwt_wheel *wheel)
{
	struct hwt_timeout *many = kt_alloc(DEFERRED, sizeof(*many));
	int i;

	atomic_set(&let_go, 0);
	KTEST(kt_stay_begin(&sleeper, wheel), "a callback sleeps");
	for (i = 0; i < DEFERRED; i++) {
		hwt_timeout_init(&many[i], wheel, &counted_ops);
		hwt_schedule(&many[i], KT_HOUR);
		hwt_cancel(&many[i]);
	}
	return many;
}

/* A timeout that is due does not wait until all cancelled ones are collected and released. */
static void __init test_due_first(void)
{
	struct hwt_wheel *wheel = kt_wheel("wait", .shards = 1);
	struct hwt_timeout *many;
	struct kt kt;

	let_go_before = -1;
	kt_setup(&kt, wheel, between_expire);
	hwt_schedule(&kt.timeout, 300 * KT_MS);
	/* The engine knows it: the flush collects. */
	hwt_wheel_flush(wheel);
	many = cancel_many(wheel);
	while (hwt_wheel_now(wheel) < hwt_deadline(&kt.timeout))
		msleep(20);
	complete_all(&sleeper.out);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1) && let_go_before <= 1024,
	      "a due timeout comes after %d of %d releases", let_go_before, DEFERRED);
	KTEST(KT_WAIT(atomic_read(&let_go) == DEFERRED), "all releases are called");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	vfree(many);
}

/* Cancel many timeouts, and let a _sync collect them: their releases are left to the engine. */
static struct hwt_timeout * __init defer_many(struct hwt_wheel *wheel)
{
	struct hwt_timeout *many = cancel_many(wheel);

	/* Collects nearly all, the latest first, and must not call their releases. */
	hwt_cancel_sync(&many[0]);
	return many;
}

static void __init test_deferred(void)
{
	struct hwt_wheel *wheel = kt_wheel("wait");
	struct hwt_timeout *many = defer_many(wheel);
	struct kt_call waiter;
	struct kt kt;

	kt_setup(&kt, wheel, between_expire);
	hwt_schedule_at(&kt.timeout, 0);
	kt_call_begin(&waiter, kt_do_flush, wheel);
	complete_all(&sleeper.out);
	KTEST(kt_call_end(&waiter) == 0 && kt_expirations(&kt) == 1, "a flush returns meanwhile");
	KTEST(let_go_before < DEFERRED,
	      "a due timeout does not wait for all releases: %d were called before", let_go_before);
	KTEST(KT_WAIT(atomic_read(&let_go) == DEFERRED), "all releases are called");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	vfree(many);
}

static atomic_t breaks;

static int count_break(struct kprobe *probe, struct pt_regs *regs)
{
	if (READ_ONCE(stopper) == current)
		atomic_inc(&breaks);
	return 0;
}

/*
 * A stop calls the releases that the engine has not called, perhaps all of them, and drops the lock
 * and gives up the CPU now and then.
 */
static void __init test_deferred_stop(void)
{
	struct kprobe probe = { .symbol_name = "hwt_runner_break", .pre_handler = count_break };
	struct hwt_wheel *wheel = kt_wheel("wait");
	struct hwt_timeout *many = defer_many(wheel);
	struct kt_call waiter;
	bool probed;

	probed = !register_kprobe(&probe);
	atomic_set(&breaks, 0);
	kt_call_begin(&waiter, kt_do_stop, wheel);
	WRITE_ONCE(stopper, waiter.thread);
	complete_all(&sleeper.out);
	KTEST(kt_call_end(&waiter) == 0 && atomic_read(&let_go) == DEFERRED,
	      "all are released, %d by the stop", atomic_read(&let_go_by_stop));
	WRITE_ONCE(stopper, NULL);
	if (probed)
		unregister_kprobe(&probe);
	if (probed)
		KTEST(atomic_read(&breaks) >= atomic_read(&let_go_by_stop) / 1000,
		      "the stop has dropped the lock %d times", atomic_read(&breaks));
	else
		KTEST_SKIP("no kprobes on this kernel");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	vfree(many);
}

/* -- A flush counts nothing ---------------------------------------------------------------- */

static void __init test_flush_stats(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("full", .workers = workers, .max_pending = 2);
	static struct hwt_wheel_stats before, after;
	static struct kt far, due, more;
	int i, ret = 0;

	kt_init(&far, wheel, &kt_ops);
	kt_init(&due, wheel, &kt_ops);
	kt_init(&more, wheel, &kt_ops);
	hwt_schedule(&far.timeout, KT_HOUR);
	hwt_schedule_at(&due.timeout, 0);
	KTEST(hwt_wheel_flush(wheel) == 0 && kt_expirations(&due) == 1, "a flush at the limit");
	hwt_schedule(&due.timeout, 2 * KT_HOUR);
	before = kt_stats(wheel);
	for (i = 0; i < 20; i++)
		ret |= hwt_wheel_flush(wheel);
	KTEST(ret == 0 && hwt_schedule(&more.timeout, 0) == -EAGAIN,
	      "after twenty more, a schedule is refused");
	after = kt_stats(wheel);
	/* The refused schedule. */
	before.rejected++;
	/* Counters of the engine's own work. */
	before.collected = after.collected;
	before.passes = after.passes;
	before.wakeups = after.wakeups;
	KTEST(!memcmp(&before, &after, sizeof(before)) && after.pending == 2 &&
	      hwt_wheel_pending(wheel) == 2, "no other counter has changed");
	hwt_cancel_sync(&due.timeout);
	KTEST(hwt_schedule(&more.timeout, KT_HOUR) == 0 &&
	      hwt_schedule(&due.timeout, KT_HOUR) == -EAGAIN, "one more after a cancel");
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 2, "a stop hands back two");
	KTEST(hwt_wheel_flush(wheel) == -ESHUTDOWN, "a flush after the stop: -ESHUTDOWN");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init selftest(void)
{
	unsigned int workers;

	for (workers = kt_quick() ? 4 : 0; workers <= 4; workers += 4) {
		pr_info("# %u workers\n", workers);
		test_ends(workers);
		test_cancelled(workers);
		test_limits(workers);
		test_flush(workers);
		test_flush_running(workers);
		test_flush_flood(workers, false);
		test_flush_flood(workers, true);
		test_flush_stats(workers);
		test_recycled(workers);
	}
	test_herd();
	test_barrier_sleeps();
	test_wait_inside(0);
	test_wait_inside(1);
	test_wait_inside(2);
	test_wait_told();
	test_wait_deferred();
	test_flush_release();
	test_order();
	test_due_first();
	test_deferred();
	test_deferred_stop();
}

KSTM_MODULE_LOADERS(test_wait);
