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
#include <linux/vmalloc.h>

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

/* Runs all parts at once, part i on the i-th CPU. Returns the sum of their times. */
static u64 smp_run(struct smp_part *parts, unsigned int n)
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
	return started == n ? sum : 0;
}

static const struct bench_peer * const smp_peers[] = {
	&bench_hwt, &bench_timer, &bench_hrtimer, &bench_work,
};

#define SMP_PEERS	ARRAY_SIZE(smp_peers)

static struct bench_result smp_alone[SMP_PEERS], smp_arm[SMP_PEERS],
	smp_cancel[SMP_PEERS];

static int smp_once(unsigned int p, struct smp_part *parts, unsigned int n, u32 each)
{
	const struct bench_peer *peer = smp_peers[p];
	u32 count = each * n, i;
	u32 *order = vmalloc(array_size(count, sizeof(*order)));
	u64 *when = vmalloc(array_size(count, sizeof(*when)));
	void *objects = NULL;
	int err = order && when ? 0 : -ENOMEM;
	u64 ns;

	if (!err && peer->open)
		err = peer->open();
	if (err)
		goto out;
	objects = bench_objects(peer, count);
	if (!objects) {
		err = -ENOMEM;
		goto out_close;
	}
	bench_shuffle(order, count);
	for (i = 0; i < count; i++)
		when[i] = bench_time(peer, 600ULL * NSEC_PER_SEC +
				     bench_random_below(3600ULL * NSEC_PER_SEC));
	for (i = 0; i < n; i++) {
		parts[i].peer = peer;
		parts[i].loop = LOOP_SCHEDULE;
		parts[i].span = (struct bench_span) {
			.objects = objects, .order = order, .when = when,
			.first = i * each, .end = (i + 1) * each,
		};
	}
	ns = smp_run(parts, 1);
	if (ns)
		bench_add(&smp_alone[p], ns, each);
	bench_run(peer, LOOP_CANCEL, &parts[0].span);
	bench_settle(peer, NULL, 0, true);

	ns = smp_run(parts, n);
	if (ns)
		bench_add(&smp_arm[p], ns, count);
	bench_settle(peer, NULL, 0, true);

	/* Each what its neighbour has armed. */
	for (i = 0; i < n; i++) {
		parts[i].loop = LOOP_CANCEL;
		parts[i].span.first = (i + 1) % n * each;
		parts[i].span.end = parts[i].span.first + each;
	}
	ns = smp_run(parts, n);
	if (ns)
		bench_add(&smp_cancel[p], ns, count);
	for (i = 0; i < n; i++)
		bench_run(peer, LOOP_CANCEL, &parts[i].span);
	bench_settle(peer, NULL, 0, true);
out_close:
	if (peer->close)
		peer->close();
out:
	vfree(objects);
	vfree(when);
	vfree(order);
	return err;
}

int bench_smp(void)
{
	unsigned int n = num_online_cpus(), run, p;
	u32 each = bench_quick ? 20000 : 200000;
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
		for (p = 0; p < SMP_PEERS && !err; p++)
			err = smp_once(p, parts, n, each);
	for (p = 0; p < SMP_PEERS; p++) {
		bench_print(&smp_alone[p], "bench=smp peer=%s op=arm cpus=1 n=%u unit=ns",
			    smp_peers[p]->name, each);
		bench_print(&smp_arm[p], "bench=smp peer=%s op=arm cpus=%u n=%u unit=ns",
			    smp_peers[p]->name, n, each * n);
		bench_print(&smp_cancel[p],
			    "bench=smp peer=%s op=cancel-anothers cpus=%u n=%u unit=ns",
			    smp_peers[p]->name, n, each * n);
	}
	kfree(parts);
	return err;
}
