// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kicks: wake-ups of the engine, from any context
 */
#include <linux/hardirq.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "core/kick.h"

/* Runs in hard interrupt context, on PREEMPT_RT too. */
void hwt_engine_irq_work(struct irq_work *work)
{
	struct hwt_shard *shard = container_of(work, struct hwt_shard, irq_work);

	/*
	 * The engine may have begun a callback since the work was queued: in a callback, which may
	 * sleep, it is not woken. The barrier kick.after orders this read after the kick.
	 */
	if (!READ_ONCE(shard->engine.current_timeout))
		wake_up_process(shard->thread);
}

/*
 * Wake the engine, or keep it from going to sleep. Any context; the shard is kept alive by RCU or
 * otherwise. Cheap if the engine was kicked before and has not begun its pass.
 */
void hwt_engine_kick(struct hwt_shard *shard)
{
	/*
	 * Barrier kick.before, pairs with pass.mb in hwt_engine_pass(): if this CPU finds an
	 * earlier kick, the engine has yet to clear @kicked, and its pass then finds the caller's
	 * change (a push, shard->reclaim, an entry of shard->owed).
	 */
	smp_mb();
	if (hwt_engine_kicked(shard))
		return;
	/*
	 * No preemption between setting @kicked and the wake-up: once it is set, other CPUs skip
	 * their wake-ups.
	 */
	preempt_disable();
	WRITE_ONCE(shard->kicked, true);
	/*
	 * Barrier kick.after, pairs with wait.state in hwt_engine_sleep_until(): the engine sees
	 * @kicked, or this CPU sees the engine asleep and in no callback. In a callback, which may
	 * sleep, the engine is not woken, and reads @kicked afterwards.
	 */
	smp_mb();
	if (!READ_ONCE(shard->engine.current_timeout)) {
		/*
		 * With interrupts off, the caller may hold a lock of the scheduler. Barrier
		 * kick.irq, pairs with kernel.irq_work in irq_work_run(): if the work was pending
		 * before, hwt_engine_irq_work() looks at the engine only after @kicked was set.
		 */
		if (in_nmi() || irqs_disabled())
			irq_work_queue(&shard->irq_work);
		else
			wake_up_process(shard->thread);
	}
	preempt_enable();
}
