// SPDX-License-Identifier: GPL-2.0-only
/*
 * Affinity, priority and wait strategy of the threads of a wheel: pinned to a CPU that goes offline
 * with submissions on its list and comes back, the scheduling priorities, and busy waiting.
 *
 * hwt-test: timeout 240
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched/prio.h>
#include <linux/sched/task.h>

#include "hwt_ktest.h"

static unsigned int victim;	/* the CPU to which the wheels are pinned */

static struct {
	int		cpu;		/* the expected CPU; -1: any */
	unsigned int	policy, rt_priority;
	const char	*name;		/* of the wheel; NULL: do not check the thread's name */
	bool		workers;
	atomic_t	runs, elsewhere, otherwise, others;
} seen;

/* The engine has the name of the wheel; workers are "name/0" and so on. */
static bool right_thread(void)
{
	size_t n = strlen(seen.name);

	return !strncmp(current->comm, seen.name, n) &&
	       current->comm[n] == (seen.workers ? '/' : '\0');
}

static void see(void)
{
	int cpu = READ_ONCE(seen.cpu);

	/* The thread is pinned, so this does not change. */
	if (cpu >= 0 && raw_smp_processor_id() != cpu)
		atomic_inc(&seen.elsewhere);
	if (current->policy != seen.policy || current->rt_priority != seen.rt_priority)
		atomic_inc(&seen.otherwise);
	if (seen.name && !right_thread())
		atomic_inc(&seen.others);
	atomic_inc(&seen.runs);
}

static void see_expire(struct hwt_timeout *timeout)
{
	see();
	kt_expire(timeout);
}

static void see_cancelled(struct hwt_timeout *timeout)
{
	see();
	kt_cancelled(timeout);
}

static void see_release(struct hwt_timeout *timeout)
{
	see();
	kt_release(timeout);
}

static const struct hwt_timeout_ops see_ops = {
	.expire = see_expire, .cancelled = see_cancelled, .release = see_release,
};

static void __init seen_init(int cpu)
{
	memset(&seen, 0, sizeof(seen));
	seen.cpu = cpu;
}

static struct kt kt[100];

/* Half of the timeouts fire, half are cancelled, all on the wheel's threads. */
static bool __init all_run(struct hwt_wheel *wheel)
{
	unsigned int i, ok = 0;

	for (i = 0; i < ARRAY_SIZE(kt); i++) {
		kt_init(&kt[i], wheel, &see_ops);
		kt_schedule(&kt[i], i % 2 ? KT_HOUR : i * KT_MS / 2);
	}
	for (i = 1; i < ARRAY_SIZE(kt); i += 2)
		hwt_cancel(&kt[i].timeout);
	for (i = 0; i < ARRAY_SIZE(kt); i++)
		ok += KT_WAIT(kt_releases(&kt[i]) == 1) &&
		      kt_expirations(&kt[i]) == !(i % 2) &&
		      atomic_read(&kt[i].cancelled) == i % 2 &&
		      !atomic_read(&kt[i].early);
	return ok == ARRAY_SIZE(kt);
}

static void __init place_on(const char *name, const struct cpumask *cpus)
{
	struct task_struct *task, *found[8];
	unsigned int n = 0;

	rcu_read_lock();
	for_each_process(task)
		if (!strncmp(task->comm, name, strlen(name)) && n < ARRAY_SIZE(found))
			found[n++] = get_task_struct(task);
	rcu_read_unlock();
	while (n--) {
		set_cpus_allowed_ptr(found[n], cpus);
		put_task_struct(found[n]);
	}
}

/* Count the threads that may run on @cpu only. */
static unsigned int __init threads_on(const char *name, unsigned int cpu)
{
	return kt_count_threads(name, cpumask_equal(task->cpus_ptr, cpumask_of(cpu)));
}

/* Are all threads of the wheel in TASK_IDLE, which ps shows as "I"? */
static bool __init all_idle(const char *name, unsigned int workers)
{
	return KT_WAIT(kt_count_threads(name, task_state_to_char(task) == 'I') == workers + 1);
}

