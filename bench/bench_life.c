// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU time from schedule to callback; slack; and a storm of connections that push their idle
 * timeouts back.
 */
#include <linux/ktime.h>
#include <linux/sched.h>

#include "bench.h"

static u32 life_count(void)
{
	return bench_quick ? 100000 : 1000000;
}

static void life_wait(struct bench_load *life)
{
	while (bench_fired_sum() - life->fired < life->span.end && !bench_stopped())
		bench_sleep(5 * NSEC_PER_MSEC);
}

/* -- From schedule to callback ---------------------------------------------- */

static const struct bench_peer * const life_peers[] = {
	&bench_hwt, &bench_hwt_jiffy, &bench_hwt_jiffies, &bench_bh, &bench_bh_ms, &bench_timer,
	&bench_hrtimer, &bench_work,
};

/* Arm all objects. The objects between two calls of cond_resched() fit into the caches. */
static void life_arm(const struct bench_load *life)
{
	struct bench_span span = life->span;

	for (; span.first < life->span.end; span.first = span.end) {
		span.end = min(span.first + 1024, life->span.end);
		life->peer->loop[LOOP_SCHEDULE](&span);
		cond_resched();
	}
}

/*
 * Arm all objects, and let all fire, 500 in each millisecond. Print the time in which the CPUs are
 * not idle meanwhile, for each timeout: the schedule, the work of the engine or the softirq, the
 * callback and the wake-ups. Few timeouts are armed repeatedly, 100,000 times in all.
 */
static int life_measure(const struct bench_peer *peer, u32 count)
{
	u64 spread = count * 2 * NSEC_PER_USEC, sum = 0;
	unsigned int lives = max(100000 / count, 1U), i;
	struct hwt_wheel_stats stats;
	struct bench_load life;
	struct bench_busy busy;
	int err;

	err = bench_begin(&life, peer, count);
	if (err)
		return err;
	for (i = 0; i < lives && !bench_stopped(); i++) {
		life.fired = bench_fired_sum();
		bench_times(&life, spread / 4, spread);
		bench_busy_begin(&busy);
		life_arm(&life);
		bench_sleep(spread * 5 / 4);
		life_wait(&life);
		sum += bench_busy_end(&busy);
	}
	bench_print(sum, (u64)lives * count,
		    "bench=through peer=%s op=schedule-to-callback n=%u unit=ns", peer->name,
		    count);
	if (bench_wheel) {
		hwt_wheel_get_stats(bench_wheel, &stats);
		bench_print(stats.passes, lives,
			    "bench=through peer=%s op=passes n=%u unit=passes",
			    peer->name, count);
	}
	bench_end(&life);
	return 0;
}

int bench_through(void)
{
	const u32 counts[] = { 1000, 10000, life_count() };
	unsigned int run, i, p;
	int err;

	for (run = 0; run < bench_runs; run++)
		for (i = 0; i < ARRAY_SIZE(counts); i++)
			for (p = 0; p < ARRAY_SIZE(life_peers) && !bench_stopped(); p++) {
				err = life_measure(life_peers[p], counts[i]);
				if (err)
					return err;
			}
	return 0;
}

/* -- Slack ------------------------------------------------------------------- */

static void slack_schedule(struct bench_load *life, u64 slack)
{
	struct hwt_timeout *timeout;
	u32 i;

	for (i = 0; i < life->span.end; i++) {
		timeout = life->span.objects + life->order[i] * life->peer->size;
		hwt_schedule_flags(timeout, life->when[i], slack, HWT_SCHEDULE_AT);
		if (i % 32768 == 0)
			cond_resched();
	}
}

/*
 * Print the wake-ups of the engine within @ns, and the busy time of all CPUs, which is that of the
 * engine and its wake-ups, as a share of one CPU's time.
 */
