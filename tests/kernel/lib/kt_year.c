// SPDX-License-Identifier: GPL-2.0-only
/*
 * Long spans, from a minute to a year, among many random ones, on wheels with ticks of 1 ms, one of
 * them with a single level; a daily timeout, one that is pushed back, and a date on the wall clock.
 * The lateness of timer_list and hrtimer is printed for comparison.
 *
 * Runs on a kernel whose time jumps to the next event when all is idle (tests/vm/year.py). There,
 * computing takes no time, but each reading of the clock takes 256 ns. A timeout is in its exact
 * tick if kt_wheel_tick(), read in its callback, is its deadline, rounded up.
 */
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/prandom.h>
#include <linux/sort.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/timer.h>

#include "hwt_ktest.h"
#include "hwt_ktest_compat.h"

static unsigned int count = 20000;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "Random timeouts on each wheel");

#define YEAR_TICK	KT_MS
#define YEAR_DAY	(24 * KT_HOUR)
#define YEAR_DAYS	365

static const struct {
	const char	*name;
	u64		ns;
} spans[] = {
	{ "1 minute",	60 * KT_SECOND },
	{ "1 hour",	KT_HOUR },
	{ "1 day",	YEAR_DAY },
	{ "30 days",	30 * YEAR_DAY },
	{ "1 year",	YEAR_DAYS * YEAR_DAY },
};

#define SPANS	ARRAY_SIZE(spans)
/* Per span. The first sample is exactly as long as the span, the others up to an eighth shorter. */
#define SAMPLES	100

struct year_wheel;

/* A one-shot, and the time at which it fired. */
struct shot {
	union {
		struct hwt_timeout	timeout;
		struct timer_list	timer;
		struct hrtimer		hrtimer;
	};
	struct year_wheel	*owner;		/* of a hwt_timeout */
	u64			deadline;	/* on the clock of the timer, ns */
	u64			at;		/* the time when the callback began, ns */
	u64			tick;		/* the wheel's tick when the callback began */
	unsigned int		times;		/* calls of the callback */
};

/* A wheel with its timeouts and counters. */
struct year_wheel {
	const char		*name;
	struct hwt_wheel	*wheel;
	struct shot		*random;	/* @count of them */
	struct shot		*sample;	/* SPANS * SAMPLES of them */
	struct shot		idler;		/* pushed back all day */
	struct hwt_periodic	daily;
	u64			begin;		/* ns */
	/* Written by callbacks. */
	unsigned int		days;		/* firings of @daily */
	unsigned int		fired;		/* all firings */
	unsigned int		exact;		/* of these, in the deadline's tick */
	unsigned int		early;		/* before the deadline */
	unsigned int		late;		/* after the deadline's tick */
	unsigned int		disorder;	/* after a timeout with a later tick */
	u64			overruns;	/* of @daily */
	unsigned int		ticks;		/* ticks in which any timeout was due */
	u64			last_tick;	/* the latest of these ticks */
	u64			latest_ns;	/* maximum time from the tick to the callback */
};

static u64 year_tick(u64 deadline)
{
	return div_u64(deadline + YEAR_TICK - 1, YEAR_TICK);
}

/* Count a callback that is due at @deadline, and return the time and the tick. */
static void year_note(struct year_wheel *year, u64 deadline, u64 *at, u64 *tick)
{
	u64 asked = year_tick(deadline);

	/* First: each reading of the clock takes time, which could hide that it is early. */
	*at = hwt_wheel_now(year->wheel);
	*tick = kt_wheel_tick(year->wheel);
	year->fired++;
	if (*at < deadline)
		year->early++;
	else if (*tick > asked)
		year->late++;
	else
		year->exact++;
	if (*at > asked * YEAR_TICK)
		year->latest_ns = max(year->latest_ns, *at - asked * YEAR_TICK);
	if (asked < year->last_tick)
		year->disorder++;
	else if (asked > year->last_tick)
		year->ticks++;
	year->last_tick = max(year->last_tick, asked);
}

static void shot_expire(struct hwt_timeout *timeout)
{
	struct shot *shot = container_of(timeout, struct shot, timeout);

	year_note(shot->owner, shot->deadline, &shot->at, &shot->tick);
	shot->times++;
}

static void shot_timer(struct timer_list *timer)
{
	struct shot *shot = container_of(timer, struct shot, timer);

	shot->at = ktime_get_ns();
	shot->times++;
}

