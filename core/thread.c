// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads of a wheel: the engine's, and those of its workers, if it has any
 *
 * Workers take what is due, and what was left to those who may call back, one by one under
 * the wheel's lock. Until a worker takes it, a timeout is in the wheel like any other, and
 * can be cancelled and moved. Nothing is allocated, nothing is queued a second time.
 *
 * Idle workers are in a list. Whoever makes something due takes one out and wakes it, and a
 * worker that leaves something behind does so too: as many are woken as have work to do.
 */
#include <linux/cpu.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "core/engine.h"
#include "core/submit.h"
#include "core/thread.h"

/* -- What all have in common ----------------------------------------------- */

/*
 * By the thread itself: kthreads begin with an affinity of their own. Not while a CPU comes or
 * goes: one that goes is online for a while, the scheduler may choose it, and PREEMPT_RT warns of
 * the thread that gets there (affine_move_task()). Only tried: who has it go may wait for this
 * wheel.
 */
static void hwt_thread_pin(struct hwt_wheel *wheel)
{
	if (!cpus_read_trylock()) {
		WRITE_ONCE(wheel->unpinned, true);
		return;
	}
	set_cpus_allowed_ptr(current, wheel->affinity);
	cpus_read_unlock();
}

/*
 * Has the kernel let a thread go anywhere? It does so when the thread's last CPU is about to go,
 * even if that then stays, and when cpusets change. An administrator who places a thread elsewhere
 * leaves out some CPU: that is respected.
 */
static bool hwt_thread_is_loose(const struct hwt_wheel *wheel, const struct task_struct *task)
{
	/* Without a lock: what changes just now is seen the next time. */
	return data_race(!cpumask_subset(&task->cpus_mask, wheel->affinity) &&
			 cpumask_subset(cpu_online_mask, &task->cpus_mask));
}

/**
 * hwt_thread_off_affinity() - is the calling thread of a wheel to be pinned again?
 * @wheel: the wheel
 *
 * If none of its CPUs is online, a thread may be anywhere.
 */
bool hwt_thread_off_affinity(const struct hwt_wheel *wheel)
{
	if (!wheel->pinned)
		return false;
	if (READ_ONCE(wheel->unpinned))
		return true;
	return hwt_thread_is_loose(wheel, current) &&
	       cpumask_intersects(wheel->affinity, cpu_online_mask);
}

/* The engine, for all threads that have found a CPU coming or going. */
static void hwt_engine_pin(struct hwt_wheel *wheel)
{
	if (!cpus_read_trylock())
		return;
	WRITE_ONCE(wheel->unpinned, false);
	hwt_threads_pin(wheel);
	cpus_read_unlock();
}

static void hwt_thread_begin(struct hwt_wheel *wheel)
{
	if (wheel->pinned)
		hwt_thread_pin(wheel);
	switch (wheel->priority) {
	case HWT_PRIORITY_FIFO_LOW:
		sched_set_fifo_low(current);
		break;
	case HWT_PRIORITY_FIFO:
		sched_set_fifo(current);
		break;
	case HWT_PRIORITY_NORMAL:
		break;
	}
	if (wheel->flags & HWT_FREEZABLE)
		set_freezable();
}

/*
 * Stand still while the system is frozen, in a sleep in which the freezer finds the thread. Not by
 * try_to_freeze(), which would not return for a stop. Newer kernels (6.7) thaw such a sleeper
 * without waking it, unless it was woken meanwhile: so each sleep has an end.
 */
static void hwt_thread_freeze(const struct hwt_wheel *wheel)
{
	while (hwt_frozen(wheel) && !hwt_thread_ends(wheel)) {
		/* Barrier freeze.state, pairs with kernel.wake in hwt_thread_wake_frozen(): this
		 * thread sees that it is to end, or is seen asleep.
		 */
		set_current_state(hwt_idle_state(wheel));
		if (hwt_frozen(wheel) && !hwt_thread_ends(wheel))
			schedule_timeout(1);
		__set_current_state(TASK_RUNNING);
	}
}

/* Wake a thread that may be frozen, which wake_up_process() does not. */
static void hwt_thread_wake_frozen(struct task_struct *task)
{
	struct wait_queue_entry entry = { .private = task };

	default_wake_function(&entry, TASK_NORMAL | TASK_FROZEN, 0, NULL);
}

static int hwt_engine_thread(void *arg)
{
	struct hwt_wheel *wheel = arg;

	hwt_thread_begin(wheel);
	while (!hwt_thread_ends(wheel)) {
		if (unlikely(hwt_frozen(wheel)))
			hwt_thread_freeze(wheel);
		if (unlikely(hwt_thread_off_affinity(wheel)))
			hwt_engine_pin(wheel);
		hwt_engine_pass(wheel);
		/* Here too: it may never come to wait. */
		hwt_engine_poll(wheel);
		hwt_engine_sleep(wheel);
	}
	return 0;
}

/* -- Workers --------------------------------------------------------------- */

/**
 * hwt_worker_wake() - there is something for a worker
 * @wheel: its lock is held
 *
 * If none is idle, the first that becomes so will see it.
 */
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
 * Serve one timeout. The due list and the ended one take turns, so that neither waits for the end
 * of the other.
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
		/* The engine makes it due again, or not. */
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
		hwt_end(wheel, &worker->runner,
			list_first_entry(ended, struct hwt_timeout, link));
	return true;
}

