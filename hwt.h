/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hwt - hashed and hierarchical timing wheels: the interface for kernel code
 *
 * A wheel (struct hwt_wheel) keeps any number of timeouts. A timeout (struct hwt_timeout) is
 * embedded in the caller's object, and may be scheduled, moved and cancelled from any context, hard
 * interrupt and NMI included. It is due at the first tick of the wheel at or after its deadline.
 * When it is due, and never before, the wheel's thread or one of its workers runs its callback, in
 * process context. (A BH wheel has no thread: see HWT_BH.)
 *
 * The table shows which operations on a timeout (rows) may run concurrently with which other
 * operations on the same timeout (columns), without a lock of the caller. *_sync stands for
 * hwt_cancel_sync() and hwt_shutdown_sync().
 *
 *                    | schedule | periodic | cancel | delete | *_sync | query | callback
 *   -----------------+----------+----------+--------+--------+--------+-------+---------
 *   schedule, touch  |    -     |    -     |   -    |   -    |   -    |   -   |    -
 *   schedule_periodic|    -     |    L     |   -    |   -    |   -    |   -   |    -
 *   cancel           |    -     |    -     |   -    |   -    |   -    |   -   |    -
 *   delete           |    -     |    -     |   -    |   -    |   -    |   -   |    -
 *   *_sync           |    -     |    -     |   -    |   -    |   -    |   -   |    S
 *   query            |    -     |    -     |   -    |   -    |   -    |   -   |    -
 *   init, set_wheel  |    X     |    X     |   X    |   X    |   X    |   X   |    X
 *
 *   -  The operations may run concurrently: each takes effect at one instant, the last one wins.
 *   L  The callers need a lock: hwt_schedule_periodic*() stores the period and the first deadline
 *      one after the other, so concurrent calls could mix their values.
 *   S  The _sync call waits for the callback. A _sync call in the timeout's own callback cannot
 *      wait: it cancels (or shuts down) the timeout, and returns -EDEADLK. A callback may make a
 *      _sync call for another timeout, but two callbacks must not wait for each other.
 *   X  The operations must not run concurrently: initialise a timeout, or set its wheel, only
 *      before its first use or while it is not held.
 *
 * Contexts: a function may be called from any context, NMI included, unless its comment restricts
 * the context.
 *
 * Duties of the caller:
 *
 *   - All calls for timeouts of a wheel return before the caller destroys or puts the wheel.
 *   - The caller keeps the memory of a timeout while the timeout is *held*. A hold begins when a
 *     timeout that is not held is scheduled. It ends after the callback has returned, or up to
 *     reclaim_ms (a module parameter) after the timeout was cancelled. The caller has two ways to
 *     know when a hold has ended:
 *
 *       with reference counts:    schedule by hwt_schedule_ref(), which gets a reference for a new
 *                                 hold; ->release puts that reference.
 *       without reference counts: leave ->release NULL, and call hwt_cancel_sync() or
 *                                 hwt_shutdown_sync() before the memory is freed.
 *
 *     If objects are destroyed in process context, the way without reference counts is cheaper: it
 *     saves two atomic operations for each hold.
 *
 *     If hwt_cancel() returns true, the timeout will not fire, but may still be held. If
 *     hwt_delete() returns true, the hold is over, and a reference of the hold is now the caller's.
 *     On a BH wheel (HWT_BH), the hold of a one-shot is over before its callback begins.
 *
 *   - A timeout is initialised before any other call, and is not NULL. With the module parameter
 *     "debug", a call that schedules, cancels, deletes, moves or waits for a timeout that was never
 *     initialised is refused and reported. Without "debug", its effect is undefined, except for
 *     memory of zeros, which has no wheel: a call that schedules fails with -EINVAL, and a cancel
 *     finds nothing.
 *
 * hwt calls ->release once for each hold, except for a hold that hwt_delete() has ended. The call
 * is made in process context, after hwt has accessed the timeout for the last time in that hold.
 * Another CPU may have begun a new hold before the call. If a _sync call ends a hold, the ->release
 * of that hold has returned before the _sync call returns.
 */
#ifndef _HWT_H
#define _HWT_H

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "hwt_uapi.h"

struct cpumask;
struct hwt_timeout;
struct hwt_wheel;
struct module;

/**
 * struct hwt_timeout_ops - the callbacks of a timeout
 * @expire:    Required. Called in process context when the deadline has passed, on the wheel's
 *             thread or on one of its workers. It may sleep, but delays all timeouts that are due
 *             after it, unless another worker is free. It should sleep uninterruptibly and check
 *             its condition in a loop, because a submission, a freeze or a stop may wake the
 *             thread. It may schedule and cancel any timeout, and may make _sync calls for other
 *             timeouts. It must not free its timeout; @release may.
 * @cancelled: Optional. Called in process context after a call has cancelled the timeout, or a stop
 *             without a function (hwt_wheel_stop() with NULL) has handed it back. Not called if the
 *             timeout is scheduled again before its hold ends, nor a second time if the timeout is
 *             scheduled and cancelled again while @cancelled executes. Runs on the threads that run
 *             @expire, or in the _sync, barrier or stop call that ends the hold.
 * @release:   Optional. Called in process context when a hold has ended, once for each hold, on the
 *             same threads and in the same calls as @cancelled. May free the timeout.
 *
 * One constant structure serves any number of timeouts. On a BH wheel, @cancelled and @release must
 * be NULL, and @expire follows the rules of HWT_BH: it does not sleep, and may free a one-shot.
 */
struct hwt_timeout_ops {
	void (*expire)(struct hwt_timeout *timeout);
	void (*cancelled)(struct hwt_timeout *timeout);
	void (*release)(struct hwt_timeout *timeout);
};

/*
 * The state of a timeout is one word, expires_tick << HWT_TICK_SHIFT | bits: see core/state.h.
 * Clients do not use the bits: they call the functions below.
 */
#define HWT_F_ARMED	0x01ULL
#define HWT_F_SUBMITTED	0x02ULL
#define HWT_F_RUNNING	0x04ULL
#define HWT_F_REARM	0x08ULL
#define HWT_F_SHUTDOWN	0x10ULL
#define HWT_F_CANCELLED	0x20ULL
#define HWT_F_EXPIRED	0x40ULL
#define HWT_F_PERIODIC	0x80ULL

