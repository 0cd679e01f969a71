/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a timeout: its state, and every change of its state
 *
 * docs/design.md has a glossary. timeout->state is one 64-bit word: the tick at which the timeout
 * fires, and these bits:
 *
 *   ARMED      The timeout will fire at the tick.
 *   SUBMITTED  The timeout has yet to be collected, or a runner has yet to end its hold. There are
 *              five cases: a CPU is about to push the timeout on a submission list; the timeout is
 *              on such a list; it was taken off the list, and is not collected yet; it is on
 *              shard->owed; a _sync call has cancelled it, and is about to end the hold itself.
 *   RUNNING    One runner is executing ->expire, ->cancelled or the function that was passed to
 *              hwt_wheel_stop(). Never set on a BH wheel.
 *   PERIODIC   The last call that scheduled the timeout made it periodic.
 *   REARM      The timeout is periodic and has fired: when its callback returns, the timeout is
 *              armed again. After that, REARM remains set, to tell later firings from the first. A
 *              call that schedules the timeout, a cancel or a hand-back clears REARM.
 *   SHUTDOWN   Calls that schedule the timeout fail.
 *   CANCELLED  The timeout was cancelled or handed back while it was pending, and was not scheduled
 *              since.
 *   EXPIRED    The timeout has fired. Since then, it was not scheduled, and no cancel or stop has
 *              found it pending.
 *
 * A timeout is held while it is ARMED, SUBMITTED or RUNNING: its memory must not be freed. While it
 * is not held, the timeout is idle. It is pending while it is ARMED or REARM: it will fire.
 *
 * The state changes by compare-and-swap only. A loop reads the state, passes it to one of the
 * functions below, and swaps in the new state that the function returns. The function also returns
 * what the caller has to do once the swap has succeeded (enum hwt_action). The functions have no
 * side effects. tests/unit/state.c calls them with every combination of bits, and "make
 * check-verify" compares their results with those of the model in tests/verify.
 *
 * The table has the bits that each operation sets (+) and clears (-), and the action that follows
 * (explained at enum hwt_action); a single "-" means none. The first row of the operation that
 * matches the old state applies. Each operation is a function below, whose comment names the
 * caller. A _sync call performs cancel, and then collect or end as needed; on a BH wheel, it
 * performs delete. Terms of the table:
 *
 *   the tick         the new state has the scheduled tick, and PERIODIC only if the timeout is
 *                    scheduled as periodic
 *   to call          a ->cancelled or ->release has to be called at the end of the hold
 *   to notify        the timeout has a ->cancelled, which no runner has called for the cancel yet
 *   touched          hwt_touch() has stored a deadline whose tick is beyond the cursor
 *   (left to X)      nothing is done now: the operation X will act on the timeout later
 *   stop's function  the function that was passed to hwt_wheel_stop(), to be called in place of
 *                    ->cancelled for each timeout that is handed back
 *
 *   operation  in the state           changes                      action
 *   ---------- ---------------------- ---------------------------- ------------------------
 *   schedule   SHUTDOWN               -                            refuse
 *              a flag forbids it      -                            refuse, or unchanged
 *              SUBMITTED              the tick, + ARMED            hasten
 *              RUNNING                the tick, + ARMED            - (finish links it)
 *              ARMED, in a bucket:
 *                later, or equal      the tick                     - (the cascade moves it)
 *                earlier              the tick, + SUBMITTED        submit
 *              idle                   the tick, + ARMED SUBMITTED  submit
 *              (the rows from SUBMITTED on also clear REARM CANCELLED EXPIRED)
 *   cancel     not pending (also a
 *              one-shot that runs)    -                            -
 *              SUBMITTED or RUNNING   - ARMED REARM                -
 *              ARMED, in a bucket     - ARMED REARM, + SUBMITTED   submit
 *              (the last two rows also set CANCELLED and clear EXPIRED; a shutdown sets SHUTDOWN
 *              in all rows)
 *   delete     not pending            -                            -
 *              RUNNING                - ARMED REARM                - (left to finish)
 *              else                   - ARMED REARM SUBMITTED      give back to the caller
 *              (the last two rows also set CANCELLED and clear EXPIRED; a shutdown sets SHUTDOWN
 *              in all rows)
 *   reopen     any                    - SHUTDOWN                   -
 *   collect    RUNNING                - SUBMITTED                  - (left to finish)
 *              ARMED                  - SUBMITTED                  link
 *              to call                -                            append to shard->owed
 *              else                   - SUBMITTED                  the hold is over
 *   end        ARMED (again)          - SUBMITTED                  link
 *              CANCELLED, to notify   - SUBMITTED, + RUNNING       call ->cancelled
 *              else                   - SUBMITTED                  call ->release
 *   fire       not ARMED (cancelled)  -                            - (left to collect)
 *              tick beyond the cursor -                            link
 *              touched                the touched tick             link
 *              else                   - ARMED, + RUNNING EXPIRED,  call ->expire
 *                                     periodic: + REARM
 *   fire, BH   not ARMED, or SUBMITTED -                           - (left to collect)
 *              tick beyond the cursor -                            link
 *              touched                the touched tick             link
 *              periodic               the next tick, + REARM       link, call ->expire
 *                                     EXPIRED
 *              else                   - ARMED, + EXPIRED           call ->expire
 *   hand back  not ARMED (cancelled)  -                            - (left to collect)
 *              else                   - ARMED REARM EXPIRED,       call the stop's function
 *                                     + RUNNING CANCELLED
 *   hand back, not ARMED, or SUBMITTED -                           - (left to collect)
 *   BH         else                   - ARMED REARM EXPIRED,       call the stop's function
 *                                     + CANCELLED
 *   finish     CANCELLED, to notify,
 *              not SUBMITTED          -                            call ->cancelled, finish anew
 *              ARMED (again)          - RUNNING                    link
 *              REARM                  - RUNNING, + ARMED, new tick link
 *              SUBMITTED              - RUNNING                    - (left to collect)
 *              else                   - RUNNING                    call ->release
 *
 * The hold ends with the compare-and-swap after which neither ARMED, SUBMITTED nor RUNNING is set.
 * By then the timeout is in no list, and hwt does not access it any more. Then the runner that has
 * ended the hold calls ->release, which may free the memory. ->release is called once for each
 * hold, even if another CPU has begun the next hold before the call; but not for a hold that
 * hwt_delete() has ended.
 */
