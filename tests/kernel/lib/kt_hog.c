// SPDX-License-Identifier: GPL-2.0-only
/*
 * While this module is loaded, a task of real-time priority never leaves CPU 1. Only the CPU's
 * ksoftirqd preempts it, since RCU needs that. For module-hog.sh.
 */
#include <linux/module.h>
#include <linux/sched/task.h>

#include "hwt_ktest_util.h"

#define CPU	1

static struct task_struct *hog, *ksoftirqd;

static int hog_thread(void *unused)
{
	sched_set_fifo_low(current);
	while (!kthread_should_stop())
		cond_resched();
	return 0;
}

static int __init kt_hog_init(void)
{
	ksoftirqd = kt_task_get("ksoftirqd/" __stringify(CPU));
	if (!ksoftirqd)
		return -ESRCH;
	sched_set_fifo(ksoftirqd);
	hog = kt_thread(hog_thread, NULL, CPU);
	if (IS_ERR(hog)) {
		sched_set_normal(ksoftirqd, 0);
		put_task_struct(ksoftirqd);
	}
	return PTR_ERR_OR_ZERO(hog);
}

static void __exit kt_hog_exit(void)
{
	kt_thread_stop(hog);
	sched_set_normal(ksoftirqd, 0);
	put_task_struct(ksoftirqd);
}

module_init(kt_hog_init);
module_exit(kt_hog_exit);
MODULE_DESCRIPTION("hwt: a task that never leaves its CPU, for the tests");
MODULE_LICENSE("GPL");
