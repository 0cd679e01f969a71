// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scheduling and cancelling: the half of a timeout's life that takes no lock
 *
 * Everything here changes a timeout by compare-and-swap of its word, and may then
 * have to put it on the submission list of the local CPU for the engine to see:
 *
 *   was                      schedule                     cancel
 *   ------------------------ ---------------------------- ------------------------
 *   idle                     ARMED QUEUED, push           nothing
 *   ARMED, in a bucket       later: the word only         QUEUED, push
 *                            earlier: QUEUED, push
 *   QUEUED (armed or not)    the word only                the word only
 *   RUNNING                  the word only                the word only
 *
 * Whoever sets QUEUED pushes, and after the push does not touch the timeout again:
 * it may have fired and been freed. From the look at the door (wheel->closed), and
 * from the claim of a cancel, to the end of the push and the wake-up is an RCU
 * read-side section: a stop waits for it. It is one of those that disable preemption
 * (rcu_read_lock_sched()): cheaper than the others, and whoever has set a flag that
 * others rely on, that the engine was kicked or that a list has entries, goes on at once.
 *
 * Cost, schedule of an idle timeout at an absolute deadline: one locked instruction
 * on the word, one on the local list's head, one more after the list was collected.
 */
#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/hardirq.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/timekeeping.h>

#include "core/clock.h"
#include "core/debug.h"
#include "core/submit.h"
#include "core/trace.h"

/* -- Kicks --------------------------------------------------------------- */

/* Runs in hard interrupt context, on PREEMPT_RT too. */
void hwt_wheel_irq_work(struct irq_work *work)
{
	struct hwt_wheel *wheel = container_of(work, struct hwt_wheel, irq_work);

	/* A callback may have begun since the kick. As there: it is not woken, and after it
	 * the engine looks. Ordered by the barrier there, which this comes after.
	 */
	if (!READ_ONCE(wheel->engine.current_timeout))
		wake_up_process(wheel->thread);
}

/*
 * Has the engine been kicked, so that another kick is not needed? If that was left to an
 * interrupt it is not relied upon: a CPU that goes down may not come to it any more. (If an NMI
 * queues it in the last moments of a CPU, it stays pending until that CPU is back. Until then a
 * kick with interrupts off does nothing; any other wakes the engine itself.)
 */
static bool hwt_wheel_kicked(struct hwt_wheel *wheel)
{
	return READ_ONCE(wheel->kicked) && !irq_work_is_pending(&wheel->irq_work);
}

/**
 * hwt_wheel_kick() - wake the engine, or keep it from going to sleep
 * @wheel: the wheel, kept alive by RCU or otherwise
 *
 * Any context. Cheap while it has been kicked and not begun its pass.
 */
void hwt_wheel_kick(struct hwt_wheel *wheel)
{
	/* Barrier kick.before, pairs with pass.mb in hwt_engine_pass(): if this CPU finds an
	 * earlier kick, the engine has yet to clear that, and its pass then finds what the caller
	 * has done (a push, wheel->reclaim, a deferred entry).
	 */
	smp_mb();
	if (hwt_wheel_kicked(wheel))
		return;
	/* Others rely on whoever sets it to wake the engine at once. */
	preempt_disable();
	WRITE_ONCE(wheel->kicked, true);
	/* Barrier kick.after, pairs with wait.state in hwt_engine_sleep_until(): the engine sees
	 * kicked, or this CPU sees the engine asleep and in no callback. In a callback the engine
	 * is not woken, because the callback may be sleeping; the engine looks after it.
	 */
	smp_mb();
	if (!READ_ONCE(wheel->engine.current_timeout)) {
		/* With interrupts off the caller may hold a lock of the scheduler. Barrier
		 * kick.irq, pairs with kernel.irq_work in irq_work_run(): an interrupt that is
		 * pending already finds the engine as it is after kicked was set.
		 */
		if (in_nmi() || irqs_disabled())
			irq_work_queue(&wheel->irq_work);
		else
			wake_up_process(wheel->thread);
	}
	preempt_enable();
}

/* -- The submission lists ------------------------------------------------ */

/*
 * Put a timeout for which the caller has set QUEUED on the local list. The timeout may be freed
 * from then on.
 *
 * Every caller looks at the bit, not only the one that found the list empty: it may have
 * interrupted that one before it sets the bit. Only this CPU sets its bit, and the caller stays on
 * it. So a bit that is found set was set before llist_add(), or by an interrupt since, which has
 * passed the barrier behind set_bit(): in either case a full barrier came after the bit.
 */
