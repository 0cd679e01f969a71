/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hwt - hashed and hierarchical timing wheels: the interface for kernel code
 *
 * A wheel (struct hwt_wheel) keeps any number of timeouts and runs each one's
 * callback on the wheel's thread, in process context, within one tick after
 * its deadline and never before it. A timeout (struct hwt_timeout) is embedded in
 * the caller's object and may be scheduled, moved and cancelled from any context,
 * hard interrupt and NMI included.
 *
 * Operations on one timeout that may run concurrently, without a lock of the caller:
 *
 *                    | schedule | periodic | cancel | *_sync | query | callback
 *   -----------------+----------+----------+--------+--------+-------+---------
 *   schedule         |    -     |    -     |   -    |   -    |   -   |    -
 *   schedule_periodic|    -     |    L     |   -    |   -    |   -   |    -
 *   cancel           |    -     |    -     |   -    |   -    |   -   |    -
 *   *_sync           |    -     |    -     |   -    |   -    |   -   |    S
 *   query            |    -     |    -     |   -    |   -    |   -   |    -
 *   init, set_wheel  |    X     |    X     |   X    |   X    |   X   |    X
 *
 *   -  no restriction: each operation takes effect at one instant, and the last one
 *      wins.
 *   L  the callers need a lock: hwt_schedule_periodic*() stores period and first
 *      deadline separately.
 *   S  a _sync call waits for the callback. In the timeout's own callback it only cancels,
 *      and returns -EDEADLK. It works in the callback of another timeout, but two callbacks
 *      must not wait for each other.
 *   X  not concurrently: only before the timeout is first used, or while it is not held.
 *
 * Contexts: everything may be called from any context, NMI included, except
 * where a function's comment says "process context" or "any context but NMI".
 *
 * Duties of the caller:
 *
 *   - The wheel outlives every call that names one of its timeouts.
 *   - The timeout's memory stays valid while the timeout is *held*. A hold begins when a
 *     timeout that is not held is scheduled. It ends after the callback has returned or the
 *     timeout was cancelled, up to reclaim_ms (a module parameter) later. There are two
 *     ways to know the end:
 *
 *       with reference counts:    schedule by hwt_schedule_ref(), which gets a
 *                                 reference for a new hold; ->release() puts
 *                                 that reference.
 *       without reference counts: leave ->release NULL, and call
 *                                 hwt_cancel_sync() or hwt_shutdown_sync()
 *                                 before the memory is freed.
 *
 *     An object that is destroyed in process context needs no references for its
 *     timeouts: a _sync call there saves two atomic operations for each schedule.
 *
 *     If hwt_cancel() returns true, the timeout will not fire, but may still be held.
 *
 * ->release is called exactly once for each hold, in process context, after hwt has
 * touched the timeout for the last time in that hold. Another CPU may already have
 * scheduled the timeout again by then (a new hold). A _sync call returns after the
 * release of the hold that it ended.
 */
#ifndef _HWT_H
#define _HWT_H

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "hwt_uapi.h"

struct cpumask;
struct hwt_timeout;
struct hwt_wheel;
struct module;

/**
 * struct hwt_timeout_ops - the callbacks of a timeout
 * @expire:    Called when the deadline has passed, on the wheel's thread or on one of
 *             its workers, in process context. It may sleep, but a slow callback delays
 *             all timeouts that are due after it, unless another worker is free.
 *             (Sleep uninterruptibly, and check the condition in a loop: a submission, a
 *             freeze or a stop may wake the thread, and a stop ends interruptible sleeps.)
 *             It may schedule, cancel and _sync other timeouts, and schedule or cancel
 *             its own. It must not free the timeout; see @release. Required.
 * @cancelled: Optional. Called once in process context for a timeout that was
 *             cancelled, or handed back by a stop that was given no function, unless
 *             it is scheduled again before its hold ends. (There is no second call if
 *             it is scheduled and cancelled again while @cancelled executes.) Runs
 *             where @expire does, or in the _sync or stop call that ends the hold.
 *             hwt_running() is true meanwhile.
 * @release:   Optional. Called when a hold has ended, exactly once per hold, in
 *             process context: where @expire runs, or in the _sync or stop call
 *             that ended it. May free the timeout.
 *
 * One constant structure serves any number of timeouts.
 */
