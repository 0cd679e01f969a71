// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine: what a wheel's thread does, and all that is done under the wheel's lock
 *
 * A pass collects what was submitted, moves the cursor to now, and runs the callbacks
 * that have come due, each part bounded. Then the engine sleeps until the next tick
 * at which something is due. If the wheel has workers (core/thread.c), it is they who run
 * the callbacks, and the engine runs none whatsoever.
 *
 * Rules for a timeout's word (the design's text gives the reasons):
 *
 *   - In a bucket or on the due list: ARMED or QUEUED is set. RUNNING: in no list.
 *   - The lock-free half (core/submit.c) may change the word at any line here. So
 *     each decision is a compare-and-swap of exactly the word it was made from, and
 *     starts again from the new one if that fails.
 *   - RUNNING is set by the compare-and-swap that decides to fire, and is exclusive:
 *     until the end of the callback a collected entry only loses QUEUED.
 *   - The compare-and-swap that leaves neither ARMED, QUEUED nor RUNNING ends the
 *     hold. The timeout is out of all lists before it, and is not touched after it;
 *     what is needed then (->release) is read before.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/llist.h>
#include <linux/math64.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "core/callback.h"
#include "core/clock.h"
#include "core/debug.h"
#include "core/engine.h"
#include "core/registry.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"
#include "core/trace.h"

/**
 * hwt_lock_break() - let others have the lock and the CPU
 * @wheel: its lock is held
 *
 * And let RCU-tasks know, which on kernels with preemption nobody else tells. But not in an RCU
 * reader, which must not give up the CPU: with debug=1, hwt_debug_freed() gets here from a kfree()
 * that may be in one.
 */
void hwt_lock_break(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	spin_unlock(&wheel->lock);
	if (!rcu_preempt_depth())
		cond_resched_tasks_rcu_qs();
	spin_lock(&wheel->lock);
}

/* -- Collecting ---------------------------------------------------------- */

/* Take the list of the next CPU that has submitted something. */
static bool hwt_intake_refill(struct hwt_wheel *wheel)
{
	struct hwt_intake *intake = &wheel->intake;
	unsigned int cpu;

	/* Others only set bits meanwhile: what is read twice has not become less, and a
	 * bit that is missed is as if it had been set after this look.
	 */
	cpu = data_race(find_next_bit(wheel->active, nr_cpu_ids, intake->cpu + 1));
	if (cpu >= nr_cpu_ids) {
		/* Likewise. */
		cpu = data_race(find_first_bit(wheel->active, nr_cpu_ids));
		if (cpu >= nr_cpu_ids)
			return false;
		intake->turns++;
	}
	intake->cpu = cpu;
	clear_bit(cpu, wheel->active);
	/* Barrier intake.mb, pairs with push.add in hwt_push(): an entry that is not taken here was
	 * added after the bit was cleared, and its owner will set the bit again.
	 */
	smp_mb__after_atomic();
	/* Barrier intake.take, pairs with push.add in hwt_push(): as intake.mb, because
	 * llist_del_all() is made as an exchange. Its interface does not promise that.
	 */
	intake->fresh = llist_del_all(&per_cpu_ptr(wheel->cpu, cpu)->list);
	return true;
}

/* The next submission, oldest of its CPU first; NULL if there is none. */
static struct hwt_timeout *hwt_intake_pop(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	struct hwt_intake *intake = &wheel->intake;
	struct llist_node *node;
	unsigned int n;

	while (!intake->ordered) {
		if (!intake->fresh && !hwt_intake_refill(wheel))
			return NULL;
		for (n = 0; intake->fresh && n < HWT_STEP; n++) {
			node = intake->fresh;
			intake->fresh = node->next;
			node->next = intake->reversed;
			intake->reversed = node;
		}
		if (intake->fresh) {
			hwt_lock_break(wheel);
		} else {
			intake->ordered = intake->reversed;
			intake->reversed = NULL;
		}
	}
	node = intake->ordered;
	/* Now: once QUEUED is dropped, somebody may push it again. */
	intake->ordered = node->next;
	return llist_entry(node, struct hwt_timeout, submit);
}

/**
 * hwt_collect() - settle submissions
 * @wheel:  its lock is held, and is dropped now and then
 * @runner: who collects
 * @max:    at most so many
 *
 * Return: how many it were.
 */
