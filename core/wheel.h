/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A wheel, which clients know, and its shards
 */
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
#include "core/shard.h"

/* Size of the name of the function that created a wheel, with the final NUL. */
#define HWT_CREATOR_MAX		48

/*
 * A wheel: what its shards have in common. What a shard needs for each schedule, it has itself.
 */
struct hwt_wheel {
	/* Constant once created. */
	struct hwt_shard	*first_shard;
	struct hwt_shard	**shard_of_cpu;	/* NULL: there is one shard */
	unsigned int		nr_shards;
	unsigned int	priority;
	bool			own_cpus;	/* the threads' CPUs are the client's choice */
	/*
	 * Serializes stops; the outermost lock. Callbacks of a stop may stop other wheels, so each
	 * wheel's mutex has a lockdep class of its own.
	 */
	struct mutex		stop_lock;
	struct lock_class_key	stop_key;

	/* Constant once registered, or protected by hwt_wheels_lock. */
	struct list_head	entry;		/* also read under RCU */
	u64			number;		/* in the order of creation */
	struct dentry		*debugfs;	/* written before the creator's call returns */
	bool			is_shared;
	unsigned int		users;		/* core/debugfs.c reads it without the lock */
	struct list_head	shares;		/* whose references @users counts */
	struct work_struct	free_work;
	char			name[HWT_NAME_MAX];
	char			creator[HWT_CREATOR_MAX];
	const struct module	*owner;		/* compared only: may be unloaded */
	char			owner_name[MODULE_NAME_LEN];

	/* Pending timeouts of all shards, only with a max_pending. Any context, no lock. */
	atomic64_t		nr_pending ____cacheline_aligned_in_smp;
};

/* Return the shard for timeouts that are initialised on this CPU; NULL for no wheel. */
static inline struct hwt_shard *hwt_shard_here(const struct hwt_wheel *wheel)
{
	if (!wheel)
		return NULL;
	if (!wheel->shard_of_cpu)
		return wheel->first_shard;
	/* If the caller moves to another CPU now, either CPU's shard is correct. */
	return wheel->shard_of_cpu[raw_smp_processor_id()];
}

int hwt_wheels_init(void);
void hwt_wheels_exit(void);
int hwt_system_wheel_create(void);
void hwt_system_wheel_destroy(void);

#endif /* _HWT_CORE_WHEEL_H */
