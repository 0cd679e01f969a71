/* SPDX-License-Identifier: GPL-2.0-only */
/* The engine: collecting, advancing the cursor, and firing */
#ifndef _HWT_CORE_ENGINE_H
#define _HWT_CORE_ENGINE_H

#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "core/shard.h"
#include "core/state.h"

extern const clockid_t hwt_clock_id[];

void hwt_link_rest(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 tick);

/*
 * Insert a timeout into the buckets, under the shard's lock. If the caller is not the engine,
 * hwt_link_rest() kicks the engine, even if the call that scheduled the timeout has done so: the
 * engine may have gone back to sleep since then.
 */
static inline void hwt_link(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 state)
{
	u64 tick = hwt_state_tick(state);

	hwt_buckets_insert(&shard->buckets, timeout);
	if (unlikely(tick < shard->intake_since || current != shard->engine.task))
		hwt_link_rest(shard, timeout, tick);
}

/*
 * The caller holds the shard's lock. hwt_unlink(), hwt_collect_one() and hwt_engine_tick() keep it;
 * the other functions may drop it and take it again.
 */
void hwt_lock_break(struct hwt_shard *shard);
void hwt_lock_pause(struct hwt_shard *shard, unsigned long *flags);
void hwt_runner_break(struct hwt_shard *shard, struct hwt_runner *runner);
void hwt_unlink(struct hwt_shard *shard, struct hwt_timeout *timeout);
void hwt_collect_one(struct hwt_shard *shard, struct hwt_timeout *timeout);
unsigned int hwt_collect(struct hwt_shard *shard, unsigned int max);
void hwt_collect_submitted(struct hwt_shard *shard);
void hwt_collect_until(struct hwt_shard *shard, unsigned int cpu,
		       const struct hwt_timeout *timeout,
		       unsigned long *flags);
void hwt_end_hold(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_timeout *timeout);
void hwt_finish(struct hwt_shard *shard, struct hwt_runner *runner,
		struct hwt_timeout *timeout, bool notify);
u64 hwt_engine_tick(const struct hwt_shard *shard);
bool hwt_engine_advance(struct hwt_shard *shard, u64 tick);
void hwt_fire(struct hwt_shard *shard, struct hwt_runner *runner,
	      struct hwt_timeout *timeout);

/* Called without the shard's lock. */
bool hwt_engine_idle(struct hwt_shard *shard, u64 *tick);
void hwt_engine_pass(struct hwt_shard *shard);
void hwt_engine_sleep(struct hwt_shard *shard);

/*
 * Return true if CLOCK_REALTIME was set since the last hwt_engine_check_clock(). Then no timeout
 * may fire before the next hwt_engine_check_clock(): those on the due list may be due no more.
 */
static inline bool hwt_clock_moved(const struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	return shard->clock == HWT_CLOCK_REALTIME &&
	       ktime_to_ns(ktime_mono_to_real(0)) != shard->clock_offset;
}

/*
 * The caller has taken a timeout off the due list, and read its state. If CLOCK_REALTIME was set
 * before that, the timeout may be due no more: put it back, and return true.
 */
static inline bool hwt_clock_recheck(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	if (likely(shard->clock != HWT_CLOCK_REALTIME))
		return false;
	/*
	 * Barrier moved.rmb, pairs with state.arm in hwt_arm(): if the state is that of a schedule
	 * after the clock was set, this CPU sees that it was set.
	 */
	smp_rmb();
	if (!hwt_clock_moved(shard))
		return false;
	/* At the head: the timeout must not get behind the mark of a flush. */
	list_add(&timeout->link, &shard->buckets.due);
	return true;
}

#endif /* _HWT_CORE_ENGINE_H */
