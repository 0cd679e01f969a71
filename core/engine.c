// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine: the passes of its thread, and the work that runners do under the shard's lock
 *
 * A pass collects submissions, advances the cursor and, on a shard without workers, runs callbacks
 * of due timeouts. core/state.h describes the life of a timeout. Calls in core/submit.c change
 * states without a lock, so each change here is a compare-and-swap, repeated if it fails.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/prefetch.h>
#include <linux/processor.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "core/bh.h"
#include "core/callback.h"
#include "core/clock.h"
#include "core/debug.h"
#include "core/engine.h"
#include "core/fire.h"
#include "core/kick.h"
#include "core/params.h"
#include "core/submit.h"
#include "core/thread.h"
#include "core/trace.h"
#include "core/wait.h"

/*
 * Drop the shard's lock for a moment. In a task, also let another task run if one needs this CPU,
 * and report a quiescent state to RCU-tasks, which would otherwise wait until this task sleeps.
 */
void hwt_lock_break(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	spin_unlock_irq(&shard->lock);
	if (!in_softirq())
		cond_resched_tasks_rcu_qs();
	spin_lock_irq(&shard->lock);
}

/*
 * Drop the lock for a moment. Clear runner->stamp, the cached time at which the next callback
 * begins: the duration of the callback must not include the break.
 */
void hwt_runner_break(struct hwt_shard *shard, struct hwt_runner *runner)
	__must_hold(&shard->lock)
{
	hwt_lock_break(shard);
	runner->stamp = 0;
}

/*
 * Return the time on the shard's clock, ns. Do not read CLOCK_REALTIME itself, but use its offset
 * as of the last hwt_engine_check_clock(). Else the cursor could follow a clock that is set
 * forward. If it is set back before the next check, that check finds no change, and leaves the
 * cursor ahead.
 */
static u64 hwt_engine_now(const struct hwt_shard *shard)
{
	if (shard->clock == HWT_CLOCK_REALTIME)
		return ktime_get_ns() + shard->clock_offset;
	return hwt_clock_now(shard);
}

/* -- Collecting ---------------------------------------------------------- */

/*
 * Move the submissions of a CPU to inbox->fresh, unless inbox->fresh has entries already. Return
 * true if inbox->fresh may have entries when this function returns.
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
	 * Barrier intake.mb, pairs with push.add in hwt_push(): if this CPU misses a new entry when
	 * it takes the lists below, hwt_push() finds shard->active[cpu] cleared. Then hwt_push()
	 * sets it again, so that the entry is taken later.
	 */
	smp_mb();
	/*
	 * Barrier intake.take, pairs with push.add in hwt_push(): this CPU sees what was written to
	 * an entry, and to the object that contains it, before the push. A relaxed xchg()
	 * would do: the dependency on the entry's address orders the reads of the entry after the
	 * push.
	 */
	for (chain = 0; chain < HWT_CHAINS; chain++)
		if (!llist_empty(&inbox->list[chain]))
			inbox->fresh[chain] = llist_del_all(&inbox->list[chain]);
	inbox->taken++;
	list_add_tail(&inbox->intake, &shard->intake);
	return true;
}

/* Return an inbox whose member @fresh may have entries, or NULL if no timeout is submitted. */
static struct hwt_inbox *hwt_intake_next(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	u8 *active = shard->active, *found;
	unsigned int next;

	while (list_empty(&shard->intake)) {
		next = shard->intake_cpu + 1;
		/* If the search misses a byte that is set meanwhile, the next search finds it. */
		found = data_race(memchr_inv(active + next, 0, nr_cpu_ids - next) ?:
				  memchr_inv(active, 0, nr_cpu_ids));
		if (!found)
			return NULL;
		shard->intake_cpu = found - active;
		hwt_intake_take(shard, shard->intake_cpu);
	}
	return list_first_entry(&shard->intake, struct hwt_inbox, intake);
}

/*
 * Remove an entry from the lists in inbox->fresh, and return it. Successive calls take the lists in
 * turn. If all lists are empty, unlink the inbox from shard->intake, and return NULL.
 */
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
		/* Read node->next now: once SUBMITTED is clear, a push may overwrite it. */
		*chain = node->next;
		prefetchw(node->next);
		return llist_entry(node, struct hwt_timeout, submit);
	}
	list_del_init(&inbox->intake);
	return NULL;
}

