// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls from kprobe handlers, and from NMIs
 *
 * On x86 a kprobe's handler is called by an int3 in the place of one instruction, in a context that
 * counts as an NMI. One probe is in a function that the threads call. The others move over the
 * instructions of hwt. Their handlers mostly use the timeout on which the interrupted code is
 * working: its address is in one of the registers. Or they only spin, for so long that other CPUs
 * get far ahead.
 *
 * Real NMIs are injected by the host of a guest, which reads requests from the log; all of them go
 * to CPU 0.
 */
#include "torture.h"

#include <linux/hardirq.h>
#include <linux/module.h>
#include <linux/timekeeping.h>

DEFINE_PER_CPU(unsigned int, tt_busy_with);

#if TT_NMIS_POSSIBLE

#include <asm/nmi.h>

#include "../kernel/lib/hwt_ktest_probe.h"

/* A function for a probe. Its instructions have no purpose. */
noinline void tt_nmi_point(void)
{
	this_cpu_inc(tt_busy_with);
	barrier();
	this_cpu_dec(tt_busy_with);
}

/* A handler that interrupts another one on its CPU may draw the same number, which is harmless. */
static DEFINE_PER_CPU(struct rnd_state, tt_nmi_rnd);

/* Borrow the timeout whose address is in a register of the interrupted code. */
static struct tt_item *tt_in_hand(const struct pt_regs *regs)
{
	const unsigned long in[] = {
		regs->di, regs->bx, regs->bp, regs->si, regs->ax, regs->dx, regs->cx,
#ifdef CONFIG_X86_64
		regs->r8, regs->r9, regs->r10, regs->r11, regs->r12, regs->r13, regs->r14,
		regs->r15,
#endif
	};
	struct tt_item *item = NULL;
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(in) && !item; n++)
		if (in[n] >= PAGE_OFFSET)
			item = tt_item_borrow_at(in[n]);
	return item;
}

static struct tt_item *tt_nmi_find(struct rnd_state *rnd, const struct pt_regs *regs)
{
	struct tt_item *item = NULL;
	u32 pick = tt_pick(rnd, 8);

	if (pick == 0)
		return tt_item_borrow_any(rnd);
	if (pick > 2)
		item = tt_in_hand(regs);
	if (item)
		tt_count(TT_AIMED);
	return item ?: tt_item_borrow(this_cpu_read(tt_busy_with));
}

static void tt_nmi_act(struct rnd_state *rnd, const struct pt_regs *regs)
{
	struct tt_item *item = tt_nmi_find(rnd, regs);

	if (!item)
		return;
	tt_act(item, rnd, false, NULL);
	tt_item_return(item);
}

