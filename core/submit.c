// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scheduling and cancelling, without a lock
 *
 * The caller that sets SUBMITTED of a timeout (core/state.h) pushes the timeout on a submission
 * list of its CPU. After the push, the timeout may fire and be freed, so the caller does not access
 * it. Callers are in RCU read-side sections, for which a stop waits. These sections disable
 * preemption: a CPU that finds SUBMITTED, shard->kicked or shard->reclaim set relies on the CPU
 * that has set it to push the timeout, or to kick the engine, at once.
 */
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>

#include "core/bh.h"
#include "core/clock.h"
#include "core/debug.h"
#include "core/kick.h"
#include "core/submit.h"
#include "core/trace.h"

/*
 * Called before SUBMITTED is set: keep interrupts off until the timeout is pushed. Otherwise a
 * handler could interrupt this CPU before the push, and spin on a client's lock whose holder spins
 * in hwt_delete() until the push: a deadlock. On PREEMPT_RT, it is enough that the caller has
 * disabled preemption: a handler that interrupts the caller spins on raw spinlocks only, and no
 * holder of a raw spinlock calls hwt_delete().
 */
static __always_inline unsigned long hwt_irqs_off(void)
{
	unsigned long flags = 0;

	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		local_irq_save(flags);
	return flags;
}

static __always_inline void hwt_irqs_restore(unsigned long flags)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		local_irq_restore(flags);
}

/* -- The submission lists ------------------------------------------------ */

/*
 * Push a timeout, for which the caller has set SUBMITTED, on a submission list of this CPU. The
 * byte shard->active[cpu] tells the engine that the lists of this CPU may have entries. Test the
 * byte even if the list was not empty: a push that this call interrupts may not have set the byte
 * yet.
 *
 * The caller then reads wake_tick and sleep_seq. A full barrier is always between the store to the
 * byte and these reads. If the byte was set before llist_add(), the barrier is llist_add(). If this
 * push, or one that interrupts it, sets the byte later, the barrier is push.active.
 */
static __always_inline void hwt_push(struct hwt_shard *shard,
				     struct hwt_timeout *timeout)
{
	unsigned int cpu = smp_processor_id();

	/* A _sync call or a delete that reads an old CPU misses the timeout, and tries again. */
	WRITE_ONCE(timeout->cpu, cpu);
	/*
	 * Barrier push.add, pairs with intake.mb and intake.take in hwt_intake_take(), delete.first
	 * in hwt_delete_last(), reclaim.mb in hwt_engine_reclaim() and sleep.mb in
	 * hwt_engine_publish(): whoever takes the entry sees what this CPU wrote before the push
	 * (intake.take, delete.first). If this CPU, after the push, finds shard->active[cpu] or
	 * shard->reclaim set, whoever clears it takes the entry afterwards (intake.mb, reclaim.mb).
	 * If the engine's last collection before a sleep misses the entry, this CPU reads wake_tick
	 * and sleep_seq as published for that sleep (sleep.mb).
	 */
	llist_add(&timeout->submit, &per_cpu_ptr(shard->inbox, cpu)->list[hwt_chain(timeout)]);
	if (!READ_ONCE(shard->active[cpu])) {
		WRITE_ONCE(shard->active[cpu], true);
		/*
		 * Barrier push.active, pairs with sleep.mb in hwt_engine_publish(): the engine's
		 * last collection before a sleep finds the byte set, or this CPU finds wake_tick
		 * and sleep_seq as published for that sleep.
		 */
		smp_mb();
	}
}

/* -- Schedule ------------------------------------------------------------ */

static int hwt_schedule_was(u64 old)
{
	return (old & HWT_F_PENDING ? HWT_WAS_PENDING : 0) |
	       (old & HWT_F_HELD ? HWT_WAS_HELD : 0);
}

static noinline int hwt_schedule_refused(enum hwt_action action, u64 old)
{
	if (action == HWT_UNCHANGED)
		return hwt_schedule_was(old);
	return action == HWT_REFUSED_SHUTDOWN ? -ESHUTDOWN : -ENOENT;
}

/* Count a call that has armed a timeout whose state was @old, and return the call's result. */
static __always_inline int hwt_schedule_account(struct hwt_shard *shard, u64 old)
{
	struct hwt_inbox __percpu *inbox = shard->inbox;
	int held = old & HWT_F_HELD ? HWT_WAS_HELD : 0;

	if (old & HWT_F_PENDING) {
		this_cpu_inc(inbox->rearmed);
		return held | HWT_WAS_PENDING;
	}
	this_cpu_inc(inbox->scheduled);
	return held;
}

