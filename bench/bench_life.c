// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whole lives: from schedule to callback, all CPU time; what idleness costs; slack; and
 * a storm of connections that push their idle timeouts back.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "bench.h"

static u32 life_count(void)
{
	return bench_quick ? 100000 : 1000000;
}

struct life {
	const struct bench_peer	*peer;
	struct bench_span	span;
	u32			*order;
	u64			*when;
	u64			fired;	/* before */
};

static void life_end(struct life *life)
{
	const struct bench_peer *peer = life->peer;

	if (life->span.objects) {
		bench_run(peer, LOOP_CANCEL, &life->span);
		bench_settle(peer, NULL, 0, true);
		if (peer->close)
			peer->close();
	}
	vfree(life->span.objects);
	vfree(life->order);
	vfree(life->when);
}

/* A peer with @count objects, in random order. */
static int life_begin(struct life *life, const struct bench_peer *peer, u32 count)
{
	int err = 0;

	memset(life, 0, sizeof(*life));
	life->peer = peer;
	life->order = vmalloc(array_size(max(count, 1U), sizeof(u32)));
	life->when = vmalloc(array_size(max(count, 1U), sizeof(u64)));
	if (!life->order || !life->when)
		err = -ENOMEM;
	if (!err && peer->open)
		err = peer->open();
	if (!err) {
		life->span.objects = bench_objects(peer, max(count, 1U));
		if (!life->span.objects) {
			err = -ENOMEM;
			if (peer->close)
				peer->close();
		}
	}
	if (err) {
		life_end(life);
		return err;
	}
	bench_shuffle(life->order, count);
	life->span.order = life->order;
	life->span.when = life->when;
	life->span.end = count;
	life->fired = bench_fired_sum();
	return 0;
}

/* Deadlines from @first ns from now, spread over @spread ns. */
static void life_times(struct life *life, u64 first, u64 spread)
{
	u32 i;

	for (i = 0; i < life->span.end; i++)
		life->when[i] = bench_time(life->peer,
					   first + bench_random_below(spread));
}

static void life_wait(struct life *life)
{
	while (bench_fired_sum() - life->fired < life->span.end && !bench_stopped())
		bench_sleep(20 * NSEC_PER_MSEC);
}

/* -- From schedule to callback ---------------------------------------------- */

static const struct bench_peer * const life_peers[] = {
	&bench_hwt, &bench_hwt_jiffy, &bench_timer, &bench_hrtimer, &bench_work,
};

#define LIFE_PEERS	ARRAY_SIZE(life_peers)

/*
 * All are armed, then all fire, a million within two seconds. The time that the CPUs are not idle
 * meanwhile, by the number of timeouts: the schedule, the engine's or the softirq's part,
 * the callback and the wake-ups.
 */
int bench_through(void)
{
	static struct bench_result result[LIFE_PEERS];
	u64 spread = (bench_quick ? 500 : 2000) * NSEC_PER_MSEC;
	u32 count = life_count();
	struct bench_busy busy;
	struct life life;
	unsigned int run, p;
	int err = 0;

	for (run = 0; run < bench_runs && !err && !bench_stopped(); run++)
		for (p = 0; p < LIFE_PEERS && !err; p++) {
			err = life_begin(&life, life_peers[p], count);
			if (err)
				break;
			life_times(&life, spread / 4, spread);
			bench_busy_begin(&busy);
			bench_run(life.peer, LOOP_SCHEDULE, &life.span);
			life_wait(&life);
			bench_add(&result[p], bench_busy_end(&busy), count);
			life_end(&life);
		}
	for (p = 0; p < LIFE_PEERS; p++)
		bench_print(&result[p],
			    "bench=through peer=%s op=schedule-to-callback n=%u unit=ns",
			    life_peers[p]->name, count);
	return err;
}

/* -- Waiting ------------------------------------------------------------------ */

/*
 * Sleeps, and notes how often the engine wakes up meanwhile and which share of one CPU's
 * time all CPUs together are busy: the engine, and what it takes to wake it.
 */
static void life_watch(u64 ns, struct bench_result *wakeups, struct bench_result *share)
{
	struct hwt_wheel_stats before, after;
	struct bench_busy busy;
	u64 began, wall;

	hwt_wheel_get_stats(bench_wheel, &before);
	bench_busy_begin(&busy);
	began = ktime_get_ns();
	bench_sleep(ns);
	wall = ktime_get_ns() - began;
	bench_add(share, bench_busy_end(&busy) * 100, wall);
	hwt_wheel_get_stats(bench_wheel, &after);
	bench_add(wakeups, (after.wakeups - before.wakeups) * NSEC_PER_SEC, wall);
}

