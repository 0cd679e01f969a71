// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting: hwt_cancel_sync(), hwt_shutdown_sync(), hwt_wait(), and a shard's part of
 * hwt_wheel_flush() and hwt_wheel_barrier()
 *
 * The _sync functions do not wait for the engine: they take the shard's lock, end the timeout's
 * hold themselves, and wait only while a callback or release of that timeout is executing. If the
 * timeout is on a submission list, they first collect that list. A stop does the same for all
 * timeouts, and then waits for the shard's threads to end. hwt_wait(), hwt_wheel_flush() and
 * hwt_wheel_barrier() wait for callbacks that the engine, or a worker, has yet to begin.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/export.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>

#include "core/callback.h"
#include "core/clock.h"
#include "core/debug.h"
#include "core/engine.h"
#include "core/kick.h"
#include "core/params.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"
#include "core/trace.h"

/* -- Runners ------------------------------------------------------------- */

/*
 * Is a runner executing a callback or release of this timeout? Once a release has begun, the memory
 * may hold another timeout, so an address that matches is not enough: the function must match too.
 */
static bool hwt_runner_executes(const struct hwt_runner *runner, const struct hwt_timeout *timeout)
{
	return runner->current_timeout == timeout &&
	       (!runner->releasing || runner->fn == timeout->ops->release);
}

/* Is a callback or release of the timeout executing? */
static bool hwt_callback_executing(struct hwt_shard *shard, const struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	struct hwt_runner *runner;

	/* Only a release executes after RUNNING was cleared: without one, the bit tells. */
	if (!timeout->ops->release)
		return hwt_running(timeout);
	list_for_each_entry(runner, &shard->runners, entry)
		if (hwt_runner_executes(runner, timeout))
			return true;
	return false;
}

/*
 * Is the caller inside a callback or release of this timeout? With NULL: of any timeout?
 * Several runners may be executing for one timeout: a release runs after its hold has ended, and
 * another runner may then be in a callback of the next hold.
 */
static bool hwt_in_callback_of(struct hwt_shard *shard, const struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	struct hwt_runner *runner;

	list_for_each_entry(runner, &shard->runners, entry)
		if (runner->task == current && runner->current_timeout &&
		    (!timeout || hwt_runner_executes(runner, timeout)))
			return true;
	return false;
}

/* Is the caller inside a callback of this wheel? Takes the locks of its shards. */
bool hwt_in_callback(const struct hwt_wheel *wheel)
{
	struct hwt_shard *shard;
	bool inside = false;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		spin_lock(&shard->lock);
		inside |= hwt_in_callback_of(shard, NULL);
		spin_unlock(&shard->lock);
	}
	return inside;
}

void hwt_runner_enter(struct hwt_shard *shard, struct hwt_runner *runner)
	__acquires(&shard->lock)
{
	spin_lock(&shard->lock);
	runner->stamp = 0;
	list_add_tail(&runner->entry, &shard->runners);
}

/* Release the lock at the end of a call. From then on, the shard may be freed. */
static void hwt_unlock_last(struct hwt_shard *shard)
	__releases(&shard->lock)
{
	/*
	 * Barrier leave.rcu, pairs with destroy.grace in hwt_wheel_dispose(): the lock's memory
	 * stays until the unlock has returned.
	 */
	rcu_read_lock();
	hwt_wake(shard, shard);
	spin_unlock(&shard->lock);
	rcu_read_unlock();
}

void hwt_runner_leave(struct hwt_shard *shard, struct hwt_runner *runner)
	__releases(&shard->lock)
{
	list_del(&runner->entry);
	hwt_unlock_last(shard);
}

/* Keep a wheel from being freed during a call that runs no callback. Takes the shard's lock. */
static void hwt_shard_enter(struct hwt_shard *shard)
	__acquires(&shard->lock)
{
	spin_lock(&shard->lock);
	shard->callers++;
}

