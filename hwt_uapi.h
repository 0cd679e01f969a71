/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * hwt - the interface of /dev/hwt for programs
 *
 * An open file of /dev/hwt is a context: any number of timeouts on one descriptor, with ids,
 * events, limits and statistics of its own. HWT_IOC_SCHEDULE creates a timeout and returns its id,
 * HWT_IOC_MODIFY moves the timeout to another time, HWT_IOC_CANCEL ends it. When a timeout expires,
 * the context has an event to read:
 *
 *	read()	stores events as an array of struct hwt_event, in the order in which they were
 *		queued, until no event is left or the buffer is full, and returns the size of
 *		these events in bytes. While there is no event, read() waits, or with O_NONBLOCK
 *		fails with EAGAIN. After HWT_IOC_STOP, when all events have been read, read()
 *		returns 0: the end of the file. EINVAL: the buffer is smaller than one event.
 *		EINTR: a signal came before the first event. EFAULT: not even one event could be
 *		stored; no event is lost.
 *	poll(), select(), epoll
 *		report EPOLLIN while events are waiting, EPOLLIN and EPOLLHUP at the end of the
 *		file. An event loop with other descriptors calls read() once for each report: if
 *		events are left, they are reported again, except with EPOLLET.
 *	close()	of the last descriptor of the open file, also by the death of the process, cancels
 *		and frees all timeouts of the context. A mapping of the rings counts as a
 *		descriptor, and so does an armed command of io_uring.
 *
 * A descriptor that is inherited, duplicated or sent to another process refers to the same context.
 * Threads and processes may use a context at the same time without locks of their own; each event
 * is read by one of them. A descriptor that is open for reading only allows read(), poll(),
 * HWT_IOC_INFO, HWT_IOC_GET, HWT_IOC_LIST and HWT_IOC_STATS; all other ioctls fail with EBADF. Each
 * open() creates a new context, so a context that was opened for reading only never has timeouts.
 *
 * The device node is created for root only; an administrator may give other users access to it.
 * docs/limits.md lists the limits of these users, for the kernel's memory (which is charged to the
 * memory cgroup of the caller) and for CPU time. The contexts of a user share a wheel, which has
 * kernel threads of its own. open() fails with ENOMEM if there is no memory. If it has to create
 * the wheel, it may also fail with ENOSPC (the user has max_user_wheels wheels already) or EINTR
 * (the task was killed).
 *
 * An event is kept in its timeout's own memory until it is read. So events are never lost, and
 * there is no queue to overflow. If a periodic timeout fires again before its event was read, it
 * gets no second event: the unread event counts this firing in its overruns.
 *
 * Ids
 *	The id of a timeout ends when the timeout is cancelled, or when its event with the flag
 *	HWT_EVENT_LAST is read. A one-shot has only one event, with this flag. The event of a
 *	periodic timeout has this flag only after HWT_IOC_STOP. An id is never 0. A context uses
 *	an id again only after 2^32 - 1 other ids.
 *	In a context with keys (HWT_SETUP_KEYS) the program chooses the ids: it names each timeout
 *	by a 64-bit number of its own, the key, for example the address of an object.
 *	HWT_IOC_SCHEDULE with the key of an existing timeout moves this timeout, so a program need
 *	not know whether the timeout exists.
 *
 * Times
 *	All times are nanoseconds. Delays count from the call; in a ring or a command of io_uring,
 *	from the time at which the operation is carried out. Deadlines and reported times are on
 *	the wheel's clock (CLOCK_MONOTONIC unless HWT_IOC_SETUP chose another), as clock_gettime()
 *	returns it to the caller, also in a time namespace. A timeout fires at the first tick of
 *	the wheel at or after its deadline, never earlier; with a slack, at this tick or a later
 *	one until deadline + slack. A timeout whose deadline has passed fires at once (with a
 *	slack: once the slack is over at the latest), but never inside the call. A timeout whose
 *	deadline is 2^63 or more, such as HWT_NEVER, never fires, and can be cancelled.
 *
 *	A delay becomes a deadline at the call. So if CLOCK_REALTIME is set, the delays on this
 *	clock become shorter or longer, unlike those of a relative timerfd: use another clock for
 *	delays.
 *
 * Many at once
 *	HWT_IOC_RINGS creates two rings in memory that the program and the kernel share. The
 *	program puts operations into the first ring and takes events from the second. One call
 *	of HWT_IOC_ENTER handles many operations and events. With io_uring, HWT_URING_ARM creates
 *	a timeout whose expiry is a completion.
 *
 * Structures of arguments
 *	The structures are the same for 32-bit and 64-bit programs. Each structure starts with its
 *	size, which the program sets to sizeof. The ioctl numbers do not contain the size, so they
 *	do not change when a structure grows at its end. A smaller structure, from an older
 *	header, is read as if zeroes followed; if it is smaller than in the first version, the
 *	call fails with EINVAL. A larger structure, from a newer header, is accepted if all
 *	members that the kernel does not know are zero; if not, the call fails with E2BIG. The
 *	same rules hold for the elements of arrays and rings, whose sizes are given by entry_size
 *	and op_size. Members marked "out" are written on success only, and their previous content
 *	does not matter. Flags and reserved members must be zero unless stated otherwise. The
 *	easiest way to fill in a structure:
 *
 *		struct hwt_schedule_args args = {
 *			.size = sizeof(args),
 *			.time_ns = 1000000000,
 *		};
 *
 *		if (ioctl(fd, HWT_IOC_SCHEDULE, &args) == 0)
 *			id = args.id;
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
 * The description of each ioctl lists its further errors. After an error nothing has changed,
 * unless the description says otherwise.
 */
