// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of single operations, with a thousand to ten million timeouts pending. Each
 * operation visits the objects in a random order of its own, so that none finds its
 * memory or a list's neighbours warm by accident. Repetitions are interleaved: each
 * peer once, then all again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "bench.h"

/* Objects that are operated on; what is pending beyond that only lies there. */
#define OPS_SAMPLE	1000000

enum ops_phase {
	PHASE_NEW,		/* schedule what is idle */
	PHASE_LATER,		/* push back, to another bucket */
	PHASE_SAME,		/* push back by a jiffy, mostly in the same bucket */
	PHASE_EARLIER,		/* pull forward */
	PHASE_CANCEL,		/* of what has been pending for a while */
	PHASE_PAIR,		/* schedule and cancel at once, what is idle */
	PHASE_RELATIVE,		/* schedule what is idle, after a delay */
	OPS_PHASES,
};

static const struct {
	const char	*name;
	enum bench_loop	loop;
} phases[OPS_PHASES] = {
	[PHASE_NEW]	 = { "schedule",		LOOP_SCHEDULE },
	[PHASE_LATER]	 = { "push-back",		LOOP_LATER },
	[PHASE_SAME]	 = { "push-back-a-little",	LOOP_LATER },
	[PHASE_EARLIER]	 = { "pull-forward",		LOOP_EARLIER },
	[PHASE_CANCEL]	 = { "cancel",			LOOP_CANCEL },
	[PHASE_PAIR]	 = { "schedule+cancel",		LOOP_PAIR },
	[PHASE_RELATIVE] = { "schedule-relative",	LOOP_RELATIVE },
};

static const struct bench_peer * const ops_peers[] = {
	&bench_floor, &bench_hwt, &bench_hwt_coarse, &bench_timer, &bench_hrtimer,
	&bench_work,
};

#define OPS_PEERS	ARRAY_SIZE(ops_peers)

/* See struct bench_span. */
enum ops_mode { MODE_APART, MODE_BURST, OPS_MODES };

static const char * const mode_name[] = { "apart", "burst" };

struct ops {
	u32			*order[OPS_PHASES];
	u64			*when;
	u64			*delay;		/* ns */
	u32			sample, pending;
	struct bench_result	result[OPS_MODES][OPS_PEERS][OPS_PHASES];
};

/*
 * A third each: about half a minute, two minutes, hours. None is so short that it fires
 * before the operations are through with it.
 */
static u64 ops_delay(void)
{
	switch (bench_random_below(3)) {
	case 0:
		return 20ULL * NSEC_PER_SEC + bench_random_below(20ULL * NSEC_PER_SEC);
	case 1:
		return 100ULL * NSEC_PER_SEC + bench_random_below(20ULL * NSEC_PER_SEC);
	default:
		return 3600ULL * NSEC_PER_SEC +
		       bench_random_below(10 * 3600ULL * NSEC_PER_SEC);
	}
}

static void ops_free(struct ops *ops)
{
	int i;

	for (i = 0; i < OPS_PHASES; i++)
		vfree(ops->order[i]);
	vfree(ops->when);
	vfree(ops->delay);
	kfree(ops);
}

static struct ops *ops_make(u32 pending)
{
	struct ops *ops = kzalloc(sizeof(*ops), GFP_KERNEL);
	bool ok;
	u32 i;

	if (!ops)
		return NULL;
	ops->pending = pending;
	ops->sample = min_t(u32, pending, OPS_SAMPLE);
	ops->when = vmalloc(array_size(ops->sample, sizeof(u64)));
	ops->delay = vmalloc(array_size(ops->sample, sizeof(u64)));
	ok = ops->when && ops->delay;
	for (i = 0; i < OPS_PHASES; i++) {
		ops->order[i] = vmalloc(array_size(ops->sample, sizeof(u32)));
		ok &= !!ops->order[i];
	}
	if (!ok) {
		ops_free(ops);
		return NULL;
	}
	for (i = 0; i < OPS_PHASES; i++) {
		bench_shuffle(ops->order[i], ops->sample);
		cond_resched();
	}
	for (i = 0; i < ops->sample; i++)
		ops->delay[i] = ops_delay();
	return ops;
}

/* When the objects of a phase are to fire, as the peer counts. */
static void ops_times(struct ops *ops, const struct bench_peer *peer,
		      enum ops_phase phase)
{
	u64 delay;
	u32 i;

	for (i = 0; i < ops->sample; i++) {
		/* The same object as in the phases before. */
		delay = ops->delay[ops->order[phase][i]];
		/* A bucket of timer_list spans up to an eighth of the delay. */
		if (phase == PHASE_LATER || phase == PHASE_SAME)
			delay += delay / 8 + 30ULL * NSEC_PER_SEC;
		else if (phase == PHASE_EARLIER)
			delay /= 2;
		if (phase == PHASE_RELATIVE)
			ops->when[i] = bench_delay(peer, delay);
		else
			ops->when[i] = bench_time(peer, delay);
	}
}