static void __init test_pinned(unsigned int workers)
{
	static struct cpumask mask;
	struct hwt_wheel_params params = {
		.name = "pinned", .workers = workers, .cpus = &mask, .shards = 1,
	};
	struct hwt_wheel *wheel;
	int cpu, other;

	for_each_online_cpu(cpu) {
		cpumask_copy(&mask, cpumask_of(cpu));
		wheel = hwt_wheel_create(&params);
		KTEST(!IS_ERR(wheel), "a wheel on CPU %d with %u workers", cpu, workers);
		/* The wheel has a copy of the mask. */
		cpumask_clear(&mask);
		KTEST(all_idle("pinned", workers), "all threads sleep in TASK_IDLE");
		seen_init(cpu);
		seen.name = "pinned";
		seen.workers = workers;
		KTEST(all_run(wheel), "all run");
		KTEST(atomic_read(&seen.others) == 0, "callbacks not on the %s: %d of %d",
		      workers ? "workers" : "engine", atomic_read(&seen.others),
		      atomic_read(&seen.runs));
		KTEST(atomic_read(&seen.elsewhere) == 0, "callbacks on another CPU: %d of %d",
		      atomic_read(&seen.elsewhere), atomic_read(&seen.runs));
		KTEST(threads_on("pinned", cpu) == workers + 1 &&
		      kt_count_threads("pinned", true) == workers + 1,
		      "all threads may run on that CPU only");
		/* The kernel does this when a CPU is about to go offline, even if that fails. */
		place_on("pinned", cpu_possible_mask);
		KTEST(all_run(wheel) && KT_WAIT(threads_on("pinned", cpu) == workers + 1),
		      "threads are pinned again after the kernel has reset their affinity");
		other = kt_other_cpu(cpu);
		if (other != cpu) {
			place_on("pinned", cpumask_of(other));
			KTEST(all_run(wheel) && threads_on("pinned", other) == workers + 1,
			      "threads stay where an administrator has put them");
			place_on("pinned", cpumask_of(cpu));
		}
		KTEST(all_idle("pinned", workers), "all threads sleep in TASK_IDLE again");
		KTEST(hwt_wheel_destroy(wheel) == 0 &&
		      KT_WAIT(kt_count_threads("pinned", true) == 0),
		      "the wheel is destroyed, and no thread is left");
	}
}

static void __init test_priority(const char *what, unsigned int priority,
				 unsigned int policy, unsigned int rt_priority)
{
	struct hwt_wheel *wheel;
	unsigned int workers;

	for (workers = 0; workers <= 2; workers += 2) {
		wheel = kt_wheel("priority", .priority = priority, .workers = workers,
				 .shards = 1);
		KTEST(!IS_ERR(wheel), "a wheel of priority %s with %u workers", what, workers);
		seen_init(-1);
		seen.policy = policy;
		seen.rt_priority = rt_priority;
		KTEST(all_run(wheel), "all run");
		KTEST(atomic_read(&seen.otherwise) == 0,
		      "callbacks without policy %u and priority %u: %d of %d", policy,
		      rt_priority, atomic_read(&seen.otherwise), atomic_read(&seen.runs));
		KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	}
}

/* Its callback begins before the CPU goes offline, and ends after the CPU is back. */
static struct kt_stay stayer;

static void stayer_expire(struct hwt_timeout *timeout)
{
	kt_stay_here(timeout);
	see();
}

static const struct hwt_timeout_ops stayer_ops = { .expire = stayer_expire };

static bool __init goes_on(void)
{
	int runs = atomic_read(&seen.runs);

	return KT_WAIT(atomic_read(&seen.runs) > runs + 10);
}

/*
 * @busy: the engine is busy waiting on the CPU.
 * @workers: if not 0, one of them sleeps in a callback while the CPU goes offline.
 */
