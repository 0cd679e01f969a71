// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine: the passes of a shard's thread, and the work of all runners under the shard's lock
 *
 * A pass collects the submitted timeouts, moves the cursor to the present tick, and runs the
 * callbacks of due timeouts. Each part is bounded. Then the engine sleeps until the next tick at
 * which a timeout is due. If the shard has workers (core/thread.c), they run the callbacks instead.
 *
 * core/state.h describes the life of a timeout. The lock-free half (core/submit.c) may change a
 * state at any line here. So each decision is a compare-and-swap of the state it was made from, and
 * is made again if the swap fails.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/llist.h>
#include <linux/math64.h>
#include <linux/percpu.h>
#include <linux/prefetch.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "core/callback.h"
#include "core/clock.h"
#include "core/debug.h"
#include "core/engine.h"
#include "core/kick.h"
#include "core/params.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"
#include "core/trace.h"

/*
 * Drop the lock for a moment, and reschedule if needed. Also report a quiescent state to RCU-tasks:
 * with kernel preemption, a busy thread reports no other. In an RCU reader, which must not give up
 * the CPU, only drop the lock: with debug=1, a kfree() in a reader may get here by way of
 * hwt_debug_freed().
 */
void hwt_lock_break(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	spin_unlock(&shard->lock);
	if (!rcu_preempt_depth())
		cond_resched_tasks_rcu_qs();
	spin_lock(&shard->lock);
}

/* The same for a runner, whose next call is not charged for the time of this. */
void hwt_runner_break(struct hwt_shard *shard, struct hwt_runner *runner)
	__must_hold(&shard->lock)
{
	hwt_lock_break(shard);
	runner->stamp = 0;
}

/*
 * Return the time on the shard's clock, ns. On the wall clock, ignore a set of the clock that
 * hwt_engine_check_clock() has not seen: it may be undone before the next check, and the cursor
 * must not have followed it.
 */
static u64 hwt_engine_now(const struct hwt_shard *shard)
{
	if (shard->clock == HWT_CLOCK_REALTIME)
		return ktime_get_ns() + shard->clock_offset;
	return hwt_clock_now(shard);
}

/* -- Collecting ---------------------------------------------------------- */

/*
 * Take a CPU's submission lists, unless entries taken earlier are not collected yet.
 * Return: whether there may be entries to collect.
 */
static bool hwt_intake_take(struct hwt_shard *shard, unsigned int cpu)
	__must_hold(&shard->lock)
{
	struct hwt_inbox *inbox = per_cpu_ptr(shard->inbox, cpu);
	unsigned int chain;

	if (!list_empty(&inbox->intake))
		return true;
	if (!READ_ONCE(shard->active[cpu]))
		return false;
	WRITE_ONCE(shard->active[cpu], false);
	/*
	 * Barrier intake.mb, pairs with push.add in hwt_push(): this CPU finds the entry below, or
	 * hwt_push() finds the byte cleared and sets it again.
	 */
	smp_mb();
	/*
	 * Barrier intake.take, pairs with push.add in hwt_push(): Not needed: the dependency on the
	 * entry's address orders all that was written before the push before its reads here.
	 */
	for (chain = 0; chain < HWT_CHAINS; chain++)
		if (!llist_empty(&inbox->list[chain]))
			inbox->fresh[chain] = llist_del_all(&inbox->list[chain]);
	inbox->taken++;
	list_add_tail(&inbox->intake, &shard->intake);
	return true;
}

/* Return the next CPU's submissions to collect, or NULL if there are none. */
static struct hwt_inbox *hwt_intake_next(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	u8 *active = shard->active, *found;
	unsigned int next;

	while (list_empty(&shard->intake)) {
		next = shard->intake_cpu + 1;
		/*
		 * Other CPUs may set bytes meanwhile, but not clear them. A byte that this search
		 * misses might as well have been set after it.
		 */
		found = data_race(memchr_inv(active + next, 0, nr_cpu_ids - next) ?:
				  memchr_inv(active, 0, nr_cpu_ids));
		if (!found)
			return NULL;
		shard->intake_cpu = found - active;
		hwt_intake_take(shard, shard->intake_cpu);
	}
	return list_first_entry(&shard->intake, struct hwt_inbox, intake);
}

/* Remove an entry taken from a CPU's lists. Return it, or NULL if none is left. */
static struct hwt_timeout *hwt_intake_pop(struct hwt_shard *shard, struct hwt_inbox *inbox)
	__must_hold(&shard->lock)
{
	struct llist_node *node, **chain;
	unsigned int n;

	for (n = 0; n < HWT_CHAINS; n++) {
		chain = &inbox->fresh[++inbox->chain % HWT_CHAINS];
		node = *chain;
		if (!node)
			continue;
		/* Unlink the entry now: once SUBMITTED is cleared, it may be pushed again. */
		*chain = node->next;
		prefetchw(node->next);
		return llist_entry(node, struct hwt_timeout, submit);
	}
	list_del_init(&inbox->intake);
	return NULL;
}

