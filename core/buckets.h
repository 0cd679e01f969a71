/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The buckets of a wheel: a data structure without a lock, a clock, a thread or memory of its own.
 * Its users are the core, the device and, in user space, libhwt and tests. They serialize all calls
 * on the same buckets: the core by the shard's lock, the device by the context's lock.
 *
 * The buckets read the tick of a timeout from its state whenever they need it, and keep no copy. So
 * the caller may raise the tick of a timeout in a bucket at any time ("push back"): when the cursor
 * enters the old bucket, the timeout moves to the bucket of its new tick. To lower the tick, the
 * caller must also remove the timeout and insert it again.
 */
#ifndef _HWT_CORE_BUCKETS_H
#define _HWT_CORE_BUCKETS_H

#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "hwt.h"

#define HWT_BITS_MAX	16	/* level 0 has at most 2^16 buckets */
#define HWT_HIGHER_BITS	9U	/* each other level has at most 2^9 buckets */
#define HWT_LEVELS_MAX	6

/* Timeouts of some ticks. */
struct hwt_bucket {
	struct list_head	list;	/* the timeouts, in no order */
	u64			first;	/* lower bound of the ticks; undefined if @list is empty */
};

/* The layout of a level. */
struct hwt_level {
	unsigned int		shift;	/* log2 of the number of ticks that one bucket spans */
	unsigned int		mask;	/* number of buckets, a power of two, less 1 */
	unsigned int		first;	/* index of first bucket, multiple of BITS_PER_LONG */
};

/**
 * struct hwt_buckets - timeouts sorted by tick, coarsely
 * @level:     the layout of each level, of which the first @levels are in use
 * @levels:    number of levels
 * @size:      number of entries in @bucket. A level with fewer than BITS_PER_LONG buckets has
 *             BITS_PER_LONG entries, of which the last are not used
 * @cursor:    the last tick that was reached: a timeout with this or an earlier tick is in @due or
 *             @moving or, while @gathering is set, in a bucket
 * @bucket:    the buckets of all levels, level 0 first
 * @top:       the top level's first bucket in @bucket
 * @occupied:  a bitmap of @bucket: a bit is set while the bucket's list is not empty
 * @soonest:   for each word of the top level's part of @occupied, a lower bound of the ticks in the
 *             buckets whose bits are set in the word; undefined if the word is 0
 * @due:       timeouts that are due, for the caller to take. hwt_buckets_advance() appends them in
 *             the order of ticks; hwt_buckets_insert() appends a timeout that is due already
 * @never:     timeouts with the tick HWT_TICK_NEVER
 * @moving:    timeouts that hwt_buckets_advance() has yet to put into the lists for their ticks.
 *             They come from a bucket that the cursor has entered or, after hwt_buckets_rebase(),
 *             from all buckets and from @due
 * @gathering: true from hwt_buckets_rebase() until all buckets have been emptied
 * @rebased:   true from hwt_buckets_rebase() until @moving is empty again
 *
 * hwt_buckets_rebase() sets the cursor to any tick, earlier ones included. Then all timeouts are
 * moved to the lists for their ticks anew.
 */
struct hwt_buckets {
	struct hwt_level	level[HWT_LEVELS_MAX];
	unsigned int		levels;
	unsigned int		size;
	u64			cursor;
	struct hwt_bucket	*bucket;
	struct hwt_bucket	*top;
	unsigned long		*occupied;
	u64			*soonest;
	struct list_head	due;
	struct list_head	never;
	struct list_head	moving;
	bool			gathering;
	bool			rebased;
};

/*
 * Return the cheapest tick in [tick, tick + slack]: the multiple of the highest power of two. This
 * tick is cheap because timeouts that share a tick share a wake-up. It is also cheap because a
 * timeout whose tick is the first one of its bucket is due when the cursor enters the bucket,
 * without a move to a lower level. To find it, take the end of the interval, and clear all bits
 * below the highest bit that differs from tick - 1. The result is HWT_TICK_NEVER only if @tick is.
 */
static inline u64 hwt_tick_relax(u64 tick, u64 slack)
{
	u64 last;
	int bit;

	if (tick >= HWT_TICK_NEVER)
		return HWT_TICK_NEVER;
	last = tick + min(slack, HWT_TICK_NEVER - 1 - tick);
	bit = fls64((tick - 1) ^ last) - 1;
	return last >> bit << bit;
}

/*
 * Return true if a timeout is in a list by its @link. @link.next is NULL from the initialisation
 * until the timeout is put into a list, and again after it was removed.
 */
static inline bool hwt_linked(const struct hwt_timeout *timeout)
{
	return timeout->link.next;
}

/* Take a timeout off the due list, to fire it. No bucket has it, so no bitmap changes. */
static inline void hwt_buckets_take_due(struct hwt_timeout *timeout)
{
	__list_del_entry(&timeout->link);
	timeout->link.next = NULL;
}

size_t hwt_buckets_size(unsigned int bits, unsigned int levels);
void hwt_buckets_init(struct hwt_buckets *buckets, unsigned int bits, unsigned int levels, u64 now,
		      void *memory);

void hwt_buckets_insert(struct hwt_buckets *buckets, struct hwt_timeout *timeout);
void hwt_buckets_remove(struct hwt_buckets *buckets, struct hwt_timeout *timeout);
u64 hwt_buckets_next_tick(struct hwt_buckets *buckets);
unsigned int hwt_buckets_occupied(const struct hwt_buckets *buckets, unsigned int level);
void hwt_buckets_skip(struct hwt_buckets *buckets, u64 now);
bool hwt_buckets_advance(struct hwt_buckets *buckets, u64 now, unsigned int budget, bool stop);
void hwt_buckets_rebase(struct hwt_buckets *buckets, u64 now);
bool hwt_buckets_flush(struct hwt_buckets *buckets, unsigned int budget);
void hwt_buckets_for_each(struct hwt_buckets *buckets,
			  void (*fn)(struct hwt_timeout *timeout, void *arg), void *arg);

#endif /* _HWT_CORE_BUCKETS_H */
