// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the clock of a context, walks of its table of timeouts, its creation and close
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/pvclock_gtod.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/time64.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "hwt.h"
#include "hwt_compat.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/ring.h"
#include "device/pass.h"
#include "device/setup.h"
#include "device/user.h"

#define HWT_TIMEOUTS_LIMIT	1073741824U

unsigned int hwt_max_timeouts = 1U << 20;
module_param_named(max_timeouts, hwt_max_timeouts, uint, 0444);
MODULE_PARM_DESC(max_timeouts, "Most timeouts of one open /dev/hwt (1 to 1073741824, default 1048576)");

/* The open contexts by their numbers. No context in here is freed while the xa_lock is held. */
DEFINE_XARRAY_ALLOC1(hwt_contexts);

u64 hwt_context_now(const struct hwt_context *ctx)
{
	switch (READ_ONCE(ctx->clock)) {
	case CLOCK_BOOTTIME:
		return ktime_get_boottime_ns();
	case CLOCK_REALTIME:
		return ktime_get_real_ns();
	default:
		return ktime_get_ns();
	}
}

/* Return the ns that the time namespace of the caller adds to @clock, a clockid_t. */
s64 hwt_time_offset(int clock)
{
	struct timespec64 offset = {};

	if (clock == CLOCK_MONOTONIC)
		timens_add_monotonic(&offset);
	else if (clock == CLOCK_BOOTTIME)
		timens_add_boottime(&offset);
	return timespec64_to_ns(&offset);
}

/*
 * Convert a deadline from the program's time namespace to the context's clock. @rate: the period of
 * a timeout with a fixed rate, otherwise 0. If the result is negative, return 0 or, with a fixed
 * rate, the first deadline that is not negative. Return HWT_NEVER if a time exceeds S64_MAX.
 */
u64 hwt_time_from_user(u64 ns, s64 offset, u64 rate)
{
	u64 missed;
	s64 host;

	if (ns > S64_MAX || check_sub_overflow((s64)ns, offset, &host))
		return HWT_NEVER;
	if (host >= 0)
		return host;
	if (!rate)
		return 0;
	div64_u64_rem(-(host + 1), rate, &missed);
	return rate - 1 - missed;
}

/* Convert a time on the context's clock to the program's time namespace. */
u64 hwt_time_to_user(u64 ns, s64 offset)
{
	s64 user;

	if (ns == HWT_NEVER || check_add_overflow((s64)ns, offset, &user))
		return HWT_NEVER;
	return max_t(s64, user, 0);
}

/* Return the ns that the time namespace of the caller adds to the clock of a context. */
s64 hwt_context_offset(const struct hwt_context *ctx)
{
	return hwt_time_offset(READ_ONCE(ctx->clock));
}

u32 hwt_context_max_timeouts(const struct hwt_context *ctx)
{
	return ctx->keyed ? min(hwt_max_timeouts, HWT_KEYED_MAX) : hwt_max_timeouts;
}

/* -- Walks of the table -------------------------------------------------- */

/*
 * Describe up to @max (at most HWT_STEP) entries from slot *@cursor on. Set *@cursor to the slot
 * after the last entry described.
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

/* Store @n entries in a program's array, whose elements have @size bytes. Return 0 or -EFAULT. */
static int hwt_context_store(void __user *to, u32 size, const struct hwt_list_entry *from, u32 n)
{
	u32 known = min_t(u32, size, sizeof(*from));

	for (; n; n--, from++, to += size)
		if (copy_to_user(to, from, known) || clear_user(to + known, size - known))
			return -EFAULT;
	return 0;
}

