/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * hwt - the interface of /dev/hwt for programs
 *
 * /dev/hwt belongs to root, and to whom an administrator opens it: docs/limits.md says what
 * they can take of the kernel's memory (charged to the memory cgroup of the caller) and
 * time. A user's contexts share a wheel, which is a kernel thread. So open() fails with ENOMEM, or
 * as HWT_IOC_SETUP does.
 *
 * A descriptor that is open for reading only can be read, polled and asked: INFO, GET, LIST,
 * STATS. All else fails with EBADF. Each open() makes a context, so one that
 * was opened so has no timeouts.
 *
 * An open file of /dev/hwt is a context: any number of timeouts on one
 * descriptor, with ids, events, limits and statistics of its own. HWT_IOC_SCHEDULE
 * makes a timeout and gives its id, HWT_IOC_MODIFY moves it, HWT_IOC_CANCEL ends
 * it. When its time has come there is an event to read:
 *
 *	read()	fills in an array of struct hwt_event, as many as there are and fit,
 *		in the order in which they came up. It returns their size in bytes.
 *		It waits for the first one; with O_NONBLOCK it fails with EAGAIN
 *		instead. EINVAL: the buffer is smaller than one event. EINTR: a signal
 *		came first. EFAULT: nothing could be stored; no event is lost by it.
 *		After HWT_IOC_STOP, when all events were read: 0, the end of the file.
 *	poll(), select(), epoll
 *		EPOLLIN: events are waiting. EPOLLIN and EPOLLHUP: the end of the file.
 *	close()	of the last descriptor of the open file, also by the death of the
 *		process, cancels and frees everything. A mapping of its rings counts as a
 *		descriptor, and so does a command of io_uring that is armed.
 *
 * A descriptor that is inherited, duplicated or sent to another process is the
 * same context. Threads and processes may use it at the same time without locks of
 * their own; each event is read by one of them.
 *
 * An event is kept in its timeout's own memory until it is read: events are never
 * lost and there is no queue to overflow. A periodic timeout that fires again
 * before its event was read counts that in the event's overruns.
 *
 * Ids
 *	A timeout's id ends when its last event is read (a one-shot's only event;
 *	after a stop, the one marked HWT_EVENT_LAST) or when it is cancelled; that of
 *	a command of io_uring when the command completes. An id is never 0. It is not
 *	given again by the same context until 2^32 - 1 others have been.
 *	A context with keys (HWT_SETUP_KEYS) has no such ids: the program names each
 *	timeout by a 64-bit number of its own, the address of an object for example. A
 *	schedule of a key that exists moves that timeout, so nothing has to be waited for.
 *
 * Times
 *	All are nanoseconds. Delays count from the call (in a ring: from when the
 *	operation is carried out), deadlines and times of firing are those of the wheel's
 *	clock, CLOCK_MONOTONIC unless HWT_IOC_SETUP said otherwise, as clock_gettime()
 *	tells it to the caller, in a time namespace too. A timeout fires at the first
 *	tick of the wheel at or after its deadline, never earlier, and with slack
 *	somewhere in [deadline, deadline + slack] rounded up likewise. A deadline that
 *	has passed fires at once (with slack: within the slack), but never inside the
 *	call. One that does not fit (2^63 and more, HWT_NEVER) never fires and can be
 *	cancelled like any other.
 *
 * Many at once
 *	HWT_IOC_RINGS makes two rings in memory that the program and the kernel
 *	share: operations go in by one, events come out by the other, and only
 *	HWT_IOC_ENTER, for many at once, is a system call. With
 *	io_uring, HWT_URING_ARM is a timeout whose event is a completion.
 *
 * Structures of arguments
 *	They are the same for 32-bit and 64-bit programs. Each starts with its size,
 *	which the program sets to sizeof; the ioctl numbers do not contain it, so
 *	they stay when a structure grows at its end. A smaller structure, from an older
 *	header, is taken as if zeroes followed; one smaller than the first
 *	version's is EINVAL. A larger one, from a newer header, is taken if what
 *	is unknown is all zero, else it is E2BIG. The elements of arrays and rings have
 *	sizes of their own, for which the same holds. Fields marked "out" are written only
 *	on success, and what they hold before does not matter. Flags and reserved
 *	fields must be zero where nothing else is said. The easiest way:
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
 *	EFAULT	the pointer is bad. If only the answer could not be stored, a timeout
 *		just made is taken back, unless it has a key; the others have been carried out.
 *	EINVAL	the size is too small, a flag is unknown, a reserved field is not zero
 *	E2BIG	something is set that this kernel does not know
 *
 * More errors are listed with each ioctl; after an error nothing has changed.
 */
