// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting: hwt_cancel_sync(), hwt_shutdown_sync(), hwt_wait(), hwt_wheel_flush(),
 * hwt_wheel_barrier(), hwt_wheel_stop()
 *
 * The _sync functions do not wait for the engine: they take the wheel's lock, end the timeout's
 * hold themselves, and wait only while a callback or release of that one timeout is executing. For
 * a timeout that has just been submitted they collect what its CPU has submitted before it. A stop
 * does the same for all timeouts, and then waits for the wheel's threads to end. hwt_wait(),
 * hwt_wheel_flush() and hwt_wheel_barrier() wait for callbacks that the engine, or a worker, has
 * yet to begin.
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
 * Is this what it is executing? Once a release has begun, the memory is its owner's, and may hold
 * another timeout.
 */
static bool hwt_runner_at(const struct hwt_runner *runner, const struct hwt_timeout *timeout)
{
	return runner->current_timeout == timeout &&
	       (!runner->releasing || runner->fn == timeout->ops->release);
}

/* Is a callback or release of the timeout executing? */
static bool hwt_timeout_busy(struct hwt_wheel *wheel, const struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	struct hwt_runner *runner;

	/* Only a release goes on when RUNNING has been cleared. */
	if (!timeout->ops->release)
		return hwt_running(timeout);
	list_for_each_entry(runner, &wheel->runners, entry)
		if (hwt_runner_at(runner, timeout))
			return true;
	return false;
}

/*
 * Is the caller inside a callback or release of this timeout, or, if NULL, of any (or the engine
 * itself, in the wheel's @poll)? The hold that a release belongs to is over: meanwhile another
 * runner may be executing something for the next hold of the same timeout.
 */
static bool hwt_runner_self(struct hwt_wheel *wheel,
			    const struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	struct hwt_runner *runner;

	if (!timeout && current == wheel->thread)
		return true;
	list_for_each_entry(runner, &wheel->runners, entry)
		if (runner->task == current && runner->current_timeout &&
		    (!timeout || hwt_runner_at(runner, timeout)))
			return true;
	return false;
}

/**
 * hwt_in_callback() - is the caller inside a callback of this wheel, or its engine?
 * @wheel: the wheel
 *
 * Process context. Takes the wheel's lock.
 */
bool hwt_in_callback(struct hwt_wheel *wheel)
{
	bool inside;

	spin_lock(&wheel->lock);
	inside = hwt_runner_self(wheel, NULL);
	spin_unlock(&wheel->lock);
	return inside;
}

static void hwt_runner_enter(struct hwt_wheel *wheel, struct hwt_runner *runner)
	__acquires(&wheel->lock)
{
	spin_lock(&wheel->lock);
	runner->stamp = 0;
	list_add_tail(&runner->entry, &wheel->runners);
}

/* The wheel may be freed as soon as its last runner has left. */
static void hwt_runner_leave(struct hwt_wheel *wheel, struct hwt_runner *runner)
	__releases(&wheel->lock)
{
	/* Barrier leave.rcu, pairs with destroy.grace in hwt_wheel_dispose(): the lock's memory
	 * stays until the unlock is through.
	 */
	rcu_read_lock();
	list_del(&runner->entry);
	hwt_wake(wheel, NULL);
	spin_unlock(&wheel->lock);
	rcu_read_unlock();
}

/* -- Waiting and waking -------------------------------------------------- */

/* hwt_wake() when there are waiters; see there. */
void __hwt_wake(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	/* No barrier: waiters look, and queue up to sleep, under the lock. */
	wake_up_var(wheel);
	/* No barrier: likewise. */
	if (timeout)
		wake_up_var(timeout);
}

/*
 * Wait until hwt_wake() for @var, a timeout or the wheel, or until it is too late; @state lets a
 * signal through. The caller looks again at what it waits for. Drops the lock.
 */
