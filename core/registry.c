// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels: their parameters, creation and destruction, the registry of live wheels, and system
 * events that concern all wheels
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/pvclock_gtod.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "core/callback.h"
#include "core/client.h"
#include "core/clock.h"
#include "core/debug.h"
#include "core/debugfs.h"
#include "core/registry.h"
#include "core/shard.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"
#include "core/trace.h"

/* Wheels are meant to be few and shared. Netty's HashedWheelTimer warns at the same number. */
#define HWT_WHEELS_MANY		64

/* -- Parameters ---------------------------------------------------------- */

/* Is a parameter out of range? If so, log it; rate-limited, since user programs can cause this. */
static bool hwt_param_outside(const struct hwt_wheel_params *params, const char *what, u64 value,
			      u64 min, u64 max)
{
	if (value >= min && value <= max)
		return false;
	pr_err_ratelimited("%s: %s=%llu is out of range: %llu to %llu\n", params->name, what,
			   value, min, max);
	return true;
}

static int hwt_threads_params_check(const struct hwt_wheel_params *params)
{
	if (hwt_param_outside(params, "workers", params->workers, 0, HWT_WORKERS_MAX) ||
	    hwt_param_outside(params, "shards", params->shards, 1, HWT_SHARDS_MAX) ||
	    hwt_param_outside(params, "priority", params->priority, 0, HWT_PRIORITY_FIFO) ||
	    hwt_param_outside(params, "wait", params->wait, 0, HWT_WAIT_BUSY))
		return -EINVAL;
	if (params->cpus && !cpumask_intersects(params->cpus, cpu_online_mask)) {
		pr_err_ratelimited("%s: cpus=%*pbl are not online\n", params->name,
				   cpumask_pr_args(params->cpus));
		return -EINVAL;
	}
	if (params->wait == HWT_WAIT_BUSY && (!params->cpus || params->shards > 1 ||
					      params->priority != HWT_PRIORITY_NORMAL)) {
		pr_err_ratelimited("%s: busy waiting requires cpus, one shard and normal priority\n",
				   params->name);
		return -EINVAL;
	}
	return 0;
}

/* Copy a client's parameters, which may be NULL, fill in the defaults, and check them. */
static int hwt_wheel_params_get(struct hwt_wheel_params *params,
				const struct hwt_wheel_params *from)
{
	u64 min_tick_ns = hwt_min_tick_us * (u64)NSEC_PER_USEC;

	*params = from ? *from : (struct hwt_wheel_params) { };
	params->name = params->name ?: "hwt";
	params->tick_ns = params->tick_ns ?: hwt_tick_us * (u64)NSEC_PER_USEC;
	params->ticks_per_wheel = params->ticks_per_wheel ?: hwt_ticks_per_wheel;
	params->levels = params->levels ?: hwt_levels;
	/* A client that chooses CPUs gets several engines on them only by request. */
	params->shards = params->shards ?: params->cpus ? 1 : hwt_shards_default;

	if (hwt_param_outside(params, "ticks_per_wheel", params->ticks_per_wheel, 2,
			      HWT_TICKS_MAX) ||
	    hwt_param_outside(params, "levels", params->levels, 1, HWT_LEVELS_MAX) ||
	    hwt_param_outside(params, "clock", params->clock, 0, HWT_CLOCK_REALTIME) ||
	    hwt_param_outside(params, "max_pending", params->max_pending, 0, S64_MAX) ||
	    hwt_threads_params_check(params))
		return -EINVAL;
	if (params->flags & ~(HWT_COARSE_CLOCK | HWT_FREEZABLE)) {
		pr_err_ratelimited("%s: flags=%#x are unknown\n", params->name, params->flags);
		return -EINVAL;
	}
	if (params->clock_set && params->clock != HWT_CLOCK_REALTIME) {
		pr_err_ratelimited("%s: clock_set is for HWT_CLOCK_REALTIME only\n",
				   params->name);
		return -EINVAL;
	}
	params->ticks_per_wheel = roundup_pow_of_two(params->ticks_per_wheel);
	if (params->tick_ns > div_u64(S64_MAX, params->ticks_per_wheel)) {
		pr_err_ratelimited("%s: tick of %llu ns times %u buckets overflows\n",
				   params->name, params->tick_ns, params->ticks_per_wheel);
		return -EINVAL;
	}
	if (params->tick_ns < min_tick_ns) {
		pr_warn_once("%s: tick of %llu ns raised to min_tick_us, %u us\n",
			     params->name, params->tick_ns, hwt_min_tick_us);
		params->tick_ns = min_tick_ns;
	}
	return 0;
}

