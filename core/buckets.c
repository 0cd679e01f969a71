// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The buckets of a wheel, after Varghese and Lauck (1987), schemes 6 and 7; see docs/design.md
 *
 * When the cursor enters a bucket, the bucket's timeouts become due or, on higher levels, move to
 * lower levels (a cascade). Buckets of the top level also have timeouts of later revolutions
 * (rounds). When the cursor enters such a bucket, these timeouts are put back into it. Long work is
 * divided among several calls, each limited by a budget. Between these calls, @moving of struct
 * hwt_buckets has the timeouts that have yet to be moved.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>

#include "core/buckets.h"

/* Maximum number of entries of @soonest (see struct hwt_buckets) that one search corrects. */
#define HWT_SEARCH_MAX		8
/* Number of bitmap words that are read in about the time of one cache miss, the unit of cost. */
#define HWT_WORDS_PER_TIMEOUT	16
/* Cost of correcting an entry of @soonest from its buckets; to look at a timeout costs 1. */
#define HWT_UPDATE_COST		4

/*
 * The result of a search for the bucket to enter next. A search that has corrected HWT_SEARCH_MAX
 * entries of @soonest gives up: @bucket is not valid then, and @tick is a lower bound.
 */
struct hwt_search {
	struct hwt_bucket	*bucket;
	u64			tick;	/* at which the cursor enters the bucket */
	bool			stale;	/* true if the search gave up */
	unsigned int		cost;	/* in units of the time to look at one timeout */
};

static struct hwt_level *hwt_top_level(struct hwt_buckets *buckets)
{
	return &buckets->level[buckets->levels - 1];
}

static unsigned long *hwt_level_map(const struct hwt_buckets *buckets,
				    const struct hwt_level *level)
{
	return buckets->occupied + level->first / BITS_PER_LONG;
}

/*
 * The @first of a bucket was just set to @tick. If the bucket is on the top level, set the @soonest
 * of its bitmap word to @tick, unless another bucket of the word has an earlier one.
 */
static void hwt_top_lower(struct hwt_buckets *buckets, const struct hwt_bucket *bucket, u64 tick)
{
	unsigned int word;

	if (bucket < buckets->top)
		return;
	word = (bucket - buckets->top) / BITS_PER_LONG;
	if (tick < buckets->soonest[word] || !hwt_level_map(buckets, hwt_top_level(buckets))[word])
		buckets->soonest[word] = tick;
}

/*
 * Put a timeout, which is in no list, into the list for the tick in its state. If the cursor has
 * reached the tick, append the timeout to the due list. Else the highest bit in which the tick and
 * the cursor differ tells the level.
 */
void hwt_buckets_insert(struct hwt_buckets *buckets, struct hwt_timeout *timeout)
{
	const struct hwt_level *level = buckets->level, *top = hwt_top_level(buckets);
	u64 tick = hwt_timeout_state(timeout) >> HWT_TICK_SHIFT, diff = tick ^ buckets->cursor;
	struct list_head *list = &buckets->due;
	struct hwt_bucket *bucket;

	if (tick == HWT_TICK_NEVER) {
		list = &buckets->never;
	} else if (tick > buckets->cursor) {
		while (level < top && diff >> level[1].shift)
			level++;
		bucket = &buckets->bucket[level->first + ((tick >> level->shift) & level->mask)];
		list = &bucket->list;
		if (list_empty(list) || tick < bucket->first) {
			bucket->first = tick;
			hwt_top_lower(buckets, bucket, tick);
			__set_bit(bucket - buckets->bucket, buckets->occupied);
		}
	}
	list_add_tail(&timeout->link, list);
}

/* Take a timeout out of its list, the due list included. Then hwt_linked() is false. */
void hwt_buckets_remove(struct hwt_buckets *buckets, struct hwt_timeout *timeout)
{
	struct list_head *prev = timeout->link.prev, *next = timeout->link.next;
	struct hwt_bucket *bucket = container_of(next, struct hwt_bucket, list);

	list_del(&timeout->link);
	timeout->link.next = NULL;
	/*
	 * If both neighbours are the same node, it is the head of the list, which is empty now. The
	 * lists @due, @never and @moving, and shard->owed, are in no bucket.
	 */
	if (prev == next && bucket >= buckets->bucket && bucket < buckets->bucket + buckets->size)
		__clear_bit(bucket - buckets->bucket, buckets->occupied);
}

/*
 * Return the lowest entry of @soonest, and store its index in *@word. @soonest has an entry for
 * each word of the top level's bitmap: a lower bound of the ticks in the buckets of that word.
 * Return HWT_TICK_NEVER if the level is empty. The search begins with the word that the cursor
 * reaches next. It ends when all remaining buckets begin at or after the lowest entry found,
 * because no later entry can be lower.
 */
