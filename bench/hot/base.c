// SPDX-License-Identifier: GPL-2.0-only
/* The buckets of a wheel under one spinlock: each caller executes its operation itself. */
#include "core/clock.h"
#include "core/params.h"
#include "core/shard.h"
#include "bench.h"

/* Return a shard. Only its lock, tick, buckets and one counter are used. */
struct hwt_shard *base_create(u64 now_ns)
{
	struct hwt_shard *base = shim_alloc(sizeof(*base));
	unsigned int bits = ilog2(hwt_ticks_per_wheel);

	hwt_tick_setup(base, NSEC_PER_MSEC);
	hwt_buckets_init(&base->buckets, bits, hwt_levels, hwt_ns_to_tick(base, now_ns),
			 shim_alloc(hwt_buckets_size(bits, hwt_levels)));
	return base;
}

void base_destroy(struct hwt_shard *base)
{
	kvfree(base->buckets.bucket);
	kfree(base);
}

void base_arm(struct hwt_shard *base, struct hwt_timeout *timeout, u64 deadline_ns)
{
	u64 tick = hwt_deadline_to_tick(base, deadline_ns);

	spin_lock(&base->lock);
	if (hwt_linked(timeout))
		hwt_buckets_remove(&base->buckets, timeout);
	atomic64_set(&timeout->state, tick << HWT_TICK_SHIFT | HWT_F_ARMED);
	hwt_buckets_insert(&base->buckets, timeout);
	spin_unlock(&base->lock);
}

void base_cancel(struct hwt_shard *base, struct hwt_timeout *timeout)
{
	spin_lock(&base->lock);
	if (hwt_linked(timeout))
		hwt_buckets_remove(&base->buckets, timeout);
	atomic64_set(&timeout->state, HWT_F_CANCELLED);
	spin_unlock(&base->lock);
}

/* Call back as hwt's engine: tick by tick, from both ends of the due list, without the lock. */
void base_expire(struct hwt_shard *base, u64 now_ns)
{
	struct list_head *due = &base->buckets.due;
	u64 tick = hwt_ns_to_tick(base, now_ns);
	struct hwt_timeout *timeout;
	bool last;

	spin_lock(&base->lock);
	while (!hwt_buckets_advance(&base->buckets, tick, HWT_STEP, true) || !list_empty(due) ||
	       base->buckets.cursor < tick)
		while (!list_empty(due)) {
			last = base->expired++ & 1;
			prefetchw(last ? due->next->next : due->prev->prev);
			timeout = list_entry(last ? due->prev : due->next, struct hwt_timeout,
					     link);
			hwt_buckets_remove(&base->buckets, timeout);
			atomic64_set(&timeout->state, HWT_F_EXPIRED);
			spin_unlock(&base->lock);
			timeout->ops->expire(timeout);
			spin_lock(&base->lock);
		}
	spin_unlock(&base->lock);
}