#ifndef _HWT_UAPI_H
#define _HWT_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HWT_NEVER		(~(__u64)0)

/* -- Events -------------------------------------------------------------- */

/* Values of kind in struct hwt_event */
#define HWT_EVENT_EXPIRED	1	/* the timeout has expired */
#define HWT_EVENT_STOPPED	2	/* HWT_IOC_STOP has ended the timeout */
#define HWT_EVENT_CLOCK_SET	3	/* the clock was set; see HWT_SETUP_TELL_CLOCK_SET */

/* Flags of struct hwt_event */
#define HWT_EVENT_LAST		0x1	/* the timeout's id ends when this event is read */

/**
 * struct hwt_event - an event, as read() stores it
 * @id:          the timeout's id or key; 0 if @kind is HWT_EVENT_CLOCK_SET
 * @user_data:   the user_data that the program last gave to the timeout; with keys, the key
 * @deadline_ns: the deadline of the timeout, rounded up to a tick; with a slack, the tick that the
 *               kernel has chosen within the slack; HWT_NEVER if the deadline is 2^63 or more. If a
 *               periodic timeout has fired several times since its last event was read, this is the
 *               deadline of the latest firing. If that firing was late, further deadlines of a
 *               fixed rate may have passed by then; they count as overruns.
 * @fired_ns:    time of the latest firing; if @kind is HWT_EVENT_STOPPED, time of the stop
 * @overruns:    number of periods without an event of their own since the previous event was read:
 *               an event of kind HWT_EVENT_EXPIRED stands for overruns + 1 periods
 * @kind:        HWT_EVENT_EXPIRED, HWT_EVENT_STOPPED or HWT_EVENT_CLOCK_SET
 * @flags:       HWT_EVENT_LAST or 0; programs ignore unknown bits
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
	__aligned_u64	reserved[2];
};

/* -- Arguments ----------------------------------------------------------- */

