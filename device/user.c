// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: users, and the limit of the timeouts of a user
 *
 * The user of a context is the real user id of the task that opens it, except in a user namespace:
 * see hwt_user_identify().
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "device/context.h"
#include "device/user.h"

unsigned int hwt_max_user_timeouts = UINT_MAX;
module_param_named(max_user_timeouts, hwt_max_user_timeouts, uint, 0444);
MODULE_PARM_DESC(max_user_timeouts, "Most timeouts of one user's open /dev/hwt together (0: no limit, default 4 times max_timeouts)");

/**
 * struct hwt_user - a user that has contexts
 * @node:     node in the hash table hwt_users; protected by hwt_users_lock
 * @uid:      the user id; if @ns is not NULL, that of its owner. Constant.
 * @ns:       a user namespace that counts as one user, with a reference; or NULL. Constant.
 * @contexts: number of contexts; protected by hwt_users_lock
 * @timeouts: number of timeouts; not counted if max_user_timeouts is 0 (no limit)
 */
struct hwt_user {
	struct hlist_node	node;
	kuid_t			uid;
	struct user_namespace	*ns;
	unsigned int		contexts;
	atomic_t		timeouts;
};

static DEFINE_HASHTABLE(hwt_users, 6);
static DEFINE_SPINLOCK(hwt_users_lock);

/* -- Users ----------------------------------------------------------------- */

/*
 * Identify the user whose limits apply to the caller. In a user namespace that an ordinary user has
 * created, the caller counts as that user. A namespace that root has created (for a container)
 * counts as one user, so that it does not get the limits once for each of its ids. Of nested
 * namespaces, the outermost one decides.
 */
static void hwt_user_identify(struct hwt_user *user)
{
	struct user_namespace *ns = current_user_ns();

	user->uid = current_uid();
	if (ns == &init_user_ns)
		return;
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	user->uid = ns->owner;
	if (uid_eq(ns->owner, GLOBAL_ROOT_UID))
		user->ns = get_user_ns(ns);
}

static unsigned long hwt_user_hash(const struct hwt_user *user)
{
	return __kuid_val(user->uid) ^ (unsigned long)user->ns;
}

static struct hwt_user *hwt_user_find(const struct hwt_user *like)
	__must_hold(&hwt_users_lock)
{
	struct hwt_user *user;

	hash_for_each_possible(hwt_users, user, node, hwt_user_hash(like))
		if (user->ns == like->ns && uid_eq(user->uid, like->uid))
			return user;
	return NULL;
}

static void hwt_user_free(struct hwt_user *user)
{
	if (!user)
		return;
	put_user_ns(user->ns);
	kfree(user);
}

/* Find or create the user of the caller, and count a new context of this user. */
struct hwt_user *hwt_user_get(void)
{
	struct hwt_user *user, *new = kzalloc(sizeof(*new), HWT_GFP_USER);

	if (!new)
		return NULL;
	hwt_user_identify(new);
	spin_lock(&hwt_users_lock);
	user = hwt_user_find(new);
	if (!user) {
		hash_add(hwt_users, &new->node, hwt_user_hash(new));
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
	return user->uid;
}

/* -- Timeouts -------------------------------------------------------------- */

bool hwt_user_add_timeout(struct hwt_user *user)
{
	/* The count is never above the limit, so it is enough to compare for equality. */
	return !hwt_max_user_timeouts ||
	       atomic_add_unless(&user->timeouts, 1, hwt_max_user_timeouts);
}

void hwt_user_drop_timeout(struct hwt_user *user)
{
	if (hwt_max_user_timeouts)
		atomic_dec(&user->timeouts);
}
