/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, hwt:* of perf, trace-cmd and bpftrace
 *
 * Off, each is one instruction that does nothing. Times are nanoseconds on the wheel's clock,
 * ticks turned into them; U64_MAX (-1) is never. A wheel is known by its name, which need not
 * be its own alone; a timeout by its address, which may be used for another later on.
 *
 * They come from where things happen, NMI included, and after they did: what is said of a schedule
 * or a cancel is true. So on another CPU the timeout may be seen to fire a little before that.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hwt

#if !defined(_HWT_CORE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _HWT_CORE_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>

#include "core/clock.h"

/*
 * hwt_schedule - a timeout was scheduled, or was not
 *
 * @expires is what was asked for, rounded up to the tick, and moved within the slack;
 * hwt_schedule_earlier() may have left an earlier deadline. @ret is what the call returns:
 * HWT_WAS_PENDING (1) and HWT_WAS_HELD (2), ored, or an error. A periodic timeout is scheduled
 * once; that it is armed again after a callback is not told.
 */
TRACE_EVENT(hwt_schedule,
	    TP_PROTO(const struct hwt_wheel *wheel, const struct hwt_timeout *timeout,
		     const void *function, u64 tick, int ret),
	    TP_ARGS(wheel, timeout, function, tick, ret),
	    TP_STRUCT__entry(__field(const void *, timeout)
			     __field(const void *, function)
			     __field(u64, expires)
			     __field(int, ret)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->timeout = timeout;
			   __entry->function = function;
			   __entry->expires = hwt_tick_to_ns(wheel, tick);
			   __entry->ret = ret;
			   memcpy(__entry->wheel, wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s timeout=%p function=%ps expires=%lld ret=%d",
		      __entry->wheel, __entry->timeout, __entry->function,
		      __entry->expires, __entry->ret)
);

/*
 * hwt_cancel - a timeout that was pending was cancelled, or handed back by a stop
 *
 * @expires is when it would have fired. Of a periodic one whose callback is executing it is when
 * that was due.
 */
TRACE_EVENT(hwt_cancel,
	    TP_PROTO(const struct hwt_wheel *wheel, const struct hwt_timeout *timeout,
		     u64 tick),
	    TP_ARGS(wheel, timeout, tick),
	    TP_STRUCT__entry(__field(const void *, timeout)
			     __field(u64, expires)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->timeout = timeout;
			   __entry->expires = hwt_tick_to_ns(wheel, tick);
			   memcpy(__entry->wheel, wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s timeout=%p expires=%lld",
		      __entry->wheel, __entry->timeout, __entry->expires)
);

/*
 * hwt_expire_entry - a callback begins
 *
 * It is late by @now - @expires.
 */
TRACE_EVENT(hwt_expire_entry,
	    TP_PROTO(const struct hwt_wheel *wheel, const struct hwt_timeout *timeout,
		     const void *function, u64 tick, u64 now),
	    TP_ARGS(wheel, timeout, function, tick, now),
	    TP_STRUCT__entry(__field(const void *, timeout)
			     __field(const void *, function)
			     __field(u64, expires)
			     __field(u64, now)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->timeout = timeout;
			   __entry->function = function;
			   __entry->expires = hwt_tick_to_ns(wheel, tick);
			   __entry->now = now;
			   memcpy(__entry->wheel, wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s timeout=%p function=%ps expires=%llu now=%llu",
		      __entry->wheel, __entry->timeout, __entry->function,
		      __entry->expires, __entry->now)
);

/*
 * hwt_expire_exit - it has returned
 */
TRACE_EVENT(hwt_expire_exit,
	    TP_PROTO(const struct hwt_wheel *wheel, const struct hwt_timeout *timeout,
		     const void *function),
	    TP_ARGS(wheel, timeout, function),
	    TP_STRUCT__entry(__field(const void *, timeout)
			     __field(const void *, function)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->timeout = timeout;
			   __entry->function = function;
			   memcpy(__entry->wheel, wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s timeout=%p function=%ps",
		      __entry->wheel, __entry->timeout, __entry->function)
);

/*
 * hwt_wake - a wheel's thread goes on after it has waited
 *
 * It was to wait until @expires. @kicked: hwt_wheel_kick() has woken it: for what is to fire
 * earlier, a backlog, what was cancelled, a flush, or a clock that was set. A stop is
 * no kick.
 */
TRACE_EVENT(hwt_wake,
	    TP_PROTO(const struct hwt_wheel *wheel, u64 expires, bool kicked),
	    TP_ARGS(wheel, expires, kicked),
	    TP_STRUCT__entry(__field(u64, expires)
			     __field(bool, kicked)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->expires = expires;
			   __entry->kicked = kicked;
			   memcpy(__entry->wheel, wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s expires=%lld kicked=%d",
		      __entry->wheel, __entry->expires, __entry->kicked)
);

/*
 * hwt_pass - a wheel's thread has gone once through what there was to do
 *
 * @cursor: the time that it has brought the wheel to. @collected: submissions that it has put in
 * their places. @served: timeouts that it took from those due; less of them fire if they were
 * pushed back; with workers it is 0.
 */
TRACE_EVENT(hwt_pass,
	    TP_PROTO(const struct hwt_wheel *wheel, u64 cursor, unsigned int collected,
		     unsigned int served),
	    TP_ARGS(wheel, cursor, collected, served),
	    TP_STRUCT__entry(__field(u64, cursor)
			     __field(unsigned int, collected)
			     __field(unsigned int, served)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->cursor = hwt_tick_to_ns(wheel, cursor);
			   __entry->collected = collected;
			   __entry->served = served;
			   memcpy(__entry->wheel, wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s cursor=%llu collected=%u served=%u",
		      __entry->wheel, __entry->cursor, __entry->collected,
		      __entry->served)
);

/*
 * hwt_wheel_create - a wheel was made
 *
 * @ticks: of a turn of level 0. @clock: 0 MONOTONIC, 1 BOOTTIME, 2 REALTIME. @creator: the function
 * that made it.
 */
TRACE_EVENT(hwt_wheel_create,
	    TP_PROTO(const struct hwt_wheel *wheel),
	    TP_ARGS(wheel),
	    TP_STRUCT__entry(__field(u64, tick_ns)
			     __field(u64, max_pending)
			     __field(unsigned int, ticks)
			     __field(unsigned int, levels)
			     __field(unsigned int, clock)
			     __field(unsigned int, workers)
			     __field(bool, shared)
			     __array(char, wheel, HWT_NAME_MAX)
			     __array(char, creator, HWT_CREATOR_MAX)),
	    TP_fast_assign(__entry->tick_ns = wheel->tick_ns;
			   __entry->max_pending = wheel->max_pending;
			   __entry->ticks = hwt_revolution(wheel);
			   __entry->levels = wheel->levels;
			   __entry->clock = wheel->clock;
			   __entry->workers = wheel->workers;
			   __entry->shared = wheel->shared;
			   memcpy(__entry->wheel, wheel->name, HWT_NAME_MAX);
			   memcpy(__entry->creator, wheel->creator, HWT_CREATOR_MAX);),
	    TP_printk("wheel=%s tick_ns=%llu ticks=%u levels=%u clock=%u max_pending=%llu workers=%u shared=%d creator=%s",
		      __entry->wheel, __entry->tick_ns, __entry->ticks,
		      __entry->levels, __entry->clock, __entry->max_pending,
		      __entry->workers, __entry->shared, __entry->creator)
);

/*
 * hwt_wheel_stop - a wheel was stopped
 *
 * @handed_back: timeouts that were still pending
 */
TRACE_EVENT(hwt_wheel_stop,
	    TP_PROTO(const struct hwt_wheel *wheel, long handed_back),
	    TP_ARGS(wheel, handed_back),
	    TP_STRUCT__entry(__field(long, handed_back)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->handed_back = handed_back;
			   memcpy(__entry->wheel, wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s handed_back=%ld",
		      __entry->wheel, __entry->handed_back)
);

#endif /* _HWT_CORE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH core
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