/* Bits of features in struct hwt_info_args */
#define HWT_FEATURE_SETUP	0x1	/* HWT_IOC_SETUP: private wheels */
#define HWT_FEATURE_BOOTTIME	0x2	/* private wheels on CLOCK_BOOTTIME */
#define HWT_FEATURE_REALTIME	0x4	/* private wheels on CLOCK_REALTIME */
#define HWT_FEATURE_LIST	0x8	/* HWT_IOC_LIST */
#define HWT_FEATURE_RINGS	0x10	/* HWT_IOC_RINGS, HWT_IOC_ENTER */
#define HWT_FEATURE_URING	0x20	/* HWT_URING_ARM, HWT_URING_MODIFY, HWT_URING_CANCEL */
#define HWT_FEATURE_PLACE	0x40	/* HWT_IOC_SETUP: busy waiting, CPU, priority */
#define HWT_FEATURE_KEYS	0x80	/* HWT_IOC_SETUP: HWT_SETUP_KEYS */

/**
 * struct hwt_info_args - HWT_IOC_INFO: describe the context
 * @size:            sizeof(struct hwt_info_args)
 * @flags:           0
 * @event_size:      out: sizeof(struct hwt_event)
 * @clock:           out: the wheel's clock, as a clockid_t
 * @tick_ns:         out: length of the wheel's tick
 * @ticks_per_wheel: out: number of buckets of the wheel's level 0
 * @levels:          out: number of levels of the wheel
 * @now_ns:          out: present time on the wheel's clock
 * @max_timeouts:    out: maximum number of timeouts of the context; those with an unread event
 *                   count, too
 * @max_pending:     out: maximum number of timeouts pending at once; 0 if there is no such limit
 * @features:        out: HWT_FEATURE_ bits
 * @max_user_timeouts: out: maximum number of timeouts in all contexts of the user who opened this
 *                   context; 0 if there is no such limit
 * @max_user_wheels: out: maximum number of wheels of this user; 0 if there is no such limit
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
	__aligned_u64	max_timeouts;
	__aligned_u64	max_pending;
	__aligned_u64	features;
	__aligned_u64	max_user_timeouts;
	__u32		max_user_wheels;
	__u32		keys;
};

/*
 * Flags of struct hwt_setup_args. No flag has the same value as a mode or a priority, so if a
 * program puts one of these constants into the wrong member, the call fails with EINVAL.
 */
#define HWT_SETUP_BOOTTIME		0x100	/* a wheel on CLOCK_BOOTTIME */
#define HWT_SETUP_REALTIME		0x200	/* a wheel on CLOCK_REALTIME */
#define HWT_SETUP_TELL_CLOCK_SET	0x400	/* an event when CLOCK_REALTIME is set */
#define HWT_SETUP_BUSY_WAIT		0x800	/* the wheel's thread never sleeps */
#define HWT_SETUP_CPU			0x1000	/* the wheel's thread runs on a given CPU */
#define HWT_SETUP_PRIVATE		0x2000	/* a private wheel in any case */
#define HWT_SETUP_KEYS			0x4000	/* ids are the program's keys */

/* Values of priority in struct hwt_setup_args */
#define HWT_PRIO_NORMAL		0	/* the wheel's thread is an ordinary thread */
#define HWT_PRIO_FIFO_LOW	1	/* above all ordinary threads */
#define HWT_PRIO_FIFO		2	/* in the middle of the real-time priorities */

