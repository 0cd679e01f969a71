// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting: hwt_cancel_sync(), hwt_shutdown_sync(), hwt_wait(), hwt_wheel_flush(),
 * hwt_wheel_barrier(), hwt_wheel_stop()
 *
 * The _sync functions do not wait for the engine: they take the wheel's lock, end the timeout's
 * hold themselves, and wait only while a callback or release of that timeout is executing. If the
 * timeout is on a submission list, they first collect that list. A stop does the same for all
 * timeouts, and then waits for the wheel's threads to end. hwt_wait(), hwt_wheel_flush() and
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
#include "core/registry.h"
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
static bool hwt_callback_executing(struct hwt_wheel *wheel, const struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	struct hwt_runner *runner;

	/* Only a release executes after RUNNING was cleared: without one, the bit tells. */
	if (!timeout->ops->release)
		return hwt_running(timeout);
	list_for_each_entry(runner, &wheel->runners, entry)
		if (hwt_runner_executes(runner, timeout))
			return true;
	return false;
}

/*
 * Is the caller inside a callback or release of this timeout? With NULL: of any timeout?
 * Several runners may be executing for one timeout: a release runs after its hold has ended, and
 * another runner may then be in a callback of the next hold.
 */
static bool hwt_in_callback_of(struct hwt_wheel *wheel, const struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	struct hwt_runner *runner;

	list_for_each_entry(runner, &wheel->runners, entry)
		if (runner->task == current && runner->current_timeout &&
		    (!timeout || hwt_runner_executes(runner, timeout)))
			return true;
	return false;
}

/* Is the caller inside a callback of this wheel? Takes the locks of its shards. */
bool hwt_in_callback(struct hwt_wheel *wheel)
{
	struct hwt_wheel *shard;
	bool inside = false;

	for (shard = wheel; shard; shard = shard->next_shard) {
		spin_lock(&shard->lock);
		inside |= hwt_in_callback_of(shard, NULL);
		spin_unlock(&shard->lock);
	}
	return inside;
}

static void hwt_runner_enter(struct hwt_wheel *wheel, struct hwt_runner *runner)
	__acquires(&wheel->lock)
{
	spin_lock(&wheel->lock);
	runner->stamp = 0;
	list_add_tail(&runner->entry, &wheel->runners);
}

/* Release the lock at the end of a call. From then on, the wheel may be freed. */
static void hwt_unlock_last(struct hwt_wheel *wheel)
	__releases(&wheel->lock)
{
	/* Barrier leave.rcu, pairs with destroy.grace in hwt_wheel_dispose(): the lock's memory
	 * stays until the unlock has returned.
	 */
	rcu_read_lock();
	hwt_wake(wheel, wheel);
	spin_unlock(&wheel->lock);
	rcu_read_unlock();
}

static void hwt_runner_leave(struct hwt_wheel *wheel, struct hwt_runner *runner)
	__releases(&wheel->lock)
{
	list_del(&runner->entry);
	hwt_unlock_last(wheel);
}

/* Keep a wheel, with all of its shards, from being freed during a call that runs no callback. */
static void hwt_wheel_enter(struct hwt_wheel *wheel)
	__acquires(&wheel->lock)
{
	spin_lock(&wheel->lock);
	wheel->callers++;
}

static void hwt_wheel_leave(struct hwt_wheel *wheel)
	__releases(&wheel->lock)
{
	wheel->callers--;
	hwt_unlock_last(wheel);
}

/* -- Waiting and waking -------------------------------------------------- */

/* The part of hwt_wake() for a shard that has waiters. */
void __hwt_wake(struct hwt_wheel *wheel, void *var)
	__must_hold(&wheel->lock)
{
	/* No barrier: waiters test their condition, and queue up, under the lock. */
	wake_up_var(var);
}

/*
 * Wait for a hwt_wake() of @var, at most until @until (NULL: for ever). If
 * @state is TASK_INTERRUPTIBLE, a signal ends the wait too. Drops the lock, so the caller tests its
 * condition again.
 */
