/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A shard: an engine with its buckets, its lock, its threads, and its data for each CPU and for
 * each runner of callbacks
 */
#ifndef _HWT_CORE_SHARD_H
#define _HWT_CORE_SHARD_H

#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/ratelimit.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "hwt.h"
#include "core/buckets.h"

/* Timeouts handled before the lock is dropped for other contexts. */
#define HWT_STEP		128
/* Entries that a pass collects before it fires what is due. */
#define HWT_COLLECT_STEP	1024
/* Maximum number of entries that a pass collects, so that it ends. */
#define HWT_COLLECT_MAX		100000
/* Maximum work of one advance, in timeouts moved, so that collection and expiry are not starved. */
#define HWT_ADVANCE_MAX		100000
/* Maximum of due timeouts that fire, and of holds that end, for each HWT_COLLECT_STEP entries. */
#define HWT_FIRE_MAX		HWT_COLLECT_STEP
/* A CPU kicks the engine once in so many schedules of timeouts not pending. A power of two. */
#define HWT_BACKLOG		2048
/* A callback is behind if it is more than so many ticks late, or than a revolution of level 0. */
#define HWT_BEHIND_TICKS	512
/* Submission lists of a CPU. Collection takes from them in turn, and so has time to prefetch. */
#define HWT_CHAINS		4
/* Counters of lateness, indexed by fls64(), which is at most 63 for less than 2^63 ns. */
#define HWT_LATENESS_MAX	64

/**
 * struct hwt_inbox - the submissions of one CPU to one shard
 * @list:      timeouts with SUBMITTED set, newest first; a hash of the address selects the list.
 *             Any context on this CPU pushes, with preemption disabled; see hwt_push(). The holder
 *             of the shard's lock, on any CPU, takes a list as a whole.
 * @scheduled: schedules of timeouts that were not pending
 * @rearmed:   schedules of timeouts that were pending
 * @cancelled: cancels of timeouts that were pending
 * @rejected:  schedules refused because the shard was closed or @max_pending was reached
 * @fresh:     entries taken from @list and not collected yet
 * @chain:     the last @fresh list collected from, modulo HWT_CHAINS: the lists take turns
 * @taken:     number of times that @list was taken
 * @intake:    node in the shard's @intake, while there may be entries in @fresh
 *
 * The counters are changed by this_cpu operations only, and summed by readers. The shard's lock
 * protects @fresh and the members after it, so any holder of the lock can continue a collection.
 */
struct hwt_inbox {
	struct llist_head	list[HWT_CHAINS];
	unsigned long		scheduled;
	unsigned long		rearmed;
	unsigned long		cancelled;
	unsigned long		rejected;

	struct llist_node	*fresh[HWT_CHAINS] ____cacheline_aligned_in_smp;
	unsigned int		chain;
	unsigned long		taken;
	struct list_head	intake;
};

/**
 * struct hwt_runner - a context that may run callbacks: the engine, a worker, a _sync, a stop
 * @entry:   node in the shard's list of runners
 * @task:    the runner's task
 * @call:    number of the present or last call; each shard numbers its calls. A ->cancelled or
 *           ->release after a callback has the number of that callback.
 * @fn:      the function that the runner is executing, if @current_timeout is set; hwt_client_fn()
 *           names the client's
 * @current_timeout: the timeout whose callback or release the runner is executing.
 *           hwt_engine_kick() reads the engine's without the lock.
 * @stamp:   cached CLOCK_MONOTONIC, ns; 0: the clock must be read
 * @jiffies: when @stamp was read
 * @quick:   quick calls in a row since @stamp was 0; see hwt_call_time()
 * @releasing: @fn is a ->release: the hold of @current_timeout for which it is called is over
 * @unpinned: a thread of a pinned shard could not pin itself, and is to be pinned. May be read, and
 *           cleared, without the lock
 * @thread:  @task is one of the shard's threads. Constant
 *
 * Protected by the shard's lock, except the members from @stamp to @quick, which only @task uses.
 */
struct hwt_runner {
	struct list_head	entry;
	struct task_struct	*task;
	struct hwt_timeout	*current_timeout;
	u64			stamp;
	unsigned long		jiffies;
	unsigned int		quick;
	u64			call;
	const void		*fn;
	bool			releasing;
	bool			unpinned;
	bool			thread;
};

/**
 * struct hwt_worker - a thread that runs callbacks
 * @runner: the worker as a runner
 * @shard:  its shard. Constant
 * @idle:   node in the shard's list of idle workers; protected by the shard's lock
 * @took_due: the worker's last timeout came from the due list, not from shard->owed. Used by the
 *            worker only
 */
struct hwt_worker {
	struct hwt_runner	runner;
	struct hwt_shard	*shard;
	struct list_head	idle;
	bool			took_due;
};

/*
 * A shard of a wheel: an engine and its data. A comment on each group of members names the lock or
 * the context that protects it.
 */
