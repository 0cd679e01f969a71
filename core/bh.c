// SPDX-License-Identifier: GPL-2.0-only
/*
 * BH wheels: passes in softirqs, driven by timers
 *
 * A shard of a BH wheel has no thread. Two timers drive it, and both run a pass in their softirq. A
 * timer of timer_list, which costs least, is used for near times on CLOCK_MONOTONIC, if a tick is
 * at least a jiffy. An hrtimer is used for all others. shard->wake_tick is the tick of the next
 * pass. A caller that lowers it for an earlier timeout starts a timer for the new tick.
 */
#include <linux/bottom_half.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/processor.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <linux/timer.h>

#include "hwt_compat.h"
#include "core/bh.h"
#include "core/callback.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/debug.h"
#include "core/engine.h"
#include "core/fire.h"
#include "core/state.h"
#include "core/stop.h"
#include "core/submit.h"
#include "core/trace.h"
#include "core/wait.h"

/* Read the clock again after this many callbacks at the latest, or when jiffies have changed. */
#define HWT_BH_CALLS		16
/* A timer of timer_list is exact up to this many jiffies ahead; a later one may fire too late. */
#define HWT_JIFFIES_EXACT	60

/* -- Timers ---------------------------------------------------------------- */

/* Start a timer for @ns, on the shard's clock; U64_MAX: start none. */
static void hwt_bh_timer_start(struct hwt_shard *shard, u64 ns)
	__must_hold(&shard->bh.lock)
{
	/* Read jiffies first: if they change meanwhile, the timer is early, which does no harm. */
	unsigned long now = READ_ONCE(jiffies);
	u64 left;

	shard->bh.timer_ns = ns;
	if (ns == U64_MAX)
		return;
	if (shard->bh.by_jiffies) {
		/*
		 * Jiffies begin at multiples of TICK_NSEC. A timer of timer_list fires in the jiffy
		 * after the one that it is set for, hence the "- 1" below.
		 */
		left = div_u64(ns + TICK_NSEC - 1, TICK_NSEC) - div_u64(ktime_get_ns(), TICK_NSEC);
		if ((s64)left <= HWT_JIFFIES_EXACT) {
			mod_timer(&shard->bh.timer, now + max_t(s64, left, 1) - 1);
			return;
		}
	}
	hrtimer_start(&shard->bh.hrtimer, ns_to_ktime(ns), HRTIMER_MODE_ABS_SOFT);
}

/*
 * Return the time for which the shard needs a timer, ns on its clock. Return U64_MAX if it needs no
 * timer, or if a pass is under way: the pass starts a timer at its end.
 */
static u64 hwt_bh_wake_ns(struct hwt_shard *shard)
{
	u64 tick = atomic64_read(&shard->wake_tick);

	return tick ? hwt_tick_to_ns(shard, tick) : U64_MAX;
}

/*
 * Start a timer for a wake_tick that was lowered, unless one is started for an earlier time.
 * Callers may take the lock in another order than they have lowered wake_tick, so each reads the
 * lowest tick under the lock. A timer fires on the CPU that starts it, so an isolated CPU makes
 * another CPU start the timer.
 */
static void hwt_bh_timer_lower(struct hwt_shard *shard)
{
	unsigned int cpu = raw_smp_processor_id();
	unsigned long flags;
	u64 ns;

	if (unlikely(!hwt_cpu_housekeeping(cpu)))
		cpu = hwt_cpu_any_housekeeping();
	raw_spin_lock_irqsave(&shard->bh.lock, flags);
	ns = hwt_bh_wake_ns(shard);
	if (ns < shard->bh.timer_ns && likely(cpu == raw_smp_processor_id())) {
		hwt_bh_timer_start(shard, ns);
	} else if (ns < shard->bh.timer_ns) {
		/*
		 * This does nothing if the other CPU has yet to begin an earlier call. No barrier:
		 * hwt_bh_call() takes the lock before it reads wake_tick.
		 */
		smp_call_function_single_async(cpu, &shard->bh.call);
		shard->bh.called = true;
	}
	raw_spin_unlock_irqrestore(&shard->bh.lock, flags);
}

/* Start a timer on this CPU, because an isolated CPU has asked for it. Interrupts are off. */
static void hwt_bh_call(void *shard)
{
	hwt_bh_timer_lower(shard);
}

