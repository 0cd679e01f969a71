// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting for timeouts and their callbacks
 *
 * hwt_cancel_sync() and hwt_shutdown_sync() end the timeout's hold themselves, so they do not need
 * the engine. They wait only while a callback or the ->release of the timeout is executing.
 * hwt_wait() and hwt_shard_flush() also wait for callbacks that the engine or a worker has yet to
 * begin.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>

#include "core/bh.h"
#include "core/callback.h"
#include "core/clock.h"
#include "core/debug.h"
#include "core/delete.h"
#include "core/engine.h"
#include "core/kick.h"
#include "core/params.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/wait.h"
#include "core/wheel.h"

/* -- Runners ------------------------------------------------------------- */

/*
 * Return true if a runner is executing a function of @timeout (NULL: of any timeout). If @task is
 * not NULL, look at runners of that task only. A ->release may have freed its timeout already, and
 * @timeout may be a new one at the same address. So also compare the ->release that is executing
 * with that of @timeout. If both timeouts have the same ->release, the result is true until the old
 * timeout's ->release has returned.
 */
static bool hwt_executing(struct hwt_shard *shard, const struct hwt_timeout *timeout,
			  const struct task_struct *task)
	__must_hold(&shard->lock)
{
	struct hwt_runner *runner;

	/* Usually, spare the search: RUNNING is set during each callback, except ->release. */
	if (timeout && !timeout->ops->release && !(hwt_timeout_state(timeout) & HWT_F_RUNNING))
		return false;
	list_for_each_entry(runner, &shard->runners, entry)
		if (runner->current_timeout && (!task || runner->task == task) &&
		    (!timeout || (runner->current_timeout == timeout &&
				  (!runner->releasing || runner->fn == timeout->ops->release))))
			return true;
	return false;
}

/* Return true if this task is in a callback of the wheel. Takes each shard's lock in turn. */
bool hwt_in_callback(const struct hwt_wheel *wheel)
{
	struct hwt_shard *shard;
	bool inside = false;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		spin_lock_irq(&shard->lock);
		inside |= hwt_executing(shard, NULL, current);
		spin_unlock_irq(&shard->lock);
	}
	return inside;
}

/* Take the lock, and keep the shard from being freed until hwt_shard_leave(). */
static void hwt_shard_enter(struct hwt_shard *shard)
	__acquires(&shard->lock)
{
	spin_lock_irq(&shard->lock);
	shard->callers++;
}

/* Wake hwt_wait_unused(), and release the lock. Then hwt_wheel_dispose() may free the shard. */
static void hwt_shard_leave(struct hwt_shard *shard)
	__releases(&shard->lock)
{
	/*
	 * Barrier leave.rcu, pairs with destroy.grace in hwt_wheel_dispose(): the shard, which
	 * contains the lock, is freed only after spin_unlock_irq() has returned.
	 */
	rcu_read_lock();
	shard->callers--;
	hwt_wake(shard, shard);
	spin_unlock_irq(&shard->lock);
	rcu_read_unlock();
}

void hwt_runner_enter(struct hwt_shard *shard, struct hwt_runner *runner)
	__acquires(&shard->lock)
{
	hwt_shard_enter(shard);
	runner->stamp = 0;
	list_add_tail(&runner->entry, &shard->runners);
}

void hwt_runner_leave(struct hwt_shard *shard, struct hwt_runner *runner)
	__releases(&shard->lock)
{
	list_del(&runner->entry);
	hwt_shard_leave(shard);
}

/* Keep a wheel from being freed until hwt_wheel_leave(). Return false in one of its callbacks. */
bool hwt_wheel_enter(struct hwt_wheel *wheel)
{
	might_sleep();
	if (hwt_in_callback(wheel))
		return false;
	hwt_shard_enter(wheel->first_shard);
	spin_unlock_irq(&wheel->first_shard->lock);
	return true;
}

void hwt_wheel_leave(struct hwt_wheel *wheel)
{
	spin_lock_irq(&wheel->first_shard->lock);
	hwt_shard_leave(wheel->first_shard);
}

