/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a timeout, for spin. README.md maps the names of the model to those of the code.
 *
 * An atomic block is one step that other threads can observe: one compare-and-swap, one push, one
 * read or write of a shared variable. Accesses to private variables, and to variables under the
 * wheel's lock, join the step beside them. Taking the lock joins the first step after it, releasing
 * the lock the last step before it.
 *
 * A configuration is a set of -D options; the environment has the number of the mutation.
 */

/* -- Configuration ------------------------------------------------------- */

/*
 * life.configs sets these macros for each configuration, and their defaults:
 *
 * NT		number of timeouts, which are numbered from 1
 * CPUS		2: thread t submits on CPU t; 1: both threads on CPU 0
 * MAXNOW	the clock goes from 0 to this
 * OPS0, N0, ON0	operations of thread 0, their number, their timeouts (bit x-1: timeout x)
 * OPS1, N1, ON1	the same for thread 1
 * REL		bit x-1: timeout x has ->release, and a reference count
 * CAN		bit x-1: timeout x has ->cancelled
 * CBSYNC	the callback of timeout 1 syncs timeout 2
 * SOON_LET_GO	the engine does not wait for reclaim_ms
 * WORKER	a worker fires, instead of the engine
 * STOP		1: stop with a function, 2: without
 * MUTEX	a client's lock, held around _sync of timeout 1 by thread 0, and taken by release of
 *		timeout 2
 * BREAK	hwt_lock_break() between entries
 */

/* Operations of a thread. */
#define S_NOW	1		/* schedule: due at once */
#define S_SOON	2		/* due when the clock has moved */
#define S_LATE	4		/* never due */
#define P_NOW	8		/* the same, periodic */
#define P_SOON	16
#define CANCEL	32
#define SYNC	64		/* hwt_cancel_sync() */
#define SHUT	128		/* hwt_shutdown_sync() */
#define GIVE	256		/* schedule with the thread's own reference, and end */
#define INIT	512		/* hwt_timeout_init(), if it is not held */
#define BARRIER	1024		/* hwt_wheel_barrier() by a caller in no module, and end */
#define DELETE	2048		/* hwt_delete() */

#define DELETES	(((OPS0) | (OPS1)) & DELETE)
#define SYNCS	(((OPS0) | (OPS1)) & (SYNC | SHUT) || !(REL & 1))
#define BARRIERS (((OPS0) | (OPS1)) & BARRIER)

/* -- Mutations ----------------------------------------------------------- */

#include "mutations.h"
#ifdef MUTATED
#define MUT(n) c_expr { mutation == n }
c_decl {
static int mutation;
static __attribute__((constructor)) void mutation_get(void)
{
	const char *number = getenv("MUTATION");

	mutation = number ? atoi(number) : 0;
}
};
#else
#define MUT(n) (false)
#endif

/* -- State --------------------------------------------------------------- */

/* The state: tick << 8 | bits. */
#include "state.pml"
#define NOW		0
#define SOON		1
#define LATE		(MAXNOW + 1)

short state[NT + 1];

/* The list that a timeout is in; protected by the wheel's lock. */
#define NOWHERE		0
#define DUE		1
#define ENDED		2		/* shard->owed */
#define BUCKET(t)	(3 + (t))
byte at[NT + 1];

bool lock;
byte next[NT + 1];		/* submit.next */
byte head[CPUS];		/* the submission lists */
bool submitted[CPUS];
byte intake;			/* entries taken */
byte cursor;
byte now;			/* the clock */

/* Runners, and the timeout whose callback or release each executes. */
#define T0		0
#define T1		1
#define STOPPER		2
#define ENGINE		3
#define POOL		4
#define RUNNERS		5
byte current[RUNNERS];
bool waiting[RUNNERS];		/* sleeps in hwt_wait_for() */

byte wake_tick;
bool kicked, reclaim, closed, stopping, should_stop;
byte reclaim_at;
bool asleep;			/* the engine: state is TASK_IDLE */
byte target;			/* the tick for which it sleeps; 0: it does not sleep */
bool engine_done, worker_done, stop_done, thread_done[2];
#if WORKER
bool wsleeps;			/* the worker sleeps */
#define WAKE_WORKER	wsleeps = false
#define SERVED(x)	((at[x] == DUE || at[x] == ENDED) && !wsleeps)
#else
#define WAKE_WORKER	skip
#define SERVED(x)	false
#endif

/* Has sleep_seq changed since the thread read it? 0: it has not read it. */
#define CHANGED		2
#define SAME		1
byte seq[2];

/* RCU: threads in a read-side section, and threads for which the grace period still waits. */
bool rcu[2], grace[2];

bool mutex;			/* of a client: see MUTEX */

#if BARRIERS
/* The mark of thread t's barrier: struct hwt_mark. */
#define LISTED		1		/* on shard->owed */
#define REACHED		2
byte mark[2];
byte before[2];			/* bit x-1: timeout x is on shard->owed, in front of the mark */
byte called[2];			/* bit r: the call of runner r began before the mark was reached */
#endif

/* Variables for the checks only. */
bool freed[NT + 1];
byte refs[NT + 1];		/* the client's reference count */
byte owed[NT + 1];		/* holds begun and not yet released */
bool live[NT + 1];		/* scheduled, and neither fired nor cancelled since */
bool untold[NT + 1];		/* cancelled, and ->cancelled has yet to be called */
bool fresh[NT + 1];		/* a new period was set, and has not been read by the engine */
bool busy[NT + 1];		/* a callback is executing */
byte releasing[NT + 1];		/* number of executing releases */
bool ops[NT + 1];		/* which callbacks it has: INIT changes them */
byte op_on[2];			/* the timeout of the thread's operation */
#if BARRIERS
byte pushing[2];		/* the timeout that a thread has claimed and not pushed yet */
byte ending[2];			/* bit x-1: thread t's barrier must wait for x's hold */
byte calling[2];		/* bit r: ... and for the function that runner r executes */
#endif

#define HAS(mask, x)	(((mask) >> ((x) - 1)) & 1)
#define RELEASE(x)	HAS(REL, x)
#define NOTIFY(x)	HAS(CAN, x)

