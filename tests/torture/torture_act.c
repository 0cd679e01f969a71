// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that all actors make for all timeouts: threads, callbacks, interrupts, NMIs. The hard
 * interrupts are here, too: an hrtimer on each CPU. It moves when its CPU goes offline, and back
 * when its CPU is online again.
 */
#include "torture.h"

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "../kernel/lib/hwt_ktest_compat.h"

/* A delay of at least @least: often due at once or soon, sometimes never. */
u64 tt_random_delay(struct rnd_state *rnd, u64 least)
{
	u32 random = tt_random(rnd);

	switch (random % 32) {
	case 0 ... 3:
		return least;
	case 4:
		return U64_MAX;
	case 5:
		return S64_MAX - random;
	case 6 ... 11:
		return least + KT_HOUR + random;
	case 12 ... 13:
		return least + random / 4;		/* up to a second */
	case 14 ... 20:
		return least + (random >> 6);		/* up to 67 ms */
	default:
		return least + (random >> 9);		/* up to 8 ms */
	}
}

/* Lower the floor of a timeout that all actors arm; it never rises. */
static void tt_floor_sink(struct tt_item *item, u64 floor)
{
	u64 old = READ_ONCE(item->floor);

	while (floor < old && !try_cmpxchg64(&item->floor, &old, floor))
		;
}

/* Schedule a TT_CROWD or TT_MIXED as a one-shot. Any context. */
static void tt_act_arm(struct tt_item *item, struct rnd_state *rnd)
{
	static const enum tt_op ops[] = {
		TT_AFTER, TT_AFTER, TT_AT, TT_AFTER_SLACK, TT_AT_SLACK, TT_EARLIER,
		TT_EARLIER_AT, TT_MOVE, TT_MOVE_AT,
	};
	enum tt_op op = ops[tt_pick(rnd, ARRAY_SIZE(ops))];
	u64 delay = tt_random_delay(rnd, item->least);
	u64 deadline = tt_add(tt_op_now(op, item->wheel), delay);

	tt_floor_sink(item, deadline);
	tt_arm(item, op, tt_op_is_at(op) ? deadline : delay, tt_random(rnd) >> 8,
	       HWT_MODE_FIXED_RATE);
}

/*
 * Make a random call for a timeout of which the caller is a user. @above: call a _sync only for a
 * timeout with a higher id, so that no two callbacks wait for each other; 0: for each timeout.
 */
void tt_act(struct tt_item *item, struct rnd_state *rnd, bool may_sleep, u64 above)
{
	u32 what = tt_pick(rnd, 32);

	if (tt_exact(item)) {
		/* Cancel rarely, or none of them would fire. */
		if (what < 4)
			tt_cancel(item);
		else if (what < 6)
			tt_try_cancel(item);
		else
			tt_query(item);
		return;
	}
	switch (what) {
	case 0 ... 5:
		tt_cancel(item);
		break;
	case 6 ... 9:
		tt_try_cancel(item);
		break;
	case 10:
		if (may_sleep && item->id > above)
			tt_cancel_sync(item);
		break;
	case 11:
		tt_query(item);
		break;
	default:
		tt_act_arm(item, rnd);
	}
}

void tt_act_any(struct rnd_state *rnd, bool may_sleep)
{
	struct tt_item *item = tt_item_borrow_any(rnd);

	if (!item)
		return;
	tt_act(item, rnd, may_sleep, 0);
	tt_item_return(item);
}

/* The random part of an ->expire: sleep, arm the timeout again, call hwt for other timeouts. */
void tt_in_callback(struct tt_item *item)
{
	struct tt_item *other;
	struct rnd_state rnd;
	u32 random;

	tt_seed_for(&rnd, (u32)item->id * 31 + atomic_read(&item->n[TT_N_FIRED]));
	random = tt_random(&rnd);
	if (random % 64 == 0)
		usleep_range(10, 2000);
	if (tt_ending())
		return;
	/* The hold keeps the callback's own timeout, even if it has no users any more. */
	if (item->kind == TT_CROWD && (random >> 8) % 4 == 0)
		tt_act_arm(item, &rnd);
	else if (!tt_exact(item) && (random >> 8) % 16 == 1)
		tt_cancel(item);
	if ((random >> 16) % 4 == 0) {
		other = tt_item_borrow_any(&rnd);
		if (other) {
			if (other != item)
				tt_act(other, &rnd, true, item->id);
			tt_item_return(other);
		}
	}
	if ((random >> 20) % 512 == 0)
		usleep_range(2000, 20000);
}

/* -- Hard interrupts ----------------------------------------------------------- */

struct tt_irq {
	struct hrtimer		timer;
	struct rnd_state	rnd;
};

static struct tt_irq *tt_irq;
static unsigned int tt_irq_n;

static ktime_t tt_irq_delay(struct tt_irq *irq)
{
	return ns_to_ktime((u64)NSEC_PER_USEC * (TT_IRQ_US / 2 + tt_pick(&irq->rnd, TT_IRQ_US)));
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

/* Start each hrtimer on its own CPU, if that is online. Process context. */
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
