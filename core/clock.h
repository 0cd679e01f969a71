/* SPDX-License-Identifier: GPL-2.0-only */
/* The clock of a shard, and its ticks */
#ifndef _HWT_CORE_CLOCK_H
#define _HWT_CORE_CLOCK_H

#include <linux/math64.h>

#include "core/params.h"
#include "core/shard.h"

/* Return the tick in which a time lies: round down. @ns: the time, below 2^63. */
static inline u64 hwt_ns_to_tick(const struct hwt_shard *shard, u64 ns)
{
	return mul_u64_u64_shr(ns, shard->tick_mult, 64) >> shard->tick_shift;
}

/*
 * Return the first tick that begins at or after a deadline of @ns: round up. If @ns plus a tick is
 * 2^63 or more, return HWT_TICK_NEVER.
 */
static inline u64 hwt_deadline_to_tick(const struct hwt_shard *shard, u64 ns)
{
	if (unlikely(ns > S64_MAX - shard->tick_ns))
		return HWT_TICK_NEVER;
	return hwt_ns_to_tick(shard, ns + shard->tick_ns - 1);
}

/* Return the time at which a tick begins, ns on the shard's clock; U64_MAX for HWT_TICK_NEVER. */
static inline u64 hwt_tick_to_ns(const struct hwt_shard *shard, u64 tick)
{
	return tick == HWT_TICK_NEVER ? U64_MAX : tick * shard->tick_ns;
}

void hwt_tick_setup(struct hwt_shard *shard, u64 tick_ns);
u64 hwt_clock_now(const struct hwt_shard *shard);
u64 hwt_clock_stamp(const struct hwt_shard *shard);
u64 hwt_clock_after(const struct hwt_shard *shard, u64 delay_ns);
u64 hwt_mono_to_clock(const struct hwt_shard *shard, u64 ns);

#endif /* _HWT_CORE_CLOCK_H */