/* Start a timer for a kick that was made in NMI or with interrupts off. */
static void hwt_bh_irq_work(struct irq_work *work)
{
	hwt_bh_timer_lower(container_of(work, struct hwt_shard, irq_work));
}

/*
 * Make a BH shard run a pass at @tick or, if @tick has begun, at the next tick, so that all
 * timeouts that are due by then share the pass and its interrupt. Any context. @direct: the caller
 * holds no lock of the scheduler or of timers, and is not in NMI.
 */
void hwt_bh_kick(struct hwt_shard *shard, u64 tick, bool direct)
{
	u64 wake;

	/*
	 * Barrier bh.kick, pairs with sleep.mb in hwt_engine_publish(): if this CPU reads a
	 * wake_tick of 0, it does not kick, because a pass has yet to store the next wake_tick. The
	 * last look for work, which follows that store, finds what the caller has changed before
	 * the kick (shard->reclaim, the clock).
	 */
	smp_mb();
	wake = atomic64_read(&shard->wake_tick);
	if (tick >= wake) {
		/* If its CPU has gone offline, the irq_work may not come: do what it would do. */
		if (direct && unlikely(irq_work_is_pending(&shard->irq_work)))
			hwt_bh_timer_lower(shard);
		return;
	}
	tick = max(tick, hwt_ns_to_tick(shard, hwt_clock_now(shard)) + 1);
	preempt_disable();
	/*
	 * Barrier bh.lower, pairs with kernel.irq_work in irq_work_run(): a pending irq_work reads
	 * the lower tick, because the tick is stored before irq_work_queue() below tests whether
	 * the irq_work is pending. The pass at the lower tick finds the caller's timeout, which was
	 * pushed, or got its new state, before this (pass.mb).
	 */
	while (tick < wake && !atomic64_try_cmpxchg(&shard->wake_tick, (s64 *)&wake, tick))
		;
	/*
	 * Barrier bh.irq, pairs with kernel.irq_work in irq_work_run(): if the work is pending
	 * already, irq_work_queue() does nothing. Then hwt_bh_irq_work() has yet to read wake_tick,
	 * and reads the tick stored above.
	 */
	if (tick < wake && !direct)
		irq_work_queue(&shard->irq_work);
	else if (tick < wake || (direct && unlikely(irq_work_is_pending(&shard->irq_work))))
		hwt_bh_timer_lower(shard);
	preempt_enable();
}

/* -- Waiting for callbacks -------------------------------------------------- */

#ifdef CONFIG_PREEMPT_RT
/*
 * A pass holds this lock, and a task that waits for a callback takes it: so the task lends its
 * priority to the softirq's thread, which the task may have preempted.
 */
static void hwt_bh_expiry_lock(struct hwt_shard *shard)
	__acquires(&shard->bh.expiry)
{
	spin_lock(&shard->bh.expiry);
}

static void hwt_bh_expiry_unlock(struct hwt_shard *shard)
	__releases(&shard->bh.expiry)
{
	spin_unlock(&shard->bh.expiry);
}

/* Between two callbacks, let the tasks that wait for the first one take bh.expiry, and go on. */
static void hwt_bh_expiry_break(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	if (likely(!atomic_read(&shard->bh.waiters)))
		return;
	spin_unlock_irq(&shard->lock);
	spin_unlock(&shard->bh.expiry);
	spin_lock(&shard->bh.expiry);
	spin_lock_irq(&shard->lock);
	shard->engine.stamp = 0;
}

/*
 * Sleep until the pass of a BH shard releases bh.expiry, between two callbacks or at its end. Until
 * then, the lock lends the waiter's priority to the pass. The caller tests its condition again.
 */
void hwt_bh_relax(struct hwt_shard *shard)
{
	atomic_inc(&shard->bh.waiters);
	spin_lock_bh(&shard->bh.expiry);
	atomic_dec(&shard->bh.waiters);
	spin_unlock_bh(&shard->bh.expiry);
}
#else
static void hwt_bh_expiry_lock(struct hwt_shard *shard) { }
static void hwt_bh_expiry_unlock(struct hwt_shard *shard) { }
static void hwt_bh_expiry_break(struct hwt_shard *shard) { }