struct hwt_timeout_ops {
	void (*expire)(struct hwt_timeout *timeout);
	void (*cancelled)(struct hwt_timeout *timeout);
	void (*release)(struct hwt_timeout *timeout);
};

/*
 * The state of a timeout is one word: expires_tick << HWT_TICK_SHIFT | bits; see core/state.h.
 * Clients use the functions below.
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
/* The tick of a deadline that does not fit. The wheel never reaches it. */
#define HWT_TICK_NEVER	((1ULL << (64 - HWT_TICK_SHIFT)) - 1)

/**
 * struct hwt_timeout - a timeout, to be embedded in the caller's object
 * @state:    Its tick and its bits. Changed by compare-and-swap only; see core/state.h.
 * @link:     Place in the buckets or on shard->owed; @link.next is NULL if in neither. Protected
 *            by the shard's lock.
 * @submit:   Place on a submission list. Owned by the caller that has set SUBMITTED, then by the
 *            holder of the shard's lock that collects it.
 * @ops:      Its callbacks. Constant while held.
 * @shard:    Its shard of a wheel. Constant while held.
 * @owed:     True while it is on shard->owed, the list of timeouts whose ->cancelled or ->release
 *            has yet to be called. Protected by the shard's lock.
 * @past:     True if it was scheduled for a tick that had passed, until it leaves the buckets and
 *            the due list. Protected by the shard's lock.
 * @tracked:  Not 0 while "debug" knows it as held; see core/debug.c. Protected by the shard's lock.
 * @cpu:      The CPU on whose submission list it was last pushed. Written before the push by the
 *            caller that has set SUBMITTED; a hint for hwt_cancel_sync(), read under the lock.
 * @check:    Marks an initialised timeout: __HWT_CHECK_STATIC, or from its address. Constant.
 *
 * All members are private to hwt. At most 64 bytes, one cache line (more where
 * lockdep is on).
 */
struct hwt_timeout {
	atomic64_t		state;
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
	/* private: acquired around callbacks, and by _sync calls */
	struct lockdep_map	lockdep_map;
#endif
};

#ifndef CONFIG_LOCKDEP
static_assert(sizeof(struct hwt_timeout) <= 64);
#endif

/**
 * struct hwt_periodic - a timeout that fires again and again
 * @timeout:  The timeout. Its @expire finds the hwt_periodic by container_of().
 * @set:      The arguments of the last hwt_schedule_periodic*(). Written by that
 *            call, read by the engine at the first firing after it.
 * @run:      The engine's own copy and progress. Written only by the thread that
 *            has set RUNNING; @run.overruns and @run.total may be read any time.
 *
 * All members but @timeout are private to hwt. The 64-bit members are atomic, so that a 32-bit CPU
 * does not read a half of the old and a half of the new value.
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
 * Nanoseconds as u64, without the overflow of n * NSEC_PER_SEC in 32 bits; U64_MAX, which never
 * comes, if they do not fit.
 */
static inline u64 hwt_msecs(u64 n)
{
	return n > U64_MAX / 1000000 ? U64_MAX : n * 1000000;
}

static inline u64 hwt_secs(u64 n)
{
	return n > U64_MAX / 1000000000 ? U64_MAX : n * 1000000000;
}

/* -- Initialisation ------------------------------------------------------ */

void __hwt_timeout_init(struct hwt_timeout *timeout, struct hwt_wheel *wheel,
			const struct hwt_timeout_ops *ops, const char *name,
			struct lock_class_key *key);

/**
 * hwt_timeout_init() - initialise a timeout
 * @_timeout: the timeout; its memory may hold anything
 * @_wheel:   the wheel it will live on, or NULL if hwt_timeout_set_wheel() follows
 * @_ops:     its callbacks
 *
 * Any context. Must not be used on a timeout that is held.
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
 * @_timeout: the timeout; its memory may hold anything
 * @_wheel:   as for hwt_timeout_init()
 * @_expire:  its ->expire, a function of the caller's module
 *
 * Any context. As timer_setup(). Calls hwt_timeout_init() with constant callbacks, of which all
 * but ->expire are NULL.
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
 * @_wheel:    as for hwt_timeout_init()
 * @_ops:      as for hwt_timeout_init()
 *
 * Any context. Must not be used on a periodic timeout that is held.
 */
