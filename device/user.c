// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: users, their limits, and the wheels that their contexts share
 *
 * The user of a context is the real user id of the process that opens it; hwt_user_key_get() has
 * the rules for user namespaces. The contexts of a user share a wheel, called their home, unless
 * HWT_IOC_SETUP gives a context a private wheel. With the module parameter cgroup_threads, a user
 * has a home for each cgroup in which the user opens contexts. Users never share a wheel.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "hwt.h"
#include "core/client.h"
#include "device/context.h"
#include "device/user.h"

/* The default of the parameter max_user_timeouts is this many times max_timeouts. */
#define HWT_USER_CONTEXTS	4

/* Maximum number of a user's directories in debugfs; no memory cgroup is charged for them. */
#define HWT_SHOWN_MAX		1000

unsigned int hwt_max_user_timeouts = UINT_MAX;
module_param_named(max_user_timeouts, hwt_max_user_timeouts, uint, 0444);
MODULE_PARM_DESC(max_user_timeouts, "Most timeouts of one user's open /dev/hwt together (0: no limit, default 4 times max_timeouts)");

unsigned int hwt_max_user_wheels = 2;
module_param_named(max_user_wheels, hwt_max_user_wheels, uint, 0444);
MODULE_PARM_DESC(max_user_wheels, "Most wheels of one user: the shared one (with cgroup_threads, one for each cgroup), and the private ones; CAP_SYS_RESOURCE is not limited (0: no limit, default 2)");

static bool hwt_cgroup_threads;
module_param_named(cgroup_threads, hwt_cgroup_threads, bool, 0444);
MODULE_PARM_DESC(cgroup_threads, "Run the threads of wheels in the cgroups of the processes that open /dev/hwt; such a cgroup cannot be frozen (default N)");

/**
 * struct hwt_user_key - the identity of a user
 * @uid: the user id; INVALID_UID if @ns is not NULL
 * @ns:  a user namespace that root has created, and whose ids together count as one user; the key
 *       has a reference to it. NULL if @uid alone identifies the user.
 */
struct hwt_user_key {
	kuid_t			uid;
	struct user_namespace	*ns;
};

/**
 * struct hwt_user - a user that has contexts
 * @node:     node in the hash table hwt_users; protected by hwt_users_lock
 * @key:      the identity of the user. Constant.
 * @contexts: number of contexts that are not freed yet; protected by hwt_users_lock
 * @wheels:   number of wheels that count against max_user_wheels
 * @shown:    number of contexts that count against HWT_SHOWN_MAX
 * @timeouts: number of timeouts whose memory is not freed yet; 0 if max_user_timeouts is 0
 * @lock:     held while a home is created; one per user, so that other users need not wait
 * @homes:    list of struct hwt_home; protected by hwt_users_lock, additions also by @lock
 */
struct hwt_user {
	struct hlist_node	node;
	struct hwt_user_key	key;
	unsigned int		contexts;
	atomic_t		wheels;
	atomic_t		shown;
	atomic_t		timeouts;
	struct mutex		lock;		/* taken before hwt_users_lock */
	struct list_head	homes;
};

static DEFINE_HASHTABLE(hwt_users, 6);
static DEFINE_SPINLOCK(hwt_users_lock);

/* -- Users ----------------------------------------------------------------- */

/*
 * Get the key of the user whose limits apply to the caller. In a user namespace that an ordinary
 * user has created, the caller counts as that user. In a namespace that root has created (for a
 * container), all callers together count as one user, so that the container does not get the limits
 * once for each id. Of nested namespaces, the outermost one decides.
 */
static void hwt_user_key_get(struct hwt_user_key *key)
{
	struct user_namespace *ns = current_user_ns();

	key->uid = current_uid();
	key->ns = NULL;
	if (ns == &init_user_ns)
		return;
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	key->uid = ns->owner;
	if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
		return;
	key->uid = INVALID_UID;
	key->ns = get_user_ns(ns);
}

static unsigned long hwt_user_hash(const struct hwt_user_key *key)
{
	return __kuid_val(key->uid) ^ (unsigned long)key->ns;
}