#if NT == 1
#define ANY(p)		(p(1))
#define PICK(p)		if :: p(1) -> x = 1 fi
#else
#define ANY(p)		(p(1) || p(2))
#define PICK(p)		if :: p(1) -> x = 1 :: p(2) -> x = 2 fi
#endif
#define IS_DUE(x)	(at[x] == DUE)
#define IS_ENDED(x)	(at[x] == ENDED)

#define RUNNER_OF(x)	(current[T0] == x || current[T1] == x || \
			 current[STOPPER] == x || current[ENGINE] == x || \
			 current[POOL] == x)
#define ALL_QUIET	(current[T0] == 0 && current[T1] == 0 && \
			 current[STOPPER] == 0 && current[ENGINE] == 0 && \
			 current[POOL] == 0)

#if BARRIERS
/* shard->owed is not empty. */
#define SOME_ENDED	(ANY(IS_ENDED) || mark[0] == LISTED || mark[1] == LISTED)
/* Is the mark of thread t the first entry? Only marks have an order on shard->owed here. */
#define FIRST(t)	(mark[t] == LISTED && !before[t])
#define SOME_MARK	(FIRST(0) || FIRST(1))
#define RUNNER_BIT(r)	((current[r] != 0) << (r))
#define RUNNER_BITS	(RUNNER_BIT(T0) | RUNNER_BIT(T1) | RUNNER_BIT(STOPPER) | \
			 RUNNER_BIT(ENGINE) | RUNNER_BIT(POOL))
#define BIT(x)		(1 << ((x) - 1))
#define DROP(set, bit)	set[0] = set[0] & ~(bit); set[1] = set[1] & ~(bit)
/* The timeout leaves shard->owed. */
#define ENDED_REMOVE(x)	DROP(before, BIT(x));
/* runner->call = ++wheel->calls */
#define NUMBER(r)	DROP(called, 1 << (r));
#else
#define SOME_ENDED	ANY(IS_ENDED)
#define ENDED_REMOVE(x)
#define NUMBER(r)
#endif

inline touch(x)
{
	assert(!freed[x]);	/* use after free */
}

/* -- Ghosts -------------------------------------------------------------- */

/*
 * From the moment it has the lock, a barrier must wait for the end of the hold of each timeout that
 * is not pending, unless another thread has yet to push the timeout, or schedules it again; and for
 * all executing functions.
 */
#if BARRIERS
#define GHOST_WAITS(t, x) \
	((state[x] & HELD) && !(state[x] & PENDING) && pushing[1 - (t)] != x -> BIT(x) : 0)
#define GHOST_CLAIM(x, t) pushing[t] = (new & ~old & SUBMITTED -> x : 0);
#define GHOST_PUSHED(t)	pushing[t] = 0;
#define GHOST_AGAIN(x)	if :: old & HELD -> DROP(ending, BIT(x)) :: else fi;
/* A runner begins to execute ->cancelled or ->release. */
#define GHOST_CALL_ONE(r, x, t) \
	calling[t] = calling[t] | (ending[t] & BIT(x) -> 1 << (r) : 0);
#define GHOST_CALL(r, x) GHOST_CALL_ONE(r, x, 0) GHOST_CALL_ONE(r, x, 1)
#define GHOST_RETURN(r)	DROP(calling, 1 << (r));
#define GHOST_END(x)	DROP(ending, BIT(x));
#else
#define GHOST_CLAIM(x, t)
#define GHOST_PUSHED(t)
#define GHOST_AGAIN(x)
#define GHOST_CALL(r, x)
#define GHOST_RETURN(r)
#define GHOST_END(x)
#endif

inline ghost_schedule(x, old, new)
{
	owed[x] = owed[x] + ((old & HELD) == 0);
	GHOST_AGAIN(x)
	live[x] = true;
	untold[x] = false;
	fresh[x] = ((new & PERIODIC) != 0)
}

inline ghost_cancel(x)
{
	live[x] = false;
	fresh[x] = false;
	untold[x] = NOTIFY(x)
}

inline ghost_fire(x, old)
{
	assert(live[x]);			/* fired after a cancel, or twice */
	assert(TICK(old) <= now);		/* fired early */
	assert(!fresh[x] || !(old & REARM));	/* fired with the old period */
	fresh[x] = false;
	live[x] = ((old & PERIODIC) != 0)
}

inline ghost_idle(x)
{
	mine = ops[x];
	assert(owed[x] > 0);
	assert(!live[x]);			/* scheduled, and will never fire */
	assert(!untold[x])			/* ->cancelled was not called */
}

inline put(x)
{
	assert(refs[x] > 0);
	refs[x]--;
	if
	:: refs[x] == 0 -> freed[x] = true
	:: else
	fi
}

/* -- The wheel ----------------------------------------------------------- */

/* hwt_buckets_insert(): reads the tick from the state. */
inline insert(x)
{
	touch(x);
	assert(at[x] == NOWHERE);		/* linked twice */
	at[x] = (TICK(state[x]) <= cursor -> DUE : BUCKET(TICK(state[x])))
}

inline advance_one(x, to)
{
	if
	:: at[x] >= BUCKET(0) && at[x] <= BUCKET(to) -> at[x] = DUE
	:: else
	fi
}

inline advance(to)
{
	advance_one(1, to);
#if NT > 1
	advance_one(2, to);
#endif
}

/* -- Waking -------------------------------------------------------------- */

#define WAKE_ALL	waiting[T0] = false; waiting[T1] = false; \
			waiting[STOPPER] = false; waiting[POOL] = false

/* The second half of hwt_engine_kick(); the first half is kicked = true. */
#define WAKE		asleep = false

/*
 * hwt_engine_kick(): a thread that finds kicked set leaves the wake-up to the thread that has set
 * it. That thread is not preempted in between.
 */
inline kick()
{
	if
	:: atomic { !kicked -> kicked = true }
		WAKE
	:: else
	fi
}

/* -- Under the lock ------------------------------------------------------ */

