// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels with workers: the distribution of callbacks, their order, and waits for them.
 *
 * hwt-test: timeout 180
 */

#include "hwt_ktest.h"

#define SLOW	(KT_SLOW ? 3 : 1)
#define WORKERS	4

static struct hwt_wheel * __init workers_wheel(const char *name, unsigned int workers)
{
	pr_info("# %s, %u workers\n", name, workers);
	return kt_wheel(name, .workers = workers, .ticks_per_wheel = 16, .levels = 4,
			.shards = 1);
}

/* -- Sleepers: callbacks that do not return until the test lets them -------- */

static struct kt_stay sleeper[16];

static void sleeper_cancelled(struct hwt_timeout *timeout)
{
	kt_stay_here(timeout);
	kt_cancelled(timeout);
}

static const struct hwt_timeout_ops in_cancelled = {
	.expire = kt_expire, .cancelled = sleeper_cancelled, .release = kt_release,
};

/* Let @n workers sleep in the callbacks of the first sleepers. */
static bool __init sleepers_begin(struct hwt_wheel *wheel, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		kt_stay_init(&sleeper[i], wheel, &kt_stay_ops);
		hwt_schedule(&sleeper[i].kt.timeout, 0);
	}
	return KT_WAIT(kt_count_inside(sleeper, n) == n);
}

static void __init sleepers_end(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		complete_all(&sleeper[i].out);
	for (i = 0; i < n; i++)
		hwt_shutdown_sync(&sleeper[i].kt.timeout);
}

/* -- Other timeouts of the wheel -------------------------------------------- */

static struct kt other[100];

/* Check that all fire, and none early. */
static bool __init others_fire(struct hwt_wheel *wheel)
{
	unsigned int i, ok = 0;

	for (i = 0; i < ARRAY_SIZE(other); i++) {
		kt_init(&other[i], wheel, &kt_ops);
		kt_schedule(&other[i], i * KT_MS / 2);
	}
	for (i = 0; i < ARRAY_SIZE(other); i++)
		ok += KT_WAIT(kt_expirations(&other[i]) == 1) &&
		      !atomic_read(&other[i].early);
	/* End the holds, because the next call initialises them again. */
	for (i = 0; i < ARRAY_SIZE(other); i++)
		hwt_cancel_sync(&other[i].timeout);
	return ok == ARRAY_SIZE(other);
}

/* -- Order --------------------------------------------------------------------- */

struct item {
	struct hwt_timeout	timeout;
	unsigned int		number;
};

#define PER_TICK	200

static unsigned int *began;	/* numbers, in the order in which they began */
static atomic_t began_n, ended_n;

static void item_expire(struct hwt_timeout *timeout)
{
	/* Count first, so that a delay after this misplaces only this timeout. */
	unsigned int at = atomic_inc_return(&began_n) - 1;

	began[at] = container_of(timeout, struct item, timeout)->number;
	atomic_inc_return_release(&ended_n);
}

/*
 * Count the timeouts that were taken out of the order of ticks. When a callback begins, the workers
 * have taken those that have begun before, and at most one for each other worker.
 */
static unsigned int __init count_unordered(unsigned int n, unsigned int workers)
{
	unsigned int i, odd = 0;

	for (i = 0; i < n; i++)
		odd += began[i] / PER_TICK > (i + max(workers, 1U) - 1) / PER_TICK;
	return odd;
}

/* Timeouts fire in the order of ticks, from all levels. Within a tick there is no order. */
static void __init test_order(unsigned int workers, u32 buckets, u32 levels, unsigned int n)
{
	struct hwt_wheel *wheel = kt_wheel("order", .workers = workers, .levels = levels,
					   .ticks_per_wheel = buckets);
	struct item *item = kt_alloc(n, sizeof(*item));
	unsigned int i;
	u64 deadline;

	began = kt_alloc(n, sizeof(*began));
	atomic_set(&began_n, 0);
	atomic_set(&ended_n, 0);
	deadline = hwt_wheel_now(wheel) + 200 * SLOW * KT_MS;
	kt_stay_on(cpumask_of(raw_smp_processor_id()));
	for (i = 0; i < n; i++) {
		item[i].number = i;
		hwt_timeout_setup(&item[i].timeout, wheel, item_expire);
		hwt_schedule_at(&item[i].timeout, deadline + i / PER_TICK * KT_MS);
	}
	kt_stay_on(NULL);
	KTEST(KT_WAIT(atomic_read_acquire(&ended_n) == n), "%u levels of %u: %u timeouts fire",
	      levels, buckets, n);
	hwt_wheel_destroy(wheel);
	i = count_unordered(n, workers);
	KTEST(i == 0, "%u workers take them in the order of ticks, but for %u", workers, i);
	for (i = 0; i < n; i++)
		item[began[i]].number = n;
	for (i = 0; i < n && item[i].number == n; i++)
		;
	KTEST(i == n && atomic_read(&ended_n) == n, "each fires once");
	vfree(began);
	vfree(item);
}