/* -- Creation and destruction -------------------------------------------- */

/* All shards of all live wheels; also read under RCU. The lock also protects the wheels' @users. */
static LIST_HEAD(hwt_wheels);
static unsigned int hwt_wheels_count;
static u64 hwt_wheels_created;
static DEFINE_MUTEX(hwt_wheels_lock);

/*
 * Frees shared wheels whose last user left in one of their own callbacks. It has a rescuer, since a
 * task that frees memory may wait for it.
 */
static struct workqueue_struct *hwt_wq;

/**
 * struct hwt_share - the references of a module to a shared wheel
 * @entry:  node in the wheel's list
 * @module: the module, which may be unloaded: compared only. NULL: built-in code
 * @refs:   how many references, not 0
 *
 * Protected by hwt_wheels_lock.
 */
struct hwt_share {
	struct list_head	entry;
	const struct module	*module;
	unsigned int		refs;
};

static void hwt_shard_free(struct hwt_wheel *wheel)
{
	struct hwt_share *share, *next;

	list_for_each_entry_safe(share, next, &wheel->shares, entry)
		kfree(share);
	kfree(wheel->shard_of_cpu);
	free_percpu(wheel->submit);
	kfree(wheel->active);
	free_cpumask_var(wheel->affinity);
	hwt_buckets_destroy(&wheel->buckets);
	mutex_destroy(&wheel->stop_lock);
	lockdep_unregister_key(&wheel->stop_key);
#ifdef CONFIG_LOCKDEP
	lockdep_unregister_key(&wheel->lockdep_key);
#endif
	kfree(wheel);
}

/* Free all shards of a wheel. Their threads have ended, and no context wakes them any more. */
static void hwt_wheel_free(struct hwt_wheel *wheel)
{
	struct hwt_wheel *shard;

	while (wheel) {
		shard = wheel;
		wheel = shard->next_shard;
		hwt_threads_free(shard);
		hwt_shard_free(shard);
	}
}

