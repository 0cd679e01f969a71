/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libhwt - many coarse timeouts, by /dev/hwt; libhwt_timers.h has timers in the process
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
 * Each of these calls is a system call. A queue (struct libhwt_queue) carries out many operations
 * with one system call, which also brings the events into shared memory.
 *
 * Names
 *	All functions and types here begin with libhwt_, all macros with LIBHWT_. Structures
 *	and constants of the device itself are used as hwt_uapi.h has them (struct hwt_...,
 *	HWT_...), and are described there and in hwt(4). Functions whose names begin with hwt_ are
 *	for kernel code only (hwt.h, section 9 of the manual).
 *
 * Returned values
 *	Functions that return int return 0 or more, or a negative errno; errno itself is undefined.
 *	After an error nothing has changed, unless stated otherwise. Functions also return the
 *	errors that hwt_uapi.h and hwt(4) list with the ioctl of that name. A bad pointer may cause
 *	SIGSEGV instead of -EFAULT.
 *
 * Structures with a size
 *	Such structures may grow in later versions. The caller sets the size to sizeof, and the
 *	members that are not used to 0: "struct hwt_get_args get = { .size = sizeof(get) };". The
 *	structure can be used in further calls as it is. In C++ before C++20: "hwt_get_args get =
 *	{}; get.size = sizeof(get);".
 *
 * Times
 *	Nanoseconds. A delay counts from the call, a deadline is on the context's clock,
 *	CLOCK_MONOTONIC unless the options choose another. Timeouts never fire early, and
 *	normally at most a tick (usually 1 ms) late. On CLOCK_REALTIME the end of a delay or
 *	period is a date: it comes early when the clock is set forward, and late when it is set
 *	back. Use CLOCK_MONOTONIC or CLOCK_BOOTTIME for delays.
 *
 * Ids and keys
 *	The kernel gives each timeout an id. In a context with keys (HWT_SETUP_KEYS) the
 *	program names its timeouts itself, by 64-bit numbers such as the addresses of its
 *	objects: libhwt_key_after() and libhwt_key_at() schedule or move the timeout of a key,
 *	and functions that take an id take the key. Do not use libhwt_after(), libhwt_at() and
 *	libhwt_every() in a context with keys, and functions with "key" in their name in a context
 *	without.
 *
 * Threads
 *	Any number of threads may use a context and its queue at the same time, without locks of
 *	their own; but no other thread may use the context during libhwt_close() and
 *	libhwt_queue_new(). Each event, and each result of a queue, goes to one thread only. There
 *	are no globals; no function may be called from a signal handler.
 *
 * Processes
 *	After fork() parent and child share the context. A queue belongs to the parent only: in
 *	the child libhwt_next() and the functions of the queue return -ECHILD. libhwt_close() in
 *	one of the two processes does not affect the other. execve() closes the descriptor.
 */
#ifndef LIBHWT_H
#define LIBHWT_H

#include <stddef.h>
#include <stdint.h>

#include "hwt_uapi.h"
#include "libhwt_timers.h"

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
 * @priority:        HWT_PRIO_, of the thread, with HWT_SETUP_THREAD
 * @tick_ns:         length of a tick
 * @max_pending:     maximum number of timeouts pending at once
 * @ticks_per_wheel: buckets of level 0
 * @levels:          number of levels
 * @cpu:             the CPU of the thread, with HWT_SETUP_CPU
 *
 * All members but the first two mean the same as in struct hwt_setup_args. If they are 0, the
 * context has no thread, is on CLOCK_MONOTONIC, and has ids instead of keys.
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
 * libhwt_open() - create a context
 * @context: where to store the new context
 * @options: its set-up; NULL: all 0
 *
 * The descriptor is closed by exec, and is non-blocking, which makes no difference to
 * libhwt_next().
 *
 * Return: 0 or
 *	-ENOENT, -EACCES, ...	the device could not be opened
 *	-ENOTTY		it is not a device of hwt
 *	-E2BIG		@options has something that this version does not know
 *	-EINVAL		the size is too small
 *	-ENOMEM		no memory, or no further thread
 *	or an error of HWT_IOC_SETUP
 */
int libhwt_open(struct libhwt **context, const struct libhwt_options *options);

/**
 * libhwt_adopt() - create a context from an open descriptor
 * @context: where to store the new context
 * @fd:      a descriptor of /dev/hwt, inherited or received for example, open for reading and
 *           writing. It belongs to the context from now on, and is closed by exec. It becomes
 *           non-blocking, and so do its duplicates.
 *
 * Return: 0, -EBADF (also if @fd is not open for reading and writing), -ENOTTY (@fd is not a
 * descriptor of /dev/hwt), or -ENOMEM. After an error @fd still belongs to the caller.
 */
