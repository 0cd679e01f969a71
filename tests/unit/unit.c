// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel, promise by promise, on wheels small enough to follow by hand. Each
 * function is a test; those that take an argument are run for 1 to 6 levels.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/slab.h>

#include "hwt_wheel.h"
#include "tap.h"

#define TICK_LAST	(HWT_TICK_NEVER - 1)
#define ENOUGH		100000	/* of budget: more is a hang */
#define MANY		20000

static struct hwt_buckets wheel;
static struct hwt_timeout timeouts[MANY];
static bool passed;

#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			printf("# %s:%d: not true: %s\n", __FILE__,	\
			       __LINE__, #condition);			\
			passed = false;					\
		}							\
	} while (0)

/* -- Helpers -------------------------------------------------------------- */

static void begin(unsigned int bits, unsigned int levels, u64 now)
{
	memset(timeouts, 0, sizeof(timeouts));
	CHECK(!hwt_buckets_init(&wheel, bits, levels, now, GFP_KERNEL));
}

static void end(void)
{
	hwt_buckets_flush(&wheel);
	hwt_buckets_destroy(&wheel);
	CHECK(!shim_allocated);
}

static void set_tick(int i, u64 tick)
{
	atomic64_set(&timeouts[i].word, tick << HWT_TICK_SHIFT | HWT_F_ARMED);
}

static void insert(int i, u64 tick)
{
	set_tick(i, tick);
	hwt_buckets_insert(&wheel, &timeouts[i]);
}

static void take_out(int i)
{
	hwt_buckets_remove(&wheel, &timeouts[i]);
}

static bool advance(u64 now)
{
	return hwt_buckets_advance(&wheel, now, ENOUGH);
}

static u64 next_tick(void)
{
	return hwt_buckets_next_tick(&wheel);
}

static int index_of(const struct list_head *link)
{
	return list_entry(link, struct hwt_timeout, link) - timeouts;
}

/* Takes all that is due. Is it the given ones, in this order? The last one is -1. */
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

static bool bit(unsigned int level, unsigned int slot)
{
	return test_bit(slot, wheel.occupied + level * wheel.words);
}

static bool is_at(int i, unsigned int level, unsigned int slot)
{
	struct list_head *list = &wheel.bucket[slot + ((size_t)level << wheel.bits)].list;
	struct list_head *link;

	list_for_each(link, list)
		if (link == &timeouts[i].link)
			return bit(level, slot);
	return false;
}

static bool no_bits(void)
{
	unsigned long i, n = (unsigned long)wheel.levels * wheel.words;

	for (i = 0; i < n; i++)
		if (wheel.occupied[i])
			return false;
	return true;
}

/* Ticks that all levels span, at most max. */
static u64 span(u64 max)
{
	unsigned int shift = wheel.bits * wheel.levels;

	return shift < 56 ? min(1ULL << shift, max) : max;
}

/* -- Slack ---------------------------------------------------------------- */

/* How round a number is; 0 is the roundest. */
static unsigned int zeroes(u64 x)
{
	return x ? __builtin_ctzll(x) : 64;
}

static void relax_small(void)
{
	u64 base[] = { 0, (1ULL << 32) - 200, TICK_LAST - 300 };
	u64 tick, slack, x, best;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(base); i++)
		for (tick = base[i]; tick < base[i] + 300; tick++)
			for (slack = 0, best = tick; slack < 300; slack++) {
				x = min(tick + slack, TICK_LAST);
				if (zeroes(x) > zeroes(best))
					best = x;
				CHECK(hwt_tick_relax(tick, slack) == best);
			}
}

