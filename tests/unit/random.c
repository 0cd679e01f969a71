// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random operations on wheels of all shapes, compared with a model: an array of timeouts that is
 * scanned at every step. random [options]
 *
 *   -o N  total number of operations (default 1000000)
 *   -r N  runs of each of the 96 shapes (default 4)
 *   -s N  seed
 *   -b N  only wheels with 2^N buckets on level 0
 *   -l N  only wheels with N levels
 *
 * With -b, -l and -r 1, the seed is that of the run; a failure prints these options.
 *
 * The model knows the tick of each timeout, and whether it is in the wheel. A timeout is clean if
 * its tick was not changed since it was inserted. An operation may raise the tick of an inserted
 * timeout, or lower it; a lowered timeout is inserted again some time later, by collect().
 *
 *   - A clean timeout is not in the due list before the cursor has reached its tick.
 *   - A timeout that was not lowered is in the due list when the cursor has passed its tick.
 *   - Clean timeouts become due in the order of their ticks, except after a rebase or by a flush.
 *   - The next tick is not after the first timeout's tick, and not before the cursor enters the
 *     bucket of that; it is the least @first of all buckets, unless the top level is large.
 *   - The levels' sizes, the bitmaps and the numbers of occupied buckets are correct, and each
 *     clean timeout is in the list for its tick.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/kernel.h>
#include <linux/slab.h>

#include "core/buckets.h"
#include "tap.h"

#define ITEMS_MAX	200
#define TICK_LAST	(HWT_TICK_NEVER - 1)
#define NO_LIMIT	(~0U)

enum where { OUT, WAITING, DUE };

/* A timeout, and its data in the model. */
struct item {
	struct hwt_timeout	timeout;
	enum where		where;
	bool			pushed;		/* not clean */
	bool			lowered;	/* its tick was lowered: it may be late */
	u64			tick;		/* as in its state */
	u64			due_seq;	/* when it was first seen in the due list */
};

/* A run. */
struct drive {
	u64			random;		/* state of the generator */
	struct hwt_buckets	wheel;
	unsigned int		n;
	u64			op;
	u64			seq;
	bool			rebased;	/* timeouts have yet to move after a rebase */
	u64			entry;		/* when a bucket is next entered; 0: not known */
	struct item		item[ITEMS_MAX];
};

/* The parameters of the run. */
static struct {
	unsigned int	bits, levels;
	u64		ops, seed;
} shape;

/* Wheel and model disagree. */
static void failed(int line, const char *what, u64 op)
{
	printf("# random.c:%d: not true: %s\n", line, what);
	printf("# at operation %" PRIu64 "; repeat with: random -b %u -l %u -r 1 -s %"
	       PRIu64 " -o %" PRIu64 "\n", op, shape.bits, shape.levels, shape.seed, op + 1);
	tap_point(false, "random operations on all shapes");
	exit(1);
}

#define for_each_item(pos, run)						\
	for (pos = (run)->item; pos < (run)->item + (run)->n; pos++)

