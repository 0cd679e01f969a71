// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that wait, _sync and stop: the callbacks for which they wait, the calls that are refused
 * inside a callback, and nested callbacks, because a _sync or a stop in a callback may run other
 * callbacks. The timeouts that a stop hands back.
 *
 * hwt-test: shared
 * hwt-test: timeout 120
 */
#include <linux/delay.h>
#include <linux/smp.h>

#include "core/shard.h"
#include "core/wheel.h"
#include "hwt_ktest.h"

static struct kt_stay sleeper;

static void __init sleeper_start(struct hwt_wheel *wheel)
{
	KTEST(kt_stay_begin(&sleeper, wheel), "a callback sleeps");
}

/* A call that must return at once does so while the sleeper is still executing. */
static bool asleep(void)
{
	return kt_inside(&sleeper);
}

static void __init test_others(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("others", .workers = workers, .shards = 1);
	static struct kt far, due, fresh, gone, deferred, slow;

	kt_init(&far, wheel, &kt_ops);
	kt_init(&due, wheel, &kt_ops);
	kt_init(&fresh, wheel, &kt_ops);
	kt_init(&gone, wheel, &kt_ops);
	kt_init(&deferred, wheel, &kt_ops);
	kt_init(&slow, wheel, &kt_slow_ops);

	hwt_schedule(&far.timeout, KT_HOUR);
	hwt_schedule(&gone.timeout, KT_HOUR);
	hwt_schedule(&deferred.timeout, KT_HOUR);
	hwt_schedule(&slow.timeout, KT_HOUR);
	/* Collected before the sleeper begins, and due while it sleeps. */
	hwt_schedule(&due.timeout, 20 * KT_MS);
	sleeper_start(wheel);

	KTEST(hwt_cancel_sync(&far.timeout) == 1 && asleep(),
	      "cancel_sync of a timeout in a bucket returns meanwhile");
	KTEST(kt_releases(&far) == 1 && atomic_read(&far.cancelled) == 1,
	      "it has called ->cancelled and ->release");
	KTEST(hwt_schedule(&far.timeout, KT_HOUR) == 0 &&
	      hwt_cancel_sync(&far.timeout) == 1 && asleep() &&
	      kt_releases(&far) == 2, "it does so again");
	KTEST(hwt_schedule(&fresh.timeout, 0) == 0 &&
	      hwt_shutdown_sync(&fresh.timeout) == 1 && asleep() &&
	      kt_releases(&fresh) == 1 && kt_expirations(&fresh) == 0,
	      "shutdown_sync of a timeout that was not collected");
	hwt_cancel(&gone.timeout);
	KTEST(hwt_cancel_sync(&gone.timeout) == 0 && asleep() && kt_releases(&gone) == 1,
	      "cancel_sync of a cancelled timeout that is held");
	/* A cancel_sync that collects must not run callbacks of other timeouts. */
	hwt_cancel(&deferred.timeout);
	hwt_schedule(&far.timeout, KT_HOUR);
	hwt_cancel(&far.timeout);
	KTEST(hwt_cancel_sync(&far.timeout) == 0 && asleep() &&
	      kt_releases(&far) == 3 && kt_releases(&deferred) == 0,
	      "cancel_sync does not call the release of another timeout");
	KTEST(hwt_cancel_sync(&deferred.timeout) == 0 && asleep() &&
	      kt_releases(&deferred) == 1 && atomic_read(&deferred.cancelled) == 1,
	      "cancel_sync of a timeout that another cancel_sync has collected");
	KTEST(hwt_cancel_sync(&slow.timeout) == 1 && asleep() &&
	      kt_releases(&slow) == 1, "cancel_sync returns after a slow release");
	while (asleep() && hwt_remaining(&due.timeout))
		usleep_range(500, 1000);
	KTEST(hwt_cancel_sync(&due.timeout) == 1 && asleep() &&
	      kt_releases(&due) == 1 && kt_expirations(&due) == 0,
	      "cancel_sync of a due timeout that waits for the sleeper");
	KTEST(hwt_wheel_pending(wheel) == 0, "no timeout is pending");

	/* Schedule a timeout again while it is on shard->owed. */
	hwt_schedule(&deferred.timeout, KT_HOUR);
	hwt_cancel(&deferred.timeout);
	hwt_schedule(&far.timeout, KT_HOUR);
	hwt_cancel_sync(&far.timeout);
	hwt_cancel(&far.timeout);
	KTEST(hwt_schedule(&deferred.timeout, 0) == HWT_WAS_HELD &&
	      hwt_pending(&deferred.timeout), "a cancelled, held timeout is scheduled again");
	kt_stay_end(&sleeper);
	KTEST(KT_WAIT(kt_expirations(&deferred) == 1) && KT_WAIT(kt_releases(&deferred) == 2) &&
	      atomic_read(&deferred.cancelled) == 1, "it fires");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

#define STRANGERS	16000

static struct hwt_timeout *stranger;

static int submit_strangers(void *wheel)
{
	unsigned int i;

	for (i = 0; i < STRANGERS; i++) {
		hwt_timeout_init(&stranger[i], wheel, &kt_nothing_ops);
		hwt_schedule(&stranger[i], KT_HOUR);
	}
	return kt_thread_end(0);
}

/* Another CPU has submitted many timeouts, which the engine, in a callback, has not collected. */
static void __init test_strangers(void)
{
	struct hwt_wheel *wheel;
	static struct kt idle, linked, fresh;
	u64 before;

	if (num_online_cpus() == 1) {
		KTEST_SKIP("there is only one CPU");
		return;
	}
	wheel = kt_wheel("strangers", .shards = 1);
	stranger = kt_alloc(STRANGERS, sizeof(*stranger));
	kt_init(&idle, wheel, &kt_ops);
	kt_init(&linked, wheel, &kt_ops);
	kt_init(&fresh, wheel, &kt_ops);
	kt_stay_on(cpumask_of(0));
	hwt_schedule(&linked.timeout, KT_HOUR);
	/* The sleeper was submitted on the same list, so @linked has been collected, too. */
	sleeper_start(wheel);
	kt_thread_stop(kt_thread(submit_strangers, wheel, 1));
	before = kt_stats(wheel).collected;
	KTEST(hwt_cancel_sync(&idle.timeout) == 0 && hwt_cancel_sync(&linked.timeout) == 1 &&
	      kt_stats(wheel).collected == before,
	      "_sync of an idle timeout, and of one in a bucket, collects none of %u", STRANGERS);
	hwt_schedule(&fresh.timeout, KT_HOUR);
	KTEST(hwt_shutdown_sync(&fresh.timeout) == 1 && kt_stats(wheel).collected == before + 1,
	      "_sync of a timeout submitted on this CPU collects only that one");
	KTEST(hwt_cancel_sync(&stranger[STRANGERS - 1]) == 1 && asleep() &&
	      kt_stats(wheel).collected - before < STRANGERS / 10,
	      "_sync of the last one submitted on another CPU collects one step: %llu",
	      kt_stats(wheel).collected - before);
	kt_stay_on(NULL);
	kt_stay_end(&sleeper);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	vfree(stranger);
}

/* @pending: the timeout is scheduled again during its callback. */
static void __init test_own(bool pending)
{
	struct hwt_wheel *wheel = kt_wheel("own");
	struct kt_call sync[2];
	long ret;

	sleeper_start(wheel);
	if (pending)
		hwt_schedule(&sleeper.kt.timeout, KT_HOUR);
	kt_call_begin(&sync[0], kt_do_sync_stay, &sleeper);
	kt_call_begin(&sync[1], kt_do_sync_stay, &sleeper);
	msleep(100);
	KTEST(!kt_call_done(&sync[0]) && !kt_call_done(&sync[1]) && asleep() &&
	      !hwt_pending(&sleeper.kt.timeout),
	      "two cancel_sync of a running timeout cancel and wait");
	complete_all(&sleeper.out);
	ret = kt_call_end(&sync[0]) + kt_call_end(&sync[1]);
	KTEST(ret == pending, "they return after callback and release: %ld found it pending", ret);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static struct kt neighbour[4];
static int neighbour_ret[4];

static void caller_expire(struct hwt_timeout *timeout)
{
	int i;

	/* A timeout that is not collected yet. */
	hwt_schedule(&neighbour[2].timeout, 0);
	for (i = 0; i < 4; i++)
		neighbour_ret[i] = i % 2 ? hwt_shutdown_sync(&neighbour[i].timeout) :
					   hwt_cancel_sync(&neighbour[i].timeout);
	kt_expire(timeout);
}

static void __init test_neighbours(const struct hwt_timeout_ops *ops, const char *what)
{
	struct hwt_wheel *wheel = kt_wheel("neighbours");
	u64 deadline = hwt_wheel_now(wheel) + 30 * KT_MS;
	struct kt caller;
	int i, odd = 0;

	kt_setup(&caller, wheel, caller_expire);
	for (i = 0; i < 4; i++)
		kt_init(&neighbour[i], wheel, ops);
	hwt_schedule_at(&caller.timeout, deadline);
	hwt_schedule_at(&neighbour[0].timeout, deadline);
	hwt_schedule(&neighbour[1].timeout, KT_HOUR);
	KTEST(KT_WAIT(kt_expirations(&caller) == 1), "%s: a callback calls _sync for four", what);
	KTEST(neighbour_ret[2] == 1 && neighbour_ret[1] == 1 && neighbour_ret[3] == 0,
	      "%s: one not collected, one far away, one idle", what);
	/* Due on the same tick as the caller: it has been cancelled, or has fired before. */
	KTEST(neighbour_ret[0] == 1 || kt_expirations(&neighbour[0]) == 1,
	      "%s: and one due on the same tick", what);
	for (i = 0; i < 4; i++)
		odd += hwt_held(&neighbour[i].timeout) ||
		       (ops->release && i < 3 && kt_releases(&neighbour[i]) != 1);
	KTEST(odd == 0, "%s: all holds have ended", what);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* Calls that a callback must not make, because they would wait for it: -EDEADLK. */
struct tried {
	int	times, odd;
};

static struct tried in_expire, in_cancelled, in_release, in_handback;

static void try_all(struct hwt_timeout *timeout, struct tried *tried)
{
	struct hwt_wheel *wheel = hwt_timeout_wheel(timeout);
	const long ret[] = {
		hwt_cancel_sync(timeout), hwt_wait(timeout, U64_MAX),
		hwt_wheel_stop(wheel, NULL, NULL), hwt_wheel_destroy(wheel),
		hwt_wheel_flush(wheel), hwt_wheel_barrier(wheel),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ret); i++) {
		if (ret[i] == -EDEADLK)
			continue;
		tried->odd++;
		pr_info("# call %u returns %ld\n", i, ret[i]);
	}
	tried->times++;
}

static bool __init refused(struct tried *tried, int times)
{
	bool ok = tried->times == times && !tried->odd;

	memset(tried, 0, sizeof(*tried));
	return ok;
}

static void dead_expire(struct hwt_timeout *timeout)
{
	try_all(timeout, &in_expire);
	kt_expire(timeout);
}

static void dead_cancelled(struct hwt_timeout *timeout)
{
	try_all(timeout, &in_cancelled);
	kt_cancelled(timeout);
}

static void dead_release(struct hwt_timeout *timeout)
{
	try_all(timeout, &in_release);
	atomic_inc_return_release(&kt_of(timeout)->released);
}

static void dead_handback(struct hwt_timeout *timeout, void *arg)
{
	try_all(timeout, &in_handback);
}

static const struct hwt_timeout_ops dead_ops = {
	.expire = dead_expire, .cancelled = dead_cancelled, .release = dead_release,
};

static void __init test_deadlock(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("deadlock", .workers = workers);
	struct kt kt, bystander;

	/* Releases of the previous run do not count. */
	memset(&in_release, 0, sizeof(in_release));
	kt_init(&kt, wheel, &dead_ops);
	kt_init(&bystander, wheel, &kt_ops);
	kt_schedule(&bystander, KT_HOUR);

	kt_schedule(&kt, 0);
	KTEST(KT_WAIT(kt_releases(&kt) == 1) && refused(&in_expire, 1),
	      "%u workers: -EDEADLK in ->expire for all calls that wait for it", workers);
	KTEST(refused(&in_release, 1), "-EDEADLK in ->release");
	KTEST(hwt_expired(&kt.timeout) && !hwt_cancelled(&kt.timeout) &&
	      !kt_stopped(wheel) && hwt_pending(&bystander.timeout), "they have changed nothing");

	kt_schedule(&kt, KT_HOUR);
	hwt_cancel(&kt.timeout);
	KTEST(KT_WAIT(kt_releases(&kt) == 2) && refused(&in_cancelled, 1) &&
	      refused(&in_release, 1), "-EDEADLK in ->cancelled and ->release on the thread");
	kt_schedule(&kt, KT_HOUR);
	KTEST(hwt_cancel_sync(&kt.timeout) == 1 && kt_releases(&kt) == 3 &&
	      refused(&in_cancelled, 1) && refused(&in_release, 1),
	      "-EDEADLK in ->cancelled and ->release in cancel_sync");
	KTEST(hwt_schedule(&kt.timeout, KT_HOUR) == 0, "the timeout can be scheduled");
	KTEST(hwt_wheel_stop(wheel, dead_handback, NULL) == 2, "a stop hands back two");
	KTEST(refused(&in_handback, 2), "-EDEADLK in the function of a stop");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

#define CHAIN	4

static struct kt chain[CHAIN];

/* Cancel the next timeout, whose ->cancelled then runs inside this callback. */
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

static const struct hwt_timeout_ops chain_ops = {
	.expire = chain_expire, .cancelled = chain_cancelled, .release = kt_release,
};

static void __init test_chain(void)
{
	struct hwt_wheel *wheel = kt_wheel("chain");
	int i, odd = 0;

	/* All have the same lockdep class. */
	for (i = 0; i < CHAIN; i++)
		kt_init(&chain[i], wheel, &chain_ops);
	for (i = 1; i < CHAIN; i++)
		kt_schedule(&chain[i], KT_HOUR);
	kt_schedule(&chain[0], KT_MS);
	KTEST(KT_WAIT(kt_releases(&chain[0]) == 1), "a chain of timeouts ends");
	for (i = 1; i < CHAIN; i++)
		odd += hwt_held(&chain[i].timeout) || kt_releases(&chain[i]) != 1 ||
		       atomic_read(&chain[i].cancelled) != 1;
	KTEST(odd == 0, "each has cancelled the next one and ended its hold");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static struct kt twice;
static atomic_t twice_done;
static int twice_ret;

/* The callback of the second hold. It waits for the cancel_sync in the release of the first. */
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
		/* Count before the callback returns: the release of its hold must see the count. */
		kt_release(timeout);
		atomic_set_release(&twice_done, 1);
		return;
	}
	kt_release(timeout);
}

static const struct hwt_timeout_ops twice_ops = {
	.expire = twice_expire, .release = twice_release,
};

static void __init test_twice(void)
{
	struct hwt_wheel *wheel = kt_wheel("twice");

	kt_init(&twice, wheel, &twice_ops);
	kt_schedule(&twice, KT_HOUR);
	KTEST(hwt_cancel_sync(&twice.timeout) == 1 && kt_expirations(&twice) == 1,
	      "a release schedules its timeout, which fires meanwhile");
	KTEST(twice_ret == -EDEADLK, "cancel_sync of its timeout in a release: %d", twice_ret);
	KTEST(KT_WAIT(kt_releases(&twice) == 2), "both holds are released");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static struct kt stopped_kt[8];
static unsigned int handed, handed_odd;

static void take(struct hwt_timeout *timeout, void *arg)
{
	struct kt *kt = kt_of(timeout);

	handed++;
	handed_odd += kt < &stopped_kt[3] || kt > &stopped_kt[7] || !hwt_cancelled(timeout) ||
		      hwt_pending(timeout) || hwt_expired(timeout) || !hwt_running(timeout) ||
		      hwt_schedule(timeout, 0) != -ESHUTDOWN || hwt_cancel(timeout) ||
		      atomic_inc_return(&kt->early) != 1;
}

static void __init test_handed_back(void)
{
	struct hwt_wheel *wheel = kt_wheel("stop");
	struct kt *kt = stopped_kt;
	int i, ok;

	for (i = 0; i < 8; i++) {
		kt_init(&kt[i], wheel, &kt_ops);
		kt_schedule(&kt[i], i < 3 ? 0 : KT_HOUR << (i - 3));
	}
	hwt_schedule(&kt[7].timeout, U64_MAX);
	for (i = 0, ok = 0; i < 3; i++)
		ok += KT_WAIT(kt_releases(&kt[i]) == 1);
	KTEST(ok == 3, "three of eight have fired");
	KTEST(hwt_wheel_stop(wheel, take, NULL) == 5 && handed == 5 && handed_odd == 0,
	      "a stop hands back the other five, cancelled");
	for (i = 0, ok = 0; i < 8; i++)
		ok += kt_releases(&kt[i]) == 1 && !hwt_held(&kt[i].timeout) &&
		      kt_expirations(&kt[i]) == (i < 3) && !atomic_read(&kt[i].cancelled) &&
		      hwt_cancelled(&kt[i].timeout) == (i >= 3);
	KTEST(ok == 8 && hwt_wheel_pending(wheel) == 0,
	      "each is released once, and ->cancelled is not called");
	KTEST(kt_schedule(&kt[0], 0) == -ESHUTDOWN && !hwt_held(&kt[0].timeout) &&
	      hwt_expired(&kt[0].timeout), "a schedule after it fails, and changes nothing");
	KTEST(hwt_wheel_stop(wheel, take, NULL) == 0 && handed == 5, "a second stop: none");
	KTEST(hwt_cancel_sync(&kt[4].timeout) == 0 && hwt_shutdown_sync(&kt[4].timeout) == 0,
	      "_sync on a stopped wheel returns 0");
	hwt_wheel_destroy(wheel);
}

/* In its own callback, a _sync cancels the timeout, although it returns -EDEADLK. */
static struct {
	int	cancel, shutdown, schedule;
	bool	pending;
} self;

static void self_expire(struct hwt_timeout *timeout)
{
	hwt_schedule(timeout, KT_HOUR);
	self.cancel = hwt_cancel_sync(timeout);
	self.pending = hwt_pending(timeout);
	self.shutdown = hwt_shutdown_sync(timeout);
	self.schedule = hwt_schedule(timeout, KT_HOUR);
	kt_expire(timeout);
}

static void __init test_self(void)
{
	struct hwt_wheel *wheel = kt_wheel("self");
	struct kt kt;

	kt_setup(&kt, wheel, self_expire);
	kt_schedule(&kt, 0);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1) && self.cancel == -EDEADLK && !self.pending,
	      "cancel_sync in the own callback cancels the timeout: %d", self.cancel);
	KTEST(self.shutdown == -EDEADLK && self.schedule == -ESHUTDOWN,
	      "shutdown_sync there shuts it down: %d, then %d", self.shutdown, self.schedule);
	KTEST(hwt_cancel_sync(&kt.timeout) == 0 && !hwt_held(&kt.timeout),
	      "its hold ends when the callback has returned");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

#define LEAVING		300

static struct kt leaving[LEAVING];
static struct completion leaving_go;
static atomic_t leaving_inside;

/* The first release blocks, so that all other releases wait behind it. */
static void leaving_release(struct hwt_timeout *timeout)
{
	if (atomic_inc_return(&leaving_inside) == 1)
		wait_for_completion(&leaving_go);
	kt_release(timeout);
}

static const struct hwt_timeout_ops leaving_ops = {
	.expire = kt_expire, .cancelled = kt_cancelled, .release = leaving_release,
};

static void __init test_barrier(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("barrier", .workers = workers);
	unsigned int i, released = 0, told = 0, pending = 0;
	struct kt_call barrier;
	struct kt bystander;

	atomic_set(&leaving_inside, 0);
	init_completion(&leaving_go);
	kt_init(&bystander, wheel, &kt_ops);
	kt_schedule(&bystander, KT_HOUR);
	for (i = 0; i < LEAVING; i++) {
		kt_init(&leaving[i], wheel, &leaving_ops);
		kt_schedule(&leaving[i], i % 3 ? KT_HOUR : 0);
	}
	KTEST(KT_WAIT(atomic_read(&leaving_inside) >= 1), "%u workers: a release blocks", workers);
	for (i = 0; i < LEAVING; i++)
		hwt_cancel(&leaving[i].timeout);
	kt_call_begin(&barrier, kt_do_barrier, wheel);
	msleep(50);
	KTEST(!kt_call_done(&barrier), "the barrier waits");
	complete_all(&leaving_go);
	KTEST(kt_call_end(&barrier) == 0, "the barrier returns after the release");
	for (i = 0; i < LEAVING; i++) {
		released += kt_releases(&leaving[i]);
		told += atomic_read(&leaving[i].cancelled);
		pending += hwt_held(&leaving[i].timeout);
	}
	KTEST(released == LEAVING && pending == 0,
	      "all are released: %u, %u of them cancelled, %u held", released, told, pending);
	KTEST(hwt_pending(&bystander.timeout), "a pending timeout stays pending");

	for (i = 0, released = 0; i < 100; i++) {
		kt_schedule(&leaving[0], KT_HOUR);
		hwt_cancel(&leaving[0].timeout);
		released += hwt_wheel_barrier(wheel) == 0 && !hwt_held(&leaving[0].timeout) &&
			    kt_releases(&leaving[0]) == i + 2;
	}
	KTEST(released == 100, "schedule, cancel, barrier, a hundred times: %u", released);
	hwt_wheel_stop(wheel, NULL, NULL);
	KTEST(hwt_wheel_barrier(wheel) == 0, "a barrier of a stopped wheel returns at once");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* A callback, or the function of a stop, may stop and destroy another wheel. */
static struct hwt_wheel *inner;
static long inner_ret;

static void inner_expire(struct hwt_timeout *timeout)
{
	inner_ret = hwt_wheel_stop(inner, NULL, NULL) ?: hwt_wheel_destroy(inner);
	kt_expire(timeout);
}

static void stop_inner(struct hwt_timeout *timeout, void *arg)
{
	inner_ret = hwt_wheel_destroy(inner);
}

static void __init test_stops(void)
{
	struct hwt_wheel *outer = kt_wheel("outer");
	static struct kt kt, in, out;

	inner = kt_wheel("inner");
	kt_setup(&kt, outer, inner_expire);
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1) && inner_ret == 0,
	      "a callback stops and destroys another wheel");

	inner = kt_wheel("inner");
	kt_init(&in, inner, &kt_ops);
	kt_init(&out, outer, &kt_ops);
	kt_schedule(&in, KT_HOUR);
	kt_schedule(&out, KT_HOUR);
	KTEST(hwt_wheel_stop(outer, stop_inner, NULL) == 1 && inner_ret == 0,
	      "the function of a stop destroys another wheel");
	KTEST(atomic_read(&in.cancelled) == 1 && kt_releases(&in) == 1 &&
	      kt_releases(&out) == 1, "all holds of both wheels have ended");
	KTEST(hwt_wheel_destroy(outer) == 0, "the wheel is destroyed");
}

/* It arms itself again until a stop. */
static void forever_expire(struct hwt_timeout *timeout)
{
	hwt_schedule(timeout, 0);
	kt_expire(timeout);
}

static const struct hwt_timeout_ops forever_ops = {
	.expire = forever_expire, .release = kt_release,
};

/* Return -EBADE if it returned before the end of the other stop. */
static long stop_it(void *wheel)
{
	long ret = hwt_wheel_stop(wheel, NULL, NULL);

	return !kt_stopped(wheel) || hwt_wheel_pending(wheel) ? -EBADE : ret;
}

static void __init test_two_stops(void)
{
	struct kt_call stop[2];
	struct hwt_wheel *wheel;
	int i, round, odd = 0;
	struct kt kt;

	for (round = 0; round < 20; round++) {
		wheel = kt_wheel("twice");
		kt_init(&kt, wheel, &forever_ops);
		hwt_schedule(&kt.timeout, 0);
		KT_WAIT(kt_expirations(&kt) > round);
		for (i = 0; i < 2; i++)
			kt_call_begin(&stop[i], stop_it, wheel);
		for (i = 0; i < 2; i++)
			odd += kt_call_end(&stop[i]) < 0;
		odd += stop[0].ret + stop[1].ret > 1;
		odd += kt_releases(&kt) != 1 || hwt_held(&kt.timeout);
		hwt_wheel_destroy(wheel);
	}
	KTEST(odd == 0, "two stops at once: both wait, only one hands back");
}

static bool stops_may_begin;

static long hold_stops(void *arg)
{
	struct hwt_wheel *wheel = arg;

	mutex_lock(&wheel->stop_lock);
	KT_WAIT(READ_ONCE(stops_may_begin));
	mutex_unlock(&wheel->stop_lock);
	return 0;
}

/*
 * A stop needs the wheel's lock to keep callbacks from beginning. Hold the lock, and let a stop go
 * on that waits for an earlier one: until it gets the lock, schedules must not fail.
 */
static void __init test_instant(void)
{
	struct hwt_wheel *wheel = kt_wheel("instant", .shards = 1);
	struct kt_call hold = { .fn = hold_stops, .arg = wheel };
	struct kt_call stop = { .fn = kt_do_stop, .arg = wheel };
	unsigned int n, refused = 0;
	static struct kt kt;

	kt_init(&kt, wheel, &kt_ops);
	kt_schedule(&kt, KT_HOUR);
	kt_stay_on(cpumask_of(0));
	hold.thread = kt_thread(kt_call_main, &hold, 1);
	KT_WAIT(mutex_is_locked(&wheel->stop_lock));
	stop.thread = kt_thread(kt_call_main, &stop, 1);
	KT_WAIT(READ_ONCE(stop.ready) && !task_is_running(stop.thread));
	spin_lock_irq(&wheel->first_shard->lock);
	WRITE_ONCE(stops_may_begin, true);
	for (n = 0; n < 100; n++) {
		mdelay(1);
		refused += kt_schedule(&kt, KT_HOUR) < 0;
	}
	spin_unlock_irq(&wheel->first_shard->lock);
	kt_stay_on(NULL);
	KTEST(!refused, "callbacks may begin, so schedules do not fail: %u of %u", refused, n);
	KTEST(kt_call_end(&hold) == 0 && kt_call_end(&stop) == 1 &&
	      kt_schedule(&kt, 0) == -ESHUTDOWN, "the stop hands back the timeout");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static long slept_short;
static bool sleeps;

static void one_sleeps(struct hwt_timeout *timeout)
{
	WRITE_ONCE(sleeps, true);
	slept_short = schedule_timeout_uninterruptible(HZ);
	kt_expire(timeout);
}

/* A submission must not wake a sleeping callback. */
static void __init test_sleep(void)
{
	struct hwt_wheel *wheel = kt_wheel("sleep");
	struct kt one, other;
	int n;

	kt_setup(&one, wheel, one_sleeps);
	kt_init(&other, wheel, &kt_plain_ops);
	slept_short = -1;
	/* This very schedule may wake it if the emulated CPU stalls there, but not each time. */
	for (n = 0; n < 5 && slept_short; n++) {
		sleeps = false;
		kt_schedule(&one, 0);
		/* RUNNING is not enough: a submission before the callback may still wake it. */
		while (!READ_ONCE(sleeps))
			usleep_range(500, 1000);
		while (kt_expirations(&one) == n) {
			hwt_schedule(&other.timeout, 0);
			hwt_cancel(&other.timeout);
			usleep_range(5000, 10000);
		}
	}
	KTEST(slept_short == 0, "a callback sleeps undisturbed: %ld jiffies short",
	      slept_short);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/*
 * A submission in an interrupt leaves its kick to an irq_work, which runs when the interrupt
 * returns. By then another timeout's callback is asleep.
 */
static bool submitted;

static void kick_late(void *arg)
{
	struct kt *other = arg;
	ktime_t end = ktime_add_ms(ktime_get(), 1000);

	hwt_schedule(&other->timeout, KT_HOUR);
	WRITE_ONCE(submitted, true);
	while (!READ_ONCE(sleeps) && ktime_before(ktime_get(), end))
		cpu_relax();
	/* Let the callback fall asleep after setting the flag. */
	mdelay(20);
}

static void __init test_late_kick(void)
{
	unsigned int here = cpumask_first(cpu_online_mask), there = kt_other_cpu(here);
	struct hwt_wheel_params params = { .name = "kick", .cpus = cpumask_of(here) };
	struct kt one, other;
	struct hwt_wheel *wheel;

	if (here == there) {
		KTEST_SKIP("there is only one CPU");
		return;
	}
	wheel = hwt_wheel_create(&params);
	kt_setup(&one, wheel, one_sleeps);
	kt_init(&other, wheel, &kt_plain_ops);
	slept_short = -1;
	sleeps = false;
	/* Let the engine fall asleep, without a deadline. */
	msleep(100);
	kt_stay_on(cpumask_of(here));
	smp_call_function_single(there, kick_late, &other, false);
	while (!READ_ONCE(submitted))
		cpu_relax();
	kt_schedule(&one, 0);
	KTEST(KT_WAIT(kt_expirations(&one) == 1) && slept_short == 0,
	      "a late kick does not wake a callback: %ld jiffies short", slept_short);
	kt_stay_on(NULL);
	KTEST(hwt_cancel_sync(&other.timeout) == 1, "the submitted timeout is pending");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init selftest(void)
{
	test_others(0);
	test_others(1);
	test_strangers();
	test_own(false);
	test_own(true);
	test_neighbours(&kt_ops, "with release");
	test_neighbours(&kt_plain_ops, "without");
	test_deadlock(0);
	test_deadlock(4);
	test_chain();
	test_twice();
	test_self();
	test_barrier(0);
	test_barrier(4);
	test_handed_back();
	test_stops();
	test_two_stops();
	test_instant();
	test_sleep();
	test_late_kick();
}

KSTM_MODULE_LOADERS(test_sync);