#ifndef _HWT_CORE_STATE_H
#define _HWT_CORE_STATE_H

#include <linux/types.h>

#include "hwt.h"

#define HWT_F_ALL	((1ULL << HWT_TICK_SHIFT) - 1)

/**
 * enum hwt_action - what follows a change of a timeout's state
 * @HWT_NOTHING:	do nothing
 * @HWT_SUBMIT:		push the timeout on a submission list of this CPU
 * @HWT_HASTEN:		wake the engine if the new tick is earlier than the tick until which the
 *			engine sleeps; do not push the timeout, which is SUBMITTED already
 * @HWT_LINK:		insert the timeout, which is in no list, into the buckets
 * @HWT_CALL:		call ->expire or, in a stop, the stop's function; then, unless the wheel is
 *			a BH wheel, call hwt_state_finish()
 * @HWT_CALL_CANCELLED: call ->cancelled, and then hwt_state_finish()
 * @HWT_OWE_CALL:	append the timeout to shard->owed, so that a runner ends its hold later;
 *			leave the state as it is
 * @HWT_RELEASE:	call ->release, if there is one, since the hold is over
 * @HWT_GIVE_BACK:	call nothing: the hold is over. A reference that the client got for the hold
 *			now belongs to the caller of hwt_delete()
 * @HWT_UNCHANGED:	leave the state as it is: the flag HWT_SCHEDULE_EARLIER or
 *			HWT_SCHEDULE_UNLESS_PENDING asks for that
 * @HWT_REFUSED_NOT_PENDING: fail: HWT_SCHEDULE_PENDING requires a pending timeout
 * @HWT_REFUSED_SHUTDOWN: fail: the timeout was shut down
 */
