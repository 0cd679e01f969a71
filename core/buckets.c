// SPDX-License-Identifier: GPL-2.0-only
/*
 * The buckets of a wheel, after Varghese and Lauck (1987), schemes 6 and 7; see docs/design.md
 *
 * Level 0 has a bucket per tick, and a bucket of level n + 1 spans a whole revolution of level n.
 * The cursor is the last tick that was reached. A timeout's home is the lowest level on which its
 * tick is in the same revolution as the cursor: the level of the highest bit in which the two
 * differ. Revolutions are aligned, not sliding, which gives three properties:
 *
 *   - Timeouts of one tick are in one bucket, in no order.
 *   - Everything on a level is due before anything on the next one, so the next tick
 *     with work is the first occupied bucket of the lowest level that has one.
 *   - When the cursor enters a bucket of level n, the buckets of lower levels that begin
 *     at the same tick are empty: at each tick there is one bucket to enter.
 *
 * On the top level alone, ticks beyond the current revolution share the buckets (rounds).
 * The round is not stored: when the cursor enters the bucket, timeouts of later rounds go back
 * there. With one level this is a hashed wheel.
 *
 * Each bucket has a lower bound of its ticks, `first`. The engine sleeps until that tick, not until
 * the bucket has to cascade, and the cursor passes by buckets whose timeouts are all of later
 * rounds. On the top level any bucket may be the next one, so each word of that level's bitmap has
 * a lower bound too, `soonest`.
 *
 * The time of a call does not grow with the number of buckets or timeouts, unless its comment says
 * so. Long work (a million timeouts in one bucket, or 65,536 buckets in use) is divided by budgets,
 * and goes through a list, @moving: a bucket that cascades goes there as a whole, and a rebase,
 * which may set the cursor back, gathers all buckets there. Then each timeout moves home. The
 * timeouts are taken from both ends of the list in turn, so that the next one can be prefetched.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/numa.h>
#include <linux/overflow.h>
#include <linux/prefetch.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core/buckets.h"

/* Maximum number of words of the top level's bitmap whose bounds one search updates. */
#define HWT_SEARCH_MAX		8
/* A timeout looked at costs a cache miss. In that time, about so many words of a map are read. */
#define HWT_WORDS_PER_TIMEOUT	16
/* Cost of updating a stale bound, in timeouts: reads the bounds of up to BITS_PER_LONG buckets. */
#define HWT_UPDATE_COST		4

/**
 * struct hwt_search - the result of a search for the bucket to enter next
 * @bucket: the bucket
 * @tick:   the tick at which the cursor enters it
 * @stale:  the search was given up, and a new one gets further: @bucket is not valid, but no bucket
 *          has to be entered before @tick
 * @cost:   time that the search took, in units of one timeout looked at
 */
struct hwt_search {
	struct hwt_bucket	*bucket;
	u64			tick;
	bool			stale;
	unsigned int		cost;
};

static u64 hwt_timeout_tick(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) >> HWT_TICK_SHIFT;
}

static struct hwt_level *hwt_top_level(struct hwt_buckets *buckets)
{
	return &buckets->level[buckets->levels - 1];
}

static unsigned long *hwt_level_map(const struct hwt_buckets *buckets,
				    const struct hwt_level *level)
{
	return buckets->occupied + level->first / BITS_PER_LONG;
}

/* Return the bucket whose list this is; NULL if it is another list. */
static struct hwt_bucket *hwt_list_bucket(const struct hwt_buckets *buckets,
					  struct list_head *list)
{
	struct hwt_bucket *bucket = container_of(list, struct hwt_bucket, list);

	if (bucket < buckets->bucket || bucket >= buckets->bucket + buckets->size)
		return NULL;
	return bucket;
}

/* Lower the bound of a bucket's word to @tick, the bucket's bound, if it is on the top level. */
static void hwt_top_lower(struct hwt_buckets *buckets, const struct hwt_bucket *bucket, u64 tick)
{
	unsigned int word;

	if (bucket < buckets->top)
		return;
	word = (bucket - buckets->top) / BITS_PER_LONG;
	if (tick < buckets->soonest[word] || !hwt_level_map(buckets, hwt_top_level(buckets))[word])
		buckets->soonest[word] = tick;
}