/*
 * The part of hwt_link() that is not inlined. Kick the engine if it sleeps until a tick after
 * @tick. If the timeout was scheduled after @tick had passed, as far as hwt can tell, set
 * timeout->past: its lateness then counts from now (shard->past_since), because hwt does not store
 * the time at which a timeout was scheduled.
 */
void hwt_link_rest(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 tick)
	__must_hold(&shard->lock)
{
	bool past = tick < shard->intake_since;

	/* The engine needs no kick from itself: it looks at the buckets before it sleeps. */
	if (current != shard->engine.task && tick < (u64)atomic64_read(&shard->wake_tick)) {
		hwt_engine_kick_locked(shard, tick);
		/*
		 * The engine sleeps until a tick after @tick: a call that came in time would have
		 * woken it. So if @tick has passed, assume that the call came later, and do not
		 * count the time until then as lateness. If this is wrong (the engine is slow to
		 * wake up, or the call was made in the callback), the lateness is too short.
		 */
		past |= tick < hwt_engine_tick(shard);
	}
	if (past) {
		timeout->past = true;
		shard->past_since = hwt_engine_now(shard);
	}
}

/* Take a timeout out of its bucket, the due list or shard->owed. */
void hwt_unlink(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	hwt_buckets_remove(&shard->buckets, timeout);
	timeout->past = false;
	timeout->owed = false;
}

/* Put a timeout on shard->owed, and wake a runner, which ends the hold and calls the client. */
static void hwt_owe_call(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	list_add_tail(&timeout->link, &shard->owed);
	timeout->owed = true;
	if (shard->nr_workers)
		hwt_worker_wake(shard);
	else if (current != shard->engine.task || in_softirq())
		hwt_engine_kick_locked(shard, 0);
	/*
	 * Wake hwt_wait() here, because a cancel wakes no task. If only a ->release has yet to be
	 * called, hwt_wait() does not wait for it.
	 */
	hwt_wake_timeout(shard, timeout);
}

/* The body of hwt_collect_one(), also inlined where many timeouts are collected. */
static __always_inline void __hwt_collect_one(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;

	if (hwt_linked(timeout))
		hwt_unlink(shard, timeout);
	/*
	 * Barrier state.finish, pairs with state.arm in hwt_arm(): the caller of hwt_arm() that
	 * begins the timeout's next hold sees everything that was done in this hold.
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

/* Collect a timeout that was taken off a submission list. On return, it may have been freed. */
void hwt_collect_one(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	__hwt_collect_one(shard, timeout);
}

/* Collect up to @max entries of inbox->fresh. Return the number of entries collected. */
static unsigned int hwt_collect_taken(struct hwt_shard *shard, struct hwt_inbox *inbox,
				      unsigned int max)
	__must_hold(&shard->lock)
{
	struct hwt_timeout *timeout;
	unsigned int n = 0;

	while (n < max && (timeout = hwt_intake_pop(shard, inbox))) {
		__hwt_collect_one(shard, timeout);
		n++;
	}
	hwt_count(&shard->collected, n);
	return n;
}

/*
 * Collect up to @max submitted timeouts, and return their number. If a timeout's client must be
 * called, only put the timeout on shard->owed. Drops the shard's lock now and then.
 */
unsigned int hwt_collect(struct hwt_shard *shard, unsigned int max)
	__must_hold(&shard->lock)
{
	struct hwt_inbox *inbox;
	unsigned int n = 0;

	while (n < max && (inbox = hwt_intake_next(shard))) {
		n += hwt_collect_taken(shard, inbox, min(max - n, HWT_STEP - n % HWT_STEP));
		if (n % HWT_STEP == 0)
			hwt_lock_break(shard);
	}
	return n;
}

/*
 * Drop the lock for a moment. For callers that may have interrupts off without the lock: @flags are
 * those that their spin_lock_irqsave() has stored.
 */
void hwt_lock_pause(struct hwt_shard *shard, unsigned long *flags)
	__must_hold(&shard->lock)
{
	spin_unlock_irqrestore(&shard->lock, *flags);
	cpu_relax();
	spin_lock_irqsave(&shard->lock, *flags);
}

/*
 * Collect submissions of @cpu until @timeout is collected, or is found not to be among them. If
 * @timeout is NULL, collect all that were submitted before the call. Drops the lock between steps.
 * @flags: as for hwt_lock_pause(), or NULL in a task that may sleep.
 */
void hwt_collect_until(struct hwt_shard *shard, unsigned int cpu,
		       const struct hwt_timeout *timeout,
		       unsigned long *flags)
	__must_hold(&shard->lock)
{
	struct hwt_inbox *inbox = per_cpu_ptr(shard->inbox, cpu);
	unsigned long end = inbox->taken + 1;

	/*
	 * What @cpu has pushed is in inbox->fresh, or is moved there next (inbox->taken counts the
	 * moves): collect these two batches. If the timeout is in neither, it was not pushed yet,
	 * or another CPU has pushed it: the caller tries again.
	 */
	while ((!timeout || (!timeout->owed && (hwt_timeout_state(timeout) & HWT_F_SUBMITTED))) &&
	       time_before_eq(inbox->taken, end) && hwt_intake_take(shard, cpu)) {
		if (hwt_collect_taken(shard, inbox, HWT_STEP) == HWT_STEP) {
			if (flags)
				hwt_lock_pause(shard, flags);
			else
				hwt_lock_break(shard);
		}
	}
}

/* Collect all timeouts submitted before the call, in bounded time. Drops the shard's lock. */
void hwt_collect_submitted(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		hwt_collect_until(shard, cpu, NULL, NULL);
		hwt_lock_break(shard);
	}
}

