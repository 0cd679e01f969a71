// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: a context as a whole: its wheel, its set-up, its stop, walks of its table
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "hwt.h"
#include "hwt_uapi.h"
#include "core/client.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/ring.h"
#include "device/show.h"
#include "device/uring.h"
#include "device/user.h"

/*
 * Entries handled in one go under the lock. The wheel's thread waits for the lock at each timeout
 * of the context that fires.
 */
#define HWT_ENTRY_STEP		16

static struct workqueue_struct *hwt_wake_wq;

/* Number of contexts, including closed ones that a wheel still holds entries of. */
static atomic_t hwt_contexts = ATOMIC_INIT(0);

/* The wheel that contexts share: created by the first open, kept until the module is unloaded. */
static struct hwt_wheel *hwt_shared_wheel;
static DEFINE_MUTEX(hwt_shared_lock);

/* -- References ---------------------------------------------------------- */

static void hwt_context_wake_work(struct work_struct *work)
{
	struct hwt_context *ctx = container_of(work, struct hwt_context, wake_work);

	hwt_uring_end_done(ctx);
	hwt_context_wake(ctx);
	hwt_context_put(ctx);
}

/**
 * hwt_context_wake_later() - have a worker wake readers and complete commands of io_uring
 * @ctx: the context
 *
 * Context: any. The worker sees the event or command that the caller has added before, also if the
 * work is queued already.
 */
void hwt_context_wake_later(struct hwt_context *ctx)
{
	refcount_inc(&ctx->refs);
	/*
	 * Barrier later.queue, pairs with kernel.work in process_one_work(), between taking the
	 * work off its queue and calling it: a worker that has yet to begin sees the caller's event
	 * or command.
	 */
	if (!queue_work(hwt_wake_wq, &ctx->wake_work))
		refcount_dec(&ctx->refs);
}

/**
 * hwt_context_put() - drop a reference to a context
 * @ctx: the context; the last reference frees it
 */
void hwt_context_put(struct hwt_context *ctx)
{
	if (!refcount_dec_and_test(&ctx->refs))
		return;
	hwt_user_put(ctx->user);
	xa_destroy(&ctx->entries);
	mutex_destroy(&ctx->create_lock);
	mutex_destroy(&ctx->walk_lock);
	mutex_destroy(&ctx->end_lock);
	kfree(ctx);
	/*
	 * Barrier put.contexts, pairs with exit.contexts and exit.wait in hwt_contexts_exit(): the
	 * task that waits there sees this context freed, and is woken below.
	 */
	if (atomic_dec_and_test(&hwt_contexts))
		wake_up_var(&hwt_contexts);
}

/**
 * hwt_context_offset() - return the caller's time namespace's offset of a context's clock
 * @ctx: the context
 *
 * Return: the offset, ns.
 */
s64 hwt_context_offset(const struct hwt_context *ctx)
{
	struct timespec64 offset = {};

	switch (READ_ONCE(ctx->clock)) {
	case CLOCK_MONOTONIC:
		timens_add_monotonic(&offset);
		break;
	case CLOCK_BOOTTIME:
		timens_add_boottime(&offset);
		break;
	}
	return timespec64_to_ns(&offset);
}

/* -- Wheels -------------------------------------------------------------- */

/*
 * Return the wheel that contexts share, but not with kernel code. On PREEMPT_RT the lock of a
 * context's table sleeps, and the wheel's thread may wait for a program's task that holds it and
 * gets no CPU. Priority inheritance runs that task at the thread's priority, which is therefore
 * SCHED_FIFO there.
 */
static struct hwt_wheel *hwt_shared_wheel_get(void)
{
	static const struct hwt_wheel_params params = {
		.name = "hwt_device",
		.priority = IS_ENABLED(CONFIG_PREEMPT_RT) ? HWT_PRIORITY_FIFO_LOW :
							    HWT_PRIORITY_NORMAL,
	};
	struct hwt_wheel *wheel;

