// SPDX-License-Identifier: GPL-2.0-only
/* Shards: each is one engine of a wheel, with its data */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/numa.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core/bh.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/shard.h"
#include "core/thread.h"
#include "core/wheel.h"

/* Free a shard that has no threads: they were freed, or were never created. */
void hwt_shard_free(struct hwt_shard *shard)
{
	free_percpu(shard->inbox);
	kfree(shard->active);
	free_cpumask_var(shard->affinity);
	kvfree(shard->buckets.bucket);
#ifdef CONFIG_LOCKDEP
	lockdep_unregister_key(&shard->lockdep_key);
#endif
	kfree(shard);
}

static void hwt_shard_init(struct hwt_shard *shard, const struct hwt_wheel_params *params)
{
	hwt_tick_setup(shard, params->tick_ns);
	shard->clock = params->clock;
	shard->flags = params->flags;
	shard->max_pending = params->max_pending;
	shard->nr_workers = params->workers;
	shard->wait = params->wait;
	shard->clock_offset = ktime_to_ns(ktime_mono_to_real(0));
	shard->woken_ns = hwt_clock_stamp(shard);
	shard->woken_tick = HWT_TICK_NEVER;
	ratelimit_state_init(&shard->slow_limit, 600 * HZ, 8);
	/* Without this flag, the kernel would also log how many messages were suppressed. */
	ratelimit_set_flags(&shard->slow_limit, RATELIMIT_MSG_ON_RELEASE);
	hwt_timeout_init(&shard->clock_timeout, NULL, NULL);
	/* The engine counts as asleep until its first pass: a schedule for any tick kicks it. */
	atomic64_set(&shard->wake_tick, HWT_TICK_NEVER);
	spin_lock_init(&shard->lock);
#ifdef CONFIG_LOCKDEP
	lockdep_register_key(&shard->lockdep_key);
	lockdep_init_map(&shard->lockdep_map, shard->wheel->name, &shard->lockdep_key, 0);
#endif
	INIT_LIST_HEAD(&shard->intake);
	INIT_LIST_HEAD(&shard->owed);
	INIT_LIST_HEAD(&shard->idle);
	INIT_LIST_HEAD(&shard->runners);
	list_add(&shard->engine.entry, &shard->runners);
	shard->engine.thread = true;
	init_completion(&shard->exited);
}

/*
 * Create the buckets. Large memory need not be contiguous, but kvmalloc_node() would try hard to
 * get contiguous pages if @gfp has __GFP_RETRY_MAYFAIL. So use __vmalloc() for it, but not if the
 * shard has a node: __vmalloc() cannot choose one.
 */
static int hwt_shard_alloc_buckets(struct hwt_shard *shard, const struct hwt_wheel_params *params,
				   gfp_t gfp)
{
	unsigned int bits = ilog2(params->ticks_per_wheel);
	size_t size = hwt_buckets_size(bits, params->levels);
	void *memory;

	if (shard->node == NUMA_NO_NODE && size > PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)
		memory = __vmalloc(size, gfp);
	else
		memory = kvmalloc_node(size, gfp, shard->node);
	if (!memory)
		return -ENOMEM;
	hwt_buckets_init(&shard->buckets, bits, params->levels,
			 hwt_ns_to_tick(shard, hwt_clock_now(shard)), memory);
	return 0;
}

/*
 * Create the shard @number of a wheel. @map: the shard of each CPU, or NULL if there is one shard
 * only. Return the shard or ERR_PTR.
 */
struct hwt_shard *hwt_shard_create(struct hwt_wheel *wheel, const struct hwt_wheel_params *params,
				   const u8 *map, unsigned int number, gfp_t gfp)
{
	int ret = -ENOMEM, node = map ? hwt_shard_node(map, number) : NUMA_NO_NODE;
	struct hwt_shard *shard;
	unsigned int cpu;

	shard = kzalloc_node(sizeof(*shard), gfp, node);
	if (!shard)
		return ERR_PTR(-ENOMEM);
	shard->wheel = wheel;
	shard->number = number;
	shard->node = node;
	hwt_shard_init(shard, params);
	shard->inbox = alloc_percpu_gfp(struct hwt_inbox, gfp | __GFP_ZERO);
	/* Allocate whole cache lines, so that no other data share a line with these bytes. */
	shard->active = kzalloc_node(round_up(nr_cpu_ids, SMP_CACHE_BYTES), gfp, node);
	if (!shard->inbox || !shard->active || !zalloc_cpumask_var(&shard->affinity, gfp))
		goto err_free;
	for_each_possible_cpu(cpu)
		INIT_LIST_HEAD(&per_cpu_ptr(shard->inbox, cpu)->intake);
	hwt_shard_place(shard, map, params->cpus);
	ret = hwt_shard_alloc_buckets(shard, params, gfp);
	if (ret)
		goto err_free;
	if (hwt_is_bh(shard)) {
		hwt_bh_init(shard);
		return shard;
	}
	ret = hwt_threads_start(shard, gfp);
	if (ret)
		goto err_free;
	return shard;

err_free:
	hwt_shard_free(shard);
	return ERR_PTR(ret);
}

void hwt_shard_add_stats(const struct hwt_shard *shard, struct hwt_wheel_stats *stats)
{
	unsigned long scheduled = 0, cancelled = 0, rearmed = 0, rejected = 0;
	const struct hwt_inbox *one;
	unsigned int cpu;
	long pending;

	for_each_possible_cpu(cpu) {
		one = per_cpu_ptr(shard->inbox, cpu);
		scheduled += READ_ONCE(one->scheduled);
		cancelled += READ_ONCE(one->cancelled);
		rearmed += READ_ONCE(one->rearmed);
		rejected += READ_ONCE(one->rejected);
	}
	/*
	 * The difference is right even if counters have wrapped round. It is negative if timeouts
	 * were scheduled after @scheduled was read, and cancelled or fired before the later reads.
	 */
	pending = scheduled - cancelled - READ_ONCE(shard->retired);
	stats->pending += max(pending, 0L);
	stats->scheduled += scheduled;
	stats->rearmed += rearmed;
	stats->expired += READ_ONCE(shard->expired);
	stats->cancelled += cancelled;
	stats->handed_back += READ_ONCE(shard->handed_back);
	stats->rejected += rejected;
	stats->late += READ_ONCE(shard->late);
	stats->behind += READ_ONCE(shard->behind);
	stats->overruns += READ_ONCE(shard->overruns);
	stats->collected += READ_ONCE(shard->collected);
	stats->wakeups += READ_ONCE(shard->wakeups);
	stats->passes += READ_ONCE(shard->passes);
	stats->clock_sets = max_t(u64, stats->clock_sets, READ_ONCE(shard->clock_sets));
	stats->slowest_ns = max_t(u64, stats->slowest_ns, READ_ONCE(shard->slowest_ns));
}
