/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's parameters that concern wheels, the check of a wheel's parameters, sums of times */
#ifndef _HWT_CORE_PARAMS_H
#define _HWT_CORE_PARAMS_H

#include <linux/bits.h>
#include <linux/overflow.h>
#include <linux/types.h>

#include "hwt.h"
#include "core/buckets.h"

#define HWT_TICKS_MAX		((u32)BIT(HWT_BITS_MAX))

/* The module's parameters (hwt_main.c). All but hwt_slow_callback_us are constant. */
extern unsigned int hwt_tick_us;
extern unsigned int hwt_ticks_per_wheel;
extern unsigned int hwt_levels;
extern unsigned int hwt_min_tick_us;
extern unsigned int hwt_shards;
extern unsigned int hwt_reclaim_ms;
extern unsigned int hwt_slow_callback_us;
/* Default number of shards of a wheel. Constant after the module's init. */
extern unsigned int hwt_shards_default;

/* Return the sum of two times; U64_MAX, which means never, if the sum overflows. */
static inline u64 hwt_add_ns(u64 a, u64 b)
{
	u64 sum;

	return check_add_overflow(a, b, &sum) ? U64_MAX : sum;
}

int hwt_params_get(struct hwt_wheel_params *params, const struct hwt_wheel_params *from);

#endif /* _HWT_CORE_PARAMS_H */
