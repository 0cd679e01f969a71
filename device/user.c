// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: what one user may have, in all contexts together
 *
 * A user is the real user id of whoever opened the context; in a user namespace, of who has made
 * that, see hwt_user_answerable(). Who uses it does not matter. What has a limit is counted
 * exactly. That is changed when a timeout is made and when its id ends, never when one is moved
 * or fires, and not at all if there is no limit. So one counter for all CPUs is cheap enough:
 * making a timeout is an allocation, and one thread has to put it in its place.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/percpu_counter.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "hwt.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/user.h"

/* Not given: so many contexts' worth. */
#define HWT_USER_CONTEXTS	4

/* With so many of its timeouts dying, a user waits before it makes more. See docs/limits.md. */
#define HWT_DYING_MAX		100000

/* So many contexts of a user have a directory in debugfs: memory that is charged to nobody. */
#define HWT_SHOWN_MAX		1000

unsigned int hwt_max_user_timeouts = UINT_MAX;
module_param_named(max_user_timeouts, hwt_max_user_timeouts, uint, 0444);
MODULE_PARM_DESC(max_user_timeouts, "Most timeouts of one user's open /dev/hwt together (0: no limit, default 4 times max_timeouts)");

unsigned int hwt_max_user_wheels = 16;
module_param_named(max_user_wheels, hwt_max_user_wheels, uint, 0444);
MODULE_PARM_DESC(max_user_wheels, "Most private wheels of one user; CAP_SYS_RESOURCE is not limited (0: no limit, default 16)");

/**
 * struct hwt_user - who has contexts
 * @node:     in the table of users
 * @uid:      who it is
 * @contexts: how many; as the two above, protected by the table's lock
 * @wheels:   private wheels, but for those of contexts that are not limited
 * @shown:    contexts that have a directory in debugfs
 * @timeouts: timeouts of all contexts, if their number is limited
 * @dying:    timeouts whose ids have ended while a wheel holds them: they are not counted
 *            any more, but are memory still, and on a list that others' are behind
 */
struct hwt_user {
	struct hlist_node	node;
	kuid_t			uid;
	unsigned int		contexts;
	atomic_t		wheels;
	atomic_t		shown;
	atomic_t		timeouts;
	struct percpu_counter	dying;
};

static DEFINE_HASHTABLE(hwt_users, 6);
static DEFINE_SPINLOCK(hwt_users_lock);

/* The user of that id, with one context more; NULL if there is none yet. */
static struct hwt_user *hwt_user_find_get(kuid_t uid)
	__must_hold(&hwt_users_lock)
{
	struct hwt_user *user;

	hash_for_each_possible(hwt_users, user, node, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid)) {
			user->contexts++;
			return user;
		}
	}
	return NULL;
}

static void hwt_user_free(struct hwt_user *user)
{
	if (user)
		percpu_counter_destroy(&user->dying);
	kfree(user);
}

/*
 * Whose limits are the caller's. In a user namespace that an ordinary user has made, those of
 * that user: else all ids that it may map there (subuid(5)) would have the limits of one each.
 */
