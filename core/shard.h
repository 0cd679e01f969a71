/* SPDX-License-Identifier: GPL-2.0-only */
/* A shard: an engine with its buckets, lock and threads, and data for each CPU and each runner */
#ifndef _HWT_CORE_SHARD_H
#define _HWT_CORE_SHARD_H

#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/ratelimit.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#include "hwt.h"
#include "core/buckets.h"

/*
 * Number of timeouts that are handled before the shard's lock is dropped for a moment, so that
 * other contexts get it, and interrupts come.
 */
#define HWT_STEP		32
/* Maximum number of submissions that a pass collects at once, before it fires due timeouts. */
#define HWT_COLLECT_STEP	1024
/* Maximum number of submissions that a pass collects in total, so that the pass ends. */
#define HWT_COLLECT_MAX		100000
/* Maximum number of timeouts that an advance moves before a pass collects or fires again. */
#define HWT_ADVANCE_MAX		100000
/* Maximum number of due timeouts that fire, and of holds that end, before a pass collects again. */
#define HWT_FIRE_MAX		HWT_COLLECT_STEP
/* A CPU kicks the engine once per this many schedules of non-pending timeouts. A power of two. */
#define HWT_BACKLOG		2048
/*
 * A callback is "behind" if it is late by more than this many ticks, or by more than a revolution
 * of level 0, whichever is less.
 */
#define HWT_BEHIND_TICKS	512
/* Number of submission lists of a CPU. While one is collected, entries of others are prefetched. */
#define HWT_CHAINS		4
/* Number of lateness counters. The index is fls64(ns), at most 63 for a lateness below 2^63 ns. */
#define HWT_LATENESS_MAX	64

/*
 * The submissions of one CPU to one shard. The counters are changed by this_cpu operations only,
 * and summed by readers. The shard's lock protects @fresh and the members after it.
 */
struct hwt_inbox {
	/*
	 * The submission lists: SUBMITTED timeouts, newest first. A hash of a timeout's address
	 * selects its list. Any context on this CPU pushes timeouts (hwt_push()). A holder of the
	 * shard's lock, on any CPU, takes each list as a whole, or its newest entry (hwt_delete()).
	 */
	struct llist_head	list[HWT_CHAINS];
	unsigned long		scheduled;	/* schedules of timeouts that were not pending */
	unsigned long		rearmed;	/* schedules of pending timeouts */
	unsigned long		cancelled;	/* cancels of pending timeouts */
	unsigned long		rejected;	/* schedules refused: closed, or @max_pending */

	/* Entries taken off each submission list, for any holder of the lock to collect. */
	struct llist_node	*fresh[HWT_CHAINS] ____cacheline_aligned_in_smp;
	unsigned int		chain;	/* modulo HWT_CHAINS: index in @fresh of the last turn */
	unsigned long		taken;	/* number of times that all lists were moved to @fresh */
	struct list_head	intake;	/* in shard->intake while @fresh may have entries */
};

/*
 * A context that may run callbacks: the engine, a worker, a _sync call, a stop. The shard's lock
 * protects all members but @stamp, @jiffies and @quick, which only @task uses.
 */
struct hwt_runner {
	struct list_head	entry;		/* in shard->runners */
	/*
	 * The task that calls the functions. On a BH shard, this is current during a pass, else
	 * NULL; there it is also read without the lock, see hwt_sync_bh().
	 */
	struct task_struct	*task;
	/*
	 * The timeout for which the runner is executing a callback or ->release, or NULL. The
	 * engine's member is also read without the lock, for example by hwt_engine_kick().
	 */
	struct hwt_timeout	*current_timeout;
	u64			stamp;		/* cached begin of next call, ns; 0: not known */
	unsigned long		jiffies;	/* the value of jiffies when @stamp was read */
	unsigned int		quick;		/* quick calls in a row; on BH shards, all calls */
	/*
	 * Number of the present or last call of a client's function. Each shard numbers them in
	 * order, but a ->cancelled or ->release after a callback has the callback's number.
	 */
	u64			call;
	const void		*fn;		/* function called, if @current_timeout is set */
	/* True if @fn is a ->release: it may free the timeout, and another may get its address. */
	bool			releasing;
	/* True if @task must be pinned later to the shard's CPUs. Also used without the lock. */
	bool			unpinned;
	bool			thread;		/* the shard's engine or a worker. Constant */
};

/* A thread that runs callbacks, of timeouts from the due list and from shard->owed in turn. */
struct hwt_worker {
	struct hwt_runner	runner;
	struct hwt_shard	*shard;		/* constant */
	struct list_head	idle;		/* in the shard's list; protected by its lock */
	bool			took_due;	/* the last timeout was due; for the worker only */
};

