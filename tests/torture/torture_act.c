// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that all actors make for all timeouts: threads, callbacks, interrupts, NMIs. The
 * interrupts are here, too: two hrtimers on each CPU, of which one runs in softirqs. They move when
 * their CPU goes offline, and back when it is online again.
 */
#include "torture.h"

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
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
 * Make a random call for a timeout of which the caller is a user. @self: the timeout in whose
 * callback the caller is, or NULL.
 */
void tt_act(struct tt_item *item, struct rnd_state *rnd, bool may_sleep,
	    const struct tt_item *self)
{
	u32 what = tt_pick(rnd, 32);

	/* Cancel the exact ones rarely, or none of them would fire. */
	if (tt_exact(item) && (what > 9 || what % 2 == 0))
		what = 11;
	switch (what) {
	case 0 ... 3:
		tt_cancel(item);
		break;
	case 4 ... 6:
		tt_try_cancel(item);
		break;
	case 7 ... 8:
		tt_delete(item, TT_DELETE);
		break;
	case 9:
		tt_delete(item, TT_TRY_DELETE);
		break;
	case 10:
		if (!tt_may_wait(item, may_sleep, self))
			break;
		/* Rarely, because it is good for nothing afterwards. */
		if (tt_one_in(rnd, 64))
			tt_shutdown_sync(item);
		else
			tt_cancel_sync(item);
		break;
	case 11:
		tt_query(item);
		break;
	case 12 ... 13:
		tt_touch(item, tt_add(hwt_wheel_now(item->wheel->wheel),
				      tt_random_delay(rnd, item->least)));
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
	tt_act(item, rnd, may_sleep, NULL);
	tt_item_return(item);
}

static void tt_linger(const struct tt_item *item, unsigned int least_us, unsigned int most_us)
{
	if (tt_is_bh(item->wheel))
		udelay(least_us);
	else
		usleep_range(least_us, most_us);
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
		tt_linger(item, 10, 2000);
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
				tt_act(other, &rnd, !tt_is_bh(item->wheel), item);
			tt_item_return(other);
		}
	}
	if ((random >> 20) % 512 == 0)
		tt_linger(item, 2000, 20000);
}

/* -- Interrupts ---------------------------------------------------------------- */

struct tt_irq {
	struct hrtimer		timer;
	struct rnd_state	rnd;
};

/* For each CPU one that runs in hard interrupts, and one that runs in softirqs. */
static struct tt_irq *tt_irq;
static unsigned int tt_irq_n;

static enum hrtimer_mode tt_irq_mode(const struct tt_irq *irq)
{
	return (irq - tt_irq) % 2 ? HRTIMER_MODE_REL_PINNED_SOFT : HRTIMER_MODE_REL_PINNED_HARD;
}

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
	tt_count(in_hardirq() ? TT_IRQ : TT_SOFT);
	while (n--)
		tt_act_any(&irq->rnd, false);
	hrtimer_forward_now(timer, tt_irq_delay(irq));
	return HRTIMER_RESTART;
}

static void tt_irq_start_here(void *arg)
{
	struct tt_irq *irq = arg;

	hrtimer_start(&irq->timer, tt_irq_delay(irq), tt_irq_mode(irq));
}

/* Start each hrtimer on its own CPU, if that is online. Process context. */
void tt_irqs_home(void)
{
	unsigned int n;

	if (tt_ending())
		return;
	cpus_read_lock();
	for (n = 0; n < tt_irq_n; n++) {
		if (!cpu_online(n / 2))
			continue;
		hrtimer_cancel(&tt_irq[n].timer);
		smp_call_function_single(n / 2, tt_irq_start_here, &tt_irq[n], 1);
	}
	cpus_read_unlock();
}

int tt_irqs_start(void)
{
	tt_irq = kcalloc(2 * nr_cpu_ids, sizeof(*tt_irq), GFP_KERNEL);
	if (!tt_irq)
		return -ENOMEM;
	for (tt_irq_n = 0; tt_irq_n < 2 * nr_cpu_ids; tt_irq_n++) {
		tt_seed_for(&tt_irq[tt_irq_n].rnd, 1000 + tt_irq_n);
		hrtimer_setup(&tt_irq[tt_irq_n].timer, tt_irq_fn, CLOCK_MONOTONIC,
			      tt_irq_mode(&tt_irq[tt_irq_n]));
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
