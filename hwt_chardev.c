// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: timeouts for programs
 *
 * A client of hwt.h like any other module. hwt_uapi.h says what programs see.
 *
 * A timeout of a program is a struct hwt_entry. It is in up to three places:
 *
 *   the context's table   from HWT_IOC_SCHEDULE until its id ends
 *   the wheel             while it is held, as hwt.h calls it
 *   the list of events    while it has one that was not read
 *
 * The table and the hold each have a reference to it. Whatever happens to an entry,
 * firing included, happens under the lock of its context's table, so that everyone
 * agrees on what came first. The lock is a plain spinlock: the callback runs in
 * process context as the system calls do.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/compat.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/poll.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>

#include "hwt.h"
#include "hwt_internal.h"
#include "hwt_uapi.h"

/* For what grows at a program's will: at its cgroup's limit, fail and kill nobody. */
#define HWT_GFP_USER		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* Entries handled in one go under the lock. */
#define HWT_ENTRY_STEP		256

#define HWT_TIMEOUTS_LIMIT	1073741824U

static unsigned int hwt_max_timeouts = 1U << 20;
module_param_named(max_timeouts, hwt_max_timeouts, uint, 0444);
MODULE_PARM_DESC(max_timeouts, "Most timeouts of one open /dev/hwt (default 1048576)");

/**
 * struct hwt_context - an open file
 * @entries:    the timeouts by slot, the lower half of their ids. Its lock (xa_lock)
 *              protects all that follows but where something else is said, and the
 *              entries.
 * @generation: upper half of the latest id; never 0
 * @fixed:      @wheel stays as it is: it is in use, or private
 * @private:    @wheel is the context's own
 * @wheel:      where new timeouts go. Changes at most once, while there are none.
 * @clock:      its clock, as a clockid_t. May be read without the lock.
 * @tick_ns:    its tick
 * @closing:    being stopped: nothing may be scheduled any more
 * @stopped:    the stop is complete: no more events will come up. May be read without
 *              the lock, with acquire; pairs with the release in hwt_ioctl_stop().
 * @ready:      entries with an event, oldest first. May be looked at for emptiness
 *              without the lock.
 * @clock_set:  an entry of its own, not in the table, for the event that says that the
 *              clock was set; NULL: nobody wants it. Changes at most once, with @wheel.
 * @stats:      what HWT_IOC_STATS tells
 * @refs:       the file and each entry have one
 * @wait:       readers and pollers
 */
struct hwt_context {
	struct xarray		entries;
	u32			generation;
	bool			fixed;
	bool			private;
	struct hwt_wheel	*wheel;
	int			clock;
	u64			tick_ns;
	bool			closing;
	bool			stopped;
	struct list_head	ready;
	struct hwt_entry	*clock_set;
	struct hwt_stats_args	stats;
	refcount_t		refs;
	wait_queue_head_t	wait;
};

/**
 * struct hwt_entry - a timeout of a program
 * @ctx:       its context
 * @ready:     in its context's list if it has an event
 * @id:        its id
 * @user_data: what the program knows it by
 * @due_ns:    of the event: when it was due
 * @fired_ns:  of the event: when it came up
 * @refs:      the table's and the hold's
 * @mode:      HWT_MODE_
 * @kind:      of the event: HWT_EVENT_
 * @ended:     no event will come up any more: it fired for good, was stopped or
 *             cancelled
 * @timeout:   the timeout of a one-shot, which is allocated up to here only
 * @periodic:  the same, of a periodic one
 * @period_ns: its period
 * @overruns:  of the event: periods without an event of their own
 * @missed:    those of events that are not there any more
 *
 * All but @refs and the timeout is constant or protected by the table's lock. A one-shot
 * is two cache lines, the second of which is the timeout.
 */
struct hwt_entry {
	struct hwt_context	*ctx;
	struct list_head	ready;
	u64			id;
	u64			user_data;
	u64			due_ns;
	u64			fired_ns;
	refcount_t		refs;
	u8			mode;
	u8			kind;
	bool			ended;
	union {
		struct hwt_timeout	timeout;
		struct hwt_periodic	periodic;
	};
	u64			period_ns;
	u64			overruns;
	u64			missed;
};

static struct kmem_cache *hwt_one_shot_cache;
static struct kmem_cache *hwt_periodic_cache;

/* The wheel that contexts share: from the first open on, until the module goes. */
static struct hwt_wheel *hwt_shared_wheel;
static DEFINE_MUTEX(hwt_shared_lock);

/* Contexts that are there, those that are closed but still held included. */
static atomic_t hwt_contexts = ATOMIC_INIT(0);

/* -- References ---------------------------------------------------------- */

static void hwt_context_put(struct hwt_context *ctx)
{
	if (!refcount_dec_and_test(&ctx->refs))
		return;
	xa_destroy(&ctx->entries);
	kfree(ctx);
	if (atomic_dec_and_test(&hwt_contexts))
		wake_up_var(&hwt_contexts);
}