static kuid_t hwt_user_answerable(void)
{
	const struct user_namespace *ns;
	kuid_t uid = current_uid();

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

/**
 * hwt_user_get() - the user who opens a context
 *
 * Return: the caller's; hwt_user_put() gives it back. NULL: no memory.
 */
struct hwt_user *hwt_user_get(void)
{
	kuid_t uid = hwt_user_answerable();
	struct hwt_user *user, *new;

	spin_lock(&hwt_users_lock);
	user = hwt_user_find_get(uid);
	spin_unlock(&hwt_users_lock);
	if (user)
		return user;
	new = kzalloc(sizeof(*new), HWT_GFP_USER);
	if (!new)
		return NULL;
	if (percpu_counter_init(&new->dying, 0, HWT_GFP_USER)) {
		kfree(new);
		return NULL;
	}
	new->uid = uid;
	new->contexts = 1;
	spin_lock(&hwt_users_lock);
	user = hwt_user_find_get(uid);
	if (!user) {
		hash_add(hwt_users, &new->node, __kuid_val(uid));
		swap(user, new);
	}
	spin_unlock(&hwt_users_lock);
	hwt_user_free(new);
	return user;
}

/**
 * hwt_user_put() - a context ends
 * @user: its user; the context has given back all it had, and the wheels all its timeouts
 */
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

/* Who it is, for those who want to know. */
kuid_t hwt_user_uid(const struct hwt_user *user)
{
	return user->uid;
}

/* One more, if there are less than @max. */
static bool hwt_user_count(atomic_t *count, unsigned int max)
{
	int old = atomic_read(count);

	/* No barrier: a count, by which nothing is ordered. */
	do {
		if ((unsigned int)old >= max)
			return false;
	} while (!atomic_try_cmpxchg(count, &old, old + 1));
	return true;
}

/**
 * hwt_user_add_timeout() - a user is to have another timeout
 * @user: the user
 *
 * Return: false if it has as many as it may. Else hwt_user_drop_timeout() follows some day.
 */
bool hwt_user_add_timeout(struct hwt_user *user)
{
	return !hwt_max_user_timeouts ||
	       hwt_user_count(&user->timeouts, hwt_max_user_timeouts);
}

/**
 * hwt_user_drop_timeout() - a user has one timeout less
 * @user: the user
 */
void hwt_user_drop_timeout(struct hwt_user *user)
{
	if (hwt_max_user_timeouts)
		atomic_dec(&user->timeouts);
}

/**
 * hwt_user_add_shown() - a context is to have a directory in debugfs
 * @user: whose it is
 *
 * Return: false if it has to do without. Else hwt_user_drop_shown() follows.
 */
bool hwt_user_add_shown(struct hwt_user *user)
{
	return hwt_user_count(&user->shown, HWT_SHOWN_MAX);
}

/**
 * hwt_user_drop_shown() - that directory is gone
 * @user: whose it was
 */
void hwt_user_drop_shown(struct hwt_user *user)
{
	atomic_dec(&user->shown);
}

/**
 * hwt_user_add_dying() - the id of a timeout ends, and a wheel holds it still
 * @user: whose it is; hwt_user_drop_dying() follows
 */
void hwt_user_add_dying(struct hwt_user *user)
{
	percpu_counter_inc(&user->dying);
}

/**
 * hwt_user_drop_dying() - the wheel has let go of it
 * @user: whose it was
 */
void hwt_user_drop_dying(struct hwt_user *user)
{
	percpu_counter_dec(&user->dying);
}

/**
 * hwt_user_many_dying() - are so many dying that no more should be made?
 * @user: the user
 *
 * What is read at a glance is off by a batch for each CPU, which with some hundred CPUs is more
 * than there may be: so nobody waits, possibly for ever, for that alone. Return: the user's
 * programs should wait.
 */
bool hwt_user_many_dying(struct hwt_user *user)
{
	return unlikely(percpu_counter_read_positive(&user->dying) >= HWT_DYING_MAX) &&
	       percpu_counter_sum(&user->dying) >= HWT_DYING_MAX;
}

/* May whoever opens a context have as many private wheels as there is memory for? */
bool hwt_user_unlimited(void)
{
	/* Not to have is the normal case, and nothing to be reported. */
	return !hwt_max_user_wheels ||
	       ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
}

/**
 * hwt_user_create_wheel() - make a private wheel for a context
 * @ctx:    the context
 * @params: of what kind
 *
 * Return: the wheel, which hwt_user_destroy_wheel() ends, or ERR_PTR: -EAGAIN if the user has as
 * many as it may, or as hwt_wheel_create() fails.
 */
struct hwt_wheel *hwt_user_create_wheel(struct hwt_context *ctx,
					const struct hwt_wheel_params *params)
{
	struct hwt_wheel *wheel;

	if (!ctx->unlimited && !hwt_user_count(&ctx->user->wheels, hwt_max_user_wheels))
		return ERR_PTR(-EAGAIN);
	wheel = hwt_wheel_create(params);
	if (IS_ERR(wheel) && !ctx->unlimited)
		atomic_dec(&ctx->user->wheels);
	return wheel;
}

/**
 * hwt_user_destroy_wheel() - end a private wheel
 * @ctx:   its context
 * @wheel: the wheel
 */
void hwt_user_destroy_wheel(struct hwt_context *ctx, struct hwt_wheel *wheel)
{
	hwt_wheel_destroy(wheel);
	if (!ctx->unlimited)
		atomic_dec(&ctx->user->wheels);
}

/* Once hwt_max_timeouts is known to be good. */
void __init hwt_users_init(void)
{
	if (hwt_max_user_timeouts == UINT_MAX)
		hwt_max_user_timeouts = min_t(u64, (u64)hwt_max_timeouts * HWT_USER_CONTEXTS,
					      UINT_MAX - 1);
}
