// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table from CPUs to shards (core/cpus.c), on simulated machines
 */
#include "shim.h"
#include "core/cpus.h"
#include "core/params.h"
#include "core/shard.h"
#include "core/wheel.h"
#include "tap.h"

#define CPUS_MAX	256

__thread struct shim_cpu shim_cpu;
unsigned int nr_cpu_ids, hwt_shards;
struct shim_place shim_place[SHIM_CPUS];
struct cpumask shim_online, shim_isolated;

static u8 *map;
static unsigned int shards;

/* -- Machines --------------------------------------------------------------- */

/* All CPUs are online. A node and a cache have consecutive CPUs. The last cache is number 0. */
static void machine(unsigned int nodes, unsigned int caches_each, unsigned int cpus_each)
{
	unsigned int cpu, caches = nodes * caches_each;

	nr_cpu_ids = caches * cpus_each;
	memset(&shim_online, 0, sizeof(shim_online));
	for_each_possible_cpu(cpu) {
		cpumask_set_cpu(cpu, &shim_online);
		shim_place[cpu].cache = caches - 1 - cpu / cpus_each;
		shim_place[cpu].node = cpu / cpus_each / caches_each;
	}
}

/* Number the CPUs as many machines do: the second thread of each core comes after all cores. */
static void interleave(void)
{
	struct shim_place old[SHIM_CPUS];
	unsigned int cpu, half = nr_cpu_ids / 2;

	memcpy(old, shim_place, sizeof(old));
	for_each_possible_cpu(cpu)
		shim_place[cpu] = old[cpu < half ? 2 * cpu : 2 * (cpu - half) + 1];
}

static bool same_cache(unsigned int a, unsigned int b)
{
	return shim_place[a].node == shim_place[b].node &&
	       shim_place[a].cache == shim_place[b].cache;
}

/* -- The table --------------------------------------------------------------- */

/* Create the table for a number of shards, and check that each CPU has one of them. */
static void divide(unsigned int nr_shards)
{
	unsigned int cpu;

	shards = nr_shards;
	map = hwt_shard_map_create(nr_shards, GFP_KERNEL);
	CHECK(map);
	for_each_possible_cpu(cpu)
		CHECK(map[cpu] < nr_shards);
}

static void end(void)
{
	kfree(map);
	CHECK(!shim_allocated);
}

/* Return the number of shards that have a CPU. */
static unsigned int used(void)
{
	bool has[HWT_SHARDS_MAX] = { };
	unsigned int cpu, shard, n = 0;

	for_each_possible_cpu(cpu)
		has[map[cpu]] = true;
	for (shard = 0; shard < HWT_SHARDS_MAX; shard++)
		n += has[shard];
	return n;
}

/* Return the number of CPUs of the largest shard, divided by that of the smallest, rounded up. */
static unsigned int unevenness(void)
{
	unsigned int count[HWT_SHARDS_MAX] = { }, cpu, shard, least = CPUS_MAX, most = 0;

	for_each_possible_cpu(cpu)
		count[map[cpu]]++;
	for (shard = 0; shard < shards; shard++) {
		least = min(least, count[shard]);
		most = max(most, count[shard]);
	}
	return least ? DIV_ROUND_UP(most, least) : CPUS_MAX;
}

/* -- Tests ------------------------------------------------------------------- */

static const unsigned int machines[][3] = {
	{ 1, 1, 1 }, { 1, 1, 2 }, { 1, 1, 6 }, { 1, 4, 8 }, { 2, 1, 8 }, { 2, 4, 16 }, { 8, 2, 16 },
};

/* Call a function for each number of shards and machine, with CPUs in order and interleaved. */
static void everywhere(void (*check)(void))
{
	unsigned int i, n;

	for (i = 0; i < 2 * ARRAY_SIZE(machines); i++) {
		machine(machines[i / 2][0], machines[i / 2][1], machines[i / 2][2]);
		if (i % 2 && nr_cpu_ids % 2 == 0)
			interleave();
		for (n = 1; n <= HWT_SHARDS_MAX && tap_passed; n++) {
			divide(n);
			check();
			end();
			if (!tap_passed)
				printf("# with %u CPUs, %u shards\n", nr_cpu_ids, shards);
		}
	}
}

static unsigned int caches(void)
{
	unsigned int cpu, n = 0;

	for_each_possible_cpu(cpu)
		n = max(n, shim_place[cpu].cache + 1U);
	return n;
}