/*
 * Hand a SUBMITTED timeout to the engine. If @action is HWT_SUBMIT, the caller has just set
 * SUBMITTED, with interrupts off: push the timeout, and restore interrupts to @irqs; @seq is
 * sleep_seq from before SUBMITTED was set. If @action is HWT_HASTEN, SUBMITTED was set before, and
 * there is nothing to push. In both cases, kick the engine if it would sleep beyond @tick. Not
 * inlined, to keep hwt_arm() small: the usual move to a later tick does not call this.
 */
static noinline void hwt_submit(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 tick,
				enum hwt_action action, unsigned int seq, unsigned long irqs)
{
	if (action == HWT_SUBMIT) {
		hwt_push(shard, timeout);
		hwt_irqs_restore(irqs);
		/*
		 * Also kick after every HWT_BACKLOG schedules, so that the engine collects the
		 * timeouts while they are in the cache. If an interrupt schedules before this read,
		 * the read may miss the multiple of HWT_BACKLOG: then the collection comes later.
		 */
		if (unlikely(READ_ONCE(shard->sleep_seq) != seq ||
			     !(raw_cpu_read(shard->inbox->scheduled) & (HWT_BACKLOG - 1))))
			hwt_engine_kick(shard, 0);
	}
	if (static_branch_unlikely(&hwt_debug))
		hwt_engine_kick(shard, 0);
	/* While shard->kicked is set, the engine has yet to begin a pass: one kick is enough. */
	if (tick < (u64)atomic64_read(&shard->wake_tick) && !hwt_engine_kicked(shard))
		hwt_engine_kick(shard, tick);
}

/*
 * A call with HWT_SCHEDULE_EARLIER for the deadline @ns has found that the tick in @old is not
 * later. If hwt_touch() has put the timeout off to a time later than @ns, undo that. If the state
 * has changed meanwhile, the engine may have moved the timeout to the tick of hwt_touch(): return
 * false, so that the caller decides again.
 */
static noinline bool hwt_arm_earlier(struct hwt_timeout *timeout, u64 ns, u64 old)
{
	if (!(old & HWT_F_ARMED))
		return true;
	if (!hwt_untouch(timeout, old, ns))
		return false;
	/*
	 * Barrier earlier.touched, pairs with state.fire in hwt_fire_claim() and hwt_bh_claim():
	 * the engine changes the tick in the state to that of @touched, and then reads @touched
	 * again. This CPU sees the changed state, or the engine's second read sees @touched as it
	 * is now: lowered here, or by an earlier touch.
	 */
	smp_mb();
	return hwt_timeout_state(timeout) == old;
}