static enum hrtimer_restart shot_hrtimer(struct hrtimer *timer)
{
	struct shot *shot = container_of(timer, struct shot, hrtimer);

	shot->at = ktime_get_ns();
	shot->times++;
	return HRTIMER_NORESTART;
}

static void daily_expire(struct hwt_timeout *timeout)
{
	struct hwt_periodic *daily = container_of(timeout, struct hwt_periodic, timeout);
	struct year_wheel *year = container_of(daily, struct year_wheel, daily);
	u64 at, tick;

	year->days++;
	year_note(year, year->begin + year->days * YEAR_DAY, &at, &tick);
	year->overruns += hwt_overruns(daily);
	if (year->days == YEAR_DAYS)
		hwt_cancel(timeout);
}

static const struct hwt_timeout_ops daily_ops = { .expire = daily_expire };

/* -- Arming ---------------------------------------------------------------- */

/* Arm at an absolute time: that reads no clock, so no time passes while all are armed. */
static int __init shot_arm(struct shot *shot, struct year_wheel *year, u64 deadline)
{
	shot->owner = year;
	shot->deadline = deadline;
	hwt_timeout_setup(&shot->timeout, year->wheel, shot_expire);
	return hwt_schedule_at(&shot->timeout, deadline);
}

/* As drivers do: a delay in jiffies, rounded up. */
static void __init shot_arm_timer(struct shot *shot, u64 deadline, u64 now)
{
	shot->deadline = deadline;
	timer_setup(&shot->timer, shot_timer, 0);
	mod_timer(&shot->timer, jiffies + div_u64(deadline - now + TICK_NSEC - 1, TICK_NSEC));
}