/*
 * The rest of hwt_link(), if the timeout was scheduled for a tick that had passed, or the caller is
 * not the engine's thread. The time of the schedule is unknown. So for all timeouts scheduled for
 * the past, the time counts at which the latest one was found: none has waited for less.
 */
static noinline void hwt_link_rest(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 tick)
	__must_hold(&shard->lock)
{
	bool past = tick < shard->intake_since;

	/* The engine's thread looks at the buckets before it waits. */
	if (current != shard->thread && tick < (u64)atomic64_read(&shard->wake_tick)) {
		hwt_engine_kick(shard);
		/* The engine was asleep, so nothing was due. */
		past |= tick < hwt_engine_tick(shard);
	}
	if (past) {
		timeout->past = true;
		shard->past_since = hwt_engine_now(shard);
	}
}

/*
 * Insert a timeout into the buckets, and kick the engine if it sleeps beyond the timeout's tick.
 * A kick by the client is not enough: it may have come before the timeout was in its bucket. And
 * the client did not kick if the timeout was RUNNING, or due and pushed back.
 */
static void hwt_link(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 state)
	__must_hold(&shard->lock)
{
	u64 tick = hwt_state_tick(state);

	hwt_buckets_insert(&shard->buckets, timeout);
	if (unlikely(tick < shard->intake_since || current != shard->thread))
		hwt_link_rest(shard, timeout, tick);
}

/* Take a timeout out of its bucket, or off the due list, for a hold that ends or a new tick. */
static void hwt_unlink(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	hwt_buckets_remove(&shard->buckets, timeout);
	timeout->past = false;
}

/* Append a timeout to shard->owed, where a runner will end its hold and call its client. */
static void hwt_owe_call(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	list_add_tail(&timeout->link, &shard->owed);
	timeout->owed = true;
	if (shard->nr_workers)
		hwt_worker_wake(shard);
	else if (current != shard->thread)
		hwt_engine_kick(shard);
	/* Wake hwt_wait(), which does not wait for a ->release. */
	hwt_wake_timeout(shard, timeout);
}

/* Collect one submission. The timeout may have been freed on return. */
static void hwt_collect_one(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;

	if (hwt_linked(timeout))
		hwt_unlink(shard, timeout);
	/*
	 * Barrier state.finish, pairs with state.arm in hwt_arm(): the caller of hwt_arm() that
	 * begins the next hold sees everything that was done in this one.
	 */
	do {
		change = hwt_state_collect(old, timeout->ops);
		if (change.action == HWT_OWE_CALL)
			break;
		hwt_debug_track(timeout, change.state);
	} while (!hwt_state_change(timeout, &old, change.state));

	if (change.action == HWT_LINK)
		hwt_link(shard, timeout, change.state);
	else if (change.action == HWT_OWE_CALL)
		hwt_owe_call(shard, timeout);
	else if (change.action == HWT_RELEASE)
		hwt_wake_timeout(shard, timeout);
}

/*
 * Collect entries taken from a CPU's lists, up to a total of @max, of which the caller has
 * collected @n before. Return the new total.
 */
static unsigned int hwt_collect_taken(struct hwt_shard *shard, struct hwt_inbox *inbox,
				      unsigned int n, unsigned int max)
	__must_hold(&shard->lock)
{
	struct hwt_timeout *timeout;
	unsigned int before = n;

	while (n < max && (timeout = hwt_intake_pop(shard, inbox))) {
		hwt_collect_one(shard, timeout);
		if (++n % HWT_STEP == 0)
			hwt_lock_break(shard);
	}
	hwt_count(&shard->collected, n - before);
	return n;
}

/*
 * Collect up to @max submitted timeouts: link them, or end their holds. Drops the lock now and
 * then. Calls no client: a timeout whose client must be called when its hold ends goes to
 * shard->owed. Return the number of entries collected.
 */
unsigned int hwt_collect(struct hwt_shard *shard, unsigned int max)
	__must_hold(&shard->lock)
{
	struct hwt_inbox *inbox;
	unsigned int n = 0;

	while (n < max && (inbox = hwt_intake_next(shard)))
		n = hwt_collect_taken(shard, inbox, n, max);
	return n;
}

/*
 * Collect all timeouts submitted before the call. Later submissions are left, so this is bounded.
 * Drops the lock now and then.
 */
void hwt_collect_submitted(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	struct hwt_inbox *inbox;
	unsigned long end;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		inbox = per_cpu_ptr(shard->inbox, cpu);
		/*
		 * Collect the entries taken earlier, and then the lists as they are now. If @taken
		 * shows that they were taken once more, the entries of that loop are all collected.
		 */
		end = inbox->taken + 1;
		while (time_before(inbox->taken, end) &&
		       hwt_collect_taken(shard, inbox, 0, HWT_STEP))
			;
		hwt_intake_take(shard, cpu);
		while (time_before_eq(inbox->taken, end) &&
		       hwt_collect_taken(shard, inbox, 0, HWT_STEP))
			;
		if (inbox->taken != end - 1 || cpu % 64 == 63)
			hwt_lock_break(shard);
	}
}