	mutex_lock(&hwt_shared_lock);
	wheel = hwt_shared_wheel;
	if (!wheel) {
		/* Not charged to the program that comes first. */
		wheel = hwt_wheel_create_gfp(&params, THIS_MODULE, GFP_KERNEL);
		if (!IS_ERR(wheel)) {
			hwt_shared_wheel = wheel;
			/* Unloading destroys the wheel, so the wheel must not keep the module. */
			module_put(THIS_MODULE);
		}
	}
	mutex_unlock(&hwt_shared_lock);
	return wheel;
}

/* Create a private wheel with the parameters of @shared_wheel for a context that has none. */
static int hwt_context_create_wheel(struct hwt_context *ctx,
				    const struct hwt_wheel *shared_wheel)
{
	struct hwt_wheel_params params;
	struct hwt_wheel *wheel;

	hwt_wheel_get_params(shared_wheel, &params);
	params.name = "hwt_private";
	params.priority = HWT_PRIORITY_NORMAL;
	wheel = hwt_user_create_wheel(ctx, &params);
	if (IS_ERR(wheel))
		return PTR_ERR(wheel);
	xa_lock(&ctx->entries);
	if (!ctx->private) {
		WRITE_ONCE(ctx->fixed, true);
		WRITE_ONCE(ctx->private, true);
		swap(ctx->wheel, wheel);
	}
	xa_unlock(&ctx->entries);
	/* A concurrent HWT_IOC_SETUP may have been first, if no timeout is in the table yet. */
	if (wheel != shared_wheel)
		hwt_user_destroy_wheel(ctx, wheel);
	return 0;
}

/**
 * hwt_context_leave_shared() - get a context a private wheel for its next timeouts
 * @ctx: the context, which has max_shared timeouts on the shared wheel
 *
 * The limit bounds how long other contexts wait for this one on the shared wheel. Drops the lock.
 *
 * Return: 0, and the context has a private wheel; or a negative error.
 */
int hwt_context_leave_shared(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	const struct hwt_wheel *shared_wheel = ctx->wheel;
	int ret;

	xa_unlock(&ctx->entries);
	/* One thread creates the wheel: a second one could fail at the user's limit meanwhile. */
	ret = mutex_lock_killable(&ctx->create_lock);
	if (!ret) {
		if (!READ_ONCE(ctx->private))
			ret = hwt_context_create_wheel(ctx, shared_wheel);
		mutex_unlock(&ctx->create_lock);
	}
	xa_lock(&ctx->entries);
	return ret;
}

/* -- HWT_IOC_SETUP ------------------------------------------------------- */

/* Give a context its own wheel. Return false if its clock and tick are fixed already. */
static bool hwt_context_set_wheel(struct hwt_context *ctx, struct hwt_wheel *wheel,
				  int clock, struct hwt_entry *clock_set)
{
	struct hwt_wheel_params params;
	bool set;

	hwt_wheel_get_params(wheel, &params);
	xa_lock(&ctx->entries);
	set = !ctx->fixed;
	if (set) {
		ctx->wheel = wheel;
		WRITE_ONCE(ctx->clock, clock);
		ctx->tick_ns = params.tick_ns;
		ctx->clock_set = clock_set;
		WRITE_ONCE(ctx->fixed, true);
		WRITE_ONCE(ctx->private, true);
		ctx->busy = params.wait == HWT_WAIT_BUSY;
	}
	xa_unlock(&ctx->entries);
	return set;
}

/* Free the entry of the clock's event. No wheel has its callback any more. */
static void hwt_clock_set_free(struct hwt_entry *entry)
{
	if (!entry)
		return;
	xa_lock(&entry->ctx->entries);
	hwt_event_drop(entry);
	xa_unlock(&entry->ctx->entries);
	hwt_entry_put(entry);
}

static int hwt_setup_clock(const struct hwt_setup_args *setup,
			   struct hwt_wheel_params *params)
{
	bool tell = setup->flags & HWT_SETUP_TELL_CLOCK_SET;

