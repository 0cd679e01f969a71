// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of clients, for the module parameter "debug". They cost time. A client is reported if it
 *
 *   - uses a timeout that was never initialised, or was copied: the call is refused;
 *   - initialises a timeout that is held: the timeout is left as it is;
 *   - moves a timeout to another wheel while it is held or its ->release is executing;
 *   - is a module that is unloaded, and leaves a timeout that would call into it, a handle
 *     (core/recipes.c) included;
 *   - frees a timeout that is held. Only where the kernel's debug objects check freed memory
 *     (CONFIG_DEBUG_OBJECTS_FREE).
 *
 * The last two are not repaired: what the client has left, or has freed, is used after the report.
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

	/*
	 * Barrier clock.rcu, pairs with destroy.grace in hwt_wheel_dispose(): a shard that is found
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

/* -- Unloaded modules ------------------------------------------------------- */

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
}

/* Report the functions of the module that are executing on the shard. */
static void hwt_debug_executing(const struct hwt_debug_going *going)
	__must_hold(&going->shard->lock)
{
	struct hwt_runner *runner;

	list_for_each_entry(runner, &going->shard->runners, entry)
		if (runner->current_timeout &&
		    hwt_debug_calls(runner->current_timeout, runner->fn, going->module))
			hwt_debug_report("module %s goes while its %ps is executing on wheel %s\n",
					 going->module->name,
					 hwt_client_fn(runner->current_timeout, runner->fn),
					 going->shard->wheel->name);
}

/*
 * Report the timeouts that a module has left on a shard, and its functions that are executing. The
 * module's exit has returned. Walks all timeouts under the lock.
 */
void hwt_debug_unload(struct hwt_shard *shard, struct module *module)
{
	struct hwt_debug_going going = { .shard = shard, .module = module };
	struct hwt_timeout *timeout;

	spin_lock(&shard->lock);
	hwt_collect_submitted(shard);
	hwt_buckets_for_each(&shard->buckets, hwt_debug_left, &going);
	list_for_each_entry(timeout, &shard->owed, link)
		hwt_debug_left(timeout, &going);
	hwt_debug_executing(&going);
	spin_unlock(&shard->lock);
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

/* Called after the report. The kernel repeats that until the object is no longer active. */
static bool hwt_debug_freed(void *addr, enum debug_obj_state state)
{
	struct hwt_timeout *timeout = addr;

	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	/* The end of the hold, if the memory lives so long, does not deactivate it again. */
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
