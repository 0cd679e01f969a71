// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queries of a wheel: its clock, state, parameters and statistics
 */
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/percpu.h>

#include "core/clock.h"
#include "core/wheel.h"

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
		.cpus = wheel->pinned ? wheel->affinity : NULL,
		.priority = wheel->priority,
		.wait = wheel->wait,
		.clock_set = wheel->clock_set,
		.clock_set_arg = wheel->clock_set_arg,
	};
}
EXPORT_SYMBOL_GPL(hwt_wheel_get_params);

/* Return the sums of the counters of all CPUs. */
static struct hwt_submit hwt_wheel_sum(const struct hwt_wheel *wheel)
{
	struct hwt_submit sum = { };
	const struct hwt_submit *one;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		one = per_cpu_ptr(wheel->submit, cpu);
		sum.scheduled += READ_ONCE(one->scheduled);
		sum.rearmed += READ_ONCE(one->rearmed);
		sum.cancelled += READ_ONCE(one->cancelled);
		sum.rejected += READ_ONCE(one->rejected);
	}
	return sum;
}

static u64 hwt_wheel_count(const struct hwt_wheel *wheel, const struct hwt_submit *sum)
{
	/* The counters wrap round, their difference does not. It is negative if the end of a
	 * concurrent schedule is read, and its beginning was not.
	 */
	long pending = sum->scheduled - sum->cancelled - READ_ONCE(wheel->retired);

	return max(pending, 0L);
}

/**
 * hwt_wheel_pending() - count the timeouts that are pending
 * @wheel: the wheel
 *
 * Any context. Adds the counters of all CPUs.
 *
 * Return: their number; exact while no timeout is scheduled or cancelled, or fires.
 */
u64 hwt_wheel_pending(const struct hwt_wheel *wheel)
{
	struct hwt_submit sum = hwt_wheel_sum(wheel);

	return hwt_wheel_count(wheel, &sum);
}
EXPORT_SYMBOL_GPL(hwt_wheel_pending);

/**
 * hwt_wheel_get_stats() - get the statistics of a wheel
 * @wheel: the wheel
 * @stats: filled in
 *
 * Any context. Counters have the machine's word length, and wrap round at it. @slowest_ns and
 * @slowest are read one after the other. If a slower call ends meanwhile, they may belong to two
 * functions; on 32 bits, @slowest_ns may mix the halves of two values.
 */
void hwt_wheel_get_stats(struct hwt_wheel *wheel, struct hwt_wheel_stats *stats)
{
	struct hwt_submit sum = hwt_wheel_sum(wheel);

	*stats = (struct hwt_wheel_stats) {
		.pending = hwt_wheel_count(wheel, &sum),
		.scheduled = sum.scheduled,
		.rearmed = sum.rearmed,
		.expired = READ_ONCE(wheel->expired),
		.cancelled = sum.cancelled,
		.handed_back = READ_ONCE(wheel->handed_back),
		.rejected = sum.rejected,
		.late = READ_ONCE(wheel->late),
		.behind = READ_ONCE(wheel->behind),
		.overruns = READ_ONCE(wheel->overruns),
		.collected = READ_ONCE(wheel->collected),
		.wakeups = READ_ONCE(wheel->wakeups),
		.passes = READ_ONCE(wheel->passes),
		.clock_sets = READ_ONCE(wheel->clock_sets),
		.slowest_ns = READ_ONCE(wheel->slow->ns),
		.slowest = READ_ONCE(wheel->slow->fn),
	};
}
EXPORT_SYMBOL_GPL(hwt_wheel_get_stats);
