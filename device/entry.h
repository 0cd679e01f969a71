/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a timeout of a program
 *
 * A timeout of a program is a struct hwt_entry. An entry is in up to three places:
 *
 *   the context's table   from its schedule until its id ends
 *   the wheel             while its timeout is held (hwt.h defines a hold)
 *   the list of events    while its event is unread
 *
 * The table and the hold have a reference to the entry each. All operations on an entry, firing
 * included, run under the lock of its context's table, so that system calls and the wheel's thread
 * agree on their order. The lock is a plain spinlock, since both run in process context.
 */
#ifndef _HWT_DEVICE_ENTRY_H
#define _HWT_DEVICE_ENTRY_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/types.h>

#include "hwt.h"
#include "hwt_uapi.h"
#include "device/context.h"

struct io_uring_cmd;

/* Most timeouts of a context with keys: &hwt_entry.slot has 25 bits. */
#define HWT_KEYED_MAX	33554432U

/**
 * struct hwt_entry - a timeout of a program
 * @ctx:       the context
 * @ready:     node in the context's list of events, empty if the entry has no event
 * @id:        the id of the timeout; with keys, the key
 * @user_data: the program's data, without keys
 * @node:      node in the context's table of keys, with keys
 * @due_ns:    of the event: when the timeout was due
 * @fired_ns:  of the event: when it came up
 * @cmd:       with @uring: the command, which the entry owns; NULL: the command has another owner
 *             by now
 * @refs:      references of the table and the hold
 * @slot:      index in the table, with keys; otherwise it is the lower half of @id
 * @mode:      HWT_MODE_
 * @kind:      of the event: HWT_EVENT_
 * @final:     no event will come up any more: a one-shot has fired, or the timeout was stopped or
 *             cancelled
 * @charged:   the entry counts against its user's limit, until it is freed. Constant once the entry
 *             is in the table.
 * @uring:     the timeout is a command of io_uring, and has no event. Constant once the entry is in
 *             the table and the lock was released.
 * @timeout:   the timeout of a one-shot, whose memory ends here
 * @periodic:  the timeout of a periodic entry
 * @period_ns: the period
 * @overruns:  of the event: periods without an event of their own
 * @missed:    overruns of events that were read or withdrawn
 *
 * All members but @refs, @timeout and @periodic are constant or protected by the table's lock. The
 * entry of a one-shot has two cache lines, the second of which is the timeout.
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
	refcount_t		refs;
	u32			slot : 25;
	u32			mode : 2;
	u32			kind : 2;
	u32			final : 1;
	u32			charged : 1;
	u32			uring : 1;
	union {
		struct hwt_timeout	timeout;
		struct hwt_periodic	periodic;
	};
	u64			period_ns;
	u64			overruns;
	u64			missed;
};

#define HWT_PREALLOC_MAX	16

/**
 * struct hwt_prealloc - memory for entries of one-shots, allocated in bulk for several operations
 * @ahead:   upper bound of the operations that still need an entry; set by the caller
 * @taken:   entries handed out since the last failed bulk allocation
 * @n:       number of entries left in @entries
 * @entries: the entries
 *
 * The function that runs the operations has it on its stack, initially zero, and calls
 * hwt_prealloc_free() at the end.
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
	return !list_empty(&entry->ready);
}

/* Return the program's data; with keys, the key. */
static inline u64 hwt_entry_user_data(const struct hwt_entry *entry)
{
	return entry->ctx->keyed ? entry->id : entry->user_data;
}

/* Note that no event will come up any more. Under the lock. */
static inline void hwt_entry_set_final(struct hwt_entry *entry)
{
	entry->ctx->stats.pending -= !entry->final;
	entry->final = true;
}

/* Return the HWT_STATE_ bits: not 0 for an entry in the table. Under the lock. */
static inline u32 hwt_entry_state(const struct hwt_entry *entry)
{
	return (entry->final ? 0 : HWT_STATE_PENDING) |
	       (hwt_entry_has_event(entry) ? HWT_STATE_EVENT : 0);
}

static inline u64 hwt_entry_period(const struct hwt_entry *entry)
{
	return hwt_entry_periodic(entry) ? entry->period_ns : 0;
}

/* Return the overruns of past events and of the present one. Under the lock. */
static inline u64 hwt_entry_overruns(const struct hwt_entry *entry)
{
	return hwt_entry_periodic(entry) ? entry->missed + entry->overruns : 0;
}

int hwt_entries_init(void);
void hwt_entries_exit(void);
u64 hwt_entry_due(const struct hwt_entry *entry);
u64 hwt_entry_remaining(const struct hwt_entry *entry);
void hwt_entry_describe(const struct hwt_entry *entry, struct hwt_list_entry *to, s64 offset);
struct hwt_entry *hwt_entry_find(struct hwt_context *ctx, u64 id);
void hwt_prealloc_free(struct hwt_prealloc *prealloc);
struct hwt_entry *hwt_entry_alloc(struct hwt_context *ctx, struct hwt_prealloc *prealloc,
				  const struct hwt_op *op);
int hwt_keys_init(struct hwt_context *ctx);
int hwt_entry_insert(struct hwt_context *ctx, struct hwt_entry *entry);
struct hwt_entry *hwt_entry_insert_key(struct hwt_context *ctx, struct hwt_entry *entry);
int hwt_entry_arm(struct hwt_entry *entry, const struct hwt_op *op, u64 period_ns,
		  s64 offset);
int hwt_entry_modify(struct hwt_entry *entry, const struct hwt_op *op, u64 period_ns,
		     s64 offset);
int hwt_entry_replace(struct hwt_entry *old, struct hwt_entry *entry, const struct hwt_op *op,
		      s64 offset);
bool hwt_entry_stop(struct hwt_entry *entry);
void hwt_entry_remove(struct hwt_entry *entry);
void hwt_entry_cancel(struct hwt_entry *entry);
void hwt_entry_put(struct hwt_entry *entry);

#endif /* _HWT_DEVICE_ENTRY_H */
