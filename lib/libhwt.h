/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libhwt - many coarse timeouts, by /dev/hwt
 *
 * A context (struct libhwt) is any number of timeouts on one file descriptor:
 *
 *	struct libhwt *hwt;
 *	struct hwt_event event;
 *	uint64_t id;
 *
 *	if (libhwt_open(&hwt, NULL) < 0)
 *		return;
 *	libhwt_after(hwt, 1000000000, 42, &id);
 *	if (libhwt_next(hwt, &event, 1, HWT_NEVER) == 1)
 *		printf("a second has passed for %llu\n", event.user_data);
 *	libhwt_close(hwt);
 *
 * Each call above is a system call. A queue (struct libhwt_queue) carries out many operations
 * by one, which also brings the events into shared memory.
 *
 * Names
 *	All functions and types here begin with libhwt_, all macros with LIBHWT_. Structures
 *	and constants of the device itself are used as hwt_uapi.h has them (struct hwt_...,
 *	HWT_...), and are described there. Functions that begin with hwt_ only are those
 *	of the kernel (hwt.h, section 9 of the manual): none of them is here.
 *
 * Returned values
 *	Those that return int return 0 or more, or a negative errno; errno itself means nothing.
 *	After an error nothing has changed, where nothing else is said. Besides those listed
 *	with a function there are the errors that hwt_uapi.h lists with the ioctl of that name.
 *	-EFAULT is not promised: who passes a bad pointer may get SIGSEGV.
 *
 * Structures with a size
 *	They may grow in later versions. Who passes one sets its size to sizeof, and all that
 *	is not used to 0: "struct hwt_get_args get = { .size = sizeof(get) };". It need not be
 *	done again before the next call.
 *
 * Times
 *	Nanoseconds. A delay counts from the call, a deadline is on the clock of the context's
 *	wheel, CLOCK_MONOTONIC if it has no wheel of its own. Nothing fires early, and what
 *	is on time fires within a tick (usually 1 ms).
 *
 * Ids and keys
 *	The kernel gives each timeout an id. In a context with keys (HWT_SETUP_KEYS) the
 *	program names its timeouts itself, by 64-bit numbers such as the addresses of its
 *	objects: libhwt_key_after() and libhwt_key_at() schedule or move the timeout of a key,
 *	and functions that take an id take the key. There, libhwt_after(), libhwt_at(),
 *	libhwt_every(), libhwt_debounce() and libhwt_retry() are not for use; without keys, those
 *	with "key" in their name are not.
 *
 * Threads
 *	Any number of threads may use a context and its queue at the same time, without locks
 *	of their own. Exceptions: libhwt_close() and libhwt_queue_new() want the context
 *	for themselves. Each event, and each result of a queue, is given to one of those who
 *	ask. There are no globals; no function may be called from a signal handler.
 *
 * Processes
 *	After fork() parent and child have the same context. The queue stays the parent's: in
 *	the child libhwt_next() and the functions of the queue return -ECHILD.
 *	libhwt_close() in one of them does not concern the other.
 */
#ifndef LIBHWT_H
#define LIBHWT_H

#include <stddef.h>
#include <stdint.h>

#include "hwt_uapi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Contexts ------------------------------------------------------------ */

struct libhwt;

/**
 * struct libhwt_options - the set-up of a context
 * @size:            sizeof(struct libhwt_options)
 * @device:          path of the device; NULL: /dev/hwt
 * @flags:           HWT_SETUP_ bits: the clock, HWT_SETUP_KEYS, and others
 * @priority:        HWT_PRIO_, of the thread of a private wheel
 * @tick_ns:         its tick
 * @max_pending:     most timeouts pending at once
 * @ticks_per_wheel: buckets of its level 0
 * @levels:          its levels
 * @cpu:             the CPU of its thread, with HWT_SETUP_CPU
 *
 * All but the first two are as in struct hwt_setup_args. If they are 0 the context is on the wheel
 * that the contexts of the user share, on CLOCK_MONOTONIC, with ids.
 */