#define REQUIRE(condition)						\
	do {								\
		if (!(condition))					\
			failed(__LINE__, #condition, drive->op);	\
	} while (0)

/* A number below n, by splitmix64. */
static u64 random_pick(u64 *state, u64 n)
{
	u64 z;

	if (n <= 1)
		return 0;
	z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % n;
}

static u64 pick(struct drive *drive, u64 n)
{
	return random_pick(&drive->random, n);
}

/* A number up to max; each order of magnitude is equally likely. */
static u64 pick_log(struct drive *drive, u64 max)
{
	return pick(drive, min((1ULL << pick(drive, fls64(max) + 1)) - 1, max) + 1);
}

static u64 add(u64 tick, u64 more)
{
	return tick > TICK_LAST || more > TICK_LAST - tick ? TICK_LAST : tick + more;
}

/* log2 of the ticks of a revolution of a level. */
static unsigned int turn_shift(const struct drive *drive, unsigned int level)
{
	return drive->wheel.level[level].shift + fls64(drive->wheel.level[level].mask);
}

/* Ticks that the levels span, less one. */
static u64 turn(const struct drive *drive)
{
	unsigned int bits = turn_shift(drive, drive->wheel.levels - 1);

	return bits >= 56 ? TICK_LAST : (1ULL << bits) - 1;
}

/* Do timeouts have yet to move to their lists? */
static bool moving(const struct drive *drive)
{
	return drive->wheel.gathering || !list_empty(&drive->wheel.moving);
}

static u64 pick_tick(struct drive *drive)
{
	u64 cursor = drive->wheel.cursor, step;

	switch (pick(drive, 16)) {
	case 0:
		return HWT_TICK_NEVER;
	case 1:
		return cursor - pick_log(drive, cursor);
	case 2:
		return add(cursor, pick_log(drive, TICK_LAST));
	case 3 ... 4:
		return add(cursor, pick(drive, 4));
	case 5 ... 6:	/* at the boundary of two buckets */
		step = 1ULL << drive->wheel.level[pick(drive, drive->wheel.levels)].shift;
		return add(cursor | (step - 1), pick(drive, 3));
	case 7 ... 11:	/* the tick of another timeout */
		step = drive->item[pick(drive, drive->n)].tick;
		return step > TICK_LAST ? add(cursor, 1) : step;
	default:
		return add(cursor, pick_log(drive, min(turn(drive), TICK_LAST / 8) * 8));
	}
}

/* Is a tick in the cursor's revolution of a level? */
static bool same_turn(const struct drive *drive, u64 tick, unsigned int level)
{
	unsigned int shift = turn_shift(drive, level);

	return shift >= 64 || tick >> shift == drive->wheel.cursor >> shift;
}

static unsigned int home_level(const struct drive *drive, u64 tick)
{
	unsigned int level = 0;

	while (level < drive->wheel.levels - 1 && !same_turn(drive, tick, level))
		level++;
	return level;
}

/* The tick at which the cursor next enters a bucket. */
static u64 entry_tick(const struct drive *drive, unsigned int level, u64 slot)
{
	unsigned int shift = drive->wheel.level[level].shift;
	u64 size = drive->wheel.level[level].mask + 1ULL, now, ahead;

	now = drive->wheel.cursor >> shift;
	ahead = (slot - now) & (size - 1);
	return (now + (ahead ? ahead : size)) << shift;
}

static void check_next_tick(struct drive *drive)
{
	u64 next = hwt_buckets_next_tick(&drive->wheel), soonest = HWT_TICK_NEVER;
	const struct item *item;
	bool exact = true;
	unsigned int level;

	drive->entry = 0;
	if (moving(drive)) {
		REQUIRE(next == drive->wheel.cursor);
		return;
	}
	for_each_item(item, drive) {
		if (item->where != WAITING)
			continue;
		REQUIRE(next <= item->tick || item->lowered);
		exact &= !item->pushed;
		if (item->tick == HWT_TICK_NEVER)
			continue;
		level = home_level(drive, item->tick);
		soonest = min(soonest, entry_tick(drive, level, item->tick >>
						  drive->wheel.level[level].shift));
	}
	REQUIRE(next > drive->wheel.cursor);
	REQUIRE(!exact || next >= soonest);
	/* A search of a large top level may be given up. */
	if (exact && drive->wheel.level[drive->wheel.levels - 1].mask < 8 * BITS_PER_LONG)
		drive->entry = soonest;
}

static struct item *item_of(struct list_head *link)
{
	return list_entry(link, struct item, timeout.link);
}

/* Note that a timeout is in the due list, and check that no earlier clean one is waiting. */
static void item_due(struct drive *drive, struct item *item, bool in_order)
{
	const struct item *other;

	REQUIRE(item->where == WAITING);
	item->where = DUE;
	item->due_seq = ++drive->seq;
	/* A flush makes the timeouts of HWT_TICK_NEVER due, in no order. */
	if (item->pushed || item->tick == HWT_TICK_NEVER)
		return;
	for_each_item(other, drive) {
		if (other->where != WAITING || other->pushed)
			continue;
		REQUIRE(!in_order || other->tick >= item->tick);
	}
}

/* Compare the due list with the array. */
static void check_due(struct drive *drive, bool in_order, u64 cursor)
{
	struct list_head *link;
	struct item *item;
	u64 seq = 0;

	list_for_each(link, &drive->wheel.due) {
		item = item_of(link);
		if (item->where != DUE) {
			REQUIRE(item->pushed || item->tick <= cursor);
			item_due(drive, item, in_order);
		}
		REQUIRE(item->due_seq > seq);
		seq = item->due_seq;
	}
}

/* Check that the timeouts of a bucket belong there. */
static void check_list(struct drive *drive, struct hwt_bucket *bucket,
		       unsigned int level, u64 slot)
{
	const struct hwt_level *place = &drive->wheel.level[level];
	struct list_head *link;
	struct item *item;

	list_for_each(link, &bucket->list) {
		REQUIRE(link->next->prev == link);
		item = item_of(link);
		REQUIRE(item->where == WAITING);
		REQUIRE(entry_tick(drive, level, slot) <= item->tick || item->lowered);
		REQUIRE(bucket->first <= item->tick || item->lowered);
		if (!item->pushed)
			REQUIRE(home_level(drive, item->tick) == level &&
				((item->tick >> place->shift ^ slot) & place->mask) == 0);
	}
}

static size_t count(const struct list_head *list)
{
	const struct list_head *link;
	size_t n = 0;

	list_for_each(link, list)
		n++;
	return n;
}

/* Check the whole structure, which takes time for each bucket. */
static void check_structure(struct drive *drive)
{
	struct hwt_buckets *wheel = &drive->wheel;
	size_t linked = 0, held = 0, n, used;
	struct hwt_bucket *bucket;
	u64 first = HWT_TICK_NEVER;
	struct item *item;
	unsigned int level;
	u64 slot, index;

	for (level = 0; level < wheel->levels; level++) {
		used = 0;
		REQUIRE(wheel->level[level].mask ==
			min((1U << shape.bits) - 1, level ? 511U : ~0U));
		for (slot = 0; slot <= wheel->level[level].mask; slot++) {
			index = wheel->level[level].first + slot;
			bucket = &wheel->bucket[index];
			n = count(&bucket->list);
			REQUIRE(test_bit(index, wheel->occupied) == !!n);
			used += !!n;
			linked += n;
			/* While buckets are gathered, their places are those before the rebase. */
			if (!n || wheel->gathering)
				continue;
			check_list(drive, bucket, level, slot);
			first = min(first, bucket->first);
			REQUIRE(level < wheel->levels - 1 ||
				wheel->soonest[slot / BITS_PER_LONG] <= bucket->first);
		}
		REQUIRE(hwt_buckets_occupied(wheel, level) == used);
	}
	if (!moving(drive)) {
		REQUIRE(hwt_buckets_next_tick(wheel) <= first);
		/* A search of a large top level may be given up, with an earlier tick. */
		REQUIRE(hwt_buckets_next_tick(wheel) == first ||
			wheel->level[wheel->levels - 1].mask >= 8 * BITS_PER_LONG);
	}
	linked += count(&wheel->moving) + count(&wheel->never) + count(&wheel->due);
	for_each_item(item, drive) {
		held += item->where != OUT;
		REQUIRE((item->where == OUT) == !hwt_linked(&item->timeout));
	}
	REQUIRE(linked == held);
}

/* -- Operations ----------------------------------------------------------- */

static void set_tick(struct item *item, u64 tick)
{
	item->tick = tick;
	atomic64_set(&item->timeout.state, tick << HWT_TICK_SHIFT | HWT_F_ARMED);
}

static void insert(struct drive *drive, struct item *item, u64 tick)
{
	set_tick(item, tick);
	item->pushed = false;
	item->lowered = false;
	item->where = WAITING;
	hwt_buckets_insert(&drive->wheel, &item->timeout);
	if (drive->wheel.due.prev == &item->timeout.link) {
		REQUIRE(tick <= drive->wheel.cursor);
		item_due(drive, item, false);
	} else {
		REQUIRE(tick > drive->wheel.cursor);
	}
}

static void take_out(struct drive *drive, struct item *item)
{
	if (item->where == OUT)
		return;
	hwt_buckets_remove(&drive->wheel, &item->timeout);
	item->where = OUT;
}

/* Relax the tick: of [tick, tick + slack] to the multiple of the highest power of two. */
static void insert_slack(struct drive *drive, struct item *item, u64 tick)
{
	u64 slack, last, step = 1ULL << 56, best, relaxed;

	slack = pick(drive, 8) ? pick_log(drive, turn(drive)) : ~0ULL - pick(drive, 3);
	relaxed = hwt_tick_relax(tick, slack);
	last = tick > TICK_LAST ? tick : add(tick, slack);
	do {
		step >>= 1;
		best = (tick + step - 1) / step * step;
	} while (best > last);
	REQUIRE(relaxed == best);
	insert(drive, item, relaxed);
}

/* Advance, and check the result. */
static void advance(struct drive *drive, u64 now, unsigned int budget, bool stop)
{
	bool done, due = !list_empty(&drive->wheel.due);
	u64 before = drive->wheel.cursor, cursor;
	const struct item *item;

	done = hwt_buckets_advance(&drive->wheel, now, budget, stop);
	cursor = drive->wheel.cursor;
	check_due(drive, !drive->rebased, cursor);
	if (done) {
		REQUIRE(!moving(drive));
		REQUIRE(cursor == max(before, now) || (stop && !list_empty(&drive->wheel.due)));
	} else {
		REQUIRE(cursor >= before && cursor <= max(before, now));
		REQUIRE(budget < NO_LIMIT);
	}
	REQUIRE(!stop || !due || cursor == before);
	drive->rebased &= moving(drive);
	if (drive->rebased)
		return;
	for_each_item(item, drive)
		REQUIRE(item->where != WAITING || item->tick > cursor ||
			(moving(drive) && item->tick == cursor) || item->lowered);
}

/* The number of rounds until a tick: a bucket of the top level may be entered in each. */
static u64 visits(const struct drive *drive, u64 tick)
{
	unsigned int shift = turn_shift(drive, drive->wheel.levels - 1);

	return shift >= 56 ? 0 : (tick - drive->wheel.cursor) >> shift;
}

/* Advance to a tick; without a limit only if it is not many rounds away. */
static void leap(struct drive *drive, u64 now)
{
	bool near = now < drive->wheel.cursor || visits(drive, now) < 64;

	advance(drive, now, near && pick(drive, 3) ? NO_LIMIT :
			    pick(drive, 2) ? pick(drive, 6) : pick_log(drive, 2048),
		!pick(drive, 3));
}

/* Skip, and check that only the cursor has changed: up to the next bucket, past no timeout. */
static void skip(struct drive *drive, u64 now)
{
	u64 before = drive->wheel.cursor, cursor;
	const struct item *item;

	hwt_buckets_skip(&drive->wheel, now);
	cursor = drive->wheel.cursor;
	check_due(drive, true, before);
	REQUIRE(cursor == before || !(moving(drive) || !list_empty(&drive->wheel.due)));
	REQUIRE(cursor >= before && cursor <= max(before, now));
	REQUIRE(!drive->entry || !list_empty(&drive->wheel.due) ||
		cursor >= min(now, drive->entry - 1));
	for_each_item(item, drive)
		REQUIRE(moving(drive) || item->where != WAITING || item->tick > cursor ||
			item->lowered);
}

/* Take the first or last of the due list, and insert it again if it was pushed back. */
static void take(struct drive *drive)
{
	struct item *item;

	if (list_empty(&drive->wheel.due))
		return;
	item = item_of(pick(drive, 2) ? drive->wheel.due.next : drive->wheel.due.prev);
	take_out(drive, item);
	if (item->tick > drive->wheel.cursor)
		insert(drive, item, item->tick);
}

/* Insert lowered timeouts at their new ticks, as the engine does when it collects. */
static void collect(struct drive *drive)
{
	struct item *item;

	for_each_item(item, drive) {
		if (item->where == OUT || !item->lowered)
			continue;
		take_out(drive, item);
		insert(drive, item, item->tick);
	}
}

/* Advance from next tick to next tick until the wheel is empty; the number of steps is bounded. */
static void drain(struct drive *drive)
{
	u64 bound = 1, steps = 0, next;
	const struct item *item;

	collect(drive);
	for_each_item(item, drive)
		if (item->where != OUT && item->tick > drive->wheel.cursor &&
		    (item->pushed || item->tick < HWT_TICK_NEVER))
			bound += (drive->wheel.levels + visits(drive, item->tick)) *
				 (1 + item->pushed);
	if (bound > 4096)
		return;
	advance(drive, drive->wheel.cursor, NO_LIMIT, false);
	for (;;) {
		while (!list_empty(&drive->wheel.due))
			take(drive);
		check_next_tick(drive);
		next = hwt_buckets_next_tick(&drive->wheel);
		if (next == HWT_TICK_NEVER)
			break;
		advance(drive, next, NO_LIMIT, false);
		REQUIRE(++steps <= bound);
	}
	for_each_item(item, drive)
		REQUIRE(item->where == OUT || item->tick == HWT_TICK_NEVER);
}

static void rebase(struct drive *drive)
{
	u64 cursor = drive->wheel.cursor;
	struct item *item;

	switch (pick(drive, 4)) {
	case 0:
		cursor = pick_log(drive, TICK_LAST);
		break;
	case 1:
		cursor = add(cursor, pick_log(drive, turn(drive)));
		break;
	default:
		cursor -= pick_log(drive, min(cursor, turn(drive)));
	}
	hwt_buckets_rebase(&drive->wheel, cursor);
	REQUIRE(drive->wheel.cursor == cursor);
	REQUIRE(list_empty(&drive->wheel.due));
	for_each_item(item, drive)
		if (item->where == DUE)
			item->where = WAITING;
	drive->rebased = true;
}

/* Flush in steps, and insert timeouts in between, as callbacks may. */
static void flush(struct drive *drive)
{
	u64 cursor = drive->wheel.cursor;
	struct item *item;

	while (!hwt_buckets_flush(&drive->wheel, 1 + pick(drive, 8))) {
		check_due(drive, false, HWT_TICK_NEVER);
		item = &drive->item[pick(drive, drive->n)];
		if (item->where == OUT)
			insert(drive, item, max(pick_tick(drive), add(cursor, 1)));
		/* A flush makes timeouts due in no order. */
		item->pushed = true;
	}
	REQUIRE(drive->wheel.cursor == cursor);
	drive->rebased = false;
	check_due(drive, false, HWT_TICK_NEVER);
	/* Take them out, as the next check would find them due too early. */
	for_each_item(item, drive) {
		REQUIRE(item->where != WAITING);
		take_out(drive, item);
	}
	REQUIRE(hwt_buckets_next_tick(&drive->wheel) == HWT_TICK_NEVER);
}

enum op {
	INSERT, INSERT_SLACK, REMOVE, MOVE, PUSH_BACK, PULL, LOWER, COLLECT, TAKE, STEP,
	TURN, LEAP, GO_ON, NEXT, SKIP, DRAIN, REBASE, FLUSH, OPS
};

/* The relative frequency of each operation, which varies from run to run. */
static const u8 usual[OPS] = {
	[INSERT] = 60, [INSERT_SLACK] = 20, [REMOVE] = 15, [MOVE] = 15,
	[PUSH_BACK] = 12, [PULL] = 8, [LOWER] = 3, [COLLECT] = 6, [TAKE] = 40,
	[STEP] = 15, [TURN] = 4, [LEAP] = 6, [GO_ON] = 6, [NEXT] = 15, [SKIP] = 4,
	[DRAIN] = 1, [REBASE] = 2, [FLUSH] = 1,
};

/* Carry out an operation on a random timeout, if it is where the operation needs it. */
static void operate(struct drive *drive, enum op op)
{
	struct item *item = &drive->item[pick(drive, drive->n)];
	u64 cursor = drive->wheel.cursor, step;
	bool out = item->where == OUT;

	if (op == INSERT && out) {
		insert(drive, item, pick_tick(drive));
	} else if (op == INSERT_SLACK && out) {
		insert_slack(drive, item, pick_tick(drive));
	} else if (op == REMOVE) {
		take_out(drive, item);
	} else if (op == MOVE) {
		take_out(drive, item);
		insert(drive, item, pick_tick(drive));
	} else if (op == PUSH_BACK && !out && item->tick != HWT_TICK_NEVER) {
		item->pushed = true;
		set_tick(item, max(pick_tick(drive), item->tick));
	} else if (op == PULL) {
		take_out(drive, item);
		insert(drive, item, item->tick - pick_log(drive, item->tick));
	} else if (op == LOWER && !out) {
		item->pushed = true;
		item->lowered = true;
		set_tick(item, item->tick - pick_log(drive, item->tick));
	} else if (op == COLLECT) {
		collect(drive);
	} else if (op == TAKE) {
		take(drive);
	} else if (op == STEP) {
		leap(drive, add(cursor, 1));
	} else if (op == TURN) {
		step = 1ULL << turn_shift(drive, pick(drive, drive->wheel.levels)) % 56;
		leap(drive, add(cursor, step));
	} else if (op == LEAP) {
		leap(drive, add(cursor, pick_log(drive, TICK_LAST)));
	} else if (op == GO_ON) {
		leap(drive, cursor - pick_log(drive, min(cursor, 3ULL)));
	} else if (op == NEXT) {
		leap(drive, min(hwt_buckets_next_tick(&drive->wheel), TICK_LAST));
	} else if (op == SKIP) {
		skip(drive, pick(drive, 8) ? add(cursor, pick_log(drive, TICK_LAST)) :
			    cursor - pick_log(drive, cursor));
	} else if (op == DRAIN) {
		drain(drive);
	} else if (op == REBASE) {
		rebase(drive);
	} else if (op == FLUSH) {
		flush(drive);
	}
}

static enum op pick_op(struct drive *drive, const unsigned int *weight)
{
	unsigned int sum = 0, op;
	u64 n;

	for (op = 0; op < OPS; op++)
		sum += weight[op];
	n = pick(drive, sum);
	for (op = 0; n >= weight[op]; op++)
		n -= weight[op];
	return op;
}

static u64 pick_start(struct drive *drive)
{
	switch (pick(drive, 5)) {
	case 0:
		return 0;
	case 1:
		return (1ULL << 32) - pick_log(drive, 1 << 20);
	case 2:
		return TICK_LAST - pick_log(drive, TICK_LAST);
	default:
		return pick_log(drive, TICK_LAST);
	}
}

/* Carry out a run. Return only if wheel and model agree. */
static void drive(void)
{
	static struct drive run;
	struct drive *drive = &run;
	unsigned int weight[OPS], i;
	u64 rarely;

	memset(drive, 0, sizeof(*drive));
	drive->random = shape.seed;
	drive->n = 1 + pick_log(drive, ITEMS_MAX - 1);
	for (i = 0; i < OPS; i++)
		weight[i] = usual[i] * (1 + pick(drive, 4));
	hwt_buckets_init(&drive->wheel, shape.bits, shape.levels, pick_start(drive),
			 kvmalloc(hwt_buckets_size(shape.bits, shape.levels), GFP_KERNEL));

	/* A check of a large wheel costs as much as thousands of operations. */
	rarely = 50 + drive->wheel.size;
	for (; drive->op < shape.ops; drive->op++) {
		operate(drive, pick_op(drive, weight));
		check_next_tick(drive);
		if (drive->op % rarely == rarely - 1)
			check_structure(drive);
	}
	check_structure(drive);
	flush(drive);
	check_structure(drive);
	kvfree(drive->wheel.bucket);
	REQUIRE(!shim_allocated);
}

static u64 mix(u64 base, unsigned int run)
{
	u64 state = base + shape.bits + (shape.levels << 8) + (run << 16);

	return random_pick(&state, 1ULL << 48);
}

int main(int argc, char **argv)
{
	u64 ops = 1000000, runs = 4, base = 1, bits = 0, levels = 0;
	u64 *const values[] = { &ops, &runs, &base, &bits, &levels };
	static const char names[] = "orsbl";
	unsigned int b, l, r, shapes, all = 0;
	const char *name;
	int option;

	while ((option = getopt(argc, argv, "o:r:s:b:l:")) != -1) {
		name = strchr(names, option);
		if (!name)
			return 2;
		*values[name - names] = strtoull(optarg, NULL, 0);
	}
	if (bits > HWT_BITS_MAX || levels > HWT_LEVELS_MAX || !runs)
		return 2;

	shapes = (bits ? 1 : HWT_BITS_MAX) * (levels ? 1 : HWT_LEVELS_MAX) * runs;
	shape.ops = DIV_ROUND_UP(ops, shapes);
	for (b = 1; b <= HWT_BITS_MAX; b++) {
		if (bits && b != bits)
			continue;
		for (l = 1; l <= HWT_LEVELS_MAX; l++) {
			for (r = 0; r < runs && (!levels || l == levels); r++) {
				shape.bits = b;
				shape.levels = l;
				shape.seed = shapes == 1 ? base : mix(base, r);
				drive();
				all++;
			}
		}
		tap_point(true, "wheels of %u bits: %u runs of %" PRIu64 " operations",
			  b, shapes / (bits ? 1 : HWT_BITS_MAX), shape.ops);
	}
	printf("# %u runs, %" PRIu64 " operations\n", all, all * shape.ops);
	return 0;
}