/**
 * struct hwt_setup_args - HWT_IOC_SETUP: ask for a private wheel, or for keys
 * @size:            sizeof(struct hwt_setup_args)
 * @flags:           HWT_SETUP_BOOTTIME, HWT_SETUP_REALTIME: the wheel's clock; without either,
 *                   CLOCK_MONOTONIC. On CLOCK_REALTIME deadlines, and the ends of delays and
 *                   periods, are dates. If the clock is set forward past the date of a timeout, the
 *                   timeout fires at once. If the clock is set back, no timeout fires before the
 *                   clock reaches its date (again), and no timeout fires twice.
 *                   HWT_SETUP_TELL_CLOCK_SET: only with HWT_SETUP_REALTIME. When the clock is set
 *                   (or the machine was suspended), the context gets an event of kind
 *                   HWT_EVENT_CLOCK_SET, and no timeout is changed. In this event, id and user_data
 *                   are 0, deadline_ns is the time that the clock would show if it had not been
 *                   set, fired_ns is the time that it shows now, and overruns is how often it was
 *                   set again before the event was read. HWT_SETUP_BUSY_WAIT: the wheel's thread
 *                   keeps a CPU busy to be on time; only with HWT_SETUP_CPU. HWT_SETUP_CPU: the
 *                   wheel's thread stays on @cpu. HWT_SETUP_PRIVATE: a private wheel, even if
 *                   nothing else asks for one. HWT_SETUP_KEYS: ids are the program's keys. This
 *                   flag alone does not ask for a private wheel.
 * @tick_ns:         length of the wheel's tick. @tick_ns times @ticks_per_wheel must be below 2^63.
 *                   A length below the module parameter min_tick_us is raised to min_tick_us. 0:
 *                   the module's default
 * @ticks_per_wheel: number of buckets of level 0, 2 to 65536, rounded up to a power of two. Each
 *                   higher level has as many buckets, but 512 at most. 0: the module's default
 * @levels:          number of levels, 1 to 6. 0: the module's default
 * @max_pending:     maximum number of timeouts pending at once, below 2^63. A timeout stops
 *                   counting when its firing begins, though it may still be reported as pending for
 *                   a moment. 0: no limit but max_timeouts
 * @cpu:             the CPU of the wheel's thread, with HWT_SETUP_CPU; else 0
 * @priority:        priority of the wheel's thread: HWT_PRIO_NORMAL, HWT_PRIO_FIFO_LOW or
 *                   HWT_PRIO_FIFO; with HWT_SETUP_BUSY_WAIT only HWT_PRIO_NORMAL
 *
 * By default a context uses the wheel that the user's contexts share, and the kernel chooses its
 * ids. Each flag but HWT_SETUP_KEYS, and each other member that is not zero, asks for a private
 * wheel. A private wheel has a kernel thread of its own, and is seldom needed: for another tick,
 * another clock, or max_pending. A context accepts HWT_IOC_SETUP once, before its first timeout and
 * before it has rings. Afterwards, HWT_IOC_INFO returns the values after rounding.
 *
 *	EBUSY	the context has scheduled a timeout, has been set up, or has rings
 *	EINVAL	a value is out of range, or two values exclude each other, or @cpu is not online
 *	EPERM	the caller does not have CAP_SYS_NICE, which HWT_SETUP_BUSY_WAIT, HWT_SETUP_CPU and
 *		all priorities but HWT_PRIO_NORMAL require
 *	ENOSPC	the user has max_user_wheels wheels already
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

/* Values of limit in struct hwt_stats_args: the last limit that refused a call */
#define HWT_LIMIT_TIMEOUTS	1	/* max_timeouts, of the context */
#define HWT_LIMIT_USER_TIMEOUTS	2	/* max_user_timeouts, of all contexts of the user */
#define HWT_LIMIT_PENDING	3	/* max_pending, of the private wheel */
#define HWT_LIMIT_USER_WHEELS	4	/* max_user_wheels, in HWT_IOC_SETUP */