static void relax_extremes(void)
{
	CHECK(hwt_tick_relax(0, 0) == 0);
	CHECK(hwt_tick_relax(0, ~0ULL) == 0);
	CHECK(hwt_tick_relax(1, ~0ULL) == 1ULL << 55);
	CHECK(hwt_tick_relax(1, HWT_TICK_NEVER) == 1ULL << 55);
	CHECK(hwt_tick_relax((1ULL << 55) + 1, ~0ULL) == 3ULL << 54);
	CHECK(hwt_tick_relax(TICK_LAST, 0) == TICK_LAST);
	CHECK(hwt_tick_relax(TICK_LAST, 1) == TICK_LAST);
	CHECK(hwt_tick_relax(TICK_LAST, ~0ULL) == TICK_LAST);
	CHECK(hwt_tick_relax(TICK_LAST - 1, ~0ULL) == TICK_LAST);
	CHECK(hwt_tick_relax(HWT_TICK_NEVER, 0) == HWT_TICK_NEVER);
	CHECK(hwt_tick_relax(HWT_TICK_NEVER, ~0ULL) == HWT_TICK_NEVER);
	CHECK(hwt_tick_relax(~0ULL, ~0ULL) == HWT_TICK_NEVER);
}

/* A multiple of a bucket of level 1 fires when that is visited, not demoted. */
static void relaxed_fires_from_its_level(void)
{
	begin(3, 3, 5);
	insert(0, hwt_tick_relax(42, 10));
	CHECK(is_at(0, 1, 6));
	CHECK(next_tick() == 48);
	CHECK(advance(48));
	CHECK(DUE(0));
	CHECK(no_bits());
	end();
}

/* -- Shape ---------------------------------------------------------------- */

static void shapes(void)
{
	unsigned int bits, levels, i, used;

	for (bits = 1; bits <= HWT_BITS_MAX; bits++) {
		for (levels = 1; levels <= HWT_LEVELS_MAX; levels++) {
			begin(bits, levels, 0);
			for (used = 1; used < levels && used * bits < 56; used++)
				;
			CHECK(wheel.bits == bits && wheel.levels == used);
			CHECK(next_tick() == HWT_TICK_NEVER);
			for (i = 0; i < used << bits; i++)
				CHECK(list_empty(&wheel.bucket[i].list));
			CHECK(no_bits());
			end();
		}
	}
}

static void no_memory(void)
{
	unsigned int fail, tried = 0;
	int err;

	for (fail = 1; ; fail++) {
		shim_fail_at = fail;
		err = hwt_buckets_init(&wheel, 4, 3, 0, GFP_KERNEL);
		if (shim_fail_at)
			break;
		tried++;
		CHECK(err == -ENOMEM);
		CHECK(!shim_allocated);
	}
	shim_fail_at = 0;
	CHECK(tried == 2);
	CHECK(!err);
	hwt_buckets_destroy(&wheel);
	CHECK(!shim_allocated);
}

/* -- Where a timeout lives, and when it is due ---------------------------- */

static void homes(void)
{
	/* Octal digits are slots: level 0 last. The cursor is at 0123. */
	static const struct {
		u64 tick;
		unsigned int level, slot;
	} home[] = {
		{ 0124, 0, 4 }, { 0127, 0, 7 },
		{ 0130, 1, 3 }, { 0137, 1, 3 }, { 0177, 1, 7 },
		{ 0200, 2, 2 }, { 0765, 2, 7 },
		{ 01000, 2, 0 }, { 01124, 2, 1 }, { 07123, 2, 1 }, { TICK_LAST, 2, 7 },
	};
	size_t i;

	begin(3, 3, 0123);
	for (i = 0; i < ARRAY_SIZE(home); i++) {
		insert(i, home[i].tick);
		CHECK(is_at(i, home[i].level, home[i].slot));
	}
	for (i = 0; i < ARRAY_SIZE(home); i++)
		take_out(i);
	CHECK(no_bits());

	insert(0, 0123);
	insert(1, 0);
	insert(2, 0122);
	CHECK(no_bits());
	CHECK(DUE(0, 1, 2));
	end();
}

