/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of /dev/hwt share with each other.
 *
 *   hwt_chardev.c  the device: open, close, the ioctls
 *   device/op.c       the operations: schedule, modify, cancel, get; one or many
 *   device/entry.c    the life of a timeout of a program
 *   device/event.c    events: how they come up, read and poll
 *   device/ring.c     rings in memory shared with the program
 *   device/uring.c    timeouts that are commands of io_uring
 *   device/user.c     what a user may have
 *   device/show.c     fdinfo, debugfs
 *
 * All of it is a client of hwt.h like any other module, but for hwt_op_throttle(),
 * hwt_entry_tick_ns() and hwt_entry_expire(). hwt_uapi.h says what programs see.
 *
 * A timeout of a program is a struct hwt_entry. It is in up to three places:
 *
 *   the context's table   from its schedule until its id ends
 *   the wheel             while it is held, as hwt.h calls it
 *   the list of events    while it has one that was not read
 *
 * The table and the hold each have a reference to it. Whatever happens to an entry,
 * firing included, happens under the lock of its context's table, so that everyone
 * agrees on what came first. The lock is a plain spinlock: the callback runs in
 * process context as the system calls do.
 */
#ifndef _HWT_CHARDEV_H
#define _HWT_CHARDEV_H

#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "hwt.h"
#include "hwt_compat.h"
#include "hwt_uapi.h"

/* For what grows at a program's will: at its cgroup's limit, fail and kill nobody. */
#define HWT_GFP_USER		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

struct dentry;
struct hwt_rings_ctx;
struct hwt_user;
struct io_uring_cmd;
struct seq_file;

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
 *              are none, by HWT_IOC_SETUP; or with @shared of them, which stay where they
 *              are, to one of the same kind. All have the same clock.
 * @shared:     timeouts on the wheel that all share
 * @make_lock:  held while a private wheel is made because there are too many of those.
 *              Outside the lock.
 * @walk_lock:  held by who goes through the entries, which takes the lock again and again: one
 *              at a time, so that the wheel's thread waits for one. Outside the lock.
 * @clock:      the clock, as a clockid_t. May be read without the lock.
 * @tick_ns:    the tick
 * @closing:    being stopped: nothing may be scheduled any more
 * @stopped:    the stop is complete: no more events will come up. May be read without
 *              the lock, with acquire; pairs with the release in hwt_ioctl_stop(). Who has
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
	u32			shared;
	struct mutex		make_lock;	/* outside the lock */
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

/**
 * struct hwt_entry - a timeout of a program
 * @ctx:       its context
 * @ready:     in its context's list if it has an event
 * @id:        its id
 * @user_data: what the program knows it by
 * @due_ns:    of the event: when it was due
 * @fired_ns:  of the event: when it came up
 * @cmd:       with @uring: the command, which nobody else may complete; NULL: it has none
 *             any more
 * @refs:      the table's and the hold's
 * @mode:      HWT_MODE_
 * @kind:      of the event: HWT_EVENT_
 * @ended:     no event will come up any more: it fired for good, was stopped or
 *             cancelled
 * @leaving:   its id has ended before its hold, and the user's count of those has it.
 *             Set before the table's reference is dropped; without the lock, to be read
 *             by who drops the last.
 * @uring:     it is a command of io_uring, and has no event. Constant once it is in the
 *             table and the lock was released.
 * @timeout:   the timeout of a one-shot, which is allocated up to here only
 * @periodic:  the same, of a periodic one
 * @period_ns: its period
 * @overruns:  of the event: periods without an event of their own
 * @missed:    those of events that are not there any more
 *
 * All but @refs and the timeout is constant or protected by the table's lock. A one-shot
 * is two cache lines, the second of which is the timeout.
 */
struct hwt_entry {
	struct hwt_context	*ctx;
	struct list_head	ready;
	u64			id;
	u64			user_data;
	u64			due_ns;
	union {
		u64			fired_ns;
		struct io_uring_cmd	*cmd;
	};
	refcount_t		refs;
	u8			mode;
	u8			kind;
	bool			ended : 1;
	bool			leaving : 1;
	bool			uring;
	union {
		struct hwt_timeout	timeout;
		struct hwt_periodic	periodic;
	};
	u64			period_ns;
	u64			overruns;
	u64			missed;
};

#define HWT_STOCK_MAX		16

/**
 * struct hwt_stock - entries of one-shots, allocated together for operations in a row
 * @ahead:   operations that may still want one, at most; set by who carries them out
 * @taken:   entries that they have had since there last was not the memory for more than one
 * @n:       how many there are in @entries
 * @entries: memory for them
 *
 * On the stack of who carries the operations out, zeroed at first; hwt_stock_drop() ends it.
 */
struct hwt_stock {
	u32	ahead;
	u32	taken;
	u32	n;
	void	*entries[HWT_STOCK_MAX];
};

static inline bool hwt_entry_periodic(const struct hwt_entry *entry)
{
	return entry->mode != HWT_MODE_ONE_SHOT;
}

static inline bool hwt_entry_has_event(const struct hwt_entry *entry)
{
	return !list_empty(&entry->ready);
}

/* HWT_STATE_ bits. Under the lock. */
static inline u32 hwt_entry_state(const struct hwt_entry *entry)
{
	return (entry->ended ? 0 : HWT_STATE_PENDING) |
	       (hwt_entry_has_event(entry) ? HWT_STATE_EVENT : 0);
}

static inline u64 hwt_entry_period(const struct hwt_entry *entry)
{
	return hwt_entry_periodic(entry) ? entry->period_ns : 0;
}

/* Of events that are gone and of the one that is there. Under the lock. */
static inline u64 hwt_entry_overruns(const struct hwt_entry *entry)
{
	return hwt_entry_periodic(entry) ? entry->missed + entry->overruns : 0;
}