enum hwt_action {
	HWT_NOTHING,
	HWT_SUBMIT,
	HWT_HASTEN,
	HWT_LINK,
	HWT_CALL,
	HWT_CALL_CANCELLED,
	HWT_OWE_CALL,
	HWT_RELEASE,
	HWT_GIVE_BACK,
	HWT_UNCHANGED,
	HWT_REFUSED_NOT_PENDING,
	HWT_REFUSED_SHUTDOWN,
};

struct hwt_change {
	u64		state;
	enum hwt_action	action;
};

static inline u64 hwt_state_tick(u64 state)
{
	return state >> HWT_TICK_SHIFT;
}

/* Return a state with another tick. */
static inline u64 hwt_state_at(u64 state, u64 tick)
{
	return (state & HWT_F_ALL) | tick << HWT_TICK_SHIFT;
}

/* Return true if the bits of this state can be set together. */
static inline bool hwt_state_valid(u64 state)
{
	if ((state & HWT_F_REARM) &&
	    (!(state & HWT_F_PERIODIC) || !(state & (HWT_F_ARMED | HWT_F_RUNNING))))
		return false;
	if ((state & HWT_F_PENDING) && (state & (HWT_F_SHUTDOWN | HWT_F_CANCELLED)))
		return false;
	return !(state & HWT_F_CANCELLED) || !(state & HWT_F_EXPIRED);
}

/*
 * In the functions below, @old is the present state, and @now the cursor. @touched is the tick to
 * which hwt_touch() has put off the timeout, or 0 if that tick is not beyond the cursor.
 */

/* A client schedules a timeout. @flags: HWT_SCHEDULE_*; HWT_SCHEDULE_AT is ignored. */
static __always_inline struct hwt_change hwt_state_schedule(u64 old, u64 tick, unsigned int flags)
{
	u64 kept = old & (HWT_F_SUBMITTED | HWT_F_RUNNING);
	struct hwt_change change = { .state = old };

	if (unlikely(old & HWT_F_SHUTDOWN)) {
		change.action = HWT_REFUSED_SHUTDOWN;
		return change;
	}
	if ((flags & HWT_SCHEDULE_PENDING) && !(old & HWT_F_PENDING)) {
		change.action = HWT_REFUSED_NOT_PENDING;
		return change;
	}
	if (((flags & HWT_SCHEDULE_EARLIER) && (old & HWT_F_ARMED) &&
	     tick >= hwt_state_tick(old)) ||
	    ((flags & HWT_SCHEDULE_UNLESS_PENDING) && (old & HWT_F_PENDING))) {
		change.action = HWT_UNCHANGED;
		return change;
	}
	change.state = tick << HWT_TICK_SHIFT | HWT_F_ARMED | kept |
		       (flags & HWT_SCHEDULE_PERIODIC ? HWT_F_PERIODIC : 0);
	if (kept) {
		/* If only RUNNING is set, hwt_finish() links the timeout after the callback. */
		change.action = kept & HWT_F_SUBMITTED ? HWT_HASTEN : HWT_NOTHING;
	} else if ((old & HWT_F_ARMED) && tick >= hwt_state_tick(old)) {
		/*
		 * Leave the timeout in its list. The engine reads the new tick when the cursor
		 * enters the timeout's bucket, or when a runner takes the timeout off the due list.
		 */
		change.action = HWT_NOTHING;
	} else {
		change.state |= HWT_F_SUBMITTED;
		change.action = HWT_SUBMIT;
	}
	return change;
}

/* A client cancels a timeout. @set: HWT_F_SHUTDOWN to shut the timeout down, too, else 0. */
static __always_inline struct hwt_change hwt_state_cancel(u64 old, u64 set)
{
	struct hwt_change change = { .state = old | set, .action = HWT_NOTHING };

	if (!(old & HWT_F_PENDING))
		return change;
	change.state &= ~(HWT_F_PENDING | HWT_F_EXPIRED);
	change.state |= HWT_F_CANCELLED;
	if (!(old & (HWT_F_SUBMITTED | HWT_F_RUNNING))) {
		change.state |= HWT_F_SUBMITTED;
		change.action = HWT_SUBMIT;
	}
	return change;
}