#define HWT_F_HELD	(HWT_F_ARMED | HWT_F_SUBMITTED | HWT_F_RUNNING)
#define HWT_F_PENDING	(HWT_F_ARMED | HWT_F_REARM)

#define HWT_TICK_SHIFT	8
/*
 * The tick of a timeout that never fires. It stands for all deadlines of 2^63 ns (292 years) or
 * more, which no clock reaches, because ktime_t ends at 2^63 - 1 ns.
 */
#define HWT_TICK_NEVER	((1ULL << (64 - HWT_TICK_SHIFT)) - 1)

/**
 * struct hwt_timeout - a timeout, to be embedded in the caller's object
 * @state:    The tick and the bits of the timeout (core/state.h). Changes by compare-and-swap only.
 * @touched:  The deadline to which the timeout was last touched, ns; see hwt_touch(). Written by
 *            any context without a lock. The engine reads it when the tick in @state has come.
 * @link:     Node in a list of struct hwt_buckets or in shard->owed. @link.next is NULL while the
 *            timeout is in neither. Protected by the shard's lock.
 * @submit:   Node in a submission list. Used by the caller that has set HWT_F_SUBMITTED until it
 *            has pushed the timeout; then only by the holder of the shard's lock that collects it.
 * @ops:      The callbacks of the timeout. Constant while the timeout is held.
 * @shard:    The timeout's shard; NULL if no wheel was set. Constant while the timeout is held.
 * @owed:     True while the timeout is on shard->owed, the list of timeouts whose ->cancelled or
 *            ->release has yet to be called. Protected by the shard's lock.
 * @past:     True while the timeout is in a bucket or on the due list and was scheduled for a tick
 *            that had passed. Protected by the shard's lock.
 * @tracked:  Not 0 while core/debug.c knows that the timeout is held (parameter "debug"). Written
 *            under the shard's lock, or when debug objects find that the memory is freed too early.
 * @cpu:      The CPU on whose submission list the timeout was last pushed. Written before the push.
 *            hwt_delete() and _sync calls read it under the shard's lock, to search the lists of
 *            that CPU. If they read an old value, they do not find the timeout, and try again.
 * @check:    With the parameter "debug", hwt checks this value to refuse a timeout that was not
 *            initialised; see __HWT_CHECK_STATIC. Constant.
 *
 * All members are private to hwt. Without lockdep, the structure has at most 64 bytes, the size of
 * a cache line.
 */
struct hwt_timeout {
	atomic64_t		state;
	atomic64_t		touched;
	struct list_head	link;
	struct llist_node	submit;
	const struct hwt_timeout_ops	*ops;
	struct hwt_shard	*shard;
	u8			owed : 1;
	u8			past : 1;
	u8			tracked;
	u16			cpu;
	u32			check;
#ifdef CONFIG_LOCKDEP
	/* private: a virtual lock, for lockdep: callbacks hold it, waits for callbacks take it */
	struct lockdep_map	lockdep_map;
#endif
};

#ifndef CONFIG_LOCKDEP
static_assert(sizeof(struct hwt_timeout) <= 64);
#endif

/**
 * struct hwt_periodic - a timeout that fires again and again
 * @timeout:  The timeout. Its ->expire finds the struct hwt_periodic by container_of().
 * @set:      The arguments of the last hwt_schedule_periodic*(). A runner reads them when the
 *            timeout first fires after that call.
 * @run:      The copy of @set that is in use, the next deadline, and the numbers of overruns. After
 *            hwt_periodic_init(), only the runner that fires the timeout writes @run; any context
 *            reads it.
 *
 * All members but @timeout are private to hwt. The 64-bit members are atomic, so that a 32-bit CPU
 * never reads one half of an old value and the other half of a new one.
 */
struct hwt_periodic {
	struct hwt_timeout timeout;
	struct {
		atomic64_t	first_ns;
		atomic64_t	period_ns;
		unsigned int	mode;
	} set;
	struct {
		atomic64_t	next_ns;
		atomic64_t	period_ns;
		atomic64_t	overruns;
		atomic64_t	total;
		unsigned int	mode;
	} run;
};

/* -- Times ----------------------------------------------------------------- */

/*
 * Convert milliseconds or seconds to nanoseconds. The result has 64 bits on 32-bit machines, too.
 * If it does not fit into 64 bits, return U64_MAX, a time that never comes.
 */
static inline u64 hwt_msecs(u64 n)
{
	return n > U64_MAX / 1000000 ? U64_MAX : n * 1000000;
}

static inline u64 hwt_secs(u64 n)
{
	return n > U64_MAX / 1000000000 ? U64_MAX : n * 1000000000;
}

/*
 * Convert a number of jiffies to nanoseconds. Unlike jiffies_to_nsecs(), the result does not wrap
 * after 71 minutes. MAX_JIFFY_OFFSET and MAX_SCHEDULE_TIMEOUT become U64_MAX: never.
 */
static inline u64 hwt_jiffies(unsigned long n)
{
	u64 count = n;

	if (n >= MAX_JIFFY_OFFSET || count > U64_MAX / TICK_NSEC)
		return U64_MAX;
	return count * TICK_NSEC;
}

/**
 * hwt_jiffies_until() - return the time until jiffies reaches a value
 * @expires: the value, an absolute time in jiffies
 *
 * Any context. hwt_schedule(&t, hwt_jiffies_until(x)) is the counterpart of mod_timer(&t, x). As
 * for timer_list, a value more than LONG_MAX jiffies ahead counts as passed.
 *
 * Return: the number of jiffies left, converted to ns; 0 if jiffies has reached or passed the
 * value; U64_MAX (never fires) if the value is MAX_JIFFY_OFFSET jiffies ahead or more. The present
 * jiffy counts as a whole, although a part of it has passed. So the delay ends between @expires and
 * a jiffy later.
 */
static inline u64 hwt_jiffies_until(unsigned long expires)
{
	long left = expires - READ_ONCE(jiffies);

	return left > 0 ? hwt_jiffies(left) : 0;
}

