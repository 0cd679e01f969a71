// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: timeouts that are commands of io_uring
 *
 * Such a timeout is an entry like any other, but has no event: it completes its command. A command
 * is completed by its owner, and has exactly one at any time:
 *
 *   the issuing call	until the command is attached to its entry
 *   the entry		while entry->cmd is set
 *   the detaching call	from then on: the firing, a stop, a cancel; or a cancellation by io_uring,
 *			when the ring is closed or the task executes another program
 *   the list ctx->done	if the detaching call leaves the command to a worker; the worker takes it
 *			from there, or io_uring's cancellation does
 *
 * Commands are attached and detached under the lock of the context's table. A cancellation by
 * io_uring completes the command at once. All other owners hand it to the task that has submitted
 * the command, or to the worker that io_uring uses in its place: only there it is known which of
 * io_uring's locks are held. They run in any task and do not wait for that one.
 *
 * An outstanding command keeps the file open, so the context outlives the command.
 */
#include "hwt_compat.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/op.h"
#include "device/uring.h"

#ifdef HWT_URING

#include <linux/build_bug.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/time64.h>

/**
 * struct hwt_uring_pdu - the data of a command
 * @name:  node in the context's tree of names, while the command is attached
 * @done:  node in the context's list of commands for a worker to complete
 * @res:   the result, once the command is detached
 * @entry: the entry to which the command is attached, or NULL
 *
 * @name and @entry are protected by the table's lock, @res belongs to the owner.
 */
struct hwt_uring_pdu {
	union {
		struct rb_node			name;
		struct {
			struct llist_node	done;
			int			res;
		};
	};
	struct hwt_entry			*entry;
};

static struct hwt_uring_pdu *hwt_uring_pdu(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct hwt_uring_pdu) > sizeof(cmd->pdu));
	return (struct hwt_uring_pdu *)cmd->pdu;
}

/* -- Names --------------------------------------------------------------- */

static struct hwt_entry *hwt_uring_entry(const struct rb_node *node)
{
	return rb_entry(node, struct hwt_uring_pdu, name)->entry;
}

static int hwt_uring_cmp_name(const void *name, const struct rb_node *node)
{
	u64 a = *(const u64 *)name, b = hwt_uring_entry(node)->user_data;

	return a < b ? -1 : a > b;
}

static int hwt_uring_cmp(struct rb_node *node, const struct rb_node *other)
{
	return hwt_uring_cmp_name(&hwt_uring_entry(node)->user_data, other);
}

/* Return the id of the timeout of a name; 0, which no timeout has, if there is none. */
static u64 hwt_uring_id(struct hwt_context *ctx, u64 name)
{
	struct rb_node *node;
	u64 id = 0;

	xa_lock(&ctx->entries);
	node = rb_find(&name, &ctx->names, hwt_uring_cmp_name);
	if (node)
		id = hwt_uring_entry(node)->id;
	xa_unlock(&ctx->entries);
	return id;
}

/* -- Owners of commands -------------------------------------------------- */

/**
 * hwt_uring_attach() - make an entry the owner of a command
 * @entry: the entry, which has been armed; its user_data is the name
 * @cmd:   the command
 *
 * Return: 0, or -EEXIST if the context has a command of that name.
 */
int hwt_uring_attach(struct hwt_entry *entry, struct io_uring_cmd *cmd)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_uring_pdu *pdu = hwt_uring_pdu(cmd);

	pdu->entry = entry;
	if (rb_find_add(&pdu->name, &entry->ctx->names, hwt_uring_cmp)) {
		pdu->entry = NULL;
		return -EEXIST;
	}
	entry->cmd = cmd;
	entry->uring = true;
	return 0;
}

static void hwt_uring_detach(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_uring_pdu *pdu = hwt_uring_pdu(entry->cmd);

	rb_erase(&pdu->name, &entry->ctx->names);
	pdu->entry = NULL;
	entry->cmd = NULL;
}

static void hwt_uring_complete(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	hwt_uring_done(cmd, hwt_uring_pdu(cmd)->res, issue_flags);
}

HWT_DEFINE_URING_WORK(hwt_uring_work, hwt_uring_complete)

/**
 * hwt_uring_end() - complete an entry's command, if it has one
 * @entry: the entry; the caller removes it
 * @res:   the result
 * @later: leave the completion to a worker
 */
void hwt_uring_end(struct hwt_entry *entry, int res, bool later)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct io_uring_cmd *cmd;

	if (!entry->uring || !entry->cmd)
		return;
	cmd = entry->cmd;
	hwt_uring_detach(entry);
	hwt_uring_pdu(cmd)->res = res;
	if (later) {
		/*
		 * Barrier uring.add, pairs with uring.take in hwt_uring_end_done(): if the work is
		 * queued already, the worker finds this command.
		 */
		llist_add(&hwt_uring_pdu(cmd)->done, &entry->ctx->done);
		hwt_context_wake_later(entry->ctx);
		return;
	}
	/* Lazy: a task that waits for several completions is woken by the last of them. */
	io_uring_cmd_do_in_task_lazy(cmd, hwt_uring_work);
}