unsigned int hwt_collect(struct hwt_wheel *wheel, struct hwt_runner *runner,
			 unsigned int max)
	__must_hold(&wheel->lock)
{
	struct hwt_timeout *timeout;
	unsigned int n = 0;

	while (n < max && (timeout = hwt_intake_pop(wheel))) {
		hwt_settle_queued(wheel, runner, timeout);
		hwt_count(&wheel->collected, 1);
		if (++n % HWT_STEP == 0)
			hwt_lock_break(wheel);
	}
	if (n && wheel->state == HWT_INIT)
		WRITE_ONCE(wheel->state, HWT_STARTED);
	return n;
}

/**
 * hwt_collect_before() - settle what was submitted before
 * @wheel:  its lock is held, and is dropped now and then
 * @runner: who collects
 *
 * Not what comes meanwhile, which may be as much as can be collected.
 */
void hwt_collect_before(struct hwt_wheel *wheel, struct hwt_runner *runner)
	__must_hold(&wheel->lock)
{
	/* This turn has the CPUs behind the present one, the next turn those before it. */
	unsigned long end = wheel->intake.turns + 2;

	while (time_before(wheel->intake.turns, end) &&
	       hwt_collect(wheel, runner, HWT_STEP))
		;
}

/* -- Settling ------------------------------------------------------------ */

/* Would the end of this hold call back, and may this runner not do that? */
static bool hwt_must_defer(const struct hwt_runner *runner,
			   const struct hwt_timeout *timeout, u64 word)
{
	if (runner->only ? runner->only == timeout : !runner->mute)
		return false;
	return timeout->ops->release ||
	       (timeout->ops->cancelled && (word & HWT_F_CANCELLED));
}

/* Leave a collected timeout to those who may call back. It is still QUEUED. */
static void hwt_defer(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	list_add_tail(&timeout->link, &wheel->deferred);
	timeout->deferred = true;
	wheel->deferrals++;
	if (wheel->workers)
		hwt_worker_wake(wheel);
	else
		hwt_wheel_kick(wheel);
	/* A hwt_wait() does not wait for the callback that says that it was cancelled. */
	hwt_sync_wake(wheel);
}

/* Take a timeout off the list of those that hwt_defer() has left to somebody else. */
void hwt_undefer(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	list_del(&timeout->link);
	timeout->link.next = NULL;
	timeout->deferred = false;
	wheel->deferrals--;
}

/*
 * Link a timeout. Whoever has armed it may have kicked the engine before it was in its place
 * (it was on the deferred list), or nobody has (it was RUNNING, or due and pushed back).
 */
static void hwt_relink(struct hwt_wheel *wheel, struct hwt_timeout *timeout, u64 word)
	__must_hold(&wheel->lock)
{
	hwt_buckets_insert(&wheel->buckets, timeout);
	/* The engine itself looks before it sleeps. */
	if (current != wheel->thread &&
	    word >> HWT_TICK_SHIFT < (u64)atomic64_read(&wheel->wake_tick))
		hwt_wheel_kick(wheel);
}

/**
 * hwt_settle_queued() - act on what a collected timeout's word says, and drop QUEUED
 * @wheel:   its lock is held, and is dropped around callbacks
 * @runner:  who collected it
 * @timeout: QUEUED, and on no submission list any more
 *
 * The timeout may be gone afterwards.
 */
void hwt_settle_queued(struct hwt_wheel *wheel, struct hwt_runner *runner,
		       struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	const struct hwt_timeout_ops *ops = timeout->ops;
	void (*release)(struct hwt_timeout *timeout) = ops->release;
	u64 old, new;

	if (hwt_linked(timeout))
		hwt_buckets_remove(&wheel->buckets, timeout);
	old = hwt_timeout_state(timeout);
	/* Barrier state.settle, pairs with state.arm in hwt_arm(): whoever begins the next hold sees
	 * all that was done in this one.
	 */
	do {
		new = old & ~HWT_F_SUBMITTED;
		if (!(old & (HWT_F_ARMED | HWT_F_RUNNING))) {
			if (hwt_must_defer(runner, timeout, old)) {
				hwt_defer(wheel, timeout);
				return;
			}
			if ((old & HWT_F_CANCELLED) && ops->cancelled)
				new |= HWT_F_RUNNING;
		}
		hwt_debug_track(timeout, new);
	} while (!hwt_state_change(timeout, &old, new));

	if (old & HWT_F_RUNNING)
		return;
	if (old & HWT_F_ARMED) {
		hwt_relink(wheel, timeout, new);
	} else if (new & HWT_F_RUNNING) {
		hwt_settle_running(wheel, runner, timeout, false);
	} else {
		/*
		 * A release that ends no callback counts as a call of its own: hwt_wait_callbacks()
		 * does not take it for an earlier one.
		 */
		runner->call = ++wheel->calls;
		hwt_call_release(wheel, runner, timeout, release);
	}
}

