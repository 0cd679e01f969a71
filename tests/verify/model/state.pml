/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The changes of a timeout's state, as in core/state.h: each sets "new", the new state, and "act",
 * the action. transitions.pml prints them all, for a comparison with those of the C functions.
 */
#define ARMED		1
#define SUBMITTED	2
#define RUNNING		4
#define REARM		8
#define SHUTDOWN	16
#define CANCELLED	32
#define PERIODIC	64
#define HELD		7
#define PENDING		9
#define TICK(s)		((s) >> 8)
#define BITS(s)		((s) & 255)

/* enum hwt_action */
#define NOTHING_MORE	0
#define SUBMIT		1
#define HASTEN		2
#define LINK		3
#define CALL		4
#define CALL_CANCELLED	5
#define END_LATER	6
#define RELEASE_IT	7
#define GIVE_BACK	8
#define REFUSED		10

/* Set and read in one step. */
hidden byte act;

inline state_schedule(old, tick, periodic)
{
	if
	:: old & SHUTDOWN -> new = old; act = REFUSED
	:: else ->
		new = ((tick) << 8) | ARMED | (old & (SUBMITTED | RUNNING)) |
		      ((periodic) -> PERIODIC : 0) | (MUT(KEEP_REARM) -> old & REARM : 0);
		if
		:: old & SUBMITTED -> act = HASTEN
		:: !(old & SUBMITTED) && !(MUT(SCHEDULE_RUNNING) && (old & RUNNING)) &&
		   ((old & RUNNING) || ((old & ARMED) && (tick) >= TICK(old))) ->
			act = NOTHING_MORE
		:: else -> new = new | SUBMITTED; act = SUBMIT
		fi
	fi
}

inline state_cancel(old, set)
{
	new = old | (set);
	act = NOTHING_MORE;
	if
	:: old & PENDING ->
		new = (new & ~PENDING) | CANCELLED | (MUT(CANCEL_KEEPS_REARM) -> old & REARM : 0);
		if
		:: !(old & (SUBMITTED | RUNNING)) ||
		   (MUT(CANCEL_RUNNING) && (old & (SUBMITTED | RUNNING)) == RUNNING) ->
			new = new | SUBMITTED;
			act = SUBMIT
		:: else
		fi
	:: else
	fi
}

/* @calls: the end of the hold calls the client */
inline state_collect(old, calls)
{
	new = old & ~SUBMITTED;
	if
	:: old & RUNNING -> act = NOTHING_MORE
	:: !(old & RUNNING) && (old & ARMED) -> act = LINK
	:: !(old & (RUNNING | ARMED)) && (calls) -> new = old; act = END_LATER
	:: else -> act = RELEASE_IT
	fi
}

inline state_end(old, cancelled)
{
	new = old & ~SUBMITTED;
	if
	:: old & ARMED -> act = LINK
	:: !(old & ARMED) && (cancelled) && (old & CANCELLED) ->
		new = new | RUNNING;
		act = CALL_CANCELLED
	:: else -> act = RELEASE_IT
	fi
}

/* SUBMITTED: the caller has taken the timeout off its submission list */
inline state_delete(old, set)
{
	new = old | (set);
	act = NOTHING_MORE;
	if
	:: old & PENDING ->
		new = (new & ~PENDING) | CANCELLED;
		if
		:: !(old & RUNNING) || MUT(DELETE_RUNNING) ->
			new = new & ~SUBMITTED;
			act = GIVE_BACK
		:: else
		fi
	:: else
	fi
}

/* @touched: the tick to which the timeout was touched, or 0 */
inline state_due(old, time, touched)
{
	new = old;
	if
	:: !(old & ARMED) -> act = NOTHING_MORE
	:: (old & ARMED) && TICK(old) > (time) -> act = LINK
	:: (old & ARMED) && TICK(old) <= (time) && (touched) > (time) ->
		new = BITS(old) | ((touched) << 8);
		act = LINK
	:: else -> act = CALL
	fi
}

/* @next: the tick at which a periodic timeout fires again */
inline state_fire_bh(old, time, touched, next)
{
	state_due(old, time, touched);
	if
	:: old & SUBMITTED -> new = old; act = NOTHING_MORE
	:: !(old & SUBMITTED) && act == CALL ->
		if
		:: old & PERIODIC -> new = BITS(old) | REARM | ((next) << 8)
		:: else -> new = old & ~(PENDING | CANCELLED)
		fi
	:: else
	fi
}

inline state_hand_back_bh(old)
{
	new = old;
	if
	:: (old & (ARMED | SUBMITTED)) == ARMED ->
		new = (old & ~PENDING) | CANCELLED;
		act = CALL
	:: else -> act = NOTHING_MORE
	fi
}

inline state_fire(old, time, touched)
{
	state_due(old, time, touched);
	if
	:: act != CALL
	:: else ->
		new = (old & ~(PENDING | CANCELLED)) | RUNNING |
		      ((old & PERIODIC) && !MUT(REARM_ALWAYS) -> REARM : 0);
		act = CALL
	fi
}

inline state_hand_back(old)
{
	new = old;
	if
	:: old & ARMED -> new = (old & ~PENDING) | RUNNING | CANCELLED; act = CALL
	:: else -> act = NOTHING_MORE
	fi
}

inline state_finish(old, tick, notify)
{
	new = old & ~RUNNING;
	if
	:: (notify) && (old & CANCELLED) && !(old & (PENDING | SUBMITTED)) ->
		new = old;
		act = CALL_CANCELLED
	:: else ->
		if
		:: (old & PENDING) == REARM ||
		   (MUT(REARM_ALWAYS) && (old & PERIODIC) && !(old & ARMED)) ->
			new = BITS(new) | ARMED | ((tick) << 8)
		:: else
		fi;
		if
		:: new & ARMED -> act = LINK
		:: !(new & ARMED) && (new & SUBMITTED) -> act = NOTHING_MORE
		:: else -> act = RELEASE_IT
		fi
	fi
}
