// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: a context as a whole: its wheel, its set-up, its stop, walks of its table
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>

#include "hwt.h"
#include "hwt_uapi.h"
#include "core/client.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/ring.h"
#include "device/show.h"
#include "device/sized.h"
#include "device/uring.h"
#include "device/user.h"

/*
 * Entries handled before the lock is released. Few, because the wheel's thread takes the lock for
 * each timeout of the context that fires.
 */
#define HWT_ENTRY_STEP		16

/* Number of contexts, including closed ones of which a wheel still holds entries. */
static atomic_t hwt_contexts = ATOMIC_INIT(0);

/* -- References ---------------------------------------------------------- */

/* Drop a reference to a context; the last one frees it. */
void hwt_context_put(struct hwt_context *ctx)
{
	if (!refcount_dec_and_test(&ctx->refs))
		return;
	hwt_user_put(ctx->user);
	xa_destroy(&ctx->entries);
	mutex_destroy(&ctx->setup_lock);
	mutex_destroy(&ctx->walk_lock);
	kfree(ctx);
	/*
	 * Barrier put.contexts, pairs with exit.contexts and exit.wait in hwt_contexts_exit(): a
	 * task that sees the count at 0 there sees this context freed. If a task there sees it
	 * above 0, wake_up_var() sees that task wait.
	 */
	if (atomic_dec_and_test(&hwt_contexts))
		wake_up_var(&hwt_contexts);
}

/* Return the caller's time namespace's offset of a clock (a clockid_t), ns. */
s64 hwt_clock_offset(int clock)
{
	struct timespec64 offset = {};

	switch (clock) {
	case CLOCK_MONOTONIC:
		timens_add_monotonic(&offset);
		break;
	case CLOCK_BOOTTIME:
		timens_add_boottime(&offset);
		break;
	}
	return timespec64_to_ns(&offset);
}

/* Return the caller's time namespace's offset of a context's clock, ns. */
s64 hwt_context_offset(const struct hwt_context *ctx)
{
	return hwt_clock_offset(READ_ONCE(ctx->clock));
}

/* -- HWT_IOC_SETUP ------------------------------------------------------- */

/**
 * struct hwt_setup - what HWT_IOC_SETUP gives a context
 * @wheel:     a private wheel, or NULL
 * @clock:     its clock, as a clockid_t
 * @clock_set: the entry of HWT_EVENT_CLOCK_SET, or NULL
 * @keyed:     ids are the program's keys
 */
struct hwt_setup {
	struct hwt_wheel	*wheel;
	int			clock;
	struct hwt_entry	*clock_set;
	bool			keyed;
};