/**
 * hwt_settle_deferred() - settle a timeout that was left to the engine
 * @wheel:   its lock is held, and is dropped around callbacks
 * @runner:  somebody who may run its callbacks
 * @timeout: the timeout
 *
 * Return: false if it is not deferred.
 */
bool hwt_settle_deferred(struct hwt_wheel *wheel, struct hwt_runner *runner,
			 struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	if (!timeout->deferred)
		return false;
	hwt_undefer(wheel, timeout);
	hwt_settle_queued(wheel, runner, timeout);
	return true;
}

/* The deadline of a periodic timeout whose callback has returned, as a tick. */
static u64 hwt_periodic_next(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
{
	struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);

	if (periodic->run.mode == HWT_FIXED_DELAY)
		WRITE_ONCE(periodic->run.next_ns,
			   hwt_add_ns(hwt_clock_now(wheel), periodic->run.period_ns));
	return hwt_deadline_to_tick(wheel, periodic->run.next_ns);
}

/* A periodic timeout fires: count what was missed, and find the next deadline. */
static void hwt_periodic_begin(struct hwt_wheel *wheel,
			       struct hwt_timeout *timeout, bool first)
{
	struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);
	u64 now = hwt_clock_now(wheel), missed = 0, next, period_ns;

	if (first) {
		/* Reads pair with hwt_schedule_periodic_at(), writes with the queries. What
		 * is being scheduled anew may be read by halves on 32 bits, but not as 0.
		 */
		period_ns = READ_ONCE(periodic->set.period_ns);
		WRITE_ONCE(periodic->run.next_ns, READ_ONCE(periodic->set.first_ns));
		WRITE_ONCE(periodic->run.period_ns, max(period_ns, 1ULL));
		WRITE_ONCE(periodic->run.mode, READ_ONCE(periodic->set.mode));
		WRITE_ONCE(periodic->run.total, 0);
	}
	next = periodic->run.next_ns;
	if (periodic->run.mode == HWT_FIXED_RATE) {
		if (now > next && now - next >= periodic->run.period_ns) {
			missed = div64_u64(now - next, periodic->run.period_ns);
			next += missed * periodic->run.period_ns;
		}
		WRITE_ONCE(periodic->run.next_ns,
			   hwt_add_ns(next, periodic->run.period_ns));
	}
	WRITE_ONCE(periodic->run.overruns, missed);
	WRITE_ONCE(periodic->run.total, periodic->run.total + missed);
	hwt_count(&wheel->overruns, missed);
}

/* Tell a timeout that it was cancelled. It is RUNNING meanwhile. */
static void hwt_notify_cancelled(struct hwt_wheel *wheel,
				 struct hwt_runner *runner,
				 struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	void (*cancelled)(struct hwt_timeout *timeout) = timeout->ops->cancelled;
	struct hwt_call call;

	hwt_call_begin(wheel, runner, timeout, cancelled, &call);
	cancelled(timeout);
	hwt_call_end(wheel, runner, timeout, &call);
}

/**
 * hwt_settle_running() - act on what a timeout's word says, and drop RUNNING
 * @wheel:    its lock is held, and is dropped around callbacks
 * @runner:   who set RUNNING
 * @timeout:  RUNNING, and its callback has returned, if there was one
 * @notified: it has been told that it was cancelled
 *
 * The timeout may be gone afterwards.
 */