static void slack_watch(u64 ns, u32 count, u64 slack)
{
	struct hwt_wheel_stats before, after;
	struct bench_busy busy;
	u64 began, wall, ns_busy;

	hwt_wheel_get_stats(bench_wheel, &before);
	bench_busy_begin(&busy);
	began = ktime_get_ns();
	bench_sleep(ns);
	wall = ktime_get_ns() - began;
	ns_busy = bench_busy_end(&busy);
	hwt_wheel_get_stats(bench_wheel, &after);
	bench_print((after.wakeups - before.wakeups) * NSEC_PER_SEC, wall,
		    "bench=slack peer=hwt n=%u slack_ns=%llu op=wakeups unit=per_s", count, slack);
	bench_print(ns_busy * 100, wall,
		    "bench=slack peer=hwt n=%u slack_ns=%llu op=cpu unit=percent", count, slack);
}

/* A million deadlines, spread over a minute, with a slack. */
int bench_slack(void)
{
	static const u64 slacks[] = { 0, 10 * NSEC_PER_MSEC, NSEC_PER_SEC };
	u64 spread = (bench_quick ? 3 : 60) * NSEC_PER_SEC;
	u32 count = life_count();
	struct bench_load life;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(slacks) && !bench_stopped(); i++) {
		err = bench_begin(&life, &bench_hwt, count);
		if (err)
			return err;
		bench_times(&life, NSEC_PER_SEC, spread);
		slack_schedule(&life, slacks[i]);
		bench_settle(life.peer, NULL, 0, false);
		slack_watch(spread, count, slacks[i]);
		life_wait(&life);
		bench_end(&life);
	}
	return 0;
}

/* -- The storm ----------------------------------------------------------------- */

static const struct bench_peer * const storm_peers[] = {
	&bench_hwt, &bench_hwt_coarse, &bench_touch, &bench_timer, &bench_lazy, &bench_work,
};

#define STORM_IDLE	(10ULL * NSEC_PER_SEC)

/*
 * A million connections: with each packet a connection pushes back its idle timeout of ten seconds.
 * The storm takes longer than that, so that the old buckets of the timeouts come due. On one CPU,
 * the time outside of the loop is that of the engine; with more CPUs the engine has its own.
 */
int bench_storm(void)
{
	u64 began, before, now, end, ops, inside;
	u32 count = life_count(), i;
	struct bench_load life;
	unsigned int p;
	int err;

	for (p = 0; p < ARRAY_SIZE(storm_peers) && !bench_stopped(); p++) {
		const struct bench_peer *peer = storm_peers[p];
		bool work = peer == &bench_work;
		struct bench_span span;

		err = bench_begin(&life, peer, count);
		if (err)
			return err;
		bench_times(&life, STORM_IDLE, 1);
		bench_run(peer, LOOP_SCHEDULE, &life.span);
		for (i = 0; i < count; i++)
			life.when[i] = bench_delay(peer, STORM_IDLE);
		bench_settle(peer, NULL, 0, false);
		span = life.span;
		began = ktime_get_ns();
		end = began + bench_seconds * NSEC_PER_SEC;
		ops = 0;
		inside = 0;
		do {
			span.end = min(span.first + 4096, count);
			/* The loop of delayed_work converts absolute times to delays. */
			for (i = span.first; work && i < span.end; i++)
				life.when[i] = bench_time(peer, STORM_IDLE);
			before = ktime_get_ns();
			peer->loop[work ? LOOP_LATER : LOOP_RELATIVE](&span);
			inside += ktime_get_ns() - before;
			ops += span.end - span.first;
			span.first = span.end == count ? 0 : span.end;
			cond_resched();
			now = ktime_get_ns();
		} while (now < end && !bench_stopped());
		bench_end(&life);
		bench_print(ops * NSEC_PER_SEC, now - began,
			    "bench=storm peer=%s op=push-back n=%u unit=per_s", peer->name, count);
		bench_print((now - began - inside) * 100, now - began,
			    "bench=storm peer=%s op=elsewhere n=%u unit=percent", peer->name,
			    count);
		bench_print(peer->size, 1,
			    "bench=storm peer=%s op=memory n=%u unit=bytes", peer->name, count);
	}
	return 0;
}
