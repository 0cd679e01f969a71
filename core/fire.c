// SPDX-License-Identifier: GPL-2.0-only
/* Firing, apart from the callback: the lateness of a timeout, its next period */
#include <linux/math64.h>

#include "core/fire.h"

/* Read the times of a periodic timeout that is about to fire, and count missed periods. */
void hwt_period_read(const struct hwt_shard *shard, const struct hwt_timeout *timeout, bool first,
		     struct hwt_period *period)
{
	const struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);
	u64 now = hwt_clock_now(shard), next;

	period->first = first;
	if (first) {
		/* hwt_schedule_periodic_at() may be changing periodic->set: do not divide by 0. */
		period->period_ns = max_t(u64, atomic64_read(&periodic->set.period_ns), 1);
		next = atomic64_read(&periodic->set.first_ns);
		period->mode = READ_ONCE(periodic->set.mode);
	} else {
		period->period_ns = atomic64_read(&periodic->run.period_ns);
		next = atomic64_read(&periodic->run.next_ns);
		period->mode = periodic->run.mode;
	}
	period->missed = 0;
	if (period->mode == HWT_MODE_FIXED_RATE) {
		if (now > next && now - next >= period->period_ns)
			period->missed = div64_u64(now - next, period->period_ns);
		next = hwt_add_ns(next + period->missed * period->period_ns, period->period_ns);
	}
	period->next_ns = next;
}

/* Store what hwt_period_read() has found, once the timeout is sure to fire. */
void hwt_period_store(struct hwt_shard *shard, struct hwt_timeout *timeout,
		      const struct hwt_period *period)
{
	struct hwt_periodic *periodic = container_of(timeout, struct hwt_periodic, timeout);
	u64 total = period->first ? 0 : atomic64_read(&periodic->run.total);

	if (period->first) {
		atomic64_set(&periodic->run.period_ns, period->period_ns);
		WRITE_ONCE(periodic->run.mode, period->mode);
	}
	atomic64_set(&periodic->run.next_ns, period->next_ns);
	atomic64_set(&periodic->run.overruns, period->missed);
	atomic64_set(&periodic->run.total, total + period->missed);
	hwt_count(&shard->overruns, period->missed);
}

/*
 * Return the lateness, ns, of a call that began two ticks or more after its timeout's tick, and
 * count it. If the timeout was scheduled after its tick (@past), count only the time since it was
 * linked. If the clock was set, count only the time since the engine found that.
 */
u64 hwt_lateness_late(struct hwt_shard *shard, u64 began, u64 tick, bool past)
{
	u64 since = max(tick * shard->tick_ns, shard->set_since), late;

	if (past)
		since = max(since, shard->past_since);
	late = began > since ? began - since : 0;
	hwt_count(&shard->late, late >= 2 * shard->tick_ns);
	hwt_count(&shard->behind, late > min_t(u64, hwt_revolution(shard), HWT_BEHIND_TICKS) *
					 shard->tick_ns);
	return late;
}
