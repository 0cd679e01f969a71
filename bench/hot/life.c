// SPDX-License-Identifier: GPL-2.0-only
/*
 * life [-q]: the time of each pass of a timeout's life, from schedule to callback, per timeout
 *
 * This program executes the module's code in one thread. Timeouts are armed in random order, and
 * all fire, 500 in each millisecond, as in bench_life.c. Each object has its own cache line, in
 * pages of 4 KiB. The engine runs whenever its backlog would have woken it, and at each tick. The
 * program sets the clock; a read takes as long as that of a real clock.
 */
#include <sys/mman.h>

#include "core/clock.h"
#include "core/engine.h"
#include "core/params.h"
#include "core/wheel.h"
#include "core/thread.h"
#include "bench.h"

#define SPREAD		(2 * NSEC_PER_SEC)
#define MILLION		1000000
#define PASSES		4

static const char * const names[PASSES] = { "schedule", "collect", "cascade", "fire" };

static u64 now;
static struct hwt_wheel *wheel;
static struct hwt_shard *shard;	/* its only one */
static struct bench_item *items;
static u32 *order;
static u64 *times;
static unsigned int fires;

static u64 read_clock(void)
{
	return shim_clock_ns(CLOCK_MONOTONIC);
}

u64 ktime_get_ns(void)
{
	return read_clock() ? now : 0;
}

static void fired(struct hwt_timeout *timeout)
{
	fires++;
}

static const struct hwt_timeout_ops ops = { .expire = fired };

/* The linker replaces hwt_buckets_advance() by this function, which measures it. */
static u64 advancing;

bool __real_hwt_buckets_advance(struct hwt_buckets *buckets, u64 tick, unsigned int budget,
				bool stop);
bool __wrap_hwt_buckets_advance(struct hwt_buckets *buckets, u64 tick, unsigned int budget,
				bool stop);
bool __wrap_hwt_buckets_advance(struct hwt_buckets *buckets, u64 tick, unsigned int budget,
				bool stop)
{
	u64 began = read_clock();
	bool done = __real_hwt_buckets_advance(buckets, tick, budget, stop);

	advancing += read_clock() - began;
	return done;
}

/* Run the engine until it would sleep. Return: the time of that, ns. */
static u64 engine(void)
{
	u64 began = read_clock();

	shim_kthread_run(shard->thread);
	return read_clock() - began;
}

/* Arm @count timeouts, and let all fire. Add the time of each pass to @took, ns. */
static void live(unsigned int count, u64 seed, u64 *took)
{
	/* The number of timeouts in each tick does not depend on @count. */
	u64 spread = count * (SPREAD / MILLION);
	u64 random = seed, began, end;
	unsigned int i;

	bench_shuffle(order, count, seed);
	/* Begin anywhere in a revolution of level 0. */
	now += bench_random(&random) % (16 * NSEC_PER_SEC);
	for (i = 0; i < count; i++) {
		times[i] = now + spread / 4 + bench_random(&random) % spread;
		hwt_timeout_init(&items[i].timeout, wheel, &ops);
	}
	fires = 0;
	engine();
	for (i = 0; i < count; ) {
		began = read_clock();
		do {
			hwt_schedule_at(&items[order[i]].timeout, times[i]);
		} while (++i < count && i % HWT_BACKLOG);
		took[0] += read_clock() - began;
		took[1] += engine();
	}
	advancing = 0;
	for (end = now + 2 * spread; now < end && fires < count; ) {
		now = min(end, hwt_buckets_next_tick(&shard->buckets) * shard->tick_ns);
		took[3] += engine();
	}
	took[2] += advancing;
	took[3] -= advancing;
	if (fires != count) {
		fprintf(stderr, "%u of %u have fired\n", fires, count);
		exit(1);
	}
}

static void print(const char *pass, unsigned int count, double ns)
{
	printf("@bench bench=passes peer=hwt op=%s n=%u unit=ns value=%.1f\n", pass, count, ns);
}

/* Repeat the life of few timeouts until a million have fired. */
static void measure(unsigned int count)
{
	unsigned int repeat = MILLION / count, i, pass;
	static unsigned int seed;
	u64 took[PASSES] = { };
	double sum = 0, ns;

	for (i = 0; i < repeat; i++)
		live(count, ++seed, took);
	for (pass = 0; pass < PASSES; pass++) {
		ns = (double)took[pass] / count / repeat;
		sum += ns;
		print(names[pass], count, ns);
	}
	print("all", count, sum);
}

int main(int argc, char **argv)
{
	static const unsigned int counts[] = { 1000, 10000, MILLION };
	bool quick = bench_quick(argc, argv);
	unsigned int runs = quick ? 3 : 7, i;

	shim_start();
	shim_on_demand = true;
	now = 1000 * NSEC_PER_SEC;
	wheel = hwt_wheel_create(NULL);
	if (IS_ERR(wheel)) {
		fprintf(stderr, "life: hwt_wheel_create: %ld\n", PTR_ERR(wheel));
		return 1;
	}
	shard = wheel->first_shard;
	items = mmap(NULL, MILLION * sizeof(*items), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (items == MAP_FAILED) {
		perror("life: mmap");
		return 1;
	}
	madvise(items, MILLION * sizeof(*items), MADV_NOHUGEPAGE);
	order = shim_alloc(MILLION * sizeof(*order));
	times = shim_alloc(MILLION * sizeof(*times));
	while (runs--)
		for (i = 0; i < ARRAY_SIZE(counts); i++)
			measure(counts[i]);
	return 0;
}
