// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPUs of shards
 *
 * A shard serves CPUs that are near to each other: they share a last-level cache, or a NUMA node if
 * there are fewer shards than caches.
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
#include "core/params.h"
#include "core/wheel.h"

/* On a machine with more CPUs than this, a wheel has by default a shard per last-level cache. */
#define HWT_CPUS_PER_SHARD	16

/* Stands for the cache of an offline CPU, which is not known. */
#define HWT_OFFLINE		U16_MAX

/* The numbers of nodes, caches and CPUs of a machine. A cache counts if it has a CPU online. */
struct hwt_units {
	unsigned int	nodes;
	unsigned int	caches;
	unsigned int	cpus;		/* online */
};

/* Return the place of a CPU, for sorting: its node, its cache and its number, in this order. */
static u64 hwt_cpu_place(unsigned int cpu)
{
	/* An offline CPU, whose cache is not known, belongs to the last cache of its node. */
	u16 cache = cpu_online(cpu) ? hwt_cpu_cache(cpu) & (HWT_OFFLINE >> 1) : HWT_OFFLINE;
	u16 node = cpu_to_node(cpu);

	return (u64)node << 48 | (u64)cache << 32 | cpu;
}

/* Count the CPU at @place. To be called in the order of places; @before: the previous, or NULL. */
static void hwt_units_add(struct hwt_units *units, u64 place, const u64 *before)
{
	/* Use the state stored in the place, since the CPU may have come or gone meanwhile. */
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

/* Return the sorted places of all CPUs, which the caller frees, or NULL. Count them in @all. */
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

/* The number of shards of a wheel by default: the same for all wheels. Constant after the init. */
unsigned int hwt_shards_default;

/*
 * Return the module's parameter; if that is 0, a shard for each last-level cache of a machine with
 * more than 16 CPUs online, else 1.
 */
unsigned int __init hwt_shards_choose(void)
{
	struct hwt_units all = { };
	u64 *places;

	if (hwt_shards || num_online_cpus() <= HWT_CPUS_PER_SHARD)
		return hwt_shards ?: 1;
	places = hwt_places_create(&all, GFP_KERNEL);
	kfree(places);
	return places ? min_t(unsigned int, all.caches, HWT_SHARDS_MAX) : 1;
}

/*
 * Return the number of each CPU's shard, in memory that the caller frees; or NULL. CPUs of a node
 * are not divided unless there are more shards than nodes, nor those of a cache unless there are
 * more shards than caches.
 */
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

/* Return the node of the first online CPU of a shard; NUMA_NO_NODE if the shard has none online. */
int hwt_shard_node(const u8 *map, unsigned int shard)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (map[cpu] == shard)
			return cpu_to_node(cpu);
	return NUMA_NO_NODE;
}

/* May kernel threads run on a CPU for which the client did not ask? */
bool hwt_cpu_housekeeping(unsigned int cpu)
{
	return housekeeping_test_cpu(cpu, HK_TYPE_KTHREAD) &&
	       housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN);
}

/*
 * Give a shard its CPUs, before its threads are created. @map: NULL if there is one shard only. The
 * shard serves timeouts of isolated CPUs, but its threads do not run there unless @cpus says so.
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
	/* A shard may have isolated CPUs only, or none if there are more shards than CPUs. */
	shard->pinned = !cpumask_empty(shard->affinity);
}
