// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwt_delete(): cancel a timeout and take it back at once
 *
 * After hwt_cancel(), the memory of a timeout belongs to the caller only when the engine has
 * collected the timeout. hwt_delete() collects the timeout itself, or the whole submission list
 * that has it, so the memory belongs to the caller at once.
 */
#include <linux/export.h>
#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>

#include "core/debug.h"
#include "core/delete.h"
#include "core/engine.h"
#include "core/submit.h"
#include "core/wait.h"

/*
 * If the timeout was the last one pushed on its submission list, take it off. A timeout that is
 * deleted soon after it was scheduled is found here, so that the list need not be collected.
 */
static bool hwt_delete_last(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	struct hwt_inbox *inbox = per_cpu_ptr(shard->inbox, READ_ONCE(timeout->cpu));
	struct llist_node **first = &inbox->list[hwt_chain(timeout)].first;
	struct llist_node *node = &timeout->submit;

	/*
	 * Barrier delete.first, pairs with push.add in hwt_push(): this CPU sees the submit.next
	 * that the push has written. It stays valid while @node is first: other CPUs may push
	 * entries, but only a holder of the shard's lock removes them.
	 */
	if (smp_load_acquire(first) != node)
		return false;
	/* No barrier: a CPU that finds the timeout off the list relies on no write of this CPU. */
	if (!try_cmpxchg(first, &node, node->next))
		return false;
	hwt_count(&shard->collected, 1);
	return true;
}

/*
 * Collect a timeout that is SUBMITTED, unless it is on shard->owed. If the timeout is the newest
 * entry of its submission list, ARMED, and not RUNNING, only take it off that list, and set
 * *@taken. Return the state. SUBMITTED remains set in it only if *@taken is set or the timeout is
 * on shard->owed.
 */
static u64 hwt_delete_collect(struct hwt_shard *shard, struct hwt_timeout *timeout, bool *taken,
			      unsigned long *flags)
	__must_hold(&shard->lock)
{
	u64 state = hwt_timeout_state(timeout);

	for (; (state & HWT_F_SUBMITTED) && !timeout->owed; state = hwt_timeout_state(timeout)) {
		*taken = *taken || hwt_delete_last(shard, timeout);
		if (*taken) {
			if ((state & (HWT_F_ARMED | HWT_F_RUNNING)) == HWT_F_ARMED)
				break;
			/* Not pending, or its callback executes: collect it as the engine would. */
			hwt_collect_one(shard, timeout);
			*taken = false;
			continue;
		}
		hwt_collect_until(shard, READ_ONCE(timeout->cpu), timeout, flags);
		/* Try again until the CPU that has set SUBMITTED has pushed the timeout. */
		if ((hwt_timeout_state(timeout) & HWT_F_SUBMITTED) && !timeout->owed)
			hwt_lock_pause(shard, flags);
	}
	return state;
}

/* The part of hwt_delete_held() under the lock, which it may drop and take again. */
static int hwt_delete_locked(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 set,
			     bool try, unsigned long *flags)
	__must_hold(&shard->lock)
{
	struct hwt_change change;
	bool taken = false;	/* true: off its submission list, and not collected yet */
	u64 old;

	/*
	 * Barrier state.finish, pairs with state.arm in hwt_arm(): the caller of hwt_arm() that
	 * begins the next hold sees everything that was done in this one.
	 */
	do {
		old = hwt_delete_collect(shard, timeout, &taken, flags);
		/* Callbacks begin under the lock: none begins before the state changes below. */
		if (try && hwt_running(timeout)) {
			if (taken)
				hwt_collect_one(shard, timeout);
			return -EBUSY;
		}
		if (hwt_linked(timeout) && !timeout->owed)
			hwt_unlink(shard, timeout);
		change = hwt_state_delete(old, set);
		hwt_debug_track(timeout, change.state);
	} while (change.state != old && !hwt_state_change(timeout, &old, change.state));

	if (old & HWT_F_PENDING)
		hwt_cancel_account(shard, timeout, old);
	if (change.action != HWT_GIVE_BACK)
		return 0;
	if (timeout->owed)
		hwt_unlink(shard, timeout);
	hwt_wake_timeout(shard, timeout);
	return 1;
}

