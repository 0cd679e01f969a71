// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registry of live wheels: finds shared wheels, counts their users, and handles the system
 * events that concern all wheels (a CPU comes online, the clock is set, a module is unloaded)
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

/* Warn if more wheels than this are alive. Netty's HashedWheelTimer has the same limit. */
#define HWT_WHEELS_MANY		64

/* All live wheels. hwt_wheels_lock protects the list, which is also read under RCU. */
static LIST_HEAD(hwt_wheels);
static unsigned int hwt_wheels_count;
static u64 hwt_wheels_created;
static DEFINE_MUTEX(hwt_wheels_lock);

/**
 * struct hwt_share - the references of a module to a shared wheel
 * @entry:  node in the wheel's list @shares
 * @module: the module; only compared, because it may have been unloaded. NULL: built-in code
 * @refs:   number of references, at least 1
 *
 * Protected by hwt_wheels_lock.
 */
struct hwt_share {
	struct list_head	entry;
	const struct module	*module;
	unsigned int		refs;
};

/* -- The list --------------------------------------------------------------- */

static void __hwt_wheel_register(struct hwt_wheel *wheel, const void *creator,
				 struct module *owner)
{
	lockdep_assert_held(&hwt_wheels_lock);
	/* Look up the name now: the creator may be an init function, which is freed after init. */
	snprintf(wheel->creator, sizeof(wheel->creator), "%ps", creator);
	wheel->owner = owner;
	strscpy(wheel->owner_name, module_name(owner), sizeof(wheel->owner_name));
	/*
	 * Barrier clock.add, pairs with clock.list in hwt_clock_irq_work(): if that function finds
	 * the wheel in the list, it finds all members of the wheel and its shards initialised.
	 */
	list_add_tail_rcu(&wheel->entry, &hwt_wheels);
	wheel->number = ++hwt_wheels_created;
	trace_hwt_wheel_create(wheel);
	/* Do not count the wheels of hwt itself: the warning is for its clients. */
	hwt_wheels_count += owner != THIS_MODULE;
	if (hwt_wheels_count > HWT_WHEELS_MANY && owner != THIS_MODULE)
		pr_warn_once("more than %u wheels are alive, the latest created by %s [%s]: wheels are meant to be shared\n",
			     HWT_WHEELS_MANY, wheel->creator, wheel->owner_name);
}

/* Add an initialised wheel to the list. @creator: an address in the function that creates it. */
void hwt_wheel_register(struct hwt_wheel *wheel, const void *creator, struct module *owner)
{
	mutex_lock(&hwt_wheels_lock);
	__hwt_wheel_register(wheel, creator, owner);
	mutex_unlock(&hwt_wheels_lock);
}

/*
 * Remove a stopped wheel. Until its stop, the handlers of system events must find the wheel. Only
 * system wheels still have references at their end.
 */
void hwt_wheel_unregister(struct hwt_wheel *wheel)
{
	struct hwt_share *share, *next;

	mutex_lock(&hwt_wheels_lock);
	list_for_each_entry_safe(share, next, &wheel->shares, entry)
		kfree(share);
	/* No barrier: destroy.grace in hwt_wheel_dispose() waits for readers of the list. */
	list_del_rcu(&wheel->entry);
	hwt_wheels_count -= wheel->owner != THIS_MODULE;
	mutex_unlock(&hwt_wheels_lock);
}

/* -- Shared wheels and their users --------------------------------------------- */

static struct hwt_share *hwt_share_find(struct hwt_wheel *wheel, const struct module *module)
{
	struct hwt_share *share;

	lockdep_assert_held(&hwt_wheels_lock);
	list_for_each_entry(share, &wheel->shares, entry)
		if (share->module == module)
			return share;
	return NULL;
}

/* Count one more reference of a module to a wheel. Return false if there is no memory. */
static bool hwt_share_get(struct hwt_wheel *wheel, const struct module *module)
{
	struct hwt_share *share = hwt_share_find(wheel, module);

	if (!share) {
		share = kzalloc(sizeof(*share), GFP_KERNEL);
		if (!share)
			return false;
		share->module = module;
		list_add(&share->entry, &wheel->shares);
	}
	share->refs++;
	WRITE_ONCE(wheel->users, wheel->users + 1);
	return true;
}