static void hwt_shard_leave(struct hwt_shard *shard)
	__releases(&shard->lock)
{
	shard->callers--;
	hwt_unlock_last(shard);
}

/* Keep a wheel from being freed until hwt_wheel_leave(). */
void hwt_wheel_enter(struct hwt_wheel *wheel)
{
	hwt_shard_enter(wheel->first_shard);
	spin_unlock(&wheel->first_shard->lock);
}

void hwt_wheel_leave(struct hwt_wheel *wheel)
{
	spin_lock(&wheel->first_shard->lock);
	hwt_shard_leave(wheel->first_shard);
}

/* -- Waiting and waking -------------------------------------------------- */

/* The part of hwt_wake() for a shard that has waiters. */
void __hwt_wake(struct hwt_shard *shard, void *var)
	__must_hold(&shard->lock)
{
	/* No barrier: waiters test their condition, and queue up, under the lock. */
	wake_up_var(var);
}

/*
 * Wait for a hwt_wake() of @var, at most until @until (NULL: for ever). If
 * @state is TASK_INTERRUPTIBLE, a signal ends the wait too. Drops the lock, so the caller tests its
 * condition again.
 */
static void hwt_wait_until(struct hwt_shard *shard, void *var, unsigned int state, ktime_t *until)
	__must_hold(&shard->lock)
{
	wait_queue_head_t *queue = __var_waitqueue(var);
	struct wait_bit_queue_entry wait;

	init_wait_var_entry(&wait, var, 0);
	/*
	 * Barrier wait.prepare, unpaired: Not needed: the lock, under which the condition changes,
	 * orders the caller's look at it before the change and the wake-up.
	 */
	prepare_to_wait(queue, &wait.wq_entry, state);
	shard->waiters++;
	spin_unlock(&shard->lock);
	schedule_hrtimeout(until, HRTIMER_MODE_ABS);
	spin_lock(&shard->lock);
	shard->waiters--;
	finish_wait(queue, &wait.wq_entry);
}

static void hwt_wait_for(struct hwt_shard *shard, void *var)
	__must_hold(&shard->lock)
{
	hwt_wait_until(shard, var, TASK_UNINTERRUPTIBLE, NULL);
}

/* Wait until no runner is in a call with a number up to @call; see struct hwt_runner. */
void hwt_wait_callbacks(struct hwt_shard *shard, u64 call)
	__must_hold(&shard->lock)
{
	struct hwt_runner *runner;

again:
	list_for_each_entry(runner, &shard->runners, entry) {
		if (runner->current_timeout && runner->call <= call) {
			hwt_wait_for(shard, runner);
			goto again;
		}
	}
}

/* Wait until the calls on a shard that is stopped and no longer used have returned. */
void hwt_wait_unused(struct hwt_shard *shard)
{
	spin_lock(&shard->lock);
	/* The engine stays in the list. */
	while (shard->callers || !list_is_singular(&shard->runners))
		hwt_wait_for(shard, shard);
	spin_unlock(&shard->lock);
}

/* -- One timeout --------------------------------------------------------- */

/*
 * Cancel a timeout, and end its hold, unless a callback is executing or another CPU has yet to push
 * the timeout. Return: whether the timeout was pending.
 */
static bool hwt_sync_try(struct hwt_shard *shard, struct hwt_runner *runner,
			 struct hwt_timeout *timeout, u64 set)
	__must_hold(&shard->lock)
{
	bool claimed;
	u64 was;

	claimed = hwt_cancel_claim(timeout, set, &was);
	if (was & HWT_F_PENDING)
		hwt_cancel_account(shard, timeout, was);
	if (!claimed && (was & HWT_F_SUBMITTED) && !timeout->owed)
		hwt_collect_until(shard, READ_ONCE(timeout->cpu), timeout);
	if (claimed || timeout->owed)
		hwt_end_hold(shard, runner, timeout);
	return was & HWT_F_PENDING;
}

