// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: events, read() and poll()
 */
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "hwt.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/pass.h"
#include "device/ring.h"

/*
 * Queue an event for an entry, or update the unread one. Both times are on the context's clock.
 * Return true if the event is new.
 */
bool hwt_event_add(struct hwt_entry *entry, u64 due_ns, u64 now_ns)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	entry->due_ns = due_ns;
	entry->fired_ns = now_ns;
	if (hwt_entry_has_event(entry))
		return false;
	list_add_tail(&entry->ready, &ctx->ready);
	ctx->stats.events++;
	if (ctx->rings)
		hwt_rings_tell(ctx);
	return true;
}

void hwt_event_drop(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	if (!hwt_entry_has_event(entry))
		return;
	list_del_init(&entry->ready);
	entry->ctx->stats.events--;
	if (entry->ctx->rings)
		hwt_rings_tell(entry->ctx);
	if (hwt_entry_periodic(entry)) {
		entry->missed += entry->overruns;
		entry->overruns = 0;
	}
}

void hwt_event_fill(const struct hwt_entry *entry, struct hwt_event *event, s64 offset)
{
	*event = (struct hwt_event) {
		.id		= entry->id,
		.user_data	= hwt_entry_user_data(entry),
		.deadline_ns	= hwt_time_to_user(entry->due_ns, offset),
		.fired_ns	= hwt_time_to_user(entry->fired_ns, offset),
		.overruns	= hwt_entry_periodic(entry) ? entry->overruns : 0,
		.kind		= entry->generation ? HWT_EVENT_EXPIRED : HWT_EVENT_CLOCK_SET,
		.flags		= entry->final ? HWT_EVENT_LAST : 0,
		.generation	= entry->generation,
	};
}

/* Remove an event that was copied. If the timeout will not fire again, remove its entry, too. */
void hwt_event_taken(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	entry->ctx->stats.read++;
	if (entry->final)
		hwt_entry_remove(entry);
	else
		hwt_event_drop(entry);
}

/* Wake the tasks that wait for events of a context. Called without entries.xa_lock. */
void hwt_event_wake(struct hwt_context *ctx)
{
	wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
}

/* -- HWT_EVENT_CLOCK_SET ------------------------------------------------- */

/*
 * CLOCK_REALTIME was set, and has moved by @jump_ns. If the program asked for HWT_EVENT_CLOCK_SET,
 * add this event, or update the unread one. The caller wakes readers.
 */
void hwt_event_clock_set(struct hwt_context *ctx, u64 now_ns, s64 jump_ns)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_entry *entry = ctx->clock_set;
	u64 due_ns = now_ns - jump_ns;

	if (!entry)
		return;
	/*
	 * Subtract earlier changes, too, if the unread event reports them. So due_ns is the time
	 * that the clock would show now without any of these changes.
	 */
	if (hwt_entry_has_event(entry))
		due_ns += entry->due_ns - entry->fired_ns;
	entry->overruns += !hwt_event_add(entry, due_ns, now_ns);
}

/* Called by a wheel after its clock was set. @arg is the context. */
void hwt_event_wheel_clock_set(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	struct hwt_context *ctx = arg;

	xa_lock(&ctx->entries);
	hwt_event_clock_set(ctx, hwt_wheel_now(wheel), jump_ns);
	xa_unlock(&ctx->entries);
	hwt_event_wake(ctx);
}

/* -- read and poll ------------------------------------------------------- */

/*
 * Move the first event to the reader. The lock is held from the copy to the removal, so that no
 * other task withdraws the event in between. The lock is a spinlock, so page faults are disabled.
 * Return 1 if an event was moved, 0 if there is no event or if rings are mapped, -EFAULT if the
 * copy has failed. After -EFAULT, the event is still in the list.
 */
static int hwt_event_move(struct hwt_context *ctx, struct iov_iter *to, s64 offset)
{
	struct hwt_event event;
	struct hwt_entry *entry;
	size_t copied;
	int ret = 0;

	xa_lock(&ctx->entries);
	entry = list_first_entry_or_null(&ctx->ready, struct hwt_entry, ready);
	/* With mapped rings, events are only moved to the ring. */
	if (!entry || ctx->rings)
		goto out;
	hwt_event_fill(entry, &event, offset);
	pagefault_disable();
	copied = copy_to_iter(&event, sizeof(event), to);
	pagefault_enable();
	if (copied != sizeof(event)) {
		iov_iter_revert(to, copied);
		ret = -EFAULT;
		goto out;
	}
	hwt_event_taken(entry);
	ret = 1;
out:
	xa_unlock(&ctx->entries);
	return ret;
}

/*
 * Number of bytes read between two checks for a signal: 64 events. Task work of io_uring also makes
 * signal_pending() true, so with a check after each event, calls could end after one event each.
 */
