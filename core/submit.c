// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scheduling and cancelling: the half of a timeout's life that takes no lock
 *
 * The functions here change the state of a timeout by compare-and-swap, as core/state.h decides.
 * If need be, they push the timeout on the submission list of the local CPU for the engine.
 *
 * Setting SUBMITTED claims the timeout: only the caller that has set it pushes the timeout. After
 * the push, the caller does not touch the timeout, which may have fired and been freed. The read of
 * shard->closed, the claim, the push and the wake-up are in one RCU read-side section, for which a
 * stop waits. The section disables preemption (rcu_read_lock_sched()): other CPUs that find
 * SUBMITTED, shard->kicked or shard->reclaim set rely on the CPU that has set it to go on at once.
 *
 * Cost of scheduling an idle timeout at an absolute deadline: one locked instruction on the state,
 * one on the local list's head, and one more in the first push after the list was collected.
 */
#include <linux/export.h>
#include <linux/hardirq.h>
#include <linux/hash.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>

#include "core/callback.h"
#include "core/clock.h"
#include "core/debug.h"
#include "core/kick.h"
#include "core/submit.h"
#include "core/trace.h"

/* -- The submission lists ------------------------------------------------ */

static __always_inline unsigned int hwt_chain(const struct hwt_timeout *timeout)
{
	return hash_ptr(timeout, ilog2(HWT_CHAINS));
}

/*
 * Push a timeout, for which the caller has set SUBMITTED, on a local list. The timeout may be
 * freed from then on.
 *
 * Every push tests the CPU's byte in @active, not only a push on an empty list: an interrupt may
 * push another entry before the first push has set the byte. Only this CPU sets its byte, and the
 * caller stays on this CPU. So if the caller finds the byte set, it was set before the caller's
 * llist_add(), or since then by an interrupt, which has executed push.active as well. In either
 * case, a full barrier came after the byte was set.
 */
static __always_inline void hwt_push(struct hwt_shard *shard,
				     struct hwt_timeout *timeout)
{
	unsigned int cpu = smp_processor_id();

	/* Pairs with the read in hwt_sync_try(). After an old value, hwt_sync() tries again. */
	WRITE_ONCE(timeout->cpu, cpu);
	/*
	 * Barrier push.add, pairs with intake.mb and intake.take in hwt_intake_take(), reclaim.mb
	 * in hwt_engine_reclaim() and sleep.mb in hwt_engine_publish(): if this CPU finds the byte
	 * set below, the engine has yet to clear the byte, and takes the entry then. If the last
	 * collection before the engine sleeps misses the entry, this CPU finds wake_tick and
	 * sleep_seq as published.
	 */
	llist_add(&timeout->submit, &per_cpu_ptr(shard->inbox, cpu)->list[hwt_chain(timeout)]);
	if (!READ_ONCE(shard->active[cpu])) {
		WRITE_ONCE(shard->active[cpu], true);
		/*
		 * Barrier push.active, pairs with sleep.mb in hwt_engine_publish(): the engine's
		 * last collection before a sleep finds the byte set, or this CPU finds wake_tick
		 * and sleep_seq as published.
		 */
		smp_mb();
	}
}

/* -- max_pending --------------------------------------------------------- */

static bool hwt_pending_get(struct hwt_shard *shard)
{
	atomic64_t *count = &shard->wheel->nr_pending;
	s64 pending = atomic64_read(count);

	/* No barrier: the count orders nothing. */
	do {
		if (pending >= shard->max_pending)
			return false;
	} while (!atomic64_try_cmpxchg(count, &pending, pending + 1));
	return true;
}

/* Remove a timeout that is no longer pending from the count for max_pending. */
void hwt_pending_put(struct hwt_shard *shard)
{
	if (unlikely(shard->max_pending))
		atomic64_dec(&shard->wheel->nr_pending);
}

/* -- Schedule ------------------------------------------------------------ */

/* Return the result of a schedule that found the state @old. */
static int hwt_schedule_was(u64 old)
{
	return (old & HWT_F_PENDING ? HWT_WAS_PENDING : 0) |
	       (old & HWT_F_HELD ? HWT_WAS_HELD : 0);
}