struct libhwt_options {
	size_t		size;
	const char	*device;
	unsigned int	flags;
	unsigned int	priority;
	uint64_t	tick_ns;
	uint64_t	max_pending;
	unsigned int	ticks_per_wheel;
	unsigned int	levels;
	unsigned int	cpu;
};

/**
 * libhwt_open() - make a context
 * @context: where to store it
 * @options: how it is to be; NULL: as all 0
 *
 * The descriptor is closed by exec, and does not block (which nobody sees who calls
 * libhwt_next()).
 *
 * Return: 0 or
 *	-ENOENT, -EACCES, ...	the device could not be opened
 *	-ENOTTY		it is no /dev/hwt
 *	-E2BIG		@options has something that this version does not know
 *	-EINVAL		the size is too small
 *	-ENOMEM		no memory
 *	or as HWT_IOC_SETUP fails
 */
int libhwt_open(struct libhwt **context, const struct libhwt_options *options);

/**
 * libhwt_adopt() - make a context of a descriptor that is there
 * @context: where to store it
 * @fd:      a descriptor of /dev/hwt, such as was inherited or received, for reading and
 *           writing. It belongs to the context from now on, and is closed by exec. It is made
 *           not to block; so are its duplicates.
 *
 * Return: 0 or -EBADF (also: not for both), -ENOTTY (it is none of /dev/hwt), -ENOMEM. After an
 * error @fd is the caller's, as before.
 */
int libhwt_adopt(struct libhwt **context, int fd);

/**
 * libhwt_close() - end a context
 * @context: the context, or NULL
 *
 * It and its queue are no more, and no other thread may be using them. When no process has
 * the descriptor any more all timeouts are cancelled.
 */
void libhwt_close(struct libhwt *context);

/**
 * libhwt_fd() - the descriptor, for an event loop of one's own
 * @context: the context
 *
 * When it is readable, call libhwt_next() with timeout 0 until it returns less than it was
 * given room for. Do not read() it, close it or let it block.
 *
 * Return: the descriptor.
 */
int libhwt_fd(const struct libhwt *context);

/**
 * libhwt_now() - what time is it on the clock of the context's wheel?
 * @context: the context
 *
 * Return: the time; usually without a system call.
 */
uint64_t libhwt_now(const struct libhwt *context);

/**
 * libhwt_info() - what is the context on? (HWT_IOC_INFO)
 * @context: the context
 * @info:    filled in; set its size, and the rest to 0
 *
 * Return: 0 or a negative errno.
 */
int libhwt_info(struct libhwt *context, struct hwt_info_args *info);

/**
 * libhwt_stats() - what has the context done? (HWT_IOC_STATS)
 * @context: the context
 * @stats:   filled in; set its size, and the rest to 0
 *
 * Return: 0 or a negative errno.
 */
int libhwt_stats(struct libhwt *context, struct hwt_stats_args *stats);

/* -- Timeouts ------------------------------------------------------------ */

/**
 * libhwt_after() - a timeout, some time from now
 * @context:   the context
 * @delay_ns:  when
 * @user_data: comes back with its event
 * @id:        where to store its id, or NULL
 *
 * Return: 0 or
 *	-ENOSPC		a limit is met; libhwt_stats() says which (HWT_LIMIT_)
 *	-ENOMEM		no memory
 *	-ESHUTDOWN	the context was stopped
 */
int libhwt_after(struct libhwt *context, uint64_t delay_ns, uint64_t user_data, uint64_t *id);

/**
 * libhwt_at() - a timeout, at a given time
 * @context:     the context
 * @deadline_ns: when, on the clock of libhwt_now()
 * @user_data:   comes back with its event
 * @id:          where to store its id, or NULL
 *
 * Return: as libhwt_after().
 */
int libhwt_at(struct libhwt *context, uint64_t deadline_ns, uint64_t user_data, uint64_t *id);

