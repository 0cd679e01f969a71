/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * hwt - the interface of /dev/hwt for programs
 *
 * An open file of /dev/hwt is a context: any number of timeouts on one descriptor, with ids,
 * events, limits and statistics of its own. HWT_IOC_SCHEDULE creates a timeout and returns its id,
 * HWT_IOC_MODIFY moves the timeout to another time, HWT_IOC_CANCEL ends it. When a timeout expires,
 * the context has an event to read.
 *
 * There are three ways to use a context. They work on the same timeouts and may be mixed, but rings
 * replace read():
 *
 *	calls	a system call for each operation, and read() for the events
 *	rings	HWT_IOC_RINGS creates two rings in memory that the program and the kernel share.
 *		The program puts operations into the first ring and takes events from the second.
 *		One call of HWT_IOC_ENTER handles many operations and events.
 *	io_uring	HWT_URING_ARM creates a timeout whose expiry is a completion
 *
 * Opening
 *	Each open() creates a context. Programs open the device with O_RDWR. With O_WRONLY, read()
 *	fails. With O_RDONLY, the descriptor allows read(), poll(), HWT_IOC_INFO, HWT_IOC_GET,
 *	HWT_IOC_LIST and HWT_IOC_STATS only. O_NONBLOCK affects read() only.
 *
 *	EACCES	the caller has no permission: the device node is created for root only, and an
 *		administrator may give other users access to it
 *	ENOMEM	there is no memory
 *	ENOENT, ENXIO	the module is not loaded
 *
 *	A descriptor that is inherited by fork() or execve(), duplicated or sent to another process
 *	refers to the same context. Threads and processes may use a context at the same time without
 *	locks of their own: each operation takes effect at one instant, and each event is read by
 *	one of them.
 *
 *	The context ends once its last descriptor is closed, its rings are not mapped, and it has no
 *	armed command of io_uring. If the last process that uses the context dies, the context ends,
 *	too. All its timeouts are then cancelled and freed, without events. A thread that waits in
 *	read() keeps the context.
 *
 * Firing
 *	The tasks that use a context do the work of its timeouts: an interrupt comes when the next
 *	timeout is due, and only wakes the tasks that wait for the context. A timeout fires, and has
 *	its event, when a task is in read(), poll(), HWT_IOC_ENTER, HWT_IOC_STATS or HWT_IOC_LIST,
 *	or carries out an operation on that timeout: the operation finds the timeout as if it had
 *	fired on time. The commands of io_uring fire in a task that has submitted one of them. So
 *	this work takes CPU time of the program, within its cgroups and at its priority. As long as
 *	no task does any of this, no timeout fires: timeouts that are due meanwhile fire late, and a
 *	fixed delay counts from the late firing. With HWT_SETUP_THREAD, a kernel thread fires the
 *	timeouts when they are due.
 *
 * Reading events
 *	read() and readv() store events as an array of struct hwt_event, in the order in which they
 *	were queued, until no event is left or the buffer is full, and return the size of these
 *	events in bytes. A signal may end a call before all events are stored; the next call
 *	returns the rest. While there is no event, the calls wait, or fail with O_NONBLOCK (or
 *	RWF_NOWAIT of preadv2()). If a part of the buffer is invalid, the events before that part
 *	are returned.
 *
 *	EAGAIN	there is no event, and O_NONBLOCK is set
 *	EBADF	the descriptor is not open for reading
 *	EBUSY	the context has mapped rings
 *	EFAULT	not even one event could be stored; no event is lost
 *	EINTR	a signal came before the first event, with a handler without SA_RESTART
 *	EINVAL	the buffer is smaller than one event
 *
 *	An event is kept in its timeout's own memory until it is read. So events are never lost,
 *	and there is no queue to overflow. If a periodic timeout fires again before its event was
 *	read, it gets no second event: the unread event counts this firing in its overruns.
 *
 *	poll(), select() and epoll report EPOLLIN while events are waiting. An event loop with other
 *	descriptors calls read() once for each report: if events are left, they are reported again.
 *	A loop that reads until no event is left may never end, since handlers may arm timeouts that
 *	fire before the next read(). With EPOLLET, epoll reports a new event, but need not report
 *	a further overrun of an unread event, nor events that a read() has left. So after a read()
 *	that has filled its buffer, the loop polls the other descriptors without sleeping, and then
 *	reads again.
 *
 *	A cancel adds no event, and wakes no task that waits. To end a thread that waits for events,
 *	use an eventfd in the same poll(), a signal, or a timeout that fires at once.
 *
 *	There is no write() (EINVAL) and no position (ESPIPE).
 *
 * Ids
 *	The id of a timeout is valid in its context only, and is never 0. It ends when the timeout
 *	is cancelled, or when its event with the flag HWT_EVENT_LAST is read. A one-shot has only
 *	one event, with this flag. The events of a periodic timeout do not have this flag. Calls
 *	with an id that has ended fail with ENOENT. A context uses an id again only after 2^32 - 1
 *	other ids, so a late cancel does not hit another timeout.
 *
 *	A one-shot that has expired keeps its id while its event is unread. HWT_IOC_CANCEL withdraws
 *	the event and ends the id; HWT_IOC_MODIFY withdraws the event and makes the timeout pending
 *	again. Both also withdraw an unread event of a periodic timeout, with its overruns. The
 *	previous state that they return has HWT_STATE_EVENT if, and only if, an event was withdrawn.
 *
 *	So each timeout ends in exactly one way: by a cancel, by a read of an event with
 *	HWT_EVENT_LAST, by the completion of its command of io_uring, or with its context.
 *
 * Keys
 *	In a context with keys (HWT_SETUP_KEYS) the program chooses the ids: it names each timeout
 *	by a 64-bit number of its own, the key, for example the address of an object. A key takes
 *	the place of the id everywhere, and ends as an id does. HWT_IOC_SCHEDULE with the key of an
 *	existing timeout moves this timeout, so a program need not know whether the timeout exists.
 *	Events have the key in id and user_data. A context with keys has at most 2^23 timeouts.
 *
 * Generations
 *	Each call or operation that arms a timeout, for the first time or again, returns a new
 *	generation: a number from 1 to 2^32 - 1, which a context uses again only after all others.
 *	All events of the timeout have this number until it is armed anew. So an event with an
 *	earlier generation than its timeout is stale: it was read, or entered the ring, before the
 *	timeout was moved or its key used again. An event with a later generation belongs to a call
 *	in another thread that has not returned yet. Earlier means (__s32)(event.generation -
 *	generation) < 0.
 *
 * Times
 *	All times but slack_us are nanoseconds. Delays count from the call; in a ring or a command
 *	of io_uring, from the time at which the operation is carried out. Deadlines and reported
 *	times are on the context's clock (CLOCK_MONOTONIC unless HWT_IOC_SETUP chose another), as
 *	clock_gettime() returns it to the caller. A timeout fires at the first tick of the context
 *	(1 ms by default) at or after its deadline, never earlier; with a slack, at this tick or a
 *	later one until deadline + slack. A timeout whose deadline has passed when it is scheduled
 *	fires at once (with a slack: once the slack is over at the latest), but never inside the
 *	call that schedules it. A timeout whose deadline is 2^63 or more, such as HWT_NEVER, never
 *	fires, and can be cancelled.
 *
 *	A delay becomes a deadline at the call. A period of a fixed delay becomes a deadline when
 *	the timeout has fired. So setting CLOCK_REALTIME makes the delays on this clock shorter or
 *	longer (those of a relative timerfd stay the same): use another clock for delays.
 *
 *	A fixed-rate timeout is due at its first deadline and at multiples of the period after it,
 *	however late its events are read; missed periods are overruns. A fixed-delay timeout has
 *	overruns only if it fires again before its event was read.
 *
 *	In a time namespace, each call converts to and from the CLOCK_MONOTONIC or CLOCK_BOOTTIME of
 *	the calling thread's namespace, so processes in different namespaces may share a context. A
 *	namespace's clock may begin before the start of the machine: a deadline before that start
 *	counts as passed; at a fixed rate, it still determines the phase. A time before the zero of
 *	the caller's clock is reported as 0.
 *
 * Structures of arguments
 *	Each structure starts with its size, which the program sets to sizeof, and flags. Members
 *	marked "out" are written on success only, and their previous content does not matter. Flags
 *	and reserved members must be zero unless stated otherwise. The easiest way to fill in a
 *	structure:
 *
 *		struct hwt_schedule_args args = {
 *			.size = sizeof(args),
 *			.time_ns = 1000000000,
 *		};
 *
 *		if (ioctl(fd, HWT_IOC_SCHEDULE, &args) == 0)
 *			id = args.id;
 *
 * Versions
 *	The interface only grows. Programs check features in struct hwt_info_args before they use a
 *	part of it, or handle ENOTTY. The ioctl numbers do not contain the size, so they do not
 *	change when a structure grows at its end. A smaller structure, from an older header, is read
 *	as if zeroes followed; if it is smaller than in the first version, the call fails with
 *	EINVAL. A larger structure, from a newer header, is accepted if all members that the kernel
 *	does not know are zero; if not, the call fails with E2BIG. The same rules hold for the
 *	elements of arrays and rings, whose sizes are given by entry_size and op_size: an operation
 *	with an unknown member that is not zero has the result -E2BIG, and the unknown rest of a
 *	struct hwt_list_entry is filled with zeroes.
 *
 * Layout
 *	The structures are the same for 32-bit and 64-bit programs: members lie at multiples of
 *	their size, without hidden padding, in the byte order of the machine. All members but
 *	clock and result are unsigned. An address has 8 bytes; a 32-bit program extends its
 *	addresses with zeroes. On Alpha, MIPS, PowerPC and SPARC, _IO() adds 0x20000000 to the
 *	numbers of ioctls and of io_uring commands; on x86, Arm and all others it adds nothing.
 *
 * Errors of every ioctl
 *	EBADF	the descriptor is open for reading only, and the ioctl changes something
 *	ENOTTY	the ioctl is unknown
 *	EFAULT	the address is bad. If the arguments could be read and only the answer could not
 *		be stored, the operation has been carried out. But if the operation has created a
 *		timeout without a key, this timeout is cancelled.
 *	EINVAL	the size is too small, a flag is unknown, or a reserved member is not zero
 *	E2BIG	a member that this kernel does not know is not zero, or size is larger than a page
 *
 *	The description of each ioctl lists its further errors. After an error nothing has changed,
 *	unless the description says otherwise.
 */