/* -- Waiting for runners --------------------------------------------------- */

/*
 * Return true if a runner is executing a function of the module @owner, or will call one for the
 * same timeout after the present function. A ->release or, on a BH wheel, a callback may free its
 * timeout, so do not read the timeout while such a function is executing.
 */
static bool hwt_owner_executes(const struct hwt_shard *shard, const struct hwt_runner *runner,
			       const struct module *owner)
{
	const struct hwt_timeout *timeout = runner->current_timeout;

	if (within_module((unsigned long)runner->fn, owner))
		return true;
	return !runner->releasing && !hwt_is_bh(shard) && timeout->ops &&
	       hwt_module_needs(timeout, owner);
}

/*
 * Wait until no runner executes a call with a number (see struct hwt_runner) up to @call. If @owner
 * is not NULL, wait only for calls for which hwt_owner_executes() returns true.
 */
void hwt_wait_callbacks(struct hwt_shard *shard, u64 call, const struct module *owner)
	__must_hold(&shard->lock)
{
	struct hwt_runner *runner;

again:
	list_for_each_entry(runner, &shard->runners, entry) {
		if (runner->current_timeout && runner->call <= call &&
		    (!owner || hwt_owner_executes(shard, runner, owner))) {
			hwt_wait_for(shard, runner);
			goto again;
		}
	}
}

/* Wait until no task uses a stopped shard. The caller makes sure that no further task uses it. */
void hwt_wait_unused(struct hwt_shard *shard)
{
	spin_lock_irq(&shard->lock);
	while (shard->callers)
		hwt_wait_for(shard, shard);
	spin_unlock_irq(&shard->lock);
}

/* -- One timeout --------------------------------------------------------- */

/* Cancel a timeout; end its hold unless that needs a wait. Return true if it was pending. */
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
		hwt_collect_until(shard, READ_ONCE(timeout->cpu), timeout, NULL);
	if (claimed || timeout->owed)
		hwt_end_hold(shard, runner, timeout);
	return was & HWT_F_PENDING;
}

/*
 * Return true if the timeout is idle and its ->release has returned. If not, return false, perhaps
 * after a wait: the caller tries again.
 */
static bool hwt_sync_done(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	u64 state = hwt_timeout_state(timeout);

	if (hwt_executing(shard, timeout, NULL)) {
		hwt_wait_for(shard, timeout);
		return false;
	}
	if (!(state & HWT_F_HELD))
		return true;
	/*
	 * If only SUBMITTED is set, another CPU has yet to push the timeout: give it some time. If
	 * ARMED is set, the caller cancels the timeout again.
	 */
	spin_unlock_irq(&shard->lock);
	if ((state & HWT_F_HELD) == HWT_F_SUBMITTED)
		usleep_range(10, 50);
	spin_lock_irq(&shard->lock);
	return false;
}

/* The part of hwt_sync() for a BH wheel. Does not sleep. */
static int hwt_sync_bh(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 set)
{
	bool pending = false, running;

	for (;;) {
		/*
		 * Cancel in every round, since the timeout may have been scheduled again. Test
		 * under the same lock that no callback executes: it could schedule the timeout.
		 */
		pending |= hwt_delete_held(shard, timeout, set, false, &running);
		if (!running)
			return pending;
		/* A pass of this task executes the callback: so the caller is in the callback. */
		if (READ_ONCE(shard->engine.task) == current)
			return -EDEADLK;
		hwt_bh_relax(shard);
	}
}

