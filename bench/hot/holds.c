// SPDX-License-Identifier: GPL-2.0-only
/*
 * The longest hold of the wheel's lock, with preemption off, in the situations that take longest
 *
 * This program executes the module's code in one thread, without contention. Each situation is
 * repeated without a difference, so the n-th hold of each run does the same work. Interrupts only
 * lengthen a hold, so the shortest time of each hold counts, and the longest of these is reported.
 * Time is the thread's CPU time, whose reading is in each figure (about 0.2 us). hwt's clocks
 * change only where the program sets them.
 */
#include "core/clock.h"
#include "core/engine.h"
#include "core/params.h"
#include "core/wheel.h"
#include "core/sync.h"
#include "core/thread.h"
#include "bench.h"

#define RUNS		5U
#define MILLION		1000000
#define HOLDS		(4 * MILLION)
#define HOUR_NS		(3600 * NSEC_PER_SEC)

s64 shim_wall_offset;

static u64 now;
static u64 locked_at;
static unsigned int holds;
static u32 *least;
static struct hwt_wheel *wheel;
static struct hwt_shard *shard;	/* its only one */
static struct bench_item *items;
static unsigned int used;

u64 ktime_get_ns(void)
{
	return now;
}

static u64 cpu_time(void)
{
	return shim_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void shim_locked(void)
{
	locked_at = cpu_time();
}

void shim_unlocking(void)
{
	if (holds < HOLDS)
		least[holds] = min_t(u64, least[holds], cpu_time() - locked_at);
	holds++;
}

static void fired(struct hwt_timeout *timeout)
{
}

static const struct hwt_timeout_ops ops = { .expire = fired };

/* -- Situations ------------------------------------------------------------- */

static void engine(void)
{
	shim_kthread_run(shard->thread);
}

static void schedule_tick(u64 tick)
{
	struct hwt_timeout *timeout = &items[used++].timeout;

	hwt_timeout_init(timeout, wheel, &ops);
	hwt_schedule_at(timeout, tick * shard->tick_ns);
}

/* A timeout in each bucket. The cursor is at tick 0, where all levels begin. */
static void fill_buckets(void)
{
	const struct hwt_level *level = shard->buckets.level;
	u64 slot;

	for (; level < shard->buckets.level + shard->buckets.levels; level++)
		for (slot = 1; slot <= level->mask; slot++)
			schedule_tick(slot << level->shift);
	engine();
}

static void stop_full(void)
{
	fill_buckets();
	holds = 0;
	hwt_wheel_stop(wheel, NULL, NULL);
}

static void clock_back(void)
{
	now += 100 * shard->tick_ns;
	fill_buckets();
	holds = 0;
	shim_wall_offset -= 50 * shard->tick_ns;
	engine();
}

/* 4.7 hours in which no timeout is due: all are of later rounds, in reverse order of buckets. */
static void pause_rounds(void)
{
	u64 size = shard->buckets.size, slot;

	for (slot = 1; slot < size; slot++)
		schedule_tick((1000 + size - slot) * size + slot);
	engine();
	holds = 0;
	now += HOUR_NS * 47 / 10;
	engine();
}

/* The same, but all timeouts were pushed back, so that the bounds of all buckets are too low. */
static void pause_pushed(void)
{
	u64 size = shard->buckets.size, slot;
	unsigned int i;

	for (slot = 1; slot < size; slot++)
		schedule_tick((1 + slot % 250) * size + slot);
	engine();
	for (i = 0; i < used; i++)
		hwt_schedule_at(&items[i].timeout, 10000 * HOUR_NS);
	holds = 0;
	now += HOUR_NS * 47 / 10;
	engine();
}

static void pause_full(void)
{
	fill_buckets();
	holds = 0;
	now += HOUR_NS * 47 / 10;
	engine();
}

static void everyday(void)
{
	u64 random = 1;

	while (used < MILLION)
		schedule_tick(1 + bench_random(&random) % 3600000);
	holds = 0;
	engine();
	while (now < HOUR_NS) {
		now += 20 * NSEC_PER_SEC;
		engine();
	}
}

static const struct situation {
	const char	*name;
	void		(*run)(void);
	u32		buckets;
	u32		levels;
	u64		tick_ns;
	enum hwt_clock	clock;
} situations[] = {
	{ "a million, collected and run", everyday, 512, 3, NSEC_PER_MSEC, 0 },
	{ "stop, 65536 x 3 buckets in use", stop_full, 65536, 3, 10 * NSEC_PER_USEC, 0 },
	{ "wall clock set back, 65536 x 3", clock_back, 65536, 3, 10 * NSEC_PER_USEC,
	  HWT_CLOCK_REALTIME },
	{ "4.7 h passed, 65536 x 3", pause_full, 65536, 3, NSEC_PER_MSEC / 10, 0 },
	{ "4.7 h passed, 65536 x 1, later rounds", pause_rounds, 65536, 1, NSEC_PER_MSEC, 0 },
	{ "4.7 h passed, 65536 x 1, pushed back", pause_pushed, 65536, 1, NSEC_PER_MSEC, 0 },
};

/* -- Program ---------------------------------------------------------------- */

static void measure(const struct situation *situation)
{
	struct hwt_wheel_params params = {
		.tick_ns = situation->tick_ns,
		.ticks_per_wheel = situation->buckets,
		.levels = situation->levels,
		.clock = situation->clock,
	};

	now = 0;
	used = 0;
	shim_wall_offset = 0;
	wheel = hwt_wheel_create(&params);
	if (IS_ERR(wheel)) {
		fprintf(stderr, "hwt_wheel_create: %ld\n", PTR_ERR(wheel));
		exit(1);
	}
	shard = wheel->first_shard;
	situation->run();
	if (holds > HOLDS) {
		fprintf(stderr, "%s: %u holds\n", situation->name, holds);
		exit(1);
	}
}

int main(void)
{
	unsigned int i, n, run;
	u32 longest;

	shim_start();
	shim_on_demand = true;
	hwt_min_tick_us = 1;
	items = shim_alloc(MILLION * sizeof(*items));
	least = shim_alloc(HOLDS * sizeof(*least));
	printf("longest hold of the wheel's lock, each hold the least of %u runs\n", RUNS);
	for (i = 0; i < ARRAY_SIZE(situations); i++) {
		memset(least, 0xff, HOLDS * sizeof(*least));
		for (run = 0; run < RUNS; run++) {
			measure(&situations[i]);
			n = holds;
			hwt_wheel_destroy(wheel);
		}
		for (longest = 0; n; n--)
			longest = max(longest, least[n - 1]);
		printf("%-40s %10.1f us\n", situations[i].name, longest / 1000.0);
	}
	return 0;
}
