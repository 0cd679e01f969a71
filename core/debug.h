/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks of clients, for the module parameter "debug" */
#ifndef _HWT_CORE_DEBUG_H
#define _HWT_CORE_DEBUG_H

#include <linux/jump_label.h>

#include "hwt.h"

DECLARE_STATIC_KEY_FALSE(hwt_debug);
u32 hwt_debug_mark(const struct hwt_timeout *timeout);
void __hwt_debug_track(struct hwt_timeout *timeout, u64 state);
bool __hwt_debug_used(const struct hwt_timeout *timeout);
bool __hwt_debug_init(const struct hwt_timeout *timeout);
bool hwt_debug_move(const struct hwt_timeout *timeout);
void hwt_debug_unload(struct hwt_wheel *wheel, struct module *module);

/*
 * With "debug", record in timeout->tracked, and tell debug objects, whether the timeout is held in
 * its next state, @state. Called under the shard's lock, before the change.
 */
static inline void hwt_debug_track(struct hwt_timeout *timeout, u64 state)
{
	if (static_branch_unlikely(&hwt_debug))
		__hwt_debug_track(timeout, state);
}

/* With "debug", return false, with a report, if a timeout was not initialised, or was copied. */
static inline bool hwt_debug_used(const struct hwt_timeout *timeout)
{
	return !static_branch_unlikely(&hwt_debug) || __hwt_debug_used(timeout);
}

#endif /* _HWT_CORE_DEBUG_H */