/* -- Initialisation ------------------------------------------------------ */

void __hwt_timeout_init(struct hwt_timeout *timeout, struct hwt_wheel *wheel,
			const struct hwt_timeout_ops *ops, const char *name,
			struct lock_class_key *key);

/**
 * hwt_timeout_init() - initialise a timeout
 * @_timeout: the timeout; its memory may have any content
 * @_wheel:   the wheel of the timeout, or NULL if hwt_timeout_set_wheel() will set it
 * @_ops:     the callbacks of the timeout
 *
 * Any context. Must not be called for a timeout that is held.
 */
#ifdef CONFIG_LOCKDEP
#define hwt_timeout_init(_timeout, _wheel, _ops)			\
	do {								\
		static struct lock_class_key __key;			\
		__hwt_timeout_init((_timeout), (_wheel), (_ops),	\
				   #_timeout, &__key);			\
	} while (0)
#else
#define hwt_timeout_init(_timeout, _wheel, _ops)			\
	__hwt_timeout_init((_timeout), (_wheel), (_ops), NULL, NULL)
#endif

/**
 * hwt_timeout_setup() - initialise a timeout that has an ->expire only
 * @_timeout: the timeout; its memory may have any content
 * @_wheel:   the wheel of the timeout, or NULL if hwt_timeout_set_wheel() will set it
 * @_expire:  the ->expire of the timeout, a function of the caller's module
 *
 * Any context. The counterpart of timer_setup(). Must not be called for a timeout that is held.
 * @_expire must be a constant, because it initialises a static struct hwt_timeout_ops. To choose
 * the function at run time, call hwt_timeout_init() with one of several struct hwt_timeout_ops.
 */
#define hwt_timeout_setup(_timeout, _wheel, _expire)			\
	do {								\
		static const struct hwt_timeout_ops __ops = {		\
			.expire = (_expire),				\
		};							\
									\
		hwt_timeout_init((_timeout), (_wheel), &__ops);		\
	} while (0)

/**
 * hwt_periodic_init() - initialise a periodic timeout
 * @_periodic: the periodic timeout
 * @_wheel:    the wheel of the timeout, or NULL if hwt_timeout_set_wheel() will set it
 * @_ops:      the callbacks of the timeout
 *
 * Any context. Must not be called for a periodic timeout that is held.
 */
#define hwt_periodic_init(_periodic, _wheel, _ops)			\
	do {								\
		struct hwt_periodic *__periodic = (_periodic);		\
									\
		hwt_timeout_init(&__periodic->timeout, (_wheel), (_ops)); \
		/* If the timeout is held (a misuse), keep @run, since hwt may be using it. */ \
		if (!hwt_held(&__periodic->timeout))			\
			__periodic->run = (typeof(__periodic->run)) {};	\
	} while (0)

/**
 * hwt_periodic_setup() - initialise a periodic timeout that has an ->expire only
 * @_periodic: the periodic timeout
 * @_wheel:    the wheel of the timeout, or NULL if hwt_timeout_set_wheel() will set it
 * @_expire:   the ->expire of the timeout, a function of the caller's module
 *
 * Any context, but not while the timeout is held. @_expire is a constant: see hwt_timeout_setup().
 */
#define hwt_periodic_setup(_periodic, _wheel, _expire)			\
	do {								\
		static const struct hwt_timeout_ops __ops = {		\
			.expire = (_expire),				\
		};							\
									\
		hwt_periodic_init((_periodic), (_wheel), &__ops);	\
	} while (0)

#ifdef CONFIG_LOCKDEP
#define __HWT_LOCKDEP_INIT(_name)					\
	.lockdep_map = STATIC_LOCKDEP_MAP_INIT("hwt_timeout", &(_name)),
#else
#define __HWT_LOCKDEP_INIT(_name)
#endif

/*
 * Values of &hwt_timeout.check. HWT_TIMEOUT_INIT() stores __HWT_CHECK_STATIC. hwt_timeout_init()
 * stores the lower 32 bits of the timeout's address XOR __HWT_CHECK_PLACE, so that hwt can
 * recognise a copy of the timeout. 0x687774 is "hwt" in ASCII.
 */
#define __HWT_CHECK_STATIC	0x68777401U
#define __HWT_CHECK_PLACE	0x68777402U

/**
 * HWT_TIMEOUT_INIT() - static initialiser of a timeout
 * @_name: the timeout, an lvalue with static storage
 * @_ops:  the address of the timeout's struct hwt_timeout_ops
 *
 * The timeout has no wheel yet: call hwt_timeout_set_wheel() before the first schedule.
 */
#define HWT_TIMEOUT_INIT(_name, _ops)					\
	{ .ops = (_ops), .check = __HWT_CHECK_STATIC, __HWT_LOCKDEP_INIT(_name) }

/* Private: return the wheel that a shard belongs to. */
struct hwt_wheel *__hwt_shard_wheel(const struct hwt_shard *shard);

void hwt_timeout_set_wheel(struct hwt_timeout *timeout, struct hwt_wheel *wheel);

/* -- Scheduling ---------------------------------------------------------- */

/* Bits of the result of a schedule function that has not failed. */
#define HWT_WAS_PENDING	0x1	/* the timeout was pending before the call */
#define HWT_WAS_HELD	0x2	/* the timeout was held before the call: no new hold has begun */

/*
 * All times are nanoseconds: delays from now, deadlines on the wheel's clock. A deadline is rounded
 * up to the wheel's tick. A timeout whose deadline has passed fires at the engine's next pass,
 * never inside the call. A timeout whose deadline is 2^63 ns or more never fires, and can be
 * cancelled. A timeout with a slack fires at the tick in [deadline, deadline + slack] that is a
 * multiple of the highest power of two. So timeouts with slack tend to share ticks and wake-ups.
 *
 * To schedule a pending timeout is to move it. A function for one-shots makes a periodic timeout a
 * one-shot. The timeout's next callback sees all that the caller wrote to memory before the call.
 *
 * A call that fails has changed nothing. It returns -ESHUTDOWN if the wheel is stopped or the
 * timeout was shut down, -EAGAIN if the wheel's max_pending is reached, -EINVAL if the timeout has
 * no wheel.
 */
int hwt_schedule(struct hwt_timeout *timeout, u64 delay_ns);
int hwt_schedule_at(struct hwt_timeout *timeout, u64 deadline_ns);

/* Flags of hwt_schedule_flags(), which may be combined. */
#define HWT_SCHEDULE_AT		0x1	/* the time is a deadline, not a delay */
#define HWT_SCHEDULE_EARLIER	0x2	/* never move an armed timeout to a later tick */
#define HWT_SCHEDULE_PENDING	0x4	/* fail with -ENOENT if the timeout is not pending */
#define HWT_SCHEDULE_UNLESS_PENDING	0x8	/* leave a pending timeout as it is */
#define HWT_SCHEDULE_PERIODIC	0x10	/* private to hwt: set by hwt_schedule_periodic*() */

int hwt_schedule_flags(struct hwt_timeout *timeout, u64 time_ns, u64 slack_ns,
		       unsigned int flags);

/**
 * hwt_schedule_slack() - fire after a delay, or somewhat later
 * @timeout:  the timeout; a pending timeout is moved
 * @delay_ns: the delay from now, ns
 * @slack_ns: how much later the timeout may fire, ns
 *
 * Any context. Timeouts with slack share wake-ups.
 *
 * Return: the same as hwt_schedule().
 */
static inline int hwt_schedule_slack(struct hwt_timeout *timeout, u64 delay_ns, u64 slack_ns)
{
	return hwt_schedule_flags(timeout, delay_ns, slack_ns, 0);
}

/**
 * hwt_schedule_earlier() - fire after a delay, unless the timeout fires sooner anyway
 * @timeout:  the timeout
 * @delay_ns: the delay from now, ns
 *
 * Any context. The counterpart of timer_reduce(): arms a timeout that is not armed, and moves an
 * armed timeout only if the new tick is earlier. A periodic timeout that the call arms or moves
 * becomes a one-shot. Except on a BH wheel, a periodic timeout is not armed while its callback
 * executes: a call at that time arms it, whatever the delay, and so makes it a one-shot. The next
 * callback sees what the caller wrote before the call, even if the timeout was not moved.
 *
 * Return: the same as hwt_schedule(). With HWT_WAS_PENDING, the timeout may be unchanged.
 */
static inline int hwt_schedule_earlier(struct hwt_timeout *timeout, u64 delay_ns)
{
	return hwt_schedule_flags(timeout, delay_ns, 0, HWT_SCHEDULE_EARLIER);
}

/**
 * hwt_schedule_pending() - move a pending timeout, leave any other alone
 * @timeout:  the timeout
 * @delay_ns: the delay from now, ns
 *
 * Any context. The counterpart of mod_timer_pending().
 *
 * Return: the same as hwt_schedule(), or -ENOENT if the timeout was not pending.
 */
static inline int hwt_schedule_pending(struct hwt_timeout *timeout, u64 delay_ns)
{
	return hwt_schedule_flags(timeout, delay_ns, 0, HWT_SCHEDULE_PENDING);
}

/**
 * hwt_schedule_pending_at() - move a pending timeout to a deadline, leave any other alone
 * @timeout:     the timeout
 * @deadline_ns: the deadline on the wheel's clock, ns
 *
 * Any context.
 *
 * Return: the same as hwt_schedule_pending().
 */
static inline int hwt_schedule_pending_at(struct hwt_timeout *timeout, u64 deadline_ns)
{
	return hwt_schedule_flags(timeout, deadline_ns, 0,
				  HWT_SCHEDULE_AT | HWT_SCHEDULE_PENDING);
}

/**
 * hwt_schedule_unless_pending() - fire after a delay, unless the timeout is pending already
 * @timeout:  the timeout
 * @delay_ns: the delay from now, ns
 *
 * Any context. The counterpart of queue_delayed_work(). Reads no clock if the timeout is pending.
 * The next callback sees what the caller wrote before the call, even if the timeout was pending.
 *
 * Return: the same as hwt_schedule(). If the result has HWT_WAS_PENDING, the timeout is unchanged.
 */
static inline int hwt_schedule_unless_pending(struct hwt_timeout *timeout, u64 delay_ns)
{
	return hwt_schedule_flags(timeout, delay_ns, 0, HWT_SCHEDULE_UNLESS_PENDING);
}

/**
 * hwt_touch() - push a pending timeout back, by one store
 * @timeout:     the timeout
 * @deadline_ns: the new deadline on the wheel's clock, ns
 *
 * Any context. Use this for a timeout that is pushed back far more often than it fires, such as an
 * idle timeout that each packet pushes back. When the timeout's tick comes and @deadline_ns is
 * later, the engine links the timeout for its new tick instead of calling ->expire.
 *
 * A touch never arms a timeout and never pulls it forward: an earlier deadline has no effect. A
 * later call that schedules the timeout overrides the touch, even with an earlier deadline. (If
 * that deadline has passed, and the deadline before the touch comes during the call, ->expire may
 * be called for it, and once more for the call, or the call may find nothing pending. A touch of a
 * timeout that is not pending may apply to a schedule that is under way.) A touch has no effect
 * while the timeout fires; but on a BH wheel, a periodic timeout is pending during its callback,
 * and can be touched then. The last of several concurrent touches wins. The next callback is not
 * sure to see what the caller wrote before the touch.
 */
static inline void hwt_touch(struct hwt_timeout *timeout, u64 deadline_ns)
{
	/*
	 * Barrier touch.set, pairs with touch.arm in hwt_untouch(): a CPU that reads this touch
	 * reads a state that is not older than the one that the caller has made or found.
	 */
	atomic64_set_release(&timeout->touched, deadline_ns);
}

int hwt_schedule_periodic(struct hwt_periodic *periodic, u64 delay_ns,
			  u64 period_ns, unsigned int mode);
int hwt_schedule_periodic_at(struct hwt_periodic *periodic, u64 first_ns,
			     u64 period_ns, unsigned int mode);

/**
 * hwt_schedule_ref() - schedule a timeout whose hold has a reference to its object
 * @_timeout:  the timeout; its ->release puts the reference of a hold
 * @_time_ns:  the delay from now, ns; with HWT_SCHEDULE_AT, the deadline on the wheel's clock, ns
 * @_slack_ns: how much later the timeout may fire, ns
 * @_flags:    the flags of hwt_schedule_flags() (HWT_SCHEDULE_), ored; or 0
 * @_get:      gets a reference to the object: called with @_object
 * @_put:      puts the reference of @_get; called if no new hold has begun. This is never the last
 *             reference, because the caller has one of its own
 * @_object:   the object
 *
 * Any context. If the timeout is pending, this only moves it. Otherwise, this calls @_get before it
 * schedules the timeout: once scheduled, the timeout may fire, and its ->release puts the
 * reference.
 *
 * Return: the same as hwt_schedule_flags().
 */
#define hwt_schedule_ref(_timeout, _time_ns, _slack_ns, _flags, _get, _put, _object)		\
({												\
	typeof(_object) __hwt_object = (_object);						\
	struct hwt_timeout *__hwt_timeout = (_timeout);						\
	u64 __hwt_time_ns = (_time_ns), __hwt_slack_ns = (_slack_ns);				\
	unsigned int __hwt_flags = (_flags);							\
	int __hwt_ret = hwt_schedule_flags(__hwt_timeout, __hwt_time_ns, __hwt_slack_ns,	\
					   __hwt_flags | HWT_SCHEDULE_PENDING);			\
												\
	if (__hwt_ret == -ENOENT && !(__hwt_flags & HWT_SCHEDULE_PENDING)) {			\
		_get(__hwt_object);								\
		__hwt_ret = hwt_schedule_flags(__hwt_timeout, __hwt_time_ns, __hwt_slack_ns,	\
					       __hwt_flags);					\
		if (__hwt_ret < 0 || (__hwt_ret & HWT_WAS_HELD))				\
			_put(__hwt_object);							\
	}											\
	__hwt_ret;										\
})

/**
 * hwt_schedule_periodic_ref() - schedule a periodic timeout, with a reference to its object for as
 * long as the timeout is held
 * @_periodic:  the periodic timeout; its ->release puts the reference
 * @_delay_ns:  the delay from now to the first deadline, ns
 * @_period_ns: the period, ns; not 0
 * @_mode:      HWT_MODE_FIXED_RATE or HWT_MODE_FIXED_DELAY
 * @_get:       gets a reference to the object: called with @_object
 * @_put:       puts the reference of @_get; called if no new hold has begun
 * @_object:    the object
 *
 * Any context. The caller serializes the calls that schedule the same timeout as periodic.
 *
 * Return: the same as hwt_schedule_periodic().
 */
#define hwt_schedule_periodic_ref(_periodic, _delay_ns, _period_ns, _mode, _get, _put, _object)	\
({												\
	typeof(_object) __hwt_object = (_object);						\
	int __hwt_ret;										\
												\
	_get(__hwt_object);									\
	__hwt_ret = hwt_schedule_periodic((_periodic), (_delay_ns), (_period_ns), (_mode));	\
	if (__hwt_ret < 0 || (__hwt_ret & HWT_WAS_HELD))					\
		_put(__hwt_object);								\
	__hwt_ret;										\
})

/* -- Cancelling ---------------------------------------------------------- */

#define HWT_IS_RUNNING	0x4	/* a bit that hwt_try_cancel() returns: a callback is executing */

bool hwt_cancel(struct hwt_timeout *timeout);
int hwt_try_cancel(struct hwt_timeout *timeout);
bool hwt_delete(struct hwt_timeout *timeout);
int hwt_try_delete(struct hwt_timeout *timeout);
int hwt_cancel_sync(struct hwt_timeout *timeout);
int hwt_shutdown_sync(struct hwt_timeout *timeout);
void hwt_reopen(struct hwt_timeout *timeout);
int hwt_wait(struct hwt_timeout *timeout, u64 max_ns);

/* -- Queries of a timeout: any context; snapshots, which order nothing ---- */

static inline u64 hwt_timeout_state(const struct hwt_timeout *timeout)
{
	return atomic64_read(&timeout->state);
}

/**
 * hwt_pending() - return whether the timeout will fire
 * @timeout: the timeout
 *
 * Return: true if the timeout is armed, or is periodic and will be armed again when its callback
 * returns.
 */
static inline bool hwt_pending(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) & HWT_F_PENDING;
}