#ifndef _HWT_UAPI_H
#define _HWT_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* -- Events -------------------------------------------------------------- */

#define HWT_NEVER		(~(__u64)0)	/* a delay or deadline that never comes */

/* Values of kind in struct hwt_event */
#define HWT_EVENT_EXPIRED	1	/* the timeout has expired */
#define HWT_EVENT_CLOCK_SET	2	/* the clock was set; see HWT_SETUP_TELL_CLOCK_SET */

/* Flags of struct hwt_event */
#define HWT_EVENT_LAST		0x1	/* the timeout's id ends when this event is read */

/**
 * struct hwt_event - an event, as read() stores it
 * @id:          the timeout's id or key; 0 if @kind is HWT_EVENT_CLOCK_SET
 * @user_data:   the user_data that the program last gave to the timeout; with keys, the key
 * @deadline_ns: the deadline of the latest firing, rounded up to a tick; with a slack, the tick
 *               that the kernel has chosen within the slack; HWT_NEVER if the deadline is 2^63 or
 *               more. If several deadlines of a fixed rate had passed by the latest firing, this is
 *               the latest of these deadlines or, with HWT_SETUP_THREAD, the earliest.
 * @fired_ns:    time of the latest firing
 * @overruns:    number of periods without an event of their own since the previous event was read:
 *               an event of kind HWT_EVENT_EXPIRED stands for overruns + 1 periods
 * @kind:        HWT_EVENT_EXPIRED or HWT_EVENT_CLOCK_SET
 * @flags:       HWT_EVENT_LAST or 0; programs ignore unknown bits
 * @generation:  the generation that the call which armed the timeout has returned; 0 if @kind is
 *               HWT_EVENT_CLOCK_SET
 * @reserved:    0
 *
 * In an event of kind HWT_EVENT_CLOCK_SET the members have other meanings: see HWT_IOC_SETUP. The
 * size of this structure is part of the ABI and does not change.
 */
struct hwt_event {
	__aligned_u64	id;
	__aligned_u64	user_data;
	__aligned_u64	deadline_ns;
	__aligned_u64	fired_ns;
	__aligned_u64	overruns;
	__u32		kind;
	__u32		flags;
	__aligned_u64	generation;
	__aligned_u64	reserved;
};

/* -- Ioctls -------------------------------------------------------------- */

/* Each ioctl takes the address of its structure, and returns 0, or -1 with the error in errno. */
#define HWT_IOC_MAGIC		0xE7	/* the upper byte of each number */