static __always_inline void hwt_push(struct hwt_wheel *wheel,
				     struct hwt_timeout *timeout)
{
	unsigned int cpu = smp_processor_id();

	/* Barrier push.add, pairs with intake.mb and intake.take in hwt_intake_refill(), reclaim.mb
	 * in hwt_engine_reclaim() and sleep.mb in hwt_engine_sleep(): the engine has yet to clear a
	 * bit that is found set below, and then takes the entry. If the engine's last look does not
	 * find it, the caller finds wake_tick and sleep_seq as they were published.
	 */
	llist_add(&timeout->submit, &per_cpu_ptr(wheel->cpu, cpu)->list);
	if (!test_bit(cpu, wheel->active)) {
		set_bit(cpu, wheel->active);
		/* Barrier push.bit, pairs with sleep.mb in hwt_engine_sleep(): the engine's last
		 * look finds the bit, or the caller finds wake_tick and sleep_seq as they were
		 * published before that look.
		 */
		smp_mb__after_atomic();
	}
}

/* -- max_pending --------------------------------------------------------- */

static bool hwt_limit_get(struct hwt_wheel *wheel)
{
	s64 limited = atomic64_read(&wheel->limited);

	/* No barrier: a count, by which nothing is ordered. */
	do {
		if (limited >= wheel->max_pending)
			return false;
	} while (!atomic64_try_cmpxchg(&wheel->limited, &limited, limited + 1));
	return true;
}

/**
 * hwt_limit_put() - a timeout has ceased to be pending
 * @wheel: its wheel
 */
void hwt_limit_put(struct hwt_wheel *wheel)
{
	if (unlikely(wheel->max_pending))
		atomic64_dec(&wheel->limited);
}

/* -- Schedule ------------------------------------------------------------ */

#define HWT_HOW_AT		0x0	/* the time is a deadline */
#define HWT_HOW_AFTER		0x1	/* the time is a delay */
#define HWT_HOW_EARLIER		0x2	/* only if it fires sooner by it */
#define HWT_HOW_PENDING		0x4	/* only if it is pending */
#define HWT_HOW_PERIODIC	0x8
#define HWT_HOW_LIMITED		0x10	/* the wheel has a max_pending */

/*
 * Hand a timeout that has QUEUED set to the engine. @claimed: it was the caller who set
 * it, and found @seq before. Not inlined: pushing a deadline back does without all this.
 */
static noinline void hwt_submit(struct hwt_wheel *wheel, struct hwt_timeout *timeout,
				u64 tick, bool claimed, unsigned int seq)
{
	if (claimed) {
		hwt_push(wheel, timeout);
		if (unlikely(READ_ONCE(wheel->sleep_seq) != seq))
			hwt_wheel_kick(wheel);
	}
	if (static_branch_unlikely(&hwt_debug))
		hwt_wheel_kick(wheel);
	/* Until the engine gets the CPU, the first one's kick is enough. */
	if (tick < (u64)atomic64_read(&wheel->wake_tick) && !hwt_wheel_kicked(wheel))
		hwt_wheel_kick(wheel);
}

/*
 * The word says ARMED, or is left as it is and the answer says why. Inlined with
 * constant @how into each entry point. RCU read-side section.
 */