void hwt_settle_running(struct hwt_wheel *wheel, struct hwt_runner *runner,
			struct hwt_timeout *timeout, bool notified)
	__must_hold(&wheel->lock)
{
	const struct hwt_timeout_ops *ops = timeout->ops;
	void (*release)(struct hwt_timeout *timeout) = ops->release;
	u64 old, new;

	for (;;) {
		old = hwt_timeout_state(timeout);
		if (!(old & (HWT_F_PENDING | HWT_F_SUBMITTED)) && !notified &&
		    (old & HWT_F_CANCELLED) && ops->cancelled) {
			hwt_notify_cancelled(wheel, runner, timeout);
			notified = true;
			continue;
		}
		new = old & ~HWT_F_RUNNING;
		if ((old & HWT_F_PENDING) == HWT_F_REARM) {
			new &= (1ULL << HWT_TICK_SHIFT) - 1;
			new |= hwt_periodic_next(wheel, timeout) << HWT_TICK_SHIFT;
			new |= HWT_F_ARMED;
		}
		hwt_debug_track(timeout, new);
		/* Barrier state.settle, pairs with state.arm in hwt_arm() and try.acquire in
		 * hwt_try_cancel(): whoever finds RUNNING cleared sees all that the callback did.
		 */
		if (hwt_state_change(timeout, &old, new))
			break;
	}

	if (new & HWT_F_ARMED)
		hwt_relink(wheel, timeout, new);
	if (new & HWT_F_HELD)
		release = NULL;
	hwt_call_release(wheel, runner, timeout, release);
}

/* -- Firing -------------------------------------------------------------- */

/**
 * hwt_clock_moved() - was the wall clock set since the buckets were put in order?
 * @wheel: its lock is held
 *
 * What is due may not be due any more then. Setting the clock kicks the engine, so it will
 * look at this soon.
 */
bool hwt_clock_moved(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	return wheel->clock == HWT_CLOCK_REALTIME &&
	       ktime_to_ns(ktime_mono_to_real(0)) != wheel->clock_offset;
}

/*
 * The tick that the buckets are brought to. On the wall clock, as if that had not been set since
 * hwt_engine_check_clock() last took note: a jump may be undone before anybody looks again, and
 * the cursor must not have followed it.
 */
static u64 hwt_engine_tick(const struct hwt_wheel *wheel)
{
	if (wheel->clock == HWT_CLOCK_REALTIME)
		return hwt_ns_to_tick(wheel, ktime_get_ns() + wheel->clock_offset);
	return hwt_ns_to_tick(wheel, hwt_clock_now(wheel));
}

/**
 * struct hwt_lateness - how late a callback has begun
 * @ns:     after its deadline, or after it was scheduled if that was later
 * @late:   two ticks or more after its deadline
 * @behind: it had to wait for more than a turn
 */
struct hwt_lateness {
	u64	ns;
	bool	late;
	bool	behind;
};

/* When a call has begun, on the wheel's clock, ns. @offset: the wall clock's, when it was taken. */
static u64 hwt_call_began(const struct hwt_wheel *wheel, const struct hwt_call *call,
			  s64 offset)
{
	if (wheel->clock == HWT_CLOCK_REALTIME)
		return call->began + offset;
	return hwt_mono_to_wheel(wheel, call->began);
}

/* @since: when it was taken, something had been due since that tick. @offset: as above. */
static struct hwt_lateness hwt_lateness_measure(const struct hwt_wheel *wheel,
						const struct hwt_call *call,
						u64 tick, u64 since, s64 offset)
{
	u64 now_ns = hwt_call_began(wheel, call, offset), due_ns = tick * wheel->tick_ns, now;
	struct hwt_lateness late = { .ns = now_ns > due_ns ? now_ns - due_ns : 0 };

	if (likely(late.ns < 2 * wheel->tick_ns))
		return late;
	late.late = true;
	/* One that was scheduled for the past has not waited since then. */
	now = hwt_ns_to_tick(wheel, now_ns);
	tick = max(tick, min(since, now));
	late.ns = now_ns - tick * wheel->tick_ns;
	late.behind = now - tick > hwt_revolution(wheel);
	return late;
}

