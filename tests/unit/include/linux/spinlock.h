/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _HWT_TEST_SPINLOCK_H
#define _HWT_TEST_SPINLOCK_H

/* hwt.h has it as a member. Nobody takes one here. */
typedef struct {
	int	unused;
} raw_spinlock_t;

#endif