#define HWT_IOC_INFO		_IO(HWT_IOC_MAGIC, 0x00)	/* struct hwt_info_args */
#define HWT_IOC_SETUP		_IO(HWT_IOC_MAGIC, 0x01)	/* struct hwt_setup_args */
#define HWT_IOC_SCHEDULE	_IO(HWT_IOC_MAGIC, 0x02)	/* struct hwt_schedule_args */
#define HWT_IOC_MODIFY		_IO(HWT_IOC_MAGIC, 0x03)	/* struct hwt_modify_args */
#define HWT_IOC_CANCEL		_IO(HWT_IOC_MAGIC, 0x04)	/* struct hwt_cancel_args */
#define HWT_IOC_GET		_IO(HWT_IOC_MAGIC, 0x05)	/* struct hwt_get_args */
#define HWT_IOC_STATS		_IO(HWT_IOC_MAGIC, 0x06)	/* struct hwt_stats_args */
#define HWT_IOC_LIST		_IO(HWT_IOC_MAGIC, 0x07)	/* struct hwt_list_args */
#define HWT_IOC_RINGS		_IO(HWT_IOC_MAGIC, 0x08)	/* struct hwt_rings_args */
#define HWT_IOC_ENTER		_IO(HWT_IOC_MAGIC, 0x09)	/* struct hwt_enter_args */

/* Bits of features in struct hwt_info_args */
#define HWT_FEATURE_SETUP	0x1	/* HWT_IOC_SETUP */
#define HWT_FEATURE_BOOTTIME	0x2	/* HWT_SETUP_BOOTTIME */
#define HWT_FEATURE_REALTIME	0x4	/* HWT_SETUP_REALTIME, HWT_SETUP_TELL_CLOCK_SET */
#define HWT_FEATURE_LIST	0x8	/* HWT_IOC_LIST */
#define HWT_FEATURE_RINGS	0x10	/* HWT_IOC_RINGS, HWT_IOC_ENTER */
#define HWT_FEATURE_URING	0x20	/* HWT_URING_ARM, HWT_URING_MODIFY, HWT_URING_CANCEL */
#define HWT_FEATURE_THREAD	0x40	/* HWT_SETUP_THREAD and what goes with it */
#define HWT_FEATURE_KEYS	0x80	/* HWT_SETUP_KEYS */

/**
 * struct hwt_info_args - HWT_IOC_INFO: describe the context
 * @size:            sizeof(struct hwt_info_args)
 * @flags:           0
 * @event_size:      out: sizeof(struct hwt_event)
 * @clock:           out: the context's clock: 0 (CLOCK_REALTIME), 1 (CLOCK_MONOTONIC) or 7
 *                   (CLOCK_BOOTTIME)
 * @tick_ns:         out: length of a tick
 * @ticks_per_wheel: out: number of buckets of level 0
 * @levels:          out: number of levels of buckets
 * @now_ns:          out: present time on the context's clock
 * @next_ns:         out: a time before which no timeout of the context is due, perhaps that of a
 *                   timeout that was cancelled or pushed back since; HWT_NEVER if none was pending
 *                   when the kernel looked last; 0 with HWT_SETUP_THREAD
 * @max_timeouts:    out: maximum number of timeouts of the context, those with an unread event
 *                   included
 * @max_pending:     out: maximum number of timeouts pending at once; 0 if there is no such limit
 * @features:        out: HWT_FEATURE_ bits
 * @max_user_timeouts: out: maximum number of timeouts in all contexts of the user who opened this
 *                   context; 0 if there is no such limit
 * @thread:          out: 1 if a kernel thread fires the timeouts (HWT_SETUP_THREAD), 0 if the
 *                   tasks that use the context fire them
 * @keys:            out: 1 if the ids are the program's keys (HWT_SETUP_KEYS), else 0
 */
struct hwt_info_args {
	__u32		size;
	__u32		flags;
	__u32		event_size;
	__s32		clock;
	__aligned_u64	tick_ns;
	__u32		ticks_per_wheel;
	__u32		levels;
	__aligned_u64	now_ns;
	__aligned_u64	next_ns;
	__aligned_u64	max_timeouts;
	__aligned_u64	max_pending;
	__aligned_u64	features;
	__aligned_u64	max_user_timeouts;
	__u32		thread;
	__u32		keys;
};

/*
 * Flags of struct hwt_setup_args. No flag has the same value as a mode or a priority, so if a
 * program puts one of these constants into the wrong member, the call fails with EINVAL.
 */
#define HWT_SETUP_BOOTTIME		0x100	/* deadlines on CLOCK_BOOTTIME */
#define HWT_SETUP_REALTIME		0x200	/* deadlines on CLOCK_REALTIME */
#define HWT_SETUP_TELL_CLOCK_SET	0x400	/* with REALTIME: an event when it is set */
#define HWT_SETUP_BUSY_WAIT		0x800	/* with CPU: the thread never sleeps */
#define HWT_SETUP_CPU			0x1000	/* with THREAD: the thread stays on one CPU */
#define HWT_SETUP_THREAD		0x2000	/* a kernel thread drives the timeouts */
#define HWT_SETUP_KEYS			0x4000	/* ids are the program's keys */

/* Values of priority in struct hwt_setup_args */
#define HWT_PRIO_NORMAL		0	/* the context's thread is an ordinary thread */
#define HWT_PRIO_FIFO_LOW	1	/* above all ordinary threads */
#define HWT_PRIO_FIFO		2	/* in the middle of the real-time priorities */

