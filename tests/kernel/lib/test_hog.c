// SPDX-License-Identifier: GPL-2.0-only
/*
 * While this module is loaded, a task of real-time priority never leaves a CPU. Only the CPU's
 * ksoftirqd preempts it, since RCU needs that. For module-hog.sh.
 */
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "hwt_ktest_util.h"

static unsigned int cpu = 1;
module_param(cpu, uint, 0444);

static struct task_struct *hog, *ksoftirqd;

static struct task_struct * __init find_task(const char *name)
{
	struct task_struct *task, *found = NULL;

	rcu_read_lock();
	for_each_process(task)
		if (!strcmp(task->comm, name))
			found = task;
	if (found)
		get_task_struct(found);
	rcu_read_unlock();
	return found;
}

static int hog_thread(void *unused)
{
	sched_set_fifo_low(current);
	while (!kthread_should_stop())
		cond_resched();
	return 0;
}

static int __init test_hog_init(void)
{
	char name[TASK_COMM_LEN];

	snprintf(name, sizeof(name), "ksoftirqd/%u", cpu);
	ksoftirqd = find_task(name);
	if (!ksoftirqd)
		return -ESRCH;
	sched_set_fifo(ksoftirqd);
	hog = kt_thread(hog_thread, NULL, cpu);
	return PTR_ERR_OR_ZERO(hog);
}

static void __exit test_hog_exit(void)
{
	kt_thread_stop(hog);
	sched_set_normal(ksoftirqd, 0);
	put_task_struct(ksoftirqd);
}

module_init(test_hog_init);
module_exit(test_hog_exit);
MODULE_DESCRIPTION("hwt: a task that never leaves its CPU, for the tests");
MODULE_LICENSE("GPL");