/* What is pending and not operated on. */
static void ops_background(struct ops *ops, const struct bench_peer *peer,
			   struct bench_span *span, enum bench_loop loop)
{
	u32 i, n, first;

	for (first = ops->sample; first < ops->pending; first += n) {
		n = min(ops->sample, ops->pending - first);
		for (i = 0; i < n; i++)
			ops->when[i] = bench_time(peer, ops->delay[i] +
						  3600ULL * NSEC_PER_SEC);
		/* Any order: here they are visited from the first to the last. */
		span->objects += first * peer->size;
		span->end = n;
		bench_run(peer, loop, span);
		span->objects -= first * peer->size;
	}
	bench_settle(peer, NULL, 0, loop == LOOP_CANCEL);
}

static int ops_once(struct ops *ops, enum ops_mode mode, unsigned int p)
{
	const struct bench_peer *peer = ops_peers[p];
	struct bench_span span = { .when = ops->when, .apart = mode == MODE_APART };
	bool cancelled = false;
	enum ops_phase phase;
	int err = 0;
	u64 ns;

	if (peer->open)
		err = peer->open();
	if (err)
		return err;
	span.objects = bench_objects(peer, ops->pending);
	if (!span.objects) {
		err = -ENOMEM;
		goto out_close;
	}
	span.order = ops->order[PHASE_NEW];
	ops_background(ops, peer, &span, LOOP_SCHEDULE);

	span.end = ops->sample;
	for (phase = 0; phase < OPS_PHASES; phase++) {
		span.order = ops->order[phase];
		ops_times(ops, peer, phase);
		bench_settle(peer, span.objects, ops->sample, cancelled);
		ns = bench_run(peer, phases[phase].loop, &span);
		bench_add(&ops->result[mode][p][phase], ns, ops->sample);
		cancelled = phases[phase].loop == LOOP_CANCEL ||
			    phases[phase].loop == LOOP_PAIR;
	}
	bench_run(peer, LOOP_CANCEL, &span);
	bench_settle(peer, NULL, 0, true);

	span.order = ops->order[PHASE_NEW];
	ops_background(ops, peer, &span, LOOP_CANCEL);
	vfree(span.objects);
out_close:
	if (peer->close)
		peer->close();
	return err;
}

static int ops_pending(u32 pending)
{
	unsigned int run, mode, p, phase, runs = bench_runs;
	struct ops *ops = ops_make(pending);
	int err = 0;

	if (!ops)
		return -ENOMEM;
	/* Of ten million, one takes minutes. */
	if (pending > OPS_SAMPLE)
		runs = min(runs, 2U);
	for (run = 0; run < runs && !err && !bench_stopped(); run++) {
		pr_info("ops, %u pending, run %u of %u\n", pending, run + 1,
			runs);
		for (mode = 0; mode < OPS_MODES; mode++)
			for (p = 0; p < OPS_PEERS && !err; p++) {
				/* Half of these minutes are hrtimer's tree. */
				if (pending > OPS_SAMPLE && run && ops_peers[p] == &bench_hrtimer)
					continue;
				if (pending > OPS_SAMPLE)
					pr_info("ops, %u pending: %s, %s\n", pending,
						mode_name[mode], ops_peers[p]->name);
				err = ops_once(ops, mode, p);
			}
	}
	for (mode = 0; mode < OPS_MODES; mode++)
		for (phase = 0; phase < OPS_PHASES; phase++)
			for (p = 0; p < OPS_PEERS; p++)
				bench_print(&ops->result[mode][p][phase],
					    "bench=ops mode=%s peer=%s op=%s n=%u unit=ns",
					    mode_name[mode], ops_peers[p]->name,
					    phases[phase].name, pending);
	ops_free(ops);
	return err;
}

/* The clock that relative deadlines read. */
static void ops_clock(void)
{
	struct bench_result result = {};
	unsigned int run, i;
	u64 began;

	for (run = 0; run < bench_runs; run++) {
		began = ktime_get_ns();
		for (i = 0; i < 100000; i++)
			ktime_get_ns();
		bench_add(&result, ktime_get_ns() - began, 100000);
	}
	bench_print(&result, "bench=ops peer=clock op=ktime_get_ns n=1 unit=ns");
}

#define OPS_COUNTS	8

static unsigned int ops_counts[OPS_COUNTS];
static int ops_counts_n;
module_param_array_named(pending, ops_counts, uint, &ops_counts_n, 0444);
MODULE_PARM_DESC(pending, "How many are pending during the operations (default 1000 to 10000000)");

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
