/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of recovery: rounds, and a periodic timeout whose periods are all accounted for.
 */
#ifndef HWT_RECOVER_H
#define HWT_RECOVER_H

#include <pthread.h>

#include "guest.h"
#include "hwt_ring.h"
#include "observer.h"

/* Return the number of rounds: fewer in a quick run and on a slow kernel. */
static inline unsigned int rounds(unsigned int normal, unsigned int few)
{
	return given("HWT_ROUNDS", quick() ? few : normal);
}

/* Return HWT_SEED of the kernel's command line, or a new seed, and print it. */
static inline __u64 first_seed(struct __test_metadata *_metadata)
{
	const char *env = getenv("HWT_SEED");
	__u64 seed = env ? strtoull(env, NULL, 0) : now_ns();

	TH_LOG("seed %llu", (unsigned long long)seed);
	return seed ? seed : 1;
}

/* -- Periods --------------------------------------------------------------- */

#define PERIOD	(10 * MSEC)

/* A timeout at a fixed rate */
struct periods {
	__u64	first;
	__u64	n;		/* periods counted by events */
	__u64	deadline, fired;
};

static inline int periods_begin(struct periods *periods, int fd, __u64 first, __u64 data)
{
	*periods = (struct periods) { .first = first };
	return hwt_arm(fd, NULL, .flags = HWT_ARM_ABSOLUTE, .mode = HWT_MODE_FIXED_RATE,
		       .time_ns = first, .period_ns = PERIOD, .user_data = data);
}

static inline void periods_add(struct periods *periods, const struct hwt_event *event)
{
	periods->n += event->overruns + 1;
	periods->deadline = event->deadline_ns;
	periods->fired = event->fired_ns;
}

/* Check that events counted each period that was over at the last firing, and no other. */
static inline void periods_check(struct __test_metadata *_metadata,
				 const struct periods *periods)
{
	TH_LOG("%llu periods", (unsigned long long)periods->n);
	EXPECT_LE((periods->deadline - periods->first) / PERIOD + 1, periods->n);
	EXPECT_GE((periods->fired - periods->first) / PERIOD + 1, periods->n);
}

#endif /* HWT_RECOVER_H */
