// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels of several shards: the shard of each timeout, the threads of each shard, and the calls on
 * a wheel, which work on all of its shards.
 *
 * hwt-test: timeout 240
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/sched/task.h>
#include <linux/topology.h>

#include "hwt_ktest.h"

#define CPUS_MAX	16

static unsigned int cpus;	/* online, 0 to cpus - 1; most wheels here have a shard for each */
static struct kt there[CPUS_MAX];

static struct hwt_wheel * __init sharded(void)
{
	struct hwt_wheel *wheel = kt_wheel("sharded", .shards = cpus);

	KTEST(!IS_ERR(wheel), "a wheel of %u shards", cpus);
	return wheel;
}

/* Return the shard of a timeout, for comparisons only. */
static const struct hwt_shard *shard_of(const struct kt *kt)
{
	return kt->timeout.shard;
}

/* -- Work on each CPU ------------------------------------------------------- */

struct work {
	struct hwt_wheel		*wheel;
	const struct hwt_timeout_ops	*ops;
	u64				delay;
	bool				init;
	bool				schedule;
};

/* Runs on each CPU. Initialise and schedule the CPU's timeout; return the schedule's result. */
static int work_there(void *arg)
{
	struct work *work = arg;
	struct kt *kt = &there[raw_smp_processor_id()];
	int ret = 0;

	if (work->init)
		kt_init(kt, work->wheel, work->ops);
	if (work->schedule)
		ret = kt_schedule(kt, work->delay);
	return kt_thread_end(ret);
}

static void __init work_everywhere(struct work work)
{
	unsigned int cpu;

	for (cpu = 0; cpu < cpus; cpu++)
		kt_thread_stop(kt_thread(work_there, &work, cpu));
}

static void __init init_everywhere(struct hwt_wheel *wheel, const struct hwt_timeout_ops *ops)
{
	work_everywhere((struct work) { .wheel = wheel, .ops = ops, .init = true });
}

static void __init schedule_everywhere(u64 delay)
{
	work_everywhere((struct work) { .delay = delay, .schedule = true });
}

static unsigned int __init count_fired(void)
{
	unsigned int cpu, n = 0;

	for (cpu = 0; cpu < cpus; cpu++)
		n += kt_expirations(&there[cpu]) == 1 && !atomic_read(&there[cpu].early);
	return n;
}

static unsigned int __init count_released(void)
{
	unsigned int cpu, n = 0;

	for (cpu = 0; cpu < cpus; cpu++)
		n += kt_releases(&there[cpu]) == 1;
	return n;
}

/* -- The shard of a timeout -------------------------------------------------- */

static int fired_on[CPUS_MAX];

static void place_expire(struct hwt_timeout *timeout)
{
	fired_on[kt_of(timeout) - there] = raw_smp_processor_id();
	kt_expire(timeout);
}

static const struct hwt_timeout_ops place_ops = {
	.expire		= place_expire,
	.release	= kt_release,
};

static void __init test_place(void)
{
	struct hwt_wheel *wheel = sharded();
	unsigned int cpu, other, same = 0, elsewhere = 0, theirs = 0;
	struct hwt_wheel_params params;

	hwt_wheel_get_params(wheel, &params);
	KTEST(params.shards == cpus && !params.cpus, "its parameters have this number");
	KTEST(KT_WAIT(kt_count_threads("sharded:", true) == cpus), "each shard has a thread");
	init_everywhere(wheel, &place_ops);
	for (cpu = 0; cpu < cpus; cpu++) {
		theirs += hwt_timeout_wheel(&there[cpu].timeout) == wheel;
		for (other = 0; other < cpu; other++)
			same += shard_of(&there[other]) == shard_of(&there[cpu]);
	}
	KTEST(same == 0, "each CPU has a shard of its own: %u pairs do not", same);
	KTEST(theirs == cpus, "hwt_timeout_wheel() returns the wheel of the client");
	/* Schedule all from one CPU: a timeout stays on its shard. */
	for (cpu = 0; cpu < cpus; cpu++)
		kt_schedule(&there[cpu], cpu * KT_MS);
	KTEST(KT_WAIT(count_released() == cpus) && count_fired() == cpus, "all fire");
	for (cpu = 0; cpu < cpus; cpu++)
		elsewhere += fired_on[cpu] != cpu;
	KTEST(elsewhere == 0, "callbacks not on the CPU of the initialisation: %u", elsewhere);

	/* Move a timeout that is not held to the shard of the present CPU. */
	kt_stay_on(cpumask_of(0));
	hwt_timeout_set_wheel(&there[cpus - 1].timeout, wheel);
	KTEST(shard_of(&there[cpus - 1]) == shard_of(&there[0]), "a timeout is moved to CPU 0");
	kt_stay_on(NULL);
	kt_schedule(&there[cpus - 1], 0);
	KTEST(KT_WAIT(kt_expirations(&there[cpus - 1]) == 2) && fired_on[cpus - 1] == 0,
	      "it fires on CPU 0");
	hwt_cancel_sync(&there[cpus - 1].timeout);
	KTEST(hwt_wheel_destroy(wheel) == 0 && KT_WAIT(!kt_count_threads("sharded:", true)),
	      "the wheel is destroyed, and no thread is left");
}

