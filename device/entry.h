/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a timeout of a program
 *
 * Each timeout of a program is a struct hwt_entry. An entry is in up to three places:
 *
 *   the context's table   from the call that creates the timeout until the id ends
 *   the buckets           while the timeout is armed: those of the context or of its wheel
 *   the list of events    while the entry has an unread event
 *
 * All operations on an entry, firing included, run under the lock of the context's table
 * (entries.xa_lock). They run in process context, so the lock disables neither interrupts nor
 * bottom halves. An entry is freed when it is removed from the table or, if a wheel then still
 * holds the timeout, at the end of the hold.
 */
#ifndef _HWT_DEVICE_ENTRY_H
#define _HWT_DEVICE_ENTRY_H

#include <linux/list.h>
#include <linux/rhashtable-types.h>
#include <linux/types.h>

#include "hwt.h"
#include "hwt_uapi.h"
#include "device/context.h"

struct io_uring_cmd;

/* Maximum number of timeouts of a context with keys: hwt_entry->slot has 23 bits. */
#define HWT_KEYED_MAX	8388608U

/**
 * struct hwt_entry - a timeout of a program
 * @ctx:       the context of the timeout
 * @ready:     node in the context's list of events (@ctx->ready) or, if @uring is true, of commands
 *             (@ctx->commands); empty if the entry is not in that list
 * @id:        the id of the timeout; with keys, its key
 * @user_data: the program's data, in a context without keys
 * @node:      node in the hash table of keys (@ctx->keys), in a context with keys
 * @due_ns:    the deadline that the event reports; HWT_NEVER if the timeout has had no event since
 *             it was created or modified
 * @fired_ns:  the time that the event reports: the time of the latest firing
 * @cmd:       if @uring is true, the command of io_uring that the entry owns; NULL once the command
 *             was detached from the entry
 * @generation: the number of the call that armed the timeout, from @ctx->generation; 0 for the
 *             entry of HWT_EVENT_CLOCK_SET
 * @slot:      with keys, the index in the table; without keys, the lower half of @id is the index
 * @mode:      the mode of the timeout (HWT_MODE_)
 * @final:     true if the timeout will not fire: it was cancelled, or is a one-shot that has fired.
 *             False again if the program then modifies the one-shot.
 * @holds:     1 until the entry is removed from the table; with a wheel, plus the number of holds
 *             whose ->release has not been called. These are at most 2: a hold that has ended, and
 *             a new hold, if the timeout was then armed again
 * @uring:     true if the timeout completes a command of io_uring instead of having an event. Set
 *             when the timeout is first armed; constant afterwards.
 * @timeout:   the timeout. The memory of a one-shot's entry ends with this member.
 * @periodic:  the timeout of a periodic entry, which begins with @timeout
 * @period_ns: the period
 * @next_ns:   without a wheel, the exact deadline. The tick in @timeout is this time, rounded up.
 * @overruns:  the overruns that the unread event reports
 * @missed:    sum of the overruns in the events read since the timeout was created or modified
 *
 * All members are constant or protected by entries.xa_lock; with a wheel, @timeout and @periodic
 * belong to the wheel. On 64-bit machines the entry of a one-shot takes two cache lines, the second
 * of which is @timeout.
 */
struct hwt_entry {
	struct hwt_context	*ctx;
	struct list_head	ready;
	u64			id;
	union {
		u64			user_data;
		struct rhash_head	node;
	};
	u64			due_ns;
	union {
		u64			fired_ns;
		struct io_uring_cmd	*cmd;
	};
	u32			generation;
	u32			slot : 23;
	u32			mode : 2;
	u32			final : 1;
	u32			holds : 2;
	u32			uring : 1;
	union {
		struct hwt_timeout	timeout;
		struct hwt_periodic	periodic;
	};
	u64			period_ns;
	u64			next_ns;
	u64			overruns;
	u64			missed;
};

#define HWT_PREALLOC_MAX	16