/**
 * struct hwt_setup_args - HWT_IOC_SETUP: choose clock, tick, keys, or a thread
 * @size:            sizeof(struct hwt_setup_args)
 * @flags:           HWT_SETUP_ bits; with neither HWT_SETUP_BOOTTIME nor HWT_SETUP_REALTIME,
 *                   deadlines are on CLOCK_MONOTONIC
 * @tick_ns:         length of a tick. @tick_ns times @ticks_per_wheel must be below 2^63. A length
 *                   below the module parameter min_tick_us is raised to min_tick_us. 0: the
 *                   module's default
 * @ticks_per_wheel: number of buckets of level 0, 2 to 65536, rounded up to a power of two. Each
 *                   higher level has as many buckets, but 512 at most. 0: 64; with
 *                   HWT_SETUP_THREAD, the module's default
 * @levels:          number of levels, 1 to 6. 0: 5; with HWT_SETUP_THREAD, the module's default
 * @max_pending:     maximum number of timeouts pending at once, below 2^63. A one-shot stops
 *                   counting when its firing begins, though it may be reported as pending for a
 *                   moment longer. 0: no limit but max_timeouts
 * @cpu:             the CPU of the thread, with HWT_SETUP_CPU; else 0
 * @priority:        priority of the thread, with HWT_SETUP_THREAD: HWT_PRIO_NORMAL,
 *                   HWT_PRIO_FIFO_LOW or HWT_PRIO_FIFO; with HWT_SETUP_BUSY_WAIT only
 *                   HWT_PRIO_NORMAL
 *
 * On CLOCK_REALTIME, a deadline is a date, and so is the end of a delay or of a period. If the
 * clock is set forward past the date of a timeout, the timeout fires at once. If the clock is set
 * back, no timeout fires before the clock reaches its date (again), and no timeout fires twice.
 * With HWT_SETUP_TELL_CLOCK_SET, the context gets an event of kind HWT_EVENT_CLOCK_SET after the
 * clock was set or the machine was suspended, and no timeout is changed. In this event, id and
 * user_data are 0, deadline_ns is the time that the clock would show if it had not been set,
 * fired_ns is the time that the clock shows, and overruns is the number of times that the clock was
 * set again before the event was read. Sets that follow each other at once may count as one or, if
 * they cancel each other, as none.
 *
 * With HWT_SETUP_THREAD, a kernel thread does the work of the timeouts. The thread belongs to no
 * cgroup of the program, so limits and a freeze of these cgroups do not affect the thread. A
 * context accepts HWT_IOC_SETUP once, before its first timeout and its rings. Afterwards,
 * HWT_IOC_INFO returns the values after rounding.
 *
 *	EBUSY	the context has scheduled a timeout, has been set up, or has rings
 *	EINVAL	a value is out of range, or two values exclude each other, or @cpu is not online
 *	EPERM	the caller does not have CAP_SYS_NICE, which HWT_SETUP_THREAD requires
 *	ENOSPC	with HWT_SETUP_TELL_CLOCK_SET: the user has max_user_timeouts timeouts
 *	ENOMEM	there is no memory, or the system allows no further thread
 *	EINTR	the task was killed during the call
 */
struct hwt_setup_args {
	__u32		size;
	__u32		flags;
	__aligned_u64	tick_ns;
	__u32		ticks_per_wheel;
	__u32		levels;
	__aligned_u64	max_pending;
	__u32		cpu;
	__u32		priority;
};

/* Modes of a timeout */
#define HWT_MODE_ONE_SHOT	0	/* fires once */
#define HWT_MODE_FIXED_RATE	1	/* fires each period, counted from the first deadline */
#define HWT_MODE_FIXED_DELAY	2	/* fires again one period after each firing */

/* Flags of HWT_IOC_SCHEDULE and HWT_IOC_MODIFY */
#define HWT_ARM_ABSOLUTE	0x10	/* time_ns is a deadline; without the flag, a delay */
/* Flags of HWT_IOC_MODIFY */
#define HWT_ARM_USER_DATA	0x20	/* set user_data; without the flag, keep it */
/*
 * Conditions, for HWT_IOC_MODIFY and, in a context with keys, HWT_IOC_SCHEDULE. They may be
 * combined. If a condition does not hold, the call succeeds, but changes nothing, and withdraws no
 * unread event. It returns the generation 0 and the present state, which is 0 if the key has no
 * timeout. With HWT_ARM_PENDING, a schedule neither creates a timeout nor changes its mode.
 *
 * (*) A delay is compared at one moment, and counts from another moment later in the call. If an
 * interruption lies between these, the tick may be later than compared.
 */
#define HWT_ARM_EARLIER		0x80	/* move a pending timeout to an earlier tick only (*) */
#define HWT_ARM_PENDING		0x10000	/* leave a timeout that is not pending as it is */
#define HWT_ARM_UNLESS_PENDING	0x20000	/* leave a pending timeout as it is */

/**
 * struct hwt_schedule_args - HWT_IOC_SCHEDULE: create a timeout
 * @size:      sizeof(struct hwt_schedule_args)
 * @flags:     HWT_ARM_ABSOLUTE and, with keys, conditions (HWT_ARM_EARLIER, HWT_ARM_PENDING,
 *             HWT_ARM_UNLESS_PENDING); or 0
 * @mode:      HWT_MODE_
 * @was:       out: 0 for a new timeout; in a context with keys, if the call has moved a timeout,
 *             the previous HWT_STATE_ bits of this timeout
 * @time_ns:   delay or deadline; for a periodic timeout, that of the first firing
 * @period_ns: period of a periodic timeout, not 0; 0 for a one-shot
 * @slack_ns:  how much later a one-shot may fire if that saves a wake-up; 0 for a periodic timeout
 * @user_data: any value, which the timeout's events will have; with keys 0, because the events have
 *             the key instead
 * @id:        out: the timeout's id; with keys: the key, which the program sets
 * @generation: out: the generation; 0 if a condition does not hold: then the call succeeds, but
 *             changes nothing
 *
 * Timeouts that are due at the same tick fire, and queue their events, in no particular order.
 *
 * In a context with keys, if the key has a timeout already, the call moves this timeout, as
 * HWT_IOC_MODIFY does. If that timeout has another mode, the call replaces it by a new timeout, and
 * sets @was to 0; if the new timeout cannot be created, the old one stays as it is.
 *
 *	EINVAL		mode, period_ns, slack_ns or user_data is not as described above
 *	ENOMEM		there is no memory, in the kernel or within the caller's memory cgroup, to
 *			which timeouts are charged
 *	ENOSPC		a limit is reached (HWT_IOC_STATS returns which): the context has
 *			max_timeouts timeouts, or its user has max_user_timeouts timeouts, or
 *			max_pending timeouts are pending
 */
struct hwt_schedule_args {
	__u32		size;
	__u32		flags;
	__u32		mode;
	__u32		was;
	__aligned_u64	time_ns;
	__aligned_u64	period_ns;
	__aligned_u64	slack_ns;
	__aligned_u64	user_data;
	__aligned_u64	id;
	__aligned_u64	generation;
};

/*
 * The state of a timeout, as bits. A one-shot has HWT_STATE_PENDING until it fires, and then
 * HWT_STATE_EVENT until its event is read, which ends the id. A periodic timeout always has
 * HWT_STATE_PENDING; it also has HWT_STATE_EVENT while it has an unread event.
 */