/* Arm a timeout, under rcu_read_lock_sched(). Inlined: most callers have constant @flags. */
static __always_inline int hwt_arm(struct hwt_shard *shard, struct hwt_timeout *timeout,
				   u64 tick, u64 ns, unsigned int flags)
{
	struct hwt_change change = { .action = HWT_NOTHING };
	unsigned long irqs = 0;
	unsigned int seq = 0;
	int was;
	u64 old;

	/*
	 * The cmpxchg that changes the state is two barriers.
	 *
	 * Barrier state.arm, pairs with state.pull in hwt_arm(), state.cancel in
	 * hwt_cancel_claim(), sleep.seq in hwt_engine_publish(), state.finish in
	 * __hwt_collect_one(), fire.touched in hwt_touched_tick(), moved.rmb in hwt_clock_recheck()
	 * and state.fire in hwt_fire_claim() and hwt_bh_claim(): the next callback sees what the
	 * client wrote before this call (state.fire). An engine that sees the new state sees
	 * @touched lowered (fire.touched), and the clock set (moved.rmb). A new hold begins after
	 * all accesses of the last hold (state.finish). sleep_seq is read before SUBMITTED is set,
	 * so a call that finds SUBMITTED set sees what the engine wrote before this sleep_seq
	 * (state.pull, state.cancel, sleep.seq).
	 *
	 * Barrier state.pull, pairs with state.arm in hwt_arm(), sleep.seq and sleep.mb in
	 * hwt_engine_publish() and pass.mb in hwt_engine_pass(): hwt_submit() then decides by
	 * wake_tick and shard->kicked whether to kick. If another call has set SUBMITTED, it sees
	 * what the engine wrote before the sleep_seq that the other call has read (state.arm,
	 * sleep.seq); if sleep_seq changes later, the other call kicks. If a collection misses the
	 * new tick, it sees what the engine wrote before that collection (sleep.mb, pass.mb).
	 */
	do {
		if (change.action == HWT_SUBMIT)	/* after a failure */
			hwt_irqs_restore(irqs);
again:
		/*
		 * Barrier state.arm, pairs with state.cancel in hwt_cancel_claim(), state.arm in
		 * hwt_arm() and state.finish in hwt_finish_change(): if this CPU reads the state
		 * that one of them has left, it then reads a touch from before that, and undoes it.
		 */
		old = atomic64_read_acquire(&timeout->state);
		change = hwt_state_schedule(old, tick, flags);
		if (unlikely(change.action >= HWT_UNCHANGED)) {
			if ((flags & HWT_SCHEDULE_EARLIER) && change.action == HWT_UNCHANGED &&
			    !(flags & HWT_SCHEDULE_UNLESS_PENDING) &&
			    !hwt_arm_earlier(timeout, ns, old))
				goto again;
			return hwt_schedule_refused(change.action, old);
		}
		if (!hwt_untouch(timeout, old, ns))
			goto again;
		/*
		 * Read sleep_seq before the state changes. If another CPU moves the timeout to an
		 * earlier tick before the push, it wakes the engine, which finds no entry and
		 * sleeps again; hwt_submit() then finds sleep_seq changed, and wakes the engine.
		 */
		if (change.action == HWT_SUBMIT) {
			seq = READ_ONCE(shard->sleep_seq);
			irqs = hwt_irqs_off();
		}
	} while (!hwt_state_change(timeout, &old, change.state));

	was = hwt_schedule_account(shard, old);
	if (change.action != HWT_NOTHING)
		hwt_submit(shard, timeout, tick, change.action, seq, irqs);
	return was;
}

/* Arm a timeout. If it is not pending, count it first, so that max_pending is never exceeded. */
static noinline int hwt_arm_limited(struct hwt_shard *shard, struct hwt_timeout *timeout,
				    u64 tick, u64 ns, unsigned int flags)
{
	int ret;

	ret = hwt_arm(shard, timeout, tick, ns, flags | HWT_SCHEDULE_PENDING);
	if (ret != -ENOENT || (flags & HWT_SCHEDULE_PENDING))
		return ret;
	/* No ordering is needed: @pending_left is a mere count, and guards no other data. */
	if (atomic64_dec_if_positive(&shard->wheel->pending_left) < 0) {
		/* If another CPU has armed the timeout meanwhile, move it: this needs no count. */
		ret = hwt_arm(shard, timeout, tick, ns, flags | HWT_SCHEDULE_PENDING);
		if (ret != -ENOENT)
			return ret;
		this_cpu_inc(shard->inbox->rejected);
		return -EAGAIN;
	}
	ret = hwt_arm(shard, timeout, tick, ns, flags);
	if (ret < 0 || (ret & HWT_WAS_PENDING))
		hwt_pending_put(shard);
	return ret;
}

static __always_inline int hwt_arm_open(struct hwt_shard *shard, struct hwt_timeout *timeout,
					u64 tick, u64 ns, unsigned int flags)
{
	int ret;

	/*
	 * Barrier arm.rcu, pairs with stop.grace1 in hwt_stop() and destroy.grace in
	 * hwt_wheel_dispose(): a call that found the shard open is over after the grace period.
	 */
	rcu_read_lock_sched();
	if (unlikely(READ_ONCE(shard->closed))) {
		this_cpu_inc(shard->inbox->rejected);
		ret = -ESHUTDOWN;
	} else if (unlikely(shard->max_pending)) {
		ret = hwt_arm_limited(shard, timeout, tick, ns, flags);
	} else {
		ret = hwt_arm(shard, timeout, tick, ns, flags);
	}
	rcu_read_unlock_sched();
	return ret;
}

/* Not inlined, or each call that schedules would save registers, even with tracing disabled. */
static noinline int hwt_arm_traced(struct hwt_shard *shard, struct hwt_timeout *timeout,
				   u64 tick, u64 ns, unsigned int flags)
{
	/* Read ->expire before the timeout is armed: once armed, it may fire and be freed. */
	const void *fn = timeout->ops->expire;
	int ret;

	/*
	 * Barrier arm.rcu, pairs with destroy.grace in hwt_wheel_dispose(): the shard is not freed
	 * before the tracepoint has used it.
	 */
	rcu_read_lock_sched();
	ret = hwt_arm_open(shard, timeout, tick, ns, flags);
	trace_hwt_schedule(shard, timeout, fn, tick, ret);
	rcu_read_unlock_sched();
	return ret;
}

