/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The torture module: declarations shared by its files
 *
 *   torture_main.c     parameters, the run, the summary and the verdict
 *   torture_ledger.c   the rules of the ledger; every call of hwt and every callback
 *   torture_item.c     the life of a timeout: created, borrowed, poisoned, freed
 *   torture_wheel.c    the life of a wheel: created, and stopped or destroyed in use
 *   torture_act.c      calls that any context may make for any timeout; interrupts
 *   torture_thread.c   threads, and the timeouts that they own
 *   torture_nmi.c      calls from kprobe handlers, which count as NMIs, and from NMIs
 *   torture_shake.c    wheels whose engine sleeps: is every wake-up delivered?
 *   torture_disturb.c  CPUs go offline and online, the wall clock is set
 */
#ifndef _HWT_TORTURE_H
#define _HWT_TORTURE_H

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/refcount.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "hwt.h"
#include "../kernel/lib/hwt_ktest_util.h"

struct tt_item;
struct tt_wheel;

/* -- Counts -------------------------------------------------------------------- */

enum tt_op {
	/* calls that arm */
	TT_AFTER, TT_AT, TT_AFTER_SLACK, TT_AT_SLACK, TT_EARLIER, TT_EARLIER_AT,
	TT_MOVE, TT_MOVE_AT, TT_PERIODIC, TT_PERIODIC_AT,
	TT_ARMS,
	/* calls that cancel */
	TT_CANCEL = TT_ARMS, TT_TRY_CANCEL, TT_DELETE, TT_TRY_DELETE, TT_CANCEL_SYNC, TT_SHUTDOWN,
	/* other calls */
	TT_TOUCH, TT_WAIT, TT_FLUSH, TT_QUERY, TT_INIT, TT_STOP, TT_DESTROY,
	TT_CALLS,
	/* callbacks */
	TT_EXPIRE = TT_CALLS, TT_CANCELLED, TT_HANDED, TT_RELEASE,
	/* events of the torture itself */
	TT_STEP, TT_MADE, TT_ROUND, TT_GONE, TT_SET, TT_IRQ, TT_SOFT, TT_NMI, TT_AIMED, TT_INJECTED,
	TT_BH, TT_GIVEN,
	TT_OPS
};

extern const char * const tt_op_name[];

DECLARE_PER_CPU(unsigned long [TT_OPS], tt_ops);

/* Any context. */
static inline void tt_count(enum tt_op op)
{
	this_cpu_inc(tt_ops[op]);
}

u64 tt_sum(enum tt_op op);

/* Counts of one timeout, and their sums over all freed timeouts of a wheel. */
enum tt_tally {
	TT_N_ARMED,	/* schedules of a timeout that was not pending */
	TT_N_REARMED,	/* schedules of a pending timeout */
	TT_N_KEPT,	/* hwt_schedule_earlier() of a pending timeout, with or without effect */
	TT_N_AGAIN,	/* schedules refused, -EAGAIN */
	TT_N_CLOSED,	/* schedules refused, -ESHUTDOWN */
	TT_N_HITS,	/* cancels of a pending timeout */
	TT_N_FIRED,	/* calls of ->expire */
	TT_N_HANDED,	/* hand-backs that were reported one by one */
	TT_N_TOLD,	/* calls of ->cancelled */
	TT_N_RELEASED,	/* calls of ->release */
	TT_N_SYNCS,	/* calls of a _sync */
	TT_TALLIES,
	/* wheels only: firings of TT_MIXED (one-shot or periodic), of TT_BEAT (periodic) */
	TT_N_FIRED_ANY = TT_TALLIES, TT_N_FIRED_BEAT,
	TT_WHEEL_TALLIES
};

/* -- Faults ------------------------------------------------------------------- */

enum tt_fault {
	TT_EARLY,	/* fired before its deadline */
	TT_TWICE,	/* more ends than armings */
	TT_DEAD,	/* fired after a cancel, before it was armed again */
	TT_OVERLAP,	/* two callbacks at a time, or a callback in the wrong context or state */
	TT_HOLD,	/* released more or less often than held */
	TT_SILENT,	/* ->cancelled not called as promised, or called without a cancel */
	TT_SYNC,	/* still pending, held or executing after a _sync, flush, stop or wait */
	TT_ANSWER,	/* a return value that the call must not have */
	TT_LOST,	/* a timeout that does not fire, a wake-up without effect, a stuck thread */
	TT_SUMS,	/* the wheel's counters differ from the ledgers */
	TT_POISON,	/* hwt wrote to a timeout after its last release */
	TT_LEAK,	/* timeouts, or users of a wheel, are left */
	TT_FAULTS
};

