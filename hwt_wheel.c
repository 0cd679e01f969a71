// SPDX-License-Identifier: GPL-2.0-only
/* The functions of hwt.h for wheels: create, share, stop, destroy, flush and query them */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/numa.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "core/bh.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/debugfs.h"
#include "core/kick.h"
#include "core/params.h"
#include "core/registry.h"
#include "core/stop.h"
#include "core/sync.h"
#include "core/thread.h"
#include "core/wheel.h"

/* -- Memory --------------------------------------------------------------- */

/*
 * Stops and frees a shared wheel if a callback of this wheel has put the last reference. The stop
 * waits until all callbacks have returned, so the callback itself cannot stop the wheel.
 */
static struct workqueue_struct *hwt_wq;

/* Free a wheel and its shards. Their threads have ended, and no CPU wakes a thread any more. */
static void hwt_wheel_free(struct hwt_wheel *wheel)
{
	struct hwt_shard *shard, *next;

	for (shard = wheel->first_shard; shard; shard = next) {
		next = shard->next;
		if (hwt_is_bh(shard))
			hwt_bh_free(shard);
		else
			hwt_threads_free(shard);
		hwt_shard_free(shard);
	}
	kfree(wheel->shard_of_cpu);
	mutex_destroy(&wheel->stop_lock);
	lockdep_unregister_key(&wheel->stop_key);
	kfree(wheel);
}

static void hwt_wheel_dispose(struct hwt_wheel *wheel)
{
	struct hwt_shard *shard;

	/* When this returns, no reader of the wheel's files is left. */
	debugfs_remove(wheel->debugfs);
	hwt_wheel_unregister(wheel);
	for (shard = wheel->first_shard; shard; shard = shard->next)
		hwt_wait_unused(shard);
	/*
	 * Barrier destroy.grace, pairs with arm.rcu in hwt_arm_open(), cancel.rcu in
	 * __hwt_cancel(), clock.rcu in hwt_clock_irq_work() and hwt_debug_move(), and
	 * leave.rcu in hwt_shard_leave(): the CPUs in these functions have ended their kicks and
	 * unlocked the shards, so only the irq_works of kicks may still use a shard.
	 */
	synchronize_rcu();
	for (shard = wheel->first_shard; shard; shard = shard->next)
		irq_work_sync(&shard->irq_work);
	hwt_wheel_free(wheel);
}

static void hwt_wheel_free_work(struct work_struct *work)
{
	struct hwt_wheel *wheel = container_of(work, struct hwt_wheel, free_work);

	hwt_stop(wheel, NULL, NULL);
	hwt_wheel_dispose(wheel);
	module_put(THIS_MODULE);
}

/* End the threads of a wheel that no client knows yet, and free it. */
static void hwt_wheel_abandon(struct hwt_wheel *wheel)
{
	hwt_stop_threads(wheel);
	hwt_wheel_free(wheel);
}

/* Create a wheel that is not registered yet. Return the wheel or ERR_PTR. */
static struct hwt_wheel *hwt_wheel_alloc(const struct hwt_wheel_params *params, gfp_t gfp)
{
	struct hwt_wheel *wheel = kzalloc(sizeof(*wheel), gfp);
	struct hwt_shard *shard, **link;
	unsigned int number;
	int ret = -ENOMEM;
	u8 *map = NULL;

	if (!wheel)
		return ERR_PTR(-ENOMEM);
	wheel->params = *params;
	wheel->params.name = wheel->name;
	atomic64_set(&wheel->pending_left, params->max_pending);
	strscpy(wheel->name, params->name, sizeof(wheel->name));
	mutex_init(&wheel->stop_lock);
	lockdep_register_key(&wheel->stop_key);
	lockdep_set_class(&wheel->stop_lock, &wheel->stop_key);
	INIT_LIST_HEAD(&wheel->shares);
	INIT_WORK(&wheel->free_work, hwt_wheel_free_work);
	if (params->shards > 1) {
		map = hwt_shard_map_create(params->shards, gfp);
		wheel->shard_of_cpu = kcalloc(nr_cpu_ids, sizeof(*wheel->shard_of_cpu), gfp);
		if (!map || !wheel->shard_of_cpu)
			goto err;
	}
	link = &wheel->first_shard;
	for (number = 0; number < params->shards; number++) {
		shard = hwt_shard_create(wheel, params, map, number, gfp);
		ret = PTR_ERR_OR_ZERO(shard);
		if (ret)
			goto err;
		*link = shard;
		link = &shard->next;
	}
	if (params->cpus)
		wheel->params.cpus = wheel->first_shard->affinity;
	kfree(map);
	return wheel;

err:
	kfree(map);
	hwt_wheel_abandon(wheel);
	return ERR_PTR(ret);
}

