// SPDX-License-Identifier: GPL-2.0-only
/*
 * The floor: one system call that does nothing, for each operation
 */
#include "user_bench.h"
#include <sys/syscall.h>

static void open_nothing(const struct run *run)
{
	(void)run;
}

static void call(const struct run *run, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	(void)run;
	(void)todo;
	for (i = 0; i < count; i++)
		syscall(SYS_getppid);
}

const struct peer peer_syscall = {
	.name	= "syscall",
	.what	= "no timers: a system call that does nothing, for comparison",
	.open	= open_nothing,
	.create	= call,
	.rearm	= call,
	.cancel	= call,
};
