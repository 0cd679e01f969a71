// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts in /proc/PID/fdinfo/FD, and in the file hwt/contexts in debugfs
 *
 * docs/statistics.md documents each line of these files.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>

#include "device/context.h"
#include "device/show.h"
#include "device/user.h"

void hwt_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct hwt_context *ctx = file->private_data;

	xa_lock(&ctx->entries);
	seq_printf(m, "hwt-clockid:\t%d\nhwt-tick-ns:\t%llu\nhwt-thread:\t%d\nhwt-keys:\t%d\n",
		   ctx->clock, ctx->tick_ns, !!ctx->wheel, ctx->keyed);
	seq_printf(m, "hwt-timeouts:\t%llu\nhwt-events:\t%llu\nhwt-context:\t%u\nhwt-rings:\t%d\n",
		   ctx->stats.timeouts, ctx->stats.events, ctx->number, !!ctx->rings);
	xa_unlock(&ctx->entries);
}

/* -- debugfs ---------------------------------------------------------------- */

/* Position n stands for the first context whose number is n or higher. */
static void *hwt_show_find(loff_t *pos)
{
	unsigned long number = *pos;
	struct hwt_context *ctx = NULL;

	if (*pos <= UINT_MAX)
		ctx = xa_find(&hwt_contexts, &number, UINT_MAX, XA_PRESENT);
	if (ctx)
		*pos = number;
	return ctx;
}

static void *hwt_show_start(struct seq_file *m, loff_t *pos)
	__acquires(&hwt_contexts.xa_lock)
{
	xa_lock(&hwt_contexts);
	return hwt_show_find(pos);
}

static void *hwt_show_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return hwt_show_find(pos);
}

static void hwt_show_stop(struct seq_file *m, void *v)
	__releases(&hwt_contexts.xa_lock)
{
	xa_unlock(&hwt_contexts);
}

static int hwt_show_context(struct seq_file *m, void *v)
{
	struct hwt_context *ctx = v;

	xa_lock(&ctx->entries);
	seq_printf(m, "context %u\npid %d\ncommand ", ctx->number, ctx->opener);
	seq_escape(m, ctx->command, "\n\\");
	seq_printf(m, "\nuid %u\nthread %d\nclockid %d\ntick_ns %llu\nkeys %d\n",
		   from_kuid_munged(&init_user_ns, hwt_user_uid(ctx->user)), !!ctx->wheel,
		   ctx->clock, ctx->tick_ns, ctx->keyed);
#define HWT_CONTEXT_SHOW(_name)	seq_printf(m, #_name " %llu\n", ctx->stats._name)
	HWT_CONTEXT_SHOW(timeouts);
	HWT_CONTEXT_SHOW(pending);
	HWT_CONTEXT_SHOW(events);
	HWT_CONTEXT_SHOW(scheduled);
	HWT_CONTEXT_SHOW(modified);
	HWT_CONTEXT_SHOW(cancelled);
	HWT_CONTEXT_SHOW(expired);
	HWT_CONTEXT_SHOW(overruns);
	HWT_CONTEXT_SHOW(read);
	HWT_CONTEXT_SHOW(rejected);
#undef HWT_CONTEXT_SHOW
	seq_printf(m, "limit %u\n\n", ctx->stats.limit);
	xa_unlock(&ctx->entries);
	return 0;
}

static const struct seq_operations hwt_show_sops = {
	.start	= hwt_show_start,
	.next	= hwt_show_next,
	.stop	= hwt_show_stop,
	.show	= hwt_show_context,
};
DEFINE_SEQ_ATTRIBUTE(hwt_show);

/* Create the file of the contexts in @dir in debugfs. It is removed together with @dir. */
void __init hwt_show_init(struct dentry *dir)
{
	debugfs_create_file("contexts", 0400, dir, NULL, &hwt_show_fops);
}
