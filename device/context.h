/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context: an open file of /dev/hwt
 *
 * The device uses hwt.h, as any other client does, and a few functions of core/client.h.
 * hwt_uapi.h is the interface for programs. docs/design.md lists the files of the device.
 */
#ifndef _HWT_DEVICE_CONTEXT_H
#define _HWT_DEVICE_CONTEXT_H

#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "hwt_uapi.h"

/*
 * Flags for memory that a program can ask for. The memory is charged to the caller's memory cgroup.
 * At the cgroup's limit the allocation fails, and no task is killed.
 */
#define HWT_GFP_USER		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

struct dentry;
struct hwt_entry;
struct hwt_home;
struct hwt_rings_ctx;
struct hwt_shard;
struct hwt_user;
struct hwt_wheel;

/**
 * struct hwt_context - an open file
 * @user:        the user who has opened the file. Constant.
 * @opener:      the id of the process that has opened the file. Constant.
 * @command:     the name of the process @opener. Constant.
 * @debugfs:     the context's directory in debugfs, if @shown is true. Set when the file is opened.
 * @number:      the unique number of the context, which is the name of its directory in debugfs.
 *               Set when the file is opened.
 * @shown:       true if the context counts against its user's limit of directories in debugfs
 *               (HWT_SHOWN_MAX). Set when the file is opened.
 * @unlimited:   true if a private wheel of this context does not count against the user's limit
 *               of wheels. Constant.
 * @entries:     the table of the context's timeouts, indexed by slot. Without keys, the lower half
 *               of a timeout's id is its slot. The lock of this xarray (xa_lock; "the lock" below)
 *               protects the entries, and each member below whose description does not say
 *               otherwise.
 * @keyed:       true if ids are the program's keys (HWT_SETUP_KEYS). Changes at most once, when
 *               @fixed becomes true. May be read without the lock.
 * @keys:        the hash table of the timeouts by their keys; used only if @keyed is true
 * @generation:  upper half of the latest id; 0 only before the first id. Not used with keys.
 * @fixed:       true once @wheel and @keyed can no longer change, because a timeout or rings were
 *               created, or HWT_IOC_SETUP has succeeded. May be read without the lock.
 * @private:     true if @wheel belongs to this context alone. Changes at most once, to true.
 * @wheel:       the wheel of the context's timeouts: the wheel of @home, or a private one. Changes
 *               at most once, by HWT_IOC_SETUP, while there are no timeouts.
 * @shard:       the shard of @wheel on which all timeouts of the context are. Changes with @wheel.
 * @home:        the structure of the wheel that the context shares with other contexts of its
 *               user; NULL after HWT_IOC_SETUP has created a private wheel. Not protected by the
 *               lock: only the functions that open, set up and close a context use it.
 * @setup_lock:  serializes HWT_IOC_SETUP. Taken before the lock.
 * @walk_lock:   serializes walks of the table. A walk takes the lock again and again; because of
 *               @walk_lock, the wheel's thread contends with at most one walk. Taken before the
 *               lock.
 * @clock:       the clock of @wheel, as a clockid_t. May be read without the lock.
 * @tick_ns:     the length of a tick of @wheel
 * @closing:     true once a stop of the context has begun: schedules and modifies fail
 * @stopped:     true once a stop is complete: no event will be added any more. May be read without
 *               the lock. A task that reads true by an acquire, which pairs with the store in
 *               hwt_context_stop(), finds all events afterwards.
 * @ready:       list of the entries that have an event, oldest event first. May be tested for
 *               emptiness without the lock.
 * @created_rings: the rings that HWT_IOC_RINGS has created, or NULL. Changes at most once.
 * @rings:       NULL until the program maps the rings, @created_rings from then on. With mapped
 *               rings, HWT_IOC_ENTER moves events to them, and read() fails. Changes at most once.
 *               May be read without the lock, by an acquire, which pairs with the release in
 *               hwt_rings_mmap(): the reader then sees initialised rings.
 * @clock_set:   the entry that has the event HWT_EVENT_CLOCK_SET, and is not in the table; NULL if
 *               the program did not ask for this event. Changes at most once, with @wheel.
 * @stats:       the counters that HWT_IOC_STATS returns
 * @refs:        number of references: the open file has one, and each entry has one
 * @wait:        queue of the tasks that wait in read(), poll() or HWT_IOC_ENTER
 */
struct hwt_context {
	struct hwt_user		*user;
	pid_t			opener;
	char			command[TASK_COMM_LEN];
	struct dentry		*debugfs;
	u64			number;
	bool			shown;
	bool			unlimited;
	struct xarray		entries;
	bool			keyed;
	struct rhashtable	keys;
	u32			generation;
	bool			fixed;
	bool			private;
	struct hwt_wheel	*wheel;
	struct hwt_shard	*shard;
	struct hwt_home		*home;
	struct mutex		setup_lock;	/* taken before the lock */
	struct mutex		walk_lock;	/* taken before the lock */
	int			clock;
	u64			tick_ns;
	bool			closing;
	bool			stopped;
	struct list_head	ready;
	struct hwt_rings_ctx	*created_rings;
	struct hwt_rings_ctx	*rings;
	struct hwt_entry	*clock_set;
	struct hwt_stats_args	stats;
	refcount_t		refs;
	wait_queue_head_t	wait;
};

/*
 * Record, for HWT_IOC_STATS, the limit (HWT_LIMIT_) that refuses a timeout or a wheel. Return
 * -ENOSPC. Called with the lock held.
 */
static inline int hwt_context_limited(struct hwt_context *ctx, u32 limit)
{
	ctx->stats.limit = limit;
	return -ENOSPC;
}

extern unsigned int hwt_max_timeouts;

int hwt_contexts_init(void);
void hwt_contexts_exit(void);
struct hwt_context *hwt_context_create(void);
void hwt_context_close(struct hwt_context *ctx);
void hwt_context_put(struct hwt_context *ctx);
s64 hwt_context_offset(const struct hwt_context *ctx);
u32 hwt_context_max_timeouts(const struct hwt_context *ctx);
int hwt_context_list(struct hwt_context *ctx, struct hwt_list_args *list);
u64 hwt_context_stop(struct hwt_context *ctx);
u64 hwt_context_cancel_all(struct hwt_context *ctx);

#endif /* _HWT_DEVICE_CONTEXT_H */
