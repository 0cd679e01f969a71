// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registry of live wheels: shared wheels and their users, and system events that concern all
 * wheels
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pvclock_gtod.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "core/debug.h"
#include "core/kick.h"
#include "core/registry.h"
#include "core/thread.h"
#include "core/trace.h"

/* Wheels are meant to be few and shared. Netty's HashedWheelTimer warns at the same number. */
#define HWT_WHEELS_MANY		64

/* All live wheels; also read under RCU. The lock also protects their @users and @shares. */
static LIST_HEAD(hwt_wheels);
static unsigned int hwt_wheels_count;
static u64 hwt_wheels_created;
static DEFINE_MUTEX(hwt_wheels_lock);

/* -- The list --------------------------------------------------------------- */

static void __hwt_wheel_register(struct hwt_wheel *wheel, const void *creator,
				 struct module *owner)
{
	lockdep_assert_held(&hwt_wheels_lock);
	/* Store a name: an address in a module's init is invalid once the init has returned. */
	snprintf(wheel->creator, sizeof(wheel->creator), "%ps", creator);
	wheel->owner = owner;
	strscpy(wheel->owner_name, module_name(owner), sizeof(wheel->owner_name));
	/*
	 * Barrier clock.add, pairs with clock.list in hwt_clock_irq_work(): a wheel that is found
	 * in the list is complete.
	 */
	list_add_tail_rcu(&wheel->entry, &hwt_wheels);
	wheel->number = ++hwt_wheels_created;
	trace_hwt_wheel_create(wheel);
	/* Do not count wheels of this module, which are not of a kernel client. */
	hwt_wheels_count += owner != THIS_MODULE;
	if (hwt_wheels_count > HWT_WHEELS_MANY && owner != THIS_MODULE)
		pr_warn_once("more than %u wheels are alive, the latest created by %s [%s]: each has a thread, wheels are meant to be shared\n",
			     HWT_WHEELS_MANY, wheel->creator, wheel->owner_name);
}

/* List a wheel, which is complete. @creator: the address of the call; @owner: its module. */
void hwt_wheel_register(struct hwt_wheel *wheel, const void *creator, struct module *owner)
{
	mutex_lock(&hwt_wheels_lock);
	__hwt_wheel_register(wheel, creator, owner);
	mutex_unlock(&hwt_wheels_lock);
}

/*
 * Unlist a wheel, after its stop: until then, hwt_module_event() must find each wheel that may
 * report a module's functions. The caller waits for a grace period.
 */
void hwt_wheel_unregister(struct hwt_wheel *wheel)
{
	mutex_lock(&hwt_wheels_lock);
	/* No barrier: destroy.grace in hwt_wheel_dispose() waits for readers. */
	list_del_rcu(&wheel->entry);
	hwt_wheels_count -= wheel->owner != THIS_MODULE;
	mutex_unlock(&hwt_wheels_lock);
}

/* -- Shared wheels and their users --------------------------------------------- */

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

static bool hwt_wheel_like(const struct hwt_wheel *wheel, const struct hwt_wheel_params *params)
{
	const struct hwt_shard *shard = wheel->first_shard;

	return shard->tick_ns == params->tick_ns &&
	       hwt_revolution(shard) == params->ticks_per_wheel &&
	       shard->buckets.levels == params->levels && shard->clock == params->clock &&
	       shard->flags == params->flags && shard->nr_workers == params->workers &&
	       wheel->nr_shards == params->shards && wheel->priority == params->priority;
}

/* Return a shared wheel with these parameters, or NULL. */
static struct hwt_wheel *hwt_shared_find(const struct hwt_wheel_params *params)
{
	struct hwt_wheel *wheel;

	lockdep_assert_held(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry)
		if (wheel->is_shared && wheel->users && hwt_wheel_like(wheel, params))
			return wheel;
	return NULL;
}

/* Return memory for a module's first reference to a wheel, which hwt_share_free() frees. */
struct hwt_share *hwt_share_alloc(void)
{
	return kzalloc(sizeof(struct hwt_share), GFP_KERNEL);
}

void hwt_share_free(struct hwt_share *share)
{
	kfree(share);
}

/* Free the references of a wheel that is freed. */
void hwt_shares_free(struct hwt_wheel *wheel)
{
	struct hwt_share *share, *next;

	list_for_each_entry_safe(share, next, &wheel->shares, entry)
		kfree(share);
}

/*
 * Get a reference to the shared wheel of given parameters. @share: from hwt_share_alloc(), or NULL;
 * NULL once it is used. Return NULL if there is no such wheel, or if that memory is needed.
 */
struct hwt_wheel *hwt_shared_get(const struct hwt_wheel_params *params, struct module *owner,
				 struct hwt_share **share)
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
 * List a new shared wheel, and get a reference to it. If another task has listed one with the same
 * parameters meanwhile, get a reference to that. Return the wheel.
 */
