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
#include "device/ring.h"
#include "device/time.h"

/* Queue an event for an entry that has no event. Both times are on the wheel's clock. */
void hwt_event_add(struct hwt_entry *entry, u8 kind, u64 due_ns, u64 now_ns)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	entry->kind = kind;
	entry->due_ns = due_ns;
	entry->fired_ns = now_ns;
	list_add_tail(&entry->ready, &ctx->ready);
	ctx->stats.events++;
	if (ctx->rings)
		hwt_rings_tell(ctx);
}

void hwt_event_drop(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	if (!hwt_entry_has_event(entry))
		return;
	list_del_init(&entry->ready);
	entry->ctx->stats.events--;
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
		.kind		= entry->kind,
		.flags		= entry->final ? HWT_EVENT_LAST : 0,
	};
}

/* Remove an event that was copied to the program and, if it was the timeout's last, the entry. */
void hwt_event_taken(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	ctx->stats.read++;
	if (entry->final) {
		hwt_entry_remove(entry);
		return;
	}
	hwt_event_drop(entry);
	/* After a stop, only the entry of HWT_EVENT_CLOCK_SET gets here: all others are final. */
	hwt_event_wake_end(ctx);
}

/* Wake the tasks that wait for events of a context. Called without entries.xa_lock. */
void hwt_event_wake(struct hwt_context *ctx)
{
	wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
}

/*
 * After a stop, wake the waiting tasks once no event is left. Only then does hwt_poll() report
 * EPOLLHUP, and without this wake-up a waiting task would not call hwt_poll() again.
 */
void hwt_event_wake_end(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	if (ctx->stopped && list_empty(&ctx->ready))
		wake_up_interruptible_poll(&ctx->wait,
					   EPOLLIN | EPOLLRDNORM | EPOLLHUP);
}

/* -- HWT_EVENT_CLOCK_SET ------------------------------------------------- */

/*
 * A private wheel calls this after its clock was set by @jump_ns. @arg is the entry of
 * HWT_EVENT_CLOCK_SET: add this event or, if the last one is still unread, update that one.
 */
void hwt_event_clock_set(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	struct hwt_entry *entry = arg;
	struct hwt_context *ctx = entry->ctx;
	u64 now = hwt_wheel_now(wheel);
	bool wake = false;

	xa_lock(&ctx->entries);
	if (hwt_entry_has_event(entry)) {
		/* Set @due_ns to what the clock would show now without the reported changes. */
		entry->due_ns += now - jump_ns - entry->fired_ns;
		entry->fired_ns = now;
		entry->overruns++;
	} else if (!ctx->closing && ctx->clock_set == entry) {
		/* HWT_IOC_SETUP sets ctx->clock_set when it succeeds. Add no event before. */
		hwt_event_add(entry, HWT_EVENT_CLOCK_SET, now - jump_ns, now);
		wake = true;
	}
	xa_unlock(&ctx->entries);
	if (wake)
		hwt_event_wake(ctx);
}

/* Free @entry, which is NULL or belongs to HWT_EVENT_CLOCK_SET. No wheel uses it any more. */
void hwt_event_free_clock_set(struct hwt_entry *entry)
{
	if (!entry)
		return;
	xa_lock(&entry->ctx->entries);
	hwt_event_drop(entry);
	xa_unlock(&entry->ctx->entries);
	hwt_entry_put(entry);
}

/* -- read and poll ------------------------------------------------------- */

static bool hwt_event_readable(const struct hwt_context *ctx)
{
	return !list_empty(&ctx->ready) || READ_ONCE(ctx->stopped) ||
	       READ_ONCE(ctx->rings);
}

/*
 * Move the first event to the reader. Hold entries.xa_lock from the copy to the removal, so that no
 * other task withdraws the event in between. Disable page faults, because this lock is a spinlock.
 * Return 1 if an event was moved, 0 if there is no event or rings are mapped, or -EFAULT if the
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
	/* With mapped rings, only HWT_IOC_ENTER takes events from the list. */
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

/* Number of bytes that a reader gets between two checks for a signal: 64 events. */
#define HWT_READ_STEP	(64 * sizeof(struct hwt_event))

/* Move events to the reader until none is left, the buffer is full, or a signal comes. */
static ssize_t hwt_event_read(struct hwt_context *ctx, struct iov_iter *to)
{
	s64 offset = hwt_context_offset(ctx);
	unsigned int faults = 0;
	ssize_t total = 0;
	int ret;

	while (iov_iter_count(to) >= sizeof(struct hwt_event)) {
		ret = hwt_event_move(ctx, to, offset);
		if (!ret)
			break;
		if (ret > 0) {
			total += sizeof(struct hwt_event);
			faults = 0;
		} else if (++faults == 8 ||
			   fault_in_iov_iter_writeable(to, sizeof(struct hwt_event))) {
			/* Memory tags may make each copy fault: give up after 8 faults in a row. */
			return total ?: -EFAULT;
		}
		cond_resched();
		/*
		 * Look for a signal only after every 64 events: task work of io_uring also makes
		 * signal_pending() true, and must not end each call after one event.
		 */
		if (total && !(total % HWT_READ_STEP) && signal_pending(current))
			break;
	}
	return total;
}

ssize_t hwt_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *file = iocb->ki_filp;
	struct hwt_context *ctx = file->private_data;
	bool stopped;
	ssize_t ret;

	if (iov_iter_count(to) < sizeof(struct hwt_event))
		return -EINVAL;
	for (;;) {
		/* No acquire is needed, because the pointer is only compared with NULL. */
		if (READ_ONCE(ctx->rings))
			return -EBUSY;
		/*
		 * Barrier read.stopped, pairs with stop.stopped in hwt_context_stop(): if
		 * ctx->stopped is set, hwt_event_read() finds all events. READ_ONCE() would do:
		 * hwt_event_read() takes entries.xa_lock, under which ctx->stopped is set.
		 */
		stopped = smp_load_acquire(&ctx->stopped);
		ret = hwt_event_read(ctx, to);
		if (ret)
			return ret;
		/* After a stop, either no event is left, or rings have just been mapped. */
		if (stopped)
			return READ_ONCE(ctx->rings) ? -EBUSY : 0;
		if ((file->f_flags & O_NONBLOCK) || (iocb->ki_flags & IOCB_NOWAIT))
			return -EAGAIN;
		ret = wait_event_interruptible(ctx->wait, hwt_event_readable(ctx));
		if (ret)
			return ret;
	}
}

__poll_t hwt_poll(struct file *file, poll_table *wait)
{
	struct hwt_context *ctx = file->private_data;
	bool stopped;

	/*
	 * Either this task sees a new event below, or hwt_event_wake() finds this task in the wait
	 * queue: the lock of the queue ensures this (tests/verify/litmus/poll-wake).
	 */
	poll_wait(file, &ctx->wait, wait);
	/*
	 * Barrier poll.stopped, pairs with stop.stopped in hwt_context_stop(): a task that sees
	 * ctx->stopped set sees all earlier events in the list or the ring. Without the acquire,
	 * this task, which takes no lock, could report the end of the file while events are left.
	 */
	stopped = smp_load_acquire(&ctx->stopped);
	if (!list_empty(&ctx->ready) || hwt_rings_ready(ctx))
		return EPOLLIN | EPOLLRDNORM;
	return stopped ? EPOLLIN | EPOLLRDNORM | EPOLLHUP : 0;
}
