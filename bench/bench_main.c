// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwt_bench.ko: the cost of timeouts of hwt and of its alternatives, side by side in one run
 *
 * insmod runs the benchmarks, and returns at their end. Each repetition prints a line with "@bench"
 * to the kernel log; README.md describes it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/kernel_stat.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/tick.h>

#include "bench.h"

static char *run = "ops,through,slack,storm,late,scale";
module_param(run, charp, 0444);
MODULE_PARM_DESC(run, "Benchmarks to run, separated by commas");

bool bench_quick;
module_param_named(quick, bench_quick, bool, 0444);
MODULE_PARM_DESC(quick, "Fewer objects, fewer repetitions, less time");

unsigned int bench_runs;
module_param_named(runs, bench_runs, uint, 0444);
MODULE_PARM_DESC(runs, "Repetitions; 0: 7, or 3 if quick");

unsigned int bench_seconds;
module_param_named(seconds, bench_seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "Duration of the storm; 0: 30, or 2 if quick");

static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "Seed of the random numbers");

/* -- Tools ----------------------------------------------------------------- */

/* Print a repetition: @total divided by @count, the number of operations, which is not 0. */
void bench_print(u64 total, u64 count, const char *fmt, ...)
{
	struct va_format text = { .fmt = fmt };
	va_list args;
	u64 whole;
	u32 rest;

	whole = div_u64_rem(mul_u64_u64_div_u64(total, 1000, count), 1000, &rest);
	va_start(args, fmt);
	text.va = &args;
	pr_info("@bench %pV value=%llu.%03u\n", &text, whole, rest);
	va_end(args);
}

/* Was insmod killed? */
bool bench_stopped(void)
{
	return fatal_signal_pending(current);
}

void bench_sleep(u64 ns)
{
	ktime_t delay = ns_to_ktime(ns);

	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout(&delay, HRTIMER_MODE_REL);
}

static struct rnd_state rnd;

u64 bench_random_below(u64 limit)
{
	u64 random = (u64)prandom_u32_state(&rnd) << 32 | prandom_u32_state(&rnd);

	return mul_u64_u64_div_u64(random >> 1, limit, 1ULL << 63);
}

/* A random order of 0 to n - 1. */
void bench_shuffle(u32 *order, u32 n)
{
	u32 i, j;

	for (i = 0; i < n; i++) {
		j = bench_random_below(i + 1);
		order[i] = order[j];
		order[j] = i;
	}
}

static u64 bench_idle_ns(void)
{
	u64 sum = 0, us;
	int cpu;

	for_each_online_cpu(cpu) {
		us = get_cpu_idle_time_us(cpu, NULL);
		/* If the tick does not stop, idle time is counted by ticks. */
		sum += us == -1ULL ? kcpustat_cpu(cpu).cpustat[CPUTIME_IDLE] : us * 1000;
	}
	return sum;
}

void bench_busy_begin(struct bench_busy *busy)
{
	busy->idle = bench_idle_ns();
	busy->wall = ktime_get_ns();
}

u64 bench_busy_end(struct bench_busy *busy)
{
	u64 wall = (ktime_get_ns() - busy->wall) * num_online_cpus();
	u64 idle = bench_idle_ns() - busy->idle;

	return wall > idle ? wall - idle : 0;
}

/* -- The run ------------------------------------------------------------------ */

static const struct {
	const char	*name;
	int		(*run)(void);
} benches[] = {
	{ "ops",	bench_ops },
	{ "through",	bench_through },
	{ "slack",	bench_slack },
	{ "storm",	bench_storm },
	{ "late",	bench_late },
	{ "scale",	bench_scale },
	{ "trace",	bench_trace },
};

static bool __init bench_wanted(const char *name)
{
	const char *at = strstr(run, name), *end = at + strlen(name);

	return at && (at == run || at[-1] == ',') && (!*end || *end == ',');
}

static int __init bench_init(void)
{
	unsigned int i;
	int err = 0;

	if (!bench_runs)
		bench_runs = bench_quick ? 3 : 7;
	if (!bench_seconds)
		bench_seconds = bench_quick ? 2 : 30;
	prandom_seed_state(&rnd, seed);
	pr_info("%u CPUs, HZ=%d, seed=%u, %u runs\n", num_online_cpus(), HZ, seed, bench_runs);
	for (i = 0; i < ARRAY_SIZE(benches) && !err && !bench_stopped(); i++) {
		if (!bench_wanted(benches[i].name))
			continue;
		pr_info("running: %s\n", benches[i].name);
		err = benches[i].run();
	}
	if (!err && bench_stopped())
		err = -EINTR;
	pr_info("done: %d\n", err);
	return err;
}
module_init(bench_init);

static void __exit bench_exit(void)
{
}
module_exit(bench_exit);

MODULE_DESCRIPTION("hwt: benchmarks, against timer_list, hrtimer and delayed_work");
MODULE_LICENSE("GPL");