__printf(3, 4)
void tt_fail(enum tt_fault fault, struct tt_item *item, const char *fmt, ...);
bool tt_failed(void);
bool tt_leaked(void);
void tt_verdict(void);

bool tt_ending(void);
u64 tt_lasted_ms(void);

/* -- Wheels ------------------------------------------------------------------ */

struct tt_wheel {
	struct hwt_wheel	*wheel;
	struct hwt_wheel_params	params;
	unsigned int		id;
	atomic_t		users;		/* timeouts with users, and tt_wheel_get() */
	atomic_t		items;		/* timeouts that are not freed yet */
	atomic_t		holds;		/* begun (or about to begin), not released yet */
	bool			leaving;	/* about to be stopped: threads drop its timeouts */
	bool			muted;		/* stopped without a hand-back function */
	bool			counted;	/* its one-shots may be counted, see tt_item */
	/* Lower half: early callbacks excused by a setting of the clock; upper: its number. */
	atomic64_t		excused;
	atomic64_t		jumps_ns;	/* sum of the jumps passed to clock_set */
	s64			offset;		/* of the wall clock, when the wheel was created */
	bool			offset_known;	/* the clock was not set meanwhile */
	atomic64_t		n[TT_WHEEL_TALLIES];
};

int tt_wheels_start(void);
void tt_wheels_stop(void);
struct tt_wheel *tt_wheel_get(struct rnd_state *rnd);
void tt_wheel_put(struct tt_wheel *wheel);
unsigned int tt_wheels_generation(void);

static inline bool tt_realtime(const struct tt_wheel *wheel)
{
	return wheel->params.clock == HWT_CLOCK_REALTIME;
}

static inline bool tt_is_bh(const struct tt_wheel *wheel)
{
	return wheel->params.flags & HWT_BH;
}

/*
 * A time that is not later than the one from which hwt counts the delay of a schedule that follows.
 * Any context.
 */
u64 tt_wheel_now(const struct tt_wheel *wheel);

/* -- Timeouts ----------------------------------------------------------------- */

enum tt_kind {
	TT_SHOT,	/* one-shot, armed by its owner only, cancelled by all actors */
	TT_BEAT,	/* the same, periodic */
	TT_CROWD,	/* one-shot, armed by all actors and its own callback */
	TT_MIXED,	/* armed as periodic by its owner, and as a one-shot by all actors */
	TT_ONCE,	/* armed once, by its creator, which does not use it afterwards */
	TT_KINDS
};

#define TT_HISTORY	32
#define TT_PLENTY	100000
#define TT_MAGIC	0x746f7274
#define TT_POISONED	0x6b
/* The mode of a periodic timeout whose period the ledger does not know. */
#define TT_NO_RHYTHM	HWT_MODE_ONE_SHOT

/* An entry of a timeout's history, for tt_dump() only. CPUs may write to an entry concurrently. */
struct tt_event {
	u64		began;		/* CLOCK_MONOTONIC, ns */
	u64		ended;
	u64		arg;
	u64		word;		/* the timeout's state when the event ended */
	long		result;
	int		pid;
	u16		cpu;
	u8		op;
	u8		context;
};

/* A timeout and its ledger; torture_ledger.c has the rules. */
struct tt_item {
	struct hwt_periodic	periodic;	/* poisoned after the last release */
	u32			magic;
	enum tt_kind		kind;
	bool			private;	/* not in the table: only the owner knows it */
	bool			counted;	/* each hold has a reference */
	bool			idle;		/* needs no call that ends its hold */
	unsigned int		slot;		/* in the table, if it is there */
	u64			id;		/* callbacks wait for timeouts of higher ids only */
	struct tt_wheel		*wheel;
	const struct hwt_timeout_ops	*ops;
	u64			least;		/* TT_CROWD, TT_MIXED: the shortest delay */
	u64			due;		/* TT_ONCE: on CLOCK_MONOTONIC, if known */
	refcount_t		users;		/* the table (or the owner), and borrowers */
	refcount_t		refs;		/* one for all users, and one for each hold */
	struct llist_node	dead;

