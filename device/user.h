/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Users: the limits for all contexts of a user together, and the wheels that these contexts share
 */
#ifndef _HWT_DEVICE_USER_H
#define _HWT_DEVICE_USER_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct hwt_user;
struct hwt_wheel;
struct hwt_wheel_params;

/**
 * struct hwt_home - the wheel that a user's contexts share; with cgroup_threads, those of a cgroup
 * @node:      node in &hwt_user.homes; protected by hwt_users_lock
 * @cgroup:    id of the cgroup (in the unified hierarchy) of the processes that opened the
 *             contexts; 0 without cgroup_threads. Constant.
 * @contexts:  number of open contexts that share the wheel; protected by hwt_users_lock
 * @unlimited: true if the wheel does not count against max_user_wheels, the user's limit. Constant.
 * @wheel:     the wheel. Constant.
 */
struct hwt_home {
	struct list_head	node;
	u64			cgroup;
	unsigned int		contexts;
	bool			unlimited;
	struct hwt_wheel	*wheel;
};

extern unsigned int hwt_max_user_timeouts;
extern unsigned int hwt_max_user_wheels;

void hwt_users_init(void);
struct hwt_user *hwt_user_get(void);
void hwt_user_put(struct hwt_user *user);
kuid_t hwt_user_uid(const struct hwt_user *user);
bool hwt_user_add_timeout(struct hwt_user *user);
void hwt_user_drop_timeout(struct hwt_user *user);
bool hwt_user_add_shown(struct hwt_user *user);
void hwt_user_drop_shown(struct hwt_user *user);
bool hwt_user_unlimited(void);
struct hwt_wheel *hwt_user_create_wheel(struct hwt_user *user, bool unlimited,
					const struct hwt_wheel_params *params);
void hwt_user_destroy_wheel(struct hwt_user *user, bool unlimited, struct hwt_wheel *wheel);
struct hwt_home *hwt_home_get(struct hwt_user *user);
void hwt_home_put(struct hwt_user *user, struct hwt_home *home);

#endif /* _HWT_DEVICE_USER_H */
