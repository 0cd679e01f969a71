// SPDX-License-Identifier: GPL-2.0-only
/* The parameters of a wheel: defaults, ranges, copies */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/printk.h>
#include <linux/time64.h>

#include "core/params.h"

unsigned int hwt_shards_default;

/* Return true if a parameter is out of range. Rate-limit the log: programs can cause this error. */
static bool hwt_param_outside(const struct hwt_wheel_params *params, const char *what, u64 value,
			      u64 min, u64 max)
{
	if (value >= min && value <= max)
		return false;
	pr_err_ratelimited("%s: %s=%llu is out of range: %llu to %llu\n", params->name, what,
			   value, min, max);
	return true;
}

/* Copy the client's parameters, which may be NULL, fill in the defaults, and check the result. */
int hwt_params_get(struct hwt_wheel_params *params, const struct hwt_wheel_params *from)
{
	u64 min_tick_ns = hwt_min_tick_us * (u64)NSEC_PER_USEC;

	*params = from ? *from : (struct hwt_wheel_params) { };
	params->name = params->name ?: "hwt";
	params->tick_ns = params->tick_ns ?: hwt_tick_us * (u64)NSEC_PER_USEC;
	params->ticks_per_wheel = params->ticks_per_wheel ?: hwt_ticks_per_wheel;
	params->levels = params->levels ?: hwt_levels;
	/* If the client chooses CPUs, it gets several shards only if it asks for them. */
	params->shards = params->shards ?: params->cpus ? 1 : hwt_shards_default;

	if (hwt_param_outside(params, "ticks_per_wheel", params->ticks_per_wheel, 2,
			      HWT_TICKS_MAX) ||
	    hwt_param_outside(params, "levels", params->levels, 1, HWT_LEVELS_MAX) ||
	    hwt_param_outside(params, "clock", params->clock, 0, HWT_CLOCK_REALTIME) ||
	    hwt_param_outside(params, "max_pending", params->max_pending, 0, S64_MAX) ||
	    hwt_param_outside(params, "workers", params->workers, 0, HWT_WORKERS_MAX) ||
	    hwt_param_outside(params, "shards", params->shards, 1, HWT_SHARDS_MAX) ||
	    hwt_param_outside(params, "priority", params->priority, 0, HWT_PRIO_FIFO) ||
	    hwt_param_outside(params, "wait", params->wait, 0, HWT_WAIT_BUSY))
		return -EINVAL;
	if (params->cpus && !cpumask_intersects(params->cpus, cpu_online_mask)) {
		pr_err_ratelimited("%s: cpus=%*pbl are not online\n", params->name,
				   cpumask_pr_args(params->cpus));
		return -EINVAL;
	}
	if (params->wait == HWT_WAIT_BUSY && (!params->cpus || params->shards > 1 ||
					      params->priority != HWT_PRIO_NORMAL)) {
		pr_err_ratelimited("%s: busy waiting requires cpus, one shard and normal priority\n",
				   params->name);
		return -EINVAL;
	}
	if (params->flags & ~(HWT_COARSE_CLOCK | HWT_FREEZABLE | HWT_BH)) {
		pr_err_ratelimited("%s: flags=%#x are unknown\n", params->name, params->flags);
		return -EINVAL;
	}
	if ((params->flags & HWT_BH) &&
	    (params->workers || params->cpus || params->priority || params->wait ||
	     params->clock_set || (params->flags & HWT_FREEZABLE))) {
		pr_err_ratelimited("%s: a BH wheel takes no workers, cpus, priority, wait, clock_set, HWT_FREEZABLE\n",
				   params->name);
		return -EINVAL;
	}
	if (params->clock_set && params->clock != HWT_CLOCK_REALTIME) {
		pr_err_ratelimited("%s: clock_set is for HWT_CLOCK_REALTIME only\n",
				   params->name);
		return -EINVAL;
	}
	params->ticks_per_wheel = roundup_pow_of_two(params->ticks_per_wheel);
	if (params->tick_ns > div_u64(S64_MAX, params->ticks_per_wheel)) {
		pr_err_ratelimited("%s: tick of %llu ns times %u buckets overflows\n",
				   params->name, params->tick_ns, params->ticks_per_wheel);
		return -EINVAL;
	}
	if (params->tick_ns < min_tick_ns) {
		pr_warn_once("%s: tick of %llu ns raised to min_tick_us, %u us\n",
			     params->name, params->tick_ns, hwt_min_tick_us);
		params->tick_ns = min_tick_ns;
	}
	return 0;
}