	atomic_t		credit;		/* ends to come */
	atomic_t		open;		/* holds, if @counted */
	atomic_t		deleting;	/* deletes that are executing */
	atomic_t		vague;		/* deletes that may have cancelled it */
	atomic_t		notice;		/* calls of ->cancelled to come */
	atomic_t		ends;		/* ->expire, ->cancelled, hand-backs begun */
	int			spare;		/* those of them that more than end a hold */
	atomic_t		inside;		/* those of them that are executing */
	atomic_t		releasing;	/* releases that are executing */
	atomic_t		n[TT_TALLIES];

	/* Written by the owner, read by callbacks. */
	u64			floor;		/* it does not fire before this time */
	u64			base;		/* the floor without a touch; for the owner only */
	bool			shut;		/* it does not fire until it is armed again */
	bool			clean;		/* no callback of an earlier arming executes */
	unsigned int		turn;		/* TT_BEAT: twice the schedules; odd during one */
	u64			first, period;	/* the first deadline, or somewhat before */
	unsigned int		mode;

	/* Written by ->expire: the last turn seen, its calls in that turn, the end of the last. */
	unsigned int		seen_turn, seen;
	u64			seen_end;

	atomic_t		events;
	struct tt_event		history[TT_HISTORY];
};

static inline struct tt_item *tt_item_of(struct hwt_timeout *timeout)
{
	return container_of(timeout, struct tt_item, periodic.timeout);
}

static inline struct hwt_timeout *tt_timeout(struct tt_item *item)
{
	return &item->periodic.timeout;
}

/* Only the owner arms the timeout, so each count of its ledger is exact. */
static inline bool tt_exact(const struct tt_item *item)
{
	return item->kind == TT_SHOT || item->kind == TT_BEAT || item->kind == TT_ONCE;
}

int tt_items_start(unsigned int slots);
void tt_items_stop(void);
struct tt_item *tt_item_new(struct tt_wheel *wheel, enum tt_kind kind, bool bare,
			    struct rnd_state *rnd);
void tt_item_publish(unsigned int slot, struct tt_item *item);
bool tt_items_plenty(void);
struct tt_item *tt_item_borrow(unsigned int slot);
struct tt_item *tt_item_borrow_any(struct rnd_state *rnd);
struct tt_item *tt_item_borrow_at(unsigned long address);
void tt_item_return(struct tt_item *item);
void tt_item_put(struct tt_item *item);

/* -- The ledger ---------------------------------------------------------------- */

extern const struct hwt_timeout_ops tt_ops_full, tt_ops_quiet, tt_ops_bare;

int tt_arm(struct tt_item *item, enum tt_op op, u64 ns, u64 extra, unsigned int mode);
int tt_arm_once(struct tt_item *item, enum tt_op op, u64 ns, u64 extra);
bool tt_cancel(struct tt_item *item);
int tt_try_cancel(struct tt_item *item);
int tt_delete(struct tt_item *item, enum tt_op op);
int tt_cancel_sync(struct tt_item *item);
int tt_shutdown_sync(struct tt_item *item);
bool tt_may_wait(const struct tt_item *item, bool may_sleep, const struct tt_item *self);
void tt_touch(struct tt_item *item, u64 deadline);
int tt_wait(struct tt_item *item, u64 max_ns);
int tt_flush(struct tt_wheel *wheel);
void tt_query(struct tt_item *item);
void tt_handback(struct hwt_timeout *timeout, void *arg);
void tt_audit(struct tt_item *item);
void tt_init(struct tt_item *item);
void tt_renew(struct tt_item *item);

/* Does the call take a deadline, instead of a delay? */
static inline bool tt_op_is_at(enum tt_op op)
{
	return op == TT_AT || op == TT_AT_SLACK || op == TT_EARLIER_AT || op == TT_MOVE_AT ||
	       op == TT_PERIODIC_AT;
}

