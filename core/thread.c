// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads of a shard: the engine, and its workers, if it has any
 *
 * Workers take timeouts off the due list and shard->owed, one by one under the shard's lock. Until
 * a worker takes a timeout, the timeout can be cancelled and moved. A context that adds work wakes
 * an idle worker. A worker that takes a timeout wakes an idle worker if more work remains.
 */
#include <linux/cpu.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "core/cpus.h"
#include "core/engine.h"
#include "core/kick.h"
#include "core/thread.h"
#include "core/wheel.h"

/* -- Common to all threads ------------------------------------------------- */

/*
 * Pin the calling thread to the shard's CPUs. During CPU hotplug, leave this to the engine,
 * which pins the thread later: during hotplug, the scheduler might choose a CPU that is going
 * offline, and PREEMPT_RT would warn. Do not wait for the lock of CPU hotplug, because its holder
 * may wait for a callback that this thread has to run.
 */
static void hwt_thread_pin(struct hwt_shard *shard, struct hwt_runner *runner)
{
	int ret = -EBUSY;

	/*
	 * If a stop has moved the thread, leave it there. If a stop begins after this check, it
	 * repeats the move until the thread has ended.
	 */
	if (hwt_thread_ends(shard))
		return;
	if (cpus_read_trylock()) {
		ret = set_cpus_allowed_ptr(current, shard->affinity);
		cpus_read_unlock();
	}
	spin_lock_irq(&shard->lock);
	/*
	 * After -EBUSY (CPU hotplug is in progress), the engine pins the thread later. After any
	 * other error, all CPUs of the shard are offline: hwt_cpu_online() pins the thread.
	 */
	WRITE_ONCE(runner->unpinned, ret);
	if (ret == -EBUSY)
		WRITE_ONCE(shard->repin_needed, true);
	spin_unlock_irq(&shard->lock);
}

/* Return true if an affinity mask has all CPUs that are online and not isolated. */
static bool hwt_affinity_whole(const struct cpumask *mask)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (!cpumask_test_cpu(cpu, mask) && hwt_cpu_housekeeping(cpu))
			return false;
	return true;
}

/*
 * Return true if the kernel has reset a thread's affinity to all CPUs (since Linux 6.14, possibly
 * without isolated ones). It does so when the thread's last CPU is about to go offline, and when
 * the last cpuset partition ends. Any other affinity was chosen by an administrator, by taskset or
 * by a cpuset partition, and is kept.
 */
static bool hwt_thread_affinity_lost(const struct hwt_shard *shard, const struct task_struct *task)
{
	/* Read the mask without a lock: a change that is missed now is seen at the next check. */
	return data_race(!cpumask_subset(&task->cpus_mask, shard->affinity) &&
			 hwt_affinity_whole(&task->cpus_mask));
}

/* Return true if the calling thread must be pinned again, and a CPU of the shard is online. */
static bool hwt_thread_off_affinity(const struct hwt_shard *shard)
{
	return shard->pinned && hwt_thread_affinity_lost(shard, current) &&
	       cpumask_intersects(shard->affinity, cpu_online_mask);
}

/* Return true if the engine's thread must pin itself or workers. */
bool hwt_engine_off_affinity(const struct hwt_shard *shard)
{
	return READ_ONCE(shard->repin_needed) || hwt_thread_off_affinity(shard);
}

static void hwt_thread_begin(struct hwt_shard *shard, struct hwt_runner *runner)
{
	if (shard->wheel->params.priority == HWT_PRIO_FIFO_LOW)
		sched_set_fifo_low(current);
	else if (shard->wheel->params.priority == HWT_PRIO_FIFO)
		sched_set_fifo(current);
	/* set_freezable() would return only after the thaw: a stop could not end the thread. */
	if (shard->flags & HWT_FREEZABLE)
		current->flags &= ~PF_NOFREEZE;
	/* Pin last: a pinned thread may have to wait for real-time tasks on the shard's CPUs. */
	if (shard->pinned)
		hwt_thread_pin(shard, runner);
}

/*
 * Sleep while the system is frozen. try_to_freeze() would return only after the thaw, so a stop
 * could not end the thread. Sleep with a timeout of a jiffy: since Linux 6.7, the thaw wakes only a
 * thread that got a wake-up while it was frozen, such as the end of this timeout.
 */
static void hwt_thread_freeze(const struct hwt_shard *shard)
{
	while (hwt_frozen(shard) && !hwt_thread_ends(shard)) {
		/*
		 * Barrier freeze.state, pairs with kernel.wake in hwt_thread_wake_frozen(): this
		 * thread sees shard->exiting set, and does not sleep, or the wake-up by the stop
		 * finds the state that is set here, and ends the sleep.
		 */
		set_current_state(hwt_idle_state(shard));
		if (hwt_frozen(shard) && !hwt_thread_ends(shard))
			schedule_timeout(1);
		__set_current_state(TASK_RUNNING);
	}
}