/* One timeout for each tick: at each tick that one is due, and no other. */
static void every_tick(unsigned int levels)
{
	u64 start[] = { 0, 13, (1ULL << 32) - 99, (1ULL << 40) - 1 }, n, i;
	unsigned int bits, s;

	for (bits = 1; bits <= 3; bits++) {
		for (s = 0; s < ARRAY_SIZE(start); s++) {
			begin(bits, levels, start[s]);
			n = min(span(MANY) * 3 + 7, 3000ULL);
			/* In an order of no order: 7919 is a prime. */
			for (i = 0; i < n; i++)
				insert(i, start[s] + 1 + (i * 7919) % n);
			for (i = 1; i <= n; i++) {
				CHECK(next_tick() <= start[s] + i);
				CHECK(advance(start[s] + i));
				CHECK(!list_empty(&wheel.due) &&
				      list_is_singular(&wheel.due));
				if (list_empty(&wheel.due))
					break;
				CHECK(hwt_timeout_word(&timeouts[index_of(wheel.due.next)])
				      >> HWT_TICK_SHIFT == start[s] + i);
				take_out(index_of(wheel.due.next));
			}
			CHECK(no_bits());
			end();
		}
	}
}

static void rounds(void)
{
	begin(2, 1, 6);
	insert(0, 6 + 4 * 3);
	insert(1, 6 + 4);
	insert(2, 6 + 4 * 2);
	insert(3, 6 + 4 * 3);
	CHECK(is_at(0, 0, 2) && is_at(1, 0, 2) && is_at(2, 0, 2) && is_at(3, 0, 2));
	CHECK(next_tick() == 10);
	CHECK(advance(9));
	CHECK(NONE_DUE());
	CHECK(advance(10));
	CHECK(DUE(1));
	CHECK(next_tick() == 14);
	CHECK(advance(17));
	CHECK(DUE(2));
	CHECK(next_tick() == 18);
	CHECK(advance(1000));
	CHECK(DUE(0, 3));
	CHECK(next_tick() == HWT_TICK_NEVER);
	CHECK(no_bits());
	end();
}

static sigjmp_buf written;

static void on_write(int signal)
{
	(void)signal;
	siglongjmp(written, 1);
}

static noinline bool advance_writes_nothing(u64 now)
{
	return !sigsetjmp(written, 1) && advance(now);
}