/* Return true if the timeout is idle and its release has returned. If not, wait a little first. */
static bool hwt_sync_done(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	u64 state = hwt_timeout_state(timeout);

	if (hwt_callback_executing(shard, timeout)) {
		hwt_wait_for(shard, timeout);
		return false;
	}
	if (!(state & HWT_F_HELD))
		return true;
	/* Another CPU has set SUBMITTED and not pushed yet, or has scheduled the timeout again. */
	spin_unlock(&shard->lock);
	if ((state & HWT_F_HELD) == HWT_F_SUBMITTED)
		usleep_range(10, 50);
	spin_lock(&shard->lock);
	return false;
}

/* hwt_cancel_sync() without its warning; with HWT_F_SHUTDOWN for @set, hwt_shutdown_sync(). */
int hwt_sync(struct hwt_timeout *timeout, u64 set)
{
	struct hwt_shard *shard = timeout->shard;
	struct hwt_runner runner = { .task = current };
	u64 was = hwt_timeout_state(timeout);
	bool pending = false;

	might_sleep();
	if (!hwt_debug_used(timeout))
		return false;
	if (!shard) {
		hwt_cancel_claim(timeout, set, &was);
		return false;
	}
	hwt_lockdep_sync(timeout);
	if (!(was & HWT_F_HELD) && !(set & ~was) && !timeout->ops->release) {
		/*
		 * Barrier try.acquire, pairs with state.finish in hwt_finish_change(): the caller
		 * sees what the callback has written.
		 */
		smp_acquire__after_ctrl_dep();
		return false;
	}
	hwt_runner_enter(shard, &runner);
	if (hwt_callback_executing(shard, timeout) && hwt_in_callback_of(shard, timeout)) {
		pending = hwt_sync_try(shard, &runner, timeout, set);
		hwt_runner_leave(shard, &runner);
		return -EDEADLK;
	}
	do {
		/* Cancel in every round, since the timeout may have been scheduled again. */
		pending |= hwt_sync_try(shard, &runner, timeout, set);
	} while (!hwt_sync_done(shard, timeout));
	hwt_runner_leave(shard, &runner);
	return pending;
}

/* hwt_sync() with a warning: a caller that takes -EDEADLK for true may free a held timeout. */
static int hwt_sync_checked(struct hwt_timeout *timeout, u64 set)
{
	int ret = hwt_sync(timeout, set);

	if (unlikely(ret == -EDEADLK))
		pr_warn_once("callback %ps waits for its own timeout in a _sync call: the timeout is cancelled, and stays held until the callback returns\n",
			     hwt_client_fn(timeout, timeout->ops->expire));
	return ret;
}

/**
 * hwt_cancel_sync() - cancel, and wait until the timeout is no longer held
 * @timeout: the timeout; its memory must stay until this returns, so with reference
 *           counts the caller has a reference of its own
 *
 * Process context, may sleep. Does not wait for other timeouts' callbacks. The timeout's
 * ->cancelled and ->release may run in the caller's context; on return, no callback or
 * release of the timeout is executing. If other contexts keep scheduling the timeout, this goes on
 * cancelling: only hwt_shutdown_sync() is sure to end. Works on a stopped wheel, and from a
 * callback of another timeout of the wheel. Two callbacks must not wait for each other: a _sync or
 * stop call may run a callback while the engine runs another. If a ->release has freed its timeout,
 * and another timeout is at that address by now, a _sync of the new timeout does not wait for that
 * release, unless both have the same ->release function.
 *
 * Return: 1 if the timeout was pending, 0 if not. From one of its own callbacks: -EDEADLK, with one
 * warning; the timeout is cancelled then, but still held.
 */
int hwt_cancel_sync(struct hwt_timeout *timeout)
{
	return hwt_sync_checked(timeout, 0);
}
EXPORT_SYMBOL_GPL(hwt_cancel_sync);

