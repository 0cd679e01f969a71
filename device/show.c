// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts in /proc/PID/fdinfo/FD, and in hwt/contexts/NUMBER/stats in debugfs
 *
 * docs/statistics.md documents each line of these files.
 */
#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>

#include "hwt.h"
#include "core/client.h"
#include "device/context.h"
#include "device/show.h"
#include "device/user.h"

#ifdef CONFIG_PROC_FS
void hwt_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct hwt_context *ctx = file->private_data;

	xa_lock(&ctx->entries);
	seq_printf(m, "hwt-clockid:\t%d\nhwt-tick-ns:\t%llu\nhwt-private:\t%d\n",
		   ctx->clock, ctx->tick_ns, ctx->private);
	seq_printf(m, "hwt-keys:\t%d\n", ctx->keyed);
	seq_printf(m, "hwt-timeouts:\t%llu\nhwt-events:\t%llu\nhwt-stopped:\t%d\n",
		   ctx->stats.timeouts, ctx->stats.events, ctx->closing);
	seq_printf(m, "hwt-context:\t%llu\nhwt-rings:\t%d\n", ctx->number, !!ctx->rings);
	xa_unlock(&ctx->entries);
}
#endif

/* -- debugfs ---------------------------------------------------------------- */

static struct dentry *hwt_debugfs_contexts;

/* Number of open contexts without a directory, because their users had HWT_SHOWN_MAX already. */
static atomic_t hwt_contexts_unlisted = ATOMIC_INIT(0);

static int hwt_show_stats_show(struct seq_file *m, void *unused)
{
	struct hwt_context *ctx = m->private;
	struct hwt_stats_args stats;
	struct hwt_wheel_params params;
	char wheel[HWT_NAME_MAX];
	bool private, closing;
	int clock;

	xa_lock(&ctx->entries);
	hwt_wheel_get_params(ctx->wheel, &params);
	/* Copy the name now: once the lock is released, HWT_IOC_SETUP may free the wheel. */
	strscpy(wheel, params.name, sizeof(wheel));
	clock = ctx->clock;
	private = ctx->private;
	closing = ctx->closing;
	stats = ctx->stats;
	xa_unlock(&ctx->entries);

	seq_printf(m, "pid %d\n", ctx->opener);
	seq_puts(m, "command ");
	seq_escape(m, ctx->command, "\n\\");
	seq_putc(m, '\n');
	seq_printf(m, "uid %u\n", from_kuid_munged(&init_user_ns, hwt_user_uid(ctx->user)));
	seq_printf(m, "wheel %s\n", wheel);
	seq_printf(m, "private %d\n", private);
	seq_printf(m, "clockid %d\n", clock);
	seq_printf(m, "tick_ns %llu\n", params.tick_ns);
	seq_printf(m, "closing %d\n", closing);
	seq_printf(m, "keys %d\n", READ_ONCE(ctx->keyed));
#define HWT_CONTEXT_SHOW(_name)	seq_printf(m, #_name " %llu\n", stats._name)
	HWT_CONTEXT_SHOW(timeouts);
	HWT_CONTEXT_SHOW(pending);
	HWT_CONTEXT_SHOW(events);
	HWT_CONTEXT_SHOW(scheduled);
	HWT_CONTEXT_SHOW(modified);
	HWT_CONTEXT_SHOW(cancelled);
	HWT_CONTEXT_SHOW(stopped);
	HWT_CONTEXT_SHOW(expired);
	HWT_CONTEXT_SHOW(overruns);
	HWT_CONTEXT_SHOW(read);
	HWT_CONTEXT_SHOW(rejected);
#undef HWT_CONTEXT_SHOW
	seq_printf(m, "limit %u\n", stats.limit);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hwt_show_stats);

static void hwt_show_create(void *of)
{
	struct hwt_context *ctx = of;
	char name[24];

	snprintf(name, sizeof(name), "%llu", ctx->number);
	ctx->debugfs = debugfs_create_dir(name, hwt_debugfs_contexts);
	debugfs_create_file("stats", 0400, ctx->debugfs, ctx, &hwt_show_stats_fops);
}

/* Give a new context a number and, unless its user has HWT_SHOWN_MAX already, a directory. */
void hwt_show_add(struct hwt_context *ctx)
{
	static atomic64_t contexts;

	/* No barrier is needed: the number must be unique, and orders nothing. */
	ctx->number = atomic64_inc_return(&contexts);
	ctx->opener = task_tgid_nr(current);
	get_task_comm(ctx->command, current->group_leader);
	ctx->shown = hwt_user_add_shown(ctx->user);
	if (ctx->shown)
		hwt_debugfs_run(hwt_show_create, ctx);
	else
		atomic_inc(&hwt_contexts_unlisted);
}

/* Remove a context from debugfs. On return, no task reads the context's files any more. */
void hwt_show_remove(struct hwt_context *ctx)
{
	if (!ctx->shown) {
		atomic_dec(&hwt_contexts_unlisted);
		return;
	}
	debugfs_remove(ctx->debugfs);
	hwt_user_drop_shown(ctx->user);
}

/* Create the entries for contexts in @dir in debugfs. They are removed together with @dir. */
void __init hwt_show_init(struct dentry *dir)
{
	hwt_debugfs_contexts = debugfs_create_dir("contexts", dir);
	debugfs_create_atomic_t("unlisted_contexts", 0400, dir, &hwt_contexts_unlisted);
}