/*
 * Do what hwt_delete() or, if @try is true, hwt_try_delete() does. @set: HWT_F_SHUTDOWN to shut the
 * timeout down, too, else 0. Return 1 if the timeout was pending and this call has ended its hold;
 * -EBUSY if @try is true and a callback is executing; else 0: the timeout was not pending, or its
 * callback is executing. In *@running, if not NULL, store whether a callback is executing.
 */
int hwt_delete_held(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 set, bool try,
		    bool *running)
{
	unsigned long flags;
	int ret;

	/*
	 * Barrier leave.rcu, pairs with destroy.grace in hwt_wheel_dispose(): the shard, which
	 * contains the lock, is freed only after spin_unlock_irqrestore() has returned.
	 */
	rcu_read_lock();
	spin_lock_irqsave(&shard->lock, flags);
	ret = hwt_delete_locked(shard, timeout, set, try, &flags);
	if (running)
		*running = hwt_running(timeout);
	spin_unlock_irqrestore(&shard->lock, flags);
	rcu_read_unlock();
	return ret;
}

/**
 * hwt_delete() - keep a timeout from firing, and take it back
 * @timeout: the timeout; its memory must remain valid until this returns
 *
 * Process context, softirq and hard interrupt; interrupts on or off. Not in NMI, and not with a
 * lock of the scheduler or of a timer held. On PREEMPT_RT only where a spinlock_t may be taken:
 * with interrupts and preemption on, and with no raw spinlock held. The counterpart of
 * timer_delete(), for code such as "if (timer_delete(&object->timer)) put(object)".
 *
 * Never waits for a callback. If the timeout is given back, neither its ->cancelled nor its
 * ->release is called. May spin while another CPU that schedules or cancels the timeout has changed
 * the state, and has yet to push the timeout. If the timeout is on a submission list, but is not
 * the newest entry, this function collects the list. The time for this grows with the number of
 * timeouts that one CPU has scheduled or cancelled since the engine last collected.
 *
 * On a BH wheel, a timeout that is periodic or was scheduled again may be pending while its
 * callback is executing. In that case, this function returns true although the callback goes on. If
 * the callback uses the object by the reference of the hold, use hwt_cancel_sync().
 *
 * Return: true if the timeout was pending and is given back: it is in no list any more, its hold is
 * over, and the memory and the reference of the hold are the caller's. False if not: either the
 * timeout was not pending, or, on a thread wheel, it was pending while its callback was executing.
 * In the latter case, it does not fire again, and its hold ends after the callback. After false, if
 * no other context schedules the timeout, its memory is needed only while a callback of it or its
 * ->release is executing, or while its ->cancelled or ->release has yet to be called.
 */
bool hwt_delete(struct hwt_timeout *timeout)
{
	struct hwt_shard *shard = timeout->shard;

	if (!hwt_debug_used(timeout) || !shard || !hwt_held(timeout))
		return false;
	return hwt_delete_held(shard, timeout, 0, false, NULL);
}
EXPORT_SYMBOL_GPL(hwt_delete);

/**
 * hwt_try_delete() - delete a timeout, unless its callback is executing
 * @timeout: the timeout; its memory must remain valid until this returns
 *
 * Contexts as for hwt_delete(). The counterpart of try_to_del_timer_sync(). Never waits for a
 * callback. A caller that tries again after -EBUSY must let other tasks have the CPU meanwhile,
 * since the callback of a thread wheel may need it. After 1, the caller may free the timeout, if no
 * other context schedules it. After 0, the caller may do so, too, unless the timeout has a
 * ->cancelled or ->release that has yet to be called, or a ->release that is executing.
 *
 * Return: 1 if the timeout was pending, and is given back; 0 if it was not pending; -EBUSY if its
 * callback is executing, in which case nothing is changed.
 */
int hwt_try_delete(struct hwt_timeout *timeout)
{
	struct hwt_shard *shard = timeout->shard;

	if (!hwt_debug_used(timeout) || !shard)
		return 0;
	/* Take the lock even if the timeout is idle, to see what the last callback has written. */
	return hwt_delete_held(shard, timeout, 0, true, NULL);
}
EXPORT_SYMBOL_GPL(hwt_try_delete);
