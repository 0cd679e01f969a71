// SPDX-License-Identifier: GPL-2.0-only
/*
 * Torture, in the manner of rcutorture: what may be done to timeouts and wheels, at random, from
 * everywhere at once, and a ledger for each timeout (torture_ledger.c says what it holds against
 * hwt).
 *
 * The run takes place inside insmod. The verdict is in the log: a module that refuses to be loaded
 * is tried again by some insmods. A signal ends the run early, in order. Another run with the same
 * seed does the same things, but not at the same time.
 */
#include "torture.h"

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/timekeeping.h>

unsigned int tt_seed;
module_param_named(seed, tt_seed, uint, 0444);
MODULE_PARM_DESC(seed, "What is random follows from it; 0: from the time");
static unsigned int seconds = 20;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "How long (default 20)");
static unsigned int report = 10;
module_param(report, uint, 0444);
MODULE_PARM_DESC(report, "Seconds from one summary to the next (default 10)");
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
MODULE_PARM_DESC(pairs, "Pairs of threads that have a sleeping wheel to themselves (default 2)");

unsigned int tt_mix[TT_MIX_PARTS] = { 40, 12, 4, 24, 4, 6, 1, 9 };
module_param_array_named(mix, tt_mix, uint, NULL, 0444);
MODULE_PARM_DESC(mix, "How often a thread does what: arm, cancel, cancel_sync, somebody else's timeout, give one up, arm and forget, wait, ask");

bool tt_nmi = true;
module_param_named(nmi, tt_nmi, bool, 0444);
MODULE_PARM_DESC(nmi, "From what is like an NMI: handlers of kprobes (default Y)");
unsigned int tt_inject;
module_param_named(inject_ms, tt_inject, uint, 0444);
MODULE_PARM_DESC(inject_ms, "Milliseconds between NMIs that the host is asked for, without wandering probes; 0: none (default 0)");
unsigned int tt_hotplug_ms = 2000;
module_param_named(hotplug_ms, tt_hotplug_ms, uint, 0444);
MODULE_PARM_DESC(hotplug_ms, "Milliseconds until another CPU goes; 0: none does (default 2000)");
unsigned int tt_clock_ms = 300;
module_param_named(clock_ms, tt_clock_ms, uint, 0444);
MODULE_PARM_DESC(clock_ms, "Milliseconds until the wall clock is set; 0: it is not (default 300)");
unsigned int tt_patience = KT_SLOW ? 180 : 60;
module_param_named(patience, tt_patience, uint, 0444);
MODULE_PARM_DESC(patience, "Seconds that anything may take before it counts as not happening at all (default 60; 180 on a kernel that checks a lot)");

const char * const tt_op_name[] = {
	"schedule", "schedule_at", "schedule_slack", "schedule_at_slack", "schedule_earlier",
	"schedule_earlier_at", "schedule_pending", "schedule_pending_at", "schedule_periodic",
	"schedule_periodic_at", "cancel", "try_cancel", "cancel_sync", "shutdown_sync", "wait",
	"flush", "query", "init", "stop", "destroy", "expire", "cancelled", "handed back",
	"release", "steps", "wheels", "rounds asleep", "a CPU that goes", "the clock set",
	"interrupts", "what is like an NMI", "an NMI with a timeout in hand", "NMIs",
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

/* Calls, and those that the pairs make, at least two a round. */
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

/* How long it took, once that is known. */
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
	pr_info("%s %llu s: %llu operations (%llu/s): %llu scheduled, %llu cancelled, %llu _sync, %llu flush and wait, %llu asked, %llu init; %llu fired, %llu told, %llu handed back, %llu released; %llu interrupts, %llu as NMI (%llu aimed), %llu NMIs, %llu rounds asleep; %llu wheels, %llu stopped; %llu CPUs gone, clock set %llu times; %s\n",
		when, div_u64(ns, NSEC_PER_SEC), all,
		div64_u64(all * 1000, max_t(u64, 1, div_u64(ns, NSEC_PER_MSEC))), arms,
		tt_sum(TT_CANCEL) + tt_sum(TT_TRY_CANCEL),
		tt_sum(TT_CANCEL_SYNC) + tt_sum(TT_SHUTDOWN), tt_sum(TT_FLUSH) + tt_sum(TT_WAIT),
		tt_sum(TT_QUERY), tt_sum(TT_INIT), tt_sum(TT_EXPIRE), tt_sum(TT_CANCELLED),
		tt_sum(TT_HANDED), tt_sum(TT_RELEASE), tt_sum(TT_IRQ), tt_sum(TT_NMI),
		tt_sum(TT_AIMED), tt_sum(TT_INJECTED), tt_sum(TT_ROUND), tt_sum(TT_MADE),
		tt_sum(TT_STOP) + tt_sum(TT_DESTROY), tt_sum(TT_GONE), tt_sum(TT_SET),
		tt_failed() ? "FAILED" : "all is well");
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
	/* To find names takes long: before anything else goes on. */
	tt_nmis_find();
	/* Before CPUs go: the interrupts. */
	return tt_items_start(tt_threads * tt_timeouts) ?: tt_wheels_start() ?:
	       tt_irqs_start() ?: tt_disturb_start() ?: tt_shakes_start() ?:
	       tt_threads_start() ?: tt_nmis_start();
}

/* In an order in which nothing is waited for that is not there any more. */
static void tt_stop_all(void)
{
	WRITE_ONCE(ending, true);
	tt_nmis_stop();
	tt_shakes_stop();
	tt_disturb_stop();
	tt_irqs_stop();
	/* The wheel that is just leaving waits for the threads. */
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
		pr_err("could not be started: %d\n", ret);
	else
		tt_verdict();
	if (tt_leaked()) {
		/* Something may still call back: the code has to stay, so it may not fail. */
		pr_err("stays loaded, because of what is left\n");
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