/* Timeouts of later rounds, in memory that cannot be written. A visit finds only those. */
static void rounds_write_nothing(unsigned int levels)
{
	enum { N = 5, PAGE = 4096 };
	struct hwt_timeout *timeout;
	struct sigaction action = { .sa_handler = on_write }, before;
	char *pages;
	u64 round;
	int i;

	pages = mmap(NULL, N * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	if (pages == MAP_FAILED)
		return;
	begin(2, levels, 0);
	round = span(TICK_LAST);
	for (i = 0; i < N; i++) {
		timeout = (struct hwt_timeout *)(pages + i * PAGE);
		atomic64_set(&timeout->word, (round * 10 + round / 2 + i % 2) <<
			     HWT_TICK_SHIFT | HWT_F_ARMED);
		hwt_buckets_insert(&wheel, timeout);
	}
	insert(0, round / 2);
	insert(1, round / 2 + 1);
	take_out(0);
	take_out(1);
	sigaction(SIGSEGV, &action, &before);
	mprotect(pages, N * PAGE, PROT_READ);
	CHECK(next_tick() == round / 2);
	CHECK(advance_writes_nothing(round * 9));
	CHECK(NONE_DUE());
	CHECK(next_tick() == round * 10 + round / 2);
	mprotect(pages, N * PAGE, PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &before, NULL);
	hwt_buckets_destroy(&wheel);
	munmap(pages, N * PAGE);
}

/* To every seam between buckets: not due one tick before, due at it. */
static void seams(unsigned int levels)
{
	unsigned int bits, shift;
	u64 tick;

	for (bits = 1; bits <= HWT_BITS_MAX; bits++) {
		for (shift = 0; shift < 56; shift++) {
			/* Not through more rounds than can be waited for. */
			if (shift > bits * levels + 10)
				break;
			tick = (1ULL << shift) + 5;
			begin(bits, levels, 5);
			insert(0, tick);
			CHECK(advance(tick - 1));
			CHECK(NONE_DUE());
			CHECK(next_tick() == tick);
			CHECK(advance(tick));
			CHECK(DUE(0));
			CHECK(no_bits());
			end();
		}
	}
}

static void last_tick(unsigned int levels)
{
	unsigned int bits;
	u64 back;

	for (bits = 1; bits <= HWT_BITS_MAX; bits++) {
		begin(bits, levels, 0);
		back = span(1ULL << 40);
		CHECK(advance(TICK_LAST - back));
		insert(0, TICK_LAST);
		insert(1, HWT_TICK_NEVER);
		insert(2, TICK_LAST - 1);
		CHECK(next_tick() <= TICK_LAST - 1);
		CHECK(advance(TICK_LAST - 1));
		CHECK(DUE(2));
		CHECK(next_tick() == TICK_LAST);
		CHECK(advance(TICK_LAST));
		CHECK(DUE(0));
		CHECK(next_tick() == HWT_TICK_NEVER);
		end();
	}
}

static void never(unsigned int levels)
{
	begin(4, levels, 77);
	insert(0, HWT_TICK_NEVER);
	insert(1, HWT_TICK_NEVER);
	CHECK(next_tick() == HWT_TICK_NEVER);
	CHECK(no_bits());
	CHECK(advance(TICK_LAST));
	CHECK(NONE_DUE());
	take_out(0);
	hwt_buckets_rebase(&wheel, 3);
	CHECK(advance(3));
	CHECK(NONE_DUE());
	CHECK(next_tick() == HWT_TICK_NEVER);
	hwt_buckets_flush(&wheel);
	CHECK(DUE(1));
	end();
}

/* -- The next tick, and going there --------------------------------------- */

static void next_ticks(void)
{
	begin(3, 3, 0);
	CHECK(next_tick() == HWT_TICK_NEVER);
	insert(0, 0123);
	CHECK(next_tick() == 0123);
	insert(1, 0034);
	CHECK(next_tick() == 0034);
	insert(2, 0006);
	CHECK(next_tick() == 0006);
	insert(3, 0);
	CHECK(next_tick() == 0006);
	CHECK(DUE(3));
	CHECK(next_tick() == 0006);
	take_out(2);
	CHECK(next_tick() == 0034);
	/* What is removed, or pushed back, is not forgotten before it is visited. */
	insert(2, 0032);
	take_out(2);
	CHECK(next_tick() == 0032);
	CHECK(advance(0030));
	CHECK(NONE_DUE());
	CHECK(next_tick() == 0034);
	CHECK(advance(0034));
	CHECK(next_tick() == 0123);
	CHECK(DUE(1));
	CHECK(advance(0100));
	CHECK(next_tick() == 0123);
	CHECK(advance(0122));
	CHECK(next_tick() == 0123);
	CHECK(advance(0123));
	CHECK(DUE(0));
	CHECK(next_tick() == HWT_TICK_NEVER);

	/* Backward is nowhere. */
	CHECK(advance(0));
	CHECK(wheel.cursor == 0123);
	end();
}

/* A year's ticks and more cost one look a level. */
static void far_in_few_looks(void)
{
	u64 tick = (1ULL << 53) + (1ULL << 44) + (1ULL << 35) + (1ULL << 26) +
		   (1ULL << 17) + (1ULL << 8) + 1;

	begin(9, 6, 3);
	insert(0, tick);
	/* On five levels one bucket and one timeout, on level 0 a bucket. */
	CHECK(!hwt_buckets_advance(&wheel, tick, 10));
	CHECK(hwt_buckets_advance(&wheel, tick, 1));
	CHECK(DUE(0));
	insert(0, tick + 1);
	insert(1, tick + 2);
	CHECK(!hwt_buckets_advance(&wheel, TICK_LAST, 1));
	CHECK(hwt_buckets_advance(&wheel, TICK_LAST, 1));
	CHECK(DUE(0, 1));
	end();
}

/* Skipping goes up to the bucket that is next, and makes nothing due. */
static void skips(void)
{
	begin(3, 2, 0);
	hwt_buckets_skip(&wheel, 0055);
	CHECK(wheel.cursor == 0055);
	insert(0, 01234);
	hwt_buckets_skip(&wheel, 05000);
	CHECK(wheel.cursor == 01227);
	CHECK(NONE_DUE());
	hwt_buckets_skip(&wheel, 0);
	CHECK(wheel.cursor == 01227);
	CHECK(advance(01234));
	/* Not over what is due. */
	hwt_buckets_skip(&wheel, 05000);
	CHECK(wheel.cursor == 01234);
	CHECK(DUE(0));
	end();
}

/* Of rounds, only those are visited that have something due: no matter how many there are. */
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
		/* A bucket and a timeout on each level, of level 0 the bucket. */
		CHECK(hwt_buckets_advance(&wheel, next_tick(), 2 * levels));
		CHECK(DUE(i));
	}
	end();
}