static void hwt_wait_until(struct hwt_wheel *wheel, void *var, unsigned int state, ktime_t *until)
	__must_hold(&wheel->lock)
{
	wait_queue_head_t *queue = __var_waitqueue(var);
	struct wait_bit_queue_entry wait;

	init_wait_var_entry(&wait, var, 0);
	/* Barrier wait.prepare (spare), unpaired: what is waited for changes under the lock, so
	 * that nothing is missed.
	 */
	prepare_to_wait(queue, &wait.wq_entry, state);
	wheel->waiters++;
	spin_unlock(&wheel->lock);
	/* NULL: for ever. */
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

/* Wait until no callback up to @call, and then no release, is executing on a wheel. */
static void hwt_wait_callbacks(struct hwt_wheel *wheel, u64 call)
	__must_hold(&wheel->lock)
{
	struct hwt_runner *runner;

again:
	list_for_each_entry(runner, &wheel->runners, entry) {
		if (runner->current_timeout && runner->call <= call) {
			hwt_wait_for(wheel, wheel);
			goto again;
		}
	}
}

/**
 * hwt_wait_runners() - wait until the engine alone is left on a wheel
 * @wheel: the wheel, stopped, and not to be used any more
 */
void hwt_wait_runners(struct hwt_wheel *wheel)
{
	spin_lock(&wheel->lock);
	while (!list_is_singular(&wheel->runners))
		hwt_wait_for(wheel, wheel);
	spin_unlock(&wheel->lock);
}

/* -- One timeout --------------------------------------------------------- */

/* Cancel once more, and bring the timeout's hold to its end as far as that goes. */
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
		hwt_end(wheel, runner, timeout);
	return was & HWT_F_PENDING;
}

/* True when the timeout is idle and its release is done. Else wait a while first. */
static bool hwt_sync_done(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	u64 state = hwt_timeout_state(timeout);

	if (hwt_timeout_busy(wheel, timeout)) {
		hwt_wait_for(wheel, timeout);
		return false;
	}
	if (!(state & HWT_F_HELD))
		return true;
	/* A caller has claimed it and not pushed it yet, or it was scheduled again. */
	spin_unlock(&wheel->lock);
	if ((state & HWT_F_HELD) == HWT_F_SUBMITTED)
		usleep_range(10, 50);
	spin_lock(&wheel->lock);
	return false;
}

/**
 * hwt_sync() - cancel, and wait until a timeout is let go
 * @timeout: the timeout
 * @set:     HWT_F_SHUTDOWN, or 0
 *
 * Return: as hwt_cancel_sync(), without the warning.
 */
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
		/* Barrier try.acquire, pairs with state.settle in hwt_finish_change(): the caller
		 * sees what the callback has written.
		 */
		smp_acquire__after_ctrl_dep();
		return false;
	}
	hwt_runner_enter(wheel, &runner);
	if (hwt_timeout_busy(wheel, timeout) && hwt_runner_self(wheel, timeout)) {
		pending = hwt_sync_cancel(wheel, &runner, timeout, set);
		hwt_runner_leave(wheel, &runner);
		return -EDEADLK;
	}
	do {
		/* In every round: it may have been scheduled again. */
		pending |= hwt_sync_cancel(wheel, &runner, timeout, set);
	} while (!hwt_sync_done(wheel, timeout));
	hwt_runner_leave(wheel, &runner);
	return pending;
}

/* The caller may take an error for true, and free what is held. */
static int hwt_sync_checked(struct hwt_timeout *timeout, u64 set)
{
	int ret = hwt_sync(timeout, set);

	if (unlikely(ret == -EDEADLK))
		pr_warn_once("callback %ps waits for its own timeout in a _sync call: the timeout is cancelled, and stays held until the callback returns\n",
			     timeout->ops->expire);
	return ret;
}

/**
 * hwt_cancel_sync() - cancel, and wait until the timeout is let go
 * @timeout: the timeout; its memory must stay until this returns, so with reference
 *           counts the caller has one of its own
 *
 * Process context, may sleep. Does not wait for other timeouts' callbacks. Its own
 * ->cancelled and ->release may run in the caller's context; on return no callback or
 * release of it is executing. If others keep scheduling it, this goes on cancelling: only
 * hwt_shutdown_sync() is sure to end. Works on a stopped wheel. From a callback of the
 * wheel it works for the other timeouts, but two callbacks must not wait for each other:
 * one that runs in a _sync or stop call is executing beside the engine's. If a ->release has
 * freed its timeout, and another one is at that address by now, a _sync of the new one does not
 * take that release for one of its own, unless both have the same ->release function.
 *
 * Return: 1 if it was pending, 0 if not. From one of its own callbacks: -EDEADLK, with one
 * warning; it was cancelled then, but is still held.
 */
int hwt_cancel_sync(struct hwt_timeout *timeout)
{
	return hwt_sync_checked(timeout, 0);
}
EXPORT_SYMBOL_GPL(hwt_cancel_sync);

/**
 * hwt_shutdown_sync() - cancel for good, and wait until the timeout is let go
 * @timeout: the timeout; as for hwt_cancel_sync()
 *
 * Process context, may sleep. As hwt_cancel_sync(); and each later schedule fails with
 * -ESHUTDOWN, until the timeout is initialised again.
 *
 * Return: as hwt_cancel_sync().
 */
