/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hwt_bench.ko: declarations shared by its files
 *
 *   bench_main.c	parameters, the choice of benchmarks, output
 *   bench_peer.c	hwt and its alternatives, each with the same loops
 *   bench_ops.c	the cost of single operations
 *   bench_life.c	from schedule to callback, slack, the re-arm storm
 *   bench_late.c	lateness
 *   bench_smp.c	several CPUs: one engine, and one for each CPU
 *   bench_trace.c	replay of recorded timer operations
 */
#ifndef _BENCH_H
#define _BENCH_H

#include <linux/percpu.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "hwt.h"

/* -- bench_main.c -------------------------------------------------------- */

/* Parameters: a quick run; repetitions; seconds of the storm. */
extern bool bench_quick;
extern unsigned int bench_runs;
extern unsigned int bench_seconds;

__printf(3, 4)
void bench_print(u64 total, u64 count, const char *fmt, ...);

bool bench_stopped(void);
void bench_sleep(u64 ns);
u64 bench_random_below(u64 limit);
void bench_shuffle(u32 *order, u32 n);

/* Time that all CPUs were not idle since bench_busy_begin(), ns. */
struct bench_busy {
	u64	wall;
	u64	idle;
};

void bench_busy_begin(struct bench_busy *busy);
u64 bench_busy_end(struct bench_busy *busy);

/* -- bench_peer.c -------------------------------------------------------- */

/*
 * Operations on object order[i] with the time when[i], for i from first to end - 1. If @alone, each
 * operation begins after the end of the one before, as in a program that does other things in
 * between. Otherwise the processor overlaps operations, as in a tight loop.
 */
struct bench_span {
	void		*objects;
	const u32	*order;
	const u64	*when;
	u32		first, end;
	bool		alone;
};

enum bench_loop {
	LOOP_SCHEDULE,	/* at an absolute time */
	LOOP_LATER,	/* the same for a pending object: push back */
	LOOP_EARLIER,	/* the same for a pending object: pull forward */
	LOOP_CANCEL,
	LOOP_PAIR,	/* schedule, and cancel immediately */
	LOOP_RELATIVE,	/* schedule after a delay */
	BENCH_LOOPS,
};

typedef void (*bench_loop_fn)(const struct bench_span *span);

/**
 * struct bench_peer - hwt, or an alternative to it
 * @name:    in the results
 * @size:    of an object, a multiple of a cache line
 * @jiffies: its times are in jiffies, not ns
 * @wheel:   of a peer that is hwt
 * @open:    create the state that all objects share; returns 0 or an error
 * @close:   destroy that state; all objects are idle
 * @init:    initialise an object
 * @loop:    the operations
 * @settle:  wait until no work is left in the background, after cancels or not
 */
struct bench_peer {
	const char	*name;
	size_t		size;
	bool		jiffies;
	struct hwt_wheel_params wheel;
	int		(*open)(const struct bench_peer *peer);
	void		(*close)(void);
	void		(*init)(void *object);
	bench_loop_fn	loop[BENCH_LOOPS];
	void		(*settle)(bool cancelled);
};

extern const struct bench_peer bench_bare, bench_hwt, bench_hwt_coarse,
	bench_hwt_jiffy, bench_hwt_jiffies, bench_hwt_shards, bench_bh, bench_bh_ms, bench_touch,
	bench_timer, bench_lazy, bench_hrtimer, bench_work;

/* The number of callbacks, of any peer. */
DECLARE_PER_CPU(unsigned long, bench_fired);

/* The wheel of the open hwt peer. */
extern struct hwt_wheel *bench_wheel;

/**
 * struct bench_load - an open peer, and objects of it in random order
 * @peer:  the peer
 * @span:  all objects
 * @order: of @span
 * @when:  of @span
 * @fired: bench_fired_sum() at the beginning
 */
struct bench_load {
	const struct bench_peer	*peer;
	struct bench_span	span;
	u32			*order;
	u64			*when;
	u64			fired;
};

void *bench_open(const struct bench_peer *peer, u32 count);
void bench_close(const struct bench_peer *peer, void *objects);
int bench_begin(struct bench_load *load, const struct bench_peer *peer, u32 count);
void bench_end(struct bench_load *load);
void bench_times(struct bench_load *load, u64 first, u64 spread);
void bench_settle(const struct bench_peer *peer, void *objects, u32 count,
		  bool cancelled);
u64 bench_time(const struct bench_peer *peer, u64 delay_ns);
u64 bench_delay(const struct bench_peer *peer, u64 delay_ns);
u64 bench_run(const struct bench_peer *peer, enum bench_loop loop,
	      const struct bench_span *span);
u64 bench_fired_sum(void);

/* -- The benchmarks; 0 or an error --------------------------------------- */

int bench_ops(void);
int bench_through(void);
int bench_slack(void);
int bench_storm(void);
int bench_late(void);
int bench_scale(void);
int bench_trace(void);

#endif /* _BENCH_H */