static void __init test_offline(unsigned int workers, bool busy)
{
	struct hwt_wheel_params params = {
		.name = "offline", .workers = workers, .cpus = cpumask_of(victim),
		.wait = busy ? HWT_WAIT_BUSY : HWT_WAIT_SLEEP, .shards = 1,
	};
	struct hwt_wheel *wheel = hwt_wheel_create(&params), *late;
	static struct kt beat;
	int round;

	KTEST(!IS_ERR(wheel), "a wheel on CPU %u with %u workers%s", victim, workers,
	      busy ? ", busy waiting" : "");
	seen_init(victim);
	init_completion(&stayer.out);
	kt_init_periodic(&beat, wheel, &see_ops);
	kt_init_periodic(&stayer.kt, wheel, &stayer_ops);
	hwt_schedule_periodic(&beat.periodic, 0, 5 * KT_MS, HWT_MODE_FIXED_DELAY);
	if (workers) {
		hwt_schedule_periodic(&stayer.kt.periodic, 0, 5 * KT_MS, HWT_MODE_FIXED_DELAY);
		KT_WAIT(kt_inside(&stayer));
	}
	KTEST(goes_on() && atomic_read(&seen.elsewhere) == 0, "callbacks run on that CPU");
	for (round = 0; round < 2; round++) {
		WRITE_ONCE(seen.cpu, -1);
		KTEST(remove_cpu(victim) == 0 && goes_on(),
		      "CPU %u goes offline: callbacks run", victim);
		late = hwt_wheel_create(&params);
		KTEST(PTR_ERR_OR_ZERO(late) == -EINVAL, "no wheel can be pinned to it now");
		if (!IS_ERR(late))
			hwt_wheel_destroy(late);
		KTEST(goes_on() && add_cpu(victim) == 0, "CPU %u is online again", victim);
		WRITE_ONCE(seen.cpu, victim);
		complete_all(&stayer.out);
		KTEST(goes_on() && goes_on() && atomic_read(&seen.elsewhere) == 0,
		      "callbacks run there again: %d elsewhere", atomic_read(&seen.elsewhere));
		KTEST(threads_on("offline", victim) == workers + 1,
		      "all threads may run on that CPU only");
	}
	WRITE_ONCE(seen.cpu, -1);
	KTEST(remove_cpu(victim) == 0 && goes_on(), "CPU %u goes offline again", victim);
	hwt_cancel_sync(&beat.timeout);
	hwt_cancel_sync(&stayer.kt.timeout);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed while the CPU is offline");
	KTEST(add_cpu(victim) == 0, "CPU %u is online again", victim);
}

static struct hwt_wheel * __init busy_wheel(unsigned int workers)
{
	struct hwt_wheel *wheel = kt_wheel("waiting", .cpus = cpumask_of(victim),
					   .wait = HWT_WAIT_BUSY, .workers = workers, .shards = 1);

	KTEST(!IS_ERR(wheel), "a wheel on CPU %u with %u workers, busy waiting", victim, workers);
	return wheel;
}

