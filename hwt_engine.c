// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine: one thread for each wheel, and all that is done under the wheel's lock
 *
 * A pass collects what was submitted, moves the cursor to now, and runs the callbacks
 * that have come due, each part bounded. Then the engine sleeps until the next tick
 * at which the buckets have work.
 *
 * Rules for a timeout's word (the design's text gives the reasons):
 *
 *   - In a bucket or on the due list: ARMED or QUEUED is set. RUNNING: in no list.
 *   - The lock-free half (hwt_timeout.c) may change the word at any line here. So
 *     each decision is a compare-and-swap of exactly the word it was made from, and
 *     starts again from the new one if that fails.
 *   - RUNNING is set by the compare-and-swap that decides to fire, and is exclusive:
 *     until the end of the callback a collected entry only loses QUEUED.
 *   - The compare-and-swap that leaves neither ARMED, QUEUED nor RUNNING ends the
 *     hold. The timeout is out of all lists before it, and is not touched after it;
 *     what is needed then (->release) is read before.
 */
#include <linux/bitmap.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/llist.h>
#include <linux/math64.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "hwt_internal.h"

/**
 * hwt_lock_break() - let others have the lock and the CPU
 * @wheel: its lock is held
 */
void hwt_lock_break(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	spin_unlock(&wheel->lock);
	cond_resched();
	spin_lock(&wheel->lock);
}

/* -- Collecting ---------------------------------------------------------- */

/* Take the list of the next CPU that has submitted something. */
static bool hwt_intake_refill(struct hwt_wheel *wheel)
{
	struct hwt_intake *intake = &wheel->intake;
	unsigned int cpu;

	cpu = find_next_bit(wheel->active, nr_cpu_ids, intake->cpu + 1);
	if (cpu >= nr_cpu_ids)
		cpu = find_first_bit(wheel->active, nr_cpu_ids);
	if (cpu >= nr_cpu_ids)
		return false;
	intake->cpu = cpu;
	clear_bit(cpu, wheel->active);
	/* Pairs with llist_add() in hwt_push(): an entry that is not taken here was
	 * added after the bit was cleared, and its owner will set it again.
	 */
	smp_mb__after_atomic();
	intake->fresh = llist_del_all(&per_cpu_ptr(wheel->cpu, cpu)->list);
	return true;
}

/* The next submission, oldest of its CPU first; NULL if there is none. */
static struct hwt_timeout *hwt_intake_pop(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	struct hwt_intake *intake = &wheel->intake;
	struct llist_node *node;
	unsigned int n;

	while (!intake->ordered) {
		if (!intake->fresh && !hwt_intake_refill(wheel))
			return NULL;
		for (n = 0; intake->fresh && n < HWT_STEP; n++) {
			node = intake->fresh;
			intake->fresh = node->next;
			node->next = intake->reversed;
			intake->reversed = node;
		}
		if (intake->fresh) {
			hwt_lock_break(wheel);
		} else {
			intake->ordered = intake->reversed;
			intake->reversed = NULL;
		}
	}
	node = intake->ordered;
	/* Now: once QUEUED is dropped, somebody may push it again. */
	intake->ordered = node->next;
	return llist_entry(node, struct hwt_timeout, submit);
}

/**
 * hwt_collect() - settle submissions
 * @wheel:  its lock is held, and is dropped now and then
 * @runner: who collects
 * @max:    at most so many
 *
 * Return: how many it were.
 */
unsigned int hwt_collect(struct hwt_wheel *wheel, struct hwt_runner *runner,
			 unsigned int max)
	__must_hold(&wheel->lock)
{
	struct hwt_timeout *timeout;
	unsigned int n = 0;

	while (n < max && (timeout = hwt_intake_pop(wheel))) {
		hwt_settle_queued(wheel, runner, timeout);
		hwt_count(&wheel->collected, 1);
		if (++n % HWT_STEP == 0)
			hwt_lock_break(wheel);
	}
	if (n && wheel->state == HWT_INIT)
		WRITE_ONCE(wheel->state, HWT_STARTED);
	return n;
}

/* -- Settling ------------------------------------------------------------ */

