// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups: the timeouts of one owner, counted, cancelled and waited for together
 *
 * A walk calls a function for each member of a group, and drops the group's lock now and then. A
 * mark in the list, which is an entry without a timeout, keeps its position. Members join at the
 * head of the list, before the mark, so the walk does not visit members that join later.
 */
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "core/sync.h"

/* Number of members that a walk visits before it drops the group's lock and enables interrupts. */
#define HWT_GROUP_STEP	16

/**
 * hwt_group_join() - make a timeout a member of a group
 * @group:   the group
 * @member:  the membership, part of the caller's object
 * @timeout: the timeout, which is initialised, on any wheel, held or not
 *
 * Any context but NMI. A hwt_group_*() call that has begun already may miss the new member.
 */
void hwt_group_join(struct hwt_group *group, struct hwt_member *member,
		    struct hwt_timeout *timeout)
{
	unsigned long flags;

	member->timeout = timeout;
	raw_spin_lock_irqsave(&group->lock, flags);
	list_add(&member->entry, &group->members);
	raw_spin_unlock_irqrestore(&group->lock, flags);
}
EXPORT_SYMBOL_GPL(hwt_group_join);

/**
 * hwt_group_leave() - end a membership
 * @group:  the group
 * @member: a member
 *
 * Any context but NMI. Does not change the timeout. Must be called before @member is freed.
 */
void hwt_group_leave(struct hwt_group *group, struct hwt_member *member)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&group->lock, flags);
	list_del(&member->entry);
	raw_spin_unlock_irqrestore(&group->lock, flags);
}
EXPORT_SYMBOL_GPL(hwt_group_leave);

/* Move a walk's mark behind the next member. Return this member, or NULL if there is none. */
static struct hwt_member *hwt_walk_next(struct hwt_group *group, struct hwt_member *mark)
	__must_hold(&group->lock)
{
	struct hwt_member *member = mark;

	list_for_each_entry_continue(member, &group->members, entry) {
		if (!member->timeout)
			continue;	/* the mark of another walk */
		list_move(&mark->entry, &member->entry);
		return member;
	}
	return NULL;
}

static bool hwt_member_sync(struct hwt_group *group, struct hwt_timeout *timeout, u64 set)
	__must_hold(&group->lock)
{
	int ret;

	if (group->get && !group->get(timeout))
		return false;
	raw_spin_unlock_irq(&group->lock);
	ret = hwt_sync(timeout, set);
	if (group->put)
		group->put(timeout);
	raw_spin_lock_irq(&group->lock);
	/*
	 * In a callback of this member, ret is -EDEADLK. Do not count the member here:
	 * hwt_group_cancel() has counted it if it was pending.
	 */
	return ret > 0;
}

/* Call @fn (NULL: hwt_member_sync()) for each member. Return how many calls returned true. */
static u64 hwt_group_each(struct hwt_group *group, bool (*fn)(struct hwt_timeout *timeout), u64 set)
{
	struct hwt_member mark = { }, *member;
	unsigned int n = 0;
	u64 sum = 0;

	might_sleep();
	raw_spin_lock_irq(&group->lock);
	list_add(&mark.entry, &group->members);
	while ((member = hwt_walk_next(group, &mark))) {
		sum += fn ? fn(member->timeout) : hwt_member_sync(group, member->timeout, set);
		if (++n % HWT_GROUP_STEP)
			continue;
		raw_spin_unlock_irq(&group->lock);
		cond_resched();
		raw_spin_lock_irq(&group->lock);
	}
	list_del(&mark.entry);
	raw_spin_unlock_irq(&group->lock);
	return sum;
}

static bool hwt_member_pending(struct hwt_timeout *timeout)
{
	return hwt_pending(timeout);
}

/**
 * hwt_group_pending() - count the members that are pending
 * @group: the group
 *
 * Process context. Looks at all members, in bounded steps.
 *
 * Return: the number, exact if no member is scheduled or cancelled, or fires, during the call.
 */
u64 hwt_group_pending(struct hwt_group *group)
{
	return hwt_group_each(group, hwt_member_pending, 0);
}
EXPORT_SYMBOL_GPL(hwt_group_pending);

/**
 * hwt_group_cancel() - cancel all members
 * @group: the group
 *
 * Process context. Calls hwt_cancel() for each member, in bounded steps.
 *
 * Return: the number of members that were pending.
 */
u64 hwt_group_cancel(struct hwt_group *group)
{
	return hwt_group_each(group, hwt_cancel, 0);
}
EXPORT_SYMBOL_GPL(hwt_group_cancel);

static u64 hwt_group_sync(struct hwt_group *group, u64 set)
{
	/* Cancel all members before the first wait, so that none fires during a wait. */
	u64 sum = hwt_group_cancel(group);

	return sum + hwt_group_each(group, NULL, set);
}

/**
 * hwt_group_cancel_sync() - cancel all members, and wait until they are no longer held
 * @group: the group
 *
 * Process context, may sleep. Cancels all members, and then waits for each, as hwt_cancel_sync()
 * does. If the caller is in a callback of a member, the call does not wait for this member. Nor
 * does it wait for a member whose object is being freed: the @get of hwt_group_init() returns false
 * for it. If this member has a ->release, the module of the ->release must call hwt_wheel_barrier()
 * before unloading.
 *
 * Return: the number of members that were pending. A member that is scheduled during the call may
 * count twice.
 */
u64 hwt_group_cancel_sync(struct hwt_group *group)
{
	return hwt_group_sync(group, 0);
}
EXPORT_SYMBOL_GPL(hwt_group_cancel_sync);

/**
 * hwt_group_shutdown_sync() - cancel all members for good, and wait until they are no longer held
 * @group: the group
 *
 * Process context, may sleep. Does the same as hwt_group_cancel_sync(), but also shuts the members
 * down. So members cannot be scheduled again, and this call is sure to end.
 *
 * Return: the same as hwt_group_cancel_sync().
 */
u64 hwt_group_shutdown_sync(struct hwt_group *group)
{
	return hwt_group_sync(group, HWT_F_SHUTDOWN);
}
EXPORT_SYMBOL_GPL(hwt_group_shutdown_sync);
