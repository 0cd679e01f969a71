/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: the events hwt:* for perf, trace-cmd and bpftrace
 *
 * Ticks are converted to nanoseconds on the wheel's clock; U64_MAX (-1) means never. Several wheels
 * may have the same name, and once a timeout was freed, another one may be at its address.
 *
 * Events are recorded in any context, NMI included. A schedule or a cancel is reported after it has
 * taken effect. So if the timeout fires at once on another CPU, that event may come first.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hwt

#if !defined(_HWT_CORE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _HWT_CORE_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>

#include "core/clock.h"
#include "core/wheel.h"

/*
 * hwt_schedule - a timeout was scheduled, or refused
 *
 * @expires: the requested deadline, rounded up to the tick, and moved within the slack. (With
 * HWT_SCHEDULE_EARLIER, the timeout may still have an earlier deadline.) @ret: the result of the
 * call: HWT_WAS_PENDING (1) and HWT_WAS_HELD (2), ored, or an error.
 *
 * There is one event for each call that schedules a timeout. Exceptions are calls that return
 * -EINVAL, and most calls with HWT_SCHEDULE_UNLESS_PENDING that change nothing. A periodic timeout
 * that is armed again after its callback causes no event.
 */
TRACE_EVENT(hwt_schedule,
	    TP_PROTO(const struct hwt_shard *shard, const struct hwt_timeout *timeout,
		     const void *function, u64 tick, int ret),
	    TP_ARGS(shard, timeout, function, tick, ret),
	    TP_STRUCT__entry(__field(const void *, timeout)
			     __field(const void *, function)
			     __field(u64, expires)
			     __field(int, ret)
			     __field(unsigned int, shard)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->timeout = timeout;
			   __entry->function = function;
			   __entry->expires = hwt_tick_to_ns(shard, tick);
			   __entry->ret = ret;
			   __entry->shard = shard->number;
			   memcpy(__entry->wheel, shard->wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s timeout=%p function=%ps expires=%lld ret=%d shard=%u",
		      __entry->wheel, __entry->timeout, __entry->function,
		      __entry->expires, __entry->ret, __entry->shard)
);

/*
 * hwt_cancel - a pending timeout was cancelled, or handed back by a stop
 *
 * @expires: the deadline of the timeout. If the timeout is periodic and its callback is executing
 * on a thread wheel, @expires is the deadline for which the callback was called, not the next one.
 */
TRACE_EVENT(hwt_cancel,
	    TP_PROTO(const struct hwt_shard *shard, const struct hwt_timeout *timeout,
		     u64 tick),
	    TP_ARGS(shard, timeout, tick),
	    TP_STRUCT__entry(__field(const void *, timeout)
			     __field(u64, expires)
			     __field(unsigned int, shard)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->timeout = timeout;
			   __entry->expires = hwt_tick_to_ns(shard, tick);
			   __entry->shard = shard->number;
			   memcpy(__entry->wheel, shard->wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s timeout=%p expires=%lld shard=%u",
		      __entry->wheel, __entry->timeout, __entry->expires, __entry->shard)
);

/* hwt_expire_entry - a callback begins, late by @now - @expires */
TRACE_EVENT(hwt_expire_entry,
	    TP_PROTO(const struct hwt_shard *shard, const struct hwt_timeout *timeout,
		     const void *function, u64 tick, u64 now),
	    TP_ARGS(shard, timeout, function, tick, now),
	    TP_STRUCT__entry(__field(const void *, timeout)
			     __field(const void *, function)
			     __field(u64, expires)
			     __field(u64, now)
			     __field(unsigned int, shard)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->timeout = timeout;
			   __entry->function = function;
			   __entry->expires = hwt_tick_to_ns(shard, tick);
			   __entry->now = now;
			   __entry->shard = shard->number;
			   memcpy(__entry->wheel, shard->wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s timeout=%p function=%ps expires=%llu now=%llu shard=%u",
		      __entry->wheel, __entry->timeout, __entry->function,
		      __entry->expires, __entry->now, __entry->shard)
);

/* hwt_expire_exit - a callback has returned */
TRACE_EVENT(hwt_expire_exit,
	    TP_PROTO(const struct hwt_shard *shard, const struct hwt_timeout *timeout,
		     const void *function),
	    TP_ARGS(shard, timeout, function),
	    TP_STRUCT__entry(__field(const void *, timeout)
			     __field(const void *, function)
			     __field(unsigned int, shard)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->timeout = timeout;
			   __entry->function = function;
			   __entry->shard = shard->number;
			   memcpy(__entry->wheel, shard->wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s timeout=%p function=%ps shard=%u",
		      __entry->wheel, __entry->timeout, __entry->function, __entry->shard)
);

/*
 * hwt_wake - a wheel's thread goes on after a wait
 *
 * @expires: the planned end of the wait. @kicked: true if the engine was kicked since the last pass
 * began: for an earlier timeout, a backlog of submissions, a cancel or a flush, or because the
 * clock was set. A stop wakes the thread without a kick.
 */
TRACE_EVENT(hwt_wake,
	    TP_PROTO(const struct hwt_shard *shard, u64 expires, bool kicked),
	    TP_ARGS(shard, expires, kicked),
	    TP_STRUCT__entry(__field(u64, expires)
			     __field(bool, kicked)
			     __field(unsigned int, shard)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->expires = expires;
			   __entry->kicked = kicked;
			   __entry->shard = shard->number;
			   memcpy(__entry->wheel, shard->wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s expires=%lld kicked=%d shard=%u",
		      __entry->wheel, __entry->expires, __entry->kicked, __entry->shard)
);

/*
 * hwt_pass - a shard has finished a pass
 *
 * @cursor: the time up to which the shard has advanced. @collected: the number of submissions
 * collected. @served: the number of timeouts taken off the due list, including those that did not
 * fire because they were cancelled or pushed back; 0 if the shard has workers.
 */
TRACE_EVENT(hwt_pass,
	    TP_PROTO(const struct hwt_shard *shard, u64 cursor, unsigned int collected,
		     unsigned int served),
	    TP_ARGS(shard, cursor, collected, served),
	    TP_STRUCT__entry(__field(u64, cursor)
			     __field(unsigned int, collected)
			     __field(unsigned int, served)
			     __field(unsigned int, shard)
			     __array(char, wheel, HWT_NAME_MAX)),
	    TP_fast_assign(__entry->cursor = hwt_tick_to_ns(shard, cursor);
			   __entry->collected = collected;
			   __entry->served = served;
			   __entry->shard = shard->number;
			   memcpy(__entry->wheel, shard->wheel->name, HWT_NAME_MAX);),
	    TP_printk("wheel=%s cursor=%llu collected=%u served=%u shard=%u",
		      __entry->wheel, __entry->cursor, __entry->collected,
		      __entry->served, __entry->shard)
);

/*
 * hwt_wheel_create - a wheel was created
 *
 * @ticks: the number of ticks of a revolution of level 0. @clock: 0 MONOTONIC, 1 BOOTTIME,
 * 2 REALTIME. @creator: the name of the function that created the wheel.
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
			     __field(unsigned int, shards)
			     __field(bool, shared)
			     __array(char, wheel, HWT_NAME_MAX)
			     __array(char, creator, HWT_CREATOR_MAX)),
	    TP_fast_assign(__entry->tick_ns = wheel->first_shard->tick_ns;
			   __entry->max_pending = wheel->first_shard->max_pending;
			   __entry->ticks = hwt_revolution(wheel->first_shard);
			   __entry->levels = wheel->first_shard->buckets.levels;
			   __entry->clock = wheel->first_shard->clock;
			   __entry->workers = wheel->first_shard->nr_workers;
			   __entry->shards = wheel->params.shards;
			   __entry->shared = wheel->is_shared;
			   memcpy(__entry->wheel, wheel->name, HWT_NAME_MAX);
			   memcpy(__entry->creator, wheel->creator, HWT_CREATOR_MAX);),
	    TP_printk("wheel=%s tick_ns=%llu ticks=%u levels=%u clock=%u max_pending=%llu workers=%u shards=%u shared=%d creator=%s",
		      __entry->wheel, __entry->tick_ns, __entry->ticks,
		      __entry->levels, __entry->clock, __entry->max_pending,
		      __entry->workers, __entry->shards, __entry->shared,
		      __entry->creator)
);

/* hwt_wheel_stop - a wheel was stopped. @handed_back: the number of timeouts still pending */
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