	switch (setup->clock) {
	case CLOCK_MONOTONIC:
		params->clock = HWT_CLOCK_MONOTONIC;
		return tell ? -EINVAL : 0;
	case CLOCK_BOOTTIME:
		params->clock = HWT_CLOCK_BOOTTIME;
		return tell ? -EINVAL : 0;
	case CLOCK_REALTIME:
		params->clock = HWT_CLOCK_REALTIME;
		if (tell)
			params->clock_set = hwt_context_clock_set;
		return 0;
	default:
		return -EINVAL;
	}
}

/*
 * Choose the CPU, the priority and the way of waiting of the wheel's thread. A thread with any of
 * these can keep other tasks from running, so they require CAP_SYS_NICE.
 */
static int hwt_setup_place(struct hwt_context *ctx, const struct hwt_setup_args *setup,
			   struct hwt_wheel_params *params)
{
	bool pinned = setup->flags & HWT_SETUP_CPU;
	bool busy = setup->flags & HWT_SETUP_BUSY_WAIT;

	if (setup->priority > HWT_SETUP_FIFO || (setup->cpu && !pinned) ||
	    (busy && (!pinned || setup->priority)))
		return -EINVAL;
	if (!pinned && !setup->priority)
		return 0;
	if (!capable(CAP_SYS_NICE))
		return -EPERM;
	switch (setup->priority) {
	case HWT_SETUP_FIFO_LOW:
		params->priority = HWT_PRIORITY_FIFO_LOW;
		break;
	case HWT_SETUP_FIFO:
		params->priority = HWT_PRIORITY_FIFO;
		break;
	}
	if (pinned) {
		if (setup->cpu >= nr_cpu_ids || !cpu_online(setup->cpu))
			return -EINVAL;
		params->cpus = cpumask_of(array_index_nospec(setup->cpu, nr_cpu_ids));
	}
	if (busy) {
		params->wait = HWT_WAIT_BUSY;
		params->poll = hwt_rings_poll;
		params->poll_arg = ctx;
	}
	return 0;
}

/**
 * hwt_context_setup() - HWT_IOC_SETUP
 * @ctx:   the context
 * @setup: the arguments
 *
 * Return: 0 or a negative error.
 */
int hwt_context_setup(struct hwt_context *ctx, const struct hwt_setup_args *setup)
{
	struct hwt_wheel_params params = {
		.name		 = "hwt_private",
		.tick_ns	 = setup->tick_ns,
		.ticks_per_wheel = setup->ticks_per_wheel,
		.levels		 = setup->levels,
		.max_pending	 = setup->max_pending,
	};
	struct hwt_entry *clock_set = NULL;
	struct hwt_wheel *wheel;
	int ret;

	if (setup->flags & ~(HWT_SETUP_COARSE_CLOCK | HWT_SETUP_TELL_CLOCK_SET |
			     HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU) || setup->reserved)
		return -EINVAL;
	if (setup->flags & HWT_SETUP_COARSE_CLOCK)
		params.flags = HWT_COARSE_CLOCK;
	ret = hwt_setup_clock(setup, &params) ?: hwt_setup_place(ctx, setup, &params);
	if (ret)
		return ret;
	/* Without the lock, to save the creation of a wheel. */
	if (READ_ONCE(ctx->fixed))
		return -EBUSY;
	if (params.clock_set) {
		/* A periodic entry: its event may come up again before it was read. */
		clock_set = hwt_entry_alloc(ctx, NULL, HWT_MODE_FIXED_DELAY, 0, 0);
		if (!clock_set)
			return -ENOMEM;
		clock_set->id = 0;
		params.clock_set_arg = clock_set;
	}
	wheel = hwt_user_create_wheel(ctx, &params);
	if (IS_ERR(wheel)) {
		hwt_clock_set_free(clock_set);
		return PTR_ERR(wheel);
	}
	if (hwt_context_set_wheel(ctx, wheel, setup->clock, clock_set))
		return 0;
	hwt_user_destroy_wheel(ctx, wheel);
	hwt_clock_set_free(clock_set);
	return -EBUSY;
}