/* Under the lock: a module that goes is forgotten before its functions have no names any more. */
static void hwt_behind_report(struct hwt_wheel *wheel, const void *fn, u64 late_ns)
	__must_hold(&wheel->lock)
{
	if (__ratelimit(&wheel->behind_limit))
		pr_warn_ratelimited("%s is behind: %ps had to wait for %llu ms; its slowest callback, %ps, took %llu ms\n",
				    wheel->name, fn, div_u64(late_ns, NSEC_PER_MSEC),
				    wheel->slow->fn, div_u64(wheel->slow->ns, NSEC_PER_MSEC));
}

/**
 * hwt_fire() - the first of the due list fires, or goes back to where it now belongs
 * @wheel:   its lock is held, and is dropped around callbacks
 * @runner:  who calls it
 * @timeout: the first of the due list
 */
void hwt_fire(struct hwt_wheel *wheel, struct hwt_runner *runner,
	      struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	void (*expire)(struct hwt_timeout *timeout) = timeout->ops->expire;
	u64 old = hwt_timeout_state(timeout), new, since = wheel->due_since;
	s64 offset = wheel->clock_offset;
	struct hwt_lateness late;
	struct hwt_call call;

	hwt_buckets_remove(&wheel->buckets, timeout);
	/* What is due next may become so by a flush or a _sync, before a pass looks. */
	if (list_empty(&wheel->buckets.due))
		wheel->due_since = HWT_TICK_NEVER;
	if (unlikely(hwt_flush_reached(wheel, timeout)))
		return;
	/* Barrier state.fire, pairs with state.arm and earlier.mb in hwt_arm(): the callback sees
	 * what the client has written before.
	 */
	do {
		if (!(old & HWT_F_ARMED))
			return;	/* cancelled: settled when it is collected */
		if (old >> HWT_TICK_SHIFT > wheel->buckets.cursor) {
			hwt_relink(wheel, timeout, old);
			return;	/* pushed back */
		}
		new = old & ~(HWT_F_PENDING | HWT_F_CANCELLED);
		new |= HWT_F_RUNNING | HWT_F_EXPIRED;
		if (old & HWT_F_PERIODIC)
			new |= HWT_F_REARM;
	} while (!hwt_state_change(timeout, &old, new));

	hwt_count(&wheel->expired, 1);
	if (!(old & HWT_F_PERIODIC)) {
		hwt_count(&wheel->retired, 1);
		hwt_limit_put(wheel);
	} else {
		hwt_periodic_begin(wheel, timeout, !(old & HWT_F_REARM));
	}

	hwt_call_begin(wheel, runner, timeout, expire, &call);
	/* The look at the clock may be one of before somebody else found that it is due. */
	if (trace_hwt_expire_entry_enabled())
		trace_hwt_expire_entry(wheel, timeout, expire, old >> HWT_TICK_SHIFT,
				       max(hwt_call_began(wheel, &call, offset),
					   hwt_tick_to_ns(wheel, old >> HWT_TICK_SHIFT)));
	expire(timeout);
	trace_hwt_expire_exit(wheel, timeout, expire);
	late = hwt_lateness_measure(wheel, &call, old >> HWT_TICK_SHIFT, since, offset);
	hwt_call_end(wheel, runner, timeout, &call);
	hwt_count(&wheel->lateness[fls64(late.ns)], 1);
	hwt_count(&wheel->late, late.late);
	hwt_count(&wheel->behind, late.behind);
	if (unlikely(late.behind))
		hwt_behind_report(wheel, expire, late.ns);
	hwt_settle_running(wheel, runner, timeout, false);
}

static bool hwt_engine_halted(struct hwt_wheel *wheel)
{
	return wheel->stopping || hwt_frozen(wheel) || hwt_clock_moved(wheel);
}

/* Return: how many were taken from the due list. */
static unsigned int hwt_engine_fire(struct hwt_wheel *wheel, unsigned int max)
	__must_hold(&wheel->lock)
{
	struct list_head *due = &wheel->buckets.due;
	unsigned int n = 0;

	while (n < max && !list_empty(due) && !hwt_engine_halted(wheel)) {
		hwt_fire(wheel, &wheel->engine,
			 list_first_entry(due, struct hwt_timeout, link));
		/* Those that are not due any more do not drop the lock. */
		if (++n % HWT_STEP == 0) {
			hwt_lock_break(wheel);
			wheel->engine.stamp = 0;
		}
	}
	return n;
}

