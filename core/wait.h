/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiting for a change of a shard, under its lock, and waking the tasks that wait
 */
#ifndef _HWT_CORE_WAIT_H
#define _HWT_CORE_WAIT_H

#include <linux/ktime.h>

#include "core/shard.h"

/**
 * struct hwt_mark - a mark behind the timeouts that a flush or a barrier waits for
 * @timeout: entry in the due list or in shard->owed, linked by its @link like any timeout. It has
 *           no callbacks, so a runner that takes it off the list calls nothing
 * @reached: true once a runner has removed the mark from its list
 * @call:    number of the last call of a client's function that had begun when the mark was reached
 *
 * Protected by the shard's lock.
 */
struct hwt_mark {
	struct hwt_timeout	timeout;
	bool			reached;
	u64			call;
};

void __hwt_wake(struct hwt_shard *shard, void *var);

/**
 * hwt_wake() - wake the tasks that wait for a mark, a runner or the shard
 * @shard: the shard; its lock is held
 * @var:   the address by which the tasks wait: that of a mark's timeout, of a runner, or of the
 *         shard; tasks in hwt_wait() wait by the address of the @link of their timeout
 */
static inline void hwt_wake(struct hwt_shard *shard, void *var)
{
	if (unlikely(shard->waiters))
		__hwt_wake(shard, var);
}

/*
 * Wake the tasks that wait for a timeout: hwt_sync() waits by the timeout's address, hwt_wait() by
 * the address of its @link. Only the addresses are used, because the timeout may have been freed.
 */
static inline void hwt_wake_timeout(struct hwt_shard *shard, struct hwt_timeout *timeout)
{
	if (likely(!shard->waiters))
		return;
	__hwt_wake(shard, timeout);
	__hwt_wake(shard, &timeout->link);
}

/* The @ops of all marks (struct hwt_mark), but of no timeout: hwt_is_mark() tests for them. */
extern const struct hwt_timeout_ops hwt_mark_ops;

static inline bool hwt_is_mark(const struct hwt_timeout *timeout)
{
	return timeout->ops == &hwt_mark_ops;
}

void hwt_wait_until(struct hwt_shard *shard, void *var, unsigned int state, ktime_t *until);
void hwt_wait_for(struct hwt_shard *shard, void *var);
void __hwt_mark_reached(struct hwt_shard *shard, struct hwt_timeout *timeout);

/* If an entry that was just removed from its list is a mark, wake the task that waits for it. */
static inline bool hwt_mark_reached(struct hwt_shard *shard, struct hwt_timeout *timeout)
{
	if (likely(!hwt_is_mark(timeout)))
		return false;
	__hwt_mark_reached(shard, timeout);
	return true;
}

#endif /* _HWT_CORE_WAIT_H */