/*
 * End the hold of a timeout, and call its ->cancelled and ->release. If the timeout was armed
 * again, only link it. On return, the timeout may have been freed.
 *
 * The timeout must be SUBMITTED, not RUNNING, and on no submission list: it is on shard->owed, or
 * the caller has set SUBMITTED under the shard's lock, and does not push it. If @timeout is a mark
 * (struct hwt_mark) on shard->owed, only take the mark off. Drops the lock around callbacks.
 */
void hwt_end_hold(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	struct hwt_change change;
	struct hwt_call release;
	u64 old;

	if (hwt_linked(timeout))
		hwt_unlink(shard, timeout);
	if (unlikely(hwt_mark_reached(shard, timeout)))
		return;
	hwt_call_prepare(&release, timeout);
	old = hwt_timeout_state(timeout);
	/*
	 * Barrier state.finish, pairs with state.arm in hwt_arm(): the caller of hwt_arm() that
	 * begins the timeout's next hold sees everything that was done in this hold.
	 */
	do {
		change = hwt_state_end(old, timeout->ops);
		hwt_debug_track(timeout, change.state);
	} while (!hwt_state_change(timeout, &old, change.state));

	runner->call = ++shard->calls;
	if (change.action == HWT_LINK)
		hwt_link(shard, timeout, change.state);
	else if (change.action == HWT_CALL_CANCELLED)
		hwt_finish(shard, runner, timeout, true);
	else if (release.fn)
		hwt_call_release(shard, runner, timeout, &release);
	hwt_wake_call(shard, runner, timeout);
}

/* Return the time at which a periodic timeout, whose callback has returned, fires again. */
static u64 hwt_periodic_next(struct hwt_shard *shard, struct hwt_timeout *timeout)
{
	struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);

	if (periodic->run.mode == HWT_MODE_FIXED_DELAY)
		atomic64_set(&periodic->run.next_ns,
			     hwt_add_ns(hwt_clock_now(shard),
					atomic64_read(&periodic->run.period_ns)));
	return atomic64_read(&periodic->run.next_ns);
}

static struct hwt_change hwt_finish_change(struct hwt_shard *shard, struct hwt_timeout *timeout,
					   bool notify)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout), tick = 0, next;
	struct hwt_change change;

	while ((old & HWT_F_PENDING) == HWT_F_REARM) {
		next = hwt_periodic_next(shard, timeout);
		tick = hwt_deadline_to_tick(shard, next);
		/*
		 * If a touch is later than @next, it came after the timeout had begun to fire, or
		 * the clock was set back since: it would delay the next firing.
		 */
		if (hwt_untouch(timeout, old, next))
			break;
		old = hwt_timeout_state(timeout);
	}
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

/*
 * Clear RUNNING after a callback, and link the timeout again or end its hold. On return, the
 * timeout may have been freed. If @notify is true and the timeout was cancelled, first call its
 * ->cancelled. Drops the lock around callbacks.
 */