#ifndef _HWT_UAPI_H
#define _HWT_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HWT_NEVER		(~(__u64)0)

/* -- Events -------------------------------------------------------------- */

/* struct hwt_event, kind */
#define HWT_EVENT_EXPIRED	1	/* its time has come */
#define HWT_EVENT_STOPPED	2	/* HWT_IOC_STOP came first: it never will */
#define HWT_EVENT_CLOCK_SET	3	/* the clock was set; see HWT_SETUP_TELL_CLOCK_SET */

/* struct hwt_event, flags */
#define HWT_EVENT_LAST		0x1	/* the id has ended with this event */

/**
 * struct hwt_event - what read() gives
 * @id:          the timeout
 * @user_data:   its data, as it was scheduled with or given since
 * @deadline_ns: when it was due: the deadline asked for, rounded up to a tick; with
 *               slack, the tick chosen; of a periodic one, the deadline it was armed for
 *               when it last fired: with a fixed rate, periods missed by then lie
 *               after it; HWT_NEVER if it was to be stopped or cancelled only
 * @fired_ns:    when the event came up, or, of overruns, was last added to
 * @overruns:    periods that have passed without an event of their own since the
 *               previous event; so overruns + 1 periods are over
 * @kind:        HWT_EVENT_EXPIRED, HWT_EVENT_STOPPED or HWT_EVENT_CLOCK_SET
 * @flags:       HWT_EVENT_LAST or 0; unknown ones are to be ignored
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
 * struct hwt_info_args - HWT_IOC_INFO: what is this context on?
 * @size:            sizeof(struct hwt_info_args)
 * @flags:           0
 * @event_size:      out: sizeof(struct hwt_event)
 * @clock:           out: clockid_t of the wheel's clock
 * @tick_ns:         out: tick of the wheel
 * @ticks_per_wheel: out: buckets of its level 0
 * @levels:          out: its levels
 * @now_ns:          out: time on its clock
 * @max_timeouts:    out: most timeouts the context can have, unread ones included
 * @max_pending:     out: most of them pending at once, 0 if there is no such limit
 * @features:        out: HWT_FEATURE_ bits
 * @max_user_timeouts: out: most timeouts all contexts of the user who opened this one can
 *                   have together; 0 if there is no such limit
 * @max_user_wheels: out: most wheels that they can have; 0 if there is no such limit
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
 * struct hwt_setup_args, flags. No flag has the value of a mode or a priority: one that is put
 * into the wrong member is EINVAL.
 */
#define HWT_SETUP_BOOTTIME		0x100	/* a wheel on CLOCK_BOOTTIME */
#define HWT_SETUP_REALTIME		0x200	/* a wheel on CLOCK_REALTIME */
#define HWT_SETUP_TELL_CLOCK_SET	0x400	/* an event when CLOCK_REALTIME is set */
#define HWT_SETUP_BUSY_WAIT		0x800	/* its thread never sleeps */
#define HWT_SETUP_CPU			0x1000	/* its thread runs on one CPU */
#define HWT_SETUP_PRIVATE		0x2000	/* a private wheel, if nothing else asks for it */
#define HWT_SETUP_KEYS			0x4000	/* ids are the program's keys */

/* struct hwt_setup_args, priority */
#define HWT_PRIO_NORMAL		0	/* its thread is as any other */
#define HWT_PRIO_FIFO_LOW	1	/* above all ordinary threads */
#define HWT_PRIO_FIFO		2	/* in the middle of the real-time ones */