static bool hwt_entry_periodic(const struct hwt_entry *entry)
{
	return entry->mode != HWT_MODE_ONE_SHOT;
}

static void hwt_entry_put(struct hwt_entry *entry)
{
	struct hwt_context *ctx = entry->ctx;

	if (!refcount_dec_and_test(&entry->refs))
		return;
	kmem_cache_free(hwt_entry_periodic(entry) ? hwt_periodic_cache :
						    hwt_one_shot_cache, entry);
	hwt_context_put(ctx);
}

/* -- Time ---------------------------------------------------------------- */

/* What the caller's time namespace adds to the context's clock. */
static s64 hwt_context_offset(const struct hwt_context *ctx)
{
	struct timespec64 offset = {};

	switch (READ_ONCE(ctx->clock)) {
	case CLOCK_MONOTONIC:
		timens_add_monotonic(&offset);
		break;
	case CLOCK_BOOTTIME:
		timens_add_boottime(&offset);
		break;
	}
	return timespec64_to_ns(&offset);
}

/*
 * A deadline of the caller's time namespace, where time may have begun before the clock's
 * zero. Of a @rate (ns, or 0), the phase is kept.
 */
static u64 hwt_time_from_user(u64 ns, s64 offset, u64 rate)
{
	u64 missed;
	s64 host;

	if (ns > S64_MAX || check_sub_overflow((s64)ns, offset, &host))
		return HWT_NEVER;
	if (host >= 0)
		return host;
	if (!rate)
		return 0;
	div64_u64_rem(-(host + 1), rate, &missed);
	return rate - 1 - missed;
}

static u64 hwt_time_to_user(u64 ns, s64 offset)
{
	s64 user;

	if (ns == HWT_NEVER || check_add_overflow((s64)ns, offset, &user))
		return HWT_NEVER;
	return max_t(s64, user, 0);
}

/* The tick in its word: what it is armed for, or last was. */
static u64 hwt_entry_tick_ns(const struct hwt_entry *entry)
{
	u64 tick = hwt_timeout_word(&entry->timeout) >> HWT_TICK_SHIFT;

	return tick == HWT_TICK_NEVER ? HWT_NEVER : tick * entry->ctx->tick_ns;
}

/*
 * When it is due, or was when it last was armed. A periodic one whose event has come up may
 * not be armed for its next deadline yet; but before its event comes up the next deadline is
 * not to be told, and not even known.
 */
static u64 hwt_entry_due(const struct hwt_entry *entry)
{
	u64 next = hwt_deadline(&entry->timeout), due = hwt_entry_tick_ns(entry);

	return next && entry->due_ns == due ? next : due;
}

/* The same as the time that is left. */
static u64 hwt_entry_remaining(const struct hwt_entry *entry)
{
	u64 due = hwt_entry_due(entry), now = hwt_wheel_now(entry->ctx->wheel);

	if (entry->ended)
		return 0;
	if (due == HWT_NEVER)
		return HWT_NEVER;
	return due > now ? due - now : 0;
}

/* -- Events -------------------------------------------------------------- */

static bool hwt_entry_has_event(const struct hwt_entry *entry)
{
	return !list_empty(&entry->ready);
}

static u32 hwt_entry_state(const struct hwt_entry *entry)
{
	return (entry->ended ? 0 : HWT_STATE_PENDING) |
	       (hwt_entry_has_event(entry) ? HWT_STATE_EVENT : 0);
}

static void hwt_event_add(struct hwt_entry *entry, u8 kind, u64 due, u64 now)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	entry->kind = kind;
	entry->due_ns = due;
	entry->fired_ns = now;
	list_add_tail(&entry->ready, &ctx->ready);
	ctx->stats.events++;
}

/* Read or withdrawn. */
static void hwt_event_drop(struct hwt_entry *entry)
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

static void hwt_event_fill(const struct hwt_entry *entry, struct hwt_event *event,
			   s64 offset)
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

/*
 * After the stop, the last event has gone: tell those who wait for the end of the file. They
 * may have been told before only that there are events, and look for nothing else.
 */
static void hwt_context_wake_end(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	if (ctx->stopped && list_empty(&ctx->ready))
		wake_up_interruptible_poll(&ctx->wait,
					   EPOLLIN | EPOLLRDNORM | EPOLLHUP);
}

/* The id ends. Drops the table's reference. */
static void hwt_entry_remove(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	hwt_event_drop(entry);
	entry->ended = true;
	__xa_erase(&ctx->entries, lower_32_bits(entry->id));
	ctx->stats.timeouts--;
	hwt_context_wake_end(ctx);
	hwt_entry_put(entry);
}

/* Its time has come. Return: there is a new event. */
static bool hwt_entry_fire(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;
	u64 due = hwt_entry_tick_ns(entry), now = hwt_wheel_now(ctx->wheel), overruns;

	ctx->stats.expired++;
	if (!hwt_entry_periodic(entry)) {
		entry->ended = true;
		hwt_event_add(entry, HWT_EVENT_EXPIRED, due, now);
		return true;
	}
	overruns = hwt_overruns(&entry->periodic);
	if (!hwt_entry_has_event(entry)) {
		entry->overruns = overruns;
		ctx->stats.overruns += overruns;
		hwt_event_add(entry, HWT_EVENT_EXPIRED, due, now);
		return true;
	}
	entry->due_ns = due;
	entry->fired_ns = now;
	entry->overruns += overruns + 1;
	ctx->stats.overruns += overruns + 1;
	return false;
}

