// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels on CLOCK_REALTIME: dates, and the effects of setting the clock.
 *
 * The clock is set by do_settimeofday64(), by seconds and by years, both ways, so that the test
 * need not wait for a date. Each thread of the wheel may decide to call back just before the clock
 * is set back, which looks like firing early. So as many early calls as there are threads are
 * allowed where a timeout is due at that instant.
 *
 * hwt-test: timeout 180
 */
#include <linux/ktime.h>

#include "hwt_ktest.h"

#define MINUTE	(60 * KT_SECOND)
#define DAY	(24 * KT_HOUR)
#define YEAR	(365 * DAY)

/* The offset of the wall clock from CLOCK_MONOTONIC before the test. */
static s64 home;
static unsigned int refused;

static s64 wall_offset(void)
{
	return ktime_to_ns(ktime_mono_to_real(0));
}

/* Set the wall clock @ahead of the time that it would have without the test. */
static void travel(s64 ahead)
{
	struct timespec64 ts = ns_to_timespec64(ktime_get_ns() + home + ahead);

	refused += !!do_settimeofday64(&ts);
}

static const struct kind {
	const char	*name;
	u32		levels;
	u32		flags;
	unsigned int	workers;
} kinds[] = {
	{ "plain" },
	{ "workers", .workers = 2 },
	{ "coarse", .flags = HWT_COARSE_CLOCK },
	{ "one level", .levels = 1 },
};

/* A sub-test, with the name of the kind of wheel. */
#define POINT(cond, fmt, ...) KTEST(cond, "%s: " fmt, kind->name, ##__VA_ARGS__)

/* The number of threads that may be about to call back. */
static int __init runners(const struct kind *kind)
{
	return max(kind->workers, 1U);
}

static atomic_t told;
static atomic64_t told_ns;
static s64 told_since;

static void tell(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	/* Give a timeout that does not wait for this call time to fire. */
	usleep_range(2000, 3000);
	atomic_inc_return_release(&told);
	atomic64_add(jump_ns, &told_ns);
}

static struct hwt_wheel *__init make_telling(const struct kind *kind, u32 buckets,
					     hwt_clock_set_fn clock_set)
{
	atomic_set(&told, 0);
	atomic64_set(&told_ns, 0);
	told_since = wall_offset();
	return kt_wheel("realtime", .ticks_per_wheel = buckets, .levels = kind->levels,
			.clock = HWT_CLOCK_REALTIME, .flags = kind->flags,
			.workers = kind->workers, .clock_set = clock_set, .shards = 1);
}

static struct hwt_wheel *__init make(const struct kind *kind, const char *what)
{
	pr_info("# %s, %s\n", kind->name, what);
	return make_telling(kind, 0, tell);
}

/* Is the sum of the reported jumps exact to the nanosecond? */
static bool __init told_all(void)
{
	return atomic64_read(&told_ns) == wall_offset() - told_since;
}