static bool hwt_wheel_like(const struct hwt_wheel *wheel, const struct hwt_wheel_params *params)
{
	const struct hwt_wheel_params *have = &wheel->params;

	return have->tick_ns == params->tick_ns && have->levels == params->levels &&
	       have->ticks_per_wheel == params->ticks_per_wheel && have->clock == params->clock &&
	       have->flags == params->flags && have->workers == params->workers &&
	       have->shards == params->shards && have->priority == params->priority;
}

static struct hwt_wheel *hwt_shared_find(const struct hwt_wheel_params *params)
{
	struct hwt_wheel *wheel;

	lockdep_assert_held(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry)
		if (wheel->is_shared && wheel->users && hwt_wheel_like(wheel, params))
			return wheel;
	return NULL;
}

/*
 * Get a reference for @owner to the shared wheel with these parameters. If no such wheel exists,
 * register @created, if it is not NULL. Return the wheel, NULL or ERR_PTR(-ENOMEM).
 */
struct hwt_wheel *hwt_shared_get(const struct hwt_wheel_params *params, struct module *owner,
				 struct hwt_wheel *created, const void *creator)
{
	struct hwt_wheel *wheel;

	mutex_lock(&hwt_wheels_lock);
	wheel = hwt_shared_find(params) ?: created;
	if (wheel && !hwt_share_get(wheel, owner)) {
		wheel = ERR_PTR(-ENOMEM);
	} else if (wheel && wheel == created) {
		wheel->is_shared = true;
		__hwt_wheel_register(wheel, creator, owner);
	}
	mutex_unlock(&hwt_wheels_lock);
	return wheel;
}

/*
 * Put a reference of @owner. Return 1 if this was the wheel's last reference, 0 if the wheel has
 * other references, and -EINVAL if @owner has no reference, or if @wheel was freed.
 */
int hwt_shared_put(struct hwt_wheel *wheel, const struct module *owner)
{
	struct hwt_share *share = NULL;
	struct hwt_wheel *listed;
	int ret = -EINVAL;

	mutex_lock(&hwt_wheels_lock);
	list_for_each_entry(listed, &hwt_wheels, entry)
		if (listed == wheel)
			share = hwt_share_find(wheel, owner);
	/*
	 * The last reference to a system wheel is hwt's own. Keep it: if hwt is built in, other
	 * built-in code might put it, because the module of all built-in code is NULL.
	 */
	if (share && (wheel->users > 1 ||
		      (wheel != hwt_system_wheel && wheel != hwt_system_bh_wheel))) {
		if (!--share->refs) {
			list_del(&share->entry);
			kfree(share);
		}
		WRITE_ONCE(wheel->users, wheel->users - 1);
		/* A wheel without users stays in the list: hwt_shared_find() skips it. */
		ret = !wheel->users;
	}
	mutex_unlock(&hwt_wheels_lock);
	return ret;
}

/* -- System events -------------------------------------------------------- */

/* Report wheels, references and timeouts that an unloaded module should have given up. */
static int hwt_module_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct module *module = data;
	struct hwt_wheel *wheel;
	struct hwt_share *share;

	if (event != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	mutex_lock(&hwt_wheels_lock);
	list_for_each_entry(wheel, &hwt_wheels, entry) {
		if (wheel->owner == module && !wheel->is_shared)
			pr_warn("module %s is unloaded and leaves its wheel %s, created by %s, with %llu timeouts pending\n",
				wheel->owner_name, wheel->name, wheel->creator,
				hwt_wheel_pending(wheel));
		share = hwt_share_find(wheel, module);
		if (share) {
			pr_warn("module %s is unloaded and leaves %u references to the shared wheel %s\n",
				module_name(module), share->refs, wheel->name);
			/* Another module at this address must not own these references. */
			share->module = ERR_PTR(-ENOENT);
		}
		if (static_branch_unlikely(&hwt_debug))
			hwt_debug_unload(wheel, module);
	}
	mutex_unlock(&hwt_wheels_lock);
	return NOTIFY_OK;
}

