// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads, each with timeouts of its own: calls that only the owner may make, and the entries of
 * the ledger that only the owner can know. torture_ledger.c has the rules.
 */
#include "torture.h"

#include <linux/sched/debug.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

struct tt_thread {
	struct task_struct	*task;
	unsigned int		number;
	unsigned int		generation;	/* tt_wheels_generation() at the last sweep */
	struct rnd_state	rnd;
	struct tt_item		**own;		/* its timeouts */
	unsigned long		steps;
	/* For tt_threads_look(): the last number of steps, and when it was seen first. */
	unsigned long		seen;
	u64			since;
};

static struct tt_thread *tt_thread;

/*
 * Return true if no callback of an earlier arming can be executing. @word is the state before the
 * schedule, with HWT_F_RUNNING if hwt_running() was true then, @ret the result of the schedule.
 * Only the caller arms the timeout: a one-shot that did not run then, and was still pending at the
 * schedule, has not begun in between. A periodic timeout may have. On a BH wheel, the hold ends
 * before the callback, so a new one tells nothing.
 */
static bool tt_is_clean(const struct tt_item *item, u64 word, int ret)
{
	if ((!ret && !tt_is_bh(item->wheel)) || !(word & (HWT_F_RUNNING | HWT_F_PENDING)))
		return true;
	if (!(ret & HWT_WAS_PENDING) || item->kind != TT_SHOT)
		return false;
	return READ_ONCE(item->clean) || !(word & HWT_F_RUNNING);
}

/* Schedule a TT_SHOT or TT_BEAT, and update its floor. */
static int tt_own_arm_exact(struct tt_item *item, enum tt_op op, u64 delay, u64 extra,
			    unsigned int mode)
{
	bool at = tt_op_is_at(op), was_shut = item->shut, unknown, known;
	u64 was = item->floor, deadline, floor, word;
	unsigned int begun = tt_wall_begin();
	int ret;

	deadline = tt_add(tt_op_now(op, item->wheel), delay);
	/* A set of the wall clock moves the deadline of a delay, and those after a period. */
	unknown = tt_realtime(item->wheel) && (!at || item->kind == TT_BEAT);
	word = hwt_timeout_state(tt_timeout(item));
	if (hwt_running(tt_timeout(item)))
		word |= HWT_F_RUNNING;
	floor = word & HWT_F_HELD ? min(item->base, deadline) : deadline;
	WRITE_ONCE(item->shut, false);
	WRITE_ONCE(item->floor, unknown ? 0 : floor);
	if (item->kind == TT_BEAT) {
		WRITE_ONCE(item->turn, item->turn + 1);
		/* Pairs with tt_check_beat(): a reader of the new values sees the odd turn. */
		smp_wmb();
		WRITE_ONCE(item->first, deadline);
		WRITE_ONCE(item->period, extra);
		WRITE_ONCE(item->mode, mode);
	}

	ret = tt_arm(item, op, at ? deadline : delay, extra, mode);

	if (item->kind == TT_BEAT) {
		/* Refused: a pending timeout continues with the period of an earlier schedule. */
		if (ret < 0)
			WRITE_ONCE(item->mode, TT_NO_RHYTHM);
		/* Pairs with tt_check_beat(): a reader of the even turn sees the new values. */
		smp_wmb();
		WRITE_ONCE(item->turn, item->turn + 1);
	}
	if (ret < 0) {
		WRITE_ONCE(item->floor, was);
		WRITE_ONCE(item->shut, was_shut);
		return ret;
	}
	known = !unknown || (item->kind != TT_BEAT && !tt_wall_changed(begun));
	WRITE_ONCE(item->clean, tt_is_clean(item, word, ret));
	if (item->clean && known) {
		floor = deadline;
		if (tt_op_is_earlier(op) && (ret & HWT_WAS_PENDING))
			floor = min(item->base, deadline);
		WRITE_ONCE(item->floor, floor);
	}
	item->base = item->floor;
	return ret;
}

/*
 * Touch a TT_SHOT or TT_BEAT. A touch may be lost, but not if it is over before the deadline. A
 * further touch takes its place, so first lower the floor.
 */
static void tt_own_touch(struct tt_item *item, struct rnd_state *rnd)
{
	struct hwt_wheel *wheel = item->wheel->wheel;
	u64 deadline = tt_add(hwt_wheel_now(wheel), tt_random_delay(rnd, 0));

	WRITE_ONCE(item->floor, item->base);
	tt_touch(item, deadline);
	/* The engine reads the time of the touch after its clock has come to the deadline. */
	smp_mb();
	if (item->clean && !tt_realtime(item->wheel) && hwt_wheel_now(wheel) < item->base)
		WRITE_ONCE(item->floor, max(item->base, deadline));
}

