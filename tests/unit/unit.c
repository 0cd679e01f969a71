// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of the wheel that random.c does not have: extreme ticks, and the cost of
 * operations. A test function with an argument is run for 1 to 6 levels.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/slab.h>

#include "device/sized.h"
#include "core/buckets.h"
#include "tap.h"

#define TICK_LAST	(HWT_TICK_NEVER - 1)
#define ENOUGH		100000	/* a budget that no call uses up */
#define MANY		60

static struct hwt_buckets wheel;
static struct hwt_timeout timeouts[MANY];

/* -- Helpers -------------------------------------------------------------- */

static void begin(unsigned int bits, unsigned int levels, u64 now)
{
	memset(timeouts, 0, sizeof(timeouts));
	hwt_buckets_init(&wheel, bits, levels, now,
			 kvmalloc(hwt_buckets_size(bits, levels), GFP_KERNEL));
}

static void end(void)
{
	CHECK(hwt_buckets_flush(&wheel, ENOUGH));
	kvfree(wheel.bucket);
	CHECK(!shim_allocated);
}

static void insert(int i, u64 tick)
{
	atomic64_set(&timeouts[i].state, tick << HWT_TICK_SHIFT | HWT_F_ARMED);
	hwt_buckets_insert(&wheel, &timeouts[i]);
}

static void take_out(int i)
{
	hwt_buckets_remove(&wheel, &timeouts[i]);
}

static bool advance(u64 now)
{
	return hwt_buckets_advance(&wheel, now, ENOUGH, false);
}

static u64 next_tick(void)
{
	return hwt_buckets_next_tick(&wheel);
}

static int index_of(const struct list_head *link)
{
	return list_entry(link, struct hwt_timeout, link) - timeouts;
}

/* Take all due timeouts. Are they those of the arguments, in this order, up to -1? */
static bool due_is(int first, ...)
{
	bool same = true;
	va_list args;
	int i;

	va_start(args, first);
	for (i = first; ; i = va_arg(args, int)) {
		int got = list_empty(&wheel.due) ? -1 : index_of(wheel.due.next);

		if (got >= 0)
			take_out(got);
		if (got != i) {
			printf("# due: %d instead of %d\n", got, i);
			same = false;
		}
		if (got < 0 || i < 0)
			break;
	}
	va_end(args);
	while (!list_empty(&wheel.due))
		take_out(index_of(wheel.due.next));
	return same;
}

#define DUE(...)	due_is(__VA_ARGS__, -1)
#define NONE_DUE()	due_is(-1)

static bool no_bits(void)
{
	unsigned long i;

	for (i = 0; i < wheel.size / BITS_PER_LONG; i++)
		if (wheel.occupied[i])
			return false;
	return true;
}

/* Return the number of ticks that the levels span, at most max. */
static u64 span(u64 max)
{
	const struct hwt_level *top = &wheel.level[wheel.levels - 1];
	unsigned int shift = top->shift + fls64(top->mask);

	return shift < 56 ? min(1ULL << shift, max) : max;
}

/* -- Tests ---------------------------------------------------------------- */

static void relax_extremes(void)
{
	static const u64 relaxed[][3] = {
		{ 0, 0, 0 }, { 0, ~0ULL, 0 },
		{ 1, ~0ULL, 1ULL << 55 }, { 1, HWT_TICK_NEVER, 1ULL << 55 },
		{ (1ULL << 55) + 1, ~0ULL, 3ULL << 54 },
		{ TICK_LAST, 0, TICK_LAST }, { TICK_LAST, 1, TICK_LAST },
		{ TICK_LAST, ~0ULL, TICK_LAST }, { TICK_LAST - 1, ~0ULL, TICK_LAST },
		{ HWT_TICK_NEVER, 0, HWT_TICK_NEVER }, { HWT_TICK_NEVER, ~0ULL, HWT_TICK_NEVER },
		{ ~0ULL, ~0ULL, HWT_TICK_NEVER },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(relaxed); i++)
		CHECK(hwt_tick_relax(relaxed[i][0], relaxed[i][1]) == relaxed[i][2]);
}