static struct notifier_block hwt_module_notifier = { .notifier_call = hwt_module_event };

/* Return true if a shard exists. It is then not freed before the caller calls rcu_read_unlock(). */
bool hwt_shard_exists(const struct hwt_shard *shard)
{
	const struct hwt_shard *one;
	struct hwt_wheel *wheel;

	/*
	 * No barrier: list_add_tail_rcu() (clock.add) has published the wheel and its shards, and
	 * the reads of them depend on the address of the wheel, which was read from the list.
	 */
	list_for_each_entry_rcu(wheel, &hwt_wheels, entry)
		for (one = wheel->first_shard; one; one = one->next)
			if (one == shard)
				return true;
	return false;
}

/*
 * Kick the engines of all wheels on CLOCK_REALTIME, because this clock was set. An engine sleeps
 * until a date on this clock. If the clock is set back, the date comes later. Without the kick, the
 * engine would call @clock_set, and sort its timeouts again, only when the date comes.
 */
static void hwt_clock_irq_work(struct irq_work *work)
{
	struct hwt_wheel *wheel;
	struct hwt_shard *shard;

	/*
	 * Wait for the end of the change: while a change is in progress, ktime_get_real_ns() does
	 * not return. Since Linux 7.2, a kick before this end would let engines read the old time.
	 */
	ktime_get_real_ns();
	/*
	 * Barrier clock.rcu, pairs with destroy.grace in hwt_wheel_dispose(): a wheel that is found
	 * in the list is not freed before its engines have been kicked.
	 */
	rcu_read_lock();
	/*
	 * Barrier clock.list, pairs with clock.add in __hwt_wheel_register(): a wheel in the list
	 * is fully initialised. READ_ONCE() of the list's pointers would do: the reads of a wheel
	 * depend on the address that was read from the list.
	 */
	list_for_each_entry_rcu(wheel, &hwt_wheels, entry)
		for (shard = wheel->first_shard; shard; shard = shard->next)
			if (shard->clock == HWT_CLOCK_REALTIME)
				hwt_engine_kick(shard, 0);
	rcu_read_unlock();
}

static struct irq_work hwt_clock_work = IRQ_WORK_INIT_HARD(hwt_clock_irq_work);

/* Called by the timekeeper at each update. @was_set: not 0 if the clock was set. */
static int hwt_clock_event(struct notifier_block *block, unsigned long was_set, void *data)
{
	/*
	 * Barrier clock.irq, pairs with kernel.irq_work in irq_work_run(): if irq_work_queue()
	 * finds the work pending, hwt_clock_irq_work() calls ktime_get_real_ns() after this. That
	 * call sees that the present change of the clock has begun (the timekeeper's sequence count
	 * is odd), and waits for the end of the change.
	 */
	if (was_set)
		irq_work_queue(&hwt_clock_work);
	return NOTIFY_OK;
}

static struct notifier_block hwt_clock_notifier = { .notifier_call = hwt_clock_event };

/*
 * Pin the threads of the CPU's shards again: if all CPUs of a shard were offline, the scheduler has
 * moved its threads to other CPUs.
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

int __init hwt_registry_init(void)
{
	hwt_cpu_state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "hwt:online",
						  hwt_cpu_online, NULL);
	if (hwt_cpu_state < 0)
		return hwt_cpu_state;
	/* The only error of these calls is that the notifier is registered already. */
	register_module_notifier(&hwt_module_notifier);
	pvclock_gtod_register_notifier(&hwt_clock_notifier);
	return 0;
}

/* No wheel exists: the system wheels were destroyed, and any other wheel keeps hwt loaded. */
void hwt_registry_exit(void)
{
	pvclock_gtod_unregister_notifier(&hwt_clock_notifier);
	irq_work_sync(&hwt_clock_work);
	cpuhp_remove_state_nocalls(hwt_cpu_state);
	unregister_module_notifier(&hwt_module_notifier);
	WARN_ON(!list_empty(&hwt_wheels));
}