bool hwt_running(const struct hwt_timeout *timeout);

/**
 * hwt_held() - return whether hwt needs the memory of the timeout
 * @timeout: the timeout
 *
 * Any context. Do not free the timeout just because this returns false: its ->release may still be
 * called or be executing. See the duties of the caller, at the top of this file.
 *
 * Return: true from the beginning of a hold to its end.
 */
static inline bool hwt_held(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) & HWT_F_HELD;
}

/**
 * hwt_expired() - return whether the timeout has fired, and was not scheduled or cancelled since
 * @timeout: the timeout
 *
 * Return: true from the start of ->expire until the timeout is scheduled again. For a periodic
 * timeout, which is still pending after ->expire, a cancel or a hand-back also ends this.
 */
static inline bool hwt_expired(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) & HWT_F_EXPIRED;
}

/**
 * hwt_cancelled() - return whether the timeout was cancelled or handed back since it was scheduled
 * @timeout: the timeout
 *
 * Return: true from the cancel or hwt_delete() of the pending timeout, or from the stop that hands
 * it back, until the timeout is scheduled again.
 */
static inline bool hwt_cancelled(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) & HWT_F_CANCELLED;
}

/**
 * hwt_timeout_wheel() - return the wheel of a timeout
 * @timeout: the timeout
 *
 * Return: the wheel; NULL if the timeout has no wheel yet.
 */