/* Wake-ups and CPU time with nothing to do. */
int bench_idle(void)
{
	static const u32 counts[] = { 0, 1, 1000000 };
	static struct bench_result wakeups, share;
	u64 seconds = bench_quick ? 1 : 10;
	struct life life;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(counts) && !bench_stopped(); i++) {
		u32 count = min(counts[i], life_count());

		err = life_begin(&life, &bench_hwt, count);
		if (err)
			return err;
		life_times(&life, 3600ULL * NSEC_PER_SEC, 36000ULL * NSEC_PER_SEC);
		bench_run(life.peer, LOOP_SCHEDULE, &life.span);
		bench_settle(life.peer, NULL, 0, false);
		life_watch(seconds * NSEC_PER_SEC, &wakeups, &share);
		life_end(&life);
		bench_print(&wakeups, "bench=idle peer=hwt op=wakeups n=%u unit=per_s",
			    count);
		bench_print(&share, "bench=idle peer=hwt op=cpu n=%u unit=percent", count);
	}
	return 0;
}

/* -- Slack ------------------------------------------------------------------- */

static void slack_schedule(struct life *life, u64 slack)
{
	struct hwt_timeout *timeout;
	u32 i;

	for (i = 0; i < life->span.end; i++) {
		timeout = life->span.objects + life->order[i] * life->peer->size;
		hwt_schedule_at_slack(timeout, life->when[i], slack);
		if (i % 32768 == 0)
			cond_resched();
	}
}

/* A million deadlines, spread over a minute, that may be moved a little. */
int bench_slack(void)
{
	static const u64 slacks[] = { 0, 10 * NSEC_PER_MSEC, NSEC_PER_SEC };
	static struct bench_result wakeups, share;
	u64 spread = (bench_quick ? 3 : 60) * NSEC_PER_SEC;
	u32 count = life_count();
	struct life life;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(slacks) && !bench_stopped(); i++) {
		err = life_begin(&life, &bench_hwt, count);
		if (err)
			return err;
		life_times(&life, NSEC_PER_SEC, spread);
		slack_schedule(&life, slacks[i]);
		bench_settle(life.peer, NULL, 0, false);
		life_watch(spread, &wakeups, &share);
		life_wait(&life);
		life_end(&life);
		bench_print(&wakeups,
			    "bench=slack peer=hwt op=wakeups n=%u slack_ns=%llu unit=per_s",
			    count, slacks[i]);
		bench_print(&share,
			    "bench=slack peer=hwt op=cpu n=%u slack_ns=%llu unit=percent",
			    count, slacks[i]);
	}
	return 0;
}

/* -- The storm ----------------------------------------------------------------- */

static const struct bench_peer * const storm_peers[] = {
	&bench_hwt, &bench_hwt_coarse, &bench_timer, &bench_work,
};

#define STORM_IDLE	(10ULL * NSEC_PER_SEC)

/*
 * A million connections; all the time one of them sees traffic, and its idle timeout of
 * ten seconds begins anew. Longer than that, so that the places left behind come due. What
 * the engine takes of the time, on one CPU, is what is not spent in the loop; with more, it
 * has another one to itself.
 */
int bench_storm(void)
{
	static struct bench_result rate, share, memory;
	u64 began, before, now, ops, end, inside;
	u32 count = life_count(), first, i;
	struct life life;
	unsigned int p;
	int err;

	for (p = 0; p < ARRAY_SIZE(storm_peers) && !bench_stopped(); p++) {
		const struct bench_peer *peer = storm_peers[p];
		enum bench_loop again = peer == &bench_work ? LOOP_LATER : LOOP_RELATIVE;

		err = life_begin(&life, peer, count);
		if (err)
			return err;
		life_times(&life, STORM_IDLE, 1);
		bench_run(peer, LOOP_SCHEDULE, &life.span);
		for (i = 0; i < count; i++)
			life.when[i] = bench_delay(peer, STORM_IDLE);
		bench_settle(peer, NULL, 0, false);
		began = ktime_get_ns();
		end = began + bench_seconds * NSEC_PER_SEC;
		ops = 0;
		first = 0;
		inside = 0;
		do {
			struct bench_span span = life.span;

			span.first = first;
			span.end = min(first + 4096, count);
			/* Its loop makes a delay of an absolute time. */
			if (peer == &bench_work)
				for (i = span.first; i < span.end; i++)
					life.when[i] = bench_time(peer, STORM_IDLE);
			before = ktime_get_ns();
			peer->loop[again](&span);
			inside += ktime_get_ns() - before;
			ops += span.end - span.first;
			first = span.end == count ? 0 : span.end;
			cond_resched();
			now = ktime_get_ns();
		} while (now < end && !bench_stopped());
		bench_add(&share, (now - began - inside) * 100, now - began);
		bench_add(&rate, ops * NSEC_PER_SEC, now - began);
		bench_add(&memory, peer->size * 1ULL * count, count);
		life_end(&life);
		bench_print(&rate, "bench=storm peer=%s op=push-back n=%u unit=per_s",
			    peer->name, count);
		bench_print(&share, "bench=storm peer=%s op=elsewhere n=%u unit=percent",
			    peer->name, count);
		bench_print(&memory, "bench=storm peer=%s op=memory n=%u unit=bytes",
			    peer->name, count);
	}
	return 0;
}