static void hwt_entry_expire(struct hwt_timeout *timeout)
{
	struct hwt_entry *entry = container_of(timeout, struct hwt_entry, timeout);
	struct hwt_context *ctx = entry->ctx;
	bool wake = false;

	xa_lock(&ctx->entries);
	/*
	 * A cancel or stop, or a modify, which has armed it again, may have taken the
	 * lock first. Then this firing never was.
	 */
	if (!entry->ended && !(hwt_timeout_word(timeout) & HWT_F_ARMED))
		wake = hwt_entry_fire(entry);
	xa_unlock(&ctx->entries);
	if (wake)
		wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
}

static void hwt_entry_release(struct hwt_timeout *timeout)
{
	hwt_entry_put(container_of(timeout, struct hwt_entry, timeout));
}

static const struct hwt_ops hwt_entry_ops = {
	.expire		= hwt_entry_expire,
	.release	= hwt_entry_release,
};

/* The clock of a context was set. */
static void hwt_context_clock_set(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	struct hwt_entry *entry = arg;
	struct hwt_context *ctx = entry->ctx;
	u64 now = hwt_wheel_now(wheel);
	bool wake = false;

	xa_lock(&ctx->entries);
	if (hwt_entry_has_event(entry)) {
		/* What has passed since the last time passes on both. */
		entry->due_ns += now - jump_ns - entry->fired_ns;
		entry->fired_ns = now;
		entry->overruns++;
	} else if (!ctx->closing) {
		hwt_event_add(entry, HWT_EVENT_CLOCK_SET, now - jump_ns, now);
		wake = true;
	}
	xa_unlock(&ctx->entries);
	if (wake)
		wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
}

/* -- read and poll ------------------------------------------------------- */

static bool hwt_context_readable(const struct hwt_context *ctx)
{
	return !list_empty(&ctx->ready) || READ_ONCE(ctx->stopped);
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
	if (!entry)
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
	ctx->stats.read++;
	if (entry->ended) {
		hwt_entry_remove(entry);
	} else {
		hwt_event_drop(entry);
		/* It may have been the clock's, which never ends. */
		hwt_context_wake_end(ctx);
	}
	ret = 1;
out:
	xa_unlock(&ctx->entries);
	return ret;
}

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
	}
	return total;
}

static ssize_t hwt_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *file = iocb->ki_filp;
	struct hwt_context *ctx = file->private_data;
	bool stopped;
	ssize_t ret;

	if (iov_iter_count(to) < sizeof(struct hwt_event))
		return -EINVAL;
	for (;;) {
		/* Before the look at the events: after the stop no more come up. */
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

static __poll_t hwt_poll(struct file *file, poll_table *wait)
{
	struct hwt_context *ctx = file->private_data;
	bool stopped;

	poll_wait(file, &ctx->wait, wait);

	/* As in hwt_read_iter(). */
	stopped = smp_load_acquire(&ctx->stopped);
	if (!list_empty(&ctx->ready))
		return EPOLLIN | EPOLLRDNORM;
	return stopped ? EPOLLIN | EPOLLRDNORM | EPOLLHUP : 0;
}

/* -- ioctls -------------------------------------------------------------- */

/* Any structure of arguments. All start alike. */
union hwt_args {
	struct {
		u32			size;
		u32			flags;
	};
	struct hwt_info_args		info;
	struct hwt_setup_args		setup;
	struct hwt_schedule_args	schedule;
	struct hwt_modify_args		modify;
	struct hwt_cancel_args		cancel;
	struct hwt_get_args		get;
	struct hwt_stop_args		stop;
	struct hwt_stats_args		stats;
	struct hwt_list_args		list;
};

static struct hwt_entry *hwt_entry_find(struct hwt_context *ctx, u64 id)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_entry *entry = xa_load(&ctx->entries, lower_32_bits(id));

	return entry && entry->id == id ? entry : NULL;
}

static int hwt_ioctl_info(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_info_args *info = &args->info;
	struct hwt_wheel_params params;

	if (info->flags || info->reserved)
		return -EINVAL;
	xa_lock(&ctx->entries);
	hwt_wheel_get_params(ctx->wheel, &params);
	info->clock = ctx->clock;
	info->now_ns = hwt_time_to_user(hwt_wheel_now(ctx->wheel),
					hwt_context_offset(ctx));
	xa_unlock(&ctx->entries);

	info->version = HWT_ABI_VERSION;
	info->tick_ns = params.tick_ns;
	info->ticks_per_wheel = params.ticks_per_wheel;
	info->levels = params.levels;
	info->max_timeouts = hwt_max_timeouts;
	info->max_pending = params.max_pending;
	info->features = HWT_FEATURE_SETUP | HWT_FEATURE_BOOTTIME |
			 HWT_FEATURE_REALTIME | HWT_FEATURE_LIST;
	info->event_size = sizeof(struct hwt_event);
	return 0;
}