static void hwt_wait_until(struct hwt_wheel *wheel, void *var, unsigned int state, ktime_t *until)
	__must_hold(&wheel->lock)
{
	wait_queue_head_t *queue = __var_waitqueue(var);
	struct wait_bit_queue_entry wait;

	init_wait_var_entry(&wait, var, 0);
	/* Barrier wait.prepare, not needed, unpaired: the lock, under which the condition changes,
	 * orders the caller's look at it before the change and the wake-up.
	 */
	prepare_to_wait(queue, &wait.wq_entry, state);
	wheel->waiters++;
	spin_unlock(&wheel->lock);
	schedule_hrtimeout(until, HRTIMER_MODE_ABS);
	spin_lock(&wheel->lock);
	wheel->waiters--;
	finish_wait(queue, &wait.wq_entry);
}

static void hwt_wait_for(struct hwt_wheel *wheel, void *var)
	__must_hold(&wheel->lock)
{
	hwt_wait_until(wheel, var, TASK_UNINTERRUPTIBLE, NULL);
}

/* Wait until no runner is in a call with a number up to @call; see struct hwt_runner. */
static void hwt_wait_callbacks(struct hwt_wheel *wheel, u64 call)
	__must_hold(&wheel->lock)
{
	struct hwt_runner *runner;

again:
	list_for_each_entry(runner, &wheel->runners, entry) {
		if (runner->current_timeout && runner->call <= call) {
			hwt_wait_for(wheel, runner);
			goto again;
		}
	}
}

/* Wait until the calls on a wheel that is stopped and no longer used have returned. */
void hwt_wait_callers(struct hwt_wheel *wheel)
{
	spin_lock(&wheel->lock);
	/* The engine stays in the list. */
	while (wheel->callers || !list_is_singular(&wheel->runners))
		hwt_wait_for(wheel, wheel);
	spin_unlock(&wheel->lock);
}

/* -- One timeout --------------------------------------------------------- */

/*
 * Cancel a timeout, and end its hold, unless a callback is executing or another CPU has yet to push
 * the timeout. Return: whether the timeout was pending.
 */
static bool hwt_sync_cancel(struct hwt_wheel *wheel, struct hwt_runner *runner,
			    struct hwt_timeout *timeout, u64 set)
	__must_hold(&wheel->lock)
{
	bool claimed;
	u64 was;

	claimed = hwt_cancel_claim(timeout, set, &was);
	if (was & HWT_F_PENDING)
		hwt_cancel_account(wheel, timeout, was);
	if (!claimed && (was & HWT_F_SUBMITTED) && !timeout->ended)
		hwt_collect_until(wheel, READ_ONCE(timeout->cpu), timeout);
	if (claimed || timeout->ended)
		hwt_end_hold(wheel, runner, timeout);
	return was & HWT_F_PENDING;
}

/* Return true if the timeout is idle and its release has returned. If not, wait a little first. */
static bool hwt_sync_done(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	u64 state = hwt_timeout_state(timeout);

	if (hwt_callback_executing(wheel, timeout)) {
		hwt_wait_for(wheel, timeout);
		return false;
	}
	if (!(state & HWT_F_HELD))
		return true;
	/* Another CPU has set SUBMITTED and not pushed yet, or has scheduled the timeout again. */
	spin_unlock(&wheel->lock);
	if ((state & HWT_F_HELD) == HWT_F_SUBMITTED)
		usleep_range(10, 50);
	spin_lock(&wheel->lock);
	return false;
}