static void tt_nmi_wait(struct rnd_state *rnd, u32 most_us)
{
	u64 end = ktime_get_mono_fast_ns() + tt_pick(rnd, most_us) * NSEC_PER_USEC;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

static void tt_nmi_come(const struct pt_regs *regs, unsigned int one_in)
{
	struct rnd_state *rnd = this_cpu_ptr(&tt_nmi_rnd);

	if (in_nmi())
		tt_count(TT_NMI);
	if (tt_ending())
		return;
	/* The threads of torture_shake.c are few, and a delay changes the order of their calls. */
	if (strstr(current->comm, "shake") && tt_one_in(rnd, 2))
		tt_nmi_wait(rnd, 3000);
	else if (tt_one_in(rnd, 128))
		tt_nmi_wait(rnd, 300);
	else if (tt_one_in(rnd, one_in))
		tt_nmi_act(rnd, regs);
}

static struct kprobe tt_probe[TT_PROBES], *tt_registered[TT_PROBES];
static unsigned int tt_probe_n;
static struct kprobe tt_point;
static struct task_struct *tt_wanderer;

static int tt_on_probe(struct kprobe *probe, struct pt_regs *regs)
{
	tt_nmi_come(regs, probe == &tt_point ? 1 : 4);
	return 0;
}

/*
 * Is this ftrace's call, which is a nop while it is off? A probe there uses ftrace, and its handler
 * is not in NMI context. Besides, ftrace patches the nop in several steps while other CPUs execute
 * it: an emulated CPU (QEMU before 8.1) may see a breakpoint that has been removed.
 */
static bool tt_is_patched(const u8 *at)
{
	static const u8 nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	return !memcmp(at, nop, sizeof(nop));
}

/* Set the probe at the first possible instruction from @offset on. */
static bool tt_probe_from(struct kprobe *probe, u8 *function, unsigned int offset,
			  unsigned int length)
{
	for (; offset < length; offset++)
		if (!tt_is_patched(function + offset) &&
		    kt_probe(probe, function + offset, tt_on_probe))
			return true;
	return false;
}

/* Where the probes move. Functions that were inlined are skipped; exported ones must be there. */
static struct {
	const char	*name;
	bool		exported;
	u8		*at;
	unsigned int	length;
} tt_function[] = {
	{ "hwt_schedule", true }, { "hwt_schedule_at", true }, { "hwt_schedule_flags", true },
	{ "hwt_schedule_periodic_at", true },
	{ "hwt_cancel", true }, { "hwt_try_cancel", true }, { "hwt_delete", true },
	{ "hwt_submit" }, { "hwt_cancel_claim" }, { "hwt_engine_kick" },
	{ "hwt_sync" }, { "hwt_sync_try" }, { "hwt_collect" }, { "hwt_intake_pop" },
	{ "hwt_collect_taken" }, { "hwt_finish" }, { "hwt_end_hold" },
	{ "hwt_fire" }, { "hwt_fire_claim" }, { "hwt_periodic_begin" }, { "hwt_call_begin" },
	{ "hwt_call_end" }, { "hwt_call_release" }, { "hwt_engine_pass" },
	{ "hwt_engine_fire" }, { "hwt_engine_sleep" }, { "hwt_engine_wait" },
	{ "hwt_engine_thread" }, { "hwt_worker_serve" }, { "hwt_buckets_insert" },
	{ "hwt_buckets_remove" }, { "hwt_buckets_advance" }, { "hwt_hand_back" }, { "hwt_drain" },
	{ "hwt_bh_fire" }, { "hwt_bh_claim_slow" }, { "hwt_bh_kick" }, { "hwt_delete_locked" },
	{ "hwt_bh_run" }, { "hwt_bh_timer_lower" }, { "hwt_delete_collect" }, { "hwt_sync_bh" },
};

static unsigned int tt_missing;

static void tt_remove_probes(void)
{
	if (tt_probe_n)
		unregister_kprobes(tt_registered, tt_probe_n);
	tt_probe_n = 0;
}

static void tt_place_probes(struct rnd_state *rnd)
{
	unsigned int tries, n;

	for (tries = 0; tt_probe_n < TT_PROBES && tries < 2 * TT_PROBES; tries++) {
		n = tt_pick(rnd, ARRAY_SIZE(tt_function));
		if (!tt_function[n].at ||
		    !tt_probe_from(&tt_probe[tt_probe_n], tt_function[n].at,
				   tt_pick(rnd, tt_function[n].length), tt_function[n].length))
			continue;
		tt_registered[tt_probe_n] = &tt_probe[tt_probe_n];
		tt_probe_n++;
	}
}

static int tt_wanderer_main(void *arg)
{
	struct rnd_state rnd;

	tt_seed_for(&rnd, 4);
	while (!kthread_should_stop()) {
		if (!tt_ending())
			tt_place_probes(&rnd);
		msleep(200 + tt_pick(&rnd, 800));
		tt_remove_probes();
	}
	return 0;
}

/* Return the number of exported functions that were not found. */
unsigned int tt_nmis_missing(void)
{
	return tt_missing;
}

static bool tt_listening;

static int tt_on_nmi(unsigned int type, struct pt_regs *regs)
{
	tt_count(TT_INJECTED);
	tt_nmi_come(regs, 1);
	return NMI_HANDLED;
}

static struct task_struct *tt_injector;

/*
 * Request NMIs. Return only after no NMI has come for two seconds: a late one must find the handler
 * registered.
 */
static int tt_injector_main(void *arg)
{
	u64 n;

	while (!kthread_should_stop()) {
		if (!tt_ending())
			pr_info("hwt-host: inject-nmi %u %u\n", 3000 / tt_inject, tt_inject);
		do {
			n = tt_sum(TT_INJECTED);
			msleep(2000);
		} while (n != tt_sum(TT_INJECTED));
	}
	return 0;
}

static int tt_inject_start(void)
{
	int error;

	if (!tt_inject)
		return 0;
	error = register_nmi_handler(NMI_UNKNOWN, tt_on_nmi, 0, KBUILD_MODNAME);
	if (error)
		return error;
	tt_listening = true;
	tt_injector = tt_run(tt_injector_main, NULL, "injector", 0);
	return PTR_ERR_OR_ZERO(tt_injector);
}

static void tt_inject_stop(void)
{
	tt_stop(tt_injector);
	if (tt_listening)
		unregister_nmi_handler(NMI_UNKNOWN, KBUILD_MODNAME);
}

static int tt_probes_start(void)
{
	unsigned int length;
	u8 *point;

	if (!tt_nmi)
		return 0;
	point = kt_function_at(tt_nmi_point, &length);
	if (!point || !tt_probe_from(&tt_point, point, 0, length)) {
		pr_info("no kprobes: no calls from their handlers\n");
		memset(&tt_point, 0, sizeof(tt_point));
		return 0;
	}
	/* Kprobes do not support an NMI in a handler that hits another probe. */
	if (tt_inject)
		return 0;
	tt_wanderer = tt_run(tt_wanderer_main, NULL, "wanderer", 0);
	return PTR_ERR_OR_ZERO(tt_wanderer);
}

void tt_nmis_find(void)
{
	unsigned int n, found = 0;

	if (!tt_nmi || tt_inject)
		return;
	for (n = 0; n < ARRAY_SIZE(tt_function); n++) {
		tt_function[n].at = kt_function(tt_function[n].name, &tt_function[n].length);
		found += !!tt_function[n].at;
		if (tt_function[n].at || !tt_function[n].exported)
			continue;
		tt_missing++;
		pr_info("nothing to look at: %s, for probes\n", tt_function[n].name);
	}
	pr_info("begins: probes for %u functions of %zu\n", found, ARRAY_SIZE(tt_function));
}

int tt_nmis_start(void)
{
	unsigned int cpu;
	int error;

	for_each_possible_cpu(cpu)
		tt_seed_for(per_cpu_ptr(&tt_nmi_rnd, cpu), 2000 + cpu);
	error = tt_inject_start();
	return error ?: tt_probes_start();
}

void tt_nmis_stop(void)
{
	tt_stop(tt_wanderer);
	tt_remove_probes();
	if (tt_point.addr)
		unregister_kprobe(&tt_point);
	tt_inject_stop();
}

#endif
