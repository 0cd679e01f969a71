// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads of a shard: the engine, and its workers, if it has any
 *
 * Workers take timeouts from the due list and from shard->owed, one by one under the shard's lock.
 * Until a worker takes it, a timeout is in the shard like any other, and can be cancelled and
 * moved. No memory is allocated, and no timeout is queued a second time.
 *
 * Idle workers are in a list. A context that adds work for them removes one from this list and
 * wakes it. A worker that takes a timeout and leaves others wakes another worker before it goes on.
 */
#include <linux/cgroup.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "core/callback.h"
#include "core/client.h"
#include "core/cpus.h"
#include "core/engine.h"
#include "core/kick.h"
#include "core/wheel.h"
#include "core/submit.h"
#include "core/thread.h"

/* -- Common to all threads ------------------------------------------------- */

/*
 * Pin the calling thread to the shard's CPUs. Not during CPU hotplug: the scheduler may choose a
 * CPU that is going offline and is still in cpu_online_mask, and PREEMPT_RT then warns in
 * affine_move_task(). Only try the lock, since the task that takes the CPU offline may be waiting
 * for this shard. If the lock is taken, leave the pinning to hwt_engine_pin().
 */
static void hwt_thread_pin(struct hwt_shard *shard, struct hwt_runner *runner)
{
	int ret = -EBUSY;

	/* A stop that comes now moves the thread again; see hwt_threads_end(). */
	if (hwt_thread_ends(shard))
		return;
	if (cpus_read_trylock()) {
		ret = set_cpus_allowed_ptr(current, shard->affinity);
		cpus_read_unlock();
	}
	spin_lock(&shard->lock);
	/* If all of the shard's CPUs are offline, hwt_cpu_online() pins the thread later. */
	WRITE_ONCE(runner->unpinned, ret);
	if (ret == -EBUSY)
		WRITE_ONCE(shard->repin_needed, true);
	spin_unlock(&shard->lock);
}

/* Does an affinity have all CPUs that are online and not isolated? */
static bool hwt_affinity_whole(const struct cpumask *mask)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (!cpumask_test_cpu(cpu, mask) && hwt_cpu_housekeeping(cpu))
			return false;
	return true;
}

/*
 * Has the kernel reset a thread's affinity to all CPUs? The kernel does so when the thread's last
 * CPU is about to go offline, even if the CPU then stays online, and when cpusets change; since
 * 6.14 it may leave out isolated CPUs. An affinity that leaves out another CPU counts as an
 * administrator's choice, and is kept.
 */
static bool hwt_thread_affinity_lost(const struct hwt_shard *shard, const struct task_struct *task)
{
	/* Without a lock: a concurrent change is seen the next time. */
	return data_race(!cpumask_subset(&task->cpus_mask, shard->affinity) &&
			 hwt_affinity_whole(&task->cpus_mask));
}

/*
 * Must the calling thread be pinned again? While none of the shard's CPUs is online, the shard's
 * threads may run anywhere.
 */
static bool hwt_thread_off_affinity(const struct hwt_shard *shard)
{
	return shard->pinned && hwt_thread_affinity_lost(shard, current) &&
	       cpumask_intersects(shard->affinity, cpu_online_mask);
}

/* Must the engine's thread pin itself or others? */
bool hwt_engine_off_affinity(const struct hwt_shard *shard)
{
	return READ_ONCE(shard->repin_needed) || hwt_thread_off_affinity(shard);
}

static void hwt_engine_pin(struct hwt_shard *shard)
{
	if (!cpus_read_trylock())
		return;
	hwt_threads_pin(shard);
	cpus_read_unlock();
}

static void hwt_thread_begin(struct hwt_shard *shard, struct hwt_runner *runner)
{
	if (shard->wheel->priority == HWT_PRIO_FIFO_LOW)
		sched_set_fifo_low(current);
	else if (shard->wheel->priority == HWT_PRIO_FIFO)
		sched_set_fifo(current);
	/* Not set_freezable(): in a frozen system, it would not return for a stop. */
	if (shard->flags & HWT_FREEZABLE)
		current->flags &= ~PF_NOFREEZE;
	/* Last: if another task never leaves the shard's CPUs, this thread may not run any more. */
	if (shard->pinned)
		hwt_thread_pin(shard, runner);
}

/*
 * Sleep while the system is frozen, in a state that the freezer accepts. Not in try_to_freeze(),
 * which would not return for a stop. Since 6.7, the thaw wakes such a sleeper only if a wake-up
 * came while it was frozen. The short timeout of each sleep provides one.
 */
static void hwt_thread_freeze(const struct hwt_shard *shard)
{
	while (hwt_frozen(shard) && !hwt_thread_ends(shard)) {
		/*
		 * Barrier freeze.state, pairs with kernel.wake in hwt_thread_wake_frozen(): this
		 * thread sees the request to end, or the other side sees it asleep.
		 */
		set_current_state(hwt_idle_state(shard));
		if (hwt_frozen(shard) && !hwt_thread_ends(shard))
			schedule_timeout(1);
		__set_current_state(TASK_RUNNING);
	}
}