void hwt_finish(struct hwt_shard *shard, struct hwt_runner *runner,
		struct hwt_timeout *timeout, bool notify)
	__must_hold(&shard->lock)
{
	const struct hwt_timeout_ops *ops = timeout->ops;
	struct hwt_call call, release;
	struct hwt_change change;

	hwt_call_prepare(&release, timeout);
	change = hwt_finish_change(shard, timeout, notify && ops->cancelled);
	if (change.action == HWT_CALL_CANCELLED) {
		hwt_call_begin(shard, runner, timeout, ops->cancelled, &call);
		ops->cancelled(timeout);
		hwt_call_end(shard, runner, &call);
		change = hwt_finish_change(shard, timeout, false);
	}
	if (change.action == HWT_LINK)
		hwt_link(shard, timeout, change.state);
	if (change.action == HWT_RELEASE && release.fn)
		hwt_call_release(shard, runner, timeout, &release);
	hwt_wake_call(shard, runner, timeout);
}

/* -- Firing -------------------------------------------------------------- */

/* Return the present tick, to which the cursor may advance. */
u64 hwt_engine_tick(const struct hwt_shard *shard)
{
	return hwt_ns_to_tick(shard, hwt_engine_now(shard));
}

/*
 * Take a timeout off the due list. If it fires, make it RUNNING, fill in @due, and return true.
 * Return false if it was cancelled or pushed back, or is a mark (struct hwt_mark).
 */
static bool hwt_fire_claim(struct hwt_shard *shard, struct hwt_timeout *timeout,
			   struct hwt_due *due)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout);
	struct hwt_change change;
	struct hwt_period period;

	if (!hwt_due_take(shard, timeout, due))
		return false;
	/*
	 * Barrier state.fire, pairs with state.arm in hwt_arm(), earlier.mb in __hwt_schedule() and
	 * earlier.touched in hwt_arm_earlier(): the callback sees what was written before the
	 * timeout was scheduled.
	 */
	do {
		change = hwt_state_fire(old, shard->buckets.cursor,
					hwt_touched_tick(shard, timeout));
		if (hwt_clock_recheck(shard, timeout))
			return false;
	} while (change.state != old && !hwt_state_change(timeout, &old, change.state));

	if (change.action == HWT_LINK) {
		/* Read timeout->touched again: it may have been lowered since the loop read it. */
		if (change.state != old)
			hwt_touch_again(shard, timeout, change.state);
		hwt_link(shard, timeout, hwt_timeout_state(timeout));
	}
	if (change.action != HWT_CALL)
		return false;
	due->tick = hwt_state_tick(old);
	hwt_due_count(shard, old);
	if (old & HWT_F_PERIODIC) {
		hwt_period_read(shard, timeout, !(old & HWT_F_REARM), &period);
		hwt_period_store(shard, timeout, &period);
	}
	return true;
}

/* Take a timeout off the due list, and fire it if it is still due. May drop the shard's lock. */
void hwt_fire(struct hwt_shard *shard, struct hwt_runner *runner,
	      struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	void (*expire)(struct hwt_timeout *timeout);
	struct hwt_call call;
	struct hwt_due due;
	s64 offset;

	if (!hwt_fire_claim(shard, timeout, &due))
		return;
	expire = timeout->ops->expire;
	offset = shard->clock_offset;
	runner->call = ++shard->calls;
	hwt_call_begin(shard, runner, timeout, expire, &call);
	/* call.began may be a cached time before the deadline: do not trace the call as early. */
	if (trace_hwt_expire_entry_enabled())
		trace_hwt_expire_entry(shard, timeout, expire, due.tick,
				       max(hwt_call_began(shard, &call, offset),
					   hwt_tick_to_ns(shard, due.tick)));
	expire(timeout);
	trace_hwt_expire_exit(shard, timeout, expire);
	hwt_call_end(shard, runner, &call);
	hwt_lateness_count(shard, hwt_call_began(shard, &call, offset), &due);
	hwt_finish(shard, runner, timeout, true);
}

static bool hwt_engine_halted(const struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	return shard->stopping || hwt_clock_moved(shard) || hwt_frozen(shard);
}

