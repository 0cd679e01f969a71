// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the device, its file operations and its ioctls
 */
#include <linux/device.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "hwt.h"
#include "hwt_chardev.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/op.h"
#include "device/pass.h"
#include "device/ring.h"
#include "device/setup.h"
#include "device/show.h"
#include "device/uring.h"
#include "device/user.h"

/* -- ioctls -------------------------------------------------------------- */

/* The arguments of any ioctl. The structure of each ioctl begins with @size. */
union hwt_args {
	u32				size;
	struct hwt_info_args		info;
	struct hwt_setup_args		setup;
	struct hwt_schedule_args	schedule;
	struct hwt_modify_args		modify;
	struct hwt_cancel_args		cancel;
	struct hwt_get_args		get;
	struct hwt_stats_args		stats;
	struct hwt_list_args		list;
	struct hwt_rings_args		rings;
	struct hwt_enter_args		enter;
};

static int hwt_ioctl_info(struct hwt_context *ctx, void *args)
{
	struct hwt_info_args *info = args;
	struct hwt_wheel_params params;

	if (info->flags)
		return -EINVAL;
	xa_lock(&ctx->entries);
	if (ctx->wheel) {
		hwt_wheel_get_params(ctx->wheel, &params);
		info->ticks_per_wheel = params.ticks_per_wheel;
		info->levels = params.levels;
		info->next_ns = 0;
	} else {
		info->ticks_per_wheel = ctx->pass.buckets.level->mask + 1;
		info->levels = ctx->pass.buckets.levels;
		info->next_ns = hwt_time_to_user(atomic64_read(&ctx->pass.next_ns),
						 hwt_context_offset(ctx));
	}
	info->clock = ctx->clock;
	info->now_ns = hwt_time_to_user(hwt_context_now(ctx), hwt_context_offset(ctx));
	info->tick_ns = ctx->tick_ns;
	info->keys = ctx->keyed;
	info->thread = !!ctx->wheel;
	info->max_timeouts = hwt_context_max_timeouts(ctx);
	info->max_pending = ctx->max_pending;
	info->max_user_timeouts = hwt_max_user_timeouts;
	xa_unlock(&ctx->entries);

	info->features = HWT_FEATURE_SETUP | HWT_FEATURE_BOOTTIME |
			 HWT_FEATURE_REALTIME | HWT_FEATURE_LIST | HWT_FEATURE_RINGS |
			 HWT_FEATURE_THREAD | HWT_FEATURE_KEYS | HWT_URING_FEATURES;
	info->event_size = sizeof(struct hwt_event);
	return 0;
}

static int hwt_ioctl_schedule(struct hwt_context *ctx, void *args)
{
	struct hwt_schedule_args *sched = args;
	struct hwt_op op = {
		.flags		= sched->flags,
		.mode		= sched->mode,
		.time_ns	= sched->time_ns,
		.period_ns	= sched->period_ns,
		.slack_ns	= sched->slack_ns,
		.user_data	= sched->user_data,
		.id		= sched->id,
	};
	int ret;

	ret = hwt_op_schedule(ctx, &op, hwt_context_offset(ctx), NULL, NULL);
	sched->id = op.id;
	sched->was = ret;
	sched->generation = op.generation;
	return min(ret, 0);
}

