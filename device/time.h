/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Conversion of times between a context's clock and a program's time namespace
 */
#ifndef _HWT_DEVICE_TIME_H
#define _HWT_DEVICE_TIME_H

#include <linux/types.h>

s64 hwt_time_offset(int clock);
u64 hwt_time_from_user(u64 ns, s64 offset, u64 rate);
u64 hwt_time_to_user(u64 ns, s64 offset);

#endif /* _HWT_DEVICE_TIME_H */