/* Collect one CPU's submissions up to a given timeout. Drops the lock now and then. */
void hwt_collect_until(struct hwt_shard *shard, unsigned int cpu,
		       const struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	struct hwt_inbox *inbox = per_cpu_ptr(shard->inbox, cpu);
	unsigned long end = inbox->taken + 1;

	/*
	 * The timeout is among the entries taken earlier, or on the lists now. Otherwise it is not
	 * pushed yet, or on another CPU's list: the caller tries again.
	 */
	while (!timeout->owed && (hwt_timeout_state(timeout) & HWT_F_SUBMITTED) &&
	       time_before_eq(inbox->taken, end) && hwt_intake_take(shard, cpu))
		hwt_collect_taken(shard, inbox, 0, HWT_STEP);
}

/**
 * hwt_end_hold() - end a timeout's hold and call its client, unless it was armed again
 * @shard:   its lock is held, and is dropped around callbacks
 * @runner:  the runner that calls the client
 * @timeout: SUBMITTED, not RUNNING, on no submission list: it is on shard->owed, or the caller has
 *           set SUBMITTED under the lock. Or a mark on shard->owed
 *
 * The timeout may have been freed on return.
 */
void hwt_end_hold(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	struct hwt_change change;
	struct hwt_call release;
	u64 old;

	if (timeout->owed) {
		list_del(&timeout->link);
		timeout->link.next = NULL;
		timeout->owed = false;
	} else if (hwt_linked(timeout)) {
		hwt_unlink(shard, timeout);
	}
	if (unlikely(hwt_mark_reached(shard, timeout)))
		return;
	hwt_call_prepare(&release, timeout);
	old = hwt_timeout_state(timeout);
	/*
	 * Barrier state.finish, pairs with state.arm in hwt_arm(): the caller that begins the next
	 * hold sees everything that was done in this one.
	 */
	do {
		change = hwt_state_end(old, timeout->ops);
		hwt_debug_track(timeout, change.state);
	} while (!hwt_state_change(timeout, &old, change.state));

	if (change.action != HWT_LINK)
		runner->call = ++shard->calls;
	switch (change.action) {
	case HWT_LINK:
		hwt_link(shard, timeout, change.state);
		break;
	case HWT_CALL_CANCELLED:
		hwt_finish(shard, runner, timeout, true);
		break;
	default:
		if (release.fn)
			hwt_call_release(shard, runner, timeout, &release);
		hwt_wake_timeout(shard, timeout);
		hwt_wake(shard, runner);
	}
}

/* Return the next tick of a periodic timeout whose callback has returned. */
static u64 hwt_periodic_next(struct hwt_shard *shard, struct hwt_timeout *timeout)
{
	struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);

	if (periodic->run.mode == HWT_MODE_FIXED_DELAY)
		atomic64_set(&periodic->run.next_ns,
			     hwt_add_ns(hwt_clock_now(shard),
					atomic64_read(&periodic->run.period_ns)));
	return hwt_deadline_to_tick(shard, atomic64_read(&periodic->run.next_ns));
}

/* Count the periods missed by a periodic timeout that fires, and compute its next deadline. */
static void hwt_periodic_begin(struct hwt_shard *shard,
			       struct hwt_timeout *timeout, bool first)
{
	struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);
	u64 now = hwt_clock_now(shard), missed = 0, next, period_ns;

	if (first) {
		/* hwt_schedule_periodic_at() may be writing @set now, for a later schedule. */
		period_ns = max_t(u64, atomic64_read(&periodic->set.period_ns), 1);
		atomic64_set(&periodic->run.next_ns, atomic64_read(&periodic->set.first_ns));
		atomic64_set(&periodic->run.period_ns, period_ns);
		WRITE_ONCE(periodic->run.mode, READ_ONCE(periodic->set.mode));
		atomic64_set(&periodic->run.total, 0);
	}
	next = atomic64_read(&periodic->run.next_ns);
	period_ns = atomic64_read(&periodic->run.period_ns);
	if (periodic->run.mode == HWT_MODE_FIXED_RATE) {
		if (now > next && now - next >= period_ns) {
			missed = div64_u64(now - next, period_ns);
			next += missed * period_ns;
		}
		atomic64_set(&periodic->run.next_ns, hwt_add_ns(next, period_ns));
	}
	atomic64_set(&periodic->run.overruns, missed);
	atomic64_set(&periodic->run.total, atomic64_read(&periodic->run.total) + missed);
	hwt_count(&shard->overruns, missed);
}

/* Call ->cancelled of a timeout that is RUNNING. */
static void hwt_call_cancelled(struct hwt_shard *shard, struct hwt_runner *runner,
			       struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	void (*cancelled)(struct hwt_timeout *timeout) = timeout->ops->cancelled;
	struct hwt_call call;

	hwt_call_begin(shard, runner, timeout, cancelled, &call);
	cancelled(timeout);
	hwt_call_end(shard, runner, &call);
}