/* Would the end of this hold call back, and may this runner not do that? */
static bool hwt_must_defer(const struct hwt_runner *runner,
			   const struct hwt_timeout *timeout, u64 word)
{
	if (!runner->only || runner->only == timeout)
		return false;
	return timeout->ops->release ||
	       (timeout->ops->cancelled && (word & HWT_F_CANCELLED));
}

/**
 * hwt_settle_queued() - act on what a collected timeout's word says, and drop QUEUED
 * @wheel:   its lock is held, and is dropped around callbacks
 * @runner:  who collected it
 * @timeout: QUEUED, and on no submission list any more
 *
 * The timeout may be gone afterwards.
 */
void hwt_settle_queued(struct hwt_wheel *wheel, struct hwt_runner *runner,
		       struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	const struct hwt_ops *ops = timeout->ops;
	void (*release)(struct hwt_timeout *timeout) = ops->release;
	u64 old, new;

	if (hwt_linked(timeout))
		hwt_buckets_remove(&wheel->buckets, timeout);
	old = hwt_timeout_word(timeout);
	do {
		new = old & ~HWT_F_QUEUED;
		if (old & (HWT_F_ARMED | HWT_F_RUNNING))
			continue;
		if (hwt_must_defer(runner, timeout, old)) {
			list_add_tail(&timeout->link, &wheel->deferred);
			timeout->deferred = true;
			hwt_wheel_kick(wheel);
			return;
		}
		if ((old & HWT_F_CANCELLED) && ops->cancelled)
			new |= HWT_F_RUNNING;
	} while (!hwt_word_change(timeout, &old, new));

	if (old & HWT_F_RUNNING)
		return;
	if (old & HWT_F_ARMED)
		hwt_buckets_insert(&wheel->buckets, timeout);
	else if (new & HWT_F_RUNNING)
		hwt_settle_running(wheel, runner, timeout, false);
	else
		hwt_call_release(wheel, runner, timeout, release);
}

/**
 * hwt_settle_deferred() - settle a timeout that was left to the engine
 * @wheel:   its lock is held, and is dropped around callbacks
 * @runner:  somebody who may run its callbacks
 * @timeout: the timeout
 *
 * Return: false if it is not deferred.
 */
bool hwt_settle_deferred(struct hwt_wheel *wheel, struct hwt_runner *runner,
			 struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	if (!timeout->deferred)
		return false;
	list_del(&timeout->link);
	timeout->link.next = NULL;
	timeout->deferred = false;
	hwt_settle_queued(wheel, runner, timeout);
	return true;
}

/* The deadline of a periodic timeout whose callback has returned, as a tick. */
static u64 hwt_periodic_next(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
{
	struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);

	if (periodic->run.mode == HWT_FIXED_DELAY)
		WRITE_ONCE(periodic->run.next_ns,
			   hwt_add_ns(hwt_clock_now(wheel), periodic->run.period_ns));
	return hwt_deadline_to_tick(wheel, periodic->run.next_ns);
}

/* A periodic timeout fires: count what was missed, and find the next deadline. */
static void hwt_periodic_begin(struct hwt_wheel *wheel,
			       struct hwt_timeout *timeout, bool first)
{
	struct hwt_periodic *periodic =
		container_of(timeout, struct hwt_periodic, timeout);
	u64 now = hwt_clock_now(wheel), missed = 0, next;

	if (first) {
		/* Reads pair with hwt_schedule_periodic_at(), writes with the queries. */
		WRITE_ONCE(periodic->run.next_ns, READ_ONCE(periodic->set.first_ns));
		WRITE_ONCE(periodic->run.period_ns, READ_ONCE(periodic->set.period_ns));
		WRITE_ONCE(periodic->run.mode, READ_ONCE(periodic->set.mode));
		WRITE_ONCE(periodic->run.total, 0);
	}
	next = periodic->run.next_ns;
	if (periodic->run.mode == HWT_FIXED_RATE) {
		if (now > next && now - next >= periodic->run.period_ns) {
			missed = div64_u64(now - next, periodic->run.period_ns);
			next += missed * periodic->run.period_ns;
		}
		WRITE_ONCE(periodic->run.next_ns,
			   hwt_add_ns(next, periodic->run.period_ns));
	}
	WRITE_ONCE(periodic->run.overruns, missed);
	WRITE_ONCE(periodic->run.total, periodic->run.total + missed);
	hwt_count(&wheel->overruns, missed);
}