static void hwt_wheel_dispose(struct hwt_wheel *wheel)
{
	struct hwt_wheel *shard;

	hwt_debugfs_remove(wheel);
	mutex_lock(&hwt_wheels_lock);
	/* Unlist after the stop: hwt_module_event() must find each wheel that may still report a
	 * module's functions. No barrier: destroy.grace waits for readers.
	 */
	for (shard = wheel; shard; shard = shard->next_shard)
		list_del_rcu(&shard->entry);
	hwt_wheels_count -= wheel->owner != THIS_MODULE;
	mutex_unlock(&hwt_wheels_lock);
	for (shard = wheel; shard; shard = shard->next_shard)
		hwt_wait_callers(shard);
	/* Barrier destroy.grace, pairs with arm.rcu in hwt_arm_open(), cancel.rcu in
	 * __hwt_cancel(), clock.rcu in hwt_clock_irq_work() and hwt_debug_releasing(), and
	 * leave.rcu in hwt_unlock_last(): a CPU that still kicks the engine or releases the lock
	 * has finished before the wheel is freed.
	 */
	synchronize_rcu();
	for (shard = wheel; shard; shard = shard->next_shard)
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

/* The arguments of hwt_shard_create(). */
struct hwt_shard_args {
	const struct hwt_wheel_params	*params;
	struct hwt_wheel		*first;	/* the first shard; NULL: this one is the first */
	const u8			*map;	/* of CPUs to shards; NULL: there is one shard */
	unsigned int			shard;	/* its number */
	int				node;	/* of its memory; NUMA_NO_NODE: any */
	gfp_t				gfp;
};

static struct hwt_wheel *hwt_shard_create(const struct hwt_shard_args *args)
{
	const struct hwt_wheel_params *params = args->params;
	struct hwt_wheel *wheel, *first = args->first;
	gfp_t gfp = args->gfp;
	unsigned int cpu;
	int ret = -ENOMEM;

	wheel = kzalloc_node(sizeof(*wheel), gfp, args->node);
	if (!wheel)
		return ERR_PTR(-ENOMEM);

	hwt_tick_setup(wheel, params->tick_ns);
	wheel->clock = params->clock;
	wheel->flags = params->flags;
	wheel->max_pending = params->max_pending;
	wheel->workers = params->workers;
	wheel->priority = params->priority;
	wheel->wait = params->wait;
	wheel->shard = args->shard;
	wheel->nr_shards = params->shards;
	wheel->node = args->node;
	wheel->first_shard = first ?: wheel;
	/* Only the engine of the first shard calls the client. */
	wheel->clock_set = first ? NULL : params->clock_set;
	wheel->clock_set_arg = params->clock_set_arg;
	wheel->clock_offset = ktime_to_ns(ktime_mono_to_real(0));
	ratelimit_state_init(&wheel->behind_limit, 10 * HZ, 1);
	/* Do not log the number of suppressed messages. */
	ratelimit_set_flags(&wheel->behind_limit, RATELIMIT_MSG_ON_RELEASE);
	hwt_timeout_init(&wheel->clock_timeout, wheel, NULL);
	strscpy(wheel->name, params->name, sizeof(wheel->name));
	/* The engine sleeps until the first schedule. */
	atomic64_set(&wheel->wake_tick, HWT_TICK_NEVER);
	wheel->irq_work = IRQ_WORK_INIT_HARD(hwt_wheel_irq_work);
	spin_lock_init(&wheel->lock);
	mutex_init(&wheel->stop_lock);
	lockdep_register_key(&wheel->stop_key);
	lockdep_set_class(&wheel->stop_lock, &wheel->stop_key);
#ifdef CONFIG_LOCKDEP
	lockdep_register_key(&wheel->lockdep_key);
	lockdep_init_map(&wheel->lockdep_map, wheel->name, &wheel->lockdep_key, 0);
#endif
	INIT_LIST_HEAD(&wheel->intake);
	INIT_LIST_HEAD(&wheel->ended);
	INIT_LIST_HEAD(&wheel->idle);
	INIT_LIST_HEAD(&wheel->runners);
	INIT_LIST_HEAD(&wheel->shares);
	init_completion(&wheel->ended_threads);
	INIT_WORK(&wheel->free_work, hwt_wheel_free_work);

	wheel->submit = alloc_percpu_gfp(struct hwt_submit, gfp | __GFP_ZERO);
	/* In cache lines of its own. */
	wheel->active = kzalloc_node(round_up(nr_cpu_ids, SMP_CACHE_BYTES), gfp, args->node);
	if (args->map && !first)
		wheel->shard_of_cpu = kcalloc(nr_cpu_ids, sizeof(wheel), gfp);
	if (!wheel->submit || !wheel->active ||
	    (args->map && !first && !wheel->shard_of_cpu) ||
	    !zalloc_cpumask_var(&wheel->affinity, gfp))
		goto err_free;
	for_each_possible_cpu(cpu)
		INIT_LIST_HEAD(&per_cpu_ptr(wheel->submit, cpu)->intake);
	hwt_shard_place(wheel, args->map, params->cpus);
	ret = hwt_buckets_init(&wheel->buckets, ilog2(params->ticks_per_wheel),
			       params->levels,
			       hwt_ns_to_tick(wheel, hwt_clock_now(wheel)), gfp, args->node);
	if (ret)
		goto err_free;
	ret = hwt_threads_start(wheel, gfp);
	if (ret)
		goto err_free;
	return wheel;

err_free:
	hwt_shard_free(wheel);
	return ERR_PTR(ret);
}

/* End the threads of a wheel that no client knows yet, and free it. @wheel: may be NULL. */
static void hwt_wheel_abandon(struct hwt_wheel *wheel)
{
	hwt_stop_threads(wheel);
	hwt_wheel_free(wheel);
}

/*
 * Create a wheel. The memory of each shard is on the node of its CPUs, but nothing runs on these
 * CPUs for it: a task with a higher priority may never leave them.
 */
static struct hwt_wheel *hwt_wheel_alloc(const struct hwt_wheel_params *params, gfp_t gfp)
{
	struct hwt_shard_args args = { .params = params, .node = NUMA_NO_NODE, .gfp = gfp };
	struct hwt_wheel *shard, **link = &args.first;
	u8 *map;

	if (params->shards == 1)
		return hwt_shard_create(&args);
	map = hwt_shard_map_create(params->shards, gfp);
	if (!map)
		return ERR_PTR(-ENOMEM);
	args.map = map;
	for (; args.shard < params->shards; args.shard++) {
		args.node = hwt_shard_node(map, args.shard);
		shard = hwt_shard_create(&args);
		if (IS_ERR(shard))
			break;
		*link = shard;
		link = &shard->next_shard;
	}
	kfree(map);
	if (!IS_ERR(shard))
		return args.first;
	hwt_wheel_abandon(args.first);
	return shard;
}

static void hwt_wheel_register(struct hwt_wheel *wheel, const void *creator,
			       struct module *owner)
{
	struct hwt_wheel *shard;

	lockdep_assert_held(&hwt_wheels_lock);
	/* Store a name: an address in a module's init is invalid once the init has returned. */
	snprintf(wheel->creator, sizeof(wheel->creator), "%ps", creator);
	wheel->owner = owner;
	strscpy(wheel->owner_name, module_name(owner), sizeof(wheel->owner_name));
	/* Barrier clock.add, pairs with clock.list in hwt_clock_irq_work(): a wheel that is found
	 * in the list is complete.
	 */
	for (shard = wheel; shard; shard = shard->next_shard)
		list_add_tail_rcu(&shard->entry, &hwt_wheels);
	wheel->number = ++hwt_wheels_created;
	trace_hwt_wheel_create(wheel);
	/* Do not count wheels of this module, which are not of a kernel client. */
	hwt_wheels_count += owner != THIS_MODULE;
	if (hwt_wheels_count > HWT_WHEELS_MANY && owner != THIS_MODULE)
		pr_warn_once("more than %u wheels are alive, the latest created by %s [%s]: each has a thread, wheels are meant to be shared\n",
			     HWT_WHEELS_MANY, wheel->creator, wheel->owner_name);
}

/* The function behind the macro hwt_wheel_create(), which adds the module. */
struct hwt_wheel *__hwt_wheel_create(const struct hwt_wheel_params *user_params,
				     struct module *owner)
{
	struct hwt_wheel_params params;
	struct hwt_wheel *wheel;
	int ret;

	might_sleep();
	ret = hwt_wheel_params_get(&params, user_params);
	if (ret)
		return ERR_PTR(ret);
	/* At the limit of a memory cgroup, fail, without the OOM killer and without a report. */
	wheel = hwt_wheel_alloc(&params, GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (IS_ERR(wheel))
		return wheel;
	/* Each wheel keeps this module loaded, also one that its unloaded creator has left. */
	__module_get(THIS_MODULE);
	wheel->users = 1;
	mutex_lock(&hwt_wheels_lock);
	hwt_wheel_register(wheel, __builtin_return_address(0), owner);
	mutex_unlock(&hwt_wheels_lock);
	hwt_debugfs_add(wheel);
	return wheel;
}
EXPORT_SYMBOL_GPL(__hwt_wheel_create);

/* -- Shared wheels --------------------------------------------------------- */

static struct hwt_share *hwt_share_find(struct hwt_wheel *wheel, const struct module *module)
{
	struct hwt_share *share;

	lockdep_assert_held(&hwt_wheels_lock);
	list_for_each_entry(share, &wheel->shares, entry)
		if (share->module == module)
			return share;
	return NULL;
}

/*
 * Count another reference of a module. @new: memory for its first one, or NULL; NULL once it is
 * used. Return false if that memory is needed.
 */
static bool hwt_share_get(struct hwt_wheel *wheel, const struct module *module,
			  struct hwt_share **new)
{
	struct hwt_share *share = hwt_share_find(wheel, module);

	if (!share) {
		if (!*new)
			return false;
		share = *new;
		*new = NULL;
		share->module = module;
		list_add(&share->entry, &wheel->shares);
	}
	share->refs++;
	WRITE_ONCE(wheel->users, wheel->users + 1);
	return true;
}

/* Count a reference of a module less. Return false if it has none, or the wheel does not exist. */
static bool hwt_share_put(struct hwt_wheel *wheel, const struct module *module)
{
	struct hwt_wheel *listed;
	struct hwt_share *share = NULL;

	lockdep_assert_held(&hwt_wheels_lock);
	list_for_each_entry(listed, &hwt_wheels, entry)
		if (listed == wheel)
			share = hwt_share_find(wheel, module);
	/* The last reference to hwt_system_wheel is this module's, which may be built in, too. */
	if (!share || (wheel == hwt_system_wheel && wheel->users == 1))
		return false;
	if (!--share->refs) {
		list_del(&share->entry);
		kfree(share);
	}
	WRITE_ONCE(wheel->users, wheel->users - 1);
	return true;
}

/* Return a shared wheel with these parameters, or NULL. */
static struct hwt_wheel *hwt_shared_find(const struct hwt_wheel_params *params)
{
	struct hwt_wheel *wheel;

	lockdep_assert_held(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry)
		if (wheel->is_shared && wheel->users && wheel->tick_ns == params->tick_ns &&
		    hwt_revolution(wheel) == params->ticks_per_wheel &&
		    wheel->buckets.levels == params->levels &&
		    wheel->clock == params->clock &&
		    wheel->flags == params->flags &&
		    wheel->workers == params->workers &&
		    wheel->nr_shards == params->shards &&
		    wheel->priority == params->priority)
			return wheel;
	return NULL;
}

/*
 * Get a reference to the shared wheel of these parameters. @share: as for hwt_share_get(). Return
 * NULL if there is none, or if memory is needed.
 */
static struct hwt_wheel *hwt_shared_get(const struct hwt_wheel_params *params,
					const struct module *owner, struct hwt_share **share)
{
	struct hwt_wheel *wheel;

	mutex_lock(&hwt_wheels_lock);
	wheel = hwt_shared_find(params);
	if (wheel && !hwt_share_get(wheel, owner, share))
		wheel = NULL;
	mutex_unlock(&hwt_wheels_lock);
	return wheel;
}

/*
 * Create a shared wheel, without hwt_wheels_lock, for which CPU hotplug and every unload of a
 * module wait. If another task creates the same wheel meanwhile, return that one.
 */
static struct hwt_wheel *hwt_shared_create(const struct hwt_wheel_params *params,
					   const void *creator, struct module *owner,
					   struct hwt_share **share)
{
	/* Do not charge the memory to the caller that happens to come first. */
	struct hwt_wheel *wheel, *created = hwt_wheel_alloc(params, GFP_KERNEL);

	if (IS_ERR(created))
		return created;
	mutex_lock(&hwt_wheels_lock);
	wheel = hwt_shared_find(params);
	if (!wheel) {
		created->is_shared = true;
		hwt_wheel_register(created, creator, owner);
	}
	hwt_share_get(wheel ?: created, owner, share);
	mutex_unlock(&hwt_wheels_lock);
	if (!wheel) {
		hwt_debugfs_add(created);
		return created;
	}
	hwt_wheel_abandon(created);
	return wheel;
}

/* The function behind the macro hwt_wheel_get_shared(), which adds the module. */
struct hwt_wheel *__hwt_wheel_get_shared(const struct hwt_wheel_params *user_params,
					 struct module *owner)
{
	struct hwt_wheel_params params;
	struct hwt_share *share = NULL;
	struct hwt_wheel *wheel;
	int ret;

	might_sleep();
	ret = hwt_wheel_params_get(&params, user_params);
	if (!ret && (params.max_pending || params.cpus || params.wait || params.clock_set))
		ret = -EINVAL;
	if (ret)
		return ERR_PTR(ret);

	wheel = hwt_shared_get(&params, owner, &share);
	if (!wheel) {
		share = kzalloc(sizeof(*share), GFP_KERNEL);
		if (!share)
			return ERR_PTR(-ENOMEM);
		wheel = hwt_shared_get(&params, owner, &share);
	}
	if (!wheel)
		wheel = hwt_shared_create(&params, __builtin_return_address(0), owner, &share);
	kfree(share);
	if (!IS_ERR(wheel))
		__module_get(THIS_MODULE);
	return wheel;
}
EXPORT_SYMBOL_GPL(__hwt_wheel_get_shared);

/* The function behind the macro hwt_wheel_put(), which adds the module. */
void __hwt_wheel_put(struct hwt_wheel *wheel, struct module *owner)
{
	bool had, last;

	might_sleep();
	mutex_lock(&hwt_wheels_lock);
	had = hwt_share_put(wheel, owner);
	/* hwt_shared_find() skips the wheel then. It stays listed while it may report callbacks. */
	last = had && !wheel->users;
	mutex_unlock(&hwt_wheels_lock);
	if (WARN(!had, "module %s puts a wheel to which it has no reference\n",
		 module_name(owner)))
		return;
	if (!last) {
		module_put(THIS_MODULE);
	} else if (hwt_in_callback(wheel)) {
		/* No barrier: the work is queued once in the life of a wheel. */
		queue_work(hwt_wq, &wheel->free_work);
	} else {
		hwt_wheel_free_work(&wheel->free_work);
	}
}
EXPORT_SYMBOL_GPL(__hwt_wheel_put);

/**
 * hwt_wheel_destroy() - stop a wheel, unless it is stopped already, and free it
 * @wheel: from hwt_wheel_create()
 *
 * Process context, may sleep. Timeouts that are still pending are cancelled, as by
 * hwt_wheel_stop() without a function. After this, the wheel must not be used, nor its timeouts
 * scheduled, cancelled or queried.
 *
 * Return: 0; -EDEADLK from a callback of the wheel, -EBUSY for a shared wheel: nothing
 * changed.
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

/* -- The system wheel ------------------------------------------------------ */

struct hwt_wheel *hwt_system_wheel;
EXPORT_SYMBOL_GPL(hwt_system_wheel);

/* Create hwt_system_wheel. Return: 0, or as hwt_wheel_create(). */
int __init hwt_system_wheel_create(void)
{
	const struct hwt_wheel_params params = { .name = "hwt_system" };
	struct hwt_wheel *wheel = hwt_wheel_get_shared(&params);

	if (IS_ERR(wheel))
		return PTR_ERR(wheel);
	/* The module's exit destroys this wheel, so it must not keep the module loaded. */
	module_put(THIS_MODULE);
	hwt_system_wheel = wheel;
	return 0;
}

/* Destroy hwt_system_wheel: no client is left. */
void hwt_system_wheel_destroy(void)
{
	hwt_stop(hwt_system_wheel, NULL, NULL);
	hwt_wheel_dispose(hwt_system_wheel);
}

/* -- System events -------------------------------------------------------- */

/*
 * Forget the functions of an unloaded module, and with "debug" withdraw the timeouts it has left.
 * Return true if one of its functions is executing, which is logged unless @said: the caller waits
 * without hwt_wheels_lock, which that function may need.
 */
static bool hwt_wheels_unload(struct module *module, bool said)
{
	struct hwt_wheel *wheel;
	bool executing = false;

	mutex_lock(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry) {
		if (static_branch_unlikely(&hwt_debug))
			executing |= hwt_debug_unload(wheel, module, said);
		/* Forget after that check: a function that has ended by then has noted its time. */
		hwt_slow_forget_calls(wheel, module);
	}
	mutex_unlock(&hwt_wheels_lock);
	return executing;
}

/* Report a private wheel that an unloaded module has left. */
static void hwt_wheel_left(struct hwt_wheel *wheel, const struct module *module)
{
	if (wheel->owner == module && !wheel->is_shared)
		pr_warn("module %s is unloaded and leaves its wheel %s, created by %s, with %llu timeouts pending\n",
			wheel->owner_name, wheel->name, wheel->creator,
			hwt_wheel_pending(wheel));
}

/* Report references that an unloaded module has left, and that no code can put any more. */
static void hwt_share_left(struct hwt_wheel *wheel, struct module *module)
{
	struct hwt_share *share = hwt_share_find(wheel, module);

	if (!share)
		return;
	pr_warn("module %s is unloaded and leaves %u references to the shared wheel %s\n",
		module_name(module), share->refs, wheel->name);
	/* Another module may get this address. */
	share->module = ERR_PTR(-ENOENT);
}

/* Handle the unloading of a module, whose exit should have given up its wheels. */
static int hwt_module_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct hwt_wheel *wheel;
	bool said;

	if (event != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	mutex_lock(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry)
		hwt_wheel_left(wheel, data);
	mutex_unlock(&hwt_wheels_lock);
	for (said = false; hwt_wheels_unload(data, said); said = true)
		usleep_range(1000, 2000);
	hwt_slow_forget_reports(data);
	/* Last: a function of the module that was still executing may have put a reference. */
	mutex_lock(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry)
		hwt_share_left(wheel, data);
	mutex_unlock(&hwt_wheels_lock);
	return NOTIFY_OK;
}

static struct notifier_block hwt_module_notifier = { .notifier_call = hwt_module_event };

/* Is this a shard of a live wheel? In an RCU reader, for which its memory then stays. */
bool hwt_shard_exists(const struct hwt_wheel *shard)
{
	struct hwt_wheel *wheel;

	/* No barrier: only addresses are compared. */
	list_for_each_entry_rcu(wheel, &hwt_wheels, entry)
		if (wheel == shard)
			return true;
	return false;
}

/*
 * Kick the engines of all wheels on the wall clock, which was set. Without a kick, an engine that
 * sleeps until a date notices only when the date comes. If the clock went back, that is too late:
 * until then, ->clock_set is not called, and cancelled timeouts are not released.
 */
static void hwt_clock_irq_work(struct irq_work *work)
{
	struct hwt_wheel *wheel;

	/* Wait until the new time can be read: since 7.2, the kernel calls hwt_clock_event() before
	 * that, and this work may run at once if it was pending already (clock.irq).
	 */
	ktime_get_real_ns();
	/* Barrier clock.rcu, pairs with destroy.grace in hwt_wheel_dispose(): a wheel that is found
	 * stays until it has been kicked.
	 */
	rcu_read_lock();
	/* Barrier clock.list, not needed, pairs with clock.add in hwt_wheel_register(): the dependency
	 * on a wheel's address orders its creation before the reads here.
	 */
	list_for_each_entry_rcu(wheel, &hwt_wheels, entry)
		if (wheel->clock == HWT_CLOCK_REALTIME)
			hwt_wheel_kick(wheel);
	rcu_read_unlock();
}

static struct irq_work hwt_clock_work = IRQ_WORK_INIT_HARD(hwt_clock_irq_work);

/* Called by the timekeeper at each update. @was_set: the clock was set, not only advanced. */
static int hwt_clock_event(struct notifier_block *block, unsigned long was_set, void *data)
{
	/* Barrier clock.irq, pairs with kernel.irq_work in irq_work_run(): if the work was pending
	 * before, hwt_clock_irq_work() has yet to read the clock, and sees that this set has begun.
	 */
	if (was_set)
		irq_work_queue(&hwt_clock_work);
	return NOTIFY_OK;
}

static struct notifier_block hwt_clock_notifier = { .notifier_call = hwt_clock_event };

/*
 * Pin the threads of wheels again when one of their CPUs comes online. When their last CPU went
 * offline, the kernel has let them run anywhere.
 */
static int hwt_cpu_online(unsigned int cpu)
{
	struct hwt_wheel *wheel;

	mutex_lock(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry)
		if (wheel->pinned && cpumask_test_cpu(cpu, wheel->affinity))
			hwt_threads_pin(wheel);
	mutex_unlock(&hwt_wheels_lock);
	return 0;
}

static int hwt_cpu_state;

/* Register for system events that concern wheels. */
int __init hwt_registry_init(void)
{
	int ret;

	hwt_shards_default = hwt_shards_choose();
	/* The rescuer thread has this name too, which must not look like a wheel's, "hwt...". */
	hwt_wq = alloc_workqueue("wq_hwt", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!hwt_wq)
		return -ENOMEM;
	ret = register_module_notifier(&hwt_module_notifier);
	if (ret)
		goto err_wq;
	hwt_cpu_state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "hwt:online",
						  hwt_cpu_online, NULL);
	if (hwt_cpu_state < 0) {
		ret = hwt_cpu_state;
		goto err_notifier;
	}
	ret = pvclock_gtod_register_notifier(&hwt_clock_notifier);
	if (ret)
		goto err_cpu;
	return 0;

err_cpu:
	cpuhp_remove_state_nocalls(hwt_cpu_state);
err_notifier:
	unregister_module_notifier(&hwt_module_notifier);
err_wq:
	destroy_workqueue(hwt_wq);
	return ret;
}

/* Undo hwt_registry_init(). No wheel is left, since each wheel keeps the module loaded. */
void hwt_registry_exit(void)
{
	pvclock_gtod_unregister_notifier(&hwt_clock_notifier);
	irq_work_sync(&hwt_clock_work);
	cpuhp_remove_state_nocalls(hwt_cpu_state);
	unregister_module_notifier(&hwt_module_notifier);
	destroy_workqueue(hwt_wq);
	WARN_ON(!list_empty(&hwt_wheels));
}