/**
 * struct hwt_prealloc - memory for entries of one-shots, allocated in bulk for several operations
 * @ahead:   maximum number of entries that the present operation and those after it will need; the
 *           caller sets it before each operation
 * @taken:   number of entries handed out since the start, or since a bulk allocation failed. The
 *           next bulk allocation has at most @taken entries, so it grows with the use
 * @n:       number of entries in @entries
 * @entries: the memory of entries that were not handed out yet
 *
 * The caller initialises this structure to zero, and calls hwt_prealloc_free() after the last
 * operation.
 */
struct hwt_prealloc {
	u32	ahead;
	u32	taken;
	u32	n;
	void	*entries[HWT_PREALLOC_MAX];
};

static inline bool hwt_entry_periodic(const struct hwt_entry *entry)
{
	return entry->mode != HWT_MODE_ONE_SHOT;
}

static inline bool hwt_entry_has_event(const struct hwt_entry *entry)
{
	return !entry->uring && !list_empty(&entry->ready);
}

/* Return the data that the program has given to a timeout; with keys, return the key. */
static inline u64 hwt_entry_user_data(const struct hwt_entry *entry)
{
	return entry->ctx->keyed ? entry->id : entry->user_data;
}

/* Return the tick for which an entry is armed, or was armed last. */
static inline u64 hwt_entry_tick(const struct hwt_entry *entry)
{
	return hwt_timeout_state(&entry->timeout) >> HWT_TICK_SHIFT;
}

/*
 * Set entry->final, and stop counting the timeout as pending if it was counted. Called with
 * entries.xa_lock held.
 */
static inline void hwt_entry_set_final(struct hwt_entry *entry)
{
	entry->ctx->stats.pending -= !entry->final;
	entry->final = true;
}

/*
 * Return the HWT_STATE_ bits of an entry. For an entry in the table they are not 0, because it is
 * pending or has an event. Called with entries.xa_lock held.
 */
static inline u32 hwt_entry_state(const struct hwt_entry *entry)
{
	return (entry->final ? 0 : HWT_STATE_PENDING) |
	       (hwt_entry_has_event(entry) ? HWT_STATE_EVENT : 0);
}

static inline u64 hwt_entry_period(const struct hwt_entry *entry)
{
	return hwt_entry_periodic(entry) ? entry->period_ns : 0;
}

/*
 * Return the number of overruns in all events, read and unread, since the timeout was created or
 * last modified. Called with entries.xa_lock held.
 */
static inline u64 hwt_entry_overruns(const struct hwt_entry *entry)
{
	return hwt_entry_periodic(entry) ? entry->missed + entry->overruns : 0;
}

int hwt_entries_init(void);
void hwt_entries_exit(void);
void hwt_entry_free(struct hwt_entry *entry);
bool hwt_entry_fire(struct hwt_entry *entry, u64 now_ns);
u64 hwt_entry_due(const struct hwt_entry *entry);
u64 hwt_entry_remaining(const struct hwt_entry *entry);
void hwt_entry_describe(const struct hwt_entry *entry, struct hwt_list_entry *to, s64 offset);
struct hwt_entry *hwt_entry_find(struct hwt_context *ctx, u64 id);
void hwt_prealloc_free(struct hwt_prealloc *prealloc);
struct hwt_entry *hwt_entry_alloc(struct hwt_context *ctx, struct hwt_prealloc *prealloc,
				  const struct hwt_op *op);
int hwt_keys_init(struct hwt_context *ctx);
struct hwt_entry *hwt_entry_insert(struct hwt_context *ctx, struct hwt_entry *entry);
int hwt_entry_refuse(struct hwt_entry *entry, struct hwt_op *op, u64 period_ns, s64 offset);
int hwt_entry_arm(struct hwt_entry *entry, struct hwt_op *op, u64 period_ns, s64 offset);
int hwt_entry_modify(struct hwt_entry *entry, struct hwt_op *op, u64 period_ns, s64 offset);
int hwt_entry_replace(struct hwt_entry *old, struct hwt_entry *entry, struct hwt_op *op,
		      s64 offset);
void hwt_entry_remove(struct hwt_entry *entry);
void hwt_entry_cancel(struct hwt_entry *entry);

#endif /* _HWT_DEVICE_ENTRY_H */