/* Return the result of a schedule that did not change the state @old. */
static noinline int hwt_schedule_refused(enum hwt_action action, u64 old)
{
	switch (action) {
	case HWT_REFUSED_SHUTDOWN:
		return -ESHUTDOWN;
	case HWT_REFUSED_NOT_PENDING:
		return -ENOENT;
	default:
		return hwt_schedule_was(old);
	}
}

/* Count a schedule that found the state @old. Return: the result of the schedule. */
static __always_inline int hwt_schedule_account(struct hwt_shard *shard, u64 old)
{
	struct hwt_inbox __percpu *inbox = shard->inbox;
	int held = old & HWT_F_HELD ? HWT_WAS_HELD : 0;

	if (old & HWT_F_PENDING) {
		this_cpu_inc(inbox->rearmed);
		return held | HWT_WAS_PENDING;
	}
	this_cpu_inc(inbox->scheduled);
	/* Kick about once in HWT_BACKLOG schedules: an interrupt may count one before this read. */
	if (unlikely(!(raw_cpu_read(inbox->scheduled) & (HWT_BACKLOG - 1))))
		hwt_engine_kick(shard);
	return held;
}

/*
 * Hand a SUBMITTED timeout to the engine: push it, if the caller has set the bit, and wake the
 * engine if need be. @seq is sleep_seq as read before the bit was set. Not inlined, since moving a
 * timeout in a bucket to a later tick does not need this.
 */
static noinline void hwt_submit(struct hwt_shard *shard, struct hwt_timeout *timeout,
				u64 tick, enum hwt_action action, unsigned int seq)
{
	if (action == HWT_SUBMIT) {
		hwt_push(shard, timeout);
		if (unlikely(READ_ONCE(shard->sleep_seq) != seq))
			hwt_engine_kick(shard);
	}
	if (static_branch_unlikely(&hwt_debug))
		hwt_engine_kick(shard);
	/* One kick is enough until the engine begins its pass. */
	if (tick < (u64)atomic64_read(&shard->wake_tick) && !hwt_engine_kicked(shard))
		hwt_engine_kick(shard);
}

/*
 * Arm a timeout: change its state, count the schedule, and submit the timeout if need be. Inlined
 * with constant @flags into the functions that are called most. In an RCU read-side section.
 */
static __always_inline int hwt_arm(struct hwt_shard *shard, struct hwt_timeout *timeout,
				   u64 tick, unsigned int flags)
{
	struct hwt_change change;
	unsigned int seq = 0;
	int was;
	u64 old;

	if (flags & HWT_SCHEDULE_EARLIER) {
		/*
		 * Barrier earlier.mb, pairs with state.fire in hwt_fire_claim(): the callback sees
		 * what the caller wrote before, or the state read here says that the timeout has
		 * fired. If the state is left as it is, no compare-and-swap orders this.
		 */
		smp_mb();
	}
	old = hwt_timeout_state(timeout);
	/*
	 * Barrier state.arm, pairs with state.pull in hwt_arm(), state.cancel in
	 * hwt_cancel_claim(), sleep.seq in hwt_engine_publish(), state.finish in hwt_collect_one()
	 * and state.fire in hwt_fire_claim(): this CPU reads sleep_seq before it sets SUBMITTED,
	 * and the callback sees what the client wrote. Barrier state.pull, pairs with state.arm in
	 * hwt_arm(), sleep.seq and sleep.mb in hwt_engine_publish() and pass.mb in
	 * hwt_engine_pass(): the engine collects a SUBMITTED timeout at its new tick, or this CPU
	 * finds wake_tick and @kicked as the engine has written them.
	 */
	do {
		change = hwt_state_schedule(old, tick, flags);
		if (unlikely(change.action >= HWT_UNCHANGED))
			return hwt_schedule_refused(change.action, old);
		/*
		 * Another CPU may pull the timeout forward, and wake the engine, before this CPU
		 * has pushed the timeout. If the engine goes back to sleep before the push,
		 * hwt_submit() finds sleep_seq changed.
		 */
		if (change.action == HWT_SUBMIT)
			seq = READ_ONCE(shard->sleep_seq);
	} while (!hwt_state_change(timeout, &old, change.state));

	was = hwt_schedule_account(shard, old);
	if (change.action != HWT_NOTHING)
		hwt_submit(shard, timeout, tick, change.action, seq);
	return was;
}