static __always_inline int hwt_arm(struct hwt_wheel *wheel,
				   struct hwt_timeout *timeout, u64 tick,
				   unsigned int how)
{
	unsigned int seq = 0;
	bool limited = false;
	u64 old, new;
	int ret;

	if (how & HWT_HOW_EARLIER) {
		/* Barrier earlier.mb, pairs with state.fire in hwt_fire(): the callback sees what
		 * the caller has done before, say noted an event, or the word says here that the
		 * timeout has fired. A word that is left as it is sees no compare-and-swap.
		 */
		smp_mb();
	}
	old = hwt_timeout_state(timeout);
	/* Barrier state.arm, pairs with state.pull in hwt_arm(), state.cancel in hwt_word_cancel(),
	 * sleep.seq in hwt_engine_sleep(), state.settle in hwt_settle_queued() and state.fire in
	 * hwt_fire(): sleep_seq is read before the claim, and the callback sees what the client has
	 * written. Barrier state.pull, pairs with state.arm in hwt_arm(), sleep.seq and sleep.mb in
	 * hwt_engine_sleep() and pass.mb in hwt_engine_pass(): when the tick of a QUEUED timeout is
	 * changed, the engine finds that, or wake_tick and kicked are found here as it left them.
	 */
	do {
again:
		ret = -ESHUTDOWN;
		if (unlikely(old & HWT_F_SHUTDOWN))
			goto out_limit;
		ret = (old & HWT_F_PENDING ? HWT_WAS_PENDING : 0) |
		      (old & HWT_F_HELD ? HWT_WAS_HELD : 0);
		if ((how & HWT_HOW_EARLIER) && (old & HWT_F_ARMED) &&
		    tick >= old >> HWT_TICK_SHIFT)
			goto out_limit;
		if ((how & HWT_HOW_PENDING) && !(old & HWT_F_PENDING)) {
			ret = -ENOENT;
			goto out_limit;
		}
		if ((how & HWT_HOW_LIMITED) && !limited && !(old & HWT_F_PENDING)) {
			limited = hwt_limit_get(wheel);
			if (!limited) {
				/* Another one may have taken the last place for it. */
				if (hwt_timeout_state(timeout) != old) {
					old = hwt_timeout_state(timeout);
					goto again;
				}
				this_cpu_inc(wheel->cpu->rejected);
				return -EAGAIN;
			}
		}
		new = tick << HWT_TICK_SHIFT | HWT_F_ARMED |
		      (old & (HWT_F_SUBMITTED | HWT_F_RUNNING));
		if (how & HWT_HOW_PERIODIC)
			new |= HWT_F_PERIODIC;
		/* Not on its way to the engine, and not in a bucket that comes due
		 * in time: it has to be submitted.
		 */
		if (!(old & (HWT_F_SUBMITTED | HWT_F_RUNNING)) &&
		    (!(old & HWT_F_ARMED) || tick < old >> HWT_TICK_SHIFT)) {
			new |= HWT_F_SUBMITTED;
			/* Before the claim, and again after the push: has the engine
			 * gone to sleep in between? Then somebody may have pulled
			 * this timeout forward, woken the engine, and the engine not
			 * found it on a list yet. The compare-and-swaps of the claim
			 * and of the push order the two reads.
			 */
			seq = READ_ONCE(wheel->sleep_seq);
		}
	} while (!hwt_state_change(timeout, &old, new));

	if (ret & HWT_WAS_PENDING) {
		this_cpu_inc(wheel->cpu->rearmed);
	} else {
		this_cpu_inc(wheel->cpu->scheduled);
		/* Roughly: an interrupt may count one more in between. */
		if (unlikely(!(raw_cpu_read(wheel->cpu->scheduled) & (HWT_BACKLOG - 1))))
			hwt_wheel_kick(wheel);
	}

	if (new & HWT_F_SUBMITTED)
		hwt_submit(wheel, timeout, tick, !(old & HWT_F_SUBMITTED), seq);
	if (likely(!limited || !(old & HWT_F_PENDING)))
		return ret;
out_limit:
	/* A place was reserved, and is not needed after all. */
	if (limited)
		hwt_limit_put(wheel);
	return ret;
}

/* Rare, and not inlined anywhere. */
static noinline int hwt_arm_limited(struct hwt_wheel *wheel,
				    struct hwt_timeout *timeout, u64 tick,
				    unsigned int how)
{
	return hwt_arm(wheel, timeout, tick, how | HWT_HOW_LIMITED);
}

/* Through the door, if it is open. */
static __always_inline int hwt_arm_open(struct hwt_wheel *wheel,
					struct hwt_timeout *timeout, u64 tick,
					unsigned int how)
{
	int ret;

	/* Barrier arm.rcu, pairs with stop.grace1 in hwt_stop() and unmake.grace in
	 * hwt_wheel_unmake(): a caller that finds the door open has pushed, and kicked the engine,
	 * when the grace period is over.
	 */
	rcu_read_lock_sched();
	if (unlikely(READ_ONCE(wheel->closed))) {
		this_cpu_inc(wheel->cpu->rejected);
		ret = -ESHUTDOWN;
	} else if (unlikely(wheel->max_pending)) {
		ret = hwt_arm_limited(wheel, timeout, tick, how);
	} else {
		ret = hwt_arm(wheel, timeout, tick, how);
	}
	rcu_read_unlock_sched();
	return ret;
}