static struct hwt_change hwt_finish_change(struct hwt_shard *shard, struct hwt_timeout *timeout,
					   bool notify)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout), tick = 0;
	struct hwt_change change;

	if ((old & HWT_F_PENDING) == HWT_F_REARM)
		tick = hwt_periodic_next(shard, timeout);
	/*
	 * Barrier state.finish, pairs with state.arm in hwt_arm() and try.acquire in
	 * hwt_try_cancel() and hwt_sync(): a caller that finds RUNNING cleared sees everything that
	 * the callback did.
	 */
	do {
		change = hwt_state_finish(old, tick, notify);
		if (change.action == HWT_CALL_CANCELLED)
			break;
		hwt_debug_track(timeout, change.state);
	} while (!hwt_state_change(timeout, &old, change.state));
	return change;
}

/**
 * hwt_finish() - clear RUNNING after a callback, and link the timeout again or end its hold
 * @shard:   its lock is held, and is dropped around callbacks
 * @runner:  the runner that has set RUNNING
 * @timeout: RUNNING; its callback, if there was one, has returned
 * @notify:  call ->cancelled first, if the timeout was cancelled
 *
 * The timeout may have been freed on return.
 */
void hwt_finish(struct hwt_shard *shard, struct hwt_runner *runner,
		struct hwt_timeout *timeout, bool notify)
	__must_hold(&shard->lock)
{
	const struct hwt_timeout_ops *ops = timeout->ops;
	struct hwt_change change;
	struct hwt_call release;

	hwt_call_prepare(&release, timeout);
	change = hwt_finish_change(shard, timeout, notify && ops->cancelled);
	if (change.action == HWT_CALL_CANCELLED) {
		hwt_call_cancelled(shard, runner, timeout);
		change = hwt_finish_change(shard, timeout, false);
	}
	if (change.action == HWT_LINK)
		hwt_link(shard, timeout, change.state);
	if (change.action == HWT_RELEASE && release.fn)
		hwt_call_release(shard, runner, timeout, &release);
	hwt_wake_timeout(shard, timeout);
	hwt_wake(shard, runner);
}

/* -- Firing -------------------------------------------------------------- */

/*
 * Has the wall clock been set since hwt_engine_check_clock() last looked? If so, timeouts in the
 * due list may not be due any more. Setting the clock kicks the engine, so its next check is soon.
 */
bool hwt_clock_moved(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	return shard->clock == HWT_CLOCK_REALTIME &&
	       ktime_to_ns(ktime_mono_to_real(0)) != shard->clock_offset;
}

/* Return the tick that the cursor may advance to. */
u64 hwt_engine_tick(const struct hwt_shard *shard)
{
	return hwt_ns_to_tick(shard, hwt_engine_now(shard));
}

/**
 * struct hwt_lateness - how late a callback has begun, as defined in docs/statistics.md
 * @ns:     the time since its deadline, or since it could first be served if that was later
 * @late:   @ns is two ticks or more
 * @behind: @ns is more than HWT_BEHIND_TICKS ticks, or than a revolution of level 0
 */
struct hwt_lateness {
	u64	ns;
	bool	late;
	bool	behind;
};

/**
 * struct hwt_due - when a timeout that fires was due
 * @tick:   its tick
 * @since:  it was not to be served earlier, ns on the shard's clock
 * @offset: the shard's @clock_offset when the timeout was taken off the due list
 */
struct hwt_due {
	u64	tick;
	u64	since;
	s64	offset;
};

/* Return when a call began, ns on the shard's clock. @offset: of struct hwt_due. */
static u64 hwt_call_began(const struct hwt_shard *shard, const struct hwt_call *call,
			  s64 offset)
{
	if (shard->clock == HWT_CLOCK_REALTIME)
		return call->began + offset;
	return hwt_mono_to_clock(shard, call->began);
}

/* Return how late a call began. */
static struct hwt_lateness hwt_lateness_measure(const struct hwt_shard *shard,
						const struct hwt_call *call,
						const struct hwt_due *due)
{
	u64 now_ns = hwt_call_began(shard, call, due->offset);
	u64 since = due->tick * shard->tick_ns;
	struct hwt_lateness late = { .ns = now_ns > since ? now_ns - since : 0 };

	if (likely(late.ns < 2 * shard->tick_ns))
		return late;
	since = max(since, due->since);
	late.ns = now_ns > since ? now_ns - since : 0;
	late.late = late.ns >= 2 * shard->tick_ns;
	late.behind = late.ns > min_t(u64, hwt_revolution(shard), HWT_BEHIND_TICKS) *
				shard->tick_ns;
	return late;
}

/* Take a timeout off the due list. Return: whether it fires. */
static bool hwt_fire_claim(struct hwt_shard *shard, struct hwt_timeout *timeout,
			   struct hwt_due *due)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;

	due->since = shard->set_since;
	due->offset = shard->clock_offset;
	hwt_buckets_remove(&shard->buckets, timeout);
	if (unlikely(timeout->past)) {
		timeout->past = false;
		due->since = max(due->since, shard->past_since);
	}
	if (unlikely(hwt_mark_reached(shard, timeout)))
		return false;
	/*
	 * Barrier state.fire, pairs with state.arm and earlier.mb in hwt_arm() and earlier.mb in
	 * __hwt_schedule(): the callback sees what the client wrote before it scheduled.
	 */
	do {
		change = hwt_state_fire(old, shard->buckets.cursor);
		if (change.action != HWT_CALL)
			break;
	} while (!hwt_state_change(timeout, &old, change.state));

	if (change.action == HWT_LINK)
		hwt_link(shard, timeout, old);
	if (change.action != HWT_CALL)
		return false;
	due->tick = hwt_state_tick(old);
	hwt_count(&shard->expired, 1);
	if (!(old & HWT_F_PERIODIC)) {
		hwt_count(&shard->retired, 1);
		hwt_pending_put(shard);
	} else {
		hwt_periodic_begin(shard, timeout, !(old & HWT_F_REARM));
	}
	return true;
}