/* Schedule a timeout. @ns: a deadline if @flags has HWT_SCHEDULE_AT, else a delay. */
static __always_inline int __hwt_schedule(struct hwt_timeout *timeout, u64 ns, u64 slack_ns,
					  unsigned int flags)
{
	struct hwt_shard *shard = timeout->shard;
	u64 tick, last, state;

	if (unlikely(!hwt_debug_used(timeout) || !shard))
		return -EINVAL;
	if (flags & (HWT_SCHEDULE_EARLIER | HWT_SCHEDULE_UNLESS_PENDING)) {
		/*
		 * Barrier earlier.mb, pairs with state.fire in hwt_fire_claim(): the next callback
		 * sees what the caller wrote before this call, or the state read below says that
		 * the timeout has fired. Needed if the state stays unchanged, because then no
		 * cmpxchg is a barrier.
		 */
		smp_mb();
	}
	if (flags & HWT_SCHEDULE_UNLESS_PENDING) {
		state = hwt_timeout_state(timeout);
		if (state & HWT_F_PENDING)
			return hwt_schedule_was(state);
	}
	if (!(flags & HWT_SCHEDULE_AT))
		ns = hwt_clock_after(shard, ns);
	tick = hwt_deadline_to_tick(shard, ns);
	if (slack_ns && tick != HWT_TICK_NEVER) {
		last = hwt_ns_to_tick(shard, min_t(u64, hwt_add_ns(ns, slack_ns), S64_MAX));
		if (last > tick)
			tick = hwt_tick_relax(tick, last - tick);
	}
	if (trace_hwt_schedule_enabled())
		return hwt_arm_traced(shard, timeout, tick, ns, flags);
	return hwt_arm_open(shard, timeout, tick, ns, flags);
}

/**
 * hwt_schedule() - fire after a delay
 * @timeout:  the timeout; if it is pending, it is moved
 * @delay_ns: delay from now, ns. The deadline is rounded up to a tick, so a delay of 0 means the
 *            next tick.
 *
 * Any context. Reads the clock; hwt_schedule_at() does not. In NMI, the deadline is one tick later:
 * the clock readers that are safe in NMI may step back a little, and no timeout may fire early.
 *
 * Return: what the timeout was before the call: HWT_WAS_PENDING, HWT_WAS_HELD, both ored, or 0.
 * After an error, nothing has changed: -ESHUTDOWN (the wheel is stopped, or the timeout was shut
 * down), -EAGAIN (max_pending is reached), -EINVAL (the timeout has no wheel).
 */
int hwt_schedule(struct hwt_timeout *timeout, u64 delay_ns)
{
	return __hwt_schedule(timeout, delay_ns, 0, 0);
}
EXPORT_SYMBOL_GPL(hwt_schedule);

/**
 * hwt_schedule_at() - fire at a deadline
 * @timeout:     the timeout; if it is pending, it is moved
 * @deadline_ns: deadline on the wheel's clock, ns. If it has passed, the timeout fires at the
 *               engine's next pass. If it is 2^63 or more, the timeout never fires.
 *
 * Any context. Reads no clock, so it is cheaper than hwt_schedule() if the caller knows the time.
 *
 * Return: the same as hwt_schedule().
 */
int hwt_schedule_at(struct hwt_timeout *timeout, u64 deadline_ns)
{
	return __hwt_schedule(timeout, deadline_ns, 0, HWT_SCHEDULE_AT);
}
EXPORT_SYMBOL_GPL(hwt_schedule_at);