static inline struct hwt_wheel *hwt_timeout_wheel(const struct hwt_timeout *timeout)
{
	return timeout->shard ? __hwt_shard_wheel(timeout->shard) : NULL;
}

u64 hwt_deadline(const struct hwt_timeout *timeout);
u64 hwt_wheel_now(const struct hwt_wheel *wheel);

/**
 * hwt_remaining() - return the time until a timeout fires
 * @timeout: the timeout
 *
 * Return: the time, ns; 0 if the timeout is due or not pending; U64_MAX if it never fires.
 */
static inline u64 hwt_remaining(const struct hwt_timeout *timeout)
{
	u64 deadline = hwt_deadline(timeout), now;

	if (deadline == 0 || deadline == U64_MAX)
		return deadline;
	now = hwt_wheel_now(__hwt_shard_wheel(timeout->shard));
	return deadline > now ? deadline - now : 0;
}

/**
 * hwt_overruns() - return the periods missed before the latest firing
 * @periodic: the periodic timeout
 *
 * Return: the number of periods that passed without a callback before the latest firing. In a
 * callback, the latest firing is the one that called it. Always 0 with HWT_MODE_FIXED_DELAY.
 */
static inline u64 hwt_overruns(const struct hwt_periodic *periodic)
{
	return atomic64_read(&periodic->run.overruns);
}

