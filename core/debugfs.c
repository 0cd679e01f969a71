// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels in debugfs: hwt/wheels/NUMBER-NAME/
 *
 * docs/statistics.md documents the files.
 */
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/kernel.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "core/debugfs.h"
#include "core/shard.h"

struct dentry *hwt_debugfs_root;
static struct dentry *hwt_debugfs_wheels;

/* -- Files ----------------------------------------------------------------- */

/* Indexed by HWT_CLOCK_* and HWT_PRIO_*. */
static const char * const hwt_clock_names[] = { "monotonic", "boottime", "realtime" };
static const char * const hwt_priority_names[] = { "normal", "fifo_low", "fifo" };

static int hwt_params_show(struct seq_file *m, void *unused)
{
	struct hwt_wheel *wheel = m->private;
	const struct hwt_shard *shard = wheel->first_shard;

	seq_printf(m, "name %s\n", wheel->name);
	seq_printf(m, "creator %s\n", wheel->creator);
	seq_printf(m, "module %s\n", wheel->owner_name);
	seq_printf(m, "shared %d\n", wheel->is_shared);
	seq_printf(m, "users %u\n", READ_ONCE(wheel->users));
	seq_printf(m, "state %s\n", READ_ONCE(shard->closed) ? "stopped" : "running");
	seq_printf(m, "clock %s\n", hwt_clock_names[shard->clock]);
	seq_printf(m, "tick_ns %llu\n", shard->tick_ns);
	seq_printf(m, "ticks_per_wheel %llu\n", hwt_revolution(shard));
	seq_printf(m, "levels %u\n", shard->buckets.levels);
	seq_printf(m, "coarse_clock %d\n", !!(shard->flags & HWT_COARSE_CLOCK));
	seq_printf(m, "freezable %d\n", !!(shard->flags & HWT_FREEZABLE));
	seq_printf(m, "bh %d\n", hwt_is_bh(shard));
	seq_printf(m, "max_pending %llu\n", shard->max_pending);
	seq_printf(m, "workers %u\n", shard->nr_workers);
	seq_printf(m, "priority %s\n", hwt_priority_names[wheel->params.priority]);
	seq_printf(m, "wait %s\n", shard->wait == HWT_WAIT_BUSY ? "busy" : "sleep");
	if (wheel->params.cpus)
		seq_printf(m, "cpus %*pbl\n", cpumask_pr_args(wheel->params.cpus));
	else
		seq_puts(m, "cpus all\n");
	seq_printf(m, "shards %u\n", wheel->params.shards);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hwt_params);

static int hwt_stats_show(struct seq_file *m, void *unused)
{
	/* In the order of the members of struct hwt_wheel_stats. The last one is not shown. */
	static const char * const names[] = {
		"pending", "scheduled", "rearmed", "expired", "cancelled", "handed_back",
		"rejected", "late", "behind", "overruns", "collected", "wakeups", "passes",
		"clock_sets",
	};
	struct hwt_wheel_stats stats;
	const u64 *values = (const u64 *)&stats;
	unsigned int i;

	BUILD_BUG_ON(offsetof(struct hwt_wheel_stats, slowest_ns) !=
		     ARRAY_SIZE(names) * sizeof(*values));
	hwt_wheel_get_stats(m->private, &stats);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		seq_printf(m, "%s %llu\n", names[i], values[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hwt_stats);

/* Take a shard's lock anew for each level, so that it is not held for long. */
static int hwt_levels_show(struct seq_file *m, void *unused)
{
	struct hwt_wheel *wheel = m->private;
	struct hwt_shard *shard, *first = wheel->first_shard;
	const struct hwt_level *place;
	unsigned int level, occupied;

	seq_puts(m, "# level bucket_ns occupied buckets\n");
	for (level = 0; level < first->buckets.levels; level++) {
		occupied = 0;
		for (shard = wheel->first_shard; shard; shard = shard->next) {
			spin_lock_irq(&shard->lock);
			occupied += hwt_buckets_occupied(&shard->buckets, level);
			spin_unlock_irq(&shard->lock);
		}
		place = &first->buckets.level[level];
		/* A bucket of the top level may span more ns than U64_MAX. Then print U64_MAX. */
		seq_printf(m, "%u %llu %u %u\n", level,
			   first->tick_ns > U64_MAX >> place->shift ?
			   U64_MAX : first->tick_ns << place->shift,
			   occupied, (place->mask + 1) * wheel->params.shards);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hwt_levels);

/* Print the counts up to the last one that is not 0: the last line shows the worst lateness. */
static int hwt_lateness_show(struct seq_file *m, void *unused)
{
	struct hwt_wheel *wheel = m->private;
	struct hwt_shard *shard;
	unsigned long count[HWT_LATENESS_MAX];
	unsigned int i, end = 0;

	for (i = 0; i < HWT_LATENESS_MAX; i++) {
		count[i] = 0;
		for (shard = wheel->first_shard; shard; shard = shard->next)
			count[i] += READ_ONCE(shard->lateness[i]);
		if (count[i])
			end = i + 1;
	}
	seq_puts(m, "# below_ns callbacks\n");
	for (i = 0; i < end; i++)
		seq_printf(m, "%llu %lu\n", 1ULL << i, count[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hwt_lateness);

static int hwt_shards_show(struct seq_file *m, void *unused)
{
	struct hwt_wheel *wheel = m->private;
	struct hwt_shard *shard;

	seq_puts(m, "# shard pending scheduled expired cancelled late behind wakeups slowest_ns cpus\n");
	for (shard = wheel->first_shard; shard; shard = shard->next) {
		struct hwt_wheel_stats stats = { };

		hwt_shard_add_stats(shard, &stats);
		seq_printf(m, "%u %llu %llu %llu %llu %llu %llu %llu %llu ", shard->number,
			   stats.pending, stats.scheduled, stats.expired, stats.cancelled,
			   stats.late, stats.behind, stats.wakeups, stats.slowest_ns);
		if (shard->pinned)
			seq_printf(m, "%*pbl\n", cpumask_pr_args(shard->affinity));
		else
			seq_puts(m, "all\n");
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hwt_shards);

/* -- Directories ------------------------------------------------------------ */

/* Add a registered wheel. If debugfs fails, the wheel works without its files. */
void hwt_debugfs_add(struct hwt_wheel *wheel)
{
	char name[HWT_NAME_MAX + 24];
	struct dentry *dir;

	snprintf(name, sizeof(name), "%llu-%s", wheel->number, wheel->name);
	/* The client's name for the wheel may have slashes, but a file name must not. */
	strreplace(name, '/', '!');
	dir = debugfs_create_dir(name, hwt_debugfs_wheels);
	debugfs_create_file("params", 0400, dir, wheel, &hwt_params_fops);
	debugfs_create_file("stats", 0400, dir, wheel, &hwt_stats_fops);
	debugfs_create_file("levels", 0400, dir, wheel, &hwt_levels_fops);
	debugfs_create_file("lateness", 0400, dir, wheel, &hwt_lateness_fops);
	debugfs_create_file("shards", 0400, dir, wheel, &hwt_shards_fops);
	wheel->debugfs = dir;
}

/* Create the module's directory. The device adds its own files. */
void __init hwt_debugfs_init(void)
{
	hwt_debugfs_root = debugfs_create_dir("hwt", NULL);
	hwt_debugfs_wheels = debugfs_create_dir("wheels", hwt_debugfs_root);
}