/**
 * struct hwt_setup_args - HWT_IOC_SETUP: a private wheel, or keys
 * @size:            sizeof(struct hwt_setup_args)
 * @flags:           HWT_SETUP_BOOTTIME, HWT_SETUP_REALTIME: the clock; without either,
 *                   CLOCK_MONOTONIC. On CLOCK_REALTIME deadlines are dates: when the clock is
 *                   set forward, what it passes over fires at once; when it is set back, nothing
 *                   fires before its date comes again, and nothing fires twice.
 *                   HWT_SETUP_TELL_CLOCK_SET: only with HWT_SETUP_REALTIME. When the clock is
 *                   set (or the machine was suspended) there is an event of kind
 *                   HWT_EVENT_CLOCK_SET, with id and user_data 0: deadline_ns is what the
 *                   time would be without that, fired_ns what it is; overruns, how often it
 *                   was set again before the event was read. All timeouts stay as they are.
 *                   HWT_SETUP_BUSY_WAIT: its thread keeps a CPU busy to be on time; only
 *                   with HWT_SETUP_CPU. HWT_SETUP_CPU: its thread stays on @cpu.
 *                   HWT_SETUP_KEYS: ids are the program's keys; by itself, it asks for no
 *                   private wheel.
 * @tick_ns:         its tick; times @ticks_per_wheel it must be below 2^63. 0: the
 *                   module's default. One below the module's min_tick_us is raised to
 *                   that.
 * @ticks_per_wheel: buckets of level 0, 2 to 65536, rounded up to a power of two; each
 *                   higher level has as many, but 512 at most. 0: the default
 * @levels:          1 to 6; 0: the default
 * @max_pending:     most timeouts pending at once, below 2^63; 0: no limit but
 *                   max_timeouts. One whose firing has begun makes room, though it may
 *                   still be seen as pending for a moment.
 * @cpu:             where its thread is to run, with HWT_SETUP_CPU; else 0
 * @priority:        of its thread: HWT_PRIO_NORMAL, with HWT_SETUP_BUSY_WAIT nothing else,
 *                   HWT_PRIO_FIFO_LOW or HWT_PRIO_FIFO
 *
 * By default a context is on the wheel that the user's contexts share, with ids that the kernel
 * chooses. A private wheel is a kernel thread of its own, and seldom
 * needed: for another tick, another clock, or max_pending. All that is zero is the default. It
 * must be the first thing asked for. HWT_IOC_INFO tells the values after rounding.
 *
 *	EBUSY	the context has scheduled a timeout, has been set up, or has rings
 *	EINVAL	a value is out of range, or @cpu is not online
 *	EPERM	HWT_SETUP_BUSY_WAIT, HWT_SETUP_CPU and priorities but the normal one want
 *		CAP_SYS_NICE
 *	ENOSPC	the user has max_user_wheels
 *	EAGAIN	no thread more is allowed
 *	ENOMEM, EINTR	the wheel could not be made: no memory, killed
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

/* Limits, of which struct hwt_stats_args tells the last one that was met */
#define HWT_LIMIT_TIMEOUTS	1	/* max_timeouts, of the context */
#define HWT_LIMIT_USER_TIMEOUTS	2	/* max_user_timeouts, of all contexts of the user */
#define HWT_LIMIT_PENDING	3	/* max_pending, of the private wheel */
#define HWT_LIMIT_USER_WHEELS	4	/* max_user_wheels, in HWT_IOC_SETUP */