/* Arm an entry, for the first time or again. Takes the hold's reference. */
static int hwt_entry_arm(struct hwt_entry *entry, u64 time_ns, u64 period_ns,
			 u64 slack_ns, bool absolute)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	enum hwt_repeat repeat = entry->mode == HWT_MODE_FIXED_RATE ?
				 HWT_FIXED_RATE : HWT_FIXED_DELAY;
	int ret;

	if (absolute)
		time_ns = hwt_time_from_user(time_ns, hwt_context_offset(entry->ctx),
					     entry->mode == HWT_MODE_FIXED_RATE ?
					     period_ns : 0);
	refcount_inc(&entry->refs);
	if (!hwt_entry_periodic(entry))
		ret = absolute ?
			hwt_schedule_at_slack(&entry->timeout, time_ns, slack_ns) :
			hwt_schedule_slack(&entry->timeout, time_ns, slack_ns);
	else
		ret = absolute ?
			hwt_schedule_periodic_at(&entry->periodic, time_ns, period_ns,
						 repeat) :
			hwt_schedule_periodic(&entry->periodic, time_ns, period_ns,
					      repeat);
	/* The table's reference is still there. */
	if (ret < 0 || (ret & HWT_WAS_HELD))
		refcount_dec(&entry->refs);
	return min(ret, 0);
}

static struct hwt_entry *hwt_entry_alloc(struct hwt_context *ctx,
					 const struct hwt_schedule_args *args)
{
	bool periodic = args->mode != HWT_MODE_ONE_SHOT;
	struct hwt_entry *entry;

	entry = kmem_cache_alloc(periodic ? hwt_periodic_cache : hwt_one_shot_cache,
				 HWT_GFP_USER);
	if (!entry)
		return NULL;
	refcount_inc(&ctx->refs);
	entry->ctx = ctx;
	INIT_LIST_HEAD(&entry->ready);
	entry->user_data = args->user_data;
	entry->due_ns = HWT_NEVER;
	refcount_set(&entry->refs, 1);
	entry->mode = args->mode;
	entry->kind = 0;
	entry->ended = false;
	/* Its wheel is known, and stays, once it is in the table. */
	hwt_timeout_init(&entry->timeout, NULL, &hwt_entry_ops);
	if (periodic) {
		entry->period_ns = args->period_ns;
		entry->overruns = 0;
		entry->missed = 0;
	}
	return entry;
}

static bool hwt_context_set_wheel(struct hwt_context *ctx, struct hwt_wheel *wheel,
				  int clock, struct hwt_entry *clock_set)
{
	struct hwt_wheel_params params;
	bool set;

	hwt_wheel_get_params(wheel, &params);
	xa_lock(&ctx->entries);
	set = !ctx->fixed;
	if (set) {
		ctx->wheel = wheel;
		WRITE_ONCE(ctx->clock, clock);
		ctx->tick_ns = params.tick_ns;
		ctx->clock_set = clock_set;
		WRITE_ONCE(ctx->fixed, true);
		ctx->private = true;
	}
	xa_unlock(&ctx->entries);
	return set;
}

/* Its wheel is gone, or never was. */
static void hwt_clock_set_free(struct hwt_entry *entry)
{
	if (!entry)
		return;
	xa_lock(&entry->ctx->entries);
	hwt_event_drop(entry);
	xa_unlock(&entry->ctx->entries);
	hwt_entry_put(entry);
}

static int hwt_setup_clock(const struct hwt_setup_args *setup,
			   struct hwt_wheel_params *params)
{
	bool tell = setup->flags & HWT_SETUP_TELL_CLOCK_SET;

	switch (setup->clock) {
	case CLOCK_MONOTONIC:
		params->clock = HWT_CLOCK_MONOTONIC;
		return tell ? -EINVAL : 0;
	case CLOCK_BOOTTIME:
		params->clock = HWT_CLOCK_BOOTTIME;
		return tell ? -EINVAL : 0;
	case CLOCK_REALTIME:
		params->clock = HWT_CLOCK_REALTIME;
		if (tell)
			params->clock_set = hwt_context_clock_set;
		return 0;
	default:
		return -EINVAL;
	}
}

