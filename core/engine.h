/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collecting, advancing and firing
 */
#ifndef _HWT_CORE_ENGINE_H
#define _HWT_CORE_ENGINE_H

#include "core/wheel.h"

/* With the wheel's lock, which all but hwt_clock_moved() may drop. */
void hwt_lock_break(struct hwt_wheel *wheel);
void hwt_settle_queued(struct hwt_wheel *wheel, struct hwt_runner *runner,
		       struct hwt_timeout *timeout);
void hwt_settle_running(struct hwt_wheel *wheel, struct hwt_runner *runner,
			struct hwt_timeout *timeout, bool notified);
bool hwt_settle_deferred(struct hwt_wheel *wheel, struct hwt_runner *runner,
			 struct hwt_timeout *timeout);
unsigned int hwt_collect(struct hwt_wheel *wheel, struct hwt_runner *runner,
			 unsigned int max);
void hwt_collect_before(struct hwt_wheel *wheel, struct hwt_runner *runner);
bool hwt_engine_advance(struct hwt_wheel *wheel);
bool hwt_clock_moved(struct hwt_wheel *wheel);
void hwt_fire(struct hwt_wheel *wheel, struct hwt_runner *runner,
	      struct hwt_timeout *timeout);
void hwt_undefer(struct hwt_wheel *wheel, struct hwt_timeout *timeout);
/* On the wheel's thread, without the lock. */
void hwt_engine_pass(struct hwt_wheel *wheel);
void hwt_engine_sleep(struct hwt_wheel *wheel);

#endif /* _HWT_CORE_ENGINE_H */
