// SPDX-License-Identifier: GPL-2.0-only
/* The stop of a wheel: its pending timeouts are handed back, all holds end, and its threads end */
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "core/bh.h"
#include "core/callback.h"
#include "core/engine.h"
#include "core/stop.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"
#include "core/trace.h"
#include "core/wait.h"

/* Count a timeout that is handed back; its state was @old. */
void hwt_stop_count(struct hwt_shard *shard, const struct hwt_timeout *timeout, u64 old)
	__must_hold(&shard->lock)
{
	hwt_count(&shard->retired, 1);
	hwt_count(&shard->handed_back, 1);
	hwt_pending_put(shard);
	trace_hwt_cancel(shard, timeout, hwt_state_tick(old));
}

/* Take the first timeout off the due list. If it is armed, hand it back, and return true. */
static bool hwt_hand_back(struct hwt_shard *shard, struct hwt_runner *runner,
			  hwt_handback_fn fn, void *arg)
	__must_hold(&shard->lock)
{
	struct hwt_timeout *timeout = list_first_entry(&shard->buckets.due, struct hwt_timeout,
						       link);
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;
	struct hwt_call call;

	hwt_unlink(shard, timeout);
	if (hwt_mark_reached(shard, timeout))
		return false;
	/*
	 * Barrier state.fire, pairs with state.arm in hwt_arm() and earlier.mb in __hwt_schedule():
	 * @fn or ->cancelled sees what the client wrote before scheduling.
	 */
	do {
		change = hwt_state_hand_back(old);
		if (change.action == HWT_NOTHING)
			return false;	/* cancelled: its hold ends when it is collected */
	} while (!hwt_state_change(timeout, &old, change.state));

	hwt_stop_count(shard, timeout, old);
	runner->call = ++shard->calls;
	if (fn) {
		hwt_call_begin(shard, runner, timeout, fn, &call);
		fn(timeout, arg);
		hwt_call_end(shard, runner, &call);
	}
	hwt_finish(shard, runner, timeout, !fn);
	return true;
}

/* Empty a shard: end all holds, and hand back all armed timeouts. Return the number handed back. */
static long hwt_drain(struct hwt_shard *shard, struct hwt_runner *runner,
		      hwt_handback_fn fn, void *arg)
	__must_hold(&shard->lock)
{
	struct list_head *due = &shard->buckets.due, *owed = &shard->owed;
	unsigned int step;
	long n = 0;

	for (step = 1;; step++) {
		if (step % HWT_STEP == 0)
			hwt_runner_break(shard, runner);
		/* No limit is needed: once the shard is closed, submissions come to an end. */
		hwt_collect(shard, UINT_MAX);
		if (!list_empty(owed))
			hwt_end_hold(shard, runner,
				     list_first_entry(owed, struct hwt_timeout, link));
		else if (!list_empty(due) && hwt_is_bh(shard))
			n += hwt_bh_hand_back(shard, fn, arg);
		else if (!list_empty(due))
			n += hwt_hand_back(shard, runner, fn, arg);
		else if (hwt_buckets_flush(&shard->buckets, HWT_STEP) && list_empty(due))
			return n;
	}
}

static long hwt_stop_drain(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	struct hwt_runner runner = { .task = current };
	struct hwt_shard *shard;
	long n = 0;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		if (hwt_is_bh(shard))
			hwt_bh_stop(shard);
		hwt_runner_enter(shard, &runner);
		n += hwt_drain(shard, &runner, fn, arg);
		hwt_runner_leave(shard, &runner);
	}
	return n;
}

static void hwt_stop_begin(struct hwt_wheel *wheel)
{
	struct hwt_shard *shard;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		spin_lock_irq(&shard->lock);
		shard->stopping = true;
		spin_unlock_irq(&shard->lock);
	}
	for (shard = wheel->first_shard; shard; shard = shard->next) {
		/*
		 * Once a schedule fails because of shard->closed, no ->expire may begin. So stop
		 * all shards from firing first: the lock orders the stores of the first loop before
		 * this store.
		 */
		spin_lock_irq(&shard->lock);
		WRITE_ONCE(shard->closed, true);
		spin_unlock_irq(&shard->lock);
	}
}

void hwt_stop_threads(struct hwt_wheel *wheel)
{
	struct hwt_shard *shard;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		spin_lock_irq(&shard->lock);
		hwt_wait_callbacks(shard, U64_MAX, NULL);
		spin_unlock_irq(&shard->lock);
		/* A BH shard has no threads; hwt_stop_drain() waits for its last pass. */
		if (!hwt_is_bh(shard))
			hwt_threads_stop(shard);
	}
}

static void hwt_stop_end(struct hwt_wheel *wheel)
{
	struct hwt_shard *shard;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		spin_lock_irq(&shard->lock);
		hwt_wait_callbacks(shard, U64_MAX, NULL);
		/* Only marks (hwt_mark) can be on shard->owed now: wake the tasks that wait. */
		while (!list_empty(&shard->owed))
			hwt_end_hold(shard, &shard->engine,
				     list_first_entry(&shard->owed, struct hwt_timeout, link));
		WRITE_ONCE(shard->stopped, true);
		spin_unlock_irq(&shard->lock);
	}
}

/*
 * Stop a wheel, even if it is shared. Return the number of timeouts handed back, or -EDEADLK in a
 * callback of the wheel. A callback of one shard may schedule a timeout of another shard. So each
 * step ends on all shards before the next step begins:
 *
 *   1. Keep the threads from firing, then make calls that schedule fail. After a grace period, a
 *      timeout is armed only when a callback of a periodic timeout returns.
 *   2. Hand back all armed timeouts. If a cancel has yet to push its timeout on a submission list,
 *      step 4 collects this timeout.
 *   3. Wait for callbacks, end the threads, and hand back the timeouts armed since step 2. Now no
 *      timeout is armed, so no cancel sets the bit SUBMITTED of a timeout any more.
 *   4. After a second grace period, all cancels have pushed their timeouts: collect the timeouts.
 *   5. Wait for callbacks again: a concurrent _sync call may be executing ->cancelled or ->release.
 */
long hwt_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	struct hwt_shard *shard;
	long n = 0;

	if (!hwt_wheel_enter(wheel))
		return -EDEADLK;
	for (shard = wheel->first_shard; shard; shard = shard->next)
		hwt_lockdep_shard(shard);
	mutex_lock(&wheel->stop_lock);
	/* An earlier stop has ended, so there is nothing to do. */
	if (READ_ONCE(wheel->first_shard->stopped))
		goto out;

	hwt_stop_begin(wheel);
	/*
	 * Barrier stop.grace1, pairs with arm.rcu in hwt_arm_open(): a caller that has found the
	 * shard open has pushed its timeout by now, so the next drain finds it.
	 */
	synchronize_rcu();
	n += hwt_stop_drain(wheel, fn, arg);
	hwt_stop_threads(wheel);
	n += hwt_stop_drain(wheel, fn, arg);
	/*
	 * Barrier stop.grace2, pairs with cancel.rcu in __hwt_cancel(): a cancel that has set
	 * SUBMITTED has pushed the timeout by now, so the last drain, which follows, collects it.
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
