// SPDX-License-Identifier: GPL-2.0-only
/*
 * From hard interrupts: an hrtimer on each CPU. When its CPU goes it moves to another one, and is
 * brought home when that is back.
 */
#include "torture.h"

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "../kernel/lib/hwt_ktest_compat.h"

struct tt_irq {
	struct hrtimer		timer;
	struct rnd_state	rnd;
};

static struct tt_irq *tt_irq;
static unsigned int tt_irq_n;

static ktime_t tt_irq_delay(struct tt_irq *irq)
{
	return ns_to_ktime((u64)NSEC_PER_USEC * (tt_irqs / 2 + tt_pick(&irq->rnd, tt_irqs)));
}

static enum hrtimer_restart tt_irq_fn(struct hrtimer *timer)
{
	struct tt_irq *irq = container_of(timer, struct tt_irq, timer);
	unsigned int n = 1 + tt_pick(&irq->rnd, 3);

	if (tt_ending())
		return HRTIMER_NORESTART;
	tt_count(TT_IRQ);
	while (n--)
		tt_act_any(&irq->rnd, false);
	hrtimer_forward_now(timer, tt_irq_delay(irq));
	return HRTIMER_RESTART;
}

static void tt_irq_start_here(void *arg)
{
	struct tt_irq *irq = arg;

	hrtimer_start(&irq->timer, tt_irq_delay(irq), HRTIMER_MODE_REL_PINNED_HARD);
}

/* Each on its own CPU, as far as that is there. Process context. */
void tt_irqs_home(void)
{
	unsigned int cpu;

	if (!tt_irq_n || tt_ending())
		return;
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		hrtimer_cancel(&tt_irq[cpu].timer);
		smp_call_function_single(cpu, tt_irq_start_here, &tt_irq[cpu], 1);
	}
	cpus_read_unlock();
}

int tt_irqs_start(void)
{
	if (!tt_irqs)
		return 0;
	tt_irq = kcalloc(nr_cpu_ids, sizeof(*tt_irq), GFP_KERNEL);
	if (!tt_irq)
		return -ENOMEM;
	for (tt_irq_n = 0; tt_irq_n < nr_cpu_ids; tt_irq_n++) {
		tt_seed_for(&tt_irq[tt_irq_n].rnd, 1000 + tt_irq_n);
		hrtimer_setup(&tt_irq[tt_irq_n].timer, tt_irq_fn, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_PINNED_HARD);
	}
	tt_irqs_home();
	return 0;
}

void tt_irqs_stop(void)
{
	while (tt_irq_n)
		hrtimer_cancel(&tt_irq[--tt_irq_n].timer);
	kfree(tt_irq);
	tt_irq = NULL;
}