/**
 * hwt_uring_end_done() - complete the commands that were left to a worker, in their order
 * @ctx: the context
 *
 * Context: process, sleeps. A concurrent call is done, too, when this one returns.
 */
void hwt_uring_end_done(struct hwt_context *ctx)
{
	struct hwt_uring_pdu *pdu, *next;
	struct llist_node *list;

	mutex_lock(&ctx->end_lock);
	/*
	 * Barrier uring.take, pairs with uring.add in hwt_uring_end(): the work is queued again for
	 * a command that is added later.
	 */
	list = llist_reverse_order(llist_del_all(&ctx->done));
	llist_for_each_entry_safe(pdu, next, list, done) {
		io_uring_cmd_do_in_task_lazy(container_of((void *)pdu, struct io_uring_cmd, pdu),
					     hwt_uring_work);
		cond_resched();
	}
	mutex_unlock(&ctx->end_lock);
}

/*
 * Cancel a command for io_uring, which repeats the request until the command has ended. So nothing
 * needs to be done for a command that is not attached yet. A command that is detached already may
 * be left to a worker, which may not run as long as a real-time task that cancels takes its CPU.
 */
static void hwt_uring_abort(struct hwt_context *ctx, struct io_uring_cmd *cmd,
			    unsigned int issue_flags)
{
	struct hwt_entry *entry;

	xa_lock(&ctx->entries);
	entry = hwt_uring_pdu(cmd)->entry;
	if (entry) {
		hwt_uring_detach(entry);
		hwt_entry_cancel(entry);
	}
	xa_unlock(&ctx->entries);
	if (entry)
		hwt_uring_done(cmd, -ECANCELED, issue_flags);
	else
		hwt_uring_end_done(ctx);
	/* io_uring cancels one command after the other, possibly a million. */
	cond_resched();
}

/* -- Commands ------------------------------------------------------------ */

static int hwt_uring_arm(struct hwt_context *ctx, struct io_uring_cmd *cmd,
			 struct hwt_op *op, unsigned int issue_flags)
{
	hwt_uring_pdu(cmd)->entry = NULL;
	/* Before the timeout is armed: from then on the command may be completed. */
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	return hwt_op_schedule(ctx, op, hwt_context_offset(ctx), NULL, cmd);
}

/**
 * hwt_uring_issue() - IORING_OP_URING_CMD
 * @cmd:         the command
 * @issue_flags: io_uring's
 *
 * The program may change the submission entry at any time, so each member is read once. In a
 * request to cancel a command, the submission entry is no longer valid.
 *
 * Return: 0, a negative error, or -EIOCBQUEUED if the command is, or will be, completed by a call.
 */
int hwt_uring_issue(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct hwt_context *ctx = cmd->file->private_data;
	const struct hwt_uring_cmd *args;
	struct hwt_op op = {};
	u64 addr;
	int ret;

	if (issue_flags & IO_URING_F_CANCEL) {
		hwt_uring_abort(ctx, cmd, issue_flags);
		return 0;
	}
	if (cmd->flags & IORING_URING_CMD_MASK || READ_ONCE(cmd->sqe->len) ||
	    READ_ONCE(cmd->sqe->buf_index) || READ_ONCE(cmd->sqe->file_index))
		return -EINVAL;
	BUILD_BUG_ON(sizeof(*args) > sizeof(*cmd->sqe) - offsetof(struct io_uring_sqe, cmd));
	args = (const void *)cmd->sqe->cmd;
	op.time_ns = READ_ONCE(args->time_ns);
	op.flags = READ_ONCE(args->flags);
	op.slack_ns = (u64)READ_ONCE(args->slack_us) * NSEC_PER_USEC;
	addr = READ_ONCE(cmd->sqe->addr);
	if (op.flags & ~HWT_ABSOLUTE)
		return -EINVAL;

	switch (cmd->cmd_op) {
	case HWT_URING_ARM:
		if (addr)
			return -EINVAL;
		op.user_data = READ_ONCE(cmd->sqe->user_data);
		ret = hwt_uring_arm(ctx, cmd, &op, issue_flags);
		if (!ret)
			return -EIOCBQUEUED;
		break;
	case HWT_URING_MODIFY:
		op.id = hwt_uring_id(ctx, addr);
		ret = hwt_op_modify(ctx, &op, hwt_context_offset(ctx));
		break;
	case HWT_URING_CANCEL:
		op.id = hwt_uring_id(ctx, addr);
		ret = hwt_op_cancel(ctx, &op);
		break;
	default:
		return -ENOTTY;
	}
	/*
	 * Completed here instead of by returning the result: a command that is marked as cancelable
	 * must be, and io_uring would repeat one that returns -EAGAIN.
	 */
	hwt_uring_done(cmd, min(ret, 0), issue_flags);
	return -EIOCBQUEUED;
}

#endif /* HWT_URING */
