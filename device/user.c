// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the limits of a user, for all of its contexts together
 *
 * The user of a context is the real user id of the process that opened it; in a user namespace, the
 * namespace's owner, see hwt_user_answerable(). The processes that use the context do not matter.
 *
 * Objects that have a limit are counted exactly. The count of timeouts changes when one is created
 * and when its id ends, never when one is modified or fires, and not at all without a limit. So one
 * counter for all CPUs is cheap enough beside the allocation that each timeout takes.
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

/* The default of max_user_timeouts, in multiples of max_timeouts. */
#define HWT_USER_CONTEXTS	4

/* Dying timeouts of a user from which on it waits before it creates more. See docs/limits.md. */
#define HWT_DYING_MAX		100000

/* Contexts of a user in debugfs: that memory is charged to no cgroup. */
#define HWT_SHOWN_MAX		1000

unsigned int hwt_max_user_timeouts = UINT_MAX;
module_param_named(max_user_timeouts, hwt_max_user_timeouts, uint, 0444);
MODULE_PARM_DESC(max_user_timeouts, "Most timeouts of one user's open /dev/hwt together (0: no limit, default 4 times max_timeouts)");

unsigned int hwt_max_user_wheels = 16;
module_param_named(max_user_wheels, hwt_max_user_wheels, uint, 0444);
MODULE_PARM_DESC(max_user_wheels, "Most private wheels of one user; CAP_SYS_RESOURCE is not limited (0: no limit, default 16)");

/**
 * struct hwt_user - a user that has contexts
 * @node:     node in the table of users; protected by hwt_users_lock
 * @uid:      the user id. Constant.
 * @contexts: number of contexts; protected by hwt_users_lock
 * @wheels:   number of private wheels, except those of unlimited contexts
 * @shown:    number of contexts that have a directory in debugfs
 * @timeouts: number of timeouts of all contexts, if that is limited
 * @dying:    number of timeouts whose ids have ended while a wheel holds them: they are not in
 *            @timeouts any more, but still are memory, and delay other timeouts submitted later
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

/* Return the user of an id, with one context more; NULL if there is none yet. */
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
 * Return the id of the user whose limits apply to the caller. In a user namespace of an ordinary
 * user, that is the namespace's owner: otherwise each id that the owner may map (subuid(5)) would
 * add the limits of a user.
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
 * hwt_user_get() - add a context to the caller's user
 *
 * Return: the user, for hwt_user_put(); NULL if there is no memory.
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
 * hwt_user_put() - remove a context from its user
 * @user: the user; no wheel holds a timeout of the context any more
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

/* Return the id of a user. */
kuid_t hwt_user_uid(const struct hwt_user *user)
{
	return user->uid;
}

/* Increment a count that is less than @max. Return false if it is not. */
static bool hwt_user_count(atomic_t *count, unsigned int max)
{
	int old = atomic_read(count);

	/* No barrier: the count orders nothing. */
	do {
		if ((unsigned int)old >= max)
			return false;
	} while (!atomic_try_cmpxchg(count, &old, old + 1));
	return true;
}

/**
 * hwt_user_add_timeout() - count another timeout of a user
 * @user: the user
 *
 * Return: false if the user is at its limit; otherwise hwt_user_drop_timeout() must follow.
 */
bool hwt_user_add_timeout(struct hwt_user *user)
{
	return !hwt_max_user_timeouts ||
	       hwt_user_count(&user->timeouts, hwt_max_user_timeouts);
}

/**
 * hwt_user_drop_timeout() - count one timeout less
 * @user: the user
 */
void hwt_user_drop_timeout(struct hwt_user *user)
{
	if (hwt_max_user_timeouts)
		atomic_dec(&user->timeouts);
}

/**
 * hwt_user_add_shown() - count another context in debugfs
 * @user: the context's user
 *
 * Return: false if the user is at its limit; otherwise hwt_user_drop_shown() must follow.
 */
bool hwt_user_add_shown(struct hwt_user *user)
{
	return hwt_user_count(&user->shown, HWT_SHOWN_MAX);
}

/**
 * hwt_user_drop_shown() - count one context less in debugfs
 * @user: the context's user
 */
void hwt_user_drop_shown(struct hwt_user *user)
{
	atomic_dec(&user->shown);
}

/**
 * hwt_user_add_dying() - count a timeout whose id has ended, and that a wheel still holds
 * @user: the timeout's user; hwt_user_drop_dying() must follow
 */
void hwt_user_add_dying(struct hwt_user *user)
{
	percpu_counter_inc(&user->dying);
}

/**
 * hwt_user_drop_dying() - count one dying timeout less: the wheel has released it
 * @user: the timeout's user
 */
void hwt_user_drop_dying(struct hwt_user *user)
{
	percpu_counter_dec(&user->dying);
}

/**
 * hwt_user_many_dying() - are too many timeouts of a user dying?
 * @user: the user
 *
 * The cheap read is off by up to a batch for each CPU, with some hundred CPUs by more than the
 * limit. The exact sum confirms it, since a program could wait for ever otherwise.
 *
 * Return: true if the user's programs should not create timeouts now.
 */
bool hwt_user_many_dying(struct hwt_user *user)
{
	return unlikely(percpu_counter_read_positive(&user->dying) >= HWT_DYING_MAX) &&
	       percpu_counter_sum(&user->dying) >= HWT_DYING_MAX;
}

/* May contexts that the caller opens have any number of private wheels? */
bool hwt_user_unlimited(void)
{
	/* A task without the capability is the normal case, and not worth a report. */
	return !hwt_max_user_wheels ||
	       ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
}

/**
 * hwt_user_create_wheel() - create a private wheel for a context
 * @ctx:    the context
 * @params: the wheel's parameters
 *
 * Return: the wheel, for hwt_user_destroy_wheel(), or ERR_PTR: -EAGAIN if the user is at its limit,
 * or an error of hwt_wheel_create().
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
 * hwt_user_destroy_wheel() - destroy a private wheel
 * @ctx:   the context
 * @wheel: the wheel
 */
void hwt_user_destroy_wheel(struct hwt_context *ctx, struct hwt_wheel *wheel)
{
	hwt_wheel_destroy(wheel);
	if (!ctx->unlimited)
		atomic_dec(&ctx->user->wheels);
}

/* Set the default of max_user_timeouts. max_timeouts has been checked. */
void __init hwt_users_init(void)
{
	if (hwt_max_user_timeouts == UINT_MAX)
		hwt_max_user_timeouts = min_t(u64, (u64)hwt_max_timeouts * HWT_USER_CONTEXTS,
					      UINT_MAX - 1);
}