/* Tell a timeout that it was cancelled. It is RUNNING meanwhile. */
static void hwt_notify_cancelled(struct hwt_wheel *wheel,
				 struct hwt_runner *runner,
				 struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	void (*cancelled)(struct hwt_timeout *timeout) = timeout->ops->cancelled;
	struct hwt_call call;

	hwt_call_begin(wheel, runner, timeout, cancelled, &call);
	cancelled(timeout);
	hwt_call_end(wheel, runner, timeout, &call);
}

/**
 * hwt_settle_running() - act on what a timeout's word says, and drop RUNNING
 * @wheel:    its lock is held, and is dropped around callbacks
 * @runner:   who set RUNNING
 * @timeout:  RUNNING, and its callback has returned, if there was one
 * @notified: it has been told that it was cancelled
 *
 * The timeout may be gone afterwards.
 */
void hwt_settle_running(struct hwt_wheel *wheel, struct hwt_runner *runner,
			struct hwt_timeout *timeout, bool notified)
	__must_hold(&wheel->lock)
{
	const struct hwt_ops *ops = timeout->ops;
	void (*release)(struct hwt_timeout *timeout) = ops->release;
	u64 old, new;

	for (;;) {
		old = hwt_timeout_word(timeout);
		if (!(old & (HWT_F_PENDING | HWT_F_QUEUED)) && !notified &&
		    (old & HWT_F_CANCELLED) && ops->cancelled) {
			hwt_notify_cancelled(wheel, runner, timeout);
			notified = true;
			continue;
		}
		new = old & ~HWT_F_RUNNING;
		if ((old & HWT_F_PENDING) == HWT_F_REPEAT) {
			new &= (1ULL << HWT_TICK_SHIFT) - 1;
			new |= hwt_periodic_next(wheel, timeout) << HWT_TICK_SHIFT;
			new |= HWT_F_ARMED;
		}
		if (hwt_word_change(timeout, &old, new))
			break;
	}

	if (new & HWT_F_ARMED) {
		hwt_buckets_insert(&wheel->buckets, timeout);
		/* Nobody else did, and this may not be the engine. */
		if (new >> HWT_TICK_SHIFT < (u64)atomic64_read(&wheel->wake_tick))
			hwt_wheel_kick(wheel);
	}
	if (new & HWT_F_HELD)
		release = NULL;
	hwt_call_release(wheel, runner, timeout, release);
}

/* -- Firing -------------------------------------------------------------- */

/* The first of the due list fires, or goes back to where it now belongs. */
static void hwt_fire(struct hwt_wheel *wheel, struct hwt_runner *runner,
		     struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	void (*expire)(struct hwt_timeout *timeout) = timeout->ops->expire;
	u64 old = hwt_timeout_word(timeout), new;
	struct hwt_call call;

	hwt_buckets_remove(&wheel->buckets, timeout);
	do {
		if (!(old & HWT_F_ARMED))
			return;	/* cancelled: settled when it is collected */
		if (old >> HWT_TICK_SHIFT > wheel->buckets.cursor) {
			hwt_buckets_insert(&wheel->buckets, timeout);
			return;	/* pushed back */
		}
		new = old & ~(HWT_F_PENDING | HWT_F_CANCELLED);
		new |= HWT_F_RUNNING | HWT_F_EXPIRED;
		if (old & HWT_F_PERIODIC)
			new |= HWT_F_REPEAT;
	} while (!hwt_word_change(timeout, &old, new));

	hwt_count(&wheel->expired, 1);
	if (!(old & HWT_F_PERIODIC)) {
		hwt_count(&wheel->retired, 1);
		hwt_limit_put(wheel);
	} else {
		hwt_periodic_begin(wheel, timeout, !(old & HWT_F_REPEAT));
	}

	hwt_call_begin(wheel, runner, timeout, expire, &call);
	expire(timeout);
	hwt_call_end(wheel, runner, timeout, &call);
	if (hwt_ns_to_tick(wheel, call.began) >= (old >> HWT_TICK_SHIFT) + 2)
		hwt_count(&wheel->late, 1);
	hwt_settle_running(wheel, runner, timeout, false);
}