/* The next step of work() with timeout x. */
#define NOTHING		0
#define COLLECTED	1	/* hwt_collect_one() */
#define COLLECTED_BLIND	2
#define KICKED		3	/* hwt_owe_call(): the second half of the kick */
#define TAKEN		16	/* hwt_end_hold() */
#define RAN		4	/* hwt_finish() */
#define RAN_BLIND	5
#define TELLS		6	/* hwt_finish(), ->cancelled is executing */
#define LINKS		7	/* hwt_link() */
#define KICKS		8	/* hwt_link(): a worker has linked an early timeout */
#define WAKES		9
#define READS_OPS	10
#define ENDS		11	/* hwt_call_release() */
#define RELEASES	12
#define RELEASED	13
#define READS_NEXT	14
#define RETURNED	15	/* a callback has returned: take the lock, then as RAN */

#define DONE		how = NOTHING; if :: !more -> break :: else fi

/* The compare-and-swap that drops SUBMITTED or RUNNING. */
inline finish_state(x)
{
	state[x] = new;
	if
	:: !(new & HELD) -> ghost_idle(x)
	:: else
	fi
}

inline after_collected(x)
{
	if
	:: (old & RUNNING) && MUT(COLLECT_LINKS) && (old & ARMED) -> how = LINKS
	:: (old & RUNNING) && !(MUT(COLLECT_LINKS) && (old & ARMED)) -> DONE
	:: !(old & RUNNING) && (old & ARMED) -> how = LINKS
	:: else -> how = (MUT(OPS_AFTER) -> READS_OPS : ENDS)
	fi
}

inline after_running(x)
{
	if
	:: new & ARMED -> how = LINKS
	:: !(new & ARMED) && (new & HELD) -> WAKE_ALL; DONE
	:: else -> how = (MUT(OPS_AFTER) -> READS_OPS : ENDS)
	fi
}

/*
 * All work under the lock, for one timeout after the other: take the step @how of timeout x, and
 * collect if @more. Begins and ends with the lock held, and drops it around callbacks.
 *
 * @r: the runner
 */
inline work(r)
{
	do
	/* hwt_collect_one(): unlink, read the state, hwt_owe_call() or compare-and-swap */
	:: atomic { how == COLLECTED ->
		touch(x);
		assert(at[x] != ENDED);
		at[x] = NOWHERE;
		old = state[x];
		assert(old & SUBMITTED);
		state_collect(old, RELEASE(x) || (NOTIFY(x) && (old & CANCELLED)));
		if
		:: act == END_LATER && MUT(STRANGERS) -> how = TAKEN
		:: act == END_LATER && !MUT(STRANGERS) ->
			at[x] = ENDED;
#if WORKER
			wsleeps = wsleeps && MUT(POOL_NO_WAKE);
			DONE
#else
			if
			:: r == ENGINE -> DONE
			:: else ->
				how = KICKED;
				kicked = kicked || !MUT(DEFER_NO_KICK)
			fi
#endif
		:: act != END_LATER && MUT(COLLECT_BLIND) -> how = COLLECTED_BLIND
		:: act != END_LATER && MUT(NEXT_LATE) -> finish_state(x); how = READS_NEXT
		:: else -> finish_state(x); after_collected(x)
		fi }
	/* hwt_end_hold() */
	:: atomic { how == TAKEN ->
		touch(x);
		at[x] = NOWHERE;
		ENDED_REMOVE(x)
		old = state[x];
		assert(old & SUBMITTED);
		state_end(old, NOTIFY(x));
		finish_state(x);
		if
		:: act == LINK -> how = LINKS
		:: act == CALL_CANCELLED -> NUMBER(r) how = RAN; told = false
		:: else -> NUMBER(r) how = (MUT(OPS_AFTER) -> READS_OPS : ENDS)
		fi }
#ifdef MUTATED
	:: atomic { how == COLLECTED_BLIND -> finish_state(x); after_collected(x) }
	:: atomic { how == READS_NEXT -> intake = next[x]; after_collected(x) }
#endif
	:: atomic { how == KICKED ->
		asleep = asleep && MUT(DEFER_NO_KICK);
		DONE }

	/* hwt_finish(): read the state, call ->cancelled or compare-and-swap */
	:: atomic { how == RAN || ((how == RETURNED || how == TELLS) && !lock) ->
		touch(x);
		if
		:: how == RAN
		:: else ->
			lock = true;
			busy[x] = false;
			GHOST_RETURN(r)
			current[r] = 0
		fi;
		if
		:: how == TELLS ->
			untold[x] = false;	/* one call, if it was cancelled again */
			told = true
		:: else
		fi;
		old = state[x];
		/* hwt_periodic_next(): the next tick, or the present one if it is behind */
		if
		:: state_finish(old, now, !told && NOTIFY(x))
		:: (old & PENDING) == REARM -> state_finish(old, now + 1, !told && NOTIFY(x))
		fi;
		if
		:: act == CALL_CANCELLED ->
			assert(untold[x]);	/* ->cancelled called twice */
			assert(!busy[x]);
			untold[x] = false;
			busy[x] = true;
			GHOST_CALL(r, x)
			current[r] = x;
			lock = false;
			how = TELLS
		:: else ->
			if
			:: MUT(END_BLIND) -> how = RAN_BLIND
			:: else -> finish_state(x); after_running(x)
			fi
		fi }
#ifdef MUTATED
	:: atomic { how == RAN_BLIND -> finish_state(x); after_running(x) }
#endif
	:: atomic { how == LINKS ->
		insert(x);
		WAKE_ALL;
		if
		:: r == POOL && TICK(state[x]) < wake_tick && !MUT(POOL_NO_KICK) &&
		   !(MUT(POOL_LINK_NO_KICK) && (old & SUBMITTED) && !(old & RUNNING) && new) ->
			how = KICKS
		:: else -> DONE
		fi }
	:: atomic { how == KICKS && !kicked -> kicked = true; how = WAKES }
	:: atomic { how == KICKS && kicked -> DONE }
	:: atomic { how == WAKES -> WAKE; DONE }

	/* hwt_call_release() */
	:: atomic { how == READS_OPS -> touch(x); assert(ops[x] == mine); how = ENDS }
	:: atomic { how == ENDS ->
		if
		:: RELEASE(x) ->
#if BARRIERS
			if
			:: MUT(RELEASE_NUMBERED) -> NUMBER(r)
			:: else
			fi;
#endif
			GHOST_CALL(r, x)
			GHOST_END(x)
			current[r] = (MUT(RELEASE_UNTRACKED) -> 0 : x);
			releasing[x]++;
			lock = false;
			how = RELEASES
		:: else ->
			owed[x]--;
			GHOST_END(x)
			WAKE_ALL;
			DONE
		fi }
	:: atomic { how == RELEASES && !(MUTEX && x == 2 && mutex) ->
		assert(owed[x] > 0);	/* released twice */
		owed[x]--;
		releasing[x]--;
		put(x);
		how = RELEASED }
	:: atomic { how == RELEASED && !lock ->
		lock = true;
		GHOST_RETURN(r)
		current[r] = 0;
		WAKE_ALL;
		DONE }

	/* hwt_intake_pop() */
	:: atomic { how == NOTHING && more && intake ->
		x = intake;
		intake = (MUT(NEXT_LATE) -> 0 : next[x]);
		how = COLLECTED }
	/* hwt_intake_take(): clear the byte, then take the list */
	:: atomic { how == NOTHING && more && !intake && submitted[0] && !refill ->
		refill = 1;
		if
		:: MUT(TAKE_FIRST) -> intake = head[0]; head[0] = 0
		:: else -> submitted[0] = false
		fi }
	:: atomic { refill == 1 ->
		refill = 0;
		if
		:: MUT(TAKE_FIRST) -> submitted[0] = false
		:: else -> intake = head[0]; head[0] = 0
		fi }
#if CPUS > 1
	:: atomic { how == NOTHING && more && !intake && submitted[1] && !refill ->
		refill = 2;
		if
		:: MUT(TAKE_FIRST) -> intake = head[1]; head[1] = 0
		:: else -> submitted[1] = false
		fi }
	:: atomic { refill == 2 ->
		refill = 0;
		if
		:: MUT(TAKE_FIRST) -> submitted[1] = false
		:: else -> intake = head[1]; head[1] = 0
		fi }
#endif
#if BREAK
	/* hwt_lock_break() */
	:: atomic { how == NOTHING && more && intake && lock -> lock = false }
		atomic { !lock -> lock = true }
#endif
	:: atomic { how == NOTHING && more && !refill &&
		    !intake && !submitted[0] && !submitted[CPUS - 1] ->
		more = false;
		break }
	:: atomic { how == NOTHING && !more -> break }
	od
}