/**
 * struct hwt_schedule_args - HWT_IOC_SCHEDULE: create a timeout
 * @size:      sizeof(struct hwt_schedule_args)
 * @flags:     HWT_ARM_ABSOLUTE or 0
 * @mode:      HWT_MODE_
 * @was:       out: 0 for a new timeout; in a context with keys, if the call has moved a timeout,
 *             the previous HWT_STATE_ bits of this timeout
 * @time_ns:   delay or deadline; for a periodic timeout, that of the first firing
 * @period_ns: period of a periodic timeout, not 0; 0 for a one-shot
 * @slack_ns:  how much later a one-shot may fire if that saves a wake-up; 0 for a periodic timeout
 * @user_data: any value, which the timeout's events will have; with keys 0, because the events have
 *             the key instead
 * @id:        out: the timeout's id; with keys: the key, which the program sets
 *
 * Timeouts that are due at the same tick fire, and queue their events, in no particular order.
 *
 * In a context with keys, if the key has a timeout already, the call moves this timeout, as
 * HWT_IOC_MODIFY does. If that timeout has another mode, the call cancels it, creates a new timeout
 * for the key instead, and sets @was to 0. If the new timeout cannot be created, the old timeout
 * stays as it is.
 *
 *	EINVAL		mode, period_ns, slack_ns or user_data is not as described above
 *	ENOMEM		there is no memory, in the kernel or within the caller's memory cgroup, to
 *			which timeouts are charged
 *	ENOSPC		a limit is reached (HWT_IOC_STATS returns which): the context has
 *			max_timeouts timeouts, or its user has max_user_timeouts timeouts (a
 *			cancelled timeout counts until its memory is freed, up to reclaim_ms
 *			later), or max_pending timeouts are pending on the private wheel
 *	ESHUTDOWN	the context was stopped
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
};

/*
 * The state of a timeout, as bits. A one-shot has either HWT_STATE_PENDING or HWT_STATE_EVENT. A
 * periodic timeout has HWT_STATE_PENDING, and may have HWT_STATE_EVENT, too. After a stop, each
 * timeout has HWT_STATE_EVENT, and none has HWT_STATE_PENDING.
 */
#define HWT_STATE_PENDING	0x1	/* the timeout will fire */
#define HWT_STATE_EVENT		0x2	/* the timeout has an event that was not read yet */

/**
 * struct hwt_modify_args - HWT_IOC_MODIFY: move a timeout
 * @size:      sizeof(struct hwt_modify_args)
 * @flags:     HWT_ARM_ABSOLUTE and, in a context without keys, HWT_ARM_USER_DATA; or 0
 * @id:        the timeout
 * @time_ns:   new delay or deadline
 * @period_ns: new period of a periodic timeout, or 0 to keep the period; 0 for a one-shot
 * @slack_ns:  new slack of a one-shot; 0 for a periodic timeout
 * @user_data: new user_data with HWT_ARM_USER_DATA, 0 without this flag
 * @was:       out: previous state of the timeout, HWT_STATE_ bits
 * @reserved:  0
 *
 * The timeout is scheduled again, under the same id. If it has an unread event, this event is
 * withdrawn with its overruns, and @was has HWT_STATE_EVENT. If it is a one-shot that has fired, it
 * becomes pending again.
 *
 *	EINVAL		period_ns, slack_ns or user_data is not as described above, or
 *			HWT_ARM_USER_DATA is set in a context with keys
 *	ENOENT		there is no such timeout (any more)
 *	ENOSPC		max_pending other timeouts are pending. This error comes only if the
 *			timeout did not count as pending itself, because it had fired, or its
 *			firing had begun
 *	ESHUTDOWN	the context was stopped
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
 * @deadline_ns:  out: the deadline, rounded up to a tick, for which the timeout is pending or, if
 *                it is not, was last pending; HWT_NEVER if the deadline is 2^63 or more. While a
 *                timeout with a fixed delay is firing, this may be an estimate of its next
 *                deadline.
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
 * is described exactly once; a timeout that is created or ends between these calls is described at
 * most once. Each description shows the timeout at one instant. So a program can save its timeouts,
 * and create them again after a restart or a reboot: with the remaining time as a delay or, on
 * CLOCK_REALTIME, with the deadline.
 *
 *	EINVAL	count is 0, or entry_size is smaller than in the first version or larger than
 *		HWT_LIST_ENTRY_SIZE_MAX
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

/**
 * struct hwt_stop_args - HWT_IOC_STOP: end all timeouts of the context
 * @size:    sizeof(struct hwt_stop_args)
 * @flags:   0
 * @stopped: out: number of pending timeouts that this call has stopped
 *
 * From the beginning of the call, operations that schedule or modify a timeout fail with ESHUTDOWN,
 * for good. Each timeout that was pending gets an event of kind HWT_EVENT_STOPPED, with the
 * deadline for which the timeout was pending and the time of the stop. But a periodic timeout with
 * an unread event keeps this event, of kind HWT_EVENT_EXPIRED. The events of all timeouts, also
 * those of one-shots that have fired, then have the flag HWT_EVENT_LAST. They can still be read, or
 * be withdrawn by HWT_IOC_CANCEL. When no event is left, read() returns 0. Commands of io_uring
 * whose timeouts are pending complete with -ESHUTDOWN. Other contexts are not affected, even if
 * they share the wheel. A second stop does nothing.
 */