static struct hwt_user *hwt_user_find(const struct hwt_user_key *key)
	__must_hold(&hwt_users_lock)
{
	struct hwt_user *user;

	hash_for_each_possible(hwt_users, user, node, hwt_user_hash(key))
		if (user->key.ns == key->ns && uid_eq(user->key.uid, key->uid))
			return user;
	return NULL;
}

static void hwt_user_free(struct hwt_user *user)
{
	if (!user)
		return;
	if (user->key.ns)
		put_user_ns(user->key.ns);
	mutex_destroy(&user->lock);
	kfree(user);
}

/* Find or create the user of the caller, and count a new context of this user. */
struct hwt_user *hwt_user_get(void)
{
	struct hwt_user *user, *new = kzalloc(sizeof(*new), HWT_GFP_USER);

	if (!new)
		return NULL;
	hwt_user_key_get(&new->key);
	mutex_init(&new->lock);
	INIT_LIST_HEAD(&new->homes);
	spin_lock(&hwt_users_lock);
	user = hwt_user_find(&new->key);
	if (!user) {
		hash_add(hwt_users, &new->node, hwt_user_hash(&new->key));
		swap(user, new);
	}
	user->contexts++;
	spin_unlock(&hwt_users_lock);
	hwt_user_free(new);
	return user;
}

void hwt_user_put(struct hwt_user *user)
{
	spin_lock(&hwt_users_lock);
	if (--user->contexts)
		user = NULL;
	else
		hash_del(&user->node);
	spin_unlock(&hwt_users_lock);
	hwt_user_free(user);
}

kuid_t hwt_user_uid(const struct hwt_user *user)
{
	return user->key.ns ? user->key.ns->owner : user->key.uid;
}

/* -- Counts ---------------------------------------------------------------- */

static bool hwt_user_count(atomic_t *count, unsigned int max)
{
	int old = atomic_read(count);

	/* No barrier: only the number itself matters. */
	do {
		if ((unsigned int)old >= max)
			return false;
	} while (!atomic_try_cmpxchg(count, &old, old + 1));
	return true;
}

bool hwt_user_add_timeout(struct hwt_user *user)
{
	return !hwt_max_user_timeouts ||
	       hwt_user_count(&user->timeouts, hwt_max_user_timeouts);
}

void hwt_user_drop_timeout(struct hwt_user *user)
{
	if (hwt_max_user_timeouts)
		atomic_dec(&user->timeouts);
}

bool hwt_user_add_shown(struct hwt_user *user)
{
	return hwt_user_count(&user->shown, HWT_SHOWN_MAX);
}

void hwt_user_drop_shown(struct hwt_user *user)
{
	atomic_dec(&user->shown);
}

/* Return true if wheels for contexts that the caller opens do not count against max_user_wheels. */
bool hwt_user_unlimited(void)
{
	/* Write no audit record: it is normal that the task does not have the capability. */
	return !hwt_max_user_wheels ||
	       ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
}

/* -- Wheels ---------------------------------------------------------------- */

/*
 * Create a wheel, and count it against max_user_wheels unless @unlimited is true. With
 * cgroup_threads, move the wheel's threads to the caller's cgroups.
 */
struct hwt_wheel *hwt_user_create_wheel(struct hwt_user *user, bool unlimited,
					const struct hwt_wheel_params *params)
{
	struct hwt_wheel *wheel;
	int ret;

	if (!unlimited && !hwt_user_count(&user->wheels, hwt_max_user_wheels))
		return ERR_PTR(-ENOSPC);
	wheel = hwt_wheel_create(params);
	if (!IS_ERR(wheel) && hwt_cgroup_threads) {
		ret = hwt_wheel_attach_cgroups(wheel);
		if (ret) {
			hwt_wheel_destroy(wheel);
			wheel = ERR_PTR(ret);
		}
	}
	if (IS_ERR(wheel) && !unlimited)
		atomic_dec(&user->wheels);
	/* The system allows no further thread. Programs would take EAGAIN for "would block". */
	if (wheel == ERR_PTR(-EAGAIN))
		return ERR_PTR(-ENOMEM);
	return wheel;
}