/* Carry out HWT_IOC_LIST. */
int hwt_ioctl_list(struct hwt_context *ctx, void *args)
{
	struct hwt_list_args *list = args;
	void __user *to = u64_to_user_ptr(list->entries);
	u32 total = 0, size = list->entry_size, n, max;
	struct hwt_list_entry *step;
	u64 cursor;
	int ret = 0;

	if (list->flags || !list->count || size < HWT_LIST_ENTRY_SIZE_VER1 ||
	    size > HWT_LIST_ENTRY_SIZE_MAX)
		return -EINVAL;
	step = kmalloc_array(HWT_STEP, sizeof(*step), HWT_GFP_USER);
	if (!step)
		return -ENOMEM;
	hwt_pass_catch_up(ctx, true);
	do {
		/* Advance list->cursor only after the store, so that a fault loses no entry. */
		cursor = list->cursor;
		max = min_t(u32, list->count - total, HWT_STEP);
		n = hwt_context_describe(ctx, &cursor, step, max);
		ret = hwt_context_store(to + (size_t)total * size, size, step, n);
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

/* Cancel all timeouts, except new ones in slots already passed. Return how many were cancelled. */
u64 hwt_context_cancel_all(struct hwt_context *ctx)
{
	struct hwt_entry *entry;
	unsigned long slot;
	u64 count = 0;

	mutex_lock(&ctx->walk_lock);
	xa_lock(&ctx->entries);
	xa_for_each(&ctx->entries, slot, entry) {
		hwt_entry_cancel(entry);
		if (++count % HWT_STEP)
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

/* -- Creation and end ---------------------------------------------------- */

/* Free a context, all of whose timeouts were cancelled, and whose timer does not run. */
static void hwt_context_free(struct hwt_context *ctx)
{
	/* On return of hwt_wheel_destroy(), ->release has freed the entry of each timeout. */
	if (ctx->wheel)
		hwt_wheel_destroy(ctx->wheel);
	if (ctx->keyed)
		rhashtable_destroy(&ctx->keys);
	/* The list of events may still have this entry, but the list is not used any more. */
	if (ctx->clock_set)
		hwt_entry_free(ctx->clock_set);
	hwt_rings_free(ctx->created_rings);
	kvfree(ctx->pass.memory);
	xa_destroy(&ctx->entries);
	if (ctx->user)
		hwt_user_put(ctx->user);
	kfree(ctx);
}

struct hwt_context *hwt_context_create(void)
{
	struct hwt_context *ctx = kzalloc(sizeof(*ctx), HWT_GFP_USER);
	static u32 next;
	int ret = -ENOMEM;

	if (!ctx)
		return ERR_PTR(-ENOMEM);
	xa_init_flags(&ctx->entries, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&ctx->ready);
	hwt_commands_init(&ctx->commands);
	mutex_init(&ctx->setup_lock);
	mutex_init(&ctx->walk_lock);
	init_waitqueue_head(&ctx->wait);
	ctx->user = hwt_user_get();
	if (ctx->user)
		ret = hwt_ioctl_setup(ctx, &(struct hwt_setup_args) { });
	/* HWT_IOC_SETUP may still choose something else. */
	ctx->fixed = false;
	ctx->opener = task_tgid_nr(current);
	get_task_comm(ctx->command, current->group_leader);
	/* From here on, debugfs and hwt_contexts_clock_set() find the context. */
	if (!ret)
		ret = xa_alloc_cyclic(&hwt_contexts, &ctx->number, ctx, xa_limit_32b, &next,
				      GFP_KERNEL);
	if (ret >= 0)
		return ctx;
	hwt_context_free(ctx);
	return ERR_PTR(ret);
}

/* Close a context. No reference to its file is left, so no system call uses the context. */
void hwt_context_close(struct hwt_context *ctx)
{
	xa_erase(&hwt_contexts, ctx->number);
	hwt_context_cancel_all(ctx);
	/* The timer's interrupt uses the rings, so cancel the timer before the rings are freed. */
	hrtimer_cancel(&ctx->pass.timer);
	hwt_context_free(ctx);
}

/* -- All contexts ---------------------------------------------------------- */

/* CLOCK_REALTIME was set: correct the buckets and the timers of the contexts on this clock. */
static void hwt_contexts_clock_set(struct work_struct *work)
{
	struct hwt_context *ctx;
	unsigned long number;

	xa_lock(&hwt_contexts);
	xa_for_each(&hwt_contexts, number, ctx) {
		if (READ_ONCE(ctx->clock) == CLOCK_REALTIME)
			hwt_pass_clock_set(ctx);
		xa_unlock(&hwt_contexts);
		cond_resched();
		xa_lock(&hwt_contexts);
	}
	xa_unlock(&hwt_contexts);
}

static DECLARE_WORK(hwt_clock_set_work, hwt_contexts_clock_set);

/*
 * The timekeeper's notifier must not call queue_work(): the wake-up of a worker may read the clock,
 * and would then wait for the end of the change, in which the notifier is called.
 */
static void hwt_contexts_irq_work(struct irq_work *work)
{
	/* No barrier: queue_work() ensures that the work sees the change of the clock. */
	queue_work(system_dfl_wq, &hwt_clock_set_work);
}

static struct irq_work hwt_contexts_clock_work = IRQ_WORK_INIT(hwt_contexts_irq_work);

/* Called by the timekeeper at each update of the clock. @was_set: not 0 if the clock was set. */
static int hwt_contexts_clock_event(struct notifier_block *block, unsigned long was_set, void *data)
{
	/*
	 * Barrier contexts.irq, pairs with kernel.irq_work in irq_work_run(): if irq_work_queue()
	 * finds the irq_work pending, the work that it queues has yet to read the clock, in
	 * hwt_pass_now(). There ktime_get() waits for the end of this change, because it finds the
	 * timekeeper's sequence count odd.
	 */
	if (was_set)
		irq_work_queue(&hwt_contexts_clock_work);
	return NOTIFY_OK;
}

static struct notifier_block hwt_contexts_notifier = {
	.notifier_call = hwt_contexts_clock_event,
};

/* -- The module ---------------------------------------------------------- */

int __init hwt_contexts_init(void)
{
	if (!hwt_max_timeouts || hwt_max_timeouts > HWT_TIMEOUTS_LIMIT) {
		pr_err("max_timeouts=%u is out of range: 1 to %u\n", hwt_max_timeouts,
		       HWT_TIMEOUTS_LIMIT);
		return -EINVAL;
	}
	if (hwt_max_user_timeouts == UINT_MAX)
		hwt_max_user_timeouts = min_t(u64, 4ULL * hwt_max_timeouts, UINT_MAX - 1);
	return pvclock_gtod_register_notifier(&hwt_contexts_notifier);
}

/* No context is left, because an open file keeps the module loaded. */
void hwt_contexts_exit(void)
{
	pvclock_gtod_unregister_notifier(&hwt_contexts_notifier);
	irq_work_sync(&hwt_contexts_clock_work);
	cancel_work_sync(&hwt_clock_set_work);
	xa_destroy(&hwt_contexts);
}