int libhwt_adopt(struct libhwt **context, int fd);

/**
 * libhwt_close() - free a context
 * @context: the context, or NULL
 *
 * Frees the queue, too. No other thread may be using either. All timeouts are cancelled once no
 * process has the descriptor any more.
 */
void libhwt_close(struct libhwt *context);

/**
 * libhwt_fd() - return the descriptor, for an event loop of the program
 * @context: the context
 *
 * When the loop reports the descriptor, call libhwt_next() with timeout 0 once, handle the events,
 * and return to the loop. The loop reports the descriptor again if events are left. Do not repeat
 * the call until no event is left: if handlers take as long as the delays that they arm, there is
 * always an event, and no other descriptor gets its turn. Edge-triggered epoll does not report
 * events that are left: if libhwt_next() has returned @max events, call it again in the next turn,
 * before which the loop polls the other descriptors without sleeping.
 *
 * Do not read() the descriptor, close it or make it blocking.
 *
 * Return: the descriptor.
 */
int libhwt_fd(const struct libhwt *context);

/**
 * libhwt_now() - return the time on the context's clock
 * @context: the context
 *
 * Return: the time; usually without a system call.
 */
uint64_t libhwt_now(const struct libhwt *context);

/**
 * libhwt_info() - describe the clock and the limits of a context (HWT_IOC_INFO)
 * @context: the context
 * @info:    filled in; set its size, and the rest to 0
 *
 * Return: 0 or -EINVAL (the size is too small).
 */
int libhwt_info(struct libhwt *context, struct hwt_info_args *info);

/**
 * libhwt_stats() - return the statistics of a context (HWT_IOC_STATS)
 * @context: the context
 * @stats:   filled in; set its size, and the rest to 0
 *
 * Return: 0 or -EINVAL (the size is too small).
 */
int libhwt_stats(struct libhwt *context, struct hwt_stats_args *stats);

/* -- Timeouts ------------------------------------------------------------ */

/**
 * libhwt_after() - schedule a timeout after a delay
 * @context:   the context
 * @delay_ns:  the delay from now
 * @user_data: comes back with its event
 * @id:        where to store its id, which is never 0, or NULL
 *
 * Return: 0 or
 *	-ENOSPC		a limit is reached; libhwt_stats() tells which (HWT_LIMIT_)
 *	-ENOMEM		no memory
 */
int libhwt_after(struct libhwt *context, uint64_t delay_ns, uint64_t user_data, uint64_t *id);

/**
 * libhwt_at() - schedule a timeout at a given time
 * @context:     the context
 * @deadline_ns: when, on the clock of libhwt_now()
 * @user_data:   comes back with its event
 * @id:          where to store its id, or NULL
 *
 * Return: as libhwt_after().
 */
int libhwt_at(struct libhwt *context, uint64_t deadline_ns, uint64_t user_data, uint64_t *id);

/**
 * libhwt_every() - schedule a periodic timeout, at a fixed rate
 * @context:   the context
 * @period_ns: the period, and the delay before the first event
 * @user_data: comes back with its events
 * @id:        where to store its id, or NULL
 *
 * Return: as libhwt_after(), or -EINVAL (the period is 0).
 */
int libhwt_every(struct libhwt *context, uint64_t period_ns, uint64_t user_data, uint64_t *id);

/**
 * libhwt_schedule() - schedule a timeout of any kind (HWT_IOC_SCHEDULE)
 * @context: the context
 * @args:    the timeout; the size must be set. The call fills in the id and the generation; with
 *           keys, the caller sets the id to the key, and the call fills in the previous state.
 *
 * Return: as libhwt_after(), or -EINVAL.
 */
int libhwt_schedule(struct libhwt *context, struct hwt_schedule_args *args);

/**
 * libhwt_key_after() - schedule the timeout of a key after a delay, or move it
 * @context:  the context, which has keys
 * @key:      the timeout; comes back as the id and user_data of its event
 * @delay_ns: the delay from now
 *
 * An unread event is withdrawn, unless it is in the ring of a queue.
 * A periodic timeout is replaced by a new one-shot.
 *
 * Return: 0 if the timeout is new; its previous HWT_STATE_ bits if it was moved; or a negative
 * errno as libhwt_after().
 */
int libhwt_key_after(struct libhwt *context, uint64_t key, uint64_t delay_ns);

