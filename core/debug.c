// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of what clients do, for the module parameter "debug": they cost time
 *
 *   - A timeout is used that was never initialised, or copied: said, and refused.
 *   - One is initialised while it is held: said, and it is left as it is.
 *   - A module goes and leaves one that would call into it: said, and withdrawn.
 *   - One is freed while it is held: said, and withdrawn. Only where the kernel's debug
 *     objects (CONFIG_DEBUG_OBJECTS_FREE) look at what is freed.
 *
 * What is on a submission list is known to nobody but its CPU, so the engine is woken for
 * each submission then. Of debug objects, "active" is what the engine has and has not
 * let go: they take locks that an NMI must not take, and want to be told in an order that
 * only the wheel's lock can promise.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugobjects.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/sched/task_stack.h>

#include "core/debug.h"
#include "core/engine.h"
#include "core/submit.h"
#include "core/sync.h"

DEFINE_STATIC_KEY_FALSE(hwt_debug);

/* Reports come with a stack, and from any context. */
#define hwt_debug_report(fmt, ...)					\
	do {								\
		static DEFINE_RATELIMIT_STATE(_limit, 5 * HZ, 10);	\
									\
		if (__ratelimit(&_limit)) {				\
			pr_err("BUG: " fmt, ##__VA_ARGS__);		\
			dump_stack();					\
		}							\
	} while (0)

/* -- Initialised, and only once -------------------------------------------- */

/**
 * hwt_debug_mark() - what the @check of a timeout is that was initialised where it is
 * @timeout: the timeout
 */
u32 hwt_debug_mark(const struct hwt_timeout *timeout)
{
	return (u32)(unsigned long)timeout ^ __HWT_CHECK_PLACE;
}

/* Its other members can be relied on only if it was initialised, and not overwritten since. */
static bool hwt_debug_whole(const struct hwt_timeout *timeout)
{
	return timeout->check == hwt_debug_mark(timeout) ||
	       timeout->check == __HWT_CHECK_STATIC;
}

/* hwt_debug_used() when it is on; any context. */
bool __hwt_debug_used(const struct hwt_timeout *timeout)
{
	if (hwt_debug_whole(timeout))
		return true;
	hwt_debug_report("timeout %p is used and was never initialised, or was copied\n",
			 timeout);
	return false;
}

/*
 * What @tracked of a timeout is while the engine knows that it is held, and then debug objects
 * know, too. Else it is 0. The state alone would not do: in memory that is used again it may hold
 * anything.
 */
#define HWT_TRACKED		0x68
#define HWT_TRACKED_OBJECT	0x69

/* May it be initialised? Any context. */
bool __hwt_debug_init(const struct hwt_timeout *timeout)
{
	u8 tracked = READ_ONCE(timeout->tracked);

	/* It may hold anything, but hardly this. */
	if (timeout->check != hwt_debug_mark(timeout) ||
	    (tracked != HWT_TRACKED && tracked != HWT_TRACKED_OBJECT) || !hwt_held(timeout))
		return true;
	hwt_debug_report("timeout %p is initialised while it is held: %ps\n", timeout,
			 timeout->ops->expire);
	return false;
}

/* -- Withdrawing what must not call back ------------------------------------ */

/* Out of the lists, without a word to its owner. It may be RUNNING: that is not stopped. */
static void hwt_debug_withdraw(struct hwt_wheel *wheel, struct hwt_timeout *timeout)
	__must_hold(&wheel->lock)
{
	u64 old = hwt_timeout_state(timeout), new;

	/* No barrier: under the lock, and the owner has gone. */
	do {
		new = hwt_state_withdraw(old, (old & HWT_F_SUBMITTED) && !timeout->ended);
		hwt_debug_track(timeout, new);
	} while (!hwt_state_change(timeout, &old, new));
	if (old & HWT_F_PENDING)
		hwt_cancel_account(wheel, timeout, old);
	if (timeout->ended)
		hwt_ended_remove(timeout);
	else if (hwt_linked(timeout))
		hwt_buckets_remove(&wheel->buckets, timeout);
	hwt_wake(wheel, timeout);
}

struct hwt_debug_going {
	struct hwt_wheel	*wheel;
	struct module		*module;
};

static void hwt_debug_left(struct hwt_timeout *timeout, void *arg)
{
	struct hwt_debug_going *going = arg;

	if (!within_module((unsigned long)timeout->ops, going->module) &&
	    !within_module((unsigned long)timeout->ops->expire, going->module) &&
	    !within_module((unsigned long)timeout, going->module))
		return;
	hwt_debug_report("module %s goes and leaves timeout %p on wheel %s: %ps\n",
			 going->module->name, timeout, going->wheel->name,
			 timeout->ops->expire);
	hwt_debug_withdraw(going->wheel, timeout);
}

/* Is one of the module's functions executing? */
static bool hwt_debug_executing(const struct hwt_debug_going *going, bool said)
	__must_hold(&going->wheel->lock)
{
	struct hwt_runner *runner;

	list_for_each_entry(runner, &going->wheel->runners, entry) {
		if (!runner->current_timeout ||
		    !within_module((unsigned long)runner->fn, going->module))
			continue;
		if (!said)
			hwt_debug_report("module %s goes while its %ps is executing on wheel %s\n",
					 going->module->name, runner->fn, going->wheel->name);
		return true;
	}
	return false;
}

/**
 * hwt_debug_module_going() - has a module that goes left timeouts on a wheel?
 * @wheel:  the wheel
 * @module: the module, which has gone through its exit
 * @said:   that one of its functions is executing, on whichever wheel
 *
 * Looks at all timeouts under the lock.
 *
 * Return: true if one of its functions is executing on the wheel. It may schedule again: this is
 * to be called again later.
 */
bool hwt_debug_module_going(struct hwt_wheel *wheel, struct module *module, bool said)
{
	struct hwt_debug_going going = { .wheel = wheel, .module = module };
	struct hwt_timeout *timeout, *next;
	bool executing;

	spin_lock(&wheel->lock);
	hwt_collect_before(wheel);
	hwt_buckets_for_each(&wheel->buckets, hwt_debug_left, &going);
	list_for_each_entry_safe(timeout, next, &wheel->ended, link)
		hwt_debug_left(timeout, &going);
	executing = hwt_debug_executing(&going, said);
	spin_unlock(&wheel->lock);
	return executing;
}

/* -- Freed ------------------------------------------------------------------ */

#ifdef CONFIG_DEBUG_OBJECTS
static void *hwt_debug_hint(void *addr)
{
	struct hwt_timeout *timeout = addr;

	return hwt_debug_whole(timeout) && timeout->ops ? timeout->ops->expire : NULL;
}

/* It needs no introduction: that it was initialised is checked above. */
static bool hwt_debug_is_static(void *addr)
{
	return true;
}

static const struct debug_obj_descr hwt_debug_descr;

/* Where the lock must not be waited for, it may be taken: then the timeout stays on the wheel. */
static void hwt_debug_withdraw_freed(struct hwt_timeout *timeout)
{
	struct hwt_wheel *wheel = timeout->wheel;

	if (preemptible()) {
		spin_lock(&wheel->lock);
		hwt_collect_before(wheel);
		hwt_debug_withdraw(wheel, timeout);
		spin_unlock(&wheel->lock);
	} else if (spin_trylock(&wheel->lock)) {
		hwt_debug_withdraw(wheel, timeout);
		spin_unlock(&wheel->lock);
	}
	WRITE_ONCE(timeout->tracked, 0);
}

/*
 * It was reported. Keep the wheel whole, as far as that goes: memory that was overwritten before it
 * was freed does not say which wheel that is.
 */
static bool hwt_debug_freed(void *addr, enum debug_obj_state state)
{
	struct hwt_timeout *timeout = addr;

	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	if (hwt_debug_whole(timeout))
		hwt_debug_withdraw_freed(timeout);
	/* It may still be RUNNING, or SUBMITTED: but the kernel asks until it is not active. */
	debug_object_deactivate(timeout, &hwt_debug_descr);
	return true;
}

static const struct debug_obj_descr hwt_debug_descr = {
	.name			= "hwt_timeout",
	.debug_hint		= hwt_debug_hint,
	.is_static_object	= hwt_debug_is_static,
	.fixup_free		= hwt_debug_freed,
};

static void hwt_debug_activate(struct hwt_timeout *timeout)
{
	/* Of those they want to be told when they are made. */
	if (object_is_on_stack(timeout))
		return;
	WRITE_ONCE(timeout->tracked, HWT_TRACKED_OBJECT);
	debug_object_activate(timeout, &hwt_debug_descr);
}

static void hwt_debug_deactivate(struct hwt_timeout *timeout)
{
	debug_object_deactivate(timeout, &hwt_debug_descr);
}
#else
static void hwt_debug_activate(struct hwt_timeout *timeout)
{
}

static void hwt_debug_deactivate(struct hwt_timeout *timeout)
{
}
#endif

/* hwt_debug_track() when it is on; under the wheel's lock. */
void __hwt_debug_track(struct hwt_timeout *timeout, u64 state)
{
	u8 tracked = timeout->tracked;

	if (!tracked == !(state & HWT_F_HELD))
		return;
	WRITE_ONCE(timeout->tracked, tracked ? 0 : HWT_TRACKED);
	if (!tracked)
		hwt_debug_activate(timeout);
	else if (tracked == HWT_TRACKED_OBJECT)
		hwt_debug_deactivate(timeout);
}
