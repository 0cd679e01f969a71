/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The handshake of submitters and engine on a machine that reorders, for spin; see README.md. The
 * tests in ../litmus check each pair of barriers by the kernel's memory model.
 *
 * A store goes to the thread's store buffer, and later to memory, in any order of the variables. A
 * release store leaves the buffer after the stores before it. A load returns the thread's store in
 * the buffer, or the value in memory, or the value that memory had when the thread last loaded the
 * variable or passed a barrier. A full barrier waits until the buffer is empty, and drops those
 * older values.
 *
 * Steps are joined where that hides no interleaving: a store with the step before it, since other
 * threads see the store only when it leaves the buffer; a load with the barrier before it.
 *
 * There are one timeout, two client threads on a CPU each, and the engine. A mutation is
 * -DMUTATION=NAME.
 */

/*
 * weak.configs sets these macros for each configuration, and their defaults:
 *
 * OPS0, N0	operations of thread 0, and their number
 * OPS1, N1	the same for thread 1
 * TIMERS	how often the engine may wake up by its timer
 * CALLS	number of callbacks of other timeouts
 * AFTER	thread 1 begins, and acts, only while the timeout is SUBMITTED
 * LINKED	the tick of the timeout, which is in a bucket at first; 0: it is not
 */

#define SOON	1		/* schedule for tick 1 */
#define LATER	2		/* for tick 2 */
#define CANCEL	4
#define FAR	8		/* schedule for NEVER */
#define NEVER	3		/* a tick that is not reached */

#include "mutations.h"
#ifndef MUTATION
#define MUTATION 0		/* no mutation */
#endif
#define MUT(n) ((n) == MUTATION)

/* -- Memory -------------------------------------------------------------- */

#define ENGINE	2
#define THREADS	3

/* Variables. */
#define WAKE	0		/* wake_tick */
#define SEQ	1		/* sleep_seq */
#define KICKED	2
#define RECLAIM	3
#define CURRENT	4		/* the engine's current_timeout */
#define STATE	5		/* its task state: 1: it sleeps */
#define ACTIVE	6		/* byte of CPU 0; 1 */
#define LIST	8		/* of CPU 0; 1: the timeout is on it */
#define VARS	10

#define AT(t, v) ((t) * VARS + (v))

byte mem[VARS];
byte buffer[THREADS * VARS];	/* 0: nothing; else the value + 1 */
byte seen[THREADS * VARS];	/* the value at the thread's last load or barrier */
short after;			/* variables in the buffer before the engine's release store */

#define BUFFERED(t) ( \
	buffer[AT(t, WAKE)] || buffer[AT(t, SEQ)] || buffer[AT(t, KICKED)] || \
	buffer[AT(t, RECLAIM)] || buffer[AT(t, CURRENT)] || buffer[AT(t, STATE)] || \
	buffer[AT(t, ACTIVE)] || buffer[AT(t, ACTIVE + 1)] || \
	buffer[AT(t, LIST)] || buffer[AT(t, LIST + 1)])

/* Drop older values, of the variables that the thread loads. */
inline forget(t)
{
	seen[AT(t, KICKED)] = mem[KICKED];
	seen[AT(t, RECLAIM)] = mem[RECLAIM];
	if
	:: t == ENGINE ->
		seen[AT(t, ACTIVE)] = mem[ACTIVE];
		seen[AT(t, ACTIVE + 1)] = mem[ACTIVE + 1];
		seen[AT(ENGINE, LIST)] = mem[LIST];
		seen[AT(ENGINE, LIST + 1)] = mem[LIST + 1]
	:: else ->
		seen[AT(t, WAKE)] = mem[WAKE];
		seen[AT(t, SEQ)] = mem[SEQ];
		seen[AT(t, CURRENT)] = mem[CURRENT];
		seen[AT(t, ACTIVE + t)] = mem[ACTIVE + t]
	fi
}

/* smp_mb(), alone or as part of an operation. */
inline mb(t)
{
	atomic { !BUFFERED(t) -> forget(t) }
}

/* A macro, because an inline would get the mutation's value instead of its name. */
#define mb_unless(t, mutation) \
	if \
	:: MUT(mutation) \
	:: else -> mb(t) \
	fi

