// SPDX-License-Identifier: GPL-2.0-only
/*
 * A real trace: the recorded timer operations of a guest at work (trace/record.py), repeated with
 * hwt and its alternatives. Operations, order, times and deadlines are the same, so the same timers
 * expire, and the engines work in between as usual.
 *
 * Time is divided into windows of a tick of the recording. All operations of a window are executed
 * some time after its end, when the timers that expired in the window have expired here, too. So a
 * timer that was cancelled or re-armed in the last tick before its deadline expires here.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/kernel_read_file.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "bench.h"

static char *trace = "/hwt/trace.bin";
module_param(trace, charp, 0444);
MODULE_PARM_DESC(trace, "The file to replay, from trace/convert.py");

/* The format of the file; convert.py describes it. */
struct trace_record {
	u32	what;
	u32	value;
};

struct trace_file {
	char			magic[8];
	u32			tick_ns;
	u32			timers;
	u32			records;
	u32			expired;	/* while it was recorded */
	u32			phase;		/* jiffies at its beginning, mod TRACE_ROUND */
	struct trace_record	record[];
};

#define TRACE_ROUND	512

enum trace_op {
	TRACE_WAIT,
	TRACE_START,
	TRACE_REARM,
	TRACE_CANCEL,
	TRACE_OPS,
};

static enum trace_op trace_op(const struct trace_record *record)
{
	return record->what >> 30;
}

static u32 trace_timer(const struct trace_record *record)
{
	return record->what & (BIT(30) - 1);
}

static const enum bench_loop trace_loops[TRACE_OPS] = {
	[TRACE_START]	= LOOP_SCHEDULE,
	[TRACE_REARM]	= LOOP_LATER,
	[TRACE_CANCEL]	= LOOP_CANCEL,
};

static const struct bench_peer * const trace_peers[] = {
	&bench_bare, &bench_hwt, &bench_hwt_jiffy, &bench_timer, &bench_hrtimer, &bench_work,
};

/* A replay and its measurements. */
struct trace_replay {
	const struct bench_peer	*peer;
	const struct trace_file	*file;
	struct bench_span	span;
	u64			*when;		/* of the span */
	u64			base;		/* the beginning, in the peer's unit */
	u64			clock;		/* cost of a read of the clock, ns */
	/* Time and number of operations: of whole windows; by kind in the other windows. */
	u64			whole, whole_ops;
	u64			op[TRACE_OPS], ops[TRACE_OPS];
};

/*
 * Execute the operations of a window. Measure the time of all together (@whole), or of each
 * sequence of one kind, less the cost of reading the clock.
 */
static void trace_window(struct trace_replay *r, u32 first, u32 end, bool whole)
{
	u64 soonest = bench_time(r->peer, NSEC_PER_MSEC);
	struct bench_span span = r->span;
	u64 began, before = 0;
	u32 i;

	for (i = first; i < end; i++)
		r->when[i] = max(soonest, r->base + bench_delay(r->peer, (u64)r->file->tick_ns *
								r->file->record[i].value));
	began = ktime_get_ns();
	for (i = first; i < end; i = span.end) {
		enum trace_op op = trace_op(&r->file->record[i]);

		span.first = i;
		span.end = i + 1;
		while (span.end < end && trace_op(&r->file->record[span.end]) == op)
			span.end++;
		if (!whole)
			before = ktime_get_ns();
		r->peer->loop[trace_loops[op]](&span);
		if (whole)
			continue;
		r->op[op] += ktime_get_ns() - before - r->clock;
		r->ops[op] += span.end - i;
	}
	if (whole) {
		r->whole += ktime_get_ns() - began - r->clock;
		r->whole_ops += end - first;
	}
}

static u64 trace_clock_cost(void)
{
	u64 before, sum = 0;
	u32 i;

	for (i = 0; i < 4096; i++) {
		before = ktime_get_ns();
		sum += ktime_get_ns() - before;
	}
	return sum / 4096;
}

/*
 * Wait for the beginning of a tick. timer_list rounds by the low bits of jiffies: begin with those
 * at the beginning of the recording.
 */
static void trace_align(const struct trace_replay *r)
{
	unsigned long begin;

	do {
		begin = jiffies + 2;
		if (r->peer->jiffies && r->file->tick_ns == TICK_NSEC)
			begin += (r->file->phase - begin) % TRACE_ROUND;
		bench_sleep((begin - 1 - jiffies) * TICK_NSEC);
		while (time_before(jiffies, begin))
			cpu_relax();
	} while (time_after(jiffies, begin) && !bench_stopped());
}

/* Replay all windows. Return the number of operations. */
static u64 trace_windows(struct trace_replay *r)
{
	const struct trace_record *record = r->file->record;
	u64 began = ktime_get_ns(), at, now, count = 0;
	u32 i, end, window = 0;

	r->base = bench_time(r->peer, 0);
	for (i = 0; i < r->file->records && !bench_stopped(); i = end) {
		at = began + record[i].value * NSEC_PER_USEC;
		now = ktime_get_ns();
		if (at > now)
			bench_sleep(at - now);
		else
			cond_resched();
		end = ++i;
		while (end < r->file->records && trace_op(&record[end]) != TRACE_WAIT)
			end++;
		trace_window(r, i, end, window++ % 2);
		count += end - i;
	}
	return count;
}

