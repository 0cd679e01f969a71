// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPUs of shards
 *
 * CPUs that share a last-level cache belong to one shard, unless there are more shards than caches.
 * CPUs of one NUMA node belong to one shard, unless there are more shards than nodes.
 */
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/numa.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/topology.h>

#include "hwt_compat.h"
#include "core/cpus.h"
#include "core/shard.h"
#include "core/wheel.h"

/* Up to this many CPUs, the default is one shard; with more, one for each last-level cache. */
#define HWT_CPUS_PER_SHARD	16

/* Stands for the last-level cache of an offline CPU: the kernel does not know this cache. */
#define HWT_OFFLINE		U16_MAX

/* What hwt_units_add() counts: nodes, caches that have an online CPU, and online CPUs. */
enum { HWT_NODES, HWT_CACHES, HWT_CPUS, HWT_UNITS };

/* Return the place of a CPU: its node, cache and number, packed into a value by which to sort. */
static u64 hwt_cpu_place(unsigned int cpu)
{
	/* Sort an offline CPU last in its node, so that it joins the last cache. */
	u16 cache = cpu_online(cpu) ? hwt_cpu_cache(cpu) & (HWT_OFFLINE >> 1) : HWT_OFFLINE;
	u16 node = cpu_to_node(cpu);

	return (u64)node << 48 | (u64)cache << 32 | cpu;
}

/*
 * Count the node of a place and, if the CPU is online, the cache and the CPU. Skip the node or
 * cache if @before, the previous place in the sorted array (NULL: none), has the same.
 */
static void hwt_units_add(unsigned int *units, u64 place, const u64 *before)
{
	/* The place tells whether the CPU was online: cpu_online() may have changed since. */
	bool online = (u16)upper_32_bits(place) != HWT_OFFLINE;

	units[HWT_NODES] += !before || (place ^ *before) >> 48;
	units[HWT_CACHES] += online && (!before || (place ^ *before) >> 32);
	units[HWT_CPUS] += online;
}

static int hwt_place_compare(const void *a, const void *b)
{
	u64 left = *(const u64 *)a, right = *(const u64 *)b;

	return left < right ? -1 : left > right;
}

/* Return all CPUs' places, sorted, or NULL. @all: zeroed counters, to which they are added. */
static u64 *hwt_places_create(unsigned int *all, gfp_t gfp)
{
	u64 *places = kmalloc_array(num_possible_cpus(), sizeof(*places), gfp);
	unsigned int cpu, n = 0, i;

	if (!places)
		return NULL;
	for_each_possible_cpu(cpu)
		places[n++] = hwt_cpu_place(cpu);
	sort(places, n, sizeof(*places), hwt_place_compare, NULL);
	for (i = 0; i < n; i++)
		hwt_units_add(all, places[i], i ? &places[i - 1] : NULL);
	return places;
}

/* Return the default number of shards of a wheel. @wanted: the module's parameter "shards". */
unsigned int __init hwt_shards_choose(unsigned int wanted)
{
	unsigned int all[HWT_UNITS] = { };
	u64 *places;

	if (wanted || num_online_cpus() <= HWT_CPUS_PER_SHARD)
		return wanted ?: 1;
	places = hwt_places_create(all, GFP_KERNEL);
	kfree(places);
	return places ? min_t(unsigned int, all[HWT_CACHES], HWT_SHARDS_MAX) : 1;
}

/* Return an array, to be freed by the caller, of each CPU's shard; NULL if there is no memory. */
u8 *hwt_shard_map_create(unsigned int nr_shards, gfp_t gfp)
{
	unsigned int all[HWT_UNITS] = { }, seen[HWT_UNITS] = { };
	u64 *places = hwt_places_create(all, gfp);
	u8 *map = places ? kzalloc(nr_cpu_ids, gfp) : NULL;
	unsigned int i, n = num_possible_cpus();
	/* Divide the largest units of which there is one for each shard. */
	unsigned int unit = nr_shards <= all[HWT_NODES] ? HWT_NODES :
			    nr_shards <= all[HWT_CACHES] ? HWT_CACHES : HWT_CPUS;

	for (i = 0; map && i < n; i++) {
		hwt_units_add(seen, places[i], i ? &places[i - 1] : NULL);
		/* The first CPUs may be offline: then none is counted yet. */
		map[lower_32_bits(places[i])] = (max(seen[unit], 1U) - 1) * nr_shards /
						max(all[unit], 1U);
	}
	kfree(places);
	return map;
}

int hwt_shard_node(const u8 *map, unsigned int shard)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (map[cpu] == shard)
			return cpu_to_node(cpu);
	return NUMA_NO_NODE;
}

/* Return true if a CPU is not isolated: threads may run there without a client's request. */
bool hwt_cpu_housekeeping(unsigned int cpu)
{
	return housekeeping_test_cpu(cpu, HK_TYPE_KTHREAD) &&
	       housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN);
}

/* Return an online CPU that is not isolated; the present CPU if there is none. Any context. */
unsigned int hwt_cpu_any_housekeeping(void)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (hwt_cpu_housekeeping(cpu))
			return cpu;
	return raw_smp_processor_id();
}

/*
 * Set the CPUs of a shard. @map: the shard of each CPU, or NULL if there is one shard only. @cpus:
 * the CPUs chosen by the client, or NULL. Threads run on an isolated CPU only if @cpus has it.
 */
void hwt_shard_place(struct hwt_shard *shard, const u8 *map, const struct cpumask *cpus)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (!map || map[cpu] != shard->number)
			continue;
		shard->wheel->shard_of_cpu[cpu] = shard;
		if (hwt_cpu_housekeeping(cpu))
			cpumask_set_cpu(cpu, shard->affinity);
	}
	if (cpus)
		cpumask_copy(shard->affinity, cpus);
	/*
	 * Without @cpus, shard->affinity is empty if there is only one shard, or if the shard has
	 * no CPUs or only isolated ones. The shard's threads may then run anywhere.
	 */
	shard->pinned = !hwt_is_bh(shard) && !cpumask_empty(shard->affinity);
}
