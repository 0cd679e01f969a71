/* SPDX-License-Identifier: GPL-2.0-only */
/* Wheels: the objects that clients create and use. A wheel consists of shards (core/shard.h). */
#ifndef _HWT_CORE_WHEEL_H
#define _HWT_CORE_WHEEL_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/smp.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "hwt.h"

struct hwt_shard;

/* Size of the name of the function that created a wheel, with the final NUL. */
#define HWT_CREATOR_MAX		48

/*
 * A wheel: the data that its shards have in common. Each shard has a copy of the parameters needed
 * to arm a timeout, so calls that schedule access only the member @pending_left of a wheel.
 */
struct hwt_wheel {
	/* Constant once created. */
	struct hwt_shard	*first_shard;
	struct hwt_shard	**shard_of_cpu;	/* indexed by CPU; NULL: there is one shard */
	/* After rounding. @name points to the copy below, @cpus to the affinity of the shard. */
	struct hwt_wheel_params	params;
	/*
	 * Serializes stops. A stop takes it before all other locks of the core. A callback that a
	 * stop calls may stop another wheel. So that lockdep does not report this as a deadlock,
	 * each wheel's mutex has a lockdep class of its own.
	 */
	struct mutex		stop_lock;
	struct lock_class_key	stop_key;

	/*
	 * hwt_wheels_lock protects @entry, @users and @shares. The other members up to @owner_name
	 * are constant once the wheel is registered, except @debugfs and @free_work.
	 */
	struct list_head	entry;		/* node in hwt_wheels; also read under RCU */
	u64			number;		/* wheels are numbered in the order of creation */
	struct dentry		*debugfs;	/* set by hwt_debugfs_add() */
	bool			is_shared;
	unsigned int		users;		/* references; also read without the lock */
	struct list_head	shares;		/* shared wheel: list of struct hwt_share */
	struct work_struct	free_work;
	char			name[HWT_NAME_MAX];
	char			creator[HWT_CREATOR_MAX];
	const struct module	*owner;		/* only compared: it may have been unloaded */
	char			owner_name[MODULE_NAME_LEN];

	/*
	 * If the wheel has a max_pending, the number of timeouts that may become pending until this
	 * limit is reached. Changed without a lock.
	 */
	atomic64_t		pending_left ____cacheline_aligned_in_smp;
};

/* Return the shard for timeouts that this CPU initialises; NULL if @wheel is NULL. */
static inline struct hwt_shard *hwt_shard_here(const struct hwt_wheel *wheel)
{
	if (!wheel)
		return NULL;
	if (!wheel->shard_of_cpu)
		return wheel->first_shard;
	/* The caller may move to another CPU meanwhile: timeouts of a shard work on any CPU. */
	return wheel->shard_of_cpu[raw_smp_processor_id()];
}

int hwt_wheels_init(void);
void hwt_wheels_exit(void);

#endif /* _HWT_CORE_WHEEL_H */