static u64 hwt_top_soonest(struct hwt_buckets *buckets, unsigned int *word,
			   struct hwt_search *search)
{
	const struct hwt_level *top = hwt_top_level(buckets);
	const unsigned long *map = hwt_level_map(buckets, top);
	u64 at = (buckets->cursor >> top->shift) + 1, best = HWT_TICK_NEVER;
	unsigned int i, n;

	/* @at is the number of a bucket, counted from tick 0: the bucket begins at @at << shift. */
	for (n = 0; n <= top->mask / BITS_PER_LONG && at << top->shift < best; n++) {
		i = (at & top->mask) / BITS_PER_LONG;
		if (map[i] && buckets->soonest[i] < best) {
			best = buckets->soonest[i];
			*word = i;
		}
		at = (at | (BITS_PER_LONG - 1)) + 1;
	}
	search->cost += n / HWT_WORDS_PER_TIMEOUT;
	return best;
}

/* Set a word's @soonest to the lowest @first of its buckets, and *@slot to that bucket's index. */
static u64 hwt_top_update(struct hwt_buckets *buckets, unsigned int word, unsigned long *slot)
{
	unsigned long bits = hwt_level_map(buckets, hwt_top_level(buckets))[word], i;
	const struct hwt_bucket *top = buckets->top;
	u64 first = HWT_TICK_NEVER;

	for (; bits; bits &= bits - 1) {
		i = (unsigned long)word * BITS_PER_LONG + __ffs(bits);
		if (top[i].first < first) {
			first = top[i].first;
			*slot = i;
		}
	}
	buckets->soonest[word] = first;
	return first;
}

/* Find the bucket of the top level that is to be entered next. Return false if there is none. */
static bool hwt_top_next(struct hwt_buckets *buckets, struct hwt_search *search)
{
	unsigned int shift = hwt_top_level(buckets)->shift, word = 0, n;
	unsigned long slot = 0;
	u64 soonest = HWT_TICK_NEVER;

	search->stale = true;
	for (n = 0; n < HWT_SEARCH_MAX && search->stale; n++) {
		soonest = hwt_top_soonest(buckets, &word, search);
		if (soonest == HWT_TICK_NEVER)
			return false;
		/* If timeouts were removed before, @soonest may be too low: search again. */
		search->stale = hwt_top_update(buckets, word, &slot) != soonest;
		search->cost += search->stale ? HWT_UPDATE_COST : 0;
	}
	search->bucket = buckets->top + slot;
	search->tick = soonest >> shift << shift;
	return true;
}

/*
 * Find the bucket that the cursor enters next. Search from level 0 upwards, because all buckets of
 * a level begin before those of the level above. Return false if all buckets are empty.
 */
static bool hwt_buckets_next(struct hwt_buckets *buckets, struct hwt_search *search)
{
	const struct hwt_level *level, *top = hwt_top_level(buckets);
	unsigned long slot;
	u64 now;

	search->stale = false;
	search->cost = 1;
	for (level = buckets->level; level < top; level++) {
		now = buckets->cursor >> level->shift;
		slot = find_next_bit(hwt_level_map(buckets, level), level->mask + 1UL,
				     (now & level->mask) + 1);
		if (slot <= level->mask) {
			search->bucket = buckets->bucket + level->first + slot;
			search->tick = ((now & ~(u64)level->mask) + slot) << level->shift;
			return true;
		}
		search->cost += level->mask / (HWT_WORDS_PER_TIMEOUT * BITS_PER_LONG);
	}
	return hwt_top_next(buckets, search);
}

/*
 * Return true if hwt_buckets_advance() has yet to move timeouts to lower buckets or the due list.
 */
static bool hwt_buckets_moving(const struct hwt_buckets *buckets)
{
	return buckets->gathering || !list_empty(&buckets->moving);
}

/*
 * Return the tick of the next work: the cursor while a cascade or a rebase is unfinished, and
 * HWT_TICK_NEVER if all buckets are empty. Else return a lower bound of the ticks of the timeouts
 * in buckets: the lowest tick, unless a timeout was removed or pushed back.
 */
u64 hwt_buckets_next_tick(struct hwt_buckets *buckets)
{
	struct hwt_search search;

	if (hwt_buckets_moving(buckets))
		return buckets->cursor;
	if (!hwt_buckets_next(buckets, &search))
		return HWT_TICK_NEVER;
	if (unlikely(search.stale))
		return max(search.tick, buckets->cursor);
	return search.bucket->first;
}