/* hwt_arm() with a max_pending: reserve a place for a timeout that is not pending. */
static noinline int hwt_arm_limited(struct hwt_shard *shard, struct hwt_timeout *timeout,
				    u64 tick, unsigned int flags)
{
	int ret;

	ret = hwt_arm(shard, timeout, tick, flags | HWT_SCHEDULE_PENDING);
	if (ret != -ENOENT || (flags & HWT_SCHEDULE_PENDING))
		return ret;
	if (!hwt_pending_get(shard)) {
		/* Another CPU may have scheduled the timeout, and so taken the last place. */
		ret = hwt_arm(shard, timeout, tick, flags | HWT_SCHEDULE_PENDING);
		if (ret != -ENOENT)
			return ret;
		this_cpu_inc(shard->inbox->rejected);
		return -EAGAIN;
	}
	ret = hwt_arm(shard, timeout, tick, flags);
	if (ret < 0 || (ret & HWT_WAS_PENDING))
		hwt_pending_put(shard);
	return ret;
}

/* Arm a timeout, unless the shard is closed. */
static __always_inline int hwt_arm_open(struct hwt_shard *shard, struct hwt_timeout *timeout,
					u64 tick, unsigned int flags)
{
	int ret;

	/*
	 * Barrier arm.rcu, pairs with stop.grace1 in hwt_stop() and destroy.grace in
	 * hwt_wheel_dispose(): a caller that finds the shard open has pushed, and kicked the
	 * engine, by the end of the grace period.
	 */
	rcu_read_lock_sched();
	if (unlikely(READ_ONCE(shard->closed))) {
		this_cpu_inc(shard->inbox->rejected);
		ret = -ESHUTDOWN;
	} else if (unlikely(shard->max_pending)) {
		ret = hwt_arm_limited(shard, timeout, tick, flags);
	} else {
		ret = hwt_arm(shard, timeout, tick, flags);
	}
	rcu_read_unlock_sched();
	return ret;
}

/* Not inlined, so that a schedule saves no registers for a disabled tracepoint. */
static noinline int hwt_arm_traced(struct hwt_shard *shard, struct hwt_timeout *timeout,
				   u64 tick, unsigned int flags)
{
	/* Read this now: once the timeout is armed, it may fire and be freed. */
	const void *fn = hwt_client_fn(timeout, timeout->ops->expire);
	int ret;

	/*
	 * Barrier arm.rcu, pairs with destroy.grace in hwt_wheel_dispose(): the shard stays until
	 * the tracepoint has used it, even if the timeout fires at once and its client destroys it.
	 */
	rcu_read_lock_sched();
	ret = hwt_arm_open(shard, timeout, tick, flags);
	trace_hwt_schedule(shard, timeout, fn, tick, ret);
	rcu_read_unlock_sched();
	return ret;
}

