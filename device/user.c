// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: users, and the limit of the timeouts of a user
 *
 * The user of a context is the real user id of the task that opens it, except in a user namespace:
 * see hwt_user_key_get().
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "device/context.h"
#include "device/user.h"

/* The default of the parameter max_user_timeouts is this many times max_timeouts. */
#define HWT_USER_CONTEXTS	4

unsigned int hwt_max_user_timeouts = UINT_MAX;
module_param_named(max_user_timeouts, hwt_max_user_timeouts, uint, 0444);
MODULE_PARM_DESC(max_user_timeouts, "Most timeouts of one user's open /dev/hwt together (0: no limit, default 4 times max_timeouts)");

/**
 * struct hwt_user_key - the identity of a user
 * @uid: the user id; INVALID_UID if @ns is not NULL
 * @ns:  a user namespace that counts as one user, to which the key has a reference; or NULL
 */
struct hwt_user_key {
	kuid_t			uid;
	struct user_namespace	*ns;
};

/**
 * struct hwt_user - a user that has contexts
 * @node:     node in the hash table hwt_users; protected by hwt_users_lock
 * @key:      the identity of the user. Constant.
 * @contexts: number of contexts; protected by hwt_users_lock
 * @timeouts: number of timeouts; 0 if max_user_timeouts is 0
 */
struct hwt_user {
	struct hlist_node	node;
	struct hwt_user_key	key;
	unsigned int		contexts;
	atomic_t		timeouts;
};

static DEFINE_HASHTABLE(hwt_users, 6);
static DEFINE_SPINLOCK(hwt_users_lock);

/* -- Users ----------------------------------------------------------------- */

/*
 * Get the key of the user whose limits apply to the caller. In a user namespace that an ordinary
 * user has created, the caller counts as that user. A namespace that root has created (for a
 * container) counts as one user, so that it does not get the limits once for each of its ids. Of
 * nested namespaces, the outermost one decides.
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
	kfree(user);
}

/* Find or create the user of the caller, and count a new context of this user. */
struct hwt_user *hwt_user_get(void)
{
	struct hwt_user *user, *new = kzalloc(sizeof(*new), HWT_GFP_USER);

	if (!new)
		return NULL;
	hwt_user_key_get(&new->key);
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

/* -- Timeouts -------------------------------------------------------------- */

bool hwt_user_add_timeout(struct hwt_user *user)
{
	int old = atomic_read(&user->timeouts);

	if (!hwt_max_user_timeouts)
		return true;
	/* No barrier is needed: the count guards no other data. */
	do {
		if ((unsigned int)old >= hwt_max_user_timeouts)
			return false;
	} while (!atomic_try_cmpxchg(&user->timeouts, &old, old + 1));
	return true;
}

void hwt_user_drop_timeout(struct hwt_user *user)
{
	if (hwt_max_user_timeouts)
		atomic_dec(&user->timeouts);
}

/* Set the default of max_user_timeouts. hwt_contexts_init() has checked max_timeouts before. */
void __init hwt_users_init(void)
{
	if (hwt_max_user_timeouts == UINT_MAX)
		hwt_max_user_timeouts = min_t(u64, (u64)hwt_max_timeouts * HWT_USER_CONTEXTS,
					      UINT_MAX - 1);
}