/* The owner has found that the timeout is not pending, and that no callback is executing. */
static void tt_own_shut(struct tt_item *item)
{
	WRITE_ONCE(item->shut, true);
	WRITE_ONCE(item->floor, U64_MAX);
	item->base = U64_MAX;
	WRITE_ONCE(item->clean, true);
}

static unsigned int tt_slot(const struct tt_thread *thread, unsigned int n)
{
	return thread->number * tt_timeouts + n;
}

static void tt_own_new(struct tt_thread *thread, unsigned int n)
{
	struct rnd_state *rnd = &thread->rnd;
	struct tt_wheel *wheel = tt_wheel_get(rnd);
	enum tt_kind kind = tt_pick(rnd, TT_ONCE);
	struct tt_item *item;

	if (!wheel)
		return;
	item = tt_item_new(wheel, kind, tt_one_in(rnd, 6), rnd);
	tt_wheel_put(wheel);
	if (!item)
		return;
	item->private = tt_one_in(rnd, 5);
	thread->own[n] = item;
	if (!item->private)
		tt_item_publish(tt_slot(thread, n), item);
}

/* Drop a timeout: shut it down, cancel it, or leave it pending. */
static void tt_own_drop(struct tt_thread *thread, unsigned int n)
{
	struct tt_item *item = thread->own[n];
	bool leave;

	thread->own[n] = NULL;
	tt_item_publish(tt_slot(thread, n), NULL);
	/* A timeout that ends soon, by itself or with its wheel, may be left pending. */
	leave = READ_ONCE(item->wheel->leaving) || hwt_remaining(tt_timeout(item)) < KT_SECOND;
	switch (tt_pick(&thread->rnd, leave ? 6 : 3)) {
	case 0:
		tt_shutdown_sync(item);
		break;
	case 1:
		tt_cancel(item);
		break;
	case 2:
		/* No other context uses a private one, so its memory is the owner's. */
		if (tt_delete(item, TT_TRY_DELETE) >= 0 && item->private)
			item->idle = true;
		else
			tt_cancel(item);
		break;
	default:
		/* A periodic timeout would not end. */
		if (item->kind == TT_BEAT || item->kind == TT_MIXED)
			tt_cancel(item);
	}
	tt_item_return(item);
}

/* Drop the timeouts of wheels that are leaving. */
static void tt_sweep(struct tt_thread *thread)
{
	unsigned int generation = tt_wheels_generation(), n;

	if (generation == thread->generation)
		return;
	thread->generation = generation;
	for (n = 0; n < tt_timeouts; n++)
		if (thread->own[n] && READ_ONCE(thread->own[n]->wheel->leaving))
			tt_own_drop(thread, n);
}

static void tt_own_arm(struct tt_thread *thread, struct tt_item *item)
{
	static const enum tt_op shots[] = {
		TT_AFTER, TT_AFTER, TT_AFTER, TT_AT, TT_AT, TT_AFTER_SLACK, TT_AT_SLACK,
		TT_EARLIER, TT_EARLIER_AT, TT_MOVE, TT_MOVE_AT,
	};
	struct rnd_state *rnd = &thread->rnd;
	u64 delay, rest, period = KT_MS / 4 + (tt_random(rnd) >> (6 + tt_pick(rnd, 6)));
	unsigned int mode = tt_is_bh(item->wheel) || tt_pick(rnd, 2) ? HWT_MODE_FIXED_RATE :
								       HWT_MODE_FIXED_DELAY;
	enum tt_op op;

	if (tt_exact(item) && tt_one_in(rnd, 6)) {
		tt_own_touch(item, rnd);
		return;
	}
	/* Use the memory again, while the callback that has ended the hold may still return. */
	if (item->private && tt_exact(item) && item->counted && !atomic_read(&item->open) &&
	    tt_one_in(rnd, 2))
		tt_renew(item);
	switch (item->kind) {
	case TT_BEAT:
		op = TT_PERIODIC + tt_pick(rnd, 2);
		div64_u64_rem(tt_random_delay(rnd, 0), 100 * KT_MS, &rest);
		tt_own_arm_exact(item, op, rest, period, mode);
		break;
	case TT_MIXED:
		if (tt_one_in(rnd, 3)) {
			/* Give up the floor: all actors arm the timeout, and it is periodic. */
			delay = item->least + tt_random(rnd) / 64;
			WRITE_ONCE(item->floor, 0);
			tt_arm(item, TT_PERIODIC, delay, period, mode);
			break;
		}
		fallthrough;
	case TT_CROWD:
		tt_act(item, rnd, true, NULL);
		break;
	default:
		op = shots[tt_pick(rnd, ARRAY_SIZE(shots))];
		tt_own_arm_exact(item, op, tt_random_delay(rnd, 0), tt_random(rnd) >> 8, mode);
	}
}