#define hwt_periodic_init(_periodic, _wheel, _ops)			\
	do {								\
		struct hwt_periodic *__periodic = (_periodic);		\
									\
		hwt_timeout_init(&__periodic->timeout, (_wheel), (_ops)); \
		/* For queries before it fires. A held timeout is left unchanged. */ \
		if (!hwt_held(&__periodic->timeout))			\
			__periodic->run = (typeof(__periodic->run)) {};	\
	} while (0)

#ifdef CONFIG_LOCKDEP
#define __HWT_LOCKDEP_INIT(_name)					\
	.lockdep_map = STATIC_LOCKDEP_MAP_INIT("hwt_timeout", &(_name)),
#else
#define __HWT_LOCKDEP_INIT(_name)
#endif

/* @check is STATIC after HWT_TIMEOUT_INIT(), else the address XOR PLACE. 0x687774 is "hwt". */
#define __HWT_CHECK_STATIC	0x68777401U
#define __HWT_CHECK_PLACE	0x68777402U

/**
 * HWT_TIMEOUT_INIT() - static initialiser of a timeout
 * @_name: the timeout, an lvalue with static storage
 * @_ops:  the address of its struct hwt_timeout_ops
 *
 * It has no wheel yet: hwt_timeout_set_wheel() gives it one.
 */
#define HWT_TIMEOUT_INIT(_name, _ops)					\
	{ .ops = (_ops), .check = __HWT_CHECK_STATIC, __HWT_LOCKDEP_INIT(_name) }

/* Private: the wheel of a shard. */
struct hwt_wheel *__hwt_shard_wheel(const struct hwt_shard *shard);

void hwt_timeout_set_wheel(struct hwt_timeout *timeout, struct hwt_wheel *wheel);

/* -- Scheduling ---------------------------------------------------------- */

/* Bits that the schedule functions return if they do not fail. */
#define HWT_WAS_PENDING	0x1	/* it was going to fire already */
#define HWT_WAS_HELD	0x2	/* its hold goes on: no new one has begun */

/*
 * All times are nanoseconds: delays from now, deadlines on the wheel's clock. A
 * deadline is rounded up to the wheel's tick. One that has passed fires at the
 * engine's next pass, never inside the call. A deadline that does not fit (2^63 ns and
 * more) is accepted, never fires, and can be cancelled. With a slack, the timeout
 * fires at the tick in [deadline, deadline + slack] that costs least.
 *
 * A schedule moves a pending timeout. A one-shot schedule makes a periodic timeout a
 * one-shot. The callback that follows sees the caller's earlier writes.
 *
 * After an error nothing has changed: -ESHUTDOWN the wheel is stopped or the timeout was
 * shut down; -EAGAIN the wheel's max_pending is reached; -EINVAL it has no wheel.
 */
int hwt_schedule(struct hwt_timeout *timeout, u64 delay_ns);
int hwt_schedule_at(struct hwt_timeout *timeout, u64 deadline_ns);

/* Flags of hwt_schedule_flags(). They combine. */
#define HWT_SCHEDULE_AT		0x1	/* the time is a deadline, not a delay */
#define HWT_SCHEDULE_EARLIER	0x2	/* never move an armed timeout to a later tick */
#define HWT_SCHEDULE_PENDING	0x4	/* -ENOENT if it is not pending */
#define HWT_SCHEDULE_UNLESS_PENDING	0x8	/* leave a pending timeout as it is */
#define HWT_SCHEDULE_PERIODIC	0x10	/* private */

int hwt_schedule_flags(struct hwt_timeout *timeout, u64 time_ns, u64 slack_ns,
		       unsigned int flags);

/**
 * hwt_schedule_slack() - fire after a delay, or somewhat later
 * @timeout:  the timeout; if it is pending it is moved
 * @delay_ns: from now, ns
 * @slack_ns: how much later it may be, ns. Timeouts with slack share wake-ups.
 *
 * Any context.
 *
 * Return: as hwt_schedule().
 */
static inline int hwt_schedule_slack(struct hwt_timeout *timeout, u64 delay_ns, u64 slack_ns)
{
	return hwt_schedule_flags(timeout, delay_ns, slack_ns, 0);
}