/* Print a figure of a replay. */
static void trace_print(const struct trace_replay *r, const char *op, const char *unit,
			u64 total, u64 count)
{
	/* A time less the cost of reading the clock may be negative. */
	if (count)
		bench_print(max_t(s64, total, 0), count, "bench=trace peer=%s op=%s n=%u unit=%s",
			    r->peer ? r->peer->name : "recorded", op, r->file->timers, unit);
}

static void trace_measure(struct trace_replay *r)
{
	static const char * const names[TRACE_OPS] = {
		[TRACE_START] = "start", [TRACE_REARM] = "re-arm", [TRACE_CANCEL] = "cancel",
	};
	struct bench_busy busy;
	u64 fired, count, ns;
	unsigned int op;

	bench_settle(r->peer, NULL, 0, false);
	r->clock = trace_clock_cost();
	trace_align(r);
	fired = bench_fired_sum();
	bench_busy_begin(&busy);
	count = trace_windows(r);
	ns = bench_busy_end(&busy);
	fired = bench_fired_sum() - fired;
	if (bench_stopped())
		return;
	trace_print(r, "all", "ns", r->whole, r->whole_ops);
	for (op = TRACE_START; op < TRACE_OPS; op++)
		trace_print(r, names[op], "ns", r->op[op], r->ops[op]);
	trace_print(r, "all-cpu-time", "ns", ns, count);
	trace_print(r, "operations", "count", count, 1);
	if (r->peer != &bench_bare)
		trace_print(r, "fired", "count", fired, 1);
}

static int trace_replay(struct trace_replay *r)
{
	struct bench_span all = r->span;

	all.objects = bench_open(r->peer, r->file->timers);
	if (IS_ERR(all.objects))
		return PTR_ERR(all.objects);
	r->span.objects = all.objects;
	trace_measure(r);
	all.first = r->file->records;
	all.end = all.first + r->file->timers;
	bench_run(r->peer, LOOP_CANCEL, &all);
	bench_settle(r->peer, NULL, 0, true);
	bench_close(r->peer, all.objects);
	return 0;
}

static bool trace_valid(const struct trace_file *file, size_t size)
{
	u32 i;

	if (size < sizeof(*file) || memcmp(file->magic, "hwttrace", 8) || !file->timers ||
	    file->timers > BIT(24) || file->records > BIT(24) ||
	    size != struct_size(file, record, file->records))
		return false;
	for (i = 0; i < file->records; i++)
		if (trace_timer(&file->record[i]) >= file->timers)
			return false;
	return file->records && trace_op(file->record) == TRACE_WAIT;
}

/*
 * Every other window is measured as a whole, for the cost of all operations; in the others, each
 * sequence of one kind. The CPU time for each operation is that of the whole replay, with the
 * expiries; that of the bare loop is the cost of the replay itself.
 */
static int trace_all(const struct trace_file *file, u32 *order, u64 *when)
{
	struct trace_replay recorded = { .file = file };
	unsigned int run, runs = bench_quick ? 1 : min(bench_runs, 3U), p;
	u64 count = 0;
	u32 i;
	int err;

	/* The timer of each record; then 0, 1, 2, ... for all timers. */
	for (i = 0; i < file->records + file->timers; i++) {
		order[i] = i < file->records ? trace_timer(&file->record[i]) : i - file->records;
		when[i] = 0;
	}
	for (i = 0; i < file->records; i++)
		count += trace_op(&file->record[i]) != TRACE_WAIT;
	trace_print(&recorded, "operations", "count", count, 1);
	trace_print(&recorded, "fired", "count", file->expired, 1);
	for (run = 0; run < runs && !bench_stopped(); run++) {
		pr_info("trace, run %u of %u\n", run + 1, runs);
		for (p = 0; p < ARRAY_SIZE(trace_peers) && !bench_stopped(); p++) {
			struct trace_replay replay = {
				.peer = trace_peers[p], .file = file,
				.span = { .order = order, .when = when, .alone = true },
				.when = when,
			};

			err = trace_replay(&replay);
			if (err)
				return err;
		}
	}
	return 0;
}

int bench_trace(void)
{
	const struct trace_file *file;
	void *data = NULL;
	u32 *order, all;
	u64 *when;
	int err = kernel_read_file_from_path(trace, 0, &data, INT_MAX, NULL, READING_UNKNOWN);

	if (err < 0) {
		pr_err("cannot read %s: %d\n", trace, err);
		return err;
	}
	file = data;
	if (trace_valid(file, err)) {
		all = file->records + file->timers;
		order = vmalloc(array_size(all, sizeof(*order)));
		when = vmalloc(array_size(all, sizeof(*when)));
		err = order && when ? trace_all(file, order, when) : -ENOMEM;
		vfree(order);
		vfree(when);
	} else {
		err = -EINVAL;
	}
	vfree(data);
	return err;
}
