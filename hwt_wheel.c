// SPDX-License-Identifier: GPL-2.0-only
/*
 * The buckets of a wheel, after Varghese and Lauck (1987), schemes 6 and 7
 *
 * There are `levels` arrays of 2^bits buckets. Level 0 has a bucket per tick and
 * holds what falls into the cursor's current revolution of it; a bucket of level n + 1
 * spans a whole revolution of level n. With the default 512 buckets, 3 levels and a tick
 * of 1 ms:
 *
 *   level  bucket (granularity)        revolution (range)
 *     0             1 ms                    512 ms
 *     1           512 ms                    262 s (~4 min)
 *     2           262 s                  134218 s (~37 h), more in rounds
 *
 * A timeout's home is the lowest level whose current revolution its tick shares with the
 * cursor: the level of the highest bit in which tick and cursor differ. Revolutions are
 * aligned, not sliding, which gives three things:
 *
 *   - Timeouts of one tick are always in one bucket, behind each other in the order
 *     of insertion, and stay in that order when the bucket cascades.
 *   - Everything on a level is due before anything on the next one, so the next tick
 *     with work is the first occupied bucket of the lowest level that has one.
 *   - When the cursor enters a bucket of level n, the buckets at the same tick below
 *     it are empty: at each tick there is one bucket to visit.
 *
 * On the top level alone, ticks beyond the current revolution share the buckets (rounds).
 * The round is not stored: a visit compares the timeout's tick with the cursor, and
 * writes nothing to the timeouts that stay. With one level this is a hashed wheel.
 *
 * Each bucket has a lower bound of its ticks, `first`. The engine sleeps until that tick, not until
 * the bucket has to cascade, and the cursor passes by buckets whose timeouts are all of later
 * rounds. To find the next bucket of the top level, which may be any of them, each word of that
 * level's bitmap has a lower bound too, `soonest`.
 *
 * No call takes time for each bucket or each timeout, but those that say so. Whatever may be long
 * (a million timeouts in one bucket, or 65,536 buckets in use) is done in steps of a budget:
 *
 *   visit   The timeouts of a bucket that the cursor has entered cascade. A mark in the list
 *           separates those that are through. What is inserted meanwhile into the range of the
 *           bucket queues up at its end, so a visit that pauses changes no order.
 *   rebase  First all buckets are gathered on one list, @displaced, before the mark there. What is
 *           inserted meanwhile queues up behind the mark. Then that list is visited.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "hwt_wheel.h"

/* How many words of the top level's bitmap one search brings up to date. */
#define HWT_SEARCH_MAX	8

/**
 * struct hwt_place - a bucket, as the result of a search
 * @level: its level
 * @slot:  its number within the level
 * @tick:  the tick at which the cursor enters it
 * @stale: the search was given up: no bucket has to be entered before @tick, and a new search gets
 *         further
 * @cost:  what the search took, in timeouts looked at
 */
struct hwt_place {
	unsigned int	level;
	unsigned long	slot;
	u64		tick;
	bool		stale;
	unsigned int	cost;
};

static u64 hwt_timeout_tick(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) >> HWT_TICK_SHIFT;
}

static unsigned long hwt_buckets_mask(const struct hwt_buckets *buckets)
{
	return (1UL << buckets->bits) - 1;
}

static unsigned long *hwt_level_map(const struct hwt_buckets *buckets,
				    unsigned int level)
{
	return buckets->occupied + (size_t)level * buckets->words;
}

/* The bucket whose list this is; NULL if it is another list. */
static struct hwt_bucket *hwt_list_bucket(const struct hwt_buckets *buckets,
					  struct list_head *list)
{
	struct hwt_bucket *bucket = container_of(list, struct hwt_bucket, list);

	if (bucket < buckets->bucket ||
	    bucket >= buckets->bucket + ((size_t)buckets->levels << buckets->bits))
		return NULL;
	return bucket;
}

