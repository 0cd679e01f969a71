/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context: what an open file of /dev/hwt is
 *
 * The device is a client of hwt.h like any other module, but for what core/client.h has for it.
 * hwt_uapi.h is the interface of programs; docs/design.md lists the device's files.
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

/* For memory that grows at a program's will: at its cgroup's limit, fail and kill nobody. */
#define HWT_GFP_USER		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

struct dentry;
struct hwt_entry;
struct hwt_rings_ctx;
struct hwt_user;
struct hwt_wheel;

/**
 * struct hwt_context - an open file
 * @user:       who has opened it. Constant.
 * @opener:     ... in which process, and what that was. Constant, too, as the next ones.
 * @command:    ...
 * @debugfs:    its directory there, if it is @shown. Set by open
 * @shown:      it has one: not all of a user's may. Set by open
 * @unlimited:  @user may have any number of private wheels
 * @entries:    the timeouts by slot, the lower half of their ids. Its lock (xa_lock)
 *              protects all that follows but where something else is said, and the
 *              entries.
 * @generation: upper half of the latest id; never 0
 * @fixed:      the clock and the tick stay as they are: a timeout or rings were made, or
 *              @private
 * @private:    @wheel is the context's own. Never false again.
 * @busy:       ... and its thread waits busily and calls hwt_rings_poll()
 * @wheel:      where new timeouts go. Changes at most once, when @private does: while there
 *              are none, by HWT_IOC_SETUP; or with @nr_shared of them, which stay where they
 *              are, to one of the same kind. All have the same clock.
 * @nr_shared:  timeouts on the wheel that all share
 * @create_lock: held while a private wheel is created because there are too many of those.
 *              Outside the lock.
 * @walk_lock:  held by who goes through the entries, which takes the lock again and again: one
 *              at a time, so that the wheel's thread waits for one. Outside the lock.
 * @clock:      the clock, as a clockid_t. May be read without the lock.
 * @tick_ns:    the tick
 * @closing:    being stopped: nothing may be scheduled any more
 * @stopped:    the stop is complete: no more events will come up. May be read without
 *              the lock, with acquire; pairs with the release in hwt_context_stop(). Who has
 *              added an event before has held the lock since, so that is ordered, too.
 * @ready:      entries with an event, oldest first. May be looked at for emptiness
 *              without the lock.
 * @rings:      events go there; NULL: it has none. Changes at most once. May be read
 *              without the lock, with acquire; pairs with the release in hwt_rings_create().
 *              (All that is read is read through it, which orders as much.)
 * @names:      commands of io_uring by their names; see device/uring.c
 * @clock_set:  an entry of its own, not in the table, for the event that says that the
 *              clock was set; NULL: nobody wants it. Changes at most once, with @wheel.
 * @stats:      what HWT_IOC_STATS tells
 * @refs:       the file and each entry have one
 * @wait:       readers and pollers
 * @done:       commands of io_uring that @wake_work is to complete. Added to without a lock, taken
 *              under @end_lock.
 * @end_lock:   held until what was in @done is completed; inside io_uring's locks
 * @event_ns:   when the last event came up on the wheel that all share, or they had been
 *              woken for it. That wheel's thread's own.
 * @wake_work:  wakes them for events that follow soon
 */
struct hwt_context {
	struct hwt_user		*user;
	pid_t			opener;
	char			command[TASK_COMM_LEN];
	struct dentry		*debugfs;
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
