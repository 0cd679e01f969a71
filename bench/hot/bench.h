/* SPDX-License-Identifier: GPL-2.0-only */
/* Objects, random numbers and delays, for all programs here. */
#ifndef _BENCH_H
#define _BENCH_H

#include "shim.h"
#include "hwt.h"

/* The smallest object of a client: a timeout in its own cache line. */
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
 * A random delay: half of them from 30 s to 64 s, half from 30 s to 73 min. No timeout fires while
 * a benchmark runs.
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

/* Return whether the only argument is -q; exit if there is another. */
static inline bool bench_quick(int argc, char **argv)
{
	if (argc > 2 || (argc == 2 && strcmp(argv[1], "-q"))) {
		fprintf(stderr, "usage: %s [-q]\n", argv[0]);
		exit(2);
	}
	return argc == 2;
}

/* base.c: the buckets of a wheel under one spinlock. */
struct hwt_shard *base_create(u64 now_ns);
void base_destroy(struct hwt_shard *base);
void base_arm(struct hwt_shard *base, struct hwt_timeout *timeout, u64 deadline_ns);
void base_cancel(struct hwt_shard *base, struct hwt_timeout *timeout);
void base_expire(struct hwt_shard *base, u64 now_ns);

/* cores.c: CPUs are numbered from 0, one of each core first. */
unsigned int bench_find_cores(void);
void bench_pin(pthread_t thread, unsigned int core);

#endif /* _BENCH_H */
