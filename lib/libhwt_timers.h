/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Timers in a process, for event loops: any number of them, on the buckets of hwt's wheels
 *
 * A timer (struct libhwt_timer) is a member of an object of the program. Each event loop has a set
 * of timers (struct libhwt_timers). Both need no kernel module, no thread and no permission:
 *
 *	struct libhwt_timers *timers = libhwt_timers_new(NULL);
 *
 *	libhwt_timer_init(&c->idle, on_idle);
 *	libhwt_timer_set(timers, &c->idle, 60 * SEC);	arm, or push back
 *	libhwt_timer_disarm(&c->request);		it will not fire; the object stays
 *	libhwt_timer_stop(timers, &c->idle);		and the object may be freed
 *
 *	n = epoll_wait(ep, events, 64, libhwt_timers_wait_ms(timers));
 *	libhwt_timers_run(timers);			call back what is due
 *
 * The device
 *	A set with the option LIBHWT_DEVICE has a timeout of /dev/hwt for each of its timers, in a
 *	context with keys that libhwt_timers_context() returns. So hwtctl shows the timers, the
 *	kernel charges them to the user, and another thread or process that has the descriptor may
 *	list, move (libhwt_modify()) and cancel them: the key of a timer is its address. If the
 *	program has pushed a timer back, which the device learns at the old deadline, or pushes it
 *	back later, the program's deadline counts. Other threads and processes must not schedule
 *	timeouts in that context, nor read its events. To
 *	disarm a timer or push it back costs the same as in the process; to arm it, to move it to
 *	an earlier time, to stop it while it is pending, and its expiry cost a system call. A timer
 *	that the device refuses is kept in the process. Pass only the time of the clock to
 *	libhwt_timers_run_at() for such a set.
 *
 * Times
 *	Nanoseconds on the clock of the set. A delay counts from the set's time, which is read once
 *	for each turn of the loop: by libhwt_timers_run(), or by the first call that needs it after
 *	libhwt_timers_wait_ms(). A timer never fires before its deadline by that clock, and at most
 *	a tick of LIBHWT_TICK ns after it, if the loop runs then. A deadline of LIBHWT_NEVER, or
 *	2^63 ns or more, never comes.
 *
 * Order
 *	Timers that are due in the same run fire in the order of their deadlines, and those with
 *	the same deadline in the order in which they were set.
 *
 * Callbacks
 *	A callback may set, disarm, stop and free any timer of the set, its own included, and those
 *	that are due in the same run: each deadline is checked again immediately before the call.
 *	A timer that a callback sets to a time that has passed waits for the next run. A callback
 *	returns: it is not left by longjmp() or a C++ exception.
 *
 * Memory
 *	No function but libhwt_timers_new() allocates memory, and none but that one and
 *	libhwt_timers_fd() can fail. A set takes less than 32 KB. From libhwt_timer_set() until the
 *	callback, or until libhwt_timer_stop(), the set refers to the timer, so its memory must
 *	stay. This also holds for a disarmed timer, which has no callback: stop it before its
 *	memory is freed.
 *
 * Threads, processes, signals
 *	One thread at a time uses a set and its timers. If the library is compiled with
 *	LIBHWT_DEBUG, the program aborts if a thread uses a set that another thread has created,
 *	unless it has called libhwt_timers_adopt(). After fork(), the child may use its copy of a
 *	set, unless it is on the device or libhwt_timers_fd() was called for it: the parent shares
 *	its descriptor then. Such a copy the child may only free, which does not affect the parent.
 *	No function may be called from a signal handler.
 */
#ifndef LIBHWT_TIMERS_H
#define LIBHWT_TIMERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- Types --------------------------------------------------------------- */

/* The length of a tick: 2^20 ns, about 1.05 ms. */
#define LIBHWT_TICK_SHIFT	20
#define LIBHWT_TICK		(UINT64_C(1) << LIBHWT_TICK_SHIFT)
#define LIBHWT_NEVER		UINT64_MAX

struct libhwt;

struct libhwt_link {
	struct libhwt_link	*next, *prev;
};

