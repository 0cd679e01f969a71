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
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

/* What the first and the second one do, and what has to come of it. */
enum tt_scene {
	TT_FAR_NEAR,	/* arm it for much later, and for soon: it fires */
	TT_PULL_PULL,	/* pull it forward a little, and much: it fires */
	TT_TWO,		/* arm one for soon, and another one: both fire */
	TT_DROP,	/* cancel one, and arm another one for soon: that fires, this is let go */
	TT_LET_GO,	/* cancel it, both: it is let go, with nothing else to wake anybody */
	TT_SCENES
};

static const char * const scene_name[] = {
	"far and near", "a little and much", "two", "one dropped, one armed",
	"dropped",
};

struct tt_quick {
	struct hwt_timeout	timeout;
	atomic_t		fired, released;
};

/**
 * struct tt_pair - two threads and a wheel
 * @task:  the threads
 * @wheel: theirs
 * @one:   timeout
 * @two:   the other
 * @anchor: pending or not, and never fires
 * @scene: of this round
 * @near:  how soon is soon, ns
 * @round: has begun
 * @done:  the second one has done its part of this round
 * @total: rounds in all
 * @rnd:   the first one's
 */
struct tt_pair {
	struct task_struct	*task[2];
	struct hwt_wheel	*wheel;
	struct tt_quick		one, two, anchor;
	enum tt_scene		scene;
	u64			near;
	unsigned int		round, done;
	u64			total;
	struct rnd_state	rnd;
};

static struct tt_pair *tt_pair;
/* Rounds of those that are gone. */
static u64 tt_shaken;

static void tt_quick_expire(struct hwt_timeout *timeout)
{
	atomic_inc(&container_of(timeout, struct tt_quick, timeout)->fired);
}

static void tt_quick_release(struct hwt_timeout *timeout)
{
	atomic_inc(&container_of(timeout, struct tt_quick, timeout)->released);
}

static const struct hwt_ops tt_quick_ops = {
	.expire		= tt_quick_expire,
	.release	= tt_quick_release,
};

static void tt_quick_reset(struct tt_quick *quick)
{
	hwt_cancel_sync(&quick->timeout);
	atomic_set(&quick->fired, 0);
	atomic_set(&quick->released, 0);
}

/* -- A round ----------------------------------------------------------------------- */

/* What the scene finds. */
static void tt_stage(struct tt_pair *pair)
{
	struct rnd_state *rnd = &pair->rnd;

	tt_quick_reset(&pair->one);
	tt_quick_reset(&pair->two);
	pair->scene = tt_pick(rnd, TT_SCENES);
	pair->near = tt_one_in(rnd, 2) ? 0 : tt_pick(rnd, 2 * KT_MS);
	if (pair->scene >= TT_DROP || pair->scene == TT_PULL_PULL)
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

static void tt_first_part(struct tt_pair *pair)
{
	switch (pair->scene) {
	case TT_FAR_NEAR:
		hwt_schedule_earlier(&pair->one.timeout, KT_HOUR);
		break;
	case TT_PULL_PULL:
		hwt_schedule_earlier(&pair->one.timeout, KT_HOUR / 2);
		break;
	case TT_TWO:
		hwt_schedule(&pair->one.timeout, pair->near);
		break;
	default:
		hwt_cancel(&pair->one.timeout);
	}
}

static void tt_second_part(struct tt_pair *pair)
{
	switch (pair->scene) {
	case TT_FAR_NEAR:
	case TT_PULL_PULL:
		hwt_schedule_earlier(&pair->one.timeout, pair->near);
		break;
	case TT_LET_GO:
		hwt_try_cancel(&pair->one.timeout);
		break;
	default:
		hwt_schedule(&pair->two.timeout, pair->near);
	}
}

static bool tt_effect(struct tt_pair *pair)
{
	switch (pair->scene) {
	case TT_FAR_NEAR:
	case TT_PULL_PULL:
		return atomic_read(&pair->one.fired);
	case TT_TWO:
		return atomic_read(&pair->one.fired) && atomic_read(&pair->two.fired);
	case TT_LET_GO:
		return atomic_read(&pair->one.released);
	default:
		return atomic_read(&pair->one.released) && atomic_read(&pair->two.fired);
	}
}

static void tt_quick_dump(struct tt_quick *quick, const char *which)
{
	pr_err("  %s: fired %d, released %d, word %016llx, remaining %llu\n", which,
	       atomic_read(&quick->fired), atomic_read(&quick->released),
	       hwt_timeout_word(&quick->timeout), hwt_remaining(&quick->timeout));
}

/* False: both have not done their part, or nothing has come of it. */
static bool tt_check_effect(struct tt_pair *pair)
{
	u64 end = ktime_get_ns() + tt_patience * KT_SECOND;

	/* Pairs with tt_second_main(): both have done their part, and nobody does any more. */
	while (!tt_effect(pair) || smp_load_acquire(&pair->done) != pair->round) {
		if (ktime_get_ns() > end) {
			tt_fail(TT_LOST, NULL, "asleep: %s, soon is %llu ns, round %u, done %u",
				scene_name[pair->scene], pair->near, pair->round,
				READ_ONCE(pair->done));
			tt_quick_dump(&pair->one, "one");
			tt_quick_dump(&pair->two, "two");
			return false;
		}
		usleep_range(50, 200);
	}
	if (pair->scene >= TT_DROP && atomic_read(&pair->one.fired))
		tt_fail(TT_DEAD, NULL, "asleep: %s: it has fired", scene_name[pair->scene]);
	return true;
}

/* -- The threads ------------------------------------------------------------------- */

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
		if (pair->total % 1024 == 0)
			tt_stay_on(pair - tt_pair);
		tt_stage(pair);
		/* Pairs with tt_second_main(). */
		smp_store_release(&pair->round, pair->round + 1);
		tt_spin(&pair->rnd);
		tt_first_part(pair);
		/* The second one may still be in this scene: there is no other. */
		if (!tt_check_effect(pair))
			break;
		WRITE_ONCE(pair->total, pair->total + 1);
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
			tt_second_part(pair);
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

/* -- The whole ------------------------------------------------------------------------ */

u64 tt_shakes_done(void)
{
	u64 sum = tt_shaken;
	unsigned int n;

	for (n = 0; tt_pair && n < tt_pairs; n++)
		sum += READ_ONCE(tt_pair[n].total);
	return sum;
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
		if (!IS_ERR_OR_NULL(pair->task[0]))
			kthread_stop(pair->task[0]);
		if (!IS_ERR_OR_NULL(pair->task[1]))
			kthread_stop(pair->task[1]);
		if (!IS_ERR_OR_NULL(pair->wheel) && hwt_wheel_destroy(pair->wheel))
			tt_fail(TT_ANSWER, NULL, "a wheel that was asleep is not destroyed");
	}
	tt_shaken = tt_shakes_done();
	kfree(tt_pair);
	tt_pair = NULL;
}