static int hwt_ioctl_setup(struct hwt_context *ctx, union hwt_args *args)
{
	/* For its event, which may come up again before it was read, and be withdrawn. */
	static const struct hwt_schedule_args clock_set_args = {
		.mode = HWT_MODE_FIXED_DELAY,
	};
	const struct hwt_setup_args *setup = &args->setup;
	struct hwt_wheel_params params = {
		.name		 = "hwt_private",
		.tick_ns	 = setup->tick_ns,
		.ticks_per_wheel = setup->ticks_per_wheel,
		.levels		 = setup->levels,
		.max_pending	 = setup->max_pending,
	};
	struct hwt_entry *clock_set = NULL;
	struct hwt_wheel *wheel;
	int ret;

	if (setup->flags & ~(HWT_SETUP_COARSE_CLOCK | HWT_SETUP_TELL_CLOCK_SET) ||
	    setup->reserved)
		return -EINVAL;
	if (setup->flags & HWT_SETUP_COARSE_CLOCK)
		params.flags = HWT_COARSE_CLOCK;
	ret = hwt_setup_clock(setup, &params);
	if (ret)
		return ret;
	/* A first look, to save the making of a wheel. */
	if (READ_ONCE(ctx->fixed))
		return -EBUSY;
	if (params.clock_set) {
		clock_set = hwt_entry_alloc(ctx, &clock_set_args);
		if (!clock_set)
			return -ENOMEM;
		clock_set->id = 0;
		params.clock_set_arg = clock_set;
	}
	wheel = hwt_wheel_create(&params);
	if (IS_ERR(wheel)) {
		hwt_clock_set_free(clock_set);
		return PTR_ERR(wheel);
	}
	if (hwt_context_set_wheel(ctx, wheel, setup->clock, clock_set))
		return 0;
	hwt_wheel_destroy(wheel);
	hwt_clock_set_free(clock_set);
	return -EBUSY;
}

/* Give an entry an id and a wheel. The lock is dropped if memory is needed. */
static int hwt_entry_insert(struct hwt_context *ctx, struct hwt_entry *entry)
	__must_hold(&ctx->entries.xa_lock)
{
	u32 slot;
	int ret;

	if (ctx->stats.timeouts >= hwt_max_timeouts)
		return -EAGAIN;
	ctx->stats.timeouts++;
	ret = __xa_alloc(&ctx->entries, &slot, entry, xa_limit_32b, HWT_GFP_USER);
	if (ret) {
		ctx->stats.timeouts--;
		return ret;
	}
	/* Only now: a call that fails leaves everything as it was. */
	WRITE_ONCE(ctx->fixed, true);
	if (!++ctx->generation)
		ctx->generation = 1;
	entry->id = (u64)ctx->generation << 32 | slot;
	hwt_timeout_set_wheel(&entry->timeout, ctx->wheel);
	return 0;
}

/* The mode, period and slack of a timeout that is to be armed. */
static bool hwt_args_valid(u32 mode, u64 period_ns, u64 slack_ns)
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

static int hwt_ioctl_schedule(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_schedule_args *sched = &args->schedule;
	struct hwt_entry *entry;
	int ret;

	if (sched->flags & ~HWT_ABSOLUTE || sched->reserved ||
	    !hwt_args_valid(sched->mode, sched->period_ns, sched->slack_ns))
		return -EINVAL;
	entry = hwt_entry_alloc(ctx, sched);
	if (!entry)
		return -ENOMEM;

	xa_lock(&ctx->entries);
	ret = ctx->closing ? -ESHUTDOWN : hwt_entry_insert(ctx, entry);
	if (ret) {
		hwt_entry_put(entry);
		goto out;
	}
	/* A second look: the insertion may have dropped the lock. */
	ret = ctx->closing ? -ESHUTDOWN :
	      hwt_entry_arm(entry, sched->time_ns, sched->period_ns,
			    sched->slack_ns, sched->flags & HWT_ABSOLUTE);
	if (ret) {
		hwt_entry_remove(entry);
		goto out;
	}
	sched->id = entry->id;
	ctx->stats.scheduled++;
out:
	if (ret == -EAGAIN || ret == -ESHUTDOWN)
		ctx->stats.rejected++;
	xa_unlock(&ctx->entries);
	return ret;
}

static int hwt_entry_modify(struct hwt_entry *entry, struct hwt_modify_args *modify)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	bool periodic = hwt_entry_periodic(entry);
	u64 period_ns = modify->period_ns;
	int ret;

	if (periodic && !period_ns)
		period_ns = entry->period_ns;
	if (!hwt_args_valid(entry->mode, period_ns, modify->slack_ns))
		return -EINVAL;
	if (entry->ctx->closing)
		return -ESHUTDOWN;
	ret = hwt_entry_arm(entry, modify->time_ns, period_ns, modify->slack_ns,
			    modify->flags & HWT_ABSOLUTE);
	if (ret)
		return ret;
	modify->was = hwt_entry_state(entry);
	hwt_event_drop(entry);
	entry->due_ns = HWT_NEVER;
	entry->ended = false;
	if (modify->flags & HWT_SET_USER_DATA)
		entry->user_data = modify->user_data;
	if (periodic) {
		entry->period_ns = period_ns;
		entry->missed = 0;
	}
	entry->ctx->stats.modified++;
	return 0;
}

static int hwt_ioctl_modify(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_modify_args *modify = &args->modify;
	struct hwt_entry *entry;
	int ret;

	if (modify->flags & ~(HWT_ABSOLUTE | HWT_SET_USER_DATA) || modify->reserved)
		return -EINVAL;
	xa_lock(&ctx->entries);
	entry = hwt_entry_find(ctx, modify->id);
	ret = entry ? hwt_entry_modify(entry, modify) : -ENOENT;
	if (ret == -EAGAIN || ret == -ESHUTDOWN)
		ctx->stats.rejected++;
	xa_unlock(&ctx->entries);
	return ret;
}