int hwt_shutdown_sync(struct hwt_timeout *timeout)
{
	return hwt_sync_checked(timeout, HWT_F_SHUTDOWN);
}
EXPORT_SYMBOL_GPL(hwt_shutdown_sync);

/**
 * hwt_wait() - wait until a timeout has run or been cancelled
 * @timeout: the timeout; its memory must stay until this returns
 * @max_ns:  for so long at the most, ns; U64_MAX: without limit
 *
 * Process context, sleeps. Until it is not pending and none of its callbacks is executing:
 * one that is scheduled again meanwhile is waited for again, a periodic one until it is
 * cancelled. Of a plain cancel this hears when the engine lets go of the cancelled, within
 * reclaim_ms. From a callback of a wheel without workers there is nobody to run another one
 * meanwhile: it can only be cancelled.
 *
 * Return: 1 if it ended by running, 0 if by being cancelled or handed back (or if it was never
 * scheduled), -ETIME if @max_ns have passed, -ERESTARTSYS if a signal came, -EDEADLK from
 * one of its own callbacks.
 */
int hwt_wait(struct hwt_timeout *timeout, u64 max_ns)
{
	u64 now = ktime_get_ns(), end = hwt_add_ns(now, max_ns), look_ns, state = 0;
	struct hwt_runner runner = { .task = current };
	struct hwt_wheel *wheel = timeout->wheel;
	ktime_t until;
	bool inside;
	int ret = 0;

	might_sleep();
	if (!wheel || !hwt_debug_used(timeout))
		return 0;
	hwt_lockdep_sync(timeout);
	hwt_runner_enter(wheel, &runner);
	if (hwt_runner_self(wheel, timeout))
		ret = -EDEADLK;
	inside = hwt_runner_self(wheel, NULL);
	while (!ret) {
		state = hwt_timeout_state(timeout);
		if (!(state & (HWT_F_PENDING | HWT_F_RUNNING)))
			break;
		now = ktime_get_ns();
		/* The engine may not come to tell of a cancel: look now and then. */
		look_ns = inside || timeout->ended ? hwt_reclaim_ms * (u64)NSEC_PER_MSEC : U64_MAX;
		until = ns_to_ktime(min_t(u64, min(end, hwt_add_ns(now, look_ns)), KTIME_MAX));
		if (now >= end)
			ret = -ETIME;
		else if (signal_pending(current))
			ret = -ERESTARTSYS;
		else
			hwt_wait_until(wheel, timeout, TASK_INTERRUPTIBLE, &until);
	}
	hwt_runner_leave(wheel, &runner);
	return ret ?: !!(state & HWT_F_EXPIRED);
}
EXPORT_SYMBOL_GPL(hwt_wait);

/* -- All that is due, all that has ended ---------------------------------- */

/**
 * struct hwt_mark - a mark behind what a flush or a barrier waits for
 * @timeout: in the due list or on wheel->ended, like a timeout, but is never called
 * @reached: a runner has come to it
 * @call:    the last callback that had begun then
 *
 * Protected by the wheel's lock.
 */
struct hwt_mark {
	struct hwt_timeout	timeout;
	bool			reached;
	u64			call;
};

/* Marks are known by these. */
static const struct hwt_timeout_ops hwt_mark_ops = { };

/**
 * hwt_mark_reached() - was this no timeout, but a mark?
 * @wheel:   its lock is held
 * @timeout: was the first of its list, and is out of it
 */
bool hwt_mark_reached(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	struct hwt_mark *mark = container_of(timeout, struct hwt_mark, timeout);

	if (likely(timeout->ops != &hwt_mark_ops))
		return false;
	mark->reached = true;
	mark->call = wheel->calls;
	hwt_wake(wheel, NULL);
	return true;
}

/* The mark has been put where it belongs. Wait until it is reached, and then for callbacks. */
static void hwt_mark_wait(struct hwt_wheel *wheel, struct hwt_mark *mark)
	__must_hold(&wheel->lock)
{
	if (wheel->workers)
		hwt_worker_wake(wheel);
	else
		hwt_wheel_kick(wheel);
	while (!mark->reached)
		hwt_wait_for(wheel, wheel);
	hwt_wait_callbacks(wheel, mark->call);
}

