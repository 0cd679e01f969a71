// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calling back: what happens around the client's functions
 *
 * As call_timer_fn() and process_one_work() do: a callback holds a lockdep map that the _sync calls
 * take too, so that lockdep reports a deadlock between a callback and its waiter before it happens.
 * A callback that leaves its context changed (a lock, the preemption count, an RCU section,
 * interrupts) is reported by name. The preemption count is restored, and the engine goes on.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/debug.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>

#include "core/callback.h"
#include "core/registry.h"
#include "core/sync.h"

static int hwt_migrate_depth(void)
{
#if defined(CONFIG_SMP) && defined(CONFIG_PREEMPT_RT)
	return current->migration_disabled;
#else
	return 0;
#endif
}

static int hwt_locks_depth(void)
{
#ifdef CONFIG_LOCKDEP
	return lockdep_depth(current);
#else
	return 0;
#endif
}

static void hwt_call_look(struct hwt_call *call)
{
	call->preempt = preempt_count();
	call->rcu = rcu_preempt_depth();
	call->locks = hwt_locks_depth();
	call->migrate = hwt_migrate_depth();
	call->irqs_off = irqs_disabled();
}

static void hwt_call_check(const struct hwt_call *before)
{
	struct hwt_call now;

	hwt_call_look(&now);
#ifdef CONFIG_LOCKDEP
	/* After its first report lockdep knows of none. */
	if (!debug_locks)
		now.locks = before->locks;
#endif
	if (likely(now.preempt == before->preempt && now.rcu == before->rcu &&
		   now.locks == before->locks && now.migrate == before->migrate &&
		   now.irqs_off == before->irqs_off))
		return;
	pr_err("BUG: callback %ps left its context changed: preempt count %08x, was %08x; RCU depth %d, was %d; locks held %d, was %d; migration disabled %d, was %d; interrupts %s, were %s\n",
	       before->fn, now.preempt, before->preempt, now.rcu, before->rcu,
	       now.locks, before->locks, now.migrate, before->migrate,
	       now.irqs_off ? "off" : "on", before->irqs_off ? "off" : "on");
	if (now.locks != before->locks)
		debug_show_held_locks(current);
	/* As call_timer_fn() does. What else was left is reported, and stays. */
	if (now.preempt != before->preempt)
		preempt_count_set(before->preempt);
}

/* -- Lockdep ---------------------------------------------------------------- */

#ifdef CONFIG_LOCKDEP
/*
 * Held in every callback. A callback may wait for timeouts of its own class: its neighbours, or
 * those of a group, on other wheels too. So inside of one the timeouts' maps are left out.
 */
static struct lockdep_map hwt_inside_map =
	STATIC_LOCKDEP_MAP_INIT("hwt_callback", &hwt_inside_map);

/**
 * hwt_lockdep_sync() - the caller is going to wait for a timeout's callback
 * @timeout: the timeout
 */
void hwt_lockdep_sync(struct hwt_timeout *timeout)
{
	if (lock_is_held(&hwt_inside_map))
		return;
	lock_map_acquire(&timeout->lockdep_map);
	lock_map_release(&timeout->lockdep_map);
}

/**
 * hwt_lockdep_wheel() - the caller is going to wait for callbacks of all timeouts of a wheel
 * @wheel: the wheel; the caller is in none of its callbacks
 */
void hwt_lockdep_wheel(struct hwt_wheel *wheel)
{
	lock_map_acquire(&wheel->lockdep_map);
	lock_map_release(&wheel->lockdep_map);
}

/*
 * A callback that a _sync runs holds the map of its timeout only: the locks of the caller of a
 * _sync do not wait for other callbacks of the wheel. A release may free the timeout, so a copy of
 * its map is held.
 */
static void hwt_lockdep_begin(struct hwt_wheel *wheel, struct hwt_runner *runner,
			      struct hwt_call *call)
{
	call->nested = lock_is_held(&hwt_inside_map);
	lock_map_acquire_read(&hwt_inside_map);
	if (call->nested)
		return;
	if (runner->thread)
		lock_map_acquire(&wheel->lockdep_map);
	lock_map_acquire(&call->lockdep_map);
}