/* The common part of all schedule functions. */
static __always_inline int __hwt_schedule(struct hwt_timeout *timeout, u64 ns, u64 slack_ns,
					  unsigned int flags)
{
	struct hwt_shard *shard = timeout->shard;
	u64 tick, last, state;

	if (unlikely(!hwt_debug_used(timeout) || !shard))
		return -EINVAL;
	if (flags & HWT_SCHEDULE_UNLESS_PENDING) {
		/*
		 * Barrier earlier.mb, pairs with state.fire in hwt_fire_claim(): the next callback
		 * sees what the caller wrote before, or the state read here is not pending.
		 */
		smp_mb();
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
		return hwt_arm_traced(shard, timeout, tick, flags);
	return hwt_arm_open(shard, timeout, tick, flags);
}

/**
 * hwt_schedule() - fire after a delay
 * @timeout:  the timeout; if it is pending it is moved
 * @delay_ns: from now, ns; rounded up to a tick, so 0 is the next one
 *
 * Any context. Reads the clock; hwt_schedule_at() does not. In NMI, the deadline
 * is a tick later.
 *
 * Return: HWT_WAS_PENDING and HWT_WAS_HELD, ored, as before the call; or, with nothing changed,
 * -ESHUTDOWN (wheel stopped or timeout shut down), -EAGAIN (max_pending reached), -EINVAL (no
 * wheel).
 */
int hwt_schedule(struct hwt_timeout *timeout, u64 delay_ns)
{
	return __hwt_schedule(timeout, delay_ns, 0, 0);
}
EXPORT_SYMBOL_GPL(hwt_schedule);

/**
 * hwt_schedule_at() - fire at a deadline
 * @timeout:     the timeout; if it is pending it is moved
 * @deadline_ns: on the wheel's clock, ns. If it has passed, the timeout fires at the engine's
 *               next pass; at 2^63 and more, never.
 *
 * Any context. Reads no clock, for callers that know the time.
 *
 * Return: as hwt_schedule().
 */
int hwt_schedule_at(struct hwt_timeout *timeout, u64 deadline_ns)
{
	return __hwt_schedule(timeout, deadline_ns, 0, HWT_SCHEDULE_AT);
}
EXPORT_SYMBOL_GPL(hwt_schedule_at);

/**
 * hwt_schedule_flags() - fire after a delay or at a deadline, under conditions
 * @timeout:  the timeout
 * @time_ns:  a delay from now; with HWT_SCHEDULE_AT a deadline on the wheel's clock; ns
 * @slack_ns: how much later it may fire, ns. Timeouts with slack share wake-ups.
 * @flags:    HWT_SCHEDULE_AT, _EARLIER, _PENDING, _UNLESS_PENDING, ored
 *
 * Any context. HWT_SCHEDULE_EARLIER never moves an armed timeout back, as timer_reduce();
 * HWT_SCHEDULE_PENDING moves a pending timeout only, as mod_timer_pending();
 * HWT_SCHEDULE_UNLESS_PENDING leaves a pending one as it is, as queue_delayed_work(). If a pending
 * timeout is left as it is, its next callback still sees what the caller wrote before the call.
 *
 * Return: as hwt_schedule(); also -ENOENT with HWT_SCHEDULE_PENDING, if the timeout was not
 * pending, and -EINVAL for other flags.
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
 * @periodic:  the periodic timeout; if it is pending it starts anew
 * @first_ns:  the first deadline, on the wheel's clock, ns
 * @period_ns: not 0. A period shorter than a tick causes overruns.
 * @mode:      HWT_MODE_FIXED_RATE: the next deadline is one period after the previous deadline.
 *             Periods that passed by unserved are counted as overruns and not made up for in a
 *             burst (as timerfd does). HWT_MODE_FIXED_DELAY: the next deadline is one period after
 *             the callback returned.
 *
 * Any context. The caller serializes calls for the same timeout; cancels and one-shot schedules may
 * run concurrently. If the timeout fires for an earlier schedule before this call returns, that
 * firing may use a mixture of the old and the new times.
 *
 * Return: as hwt_schedule(); also -EINVAL for a period of 0 or an unknown mode.
 */
int hwt_schedule_periodic_at(struct hwt_periodic *periodic, u64 first_ns,
			     u64 period_ns, unsigned int mode)
{
	u64 old_first_ns, old_period_ns;
	unsigned int old_mode;
	int ret;

	if (!period_ns || (mode != HWT_MODE_FIXED_RATE && mode != HWT_MODE_FIXED_DELAY))
		return -EINVAL;
	/*
	 * The writes below pair with hwt_periodic_begin(), which reads @set after it has taken the
	 * new state. With an older state, it may read a mixture until this function returns.
	 */
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
 * @periodic:  the periodic timeout; if it is pending it starts anew
 * @delay_ns:  to the first deadline, ns
 * @period_ns: not 0. A period shorter than a tick causes overruns.
 * @mode:      HWT_MODE_FIXED_RATE: the next deadline is one period after the previous deadline.
 *             Periods that passed by unserved are counted as overruns and not made up for in a
 *             burst (as timerfd does). HWT_MODE_FIXED_DELAY: the next deadline is one period after
 *             the callback returned.
 *
 * Any context, with the restriction of hwt_schedule_periodic_at().
 *
 * Return: as hwt_schedule_periodic_at().
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
 * Change a timeout's state as a cancel does. @set: HWT_F_SHUTDOWN, or 0. @was: the previous state.
 * Return true if this call has set SUBMITTED: the caller must push the timeout, or hold the shard's
 * lock and end the timeout's hold.
 */
bool hwt_cancel_claim(struct hwt_timeout *timeout, u64 set, u64 *was)
{
	struct hwt_change change;
	u64 old = hwt_timeout_state(timeout);

	/*
	 * Barrier state.cancel, pairs with state.arm in hwt_arm(), sleep.seq in
	 * hwt_engine_publish() and reclaim.mb in hwt_engine_reclaim(): the caller reads sleep_seq
	 * before the change. If the caller finds shard->reclaim set after the change, the pass that
	 * clears shard->reclaim finds the change.
	 */
	do {
		change = hwt_state_cancel(old, set);
		if (!(old & HWT_F_PENDING) && change.state == old)
			break;
	} while (!hwt_state_change(timeout, &old, change.state));
	*was = old;
	return change.action == HWT_SUBMIT;
}

/* Trace and count the cancel of a timeout, pending in the state @old, that may be freed by now. */
void hwt_cancel_account(struct hwt_shard *shard, const struct hwt_timeout *timeout, u64 old)
{
	trace_hwt_cancel(shard, timeout, hwt_state_tick(old));
	this_cpu_inc(shard->inbox->cancelled);
	hwt_pending_put(shard);
}

/* Make the engine release cancelled timeouts within reclaim_ms. */
static void hwt_reclaim_soon(struct hwt_shard *shard)
{
	/*
	 * The caller's state.cancel or push.add orders this read after the cancel. The engine
	 * clears the flag before it collects (reclaim.mb).
	 */
	if (likely(READ_ONCE(shard->reclaim)))
		return;
	/* The caller has disabled preemption: once the flag is set, other CPUs do not kick. */
	WRITE_ONCE(shard->reclaim, true);
	hwt_engine_kick(shard);
}

/* Cancel a timeout. Return: the previous state. */
static __always_inline u64 __hwt_cancel(struct hwt_timeout *timeout)
{
	struct hwt_shard *shard;
	unsigned int seq;
	bool claimed;
	u64 old;

	old = hwt_timeout_state(timeout);
	if (!(old & HWT_F_PENDING) || !hwt_debug_used(timeout))
		return old & ~HWT_F_PENDING;
	/*
	 * Barrier cancel.rcu, pairs with stop.grace2 in hwt_stop() and destroy.grace in
	 * hwt_wheel_dispose(): a timeout claimed here is pushed, and the engine kicked, by the end
	 * of the grace period.
	 */
	rcu_read_lock_sched();
	shard = timeout->shard;
	/*
	 * Before the claim: if the engine goes to sleep between claim and push, the number has
	 * changed by the end of the push.
	 */
	seq = READ_ONCE(shard->sleep_seq);
	claimed = hwt_cancel_claim(timeout, 0, &old);
	if (old & HWT_F_PENDING) {
		if (claimed) {
			hwt_push(shard, timeout);
			if (unlikely(READ_ONCE(shard->sleep_seq) != seq))
				hwt_engine_kick(shard);
		}
		hwt_cancel_account(shard, timeout, old);
		hwt_reclaim_soon(shard);
	}
	rcu_read_unlock_sched();
	return old;
}

/**
 * hwt_cancel() - keep a timeout from firing
 * @timeout: the timeout
 *
 * Any context. A callback that is executing goes on; a periodic timeout is not
 * armed again.
 *
 * Return: true if the timeout was pending: it will not fire for the cancelled schedule, but is
 * still held for a while. False if it was not pending: nothing changed.
 */
bool hwt_cancel(struct hwt_timeout *timeout)
{
	return __hwt_cancel(timeout) & HWT_F_PENDING;
}
EXPORT_SYMBOL_GPL(hwt_cancel);

/**
 * hwt_try_cancel() - cancel, and report whether the callback is executing
 * @timeout: the timeout
 *
 * Any context; never waits.
 *
 * Return: HWT_WAS_PENDING and HWT_IS_RUNNING, ored, as of the instant of the cancel. Without
 * HWT_IS_RUNNING, the caller sees what the callback has written.
 */
int hwt_try_cancel(struct hwt_timeout *timeout)
{
	u64 old = __hwt_cancel(timeout);
	int ret = old & HWT_F_PENDING ? HWT_WAS_PENDING : 0;

	if (old & HWT_F_RUNNING)
		return ret | HWT_IS_RUNNING;
	/*
	 * Barrier try.acquire, pairs with state.finish in hwt_finish_change(): the caller sees what
	 * the callback has written, even if the state was only read.
	 */
	smp_acquire__after_ctrl_dep();
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_try_cancel);

/**
 * hwt_reopen() - let a timeout that was shut down be scheduled again
 * @timeout: the timeout; hwt_shutdown_sync() has returned
 *
 * Any context. Undoes a shutdown, as enable_work() undoes disable_work(). Other CPUs may schedule
 * the timeout meanwhile, as they must not during hwt_timeout_init(): their earlier schedules fail.
 */
void hwt_reopen(struct hwt_timeout *timeout)
{
	u64 old = hwt_timeout_state(timeout);

	/* No barrier: what the caller has written is ordered by the schedule that follows. */
	while (!hwt_state_change(timeout, &old, hwt_state_reopen(old)))
		;
}
EXPORT_SYMBOL_GPL(hwt_reopen);

/* -- Initialisation and queries ------------------------------------------ */

/* The function behind the macro hwt_timeout_init(), which adds the lockdep key. */
void __hwt_timeout_init(struct hwt_timeout *timeout, struct hwt_wheel *wheel,
			const struct hwt_timeout_ops *ops, const char *name,
			struct lock_class_key *key)
{
	if (static_branch_unlikely(&hwt_debug) && !__hwt_debug_init(timeout))
		return;
	atomic64_set(&timeout->state, 0);
	timeout->link.next = NULL;
	timeout->submit.next = NULL;
	timeout->ops = ops;
	timeout->shard = hwt_shard_here(wheel);
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
 * @timeout: the timeout: not held, and no ->release of it is executing
 * @wheel:   the wheel
 *
 * Any context; the timeout must not be used concurrently. The timeout goes to the shard of the
 * present CPU, even if it was on another shard of the wheel.
 *
 * When !hwt_held(), the ->release of the last hold may not have begun. So the caller of a timeout
 * that has a ->release first calls hwt_cancel_sync() or hwt_shutdown_sync(): after the move, these
 * do not wait for a ->release on the old wheel any more. The parameter "debug" reports a move that
 * comes too early.
 */
void hwt_timeout_set_wheel(struct hwt_timeout *timeout, struct hwt_wheel *wheel)
{
	if (static_branch_unlikely(&hwt_debug))
		hwt_debug_move(timeout);
	timeout->shard = hwt_shard_here(wheel);
}
EXPORT_SYMBOL_GPL(hwt_timeout_set_wheel);

/* Return the wheel that a shard belongs to. */
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

	/* Pairs with hwt_periodic_begin(). Until it finishes, these are the previous values. */
	if (READ_ONCE(periodic->run.mode) == HWT_MODE_FIXED_RATE)
		return hwt_deadline_to_tick(shard, atomic64_read(&periodic->run.next_ns));
	return hwt_deadline_to_tick(shard, hwt_add_ns(hwt_clock_now(shard),
						      atomic64_read(&periodic->run.period_ns)));
}

/**
 * hwt_deadline() - return the deadline of a timeout
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: its deadline on the wheel's clock, ns, rounded up to the tick (and moved within its
 * slack); U64_MAX if it never fires; 0 if it is not pending. While the callback of a periodic
 * timeout executes, the next deadline; with HWT_MODE_FIXED_DELAY, as if the callback returned now.
 * Only the callback may rely on this: until the callback has begun, other contexts may still get an
 * earlier deadline.
 */
u64 hwt_deadline(const struct hwt_timeout *timeout)
{
	u64 state = hwt_timeout_state(timeout);
	u64 tick = hwt_state_tick(state);

	if (!(state & HWT_F_PENDING))
		return 0;
	if (!(state & HWT_F_ARMED))
		tick = hwt_periodic_upcoming(timeout);
	return hwt_tick_to_ns(timeout->shard, tick);
}
EXPORT_SYMBOL_GPL(hwt_deadline);