static void hwt_worker_wait(struct hwt_wheel *wheel, struct hwt_worker *worker)
	__must_hold(&wheel->lock)
{
	/* Work is found, and idle workers are woken, under the lock: nothing is missed. */
	list_add(&worker->idle, &wheel->idle);
	/* Barrier worker.state, pairs with kernel.wake in kthread_stop(), which takes no lock of
	 * the wheel's: this thread sees that it is to end, or is seen asleep.
	 */
	set_current_state(hwt_idle_state(wheel));
	spin_unlock(&wheel->lock);
	if (!hwt_thread_ends(wheel))
		schedule();
	__set_current_state(TASK_RUNNING);
	if (unlikely(hwt_thread_off_affinity(wheel)))
		hwt_thread_pin(wheel);
	worker->runner.stamp = 0;
	spin_lock(&wheel->lock);
	list_del_init(&worker->idle);
}

static int hwt_worker_thread(void *arg)
{
	struct hwt_worker *worker = arg;
	struct hwt_wheel *wheel = worker->wheel;
	unsigned int n = 0;

	hwt_thread_begin(wheel);
	spin_lock(&wheel->lock);
	while (!hwt_thread_ends(wheel)) {
		if (unlikely(hwt_frozen(wheel))) {
			/* Not while idle: nobody would wake it for what is due then. */
			spin_unlock(&wheel->lock);
			hwt_thread_freeze(wheel);
			worker->runner.stamp = 0;
			spin_lock(&wheel->lock);
		} else if (!hwt_worker_serve(wheel, worker)) {
			hwt_worker_wait(wheel, worker);
		} else if (++n % HWT_STEP == 0) {
			/* Those that are not due any more do not drop the lock. */
			hwt_lock_break(wheel);
			worker->runner.stamp = 0;
		}
	}
	spin_unlock(&wheel->lock);
	return 0;
}

/* -- Making and unmaking --------------------------------------------------- */

static int hwt_worker_make(struct hwt_wheel *wheel, unsigned int number)
{
	struct hwt_worker *worker = &wheel->worker[number];
	struct task_struct *thread;

	worker->wheel = wheel;
	INIT_LIST_HEAD(&worker->idle);
	thread = kthread_create(hwt_worker_thread, worker, "%s/%u", wheel->name, number);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	/* It may be woken even when it has ended. */
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

/**
 * hwt_threads_start() - make a wheel's threads
 * @wheel: the wheel, complete but for this
 * @gfp:   how to allocate
 *
 * They run at once, to wait in TASK_IDLE: a thread that was made and never woken counts
 * as load and is taken for hung.
 *
 * Return: 0 or a negative error; then there is none.
 */
int hwt_threads_start(struct hwt_wheel *wheel, gfp_t gfp)
{
	struct task_struct *thread;
	unsigned int n;
	int ret;

	if (wheel->workers) {
		wheel->worker = kcalloc(wheel->workers, sizeof(*wheel->worker), gfp);
		if (!wheel->worker)
			return -ENOMEM;
	}
	for (n = 0; n < wheel->workers; n++) {
		ret = hwt_worker_make(wheel, n);
		if (ret)
			goto err;
	}
	thread = kthread_create(hwt_engine_thread, wheel, "%s", wheel->name);
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

/**
 * hwt_threads_stop() - wait until a wheel's threads have ended
 * @wheel: the wheel, stopping: they begin nothing new
 */
void hwt_threads_stop(struct hwt_wheel *wheel)
{
	unsigned int n;

	if (wheel->flags & HWT_FREEZABLE) {
		/* Before kthread_stop(), which does not thaw them, and waits. */
		WRITE_ONCE(wheel->ending, true);
		hwt_thread_wake_frozen(wheel->thread);
		for (n = 0; n < wheel->workers; n++)
			hwt_thread_wake_frozen(wheel->worker[n].runner.task);
	}
	kthread_stop(wheel->thread);
	hwt_workers_stop(wheel, wheel->workers);
}

/**
 * hwt_threads_free() - forget a wheel's threads, which have ended
 * @wheel: the wheel; nobody wakes its threads any more
 */
void hwt_threads_free(struct hwt_wheel *wheel)
{
	put_task_struct(wheel->thread);
	hwt_workers_free(wheel, wheel->workers);
}

static void hwt_thread_pin_again(struct hwt_wheel *wheel, struct task_struct *task)
{
	if (hwt_thread_is_loose(wheel, task))
		set_cpus_allowed_ptr(task, wheel->affinity);
}

/**
 * hwt_threads_pin() - put a wheel's threads on their CPUs again
 * @wheel: the wheel, pinned, and not being freed
 *
 * One of them is back; or none comes or goes, and the caller sees to that.
 */
void hwt_threads_pin(struct hwt_wheel *wheel)
{
	unsigned int n;

	hwt_thread_pin_again(wheel, wheel->thread);
	for (n = 0; n < wheel->workers; n++)
		hwt_thread_pin_again(wheel, wheel->worker[n].runner.task);
}
