// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger of a timeout
 *
 * Every call of hwt and every callback goes through this file. No lock is taken around a call.
 * Instead, the ledger books all possible effects of a call before it, and takes back afterwards
 * those that did not occur. So each rule holds at any instant, and a count below zero is always a
 * fault. The rules are from hwt.h. A cancel hits if it finds the timeout pending.
 *
 * Booked before a schedule:
 *
 *   credit    Ends to come. Taken back if the schedule fails or returns HWT_WAS_PENDING. Each
 *             ->expire of a one-shot, cancel that hits, and hand-back uses one up.
 *   open      Holds, each with a reference to the item, as hwt.h demands. Taken back if the
 *             schedule fails or returns HWT_WAS_HELD. Each ->release and each delete that gives the
 *             timeout back uses one up; on a BH wheel also each ->expire, hand-back and _sync that
 *             hits.
 *
 * Booked before a cancel, taken back if it does not hit, or gives the timeout back:
 *
 *   notice    Calls of ->cancelled to come. Each call uses one up.
 *
 * hwt_delete() on a thread wheel may cancel a timeout whose callback is executing, and then returns
 * false. If a callback may have been executing:
 *
 *   vague     One is added. The notice is not taken back, and so much credit may be left.
 *
 * At any time:
 *
 *   credit >= 0    The timeout fires at most once for each arming, and not after a cancel that hit.
 *   open >= 0      It is released at most once for each hold.
 *   notice >= 0    ->cancelled is called for a cancel only (TT_SHOT, TT_BEAT, TT_ONCE: a _sync of
 *                  another kind may cancel several times, and returns once). A stop without a
 *                  function calls ->cancelled, too: a call without a notice uses up credit.
 *   inside <= 1    One of ->expire, ->cancelled and the function of a stop is executing, in
 *                  process context (on a BH wheel with bottom halves off), with interrupts on, and
 *                  hwt_running() is true.
 *   ends >= released + spare   Each hold ends by firing, by a hand-back, or by ->cancelled, if
 *                  there is one. A hold with two ends would hide a hold with none: the owner makes
 *                  the two sides equal after a _sync.
 *   open >= 2      In a release while a callback is executing: the callback is of a later hold.
 *   due            TT_ONCE, on a clock that is not set: its hold ends at most tt_patience s
 *                  later.
 *
 * When the timeout may fire (by the wheel's clock at the beginning of ->expire):
 *
 *   floor     Not before this time. The owner of a TT_SHOT or TT_BEAT lowers it before a schedule,
 *             and raises it afterwards if no callback of an earlier arming can be executing
 *             (@clean). TT_CROWD, TT_MIXED: the least of all deadlines. When the wall clock is set
 *             back, as many callbacks as the wheel has threads may still be early. A touch that is
 *             over before the floor comes cannot be lost, and the owner raises the floor.
 *   shut      Not before it is armed again: the owner has cancelled it while no callback executed.
 *   In ->expire, if the state has EXPIRED and not ARMED, its tick has begun. At a fixed rate,
 *   firings and overruns are not more than the periods that have begun; at a fixed delay, a period
 *   has passed since the last callback returned.
 *
 * After a call of the owner, if only the owner arms the timeout:
 *
 *   _sync     Nothing is executing, nothing is held, open is 0 (but for the holds that deletes of
 *             other actors have been given, and not booked yet).
 *   delete    true, or try_delete not negative: nothing is executing (a delete on a BH wheel: of
 *             this arming), nothing is held. The owner may poison and initialise the timeout at
 *             once.
 *   shutdown  For all kinds: nothing is executing or held; the next schedule is refused.
 *   wait      Not pending, unless it returns -ETIME.
 *   flush     A timeout that was scheduled for a tick that had begun is not pending.
 *
 * At the end: open 0, inside 0, credit 0. Credit may be 1 if a stop without a function may have
 * taken the timeout, and more for a TT_MIXED, whose periodic firings use up none, and for a
 * TT_CROWD that a _sync may have cancelled several times. The memory stays poisoned from the last
 * reference until an RCU grace period has passed. torture_wheel.c has the rules for wheels.
 */
#include "torture.h"

#include <linux/hardirq.h>
#include <linux/irqflags.h>
#include <linux/timekeeping.h>

static const char * const context_name[] = { "task", "irq", "nmi" };

static unsigned int tt_context(void)
{
	return in_nmi() ? 2 : in_hardirq() ? 1 : 0;
}

static void tt_note(struct tt_item *item, enum tt_op op, u64 began, u64 arg, long result)
{
	struct tt_event *event;
	unsigned int n;

	tt_count(op);
	n = atomic_fetch_inc_relaxed(&item->events);
	event = &item->history[n % TT_HISTORY];
	WRITE_ONCE(event->began, began);
	WRITE_ONCE(event->ended, ktime_get_mono_fast_ns());
	WRITE_ONCE(event->arg, arg);
	WRITE_ONCE(event->word, hwt_timeout_state(tt_timeout(item)));
	WRITE_ONCE(event->result, result);
	WRITE_ONCE(event->pid, current->pid);
	WRITE_ONCE(event->cpu, raw_smp_processor_id());
	WRITE_ONCE(event->op, op);
	WRITE_ONCE(event->context, tt_context());
}

/* Is the wheel being stopped? For a caller to which hwt has returned -ESHUTDOWN. */
static bool tt_is_leaving(const struct tt_wheel *wheel)
{
	/* Pairs with tt_wheel_stop(): a caller that finds the wheel stopped sees @leaving. */
	smp_rmb();
	return READ_ONCE(wheel->leaving);
}

static void tt_answer_arm(struct tt_item *item, enum tt_op op, int ret)
{
	bool move = op == TT_MOVE || op == TT_MOVE_AT;

	if (ret >= 0) {
		if (ret & ~(HWT_WAS_PENDING | HWT_WAS_HELD) || ret == HWT_WAS_PENDING ||
		    (move && !(ret & HWT_WAS_PENDING)))
			tt_fail(TT_ANSWER, item, "%s returned %d", tt_op_name[op], ret);
		atomic_inc(&item->n[!(ret & HWT_WAS_PENDING) ? TT_N_ARMED :
				    tt_op_is_earlier(op) ? TT_N_KEPT : TT_N_REARMED]);
	} else if (ret == -ESHUTDOWN) {
		atomic_inc(&item->n[TT_N_CLOSED]);
		if (!tt_is_leaving(item->wheel) &&
		    !(hwt_timeout_state(tt_timeout(item)) & HWT_F_SHUTDOWN))
			tt_fail(TT_ANSWER, item, "%s returned -ESHUTDOWN, and nothing is stopped",
				tt_op_name[op]);
	} else if (ret == -EAGAIN && item->wheel->params.max_pending) {
		atomic_inc(&item->n[TT_N_AGAIN]);
	} else if (ret != -ENOENT || !move) {
		tt_fail(TT_ANSWER, item, "%s says %d", tt_op_name[op], ret);
	}
}

static int tt_call(struct tt_item *item, enum tt_op op, u64 ns, u64 extra,
		   unsigned int mode)
{
	struct hwt_timeout *timeout = tt_timeout(item);

	switch (op) {
	case TT_AFTER:
		return hwt_schedule(timeout, ns);
	case TT_AT:
		return hwt_schedule_at(timeout, ns);
	case TT_AFTER_SLACK:
		return hwt_schedule_slack(timeout, ns, extra);
	case TT_AT_SLACK:
		return hwt_schedule_flags(timeout, ns, extra, HWT_SCHEDULE_AT);
	case TT_EARLIER:
		return hwt_schedule_earlier(timeout, ns);
	case TT_EARLIER_AT:
		return hwt_schedule_flags(timeout, ns, 0, KT_EARLIER_AT);
	case TT_MOVE:
		return hwt_schedule_pending(timeout, ns);
	case TT_MOVE_AT:
		return hwt_schedule_pending_at(timeout, ns);
	case TT_PERIODIC:
		return hwt_schedule_periodic(&item->periodic, ns, extra, mode);
	default:
		return hwt_schedule_periodic_at(&item->periodic, ns, extra, mode);
	}
}

/*
 * Schedule a timeout of which the caller is a user; @ns: delay or deadline, @extra: slack or
 * period. Any context. Return the result of the hwt function.
 */
int tt_arm(struct tt_item *item, enum tt_op op, u64 ns, u64 extra, unsigned int mode)
{
	u64 began = ktime_get_mono_fast_ns();
	int ret;

	if (item->counted) {
		refcount_inc(&item->refs);
		atomic_inc(&item->open);
		atomic_inc(&item->wheel->holds);
	}
	atomic_inc(&item->credit);

	ret = tt_call(item, op, ns, extra, mode);

	if (ret < 0 || ret & HWT_WAS_PENDING)
		atomic_dec(&item->credit);
	if (item->counted && (ret < 0 || ret & HWT_WAS_HELD)) {
		atomic_dec(&item->wheel->holds);
		atomic_dec(&item->open);
		tt_item_put(item);
	}
	tt_answer_arm(item, op, ret);
	tt_note(item, op, began, ns, ret);
	return ret;
}

/*
 * Schedule a TT_ONCE, which only the caller knows. It may be freed before the hwt function returns.
 * The caller has its wheel from tt_wheel_get(). Any context.
 */
int tt_arm_once(struct tt_item *item, enum tt_op op, u64 ns, u64 extra)
{
	struct tt_wheel *wheel = item->wheel;
	int ret;

	/* The reference of the users becomes that of the hold. */
	refcount_set(&item->users, 0);
	atomic_dec(&wheel->users);
	atomic_set(&item->open, 1);
	atomic_inc(&wheel->holds);
	atomic_set(&item->credit, 1);
	atomic_set(&item->n[TT_N_ARMED], 1);
	tt_count(op);

	ret = tt_call(item, op, ns, extra, HWT_MODE_FIXED_RATE);
	if (ret > 0)
		tt_fail(TT_ANSWER, NULL, "first %s says %d", tt_op_name[op], ret);
	if (ret < 0) {
		atomic_dec(&item->n[TT_N_ARMED]);
		tt_answer_arm(item, op, ret);
		atomic_dec(&item->credit);
		atomic_dec(&wheel->holds);
		atomic_dec(&item->open);
		tt_item_put(item);
	}
	return ret;
}

/* Book the end of an arming. */
static void tt_use_credit(struct tt_item *item, const char *how)
{
	if (atomic_dec_return(&item->credit) < 0)
		tt_fail(TT_TWICE, item, "%s more often than armed", how);
}

/*
 * Book a call of ->cancelled, or take a notice back. A call without a notice is a hand-back of a
 * stop that was given no function.
 */
static void tt_use_notice(struct tt_item *item)
{
	if (!tt_exact(item) || atomic_dec_return(&item->notice) >= 0)
		return;
	atomic_inc(&item->notice);
	if (!READ_ONCE(item->wheel->muted)) {
		tt_fail(TT_SILENT, item, "->cancelled without a cancel");
		return;
	}
	atomic_inc(&item->n[TT_N_HANDED]);
	tt_use_credit(item, "handed back");
}

/* Book the end of a hold, and put its reference. */
static void tt_close(struct tt_item *item)
{
	u64 now = ktime_get_mono_fast_ns();

	if (now > item->due && now - item->due > tt_patience * KT_SECOND)
		tt_fail(TT_LOST, item, "its hold ended %llu ms late",
			div_u64(now - item->due, NSEC_PER_MSEC));
	if (atomic_dec_return(&item->open) < 0) {
		tt_fail(TT_HOLD, item, "its hold ended, and it was not held");
		return;		/* there is no reference to put */
	}
	atomic_dec(&item->wheel->holds);
	tt_item_put(item);
}

/* A timeout of a BH wheel whose holds have references, although it has no ->release. */
static bool tt_is_lent(const struct tt_item *item)
{
	return item->counted && !item->ops->release;
}

/* Is this a context in which hwt_delete() may be called? */
static bool tt_may_delete(void)
{
	return !in_nmi() && (!IS_ENABLED(CONFIG_PREEMPT_RT) || preemptible());
}

/*
 * May the caller wait for callbacks of the timeout by a _sync? @self: the timeout in whose callback
 * the caller is, or NULL: no two callbacks wait for each other. On PREEMPT_RT, a wait for a
 * callback of a BH wheel takes a lock of the wheel, in the order of the wheels.
 */
bool tt_may_wait(const struct tt_item *item, bool may_sleep, const struct tt_item *self)
{
	if (self && self->id >= item->id)
		return false;
	if (!tt_is_bh(item->wheel))
		return may_sleep;
	if (self && IS_ENABLED(CONFIG_PREEMPT_RT) && tt_is_bh(self->wheel) &&
	    self->wheel->id >= item->wheel->id)
		return false;
	/* Several holds may end, and the _sync gives back only one reference. */
	return tt_may_delete() && !in_hardirq() && !tt_is_lent(item);
}

static int tt_end(struct tt_item *item, enum tt_op op)
{
	bool sync = op == TT_CANCEL_SYNC || op == TT_SHUTDOWN, bh = tt_is_bh(item->wheel);
	bool delete = op == TT_DELETE || op == TT_TRY_DELETE, off, busy, hit, given;
	struct hwt_timeout *timeout = tt_timeout(item);
	u64 began = ktime_get_mono_fast_ns();
	unsigned long flags = 0;
	int ret, ends;

	/* Sometimes with interrupts off, where that is allowed. */
	off = !IS_ENABLED(CONFIG_PREEMPT_RT) && (bh || !sync) &&
	      atomic_read(&item->events) % 4 == 0;
	if (sync)
		atomic_inc(&item->n[TT_N_SYNCS]);
	atomic_inc(&item->notice);
	atomic_inc(&item->deleting);
	ends = atomic_read_acquire(&item->ends);
	busy = hwt_running(timeout);
	if (off)
		local_irq_save(flags);
	ret = op == TT_CANCEL ? hwt_cancel(timeout) :
	      op == TT_TRY_CANCEL ? hwt_try_cancel(timeout) :
	      op == TT_DELETE ? hwt_delete(timeout) :
	      op == TT_TRY_DELETE ? hwt_try_delete(timeout) :
	      op == TT_CANCEL_SYNC ? hwt_cancel_sync(timeout) : hwt_shutdown_sync(timeout);
	if (off)
		local_irq_restore(flags);
	busy = hwt_running(timeout) || busy;
	/* Pairs with tt_enter(): if a callback is over by now, this CPU sees that it has begun. */
	smp_rmb();
	busy = (busy || ends != atomic_read(&item->ends)) && op == TT_DELETE && !bh;
	hit = ret > 0 && (ret & HWT_WAS_PENDING);
	given = hit && (delete || (sync && bh));
	if (hit) {
		atomic_inc(&item->n[TT_N_HITS]);
		tt_use_credit(item, tt_op_name[op]);
	} else if (busy) {
		atomic_inc(&item->vague);
	}
	if (given || (!hit && !busy))
		tt_use_notice(item);
	tt_note(item, op, began, 0, ret);
	if (op == TT_TRY_CANCEL ? ret & ~(HWT_WAS_PENDING | HWT_IS_RUNNING) :
	    (ret < 0 && (op != TT_TRY_DELETE || ret != -EBUSY)) || ret > 1)
		tt_fail(TT_ANSWER, item, "%s says %d", tt_op_name[op], ret);
	if (given && delete)
		tt_count(TT_GIVEN);
	if (given && item->counted)
		tt_close(item);
	/* Pairs with tt_cancel_sync(). */
	atomic_dec_return_release(&item->deleting);
	return ret;
}

bool tt_cancel(struct tt_item *item)
{
	return tt_is_lent(item) ? tt_delete(item, TT_DELETE) : tt_end(item, TT_CANCEL);
}

int tt_try_cancel(struct tt_item *item)
{
	return tt_is_lent(item) ? tt_delete(item, TT_TRY_DELETE) : tt_end(item, TT_TRY_CANCEL);
}

/* @op: TT_DELETE or TT_TRY_DELETE. Return 0 in a context where it is not allowed. */
int tt_delete(struct tt_item *item, enum tt_op op)
{
	return tt_may_delete() ? tt_end(item, op) : 0;
}

void tt_touch(struct tt_item *item, u64 deadline)
{
	u64 began = ktime_get_mono_fast_ns();

	hwt_touch(tt_timeout(item), deadline);
	tt_note(item, TT_TOUCH, began, deadline, 0);
}

/* Check that a timeout that is not armed again is not in use. */
static void tt_check_still(struct tt_item *item, const char *after)
{
	const char *what = atomic_read(&item->inside) ? "a callback is executing" :
			   atomic_read(&item->releasing) ? "a release is executing" :
			   hwt_held(tt_timeout(item)) ? "it is held" : NULL;

	if (what)
		tt_fail(TT_SYNC, item, "%s has returned, and %s", after, what);
}

/*
 * Correct two counts after a _sync of the owner. Nothing is executing or held, and only the owner
 * could change that, so @ends does not change. Other actors may be about to take back notices,
 * unless the timeout is private.
 */
static void tt_level(struct tt_item *item)
{
	WRITE_ONCE(item->spare, atomic_read(&item->ends) - atomic_read(&item->n[TT_N_RELEASED]));
	if (item->private)
		atomic_set(&item->notice, 0);
}

/* By a user of the item; by the owner if only the owner arms it. Process context. */
int tt_cancel_sync(struct tt_item *item)
{
	int ret = tt_end(item, TT_CANCEL_SYNC), deleting;

	if (ret >= 0 && tt_exact(item)) {
		tt_check_still(item, "cancel_sync");
		/* Pairs with tt_end(): a delete that is over has booked its end of a hold. */
		deleting = atomic_read_acquire(&item->deleting);
		if (atomic_read(&item->open) > deleting)
			tt_fail(TT_SYNC, item, "cancel_sync has returned, and it is not released");
		else
			tt_level(item);
	}
	return ret;
}

/* By a user of the item, but not in its callbacks. Process context. */
int tt_shutdown_sync(struct tt_item *item)
{
	int ret = tt_end(item, TT_SHUTDOWN);

	if (ret < 0)
		tt_fail(TT_ANSWER, item, "shutdown_sync says %d", ret);
	else
		tt_check_still(item, "shutdown_sync");
	return ret;
}

/* By the owner. */
int tt_wait(struct tt_item *item, u64 max_ns)
{
	u64 began = ktime_get_mono_fast_ns();
	int ret = hwt_wait(tt_timeout(item), max_ns);

	tt_note(item, TT_WAIT, began, max_ns, ret);
	if (ret != 0 && ret != 1 && ret != -ETIME)
		tt_fail(TT_ANSWER, item, "wait returned %d", ret);
	if (ret >= 0 && tt_exact(item) && hwt_pending(tt_timeout(item)))
		tt_fail(TT_SYNC, item, "wait returned %d, and it is pending", ret);
	return ret;
}

/* The caller has the wheel from tt_wheel_get(), or is a user of one of its timeouts. */
int tt_flush(struct tt_wheel *wheel)
{
	int ret;

	tt_count(TT_FLUSH);
	ret = hwt_wheel_flush(wheel->wheel);
	if (ret && (ret != -ESHUTDOWN || !tt_is_leaving(wheel)))
		tt_fail(TT_ANSWER, NULL, "flush returned %d", ret);
	return ret;
}

/* Query a timeout, and check the invariants of each snapshot. Any context. */
void tt_query(struct tt_item *item)
{
	struct hwt_timeout *timeout = tt_timeout(item);
	struct hwt_wheel_stats stats;
	u64 deadline, remaining, rest, word;

	tt_count(TT_QUERY);
	word = hwt_timeout_state(timeout);
	if ((word & HWT_F_REARM && !(word & (HWT_F_RUNNING | HWT_F_ARMED))) ||
	    (word & HWT_F_CANCELLED && word & HWT_F_ARMED))
		tt_fail(TT_ANSWER, item, "its state is %llx, which is not valid", word);
	deadline = hwt_deadline(timeout);
	remaining = hwt_remaining(timeout);
	div64_u64_rem(deadline, item->wheel->params.tick_ns, &rest);
	if (deadline != U64_MAX && rest)
		tt_fail(TT_ANSWER, item, "a deadline of %llu is between two ticks", deadline);
	if (remaining > (u64)S64_MAX && remaining != U64_MAX)
		tt_fail(TT_ANSWER, item, "%llu ns remain", remaining);
	if (hwt_timeout_wheel(timeout) != item->wheel->wheel)
		tt_fail(TT_ANSWER, item, "it is on another wheel");
	if (hwt_expired(timeout) || hwt_cancelled(timeout) || hwt_running(timeout))
		hwt_overruns(&item->periodic);
	hwt_wheel_get_stats(item->wheel->wheel, &stats);
}

/* The timeout is not held, and no other context uses it. */
void tt_init(struct tt_item *item)
{
	tt_count(TT_INIT);
	hwt_periodic_init(&item->periodic, item->wheel->wheel, item->ops);
}

/* The same. From now on, hwt must not access the timeout as it was. */
void tt_renew(struct tt_item *item)
{
	memset(&item->periodic, TT_POISONED, sizeof(item->periodic));
	tt_init(item);
}

static void tt_enter(struct tt_item *item, enum tt_op op)
{
	if (READ_ONCE(item->magic) != TT_MAGIC)
		tt_fail(TT_POISON, NULL, "%s of a freed timeout: %p", tt_op_name[op], item);
	if (atomic_inc_return(&item->inside) != 1)
		tt_fail(TT_OVERLAP, item, "%s while another callback executes", tt_op_name[op]);
	if (irqs_disabled() || in_hardirq() || !in_softirq() == tt_is_bh(item->wheel))
		tt_fail(TT_OVERLAP, item, "%s in a wrong context", tt_op_name[op]);
	if (!hwt_running(tt_timeout(item)))
		tt_fail(TT_OVERLAP, item, "%s, and it is not running", tt_op_name[op]);
	atomic_inc(&item->ends);
}

/*
 * At each setting of the clock, one callback on each thread may have begun by the old time. Twice
 * as many are allowed: callbacks during a setting are counted for the setting before.
 */
static bool tt_excused(struct tt_wheel *wheel, u64 now, u64 floor)
{
	unsigned int runners = max(wheel->params.workers, 1U);
	s64 old = atomic64_read(&wheel->excused), new;
	u32 set = tt_wall_set();

	if (!tt_realtime(wheel) || floor - now > tt_wall_was_ahead())
		return false;
	do {
		new = old >> 32 >= set ? old + 1 : ((s64)set << 32) + 1;
	} while (!atomic64_try_cmpxchg(&wheel->excused, &old, new));
	return (u32)new <= 2 * runners;
}

static void tt_check_time(struct tt_item *item, u64 now)
{
	u64 floor = READ_ONCE(item->floor), word, tick;

	if (now < floor && !tt_excused(item->wheel, now, floor))
		tt_fail(TT_EARLY, item, "fired %llu ns early: at %llu, floor %llu", floor - now,
			now, floor);
	word = hwt_timeout_state(tt_timeout(item));
	tick = word >> HWT_TICK_SHIFT;
	if ((word & HWT_F_EXPIRED) && !(word & HWT_F_ARMED) && !tt_realtime(item->wheel) &&
	    tick * item->wheel->params.tick_ns > now)
		tt_fail(TT_EARLY, item, "fired at %llu, before its tick at %llu", now,
			tick * item->wheel->params.tick_ns);
}

/*
 * Check how often a TT_BEAT fires. The owner increments @turn before and after a schedule; an odd
 * @turn is skipped. So is the first callback that sees a turn, which may belong to the turn before.
 */
static void tt_check_beat(struct tt_item *item, u64 now)
{
	unsigned int turn = READ_ONCE(item->turn);
	u64 first, period, most, overruns;
	unsigned int mode;

	if (turn % 2 || turn != item->seen_turn) {
		item->seen_turn = turn;
		item->seen = 0;
		return;
	}
	/* Pairs with tt_own_arm_exact(): a reader of an even @turn sees the values of that turn. */
	smp_rmb();
	first = READ_ONCE(item->first);
	period = READ_ONCE(item->period);
	mode = READ_ONCE(item->mode);
	overruns = hwt_overruns_total(&item->periodic);
	/* Pairs with tt_own_arm_exact(): a reader of values of the next turn sees @turn change. */
	smp_rmb();
	if (READ_ONCE(item->turn) != turn)
		return;
	item->seen++;
	most = now < first ? 0 : div64_u64(now - first, period) + 1;
	if (mode == HWT_MODE_FIXED_RATE && item->seen + overruns > most)
		tt_fail(TT_EARLY, item, "fired %u times, %llu overruns, in %llu periods",
			item->seen, overruns, most);
	if (mode == HWT_MODE_FIXED_DELAY && item->seen > 1 && now < tt_add(item->seen_end, period))
		tt_fail(TT_EARLY, item, "fired %lld ns after the last callback, fixed delay %llu",
			(s64)(now - item->seen_end), period);
}

static void tt_expire(struct hwt_timeout *timeout)
{
	struct tt_item *item = tt_item_of(timeout);
	/* Read the clock first: a delay before would hide an early call. */
	u64 now = hwt_wheel_now(hwt_timeout_wheel(timeout)), began = ktime_get_mono_fast_ns();

	tt_enter(item, TT_EXPIRE);
	tt_note(item, TT_EXPIRE, began, now, atomic_inc_return(&item->n[TT_N_FIRED]));
	if (item->kind != TT_BEAT && item->kind != TT_MIXED)
		tt_use_credit(item, "fired");
	if (READ_ONCE(item->shut))
		tt_fail(TT_DEAD, item, "fired after a cancel");
	tt_check_time(item, now);
	if (item->kind == TT_BEAT && !tt_realtime(item->wheel))
		tt_check_beat(item, now);
	tt_in_callback(item);
	item->seen_end = hwt_wheel_now(hwt_timeout_wheel(timeout));
	atomic_dec(&item->inside);
	if (tt_is_bh(item->wheel))
		tt_count(TT_BH);
	/* The hold has ended before the call. This may free the timeout. */
	if (tt_is_lent(item))
		tt_close(item);
}

static void tt_cancelled(struct hwt_timeout *timeout)
{
	struct tt_item *item = tt_item_of(timeout);

	tt_enter(item, TT_CANCELLED);
	tt_note(item, TT_CANCELLED, ktime_get_mono_fast_ns(), 0,
		atomic_inc_return(&item->n[TT_N_TOLD]));
	tt_use_notice(item);
	if ((item->id + atomic_read(&item->n[TT_N_TOLD])) % 64 == 0)
		usleep_range(10, 500);
	atomic_dec(&item->inside);
}

/* The function of a stop. @arg: counts. */
void tt_handback(struct hwt_timeout *timeout, void *arg)
{
	struct tt_item *item = tt_item_of(timeout);

	tt_enter(item, TT_HANDED);
	tt_note(item, TT_HANDED, ktime_get_mono_fast_ns(), 0,
		atomic_inc_return(&item->n[TT_N_HANDED]));
	tt_use_credit(item, "handed back");
	if (!hwt_cancelled(timeout) && !hwt_pending(timeout) && tt_exact(item))
		tt_fail(TT_ANSWER, item, "handed back, and it does not count as cancelled");
	atomic_inc(arg);
	atomic_dec(&item->inside);
	if (tt_is_lent(item))
		tt_close(item);
}

/*
 * Fail if a callback of the hold that is released is executing. A callback of a later hold may be:
 * then that hold is still open, or its release has incremented TT_N_RELEASED.
 */
static void tt_check_outside(struct tt_item *item, int released)
{
	int inside, open;

	inside = atomic_read(&item->inside);
	/* Pairs with tt_enter(): a reader that sees a callback inside sees its hold booked. */
	smp_rmb();
	open = atomic_read(&item->open);
	/* Pairs with tt_release(): a reader that sees a hold closed sees its release counted. */
	smp_rmb();
	if (inside && open == 1 && atomic_read(&item->n[TT_N_RELEASED]) == released)
		tt_fail(TT_HOLD, item, "released, and its callback is executing");
}

static void tt_release(struct hwt_timeout *timeout)
{
	struct tt_item *item = tt_item_of(timeout);
	int released;

	if (READ_ONCE(item->magic) != TT_MAGIC)
		tt_fail(TT_POISON, NULL, "release of a freed timeout: %p", item);
	atomic_inc(&item->releasing);
	released = atomic_inc_return(&item->n[TT_N_RELEASED]);
	tt_note(item, TT_RELEASE, ktime_get_mono_fast_ns(), 0, released);
	if (!in_task() || irqs_disabled())
		tt_fail(TT_HOLD, item, "released, and not in process context");
	tt_check_outside(item, released);
	if (item->ops->cancelled && released + READ_ONCE(item->spare) > atomic_read(&item->ends))
		tt_fail(TT_SILENT, item, "released without ->expire, ->cancelled or a hand-back");
	if ((item->id + released) % 64 == 0)
		usleep_range(10, 500);
	atomic_dec(&item->releasing);
	tt_close(item);
}

const struct hwt_timeout_ops tt_ops_full = {
	.expire = tt_expire, .cancelled = tt_cancelled, .release = tt_release,
};

/* Without ->cancelled: the engine ends the hold of a cancelled timeout in fewer steps. */
const struct hwt_timeout_ops tt_ops_quiet = { .expire = tt_expire, .release = tt_release };

/* Without reference counts. */
const struct hwt_timeout_ops tt_ops_bare = { .expire = tt_expire };

/* Close the ledger of a timeout without references. */
void tt_audit(struct tt_item *item)
{
	int credit = atomic_read(&item->credit), most = atomic_read(&item->vague);
	bool open;

	if (atomic_read(&item->open) || atomic_read(&item->inside) ||
	    atomic_read(&item->releasing) || atomic_read(&item->deleting))
		tt_fail(TT_HOLD, item, "all references are gone, and it is in use");
	/* Periodic firings use up no credit, and a _sync that cancels several times only one. */
	open = item->kind == TT_MIXED ||
	       (item->kind == TT_CROWD && atomic_read(&item->n[TT_N_SYNCS]));
	/*
	 * A hand-back by a stop without a function uses up no credit if there is no ->cancelled, or
	 * if a notice is left of a cancel that was followed by a schedule.
	 */
	if (READ_ONCE(item->wheel->muted) && (credit == most + 1 || !tt_exact(item)))
		open = true;
	if (credit < 0 || (credit > most && !open))
		tt_fail(TT_LOST, item, "%d of its armings have not ended", credit);
}

static void tt_dump_history(struct tt_item *item)
{
	unsigned int end = atomic_read(&item->events), n;
	const struct tt_event *event;

	for (n = end > TT_HISTORY ? end - TT_HISTORY : 0; n < end; n++) {
		event = &item->history[n % TT_HISTORY];
		pr_err("  %5u %llu..%llu cpu %u pid %d %s: %s(%llu) = %ld, state %016llx\n", n,
		       READ_ONCE(event->began), READ_ONCE(event->ended),
		       READ_ONCE(event->cpu), READ_ONCE(event->pid),
		       context_name[READ_ONCE(event->context) % 3],
		       tt_op_name[READ_ONCE(event->op) % TT_OPS], READ_ONCE(event->arg),
		       READ_ONCE(event->result), READ_ONCE(event->word));
	}
}

/* Print the ledger, the state and the history of a timeout. */
static void tt_dump(struct tt_item *item)
{
	static const char * const kind[] = { "shot", "beat", "crowd", "mixed", "once" };
	static const char * const tally[] = {
		"armed", "rearmed", "armed earlier, or left", "refused -EAGAIN",
		"refused -ESHUTDOWN", "hits", "fired", "handed back", "->cancelled", "released",
		"syncs",
	};
	const struct hwt_wheel_params *params = &item->wheel->params;
	unsigned int n;

	pr_err("  timeout %llu (%s%s), wheel %u: tick %llu ns, %u levels of %u, clock %d, flags %x, %u workers%s%s\n",
	       item->id, kind[item->kind], item->private ? ", private" : "", item->wheel->id,
	       params->tick_ns, params->levels, params->ticks_per_wheel, params->clock,
	       params->flags, params->workers,
	       READ_ONCE(item->wheel->leaving) ? ", leaving" : "",
	       READ_ONCE(item->wheel->muted) ? ", muted" : "");
	for (n = 0; n < TT_TALLIES; n++)
		pr_err("  %s %d\n", tally[n], atomic_read(&item->n[n]));
	pr_err("  credit %d, open %d, notice %d, vague %d, inside %d; floor %llu%s%s, users %u, refs %u\n",
	       atomic_read(&item->credit), atomic_read(&item->open),
	       atomic_read(&item->notice), atomic_read(&item->vague),
	       atomic_read(&item->inside),
	       READ_ONCE(item->floor), READ_ONCE(item->shut) ? ", shut" : "",
	       READ_ONCE(item->clean) ? ", clean" : "", refcount_read(&item->users),
	       refcount_read(&item->refs));
	pr_err("  state %016llx: HWT_F_* of hwt.h, tick from bit %u on\n",
	       hwt_timeout_state(tt_timeout(item)), HWT_TICK_SHIFT);
	tt_dump_history(item);
}

static atomic_t tt_faults[TT_FAULTS];

static const char * const tt_fault_name[] = {
	"no timeout fires early",
	"each arming has one end",
	"no timeout fires after a cancel",
	"callbacks of a timeout do not overlap",
	"each hold is released once",
	"->cancelled is called when it must be",
	"a _sync, flush, wait or stop does not return too early",
	"return values are valid",
	"no timeout and no wake-up is lost",
	"the counters of the wheels match the ledgers",
	"released timeouts are not written to",
	"no timeouts or users are left",
};

/* Report a fault, the first three of each kind with all details. Any context. */
void tt_fail(enum tt_fault fault, struct tt_item *item, const char *fmt, ...)
{
	struct va_format text = { .fmt = fmt };
	va_list args;

	if (atomic_inc_return(&tt_faults[fault]) > 3)
		return;
	va_start(args, fmt);
	text.va = &args;
	pr_err("FAILED (%s), seed=%u: %pV\n", tt_fault_name[fault], tt_seed, &text);
	va_end(args);
	if (item)
		tt_dump(item);
}

bool tt_leaked(void)
{
	return atomic_read(&tt_faults[TT_LEAK]);
}

bool tt_failed(void)
{
	unsigned int n;

	for (n = 0; n < TT_FAULTS; n++)
		if (atomic_read(&tt_faults[n]))
			return true;
	return false;
}

/* Are at least 20 * @one_in of the threads' steps so far expected to be of this part? */
static bool tt_expected(enum tt_mix_part part, unsigned int one_in)
{
	return tt_sum(TT_STEP) * tt_mix[part] >= 20ULL * one_in * tt_mix_sum();
}

/* Has each kind of call and event occurred that the mix and the parameters make likely? */
static bool tt_enough(void)
{
	const bool stops = tt_lasted_ms() > 4ULL * TT_WHEEL_MS;
	const struct {
		enum tt_op	op;
		bool		needed;
	} all[] = {
		{ TT_AFTER, true }, { TT_CANCEL, true }, { TT_EXPIRE, true }, { TT_RELEASE, true },
		{ TT_DESTROY, true }, { TT_IRQ, true }, { TT_SOFT, true }, { TT_BH, tt_wheels > 1 },
		{ TT_PERIODIC, tt_expected(TT_MIX_ARM, 8) },
		{ TT_CANCELLED, tt_expected(TT_MIX_CANCEL, 8) },
		{ TT_GIVEN, tt_expected(TT_MIX_CANCEL, 8) },
		{ TT_TOUCH, tt_expected(TT_MIX_ARM, 8) },
		{ TT_CANCEL_SYNC, tt_expected(TT_MIX_SYNC, 2) },
		{ TT_SHUTDOWN, tt_expected(TT_MIX_LIFE, 4) },
		{ TT_WAIT, tt_expected(TT_MIX_WAIT, 8) },
		{ TT_FLUSH, tt_expected(TT_MIX_WAIT, 16) },
		/* Where the threads are slow, most stops find nothing pending. */
		{ TT_STOP, stops }, { TT_HANDED, stops && tt_expected(TT_MIX_ARM, 256) },
		{ TT_ROUND, tt_pairs },
		{ TT_SET, tt_clock_ms && tt_lasted_ms() > 4ULL * tt_clock_ms },
		{ TT_GONE, tt_can_plug() && tt_lasted_ms() > 8ULL * tt_hotplug_ms },
		{ TT_INJECTED, tt_inject && TT_NMIS_POSSIBLE },
		{ TT_NMI, tt_nmi && TT_NMIS_POSSIBLE && tt_expected(TT_MIX_STRANGE, 8) },
	};
	bool enough = !tt_nmis_missing();
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(all); n++) {
		if (!all[n].needed || tt_sum(all[n].op))
			continue;
		pr_info("nothing to look at: %s\n", tt_op_name[all[n].op]);
		enough = false;
	}
	return enough;
}

/* Print a test point for each kind of fault, and one for tt_enough(). */
void tt_verdict(void)
{
	unsigned int n, faults;

	pr_info("1..%u\n", TT_FAULTS + 1);
	for (n = 0; n < TT_FAULTS; n++) {
		faults = atomic_read(&tt_faults[n]);
		if (faults)
			pr_info("not ok %u - %s: %u times, seed=%u\n", n + 1, tt_fault_name[n],
				faults, tt_seed);
		else
			pr_info("ok %u - %s\n", n + 1, tt_fault_name[n]);
	}
	pr_info("%sok %u - all requested calls and events have occurred\n",
		tt_enough() ? "" : "not ", TT_FAULTS + 1);
}