static void hwt_lockdep_end(struct hwt_wheel *wheel, struct hwt_runner *runner,
			    struct hwt_call *call)
{
	if (!call->nested) {
		lock_map_release(&call->lockdep_map);
		if (runner->thread)
			lock_map_release(&wheel->lockdep_map);
	}
	lock_map_release(&hwt_inside_map);
}

#else
static void hwt_lockdep_begin(struct hwt_wheel *wheel, struct hwt_runner *runner,
			      struct hwt_call *call)
{
}

static void hwt_lockdep_end(struct hwt_wheel *wheel, struct hwt_runner *runner,
			    struct hwt_call *call)
{
}
#endif

/* -- Slow callbacks -------------------------------------------------------- */

/* How many functions that were reported are remembered. */
#define HWT_SLOW_SITES	64

/* The latest ones, and how many there were. Protected by the lock. */
static const void *hwt_slow_sites[HWT_SLOW_SITES];
static unsigned int hwt_slow_count;
static DEFINE_SPINLOCK(hwt_slow_lock);

static bool hwt_slow_known(const void *fn)
	__must_hold(&hwt_slow_lock)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(hwt_slow_sites); i++)
		if (hwt_slow_sites[i] == fn)
			return true;
	return false;
}

/* Once for each function, as far as that can be remembered. */
static void hwt_slow_report(struct hwt_wheel *wheel, const struct hwt_call *call, u64 took)
{
	/* As of the last tick or switch before, so it may be more than the call took. */
	u64 cpu_ns = min(current->se.sum_exec_runtime - call->cpu_ns, took);
	const void *fn = call->fn;
	bool known;

	spin_lock(&hwt_slow_lock);
	known = hwt_slow_known(fn);
	if (!known)
		hwt_slow_sites[hwt_slow_count++ % ARRAY_SIZE(hwt_slow_sites)] = fn;
	spin_unlock(&hwt_slow_lock);
	if (!known)
		pr_warn("%s: callback %ps took %llu us, %llu us of that on a CPU, which delays others (said once for each callback over slow_callback_us)\n",
			wheel->name, fn, div_u64(took, NSEC_PER_USEC),
			div_u64(cpu_ns, NSEC_PER_USEC));
}

/**
 * hwt_slow_forget_sites() - a module goes, and others may come where its functions are
 * @module: the module
 */
void hwt_slow_forget_sites(struct module *module)
{
	unsigned int i;

	spin_lock(&hwt_slow_lock);
	for (i = 0; i < ARRAY_SIZE(hwt_slow_sites); i++)
		if (within_module((unsigned long)hwt_slow_sites[i], module))
			hwt_slow_sites[i] = NULL;
	spin_unlock(&hwt_slow_lock);
}

static void hwt_slow_set(struct hwt_slow *slow, const void *fn, u64 ns)
{
	/* Pair with the reads in hwt_wheel_get_stats(), which has no lock. */
	WRITE_ONCE(slow->fn, fn);
	WRITE_ONCE(slow->ns, ns);
}

/* Of each function its slowest call. */
static void hwt_slow_note(struct hwt_wheel *wheel, const void *fn, u64 took)
	__must_hold(&wheel->lock)
{
	struct hwt_slow *slow = wheel->slow;
	unsigned int n = 0;

	/* Its own place, else a free one, else that of the quickest of them. */
	while (n < HWT_SLOW_MAX - 1 && slow[n].fn && slow[n].fn != fn)
		n++;
	if (took <= slow[n].ns)
		return;
	for (; n && slow[n - 1].ns < took; n--)
		hwt_slow_set(&slow[n], slow[n - 1].fn, slow[n - 1].ns);
	hwt_slow_set(&slow[n], fn, took);
}

/**
 * hwt_slow_forget_calls() - a module goes: nothing that is said later may name a function of it
 * @wheel:  the wheel
 * @module: the module
 */