/* Collect what was submitted before, and wait until all holds that are over have ended. */
static void hwt_ended_wait(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	struct hwt_mark mark = { .timeout.ops = &hwt_mark_ops, .timeout.wheel = wheel };

	hwt_collect_before(wheel);
	/* Nobody would come to the mark. A stop that is not through takes it off. */
	if (wheel->stopped)
		return;
	list_add_tail(&mark.timeout.link, &wheel->ended);
	mark.timeout.ended = true;
	hwt_mark_wait(wheel, &mark);
}

/**
 * hwt_wheel_barrier() - wait until the callbacks of all that has ended before have returned
 * @wheel: the wheel, shared ones too
 *
 * Process context, sleeps. As rcu_barrier(), for a client that goes: when this returns, each
 * timeout that had fired or been cancelled before this call is through with its ->expire,
 * ->cancelled and ->release. Timeouts that are still pending are not waited for, nor those that
 * are scheduled again meanwhile, nor what another CPU is still scheduling or cancelling. Waits for
 * other clients' callbacks that have begun, or have to begin before; on a frozen wheel, until that
 * is thawed.
 *
 * Return: 0; -EDEADLK from a callback of the wheel or its @poll.
 */
int hwt_wheel_barrier(struct hwt_wheel *wheel)
{
	struct hwt_runner runner = { .task = current };

	might_sleep();
	if (hwt_in_callback(wheel))
		return -EDEADLK;
	hwt_lockdep_wheel(wheel);
	hwt_runner_enter(wheel, &runner);
	/* A stop brings all holds to their end itself. */
	if (!wheel->stopped)
		hwt_ended_wait(wheel);
	hwt_runner_leave(wheel, &runner);
	return 0;
}
EXPORT_SYMBOL_GPL(hwt_wheel_barrier);

/**
 * hwt_wheel_flush() - wait until all that is due has run
 * @wheel: the wheel
 *
 * Process context, sleeps. What was scheduled before this call, for a tick that has begun, and
 * not moved or cancelled meanwhile, has run when it returns. (A delay of 0 is rounded up to the
 * next tick, as all are; a deadline that has passed is not.) What comes due later is not
 * waited for. Where two callers schedule one timeout at the same time, it may be missed until
 * both calls have returned.
 *
 * Return: 0; -EDEADLK from a callback of the wheel or its @poll; -ESHUTDOWN if it is stopped, or
 * was meanwhile.
 */
int hwt_wheel_flush(struct hwt_wheel *wheel)
{
	struct hwt_mark mark = { .timeout.ops = &hwt_mark_ops, .timeout.wheel = wheel };
	struct hwt_runner runner = { .task = current };
	int ret = 0;

	might_sleep();
	if (hwt_in_callback(wheel))
		return -EDEADLK;
	hwt_lockdep_wheel(wheel);
	hwt_runner_enter(wheel, &runner);
	/* Then all is linked that was scheduled, what was executing or had ended included. */
	if (!wheel->stopping)
		hwt_ended_wait(wheel);
	while (!wheel->stopping) {
		if (hwt_clock_moved(wheel)) {
			/* The engine sees to that, and wakes those that wait. */
			hwt_wheel_kick(wheel);
			hwt_wait_for(wheel, wheel);
		} else if (hwt_engine_advance(wheel)) {
			break;
		}
	}
	if (!wheel->stopping) {
		atomic64_set(&mark.timeout.state, HWT_F_ARMED);
		hwt_buckets_insert(&wheel->buckets, &mark.timeout);
		hwt_mark_wait(wheel, &mark);
	}
	/* A stop may have handed back what was due. */
	if (wheel->stopping)
		ret = -ESHUTDOWN;
	hwt_runner_leave(wheel, &runner);
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_wheel_flush);

/* -- All timeouts -------------------------------------------------------- */

/* Hand back a timeout of the due list, passing through RUNNING. Return: whether it was armed. */
static bool hwt_hand_back(struct hwt_wheel *wheel, struct hwt_runner *runner,
			  struct hwt_timeout *timeout, hwt_handback_fn fn, void *arg)
	__must_hold(&wheel->lock)
{
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;
	struct hwt_call call;

	hwt_buckets_remove(&wheel->buckets, timeout);
	if (hwt_mark_reached(wheel, timeout))
		return false;
	/* Barrier state.fire, pairs with state.arm and earlier.mb in hwt_arm() and earlier.mb in
	 * __hwt_schedule(): @fn sees what the client has written before.
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

/* Hand back all that is found. */
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
		/* All: submissions to a wheel that is stopped come to an end. */
		hwt_collect(wheel, UINT_MAX);
		while (!list_empty(&wheel->ended)) {
			hwt_end(wheel, runner,
				list_first_entry(&wheel->ended, struct hwt_timeout, link));
			if (++step % HWT_STEP == 0) {
				hwt_lock_break(wheel);
				runner->stamp = 0;
			}
		}
		flushed = hwt_buckets_flush(&wheel->buckets, HWT_STEP);
		if (flushed && list_empty(due))
			return n;
		while (!list_empty(due)) {
			timeout = list_first_entry(due, struct hwt_timeout, link);
			n += hwt_hand_back(wheel, runner, timeout, fn, arg);
			if (++step % HWT_STEP == 0)
				hwt_lock_break(wheel);
		}
		hwt_lock_break(wheel);
	}
}