/* A cascade from the top level costs one step for each level. */
static void far_in_few_looks(void)
{
	u64 tick = (1ULL << 53) + (1ULL << 44) + (1ULL << 35) + (1ULL << 26) +
		   (1ULL << 17) + (1ULL << 8) + 1;

	begin(9, 6, 3);
	insert(0, tick);
	/* The cost is a bucket and a timeout on each of five levels, and a bucket on level 0. */
	CHECK(!hwt_buckets_advance(&wheel, tick, 10, false));
	CHECK(hwt_buckets_advance(&wheel, tick, 1, false));
	CHECK(DUE(0));
	insert(0, tick + 1);
	insert(1, tick + 2);
	CHECK(!hwt_buckets_advance(&wheel, TICK_LAST, 1, false));
	CHECK(hwt_buckets_advance(&wheel, TICK_LAST, 1, false));
	CHECK(DUE(0, 1));
	end();
}

/* The cursor passes by rounds without due timeouts, at no cost. */
static void rounds_are_passed_by(unsigned int levels)
{
	u64 round;
	int i;

	begin(3, levels, 3);
	round = span(TICK_LAST);
	for (i = 0; i < 8; i++)
		insert(i, round * (1000000 - i) + (round >> 3) * i);
	for (i = 7; i >= 0; i--) {
		CHECK(next_tick() == round * (1000000 - i) + (round >> 3) * i);
		/* The cost: a bucket and a timeout on each level, and searches. */
		CHECK(hwt_buckets_advance(&wheel, next_tick(), 2 * levels + 4, false));
		CHECK(DUE(i));
	}
	end();
}

/* Timeouts that are still due after a rebase keep their order. */
static void rebase_keeps_order(unsigned int levels)
{
	int i;

	begin(3, levels, 0);
	for (i = 0; i < 6; i++)
		insert(i, 1 + i);
	insert(6, 9);
	insert(7, 20);
	CHECK(advance(10));
	hwt_buckets_rebase(&wheel, 7);
	insert(8, 4);
	/* Rebase again when some timeouts have moved. */
	CHECK(!hwt_buckets_advance(&wheel, 7, 5, false));
	hwt_buckets_rebase(&wheel, 7);
	CHECK(advance(7));
	/* 8 was put into the due list at once, before the others had moved. */
	CHECK(DUE(8, 0, 1, 2, 3, 4, 5));
	CHECK(advance(20));
	CHECK(DUE(6, 7));
	end();
}

static void budget(unsigned int levels)
{
	u64 tick = levels > 1 ? 8 : 5;
	int i;

	begin(3, levels, 0);
	for (i = 0; i < 10; i++)
		insert(i, tick);
	CHECK(!hwt_buckets_advance(&wheel, 20, 0, false));
	CHECK(wheel.cursor < tick);
	CHECK(next_tick() == tick);
	CHECK(!hwt_buckets_advance(&wheel, 20, 1, false));
	CHECK(wheel.cursor == tick);
	CHECK(NONE_DUE());
	CHECK(next_tick() == tick);
	/* Timeouts are taken from both ends in turn. */
	CHECK(!hwt_buckets_advance(&wheel, 20, 4, false));
	CHECK(DUE(9, 0, 8, 1));
	CHECK(!hwt_buckets_advance(&wheel, 20, 4, false));
	CHECK(next_tick() == tick);
	CHECK(DUE(7, 2, 6, 3));
	CHECK(hwt_buckets_advance(&wheel, 20, 2, false));
	CHECK(DUE(5, 4));
	CHECK(wheel.cursor == 20);
	CHECK(no_bits());
	end();
}