struct hwt_stop_args {
	__u32		size;
	__u32		flags;
	__aligned_u64	stopped;
};

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
 * @stopped:   out: pending timeouts ended by HWT_IOC_STOP
 * @expired:   out: firings; each firing of a periodic timeout counts
 * @overruns:  out: periods of periodic timeouts that passed without an event of their own
 * @read:      out: events read, or moved to the ring of events
 * @rejected:  out: operations that schedule or modify a timeout and failed with ENOSPC or ESHUTDOWN
 * @limit:     out: the limit (HWT_LIMIT_) that was the last to refuse a call; 0 if none has
 * @reserved:  0
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
	__aligned_u64	stopped;
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
 * @reserved:     schedule, modify, cancel: 0
 *
 * The members mean the same as in the ioctl that the opcode names, and the errors are the same.
 * Members that an operation does not use must be zero, except those marked "out", whose previous
 * content does not matter. Operations are carried out one after the other, in their order; an
 * operation that fails does not affect the others.
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
		__aligned_u64	reserved;
	};
};

/* Flags of struct hwt_rings */
#define HWT_RINGS_MORE	0x1	/* events wait outside of the ring: HWT_IOC_ENTER moves them in */
#define HWT_RINGS_END	0x2	/* the context was stopped: no event follows those in the ring */

/**
 * struct hwt_rings - the beginning of the memory that HWT_IOC_RINGS creates
 * @op_head:    number of the next operation that the kernel will carry out: operations with lower
 *              numbers are done. Written by the kernel
 * @event_tail: number that the next event will have: events with lower numbers are in the ring.
 *              Written by the kernel
 * @flags:      HWT_RINGS_ bits; written by the kernel
 * @reserved:   0
 * @op_tail:    number that the next operation will have: operations with lower numbers are queued.
 *              Written by the program
 * @reserved2:  0
 * @event_head: number of the next event to read: events with lower numbers have been read. Written
 *              by the program
 * @reserved3:  0
 *
 * Operations and events are numbered from 0; the numbers wrap at 2^32. The entry with number n is
 * at index n modulo the number of entries of the ring, which is a power of two.
 *
 * To queue an operation: if op_tail - op_head is less than the number of entries of the ring of
 * operations, there is room. Fill in the entry with number op_tail, then store op_tail + 1 in
 * op_tail with release semantics. The operation has been carried out when op_head, loaded with
 * acquire semantics, has passed the number of the entry. The entry then has the result.
 *
 * To take an event: load flags and then event_tail, both with acquire semantics. If event_head
 * differs from event_tail, read the event with number event_head, then store event_head + 1 in
 * event_head with release semantics. If event_head equals event_tail, there is no event in the
 * ring. In this case, if flags had HWT_RINGS_MORE, HWT_IOC_ENTER brings more events; if flags had
 * HWT_RINGS_END, no event will come.
 *
 * Threads that queue operations in the same ring must take turns, and so must threads that take
 * events. A program that writes nonsense to this memory harms only itself.
 */
struct hwt_rings {
	__u32	op_head;
	__u32	event_tail;
	__u32	flags;
	__u32	reserved[13];
	__u32	op_tail;
	__u32	reserved2[15];
	__u32	event_head;
	__u32	reserved3[15];
};

