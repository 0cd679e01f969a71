/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shards of a wheel, and the CPUs that each one serves
 */
#ifndef _HWT_CORE_SHARD_H
#define _HWT_CORE_SHARD_H

#include "core/wheel.h"

extern unsigned int hwt_shards_default;

u8 *hwt_shard_map_create(unsigned int nr_shards, gfp_t gfp);
bool hwt_cpu_housekeeping(unsigned int cpu);
int hwt_shard_node(const u8 *map, unsigned int shard);
void hwt_shard_place(struct hwt_wheel *shard, const u8 *map, const struct cpumask *cpus);
unsigned int hwt_shards_choose(void);
void hwt_shard_add_stats(const struct hwt_wheel *shard, struct hwt_wheel_stats *stats);

#endif /* _HWT_CORE_SHARD_H */
