/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a timeout: its state, and every change of its state
 *
 * Terms, as in the glossary of docs/design.md: a client schedules and cancels; the engine is the
 * wheel's thread; a runner is a context that calls clients (the engine, a worker, a _sync call, a
 * stop); the cursor is the last tick that the wheel has reached.
 *
 * timeout->state is one 64-bit word, the tick at which the timeout expires and these bits:
 *
 *   ARMED      It fires at the tick.
 *   SUBMITTED  It has yet to be collected, or a runner has yet to end its hold: it is about to be
 *              pushed on a submission list, on one, taken from one, on shard->owed, or claimed by
 *              a _sync call.
 *   RUNNING    ->expire, ->cancelled or the function of a stop is executing, in one runner.
 *   PERIODIC   It was last scheduled as periodic.
 *   REARM      It is periodic and has fired: the end of its callback arms it again. A schedule, a
 *              cancel or a hand-back clears REARM. Until then, REARM tells later firings from the
 *              first.
 *   SHUTDOWN   Schedules fail.
 *   CANCELLED  A cancel or a stop has ended it since it was last scheduled.
 *   EXPIRED    It has fired since it was last scheduled or cancelled.
 *
 * A timeout is held while it is ARMED, SUBMITTED or RUNNING: its memory must stay. It is pending,
 * and will fire, while it is ARMED or REARM. It is idle while it is not held.
 *
 * The state changes by compare-and-swap only, in loops that read it, call one of the functions
 * below, swap, and act afterwards. The functions are pure: they return the new state, and what the
 * caller has to do once the swap has succeeded (enum hwt_action). tests/unit/state.c calls them
 * with every combination of bits, and "make check-verify" compares them with the model of
 * tests/verify.
 *
 * The first row that matches the old state applies. "The tick": the new state has the scheduled
 * tick, and PERIODIC if the schedule is periodic. "To notify": the timeout has a ->cancelled, and
 * its client was not told of this cancel yet.
 *
 *   operation  in the state           changes                      action
 *   ---------- ---------------------- ---------------------------- ------------------------
 *   schedule   SHUTDOWN               -                            refuse
 *              a flag forbids it      -                            refuse, or -
 *              SUBMITTED              the tick, + ARMED            hasten
 *              RUNNING                the tick, + ARMED            - (finish links it)
 *              ARMED, in a bucket:
 *                later, or equal      the tick                     - (the cascade moves it)
 *                earlier              the tick, + SUBMITTED        submit
 *              idle                   the tick, + ARMED SUBMITTED  submit
 *              ... and in the last five - REARM CANCELLED EXPIRED
 *   cancel     not pending (also a
 *              one-shot that runs)    -                            -
 *              SUBMITTED or RUNNING   - ARMED REARM                -
 *              ARMED, in a bucket     - ARMED REARM, + SUBMITTED   submit
 *              ... and in the last two + CANCELLED, - EXPIRED; a shutdown: + SHUTDOWN always
 *   reopen     any                    - SHUTDOWN                   -
 *   collect    RUNNING                - SUBMITTED                  - (left to finish)
 *              ARMED                  - SUBMITTED                  link
 *              hwt_state_calls()      -                            append to shard->owed
 *              else                   - SUBMITTED                  the hold is over
 *   end        ARMED (again)          - SUBMITTED                  link
 *              CANCELLED, to notify   - SUBMITTED, + RUNNING       call ->cancelled
 *              else                   - SUBMITTED                  call ->release
 *   fire       not ARMED (cancelled)  -                            - (left to collect)
 *              tick beyond the cursor -                            link (pushed back)
 *              else                   - ARMED, + RUNNING EXPIRED,  call ->expire
 *                                     periodic: + REARM
 *   hand back  not ARMED (cancelled)  -                            - (left to collect)
 *              else                   - ARMED REARM EXPIRED,       call the stop's function
 *                                     + RUNNING CANCELLED
 *   finish     CANCELLED, to notify,
 *              not SUBMITTED          -                            call ->cancelled, finish anew
 *              ARMED (again)          - RUNNING                    link
 *              REARM                  - RUNNING, + ARMED, new tick link
 *              SUBMITTED              - RUNNING                    - (left to collect)
 *              else                   - RUNNING                    call ->release
 *
 * Members of a timeout beside its state, protected by the shard's lock, but for @submit:
 *
 *   link      Place in a bucket, on the due list or on shard->owed.
 *   owed      It is on shard->owed, and waits for a runner to call ->cancelled or ->release: it
 *             was neither ARMED nor RUNNING when it was collected.
 *   submit    Place on a submission list; protected by SUBMITTED.
 *
 * The swap that leaves neither ARMED, SUBMITTED nor RUNNING ends the hold. By then the timeout is
 * in no list, and hwt does not read or write it afterwards. Then the runner calls ->release, which
 * may free the memory. Without a ->release, the memory may be freed when hwt_cancel_sync() has
 * returned. ->release is called once for each hold, even if another CPU begins the next one before.
 */
#ifndef _HWT_CORE_STATE_H
#define _HWT_CORE_STATE_H

#include <linux/types.h>