/**
 * hwt_schedule_flags() - fire after a delay or at a deadline, under conditions
 * @timeout:  the timeout
 * @time_ns:  delay from now, ns; with HWT_SCHEDULE_AT, deadline on the wheel's clock, ns
 * @slack_ns: how much later the timeout may fire, ns. Timeouts with slack share wake-ups.
 * @flags:    HWT_SCHEDULE_AT, HWT_SCHEDULE_EARLIER, HWT_SCHEDULE_PENDING and
 *            HWT_SCHEDULE_UNLESS_PENDING, ored
 *
 * Any context. With HWT_SCHEDULE_EARLIER, an armed timeout is never moved to a later tick
 * (timer_reduce() does the same for timers). With HWT_SCHEDULE_PENDING, only a pending timeout is
 * moved (mod_timer_pending()). With HWT_SCHEDULE_UNLESS_PENDING, a pending timeout is left as it is
 * (queue_delayed_work()). If this call leaves a pending timeout as it is, the next callback still
 * sees what the caller wrote before the call.
 *
 * Return: the same as hwt_schedule(); also -ENOENT if the flag HWT_SCHEDULE_PENDING is set and the
 * timeout was not pending, and -EINVAL for unknown flags.
 */
int hwt_schedule_flags(struct hwt_timeout *timeout, u64 time_ns, u64 slack_ns,
		       unsigned int flags)
{
	if (flags & ~(HWT_SCHEDULE_AT | HWT_SCHEDULE_EARLIER | HWT_SCHEDULE_PENDING |
		      HWT_SCHEDULE_UNLESS_PENDING))
		return -EINVAL;
	return __hwt_schedule(timeout, time_ns, slack_ns, flags);
}
EXPORT_SYMBOL_GPL(hwt_schedule_flags);

/**
 * hwt_schedule_periodic_at() - fire at a time, and again each period
 * @periodic:  the periodic timeout; if it is pending, it starts anew
 * @first_ns:  the first deadline, on the wheel's clock, ns
 * @period_ns: the period, ns; not 0. At a fixed rate, a period shorter than a tick causes overruns.
 * @mode:      HWT_MODE_FIXED_RATE: the next deadline is one period after the previous deadline.
 *             Deadlines that have passed when the timeout fires are skipped and counted as
 *             overruns, as timerfd does. HWT_MODE_FIXED_DELAY: the next deadline is one period
 *             after the callback has returned.
 *
 * Any context. The caller serializes calls that schedule the same timeout as periodic. Cancels, and
 * calls that schedule it as a one-shot, may run concurrently. If the timeout is pending, and fires
 * during this call, that firing may mix the arguments of this call with those of the earlier one.
 *
 * Return: the same as hwt_schedule(); also -EINVAL for a period of 0, an unknown mode, or
 * HWT_MODE_FIXED_DELAY on a BH wheel.
 */
int hwt_schedule_periodic_at(struct hwt_periodic *periodic, u64 first_ns,
			     u64 period_ns, unsigned int mode)
{
	u64 old_first_ns, old_period_ns;
	unsigned int old_mode;
	int ret;

	if (!period_ns || (mode != HWT_MODE_FIXED_RATE && mode != HWT_MODE_FIXED_DELAY))
		return -EINVAL;
	if (!hwt_debug_used(&periodic->timeout) || !periodic->timeout.shard ||
	    (mode == HWT_MODE_FIXED_DELAY && hwt_is_bh(periodic->timeout.shard)))
		return -EINVAL;
	/* Until the state changes, a firing may mix old and new settings: keep this time short. */
	preempt_disable();
	old_first_ns = atomic64_read(&periodic->set.first_ns);
	old_period_ns = atomic64_read(&periodic->set.period_ns);
	old_mode = periodic->set.mode;
	atomic64_set(&periodic->set.first_ns, first_ns);
	atomic64_set(&periodic->set.period_ns, period_ns);
	WRITE_ONCE(periodic->set.mode, mode);
	ret = __hwt_schedule(&periodic->timeout, first_ns, 0,
			     HWT_SCHEDULE_AT | HWT_SCHEDULE_PERIODIC);
	if (unlikely(ret < 0)) {
		atomic64_set(&periodic->set.first_ns, old_first_ns);
		atomic64_set(&periodic->set.period_ns, old_period_ns);
		WRITE_ONCE(periodic->set.mode, old_mode);
	}
	preempt_enable();
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_schedule_periodic_at);

/**
 * hwt_schedule_periodic() - fire after a delay, and again each period
 * @periodic:  the periodic timeout; if it is pending, it starts anew
 * @delay_ns:  delay from now to the first deadline, ns
 * @period_ns: the period, ns; not 0. At a fixed rate, a period shorter than a tick causes overruns.
 * @mode:      HWT_MODE_FIXED_RATE or HWT_MODE_FIXED_DELAY, as for hwt_schedule_periodic_at()
 *
 * Any context. The caller serializes calls that schedule the same timeout as periodic.
 *
 * Return: the same as hwt_schedule_periodic_at().
 */
