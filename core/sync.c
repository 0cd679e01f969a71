// SPDX-License-Identifier: GPL-2.0-only
/*
 * Those who wait: hwt_cancel_sync(), hwt_shutdown_sync(), hwt_wait(), hwt_wheel_flush(),
 * hwt_wheel_stop()
 *
 * The _sync functions do not wait for the engine to come by: they take the wheel's lock, settle
 * what has been submitted themselves, and wait only while a callback or release of that one
 * timeout is executing. A stop does the same for all timeouts, and then waits for the wheel's
 * threads to end. hwt_wait() and hwt_wheel_flush() wait for callbacks that the engine, or a
 * worker, has yet to begin.
 */
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>

#include "core/callback.h"
#include "core/clock.h"
#include "core/debug.h"
#include "core/engine.h"
#include "core/registry.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"
#include "core/trace.h"

/* Submissions that a _sync settles before it looks again whether it is done. */
#define HWT_SYNC_COLLECT	1024

/*
 * Is this what it is executing? After a release has begun the memory is its owner's: what is
 * there now may be another timeout.
 */
static bool hwt_runner_at(const struct hwt_runner *runner, const struct hwt_timeout *timeout)
{
	return runner->current_timeout == timeout &&
	       (!runner->releasing || runner->fn == timeout->ops->release);
}

/* The runner that is executing something for the timeout. */
static struct hwt_runner *hwt_runner_of(struct hwt_wheel *wheel,
					const struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	struct hwt_runner *runner;

	list_for_each_entry(runner, &wheel->runners, entry)
		if (hwt_runner_at(runner, timeout))
			return runner;
	return NULL;
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
	runner->nested = hwt_runner_self(wheel, NULL);
	list_add_tail(&runner->entry, &wheel->runners);
}

/* The wheel may be freed as soon as its last runner has left. */
static void hwt_runner_leave(struct hwt_wheel *wheel, struct hwt_runner *runner)
	__releases(&wheel->lock)
{
	/* Barrier leave.rcu, pairs with unmake.grace in hwt_wheel_unmake(): the lock's memory stays
	 * until the unlock is through.
	 */
	rcu_read_lock();
	list_del(&runner->entry);
	hwt_sync_wake(wheel);
	spin_unlock(&wheel->lock);
	rcu_read_unlock();
}

/* Until somebody changes something, @state lets a signal through, or it is too late. */
static void hwt_sync_wait_until(struct hwt_wheel *wheel, unsigned int state, ktime_t *until)
	__must_hold(&wheel->lock)
{
	DEFINE_WAIT(wait);

	/* Barrier wait.prepare (spare), unpaired: what is waited for changes under the lock, so
	 * that nothing is missed.
	 */
	prepare_to_wait(&wheel->sync_wait, &wait, state);
	wheel->sync_waiters++;
	spin_unlock(&wheel->lock);
	/* NULL: for ever. */
	schedule_hrtimeout(until, HRTIMER_MODE_ABS);
	spin_lock(&wheel->lock);
	wheel->sync_waiters--;
	finish_wait(&wheel->sync_wait, &wait);
}

/* Wait until hwt_sync_wake(): the caller looks again at what it waits for. Drops the lock. */
static void hwt_sync_wait(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	hwt_sync_wait_until(wheel, TASK_UNINTERRUPTIBLE, NULL);
}

/* Wait until no callback up to @call, and then no release, is executing on a wheel. */
static void hwt_wait_callbacks(struct hwt_wheel *wheel, u64 call)
	__must_hold(&wheel->lock)
{
	struct hwt_runner *runner;

again:
	list_for_each_entry(runner, &wheel->runners, entry) {
		if (runner->current_timeout && runner->call <= call) {
			hwt_sync_wait(wheel);
			goto again;
		}
	}
}

/**
 * hwt_wait_runners() - wait until nobody but the engine is left on a wheel
 * @wheel: the wheel, stopped, and not to be used by anybody any more
 */
