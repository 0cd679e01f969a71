// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CPU goes offline with timeouts on its submission list that nobody has collected
 * yet. They fire, and count.
 *
 * hwt-test: long
 * hwt-test: timeout 120
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

#define SLOW	(KT_SLOW ? 3 : 1)
#define N	100

static struct kt first, there[N];
static unsigned int victim;

static u64 collected(struct hwt_wheel *wheel)
{
	struct hwt_wheel_stats stats;

	hwt_wheel_get_stats(wheel, &stats);
	return stats.collected;
}

/* On the victim: submits, and cancels some of it. */
static int submit(void *arg)
{
	struct hwt_wheel *wheel = arg;
	int i;

	for (i = 0; i < N; i++) {
		kt_init(&there[i], wheel, &kt_ops);
		there[i].earliest = first.earliest + KT_SECOND;
		hwt_schedule_at(&there[i].timeout, there[i].earliest);
	}
	return kt_thread_end(raw_smp_processor_id());
}

static void __init submit_there(struct hwt_wheel *wheel, u64 delay)
{
	struct task_struct *thread;

	kt_init(&first, wheel, &kt_ops);
	kt_schedule(&first, delay);
	/* The engine collects that, and sleeps for it. What is later wakes nobody. */
	KT_WAIT(collected(wheel) == 1);
	msleep(50);
	thread = kt_thread(submit, wheel, victim);
	msleep(20);
	KTEST(kt_thread_stop(thread) == victim, "submitted on CPU %u", victim);
	KTEST(collected(wheel) == 1, "and not collected");
}

static void __init test_fires(void)
{
	struct hwt_wheel *wheel = kt_wheel("offline");
	int i, fired = 0, early = 0;
	u64 now;

	submit_there(wheel, 6 * KT_SECOND * SLOW);
	KTEST(remove_cpu(victim) == 0, "CPU %u is offline", victim);
	now = hwt_wheel_now(wheel);
	if (now < first.earliest)
		KTEST(collected(wheel) == 1, "before anybody has collected");
	else
		KTEST_SKIP("it took so long that the engine has collected");
	KTEST(hwt_wheel_pending(wheel) >= N, "all are pending");
	for (i = 0; i < N; i++) {
		fired += KT_WAIT(kt_releases(&there[i]) == 1) &&
			 kt_expirations(&there[i]) == 1;
		early += atomic_read(&there[i].early);
	}
	KTEST(fired == N && early == 0, "%d of %d fire, %d early", fired, N, early);
	KTEST(hwt_wheel_pending(wheel) == 0, "none is pending");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	KTEST(add_cpu(victim) == 0, "CPU %u is online again", victim);
}

static void __init test_stop(void)
{
	struct hwt_wheel *wheel = kt_wheel("offline");
	int i, ok = 0;

	submit_there(wheel, KT_HOUR);
	KTEST(remove_cpu(victim) == 0, "CPU %u is offline", victim);
	for (i = 0; i < N / 2; i++)
		ok += hwt_cancel_sync(&there[i].timeout) == 1 &&
		      kt_releases(&there[i]) == 1;
	KTEST(ok == N / 2, "cancel_sync of what was submitted there");
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == N - N / 2 + 1,
	      "stop hands back the others");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	KTEST(add_cpu(victim) == 0, "CPU %u is online again", victim);
}

static void __init selftest(void)
{
	kt_stay_on(cpumask_of(0));
	victim = kt_other_cpu(0);
	if (victim == 0 || !IS_ENABLED(CONFIG_HOTPLUG_CPU)) {
		KTEST_SKIP("no other CPU that could go offline");
		return;
	}
	test_fires();
	test_stop();
	kt_stay_on(NULL);
}

KSTM_MODULE_LOADERS(test_offline);
MODULE_DESCRIPTION("hwt: a CPU goes offline");
MODULE_LICENSE("GPL");
