/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of the core for a client in hwt.ko, in addition to hwt.h
 */
#ifndef _HWT_CORE_CLIENT_H
#define _HWT_CORE_CLIENT_H

#include <linux/gfp.h>

struct hwt_wheel;
struct hwt_wheel_params;
struct module;

struct hwt_wheel *hwt_wheel_create_gfp(const struct hwt_wheel_params *params,
				       struct module *owner, gfp_t gfp);
void hwt_wheel_kick(struct hwt_wheel *wheel);
void hwt_debugfs_make(void (*make)(void *of), void *of);

#endif /* _HWT_CORE_CLIENT_H */