int hwt_schedule_periodic(struct hwt_periodic *periodic, u64 delay_ns,
			  u64 period_ns, unsigned int mode)
{
	struct hwt_shard *shard = periodic->timeout.shard;

	if (!hwt_debug_used(&periodic->timeout) || !shard)
		return -EINVAL;
	return hwt_schedule_periodic_at(periodic,
					hwt_clock_after(shard, delay_ns),
					period_ns, mode);
}
EXPORT_SYMBOL_GPL(hwt_schedule_periodic);

/* -- Cancel -------------------------------------------------------------- */

/*
 * Cancel a timeout, and store its old state in *@was. @set: HWT_F_SHUTDOWN or 0. If this call has
 * set SUBMITTED, return true: the caller must push the timeout or, with the shard's lock, end the
 * hold.
 */
bool hwt_cancel_claim(struct hwt_timeout *timeout, u64 set, u64 *was)
{
	struct hwt_change change;
	u64 old = hwt_timeout_state(timeout);

	/*
	 * Barrier state.cancel, pairs with state.arm in hwt_arm(), sleep.seq in
	 * hwt_engine_publish() and reclaim.mb in hwt_engine_reclaim(): suppose that call A reads
	 * sleep_seq and then sets SUBMITTED, and that call B finds it set. Call B sees what the
	 * engine wrote before this sleep_seq (wake_tick, shard->reclaim), and kicks if need be.
	 * Each may be a cancel or hwt_arm() (state.arm, sleep.seq). If __hwt_cancel() then reads
	 * shard->reclaim as set, the pass that clears it finds the timeout cancelled (reclaim.mb).
	 */
	do {
		change = hwt_state_cancel(old, set);
	} while (change.state != old && !hwt_state_change(timeout, &old, change.state));
	*was = old;
	return change.action == HWT_SUBMIT;
}

/* Count a cancel of state @old. The timeout may be freed by now, so only its address is used. */
void hwt_cancel_account(struct hwt_shard *shard, const struct hwt_timeout *timeout, u64 old)
{
	trace_hwt_cancel(shard, timeout, hwt_state_tick(old));
	this_cpu_inc(shard->inbox->cancelled);
	hwt_pending_put(shard);
}

/* Cancel a timeout. Return its old state, with HWT_F_PENDING clear if nothing was cancelled. */
static __always_inline u64 __hwt_cancel(struct hwt_timeout *timeout)
{
	struct hwt_shard *shard;
	unsigned long irqs;
	unsigned int seq;
	bool claimed;
	u64 old;

	old = hwt_timeout_state(timeout);
	if (!(old & HWT_F_PENDING) || !hwt_debug_used(timeout))
		return old & ~HWT_F_PENDING;
	/*
	 * Barrier cancel.rcu, pairs with stop.grace2 in hwt_stop() and destroy.grace in
	 * hwt_wheel_dispose(): a grace period ends only after this CPU has pushed and kicked.
	 */
	rcu_read_lock_sched();
	shard = timeout->shard;
	/* Read sleep_seq before SUBMITTED is set: if the engine sleeps before the push, kick it. */
	seq = READ_ONCE(shard->sleep_seq);
	irqs = hwt_irqs_off();
	claimed = hwt_cancel_claim(timeout, 0, &old);
	if (claimed)
		hwt_push(shard, timeout);
	hwt_irqs_restore(irqs);
	if (old & HWT_F_PENDING) {
		if (claimed && unlikely(READ_ONCE(shard->sleep_seq) != seq))
			hwt_engine_kick(shard, 0);
		hwt_cancel_account(shard, timeout, old);
		/*
		 * Make the engine collect the timeout within reclaim_ms. If shard->reclaim is set,
		 * no kick is needed: the pass that clears it (reclaim.mb) collects the timeout,
		 * because state.cancel or push.add orders this read after the cancel. Preemption is
		 * off: CPUs that find shard->reclaim set rely on this CPU to kick at once.
		 */
		if (unlikely(!READ_ONCE(shard->reclaim))) {
			WRITE_ONCE(shard->reclaim, true);
			hwt_engine_kick(shard, 0);
		}
	}
	rcu_read_unlock_sched();
	return old;
}

/**
 * hwt_cancel() - keep a timeout from firing
 * @timeout: the timeout
 *
 * Any context. A callback that is executing goes on, but a periodic timeout is not armed again.
 *
 * Return: true if the timeout was pending: it will not fire unless it is scheduled again, but may
 * still be held. False if the timeout was not pending: nothing has changed.
 */