void hwt_user_destroy_wheel(struct hwt_user *user, bool unlimited, struct hwt_wheel *wheel)
{
	hwt_wheel_destroy(wheel);
	if (!unlimited)
		atomic_dec(&user->wheels);
}

/* Return the id of the caller's cgroup; 0 without cgroup_threads. No id is ever used again. */
static u64 hwt_current_cgroup(void)
{
	u64 id = 0;

	if (!hwt_cgroup_threads)
		return 0;
#ifdef CONFIG_CGROUPS
	/* No barrier: RCU only keeps the cgroup from being freed meanwhile. */
	rcu_read_lock();
	id = cgroup_id(task_dfl_cgroup(current));
	rcu_read_unlock();
#endif
	return id;
}

/* Find the home of a user's contexts in @cgroup, and count a further context of the home. */
static struct hwt_home *hwt_home_find_get(struct hwt_user *user, u64 cgroup)
{
	struct hwt_home *home, *found = NULL;

	spin_lock(&hwt_users_lock);
	list_for_each_entry(home, &user->homes, node) {
		if (home->cgroup == cgroup) {
			home->contexts++;
			found = home;
			break;
		}
	}
	spin_unlock(&hwt_users_lock);
	return found;
}

/*
 * Create the home of a user's contexts in @cgroup. Return -EAGAIN if the caller was moved to
 * another cgroup meanwhile: the threads of the new wheel may be in the wrong cgroup.
 */
static struct hwt_home *hwt_home_create(struct hwt_user *user, u64 cgroup)
	__must_hold(&user->lock)
{
	static const struct hwt_wheel_params params = { .name = "hwt_device" };
	struct hwt_home *home = kzalloc(sizeof(*home), HWT_GFP_USER);
	struct hwt_wheel *wheel;

	if (!home)
		return ERR_PTR(-ENOMEM);
	home->cgroup = cgroup;
	home->contexts = 1;
	home->unlimited = hwt_user_unlimited();
	wheel = hwt_user_create_wheel(user, home->unlimited, &params);
	if (!IS_ERR(wheel) && hwt_current_cgroup() != cgroup) {
		hwt_user_destroy_wheel(user, home->unlimited, wheel);
		wheel = ERR_PTR(-EAGAIN);
	}
	if (IS_ERR(wheel)) {
		kfree(home);
		return ERR_CAST(wheel);
	}
	home->wheel = wheel;
	spin_lock(&hwt_users_lock);
	list_add(&home->node, &user->homes);
	spin_unlock(&hwt_users_lock);
	return home;
}

/* Find or create the home for a context that the caller, whose user is @user, is opening. */
struct hwt_home *hwt_home_get(struct hwt_user *user)
{
	struct hwt_home *home;
	u64 cgroup;

	do {
		cgroup = hwt_current_cgroup();
		home = hwt_home_find_get(user, cgroup);
		if (home)
			return home;
		if (mutex_lock_killable(&user->lock))
			return ERR_PTR(-EINTR);
		home = hwt_home_find_get(user, cgroup) ?: hwt_home_create(user, cgroup);
		mutex_unlock(&user->lock);
	} while (home == ERR_PTR(-EAGAIN));
	return home;
}

/*
 * Drop a context's reference to its home. Do not take user->lock: a task that closes the last
 * descriptor of a context must not wait while a home is created.
 */
void hwt_home_put(struct hwt_user *user, struct hwt_home *home)
{
	spin_lock(&hwt_users_lock);
	if (--home->contexts)
		home = NULL;
	else
		list_del(&home->node);
	spin_unlock(&hwt_users_lock);
	if (!home)
		return;
	hwt_user_destroy_wheel(user, home->unlimited, home->wheel);
	kfree(home);
}

/* Compute the default of max_user_timeouts from max_timeouts, whose range was checked before. */
void __init hwt_users_init(void)
{
	if (hwt_max_user_timeouts == UINT_MAX)
		hwt_max_user_timeouts = min_t(u64, (u64)hwt_max_timeouts * HWT_USER_CONTEXTS,
					      UINT_MAX - 1);
}
