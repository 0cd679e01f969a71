// SPDX-License-Identifier: GPL-2.0-only
/*
 * count N [bh]: execute each hot path N times, on a wheel with a thread or on a BH wheel; count.py
 * counts under valgrind
 *
 * Time changes only where the program sets it. The engine has no thread: the program calls the
 * engine's code, which runs until it would sleep. So all runs are the same.
 *
 * The operations to count are between mark_begin() and mark_end(). For each operation, the program
 * prints a line about the marks that follow:
 *
 *	stack ADDRESS		the address of the stack
 *	op NAME INTERVALS OPS	INTERVALS pairs of marks follow, each around OPS operations
 */
#include "core/clock.h"
#include "core/engine.h"
#include "core/params.h"
#include "core/wheel.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"
#include "bench.h"

/* The mean distance of two deadlines, as with a million timeouts in an hour. */
#define SPREAD		(4 * NSEC_PER_MSEC)

static u64 now, spread = SPREAD;
static struct hwt_wheel *wheel;
static unsigned int count;
static struct bench_item *items;
static u32 *order;
static u64 *times;

/* Replaces the shim's clock. A read costs one load. */
u64 ktime_get_ns(void)
{
	return now;
}

noinline void mark_begin(void)
{
	barrier();
}

noinline void mark_end(void)
{
	barrier();
}

static void fired(struct hwt_timeout *timeout)
{
}

static const struct hwt_timeout_ops ops = { .expire = fired };

/* -- Operations ---------------------------------------------------------- */

static void nothing(struct hwt_timeout *timeout, u64 time)
{
}

static void schedule_at(struct hwt_timeout *timeout, u64 time)
{
	hwt_schedule_at(timeout, time);
}

static void schedule_after(struct hwt_timeout *timeout, u64 time)
{
	hwt_schedule(timeout, time - now);
}

static void cancel(struct hwt_timeout *timeout, u64 time)
{
	hwt_cancel(timeout);
}

static void touch(struct hwt_timeout *timeout, u64 time)
{
	hwt_touch(timeout, time);
}

static void arm_delete(struct hwt_timeout *timeout, u64 time)
{
	hwt_schedule_at(timeout, time);
	hwt_delete(timeout);
}

static void delete(struct hwt_timeout *timeout, u64 time)
{
	hwt_delete(timeout);
}

static void pair(struct hwt_timeout *timeout, u64 time)
{
	hwt_schedule_at(timeout, time);
	hwt_cancel(timeout);
}

/* Execute an operation on each timeout, in a new random order. */
static __always_inline void each(const char *name, u64 seed,
				 void (*operation)(struct hwt_timeout *timeout, u64 time),
				 u64 earliest)
{
	u64 random = seed;
	unsigned int i;

	bench_shuffle(order, count, seed);
	for (i = 0; i < count; i++)
		times[i] = now + earliest + bench_random(&random) % (count * spread);
	printf("op %s %u 1\n", name, count);
	for (i = 0; i < count; i++) {
		struct hwt_timeout *timeout = &items[order[i]].timeout;
		u64 time = times[i];

		mark_begin();
		operation(timeout, time);
		mark_end();
	}
}

/* Run the engine until it would sleep. */
static void engine(const char *name)
{
	struct hwt_shard *shard = wheel->first_shard;

	printf("op %s 1 %u\n", name ?: "-", count);
	mark_begin();
	if (shard->thread)
		shim_kthread_run(shard->thread);
	if (!shard->thread)
		do
			shard->bh.timer.function(&shard->bh.timer);
		while (shard->bh.timer_ns <= now);
	mark_end();
}

/* Have the engine release cancelled timeouts now, instead of after reclaim_ms. */
static void engine_reclaim(void)
{
	engine(NULL);
	now += NSEC_PER_SEC;
	engine(NULL);
}

int main(int argc, char **argv)
{
	struct hwt_wheel_params params = { };
	struct hwt_timeout first;
	unsigned int i;

	count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	if (argc == 3 && !strcmp(argv[2], "bh"))
		params = (struct hwt_wheel_params) { .flags = HWT_BH, .tick_ns = TICK_NSEC };
	if (!count) {
		fprintf(stderr, "usage: count N [bh]\n");
		return 2;
	}
	shim_start();
	shim_on_demand = true;
	now = 1000 * NSEC_PER_SEC;
	wheel = hwt_wheel_create(&params);
	if (IS_ERR(wheel))
		return 1;
	items = shim_alloc(count * sizeof(*items));
	order = shim_alloc(count * sizeof(*order));
	times = shim_alloc(count * sizeof(*times));
	for (i = 0; i < count; i++)
		hwt_timeout_init(&items[i].timeout, wheel, &ops);
	/* A timeout that is due before all others, so that these do not wake the engine. */
	hwt_timeout_init(&first, wheel, &ops);
	hwt_schedule_at(&first, now + 60 * NSEC_PER_SEC);

	printf("stack %p\n", __builtin_frame_address(0));
	engine(NULL);

	each("nothing", 1, nothing, 0);
	each("schedule_at", 2, schedule_at, 4000 * NSEC_PER_SEC);
	engine("collect");
	each("push_back", 3, schedule_at, 6000 * NSEC_PER_SEC);
	each("touch", 9, touch, 0);
	each("pull_forward", 4, schedule_at, 2000 * NSEC_PER_SEC);
	engine(NULL);
	each("cancel", 5, cancel, 0);
	engine_reclaim();
	each("pair", 6, pair, 4000 * NSEC_PER_SEC);
	engine_reclaim();
	each("arm_delete", 10, arm_delete, 4000 * NSEC_PER_SEC);
	each("-", 11, schedule_at, 4000 * NSEC_PER_SEC);
	engine(NULL);
	each("delete", 12, delete, 0);
	each("schedule", 7, schedule_after, 4000 * NSEC_PER_SEC);
	engine(NULL);
	now += 6000 * NSEC_PER_SEC;
	engine("expire");
	/* All in one tick, and on time. */
	spread = 1;
	each("-", 13, schedule_at, 4000 * NSEC_PER_SEC);
	engine(NULL);
	now = roundup(now + 4000 * NSEC_PER_SEC + count, wheel->first_shard->tick_ns);
	engine("fire");
	return 0;
}