/**
 * hwt_overruns_total() - return the periods missed since the timeout was scheduled
 * @periodic: the periodic timeout
 *
 * Return: the number of periods missed since the periodic timeout was last scheduled.
 */
static inline u64 hwt_overruns_total(const struct hwt_periodic *periodic)
{
	/* Without REARM, the timeout has not fired since it was scheduled: run.total is old. */
	if ((hwt_timeout_state(&periodic->timeout) & HWT_F_PENDING) == HWT_F_ARMED)
		return 0;
	return atomic64_read(&periodic->run.total);
}

/* -- Wheels -------------------------------------------------------------- */

#define HWT_NAME_MAX	16	/* size of the name of a wheel and its thread, with the NUL */

/*
 * A flag of a wheel: delays count from the end of the present jiffy, as those of timer_list do.
 * This saves a read of the exact time, but a delay may last up to a jiffy longer, or be shorter by
 * the time by which the kernel was late to begin the jiffy.
 */
#define HWT_COARSE_CLOCK	0x1
/*
 * A flag of a wheel: from freeze to thaw (suspend, hibernation) the wheel's threads run no
 * callbacks. Timeouts that come due meanwhile fire after the thaw. A stop of the wheel does not
 * wait for the thaw.
 */
#define HWT_FREEZABLE		0x2

/*
 * A flag of a wheel: callbacks run in softirqs, as those of timer_list do. A BH wheel has no
 * thread. Its contract differs from that of other wheels:
 *
 *   - ->expire is called as in softirq: with bottom halves off and as an RCU reader. It must not
 *     sleep. On a shard, one callback executes at a time, on a CPU that is not isolated (isolcpus=,
 *     nohz_full=), unless the kernel has moved the shard's timer off a CPU that went offline.
 *   - The hold of a one-shot ends before ->expire is called, so ->expire may free the timeout.
 *   - hwt_cancel_sync() and hwt_shutdown_sync() do not sleep, except on PREEMPT_RT, and may be
 *     called wherever timer_delete_sync() may: not in a hard interrupt, nor with a lock held that
 *     the callback, or an interrupt handler, takes.
 *   - For a timeout with a ->cancelled or ->release, hwt_timeout_init() warns, and calls that
 *     schedule fail with -EINVAL. HWT_MODE_FIXED_DELAY fails with -EINVAL, too.
 *   - A periodic timeout is armed again before its callback.
 *   - hwt_wheel_stop() ends the hold of a timeout before it calls the hwt_handback_fn, which runs
 *     with bottom halves off, must not sleep, and may free the timeout.
 *   - hwt_timeout_set_wheel() must not be called for a timeout while its callback executes.
 *   - The hold of a cancelled timeout may last up to two ticks longer than reclaim_ms.
 *
 * On CLOCK_MONOTONIC, a BH wheel costs less with ticks of a jiffy or longer: for near ticks, it
 * then uses a timer of timer_list, which costs less than an hrtimer.
 */
#define HWT_BH			0x4

/**
 * enum hwt_clock - the clock of a wheel
 * @HWT_CLOCK_MONOTONIC: CLOCK_MONOTONIC: time since boot, without suspend.
 * @HWT_CLOCK_BOOTTIME:  CLOCK_BOOTTIME: time since boot, suspend included.
 * @HWT_CLOCK_REALTIME:  CLOCK_REALTIME: the wall clock. If the clock is set forward past the date
 *                       of a timeout, the timeout fires at once. If the clock is set back, pending
 *                       timeouts wait for their dates, and timeouts that have fired do not fire
 *                       again. A delay becomes a date when the timeout is scheduled, so setting the
 *                       clock shortens or prolongs the delay.
 */
enum hwt_clock {
	HWT_CLOCK_MONOTONIC,
	HWT_CLOCK_BOOTTIME,
	HWT_CLOCK_REALTIME,
};

/**
 * enum hwt_wait_strategy - how a wheel's thread waits
 * @HWT_WAIT_SLEEP: The thread sleeps on a high-resolution timer until the next tick with work.
 * @HWT_WAIT_BUSY:  The thread polls the clock. This occupies a CPU, and saves the time of a
 *                  wake-up. &hwt_wheel_params.cpus must be given, and should be set aside for the
 *                  wheel. Not allowed with several shards, nor with a FIFO priority, at which the
 *                  thread would let no ordinary task run on the CPU.
 */
enum hwt_wait_strategy {
	HWT_WAIT_SLEEP,
	HWT_WAIT_BUSY,
};

/**
 * typedef hwt_clock_set_fn - called after the clock of a wheel was set
 * @wheel:   the wheel, whose clock is CLOCK_REALTIME
 * @jump_ns: how far the clock was set since the last call, ns; negative if it was set back. A
 *           suspend counts as a change by the length of the suspend
 * @arg:     &hwt_wheel_params.clock_set_arg
 *
 * Called in process context on the thread of the first shard. Timeouts of this shard fire according
 * to the new time only after the call. If the clock is set during hwt_wheel_create(), this may be
 * called before hwt_wheel_create() returns, or never. Must not make a _sync call for a timeout of
 * the wheel.
 */
typedef void (*hwt_clock_set_fn)(struct hwt_wheel *wheel, s64 jump_ns, void *arg);

#define HWT_WORKERS_MAX		256
#define HWT_SHARDS_MAX		256

