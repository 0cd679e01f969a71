/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of hwt.ko share with each other and with nobody else.
 *
 *   hwt_main.c     module, parameters, the registry of wheels
 *   hwt_timeout.c  schedule and cancel: the lock-free half of a timeout's life
 *   hwt_engine.c   the thread: collect, advance, fire; the half under the lock
 *   hwt_thread.c   the threads of a wheel, its workers among them
 *   hwt_sync.c     those who wait: cancel_sync, shutdown_sync, stop
 *   hwt_call.c     around each callback: lockdep, leak checks, time taken
 *   hwt_debug.c    checks of what clients do, if asked for
 *   hwt_group.c    all timeouts of one owner
 *   hwt_recipes.c  timeouts that are not embedded; retry, debounce
 *   hwt_trace.h    tracepoints
 *   hwt_debugfs.c  statistics
 *   hwt_wheel.c    the buckets
 *   hwt_chardev.c  /dev/hwt, a client of hwt.h; see hwt_chardev.h
 */
#ifndef _HWT_INTERNAL_H
#define _HWT_INTERNAL_H

#include <linux/cache.h>
#include <linux/cpumask.h>
#include <linux/freezer.h>
#include <linux/irq_work.h>
#include <linux/jump_label.h>
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
#define HWT_STEP		256
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
 * struct hwt_cpu - what one CPU has submitted to one wheel
 * @list:      timeouts with QUEUED set, newest first. Pushed from any context, but on
 *             this CPU only: whoever pushes stays there; see hwt_push(). Taken as a whole by
 *             the holder of the wheel's lock, on any.
 * @scheduled: schedules of timeouts that were not pending
 * @rearmed:   schedules of timeouts that were
 * @cancelled: cancels that hit
 * @rejected:  schedules refused
 *
 * The counters are changed by this_cpu operations only, and summed by readers.
 */
struct hwt_cpu {
	struct llist_head	list;
	unsigned long		scheduled;
	unsigned long		rearmed;
	unsigned long		cancelled;
	unsigned long		rejected;
} ____cacheline_aligned_in_smp;

/**
 * struct hwt_runner - somebody who may be calling back: the engine, a worker, a _sync, a stop
 * @entry:   in the wheel's list of runners
 * @task:    who it is
 * @only:    the one timeout whose callbacks it may run; NULL: all
 * @mute:    it may not even run those: the engine of a wheel with workers
 * @call:    number of the call it is in, of all calls on the wheel
 * @fn:      what it is executing, if @current_timeout says that it is
 * @current_timeout: the timeout whose callback or release it is executing. Kicks read
 *           the engine's without the lock.
 * @stamp:   when it last looked at CLOCK_MONOTONIC, ns; 0: must look
 * @releasing: it is a release, and what @current_timeout points to is let go
 * @nested:  @task was in a callback of the wheel already
 *
 * Protected by the wheel's lock, but for @stamp, which is @task's own.
 */
struct hwt_runner {
	struct list_head	entry;
	struct task_struct	*task;
	struct hwt_timeout	*only;
	struct hwt_timeout	*current_timeout;
	u64			stamp;
	u64			call;
	const void		*fn;
	bool			mute;
	bool			releasing;
	bool			nested;
};

/**
 * struct hwt_worker - a thread that runs callbacks
 * @runner: in the wheel's list of runners
 * @wheel:  its wheel
 * @idle:   in the wheel's list of idle workers; protected by the wheel's lock
 * @took_due: the last one it took was due, not deferred. Its own
 */
struct hwt_worker {
	struct hwt_runner	runner;
	struct hwt_wheel	*wheel;
	struct list_head	idle;
	bool			took_due;
};

/**
 * struct hwt_intake - submissions on their way from the lists to the buckets
 * @fresh:    a CPU's list as it was taken, newest first
 * @reversed: the part of it that has been turned round
 * @ordered:  turned round whole: the next to settle
 * @cpu:      whose list was taken last, so that all get their turn
 * @turns:    how often it has begun with the first CPU again
 *
 * Protected by the wheel's lock, so that whoever holds it can go on where another
 * has left off.
 */