/* A busy waiting engine without timeouts must not keep its CPU from going offline. */
static void __init test_offline_idle(void)
{
	struct hwt_wheel *wheel = busy_wheel(0);
	unsigned int i;

	for (i = 0; i < 3; i++)
		KTEST(remove_cpu(victim) == 0 && add_cpu(victim) == 0,
		      "CPU %u goes offline and comes back", victim);
	seen_init(victim);
	KTEST(all_run(wheel) && atomic_read(&seen.elsewhere) == 0, "all run, there");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* One of the two CPUs of a wheel goes offline: callbacks run on the other one. */
static void __init test_offline_one(void)
{
	static struct cpumask mask;
	struct hwt_wheel_params made;
	struct hwt_wheel *wheel;

	cpumask_copy(&mask, cpumask_of(0));
	cpumask_set_cpu(victim, &mask);
	wheel = kt_wheel("one", .workers = 2, .cpus = &mask, .shards = 1);
	KTEST(!IS_ERR(wheel), "a wheel on CPUs 0 and %u", victim);
	seen_init(-1);
	KTEST(all_run(wheel), "all run");
	seen_init(0);
	KTEST(remove_cpu(victim) == 0 && all_run(wheel) &&
	      atomic_read(&seen.elsewhere) == 0, "CPU %u goes offline: all run on CPU 0", victim);
	seen_init(-1);
	KTEST(add_cpu(victim) == 0 && all_run(wheel), "the CPU is online again: all run");
	hwt_wheel_get_params(wheel, &made);
	KTEST(made.cpus && cpumask_equal(made.cpus, &mask), "the wheel's mask still has both CPUs");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init test_busy(void)
{
	struct hwt_wheel *wheel = busy_wheel(0);
	unsigned int i, ok = 0, early = 0;
	static struct kt far, near;
	unsigned long flags;

	seen_init(victim);
	KTEST(all_run(wheel) && atomic_read(&seen.elsewhere) == 0, "all run, there");

	kt_init(&far, wheel, &kt_ops);
	hwt_schedule(&far.timeout, KT_HOUR);
	for (i = 0; i < 100; i++) {
		kt_init(&near, wheel, &kt_ops);
		if (i % 4 == 1)
			hwt_schedule(&near.timeout, 2 * KT_HOUR);
		if (i % 4 == 2)
			local_irq_save(flags);
		kt_schedule(&near, (i % 5) * 3 * KT_MS);
		if (i % 4 == 2)
			local_irq_restore(flags);
		ok += KT_WAIT(kt_expirations(&near) == 1);
		early += atomic_read(&near.early);
		hwt_cancel_sync(&near.timeout);
	}
	KTEST(ok == 100 && early == 0,
	      "the engine waits for an hour, CPU %d schedules: %u of 100 fire, %u early",
	      raw_smp_processor_id(), ok, early);
	KTEST(kt_expirations(&far) == 0 && hwt_pending(&far.timeout), "the hour is still pending");
	kt_init(&near, wheel, &kt_ops);
	hwt_schedule(&near.timeout, KT_HOUR);
	hwt_cancel(&near.timeout);
	KTEST(KT_WAIT(kt_releases(&near) == 1), "a cancel is released");
	KTEST(kt_stats(wheel).wakeups == 0, "it never slept: %llu times", kt_stats(wheel).wakeups);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 1 && kt_releases(&far) == 1,
	      "a stop ends the busy waiting");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");

	/* Workers on the same CPU. */
	wheel = busy_wheel(2);
	seen_init(victim);
	KTEST(all_run(wheel) && atomic_read(&seen.elsewhere) == 0, "all run, there");
	/* The engine waits without a deadline. */
	msleep(50);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed while busy waiting");
}

/*
 * A CPU goes offline with timeouts on its submission list that the engine has not collected. They
 * must fire, and be counted.
 */
#define SUBMITTED	100

static struct kt first, there[SUBMITTED];

/* Submit all on the victim, for later than @first. */
static int submit(void *arg)
{
	struct hwt_wheel *wheel = arg;
	int i;

	for (i = 0; i < SUBMITTED; i++) {
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
	/* The engine collects @first and sleeps until it is due; later ones do not wake it. */
	KT_WAIT(kt_stats(wheel).collected == 1);
	msleep(50);
	thread = kt_thread(submit, wheel, victim);
	KT_WAIT(hwt_wheel_pending(wheel) == SUBMITTED + 1);
	KTEST(kt_thread_stop(thread) == victim, "submitted on CPU %u", victim);
	KTEST(kt_stats(wheel).collected == 1, "the engine has not collected them");
}

static void __init test_offline_submitted(void)
{
	struct hwt_wheel *wheel = kt_wheel("offline", .shards = 1);
	int i, fired = 0, early = 0;
	u64 now;

	submit_there(wheel, (KT_SLOW ? 18 : 6) * KT_SECOND);
	KTEST(remove_cpu(victim) == 0, "CPU %u is offline", victim);
	now = hwt_wheel_now(wheel);
	if (now < first.earliest)
		KTEST(kt_stats(wheel).collected == 1, "the engine has still not collected them");
	else
		KTEST_SKIP("the CPU went offline too late, after the engine has collected");
	KTEST(hwt_wheel_pending(wheel) >= SUBMITTED, "all are pending");
	for (i = 0; i < SUBMITTED; i++) {
		fired += KT_WAIT(kt_releases(&there[i]) == 1) &&
			 kt_expirations(&there[i]) == 1;
		early += atomic_read(&there[i].early);
	}
	KTEST(fired == SUBMITTED && early == 0, "%d of %d fire, %d early", fired, SUBMITTED, early);
	KTEST(hwt_wheel_pending(wheel) == 0, "none is pending");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	KTEST(add_cpu(victim) == 0, "CPU %u is online again", victim);
}

static void __init test_offline_stop(void)
{
	struct hwt_wheel *wheel = kt_wheel("offline", .shards = 1);
	int i, ok = 0;

	submit_there(wheel, KT_HOUR);
	KTEST(remove_cpu(victim) == 0, "CPU %u is offline", victim);
	for (i = 0; i < SUBMITTED / 2; i++)
		ok += hwt_cancel_sync(&there[i].timeout) == 1 &&
		      kt_releases(&there[i]) == 1;
	KTEST(ok == SUBMITTED / 2, "cancel_sync of half of them returns 1");
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == SUBMITTED / 2 + 1, "stop hands back the others");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	KTEST(add_cpu(victim) == 0, "CPU %u is online again", victim);
}

static DECLARE_COMPLETION(going);
static DECLARE_COMPLETION(made);

/* The CPU is still online, but the scheduler gives it no new tasks. */
static int victim_goes(unsigned int cpu)
{
	if (cpu == victim) {
		complete(&going);
		wait_for_completion_timeout(&made, KT_PATIENCE * HZ);
	}
	return 0;
}

static unsigned int fired_on;
static bool confine;

static void made_expire(struct hwt_timeout *timeout)
{
	WRITE_ONCE(fired_on, raw_smp_processor_id());
	/* With nohz_full=, kernel threads begin with an affinity that leaves out online CPUs. */
	if (READ_ONCE(confine))
		set_cpus_allowed_ptr(current, cpumask_of(0));
	/*
	 * As a wait for a spinlock on PREEMPT_RT: the scheduler warns of a thread on a CPU that
	 * its affinity forbids.
	 */
	migrate_disable();
	usleep_range(100, 200);
	migrate_enable();
	kt_expire(timeout);
}

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
		kt_setup(&maker->kt, maker->wheel, made_expire);
		WRITE_ONCE(confine, true);
		for (i = 0, fired = true; i < 10; i++)
			fired &= fires(&maker->kt);
		WRITE_ONCE(confine, false);
	}
	complete(&made);
	return kt_thread_end(fired);
}