/**
 * struct hwt_schedule_args - HWT_IOC_SCHEDULE: a new timeout
 * @size:      sizeof(struct hwt_schedule_args)
 * @flags:     HWT_ARM_ABSOLUTE or 0
 * @mode:      HWT_MODE_
 * @was:       out: 0; with keys, the HWT_STATE_ bits that the timeout of the key had
 * @time_ns:   delay or deadline, of the first firing if it is periodic
 * @period_ns: period, not 0; of a one-shot: 0
 * @slack_ns:  how much later it may fire if that saves a wake-up; 0 if periodic
 * @user_data: anything; comes back with the events. With keys: 0, and the key comes back
 * @id:        out: the timeout's id; with keys: the key
 *
 * Timeouts of one tick come up in any order. With keys, a timeout of that key is moved, as by
 * HWT_IOC_MODIFY. One of another mode is cancelled, and a new one is made: @was is 0 then, and if
 * that fails the old one is gone.
 *
 *	EINVAL		mode, period_ns or slack_ns is not as said above
 *	ENOMEM		no memory, in the kernel or within the caller's memory cgroup,
 *			to which timeouts are charged
 *	ENOSPC		a limit is met: the context has max_timeouts, or the user max_user_timeouts
 *			(a cancelled one counts until its memory is free, within reclaim_ms), or
 *			max_pending are pending. HWT_IOC_STATS says which
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
 * @user_data: its new data, with HWT_ARM_USER_DATA
 * @was:       out: HWT_STATE_ bits, the state it was in
 * @reserved:  0
 *
 * The timeout goes on as if it had just been scheduled so, under the same id. An
 * event that was not read is withdrawn, overruns and all: @was has HWT_STATE_EVENT
 * then. A one-shot that had fired so becomes pending again.
 *
 *	EINVAL		period_ns or slack_ns is not as said above
 *	ENOENT		there is no such timeout (any more)
 *	ENOSPC		it was not pending, or its firing had begun, and max_pending others are
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
 * @was:   out: HWT_STATE_ bits, the state it was in; 0 with HWT_CANCEL_ALL
 * @count: out: how many were ended
 *
 * Its id ends, and an event that was not read is withdrawn with it. With HWT_CANCEL_ALL that holds
 * for each timeout that was there before the call; the context goes on.
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
 * struct hwt_get_args - HWT_IOC_GET: ask about a timeout
 * @size:         sizeof(struct hwt_get_args)
 * @flags:        0
 * @id:           the timeout
 * @state:        out: HWT_STATE_ bits
 * @mode:         out: HWT_MODE_
 * @user_data:    out: its data
 * @deadline_ns:  out: the deadline it is pending for, rounded up to a tick, or was last
 *                pending for; HWT_NEVER if it does not fit. With a fixed delay, while
 *                its firing is under way: an estimate.
 * @remaining_ns: out: time until then; 0 if it has passed or nothing is pending,
 *                HWT_NEVER if it never comes
 * @period_ns:    out: its period, 0 of a one-shot
 * @overruns:     out: periods without an event of their own since it was scheduled
 *                or modified, in events that were read and in the one that was not
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
 * struct hwt_list_entry - one of the timeouts that HWT_IOC_LIST tells of
 * @id:           the timeout
 * @user_data:    its data
 * @deadline_ns:  as of struct hwt_get_args
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
 * struct hwt_list_args - HWT_IOC_LIST: tell of all timeouts
 * @size:       sizeof(struct hwt_list_args)
 * @flags:      0
 * @cursor:     where to begin: 0, or what the call before has left here; out: where to go on
 * @entries:    address of an array of struct hwt_list_entry
 * @count:      how many fit in there, not 0; out: how many were stored; 0: there are no more
 * @entry_size: sizeof(struct hwt_list_entry)
 *
 * In no order. A timeout that is there from the first call to the last is told of exactly
 * once, one that comes or goes meanwhile at most once, each as it is at one instant. So a
 * program can save its timeouts, and make them again after a restart or a reboot: with the
 * remaining time as a delay, or, on CLOCK_REALTIME, with the deadline.
 *
 *	EINVAL	count is 0, or entry_size is too small or too large
 *	EINTR	a signal came before anything was stored
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
 * @stopped: out: how many this call has stopped before they could fire (again)
 *
 * From now on scheduling fails with ESHUTDOWN, for good. Each timeout that was pending
 * gets an event of kind HWT_EVENT_STOPPED, with the deadline it was waiting for and the
 * time of the stop; but a periodic one whose event was not read keeps that one, of kind
 * HWT_EVENT_EXPIRED. These events, and those of one-shots that have fired, can still be
 * read, all marked HWT_EVENT_LAST, or be withdrawn by HWT_IOC_CANCEL. Then read()
 * returns 0. Commands of io_uring complete with -ESHUTDOWN. Other contexts are not
 * concerned, whichever wheel they are on. A second stop finds nothing to do.
 */
struct hwt_stop_args {
	__u32		size;
	__u32		flags;
	__aligned_u64	stopped;
};

