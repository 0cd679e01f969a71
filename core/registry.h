/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's parameters for wheels, and the registry of live wheels
 */
#ifndef _HWT_CORE_REGISTRY_H
#define _HWT_CORE_REGISTRY_H

#include <linux/bits.h>
#include <linux/types.h>

#include "hwt_wheel.h"

#define HWT_TICKS_MAX		((u32)BIT(HWT_BITS_MAX))

/* Parameters, see hwt_main.c. Constant, but for hwt_slow_callback_us. */
extern unsigned int hwt_tick_us;
extern unsigned int hwt_ticks_per_wheel;
extern unsigned int hwt_levels;
extern unsigned int hwt_min_tick_us;
extern unsigned int hwt_shards;
extern unsigned int hwt_reclaim_ms;
extern unsigned int hwt_slow_callback_us;

bool hwt_shard_exists(const struct hwt_wheel *shard);
int hwt_registry_init(void);
void hwt_registry_exit(void);
int hwt_system_wheel_create(void);
void hwt_system_wheel_destroy(void);

#endif /* _HWT_CORE_REGISTRY_H */
