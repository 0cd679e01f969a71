// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: HWT_IOC_SETUP, which gives a context a private wheel, keys, or both
 */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/rhashtable.h>
#include <linux/xarray.h>

#include "hwt.h"
#include "core/client.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/setup.h"
#include "device/user.h"

/**
 * struct hwt_setup - what HWT_IOC_SETUP gives a context
 * @wheel:     the private wheel; NULL if the context keeps its shared wheel
 * @clock:     the clock of @wheel, as a clockid_t
 * @clock_set: the entry of HWT_EVENT_CLOCK_SET; NULL if the program does not ask for this event
 * @keyed:     true if ids are the program's keys
 */
struct hwt_setup {
	struct hwt_wheel	*wheel;
	int			clock;
	struct hwt_entry	*clock_set;
	bool			keyed;
};

/* Apply @setup. Return false if the context has had timeouts or rings, or was set up before. */
static bool hwt_setup_apply(struct hwt_context *ctx, const struct hwt_setup *setup)
{
	struct hwt_wheel_params params;
	bool set;

	xa_lock(&ctx->entries);
	/*
	 * Look at stats.timeouts, too: an insertion that has dropped this lock to allocate memory
	 * has counted its timeout there, but has not set ctx->fixed yet.
	 */
	set = !ctx->fixed && !ctx->stats.timeouts;
	if (set) {
		if (setup->wheel) {
			hwt_wheel_get_params(setup->wheel, &params);
			ctx->wheel = setup->wheel;
			ctx->shard = hwt_wheel_shard(setup->wheel);
			WRITE_ONCE(ctx->clock, setup->clock);
			ctx->tick_ns = params.tick_ns;
			ctx->clock_set = setup->clock_set;
			WRITE_ONCE(ctx->private, true);
		}
		WRITE_ONCE(ctx->keyed, setup->keyed);
		WRITE_ONCE(ctx->fixed, true);
	}
	xa_unlock(&ctx->entries);
	return set;
}

/* Choose the wheel's clock by the flags of @args. Return its clockid_t, or -EINVAL. */
static int hwt_setup_clock(const struct hwt_setup_args *args, struct hwt_wheel_params *params)
{
	bool boottime = args->flags & HWT_SETUP_BOOTTIME;
	bool realtime = args->flags & HWT_SETUP_REALTIME;

	if ((boottime && realtime) || (args->flags & HWT_SETUP_TELL_CLOCK_SET && !realtime))
		return -EINVAL;
	params->clock = realtime ? HWT_CLOCK_REALTIME :
			boottime ? HWT_CLOCK_BOOTTIME : HWT_CLOCK_MONOTONIC;
	if (args->flags & HWT_SETUP_TELL_CLOCK_SET)
		params->clock_set = hwt_event_clock_set;
	return realtime ? CLOCK_REALTIME : boottime ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

/*
 * Choose the CPU, the priority and the way of waiting of the wheel's thread. Any choice but the
 * default needs CAP_SYS_NICE, because such a thread can keep other tasks from running.
 */
static int hwt_setup_thread(const struct hwt_setup_args *args, struct hwt_wheel_params *params)
{
	bool pinned = args->flags & HWT_SETUP_CPU;
	bool busy = args->flags & HWT_SETUP_BUSY_WAIT;

	if (args->priority > HWT_PRIO_FIFO || (args->cpu && !pinned) ||
	    (busy && (!pinned || args->priority)))
		return -EINVAL;
	if (!pinned && !args->priority)
		return 0;
	if (!capable(CAP_SYS_NICE))
		return -EPERM;
	params->priority = args->priority;
	if (pinned) {
		if (args->cpu >= nr_cpu_ids || !cpu_online(args->cpu))
			return -EINVAL;
		params->cpus = cpumask_of(array_index_nospec(args->cpu, nr_cpu_ids));
	}
	if (busy)
		params->wait = HWT_WAIT_BUSY;
	return 0;
}

/* Create a private wheel and, if @params->clock_set is set, the entry of HWT_EVENT_CLOCK_SET. */
static int hwt_setup_wheel(struct hwt_context *ctx, const struct hwt_setup_args *args,
			   struct hwt_wheel_params *params, struct hwt_setup *setup)
{
	/*
	 * The entry of HWT_EVENT_CLOCK_SET is periodic, because only a periodic entry has overruns:
	 * they count how often the clock was set again before the event was read.
	 */
	static const struct hwt_op op = { .mode = HWT_MODE_FIXED_DELAY };
	struct hwt_wheel *wheel;

	if (params->clock_set) {
		setup->clock_set = hwt_entry_alloc(ctx, NULL, &op);
		if (!setup->clock_set)
			return -ENOMEM;
		params->clock_set_arg = setup->clock_set;
	}
	wheel = hwt_user_create_wheel(ctx->user, ctx->unlimited, params);
	if (!IS_ERR(wheel)) {
		setup->wheel = wheel;
		return 0;
	}
	hwt_event_free_clock_set(setup->clock_set);
	if (wheel == ERR_PTR(-ENOSPC)) {
		xa_lock(&ctx->entries);
		hwt_context_limited(ctx, HWT_LIMIT_USER_WHEELS);
		xa_unlock(&ctx->entries);
	}
	return PTR_ERR(wheel);
}

static bool hwt_setup_private(const struct hwt_setup_args *args)
{
	return args->flags & ~HWT_SETUP_KEYS || args->tick_ns || args->ticks_per_wheel ||
	       args->levels || args->max_pending || args->priority;
}

int hwt_setup(struct hwt_context *ctx, const struct hwt_setup_args *args)
{
	struct hwt_wheel_params params = {
		.name		 = "hwt_private",
		.tick_ns	 = args->tick_ns,
		.ticks_per_wheel = args->ticks_per_wheel,
		.levels		 = args->levels,
		.max_pending	 = args->max_pending,
		/* One shard is enough: all timeouts of a context are on the same shard. */
		.shards		 = 1,
	};
	struct hwt_setup setup = { .keyed = args->flags & HWT_SETUP_KEYS };
	int ret;

	if (args->flags & ~(HWT_SETUP_BOOTTIME | HWT_SETUP_REALTIME | HWT_SETUP_TELL_CLOCK_SET |
			    HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU | HWT_SETUP_PRIVATE |
			    HWT_SETUP_KEYS))
		return -EINVAL;
	setup.clock = hwt_setup_clock(args, &params);
	if (setup.clock < 0)
		return setup.clock;
	ret = hwt_setup_thread(args, &params);
	if (ret)
		return ret;
	if (mutex_lock_killable(&ctx->setup_lock))
		return -EINTR;
	ret = -EBUSY;
	if (READ_ONCE(ctx->fixed))
		goto out;
	ret = setup.keyed ? hwt_keys_init(ctx) : 0;
	if (ret)
		goto out;
	ret = hwt_setup_private(args) ? hwt_setup_wheel(ctx, args, &params, &setup) : 0;
	if (ret)
		goto err_keys;
	if (hwt_setup_apply(ctx, &setup)) {
		if (setup.wheel) {
			hwt_home_put(ctx->user, ctx->home);
			ctx->home = NULL;
		}
		goto out;
	}
	ret = -EBUSY;
	if (setup.wheel)
		hwt_user_destroy_wheel(ctx->user, ctx->unlimited, setup.wheel);
	hwt_event_free_clock_set(setup.clock_set);
err_keys:
	if (setup.keyed)
		rhashtable_destroy(&ctx->keys);
out:
	mutex_unlock(&ctx->setup_lock);
	return ret;
}
