/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs here have in common: times, random numbers, medians. */
#ifndef _BENCH_H
#define _BENCH_H

#include "shim.h"

#define BENCH_RUNS_MAX	64

/* An object of a user's, as small as can be: a timeout with a line to itself. */
struct bench_item {
	struct hwt_timeout timeout;
} __aligned(64);

/* splitmix64 */
static inline u64 bench_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* The numbers 0 to n - 1 in random order. */
static inline void bench_shuffle(u32 *order, u32 n, u64 seed)
{
	u32 i, j, tmp;

	for (i = 0; i < n; i++)
		order[i] = i;
	for (i = n; i > 1; i--) {
		j = bench_random(&seed) % i;
		tmp = order[i - 1];
		order[i - 1] = order[j];
		order[j] = tmp;
	}
}

/*
 * A delay: half of them from 30 s to 64 s, half from 30 s to 73 min. None comes due
 * while a benchmark runs.
 */
static inline u64 bench_delay(u64 *state)
{
	u64 random = bench_random(state);

	return 30 * NSEC_PER_SEC +
	       ((random >> 8 & ((1ULL << 35) - 1)) << (random & 1) * 7);
}

/* Later than any bench_delay() from the same time. */
static inline u64 bench_later(u64 *state)
{
	return 7200 * NSEC_PER_SEC + (bench_random(state) & ((1ULL << 42) - 1));
}

/* Repetitions of one measurement. */
struct bench_series {
	unsigned int	runs;
	double		value[BENCH_RUNS_MAX];
};

static inline void bench_add(struct bench_series *series, double value)
{
	if (series->runs < BENCH_RUNS_MAX)
		series->value[series->runs++] = value;
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline double bench_median(struct bench_series *series)
{
	unsigned int runs = series->runs;

	qsort(series->value, runs, sizeof(*series->value), bench_compare);
	return (series->value[(runs - 1) / 2] + series->value[runs / 2]) / 2;
}

/* The end of a line that says bench, peer, op and n. */
static inline void bench_print(struct bench_series *series, const char *unit)
{
	double median = bench_median(series);

	printf(" unit=%s median=%.2f low=%.2f high=%.2f runs=%u\n", unit, median,
	       series->value[0], series->value[series->runs - 1], series->runs);
}

#endif /* _BENCH_H */