/* hwt_chardev.c */
int hwt_chardev_init(struct dentry *debugfs);
void hwt_chardev_exit(void);

/* device/entry.c */
extern unsigned int hwt_max_timeouts;
extern unsigned int hwt_max_shared;

int hwt_entries_init(void);
void hwt_entries_wait(void);
void hwt_entries_exit(void);
void hwt_context_init(struct hwt_context *ctx);
void hwt_context_put(struct hwt_context *ctx);
s64 hwt_context_offset(const struct hwt_context *ctx);
u64 hwt_time_to_user(u64 ns, s64 offset);
u64 hwt_entry_due(const struct hwt_entry *entry);
u64 hwt_entry_remaining(const struct hwt_entry *entry);
struct hwt_entry *hwt_entry_find(struct hwt_context *ctx, u64 id);
void hwt_stock_drop(struct hwt_stock *stock);
struct hwt_entry *hwt_entry_alloc(struct hwt_context *ctx, struct hwt_stock *stock, u32 mode,
				  u64 user_data, u64 period_ns);
int hwt_entry_insert(struct hwt_context *ctx, struct hwt_entry *entry);
int hwt_entry_arm(struct hwt_entry *entry, const struct hwt_op *op, u64 period_ns,
		  s64 offset);
void hwt_entry_remove(struct hwt_entry *entry);
void hwt_entry_cancel(struct hwt_entry *entry);
void hwt_entry_put(struct hwt_entry *entry);
void hwt_context_wake_later(struct hwt_context *ctx);

/* device/event.c */
void hwt_event_add(struct hwt_entry *entry, u8 kind, u64 due_ns, u64 now_ns);
void hwt_event_drop(struct hwt_entry *entry);
void hwt_event_fill(const struct hwt_entry *entry, struct hwt_event *event, s64 offset);
void hwt_event_taken(struct hwt_entry *entry);
void hwt_context_wake(struct hwt_context *ctx);
void hwt_context_wake_end(struct hwt_context *ctx);
void hwt_context_clock_set(struct hwt_wheel *wheel, s64 jump_ns, void *arg);
ssize_t hwt_read_iter(struct kiocb *iocb, struct iov_iter *to);
__poll_t hwt_poll(struct file *file, poll_table *wait);

/* device/op.c */
int hwt_op_schedule(struct hwt_context *ctx, struct hwt_op *op, s64 offset,
		    struct hwt_stock *stock, struct io_uring_cmd *cmd);
int hwt_op_modify(struct hwt_context *ctx, const struct hwt_op *op, s64 offset);
int hwt_op_cancel(struct hwt_context *ctx, const struct hwt_op *op);
int hwt_op_get(struct hwt_context *ctx, struct hwt_op *op, s64 offset);
void hwt_op_run(struct hwt_context *ctx, struct hwt_op *op, s64 offset,
		struct hwt_stock *stock);
int hwt_batch(struct hwt_context *ctx, struct hwt_batch_args *batch);

/* device/ring.c */
int hwt_rings_create(struct hwt_context *ctx, struct hwt_rings_args *args);
void hwt_rings_fill(struct hwt_context *ctx);
bool hwt_rings_ready(const struct hwt_context *ctx);
void hwt_rings_poll(void *arg);
int hwt_rings_enter(struct hwt_context *ctx, struct hwt_enter_args *args);
int hwt_rings_mmap(struct file *file, struct vm_area_struct *vma);
void hwt_rings_free(struct hwt_rings_ctx *rings);

/* device/uring.c */
#ifdef HWT_URING
#define HWT_URING_FEATURES	HWT_FEATURE_URING

int hwt_uring_attach(struct hwt_entry *entry, struct io_uring_cmd *cmd);
void hwt_uring_end(struct hwt_entry *entry, int res, bool later);
void hwt_uring_end_done(struct hwt_context *ctx);
int hwt_uring_issue(struct io_uring_cmd *cmd, unsigned int issue_flags);
#else
#define HWT_URING_FEATURES	0

static inline int hwt_uring_attach(struct hwt_entry *entry, struct io_uring_cmd *cmd)
{
	return -EOPNOTSUPP;
}

static inline void hwt_uring_end(struct hwt_entry *entry, int res, bool later) { }
static inline void hwt_uring_end_done(struct hwt_context *ctx) { }
#define hwt_uring_issue	NULL
#endif

/* device/user.c */
extern unsigned int hwt_max_user_timeouts;
extern unsigned int hwt_max_user_wheels;

void hwt_users_init(void);
struct hwt_user *hwt_user_get(void);
void hwt_user_put(struct hwt_user *user);
kuid_t hwt_user_uid(const struct hwt_user *user);
bool hwt_user_add_timeout(struct hwt_user *user);
void hwt_user_drop_timeout(struct hwt_user *user);
bool hwt_user_add_shown(struct hwt_user *user);
void hwt_user_drop_shown(struct hwt_user *user);
void hwt_user_add_leaving(struct hwt_user *user);
void hwt_user_drop_leaving(struct hwt_user *user);
bool hwt_user_leaving_many(struct hwt_user *user);
bool hwt_user_unlimited(void);
struct hwt_wheel *hwt_user_make_wheel(struct hwt_context *ctx,
				      const struct hwt_wheel_params *params);
void hwt_user_unmake_wheel(struct hwt_context *ctx, struct hwt_wheel *wheel);

/* device/show.c */
void hwt_show_fdinfo(struct seq_file *m, struct file *file);
void hwt_context_debugfs_add(struct hwt_context *ctx);
void hwt_context_debugfs_remove(struct hwt_context *ctx);
void hwt_contexts_debugfs_init(struct dentry *dir);

#endif /* _HWT_CHARDEV_H */