/**
 * hwt_shutdown_sync() - cancel for good, and wait until the timeout is no longer held
 * @timeout: the timeout; as for hwt_cancel_sync()
 *
 * Process context, may sleep. As hwt_cancel_sync(), but each later schedule fails with
 * -ESHUTDOWN until hwt_reopen(), or until the timeout is initialised again.
 *
 * Return: as hwt_cancel_sync().
 */
int hwt_shutdown_sync(struct hwt_timeout *timeout)
{
	return hwt_sync_checked(timeout, HWT_F_SHUTDOWN);
}
EXPORT_SYMBOL_GPL(hwt_shutdown_sync);

/* Has a timeout run or been cancelled, and have ->expire and ->cancelled returned? */
static bool hwt_wait_over(const struct hwt_timeout *timeout, u64 state)
{
	if (state & (HWT_F_PENDING | HWT_F_RUNNING))
		return false;
	/* A cancelled timeout that is SUBMITTED has its ->cancelled still to come. */
	return !(state & HWT_F_SUBMITTED) || !(state & HWT_F_CANCELLED) ||
	       !timeout->ops->cancelled;
}

/* Is the caller in a callback that must return before any other timeout of the shard can fire? */
static bool hwt_wait_deadlocks(const struct hwt_shard *shard)
{
	return current == shard->thread ||
	       (shard->nr_workers == 1 && current == shard->worker->runner.task);
}

/**
 * hwt_wait() - wait until a timeout has run or been cancelled
 * @timeout: the timeout; its memory must stay until this returns
 * @max_ns:  maximum time to wait, ns; U64_MAX: no limit
 *
 * Process context, sleeps. Waits until the timeout is not pending, and its ->expire or ->cancelled
 * has returned. A timeout that is scheduled again meanwhile is waited for again, a periodic one
 * until it is cancelled. A plain cancel ends the wait only when the engine collects it: within
 * reclaim_ms, unless the engine is in a long callback, or frozen. On a wheel without workers, the
 * wait lasts as long as other callbacks of the shard delay this one, so the caller holds no lock
 * that any of them takes.
 *
 * Return: 1 if the timeout last fired; 0 if it was cancelled or handed back (or never scheduled);
 * -ETIME if @max_ns have passed; -ERESTARTSYS if a signal came, or, in a callback, a stop of
 * the wheel; -EDEADLK from one of its own callbacks, and from any callback on the only thread that
 * could run it.
 */
int hwt_wait(struct hwt_timeout *timeout, u64 max_ns)
{
	u64 now = ktime_get_ns(), end = hwt_add_ns(now, max_ns), look_ns, state = 0;
	struct hwt_shard *shard = timeout->shard;
	bool inside, stopping;
	ktime_t until;
	int ret = 0;

	might_sleep();
	if (!shard || !hwt_debug_used(timeout))
		return 0;
	hwt_lockdep_sync(timeout);
	inside = hwt_in_callback(shard->wheel);
	/* Several workers run other callbacks while this one's is delayed. */
	if (!inside && shard->nr_workers <= 1)
		hwt_lockdep_shard(shard);
	hwt_shard_enter(shard);
	if (hwt_in_callback_of(shard, timeout))
		ret = -EDEADLK;
	while (!ret) {
		state = hwt_timeout_state(timeout);
		if (hwt_wait_over(timeout, state))
			break;
		now = ktime_get_ns();
		/* Look every reclaim_ms, since the engine may not come to collect a cancel. */
		look_ns = inside || timeout->owed ? hwt_reclaim_ms * (u64)NSEC_PER_MSEC : U64_MAX;
		until = ns_to_ktime(min_t(u64, min(end, hwt_add_ns(now, look_ns)), KTIME_MAX));
		/* A stop ends threads one by one: a callback on another shard may wait for this. */
		stopping = inside && shard->stopping;
		if (hwt_wait_deadlocks(shard))
			ret = -EDEADLK;
		else if (now >= end)
			ret = -ETIME;
		else if (stopping || signal_pending(current))
			ret = -ERESTARTSYS;
		else
			hwt_wait_until(shard, &timeout->link, TASK_INTERRUPTIBLE,
				       &until);
	}
	hwt_shard_leave(shard);
	return ret ?: !!(state & HWT_F_EXPIRED);
}
EXPORT_SYMBOL_GPL(hwt_wait);