/* Call a timeout's function, and count how late that was. */
static void hwt_fire_call(struct hwt_shard *shard, struct hwt_runner *runner,
			  struct hwt_timeout *timeout, const struct hwt_due *due)
	__must_hold(&shard->lock)
{
	void (*expire)(struct hwt_timeout *timeout) = timeout->ops->expire;
	struct hwt_lateness late;
	struct hwt_call call;

	runner->call = ++shard->calls;
	hwt_call_begin(shard, runner, timeout, expire, &call);
	/* The cached timestamp may be older than the deadline: do not trace a negative lateness. */
	if (trace_hwt_expire_entry_enabled())
		trace_hwt_expire_entry(shard, timeout, hwt_client_fn(timeout, expire), due->tick,
				       max(hwt_call_began(shard, &call, due->offset),
					   hwt_tick_to_ns(shard, due->tick)));
	expire(timeout);
	if (trace_hwt_expire_exit_enabled())
		trace_hwt_expire_exit(shard, timeout, hwt_client_fn(timeout, expire));
	late = hwt_lateness_measure(shard, &call, due);
	hwt_call_end(shard, runner, &call);
	hwt_count(&shard->lateness[fls64(late.ns)], 1);
	hwt_count(&shard->late, late.late);
	hwt_count(&shard->behind, late.behind);
}

/* Fire a timeout of the due list, unless it was cancelled or pushed back. Drops the lock. */
void hwt_fire(struct hwt_shard *shard, struct hwt_runner *runner,
	      struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	struct hwt_due due;

	if (!hwt_fire_claim(shard, timeout, &due))
		return;
	hwt_fire_call(shard, runner, timeout, &due);
	hwt_finish(shard, runner, timeout, true);
}

static bool hwt_engine_halted(struct hwt_shard *shard)
{
	return shard->stopping || hwt_frozen(shard) || hwt_clock_moved(shard);
}

/*
 * Return the due timeout to fire next: the last one on the list if @last is set and it has the tick
 * of the first. Timeouts lie anywhere in memory, and the caller alternates between the ends: while
 * one callback executes, the next timeout at the other end is fetched.
 */
static struct hwt_timeout *hwt_engine_pick(struct hwt_shard *shard, bool last)
	__must_hold(&shard->lock)
{
	struct list_head *due = &shard->buckets.due;
	struct hwt_timeout *first_due = list_first_entry(due, struct hwt_timeout, link);
	struct hwt_timeout *last_due = list_last_entry(due, struct hwt_timeout, link);
	u64 tick;

	prefetchw(last ? due->next->next : due->prev->prev);
	/* A flush waits for the timeouts before its mark, so never take a mark from the end. */
	if (!last || hwt_is_mark(last_due))
		return first_due;
	/* Keep the order of ticks, except for a timeout that was pushed back: it does not fire. */
	tick = hwt_state_tick(hwt_timeout_state(last_due));
	if (tick <= shard->buckets.cursor &&
	    tick != hwt_state_tick(hwt_timeout_state(first_due)))
		return first_due;
	return last_due;
}

/* Fire up to @max due timeouts. Return: the number of timeouts taken off the due list. */
static unsigned int hwt_engine_fire(struct hwt_shard *shard, unsigned int max)
	__must_hold(&shard->lock)
{
	struct list_head *due = &shard->buckets.due;
	unsigned int n = 0;

	while (n < max && !list_empty(due) && !hwt_engine_halted(shard)) {
		hwt_fire(shard, &shard->engine, hwt_engine_pick(shard, n & 1));
		/* Timeouts that were cancelled or pushed back do not drop the lock. */
		if (++n % HWT_STEP == 0)
			hwt_runner_break(shard, &shard->engine);
	}
	return n;
}

/* -- Passes -------------------------------------------------------------- */

/*
 * Move the cursor forward after a long sleep, so that timeouts submitted meanwhile do not go to a
 * level too high. It stays a revolution behind the present tick, so that timeouts that have come
 * due within this revolution are sorted by tick.
 */
static void hwt_engine_catch_up(struct hwt_shard *shard, u64 now)
{
	if (now > hwt_revolution(shard))
		hwt_buckets_skip(&shard->buckets, now - hwt_revolution(shard));
}

/*
 * If shard->reclaim is set, plan a pass for reclaim_ms from now. That pass clears the flag here,
 * and then collects all timeouts cancelled before.
 */