#define HWT_STATE_PENDING	0x1	/* the timeout will fire */
#define HWT_STATE_EVENT		0x2	/* the timeout has an event that was not read yet */

/**
 * struct hwt_modify_args - HWT_IOC_MODIFY: move a timeout
 * @size:      sizeof(struct hwt_modify_args)
 * @flags:     HWT_ARM_ABSOLUTE, conditions (HWT_ARM_EARLIER, HWT_ARM_PENDING,
 *             HWT_ARM_UNLESS_PENDING) and, in a context without keys, HWT_ARM_USER_DATA; or 0
 * @id:        the timeout
 * @time_ns:   new delay or deadline
 * @period_ns: new period of a periodic timeout, or 0 to keep the period; 0 for a one-shot
 * @slack_ns:  new slack of a one-shot; 0 for a periodic timeout
 * @user_data: new user_data with HWT_ARM_USER_DATA, 0 without this flag
 * @was:       out: previous state of the timeout, HWT_STATE_ bits
 * @reserved:  0
 * @generation: out: the generation; 0 if a condition does not hold: then the call succeeds, but
 *             changes nothing
 * @remaining_ns: out: time that was left until the deadline before the call, as HWT_IOC_GET
 *             returns it; 0 if the timeout was not pending
 *
 * The timeout is scheduled again, under the same id; a one-shot that has fired becomes pending
 * again. If there is an unread event, it is withdrawn with its overruns, and @was has
 * HWT_STATE_EVENT.
 *
 *	EINVAL		period_ns, slack_ns or user_data is not as described above, or
 *			HWT_ARM_USER_DATA is set in a context with keys
 *	ENOENT		there is no such timeout (any more)
 *	ENOSPC		max_pending other timeouts are pending. This error comes only if the
 *			timeout did not count as pending itself, because it had fired, or its
 *			firing had begun
 */
struct hwt_modify_args {
	__u32		size;
	__u32		flags;
	__aligned_u64	id;
	__aligned_u64	time_ns;
	__aligned_u64	period_ns;
	__aligned_u64	slack_ns;
	__aligned_u64	user_data;
	__u32		was;
	__u32		reserved;
	__aligned_u64	generation;
	__aligned_u64	remaining_ns;
};

/* Flags of struct hwt_cancel_args */
#define HWT_CANCEL_ALL		0x40	/* end all timeouts of the context */

/**
 * struct hwt_cancel_args - HWT_IOC_CANCEL: end a timeout, or all
 * @size:  sizeof(struct hwt_cancel_args)
 * @flags: HWT_CANCEL_ALL or 0
 * @id:    the timeout; 0 with HWT_CANCEL_ALL
 * @was:   out: previous state of the timeout, HWT_STATE_ bits; 0 with HWT_CANCEL_ALL
 * @count: out: number of timeouts that the call has ended
 *
 * The timeout will not fire, its unread event is withdrawn, and its id ends. With HWT_CANCEL_ALL
 * this happens to each timeout that existed before the call, and the context can still be used.
 *
 *	ENOENT	there is no such timeout (any more)
 */
struct hwt_cancel_args {
	__u32		size;
	__u32		flags;
	__aligned_u64	id;
	__u32		was;
	__u32		count;
};

/**
 * struct hwt_get_args - HWT_IOC_GET: describe a timeout
 * @size:         sizeof(struct hwt_get_args)
 * @flags:        0
 * @id:           the timeout
 * @state:        out: HWT_STATE_ bits
 * @mode:         out: HWT_MODE_
 * @user_data:    out: user_data of the timeout; with keys, the key
 * @deadline_ns:  out: the deadline for which the timeout is pending, rounded up to a tick; if the
 *                timeout is not pending, the deadline for which it was last pending; HWT_NEVER if
 *                the deadline is 2^63 or more. While a timeout with a fixed delay is firing, this
 *                may be an estimate of its next deadline.
 * @remaining_ns: out: time until the deadline; 0 if the deadline has passed or the timeout is not
 *                pending; HWT_NEVER if @deadline_ns is HWT_NEVER and the timeout is pending
 * @period_ns:    out: period of the timeout; 0 for a one-shot
 * @overruns:     out: number of periods without an event of their own since the timeout was
 *                scheduled or last modified: the sum of the overruns of all events since then, read
 *                or unread
 *
 *	ENOENT	there is no such timeout (any more)
 */
struct hwt_get_args {
	__u32		size;
	__u32		flags;
	__aligned_u64	id;
	__u32		state;
	__u32		mode;
	__aligned_u64	user_data;
	__aligned_u64	deadline_ns;
	__aligned_u64	remaining_ns;
	__aligned_u64	period_ns;
	__aligned_u64	overruns;
};

/**
 * struct hwt_list_entry - a timeout, as HWT_IOC_LIST describes it
 * @id:           the id or key of the timeout
 * @user_data:    the same as in struct hwt_get_args
 * @deadline_ns:  the same as in struct hwt_get_args
 * @remaining_ns: the same as in struct hwt_get_args
 * @period_ns:    the same as in struct hwt_get_args
 * @overruns:     the same as in struct hwt_get_args
 * @state:        HWT_STATE_ bits
 * @mode:         HWT_MODE_
 * @reserved:     0
 */
struct hwt_list_entry {
	__aligned_u64	id;
	__aligned_u64	user_data;
	__aligned_u64	deadline_ns;
	__aligned_u64	remaining_ns;
	__aligned_u64	period_ns;
	__aligned_u64	overruns;
	__u32		state;
	__u32		mode;
	__aligned_u64	reserved;
};

/**
 * struct hwt_list_args - HWT_IOC_LIST: describe all timeouts
 * @size:       sizeof(struct hwt_list_args)
 * @flags:      0
 * @cursor:     0 for the first call; for each further call, the value that the previous call has
 *              stored here. out: the value for the next call
 * @entries:    address of an array of struct hwt_list_entry
 * @count:      number of entries of the array, not 0; out: number of entries stored, 0 if there are
 *              no more timeouts
 * @entry_size: sizeof(struct hwt_list_entry)
 *
 * The timeouts come in no particular order. A timeout that exists from the first call to the last
 * is described exactly once. A timeout that is created or ends between these calls is described at
 * most once. Each description shows the timeout at one instant. So a program can save its timeouts,
 * and create them again after a restart or a reboot: with the remaining time as a delay or, on
 * CLOCK_REALTIME, with the deadline.
 *
 *	EINVAL	count is 0, or entry_size is smaller than in the first version or larger than
 *		HWT_LIST_ENTRY_SIZE_MAX
 *	EFAULT	an entry could not be stored. If earlier entries were stored, the call may succeed
 *		instead, with a smaller count; the next call continues after the counted entries.
 *	ENOMEM	there is no memory
 */
