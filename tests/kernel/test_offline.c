// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CPU goes offline with timeouts on its submission list that nobody has collected
 * yet. They fire, and count. And a wheel that is made for a CPU while that goes.
 *
 * hwt-test: long
 * hwt-test: timeout 120
 */
#include <linux/cpu.h>

#include "hwt_ktest.h"

#define SLOW	(KT_SLOW ? 3 : 1)
#define N	100

static struct kt first, there[N];
static unsigned int victim;

static u64 collected(struct hwt_wheel *wheel)
{
	return kt_stats(wheel).collected;
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
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == N - N / 2 + 1, "stop hands back the others");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	KTEST(add_cpu(victim) == 0, "CPU %u is online again", victim);
}

/* -- A wheel that is made for it while it goes --------------------------------- */

static DECLARE_COMPLETION(going);
static DECLARE_COMPLETION(made);

/* The CPU is online, and the scheduler does not give it new work any more. */
static int victim_goes(unsigned int cpu)
{
	if (cpu == victim) {
		complete(&going);
		wait_for_completion_timeout(&made, KT_PATIENCE * HZ);
	}
	return 0;
}

static unsigned int fired_on;

static void made_expire(struct hwt_timeout *timeout)
{
	WRITE_ONCE(fired_on, raw_smp_processor_id());
	/* As who has to wait with a spin lock held on PREEMPT_RT: the scheduler warns of a
	 * thread that is where it may not be.
	 */
	migrate_disable();
	usleep_range(100, 200);
	migrate_enable();
	kt_expire(timeout);
}

static const struct hwt_ops made_ops = { .expire = made_expire };

static bool fires(struct kt *kt)
{
	int before = kt_expirations(kt);

	kt_schedule(kt, 0);
	return KT_WAIT(kt_expirations(kt) == before + 1);
}

struct maker {
	struct hwt_wheel_params params;
	struct hwt_wheel *wheel;
	struct kt kt;
};

static int make_then(void *arg)
{
	struct maker *maker = arg;
	bool fired = false;
	int i;

	wait_for_completion(&going);
	maker->wheel = hwt_wheel_create(&maker->params);
	if (!IS_ERR(maker->wheel)) {
		kt_init(&maker->kt, maker->wheel, &made_ops);
		for (i = 0, fired = true; i < 10; i++)
			fired &= fires(&maker->kt);
	}
	complete(&made);
	return kt_thread_end(fired);
}

static void __init test_made_then(unsigned int workers)
{
	struct maker maker = {
		.params = { .name = "made", .cpus = cpumask_of(victim), .workers = workers },
	};
	struct task_struct *thread;
	int state;

	reinit_completion(&going);
	reinit_completion(&made);
	state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "hwt_test:goes", NULL, victim_goes);
	KTEST(state > 0, "told when a CPU goes");
	if (state < 0)
		return;
	thread = kt_thread(make_then, &maker, 0);
	KTEST(remove_cpu(victim) == 0, "CPU %u is offline", victim);
	KTEST(kt_thread_stop(thread) == 1,
	      "a wheel for it, %u workers, that was made while it went, fires", workers);
	KTEST(add_cpu(victim) == 0, "CPU %u is online again", victim);
	cpuhp_remove_state_nocalls(state);
	if (IS_ERR_OR_NULL(maker.wheel))
		return;
	/* The engine goes there before its next pass, and takes the workers along. */
	fires(&maker.kt);
	KTEST(fires(&maker.kt) && fired_on == victim, "and then there: on %u", fired_on);
	KTEST(hwt_wheel_destroy(maker.wheel) == 0, "the wheel is destroyed");
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
	test_made_then(0);
	test_made_then(1);
	kt_stay_on(NULL);
}

KSTM_MODULE_LOADERS(test_offline);
MODULE_DESCRIPTION("hwt: a CPU goes offline");
MODULE_LICENSE("GPL");