/* Do what hwt_cancel_sync() or hwt_shutdown_sync() does, but log no warning of -EDEADLK. */
int hwt_sync(struct hwt_timeout *timeout, u64 set)
{
	struct hwt_shard *shard = timeout->shard;
	struct hwt_runner runner = { .task = current };
	u64 was = hwt_timeout_state(timeout);
	bool pending = false, own;

	if (!hwt_debug_used(timeout))
		return false;
	if (!shard) {
		hwt_cancel_claim(timeout, set, &was);
		return false;
	}
	hwt_lockdep_sync(timeout);
	if (hwt_is_bh(shard))
		return hwt_sync_bh(shard, timeout, set);
	might_sleep();
	if (!(was & HWT_F_HELD) && !(set & ~was) && !timeout->ops->release) {
		/*
		 * Barrier try.acquire, pairs with state.finish in hwt_finish_change(): a caller
		 * that finds the timeout not held sees what the last callback has written.
		 */
		smp_acquire__after_ctrl_dep();
		return false;
	}
	hwt_runner_enter(shard, &runner);
	own = hwt_executing(shard, timeout, current);
	do {
		/* Cancel in every round, since the timeout may have been scheduled again. */
		pending |= hwt_sync_try(shard, &runner, timeout, set);
	} while (!own && !hwt_sync_done(shard, timeout));
	/* Another CPU may have yet to push the timeout: the engine is to collect it. */
	if (own && (hwt_timeout_state(timeout) & HWT_F_SUBMITTED) && !READ_ONCE(shard->reclaim)) {
		WRITE_ONCE(shard->reclaim, true);
		hwt_engine_kick_locked(shard, 0);
	}
	hwt_runner_leave(shard, &runner);
	return own ? -EDEADLK : pending;
}

/* Warn of -EDEADLK: a caller that ignores it may free a timeout that is still in use. */
static int hwt_sync_checked(struct hwt_timeout *timeout, u64 set)
{
	int ret = hwt_sync(timeout, set);

	if (unlikely(ret == -EDEADLK))
		pr_warn_once("callback %ps waits for its own timeout in a _sync call: the timeout is cancelled, but its callback goes on\n",
			     timeout->ops->expire);
	return ret;
}

/**
 * hwt_cancel_sync() - cancel, and wait until the timeout is no longer held
 * @timeout: the timeout; its memory must remain valid until this returns, so a caller that uses
 *           reference counts must have a reference of its own
 *
 * For a timeout on a thread wheel: process context, may sleep. For a timeout on a BH wheel: process
 * context or softirq, interrupts on or off, does not sleep; on PREEMPT_RT it may sleep, so call it
 * only with interrupts and preemption on. The caller must hold no lock that the callback takes.
 *
 * Does not wait for callbacks of other timeouts. The timeout's ->cancelled and ->release may run in
 * the caller's context. On return, no callback or ->release of the timeout is executing. If other
 * contexts schedule the timeout again and again, this function may never return. In that case, use
 * hwt_shutdown_sync().
 *
 * Works on a stopped wheel, and in a callback of another timeout of the wheel. Two callbacks must
 * not wait for each other, even on a wheel without workers: while the engine runs one of them, a
 * caller of this function or of a stop may run the other.
 *
 * A ->release may have freed its timeout and be executing still, while this function is called for
 * a new timeout at the same address. This function waits for that ->release only if the new timeout
 * has the same ->release.
 *
 * Return: 1 if the timeout was pending, 0 if not; -EDEADLK if the caller is in one of the timeout's
 * own callbacks. After -EDEADLK, the timeout is cancelled, but on a thread wheel it may stay held
 * until the callback has returned. hwt logs a warning, once.
 */
int hwt_cancel_sync(struct hwt_timeout *timeout)
{
	return hwt_sync_checked(timeout, 0);
}
EXPORT_SYMBOL_GPL(hwt_cancel_sync);

/**
 * hwt_shutdown_sync() - cancel for good, and wait until the timeout is no longer held
 * @timeout: the timeout; its memory must remain valid until this returns
 *
 * Contexts as for hwt_cancel_sync(). Does the same as hwt_cancel_sync(), and makes each later call
 * that schedules the timeout fail with -ESHUTDOWN, until hwt_reopen() is called or the timeout is
 * initialised again.
 *
 * Return: the same as hwt_cancel_sync().
 */
int hwt_shutdown_sync(struct hwt_timeout *timeout)
{
	return hwt_sync_checked(timeout, HWT_F_SHUTDOWN);
}
EXPORT_SYMBOL_GPL(hwt_shutdown_sync);

