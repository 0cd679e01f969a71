// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: timeouts that are commands of io_uring
 *
 * A timeout that is a command has no event: its expiry completes the command. Only a context with
 * keys has such timeouts; the key is in sqe->addr. A command keeps the file open until it is
 * completed, so the context outlives the command.
 *
 * In a context without a wheel, a task has to run a pass when a timeout is due. For this, the
 * oldest armed command is the carrier: the timer's interrupt queues task work for the carrier, and
 * the task that has submitted the carrier then runs a pass, for all commands. When the carrier is
 * detached from its timeout, the next command becomes the carrier.
 */
#include "hwt_compat.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/op.h"
#include "device/pass.h"
#include "device/uring.h"

#ifdef HWT_URING

#include <linux/build_bug.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/time64.h>

/**
 * struct hwt_uring_pdu - the data of a command
 * @entry: the entry to which the command is attached, or NULL. Once the command is marked as
 *         cancelable, changes only under entries.xa_lock and the lock of the context's commands
 * @res:   the result of the command, which hwt_uring_detach() stores for hwt_uring_complete()
 * @carrying: true while the command's task work is queued to run a pass; protected by the lock of
 *         the context's commands
 * @detached: true once the command was detached from an entry; protected as @entry is
 * @hidden: hwt_uring_hide() hides the command from io_uring's cancellations; protected by
 *         uring_lock of the command's ring
 */
struct hwt_uring_pdu {
	struct hwt_entry	*entry;
	int			res;
	bool			carrying;
	bool			detached;
	bool			hidden;
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
 *   the detaching call	afterwards: a firing, a cancel, or a cancellation by io_uring
 *   hwt_uring_carried()	in place of the detaching call, if task work of the command was
 *				queued to run a pass (@carrying of struct hwt_uring_pdu)
 *
 * Commands are attached and detached under entries.xa_lock. The issuing call and a cancellation by
 * io_uring complete a command at once, because issue_flags tell them which of io_uring's locks are
 * held. A firing and a cancel do not know that, so they queue the completion to the task that has
 * submitted the command (or to a worker of io_uring).
 */

void hwt_uring_attach(struct hwt_entry *entry, struct io_uring_cmd *cmd)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_commands *commands = &entry->ctx->commands;

	entry->cmd = cmd;
	entry->uring = true;
	list_add_tail(&entry->ready, &commands->list);
	spin_lock_irq(&commands->lock);
	hwt_uring_pdu(cmd)->entry = entry;
	if (!commands->carrier)
		commands->carrier = cmd;
	spin_unlock_irq(&commands->lock);
}

/*
 * Detach the command of an entry. If it was the carrier, whose task work runs passes, choose
 * another. Return the command for the caller to complete; NULL if its task work is still queued:
 * hwt_uring_carried() then completes it, with @res.
 */
static struct io_uring_cmd *hwt_uring_detach(struct hwt_entry *entry, int res)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_commands *commands = &entry->ctx->commands;
	struct io_uring_cmd *cmd = entry->cmd;
	struct hwt_entry *first;
	bool carrying, late;

	entry->cmd = NULL;
	list_del_init(&entry->ready);
	first = list_first_entry_or_null(&commands->list, struct hwt_entry, ready);
	spin_lock_irq(&commands->lock);
	hwt_uring_pdu(cmd)->entry = NULL;
	hwt_uring_pdu(cmd)->res = res;
	hwt_uring_pdu(cmd)->detached = true;
	carrying = hwt_uring_pdu(cmd)->carrying;
	late = carrying || commands->pause_ns;
	if (commands->carrier == cmd)
		commands->carrier = first ? first->cmd : NULL;
	spin_unlock_irq(&commands->lock);
	/*
	 * The task work of the old carrier may run late, or put the pass off. Let the timer expire
	 * now, so that the new carrier's task runs a pass, too. If another task has run the pass,
	 * the timer is armed for the next one, and must remain so: its interrupt finds the carrier.
	 */
	if (late && first && hwt_pass_due(entry->ctx))
		hwt_pass_alarm(entry->ctx, hwt_context_now(entry->ctx));
	return carrying ? NULL : cmd;
}