/**
 * struct libhwt_timer - a timer; all members are private
 * @linked:   the time for which the timer is in the buckets of a set, a multiple of LIBHWT_TICK,
 *            not before the deadline unless a callback is about to follow; with a flag below the
 *            tick if the device has a timeout for it; LIBHWT_NEVER: in no set
 * @link:     node in a list of the set
 * @deadline: the time at which the timer is due; LIBHWT_NEVER: disarmed. If LIBHWT_WATCHED is set
 *            in @order, the address of the word that has the time
 * @order:    number of the call that has set the timer, times LIBHWT_ORDER, with the flags below
 * @fn:       the callback
 */
struct libhwt_timer {
	uint64_t		linked;
	struct libhwt_link	link;
	uint64_t		deadline;
	uint64_t		order;
	void			(*fn)(struct libhwt_timer *timer);
};

/* Flags in @order of struct libhwt_timer. */
#define LIBHWT_PERIODIC		1u
#define LIBHWT_WATCHED		2u
#define LIBHWT_ORDER		4u

/**
 * struct libhwt_periodic - a timer that fires again and again
 * @timer:     the timer
 * @period_ns: the period
 * @overruns:  number of periods that had passed without a callback when it was last called
 *
 * The callback may read @period_ns and @overruns, and must not write them.
 */
struct libhwt_periodic {
	struct libhwt_timer	timer;
	uint64_t		period_ns;
	uint64_t		overruns;
};

/**
 * struct libhwt_timers - a set of timers; the members are private
 * @now:   the set's time; LIBHWT_STALE: the clock is to be read
 * @order: the number, times LIBHWT_ORDER, of the next call that sets a timer
 */
struct libhwt_timers {
	uint64_t	now;
	uint64_t	order;
};

#define LIBHWT_STALE		(UINT64_C(1) << 63)

/* -- Sets of timers ------------------------------------------------------ */

/**
 * struct libhwt_timers_options - how a set works
 * @size:           sizeof(struct libhwt_timers_options)
 * @flags:          0: on CLOCK_MONOTONIC, in the process; or flags below, at most one for the clock
 *                  and one for the device
 * @granularity_ns: let timers share wake-ups: each deadline is rounded up to a multiple of this,
 *                  which is rounded up to a power of two itself; up to 2^40 (18 minutes). 0: a tick
 * @max_run:        maximum number of callbacks of one run; 0: no limit but the timers that are due
 */
struct libhwt_timers_options {
	size_t		size;
	unsigned int	flags;
	unsigned int	max_run;
	uint64_t	granularity_ns;
};

#define LIBHWT_TIMERS_BOOTTIME	1u	/* CLOCK_BOOTTIME */
#define LIBHWT_TIMERS_REALTIME	2u	/* CLOCK_REALTIME: all deadlines are dates */
#define LIBHWT_DEVICE		4u	/* on /dev/hwt */
#define LIBHWT_ANY		8u	/* on /dev/hwt if that can be opened, else in the process */

/**
 * libhwt_timers_new() - create a set of timers
 * @options: NULL: on CLOCK_MONOTONIC, with ticks of LIBHWT_TICK, in the process
 *
 * Return: the set, for libhwt_timers_free(); or NULL, with errno: ENOMEM: there is no memory.
 * EINVAL: @options has another size, or a value that is not allowed. With LIBHWT_DEVICE, ENOTSUP:
 * the program has hwt_timers.c instead of libhwt; or an error of libhwt_open().
 */
struct libhwt_timers *libhwt_timers_new(const struct libhwt_timers_options *options);

/**
 * libhwt_timers_free() - free a set
 * @timers: the set, or NULL. No callback of it is executing.
 *
 * Stops all its timers. Their memory is not accessed afterwards. The device keeps its timeouts
 * until no process has the descriptor any more.
 */
void libhwt_timers_free(struct libhwt_timers *timers);

/**
 * libhwt_timers_run() - call back the timers that are due
 * @timers: the set
 *
 * Reads the clock, which is then the set's time. Does nothing in a callback of the set.
 *
 * Return: the number of callbacks. If it is @max_run of the set's options, more may be due.
 */
unsigned int libhwt_timers_run(struct libhwt_timers *timers);

