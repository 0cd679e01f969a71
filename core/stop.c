// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stop of a wheel: its pending timeouts are handed back, all holds end, and its threads end
 */
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "core/callback.h"
#include "core/engine.h"
#include "core/stop.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"
#include "core/trace.h"
#include "core/wait.h"

/*
 * Remove a timeout from the due list. If it is armed, hand it back: call @fn or, if @fn is NULL,
 * its ->cancelled. Return true if it was armed.
 */
static bool hwt_hand_back(struct hwt_shard *shard, struct hwt_runner *runner,
			  struct hwt_timeout *timeout, hwt_handback_fn fn, void *arg)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;
	struct hwt_call call;

	hwt_buckets_remove(&shard->buckets, timeout);
	timeout->past = false;
	if (hwt_mark_reached(shard, timeout))
		return false;
	/*
	 * Barrier state.fire, pairs with state.arm and earlier.mb in hwt_arm() and earlier.mb in
	 * __hwt_schedule(): @fn, or ->cancelled, sees what the client wrote before it scheduled the
	 * timeout.
	 */
	do {
		change = hwt_state_hand_back(old);
		if (change.action == HWT_NOTHING)
			return false;	/* It was cancelled: its hold ends when it is collected. */
	} while (!hwt_state_change(timeout, &old, change.state));

	hwt_count(&shard->retired, 1);
	hwt_count(&shard->handed_back, 1);
	hwt_pending_put(shard);
	trace_hwt_cancel(shard, timeout, hwt_state_tick(old));
	runner->call = ++shard->calls;
	if (fn) {
		hwt_call_begin(shard, runner, timeout, fn, &call);
		fn(timeout, arg);
		hwt_call_end(shard, runner, &call);
	}
	hwt_finish(shard, runner, timeout, !fn);
	return true;
}

/*
 * Collect all submissions, end the holds of the timeouts on shard->owed, and hand back all armed
 * timeouts: instead of firing them, call @fn or, if @fn is NULL, their ->cancelled. Return the
 * number of timeouts handed back.
 */
static long hwt_drain(struct hwt_shard *shard, struct hwt_runner *runner,
		      hwt_handback_fn fn, void *arg)
	__must_hold(&shard->lock)
{
	struct list_head *due = &shard->buckets.due;
	struct hwt_timeout *timeout;
	unsigned int step = 0;
	bool flushed;
	long n = 0;

	for (;;) {
		/* Set no limit: once the shard is closed, the submissions come to an end. */
		hwt_collect(shard, UINT_MAX);
		while (!list_empty(&shard->owed)) {
			hwt_end_hold(shard, runner,
				     list_first_entry(&shard->owed, struct hwt_timeout, link));
			if (++step % HWT_STEP == 0)
				hwt_runner_break(shard, runner);
		}
		flushed = hwt_buckets_flush(&shard->buckets, HWT_STEP);
		if (flushed && list_empty(due))
			return n;
		while (!list_empty(due)) {
			timeout = list_first_entry(due, struct hwt_timeout, link);
			n += hwt_hand_back(shard, runner, timeout, fn, arg);
			if (++step % HWT_STEP == 0)
				hwt_runner_break(shard, runner);
		}
		hwt_runner_break(shard, runner);
	}
}

/*
 * Empty all shards by hwt_drain(). It hands back each armed timeout by a call of @fn or, if @fn is
 * NULL, of the timeout's ->cancelled. Return the number of timeouts handed back.
 */
static long hwt_stop_drain(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	struct hwt_runner runner = { .task = current };
	struct hwt_shard *shard;
	long n = 0;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		hwt_runner_enter(shard, &runner);
		n += hwt_drain(shard, &runner, fn, arg);
		hwt_runner_leave(shard, &runner);
	}
	return n;
}

/*
 * Make the threads of all shards serve no more timeouts, and after that make all calls that
 * schedule fail. So once such a call has failed, no ->expire begins. A timeout that is scheduled
 * between these two steps does not fire: the stop hands it back.
 */
