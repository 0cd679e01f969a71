// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the operations of programs, one or many
 *
 * Each operation is a struct hwt_op, from an ioctl of its own, a batch or a ring. The functions
 * here get a copy that the program cannot change.
 */
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "hwt.h"
#include "core/client.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/op.h"
#include "device/uring.h"
#include "device/user.h"

/* Are these a valid mode, period and slack for arming a timeout? */
static bool hwt_op_times_valid(u32 mode, u64 period_ns, u64 slack_ns)
{
	switch (mode) {
	case HWT_MODE_ONE_SHOT:
		return !period_ns;
	case HWT_MODE_FIXED_RATE:
	case HWT_MODE_FIXED_DELAY:
		return period_ns && !slack_ns;
	default:
		return false;
	}
}

static void hwt_op_count_rejected(struct hwt_context *ctx, int ret)
	__must_hold(&ctx->entries.xa_lock)
{
	if (ret == -EAGAIN || ret == -ESHUTDOWN)
		ctx->stats.rejected++;
}

/*
 * Make a program wait while its user creates and cancels timeouts faster than the wheel's thread
 * releases them. The thread itself (HWT_RINGS_POLL) must not wait, and other users need not.
 */
static void hwt_op_throttle(struct hwt_context *ctx)
{
	if (likely(!hwt_user_many_dying(ctx->user)) || current->flags & PF_KTHREAD)
		return;
	xa_lock(&ctx->entries);
	/* Dying timeouts may be on other wheels, but each wheel releases them within reclaim_ms. */
	hwt_wheel_kick(ctx->wheel);
	xa_unlock(&ctx->entries);
	do {
		schedule_timeout_killable(1);
	} while (hwt_user_many_dying(ctx->user) && !fatal_signal_pending(current));
}

/**
 * hwt_op_schedule() - create and arm a timeout
 * @ctx:      the context
 * @op:       the operation; its @id is filled in
 * @offset:   the time namespace's, as hwt_context_offset() returns it
 * @prealloc: memory allocated in advance, or NULL
 * @cmd:      a command of io_uring, which the timeout completes instead of having events; or NULL
 *
 * Return: 0 or a negative error. After 0 @cmd belongs to the timeout.
 */
int hwt_op_schedule(struct hwt_context *ctx, struct hwt_op *op, s64 offset,
		    struct hwt_prealloc *prealloc, struct io_uring_cmd *cmd)
{
	struct hwt_entry *entry;
	int ret;

	if (op->flags & ~HWT_ABSOLUTE || op->overruns ||
	    !hwt_op_times_valid(op->mode, op->period_ns, op->slack_ns))
		return -EINVAL;
	hwt_op_throttle(ctx);
	entry = hwt_entry_alloc(ctx, prealloc, op->mode, op->user_data, op->period_ns);
	if (!entry)
		return -ENOMEM;

	xa_lock(&ctx->entries);
	ret = ctx->closing ? -ESHUTDOWN : hwt_entry_insert(ctx, entry);
	if (ret) {
		hwt_entry_put(entry);
		goto out;
	}
	/* Check again, since the insertion may have dropped the lock. */
	ret = ctx->closing ? -ESHUTDOWN :
	      hwt_entry_arm(entry, op, op->period_ns, offset);
	if (!ret && cmd)
		ret = hwt_uring_attach(entry, cmd);
	if (ret) {
		hwt_cancel(&entry->timeout);
		hwt_entry_remove(entry);
		goto out;
	}
	op->id = entry->id;
	ctx->stats.scheduled++;
out:
	hwt_op_count_rejected(ctx, ret);
	xa_unlock(&ctx->entries);
	return ret;
}

static int hwt_entry_modify(struct hwt_entry *entry, const struct hwt_op *op, s64 offset)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	bool periodic = hwt_entry_periodic(entry);
	u64 period_ns = op->period_ns;
	u32 was;
	int ret;

	if (periodic && !period_ns)
		period_ns = entry->period_ns;
	if (!hwt_op_times_valid(entry->mode, period_ns, op->slack_ns))
		return -EINVAL;
	/* The data of a command is its name, which must stay. */
	if (entry->uring && (op->flags & HWT_SET_USER_DATA))
		return -EINVAL;
	if (entry->ctx->closing)
		return -ESHUTDOWN;
	ret = hwt_entry_arm(entry, op, period_ns, offset);
	if (ret)
		return ret;
	was = hwt_entry_state(entry);
	hwt_event_drop(entry);
	entry->due_ns = HWT_NEVER;
	entry->ended = false;
	if (op->flags & HWT_SET_USER_DATA)
		entry->user_data = op->user_data;
	if (periodic) {
		entry->period_ns = period_ns;
		entry->missed = 0;
	}
	entry->ctx->stats.modified++;
	return was;
}

/**
 * hwt_op_modify() - arm a timeout for another time
 * @ctx:    the context
 * @op:     the operation
 * @offset: as for hwt_op_schedule()
 *
 * Return: the previous HWT_STATE_ bits, or a negative error.
 */
int hwt_op_modify(struct hwt_context *ctx, const struct hwt_op *op, s64 offset)
{
	struct hwt_entry *entry;
	int ret;

	if (op->flags & ~(HWT_ABSOLUTE | HWT_SET_USER_DATA) || op->mode || op->overruns)
		return -EINVAL;
	xa_lock(&ctx->entries);
	entry = hwt_entry_find(ctx, op->id);
	ret = entry ? hwt_entry_modify(entry, op, offset) : -ENOENT;
	hwt_op_count_rejected(ctx, ret);
	xa_unlock(&ctx->entries);
	return ret;
}