struct hwt_list_args {
	__u32		size;
	__u32		flags;
	__aligned_u64	cursor;
	__aligned_u64	entries;
	__u32		count;
	__u32		entry_size;
};

/* Values of limit in struct hwt_stats_args: the last limit that refused a call */
#define HWT_LIMIT_TIMEOUTS	1	/* max_timeouts, of the context */
#define HWT_LIMIT_USER_TIMEOUTS	2	/* max_user_timeouts, of all contexts of the user */
#define HWT_LIMIT_PENDING	3	/* max_pending, of the context */

/**
 * struct hwt_stats_args - HWT_IOC_STATS: count what the context has done since it was opened
 * @size:      sizeof(struct hwt_stats_args)
 * @flags:     0
 * @timeouts:  out: timeouts of the context now, those with an unread event included
 * @pending:   out: timeouts of the context that are pending now
 * @events:    out: events waiting to be read now
 * @scheduled: out: timeouts created
 * @modified:  out: number of times that a timeout was moved
 * @cancelled: out: timeouts ended by a cancel of any kind, those of io_uring included
 * @expired:   out: firings; each firing of a periodic timeout counts
 * @overruns:  out: periods of periodic timeouts that passed without an event of their own
 * @read:      out: events read, or moved to the ring of events; not completions of io_uring
 * @rejected:  out: calls and operations that failed with ENOSPC
 * @limit:     out: the limit (HWT_LIMIT_) that was the last to refuse a call; 0 if no limit has
 * @reserved:  0
 *
 * HWT_IOC_STATS and HWT_IOC_LIST first fire what is due, but not more than 1,024 timeouts.
 */
struct hwt_stats_args {
	__u32		size;
	__u32		flags;
	__aligned_u64	timeouts;
	__aligned_u64	pending;
	__aligned_u64	events;
	__aligned_u64	scheduled;
	__aligned_u64	modified;
	__aligned_u64	cancelled;
	__aligned_u64	expired;
	__aligned_u64	overruns;
	__aligned_u64	read;
	__aligned_u64	rejected;
	__u32		limit;
	__u32		reserved;
};

/* -- Rings --------------------------------------------------------------- */

/* Values of opcode in struct hwt_op */
#define HWT_OP_SCHEDULE		1	/* does the same as HWT_IOC_SCHEDULE */
#define HWT_OP_MODIFY		2	/* does the same as HWT_IOC_MODIFY */
#define HWT_OP_CANCEL		3	/* does the same as HWT_IOC_CANCEL */
#define HWT_OP_GET		4	/* does the same as HWT_IOC_GET */

/**
 * struct hwt_op - an operation in a ring
 * @opcode:       HWT_OP_SCHEDULE, HWT_OP_MODIFY, HWT_OP_CANCEL or HWT_OP_GET
 * @flags:        the flags of the ioctl that the opcode names, except HWT_CANCEL_ALL
 * @mode:         schedule: HWT_MODE_; get: out: HWT_MODE_; else 0
 * @result:       out: a negative error number if the operation has failed. If the operation
 *                has succeeded: the previous HWT_STATE_ bits of the timeout, 0 for a new timeout;
 *                for get, the present HWT_STATE_ bits
 * @id:           modify, cancel, get: the timeout; schedule: out: the timeout's id. In a context
 *                with keys, the program always sets the key here
 * @time_ns:      schedule, modify: delay or deadline
 * @deadline_ns:  get: out: deadline
 * @period_ns:    schedule, modify: period; get: out: period
 * @slack_ns:     schedule, modify: slack
 * @remaining_ns: get: out: time until the deadline
 * @user_data:    schedule, modify: user_data; get: out: user_data
 * @overruns:     get: out: overruns
 * @generation:   schedule, modify: out: generation
 * @reserved:     cancel: 0; in the place of @overruns and @generation
 *
 * Members and errors are those of the ioctl that the opcode names. Members that an operation does
 * not use must be zero, except those marked "out", whose previous content does not matter.
 * Operations are carried out one after the other, in their order; one that fails does not affect
 * the others.
 */
struct hwt_op {
	__u32		opcode;
	__u32		flags;
	__u32		mode;
	__s32		result;
	__aligned_u64	id;
	union {
		__aligned_u64	time_ns;
		__aligned_u64	deadline_ns;
	};
	__aligned_u64	period_ns;
	union {
		__aligned_u64	slack_ns;
		__aligned_u64	remaining_ns;
	};
	__aligned_u64	user_data;
	union {
		__aligned_u64	overruns;
		__aligned_u64	generation;
		__aligned_u64	reserved;
	};
};

/* Flags of struct hwt_rings */
#define HWT_RINGS_MORE	0x1	/* events wait outside of the ring: HWT_IOC_ENTER moves them in */

