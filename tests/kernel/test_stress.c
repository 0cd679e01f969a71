// SPDX-License-Identifier: GPL-2.0-only
/*
 * At random, with a ledger for each timeout: fired at most once for each schedule, never
 * early, never after a cancel that hit and before a new schedule, never twice at a time,
 * each hold released once, nothing left in the end.
 *
 * hwt-test: long
 * hwt-test: timeout 120
 * hwt-test: args seed=1 duration=4
 * hwt-test: args seed=2 duration=4 threads=4 objects=20
 * hwt-test: args seed=3 duration=4 threads=3 objects=2000
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/prandom.h>
#include <linux/vmalloc.h>

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_compat.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "What is random follows from it; 0: from the time");

static unsigned int duration = 5;
module_param(duration, uint, 0444);
MODULE_PARM_DESC(duration, "Seconds");

static unsigned int threads = 2;
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "How many");

static unsigned int objects = 200;
module_param(objects, uint, 0444);
MODULE_PARM_DESC(objects, "Timeouts of each thread");

#define WHEELS	2

/*
 * Who schedules an object: its thread alone, and then it is known exactly when it may
 * fire; or its own callback and an interrupt as well, and then only the sums are.
 */
enum kind { ONE_SHOT, PERIODIC, ANYBODY };

struct object {
	struct hwt_periodic	periodic;
	enum kind		kind;
	/* It must not fire before this. Written by its thread; see set_floor(). */
	u64			floor;
	/* Is no callback of an earlier schedule executing? Its thread's. */
	bool			clean;
	atomic_t		inside;
	atomic_t		armed, holds, hits, expired, cancelled, released, handed;
	atomic_t		early, twice, refused;
};

static struct hwt_wheel *wheel[WHEELS];
static struct object *all;
static bool ending;

static struct object *object_of(struct hwt_timeout *timeout)
{
	return container_of(timeout, struct object, periodic.timeout);
}

static void note_schedule(struct object *object, int ret)
{
	if (ret < 0) {
		atomic_inc(&object->refused);
		return;
	}
	if (!(ret & HWT_WAS_PENDING))
		atomic_inc(&object->armed);
	if (!(ret & HWT_WAS_HELD))
		atomic_inc(&object->holds);
}

static void object_expire(struct hwt_timeout *timeout)
{
	struct object *object = object_of(timeout);
	u64 now = hwt_wheel_now(hwt_timeout_wheel(timeout));
	int n;

	if (atomic_inc_return(&object->inside) != 1)
		atomic_inc(&object->twice);
	if (now < READ_ONCE(object->floor))
		atomic_inc(&object->early);
	n = atomic_inc_return(&object->expired);
	if (object->kind == ANYBODY && !READ_ONCE(ending) && n % 2)
		note_schedule(object, hwt_schedule(timeout, n % 7 * KT_MS / 2));
	if (n % 64 == 0)
		usleep_range(10, 1000);
	atomic_dec(&object->inside);
}

static void object_cancelled(struct hwt_timeout *timeout)
{
	struct object *object = object_of(timeout);

	if (atomic_inc_return(&object->inside) != 1)
		atomic_inc(&object->twice);
	atomic_inc(&object->cancelled);
	atomic_dec(&object->inside);
}

static void object_release(struct hwt_timeout *timeout)
{
	atomic_inc(&object_of(timeout)->released);
}

/* With and without what makes the engine take the long way. */
static const struct hwt_ops object_ops[] = {
	{
		.expire		= object_expire,
		.cancelled	= object_cancelled,
		.release	= object_release,
	}, {
		.expire		= object_expire,
		.release	= object_release,
	},
};

static u64 random_delay(struct rnd_state *rnd)
{
	u32 random = prandom_u32_state(rnd);

	switch (random % 16) {
	case 0:
		return 0;
	case 1:
		return U64_MAX;
	case 2 ... 5:
		return KT_HOUR + random;
	case 6:
		return (random >> 4) * 4;	/* up to a second */
	default:
		return random >> 8;		/* up to 16 ms */
	}
}