/* The current slot of a lower level can never be taken for the next turn's. */
static void same_slot_of_the_next_turn(unsigned int levels)
{
	u64 turn;

	begin(3, levels, 5);
	for (turn = 8; turn <= 64; turn += 8) {
		insert(0, turn + 5);
		CHECK(next_tick() > wheel.cursor && next_tick() <= turn + 5);
		CHECK(advance(turn + 4));
		CHECK(NONE_DUE());
		CHECK(advance(turn + 5));
		CHECK(DUE(0));
	}
	end();
}

/* -- Order ---------------------------------------------------------------- */

/* Inserted from near and far, ever closer: in the order of insertion. */
static void order_in_a_tick(unsigned int levels)
{
	unsigned int bits;
	u64 tick = 1000, now;
	int i, n;

	for (bits = 1; bits <= 4; bits++) {
		begin(bits, levels, 0);
		for (now = 0, n = 0; now < tick; now += 37) {
			CHECK(advance(now));
			insert(n++, tick);
			insert(n++, tick + 1);
		}
		CHECK(advance(tick + 1));
		for (i = 0; i < n && !list_empty(&wheel.due); i++) {
			int expected = i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1;

			CHECK(index_of(wheel.due.next) == expected);
			take_out(index_of(wheel.due.next));
		}
		CHECK(i == n);
		end();
	}
}

static void order_of_ticks(unsigned int levels)
{
	begin(2, levels, 0);
	insert(0, 70);
	insert(1, 7);
	insert(2, 33);
	insert(3, 8);
	insert(4, 33);
	CHECK(advance(1));
	insert(5, 7);
	insert(6, 1);
	insert(7, 0);
	CHECK(advance(100));
	CHECK(DUE(6, 7, 1, 5, 3, 2, 4, 0));
	end();
}

/* -- Pauses --------------------------------------------------------------- */

static void budget(unsigned int levels)
{
	u64 tick = levels > 1 ? 8 : 5;
	int i;

	begin(3, levels, 0);
	for (i = 0; i < 10; i++)
		insert(i, tick);
	CHECK(!hwt_buckets_advance(&wheel, 20, 0));
	CHECK(wheel.cursor < tick);
	CHECK(next_tick() == tick);
	CHECK(!hwt_buckets_advance(&wheel, 20, 1));
	CHECK(wheel.cursor == tick);
	CHECK(NONE_DUE());
	CHECK(next_tick() == tick);
	CHECK(!hwt_buckets_advance(&wheel, 20, 4));
	CHECK(DUE(0, 1, 2, 3));
	CHECK(!hwt_buckets_advance(&wheel, 20, 4));
	CHECK(next_tick() == tick);
	CHECK(DUE(4, 5, 6, 7));
	CHECK(hwt_buckets_advance(&wheel, 20, 2));
	CHECK(DUE(8, 9));
	CHECK(wheel.cursor == 20);
	CHECK(no_bits());
	end();
}

