/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timeouts on a wheel of their own, which a kernel thread drives (HWT_SETUP_THREAD)
 */
#ifndef _HWT_DEVICE_THREAD_H
#define _HWT_DEVICE_THREAD_H

#include <linux/types.h>

struct hwt_entry;
struct hwt_op;
struct hwt_setup_args;
struct hwt_wheel_params;

int hwt_thread_params(const struct hwt_setup_args *args, struct hwt_wheel_params *params);
void hwt_thread_init(struct hwt_entry *entry);
int hwt_thread_arm(struct hwt_entry *entry, const struct hwt_op *op, u64 time_ns, u64 period_ns);

#endif /* _HWT_DEVICE_THREAD_H */