/**
 * libhwt_every() - a timeout that fires again and again
 * @context:   the context
 * @period_ns: the first time after one period, then at a fixed rate
 * @user_data: comes back with its events
 * @id:        where to store its id, or NULL
 *
 * Return: as libhwt_after(), or -EINVAL (the period is 0).
 */
int libhwt_every(struct libhwt *context, uint64_t period_ns, uint64_t user_data, uint64_t *id);

/**
 * libhwt_schedule() - a timeout of any kind (HWT_IOC_SCHEDULE)
 * @context: the context
 * @args:    what is wanted; its size must be set. Its id is filled in; with keys, its id is the
 *           key, and the previous state is filled in.
 *
 * Return: as libhwt_after(), or -EINVAL.
 */
int libhwt_schedule(struct libhwt *context, struct hwt_schedule_args *args);

/**
 * libhwt_key_after() - schedule or move the timeout of a key, some time from now
 * @context:  the context, which has keys
 * @key:      the timeout; comes back as the id and user_data of its event
 * @delay_ns: when
 *
 * An event that was not read is withdrawn. One that is in the ring of a queue is not, see
 * libhwt_queue_forget().
 *
 * Return: 0 if the timeout is new, the HWT_STATE_ bits of before if it was moved; or a negative
 * errno as libhwt_after().
 */
int libhwt_key_after(struct libhwt *context, uint64_t key, uint64_t delay_ns);

/**
 * libhwt_key_at() - schedule or move the timeout of a key, to a given time
 * @context:     the context, which has keys
 * @key:         the timeout
 * @deadline_ns: when, on the clock of libhwt_now()
 *
 * Return: as libhwt_key_after().
 */
int libhwt_key_at(struct libhwt *context, uint64_t key, uint64_t deadline_ns);

/**
 * libhwt_modify() - move a timeout
 * @context:  the context
 * @id:       the timeout, its id or key
 * @delay_ns: when it is to fire, from now
 *
 * All else about it stays, its period too; its slack is none. An event that was not read is
 * withdrawn.
 *
 * Return: the HWT_STATE_ bits of before (HWT_STATE_EVENT: an event was withdrawn), or
 *	-ENOENT		there is no such timeout (any more): its last event was read, or is
 *			in the ring of a queue
 *	-ENOSPC		it was not pending, and max_pending others are
 *	-ESHUTDOWN	the context was stopped
 */
int libhwt_modify(struct libhwt *context, uint64_t id, uint64_t delay_ns);

/**
 * libhwt_modify_at() - move a timeout to a given time
 * @context:     the context
 * @id:          the timeout, its id or key
 * @deadline_ns: when it is to fire, on the clock of libhwt_now()
 *
 * Return: as libhwt_modify().
 */
int libhwt_modify_at(struct libhwt *context, uint64_t id, uint64_t deadline_ns);

/**
 * libhwt_reschedule() - change more of a timeout (HWT_IOC_MODIFY)
 * @context: the context
 * @args:    what is wanted; its size must be set
 *
 * Return: as libhwt_modify(), or -EINVAL.
 */
int libhwt_reschedule(struct libhwt *context, struct hwt_modify_args *args);

/**
 * libhwt_cancel() - end a timeout
 * @context: the context
 * @id:      the timeout, its id or key
 *
 * It will not fire, an event that was not read is withdrawn, the id is no more.
 *
 * Return: the HWT_STATE_ bits of before, or -ENOENT as of libhwt_modify().
 */
int libhwt_cancel(struct libhwt *context, uint64_t id);

/**
 * libhwt_cancel_all() - end all timeouts of the context (HWT_CANCEL_ALL)
 * @context: the context
 *
 * As libhwt_cancel() of each timeout that was there before the call; the context goes on. Events
 * in the ring of a queue stay.
 *
 * Return: the number of timeouts ended, or a negative errno.
 */