static inline bool tt_op_is_earlier(enum tt_op op)
{
	return op == TT_EARLIER || op == TT_EARLIER_AT;
}

/* For deadlines: the wheel's time. For delays: a time not later than the one hwt counts from. */
static inline u64 tt_op_now(enum tt_op op, const struct tt_wheel *wheel)
{
	return tt_op_is_at(op) ? hwt_wheel_now(wheel->wheel) : tt_wheel_now(wheel);
}

/* -- Actors ------------------------------------------------------------------- */

void tt_act(struct tt_item *item, struct rnd_state *rnd, bool may_sleep,
	    const struct tt_item *self);
void tt_act_any(struct rnd_state *rnd, bool may_sleep);
void tt_in_callback(struct tt_item *item);
u64 tt_random_delay(struct rnd_state *rnd, u64 least);

int tt_threads_start(void);
void tt_threads_stop(void);
void tt_threads_look(void);

int tt_irqs_start(void);
void tt_irqs_home(void);
void tt_irqs_stop(void);

#define TT_NMIS_POSSIBLE (IS_ENABLED(CONFIG_X86_LOCAL_APIC) && IS_ENABLED(CONFIG_KPROBES))
#if TT_NMIS_POSSIBLE
void tt_nmis_find(void);
int tt_nmis_start(void);
void tt_nmis_stop(void);
void tt_nmi_point(void);
unsigned int tt_nmis_missing(void);
#else
static inline void tt_nmis_find(void) { }
static inline int tt_nmis_start(void) { return 0; }
static inline void tt_nmis_stop(void) { }
static inline void tt_nmi_point(void) { }
static inline unsigned int tt_nmis_missing(void) { return 0; }
#endif
/* The slot of the timeout that this CPU's thread uses; a hint. */
DECLARE_PER_CPU(unsigned int, tt_busy_with);

int tt_shakes_start(void);
void tt_shakes_stop(void);

int tt_disturb_start(void);
void tt_disturb_stop(void);
bool tt_can_plug(void);
void tt_stay_on(unsigned int n);
unsigned int tt_wall_set(void);
unsigned int tt_wall_begin(void);
bool tt_wall_changed(unsigned int begun);
u64 tt_wall_was_ahead(void);

/* -- Parameters -------------------------------------------------------------------- */

extern unsigned int tt_seed, tt_threads, tt_timeouts, tt_wheels, tt_inject, tt_pairs,
	tt_hotplug_ms, tt_clock_ms, tt_patience;
extern bool tt_nmi;
extern unsigned int tt_mix[];

#define TT_IRQ_US	(KT_SLOW ? 4000 : 400)	/* mean time between the interrupts of a CPU */
#define TT_PROBES	(KT_SLOW ? 2 : 6)	/* moving probes at a time */
#define TT_WHEEL_MS	300			/* mean time until a wheel is replaced */

enum tt_mix_part {
	TT_MIX_ARM, TT_MIX_CANCEL, TT_MIX_SYNC, TT_MIX_STRANGE, TT_MIX_LIFE, TT_MIX_ONCE,
	TT_MIX_WAIT, TT_MIX_QUERY, TT_MIX_PARTS
};

unsigned int tt_mix_sum(void);

static inline u32 tt_random(struct rnd_state *rnd)
{
	return prandom_u32_state(rnd);
}

/* A random number below @n. */
static inline u32 tt_pick(struct rnd_state *rnd, u32 n)
{
	return (u32)(((u64)prandom_u32_state(rnd) * n) >> 32);
}

static inline bool tt_one_in(struct rnd_state *rnd, u32 n)
{
	return tt_pick(rnd, n) == 0;
}

static inline u64 tt_add(u64 a, u64 b)
{
	return a + b < a ? U64_MAX : a + b;
}

/* Derive the seed of the actor with this number. */
void tt_seed_for(struct rnd_state *rnd, unsigned int who);

/* Start a thread of the module, to be ended by tt_stop(). */
struct task_struct *tt_run(int (*fn)(void *arg), void *arg, const char *name, unsigned int n);

static inline void tt_stop(struct task_struct *task)
{
	if (!IS_ERR_OR_NULL(task))
		kthread_stop(task);
}

#endif /* _HWT_TORTURE_H */