struct hwt_intake {
	struct llist_node	*fresh;
	struct llist_node	*reversed;
	struct llist_node	*ordered;
	unsigned int		cpu;
	unsigned long		turns;
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
	struct hwt_cpu __percpu	*cpu;
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
	/* Pending timeouts; counted only if there is a max_pending. */
	atomic64_t		limited;
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
	struct hwt_intake	intake;
	/* Collected and still QUEUED: their end brings callbacks that the collector
	 * may not run. Left to the engine, or to the workers.
	 */
	struct list_head	deferred;
	unsigned int		deferrals;	/* how many those are */
	struct list_head	idle;		/* workers */
	u64			calls;		/* callbacks begun */
	/* The tick since which something has been due; HWT_TICK_NEVER: nothing is. */
	u64			due_since;
	struct ratelimit_state	behind_limit;	/* to say so; has a lock of its own */
	struct list_head	runners;	/* all who may be calling back */
	unsigned int		sync_waiters;	/* how many wait on sync_wait */
	wait_queue_head_t	sync_wait;	/* see hwt_sync_wake() */
	enum hwt_wheel_state	state;		/* also read without the lock */
	bool			stopping;	/* the engine fires no more */
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
	cpumask_var_t		cpus;		/* if @pinned */
	bool			pinned;
	/* Threads of a pinned wheel may be elsewhere: set by them, cleared by the engine
	 * before it pins all. Without a lock: who sets it is past what has put it there.
	 */
	bool			unpinned;
	hwt_clock_set_fn	clock_set;
	void			*clock_set_arg;
	void			(*poll)(void *arg);
	void			*poll_arg;
	/* One stop at a time. Outermost; callbacks of a stop may stop other wheels, so
	 * each has a lockdep class of its own.
	 */
	struct mutex		stop_lock;
	struct lock_class_key	stop_key;

	/* The registry's, see hwt_main.c: under its lock, or constant. */
	struct list_head	entry;
	u64			number;		/* of all that were made */
	struct dentry		*debugfs;
	bool			shared;
	unsigned int		users;		/* hwt_debugfs.c reads it without */
	struct work_struct	free_work;
	char			name[HWT_NAME_MAX];
	char			creator[HWT_CREATOR_MAX];
	const struct module	*owner;		/* may be gone: to be compared only */
	char			owner_name[MODULE_NAME_LEN];
};

/* An engine that waits busily looks after something else, too. */
static inline void hwt_engine_poll(struct hwt_wheel *wheel)
{
	if (wheel->poll)
		wheel->poll(wheel->poll_arg);
}

/* The ticks of a turn of level 0. */
static inline u64 hwt_turn(const struct hwt_wheel *wheel)
{
	return 1ULL << wheel->buckets.bits;
}

/* When a tick begins, ns on the wheel's clock; U64_MAX: never. */
static inline u64 hwt_tick_to_ns(const struct hwt_wheel *wheel, u64 tick)
{
	return tick == HWT_TICK_NEVER ? U64_MAX : tick * wheel->tick_ns;
}

/* Must the calling thread of the wheel stand still? */
static inline bool hwt_frozen(const struct hwt_wheel *wheel)
{
	return (wheel->flags & HWT_FREEZABLE) && freezing(current);
}

/* How the threads of a wheel sleep: they are no load, and not hung. */
static inline unsigned int hwt_idle_state(const struct hwt_wheel *wheel)
{
	return wheel->flags & HWT_FREEZABLE ? TASK_IDLE | TASK_FREEZABLE : TASK_IDLE;
}

/* A counter that is written under the wheel's lock, or by the engine only, and read without. */
static inline void hwt_count(unsigned long *counter, unsigned long n)
{
	WRITE_ONCE(*counter, *counter + n);
}

/* hwt_timeout.c */

/*
 * Change a timeout's word. A full barrier if it succeeds, on which all callers rely: a client that
 * schedules has written what the callback reads, a runner that ends a hold has read what the next
 * hold changes, and what either reads next (sleep_seq, wake_tick, the flags) is not older.
 */
static inline bool hwt_word_change(struct hwt_timeout *timeout, u64 *old, u64 new)
{
	/* No barrier by a name of its own: each caller has one. */
	return atomic64_try_cmpxchg(&timeout->word, (s64 *)old, new);
}

void hwt_tick_setup(struct hwt_wheel *wheel, u64 tick_ns);
u64 hwt_ns_to_tick(const struct hwt_wheel *wheel, u64 ns);
u64 hwt_deadline_to_tick(const struct hwt_wheel *wheel, u64 ns);
u64 hwt_add_ns(u64 a, u64 b);
u64 hwt_clock_now(const struct hwt_wheel *wheel);
u64 hwt_mono_to_wheel(const struct hwt_wheel *wheel, u64 ns);
bool hwt_word_cancel(struct hwt_timeout *timeout, u64 set, u64 *was);
void hwt_note_cancel(struct hwt_wheel *wheel, const struct hwt_timeout *timeout, u64 word);
void hwt_limit_put(struct hwt_wheel *wheel);
void hwt_wheel_kick(struct hwt_wheel *wheel);
void hwt_wheel_irq_work(struct irq_work *work);

/* hwt_engine.c; with the wheel's lock, which all but hwt_clock_moved() may drop */
void hwt_lock_break(struct hwt_wheel *wheel);
void hwt_settle_queued(struct hwt_wheel *wheel, struct hwt_runner *runner,
		       struct hwt_timeout *timeout);
void hwt_settle_running(struct hwt_wheel *wheel, struct hwt_runner *runner,
			struct hwt_timeout *timeout, bool notified);
bool hwt_settle_deferred(struct hwt_wheel *wheel, struct hwt_runner *runner,
			 struct hwt_timeout *timeout);
unsigned int hwt_collect(struct hwt_wheel *wheel, struct hwt_runner *runner,
			 unsigned int max);