/* Return true if the timeout is not pending, and its ->expire or ->cancelled has returned. */
static bool hwt_wait_over(const struct hwt_timeout *timeout, u64 state)
{
	if ((state & HWT_F_PENDING) || hwt_running(timeout))
		return false;
	/* While a cancelled timeout is SUBMITTED, its ->cancelled, if any, has yet to be called. */
	return !(state & HWT_F_SUBMITTED) || !(state & HWT_F_CANCELLED) ||
	       !timeout->ops->cancelled;
}

/**
 * hwt_wait() - wait until a timeout has run or been cancelled
 * @timeout: the timeout; its memory must remain valid until this returns
 * @max_ns:  maximum time to wait, ns; U64_MAX: no limit
 *
 * Process context, sleeps. Waits until the timeout is not pending, and its ->expire or ->cancelled
 * has returned. If the timeout is scheduled again meanwhile, the wait goes on. The wait for a
 * periodic timeout lasts until the timeout is cancelled. After hwt_cancel(), the wait ends only
 * when the engine has collected the timeout. The collection takes up to reclaim_ms (a module
 * parameter), or longer if the engine is in a long callback, or is frozen.
 *
 * The timeout's callback may have to wait for other callbacks of the shard. So the caller must not
 * hold a lock that any callback of the shard takes. On a wheel with at most one worker, lockdep
 * reports such a lock.
 *
 * Return: 1 if the timeout has fired; 0 if it was never scheduled, or was cancelled or handed back
 * while it was pending (even after an earlier firing); -ETIME if @max_ns have passed; -ERESTARTSYS
 * if a signal came or, for a caller in a callback of the wheel, if a stop of the wheel has begun;
 * -EDEADLK if the caller is in one of the timeout's own callbacks, or in any callback on the
 * shard's own thread or its only worker. No error tells of callbacks that wait for each other: on
 * all workers of a shard for its timeouts, or on the threads of two shards for each other's.
 */
