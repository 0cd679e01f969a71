/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiting for callbacks
 */
#ifndef _HWT_CORE_SYNC_H
#define _HWT_CORE_SYNC_H

#include "core/wheel.h"

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

/*
 * The @ops of each mark (struct hwt_mark in core/sync.c), and of no timeout: by them, hwt_is_mark()
 * tells a mark from a timeout.
 */
extern const struct hwt_timeout_ops hwt_mark_ops;

static inline bool hwt_is_mark(const struct hwt_timeout *timeout)
{
	return timeout->ops == &hwt_mark_ops;
}

bool hwt_mark_reached(struct hwt_shard *shard, struct hwt_timeout *timeout);
int hwt_sync(struct hwt_timeout *timeout, u64 set);
bool hwt_in_callback(const struct hwt_wheel *wheel);
void hwt_runner_enter(struct hwt_shard *shard, struct hwt_runner *runner);
void hwt_runner_leave(struct hwt_shard *shard, struct hwt_runner *runner);
void hwt_wheel_enter(struct hwt_wheel *wheel);
void hwt_wheel_leave(struct hwt_wheel *wheel);
void hwt_wait_callbacks(struct hwt_shard *shard, u64 call);
void hwt_wait_unused(struct hwt_shard *shard);
void hwt_shard_barrier(struct hwt_shard *shard);
int hwt_shard_flush(struct hwt_shard *shard);

#endif /* _HWT_CORE_SYNC_H */
