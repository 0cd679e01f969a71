/* SPDX-License-Identifier: GPL-2.0-only */
/* Kicks: wake-ups of the engine */
#ifndef _HWT_CORE_KICK_H
#define _HWT_CORE_KICK_H

#include <linux/irq_work.h>

#include "core/shard.h"

/*
 * Return true if the engine was kicked and needs no other kick. Return false while the irq_work of
 * a kick is pending, so that the caller kicks, too: if an NMI has queued the irq_work in the last
 * moments of a CPU, it stays pending until that CPU is online again. (One gap remains: until then,
 * a kick in NMI, or with interrupts off and without the shard's lock, has no effect, timeouts may
 * be late, and hwt_wheel_dispose() waits. Any other kick wakes the engine directly.)
 */
static inline bool hwt_engine_kicked(struct hwt_shard *shard)
{
	return READ_ONCE(shard->kicked) && !irq_work_is_pending(&shard->irq_work);
}

void hwt_engine_kick(struct hwt_shard *shard, u64 tick);
void hwt_engine_kick_locked(struct hwt_shard *shard, u64 tick);
void hwt_engine_irq_work(struct irq_work *work);
void hwt_worker_wake(struct hwt_shard *shard);

#endif /* _HWT_CORE_KICK_H */