#include "hwt.h"

#define HWT_F_ALL	((1ULL << HWT_TICK_SHIFT) - 1)

/**
 * enum hwt_action - what follows a change of a timeout's state
 * @HWT_NOTHING:	nothing
 * @HWT_SUBMIT:		push the timeout on this CPU's submission list
 * @HWT_HASTEN:		the timeout is submitted already; wake the engine if the new tick is earlier
 *			than the one for which the engine sleeps
 * @HWT_LINK:		insert the timeout, which is in no list, into the buckets
 * @HWT_CALL:		call ->expire, or the function of a stop, and then finish
 * @HWT_CALL_CANCELLED: call ->cancelled, and then finish
 * @HWT_OWE_CALL:	append the timeout to shard->owed; the state has not changed
 * @HWT_RELEASE:	the hold is over: call ->release, if there is one
 * @HWT_UNCHANGED:	the flags of the schedule ask to leave the state as it is
 * @HWT_REFUSED_NOT_PENDING: the timeout is not pending; the state has not changed
 * @HWT_REFUSED_SHUTDOWN: the timeout was shut down; the state has not changed
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
	HWT_UNCHANGED,
	HWT_REFUSED_NOT_PENDING,
	HWT_REFUSED_SHUTDOWN,
};

/* A change: the new state, and what follows. */
struct hwt_change {
	u64		state;
	enum hwt_action	action;
};

static inline u64 hwt_state_tick(u64 state)
{
	return state >> HWT_TICK_SHIFT;
}

/* Is this combination of bits possible? */
static inline bool hwt_state_valid(u64 state)
{
	if ((state & HWT_F_REARM) &&
	    (!(state & HWT_F_PERIODIC) || !(state & (HWT_F_ARMED | HWT_F_RUNNING))))
		return false;
	if ((state & HWT_F_PENDING) && (state & (HWT_F_SHUTDOWN | HWT_F_CANCELLED)))
		return false;
	return !(state & HWT_F_CANCELLED) || !(state & HWT_F_EXPIRED);
}

/**
 * hwt_state_schedule() - a client schedules
 * @old:   the state
 * @tick:  when it is to fire
 * @flags: HWT_SCHEDULE_EARLIER, _PENDING, _UNLESS_PENDING and _PERIODIC count here
 */
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
		/* If only RUNNING: hwt_state_finish() links the timeout at the new tick. */
		change.action = kept & HWT_F_SUBMITTED ? HWT_HASTEN : HWT_NOTHING;
	} else if ((old & HWT_F_ARMED) && tick >= hwt_state_tick(old)) {
		/* A cascade, or the firing, reads the new tick. */
		change.action = HWT_NOTHING;
	} else {
		change.state |= HWT_F_SUBMITTED;
		change.action = HWT_SUBMIT;
	}
	return change;
}

/**
 * hwt_state_cancel() - a client cancels
 * @old: the state
 * @set: HWT_F_SHUTDOWN, or 0
 */
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

/* A timeout that was shut down may be scheduled again. */
static inline u64 hwt_state_reopen(u64 old)
{
	return old & ~HWT_F_SHUTDOWN;
}

/* Does the end of a hold, in this state, call ->cancelled or ->release? */
static inline bool hwt_state_calls(u64 state, const struct hwt_timeout_ops *ops)
{
	return ops->release || (ops->cancelled && (state & HWT_F_CANCELLED));
}

/**
 * hwt_state_collect() - a submission is collected
 * @old: the state, SUBMITTED
 * @ops: the timeout's callbacks; none is called here
 */
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

/**
 * hwt_state_end() - a runner ends the hold of a timeout
 * @old: the state, SUBMITTED and not RUNNING
 * @ops: the timeout's callbacks
 *
 * The runner has taken the timeout from shard->owed. Or the runner is a _sync call: it has set
 * SUBMITTED under the shard's lock, and has pushed the timeout on no list.
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

/**
 * hwt_state_fire() - the cursor has come to a timeout in the buckets
 * @old: the state, not RUNNING
 * @now: the cursor
 *
 * A timeout that is not ARMED was cancelled, and is SUBMITTED: it is left to its collection.
 */
static inline struct hwt_change hwt_state_fire(u64 old, u64 now)
{
	struct hwt_change change = { .state = old, .action = HWT_NOTHING };

	if (!(old & HWT_F_ARMED))
		return change;
	if (hwt_state_tick(old) > now) {
		change.action = HWT_LINK;
		return change;
	}
	change.state &= ~(HWT_F_PENDING | HWT_F_CANCELLED);
	change.state |= HWT_F_RUNNING | HWT_F_EXPIRED;
	if (old & HWT_F_PERIODIC)
		change.state |= HWT_F_REARM;
	change.action = HWT_CALL;
	return change;
}

/**
 * hwt_state_hand_back() - a stop takes a timeout from the buckets
 * @old: the state, not RUNNING
 */
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

/**
 * hwt_state_finish() - a callback has returned
 * @old:    the state, RUNNING
 * @tick:   when a periodic timeout is to fire again
 * @notify: the timeout has a ->cancelled, and its client was not told of a cancel yet
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
