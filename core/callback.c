// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the clients' functions, and the checks before and after them
 *
 * During a callback, hwt holds a lockdep map of the timeout. hwt_cancel_sync(), hwt_shutdown_sync()
 * and hwt_wait() take the same map, so lockdep reports a possible deadlock of a callback and a task
 * that waits for it. hwt also reports a callback that leaves its context changed, for example with
 * a lock held.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debug_locks.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/debug.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>

#include "core/callback.h"
#include "core/params.h"
#include "core/wait.h"
#include "core/wheel.h"

/* -- The context of a callback ----------------------------------------------- */

static void hwt_call_save(struct hwt_call *call)
{
	call->preempt = preempt_count();
	call->rcu = rcu_preempt_depth();
	call->locks = lockdep_depth(current);
	call->migrate = 0;
#if defined(CONFIG_SMP) && defined(CONFIG_PREEMPT_RT)
	call->migrate = current->migration_disabled;
#endif
	call->irqs_off = irqs_disabled();
}

static void hwt_call_check(const struct hwt_call *before)
{
	struct hwt_call now;

	hwt_call_save(&now);
	/* After its first report, lockdep counts no locks any more: do not compare the counts. */
	if (IS_ENABLED(CONFIG_LOCKDEP) && !debug_locks)
		now.locks = before->locks;
	if (likely(now.preempt == before->preempt && now.rcu == before->rcu &&
		   now.locks == before->locks && now.migrate == before->migrate &&
		   now.irqs_off == before->irqs_off))
		return;
	pr_err("BUG: callback %ps left its context changed: preempt count %08x, was %08x; RCU depth %d, was %d; locks held %d, was %d; migration disabled %d, was %d; interrupts %s, were %s\n",
	       before->fn, now.preempt, before->preempt, now.rcu, before->rcu, now.locks,
	       before->locks, now.migrate, before->migrate,
	       now.irqs_off ? "off" : "on", before->irqs_off ? "off" : "on");
	if (now.locks != before->locks)
		debug_show_held_locks(current);
	/* Restore the preemption count, as call_timer_fn() does. Other changes are not undone. */
	if (now.preempt != before->preempt)
		preempt_count_set(before->preempt);
}

/* -- Lockdep ---------------------------------------------------------------- */

#ifdef CONFIG_LOCKDEP
/*
 * Each callback holds this map. While a task holds it, hwt takes no map of another timeout: the
 * timeout of the callback and the other one may have the same lockdep class, and lockdep would
 * report a recursion.
 */
static struct lockdep_map hwt_inside_map =
	STATIC_LOCKDEP_MAP_INIT("hwt_callback", &hwt_inside_map);

/*
 * Return the subclass of the lockdep maps of a shard's timeouts. Lockdep reports a class that
 * softirqs take and that tasks hold with interrupts on. Softirqs take the maps of BH shards, and
 * tasks hold those of other shards. The subclass keeps them apart, even if one line of code
 * initialises timeouts of both kinds, which then have the same class.
 */
static unsigned int hwt_lockdep_subclass(const struct hwt_shard *shard)
{
	return hwt_is_bh(shard) ? SINGLE_DEPTH_NESTING : 0;
}

/*
 * Tell lockdep that the caller will wait for a timeout's callback. In a callback, do nothing,
 * because lockdep might report a false recursion (hwt_inside_map).
 */
void hwt_lockdep_sync(struct hwt_timeout *timeout)
{
	unsigned long flags;

	if (lock_is_held(&hwt_inside_map))
		return;
	/* Softirqs take such maps, too: with interrupts on, lockdep would report a deadlock. */
	local_irq_save(flags);
	lock_acquire_exclusive(&timeout->lockdep_map, hwt_lockdep_subclass(timeout->shard), 0,
			       NULL, _THIS_IP_);
	lock_map_release(&timeout->lockdep_map);
	local_irq_restore(flags);
}

/* Tell lockdep that the caller will wait for all callbacks of a shard, and is in none of them. */
void hwt_lockdep_shard(struct hwt_shard *shard)
{
	unsigned long flags;

	local_irq_save(flags);
	lock_map_acquire(&shard->lockdep_map);
	lock_map_release(&shard->lockdep_map);
	local_irq_restore(flags);
}