/* A comment on each group of members names the lock or the context that protects it. */
struct hwt_shard {
	/* From here to @inbox: constant once the shard is created, and read by schedules. */
	u64			tick_ns;
	u64			tick_mult;	/* reciprocal of tick_ns, see hwt_tick_setup() */
	unsigned int		tick_shift;
	enum hwt_clock		clock;
	u32			flags;		/* HWT_COARSE_CLOCK, HWT_FREEZABLE, HWT_BH */
	u64			max_pending;	/* 0: no limit */
	struct hwt_inbox __percpu *inbox;
	/*
	 * A byte for each CPU, not 0 while its submission lists may have entries. The CPU sets it
	 * after a push. A holder of @lock clears it before it takes the lists.
	 */
	u8			*active;
	/* True once no timeout can be scheduled any more. Set by a stop, read under RCU. */
	bool			closed;
	/*
	 * A reference to the engine's task, because a kick may wake the task after it has ended.
	 * NULL on BH shards.
	 */
	struct task_struct	*thread;
	/* Constant once the shard is created. */
	struct hwt_wheel	*wheel;
	struct hwt_shard	*next;		/* next shard of the wheel, or NULL */
	unsigned int		number;		/* index of this shard in the wheel, from 0 */
	int			node;		/* NUMA node of the memory; NUMA_NO_NODE: any */

	/*
	 * From here to @irq_work: shared by the engine and by callers in any context, without a
	 * lock; see hwt_engine_idle().
	 */

	/*
	 * The tick until which the engine sleeps; 0 while it is awake. A schedule for an earlier
	 * tick wakes the engine. Written by the engine and, on a BH shard, lowered by kicks.
	 */
	atomic64_t		wake_tick ____cacheline_aligned_in_smp;
	/*
	 * Incremented by the engine only, each time that it has set @wake_tick before a sleep. A
	 * schedule or cancel that sets SUBMITTED reads this before it sets the bit, and again after
	 * its push. If the number has changed, the engine may be going to sleep without having
	 * found the timeout, so the call kicks it.
	 */
	unsigned int		sleep_seq;
	/* True if the engine was kicked after its last pass began. Cleared by the engine. */
	bool			kicked;
	/*
	 * The value of hwt_clock_stamp() when @kicked was set. Written before @kicked, without a
	 * barrier, so the engine may read an older time. Then the statistics may count too long a
	 * lateness for a timeout that was scheduled after its tick (@intake_since).
	 */
	atomic64_t		kicked_ns;
	/* True if cancelled timeouts are to be collected. Set by cancels, cleared by the engine. */
	bool			reclaim;
	/*
	 * A kick in NMI context or with interrupts off queues this. It wakes the engine or, on a BH
	 * shard, starts a timer.
	 */
	struct irq_work		irq_work;

	/*
	 * Protects the members from here to the counters, @link of all timeouts of this shard, and
	 * entries taken off a submission list. Never held during a callback. Held for bounded
	 * steps, except in hwt_debug_unload(), which walks all timeouts.
	 *
	 * Interrupts are off while a CPU holds it. Otherwise an interrupt handler on that CPU could
	 * spin for a client's lock whose holder, on another CPU, spins for this lock in
	 * hwt_delete(): a deadlock.
	 */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	struct hwt_buckets	buckets;
	/* The inboxes whose @fresh (struct hwt_inbox) may have entries. */
	struct list_head	intake;
	unsigned int		intake_cpu;	/* CPU whose lists were taken last, for turns */
	/* Timeouts for which a runner must still call ->cancelled or ->release (core/state.h). */
	struct list_head	owed;
	struct list_head	idle;		/* idle workers */
	u64			calls;		/* number of the last call, see struct hwt_runner */
	/*
	 * A tick. If a timeout for an earlier tick is linked from now on, hwt assumes that it was
	 * scheduled after that tick: if it had been scheduled in time, it would have been collected
	 * already. So its lateness counts from @past_since.
	 */
	u64			intake_since;
	/*
	 * ns on the wheel's clock. @past_since: when hwt last linked a timeout whose tick had
	 * passed when it was scheduled. @set_since: when the engine last found that the clock had
	 * been set.
	 */
	u64			past_since;
	u64			set_since;
	struct list_head	runners;	/* list of struct hwt_runner */
	unsigned int		waiters;	/* number of tasks in hwt_wait_until() */
	unsigned int		callers;	/* calls between hwt_shard_enter() and _leave() */
	bool			stopped;	/* a stop is complete; also read without the lock */
	bool			stopping;	/* a stop has begun: the threads serve no timeout */
	/*
	 * When the engine is to collect cancelled timeouts, ns on CLOCK_MONOTONIC; 0: not planned.
	 * Written by the engine only, so the engine may read it without the lock.
	 */
	u64			reclaim_at;
	/*
	 * For HWT_CLOCK_REALTIME: the offset of CLOCK_REALTIME to CLOCK_MONOTONIC, ns, when the
	 * engine last checked whether the clock was set (hwt_engine_check_clock()).
	 */
	s64			clock_offset;
	/*
	 * The end of the engine's last wait; used by the engine only. @woken_ns: the
	 * hwt_clock_stamp() of the kick that ended the wait, or of the wait's end if there was no
	 * kick; before the first wait, of the shard's creation. Not used on BH shards. @woken_tick:
	 * the tick until which the engine was to wait; on BH shards, as lowered by kicks.
	 */
	u64			woken_ns;
	u64			woken_tick;