/* -- Schedule and cancel ------------------------------------------------- */

/* hwt_push() and the comparison of sleep_seq. @c: the CPU. */
inline push(x, t, c)
{
#ifdef MUTATED
	if
	:: atomic { MUT(ACTIVE_BEFORE) -> submitted[c] = true }
	:: atomic { MUT(SEQ_AFTER_CLAIM) -> seq[t] = SAME }
	:: atomic { MUT(SEQ_BEFORE_PUSH) && seq[t] == CHANGED -> kicked = true } WAKE
	:: else
	fi;
#endif
	atomic {
		touch(x);
		next[x] = head[c];
		first = (head[c] == 0);
		head[c] = x
	}
	if
	:: submitted[c] || MUT(ACTIVE_BEFORE) || (MUT(ACTIVE_FIRST) && !first)
	:: else -> submitted[c] = true
	fi;
#ifdef MUTATED
	if
	:: atomic { MUT(TOUCH_AFTER) -> touch(x) }
	:: else
	fi;
#endif
	if
	:: atomic { seq[t] == CHANGED && !MUT(NO_SEQ) && !MUT(SEQ_BEFORE_PUSH) ->
		GHOST_PUSHED(t)
		first = false }
		kick()
	:: atomic { else -> GHOST_PUSHED(t) first = false }
	fi
}

/* __hwt_schedule(), up to the compare-and-swap. */
inline arm_begin(x, t)
{
	op_on[t] = x;
	rcu[t] = true;
	seq[t] = SAME;
	error = closed && !MUT(NO_DOOR);
	if
	:: kind != GIVE && RELEASE(x) -> refs[x]++
	:: else
	fi
}

/* The client's part after the return of the schedule. */
inline arm_end(x)
{
	if
	/* No hold has begun: put its reference. */
	:: (error || (old & HELD)) && RELEASE(x) -> put(x)
	:: else
	fi;
	error = false
}

/*
 * hwt_arm(). The read of the state is not a step of its own: the compare-and-swap succeeds only on
 * the state that was read.
 */
inline arm(x, t, c, tick)
{
	atomic {
		touch(x);
		old = state[x];
		state_schedule(old, tick, kind == P_NOW);
		if
		:: act == REFUSED -> error = true
		:: else ->
			GHOST_CLAIM(x, t)
			state[x] = new;
			ghost_schedule(x, old, new)
		fi
	}
	if
	:: (new & ~old & SUBMITTED) -> push(x, t, c)
	:: else
	fi;
	if
	:: atomic { !error && (new & SUBMITTED) && tick < wake_tick &&
		    !(MUT(SUBMITTED_NO_CHECK) && (old & SUBMITTED)) -> skip }
		kick()
	:: else
	fi
}

/* hwt_cancel_claim(), as part of a step. */
inline state_cancels(x, set)
{
	touch(x);
	old = state[x];
	state_cancel(old, set);
	if
	:: old & PENDING -> ghost_cancel(x)
	:: else
	fi;
	state[x] = new
}

/* hwt_cancel(), up to the compare-and-swap. */
inline cancel_begin(x, t)
{
	op_on[t] = x;
	rcu[t] = !MUT(CANCEL_NO_RCU);
	seq[t] = SAME
}

/* hwt_cancel() */
inline cancel(x, t, c)
{
	atomic { state_cancels(x, 0); GHOST_CLAIM(x, t) }
	if
	:: (new & ~old & SUBMITTED) -> push(x, t, c)
	:: else
	fi;
	if
	:: atomic { (old & PENDING) && !reclaim && !MUT(NO_RECLAIM) -> skip }
		reclaim = true;
		kick()
	:: else
	fi
}

/* -- _sync --------------------------------------------------------------- */

/*
 * hwt_sync(). @y: the timeout; @x: collected timeouts. Where the code polls, the model blocks until
 * a round may have another outcome, so that endless polling is a deadlock.
 */
