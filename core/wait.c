// SPDX-License-Identifier: GPL-2.0-only
/* Waiting for a change of a shard, under its lock, and waking the tasks that wait */
#include <linux/hrtimer.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/wait_bit.h>

#include "core/wait.h"

/*
 * Wait for a hwt_wake() with @var, until @until on CLOCK_MONOTONIC at most (NULL: no limit). The
 * shard's lock is dropped meanwhile, so the caller must test its condition again.
 */
void hwt_wait_until(struct hwt_shard *shard, void *var, unsigned int state, ktime_t *until)
	__must_hold(&shard->lock)
{
	wait_queue_head_t *queue = __var_waitqueue(var);
	struct wait_bit_queue_entry wait;

	init_wait_var_entry(&wait, var, 0);
	/*
	 * Barrier wait.prepare, unpaired: the task is in the queue before it drops the shard's
	 * lock, so it misses no wake-up. __set_current_state() would do: the condition changes, and
	 * hwt_wake() is called, under this lock.
	 */
	prepare_to_wait(queue, &wait.wq_entry, state);
	shard->waiters++;
	spin_unlock_irq(&shard->lock);
	schedule_hrtimeout(until, HRTIMER_MODE_ABS);
	spin_lock_irq(&shard->lock);
	shard->waiters--;
	finish_wait(queue, &wait.wq_entry);
}

void hwt_wait_for(struct hwt_shard *shard, void *var)
	__must_hold(&shard->lock)
{
	hwt_wait_until(shard, var, TASK_UNINTERRUPTIBLE, NULL);
}

const struct hwt_timeout_ops hwt_mark_ops = { };

/* The part of hwt_mark_reached() for a mark. */
void __hwt_mark_reached(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	struct hwt_mark *mark = container_of(timeout, struct hwt_mark, timeout);

	mark->reached = true;
	mark->call = shard->calls;
	hwt_wake(shard, timeout);
}
