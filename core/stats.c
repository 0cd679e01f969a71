// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queries of a wheel: its clock, state, parameters and statistics
 */
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/percpu.h>

#include "core/clock.h"
#include "core/shard.h"

/**
 * hwt_wheel_now() - read the wheel's clock
 * @wheel: the wheel
 *
 * Any context. For absolute deadlines, add to the result.
 *
 * Return: ns.
 */
u64 hwt_wheel_now(const struct hwt_wheel *wheel)
{
	return hwt_clock_now(wheel);
}
EXPORT_SYMBOL_GPL(hwt_wheel_now);

/**
 * hwt_wheel_get_params() - get the parameters of a wheel, after rounding
 * @wheel:  the wheel
 * @params: filled in; the name and the CPUs stay valid as long as the wheel
 *
 * Any context.
 */
void hwt_wheel_get_params(const struct hwt_wheel *wheel,
			  struct hwt_wheel_params *params)
{
	*params = (struct hwt_wheel_params) {
		.name = wheel->name,
		.tick_ns = wheel->tick_ns,
		.ticks_per_wheel = hwt_revolution(wheel),
		.levels = wheel->buckets.levels,
		.clock = wheel->clock,
		.flags = wheel->flags,
		.max_pending = wheel->max_pending,
		.workers = wheel->workers,
		.cpus = wheel->own_cpus ? wheel->affinity : NULL,
		.shards = wheel->nr_shards,
		.priority = wheel->priority,
		.wait = wheel->wait,
		.clock_set = wheel->clock_set,
		.clock_set_arg = wheel->clock_set_arg,
	};
}
EXPORT_SYMBOL_GPL(hwt_wheel_get_params);

/* Add the statistics of a shard to @stats. */
void hwt_shard_add_stats(const struct hwt_wheel *shard, struct hwt_wheel_stats *stats)
{
	u64 slowest_ns = READ_ONCE(shard->slow->ns);
	const struct hwt_submit *one;
	struct hwt_submit sum = { };
	unsigned int cpu;
	long pending;

	for_each_possible_cpu(cpu) {
		one = per_cpu_ptr(shard->submit, cpu);
		sum.scheduled += READ_ONCE(one->scheduled);
		sum.rearmed += READ_ONCE(one->rearmed);
		sum.cancelled += READ_ONCE(one->cancelled);
		sum.rejected += READ_ONCE(one->rejected);
	}
	/* The counters may wrap round; their difference is correct all the same. It is negative if
	 * timeouts were scheduled after the first read, and cancelled or fired before the last.
	 */
	pending = sum.scheduled - sum.cancelled - READ_ONCE(shard->retired);
	stats->pending += max(pending, 0L);
	stats->scheduled += sum.scheduled;
	stats->rearmed += sum.rearmed;
	stats->expired += READ_ONCE(shard->expired);
	stats->cancelled += sum.cancelled;
	stats->handed_back += READ_ONCE(shard->handed_back);
	stats->rejected += sum.rejected;
	stats->late += READ_ONCE(shard->late);
	stats->behind += READ_ONCE(shard->behind);
	stats->overruns += READ_ONCE(shard->overruns);
	stats->collected += READ_ONCE(shard->collected);
	stats->wakeups += READ_ONCE(shard->wakeups);
	stats->passes += READ_ONCE(shard->passes);
	stats->clock_sets = max_t(u64, stats->clock_sets, READ_ONCE(shard->clock_sets));
	if (slowest_ns > stats->slowest_ns) {
		stats->slowest_ns = slowest_ns;
		stats->slowest = READ_ONCE(shard->slow->fn);
	}
}

/**
 * hwt_wheel_get_stats() - get the statistics of a wheel
 * @wheel: the wheel
 * @stats: filled in
 *
 * Any context. Counters have the machine's word length, and wrap round at it. @slowest_ns and
 * @slowest are read one after the other. If a slower call ends meanwhile, they may belong to
 * different functions; on 32 bits, @slowest_ns may mix the halves of two values.
 */
void hwt_wheel_get_stats(struct hwt_wheel *wheel, struct hwt_wheel_stats *stats)
{
	const struct hwt_wheel *shard;

	*stats = (struct hwt_wheel_stats) { };
	for (shard = wheel; shard; shard = shard->next_shard)
		hwt_shard_add_stats(shard, stats);
}
EXPORT_SYMBOL_GPL(hwt_wheel_get_stats);

/**
 * hwt_wheel_pending() - count the timeouts that are pending
 * @wheel: the wheel
 *
 * Any context. Adds the counters of all CPUs and shards.
 *
 * Return: their number; exact while no timeout is scheduled or cancelled, or fires.
 */
u64 hwt_wheel_pending(const struct hwt_wheel *wheel)
{
	struct hwt_wheel_stats stats = { };
	const struct hwt_wheel *shard;

	for (shard = wheel; shard; shard = shard->next_shard)
		hwt_shard_add_stats(shard, &stats);
	return stats.pending;
}
EXPORT_SYMBOL_GPL(hwt_wheel_pending);