/**
 * struct hwt_wheel_params - the parameters of a wheel
 * @name:            The name of the wheel in logs and statistics, and of its thread. NULL: "hwt".
 * @tick_ns:         Length of a tick, ns. @tick_ns times @ticks_per_wheel must not exceed 2^63 - 1.
 *                   A shorter length than the module parameter min_tick_us is raised to it, which
 *                   is logged once. 0: the module's default.
 * @ticks_per_wheel: Number of buckets of level 0, 2 to 65536, rounded up to a power of two. Each
 *                   higher level has as many buckets, but 512 at most. 0: the module's default.
 * @levels:          Number of levels, 1 to 6. Several levels form a hierarchy. One level is a
 *                   hashed wheel with rounds: at each tick with due timeouts, the engine looks at
 *                   all timeouts of a bucket, due or not, so one level needs many buckets or few
 *                   timeouts. 0: the module's default.
 * @clock:           The clock of the wheel's deadlines; see enum hwt_clock.
 * @flags:           HWT_COARSE_CLOCK, HWT_FREEZABLE and HWT_BH, ored; or 0.
 * @max_pending:     Maximum number of timeouts pending at once. 0: no limit.
 * @workers:         Number of threads that run the callbacks, up to HWT_WORKERS_MAX. Workers take
 *                   due timeouts in order. While a worker is free, a callback that blocks delays no
 *                   other callback. The callback of a timeout never runs on two workers at once. 0:
 *                   the wheel's own thread runs the callbacks.
 * @cpus:            The CPUs on which the wheel's threads run; at least one must be online. The
 *                   mask is copied. While all of these CPUs are offline, the threads run elsewhere.
 *                   While the administrator has put any CPU into a cpuset partition (cgroup v2),
 *                   the threads run where the kernel puts the threads of the root cpuset.
 *                   NULL: all CPUs; with several shards, see @shards.
 * @shards:          Number of engines of the wheel, up to HWT_SHARDS_MAX, each with buckets, a
 *                   lock, a thread and @workers of its own. A timeout belongs to the shard of the
 *                   CPU that initialises it. CPUs that share a last-level cache belong to one
 *                   shard; if there are more shards than caches, shards divide the CPUs of a cache.
 *                   Without @cpus, a shard's threads run on its CPUs, except isolated ones
 *                   (isolcpus=, nohz_full=); if no such CPU is online, the threads run elsewhere.
 *                   Within a shard, callbacks begin in the order of ticks; callbacks of different
 *                   shards run at the same time. 0: the module's default, or 1 if @cpus are given.
 * @priority:        Priority of the wheel's threads: HWT_PRIO_NORMAL (SCHED_NORMAL),
 *                   HWT_PRIO_FIFO_LOW (above all ordinary threads: sched_set_fifo_low()) or
 *                   HWT_PRIO_FIFO (that of threads that handle interrupts: sched_set_fifo()).
 * @wait:            How the wheel's thread waits; see enum hwt_wait_strategy.
 * @clock_set:       Called after the clock was set, or NULL. Only with HWT_CLOCK_REALTIME.
 * @clock_set_arg:   The last argument of @clock_set.
 *
 * A structure of zeroes is valid: it asks for the module's defaults, on CLOCK_MONOTONIC.
 */
struct hwt_wheel_params {
	const char	*name;
	u64		tick_ns;
	u32		ticks_per_wheel;
	u32		levels;
	enum hwt_clock	clock;
	u32		flags;
	u64		max_pending;
	u32		workers;
	const struct cpumask *cpus;
	u32		shards;
	unsigned int	priority;
	enum hwt_wait_strategy wait;
	hwt_clock_set_fn clock_set;
	void		*clock_set_arg;
};

/**
 * struct hwt_wheel_stats - the statistics of a wheel since its creation
 * @pending:     timeouts pending now
 * @scheduled:   schedules of timeouts that were not pending
 * @rearmed:     schedules of pending timeouts
 * @expired:     calls of ->expire, whether or not they have returned
 * @cancelled:   cancels of pending timeouts
 * @handed_back: pending timeouts that a stop has handed back
 * @rejected:    schedules refused, because max_pending was reached or the wheel was stopped
 * @late:        callbacks that were late by two ticks or more; docs/statistics.md defines lateness
 * @behind:      callbacks that were late by more than 512 ticks (or a revolution of level 0, if
 *               that is shorter), because of slow callbacks, a slow engine, a freeze or a suspend
 * @overruns:    periods that periodic timeouts have missed
 * @collected:   entries taken from submission lists
 * @wakeups:     times that the engine slept and woke
 * @passes:      rounds of the engine; in each, it collects, advances and fires
 * @clock_sets:  times that the engine found that the clock was set (HWT_CLOCK_REALTIME)
 * @slowest_ns:  duration of the slowest callback that was timed, ns; see docs/statistics.md
 *
 * The counters are read one after the other: they are exact only if none changes during the call.
 */
struct hwt_wheel_stats {
	u64		pending;
	u64		scheduled;
	u64		rearmed;
	u64		expired;
	u64		cancelled;
	u64		handed_back;
	u64		rejected;
	u64		late;
	u64		behind;
	u64		overruns;
	u64		collected;
	u64		wakeups;
	u64		passes;
	u64		clock_sets;
	u64		slowest_ns;
};

struct hwt_wheel *__hwt_wheel_create(const struct hwt_wheel_params *params,
				     struct module *owner);
void __hwt_wheel_put(struct hwt_wheel *wheel, struct module *owner);
struct hwt_wheel *__hwt_wheel_get_shared(const struct hwt_wheel_params *params,
					 struct module *owner);

/**
 * hwt_wheel_create() - create a private wheel
 * @params: the parameters of the wheel, or NULL for the module's defaults
 *
 * Process context. Creates the wheel's threads, too.
 *
 * Return: the wheel; or ERR_PTR of -EINVAL (the log names the parameter), -ENOMEM, -EAGAIN if the
 * system allows no further thread, -EINTR if the task was killed while it created a thread.
 */
#define hwt_wheel_create(params)	__hwt_wheel_create((params), THIS_MODULE)

