// SPDX-License-Identifier: GPL-2.0-only
/*
 * Disturbances: CPUs go offline and online, the wall clock is set
 */
#include "torture.h"

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/timekeeping.h>

static struct task_struct *tt_plug;

/*
 * Pin the calling thread to CPU @n, modulo their number, if that is online. Not while a CPU goes
 * offline: a thread pinned to that CPU would run elsewhere, against its mask, and migrate_enable()
 * of PREEMPT_RT warns of that.
 */
void tt_stay_on(unsigned int n)
{
	unsigned int cpu = n % nr_cpu_ids;

	cpus_read_lock();
	if (cpu_online(cpu))
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
	cpus_read_unlock();
}

#ifdef CONFIG_HOTPLUG_CPU

static void tt_all_back(void)
{
	unsigned int cpu;

	for_each_present_cpu(cpu)
		if (!cpu_online(cpu) && add_cpu(cpu))
			pr_info("CPU %u does not come online again\n", cpu);
}

/* Take a random CPU offline. Some CPUs cannot go, and the last one has to stay. */
static bool tt_one_goes(struct rnd_state *rnd)
{
	unsigned int first = tt_pick(rnd, nr_cpu_ids), n, cpu;

	for (n = 0; n < nr_cpu_ids; n++) {
		cpu = (first + n) % nr_cpu_ids;
		if (cpu_online(cpu) && num_online_cpus() > 1 && !remove_cpu(cpu))
			return true;
	}
	return false;
}

static int tt_plug_main(void *arg)
{
	struct rnd_state rnd;

	tt_seed_for(&rnd, 5);
	while (!kthread_should_stop()) {
		msleep(1 + tt_pick(&rnd, 2 * tt_hotplug_ms));
		if (tt_ending())
			continue;
		if (!tt_one_goes(&rnd))
			continue;
		tt_count(TT_GONE);
		msleep(tt_pick(&rnd, tt_hotplug_ms));
		tt_all_back();
		tt_irqs_home();
	}
	tt_all_back();
	return 0;
}

#else

static int tt_plug_main(void *arg)
{
	return 0;
}

#endif

bool tt_can_plug(void)
{
	return IS_ENABLED(CONFIG_HOTPLUG_CPU) && tt_hotplug_ms && num_present_cpus() > 1;
}

#define TT_AGO	8	/* settings of the wall clock that are remembered */

static struct task_struct *tt_setter;
/* The offset of the wall clock to CLOCK_MONOTONIC at the start of the run. */
static s64 tt_home;
/* Twice the number of settings; odd during one. */
static unsigned int tt_wall_seq;
/* The offset before each of the last settings. */
static s64 tt_wall_before[TT_AGO];

/* Return the number of settings of the wall clock. */
unsigned int tt_wall_set(void)
{
	return READ_ONCE(tt_wall_seq) / 2;
}

unsigned int tt_wall_begin(void)
{
	/* Pairs with tt_set_wall(): a caller that reads an even number reads the new time. */
	return smp_load_acquire(&tt_wall_seq);
}

/* Was the wall clock set since tt_wall_begin(), or may it have been? */
bool tt_wall_changed(unsigned int begun)
{
	/* Pairs with tt_set_wall(): a caller that has read the new time reads a new number. */
	smp_rmb();
	return begun % 2 || READ_ONCE(tt_wall_seq) != begun;
}

/*
 * Return an upper bound of how far ahead the wall clock may have been a moment ago: the difference
 * between its greatest and least offset around the last few settings.
 */
u64 tt_wall_was_ahead(void)
{
	s64 least = ktime_to_ns(ktime_mono_to_real(0)), most = least, before;
	unsigned int n;

	for (n = 0; n < TT_AGO; n++) {
		before = READ_ONCE(tt_wall_before[n]);
		least = min(least, before);
		most = max(most, before);
	}
	return most - least;
}

static bool tt_set_wall(s64 ahead)
{
	struct timespec64 ts;
	int ret;

	WRITE_ONCE(tt_wall_before[tt_wall_set() % TT_AGO], ktime_to_ns(ktime_mono_to_real(0)));
	WRITE_ONCE(tt_wall_seq, tt_wall_seq + 1);
	/* Pairs with tt_wall_changed(): a reader of the new time sees the odd number. */
	smp_mb();
	ts = ns_to_timespec64(ktime_get_ns() + tt_home + ahead);
	ret = do_settimeofday64(&ts);
	if (ret)
		pr_info_once("the clock cannot be set: %d\n", ret);
	/* Pairs with tt_wall_begin(): a reader of the even number sees the new time. */
	smp_store_release(&tt_wall_seq, tt_wall_seq + 1);
	return !ret;
}

static int tt_setter_main(void *arg)
{
	static const u64 span[] = {
		KT_MS, 20 * KT_MS, 500 * KT_MS, 10 * KT_SECOND, KT_HOUR, 24 * KT_HOUR,
		10 * 365 * 24 * KT_HOUR,
	};
	struct rnd_state rnd;
	s64 ahead;

	tt_seed_for(&rnd, 6);
	while (!kthread_should_stop()) {
		msleep(1 + tt_pick(&rnd, 2 * tt_clock_ms));
		if (tt_ending())
			continue;
		ahead = mul_u64_u32_shr(span[tt_pick(&rnd, ARRAY_SIZE(span))],
					tt_random(&rnd), 32);
		if (tt_set_wall(tt_one_in(&rnd, 2) ? ahead : -ahead))
			tt_count(TT_SET);
	}
	tt_set_wall(0);
	return 0;
}

int tt_disturb_start(void)
{
	unsigned int n;

	tt_home = ktime_to_ns(ktime_mono_to_real(0));
	for (n = 0; n < TT_AGO; n++)
		tt_wall_before[n] = tt_home;
	if (tt_can_plug())
		tt_plug = tt_run(tt_plug_main, NULL, "plug", 0);
	if (tt_clock_ms)
		tt_setter = tt_run(tt_setter_main, NULL, "setter", 0);
	return PTR_ERR_OR_ZERO(tt_plug) ?: PTR_ERR_OR_ZERO(tt_setter);
}

void tt_disturb_stop(void)
{
	tt_stop(tt_plug);
	tt_stop(tt_setter);
}
