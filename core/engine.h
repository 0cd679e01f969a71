/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collecting, advancing and firing
 */
#ifndef _HWT_CORE_ENGINE_H
#define _HWT_CORE_ENGINE_H

#include "core/wheel.h"

/* With the wheel's lock, which all but hwt_engine_tick() and hwt_clock_moved() may drop. */
void hwt_lock_break(struct hwt_wheel *wheel);
void hwt_runner_break(struct hwt_wheel *wheel, struct hwt_runner *runner);
unsigned int hwt_collect(struct hwt_wheel *wheel, unsigned int max);
void hwt_collect_submitted(struct hwt_wheel *wheel);
void hwt_collect_until(struct hwt_wheel *wheel, unsigned int cpu,
		       const struct hwt_timeout *timeout);
void hwt_end_hold(struct hwt_wheel *wheel, struct hwt_runner *runner, struct hwt_timeout *timeout);
void hwt_finish(struct hwt_wheel *wheel, struct hwt_runner *runner,
		struct hwt_timeout *timeout, bool notify);
u64 hwt_engine_tick(const struct hwt_wheel *wheel);
bool hwt_engine_advance(struct hwt_wheel *wheel, u64 tick);
bool hwt_clock_moved(struct hwt_wheel *wheel);
void hwt_fire(struct hwt_wheel *wheel, struct hwt_runner *runner,
	      struct hwt_timeout *timeout);

/* Take a timeout off wheel->ended. The caller holds the wheel's lock. */
static inline void hwt_ended_remove(struct hwt_timeout *timeout)
{
	list_del(&timeout->link);
	timeout->link.next = NULL;
	timeout->ended = false;
}

/* On the wheel's thread, without the lock. */
void hwt_engine_pass(struct hwt_wheel *wheel);
void hwt_engine_sleep(struct hwt_wheel *wheel);

#endif /* _HWT_CORE_ENGINE_H */