static void __init shot_arm_hrtimer(struct shot *shot, u64 deadline)
{
	shot->deadline = deadline;
	hrtimer_setup(&shot->hrtimer, shot_hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	hrtimer_start(&shot->hrtimer, ns_to_ktime(deadline), HRTIMER_MODE_ABS);
}

static struct rnd_state rnd;

static u64 __init random_below(u64 limit)
{
	u64 value = (u64)prandom_u32_state(&rnd) << 32 | prandom_u32_state(&rnd);

	return mul_u64_u64_shr(value, limit, 64);
}

static u64 __init sample_delay(unsigned int i)
{
	u64 ns = spans[i / SAMPLES].ns;

	return i % SAMPLES ? ns - random_below(ns / 8) : ns;
}

/* Half of the delays are anywhere in the year, half within one of the spans. */
static u64 __init random_delay(unsigned int i)
{
	u64 limit = spans[i % 2 ? i / 2 % SPANS : SPANS - 1].ns;

	return KT_SECOND + random_below(limit - KT_SECOND);
}

static struct year_wheel years[] = {
	{ .name = "3 levels" },
	{ .name = "1 level" },
};

#define WHEELS	ARRAY_SIZE(years)

static struct year_wheel wall = { .name = "wall clock" };
static struct shot *timers, *hrtimers;

static void __init year_make(void)
{
	unsigned int i;

	for (i = 0; i < WHEELS; i++) {
		years[i].wheel = kt_wheel(years[i].name, .tick_ns = YEAR_TICK,
					  .ticks_per_wheel = 512, .levels = i == 0 ? 3 : 1);
		years[i].random = kt_alloc(count, sizeof(struct shot));
		years[i].sample = kt_alloc(SPANS * SAMPLES, sizeof(struct shot));
	}
	wall.wheel = kt_wheel(wall.name, .clock = HWT_CLOCK_REALTIME);
	timers = kt_alloc(SPANS * SAMPLES, sizeof(struct shot));
	hrtimers = kt_alloc(SPANS * SAMPLES, sizeof(struct shot));
}

static void __init year_destroy(struct year_wheel *year)
{
	hwt_wheel_destroy(year->wheel);
	vfree(year->random);
	vfree(year->sample);
}

static void __init timers_free(void)
{
	unsigned int i;

	for (i = 0; i < SPANS * SAMPLES; i++) {
		timer_delete_sync(&timers[i].timer);
		hrtimer_cancel(&hrtimers[i].hrtimer);
	}
	vfree(timers);
	vfree(hrtimers);
}

static bool __init year_begin(u64 now)
{
	unsigned int i, w, failed = 0;
	u64 deadline;

	for (i = 0; i < SPANS * SAMPLES; i++) {
		deadline = now + sample_delay(i);
		for (w = 0; w < WHEELS; w++)
			failed += shot_arm(&years[w].sample[i], &years[w], deadline) != 0;
		shot_arm_timer(&timers[i], deadline, now);
		shot_arm_hrtimer(&hrtimers[i], deadline);
	}
	for (i = 0; i < count; i++) {
		deadline = now + random_delay(i);
		for (w = 0; w < WHEELS; w++)
			failed += shot_arm(&years[w].random[i], &years[w], deadline) != 0;
	}
	for (w = 0; w < WHEELS; w++) {
		years[w].begin = now;
		hwt_periodic_init(&years[w].daily, years[w].wheel, &daily_ops);
		failed += hwt_schedule_periodic_at(&years[w].daily, now + YEAR_DAY,
						   YEAR_DAY, HWT_MODE_FIXED_RATE) != 0;
		failed += shot_arm(&years[w].idler, &years[w], now + KT_HOUR) != 0;
	}
	return !failed;
}

/* -- Passage of time ------------------------------------------------------- */

static void __init sleep_until(u64 ns)
{
	ktime_t expires = ns_to_ktime(ns);

	while (ktime_get_ns() < ns) {
		set_current_state(TASK_IDLE);
		schedule_hrtimeout(&expires, HRTIMER_MODE_ABS);
	}
}

/* Push a timeout of an hour back each 59 minutes, for a day, and then let it fire. */
static void __init test_push_back(u64 now)
{
	int ret[WHEELS] = { HWT_WAS_PENDING | HWT_WAS_HELD, HWT_WAS_PENDING | HWT_WAS_HELD };
	unsigned int i, w, fired[WHEELS];
	struct shot *idler;

	for (i = 0; i < 24; i++) {
		now += 59 * 60 * KT_SECOND;
		sleep_until(now);
		for (w = 0; w < WHEELS; w++) {
			idler = &years[w].idler;
			idler->deadline = now + KT_HOUR;
			ret[w] &= hwt_schedule_at(&idler->timeout, idler->deadline);
		}
	}
	sleep_until(now + KT_HOUR - YEAR_TICK);
	for (w = 0; w < WHEELS; w++)
		fired[w] = years[w].idler.times;
	sleep_until(now + KT_HOUR + KT_SECOND);
	for (w = 0; w < WHEELS; w++) {
		idler = &years[w].idler;
		KTEST(ret[w] == (HWT_WAS_PENDING | HWT_WAS_HELD) && !fired[w],
		      "%s: a timeout of an hour, pushed back each 59 minutes, does not fire",
		      years[w].name);
		KTEST(idler->times == 1 && idler->tick == year_tick(idler->deadline),
		      "%s: an hour after the last push-back it fires, in its tick", years[w].name);
	}
}

static unsigned int __init shots_not_once(const struct shot *shots, unsigned int n)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < n; i++)
		wrong += shots[i].times != 1;
	return wrong;
}

static unsigned int __init year_left(void)
{
	unsigned int w, left;

	left = shots_not_once(timers, SPANS * SAMPLES) +
	       shots_not_once(hrtimers, SPANS * SAMPLES) + shots_not_once(&wall.idler, 1);
	for (w = 0; w < WHEELS; w++)
		left += shots_not_once(years[w].random, count) +
			shots_not_once(years[w].sample, SPANS * SAMPLES);
	return left;
}

static void __init year_pass(u64 begin)
{
	unsigned int day, left;

	for (day = 2; day <= YEAR_DAYS + 10; day++) {
		sleep_until(begin + day * YEAR_DAY);
		/* As for summer time and back, but by different amounts. */
		if (day == 100)
			KTEST(kt_set_clock(3600) == 0, "%s: clock set forward", wall.name);
		else if (day == 200)
			KTEST(kt_set_clock(-7200) == 0, "%s: clock set back", wall.name);
		left = year_left();
		if (day % 30 == 0 || !left)
			pr_info("day %u: %u pending\n", day, left);
		if (!left)
			break;
	}
}

/* -- Results --------------------------------------------------------------- */

static void __init test_spans(struct year_wheel *year)
{
	const struct shot *shot;
	unsigned int i;

	for (i = 0; i < SPANS; i++) {
		shot = &year->sample[i * SAMPLES];
		KTEST(shot->times == 1 && shot->at >= shot->deadline &&
		      shot->tick == year_tick(shot->deadline),
		      "%s: %s: fires in its tick", year->name, spans[i].name);
	}
}