/* Complete a detached command, in its task work. */
static void hwt_uring_complete(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	if (hwt_uring_pdu(cmd)->hidden)
		hwt_uring_show(cmd);
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
	cmd = hwt_uring_detach(entry, res);
	/* Complete lazily: io_uring wakes a task that waits for N completions only for the last. */
	if (cmd)
		io_uring_cmd_do_in_task_lazy(cmd, hwt_uring_work);
}

/*
 * Cancel a command at io_uring's request. For a command that is not attached yet, do nothing,
 * because io_uring repeats the request. For a detached command, which its task work completes, let
 * io_uring not repeat the request: a worker that closes the ring would spin while the task that is
 * to do the work is stopped. io_uring holds uring_lock.
 */
static void hwt_uring_abort(struct hwt_context *ctx, struct io_uring_cmd *cmd,
			    unsigned int issue_flags)
{
	struct io_uring_cmd *done = NULL;
	struct hwt_entry *entry;

	xa_lock(&ctx->entries);
	entry = hwt_uring_pdu(cmd)->entry;
	if (entry) {
		done = hwt_uring_detach(entry, -ECANCELED);
		hwt_entry_cancel(entry);
	} else if (hwt_uring_pdu(cmd)->detached) {
		hwt_uring_pdu(cmd)->hidden = hwt_uring_hide(cmd);
	}
	xa_unlock(&ctx->entries);
	if (done)
		hwt_uring_done(done, -ECANCELED, issue_flags);
	/* Let other tasks run, because io_uring may cancel a million commands in a row. */
	cond_resched();
}

/* -- The carrier ----------------------------------------------------------- */

#define HWT_PAUSE_MIN_NS	(50 * NSEC_PER_USEC)
#define HWT_PAUSE_MAX_NS	(100 * NSEC_PER_MSEC)

/* Run a pass if it has work to do. But if @pause_ns is not 0, put it off for so long. */
static void hwt_uring_pass(struct hwt_context *ctx, u64 pause_ns)
{
	if (!pause_ns) {
		hwt_pass_catch_up(ctx, true);
		return;
	}
	xa_lock(&ctx->entries);
	/* If another task has run the pass, the timer is armed for the next one: do not move it. */
	if (hwt_pass_due(ctx) && !hrtimer_is_queued(&ctx->pass.timer))
		hwt_pass_alarm(ctx, hwt_context_now(ctx) + pause_ns);
	xa_unlock(&ctx->entries);
}

/*
 * Return the pause before a pass that is put off again and again. Task work that several contexts
 * queue may never end, and a task handles signals only at its end. So the pauses grow, until all
 * contexts pause at the same time.
 */
static u64 hwt_uring_pause(u64 last_ns)
{
	return clamp_t(u64, 2 * last_ns, HWT_PAUSE_MIN_NS, HWT_PAUSE_MAX_NS);
}

/* Return true if the calling task has to handle a signal, or to freeze, and so runs no pass. */
static bool hwt_uring_task_stops(void)
{
	return task_sigpending(current) || READ_ONCE(current->jobctl) & JOBCTL_TRAP_FREEZE;
}

/*
 * Return true if the submitter of a command has ended, so that a kernel worker does its task work,
 * or is about to end. A worker must not run passes: its CPU time is in no cgroup of the program.
 * While a task ends, SIGKILL is pending no more.
 */
static bool hwt_uring_task_ends(void)
{
	return current->flags & (PF_EXITING | PF_SIGNALED | PF_KTHREAD) ||
	       READ_ONCE(current->signal->flags) & SIGNAL_GROUP_EXIT ||
	       fatal_signal_pending(current);
}

/* End the command of a task that ends. hwt_uring_detach() lets the next command carry the pass. */
static void hwt_uring_drop(struct hwt_context *ctx, struct io_uring_cmd *cmd)
{
	struct hwt_entry *entry;

	xa_lock(&ctx->entries);
	entry = hwt_uring_pdu(cmd)->entry;
	if (entry && !hwt_pass_settle(entry)) {
		/* Returns NULL, because @carrying is still true. */
		hwt_uring_detach(entry, -ECANCELED);
		hwt_entry_cancel(entry);
	}
	xa_unlock(&ctx->entries);
}

