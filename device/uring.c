// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: timeouts that are commands of io_uring
 *
 * A timeout that is a command has no event: its expiry completes the command. Only a context with
 * keys has such timeouts; the key is in sqe->addr. A command that is not completed keeps the file
 * open, so the context outlives the command.
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
 * @entry: the entry to which the command is attached, or NULL; protected by entries.xa_lock once
 *         the command is marked as cancelable
 * @res:   the result of the command, from hwt_uring_end() for hwt_uring_complete()
 */
struct hwt_uring_pdu {
	struct hwt_entry	*entry;
	int			res;
};

static struct hwt_uring_pdu *hwt_uring_pdu(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct hwt_uring_pdu) > sizeof(cmd->pdu));
	return (struct hwt_uring_pdu *)cmd->pdu;
}

/* -- Owners of commands -------------------------------------------------- */

/*
 * At any time, a command has exactly one owner, and its last owner completes it:
 *
 *   the issuing call	until the command is attached to its entry
 *   the entry		while entry->cmd is set
 *   the detaching call	afterwards: a firing, a stop, a cancel, or a cancellation by io_uring
 *
 * Commands are attached and detached under entries.xa_lock. The issuing call and a cancellation by
 * io_uring complete a command themselves, because issue_flags tell them which of io_uring's locks
 * are held. A firing, a stop and a cancel do not know that, so they leave the completion to the
 * task that has submitted the command (or to a worker of io_uring), and do not wait for it.
 */

void hwt_uring_attach(struct hwt_entry *entry, struct io_uring_cmd *cmd)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	hwt_uring_pdu(cmd)->entry = entry;
	entry->cmd = cmd;
	entry->uring = true;
}

static void hwt_uring_detach(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	hwt_uring_pdu(entry->cmd)->entry = NULL;
	entry->cmd = NULL;
}

static void hwt_uring_complete(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	hwt_uring_done(cmd, hwt_uring_pdu(cmd)->res, issue_flags);
}

HWT_DEFINE_URING_WORK(hwt_uring_work, hwt_uring_complete)

/* Detach and complete the command of an entry, if it has one. The caller removes the entry. */
void hwt_uring_end(struct hwt_entry *entry, int res)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct io_uring_cmd *cmd;

	if (!entry->uring || !entry->cmd)
		return;
	cmd = entry->cmd;
	hwt_uring_detach(entry);
	hwt_uring_pdu(cmd)->res = res;
	/* Complete lazily: a task that waits for several completions is woken only for the last. */
	io_uring_cmd_do_in_task_lazy(cmd, hwt_uring_work);
}

/*
 * Cancel a command for io_uring. If the command is not attached yet, do nothing: io_uring repeats
 * the request. If it is detached already, the call that has detached it completes it.
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
	/* Let other tasks run, because io_uring may cancel a million commands in a row. */
	cond_resched();
}

/* -- Commands ------------------------------------------------------------ */

static int hwt_uring_arm(struct hwt_context *ctx, struct io_uring_cmd *cmd,
			 struct hwt_op *op, unsigned int issue_flags)
{
	hwt_uring_pdu(cmd)->entry = NULL;
	/* Once armed, the timeout may complete the command at any time: mark the command before. */
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	return hwt_op_schedule(ctx, op, hwt_context_offset(ctx), NULL, cmd);
}

/*
 * Carry out a command of io_uring, or io_uring's request to cancel a command (IO_URING_F_CANCEL).
 * In such a request, the submission entry is not valid. In a command, the program may change the
 * submission entry at any time, so read each member once.
 *
 * Return -EIOCBQUEUED if hwt_uring_done() completes the command, now or later; a negative error if
 * io_uring is to complete it; 0 for a request to cancel.
 */
int hwt_uring_issue(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct hwt_context *ctx = cmd->file->private_data;
	const struct hwt_uring_cmd *args;
	struct hwt_op op = {};
	int ret;

	if (issue_flags & IO_URING_F_CANCEL) {
		hwt_uring_abort(ctx, cmd, issue_flags);
		return 0;
	}
	if (!(cmd->file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (cmd->flags & IORING_URING_CMD_MASK || READ_ONCE(cmd->sqe->len) ||
	    READ_ONCE(cmd->sqe->buf_index) || READ_ONCE(cmd->sqe->file_index))
		return -EINVAL;
	BUILD_BUG_ON(sizeof(*args) > sizeof(*cmd->sqe) - offsetof(struct io_uring_sqe, cmd));
	args = (const void *)cmd->sqe->cmd;
	op.time_ns = READ_ONCE(args->time_ns);
	op.flags = READ_ONCE(args->flags);
	op.slack_ns = (u64)READ_ONCE(args->slack_us) * NSEC_PER_USEC;
	op.id = READ_ONCE(cmd->sqe->addr);
	if (op.flags & ~HWT_ARM_ABSOLUTE || !READ_ONCE(ctx->keyed))
		return -EINVAL;

	switch (cmd->cmd_op) {
	case HWT_URING_ARM:
		ret = hwt_uring_arm(ctx, cmd, &op, issue_flags);
		if (!ret)
			return -EIOCBQUEUED;
		break;
	case HWT_URING_MODIFY:
		ret = hwt_op_modify(ctx, &op, hwt_context_offset(ctx));
		break;
	case HWT_URING_CANCEL:
		ret = hwt_op_cancel(ctx, &op);
		break;
	default:
		return -ENOTTY;
	}
	/*
	 * Do not return the result: io_uring requires hwt_uring_done() for a command that is marked
	 * as cancelable, and would repeat a command that returned -EAGAIN.
	 */
	hwt_uring_done(cmd, min(ret, 0), issue_flags);
	return -EIOCBQUEUED;
}

#endif /* HWT_URING */
