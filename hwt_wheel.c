// SPDX-License-Identifier: GPL-2.0-only
/*
 * The buckets of a wheel, after Varghese and Lauck (1987), schemes 6 and 7
 *
 * There are `levels` arrays of 2^bits buckets. Level 0 has a bucket per tick and
 * holds what falls into the cursor's current turn of it; a bucket of level n + 1
 * spans a whole turn of level n. With the default 512 buckets, 3 levels and a tick
 * of 1 ms:
 *
 *   level  bucket (granularity)        turn (range)
 *     0             1 ms                    512 ms
 *     1           512 ms                    262 s (~4 min)
 *     2           262 s                  134218 s (~37 h), more in rounds
 *
 * A timeout's home is the lowest level whose current turn its tick shares with the
 * cursor: the level of the highest bit in which tick and cursor differ. Turns are
 * aligned, not sliding, which gives three things:
 *
 *   - Timeouts of one tick are always in one bucket, behind each other in the order
 *     of insertion, and stay in that order when the bucket is demoted.
 *   - Everything on a level is due before anything on the next one, so the next tick
 *     with work is the first occupied bucket of the lowest level that has one.
 *   - When the cursor enters a bucket of level n, the buckets at the same tick below
 *     it are empty: at each tick there is one bucket to visit.
 *
 * On the top level alone, ticks beyond the current turn share the buckets (rounds).
 * The round is not stored: a visit compares the timeout's tick with the cursor, and
 * writes nothing to those that stay. With one level this is a hashed wheel.
 *
 * Each bucket knows a tick before which none of its timeouts is due. So nobody has to
 * wake up to demote a bucket before its first one is due, and the cursor passes by those
 * whose timeouts are all of later rounds.
 *
 * A visit may be long (a million timeouts in one bucket), so it is done in steps. A
 * mark in the list, when it pauses, says how far it has come, and whatever is inserted meanwhile
 * into the range that is being visited queues up behind it: so a visit that
 * pauses changes no order.
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

/* One bucket, by place, and the tick at which the cursor enters it. */
struct hwt_place {
	unsigned int	level;
	unsigned long	slot;
	u64		tick;
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

	if (bucket && list_empty(list)) {
		bucket->first = tick;
		hwt_bucket_mark(buckets, bucket, true);
	} else if (bucket) {
		bucket->first = min(bucket->first, tick);
	}
	list_add_tail(link, list);
}

/* The list where a tick belongs, seen from the cursor. */
static struct list_head *hwt_tick_home(struct hwt_buckets *buckets, u64 tick)
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

static bool hwt_in_visit(const struct hwt_buckets *buckets, u64 tick)
{
	return buckets->visited &&
	       tick >> buckets->visit_shift ==
	       buckets->cursor >> buckets->visit_shift;
}

/**
 * hwt_buckets_insert() - put a timeout where its tick belongs
 * @buckets: the buckets
 * @timeout: not in any list; its word says the tick
 *
 * Behind all others of the same tick. If the cursor has reached the tick, that is
 * the due list.
 */
void hwt_buckets_insert(struct hwt_buckets *buckets, struct hwt_timeout *timeout)
{
	u64 tick = hwt_timeout_tick(timeout);

	/* Its list is being visited: it queues up behind the others, and the visit moves it on. */
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
 * The bucket of the top level that the cursor has to enter next. The occupied ones are looked at in
 * the order in which the cursor comes to them. One that has only later rounds may be entered later
 * than one behind it: so until no other can come before the best so far.
 */
static bool hwt_top_next(const struct hwt_buckets *buckets, struct hwt_place *place)
{
	unsigned int level = buckets->levels - 1, shift = level * buckets->bits;
	const struct hwt_bucket *top = buckets->bucket + ((size_t)level << buckets->bits);
	unsigned long mask = hwt_buckets_mask(buckets), slot;
	u64 now = buckets->cursor >> shift, at = now + 1, best = HWT_TICK_NEVER;

	/* @now and @at count the level's buckets from tick 0 on. */
	while (at <= now + mask + 1 && at < best) {
		slot = find_next_bit(hwt_level_map(buckets, level), mask + 1, at & mask);
		at = (at & ~(u64)mask) + slot;
		if (slot > mask)
			continue;	/* the next turn begins */
		if (top[slot].first >> shift < best) {
			best = top[slot].first >> shift;
			place->slot = slot;
		}
		at++;
	}
	place->level = level;
	place->tick = best << shift;
	return best != HWT_TICK_NEVER;
}

/* The bucket that the cursor has to enter next. False if there is none. */
static bool hwt_buckets_next(const struct hwt_buckets *buckets,
			     struct hwt_place *place)
{
	unsigned long mask = hwt_buckets_mask(buckets);
	unsigned int level, shift;
	u64 now;

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
	}
	return hwt_top_next(buckets, place);
}

static struct hwt_bucket *hwt_place_bucket(const struct hwt_buckets *buckets,
					   const struct hwt_place *place)
{
	return &buckets->bucket[((size_t)place->level << buckets->bits) + place->slot];
}

/**
 * hwt_buckets_next_tick() - when is there something to do?
 * @buckets: the buckets
 *
 * Return: the cursor, if a visit is under way; else a tick before which none of the
 * timeouts is due, the due list aside, and which is the first one's if none was removed
 * or pushed back since the cursor last came by; HWT_TICK_NEVER if there are none.
 */
u64 hwt_buckets_next_tick(const struct hwt_buckets *buckets)
{
	struct hwt_place place;

	if (buckets->visited)
		return buckets->cursor;
	if (!hwt_buckets_next(buckets, &place))
		return HWT_TICK_NEVER;
	return hwt_place_bucket(buckets, &place)->first;
}