/**
 * hwt_op_cancel() - cancel a timeout, and withdraw its event
 * @ctx: the context
 * @op:  the operation
 *
 * Return: the previous HWT_STATE_ bits, or a negative error.
 */
int hwt_op_cancel(struct hwt_context *ctx, const struct hwt_op *op)
{
	struct hwt_entry *entry;
	int ret = -ENOENT;

	if (op->flags || op->mode || op->time_ns || op->period_ns || op->slack_ns ||
	    op->user_data || op->overruns)
		return -EINVAL;
	xa_lock(&ctx->entries);
	entry = hwt_entry_find(ctx, op->id);
	if (entry) {
		ret = hwt_entry_state(entry);
		hwt_entry_cancel(entry);
	}
	xa_unlock(&ctx->entries);
	return ret;
}

/**
 * hwt_op_get() - describe a timeout
 * @ctx:    the context
 * @op:     the operation, which is filled in
 * @offset: as for hwt_op_schedule()
 *
 * Return: the HWT_STATE_ bits, or a negative error.
 */
int hwt_op_get(struct hwt_context *ctx, struct hwt_op *op, s64 offset)
{
	struct hwt_entry *entry;
	int ret = -ENOENT;

	if (op->flags)
		return -EINVAL;
	xa_lock(&ctx->entries);
	entry = hwt_entry_find(ctx, op->id);
	if (entry) {
		op->mode = entry->mode;
		op->user_data = entry->user_data;
		op->deadline_ns = hwt_time_to_user(hwt_entry_due(entry), offset);
		op->remaining_ns = hwt_entry_remaining(entry);
		op->period_ns = hwt_entry_period(entry);
		op->overruns = hwt_entry_overruns(entry);
		ret = hwt_entry_state(entry);
	}
	xa_unlock(&ctx->entries);
	return ret;
}

/**
 * hwt_op_run() - run an operation of a batch or a ring
 * @ctx:      the context
 * @op:       the operation; its result and its output members are filled in
 * @offset:   as for hwt_op_schedule()
 * @prealloc: as for hwt_op_schedule()
 */
void hwt_op_run(struct hwt_context *ctx, struct hwt_op *op, s64 offset,
		struct hwt_prealloc *prealloc)
{
	switch (op->opcode) {
	case HWT_OP_SCHEDULE:
		op->result = hwt_op_schedule(ctx, op, offset, prealloc, NULL);
		break;
	case HWT_OP_MODIFY:
		op->result = hwt_op_modify(ctx, op, offset);
		break;
	case HWT_OP_CANCEL:
		op->result = hwt_op_cancel(ctx, op);
		break;
	case HWT_OP_GET:
		op->result = hwt_op_get(ctx, op, offset);
		break;
	default:
		op->result = -EINVAL;
	}
}

/* -- Batches ------------------------------------------------------------- */

/* Operations copied at a time. */
#define HWT_BATCH_STEP	64

/* Cancel timeouts whose ids could not be stored, since the program cannot. */
static void hwt_batch_take_back(struct hwt_context *ctx, const struct hwt_op *ops, u32 n)
{
	struct hwt_op cancel = {};

	for (; n; n--, ops++) {
		if (ops->opcode != HWT_OP_SCHEDULE || ops->result)
			continue;
		cancel.id = ops->id;
		hwt_op_cancel(ctx, &cancel);
	}
}

/* Run up to @n operations. Return the number of results stored. */
static u32 hwt_batch_step(struct hwt_context *ctx, struct hwt_op __user *user,
			  struct hwt_op *ops, u32 n, s64 offset)
{
	struct hwt_prealloc prealloc = {};
	u32 i, stored;

	/* Operations before a bad address are run. */
	n -= DIV_ROUND_UP(copy_from_user(ops, user, n * sizeof(*ops)), sizeof(*ops));
	for (i = 0; i < n; i++) {
		prealloc.ahead = n - i;
		hwt_op_run(ctx, &ops[i], offset, &prealloc);
	}
	hwt_prealloc_free(&prealloc);
	stored = n - DIV_ROUND_UP(copy_to_user(user, ops, n * sizeof(*ops)), sizeof(*ops));
	hwt_batch_take_back(ctx, ops + stored, n - stored);
	return stored;
}

/**
 * hwt_batch() - HWT_IOC_BATCH
 * @ctx:   the context
 * @batch: the arguments; the count becomes the number of operations done
 *
 * Return: 0 or a negative error.
 */
int hwt_batch(struct hwt_context *ctx, struct hwt_batch_args *batch)
{
	struct hwt_op __user *user = u64_to_user_ptr(batch->ops);
	s64 offset = hwt_context_offset(ctx);
	u32 done = 0, n, max;
	struct hwt_op *ops;
	int ret = 0;

	if (batch->flags || batch->op_size != sizeof(*ops))
		return -EINVAL;
	/* Not charged to the cgroup: at its limit, a program must still be able to cancel. */
	ops = kmalloc_array(min_t(u32, batch->count, HWT_BATCH_STEP), sizeof(*ops), GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	while (done < batch->count) {
		if (signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		max = min_t(u32, batch->count - done, HWT_BATCH_STEP);
		n = hwt_batch_step(ctx, user + done, ops, max, offset);
		done += n;
		if (n < max) {
			ret = -EFAULT;
			break;
		}
		cond_resched();
	}
	kfree(ops);
	if (ret && !done)
		return ret;
	batch->count = done;
	return 0;
}
