/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A wheel, its engine, and what each CPU and each runner of callbacks has of it
 */
#ifndef _HWT_CORE_WHEEL_H
#define _HWT_CORE_WHEEL_H

#include <linux/cache.h>
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
#include "hwt_wheel.h"

/* Timeouts handled between two looks at whether others want the lock or the CPU. */
#define HWT_STEP		128
/* Entries taken from submission lists in one pass, so that expiry is not starved. */
#define HWT_COLLECT_MAX		100000
/* Timeouts visited in buckets in one pass, so that neither of the others is starved. */
#define HWT_ADVANCE_MAX		100000
/* Callbacks run in one pass, or as many as it has collected if that is more. */
#define HWT_FIRE_MAX		1024
/* After so many schedules of what was not pending a CPU wakes the engine. A power of two. */
#define HWT_BACKLOG		16384
/* How many callbacks a wheel remembers as its slowest ones. */
#define HWT_SLOW_MAX		8
/* Lateness is counted by powers of two: below 2^63 ns, fls64() is at most 63. */
#define HWT_LATENESS_MAX	64
/* For the name of the function that made a wheel, with the final 0. */
#define HWT_CREATOR_MAX		48

/**
 * struct hwt_submit - what one CPU has submitted to one wheel
 * @list:      timeouts with SUBMITTED set, newest first. Pushed from any context, but on this CPU
 *             only, without preemption; see hwt_push(). Taken as a whole by the holder of the
 *             wheel's lock, on any CPU.
 * @scheduled: schedules of timeouts that were not pending
 * @rearmed:   schedules of timeouts that were
 * @cancelled: cancels that hit
 * @rejected:  schedules refused
 * @fresh:     the list as it was taken, newest first
 * @ordered:   the part of it that has been reversed; once @fresh is NULL, the next to collect
 * @taken:     how often the list was taken
 * @intake:    in the wheel's @intake, if @fresh or @ordered is not NULL
 *
 * The counters are changed by this_cpu operations only, and summed by readers. @fresh and what
 * follows is protected by the wheel's lock, so that any holder goes on where another has left off.
 */
struct hwt_submit {
	struct llist_head	list;
	unsigned long		scheduled;
	unsigned long		rearmed;
	unsigned long		cancelled;
	unsigned long		rejected;

	struct llist_node	*fresh ____cacheline_aligned_in_smp;
	struct llist_node	*ordered;
	unsigned long		taken;
	struct list_head	intake;
};

/**
 * struct hwt_runner - what may be calling back: the engine, a worker, a _sync, a stop
 * @entry:   in the wheel's list of runners
 * @task:    its task
 * @call:    number of the call it is in, of all on the wheel. What a hold's end calls (@cancelled,
 *           @release) has the number of the callback before it.
 * @fn:      what it is executing, if @current_timeout says that it is
 * @current_timeout: the timeout whose callback or release it is executing. Kicks read
 *           the engine's without the lock.
 * @stamp:   when it last looked at CLOCK_MONOTONIC, ns; 0: must look
 * @releasing: it is a release, and what @current_timeout points to is let go
 * @thread:  @task is one of the wheel's threads. Constant
 *
 * Protected by the wheel's lock, but for @stamp, which is @task's own.
 */
struct hwt_runner {
	struct list_head	entry;
	struct task_struct	*task;
	struct hwt_timeout	*current_timeout;
	u64			stamp;
	u64			call;
	const void		*fn;
	bool			releasing;
	bool			thread;
};

/**
 * struct hwt_worker - a thread that runs callbacks
 * @runner: in the wheel's list of runners
 * @wheel:  its wheel
 * @idle:   in the wheel's list of idle workers; protected by the wheel's lock
 * @took_due: the last timeout it took was due, not ended. Its own
 */
struct hwt_worker {
	struct hwt_runner	runner;
	struct hwt_wheel	*wheel;
	struct list_head	idle;
	bool			took_due;
};

/* The longest call of a function. */
struct hwt_slow {
	const void	*fn;
	u64		ns;
};

/*
 * A wheel and its engine. Who may touch what is said group by group.
 */
struct hwt_wheel {
	/* Constant once made. Read by everyone who schedules. */
	u64			tick_ns;
	u64			tick_mult;	/* its reciprocal, see hwt_tick_setup() */
	unsigned int		tick_shift;
	unsigned int		levels;		/* as asked for */
	enum hwt_clock		clock;
	u32			flags;		/* HWT_COARSE_CLOCK, HWT_FREEZABLE */
	u64			max_pending;	/* 0: no limit */
	struct hwt_submit __percpu *submit;
	/* Bitmap of CPUs whose list may have something on it: set by the CPU itself after a
	 * push, cleared before the list is taken. The pointer is constant.
	 */
	unsigned long		*active;
	/* Schedules fail. Written once, by the stop; read under RCU. */
	bool			closed;
	/* The engine. Referenced: it may be woken even when it has ended. */
	struct task_struct	*thread;

	/*
	 * How submitters and the engine find each other, see hwt_engine_sleep(). Any
	 * context, no lock.
	 */

