// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of clients, for the module parameter "debug". They cost time. A client is reported if it
 *
 *   - uses a timeout that was never initialised, or was copied: the call is refused;
 *   - initialises a timeout that is held: the timeout is left as it is;
 *   - moves a timeout to another wheel while it is held or its ->release is executing;
 *   - is a module that is unloaded, and leaves a timeout that would call into it, a handle
 *     (core/recipes.c) included: the timeout is withdrawn;
 *   - frees a timeout that is held: the timeout is withdrawn. Only where the kernel's debug objects
 *     check freed memory (CONFIG_DEBUG_OBJECTS_FREE).
 *
 * The engine does not know the timeouts on submission lists, so with "debug" it is woken for each
 * submission. For debug objects, a timeout is active from its collection, not its submission, to
 * the end of its hold. A submission may be in NMI, which must not take the locks of debug objects,
 * and only under the shard's lock are the changes of a timeout reported to them in order.
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

#include "core/callback.h"
#include "core/debug.h"
#include "core/engine.h"
#include "core/registry.h"
#include "core/submit.h"
#include "core/sync.h"

DEFINE_STATIC_KEY_FALSE(hwt_debug);

/* Report with a stack trace. Any context. */
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

/* Return the value of @check in a timeout that was initialised at this address. */
u32 hwt_debug_mark(const struct hwt_timeout *timeout)
{
	return (u32)(unsigned long)timeout ^ __HWT_CHECK_PLACE;
}

/* Was a timeout initialised and not overwritten since? Only then are its other members valid. */
static bool hwt_debug_whole(const struct hwt_timeout *timeout)
{
	return timeout->check == hwt_debug_mark(timeout) ||
	       timeout->check == __HWT_CHECK_STATIC;
}

/* hwt_debug_used() with "debug". Any context. */
bool __hwt_debug_used(const struct hwt_timeout *timeout)
{
	if (hwt_debug_whole(timeout))
		return true;
	hwt_debug_report("timeout %p is used and was never initialised, or was copied\n",
			 timeout);
	return false;
}

/*
 * Values of @tracked while the engine knows that the timeout is held; HWT_TRACKED_OBJECT: debug
 * objects know too. Otherwise 0. The state alone would not do: reused memory may hold any state.
 */
#define HWT_TRACKED		0x68
#define HWT_TRACKED_OBJECT	0x69

/* May a timeout be initialised? Any context. */
bool __hwt_debug_init(const struct hwt_timeout *timeout)
{
	u8 tracked = READ_ONCE(timeout->tracked);

	/* Uninitialised memory may hold any values, but hardly all of these. */
	if (timeout->check != hwt_debug_mark(timeout) ||
	    (tracked != HWT_TRACKED && tracked != HWT_TRACKED_OBJECT) || !hwt_held(timeout))
		return true;
	hwt_debug_report("timeout %p is initialised while it is held: %ps\n", timeout,
			 hwt_client_fn(timeout, timeout->ops->expire));
	return false;
}

/* -- Moves to another wheel ------------------------------------------------- */

static bool hwt_debug_releasing(struct hwt_shard *shard, const struct hwt_timeout *timeout)
{
	struct hwt_runner *runner;
	bool found = false;

	/* Barrier clock.rcu, pairs with destroy.grace in hwt_wheel_dispose(): a shard that is found
	 * stays until its lock was released. The timeout's wheel may have been destroyed.
	 */
	rcu_read_lock();
	if (hwt_shard_exists(shard)) {
		spin_lock(&shard->lock);
		list_for_each_entry(runner, &shard->runners, entry)
			found |= runner->releasing && runner->current_timeout == timeout &&
				 runner->fn == timeout->ops->release;
		spin_unlock(&shard->lock);
	}
	rcu_read_unlock();
	return found;
}

/* Report a timeout that is moved too early. Any context; releases are seen in task context only. */
void hwt_debug_move(const struct hwt_timeout *timeout)
{
	if (!hwt_debug_used(timeout) || !timeout->shard)
		return;
	if (hwt_held(timeout))
		hwt_debug_report("timeout %p is moved to another wheel while it is held: %ps\n",
				 timeout, hwt_client_fn(timeout, timeout->ops->expire));
	else if (preemptible() && hwt_debug_releasing(timeout->shard, timeout))
		hwt_debug_report("timeout %p is moved to another wheel while its %ps executes\n",
				 timeout, timeout->ops->release);
}

/* -- Withdrawal of timeouts ------------------------------------------------- */

/*
 * Remove a timeout from the lists and shut it down, without calling its client. If a callback is
 * executing, or the timeout stays on its submission list, the end of the hold does call the client.
 */
static void hwt_debug_withdraw(struct hwt_shard *shard, struct hwt_timeout *timeout)
	__must_hold(&shard->lock)
{
	u64 old = hwt_timeout_state(timeout), new;

	/* No barrier: under the lock, and the client does not use the timeout any more. */
	do {
		new = hwt_state_withdraw(old, (old & HWT_F_SUBMITTED) && !timeout->owed);
		hwt_debug_track(timeout, new);
	} while (!hwt_state_change(timeout, &old, new));
	if (old & HWT_F_PENDING)
		hwt_cancel_account(shard, timeout, old);
	if (timeout->owed)
		hwt_owed_remove(timeout);
	else if (hwt_linked(timeout))
		hwt_buckets_remove(&shard->buckets, timeout);
	timeout->past = false;
	hwt_wake_timeout(shard, timeout);
}

