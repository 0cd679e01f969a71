// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger of a timeout
 *
 * Every call of hwt and every callback goes through this file. No lock is taken around a call: a
 * call is booked with all that it may bring before it is made, and what it has not brought is
 * taken back after it. So each rule holds at any instant, and a count below zero is never a matter
 * of order. The rules are from hwt.h.
 *
 * Booked before a schedule:
 *
 *   credit    Ends to come. Taken back if the schedule failed or HWT_WAS_PENDING. Each ->expire of
 *             a one-shot, cancel that hit, and hand-back uses one up.
 *   open      Holds, each with a reference to the item, as hwt.h tells clients to do. Taken back if
 *             the schedule failed or HWT_WAS_HELD. Each ->release uses one up.
 *
 * Booked before a cancel, taken back if it did not hit:
 *
 *   notice    Calls of ->cancelled to come. Each of those uses one up.
 *
 * At any time:
 *
 *   credit >= 0    It fires at most once for each arming, and not after a cancel that hit.
 *   open >= 0      It is released at most once for each hold.
 *   notice >= 0    ->cancelled is called for a cancel only (TT_SHOT, TT_BEAT, TT_ONCE: of others a
 *                  _sync may cancel several times, and says so once). A stop without a function
 *                  calls it too: then what notice does not pay for uses up credit.
 *   inside <= 1    Of ->expire, ->cancelled and the function of a stop only one is executing, in
 *                  process context, with interrupts on, and hwt_running() is true.
 *   ends >= released   Each hold ends by firing, by being handed back, or by ->cancelled, if there
 *                  is one. A hold that ended twice would hide one that did not: where a _sync says
 *                  that nothing is under way, both begin anew.
 *   open >= 2      In a release, while a callback is executing: that is of a later hold.
 *   due            TT_ONCE, on a clock that nobody sets: released before the patience is over.
 *
 * When it may fire (on the wheel's clock, as that is set when it fires):
 *
 *   floor     It does not fire before. The owner, who alone arms TT_SHOT and TT_BEAT, lowers it
 *             before a schedule, and raises it after one when no callback of an earlier arming can
 *             be executing (@clean). Kinds that everybody arms: the least of all. When the wall
 *             clock is set back, as many callbacks as the wheel has threads may still be early.
 *   shut      The owner has cancelled it, and no callback was executing then: none begins until it
 *             is armed again.
 *   In ->expire, if the word says EXPIRED and is not armed again, its tick has come. At a fixed
 *   rate, it has not fired and overrun more often than periods have begun; at a fixed delay, a
 *   period has passed since its last callback returned.
 *
 * After a call (of the owner; nobody else arms it):
 *
 *   _sync     Nothing is executing, nothing is held, open is 0.
 *   shutdown  For all kinds: nothing is executing; the next schedule is refused.
 *   wait      Not pending, if it does not say -ETIME.
 *   flush     What was scheduled for a tick that had begun is not pending.
 *
 * In the end: open 0, nothing inside, credit 0 (1, if a stop without a function may have taken it;
 * more, if a _sync of what others arm may have cancelled it several times, or if it fired as a
 * periodic one or not). The memory stays poisoned from the last reference until all RCU readers are
 * through. For each wheel: see torture_wheel.c.
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

/* Of one that was just found to be stopped. */
static bool tt_is_leaving(const struct tt_wheel *wheel)
{
	/* Pairs with the barrier before a wheel is stopped. */
	smp_rmb();
	return READ_ONCE(wheel->leaving);
}

static void tt_answer_arm(struct tt_item *item, enum tt_op op, int ret)
{
	bool move = op == TT_MOVE || op == TT_MOVE_AT;

	if (ret >= 0) {
		if (ret & ~(HWT_WAS_PENDING | HWT_WAS_HELD) || ret == HWT_WAS_PENDING ||
		    (move && !(ret & HWT_WAS_PENDING)))
			tt_fail(TT_ANSWER, item, "%s says %d", tt_op_name[op], ret);
		atomic_inc(&item->n[!(ret & HWT_WAS_PENDING) ? TT_N_ARMED :
				    tt_op_is_earlier(op) ? TT_N_KEPT : TT_N_REARMED]);
	} else if (ret == -ESHUTDOWN) {
		atomic_inc(&item->n[TT_N_CLOSED]);
		if (!tt_is_leaving(item->wheel) &&
		    !(hwt_timeout_state(tt_timeout(item)) & HWT_F_SHUTDOWN))
			tt_fail(TT_ANSWER, item, "%s says that the wheel is stopped",
				tt_op_name[op]);
	} else if (ret == -EAGAIN && item->wheel->params.max_pending) {
		atomic_inc(&item->n[TT_N_AGAIN]);
	} else if (ret != -ENOENT || !move) {
		tt_fail(TT_ANSWER, item, "%s says %d", tt_op_name[op], ret);
	}
}

static int tt_call(struct tt_item *item, enum tt_op op, u64 ns, u64 extra,
		   enum hwt_repeat mode)
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
 * period. Any context. Return as the function that was called.
 */
int tt_arm(struct tt_item *item, enum tt_op op, u64 ns, u64 extra, enum hwt_repeat mode)
{
	bool bare = !item->ops->release;
	u64 began = ktime_get_mono_fast_ns();
	int ret;

	if (!bare) {
		refcount_inc(&item->refs);
		atomic_inc(&item->open);
		atomic_inc(&item->wheel->holds);
	}
	atomic_inc(&item->credit);

	ret = tt_call(item, op, ns, extra, mode);

	if (ret < 0 || ret & HWT_WAS_PENDING)
		atomic_dec(&item->credit);
	if (!bare && (ret < 0 || ret & HWT_WAS_HELD)) {
		atomic_dec(&item->wheel->holds);
		atomic_dec(&item->open);
		tt_item_put(item);
	}
	tt_answer_arm(item, op, ret);
	tt_note(item, op, began, ns, ret);
	return ret;
}

/*
 * Schedule a TT_ONCE that nobody else knows, and do not look at it again: it may be gone before
 * the call returns. The caller has its wheel from tt_wheel_get(). Any context.
 */
int tt_arm_once(struct tt_item *item, enum tt_op op, u64 ns, u64 extra)
{
	struct tt_wheel *wheel = item->wheel;
	int ret;

	/* The reference of the user becomes that of the hold. */
	refcount_set(&item->users, 0);
	atomic_dec(&wheel->users);
	atomic_set(&item->open, 1);
	atomic_inc(&wheel->holds);
	atomic_set(&item->credit, 1);
	atomic_set(&item->n[TT_N_ARMED], 1);
	tt_count(op);

	ret = tt_call(item, op, ns, extra, HWT_FIXED_RATE);
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

/* One of the armings has ended. */
static void tt_use_credit(struct tt_item *item, const char *how)
{
	if (atomic_dec_return(&item->credit) < 0)
		tt_fail(TT_TWICE, item, "%s, and it was not armed for that", how);
}

/*
 * A stop that was given no function hands back by ->cancelled: what no cancel has asked for
 * is that.
 */
static void tt_use_notice(struct tt_item *item)
{
	if (!tt_exact(item) || atomic_dec_return(&item->notice) >= 0)
		return;
	atomic_inc(&item->notice);
	if (!READ_ONCE(item->wheel->muted)) {
		tt_fail(TT_SILENT, item, "->cancelled, and nobody has cancelled it");
		return;
	}
	atomic_inc(&item->n[TT_N_HANDED]);
	tt_use_credit(item, "handed back");
}

static int tt_end(struct tt_item *item, enum tt_op op)
{
	struct hwt_timeout *timeout = tt_timeout(item);
	u64 began = ktime_get_mono_fast_ns();
	int ret;

	if (op == TT_CANCEL_SYNC || op == TT_SHUTDOWN)
		atomic_inc(&item->n[TT_N_SYNCS]);
	atomic_inc(&item->notice);
	ret = op == TT_CANCEL ? hwt_cancel(timeout) :
	      op == TT_TRY_CANCEL ? hwt_try_cancel(timeout) :
	      op == TT_CANCEL_SYNC ? hwt_cancel_sync(timeout) : hwt_shutdown_sync(timeout);
	if (ret > 0 && ret & HWT_WAS_PENDING) {
		atomic_inc(&item->n[TT_N_HITS]);
		tt_use_credit(item, "a cancel hit");
	} else {
		tt_use_notice(item);
	}
	tt_note(item, op, began, 0, ret);
	if (op == TT_TRY_CANCEL ? ret & ~(HWT_WAS_PENDING | HWT_IS_RUNNING) :
	    ret < 0 || ret > 1)
		tt_fail(TT_ANSWER, item, "%s says %d", tt_op_name[op], ret);
	return ret;
}

bool tt_cancel(struct tt_item *item)
{
	return tt_end(item, TT_CANCEL);
}

int tt_try_cancel(struct tt_item *item)
{
	return tt_end(item, TT_TRY_CANCEL);
}

/* Of what nobody arms any more. */
static void tt_check_still(struct tt_item *item, const char *after)
{
	const char *what = atomic_read(&item->inside) ? "a callback is executing" :
			   atomic_read(&item->releasing) ? "a release is executing" :
			   hwt_held(tt_timeout(item)) ? "it is held" : NULL;

	if (what)
		tt_fail(TT_SYNC, item, "%s has returned, and %s", after, what);
}

/*
 * Nothing is executing, nothing is held, and nobody but the caller could change that: so neither of
 * these two changes. Those who cancel at this moment have notices under way, though, unless
 * nobody knows it.
 */
static void tt_level(struct tt_item *item)
{
	atomic_set(&item->ends, atomic_read(&item->n[TT_N_RELEASED]));
	if (item->private)
		atomic_set(&item->notice, 0);
}

/* By a user of the item; of kinds that only the owner arms, by the owner. Process context. */
int tt_cancel_sync(struct tt_item *item)
{
	int ret = tt_end(item, TT_CANCEL_SYNC);

	if (ret >= 0 && tt_exact(item)) {
		tt_check_still(item, "cancel_sync");
		if (atomic_read(&item->open))
			tt_fail(TT_SYNC, item, "cancel_sync has returned, and it is not released");
		else
			tt_level(item);
	}
	return ret;
}

/* hwt_shutdown_sync(); process context, one of the item's users, none of its callbacks. */
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
		tt_fail(TT_ANSWER, item, "wait says %d", ret);
	if (ret >= 0 && tt_exact(item) && hwt_pending(tt_timeout(item)))
		tt_fail(TT_SYNC, item, "wait says %d, and it is pending", ret);
	return ret;
}

/* By somebody who needs the wheel. */
int tt_flush(struct tt_wheel *wheel)
{
	int ret;

	tt_count(TT_FLUSH);
	ret = hwt_wheel_flush(wheel->wheel);
	if (ret && (ret != -ESHUTDOWN || !tt_is_leaving(wheel)))
		tt_fail(TT_ANSWER, NULL, "flush says %d", ret);
	return ret;
}

/* Any context. Snapshots: there is little to hold against them. */
void tt_query(struct tt_item *item)
{
	struct hwt_timeout *timeout = tt_timeout(item);
	struct hwt_wheel_stats stats;
	u64 deadline, remaining, rest, word;

	tt_count(TT_QUERY);
	word = hwt_timeout_state(timeout);
	if ((word & HWT_F_REARM && !(word & (HWT_F_RUNNING | HWT_F_ARMED))) ||
	    (word & HWT_F_CANCELLED && word & HWT_F_ARMED))
		tt_fail(TT_ANSWER, item, "its word is %llx", word);
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

/* By somebody who knows that it is not held, and that nobody is at it. */
void tt_init(struct tt_item *item)
{
	tt_count(TT_INIT);
	hwt_periodic_init(&item->periodic, item->wheel->wheel, item->ops);
}

static void tt_enter(struct tt_item *item, enum tt_op op)
{
	if (READ_ONCE(item->magic) != TT_MAGIC)
		tt_fail(TT_POISON, NULL, "%s of what is no timeout: %p", tt_op_name[op], item);
	if (atomic_inc_return(&item->inside) != 1)
		tt_fail(TT_OVERLAP, item, "%s while another callback executes", tt_op_name[op]);
	if (!in_task() || irqs_disabled())
		tt_fail(TT_OVERLAP, item, "%s, and not in process context", tt_op_name[op]);
	if (!hwt_running(tt_timeout(item)))
		tt_fail(TT_OVERLAP, item, "%s, and it is not running", tt_op_name[op]);
	atomic_inc(&item->ends);
}

/*
 * So many callbacks may have begun by the old time, each time that it was set: one on each
 * thread. What a set excuses may be counted for the one before it, while that is under way.
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
		tt_fail(TT_EARLY, item, "%llu ns early: at %llu, not before %llu", floor - now,
			now, floor);
	word = hwt_timeout_state(tt_timeout(item));
	tick = word >> HWT_TICK_SHIFT;
	if ((word & HWT_F_EXPIRED) && !(word & HWT_F_ARMED) && !tt_realtime(item->wheel) &&
	    tick * item->wheel->params.tick_ns > now)
		tt_fail(TT_EARLY, item, "at %llu, and its tick begins at %llu", now,
			tick * item->wheel->params.tick_ns);
}

/*
 * How often a periodic one fires. The owner counts @turn up before and after it arms; an odd
 * one is not looked at. The first callback that sees a turn may still be one of the turn before:
 * of those that follow, it is known.
 */
static void tt_check_beat(struct tt_item *item, u64 now)
{
	unsigned int turn = READ_ONCE(item->turn);
	u64 first, period, most, overruns;
	enum hwt_repeat mode;

	if (turn % 2 || turn != item->seen_turn) {
		item->seen_turn = turn;
		item->seen = 0;
		return;
	}
	/* Both pair with those of the owner: all is of this turn, or it is not looked at. */
	smp_rmb();
	first = READ_ONCE(item->first);
	period = READ_ONCE(item->period);
	mode = READ_ONCE(item->mode);
	overruns = hwt_overruns_total(&item->periodic);
	/* See above. */
	smp_rmb();
	if (READ_ONCE(item->turn) != turn)
		return;
	item->seen++;
	most = now < first ? 0 : div64_u64(now - first, period) + 1;
	if (mode == HWT_FIXED_RATE && item->seen + overruns > most)
		tt_fail(TT_EARLY, item, "fired %u times, %llu overruns, in %llu periods",
			item->seen, overruns, most);
	if (mode == HWT_FIXED_DELAY && item->seen > 1 && now < tt_add(item->seen_end, period))
		tt_fail(TT_EARLY, item, "%lld ns after the last, with a delay of %llu",
			(s64)(now - item->seen_end), period);
}

static void tt_expire(struct hwt_timeout *timeout)
{
	struct tt_item *item = tt_item_of(timeout);
	/* First, so that nothing that takes its time hides that it is early. */
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
}

/*
 * Does the hold that is released have a callback that is executing? With another hold it may: that
 * one is open too, until its own release, which counts that first.
 */
static void tt_check_outside(struct tt_item *item, int released)
{
	int inside, open;

	inside = atomic_read(&item->inside);
	/* Pairs with the full barrier of tt_enter(): its hold was booked before. */
	smp_rmb();
	open = atomic_read(&item->open);
	/* Pairs with that of tt_release(): its hold was counted before it was closed. */
	smp_rmb();
	if (inside && open == 1 && atomic_read(&item->n[TT_N_RELEASED]) == released)
		tt_fail(TT_HOLD, item, "released, and its callback is executing");
}

static void tt_release(struct hwt_timeout *timeout)
{
	struct tt_item *item = tt_item_of(timeout);
	struct tt_wheel *wheel = item->wheel;
	u64 now = ktime_get_ns();
	int released;

	if (READ_ONCE(item->magic) != TT_MAGIC)
		tt_fail(TT_POISON, NULL, "release of what is no timeout: %p", item);
	atomic_inc(&item->releasing);
	released = atomic_inc_return(&item->n[TT_N_RELEASED]);
	tt_note(item, TT_RELEASE, ktime_get_mono_fast_ns(), 0, released);
	if (!in_task() || irqs_disabled())
		tt_fail(TT_HOLD, item, "released, and not in process context");
	/* Whatever has become of it: fired, told, or handed back. */
	if (now > item->due && now - item->due > tt_patience * KT_SECOND)
		tt_fail(TT_LOST, item, "it has come to an end %llu ms late",
			div_u64(now - item->due, NSEC_PER_MSEC));
	tt_check_outside(item, released);
	/* What ended the hold came before this. */
	if (item->ops->cancelled && released > atomic_read(&item->ends))
		tt_fail(TT_SILENT, item, "let go without a word");
	if ((item->id + released) % 64 == 0)
		usleep_range(10, 500);
	if (atomic_dec_return(&item->open) < 0) {
		tt_fail(TT_HOLD, item, "released, and it was not held");
		return;		/* and leave the memory alone */
	}
	atomic_dec(&wheel->holds);
	atomic_dec(&item->releasing);
	tt_item_put(item);
}

const struct hwt_timeout_ops tt_ops_full = {
	.expire		= tt_expire,
	.cancelled	= tt_cancelled,
	.release	= tt_release,
};

/* Nobody is told of a cancel: a shorter way through the engine. */
const struct hwt_timeout_ops tt_ops_quiet = {
	.expire		= tt_expire,
	.release	= tt_release,
};

/* Without reference counts. */
const struct hwt_timeout_ops tt_ops_bare = {
	.expire		= tt_expire,
};

/* Close the ledger of a timeout that nobody has a reference to any more. */
void tt_audit(struct tt_item *item)
{
	int credit = atomic_read(&item->credit);
	bool open;

	if (atomic_read(&item->open) || atomic_read(&item->inside) ||
	    atomic_read(&item->releasing))
		tt_fail(TT_HOLD, item, "all references are gone, and it is in use");
	/* Periodic ones by others: firings and armings do not go together. */
	open = item->kind == TT_MIXED ||
	       (item->kind == TT_CROWD && atomic_read(&item->n[TT_N_SYNCS]));
	/*
	 * A stop took it, and had no means to say so; or what it said was taken for the end of a
	 * cancel that was overtaken by a schedule. The wheel's sums are exact all the same.
	 */
	if (READ_ONCE(item->wheel->muted) && (credit == 1 || !tt_exact(item)))
		open = true;
	if (credit < 0 || (credit > 0 && !open))
		tt_fail(TT_LOST, item, "%d of its armings have had no end", credit);
}

static void tt_dump_history(struct tt_item *item)
{
	unsigned int end = atomic_read(&item->events), n;
	const struct tt_event *event;

	for (n = end > TT_HISTORY ? end - TT_HISTORY : 0; n < end; n++) {
		event = &item->history[n % TT_HISTORY];
		pr_err("  %5u %llu..%llu cpu %u pid %d %s: %s(%llu) = %ld, word %016llx\n", n,
		       READ_ONCE(event->began), READ_ONCE(event->ended),
		       READ_ONCE(event->cpu), READ_ONCE(event->pid),
		       context_name[READ_ONCE(event->context) % 3],
		       tt_op_name[READ_ONCE(event->op) % TT_OPS], READ_ONCE(event->arg),
		       READ_ONCE(event->result), READ_ONCE(event->word));
	}
}

/* How the timeout is, by the ledger and by the engine. */
static void tt_dump(struct tt_item *item)
{
	static const char * const kind[] = { "shot", "beat", "crowd", "mixed", "once" };
	static const char * const tally[] = {
		"armed", "rearmed", "kept", "refused", "refused by a stop", "hits", "fired",
		"handed back", "told", "released", "syncs",
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
	pr_err("  credit %d, open %d, notice %d, inside %d; floor %llu%s%s, users %u, refs %u\n",
	       atomic_read(&item->credit), atomic_read(&item->open),
	       atomic_read(&item->notice), atomic_read(&item->inside),
	       READ_ONCE(item->floor), READ_ONCE(item->shut) ? ", shut" : "",
	       READ_ONCE(item->clean) ? ", clean" : "", refcount_read(&item->users),
	       refcount_read(&item->refs));
	pr_err("  word %016llx: HWT_F_* of hwt.h, tick from bit %u on\n",
	       hwt_timeout_state(tt_timeout(item)), HWT_TICK_SHIFT);
	tt_dump_history(item);
}

static atomic_t tt_faults[TT_FAULTS];

static const char * const tt_fault_name[] = {
	"none fires early",
	"each arming has one end",
	"none fires after a cancel that hit",
	"callbacks of one do not overlap",
	"each hold is released once",
	"a cancel is told, and nothing else is",
	"nothing goes on after a _sync, flush, wait or stop",
	"calls answer as they must",
	"none is lost, and no wake-up",
	"the wheels have counted the same",
	"what was let go is not touched",
	"nothing is left",
};

/* Something is wrong: tell the first few of each kind, with all that is known. Any context. */
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

/* Is something left? */
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

/* Have the threads come to this part so often that one in so many of these is 20? */
static bool tt_expected(enum tt_mix_part part, unsigned int one_in)
{
	return tt_sum(TT_STEP) * tt_mix[part] >= 20ULL * one_in * tt_mix_sum();
}

/* Has each kind of thing happened that should have, by the mix and by what is switched on? */
static bool tt_enough(void)
{
	const bool stops = tt_lasted_ms() > 4ULL * TT_WHEEL_MS;
	const struct {
		enum tt_op	op;
		bool		needed;
	} all[] = {
		{ TT_AFTER, true }, { TT_CANCEL, true }, { TT_EXPIRE, true }, { TT_RELEASE, true },
		{ TT_DESTROY, true }, { TT_IRQ, true },
		{ TT_PERIODIC, tt_expected(TT_MIX_ARM, 8) },
		{ TT_CANCELLED, tt_expected(TT_MIX_CANCEL, 8) },
		{ TT_CANCEL_SYNC, tt_expected(TT_MIX_SYNC, 2) },
		{ TT_SHUTDOWN, tt_expected(TT_MIX_LIFE, 4) },
		{ TT_WAIT, tt_expected(TT_MIX_WAIT, 8) },
		{ TT_FLUSH, tt_expected(TT_MIX_WAIT, 16) },
		{ TT_STOP, stops }, { TT_HANDED, stops && tt_expected(TT_MIX_ARM, 8) },
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

/* A line for each kind of fault, and one that says whether there was enough to say so. */
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
	pr_info("%sok %u - and there was something to look at\n", tt_enough() ? "" : "not ",
		TT_FAULTS + 1);
}