/* -- Flush and barrier ----------------------------------------------------- */

/**
 * struct hwt_mark - a mark behind the timeouts that a flush or a barrier waits for
 * @timeout: in the due list or on shard->owed, like a timeout, but has no callbacks
 * @reached: a runner has taken the mark off its list
 * @call:    number of the last call that had begun by then
 *
 * Protected by the shard's lock.
 */
struct hwt_mark {
	struct hwt_timeout	timeout;
	bool			reached;
	u64			call;
};

const struct hwt_timeout_ops hwt_mark_ops = { };

/* If a timeout that was just removed from its list is a mark, wake its waiter, and return true. */
bool hwt_mark_reached(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	struct hwt_mark *mark = container_of(timeout, struct hwt_mark, timeout);

	if (likely(!hwt_is_mark(timeout)))
		return false;
	mark->reached = true;
	mark->call = shard->calls;
	hwt_wake(shard, timeout);
	return true;
}

/* Wait until a mark in a list is reached, and then for callbacks that had begun by then. */
static void hwt_mark_wait(struct hwt_shard *shard, struct hwt_mark *mark)
	__must_hold(&shard->lock)
{
	if (shard->nr_workers)
		hwt_worker_wake(shard);
	else
		hwt_engine_kick(shard);
	while (!mark->reached)
		hwt_wait_for(shard, &mark->timeout);
	hwt_wait_callbacks(shard, mark->call);
}

/* Collect earlier submissions, and wait until the entries of shard->owed were processed. */
static void hwt_owed_wait(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	struct hwt_mark mark = { .timeout.ops = &hwt_mark_ops, .timeout.shard = shard };

	hwt_collect_submitted(shard);
	/* Once a stop has ended, no runner would reach the mark. A stop in progress still does. */
	if (shard->stopped)
		return;
	list_add_tail(&mark.timeout.link, &shard->owed);
	mark.timeout.owed = true;
	hwt_mark_wait(shard, &mark);
}

/* The part of hwt_wheel_barrier() for a shard. */
void hwt_shard_barrier(struct hwt_shard *shard)
{
	hwt_lockdep_shard(shard);
	spin_lock(&shard->lock);
	/* A stopped shard has no holds left. */
	if (!shard->stopped)
		hwt_owed_wait(shard);
	spin_unlock(&shard->lock);
}

/* Wait until a shard's due timeouts have fired. Return: 0; -ESHUTDOWN if it is stopped. */
int hwt_shard_flush(struct hwt_shard *shard)
{
	struct hwt_mark mark = { .timeout.ops = &hwt_mark_ops, .timeout.shard = shard };
	int ret = 0;

	hwt_lockdep_shard(shard);
	spin_lock(&shard->lock);
	/* Wait until all timeouts scheduled before are linked, even RUNNING and ended ones. */
	if (!shard->stopping)
		hwt_owed_wait(shard);
	while (!shard->stopping) {
		if (hwt_clock_moved(shard)) {
			/* Let the engine handle the set of the clock first. It wakes this task. */
			hwt_engine_kick(shard);
			hwt_wait_for(shard, shard);
		} else if (hwt_engine_advance(shard, hwt_engine_tick(shard))) {
			break;
		}
	}
	if (!shard->stopping) {
		atomic64_set(&mark.timeout.state, HWT_F_ARMED);
		hwt_buckets_insert(&shard->buckets, &mark.timeout);
		hwt_mark_wait(shard, &mark);
	}
	/* A stop may have handed back due timeouts. */
	if (shard->stopping)
		ret = -ESHUTDOWN;
	spin_unlock(&shard->lock);
	return ret;
}