void hwt_wait_runners(struct hwt_wheel *wheel)
{
	spin_lock(&wheel->lock);
	while (!list_is_singular(&wheel->runners))
		hwt_sync_wait(wheel);
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

	claimed = hwt_word_cancel(timeout, set, &was);
	if (was & HWT_F_PENDING)
		hwt_note_cancel(wheel, timeout, was);
	if (claimed)
		hwt_settle_queued(wheel, runner, timeout);
	else if (!hwt_settle_deferred(wheel, runner, timeout) &&
		 (was & HWT_F_SUBMITTED))
		hwt_collect(wheel, runner, HWT_SYNC_COLLECT);
	return was & HWT_F_PENDING;
}

/* True when the timeout is idle and its release is done. Else wait a while first. */
static bool hwt_sync_done(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	u64 word = hwt_timeout_state(timeout);

	if (hwt_runner_of(wheel, timeout)) {
		hwt_sync_wait(wheel);
		return false;
	}
	if (!(word & HWT_F_HELD))
		return true;
	/* Somebody has claimed it and not pushed it yet, or it is still further
	 * behind in the lists, or it was scheduled again.
	 */
	spin_unlock(&wheel->lock);
	if ((word & HWT_F_HELD) == HWT_F_SUBMITTED)
		usleep_range(10, 50);
	spin_lock(&wheel->lock);
	return false;
}