	/* Counters: written by the engine or under the lock, read without the lock. */
	unsigned long		retired;	/* one-shots fired, and timeouts handed back */
	unsigned long		expired;
	unsigned long		handed_back;
	unsigned long		late;
	unsigned long		behind;
	unsigned long		overruns;
	unsigned long		collected;
	unsigned long		wakeups;
	unsigned long		passes;
	unsigned long		clock_sets;
	/* Callbacks by lateness: [n] counts those from 2^(n - 1) to less than 2^n ns late. */
	unsigned long		lateness[HWT_LATENESS_MAX];
	u64			slowest_ns;	/* duration of the longest callback timed */

	struct ratelimit_state	slow_limit;	/* used by hwt_slow_report(); has its own lock */

	/* @runners contains the engine as long as the shard exists, and a worker until it ends. */
	struct hwt_runner	engine;
	struct hwt_worker	*worker;
	/*
	 * A dummy: the engine's @current_timeout while the engine calls @clock_set, so that kicks
	 * and waits treat this call as they treat a callback. Never armed.
	 */
	struct hwt_timeout	clock_timeout;

	struct {
		/* Serializes the starts of the timers. The innermost lock; not taken in NMI. */
		raw_spinlock_t		lock;
		/*
		 * Time for which a timer was last started, ns on the shard's clock; U64_MAX: none.
		 * Protected by @lock.
		 */
		u64			timer_ns;
		struct timer_list	timer;
		struct hrtimer		hrtimer;
		call_single_data_t	call;		/* starts a timer on another CPU */
		bool			called;		/* @call was used; protected by @lock */
		bool			by_jiffies;	/* @timer is used for ticks. Constant */
		unsigned long		until;		/* jiffies; used by the pass */
#ifdef CONFIG_PREEMPT_RT
		spinlock_t		expiry;		/* held during passes; taken first */
		atomic_t		waiters;	/* tasks that wait for @expiry */
		struct lock_class_key	expiry_key;
#endif
	} bh;

	/* Used by the threads. Constant once the shard is created, if no comment says otherwise. */
	unsigned int		nr_workers;	/* number of entries in @worker */
	enum hwt_wait_strategy	wait;
	cpumask_var_t		affinity;	/* CPUs of the threads, if @pinned */
	bool			pinned;
	/*
	 * True if the engine's thread has to pin a thread that could not pin itself because of CPU
	 * hotplug. Written under the lock, read without it.
	 */
	bool			repin_needed;
	/* True if the threads are to end. Set by a stop before it wakes them. */
	bool			exiting;
	/* Completed by each thread at its end. */
	struct completion	exited;
	/*
	 * The client's function to call when the clock was set, and its argument. Only in the first
	 * shard of a wheel. hwt_wheel_create() stores them last, under the lock, so that the
	 * function is not called before the wheel is complete.
	 */
	hwt_clock_set_fn	clock_set;
	void			*clock_set_arg;
#ifdef CONFIG_LOCKDEP
	/* Held by the shard's threads during callbacks, acquired by tasks that wait for them. */
	struct lockdep_map	lockdep_map;
	struct lock_class_key	lockdep_key;
#endif
};

/* Return true if the shard's passes run in softirqs. */
static inline bool hwt_is_bh(const struct hwt_shard *shard)
{
	return shard->flags & HWT_BH;
}

/* Return the number of ticks of a revolution of level 0. */
static inline u64 hwt_revolution(const struct hwt_shard *shard)
{
	return shard->buckets.level[0].mask + 1ULL;
}

/* Add to a counter that is written under the shard's lock, or by the engine only. */
static inline void hwt_count(unsigned long *counter, unsigned long n)
{
	WRITE_ONCE(*counter, *counter + n);
}

/* Called without the shard's lock. */
struct hwt_shard *hwt_shard_create(struct hwt_wheel *wheel, const struct hwt_wheel_params *params,
				   const u8 *map, unsigned int number, gfp_t gfp);
void hwt_shard_free(struct hwt_shard *shard);
void hwt_shard_add_stats(const struct hwt_shard *shard, struct hwt_wheel_stats *stats);

#endif /* _HWT_CORE_SHARD_H */