#define HWT_RING_ENTRIES_MAX	65536

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
 * The rings become active when their memory is mapped as a whole; for another length or offset,
 * mmap() fails with EINVAL. Until they are active, a further call of HWT_IOC_RINGS with the same
 * sizes returns the same rings, so a program that could not map them may try again, or go on
 * without them. Active rings stay active when they are unmapped.
 *
 * While rings are active, read() fails with EBUSY, and HWT_IOC_ENTER moves events to the ring of
 * events, in their order and as far as there is room. Until an event is moved, it stays in its
 * timeout: the event is not lost, HWT_RINGS_MORE is set, and a modify or cancel withdraws the
 * event. An event in the ring counts as read: the id of a one-shot has ended, and the event cannot
 * be withdrawn. poll() reports EPOLLIN while there are events in the ring or waiting to be moved.
 *
 * Times in operations and events are in the time namespace of the caller of HWT_IOC_RINGS. The
 * rings are freed when the descriptors of the context are closed and the memory is unmapped.
 *
 *	EBUSY	the context has active rings, or rings of other sizes, or it has been stopped
 *	EINVAL	a number of entries or op_size is out of range, or op_size is no multiple of 8
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
 * @wait:       number of events to wait for, at most as many as the ring has entries. The wait ends
 *              when the ring has this number of events, or no more will come. 0: do not wait
 * @timeout_ns: maximum time to wait or, with HWT_ENTER_ABSOLUTE, the time at which the wait ends.
 *              HWT_NEVER: no limit
 * @sigmask:    with HWT_ENTER_SIGMASK, the signals that are blocked during the wait: signal n is
 *              bit n - 1. As in ppoll(), no signal comes between setting the mask and waiting.
 *              Without HWT_ENTER_SIGMASK: 0
 * @events:     out: number of events in the ring
 * @result:     out: 0: the requested events have come, or @wait is 0; -ETIME: the time is over;
 *              -EINTR: the wait was interrupted, as described below; -ESHUTDOWN: the context was
 *              stopped, and no more events will come
 *
 * The call carries out operations, then moves events to the ring, then waits and moves the events
 * that come during the wait. So if an operation withdraws an event, this event does not enter the
 * ring. A signal, task work of io_uring or the freezer may end the call before all operations are
 * carried out and all events are moved. op_head and HWT_RINGS_MORE show whether a further call is
 * needed.
 *
 * A wait is interrupted by a signal handler, with or without SA_RESTART, by a stop (SIGSTOP), a
 * tracer, a suspend, and task work of io_uring. If the call has carried out no operation, and
 * timeout_ns is a deadline or HWT_NEVER, the call then behaves as ppoll(): after a signal handler
 * it fails with EINTR, after any other interruption it goes on. If the call has carried out
 * operations, or timeout_ns is a duration, the call returns with -EINTR in @result, whether or not
 * a handler has run. So a program that is to sleep undisturbed submits its operations first, and
 * then waits in a second call, until a deadline. libhwt does so.
 *
 *	EINTR	a signal handler has run, and no operation was carried out; events may have been
 *		moved
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
 * These are commands for IORING_OP_URING_CMD on the descriptor. They are available if
 * HWT_FEATURE_URING is set, which requires Linux 6.7 or later. If they are not available,
 * IORING_OP_POLL_ADD and the rings above serve the same purpose. The context must have keys
 * (HWT_SETUP_KEYS). In the submission entry, cmd_op is the command, addr is the key, and cmd has a
 * struct hwt_uring_cmd. user_data belongs to the program or its library for io_uring. All other
 * members but opcode, flags and fd must be zero.
 *
 * HWT_URING_ARM	creates a one-shot timeout. The command completes when the timeout ends; the
 *			timeout has no event. cqe->res is 0 if the timeout has expired;
 *			-ECANCELED if the timeout was cancelled, its io_uring was closed, or the
 *			task that submitted the command has ended or called execve(); -ESHUTDOWN if
 *			the context was stopped; -EEXIST if the key has a timeout already; or an
 *			error of HWT_IOC_SCHEDULE.
 * HWT_URING_MODIFY	moves the timeout of the key. -ENOENT: the key has no timeout.
 * HWT_URING_CANCEL	ends the timeout of the key. If HWT_URING_ARM has created the timeout, the
 *			HWT_URING_ARM completes with -ECANCELED. -ENOENT: the key has no timeout.
 *			The struct hwt_uring_cmd must be zero.
 *
 * HWT_URING_MODIFY and HWT_URING_CANCEL complete at once, with 0 or a negative error. An unknown
 * command completes with -ENOTTY. With IORING_SETUP_IOPOLL, some kernels (6.12, but not 7.2)
 * accept only files that can be polled for completions: on these kernels, the commands of such an
 * io_uring complete with -EOPNOTSUPP.
 *
 * A command completes only once, so a periodic timeout cannot be a command. Schedule it by
 * HWT_IOC_SCHEDULE, and get its events with IORING_OP_READ, or with IORING_OP_POLL_ADD
 * (IORING_POLL_ADD_MULTI) and read().
 *
 * An armed command keeps the context, even if the last descriptor of the context is closed.
 * IORING_OP_ASYNC_CANCEL and IORING_OP_LINK_TIMEOUT do not end an armed command, because io_uring
 * does not pass them on to a file.
 */