static void check_caches(void)
{
	unsigned int cpu, other;

	if (shards > caches())
		return;
	for_each_possible_cpu(cpu)
		for (other = 0; other < cpu; other++)
			CHECK(!same_cache(cpu, other) || map[cpu] == map[other]);
}

static void caches_stay_together(void)
{
	everywhere(check_caches);
	/* Six CPUs of one cache, and two of another one. */
	machine(1, 2, 4);
	shim_place[4].cache = shim_place[0].cache;
	shim_place[5].cache = shim_place[0].cache;
	divide(2);
	check_caches();
	CHECK(used() == 2);
	end();
}

static void check_used(void)
{
	CHECK(used() == min(shards, nr_cpu_ids));
	CHECK(shards > nr_cpu_ids || unevenness() <= 2);
}

static void each_has_cpus(void)
{
	everywhere(check_used);
}

static void check_near(void)
{
	unsigned int cpu, other;

	if (shards % caches())
		return;
	for_each_possible_cpu(cpu)
		for (other = 0; other < cpu; other++)
			CHECK(map[cpu] != map[other] || same_cache(cpu, other));
}

static void shards_of_a_cache(void)
{
	everywhere(check_near);
}

static void nodes_are_not_mixed(void)
{
	unsigned int i, cpu;

	for (i = 0; i < ARRAY_SIZE(machines); i++) {
		machine(machines[i][0], machines[i][1], machines[i][2]);
		divide(machines[i][0]);
		for_each_possible_cpu(cpu)
			CHECK(map[cpu] == shim_place[cpu].node);
		end();
	}
}

/* CPUs 4 and 6 of node 0, and CPU 12 of node 1, are offline: their cache is not known. */
static void offline_cpus(void)
{
	static const unsigned int offline[] = { 4, 6, 12 };
	unsigned int i, n;

	machine(2, 2, 4);
	for (i = 0; i < ARRAY_SIZE(offline); i++) {
		cpumask_clear_cpu(offline[i], &shim_online);
		shim_place[offline[i]].cache = U16_MAX;
	}
	divide(2);
	for (i = 0; i < nr_cpu_ids; i++)
		CHECK(map[i] == shim_place[i].node);
	CHECK(hwt_shard_node(map, 0) == 0 && hwt_shard_node(map, 1) == 1);
	end();
	divide(4);
	for (i = 0; i < ARRAY_SIZE(offline); i++)
		CHECK(map[offline[i]] / 2 == shim_place[offline[i]].node);
	CHECK(used() == 4);
	end();
	/* More shards than caches. */
	for (n = 5; n <= 16; n++) {
		divide(n);
		CHECK(used() == min(n, 13U));
		end();
	}
}

/* A virtual machine: few of the CPUs that it may have are online. */
static void few_are_online(void)
{
	unsigned int cpu, n;

	machine(1, 1, 64);
	for (cpu = 4; cpu < nr_cpu_ids; cpu++) {
		cpumask_clear_cpu(cpu, &shim_online);
		shim_place[cpu].cache = U16_MAX;
	}
	for (n = 2; n <= 4; n++) {
		divide(n);
		CHECK(map[0] == 0 && map[3] == n - 1);
		end();
	}
}

/* Node 0 has three caches, node 1 has one. */
static void uneven_nodes(void)
{
	unsigned int cpu;

	machine(1, 4, 4);
	for (cpu = 12; cpu < nr_cpu_ids; cpu++)
		shim_place[cpu].node = 1;
	divide(2);
	for_each_possible_cpu(cpu)
		CHECK(map[cpu] == shim_place[cpu].node);
	end();
}

/* A shard without CPUs is on no particular node. */
static void more_shards_than_cpus(void)
{
	unsigned int cpu;

	machine(2, 1, 1);
	divide(8);
	CHECK(used() == 2 && map[0] != map[1]);
	for_each_possible_cpu(cpu)
		CHECK(hwt_shard_node(map, map[cpu]) == (int)cpu);
	CHECK(hwt_shard_node(map, 7) == NUMA_NO_NODE);
	end();
}

static struct hwt_shard parts[3], *of_cpu[CPUS_MAX];
static struct hwt_wheel wheel;