static void hwt_engine_reclaim(struct hwt_shard *shard)
{
	u64 now;

	if (!READ_ONCE(shard->reclaim))
		return;
	now = ktime_get_ns();
	if (!shard->reclaim_at) {
		shard->reclaim_at = now + hwt_reclaim_ms * (u64)NSEC_PER_MSEC;
	} else if (now >= shard->reclaim_at) {
		shard->reclaim_at = 0;
		WRITE_ONCE(shard->reclaim, false);
		/*
		 * Barrier reclaim.mb, pairs with state.cancel in hwt_cancel_claim() and push.add in
		 * hwt_push(): if a cancel still finds the flag set, this pass collects its timeout.
		 * sleep.mb ensures the same a pass later, but that is harder to show.
		 */
		smp_mb();
	}
}

/*
 * Handle a set of the wall clock. If the clock is now behind the cursor, sort all timeouts anew,
 * due ones included. A set forward needs nothing more than an advance.
 *
 * Return: whether the clock was set.
 */
static bool hwt_engine_check_clock(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	struct hwt_call call;
	s64 offset, jump;
	u64 now;

	if (shard->clock != HWT_CLOCK_REALTIME)
		return false;
	offset = ktime_to_ns(ktime_mono_to_real(0));
	jump = offset - shard->clock_offset;
	if (jump) {
		hwt_count(&shard->clock_sets, 1);
		if (shard->clock_set && !shard->stopping) {
			/* No runner fires meanwhile, since hwt_clock_moved() is true. */
			shard->engine.call = ++shard->calls;
			hwt_call_begin(shard, &shard->engine, &shard->clock_timeout,
				       shard->clock_set, &call);
			shard->clock_set(shard->wheel, jump, shard->clock_set_arg);
			hwt_call_end(shard, &shard->engine, &call);
			hwt_wake(shard, &shard->engine);
		}
		shard->clock_offset = offset;
		/* What the clock jumped over is due since now. */
		shard->set_since = hwt_engine_now(shard);
		now = hwt_engine_tick(shard);
		if (now < shard->buckets.cursor)
			hwt_buckets_rebase(&shard->buckets, now);
	}
	/* hwt_wheel_flush() may wait for this check, even if the set was undone since. */
	hwt_wake(shard, shard);
	return jump;
}

/* Process up to HWT_STEP entries of shard->owed. Return: whether more are left. */
static bool hwt_engine_end_holds(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	unsigned int n;

	for (n = 0; n < HWT_STEP && !list_empty(&shard->owed); n++) {
		if (shard->stopping || hwt_frozen(shard))
			return false;
		hwt_end_hold(shard, &shard->engine,
			     list_first_entry(&shard->owed, struct hwt_timeout, link));
	}
	return !list_empty(&shard->owed);
}

/*
 * Move the cursor to a tick, not beyond the present one, in a bounded number of steps. Drops the
 * lock now and then. Return whether the cursor is there.
 */
bool hwt_engine_advance(struct hwt_shard *shard, u64 tick)
	__must_hold(&shard->lock)
{
	bool done = false;
	unsigned int n;

	for (n = 0; n < HWT_ADVANCE_MAX / HWT_STEP && !done && !shard->stopping; n++) {
		if (n)
			hwt_lock_break(shard);
		/* While the lock was dropped, the wall clock may have gone back. */
		if (n && shard->clock == HWT_CLOCK_REALTIME)
			tick = min(tick, hwt_engine_tick(shard));
		done = hwt_buckets_advance(&shard->buckets, tick, HWT_STEP, false);
		if (shard->nr_workers && !list_empty(&shard->buckets.due))
			hwt_worker_wake(shard);
	}
	return done;
}

/*
 * Advance to @now tick by tick, and fire up to @max due timeouts. Return: the number of timeouts
 * taken off the due list.
 */
static unsigned int hwt_engine_serve(struct hwt_shard *shard, u64 now, unsigned int max)
	__must_hold(&shard->lock)
{
	struct hwt_buckets *buckets = &shard->buckets;
	unsigned int n, served = 0;
	bool done;

	/* Timeouts that are due again and again must not keep the cursor from moving on. */
	if (!list_empty(&buckets->due))
		hwt_engine_advance(shard, now);
	for (n = 0; n < HWT_ADVANCE_MAX / HWT_STEP && !hwt_engine_halted(shard); n++) {
		if (n % 2)
			hwt_lock_break(shard);
		done = hwt_buckets_advance(buckets, now, HWT_STEP, true);
		/* Drop the cached timestamp: the advance is not charged to a callback. */
		shard->engine.stamp = 0;
		served += hwt_engine_fire(shard, max - served);
		if (!list_empty(&buckets->due) || (done && buckets->cursor >= now))
			break;
	}
	return served;
}

/*
 * Update @intake_since for the submissions made while the engine slept. A submission that is due
 * earlier than the engine meant to wake up has woken it at once.
 */
static void hwt_engine_intake_since(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	u64 ns = shard->woken_ns;

	ns = shard->clock == HWT_CLOCK_REALTIME ? ns + shard->clock_offset :
						  hwt_mono_to_clock(shard, ns);
	shard->intake_since = max(shard->intake_since, hwt_ns_to_tick(shard, ns));
}

