/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kprobes whose handlers run in NMI context, for test_kprobe.c and the torture.
 */
#ifndef _HWT_KTEST_PROBE_H
#define _HWT_KTEST_PROBE_H

#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/string.h>

/* Keeps the kernel from replacing the probe by a jump, whose handler is not in NMI context. */
static inline void kt_after_probe(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

/*
 * Probe one instruction. Return false if that fails or if ftrace would call the handler, outside
 * of NMI context. Arm the probe only after this check: the handler might deadlock otherwise.
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

/* Return the start of the function that contains @at, and its length, from its symbol. */
static inline u8 *kt_function_at(const void *at, unsigned int *length)
{
	static char text[KSYM_SYMBOL_LEN];	/* too large for the stack */
	unsigned int offset;
	char *plus;

	sprint_symbol(text, (unsigned long)at);
	plus = strchr(text, '+');
	if (!plus || sscanf(plus, "+0x%x/0x%x", &offset, length) != 2)
		return NULL;
	return (u8 *)at - offset;
}

/* Return the start of the function @name, and its length; NULL if it cannot be probed. */
static inline u8 *kt_function(const char *name, unsigned int *length)
{
	struct kprobe probe = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	u8 *function;

	*length = 0;
	if (register_kprobe(&probe))
		return NULL;
	/* The kernel may have moved the probe behind the entry. */
	function = kt_function_at(probe.addr, length);
	unregister_kprobe(&probe);
	return function;
}

/*
 * Probe the first instruction of a function that can be probed without ftrace. Arguments are still
 * in registers there. For a probe at the entry, ftrace would patch a nop in several steps while
 * other CPUs execute it, and an emulated CPU (QEMU before 8.1) may see a breakpoint that has been
 * removed, and crash. So no test arms a probe at the entry of a function that other tests call.
 */
static inline bool kt_probe_entry(struct kprobe *probe, const char *name,
				  kprobe_pre_handler_t handler)
{
	unsigned int offset, length;
	u8 *function = kt_function(name, &length);

	for (offset = 0; function && offset < length; offset++)
		if (kt_probe(probe, function + offset, handler))
			return true;
	return false;
}

#endif /* _HWT_KTEST_PROBE_H */