struct hwt_wheel *hwt_shared_add(struct hwt_wheel *created, const struct hwt_wheel_params *params,
				 const void *creator, struct module *owner,
				 struct hwt_share **share)
{
	struct hwt_wheel *wheel;

	mutex_lock(&hwt_wheels_lock);
	wheel = hwt_shared_find(params);
	if (!wheel) {
		wheel = created;
		wheel->is_shared = true;
		__hwt_wheel_register(wheel, creator, owner);
	}
	hwt_share_get(wheel, owner, share);
	mutex_unlock(&hwt_wheels_lock);
	return wheel;
}

/* Put a reference. Return -EINVAL if the module has none, 1 if it was the wheel's last, else 0. */
int hwt_shared_put(struct hwt_wheel *wheel, const struct module *owner)
{
	int ret = -EINVAL;

	mutex_lock(&hwt_wheels_lock);
	/* hwt_shared_find() skips a wheel without users. It stays listed until it is freed. */
	if (hwt_share_put(wheel, owner))
		ret = !wheel->users;
	mutex_unlock(&hwt_wheels_lock);
	return ret;
}

/* -- System events -------------------------------------------------------- */

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

static void hwt_timeouts_left(struct hwt_wheel *wheel, struct module *module)
{
	struct hwt_shard *shard;

	for (shard = wheel->first_shard; shard; shard = shard->next)
		hwt_debug_unload(shard, module);
}

/* Handle the unloading of a module, whose exit should have given up its timeouts and wheels. */
static int hwt_module_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct hwt_wheel *wheel;

	if (event != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	mutex_lock(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry) {
		hwt_wheel_left(wheel, data);
		hwt_share_left(wheel, data);
		if (static_branch_unlikely(&hwt_debug))
			hwt_timeouts_left(wheel, data);
	}
	mutex_unlock(&hwt_wheels_lock);
	return NOTIFY_OK;
}

static struct notifier_block hwt_module_notifier = { .notifier_call = hwt_module_event };

/* Is this a shard of a live wheel? In an RCU reader, for which its memory then stays. */
bool hwt_shard_exists(const struct hwt_shard *shard)
{
	const struct hwt_shard *one;
	struct hwt_wheel *wheel;

	/* No barrier: only addresses are compared. */
	list_for_each_entry_rcu(wheel, &hwt_wheels, entry)
		for (one = wheel->first_shard; one; one = one->next)
			if (one == shard)
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
	struct hwt_shard *shard;

	/*
	 * Wait until the new time can be read: since 7.2, the kernel calls hwt_clock_event() before
	 * that, and this work may run at once if it was pending already (clock.irq).
	 */
	ktime_get_real_ns();
	/*
	 * Barrier clock.rcu, pairs with destroy.grace in hwt_wheel_dispose(): a wheel that is found
	 * stays until it has been kicked.
	 */
	rcu_read_lock();
	/*
	 * Barrier clock.list, pairs with clock.add in __hwt_wheel_register(): Not needed: the
	 * dependency on a wheel's address orders its creation before the reads here.
	 */
	list_for_each_entry_rcu(wheel, &hwt_wheels, entry)
		for (shard = wheel->first_shard; shard; shard = shard->next)
			if (shard->clock == HWT_CLOCK_REALTIME)
				hwt_engine_kick(shard);
	rcu_read_unlock();
}

static struct irq_work hwt_clock_work = IRQ_WORK_INIT_HARD(hwt_clock_irq_work);

/* Called by the timekeeper at each update. @was_set: the clock was set, not only advanced. */
static int hwt_clock_event(struct notifier_block *block, unsigned long was_set, void *data)
{
	/*
	 * Barrier clock.irq, pairs with kernel.irq_work in irq_work_run(): if the work was pending
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
	struct hwt_shard *shard;

	mutex_lock(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry)
		for (shard = wheel->first_shard; shard; shard = shard->next)
			if (shard->pinned && cpumask_test_cpu(cpu, shard->affinity))
				hwt_threads_pin(shard);
	mutex_unlock(&hwt_wheels_lock);
	return 0;
}

static int hwt_cpu_state;

/* Register for system events that concern wheels. */
int __init hwt_registry_init(void)
{
	int ret;

	ret = register_module_notifier(&hwt_module_notifier);
	if (ret)
		return ret;
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
	return ret;
}

/* Undo hwt_registry_init(). No wheel is left, since each wheel keeps the module loaded. */
void hwt_registry_exit(void)
{
	pvclock_gtod_unregister_notifier(&hwt_clock_notifier);
	irq_work_sync(&hwt_clock_work);
	cpuhp_remove_state_nocalls(hwt_cpu_state);
	unregister_module_notifier(&hwt_module_notifier);
	WARN_ON(!list_empty(&hwt_wheels));
}
