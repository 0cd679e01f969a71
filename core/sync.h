/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiting for callbacks, and stopping a wheel
 */
#ifndef _HWT_CORE_SYNC_H
#define _HWT_CORE_SYNC_H

#include "core/wheel.h"

void __hwt_wake(struct hwt_wheel *wheel, void *var);

/**
 * hwt_wake() - wake the tasks that wait for a mark, a runner or the wheel
 * @wheel: its lock is held
 * @var:   the mark that was reached, the runner whose call is over, or the wheel
 */
static inline void hwt_wake(struct hwt_wheel *wheel, void *var)
{
	if (unlikely(wheel->waiters))
		__hwt_wake(wheel, var);
}

/*
 * Wake the tasks that wait for a timeout: _sync calls by its address, hwt_wait() by that of its
 * @link. The timeout may have been freed.
 */
static inline void hwt_wake_timeout(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
{
	if (likely(!wheel->waiters))
		return;
	__hwt_wake(wheel, timeout);
	__hwt_wake(wheel, &timeout->link);
}

/* The ops of a mark, for which a flush or a barrier waits; see struct hwt_mark. */
extern const struct hwt_timeout_ops hwt_mark_ops;

static inline bool hwt_is_mark(const struct hwt_timeout *timeout)
{
	return timeout->ops == &hwt_mark_ops;
}

bool hwt_mark_reached(struct hwt_wheel *wheel, struct hwt_timeout *timeout);
int hwt_sync(struct hwt_timeout *timeout, u64 set);
bool hwt_in_callback(struct hwt_wheel *wheel);
void hwt_wait_callers(struct hwt_wheel *wheel);
void hwt_stop_threads(struct hwt_wheel *wheel);
long hwt_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg);

#endif /* _HWT_CORE_SYNC_H */
