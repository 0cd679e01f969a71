// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: HWT_IOC_SETUP, which sets the clock, tick and buckets of a context. It also sets
 * whether the program chooses the ids (keys), and whether a kernel thread fires the timeouts.
 */
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "hwt.h"
#include "core/buckets.h"
#include "core/params.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/pass.h"
#include "device/setup.h"
#include "device/thread.h"

/* Default buckets of a context without a wheel: 7.7 KB. A round takes 2^30 ticks. */
#define HWT_PASS_BUCKETS	64
#define HWT_PASS_LEVELS		5

static bool hwt_thread_contexts;
module_param_named(thread_contexts, hwt_thread_contexts, bool, 0444);
MODULE_PARM_DESC(thread_contexts, "For tests: every context has a kernel thread, as with HWT_SETUP_THREAD (default N)");

/**
 * struct hwt_setup - what a context gets
 * @params:    the tick and the buckets
 * @clock:     the clock, as a clockid_t
 * @wheel:     a wheel with a thread; NULL if the context drives its timeouts itself
 * @buckets:   without a wheel, the buckets
 * @memory:    their memory
 * @clock_set: the entry of HWT_EVENT_CLOCK_SET; NULL if the program does not ask for this event
 * @keyed:     true if ids are the program's keys
 */
struct hwt_setup {
	struct hwt_wheel_params	params;
	int			clock;
	struct hwt_wheel	*wheel;
	struct hwt_buckets	buckets;
	void			*memory;
	struct hwt_entry	*clock_set;
	bool			keyed;
};

/*
 * Apply @setup. Return false if the context has had timeouts or rings, or was set up before. If the
 * result is true, @setup then has the previous wheel and memory, which the caller frees.
 */
static bool hwt_setup_apply(struct hwt_context *ctx, struct hwt_setup *setup)
{
	struct hwt_wheel *wheel = setup->wheel;
	bool set;

	xa_lock(&ctx->entries);
	/*
	 * Check stats.timeouts, too: an insertion counts its timeout in stats.timeouts, then may
	 * drop this lock to allocate memory, and sets ctx->fixed only afterwards.
	 */
	set = !ctx->fixed && !ctx->stats.timeouts;
	if (set) {
		setup->wheel = ctx->wheel;
		WRITE_ONCE(ctx->wheel, wheel);
		swap(ctx->pass.memory, setup->memory);
		swap(ctx->clock_set, setup->clock_set);
		WRITE_ONCE(ctx->clock, setup->clock);
		ctx->tick_ns = setup->params.tick_ns;
		ctx->max_pending = setup->params.max_pending;
		WRITE_ONCE(ctx->keyed, setup->keyed);
		hwt_pass_init(ctx, &setup->buckets);
		WRITE_ONCE(ctx->fixed, true);
	}
	xa_unlock(&ctx->entries);
	return set;
}