/* Update the bound and the bit of a bucket that a timeout is about to be put into. */
static void hwt_bucket_note(struct hwt_buckets *buckets, struct hwt_bucket *bucket, u64 tick)
{
	bool empty = list_empty(&bucket->list);

	if (!empty && tick >= bucket->first)
		return;
	bucket->first = tick;
	hwt_top_lower(buckets, bucket, tick);
	if (empty)
		__set_bit(bucket - buckets->bucket, buckets->occupied);
}

/* Clear the bit of a bucket whose list has become empty. Ignore other lists. */
static void hwt_list_emptied(struct hwt_buckets *buckets, struct list_head *list)
{
	struct hwt_bucket *bucket = hwt_list_bucket(buckets, list);

	if (bucket)
		__clear_bit(bucket - buckets->bucket, buckets->occupied);
}

/* Append a timeout, by its link, to the list for its tick. */
static void hwt_list_put(struct hwt_buckets *buckets, struct list_head *list,
			 struct list_head *link, u64 tick)
{
	struct hwt_bucket *bucket = hwt_list_bucket(buckets, list);

	if (bucket)
		hwt_bucket_note(buckets, bucket, tick);
	list_add_tail(link, list);
}

/* Return the list for timeouts of a tick, which depends on the cursor. */
static inline struct list_head *hwt_tick_home(struct hwt_buckets *buckets, u64 tick)
{
	const struct hwt_level *level = buckets->level, *top = level + buckets->levels - 1;
	u64 diff = tick ^ buckets->cursor;

	if (tick <= buckets->cursor)
		return &buckets->due;
	if (tick == HWT_TICK_NEVER)
		return &buckets->never;
	while (level < top && diff >> level[1].shift)
		level++;
	return &buckets->bucket[level->first + ((tick >> level->shift) & level->mask)].list;
}

/**
 * hwt_buckets_insert() - put a timeout into the list for its tick
 * @buckets: the buckets
 * @timeout: not in any list; its state has the tick
 *
 * That is the end of the due list if the cursor has reached the tick.
 */
void hwt_buckets_insert(struct hwt_buckets *buckets, struct hwt_timeout *timeout)
{
	u64 tick = hwt_timeout_tick(timeout);

	hwt_list_put(buckets, hwt_tick_home(buckets, tick), &timeout->link, tick);
}

/**
 * hwt_buckets_remove() - take a timeout out of its list
 * @buckets: the buckets
 * @timeout: in any list, the due list included; hwt_linked() is false afterwards
 */
void hwt_buckets_remove(struct hwt_buckets *buckets, struct hwt_timeout *timeout)
{
	struct list_head *prev = timeout->link.prev, *next = timeout->link.next;

	list_del(&timeout->link);
	timeout->link.next = NULL;
	/* The list is empty now if both neighbours were its head. */
	if (prev == next)
		hwt_list_emptied(buckets, next);
}

/*
 * Find the word of the top level's bitmap with the lowest bound. Look at words in the order in
 * which the cursor reaches them, until no other word can have a lower bound.
 *
 * Return: the bound, HWT_TICK_NEVER if the level is empty.
 */
static u64 hwt_top_soonest(struct hwt_buckets *buckets, unsigned int *word,
			   struct hwt_search *search)
{
	const struct hwt_level *top = hwt_top_level(buckets);
	const unsigned long *map = hwt_level_map(buckets, top);
	u64 at = (buckets->cursor >> top->shift) + 1, best = HWT_TICK_NEVER;
	unsigned int i, n;