inline sync(y, r, set)
{
	do
	:: atomic { !lock -> lock = true;
		x = y;
		if
		:: MUT(SYNC_CANCELS_ONCE) && again -> touch(x); old = state[x]; new = old
		:: else -> state_cancels(x, set)
		fi;
		again = true;
		if
		:: (new & ~old & SUBMITTED) || at[y] == ENDED -> how = TAKEN
		:: else -> more = ((old & SUBMITTED) != 0)
		fi }
		work(r);
		if
		/* hwt_wait_for() */
		:: atomic { RUNNER_OF(y) && !MUT(SYNC_NO_WAIT) ->
			waiting[r] = !MUT(WAIT_LATE);
			lock = false }
#ifdef MUTATED
			if
			:: atomic { MUT(WAIT_LATE) -> waiting[r] = true }
			:: else
			fi;
#endif
			!waiting[r]
		:: atomic { (!RUNNER_OF(y) || MUT(SYNC_NO_WAIT)) && !(state[y] & HELD) ->
			touch(y);
			assert(!busy[y] && !releasing[y]);	/* returned too early */
			lock = false;
			x = 0; again = false;
			break }
		:: atomic { else ->
			touch(y);
			old = state[y];
			lock = false }
			/* usleep_range() */
			atomic { state[y] != old || ((old & PENDING) && !MUT(SYNC_CANCELS_ONCE)) ||
				 at[y] == ENDED || intake ||
				 submitted[0] || submitted[CPUS - 1] || RUNNER_OF(y) -> skip }
		fi
	od
}

#if DELETES
/* -- Delete -------------------------------------------------------------- */

/* hwt_delete_last(), from the list of CPU c */
#define POP(c)	head[c] == y -> head[c] = next[y]; again = true

/*
 * hwt_delete(). @y: the timeout; @x: collected timeouts; @again: y was taken off its list, and has to
 * be collected by this thread.
 */
inline delete(y, r)
{
	do
	:: atomic { !lock -> lock = true;
		x = y;
		touch(x);
		old = state[x];
		if
		:: (old & SUBMITTED) && at[y] != ENDED ->
			if
			:: POP(0)
#if CPUS > 1
			:: POP(1)
#endif
			:: else
			fi;
			more = !again;
			if
			:: again && (old & (ARMED | RUNNING)) != ARMED ->
				how = COLLECTED;
				again = false
			:: else
			fi
		:: else
		fi }
		work(r);
		/* Another thread may change the state before this step, but not in it. */
		if
		:: atomic { (state[y] & SUBMITTED) && !again && at[y] != ENDED ->
			touch(y);
			old = state[y];
			lock = false }
			/* hwt_delete_pause() */
			atomic { state[y] != old || intake || submitted[0] || submitted[CPUS - 1] ||
				 head[0] == y || head[CPUS - 1] == y -> skip }
		:: atomic { again && (state[y] & (ARMED | RUNNING)) != ARMED &&
			    !MUT(DELETE_FORGETS) ->
			x = y;
			how = COLLECTED;
			again = false }
			work(r);
			atomic { lock = false }
		:: atomic { else ->
			touch(y);
			if
			:: at[y] != ENDED -> at[y] = NOWHERE
			:: else
			fi;
			old = state[y];
			state_delete(old, 0);
			if
			:: act == GIVE_BACK ->
				if
				:: at[y] == ENDED -> at[y] = NOWHERE; ENDED_REMOVE(y)
				:: else
				fi;
				assert(live[y]);
				live[y] = false;
				fresh[y] = false;
				untold[y] = false;
				assert(owed[y] > 0);
				owed[y]--;
				GHOST_END(y)
				state[y] = new;
				assert(at[y] == NOWHERE && head[0] != y && head[CPUS - 1] != y);
				if
				:: RELEASE(y) -> put(y)
				:: else
				fi
			:: act != GIVE_BACK && (old & PENDING) -> ghost_cancel(y); state[y] = new
			:: else
			fi;
			lock = false;
			x = 0; again = false;
			break }
		fi
	od
}
#endif

#if BARRIERS
/* -- Barrier ------------------------------------------------------------- */

/* hwt_mark_reached(), by a runner that has the lock. */
inline reach_one(t)
{
	if
	:: FIRST(t) ->
		mark[t] = REACHED;
		called[t] = RUNNER_BITS;
		waiting[t] = waiting[t] && MUT(MARK_NO_WAKE)
	:: else
	fi
}

inline reach_marks()
{
	reach_one(0);
	reach_one(1)
}

#define LISTED_FIRST(x)	(at[x] == ENDED && !MUT(MARK_FRONT) -> BIT(x) : 0)
#if NT == 1
#define ALL_OF(f)	(f(1))
#define ALL_OF_T(f, t)	(f(t, 1))
#else
#define ALL_OF(f)	(f(1) | f(2))
#define ALL_OF_T(f, t)	(f(t, 1) | f(t, 2))
#endif

/*
 * hwt_wheel_barrier(): hwt_owed_wait(), hwt_mark_wait() and hwt_wait_callbacks(), without a bound
 * on the collection.
 */
inline barrier(t)
{
	atomic { !lock -> lock = true;
		ending[t] = ALL_OF_T(GHOST_WAITS, t);
		calling[t] = RUNNER_BITS;
		more = !(STOP && stop_done) && !MUT(BARRIER_NO_COLLECT) }
	work(t);
	atomic {
		x = 0; old = 0; new = 0;
		if
		:: STOP && stop_done
		:: else ->
			mark[t] = LISTED;
			before[t] = ALL_OF(LISTED_FIRST);
#if WORKER
			wsleeps = wsleeps && MUT(BARRIER_NO_WAKE)
#endif
		fi
	}
#if !WORKER
	if
	:: atomic { mark[t] && !kicked && !MUT(BARRIER_NO_KICK) -> kicked = true }
		WAKE
	:: else
	fi;
#endif
	/* hwt_mark_wait() */
	do
	:: atomic { mark[t] == LISTED ||
		    ((called[t] & RUNNER_BITS) && !MUT(BARRIER_NO_WAIT)) ->
			waiting[t] = true;
			lock = false }
		atomic { !lock && !waiting[t] -> lock = true }
	:: atomic { else ->
		assert(!ending[t] && !calling[t]);	/* returned too early */
		mark[t] = 0; called[t] = 0;
		lock = false;
		break }
	od
}