static void hwt_engine_fire(struct hwt_wheel *wheel, unsigned int max)
	__must_hold(&wheel->lock)
{
	struct list_head *due = &wheel->buckets.due;
	unsigned int n = 0;

	while (n < max && !list_empty(due) && !wheel->stopping) {
		hwt_fire(wheel, &wheel->engine,
			 list_first_entry(due, struct hwt_timeout, link));
		/* Those that are not due any more do not drop the lock. */
		if (++n % HWT_STEP == 0)
			hwt_lock_break(wheel);
	}
}

/* -- Passes -------------------------------------------------------------- */

/*
 * After a long sleep the cursor is far behind, and what was submitted meanwhile would
 * go to a level too high. Bring it closer, but not so close that what is due within a turn
 * would not be sorted by tick any more.
 */
static void hwt_engine_catch_up(struct hwt_wheel *wheel, u64 now)
{
	u64 turn = 1ULL << wheel->buckets.bits;

	if (now > turn)
		hwt_buckets_skip(&wheel->buckets, now - turn);
}

/* Let the cancelled go when their time has come: then what follows collects them. */
static void hwt_engine_reclaim(struct hwt_wheel *wheel)
{
	u64 now;

	if (!READ_ONCE(wheel->reclaim))
		return;
	now = hwt_clock_now(wheel);
	if (!wheel->reclaim_at) {
		wheel->reclaim_at = now + hwt_reclaim_ms * (u64)NSEC_PER_MSEC;
	} else if (now >= wheel->reclaim_at) {
		wheel->reclaim_at = 0;
		WRITE_ONCE(wheel->reclaim, false);
		/* Pairs with the compare-and-swaps before hwt_reclaim_soon(). */
		smp_mb();
	}
}

static void hwt_engine_pass(struct hwt_wheel *wheel)
{
	struct hwt_runner *runner = &wheel->engine;
	struct hwt_timeout *timeout;
	unsigned int collected, n;
	u64 now;

	/* Awake: nobody needs to wake it, it will look before it sleeps. */
	atomic64_set(&wheel->wake_tick, 0);
	WRITE_ONCE(wheel->kicked, false);
	/* Pairs with the barriers before and in hwt_wheel_kick(): whoever wants a
	 * kick that is swallowed here has submitted before, and is found below.
	 */
	smp_mb();

	runner->stamp = 0;
	spin_lock(&wheel->lock);
	hwt_count(&wheel->passes, 1);
	now = hwt_ns_to_tick(wheel, hwt_clock_now(wheel));
	hwt_engine_reclaim(wheel);
	for (n = 1; !wheel->stopping && !list_empty(&wheel->deferred); n++) {
		timeout = list_first_entry(&wheel->deferred, struct hwt_timeout, link);
		hwt_settle_deferred(wheel, runner, timeout);
		if (n % HWT_STEP == 0)
			hwt_lock_break(wheel);
	}
	hwt_engine_catch_up(wheel, now);
	collected = hwt_collect(wheel, runner, HWT_COLLECT_MAX);
	for (n = 0; n < HWT_ADVANCE_MAX / HWT_STEP && !wheel->stopping &&
	     !hwt_buckets_advance(&wheel->buckets, now, HWT_STEP); n++)
		hwt_lock_break(wheel);
	/* Who submits a lot does not keep others from firing. */
	hwt_engine_fire(wheel, max_t(unsigned int, collected, HWT_FIRE_MAX));
	spin_unlock(&wheel->lock);
}

/* The tick until which the engine has nothing to do, as far as it has collected. */
static u64 hwt_engine_target(struct hwt_wheel *wheel)
{
	u64 tick;

	if (wheel->stopping)
		return HWT_TICK_NEVER;
	if (!list_empty(&wheel->deferred) || !list_empty(&wheel->buckets.due))
		return 0;
	tick = hwt_buckets_next_tick(&wheel->buckets);
	if (wheel->reclaim_at)
		tick = min(tick, hwt_deadline_to_tick(wheel, wheel->reclaim_at));
	return tick;
}

