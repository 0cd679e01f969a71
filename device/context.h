/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context: an open file of /dev/hwt
 *
 * A context drives its timeouts itself (device/pass.h), or has a wheel with a kernel thread
 * (device/thread.h). Programs use hwt_uapi.h. docs/design.md lists the files of device/.
 */
#ifndef _HWT_DEVICE_CONTEXT_H
#define _HWT_DEVICE_CONTEXT_H

#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "hwt_uapi.h"
#include "device/pass.h"
#include "device/uring.h"

/*
 * Flags for allocations that a program causes: charged to the caller's memory cgroup. At the limit
 * of this cgroup, the allocation fails, and no task is killed.
 */
#define HWT_GFP_USER		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* Maximum number of timeouts or events that a loop handles before it drops entries.xa_lock */
#define HWT_STEP		16

struct hwt_entry;
struct hwt_rings_ctx;
struct hwt_user;
struct hwt_wheel;

/**
 * struct hwt_context - an open file
 * @user:        the user who has opened the file. Constant.
 * @opener:      the id of the process that has opened the file. Constant.
 * @command:     the name of the process @opener. Constant.
 * @number:      the number of the context in the debugfs file "contexts". Constant.
 * @entries:     the table of the context's timeouts: an xarray of struct hwt_entry. The index of an
 *               entry is its "slot"; without keys, the slot is the lower half of the timeout's id.
 *               The xa_lock of this xarray ("the lock" below) protects the entries, and each member
 *               below whose description does not say otherwise.
 * @keyed:       true if the program chooses the ids, as keys (HWT_SETUP_KEYS). Changes at most
 *               once, when @fixed becomes true. May be read without the lock.
 * @keys:        the hash table of the timeouts by their keys; used only if @keyed is true
 * @id_high:     the upper half of the latest id, incremented for each new id, so that timeouts in
 *               the same slot have different ids; 0 before the first id. Not used with keys.
 * @generation:  counts the calls that arm a timeout, from 1 to U32_MAX, then from 1 again; 0 before
 *               the first call. See "Generations" in hwt_uapi.h.
 * @fixed:       true once HWT_IOC_SETUP has succeeded, or a timeout or rings were created: then
 *               HWT_IOC_SETUP fails. May be read without the lock.
 * @wheel:       with HWT_SETUP_THREAD, the wheel of this context; NULL if the context drives its
 *               timeouts itself, by @pass. Changes at most once, when @fixed becomes true. May be
 *               read without the lock.
 * @pass:        the buckets and the timer of a context without a wheel
 * @setup_lock:  serializes HWT_IOC_SETUP
 * @walk_lock:   serializes walks of @entries, so that at most one walk contends for the lock
 * @clock:       the clock of the deadlines, as a clockid_t. May be read without the lock.
 * @tick_ns:     the length of a tick
 * @max_pending: maximum number of pending timeouts; 0: no limit. Checked by @wheel, if it is set
 * @ready:       the entries that have an unread event, oldest event first. list_empty() needs no
 *               lock.
 * @created_rings: the rings that HWT_IOC_RINGS has created, or NULL. Changes at most once.
 * @rings:       NULL until the program maps the rings, then @created_rings. Once set, events are
 *               moved to the rings, and read() fails. Changes at most once. May be read without
 *               the lock, see hwt_rings_mapped().
 * @commands:    the commands of io_uring that are timeouts of this context
 * @clock_set:   the entry of HWT_EVENT_CLOCK_SET, which is not in @entries; NULL if the program
 *               did not ask for this event. Changes at most once, when @fixed becomes true.
 * @stats:       the counters that HWT_IOC_STATS returns
 * @wait:        queue of the tasks that wait in read(), poll() or HWT_IOC_ENTER
 */
struct hwt_context {
	struct hwt_user		*user;
	pid_t			opener;
	char			command[TASK_COMM_LEN];
	u32			number;
	struct xarray		entries;
	bool			keyed;
	struct rhashtable	keys;
	u32			id_high;
	u32			generation;
	bool			fixed;
	struct hwt_wheel	*wheel;
	struct hwt_pass		pass;
	struct mutex		setup_lock;	/* taken before entries.xa_lock */
	struct mutex		walk_lock;	/* taken before entries.xa_lock */
	int			clock;
	u64			tick_ns;
	u64			max_pending;
	struct list_head	ready;
	struct hwt_rings_ctx	*created_rings;
	struct hwt_rings_ctx	*rings;
	struct hwt_commands	commands;
	struct hwt_entry	*clock_set;
	struct hwt_stats_args	stats;
	wait_queue_head_t	wait;
};

/* Count a refusal by a limit, and return -ENOSPC. Called with entries.xa_lock held. */
static inline int hwt_context_limited(struct hwt_context *ctx, u32 limit)
{
	ctx->stats.limit = limit;
	ctx->stats.rejected++;
	return -ENOSPC;
}

/* Return the time at which a tick begins, on the context's clock. */
static inline u64 hwt_tick_ns(const struct hwt_context *ctx, u64 tick)
{
	return tick == HWT_TICK_NEVER ? HWT_NEVER : tick * ctx->tick_ns;
}

extern unsigned int hwt_max_timeouts;
extern struct xarray hwt_contexts;

int hwt_contexts_init(void);
void hwt_contexts_exit(void);
struct hwt_context *hwt_context_create(void);
void hwt_context_close(struct hwt_context *ctx);
u64 hwt_context_now(const struct hwt_context *ctx);
s64 hwt_context_offset(const struct hwt_context *ctx);
s64 hwt_time_offset(int clock);
u64 hwt_time_from_user(u64 ns, s64 offset, u64 rate);
u64 hwt_time_to_user(u64 ns, s64 offset);
u32 hwt_context_max_timeouts(const struct hwt_context *ctx);
int hwt_ioctl_list(struct hwt_context *ctx, void *args);
u64 hwt_context_cancel_all(struct hwt_context *ctx);

#endif /* _HWT_DEVICE_CONTEXT_H */