/**
 * hwt_buckets_occupied() - how full is a level?
 * @buckets: the buckets
 * @level:   the level, below @buckets->levels
 *
 * Return: how many of its buckets have a timeout.
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

static void hwt_visit_end(struct hwt_buckets *buckets)
{
	struct list_head *list = buckets->visited;

	buckets->visited = NULL;
	if (list_empty(list))
		hwt_list_emptied(buckets, list);
}

/* Go on with the visit. True when it is through, false when the budget is. */
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
		/* One tick, no rounds: all of it is due, whatever its length. */
		list_splice_tail_init(&bucket->list, &buckets->due);
		hwt_bucket_mark(buckets, bucket, false);
		return;
	}
	/* The visit finds it anew, from those that stay (later rounds). */
	bucket->first = HWT_TICK_NEVER;
	hwt_visit_begin(buckets, &bucket->list, place->level * buckets->bits);
}

/**
 * hwt_buckets_skip() - move the cursor on, but into no occupied bucket
 * @buckets: the buckets
 * @now:     no further than to this tick, before HWT_TICK_NEVER; one that lies behind the
 *           cursor changes nothing
 *
 * Nothing is visited, and nothing becomes due. After a long time in which nothing was
 * due, what is inserted goes to a lower level that way.
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
 * @now:     tick to go to, before HWT_TICK_NEVER; one that lies behind the cursor
 *           changes nothing
 * @budget:  buckets that may be entered and timeouts looked at in this call
 *
 * All timeouts with ticks up to @now go to the due list, in the order of their ticks,
 * and within a tick in the order of insertion. Among them may be some that were
 * pushed back beyond @now: the caller checks each and inserts those again.
 *
 * Return: true when the cursor has reached @now, false when the budget was used up
 * before; the next call goes on.
 */
bool hwt_buckets_advance(struct hwt_buckets *buckets, u64 now, unsigned int budget)
{
	struct hwt_place place;

	for (;;) {
		if (buckets->visited && !hwt_visit_step(buckets, &budget))
			return false;
		if (!hwt_buckets_next(buckets, &place) || place.tick > now)
			break;
		if (!budget)
			return false;
		budget--;
		hwt_buckets_enter(buckets, &place);
	}
	buckets->cursor = max(buckets->cursor, now);
	return true;
}

/* Move all but the due list to the end of a list. Order within a tick is kept. */
static void hwt_buckets_gather(struct hwt_buckets *buckets, struct list_head *list)
{
	unsigned long slot, size = 1UL << buckets->bits;
	struct list_head *home;
	unsigned int level;

	if (buckets->visited) {
		list_del_init(&buckets->mark);
		hwt_visit_end(buckets);
	}
	for (level = 0; level < buckets->levels; level++) {
		unsigned long *map = hwt_level_map(buckets, level);

		for_each_set_bit(slot, map, size) {
			home = &buckets->bucket[((size_t)level << buckets->bits) + slot].list;
			list_splice_tail_init(home, list);
			__clear_bit(slot, map);
		}
	}
	list_splice_tail_init(&buckets->never, list);
	/* What a rebase has not put back yet was overtaken by nobody. */
	list_splice_tail_init(&buckets->displaced, list);
}

/**
 * hwt_buckets_rebase() - set the cursor, backward too
 * @buckets: the buckets
 * @now:     where the cursor is from now on
 *
 * Takes time for each occupied bucket, not for each timeout: those are put in their
 * new places by the next hwt_buckets_advance(), which must follow. Due timeouts that
 * nobody has taken yet may turn out not to be due any more.
 */
void hwt_buckets_rebase(struct hwt_buckets *buckets, u64 now)
{
	LIST_HEAD(all);

	list_splice_init(&buckets->due, &all);
	hwt_buckets_gather(buckets, &all);
	list_splice(&all, &buckets->displaced);
	buckets->cursor = now;
	/* With this shift every tick agrees with the cursor. */
	hwt_visit_begin(buckets, &buckets->displaced, 64 - HWT_TICK_SHIFT);
}

/**
 * hwt_buckets_flush() - make everything due, for a stop
 * @buckets: the buckets
 *
 * Takes time for each occupied bucket, not for each timeout.
 */
void hwt_buckets_flush(struct hwt_buckets *buckets)
{
	hwt_buckets_gather(buckets, &buckets->due);
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
 * hwt_buckets_for_each() - do something to all timeouts
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
 * A caller who wants failure instead of the OOM killer (__GFP_RETRY_MAYFAIL) would make
 * kvmalloc() try hard for contiguous pages, which is not worth it.
 */
static void *hwt_buckets_alloc(size_t n, size_t size, gfp_t gfp)
{
	if (n * size > PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)
		return __vmalloc_array(n, size, gfp);
	return kvmalloc_array(n, size, gfp);
}

/**
 * hwt_buckets_init() - make empty buckets
 * @buckets: what to initialise
 * @bits:    log2 of the buckets of a level, 1 to HWT_BITS_MAX
 * @levels:  1 to HWT_LEVELS_MAX; those beyond all possible ticks are left out
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
	INIT_LIST_HEAD(&buckets->due);
	INIT_LIST_HEAD(&buckets->never);
	INIT_LIST_HEAD(&buckets->displaced);
	INIT_LIST_HEAD(&buckets->mark);

	n = (size_t)buckets->levels << bits;
	buckets->bucket = hwt_buckets_alloc(n, sizeof(*buckets->bucket), gfp);
	buckets->occupied = kvcalloc((size_t)buckets->levels * buckets->words,
				     sizeof(*buckets->occupied), gfp);
	if (!buckets->bucket || !buckets->occupied) {
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
	buckets->bucket = NULL;
	buckets->occupied = NULL;
}