/* -- Passes -------------------------------------------------------------- */

/*
 * After a long sleep the cursor is far behind, and what was submitted meanwhile would
 * go to a level too high. Bring it closer, but not so close that what is due within a turn
 * would not be sorted by tick any more.
 */
static void hwt_engine_catch_up(struct hwt_wheel *wheel, u64 now)
{
	if (now > hwt_revolution(wheel))
		hwt_buckets_skip(&wheel->buckets, now - hwt_revolution(wheel));
}

/* Let the cancelled go when their time has come: then what follows collects them. */
static void hwt_engine_reclaim(struct hwt_wheel *wheel)
{
	u64 now;

	if (!READ_ONCE(wheel->reclaim))
		return;
	now = ktime_get_ns();
	if (!wheel->reclaim_at) {
		wheel->reclaim_at = now + hwt_reclaim_ms * (u64)NSEC_PER_MSEC;
	} else if (now >= wheel->reclaim_at) {
		wheel->reclaim_at = 0;
		WRITE_ONCE(wheel->reclaim, false);
		/* Barrier reclaim.mb, pairs with state.cancel in hwt_word_cancel() and push.add in
		 * hwt_push(): this pass collects what a caller that still finds the flag set has
		 * cancelled. sleep.mb would do, a pass later; this is rare, and easier to see.
		 */
		smp_mb();
		/* What was on the deferred list is not collected: for a hwt_wait() of that. */
		hwt_sync_wake(wheel);
	}
}

/*
 * The wall clock may have been set. If it goes back behind the cursor, everything is put in
 * order anew, what is due included; forward it is like any other advance.
 *
 * Return: whether it was.
 */
static bool hwt_engine_check_clock(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	struct hwt_call call;
	s64 offset, jump;
	u64 now;

	if (wheel->clock != HWT_CLOCK_REALTIME)
		return false;
	offset = ktime_to_ns(ktime_mono_to_real(0));
	jump = offset - wheel->clock_offset;
	if (jump) {
		hwt_count(&wheel->clock_sets, 1);
		if (wheel->clock_set && !wheel->stopping) {
			/* Nobody fires meanwhile: the clock is seen to have moved. */
			hwt_call_begin(wheel, &wheel->engine, &wheel->clock_timeout,
				       wheel->clock_set, &call);
			wheel->clock_set(wheel, jump, wheel->clock_set_arg);
			hwt_call_end(wheel, &wheel->engine, &wheel->clock_timeout, &call);
		}
		wheel->clock_offset = offset;
		wheel->due_since = HWT_TICK_NEVER;
		now = hwt_engine_tick(wheel);
		if (now < wheel->buckets.cursor)
			hwt_buckets_rebase(&wheel->buckets, now);
	}
	/* A flush may wait for this, even if the clock is where it was. */
	hwt_sync_wake(wheel);
	return jump;
}

/* Say since when something has been due. To be called before and after the cursor moves. */
static void hwt_engine_note_due(struct hwt_wheel *wheel, u64 now)
	__must_hold(&wheel->lock)
{
	u64 tick = hwt_buckets_next_tick(&wheel->buckets);

	if (list_empty(&wheel->buckets.due))
		wheel->due_since = tick <= now ? tick : HWT_TICK_NEVER;
	else if (wheel->due_since == HWT_TICK_NEVER)
		wheel->due_since = now;
}

/* Those that were left to the engine. As with submissions: others put more there. */
static void hwt_engine_settle_deferred(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	unsigned int n;

	for (n = 1; n <= HWT_COLLECT_MAX && !wheel->stopping && !list_empty(&wheel->deferred);
	     n++) {
		hwt_settle_deferred(wheel, &wheel->engine,
				    list_first_entry(&wheel->deferred,
						     struct hwt_timeout, link));
		if (n % HWT_STEP == 0)
			hwt_lock_break(wheel);
	}
}

/**
 * hwt_engine_advance() - move the cursor to now; in steps, and not without end
 * @wheel: its lock is held, and is dropped now and then
 *
 * Return: whether it is there.
 */