/* hwt_cancel_sync() without its warning; with HWT_F_SHUTDOWN for @set, hwt_shutdown_sync(). */
int hwt_sync(struct hwt_timeout *timeout, u64 set)
{
	struct hwt_wheel *wheel = timeout->wheel;
	struct hwt_runner runner = { .task = current };
	u64 was = hwt_timeout_state(timeout);
	bool pending = false;

	might_sleep();
	if (!hwt_debug_used(timeout))
		return false;
	if (!wheel) {
		hwt_cancel_claim(timeout, set, &was);
		return false;
	}
	hwt_lockdep_sync(timeout);
	if (!(was & HWT_F_HELD) && !(set & ~was) && !timeout->ops->release) {
		/* Barrier try.acquire, pairs with state.finish in hwt_finish_change(): the caller
		 * sees what the callback has written.
		 */
		smp_acquire__after_ctrl_dep();
		return false;
	}
	hwt_runner_enter(wheel, &runner);
	if (hwt_callback_executing(wheel, timeout) && hwt_in_callback_of(wheel, timeout)) {
		pending = hwt_sync_cancel(wheel, &runner, timeout, set);
		hwt_runner_leave(wheel, &runner);
		return -EDEADLK;
	}
	do {
		/* Cancel in every round, since the timeout may have been scheduled again. */
		pending |= hwt_sync_cancel(wheel, &runner, timeout, set);
	} while (!hwt_sync_done(wheel, timeout));
	hwt_runner_leave(wheel, &runner);
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
static bool hwt_wait_deadlocks(const struct hwt_wheel *wheel)
{
	return current == wheel->thread ||
	       (wheel->workers == 1 && current == wheel->worker->runner.task);
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
	struct hwt_wheel *wheel = timeout->wheel;
	bool inside, stopping;
	ktime_t until;
	int ret = 0;

	might_sleep();
	if (!wheel || !hwt_debug_used(timeout))
		return 0;
	hwt_lockdep_sync(timeout);
	inside = hwt_in_callback(wheel->first_shard);
	/* Several workers run other callbacks while this one's is delayed. */
	if (!inside && wheel->workers <= 1)
		hwt_lockdep_wheel(wheel);
	hwt_wheel_enter(wheel);
	if (hwt_in_callback_of(wheel, timeout))
		ret = -EDEADLK;
	while (!ret) {
		state = hwt_timeout_state(timeout);
		if (hwt_wait_over(timeout, state))
			break;
		now = ktime_get_ns();
		/* Look every reclaim_ms, since the engine may not come to collect a cancel. */
		look_ns = inside || timeout->ended ? hwt_reclaim_ms * (u64)NSEC_PER_MSEC : U64_MAX;
		until = ns_to_ktime(min_t(u64, min(end, hwt_add_ns(now, look_ns)), KTIME_MAX));
		/* A stop ends threads one by one: a callback on another shard may wait for this. */
		stopping = inside && wheel->stopping;
		if (hwt_wait_deadlocks(wheel))
			ret = -EDEADLK;
		else if (now >= end)
			ret = -ETIME;
		else if (stopping || signal_pending(current))
			ret = -ERESTARTSYS;
		else
			hwt_wait_until(wheel, &timeout->link, TASK_INTERRUPTIBLE,
				       &until);
	}
	hwt_wheel_leave(wheel);
	return ret ?: !!(state & HWT_F_EXPIRED);
}
EXPORT_SYMBOL_GPL(hwt_wait);

/* -- Flush and barrier ----------------------------------------------------- */

/**
 * struct hwt_mark - a mark behind the timeouts that a flush or a barrier waits for
 * @timeout: in the due list or on wheel->ended, like a timeout, but has no callbacks
 * @reached: a runner has taken the mark off its list
 * @call:    number of the last call that had begun by then
 *
 * Protected by the wheel's lock.
 */
struct hwt_mark {
	struct hwt_timeout	timeout;
	bool			reached;
	u64			call;
};

const struct hwt_timeout_ops hwt_mark_ops = { };

/* If a timeout that was just removed from its list is a mark, wake its waiter, and return true. */
bool hwt_mark_reached(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	struct hwt_mark *mark = container_of(timeout, struct hwt_mark, timeout);

	if (likely(!hwt_is_mark(timeout)))
		return false;
	mark->reached = true;
	mark->call = wheel->calls;
	hwt_wake(wheel, timeout);
	return true;
}

/* Wait until a mark in a list is reached, and then for callbacks that had begun by then. */
static void hwt_mark_wait(struct hwt_wheel *wheel, struct hwt_mark *mark)
	__must_hold(&wheel->lock)
{
	if (wheel->workers)
		hwt_worker_wake(wheel);
	else
		hwt_wheel_kick(wheel);
	while (!mark->reached)
		hwt_wait_for(wheel, &mark->timeout);
	hwt_wait_callbacks(wheel, mark->call);
}

/* Collect earlier submissions, and wait until the entries of wheel->ended were processed. */
static void hwt_ended_wait(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	struct hwt_mark mark = { .timeout.ops = &hwt_mark_ops, .timeout.wheel = wheel };

	hwt_collect_submitted(wheel);
	/* Once a stop has ended, no runner would reach the mark. A stop in progress still does. */
	if (wheel->stopped)
		return;
	list_add_tail(&mark.timeout.link, &wheel->ended);
	mark.timeout.ended = true;
	hwt_mark_wait(wheel, &mark);
}

/**
 * hwt_wheel_barrier() - wait for the callbacks of all timeouts that have fired or were cancelled
 * @wheel: the wheel, which may be shared
 *
 * Process context, sleeps. As rcu_barrier(), for a client that is unloaded: when this returns, the
 * ->expire, ->cancelled and ->release of each timeout that had fired or been cancelled before the
 * call have returned. Does not wait for timeouts that are still pending or are scheduled again
 * meanwhile, nor for schedules and cancels in progress on other CPUs. Also waits for callbacks of
 * other clients that are executing or precede these; on a frozen wheel, until it is thawed.
 *
 * Return: 0; -EDEADLK from a callback of the wheel.
 */
int hwt_wheel_barrier(struct hwt_wheel *wheel)
{
	struct hwt_wheel *shard;

	might_sleep();
	if (hwt_in_callback(wheel))
		return -EDEADLK;
	hwt_wheel_enter(wheel);
	spin_unlock(&wheel->lock);
	for (shard = wheel; shard; shard = shard->next_shard) {
		hwt_lockdep_wheel(shard);
		spin_lock(&shard->lock);
		/* A stopped wheel has no holds left. */
		if (!shard->stopped)
			hwt_ended_wait(shard);
		spin_unlock(&shard->lock);
	}
	spin_lock(&wheel->lock);
	hwt_wheel_leave(wheel);
	return 0;
}
EXPORT_SYMBOL_GPL(hwt_wheel_barrier);

/* Flush a shard. Return: as hwt_wheel_flush(). */
static int hwt_shard_flush(struct hwt_wheel *wheel)
{
	struct hwt_mark mark = { .timeout.ops = &hwt_mark_ops, .timeout.wheel = wheel };
	int ret = 0;

	hwt_lockdep_wheel(wheel);
	spin_lock(&wheel->lock);
	/* Wait until all timeouts scheduled before are linked, even RUNNING and ended ones. */
	if (!wheel->stopping)
		hwt_ended_wait(wheel);
	while (!wheel->stopping) {
		if (hwt_clock_moved(wheel)) {
			/* Let the engine handle the set of the clock first. It wakes this task. */
			hwt_wheel_kick(wheel);
			hwt_wait_for(wheel, wheel);
		} else if (hwt_engine_advance(wheel, hwt_engine_tick(wheel))) {
			break;
		}
	}
	if (!wheel->stopping) {
		atomic64_set(&mark.timeout.state, HWT_F_ARMED);
		hwt_buckets_insert(&wheel->buckets, &mark.timeout);
		hwt_mark_wait(wheel, &mark);
	}
	/* A stop may have handed back due timeouts. */
	if (wheel->stopping)
		ret = -ESHUTDOWN;
	spin_unlock(&wheel->lock);
	return ret;
}

/**
 * hwt_wheel_flush() - wait until all due timeouts have fired
 * @wheel: the wheel
 *
 * Process context, sleeps. On return, each timeout that was scheduled before this call, for a tick
 * that had begun, and was not moved or cancelled meanwhile, has fired, and its callback has
 * returned. (A delay of 0 is rounded up to the next tick, as any delay; a deadline that has passed
 * is not.) Does not wait for timeouts that come due later. A timeout that two callers schedule at
 * the same time may be missed until both calls have returned.
 *
 * Return: 0; -EDEADLK from a callback of the wheel; -ESHUTDOWN if the wheel is
 * stopped, or was meanwhile.
 */
int hwt_wheel_flush(struct hwt_wheel *wheel)
{
	struct hwt_wheel *shard;
	int ret = 0;

	might_sleep();
	if (hwt_in_callback(wheel))
		return -EDEADLK;
	hwt_wheel_enter(wheel);
	spin_unlock(&wheel->lock);
	for (shard = wheel; shard; shard = shard->next_shard)
		ret = hwt_shard_flush(shard) ?: ret;
	spin_lock(&wheel->lock);
	hwt_wheel_leave(wheel);
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_wheel_flush);

/* -- All timeouts -------------------------------------------------------- */

/* Hand back a timeout of the due list. Return: whether it was armed. */
static bool hwt_hand_back(struct hwt_wheel *wheel, struct hwt_runner *runner,
			  struct hwt_timeout *timeout, hwt_handback_fn fn, void *arg)
	__must_hold(&wheel->lock)
{
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;
	struct hwt_call call;

	hwt_buckets_remove(&wheel->buckets, timeout);
	timeout->past = false;
	if (hwt_mark_reached(wheel, timeout))
		return false;
	/* Barrier state.fire, pairs with state.arm and earlier.mb in hwt_arm() and earlier.mb in
	 * __hwt_schedule(): @fn sees what the client wrote before it scheduled.
	 */
	do {
		change = hwt_state_hand_back(old);
		if (change.action == HWT_NOTHING)
			return false;	/* cancelled: its hold ends when it is collected */
	} while (!hwt_state_change(timeout, &old, change.state));

	hwt_count(&wheel->retired, 1);
	hwt_count(&wheel->handed_back, 1);
	hwt_pending_put(wheel);
	trace_hwt_cancel(wheel, timeout, hwt_state_tick(old));
	runner->call = ++wheel->calls;
	if (fn) {
		hwt_call_begin(wheel, runner, timeout, fn, &call);
		fn(timeout, arg);
		hwt_call_end(wheel, runner, &call);
	}
	hwt_finish(wheel, runner, timeout, !fn);
	return true;
}

/* Collect all submissions, end holds, and hand back armed timeouts. Return: how many of these. */
static long hwt_drain(struct hwt_wheel *wheel, struct hwt_runner *runner,
		      hwt_handback_fn fn, void *arg)
	__must_hold(&wheel->lock)
{
	struct list_head *due = &wheel->buckets.due;
	struct hwt_timeout *timeout;
	unsigned int step = 0;
	bool flushed;
	long n = 0;

	for (;;) {
		/* No limit, since submissions to a closed wheel come to an end. */
		hwt_collect(wheel, UINT_MAX);
		while (!list_empty(&wheel->ended)) {
			hwt_end_hold(wheel, runner,
				     list_first_entry(&wheel->ended, struct hwt_timeout, link));
			if (++step % HWT_STEP == 0)
				hwt_runner_break(wheel, runner);
		}
		flushed = hwt_buckets_flush(&wheel->buckets, HWT_STEP);
		if (flushed && list_empty(due))
			return n;
		while (!list_empty(due)) {
			timeout = list_first_entry(due, struct hwt_timeout, link);
			n += hwt_hand_back(wheel, runner, timeout, fn, arg);
			if (++step % HWT_STEP == 0)
				hwt_runner_break(wheel, runner);
		}
		hwt_runner_break(wheel, runner);
	}
}

/* Drain all shards. Return: the number of timeouts handed back. */
static long hwt_stop_drain(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	struct hwt_runner runner = { .task = current };
	struct hwt_wheel *shard;
	long n = 0;

	for (shard = wheel; shard; shard = shard->next_shard) {
		hwt_runner_enter(shard, &runner);
		n += hwt_drain(shard, &runner, fn, arg);
		hwt_runner_leave(shard, &runner);
	}
	return n;
}

/*
 * Make the threads of all shards serve no more timeouts, and then make schedules fail. A schedule
 * that succeeds in between is handed back. So once a schedule has failed, no ->expire begins.
 */
static void hwt_stop_begin(struct hwt_wheel *wheel)
{
	struct hwt_wheel *shard;

	for (shard = wheel; shard; shard = shard->next_shard) {
		spin_lock(&shard->lock);
		shard->stopping = true;
		spin_unlock(&shard->lock);
	}
	for (shard = wheel; shard; shard = shard->next_shard) {
		/* The lock orders this after the writes above. */
		spin_lock(&shard->lock);
		WRITE_ONCE(shard->closed, true);
		spin_unlock(&shard->lock);
	}
}

/* Wait for callbacks, and end the threads of all shards. */
void hwt_stop_threads(struct hwt_wheel *wheel)
{
	struct hwt_wheel *shard;

	for (shard = wheel; shard; shard = shard->next_shard) {
		spin_lock(&shard->lock);
		hwt_wait_callbacks(shard, U64_MAX);
		spin_unlock(&shard->lock);
		hwt_threads_stop(shard);
	}
}

static void hwt_stop_end(struct hwt_wheel *wheel)
{
	struct hwt_runner runner = { .task = current };
	struct hwt_wheel *shard;

	for (shard = wheel; shard; shard = shard->next_shard) {
		spin_lock(&shard->lock);
		hwt_wait_callbacks(shard, U64_MAX);
		/* Only marks are left: wake the barriers that came after the last drain. */
		while (!list_empty(&shard->ended))
			hwt_end_hold(shard, &runner, list_first_entry(&shard->ended,
								      struct hwt_timeout, link));
		WRITE_ONCE(shard->stopped, true);
		spin_unlock(&shard->lock);
	}
}

/*
 * hwt_wheel_stop() for shared wheels too. The order matters. Each step is taken on all shards
 * before the next one:
 *
 *   1. Close the wheel, and wait for a grace period. From then on, only the end of a periodic
 *      timeout's callback still arms a timeout.
 *   2. Hand back all armed timeouts. A concurrent cancel may have claimed a timeout and not
 *      pushed it yet: this timeout is unlinked, and collected later.
 *   3. Wait for callbacks and threads, and hand back the timeouts armed since. Now no
 *      timeout is armed, so no cancel can claim one any more.
 *   4. Wait for a second grace period, after which all claimed timeouts are pushed. Collect
 *      them.
 *   5. Wait for callbacks again: a concurrent _sync may be ending a hold itself.
 */
long hwt_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	struct hwt_wheel *shard;
	long n = 0;

	might_sleep();
	if (hwt_in_callback(wheel))
		return -EDEADLK;
	hwt_wheel_enter(wheel);
	spin_unlock(&wheel->lock);
	for (shard = wheel; shard; shard = shard->next_shard)
		hwt_lockdep_wheel(shard);
	mutex_lock(&wheel->stop_lock);
	/* Only a stop sets @stopped, under this mutex. */
	if (READ_ONCE(wheel->stopped))
		goto out;

	hwt_stop_begin(wheel);
	/* Barrier stop.grace1, pairs with arm.rcu in hwt_arm_open(): a caller that has not seen the
	 * wheel closed has pushed, and the drain finds the entry.
	 */
	synchronize_rcu();
	n += hwt_stop_drain(wheel, fn, arg);
	hwt_stop_threads(wheel);
	n += hwt_stop_drain(wheel, fn, arg);
	/* Barrier stop.grace2, pairs with cancel.rcu in __hwt_cancel(): a timeout that was claimed
	 * is pushed, and the drain finds it.
	 */
	synchronize_rcu();
	n += hwt_stop_drain(wheel, fn, arg);
	hwt_stop_end(wheel);
	trace_hwt_wheel_stop(wheel, n);
out:
	mutex_unlock(&wheel->stop_lock);
	spin_lock(&wheel->lock);
	hwt_wheel_leave(wheel);
	return n;
}

/**
 * hwt_wheel_stop() - stop a wheel for good, and get back its pending timeouts
 * @wheel: the wheel, not a shared one
 * @fn:    called for each timeout that was pending, exactly once, in no order; NULL:
 *         their ->cancelled is called instead
 * @arg:   for @fn
 *
 * Process context, may sleep: waits for callbacks that are executing and for two RCU
 * grace periods. From one instant of the call on, schedules fail with -ESHUTDOWN, and no ->expire
 * begins. On return, no callback is executing or will be, and no timeout is held. A second stop
 * waits for the first, and hands back none.
 *
 * Return: the number of timeouts handed back; -EDEADLK from a callback of the wheel, -EBUSY for
 * a shared wheel: nothing changed.
 */
long hwt_wheel_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	if (wheel->is_shared)
		return -EBUSY;
	return hwt_stop(wheel, fn, arg);
}
EXPORT_SYMBOL_GPL(hwt_wheel_stop);