/**
 * struct hwt_stats_args - HWT_IOC_STATS: what the context has done since it was opened
 * @size:      sizeof(struct hwt_stats_args)
 * @flags:     0
 * @timeouts:  out: timeouts it has now, unread ones included
 * @pending:   out: those of them that are pending
 * @events:    out: events waiting to be read
 * @scheduled: out: timeouts made
 * @modified:  out: timeouts moved
 * @cancelled: out: timeouts ended by a cancel of whatever kind, by io_uring's too
 * @stopped:   out: timeouts ended by HWT_IOC_STOP
 * @expired:   out: firings; those of a periodic timeout count each
 * @overruns:  out: periods that passed without an event of their own
 * @read:      out: events read, or put into the ring of events
 * @rejected:  out: HWT_IOC_SCHEDULE and HWT_IOC_MODIFY refused with ENOSPC or ESHUTDOWN
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
 * @flags:        as the ioctl of that name takes them, but for HWT_CANCEL_ALL
 * @mode:         schedule: HWT_MODE_; get: out: likewise; else 0
 * @result:       out: 0 or more: done. The HWT_STATE_ bits of before (0: a new timeout), of get
 *                those of now. Negative: an errno, and nothing has changed. What
 *                it holds before does not matter.
 * @id:           modify, cancel, get: the timeout; schedule: out: its id. With keys: the key
 * @time_ns:      schedule, modify: delay or deadline
 * @deadline_ns:  get: out
 * @period_ns:    schedule, modify: the period; get: out
 * @slack_ns:     schedule, modify: the slack
 * @remaining_ns: get: out
 * @user_data:    schedule, modify: the data; get: out
 * @overruns:     get: out
 * @reserved:     else: 0
 *
 * What the ioctl of that name says of a member holds here, its errors too. Members that an
 * operation has no use for must be zero, but for those that are out: what they hold before
 * does not matter. Operations are carried out one after the other, in their order; one that fails
 * does so alone.
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
#define HWT_RINGS_END	0x2	/* the context was stopped: no event comes after these */

/**
 * struct hwt_rings - the beginning of the memory that HWT_IOC_RINGS makes
 * @op_head:    operations before this one have been carried out. The kernel's.
 * @event_tail: events before this one are there. The kernel's.
 * @flags:      HWT_RINGS_ bits. The kernel's.
 * @reserved:   0
 * @op_tail:    operations before this one may be carried out. The program's.
 * @reserved2:  0
 * @event_head: events before this one have been read. The program's.
 * @reserved3:  0
 *
 * All four count from 0 and wrap at 2^32; entry number n is at index n modulo the ring's
 * entries, which are a power of two.
 *
 * To queue an operation: if op_tail - op_head is less than the operations' ring has entries,
 * fill in the one at op_tail, then store op_tail + 1 with release semantics. When the kernel
 * has carried it out, op_head (load it with acquire semantics) is beyond it, and its result is
 * in its place.
 *
 * To reap an event: load flags and then event_tail, both with acquire semantics. If event_head
 * differs from event_tail, the event at event_head is there: store event_head + 1 with release
 * semantics when it has been read. If not, and flags has HWT_RINGS_MORE, HWT_IOC_ENTER brings
 * more; if it has HWT_RINGS_END, no event will come.
 *
 * Threads of a program that share a ring's end must take turns. A program that writes
 * nonsense here gets nonsense, and nobody else does.
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
 * struct hwt_rings_args - HWT_IOC_RINGS: make rings
 * @size:          sizeof(struct hwt_rings_args)
 * @flags:         0
 * @op_entries:    1 to HWT_RING_ENTRIES_MAX, rounded up to a power of two; out: entries of
 *                 the ring of operations
 * @event_entries: likewise, of the ring of events
 * @map_size:      out: what to mmap(), MAP_SHARED, at offset 0 of the descriptor; a struct
 *                 hwt_rings is at its beginning
 * @ops_offset:    out: where in there the ring of operations begins, struct hwt_op
 * @events_offset: out: where in there the ring of events begins, struct hwt_event
 * @op_size:       sizeof(struct hwt_op)
 * @reserved:      0
 *
 * Once they are mapped, HWT_IOC_ENTER moves events to the ring, in their order and as far as there
 * is room. Until then they stay in their timeouts: nothing is lost, HWT_RINGS_MORE is set, and
 * a modify or cancel withdraws them. An event in the ring is as good as read: the id of a
 * one-shot has ended, and nothing can be withdrawn. read() fails with EBUSY; poll() tells of
 * events that wait and of those in the ring. Deadlines in operations and events are in
 * the time namespace of the caller of HWT_IOC_RINGS. The rings go when the descriptor is
 * closed and the memory unmapped. Until they are mapped, the same call returns the same rings: a
 * program that could not map them may try again, or go on without.
 *
 *	EBUSY	the context has rings that are mapped, or others; or it has been stopped
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
#define HWT_ENTER_SIGMASK	0x2	/* sigmask is in force while it waits */

