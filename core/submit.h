/* SPDX-License-Identifier: GPL-2.0-only */
/* Scheduling and cancelling */
#ifndef _HWT_CORE_SUBMIT_H
#define _HWT_CORE_SUBMIT_H

#include <linux/hash.h>
#include <linux/log2.h>

#include "core/shard.h"
#include "core/state.h"
#include "core/wheel.h"

/*
 * Change a timeout's state from *@old to @new, and return true. If the state is not *@old any more,
 * store the present state in *@old, and return false.
 *
 * On success, this is a full barrier, on which all callers rely. Earlier accesses come before the
 * change: what a client wrote before it scheduled the timeout, and what a runner did before it ends
 * the hold. Later reads come after the change: those of sleep_seq, wake_tick, shard->kicked and
 * shard->reclaim.
 */
static inline bool hwt_state_change(struct hwt_timeout *timeout, u64 *old, u64 new)
{
	/* No barrier is named here: the comments of the callers name it and say what it orders. */
	return atomic64_try_cmpxchg(&timeout->state, (s64 *)old, new);
}

/* Return the index, in @list of struct hwt_inbox, of the list on which a timeout is pushed. */
static __always_inline unsigned int hwt_chain(const struct hwt_timeout *timeout)
{
	return hash_ptr(timeout, ilog2(HWT_CHAINS));
}

/*
 * Before a timeout is armed for a deadline of @ns, undo a touch to a later time, or the timeout
 * would not fire at @ns. The caller changes the state after this, and the engine reads the state
 * before timeout->touched (fire.touched): an engine that sees the new state also sees the touch
 * undone. @old: the state that the caller has read before. If a client has changed the state since,
 * its touch must not be undone: return false, so that the caller reads the state again.
 */
static __always_inline bool hwt_untouch(struct hwt_timeout *timeout, u64 old, u64 ns)
{
	/*
	 * Barrier touch.arm, pairs with touch.set in hwt_touch(): if this CPU reads a touch, it
	 * then reads a state that is not older than the one that its client has made or found.
	 */
	s64 touched = atomic64_read_acquire(&timeout->touched);

	if (likely((u64)touched <= ns))
		return true;
	/* No barrier: the caller's change of the state, which follows, orders this before it. */
	return hwt_timeout_state(timeout) == old &&
	       atomic64_try_cmpxchg(&timeout->touched, &touched, ns);
}

/* If the wheel has a max_pending, let one more timeout be pending. */
static inline void hwt_pending_put(struct hwt_shard *shard)
{
	if (unlikely(shard->max_pending))
		atomic64_inc(&shard->wheel->pending_left);
}

bool hwt_cancel_claim(struct hwt_timeout *timeout, u64 set, u64 *was);
void hwt_cancel_account(struct hwt_shard *shard, const struct hwt_timeout *timeout, u64 old);

#endif /* _HWT_CORE_SUBMIT_H */
