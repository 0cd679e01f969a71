// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recipes of docs/recipes.md that the other samples do not use: changes are saved after a quiet
 * time (debounce), a cache drops entries that were not used for a while, a periodic timeout looks
 * at the cache, and a device cancels all of its requests when it is removed (group).
 *
 * There is no real device. The log shows what happens.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/time64.h>

#include "hwt.h"

static unsigned int changes = 10;
module_param(changes, uint, 0444);
MODULE_PARM_DESC(changes, "changes made while it is loaded (default 10)");

static unsigned int requests = 10;
module_param(requests, uint, 0444);
MODULE_PARM_DESC(requests, "requests that are never answered (default 10)");

static unsigned int entries = 10;
module_param(entries, uint, 0444);
MODULE_PARM_DESC(entries, "entries of the cache, of which the first stays in use (default 10)");

static struct hwt_wheel *cook_wheel;

/* -- Debounce ------------------------------------------------------------- */

/* Save when nothing has changed for 100 ms, but at most a second after the first change. */
#define COOK_QUIET_NS	(100 * NSEC_PER_MSEC)
#define COOK_MOST_NS	NSEC_PER_SEC

static DEFINE_SPINLOCK(cook_lock);	/* protects cook_unsaved and cook_latest */
static unsigned int cook_unsaved;
static u64 cook_latest;			/* a second after the first unsaved change */

static void cook_save_expire(struct hwt_timeout *timeout)
{
	unsigned int n;

	spin_lock(&cook_lock);
	n = cook_unsaved;
	cook_unsaved = 0;
	spin_unlock(&cook_lock);
	/* 0 if the previous callback has saved the change that scheduled this one. */
	if (n)
		pr_info("saved %u changes\n", n);
}

static const struct hwt_timeout_ops cook_save_ops = { .expire = cook_save_expire };

static struct hwt_timeout cook_save = HWT_TIMEOUT_INIT(cook_save, &cook_save_ops);

static void cook_change(void)
{
	u64 now;

	spin_lock(&cook_lock);
	now = hwt_wheel_now(cook_wheel);
	if (!cook_unsaved++)
		cook_latest = now + COOK_MOST_NS;
	hwt_schedule_at(&cook_save, min(now + COOK_QUIET_NS, cook_latest));
	spin_unlock(&cook_lock);
}

/* -- A cache --------------------------------------------------------------- */

#define COOK_UNUSED_NS	(200 * NSEC_PER_MSEC)

/* The table has a reference to an entry, and so has the hold of the entry's timeout. */
struct cook_entry {
	struct hlist_node	node;
	unsigned int		key;
	struct kref		ref;
	struct hwt_timeout	unused;
	struct rcu_head		rcu;
};

static DEFINE_HASHTABLE(cook_table, 6);
static DEFINE_SPINLOCK(cook_table_lock);	/* protects cook_table and cook_entries */
static unsigned int cook_entries;

static void cook_entry_free(struct kref *ref)
{
	struct cook_entry *entry = container_of(ref, struct cook_entry, ref);

	kfree_rcu(entry, rcu);
}

/* Take an entry from the table, unless another caller has done so. */
static void cook_entry_drop(struct cook_entry *entry)
{
	bool found;

	spin_lock(&cook_table_lock);
	found = hash_hashed(&entry->node);
	if (found) {
		hash_del_rcu(&entry->node);
		WRITE_ONCE(cook_entries, cook_entries - 1);
	}
	spin_unlock(&cook_table_lock);
	if (!found)
		return;
	hwt_cancel(&entry->unused);
	kref_put(&entry->ref, cook_entry_free);
}

static void cook_entry_expire(struct hwt_timeout *timeout)
{
	cook_entry_drop(container_of(timeout, struct cook_entry, unused));
}

static void cook_entry_release(struct hwt_timeout *timeout)
{
	kref_put(&container_of(timeout, struct cook_entry, unused)->ref, cook_entry_free);
}

static const struct hwt_timeout_ops cook_entry_ops = {
	.expire		= cook_entry_expire,
	.release	= cook_entry_release,
};

static int cook_entry_add(unsigned int key)
{
	struct cook_entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL);

	if (!entry)
		return -ENOMEM;
	entry->key = key;
	kref_init(&entry->ref);
	hwt_timeout_init(&entry->unused, cook_wheel, &cook_entry_ops);
	spin_lock(&cook_table_lock);
	hash_add_rcu(cook_table, &entry->node, key);
	WRITE_ONCE(cook_entries, cook_entries + 1);
	kref_get(&entry->ref);
	/* A new timeout on a wheel that is not stopped: cannot fail. */
	hwt_schedule(&entry->unused, COOK_UNUSED_NS);
	spin_unlock(&cook_table_lock);
	return 0;
}

/* Find an entry, and keep it in the table for some more time. The caller is an RCU reader. */
static struct cook_entry *cook_entry_find(unsigned int key)
{
	struct cook_entry *entry;

	hash_for_each_possible_rcu(cook_table, entry, node, key) {
		if (entry->key == key) {
			hwt_touch(&entry->unused, hwt_wheel_now(cook_wheel) + COOK_UNUSED_NS);
			return entry;
		}
	}
	return NULL;
}