/**
 * hwt_schedule_earlier() - fire after a delay, unless it would fire sooner anyway
 * @timeout:  the timeout
 * @delay_ns: from now, ns
 *
 * Any context. As timer_reduce(): arms a timeout that is not armed, and moves one only to an
 * earlier tick. A periodic timeout whose callback executes is not armed, and becomes a one-shot.
 * The callback that follows sees the caller's earlier writes, even if nothing was moved.
 *
 * Return: as hwt_schedule(); with HWT_WAS_PENDING it may have been left as it was.
 */
static inline int hwt_schedule_earlier(struct hwt_timeout *timeout, u64 delay_ns)
{
	return hwt_schedule_flags(timeout, delay_ns, 0, HWT_SCHEDULE_EARLIER);
}

/**
 * hwt_schedule_pending() - move a pending timeout, leave any other alone
 * @timeout:  the timeout
 * @delay_ns: from now, ns
 *
 * Any context. As mod_timer_pending().
 *
 * Return: as hwt_schedule(), or -ENOENT if it was not pending: nothing changed.
 */
static inline int hwt_schedule_pending(struct hwt_timeout *timeout, u64 delay_ns)
{
	return hwt_schedule_flags(timeout, delay_ns, 0, HWT_SCHEDULE_PENDING);
}

/**
 * hwt_schedule_pending_at() - move a pending timeout to a deadline, leave any other alone
 * @timeout:     the timeout
 * @deadline_ns: on the wheel's clock, ns
 *
 * Any context.
 *
 * Return: as hwt_schedule_pending().
 */
static inline int hwt_schedule_pending_at(struct hwt_timeout *timeout, u64 deadline_ns)
{
	return hwt_schedule_flags(timeout, deadline_ns, 0,
				  HWT_SCHEDULE_AT | HWT_SCHEDULE_PENDING);
}

/**
 * hwt_schedule_unless_pending() - fire after a delay, unless it is pending already
 * @timeout:  the timeout
 * @delay_ns: from now, ns
 *
 * Any context. As queue_delayed_work(). Reads no clock if the timeout is pending. The callback that
 * follows sees the caller's earlier writes, even if nothing was changed.
 *
 * Return: as hwt_schedule(); with HWT_WAS_PENDING nothing changed.
 */
static inline int hwt_schedule_unless_pending(struct hwt_timeout *timeout, u64 delay_ns)
{
	return hwt_schedule_flags(timeout, delay_ns, 0, HWT_SCHEDULE_UNLESS_PENDING);
}

int hwt_schedule_periodic(struct hwt_periodic *periodic, u64 delay_ns,
			  u64 period_ns, unsigned int mode);
int hwt_schedule_periodic_at(struct hwt_periodic *periodic, u64 first_ns,
			     u64 period_ns, unsigned int mode);

/**
 * typedef hwt_ref_fn - gets, or puts, a reference to the object of a timeout
 * @timeout: the timeout
 *
 * Called in the context of the schedule. The function that puts never drops the last reference,
 * because the caller of the schedule has one.
 */
typedef void (*hwt_ref_fn)(struct hwt_timeout *timeout);

/**
 * hwt_schedule_ref() - schedule a timeout whose hold has a reference to its object
 * @timeout:  the timeout; its ->release puts a reference
 * @time_ns:  as for hwt_schedule_flags()
 * @slack_ns: as for hwt_schedule_flags()
 * @flags:    as for hwt_schedule_flags()
 * @get:      gets a reference
 * @put:      puts that reference, if no new hold has begun
 *
 * Any context. The reference is taken before the schedule, because the timeout may fire right
 * after it, and its ->release then puts the reference.
 *
 * Return: as hwt_schedule_flags().
 */
static __always_inline int hwt_schedule_ref(struct hwt_timeout *timeout, u64 time_ns, u64 slack_ns,
					    unsigned int flags, hwt_ref_fn get, hwt_ref_fn put)
{
	int ret;

	get(timeout);
	ret = hwt_schedule_flags(timeout, time_ns, slack_ns, flags);
	if (ret < 0 || (ret & HWT_WAS_HELD))
		put(timeout);
	return ret;
}

/**
 * hwt_schedule_periodic_ref() - schedule a periodic timeout whose hold has a reference to its
 * object
 * @periodic:  as for hwt_schedule_periodic()
 * @delay_ns:  as for hwt_schedule_periodic()
 * @period_ns: as for hwt_schedule_periodic()
 * @mode:      as for hwt_schedule_periodic()
 * @get:       as for hwt_schedule_ref()
 * @put:       as for hwt_schedule_ref()
 *
 * Any context, with the restriction of hwt_schedule_periodic_at().
 *
 * Return: as hwt_schedule_periodic().
 */
