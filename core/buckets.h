/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The buckets of a wheel: a data structure without locks, clock or threads. Its
 * caller (core/engine.c, or a test in user space) serializes all calls on the same
 * buckets.
 *
 * The tick of a timeout is read from its state whenever it matters, so the caller may raise it at
 * any time ("push back"): when the cursor enters the old bucket, the timeout moves to the bucket of
 * its new tick. To lower the tick, the caller must also remove the timeout and insert it again.
 */
#ifndef _HWT_CORE_BUCKETS_H
#define _HWT_CORE_BUCKETS_H

#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "hwt.h"

#define HWT_BITS_MAX	16	/* at most 65536 buckets on level 0 */
#define HWT_HIGHER_BITS	9U	/* at most 512 on each other level */
#define HWT_LEVELS_MAX	6

/**
 * struct hwt_bucket - timeouts of some ticks
 * @list:  in no order
 * @first: a lower bound of their ticks; undefined if the list is empty
 */
struct hwt_bucket {
	struct list_head	list;
	u64			first;
};

/**
 * struct hwt_level - the layout of a level
 * @shift: log2 of the ticks that a bucket spans
 * @mask:  number of buckets, a power of two, less 1
 * @first: index of its first bucket, which is a multiple of BITS_PER_LONG
 */
struct hwt_level {
	unsigned int		shift;
	unsigned int		mask;
	unsigned int		first;
};

/**
 * struct hwt_buckets - timeouts sorted by tick, coarsely
 * @level:     the levels
 * @levels:    number of levels
 * @size:      number of entries in @bucket; the last ones of a small level are not used
 * @cursor:    the last tick that was reached: all timeouts up to it are in @due or in @moving
 * @bucket:    the buckets, level 0 first
 * @top:       the first bucket of the top level
 * @occupied:  a bit for each bucket: its list is not empty
 * @soonest:   for each word of the top level's part of @occupied, a lower bound of its buckets'
 *             @first; undefined if the word is 0
 * @due:       timeouts whose time has come, in the order of their ticks; the caller takes them
 *             from here
 * @never:     timeouts at HWT_TICK_NEVER
 * @moving:    timeouts that have yet to move to their homes: of a bucket that the cursor has
 *             entered, or of all buckets
 * @gathering: hwt_buckets_rebase() was called, and not all buckets are in @moving yet
 * @rebased:   hwt_buckets_rebase() was called, and not all timeouts have their new places yet
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

/**
 * hwt_tick_relax() - the cheapest tick within a slack
 * @tick:  earliest tick
 * @slack: ticks that it may be late
 *
 * Timeouts that share a tick share a wake-up, and a timeout whose tick is a multiple
 * of the span of a level's buckets fires from that level, without a cascade. So this
 * picks the tick in [tick, tick + slack] that is a multiple of the highest power of
 * two: it has the bits of the end of this interval down to the highest bit in which
 * the end differs from tick - 1, and zeros below.
 *
 * Return: that tick; HWT_TICK_NEVER for HWT_TICK_NEVER only.
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

/* Return true if a timeout is in a list. A timeout that never was in one has a zero link. */
static inline bool hwt_linked(const struct hwt_timeout *timeout)
{
	return timeout->link.next;
}

int hwt_buckets_init(struct hwt_buckets *buckets, unsigned int bits,
		     unsigned int levels, u64 now, gfp_t gfp, int node);
void hwt_buckets_destroy(struct hwt_buckets *buckets);

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