struct hwt_debug_going {
	struct hwt_shard	*shard;
	struct module		*module;
};

/* Is a function of a timeout that is held in the module, or the client's function behind it? */
static bool hwt_debug_calls(const struct hwt_timeout *timeout, const void *fn,
			    const struct module *module)
{
	return within_module((unsigned long)hwt_client_fn(timeout, fn), module);
}

/* Does a timeout that is held need the memory or a function of the module? */
static bool hwt_debug_needs(const struct hwt_timeout *timeout, const struct module *module)
{
	const struct hwt_timeout_ops *ops = timeout->ops;

	return within_module((unsigned long)timeout, module) ||
	       within_module((unsigned long)ops, module) ||
	       hwt_debug_calls(timeout, ops->expire, module) ||
	       hwt_debug_calls(timeout, ops->cancelled, module) ||
	       hwt_debug_calls(timeout, ops->release, module);
}

static void hwt_debug_left(struct hwt_timeout *timeout, void *arg)
{
	struct hwt_debug_going *going = arg;

	if (!hwt_debug_needs(timeout, going->module))
		return;
	hwt_debug_report("module %s is unloaded and leaves timeout %p on wheel %s: %ps\n",
			 going->module->name, timeout, going->shard->wheel->name,
			 hwt_client_fn(timeout, timeout->ops->expire));
	hwt_debug_withdraw(going->shard, timeout);
	/* The memory of a handle is hwt's own: put the reference of the hold that has ended. */
	if (timeout->ops == &hwt_handle_ops && !hwt_held(timeout))
		timeout->ops->release(timeout);
}

/* Is a function of the module executing on the shard? Report it unless @said. */
static bool hwt_debug_executing(const struct hwt_debug_going *going, bool said)
	__must_hold(&going->shard->lock)
{
	struct hwt_runner *runner;

	list_for_each_entry(runner, &going->shard->runners, entry) {
		if (!runner->current_timeout ||
		    !hwt_debug_calls(runner->current_timeout, runner->fn, going->module))
			continue;
		if (!said)
			hwt_debug_report("module %s goes while its %ps is executing on wheel %s\n",
					 going->module->name,
					 hwt_client_fn(runner->current_timeout, runner->fn),
					 going->shard->wheel->name);
		return true;
	}
	return false;
}

/*
 * Withdraw the timeouts that a module has left on a shard. The module's exit has returned. Walks
 * all timeouts under the lock.
 *
 * Return true if a function of the module is executing on the shard, and report it unless @said. It
 * may schedule again, so the caller must call this again later.
 */
bool hwt_debug_unload(struct hwt_shard *shard, struct module *module, bool said)
{
	struct hwt_debug_going going = { .shard = shard, .module = module };
	struct hwt_timeout *timeout, *next;
	bool executing;

	spin_lock(&shard->lock);
	hwt_collect_submitted(shard);
	hwt_buckets_for_each(&shard->buckets, hwt_debug_left, &going);
	list_for_each_entry_safe(timeout, next, &shard->owed, link)
		hwt_debug_left(timeout, &going);
	executing = hwt_debug_executing(&going, said);
	spin_unlock(&shard->lock);
	return executing;
}

/* -- Freed ------------------------------------------------------------------ */

#ifdef CONFIG_DEBUG_OBJECTS
static void *hwt_debug_hint(void *addr)
{
	struct hwt_timeout *timeout = addr;

	if (!hwt_debug_whole(timeout) || !timeout->ops)
		return NULL;
	return (void *)hwt_client_fn(timeout, timeout->ops->expire);
}

/* Accept a timeout whose initialisation debug objects did not see: hwt_debug_used() checks it. */
static bool hwt_debug_is_static(void *addr)
{
	return true;
}

static const struct debug_obj_descr hwt_debug_descr;

/*
 * In atomic context, only try the lock, and leave a timeout on its submission list. If the lock is
 * taken, the timeout stays on the shard.
 */
static void hwt_debug_withdraw_freed(struct hwt_timeout *timeout)
{
	struct hwt_shard *shard = timeout->shard;

	if (preemptible()) {
		spin_lock(&shard->lock);
		hwt_collect_submitted(shard);
		hwt_debug_withdraw(shard, timeout);
		spin_unlock(&shard->lock);
	} else if (spin_trylock(&shard->lock)) {
		hwt_debug_withdraw(shard, timeout);
		spin_unlock(&shard->lock);
	}
	WRITE_ONCE(timeout->tracked, 0);
}

/*
 * Withdraw a timeout whose freeing was reported, to keep the shard intact. Not if the memory was
 * overwritten before it was freed: then the shard is unknown.
 */
static bool hwt_debug_freed(void *addr, enum debug_obj_state state)
{
	struct hwt_timeout *timeout = addr;

	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	if (hwt_debug_whole(timeout))
		hwt_debug_withdraw_freed(timeout);
	/* Even if RUNNING or SUBMITTED: the kernel repeats this while the object is active. */
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
	/* Debug objects require an initialisation of their own for an object on the stack. */
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
static void hwt_debug_activate(struct hwt_timeout *timeout) { }
static void hwt_debug_deactivate(struct hwt_timeout *timeout) { }
#endif

/* hwt_debug_track() with "debug". Under the shard's lock. */
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