/**
 * libhwt_timers_run_at() - call back the timers that are due at a time
 * @timers: the set
 * @now_ns: the time, instead of that of the clock; not 0. It may be before an earlier one.
 *
 * For simulations, tests, and loops that have read the clock. The time remains the set's time until
 * the next call of this function, if libhwt_timers_wait_ns() is used instead of
 * libhwt_timers_wait_ms(). A simulation calls it for the time at which it begins, before it sets a
 * timer.
 *
 * Return: the number of callbacks.
 */
unsigned int libhwt_timers_run_at(struct libhwt_timers *timers, uint64_t now_ns);

/**
 * libhwt_timers_wait_ms() - return how long the loop may sleep
 * @timers: the set
 *
 * Call this where the loop is about to sleep: the next call that needs the time reads the clock.
 * If CLOCK_REALTIME is set, or the machine is suspended, the sleep of poll() goes on. So use
 * libhwt_timers_fd() for a set that is not on CLOCK_MONOTONIC.
 *
 * Return: milliseconds for poll() and epoll_wait(), rounded up; 0: a timer is due; -1: there is no
 * timer. The loop may wake up and find nothing due, because a timer was pushed back or disarmed.
 */
int libhwt_timers_wait_ms(struct libhwt_timers *timers);

/**
 * libhwt_timers_wait_ns() - return how long the loop may sleep, by the set's time
 * @timers: the set
 *
 * Return: the same as libhwt_timers_wait_ms(), in ns; LIBHWT_NEVER: there is no timer.
 */
uint64_t libhwt_timers_wait_ns(struct libhwt_timers *timers);

/**
 * libhwt_timers_fd() - get a descriptor that is readable when a timer is due
 * @timers: the set
 *
 * For a loop whose sleep libhwt_timers_wait_ms() cannot limit, such as the loop of a library. The
 * descriptor is a timerfd that the set re-arms: each earlier deadline costs a system call. Do not
 * read it, because libhwt_timers_run() clears it, and do not close it. From now on the set does not
 * learn when a turn ends, so outside of a run its time is that of the clock, and each
 * libhwt_timer_set() reads the clock.
 *
 * On the device, the descriptor is an epoll instance. With libhwt_timers_wait_ms() instead, a loop
 * calls back some ms later, because the events of the device do not wake it.
 *
 * Return: the descriptor, each time the same; or a negative errno of timerfd_create() or epoll.
 */
int libhwt_timers_fd(struct libhwt_timers *timers);

/**
 * libhwt_timers_context() - ask whether a set is on the device
 * @timers: the set
 *
 * Return: its context, for libhwt_fd(), libhwt_list(), libhwt_stats() and others; NULL: the set is
 * in the process.
 */
struct libhwt *libhwt_timers_context(const struct libhwt_timers *timers);

/**
 * libhwt_timers_error() - ask whether the device has refused a timer
 * @timers: the set
 *
 * Such a timer fires as others do, but the device does not show it.
 *
 * Return: the last error since the last call, as of libhwt_key_at(); 0: there was none.
 */
int libhwt_timers_error(struct libhwt_timers *timers);

/**
 * libhwt_timers_now() - return the set's time
 * @timers: the set
 *
 * Return: the time of the turn, ns on the set's clock.
 */
uint64_t libhwt_timers_now(struct libhwt_timers *timers);

/**
 * libhwt_timers_update() - read the clock, for example after a long computation
 * @timers: the set
 *
 * Return: the time, which is the set's time from now on.
 */
uint64_t libhwt_timers_update(struct libhwt_timers *timers);

/**
 * libhwt_timers_next() - return the next deadline
 * @timers: the set
 *
 * Return: a time, ns on the set's clock, before which no timer fires unless the clock is set back;
 * LIBHWT_NEVER: there is none. Timers that were pushed back or disarmed may make it too early. On
 * the device, an event may come some ticks before it.
 */
uint64_t libhwt_timers_next(struct libhwt_timers *timers);

/**
 * libhwt_timers_count() - count the timers of a set
 * @timers: the set
 *
 * Return: the number of timers that the set refers to, including those that are disarmed and have
 * not been let go.
 */
size_t libhwt_timers_count(const struct libhwt_timers *timers);

/**
 * libhwt_timers_for_each() - call a function for all pending timers, in no order
 * @timers: the set
 * @fn:     the function, which may stop the timer that it is called for, and no other
 * @arg:    passed to @fn
 */