void hwt_bh_relax(struct hwt_shard *shard)
{
	cpu_relax();
}
#endif

/* -- Firing ---------------------------------------------------------------- */

/* Store the timeout whose callback is about to be called, or NULL, in the note. */
static __always_inline void hwt_bh_note(struct hwt_shard *shard, struct hwt_timeout *timeout)
{
	/*
	 * Barrier bh.done, pairs with running.done in hwt_bh_running(): a caller that finds this
	 * value in current_timeout sees what all earlier callbacks of the shard wrote.
	 */
	smp_store_release(&shard->engine.current_timeout, timeout);
}

/*
 * The part of hwt_bh_claim() for a timeout that is periodic or on CLOCK_REALTIME, was cancelled or
 * put off to a later tick, or is changed by another CPU meanwhile. On entry, the timeout is in
 * current_timeout. If it does not fire, set current_timeout to NULL, and link the timeout again
 * unless it was cancelled.
 */
static noinline bool hwt_bh_claim_slow(struct hwt_shard *shard, struct hwt_timeout *timeout,
				       u64 *tick)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout), next = 0;
	struct hwt_change change;
	struct hwt_period period;

	/*
	 * Barrier state.note, pairs with running.rmb in hwt_bh_running(): a CPU that sees the state
	 * after this change sees current_timeout as hwt_bh_claim() has stored it. Barrier
	 * state.fire, pairs with state.arm in hwt_arm(), earlier.mb in __hwt_schedule() and
	 * earlier.touched in hwt_arm_earlier(): the callback sees what was written before the
	 * timeout was scheduled.
	 */
	do {
		if (old & HWT_F_PERIODIC) {
			hwt_period_read(shard, timeout, !(old & HWT_F_REARM), &period);
			next = hwt_deadline_to_tick(shard, period.next_ns);
		}
		change = hwt_state_fire_bh(old, shard->buckets.cursor,
					   hwt_touched_tick(shard, timeout), next);
		if (hwt_clock_recheck(shard, timeout)) {
			hwt_bh_note(shard, NULL);
			return false;
		}
		if (change.action != HWT_CALL && change.state == old)
			break;
	} while (!hwt_state_change(timeout, &old, change.state));

	hwt_debug_track(timeout, change.state);
	if (change.action != HWT_CALL) {
		hwt_bh_note(shard, NULL);
		if (change.action == HWT_LINK && change.state != old)
			hwt_touch_again(shard, timeout, change.state);
		if (change.action == HWT_LINK)
			hwt_link(shard, timeout, hwt_timeout_state(timeout));
		return false;
	}
	hwt_due_count(shard, old);
	if (old & HWT_F_PERIODIC) {
		hwt_period_store(shard, timeout, &period);
		hwt_link(shard, timeout, change.state);
	}
	*tick = hwt_state_tick(old);
	return true;
}

/*
 * Set current_timeout to a timeout that was taken off the due list, and end its hold or, if it is
 * periodic, link it again. Set *@tick to the tick for which it was due. Return false if it does not
 * fire, because it was cancelled or its deadline was moved.
 */
static __always_inline bool hwt_bh_claim(struct hwt_shard *shard, struct hwt_timeout *timeout,
					 u64 *tick)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;

	hwt_bh_note(shard, timeout);
	change = hwt_state_fire_bh(old, shard->buckets.cursor, hwt_touched_tick(shard, timeout), 0);
	/*
	 * Barrier state.note, pairs with running.rmb in hwt_bh_running(): a CPU that sees the state
	 * after this change sees current_timeout as stored above. Barrier state.fire, pairs with
	 * state.arm in hwt_arm(), earlier.mb in __hwt_schedule() and earlier.touched in
	 * hwt_arm_earlier(): the callback sees what was written before the timeout was scheduled.
	 */
	if (unlikely(change.action != HWT_CALL || (old & HWT_F_PERIODIC) ||
		     shard->clock == HWT_CLOCK_REALTIME ||
		     !hwt_state_change(timeout, &old, change.state)))
		return hwt_bh_claim_slow(shard, timeout, tick);
	hwt_debug_track(timeout, change.state);
	hwt_due_count(shard, old);
	*tick = hwt_state_tick(old);
	return true;
}

