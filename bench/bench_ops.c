// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of single operations, with a thousand to ten million timeouts pending. Each operation
 * visits the objects in its own random order, so that neither an object nor its neighbours on a
 * list are in the cache by accident. In each repetition, every peer runs once.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/vmalloc.h>

#include "bench.h"

/* The number of objects of the operations; all further objects are only pending. */
#define OPS_SAMPLE	1000000

static const struct {
	const char	*name;
	enum bench_loop	loop;
} phases[] = {
	{ "schedule",		LOOP_SCHEDULE },	/* idle objects */
	{ "push-back",		LOOP_LATER },		/* to another bucket */
	{ "push-back-a-little",	LOOP_LATER },		/* by a jiffy, mostly in the same bucket */
	{ "pull-forward",	LOOP_EARLIER },
	{ "cancel",		LOOP_CANCEL },		/* pending objects */
	{ "schedule+cancel",	LOOP_PAIR },		/* idle objects */
	{ "schedule-relative",	LOOP_RELATIVE },	/* idle objects */
};

#define OPS_PHASES	ARRAY_SIZE(phases)

static const struct bench_peer * const ops_peers[] = {
	&bench_bare, &bench_hwt, &bench_hwt_coarse, &bench_bh, &bench_touch, &bench_timer,
	&bench_lazy, &bench_hrtimer, &bench_work,
};

struct ops {
	u32	*order;		/* of each phase, one phase after the other */
	u64	*when;
	u64	*delay;		/* ns */
	u32	sample, pending;
};

/* A third each: about half a minute, two minutes, hours. None fires during the operations. */
static u64 ops_delay(void)
{
	switch (bench_random_below(3)) {
	case 0:
		return 20ULL * NSEC_PER_SEC + bench_random_below(20ULL * NSEC_PER_SEC);
	case 1:
		return 100ULL * NSEC_PER_SEC + bench_random_below(20ULL * NSEC_PER_SEC);
	default:
		return 3600ULL * NSEC_PER_SEC + bench_random_below(36000ULL * NSEC_PER_SEC);
	}
}

static int ops_make(struct ops *ops, u32 pending)
{
	u32 i, n = min_t(u32, pending, OPS_SAMPLE);

	ops->pending = pending;
	ops->sample = n;
	ops->order = vmalloc(array3_size(OPS_PHASES, n, sizeof(u32)));
	ops->when = vmalloc(array_size(n, sizeof(u64)));
	ops->delay = vmalloc(array_size(n, sizeof(u64)));
	if (!ops->order || !ops->when || !ops->delay)
		return -ENOMEM;
	for (i = 0; i < OPS_PHASES; i++) {
		bench_shuffle(ops->order + i * n, n);
		cond_resched();
	}
	for (i = 0; i < n; i++)
		ops->delay[i] = ops_delay();
	return 0;
}

/* Set the times of a loop in the order of @span, in the peer's unit. */
static void ops_times(struct ops *ops, const struct bench_peer *peer,
		      const struct bench_span *span, enum bench_loop loop)
{
	u64 delay;
	u32 i;

	for (i = 0; i < ops->sample; i++) {
		/* An object has the same delay in all phases. */
		delay = ops->delay[span->order[i]];
		/* A bucket of timer_list spans up to an eighth of the delay. */
		if (loop == LOOP_LATER)
			delay += delay / 8 + 30ULL * NSEC_PER_SEC;
		else if (loop == LOOP_EARLIER)
			delay /= 2;
		ops->when[i] = loop == LOOP_RELATIVE ? bench_delay(peer, delay) :
						       bench_time(peer, delay);
	}
}

/* Schedule or cancel the objects that are only pending. */
static void ops_background(struct ops *ops, const struct bench_peer *peer,
			   struct bench_span span, enum bench_loop loop)
{
	void *objects = span.objects;
	u32 i, first;

