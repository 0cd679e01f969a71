// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the operations of programs
 *
 * Each operation is a struct hwt_op, from an ioctl, a ring or a command of io_uring. The functions
 * here get a copy that the program cannot change; for rings hwt_op_run_sized() makes this copy.
 */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/refcount.h>

#include "hwt.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/op.h"
#include "device/sized.h"
#include "device/uring.h"

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
	if (ret == -ENOSPC || ret == -ESHUTDOWN)
		ctx->stats.rejected++;
}

static int hwt_entry_modify(struct hwt_entry *entry, const struct hwt_op *op, s64 offset)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	bool periodic = hwt_entry_periodic(entry);
	u64 period_ns = op->period_ns;
	u32 was;
	int ret;

	/* With keys, an entry has no @user_data: its place is taken by @node. */
	if ((op->flags & HWT_ARM_USER_DATA) && entry->ctx->keyed)
		return -EINVAL;
	if (periodic && !period_ns)
		period_ns = entry->period_ns;
	if (!hwt_op_times_valid(entry->mode, period_ns, op->slack_ns))
		return -EINVAL;
	if (entry->ctx->closing)
		return -ESHUTDOWN;
	ret = hwt_entry_arm(entry, op, period_ns, offset);
	if (ret)
		return ret;
	was = hwt_entry_state(entry);
	hwt_event_drop(entry);
	entry->due_ns = HWT_NEVER;
	entry->ctx->stats.pending += entry->final;
	entry->final = false;
	if (op->flags & HWT_ARM_USER_DATA)
		entry->user_data = op->user_data;
	if (periodic) {
		entry->period_ns = period_ns;
		entry->missed = 0;
	}
	entry->ctx->stats.modified++;
	return was;
}

/*
 * Insert and arm @entry; if the key has a timeout, move that, or replace it by @entry if the modes
 * differ. Return: as hwt_op_schedule(); -ENOENT if @entry is NULL, but needed.
 */
static int hwt_entry_schedule(struct hwt_context *ctx, struct hwt_entry *entry,
			      const struct hwt_op *op, s64 offset, struct io_uring_cmd *cmd)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_entry *old;
	int ret = -EEXIST;

	if (!ctx->keyed || !hwt_entry_find(ctx, op->id))
		ret = entry ? hwt_entry_insert(ctx, entry) : -ENOENT;
	/* Look again for the key, and for a stop: the insertion may have dropped the lock. */
	if (ret == -EEXIST && !cmd) {
		old = hwt_entry_find(ctx, op->id);
		if (old->mode == op->mode)
			return hwt_entry_modify(old, op, offset);
		return entry ? hwt_entry_replace(old, entry, op, offset) : -ENOENT;
	}
	if (ret)
		return ret;
	ret = ctx->closing ? -ESHUTDOWN : hwt_entry_arm(entry, op, op->period_ns, offset);
	if (ret) {
		/* The caller puts the entry. */
		refcount_inc(&entry->refs);
		hwt_entry_remove(entry);
	} else if (cmd) {
		hwt_uring_attach(entry, cmd);
	}
	return ret;
}

/* Schedule @op, with @entry or NULL. @keyed: the ctx->keyed with which @op was checked. */
static int hwt_op_arm(struct hwt_context *ctx, struct hwt_op *op, bool keyed, s64 offset,
		      struct hwt_entry *entry, struct io_uring_cmd *cmd)
{
	int ret;

	xa_lock(&ctx->entries);
	/* If a concurrent HWT_IOC_SETUP has introduced keys, @op was checked without them. */
	if (ctx->keyed != keyed)
		ret = -EINVAL;
	else
		ret = ctx->closing ? -ESHUTDOWN : hwt_entry_schedule(ctx, entry, op, offset, cmd);
	if (!ret) {
		op->id = entry->id;
		ctx->stats.scheduled++;
	} else if (entry) {
		hwt_entry_put(entry);
	}
	hwt_op_count_rejected(ctx, ret);
	xa_unlock(&ctx->entries);
	return ret;
}

/**
 * hwt_op_schedule() - create and arm a timeout, or move the one of a key
 * @ctx:      the context
 * @op:       the operation; without keys, its @id is filled in
 * @offset:   the time namespace's offset, as hwt_context_offset() returns it
 * @prealloc: memory allocated in advance, or NULL
 * @cmd:      a command of io_uring, which the timeout completes instead of having events; or NULL
 *
 * Return: 0 for a new timeout, to which @cmd belongs from then on; the previous HWT_STATE_ bits of
 * the timeout that was moved; or a negative error.
 */
int hwt_op_schedule(struct hwt_context *ctx, struct hwt_op *op, s64 offset,
		    struct hwt_prealloc *prealloc, struct io_uring_cmd *cmd)
{
	bool keyed = READ_ONCE(ctx->keyed);
	struct hwt_entry *entry;
	int ret;

	if (op->flags & ~HWT_ARM_ABSOLUTE || op->reserved || (keyed && op->user_data) ||
	    (cmd && !keyed) || !hwt_op_times_valid(op->mode, op->period_ns, op->slack_ns))
		return -EINVAL;
	/* First without an entry, since a timeout that exists can be moved when memory is short. */
	ret = keyed ? hwt_op_arm(ctx, op, keyed, offset, NULL, cmd) : -ENOENT;
	if (ret != -ENOENT)
		return ret;
	entry = hwt_entry_alloc(ctx, prealloc, op);
	return entry ? hwt_op_arm(ctx, op, keyed, offset, entry, cmd) : -ENOMEM;
}

/* Arm a timeout for another time. Return the previous HWT_STATE_ bits, or a negative error. */
int hwt_op_modify(struct hwt_context *ctx, const struct hwt_op *op, s64 offset)
{
	struct hwt_entry *entry;
	int ret;

	if (op->flags & ~(HWT_ARM_ABSOLUTE | HWT_ARM_USER_DATA) || op->mode || op->reserved ||
	    (op->user_data && !(op->flags & HWT_ARM_USER_DATA)))
		return -EINVAL;
	xa_lock(&ctx->entries);
	entry = hwt_entry_find(ctx, op->id);
	ret = entry ? hwt_entry_modify(entry, op, offset) : -ENOENT;
	hwt_op_count_rejected(ctx, ret);
	xa_unlock(&ctx->entries);
	return ret;
}

/* Cancel a timeout, and withdraw its event. Return: as hwt_op_modify(). */
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

/* Describe a timeout in @op. Return its HWT_STATE_ bits, or a negative error. */
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

static void hwt_op_run(struct hwt_context *ctx, struct hwt_op *op, s64 offset,
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

/* -- Structures of another size -------------------------------------------- */

/* May a program's operations have this size? */
bool hwt_op_size_valid(u32 size)
{
	return size >= HWT_OP_SIZE_VER1 && size <= HWT_OP_SIZE_MAX && !(size % sizeof(u64));
}

/*
 * Run the operation at @from, in memory that the program may change at any time, and store its
 * result there. @size is the size of the program's version of struct hwt_op.
 */
void hwt_op_run_sized(struct hwt_context *ctx, void *from, u32 size, s64 offset,
		      struct hwt_prealloc *prealloc)
{
	struct hwt_op op;
	int ret = hwt_sized_load(&op, sizeof(op), from, size);

	/* No barrier between CPUs: keep the compiler from reading the program's memory again. */
	barrier();
	if (ret)
		op.result = ret;
	else
		hwt_op_run(ctx, &op, offset, prealloc);
	hwt_sized_store(from, size, &op, sizeof(op));
}