#endif

/* -- Firing -------------------------------------------------------------- */

inline expire(x, r)
{
#if CBSYNC
	if
	:: atomic { x == 1 && r == ENGINE -> skip }
		sync(2, POOL, 0);
		x = 1
	:: atomic { else -> skip }
	fi
#else
	skip
#endif
}

/* hwt_fire(). Begins and ends with the lock held; x is due. */
inline fire(x, r)
{
	atomic {
		touch(x);
		at[x] = NOWHERE;
		old = state[x];
		state_fire(old, cursor, 0);
		if
		:: act != CALL -> new = 0		/* cancelled, or pushed back */
		:: else ->
			if
			:: MUT(FIRE_BLIND)
			:: else ->
				assert(!busy[x]);	/* RUNNING is exclusive */
				NUMBER(r)
				state[x] = new;
				ghost_fire(x, old);
				busy[x] = true;
				current[r] = x;
				lock = false
			fi
		fi
	}
#ifdef MUTATED
	if
	:: atomic { MUT(FIRE_BLIND) && new ->
		assert(!busy[x]);
		state[x] = new;
		ghost_fire(x, old);
		busy[x] = true;
		current[r] = x;
		lock = false }
	:: else
	fi;
#endif
	if
	:: new ->
#if CBSYNC
		expire(x, r);
#endif
		told = false;
#ifdef MUTATED
		if
		:: atomic { MUT(END_NO_SETTLE) -> !lock -> lock = true;
			busy[x] = false;
			current[r] = 0;
			state[x] = state[x] & ~RUNNING }
		:: else -> how = RETURNED
		fi
#else
		how = RETURNED
#endif
	:: atomic { !new && (old & ARMED) -> how = LINKS }
	:: else
	fi
}

/* -- The engine ---------------------------------------------------------- */

/* hwt_engine_target(). If there is a worker, it serves the due timeouts and shard->owed. */
inline engine_target(t)
{
	t = LATE;
	if
	:: ANY(IS_DUE) && !WORKER -> t = 0
	:: !(ANY(IS_DUE) && !WORKER) && at[1] == BUCKET(1) -> t = 1
#if NT > 1
	:: !(ANY(IS_DUE) && !WORKER) && at[2] == BUCKET(1) -> t = 1
#endif
	:: else
	fi;
#if WORKER
	if
	:: (ANY(IS_DUE) || SOME_ENDED) && !MUT(POOL_TARGET) -> WAKE_WORKER
	:: else
	fi;
#endif
	if
	:: reclaim_at && reclaim_at < t -> t = reclaim_at
	:: else
	fi;
	if
	:: SOME_ENDED && !WORKER -> t = 0
	:: else
	fi;
	if
	:: stopping -> t = LATE
	:: else
	fi
}

inline seq_up()
{
	seq[0] = (seq[0] -> CHANGED : 0);
	seq[1] = (seq[1] -> CHANGED : 0)
}

proctype Engine()
{
	short old, new;
	byte x, how, to, tick, phase, refill;
	bool told, more, again, mine;

pass:	/* hwt_engine_pass() */
	if
	:: atomic { should_stop -> engine_done = true; goto out }
	:: atomic { !should_stop -> wake_tick = 0 }
	fi;
	kicked = false;
	atomic { !lock -> lock = true;
		to = now;
		if
		:: reclaim && !reclaim_at && !SOON_LET_GO -> reclaim_at = now + 1
		:: reclaim && !reclaim_at && SOON_LET_GO -> reclaim = false
		:: reclaim && reclaim_at && now >= reclaim_at ->
			reclaim_at = 0;
			reclaim = MUT(RECLAIM_LATE)
		:: else
		fi
	}
	atomic { more = true; phase = 2 }
do_work:
	work(ENGINE);
	if
	:: phase == 3 -> goto do_fire
	:: phase == 4 -> goto looked
	:: atomic { phase == 2 ->
		if
		:: !stopping ->
			cursor = to;
			advance(to);
			if
			:: ANY(IS_DUE) -> WAKE_WORKER
			:: else
			fi
		:: else
		fi;
		to = 0;
		phase = 3 }
	fi;
do_fire:
	if
	:: atomic { !stopping && !WORKER && ANY(IS_ENDED) ->
		PICK(IS_ENDED);
		how = TAKEN;
		goto do_work }
#if BARRIERS
	:: atomic { !stopping && !WORKER && SOME_MARK -> reach_marks(); goto do_fire }
#endif
	:: atomic { !stopping && !WORKER && ANY(IS_DUE) -> PICK(IS_DUE) }
		fire(x, ENGINE);
		goto do_work
	:: atomic { else -> lock = false; x = 0; old = 0; new = 0 }
	fi;

	/* hwt_engine_sleep() */
	atomic { !lock -> engine_target(to) }
#ifdef MUTATED
	if
	:: MUT(PUBLISH_LATE) -> goto look
	:: else
	fi;
#endif
	wake_tick = to;
#ifdef MUTATED
	if
	:: MUT(SEQ_LATE) -> goto look
	:: else
	fi;
#endif
	atomic { seq_up() }
#ifdef MUTATED
	if
	:: MUT(NO_LAST_LOOK) -> goto idle
	:: else
	fi;
look:
#endif
	atomic { !lock -> lock = true;
		more = !stopping;
		phase = 4;
		goto do_work }
looked:
	atomic {
		engine_target(tick);
		lock = false;
		x = 0; old = 0; new = 0; phase = 0;
		if
		:: tick < to || (tick > to && MUT(PUBLISH_LATER)) -> to = tick; tick = 0
		:: else -> tick = 0; goto looked_late
		fi
	}
	wake_tick = to;
looked_late:
#ifdef MUTATED
	if
	:: atomic { MUT(PUBLISH_LATE) -> wake_tick = to; seq_up() }
	:: atomic { MUT(SEQ_LATE) -> seq_up() }
	:: atomic { MUT(RECLAIM_LATE) && !reclaim_at -> reclaim = false }
	:: atomic { MUT(KICKED_LATE) -> kicked = false }
	:: else
	fi;
idle:
#endif

	/* hwt_engine_wait() */
	if
	:: atomic { to > now -> asleep = !MUT(IDLE_LATE) }
		if
		:: atomic { !kicked && !should_stop -> target = to }
#ifdef MUTATED
			if
			:: atomic { MUT(IDLE_LATE) -> asleep = true }
			:: else
			fi;
#endif
end_idle:		atomic { !asleep || now >= target ->
				target = 0; asleep = false; to = 0 }
		:: atomic { else -> asleep = false; to = 0 }
		fi
	:: atomic { else -> to = 0 }
	fi;
	goto pass;
out:	skip
}

