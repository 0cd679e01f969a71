/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timeouts without a kernel thread: a context has buckets of its own, and its callers drive them
 *
 * The context's lock protects the buckets, and a high-resolution timer is armed for the next tick
 * with work. The timer's interrupt only wakes the tasks that wait for the context. A task in
 * read(), poll(), HWT_IOC_ENTER, HWT_IOC_STATS, HWT_IOC_LIST or a command of io_uring runs a pass:
 * it advances the buckets, and fires what is due. A pass drops the lock after each short step.
 *
 * A pass may stop before its work is done: after HWT_PASS_STEPS steps or, in read(), poll() and
 * HWT_IOC_ENTER, as soon as an event waits for a read() or for room in the ring. Any task can
 * continue the pass, because its progress is in the buckets.
 */
#ifndef _HWT_DEVICE_PASS_H
#define _HWT_DEVICE_PASS_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/types.h>

#include "hwt.h"
#include "core/buckets.h"

struct hwt_context;
struct hwt_entry;
struct hwt_op;

/**
 * struct hwt_pass - what drives the timeouts of a context without a wheel
 * @buckets: the armed timeouts, including those that are due and have not fired yet
 * @memory:  the memory of @buckets, charged to the task that has opened or set up the context
 * @timer:   wakes the tasks that wait, at @next_ns; after a pass that has stopped early or was put
 *           off, at a time that hwt_pass_pause() or hwt_uring_pause() has chosen. Its interrupt
 *           does not arm it again: the end of the next pass does.
 * @next_ns: no pass has work before this time; 0 if a pass has stopped early, or the clock was set;
 *           HWT_NEVER if no timeout is to fire. Written under entries.xa_lock, read without it
 * @fired:   true if events were added, or the clock was set, since the last complete pass
 * @offset:  the offset of CLOCK_REALTIME to CLOCK_MONOTONIC when hwt_pass_now() last read it, ns
 *
 * entries.xa_lock protects all but @next_ns. The interrupt of @timer reads no member.
 */
struct hwt_pass {
	struct hwt_buckets	buckets;
	void			*memory;
	struct hrtimer		timer;
	atomic64_t		next_ns;
	bool			fired;
	s64			offset;
};

void hwt_pass_init(struct hwt_context *ctx, const struct hwt_buckets *buckets);
void hwt_pass_alarm(struct hwt_context *ctx, u64 ns);
void hwt_pass_clock_set(struct hwt_context *ctx);
u64 hwt_pass_slack_tick(const struct hwt_context *ctx, u64 ns, u64 slack_ns);
int hwt_pass_arm(struct hwt_entry *entry, const struct hwt_op *op, u64 time_ns);
u64 hwt_pass_rearm(struct hwt_entry *entry, u64 now_ns, u64 *due_ns);
bool hwt_pass_settle(struct hwt_entry *entry);
bool hwt_pass_due(struct hwt_context *ctx);
bool hwt_pass_run(struct hwt_context *ctx, bool all);

/* Run a pass if it has work to do, see hwt_pass_run(). */
static inline void hwt_pass_catch_up(struct hwt_context *ctx, bool all)
{
	if (hwt_pass_due(ctx))
		hwt_pass_run(ctx, all);
}

#endif /* _HWT_DEVICE_PASS_H */
