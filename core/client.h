/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the core has for a client in hwt.ko, beside hwt.h
 */
#ifndef _HWT_CORE_CLIENT_H
#define _HWT_CORE_CLIENT_H

struct hwt_wheel;

void hwt_wheel_kick(struct hwt_wheel *wheel);
void hwt_debugfs_make(void (*make)(void *of), void *of);

#endif /* _HWT_CORE_CLIENT_H */
