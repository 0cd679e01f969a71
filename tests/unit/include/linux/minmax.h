/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As in tools/include/linux/kernel.h but for the check that both sides are of one
 * type: u64 is "unsigned long" there, and "unsigned long long" in the kernel, whose
 * own build does check.
 */
#ifndef _SHIM_LINUX_MINMAX_H
#define _SHIM_LINUX_MINMAX_H

#include <linux/kernel.h>

#undef min
#undef max
#define min(x, y) ({			\
	typeof(x) _x = (x);		\
	typeof(y) _y = (y);		\
	_x < _y ? _x : _y; })
#define max(x, y) ({			\
	typeof(x) _x = (x);		\
	typeof(y) _y = (y);		\
	_x > _y ? _x : _y; })

#endif /* _SHIM_LINUX_MINMAX_H */