/* In every pause: one more of the same tick, one that stays, one that goes. */
static void pauses_keep_order(unsigned int levels)
{
	unsigned int bits, step;
	int i, n, last;
	bool done;
	u64 tick;

	for (bits = 1; bits <= 3; bits++) {
		for (step = 1; step <= 12; step++) {
			begin(bits, levels, 0);
			tick = min(span(512), 512ULL) / 2 + 1;
			for (n = 0; n < 10; n++)
				insert(n, tick);
			insert(1000, tick);
			for (i = 0; i < 5; i++)
				insert(2000 + i, tick + span(1ULL << 40));
			do {
				done = hwt_buckets_advance(&wheel, tick, step);
				if (!done && n < 40)
					insert(n++, tick);
				if (n == 14 && hwt_linked(&timeouts[1000]))
					take_out(1000);
			} while (!done);
			for (last = -1; !list_empty(&wheel.due); last = i) {
				i = index_of(wheel.due.next);
				CHECK(i == 1000 || i == last + 1);
				take_out(i);
				if (i == 1000)
					i = last;
			}
			CHECK(last == n - 1);
			CHECK(advance(tick + span(1ULL << 40)));
			CHECK(DUE(2000, 2001, 2002, 2003, 2004));
			CHECK(no_bits());
			end();
		}
	}
}

static void remove_in_a_pause(unsigned int levels)
{
	int i, gone;

	for (gone = 0; gone < 6; gone++) {
		begin(3, levels, 0);
		for (i = 0; i < 6; i++)
			insert(i, 64);
		/* As far as the last bucket in which they are together. */
		do
			CHECK(!hwt_buckets_advance(&wheel, 64, 1));
		while (passed && list_empty(&wheel.due));
		CHECK(DUE(0));
		for (i = 1; i <= gone; i++)
			take_out(i);
		CHECK(advance(64));
		for (i = gone ? gone + 1 : 1; i < 6 && !list_empty(&wheel.due); i++) {
			CHECK(index_of(wheel.due.next) == i);
			take_out(i);
		}
		CHECK(i == 6);
		CHECK(NONE_DUE());
		CHECK(no_bits());
		CHECK(next_tick() == HWT_TICK_NEVER);
		end();
	}
}

/* All gone in a pause, and a new one in the same bucket that is for later. */
static void emptied_in_a_pause(void)
{
	begin(2, 1, 0);
	insert(0, 3);
	insert(1, 3);
	CHECK(!hwt_buckets_advance(&wheel, 5, 2));
	take_out(1);
	insert(2, 7);
	CHECK(next_tick() == 3);
	CHECK(DUE(0));
	CHECK(advance(5));
	CHECK(NONE_DUE());
	CHECK(is_at(2, 0, 3));
	CHECK(next_tick() == 7);
	take_out(2);
	CHECK(no_bits());
	end();
}

/* -- Behind the wheel's back ---------------------------------------------- */

static void pushed_back(unsigned int levels)
{
	begin(3, levels, 0);
	insert(0, 5);
	insert(1, 64 + 5);
	set_tick(0, 100);
	set_tick(1, 200);
	CHECK(next_tick() <= 5);
	CHECK(advance(5));
	if (!list_empty(&wheel.due)) {	/* for the caller to find out */
		CHECK(DUE(0));
		hwt_buckets_insert(&wheel, &timeouts[0]);
	}
	CHECK(advance(99));
	if (!list_empty(&wheel.due)) {
		CHECK(DUE(1));
		hwt_buckets_insert(&wheel, &timeouts[1]);
	}
	CHECK(NONE_DUE());
	CHECK(advance(100));
	CHECK(DUE(0));
	CHECK(advance(199));
	CHECK(NONE_DUE());
	CHECK(advance(200));
	CHECK(DUE(1));
	CHECK(no_bits());

	insert(0, 300);
	set_tick(0, HWT_TICK_NEVER);
	CHECK(advance(1000));
	while (!list_empty(&wheel.due)) {
		take_out(0);
		hwt_buckets_insert(&wheel, &timeouts[0]);
	}
	CHECK(next_tick() == HWT_TICK_NEVER);
	end();
}

/* -- Rebase and flush ----------------------------------------------------- */

