// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwt, and what one would take instead, each as the same set of loops. An object is
 * in a cache line of its own (delayed_work: two), as if it were embedded.
 */
#include <linux/cache.h>
#include <linux/completion.h>
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
#include "bench_compat.h"

#define BENCH_LINE	64
/* Operations between two looks at whether others want the CPU; not timed. */
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

/* What no object begins with. */
#define BENCH_NEVER	0x5a5a5a5a5a5a5a5aULL

/*
 * A loop over a span that does @code with the object @object of type @type and its time
 * @when. If the span is "apart", where the next object lies depends on what the
 * last one holds, so that the processor cannot begin with it before it is through.
 */
#define BENCH_LOOP(name, type, object, when, code)			\
static void name(const struct bench_span *span)				\
{									\
	struct type *objects = span->objects;				\
	u32 i, carry = 0;						\
									\
	for (i = span->first; i < span->end; i++) {			\
		struct type *object = &objects[span->order[i] + carry];	\
		u64 when __maybe_unused = span->when[i];		\
									\
		code;							\
		if (span->apart)					\
			carry = READ_ONCE(*(u64 *)object) == BENCH_NEVER; \
	}								\
}

/* -- The floor: what any design with a word and a list has to do ---------- */

struct floor_object {
	struct hwt_timeout timeout;
} __aligned(BENCH_LINE);

static DEFINE_PER_CPU(struct llist_head, floor_list);

static __always_inline void floor_change(struct floor_object *o, u64 when)
{
	s64 old = atomic64_read(&o->timeout.word);

	do {
	} while (!atomic64_try_cmpxchg(&o->timeout.word, &old, when));
}

static __always_inline void floor_push(struct floor_object *o)
{
	llist_add(&o->timeout.submit,
		  per_cpu_ptr(&floor_list, raw_smp_processor_id()));
}

BENCH_LOOP(floor_schedule, floor_object, o, when,
	   { floor_change(o, when); floor_push(o); })
BENCH_LOOP(floor_later, floor_object, o, when, floor_change(o, when))
BENCH_LOOP(floor_pair, floor_object, o, when,
	   { floor_change(o, when); floor_push(o); floor_change(o, 0); })
BENCH_LOOP(floor_relative, floor_object, o, when,
	   { floor_change(o, ktime_get_ns() + when); floor_push(o); })

static void floor_init(void *object)
{
	memset(object, 0, sizeof(struct floor_object));
}

static void floor_settle(bool cancelled)
{
	int cpu;

	for_each_possible_cpu(cpu)
		llist_del_all(per_cpu_ptr(&floor_list, cpu));
}

const struct bench_peer bench_floor = {
	.name	= "floor",
	.size	= sizeof(struct floor_object),
	.init	= floor_init,
	.loop	= {
		[LOOP_SCHEDULE]	= floor_schedule,
		[LOOP_LATER]	= floor_later,
		[LOOP_EARLIER]	= floor_schedule,
		[LOOP_CANCEL]	= floor_schedule,
		[LOOP_PAIR]	= floor_pair,
		[LOOP_RELATIVE]	= floor_relative,
	},
	.settle	= floor_settle,
};

/* -- hwt ------------------------------------------------------------------ */

struct hwt_object {
	struct hwt_timeout timeout;
} __aligned(BENCH_LINE);

struct hwt_wheel *bench_wheel;

static void hwt_fired(struct hwt_timeout *timeout)
{
	this_cpu_inc(bench_fired);
}

static const struct hwt_ops hwt_object_ops = { .expire = hwt_fired };

static int hwt_open_params(u32 flags, u64 tick_ns)
{
	struct hwt_wheel_params params = {
		.name = "hwt-bench", .flags = flags, .tick_ns = tick_ns,
	};

	bench_wheel = hwt_wheel_create(&params);
	return PTR_ERR_OR_ZERO(bench_wheel);
}

static int hwt_open(void)
{
	return hwt_open_params(0, NSEC_PER_MSEC);
}

static int hwt_open_coarse(void)
{
	return hwt_open_params(HWT_COARSE_CLOCK, NSEC_PER_MSEC);
}

/* As exact as timer_list. */
static int hwt_open_jiffy(void)
{
	return hwt_open_params(0, TICK_NSEC);
}

static void hwt_close(void)
{
	hwt_wheel_destroy(bench_wheel);
	bench_wheel = NULL;
}

static void hwt_object_init(void *object)
{
	hwt_timeout_init(&((struct hwt_object *)object)->timeout, bench_wheel,
			 &hwt_object_ops);
}

BENCH_LOOP(hwt_loop_schedule, hwt_object, o, when,
	   hwt_schedule_at(&o->timeout, when))
BENCH_LOOP(hwt_loop_cancel, hwt_object, o, when, hwt_cancel(&o->timeout))
BENCH_LOOP(hwt_loop_pair, hwt_object, o, when,
	   { hwt_schedule_at(&o->timeout, when); hwt_cancel(&o->timeout); })
BENCH_LOOP(hwt_loop_relative, hwt_object, o, when,
	   hwt_schedule(&o->timeout, when))