/* Prepare to call a client's function, once current_timeout is set. Drops the shard's lock. */
static __always_inline void hwt_bh_call_begin(struct hwt_shard *shard, const void *fn,
					      struct hwt_call *call)
	__releases(&shard->lock)
{
	struct hwt_runner *engine = &shard->engine;

	engine->call = ++shard->calls;
	engine->fn = fn;
	spin_unlock_irq(&shard->lock);
	if (unlikely(!engine->stamp || !(++engine->quick % HWT_BH_CALLS)))
		hwt_runner_read_clock(engine);
	call->fn = fn;
	call->began = engine->stamp;
	call->preempt = preempt_count();
	hwt_lockdep_begin(shard, engine, call);
}

/*
 * Check the context after the function has returned, and take the lock. Time the call only if
 * jiffies have changed since the clock was last read. So a call that is shorter than a jiffy may
 * remain unreported, even if it took longer than slow_callback_us.
 */
static __always_inline void hwt_bh_call_end(struct hwt_shard *shard, struct hwt_call *call)
	__acquires(&shard->lock)
{
	u64 took = 0;

	hwt_lockdep_end(shard, &shard->engine, call);
	if (unlikely(preempt_count() != call->preempt))
		hwt_call_unbalanced(call->fn, call->preempt);
	if (unlikely(READ_ONCE(jiffies) != shard->engine.jiffies))
		took = hwt_call_timed(shard, call->fn, call->began);
	spin_lock_irq(&shard->lock);
	if (unlikely(took > shard->slowest_ns))
		WRITE_ONCE(shard->slowest_ns, took);
}

/* Take a timeout off the due list, and fire it if it is still due. Drops the shard's lock. */
static __always_inline void hwt_bh_fire_one(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	void (*expire)(struct hwt_timeout *timeout) = timeout->ops->expire;
	struct hwt_call call;
	struct hwt_due due;
	u64 began;

	hwt_call_copy(&call, timeout);
	if (!hwt_due_take(shard, timeout, &due) || !hwt_bh_claim(shard, timeout, &due.tick))
		return;
	hwt_bh_call_begin(shard, expire, &call);
	/* Only this pass changes clock_offset, and never during a callback: read it unlocked. */
	began = hwt_call_began(shard, &call, shard->clock_offset);
	/* @began may be a cached time from before the tick: do not trace the timeout as early. */
	if (trace_hwt_expire_entry_enabled())
		trace_hwt_expire_entry(shard, timeout, expire, due.tick,
				       max(began, hwt_tick_to_ns(shard, due.tick)));
	expire(timeout);
	trace_hwt_expire_exit(shard, timeout, expire);
	hwt_bh_call_end(shard, &call);
	hwt_bh_note(shard, NULL);
	hwt_lateness_count(shard, began, &due);
	hwt_wake_call(shard, &shard->engine, timeout);
	hwt_bh_expiry_break(shard);
}

/*
 * Take up to @max timeouts off the due list, and fire them. Return the number taken. At least one
 * is taken, even if the softirq has spent its time on other work, so that timeouts do fire.
 */
unsigned int hwt_bh_fire(struct hwt_shard *shard, unsigned int max)
	__must_hold(&shard->lock)
{
	unsigned int n = 0;

	while (n < max && !list_empty(&shard->buckets.due) && !shard->stopping &&
	       !hwt_clock_moved(shard) && (!n || !hwt_bh_spent(shard))) {
		hwt_bh_fire_one(shard, hwt_due_pick(shard, n & 1));
		if (++n % HWT_STEP == 0)
			hwt_runner_break(shard, &shard->engine);
	}
	return n;
}