static __always_inline int hwt_schedule_periodic_ref(struct hwt_periodic *periodic, u64 delay_ns,
						     u64 period_ns, unsigned int mode,
						     hwt_ref_fn get, hwt_ref_fn put)
{
	int ret;

	get(&periodic->timeout);
	ret = hwt_schedule_periodic(periodic, delay_ns, period_ns, mode);
	if (ret < 0 || (ret & HWT_WAS_HELD))
		put(&periodic->timeout);
	return ret;
}

/* -- Cancelling ---------------------------------------------------------- */

#define HWT_IS_RUNNING	0x4	/* hwt_try_cancel(): a callback is executing */

bool hwt_cancel(struct hwt_timeout *timeout);
int hwt_try_cancel(struct hwt_timeout *timeout);
int hwt_cancel_sync(struct hwt_timeout *timeout);
int hwt_shutdown_sync(struct hwt_timeout *timeout);
void hwt_reopen(struct hwt_timeout *timeout);
int hwt_wait(struct hwt_timeout *timeout, u64 max_ns);

/* -- Queries of a timeout: snapshots, any context, which order nothing ---- */

static inline u64 hwt_timeout_state(const struct hwt_timeout *timeout)
{
	return atomic64_read(&timeout->state);
}

/**
 * hwt_pending() - return whether the timeout will fire
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: true if it is armed, or periodic and about to be armed again.
 */
static inline bool hwt_pending(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) & HWT_F_PENDING;
}

/**
 * hwt_running() - return whether a callback of the timeout executes
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: true while one executes.
 */
static inline bool hwt_running(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) & HWT_F_RUNNING;
}

/**
 * hwt_held() - return whether hwt needs the memory of the timeout
 * @timeout: the timeout
 *
 * Any context. False does not yet allow freeing it: its ->release may be executing. See the
 * duties of the caller at the top of this file.
 *
 * Return: true from the beginning of a hold to its end.
 */
static inline bool hwt_held(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) & HWT_F_HELD;
}

/**
 * hwt_expired() - return whether the timeout last fired
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: true from the start of its callback until it is scheduled or cancelled.
 */
static inline bool hwt_expired(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) & HWT_F_EXPIRED;
}

/**
 * hwt_cancelled() - return whether the timeout was last cancelled or handed back
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: true from the cancel or stop until it is scheduled.
 */
static inline bool hwt_cancelled(const struct hwt_timeout *timeout)
{
	return hwt_timeout_state(timeout) & HWT_F_CANCELLED;
}

/**
 * hwt_timeout_wheel() - return the wheel of a timeout
 * @timeout: the timeout
 *
 * Any context.
 *
 * Return: the wheel; NULL if it has none yet.
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
 * Any context.
 *
 * Return: ns; 0 if it is due or not pending; U64_MAX if it never fires.
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
 * Any context.
 *
 * Return: in its callback, the number of periods missed before this call.
 * Always 0 with HWT_MODE_FIXED_DELAY.
 */
static inline u64 hwt_overruns(const struct hwt_periodic *periodic)
{
	return atomic64_read(&periodic->run.overruns);
}

/**
 * hwt_overruns_total() - return the periods missed since the schedule
 * @periodic: the periodic timeout
 *
 * Any context.
 *
 * Return: their number.
 */
static inline u64 hwt_overruns_total(const struct hwt_periodic *periodic)
{
	/* ARMED without REARM: it has not fired since it was scheduled. */
	if ((hwt_timeout_state(&periodic->timeout) & HWT_F_PENDING) == HWT_F_ARMED)
		return 0;
	return atomic64_read(&periodic->run.total);
}

/* -- Wheels -------------------------------------------------------------- */

#define HWT_NAME_MAX	16	/* with the final 0: it also names the thread */

/*
 * Delays count from the end of the present jiffy, as those of timer_list: the clock is cheaper to
 * read, and a delay is up to a jiffy longer.
 */
#define HWT_COARSE_CLOCK	0x1
/*
 * No callbacks between freeze and thaw (suspend, hibernation): timeouts that come due
 * meanwhile fire after the thaw. A stop does not wait for the thaw, but thaws the wheel's threads.
 */