struct hwt_shard {
	/* Constant once created. Read by all schedules. */
	u64			tick_ns;
	u64			tick_mult;	/* reciprocal of tick_ns, see hwt_tick_setup() */
	unsigned int		tick_shift;
	enum hwt_clock		clock;
	u32			flags;		/* HWT_COARSE_CLOCK, HWT_FREEZABLE */
	u64			max_pending;	/* 0: no limit */
	struct hwt_inbox __percpu *inbox;
	/*
	 * A byte for each CPU: the CPU's submission lists may have entries. The CPU sets its byte
	 * after a push; the holder of the lock clears the byte before it takes the lists.
	 */
	u8			*active;
	/* Schedules fail. Written once, by the stop; read under RCU. */
	bool			closed;
	/* The engine. The shard has a reference: kicks may wake the task after it has ended. */
	struct task_struct	*thread;
	/* Constant once created. */
	struct hwt_wheel	*wheel;
	struct hwt_shard	*next;		/* of the wheel; NULL: this one is the last */
	unsigned int		number;		/* in the wheel, from 0 */
	int			node;		/* of its memory; NUMA_NO_NODE: any */

	/*
	 * Shared by submitters and the engine, see hwt_engine_sleep(). Any context, no lock.
	 */

	/* A schedule for an earlier tick wakes the engine; 0: awake. Written by the engine. */
	atomic64_t		wake_tick ____cacheline_aligned_in_smp;
	/* Number of times that the engine prepared to sleep. Written by the engine. */
	unsigned int		sleep_seq;
	/* The engine was kicked since its last pass began. Cleared by the engine. */
	bool			kicked;
	/* There are cancelled timeouts to collect. Set by cancels, cleared by the engine. */
	bool			reclaim;
	/* Wakes the engine for contexts that must not call the scheduler. */
	struct irq_work		irq_work;

	/*
	 * Protects the members from here to the counters, the links of all timeouts of this shard,
	 * and entries taken from a submission list. Taken in process context only, for bounded
	 * steps, and never held across a callback. The parameter "debug" adds a trylock from any
	 * context, and walks of all timeouts under the lock.
	 */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	struct hwt_buckets	buckets;
	/* Each inbox with entries that were taken and not collected. */
	struct list_head	intake;
	unsigned int		intake_cpu;	/* its lists were taken last: CPUs take turns */
	/* Timeouts whose clients are owed a call by a runner; see core/state.h. */
	struct list_head	owed;
	struct list_head	idle;		/* idle workers */
	u64			calls;		/* callbacks begun */
	/*
	 * For the lateness of callbacks. All that was submitted before this tick is collected: a
	 * timeout that is collected now and has an earlier tick was scheduled for the past.
	 */
	u64			intake_since;
	/* When such a timeout was found last; when the clock was set last. On the wheel's clock. */
	u64			past_since;
	u64			set_since;
	struct list_head	runners;	/* see struct hwt_runner */
	unsigned int		waiters;	/* see hwt_wait_until() */
	unsigned int		callers;	/* see hwt_shard_enter() */
	bool			stopped;	/* a stop is complete; also read without the lock */
	bool			stopping;	/* a stop has begun: the threads serve no timeout */
	/*
	 * When the engine collects cancelled timeouts, on CLOCK_MONOTONIC, ns; 0: none are known.
	 * Written by the engine only, which may read it without the lock.
	 */
	u64			reclaim_at;
	/*
	 * HWT_CLOCK_REALTIME: the clock's offset to CLOCK_MONOTONIC, ns, as of the engine's last
	 * check.
	 */
	s64			clock_offset;
	/* When the engine was last woken, on CLOCK_MONOTONIC, ns. Used by the engine only. */
	u64			woken_ns;

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
	u64			slowest_ns;	/* the longest callback that was timed */

	struct ratelimit_state	slow_limit;	/* of hwt_slow_report(); has its own lock */

	/* The engine is in @runners for the life of the shard, the workers until they end. */
	struct hwt_runner	engine;
	struct hwt_worker	*worker;
	/* The engine's current_timeout while it calls @clock_set. Never armed. */
	struct hwt_timeout	clock_timeout;

	/* Constant once created. For the threads. */
	unsigned int		nr_workers;	/* entries of @worker */
	enum hwt_wait_strategy	wait;
	cpumask_var_t		affinity;	/* if @pinned */
	bool			pinned;
	/* A runner is @unpinned. Written under the lock; the engine's thread reads it without. */
	bool			repin_needed;
	/* The threads are to end. Set by a stop before it wakes them. */
	bool			exiting;
	/* Completed by each thread at its end. */
	struct completion	exited;
	hwt_clock_set_fn	clock_set;	/* of the first shard only; else NULL */
	void			*clock_set_arg;
#ifdef CONFIG_LOCKDEP
	/* Held around callbacks on the shard's threads; taken to wait for all callbacks. */
	struct lockdep_map	lockdep_map;
	struct lock_class_key	lockdep_key;
#endif
};

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

/* The arguments of hwt_shard_create(). */
struct hwt_shard_args {
	const struct hwt_wheel_params	*params;
	struct hwt_wheel		*wheel;
	const u8			*map;	/* of CPUs to shards; NULL: there is one shard */
	unsigned int			number;	/* of the shard */
	int				node;	/* of its memory; NUMA_NO_NODE: any */
	gfp_t				gfp;
};

/* Without the lock. */
struct hwt_shard *hwt_shard_create(const struct hwt_shard_args *args);
void hwt_shard_free(struct hwt_shard *shard);
void hwt_shard_add_stats(const struct hwt_shard *shard, struct hwt_wheel_stats *stats);

#endif /* _HWT_CORE_SHARD_H */