static int hwt_ioctl_cancel(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_cancel_args *cancel = &args->cancel;
	struct hwt_entry *entry;

	if (cancel->flags || cancel->reserved)
		return -EINVAL;
	xa_lock(&ctx->entries);
	entry = hwt_entry_find(ctx, cancel->id);
	if (entry) {
		cancel->was = hwt_entry_state(entry);
		hwt_cancel(&entry->timeout);
		hwt_entry_remove(entry);
		ctx->stats.cancelled++;
	}
	xa_unlock(&ctx->entries);
	return entry ? 0 : -ENOENT;
}

static int hwt_ioctl_get(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_get_args *get = &args->get;
	s64 offset = hwt_context_offset(ctx);
	struct hwt_entry *entry;

	if (get->flags)
		return -EINVAL;
	xa_lock(&ctx->entries);
	entry = hwt_entry_find(ctx, get->id);
	if (entry) {
		get->state = hwt_entry_state(entry);
		get->mode = entry->mode;
		get->user_data = entry->user_data;
		get->deadline_ns = hwt_time_to_user(hwt_entry_due(entry), offset);
		get->remaining_ns = hwt_entry_remaining(entry);
		get->period_ns = 0;
		get->overruns = 0;
		if (hwt_entry_periodic(entry)) {
			get->period_ns = entry->period_ns;
			get->overruns = entry->missed + entry->overruns;
		}
	}
	xa_unlock(&ctx->entries);
	return entry ? 0 : -ENOENT;
}

static void hwt_entry_describe(const struct hwt_entry *entry, struct hwt_list_entry *to,
			       s64 offset)
{
	*to = (struct hwt_list_entry) {
		.id		= entry->id,
		.user_data	= entry->user_data,
		.deadline_ns	= hwt_time_to_user(hwt_entry_due(entry), offset),
		.remaining_ns	= hwt_entry_remaining(entry),
		.state		= hwt_entry_state(entry),
		.mode		= entry->mode,
	};
	if (hwt_entry_periodic(entry)) {
		to->period_ns = entry->period_ns;
		to->overruns = entry->missed + entry->overruns;
	}
}

#define HWT_LIST_STEP	(PAGE_SIZE / sizeof(struct hwt_list_entry))

/* Describe up to @max entries from *@cursor on. Return: how many. */
static u32 hwt_context_describe(struct hwt_context *ctx, u64 *cursor,
				struct hwt_list_entry *to, u32 max)
{
	s64 offset = hwt_context_offset(ctx);
	struct hwt_entry *entry;
	unsigned long slot;
	u32 n = 0;

	if (*cursor > U32_MAX)
		return 0;
	xa_lock(&ctx->entries);
	xa_for_each_start(&ctx->entries, slot, entry, *cursor) {
		hwt_entry_describe(entry, &to[n++], offset);
		*cursor = (u64)slot + 1;
		if (n == max)
			break;
	}
	xa_unlock(&ctx->entries);
	return n;
}

static int hwt_ioctl_list(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_list_args *list = &args->list;
	struct hwt_list_entry __user *to = u64_to_user_ptr(list->entries);
	struct hwt_list_entry *step;
	u32 total = 0, n, max;
	u64 cursor;
	int ret = 0;

	if (list->flags || !list->count ||
	    list->entry_size != sizeof(struct hwt_list_entry))
		return -EINVAL;
	step = kmalloc(PAGE_SIZE, GFP_KERNEL_ACCOUNT);
	if (!step)
		return -ENOMEM;
	do {
		/* What could not be stored is told of by the next call. */
		cursor = list->cursor;
		max = min_t(u32, list->count - total, HWT_LIST_STEP);
		n = hwt_context_describe(ctx, &cursor, step, max);
		if (copy_to_user(to + total, step, n * sizeof(*step))) {
			ret = -EFAULT;
			break;
		}
		list->cursor = cursor;
		total += n;
		cond_resched();
		if (signal_pending(current))
			ret = -EINTR;
	} while (!ret && n == max && total < list->count);
	kfree(step);
	if (ret && !total)
		return ret;
	list->count = total;
	return 0;
}

/*
 * Do something to each entry, under the lock but in bounded steps. @fn may remove the
 * entry it is given.
 *
 * Return: for how many it was true.
 */
static u64 hwt_context_walk(struct hwt_context *ctx,
			    bool (*fn)(struct hwt_entry *entry))
{
	struct hwt_entry *entry;
	unsigned int n = 0;
	unsigned long slot;
	u64 count = 0;

	xa_lock(&ctx->entries);
	xa_for_each(&ctx->entries, slot, entry) {
		count += fn(entry);
		if (++n % HWT_ENTRY_STEP)
			continue;
		xa_unlock(&ctx->entries);
		cond_resched();
		xa_lock(&ctx->entries);
	}
	xa_unlock(&ctx->entries);
	return count;
}

