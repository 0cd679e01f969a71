/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiting for callbacks, and stopping a wheel
 */
#ifndef _HWT_CORE_SYNC_H
#define _HWT_CORE_SYNC_H

#include "core/wheel.h"

/* Something has changed that those in hwt_sync_wait() may wait for. With the wheel's lock. */
static inline void hwt_sync_wake(struct hwt_wheel *wheel)
{
	if (unlikely(wheel->sync_waiters))
		wake_up_all(&wheel->sync_wait);
}

bool hwt_flush_reached(struct hwt_wheel *wheel, struct hwt_timeout *timeout);
bool hwt_in_callback(struct hwt_wheel *wheel);
void hwt_wait_runners(struct hwt_wheel *wheel);
long hwt_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg);

#endif /* _HWT_CORE_SYNC_H */