#define HWT_FREEZABLE		0x2

/**
 * enum hwt_clock - the clock of a wheel
 * @HWT_CLOCK_MONOTONIC: CLOCK_MONOTONIC: time since boot, without suspend.
 * @HWT_CLOCK_BOOTTIME:  CLOCK_BOOTTIME: the same, time in suspend included.
 * @HWT_CLOCK_REALTIME:  CLOCK_REALTIME: the wall clock. When it is set forward, timeouts
 *                       whose dates it passes over fire at once. When it is set back,
 *                       pending timeouts wait until their dates come (again), and those
 *                       that have fired do not fire again. A delay becomes a date when
 *                       it is scheduled.
 */
enum hwt_clock {
	HWT_CLOCK_MONOTONIC,
	HWT_CLOCK_BOOTTIME,
	HWT_CLOCK_REALTIME,
};

/**
 * enum hwt_wait_strategy - how a wheel's thread waits
 * @HWT_WAIT_SLEEP: Sleeps until the tick, with a high-resolution timer.
 * @HWT_WAIT_BUSY:  Polls the clock. Costs a CPU, saves the time that waking up takes.
 *                  For a wheel that is pinned to a CPU set aside for it, so
 *                  &hwt_wheel_params.cpus must be given; not with several shards, nor with
 *                  a FIFO priority, which would let nothing else run there.
 */
enum hwt_wait_strategy {
	HWT_WAIT_SLEEP,
	HWT_WAIT_BUSY,
};

/**
 * typedef hwt_clock_set_fn - called after the clock of a wheel was set
 * @wheel:   the wheel, on CLOCK_REALTIME
 * @jump_ns: how far it was set since the last call; after a suspend, the length of the suspend
 * @arg:     &hwt_wheel_params.clock_set_arg
 *
 * Runs on the thread of the first shard in process context, before any timeout of this shard fires
 * according to the new time. Must not call a _sync function for a timeout of the wheel.
 */
typedef void (*hwt_clock_set_fn)(struct hwt_wheel *wheel, s64 jump_ns, void *arg);

#define HWT_WORKERS_MAX		256
#define HWT_SHARDS_MAX		256

