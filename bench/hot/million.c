// SPDX-License-Identifier: GPL-2.0-only
/*
 * million N [malloc]: one repetition of what ../java/Timers.java does with Java's timers
 *
 * Prints, for each operation, its name, the caller's CPU time and that of the whole process
 * until all is settled, in ns per operation; and at the end the memory of one timeout, in
 * bytes. With "malloc" each timeout is allocated when it is scheduled and freed by its
 * ->release, as Java's are, from memory that has been in use before.
 */
#include <malloc.h>
#include <unistd.h>

#include "hwt_internal.h"
#include "bench.h"

static struct hwt_wheel *wheel;
static unsigned int count;
static bool allocating;
static struct bench_item *items, *extra;
static struct hwt_timeout **timeouts;
static u32 *order;
static u64 *delays;

static void never_fires(struct hwt_timeout *timeout)
{
	abort();
}

static void item_free(struct hwt_timeout *timeout)
{
	free(timeout);
}

static const struct hwt_ops ops = { .expire = never_fires };
static const struct hwt_ops ops_free = { .expire = never_fires, .release = item_free };

static struct hwt_timeout *item_new(void)
{
	struct hwt_timeout *timeout = malloc(sizeof(*timeout));

	if (!timeout)
		exit(1);
	hwt_timeout_init(timeout, wheel, &ops_free);
	return timeout;
}

/* Java's memory has been used before, so that the first use of a page is not measured. */
static void malloc_warm_up(void)
{
	void *first = NULL, **spare;
	unsigned int i;

	mallopt(M_TRIM_THRESHOLD, -1);
	for (i = 0; i < 2 * count; i++) {
		spare = malloc(sizeof(struct hwt_timeout));
		if (!spare)
			exit(1);
		*spare = first;
		first = spare;
	}
	while (first) {
		spare = first;
		first = *spare;
		free(spare);
	}
}

static void schedule_all(void)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (allocating)
			timeouts[i] = item_new();
		hwt_schedule(timeouts[i], delays[i]);
	}
}

static void pairs(void)
{
	struct hwt_timeout *timeout;
	unsigned int i;

	for (i = 0; i < count; i++) {
		timeout = allocating ? item_new() : &extra[i].timeout;
		hwt_schedule(timeout, delays[i]);
		hwt_cancel(timeout);
	}
}

static void cancel_all(void)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		hwt_cancel(timeouts[order[i]]);
}

static void measure(const char *name, void (*operations)(void))
{
	u64 time, cpu;

	cpu = shim_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	time = shim_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	operations();
	time = shim_clock_ns(CLOCK_THREAD_CPUTIME_ID) - time;
	/* The engine lets go of what was cancelled within reclaim_ms, 100. */
	usleep(300000);
	cpu = shim_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%s %.2f %.2f\n", name, (double)time / count, (double)cpu / count);
}

int main(int argc, char **argv)
{
	struct hwt_wheel_stats stats;
	u64 random = 1;
	unsigned int i;

	allocating = argc == 3 && !strcmp(argv[2], "malloc");
	count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	if (!count || argc != 2 + allocating) {
		fprintf(stderr, "usage: million N [malloc]\n");
		return 2;
	}
	shim_start();
	wheel = hwt_wheel_create(NULL);
	if (IS_ERR(wheel))
		return 1;
	timeouts = shim_alloc(count * sizeof(void *));
	order = shim_alloc(count * sizeof(*order));
	delays = shim_alloc(count * sizeof(*delays));
	bench_shuffle(order, count, 1);
	for (i = 0; i < count; i++)
		delays[i] = bench_delay(&random);
	if (allocating) {
		malloc_warm_up();
	} else {
		items = shim_alloc(count * sizeof(*items));
		extra = shim_alloc(count * sizeof(*extra));
		for (i = 0; i < count; i++) {
			timeouts[i] = &items[i].timeout;
			hwt_timeout_init(timeouts[i], wheel, &ops);
			hwt_timeout_init(&extra[i].timeout, wheel, &ops);
		}
	}
	measure("schedule", schedule_all);
	measure("pair", pairs);
	measure("cancel", cancel_all);
	printf("memory %zu\n", sizeof(struct hwt_timeout));
	hwt_wheel_get_stats(wheel, &stats);
	if (stats.scheduled != 2ULL * count || stats.cancelled != 2ULL * count) {
		fprintf(stderr, "scheduled %lu, cancelled %lu, instead of %llu\n",
			stats.scheduled, stats.cancelled, 2ULL * count);
		return 1;
	}
	hwt_wheel_destroy(wheel);
	return 0;
}
