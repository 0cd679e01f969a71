// SPDX-License-Identifier: GPL-2.0-only
/*
 * Torture, in the manner of rcutorture: random calls for timeouts and wheels, from all contexts at
 * once, and a ledger for each timeout (torture_ledger.c).
 *
 * The run takes place inside insmod, which succeeds even after a fault, because some insmods retry
 * a module that fails. The verdict is in the log. A signal ends the run early, with a verdict. The
 * same seed makes the same calls, but not at the same times.
 */
#include "torture.h"

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/timekeeping.h>

unsigned int tt_seed;
module_param_named(seed, tt_seed, uint, 0444);
MODULE_PARM_DESC(seed, "Seed of all random numbers; 0: the time (default 0)");
static unsigned int seconds = 20;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "Length of the run (default 20)");
static unsigned int report = 10;
module_param(report, uint, 0444);
MODULE_PARM_DESC(report, "Seconds from one summary to the next; 0: none (default 10)");
unsigned int tt_threads;
module_param_named(threads, tt_threads, uint, 0444);
MODULE_PARM_DESC(threads, "Threads; 0: two for each CPU (default 0)");
unsigned int tt_timeouts = 100;
module_param_named(timeouts, tt_timeouts, uint, 0444);
MODULE_PARM_DESC(timeouts, "Timeouts of each thread (default 100)");
unsigned int tt_wheels = 6;
module_param_named(wheels, tt_wheels, uint, 0444);
MODULE_PARM_DESC(wheels, "Wheels at a time (default 6)");
unsigned int tt_pairs = 2;
module_param_named(pairs, tt_pairs, uint, 0444);
MODULE_PARM_DESC(pairs, "Pairs of threads with a sleeping wheel of their own (default 2)");

unsigned int tt_mix[TT_MIX_PARTS] = { 40, 12, 4, 24, 4, 6, 1, 9 };
module_param_array_named(mix, tt_mix, uint, NULL, 0444);
MODULE_PARM_DESC(mix, "Relative frequency of a thread's steps: arm, cancel, cancel_sync, use a timeout of another thread, drop a timeout, arm one and forget it, wait, query (default 40,12,4,24,4,6,1,9)");

bool tt_nmi = true;
module_param_named(nmi, tt_nmi, bool, 0444);
MODULE_PARM_DESC(nmi, "Calls from kprobe handlers, which count as NMIs (default Y)");
unsigned int tt_inject;
module_param_named(inject_ms, tt_inject, uint, 0444);
MODULE_PARM_DESC(inject_ms, "Milliseconds between the NMIs requested from the guest's host, without moving probes; 0: none (default 0)");
unsigned int tt_hotplug_ms = 2000;
module_param_named(hotplug_ms, tt_hotplug_ms, uint, 0444);
MODULE_PARM_DESC(hotplug_ms, "Mean milliseconds until a CPU is taken offline; 0: never (default 2000)");
unsigned int tt_clock_ms = 300;
module_param_named(clock_ms, tt_clock_ms, uint, 0444);
MODULE_PARM_DESC(clock_ms, "Mean milliseconds until the wall clock is set; 0: never (default 300)");
unsigned int tt_patience = KT_SLOW ? 180 : 60;
module_param_named(patience, tt_patience, uint, 0444);
MODULE_PARM_DESC(patience, "Seconds after which an event that has not occurred counts as lost (default 60; 180 with KASAN, KCSAN or PROVE_LOCKING)");

const char * const tt_op_name[] = {
	"schedule", "schedule_at", "schedule_slack", "schedule_at_slack", "schedule_earlier",
	"schedule_earlier_at", "schedule_pending", "schedule_pending_at", "schedule_periodic",
	"schedule_periodic_at", "cancel", "try_cancel", "delete", "try_delete", "cancel_sync",
	"shutdown_sync", "touch", "wait", "flush", "query", "init", "stop", "destroy", "expire",
	"cancelled", "handed back", "release", "steps", "wheels", "rounds asleep", "CPUs offline",
	"sets of the clock", "interrupts", "softirqs", "kprobe handlers",
	"kprobe handlers aimed at a timeout", "NMIs", "callbacks of BH wheels", "given back",
};

DEFINE_PER_CPU(unsigned long [TT_OPS], tt_ops);

u64 tt_sum(enum tt_op op)
{
	unsigned int cpu;
	u64 sum = 0;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(tt_ops, cpu)[op]);
	return sum;
}

/* All calls of hwt. The pairs make at least two calls in each round. */
static u64 tt_operations(void)
{
	u64 sum = 2 * tt_sum(TT_ROUND);
	unsigned int op;

	for (op = 0; op < TT_CALLS; op++)
		sum += tt_sum(op);
	return sum;
}

static bool ending;
static u64 lasted_ns;

bool tt_ending(void)
{
	return READ_ONCE(ending);
}

/* Return the length of the run, after its end. */
u64 tt_lasted_ms(void)
{
	return div_u64(lasted_ns, NSEC_PER_MSEC);
}

void tt_seed_for(struct rnd_state *rnd, unsigned int who)
{
	prandom_seed_state(rnd, ((u64)tt_seed << 32) + who * 2654435761U);
}

struct task_struct *tt_run(int (*fn)(void *arg), void *arg, const char *name, unsigned int n)
{
	struct kt_start start = { .fn = fn, .arg = arg };