bool hwt_engine_advance(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	bool done = false;
	unsigned int n;

	for (n = 0; n < HWT_ADVANCE_MAX / HWT_STEP && !done && !wheel->stopping; n++) {
		if (n)
			hwt_lock_break(wheel);
		/* Anew: without the lock, the engine may have gone back with the clock. */
		done = hwt_buckets_advance(&wheel->buckets, hwt_engine_tick(wheel), HWT_STEP);
		if (wheel->workers && !list_empty(&wheel->buckets.due))
			hwt_worker_wake(wheel);
	}
	return done;
}

/**
 * hwt_engine_pass() - collect, advance, fire
 * @wheel: the wheel; on its thread
 */
void hwt_engine_pass(struct hwt_wheel *wheel)
{
	unsigned int collected, served = 0;
	u64 now, cursor;
	bool jumped;

	/* Awake: nobody needs to wake it, it will look before it sleeps. */
	atomic64_set(&wheel->wake_tick, 0);
	WRITE_ONCE(wheel->kicked, false);
	/* Barrier pass.mb, pairs with kick.before in hwt_wheel_kick() and state.pull in hwt_arm(): a
	 * caller whose kick is swallowed here has submitted before, and this pass finds that.
	 */
	smp_mb();

	wheel->engine.stamp = 0;
	spin_lock(&wheel->lock);
	hwt_count(&wheel->passes, 1);
	jumped = hwt_engine_check_clock(wheel);
	now = hwt_engine_tick(wheel);
	hwt_engine_reclaim(wheel);
	if (!wheel->workers)
		hwt_engine_settle_deferred(wheel);
	/* What a jump has passed over is due since now, and sorted from where it began. */
	if (!jumped) {
		hwt_engine_note_due(wheel, now);
		hwt_engine_catch_up(wheel, now);
	}
	collected = hwt_collect(wheel, &wheel->engine, HWT_COLLECT_MAX);
	hwt_engine_advance(wheel);
	hwt_engine_note_due(wheel, now);
	/* All that took its time: it is not the first callback's. */
	wheel->engine.stamp = 0;
	/* Who submits a lot does not keep others from firing. */
	if (!wheel->workers)
		served = hwt_engine_fire(wheel, max_t(unsigned int, collected, HWT_FIRE_MAX));
	cursor = wheel->buckets.cursor;
	spin_unlock(&wheel->lock);
	trace_hwt_pass(wheel, cursor, collected, served);
}

/* The tick until which the engine has nothing to do, as far as it has collected. */
static u64 hwt_engine_target(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	u64 tick;

	if (wheel->stopping)
		return HWT_TICK_NEVER;
	if (hwt_clock_moved(wheel))
		return 0;
	if (!list_empty(&wheel->deferred) || !list_empty(&wheel->buckets.due)) {
		if (!wheel->workers)
			return 0;
		/* Whoever has put them there may have relied on the engine. */
		hwt_worker_wake(wheel);
	}
	tick = hwt_buckets_next_tick(&wheel->buckets);
	if (wheel->reclaim_at)
		tick = min(tick, hwt_deadline_to_tick(wheel,
						      hwt_mono_to_wheel(wheel, wheel->reclaim_at)));
	return tick;
}

/* The clock of a wheel, as hrtimers know it. */
static clockid_t hwt_clock_id(const struct hwt_wheel *wheel)
{
	switch (wheel->clock) {
	case HWT_CLOCK_BOOTTIME:
		return CLOCK_BOOTTIME;
	case HWT_CLOCK_REALTIME:
		return CLOCK_REALTIME;
	default:
		return CLOCK_MONOTONIC;
	}
}

static bool hwt_engine_wanted(struct hwt_wheel *wheel)
{
	return READ_ONCE(wheel->kicked) || kthread_should_stop();
}

static void hwt_engine_sleep_until(struct hwt_wheel *wheel, u64 tick, ktime_t expires)
{
	/* Barrier wait.state, pairs with kick.after in hwt_wheel_kick() and kernel.wake in
	 * kthread_stop(): the engine sees kicked, or that it is to end, or the other side sees the
	 * engine asleep and in no callback.
	 */
	set_current_state(hwt_idle_state(wheel));
	if (!hwt_engine_wanted(wheel)) {
		if (tick == HWT_TICK_NEVER)
			schedule();
		else
			schedule_hrtimeout_range_clock(&expires, 0, HRTIMER_MODE_ABS,
						       hwt_clock_id(wheel));
		hwt_count(&wheel->wakeups, 1);
	}
	__set_current_state(TASK_RUNNING);
}

