// SPDX-License-Identifier: GPL-2.0-only
/* Kicks: wake-ups of the engine, from any context */
#include <linux/hardirq.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "core/bh.h"
#include "core/clock.h"
#include "core/kick.h"

/* Wake the engine for hwt_engine_kick(). Runs in hard interrupt context, on PREEMPT_RT too. */
void hwt_engine_irq_work(struct irq_work *work)
{
	struct hwt_shard *shard = container_of(work, struct hwt_shard, irq_work);

	/*
	 * If the engine is in a callback, do not wake it: a wake-up might end a sleep of the
	 * callback. After the callback, the engine reads @kicked, which is set by now (kick.after).
	 */
	if (!READ_ONCE(shard->engine.current_timeout))
		wake_up_process(shard->thread);
}

/* @direct: the caller holds no lock of the scheduler, so it may wake the engine itself. */
static void __hwt_engine_kick(struct hwt_shard *shard, u64 tick, bool direct)
{
	if (hwt_is_bh(shard)) {
		hwt_bh_kick(shard, tick, direct);
		return;
	}
	/*
	 * Barrier kick.before, pairs with pass.mb in hwt_engine_pass(): if this CPU finds @kicked
	 * set by an earlier kick, the pass that clears @kicked finds what the caller has changed
	 * before this kick (a push, shard->reclaim, an entry of shard->owed).
	 */
	smp_mb();
	if (hwt_engine_kicked(shard))
		return;
	/* Disable preemption: CPUs that find @kicked set rely on this CPU to wake the engine. */
	preempt_disable();
	atomic64_set(&shard->kicked_ns, hwt_clock_stamp(shard));
	WRITE_ONCE(shard->kicked, true);
	/*
	 * Barrier kick.after, pairs with wait.state in hwt_engine_sleep_until(): the engine sees
	 * @kicked before it sleeps, or this CPU sees the engine asleep and in no callback, and
	 * wakes it. An engine in a callback reads @kicked after the callback.
	 */
	smp_mb();
	if (!READ_ONCE(shard->engine.current_timeout)) {
		/*
		 * Barrier kick.irq, pairs with kernel.irq_work in irq_work_run(): if the work is
		 * pending already, irq_work_queue() does nothing. Then hwt_engine_irq_work() has
		 * yet to read current_timeout, and does so after @kicked was set.
		 */
		if (!direct)
			irq_work_queue(&shard->irq_work);
		else
			wake_up_process(shard->thread);
	}
	preempt_enable();
}

/*
 * Wake the engine, or keep it from going to sleep. Any context. A BH shard runs a pass at @tick.
 * The caller keeps the shard from being freed. In NMI or with interrupts off, the caller may hold a
 * lock of the scheduler, so this function lets an irq_work wake the engine.
 */
void hwt_engine_kick(struct hwt_shard *shard, u64 tick)
{
	__hwt_engine_kick(shard, tick, !in_nmi() && !irqs_disabled());
}

/*
 * Wake the engine, with the shard's lock held. No holder of a lock of the scheduler takes that
 * lock, so a direct wake-up cannot deadlock.
 */
void hwt_engine_kick_locked(struct hwt_shard *shard, u64 tick)
	__must_hold(&shard->lock)
{
	__hwt_engine_kick(shard, tick, true);
}

/* Wake an idle worker. If none is idle, the first worker that becomes free finds the work. */
void hwt_worker_wake(struct hwt_shard *shard)
	__must_hold(&shard->lock)
{
	struct hwt_worker *worker;

	worker = list_first_entry_or_null(&shard->idle, struct hwt_worker, idle);
	if (!worker)
		return;
	list_del_init(&worker->idle);
	wake_up_process(worker->runner.task);
}