/* Wake a thread to end, even if it is frozen, as wake_up_process() does not. */
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
		if (unlikely(hwt_engine_off_affinity(shard)))
			hwt_engine_pin(shard);
		hwt_engine_pass(shard);
		hwt_engine_sleep(shard);
	}
	complete(&shard->exited);
	return 0;
}

/* -- Workers --------------------------------------------------------------- */

/* Wake an idle worker. If none is idle, the first one that finishes finds the work. */
void hwt_worker_wake(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	struct hwt_worker *worker;

	worker = list_first_entry_or_null(&shard->idle, struct hwt_worker, idle);
	if (!worker)
		return;
	list_del_init(&worker->idle);
	wake_up_process(worker->runner.task);
}

/*
 * Serve one timeout. The due list and shard->owed take turns, so that neither waits until the
 * other is empty.
 *
 * Return: false if there was nothing to do.
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
		/* The wall clock was set: leave the due list to the engine, which sorts it anew. */
		hwt_engine_kick(shard);
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
	/* Workers look for work, and are woken, under the lock, so no wake-up is missed. */
	list_add(&worker->idle, &shard->idle);
	/*
	 * Barrier worker.state, pairs with kernel.wake in hwt_thread_wake_frozen(), which does not
	 * take the shard's lock: this thread sees the request to end, or the other side sees it
	 * asleep.
	 */
	set_current_state(hwt_idle_state(shard));
	spin_unlock(&shard->lock);
	if (!hwt_thread_ends(shard))
		schedule();
	__set_current_state(TASK_RUNNING);
	if (unlikely(READ_ONCE(worker->runner.unpinned) || hwt_thread_off_affinity(shard)))
		hwt_thread_pin(shard, &worker->runner);
	worker->runner.stamp = 0;
	spin_lock(&shard->lock);
	list_del_init(&worker->idle);
}

static int hwt_worker_thread(void *arg)
{
	struct hwt_worker *worker = arg;
	struct hwt_shard *shard = worker->shard;
	unsigned int n = 0;

	hwt_thread_begin(shard, &worker->runner);
	spin_lock(&shard->lock);
	while (!hwt_thread_ends(shard)) {
		if (unlikely(hwt_frozen(shard))) {
			/* Stay off the idle list: no context wakes a worker for older work. */
			spin_unlock(&shard->lock);
			hwt_thread_freeze(shard);
			worker->runner.stamp = 0;
			spin_lock(&shard->lock);
		} else if (!hwt_worker_serve(shard, worker)) {
			hwt_worker_wait(shard, worker);
		} else if (++n % HWT_STEP == 0) {
			/* A timeout that was cancelled or pushed back does not drop the lock. */
			hwt_runner_break(shard, &worker->runner);
		}
	}
	spin_unlock(&shard->lock);
	complete(&shard->exited);
	return 0;
}

/* -- Creation and end ------------------------------------------------------ */

static int hwt_worker_create(struct hwt_shard *shard, const char *name, unsigned int number)
{
	struct hwt_worker *worker = &shard->worker[number];
	struct task_struct *thread;

	worker->shard = shard;
	INIT_LIST_HEAD(&worker->idle);
	thread = kthread_create(hwt_worker_thread, worker, "%s/%u", name, number);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	/* Keep the task_struct, since the thread may be woken even after it has ended. */
	worker->runner.task = get_task_struct(thread);
	worker->runner.thread = true;
	list_add_tail(&worker->runner.entry, &shard->runners);
	return 0;
}

static void hwt_workers_stop(struct hwt_shard *shard, unsigned int n)
{
	struct hwt_runner *runner;

	while (n--) {
		runner = &shard->worker[n].runner;
		kthread_stop(runner->task);
		spin_lock(&shard->lock);
		list_del(&runner->entry);
		spin_unlock(&shard->lock);
	}
}

static void hwt_workers_free(struct hwt_shard *shard, unsigned int n)
{
	while (n--)
		put_task_struct(shard->worker[n].runner.task);
	kfree(shard->worker);
	shard->worker = NULL;
}

/*
 * Create the threads of a shard that is otherwise complete; all or none. They run at once, and wait
 * in TASK_IDLE: a thread that is created and never woken counts as load and as hung.
 */
int hwt_threads_start(struct hwt_shard *shard, gfp_t gfp)
{
	char name[HWT_NAME_MAX + 4];
	struct task_struct *thread;
	unsigned int n;
	int ret;

	if (shard->wheel->nr_shards > 1)
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
		ret = hwt_worker_create(shard, name, n);
		if (ret)
			goto err;
	}
	thread = kthread_create(hwt_engine_thread, shard, "%s", name);
	ret = PTR_ERR_OR_ZERO(thread);
	if (ret)
		goto err;
	shard->thread = get_task_struct(thread);
	shard->engine.task = thread;
	shard->engine.thread = true;
	list_add(&shard->engine.entry, &shard->runners);
	for (n = 0; n < shard->nr_workers; n++)
		wake_up_process(shard->worker[n].runner.task);
	wake_up_process(thread);
	return 0;

