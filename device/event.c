// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: events, and how programs read them
 */
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "hwt.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/ring.h"

/*
 * An entry has something to tell. @due_ns: when it was due, @now_ns: it came up; on the wheel's
 * clock.
 */
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
		hwt_rings_fill(ctx);
}

/* Read or withdrawn. */
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
		.user_data	= entry->user_data,
		.deadline_ns	= hwt_time_to_user(entry->due_ns, offset),
		.fired_ns	= hwt_time_to_user(entry->fired_ns, offset),
		.overruns	= hwt_entry_periodic(entry) ? entry->overruns : 0,
		.kind		= entry->kind,
		.flags		= entry->ended ? HWT_EVENT_LAST : 0,
	};
}

/* The program has it now. A one-shot's id ends, and the entry may be gone. */
void hwt_event_taken(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	ctx->stats.read++;
	if (entry->ended) {
		hwt_entry_remove(entry);
		return;
	}
	hwt_event_drop(entry);
	/* It may have been the clock's, which never ends. */
	hwt_context_wake_end(ctx);
}

/* There is a new event. Without the lock. */
void hwt_context_wake(struct hwt_context *ctx)
{
	wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
}

/*
 * After the stop, the last event has gone: tell those who wait for the end of the file. They
 * may have been told before only that there are events, and look for nothing else.
 */
void hwt_context_wake_end(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	if (ctx->stopped && list_empty(&ctx->ready))
		wake_up_interruptible_poll(&ctx->wait,
					   EPOLLIN | EPOLLRDNORM | EPOLLHUP);
}

/* The clock of a context was set. */
void hwt_context_clock_set(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	struct hwt_entry *entry = arg;
	struct hwt_context *ctx = entry->ctx;
	u64 now = hwt_wheel_now(wheel);
	bool wake = false;

	xa_lock(&ctx->entries);
	if (hwt_entry_has_event(entry)) {
		/* It goes on by what has really passed since the last one, as if none was set. */
		entry->due_ns += now - jump_ns - entry->fired_ns;
		entry->fired_ns = now;
		entry->overruns++;
	} else if (!ctx->closing && ctx->clock_set == entry) {
		/* That is, the set-up has succeeded. */
		hwt_event_add(entry, HWT_EVENT_CLOCK_SET, now - jump_ns, now);
		wake = true;
	}
	xa_unlock(&ctx->entries);
	if (wake)
		hwt_context_wake(ctx);
}

/* -- read and poll ------------------------------------------------------- */

static bool hwt_context_readable(const struct hwt_context *ctx)
{
	return !list_empty(&ctx->ready) || READ_ONCE(ctx->stopped) ||
	       READ_ONCE(ctx->rings);
}

/*
 * Move the first event to the reader, in one piece under the lock: what was not copied
 * whole is still there, and nobody can withdraw what was. So no page fault is served
 * in here.
 *
 * Return: 1; 0 if there is no event; -EFAULT if it could not be copied.
 */
static int hwt_event_move(struct hwt_context *ctx, struct iov_iter *to, s64 offset)
{
	struct hwt_event event;
	struct hwt_entry *entry;
	size_t copied;
	int ret = 0;

	xa_lock(&ctx->entries);
	entry = list_first_entry_or_null(&ctx->ready, struct hwt_entry, ready);
	/* Once there are rings, what waits for room in there is not for readers. */
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

/* Bytes that are read before the next look for a signal: 64 events. */
#define HWT_READ_STEP	(64 * sizeof(struct hwt_event))

/* Return: bytes read, or -EFAULT if not even one event could be. */
static ssize_t hwt_events_read(struct hwt_context *ctx, struct iov_iter *to)
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
			/*
			 * A page that is in may still refuse to be written (memory
			 * tags): do not try for ever.
			 */
			return total ?: -EFAULT;
		}
		cond_resched();
		/*
		 * The buffer may have room for millions. Not at each event: what io_uring
		 * has a task do looks like a signal, too.
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
		/* Only whether there are any: nothing is read through it. */
		if (READ_ONCE(ctx->rings))
			return -EBUSY;
		/*
		 * Barrier read.stopped (spare), pairs with stop.stopped in hwt_context_stop(): a
		 * task that sees the stop finds the last events below. The lock that
		 * hwt_events_read() takes would do.
		 */
		stopped = smp_load_acquire(&ctx->stopped);
		ret = hwt_events_read(ctx, to);
		if (ret || stopped)
			return ret;
		if ((file->f_flags & O_NONBLOCK) || (iocb->ki_flags & IOCB_NOWAIT))
			return -EAGAIN;
		ret = wait_event_interruptible(ctx->wait, hwt_context_readable(ctx));
		if (ret)
			return ret;
	}
}

__poll_t hwt_poll(struct file *file, poll_table *wait)
{
	struct hwt_context *ctx = file->private_data;
	bool stopped;

	poll_wait(file, &ctx->wait, wait);
	/*
	 * Barrier poll.mb, pairs with event.sleeper in hwt_context_wake_shared(): that sees the
	 * task wait, or the event is seen here. Not all kernels have a barrier in poll_wait().
	 */
	smp_mb();

	/*
	 * Barrier poll.stopped, pairs with stop.stopped in hwt_context_stop(): a task that sees
	 * the stop finds the last events below, where no lock is taken.
	 */
	stopped = smp_load_acquire(&ctx->stopped);
	if (!list_empty(&ctx->ready) || hwt_rings_ready(ctx))
		return EPOLLIN | EPOLLRDNORM;
	return stopped ? EPOLLIN | EPOLLRDNORM | EPOLLHUP : 0;
}

