// SPDX-License-Identifier: GPL-2.0-only
/* The clock of a shard, and its ticks */
#include <linux/hardirq.h>
#include <linux/jiffies.h>
#include <linux/timekeeping.h>

#include "core/clock.h"

/**
 * hwt_tick_setup() - prepare the conversion of nanoseconds to ticks
 * @shard:   the shard, which is being created
 * @tick_ns: length of a tick, ns, at least 2
 *
 * A time n is divided by a tick d with a multiplication: for 2^(l-1) < d <= 2^l, the multiplier
 * m = ceil(2^(63+l) / d) has 64 bits, and n * m >> (63 + l) is exactly n / d, rounded down, for
 * every n below 2^63 (Granlund and Montgomery 1994, theorem 4.2). The loop computes m bit by bit,
 * because 2^(63+l) does not fit in 64 bits.
 */
void hwt_tick_setup(struct hwt_shard *shard, u64 tick_ns)
{
	unsigned int l = fls64(tick_ns - 1), i;
	u64 mult = 0, rest = 1;

	for (i = 0; i < 63 + l; i++) {
		rest <<= 1;
		mult <<= 1;
		if (rest >= tick_ns) {
			rest -= tick_ns;
			mult |= 1;
		}
	}
	shard->tick_ns = tick_ns;
	shard->tick_mult = mult + !!rest;
	shard->tick_shift = l - 1;
}

/* Read the shard's clock in any context. In NMI, other readers than _fast_ may wait for ever. */
u64 hwt_clock_now(const struct hwt_shard *shard)
{
	switch (shard->clock) {
	case HWT_CLOCK_BOOTTIME:
		return unlikely(in_nmi()) ? ktime_get_boot_fast_ns() :
					    ktime_get_boottime_ns();
	case HWT_CLOCK_REALTIME:
		return unlikely(in_nmi()) ? ktime_get_real_fast_ns() :
					    ktime_get_real_ns();
	default:
		return unlikely(in_nmi()) ? ktime_get_mono_fast_ns() : ktime_get_ns();
	}
}

/*
 * Return the time, ns, in any context. On a wheel of CLOCK_BOOTTIME, read CLOCK_BOOTTIME. On all
 * other wheels, read CLOCK_MONOTONIC: CLOCK_REALTIME may be set before the caller uses the time.
 */
u64 hwt_clock_stamp(const struct hwt_shard *shard)
{
	return shard->clock == HWT_CLOCK_BOOTTIME ? ktime_get_boot_fast_ns() :
						    ktime_get_mono_fast_ns();
}

/* Convert a time of CLOCK_MONOTONIC to the shard's clock, by their present offset. Not in NMI. */
u64 hwt_mono_to_clock(const struct hwt_shard *shard, u64 ns)
{
	if (shard->clock == HWT_CLOCK_MONOTONIC)
		return ns;
	return ktime_mono_to_any(ns, shard->clock == HWT_CLOCK_BOOTTIME ? TK_OFFS_BOOT :
									  TK_OFFS_REAL);
}

/* Read the shard's clock as of the timekeeper's last update, up to a jiffy ago. Not in NMI. */
static u64 hwt_clock_coarse(const struct hwt_shard *shard)
{
	if (shard->clock == HWT_CLOCK_MONOTONIC)
		return ktime_get_coarse_ns();
	return ktime_to_ns(ktime_get_coarse_with_offset(shard->clock == HWT_CLOCK_BOOTTIME ?
							TK_OFFS_BOOT : TK_OFFS_REAL));
}

/* Return a deadline @delay_ns from now, or slightly later: a timeout must not fire early. */
u64 hwt_clock_after(const struct hwt_shard *shard, u64 delay_ns)
{
	u64 now;

	/*
	 * In NMI, the clock may step back a little, so add a tick. The coarse clock is up to a
	 * jiffy behind, so add a jiffy.
	 */
	if (unlikely(in_nmi()))
		now = hwt_clock_now(shard) + shard->tick_ns;
	else if (likely(!(shard->flags & HWT_COARSE_CLOCK)))
		now = hwt_clock_now(shard);
	else
		now = hwt_clock_coarse(shard) + TICK_NSEC;
	return hwt_add_ns(now, delay_ns);
}