/* Take up to @max timeouts off the due list, and fire them. Return the number taken. */
static unsigned int hwt_engine_fire(struct hwt_shard *shard, unsigned int max)
	__must_hold(&shard->lock)
{
	struct list_head *due = &shard->buckets.due;
	unsigned int n = 0;

	if (hwt_is_bh(shard))
		return hwt_bh_fire(shard, max);
	while (n < max && !list_empty(due) && !hwt_engine_halted(shard)) {
		hwt_fire(shard, &shard->engine, hwt_due_pick(shard, n & 1));
		/* hwt_fire() keeps the lock if a timeout was cancelled, so drop the lock here. */
		if (++n % HWT_STEP == 0)
			hwt_runner_break(shard, &shard->engine);
	}
	return n;
}

/* -- Passes -------------------------------------------------------------- */

/*
 * Raise shard->intake_since to T, the tick in which the engine was woken, but not beyond @now or
 * the tick until which the engine was to sleep. If a timeout for a tick before T is linked from now
 * on, hwt assumes that it was scheduled after that tick: an earlier submission would have woken the
 * engine before T. (This may be wrong if it was pushed back, or armed during its callback.)
 */
static void hwt_engine_intake_since(struct hwt_shard *shard, u64 now)
	__must_hold(&shard->lock)
{
	u64 ns = shard->woken_ns, tick = min(shard->woken_tick, now);

	if (shard->clock == HWT_CLOCK_REALTIME)
		ns += shard->clock_offset;
	/* On a BH shard, kicks lower @woken_tick. On others, only @woken_ns shows a kick. */
	if (!hwt_is_bh(shard))
		tick = min(tick, hwt_ns_to_tick(shard, ns));
	shard->intake_since = max(shard->intake_since, tick);
}

/* If a cancel has set shard->reclaim, plan a pass in reclaim_ms. In that pass, clear the flag. */
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
		 * hwt_push(): if a cancel still finds shard->reclaim set, and so does not kick the
		 * engine, this pass collects the cancelled timeout.
		 */
		smp_mb();
	}
}

/*
 * If CLOCK_REALTIME was set since the last check, call the client's @clock_set, and return true. If
 * the clock is now behind the cursor, also move the cursor back, and sort all timeouts anew.
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
			/*
			 * The lock is dropped for the call. No worker fires a timeout meanwhile:
			 * hwt_clock_moved() is true until clock_offset is set.
			 */
			shard->engine.call = ++shard->calls;
			hwt_call_begin(shard, &shard->engine, &shard->clock_timeout,
				       shard->clock_set, &call);
			shard->clock_set(shard->wheel, jump, shard->clock_set_arg);
			hwt_call_end(shard, &shard->engine, &call);
			hwt_wake(shard, &shard->engine);
		}
		shard->clock_offset = offset;
		/* For timeouts that the clock has jumped over, count the lateness from now. */
		shard->set_since = hwt_engine_now(shard);
		now = hwt_engine_tick(shard);
		if (now < shard->buckets.cursor)
			hwt_buckets_rebase(&shard->buckets, now);
	}
	/*
	 * Wake hwt_wheel_flush() even if @jump is 0: it may wait because the clock was set, and the
	 * clock may have been set back since.
	 */
	hwt_wake(shard, shard);
	return jump;
}

/* End the holds of up to HWT_STEP timeouts on shard->owed. Return true if more may be there. */
static bool hwt_engine_end_holds(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	unsigned int n;

	for (n = 0; n < HWT_STEP && !list_empty(&shard->owed) && !hwt_engine_halted(shard); n++)
		hwt_end_hold(shard, &shard->engine,
			     list_first_entry(&shard->owed, struct hwt_timeout, link));
	return n == HWT_STEP;
}

/*
 * Move the cursor to @tick, which is not beyond the present tick, in a bounded number of steps.
 * Return true if the cursor has got there. Drops the shard's lock now and then.
 */
bool hwt_engine_advance(struct hwt_shard *shard, u64 tick)
	__must_hold(&shard->lock)
{
	bool done = false;
	unsigned int n;

	for (n = 0; n < HWT_ADVANCE_MAX / HWT_STEP && !done && !shard->stopping; n++) {
		if (n && hwt_is_bh(shard) && hwt_bh_spent(shard))
			break;
		if (n)
			hwt_lock_break(shard);
		/* If the wall clock was set back during the break, @tick may be in the future. */
		if (n && shard->clock == HWT_CLOCK_REALTIME)
			tick = min(tick, hwt_engine_tick(shard));
		done = hwt_buckets_advance(&shard->buckets, tick, HWT_STEP, false);
		if (shard->nr_workers && !list_empty(&shard->buckets.due))
			hwt_worker_wake(shard);
	}
	return done;
}

