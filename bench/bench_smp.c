// SPDX-License-Identifier: GPL-2.0-only
/* Several CPUs: throughput with one engine, and with an engine for each CPU. */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "bench.h"

/* The work of a CPU: a loop over its part of the objects. */
struct smp_part {
	const struct bench_peer	*peer;
	enum bench_loop		loop;	/* BENCH_LOOPS: initialise the objects */
	struct bench_span	span;
	struct completion	*go;
	struct completion	done;
};

/* A timeout belongs to the shard of the CPU that initialises it. */
static void smp_make(struct smp_part *part)
{
	const struct bench_span *span = &part->span;
	u32 i;

	for (i = span->first; i < span->end; i++)
		part->peer->init(span->objects + span->order[i] * part->peer->size);
}

static int smp_thread(void *arg)
{
	struct smp_part *part = arg;

	wait_for_completion(part->go);
	if (part->loop == BENCH_LOOPS)
		smp_make(part);
	else
		bench_run(part->peer, part->loop, &part->span);
	/* A return after complete() might come after the unload of the module. */
	kthread_complete_and_exit(&part->done, 0);
}

/* Run parts at once, part i on the i-th CPU. Return: whether all ran. */
static bool smp_start(struct smp_part *parts, unsigned int n)
{
	DECLARE_COMPLETION_ONSTACK(go);
	struct task_struct *task;
	unsigned int i = 0, started;
	int cpu;

	for_each_online_cpu(cpu) {
		if (i == n)
			break;
		init_completion(&parts[i].done);
		parts[i].go = &go;
		task = kthread_create(smp_thread, &parts[i], "hwt-smp/%d", cpu);
		if (IS_ERR(task))
			break;
		kthread_bind(task, cpu);
		wake_up_process(task);
		i++;
	}
	started = i;
	complete_all(&go);
	for (i = 0; i < started; i++)
		wait_for_completion(&parts[i].done);
	return started == n;
}

/*
 * Run parts until @fires more callbacks have run. Print the operations in a second, by the wall
 * clock, and the time in which the CPUs are not idle, until the engines have collected all.
 */
static void scale_run(struct smp_part *parts, unsigned int n, enum bench_loop loop, u64 fires,
		      const char *op)
{
	const struct bench_peer *peer = parts->peer;
	u32 each = parts->span.end;
	u64 count = (u64)n * each, before = bench_fired_sum(), began, wall, cpu;
	struct bench_busy busy;
	unsigned int i;
	bool ran;

	for (i = 0; i < n; i++)
		parts[i].loop = loop;
	bench_busy_begin(&busy);
	began = ktime_get_ns();
	ran = smp_start(parts, n);
	while (ran && bench_fired_sum() - before < fires && !bench_stopped())
		bench_sleep(NSEC_PER_MSEC);
	wall = ktime_get_ns() - began;
	bench_settle(peer, NULL, 0, loop == LOOP_CANCEL);
	cpu = bench_busy_end(&busy);
	if (!ran || !op)
		return;
	bench_print(count * NSEC_PER_SEC, wall,
		    "bench=scale peer=%s op=%s threads=%u n=%u unit=per_s", peer->name, op, n,
		    each);
	bench_print(cpu, count, "bench=scale peer=%s op=%s threads=%u n=%u unit=ns", peer->name,
		    op, n, each);
}

static int scale_once(const struct bench_peer *peer, struct smp_part *parts, unsigned int n,
		      u32 each)
{
	struct bench_load load;
	unsigned int i;
	int err = bench_begin(&load, peer, each * n);

	if (err)
		return err;
	for (i = 0; i < n; i++) {
		parts[i].peer = peer;
		parts[i].span = load.span;
		parts[i].span.order += i * each;
		parts[i].span.when += i * each;
		parts[i].span.end = each;
	}
	scale_run(parts, n, BENCH_LOOPS, 0, NULL);
	bench_times(&load, 600ULL * NSEC_PER_SEC, NSEC_PER_SEC);
	scale_run(parts, n, LOOP_SCHEDULE, 0, "arm");
	scale_run(parts, n, LOOP_CANCEL, 0, "cancel");
	/* All timeouts are due. */
	bench_times(&load, 0, 1);
	scale_run(parts, n, LOOP_SCHEDULE, (u64)n * each, "life");
	bench_end(&load);
	return 0;
}

static const struct bench_peer * const scale_peers[] = {
	&bench_hwt, &bench_hwt_shards, &bench_timer,
};

int bench_scale(void)
{
	unsigned int all = num_online_cpus(), n, run, p;
	u32 each = min(bench_quick ? 20000U : 200000U, 8000000U / all);
	struct smp_part *parts;
	int err = 0;

	parts = kcalloc(all, sizeof(*parts), GFP_KERNEL);
	if (!parts)
		return -ENOMEM;
	for (run = 0; run < bench_runs; run++)
		/* 1, 2, 4, ... and all CPUs. */
		for (n = 1; n; n = n == all ? 0 : min(n * 2, all))
			for (p = 0; p < ARRAY_SIZE(scale_peers) && !err && !bench_stopped(); p++)
				err = scale_once(scale_peers[p], parts, n, each);
	kfree(parts);
	return err;
}
