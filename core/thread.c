// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads of a wheel: the engine, and its workers, if it has any
 *
 * Workers take timeouts from the due list and from wheel->ended, one by one under the wheel's lock.
 * Until a worker takes it, a timeout is in the wheel like any other, and can be cancelled and
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
#include "core/engine.h"
#include "core/shard.h"
#include "core/submit.h"
#include "core/thread.h"

/* -- Common to all threads ------------------------------------------------- */

/*
 * Pin the calling thread to the wheel's CPUs. Not during CPU hotplug: the scheduler may choose a
 * CPU that is going offline and is still in cpu_online_mask, and PREEMPT_RT then warns in
 * affine_move_task(). Only try the lock, since the task that takes the CPU offline may be waiting
 * for this wheel. If the lock is taken, leave the pinning to hwt_engine_pin().
 */
static void hwt_thread_pin(struct hwt_wheel *wheel, struct hwt_runner *runner)
{
	int ret = -EBUSY;

	/* A stop that comes now moves the thread again; see hwt_threads_end(). */
	if (hwt_thread_ends(wheel))
		return;
	if (cpus_read_trylock()) {
		ret = set_cpus_allowed_ptr(current, wheel->affinity);
		cpus_read_unlock();
	}
	spin_lock(&wheel->lock);
	/* If all of the wheel's CPUs are offline, hwt_cpu_online() pins the thread later. */
	WRITE_ONCE(runner->unpinned, ret);
	if (ret == -EBUSY)
		WRITE_ONCE(wheel->repin_needed, true);
	spin_unlock(&wheel->lock);
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
static bool hwt_thread_affinity_lost(const struct hwt_wheel *wheel, const struct task_struct *task)
{
	/* Without a lock: a concurrent change is seen the next time. */
	return data_race(!cpumask_subset(&task->cpus_mask, wheel->affinity) &&
			 hwt_affinity_whole(&task->cpus_mask));
}

/*
 * Must the calling thread be pinned again? While none of the wheel's CPUs is online, the wheel's
 * threads may run anywhere.
 */
static bool hwt_thread_off_affinity(const struct hwt_wheel *wheel)
{
	return wheel->pinned && hwt_thread_affinity_lost(wheel, current) &&
	       cpumask_intersects(wheel->affinity, cpu_online_mask);
}

/* Must the engine's thread pin itself or others? */
bool hwt_engine_off_affinity(const struct hwt_wheel *wheel)
{
	return READ_ONCE(wheel->repin_needed) || hwt_thread_off_affinity(wheel);
}

static void hwt_engine_pin(struct hwt_wheel *wheel)
{
	if (!cpus_read_trylock())
		return;
	hwt_threads_pin(wheel);
	cpus_read_unlock();
}

static void hwt_thread_begin(struct hwt_wheel *wheel, struct hwt_runner *runner)
{
	if (wheel->priority == HWT_PRIORITY_FIFO_LOW)
		sched_set_fifo_low(current);
	else if (wheel->priority == HWT_PRIORITY_FIFO)
		sched_set_fifo(current);
	/* Not set_freezable(): in a frozen system, it would not return for a stop. */
	if (wheel->flags & HWT_FREEZABLE)
		current->flags &= ~PF_NOFREEZE;
	/* Last: if another task never leaves the wheel's CPUs, this thread may not run any more. */
	if (wheel->pinned)
		hwt_thread_pin(wheel, runner);
}

/*
 * Sleep while the system is frozen, in a state that the freezer accepts. Not in try_to_freeze(),
 * which would not return for a stop. Since 6.7, the thaw wakes such a sleeper only if a wake-up
 * came while it was frozen. The short timeout of each sleep provides one.
 */
static void hwt_thread_freeze(const struct hwt_wheel *wheel)
{
	while (hwt_frozen(wheel) && !hwt_thread_ends(wheel)) {
		/* Barrier freeze.state, pairs with kernel.wake in hwt_thread_wake_frozen(): this
		 * thread sees the request to end, or the other side sees it asleep.
		 */
		set_current_state(hwt_idle_state(wheel));
		if (hwt_frozen(wheel) && !hwt_thread_ends(wheel))
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
	struct hwt_wheel *wheel = arg;

	hwt_runner_woken(&wheel->engine, 0);
	hwt_thread_begin(wheel, &wheel->engine);
	while (!hwt_thread_ends(wheel)) {
		if (unlikely(hwt_frozen(wheel)))
			hwt_thread_freeze(wheel);
		if (unlikely(hwt_engine_off_affinity(wheel)))
			hwt_engine_pin(wheel);
		hwt_engine_pass(wheel);
		hwt_engine_sleep(wheel);
	}
	complete(&wheel->ended_threads);
	return 0;
}

/* -- Workers --------------------------------------------------------------- */

/* Wake an idle worker. If none is idle, the first one that finishes finds the work. */
void hwt_worker_wake(struct hwt_wheel *wheel)
	__must_hold(&wheel->lock)
{
	struct hwt_worker *worker;

	worker = list_first_entry_or_null(&wheel->idle, struct hwt_worker, idle);
	if (!worker)
		return;
	list_del_init(&worker->idle);
	wake_up_process(worker->runner.task);
}

/*
 * Serve one timeout. The due list and wheel->ended take turns, so that neither waits until the
 * other is empty.
 *
 * Return: false if there was nothing to do.
 */
static bool hwt_worker_serve(struct hwt_wheel *wheel, struct hwt_worker *worker)
	__must_hold(&wheel->lock)
{
	struct list_head *due = &wheel->buckets.due, *ended = &wheel->ended;

	if (wheel->stopping)
		return false;
	if (list_empty(due)) {
		due = NULL;
	} else if (hwt_clock_moved(wheel)) {
		/* The wall clock was set: leave the due list to the engine, which sorts it anew. */
		hwt_wheel_kick(wheel);
		due = NULL;
	}
	if (list_empty(ended))
		ended = NULL;
	if (!due && !ended)
		return false;
	if ((due && ended) || !list_is_singular(due ?: ended))
		hwt_worker_wake(wheel);
	worker->took_due = due && (!ended || !worker->took_due);
	if (worker->took_due)
		hwt_fire(wheel, &worker->runner,
			 list_first_entry(due, struct hwt_timeout, link));
	else
		hwt_end_hold(wheel, &worker->runner,
			     list_first_entry(ended, struct hwt_timeout, link));
	return true;
}

static void hwt_worker_wait(struct hwt_wheel *wheel, struct hwt_worker *worker)
	__must_hold(&wheel->lock)
{
	u64 off_ns = hwt_off_cpu(current);

	/* Workers look for work, and are woken, under the lock, so no wake-up is missed. */
	list_add(&worker->idle, &wheel->idle);
	/* Barrier worker.state, pairs with kernel.wake in hwt_thread_wake_frozen(), which does not
	 * take the wheel's lock: this thread sees the request to end, or the other side sees it
	 * asleep.
	 */
	set_current_state(hwt_idle_state(wheel));
	spin_unlock(&wheel->lock);
	if (!hwt_thread_ends(wheel))
		schedule();
	__set_current_state(TASK_RUNNING);
	hwt_runner_woken(&worker->runner, off_ns);
	if (unlikely(READ_ONCE(worker->runner.unpinned) || hwt_thread_off_affinity(wheel)))
		hwt_thread_pin(wheel, &worker->runner);
	worker->runner.stamp = 0;
	spin_lock(&wheel->lock);
	list_del_init(&worker->idle);
}

static int hwt_worker_thread(void *arg)
{
	struct hwt_worker *worker = arg;
	struct hwt_wheel *wheel = worker->wheel;
	unsigned int n = 0;

	hwt_runner_woken(&worker->runner, 0);
	hwt_thread_begin(wheel, &worker->runner);
	spin_lock(&wheel->lock);
	while (!hwt_thread_ends(wheel)) {
		if (unlikely(hwt_frozen(wheel))) {
			/* Stay off the idle list: no context wakes a worker for older work. */
			spin_unlock(&wheel->lock);
			hwt_thread_freeze(wheel);
			worker->runner.stamp = 0;
			spin_lock(&wheel->lock);
		} else if (!hwt_worker_serve(wheel, worker)) {
			hwt_worker_wait(wheel, worker);
		} else if (++n % HWT_STEP == 0) {
			/* A timeout that was cancelled or pushed back does not drop the lock. */
			hwt_runner_break(wheel, &worker->runner);
		}
	}
	spin_unlock(&wheel->lock);
	complete(&wheel->ended_threads);
	return 0;
}

/* -- Creation and end ------------------------------------------------------ */

static int hwt_worker_create(struct hwt_wheel *wheel, const char *name, unsigned int number)
{
	struct hwt_worker *worker = &wheel->worker[number];
	struct task_struct *thread;

	worker->wheel = wheel;
	INIT_LIST_HEAD(&worker->idle);
	thread = kthread_create(hwt_worker_thread, worker, "%s/%u", name, number);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	/* Keep the task_struct, since the thread may be woken even after it has ended. */
	worker->runner.task = get_task_struct(thread);
	worker->runner.thread = true;
	list_add_tail(&worker->runner.entry, &wheel->runners);
	return 0;
}

static void hwt_workers_stop(struct hwt_wheel *wheel, unsigned int n)
{
	struct hwt_runner *runner;

	while (n--) {
		runner = &wheel->worker[n].runner;
		kthread_stop(runner->task);
		spin_lock(&wheel->lock);
		list_del(&runner->entry);
		spin_unlock(&wheel->lock);
	}
}

static void hwt_workers_free(struct hwt_wheel *wheel, unsigned int n)
{
	while (n--)
		put_task_struct(wheel->worker[n].runner.task);
	kfree(wheel->worker);
	wheel->worker = NULL;
}

/*
 * Create the threads of a wheel that is otherwise complete; all or none. They run at once, and wait
 * in TASK_IDLE: a thread that is created and never woken counts as load and as hung.
 */
int hwt_threads_start(struct hwt_wheel *wheel, gfp_t gfp)
{
	char name[HWT_NAME_MAX + 4];
	struct task_struct *thread;
	unsigned int n;
	int ret;

	if (wheel->nr_shards > 1)
		snprintf(name, sizeof(name), "%s:%u", wheel->name, wheel->shard);
	else
		strscpy(name, wheel->name, sizeof(name));

	if (wheel->workers) {
		wheel->worker = kcalloc_node(wheel->workers, sizeof(*wheel->worker), gfp,
					     wheel->node);
		if (!wheel->worker)
			return -ENOMEM;
	}
	for (n = 0; n < wheel->workers; n++) {
		ret = hwt_worker_create(wheel, name, n);
		if (ret)
			goto err;
	}
	thread = kthread_create(hwt_engine_thread, wheel, "%s", name);
	ret = PTR_ERR_OR_ZERO(thread);
	if (ret)
		goto err;
	wheel->thread = get_task_struct(thread);
	wheel->engine.task = thread;
	wheel->engine.thread = true;
	list_add(&wheel->engine.entry, &wheel->runners);
	for (n = 0; n < wheel->workers; n++)
		wake_up_process(wheel->worker[n].runner.task);
	wake_up_process(thread);
	return 0;

err:
	hwt_workers_stop(wheel, n);
	hwt_workers_free(wheel, n);
	return ret;
}

/* Move the threads of a pinned wheel to the present CPU, unless a CPU is coming or going. */
static void hwt_threads_move_here(struct hwt_wheel *wheel)
{
	const struct cpumask *here;
	unsigned int n;

	if (!wheel->pinned || !cpus_read_trylock())
		return;
	here = cpumask_of(raw_smp_processor_id());
	set_cpus_allowed_ptr(wheel->thread, here);
	for (n = 0; n < wheel->workers; n++)
		set_cpus_allowed_ptr(wheel->worker[n].runner.task, here);
	cpus_read_unlock();
}

/*
 * Make the threads of a stopping wheel leave their functions, and wait until they have. Pinned
 * threads do so on this CPU, because another task may never leave theirs. A thread that has just
 * begun to pin itself is moved again.
 */
static void hwt_threads_end(struct hwt_wheel *wheel)
{
	unsigned int n;

	WRITE_ONCE(wheel->ending, true);
	hwt_thread_wake_frozen(wheel->thread);
	for (n = 0; n < wheel->workers; n++)
		hwt_thread_wake_frozen(wheel->worker[n].runner.task);
	hwt_threads_move_here(wheel);
	for (n = 0; n < 1 + wheel->workers; n++)
		while (!wait_for_completion_timeout(&wheel->ended_threads, HZ / 20))
			hwt_threads_move_here(wheel);
}

/* Stop the threads of a stopping wheel, which are in no callback and serve no timeout any more. */
void hwt_threads_stop(struct hwt_wheel *wheel)
{
	hwt_threads_end(wheel);
	kthread_stop(wheel->thread);
	hwt_workers_stop(wheel, wheel->workers);
}

/* Free a wheel's threads, which have ended. No context wakes them any more. */
void hwt_threads_free(struct hwt_wheel *wheel)
{
	put_task_struct(wheel->thread);
	hwt_workers_free(wheel, wheel->workers);
}

static void hwt_thread_repin(struct hwt_wheel *wheel, struct hwt_runner *runner)
{
	bool unpinned = READ_ONCE(runner->unpinned);

	if (!unpinned && !hwt_thread_affinity_lost(wheel, runner->task))
		return;
	unpinned = set_cpus_allowed_ptr(runner->task, wheel->affinity);
	spin_lock(&wheel->lock);
	WRITE_ONCE(runner->unpinned, unpinned);
	spin_unlock(&wheel->lock);
}

/*
 * Pin the threads of a pinned wheel that could not pin themselves during CPU hotplug, or whose
 * affinity the kernel has reset. Called when one of the wheel's CPUs has come online, or with CPU
 * hotplug locked out.
 */
void hwt_threads_pin(struct hwt_wheel *wheel)
{
	unsigned int n;

	/* A stop lets the threads end elsewhere. */
	if (hwt_thread_ends(wheel))
		return;
	/* A thread that becomes @unpinned from here on sets this again. */
	spin_lock(&wheel->lock);
	WRITE_ONCE(wheel->repin_needed, false);
	spin_unlock(&wheel->lock);
	hwt_thread_repin(wheel, &wheel->engine);
	for (n = 0; n < wheel->workers; n++)
		hwt_thread_repin(wheel, &wheel->worker[n].runner);
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
	struct hwt_wheel *shard;
	unsigned int n;

	for (shard = attach->wheel; shard; shard = shard->next_shard) {
		/* Once it has made a pass, a thread has pinned itself to its shard's CPUs, or has
		 * left that to be done. Do not wait for long: these CPUs may have no time for it.
		 */
		for (n = 0; shard->pinned && !READ_ONCE(shard->passes) && n < 1000; n++)
			usleep_range(50, 100);
		if (!shard->own_cpus)
			WRITE_ONCE(shard->engine.unpinned, false);
		attach->ret = cgroup_attach_task_all(attach->from, shard->thread);
		if (attach->ret)
			return;
		/* The move to a cpuset has changed the thread's affinity. The client's CPUs come
		 * first; a shard's CPUs are only a preference.
		 */
		if (shard->own_cpus) {
			cpus_read_lock();
			set_cpus_allowed_ptr(shard->thread, shard->affinity);
			cpus_read_unlock();
		}
	}
}

/*
 * Move the threads of a wheel, which has no workers, to the cgroups of the caller. A kernel worker
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
