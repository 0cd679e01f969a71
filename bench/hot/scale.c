// SPDX-License-Identifier: GPL-2.0-only
/*
 * scale [-q]: throughput of 1 to all cores, with one engine, and with one for each thread. The
 * README.md of the benchmarks describes the peers and the phases.
 *
 * A phase ends when no work is left, that of the engines included. The figures are the time by the
 * wall clock, and the CPU time of all threads except the main thread, which only waits.
 */
#include <unistd.h>

#include "core/clock.h"
#include "core/kick.h"
#include "core/wheel.h"
#include "core/submit.h"
#include "core/thread.h"
#include "bench.h"

#define ITEMS_MAX	1000000U	/* of a thread */
#define ITEMS_ALL	8000000U	/* of all threads, as far as memory goes */
#define REVOLUTION	(8192 * NSEC_PER_MSEC)

enum phase { ARM, CANCEL, EXPIRE, PHASES };

static const char * const phase_names[PHASES] = { "arm", "cancel", "expire" };

static const struct peer {
	const char	*name;
	bool		hwt;	/* else: buckets and a lock */
	bool		each;	/* a shard, or buckets, for each thread */
} peers[] = { { "hwt", true, false }, { "hwt-shards", true, true },
	      { "locked", false, false }, { "percpu", false, true } };

struct worker {
	pthread_t		thread;
	struct bench_item	*items;
	u32			*order[EXPIRE];
	struct hwt_shard	*base;	/* locked: the first worker's */
};

static const struct peer *peer;
static struct worker *workers;
static unsigned int workers_count, items_each;
static struct hwt_wheel *wheel;
static pthread_barrier_t barrier;
static u64 now;

/* Replaces the shim's clock. A read takes as long as that of a real clock. */
u64 ktime_get_ns(void)
{
	return shim_clock_ns(CLOCK_MONOTONIC) ? READ_ONCE(now) : 0;
}

static void fired(struct hwt_timeout *timeout)
{
}

static const struct hwt_timeout_ops ops = { .expire = fired };

/* -- hwt ------------------------------------------------------------------- */

static void wheel_create(void)
{
	struct hwt_wheel_params params = { .shards = 1 };
	struct hwt_shard *shard;
	unsigned int cpu;

	if (peer->each)
		params.shards = min(workers_count, HWT_SHARDS_MAX);
	/* Give each thread its own cache, and so its own shard. */
	for_each_possible_cpu(cpu)
		shim_place[cpu].cache = min(cpu, workers_count - 1);
	wheel = hwt_wheel_create(&params);
	if (IS_ERR(wheel))
		exit(1);
	if (!peer->each)
		return;
	for (shard = wheel->first_shard; shard; shard = shard->next)
		bench_pin(shard->thread->thread, shard->number);
}

/* Wait until the engines have collected and called back @count timeouts. */
static void wheel_settle(u64 count)
{
	struct hwt_shard *shard;
	u64 sum;

	for (shard = wheel->first_shard; shard; shard = shard->next)
		hwt_engine_kick(shard, 0);
	do {
		usleep(200);
		sum = 0;
		for (shard = wheel->first_shard; shard; shard = shard->next)
			sum += READ_ONCE(shard->collected) + READ_ONCE(shard->expired);
	} while (sum < count);
}

/* -- The threads ------------------------------------------------------------ */

