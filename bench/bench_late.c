// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lateness: the time of the callback minus the deadline, for hwt, timer_list and hrtimer, by the
 * span of the delays, on idle CPUs and with a busy thread on each CPU. The deadline is the time of
 * the call plus the delay.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

#include "bench.h"
#include "../tests/kernel/lib/hwt_ktest_compat.h"

/* Spans: a delay is from half of its span to the span. tests/vm/year.py has longer delays. */
static const u64 late_spans_ms[] = { 1, 10, 100, 1000, 10000 };

enum late_kind { LATE_HWT, LATE_TIMER, LATE_HRTIMER, LATE_KINDS };

static const char * const late_name[] = { "hwt", "timer_list", "hrtimer" };

/* A timer that fires once; its callback writes the lateness. */
struct late {
	enum late_kind kind;
	union {
		struct hwt_timeout	timeout;
		struct timer_list	timer;
		struct hrtimer		hrtimer;
	};
	u64	deadline;
	s64	late;
};

static atomic_t late_left;

static void late_fired(struct late *late)
{
	late->late = ktime_get_ns() - late->deadline;
	/* Pairs with late_span(), which sees the lateness when it sees the count. */
	atomic_dec_return_release(&late_left);
}

static void late_hwt(struct hwt_timeout *timeout)
{
	late_fired(container_of(timeout, struct late, timeout));
}

static void late_timer(struct timer_list *timer)
{
	late_fired(container_of(timer, struct late, timer));
}

static enum hrtimer_restart late_hrtimer(struct hrtimer *timer)
{
	late_fired(container_of(timer, struct late, hrtimer));
	return HRTIMER_NORESTART;
}

static const struct hwt_timeout_ops late_ops = { .expire = late_hwt };

static void late_arm(struct late *late, u64 delay)
{
	late->deadline = ktime_get_ns() + delay;
	switch (late->kind) {
	case LATE_HWT:
		hwt_timeout_init(&late->timeout, bench_wheel, &late_ops);
		hwt_schedule(&late->timeout, delay);
		break;
	case LATE_TIMER:
		timer_setup(&late->timer, late_timer, 0);
		/* Round up to jiffies, as callers of mod_timer() do. */
		mod_timer(&late->timer, jiffies + nsecs_to_jiffies(delay + TICK_NSEC - 1));
		break;
	default:
		hrtimer_setup(&late->hrtimer, late_hrtimer, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL);
		hrtimer_start(&late->hrtimer, ns_to_ktime(delay), HRTIMER_MODE_REL);
		break;
	}
}

static void late_end(struct late *late)
{
	switch (late->kind) {
	case LATE_HWT:
		hwt_cancel_sync(&late->timeout);
		break;
	case LATE_TIMER:
		timer_delete_sync(&late->timer);
		break;
	default:
		hrtimer_cancel(&late->hrtimer);
		break;
	}
}

static int late_compare(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

static void late_report(enum late_kind kind, const char *load, u64 span, s64 *values,
			u32 n)
{
	u32 early = 0;

	sort(values, n, sizeof(*values), late_compare, NULL);
	while (early < n && values[early] < 0)
		early++;
	pr_info("@bench bench=late peer=%s load=%s span_ns=%llu n=%u unit=ns median=%lld low=%lld high=%lld p90=%lld p99=%lld early=%u runs=1\n",
		late_name[kind], load, span, n, values[n / 2], values[0], values[n - 1],
		values[n * 9 / 10], values[n * 99 / 100], early);
}

/* Measure all kinds at the same time, so that disturbances hit all of them. */
static int late_span(const char *load, u64 span)
{
	u32 each = bench_quick ? 300 : 2000, n = each * LATE_KINDS, i, kind, m;
	struct late *lates = vzalloc(array_size(n, sizeof(*lates)));
	s64 *values = vmalloc(array_size(each, sizeof(*values)));
	int err = 0;

	if (!lates || !values) {
		err = -ENOMEM;
		goto out;
	}
	atomic_set(&late_left, n);
	for (i = 0; i < n; i++) {
		lates[i].kind = i % LATE_KINDS;
		late_arm(&lates[i], span / 2 + bench_random_below(span / 2));
		/* Spread the calls over about the time in which the timers fire. */
		if (i % 64 == 63)
			bench_sleep(min_t(u64, div_u64(span * 64, n), NSEC_PER_SEC));
	}
	while (atomic_read_acquire(&late_left) > 0 && !bench_stopped())
		bench_sleep(max_t(u64, div_u64(span, 100), NSEC_PER_MSEC));
	for (i = 0; i < n; i++)
		late_end(&lates[i]);
	for (kind = 0; kind < LATE_KINDS && !bench_stopped(); kind++) {
		for (i = kind, m = 0; i < n; i += LATE_KINDS)
			values[m++] = lates[i].late;
		late_report(kind, load, span, values, m);
	}
out:
	vfree(values);
	vfree(lates);
	return err;
}

/* Compute without a pause, and reschedule each millisecond. */
static int late_burn(void *arg)
{
	u64 end;

	while (!kthread_should_stop()) {
		for (end = ktime_get_ns() + NSEC_PER_MSEC; ktime_get_ns() < end;)
			cpu_relax();
		cond_resched();
	}
	return 0;
}

static int late_all(const char *load)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(late_spans_ms) && !err; i++)
		if (!bench_quick || late_spans_ms[i] <= 1000)
			err = late_span(load, late_spans_ms[i] * NSEC_PER_MSEC);
	return err;
}

int bench_late(void)
{
	struct hwt_wheel_params params = { .name = "hwt-late" };
	struct task_struct **burners = kcalloc(nr_cpu_ids, sizeof(*burners), GFP_KERNEL);
	int cpu, err;

	if (!burners)
		return -ENOMEM;
	bench_wheel = hwt_wheel_create(&params);
	err = PTR_ERR_OR_ZERO(bench_wheel);
	if (err)
		goto out;
	err = late_all("idle");
	if (!err) {
		for_each_online_cpu(cpu) {
			burners[cpu] = kthread_create(late_burn, NULL, "hwt-burn/%d", cpu);
			if (IS_ERR(burners[cpu])) {
				burners[cpu] = NULL;
				continue;
			}
			kthread_bind(burners[cpu], cpu);
			wake_up_process(burners[cpu]);
		}
		err = late_all("busy");
		for (cpu = 0; cpu < nr_cpu_ids; cpu++)
			if (burners[cpu])
				kthread_stop(burners[cpu]);
	}
	hwt_wheel_destroy(bench_wheel);
out:
	bench_wheel = NULL;
	kfree(burners);
	return err;
}