/*
 * Advance to @now, fire due timeouts, and end holds in small steps between: what is due does not
 * wait for the clients of what was cancelled. Return: the number of timeouts taken off the due
 * list. Both kinds of work are bounded, because other contexts may keep adding to it.
 */
static unsigned int hwt_engine_work(struct hwt_shard *shard, u64 now)
	__must_hold(&shard->lock)
{
	unsigned int served, holds;

	served = hwt_engine_serve(shard, now, HWT_FIRE_MAX);
	for (holds = 0; holds < HWT_FIRE_MAX && hwt_engine_end_holds(shard); holds += HWT_STEP) {
		hwt_runner_break(shard, &shard->engine);
		if (served < HWT_FIRE_MAX)
			served += hwt_engine_serve(shard, hwt_engine_tick(shard),
						   HWT_FIRE_MAX - served);
	}
	return served;
}

/*
 * Run a pass: collect, advance, fire. On the shard's thread. Submissions are collected in steps, so
 * that what is due does not wait for the collection of a hundred thousand cancels.
 */
void hwt_engine_pass(struct hwt_shard *shard)
{
	unsigned int n, collected = 0, served = 0;
	u64 now, cursor;
	bool jumped;

	/* The engine is awake, and needs no kick until it sleeps. */
	atomic64_set(&shard->wake_tick, 0);
	WRITE_ONCE(shard->kicked, false);
	/*
	 * Barrier pass.mb, pairs with kick.before in hwt_engine_kick() and state.pull in hwt_arm():
	 * if a caller finds @kicked still set, or this pass has cleared the caller's kick, then the
	 * pass finds the caller's submission or new tick.
	 */
	smp_mb();

	shard->engine.stamp = 0;
	spin_lock(&shard->lock);
	hwt_count(&shard->passes, 1);
	jumped = hwt_engine_check_clock(shard);
	now = hwt_engine_tick(shard);
	hwt_engine_reclaim(shard);
	/* After a jump of the clock, all timeouts that it passed over are sorted by tick. */
	if (!jumped)
		hwt_engine_catch_up(shard, now);
	hwt_engine_intake_since(shard);
	for (;;) {
		n = hwt_collect(shard, HWT_COLLECT_STEP);
		collected += n;
		if (n < HWT_COLLECT_STEP)
			shard->intake_since = now;
		if (shard->nr_workers)
			hwt_engine_advance(shard, now);
		else
			served += hwt_engine_work(shard, now);
		if (n < HWT_COLLECT_STEP || collected >= HWT_COLLECT_MAX)
			break;
		now = hwt_engine_tick(shard);
	}
	cursor = shard->buckets.cursor;
	spin_unlock(&shard->lock);
	trace_hwt_pass(shard, cursor, collected, served);
}

/* Return the tick until which the engine has nothing to do, as far as it has collected. */
static u64 hwt_engine_target(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	u64 tick;

	if (shard->stopping)
		return HWT_TICK_NEVER;
	if (hwt_clock_moved(shard))
		return 0;
	if (!list_empty(&shard->owed) || !list_empty(&shard->buckets.due)) {
		if (!shard->nr_workers)
			return 0;
		/* A context that adds due timeouts may rely on the engine to wake a worker. */
		hwt_worker_wake(shard);
	}
	tick = hwt_buckets_next_tick(&shard->buckets);
	if (shard->reclaim_at)
		tick = min(tick, hwt_deadline_to_tick(shard,
						      hwt_mono_to_clock(shard, shard->reclaim_at)));
	return tick;
}

/* Return the clock of a shard as a clockid_t, for hrtimers. */
static clockid_t hwt_clock_id(const struct hwt_shard *shard)
{
	switch (shard->clock) {
	case HWT_CLOCK_BOOTTIME:
		return CLOCK_BOOTTIME;
	case HWT_CLOCK_REALTIME:
		return CLOCK_REALTIME;
	default:
		return CLOCK_MONOTONIC;
	}
}

static bool hwt_engine_wanted(struct hwt_shard *shard)
{
	return READ_ONCE(shard->kicked) || hwt_thread_ends(shard);
}

static void hwt_engine_sleep_until(struct hwt_shard *shard, u64 tick, ktime_t expires)
{
	/*
	 * Barrier wait.state, pairs with kick.after in hwt_engine_kick() and kernel.wake in
	 * hwt_thread_wake_frozen(): the engine sees the kick or the request to end, or the other
	 * side sees the engine asleep and in no callback.
	 */
	set_current_state(hwt_idle_state(shard));
	if (!hwt_engine_wanted(shard)) {
		if (tick == HWT_TICK_NEVER)
			schedule();
		else
			schedule_hrtimeout_range_clock(&expires, 0, HRTIMER_MODE_ABS,
						       hwt_clock_id(shard));
		hwt_count(&shard->wakeups, 1);
	}
	__set_current_state(TASK_RUNNING);
}