static void operate(struct worker *worker, struct hwt_shard *base, enum phase phase)
{
	u64 random = worker - workers, first = now + 2 * NSEC_PER_SEC;
	unsigned int i, count[PHASES] = { items_each, items_each / 2 };
	struct hwt_timeout *timeout;

	if (phase == EXPIRE && worker->base)
		base_expire(base, ktime_get_ns());
	for (i = 0; i < count[phase]; i++) {
		timeout = &worker->items[worker->order[phase][i]].timeout;
		if (phase == ARM && peer->hwt)
			hwt_schedule_at(timeout, first + bench_random(&random) % NSEC_PER_SEC);
		else if (phase == ARM)
			base_arm(base, timeout, first + bench_random(&random) % NSEC_PER_SEC);
		else if (peer->hwt)
			hwt_cancel(timeout);
		else
			base_cancel(base, timeout);
	}
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct hwt_shard *base;
	unsigned int number = worker - workers, i;
	enum phase phase;

	bench_pin(pthread_self(), number);
	shim_thread_start(number);
	/* Allocate on this core, so that the memory is near to it. */
	for (phase = ARM; phase < EXPIRE && !worker->order[phase]; phase++) {
		worker->order[phase] = shim_alloc(items_each * sizeof(u32));
		bench_shuffle(worker->order[phase], items_each, number * PHASES + phase);
	}
	worker->items = worker->items ?: shim_alloc(items_each * sizeof(*worker->items));
	worker->base = !peer->hwt && (peer->each || !number) ? base_create(now) : NULL;
	pthread_barrier_wait(&barrier);
	base = worker->base ?: workers->base;
	for (i = 0; i < items_each; i++)
		hwt_timeout_init(&worker->items[i].timeout, peer->hwt ? wheel : NULL, &ops);
	for (phase = ARM; phase < PHASES; phase++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		operate(worker, base, phase);
		pthread_barrier_wait(&barrier);
	}
	free(current);
	return NULL;
}

/* -- Repetitions -------------------------------------------------------------- */

/* Return the CPU time of all threads except the caller, which is the main thread. */
static u64 cpu_ns(void)
{
	return shim_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - shim_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void print(enum phase phase, const char *unit, double value)
{
	printf("@bench bench=scale peer=%s op=%s threads=%u n=%u unit=%s value=%.1f\n", peer->name,
	       phase_names[phase], workers_count, items_each, unit, value);
}

static void measure(enum phase phase)
{
	u64 all = (u64)workers_count * items_each, count = phase == ARM ? all : all / 2;
	u64 began, cpu, wall;

	pthread_barrier_wait(&barrier);
	began = shim_clock_ns(CLOCK_MONOTONIC);
	cpu = cpu_ns();
	if (phase == EXPIRE)
		WRITE_ONCE(now, now + 4 * NSEC_PER_SEC);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	if (peer->hwt)
		wheel_settle(all + phase * all / 2);
	wall = shim_clock_ns(CLOCK_MONOTONIC) - began;
	cpu = cpu_ns() - cpu;
	print(phase, "per_s", 1e9 * count / wall);
	print(phase, "ns", (double)cpu / count);
}

/* One repetition with some threads. */
static void run(unsigned int threads)
{
	struct hwt_wheel_stats stats = { };
	enum phase phase;
	unsigned int i;

	workers_count = threads;
	/* All deadlines are within a revolution of level 0: no timeout cascades. */
	now = roundup(now, REVOLUTION);
	if (peer->hwt)
		wheel_create();
	pthread_barrier_init(&barrier, NULL, threads + 1);
	for (i = 0; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			exit(1);
	pthread_barrier_wait(&barrier);
	for (phase = ARM; phase < PHASES; phase++)
		measure(phase);
	if (peer->hwt) {
		hwt_wheel_get_stats(wheel, &stats);
		hwt_wheel_destroy(wheel);
	}
	for (i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		stats.expired += workers[i].base ? workers[i].base->expired : 0;
		if (workers[i].base)
			base_destroy(workers[i].base);
	}
	pthread_barrier_destroy(&barrier);
	if (stats.expired != threads * (items_each / 2)) {
		fprintf(stderr, "scale: %s: half of the timeouts should have fired\n", peer->name);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	bool quick = bench_quick(argc, argv);
	unsigned int all, threads, i, runs = quick ? 3 : 7;

	shim_start();
	/* Later than any real time, so that only kicks wake the engines. */
	now = NSEC_PER_SEC * 86400 * 36500;
	all = bench_find_cores();
	workers = shim_alloc(all * sizeof(*workers));
	items_each = min(quick ? ITEMS_MAX / 5 : ITEMS_MAX, ITEMS_ALL / all) & ~1U;
	printf("scale: 1 to %u threads, %u timeouts each, %u repetitions\n", all, items_each, runs);
	fflush(stdout);
	for (i = 0; i < runs; i++)
		/* 1, 2, 4, ... and all CPUs. */
		for (threads = 1; threads; threads = threads == all ? 0 : min(threads * 2, all))
			for (peer = peers; peer < peers + ARRAY_SIZE(peers); peer++)
				run(threads);
	return 0;
}