/* Give a context its wheel and keys. Return false if it has timeouts or is fixed already. */
static bool hwt_setup_apply(struct hwt_context *ctx, const struct hwt_setup *setup)
{
	struct hwt_wheel_params params;
	bool set;

	xa_lock(&ctx->entries);
	/* An insertion that has dropped the lock has not set @fixed yet, but is in the count. */
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

/* Free the entry of HWT_EVENT_CLOCK_SET, or NULL. No wheel calls back with it any more. */
static void hwt_clock_set_free(struct hwt_entry *entry)
{
	if (!entry)
		return;
	xa_lock(&entry->ctx->entries);
	hwt_event_drop(entry);
	xa_unlock(&entry->ctx->entries);
	hwt_entry_put(entry);
}

/* Choose the wheel's clock. Return its clockid_t or a negative error. */
static int hwt_setup_clock(const struct hwt_setup_args *args, struct hwt_wheel_params *params)
{
	bool boottime = args->flags & HWT_SETUP_BOOTTIME;
	bool realtime = args->flags & HWT_SETUP_REALTIME;

	if ((boottime && realtime) || (args->flags & HWT_SETUP_TELL_CLOCK_SET && !realtime))
		return -EINVAL;
	params->clock = realtime ? HWT_CLOCK_REALTIME :
			boottime ? HWT_CLOCK_BOOTTIME : HWT_CLOCK_MONOTONIC;
	if (args->flags & HWT_SETUP_TELL_CLOCK_SET)
		params->clock_set = hwt_context_clock_set;
	return realtime ? CLOCK_REALTIME : boottime ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

/*
 * Choose the CPU, the priority and the way of waiting of the wheel's thread. If @args ask for any
 * of these, the thread can keep other tasks from running, so CAP_SYS_NICE is required.
 */
static int hwt_setup_place(const struct hwt_setup_args *args, struct hwt_wheel_params *params)
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

/* Create a private wheel, and the entry of HWT_EVENT_CLOCK_SET if it is asked for. */
static int hwt_setup_wheel(struct hwt_context *ctx, const struct hwt_setup_args *args,
			   struct hwt_wheel_params *params, struct hwt_setup *setup)
{
	/* A periodic entry counts overruns: further sets of the clock before the event is read. */
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
	hwt_clock_set_free(setup->clock_set);
	if (wheel == ERR_PTR(-ENOSPC)) {
		xa_lock(&ctx->entries);
		hwt_context_limited(ctx, HWT_LIMIT_USER_WHEELS);
		xa_unlock(&ctx->entries);
	}
	return PTR_ERR(wheel);
}

/* Return true if @args ask for anything that needs a private wheel. */
static bool hwt_setup_private(const struct hwt_setup_args *args)
{
	return args->flags & ~HWT_SETUP_KEYS || args->tick_ns || args->ticks_per_wheel ||
	       args->levels || args->max_pending || args->priority;
}

/* HWT_IOC_SETUP */
int hwt_context_setup(struct hwt_context *ctx, const struct hwt_setup_args *args)
{
	struct hwt_wheel_params params = {
		.name		 = "hwt_private",
		.tick_ns	 = args->tick_ns,
		.ticks_per_wheel = args->ticks_per_wheel,
		.levels		 = args->levels,
		.max_pending	 = args->max_pending,
		/* All timeouts of a context are on one shard. */
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
	ret = hwt_setup_place(args, &params);
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
	hwt_clock_set_free(setup.clock_set);
err_keys:
	if (setup.keyed)
		rhashtable_destroy(&ctx->keys);
out:
	mutex_unlock(&ctx->setup_lock);
	return ret;
}

/* -- Walks of the table -------------------------------------------------- */

static void hwt_entry_describe(const struct hwt_entry *entry, struct hwt_list_entry *to,
			       s64 offset)
{
	*to = (struct hwt_list_entry) {
		.id		= entry->id,
		.user_data	= hwt_entry_user_data(entry),
		.deadline_ns	= hwt_time_to_user(hwt_entry_due(entry), offset),
		.remaining_ns	= hwt_entry_remaining(entry),
		.period_ns	= hwt_entry_period(entry),
		.overruns	= hwt_entry_overruns(entry),
		.state		= hwt_entry_state(entry),
		.mode		= entry->mode,
	};
}

/*
 * Describe up to @max entries, from slot *@cursor on, and move *@cursor behind them. @max is at
 * most HWT_ENTRY_STEP. Return the number of entries described.
 */
static u32 hwt_context_describe(struct hwt_context *ctx, u64 *cursor,
				struct hwt_list_entry *to, u32 max)
{
	s64 offset = hwt_context_offset(ctx);
	struct hwt_entry *entry;
	unsigned long slot;
	u32 n = 0;

	if (*cursor > U32_MAX)
		return 0;
	mutex_lock(&ctx->walk_lock);
	xa_lock(&ctx->entries);
	xa_for_each_start(&ctx->entries, slot, entry, *cursor) {
		hwt_entry_describe(entry, &to[n++], offset);
		*cursor = (u64)slot + 1;
		if (n == max)
			break;
	}
	xa_unlock(&ctx->entries);
	mutex_unlock(&ctx->walk_lock);
	return n;
}

/* Store entries in a program's array, whose elements have @size bytes. */
static int hwt_entries_store(void __user *to, u32 size, const struct hwt_list_entry *from, u32 n)
{
	u8 entry[HWT_LIST_ENTRY_SIZE_MAX];

	for (; n; n--, from++, to += size) {
		hwt_sized_store(entry, size, from, sizeof(*from));
		if (copy_to_user(to, entry, size))
			return -EFAULT;
	}
	return 0;
}

/* HWT_IOC_LIST. @list->count becomes the number of entries described. */
int hwt_context_list(struct hwt_context *ctx, struct hwt_list_args *list)
{
	void __user *to = u64_to_user_ptr(list->entries);
	u32 total = 0, size = list->entry_size, n, max;
	struct hwt_list_entry *step;
	u64 cursor;
	int ret = 0;

	if (list->flags || !list->count || size < HWT_LIST_ENTRY_SIZE_VER1 ||
	    size > HWT_LIST_ENTRY_SIZE_MAX)
		return -EINVAL;
	step = kmalloc_array(HWT_ENTRY_STEP, sizeof(*step), HWT_GFP_USER);
	if (!step)
		return -ENOMEM;
	do {
		/* list->cursor moves only once the step is stored. */
		cursor = list->cursor;
		max = min_t(u32, list->count - total, HWT_ENTRY_STEP);
		n = hwt_context_describe(ctx, &cursor, step, max);
		ret = hwt_entries_store(to + (size_t)total * size, size, step, n);
		if (ret)
			break;
		list->cursor = cursor;
		total += n;
		cond_resched();
	} while (n == max && total < list->count && !signal_pending(current));
	kfree(step);
	if (ret && !total)
		return ret;
	list->count = total;
	return 0;
}

/*
 * Call @fn for each entry, under the lock but in bounded steps. @fn may remove the entry that it
 * is given. Return the number of entries for which @fn was true.
 */
static u64 hwt_context_walk(struct hwt_context *ctx,
			    bool (*fn)(struct hwt_entry *entry))
{
	struct hwt_entry *entry;
	unsigned int n = 0;
	unsigned long slot;
	u64 count = 0;

	mutex_lock(&ctx->walk_lock);
	xa_lock(&ctx->entries);
	xa_for_each(&ctx->entries, slot, entry) {
		count += fn(entry);
		if (++n % HWT_ENTRY_STEP)
			continue;
		xa_unlock(&ctx->entries);
		mutex_unlock(&ctx->walk_lock);
		cond_resched();
		mutex_lock(&ctx->walk_lock);
		xa_lock(&ctx->entries);
	}
	xa_unlock(&ctx->entries);
	mutex_unlock(&ctx->walk_lock);
	return count;
}

static bool hwt_entry_stop(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	u64 due = hwt_entry_due(entry);

	if (entry->final)
		return false;
	hwt_cancel(&entry->timeout);
	hwt_entry_set_final(entry);
	entry->ctx->stats.stopped++;
	if (entry->uring) {
		hwt_uring_end(entry, -ESHUTDOWN);
		hwt_entry_remove(entry);
		return true;
	}
	if (!hwt_entry_has_event(entry))
		hwt_event_add(entry, HWT_EVENT_STOPPED, due,
			      hwt_wheel_now(entry->ctx->wheel));
	return true;
}

/* HWT_IOC_STOP. Return the number of timeouts stopped. */
u64 hwt_context_stop(struct hwt_context *ctx)
{
	u64 stopped;

	xa_lock(&ctx->entries);
	ctx->closing = true;
	xa_unlock(&ctx->entries);
	stopped = hwt_context_walk(ctx, hwt_entry_stop);
	/*
	 * Another stop may still run, but this one has seen all entries. The lock orders this with
	 * hwt_context_wake_end(): either that function sees @stopped, or the last event was taken
	 * before, and the wake-up below tells the waiters.
	 */
	xa_lock(&ctx->entries);
	/*
	 * Barrier stop.stopped, not needed, pairs with poll.stopped in hwt_poll() and read.stopped
	 * in hwt_read_iter() and hwt_rings_enough(): the lock orders the last event, which was
	 * added under it, before this store, so a task that sees the store sees all events.
	 */
	smp_store_release(&ctx->stopped, true);
	if (ctx->rings)
		hwt_rings_tell(ctx);
	xa_unlock(&ctx->entries);
	wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM | EPOLLHUP);
	return stopped;
}

/* -- Creation and end ---------------------------------------------------- */

/* Create a context of the calling user. Return the context or ERR_PTR. */
struct hwt_context *hwt_context_create(void)
{
	struct hwt_wheel_params params;
	struct hwt_context *ctx;
	void *err = ERR_PTR(-ENOMEM);

	ctx = kzalloc(sizeof(*ctx), HWT_GFP_USER);
	if (!ctx)
		return err;
	ctx->user = hwt_user_get();
	if (!ctx->user)
		goto err_free;
	ctx->home = hwt_home_get(ctx->user);
	if (IS_ERR(ctx->home)) {
		err = ERR_CAST(ctx->home);
		goto err_user;
	}
	ctx->wheel = ctx->home->wheel;
	ctx->shard = hwt_wheel_shard(ctx->wheel);
	ctx->unlimited = hwt_user_unlimited();
	xa_init_flags(&ctx->entries, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&ctx->ready);
	mutex_init(&ctx->setup_lock);
	mutex_init(&ctx->walk_lock);
	refcount_set(&ctx->refs, 1);
	init_waitqueue_head(&ctx->wait);
	atomic_inc(&hwt_contexts);
	hwt_wheel_get_params(ctx->wheel, &params);
	ctx->clock = CLOCK_MONOTONIC;
	ctx->tick_ns = params.tick_ns;
	hwt_context_debugfs_add(ctx);
	return ctx;

err_user:
	hwt_user_put(ctx->user);
err_free:
	kfree(ctx);
	return err;
}

static bool hwt_entry_cancel_one(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	hwt_entry_cancel(entry);
	return true;
}

/* HWT_IOC_CANCEL with HWT_CANCEL_ALL. Return the number of timeouts cancelled. */
u64 hwt_context_cancel_all(struct hwt_context *ctx)
{
	return hwt_context_walk(ctx, hwt_entry_cancel_one);
}

/*
 * End a context whose last descriptor is closed, so that no program is in a call. Cancel all its
 * timeouts. Destroy its wheel, unless other contexts use that.
 */
void hwt_context_close(struct hwt_context *ctx)
{
	hwt_context_debugfs_remove(ctx);
	hwt_context_walk(ctx, hwt_entry_cancel_one);
	/* Not in hwt_context_put(), which a wheel's thread may call: this waits for a work item. */
	if (ctx->keyed)
		rhashtable_destroy(&ctx->keys);
	if (ctx->private)
		hwt_user_destroy_wheel(ctx->user, ctx->unlimited, ctx->wheel);
	else
		hwt_home_put(ctx->user, ctx->home);
	hwt_clock_set_free(ctx->clock_set);
	/* All entries have ended, so nothing more is written to the rings. */
	hwt_rings_free(ctx->created_rings);
	hwt_context_put(ctx);
}

/* -- The module ---------------------------------------------------------- */

/*
 * Wait until all contexts are freed. All files are closed, since an open file keeps the module
 * loaded, but a closed context stays until its wheel has released its entries.
 */
void hwt_contexts_exit(void)
{
	/*
	 * Barrier exit.contexts, pairs with put.contexts in hwt_context_put(): with the count at 0,
	 * this task sees all contexts freed. Barrier exit.wait, pairs with put.contexts in
	 * hwt_context_put(): this task sees the count at 0, or hwt_context_put() sees it wait.
	 */
	wait_var_event(&hwt_contexts, !atomic_read_acquire(&hwt_contexts));
}