/* A flush and a rebase empty no more buckets at a time than the budget allows. */
static void gathers_in_steps(void)
{
	int i;

	begin(5, 2, 0);
	for (i = 0; i < 8; i++)
		insert(i, 1 + 7 * i);
	CHECK(!hwt_buckets_flush(&wheel, 3));
	CHECK(DUE(0, 1, 2));
	CHECK(!hwt_buckets_flush(&wheel, 2));
	CHECK(hwt_buckets_flush(&wheel, 3));
	CHECK(DUE(3, 4, 5, 6, 7));
	for (i = 0; i < 8; i++)
		insert(i, 1 + 7 * i);
	hwt_buckets_rebase(&wheel, 0);
	CHECK(!hwt_buckets_advance(&wheel, 100, 3, false));
	CHECK(wheel.gathering);
	CHECK(next_tick() == 0);
	CHECK(!hwt_buckets_advance(&wheel, 100, 4, false));
	CHECK(!wheel.gathering && !list_empty(&wheel.moving));
	CHECK(advance(100));
	CHECK(DUE(0, 1, 2, 3, 4, 5, 6, 7));
	end();
}

/* A search is given up when the bounds of many words of the bitmap are stale. */
static void search_has_an_end(void)
{
	int i;

	begin(12, 1, 0);
	for (i = 0; i < 30; i++) {
		insert(2 * i, 64 * i + 1);
		insert(2 * i + 1, 64 * i + 2 + 4096);
	}
	for (i = 0; i < 30; i++)
		take_out(2 * i);
	CHECK(next_tick() > 64 && next_tick() <= 4098);
	CHECK(advance(4097));
	CHECK(NONE_DUE());
	CHECK(next_tick() == 4098);
	CHECK(advance(4098));
	CHECK(DUE(1));
	end();
}

/* A word of the bitmap that was emptied has no bound: the next one is that of new timeouts. */
static void search_after_empty(void)
{
	int i;

	begin(12, 1, 0);
	for (i = 0; i < 30; i++)
		insert(i, 64 * i + 1);
	for (i = 0; i < 30; i++)
		take_out(i);
	for (i = 0; i < 30; i++)
		insert(i, 64 * i + 2 + 4096);
	CHECK(next_tick() == 4098);
	end();
}

/* -- Structures that grow --------------------------------------------------- */

/* The first version of a structure, and a later version. */
struct first {
	u64 a, b;
};

struct grown {
	u64 a, b, c;
};

/* An old program and a new kernel, and the reverse. */
static void sizes(void)
{
	struct grown grown = { 1, 2, 3 }, loaded;
	struct first first = { 1, 2 }, old;

	memset(&loaded, 0xff, sizeof(loaded));
	CHECK(!hwt_sized_load(&loaded, sizeof(loaded), &first, sizeof(first)));
	CHECK(loaded.a == 1 && loaded.b == 2 && !loaded.c);
	memset(&old, 0xff, sizeof(old));
	hwt_sized_store(&old, sizeof(old), &grown, sizeof(grown));
	CHECK(old.a == 1 && old.b == 2);

	CHECK(hwt_sized_load(&old, sizeof(old), &grown, sizeof(grown)) == -E2BIG);
	grown.c = 0;
	CHECK(!hwt_sized_load(&old, sizeof(old), &grown, sizeof(grown)));
	CHECK(old.a == 1 && old.b == 2);
	memset(&grown, 0xff, sizeof(grown));
	hwt_sized_store(&grown, sizeof(grown), &first, sizeof(first));
	CHECK(grown.a == 1 && grown.b == 2 && !grown.c);
}

static const struct tap_test tests[] = {
	{ "slack: extremes", .once = relax_extremes },
	{ "a far timeout costs one step for each level", .once = far_in_few_looks },
	{ "flush and rebase in steps", .once = gathers_in_steps },
	{ "a search is bounded", .once = search_has_an_end },
	{ "a search after all words were emptied", .once = search_after_empty },
	{ "structures of an older and of a newer program", .once = sizes },
	{ "rounds without due timeouts are passed by", .for_each = rounds_are_passed_by },
	{ "a rebase keeps the order of due timeouts", .for_each = rebase_keeps_order },
	{ "budget", .for_each = budget },
	{}
};

int main(void)
{
	return tap_run(tests, HWT_LEVELS_MAX);
}
