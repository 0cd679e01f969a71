/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a timeout of a program
 *
 * A timeout of a program is a struct hwt_entry. An entry is in up to three places:
 *
 *   the context's table   from its schedule until its id ends
 *   the wheel             while it is held, as hwt.h calls it
 *   the list of events    while its event is unread
 *
 * The table and the hold have a reference to the entry each. Everything that happens to an entry,
 * firing included, happens under the lock of its context's table, so that all sides agree on the
 * order. The lock is a plain spinlock: the callback runs in process context, as system calls do.
 */
#ifndef _HWT_DEVICE_ENTRY_H
#define _HWT_DEVICE_ENTRY_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>

#include "hwt.h"
#include "hwt_uapi.h"

struct hwt_context;
struct io_uring_cmd;

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
 * @dying:     its id has ended before its hold, and the user's count of those has it.
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
	bool			dying : 1;
	bool			uring;
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
 * struct hwt_prealloc - entries of one-shots, allocated together for operations in a row
 * @ahead:   operations that may still want one, at most; set by who carries them out
 * @taken:   entries that they have had since there last was not the memory for more than one
 * @n:       how many there are in @entries
 * @entries: memory for them
 *
 * On the stack of who carries the operations out, zeroed at first; hwt_prealloc_free() ends it.
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

extern unsigned int hwt_max_timeouts;
extern unsigned int hwt_max_shared;

int hwt_entries_init(void);
void hwt_entries_exit(void);
u64 hwt_time_to_user(u64 ns, s64 offset);
u64 hwt_entry_due(const struct hwt_entry *entry);
u64 hwt_entry_remaining(const struct hwt_entry *entry);
struct hwt_entry *hwt_entry_find(struct hwt_context *ctx, u64 id);
void hwt_prealloc_free(struct hwt_prealloc *prealloc);
struct hwt_entry *hwt_entry_alloc(struct hwt_context *ctx, struct hwt_prealloc *prealloc, u32 mode,
				  u64 user_data, u64 period_ns);
int hwt_entry_insert(struct hwt_context *ctx, struct hwt_entry *entry);
int hwt_entry_arm(struct hwt_entry *entry, const struct hwt_op *op, u64 period_ns,
		  s64 offset);
void hwt_entry_remove(struct hwt_entry *entry);
void hwt_entry_cancel(struct hwt_entry *entry);
void hwt_entry_put(struct hwt_entry *entry);

#endif /* _HWT_DEVICE_ENTRY_H */