int hwt_wait(struct hwt_timeout *timeout, u64 max_ns)
{
	u64 now = ktime_get_ns(), end = hwt_add_ns(now, max_ns), look_ns, state = 0;
	struct hwt_shard *shard = timeout->shard;
	bool inside;
	ktime_t until;
	int ret = 0;

	might_sleep();
	if (!shard || !hwt_debug_used(timeout))
		return 0;
	hwt_lockdep_sync(timeout);
	inside = hwt_in_callback(shard->wheel);
	/* With at most one worker, any callback of the shard may delay this timeout. */
	if (!inside && shard->nr_workers <= 1)
		hwt_lockdep_shard(shard);
	hwt_shard_enter(shard);
	if (hwt_executing(shard, timeout, current))
		ret = -EDEADLK;
	while (!ret) {
		state = hwt_timeout_state(timeout);
		if (hwt_wait_over(timeout, state))
			break;
		now = ktime_get_ns();
		/*
		 * A cancel does not wake this task; the collection of the timeout does. If the
		 * timeout was collected already, or if the engine may be waiting for this task's
		 * callback, perhaps no collection follows: test again every reclaim_ms.
		 */
		look_ns = inside || timeout->owed ? hwt_reclaim_ms * (u64)NSEC_PER_MSEC : U64_MAX;
		until = ns_to_ktime(min_t(u64, min(end, hwt_add_ns(now, look_ns)), KTIME_MAX));
		/*
		 * Give up if no timeout of the shard can fire until this task's callback has
		 * returned, or if only a stop, which may wait for this callback, serves timeouts.
		 */
		if (current == shard->thread ||
		    (shard->nr_workers == 1 && current == shard->worker->runner.task))
			ret = -EDEADLK;
		else if (now >= end)
			ret = -ETIME;
		else if ((inside && shard->stopping) || signal_pending(current))
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

/* Put a mark into a list, before @next: an entry, or the head of the list for the end. */
static void hwt_mark_owe(struct hwt_mark *mark, struct list_head *next)
{
	*mark = (struct hwt_mark) { .timeout.ops = &hwt_mark_ops };
	list_add_tail(&mark->timeout.link, next);
}

/*
 * Put a mark at the end of shard->owed or of the due list. Wait until a runner has removed it, and
 * then until all callbacks that had begun by that time have returned.
 */
static void hwt_mark_wait(struct hwt_shard *shard, struct list_head *list)
	__must_hold(&shard->lock)
{
	struct hwt_mark mark;

	hwt_mark_owe(&mark, list);
	if (shard->nr_workers)
		hwt_worker_wake(shard);
	else
		hwt_engine_kick_locked(shard, 0);
	while (!mark.reached)
		hwt_wait_for(shard, &mark.timeout);
	hwt_wait_callbacks(shard, mark.call, NULL);
}

/* Collect submissions. Wait for ->cancelled and ->release of all timeouts on shard->owed. */
static void hwt_owed_wait(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	hwt_collect_submitted(shard);
	/* During a stop, the stop removes the mark. After a stop, no runner would remove it. */
	if (!shard->stopped)
		hwt_mark_wait(shard, &shard->owed);
}

/*
 * End the holds of the owner's timeouts on shard->owed, in this context. The lock is dropped for
 * the calls, so the mark "at" keeps the position in the list: all timeouts before "at" are of other
 * owners. A runner that has removed "at" has removed all entries before it, too. In that case,
 * begin anew at the first entry.
 */
static void hwt_owner_end_holds(struct hwt_shard *shard, struct hwt_runner *runner,
				const struct module *owner)
	__must_hold(&shard->lock)
{
	struct hwt_timeout *timeout;
	struct hwt_mark at, end;
	unsigned int n = 0;

	hwt_mark_owe(&at, shard->owed.next);
	hwt_mark_owe(&end, &shard->owed);
	while (!end.reached) {
		if (at.reached)
			hwt_mark_owe(&at, shard->owed.next);
		timeout = list_next_entry(&at.timeout, link);
		if (timeout == &end.timeout)
			break;
		if (!hwt_is_mark(timeout) && hwt_module_needs(timeout, owner))
			hwt_end_hold(shard, runner, timeout);
		else
			list_move(&at.timeout.link, &timeout->link);
		if (++n % HWT_STEP == 0)
			hwt_runner_break(shard, runner);
	}
	if (!at.reached)
		hwt_unlink(shard, &at.timeout);
	if (!end.reached)
		hwt_unlink(shard, &end.timeout);
}

/* hwt_wheel_barrier() for one shard. @owner: NULL if the caller is in no module. */
void hwt_shard_barrier(struct hwt_shard *shard, const struct module *owner)
{
	struct hwt_runner runner = { .task = current };

	hwt_lockdep_shard(shard);
	hwt_runner_enter(shard, &runner);
	if (!owner) {
		hwt_owed_wait(shard);
	} else {
		hwt_collect_submitted(shard);
		hwt_owner_end_holds(shard, &runner, owner);
		hwt_wait_callbacks(shard, shard->calls, owner);
	}
	hwt_runner_leave(shard, &runner);
}

/* Wait until the due timeouts of a shard have fired, and their callbacks have returned. */
int hwt_shard_flush(struct hwt_shard *shard)
{
	int ret;

	hwt_lockdep_shard(shard);
	spin_lock_irq(&shard->lock);
	/*
	 * A timeout that was armed while it was RUNNING or on shard->owed may not be in the buckets
	 * yet: wait until a runner has linked it.
	 */
	if (!shard->stopping)
		hwt_owed_wait(shard);
	while (!shard->stopping) {
		if (hwt_clock_moved(shard)) {
			/* The clock was set: wait until the engine has sorted the timeouts anew. */
			hwt_engine_kick_locked(shard, 0);
			hwt_wait_for(shard, shard);
		} else if (hwt_engine_advance(shard, hwt_engine_tick(shard))) {
			break;
		}
	}
	if (!shard->stopping)
		hwt_mark_wait(shard, &shard->buckets.due);
	/* A stop that has begun may have handed back due timeouts, instead of firing them. */
	ret = shard->stopping ? -ESHUTDOWN : 0;
	spin_unlock_irq(&shard->lock);
	return ret;
}