/* Give three shards their CPUs by the table, or @cpus. */
static void place(const struct cpumask *cpus)
{
	unsigned int i;

	memset(parts, 0, sizeof(parts));
	wheel.shard_of_cpu = of_cpu;
	for (i = 0; i < 3; i++) {
		parts[i].number = i;
		parts[i].wheel = &wheel;
		hwt_shard_place(&parts[i], map, cpus);
		CHECK(parts[i].pinned == !cpumask_empty(parts[i].affinity));
	}
	for_each_possible_cpu(i)
		CHECK(of_cpu[i] == &parts[map[i]]);
}

static void places(void)
{
	struct cpumask one = { };
	unsigned int i, cpu;

	machine(1, 1, 2);
	divide(3);
	place(NULL);
	for (i = 0; i < 3; i++)
		for_each_possible_cpu(cpu)
			CHECK(cpumask_test_cpu(cpu, parts[i].affinity) == (map[cpu] == i));
	/* The client's affinity overrides the table, also for a shard without CPUs. */
	cpumask_set_cpu(1, &one);
	place(&one);
	for (i = 0; i < 3; i++)
		CHECK(parts[i].pinned && cpumask_subset(parts[i].affinity, &one));
	end();
}

/* Threads do not run on isolated CPUs, unless the client has chosen these. */
static void isolated_cpus(void)
{
	unsigned int i, cpu;

	machine(1, 3, 2);
	divide(3);
	for (cpu = 3; cpu < 6; cpu++)
		cpumask_set_cpu(cpu, &shim_isolated);
	place(NULL);
	for (i = 0; i < 3; i++)
		for_each_possible_cpu(cpu)
			CHECK(cpumask_test_cpu(cpu, parts[i].affinity) ==
			      (cpu < 3 && map[cpu] == i));
	place(&shim_isolated);
	CHECK(parts[0].pinned && cpumask_test_cpu(4, parts[0].affinity));
	memset(&shim_isolated, 0, sizeof(shim_isolated));
	end();
}

static void number_by_default(void)
{
	unsigned int cpu;

	machine(1, 2, 8);
	CHECK(hwt_shards_choose(hwt_shards) == 1);
	machine(1, 3, 8);
	CHECK(hwt_shards_choose(hwt_shards) == 3);
	/* Offline CPUs count neither as CPUs nor as caches. */
	cpumask_clear_cpu(23, &shim_online);
	CHECK(hwt_shards_choose(hwt_shards) == 3);
	machine(3, 1, 10);
	for (cpu = 0; cpu < 10; cpu++)
		cpumask_clear_cpu(cpu, &shim_online);
	CHECK(hwt_shards_choose(hwt_shards) == 2);
	machine(1, 3, 6);
	cpumask_clear_cpu(0, &shim_online);
	cpumask_clear_cpu(1, &shim_online);
	CHECK(hwt_shards_choose(hwt_shards) == 1);
	hwt_shards = 7;
	CHECK(hwt_shards_choose(hwt_shards) == 7);
	hwt_shards = 0;
	CHECK(!shim_allocated);
}

static void no_memory(void)
{
	unsigned int fail;

	machine(2, 2, 8);
	for (fail = 1; fail <= 2; fail++) {
		shim_fail_at = fail;
		CHECK(!hwt_shard_map_create(2, GFP_KERNEL));
		CHECK(!shim_fail_at && !shim_allocated);
	}
	shim_fail_at = 1;
	CHECK(hwt_shards_choose(hwt_shards) == 1);
	CHECK(!shim_fail_at && !shim_allocated);
}

static const struct tap_test tests[] = {
	{ "shards: CPUs of one cache stay together", .once = caches_stay_together },
	{ "shards: each has CPUs, at most twice as many as another one", .once = each_has_cpus },
	{ "shards: several shards for each cache: none spans caches", .once = shards_of_a_cache },
	{ "shards: as many shards as nodes: none spans nodes", .once = nodes_are_not_mixed },
	{ "shards: offline CPUs join their node", .once = offline_cpus },
	{ "shards: few CPUs are online", .once = few_are_online },
	{ "shards: unequal numbers of caches: no shard spans nodes", .once = uneven_nodes },
	{ "shards: more shards than CPUs", .once = more_shards_than_cpus },
	{ "shards: shards take their CPUs from the table", .once = places },
	{ "shards: no thread is pinned to an isolated CPU", .once = isolated_cpus },
	{ "shards: the default number", .once = number_by_default },
	{ "shards: -ENOMEM, nothing leaked", .once = no_memory },
	{}
};

int main(void)
{
	return tap_run(tests, 0);
}