/**
 * struct hwt_rings - the beginning of the memory that HWT_IOC_RINGS creates
 * @op_head:    number of the next operation that the kernel will carry out: operations with lower
 *              numbers are done. Written by the kernel
 * @event_tail: number that the next event will have: events with lower numbers are in the ring.
 *              Written by the kernel
 * @flags:      HWT_RINGS_ bits; written by the kernel
 * @due:        1 from the moment at which a timeout is due until HWT_IOC_ENTER or poll() has moved
 *              its event, also if this timeout was cancelled or pushed back; else 0; always 0 with
 *              HWT_SETUP_THREAD. A program that sees 1 has to call HWT_IOC_ENTER, or events do not
 *              come. Written by the kernel
 * @next_ns:    the time at which @due will become 1, or a time before that; HWT_NEVER if nothing
 *              was pending when HWT_IOC_ENTER or poll() looked last, and nothing was armed since.
 *              Written by the kernel; a 32-bit kernel writes the two halves one by one
 * @reserved:   0
 * @op_tail:    number that the next operation will have: operations with lower numbers are queued.
 *              Written by the program
 * @reserved2:  0
 * @event_head: number of the next event to read: events with lower numbers have been read. Written
 *              by the program
 * @reserved3:  0
 *
 * Operations and events are numbered from 0; the numbers wrap at 2^32. The entry with number n is
 * at index n modulo the number of entries of the ring, which is a power of two. To load with
 * acquire semantics means that no later access is moved before the load; to store with release
 * semantics, that no earlier access is moved behind the store. On x86, plain aligned accesses of 4
 * bytes have these semantics, if the compiler does not move them.
 *
 * To queue an operation: if op_tail - op_head is less than the number of entries of the ring of
 * operations, there is room. Fill in the entry with number op_tail, then store op_tail + 1 in
 * op_tail with release semantics. After one or more entries, call HWT_IOC_ENTER. The operation has
 * been carried out when op_head, loaded with acquire semantics, has passed the number of the entry.
 * The entry then has the result and all members marked "out", until the program overwrites them.
 *
 * To take an event: load flags and then event_tail, both with acquire semantics. If event_head
 * differs from event_tail, read the event with number event_head, then store event_head + 1 in
 * event_head with release semantics: the kernel may overwrite the entry from then on. If
 * event_head equals event_tail, there is no event in the ring. In this case, if flags had
 * HWT_RINGS_MORE or due is 1, call HWT_IOC_ENTER, and begin again.
 *
 * If a program's loop also waits for other descriptors, let each turn load event_tail once, and
 * take only the events before it. A turn that takes events until none is left may never end. poll()
 * in the next turn reports the events that are left. epoll with EPOLLET does not report them: if
 * there is an event or flags has HWT_RINGS_MORE, let the next turn poll the other descriptors
 * without sleeping, and then take events.
 *
 * Threads that queue operations in the same ring must take turns, and so must threads that take
 * events. The kernel reads each entry once and checks it, so a program that writes nonsense to this
 * memory harms only itself. A child after fork() has the same rings.
 */
struct hwt_rings {
	__u32	op_head;
	__u32	event_tail;
	__u32	flags;
	__u32	due;
	__aligned_u64	next_ns;
	__u32	reserved[10];
	__u32	op_tail;
	__u32	reserved2[15];
	__u32	event_head;
	__u32	reserved3[15];
};

#define HWT_RING_ENTRIES_MAX	65536	/* maximum number of entries of a ring */

/**
 * struct hwt_rings_args - HWT_IOC_RINGS: create rings
 * @size:          sizeof(struct hwt_rings_args)
 * @flags:         0
 * @op_entries:    number of entries of the ring of operations, 1 to HWT_RING_ENTRIES_MAX; out: this
 *                 number, rounded up to a power of two
 * @event_entries: number of entries of the ring of events, 1 to HWT_RING_ENTRIES_MAX; out: this
 *                 number, rounded up to a power of two
 * @map_size:      out: number of bytes to mmap(), with MAP_SHARED, at offset 0 of the descriptor;
 *                 this memory begins with a struct hwt_rings
 * @ops_offset:    out: offset of the ring of operations in this memory, an array of struct hwt_op
 * @events_offset: out: offset of the ring of events in this memory, an array of struct hwt_event
 * @op_size:       sizeof(struct hwt_op)
 * @reserved:      0
 *
 * The rings become active when their memory is mapped, by mmap(NULL, map_size, PROT_READ |
 * PROT_WRITE, MAP_SHARED, fd, 0). Until they are active, a further call of HWT_IOC_RINGS with the
 * same sizes returns the same rings, so a program that could not map them may try again, or go on
 * without them. Active rings stay active when they are unmapped.
 *
 * While rings are active, read() fails with EBUSY, even if the read() began earlier and is waiting.
 * HWT_IOC_ENTER (after the operations of this call), poll(), select() and epoll_wait() move all
 * events, earlier ones included, to the ring of events, in their order and as far as there is room.
 * They end earlier at a signal, and if timeouts come due faster than they are fired; due is then 1,
 * or HWT_RINGS_MORE set. poll() reports EPOLLIN while there are events in the ring or waiting to be
 * moved.
 *
 * An event that is not in the ring is not lost: it stays in its timeout, and HWT_RINGS_MORE is set.
 * A modify or cancel withdraws such an event when the operation is carried out. An event in the
 * ring counts as read: the id of a one-shot has ended, and no operation withdraws the event. So
 * submit queued operations before poll(), which moves events to the ring. If an object of the
 * program has a timeout, and the program frees the object, the program must ignore events of this
 * timeout that are in the ring already.
 *
 * Times in operations and events are in the time namespace of the caller of HWT_IOC_RINGS. The
 * rings are freed when the descriptors of the context are closed and the memory is unmapped.
 *
 *	EBUSY	the context has active rings, or rings of other sizes
 *	EINVAL	a number of entries or op_size is out of range, or op_size is no multiple of 8
 *	ENOMEM	there is no memory, in the kernel or within the caller's memory cgroup
 *
 * mmap() fails with
 *
 *	EACCES	the descriptor is not open for reading and writing
 *	EINVAL	there are no rings, MAP_SHARED is missing, the offset is not 0, or the length is not
 *		map_size, rounded up to whole pages
 *	ENOMEM	there is no memory
 */
struct hwt_rings_args {
	__u32		size;
	__u32		flags;
	__u32		op_entries;
	__u32		event_entries;
	__aligned_u64	map_size;
	__u32		ops_offset;
	__u32		events_offset;
	__u32		op_size;
	__u32		reserved;
};

/* Flags of struct hwt_enter_args */
#define HWT_ENTER_ABSOLUTE	0x1	/* timeout_ns is a deadline on CLOCK_MONOTONIC */
#define HWT_ENTER_SIGMASK	0x2	/* sigmask is the signal mask during the wait */