/* Advance to @now. On the way, take up to @max due timeouts, and fire them. Return their number. */
static unsigned int hwt_engine_serve(struct hwt_shard *shard, u64 now, unsigned int max)
	__must_hold(&shard->lock)
{
	struct hwt_buckets *buckets = &shard->buckets;
	unsigned int n, served = 0;
	bool done;

	/*
	 * The loop below does not advance while a timeout is due. Timeouts that come due again and
	 * again could keep the cursor where it is, so advance here.
	 */
	if (!list_empty(&buckets->due))
		hwt_engine_advance(shard, now);
	for (n = 0; n < HWT_ADVANCE_MAX / HWT_STEP && !hwt_engine_halted(shard); n++) {
		/* The first round fires a timeout even if the softirq has no time left. */
		if (n && hwt_is_bh(shard) && hwt_bh_spent(shard))
			break;
		if (n % 2)
			hwt_lock_break(shard);
		done = hwt_buckets_advance(buckets, now, HWT_STEP, true);
		/* The time of the advance must not count as the duration of a callback. */
		shard->engine.stamp = 0;
		served += hwt_engine_fire(shard, max - served);
		if (!list_empty(&buckets->due) || (done && buckets->cursor >= now))
			break;
	}
	return served;
}

/*
 * Collect up to HWT_COLLECT_STEP submissions, and return their number. If it is smaller, no
 * submission is left: set intake_since to @now.
 */
static unsigned int hwt_engine_collect(struct hwt_shard *shard, u64 now)
	__must_hold(&shard->lock)
{
	unsigned int n = hwt_collect(shard, HWT_COLLECT_STEP);

	if (n < HWT_COLLECT_STEP)
		shard->intake_since = now;
	return n;
}

/*
 * Advance and fire. Then end the holds of the timeouts on shard->owed; after each HWT_STEP holds,
 * collect, advance and fire again. The numbers of holds and of timeouts are limited, because other
 * contexts may add more work all the time. Add the number of timeouts collected to *@collected.
 * Return the number taken off the due list.
 */
static unsigned int hwt_engine_work(struct hwt_shard *shard, u64 now, unsigned int *collected)
	__must_hold(&shard->lock)
{
	unsigned int served, holds;

	served = hwt_engine_serve(shard, now, HWT_FIRE_MAX);
	for (holds = 0; holds < HWT_FIRE_MAX && hwt_engine_end_holds(shard); holds += HWT_STEP) {
		hwt_runner_break(shard, &shard->engine);
		if (served == HWT_FIRE_MAX)
			continue;
		/* Submitted timeouts that the cursor passes fire out of order: collect first. */
		now = hwt_engine_tick(shard);
		*collected += hwt_engine_collect(shard, now);
		served += hwt_engine_serve(shard, now, HWT_FIRE_MAX - served);
	}
	return served;
}

/*
 * Run a pass: collect, advance, fire. Fire after each step of the collection, so that due timeouts
 * do not wait until a hundred thousand cancelled timeouts are collected.
 */
void hwt_engine_pass(struct hwt_shard *shard)
{
	unsigned int n, collected = 0, served = 0;
	u64 now, tick, cursor, wake_tick;
	bool jumped;

	WRITE_ONCE(shard->kicked, false);
	/*
	 * The engine is awake: no tick is before a wake_tick of 0, so no submission kicks it.
	 *
	 * Barrier pass.mb, pairs with kick.before in __hwt_engine_kick() and state.pull in
	 * hwt_arm(): this pass finds the submission or new tick of each caller that has set
	 * @kicked, or found it set, before the store above. On a BH shard, it also finds that of
	 * each caller that has lowered wake_tick before this xchg.
	 */
	wake_tick = atomic64_xchg(&shard->wake_tick, 0);

	shard->engine.stamp = 0;
	spin_lock_irq(&shard->lock);
	hwt_count(&shard->passes, 1);
	jumped = hwt_engine_check_clock(shard);
	now = hwt_engine_tick(shard);
	hwt_engine_reclaim(shard);
	if (hwt_is_bh(shard))
		shard->woken_tick = wake_tick;
	hwt_engine_intake_since(shard, now);
	/*
	 * After a long sleep, move the cursor forward, so that timeouts that are collected now go
	 * to lower levels. Stop before intake_since (it may be after @now if the clock was set
	 * back): timeouts that came due since the wake-up then go to buckets, and fire in the order
	 * of ticks. After a jump, timeouts that are not collected yet may be due: skip no tick.
	 */
	tick = min(shard->intake_since, now);
	if (!jumped && tick)
		hwt_buckets_skip(&shard->buckets, tick - 1);
	for (;;) {
		n = hwt_engine_collect(shard, now);
		collected += n;
		if (shard->nr_workers)
			hwt_engine_advance(shard, now);
		else
			served += hwt_engine_work(shard, now, &collected);
		if (n < HWT_COLLECT_STEP || collected >= HWT_COLLECT_MAX || hwt_is_bh(shard))
			break;
		now = hwt_engine_tick(shard);
	}
	cursor = shard->buckets.cursor;
	spin_unlock_irq(&shard->lock);
	trace_hwt_pass(shard, cursor, collected, served);
}