static bool hwt_entry_stop(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	u64 due = hwt_entry_due(entry);

	if (entry->ended)
		return false;
	hwt_cancel(&entry->timeout);
	entry->ended = true;
	entry->ctx->stats.stopped++;
	if (!hwt_entry_has_event(entry))
		hwt_event_add(entry, HWT_EVENT_STOPPED, due,
			      hwt_wheel_now(entry->ctx->wheel));
	return true;
}

static int hwt_ioctl_stop(struct hwt_context *ctx, union hwt_args *args)
{
	if (args->stop.flags)
		return -EINVAL;
	xa_lock(&ctx->entries);
	ctx->closing = true;
	xa_unlock(&ctx->entries);
	args->stop.stopped = hwt_context_walk(ctx, hwt_entry_stop);
	/*
	 * Another stop may be on its way, but this one has seen all entries. Under the
	 * lock, so that either this finds that the last event has gone, or
	 * hwt_context_wake_end() this.
	 */
	xa_lock(&ctx->entries);
	/* Pairs with the readers: who sees this sees all events. */
	smp_store_release(&ctx->stopped, true);
	xa_unlock(&ctx->entries);
	wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM | EPOLLHUP);
	return 0;
}

static int hwt_ioctl_stats(struct hwt_context *ctx, union hwt_args *args)
{
	if (args->stats.flags)
		return -EINVAL;
	xa_lock(&ctx->entries);
	args->stats = ctx->stats;
	xa_unlock(&ctx->entries);
	return 0;
}