/**
 * struct hwt_wheel_params - the parameters of a wheel
 * @name:            Shown in logs, statistics and as the thread's name; NULL: "hwt".
 * @tick_ns:         Length of a tick, ns. 0: the module's default. A value below the module's
 *                   min_tick_us is raised to it, with one warning. A revolution of level 0
 *                   has at most 2^63 - 1 ns.
 * @ticks_per_wheel: Buckets of level 0, 2 to 65536, rounded up to a power of two. Each higher
 *                   level has as many, but 512 at most. 0: the module's default.
 * @levels:          1 to 6. More than 1 are hierarchical. 1 is a hashed wheel with
 *                   rounds: each tick looks at all timeouts of a bucket, on average
 *                   the pending ones divided by @ticks_per_wheel, so it needs many
 *                   buckets or few timeouts. 0: the module's default.
 * @clock:           The clock of its deadlines; see enum hwt_clock.
 * @flags:           HWT_COARSE_CLOCK, HWT_FREEZABLE.
 * @max_pending:     Maximum number of timeouts pending at once; 0: no limit (and no cost).
 * @workers:         Number of threads that run the callbacks, up to HWT_WORKERS_MAX. They take
 *                   due timeouts in order, so a callback that blocks delays no other while
 *                   another worker is free; a timeout's callback never runs on two at once.
 *                   0: the wheel's own thread runs the callbacks.
 * @cpus:            CPUs for the wheel's threads, at least one of them online; copied.
 *                   When all of them go offline the threads run elsewhere until one
 *                   comes back. NULL: all.
 * @shards:          Number of engines of the wheel, up to HWT_SHARDS_MAX, each with buckets, a
 *                   lock, a thread and @workers of its own. A timeout belongs to the shard of the
 *                   CPU that initialises it; CPUs of one NUMA node and last-level cache share a
 *                   shard, whose threads run on these CPUs, except isolated ones (isolcpus=,
 *                   nohz_full=), unless @cpus are given or all are offline. Callbacks run in
 *                   the order of ticks within a shard only, and those of different shards at
 *                   the same time. 0: the module's default, or 1 if @cpus are given.
 * @priority:        Of the wheel's threads: HWT_PRIO_NORMAL, as most threads have (SCHED_NORMAL);
 *                   HWT_PRIO_FIFO_LOW, before all normal threads (sched_set_fifo_low());
 *                   HWT_PRIO_FIFO, as threads that handle interrupts (sched_set_fifo()).
 * @wait:            How the wheel's thread waits.
 * @clock_set:       Called when the clock was set; only with HWT_CLOCK_REALTIME. NULL: none.
 * @clock_set_arg:   For @clock_set.
 *
 * All zero is a valid set: the defaults, on the monotonic clock.
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
 * @rearmed:     schedules of timeouts that were pending
 * @expired:     callbacks begun because of a deadline, whether or not they have returned
 * @cancelled:   cancels that hit a pending timeout
 * @handed_back: pending timeouts that a stop took
 * @rejected:    schedules refused (-EAGAIN, -ESHUTDOWN of the wheel)
 * @late:        callbacks that were late by two ticks or more; docs/statistics.md defines lateness
 * @behind:      callbacks that were late by more than 512 ticks (or a revolution of level 0, if
 *               that is shorter), because of slow callbacks, a slow engine, a freeze or a suspend
 * @overruns:    periods that periodic timeouts missed
 * @collected:   entries taken from submission lists
 * @wakeups:     times the engine slept and woke
 * @passes:      rounds of collecting, advancing and firing
 * @clock_sets:  times the wheel's clock was seen to be set (HWT_CLOCK_REALTIME)
 * @slowest_ns:  duration of the slowest callback that was timed; see docs/statistics.md
 *
 * A snapshot: counters are read one after the other. When nothing else is going on,
 * it is exact.
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
 * @params: its parameters, or NULL for the module's defaults
 *
 * Process context. The thread is created now.
 *
 * Return: the wheel, or ERR_PTR: -EINVAL a parameter is out of range (the log names
 * it), -ENOMEM, -EAGAIN (no more threads), -EINTR (killed while a thread was being
 * created).
 */
#define hwt_wheel_create(params)	__hwt_wheel_create((params), THIS_MODULE)

/**
 * hwt_wheel_get_shared() - get a reference to the shared wheel of given parameters
 * @params: as for hwt_wheel_create(); but @max_pending, @cpus, @wait and @clock_set
 *          must be 0. The first caller names the wheel.
 *
 * Process context. Callers with the same tick, buckets, levels, clock, flags, workers, shards and
 * priority get the same wheel. The caller's module puts the reference: hwt_wheel_put(). A user
 * cannot stop the wheel.
 *
 * Return: the wheel, or ERR_PTR as for hwt_wheel_create().
 */
#define hwt_wheel_get_shared(params)	__hwt_wheel_get_shared((params), THIS_MODULE)

/**
 * hwt_wheel_put() - put a reference to a shared wheel
 * @wheel: from hwt_wheel_get_shared()
 *
 * Process context, including a ->release on the wheel. The caller's timeouts on the wheel must
 * not be held any more. The last reference's put stops the wheel and frees it, and may sleep. If
 * the caller's module has no reference to @wheel, as to hwt_system_wheel, the put has no effect but
 * a warning.
 */
#define hwt_wheel_put(wheel)	__hwt_wheel_put((wheel), THIS_MODULE)

/*
 * The shared wheel of the module's defaults, as system_wq: it is there as long as hwt is loaded, so
 * its users get and put nothing. Its thread serves them all: long callbacks belong elsewhere.
 */
extern struct hwt_wheel *hwt_system_wheel;

/**
 * typedef hwt_handback_fn - takes a timeout that a stop hands back
 * @timeout: the timeout; it was pending, and now counts as cancelled
 * @arg:     the argument of hwt_wheel_stop()
 *
 * Process context, from hwt_wheel_stop(); may sleep, and do what a callback may. hwt_running() is
 * true meanwhile; its ->release follows.
 */
typedef void (*hwt_handback_fn)(struct hwt_timeout *timeout, void *arg);

long hwt_wheel_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg);
int hwt_wheel_destroy(struct hwt_wheel *wheel);
int hwt_wheel_flush(struct hwt_wheel *wheel);
int hwt_wheel_barrier(struct hwt_wheel *wheel);