/* Shards divide the CPUs by nodes first. */
static void __init test_nodes(void)
{
	struct hwt_wheel *wheel = kt_wheel("sharded", .shards = 2);
	unsigned int cpu, other, wrong = 0;

	if (num_online_nodes() != 2) {
		KTEST_SKIP("%u NUMA nodes, not two", num_online_nodes());
		hwt_wheel_destroy(wheel);
		return;
	}
	init_everywhere(wheel, &kt_ops);
	for (cpu = 0; cpu < cpus; cpu++)
		for (other = 0; other < cpu; other++)
			wrong += (shard_of(&there[other]) == shard_of(&there[cpu])) !=
				 (cpu_to_node(other) == cpu_to_node(cpu));
	KTEST(wrong == 0, "two nodes, two shards: %u pairs of CPUs are divided wrong", wrong);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init test_params(void)
{
	struct hwt_wheel_params params;
	struct hwt_wheel *wheel;

	/* More shards than CPUs: some shards have no CPU, and no timeouts. */
	wheel = kt_wheel("many", .shards = 2 * cpus, .workers = 1);
	KTEST(!IS_ERR(wheel) && KT_WAIT(kt_count_threads("many:", true) == 4 * cpus),
	      "%u shards, each with a worker", 2 * cpus);
	init_everywhere(wheel, &kt_ops);
	schedule_everywhere(KT_MS);
	KTEST(KT_WAIT(count_released() == cpus) && count_fired() == cpus, "all fire");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");

	/* On CPUs chosen by the client. */
	wheel = kt_wheel("chosen", .shards = 2, .cpus = cpumask_of(0));
	hwt_wheel_get_params(wheel, &params);
	KTEST(!IS_ERR(wheel) && cpumask_equal(params.cpus, cpumask_of(0)) &&
	      KT_WAIT(kt_count_threads("chosen:", cpumask_equal(task->cpus_ptr,
								cpumask_of(0))) == 2),
	      "two shards on one CPU");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");

	params = (struct hwt_wheel_params) { .name = "shared", .shards = 2, .tick_ns = 3 * KT_MS };
	wheel = hwt_wheel_get_shared(&params);
	KTEST(!IS_ERR(wheel), "a shared wheel of two shards");
	init_everywhere(wheel, &kt_ops);
	schedule_everywhere(0);
	KTEST(KT_WAIT(count_released() == cpus) && count_fired() == cpus, "all fire");
	hwt_wheel_put(wheel);
}

/* -- A blocked shard ---------------------------------------------------------- */

static struct kt_stay stuck;

static void __init test_stuck(void)
{
	struct hwt_wheel *wheel = sharded();
	struct hwt_wheel_stats stats;

	init_everywhere(wheel, &kt_ops);
	kt_stay_on(cpumask_of(0));
	KTEST(kt_stay_begin(&stuck, wheel), "a callback blocks the shard of CPU 0");
	kt_stay_on(NULL);
	schedule_everywhere(0);
	KTEST(KT_WAIT(count_fired() == cpus - 1) && !kt_expirations(&there[0]),
	      "the timeouts of all other shards fire");
	stats = kt_stats(wheel);
	KTEST(stats.pending == 1 && stats.expired == cpus && stats.scheduled == cpus + 1,
	      "the statistics are sums: %llu pending, %llu expired, %llu scheduled",
	      stats.pending, stats.expired, stats.scheduled);
	kt_stay_end(&stuck);
	KTEST(KT_WAIT(count_fired() == cpus), "that of CPU 0 fires when the callback has returned");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Flush, barrier, stop ------------------------------------------------------- */

static struct {
	struct hwt_wheel	*wheel;
	long			stop;
	int			flush, barrier, destroy;
	bool			done;
} inside;

static void inside_expire(struct hwt_timeout *timeout)
{
	inside.flush = hwt_wheel_flush(inside.wheel);
	inside.barrier = hwt_wheel_barrier(inside.wheel);
	inside.stop = hwt_wheel_stop(inside.wheel, NULL, NULL);
	inside.destroy = hwt_wheel_destroy(inside.wheel);
	/* Pairs with test_stop(), which then sees the results. */
	smp_store_release(&inside.done, true);
}

static void __init test_flush(void)
{
	struct hwt_wheel *wheel = sharded();
	unsigned int cpu;

	init_everywhere(wheel, &kt_slow_ops);
	for (cpu = 0; cpu < cpus; cpu++)
		hwt_schedule_at(&there[cpu].timeout, 1);
	KTEST(hwt_wheel_flush(wheel) == 0 && count_fired() == cpus, "a flush waits for all shards");
	KTEST(hwt_wheel_barrier(wheel) == 0 && count_released() == cpus,
	      "a barrier waits for all shards: %u of %u released", count_released(), cpus);
	init_everywhere(wheel, &kt_slow_ops);
	schedule_everywhere(KT_HOUR);
	for (cpu = 0; cpu < cpus; cpu++)
		hwt_cancel(&there[cpu].timeout);
	KTEST(hwt_wheel_barrier(wheel) == 0 && count_released() == cpus,
	      "a barrier waits for cancelled timeouts: %u of %u released", count_released(), cpus);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static atomic_t handed_back[CPUS_MAX];

static void take_back(struct hwt_timeout *timeout, void *arg)
{
	atomic_inc(&handed_back[kt_of(timeout) - there]);
}

static void __init test_stop(void)
{
	struct hwt_wheel *wheel = sharded();
	unsigned int cpu, once = 0;
	static struct kt kt;

	memset(&inside, 0, sizeof(inside));
	memset(handed_back, 0, sizeof(handed_back));
	inside.wheel = wheel;
	/* The last shard is not the wheel that the client knows. */
	kt_stay_on(cpumask_of(cpus - 1));
	kt_setup(&kt, wheel, inside_expire);
	kt_stay_on(NULL);
	kt_schedule(&kt, 0);
	/* Pairs with inside_expire(): the test sees the results. */
	KTEST(KT_WAIT(smp_load_acquire(&inside.done)), "a callback runs on CPU %u", cpus - 1);
	KTEST(inside.flush == -EDEADLK && inside.barrier == -EDEADLK && inside.stop == -EDEADLK &&
	      inside.destroy == -EDEADLK, "in it, flush, barrier, stop and destroy: %d %d %ld %d",
	      inside.flush, inside.barrier, inside.stop, inside.destroy);
	hwt_cancel_sync(&kt.timeout);

	init_everywhere(wheel, &kt_ops);
	schedule_everywhere(KT_HOUR);
	KTEST(hwt_wheel_stop(wheel, take_back, NULL) == cpus, "a stop hands back all timeouts");
	for (cpu = 0; cpu < cpus; cpu++)
		once += atomic_read(&handed_back[cpu]) == 1 && kt_releases(&there[cpu]) == 1;
	KTEST(once == cpus, "each is handed back once: %u of %u", once, cpus);
	for (cpu = 0, once = 0; cpu < cpus; cpu++)
		once += hwt_schedule(&there[cpu].timeout, 0) == -ESHUTDOWN;
	KTEST(once == cpus, "all shards are closed: %u of %u", once, cpus);
	KTEST(kt_stats(wheel).handed_back == cpus && kt_stats(wheel).rejected == cpus,
	      "the statistics count both");
	KTEST(hwt_wheel_stop(wheel, take_back, NULL) == 0, "a second stop hands back none");
	KTEST(kt_stopped(wheel), "a flush returns -ESHUTDOWN");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* Timeouts of all shards arm each other while the wheel stops. */
static void chain_expire(struct hwt_timeout *timeout)
{
	struct kt *kt = kt_note_expired(timeout), *next = kt + 1;

	atomic_inc(&kt->expired);
	hwt_schedule(&(next < there + cpus ? next : there)->timeout, 0);
}

static const struct hwt_timeout_ops chain_ops = {
	.expire		= chain_expire,
	.release	= kt_release,
};

static unsigned int __init sum_fired(void)
{
	unsigned int cpu, sum = 0;

	for (cpu = 0; cpu < cpus; cpu++)
		sum += kt_expirations(&there[cpu]);
	return sum;
}

static void __init test_stop_busy(void)
{
	unsigned int cpu, round, fired, left = 0;
	struct hwt_wheel *wheel;

	for (round = 0; round < 10; round++) {
		wheel = kt_wheel("busy", .shards = cpus);
		init_everywhere(wheel, &chain_ops);
		schedule_everywhere(0);
		KT_WAIT(kt_expirations(&there[0]) > 2);
		hwt_wheel_stop(wheel, NULL, NULL);
		fired = sum_fired();
		for (cpu = 0; cpu < cpus; cpu++)
			left += hwt_held(&there[cpu].timeout);
		usleep_range(2000, 3000);
		left += sum_fired() - fired;
		hwt_wheel_destroy(wheel);
	}
	KTEST(left == 0, "callbacks arm timeouts of other shards during a stop: %u left",
	      left);
}

/* -- Waits of callbacks of several shards ------------------------------------------ */

#define WAIT_NS	(20 * KT_SECOND)

static struct kt crossed[2];
static int crossed_ret[2];
static atomic_t waiting;

/* Wait for the timeout of the other shard. */
static void crossed_expire(struct hwt_timeout *timeout)
{
	int i = kt_of(timeout) - crossed;

	atomic_inc(&waiting);
	crossed_ret[i] = hwt_wait(&there[!i].timeout, WAIT_NS);
	kt_expire(timeout);
}

/* Callbacks keep both engines from collecting the cancels that end their waits. */
static void __init test_wait(void)
{
	struct hwt_wheel *wheel = kt_wheel("crossed", .shards = cpus);
	int i;

	atomic_set(&waiting, 0);
	/* Without a ->cancelled, for which a wait lasts. */
	init_everywhere(wheel, &place_ops);
	schedule_everywhere(KT_HOUR);
	for (i = 0; i < 2; i++) {
		kt_stay_on(cpumask_of(i));
		kt_setup(&crossed[i], wheel, crossed_expire);
		kt_schedule(&crossed[i], 0);
	}
	kt_stay_on(NULL);
	KTEST(KT_WAIT(atomic_read(&waiting) == 2), "callbacks of two shards wait crosswise");
	for (i = 0; i < 2; i++)
		hwt_cancel(&there[i].timeout);
	KTEST(KT_WAIT(kt_expirations(&crossed[0]) && kt_expirations(&crossed[1])) &&
	      !crossed_ret[0] && !crossed_ret[1], "cancels end both waits: %d, %d",
	      crossed_ret[0], crossed_ret[1]);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static struct hwt_periodic beat;
static int waiter_ret;

/* Periodic. Return some time after a stop has begun, so that the stop has drained its shard. */
static void beat_expire(struct hwt_timeout *timeout)
{
	if (atomic_inc_return(&waiting) > 1)
		return;
	while (hwt_schedule(&there[0].timeout, KT_HOUR) != -ESHUTDOWN)
		usleep_range(1000, 2000);
	msleep(300);
}

static const struct hwt_timeout_ops beat_ops = { .expire = beat_expire };

static void waiter_expire(struct hwt_timeout *timeout)
{
	atomic_inc(&waiting);
	waiter_ret = hwt_wait(&beat.timeout, WAIT_NS);
}

static void sync_expire(struct hwt_timeout *timeout)
{
	atomic_inc(&waiting);
	hwt_cancel_sync(&crossed[1].timeout);
}

/* A stop ends the threads of the first shard first, which wait for a callback of the second. */
static void __init test_stop_wait(void)
{
	struct hwt_wheel *wheel = kt_wheel("waits", .shards = cpus, .workers = 2);

	atomic_set(&waiting, 0);
	kt_stay_on(cpumask_of(0));
	kt_setup(&there[0], wheel, kt_expire);
	kt_setup(&crossed[0], wheel, sync_expire);
	kt_stay_on(cpumask_of(1));
	hwt_periodic_init(&beat, wheel, &beat_ops);
	kt_setup(&crossed[1], wheel, waiter_expire);
	kt_stay_on(NULL);
	hwt_schedule_periodic(&beat, 0, KT_HOUR, HWT_MODE_FIXED_RATE);
	KT_WAIT(atomic_read(&waiting) == 1);
	kt_schedule(&crossed[1], 0);
	KT_WAIT(atomic_read(&waiting) == 2);
	kt_schedule(&crossed[0], 0);
	KTEST(KT_WAIT(atomic_read(&waiting) == 3), "a _sync waits for a hwt_wait()");
	hwt_wheel_stop(wheel, NULL, NULL);
	KTEST(waiter_ret == -ERESTARTSYS || waiter_ret == 0, "a stop ends the wait: %d",
	      waiter_ret);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Limits, clocks ---------------------------------------------------------- */

#define LIMIT	10

static int fill(void *arg)
{
	struct hwt_wheel *wheel = arg;
	struct kt *kt = kt_alloc(LIMIT, sizeof(*kt));
	int i, n = 0;

	for (i = 0; i < LIMIT; i++) {
		kt_init(&kt[i], wheel, &kt_plain_ops);
		n += hwt_schedule(&kt[i].timeout, KT_HOUR) == 0;
	}
	kt_thread_end(0);
	for (i = 0; i < LIMIT; i++)
		hwt_cancel_sync(&kt[i].timeout);
	vfree(kt);
	return n;
}

static void __init test_limit(void)
{
	struct hwt_wheel *wheel = kt_wheel("limited", .shards = cpus, .max_pending = LIMIT);
	struct task_struct *thread[CPUS_MAX];
	unsigned int cpu;
	int n = 0;

	for (cpu = 0; cpu < cpus; cpu++)
		thread[cpu] = kt_thread(fill, wheel, cpu);
	KTEST(KT_WAIT(kt_stats(wheel).rejected == (cpus - 1) * LIMIT) &&
	      hwt_wheel_pending(wheel) == LIMIT,
	      "max_pending is exact over all shards: %llu pending", hwt_wheel_pending(wheel));
	for (cpu = 0; cpu < cpus; cpu++)
		n += kt_thread_stop(thread[cpu]);
	KTEST(n == LIMIT, "%d schedules have succeeded", n);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static struct {
	atomic_t	calls;
	s64		jump_ns;
} clock;

static void clock_was_set(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	clock.jump_ns += jump_ns;
	atomic_inc(&clock.calls);
}

static void __init test_clock_set(void)
{
	struct hwt_wheel *wheel = kt_wheel("clock", .shards = cpus, .clock = HWT_CLOCK_REALTIME,
					   .clock_set = clock_was_set);

	atomic_set(&clock.calls, 0);
	clock.jump_ns = 0;
	init_everywhere(wheel, &kt_ops);
	schedule_everywhere(KT_HOUR);
	kt_set_clock(7200);
	KTEST(KT_WAIT(count_fired() == cpus), "the clock is set forward: all shards fire");
	KTEST(KT_WAIT(atomic_read(&clock.calls) == 1), "clock_set is called once: %d",
	      atomic_read(&clock.calls));
	KTEST(kt_stats(wheel).clock_sets == 1, "the statistics count one set");
	kt_set_clock(-7200);
	KTEST(KT_WAIT(atomic_read(&clock.calls) == 2) && div_s64(clock.jump_ns, NSEC_PER_SEC) == 0,
	      "set back: clock_set is called again");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Hotplug ------------------------------------------------------------------- */

/* All CPUs of the second shard go offline and come back. */
static void __init test_offline(void)
{
	struct hwt_wheel *wheel = kt_wheel("offline", .shards = 2);
	unsigned int cpu, last = cpus - 1, gone;

	kt_stay_on(cpumask_of(0));
	init_everywhere(wheel, &kt_ops);
	schedule_everywhere(100 * KT_MS);
	for (cpu = last; cpu && shard_of(&there[cpu]) == shard_of(&there[last]); cpu--)
		if (remove_cpu(cpu))
			break;
	gone = last - cpu;
	KTEST(shard_of(&there[cpu]) != shard_of(&there[last]),
	      "all %u CPUs of a shard go offline", gone);
	KTEST(KT_WAIT(count_fired() == cpus), "its timeouts fire: %u of %u", count_fired(), cpus);
	kt_init(&there[last], wheel, &kt_ops);
	kt_schedule(&there[last], 0);
	KTEST(KT_WAIT(count_fired() == cpus), "a new one fires, too");
	while (cpu < last)
		add_cpu(++cpu);
	KTEST(num_online_cpus() >= cpus, "the CPUs are online again");
	KTEST(KT_WAIT(kt_count_threads("offline:1",
				       cpumask_test_cpu(last, task->cpus_ptr) &&
				       !cpumask_test_cpu(0, task->cpus_ptr)) == 1),
	      "the thread of the shard runs on them");
	kt_stay_on(NULL);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init selftest(void)
{
	cpus = min_t(unsigned int, num_online_cpus(), CPUS_MAX);
	if (cpus < 2) {
		KTEST_SKIP("there is only one CPU");
		return;
	}
	test_place();
	test_nodes();
	test_params();
	test_stuck();
	test_flush();
	test_stop();
	test_stop_busy();
	test_wait();
	test_stop_wait();
	test_limit();
	test_clock_set();
	if (IS_ENABLED(CONFIG_HOTPLUG_CPU) && cpus == num_online_cpus())
		test_offline();
}

KSTM_MODULE_LOADERS(test_shards);