/* Wake a thread that is to end. Unlike wake_up_process(), this also wakes a frozen thread. */
static void hwt_thread_wake_frozen(struct task_struct *task)
{
	struct wait_queue_entry entry = { .private = task };

	default_wake_function(&entry, TASK_NORMAL | TASK_FROZEN, 0, NULL);
}

static int hwt_engine_thread(void *arg)
{
	struct hwt_shard *shard = arg;

	hwt_thread_begin(shard, &shard->engine);
	while (!hwt_thread_ends(shard)) {
		if (unlikely(hwt_frozen(shard)))
			hwt_thread_freeze(shard);
		if (unlikely(hwt_engine_off_affinity(shard)) && cpus_read_trylock()) {
			hwt_threads_pin(shard);
			cpus_read_unlock();
		}
		hwt_engine_pass(shard);
		hwt_engine_sleep(shard);
	}
	complete(&shard->exited);
	return 0;
}

/* -- Workers --------------------------------------------------------------- */

/*
 * Fire the first timeout of the due list, or end the hold of the first one on shard->owed: the
 * lists take turns, so that neither waits for the other. Return false if there was none to serve.
 */
static bool hwt_worker_serve(struct hwt_shard *shard, struct hwt_worker *worker)
	__must_hold(&shard->lock)
{
	struct list_head *due = &shard->buckets.due, *owed = &shard->owed;

	if (shard->stopping)
		return false;
	if (list_empty(due)) {
		due = NULL;
	} else if (hwt_clock_moved(shard)) {
		/* The clock was set: the engine must first check which timeouts are still due. */
		hwt_engine_kick_locked(shard, 0);
		due = NULL;
	}
	if (list_empty(owed))
		owed = NULL;
	if (!due && !owed)
		return false;
	if ((due && owed) || !list_is_singular(due ?: owed))
		hwt_worker_wake(shard);
	worker->took_due = due && (!owed || !worker->took_due);
	if (worker->took_due)
		hwt_fire(shard, &worker->runner,
			 list_first_entry(due, struct hwt_timeout, link));
	else
		hwt_end_hold(shard, &worker->runner,
			     list_first_entry(owed, struct hwt_timeout, link));
	return true;
}

static void hwt_worker_wait(struct hwt_shard *shard, struct hwt_worker *worker)
	__must_hold(&shard->lock)
{
	/* No wake-up is missed: work is looked for, and added, under the shard's lock. */
	list_add(&worker->idle, &shard->idle);
	/*
	 * Barrier worker.state, pairs with kernel.wake in hwt_thread_wake_frozen(), which does not
	 * take the shard's lock: this thread sees shard->exiting set, and does not sleep, or the
	 * wake-up finds the state that is set here, and ends the sleep.
	 */
	set_current_state(hwt_idle_state(shard));
	spin_unlock_irq(&shard->lock);
	if (!hwt_thread_ends(shard))
		schedule();
	__set_current_state(TASK_RUNNING);
	if (unlikely(READ_ONCE(worker->runner.unpinned) || hwt_thread_off_affinity(shard)))
		hwt_thread_pin(shard, &worker->runner);
	worker->runner.stamp = 0;
	spin_lock_irq(&shard->lock);
	list_del_init(&worker->idle);
}

static int hwt_worker_thread(void *arg)
{
	struct hwt_worker *worker = arg;
	struct hwt_shard *shard = worker->shard;
	unsigned int n = 0;

	hwt_thread_begin(shard, &worker->runner);
	spin_lock_irq(&shard->lock);
	while (!hwt_thread_ends(shard)) {
		if (unlikely(hwt_frozen(shard))) {
			/* Do not enter the idle list: a frozen worker would be woken in vain. */
			spin_unlock_irq(&shard->lock);
			hwt_thread_freeze(shard);
			worker->runner.stamp = 0;
			spin_lock_irq(&shard->lock);
		} else if (!hwt_worker_serve(shard, worker)) {
			hwt_worker_wait(shard, worker);
		} else if (++n % HWT_STEP == 0) {
			/* hwt_worker_serve() keeps the lock if it calls no client: drop it here. */
			hwt_runner_break(shard, &worker->runner);
		}
	}
	list_del(&worker->runner.entry);
	spin_unlock_irq(&shard->lock);
	complete(&shard->exited);
	return 0;
}

/* -- Creation and end ------------------------------------------------------ */

/* Wait for the exit of a thread that has left its loop, or was never woken, and drop it. */
static void hwt_thread_free(struct task_struct *task)
{
	kthread_stop(task);
	put_task_struct(task);
}

static void hwt_workers_free(struct hwt_shard *shard, unsigned int n)
{
	while (n--)
		hwt_thread_free(shard->worker[n].runner.task);
	kfree(shard->worker);
}