u64 hwt_wheel_pending(const struct hwt_wheel *wheel);
void hwt_wheel_get_params(const struct hwt_wheel *wheel,
			  struct hwt_wheel_params *params);
void hwt_wheel_get_stats(struct hwt_wheel *wheel, struct hwt_wheel_stats *stats);

/* -- Timeouts that are not embedded ------------------------------------------ */

/**
 * struct hwt_handle - a timeout that is not embedded
 * @timeout: the timeout, for queries and cancels
 * @refs:    references: hwt_new_timeout()'s caller has one, and the hold has one. Private.
 * @fn:      called when it expires. Private.
 * @cancelled: called when it was cancelled, or NULL. Private.
 * @data:    anything
 */
struct hwt_handle {
	struct hwt_timeout	timeout;
	refcount_t		refs;
	void			(*fn)(struct hwt_handle *handle);
	void			(*cancelled)(struct hwt_handle *handle);
	void			*data;
};

struct hwt_handle *hwt_new_timeout(struct hwt_wheel *wheel, u64 delay_ns,
				   void (*fn)(struct hwt_handle *handle),
				   void (*cancelled)(struct hwt_handle *handle), void *data,
				   gfp_t gfp);
void hwt_handle_put(struct hwt_handle *handle);

/**
 * hwt_handle_get() - get another reference
 * @handle: the handle; the caller has a reference already, or is its @fn
 *
 * Any context.
 */
static inline void hwt_handle_get(struct hwt_handle *handle)
{
	refcount_inc(&handle->refs);
}

/* -- Groups ------------------------------------------------------------------ */

/**
 * struct hwt_group - the timeouts of one owner: a device, a namespace, a module
 * @lock:    protects the list
 * @members: list of struct hwt_member: the members, and marks of walks in progress
 * @get:     see hwt_group_init(). Constant
 * @put:     see hwt_group_init(). Constant
 *
 * All members are private to hwt.
 */
struct hwt_group {
	raw_spinlock_t		lock;		/* of the list */
	struct list_head	members;
	bool			(*get)(struct hwt_timeout *timeout);
	void			(*put)(struct hwt_timeout *timeout);
};

/**
 * struct hwt_member - the membership of a timeout in a group, beside it in the caller's object
 * @entry:   in the group's list; the group's lock protects it
 * @timeout: the timeout; NULL: this is a mark of a walk. Constant
 *
 * Both members are private to hwt.
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
 * @_put:   puts that reference; process context
 *
 * Any context. Both functions may be NULL if no member is freed while one of the
 * hwt_group_*_sync() functions executes. Groups initialised at one place share a lockdep class.
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

/* -- Recipes ------------------------------------------------------------------ */

/*
 * Recipes that need no function of their own:
 *
 *   watchdog, "call me unless I am kicked for N": each kick is hwt_schedule(timeout, N).
 *   debounce, "call me when it has been quiet for N": each event is hwt_schedule(timeout, N).
 *   throttle, "call me at most once in N": each event is hwt_schedule_earlier(timeout, N).
 */

/**
 * struct hwt_debounce - fire after a quiet time, but within a maximum delay
 * @quiet_ns: quiet time before the callback
 * @most_ns:  maximum delay from the first unserved event to the callback
 * @first_ns: time of that event; filled in
 *
 * With @most_ns of U64_MAX it is plain hwt_schedule().
 */
struct hwt_debounce {
	u64	quiet_ns;
	u64	most_ns;
	u64	first_ns;
};

int hwt_debounce(struct hwt_timeout *timeout, struct hwt_debounce *debounce);

/**
 * struct hwt_backoff - delays between retries, each longer than the one before
 * @first_ns:   the first delay
 * @most_ns:    the longest delay; each is twice the one before it, up to this
 * @jitter_pct: each delay is shortened, at random, by up to this many percent, so that clients
 *              that failed together do not try again together; 0 to 100
 * @limit:      maximum number of tries, 0: no limit
 * @tries:      number of tries so far; set to 0 to begin anew
 */
struct hwt_backoff {
	u64	first_ns;
	u64	most_ns;
	u32	jitter_pct;
	u32	limit;
	u32	tries;
};

int hwt_retry(struct hwt_timeout *timeout, struct hwt_backoff *backoff);

#endif /* _HWT_H */