static void __init unmake(struct hwt_wheel *wheel, const struct kind *kind)
{
	u64 sets;

	travel(0);
	POINT(KT_WAIT(told_all()), "clock_set was called for each jump, with its length");
	/* Jumps that cancel out may have been counted, and not reported yet. */
	POINT(KT_WAIT((sets = kt_stats(wheel).clock_sets) == atomic_read(&told)) && sets,
	      "the wheel has counted %llu jumps, too", sets);
	POINT(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* @place: order among all firings; @told: calls of clock_set before the firing */
struct item {
	struct kt	kt;
	int		place;
	int		told;
};

static struct item item[500];
static atomic_t places;

/* Slow callbacks wait until the gate opens. */
static struct completion gate;
static atomic_t inside;

static void item_note(struct hwt_timeout *timeout)
{
	struct item *it = container_of(kt_note_expired(timeout), struct item, kt);

	it->told = atomic_read_acquire(&told);
	it->place = atomic_inc_return(&places);
}

static void item_expire(struct hwt_timeout *timeout)
{
	item_note(timeout);
	atomic_inc_return_release(&kt_of(timeout)->expired);
}

static void slow_expire(struct hwt_timeout *timeout)
{
	item_note(timeout);
	atomic_inc(&inside);
	wait_for_completion_timeout(&gate, KT_PATIENCE * HZ);
	atomic_inc_return_release(&kt_of(timeout)->expired);
}

static const struct hwt_timeout_ops item_ops = { .expire = item_expire, .release = kt_release };

static const struct hwt_timeout_ops slow_ops = { .expire = slow_expire, .release = kt_release };

static void __init shut_gate(void)
{
	reinit_completion(&gate);
	atomic_set(&inside, 0);
}

static int __init arm(struct item *it, struct hwt_wheel *wheel,
		      const struct hwt_timeout_ops *ops, u64 date)
{
	memset(it, 0, sizeof(*it));
	kt_init(&it->kt, wheel, ops);
	it->kt.earliest = date;
	return hwt_schedule_at(&it->kt.timeout, date);
}

static int __init fired(unsigned int n)
{
	int sum = 0;

	while (n--)
		sum += kt_expirations(&item[n].kt);
	return sum;
}

static int __init early(unsigned int n)
{
	int sum = 0;

	while (n--)
		sum += atomic_read(&item[n].kt.early);
	return sum;
}

/* Cancel all that are pending, and return their number. */
static int __init cancel(unsigned int n)
{
	int sum = 0;

	while (n--)
		sum += hwt_cancel_sync(&item[n].kt.timeout);
	return sum;
}

/* After a flush, check that each due timeout has fired once, and no timeout twice. */
static bool __init settled(struct hwt_wheel *wheel, unsigned int n)
{
	u64 now = hwt_wheel_now(wheel);
	unsigned int i, odd = 0;
	int times;

	if (hwt_wheel_flush(wheel))
		return false;
	for (i = 0; i < n; i++) {
		times = kt_expirations(&item[i].kt);
		if (times > 1 || (!times && item[i].kt.earliest + KT_MS <= now)) {
			pr_info("# timeout %u fired %d times, its date was %lld ms ago\n",
				i, times, div_s64(now - item[i].kt.earliest, NSEC_PER_MSEC));
			odd++;
		}
	}
	return !odd;
}

/* For dates that come without a set of the clock, see test_back() and test_params.c. */
static void __init test_delays(const struct kind *kind)
{
	struct hwt_wheel *wheel = make(kind, "delays");
	u64 late = kind->flags ? 10 * jiffies_to_nsecs(1) : 0;

	kt_init(&item[0].kt, wheel, &item_ops);
	item[0].kt.earliest = hwt_wheel_now(wheel) + KT_HOUR - late;
	hwt_schedule(&item[0].kt.timeout, KT_HOUR);
	travel(2 * KT_HOUR);
	POINT(KT_WAIT(fired(1) == 1) && early(1) == 0,
	      "a delay becomes a date: it fires when the clock is set forward");
	unmake(wheel, kind);
}

#define PASSED	40
#define AHEAD	8

static void __init test_forward(const struct kind *kind, u64 jump, const char *what)
{
	struct hwt_wheel *wheel = make(kind, what);
	u64 base = hwt_wheel_now(wheel);
	unsigned int i, n, odd = 0, untold = 0;

	/* Dates from 70 % of the jump on, which do not come by themselves. Not armed in order. */
	for (i = 0; i < PASSED; i++) {
		n = i * 17 % PASSED;
		arm(&item[n], wheel, &item_ops, base + div_s64(jump, 140) * (98 + n));
	}
	for (i = 0; i < AHEAD; i++)
		arm(&item[PASSED + i], wheel, &item_ops, base + jump + KT_HOUR + i * jump);
	travel(jump);
	POINT(KT_WAIT(fired(PASSED) == PASSED), "%s forward: all dates passed over fire", what);
	POINT(settled(wheel, PASSED + AHEAD) && fired(PASSED + AHEAD) == PASSED &&
	      early(PASSED + AHEAD) == 0, "no other timeout fires, and none twice");
	for (i = 0; i < PASSED; i++) {
		odd += i && item[i - 1].place >= item[i].place;
		untold += item[i].told == 0;
	}
	if (!kind->workers)
		POINT(odd == 0, "firings out of the order of their dates: %u", odd);
	POINT(untold == 0, "firings before clock_set was called: %u", untold);
	travel(0);
	POINT(settled(wheel, PASSED + AHEAD) && fired(PASSED + AHEAD) == PASSED,
	      "no timeout fires again when the clock is set back");
	POINT(cancel(PASSED + AHEAD) == AHEAD && hwt_wheel_pending(wheel) == 0,
	      "all others are still pending");
	unmake(wheel, kind);
}

/* Timeouts on each level, and in later rounds. */
static const u64 spans[] = {
	120 * KT_MS, 200 * KT_MS, 2 * KT_SECOND, 30 * KT_SECOND, 3 * MINUTE, KT_HOUR,
	DAY, 40 * DAY, YEAR, 20 * YEAR,
};

/* Dates between the spans. */
static const u64 stops[] = {
	MINUTE, 20 * MINUTE, 5 * KT_HOUR, 3 * DAY, 60 * DAY, 2 * YEAR, 21 * YEAR,
};

#define HELD	(3 * ARRAY_SIZE(spans))

static void __init test_back(const struct kind *kind, u64 jump, const char *what)
{
	struct hwt_wheel *wheel = make(kind, what);
	unsigned int i, odd = 0;
	u64 base;

	/* A timeout that fires before the set-back. */
	arm(&item[HELD + 2], wheel, &item_ops, hwt_wheel_now(wheel) - KT_MS);
	POINT(KT_WAIT(kt_expirations(&item[HELD + 2].kt) == 1), "a timeout fires before");
	base = hwt_wheel_now(wheel);
	for (i = 0; i < HELD; i++)
		arm(&item[HELD - 1 - i], wheel, &item_ops,
		    base + spans[(HELD - 1 - i) / 3] + i % 3 * 5 * KT_MS);
	travel(-jump);
	/* Timeouts that followed the old time would fire now. */
	msleep(300);
	POINT(settled(wheel, HELD), "%s back: no timeout fires early or twice", what);

	/* Dates between the new time and the old time. */
	arm(&item[HELD], wheel, &item_ops, hwt_wheel_now(wheel) + 50 * KT_MS);
	arm(&item[HELD + 1], wheel, &item_ops, base - jump / 4 * 3);
	POINT(KT_WAIT(kt_expirations(&item[HELD].kt) == 1), "a new timeout fires at its date");
	travel(-(jump / 2));
	POINT(settled(wheel, HELD + 3) && kt_expirations(&item[HELD + 1].kt) == 1,
	      "half way forward, the next one fires");
	travel(0);
	POINT(settled(wheel, HELD + 3) && kt_expirations(&item[0].kt) == 1,
	      "back at the first time, the due timeouts fire");
	for (i = 0; i < ARRAY_SIZE(stops); i++) {
		travel(stops[i]);
		odd += !settled(wheel, HELD + 3);
		travel(-jump);
		odd += !settled(wheel, HELD + 3);
	}
	POINT(odd == 0, "forward and back: each fires at its date");
	POINT(fired(HELD + 3) == HELD + 3 && hwt_wheel_pending(wheel) == 0,
	      "none is lost, none fires twice");
	POINT(early(HELD + 3) <= runners(kind), "at most one early a thread: %d", early(HELD + 3));
	unmake(wheel, kind);
}

#define MANY	ARRAY_SIZE(item)

static void __init test_due(const struct kind *kind)
{
	struct hwt_wheel *wheel = make(kind, "many due");
	u64 date = kt_tick(hwt_wheel_now(wheel)) + 200 * KT_MS;
	struct kt_call flush;
	unsigned int i;

	shut_gate();
	for (i = 0; i < MANY; i++)
		arm(&item[i], wheel, &slow_ops, date);
	POINT(KT_WAIT(atomic_read(&inside) == runners(kind)),
	      "the first callbacks are executing");
	kt_call_begin(&flush, kt_do_flush, wheel);
	msleep(50);
	travel(-KT_HOUR);
	msleep(50);
	POINT(!kt_call_done(&flush), "a flush waits for callbacks that have begun");
	complete_all(&gate);
	POINT(kt_call_end(&flush) == 0 && fired(MANY) == runners(kind),
	      "it does not wait for dates that are in the future again");
	POINT(settled(wheel, MANY) && fired(MANY) == runners(kind) && early(MANY) == 0,
	      "set back meanwhile: only these %d have fired", runners(kind));
	POINT(hwt_wheel_pending(wheel) == MANY - runners(kind), "all others are pending");
	travel(0);
	POINT(settled(wheel, MANY) && fired(MANY) == MANY && early(MANY) == 0,
	      "they fire when their date comes again");
	unmake(wheel, kind);
}

static struct kt beat[2];

/* After a flush, has each periodic timeout fired @n times? */
static bool __init beats(struct hwt_wheel *wheel, int n)
{
	return hwt_wheel_flush(wheel) == 0 && kt_expirations(&beat[0]) == n &&
	       kt_expirations(&beat[1]) == n;
}

static void __init test_periodic(const struct kind *kind, u64 jump, const char *what)
{
	struct hwt_wheel *wheel = make(kind, what);
	u64 base = hwt_wheel_now(wheel), period = div_s64(jump, 10);
	u64 first = base + period / 2, next;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		kt_init_periodic(&beat[i], wheel, &kt_plain_ops);
		hwt_schedule_periodic_at(&beat[i].periodic, first, period,
					 i ? HWT_MODE_FIXED_DELAY : HWT_MODE_FIXED_RATE);
	}
	travel(jump);
	POINT(beats(wheel, 1), "%s forward: periodic timeouts fire once", what);
	next = hwt_deadline(&beat[1].timeout);
	POINT(hwt_overruns(&beat[0].periodic) == 9 && kt_stats(wheel).overruns == 9 &&
	      hwt_deadline(&beat[0].timeout) == kt_tick(first + jump),
	      "a fixed rate has missed 9 periods, and keeps its phase");
	POINT(hwt_overruns(&beat[1].periodic) == 0 && next >= base + jump + period &&
	      next < base + jump + period + period / 4, "a fixed delay counts from now");
	travel(0);
	POINT(beats(wheel, 1), "set back: none fires again");
	travel(jump / 2);
	POINT(beats(wheel, 1) && hwt_deadline(&beat[1].timeout) == next, "half way: none fires");
	travel(jump + period + period / 4);
	POINT(beats(wheel, 2) && hwt_overruns(&beat[0].periodic) == 0, "a period later both fire");
	POINT(hwt_cancel_sync(&beat[0].timeout) == 1 && hwt_cancel_sync(&beat[1].timeout) == 1,
	      "cancel_sync returns 1");
	unmake(wheel, kind);
}

static void __init test_reclaim(const struct kind *kind)
{
	static const unsigned int wait_ms[] = { 0, 2, 10, 30, 60, 90, 110 };
	struct hwt_wheel *wheel = make(kind, "cancelled");
	unsigned int i, kept = 0;

	/* The engine sleeps for this deadline if it forgets the cancelled timeouts. */
	arm(&item[1], wheel, &item_ops, hwt_wheel_now(wheel) + YEAR);
	for (i = 0; i < ARRAY_SIZE(wait_ms); i++) {
		arm(&item[0], wheel, &item_ops, hwt_wheel_now(wheel) + KT_HOUR);
		usleep_range(1000, 2000);
		hwt_cancel(&item[0].kt.timeout);
		msleep(wait_ms[i]);
		travel(i % 2 ? -KT_HOUR : -10 * YEAR);
		kept += !KT_WAIT(kt_releases(&item[0].kt) == 1);
		travel(0);
	}
	POINT(kept == 0 && fired(2) == 0, "cancelled, and the clock set back: released soon");
	POINT(hwt_cancel_sync(&item[1].kt.timeout) == 1, "the timeout of a year is still pending");
	unmake(wheel, kind);
}

static long told_stop, told_destroy, told_flush, told_schedule;
static s64 told_jump;

static void curious(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	told_jump = jump_ns;
	told_stop = hwt_wheel_stop(wheel, NULL, NULL);
	told_destroy = hwt_wheel_destroy(wheel);
	told_flush = hwt_wheel_flush(wheel);
	told_schedule = hwt_schedule(&item[2].kt.timeout, 0);
	atomic_inc(&inside);
	wait_for_completion_timeout(&gate, KT_PATIENCE * HZ);
	atomic_inc_return_release(&told);
}

/* Timeouts that are passed over do not fire before clock_set returns, not even by a flush. */
static void __init test_told(const struct kind *kind)
{
	struct hwt_wheel *wheel = make_telling(kind, 0, curious);
	s64 before = wall_offset();
	struct kt_call flush;

	kt_init(&item[2].kt, wheel, &item_ops);
	complete_all(&gate);
	travel(10 * YEAR);
	POINT(KT_WAIT(atomic_read_acquire(&told) == 1) && told_jump == wall_offset() - before,
	      "clock_set is called on an unused wheel");
	POINT(told_stop == -EDEADLK && told_destroy == -EDEADLK && told_flush == -EDEADLK,
	      "stop, destroy and flush in clock_set return -EDEADLK: %ld, %ld, %ld",
	      told_stop, told_destroy, told_flush);
	POINT(told_schedule == 0 && KT_WAIT(kt_releases(&item[2].kt) == 1),
	      "a timeout scheduled in clock_set fires");
	before = wall_offset();
	travel(-KT_SECOND);
	POINT(KT_WAIT(atomic_read_acquire(&told) == 2) &&
	      told_jump == wall_offset() - before && told_jump < 0, "it is called for a step back");
	KT_WAIT(kt_releases(&item[2].kt) == 2);
	/* No timeout was pending when the clock was set. */
	POINT(kt_stats(wheel).clock_sets == 2, "the wheel has counted both");

	shut_gate();
	arm(&item[0], wheel, &item_ops, hwt_wheel_now(wheel) + KT_HOUR);
	travel(2 * KT_HOUR);
	POINT(KT_WAIT(atomic_read(&inside) == 1), "a slow clock_set is executing");
	arm(&item[1], wheel, &item_ops, hwt_wheel_now(wheel) - KT_HOUR / 2);
	kt_call_begin(&flush, kt_do_flush, wheel);
	msleep(100);
	POINT(fired(2) == 0, "meanwhile no timeout fires, despite a flush");
	complete_all(&gate);
	POINT(kt_call_end(&flush) == 0 && kt_expirations(&item[0].kt) == 1, "the first fires");
	POINT(KT_WAIT(fired(2) == 2) && item[0].told == 3 && item[1].told == 3, "both after that");
	travel(0);
	KT_WAIT(atomic_read(&told) == 4);
	POINT(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* Timeouts that are late because of a set of the clock do not count as behind. */
static void __init test_behind(const struct kind *kind)
{
	struct hwt_wheel *wheel = make_telling(kind, 65536, NULL);
	struct hwt_wheel_stats stats;
	u64 base = hwt_wheel_now(wheel);
	unsigned int i;

	for (i = 0; i < 10; i++)
		arm(&item[i], wheel, &item_ops, base + (i + 1) * KT_HOUR);
	for (i = 0; i < 10; i++) {
		travel((i + 1) * KT_HOUR + 20 * MINUTE);
		hwt_wheel_flush(wheel);
	}
	stats = kt_stats(wheel);
	POINT(fired(10) == 10 && stats.clock_sets == 10 && stats.behind == 0,
	      "set forward while the engine sleeps: %llu count as behind", stats.behind);
	travel(0);
	shut_gate();
	arm(&item[10], wheel, &slow_ops, hwt_wheel_now(wheel));
	KT_WAIT(atomic_read(&inside) == 1);
	travel(KT_HOUR);
	complete_all(&gate);
	KT_WAIT(kt_releases(&item[10].kt) == 1);
	stats = kt_stats(wheel);
	POINT(stats.expired == 11 && stats.behind == 0,
	      "set forward during a callback: %llu count as behind", stats.behind);
	travel(0);
	POINT(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void use(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	if (hwt_wheel_now(wheel) && hwt_wheel_barrier(wheel) == -EDEADLK)
		atomic_inc(&told);
}

static int set_often(void *arg)
{
	while (!kthread_should_stop()) {
		travel(KT_HOUR);
		travel(0);
		cond_resched();
	}
	return 0;
}

/* Create wheels while another thread sets the clock. */
static void __init test_created(void)
{
	struct task_struct *thread = kthread_run(set_often, NULL, "set_often");
	struct hwt_wheel *wheel;
	unsigned int i, missed = 0;

	if (IS_ERR(thread)) {
		KTEST(false, "a thread sets the clock: %ld", PTR_ERR(thread));
		return;
	}
	for (i = 0; i < 40; i++) {
		atomic_set(&told, 0);
		/* The wheel's new thread is likely to run before hwt_wheel_create() goes on. */
		set_user_nice(current, MAX_NICE);
		wheel = kt_wheel("created", .clock = HWT_CLOCK_REALTIME, .clock_set = use,
				 .shards = 4);
		set_user_nice(current, 0);
		missed += !KT_WAIT(atomic_read(&told));
		hwt_wheel_destroy(wheel);
	}
	kthread_stop(thread);
	KTEST(missed == 0, "new wheels whose clock_set could not use the wheel: %u", missed);
}

static void __init selftest(void)
{
	unsigned int i;

	home = wall_offset();
	init_completion(&gate);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		test_delays(&kinds[i]);
		/* The jumps are longer than any wait in these tests. */
		test_forward(&kinds[i], 100 * KT_SECOND, "100 seconds");
		test_forward(&kinds[i], 10 * YEAR, "10 years");
		test_back(&kinds[i], 10 * KT_SECOND, "10 seconds");
		test_back(&kinds[i], 10 * YEAR, "10 years");
	}
	for (i = 0; i < 2; i++) {
		test_due(&kinds[i]);
		test_periodic(&kinds[i], 10 * KT_HOUR, "10 hours");
		test_periodic(&kinds[i], 10 * YEAR, "10 years");
		test_reclaim(&kinds[i]);
		test_told(&kinds[i]);
		test_behind(&kinds[i]);
	}
	test_created();
	travel(0);
	KTEST(refused == 0, "each set of the clock has succeeded");
}

KSTM_MODULE_LOADERS(test_realtime);