/**
 * hwt_wheel_get_shared() - get a reference to the shared wheel of given parameters
 * @params: the parameters of the wheel, or NULL for the module's defaults; the members max_pending,
 *          cpus, wait and clock_set must be 0. The wheel keeps the name that its first caller gave.
 *
 * Process context. Callers with the same tick, buckets, levels, clock, flags, workers, shards and
 * priority get the same wheel. The caller's module must put the reference by hwt_wheel_put(). For a
 * shared wheel, hwt_wheel_stop() and hwt_wheel_destroy() return -EBUSY.
 *
 * Return: the wheel; or ERR_PTR of the same errors as hwt_wheel_create().
 */
#define hwt_wheel_get_shared(params)	__hwt_wheel_get_shared((params), THIS_MODULE)

/**
 * hwt_wheel_put() - put a reference to a shared wheel
 * @wheel: the wheel, which hwt_wheel_get_shared() has returned
 *
 * Process context, may sleep. The caller's timeouts on the wheel must not be held any more. The
 * call that puts the last reference stops and frees the wheel. The ->release of a timeout on the
 * wheel may make this call, too: a callback cannot stop its own wheel, so a work item does. If the
 * caller's module has no reference from hwt_wheel_get_shared(), the call only warns.
 */
#define hwt_wheel_put(wheel)	__hwt_wheel_put((wheel), THIS_MODULE)

/*
 * A shared wheel with the module's default parameters, for any client, like system_wq. It exists as
 * long as hwt is loaded, so its users need no reference. Long callbacks belong on another wheel,
 * because they would delay the timeouts of all other users.
 */
extern struct hwt_wheel *hwt_system_wheel;

/* The system wheel with HWT_BH, and ticks of a jiffy. Its callbacks must not sleep. */
extern struct hwt_wheel *hwt_system_bh_wheel;

/**
 * typedef hwt_handback_fn - takes a timeout that a stop hands back
 * @timeout: the timeout; it was pending, and now counts as cancelled
 * @arg:     the @arg of hwt_wheel_stop()
 *
 * Called by hwt_wheel_stop(), in the context of its caller. On a BH wheel, the function may free
 * the timeout, and must not sleep. On any other wheel, it may sleep, and must not free the timeout;
 * after the call, the ->release of the timeout, if there is one, is called, and may free it. During
 * the call, hwt_running() is true for the timeout.
 */
typedef void (*hwt_handback_fn)(struct hwt_timeout *timeout, void *arg);

long hwt_wheel_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg);
int hwt_wheel_destroy(struct hwt_wheel *wheel);
int hwt_wheel_flush(struct hwt_wheel *wheel);
int __hwt_wheel_barrier(struct hwt_wheel *wheel, const struct module *owner);

/**
 * hwt_wheel_barrier() - wait for the callbacks of all timeouts that have fired or were cancelled
 * @wheel: the wheel, which may be shared
 *
 * Process context, sleeps. A module calls this before it is unloaded, as it would call
 * rcu_barrier(). On return, the ->expire, ->cancelled and ->release of each timeout that had fired
 * or been cancelled before the call have returned, if they are functions of the caller's module.
 * The ->cancelled and ->release may run in the caller's context. Timeouts that are pending, are
 * scheduled again meanwhile, or are being scheduled or cancelled on other CPUs are not waited for.
 * If the caller is not in a module, the call waits for the callbacks of all clients.
 *
 * Return: 0; or -EDEADLK in a callback of the wheel.
 */
#define hwt_wheel_barrier(wheel)	__hwt_wheel_barrier((wheel), THIS_MODULE)

u64 hwt_wheel_pending(const struct hwt_wheel *wheel);
void hwt_wheel_get_params(const struct hwt_wheel *wheel,
			  struct hwt_wheel_params *params);
void hwt_wheel_get_stats(const struct hwt_wheel *wheel, struct hwt_wheel_stats *stats);

/* -- Groups ------------------------------------------------------------------ */

/**
 * struct hwt_group - the timeouts of one owner: a device, a namespace, a module
 * @lock:    protects @members
 * @members: list of struct hwt_member: the members, and entries that only mark the position or the
 *           end of a walk over the list (core/group.c)
 * @get:     gets a reference to a member's object; see hwt_group_init(). Constant
 * @put:     puts the reference of @get. Constant
 *
 * All members of this structure are private to hwt.
 */
struct hwt_group {
	raw_spinlock_t		lock;		/* protects @members */
	struct list_head	members;
	bool			(*get)(struct hwt_timeout *timeout);
	void			(*put)(struct hwt_timeout *timeout);
};

/**
 * struct hwt_member - the membership of a timeout in a group
 * @entry:   node in the group's list; protected by the group's lock
 * @timeout: the timeout; NULL if this entry only marks a place in the group's list. Constant
 *
 * The caller's object contains this and the timeout. Both members are private to hwt.
 */
struct hwt_member {
	struct list_head	entry;
	struct hwt_timeout	*timeout;
};

/**
 * hwt_group_init() - initialise a group
 * @_group: the group
 * @_get:   gets a reference to a member's object, or returns false if the object is being
 *          freed; called with a raw spinlock held and interrupts off
 * @_put:   puts the reference of @_get; called in process context
 *
 * Any context. Both functions may be NULL if no member is freed during hwt_group_*_sync(). All
 * groups that one line of code initialises share a lockdep class.
 */
#define hwt_group_init(_group, _get, _put)				\
	do {								\
		struct hwt_group *__group = (_group);			\
									\
		raw_spin_lock_init(&__group->lock);			\
		INIT_LIST_HEAD(&__group->members);			\
		__group->get = (_get);					\
		__group->put = (_put);					\
	} while (0)

void hwt_group_join(struct hwt_group *group, struct hwt_member *member,
		    struct hwt_timeout *timeout);
void hwt_group_leave(struct hwt_group *group, struct hwt_member *member);
u64 hwt_group_pending(struct hwt_group *group);
u64 hwt_group_cancel(struct hwt_group *group);
u64 hwt_group_cancel_sync(struct hwt_group *group);
u64 hwt_group_shutdown_sync(struct hwt_group *group);

#endif /* _HWT_H */