/**
 * struct hwt_enter_args - HWT_IOC_ENTER: the rings' system call
 * @size:       sizeof(struct hwt_enter_args)
 * @flags:      HWT_ENTER_ bits
 * @submit:     most operations to carry out; out: how many have been
 * @wait:       wait until so many events are in the ring (or as many as it has entries), or
 *              no more will come; 0: do not wait
 * @timeout_ns: how long to wait at most, or until when; HWT_NEVER: for as long as it takes
 * @sigmask:    with HWT_ENTER_SIGMASK, signals that are blocked while it waits: signal n is bit
 *              n - 1. As for ppoll(), setting and waiting cannot be separated. Else 0
 * @events:     out: events in the ring
 * @result:     out: 0: as many as asked for are there; -ETIME; -EINTR: a signal; -ESHUTDOWN: the
 *              context was stopped, and no more will come
 *
 * First operations are carried out, then events are moved to the ring: none of them is of a
 * timeout that these operations have moved or cancelled. Then it waits, and moves events that come
 * up meanwhile.
 *
 *	EINTR	a signal came before anything was done
 *	EINVAL	there are no rings; op_tail is further ahead of op_head than the ring has
 *		entries
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
 * Commands for IORING_OP_URING_CMD on the descriptor (sqe->cmd_op), if HWT_FEATURE_URING
 * says that they are there; it wants a kernel of 6.7 or later. On others,
 * IORING_OP_POLL_ADD and the rings above do the same. The context must have keys
 * (HWT_SETUP_KEYS). The key is in sqe->addr; sqe->user_data belongs to the program's runtime.
 *
 * HWT_URING_ARM	a new one-shot timeout. Completes when its time has come: cqe->res is
 *			0; -ECANCELED if it was cancelled, the ring was closed or the task has
 *			called execve(); -ESHUTDOWN if the context was stopped; else as
 *			HWT_IOC_SCHEDULE fails. There is no other event of it. -EEXIST: the
 *			context has a timeout of that key, whichever ring it came from.
 * HWT_URING_MODIFY	moves it. -ENOENT: there is none of that key.
 * HWT_URING_CANCEL	ends it; its own completion is -ECANCELED. -ENOENT: there is none.
 *			The struct hwt_uring_cmd must be zero.
 *
 * All else in the submission entry is zero. The two others complete with 0 or a negative error.
 * An unknown command is -ENOTTY; a ring with IORING_SETUP_IOPOLL gets -EOPNOTSUPP where the
 * kernel refuses all files that are not polled for completions (6.12 does, 7.2 does not). An
 * armed one keeps the context, also when its last descriptor is closed. IORING_OP_ASYNC_CANCEL and
 * IORING_OP_LINK_TIMEOUT do not reach it: io_uring does not pass them on to a file.
 */
#define HWT_URING_ARM		_IO(HWT_IOC_MAGIC, 0x40)
#define HWT_URING_MODIFY	_IO(HWT_IOC_MAGIC, 0x41)
#define HWT_URING_CANCEL	_IO(HWT_IOC_MAGIC, 0x42)

/**
 * struct hwt_uring_cmd - what is in sqe->cmd
 * @time_ns:  delay or deadline
 * @flags:    HWT_ARM_ABSOLUTE or 0
 * @slack_us: slack, in microseconds
 */
struct hwt_uring_cmd {
	__aligned_u64	time_ns;
	__u32		flags;
	__u32		slack_us;
};

/* The sizes of the first version: no structure is ever smaller. */
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

/* Elements of arrays and rings are never larger. */
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