static void rebase(unsigned int levels)
{
	unsigned int back;

	for (back = 0; back < 100; back += 9) {
		begin(2, levels, 100);
		insert(0, 150);
		insert(1, 110);
		insert(2, 100);
		insert(3, 150);
		insert(4, 99);
		insert(5, HWT_TICK_NEVER);
		hwt_buckets_rebase(&wheel, back);
		CHECK(wheel.cursor == back);
		CHECK(next_tick() == back);
		insert(6, 150);
		insert(7, back);
		CHECK(advance(back));
		CHECK(back == 99 ? DUE(4, 7) : DUE(7));
		CHECK(advance(105));
		CHECK(back == 99 ? DUE(2) : DUE(4, 2));
		CHECK(advance(110));
		CHECK(DUE(1));
		hwt_buckets_rebase(&wheel, 149);
		CHECK(advance(149));
		CHECK(NONE_DUE());
		hwt_buckets_rebase(&wheel, 5000);
		CHECK(advance(5000));
		CHECK(DUE(0, 3, 6));
		CHECK(next_tick() == HWT_TICK_NEVER);
		CHECK(no_bits());
		end();
	}
}

/* A rebase in a paused visit of a bucket. */
static void rebase_in_a_visit(unsigned int levels)
{
	unsigned int step;

	for (step = 1; step < 9; step++) {
		begin(3, levels, 0);
		insert(0, 64);
		insert(1, 64 + 512);
		insert(2, 64);
		insert(3, 64 + 512);
		insert(4, 64);
		insert(5, 64);
		CHECK(!hwt_buckets_advance(&wheel, 64, step) || step > 3);
		insert(6, 64);
		hwt_buckets_rebase(&wheel, 1);
		insert(7, 64);
		CHECK(advance(63));
		CHECK(NONE_DUE());
		CHECK(advance(64));
		CHECK(DUE(0, 2, 4, 5, 6, 7));
		CHECK(advance(1000));
		CHECK(DUE(1, 3));
		CHECK(no_bits());
		end();
	}
}

/* A rebase while another one is paused, and a third. */
static void rebase_in_a_rebase(unsigned int levels)
{
	unsigned int step;

	for (step = 0; step < 8; step++) {
		begin(3, levels, 0);
		insert(0, 70);
		insert(1, 70);
		insert(2, 9);
		insert(3, 70);
		insert(4, 9);
		hwt_buckets_rebase(&wheel, 8);
		hwt_buckets_advance(&wheel, 8, step);
		insert(5, 70);
		hwt_buckets_rebase(&wheel, 10);
		hwt_buckets_advance(&wheel, 10, step);
		insert(6, 70);
		hwt_buckets_rebase(&wheel, 7);
		CHECK(advance(8));
		CHECK(NONE_DUE());
		CHECK(advance(9));
		CHECK(DUE(2, 4));
		CHECK(advance(70));
		CHECK(DUE(0, 1, 3, 5, 6));
		CHECK(no_bits());
		end();
	}
}

/* A stop: in every state of a visit and of a rebase. */
static void flush(unsigned int levels)
{
	unsigned int step, rebased;

	for (rebased = 0; rebased < 2; rebased++) {
		for (step = 0; step < 7; step++) {
			begin(3, levels, 0);
			insert(0, 64);
			insert(1, 64);
			insert(2, HWT_TICK_NEVER);
			insert(3, 64);
			if (rebased)
				hwt_buckets_rebase(&wheel, 1);
			hwt_buckets_advance(&wheel, 64, step);
			insert(4, 64);
			take_out(2);
			hwt_buckets_flush(&wheel);
			CHECK(DUE(0, 1, 3, 4));
			CHECK(no_bits());
			CHECK(next_tick() == HWT_TICK_NEVER);

			/* It goes on working. */
			insert(0, 100);
			CHECK(advance(99));
			CHECK(NONE_DUE());
			CHECK(advance(100));
			CHECK(DUE(0));
			end();
		}
	}
}

static void flush_takes_all(void)
{
	begin(3, 3, 0);
	insert(0, HWT_TICK_NEVER);
	insert(1, 0);
	insert(2, 5000);
	insert(3, 3);
	insert(4, 60);
	hwt_buckets_flush(&wheel);
	CHECK(DUE(1, 3, 4, 2, 0));
	end();
}