/*
 * Take the lockdep maps for a call. The shard's map stands for all callbacks of the shard, and is
 * taken by the engine and workers only. A _sync call that runs a callback itself must not take the
 * shard's map: lockdep would assume that the call waits for all callbacks of the shard, and would
 * report those that take a lock which this task holds.
 */
void hwt_lockdep_begin(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_call *call)
{
	/* In a softirq, take the maps even if the interrupted task holds hwt_inside_map. */
	call->nested = !hwt_is_bh(shard) && lock_is_held(&hwt_inside_map);
	lock_map_acquire_read(&hwt_inside_map);
	if (call->nested)
		return;
	if (runner->thread)
		lock_map_acquire(&shard->lockdep_map);
	lock_acquire_exclusive(&call->lockdep_map, hwt_lockdep_subclass(shard), 0, NULL,
			       _THIS_IP_);
}

void hwt_lockdep_end(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_call *call)
{
	if (!call->nested) {
		lock_map_release(&call->lockdep_map);
		if (runner->thread)
			lock_map_release(&shard->lockdep_map);
	}
	lock_map_release(&hwt_inside_map);
}
#endif

/* -- Slow callbacks -------------------------------------------------------- */

static u64 hwt_cpu_time(void)
{
	/* An update by the scheduler during the read makes the value inexact, which is harmless. */
	return data_race(current->se.sum_exec_runtime);
}

/* Report a slow callback. The reports of each shard, and those of all shards, are rate-limited. */
static noinline void hwt_slow_report(struct hwt_shard *shard, const void *fn, u64 took, u64 cpu_ns)
{
	/* @cpu_ns may be up to a scheduler tick too large: report at most @took. */
	if (__ratelimit(&shard->slow_limit))
		pr_warn_ratelimited("%s: callback %ps took %llu us, %llu us of that on a CPU\n",
				    shard->wheel->name, fn, div_u64(took, NSEC_PER_USEC),
				    div_u64(min(cpu_ns, took), NSEC_PER_USEC));
}

/* -- Timing ---------------------------------------------------------------- */

/*
 * A reading of the clock may take as long as a quick call, which takes up to HWT_QUICK_NS. So after
 * HWT_QUICK_CALLS quick calls in a row, hwt_call_time() times only some calls.
 */
#define HWT_QUICK_NS	(2 * NSEC_PER_USEC)
#define HWT_QUICK_CALLS	16

void hwt_runner_read_clock(struct hwt_runner *runner)
{
	runner->jiffies = READ_ONCE(jiffies);
	runner->stamp = ktime_get_ns();
}

/*
 * Return the duration of a call that has just returned, ns; 0 if it is not known. After
 * HWT_QUICK_CALLS quick calls in a row, time only each HWT_QUICK_CALLS-th call, and each call
 * during which jiffies changed, so that a call longer than a jiffy is always timed. The duration
 * then counts from the last reading of the clock, so it includes earlier calls, of less than a
 * jiffy together.
 */
static u64 hwt_call_time(struct hwt_runner *runner, const struct hwt_call *call)
{
	bool sampled = runner->quick >= HWT_QUICK_CALLS;
	u64 took;

	runner->quick++;
	if (sampled && runner->quick % HWT_QUICK_CALLS && READ_ONCE(jiffies) == runner->jiffies)
		return 0;
	hwt_runner_read_clock(runner);
	took = runner->stamp - call->began;
	if (took > HWT_QUICK_NS * (sampled ? HWT_QUICK_CALLS : 1))
		runner->quick = 0;
	/* A sampled duration includes up to a jiffy of earlier calls: ignore it unless longer. */
	return !sampled || took > TICK_NSEC ? took : 0;
}

/* -- Calling --------------------------------------------------------------- */

/*
 * Prepare to call @fn, a client's function, for a timeout, and fill in @call. The timeout is
 * RUNNING, so its memory is valid. If @fn is shard->clock_set, which is called for no timeout,
 * @timeout is the dummy shard->clock_timeout. Releases the shard's lock.
 */
