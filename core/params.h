/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's parameters that concern wheels, and the check of the parameters of a wheel */
#ifndef _HWT_CORE_PARAMS_H
#define _HWT_CORE_PARAMS_H

#include <linux/bits.h>
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

int hwt_params_get(struct hwt_wheel_params *params, const struct hwt_wheel_params *from);

#endif /* _HWT_CORE_PARAMS_H */