/* WRITE_ONCE() and the like. The buffer has at most one store of each variable. */
inline store(t, v, value)
{
	atomic { !buffer[AT(t, v)] -> buffer[AT(t, v)] = (value) + 1 }
}

inline load(t, v, to)
{
	atomic {
		if
		:: buffer[AT(t, v)] -> to = buffer[AT(t, v)] - 1
		:: else ->
			if
			:: to = mem[v]
			:: seen[AT(t, v)] != mem[v] -> to = seen[AT(t, v)]
			fi;
			seen[AT(t, v)] = to
		fi
	}
}

#define OUT(t, v) \
	buffer[AT(t, v)] -> \
		mem[v] = buffer[AT(t, v)] - 1; seen[AT(t, v)] = mem[v]; buffer[AT(t, v)] = 0

/* The same for a variable that the thread never loads. */
#define OUT_ONLY(t, v) \
	buffer[AT(t, v)] -> \
		mem[v] = buffer[AT(t, v)] - 1; buffer[AT(t, v)] = 0

#define BEFORE(v) after = after & ~(1 << (v))

/* The stores leave the buffers. */
active proctype Memory()
{
end:	do
	:: atomic { OUT(0, KICKED) }
	:: atomic { OUT(0, RECLAIM) }
	:: atomic { OUT(0, ACTIVE) }
	:: atomic { OUT_ONLY(0, LIST) }
	:: atomic { OUT(1, KICKED) }
	:: atomic { OUT(1, RECLAIM) }
	:: atomic { OUT(1, ACTIVE + 1) }
	:: atomic { OUT_ONLY(1, LIST + 1) }
	:: atomic { OUT_ONLY(ENGINE, WAKE); BEFORE(WAKE) }
	:: atomic { OUT(ENGINE, KICKED); BEFORE(KICKED) }
	:: atomic { OUT(ENGINE, RECLAIM); BEFORE(RECLAIM) }
	:: atomic { OUT_ONLY(ENGINE, CURRENT); BEFORE(CURRENT) }
	:: atomic { OUT_ONLY(ENGINE, STATE); BEFORE(STATE) }
	:: atomic { OUT(ENGINE, ACTIVE); BEFORE(ACTIVE) }
	:: atomic { OUT(ENGINE, ACTIVE + 1); BEFORE(ACTIVE + 1) }
	:: atomic { after == 0 && OUT_ONLY(ENGINE, SEQ) }
	:: atomic { OUT(ENGINE, LIST); BEFORE(LIST) }
	:: atomic { OUT(ENGINE, LIST + 1); BEFORE(LIST + 1) }
	od
}

/* -- The timeout --------------------------------------------------------- */

/* The state: tick << 4 | flags. It is changed by fully ordered compare-and-swaps only. */
#define ARMED		1
#define SUBMITTED		2
#define CANCELLED	4
#define TICK(w)		((w) >> 4)

byte word = (LINKED -> LINKED << 4 | ARMED : 0);
byte linked = LINKED;		/* the bucket's tick; 0: in none */

bool woken;			/* the engine was woken since it went to sleep */
bool asleep;
byte target;			/* the tick for which it sleeps */
bool reclaim_at;		/* it has set a time for the release of cancelled timeouts */
byte running = 2;		/* clients that have not ended */

inline kick(t)
{
	atomic {
		mb_unless(t, KICK_BEFORE);
		load(t, KICKED, x);
		if
		:: x
		:: else -> store(t, KICKED, 1)
		fi
	}
	if
	:: x
	:: else ->
		atomic {
			mb_unless(t, KICK_AFTER);
			load(t, CURRENT, x)
		}
		if
		:: x
		:: else ->
			/* wake_up_process() */
			atomic {
				!BUFFERED(t);
				forget(t);
				if
				:: mem[STATE] -> mem[STATE] = 0; woken = true
				:: else
				fi
			}
		fi
	fi;
	x = 0
}

inline push(t)
{
	/* llist_add() */
	if
	:: MUT(PUSH_ADD) -> store(t, LIST + t, 1)
	:: else -> atomic { !BUFFERED(t) -> mem[LIST + t] = 1; forget(t) }
	fi;
	atomic {
		load(t, ACTIVE + t, x);
		if
		:: x
		:: else -> store(t, ACTIVE + t, 1)
		fi
	}
	atomic {
		if
		:: x
		:: else -> mb_unless(t, PUSH_BIT)
		fi;
		load(t, SEQ, x)
	}
	if
	:: x != seq -> kick(t)
	:: else
	fi;
	x = 0
}