	for (first = ops->sample; first < ops->pending; first += span.end) {
		span.end = min(ops->sample, ops->pending - first);
		span.objects = objects + first * peer->size;
		for (i = 0; i < span.end; i++)
			ops->when[i] = bench_time(peer, ops->delay[i] + 3600ULL * NSEC_PER_SEC);
		bench_run(peer, loop, &span);
	}
	bench_settle(peer, NULL, 0, loop == LOOP_CANCEL);
}

static int ops_once(struct ops *ops, bool alone, const struct bench_peer *peer)
{
	struct bench_span span = { .when = ops->when, .order = ops->order, .alone = alone };
	bool cancelled = false;
	enum bench_loop loop;
	unsigned int phase;
	u64 ns;

	span.objects = bench_open(peer, ops->pending);
	if (IS_ERR(span.objects))
		return PTR_ERR(span.objects);
	ops_background(ops, peer, span, LOOP_SCHEDULE);
	span.end = ops->sample;
	for (phase = 0; phase < OPS_PHASES; phase++) {
		loop = phases[phase].loop;
		span.order = ops->order + phase * ops->sample;
		ops_times(ops, peer, &span, loop);
		bench_settle(peer, span.objects, ops->sample, cancelled);
		ns = bench_run(peer, loop, &span);
		bench_print(ns, ops->sample, "bench=ops mode=%s peer=%s op=%s n=%u unit=ns",
			    alone ? "one-at-a-time" : "in-a-loop", peer->name, phases[phase].name,
			    ops->pending);
		cancelled = loop == LOOP_CANCEL || loop == LOOP_PAIR;
	}
	bench_run(peer, LOOP_CANCEL, &span);
	bench_settle(peer, NULL, 0, true);
	ops_background(ops, peer, span, LOOP_CANCEL);
	bench_close(peer, span.objects);
	return 0;
}

static int ops_pending(u32 pending)
{
	bool many = pending > OPS_SAMPLE;
	/* With ten million pending, a run takes minutes. */
	unsigned int run, p, mode, runs = many ? min(bench_runs, 2U) : bench_runs;
	struct ops ops;
	int err = ops_make(&ops, pending);

	for (run = 0; run < runs && !err && !bench_stopped(); run++)
		for (mode = 0; mode < 2; mode++)
			for (p = 0; p < ARRAY_SIZE(ops_peers) && !err; p++) {
				/* The tree of hrtimers takes half of that time. */
				if (many && run && ops_peers[p] == &bench_hrtimer)
					continue;
				if (many || !(p || mode))
					pr_info("ops, %u pending, run %u of %u: %s\n", pending,
						run + 1, runs, ops_peers[p]->name);
				err = ops_once(&ops, mode == 0, ops_peers[p]);
			}
	vfree(ops.order);
	vfree(ops.when);
	vfree(ops.delay);
	return err;
}

/* The clock that relative deadlines read. */
static void ops_clock(void)
{
	unsigned int run, i;
	u64 began;

	for (run = 0; run < bench_runs; run++) {
		began = ktime_get_ns();
		for (i = 0; i < 100000; i++)
			ktime_get_ns();
		bench_print(ktime_get_ns() - began, 100000,
			    "bench=ops peer=clock op=ktime_get_ns n=1 unit=ns");
	}
}

static unsigned int ops_counts[8];
static int ops_counts_n;
module_param_array_named(pending, ops_counts, uint, &ops_counts_n, 0444);
MODULE_PARM_DESC(pending, "Numbers of pending timeouts during the operations (default 1000 to 10000000)");

int bench_ops(void)
{
	static const unsigned int full[] = { 1000, 10000, 100000, 1000000, 10000000 };
	static const unsigned int quick[] = { 1000, 100000 };
	const unsigned int *counts = ops_counts;
	int i, n = ops_counts_n, err = 0;

	if (!n) {
		counts = bench_quick ? quick : full;
		n = bench_quick ? ARRAY_SIZE(quick) : ARRAY_SIZE(full);
	}
	ops_clock();
	for (i = 0; i < n && !err && !bench_stopped(); i++)
		err = counts[i] ? ops_pending(counts[i]) : -EINVAL;
	return err;
}
