/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context: an open file of /dev/hwt
 *
 * The device is a client of hwt.h like any other module, with a few more functions from
 * core/client.h. hwt_uapi.h is the interface for programs; docs/design.md lists the device's files.
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

/* For memory that a program can ask for: at its cgroup's limit, fail without killing a task. */
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
 * @opener:      the process that has opened it. Constant.
 * @command:     the name of that process. Constant.
 * @debugfs:     the context's directory in debugfs, if @shown. Set by open.
 * @number:      the name of that directory; unique also without one. Set by open.
 * @shown:       the context counts against its user's limit of such directories. Set by open.
 * @unlimited:   the opener may have any number of wheels. Constant.
 * @entries:     the table: timeouts by slot; without keys, the slot is the lower half of the id.
 *               The table's lock (xa_lock; "the lock" below) protects the entries, and each member
 *               below unless its description says otherwise.
 * @keyed:       ids are the program's keys. Changes at most once, together with @fixed; may be
 *               read without the lock.
 * @keys:        with @keyed: the timeouts by key
 * @generation:  upper half of the latest id; 0 before the first id only
 * @fixed:       the wheel and @keyed can no longer change: a timeout or rings were created, or
 *               HWT_IOC_SETUP has succeeded
 * @private:     @wheel belongs to this context alone. Changes at most once, from false to true.
 * @wheel:       the wheel of its timeouts: that of @home, or a private one. Changes at most once,
 *               by HWT_IOC_SETUP, while there are no timeouts.
 * @shard:       the shard of all its timeouts. Changes with @wheel.
 * @home:        the wheel that the user's contexts share, unless @private. Used by open,
 *               HWT_IOC_SETUP and close only.
 * @setup_lock:  serializes HWT_IOC_SETUP. Taken before the lock.
 * @walk_lock:   serializes walks of the table, which take the lock again and again, so that the
 *               wheel's thread contends with at most one walker. Taken before the lock.
 * @clock:       the clock, as a clockid_t. May be read without the lock.
 * @tick_ns:     the tick
 * @closing:     a stop has begun: no timeout can be scheduled any more
 * @stopped:     the stop is complete: no more events will come up. May be read without the lock,
 *               with acquire; pairs with the release in hwt_context_stop(), so that a reader of
 *               true sees all events.
 * @ready:       entries with an event, oldest first. May be tested for emptiness without the lock.
 * @created_rings: the rings, or NULL. Changes at most once.
 * @rings:       @created_rings once they are mapped, NULL before: HWT_IOC_ENTER moves events there.
 *               Changes at most once. May be read without the lock, with acquire; pairs with the
 *               release in hwt_rings_mmap(), so that a reader sees complete rings.
 * @clock_set:   the entry of HWT_EVENT_CLOCK_SET, which is not in the table; NULL: the program
 *               did not ask for that event. Changes at most once, with @wheel.
 * @stats:       the result of HWT_IOC_STATS
 * @refs:        the file and each entry have a reference
 * @wait:        tasks in read(), poll() or HWT_IOC_ENTER
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

/* Record the limit that refuses a timeout or a wheel. Under the lock. Return the error. */
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
