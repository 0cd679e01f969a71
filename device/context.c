// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: creation, stop and close of a context, and walks of its table of timeouts
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>

#include "hwt.h"
#include "core/client.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/ring.h"
#include "device/show.h"
#include "device/sized.h"
#include "device/time.h"
#include "device/user.h"

/* How many entries a walk handles before it drops entries.xa_lock, which each firing needs. */
#define HWT_ENTRY_STEP		16

#define HWT_TIMEOUTS_LIMIT	1073741824U

unsigned int hwt_max_timeouts = 1U << 20;
module_param_named(max_timeouts, hwt_max_timeouts, uint, 0444);
MODULE_PARM_DESC(max_timeouts, "Most timeouts of one open /dev/hwt (1 to 1073741824, default 1048576)");

/* Contexts not freed yet: a closed context counts until its wheel has released its timeouts. */
static atomic_t hwt_contexts = ATOMIC_INIT(0);

/* -- References ---------------------------------------------------------- */

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
	 * Barrier put.contexts, pairs with exit.contexts and exit.wait in hwt_contexts_exit(): if
	 * the task that unloads the module sees hwt_contexts at 0, it sees this context freed. If
	 * the task sees hwt_contexts above 0, wake_up_var() finds the task waiting, and wakes it.
	 */
	if (atomic_dec_and_test(&hwt_contexts))
		wake_up_var(&hwt_contexts);
}

/* Return the offset, ns, that the caller's time namespace adds to the clock of a context. */
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
 * Describe up to @max (at most HWT_ENTRY_STEP) entries from slot *@cursor on. Set *@cursor to the
 * slot after the last entry described.
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
	u8 entry[HWT_LIST_ENTRY_SIZE_MAX];

	for (; n; n--, from++, to += size) {
		hwt_sized_store(entry, size, from, sizeof(*from));
		if (copy_to_user(to, entry, size))
			return -EFAULT;
	}
	return 0;
}

/* Carry out HWT_IOC_LIST. Set @list->count to the number of entries stored. */
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
		/* Advance list->cursor only after the store, so that a fault loses no entry. */
		cursor = list->cursor;
		max = min_t(u32, list->count - total, HWT_ENTRY_STEP);
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

/* Call @fn, which may remove its entry, for each entry. Return how often @fn returned true. */
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

/* Carry out HWT_IOC_STOP. Return the number of pending timeouts that this call has stopped. */
u64 hwt_context_stop(struct hwt_context *ctx)
{
	u64 stopped;

	xa_lock(&ctx->entries);
	ctx->closing = true;
	xa_unlock(&ctx->entries);
	stopped = hwt_context_walk(ctx, hwt_entry_stop);
	/*
	 * Set ctx->stopped under the lock: a task that removes the last event afterwards then sees
	 * ctx->stopped set, and wakes the waiting tasks (hwt_event_wake_end()).
	 */
	xa_lock(&ctx->entries);
	/*
	 * Barrier stop.stopped, pairs with poll.stopped in hwt_poll() and read.stopped in
	 * hwt_read_iter() and hwt_rings_enough(): a task that sees ctx->stopped set finds all
	 * events. WRITE_ONCE() would do: all events were added in earlier critical sections of
	 * entries.xa_lock, which this task holds. The release marks the pair.
	 */
	smp_store_release(&ctx->stopped, true);
	if (ctx->rings)
		hwt_rings_tell(ctx);
	xa_unlock(&ctx->entries);
	wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM | EPOLLHUP);
	return stopped;
}

/* -- Creation and end ---------------------------------------------------- */

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
	hwt_show_add(ctx);
	return ctx;

err_user:
	hwt_user_put(ctx->user);
err_free:
	kfree(ctx);
	return err;
}

static bool hwt_context_cancel_one(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	hwt_entry_cancel(entry);
	return true;
}

u64 hwt_context_cancel_all(struct hwt_context *ctx)
{
	return hwt_context_walk(ctx, hwt_context_cancel_one);
}

/* Close a context. Nothing keeps the file open any more, so no system call uses the context. */
void hwt_context_close(struct hwt_context *ctx)
{
	hwt_show_remove(ctx);
	hwt_context_walk(ctx, hwt_context_cancel_one);
	/*
	 * rhashtable_destroy() waits, which a wheel's thread must not do. So call it here, and not
	 * in hwt_context_put(), which a wheel's thread may call.
	 */
	if (ctx->keyed)
		rhashtable_destroy(&ctx->keys);
	if (ctx->private)
		hwt_user_destroy_wheel(ctx->user, ctx->unlimited, ctx->wheel);
	else
		hwt_home_put(ctx->user, ctx->home);
	hwt_event_free_clock_set(ctx->clock_set);
	/* All timeouts are cancelled, and no system call is running: nothing uses the rings now. */
	hwt_rings_free(ctx->created_rings);
	hwt_context_put(ctx);
}

/* -- The module ---------------------------------------------------------- */

int __init hwt_contexts_init(void)
{
	if (hwt_max_timeouts && hwt_max_timeouts <= HWT_TIMEOUTS_LIMIT)
		return 0;
	pr_err("max_timeouts=%u is out of range: 1 to %u\n", hwt_max_timeouts, HWT_TIMEOUTS_LIMIT);
	return -EINVAL;
}

/* Wait until all contexts are freed: a closed context is freed only after its timeouts. */
void hwt_contexts_exit(void)
{
	/*
	 * Barrier exit.contexts, pairs with put.contexts in hwt_context_put(): if this task sees
	 * hwt_contexts at 0, it sees all contexts freed. Barrier exit.wait, pairs with put.contexts
	 * in hwt_context_put(): this task sees hwt_contexts at 0, or hwt_context_put() wakes it.
	 */
	wait_var_event(&hwt_contexts, !atomic_read_acquire(&hwt_contexts));
}