/* Fires when all that this CPU has submitted before has been collected: in order. */
struct hwt_marker {
	struct hwt_timeout	timeout;
	struct completion	fired;
};

static void hwt_marker_fired(struct hwt_timeout *timeout)
{
	complete(&container_of(timeout, struct hwt_marker, timeout)->fired);
}

static const struct hwt_ops hwt_marker_ops = { .expire = hwt_marker_fired };

/* Until the engine has nothing to collect any more; the cancelled wait reclaim_ms. */
static void hwt_settle(bool cancelled)
{
	static struct hwt_marker marker;
	struct hwt_wheel_stats stats;
	u64 before;

	if (cancelled)
		bench_sleep(150 * NSEC_PER_MSEC);
	init_completion(&marker.fired);
	hwt_timeout_init(&marker.timeout, bench_wheel, &hwt_marker_ops);
	hwt_schedule(&marker.timeout, 0);
	wait_for_completion_killable(&marker.fired);
	hwt_cancel_sync(&marker.timeout);
	/* What other CPUs have submitted. */
	hwt_wheel_get_stats(bench_wheel, &stats);
	do {
		before = stats.collected;
		bench_sleep(10 * NSEC_PER_MSEC);
		hwt_wheel_get_stats(bench_wheel, &stats);
	} while (stats.collected != before && !bench_stopped());
}

#define HWT_LOOPS {						\
		[LOOP_SCHEDULE]	= hwt_loop_schedule,		\
		[LOOP_LATER]	= hwt_loop_schedule,		\
		[LOOP_EARLIER]	= hwt_loop_schedule,		\
		[LOOP_CANCEL]	= hwt_loop_cancel,		\
		[LOOP_PAIR]	= hwt_loop_pair,		\
		[LOOP_RELATIVE]	= hwt_loop_relative,		\
	}

const struct bench_peer bench_hwt = {
	.name	= "hwt",
	.size	= sizeof(struct hwt_object),
	.open	= hwt_open,
	.close	= hwt_close,
	.init	= hwt_object_init,
	.loop	= HWT_LOOPS,
	.settle	= hwt_settle,
};

const struct bench_peer bench_hwt_coarse = {
	.name	= "hwt-coarse",
	.size	= sizeof(struct hwt_object),
	.open	= hwt_open_coarse,
	.close	= hwt_close,
	.init	= hwt_object_init,
	.loop	= HWT_LOOPS,
	.settle	= hwt_settle,
};

const struct bench_peer bench_hwt_jiffy = {
	.name	= "hwt-jiffy",
	.size	= sizeof(struct hwt_object),
	.open	= hwt_open_jiffy,
	.close	= hwt_close,
	.init	= hwt_object_init,
	.loop	= HWT_LOOPS,
	.settle	= hwt_settle,
};

/* -- timer_list ------------------------------------------------------------ */

struct timer_object {
	struct timer_list timer;
} __aligned(BENCH_LINE);

static void timer_fired(struct timer_list *timer)
{
	this_cpu_inc(bench_fired);
}

static void timer_object_init(void *object)
{
	timer_setup(&((struct timer_object *)object)->timer, timer_fired, 0);
}

BENCH_LOOP(timer_loop_schedule, timer_object, o, when,
	   mod_timer(&o->timer, when))
BENCH_LOOP(timer_loop_cancel, timer_object, o, when, timer_delete(&o->timer))
BENCH_LOOP(timer_loop_pair, timer_object, o, when,
	   { mod_timer(&o->timer, when); timer_delete(&o->timer); })
BENCH_LOOP(timer_loop_relative, timer_object, o, when,
	   mod_timer(&o->timer, jiffies + when))

const struct bench_peer bench_timer = {
	.name	= "timer_list",
	.size	= sizeof(struct timer_object),
	.jiffies = true,
	.init	= timer_object_init,
	.loop	= {
		[LOOP_SCHEDULE]	= timer_loop_schedule,
		[LOOP_LATER]	= timer_loop_schedule,
		[LOOP_EARLIER]	= timer_loop_schedule,
		[LOOP_CANCEL]	= timer_loop_cancel,
		[LOOP_PAIR]	= timer_loop_pair,
		[LOOP_RELATIVE]	= timer_loop_relative,
	},
};

/* -- hrtimer ---------------------------------------------------------------- */

struct hrtimer_object {
	struct hrtimer timer;
} __aligned(BENCH_LINE);

static enum hrtimer_restart hrtimer_fired(struct hrtimer *timer)
{
	this_cpu_inc(bench_fired);
	return HRTIMER_NORESTART;
}