/* By a way of its own, so that the other has nothing to keep for the tracepoint. */
static noinline int hwt_arm_traced(struct hwt_wheel *wheel, struct hwt_timeout *timeout,
				   u64 tick, unsigned int how)
{
	/* Now: once it is armed, it may fire and be freed. */
	const void *expire = timeout->ops->expire;
	int ret;

	/* Barrier arm.rcu, pairs with unmake.grace in hwt_wheel_unmake(): as in hwt_arm_open(), and
	 * the wheel stays until the tracepoint has told of it.
	 */
	rcu_read_lock_sched();
	ret = hwt_arm_open(wheel, timeout, tick, how);
	trace_hwt_schedule(wheel, timeout, expire, tick, ret);
	rcu_read_unlock_sched();
	return ret;
}

static __always_inline int hwt_arm_checked(struct hwt_timeout *timeout, u64 ns,
					   u64 slack_ns, unsigned int how)
{
	struct hwt_wheel *wheel = timeout->wheel;
	u64 tick, last;

	if (unlikely(!hwt_debug_used(timeout) || !wheel))
		return -EINVAL;
	if (how & HWT_HOW_AFTER)
		ns = hwt_clock_after(wheel, ns);
	tick = hwt_deadline_to_tick(wheel, ns);
	if (slack_ns && tick != HWT_TICK_NEVER) {
		last = hwt_ns_to_tick(wheel, min_t(u64, hwt_add_ns(ns, slack_ns),
						   S64_MAX));
		if (last > tick)
			tick = hwt_tick_relax(tick, last - tick);
	}
	if (trace_hwt_schedule_enabled())
		return hwt_arm_traced(wheel, timeout, tick, how);
	return hwt_arm_open(wheel, timeout, tick, how);
}

/**
 * hwt_schedule() - fire after a delay
 * @timeout:  the timeout; if it is pending it is moved
 * @delay_ns: from now, ns; rounded up to a tick, so 0 is the next one
 *
 * Any context. Reads the clock; hwt_schedule_at() does not. In NMI, the deadline
 * is a tick later.
 *
 * Return: HWT_WAS_PENDING and HWT_WAS_HELD, ored, as they applied before; or, with
 * nothing changed, -ESHUTDOWN (wheel stopped or timeout shut down), -EAGAIN
 * (max_pending reached), -EINVAL (no wheel).
 */
int hwt_schedule(struct hwt_timeout *timeout, u64 delay_ns)
{
	return hwt_arm_checked(timeout, delay_ns, 0, HWT_HOW_AFTER);
}
EXPORT_SYMBOL_GPL(hwt_schedule);

/**
 * hwt_schedule_at() - fire at a deadline
 * @timeout:     the timeout; if it is pending it is moved
 * @deadline_ns: on the wheel's clock, ns; one that has passed fires at the
 *               engine's next pass, 2^63 and more never
 *
 * Any context. Reads no clock: for callers who have the time in hand.
 *
 * Return: as hwt_schedule().
 */
int hwt_schedule_at(struct hwt_timeout *timeout, u64 deadline_ns)
{
	return hwt_arm_checked(timeout, deadline_ns, 0, HWT_HOW_AT);
}
EXPORT_SYMBOL_GPL(hwt_schedule_at);

/**
 * hwt_schedule_slack() - fire after a delay, give or take
 * @timeout:  the timeout; if it is pending it is moved
 * @delay_ns: from now, ns
 * @slack_ns: how much later it may be, ns. Timeouts with slack share wake-ups.
 *
 * Any context.
 *
 * Return: as hwt_schedule().
 */
int hwt_schedule_slack(struct hwt_timeout *timeout, u64 delay_ns, u64 slack_ns)
{
	return hwt_arm_checked(timeout, delay_ns, slack_ns, HWT_HOW_AFTER);
}
EXPORT_SYMBOL_GPL(hwt_schedule_slack);

/**
 * hwt_schedule_at_slack() - fire at a deadline, or somewhat after
 * @timeout:     the timeout; if it is pending it is moved
 * @deadline_ns: on the wheel's clock, ns
 * @slack_ns:    how much later it may be, ns
 *
 * Any context.
 *
 * Return: as hwt_schedule().
 */