/* Set params->clock by the flags of @args. Return the clock as a clockid_t, or -EINVAL. */
static int hwt_setup_clock(const struct hwt_setup_args *args, struct hwt_wheel_params *params)
{
	bool boottime = args->flags & HWT_SETUP_BOOTTIME;
	bool realtime = args->flags & HWT_SETUP_REALTIME;

	if ((boottime && realtime) || (args->flags & HWT_SETUP_TELL_CLOCK_SET && !realtime))
		return -EINVAL;
	params->clock = realtime ? HWT_CLOCK_REALTIME :
			boottime ? HWT_CLOCK_BOOTTIME : HWT_CLOCK_MONOTONIC;
	return realtime ? CLOCK_REALTIME : boottime ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

/* Create the wheel, or allocate the buckets. */
static int hwt_setup_create(struct hwt_setup *setup, bool thread)
{
	struct hwt_wheel_params *params = &setup->params;
	struct hwt_wheel *wheel;
	unsigned int bits;
	int ret;

	if (thread) {
		wheel = hwt_wheel_create(params);
		/* Programs would take EAGAIN, "no further thread", for "would block". */
		if (IS_ERR(wheel))
			return wheel == ERR_PTR(-EAGAIN) ? -ENOMEM : PTR_ERR(wheel);
		setup->wheel = wheel;
		hwt_wheel_get_params(wheel, params);
		return 0;
	}
	params->ticks_per_wheel = params->ticks_per_wheel ?: HWT_PASS_BUCKETS;
	params->levels = params->levels ?: HWT_PASS_LEVELS;
	ret = hwt_params_get(params, params);
	if (ret)
		return ret;
	bits = ilog2(params->ticks_per_wheel);
	setup->memory = kvmalloc(hwt_buckets_size(bits, params->levels), HWT_GFP_USER);
	if (!setup->memory)
		return -ENOMEM;
	hwt_buckets_init(&setup->buckets, bits, params->levels, 0, setup->memory);
	return 0;
}

static int hwt_setup_clock_set(struct hwt_context *ctx, struct hwt_setup *setup)
{
	/*
	 * The entry of HWT_EVENT_CLOCK_SET is periodic, so that it has overruns: they count how
	 * often the clock was set again before the event was read.
	 */
	static const struct hwt_op op = { .mode = HWT_MODE_FIXED_DELAY };
	struct hwt_entry *entry = hwt_entry_alloc(ctx, NULL, &op);

	if (IS_ERR(entry))
		return PTR_ERR(entry);
	setup->clock_set = entry;
	setup->params.clock_set = hwt_event_wheel_clock_set;
	setup->params.clock_set_arg = ctx;
	return 0;
}

static int hwt_setup_context(struct hwt_context *ctx, struct hwt_setup *setup, u32 flags)
	__must_hold(&ctx->setup_lock)
{
	int ret = 0;

	if (READ_ONCE(ctx->fixed))
		return -EBUSY;
	if (flags & HWT_SETUP_TELL_CLOCK_SET)
		ret = hwt_setup_clock_set(ctx, setup);
	if (!ret)
		ret = hwt_setup_create(setup, flags & HWT_SETUP_THREAD);
	if (!ret && setup->keyed)
		ret = hwt_keys_init(ctx);
	if (!ret && !hwt_setup_apply(ctx, setup)) {
		ret = -EBUSY;
		if (setup->keyed)
			rhashtable_destroy(&ctx->keys);
	}
	/* Free the new objects if they were not applied; otherwise the previous ones. */
	if (setup->wheel)
		hwt_wheel_destroy(setup->wheel);
	kvfree(setup->memory);
	if (setup->clock_set)
		hwt_entry_free(setup->clock_set);
	return ret;
}

int hwt_ioctl_setup(struct hwt_context *ctx, void *arg)
{
	const struct hwt_setup_args *args = arg;
	struct hwt_setup setup = {
		.params = {
			.name		 = "hwt_device",
			.tick_ns	 = args->tick_ns,
			.ticks_per_wheel = args->ticks_per_wheel,
			.levels		 = args->levels,
			.max_pending	 = args->max_pending,
			.shards		 = 1,
		},
		.keyed = args->flags & HWT_SETUP_KEYS,
	};
	u32 flags = args->flags;
	int ret;

	if (flags & ~(HWT_SETUP_BOOTTIME | HWT_SETUP_REALTIME | HWT_SETUP_TELL_CLOCK_SET |
		      HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU | HWT_SETUP_THREAD | HWT_SETUP_KEYS))
		return -EINVAL;
	setup.clock = hwt_setup_clock(args, &setup.params);
	if (setup.clock < 0)
		return setup.clock;
	ret = hwt_thread_params(args, &setup.params);
	if (ret)
		return ret;
	if (hwt_thread_contexts)
		flags |= HWT_SETUP_THREAD;
	if (mutex_lock_killable(&ctx->setup_lock))
		return -EINTR;
	ret = hwt_setup_context(ctx, &setup, flags);
	mutex_unlock(&ctx->setup_lock);
	return ret;
}