int libhwt_cancel_all(struct libhwt *context);

/**
 * libhwt_get() - ask about a timeout (HWT_IOC_GET)
 * @context: the context
 * @id:      the timeout, its id or key
 * @get:     filled in; its size must be set
 *
 * Return: 0 or -ENOENT, or -EINVAL (its size).
 */
int libhwt_get(struct libhwt *context, uint64_t id, struct hwt_get_args *get);

/**
 * libhwt_stop() - end all timeouts of the context, for good (HWT_IOC_STOP)
 * @context: the context
 * @stopped: where to store how many were pending, or NULL
 *
 * There is an event for each of them; after these libhwt_next() returns -ESHUTDOWN.
 *
 * Return: 0 or a negative errno.
 */
int libhwt_stop(struct libhwt *context, uint64_t *stopped);

/* -- Recipes ------------------------------------------------------------- */

/*
 * Timeouts for events that come in series, and for requests that fail. Each call is carried out at
 * once, beside the queue if there is one. The program serializes calls with the same structure. An
 * event that is in the ring of a queue counts as read.
 */

/**
 * struct libhwt_debounce - fire after a quiet time, but within a maximum delay
 * @quiet_ns: quiet time before the timeout fires
 * @most_ns:  maximum delay from the first event of a series; HWT_NEVER: there is none
 * @first_ns: time of that event, on the clock of libhwt_now(); filled in
 */
struct libhwt_debounce {
	uint64_t	quiet_ns;
	uint64_t	most_ns;
	uint64_t	first_ns;
};

/**
 * libhwt_debounce() - handle an event: fire once no event has come for a while
 * @context:   the context
 * @debounce:  the quiet time and the maximum delay
 * @user_data: comes back with the event of the timeout
 * @id:        the timeout: 0 before the first call, stored by each call that makes one
 *
 * A series ends when the program reads the event of the timeout or cancels the timeout. Until then
 * each call moves the timeout, which withdraws an event that was not read, but not beyond the
 * maximum delay: once that is over, a call leaves the timeout and its event alone.
 *
 * Return: 0: a series begins; the HWT_STATE_ bits of before: it goes on; or a negative errno as
 * libhwt_after().
 */
int libhwt_debounce(struct libhwt *context, struct libhwt_debounce *debounce, uint64_t user_data,
		    uint64_t *id);

/**
 * libhwt_key_debounce() - libhwt_debounce() of the timeout of a key
 * @context:  the context, which has keys
 * @key:      the timeout
 * @debounce: the quiet time and the maximum delay
 *
 * Return: as libhwt_debounce().
 */
int libhwt_key_debounce(struct libhwt *context, uint64_t key, struct libhwt_debounce *debounce);

/**
 * struct libhwt_backoff - delays between retries, each longer than the one before
 * @first_ns:   the first delay
 * @most_ns:    the longest; each is twice the one before it, up to this. The same as @first_ns:
 *              all are of one length
 * @jitter_pct: each delay is shortened, at random, by up to so many percent, so that programs that
 *              failed together do not try again together; 0 to 100
 * @limit:      tries, 0: no limit
 * @tries:      how many there were; 0 to begin anew
 */
struct libhwt_backoff {
	uint64_t	first_ns;
	uint64_t	most_ns;
	uint32_t	jitter_pct;
	uint32_t	limit;
	uint32_t	tries;
};

/**
 * libhwt_retry() - schedule the next try after a failure
 * @context:   the context
 * @backoff:   the delays and the number of tries
 * @user_data: comes back with the event: it is time to try again
 * @id:        the timeout: 0 before the first call, stored by each call that makes one
 *
 * A timeout that is pending, or has an event that was not read, is moved.
 *
 * Return: 0: a new timeout; the HWT_STATE_ bits of before if it was moved; -ETIME after
 * &libhwt_backoff.limit tries, with nothing scheduled; or a negative errno as libhwt_after().
 */