bool hwt_cancel(struct hwt_timeout *timeout)
{
	return __hwt_cancel(timeout) & HWT_F_PENDING;
}
EXPORT_SYMBOL_GPL(hwt_cancel);

/* Return true if a timeout was scheduled since __hwt_cancel(), which has returned @old. */
static bool hwt_rearmed(const struct hwt_timeout *timeout, u64 old)
{
	u64 state = hwt_timeout_state(timeout);

	if (old & HWT_F_PENDING)
		return !(state & HWT_F_CANCELLED);
	return (state ^ old) & ~(u64)(HWT_F_SUBMITTED | HWT_F_SHUTDOWN);
}

/**
 * hwt_try_cancel() - cancel, and report whether the callback is executing
 * @timeout: the timeout; on a BH wheel, its memory must remain valid until this returns
 *
 * Any context; never waits.
 *
 * Return: what the timeout was at the instant of the cancel: HWT_WAS_PENDING if it was pending,
 * ored with HWT_IS_RUNNING if a callback of it was executing. If HWT_IS_RUNNING is not set, the
 * caller sees what the last callback has written. On a BH wheel, HWT_IS_RUNNING may be set although
 * no callback executes: the engine may be deciding whether the timeout fires, and find that it does
 * not; or the timeout was scheduled during this call.
 */
int hwt_try_cancel(struct hwt_timeout *timeout)
{
	/* Read timeout->shard before the cancel: after it, the timeout may be freed. */
	const struct hwt_shard *shard = hwt_debug_used(timeout) ? timeout->shard : NULL;
	u64 old = __hwt_cancel(timeout);
	int ret = old & HWT_F_PENDING ? HWT_WAS_PENDING : 0;

	if ((old & HWT_F_RUNNING) || (shard && hwt_is_bh(shard) && hwt_bh_running(shard, timeout)))
		return ret | HWT_IS_RUNNING;
	/* The callback may have scheduled its timeout, and returned, since the cancel. */
	if (shard && hwt_is_bh(shard) && hwt_rearmed(timeout, old))
		return ret | HWT_IS_RUNNING;
	/*
	 * Barrier try.acquire, pairs with state.finish in hwt_finish_change(): a caller that finds
	 * RUNNING cleared sees what the callback wrote, even if the cancel only read the state.
	 */
	smp_acquire__after_ctrl_dep();
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_try_cancel);

/**
 * hwt_reopen() - let a timeout that was shut down be scheduled again
 * @timeout: the timeout, for which hwt_shutdown_sync() has returned
 *
 * Any context. Undoes a shutdown, as enable_work() undoes disable_work(). Unlike
 * hwt_timeout_init(), this is safe while other CPUs try to schedule the timeout: an attempt that
 * comes too early fails with -ESHUTDOWN.
 */
void hwt_reopen(struct hwt_timeout *timeout)
{
	u64 old = hwt_timeout_state(timeout);

	/*
	 * No barrier: nothing fires before a later call schedules the timeout, and that call has a
	 * barrier (state.arm).
	 */
	while (!hwt_state_change(timeout, &old, hwt_state_reopen(old)))
		;
}
EXPORT_SYMBOL_GPL(hwt_reopen);

/* -- Initialisation and queries ------------------------------------------ */

/*
 * Return the shard for a timeout that is initialised or moved on this CPU. A BH wheel calls neither
 * ->cancelled nor ->release: a timeout that has one gets no wheel, so that it cannot be scheduled.
 */
static struct hwt_shard *hwt_shard_for(const struct hwt_wheel *wheel,
				       const struct hwt_timeout_ops *ops)
{
	struct hwt_shard *shard = hwt_shard_here(wheel);

	if (!shard || !hwt_is_bh(shard) || (!ops->cancelled && !ops->release))
		return shard;
	WARN_ONCE(true, "a timeout with ->cancelled or ->release is put on BH wheel %s: %ps\n",
		  shard->wheel->name, ops->expire);
	return NULL;
}