/* hwt_arm(), hwt_submit() */
inline arm(t, tick)
{
	load(t, SEQ, seq);
	atomic {
		MUT(WORD_PULL) || !BUFFERED(t);
		if
		:: AFTER && t == 1 && !(word & SUBMITTED)
		:: else ->
			old = word;
			new = tick << 4 | ARMED | (old & SUBMITTED);
			if
			:: !(old & SUBMITTED) && (!(old & ARMED) || tick < TICK(old)) ->
				new = new | SUBMITTED
			:: else
			fi;
			word = new
		fi;
		if
		:: MUT(WORD_PULL) && (old & SUBMITTED)
		:: else -> forget(t)
		fi
	}
	if
	:: (new & ~old) & SUBMITTED -> push(t)
	:: else
	fi;
	if
	:: new & SUBMITTED ->
		load(t, WAKE, x);
		if
		:: tick < x ->
			load(t, KICKED, x);
			if
			:: x
			:: else -> kick(t)
			fi
		:: else
		fi
	:: else
	fi;
	atomic { seq = 0; old = 0; new = 0; x = 0 }
}

/* hwt_cancel_claim(), the end of __hwt_cancel() */
inline cancel(t)
{
	load(t, SEQ, seq);
	atomic {
		!BUFFERED(t);
		old = word;
		if
		:: AFTER && t == 1 && !(old & SUBMITTED) -> old = 0
		:: !(AFTER && t == 1 && !(old & SUBMITTED)) && (old & ARMED) ->
			word = (old & ~ARMED) | SUBMITTED | CANCELLED
		:: else
		fi;
		forget(t)
	}
	if
	:: old & ARMED ->
		if
		:: old & SUBMITTED
		:: else -> push(t)
		fi;
		atomic {
			load(t, RECLAIM, x);
			if
			:: x
			:: else -> store(t, RECLAIM, 1)
			fi
		}
		if
		:: x
		:: else -> kick(t)
		fi
	:: else
	fi;
	atomic { seq = 0; old = 0; new = 0; x = 0 }
}

#define OPS(t) (t == 0 -> OPS0 : OPS1)

proctype Client(byte t)
{
	byte n = (t == 0 -> N0 : N1), seq, old, new, x;

#if AFTER
	/* Otherwise the operations of the two threads would not overlap. */
end:	t == 0 || (word & SUBMITTED);
#endif
	do
	:: n > 0 && (OPS(t) & SOON) -> n--; arm(t, 1)
	:: n > 0 && (OPS(t) & LATER) -> n--; arm(t, 2)
	:: n > 0 && (OPS(t) & FAR) -> n--; arm(t, NEVER)
	:: n > 0 && (OPS(t) & CANCEL) -> n--; cancel(t)
	:: n == 0 -> break
	od;
	atomic {
		running--;
		/* Fewer states: the thread does not load these any more. */
		seen[AT(t, WAKE)] = 0; seen[AT(t, SEQ)] = 0; seen[AT(t, KICKED)] = 0;
		seen[AT(t, RECLAIM)] = 0; seen[AT(t, CURRENT)] = 0; seen[AT(t, ACTIVE + t)] = 0
	}
}

/* -- The engine ---------------------------------------------------------- */

/* If @x, the CPU's byte: take its list, and collect the entry. The lock is held. */
inline collect_cpu(c)
{
	if
	:: x ->
		atomic {
			mb_unless(ENGINE, INTAKE_MB);
			load(ENGINE, LIST + c, x)
		}
		/* llist_del_all(), of a list that is not empty */
		if
		:: x -> atomic {
				!BUFFERED(ENGINE) -> x = mem[LIST + c];
				mem[LIST + c] = 0;
				forget(ENGINE)
			}
		:: else
		fi;
		if
		:: x ->
			/* hwt_collect_one() */
			atomic {
				!BUFFERED(ENGINE);
				assert(word & SUBMITTED);
				word = word & ~SUBMITTED;
				linked = (word & ARMED -> TICK(word) : 0);
				forget(ENGINE)
			}
		:: else
		fi
	:: else
	fi;
	x = 0
}