int hwt_schedule_at_slack(struct hwt_timeout *timeout, u64 deadline_ns,
			  u64 slack_ns)
{
	return hwt_arm_checked(timeout, deadline_ns, slack_ns, HWT_HOW_AT);
}
EXPORT_SYMBOL_GPL(hwt_schedule_at_slack);

/**
 * hwt_schedule_earlier() - fire after a delay, unless it would fire sooner anyway
 * @timeout:  the timeout
 * @delay_ns: from now, ns
 *
 * Any context. As timer_reduce(): schedules what is not armed, moves only forward. A
 * periodic timeout whose callback is executing is not armed, and becomes a one-shot. Also if it
 * is left as it was, the callback that follows sees what the caller has written before.
 *
 * Return: as hwt_schedule(); with HWT_WAS_PENDING it may have been left as it was.
 */
int hwt_schedule_earlier(struct hwt_timeout *timeout, u64 delay_ns)
{
	return hwt_arm_checked(timeout, delay_ns, 0,
			       HWT_HOW_AFTER | HWT_HOW_EARLIER);
}
EXPORT_SYMBOL_GPL(hwt_schedule_earlier);

/**
 * hwt_schedule_earlier_at() - fire at a deadline, unless it would fire sooner anyway
 * @timeout:     the timeout
 * @deadline_ns: on the wheel's clock, ns
 *
 * Any context.
 *
 * Return: as hwt_schedule_earlier().
 */
int hwt_schedule_earlier_at(struct hwt_timeout *timeout, u64 deadline_ns)
{
	return hwt_arm_checked(timeout, deadline_ns, 0,
			       HWT_HOW_AT | HWT_HOW_EARLIER);
}
EXPORT_SYMBOL_GPL(hwt_schedule_earlier_at);

/**
 * hwt_schedule_pending() - move a pending timeout, leave any other alone
 * @timeout:  the timeout
 * @delay_ns: from now, ns
 *
 * Any context. As mod_timer_pending().
 *
 * Return: as hwt_schedule(), or -ENOENT if it was not pending: nothing changed.
 */
int hwt_schedule_pending(struct hwt_timeout *timeout, u64 delay_ns)
{
	return hwt_arm_checked(timeout, delay_ns, 0,
			       HWT_HOW_AFTER | HWT_HOW_PENDING);
}
EXPORT_SYMBOL_GPL(hwt_schedule_pending);

/**
 * hwt_schedule_pending_at() - move a pending timeout, leave any other alone
 * @timeout:     the timeout
 * @deadline_ns: on the wheel's clock, ns
 *
 * Any context.
 *
 * Return: as hwt_schedule_pending().
 */
int hwt_schedule_pending_at(struct hwt_timeout *timeout, u64 deadline_ns)
{
	return hwt_arm_checked(timeout, deadline_ns, 0,
			       HWT_HOW_AT | HWT_HOW_PENDING);
}
EXPORT_SYMBOL_GPL(hwt_schedule_pending_at);

/**
 * hwt_schedule_periodic_at() - fire at a time, and again each period
 * @periodic:  the periodic timeout; if it is pending it starts anew
 * @first_ns:  the first deadline, on the wheel's clock, ns
 * @period_ns: not 0. One shorter than a tick makes overruns.
 * @mode:      what the period is counted from
 *
 * Any context. Calls for one timeout exclude each other, by the caller's means;
 * cancels and one-shot schedules may run together with it. If it is about to fire by an earlier
 * schedule, it may do that by a mixture of both, until this is through.
 *
 * Return: as hwt_schedule(); also -EINVAL for a period of 0 or an unknown mode.
 */
int hwt_schedule_periodic_at(struct hwt_periodic *periodic, u64 first_ns,
			     u64 period_ns, enum hwt_repeat mode)
{
	int ret;

	if (!period_ns || (mode != HWT_FIXED_RATE && mode != HWT_FIXED_DELAY))
		return -EINVAL;
	/* Pair with hwt_periodic_begin(), which reads them after it has taken the
	 * word that is published below. If it looks at a word of before, it may see
	 * a mixture, and goes on by that until it finds the new word: not for long,
	 * without preemption here.
	 */
	preempt_disable();
	WRITE_ONCE(periodic->set.first_ns, first_ns);
	WRITE_ONCE(periodic->set.period_ns, period_ns);
	WRITE_ONCE(periodic->set.mode, mode);
	ret = hwt_arm_checked(&periodic->timeout, first_ns, 0,
			      HWT_HOW_AT | HWT_HOW_PERIODIC);
	preempt_enable();
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_schedule_periodic_at);