/**
 * libhwt_key_at() - schedule the timeout of a key at a given time, or move it
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
 * @delay_ns: the new delay, from now
 *
 * The slack becomes 0; all else stays, also the period. An event that was not read is
 * withdrawn.
 *
 * Return: its previous HWT_STATE_ bits (HWT_STATE_EVENT: an event was withdrawn), or
 *	-ENOENT		there is no such timeout (any more): its last event was read, or is
 *			in the ring of a queue
 *	-ENOSPC		it was not pending, and max_pending other timeouts are
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
 * libhwt_reschedule() - move a timeout, and change more of it (HWT_IOC_MODIFY)
 * @context: the context
 * @args:    the changes; the size must be set. The call fills in the generation, and how much time
 *           was left.
 *
 * Return: as libhwt_modify(), or -EINVAL.
 */
int libhwt_reschedule(struct libhwt *context, struct hwt_modify_args *args);

/**
 * libhwt_cancel() - end a timeout
 * @context: the context
 * @id:      the timeout, its id or key
 *
 * The timeout will not fire, an event that was not read is withdrawn, and the id ends.
 *
 * Return: its previous HWT_STATE_ bits, or -ENOENT as libhwt_modify().
 */
int libhwt_cancel(struct libhwt *context, uint64_t id);

/**
 * libhwt_cancel_all() - end all timeouts of the context (HWT_CANCEL_ALL)
 * @context: the context
 *
 * Does what libhwt_cancel() does for each timeout that existed before the call. The context can be
 * used further. Events in the ring of a queue stay.
 *
 * Return: the number of timeouts ended, or a negative errno.
 */
int libhwt_cancel_all(struct libhwt *context);

/**
 * libhwt_get() - query a timeout (HWT_IOC_GET)
 * @context: the context
 * @id:      the timeout, its id or key
 * @get:     filled in; its size must be set
 *
 * Return: 0 or -ENOENT, or -EINVAL (its size).
 */
int libhwt_get(struct libhwt *context, uint64_t id, struct hwt_get_args *get);

/* -- All timeouts of a context ------------------------------------------- */

/**
 * libhwt_list() - list all timeouts, some at a time (HWT_IOC_LIST)
 * @context: the context
 * @cursor:  the position: 0 before the first call; each call updates it for the next one
 * @entries: filled in
 * @max:     size of @entries, not 0
 *
 * Return: the number of timeouts stored, 0 if there are no more, or
 *	-EINVAL		@max is 0
 *	-ENOMEM		no memory
 */
int libhwt_list(struct libhwt *context, uint64_t *cursor, struct hwt_list_entry *entries,
		unsigned int max);

/**
 * libhwt_save() - return a list of all timeouts
 * @context: the context
 * @entries: where to store the list's address; free() it
 * @count:   where to store the number of timeouts
 *
 * Signals do not interrupt it. The list may be written to a file: struct hwt_list_entry is the same
 * in all programs of a machine.
 *
 * Return: 0 or -ENOMEM.
 */
int libhwt_save(struct libhwt *context, struct hwt_list_entry **entries, size_t *count);

/**
 * libhwt_restore() - create timeouts that were saved
 * @context: the context, the same or another one, on the same kind of clock
 * @entries: the list of libhwt_save(), perhaps from before a restart of the program or the machine
 * @count:   number of timeouts in the list
 * @ids:     where to store @count ids, in the order of @entries, or NULL
 *
 * On CLOCK_REALTIME the timeouts keep their deadlines. On other clocks they have as much time left
 * as when they were saved. One-shots that had an event fire at once. Slack is not saved; unread
 * events and overruns of periodic timeouts are not restored. In a context with keys the keys are
 * the saved ids, and existing timeouts of these keys are moved.
 *
 * Return: 0 or an error of libhwt_after(). After an error, the timeouts that the call has created
 * are cancelled; those that it has moved stay where they are.
 */
int libhwt_restore(struct libhwt *context, const struct hwt_list_entry *entries, size_t count,
		   uint64_t *ids);

/* -- Events -------------------------------------------------------------- */

/**
 * libhwt_next() - wait for the next events
 * @context:    the context
 * @events:     filled in, in the order in which they came up
 * @max:        size of @events, not 0
 * @timeout_ns: how long to wait for the first event; 0: do not wait, HWT_NEVER: for as long as
 *              it takes
 *
 * If the context has a queue, events are taken from its ring. If it has fewer than @max, and more
 * wait in the kernel, a system call moves them to the ring. If there is no event at all, the
 * operations that were added are carried out, and a system call waits.
 *
 * Return: the number of events stored; 0 if none came in time; or
 *	-EINTR		a signal handler has run before an event came. A stop (SIGSTOP), a tracer or
 *			a suspend does not end the wait
 *	-EBUSY		another program has rings of the context
 *	-ECHILD		the queue belongs to the parent process
 *	-EINVAL		@max is 0
 */