int libhwt_retry(struct libhwt *context, struct libhwt_backoff *backoff, uint64_t user_data,
		 uint64_t *id);

/**
 * libhwt_key_retry() - libhwt_retry() by the timeout of a key
 * @context: the context, which has keys
 * @key:     the timeout
 * @backoff: the delays and the number of tries
 *
 * Return: as libhwt_retry().
 */
int libhwt_key_retry(struct libhwt *context, uint64_t key, struct libhwt_backoff *backoff);

/* -- All timeouts of a context ------------------------------------------- */

/**
 * libhwt_list() - tell of all timeouts, some at a time (HWT_IOC_LIST)
 * @context: the context
 * @cursor:  where to begin: 0, or what the call before has left here
 * @entries: filled in
 * @max:     how many fit in there, not 0
 *
 * Return: how many there are in @entries, 0 if there are no more, or
 *	-EINVAL		@max is 0
 *	-ENOMEM		no memory
 */
int libhwt_list(struct libhwt *context, uint64_t *cursor, struct hwt_list_entry *entries,
		unsigned int max);

/**
 * libhwt_save() - a list of all timeouts
 * @context: the context
 * @entries: where to store the list's address; free() it
 * @count:   where to store how many there are
 *
 * Signals do not stop it.
 *
 * Return: 0 or -ENOMEM.
 */
int libhwt_save(struct libhwt *context, struct hwt_list_entry **entries, size_t *count);

/**
 * libhwt_restore() - make timeouts that were saved
 * @context: the context, the same or another one, on the same kind of clock
 * @entries: what libhwt_save() gave, perhaps before a restart of the program or the machine
 * @count:   how many there are
 * @ids:     where to store @count ids, in the order of @entries, or NULL
 *
 * On CLOCK_REALTIME they are due when they were before. On other clocks they have as much
 * time left as they had when they were saved. One-shots that had an event fire at once.
 * Slack is not saved, nor are unread events and overruns of periodic ones. In a context with keys
 * they have the keys that were their ids, and those that are there are moved.
 *
 * Return: 0 or as libhwt_after(); if one of them cannot be made, none is.
 */
int libhwt_restore(struct libhwt *context, const struct hwt_list_entry *entries, size_t count,
		   uint64_t *ids);

/* -- Events -------------------------------------------------------------- */

/**
 * libhwt_next() - wait for the next events
 * @context:    the context
 * @events:     filled in, in the order in which they came up
 * @max:        how many fit in there, not 0
 * @timeout_ns: how long to wait for the first one; 0: do not wait, HWT_NEVER: for as long as
 *              it takes
 *
 * If the context has a queue they are taken from its ring. A system call brings events there if
 * the ring has too few; it also carries out what was added to the queue.
 *
 * Return: how many there are in @events; 0 if none came in time; or
 *	-EINTR		a signal was caught before one came
 *	-ESHUTDOWN	the context was stopped, and all have been read
 *	-EBUSY		another program has rings of the context
 *	-ECHILD		the queue is the parent's
 *	-EINVAL		@max is 0
 */
int libhwt_next(struct libhwt *context, struct hwt_event *events, unsigned int max,
		uint64_t timeout_ns);

/* -- Queues -------------------------------------------------------------- */

/*
 * A queue: operations are added to it, carried out together when it is submitted, and
 * have their results taken out, in the order in which they were added. Operations and events
 * are in two rings of memory shared with the kernel (HWT_IOC_RINGS): submitting is one system
 * call, which copies no operations and brings events into the ring. There can be one for a
 * context; it goes when the context is closed. Calls without a queue work beside it.
 *
 * Events come into the ring only while a thread is in the system call of libhwt_queue_submit(),
 * libhwt_queue_next(), libhwt_queue_peek() or libhwt_next(), after the operations that were added.
 * Until then a modify or cancel withdraws them.
 *
 * An event that has reached the ring is as good as read: the id of a one-shot has ended then,
 * and libhwt_modify() and libhwt_cancel() say -ENOENT though libhwt_next() is still to give that
 * event. So compare its id with that which you keep, before you believe its user_data, or let
 * user_data be something that does not go away, like an index. With keys, an event in the ring is
 * stale if the program has moved or ended its timeout since: libhwt_queue_forget() drops it.
 */
