/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HWT_IOC_SETUP, and the default setup of a context
 */
#ifndef _HWT_DEVICE_SETUP_H
#define _HWT_DEVICE_SETUP_H

struct hwt_context;
struct hwt_setup_args;

int hwt_setup(struct hwt_context *ctx, const struct hwt_setup_args *args);

#endif /* _HWT_DEVICE_SETUP_H */