/* Kicks are seen here, too: they are flags first of all. */
static void hwt_engine_spin_until(struct hwt_wheel *wheel, u64 tick, ktime_t expires)
{
	/* Also if it does not wait, as it is astray: a CPU that comes or goes may need this one. */
	cond_resched_tasks_rcu_qs();
	while (!hwt_engine_wanted(wheel) && !hwt_frozen(wheel) && !hwt_thread_astray(wheel) &&
	       (tick == HWT_TICK_NEVER || hwt_clock_now(wheel) < ktime_to_ns(expires))) {
		hwt_engine_poll(wheel);
		cpu_relax();
		/* Its CPU may have been set aside, but RCU has not been asked. */
		cond_resched_tasks_rcu_qs();
	}
}

/* @tick is not the one that never comes if there is something to reclaim. */
static void hwt_engine_wait(struct hwt_wheel *wheel, u64 tick)
{
	u64 reclaim_at = wheel->reclaim_at;	/* its own */
	ktime_t expires = ns_to_ktime(tick * wheel->tick_ns);

	/* A tick may be an hour: the cancelled do not wait for it. */
	if (reclaim_at)
		expires = min(expires, ns_to_ktime(hwt_mono_to_wheel(wheel, reclaim_at)));
	if (wheel->wait == HWT_WAIT_BUSY)
		hwt_engine_spin_until(wheel, tick, expires);
	else
		hwt_engine_sleep_until(wheel, tick, expires);
	trace_hwt_wake(wheel, tick == HWT_TICK_NEVER ? U64_MAX : ktime_to_ns(expires),
		       READ_ONCE(wheel->kicked));
}

/**
 * hwt_engine_sleep() - wait until there is something to do
 * @wheel: the wheel; on its thread
 *
 * Submitters wake the engine for what comes before the tick that it has published; so it
 * publishes, counts sleep_seq up, and only then looks at the submission lists a last time.
 * Either that look finds an entry, or whoever pushes it finds what was published. Only an
 * earlier tick may be published after that: a later one would leave out those who have
 * already compared.
 *
 * sleep_seq is for an entry that somebody has claimed and not yet pushed when the engine
 * looks: if another one then makes it earlier and wakes the engine in vain, the
 * pusher finds that the number has changed, and wakes it again.
 */
void hwt_engine_sleep(struct hwt_wheel *wheel)
{
	unsigned int collected = 0;
	u64 tick, published;

	spin_lock(&wheel->lock);
	published = hwt_engine_target(wheel);
	spin_unlock(&wheel->lock);
	if (published <= hwt_ns_to_tick(wheel, hwt_clock_now(wheel))) {
		cond_resched_tasks_rcu_qs();
		return;
	}

	atomic64_set(&wheel->wake_tick, published);
	/* Barrier sleep.seq, pairs with state.arm and state.pull in hwt_arm() and state.cancel in
	 * hwt_word_cancel(): if a claim came after this number, a caller that then pulls that
	 * timeout forward finds the wake_tick from before this number.
	 */
	smp_store_release(&wheel->sleep_seq, wheel->sleep_seq + 1);
	/* Barrier sleep.mb, pairs with push.add and push.bit in hwt_push() and state.pull in
	 * hwt_arm(): the look that follows finds the entry, or the caller finds what was published.
	 */
	smp_mb();

	wheel->engine.stamp = 0;
	spin_lock(&wheel->lock);
	if (!wheel->stopping)
		collected = hwt_collect(wheel, &wheel->engine, HWT_COLLECT_MAX);
	tick = collected < HWT_COLLECT_MAX ? hwt_engine_target(wheel) : 0;
	spin_unlock(&wheel->lock);
	if (tick < published)
		atomic64_set(&wheel->wake_tick, tick);
	tick = min(tick, published);

	if (tick > hwt_ns_to_tick(wheel, hwt_clock_now(wheel)))
		hwt_engine_wait(wheel, tick);
	else
		cond_resched_tasks_rcu_qs();
}