/* Wait busily. A kick sets shard->kicked, which ends this wait too. */
static void hwt_engine_spin_until(struct hwt_shard *shard, u64 tick, ktime_t expires)
{
	/*
	 * Reschedule even if the loop ends at once, as it does while this thread is still to be
	 * pinned: CPU hotplug may need this CPU.
	 */
	cond_resched_tasks_rcu_qs();
	while (!hwt_engine_wanted(shard) && !hwt_frozen(shard) && !hwt_engine_off_affinity(shard) &&
	       (tick == HWT_TICK_NEVER || hwt_clock_now(shard) < ktime_to_ns(expires))) {
		cpu_relax();
		/* RCU waits for this thread, even if its CPU was set aside for it. */
		cond_resched_tasks_rcu_qs();
	}
}

/* Return for how long this thread was runnable without a CPU since it exists, ns; 0: unknown. */
static u64 hwt_off_cpu(void)
{
#ifdef CONFIG_SCHED_INFO
	return current->sched_info.run_delay;
#else
	return 0;
#endif
}

/*
 * Note when the engine was woken: as long ago as its thread has waited for a CPU since it went to
 * sleep. @off_ns: hwt_off_cpu() then.
 */
static void hwt_engine_woken(struct hwt_shard *shard, u64 off_ns)
{
	shard->woken_ns = ktime_get_ns() - (hwt_off_cpu() - off_ns);
}

/* Wait until @tick or shard->reclaim_at, or a kick. HWT_TICK_NEVER: until a kick or a stop. */
static void hwt_engine_wait(struct hwt_shard *shard, u64 tick)
{
	u64 reclaim_at = shard->reclaim_at;	/* written by this thread only */
	u64 off_ns = hwt_off_cpu();
	ktime_t expires = ns_to_ktime(tick * shard->tick_ns);

	/* A tick may last an hour; cancelled timeouts do not wait for its end. */
	if (reclaim_at)
		expires = min(expires, ns_to_ktime(hwt_mono_to_clock(shard, reclaim_at)));
	if (shard->wait == HWT_WAIT_BUSY)
		hwt_engine_spin_until(shard, tick, expires);
	else
		hwt_engine_sleep_until(shard, tick, expires);
	hwt_engine_woken(shard, off_ns);
	trace_hwt_wake(shard, tick == HWT_TICK_NEVER ? U64_MAX : ktime_to_ns(expires),
		       READ_ONCE(shard->kicked));
}

static bool hwt_tick_reached(const struct hwt_shard *shard, u64 tick)
{
	return tick <= hwt_ns_to_tick(shard, hwt_clock_now(shard));
}

/* Publish the tick before which submitters have to wake the engine. */
static void hwt_engine_publish(struct hwt_shard *shard, u64 tick)
{
	atomic64_set(&shard->wake_tick, tick);
	/*
	 * Barrier sleep.seq, pairs with state.arm and state.pull in hwt_arm() and state.cancel in
	 * hwt_cancel_claim(): if a caller reads this number and then claims a timeout, a caller
	 * that next moves or cancels the timeout finds wake_tick, @kicked and @reclaim as the
	 * engine has written them before.
	 */
	smp_store_release(&shard->sleep_seq, shard->sleep_seq + 1);
	/*
	 * Barrier sleep.mb, pairs with push.add and push.active in hwt_push() and state.pull in
	 * hwt_arm(): the collection that follows finds the entry with its new tick, or the caller
	 * finds wake_tick and sleep_seq as published.
	 */
	smp_mb();
}

/* Collect a last time. Return: the tick until which the engine may sleep, @published at most. */
static u64 hwt_engine_last_look(struct hwt_shard *shard, u64 published)
{
	unsigned int collected = 0;
	u64 tick;

	shard->engine.stamp = 0;
	spin_lock(&shard->lock);
	if (!shard->stopping)
		collected = hwt_collect(shard, HWT_COLLECT_STEP);
	tick = collected < HWT_COLLECT_STEP ? hwt_engine_target(shard) : 0;
	spin_unlock(&shard->lock);
	if (tick < published)
		atomic64_set(&shard->wake_tick, tick);
	return min(tick, published);
}

/*
 * Wait until there is something to do. On the shard's thread.
 *
 * Submitters wake the engine for a timeout that is due before wake_tick. The engine publishes
 * wake_tick, increments sleep_seq, and only then collects a last time. Either this collection finds
 * an entry, or the caller that pushes the entry finds the published values. Afterwards wake_tick
 * may only become earlier, since callers that have compared their ticks with it do not look again.
 *
 * sleep_seq is for an entry that is claimed but not yet pushed when the engine collects. If another
 * CPU then pulls that timeout forward, it wakes the engine in vain: the timeout is on no list yet.
 * The caller that pushes the entry finds sleep_seq changed, and wakes the engine again.
 */
void hwt_engine_sleep(struct hwt_shard *shard)
{
	u64 tick;

	spin_lock(&shard->lock);
	tick = hwt_engine_target(shard);
	spin_unlock(&shard->lock);
	if (!hwt_tick_reached(shard, tick)) {
		hwt_engine_publish(shard, tick);
		tick = hwt_engine_last_look(shard, tick);
		if (!hwt_tick_reached(shard, tick)) {
			hwt_engine_wait(shard, tick);
			return;
		}
	}
	cond_resched_tasks_rcu_qs();
}