#define HWT_URING_ARM		_IO(HWT_IOC_MAGIC, 0x40)
#define HWT_URING_MODIFY	_IO(HWT_IOC_MAGIC, 0x41)
#define HWT_URING_CANCEL	_IO(HWT_IOC_MAGIC, 0x42)

/**
 * struct hwt_uring_cmd - the content of sqe->cmd
 * @time_ns:  delay or deadline
 * @flags:    HWT_ARM_ABSOLUTE or 0
 * @slack_us: slack in microseconds, of a one-shot; 0 if a periodic timeout is modified
 */
struct hwt_uring_cmd {
	__aligned_u64	time_ns;
	__u32		flags;
	__u32		slack_us;
};

/* Sizes of the structures in their first version. Later versions are never smaller. */
#define HWT_INFO_SIZE_VER1	80
#define HWT_SETUP_SIZE_VER1	40
#define HWT_SCHEDULE_SIZE_VER1	56
#define HWT_MODIFY_SIZE_VER1	56
#define HWT_CANCEL_SIZE_VER1	24
#define HWT_GET_SIZE_VER1	64
#define HWT_STOP_SIZE_VER1	16
#define HWT_STATS_SIZE_VER1	104
#define HWT_LIST_SIZE_VER1	32
#define HWT_LIST_ENTRY_SIZE_VER1	64
#define HWT_OP_SIZE_VER1	64
#define HWT_RINGS_SIZE_VER1	40
#define HWT_ENTER_SIZE_VER1	40

/*
 * Maximum values of entry_size (struct hwt_list_args) and op_size (struct hwt_rings_args). No later
 * version of struct hwt_list_entry or struct hwt_op will be larger.
 */
#define HWT_LIST_ENTRY_SIZE_MAX	256
#define HWT_OP_SIZE_MAX		256

/* -- ioctls -------------------------------------------------------------- */

/* Each ioctl takes a pointer to its structure, and returns 0, or -1 with the error in errno. */
#define HWT_IOC_MAGIC		0xE7

#define HWT_IOC_INFO		_IO(HWT_IOC_MAGIC, 0x00)
#define HWT_IOC_SETUP		_IO(HWT_IOC_MAGIC, 0x01)
#define HWT_IOC_SCHEDULE	_IO(HWT_IOC_MAGIC, 0x02)
#define HWT_IOC_MODIFY		_IO(HWT_IOC_MAGIC, 0x03)
#define HWT_IOC_CANCEL		_IO(HWT_IOC_MAGIC, 0x04)
#define HWT_IOC_GET		_IO(HWT_IOC_MAGIC, 0x05)
#define HWT_IOC_STOP		_IO(HWT_IOC_MAGIC, 0x06)
#define HWT_IOC_STATS		_IO(HWT_IOC_MAGIC, 0x07)
#define HWT_IOC_LIST		_IO(HWT_IOC_MAGIC, 0x08)
#define HWT_IOC_RINGS		_IO(HWT_IOC_MAGIC, 0x09)
#define HWT_IOC_ENTER		_IO(HWT_IOC_MAGIC, 0x0a)

#endif /* _HWT_UAPI_H */