	/* @at is the number of a bucket, counted from tick 0 over all revolutions. */
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

/* Update the bound of a word. Return the bound, and in @slot the bucket that has it. */
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

/* Find the bucket of the top level that the cursor has to enter next. Return false if none. */
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
		/* The bound is stale if its bucket was emptied or entered since. */
		search->stale = hwt_top_update(buckets, word, &slot) != soonest;
		search->cost += search->stale ? HWT_UPDATE_COST : 0;
	}
	search->bucket = buckets->top + slot;
	search->tick = soonest >> shift << shift;
	return true;
}

/* Find the bucket that the cursor has to enter next. Return false if there is none. */
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

/* Return true if timeouts have yet to move to their homes. */
static bool hwt_buckets_moving(const struct hwt_buckets *buckets)
{
	return buckets->gathering || !list_empty(&buckets->moving);
}

/**
 * hwt_buckets_next_tick() - the tick of the next work
 * @buckets: the buckets
 *
 * Return: the cursor, if timeouts have yet to move; else a lower bound of the ticks of all timeouts
 * that are not in the due list, HWT_TICK_NEVER if there are none. The bound is exact, unless
 * timeouts were removed from a bucket or pushed back since that was last empty.
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

/**
 * hwt_buckets_occupied() - count the buckets in use
 * @buckets: the buckets
 * @level:   the level, below @buckets->levels
 *
 * Return: the number of the level's buckets that have a timeout.
 */
unsigned int hwt_buckets_occupied(const struct hwt_buckets *buckets, unsigned int level)
{
	const struct hwt_level *counted = &buckets->level[level];
	const unsigned long *map = hwt_level_map(buckets, counted);
	unsigned int word, n = 0;

	for (word = 0; word <= counted->mask / BITS_PER_LONG; word++)
		n += hweight_long(map[word]);
	return n;
}

/* Append all buckets to a list. Return true when all are empty, false if the budget ran out. */
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

/* Move timeouts to their homes. Return true when all are there, false if the budget ran out. */
static bool hwt_buckets_move(struct hwt_buckets *buckets, unsigned int *budget)
{
	struct list_head *moving = &buckets->moving, *pos;
	u64 tick;

	while (!list_empty(moving)) {
		if (!*budget)
			return false;
		/* After a rebase only from the front, so that those still due keep their order. */
		if ((*budget)-- & 1 || buckets->rebased) {
			pos = moving->next;
			prefetchw(moving->prev->prev);
		} else {
			pos = moving->prev;
			prefetchw(moving->next->next);
		}
		tick = hwt_timeout_tick(list_entry(pos, struct hwt_timeout, link));
		list_del(pos);
		hwt_list_put(buckets, hwt_tick_home(buckets, tick), pos, tick);
	}
	buckets->rebased = false;
	return true;
}

/* Move the cursor into a bucket, whose timeouts become due or have to move. */
static void hwt_buckets_enter(struct hwt_buckets *buckets, const struct hwt_search *search)
{
	size_t index = search->bucket - buckets->bucket;
	/* On level 0 all were inserted for this tick, unless there are rounds. */
	bool due = index <= buckets->level->mask && buckets->levels > 1;

	buckets->cursor = search->tick;
	list_splice_tail_init(&search->bucket->list, due ? &buckets->due : &buckets->moving);
	__clear_bit(index, buckets->occupied);
}

/**
 * hwt_buckets_skip() - move the cursor on, but into no occupied bucket
 * @buckets: the buckets
 * @now:     the furthest tick to go to, below HWT_TICK_NEVER; a tick behind the
 *           cursor changes nothing
 *
 * Nothing moves, and nothing becomes due. After a long time in which nothing was
 * due, this lets new timeouts go to a lower level.
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
 * @now:     the tick to go to, below HWT_TICK_NEVER; a tick behind the cursor
 *           changes nothing
 * @budget:  timeouts that may be looked at in this call; searches for buckets are charged by the
 *           time they take
 * @stop:    do not leave a tick at which timeouts are due
 *
 * Append all timeouts with ticks up to @now to the due list, in the order of their ticks. Timeouts
 * that were pushed back beyond @now may be among them: the caller checks each timeout, and inserts
 * these again.
 *
 * Return: true when the cursor has reached @now, or stopped; false when the budget was used up
 * before. The next call continues from there.
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

/**
 * hwt_buckets_rebase() - set the cursor, backward too
 * @buckets: the buckets
 * @now:     where the cursor is from now on
 *
 * hwt_buckets_advance() must follow, and moves the timeouts to their new places. Timeouts in the
 * due list move too, and may not be due any more.
 */
