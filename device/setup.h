/* SPDX-License-Identifier: GPL-2.0-only */
/* HWT_IOC_SETUP. open() calls it without parameters, which is the default setup of a context. */
#ifndef _HWT_DEVICE_SETUP_H
#define _HWT_DEVICE_SETUP_H

struct hwt_context;

int hwt_ioctl_setup(struct hwt_context *ctx, void *arg);

#endif /* _HWT_DEVICE_SETUP_H */