static void tt_own_cancel(struct tt_thread *thread, struct tt_item *item)
{
	enum tt_op op = TT_CANCEL + tt_pick(&thread->rnd, 4);
	int ret = op == TT_CANCEL ? tt_cancel(item) :
		  op == TT_TRY_CANCEL ? tt_try_cancel(item) : tt_delete(item, op);
	/* It was pending, and no callback was executing. */
	bool shut = op != TT_CANCEL && ret == HWT_WAS_PENDING;

	/* On a BH wheel, a callback of an earlier arming may be executing. */
	if (op == TT_DELETE && tt_is_bh(item->wheel))
		shut = shut && item->kind == TT_SHOT && item->clean;
	/* It was not pending, and no release is owed. */
	if (op == TT_TRY_DELETE && ret == 0 && !item->ops->release)
		shut = true;
	if (!shut || !tt_exact(item))
		return;
	tt_own_shut(item);
	if (op < TT_DELETE)
		return;
	if (atomic_read(&item->inside) || hwt_held(tt_timeout(item)))
		tt_fail(TT_SYNC, item, "%s says %d, and it is in use", tt_op_name[op], ret);
	if (item->private && !atomic_read(&item->open))
		tt_renew(item);
}

static void tt_own_sync(struct tt_thread *thread, struct tt_item *item)
{
	int ret;

	if (!tt_exact(item) && !tt_may_wait(item, true, NULL))
		return;
	/* Use the memory again at once. */
	if (item->private && tt_exact(item) && tt_one_in(&thread->rnd, 4)) {
		tt_shutdown_sync(item);
		ret = hwt_schedule(tt_timeout(item), 0);
		if (ret != -ESHUTDOWN)
			tt_fail(TT_ANSWER, item, "shut down, and a schedule returned %d", ret);
		/* A stopped wheel counts this schedule as rejected. */
		atomic_inc(&item->n[TT_N_CLOSED]);
		tt_own_shut(item);
		tt_init(item);
		return;
	}
	ret = tt_cancel_sync(item);
	if (ret >= 0 && tt_exact(item))
		tt_own_shut(item);
}

/* Wait for the timeout, or flush its wheel. */
static void tt_own_wait(struct tt_thread *thread, struct tt_item *item)
{
	struct tt_wheel *wheel = item->wheel;
	int ret;

	if (item->kind != TT_SHOT || READ_ONCE(wheel->leaving))
		return;
	if (tt_one_in(&thread->rnd, 2)) {
		tt_own_arm_exact(item, TT_AFTER, tt_random(&thread->rnd) >> 10, 0, 0);
		tt_wait(item, tt_random(&thread->rnd) >> 8);
		return;
	}
	/* The wall clock may be set back, and then the timeout is not due. */
	if (tt_realtime(wheel))
		return;
	/* A callback of an earlier arming may be executing, and checks these. */
	WRITE_ONCE(item->floor, 0);
	item->base = 0;
	WRITE_ONCE(item->shut, false);
	WRITE_ONCE(item->clean, false);
	if (tt_arm(item, TT_AT, 0, 0, HWT_MODE_FIXED_RATE) < 0)
		return;
	ret = tt_flush(wheel);
	if (!ret && hwt_pending(tt_timeout(item)))
		tt_fail(TT_SYNC, item, "flush has returned, and a due timeout is pending");
}

static void tt_strange(struct tt_thread *thread)
{
	if (tt_nmi && tt_one_in(&thread->rnd, 8))
		tt_nmi_point();
	tt_act_any(&thread->rnd, true);
}

/*
 * Schedule a TT_ONCE. No other call is made for it but touches: one before, which must have no
 * effect, and one after. So only hwt can cause a late release.
 */
static void tt_once(struct tt_thread *thread)
{
	static const enum tt_op ops[] = { TT_AFTER, TT_AT, TT_AFTER_SLACK, TT_AT_SLACK };
	struct rnd_state *rnd = &thread->rnd;
	struct tt_wheel *wheel = tt_wheel_get(rnd);
	enum tt_op op = ops[tt_pick(rnd, ARRAY_SIZE(ops))];
	struct tt_item *item;
	u64 delay, slack, deadline, touched;
	bool at = tt_op_is_at(op);

	if (!wheel)
		return;
	item = tt_items_plenty() || !wheel->counted ? NULL :
	       tt_item_new(wheel, TT_ONCE, false, rnd);
	if (item) {
		/* Due soon, because it is never cancelled. */
		delay = tt_one_in(rnd, 4) ? 0 : tt_random(rnd) >> 6;
		deadline = tt_add(tt_op_now(op, wheel), delay);
		item->floor = tt_realtime(wheel) && !at ? 0 : deadline;
		slack = tt_random(rnd) >> 8;
		touched = tt_random(rnd) >> 6;
		if (!tt_realtime(wheel) || !tt_clock_ms)
			item->due = ktime_get_ns() + max(delay + slack, touched);
		touched += hwt_wheel_now(wheel->wheel);
		hwt_touch(tt_timeout(item), U64_MAX);
		refcount_inc(&item->refs);
		tt_arm_once(item, op, at ? deadline : delay, slack);
		if (tt_one_in(rnd, 2))
			tt_touch(item, touched);
		tt_item_put(item);
	}
	tt_wheel_put(wheel);
}