/*
 * Create all threads of a shard, or none after an error. Wake them at once: a thread that was never
 * woken counts as load, and as hung.
 */
int hwt_threads_start(struct hwt_shard *shard, gfp_t gfp)
{
	char name[HWT_NAME_MAX + 4];
	struct task_struct *thread;
	struct hwt_worker *worker;
	unsigned int n;
	int ret;

	shard->irq_work = IRQ_WORK_INIT_HARD(hwt_engine_irq_work);
	if (shard->wheel->params.shards > 1)
		snprintf(name, sizeof(name), "%s:%u", shard->wheel->name, shard->number);
	else
		strscpy(name, shard->wheel->name, sizeof(name));

	if (shard->nr_workers) {
		shard->worker = kcalloc_node(shard->nr_workers, sizeof(*shard->worker), gfp,
					     shard->node);
		if (!shard->worker)
			return -ENOMEM;
	}
	for (n = 0; n < shard->nr_workers; n++) {
		worker = &shard->worker[n];
		worker->shard = shard;
		thread = kthread_create(hwt_worker_thread, worker, "%s/%u", name, n);
		ret = PTR_ERR_OR_ZERO(thread);
		if (ret)
			goto err;
		/* Keep a reference to the task: it may be woken even after it has ended. */
		worker->runner.task = get_task_struct(thread);
		worker->runner.thread = true;
		list_add_tail(&worker->runner.entry, &shard->runners);
	}
	thread = kthread_create(hwt_engine_thread, shard, "%s", name);
	ret = PTR_ERR_OR_ZERO(thread);
	if (ret)
		goto err;
	shard->thread = get_task_struct(thread);
	shard->engine.task = thread;
	for (n = 0; n < shard->nr_workers; n++)
		wake_up_process(shard->worker[n].runner.task);
	wake_up_process(thread);
	return 0;

err:
	hwt_workers_free(shard, n);
	return ret;
}

/* Move the threads of a pinned shard to the present CPU, unless CPU hotplug is in progress. */
static void hwt_threads_move_here(struct hwt_shard *shard)
{
	const struct cpumask *here;
	unsigned int n;

	if (!shard->pinned || !cpus_read_trylock())
		return;
	here = cpumask_of(raw_smp_processor_id());
	set_cpus_allowed_ptr(shard->thread, here);
	for (n = 0; n < shard->nr_workers; n++)
		set_cpus_allowed_ptr(shard->worker[n].runner.task, here);
	cpus_read_unlock();
}

/*
 * Make the threads of a stopping shard leave their loops, and wait for this. They are in no
 * callback, and serve no timeout any more. Move pinned threads to this CPU: a real-time task that
 * never sleeps may occupy the shard's CPUs. Repeat the move during the wait, because a thread may
 * pin itself to the shard's CPUs after the first move.
 */
void hwt_threads_stop(struct hwt_shard *shard)
{
	unsigned int n;

	WRITE_ONCE(shard->exiting, true);
	hwt_thread_wake_frozen(shard->thread);
	for (n = 0; n < shard->nr_workers; n++)
		hwt_thread_wake_frozen(shard->worker[n].runner.task);
	hwt_threads_move_here(shard);
	for (n = 0; n < 1 + shard->nr_workers; n++)
		while (!wait_for_completion_timeout(&shard->exited, HZ / 20))
			hwt_threads_move_here(shard);
	/* The engine may have pinned a worker, which has yet to exit, just before its own end. */
	hwt_threads_move_here(shard);
}

/* Free a shard's threads. They have left their loops, and no context wakes them any more. */
void hwt_threads_free(struct hwt_shard *shard)
{
	hwt_thread_free(shard->thread);
	hwt_workers_free(shard, shard->nr_workers);
}

static void hwt_thread_repin(struct hwt_shard *shard, struct hwt_runner *runner)
{
	if (READ_ONCE(runner->unpinned) || hwt_thread_affinity_lost(shard, runner->task))
		WRITE_ONCE(runner->unpinned, set_cpus_allowed_ptr(runner->task, shard->affinity));
}

/*
 * Pin the threads that could not pin themselves, or whose affinity the kernel has reset. Called
 * with CPU hotplug locked out, or by hwt_cpu_online().
 */
void hwt_threads_pin(struct hwt_shard *shard)
{
	unsigned int n;

	/* If the threads are to end, a stop has moved them to another CPU: leave them there. */
	if (hwt_thread_ends(shard))
		return;
	/* Clear the flag first: a thread that cannot pin itself from now on sets it again. */
	spin_lock_irq(&shard->lock);
	WRITE_ONCE(shard->repin_needed, false);
	spin_unlock_irq(&shard->lock);
	hwt_thread_repin(shard, &shard->engine);
	for (n = 0; n < shard->nr_workers; n++)
		hwt_thread_repin(shard, &shard->worker[n].runner);
}
