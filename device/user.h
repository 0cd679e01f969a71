/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Users: the limit for all contexts of a user together
 */
#ifndef _HWT_DEVICE_USER_H
#define _HWT_DEVICE_USER_H

#include <linux/types.h>
#include <linux/uidgid.h>

struct hwt_user;

extern unsigned int hwt_max_user_timeouts;

struct hwt_user *hwt_user_get(void);
void hwt_user_put(struct hwt_user *user);
kuid_t hwt_user_uid(const struct hwt_user *user);
bool hwt_user_add_timeout(struct hwt_user *user);
void hwt_user_drop_timeout(struct hwt_user *user);

#endif /* _HWT_DEVICE_USER_H */
