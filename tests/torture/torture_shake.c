// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels whose engine sleeps: is every wake-up delivered?
 *
 * On a busy wheel, the next submission hides a lost wake-up. Here each pair of threads has its own
 * wheel. In each round the engine sleeps, or is about to, and both threads make one call at the
 * same moment. In any order, the two calls have an effect; if it does not come, a wake-up was lost.
 * In half of the rounds another timeout, the anchor, is pending between the far and the near
 * deadline, so that the far deadline does not wake the engine.
 */
#include "torture.h"

#include <linux/cpumask.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

enum tt_how { TT_DO_SCHEDULE, TT_DO_EARLIER, TT_DO_CANCEL, TT_DO_TRY_CANCEL };

/*
 * Scenes. At the beginning, timeout "one" is armed for an hour later if @armed. The first thread
 * calls @first for it, with a delay of @first_ns, or soon if that is 0. The second thread calls
 * @second with a delay that is soon, for timeout "two" if @two, else for "one". If @first is a
 * cancel, "one" is released without firing, else it fires; "two" fires.
 */
static const struct tt_scene {
	const char	*name;
	bool		armed, two;
	enum tt_how	first;
	u64		first_ns;
	enum tt_how	second;
} tt_scenes[] = {
	{ "far and near", false, false, TT_DO_EARLIER, KT_HOUR, TT_DO_EARLIER },
	{ "a little and much", true, false, TT_DO_EARLIER, KT_HOUR / 2, TT_DO_EARLIER },
	{ "two", false, true, TT_DO_SCHEDULE, 0, TT_DO_SCHEDULE },
	{ "one cancelled, two armed", true, true, TT_DO_CANCEL, 0, TT_DO_SCHEDULE },
	{ "cancelled twice", true, false, TT_DO_CANCEL, 0, TT_DO_TRY_CANCEL },
};

struct tt_quick {
	struct hwt_timeout	timeout;
	atomic_t		fired, released;
};

/* Two threads and a wheel */
struct tt_pair {
	struct task_struct	*task[2];
	struct hwt_wheel	*wheel;
	struct tt_quick		one, two;
	struct tt_quick		anchor;		/* pending or not, and never fires */
	const struct tt_scene	*scene;		/* of this round */
	u64			near;		/* the delay that is soon, ns */
	unsigned int		round, done;	/* begun; done by the second thread */
	struct rnd_state	rnd;		/* of the first thread */
};

static struct tt_pair *tt_pair;

static void tt_quick_expire(struct hwt_timeout *timeout)
{
	atomic_inc(&container_of(timeout, struct tt_quick, timeout)->fired);
}

static void tt_quick_release(struct hwt_timeout *timeout)
{
	atomic_inc(&container_of(timeout, struct tt_quick, timeout)->released);
}

static const struct hwt_timeout_ops tt_quick_ops = {
	.expire = tt_quick_expire, .release = tt_quick_release,
};

static void tt_quick_reset(struct tt_quick *quick)
{
	hwt_cancel_sync(&quick->timeout);
	atomic_set(&quick->fired, 0);
	atomic_set(&quick->released, 0);
}

/* Choose and prepare a scene. */
static void tt_stage(struct tt_pair *pair)
{
	struct rnd_state *rnd = &pair->rnd;

	tt_quick_reset(&pair->one);
	tt_quick_reset(&pair->two);
	pair->scene = &tt_scenes[tt_pick(rnd, ARRAY_SIZE(tt_scenes))];
	pair->near = tt_one_in(rnd, 2) ? 0 : tt_pick(rnd, 2 * KT_MS);
	if (pair->scene->armed)
		hwt_schedule(&pair->one.timeout, KT_HOUR);
	if (tt_one_in(rnd, 2))
		hwt_schedule(&pair->anchor.timeout, KT_HOUR / 4);
	else
		hwt_cancel(&pair->anchor.timeout);
	/* The engine has not gone to sleep yet, is about to, or has slept for long. */
	switch (tt_pick(rnd, 4)) {
	case 0:
		break;
	case 1:
		usleep_range(20, 50);
		break;
	default:
		usleep_range(500, 3000);
	}
}

static void tt_part(struct tt_quick *quick, enum tt_how how, u64 ns)
{
	switch (how) {
	case TT_DO_SCHEDULE:
		hwt_schedule(&quick->timeout, ns);
		break;
	case TT_DO_EARLIER:
		hwt_schedule_earlier(&quick->timeout, ns);
		break;
	case TT_DO_CANCEL:
		hwt_cancel(&quick->timeout);
		break;
	case TT_DO_TRY_CANCEL:
		hwt_try_cancel(&quick->timeout);
	}
}

static bool tt_dropped(const struct tt_pair *pair)
{
	return pair->scene->first == TT_DO_CANCEL;
}

static bool tt_effect(struct tt_pair *pair)
{
	return atomic_read(tt_dropped(pair) ? &pair->one.released : &pair->one.fired) &&
	       (!pair->scene->two || atomic_read(&pair->two.fired));
}