/* Take the first timeout off the due list in a stop. If it is armed, call @fn, and return true. */
static bool hwt_bh_hand_back_one(struct hwt_shard *shard, hwt_handback_fn fn, void *arg)
	__must_hold(&shard->lock)
{
	struct hwt_timeout *timeout = list_first_entry(&shard->buckets.due, struct hwt_timeout,
						       link);
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;
	struct hwt_call call;
	struct hwt_due due;

	hwt_call_copy(&call, timeout);
	if (!hwt_due_take(shard, timeout, &due))
		return false;
	hwt_bh_note(shard, timeout);
	/*
	 * Barrier state.note, pairs with running.rmb in hwt_bh_running(): a CPU that sees the state
	 * after this change sees current_timeout as stored above. Barrier state.fire, pairs with
	 * state.arm in hwt_arm() and earlier.mb in __hwt_schedule(): @fn sees what was written
	 * before the timeout was scheduled.
	 */
	do {
		change = hwt_state_hand_back_bh(old);
		hwt_debug_track(timeout, change.state);
	} while (change.state != old && !hwt_state_change(timeout, &old, change.state));

	if (change.action == HWT_CALL)
		hwt_stop_count(shard, timeout, old);
	if (change.action == HWT_CALL && fn) {
		hwt_bh_call_begin(shard, fn, &call);
		fn(timeout, arg);
		hwt_bh_call_end(shard, &call);
	}
	hwt_bh_note(shard, NULL);
	hwt_wake_call(shard, &shard->engine, timeout);
	return change.action == HWT_CALL;
}

/*
 * Take up to HWT_STEP timeouts off the due list in a stop. For each that is armed, end its hold,
 * and call @fn, if not NULL. Return the number handed back. The shard runs no pass any more. The
 * lock is dropped during the calls.
 *
 * A _sync call that finds its timeout in current_timeout waits until @fn has returned. If a softirq
 * with such a call could interrupt @fn, it would wait for ever. So bottom halves are off.
 */
unsigned int hwt_bh_hand_back(struct hwt_shard *shard, hwt_handback_fn fn, void *arg)
	__must_hold(&shard->lock)
{
	struct list_head *due = &shard->buckets.due;
	unsigned int n, handed = 0;

	spin_unlock_irq(&shard->lock);
	local_bh_disable();
	hwt_bh_expiry_lock(shard);
	spin_lock_irq(&shard->lock);
	WRITE_ONCE(shard->engine.task, current);
	shard->engine.stamp = 0;
	for (n = 0; n < HWT_STEP && !list_empty(due); n++)
		handed += hwt_bh_hand_back_one(shard, fn, arg);
	WRITE_ONCE(shard->engine.task, NULL);
	spin_unlock_irq(&shard->lock);
	hwt_bh_expiry_unlock(shard);
	local_bh_enable();
	spin_lock_irq(&shard->lock);
	return handed;
}

/* -- Passes ------------------------------------------------------------------ */

/*
 * End the passes of a softirq, and start a timer for the next pass. If @more work is left, start
 * the timer for the present time, not for an earlier one: a softirq of hrtimers reads the clock
 * only at its beginning, and itself runs a timer that is started for a time before this reading.
 *
 * If CLOCK_REALTIME was set back since this reading, even the present time is before it. So on this
 * clock, if work is left or the clock was set back, the next pass comes at the next jiffy, in the
 * softirq of timer_list.
 *
 * Another CPU may lower wake_tick meanwhile. Either this call reads the lower tick, or the other
 * CPU finds bh.timer_ns as set here, and starts a timer for its earlier tick.
 */
static void hwt_bh_leave(struct hwt_shard *shard, bool more)
{
	bool realtime = shard->clock == HWT_CLOCK_REALTIME, stopping;
	unsigned long flags;

	spin_lock_irq(&shard->lock);
	WRITE_ONCE(shard->engine.task, NULL);
	stopping = shard->stopping;
	hwt_wake(shard, &shard->bh);
	spin_unlock_irq(&shard->lock);
	if (stopping)
		return;
	raw_spin_lock_irqsave(&shard->bh.lock, flags);
	/* The timer has fired: if its time is in the future now, the clock was set back. */
	if (more || (realtime && shard->bh.timer_ns > hwt_clock_now(shard))) {
		shard->bh.timer_ns = hwt_clock_now(shard);
		if (realtime)
			mod_timer(&shard->bh.timer, jiffies + 1);
		else
			hrtimer_start(&shard->bh.hrtimer, ns_to_ktime(shard->bh.timer_ns),
				      HRTIMER_MODE_ABS_SOFT);
	} else {
		hwt_bh_timer_start(shard, hwt_bh_wake_ns(shard));
	}
	raw_spin_unlock_irqrestore(&shard->bh.lock, flags);
}