void __hwt_timeout_init(struct hwt_timeout *timeout, struct hwt_wheel *wheel,
			const struct hwt_timeout_ops *ops, const char *name,
			struct lock_class_key *key)
{
	if (static_branch_unlikely(&hwt_debug) && !__hwt_debug_init(timeout))
		return;
	atomic64_set(&timeout->state, 0);
	atomic64_set(&timeout->touched, 0);
	timeout->link.next = NULL;
	timeout->submit.next = NULL;
	timeout->ops = ops;
	timeout->shard = hwt_shard_for(wheel, ops);
	timeout->owed = false;
	timeout->past = false;
	timeout->tracked = false;
	timeout->cpu = 0;
	timeout->check = hwt_debug_mark(timeout);
#ifdef CONFIG_LOCKDEP
	lockdep_init_map(&timeout->lockdep_map, name, key, 0);
#endif
}
EXPORT_SYMBOL_GPL(__hwt_timeout_init);

/**
 * hwt_timeout_set_wheel() - set the wheel of a timeout
 * @timeout: the timeout, which is not held, and whose ->release is not executing
 * @wheel:   the wheel
 *
 * Any context; no other context may use the timeout concurrently. The timeout goes to the shard of
 * the present CPU, even if it was on another shard of the same wheel.
 *
 * When hwt_held() returns false, the ->release of the last hold may not have begun yet. So if the
 * timeout has a ->release, call hwt_cancel_sync() or hwt_shutdown_sync() before this function: they
 * wait until the ->release has returned. After the move, they would look at the new wheel only. The
 * module parameter "debug" reports a move that comes too early.
 */
void hwt_timeout_set_wheel(struct hwt_timeout *timeout, struct hwt_wheel *wheel)
{
	if (static_branch_unlikely(&hwt_debug) && !hwt_debug_move(timeout))
		return;
	timeout->shard = hwt_shard_for(wheel, timeout->ops);
}
EXPORT_SYMBOL_GPL(hwt_timeout_set_wheel);

struct hwt_wheel *__hwt_shard_wheel(const struct hwt_shard *shard)
{
	return shard->wheel;
}
EXPORT_SYMBOL_GPL(__hwt_shard_wheel);

/* Return the tick for which a periodic timeout will be armed once its callback returns. */
static u64 hwt_periodic_upcoming(const struct hwt_timeout *timeout)
{
	const struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);
	const struct hwt_shard *shard = timeout->shard;

	/*
	 * Just before the callback begins, periodic->run still has old values, so the result is
	 * wrong. The comment of hwt_deadline() tells callers so.
	 */
	if (READ_ONCE(periodic->run.mode) == HWT_MODE_FIXED_RATE)
		return hwt_deadline_to_tick(shard, atomic64_read(&periodic->run.next_ns));
	return hwt_deadline_to_tick(shard, hwt_add_ns(hwt_clock_now(shard),
						      atomic64_read(&periodic->run.period_ns)));
}

/**
 * hwt_running() - return whether a callback of the timeout executes
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: true while ->expire, ->cancelled or the function that hwt_wheel_stop() was given executes
 * for the timeout; false during ->release. On a BH wheel, also true while the engine decides
 * whether the timeout, which was on the due list, fires: it may find that it does not, and call
 * nothing.
 */
bool hwt_running(const struct hwt_timeout *timeout)
{
	const struct hwt_shard *shard = timeout->shard;

	if (hwt_timeout_state(timeout) & HWT_F_RUNNING)
		return true;
	return hwt_debug_used(timeout) && shard && hwt_is_bh(shard) &&
	       hwt_bh_running(shard, timeout);
}
EXPORT_SYMBOL_GPL(hwt_running);

/**
 * hwt_deadline() - return the deadline of a timeout
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: the deadline on the wheel's clock, ns, rounded up to a tick (and moved within the slack);
 * U64_MAX if the timeout never fires; 0 if it is not pending. While the callback of a periodic
 * timeout executes, this is the deadline of the next firing (with HWT_MODE_FIXED_DELAY: one period
 * from now). Only the callback itself can rely on this: just before the callback begins, another
 * context may get the deadline of the present firing or, if the timeout fires for the first time
 * since it was scheduled, a meaningless value.
 */
u64 hwt_deadline(const struct hwt_timeout *timeout)
{
	u64 state = hwt_timeout_state(timeout);
	u64 tick = hwt_state_tick(state);

	if (!(state & HWT_F_PENDING))
		return 0;
	if (!(state & HWT_F_ARMED))
		tick = hwt_periodic_upcoming(timeout);
	else
		tick = max(tick, hwt_deadline_to_tick(timeout->shard,
						      atomic64_read(&timeout->touched)));
	return hwt_tick_to_ns(timeout->shard, tick);
}
EXPORT_SYMBOL_GPL(hwt_deadline);