static void hrtimer_object_init(void *object)
{
	hrtimer_setup(&((struct hrtimer_object *)object)->timer, hrtimer_fired,
		      CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}

BENCH_LOOP(hrtimer_loop_schedule, hrtimer_object, o, when,
	   hrtimer_start(&o->timer, ns_to_ktime(when), HRTIMER_MODE_ABS))
BENCH_LOOP(hrtimer_loop_cancel, hrtimer_object, o, when,
	   hrtimer_cancel(&o->timer))
BENCH_LOOP(hrtimer_loop_pair, hrtimer_object, o, when,
	   { hrtimer_start(&o->timer, ns_to_ktime(when), HRTIMER_MODE_ABS);
	     hrtimer_cancel(&o->timer); })
BENCH_LOOP(hrtimer_loop_relative, hrtimer_object, o, when,
	   hrtimer_start(&o->timer, ns_to_ktime(when), HRTIMER_MODE_REL))

const struct bench_peer bench_hrtimer = {
	.name	= "hrtimer",
	.size	= sizeof(struct hrtimer_object),
	.init	= hrtimer_object_init,
	.loop	= {
		[LOOP_SCHEDULE]	= hrtimer_loop_schedule,
		[LOOP_LATER]	= hrtimer_loop_schedule,
		[LOOP_EARLIER]	= hrtimer_loop_schedule,
		[LOOP_CANCEL]	= hrtimer_loop_cancel,
		[LOOP_PAIR]	= hrtimer_loop_pair,
		[LOOP_RELATIVE]	= hrtimer_loop_relative,
	},
};

/* -- delayed_work ------------------------------------------------------------ */

struct work_object {
	struct delayed_work work;
} __aligned(BENCH_LINE);

static struct workqueue_struct *work_queue;

static void work_fired(struct work_struct *work)
{
	this_cpu_inc(bench_fired);
}

static int work_open(void)
{
	work_queue = alloc_workqueue("hwt-bench", 0, 0);
	return work_queue ? 0 : -ENOMEM;
}

static void work_close(void)
{
	destroy_workqueue(work_queue);
}

static void work_object_init(void *object)
{
	INIT_DELAYED_WORK(&((struct work_object *)object)->work, work_fired);
}

/* It takes delays only: what is absolute for the others has to be made one. */
BENCH_LOOP(work_loop_schedule, work_object, o, when,
	   queue_delayed_work(work_queue, &o->work, when - jiffies))
BENCH_LOOP(work_loop_later, work_object, o, when,
	   mod_delayed_work(work_queue, &o->work, when - jiffies))
BENCH_LOOP(work_loop_cancel, work_object, o, when,
	   cancel_delayed_work(&o->work))
BENCH_LOOP(work_loop_pair, work_object, o, when,
	   { queue_delayed_work(work_queue, &o->work, when - jiffies);
	     cancel_delayed_work(&o->work); })
BENCH_LOOP(work_loop_relative, work_object, o, when,
	   queue_delayed_work(work_queue, &o->work, when))

const struct bench_peer bench_work = {
	.name	= "delayed_work",
	.size	= sizeof(struct work_object),
	.jiffies = true,
	.open	= work_open,
	.close	= work_close,
	.init	= work_object_init,
	.loop	= {
		[LOOP_SCHEDULE]	= work_loop_schedule,
		[LOOP_LATER]	= work_loop_later,
		[LOOP_EARLIER]	= work_loop_later,
		[LOOP_CANCEL]	= work_loop_cancel,
		[LOOP_PAIR]	= work_loop_pair,
		[LOOP_RELATIVE]	= work_loop_relative,
	},
};

/* -- For all of them ---------------------------------------------------------- */

/* Objects made ready; NULL: no memory. vfree() them. */
void *bench_objects(const struct bench_peer *peer, u32 count)
{
	void *objects = vmalloc(array_size(peer->size, count));
	u32 i;

	for (i = 0; objects && i < count; i++) {
		peer->init(objects + i * peer->size);
		if (i % BENCH_CHUNK == 0)
			cond_resched();
	}
	return objects;
}

/**
 * bench_settle() - wait for the peer's engine, then give all the same caches
 * @peer:      the peer
 * @objects:   all its objects; NULL: leave the caches alone
 * @count:     how many
 * @cancelled: what was done last has cancelled
 *
 * Whoever sleeps finds its objects gone from the caches. So all sleep, and all have them
 * read once, from the first to the last: a few stay warm, of a million what fits.
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

/* A delay as the peer counts it. */
u64 bench_delay(const struct bench_peer *peer, u64 delay_ns)
{
	return peer->jiffies ? nsecs_to_jiffies(delay_ns) : delay_ns;
}

/* The absolute time after a delay, likewise. */
u64 bench_time(const struct bench_peer *peer, u64 delay_ns)
{
	return bench_delay(peer, delay_ns) +
	       (peer->jiffies ? jiffies : ktime_get_ns());
}

/* Runs the loop over the whole of @span. Returns the time it took, ns. */
u64 bench_run(const struct bench_peer *peer, enum bench_loop loop,
	      struct bench_span *span)
{
	u32 end = span->end, first = span->first;
	struct bench_span chunk = *span;
	u64 began, sum = 0;

	for (; first < end; first = chunk.end) {
		chunk.first = first;
		chunk.end = min(first + BENCH_CHUNK, end);
		began = ktime_get_ns();
		peer->loop[loop](&chunk);
		sum += ktime_get_ns() - began;
		cond_resched();
	}
	return sum;
}