struct libhwt_queue;

/**
 * struct libhwt_queue_options - the sizes of a queue
 * @size:   sizeof(struct libhwt_queue_options)
 * @flags:  0
 * @ops:    most operations that are added and have not had their result taken; rounded up to a
 *          power of two, at most HWT_RING_ENTRIES_MAX. 0: 256
 * @events: likewise, events that fit in the ring; more wait outside. 0: 1024
 */
struct libhwt_queue_options {
	size_t		size;
	unsigned int	flags;
	unsigned int	ops;
	unsigned int	events;
};

/**
 * libhwt_queue_new() - make the queue of a context
 * @queue:   where to store it
 * @context: the context, which nobody else may be using meanwhile
 * @options: how it is to be; NULL: as all 0
 *
 * After an error the context is as before, and a call with the same sizes may succeed.
 *
 * Return: 0 or
 *	-EBUSY		the context has a queue, or it was stopped; another program has rings of
 *			it, or a call that failed had other sizes
 *	-EINVAL		an option is out of range
 *	-E2BIG		@options has something that this version does not know
 *	-ENOMEM		no memory
 */
int libhwt_queue_new(struct libhwt_queue **queue, struct libhwt *context,
		     const struct libhwt_queue_options *options);

/**
 * libhwt_queue_add() - add operations
 * @queue: the queue
 * @ops:   the operations; they are copied
 * @count: how many
 *
 * Return: how many have been added, the first ones of @ops; -EAGAIN if none, for there is no
 * room: submit them, and take results; or -ECHILD.
 */
int libhwt_queue_add(struct libhwt_queue *queue, const struct hwt_op *ops, unsigned int count);

/**
 * libhwt_queue_after() - add a libhwt_after()
 * @queue:     the queue
 * @delay_ns:  when; counts from when it is carried out
 * @user_data: comes back with the result, and with the event
 *
 * Return: 0 or -EAGAIN, -ECHILD as libhwt_queue_add(). The id is in the result.
 */
int libhwt_queue_after(struct libhwt_queue *queue, uint64_t delay_ns, uint64_t user_data);

/**
 * libhwt_queue_at() - add a libhwt_at()
 * @queue:       the queue
 * @deadline_ns: when
 * @user_data:   comes back with the result, and with the event
 *
 * Return: as libhwt_queue_after().
 */
int libhwt_queue_at(struct libhwt_queue *queue, uint64_t deadline_ns, uint64_t user_data);

/**
 * libhwt_queue_key_after() - add a libhwt_key_after()
 * @queue:    the queue, of a context with keys
 * @key:      the timeout
 * @delay_ns: when; counts from when it is carried out
 *
 * Return: as libhwt_queue_after().
 */
int libhwt_queue_key_after(struct libhwt_queue *queue, uint64_t key, uint64_t delay_ns);

/**
 * libhwt_queue_key_at() - add a libhwt_key_at()
 * @queue:       the queue, of a context with keys
 * @key:         the timeout
 * @deadline_ns: when
 *
 * Return: as libhwt_queue_after().
 */
int libhwt_queue_key_at(struct libhwt_queue *queue, uint64_t key, uint64_t deadline_ns);

/**
 * libhwt_queue_modify() - add a libhwt_modify()
 * @queue:    the queue
 * @id:       the timeout, its id or key
 * @delay_ns: when it is to fire; counts from when it is carried out
 *
 * Return: as libhwt_queue_after().
 */
int libhwt_queue_modify(struct libhwt_queue *queue, uint64_t id, uint64_t delay_ns);

