// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: timeouts without a kernel thread
 */
#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/wait.h>

#include "hwt.h"
#include "hwt_compat.h"
#include "core/buckets.h"
#include "core/params.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/pass.h"
#include "device/ring.h"
#include "device/uring.h"

/*
 * Maximum number of steps in a call of hwt_pass_run(). A task that polls a descriptor of another
 * program must not be kept busy with the timeouts of that program.
 */
#define HWT_PASS_STEPS		64

/* -- Ticks --------------------------------------------------------------- */

/* Return the first tick that begins at or after a deadline. */
static u64 hwt_pass_deadline_tick(const struct hwt_context *ctx, u64 ns)
{
	if (ns > S64_MAX - ctx->tick_ns)
		return HWT_TICK_NEVER;
	return div64_u64(ns + ctx->tick_ns - 1, ctx->tick_ns);
}

/* -- The timer ------------------------------------------------------------- */

/* The interrupt of the timer: wake the tasks that wait for the context, which then run a pass. */
static enum hrtimer_restart hwt_pass_interrupt(struct hrtimer *timer)
{
	struct hwt_context *ctx = container_of(timer, struct hwt_context, pass.timer);

	hwt_rings_due(ctx, true);
	/* Do not pass EPOLLIN: io_uring would complete its polls, though there is no event. */
	wake_up_interruptible(&ctx->wait);
	hwt_uring_carry(ctx);
	return HRTIMER_NORESTART;
}

void hwt_pass_alarm(struct hwt_context *ctx, u64 ns)
	__must_hold(&ctx->entries.xa_lock)
{
	hrtimer_start(&ctx->pass.timer, ns_to_ktime(min_t(u64, ns, KTIME_MAX)), HRTIMER_MODE_ABS);
}

/*
 * Set the time of the next pass, and arm the timer. If @ns is HWT_NEVER, cancel the timer: it would
 * wake tasks in vain, and report old events again to a program that uses EPOLLET.
 */
static void hwt_pass_start(struct hwt_context *ctx, u64 ns)
	__must_hold(&ctx->entries.xa_lock)
{
	/*
	 * Barrier next.set, pairs with next.due in hwt_pass_due(): a task that reads this time sees
	 * the events of the passes before. So a task that finds nothing due, because a pass has
	 * fired all timeouts, finds their events.
	 */
	atomic64_set_release(&ctx->pass.next_ns, ns);
	hwt_rings_next(ctx, ns);
	if (ns != HWT_NEVER)
		hwt_pass_alarm(ctx, ns);
	else
		hrtimer_try_to_cancel(&ctx->pass.timer);
}

/*
 * Return the time. If the clock is CLOCK_REALTIME and was set, let the timer wake all tasks that
 * wait, so that they run a pass. If the clock was set back, hwt_pass_step() then moves all timeouts
 * to the right buckets.
 */
static u64 hwt_pass_now(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_pass *pass = &ctx->pass;
	s64 mono, now, jump;

	if (ctx->clock != CLOCK_REALTIME)
		return hwt_context_now(ctx);
	mono = ktime_get();
	now = ktime_mono_to_any(mono, TK_OFFS_REAL);
	jump = now - mono - pass->offset;
	if (likely(!jump))
		return now;
	pass->offset += jump;
	/* Set the cursor back: a cursor in the future would make new timeouts due at once. */
	if (jump < 0)
		hwt_buckets_rebase(&pass->buckets, div64_u64(now, ctx->tick_ns));
	hwt_event_clock_set(ctx, now, jump);
	pass->fired = true;
	atomic64_set(&pass->next_ns, 0);
	hwt_rings_next(ctx, 0);
	hwt_pass_alarm(ctx, now);
	return now;
}

/* Called after CLOCK_REALTIME was set, for each context on this clock. */
void hwt_pass_clock_set(struct hwt_context *ctx)
{
	u64 next;

	xa_lock(&ctx->entries);
	if (!ctx->wheel) {
		hwt_pass_now(ctx);
		next = atomic64_read(&ctx->pass.next_ns);
		/*
		 * If the clock was set forward and back, hwt_pass_now() finds no change, but the
		 * timer may have expired too early in between. Then arm the timer again.
		 */
		if (!hrtimer_is_queued(&ctx->pass.timer) && next != HWT_NEVER)
			hwt_pass_alarm(ctx, next);
	}
	xa_unlock(&ctx->entries);
}

/* -- Arming ---------------------------------------------------------------- */

/* Put a timeout that is not armed into the bucket of a tick. */
static void hwt_pass_insert(struct hwt_entry *entry, u64 tick)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;
	u64 ns = hwt_tick_ns(ctx, tick);

	atomic64_set(&entry->timeout.state, tick << HWT_TICK_SHIFT);
	hwt_buckets_insert(&ctx->pass.buckets, &entry->timeout);
	if (ns < (u64)atomic64_read(&ctx->pass.next_ns))
		hwt_pass_start(ctx, ns);
}

