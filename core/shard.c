// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shards: a wheel as several engines
 *
 * Each shard is a struct hwt_wheel with buckets, a lock and threads of its own. The first one is
 * the wheel that clients know. A timeout belongs to one shard from its initialisation on, so
 * functions that get a timeout know of this shard only. Functions that get a wheel go through its
 * shards.
 *
 * A shard serves CPUs that are near to each other: they share a last-level cache, or a NUMA node if
 * there are fewer shards than caches.
 */
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/topology.h>

#include "hwt_compat.h"
#include "core/client.h"
#include "core/registry.h"
#include "core/shard.h"

/* A machine with more CPUs than this has a shard for each last-level cache. */
#define HWT_CPUS_PER_SHARD	16

/* A CPU and its place: node, cache, number, in this order. */
static u64 hwt_cpu_place(unsigned int cpu)
{
	/* The cache of an offline CPU is not known. Such a CPU comes last in its node. */
	u16 cache = cpu_online(cpu) ? hwt_cpu_cache(cpu) : U16_MAX, node = cpu_to_node(cpu);

	return (u64)node << 48 | (u64)cache << 32 | cpu;
}

/* Do a CPU and the one before it, in the order of their places, belong to different caches? */
static bool hwt_cache_begins(const u64 *place)
{
	return cpu_online(lower_32_bits(*place)) &&
	       upper_32_bits(place[0]) != upper_32_bits(place[-1]);
}

static int hwt_place_compare(const void *a, const void *b)
{
	u64 left = *(const u64 *)a, right = *(const u64 *)b;

	return left < right ? -1 : left > right;
}

/* Return the places of all CPUs in their order, which the caller frees; or NULL. */
static u64 *hwt_places_create(unsigned int *caches, gfp_t gfp)
{
	u64 *places = kmalloc_array(num_possible_cpus(), sizeof(*places), gfp);
	unsigned int cpu, n = 0, i;

	if (!places)
		return NULL;
	for_each_possible_cpu(cpu)
		places[n++] = hwt_cpu_place(cpu);
	sort(places, n, sizeof(*places), hwt_place_compare, NULL);
	*caches = 1;
	for (i = 1; i < n; i++)
		*caches += hwt_cache_begins(&places[i]);
	return places;
}

/**
 * hwt_shards_default() - choose the number of shards by the machine
 *
 * Return: the module's parameter; if that is 0, a shard for each last-level cache of a machine with
 * more than 16 CPUs online, else 1.
 */
unsigned int hwt_shards_default(void)
{
	unsigned int caches;
	u64 *places;

	if (hwt_shards || num_online_cpus() <= HWT_CPUS_PER_SHARD)
		return hwt_shards ?: 1;
	places = hwt_places_create(&caches, GFP_KERNEL);
	kfree(places);
	return places ? min_t(unsigned int, caches, HWT_SHARDS_MAX) : 1;
}

/**
 * hwt_shard_map_create() - assign each CPU to a shard
 * @nr_shards: number of shards
 * @gfp:       for the allocation
 *
 * CPUs that share a cache are not divided, unless there are more shards than caches.
 *
 * Return: the number of the shard of each CPU, which the caller frees; or NULL.
 */
u8 *hwt_shard_map_create(unsigned int nr_shards, gfp_t gfp)
{
	unsigned int caches, cache = 0, i, n = num_possible_cpus();
	u64 *places = hwt_places_create(&caches, gfp);
	u8 *map = kzalloc(nr_cpu_ids, gfp);

	for (i = 0; places && map && i < n; i++) {
		cache += i && hwt_cache_begins(&places[i]);
		map[lower_32_bits(places[i])] = nr_shards > caches ? i * nr_shards / n :
						cache * nr_shards / caches;
	}
	if (!places) {
		kfree(map);
		map = NULL;
	}
	kfree(places);
	return map;
}

/* Return an online CPU of a shard; of none, any. */
unsigned int hwt_shard_cpu(const u8 *map, unsigned int shard)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (map[cpu] == shard)
			return cpu;
	return raw_smp_processor_id();
}

/**
 * hwt_shard_place() - give a shard its CPUs
 * @shard: the shard, whose threads are not there yet
 * @map:   from hwt_shard_map_create(); NULL: there is one shard
 * @cpus:  the client's choice of CPUs for all threads, or NULL
 */
void hwt_shard_place(struct hwt_wheel *shard, const u8 *map, const struct cpumask *cpus)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (!map || map[cpu] != shard->shard)
			continue;
		shard->first_shard->shard_of_cpu[cpu] = shard;
		cpumask_set_cpu(cpu, shard->affinity);
	}
	if (cpus)
		cpumask_copy(shard->affinity, cpus);
	shard->own_cpus = cpus;
	/* With more shards than CPUs, a shard may have none. */
	shard->pinned = !cpumask_empty(shard->affinity);
}

/* Return the shard of a wheel for the present CPU, to be used as a wheel by itself. */
struct hwt_wheel *hwt_wheel_shard(struct hwt_wheel *wheel)
{
	return hwt_shard_here(wheel);
}
EXPORT_SYMBOL_GPL(hwt_wheel_shard);

/* Return the wheel of a shard, as clients know it. */
struct hwt_wheel *hwt_shard_wheel(struct hwt_wheel *shard)
{
	return shard->first_shard;
}
EXPORT_SYMBOL_GPL(hwt_shard_wheel);