static int hwt_ioctl_modify(struct hwt_context *ctx, void *args)
{
	struct hwt_modify_args *modify = args;
	struct hwt_op op = {
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
	ret = hwt_op_modify(ctx, &op, hwt_context_offset(ctx), &modify->remaining_ns);
	modify->was = ret;
	modify->generation = op.generation;
	return min(ret, 0);
}

static int hwt_ioctl_cancel(struct hwt_context *ctx, void *args)
{
	struct hwt_cancel_args *cancel = args;
	const struct hwt_op op = { .flags = cancel->flags, .id = cancel->id };
	int ret;

	if (cancel->flags == HWT_CANCEL_ALL) {
		if (cancel->id)
			return -EINVAL;
		cancel->was = 0;
		cancel->count = hwt_context_cancel_all(ctx);
		return 0;
	}
	ret = hwt_op_cancel(ctx, &op);
	cancel->was = ret;
	cancel->count = 1;
	return min(ret, 0);
}

static int hwt_ioctl_get(struct hwt_context *ctx, void *args)
{
	struct hwt_get_args *get = args;
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

static int hwt_ioctl_stats(struct hwt_context *ctx, void *args)
{
	struct hwt_stats_args *stats = args;

	if (stats->flags || stats->reserved)
		return -EINVAL;
	hwt_pass_catch_up(ctx, true);
	xa_lock(&ctx->entries);
	*stats = ctx->stats;
	xa_unlock(&ctx->entries);
	return 0;
}

static const struct hwt_ioctl {
	int	(*call)(struct hwt_context *ctx, void *args);
	u32	size;
	u32	size_min;
	fmode_t	mode;
} hwt_ioctls[] = {
#define HWT_IOCTL(_name, _NAME, _mode)					\
	[_IOC_NR(HWT_IOC_##_NAME)] = {					\
		.call		= hwt_ioctl_##_name,			\
		.size		= sizeof(struct hwt_##_name##_args),	\
		.size_min	= HWT_##_NAME##_SIZE_VER1 + BUILD_BUG_ON_ZERO(	\
			sizeof(struct hwt_##_name##_args) != HWT_##_NAME##_SIZE_VER1), \
		.mode		= _mode,				\
	}
	HWT_IOCTL(info, INFO, 0),
	HWT_IOCTL(setup, SETUP, FMODE_WRITE),
	HWT_IOCTL(schedule, SCHEDULE, FMODE_WRITE),
	HWT_IOCTL(modify, MODIFY, FMODE_WRITE),
	HWT_IOCTL(cancel, CANCEL, FMODE_WRITE),
	HWT_IOCTL(get, GET, 0),
	HWT_IOCTL(stats, STATS, 0),
	HWT_IOCTL(list, LIST, 0),
	HWT_IOCTL(rings, RINGS, FMODE_WRITE),
	HWT_IOCTL(enter, ENTER, FMODE_WRITE),
};

/* Carry out an ioctl, also of a 32-bit program: its structures have the same layout. */
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
	if ((file->f_mode & ioctl->mode) != ioctl->mode)
		return -EBADF;
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
	/* The program did not get the new timeout's id, so cancel the timeout on its behalf. */
	if (cmd == HWT_IOC_SCHEDULE && !ctx->keyed)
		hwt_op_cancel(ctx, &(struct hwt_op) { .id = args.schedule.id });
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
	.show_fdinfo	= hwt_show_fdinfo,
};

/* No misc device: an open of /dev/hwt may wait for memory, and all misc opens share one mutex. */
static int hwt_major;
static struct class *hwt_class;

static int __init hwt_device_create(void)
{
	struct device *device;

	hwt_major = __register_chrdev(0, 0, 1, "hwt", &hwt_fops);
	if (hwt_major < 0)
		return hwt_major;
	hwt_class = hwt_class_create("hwt");
	device = IS_ERR(hwt_class) ? ERR_CAST(hwt_class) :
		 device_create(hwt_class, NULL, MKDEV(hwt_major, 0), NULL, "hwt");
	if (!IS_ERR(device))
		return 0;
	/* If there is no class, class_destroy() does nothing. */
	class_destroy(hwt_class);
	__unregister_chrdev(hwt_major, 0, 1, "hwt");
	return PTR_ERR(device);
}

/* Create /dev/hwt, and files in @debugfs. The caller removes @debugfs, also after an error. */
int __init hwt_chardev_init(struct dentry *debugfs)
{
	int ret;

	ret = hwt_contexts_init();
	if (ret)
		return ret;
	hwt_show_init(debugfs);
	ret = hwt_entries_init();
	if (!ret)
		ret = hwt_device_create();
	if (!ret)
		return 0;
	/* If there is no cache, kmem_cache_destroy() does nothing. */
	hwt_entries_exit();
	hwt_contexts_exit();
	return ret;
}

/* Remove /dev/hwt. No file is open, because an open file keeps the module loaded. */
void hwt_chardev_exit(void)
{
	device_destroy(hwt_class, MKDEV(hwt_major, 0));
	class_destroy(hwt_class);
	__unregister_chrdev(hwt_major, 0, 1, "hwt");
	hwt_contexts_exit();
	hwt_entries_exit();
}

/* Members are aligned to their sizes, without padding, so 32-bit programs have the same layouts. */
static_assert(sizeof(struct hwt_event) == 64);
static_assert(sizeof(struct hwt_list_entry) == HWT_LIST_ENTRY_SIZE_VER1);
static_assert(sizeof(struct hwt_op) == HWT_OP_SIZE_VER1);
static_assert(sizeof(struct hwt_rings) == 192);
static_assert(sizeof(struct hwt_uring_cmd) == 16);