void hwt_slow_forget_calls(struct hwt_wheel *wheel, struct module *module)
{
	struct hwt_slow *slow = wheel->slow;
	unsigned int from, to = 0;

	spin_lock(&wheel->lock);
	for (from = 0; from < HWT_SLOW_MAX; from++)
		if (!within_module((unsigned long)slow[from].fn, module))
			hwt_slow_set(&slow[to++], slow[from].fn, slow[from].ns);
	while (to < HWT_SLOW_MAX)
		hwt_slow_set(&slow[to++], NULL, 0);
	spin_unlock(&wheel->lock);
}

/* -- Calling --------------------------------------------------------------- */

/**
 * hwt_call_begin() - get ready to call a client's function
 * @wheel:   the wheel; its lock is held, and is released
 * @runner:  the runner that calls
 * @timeout: RUNNING, so that it stays
 * @fn:      what will be called, for the reports
 * @call:    to be given to hwt_call_end()
 */
void hwt_call_begin(struct hwt_wheel *wheel, struct hwt_runner *runner,
		    struct hwt_timeout *timeout, const void *fn,
		    struct hwt_call *call)
	__releases(&wheel->lock)
{
	runner->fn = fn;
	/* hwt_wheel_kick() looks at it, any time: see hwt_call_end(). */
	WRITE_ONCE(runner->current_timeout, timeout);
	spin_unlock(&wheel->lock);
	if (!runner->stamp)
		runner->stamp = ktime_get_ns();
	call->fn = fn;
	call->began = runner->stamp;
	call->cpu_ns = current->se.sum_exec_runtime;
	hwt_call_copy(call, timeout);
	hwt_lockdep_begin(wheel, runner, call);
	hwt_call_look(call);
}

/**
 * hwt_call_end() - the client's function has returned
 * @wheel:   the wheel; its lock is taken
 * @runner:  the runner that called
 * @call:    from hwt_call_begin()
 */
void hwt_call_end(struct hwt_wheel *wheel, struct hwt_runner *runner, struct hwt_call *call)
	__acquires(&wheel->lock)
{
	unsigned int slow_us = READ_ONCE(hwt_slow_callback_us);
	u64 took;

	hwt_call_check(call);
	hwt_lockdep_end(wheel, runner, call);
	/* The end of this one is the beginning of the next: one look at the clock. */
	runner->stamp = ktime_get_ns();
	took = runner->stamp - call->began;
	if (unlikely(slow_us && took > slow_us * (u64)NSEC_PER_USEC))
		hwt_slow_report(wheel, call, took);
	if (cond_resched())
		runner->stamp = 0;
	spin_lock(&wheel->lock);
	/* Pairs with hwt_wheel_kick(), by way of set_current_state() before the engine waits. */
	WRITE_ONCE(runner->current_timeout, NULL);
	hwt_slow_note(wheel, call->fn, took);
}

/**
 * hwt_call_release() - call the ->release of a timeout whose hold has ended
 * @wheel:   the wheel; its lock is held, and is dropped meanwhile
 * @runner:  the runner that calls
 * @timeout: not held any more, so it must not be touched
 * @call:    from hwt_call_prepare() before the hold ended, with a release
 */
void hwt_call_release(struct hwt_wheel *wheel, struct hwt_runner *runner,
		      struct hwt_timeout *timeout, struct hwt_call *call)
	__must_hold(&wheel->lock)
{
	void (*release)(struct hwt_timeout *timeout) = call->fn;

	runner->fn = release;
	runner->releasing = true;
	WRITE_ONCE(runner->current_timeout, timeout);
	spin_unlock(&wheel->lock);
	hwt_lockdep_begin(wheel, runner, call);
	hwt_call_look(call);
	release(timeout);
	hwt_call_check(call);
	hwt_lockdep_end(wheel, runner, call);
	/* It may have taken its time. */
	runner->stamp = 0;
	spin_lock(&wheel->lock);
	WRITE_ONCE(runner->current_timeout, NULL);
	runner->releasing = false;
}
