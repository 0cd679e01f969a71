/* SPDX-License-Identifier: GPL-2.0-only */
/* BH wheels: passes in softirqs, driven by timers */
#ifndef _HWT_CORE_BH_H
#define _HWT_CORE_BH_H

#include <linux/jiffies.h>
#include <linux/sched.h>

#include "core/shard.h"

/*
 * Return true if the callback of a timeout is executing on a BH shard. The caller has read the
 * timeout's state before. The timeout may have been freed: only its address is used.
 */
static inline bool hwt_bh_running(const struct hwt_shard *shard, const struct hwt_timeout *timeout)
{
	/*
	 * Barrier running.rmb, pairs with state.note in hwt_bh_claim() and hwt_bh_claim_slow(): if
	 * the caller has read the state from after the timeout fired, this CPU sees current_timeout
	 * as stored for this firing, or as stored later.
	 */
	smp_rmb();
	/*
	 * Barrier running.done, pairs with bh.done in hwt_bh_note(): a caller that finds the
	 * timeout no longer in current_timeout sees what the callback wrote.
	 */
	return smp_load_acquire(&shard->engine.current_timeout) == timeout;
}

/* Return true if the caller is a softirq that has run passes for long enough. */
static inline bool hwt_bh_spent(const struct hwt_shard *shard)
{
	return time_after(READ_ONCE(jiffies), shard->bh.until) && shard->engine.task == current;
}

void hwt_bh_init(struct hwt_shard *shard);
void hwt_bh_kick(struct hwt_shard *shard, u64 tick, bool direct);
unsigned int hwt_bh_fire(struct hwt_shard *shard, unsigned int max);
unsigned int hwt_bh_hand_back(struct hwt_shard *shard, hwt_handback_fn fn, void *arg);
void hwt_bh_relax(struct hwt_shard *shard);
void hwt_bh_stop(struct hwt_shard *shard);
void hwt_bh_free(struct hwt_shard *shard);

#endif /* _HWT_CORE_BH_H */