/* Say in the bitmap whether a bucket has anything in it. */
static void hwt_bucket_mark(struct hwt_buckets *buckets, const struct hwt_bucket *bucket,
			    bool occupied)
{
	size_t index = bucket - buckets->bucket;
	unsigned long *map = hwt_level_map(buckets, index >> buckets->bits);

	if (occupied)
		__set_bit(index & hwt_buckets_mask(buckets), map);
	else
		__clear_bit(index & hwt_buckets_mask(buckets), map);
}

/* A bucket's bound has been lowered to @tick: lower that of its word on the top level, too. */
static void hwt_top_lower(struct hwt_buckets *buckets, const struct hwt_bucket *bucket, u64 tick)
{
	unsigned int word;

	if (bucket < buckets->top)
		return;
	word = (bucket - buckets->top) / BITS_PER_LONG;
	if (tick < buckets->soonest[word] ||
	    !hwt_level_map(buckets, buckets->levels - 1)[word])
		buckets->soonest[word] = tick;
}

/* A timeout is about to be put into a bucket. */
static void hwt_bucket_note(struct hwt_buckets *buckets, struct hwt_bucket *bucket, u64 tick)
{
	bool empty = list_empty(&bucket->list);

	if (!empty && tick >= bucket->first)
		return;
	bucket->first = tick;
	hwt_top_lower(buckets, bucket, tick);
	if (empty)
		hwt_bucket_mark(buckets, bucket, true);
}

/* A list, which may be a bucket, has become empty. */
static void hwt_list_emptied(struct hwt_buckets *buckets, struct list_head *list)
{
	struct hwt_bucket *bucket = hwt_list_bucket(buckets, list);

	if (bucket)
		hwt_bucket_mark(buckets, bucket, false);
}

/* Put a timeout, by its link, at the end of the list where its tick belongs. */
static void hwt_list_put(struct hwt_buckets *buckets, struct list_head *list,
			 struct list_head *link, u64 tick)
{
	struct hwt_bucket *bucket = hwt_list_bucket(buckets, list);

	if (bucket)
		hwt_bucket_note(buckets, bucket, tick);
	list_add_tail(link, list);
}

/* The list where a tick belongs, seen from the cursor. */
static inline struct list_head *hwt_tick_home(struct hwt_buckets *buckets, u64 tick)
{
	unsigned int level = 0, shift = 0;
	u64 diff = tick ^ buckets->cursor;

	if (tick <= buckets->cursor)
		return &buckets->due;
	if (tick == HWT_TICK_NEVER)
		return &buckets->never;
	while (level < buckets->levels - 1 && diff >> (shift + buckets->bits)) {
		level++;
		shift += buckets->bits;
	}
	return &buckets->bucket[((size_t)level << buckets->bits) +
				((tick >> shift) & hwt_buckets_mask(buckets))].list;
}

/* Does a tick belong to the list that is being visited? */
static bool hwt_in_visit(const struct hwt_buckets *buckets, u64 tick)
{
	return buckets->visited &&
	       tick >> buckets->visit_shift ==
	       buckets->cursor >> buckets->visit_shift;
}

/**
 * hwt_buckets_insert() - put a timeout where its tick belongs
 * @buckets: the buckets
 * @timeout: not in any list; its state has the tick
 *
 * Behind all others of the same tick; in the due list if the cursor has reached the tick.
 */
void hwt_buckets_insert(struct hwt_buckets *buckets, struct hwt_timeout *timeout)
{
	u64 tick = hwt_timeout_tick(timeout);

	/* The list is being visited: the timeout queues up there, and the visit moves it on. */
	if (unlikely(hwt_in_visit(buckets, tick)))
		list_add_tail(&timeout->link, buckets->visited);
	else
		hwt_list_put(buckets, hwt_tick_home(buckets, tick), &timeout->link, tick);
}

/**
 * hwt_buckets_remove() - take a timeout out
 * @buckets: the buckets
 * @timeout: anywhere in them, the due list included; hwt_linked() is false then
 */
