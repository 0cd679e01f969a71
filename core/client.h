/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of the core for a client in hwt.ko, in addition to hwt.h
 */
#ifndef _HWT_CORE_CLIENT_H
#define _HWT_CORE_CLIENT_H

struct hwt_wheel;

int hwt_wheel_attach_cgroups(struct hwt_wheel *wheel);
void hwt_debugfs_make(void (*make)(void *of), void *of);

#endif /* _HWT_CORE_CLIENT_H */
