// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of clients, for the module parameter "debug" (docs/kernel.md lists them)
 *
 * To the kernel's debug objects, a timeout is active from its collection to the end of its hold. A
 * submission does not make it active, for two reasons. It may be in NMI, where debug objects must
 * not be called. And it does not hold the shard's lock, which orders the calls of debug objects.
 * With "debug", each submission wakes the engine, which soon collects the timeout.
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

#include "core/bh.h"
#include "core/callback.h"
#include "core/debug.h"
#include "core/engine.h"
#include "core/registry.h"

DEFINE_STATIC_KEY_FALSE(hwt_debug);

#define hwt_debug_report(fmt, ...)					\
	do {								\
		static DEFINE_RATELIMIT_STATE(_limit, 5 * HZ, 10);	\
									\
		if (__ratelimit(&_limit)) {				\
			pr_err("BUG: " fmt, ##__VA_ARGS__);		\
			dump_stack();					\
		}							\
	} while (0)

/* -- Initialisation --------------------------------------------------------- */

/* Return the value that @check has in a timeout that was initialised at this address. */
u32 hwt_debug_mark(const struct hwt_timeout *timeout)
{
	return (u32)(unsigned long)timeout ^ __HWT_CHECK_PLACE;
}

/* Return true if a timeout was initialised, and not copied or overwritten since. */
static bool hwt_debug_whole(const struct hwt_timeout *timeout)
{
	return timeout->check == hwt_debug_mark(timeout) ||
	       timeout->check == __HWT_CHECK_STATIC;
}

/* Return false, with a report, if a timeout was not initialised, or was copied. Any context. */
bool __hwt_debug_used(const struct hwt_timeout *timeout)
{
	if (hwt_debug_whole(timeout))
		return true;
	hwt_debug_report("timeout %p is used and was never initialised, or was copied\n",
			 timeout);
	return false;
}

/* Values of timeout->tracked from a collection to the end of the hold; at other times it is 0. */
#define HWT_TRACKED		0x68
#define HWT_TRACKED_OBJECT	0x69	/* the timeout is active to debug objects */

/* Return false, with a report, if a timeout is held: it must not be initialised. Any context. */
bool __hwt_debug_init(const struct hwt_timeout *timeout)
{
	u8 tracked = READ_ONCE(timeout->tracked);

	/* Test three members: uninitialised memory hardly passes all three tests. */
	if (timeout->check != hwt_debug_mark(timeout) ||
	    (tracked != HWT_TRACKED && tracked != HWT_TRACKED_OBJECT) || !hwt_held(timeout))
		return true;
	hwt_debug_report("timeout %p is initialised while it is held: %ps\n", timeout,
			 timeout->ops->expire);
	return false;
}

/* -- Moves to another wheel ------------------------------------------------- */

static bool hwt_debug_releasing(struct hwt_shard *shard, const struct hwt_timeout *timeout)
{
	struct hwt_runner *runner;
	bool found = false;

	spin_lock_irq(&shard->lock);
	list_for_each_entry(runner, &shard->runners, entry)
		found |= runner->releasing && runner->current_timeout == timeout &&
			 runner->fn == timeout->ops->release;
	spin_unlock_irq(&shard->lock);
	return found;
}

/*
 * Report a timeout that is moved to another wheel while it is held or one of its functions is
 * executing. Any context, but a ->release is noticed only where the shard's lock may be taken.
 * Return false, with a report, if the timeout was never initialised.
 */
bool hwt_debug_move(const struct hwt_timeout *timeout)
{
	struct hwt_shard *shard = timeout->shard;
	bool may_lock = preemptible();
	const void *fn = NULL;

	if (!hwt_debug_used(timeout))
		return false;
	if (hwt_held(timeout)) {
		hwt_debug_report("timeout %p is moved to another wheel while it is held: %ps\n",
				 timeout, timeout->ops->expire);
		return true;
	}
	/*
	 * The wheel may have been destroyed. Barrier clock.rcu, pairs with destroy.grace in
	 * hwt_wheel_dispose(): a shard that hwt_shard_exists() finds is freed only after this CPU
	 * has called rcu_read_unlock().
	 */
	rcu_read_lock();
	if (hwt_shard_exists(shard)) {
		if (hwt_is_bh(shard) && hwt_bh_running(shard, timeout))
			fn = timeout->ops->expire;
		else if (may_lock && hwt_debug_releasing(shard, timeout))
			fn = timeout->ops->release;
	}
	rcu_read_unlock();
	if (fn)
		hwt_debug_report("timeout %p is moved to another wheel while its %ps executes\n",
				 timeout, fn);
	return true;
}

/* -- Unloaded modules ------------------------------------------------------- */

struct hwt_debug_going {
	struct hwt_shard	*shard;		/* not timeout->shard: the client may change it */
	struct module		*module;
};

static void hwt_debug_left(struct hwt_timeout *timeout, void *arg)
{
	struct hwt_debug_going *going = arg;

	if (hwt_module_needs(timeout, going->module))
		hwt_debug_report("module %s is unloaded and leaves timeout %p on wheel %s: %ps\n",
				 module_name(going->module), timeout, going->shard->wheel->name,
				 timeout->ops->expire);
}

static void hwt_debug_executing(struct hwt_shard *shard, struct module *module)
	__must_hold(&shard->lock)
{
	struct hwt_runner *runner;

	list_for_each_entry(runner, &shard->runners, entry)
		if (runner->current_timeout && within_module((unsigned long)runner->fn, module))
			hwt_debug_report("module %s goes while its %ps is executing on wheel %s\n",
					 module_name(module), runner->fn, shard->wheel->name);
}

/* Report a module's timeouts and executing functions on a wheel, after the module's exit. */
void hwt_debug_unload(struct hwt_wheel *wheel, struct module *module)
{
	struct hwt_debug_going going = { .module = module };
	struct hwt_timeout *timeout;
	struct hwt_shard *shard;

	for (shard = wheel->first_shard; shard; shard = shard->next) {
		going.shard = shard;
		spin_lock_irq(&shard->lock);
		hwt_collect_submitted(shard);
		hwt_buckets_for_each(&shard->buckets, hwt_debug_left, &going);
		list_for_each_entry(timeout, &shard->owed, link)
			hwt_debug_left(timeout, &going);
		hwt_debug_executing(shard, module);
		spin_unlock_irq(&shard->lock);
	}
}

/* -- Freed ------------------------------------------------------------------ */

static void *hwt_debug_hint(void *addr)
{
	struct hwt_timeout *timeout = addr;

	if (!hwt_debug_whole(timeout) || !timeout->ops)
		return NULL;
	return (void *)timeout->ops->expire;
}

/* Make debug objects accept unknown timeouts, because hwt does not report initialisations. */
static bool hwt_debug_is_static(void *addr)
{
	return true;
}

static const struct debug_obj_descr hwt_debug_descr;

/* Deactivate a held timeout whose memory is freed, or debug objects would report it for ever. */
static bool hwt_debug_freed(void *addr, enum debug_obj_state state)
{
	struct hwt_timeout *timeout = addr;

	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	/* If hwt ends the hold later, __hwt_debug_track() must not deactivate a second time. */
	WRITE_ONCE(timeout->tracked, 0);
	debug_object_deactivate(timeout, &hwt_debug_descr);
	return true;
}

static const struct debug_obj_descr hwt_debug_descr = {
	.name			= "hwt_timeout",
	.debug_hint		= hwt_debug_hint,
	.is_static_object	= hwt_debug_is_static,
	.fixup_free		= hwt_debug_freed,
};

/* Record, and tell debug objects, whether a timeout is held in its next state, @state. */
void __hwt_debug_track(struct hwt_timeout *timeout, u64 state)
{
	u8 tracked = timeout->tracked;

	if (!tracked == !(state & HWT_F_HELD))
		return;
	WRITE_ONCE(timeout->tracked, tracked ? 0 : HWT_TRACKED);
	/* Leave out timeouts on the stack: they would need debug_object_init_on_stack(). */
	if (!tracked && !object_is_on_stack(timeout)) {
		WRITE_ONCE(timeout->tracked, HWT_TRACKED_OBJECT);
		debug_object_activate(timeout, &hwt_debug_descr);
	} else if (tracked == HWT_TRACKED_OBJECT) {
		debug_object_deactivate(timeout, &hwt_debug_descr);
	}
}