void libhwt_timers_for_each(struct libhwt_timers *timers,
			    void (*fn)(struct libhwt_timer *timer, void *arg), void *arg);

/**
 * libhwt_timers_stop_all() - stop all timers
 * @timers: the set
 */
void libhwt_timers_stop_all(struct libhwt_timers *timers);

/**
 * libhwt_timers_move_all() - move all timers to another set
 * @from: the set that has them
 * @to:   the other set, on the same clock. No callback of either set is executing
 *
 * To hand a loop's timers over to another thread, which must wait meanwhile. Their deadlines, and
 * their order among themselves, stay.
 */
void libhwt_timers_move_all(struct libhwt_timers *from, struct libhwt_timers *to);

/**
 * libhwt_timers_adopt() - use a set in the calling thread from now on
 * @timers: the set
 */
void libhwt_timers_adopt(struct libhwt_timers *timers);

/* -- Timers -------------------------------------------------------------- */

/* The parts of the functions below that are not inline. */
void libhwt_timer_link(struct libhwt_timers *timers, struct libhwt_timer *timer,
		       uint64_t deadline_ns);
void libhwt_timer_set_slow(struct libhwt_timers *timers, struct libhwt_timer *timer,
			   uint64_t delay_ns);

/**
 * libhwt_timer_init() - initialise a timer
 * @timer: the timer; its memory may have any content
 * @fn:    the callback. It is called with the timer: LIBHWT_CONTAINER() gives the object.
 */
static inline void libhwt_timer_init(struct libhwt_timer *timer,
				     void (*fn)(struct libhwt_timer *timer))
{
	timer->linked = LIBHWT_NEVER;
	timer->link.next = NULL;
	timer->link.prev = NULL;
	timer->deadline = LIBHWT_NEVER;
	timer->order = 0;
	timer->fn = fn;
}

/**
 * LIBHWT_CONTAINER() - return the object that a timer is in
 * @timer:  the timer
 * @type:   the type of the object
 * @member: the member of the object that is the timer
 */
#define LIBHWT_CONTAINER(timer, type, member) \
	((type *)(void *)((char *)(timer) - offsetof(type, member)))

/**
 * libhwt_timer_set_at() - arm a timer for a deadline, or move it there
 * @timers:      the set; if the timer is pending, the one that it is pending in
 * @timer:       the timer
 * @deadline_ns: the deadline, ns on the set's clock. If it has passed, the timer fires in the next
 *               run.
 *
 * Only stores the deadline if the timer is in the set's buckets for no later time: the set looks at
 * the new deadline when that time comes.
 */
static inline void libhwt_timer_set_at(struct libhwt_timers *timers, struct libhwt_timer *timer,
				       uint64_t deadline_ns)
{
	if (deadline_ns < timer->linked) {
		libhwt_timer_link(timers, timer, deadline_ns);
		return;
	}
	timer->deadline = deadline_ns;
	timer->order = timers->order;
	timers->order += LIBHWT_ORDER;
}

/**
 * libhwt_timer_set() - arm a timer to fire after a delay, or move it there
 * @timers:   the set; if the timer is pending, the one that it is pending in
 * @timer:    the timer
 * @delay_ns: the delay from the set's time
 *
 * Costs the same as libhwt_timer_set_at().
 */
static inline void libhwt_timer_set(struct libhwt_timers *timers, struct libhwt_timer *timer,
				    uint64_t delay_ns)
{
	uint64_t deadline = timers->now + delay_ns;

	/* The upper bit tells a set without a time, and an overflow. */
	if (deadline < timer->linked || (deadline | delay_ns) >> 63) {
		libhwt_timer_set_slow(timers, timer, delay_ns);
		return;
	}
	timer->deadline = deadline;
	timer->order = timers->order;
	timers->order += LIBHWT_ORDER;
}

/**
 * libhwt_timer_set_slack() - arm a timer to fire within a span of time
 * @timers:   the set; if the timer is pending, the one that it is pending in
 * @timer:    the timer
 * @delay_ns: the delay from the set's time
 * @slack_ns: how much later it may fire. Timers with slack share wake-ups of the loop.
 */
void libhwt_timer_set_slack(struct libhwt_timers *timers, struct libhwt_timer *timer,
			    uint64_t delay_ns, uint64_t slack_ns);