/**
 * hwt_schedule_periodic() - fire after a delay, and again each period
 * @periodic:  the periodic timeout; if it is pending it starts anew
 * @delay_ns:  to the first deadline, ns
 * @period_ns: not 0. One shorter than a tick makes overruns.
 * @mode:      what the period is counted from
 *
 * Any context, with the restriction of hwt_schedule_periodic_at().
 *
 * Return: as hwt_schedule_periodic_at().
 */
int hwt_schedule_periodic(struct hwt_periodic *periodic, u64 delay_ns,
			  u64 period_ns, enum hwt_repeat mode)
{
	struct hwt_wheel *wheel = periodic->timeout.wheel;

	if (!hwt_debug_used(&periodic->timeout) || !wheel)
		return -EINVAL;
	return hwt_schedule_periodic_at(periodic,
					hwt_clock_after(wheel, delay_ns),
					period_ns, mode);
}
EXPORT_SYMBOL_GPL(hwt_schedule_periodic);

/* -- Cancel -------------------------------------------------------------- */

/**
 * hwt_word_cancel() - the word of a cancel
 * @timeout: the timeout
 * @set:     HWT_F_SHUTDOWN, or 0
 * @was:     the word as it was before
 *
 * Return: true if QUEUED was claimed: the caller pushes it, or holds the wheel's
 * lock and settles it.
 */
bool hwt_word_cancel(struct hwt_timeout *timeout, u64 set, u64 *was)
{
	u64 old = hwt_timeout_state(timeout), new;

	/* Barrier state.cancel, pairs with state.arm in hwt_arm(), sleep.seq in hwt_engine_sleep()
	 * and reclaim.mb in hwt_engine_reclaim(): sleep_seq is read before a claim, and
	 * wheel->reclaim after the change, so the pass that clears that flag finds the change.
	 */
	do {
		new = old | set;
		if (old & HWT_F_PENDING) {
			new &= ~(HWT_F_PENDING | HWT_F_EXPIRED);
			new |= HWT_F_CANCELLED;
			if (!(old & (HWT_F_SUBMITTED | HWT_F_RUNNING)))
				new |= HWT_F_SUBMITTED;
		} else if (new == old) {
			break;
		}
	} while (!hwt_state_change(timeout, &old, new));
	*was = old;
	return new & ~old & HWT_F_SUBMITTED;
}

/**
 * hwt_note_cancel() - a cancel has hit a pending timeout
 * @wheel:   its wheel
 * @timeout: it may be gone
 * @word:    its word as it was before
 */
void hwt_note_cancel(struct hwt_wheel *wheel, const struct hwt_timeout *timeout, u64 word)
{
	trace_hwt_cancel(wheel, timeout, word >> HWT_TICK_SHIFT);
	this_cpu_inc(wheel->cpu->cancelled);
	hwt_limit_put(wheel);
}

/* Make sure that the engine lets the cancelled go within reclaim_ms. */
static void hwt_reclaim_soon(struct hwt_wheel *wheel)
{
	/* The caller's change of the word (state.cancel) or push (push.add) came before this, and
	 * hwt_engine_reclaim() clears the flag before it looks (reclaim.mb).
	 */
	if (likely(READ_ONCE(wheel->reclaim)))
		return;
	/* Others rely on whoever sets it to kick the engine at once: no preemption here. */
	WRITE_ONCE(wheel->reclaim, true);
	hwt_wheel_kick(wheel);
}

