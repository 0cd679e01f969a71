/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernel versions, 6.1 and later, that only tests and benchmarks need.
 */
#ifndef _HWT_KTEST_COMPAT_H
#define _HWT_KTEST_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>

/* 6.13 replaced hrtimer_init() and the assignment of ->function by hrtimer_setup(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif /* _HWT_KTEST_COMPAT_H */
