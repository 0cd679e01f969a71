/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kprobes whose handlers are like NMIs, for test_kprobe.c and the torture.
 */
#ifndef _HWT_KTEST_PROBE_H
#define _HWT_KTEST_PROBE_H

#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/string.h>

/* A probe that has one is not replaced by a jump, from which a handler is no NMI. */
static inline void kt_after_probe(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

/*
 * Probe one instruction. False: there is none, or ftrace would call the handler: no NMI. The probe
 * is armed after that is known, because a handler that takes itself for an NMI may deadlock there.
 */
static inline bool kt_probe(struct kprobe *probe, u8 *at, kprobe_pre_handler_t handler)
{
	memset(probe, 0, sizeof(*probe));
	probe->addr = (kprobe_opcode_t *)at;
	probe->flags = KPROBE_FLAG_DISABLED;
	probe->pre_handler = handler;
	probe->post_handler = kt_after_probe;
	if (register_kprobe(probe))
		return false;
	if (!(probe->flags & KPROBE_FLAG_FTRACE) && !enable_kprobe(probe))
		return true;
	unregister_kprobe(probe);
	return false;
}

/* The start of the function that this is in, and its length: they are in the address's name. */
static inline u8 *kt_function_at(const void *at, unsigned int *length)
{
	static char text[KSYM_SYMBOL_LEN];	/* too long for a stack */
	unsigned int offset;
	char *plus;

	sprint_symbol(text, (unsigned long)at);
	plus = strchr(text, '+');
	if (!plus || sscanf(plus, "+0x%x/0x%x", &offset, length) != 2)
		return NULL;
	return (u8 *)at - offset;
}

/* The same by name; NULL: there is none of that name, or it cannot be probed. */
static inline u8 *kt_function(const char *name, unsigned int *length)
{
	struct kprobe probe = { .symbol_name = name };
	u8 *function;

	*length = 0;
	if (register_kprobe(&probe))
		return NULL;
	/* It may have been put a little behind the entry. */
	function = kt_function_at(probe.addr, length);
	unregister_kprobe(&probe);
	return function;
}

#endif /* _HWT_KTEST_PROBE_H */