/* Read the CPU's byte, and clear it if it is set. */
inline look_cpu(c)
{
	load(ENGINE, ACTIVE + c, x);
	if
	:: x -> store(ENGINE, ACTIVE + c, 0)
	:: else
	fi
}

inline find_target(to)
{
	to = (linked -> linked : NEVER);
	/* The time of the release is before NEVER; its order to other ticks does not matter. */
	to = (reclaim_at && to == NEVER -> 2 : to)
}

active proctype Engine()
{
	byte published, number, x, timers = TIMERS, calls = CALLS;

	do
	::
		/* hwt_engine_pass() */
		atomic {
			store(ENGINE, WAKE, 0);
			store(ENGINE, KICKED, 0)
		}
		/* hwt_engine_reclaim() */
		atomic {
			mb_unless(ENGINE, PASS_MB);
			load(ENGINE, RECLAIM, x);
			if
			:: x && !reclaim_at -> reclaim_at = true; x = 0
			:: x && reclaim_at ->
				if
				:: x = 0	/* not yet */
				:: reclaim_at = false; store(ENGINE, RECLAIM, 0)
				fi
			:: else
			fi
		}
		atomic {
			if
			:: x && !MUT(RECLAIM_MB) -> mb(ENGINE)
			:: else
			fi;
			look_cpu(0)
		}
		collect_cpu(0);
		atomic { look_cpu(1) }
		collect_cpu(1);
		if
		:: calls > 0 ->
			calls--;
			store(ENGINE, CURRENT, 1);
			store(ENGINE, CURRENT, 0)
		:: true
		fi;

		/* hwt_engine_sleep() */
		atomic {
			find_target(published);
			number++;
			if
			:: MUT(TICK_LATE)
			:: else -> store(ENGINE, WAKE, published)
			fi;
			!buffer[AT(ENGINE, SEQ)];
			if
			:: MUT(SLEEP_SEQ)
			:: else ->
				/* smp_store_release() */
				do
				:: x < VARS ->
					if
					:: buffer[AT(ENGINE, x)] -> after = after | 1 << x
					:: else
					fi;
					x++
				:: else -> break
				od;
				x = 0
			fi;
			buffer[AT(ENGINE, SEQ)] = number + 1
		}
		atomic {
			mb_unless(ENGINE, SLEEP_MB);
			look_cpu(0)
		}
		collect_cpu(0);
		atomic { look_cpu(1) }
		collect_cpu(1);
		atomic {
			find_target(target);
			if
			:: MUT(TICK_LATE) -> store(ENGINE, WAKE, target)
			:: !MUT(TICK_LATE) && target < published -> store(ENGINE, WAKE, target)
			:: else -> target = published
			fi;
			published = 0;
			/* hwt_engine_wait() */
			store(ENGINE, STATE, 1)
		}
		atomic {
			mb_unless(ENGINE, WAIT_STATE);
			load(ENGINE, KICKED, x);
			asleep = !x
		}
end:		if
		:: x
		:: !x && woken
		:: !x && timers > 0 && target != NEVER -> timers--
		fi;
		/* A context switch is a full barrier. */
		atomic {
			asleep = false;
			!BUFFERED(ENGINE);
			mem[STATE] = 0;
			woken = false;
			target = 0;
			x = 0;
			forget(ENGINE)
		}
	od
}

/* -- Invariants ----------------------------------------------------------- */

bool lost_wake_up, never_let_go, forgotten;

/* The engine sleeps, no thread has woken it, and no thread is about to. */
active proctype Watch()
{
end:	atomic {
		asleep && !woken && running == 0 && !BUFFERED(0) && !BUFFERED(1) && !BUFFERED(2) ->
		/* The engine sleeps past a deadline. */
		lost_wake_up = (word & ARMED) && TICK(word) < target;
		assert(!lost_wake_up);
		/* A cancelled timeout is held, and no time of release is set. */
		never_let_go = (word & SUBMITTED) && !(word & ARMED) && !reclaim_at;
		assert(!never_let_go);
		/* A later cancel would find the flag set, and not kick. */
		forgotten = mem[RECLAIM] && !reclaim_at;
		assert(!forgotten)
	}
}

init {
	atomic {
		run Client(0);
		run Client(1)
	}
}