/**
 * libhwt_queue_modify_at() - add a libhwt_modify_at()
 * @queue:       the queue
 * @id:          the timeout, its id or key
 * @deadline_ns: when it is to fire
 *
 * Return: as libhwt_queue_after().
 */
int libhwt_queue_modify_at(struct libhwt_queue *queue, uint64_t id, uint64_t deadline_ns);

/**
 * libhwt_queue_cancel() - add a libhwt_cancel()
 * @queue: the queue
 * @id:    the timeout, its id or key
 *
 * Return: as libhwt_queue_after().
 */
int libhwt_queue_cancel(struct libhwt_queue *queue, uint64_t id);

/**
 * libhwt_queue_submit() - carry out what was added
 * @queue: the queue
 *
 * What was added before this call has been carried out after it, by this thread or another,
 * and its results can be taken. Signals do not stop it.
 *
 * Return: 0; or a negative errno (-ENOMEM, -ECHILD): what was not carried out is still there.
 */
int libhwt_queue_submit(struct libhwt_queue *queue);

/**
 * libhwt_queue_results() - take results
 * @queue: the queue
 * @ops:   filled in with operations that have been carried out, in the order in which they
 *         were added; NULL: forget them
 * @max:   how many fit in there
 *
 * Return: how many, or -ECHILD. There is no system call in it.
 */
int libhwt_queue_results(struct libhwt_queue *queue, struct hwt_op *ops, unsigned int max);

/**
 * libhwt_queue_next() - libhwt_next() and libhwt_queue_submit(), by one system call if it can be
 * @queue:      the queue
 * @events:     as of libhwt_next()
 * @max:        likewise
 * @timeout_ns: likewise
 *
 * Return: as libhwt_next(), or as libhwt_queue_submit() if that fails.
 */
int libhwt_queue_next(struct libhwt_queue *queue, struct hwt_event *events, unsigned int max,
		      uint64_t timeout_ns);

/*
 * The rings themselves, for a program that does not want operations and events to be copied. These
 * four are for one thread at a time: while a thread uses them no other one may use the queue, or
 * call libhwt_next().
 */

/**
 * libhwt_queue_get() - add an operation in its place in the ring
 * @queue: the queue
 *
 * The program fills the operation in, and may change it until the next libhwt_next() or function
 * of the queue that adds, submits, or takes events. That call makes it as good as added by
 * libhwt_queue_add(). The result is taken by libhwt_queue_results().
 *
 * Return: the operation, all zeroes; or NULL: there is no room, or the queue is the parent's.
 */
struct hwt_op *libhwt_queue_get(struct libhwt_queue *queue);

/**
 * libhwt_queue_peek() - look at the next events in the ring
 * @queue:  the queue
 * @events: where to store their address
 *
 * The events stay in the ring until libhwt_queue_seen(). The first one was not forgotten; others
 * that were have the kind 0, and are to be skipped. If the ring is empty, and events wait
 * outside, a system call lets them in, and carries out what was added.
 *
 * Return: the number of events that lie side by side there; 0 if there are none; or -ESHUTDOWN,
 * -ECHILD as libhwt_next().
 */
int libhwt_queue_peek(struct libhwt_queue *queue, const struct hwt_event **events);

/**
 * libhwt_queue_seen() - give back events
 * @queue: the queue
 * @count: how many, the first ones that libhwt_queue_peek() has told of
 */
void libhwt_queue_seen(struct libhwt_queue *queue, unsigned int count);

/**
 * libhwt_queue_forget() - drop the unread events of a key from the ring
 * @queue: the queue, of a context with keys
 * @key:   the timeout, which the program has moved or ended, or will do so by an operation
 *
 * Dropped events have the kind 0; libhwt_next() and libhwt_queue_next() do not give them.
 *
 * Return: how many there were, or -ECHILD.
 */
int libhwt_queue_forget(struct libhwt_queue *queue, uint64_t key);

#ifdef __cplusplus
}
#endif

#endif /* LIBHWT_H */