/* Return the number of buckets of a level that have a timeout. */
unsigned int hwt_buckets_occupied(const struct hwt_buckets *buckets, unsigned int level)
{
	const struct hwt_level *counted = &buckets->level[level];
	const unsigned long *map = hwt_level_map(buckets, counted);
	unsigned int word, n = 0;

	for (word = 0; word <= counted->mask / BITS_PER_LONG; word++)
		n += hweight_long(map[word]);
	return n;
}

/* Append the timeouts of all buckets to @list; each bucket costs 1. Return true when done. */
static bool hwt_buckets_gather(struct hwt_buckets *buckets, struct list_head *list,
			       unsigned int *budget)
{
	unsigned long i;

	for_each_set_bit(i, buckets->occupied, buckets->size) {
		if (!*budget)
			return false;
		(*budget)--;
		list_splice_tail_init(&buckets->bucket[i].list, list);
		__clear_bit(i, buckets->occupied);
	}
	buckets->gathering = false;
	return true;
}

/* Move the timeouts in @moving to their lists; each costs 1. Return true when @moving is empty. */
static bool hwt_buckets_move(struct hwt_buckets *buckets, unsigned int *budget)
{
	struct list_head *moving = &buckets->moving, *pos;

	while (!list_empty(moving)) {
		if (!*budget)
			return false;
		/*
		 * Take timeouts from both ends in turn, and prefetch one at the other end. After a
		 * rebase, take them from the front only, so that timeouts of the former due list
		 * keep their order.
		 */
		if ((*budget)-- & 1 || buckets->rebased) {
			pos = moving->next;
			prefetchw(moving->prev->prev);
		} else {
			pos = moving->prev;
			prefetchw(moving->next->next);
		}
		list_del(pos);
		hwt_buckets_insert(buckets, list_entry(pos, struct hwt_timeout, link));
	}
	buckets->rebased = false;
	return true;
}

/* Move the cursor into a bucket. The bucket's timeouts become due at once, or go to @moving. */
static void hwt_buckets_enter(struct hwt_buckets *buckets, const struct hwt_search *search)
{
	size_t index = search->bucket - buckets->bucket;
	/* Timeouts of level 0 are due now. But if it is the top level, some are of later rounds. */
	bool due = index <= buckets->level->mask && buckets->levels > 1;

	buckets->cursor = search->tick;
	list_splice_tail_init(&search->bucket->list, due ? &buckets->due : &buckets->moving);
	__clear_bit(index, buckets->occupied);
}

/*
 * Move the cursor on, up to @now (below HWT_TICK_NEVER), but not into an occupied bucket. Do
 * nothing if a timeout is due or in buckets->moving. Called when nothing was due for long: the
 * closer the cursor is to the present tick, the lower are the levels to which new timeouts go.
 */
void hwt_buckets_skip(struct hwt_buckets *buckets, u64 now)
{
	struct hwt_search search;

	if (hwt_buckets_moving(buckets) || !list_empty(&buckets->due))
		return;
	if (hwt_buckets_next(buckets, &search))
		now = min(now, search.tick - 1);
	buckets->cursor = max(buckets->cursor, now);
}

/**
 * hwt_buckets_advance() - move the cursor on, from occupied bucket to occupied bucket
 * @buckets: the buckets
 * @now:     the tick to go to, below HWT_TICK_NEVER; the cursor does not go back
 * @budget:  maximum number of timeouts to look at. A search for the next bucket counts as
 *           search.cost timeouts; emptying a bucket after hwt_buckets_rebase() counts as one
 * @stop:    if true, do not move the cursor on while the due list is not empty
 *
 * Append the timeouts with ticks up to @now to the due list, in the order of ticks. Timeouts that
 * were pushed back beyond @now may be among them: the caller has to insert these again.
 *
 * Return: true when the cursor has reached @now, or when @stop has kept it from moving on. False
 * when the budget was used up before; the next call continues the work.
 */
bool hwt_buckets_advance(struct hwt_buckets *buckets, u64 now, unsigned int budget, bool stop)
{
	struct hwt_search search;

	if (buckets->gathering && !hwt_buckets_gather(buckets, &buckets->moving, &budget))
		return false;
	for (;;) {
		if (!hwt_buckets_move(buckets, &budget))
			return false;
		if (stop && !list_empty(&buckets->due))
			return true;
		if (!hwt_buckets_next(buckets, &search) || search.tick > now)
			break;
		if (!budget)
			return false;
		budget -= min(budget, search.cost);
		if (likely(!search.stale))
			hwt_buckets_enter(buckets, &search);
	}
	buckets->cursor = max(buckets->cursor, now);
	return true;
}

/*
 * Set the cursor, backward too. The caller must then call hwt_buckets_advance(), which moves all
 * timeouts, those of the due list included, to the lists in which they belong at the new cursor.
 */