static void remove_anywhere(void)
{
	begin(3, 3, 0);
	insert(0, 0);
	insert(1, HWT_TICK_NEVER);
	insert(2, 5);
	insert(3, 5);
	take_out(0);
	take_out(1);
	CHECK(NONE_DUE());
	take_out(2);
	CHECK(next_tick() == 5);
	take_out(3);
	CHECK(next_tick() == HWT_TICK_NEVER);
	CHECK(no_bits());
	insert(4, 50);
	hwt_buckets_rebase(&wheel, 7);
	take_out(4);
	CHECK(advance(100));
	CHECK(NONE_DUE());
	end();
}

static void occupied(void)
{
	/* More than a word of bits, and less. */
	static const unsigned int bits[] = { 8, 3 };
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(bits); i++) {
		n = 1U << bits[i];
		begin(bits[i], 2, 0);
		CHECK(hwt_buckets_occupied(&wheel, 0) == 0 && hwt_buckets_occupied(&wheel, 1) == 0);
		insert(0, 1);
		insert(1, 1);
		insert(2, n - 1);
		insert(3, n);
		insert(4, n + 1);
		insert(5, n * n - 1);
		CHECK(hwt_buckets_occupied(&wheel, 0) == 2);
		CHECK(hwt_buckets_occupied(&wheel, 1) == 2);
		take_out(0);
		CHECK(hwt_buckets_occupied(&wheel, 0) == 2);
		take_out(1);
		CHECK(hwt_buckets_occupied(&wheel, 0) == 1);
		/* The first bucket of the upper level comes down: one is due, one is not. */
		CHECK(advance(n));
		CHECK(hwt_buckets_occupied(&wheel, 0) == 1);
		CHECK(hwt_buckets_occupied(&wheel, 1) == 1);
		end();
	}
}

/* ------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*once)(void);
	void (*for_levels)(unsigned int levels);
} tests[] = {
	{ "slack: all small values, against brute force", .once = relax_small },
	{ "slack: extremes", .once = relax_extremes },
	{ "slack: fires from its level", .once = relaxed_fires_from_its_level },
	{ "shape: levels beyond all ticks are left out", .once = shapes },
	{ "shape: -ENOMEM, nothing leaked", .once = no_memory },
	{ "homes of ticks", .once = homes },
	{ "rounds of a hashed wheel", .once = rounds },
	{ "next tick, step by step", .once = next_ticks },
	{ "how full a level is", .once = occupied },
	{ "skipping", .once = skips },
	{ "far in few looks", .once = far_in_few_looks },
	{ "pause: the bucket is emptied", .once = emptied_in_a_pause },
	{ "flush takes all", .once = flush_takes_all },
	{ "remove from anywhere", .once = remove_anywhere },
	{ "every tick has its timeout", .for_levels = every_tick },
	{ "later rounds are not written to", .for_levels = rounds_write_nothing },
	{ "rounds without anything due are passed by",
	  .for_levels = rounds_are_passed_by },
	{ "seams of buckets", .for_levels = seams },
	{ "the last tick", .for_levels = last_tick },
	{ "never", .for_levels = never },
	{ "same slot of the next turn", .for_levels = same_slot_of_the_next_turn },
	{ "order in a tick", .for_levels = order_in_a_tick },
	{ "order of ticks", .for_levels = order_of_ticks },
	{ "budget", .for_levels = budget },
	{ "pause: order is kept", .for_levels = pauses_keep_order },
	{ "pause: removal", .for_levels = remove_in_a_pause },
	{ "pushed back", .for_levels = pushed_back },
	{ "rebase", .for_levels = rebase },
	{ "rebase in a visit", .for_levels = rebase_in_a_visit },
	{ "rebase in a rebase", .for_levels = rebase_in_a_rebase },
	{ "flush", .for_levels = flush },
};

int main(void)
{
	unsigned int levels, failed = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		passed = true;
		if (tests[i].once)
			tests[i].once();
		for (levels = 1; tests[i].for_levels && levels <= HWT_LEVELS_MAX; levels++) {
			tests[i].for_levels(levels);
			if (!passed) {
				printf("# with %u levels\n", levels);
				break;
			}
		}
		tap_point(passed, "%s", tests[i].name);
		failed += !passed;
	}
	return !!failed;
}