/* Run passes in the softirq of a timer, unless the shard is stopping, or a pass is under way. */
static void hwt_bh_run(struct hwt_shard *shard)
{
	bool more;
	u64 tick;

	spin_lock_irq(&shard->lock);
	if (shard->stopping || shard->engine.task) {
		spin_unlock_irq(&shard->lock);
		return;
	}
	/*
	 * In a softirq, current is the interrupted task, here and in the callbacks. So a call that
	 * finds engine.task == current was made in this softirq, or in a hard interrupt during it.
	 */
	WRITE_ONCE(shard->engine.task, current);
	/* Limit the softirq to this jiffy and the next one: it must not keep the CPU. */
	shard->bh.until = jiffies + 1;
	hwt_count(&shard->wakeups, 1);
	spin_unlock_irq(&shard->lock);
	hwt_bh_expiry_lock(shard);
	/* No barrier: callbacks are RCU readers. On PREEMPT_RT, a softirq is not one by itself. */
	rcu_read_lock();
	do {
		hwt_engine_pass(shard);
		more = !hwt_engine_idle(shard, &tick);
	} while (more && !hwt_bh_spent(shard));
	hwt_bh_leave(shard, more);
	rcu_read_unlock();
	hwt_bh_expiry_unlock(shard);
}

static void hwt_bh_timer(struct timer_list *timer)
{
	hwt_bh_run(container_of(timer, struct hwt_shard, bh.timer));
}

static enum hrtimer_restart hwt_bh_hrtimer(struct hrtimer *timer)
{
	hwt_bh_run(container_of(timer, struct hwt_shard, bh.hrtimer));
	return HRTIMER_NORESTART;
}

/* -- Creation and end -------------------------------------------------------- */

/* Prepare the timers of a shard that is otherwise complete. */
void hwt_bh_init(struct hwt_shard *shard)
{
	shard->irq_work = IRQ_WORK_INIT_HARD(hwt_bh_irq_work);
	raw_spin_lock_init(&shard->bh.lock);
	INIT_CSD(&shard->bh.call, hwt_bh_call, shard);
	shard->bh.timer_ns = U64_MAX;
	shard->bh.by_jiffies = shard->clock == HWT_CLOCK_MONOTONIC && shard->tick_ns >= TICK_NSEC;
	timer_setup(&shard->bh.timer, hwt_bh_timer, 0);
	hwt_hrtimer_setup(&shard->bh.hrtimer, hwt_bh_hrtimer, hwt_clock_id[shard->clock],
			  HRTIMER_MODE_ABS_SOFT);
#ifdef CONFIG_PREEMPT_RT
	spin_lock_init(&shard->bh.expiry);
	/*
	 * A callback runs under bh.expiry of its shard. If it waits for a callback of another
	 * shard, it also takes bh.expiry of that shard: each lock has a class of its own, or
	 * lockdep would report a recursion.
	 */
	lockdep_register_key(&shard->bh.expiry_key);
	lockdep_set_class(&shard->bh.expiry, &shard->bh.expiry_key);
	atomic_set(&shard->bh.waiters, 0);
#endif
}

/* Wait until the last pass of a stopping shard is over. */
void hwt_bh_stop(struct hwt_shard *shard)
{
	spin_lock_irq(&shard->lock);
	while (shard->engine.task)
		hwt_wait_for(shard, &shard->bh);
	spin_unlock_irq(&shard->lock);
}

/* Stop the timers of a stopped shard that no context kicks any more. */
void hwt_bh_free(struct hwt_shard *shard)
{
	if (shard->bh.called) {
		/*
		 * hwt_bh_call() may still be queued on a CPU: make the other CPUs handle their
		 * queues. This CPU has done so in the grace period of hwt_wheel_dispose().
		 */
		kick_all_cpus_sync();
		/*
		 * No barrier, but a wait until these interrupts have ended: each may run
		 * hwt_bh_call() after the call for which kick_all_cpus_sync() has waited.
		 */
		synchronize_rcu();
	}
	hwt_timer_delete_sync(&shard->bh.timer);
	hrtimer_cancel(&shard->bh.hrtimer);
#ifdef CONFIG_PREEMPT_RT
	lockdep_unregister_key(&shard->bh.expiry_key);
#endif
}
