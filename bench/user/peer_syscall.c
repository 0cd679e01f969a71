// SPDX-License-Identifier: GPL-2.0-only
/*
 * The floor: one system call that does nothing, for each operation
 */
#include "user_bench.h"
#include <sys/syscall.h>

static void call(enum operation op, const struct todo *todo, unsigned int count)
{
	while (count--)
		syscall(SYS_getppid);
}

const struct peer peer_syscall = {
	"syscall", "no timers: a system call that does nothing, for comparison",
	NULL, call, NULL,
};