/* Return: the word as it was before. */
static __always_inline u64 hwt_cancel_word(struct hwt_timeout *timeout)
{
	struct hwt_wheel *wheel;
	unsigned int seq;
	bool claimed;
	u64 old;

	old = hwt_timeout_state(timeout);
	if (!(old & HWT_F_PENDING) || !hwt_debug_used(timeout))
		return old & ~HWT_F_PENDING;
	/* Barrier cancel.rcu, pairs with stop.grace2 in hwt_stop() and unmake.grace in
	 * hwt_wheel_unmake(): what is claimed here is pushed, and the engine kicked, when the grace
	 * period is over.
	 */
	rcu_read_lock_sched();
	wheel = timeout->wheel;
	seq = READ_ONCE(wheel->sleep_seq);	/* as in hwt_arm() */
	claimed = hwt_word_cancel(timeout, 0, &old);
	if (old & HWT_F_PENDING) {
		if (claimed) {
			hwt_push(wheel, timeout);
			if (unlikely(READ_ONCE(wheel->sleep_seq) != seq))
				hwt_wheel_kick(wheel);
		}
		hwt_note_cancel(wheel, timeout, old);
		hwt_reclaim_soon(wheel);
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
 * Return: true if it was pending: it will not fire for the schedule that was
 * cancelled. It is still held for a while. False if it was not: nothing changed.
 */
bool hwt_cancel(struct hwt_timeout *timeout)
{
	return hwt_cancel_word(timeout) & HWT_F_PENDING;
}
EXPORT_SYMBOL_GPL(hwt_cancel);

/**
 * hwt_try_cancel() - cancel, and say whether the callback is executing
 * @timeout: the timeout
 *
 * Any context; never waits.
 *
 * Return: HWT_WAS_PENDING and HWT_IS_RUNNING, ored, as they applied at the instant
 * of the cancel. Without HWT_IS_RUNNING, the caller sees what the callback has written.
 */
int hwt_try_cancel(struct hwt_timeout *timeout)
{
	u64 old = hwt_cancel_word(timeout);
	int ret = old & HWT_F_PENDING ? HWT_WAS_PENDING : 0;

	if (old & HWT_F_RUNNING)
		return ret | HWT_IS_RUNNING;
	/* Barrier try.acquire, pairs with state.settle in hwt_settle_running(): the caller sees what
	 * the callback has written. The word may only have been looked at.
	 */
	smp_acquire__after_ctrl_dep();
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_try_cancel);

/* -- Making and asking --------------------------------------------------- */

/* hwt_timeout_init() without the lockdep key; see there. */
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
	timeout->wheel = wheel;
	timeout->deferred = false;
	timeout->tracked = false;
	timeout->check = hwt_debug_mark(timeout);
#ifdef CONFIG_LOCKDEP
	lockdep_init_map(&timeout->lockdep_map, name, key, 0);
#endif
}
EXPORT_SYMBOL_GPL(__hwt_timeout_init);

/* When a periodic timeout will be armed for, whose callback is executing. */
static u64 hwt_periodic_upcoming(const struct hwt_timeout *timeout)
{
	const struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);
	const struct hwt_wheel *wheel = timeout->wheel;

	/* Pair with hwt_periodic_begin(). Before that is through, they are of before. */
	if (READ_ONCE(periodic->run.mode) == HWT_FIXED_RATE)
		return hwt_deadline_to_tick(wheel, READ_ONCE(periodic->run.next_ns));
	return hwt_deadline_to_tick(wheel, hwt_add_ns(hwt_clock_now(wheel),
						      READ_ONCE(periodic->run.period_ns)));
}

/**
 * hwt_deadline() - when will it fire?
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: its deadline on the wheel's clock, ns, rounded up to the tick (and moved
 * within its slack); U64_MAX if it never will; 0 if it is not pending. Of a periodic
 * timeout whose callback is executing, the next deadline; with HWT_FIXED_DELAY, what that
 * would be if the callback returned now. Only the callback may rely on
 * that: seen from outside in the instant in which it begins to fire, it may be one of before.
 */
u64 hwt_deadline(const struct hwt_timeout *timeout)
{
	u64 word = hwt_timeout_state(timeout);
	u64 tick = word >> HWT_TICK_SHIFT;

	if (!(word & HWT_F_PENDING))
		return 0;
	if (!(word & HWT_F_ARMED))
		tick = hwt_periodic_upcoming(timeout);
	return hwt_tick_to_ns(timeout->wheel, tick);
}
EXPORT_SYMBOL_GPL(hwt_deadline);

/**
 * hwt_remaining() - how long until it fires?
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: ns; 0 if it is due or not pending; U64_MAX if it never fires.
 */
u64 hwt_remaining(const struct hwt_timeout *timeout)
{
	u64 deadline = hwt_deadline(timeout), now;

	if (deadline == 0 || deadline == U64_MAX)
		return deadline;
	now = hwt_clock_now(timeout->wheel);
	return deadline > now ? deadline - now : 0;
}
EXPORT_SYMBOL_GPL(hwt_remaining);