static void hwt_stop_begin(struct hwt_wheel *wheel)
{
	struct hwt_shard *shard;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		spin_lock(&shard->lock);
		shard->stopping = true;
		spin_unlock(&shard->lock);
	}
	for (shard = wheel->first_shard; shard; shard = shard->next) {
		/*
		 * If a schedule fails because hwt_arm_open() has found @closed set, no ->expire may
		 * begin after that. So the lock orders this store after the stores to @stopping
		 * above, which keep the threads from firing.
		 */
		spin_lock(&shard->lock);
		WRITE_ONCE(shard->closed, true);
		spin_unlock(&shard->lock);
	}
}

/* Wait until the callbacks of all shards have returned, and end the threads of all shards. */
void hwt_stop_threads(struct hwt_wheel *wheel)
{
	struct hwt_shard *shard;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		spin_lock(&shard->lock);
		hwt_wait_callbacks(shard, U64_MAX);
		spin_unlock(&shard->lock);
		hwt_threads_stop(shard);
	}
}

static void hwt_stop_end(struct hwt_wheel *wheel)
{
	struct hwt_runner runner = { .task = current };
	struct hwt_shard *shard;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		spin_lock(&shard->lock);
		hwt_wait_callbacks(shard, U64_MAX);
		/*
		 * Only marks (struct hwt_mark) are left on shard->owed, put there since the last
		 * drain. hwt_end_hold() takes each off the list, and wakes the task that waits for
		 * it.
		 */
		while (!list_empty(&shard->owed))
			hwt_end_hold(shard, &runner, list_first_entry(&shard->owed,
								      struct hwt_timeout, link));
		WRITE_ONCE(shard->stopped, true);
		spin_unlock(&shard->lock);
	}
}

/*
 * Stop a wheel, as hwt_wheel_stop() does, even if the wheel is shared. Return the number of
 * timeouts handed back, or -EDEADLK in a callback of the wheel.
 *
 * The order of the steps matters. Each step is taken on all shards before the next one, because a
 * callback of one shard may schedule a timeout of another:
 *
 *   1. Close all shards, so that calls that schedule fail, and wait for a grace period. From then
 *      on, a timeout is armed only when the callback of a periodic timeout returns.
 *   2. Hand back all armed timeouts. hwt_cancel(), on another CPU, may have set SUBMITTED of a
 *      timeout and not have pushed it yet. This step only removes such a timeout from its bucket;
 *      step 4 collects it.
 *   3. Wait for callbacks, end the threads, and hand back the timeouts armed since step 2. Now no
 *      timeout is armed, so no cancel sets SUBMITTED any more.
 *   4. Wait for a second grace period, after which each timeout with SUBMITTED has been pushed.
 *      Collect these timeouts.
 *   5. Wait for callbacks again: a concurrent hwt_cancel_sync() or hwt_shutdown_sync() may be
 *      ending a hold, for which it calls ->cancelled or ->release itself.
 */
long hwt_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	struct hwt_shard *shard;
	long n = 0;

	might_sleep();
	if (hwt_in_callback(wheel))
		return -EDEADLK;
	hwt_wheel_enter(wheel);
	for (shard = wheel->first_shard; shard; shard = shard->next)
		hwt_lockdep_shard(shard);
	mutex_lock(&wheel->stop_lock);
	/* A stop sets @stopped under this mutex. If it is set, nothing is left to do. */
	if (READ_ONCE(wheel->first_shard->stopped))
		goto out;

	hwt_stop_begin(wheel);
	/*
	 * Barrier stop.grace1, pairs with arm.rcu in hwt_arm_open(): a caller that has found the
	 * shard open has pushed its timeout by now. So the next drain finds it, and no push comes
	 * after the last drain.
	 */
	synchronize_rcu();
	n += hwt_stop_drain(wheel, fn, arg);
	hwt_stop_threads(wheel);
	n += hwt_stop_drain(wheel, fn, arg);
	/*
	 * Barrier stop.grace2, pairs with cancel.rcu in __hwt_cancel(): a cancel that has set
	 * SUBMITTED of a timeout has pushed the timeout by now, so the next drain, which is the
	 * last, collects it.
	 */
	synchronize_rcu();
	n += hwt_stop_drain(wheel, fn, arg);
	hwt_stop_end(wheel);
	trace_hwt_wheel_stop(wheel, n);
out:
	mutex_unlock(&wheel->stop_lock);
	hwt_wheel_leave(wheel);
	return n;
}