/**
 * struct hwt_enter_args - HWT_IOC_ENTER: carry out operations, get events
 * @size:       sizeof(struct hwt_enter_args)
 * @flags:      HWT_ENTER_ bits
 * @submit:     maximum number of operations to carry out; out: number of operations carried out,
 *              which is smaller if fewer were queued or a signal came
 * @wait:       number of events to wait for, at most as many as the ring has entries; 0: do not
 *              wait
 * @timeout_ns: maximum time to wait or, with HWT_ENTER_ABSOLUTE, the time at which the wait ends.
 *              HWT_NEVER: no limit
 * @sigmask:    with HWT_ENTER_SIGMASK, the signals that are blocked during the wait: signal n is
 *              bit n - 1. As in ppoll(), no signal comes between setting the mask and waiting.
 *              Without HWT_ENTER_SIGMASK: 0
 * @events:     out: number of events in the ring
 * @result:     out: 0: the requested events have come, or @wait is 0; -ETIME: the maximum time
 *              is over; -EINTR: the wait was interrupted, as described below
 *
 * The call carries out operations, then moves events to the ring, then waits and moves the events
 * that come during the wait. So an event that an operation withdraws does not enter the ring. A
 * signal, task work of io_uring or the freezer may end the call early: op_head and HWT_RINGS_MORE
 * show whether a further call is needed.
 *
 * A wait is interrupted by a signal handler (with or without SA_RESTART), by a stop (SIGSTOP), by a
 * tracer, by a suspend, and by task work of io_uring. If the call has carried out operations, or if
 * timeout_ns is a duration below 2^63, the call returns 0 with -EINTR in @result, whether or not a
 * handler has run. Otherwise, the call fails with EINTR after a signal handler, and waits on after
 * any other interruption, as ppoll() does. So a program that is to sleep undisturbed submits its
 * operations first, and then waits in a second call, until a deadline. libhwt does so.
 *
 *	EINTR	a signal handler has run, and the call has carried out no operation: it waited until
 *		a deadline or without a limit, or for another thread's HWT_IOC_ENTER to end its
 *		operations. Events may have been moved
 *	EINVAL	the context has no mapped rings; or op_tail is further ahead of op_head than the
 *		ring has entries; or sigmask is not 0 without HWT_ENTER_SIGMASK
 */
struct hwt_enter_args {
	__u32		size;
	__u32		flags;
	__u32		submit;
	__u32		wait;
	__aligned_u64	timeout_ns;
	__aligned_u64	sigmask;
	__u32		events;
	__s32		result;
};

/* -- io_uring ------------------------------------------------------------ */

/*
 * These are commands for IORING_OP_URING_CMD (46) on the descriptor. They are available if
 * HWT_FEATURE_URING is set, which requires Linux 6.7 or later. If they are not available,
 * IORING_OP_POLL_ADD (6) and the rings above serve the same purpose. The context must have keys
 * (HWT_SETUP_KEYS). In the submission entry, these members are used, with their offset and size:
 *
 *	opcode, flags, fd	0, 1 and 4: those of every request
 *	cmd_op	8, 4 bytes: the command
 *	addr	16, 8 bytes: the key
 *	user_data	32, 8 bytes: any value, for the program or its library for io_uring
 *	cmd	48, 16 bytes: a struct hwt_uring_cmd
 *
 * All other members up to byte 64 must be zero. HWT_URING_ARM completes when the timeout ends, and
 * the timeout has no event. The ioctls and operations on keys work on this timeout, too.
 * HWT_URING_MODIFY and HWT_URING_CANCEL complete at once, and work on all timeouts of the context.
 * The result of a completion (cqe->res) is 0 on success. HWT_URING_ARM succeeds when the timeout
 * expires. The errors are
 *
 *	-ECANCELED	HWT_URING_ARM: the timeout was cancelled, its io_uring was closed, or the
 *			task that submitted the command has ended, or a task with requests in this
 *			io_uring has called execve()
 *	-EEXIST		HWT_URING_ARM: the key has a timeout already
 *	-ENOENT		HWT_URING_MODIFY, HWT_URING_CANCEL: the key has no timeout (any more)
 *	-EINVAL		an unused member is not zero, a flag is unknown, the context has no keys, or
 *			a periodic timeout is given a slack
 *	-ENOMEM, -ENOSPC	as for HWT_IOC_SCHEDULE and HWT_IOC_MODIFY
 *	-ENOTTY		the command is unknown
 *	-EBADF		the descriptor is open for reading only
 *	-EOPNOTSUPP	HWT_FEATURE_URING is not set; or the io_uring has IORING_SETUP_IOPOLL, and
 *			the kernel refuses files that cannot be polled for completions (Linux 6.12
 *			refuses them, Linux 7.2 does not)
 *
 * Times are in the time namespace of the submitting task. A command completes only once, so a
 * periodic timeout cannot be a command. Schedule it by HWT_IOC_SCHEDULE, and get its events with
 * IORING_OP_READ, or with IORING_OP_POLL_ADD (IORING_POLL_ADD_MULTI) and read().
 *
 * Without HWT_SETUP_THREAD, when timeouts of a context are due, the task of one armed command fires
 * all of them, and so completes the commands of all tasks. If this task does not run (it is
 * stopped, has ended, or does not enter its io_uring), the commands of other tasks wait, too. So
 * use a context for each task, and for each instance of io_uring.
 *
 * An armed command keeps the context, even if the last descriptor of the context is closed.
 * IORING_OP_ASYNC_CANCEL and IORING_OP_LINK_TIMEOUT do not end an armed command, because io_uring
 * does not pass them on to a file.
 */
#define HWT_URING_ARM		_IO(HWT_IOC_MAGIC, 0x40)	/* create a one-shot timeout */
#define HWT_URING_MODIFY	_IO(HWT_IOC_MAGIC, 0x41)	/* move the timeout of the key */
#define HWT_URING_CANCEL	_IO(HWT_IOC_MAGIC, 0x42)	/* end it; the command is zero */

/**
 * struct hwt_uring_cmd - the content of sqe->cmd
 * @time_ns:  delay or deadline
 * @flags:    HWT_ARM_ABSOLUTE or 0
 * @slack_us: slack of a one-shot, in microseconds; must be 0 if a periodic timeout is modified
 */
struct hwt_uring_cmd {
	__aligned_u64	time_ns;
	__u32		flags;
	__u32		slack_us;
};

/* -- Sizes --------------------------------------------------------------- */

/* The sizes of the structures in their first version. Later versions are never smaller. */
#define HWT_INFO_SIZE_VER1	88
#define HWT_SETUP_SIZE_VER1	40
#define HWT_SCHEDULE_SIZE_VER1	64
#define HWT_MODIFY_SIZE_VER1	72
#define HWT_CANCEL_SIZE_VER1	24
#define HWT_GET_SIZE_VER1	64
#define HWT_STATS_SIZE_VER1	96
#define HWT_LIST_SIZE_VER1	32
#define HWT_LIST_ENTRY_SIZE_VER1	64
#define HWT_OP_SIZE_VER1	64
#define HWT_RINGS_SIZE_VER1	40
#define HWT_ENTER_SIZE_VER1	40

/* Maximum sizes of the elements of arrays and rings, also in later versions */
#define HWT_LIST_ENTRY_SIZE_MAX	256	/* maximum entry_size of struct hwt_list_args */
#define HWT_OP_SIZE_MAX		256	/* maximum op_size of struct hwt_rings_args */

#endif /* _HWT_UAPI_H */
