/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The threads of a wheel
 */
#ifndef _HWT_CORE_THREAD_H
#define _HWT_CORE_THREAD_H

#include <linux/freezer.h>
#include <linux/kthread.h>

#include "core/wheel.h"

/* Must the calling thread of the wheel freeze? */
static inline bool hwt_frozen(const struct hwt_wheel *wheel)
{
	return (wheel->flags & HWT_FREEZABLE) && freezing(current);
}

/* Is the calling thread of the wheel to end? */
static inline bool hwt_thread_ends(const struct hwt_wheel *wheel)
{
	return READ_ONCE(wheel->ending) || kthread_should_stop();
}

/* Return the state in which the wheel's threads sleep, which counts neither as load nor as hung. */
static inline unsigned int hwt_idle_state(const struct hwt_wheel *wheel)
{
	return wheel->flags & HWT_FREEZABLE ? TASK_IDLE | TASK_FREEZABLE : TASK_IDLE;
}

int hwt_threads_start(struct hwt_wheel *wheel, gfp_t gfp);
void hwt_threads_stop(struct hwt_wheel *wheel);
void hwt_threads_free(struct hwt_wheel *wheel);
void hwt_threads_pin(struct hwt_wheel *wheel);
bool hwt_engine_off_affinity(const struct hwt_wheel *wheel);
void hwt_worker_wake(struct hwt_wheel *wheel);

#endif /* _HWT_CORE_THREAD_H */