/* -- Creation and destruction -------------------------------------------- */

/* See hwt_wheel_create(), a macro that passes the caller's module as @owner. */
struct hwt_wheel *__hwt_wheel_create(const struct hwt_wheel_params *user_params,
				     struct module *owner)
{
	struct hwt_wheel_params params;
	struct hwt_wheel *wheel;
	struct hwt_shard *shard;
	int ret;

	might_sleep();
	ret = hwt_params_get(&params, user_params);
	if (ret)
		return ERR_PTR(ret);
	/* If memory is short, fail without the OOM killer and without a warning in the log. */
	wheel = hwt_wheel_alloc(&params, GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (IS_ERR(wheel))
		return wheel;
	/* Each wheel keeps hwt loaded, even after the module that has created it is unloaded. */
	__module_get(THIS_MODULE);
	wheel->users = 1;
	hwt_wheel_register(wheel, __builtin_return_address(0), owner);
	hwt_debugfs_add(wheel);
	if (!params.clock_set)
		return wheel;
	/*
	 * From here on, the first shard's engine may call the client's clock_set, which may use the
	 * whole wheel. If the clock was set before the wheel was registered, hwt_clock_irq_work()
	 * has not kicked the engine: kick it, so that it checks the clock.
	 */
	shard = wheel->first_shard;
	spin_lock_irq(&shard->lock);
	shard->clock_set = params.clock_set;
	shard->clock_set_arg = params.clock_set_arg;
	spin_unlock_irq(&shard->lock);
	hwt_engine_kick(shard, 0);
	return wheel;
}
EXPORT_SYMBOL_GPL(__hwt_wheel_create);

/* See hwt_wheel_get_shared(), a macro that passes the caller's module as @owner. */
struct hwt_wheel *__hwt_wheel_get_shared(const struct hwt_wheel_params *user_params,
					 struct module *owner)
{
	struct hwt_wheel *wheel, *created;
	struct hwt_wheel_params params;
	int ret;

	might_sleep();
	ret = hwt_params_get(&params, user_params);
	if (!ret && (params.max_pending || params.cpus || params.wait || params.clock_set))
		ret = -EINVAL;
	if (ret)
		return ERR_PTR(ret);

	wheel = hwt_shared_get(&params, owner, NULL, NULL);
	if (!wheel) {
		/*
		 * CPU hotplug and module unloading wait for hwt_wheels_lock, so create the wheel
		 * without it. Do not charge the memory to the caller's cgroup: other modules use
		 * the wheel, too.
		 */
		created = hwt_wheel_alloc(&params, GFP_KERNEL);
		if (IS_ERR(created))
			return created;
		wheel = hwt_shared_get(&params, owner, created, __builtin_return_address(0));
		/* Another task may have registered a wheel with these parameters meanwhile. */
		if (wheel == created)
			hwt_debugfs_add(created);
		else
			hwt_wheel_abandon(created);
	}
	if (!IS_ERR(wheel))
		__module_get(THIS_MODULE);
	return wheel;
}
EXPORT_SYMBOL_GPL(__hwt_wheel_get_shared);

/* See hwt_wheel_put(), a macro that passes the caller's module as @owner. */
void __hwt_wheel_put(struct hwt_wheel *wheel, struct module *owner)
{
	int ret;

	might_sleep();
	ret = hwt_shared_put(wheel, owner);
	if (WARN(ret < 0, "module %s puts a wheel to which it has no reference\n",
		 module_name(owner)))
		return;
	if (!ret) {
		module_put(THIS_MODULE);
	} else if (hwt_in_callback(wheel)) {
		/*
		 * No barrier: queue_work() orders all stores of this task before the work, unless
		 * the work is pending. It is not pending: only the last put of a wheel queues it.
		 */
		queue_work(hwt_wq, &wheel->free_work);
	} else {
		hwt_wheel_free_work(&wheel->free_work);
	}
}
EXPORT_SYMBOL_GPL(__hwt_wheel_put);

/**
 * hwt_wheel_stop() - stop a wheel for good, and get back its pending timeouts
 * @wheel: the wheel, not a shared one
 * @fn:    called for each timeout that was pending, exactly once, in no order. If @fn is NULL,
 *         the ->cancelled of each such timeout is called instead.
 * @arg:   the second argument of @fn
 *
 * Process context, may sleep: waits for callbacks that are executing and for two RCU grace periods.
 * From one instant of the call on, calls that schedule fail with -ESHUTDOWN, and no ->expire
 * begins. When this returns, no callback is executing or will be, and no timeout is held. A second
 * stop waits until the first has ended, and hands back no timeout.
 *
 * Return: the number of timeouts handed back; or an error, with nothing changed: -EDEADLK in a
 * callback of the wheel, -EBUSY for a shared wheel.
 */
long hwt_wheel_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg)
{
	if (wheel->is_shared)
		return -EBUSY;
	return hwt_stop(wheel, fn, arg);
}
EXPORT_SYMBOL_GPL(hwt_wheel_stop);