void hwt_call_begin(struct hwt_shard *shard, struct hwt_runner *runner,
		    struct hwt_timeout *timeout, const void *fn,
		    struct hwt_call *call)
	__releases(&shard->lock)
{
	runner->fn = fn;
	/* hwt_engine_kick() reads this unlocked, and wakes no engine that is in a callback. */
	WRITE_ONCE(runner->current_timeout, timeout);
	spin_unlock_irq(&shard->lock);
	if (!runner->stamp)
		runner->quick = 0;
	if (!runner->stamp || READ_ONCE(jiffies) != runner->jiffies)
		hwt_runner_read_clock(runner);
	call->fn = fn;
	call->began = runner->stamp;
	call->cpu_ns = hwt_cpu_time();
	hwt_call_copy(call, timeout);
	hwt_lockdep_begin(shard, runner, call);
	hwt_call_save(call);
}

/* After a client's function: check preemption, locks and RCU, and account the time of the call. */
void hwt_call_end(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_call *call)
	__acquires(&shard->lock)
{
	unsigned int slow_us = READ_ONCE(hwt_slow_callback_us);
	u64 took;

	hwt_call_check(call);
	hwt_lockdep_end(shard, runner, call);
	took = hwt_call_time(runner, call);
	if (unlikely(slow_us && took > slow_us * (u64)NSEC_PER_USEC))
		hwt_slow_report(shard, call->fn, took, hwt_cpu_time() - call->cpu_ns);
	if (cond_resched())
		runner->stamp = 0;
	spin_lock_irq(&shard->lock);
	if (unlikely(took > shard->slowest_ns))
		WRITE_ONCE(shard->slowest_ns, took);
	/*
	 * hwt_engine_kick() may still find the callback, and not wake the engine. The engine then
	 * finds shard->kicked before it sleeps (wait.state in hwt_engine_sleep_until()).
	 */
	WRITE_ONCE(runner->current_timeout, NULL);
}

/* Report a function that was called in a softirq and has changed the preemption count. */
void hwt_call_unbalanced(const void *fn, int before)
{
	pr_err("BUG: callback %ps left its context changed: preempt count %08x, was %08x\n",
	       fn, preempt_count(), before);
	preempt_count_set(before);
}

/*
 * Read the clock after a call in a softirq during which jiffies changed, and report a call that
 * took long. Return its duration, ns, which may include up to a jiffy of earlier calls.
 */
u64 hwt_call_timed(struct hwt_shard *shard, const void *fn, u64 began)
{
	unsigned int slow_us = READ_ONCE(hwt_slow_callback_us);
	u64 took;

	hwt_runner_read_clock(&shard->engine);
	took = shard->engine.stamp - began;
	/* In a softirq, a function does not sleep, so @took is also its time on a CPU. */
	if (slow_us && took > slow_us * (u64)NSEC_PER_USEC)
		hwt_slow_report(shard, fn, took, took);
	return took;
}

/*
 * Call the ->release of a timeout. Its hold is over, so only the address of the timeout is used.
 * The caller has passed @call to hwt_call_prepare() before the end of the hold, and call->fn is not
 * NULL. Drops the shard's lock around the call.
 */
void hwt_call_release(struct hwt_shard *shard, struct hwt_runner *runner,
		      struct hwt_timeout *timeout, struct hwt_call *call)
	__must_hold(&shard->lock)
{
	void (*release)(struct hwt_timeout *timeout) = call->fn;

	/* Wake hwt_wait() now, because it does not wait for the ->release. */
	hwt_wake(shard, &timeout->link);
	runner->fn = release;
	runner->releasing = true;
	WRITE_ONCE(runner->current_timeout, timeout);
	spin_unlock_irq(&shard->lock);
	hwt_lockdep_begin(shard, runner, call);
	hwt_call_save(call);
	release(timeout);
	hwt_call_check(call);
	hwt_lockdep_end(shard, runner, call);
	/* The ->release is not timed, and may have taken long: read the clock anew. */
	runner->stamp = 0;
	spin_lock_irq(&shard->lock);
	WRITE_ONCE(runner->current_timeout, NULL);
	runner->releasing = false;
}
