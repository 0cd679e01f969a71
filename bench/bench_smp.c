// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several CPUs: all arm what is their own; one arms and the next one cancels.
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
	enum bench_loop		loop;
	struct bench_span	span;
	struct completion	*go;
	struct completion	done;
	u64			ns;
};

static int smp_thread(void *arg)
{
	struct smp_part *part = arg;

	wait_for_completion(part->go);
	part->ns = bench_run(part->peer, part->loop, &part->span);
	/* Not by returning: the module may be gone by then. */
	kthread_complete_and_exit(&part->done, 0);
}

/* Run parts at once, part i on the i-th CPU, and print the sum of their times. */
static void smp_run(struct smp_part *parts, unsigned int n, const char *op, u32 count)
{
	DECLARE_COMPLETION_ONSTACK(go);
	struct task_struct *task;
	unsigned int i = 0, started;
	u64 sum = 0;
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
	for (i = 0; i < started; i++) {
		wait_for_completion(&parts[i].done);
		sum += parts[i].ns;
	}
	if (started == n)
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