void hwt_buckets_rebase(struct hwt_buckets *buckets, u64 now)
{
	list_splice_init(&buckets->due, &buckets->moving);
	buckets->gathering = true;
	buckets->rebased = true;
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

	hwt_list_for_each(&buckets->due, fn, arg);
	hwt_list_for_each(&buckets->never, fn, arg);
	hwt_list_for_each(&buckets->moving, fn, arg);
	for (i = 0; i < buckets->size; i++)
		hwt_list_for_each(&buckets->bucket[i].list, fn, arg);
}

/*
 * Large arrays do without kvmalloc_node(): with __GFP_RETRY_MAYFAIL, which asks for failure instead
 * of the OOM killer, that would first try hard to get contiguous pages. There is no other function
 * for a given node.
 */
static void *hwt_buckets_alloc(size_t n, size_t size, gfp_t gfp, int node)
{
	if (node == NUMA_NO_NODE && n * size > PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)
		return __vmalloc_array(n, size, gfp);
	return kvmalloc_node(array_size(n, size), gfp, node);
}

/* Lay out the levels. Each level begins at a word boundary of the bitmap. */
static void hwt_levels_init(struct hwt_buckets *buckets, unsigned int bits, unsigned int levels)
{
	unsigned int shift = 0, n;

	buckets->levels = levels;
	buckets->size = 0;
	for (n = 0; n < levels; n++) {
		buckets->level[n] = (struct hwt_level) {
			.shift = shift, .mask = (1U << bits) - 1, .first = buckets->size,
		};
		buckets->size += max_t(u32, 1U << bits, BITS_PER_LONG);
		shift += bits;
		bits = min(bits, HWT_HIGHER_BITS);
	}
}

/**
 * hwt_buckets_init() - create empty buckets
 * @buckets: the structure to initialise
 * @bits:    log2 of the buckets of level 0, 1 to HWT_BITS_MAX. Higher levels have as many,
 *           but 1 << HWT_HIGHER_BITS at most
 * @levels:  1 to HWT_LEVELS_MAX
 * @now:     the cursor
 * @gfp:     how to allocate
 * @node:    where: a NUMA node or NUMA_NO_NODE
 *
 * Return: 0 or -ENOMEM.
 */
int hwt_buckets_init(struct hwt_buckets *buckets, unsigned int bits,
		     unsigned int levels, u64 now, gfp_t gfp, int node)
{
	size_t i;

	hwt_levels_init(buckets, bits, levels);
	buckets->cursor = now;
	buckets->gathering = false;
	buckets->rebased = false;
	INIT_LIST_HEAD(&buckets->due);
	INIT_LIST_HEAD(&buckets->never);
	INIT_LIST_HEAD(&buckets->moving);

	buckets->bucket = hwt_buckets_alloc(buckets->size, sizeof(*buckets->bucket), gfp, node);
	buckets->top = buckets->bucket + hwt_top_level(buckets)->first;
	buckets->occupied = kcalloc_node(buckets->size / BITS_PER_LONG,
					 sizeof(*buckets->occupied), gfp, node);
	buckets->soonest = kcalloc_node(hwt_top_level(buckets)->mask / BITS_PER_LONG + 1,
					sizeof(*buckets->soonest), gfp, node);
	if (!buckets->bucket || !buckets->occupied || !buckets->soonest) {
		hwt_buckets_destroy(buckets);
		return -ENOMEM;
	}
	for (i = 0; i < buckets->size; i++)
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
	kfree(buckets->occupied);
	kfree(buckets->soonest);
	buckets->bucket = NULL;
	buckets->occupied = NULL;
	buckets->soonest = NULL;
}