/* Each time a callback returns, the first waiting timeout begins. */
static void __init test_order_blocked(void)
{
	static const u8 out[] = { 2, 0, 4, 5, 1, 3, 8, 6, 10, 9, 11, 12 };
	struct hwt_wheel *wheel = workers_wheel("order", WORKERS);
	unsigned int i, j, odd = 0;
	u64 deadline;

	for (i = 0; i < ARRAY_SIZE(sleeper); i++)
		kt_stay_init(&sleeper[i], wheel, &kt_stay_ops);
	deadline = hwt_wheel_now(wheel) + 50 * KT_MS;
	kt_stay_on(cpumask_of(raw_smp_processor_id()));
	for (i = 0; i < ARRAY_SIZE(sleeper); i++)
		hwt_schedule_at(&sleeper[i].kt.timeout, deadline + i * KT_MS);
	kt_stay_on(NULL);
	for (i = 0; i <= ARRAY_SIZE(out); i++) {
		/* These, and only these, have been taken by now. */
		for (j = 0; j < WORKERS + i; j++)
			odd += !KT_WAIT(kt_inside(&sleeper[j]) ||
					kt_expirations(&sleeper[j].kt));
		for (; j < ARRAY_SIZE(sleeper); j++)
			odd += kt_inside(&sleeper[j]) || kt_expirations(&sleeper[j].kt);
		if (i < ARRAY_SIZE(out))
			complete_all(&sleeper[out[i]].out);
	}
	KTEST(odd == 0, "timeouts that wait for a worker are taken in the order of ticks");
	sleepers_end(ARRAY_SIZE(sleeper));
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- _sync ---------------------------------------------------------------------- */

static struct {
	struct kt	kt;
	int		neighbour;
	bool		left;		/* the neighbour's callback was not executing */
} self;

static void self_expire(struct hwt_timeout *timeout)
{
	/* Another worker executes the callback of this one. */
	self.neighbour = hwt_cancel_sync(&sleeper[0].kt.timeout);
	self.left = !kt_inside(&sleeper[0]);
	kt_expire(timeout);
}

/* For _sync calls of other tasks see test_blocking() and test_sync.c. */
static void __init test_sync(void)
{
	struct hwt_wheel *wheel = workers_wheel("sync", 2);

	KTEST(sleepers_begin(wheel, 1), "a worker sleeps in a callback");
	kt_setup(&self.kt, wheel, self_expire);
	hwt_schedule(&self.kt.timeout, 0);
	msleep(100);
	KTEST(kt_expirations(&self.kt) == 0, "a callback on the other worker waits for it");
	complete_all(&sleeper[0].out);
	KTEST(KT_WAIT(kt_expirations(&self.kt) == 1) && self.neighbour == 0 && self.left,
	      "cancel_sync returns after it");
	sleepers_end(1);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Stop ------------------------------------------------------------------------ */

static void __init test_stop(void)
{
	struct hwt_wheel *wheel = workers_wheel("stop", 2);
	struct kt_call stopping;
	unsigned int i, ok = 0;

	KTEST(sleepers_begin(wheel, 2), "both workers sleep in a callback");
	for (i = 0; i < ARRAY_SIZE(other); i++) {
		kt_init(&other[i], wheel, &kt_ops);
		hwt_schedule(&other[i].timeout, i % 2 ? KT_HOUR : i * KT_MS / 4);
	}
	msleep(50);
	kt_call_begin(&stopping, kt_do_stop, wheel);
	msleep(100);
	KTEST(!kt_call_done(&stopping) && kt_count_inside(sleeper, 2) == 2, "stop waits for both");
	complete_all(&sleeper[1].out);
	msleep(100);
	KTEST(!kt_call_done(&stopping) && kt_inside(&sleeper[0]), "it still waits for the other");
	complete_all(&sleeper[0].out);
	KTEST(kt_call_end(&stopping) == ARRAY_SIZE(other),
	      "all others are handed back: %ld", stopping.ret);
	for (i = 0; i < ARRAY_SIZE(other); i++)
		ok += kt_expirations(&other[i]) == 0 && kt_releases(&other[i]) == 1 &&
		      atomic_read(&other[i].cancelled) == 1 &&
		      hwt_cancelled(&other[i].timeout) && !hwt_held(&other[i].timeout);
	KTEST(ok == ARRAY_SIZE(other), "->cancelled was called once for each: %u", ok);
	KTEST(kt_releases(&sleeper[0].kt) == 1 && kt_releases(&sleeper[1].kt) == 1,
	      "both sleepers are released");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* While the stop hands back due timeouts, the sleepers end. Their threads must fire none. */
static void stop_let_out(struct hwt_timeout *timeout, void *arg)
{
	unsigned int *held = arg, i;

	for (i = 0; i < *held; i++) {
		complete_all(&sleeper[i].out);
		KT_WAIT(kt_releases(&sleeper[i].kt) == 1);
	}
	/* Time for a thread to fire one. */
	msleep(20);
}

static void __init test_stop_due(unsigned int workers)
{
	struct hwt_wheel *wheel = workers_wheel("stop", workers);
	unsigned int held = max(workers, 1U), i, ok = 0;
	u64 deadline = hwt_wheel_now(wheel) + 20 * KT_MS;
	long ret;

	kt_stay_on(cpumask_of(raw_smp_processor_id()));
	/* Its release is slow, so one pass of the engine serves all timeouts below. */
	kt_init(&other[3], wheel, &kt_slow_ops);
	hwt_schedule_at(&other[3].timeout, deadline - 5 * KT_MS);
	for (i = 0; i < held; i++) {
		kt_stay_init(&sleeper[i], wheel, &kt_stay_ops);
		hwt_schedule_at(&sleeper[i].kt.timeout, deadline);
	}
	for (i = 0; i < 3; i++) {
		kt_init(&other[i], wheel, &kt_ops);
		hwt_schedule_at(&other[i].timeout, deadline + KT_MS);
	}
	kt_stay_on(NULL);
	KTEST(KT_WAIT(kt_count_inside(sleeper, held) == held &&
		      hwt_remaining(&other[2].timeout) == 0),
	      "%u callbacks sleep, and three timeouts are due after them", held);
	ret = hwt_wheel_stop(wheel, stop_let_out, &held);
	for (i = 0; i < 3; i++)
		ok += kt_expirations(&other[i]) == 0 && kt_releases(&other[i]) == 1 &&
		      hwt_cancelled(&other[i].timeout);
	KTEST(ret == 3 && ok == 3,
	      "a stop hands back these three, and none fires: %ld", ret);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Blocking in ->cancelled and ->release ---------------------------------------- */

static void __init test_blocking(const char *what, const struct hwt_timeout_ops *ops)
{
	static struct kt last, plain;
	struct hwt_wheel *wheel = workers_wheel("blocking", WORKERS);
	struct kt_call sync;
	unsigned int i;
	u64 passes;
	bool ok;

	for (i = 0; i < WORKERS - 1; i++) {
		kt_stay_init(&sleeper[i], wheel, ops);
		hwt_schedule(&sleeper[i].kt.timeout, KT_HOUR);
		hwt_cancel(&sleeper[i].kt.timeout);
	}
	KTEST(KT_WAIT(kt_count_inside(sleeper, WORKERS - 1) == WORKERS - 1),
	      "%u workers sleep in %s", WORKERS - 1, what);
	KTEST(others_fire(wheel) && kt_count_inside(sleeper, WORKERS - 1) == WORKERS - 1,
	      "the last worker serves all other timeouts");
	kt_call_begin(&sync, kt_do_sync_stay, &sleeper[1]);
	kt_stay_init(&sleeper[i], wheel, ops);
	hwt_schedule(&sleeper[i].kt.timeout, KT_HOUR);
	hwt_cancel(&sleeper[i].kt.timeout);
	KTEST(KT_WAIT(kt_count_inside(sleeper, WORKERS) == WORKERS),
	      "all workers sleep in %s", what);

	/* The engine ends holds that need no call. */
	kt_init(&plain, wheel, &kt_plain_ops);
	hwt_schedule(&plain.timeout, KT_HOUR);
	hwt_cancel(&plain.timeout);
	KTEST(KT_WAIT(!hwt_held(&plain.timeout)), "the engine ends the hold of another");
	kt_init(&last, wheel, &kt_ops);
	passes = kt_stats(wheel).passes;
	kt_schedule(&last, 20 * KT_MS);
	/* A pass collects it. If it is due by then, no second pass follows. */
	ok = KT_WAIT(kt_stats(wheel).passes > passes);
	passes = kt_stats(wheel).passes;
	KTEST(ok && (hwt_remaining(&last.timeout) == 0 || KT_WAIT(kt_stats(wheel).passes > passes)),
	      "the engine goes on when a timeout comes due");
	KTEST(kt_expirations(&last) == 0 && !kt_call_done(&sync),
	      "it waits for a worker, and a _sync for its sleeper");
	complete_all(&sleeper[1].out);
	KTEST(KT_WAIT(kt_expirations(&last) == 1) && !atomic_read(&last.early) &&
	      kt_count_inside(sleeper, WORKERS) == WORKERS - 1, "it fires when a sleeper ends");
	KTEST(kt_call_end(&sync) == 0 && kt_releases(&sleeper[1].kt) == 1,
	      "the _sync returns");
	hwt_cancel_sync(&last.timeout);
	sleepers_end(WORKERS);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Push-back of a due timeout ----------------------------------------------------- */

/* @longer: the new deadline has passed as well when the worker is free. */
static void __init test_pushed_back(bool longer)
{
	struct hwt_wheel *wheel = workers_wheel("pushed", 1);
	unsigned int i, fired = 0, early = 0, slept = 0;
	u64 wakeups;
	struct kt kt;

	for (i = 0; i < 5; i++) {
		kt_init(&kt, wheel, &kt_ops);
		if (!sleepers_begin(wheel, 1))
			break;
		kt_schedule(&kt, 5 * KT_MS);
		while (hwt_remaining(&kt.timeout))
			usleep_range(500, 1000);
		/* The timeout is on the due list, and the engine sleeps. */
		msleep(50);
		wakeups = kt_stats(wheel).wakeups;
		kt_schedule(&kt, 100 * KT_MS);
		if (longer)
			while (hwt_remaining(&kt.timeout))
				usleep_range(500, 1000);
		slept += kt_stats(wheel).wakeups == wakeups;
		complete_all(&sleeper[0].out);
		fired += KT_WAIT(kt_expirations(&kt) == 1);
		early += atomic_read(&kt.early);
		hwt_cancel_sync(&kt.timeout);
		sleepers_end(1);
	}
	KTEST(fired == 5 && early == 0,
	      "pushed back while due%s: %u of 5 fire, %u early",
	      longer ? ", and due again" : "", fired, early);
	KTEST(slept == 5, "the engine slept meanwhile: %u of 5", slept);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Due while the engine goes to sleep ---------------------------------------------- */

static struct kt ping[2];
static unsigned int pings_left;

/* Makes the other timeout due while the engine is about to sleep. */
static void ping_expire(struct hwt_timeout *timeout)
{
	struct kt *kt = kt_of(timeout);

	if (READ_ONCE(pings_left)) {
		WRITE_ONCE(pings_left, pings_left - 1);
		hwt_schedule_at(&ping[kt == &ping[0]].timeout, 0);
	}
	atomic_inc_return_release(&kt->expired);
}

/* Collects submissions in place of the engine. */
static int collect(void *arg)
{
	struct kt kt;

	kt_init(&kt, arg, &kt_plain_ops);
	while (!kthread_should_stop()) {
		hwt_schedule(&kt.timeout, KT_HOUR);
		hwt_cancel_sync(&kt.timeout);
		cond_resched();
	}
	return 0;
}

static void __init test_ping(unsigned int workers, bool collected)
{
	struct hwt_wheel *wheel = workers_wheel("ping", workers);
	unsigned int n = KT_SLOW ? 3000 : 10000;
	struct task_struct *thread = NULL;
	int before, after;

	kt_setup(&ping[0], wheel, ping_expire);
	kt_setup(&ping[1], wheel, ping_expire);
	WRITE_ONCE(pings_left, n);
	if (collected)
		thread = kt_thread(collect, wheel, 1);
	hwt_schedule_at(&ping[0].timeout, 0);
	/* Wait as long as the number of callbacks increases. */
	after = 0;
	do {
		before = after;
		KT_WAIT((after = kt_expirations(&ping[0]) + kt_expirations(&ping[1])) !=
			before);
	} while (after != before && after <= n);
	KTEST(after == n + 1, "%u callbacks, each scheduled by the previous one%s: %d run",
	      n + 1, collected ? ", collected by another thread" : "", after);
	if (collected)
		kt_thread_stop(thread);
	hwt_wheel_destroy(wheel);
}

/* -- Due while the engine is at work ---------------------------------------------- */

static struct kt effect;

static void cause_expire(struct hwt_timeout *timeout)
{
	hwt_schedule_at(&effect.timeout, 0);
	kt_expire(timeout);
}

/* Pin the thread of that name to a CPU. */
static bool __init pin_thread(const char *name, unsigned int cpu)
{
	struct task_struct *found = kt_task_get(name);
	bool ok;

	if (!found)
		return false;
	ok = !set_cpus_allowed_ptr(found, cpumask_of(cpu));
	put_task_struct(found);
	return ok;
}

/*
 * The engine moves a long bucket, whose first timeout is due and whose others belong to later
 * rounds. Meanwhile, a worker fires the first one, which makes another timeout due.
 */
static void __init test_long_bucket(void)
{
	struct hwt_timeout *far = kt_alloc(50000, sizeof(*far));
	unsigned int i, round, ok = 0;
	struct hwt_wheel *wheel;
	struct kt cause;
	u64 tick;

	for (round = 0; round < 3; round++) {
		wheel = kt_wheel("long", .workers = 1, .ticks_per_wheel = 16, .levels = 1,
				 .shards = 1);
		kt_setup(&cause, wheel, cause_expire);
		kt_init(&effect, wheel, &kt_ops);
		ok += pin_thread("long", 0) && pin_thread("long/0", kt_other_cpu(0));
		tick = kt_wheel_tick(wheel) + 1000 * SLOW;
		kt_stay_on(cpumask_of(raw_smp_processor_id()));
		hwt_schedule_at(&cause.timeout, tick * KT_MS);
		for (i = 0; i < 50000; i++) {
			hwt_timeout_init(&far[i], wheel, &kt_plain_ops);
			hwt_schedule_at(&far[i], (tick + 16 * 1000000) * KT_MS);
		}
		kt_stay_on(NULL);
		ok += KT_WAIT(kt_expirations(&cause) == 1) &&
		      KT_WAIT(kt_expirations(&effect) == 1);
		hwt_wheel_destroy(wheel);
	}
	KTEST(ok == 6, "a timeout comes due while the engine moves a long bucket: %u of 6", ok);
	vfree(far);
}

static void __init selftest(void)
{
	test_order(0, 16, 4, 10000);
	test_order(0, 16, 1, 10000);
	test_order(0, 2, 6, 10000);
	test_order(1, 16, 4, 10000);
	test_order(WORKERS, 16, 4, 10000);
	test_order_blocked();
	test_sync();
	test_stop();
	test_stop_due(0);
	test_stop_due(2);
	test_blocking("->cancelled", &in_cancelled);
	test_blocking("->release", &kt_stay_release_ops);
	test_pushed_back(false);
	test_pushed_back(true);
	test_ping(1, false);
	test_ping(WORKERS, false);
	test_ping(WORKERS, true);
	test_long_bucket();
}

KSTM_MODULE_LOADERS(test_workers);
