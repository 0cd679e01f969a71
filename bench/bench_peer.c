// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwt and its alternatives, each with the same loops. Each object has its own cache line
 * (delayed_work: two), as if it were embedded.
 */
#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/sched.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "bench.h"
#include "../tests/kernel/lib/hwt_ktest_compat.h"

#define BENCH_LINE	64
/* Operations between two calls of cond_resched(), which are not timed. */
#define BENCH_CHUNK	32768

DEFINE_PER_CPU(unsigned long, bench_fired);

u64 bench_fired_sum(void)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(bench_fired, cpu));
	return sum;
}

/* No object begins with this. */
#define BENCH_NEVER	0x5a5a5a5a5a5a5a5aULL

/*
 * A loop over a span that executes @code with each object, o, and its time, when. If the span is
 * "alone", the address of the next object depends on a value in the present one, so that the
 * processor cannot begin with the next object earlier.
 */
#define BENCH_LOOP(peer, name, code)					\
static void peer##_loop_##name(const struct bench_span *span)		\
{									\
	struct peer##_object *objects = span->objects;			\
	u32 i, carry = 0;						\
									\
	for (i = span->first; i < span->end; i++) {			\
		struct peer##_object *o = &objects[span->order[i] + carry]; \
		u64 when __maybe_unused = span->when[i];		\
									\
		code;							\
		if (span->alone)					\
			carry = READ_ONCE(*(u64 *)o) == BENCH_NEVER;	\
	}								\
}

/* The objects of a peer, each with a @type "it"; @code1 initialises one; the rest are loops. */
#define BENCH_CODE(peer, type, code1, code2, code3, code4, code5, code6, code7) \
struct peer##_object {							\
	type it;							\
} __aligned(BENCH_LINE);						\
									\
static void peer##_object_init(void *object)				\
{									\
	struct peer##_object *o = object;				\
									\
	code1;								\
}									\
									\
BENCH_LOOP(peer, schedule, code2)					\
BENCH_LOOP(peer, later, code3)						\
BENCH_LOOP(peer, earlier, code4)					\
BENCH_LOOP(peer, cancel, code5)						\
BENCH_LOOP(peer, pair, code6)						\
BENCH_LOOP(peer, relative, code7)