static void tt_quick_dump(struct tt_quick *quick, const char *which)
{
	pr_err("  %s: fired %d, released %d, word %016llx, remaining %llu\n", which,
	       atomic_read(&quick->fired), atomic_read(&quick->released),
	       hwt_timeout_state(&quick->timeout), hwt_remaining(&quick->timeout));
}

/* Wait for the second thread's call and for the effect; false, and a fault, if they do not come. */
static bool tt_check_effect(struct tt_pair *pair)
{
	/* Pairs with tt_second_main(): the call of the second thread has returned. */
	if (!KT_WAIT_FOR(tt_effect(pair) && smp_load_acquire(&pair->done) == pair->round,
			 tt_patience)) {
		tt_fail(TT_LOST, NULL, "asleep: %s, soon is %llu ns, round %u, done %u",
			pair->scene->name, pair->near, pair->round, READ_ONCE(pair->done));
		tt_quick_dump(&pair->one, "one");
		tt_quick_dump(&pair->two, "two");
		return false;
	}
	if (tt_dropped(pair) && atomic_read(&pair->one.fired))
		tt_fail(TT_DEAD, NULL, "asleep: %s: it has fired", pair->scene->name);
	return true;
}

static void tt_spin(struct rnd_state *rnd)
{
	unsigned int n = tt_pick(rnd, 1U << tt_pick(rnd, 10));

	while (n--)
		cpu_relax();
}

static int tt_first_main(void *arg)
{
	struct tt_pair *pair = arg;

	while (!kthread_should_stop() && !tt_ending()) {
		if (pair->round % 1024 == 0)
			tt_stay_on(pair - tt_pair);
		tt_stage(pair);
		/* Pairs with tt_second_main(), which sees the scene when it sees the round. */
		smp_store_release(&pair->round, pair->round + 1);
		tt_spin(&pair->rnd);
		tt_part(&pair->one, pair->scene->first, pair->scene->first_ns ?: pair->near);
		/* After a fault, the second thread may still use this scene: begin no other. */
		if (!tt_check_effect(pair))
			break;
		tt_count(TT_ROUND);
	}
	while (READ_ONCE(pair->done) != pair->round && !tt_failed())
		usleep_range(500, 1000);
	while (!kthread_should_stop())
		usleep_range(500, 1000);
	return 0;
}

static int tt_second_main(void *arg)
{
	struct tt_pair *pair = arg;
	unsigned int seen = 0, n = 0;
	struct rnd_state rnd;

	tt_seed_for(&rnd, 3000 + (pair - tt_pair));
	tt_stay_on(pair - tt_pair + 1);
	while (!kthread_should_stop()) {
		/* Pairs with tt_first_main(): the scene is ready. */
		if (smp_load_acquire(&pair->round) != seen) {
			seen++;
			tt_spin(&rnd);
			tt_part(pair->scene->two ? &pair->two : &pair->one, pair->scene->second,
				pair->near);
			/* Pairs with tt_check_effect(): afterwards the scene may be changed. */
			smp_store_release(&pair->done, seen);
			n = 0;
			if (seen % 1024 == 0)
				tt_stay_on(pair - tt_pair + 1);
		} else if (num_online_cpus() == 1 || ++n > 2000) {
			usleep_range(20, 100);
		} else {
			cpu_relax();
		}
	}
	return 0;
}

static int tt_pair_start(struct tt_pair *pair, unsigned int n)
{
	struct hwt_wheel_params params = { .name = "shake", .workers = n % 3 };

	tt_seed_for(&pair->rnd, 4000 + n);
	pair->wheel = hwt_wheel_create(&params);
	if (IS_ERR(pair->wheel))
		return PTR_ERR(pair->wheel);
	hwt_timeout_init(&pair->one.timeout, pair->wheel, &tt_quick_ops);
	hwt_timeout_init(&pair->two.timeout, pair->wheel, &tt_quick_ops);
	hwt_timeout_init(&pair->anchor.timeout, pair->wheel, &tt_quick_ops);
	/* torture_nmi.c knows these threads and the wheel's by "shake" in their names. */
	pair->task[0] = tt_run(tt_first_main, pair, "shake", 2 * n);
	pair->task[1] = tt_run(tt_second_main, pair, "shake", 2 * n + 1);
	return PTR_ERR_OR_ZERO(pair->task[0]) ?: PTR_ERR_OR_ZERO(pair->task[1]);
}

int tt_shakes_start(void)
{
	unsigned int n;
	int ret = 0;

	tt_pair = kcalloc(tt_pairs, sizeof(*tt_pair), GFP_KERNEL);
	if (!tt_pair)
		return -ENOMEM;
	for (n = 0; n < tt_pairs && !ret; n++)
		ret = tt_pair_start(&tt_pair[n], n);
	return ret;
}

void tt_shakes_stop(void)
{
	struct tt_pair *pair;
	unsigned int n;

	for (n = 0; tt_pair && n < tt_pairs; n++) {
		pair = &tt_pair[n];
		tt_stop(pair->task[0]);
		tt_stop(pair->task[1]);
		if (!IS_ERR_OR_NULL(pair->wheel) && hwt_wheel_destroy(pair->wheel))
			tt_fail(TT_ANSWER, NULL, "a wheel that was asleep is not destroyed");
	}
	kfree(tt_pair);
	tt_pair = NULL;
}
