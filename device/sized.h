/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Structures of which the program may know an older or a newer version than the kernel
 *
 * As copy_struct_from_user() does for a single one: what an older program does not have is zero,
 * and what a newer one has besides must be zero.
 */
#ifndef _HWT_DEVICE_SIZED_H
#define _HWT_DEVICE_SIZED_H

#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>

/**
 * hwt_sized_load() - take over a program's structure
 * @to:        the kernel's structure
 * @size:      its size
 * @from:      the program's, which is read once but for what the kernel does not know
 * @from_size: the size that the program knows
 *
 * Return: 0, or -E2BIG if something is set that the kernel does not know.
 */
static inline int hwt_sized_load(void *to, size_t size, const void *from, size_t from_size)
{
	if (from_size > size) {
		memcpy(to, from, size);
		return memchr_inv((const u8 *)from + size, 0, from_size - size) ? -E2BIG : 0;
	}
	memcpy(to, from, from_size);
	memset((u8 *)to + from_size, 0, size - from_size);
	return 0;
}

/**
 * hwt_sized_store() - give a structure to a program
 * @to:      memory for the program's structure
 * @to_size: the size that the program knows
 * @from:    the kernel's structure
 * @size:    its size
 */
static inline void hwt_sized_store(void *to, size_t to_size, const void *from, size_t size)
{
	if (to_size > size) {
		memset((u8 *)to + size, 0, to_size - size);
		to_size = size;
	}
	memcpy(to, from, to_size);
}

#endif /* _HWT_DEVICE_SIZED_H */