/* Others may schedule it at any time: nothing is known. */
static void set_floor(struct object *object, u64 floor)
{
	if (object->kind != ANYBODY)
		WRITE_ONCE(object->floor, floor);
}

/* The thread's own: keeps the ledger. */
static void own_schedule(struct object *object, struct rnd_state *rnd)
{
	struct hwt_timeout *timeout = &object->periodic.timeout;
	u64 delay = random_delay(rnd), was = object->floor, now, deadline;
	u32 how = prandom_u32_state(rnd) % 8;
	bool moves = true;
	int ret;

	now = hwt_wheel_now(hwt_timeout_wheel(timeout));
	deadline = now + delay < now ? U64_MAX : now + delay;
	set_floor(object, min(was, deadline));
	switch (how) {
	case 0:
		ret = hwt_schedule_earlier(timeout, delay);
		moves = false;
		break;
	case 1:
		ret = hwt_schedule_earlier_at(timeout, deadline);
		moves = false;
		break;
	case 2:
		ret = hwt_schedule_pending(timeout, delay);
		break;
	case 3:
		ret = hwt_schedule_slack(timeout, delay, delay);
		break;
	case 4:
		ret = hwt_schedule_at(timeout, deadline);
		break;
	default:
		if (object->kind == PERIODIC)
			ret = hwt_schedule_periodic(&object->periodic, delay,
						    KT_MS / 2 * how,
						    how % 2 ? HWT_FIXED_RATE :
							      HWT_FIXED_DELAY);
		else
			ret = hwt_schedule(timeout, delay);
	}
	if (ret == -ENOENT) {
		set_floor(object, was);
		return;
	}
	note_schedule(object, ret);
	if (ret == 0) {
		/* Nothing of it was left. */
		object->clean = true;
		set_floor(object, deadline);
	} else if (!(ret & HWT_WAS_PENDING)) {
		/* A callback may be executing, and looks at the floor when it likes. */
		object->clean = false;
		set_floor(object, 0);
	} else if (object->clean && moves && object->kind == ONE_SHOT) {
		set_floor(object, deadline);
	}
	/* It fires again and again: there always may be one. */
	if (object->kind == PERIODIC)
		object->clean = false;
}

static void own_cancel(struct object *object, u32 how)
{
	struct hwt_timeout *timeout = &object->periodic.timeout;
	int ret;

	switch (how % 4) {
	case 0:
		ret = hwt_cancel_sync(timeout);
		if (ret < 0)
			atomic_inc(&object->refused);
		atomic_add(ret == 1, &object->hits);
		/* No callback is executing, and nothing is pending. */
		object->clean = true;
		set_floor(object, U64_MAX);
		break;
	case 1:
		ret = hwt_try_cancel(timeout);
		if (!(ret & HWT_WAS_PENDING))
			break;
		atomic_inc(&object->hits);
		if (ret == HWT_WAS_PENDING && object->clean)
			set_floor(object, U64_MAX);
		break;
	default:
		if (!hwt_cancel(timeout))
			break;
		atomic_inc(&object->hits);
		if (object->clean)
			set_floor(object, U64_MAX);
	}
}

static void act(struct object *mine, struct rnd_state *rnd)
{
	u32 random = prandom_u32_state(rnd);
	struct object *object = &mine[random % objects];

	switch (random >> 28) {
	case 0 ... 8:
		own_schedule(object, rnd);
		break;
	case 9 ... 12:
		own_cancel(object, random >> 16);
		break;
	case 13:
		/* A stranger's may be cancelled too. */
		object = &all[(random >> 8) % (objects * threads)];
		atomic_add(hwt_cancel(&object->periodic.timeout), &object->hits);
		break;
	default:
		hwt_remaining(&object->periodic.timeout);
		hwt_wheel_pending(hwt_timeout_wheel(&object->periodic.timeout));
	}
}