static enum tt_mix_part tt_pick_part(struct rnd_state *rnd)
{
	unsigned int part, pick = tt_pick(rnd, tt_mix_sum());

	for (part = 0; pick >= tt_mix[part]; part++)
		pick -= tt_mix[part];
	return part;
}

static void tt_thread_step(struct tt_thread *thread)
{
	unsigned int n = tt_pick(&thread->rnd, tt_timeouts);
	struct tt_item *item = thread->own[n];

	if (item && READ_ONCE(item->wheel->leaving) && !tt_one_in(&thread->rnd, 4)) {
		tt_own_drop(thread, n);
		return;
	}
	if (!item) {
		tt_own_new(thread, n);
		return;
	}
	this_cpu_write(tt_busy_with, tt_slot(thread, n));
	switch (tt_pick_part(&thread->rnd)) {
	case TT_MIX_ARM:
		tt_own_arm(thread, item);
		break;
	case TT_MIX_CANCEL:
		tt_own_cancel(thread, item);
		break;
	case TT_MIX_SYNC:
		tt_own_sync(thread, item);
		break;
	case TT_MIX_STRANGE:
		tt_strange(thread);
		break;
	case TT_MIX_LIFE:
		tt_own_drop(thread, n);
		break;
	case TT_MIX_ONCE:
		tt_once(thread);
		break;
	case TT_MIX_WAIT:
		tt_own_wait(thread, item);
		break;
	default:
		tt_query(item);
	}
}

static int tt_thread_main(void *arg)
{
	struct tt_thread *thread = arg;
	unsigned int n = 0, random;

	while (!kthread_should_stop()) {
		/* The CPU may have been offline in between. */
		if (n++ % 4096 == 0)
			tt_stay_on(thread->number);
		tt_sweep(thread);
		if (tt_ending()) {
			/* Only tt_sweep() goes on: wheels that are leaving need it. */
			usleep_range(500, 1000);
			continue;
		}
		tt_thread_step(thread);
		WRITE_ONCE(thread->steps, thread->steps + 1);
		tt_count(TT_STEP);
		random = tt_random(&thread->rnd);
		if (random % 64 == 0)
			cond_resched();
		else if (random % 2048 == 1)
			usleep_range(1, 5000);
	}
	for (n = 0; n < tt_timeouts; n++)
		if (thread->own[n])
			tt_own_drop(thread, n);
	return 0;
}

/* Report threads that are stuck, in a _sync or a flush. Called by the main thread. */
void tt_threads_look(void)
{
	struct tt_thread *thread;
	u64 now = ktime_get_ns();
	unsigned long steps;
	unsigned int n;

	for (n = 0; n < tt_threads; n++) {
		thread = &tt_thread[n];
		steps = READ_ONCE(thread->steps);
		if (!thread->since || steps != thread->seen) {
			thread->seen = steps;
			thread->since = now;
		} else if (now - thread->since > 2 * tt_patience * KT_SECOND) {
			thread->since = now;
			tt_fail(TT_LOST, NULL, "thread %u, pid %d, is stuck since its step %lu", n,
				thread->task->pid, steps);
			sched_show_task(thread->task);
		}
	}
}

int tt_threads_start(void)
{
	struct tt_thread *thread;
	unsigned int n;

	tt_thread = kcalloc(tt_threads, sizeof(*tt_thread), GFP_KERNEL);
	if (!tt_thread)
		return -ENOMEM;
	for (n = 0; n < tt_threads; n++) {
		thread = &tt_thread[n];
		thread->number = n;
		tt_seed_for(&thread->rnd, 100 + n);
		thread->own = kvcalloc(tt_timeouts, sizeof(*thread->own), GFP_KERNEL);
		if (!thread->own)
			return -ENOMEM;
		thread->task = tt_run(tt_thread_main, thread, "thread", n);
		if (IS_ERR(thread->task))
			return PTR_ERR(thread->task);
	}
	return 0;
}

void tt_threads_stop(void)
{
	unsigned int n;

	for (n = 0; tt_thread && n < tt_threads; n++) {
		tt_stop(tt_thread[n].task);
		kvfree(tt_thread[n].own);
	}
	kfree(tt_thread);
	tt_thread = NULL;
}