static void __init kt_year(struct year_wheel *year)
{
	unsigned int all = count + SPANS * SAMPLES + YEAR_DAYS + 1;
	struct hwt_wheel_stats stats;

	test_spans(year);
	hwt_wheel_get_stats(year->wheel, &stats);
	pr_info("%s: %u of %u fired: %u in their tick, at most %llu ns into it; %u early, %u late; %llu wake-ups for %u ticks with due timeouts\n",
		year->name, year->fired, all, year->exact, year->latest_ns, year->early,
		year->late, stats.wakeups, year->ticks);
	KTEST(!shots_not_once(year->random, count) &&
	      !shots_not_once(year->sample, SPANS * SAMPLES) && year->fired == all,
	      "%s: each timeout fires once", year->name);
	KTEST(!year->early, "%s: none fires early", year->name);
	KTEST(year->exact == all, "%s: all fire in their tick", year->name);
	KTEST(!year->disorder, "%s: they fire in the order of their ticks", year->name);
	KTEST(year->days == YEAR_DAYS && !year->overruns && !hwt_held(&year->daily.timeout),
	      "%s: the daily timeout fires 365 times, and is then cancelled", year->name);
	KTEST(stats.expired == all && !stats.late && !stats.behind && !stats.pending,
	      "%s: the wheel's counters agree", year->name);
	/* Some more wake-ups are due to arming and push-backs. */
	KTEST(stats.wakeups >= year->ticks && stats.wakeups <= year->ticks + 100,
	      "%s: one wake-up for each tick with due timeouts", year->name);
}

static void __init test_wall(void)
{
	u64 sets = kt_stats(wall.wheel).clock_sets;

	KTEST(wall.idler.times == 1 && wall.exact == 1, "%s: a date in a year fires in its tick",
	      wall.name);
	KTEST(sets == 2, "%s: the wheel has noticed %llu sets of the clock", wall.name, sets);
}

/* One calendar year from now, at noon. */
static u64 __init wall_date(void)
{
	struct tm tm;

	time64_to_tm(ktime_get_real_seconds(), 0, &tm);
	return mktime64(tm.tm_year + 1901, tm.tm_mon + 1, tm.tm_mday, 12, 0, 0) * KT_SECOND;
}

static int __init compare_s64(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

/* Print the lateness for each span. There is no limit: this compares hwt with other facilities. */
static void __init report_late(const char *name, const struct shot *shots)
{
	static s64 late[SAMPLES];	/* us; too large for the stack */
	unsigned int span, i;
	s64 exact;

	for (span = 0; span < SPANS; span++, shots += SAMPLES) {
		for (i = 0; i < SAMPLES; i++)
			late[i] = div_s64(shots[i].at - shots[i].deadline, NSEC_PER_USEC);
		exact = late[0];
		sort(late, SAMPLES, sizeof(*late), compare_s64, NULL);
		pr_info("late: %-10s after %-8s %lld us; up to an eighth less: %lld to %lld us, median %lld\n",
			name, spans[span].name, exact, late[0], late[SAMPLES - 1],
			late[SAMPLES / 2]);
	}
}

static void __init test_all(void)
{
	u64 begin = ktime_get_ns();
	unsigned int w;

	prandom_seed_state(&rnd, 1);
	KTEST(year_begin(begin), "%u random timeouts and %zu samples are armed on each wheel",
	      count, SPANS * SAMPLES);
	KTEST(shot_arm(&wall.idler, &wall, wall_date()) == 0, "%s: a date is armed", wall.name);
	KTEST(ktime_get_ns() - begin < KT_MS, "no time passed while they were armed");
	test_push_back(begin);
	year_pass(begin);
	for (w = 0; w < WHEELS; w++)
		kt_year(&years[w]);
	test_wall();
	for (w = 0; w < WHEELS; w++)
		report_late(years[w].name, years[w].sample);
	report_late("hrtimer", hrtimers);
	report_late("timer_list", timers);
}

static void __init selftest(void)
{
	unsigned int w;

	year_make();
	test_all();
	timers_free();
	for (w = 0; w < WHEELS; w++)
		year_destroy(&years[w]);
	year_destroy(&wall);
}

KSTM_MODULE_LOADERS(kt_year);