/* hwt_worker_thread(): take a due timeout, or one of shard->owed, under the lock. */
#if WORKER
proctype Worker()
{
	short old, new;
	byte x, how, refill;
	bool told, more, again, mine;

end_idle:
	do
	:: atomic { !lock && !wsleeps && !stopping && ANY(IS_DUE) -> lock = true; PICK(IS_DUE) }
		fire(x, POOL);
		goto do_work
	:: atomic { !lock && !wsleeps && !stopping && ANY(IS_ENDED) ->
		lock = true;
		PICK(IS_ENDED);
		how = TAKEN }
do_work:	work(POOL);
		atomic { lock = false; x = 0; old = 0; new = 0 }
#if BARRIERS
	:: atomic { !lock && !wsleeps && !stopping && SOME_MARK -> reach_marks() }
#endif
	:: atomic { !lock && !wsleeps && !stopping && !ANY(IS_DUE) && !SOME_ENDED ->
		wsleeps = true }
	:: atomic { stopping && !lock -> worker_done = true; break }
	od
}

#endif

proctype Clock()
{
	do
	:: atomic { now < MAXNOW -> now++ }
	:: atomic { now == MAXNOW -> break }
	od
}

/* -- Clients ------------------------------------------------------------- */

#define CPU(t)		((t) * (CPUS - 1))
#define OP(bit, k, t)	(may & bit) -> kind = k; tick = t
#if BARRIERS
#define ARMS		(kind != CANCEL && kind != SYNC && kind != INIT && kind != BARRIER && \
			 kind != DELETE)
#else
#define ARMS		(kind != CANCEL && kind != SYNC && kind != INIT && kind != DELETE)
#endif

proctype Thread(byte t; short may; byte n; byte on)
{
	short old, new, kind;
	byte x, y, tick, how, refill;
	bool told, first, error, again, more, last, mine;

	do
	:: atomic { n > 0 ->
		n--;
		y = (on == 2 -> 2 : 1);
		if
		:: on == 3 -> y = 2
		:: skip
		fi;
		if
		:: OP(S_NOW, S_NOW, NOW)
		:: OP(S_SOON, S_NOW, SOON)
		:: OP(S_LATE, S_NOW, LATE)
		:: OP(P_NOW, P_NOW, NOW)
		:: OP(P_SOON, P_NOW, SOON)
		:: OP(CANCEL, CANCEL, 0)
		:: OP(SYNC, SYNC, 0)
		:: OP(SHUT, SYNC, SHUTDOWN)
		:: OP(INIT, INIT, 0)
#if DELETES
		:: OP(DELETE, DELETE, 0)
#endif
#if BARRIERS
		:: OP(BARRIER, BARRIER, 0); y = 0; n = 0
#endif
		:: OP(GIVE, GIVE, NOW); n = 0
		:: OP(GIVE, GIVE, SOON); n = 0
		fi;
		if
		:: kind == CANCEL -> cancel_begin(y, t)
		:: kind == SYNC ->
			op_on[t] = y;
#if MUTEX
			!mutex -> mutex = true
#endif
		:: kind == INIT
#if DELETES
		:: kind == DELETE -> op_on[t] = y
#endif
#if BARRIERS
		:: kind == BARRIER
#endif
		:: else -> arm_begin(y, t)
		fi }
op:		if
		:: kind == CANCEL -> cancel(y, t, CPU(t))
#if SYNCS
		:: kind == SYNC -> sync(y, t, tick)
#endif
#if DELETES
		:: kind == DELETE -> delete(y, t)
#endif
#if BARRIERS
		:: kind == BARRIER -> barrier(t)
#endif
		:: atomic { kind == INIT && !(state[y] & HELD) ->
			ops[y] = !ops[y];
			state[y] = 0 }
		:: ARMS && !error ->
			arm(y, t, CPU(t), tick)
		:: else
		fi;
		atomic {
			rcu[t] = false;
			grace[t] = false;
			seq[t] = 0;
			op_on[t] = 0;
#if MUTEX
			if
			:: kind == SYNC -> mutex = false
			:: else
			fi;
#endif
			if
			:: ARMS -> arm_end(y)
			:: else
			fi;
			tick = 0; y = 0; old = 0; new = 0;
			if
			:: last -> freed[1] = true; kind = 0; thread_done[t] = true; break
			:: !last && kind != GIVE -> kind = 0
			:: else
			fi }
	/* End, and put the thread's own references, except one that GIVE has given to a hold. */
	:: atomic { !(t == 0 && !RELEASE(1)) ->
		if
		:: kind != GIVE && (on & 1) && RELEASE(1) -> put(1)
		:: else
		fi;
#if NT > 1
		if
		:: kind != GIVE && (on & 2) && RELEASE(2) -> put(2)
		:: else
		fi;
#endif
		kind = 0;
		thread_done[t] = true;
		break }
	/* Without reference counts: _sync and free, when the other thread has ended. */
	:: atomic { t == 0 && !RELEASE(1) && thread_done[1] ->
		last = true;
		n = 0;
		kind = SYNC;
		y = 1;
		op_on[t] = 1;
		goto op }
	od
}

#if STOP
/* -- Stop ---------------------------------------------------------------- */

inline synchronize_rcu()
{
	atomic { grace[0] = rcu[0]; grace[1] = rcu[1] }
	(!grace[0] && !grace[1])
}

inline wait_callbacks()
{
	do
	:: atomic { !lock && ALL_QUIET -> break }
	:: atomic { !lock && !ALL_QUIET -> waiting[STOPPER] = true }
		!waiting[STOPPER]
	od
}

