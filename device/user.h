/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The limits of a user, for all of its contexts together
 */
#ifndef _HWT_DEVICE_USER_H
#define _HWT_DEVICE_USER_H

#include <linux/types.h>
#include <linux/uidgid.h>

struct hwt_context;
struct hwt_user;
struct hwt_wheel;
struct hwt_wheel_params;

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
void hwt_user_add_dying(struct hwt_user *user);
void hwt_user_drop_dying(struct hwt_user *user);
bool hwt_user_many_dying(struct hwt_user *user);
bool hwt_user_unlimited(void);
struct hwt_wheel *hwt_user_create_wheel(struct hwt_context *ctx,
					const struct hwt_wheel_params *params);
void hwt_user_destroy_wheel(struct hwt_context *ctx, struct hwt_wheel *wheel);

#endif /* _HWT_DEVICE_USER_H */