err:
	hwt_workers_stop(shard, n);
	hwt_workers_free(shard, n);
	return ret;
}

/* Move the threads of a pinned shard to the present CPU, unless a CPU is coming or going. */
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
 * Make the threads of a stopping shard leave their functions, and wait until they have. Pinned
 * threads do so on this CPU, because another task may never leave theirs. A thread that has just
 * begun to pin itself is moved again.
 */
static void hwt_threads_end(struct hwt_shard *shard)
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
}

/* Stop the threads of a stopping shard, which are in no callback and serve no timeout any more. */
void hwt_threads_stop(struct hwt_shard *shard)
{
	hwt_threads_end(shard);
	kthread_stop(shard->thread);
	hwt_workers_stop(shard, shard->nr_workers);
}

/* Free a shard's threads, which have ended. No context wakes them any more. */
void hwt_threads_free(struct hwt_shard *shard)
{
	put_task_struct(shard->thread);
	hwt_workers_free(shard, shard->nr_workers);
}

static void hwt_thread_repin(struct hwt_shard *shard, struct hwt_runner *runner)
{
	bool unpinned = READ_ONCE(runner->unpinned);

	if (!unpinned && !hwt_thread_affinity_lost(shard, runner->task))
		return;
	unpinned = set_cpus_allowed_ptr(runner->task, shard->affinity);
	spin_lock(&shard->lock);
	WRITE_ONCE(runner->unpinned, unpinned);
	spin_unlock(&shard->lock);
}

/*
 * Pin the threads of a pinned shard that could not pin themselves during CPU hotplug, or whose
 * affinity the kernel has reset. Called when one of the shard's CPUs has come online, or with CPU
 * hotplug locked out.
 */
void hwt_threads_pin(struct hwt_shard *shard)
{
	unsigned int n;

	/* A stop lets the threads end elsewhere. */
	if (hwt_thread_ends(shard))
		return;
	/* A thread that becomes @unpinned from here on sets this again. */
	spin_lock(&shard->lock);
	WRITE_ONCE(shard->repin_needed, false);
	spin_unlock(&shard->lock);
	hwt_thread_repin(shard, &shard->engine);
	for (n = 0; n < shard->nr_workers; n++)
		hwt_thread_repin(shard, &shard->worker[n].runner);
}

/* -- Cgroups --------------------------------------------------------------- */

#ifdef CONFIG_CGROUPS
struct hwt_attach {
	struct work_struct	work;
	struct task_struct	*from;
	struct hwt_wheel	*wheel;
	int			ret;
};

static void hwt_attach_work(struct work_struct *work)
{
	struct hwt_attach *attach = container_of(work, struct hwt_attach, work);
	struct hwt_shard *shard;
	unsigned int n;

	for (shard = attach->wheel->first_shard; shard; shard = shard->next) {
		/*
		 * Once it has made a pass, a thread has pinned itself to its shard's CPUs, or has
		 * left that to be done. Do not wait for long: these CPUs may have no time for it.
		 */
		for (n = 0; shard->pinned && !READ_ONCE(shard->passes) && n < 1000; n++)
			usleep_range(50, 100);
		if (!shard->wheel->own_cpus)
			WRITE_ONCE(shard->engine.unpinned, false);
		attach->ret = cgroup_attach_task_all(attach->from, shard->thread);
		if (attach->ret)
			return;
		/*
		 * The move to a cpuset has changed the thread's affinity. The client's CPUs come
		 * first; a shard's CPUs are only a preference.
		 */
		if (shard->wheel->own_cpus) {
			cpus_read_lock();
			set_cpus_allowed_ptr(shard->thread, shard->affinity);
			cpus_read_unlock();
		}
	}
}

/*
 * Move the threads of a shard, which has no workers, to the cgroups of the caller. A kernel worker
 * does it: the caller may lack the privilege to move a kernel thread between cpusets, and may be
 * throttled by its cgroup while it holds the cgroups' locks.
 */
int hwt_wheel_attach_cgroups(struct hwt_wheel *wheel)
{
	struct hwt_attach attach = { .from = current, .wheel = wheel };

	INIT_WORK_ONSTACK(&attach.work, hwt_attach_work);
	/* No barrier: queue_work() and flush_work() order this task's accesses and the work's. */
	queue_work(system_unbound_wq, &attach.work);
	flush_work(&attach.work);
	destroy_work_on_stack(&attach.work);
	return attach.ret;
}
#else
int hwt_wheel_attach_cgroups(struct hwt_wheel *wheel)
{
	return 0;
}
#endif
