// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the device, its file operations and its ioctls
 */
#include <linux/compat.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
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

/* -- ioctls -------------------------------------------------------------- */

/* The arguments of any ioctl. All structures start with these two members. */
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

static int hwt_ioctl_setup(struct hwt_context *ctx, union hwt_args *args)
{
	return hwt_context_setup(ctx, &args->setup);
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

static int hwt_ioctl_list(struct hwt_context *ctx, union hwt_args *args)
{
	return hwt_context_list(ctx, &args->list);
}

static int hwt_ioctl_stop(struct hwt_context *ctx, union hwt_args *args)
{
	if (args->stop.flags)
		return -EINVAL;
	args->stop.stopped = hwt_context_stop(ctx);
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

/* 32-bit programs use this, too: see the assertions on the layout at the end. */
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
	/* The program cannot cancel a timeout whose id it did not get. */
	if (cmd == HWT_IOC_SCHEDULE) {
		args.cancel = (struct hwt_cancel_args) { .id = args.schedule.id };
		hwt_ioctl_cancel(ctx, &args);
	}
	return -EFAULT;
}

/* -- The device ---------------------------------------------------------- */

static int hwt_open(struct inode *inode, struct file *file)
{
	struct hwt_context *ctx = hwt_context_create();

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	file->private_data = ctx;
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static int hwt_release(struct inode *inode, struct file *file)
{
	hwt_context_close(file->private_data);
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
 * hwt_chardev_init() - create /dev/hwt
 * @debugfs: a directory for the statistics of contexts, which outlives hwt_chardev_exit()
 *
 * Return: 0 or a negative error.
 */
int __init hwt_chardev_init(struct dentry *debugfs)
{
	int ret;

	ret = hwt_entries_init();
	if (ret)
		return ret;
	ret = hwt_contexts_init();
	if (ret)
		goto err_entries;
	hwt_contexts_debugfs_init(debugfs);
	ret = misc_register(&hwt_device);
	if (ret)
		goto err_contexts;
	return 0;

err_contexts:
	hwt_contexts_exit();
err_entries:
	hwt_entries_exit();
	return ret;
}

/**
 * hwt_chardev_exit() - remove /dev/hwt
 *
 * No file is open, since an open file keeps the module loaded.
 */
void hwt_chardev_exit(void)
{
	misc_deregister(&hwt_device);
	hwt_contexts_exit();
	hwt_entries_exit();
}

/*
 * 32-bit programs have the same layout: each member lies at a multiple of its size (64-bit members
 * by the attribute in the header), and there is no padding.
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
