/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stop of a wheel of two shards, for spin; see README.md. life.pml models the life of a timeout
 * in a shard; here a schedule, a firing and a hand-back are few steps.
 *
 * Each shard has a timeout and an engine. A callback arms the timeout of the other shard. The
 * return of a periodic timeout's callback arms the timeout again, even if the wheel is closed. A
 * client schedules, and cancels in two steps: it claims the timeout, and pushes it. A mutation is
 * -DMUTATION=NAME.
 */

/*
 * shards.configs sets these macros for each configuration, and their defaults:
 *
 * PERIODIC	shards whose timeout is periodic, as bits
 * OPS		number of the client's operations
 * FIRES	how often each engine may fire
 */

#include "mutations.h"
#ifndef MUTATION
#define MUTATION 0		/* no mutation */
#endif
#define MUT(n) ((n) == MUTATION)

bool armed[2], closed[2], stopping[2], should_stop[2], ended[2], running[2];
bool claimed[2], pushed[2];	/* SUBMITTED: by a cancel, which has yet to push it; pushed */
byte readers;			/* RCU read-side sections under way */
bool drained;			/* the stop has begun to hand back */
bool refused;			/* a schedule has failed */
bool done;			/* hwt_wheel_stop() has returned */
byte handed_back, pending;	/* numbers of timeouts */

/* hwt_arm_open(): an RCU read-side section from the read of @closed to the change of the state. */
inline schedule(x)
{
	atomic { readers++ };
	if
	:: atomic { closed[x] -> readers--; refused = true }
	:: atomic { !closed[x] -> skip };
	   atomic {
		if
		:: !armed[x] -> armed[x] = true; pending++
		:: else
		fi;
		readers--
	   }
	fi
}

proctype Engine(byte s)
{
	byte fires = 0;

	do
	:: atomic { should_stop[s] -> ended[s] = true; break }
	:: atomic { pushed[s] && !should_stop[s] -> pushed[s] = false }
	:: atomic { armed[s] && !claimed[s] && !pushed[s] && !stopping[s] && !should_stop[s] &&
		    fires < FIRES ->
		armed[s] = false; pending--; fires++; running[s] = true;
		/* After the first hand-back or failure, no callback begins on any shard. */
		assert(!drained);
		assert(!refused || MUT(ONE_BY_ONE))
	   }
	   schedule(1 - s);
	   atomic {
		if
		:: (PERIODIC & (1 << s)) && !armed[s] -> armed[s] = true; pending++
		:: else
		fi;
		running[s] = false
	   }
	:: atomic { fires == FIRES && should_stop[s] -> ended[s] = true; break }
	od
}

/* __hwt_cancel(): an RCU read-side section from the claim to the push. */
inline cancel(x)
{
	atomic { armed[x] ->
		armed[x] = false; pending--; readers++;
		mine = !claimed[x] && !pushed[x];
		claimed[x] = claimed[x] || mine
	};
	atomic {
		if
		:: mine -> claimed[x] = false; pushed[x] = true
		:: else
		fi;
		readers--
	}
}

proctype Client()
{
	byte n = 0, x;
	bool mine;

	do
	:: n < OPS ->
		n++;
		if
		:: x = 0
		:: x = 1
		fi;
		if
		:: schedule(x)
		:: cancel(x)
		:: skip
		fi
	:: n == OPS -> break
	od
}

inline drain(s)
{
	atomic {
		drained = true;
		pushed[s] = false;
		if
		:: armed[s] -> armed[s] = false; pending--; handed_back++
		:: else
		fi
	}
}

/* hwt_stop(): each step on both shards. */
proctype Stop()
{
	if
	:: MUT(CLOSED_EARLY) -> atomic { closed[0] = true }
	:: else
	fi;
	atomic { stopping[0] = true };
	if
	:: MUT(ONE_BY_ONE) ->
		/* All steps on the first shard before any on the second. */
		atomic { closed[0] = true };
		readers == 0;
		drain(0);
		atomic { should_stop[0] = true };
		ended[0];
		drain(0)
	:: else
	fi;
	atomic { stopping[1] = true };
	atomic { closed[0] = true };
	if
	:: MUT(CLOSE_FIRST_ONLY)
	:: else -> atomic { closed[1] = true }
	fi;
	if
	:: MUT(NO_GRACE)
	:: else -> readers == 0
	fi;
	drain(0);
	drain(1);
	atomic { should_stop[0] = true };
	ended[0];
	atomic { should_stop[1] = true };
	if
	:: MUT(NOT_WAITED)
	:: else -> ended[1]
	fi;
	if
	:: MUT(NO_SECOND_DRAIN)
	:: else -> drain(0); drain(1)
	fi;
	if
	:: MUT(NO_SECOND_GRACE)
	:: else -> readers == 0
	fi;
	drain(0);
	drain(1);
	atomic {
		done = true;
		assert(!claimed[0] && !claimed[1] && !pushed[0] && !pushed[1]);
		assert(!armed[0] && !armed[1]);
		assert(pending == 0);
		assert(!running[0] && !running[1])
	}
}

/* After the stop, no timeout is armed. */
proctype Watch()
{
end:
	atomic { done && (armed[0] || armed[1]) -> assert(!armed[0] && !armed[1]) }
}

init {
	atomic {
		armed[0] = true;
		pending = 1;
		run Engine(0); run Engine(1); run Client(); run Stop(); run Watch()
	}
}
