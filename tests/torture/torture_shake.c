// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels that are asleep: is every wake-up delivered?
 *
 * Where much goes on, the next submission hides that the one before has woken nobody. Here pairs
 * of threads have a wheel to themselves. In each round the engine has gone to sleep, or is just
 * about to, and both do one thing at the same moment, which together has to have an
 * effect in whatever order it takes place. If that does not come, a wake-up was lost. In half
 * of the rounds another timeout is pending, between far and near: so what is far
 * wakes nobody.
 */
#include "torture.h"

#include <linux/cpumask.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

/* What the threads do to a timeout. */
enum tt_how { TT_DO_SCHEDULE, TT_DO_EARLIER, TT_DO_CANCEL, TT_DO_TRY_CANCEL };

/*
 * Scenes: the timeout is armed for much later, or not. The first thread does @first to it, with
 * @first_ns or soon; the second thread does @second to it or to another one, soon. If the first
 * one cancels, the timeout is let go, else it fires; so does the other one, if there is one.
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
	{ "one dropped, one armed", true, true, TT_DO_CANCEL, 0, TT_DO_SCHEDULE },
	{ "dropped", true, false, TT_DO_CANCEL, 0, TT_DO_TRY_CANCEL },
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
	u64			near;		/* how soon is soon, ns */
	unsigned int		round, done;	/* begun; done by the second thread */
	struct rnd_state	rnd;		/* the first one's */
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
	.expire		= tt_quick_expire,
	.release	= tt_quick_release,
};

static void tt_quick_reset(struct tt_quick *quick)
{
	hwt_cancel_sync(&quick->timeout);
	atomic_set(&quick->fired, 0);
	atomic_set(&quick->released, 0);
}

/* What the scene finds. */
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
	/* The engine has slept for long, is about to, or is not. */
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

/* False: both have not done their part, or nothing has come of it. */
static bool tt_check_effect(struct tt_pair *pair)
{
	/* Pairs with tt_second_main(): both have done their part, and nobody does any more. */
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

/* Up to some hundred instructions. */
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
		/* Pairs with tt_second_main(). */
		smp_store_release(&pair->round, pair->round + 1);
		tt_spin(&pair->rnd);
		tt_part(&pair->one, pair->scene->first, pair->scene->first_ns ?: pair->near);
		/* The second one may still be in this scene: there is no other. */
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
		/* Pairs with tt_first_main(): the scene is set. */
		if (smp_load_acquire(&pair->round) != seen) {
			seen++;
			tt_spin(&rnd);
			tt_part(pair->scene->two ? &pair->two : &pair->one, pair->scene->second,
				pair->near);
			/* Pairs with the first one, which sets the next scene then. */
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
	/* Known by their names to torture_nmi.c, as the wheel's threads are. */
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