void hwt_collect_before(struct hwt_wheel *wheel, struct hwt_runner *runner);
bool hwt_engine_advance(struct hwt_wheel *wheel);
bool hwt_clock_moved(struct hwt_wheel *wheel);
void hwt_fire(struct hwt_wheel *wheel, struct hwt_runner *runner,
	      struct hwt_timeout *timeout);
void hwt_undefer(struct hwt_wheel *wheel, struct hwt_timeout *timeout);
/* ... on the wheel's thread, without the lock */
void hwt_engine_pass(struct hwt_wheel *wheel);
void hwt_engine_sleep(struct hwt_wheel *wheel);

/* hwt_thread.c */
int hwt_threads_start(struct hwt_wheel *wheel, gfp_t gfp);
void hwt_threads_stop(struct hwt_wheel *wheel);
void hwt_threads_free(struct hwt_wheel *wheel);
void hwt_threads_pin(struct hwt_wheel *wheel);
bool hwt_thread_astray(const struct hwt_wheel *wheel);
void hwt_worker_wake(struct hwt_wheel *wheel);

/**
 * struct hwt_call - a call of a client's function
 * @fn:      the function
 * @began:   when, on CLOCK_MONOTONIC, ns
 * @preempt: as all up to @migrate: how deep the task was in it before, see hwt_call_check()
 * @softirq: softirqs off
 * @rcu:     RCU's read-side sections
 * @locks:   locks, by lockdep
 * @migrate: migration off
 * @nested:  inside another callback, for lockdep
 *
 * On the caller's stack.
 */
struct hwt_call {
	const void	*fn;
	u64		began;
	int		preempt;
	int		softirq;
	int		rcu;
	int		locks;
	int		migrate;
	bool		nested;
};

/* hwt_call.c; the lock is released by begin, taken by end, dropped meanwhile by release */
void hwt_call_begin(struct hwt_wheel *wheel, struct hwt_runner *runner,
		    struct hwt_timeout *timeout, const void *fn,
		    struct hwt_call *call);
void hwt_call_end(struct hwt_wheel *wheel, struct hwt_runner *runner,
		  struct hwt_timeout *timeout, struct hwt_call *call);
void hwt_call_release(struct hwt_wheel *wheel, struct hwt_runner *runner,
		      struct hwt_timeout *timeout,
		      void (*release)(struct hwt_timeout *timeout));
/* ... without the lock */
void hwt_slow_forget_sites(struct module *module);
void hwt_slow_forget_calls(struct hwt_wheel *wheel, struct module *module);
#ifdef CONFIG_LOCKDEP
void hwt_lockdep_sync(struct hwt_timeout *timeout);
#else
static inline void hwt_lockdep_sync(struct hwt_timeout *timeout)
{
}
#endif

/* hwt_sync.c */

/* Something has changed that those in hwt_sync_wait() may wait for. With the wheel's lock. */
static inline void hwt_sync_wake(struct hwt_wheel *wheel)
{
	if (unlikely(wheel->sync_waiters))
		wake_up_all(&wheel->sync_wait);
}

bool hwt_flush_reached(struct hwt_wheel *wheel, struct hwt_timeout *timeout);
bool hwt_in_callback(struct hwt_wheel *wheel);
void hwt_wait_runners(struct hwt_wheel *wheel);
long hwt_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg);

/* hwt_debug.c */
DECLARE_STATIC_KEY_FALSE(hwt_debug);
u32 hwt_debug_mark(const struct hwt_timeout *timeout);
void __hwt_debug_track(struct hwt_timeout *timeout, u64 word);
bool __hwt_debug_used(const struct hwt_timeout *timeout);
bool __hwt_debug_init(const struct hwt_timeout *timeout);
bool hwt_debug_module_going(struct hwt_wheel *wheel, struct module *module, bool said);

/* Its word is about to become @word, under the wheel's lock: is it held by that? */
static inline void hwt_debug_track(struct hwt_timeout *timeout, u64 word)
{
	if (static_branch_unlikely(&hwt_debug))
		__hwt_debug_track(timeout, word);
}

/* Return: false if it was never initialised, which has been reported. */
static inline bool hwt_debug_used(const struct hwt_timeout *timeout)
{
	return !static_branch_unlikely(&hwt_debug) || __hwt_debug_used(timeout);
}

/* hwt_main.c */
extern unsigned int hwt_reclaim_ms;
extern unsigned int hwt_slow_callback_us;

/* hwt_main.c: of the module. */
extern struct workqueue_struct *hwt_wq;

/* hwt_debugfs.c */
struct dentry *hwt_debugfs_init(void);
void hwt_debugfs_make(void (*make)(void *of), void *of);
void hwt_debugfs_exit(void);
void hwt_debugfs_add(struct hwt_wheel *wheel);
void hwt_debugfs_remove(struct hwt_wheel *wheel);

/* hwt_chardev.c */
int hwt_chardev_init(struct dentry *debugfs);
void hwt_chardev_exit(void);

#endif /* _HWT_INTERNAL_H */