static void __init test_made_then(unsigned int workers)
{
	struct maker maker = {
		.params = {
			.name = "made", .cpus = cpumask_of(victim), .workers = workers, .shards = 1,
		},
	};
	struct task_struct *thread;
	int state;

	reinit_completion(&going);
	reinit_completion(&made);
	state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "hwt_test:goes", NULL, victim_goes);
	KTEST(state > 0, "a hotplug callback is registered");
	if (state < 0)
		return;
	thread = kt_thread(make_then, &maker, 0);
	KTEST(remove_cpu(victim) == 0, "CPU %u is offline", victim);
	KTEST(kt_thread_stop(thread) == 1,
	      "a wheel for that CPU, %u workers, created meanwhile, fires", workers);
	KTEST(add_cpu(victim) == 0, "CPU %u is online again", victim);
	cpuhp_remove_state_nocalls(state);
	if (IS_ERR_OR_NULL(maker.wheel))
		return;
	/* The engine pins itself and the workers before its next pass. */
	fires(&maker.kt);
	KTEST(fires(&maker.kt) && fired_on == victim, "then callbacks run there: %u", fired_on);
	KTEST(hwt_wheel_destroy(maker.wheel) == 0, "the wheel is destroyed");
}

static void __init selftest(void)
{
	test_pinned(0);
	test_pinned(3);
	test_priority("normal", HWT_PRIO_NORMAL, SCHED_NORMAL, 0);
	test_priority("low FIFO", HWT_PRIO_FIFO_LOW, SCHED_FIFO, 1);
	test_priority("FIFO", HWT_PRIO_FIFO, SCHED_FIFO, MAX_RT_PRIO / 2);

	kt_stay_on(cpumask_of(0));
	victim = kt_other_cpu(0);
	if (victim == 0) {
		KTEST_SKIP("there is no second CPU");
		return;
	}
	test_busy();
	if (IS_ENABLED(CONFIG_HOTPLUG_CPU)) {
		test_offline_one();
		if (!kt_quick()) {
			test_offline_submitted();
			test_offline_stop();
			test_made_then(0);
			test_made_then(1);
			test_offline(0, false);
			test_offline(2, false);
			test_offline(0, true);
			test_offline_idle();
		}
	} else {
		KTEST_SKIP("this kernel has no CPU hotplug");
	}
	kt_stay_on(NULL);
}

KSTM_MODULE_LOADERS(test_pin);
