/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernel versions, 6.1 and later. Nowhere else.
 */
#ifndef _HWT_COMPAT_H
#define _HWT_COMPAT_H

#include <linux/version.h>

#endif /* _HWT_COMPAT_H */