/**
 * hwt_stop() - hwt_wheel_stop() for shared wheels too
 * @wheel: the wheel
 * @fn:    as there
 * @arg:   as there
 *
 * The order matters:
 *
 *   1. Close the door, and wait for those who are inside: from the grace period on
 *      nobody arms a timeout but a periodic one's own callback, by returning.
 *   2. Hand back what is there. Cancels go on and may have claimed a timeout without
 *      having pushed it yet: such a one is unlinked, and left.
 *   3. Wait for the callbacks; hand back what they armed. Now nothing is armed, so no
 *      cancel can claim anything any more.
 *   4. A second grace period: what was claimed has been pushed. Collect it.
 *   5. A _sync may have let one go for itself meanwhile: wait for its callbacks too.
 *
 * Return: as hwt_wheel_stop(), but never -EBUSY.
 */
long hwt_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	struct hwt_runner runner = { .task = current };
	long n = 0;

	might_sleep();
	if (hwt_in_callback(wheel))
		return -EDEADLK;
	hwt_lockdep_wheel(wheel);
	mutex_lock(&wheel->stop_lock);
	/* Only a stop sets it, under this lock. */
	if (READ_ONCE(wheel->stopped))
		goto out;

	WRITE_ONCE(wheel->closed, true);
	/* From here on no other runner begins a callback. */
	spin_lock(&wheel->lock);
	wheel->stopping = true;
	spin_unlock(&wheel->lock);
	/* Barrier stop.grace1, pairs with arm.rcu in hwt_arm_open(): a caller that has not seen the
	 * wheel closed has pushed, and the drain finds that.
	 */
	synchronize_rcu();

	hwt_runner_enter(wheel, &runner);
	n += hwt_drain(wheel, &runner, fn, arg);
	hwt_runner_leave(wheel, &runner);

	hwt_threads_stop(wheel);
	spin_lock(&wheel->lock);
	hwt_wait_callbacks(wheel, U64_MAX);
	spin_unlock(&wheel->lock);

	hwt_runner_enter(wheel, &runner);
	n += hwt_drain(wheel, &runner, fn, arg);
	hwt_runner_leave(wheel, &runner);

	/* Barrier stop.grace2, pairs with cancel.rcu in __hwt_cancel(): what was claimed is
	 * pushed, and the drain finds it.
	 */
	synchronize_rcu();

	hwt_runner_enter(wheel, &runner);
	n += hwt_drain(wheel, &runner, fn, arg);
	hwt_runner_leave(wheel, &runner);

	spin_lock(&wheel->lock);
	hwt_wait_callbacks(wheel, U64_MAX);
	/* The marks of barriers that came after the last drain. */
	while (!list_empty(&wheel->ended))
		hwt_end(wheel, &runner,
			list_first_entry(&wheel->ended, struct hwt_timeout, link));
	WRITE_ONCE(wheel->stopped, true);
	spin_unlock(&wheel->lock);
	trace_hwt_wheel_stop(wheel, n);
out:
	mutex_unlock(&wheel->stop_lock);
	return n;
}

/**
 * hwt_wheel_stop() - stop a wheel for good and get back what never ran
 * @wheel: the wheel, one's own
 * @fn:    called for each timeout that was pending, exactly once, in no order; NULL:
 *         their ->cancelled is called instead
 * @arg:   for @fn
 *
 * Process context, may sleep: waits for callbacks that are executing and for two RCU
 * grace periods. Schedules fail with -ESHUTDOWN from the beginning of this. On return no
 * callback is executing, none will be, and no timeout is held. A second stop waits
 * for the first, and hands back none.
 *
 * Return: how many were handed back; -EDEADLK from a callback of the wheel, -EBUSY for
 * a shared wheel: nothing changed.
 */
long hwt_wheel_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	if (wheel->shared)
		return -EBUSY;
	return hwt_stop(wheel, fn, arg);
}
EXPORT_SYMBOL_GPL(hwt_wheel_stop);
