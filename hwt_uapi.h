/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * hwt - the interface of /dev/hwt for programs
 *
 * An open file of /dev/hwt is a context: any number of timeouts on one descriptor, with ids,
 * events, limits and statistics of its own. HWT_IOC_SCHEDULE creates a timeout and returns its
 * id, HWT_IOC_MODIFY moves the timeout, HWT_IOC_CANCEL ends it. When a timeout expires, the
 * context has an event to read:
 *
 *	read()	stores events as an array of struct hwt_event, in the order in which they
 *		came up, until there are no more or the buffer is full. It returns their
 *		size in bytes. It waits for the first event; with O_NONBLOCK it fails with
 *		EAGAIN instead. After HWT_IOC_STOP, when all events were read, it returns 0:
 *		the end of the file. EINVAL: the buffer is smaller than one event. EINTR: a
 *		signal came first. EFAULT: not even one event could be stored; none is lost.
 *	poll(), select(), epoll
 *		EPOLLIN: events are waiting. EPOLLIN and EPOLLHUP: the end of the file. A loop
 *		with other descriptors reads once each time; what is left is reported again,
 *		except by EPOLLET.
 *	close()	of the last descriptor of the open file, also by the death of the process,
 *		cancels and frees everything. A mapping of the rings counts as a descriptor,
 *		and so does an armed command of io_uring.
 *
 * A descriptor that is inherited, duplicated or sent to another process is the same context.
 * Threads and processes may use a context at the same time without locks of their own; each
 * event is read by one of them. A descriptor that is open for reading only takes read(), poll()
 * and the ioctls INFO, GET, LIST and STATS; all other ioctls fail with EBADF. Each open()
 * creates a new context, so a context that was opened for reading only never has timeouts.
 *
 * The device node is created for root only; an administrator may give it to other users.
 * docs/limits.md lists the limits on the kernel's memory (charged to the memory cgroup of the
 * caller) and time that they can take. The contexts of a user share a wheel, which is a kernel
 * thread. If open() has to create this wheel, it may fail as HWT_IOC_SETUP does; it fails with
 * ENOMEM if there is no memory.
 *
 * An event is kept in its timeout's own memory until it is read: events are never lost, and
 * there is no queue to overflow. A periodic timeout that fires again before its event was read
 * counts this firing in the event's overruns.
 *
 * Ids
 *	The id of a timeout ends when its event with HWT_EVENT_LAST is read (a one-shot's only
 *	event; a periodic timeout's event after a stop), or when the timeout is cancelled. An id
 *	is never 0. A context uses an id again only after 2^32 - 1 others.
 *	A context with keys (HWT_SETUP_KEYS) has no such ids: the program names each timeout by a
 *	64-bit number of its own, for example the address of an object. HWT_IOC_SCHEDULE of a key
 *	that exists moves that timeout, so a program need not know whether the timeout exists.
 *
 * Times
 *	All times are nanoseconds. Delays count from the call; in a ring or a command of io_uring,
 *	from the time at which the operation is carried out. Deadlines and reported times are on
 *	the wheel's clock (CLOCK_MONOTONIC unless HWT_IOC_SETUP chose another), as clock_gettime()
 *	returns it to the caller, also in a time namespace. A timeout fires at the first tick of
 *	the wheel at or after its deadline, never earlier; with a slack, somewhere in [deadline,
 *	deadline + slack], also rounded up. A delay becomes a deadline at the call: on
 *	CLOCK_REALTIME, a set of the clock shortens or prolongs it, unlike a relative timerfd, so
 *	use another clock for delays. A deadline that has passed fires at once (with slack:
 *	within the slack), but never inside the call. A deadline that does not fit (2^63 and more,
 *	HWT_NEVER) never fires, and can be cancelled.
 *
 * Many at once
 *	HWT_IOC_RINGS creates two rings in memory that the program and the kernel share:
 *	operations enter by the first, events leave by the second, and the one system call is
 *	HWT_IOC_ENTER, which handles many of both. With io_uring, HWT_URING_ARM creates a timeout
 *	whose expiry is a completion.
 *
 * Structures of arguments
 *	They are the same for 32-bit and 64-bit programs. Each starts with its size, which the
 *	program sets to sizeof. The ioctl numbers do not contain the size, so they stay when a
 *	structure grows at its end. A smaller structure, from an older header, is read as if
 *	zeroes followed; a structure smaller than that of the first version fails with EINVAL. A
 *	larger structure, from a newer header, is accepted if all members that the kernel does not
 *	know are zero, else the call fails with E2BIG. The same rules hold for the elements of
 *	arrays and rings, which have sizes of their own. Members marked "out" are written on
 *	success only, and their previous content does not matter. Flags and reserved members must
 *	be zero unless stated otherwise. The easiest way:
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
 *	ENOTTY	unknown ioctl
 *	EFAULT	the address is bad. If only the answer could not be stored, a new timeout is
 *		cancelled, unless it has a key; any other operation has been carried out.
 *	EINVAL	the size is too small, a flag is unknown, a reserved member is not zero
 *	E2BIG	a member is set that this kernel does not know, or size is larger than a page
 *
 * Further errors are listed with each ioctl. After an error nothing has changed, unless the
 * description says otherwise.
 */
#ifndef _HWT_UAPI_H
#define _HWT_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HWT_NEVER		(~(__u64)0)

/* -- Events -------------------------------------------------------------- */

/* struct hwt_event, kind */
#define HWT_EVENT_EXPIRED	1	/* the timeout has expired */
#define HWT_EVENT_STOPPED	2	/* HWT_IOC_STOP came first: it will not expire */
#define HWT_EVENT_CLOCK_SET	3	/* the clock was set; see HWT_SETUP_TELL_CLOCK_SET */

/* struct hwt_event, flags */
#define HWT_EVENT_LAST		0x1	/* the id has ended with this event */

/**
 * struct hwt_event - an event, as read() stores it
 * @id:          the timeout's id or key; 0 if @kind is HWT_EVENT_CLOCK_SET
 * @user_data:   its data, as last set; with keys, the key
 * @deadline_ns: its deadline: the requested one, rounded up to a tick; with slack, the
 *               chosen tick. For a periodic timeout, the deadline of its latest firing: with
 *               a fixed rate, missed periods lie after it. HWT_NEVER if the deadline did not
 *               fit
 * @fired_ns:    time of the latest firing, or of the stop
 * @overruns:    periods without an event of their own since the previous event; so
 *               overruns + 1 periods are over
 * @kind:        HWT_EVENT_EXPIRED, HWT_EVENT_STOPPED or HWT_EVENT_CLOCK_SET
 * @flags:       HWT_EVENT_LAST or 0; programs ignore unknown bits
 * @reserved:    0
 *
 * Its size is part of the ABI and does not change.
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

/* struct hwt_info_args, features */
#define HWT_FEATURE_SETUP	0x1	/* HWT_IOC_SETUP: private wheels */
#define HWT_FEATURE_BOOTTIME	0x2	/* ... on CLOCK_BOOTTIME */
#define HWT_FEATURE_REALTIME	0x4	/* ... on CLOCK_REALTIME */
#define HWT_FEATURE_LIST	0x8	/* HWT_IOC_LIST */
#define HWT_FEATURE_RINGS	0x10	/* HWT_IOC_RINGS, HWT_IOC_ENTER */
#define HWT_FEATURE_URING	0x20	/* HWT_URING_ARM and the others */
#define HWT_FEATURE_PLACE	0x40	/* HWT_IOC_SETUP: busy waiting, CPU, priority */
#define HWT_FEATURE_KEYS	0x80	/* HWT_IOC_SETUP: HWT_SETUP_KEYS */

/**
 * struct hwt_info_args - HWT_IOC_INFO: describe the context
 * @size:            sizeof(struct hwt_info_args)
 * @flags:           0
 * @event_size:      out: sizeof(struct hwt_event)
 * @clock:           out: clockid_t of the wheel's clock
 * @tick_ns:         out: tick of the wheel
 * @ticks_per_wheel: out: buckets of the wheel's level 0
 * @levels:          out: levels of the wheel
 * @now_ns:          out: time on the wheel's clock
 * @max_timeouts:    out: most timeouts the context can have, those with an unread event included
 * @max_pending:     out: most timeouts pending at once; 0 if there is no such limit
 * @features:        out: HWT_FEATURE_ bits
 * @max_user_timeouts: out: most timeouts all contexts of the user who opened this one can
 *                   have together; 0 if there is no such limit
 * @max_user_wheels: out: most wheels that these contexts can have; 0 if there is no such limit
 * @keys:            out: 1: ids are the program's keys (HWT_SETUP_KEYS); else 0
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
 * struct hwt_setup_args, flags. No flag has the value of a mode or a priority, so a constant in
 * the wrong member fails with EINVAL.
 */
#define HWT_SETUP_BOOTTIME		0x100	/* a wheel on CLOCK_BOOTTIME */
#define HWT_SETUP_REALTIME		0x200	/* a wheel on CLOCK_REALTIME */
#define HWT_SETUP_TELL_CLOCK_SET	0x400	/* an event when CLOCK_REALTIME is set */
#define HWT_SETUP_BUSY_WAIT		0x800	/* the wheel's thread never sleeps */
#define HWT_SETUP_CPU			0x1000	/* the wheel's thread runs on one CPU */
#define HWT_SETUP_PRIVATE		0x2000	/* a private wheel, even if all else is default */
#define HWT_SETUP_KEYS			0x4000	/* ids are the program's keys */

/* struct hwt_setup_args, priority */
#define HWT_PRIO_NORMAL		0	/* the wheel's thread is an ordinary one */
#define HWT_PRIO_FIFO_LOW	1	/* above all ordinary threads */
#define HWT_PRIO_FIFO		2	/* in the middle of the real-time ones */

/**
 * struct hwt_setup_args - HWT_IOC_SETUP: ask for a private wheel, or for keys
 * @size:            sizeof(struct hwt_setup_args)
 * @flags:           HWT_SETUP_BOOTTIME, HWT_SETUP_REALTIME: the wheel's clock; without either,
 *                   CLOCK_MONOTONIC. On CLOCK_REALTIME deadlines, and the ends of delays and
 *                   periods, are dates: when the clock is set forward, the timeouts that it
 *                   passes over fire at once; when it is set back, none fires before its date
 *                   comes again, and none fires twice.
 *                   HWT_SETUP_TELL_CLOCK_SET: only with HWT_SETUP_REALTIME. When the clock is
 *                   set (or the machine was suspended) there is an event of kind
 *                   HWT_EVENT_CLOCK_SET, with id and user_data 0: deadline_ns is the time as
 *                   it would be without the set, fired_ns the new time, overruns the number of
 *                   further sets before the event was read. All timeouts stay as they are.
 *                   HWT_SETUP_BUSY_WAIT: the wheel's thread keeps a CPU busy to be on time;
 *                   only with HWT_SETUP_CPU. HWT_SETUP_CPU: the thread stays on @cpu.
 *                   HWT_SETUP_KEYS: ids are the program's keys; by itself, this flag asks for
 *                   no private wheel.
 * @tick_ns:         the wheel's tick; times @ticks_per_wheel it must be below 2^63. 0: the
 *                   module's default. A tick below the module's min_tick_us is raised to that.
 * @ticks_per_wheel: buckets of level 0, 2 to 65536, rounded up to a power of two; each
 *                   higher level has as many, but 512 at most. 0: the default
 * @levels:          1 to 6; 0: the default
 * @max_pending:     most timeouts pending at once, below 2^63; 0: no limit but
 *                   max_timeouts. A timeout whose firing has begun makes room, though it may
 *                   still be reported as pending for a moment.
 * @cpu:             the CPU of the wheel's thread, with HWT_SETUP_CPU; else 0
 * @priority:        of the wheel's thread: HWT_PRIO_NORMAL, HWT_PRIO_FIFO_LOW or HWT_PRIO_FIFO;
 *                   with HWT_SETUP_BUSY_WAIT only the first
 *
 * By default a context is on the wheel that the user's contexts share, with ids that the kernel
 * chooses. A private wheel has a kernel thread of its own, and is seldom needed: for another tick,
 * another clock, or max_pending. A member that is zero means the default. HWT_IOC_SETUP must come
 * before the first timeout and before rings, once. HWT_IOC_INFO returns the values after rounding.
 *
 *	EBUSY	the context has scheduled a timeout, has been set up, or has rings
 *	EINVAL	a value is out of range or excluded by another one, or @cpu is not online
 *	EPERM	HWT_SETUP_BUSY_WAIT, HWT_SETUP_CPU and priorities but the normal one require
 *		CAP_SYS_NICE
 *	ENOSPC	the user has max_user_wheels wheels already
 *	ENOMEM	no memory, or the system allows no further thread
 *	EINTR	the task was killed meanwhile
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

/* mode */
#define HWT_MODE_ONE_SHOT	0	/* fires once */
#define HWT_MODE_FIXED_RATE	1	/* every period, counted from its first deadline */
#define HWT_MODE_FIXED_DELAY	2	/* each time one period after it fired */

/* flags of HWT_IOC_SCHEDULE and HWT_IOC_MODIFY */
#define HWT_ARM_ABSOLUTE	0x10	/* time_ns is a deadline, else a delay */
/* flags of HWT_IOC_MODIFY */
#define HWT_ARM_USER_DATA	0x20	/* user_data is new, else it stays */

/* struct hwt_stats_args, limit: the last limit that was met */
#define HWT_LIMIT_TIMEOUTS	1	/* max_timeouts, of the context */
#define HWT_LIMIT_USER_TIMEOUTS	2	/* max_user_timeouts, of all contexts of the user */
#define HWT_LIMIT_PENDING	3	/* max_pending, of the private wheel */
#define HWT_LIMIT_USER_WHEELS	4	/* max_user_wheels, in HWT_IOC_SETUP */

/**
 * struct hwt_schedule_args - HWT_IOC_SCHEDULE: create a timeout
 * @size:      sizeof(struct hwt_schedule_args)
 * @flags:     HWT_ARM_ABSOLUTE or 0
 * @mode:      HWT_MODE_
 * @was:       out: 0; with keys, the HWT_STATE_ bits of the timeout that was moved
 * @time_ns:   delay or deadline, of the first firing if it is periodic
 * @period_ns: period, not 0; of a one-shot: 0
 * @slack_ns:  how much later it may fire if that saves a wake-up; 0 if periodic
 * @user_data: anything; comes back with the events. With keys: 0; the key comes back instead
 * @id:        out: the timeout's id; with keys: the key, from the program
 *
 * Timeouts of one tick come up in any order. With keys, the timeout of a key that exists is moved,
 * as HWT_IOC_MODIFY does. If the mode differs, a new timeout takes the place of that one, which is
 * cancelled, and @was is 0; if the new timeout cannot be created, the old one stays as it is.
 *
 *	EINVAL		mode, period_ns, slack_ns or user_data is not as described above
 *	ENOMEM		no memory, in the kernel or within the caller's memory cgroup,
 *			to which timeouts are charged
 *	ENOSPC		a limit is met: the context has max_timeouts, or the user max_user_timeouts
 *			(a cancelled timeout counts until its memory is free, within reclaim_ms),
 *			or max_pending are pending. HWT_IOC_STATS returns which limit
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
 * The state of a timeout, as bits. A one-shot is either PENDING or has an EVENT; a
 * periodic one is PENDING and may have an EVENT too. After a stop each has an EVENT
 * and nothing is PENDING.
 */
#define HWT_STATE_PENDING	0x1	/* it will fire */
#define HWT_STATE_EVENT		0x2	/* it has an event that was not read yet */

/**
 * struct hwt_modify_args - HWT_IOC_MODIFY: move a timeout
 * @size:      sizeof(struct hwt_modify_args)
 * @flags:     HWT_ARM_ABSOLUTE; HWT_ARM_USER_DATA, without keys
 * @id:        the timeout
 * @time_ns:   its new delay or deadline
 * @period_ns: its new period, 0 to keep it; of a one-shot: 0
 * @slack_ns:  its new slack; 0 if periodic
 * @user_data: its new data, with HWT_ARM_USER_DATA; else 0
 * @was:       out: HWT_STATE_ bits, its previous state
 * @reserved:  0
 *
 * The timeout is scheduled again, under the same id. An unread event is withdrawn with its
 * overruns: @was has HWT_STATE_EVENT then. A one-shot that had fired becomes pending again.
 *
 *	EINVAL		period_ns, slack_ns or user_data is not as described above, or
 *			HWT_ARM_USER_DATA with keys
 *	ENOENT		there is no such timeout (any more)
 *	ENOSPC		max_pending others are pending, and the timeout was not, or its firing had
 *			begun
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

/* struct hwt_cancel_args, flags */
#define HWT_CANCEL_ALL		0x40	/* all timeouts of the context */

/**
 * struct hwt_cancel_args - HWT_IOC_CANCEL: end a timeout, or all
 * @size:  sizeof(struct hwt_cancel_args)
 * @flags: HWT_CANCEL_ALL or 0
 * @id:    the timeout; 0 with HWT_CANCEL_ALL
 * @was:   out: HWT_STATE_ bits, its previous state; 0 with HWT_CANCEL_ALL
 * @count: out: number of timeouts ended
 *
 * The timeout will not fire, an unread event is withdrawn, and the id ends. With HWT_CANCEL_ALL
 * that holds for each timeout that was there before the call; the context goes on.
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
 * @user_data:    out: its data
 * @deadline_ns:  out: the deadline for which the timeout is, or was last, pending, rounded up
 *                to a tick; HWT_NEVER if it does not fit. With a fixed delay, while the timeout
 *                is firing: an estimate.
 * @remaining_ns: out: time until the deadline; 0 if it has passed or the timeout is not
 *                pending, HWT_NEVER if it never comes
 * @period_ns:    out: its period, 0 of a one-shot
 * @overruns:     out: periods without an event of their own since the timeout was scheduled or
 *                modified, in all events that were read and in the unread one
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
 * @id:           the timeout
 * @user_data:    its data
 * @deadline_ns:  as in struct hwt_get_args
 * @remaining_ns: likewise
 * @period_ns:    likewise
 * @overruns:     likewise
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
 * @cursor:     0 to begin, else the value that the previous call has left here; out: for the
 *              next call
 * @entries:    address of an array of struct hwt_list_entry
 * @count:      number of entries that fit, not 0; out: number stored; 0: there are no more
 * @entry_size: sizeof(struct hwt_list_entry)
 *
 * The timeouts come in no order. A timeout that exists from the first call to the last is
 * described exactly once, a timeout that is created or ends meanwhile at most once, each as it
 * is at one instant. So a program can save its timeouts, and create them again after a restart or
 * a reboot: with the remaining time as a delay, or, on CLOCK_REALTIME, with the deadline.
 *
 *	EINVAL	count is 0, or entry_size is too small or too large
 *	ENOMEM	no memory
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
 * From now on schedules and modifies fail with ESHUTDOWN, for good. Each timeout that was pending
 * gets an event of kind HWT_EVENT_STOPPED, with the deadline it was waiting for and the
 * time of the stop; but a periodic one whose event was not read keeps that one, of kind
 * HWT_EVENT_EXPIRED. These events, and those of one-shots that have fired, can still be
 * read, all marked HWT_EVENT_LAST, or be withdrawn by HWT_IOC_CANCEL. After the last of
 * them read() returns 0. Commands of io_uring complete with -ESHUTDOWN. Other contexts are
 * not affected, whichever wheel they are on. A second stop does nothing.
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
 * @timeouts:  out: timeouts the context has now, those with an unread event included
 * @pending:   out: those of them that are pending
 * @events:    out: events waiting to be read
 * @scheduled: out: timeouts created
 * @modified:  out: timeouts moved
 * @cancelled: out: timeouts ended by a cancel of any kind, also by io_uring's
 * @stopped:   out: timeouts ended by HWT_IOC_STOP
 * @expired:   out: firings; each firing of a periodic timeout counts
 * @overruns:  out: periods that passed without an event of their own
 * @read:      out: events read, or moved to the ring of events
 * @rejected:  out: schedules and modifies of any kind refused with ENOSPC or ESHUTDOWN
 * @limit:     out: HWT_LIMIT_, the last limit that was met; 0: none
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

/* struct hwt_op, opcode */
#define HWT_OP_SCHEDULE		1	/* as HWT_IOC_SCHEDULE */
#define HWT_OP_MODIFY		2	/* as HWT_IOC_MODIFY */
#define HWT_OP_CANCEL		3	/* as HWT_IOC_CANCEL */
#define HWT_OP_GET		4	/* as HWT_IOC_GET */

/**
 * struct hwt_op - an operation in a ring
 * @opcode:       HWT_OP_
 * @flags:        those of the ioctl of that name, without HWT_CANCEL_ALL
 * @mode:         schedule: HWT_MODE_; get: out: HWT_MODE_; else 0
 * @result:       out: 0 or more: the operation is done, and these are the previous HWT_STATE_
 *                bits of the timeout (0: it is new), for get the present ones. Negative: an
 *                errno
 * @id:           modify, cancel, get: the timeout; schedule: out: its id. With keys: the key
 * @time_ns:      schedule, modify: delay or deadline
 * @deadline_ns:  get: out
 * @period_ns:    schedule, modify: the period; get: out
 * @slack_ns:     schedule, modify: the slack
 * @remaining_ns: get: out
 * @user_data:    schedule, modify: the data; get: out
 * @overruns:     get: out
 * @reserved:     schedule, modify, cancel: 0
 *
 * Members mean the same as in the ioctl of that name, and the errors are the same. Members that an
 * operation does not use must be zero, except those marked "out", whose previous content does not
 * matter. Operations are carried out one after the other, in their order; an operation that fails
 * does not affect the others.
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

/* struct hwt_rings, flags */
#define HWT_RINGS_MORE	0x1	/* events wait: HWT_IOC_ENTER brings them into the ring */
#define HWT_RINGS_END	0x2	/* stopped context: no event comes after those in the ring */

/**
 * struct hwt_rings - the beginning of the memory that HWT_IOC_RINGS creates
 * @op_head:    operations before this one have been carried out; written by the kernel
 * @event_tail: events before this one are there; written by the kernel
 * @flags:      HWT_RINGS_ bits; written by the kernel
 * @reserved:   0
 * @op_tail:    operations before this one may be carried out; written by the program
 * @reserved2:  0
 * @event_head: events before this one have been read; written by the program
 * @reserved3:  0
 *
 * The heads and tails count from 0 and wrap at 2^32; entry number n is at index n modulo the
 * number of the ring's entries, which is a power of two.
 *
 * To queue an operation: if op_tail - op_head is less than the number of entries of the ring of
 * operations, fill in the entry at op_tail, then store op_tail + 1 with release semantics. The
 * operation has been carried out when op_head, loaded with acquire semantics, is beyond the
 * entry; the entry then holds the result.
 *
 * To reap an event: load flags and then event_tail, both with acquire semantics. If event_head
 * differs from event_tail, read the event at event_head, then store event_head + 1 with release
 * semantics. If they are equal and flags had HWT_RINGS_MORE, HWT_IOC_ENTER brings more events; if
 * flags had HWT_RINGS_END, no event will come.
 *
 * Threads of a program that share an end of a ring must take turns. A program that writes
 * nonsense here harms only itself.
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
 * @op_entries:    1 to HWT_RING_ENTRIES_MAX, rounded up to a power of two; out: entries of
 *                 the ring of operations
 * @event_entries: likewise, of the ring of events
 * @map_size:      out: number of bytes to mmap(), with MAP_SHARED, at offset 0 of the descriptor;
 *                 this memory begins with a struct hwt_rings
 * @ops_offset:    out: offset of the ring of operations in this memory, an array of struct hwt_op
 * @events_offset: out: offset of the ring of events in this memory, an array of struct hwt_event
 * @op_size:       sizeof(struct hwt_op)
 * @reserved:      0
 *
 * Rings become active when they are mapped, as a whole: another length or offset is EINVAL. Until
 * then the same call returns the same rings: a program that could not map them may try again, or
 * go on without. Unmapped rings stay active. With active rings, read() fails
 * with EBUSY, and HWT_IOC_ENTER moves events to the ring, in their order and as far as there is
 * room. Until an event is moved, it stays in its timeout: it is not lost, HWT_RINGS_MORE is set,
 * and a modify or cancel withdraws it. An event in the ring counts as read: the id of a one-shot
 * has ended, and the event cannot be withdrawn. poll() reports EPOLLIN for events that wait and for
 * events in the ring. Times in operations and events are in the time namespace of the caller of
 * HWT_IOC_RINGS. The rings end when the descriptors are closed and the memory is unmapped.
 *
 *	EBUSY	the context has rings that are mapped, or of other sizes; or it has been stopped
 *	EINVAL	entries or op_size are out of range, or op_size is no multiple of 8
 *	ENOMEM	no memory
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

/* struct hwt_enter_args, flags */
#define HWT_ENTER_ABSOLUTE	0x1	/* timeout_ns is a deadline on CLOCK_MONOTONIC */
#define HWT_ENTER_SIGMASK	0x2	/* sigmask is in force during the wait */

/**
 * struct hwt_enter_args - HWT_IOC_ENTER: carry out operations, get events
 * @size:       sizeof(struct hwt_enter_args)
 * @flags:      HWT_ENTER_ bits
 * @submit:     most operations to carry out; out: number carried out, fewer if a signal came
 * @wait:       wait until this number of events is in the ring (or as many as it has entries), or
 *              no more will come; 0: do not wait
 * @timeout_ns: most time to wait; with HWT_ENTER_ABSOLUTE the end of the wait; HWT_NEVER: no limit
 * @sigmask:    with HWT_ENTER_SIGMASK, signals that are blocked during the wait: signal n is bit
 *              n - 1. As for ppoll(), no signal comes between setting the mask and waiting. Else 0
 * @events:     out: events in the ring
 * @result:     out: 0: the requested events are there, or @wait is 0; -ETIME: the time is over;
 *              -EINTR: the wait was interrupted, see below; -ESHUTDOWN: the context was stopped,
 *              and no more will come
 *
 * The call carries out operations, then moves events to the ring, then waits and moves events that
 * come up meanwhile. So an event that one of the operations withdraws does not enter the ring. A
 * signal (or task work of io_uring, the freezer) ends the call after some operations and events:
 * op_head and HWT_RINGS_MORE show that a further call is needed.
 *
 * A wait is interrupted by a signal handler, with or without SA_RESTART, by a stop (SIGSTOP), a
 * tracer, a suspend, and by task work of io_uring. If the call has carried out no operation, and
 * timeout_ns is a deadline or has no limit, the call goes on unless a handler has run, as ppoll()
 * does; after a handler it fails with EINTR. Otherwise @result is -EINTR, whether or not a handler
 * has run. So a program that is to sleep undisturbed submits first, and then waits in a second
 * call, until a deadline. libhwt does so.
 *
 *	EINTR	a signal handler has run, and no operation was carried out; events may have been
 *		moved
 *	EINVAL	the context has no mapped rings; op_tail is further ahead of op_head than the
 *		ring has entries; or sigmask is set without its flag
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
 * Commands for IORING_OP_URING_CMD on the descriptor (sqe->cmd_op), if HWT_FEATURE_URING is set,
 * which requires Linux 6.7 or later. Without it, IORING_OP_POLL_ADD and the rings above do the
 * same. The context must have keys (HWT_SETUP_KEYS). The key is in sqe->addr; sqe->user_data
 * belongs to the program or its runtime.
 *
 * HWT_URING_ARM	creates a one-shot timeout, and completes when that ends; the timeout has no
 *			other event. cqe->res is 0: it has expired; -ECANCELED: it was cancelled,
 *			its io_uring was closed, or the task has ended or called execve();
 *			-ESHUTDOWN: the context was stopped; -EEXIST: the context has a timeout
 *			of that key already; or an error of HWT_IOC_SCHEDULE.
 * HWT_URING_MODIFY	moves the timeout of the key. -ENOENT: there is none.
 * HWT_URING_CANCEL	ends the timeout of the key. An armed command of this key completes with
 *			-ECANCELED. -ENOENT: there is none. The struct hwt_uring_cmd must be zero.
 *
 * A command completes once, so none is periodic: schedule a periodic timeout, and get its events
 * with IORING_OP_READ, or with IORING_OP_POLL_ADD (IORING_POLL_ADD_MULTI) and read().
 *
 * All other members of the submission entry must be zero. MODIFY and CANCEL complete at once, with
 * 0 or a negative error. An unknown command is -ENOTTY; a ring with IORING_SETUP_IOPOLL gets
 * -EOPNOTSUPP where the kernel refuses all files that are not polled for completions (6.12 does,
 * 7.2 does not). An armed command keeps the context, also when its last descriptor is closed.
 * IORING_OP_ASYNC_CANCEL and IORING_OP_LINK_TIMEOUT do not reach an armed command: io_uring does
 * not pass them on to a file.
 */
#define HWT_URING_ARM		_IO(HWT_IOC_MAGIC, 0x40)
#define HWT_URING_MODIFY	_IO(HWT_IOC_MAGIC, 0x41)
#define HWT_URING_CANCEL	_IO(HWT_IOC_MAGIC, 0x42)

/**
 * struct hwt_uring_cmd - the content of sqe->cmd
 * @time_ns:  delay or deadline
 * @flags:    HWT_ARM_ABSOLUTE or 0
 * @slack_us: slack, in microseconds
 */
struct hwt_uring_cmd {
	__aligned_u64	time_ns;
	__u32		flags;
	__u32		slack_us;
};

/* The sizes of the first version: all later versions of a structure have at least this size. */
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

/* The maximum sizes of the elements of arrays and rings, in all versions. */
#define HWT_LIST_ENTRY_SIZE_MAX	256
#define HWT_OP_SIZE_MAX		256

/* -- ioctls -------------------------------------------------------------- */

/* Each takes a pointer to its structure, and returns 0, or -1 with errno. */
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
