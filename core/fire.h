/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers to fire a timeout, on the shard's threads or in a softirq */
#ifndef _HWT_CORE_FIRE_H
#define _HWT_CORE_FIRE_H

#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>

#include "core/callback.h"
#include "core/clock.h"
#include "core/shard.h"
#include "core/submit.h"
#include "core/wait.h"

/* When a timeout that fires was due. */
struct hwt_due {
	u64	tick;	/* the tick for which the timeout was armed */
	bool	past;	/* true if that tick had passed when the timeout was scheduled */
};

/* The times of a periodic timeout that fires. */
struct hwt_period {
	bool		first;	/* true if it fires for the first time since it was scheduled */
	unsigned int	mode;	/* HWT_MODE_FIXED_RATE or HWT_MODE_FIXED_DELAY */
	u64		period_ns;
	u64		next_ns; /* at a fixed rate, the next deadline, ns on the shard's clock */
	u64		missed;	/* number of periods that passed without a callback */
};

/*
 * Take a timeout off the due list, to fire it, and set @due->past; the caller sets @due->tick.
 * Return false if @timeout is the mark of a flush (struct hwt_mark), which does not fire.
 */
static inline bool hwt_due_take(struct hwt_shard *shard, struct hwt_timeout *timeout,
				struct hwt_due *due)
{
	hwt_buckets_take_due(timeout);
	due->past = false;
	if (unlikely(timeout->past)) {
		due->past = true;
		timeout->past = false;
	}
	return likely(!hwt_mark_reached(shard, timeout));
}

/*
 * Return the timeout of the due list to fire next: the last one if @last is true and the order of
 * ticks allows it, else the first one. The caller takes timeouts from both ends of the list in
 * turn. While the callback of one timeout executes, a timeout near the other end is prefetched.
 */
static inline struct hwt_timeout *hwt_due_pick(struct hwt_shard *shard, bool last)
	__must_hold(&shard->lock)
{
	struct list_head *due = &shard->buckets.due;
	struct hwt_timeout *first_due = list_first_entry(due, struct hwt_timeout, link);
	struct hwt_timeout *last_due = list_last_entry(due, struct hwt_timeout, link);
	u64 tick;

	prefetchw(last ? due->next->next : due->prev->prev);
	/* A flush waits for all timeouts before its mark, so do not take a mark from the end. */
	if (!last || hwt_is_mark(last_due))
		return first_due;
	/*
	 * Keep the order of ticks: take the last timeout only if it has the tick of the first one,
	 * or if it was pushed back beyond the cursor, and so does not fire now.
	 */
	tick = hwt_state_tick(hwt_timeout_state(last_due));
	if (tick <= shard->buckets.cursor &&
	    tick != hwt_state_tick(hwt_timeout_state(first_due)))
		return first_due;
	return last_due;
}

/* Count a timeout that fires, whose state was @old. */
static inline void hwt_due_count(struct hwt_shard *shard, u64 old)
{
	hwt_count(&shard->expired, 1);
	if (old & HWT_F_PERIODIC)
		return;
	hwt_count(&shard->retired, 1);
	hwt_pending_put(shard);
}

/*
 * Return the tick of the deadline that hwt_touch() has stored, or 0 if the cursor has reached the
 * deadline. The caller reads the timeout's state before this call. After this call, the caller
 * changes the state only if no other CPU has changed it meanwhile.
 */
static inline u64 hwt_touched_tick(const struct hwt_shard *shard, const struct hwt_timeout *timeout)
{
	if (likely((u64)atomic64_read(&timeout->touched) <=
		   shard->buckets.cursor * shard->tick_ns))
		return 0;
	/*
	 * Barrier fire.touched, pairs with state.arm in hwt_arm(): hwt_arm() lowers @touched before
	 * it changes the state. If this CPU has read the new state, it reads the lowered @touched.
	 */
	smp_rmb();
	return hwt_deadline_to_tick(shard, atomic64_read(&timeout->touched));
}

/*
 * The caller has moved a timeout to the tick of timeout->touched; @state is the new state. If a
 * client has lowered timeout->touched since then, lower the tick, too; the timeout may be due then.
 */
static inline void hwt_touch_again(const struct hwt_shard *shard, struct hwt_timeout *timeout,
				   u64 state)
{
	u64 tick = hwt_touched_tick(shard, timeout) ?: shard->buckets.cursor;

	/*
	 * If another CPU has changed the state, leave it. No barrier: hwt changes the state again,
	 * by a full barrier, before it calls a function of the client for the timeout.
	 */
	if (tick < hwt_state_tick(state))
		hwt_state_change(timeout, &state, hwt_state_at(state, tick));
}

/*
 * Return the time at which a call began, ns on the shard's clock. @offset: the value that
 * shard->clock_offset had before the call. CLOCK_REALTIME may have been set during the call.
 */
static inline u64 hwt_call_began(const struct hwt_shard *shard, const struct hwt_call *call,
				 s64 offset)
{
	if (likely(shard->clock == HWT_CLOCK_MONOTONIC))
		return call->began;
	if (shard->clock == HWT_CLOCK_REALTIME)
		return call->began + offset;
	return hwt_mono_to_clock(shard, call->began);
}

u64 hwt_lateness_late(struct hwt_shard *shard, u64 began, u64 tick, bool past);

/*
 * Count how late a call of ->expire began (docs/statistics.md). Called under the lock. @began: ns
 * on the shard's clock.
 */
static inline void hwt_lateness_count(struct hwt_shard *shard, u64 began,
				      const struct hwt_due *due)
{
	u64 at = due->tick * shard->tick_ns;
	u64 late = began > at ? began - at : 0;

	if (unlikely(late >= 2 * shard->tick_ns))
		late = hwt_lateness_late(shard, began, due->tick, due->past);
	hwt_count(&shard->lateness[fls64(late)], 1);
}

void hwt_period_read(const struct hwt_shard *shard, const struct hwt_timeout *timeout, bool first,
		     struct hwt_period *period);
void hwt_period_store(struct hwt_shard *shard, struct hwt_timeout *timeout,
		      const struct hwt_period *period);

#endif /* _HWT_CORE_FIRE_H */
