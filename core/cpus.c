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
#include <linux/sort.h>
#include <linux/topology.h>

#include "hwt_compat.h"
#include "core/cpus.h"
#include "core/shard.h"
#include "core/wheel.h"

/* On a machine with more CPUs than this, a wheel has by default a shard per last-level cache. */
#define HWT_CPUS_PER_SHARD	16

/* Used as the cache of an offline CPU, whose cache is not known. */
#define HWT_OFFLINE		U16_MAX

/* Numbers of nodes, caches and CPUs. A cache is counted only if one of its CPUs is online. */
struct hwt_units {
	unsigned int	nodes;
	unsigned int	caches;
	unsigned int	cpus;		/* online */
};

/* Return the place of a CPU, for sorting: its node, its cache and its number, in this order. */
static u64 hwt_cpu_place(unsigned int cpu)
{
	/* An offline CPU's cache is not known: sort the CPU last, into its node's last cache. */
	u16 cache = cpu_online(cpu) ? hwt_cpu_cache(cpu) & (HWT_OFFLINE >> 1) : HWT_OFFLINE;
	u16 node = cpu_to_node(cpu);

	return (u64)node << 48 | (u64)cache << 32 | cpu;
}

/* Count the CPU if it is online, its node and cache if the previous place, @before, has others. */
static void hwt_units_add(struct hwt_units *units, u64 place, const u64 *before)
{
	/* Use the state by which the places were sorted: cpu_online() may have changed since. */
	bool online = (u16)upper_32_bits(place) != HWT_OFFLINE;

	units->nodes += !before || (place ^ *before) >> 48;
	units->caches += !before || (online && (place ^ *before) >> 32);
	units->cpus += online;
}

static int hwt_place_compare(const void *a, const void *b)
{
	u64 left = *(const u64 *)a, right = *(const u64 *)b;

	return left < right ? -1 : left > right;
}

/* Return a sorted array of all CPUs' places, or NULL. Count nodes, caches and CPUs in @all. */
static u64 *hwt_places_create(struct hwt_units *all, gfp_t gfp)
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

/*
 * Return the default number of shards of a wheel: @wanted, the module's parameter "shards", or, if
 * it is 0, the number of last-level caches on a machine with more than 16 CPUs online, else 1.
 */
unsigned int __init hwt_shards_choose(unsigned int wanted)
{
	struct hwt_units all = { };
	u64 *places;

	if (wanted || num_online_cpus() <= HWT_CPUS_PER_SHARD)
		return wanted ?: 1;
	places = hwt_places_create(&all, GFP_KERNEL);
	kfree(places);
	return places ? min_t(unsigned int, all.caches, HWT_SHARDS_MAX) : 1;
}

/* Return an array with the number of each CPU's shard, which the caller frees, or NULL. */
u8 *hwt_shard_map_create(unsigned int nr_shards, gfp_t gfp)
{
	struct hwt_units all = { }, seen = { };
	u64 *places = hwt_places_create(&all, gfp);
	u8 *map = places ? kzalloc(nr_cpu_ids, gfp) : NULL;
	unsigned int i, at, of, n = num_possible_cpus();

	for (i = 0; map && i < n; i++) {
		hwt_units_add(&seen, places[i], i ? &places[i - 1] : NULL);
		at = max(seen.cpus, 1U) - 1;
		of = all.cpus;
		if (nr_shards <= all.caches) {
			at = seen.caches - 1;
			of = all.caches;
		}
		if (nr_shards <= all.nodes) {
			at = seen.nodes - 1;
			of = all.nodes;
		}
		map[lower_32_bits(places[i])] = at * nr_shards / of;
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

/* Return true if a CPU is not isolated: threads may run there even if no client asks for it. */
bool hwt_cpu_housekeeping(unsigned int cpu)
{
	return housekeeping_test_cpu(cpu, HK_TYPE_KTHREAD) &&
	       housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN);
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
	 * @affinity is empty for a single shard without @cpus, and for a shard that has no CPUs or
	 * isolated CPUs only. Then the threads may run anywhere.
	 */
	shard->pinned = !cpumask_empty(shard->affinity);
}