/* Drop all entries, and wait until their last callbacks have returned. */
static void cook_table_end(void)
{
	struct cook_entry *entry;
	unsigned int bucket;

	rcu_read_lock();
	hash_for_each_rcu(cook_table, bucket, entry, node)
		cook_entry_drop(entry);
	rcu_read_unlock();
	hwt_wheel_barrier(cook_wheel);
}

/* -- A periodic timeout ----------------------------------------------------- */

static struct hwt_periodic cook_look;

static void cook_look_expire(struct hwt_timeout *timeout)
{
	struct hwt_periodic *look = container_of(timeout, struct hwt_periodic, timeout);
	unsigned int left = READ_ONCE(cook_entries);

	if (hwt_overruns(look))
		pr_info("missed %llu looks at the cache\n", hwt_overruns(look));
	if (!left) {
		pr_info("the cache is empty\n");
		hwt_cancel(timeout);
	}
}

static void cook_look_start(void)
{
	hwt_periodic_setup(&cook_look, cook_wheel, cook_look_expire);
	hwt_schedule_periodic(&cook_look, hwt_msecs(50), hwt_msecs(50), HWT_MODE_FIXED_RATE);
}

/* -- A group --------------------------------------------------------------- */

/* A request has a reference until it ends, and one for the hold of its timeout. */
struct cook_request {
	struct kref		ref;
	struct hwt_timeout	timeout;
	struct hwt_member	member;
};

static struct hwt_group cook_requests;
static atomic_t cook_freed;

static struct cook_request *cook_request_of(struct hwt_timeout *timeout)
{
	return container_of(timeout, struct cook_request, timeout);
}

static void cook_request_free(struct kref *ref)
{
	struct cook_request *request = container_of(ref, struct cook_request, ref);

	hwt_group_leave(&cook_requests, &request->member);
	atomic_inc(&cook_freed);
	kfree(request);
}

/* Return false if the request is being freed, and has yet to leave the group. */
static bool cook_request_get(struct hwt_timeout *timeout)
{
	return kref_get_unless_zero(&cook_request_of(timeout)->ref);
}

static void cook_request_put(struct hwt_timeout *timeout)
{
	kref_put(&cook_request_of(timeout)->ref, cook_request_free);
}

/* End a request that took too long or was cancelled: put its first reference. */
static void cook_request_end(struct hwt_timeout *timeout)
{
	cook_request_put(timeout);
}

static const struct hwt_timeout_ops cook_request_ops = {
	.expire		= cook_request_end,
	.cancelled	= cook_request_end,
	.release	= cook_request_put,
};

static int cook_request_send(void)
{
	struct cook_request *request = kmalloc(sizeof(*request), GFP_KERNEL);

	if (!request)
		return -ENOMEM;
	kref_init(&request->ref);
	hwt_timeout_init(&request->timeout, cook_wheel, &cook_request_ops);
	hwt_group_join(&cook_requests, &request->member, &request->timeout);
	kref_get(&request->ref);
	/* Not held, not shut down, on a wheel that is not stopped: cannot fail. */
	hwt_schedule(&request->timeout, 30ULL * NSEC_PER_SEC);
	return 0;
}

/* -- Initialisation and exit ------------------------------------------------- */

static void cook_requests_end(void)
{
	u64 n = hwt_group_shutdown_sync(&cook_requests);

	/* The group skips a member that is being freed: wait for its release. */
	hwt_wheel_barrier(cook_wheel);
	pr_info("%llu of %u requests were pending\n", n, requests);
}

static void cook_go(void)
{
	cook_requests_end();
	hwt_shutdown_sync(&cook_look.timeout);
	cook_table_end();
	hwt_shutdown_sync(&cook_save);
	hwt_wheel_put(cook_wheel);
}

static int __init cook_init(void)
{
	unsigned int i;
	int err = 0;

	cook_wheel = hwt_wheel_get_shared(NULL);
	if (IS_ERR(cook_wheel))
		return PTR_ERR(cook_wheel);
	hwt_timeout_set_wheel(&cook_save, cook_wheel);
	hwt_group_init(&cook_requests, cook_request_get, cook_request_put);
	for (i = 0; i < requests && !err; i++)
		err = cook_request_send();
	for (i = 0; i < entries && !err; i++)
		err = cook_entry_add(i);
	cook_look_start();
	if (err) {
		cook_go();
		return err;
	}
	for (i = 0; i < changes; i++) {
		cook_change();
		rcu_read_lock();
		if (entries && !cook_entry_find(0))
			pr_info_once("the first entry was not in use for 200 ms\n");
		rcu_read_unlock();
		usleep_range(1000, 2000);
	}
	return 0;
}
module_init(cook_init);

static void __exit cook_exit(void)
{
	cook_go();
	pr_info("%d requests freed\n", atomic_read(&cook_freed));
}
module_exit(cook_exit);

MODULE_AUTHOR("The hwt project");
MODULE_DESCRIPTION("hwt sample: debounce, a cache, a period, a group");
MODULE_LICENSE("GPL");