/*
 * Return the tick at which a timeout fires: of the ticks that begin between its deadline and the
 * end of its slack, the cheapest one (see hwt_tick_relax()). If none begins there, return the first
 * tick after.
 */
u64 hwt_pass_slack_tick(const struct hwt_context *ctx, u64 ns, u64 slack_ns)
{
	u64 tick = hwt_pass_deadline_tick(ctx, ns), last;

	if (!slack_ns || tick == HWT_TICK_NEVER)
		return tick;
	last = div64_u64(min_t(u64, hwt_add_ns(ns, slack_ns), S64_MAX), ctx->tick_ns);
	return last > tick ? hwt_tick_relax(tick, last - tick) : tick;
}

/*
 * Arm a timeout, or move it. @time_ns: a delay, or a deadline on the context's clock. A timeout
 * that moves to a later tick stays in its bucket. When its old tick is reached, the pass puts it
 * into the right bucket. Return 0 or -ENOSPC.
 */
int hwt_pass_arm(struct hwt_entry *entry, const struct hwt_op *op, u64 time_ns)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;
	struct hwt_buckets *buckets = &ctx->pass.buckets;
	bool linked = hwt_linked(&entry->timeout);
	u64 now = hwt_pass_now(ctx), tick;

	/* stats.pending includes a new entry, but no one-shot that has fired (entry->final). */
	if (ctx->max_pending && !linked &&
	    ctx->stats.pending + entry->final > ctx->max_pending)
		return hwt_context_limited(ctx, HWT_LIMIT_PENDING);
	if (!(op->flags & HWT_ARM_ABSOLUTE))
		time_ns = hwt_add_ns(now, time_ns);
	if (hwt_entry_periodic(entry))
		entry->next_ns = time_ns;
	tick = hwt_pass_slack_tick(ctx, time_ns, op->slack_ns);
	if (linked && tick >= hwt_entry_tick(entry)) {
		atomic64_set(&entry->timeout.state, tick << HWT_TICK_SHIFT);
		return 0;
	}
	if (linked)
		hwt_buckets_remove(buckets, &entry->timeout);
	else if (div64_u64(now, ctx->tick_ns) > buckets->cursor + buckets->level[0].mask)
		/* The cursor is far behind. Advance it, so that new timeouts go to lower levels. */
		hwt_buckets_skip(buckets, div64_u64(now, ctx->tick_ns));
	hwt_pass_insert(entry, tick);
	return 0;
}

/*
 * Arm a periodic timeout, which is firing, for its first deadline whose tick has not begun. Return
 * the overruns: the number of deadlines skipped since the one that fires. If any is skipped, set
 * *@due_ns, the deadline that the event reports, to the last one skipped, rounded up to a tick.
 */
u64 hwt_pass_rearm(struct hwt_entry *entry, u64 now_ns, u64 *due_ns)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;
	u64 overruns = 0, last = now_ns;

	if (entry->mode == HWT_MODE_FIXED_RATE) {
		now_ns = hwt_tick_ns(ctx, div64_u64(now_ns, ctx->tick_ns));
		overruns = div64_u64(now_ns - entry->next_ns, entry->period_ns);
		last = entry->next_ns + overruns * entry->period_ns;
	}
	if (overruns)
		*due_ns = hwt_tick_ns(ctx, hwt_pass_deadline_tick(ctx, last));
	entry->next_ns = hwt_add_ns(last, entry->period_ns);
	hwt_pass_insert(entry, hwt_pass_deadline_tick(ctx, entry->next_ns));
	return overruns;
}

/*
 * Fire a timeout before an operation on it, if the timeout is due. Return true if the firing has
 * freed the entry, because the timeout was a command of io_uring.
 */
bool hwt_pass_settle(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;
	u64 now = hwt_pass_now(ctx);
	bool uring = entry->uring;

	if (!hwt_linked(&entry->timeout) || hwt_tick_ns(ctx, hwt_entry_tick(entry)) > now)
		return false;
	hwt_buckets_remove(&ctx->pass.buckets, &entry->timeout);
	ctx->pass.fired |= hwt_entry_fire(entry, now);
	return uring;
}

/* -- The pass ---------------------------------------------------------------- */

/* Advance the buckets by a step, and fire what is due. Return true if work is left. */
static bool hwt_pass_step(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_buckets *buckets = &ctx->pass.buckets;
	u64 now = hwt_pass_now(ctx), tick = div64_u64(now, ctx->tick_ns);
	bool arrived = hwt_buckets_advance(buckets, tick, HWT_STEP, false);
	struct hwt_entry *entry;
	unsigned int n;

	for (n = 0; n < HWT_STEP && !list_empty(&buckets->due); n++) {
		entry = list_first_entry(&buckets->due, struct hwt_entry, timeout.link);
		hwt_buckets_take_due(&entry->timeout);
		if (hwt_entry_tick(entry) > tick)
			hwt_buckets_insert(buckets, &entry->timeout);
		else
			ctx->pass.fired |= hwt_entry_fire(entry, now);
	}
	return !arrived || !list_empty(&buckets->due);
}