	init_completion(&start.begun);
	return kt_thread_begin(kthread_create(kt_thread_main, &start, "torture/%s%u", name, n),
			       &start);
}

static void tt_summary(const char *when, u64 began)
{
	u64 arms = 0, ns = ktime_get_ns() - began, all = tt_operations();
	unsigned int op;

	for (op = 0; op < TT_ARMS; op++)
		arms += tt_sum(op);
	pr_info("%s %llu s: %llu operations (%llu/s): %llu schedules, %llu touches, %llu cancels, %llu deletes (%llu given back), %llu _sync, %llu flush and wait, %llu queries, %llu init; %llu fired (%llu on BH wheels), %llu cancelled, %llu handed back, %llu released; %llu interrupts, %llu softirqs, %llu NMI-like (%llu aimed), %llu NMIs, %llu rounds asleep; %llu wheels, %llu stopped; %llu CPUs offline, clock set %llu times; %s\n",
		when, div_u64(ns, NSEC_PER_SEC), all,
		div64_u64(all * 1000, max_t(u64, 1, div_u64(ns, NSEC_PER_MSEC))), arms,
		tt_sum(TT_TOUCH), tt_sum(TT_CANCEL) + tt_sum(TT_TRY_CANCEL),
		tt_sum(TT_DELETE) + tt_sum(TT_TRY_DELETE), tt_sum(TT_GIVEN),
		tt_sum(TT_CANCEL_SYNC) + tt_sum(TT_SHUTDOWN), tt_sum(TT_FLUSH) + tt_sum(TT_WAIT),
		tt_sum(TT_QUERY), tt_sum(TT_INIT), tt_sum(TT_EXPIRE), tt_sum(TT_BH),
		tt_sum(TT_CANCELLED), tt_sum(TT_HANDED), tt_sum(TT_RELEASE), tt_sum(TT_IRQ),
		tt_sum(TT_SOFT), tt_sum(TT_NMI), tt_sum(TT_AIMED), tt_sum(TT_INJECTED),
		tt_sum(TT_ROUND), tt_sum(TT_MADE),
		tt_sum(TT_STOP) + tt_sum(TT_DESTROY), tt_sum(TT_GONE), tt_sum(TT_SET),
		tt_failed() ? "FAILED" : "no faults");
}

static void tt_watch(u64 began)
{
	u64 said = began;

	while (!tt_failed() && !signal_pending(current) &&
	       ktime_get_ns() - began <= seconds * KT_SECOND) {
		msleep_interruptible(200);
		tt_threads_look();
		if (report && ktime_get_ns() - said >= report * KT_SECOND) {
			said = ktime_get_ns();
			tt_summary("after", began);
		}
	}
}

static int tt_start_all(void)
{
	/* First, because the lookup of symbols takes long. */
	tt_nmis_find();
	/* The interrupts start before CPUs go offline. */
	return tt_items_start(tt_threads * tt_timeouts) ?: tt_wheels_start() ?:
	       tt_irqs_start() ?: tt_disturb_start() ?: tt_shakes_start() ?:
	       tt_threads_start() ?: tt_nmis_start();
}

/* Stop the parts in an order in which none waits for a part that has ended. */
static void tt_stop_all(void)
{
	WRITE_ONCE(ending, true);
	tt_nmis_stop();
	tt_shakes_stop();
	tt_disturb_stop();
	tt_irqs_stop();
	/* Before the wheels: the keeper may be waiting for threads to drop timeouts. */
	tt_threads_stop();
	tt_wheels_stop();
	tt_items_stop();
}

unsigned int tt_mix_sum(void)
{
	unsigned int sum = 0, n;

	for (n = 0; n < TT_MIX_PARTS; n++)
		sum += tt_mix[n];
	return sum;
}

static int __init tt_module_init(void)
{
	u64 began;
	int ret;

	if (!tt_threads)
		tt_threads = 2 * num_online_cpus();
	if (!tt_timeouts || !tt_wheels || !tt_patience || !tt_mix_sum() ||
	    !seconds || tt_timeouts > 1000000 / tt_threads) {
		pr_err("parameters out of range\n");
		return -EINVAL;
	}
	if (!tt_seed)
		tt_seed = div_u64(ktime_get_real_ns(), NSEC_PER_USEC);
	pr_info("begins, seed=%u: %u threads, %u timeouts each, %u wheels, %u pairs\n", tt_seed,
		tt_threads, tt_timeouts, tt_wheels, tt_pairs);

	ret = tt_start_all();
	began = ktime_get_ns();
	if (!ret)
		tt_watch(began);
	lasted_ns = ktime_get_ns() - began;
	tt_stop_all();
	tt_summary("ends after", began);
	if (ret)
		pr_err("cannot start: %d\n", ret);
	else
		tt_verdict();
	if (tt_leaked()) {
		/* Callbacks may still come: the code has to stay, so insmod must succeed. */
		pr_err("stays loaded, because timeouts or users are left\n");
		__module_get(THIS_MODULE);
		return 0;
	}
	return ret;
}

static void __exit tt_module_exit(void)
{
}

module_init(tt_module_init);
module_exit(tt_module_exit);
MODULE_DESCRIPTION("hwt: torture, with a ledger");
MODULE_LICENSE("GPL");
