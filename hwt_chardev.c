// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the device, and what is asked of a context as a whole
 */
#include <linux/compat.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "hwt.h"
#include "hwt_uapi.h"
#include "device/chardev.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/op.h"
#include "device/ring.h"
#include "device/show.h"
#include "device/uring.h"
#include "device/user.h"

/*
 * Entries handled in one go under the lock. The wheel's thread waits for it at each timeout of
 * the context that fires.
 */
#define HWT_ENTRY_STEP		16

/* The wheel that contexts share: from the first open on, until the module goes. */
static struct hwt_wheel *hwt_shared_wheel;
static DEFINE_MUTEX(hwt_shared_lock);

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
	struct hwt_batch_args		batch;
	struct hwt_rings_args		rings;
	struct hwt_enter_args		enter;
};

static int hwt_ioctl_info(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_info_args *info = &args->info;
	struct hwt_wheel_params params;

	if (info->flags || info->reserved || info->reserved2)
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
	info->max_shared = hwt_max_shared;
	info->max_user_timeouts = hwt_max_user_timeouts;
	info->max_user_wheels = ctx->unlimited ? 0 : hwt_max_user_wheels;
	info->features = HWT_FEATURE_SETUP | HWT_FEATURE_BOOTTIME |
			 HWT_FEATURE_REALTIME | HWT_FEATURE_LIST |
			 HWT_FEATURE_BATCH | HWT_FEATURE_RINGS |
			 HWT_FEATURE_PLACE | HWT_URING_FEATURES;
	info->event_size = sizeof(struct hwt_event);
	return 0;
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
		WRITE_ONCE(ctx->private, true);
		ctx->busy = params.wait == HWT_WAIT_BUSY;
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

/* Where and how its thread runs. Such a thread can keep others from running. */
static int hwt_setup_place(struct hwt_context *ctx, const struct hwt_setup_args *setup,
			   struct hwt_wheel_params *params)
{
	bool pinned = setup->flags & HWT_SETUP_CPU;
	bool busy = setup->flags & HWT_SETUP_BUSY_WAIT;

	if (setup->priority > HWT_SETUP_FIFO || (setup->cpu && !pinned) ||
	    (busy && (!pinned || setup->priority)))
		return -EINVAL;
	if (!pinned && !setup->priority)
		return 0;
	if (!capable(CAP_SYS_NICE))
		return -EPERM;
	switch (setup->priority) {
	case HWT_SETUP_FIFO_LOW:
		params->priority = HWT_PRIORITY_FIFO_LOW;
		break;
	case HWT_SETUP_FIFO:
		params->priority = HWT_PRIORITY_FIFO;
		break;
	}
	if (pinned) {
		if (setup->cpu >= nr_cpu_ids || !cpu_online(setup->cpu))
			return -EINVAL;
		params->cpus = cpumask_of(array_index_nospec(setup->cpu, nr_cpu_ids));
	}
	if (busy) {
		params->wait = HWT_WAIT_BUSY;
		params->poll = hwt_rings_poll;
		params->poll_arg = ctx;
	}
	return 0;
}

static int hwt_ioctl_setup(struct hwt_context *ctx, union hwt_args *args)
{
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

	if (setup->flags & ~(HWT_SETUP_COARSE_CLOCK | HWT_SETUP_TELL_CLOCK_SET |
			     HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU) || setup->reserved)
		return -EINVAL;
	if (setup->flags & HWT_SETUP_COARSE_CLOCK)
		params.flags = HWT_COARSE_CLOCK;
	ret = hwt_setup_clock(setup, &params) ?: hwt_setup_place(ctx, setup, &params);
	if (ret)
		return ret;
	/* A first look, to save the making of a wheel. */
	if (READ_ONCE(ctx->fixed))
		return -EBUSY;
	if (params.clock_set) {
		/* Its event may come up again before it was read, as periodic ones do. */
		clock_set = hwt_entry_alloc(ctx, NULL, HWT_MODE_FIXED_DELAY, 0, 0);
		if (!clock_set)
			return -ENOMEM;
		clock_set->id = 0;
		params.clock_set_arg = clock_set;
	}
	wheel = hwt_user_make_wheel(ctx, &params);
	if (IS_ERR(wheel)) {
		hwt_clock_set_free(clock_set);
		return PTR_ERR(wheel);
	}
	if (hwt_context_set_wheel(ctx, wheel, setup->clock, clock_set))
		return 0;
	hwt_user_unmake_wheel(ctx, wheel);
	hwt_clock_set_free(clock_set);
	return -EBUSY;
}

static int hwt_ioctl_schedule(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_schedule_args *sched = &args->schedule;
	struct hwt_op op = {
		.flags		= sched->flags,
		.mode		= sched->mode,
		.time_ns	= sched->time_ns,
		.period_ns	= sched->period_ns,
		.slack_ns	= sched->slack_ns,
		.user_data	= sched->user_data,
	};
	int ret;

	if (sched->reserved)
		return -EINVAL;
	ret = hwt_op_schedule(ctx, &op, hwt_context_offset(ctx), NULL, NULL);
	sched->id = op.id;
	return ret;
}

static int hwt_ioctl_modify(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_modify_args *modify = &args->modify;
	const struct hwt_op op = {
		.flags		= modify->flags,
		.id		= modify->id,
		.time_ns	= modify->time_ns,
		.period_ns	= modify->period_ns,
		.slack_ns	= modify->slack_ns,
		.user_data	= modify->user_data,
	};
	int ret;

	if (modify->reserved)
		return -EINVAL;
	ret = hwt_op_modify(ctx, &op, hwt_context_offset(ctx));
	modify->was = ret;
	return min(ret, 0);
}

static int hwt_ioctl_cancel(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_cancel_args *cancel = &args->cancel;
	const struct hwt_op op = { .flags = cancel->flags, .id = cancel->id };
	int ret;

	if (cancel->reserved)
		return -EINVAL;
	ret = hwt_op_cancel(ctx, &op);
	cancel->was = ret;
	return min(ret, 0);
}

static int hwt_ioctl_get(struct hwt_context *ctx, union hwt_args *args)
{
	struct hwt_get_args *get = &args->get;
	struct hwt_op op = { .flags = get->flags, .id = get->id };
	int ret = hwt_op_get(ctx, &op, hwt_context_offset(ctx));

	get->state = ret;
	get->mode = op.mode;
	get->user_data = op.user_data;
	get->deadline_ns = op.deadline_ns;
	get->remaining_ns = op.remaining_ns;
	get->period_ns = op.period_ns;
	get->overruns = op.overruns;
	return min(ret, 0);
}

static int hwt_ioctl_batch(struct hwt_context *ctx, union hwt_args *args)
{
	return hwt_batch(ctx, &args->batch);
}

static int hwt_ioctl_rings(struct hwt_context *ctx, union hwt_args *args)
{
	return hwt_rings_create(ctx, &args->rings);
}

static int hwt_ioctl_enter(struct hwt_context *ctx, union hwt_args *args)
{
	return hwt_rings_enter(ctx, &args->enter);
}

static void hwt_entry_describe(const struct hwt_entry *entry, struct hwt_list_entry *to,
			       s64 offset)
{
	*to = (struct hwt_list_entry) {
		.id		= entry->id,
		.user_data	= entry->user_data,
		.deadline_ns	= hwt_time_to_user(hwt_entry_due(entry), offset),
		.remaining_ns	= hwt_entry_remaining(entry),
		.period_ns	= hwt_entry_period(entry),
		.overruns	= hwt_entry_overruns(entry),
		.state		= hwt_entry_state(entry),
		.mode		= entry->mode,
	};
}

/* Describe up to @max entries, one step at most, from *@cursor on. Return: how many. */
static u32 hwt_context_describe(struct hwt_context *ctx, u64 *cursor,
				struct hwt_list_entry *to, u32 max)
{
	s64 offset = hwt_context_offset(ctx);
	struct hwt_entry *entry;
	unsigned long slot;
	u32 n = 0;

	if (*cursor > U32_MAX)
		return 0;
	mutex_lock(&ctx->walk_lock);
	xa_lock(&ctx->entries);
	xa_for_each_start(&ctx->entries, slot, entry, *cursor) {
		hwt_entry_describe(entry, &to[n++], offset);
		*cursor = (u64)slot + 1;
		if (n == max)
			break;
	}
	xa_unlock(&ctx->entries);
	mutex_unlock(&ctx->walk_lock);
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
	step = kmalloc_array(HWT_ENTRY_STEP, sizeof(*step), HWT_GFP_USER);
	if (!step)
		return -ENOMEM;
	do {
		/* What could not be stored is told of by the next call. */
		cursor = list->cursor;
		max = min_t(u32, list->count - total, HWT_ENTRY_STEP);
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

	mutex_lock(&ctx->walk_lock);
	xa_lock(&ctx->entries);
	xa_for_each(&ctx->entries, slot, entry) {
		count += fn(entry);
		if (++n % HWT_ENTRY_STEP)
			continue;
		xa_unlock(&ctx->entries);
		mutex_unlock(&ctx->walk_lock);
		cond_resched();
		mutex_lock(&ctx->walk_lock);
		xa_lock(&ctx->entries);
	}
	xa_unlock(&ctx->entries);
	mutex_unlock(&ctx->walk_lock);
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
	if (entry->uring) {
		/* Not by this: it may wake many, with the lock held. */
		hwt_uring_end(entry, -ESHUTDOWN, true);
		hwt_entry_remove(entry);
		return true;
	}
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
	/*
	 * Barrier stop.stopped (spare), pairs with poll.stopped in hwt_poll() and read.stopped in
	 * hwt_read_iter() and hwt_rings_enough(): a task that sees this without the lock sees all
	 * events. The lock would do, which each event's adder has held before.
	 */
	smp_store_release(&ctx->stopped, true);
	if (ctx->rings)
		hwt_rings_fill(ctx);
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
	HWT_IOCTL(batch, BATCH),
	HWT_IOCTL(rings, RINGS),
	HWT_IOCTL(enter, ENTER),
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

/*
 * On PREEMPT_RT the lock of a context's table sleeps, and its thread may wait for one that a
 * program's task holds which gets no CPU. It lends that task its priority, which must be worth
 * something: all others on the wheel wait, too.
 */
static struct hwt_wheel *hwt_shared_wheel_get(void)
{
	static const struct hwt_wheel_params params = {
		.priority = IS_ENABLED(CONFIG_PREEMPT_RT) ? HWT_PRIORITY_FIFO_LOW :
							    HWT_PRIORITY_NORMAL,
	};
	struct hwt_wheel *wheel;

	mutex_lock(&hwt_shared_lock);
	wheel = hwt_shared_wheel;
	if (!wheel) {
		wheel = hwt_wheel_get_shared(&params);
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
	ctx = kzalloc(sizeof(*ctx), HWT_GFP_USER);
	if (!ctx)
		return -ENOMEM;
	ctx->user = hwt_user_get();
	if (!ctx->user) {
		kfree(ctx);
		return -ENOMEM;
	}
	ctx->unlimited = hwt_user_unlimited();
	hwt_context_init(ctx);
	hwt_wheel_get_params(wheel, &params);
	ctx->wheel = wheel;
	ctx->clock = CLOCK_MONOTONIC;
	ctx->tick_ns = params.tick_ns;

	hwt_context_debugfs_add(ctx);
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
 * The last descriptor is gone, so no program is in a call. Cancelling is cheap; the shared
 * wheel lets go of the entries in its own time, and whoever waits for a slow callback
 * there, it is not the program that closes. The last of them frees the context. What is on
 * a wheel of its own is let go of here.
 */
static int hwt_release(struct inode *inode, struct file *file)
{
	struct hwt_context *ctx = file->private_data;

	hwt_context_debugfs_remove(ctx);
	/* Its wheel's thread may still find operations in a ring: none makes a timeout. */
	xa_lock(&ctx->entries);
	ctx->closing = true;
	xa_unlock(&ctx->entries);
	hwt_context_walk(ctx, hwt_entry_forget);
	if (ctx->private)
		hwt_user_unmake_wheel(ctx, ctx->wheel);
	hwt_clock_set_free(ctx->clock_set);
	/* All entries have ended: no events come up any more. */
	hwt_rings_free(ctx->rings);
	hwt_context_put(ctx);
	return 0;
}

static const struct file_operations hwt_fops = {
	.owner		= THIS_MODULE,
	.open		= hwt_open,
	.release	= hwt_release,
	.read_iter	= hwt_read_iter,
	.poll		= hwt_poll,
	.mmap		= hwt_rings_mmap,
	.unlocked_ioctl	= hwt_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.uring_cmd	= hwt_uring_issue,
#ifdef CONFIG_PROC_FS
	.show_fdinfo	= hwt_show_fdinfo,
#endif
};

static struct miscdevice hwt_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "hwt",
	.fops	= &hwt_fops,
};

/**
 * hwt_chardev_init() - make /dev/hwt
 * @debugfs: a directory for what contexts tell; it goes after hwt_chardev_exit()
 *
 * Return: 0 or a negative error.
 */
int __init hwt_chardev_init(struct dentry *debugfs)
{
	int ret = hwt_entries_init();

	if (ret)
		return ret;
	hwt_contexts_debugfs_init(debugfs);
	ret = misc_register(&hwt_device);
	if (ret)
		hwt_entries_exit();
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
	hwt_entries_wait();
	if (hwt_shared_wheel) {
		__module_get(THIS_MODULE);
		hwt_wheel_put(hwt_shared_wheel);
	}
	hwt_entries_exit();
}

/*
 * The layout is that of 32-bit programs too: each member lies at a multiple of its size
 * (the header says so of 64-bit ones), and nothing is left to padding.
 */
static_assert(sizeof(struct hwt_event) == 64);
static_assert(sizeof(struct hwt_info_args) == HWT_INFO_SIZE_VER1 + 24);
static_assert(sizeof(struct hwt_setup_args) == HWT_SETUP_SIZE_VER1 + 8);
static_assert(sizeof(struct hwt_schedule_args) == HWT_SCHEDULE_SIZE_VER1);
static_assert(sizeof(struct hwt_modify_args) == HWT_MODIFY_SIZE_VER1);
static_assert(sizeof(struct hwt_cancel_args) == HWT_CANCEL_SIZE_VER1);
static_assert(sizeof(struct hwt_get_args) == HWT_GET_SIZE_VER1);
static_assert(sizeof(struct hwt_stop_args) == HWT_STOP_SIZE_VER1);
static_assert(sizeof(struct hwt_stats_args) == HWT_STATS_SIZE_VER1);
static_assert(sizeof(struct hwt_list_args) == HWT_LIST_SIZE_VER1);
static_assert(sizeof(struct hwt_list_entry) == 64);
static_assert(sizeof(struct hwt_batch_args) == HWT_BATCH_SIZE_VER1);
static_assert(sizeof(struct hwt_rings_args) == HWT_RINGS_SIZE_VER1);
static_assert(sizeof(struct hwt_enter_args) == HWT_ENTER_SIZE_VER1);
static_assert(sizeof(struct hwt_op) == 64);
static_assert(sizeof(struct hwt_rings) == 192);
static_assert(sizeof(struct hwt_uring_cmd) == 16);