/* -- Walks of the table -------------------------------------------------- */

static void hwt_entry_describe(const struct hwt_entry *entry, struct hwt_list_entry *to,
			       s64 offset)
{
	*to = (struct hwt_list_entry) {
		.id		= entry->id,
		.user_data	= entry->user_data,
		.deadline_ns	= hwt_time_to_user(hwt_entry_due(entry), offset),
		.remaining_ns	= hwt_entry_remaining(entry),
		.period_ns	= hwt_entry_period(entry),
		.overruns	= hwt_entry_overruns(entry),
		.state		= hwt_entry_state(entry),
		.mode		= entry->mode,
	};
}

/*
 * Describe up to @max entries, one step at most, from *@cursor on. Return the number of entries
 * described.
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

/**
 * hwt_context_list() - HWT_IOC_LIST
 * @ctx:  the context
 * @list: the arguments; its count becomes the number of entries described
 *
 * Return: 0 or a negative error.
 */
int hwt_context_list(struct hwt_context *ctx, struct hwt_list_args *list)
{
	struct hwt_list_entry __user *to = u64_to_user_ptr(list->entries);
	struct hwt_list_entry *step;
	u32 total = 0, n, max;
	u64 cursor;
	int ret = 0;

	if (list->flags || !list->count ||
	    list->entry_size != sizeof(struct hwt_list_entry))
		return -EINVAL;
	step = kmalloc_array(HWT_ENTRY_STEP, sizeof(*step), HWT_GFP_USER);
	if (!step)
		return -ENOMEM;
	do {
		/* The program's cursor moves only once the step is stored. */
		cursor = list->cursor;
		max = min_t(u32, list->count - total, HWT_ENTRY_STEP);
		n = hwt_context_describe(ctx, &cursor, step, max);
		if (copy_to_user(to + total, step, n * sizeof(*step))) {
			ret = -EFAULT;
			break;
		}
		list->cursor = cursor;
		total += n;
		cond_resched();
		if (signal_pending(current))
			ret = -EINTR;
	} while (!ret && n == max && total < list->count);
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

	if (entry->ended)
		return false;
	hwt_cancel(&entry->timeout);
	entry->ended = true;
	entry->ctx->stats.stopped++;
	if (entry->uring) {
		/* A worker completes the command: under the lock, many tasks may not be woken. */
		hwt_uring_end(entry, -ESHUTDOWN, true);
		hwt_entry_remove(entry);
		return true;
	}
	if (!hwt_entry_has_event(entry))
		hwt_event_add(entry, HWT_EVENT_STOPPED, due,
			      hwt_wheel_now(entry->ctx->wheel));
	return true;
}

/* From now on, no timeout can be scheduled or modified. */
static void hwt_context_set_closing(struct hwt_context *ctx)
{
	xa_lock(&ctx->entries);
	ctx->closing = true;
	xa_unlock(&ctx->entries);
}

/**
 * hwt_context_stop() - HWT_IOC_STOP
 * @ctx: the context
 *
 * Return: the number of timeouts stopped.
 */
u64 hwt_context_stop(struct hwt_context *ctx)
{
	u64 stopped;

	hwt_context_set_closing(ctx);
	stopped = hwt_context_walk(ctx, hwt_entry_stop);
	/*
	 * Another stop may still run, but this one has seen all entries. The lock orders this with
	 * hwt_context_wake_end(): that sees the stop, or the wake-up below follows the last event.
	 */
	xa_lock(&ctx->entries);
	/*
	 * Barrier stop.stopped (spare), pairs with poll.stopped in hwt_poll() and read.stopped in
	 * hwt_read_iter() and hwt_rings_enough(): a task that sees this without the lock sees all
	 * events. The lock would do, since each event was added under it.
	 */
	smp_store_release(&ctx->stopped, true);
	if (ctx->rings)
		hwt_rings_fill(ctx);
	xa_unlock(&ctx->entries);
	wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM | EPOLLHUP);
	return stopped;
}