/*
 * hwt_delete() or, on a BH wheel, a _sync call cancels a timeout, under the shard's lock. If the
 * timeout is pending and not RUNNING, its hold ends here. If SUBMITTED is set in @old, the timeout
 * is on shard->owed, or it is ARMED and the caller has taken it off its submission list. @set:
 * HWT_F_SHUTDOWN to shut the timeout down, too, else 0.
 */
static inline struct hwt_change hwt_state_delete(u64 old, u64 set)
{
	struct hwt_change change = { .state = old | set, .action = HWT_NOTHING };

	if (!(old & HWT_F_PENDING))
		return change;
	change.state &= ~(HWT_F_PENDING | HWT_F_EXPIRED);
	change.state |= HWT_F_CANCELLED;
	if (!(old & HWT_F_RUNNING)) {
		change.state &= ~HWT_F_SUBMITTED;
		change.action = HWT_GIVE_BACK;
	}
	return change;
}

/* Return the new state for hwt_reopen(): calls that schedule the timeout no longer fail. */
static inline u64 hwt_state_reopen(u64 old)
{
	return old & ~HWT_F_SHUTDOWN;
}

/* Return true if ->cancelled or ->release is called when a hold ends in this state. */
static inline bool hwt_state_calls(u64 state, const struct hwt_timeout_ops *ops)
{
	return ops->release || (ops->cancelled && (state & HWT_F_CANCELLED));
}

/* A holder of the shard's lock collects a SUBMITTED timeout. @ops: the timeout's callbacks. */
static inline struct hwt_change hwt_state_collect(u64 old, const struct hwt_timeout_ops *ops)
{
	struct hwt_change change = { .state = old & ~HWT_F_SUBMITTED };

	if (old & HWT_F_RUNNING) {
		change.action = HWT_NOTHING;
	} else if (old & HWT_F_ARMED) {
		change.action = HWT_LINK;
	} else if (hwt_state_calls(old, ops)) {
		change.state = old;
		change.action = HWT_OWE_CALL;
	} else {
		change.action = HWT_RELEASE;
	}
	return change;
}

/*
 * A runner is to end the hold of a timeout that is SUBMITTED and not RUNNING. If the timeout was
 * armed again, it is linked instead. Either the runner has taken the timeout from shard->owed, or
 * the runner is a _sync call that has set SUBMITTED under the shard's lock and has not pushed the
 * timeout. @ops: the timeout's callbacks.
 */
static inline struct hwt_change hwt_state_end(u64 old, const struct hwt_timeout_ops *ops)
{
	struct hwt_change change = { .state = old & ~HWT_F_SUBMITTED };

	if (old & HWT_F_ARMED) {
		change.action = HWT_LINK;
	} else if (ops->cancelled && (old & HWT_F_CANCELLED)) {
		change.state |= HWT_F_RUNNING;
		change.action = HWT_CALL_CANCELLED;
	} else {
		change.action = HWT_RELEASE;
	}
	return change;
}

/*
 * Decide whether a timeout that is on the due list, and not RUNNING, fires. If it fires, the action
 * is HWT_CALL, and the caller of this function computes the new state. If it was put off to a tick
 * beyond the cursor, the action is HWT_LINK. If it is not ARMED, do nothing: it was cancelled, is
 * SUBMITTED, and will be collected, which ends its hold.
 */
static __always_inline struct hwt_change hwt_state_due(u64 old, u64 now, u64 touched)
{
	struct hwt_change change = { .state = old, .action = HWT_NOTHING };

	if (!(old & HWT_F_ARMED))
		return change;
	if (hwt_state_tick(old) > now) {
		change.action = HWT_LINK;
	} else if (unlikely(touched > now)) {
		change.state = hwt_state_at(old, touched);
		change.action = HWT_LINK;
	} else {
		change.action = HWT_CALL;
	}
	return change;
}