/**
 * hwt_wheel_destroy() - stop a wheel, unless it is stopped already, and free it
 * @wheel: from hwt_wheel_create()
 *
 * Process context, may sleep. Pending timeouts are cancelled, as by hwt_wheel_stop() without @fn.
 * Once this has returned 0, the wheel must not be used, and its timeouts must not be scheduled,
 * cancelled or queried.
 *
 * Return: 0; or an error, with nothing changed: -EDEADLK in a callback of the wheel, -EBUSY for a
 * shared wheel.
 */
int hwt_wheel_destroy(struct hwt_wheel *wheel)
{
	long ret = hwt_wheel_stop(wheel, NULL, NULL);

	if (ret < 0)
		return ret;
	hwt_wheel_dispose(wheel);
	module_put(THIS_MODULE);
	return 0;
}
EXPORT_SYMBOL_GPL(hwt_wheel_destroy);

/* -- Flush and barrier ----------------------------------------------------- */

/* See hwt_wheel_barrier(), a macro that passes the caller's module as @owner. */
int __hwt_wheel_barrier(struct hwt_wheel *wheel, const struct module *owner)
{
	struct hwt_shard *shard;

	if (!hwt_wheel_enter(wheel))
		return -EDEADLK;
	for (shard = wheel->first_shard; shard; shard = shard->next)
		hwt_shard_barrier(shard, owner);
	hwt_wheel_leave(wheel);
	return 0;
}
EXPORT_SYMBOL_GPL(__hwt_wheel_barrier);

/**
 * hwt_wheel_flush() - wait until all due timeouts have fired
 * @wheel: the wheel
 *
 * Process context, sleeps. A timeout counts as due if it was scheduled before the flush, and its
 * tick has begun when the flush begins. (Deadlines are rounded up, so a new timeout with a delay of
 * 0 is not due yet.) When this returns, each due timeout has fired, and its callback has returned,
 * unless the timeout was moved or cancelled during the flush. If two calls schedule one timeout at
 * the same time, the flush is sure to wait for the timeout only if it begins after both calls. On a
 * BH wheel, the flush also waits until the next tick begins.
 *
 * Return: 0; -EDEADLK in a callback of the wheel; -ESHUTDOWN if the wheel is stopped, or is stopped
 * during the call.
 */
int hwt_wheel_flush(struct hwt_wheel *wheel)
{
	struct hwt_shard *shard;
	int ret = 0;

	if (!hwt_wheel_enter(wheel))
		return -EDEADLK;
	for (shard = wheel->first_shard; shard; shard = shard->next)
		ret = hwt_shard_flush(shard) ?: ret;
	hwt_wheel_leave(wheel);
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_wheel_flush);

/* -- Queries ----------------------------------------------------------------- */

/**
 * hwt_wheel_now() - read the wheel's clock
 * @wheel: the wheel
 *
 * Any context. The result plus a delay is an absolute deadline.
 *
 * Return: the time on the wheel's clock, ns.
 */
