/* SPDX-License-Identifier: GPL-2.0-only */
/* The CPUs of shards */
#ifndef _HWT_CORE_CPUS_H
#define _HWT_CORE_CPUS_H

#include <linux/types.h>

struct cpumask;
struct hwt_shard;

u8 *hwt_shard_map_create(unsigned int nr_shards, gfp_t gfp);
bool hwt_cpu_housekeeping(unsigned int cpu);
unsigned int hwt_cpu_any_housekeeping(void);
int hwt_shard_node(const u8 *map, unsigned int shard);
void hwt_shard_place(struct hwt_shard *shard, const u8 *map, const struct cpumask *cpus);
unsigned int hwt_shards_choose(unsigned int wanted);

#endif /* _HWT_CORE_CPUS_H */