/*
 * Task work that hwt_uring_carry() has queued: run a pass, unless the task ends, has to handle a
 * signal, or has to freeze. If @cmd was detached from its timeout in the meantime, then complete
 * @cmd, because hwt_uring_detach() has left this to the task work.
 */
static void hwt_uring_carried(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct file *file = get_file(cmd->file);
	struct hwt_context *ctx = file->private_data;
	struct hwt_commands *commands = &ctx->commands;
	bool detached, ends = hwt_uring_task_ends();
	u64 pause_ns = 0;

	if (ends)
		hwt_uring_drop(ctx, cmd);
	spin_lock_irq(&commands->lock);
	hwt_uring_pdu(cmd)->carrying = false;
	detached = !hwt_uring_pdu(cmd)->entry;
	if (!ends && hwt_uring_task_stops())
		pause_ns = hwt_uring_pause(commands->pause_ns);
	commands->pause_ns = pause_ns;
	spin_unlock_irq(&commands->lock);
	/* From here on, another task may complete and free @cmd, unless @cmd is detached. */
	if (!ends)
		hwt_uring_pass(ctx, pause_ns);
	if (detached)
		hwt_uring_complete(cmd, issue_flags);
	fput(file);
}

HWT_DEFINE_URING_WORK(hwt_uring_carry_work, hwt_uring_carried)

/*
 * Called by the interrupt of the context's timer. If commands are armed, queue task work for the
 * carrier, the oldest one: the task that has submitted it then runs a pass, for all commands.
 */
void hwt_uring_carry(struct hwt_context *ctx)
{
	struct hwt_commands *commands = &ctx->commands;
	struct io_uring_cmd *cmd;

	spin_lock(&commands->lock);
	cmd = commands->carrier;
	if (cmd && !hwt_uring_pdu(cmd)->carrying) {
		hwt_uring_pdu(cmd)->carrying = true;
		io_uring_cmd_complete_in_task(cmd, hwt_uring_carry_work);
	}
	spin_unlock(&commands->lock);
}

/* -- Commands ------------------------------------------------------------ */

/*
 * Carry out a command of io_uring, or io_uring's request to cancel a command (IO_URING_F_CANCEL).
 * Such a request has no valid submission entry. The program may change the submission entry of a
 * command at any time, so read each member once.
 *
 * Return 0 for a request to cancel. For a command, return -EIOCBQUEUED if hwt_uring_done()
 * completes the command, now or later, or a negative error if io_uring is to complete it.
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
	    READ_ONCE(cmd->sqe->buf_index) || READ_ONCE(cmd->sqe->personality) ||
	    READ_ONCE(cmd->sqe->file_index))
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
		*hwt_uring_pdu(cmd) = (struct hwt_uring_pdu) { };
		/* Mark the command before: once armed, the timeout may complete it at any time. */
		io_uring_cmd_mark_cancelable(cmd, issue_flags);
		ret = hwt_op_schedule(ctx, &op, hwt_context_offset(ctx), NULL, cmd);
		if (ret)
			break;
		/*
		 * If the timer expired before this command was attached, its interrupt may have
		 * found no carrier, so that no task has run a pass. Run one here.
		 */
		hwt_uring_pass(ctx, hwt_uring_task_stops() ? HWT_PAUSE_MIN_NS : 0);
		return -EIOCBQUEUED;
	case HWT_URING_MODIFY:
		ret = hwt_op_modify(ctx, &op, hwt_context_offset(ctx), NULL);
		break;
	case HWT_URING_CANCEL:
		ret = hwt_op_cancel(ctx, &op);
		break;
	default:
		return -ENOTTY;
	}
	/*
	 * Do not return the result: io_uring would repeat a command that returned -EAGAIN, and
	 * requires hwt_uring_done() for a command that was marked as cancelable.
	 */
	hwt_uring_done(cmd, min(ret, 0), issue_flags);
	return -EIOCBQUEUED;
}

#endif /* HWT_URING */