static int hwt_sync(struct hwt_timeout *timeout, u64 set)
{
	struct hwt_wheel *wheel = timeout->wheel;
	struct hwt_runner runner = { .task = current, .only = timeout };
	bool pending = false;
	u64 was;

	might_sleep();
	if (!hwt_debug_used(timeout))
		return false;
	if (!wheel) {
		hwt_word_cancel(timeout, set, &was);
		return false;
	}
	hwt_lockdep_sync(timeout);
	hwt_runner_enter(wheel, &runner);
	if (hwt_runner_self(wheel, timeout)) {
		hwt_runner_leave(wheel, &runner);
		return -EDEADLK;
	}
	do {
		/* In every round: somebody may schedule it again meanwhile. */
		pending |= hwt_sync_cancel(wheel, &runner, timeout, set);
	} while (!hwt_sync_done(wheel, timeout));
	hwt_runner_leave(wheel, &runner);
	return pending;
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
 * Return: 1 if it was pending, 0 if not, -EDEADLK from one of its own callbacks:
 * nothing changed.
 */
int hwt_cancel_sync(struct hwt_timeout *timeout)
{
	return hwt_sync(timeout, 0);
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
	return hwt_sync(timeout, HWT_F_SHUTDOWN);
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
	u64 now = ktime_get_ns(), end = hwt_add_ns(now, max_ns), look_ns = U64_MAX, word = 0;
	struct hwt_wheel *wheel = timeout->wheel;
	ktime_t until;
	int ret = 0;

	might_sleep();
	if (!wheel || !hwt_debug_used(timeout))
		return 0;
	spin_lock(&wheel->lock);
	if (hwt_runner_self(wheel, timeout))
		ret = -EDEADLK;
	/* This may keep the engine from letting go of the cancelled: then nobody says so. */
	if (hwt_runner_self(wheel, NULL))
		look_ns = hwt_reclaim_ms * (u64)NSEC_PER_MSEC;
	while (!ret) {
		word = hwt_timeout_state(timeout);
		if (!(word & (HWT_F_PENDING | HWT_F_RUNNING)))
			break;
		now = ktime_get_ns();
		until = ns_to_ktime(min_t(u64, min(end, hwt_add_ns(now, look_ns)), KTIME_MAX));
		if (now >= end)
			ret = -ETIME;
		else if (signal_pending(current))
			ret = -ERESTARTSYS;
		else
			hwt_sync_wait_until(wheel, TASK_INTERRUPTIBLE, &until);
	}
	spin_unlock(&wheel->lock);
	return ret ?: !!(word & HWT_F_EXPIRED);
}
EXPORT_SYMBOL_GPL(hwt_wait);

/* -- All that is due ----------------------------------------------------- */

/**
 * struct hwt_flush - a mark behind what is due
 * @mark:    in the due list, like a timeout, but never fires
 * @reached: it was the first there
 * @call:    the last callback that had begun then
 *
 * Protected by the wheel's lock.
 */
struct hwt_flush {
	struct hwt_timeout	mark;
	bool			reached;
	u64			call;
};

/* Marks are known by these. */
static const struct hwt_timeout_ops hwt_flush_ops = { };

/**
 * hwt_flush_reached() - was this no timeout, but the mark of a flush?
 * @wheel:   its lock is held
 * @timeout: was the first of the due list, and is out of it
 */
bool hwt_flush_reached(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	struct hwt_flush *flush = container_of(timeout, struct hwt_flush, mark);

	if (likely(timeout->ops != &hwt_flush_ops))
		return false;
	flush->reached = true;
	flush->call = wheel->calls;
	wake_up_all(&wheel->sync_wait);
	return true;
}

/* Those that were left to others, and have been scheduled again meanwhile. */
static void hwt_flush_deferred(struct hwt_wheel *wheel, struct hwt_runner *runner)
	__must_hold(&wheel->lock)
{
	unsigned int n = wheel->deferrals;
	struct hwt_timeout *timeout;

	/* Each of them comes to the front once: others add to the end. What calls back stays. */
	while (n && !list_empty(&wheel->deferred)) {
		timeout = list_first_entry(&wheel->deferred, struct hwt_timeout, link);
		if (hwt_timeout_state(timeout) & HWT_F_ARMED)
			hwt_settle_deferred(wheel, runner, timeout);
		else
			list_move_tail(&timeout->link, &wheel->deferred);
		if (--n % HWT_STEP == 0)
			hwt_lock_break(wheel);
	}
}

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
	struct hwt_flush flush = { .mark.ops = &hwt_flush_ops, .mark.wheel = wheel };
	struct hwt_runner runner = { .task = current, .only = &flush.mark };
	int ret = 0;

	might_sleep();
	hwt_runner_enter(wheel, &runner);
	if (runner.nested) {
		ret = -EDEADLK;
		goto out;
	}
	/* What is executing may have been scheduled again: it is linked when it ends. */
	hwt_wait_callbacks(wheel, wheel->calls);
	/* Bring all there is into order, and the mark behind it. */
	hwt_collect_before(wheel, &runner);
	hwt_flush_deferred(wheel, &runner);
	while (!wheel->stopping) {
		if (hwt_clock_moved(wheel)) {
			/* The engine sees to that, and wakes those who wait. */
			hwt_wheel_kick(wheel);
			hwt_sync_wait(wheel);
		} else if (hwt_engine_advance(wheel)) {
			break;
		}
	}
	if (wheel->stopping) {
		ret = -ESHUTDOWN;
		goto out;
	}
	atomic64_set(&flush.mark.state, HWT_F_ARMED);
	hwt_buckets_insert(&wheel->buckets, &flush.mark);
	if (wheel->workers)
		hwt_worker_wake(wheel);
	else
		hwt_wheel_kick(wheel);
	while (!flush.reached)
		hwt_sync_wait(wheel);
	hwt_wait_callbacks(wheel, flush.call);
	/* A stop may have handed back what was due. */
	if (wheel->stopping)
		ret = -ESHUTDOWN;
out:
	hwt_runner_leave(wheel, &runner);
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_wheel_flush);

/* -- All timeouts -------------------------------------------------------- */