int libhwt_next(struct libhwt *context, struct hwt_event *events, unsigned int max,
		uint64_t timeout_ns);

/* -- Queues -------------------------------------------------------------- */

/*
 * Operations are added to a queue and carried out together when the queue is submitted. Their
 * results are taken in the order in which the operations were added. Operations and events are in
 * two rings in memory shared with the kernel (HWT_IOC_RINGS): a submission is one system call,
 * which copies no operations and brings events into the ring. A context has at most one queue,
 * which libhwt_close() frees. The functions for single timeouts can be used beside the queue.
 *
 * Events come into the ring only while a thread is in the system call of libhwt_queue_submit() or
 * libhwt_next(), after the operations that were added have been carried out, and while it polls the
 * descriptor. Until an event is in the ring, a modify or cancel withdraws it. So submit before
 * polling.
 *
 * An event in the ring counts as read: the id of a one-shot has ended, and libhwt_modify() and
 * libhwt_cancel() return -ENOENT although libhwt_next() has yet to return the event. So if
 * user_data is a pointer, compare the id of the event with the one that the program keeps before
 * following it, or use an index instead, which stays valid. With keys, an event is stale if the
 * program has moved or ended its timeout since the event came into the ring: then the event has
 * another generation than the timeout (hwt_uapi.h), or the program has no such timeout.
 */
struct libhwt_queue;

/**
 * struct libhwt_queue_options - the sizes of a queue
 * @size:   sizeof(struct libhwt_queue_options)
 * @flags:  0
 * @ops:    maximum number of operations whose results were not taken yet; rounded up to a power of
 *          two, at most HWT_RING_ENTRIES_MAX. 0: 256
 * @events: likewise, of events in the ring; further events wait in the kernel. 0: 1024
 */
struct libhwt_queue_options {
	size_t		size;
	unsigned int	flags;
	unsigned int	ops;
	unsigned int	events;
};

/**
 * libhwt_queue_new() - create the queue of a context
 * @queue:   where to store the new queue
 * @context: the context, which no other thread may be using meanwhile
 * @options: the sizes of the queue; NULL: all 0
 *
 * After an error the context is as before, and a call with the same sizes may succeed.
 *
 * Return: 0 or
 *	-EBUSY		the context has a queue, another program has rings of it, or an
 *			earlier call that failed had other sizes
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
 * @count: the number of operations
 *
 * Delays count from the time at which the operation is carried out. To push back many timeouts,
 * with one system call for as many as the queue has room for (which is empty before):
 *
 *	for (i = 0; i < count; i++)
 *		ops[i] = (struct hwt_op) {
 *			.opcode = HWT_OP_MODIFY, .id = ids[i], .time_ns = delay,
 *		};
 *	for (i = 0; i < count; i += n) {
 *		n = libhwt_queue_add(queue, ops + i, count - i);
 *		if (n < 0)
 *			return n;
 *		ret = libhwt_queue_submit(queue);
 *		if (ret < 0)
 *			return ret;
 *		libhwt_queue_results(queue, ops + i, n);
 *	}
 *
 * Return: the number added, from the beginning of @ops; -EAGAIN if there is no room for any: submit
 * the queue, and take results; or -ECHILD.
 */
int libhwt_queue_add(struct libhwt_queue *queue, const struct hwt_op *ops, unsigned int count);

/**
 * libhwt_queue_submit() - carry out the operations that were added
 * @queue: the queue
 *
 * On return, all operations that were added before this call have been carried out, by this thread
 * or another, and their results can be taken. Signals do not interrupt it.
 *
 * Return: 0; or a negative errno (-ENOMEM, -ECHILD): operations not carried out stay in the queue.
 */
int libhwt_queue_submit(struct libhwt_queue *queue);

/**
 * libhwt_queue_results() - take results
 * @queue: the queue
 * @ops:   filled in with operations that have been carried out, in the order in which they
 *         were added; NULL: drop their results
 * @max:   size of @ops, or number of results to drop
 *
 * Return: the number of results taken, or -ECHILD. Makes no system call.
 */
int libhwt_queue_results(struct libhwt_queue *queue, struct hwt_op *ops, unsigned int max);

#ifdef __cplusplus
}
#endif

#endif /* LIBHWT_H */
