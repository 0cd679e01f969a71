// SPDX-License-Identifier: GPL-2.0-only
/*
 * Schedules, cancels and queries from contexts that must not sleep: hard interrupt, soft interrupt,
 * interrupts off, raw spinlock held.
 *
 * hwt-test: shared
 * hwt-test: timeout 120
 */
#include <linux/interrupt.h>
#include <linux/preempt.h>

#include "hwt_ktest.h"
#include "hwt_ktest_compat.h"

static struct hwt_wheel *wheel;
static struct kt fires, moved, cancelled, beat;
static atomic_t odd;

#define ODD(cond) atomic_add(!!(cond), &odd)

/* Make each call that is allowed in any context, and check its result. */
static void everything(void)
{
	struct hwt_wheel_params params;
	u64 now = hwt_wheel_now(wheel);

	ODD(kt_schedule(&fires, 3 * KT_MS) & HWT_WAS_PENDING);
	ODD(!hwt_pending(&fires.timeout) && !hwt_expired(&fires.timeout));

	ODD(hwt_schedule_at(&moved.timeout, now + KT_HOUR) & HWT_WAS_PENDING);
	ODD(hwt_schedule_earlier(&moved.timeout, KT_HOUR / 2) !=
	    (HWT_WAS_PENDING | HWT_WAS_HELD));
	ODD(hwt_schedule_pending_at(&moved.timeout, now + KT_HOUR) < 0);
	ODD(hwt_schedule_slack(&moved.timeout, KT_HOUR, KT_SECOND) < 0);
	ODD(hwt_schedule_flags(&moved.timeout, now + KT_HOUR, KT_SECOND, HWT_SCHEDULE_AT) < 0);
	ODD(hwt_schedule_flags(&moved.timeout, now + KT_HOUR / 4, 0, KT_EARLIER_AT) < 0);
	ODD(hwt_schedule_pending(&moved.timeout, 2 * KT_MS) < 0);

	ODD(hwt_schedule(&cancelled.timeout, KT_HOUR / 2) & HWT_WAS_PENDING);
	ODD(hwt_schedule(&cancelled.timeout, KT_HOUR) < 0);
	hwt_cancel(&cancelled.timeout);
	ODD(hwt_pending(&cancelled.timeout));
	ODD(hwt_try_cancel(&cancelled.timeout) & HWT_WAS_PENDING);

	ODD(hwt_schedule_periodic(&beat.periodic, 0, 5 * KT_MS, HWT_MODE_FIXED_RATE) < 0);
	ODD(hwt_deadline(&moved.timeout) > now + KT_HOUR);
	hwt_remaining(&moved.timeout);
	hwt_overruns(&beat.periodic);
	hwt_overruns_total(&beat.periodic);
	hwt_wheel_pending(wheel);
	hwt_wheel_get_params(wheel, &params);
	kt_stats(wheel);
	ODD(params.tick_ns != KT_MS);
}

static DECLARE_COMPLETION(interrupt_over);
static struct hrtimer hard_timer;

static enum hrtimer_restart hard_timer_fn(struct hrtimer *timer)
{
	ODD(!in_hardirq());
	everything();
	complete(&interrupt_over);
	return HRTIMER_NORESTART;
}

static void __init in_hard_interrupt(void)
{
	hrtimer_setup(&hard_timer, hard_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	hrtimer_start(&hard_timer, ns_to_ktime(KT_MS), HRTIMER_MODE_REL_HARD);
	wait_for_completion_timeout(&interrupt_over, KT_PATIENCE * HZ);
	hrtimer_cancel(&hard_timer);
}

static void soft_fn(struct tasklet_struct *tasklet)
{
	ODD(!in_serving_softirq());
	everything();
	complete(&interrupt_over);
}

static DECLARE_TASKLET(soft, soft_fn);

static void __init in_soft_interrupt(void)
{
	tasklet_schedule(&soft);
	wait_for_completion_timeout(&interrupt_over, KT_PATIENCE * HZ);
	tasklet_kill(&soft);
}

static DEFINE_RAW_SPINLOCK(raw);
static DEFINE_SPINLOCK(spin);

/* Make the calls between two others. */
#define BETWEEN(name, begin, end)					\
static void __init name(void)						\
{									\
	begin;								\
	everything();							\
	end;								\
}

BETWEEN(with_interrupts_off, local_irq_disable(), local_irq_enable())
BETWEEN(under_raw_spinlock, raw_spin_lock(&raw), raw_spin_unlock(&raw))
BETWEEN(under_spinlock_bh, spin_lock_bh(&spin), spin_unlock_bh(&spin))

static void __init test_context(const char *what, void (*call)(void),
				bool asleep)
{
	int round, rounds = kt_quick() ? 5 : 20, done = 0, early = 0, bystanders = 0;
	struct kt far;

	atomic_set(&odd, 0);
	kt_init(&far, wheel, &kt_ops);
	/* A far deadline, for which the engine sleeps. */
	hwt_schedule(&far.timeout, KT_HOUR);
	for (round = 0; round < rounds; round++) {
		kt_init(&fires, wheel, &kt_ops);
		kt_init(&moved, wheel, &kt_ops);
		kt_init(&cancelled, wheel, &kt_ops);
		kt_init_periodic(&beat, wheel, &kt_plain_ops);
		if (asleep)
			msleep(20);
		call();
		/* They fire although the engine slept, so the schedules have woken the engine. */
		done += KT_WAIT(kt_expirations(&fires) == 1) &&
			KT_WAIT(kt_expirations(&moved) == 1) &&
			KT_WAIT(kt_expirations(&beat) >= 2);
		early += atomic_read(&fires.early);
		hwt_cancel_sync(&beat.timeout);
		hwt_cancel_sync(&cancelled.timeout);
		hwt_cancel_sync(&moved.timeout);
		hwt_cancel_sync(&fires.timeout);
		bystanders += kt_expirations(&cancelled) ||
			      kt_releases(&cancelled) < 1 ||
			      kt_releases(&moved) != 1 || kt_releases(&fires) != 1;
	}
	hwt_cancel_sync(&far.timeout);
	KTEST(done == rounds, "%s: what is scheduled there fires, in %d of %d rounds",
	      what, done, rounds);
	KTEST(early == 0, "%s: none fires early", what);
	KTEST(bystanders == 0, "%s: cancelled ones do not fire, and each hold ends", what);
	KTEST(atomic_read(&odd) == 0, "%s: calls with a wrong result: %d",
	      what, atomic_read(&odd));
}

static void __init selftest(void)
{
	wheel = kt_wheel("contexts");
	test_context("process", everything, true);
	test_context("hard interrupt", in_hard_interrupt, true);
	test_context("hard interrupt, engine awake", in_hard_interrupt, false);
	test_context("soft interrupt", in_soft_interrupt, true);
	test_context("interrupts off", with_interrupts_off, true);
	test_context("interrupts off, engine awake", with_interrupts_off, false);
	test_context("raw spinlock", under_raw_spinlock, true);
	test_context("spinlock, soft interrupts off", under_spinlock_bh, true);
	KTEST(hwt_wheel_pending(wheel) == 0, "no timeout is left pending");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

KSTM_MODULE_LOADERS(test_contexts);