	/* Tick before which the engine wants to be woken; 0: it is awake. Its own. */
	atomic64_t		wake_tick ____cacheline_aligned_in_smp;
	/* How many times it went to sleep. Written by the engine. */
	unsigned int		sleep_seq;
	/* Woken since its last pass began. Set by all, cleared by the engine. */
	bool			kicked;
	/* It knows of cancelled timeouts. Set by cancels, cleared by the engine. */
	bool			reclaim;
	/* Counted only if there is a max_pending. */
	atomic64_t		nr_pending;
	/* Wakes the engine for those who may not. */
	struct irq_work		irq_work;

	/*
	 * Owns what follows down to the counters, the links of all timeouts of this
	 * wheel, and entries that were taken from a submission list. Process context
	 * only, for bounded steps, never while a callback runs. (With the parameter debug it
	 * is also tried from any context, and held while all timeouts are looked at.)
	 */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	struct hwt_buckets	buckets;
	/* Each hwt_submit whose list was taken and not collected to its end. */
	struct list_head	intake;
	unsigned int		intake_cpu;	/* the last one, so that all get their turn */
	/* Timeouts whose hold is over but for their clients' callbacks; see core/state.h. */
	struct list_head	ended;
	struct list_head	idle;		/* workers */
	u64			calls;		/* callbacks begun */
	/* The tick since which something has been due; HWT_TICK_NEVER: nothing is. */
	u64			due_since;
	struct ratelimit_state	behind_limit;	/* to say so; has a lock of its own */
	struct list_head	runners;	/* all who may be calling back */
	unsigned int		waiters;	/* see hwt_wait_until() */
	bool			stopped;	/* a stop is through; also read without the lock */
	bool			stopping;	/* no runner but the stop begins a callback */
	/* When it lets go of the cancelled, on CLOCK_MONOTONIC, ns; 0: it knows of none.
	 * Written by the engine only, which may read it without.
	 */
	u64			reclaim_at;
	/* HWT_CLOCK_REALTIME: what it was ahead of CLOCK_MONOTONIC by when the buckets
	 * were last put in order, ns.
	 */
	s64			clock_offset;

	/* Counters: written by the engine or under the lock, read without. */
	unsigned long		retired;	/* fired for good, or handed back */
	unsigned long		expired;
	unsigned long		handed_back;
	unsigned long		late;
	unsigned long		behind;
	unsigned long		overruns;
	unsigned long		collected;
	unsigned long		wakeups;
	unsigned long		passes;
	unsigned long		clock_sets;
	/* Callbacks by how late they began: the n-th by less than 2^n ns. */
	unsigned long		lateness[HWT_LATENESS_MAX];
	/* The slowest first; those without a function are free, and last. */
	struct hwt_slow		slow[HWT_SLOW_MAX];

	/* Linked in runners for as long as the wheel lives, the workers until they end. */
	struct hwt_runner	engine;
	struct hwt_worker	*worker;
	/* Stands for the wheel itself while @clock_set is called. Never armed. */
	struct hwt_timeout	clock_timeout;

	/* Constant once made. For the threads. */
	unsigned int		workers;
	enum hwt_priority	priority;
	enum hwt_wait_strategy	wait;
	cpumask_var_t		affinity;	/* if @pinned */
	bool			pinned;
	/* Threads of a pinned wheel may be elsewhere: set by them, cleared by the engine
	 * before it pins all. Without a lock: who sets it is past what has put it there.
	 */
	bool			unpinned;
	/* The threads of a freezable wheel are to end: set by the stop, before it wakes them. */
	bool			ending;
	hwt_clock_set_fn	clock_set;
	void			*clock_set_arg;
	void			(*poll)(void *arg);
	void			*poll_arg;
	/* One stop at a time. Outermost; callbacks of a stop may stop other wheels, so
	 * each has a lockdep class of its own.
	 */
	struct mutex		stop_lock;
	struct lock_class_key	stop_key;
#ifdef CONFIG_LOCKDEP
	/* Held around callbacks, and taken by those that wait for all of them. */
	struct lockdep_map	lockdep_map;
	struct lock_class_key	lockdep_key;
#endif

	/* The registry's, see hwt_main.c: under its lock, or constant. */
	struct list_head	entry;
	u64			number;		/* of all that were made */
	struct dentry		*debugfs;
	bool			shared;
	unsigned int		users;		/* core/stats.c reads it without */
	struct work_struct	free_work;
	char			name[HWT_NAME_MAX];
	char			creator[HWT_CREATOR_MAX];
	const struct module	*owner;		/* may be gone: to be compared only */
	char			owner_name[MODULE_NAME_LEN];
};

/* The ticks of a turn of level 0. */
static inline u64 hwt_revolution(const struct hwt_wheel *wheel)
{
	return 1ULL << wheel->buckets.bits;
}

/* A counter that is written under the wheel's lock, or by the engine only, and read without. */
static inline void hwt_count(unsigned long *counter, unsigned long n)
{
	WRITE_ONCE(*counter, *counter + n);
}

#endif /* _HWT_CORE_WHEEL_H */