/* The first of the due list, by way of RUNNING. True if it was still armed. */
static bool hwt_hand_back(struct hwt_wheel *wheel, struct hwt_runner *runner,
			  struct hwt_timeout *timeout, hwt_handback_fn fn, void *arg)
	__must_hold(&wheel->lock)
{
	u64 old = hwt_timeout_state(timeout), new;
	struct hwt_call call;

	hwt_buckets_remove(&wheel->buckets, timeout);
	if (hwt_flush_reached(wheel, timeout))
		return false;
	/* Barrier state.fire, pairs with state.arm and earlier.mb in hwt_arm(): @fn sees what the
	 * client has written before.
	 */
	do {
		if (!(old & HWT_F_ARMED))
			return false;	/* cancelled: settled when it is collected */
		new = old & ~(HWT_F_PENDING | HWT_F_EXPIRED);
		new |= HWT_F_RUNNING | HWT_F_CANCELLED;
	} while (!hwt_state_change(timeout, &old, new));

	hwt_count(&wheel->retired, 1);
	hwt_count(&wheel->handed_back, 1);
	hwt_limit_put(wheel);
	trace_hwt_cancel(wheel, timeout, old >> HWT_TICK_SHIFT);
	if (fn) {
		hwt_call_begin(wheel, runner, timeout, fn, &call);
		fn(timeout, arg);
		hwt_call_end(wheel, runner, timeout, &call);
	}
	hwt_settle_running(wheel, runner, timeout, !!fn);
	return true;
}

/* Hand back whatever is found. */
static long hwt_drain(struct hwt_wheel *wheel, struct hwt_runner *runner,
		      hwt_handback_fn fn, void *arg)
	__must_hold(&wheel->lock)
{
	struct list_head *due = &wheel->buckets.due;
	struct hwt_timeout *timeout;
	unsigned int step = 0;
	long n = 0;

	for (;;) {
		/* All: nobody submits for ever to a wheel that is stopped. */
		hwt_collect(wheel, runner, UINT_MAX);
		while (!list_empty(&wheel->deferred)) {
			timeout = list_first_entry(&wheel->deferred,
						   struct hwt_timeout, link);
			hwt_settle_deferred(wheel, runner, timeout);
			if (++step % HWT_STEP == 0) {
				hwt_lock_break(wheel);
				runner->stamp = 0;
			}
		}
		hwt_buckets_flush(&wheel->buckets);
		if (list_empty(due))
			return n;
		while (!list_empty(due)) {
			timeout = list_first_entry(due, struct hwt_timeout, link);
			n += hwt_hand_back(wheel, runner, timeout, fn, arg);
			if (++step % HWT_STEP == 0)
				hwt_lock_break(wheel);
		}
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
	mutex_lock(&wheel->stop_lock);
	/* Only a stop makes it that; a start changes it under the other lock. */
	if (READ_ONCE(wheel->state) == HWT_SHUTDOWN)
		goto out;

	WRITE_ONCE(wheel->closed, true);
	/* Barrier stop.grace1, pairs with arm.rcu in hwt_arm_open(): a caller that has not seen the
	 * door closed has pushed, and the drain finds that.
	 */
	synchronize_rcu();

	hwt_runner_enter(wheel, &runner);
	wheel->stopping = true;
	n += hwt_drain(wheel, &runner, fn, arg);
	hwt_runner_leave(wheel, &runner);

	hwt_threads_stop(wheel);
	spin_lock(&wheel->lock);
	hwt_wait_callbacks(wheel, U64_MAX);
	spin_unlock(&wheel->lock);

	hwt_runner_enter(wheel, &runner);
	n += hwt_drain(wheel, &runner, fn, arg);
	hwt_runner_leave(wheel, &runner);

	/* Barrier stop.grace2, pairs with cancel.rcu in hwt_cancel_word(): what was claimed is
	 * pushed, and the drain finds it.
	 */
	synchronize_rcu();

	hwt_runner_enter(wheel, &runner);
	n += hwt_drain(wheel, &runner, fn, arg);
	hwt_runner_leave(wheel, &runner);

	spin_lock(&wheel->lock);
	hwt_wait_callbacks(wheel, U64_MAX);
	WRITE_ONCE(wheel->state, HWT_SHUTDOWN);
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