static const struct hwt_ioctl {
	int	(*call)(struct hwt_context *ctx, union hwt_args *args);
	u32	size;
	u32	size_min;
} hwt_ioctls[] = {
#define HWT_IOCTL(_name, _NAME)						\
	[_IOC_NR(HWT_IOC_##_NAME)] = {					\
		.call		= hwt_ioctl_##_name,			\
		.size		= sizeof(struct hwt_##_name##_args),	\
		.size_min	= HWT_##_NAME##_SIZE_VER1,		\
	}
	HWT_IOCTL(info, INFO),
	HWT_IOCTL(setup, SETUP),
	HWT_IOCTL(schedule, SCHEDULE),
	HWT_IOCTL(modify, MODIFY),
	HWT_IOCTL(cancel, CANCEL),
	HWT_IOCTL(get, GET),
	HWT_IOCTL(stop, STOP),
	HWT_IOCTL(stats, STATS),
	HWT_IOCTL(list, LIST),
};

/* The same for 32-bit programs; see the layout checks at the end. */
static long hwt_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct hwt_context *ctx = file->private_data;
	unsigned int nr = _IOC_NR(cmd);
	void __user *uargs = (void __user *)arg;
	const struct hwt_ioctl *ioctl;
	union hwt_args args;
	u32 size;
	int ret;

	if (cmd != _IO(HWT_IOC_MAGIC, nr) || nr >= ARRAY_SIZE(hwt_ioctls))
		return -ENOTTY;
	ioctl = &hwt_ioctls[array_index_nospec(nr, ARRAY_SIZE(hwt_ioctls))];

	if (get_user(size, (u32 __user *)uargs))
		return -EFAULT;
	if (size < ioctl->size_min)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(&args, ioctl->size, uargs, size);
	if (ret)
		return ret;
	ret = ioctl->call(ctx, &args);
	if (ret)
		return ret;
	args.size = size;
	if (!copy_to_user(uargs, &args, min(size, ioctl->size)))
		return 0;
	/* A timeout whose id nobody knows is of no use. */
	if (cmd == HWT_IOC_SCHEDULE) {
		args.cancel = (struct hwt_cancel_args) { .id = args.schedule.id };
		hwt_ioctl_cancel(ctx, &args);
	}
	return -EFAULT;
}

/* -- The device ---------------------------------------------------------- */

static struct hwt_wheel *hwt_shared_wheel_get(void)
{
	struct hwt_wheel *wheel;

	mutex_lock(&hwt_shared_lock);
	wheel = hwt_shared_wheel;
	if (!wheel) {
		wheel = hwt_wheel_get_shared(NULL);
		if (!IS_ERR(wheel)) {
			hwt_shared_wheel = wheel;
			/* Given back when the module goes: must not keep it. */
			module_put(THIS_MODULE);
		}
	}
	mutex_unlock(&hwt_shared_lock);
	return wheel;
}

static int hwt_open(struct inode *inode, struct file *file)
{
	struct hwt_wheel_params params;
	struct hwt_context *ctx;
	struct hwt_wheel *wheel;

	wheel = hwt_shared_wheel_get();
	if (IS_ERR(wheel))
		return PTR_ERR(wheel);
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return -ENOMEM;
	xa_init_flags(&ctx->entries, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	hwt_wheel_get_params(wheel, &params);
	ctx->wheel = wheel;
	ctx->clock = CLOCK_MONOTONIC;
	ctx->tick_ns = params.tick_ns;
	INIT_LIST_HEAD(&ctx->ready);
	refcount_set(&ctx->refs, 1);
	init_waitqueue_head(&ctx->wait);
	atomic_inc(&hwt_contexts);

	file->private_data = ctx;
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static bool hwt_entry_forget(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	hwt_cancel(&entry->timeout);
	hwt_entry_remove(entry);
	return true;
}

/*
 * The last descriptor is gone, so nobody is in a call. Cancelling is cheap; the shared
 * wheel lets go of the entries in its own time, and whoever waits for a slow callback
 * there, it is not the program that closes. The last of them frees the context.
 */
static int hwt_release(struct inode *inode, struct file *file)
{
	struct hwt_context *ctx = file->private_data;

	hwt_context_walk(ctx, hwt_entry_forget);
	if (ctx->private)
		hwt_wheel_destroy(ctx->wheel);
	hwt_clock_set_free(ctx->clock_set);
	hwt_context_put(ctx);
	return 0;
}

#ifdef CONFIG_PROC_FS
static void hwt_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct hwt_context *ctx = file->private_data;

	xa_lock(&ctx->entries);
	seq_printf(m, "hwt-clockid:\t%d\nhwt-tick-ns:\t%llu\nhwt-private:\t%d\n",
		   ctx->clock, ctx->tick_ns, ctx->private);
	seq_printf(m, "hwt-timeouts:\t%llu\nhwt-events:\t%llu\nhwt-stopped:\t%d\n",
		   ctx->stats.timeouts, ctx->stats.events, ctx->closing);
	xa_unlock(&ctx->entries);
}
#endif

static const struct file_operations hwt_fops = {
	.owner		= THIS_MODULE,
	.open		= hwt_open,
	.release	= hwt_release,
	.read_iter	= hwt_read_iter,
	.poll		= hwt_poll,
	.unlocked_ioctl	= hwt_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
#ifdef CONFIG_PROC_FS
	.show_fdinfo	= hwt_show_fdinfo,
#endif
};

static struct miscdevice hwt_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "hwt",
	.fops	= &hwt_fops,
};

static void hwt_caches_destroy(void)
{
	kmem_cache_destroy(hwt_one_shot_cache);
	kmem_cache_destroy(hwt_periodic_cache);
}

/**
 * hwt_chardev_init() - make /dev/hwt
 *
 * Return: 0 or a negative error.
 */
int __init hwt_chardev_init(void)
{
	int ret;

	if (!hwt_max_timeouts || hwt_max_timeouts > HWT_TIMEOUTS_LIMIT) {
		pr_err("max_timeouts=%u is out of range: 1 to %u\n",
		       hwt_max_timeouts, HWT_TIMEOUTS_LIMIT);
		return -EINVAL;
	}
	hwt_one_shot_cache = kmem_cache_create("hwt_entry",
					       offsetofend(struct hwt_entry, timeout), 0,
					       SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT, NULL);
	hwt_periodic_cache = kmem_cache_create("hwt_entry_periodic",
					       sizeof(struct hwt_entry), 0,
					       SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT, NULL);
	ret = hwt_one_shot_cache && hwt_periodic_cache ? misc_register(&hwt_device) :
							 -ENOMEM;
	if (ret)
		hwt_caches_destroy();
	return ret;
}

/**
 * hwt_chardev_exit() - unmake it
 *
 * An open file keeps the module, so there is none. But the shared wheel may not have let
 * go of all entries yet.
 */
void hwt_chardev_exit(void)
{
	misc_deregister(&hwt_device);
	wait_var_event(&hwt_contexts, !atomic_read(&hwt_contexts));
	if (hwt_shared_wheel) {
		__module_get(THIS_MODULE);
		hwt_wheel_put(hwt_shared_wheel);
	}
	hwt_caches_destroy();
}

/*
 * The layout is that of 32-bit programs too: each member lies at a multiple of its size
 * (the header says so of 64-bit ones), and nothing is left to padding.
 */
static_assert(sizeof(struct hwt_event) == 64);
static_assert(sizeof(struct hwt_info_args) == HWT_INFO_SIZE_VER1);
static_assert(sizeof(struct hwt_setup_args) == HWT_SETUP_SIZE_VER1);
static_assert(sizeof(struct hwt_schedule_args) == HWT_SCHEDULE_SIZE_VER1);
static_assert(sizeof(struct hwt_modify_args) == HWT_MODIFY_SIZE_VER1);
static_assert(sizeof(struct hwt_cancel_args) == HWT_CANCEL_SIZE_VER1);
static_assert(sizeof(struct hwt_get_args) == HWT_GET_SIZE_VER1);
static_assert(sizeof(struct hwt_stop_args) == HWT_STOP_SIZE_VER1);
static_assert(sizeof(struct hwt_stats_args) == HWT_STATS_SIZE_VER1);
static_assert(sizeof(struct hwt_list_args) == HWT_LIST_SIZE_VER1);
static_assert(sizeof(struct hwt_list_entry) == 64);