void hwt_buckets_rebase(struct hwt_buckets *buckets, u64 now)
{
	list_splice_init(&buckets->due, &buckets->moving);
	buckets->gathering = true;
	buckets->rebased = true;
	buckets->cursor = now;
}

/*
 * For a stop, move the timeouts of up to @budget buckets to the due list, whatever their ticks.
 * Return true when all timeouts are in the due list. Return false when occupied buckets remain.
 */
bool hwt_buckets_flush(struct hwt_buckets *buckets, unsigned int budget)
{
	if (!hwt_buckets_gather(buckets, &buckets->due, &budget))
		return false;
	list_splice_tail_init(&buckets->never, &buckets->due);
	list_splice_tail_init(&buckets->moving, &buckets->due);
	return true;
}

static void hwt_list_for_each(struct list_head *list,
			      void (*fn)(struct hwt_timeout *timeout, void *arg), void *arg)
{
	struct hwt_timeout *timeout, *next;

	list_for_each_entry_safe(timeout, next, list, link)
		fn(timeout, arg);
}

/*
 * Call a function for all timeouts; it may remove the one that it is called for. The time of this
 * call grows with the number of timeouts and with the number of buckets.
 */
void hwt_buckets_for_each(struct hwt_buckets *buckets,
			  void (*fn)(struct hwt_timeout *timeout, void *arg), void *arg)
{
	size_t i;

	hwt_list_for_each(&buckets->due, fn, arg);
	hwt_list_for_each(&buckets->never, fn, arg);
	hwt_list_for_each(&buckets->moving, fn, arg);
	for (i = 0; i < buckets->size; i++)
		hwt_list_for_each(&buckets->bucket[i].list, fn, arg);
}

/* Set the layout of the levels. Each level's part of the bitmap begins at a word boundary. */
static void hwt_levels_init(struct hwt_buckets *buckets, unsigned int bits, unsigned int levels)
{
	unsigned int shift = 0, n;

	buckets->levels = levels;
	buckets->size = 0;
	for (n = 0; n < levels; n++) {
		buckets->level[n].shift = shift;
		buckets->level[n].mask = (1U << bits) - 1;
		buckets->level[n].first = buckets->size;
		buckets->size += max_t(u32, 1U << bits, BITS_PER_LONG);
		shift += bits;
		bits = min(bits, HWT_HIGHER_BITS);
	}
}

/* Return the number of entries of @soonest, one for each word of the top level's bitmap. */
static unsigned int hwt_top_words(struct hwt_buckets *buckets)
{
	return hwt_top_level(buckets)->mask / BITS_PER_LONG + 1;
}

/*
 * Return the size of the memory that buckets need, in bytes. @bits: log2 of the number of buckets
 * of level 0, 1 to HWT_BITS_MAX; a higher level has the same number, but at most 1 <<
 * HWT_HIGHER_BITS. @levels: number of levels, 1 to HWT_LEVELS_MAX.
 */
size_t hwt_buckets_size(unsigned int bits, unsigned int levels)
{
	struct hwt_buckets buckets;

	hwt_levels_init(&buckets, bits, levels);
	return buckets.size * sizeof(*buckets.bucket) +
	       hwt_top_words(&buckets) * sizeof(*buckets.soonest) +
	       buckets.size / BITS_PER_LONG * sizeof(*buckets.occupied);
}

/*
 * Create empty buckets with the cursor at @now. @bits and @levels: the same as for
 * hwt_buckets_size(). @memory: memory of the size that hwt_buckets_size() returns, aligned for a
 * u64. The caller gets the address back from buckets->bucket when it frees the memory.
 */
void hwt_buckets_init(struct hwt_buckets *buckets, unsigned int bits, unsigned int levels, u64 now,
		      void *memory)
{
	unsigned int i;

	hwt_levels_init(buckets, bits, levels);
	buckets->cursor = now;
	buckets->gathering = false;
	buckets->rebased = false;
	INIT_LIST_HEAD(&buckets->due);
	INIT_LIST_HEAD(&buckets->never);
	INIT_LIST_HEAD(&buckets->moving);
	buckets->bucket = (struct hwt_bucket *)memory;
	buckets->top = buckets->bucket + hwt_top_level(buckets)->first;
	buckets->soonest = (u64 *)(buckets->bucket + buckets->size);
	buckets->occupied = (unsigned long *)(buckets->soonest + hwt_top_words(buckets));
	for (i = 0; i < buckets->size; i++)
		INIT_LIST_HEAD(&buckets->bucket[i].list);
	for (i = 0; i < buckets->size / BITS_PER_LONG; i++)
		buckets->occupied[i] = 0;
}