/* Return the next tick with work, or 0 if there is work now. Ignore timeouts not collected yet. */
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
		/* Wake a worker: a task that links a due timeout wakes only the engine. */
		hwt_worker_wake(shard);
	}
	tick = hwt_buckets_next_tick(&shard->buckets);
	if (shard->reclaim_at)
		tick = min(tick, hwt_deadline_to_tick(shard,
						      hwt_mono_to_clock(shard, shard->reclaim_at)));
	return tick;
}

/* Indexed by HWT_CLOCK_*. */
const clockid_t hwt_clock_id[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };

static bool hwt_engine_wanted(struct hwt_shard *shard)
{
	return READ_ONCE(shard->kicked) || hwt_thread_ends(shard);
}

static void hwt_engine_sleep_until(struct hwt_shard *shard, u64 tick, ktime_t expires)
{
	/*
	 * Barrier wait.state, pairs with kick.after in __hwt_engine_kick() and kernel.wake in
	 * hwt_thread_wake_frozen(): the engine sees the kick or the request to end, and does not
	 * sleep. Or the CPU that kicks or ends the engine sees the state that is set here and a
	 * current_timeout of NULL, and wakes the engine.
	 */
	set_current_state(hwt_idle_state(shard));
	if (!hwt_engine_wanted(shard)) {
		schedule_hrtimeout_range_clock(tick == HWT_TICK_NEVER ? NULL : &expires, 0,
					       HRTIMER_MODE_ABS, hwt_clock_id[shard->clock]);
		hwt_count(&shard->wakeups, 1);
	}
	__set_current_state(TASK_RUNNING);
}

/* Poll the clock until @expires or a kick. If @tick is HWT_TICK_NEVER, ignore @expires. */
static void hwt_engine_spin_until(struct hwt_shard *shard, u64 tick, ktime_t expires)
{
	/*
	 * Let other tasks run before the first test, too: while CPU hotplug keeps a thread of the
	 * shard from being pinned, the loop ends at once, and CPU hotplug may need this CPU. RCU
	 * needs a quiescent state, even if no other task needs this CPU.
	 */
	do {
		cpu_relax();
		cond_resched_tasks_rcu_qs();
	} while (!hwt_engine_wanted(shard) && !hwt_frozen(shard) &&
		 !hwt_engine_off_affinity(shard) &&
		 (tick == HWT_TICK_NEVER || hwt_clock_now(shard) < ktime_to_ns(expires)));
}

/* Wait until @tick, shard->reclaim_at, a kick or a stop, whichever comes first. */
static void hwt_engine_wait(struct hwt_shard *shard, u64 tick)
{
	ktime_t expires = ns_to_ktime(tick * shard->tick_ns);
	u64 reclaim_at = shard->reclaim_at;	/* written by this thread only */
	bool kicked;

	/* Use the exact time of @reclaim_at, not rounded up to a tick: a tick may last an hour. */
	if (reclaim_at)
		expires = min(expires, ns_to_ktime(hwt_mono_to_clock(shard, reclaim_at)));
	if (shard->wait == HWT_WAIT_BUSY)
		hwt_engine_spin_until(shard, tick, expires);
	else
		hwt_engine_sleep_until(shard, tick, expires);
	kicked = READ_ONCE(shard->kicked);
	shard->woken_ns = kicked ? atomic64_read(&shard->kicked_ns) : hwt_clock_stamp(shard);
	shard->woken_tick = tick;
	trace_hwt_wake(shard, tick == HWT_TICK_NEVER ? U64_MAX : ktime_to_ns(expires), kicked);
}