void hwt_buckets_remove(struct hwt_buckets *buckets, struct hwt_timeout *timeout)
{
	struct list_head *prev = timeout->link.prev, *next = timeout->link.next;

	list_del(&timeout->link);
	timeout->link.next = NULL;
	/* It was alone: then both its neighbours were the list's head. */
	if (prev == next)
		hwt_list_emptied(buckets, next);
}

/*
 * The word of the top level's bitmap with the lowest bound. Words are looked at in the order in
 * which the cursor comes to them, until none of the others can be lower.
 *
 * Return: the bound, HWT_TICK_NEVER if the level is empty.
 */
static u64 hwt_top_soonest(const struct hwt_buckets *buckets, unsigned int *word,
			   struct hwt_place *place)
{
	unsigned int level = buckets->levels - 1, shift = level * buckets->bits, i, n;
	const unsigned long *map = hwt_level_map(buckets, level);
	u64 at = (buckets->cursor >> shift) + 1, best = HWT_TICK_NEVER;

	/* @at counts the level's buckets from tick 0 on. */
	for (n = 0; n < buckets->words && at << shift < best; n++) {
		i = (at & hwt_buckets_mask(buckets)) / BITS_PER_LONG;
		if (map[i] && buckets->soonest[i] < best) {
			best = buckets->soonest[i];
			*word = i;
		}
		at = (at | (BITS_PER_LONG - 1)) + 1;
	}
	place->cost += n / 16;
	return best;
}