/* @tick is not the one that never comes if there is something to reclaim. */
static void hwt_engine_wait(struct hwt_wheel *wheel, u64 tick)
{
	u64 reclaim_at = wheel->reclaim_at;	/* its own */
	ktime_t expires = ns_to_ktime(tick * wheel->tick_ns);

	/* A tick may be an hour: the cancelled do not wait for it. */
	if (reclaim_at)
		expires = min(expires, ns_to_ktime(reclaim_at));
	/* Pairs with hwt_wheel_kick(): sees the kick, or is seen to sleep. */
	set_current_state(TASK_IDLE);
	if (!READ_ONCE(wheel->kicked) && !kthread_should_stop()) {
		if (tick == HWT_TICK_NEVER)
			schedule();
		else
			schedule_hrtimeout_range_clock(&expires, 0,
						       HRTIMER_MODE_ABS,
						       wheel->clock == HWT_CLOCK_BOOTTIME ?
						       CLOCK_BOOTTIME : CLOCK_MONOTONIC);
		hwt_count(&wheel->wakeups, 1);
	}
	__set_current_state(TASK_RUNNING);
}

/*
 * Sleep until there is something to do. Submitters wake the engine for what comes
 * before the tick it has published; so it publishes, counts sleep_seq up, and only then
 * looks at the submission lists a last time. Either that look finds an entry, or
 * whoever pushes it finds what was published. Only an earlier tick may be published
 * after that: a later one would leave out those who have already compared.
 *
 * sleep_seq is for an entry that somebody has claimed and not yet pushed when the engine
 * looks: if another one then makes it earlier and wakes the engine in vain, the
 * pusher finds that the number has changed, and wakes it again.
 */
static void hwt_engine_sleep(struct hwt_wheel *wheel)
{
	unsigned int collected = 0;
	u64 tick, published;

	spin_lock(&wheel->lock);
	published = hwt_engine_target(wheel);
	spin_unlock(&wheel->lock);
	if (published <= hwt_ns_to_tick(wheel, hwt_clock_now(wheel))) {
		cond_resched();
		return;
	}

	atomic64_set(&wheel->wake_tick, published);
	WRITE_ONCE(wheel->sleep_seq, wheel->sleep_seq + 1);
	/* Pairs with the barriers in hwt_push() and with the compare-and-swap of a
	 * schedule that finds QUEUED set.
	 */
	smp_mb();

	wheel->engine.stamp = 0;
	spin_lock(&wheel->lock);
	if (!wheel->stopping)
		collected = hwt_collect(wheel, &wheel->engine, HWT_COLLECT_MAX);
	tick = collected < HWT_COLLECT_MAX ? hwt_engine_target(wheel) : 0;
	spin_unlock(&wheel->lock);
	if (tick < published)
		atomic64_set(&wheel->wake_tick, tick);
	tick = min(tick, published);

	if (tick > hwt_ns_to_tick(wheel, hwt_clock_now(wheel)))
		hwt_engine_wait(wheel, tick);
	else
		cond_resched();
}

static int hwt_engine_thread(void *arg)
{
	struct hwt_wheel *wheel = arg;

	while (!kthread_should_stop()) {
		hwt_engine_pass(wheel);
		hwt_engine_sleep(wheel);
	}
	return 0;
}

/**
 * hwt_engine_start() - make a wheel's thread
 * @wheel: the wheel, complete but for this
 *
 * It runs at once, to wait in TASK_IDLE: a thread that was made and never woken counts
 * as load and is taken for hung.
 *
 * Return: 0 or a negative error.
 */
int hwt_engine_start(struct hwt_wheel *wheel)
{
	struct task_struct *thread;

	thread = kthread_create(hwt_engine_thread, wheel, "%s", wheel->name);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	wheel->thread = get_task_struct(thread);
	wheel->engine.task = thread;
	list_add(&wheel->engine.entry, &wheel->runners);
	wake_up_process(thread);
	return 0;
}