static bool hwt_tick_reached(const struct hwt_shard *shard, u64 tick)
{
	return tick <= hwt_ns_to_tick(shard, hwt_clock_now(shard));
}

/* Publish the tick until which the engine sleeps: submitters wake it for earlier ticks. */
static void hwt_engine_publish(struct hwt_shard *shard, u64 tick)
{
	atomic64_set(&shard->wake_tick, tick);
	/*
	 * Barrier sleep.seq, pairs with state.arm and state.pull in hwt_arm() and state.cancel in
	 * hwt_cancel_claim(): suppose that caller A reads the new sleep_seq and then sets
	 * SUBMITTED, and that caller B finds SUBMITTED set, and moves or cancels the timeout.
	 * Caller B sees what the engine wrote before sleep_seq (wake_tick, @kicked, @reclaim), and
	 * kicks the engine if need be. (If sleep_seq changes again, caller A kicks.)
	 */
	smp_store_release(&shard->sleep_seq, shard->sleep_seq + 1);
	/*
	 * Barrier sleep.mb, pairs with push.add and push.active in hwt_push(), bh.kick in
	 * hwt_bh_kick() and state.pull in hwt_arm(): if the last collection, which follows, misses
	 * a caller's entry or new tick, the caller finds wake_tick and sleep_seq as published, and
	 * kicks the engine if need be.
	 */
	smp_mb();
}

/*
 * Collect a last time before the engine sleeps. @published is the present wake_tick. Return the
 * tick until which the engine may sleep. If it is earlier than @published, store it in wake_tick.
 */
static u64 hwt_engine_last_look(struct hwt_shard *shard, u64 published)
{
	unsigned int collected = 0;
	u64 tick;

	shard->engine.stamp = 0;
	spin_lock_irq(&shard->lock);
	if (!shard->stopping) {
		/* A BH shard ignores kicks during a pass: set reclaim_at if a cancel made one. */
		if (hwt_is_bh(shard))
			hwt_engine_reclaim(shard);
		collected = hwt_collect(shard, HWT_COLLECT_STEP);
	}
	tick = collected < HWT_COLLECT_STEP ? hwt_engine_target(shard) : 0;
	spin_unlock_irq(&shard->lock);
	/*
	 * On a BH shard, hwt_bh_kick() may have stored an even lower tick in wake_tick meanwhile:
	 * keep that tick. No barrier: a caller that still reads the higher tick may kick for
	 * nothing, but leaves out no kick.
	 */
	while (tick < published &&
	       !atomic64_try_cmpxchg(&shard->wake_tick, (s64 *)&published, tick))
		;
	return min(tick, published);
}

/*
 * Set *@tick to the tick until which the engine may sleep. Return false if it is reached already.
 *
 * A submitter wakes the engine if its tick is earlier than wake_tick. The engine publishes
 * wake_tick, increments sleep_seq, and then collects a last time: the engine finds an entry, or the
 * caller that pushes it finds the published values. The engine must not sleep beyond the published
 * wake_tick, because a caller that has compared its tick with wake_tick does not look again.
 *
 * sleep_seq is for a timeout that CPU A has made SUBMITTED, but has not pushed yet. CPU B moves the
 * timeout to an earlier tick, and wakes the engine, which finds it on no list, and sleeps again.
 * When CPU A has pushed the timeout, CPU A finds sleep_seq changed, and wakes the engine again.
 */
bool hwt_engine_idle(struct hwt_shard *shard, u64 *tick)
{
	spin_lock_irq(&shard->lock);
	*tick = hwt_engine_target(shard);
	spin_unlock_irq(&shard->lock);
	if (hwt_tick_reached(shard, *tick))
		return false;
	hwt_engine_publish(shard, *tick);
	*tick = hwt_engine_last_look(shard, *tick);
	return !hwt_tick_reached(shard, *tick);
}

/* Called by the engine's thread: wait until the engine has something to do. */
void hwt_engine_sleep(struct hwt_shard *shard)
{
	u64 tick;

	if (hwt_engine_idle(shard, &tick))
		hwt_engine_wait(shard, tick);
	else
		cond_resched_tasks_rcu_qs();
}