#define HWT_READ_STEP	(64 * sizeof(struct hwt_event))

/*
 * End a read() early, after a signal or a fault. A program that uses EPOLLET takes a short read for
 * the end of the events, and waits. So if events are left, wake the tasks that wait.
 */
static ssize_t hwt_event_read_ends(struct hwt_context *ctx, ssize_t total, int error)
{
	if (!total)
		return error;
	if (hwt_pass_due(ctx) || !list_empty(&ctx->ready))
		wake_up_interruptible(&ctx->wait);
	return total;
}

/*
 * Move events to the reader until no event is left, the buffer is full, or a signal comes. If the
 * list of events is empty and timeouts are due, run a pass. Each pass arms the timer for the
 * timeouts that are left, so a program that uses EPOLLET is told of the next event.
 */
static ssize_t hwt_event_read(struct hwt_context *ctx, struct iov_iter *to)
{
	s64 offset = hwt_context_offset(ctx);
	unsigned int faults = 0;
	ssize_t total = 0;
	int ret;

	while (iov_iter_count(to) >= sizeof(struct hwt_event)) {
		/*
		 * If a pass stops early without an event, return. If the program then waits, the
		 * timer, which hwt_pass_pause() has armed, wakes it to continue the pass.
		 */
		if (list_empty(&ctx->ready) && hwt_pass_due(ctx) && hwt_pass_run(ctx, false) &&
		    list_empty(&ctx->ready))
			break;
		ret = hwt_event_move(ctx, to, offset);
		/* Go on if another reader has taken the events of this pass, but more are due. */
		if (!ret && (READ_ONCE(ctx->rings) ||
			     (!hwt_pass_due(ctx) && list_empty(&ctx->ready))))
			break;
		/* Ignore task work of io_uring: a read would end with -EINTR without a signal. */
		if (!ret && task_sigpending(current))
			return hwt_event_read_ends(ctx, total, -ERESTARTSYS);
		if (!ret)
			continue;
		if (ret > 0) {
			total += sizeof(struct hwt_event);
			faults = 0;
		} else if (++faults == 8 ||
			   fault_in_iov_iter_writeable(to, sizeof(struct hwt_event))) {
			/* Wrong memory tags make every copy fault, so give up after 8 in a row. */
			return hwt_event_read_ends(ctx, total, -EFAULT);
		}
		cond_resched();
		if (total && !(total % HWT_READ_STEP) && signal_pending(current))
			return hwt_event_read_ends(ctx, total, 0);
	}
	return total;
}

ssize_t hwt_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *file = iocb->ki_filp;
	struct hwt_context *ctx = file->private_data;
	ssize_t ret;

	if (iov_iter_count(to) < sizeof(struct hwt_event))
		return -EINVAL;
	for (;;) {
		/* No acquire is needed, because the pointer is only compared with NULL. */
		if (READ_ONCE(ctx->rings))
			return -EBUSY;
		ret = hwt_event_read(ctx, to);
		if (ret)
			return ret;
		if ((file->f_flags & O_NONBLOCK) || (iocb->ki_flags & IOCB_NOWAIT))
			return -EAGAIN;
		/* The wait below looks at signals only if no pass is due. */
		if (task_sigpending(current))
			return -ERESTARTSYS;
		/* Check the list second: if another task has run the pass, its events are there. */
		ret = wait_event_interruptible(ctx->wait, hwt_pass_due(ctx) ||
					       !list_empty(&ctx->ready) || READ_ONCE(ctx->rings));
		if (ret)
			return ret;
	}
}

__poll_t hwt_poll(struct file *file, poll_table *wait)
{
	struct hwt_context *ctx = file->private_data;
	bool due = false;

	/*
	 * Either this task sees a new event below, or hwt_event_wake() finds this task in the wait
	 * queue: the lock of the queue ensures this (tests/verify/litmus/poll-wake).
	 */
	poll_wait(file, &ctx->wait, wait);
	/*
	 * Fire what is due, and move events to the ring: a program that polls needs no other call.
	 * A kernel thread that polls for a program (asynchronous I/O) only reports that a pass is
	 * due: a pass has to take CPU time of the program's own tasks.
	 */
	if (current->flags & PF_KTHREAD)
		due = hwt_pass_due(ctx);
	else if (!READ_ONCE(ctx->rings))
		hwt_pass_catch_up(ctx, false);
	else if (hwt_rings_pass_due(ctx) || !list_empty(&ctx->ready))
		hwt_rings_refill(ctx, 0, HWT_REFILL_STEPS, KTIME_MAX);
	if (!list_empty(&ctx->ready) || hwt_rings_ready(ctx) || due)
		return EPOLLIN | EPOLLRDNORM;
	return 0;
}