/**
 * libhwt_timer_every() - fire again and again
 * @timers:    the set; if the timer is pending, the one that it is pending in
 * @periodic:  the timer
 * @first_ns:  the first deadline, ns on the set's clock
 * @period_ns: the period; 0 counts as 1. With a period shorter than the turns of the loop, the
 *             callback is called once a turn.
 *
 * The deadlines are @first_ns and multiples of @period_ns after it. Deadlines that have passed when
 * the callback is called are skipped, and counted in @overruns of the timer. The timer is pending
 * during its callback: libhwt_timer_stop() there ends it, and libhwt_timer_set() makes it one that
 * fires once more.
 */
void libhwt_timer_every(struct libhwt_timers *timers, struct libhwt_periodic *periodic,
			uint64_t first_ns, uint64_t period_ns);

/**
 * libhwt_timer_watch() - arm a timer whose deadline is a word that any thread may store
 * @timers: the set; if the timer is pending, the one that it is pending in
 * @timer:  the timer
 * @word:   the deadline, ns on the set's clock, in memory that stays until the callback, or until
 *          libhwt_timer_stop(). Any thread, process or BPF program that has the memory may store a
 *          later one, by one aligned store of 64 bits (an atomic one, on a machine of 32 bits): no
 *          call, no lock.
 *
 * The set reads the word now, and when the deadline that it read last has come: then it either
 * calls back, or waits for the later deadline. A deadline that is lowered is not seen before that.
 * If the word is LIBHWT_NEVER then, the timer is no longer pending.
 */
void libhwt_timer_watch(struct libhwt_timers *timers, struct libhwt_timer *timer,
			const uint64_t *word);

/**
 * libhwt_timer_disarm() - keep a timer from firing
 * @timer: the timer, pending or not
 *
 * One store. The set still refers to the timer: call libhwt_timer_stop() before its memory is
 * freed. Setting it again is cheap.
 */
static inline void libhwt_timer_disarm(struct libhwt_timer *timer)
{
	timer->deadline = LIBHWT_NEVER;
}

/**
 * libhwt_timer_stop() - keep a timer from firing, and take it out of its set
 * @timers: the set
 * @timer:  the timer, pending or not
 *
 * On return, the set does not refer to the timer: its memory may be freed, and it may be used in
 * another set.
 */
void libhwt_timer_stop(struct libhwt_timers *timers, struct libhwt_timer *timer);

/* Read the word of a watched timer. */
static inline uint64_t libhwt_word_read(const uint64_t *word)
{
	const volatile uint64_t *at = word;
	uint64_t value = *at;
#if UINTPTR_MAX < UINT64_MAX
	uint64_t first;

	/* It is read in two halves, which belong together if two reads agree: it only rises. */
	do {
		first = value;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		value = *at;
	} while (value != first);
#endif
	return value;
}

/**
 * libhwt_timer_deadline() - return the deadline of a timer
 * @timer: the timer
 *
 * Return: the deadline, ns on the set's clock; LIBHWT_NEVER if the timer is not pending.
 */
static inline uint64_t libhwt_timer_deadline(const struct libhwt_timer *timer)
{
	if (timer->linked == LIBHWT_NEVER || timer->deadline == LIBHWT_NEVER)
		return LIBHWT_NEVER;
	if (timer->order & LIBHWT_WATCHED)
		return libhwt_word_read((const uint64_t *)(uintptr_t)timer->deadline);
	return timer->deadline;
}

/**
 * libhwt_timer_pending() - ask whether a timer will fire
 * @timer: the timer
 *
 * Return: 1 if it is set, and was neither disarmed nor stopped, and has not fired since; else 0.
 */
static inline int libhwt_timer_pending(const struct libhwt_timer *timer)
{
	return timer->linked != LIBHWT_NEVER && timer->deadline != LIBHWT_NEVER;
}

/**
 * libhwt_timer_remaining() - return the time until a timer is due
 * @timers: the set
 * @timer:  the timer
 *
 * Return: ns from the set's time; 0: it is due; LIBHWT_NEVER: it is not pending.
 */
uint64_t libhwt_timer_remaining(struct libhwt_timers *timers, const struct libhwt_timer *timer);

#ifdef __cplusplus
}
#endif

#endif /* LIBHWT_TIMERS_H */
