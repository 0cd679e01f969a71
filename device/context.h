/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context: an open file of /dev/hwt
 *
 * The device is a client of hwt.h like any other module, with a few more functions from
 * core/client.h. hwt_uapi.h is the interface for programs; docs/design.md lists the device's files.
 */
#ifndef _HWT_DEVICE_CONTEXT_H
#define _HWT_DEVICE_CONTEXT_H

#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "hwt_uapi.h"

/* For memory that grows at a program's will: at its cgroup's limit, fail and do not kill a task. */
#define HWT_GFP_USER		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

struct dentry;
struct hwt_entry;
struct hwt_rings_ctx;
struct hwt_user;
struct hwt_wheel;

/**
 * struct hwt_context - an open file
 * @user:        the user who has opened the file. Constant.
 * @opener:      the process that has opened it. Constant.
 * @command:     the name of that process. Constant.
 * @debugfs:     the context's directory in debugfs, if @shown. Set by open.
 * @number:      the name of that directory; 0: there is none. Set by open.
 * @shown:       the context has such a directory: their number is limited. Set by open.
 * @unlimited:   @user may have any number of private wheels. Constant.
 * @entries:     the table: timeouts by slot, which is the lower half of the id. Its lock (xa_lock)
 *               protects the entries, and each member below unless its description says otherwise.
 * @generation:  upper half of the latest id; never 0
 * @fixed:       the clock and the tick can no longer change: a timeout or rings were created, or
 *               @private
 * @private:     @wheel belongs to this context alone. Never false again.
 * @busy:        the private wheel's thread waits busily and calls hwt_rings_poll()
 * @wheel:       the wheel of new timeouts. Changes at most once, when @private does: by
 *               HWT_IOC_SETUP, while there are no timeouts; or by hwt_context_leave_shared(), to a
 *               wheel with the same clock and tick, while @nr_shared timeouts stay behind.
 * @nr_shared:   number of timeouts on the shared wheel
 * @create_lock: held while hwt_context_leave_shared() creates a wheel. Outside the lock.
 * @walk_lock:   serializes walks of the table, which take the lock again and again, so that the
 *               wheel's thread contends with at most one walker. Outside the lock.
 * @clock:       the clock, as a clockid_t. May be read without the lock.
 * @tick_ns:     the tick
 * @closing:     a stop or the close has begun: no timeout can be scheduled any more
 * @stopped:     the stop is complete: no more events will come up. May be read without the lock,
 *               with acquire; pairs with the release in hwt_context_stop(). The lock orders this as
 *               well: each event was added under it before the stop took it.
 * @ready:       entries with an event, oldest first. May be tested for emptiness without the lock.
 * @rings:       the rings that events go to, or NULL. Changes at most once. May be read without the
 *               lock, with acquire; pairs with the release in hwt_rings_create(). All readers only
 *               use the pointer, so that the address dependency would order this as well.
 * @names:       commands of io_uring by their names; see device/uring.c
 * @clock_set:   the entry of the event that the clock was set, not in the table; NULL: the program
 *               did not ask for that event. Changes at most once, with @wheel.
 * @stats:       the result of HWT_IOC_STATS
 * @refs:        the file and each entry have a reference
 * @wait:        readers and pollers
 * @done:        commands of io_uring for @wake_work to complete. Added to without a lock, taken
 *               under @end_lock.
 * @end_lock:    held until all commands taken from @done are completed; inside io_uring's locks
 * @event_ns:    when the latest event came up on the shared wheel, or when waking @wait for it was
 *               done. Used by that wheel's thread only.
 * @wake_work:   wakes @wait, and completes @done, for events that soon follow another
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
	u32			generation;
	bool			fixed;
	bool			private;
	bool			busy;
	struct hwt_wheel	*wheel;
	u32			nr_shared;
	struct mutex		create_lock;	/* outside the lock */
	struct mutex		walk_lock;	/* outside the lock */
	int			clock;
	u64			tick_ns;
	bool			closing;
	bool			stopped;
	struct list_head	ready;
	struct hwt_rings_ctx	*rings;
	struct rb_root		names;
	struct hwt_entry	*clock_set;
	struct hwt_stats_args	stats;
	refcount_t		refs;
	wait_queue_head_t	wait;
	struct llist_head	done;
	struct mutex		end_lock;	/* inside io_uring's locks */
	u64			event_ns;
	struct work_struct	wake_work;
};

int hwt_contexts_init(void);
void hwt_contexts_exit(void);
struct hwt_context *hwt_context_create(void);
void hwt_context_close(struct hwt_context *ctx);
void hwt_context_put(struct hwt_context *ctx);
s64 hwt_context_offset(const struct hwt_context *ctx);
void hwt_context_wake_later(struct hwt_context *ctx);
int hwt_context_leave_shared(struct hwt_context *ctx);
int hwt_context_setup(struct hwt_context *ctx, const struct hwt_setup_args *setup);
int hwt_context_list(struct hwt_context *ctx, struct hwt_list_args *list);
u64 hwt_context_stop(struct hwt_context *ctx);

#endif /* _HWT_DEVICE_CONTEXT_H */
