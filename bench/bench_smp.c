// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several CPUs: all arm what is their own; one arms and the next one cancels. And throughput with
 * one engine, and with an engine for each CPU.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "bench.h"

/* What a CPU does: the loop on its part of the objects. */
struct smp_part {
	const struct bench_peer	*peer;
	enum bench_loop		loop;	/* BENCH_LOOPS: make the objects */
	struct bench_span	span;
	struct completion	*go;
	struct completion	done;
	u64			ns;
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
		part->ns = bench_run(part->peer, part->loop, &part->span);
	/* Not by returning: the module may be gone by then. */
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

/* Print the sum of the parts' times. */
static void smp_run(struct smp_part *parts, unsigned int n, const char *op, u32 count)
{
	bool ran = smp_start(parts, n);
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < n; i++)
		sum += parts[i].ns;
	if (ran)
		bench_print(sum, count, "bench=smp peer=%s op=%s cpus=%u n=%u unit=ns",
			    parts->peer->name, op, n, count);
	bench_settle(parts->peer, NULL, 0, true);
}

static const struct bench_peer * const smp_peers[] = {
	&bench_hwt, &bench_timer, &bench_hrtimer, &bench_work,
};

static int smp_once(const struct bench_peer *peer, struct smp_part *parts, unsigned int n,
		    u32 each)
{
	struct bench_load load;
	unsigned int i;
	int err = bench_begin(&load, peer, each * n);

	if (err)
		return err;
	bench_times(&load, 600ULL * NSEC_PER_SEC, 3600ULL * NSEC_PER_SEC);
	for (i = 0; i < n; i++) {
		parts[i].peer = peer;
		parts[i].loop = LOOP_SCHEDULE;
		parts[i].span = load.span;
		parts[i].span.first = i * each;
		parts[i].span.end = (i + 1) * each;
	}
	smp_run(parts, 1, "arm", each);
	bench_run(peer, LOOP_CANCEL, &parts[0].span);
	bench_settle(peer, NULL, 0, true);
	smp_run(parts, n, "arm", each * n);

	/* Each what its neighbour has armed. */
	for (i = 0; i < n; i++) {
		parts[i].loop = LOOP_CANCEL;
		parts[i].span.first = (i + 1) % n * each;
		parts[i].span.end = parts[i].span.first + each;
	}
	smp_run(parts, n, "cancel-anothers", each * n);
	bench_end(&load);
	return 0;
}

int bench_smp(void)
{
	unsigned int n = num_online_cpus(), run, p;
	struct smp_part *parts;
	int err = 0;

	if (n < 2) {
		pr_info("smp: there is one CPU only, left out\n");
		return 0;
	}
	parts = kcalloc(n, sizeof(*parts), GFP_KERNEL);
	if (!parts)
		return -ENOMEM;
	for (run = 0; run < bench_runs && !err && !bench_stopped(); run++)
		for (p = 0; p < ARRAY_SIZE(smp_peers) && !err; p++)
			err = smp_once(smp_peers[p], parts, n, bench_quick ? 20000 : 200000);
	kfree(parts);
	return err;
}

/* -- One engine, and an engine for each CPU -------------------------------- */

/*
 * Run parts until @fires callbacks more have run. Print operations in a second, by the wall clock,
 * and the time that the CPUs are not idle, also while the engines collect what is left.
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
	/* All are due. */
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
		/* 1, 2, 4, ... and all. */
		for (n = 1; n; n = n == all ? 0 : min(n * 2, all))
			for (p = 0; p < ARRAY_SIZE(scale_peers) && !err && !bench_stopped(); p++)
				err = scale_once(scale_peers[p], parts, n, each);
	kfree(parts);
	return err;
}