/* hwt_hand_back() */
inline hand_back(x)
{
	atomic {
		touch(x);
		at[x] = NOWHERE;
		old = state[x];
		state_hand_back(old);
		if
		:: act == CALL ->
			assert(!busy[x]);
			assert(live[x]);	/* handed back after a cancel, or twice */
			ghost_cancel(x);
			NUMBER(STOPPER)
			if
			:: MUT(HAND_BACK_IDLE) ->
				new = new & ~RUNNING;
				untold[x] = false
			:: else
			fi;
			state[x] = new;
#if STOP == 1
			untold[x] = false;
			busy[x] = true;
			current[STOPPER] = (MUT(HAND_BACK_IDLE) -> 0 : x);
			lock = false
#else
			how = (MUT(HAND_BACK_IDLE) -> ENDS : RAN);
			told = false
#endif
		:: else -> new = 0
		fi
	}
#if STOP == 1
	if
	:: atomic { new && MUT(HAND_BACK_IDLE) -> touch(x);
		!lock -> lock = true;
		busy[x] = false;
		how = ENDS }
	:: atomic { new && !MUT(HAND_BACK_IDLE) -> how = RETURNED; told = true }
	:: else
	fi
#endif
}

proctype Stop()
{
	short old, new;
	byte x, how, refill, phase = 1;
	bool told, more, flushed, mine;

	atomic { !lock -> stopping = true }
	closed = true;
	if
	:: MUT(NO_GRACE_1)
	:: else -> synchronize_rcu()
	fi;
drain:	/* hwt_drain() */
	atomic { !lock -> lock = true; more = true }
do_work:
	work(STOPPER);
	if
	:: atomic { ANY(IS_ENDED) ->
		PICK(IS_ENDED);
		how = TAKEN;
		flushed = false;
		goto do_work }
#if BARRIERS
	:: atomic { SOME_MARK -> reach_marks(); goto do_work }
#endif
	:: atomic { !ANY(IS_ENDED) && flushed && ANY(IS_DUE) -> PICK(IS_DUE) }
		hand_back(x);
		goto do_work
	:: atomic { !ANY(IS_ENDED) && flushed && !ANY(IS_DUE) ->
		flushed = false;
		more = true;
		goto do_work }
	:: atomic { else ->
		/* hwt_buckets_flush() */
		advance(LATE);
		if
		:: ANY(IS_DUE) -> flushed = true; goto do_work
		:: else -> lock = false; WAKE_ALL; x = 0; old = 0; new = 0
		fi }
	fi;
	if
	:: phase == 1 ->
		/* kthread_stop() */
		should_stop = true;
		WAKE;
		if
		:: MUT(NO_WAIT_1)
		:: atomic { else -> engine_done }
			wait_callbacks()
		fi;
		phase = 2;
		if
		:: MUT(NO_DRAIN_2) -> goto grace_2
		:: else -> goto drain
		fi
	:: phase == 2 ->
grace_2:	if
	:: MUT(NO_GRACE_2)
	:: else -> synchronize_rcu()
	fi;
		phase = 3;
		if
		:: MUT(NO_DRAIN_3)
		:: else -> goto drain
		fi
	:: phase == 3
	fi;
	if
	:: MUT(NO_WAIT_3)
	:: else -> wait_callbacks()
	fi;
	/* The guarantees of hwt_wheel_stop(). */
	atomic {
#if BARRIERS
		!lock ->
		if
		:: MUT(STOP_LEAVES_MARKS)
		:: else -> reach_marks()
		fi;
#endif
		assert(!(state[1] & HELD));
		assert(!(state[NT] & HELD));
		assert(ALL_QUIET);
		assert(at[1] == NOWHERE && at[NT] == NOWHERE && !intake);
		stop_done = true
	}
}

#endif

/* -- Invariants ----------------------------------------------------------- */

#define OPEN(x)		(op_on[0] != x && op_on[1] != x)

#define IDLE		(op_on[0] == 0 && op_on[1] == 0)
/* The engine sleeps, and no thread has woken it or is about to. */
#define SLEEPS		(asleep && target && (!kicked || IDLE) && !lock && !stopping)
/* It sleeps past the tick of a timeout for which no operation is under way. */
#define LATE_FOR(x)	((state[x] & ARMED) && !(state[x] & RUNNING) && \
			 TICK(state[x]) < target && OPEN(x) && !SERVED(x))
/* It has no time at which it releases a cancelled timeout. */
#define PINNED(x)	((state[x] & HELD) == SUBMITTED && !reclaim_at && IDLE && !SERVED(x))
#define LEFT(x)		(IS_ENDED(x) && !SERVED(x))

/* spin's reports have the names of these. */
hidden byte lost_wake_up;
hidden byte never_let_go;
hidden byte left_ended;

proctype Watch()
{
end_watch:
	if
	:: atomic { SLEEPS && ANY(LATE_FOR) -> assert(lost_wake_up) }
	:: atomic { SLEEPS && ANY(PINNED) -> assert(never_let_go) }
	:: atomic { SLEEPS && ANY(LEFT) -> assert(left_ended) }
	/* At the end, all holds are over, and all timeouts with a reference count are freed. */
	:: atomic { STOP && stop_done && thread_done[0] && thread_done[1] && ALL_QUIET ->
		assert(owed[1] == 0 && owed[NT] == 0);
		assert(!RELEASE(1) || freed[1]);
		assert(!RELEASE(NT) || freed[NT]) }
	fi
}

init {
	atomic {
		wake_tick = LATE;
		refs[1] = (OPS0 != 0 && (ON0 & 1)) + (OPS1 != 0 && (ON1 & 1));
#if NT > 1
		refs[2] = (OPS0 != 0 && (ON0 & 2)) + (OPS1 != 0 && (ON1 & 2));
#if CBSYNC
		refs[2]++;		/* timeout 1 has a reference to it */
#endif
#endif
		worker_done = !WORKER;
		run Engine();
		run Thread(0, OPS0, N0 * (OPS0 != 0), ON0 * (OPS0 != 0));
		run Thread(1, OPS1, N1 * (OPS1 != 0), ON1 * (OPS1 != 0));
		run Clock();
		run Watch();
#if WORKER
		run Worker();
#endif
#if STOP
		run Stop();
#endif
	}
}