/* The members of a struct bench_peer for these. */
#define BENCH_CODE_OF(peer)						\
	.size	= sizeof(struct peer##_object),				\
	.init	= peer##_object_init,					\
	.loop	= {							\
		[LOOP_SCHEDULE]	= peer##_loop_schedule,			\
		[LOOP_LATER]	= peer##_loop_later,			\
		[LOOP_EARLIER]	= peer##_loop_earlier,			\
		[LOOP_CANCEL]	= peer##_loop_cancel,			\
		[LOOP_PAIR]	= peer##_loop_pair,			\
		[LOOP_RELATIVE]	= peer##_loop_relative,			\
	}

/* -- The bare operations that any design with a state and a list needs --- */

static DEFINE_PER_CPU(struct llist_head, bare_list);

static __always_inline void bare_change(struct hwt_timeout *timeout, u64 when)
{
	s64 old = atomic64_read(&timeout->state);

	do {
	} while (!atomic64_try_cmpxchg(&timeout->state, &old, when));
}

static __always_inline void bare_push(struct hwt_timeout *timeout, u64 when)
{
	bare_change(timeout, when);
	llist_add(&timeout->submit, per_cpu_ptr(&bare_list, raw_smp_processor_id()));
}

BENCH_CODE(bare, struct hwt_timeout,
	   memset(o, 0, sizeof(*o)),
	   bare_push(&o->it, when),
	   bare_change(&o->it, when),
	   bare_push(&o->it, when),
	   bare_push(&o->it, when),
	   { bare_push(&o->it, when); bare_change(&o->it, 0); },
	   bare_push(&o->it, ktime_get_ns() + when))

static void bare_settle(bool cancelled)
{
	int cpu;

	for_each_possible_cpu(cpu)
		llist_del_all(per_cpu_ptr(&bare_list, cpu));
}

const struct bench_peer bench_bare = {
	.name	= "bare",
	.settle	= bare_settle,
	BENCH_CODE_OF(bare),
};

/* -- hwt ------------------------------------------------------------------ */

struct hwt_wheel *bench_wheel;

static void hwt_fired(struct hwt_timeout *timeout)
{
	this_cpu_inc(bench_fired);
}

static const struct hwt_timeout_ops hwt_object_ops = { .expire = hwt_fired };

BENCH_CODE(hwt, struct hwt_timeout,
	   hwt_timeout_init(&o->it, bench_wheel, &hwt_object_ops),
	   hwt_schedule_at(&o->it, when),
	   hwt_schedule_at(&o->it, when),
	   hwt_schedule_at(&o->it, when),
	   hwt_cancel(&o->it),
	   { hwt_schedule_at(&o->it, when); hwt_cancel(&o->it); },
	   hwt_schedule(&o->it, when))

static int hwt_open(const struct bench_peer *peer)
{
	struct hwt_wheel_params params = peer->wheel;

	/* As many as there can be: an engine for each CPU. */
	params.shards = min_t(u32, params.shards, num_possible_cpus());
	bench_wheel = hwt_wheel_create(&params);
	return PTR_ERR_OR_ZERO(bench_wheel);
}

static void hwt_close(void)
{
	hwt_wheel_destroy(bench_wheel);
	bench_wheel = NULL;
}

static DECLARE_COMPLETION(hwt_marker_done);

static void hwt_marker_fired(struct hwt_timeout *timeout)
{
	complete(&hwt_marker_done);
}

static const struct hwt_timeout_ops hwt_marker_ops = { .expire = hwt_marker_fired };

/*
 * Wait until the engine has collected all submissions. Cancelled timeouts are collected within
 * reclaim_ms; the marker fires after all earlier submissions of this CPU.
 */
static void hwt_settle(bool cancelled)
{
	static struct hwt_timeout marker;
	struct hwt_wheel_stats stats;
	u64 before;

	if (cancelled)
		bench_sleep(150 * NSEC_PER_MSEC);
	reinit_completion(&hwt_marker_done);
	hwt_timeout_init(&marker, bench_wheel, &hwt_marker_ops);
	hwt_schedule(&marker, 0);
	wait_for_completion_killable(&hwt_marker_done);
	hwt_cancel_sync(&marker);
	/* Wait for submissions of other CPUs. */
	hwt_wheel_get_stats(bench_wheel, &stats);
	do {
		before = stats.collected;
		bench_sleep(10 * NSEC_PER_MSEC);
		hwt_wheel_get_stats(bench_wheel, &stats);
	} while (stats.collected != before && !bench_stopped());
}

/* On a BH wheel, with the calls that take the place of those of timer_list. */
BENCH_CODE(bh, struct hwt_timeout,
	   hwt_timeout_init(&o->it, bench_wheel, &hwt_object_ops),
	   hwt_schedule_at(&o->it, when),
	   hwt_schedule_at(&o->it, when),
	   hwt_schedule_at(&o->it, when),
	   hwt_delete(&o->it),
	   { hwt_schedule_at(&o->it, when); hwt_delete(&o->it); },
	   hwt_schedule(&o->it, when))

/* The same, pushed back by hwt_touch(). */
BENCH_CODE(touch, struct hwt_timeout,
	   hwt_timeout_init(&o->it, bench_wheel, &hwt_object_ops),
	   hwt_schedule_at(&o->it, when),
	   hwt_touch(&o->it, when),
	   hwt_schedule_at(&o->it, when),
	   hwt_delete(&o->it),
	   { hwt_schedule_at(&o->it, when); hwt_delete(&o->it); },
	   hwt_touch(&o->it, when))

#define HWT_PEER(title, code, wheel_flags, ns, n)			\
	.name	= title,						\
	.wheel	= {							\
		.name = "hwt-bench", .flags = wheel_flags, .tick_ns = ns, .shards = n, \
	},								\
	.open	= hwt_open,						\
	.close	= hwt_close,						\
	.settle	= hwt_settle,						\
	BENCH_CODE_OF(code)

/* A tick of TICK_NSEC: the resolution of timer_list; with HWT_COARSE_CLOCK, also its clock. */
const struct bench_peer bench_hwt = { HWT_PEER("hwt", hwt, 0, NSEC_PER_MSEC, 1) };
const struct bench_peer bench_hwt_coarse = {
	HWT_PEER("hwt-coarse", hwt, HWT_COARSE_CLOCK, NSEC_PER_MSEC, 1)
};

const struct bench_peer bench_hwt_jiffy = { HWT_PEER("hwt-jiffy", hwt, 0, TICK_NSEC, 1) };
const struct bench_peer bench_hwt_jiffies = {
	HWT_PEER("hwt-jiffies", hwt, HWT_COARSE_CLOCK, TICK_NSEC, 1)
};

const struct bench_peer bench_hwt_shards = {
	HWT_PEER("hwt-shards", hwt, 0, NSEC_PER_MSEC, HWT_SHARDS_MAX)
};

const struct bench_peer bench_bh = { HWT_PEER("hwt-bh", bh, HWT_BH, TICK_NSEC, 1) };
const struct bench_peer bench_bh_ms = { HWT_PEER("hwt-bh-1ms", bh, HWT_BH, NSEC_PER_MSEC, 1) };
const struct bench_peer bench_touch = { HWT_PEER("hwt-touch", touch, HWT_BH, TICK_NSEC, 1) };

/* -- timer_list ------------------------------------------------------------ */

static void timer_fired(struct timer_list *timer)
{
	this_cpu_inc(bench_fired);
}

BENCH_CODE(timer, struct timer_list,
	   timer_setup(&o->it, timer_fired, 0),
	   mod_timer(&o->it, when),
	   mod_timer(&o->it, when),
	   mod_timer(&o->it, when),
	   timer_delete(&o->it),
	   { mod_timer(&o->it, when); timer_delete(&o->it); },
	   mod_timer(&o->it, jiffies + when))

const struct bench_peer bench_timer = {
	.name	= "timer_list",
	.jiffies = true,
	BENCH_CODE_OF(timer),
};

/*
 * timer_list as code uses it that must not call mod_timer() for each packet: push-backs only store
 * the time, and the callback arms the timer again if the stored time has not come.
 */
struct lazy {
	struct timer_list	timer;
	unsigned long		expires;
};

static void lazy_fired(struct timer_list *timer)
{
	struct lazy *lazy = container_of(timer, struct lazy, timer);
	unsigned long expires = READ_ONCE(lazy->expires);

	if (time_before(jiffies, expires))
		mod_timer(timer, expires);
	else
		this_cpu_inc(bench_fired);
}

static __always_inline void lazy_arm(struct lazy *lazy, unsigned long expires)
{
	WRITE_ONCE(lazy->expires, expires);
	mod_timer(&lazy->timer, expires);
}

BENCH_CODE(lazy, struct lazy,
	   timer_setup(&o->it.timer, lazy_fired, 0),
	   lazy_arm(&o->it, when),
	   WRITE_ONCE(o->it.expires, when),
	   lazy_arm(&o->it, when),
	   timer_delete(&o->it.timer),
	   { lazy_arm(&o->it, when); timer_delete(&o->it.timer); },
	   WRITE_ONCE(o->it.expires, jiffies + when))

const struct bench_peer bench_lazy = {
	.name	= "lazy",
	.jiffies = true,
	BENCH_CODE_OF(lazy),
};

/* -- hrtimer ---------------------------------------------------------------- */

static enum hrtimer_restart hrtimer_fired(struct hrtimer *timer)
{
	this_cpu_inc(bench_fired);
	return HRTIMER_NORESTART;
}

static __always_inline void hrtimer_at(struct hrtimer *timer, u64 when)
{
	hrtimer_start(timer, ns_to_ktime(when), HRTIMER_MODE_ABS);
}

BENCH_CODE(hrtimer, struct hrtimer,
	   hrtimer_setup(&o->it, hrtimer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS),
	   hrtimer_at(&o->it, when),
	   hrtimer_at(&o->it, when),
	   hrtimer_at(&o->it, when),
	   hrtimer_cancel(&o->it),
	   { hrtimer_at(&o->it, when); hrtimer_cancel(&o->it); },
	   hrtimer_start(&o->it, ns_to_ktime(when), HRTIMER_MODE_REL))

const struct bench_peer bench_hrtimer = {
	.name	= "hrtimer",
	BENCH_CODE_OF(hrtimer),
};

/* -- delayed_work ------------------------------------------------------------ */

static struct workqueue_struct *work_queue;

static void work_fired(struct work_struct *work)
{
	this_cpu_inc(bench_fired);
}

static int work_open(const struct bench_peer *peer)
{
	work_queue = alloc_workqueue("hwt-bench", 0, 0);
	return work_queue ? 0 : -ENOMEM;
}

static void work_close(void)
{
	destroy_workqueue(work_queue);
}

/* The interface has delays only, so absolute times are converted. */
BENCH_CODE(work, struct delayed_work,
	   INIT_DELAYED_WORK(&o->it, work_fired),
	   queue_delayed_work(work_queue, &o->it, when - jiffies),
	   mod_delayed_work(work_queue, &o->it, when - jiffies),
	   mod_delayed_work(work_queue, &o->it, when - jiffies),
	   cancel_delayed_work(&o->it),
	   { queue_delayed_work(work_queue, &o->it, when - jiffies);
	     cancel_delayed_work(&o->it); },
	   queue_delayed_work(work_queue, &o->it, when))

const struct bench_peer bench_work = {
	.name	= "delayed_work",
	.jiffies = true,
	.open	= work_open,
	.close	= work_close,
	BENCH_CODE_OF(work),
};

/* -- All peers ------------------------------------------------------------------ */

/* Open a peer. Return @count initialised objects, or an ERR_PTR(). */
void *bench_open(const struct bench_peer *peer, u32 count)
{
	void *objects;
	int err = peer->open ? peer->open(peer) : 0;
	u32 i;

	if (err)
		return ERR_PTR(err);
	objects = vmalloc(array_size(peer->size, count));
	for (i = 0; objects && i < count; i++) {
		peer->init(objects + i * peer->size);
		if (i % BENCH_CHUNK == 0)
			cond_resched();
	}
	if (!objects && peer->close)
		peer->close();
	return objects ?: ERR_PTR(-ENOMEM);
}

/* Close a peer, and free its objects, which are idle. */
void bench_close(const struct bench_peer *peer, void *objects)
{
	if (peer->close)
		peer->close();
	vfree(objects);
}

/* Open a peer with @count objects in random order. Return 0 or an error. */
int bench_begin(struct bench_load *load, const struct bench_peer *peer, u32 count)
{
	void *objects = ERR_PTR(-ENOMEM);

	load->peer = peer;
	load->order = vmalloc(array_size(count, sizeof(u32)));
	load->when = vmalloc(array_size(count, sizeof(u64)));
	if (load->order && load->when)
		objects = bench_open(peer, count);
	if (IS_ERR(objects)) {
		vfree(load->order);
		vfree(load->when);
		return PTR_ERR(objects);
	}
	bench_shuffle(load->order, count);
	load->span = (struct bench_span) {
		.objects = objects, .order = load->order, .when = load->when, .end = count,
	};
	load->fired = bench_fired_sum();
	return 0;
}

/* Cancel all objects, and close the peer. */
void bench_end(struct bench_load *load)
{
	bench_run(load->peer, LOOP_CANCEL, &load->span);
	bench_settle(load->peer, NULL, 0, true);
	bench_close(load->peer, load->span.objects);
	vfree(load->order);
	vfree(load->when);
}

/* Set deadlines that begin @first ns from now, spread over @spread ns. */
void bench_times(struct bench_load *load, u64 first, u64 spread)
{
	u32 i;

	for (i = 0; i < load->span.end; i++)
		load->when[i] = bench_time(load->peer, first + bench_random_below(spread));
}

/**
 * bench_settle() - wait for the peer's engine, then bring the caches to a common state
 * @peer:      the peer
 * @objects:   all its objects; NULL: leave the caches alone
 * @count:     number of objects
 * @cancelled: the last operation was a cancel
 *
 * During a sleep, objects leave the caches. So each peer sleeps, and then reads all its objects in
 * order: few objects are in the cache then, of a million as many as fit.
 */
void bench_settle(const struct bench_peer *peer, void *objects, u32 count,
		  bool cancelled)
{
	u32 i;

	if (peer->settle)
		peer->settle(cancelled);
	else
		bench_sleep(10 * NSEC_PER_MSEC);
	for (i = 0; objects && i < count; i++)
		READ_ONCE(*(u64 *)(objects + i * peer->size));
	cond_resched();
}

/* Convert a delay to the peer's unit. */
u64 bench_delay(const struct bench_peer *peer, u64 delay_ns)
{
	return peer->jiffies ? nsecs_to_jiffies(delay_ns) : delay_ns;
}

/* Return the absolute time after a delay, in the peer's unit. */
u64 bench_time(const struct bench_peer *peer, u64 delay_ns)
{
	return bench_delay(peer, delay_ns) + (peer->jiffies ? jiffies : ktime_get_ns());
}

/* Run the loop over the whole of @span. Return the time it took, ns. */
u64 bench_run(const struct bench_peer *peer, enum bench_loop loop,
	      const struct bench_span *span)
{
	struct bench_span chunk = *span;
	u64 began, sum = 0;

	for (; chunk.first < span->end; chunk.first = chunk.end) {
		chunk.end = min(chunk.first + BENCH_CHUNK, span->end);
		began = ktime_get_ns();
		peer->loop[loop](&chunk);
		sum += ktime_get_ns() - began;
		cond_resched();
	}
	return sum;
}
