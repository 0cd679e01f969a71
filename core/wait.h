/* SPDX-License-Identifier: GPL-2.0-only */
/* Waiting for a change of a shard, under its lock, and waking the tasks that wait */
#ifndef _HWT_CORE_WAIT_H
#define _HWT_CORE_WAIT_H

#include <linux/ktime.h>
#include <linux/wait_bit.h>

#include "core/shard.h"

/**
 * struct hwt_mark - a mark behind the timeouts that a flush or a barrier waits for
 * @timeout: the mark's entry in the due list or shard->owed. A runner that takes the mark off the
 *           list calls no function for it
 * @reached: true once a runner has removed the mark from its list
 * @call:    number of the last call of a client's function that had begun when the mark was removed
 *
 * Protected by the shard's lock.
 */
struct hwt_mark {
	struct hwt_timeout	timeout;
	bool			reached;
	u64			call;
};

/*
 * Wake the tasks that wait by the address @var: the address of a timeout, of the @link of a
 * timeout, of a runner, of the shard or of shard->bh. Called under the shard's lock.
 */
static inline void hwt_wake(struct hwt_shard *shard, void *var)
{
	/* No barrier: tasks test their condition, and enter the queue, under this same lock. */
	if (unlikely(shard->waiters))
		wake_up_var(var);
}

/*
 * Wake the tasks that wait for a timeout. hwt_sync() waits by the address of the timeout,
 * hwt_wait() by the address of timeout->link. The timeout may have been freed, so only addresses
 * are used.
 */
static inline void hwt_wake_timeout(struct hwt_shard *shard, struct hwt_timeout *timeout)
{
	if (likely(!shard->waiters))
		return;
	hwt_wake(shard, timeout);
	hwt_wake(shard, &timeout->link);
}

/*
 * Wake the tasks that wait until a runner has returned from a function of @timeout. Use only the
 * address of @timeout, because it may have been freed.
 */
static inline void hwt_wake_call(struct hwt_shard *shard, struct hwt_runner *runner,
				 struct hwt_timeout *timeout)
{
	if (likely(!shard->waiters))
		return;
	hwt_wake_timeout(shard, timeout);
	hwt_wake(shard, runner);
}

/* The ops of all marks. They tell a mark from a timeout, which has other ops. */
extern const struct hwt_timeout_ops hwt_mark_ops;

static inline bool hwt_is_mark(const struct hwt_timeout *timeout)
{
	return timeout->ops == &hwt_mark_ops;
}

void hwt_wait_until(struct hwt_shard *shard, void *var, unsigned int state, ktime_t *until);
void hwt_wait_for(struct hwt_shard *shard, void *var);
void __hwt_mark_reached(struct hwt_shard *shard, struct hwt_timeout *timeout);

/* If an entry that was just removed from its list is a mark, wake its task, and return true. */
static inline bool hwt_mark_reached(struct hwt_shard *shard, struct hwt_timeout *timeout)
{
	if (likely(!hwt_is_mark(timeout)))
		return false;
	__hwt_mark_reached(shard, timeout);
	return true;
}

#endif /* _HWT_CORE_WAIT_H */
