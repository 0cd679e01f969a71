// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the operations of programs
 *
 * Each operation is a struct hwt_op, made from the arguments of an ioctl, an entry of a ring or a
 * command of io_uring. The functions here get a copy, which the program cannot change.
 */
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/errno.h>

#include "hwt.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/op.h"
#include "device/sized.h"
#include "device/uring.h"

#define HWT_OP_CONDITIONS	(HWT_ARM_EARLIER | HWT_ARM_PENDING | HWT_ARM_UNLESS_PENDING)

static bool hwt_op_times_valid(u32 mode, u64 period_ns, u64 slack_ns)
{
	if (mode == HWT_MODE_ONE_SHOT)
		return !period_ns;
	return mode <= HWT_MODE_FIXED_DELAY && period_ns && !slack_ns;
}

/*
 * Schedule the timeout of the key op->id if this needs no memory, so that the operation works at
 * the limit of a memory cgroup. No memory is needed if the timeout only moves, or if a condition
 * does not hold. Otherwise return false: the caller has to create a timeout.
 */
static bool hwt_op_move(struct hwt_context *ctx, struct hwt_op *op, s64 offset, int *ret)
{
	struct hwt_entry *entry;
	bool found;

	xa_lock(&ctx->entries);
	entry = hwt_entry_find(ctx, op->id);
	found = entry && entry->mode == op->mode;
	if (found) {
		*ret = hwt_entry_modify(entry, op, op->period_ns, offset);
	} else if (op->flags & HWT_ARM_PENDING) {
		found = true;
		*ret = entry ? hwt_entry_state(entry) : 0;
		op->generation = 0;
	} else if (entry) {
		*ret = hwt_entry_refuse(entry, op, op->period_ns, offset);
		found = *ret;
	}
	xa_unlock(&ctx->entries);
	return found;
}

/*
 * Create and arm a timeout. If a timeout has the key op->id already, move that timeout or, if its
 * mode differs, replace it; with @cmd, fail. @op gets the generation and, without keys, the new id.
 * @offset: the result of hwt_context_offset(). @prealloc: memory for entries, or NULL. @cmd: a
 * command of io_uring that the timeout completes instead of having events, or NULL. Return 0 for a
 * new timeout, which then owns @cmd; the HWT_STATE_ bits that the key's timeout had before the
 * call; or a negative error.
 */
int hwt_op_schedule(struct hwt_context *ctx, struct hwt_op *op, s64 offset,
		    struct hwt_prealloc *prealloc, struct io_uring_cmd *cmd)
{
	bool keyed = READ_ONCE(ctx->keyed);
	struct hwt_entry *entry, *old;
	int ret;

	if (op->flags & ~(HWT_ARM_ABSOLUTE | (keyed ? HWT_OP_CONDITIONS : 0)) ||
	    (keyed && op->user_data) ||
	    !hwt_op_times_valid(op->mode, op->period_ns, op->slack_ns))
		return -EINVAL;
	if (keyed && !cmd && hwt_op_move(ctx, op, offset, &ret))
		return ret;
	entry = hwt_entry_alloc(ctx, prealloc, op);
	if (IS_ERR(entry))
		return PTR_ERR(entry);
	xa_lock(&ctx->entries);
	/* HWT_IOC_SETUP may have set ctx->keyed meanwhile. */
	old = keyed == ctx->keyed ? hwt_entry_insert(ctx, entry) : ERR_PTR(-EINVAL);
	if (IS_ERR(old))
		ret = PTR_ERR(old);
	else if (old == entry)
		ret = hwt_entry_arm(entry, op, op->period_ns, offset);
	else if (cmd)
		ret = -EEXIST;
	else if (old->mode == op->mode)
		ret = hwt_entry_modify(old, op, op->period_ns, offset);
	else
		ret = hwt_entry_replace(old, entry, op, offset);

	if (!ret) {
		ctx->stats.scheduled++;
		op->id = entry->id;
		if (cmd)
			hwt_uring_attach(entry, cmd);
	} else if (old == entry) {
		hwt_entry_remove(entry);
	} else {
		hwt_entry_free(entry);
	}
	xa_unlock(&ctx->entries);
	return ret;
}

/*
 * Arm the timeout op->id for another time. Return its previous HWT_STATE_ bits, or an error.
 * @remaining_ns: gets the time that was left until the previous deadline; or NULL
 */
int hwt_op_modify(struct hwt_context *ctx, struct hwt_op *op, s64 offset, u64 *remaining_ns)
{
	struct hwt_entry *entry;
	int ret = -ENOENT;
	u64 period_ns;

	if (op->flags & ~(HWT_ARM_ABSOLUTE | HWT_ARM_USER_DATA | HWT_OP_CONDITIONS) || op->mode ||
	    (op->user_data && !(op->flags & HWT_ARM_USER_DATA)))
		return -EINVAL;
	xa_lock(&ctx->entries);
	entry = hwt_entry_find(ctx, op->id);
	if (!entry)
		goto out;
	if (remaining_ns)
		*remaining_ns = hwt_entry_remaining(entry);
	period_ns = op->period_ns ?: hwt_entry_period(entry);
	/* With keys, an entry has no user data: its hash node uses that memory. */
	if ((op->flags & HWT_ARM_USER_DATA && ctx->keyed) ||
	    !hwt_op_times_valid(entry->mode, period_ns, op->slack_ns))
		ret = -EINVAL;
	else
		ret = hwt_entry_modify(entry, op, period_ns, offset);
out:
	xa_unlock(&ctx->entries);
	return ret;
}

/* Cancel the timeout op->id. Return its previous HWT_STATE_ bits, or a negative error. */
int hwt_op_cancel(struct hwt_context *ctx, const struct hwt_op *op)
{
	struct hwt_entry *entry;
	int ret = -ENOENT;

	if (op->flags || op->mode || op->time_ns || op->period_ns || op->slack_ns ||
	    op->user_data || op->reserved)
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

/* Fill in @op for the timeout op->id. Return the timeout's HWT_STATE_ bits, or an error. */
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
		op->user_data = hwt_entry_user_data(entry);
		op->deadline_ns = hwt_time_to_user(hwt_entry_due(entry), offset);
		op->remaining_ns = hwt_entry_remaining(entry);
		op->period_ns = hwt_entry_period(entry);
		op->overruns = hwt_entry_overruns(entry);
		ret = hwt_entry_state(entry);
	}
	xa_unlock(&ctx->entries);
	return ret;
}

static int hwt_op_run(struct hwt_context *ctx, struct hwt_op *op, s64 offset,
		      struct hwt_prealloc *prealloc)
{
	switch (op->opcode) {
	case HWT_OP_SCHEDULE:
		return hwt_op_schedule(ctx, op, offset, prealloc, NULL);
	case HWT_OP_MODIFY:
		return hwt_op_modify(ctx, op, offset, NULL);
	case HWT_OP_CANCEL:
		return hwt_op_cancel(ctx, op);
	case HWT_OP_GET:
		return hwt_op_get(ctx, op, offset);
	default:
		return -EINVAL;
	}
}

/* Run the operation of @size bytes at @from, which the program may change at any time. */
void hwt_op_run_sized(struct hwt_context *ctx, void *from, u32 size, s64 offset,
		      struct hwt_prealloc *prealloc)
{
	struct hwt_op op;
	int ret = hwt_sized_load(&op, sizeof(op), from, size);

	/* No barrier between CPUs: barrier() makes the compiler use the copy, not @from again. */
	barrier();
	op.result = ret ?: hwt_op_run(ctx, &op, offset, prealloc);
	hwt_sized_store(from, size, &op, sizeof(op));
}