/*
 * How long a pass pauses if commands of io_uring may be due: the task that carries it must get to
 * look at its signals, though each pass of it leaves work.
 */
#define HWT_PASS_PAUSE_NS	(50 * NSEC_PER_USEC)

/*
 * End a pass that has stopped early: arm the timer, which wakes a waiting task to continue the
 * pass. Without events and commands, the timer expires at once. With events that wait to be read,
 * and no commands, it expires after a tick: a task that reads events may do the rest before.
 */
static void hwt_pass_pause(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hrtimer *timer = &ctx->pass.timer;
	u64 ns = hwt_context_now(ctx);

	if (!list_empty(&ctx->commands.list))
		ns += HWT_PASS_PAUSE_NS;
	else if (!list_empty(&ctx->ready))
		ns += ctx->tick_ns;
	atomic64_set(&ctx->pass.next_ns, 0);
	if (!hrtimer_is_queued(timer) || (u64)ktime_to_ns(hrtimer_get_expires(timer)) > ns)
		hwt_pass_alarm(ctx, ns);
	hwt_rings_due(ctx, true);
}

/*
 * End a complete pass: arm the timer for the next tick with work. Return true if events were added,
 * and the timer has not expired: the caller then has to wake the tasks that wait, because the
 * timer's interrupt has not done so.
 */
static bool hwt_pass_end(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_pass *pass = &ctx->pass;
	bool wake = pass->fired && hrtimer_is_queued(&pass->timer);

	pass->fired = false;
	hwt_rings_due(ctx, false);
	hwt_pass_start(ctx, hwt_tick_ns(ctx, hwt_buckets_next_tick(&pass->buckets)));
	return wake;
}

/*
 * Return true if a pass has work to do.
 *
 * To lose no wake-up, a task that is about to sleep first enters the wait queue, then calls this
 * function, then looks for events. Either this function reads the time that hwt_pass_start() has
 * stored, or the timer's interrupt finds the task in the wait queue. The lock of the wait queue
 * ensures this (tests/verify/litmus/pass-wake).
 */
bool hwt_pass_due(struct hwt_context *ctx)
{
	/*
	 * Barrier next.due, pairs with next.set in hwt_pass_start(): a complete pass ends with
	 * hwt_pass_start(), so a task that reads the time stored there then finds the pass's events
	 * (tests/verify/litmus/pass-event).
	 */
	u64 next = atomic64_read_acquire(&ctx->pass.next_ns);

	return next != HWT_NEVER && hwt_context_now(ctx) >= next;
}

/*
 * Fire what is due, in at most HWT_PASS_STEPS steps. Called in process context, for a context
 * without a wheel. Return true if work is left. Unless @all is true, move events to the ring, and
 * stop as soon as an event has to wait for a read() or for room in the ring.
 */
bool hwt_pass_run(struct hwt_context *ctx, bool all)
{
	unsigned int steps = HWT_PASS_STEPS;
	bool more, end, wake = false;

	do {
		xa_lock(&ctx->entries);
		more = hwt_pass_step(ctx);
		if (ctx->rings && !all)
			hwt_rings_fill(ctx);
		end = !more || !--steps || (!all && !list_empty(&ctx->ready));
		if (!more)
			wake = hwt_pass_end(ctx);
		else if (end)
			hwt_pass_pause(ctx);
		xa_unlock(&ctx->entries);
		cond_resched();
	} while (!end);
	/* Do not pass EPOLLIN, see hwt_pass_interrupt(): another task may have read the events. */
	if (wake)
		wake_up_interruptible(&ctx->wait);
	return more;
}

/* -- Creation -------------------------------------------------------------- */

/*
 * Initialise ctx->pass. The caller has set pass->memory: NULL if the buckets are in a wheel. It has
 * initialised @buckets in this memory, without the lock, since there may be many.
 */
void hwt_pass_init(struct hwt_context *ctx, const struct hwt_buckets *buckets)
{
	struct hwt_pass *pass = &ctx->pass;

	/* Before the clock is read for the cursor: if it is then set, the next pass sees it. */
	pass->offset = ktime_mono_to_any(0, TK_OFFS_REAL);
	if (pass->memory) {
		pass->buckets = *buckets;
		pass->buckets.cursor = div64_u64(hwt_context_now(ctx), ctx->tick_ns);
		/* These lists are empty, and in the structure that was copied. */
		INIT_LIST_HEAD(&pass->buckets.due);
		INIT_LIST_HEAD(&pass->buckets.never);
		INIT_LIST_HEAD(&pass->buckets.moving);
	}
	hwt_hrtimer_setup(&pass->timer, hwt_pass_interrupt, ctx->clock, HRTIMER_MODE_ABS);
	atomic64_set(&pass->next_ns, HWT_NEVER);
}
