/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context: an open file of /dev/hwt
 *
 * The code in device/ uses hwt.h, as any other kernel client of hwt does, and a few functions of
 * core/client.h. Programs use hwt_uapi.h. docs/design.md lists the files of device/.
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
 * Flags for allocations that a program can cause. The memory is charged to the memory cgroup of the
 * calling task. If this cgroup is at its limit, the allocation fails, and no task is killed.
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
 * @shown:       true if the context counts against HWT_SHOWN_MAX, its user's limit of directories
 *               in debugfs. Set when the file is opened.
 * @unlimited:   true if a private wheel of this context does not count against the user's limit
 *               of wheels. Constant.
 * @entries:     the table of the context's timeouts: an xarray of struct hwt_entry. The index of an
 *               entry is its "slot"; without keys, the slot is the lower half of the timeout's id.
 *               The xa_lock of this xarray ("the lock" below) protects the entries, and each member
 *               below whose description does not say otherwise.
 * @keyed:       true if the program chooses the ids, as keys (HWT_SETUP_KEYS). Changes at most
 *               once, when @fixed becomes true. May be read without the lock.
 * @keys:        the hash table of the timeouts by their keys; used only if @keyed is true
 * @generation:  the upper half of the latest id, incremented for each new id, so that timeouts in
 *               the same slot have different ids. 0 only before the first id. Not used with keys.
 * @fixed:       true once @wheel and @keyed can no longer change, because a timeout or rings were
 *               created, or HWT_IOC_SETUP has succeeded. May be read without the lock.
 * @private:     true if @wheel is a private wheel, which no other context uses. Changes at most
 *               once, to true.
 * @wheel:       the wheel of the context's timeouts: the wheel of @home, or a private one. Changes
 *               at most once, by HWT_IOC_SETUP, while there are no timeouts.
 * @shard:       the shard of @wheel on which all timeouts of the context are. Changes with @wheel.
 * @home:        describes the wheel that the context shares with other contexts of its user; NULL
 *               after HWT_IOC_SETUP has created a private wheel. Needs no lock: only the functions
 *               that open, set up and close a context use it, and these do not run at the same
 *               time.
 * @setup_lock:  serializes HWT_IOC_SETUP. Taken before the lock.
 * @walk_lock:   serializes walks of @entries. A walk takes the lock again and again; because of
 *               @walk_lock, the wheel's thread contends for the lock with at most one walk. Taken
 *               before the lock.
 * @clock:       the clock of @wheel, as a clockid_t. May be read without the lock.
 * @tick_ns:     the length of a tick of @wheel
 * @closing:     true once HWT_IOC_STOP has begun: operations that schedule or modify a timeout fail
 * @stopped:     true once HWT_IOC_STOP is complete: no event will be added any more. May be read
 *               without the lock. hwt_context_stop() stores it with a release, so a task that reads
 *               true with an acquire finds all events that were added.
 * @ready:       list of the entries that have an unread event, oldest event first. May be tested
 *               for emptiness without the lock.
 * @created_rings: the rings that HWT_IOC_RINGS has created, or NULL. Changes at most once.
 * @rings:       NULL until the program maps the rings, @created_rings from then on. With mapped
 *               rings, HWT_IOC_ENTER moves events to them, and read() fails. Changes at most once.
 *               May be read without the lock. hwt_rings_mmap() stores it with a release, so a task
 *               that reads it with an acquire sees initialised rings.
 * @clock_set:   the entry for the event HWT_EVENT_CLOCK_SET, which is not in @entries; NULL if the
 *               program did not ask for this event. Changes at most once, with @wheel.
 * @stats:       the counters that HWT_IOC_STATS returns
 * @refs:        number of references: one for the open file, and one for each entry until it is
 *               freed
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
	struct mutex		setup_lock;	/* taken before entries.xa_lock */
	struct mutex		walk_lock;	/* taken before entries.xa_lock */
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
 * Record the limit (HWT_LIMIT_) because of which a timeout or a wheel is refused; HWT_IOC_STATS
 * returns it. Return -ENOSPC, for the caller to return. Called with entries.xa_lock held.
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