/* Bring the bound of a word up to date. Return: the bound; @slot: a bucket that has it. */
static u64 hwt_top_update(struct hwt_buckets *buckets, unsigned int word, unsigned long *slot)
{
	const unsigned long *map = hwt_level_map(buckets, buckets->levels - 1);
	const struct hwt_bucket *top = buckets->top;
	unsigned long bits = map[word], i;
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

/* The bucket of the top level that the cursor has to enter next. False if there is none. */
static bool hwt_top_next(struct hwt_buckets *buckets, struct hwt_place *place)
{
	unsigned int level = buckets->levels - 1, shift = level * buckets->bits, word = 0, n;
	u64 soonest = HWT_TICK_NEVER;

	place->level = level;
	place->slot = 0;
	place->stale = true;
	for (n = 0; n < HWT_SEARCH_MAX && place->stale; n++) {
		soonest = hwt_top_soonest(buckets, &word, place);
		if (soonest == HWT_TICK_NEVER)
			return false;
		/* The bound may be of a bucket that was emptied, or entered, since. */
		place->stale = hwt_top_update(buckets, word, &place->slot) != soonest;
		place->cost += place->stale ? 4 : 0;
	}
	place->tick = soonest >> shift << shift;
	return true;
}

/* The bucket that the cursor has to enter next. False if there is none. */
static bool hwt_buckets_next(struct hwt_buckets *buckets, struct hwt_place *place)
{
	unsigned long mask = hwt_buckets_mask(buckets);
	unsigned int level, shift;
	u64 now;

	place->stale = false;
	place->cost = 1;
	for (level = 0, shift = 0; level < buckets->levels - 1;
	     level++, shift += buckets->bits) {
		now = buckets->cursor >> shift;
		place->slot = find_next_bit(hwt_level_map(buckets, level), mask + 1,
					    (now & mask) + 1);
		if (place->slot <= mask) {
			place->level = level;
			place->tick = ((now & ~(u64)mask) + place->slot) << shift;
			return true;
		}
		place->cost += buckets->words / 16;
	}
	return hwt_top_next(buckets, place);
}

static struct hwt_bucket *hwt_place_bucket(const struct hwt_buckets *buckets,
					   const struct hwt_place *place)
{
	return &buckets->bucket[((size_t)place->level << buckets->bits) + place->slot];
}

/**
 * hwt_buckets_next_tick() - the tick of the next work
 * @buckets: the buckets
 *
 * Return: the cursor, if a visit is under way; else a tick before which no timeout is due, the due
 * list aside. It is the tick of the first timeout, unless timeouts were removed or pushed back
 * since the cursor last came by. HWT_TICK_NEVER if there are no timeouts.
 */
u64 hwt_buckets_next_tick(struct hwt_buckets *buckets)
{
	struct hwt_place place;

	if (buckets->visited)
		return buckets->cursor;
	if (!hwt_buckets_next(buckets, &place))
		return HWT_TICK_NEVER;
	if (unlikely(place.stale))
		return max(place.tick, buckets->cursor);
	return hwt_place_bucket(buckets, &place)->first;
}

/**
 * hwt_buckets_occupied() - count the buckets in use
 * @buckets: the buckets
 * @level:   the level, below @buckets->levels
 *
 * Return: how many of the level's buckets have a timeout.
 */
unsigned int hwt_buckets_occupied(const struct hwt_buckets *buckets, unsigned int level)
{
	const unsigned long *map = hwt_level_map(buckets, level);
	unsigned int word, n = 0;

	for (word = 0; word < buckets->words; word++)
		n += hweight_long(map[word]);
	return n;
}

static void hwt_visit_begin(struct hwt_buckets *buckets, struct list_head *list,
			    unsigned int shift)
{
	buckets->visited = list;
	buckets->visit_shift = shift;
}

/* End a visit, or break it off. */
static void hwt_visit_end(struct hwt_buckets *buckets)
{
	struct list_head *list = buckets->visited;

	list_del_init(&buckets->mark);
	buckets->visited = NULL;
	buckets->gathering = false;
	if (list && list_empty(list))
		hwt_list_emptied(buckets, list);
}

/* Go on with the visit. Return: true at its end, false if the budget was used up. */
static bool hwt_visit_step(struct hwt_buckets *buckets, unsigned int *budget)
{
	struct list_head *list = buckets->visited, *home, *pos, *next;
	struct hwt_bucket *bucket = hwt_list_bucket(buckets, list);
	u64 tick;

	/* The mark is in the list only after a pause. */
	pos = list_empty(&buckets->mark) ? list->next : buckets->mark.next;
	list_del_init(&buckets->mark);
	for (; pos != list; pos = next) {
		if (!*budget) {
			list_add_tail(&buckets->mark, pos);
			return false;
		}
		(*budget)--;
		next = pos->next;
		tick = hwt_timeout_tick(list_entry(pos, struct hwt_timeout, link));
		home = hwt_tick_home(buckets, tick);
		if (home == list) {
			/* A later round. */
			bucket->first = min(bucket->first, tick);
			continue;
		}
		list_del(pos);
		hwt_list_put(buckets, home, pos, tick);
	}
	hwt_visit_end(buckets);
	return true;
}

/* The cursor enters a bucket. */
static void hwt_buckets_enter(struct hwt_buckets *buckets,
			      const struct hwt_place *place)
{
	struct hwt_bucket *bucket = hwt_place_bucket(buckets, place);

	buckets->cursor = place->tick;
	if (place->level == 0 && buckets->levels > 1) {
		/* One tick, no rounds: the whole list is due. */
		list_splice_tail_init(&bucket->list, &buckets->due);
		__clear_bit(place->slot, hwt_level_map(buckets, 0));
		return;
	}
	/* The visit finds the bound of the timeouts that stay (later rounds). */
	bucket->first = HWT_TICK_NEVER;
	hwt_visit_begin(buckets, &bucket->list, place->level * buckets->bits);
}

/*
 * Move buckets, the lowest first, to the end of a list. Order within a tick is kept.
 *
 * Return: true when all are empty, false when the budget was used up before.
 */
static bool hwt_buckets_gather(struct hwt_buckets *buckets, struct list_head *list,
			       unsigned int *budget)
{
	unsigned long slot, size = 1UL << buckets->bits;
	struct list_head *home;
	unsigned int level;

	for (level = 0; level < buckets->levels; level++) {
		unsigned long *map = hwt_level_map(buckets, level);

		for_each_set_bit(slot, map, size) {
			if (!*budget)
				return false;
			(*budget)--;
			home = &buckets->bucket[((size_t)level << buckets->bits) + slot].list;
			list_splice_tail_init(home, list);
			__clear_bit(slot, map);
		}
	}
	return true;
}

/* Go on with gathering for a rebase. Return: true at its end, when the visit begins. */
static bool hwt_rebase_step(struct hwt_buckets *buckets, unsigned int *budget)
{
	if (!hwt_buckets_gather(buckets, &buckets->mark, budget))
		return false;
	list_del_init(&buckets->mark);
	buckets->gathering = false;
	return true;
}

/**
 * hwt_buckets_skip() - move the cursor on, but into no occupied bucket
 * @buckets: the buckets
 * @now:     no further than to this tick, before HWT_TICK_NEVER; a tick behind the
 *           cursor changes nothing
 *
 * Nothing is visited, and nothing becomes due. After a long time in which nothing was
 * due, this lets new timeouts go to a lower level.
 */
void hwt_buckets_skip(struct hwt_buckets *buckets, u64 now)
{
	struct hwt_place place;

	if (buckets->visited || !list_empty(&buckets->due))
		return;
	if (hwt_buckets_next(buckets, &place))
		now = min(now, place.tick - 1);
	buckets->cursor = max(buckets->cursor, now);
}

/**
 * hwt_buckets_advance() - move the cursor on, from occupied bucket to occupied bucket
 * @buckets: the buckets
 * @now:     tick to go to, before HWT_TICK_NEVER; a tick behind the cursor
 *           changes nothing
 * @budget:  timeouts that may be looked at in this call; searches for buckets are charged by the
 *           time they take
 *
 * All timeouts with ticks up to @now go to the due list, in the order of their ticks,
 * and within a tick in the order of insertion. Timeouts that were pushed back beyond @now may be
 * among them: the caller checks each, and inserts those again.
 *
 * Return: true when the cursor has reached @now, false when the budget was used up
 * before; the next call goes on.
 */
bool hwt_buckets_advance(struct hwt_buckets *buckets, u64 now, unsigned int budget)
{
	struct hwt_place place;

	if (buckets->gathering && !hwt_rebase_step(buckets, &budget))
		return false;
	for (;;) {
		if (buckets->visited && !hwt_visit_step(buckets, &budget))
			return false;
		if (!hwt_buckets_next(buckets, &place) || place.tick > now)
			break;
		if (!budget)
			return false;
		budget -= min(budget, place.cost);
		if (likely(!place.stale))
			hwt_buckets_enter(buckets, &place);
	}
	buckets->cursor = max(buckets->cursor, now);
	return true;
}

/**
 * hwt_buckets_rebase() - set the cursor, backward too
 * @buckets: the buckets
 * @now:     where the cursor is from now on
 *
 * Timeouts are put in their new places by the next hwt_buckets_advance(), which must follow. Due
 * timeouts that were not taken yet may turn out not to be due any more.
 */
void hwt_buckets_rebase(struct hwt_buckets *buckets, u64 now)
{
	/* While an earlier one is gathering, nothing is due, and nothing depends on the cursor. */
	if (!buckets->gathering) {
		hwt_visit_end(buckets);
		/* Timeouts that an earlier rebase has not put back were overtaken by none. */
		list_add(&buckets->mark, &buckets->displaced);
		list_splice_tail_init(&buckets->due, &buckets->mark);
		buckets->gathering = true;
		/* With this shift every tick agrees with the cursor. */
		hwt_visit_begin(buckets, &buckets->displaced, 64 - HWT_TICK_SHIFT);
	}
	buckets->cursor = now;
}

/**
 * hwt_buckets_flush() - make everything due, for a stop
 * @buckets: the buckets
 * @budget:  buckets that may be emptied in this call
 *
 * Return: true when only the due list is left; false when the budget was used up before.
 */
bool hwt_buckets_flush(struct hwt_buckets *buckets, unsigned int budget)
{
	hwt_visit_end(buckets);
	if (!hwt_buckets_gather(buckets, &buckets->due, &budget))
		return false;
	list_splice_tail_init(&buckets->never, &buckets->due);
	list_splice_tail_init(&buckets->displaced, &buckets->due);
	return true;
}

static void hwt_list_for_each(struct hwt_buckets *buckets, struct list_head *list,
			      void (*fn)(struct hwt_timeout *timeout, void *arg), void *arg)
{
	struct list_head *pos, *next;

	list_for_each_safe(pos, next, list)
		if (pos != &buckets->mark)
			fn(list_entry(pos, struct hwt_timeout, link), arg);
}

/**
 * hwt_buckets_for_each() - call a function for all timeouts
 * @buckets: the buckets
 * @fn:      may remove the timeout it is given
 * @arg:     for @fn
 *
 * Takes time for each timeout.
 */
void hwt_buckets_for_each(struct hwt_buckets *buckets,
			  void (*fn)(struct hwt_timeout *timeout, void *arg), void *arg)
{
	size_t i;

	hwt_list_for_each(buckets, &buckets->due, fn, arg);
	hwt_list_for_each(buckets, &buckets->never, fn, arg);
	hwt_list_for_each(buckets, &buckets->displaced, fn, arg);
	for (i = 0; i < (size_t)buckets->levels << buckets->bits; i++)
		hwt_list_for_each(buckets, &buckets->bucket[i].list, fn, arg);
}

/*
 * With __GFP_RETRY_MAYFAIL, which asks for failure instead of the OOM killer, kvmalloc() would try
 * hard for contiguous pages. That is not worth it.
 */
static void *hwt_buckets_alloc(size_t n, size_t size, gfp_t gfp)
{
	if (n * size > PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)
		return __vmalloc_array(n, size, gfp);
	return kvmalloc_array(n, size, gfp);
}

/**
 * hwt_buckets_init() - create empty buckets
 * @buckets: the structure to initialise
 * @bits:    log2 of the buckets of a level, 1 to HWT_BITS_MAX
 * @levels:  1 to HWT_LEVELS_MAX; levels beyond all possible ticks are left out
 * @now:     the cursor
 * @gfp:     how to allocate
 *
 * Return: 0 or -ENOMEM.
 */
int hwt_buckets_init(struct hwt_buckets *buckets, unsigned int bits,
		     unsigned int levels, u64 now, gfp_t gfp)
{
	size_t i, n;

	buckets->bits = bits;
	buckets->levels = min(levels, DIV_ROUND_UP(64U - HWT_TICK_SHIFT, bits));
	buckets->words = BITS_TO_LONGS(1UL << bits);
	buckets->cursor = now;
	buckets->visited = NULL;
	buckets->visit_shift = 0;
	buckets->gathering = false;
	INIT_LIST_HEAD(&buckets->due);
	INIT_LIST_HEAD(&buckets->never);
	INIT_LIST_HEAD(&buckets->displaced);
	INIT_LIST_HEAD(&buckets->mark);

	n = (size_t)buckets->levels << bits;
	buckets->bucket = hwt_buckets_alloc(n, sizeof(*buckets->bucket), gfp);
	buckets->top = buckets->bucket + ((size_t)(buckets->levels - 1) << bits);
	buckets->occupied = kvcalloc((size_t)buckets->levels * buckets->words,
				     sizeof(*buckets->occupied), gfp);
	buckets->soonest = kvcalloc(buckets->words, sizeof(*buckets->soonest), gfp);
	if (!buckets->bucket || !buckets->occupied || !buckets->soonest) {
		hwt_buckets_destroy(buckets);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		INIT_LIST_HEAD(&buckets->bucket[i].list);
	return 0;
}

/**
 * hwt_buckets_destroy() - free the buckets
 * @buckets: the buckets, empty
 */
void hwt_buckets_destroy(struct hwt_buckets *buckets)
{
	kvfree(buckets->bucket);
	kvfree(buckets->occupied);
	kvfree(buckets->soonest);
	buckets->bucket = NULL;
	buckets->occupied = NULL;
	buckets->soonest = NULL;
}
