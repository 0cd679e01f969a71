/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kicks: wake-ups of the engine
 */
#ifndef _HWT_CORE_KICK_H
#define _HWT_CORE_KICK_H

#include <linux/irq_work.h>

#include "core/shard.h"

/*
 * Has the engine been kicked, so that another kick is not needed? A kick whose irq_work is still
 * pending does not count: a CPU that goes down may not run it any more. (If an NMI queues the work
 * in the last moments of a CPU, the work stays pending until that CPU is back. Until then, a kick
 * with interrupts off does nothing; any other kick wakes the engine itself.)
 */
static inline bool hwt_engine_kicked(struct hwt_shard *shard)
{
	return READ_ONCE(shard->kicked) && !irq_work_is_pending(&shard->irq_work);
}

void hwt_engine_kick(struct hwt_shard *shard);
void hwt_engine_irq_work(struct irq_work *work);

#endif /* _HWT_CORE_KICK_H */