static int worker(void *arg)
{
	unsigned int n = (unsigned long)arg;
	struct rnd_state rnd;
	u32 random;

	prandom_seed_state(&rnd, seed + n * 1000);
	while (!kthread_should_stop()) {
		random = prandom_u32_state(&rnd);
		act(&all[n * objects], &rnd);
		if (random % 64 == 0)
			cond_resched();
		else if (random % 1024 == 1)
			usleep_range(1, 20000);
	}
	return 0;
}

/* -- From a hard interrupt ----------------------------------------------- */

static struct hrtimer interrupt;
static struct rnd_state interrupt_rnd;

static enum hrtimer_restart interrupt_fn(struct hrtimer *timer)
{
	u32 random = prandom_u32_state(&interrupt_rnd);
	struct object *object = &all[random % (objects * threads)];

	if (READ_ONCE(ending))
		return HRTIMER_NORESTART;
	if (object->kind == ANYBODY && random >> 30)
		note_schedule(object, hwt_schedule(&object->periodic.timeout,
						   random >> 12));
	else
		atomic_add(hwt_cancel(&object->periodic.timeout), &object->hits);
	hrtimer_forward_now(timer, ns_to_ktime(700 * NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

/* -- The sums ------------------------------------------------------------ */

static struct {
	u64	armed, hits, expired, handed, holds, released;
	unsigned int early, twice, refused, unbalanced, unreleased, held, odd_cancelled;
} sum;

static void __init add_up(const struct object *object)
{
	int armed = atomic_read(&object->armed), hits = atomic_read(&object->hits);
	int expired = atomic_read(&object->expired);
	int handed = atomic_read(&object->handed);
	int holds = atomic_read(&object->holds);
	int released = atomic_read(&object->released);
	int cancelled = atomic_read(&object->cancelled), cancels = hits;
	bool odd;

	sum.armed += armed;
	sum.hits += hits;
	sum.expired += expired;
	sum.handed += handed;
	sum.holds += holds;
	sum.released += released;
	sum.early += atomic_read(&object->early);
	sum.twice += atomic_read(&object->twice);
	sum.refused += atomic_read(&object->refused);
	sum.unreleased += holds != released;
	sum.held += hwt_held(&object->periodic.timeout);
	/* Of what others arm meanwhile, one _sync may cancel more than once. */
	if (object->kind == ANYBODY)
		cancels = armed - expired - handed;
	sum.odd_cancelled += cancelled > cancels;
	if (object->kind == ONE_SHOT)
		odd = armed != expired + hits + handed;
	else if (object->kind == ANYBODY)
		odd = cancels < hits;
	else
		odd = armed < hits + handed;
	sum.unbalanced += odd;
	if (odd || holds != released || cancelled > cancels)
		pr_info("# object of kind %d: armed %d, hits %d, cancelled %d, expired %d, handed back %d, holds %d, released %d\n",
			object->kind, armed, hits, cancelled, expired, handed, holds, released);
}

static void hand_back(struct hwt_timeout *timeout, void *arg)
{
	atomic_inc(&object_of(timeout)->handed);
}

static bool __init quiet(void)
{
	unsigned int i;

	for (i = 0; i < objects * threads; i++)
		if (hwt_pending(&all[i].periodic.timeout) &&
		    hwt_remaining(&all[i].periodic.timeout) < KT_HOUR / 2)
			return false;
	return true;
}

static void __init make(struct rnd_state *rnd)
{
	struct hwt_wheel_params params = { .name = "stress" };
	struct object *object;
	unsigned int i;

	for (i = 0; i < WHEELS; i++) {
		params.levels = 1 + prandom_u32_state(rnd) % 6;
		params.ticks_per_wheel = 2U << prandom_u32_state(rnd) % 10;
		params.clock = prandom_u32_state(rnd) % 2;
		wheel[i] = hwt_wheel_create(&params);
		pr_info("# wheel %u: %u levels of %u buckets, clock %d\n", i,
			params.levels, params.ticks_per_wheel, params.clock);
	}
	for (i = 0; i < objects * threads; i++) {
		object = &all[i];
		object->kind = i % 8 == 0 ? PERIODIC : i % 8 == 1 ? ANYBODY : ONE_SHOT;
		set_floor(object, U64_MAX);
		object->clean = true;
		hwt_periodic_init(&object->periodic, wheel[i % WHEELS],
				  &object_ops[i / 2 % 2]);
	}
}

static void __init finish(bool stop)
{
	struct hwt_wheel_stats stats;
	u64 scheduled = 0, pending = 0, handed = 0, expired = 0;
	unsigned int i;

	/* What repeats has no end, and what is far away is far away. */
	for (i = 0; i < objects * threads; i++)
		if (all[i].kind == PERIODIC)
			atomic_add(hwt_cancel_sync(&all[i].periodic.timeout),
				   &all[i].hits);
	KTEST(KT_WAIT(quiet()), "what is due fires");
	for (i = 0; i < objects * threads && !stop; i++)
		atomic_add(hwt_shutdown_sync(&all[i].periodic.timeout), &all[i].hits);
	for (i = 0; i < WHEELS; i++) {
		handed += hwt_wheel_stop(wheel[i], hand_back, NULL);
		hwt_wheel_get_stats(wheel[i], &stats);
		scheduled += stats.scheduled;
		expired += stats.expired;
		pending += stats.pending;
	}
	memset(&sum, 0, sizeof(sum));
	for (i = 0; i < objects * threads; i++)
		add_up(&all[i]);
	for (i = 0; i < WHEELS; i++)
		hwt_wheel_destroy(wheel[i]);
	pr_info("# %llu armed, %llu expired, %llu cancelled, %llu handed back, %llu holds\n",
		sum.armed, sum.expired, sum.hits, sum.handed, sum.holds);
	KTEST(sum.early == 0, "none before its time, nor after a cancel: %u", sum.early);
	KTEST(sum.twice == 0, "no two callbacks of one at a time: %u", sum.twice);
	KTEST(sum.unbalanced == 0, "each schedule has one end: %u have not",
	      sum.unbalanced);
	KTEST(sum.unreleased == 0, "each hold has one release: %u have not",
	      sum.unreleased);
	KTEST(sum.odd_cancelled == 0, "->cancelled at most once for each cancel: %u",
	      sum.odd_cancelled);
	KTEST(sum.held == 0 && pending == 0, "nothing is left");
	KTEST(sum.refused == 0, "no call failed: %u", sum.refused);
	KTEST(scheduled == sum.armed && expired == sum.expired && handed == sum.handed &&
	      (!stop || handed), "the wheels have counted the same");
	KTEST(sum.expired > 100 && sum.hits > 100, "and there was something to count");
}

static void __init test(struct rnd_state *rnd, bool stop)
{
	struct task_struct **thread = kcalloc(threads, sizeof(*thread), GFP_KERNEL);
	unsigned int i;

	ending = false;
	all = vzalloc(array3_size(objects, threads, sizeof(*all)));
	KTEST(thread && all, "memory");
	if (!thread || !all)
		goto out;
	make(rnd);
	prandom_seed_state(&interrupt_rnd, seed);
	hrtimer_setup(&interrupt, interrupt_fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	hrtimer_start(&interrupt, ns_to_ktime(KT_MS), HRTIMER_MODE_REL_HARD);
	for (i = 0; i < threads; i++)
		thread[i] = kt_thread(worker, (void *)(unsigned long)i, i);
	ssleep(duration);
	WRITE_ONCE(ending, true);
	for (i = 0; i < threads; i++)
		kt_thread_stop(thread[i]);
	hrtimer_cancel(&interrupt);
	finish(stop);
out:
	vfree(all);
	kfree(thread);
}

static void __init selftest(void)
{
	struct rnd_state rnd;

	if (!seed)
		seed = ktime_get_ns();
	if (kt_quick())
		duration = min(duration, 1U);
	pr_info("# seed=%u\n", seed);
	prandom_seed_state(&rnd, seed);
	test(&rnd, false);
	test(&rnd, true);
}

KSTM_MODULE_LOADERS(test_stress);
MODULE_DESCRIPTION("hwt: at random, with a ledger");
MODULE_LICENSE("GPL");