/* -- Creation and end ---------------------------------------------------- */

/**
 * hwt_context_create() - create a context, for the caller as its user
 *
 * Return: the context, which hwt_context_close() ends, or ERR_PTR.
 */
struct hwt_context *hwt_context_create(void)
{
	struct hwt_wheel *wheel = hwt_shared_wheel_get();
	struct hwt_wheel_params params;
	struct hwt_context *ctx;

	if (IS_ERR(wheel))
		return ERR_CAST(wheel);
	ctx = kzalloc(sizeof(*ctx), HWT_GFP_USER);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	ctx->user = hwt_user_get();
	if (!ctx->user) {
		kfree(ctx);
		return ERR_PTR(-ENOMEM);
	}
	ctx->unlimited = hwt_user_unlimited();
	xa_init_flags(&ctx->entries, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&ctx->ready);
	mutex_init(&ctx->create_lock);
	mutex_init(&ctx->walk_lock);
	mutex_init(&ctx->end_lock);
	refcount_set(&ctx->refs, 1);
	init_waitqueue_head(&ctx->wait);
	init_llist_head(&ctx->done);
	INIT_WORK(&ctx->wake_work, hwt_context_wake_work);
	atomic_inc(&hwt_contexts);
	hwt_wheel_get_params(wheel, &params);
	ctx->wheel = wheel;
	ctx->clock = CLOCK_MONOTONIC;
	ctx->tick_ns = params.tick_ns;
	hwt_context_debugfs_add(ctx);
	return ctx;
}

static bool hwt_entry_forget(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	hwt_cancel(&entry->timeout);
	hwt_entry_remove(entry);
	return true;
}

/**
 * hwt_context_close() - end a context
 * @ctx: the context; its last descriptor is closed, so no program is in a call
 *
 * Cancel all timeouts, and do not wait for slow callbacks of other contexts: the shared wheel
 * releases the entries within reclaim_ms, and the last of them frees the context. A private wheel
 * is destroyed here.
 */
void hwt_context_close(struct hwt_context *ctx)
{
	hwt_context_debugfs_remove(ctx);
	/* The private wheel's thread may still find operations in a ring: they must fail. */
	hwt_context_set_closing(ctx);
	hwt_context_walk(ctx, hwt_entry_forget);
	if (ctx->private)
		hwt_user_destroy_wheel(ctx, ctx->wheel);
	hwt_clock_set_free(ctx->clock_set);
	/* All entries have ended, so no event will be written to the rings. */
	hwt_rings_free(ctx->rings);
	hwt_context_put(ctx);
}

/* -- The module ---------------------------------------------------------- */

/* Return: 0 or a negative error. */
int __init hwt_contexts_init(void)
{
	hwt_wake_wq = alloc_workqueue("hwt_wake", WQ_UNBOUND, 0);
	return hwt_wake_wq ? 0 : -ENOMEM;
}

/*
 * All files are closed, since an open file keeps the module loaded. Closed contexts stay until the
 * shared wheel has released their entries.
 */
void hwt_contexts_exit(void)
{
	/*
	 * Barrier exit.contexts, pairs with put.contexts in hwt_context_put(): the last context is
	 * freed. Barrier exit.wait, pairs with put.contexts in hwt_context_put(): this task sees
	 * the count at 0, or hwt_context_put() sees it wait.
	 */
	wait_var_event(&hwt_contexts, !atomic_read_acquire(&hwt_contexts));
	if (hwt_shared_wheel) {
		__module_get(THIS_MODULE);
		hwt_wheel_destroy(hwt_shared_wheel);
	}
	/* The worker that has dropped the last context may still be running. */
	destroy_workqueue(hwt_wake_wq);
}