/* A runner takes a timeout that is not RUNNING off the due list, to fire it if it is due. */
static inline struct hwt_change hwt_state_fire(u64 old, u64 now, u64 touched)
{
	struct hwt_change change = hwt_state_due(old, now, touched);

	if (change.action != HWT_CALL)
		return change;
	change.state &= ~(HWT_F_PENDING | HWT_F_CANCELLED);
	change.state |= HWT_F_RUNNING | HWT_F_EXPIRED;
	if (old & HWT_F_PERIODIC)
		change.state |= HWT_F_REARM;
	return change;
}

/*
 * The engine of a BH wheel takes a timeout off the due list, to fire it if it is due. @next: the
 * tick at which the timeout fires again, if it is periodic.
 *
 * The hold of a one-shot ends here, before the callback, because the callback may free the timeout.
 * A SUBMITTED timeout is on a submission list, or about to be, so its hold cannot end: it does not
 * fire now. Its collection links it again, and it fires then.
 */
static inline struct hwt_change hwt_state_fire_bh(u64 old, u64 now, u64 touched, u64 next)
{
	struct hwt_change change = hwt_state_due(old, now, touched);

	if (old & HWT_F_SUBMITTED) {
		change.state = old;
		change.action = HWT_NOTHING;
	}
	if (change.action != HWT_CALL)
		return change;
	if (old & HWT_F_PERIODIC)
		change.state = (old & HWT_F_ALL) | next << HWT_TICK_SHIFT | HWT_F_REARM;
	else
		change.state &= ~(HWT_F_PENDING | HWT_F_CANCELLED);
	change.state |= HWT_F_EXPIRED;
	return change;
}

/* A stop takes a timeout that is not RUNNING from the buckets, to hand it back. */
static inline struct hwt_change hwt_state_hand_back(u64 old)
{
	struct hwt_change change = { .state = old, .action = HWT_NOTHING };

	if (!(old & HWT_F_ARMED))
		return change;
	change.state &= ~(HWT_F_PENDING | HWT_F_EXPIRED);
	change.state |= HWT_F_RUNNING | HWT_F_CANCELLED;
	change.action = HWT_CALL;
	return change;
}

/*
 * A stop of a BH wheel takes a timeout from the buckets, to hand it back. The hold ends here,
 * before the stop's function is called. So a timeout that is SUBMITTED must be collected first.
 */
static inline struct hwt_change hwt_state_hand_back_bh(u64 old)
{
	struct hwt_change change = { .state = old, .action = HWT_NOTHING };

	if ((old & (HWT_F_ARMED | HWT_F_SUBMITTED)) != HWT_F_ARMED)
		return change;
	change.state &= ~(HWT_F_PENDING | HWT_F_EXPIRED);
	change.state |= HWT_F_CANCELLED;
	change.action = HWT_CALL;
	return change;
}

/*
 * A runner has called a callback of a timeout, which is RUNNING. @tick: the tick at which a
 * periodic timeout fires again, used if it is REARM and not ARMED. @notify: true if the timeout has
 * a ->cancelled, which no runner has called for the last cancel yet.
 */
static inline struct hwt_change hwt_state_finish(u64 old, u64 tick, bool notify)
{
	struct hwt_change change = { .state = old & ~HWT_F_RUNNING };

	if (notify && (old & HWT_F_CANCELLED) && !(old & (HWT_F_PENDING | HWT_F_SUBMITTED))) {
		change.state = old;
		change.action = HWT_CALL_CANCELLED;
		return change;
	}
	if ((old & HWT_F_PENDING) == HWT_F_REARM)
		change.state = (change.state & HWT_F_ALL) | tick << HWT_TICK_SHIFT | HWT_F_ARMED;
	if (change.state & HWT_F_ARMED)
		change.action = HWT_LINK;
	else if (change.state & HWT_F_SUBMITTED)
		change.action = HWT_NOTHING;
	else
		change.action = HWT_RELEASE;
	return change;
}

#endif /* _HWT_CORE_STATE_H */