u64 hwt_wheel_now(const struct hwt_wheel *wheel)
{
	return hwt_clock_now(wheel->first_shard);
}
EXPORT_SYMBOL_GPL(hwt_wheel_now);

/**
 * hwt_wheel_get_params() - get the parameters of a wheel, after rounding
 * @wheel:  the wheel
 * @params: filled in; the name and the CPUs are valid as long as the wheel exists
 *
 * Any context.
 */
void hwt_wheel_get_params(const struct hwt_wheel *wheel,
			  struct hwt_wheel_params *params)
{
	*params = wheel->params;
}
EXPORT_SYMBOL_GPL(hwt_wheel_get_params);

/**
 * hwt_wheel_get_stats() - get the statistics of a wheel
 * @wheel: the wheel
 * @stats: filled in
 *
 * Any context. The counters are machine words, which wrap round. On 32-bit machines, the member
 * slowest_ns of @stats may consist of halves of two different values.
 */
void hwt_wheel_get_stats(const struct hwt_wheel *wheel, struct hwt_wheel_stats *stats)
{
	const struct hwt_shard *shard;

	*stats = (struct hwt_wheel_stats) { };
	for (shard = wheel->first_shard; shard; shard = shard->next)
		hwt_shard_add_stats(shard, stats);
}
EXPORT_SYMBOL_GPL(hwt_wheel_get_stats);

/**
 * hwt_wheel_pending() - count the timeouts that are pending
 * @wheel: the wheel
 *
 * Any context. Adds the counters of all CPUs and shards.
 *
 * Return: the number, exact if no timeout is scheduled or cancelled, or fires, during the call.
 */
u64 hwt_wheel_pending(const struct hwt_wheel *wheel)
{
	struct hwt_wheel_stats stats;

	hwt_wheel_get_stats(wheel, &stats);
	return stats.pending;
}
EXPORT_SYMBOL_GPL(hwt_wheel_pending);

/* -- The system wheel ------------------------------------------------------ */

struct hwt_wheel *hwt_system_wheel;
EXPORT_SYMBOL_GPL(hwt_system_wheel);
struct hwt_wheel *hwt_system_bh_wheel;
EXPORT_SYMBOL_GPL(hwt_system_bh_wheel);

static struct hwt_wheel * __init hwt_system_wheel_get(const struct hwt_wheel_params *params)
{
	struct hwt_wheel *wheel = hwt_wheel_get_shared(params);

	/* The module's exit destroys this wheel, so the wheel must not keep the module loaded. */
	if (!IS_ERR(wheel))
		module_put(THIS_MODULE);
	return wheel;
}

static void hwt_system_wheel_put(struct hwt_wheel *wheel)
{
	hwt_stop(wheel, NULL, NULL);
	hwt_wheel_dispose(wheel);
}

/* -- The module -------------------------------------------------------------- */

/* Create the workqueue and the system wheels. */
int __init hwt_wheels_init(void)
{
	const struct hwt_wheel_params params = { .name = "hwt_system" };
	const struct hwt_wheel_params params_bh = {
		.name = "hwt_system_bh", .flags = HWT_BH, .tick_ns = TICK_NSEC,
	};
	int ret;

	hwt_shards_default = hwt_shards_choose(hwt_shards);
	/* The rescuer thread has this name. "hwt" would make it look like a thread of a wheel. */
	hwt_wq = alloc_workqueue("wq_hwt", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!hwt_wq)
		return -ENOMEM;
	hwt_system_wheel = hwt_system_wheel_get(&params);
	ret = PTR_ERR_OR_ZERO(hwt_system_wheel);
	if (ret)
		goto err_wq;
	hwt_system_bh_wheel = hwt_system_wheel_get(&params_bh);
	ret = PTR_ERR_OR_ZERO(hwt_system_bh_wheel);
	if (!ret)
		return 0;
	hwt_system_wheel_put(hwt_system_wheel);
err_wq:
	destroy_workqueue(hwt_wq);
	return ret;
}

/* No client uses the system wheels any more, and any other wheel would keep hwt loaded. */
void hwt_wheels_exit(void)
{
	hwt_system_wheel_put(hwt_system_bh_wheel);
	hwt_system_wheel_put(hwt_system_wheel);
	destroy_workqueue(hwt_wq);
}
