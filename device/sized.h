/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Structures of which the program may know an older or a newer version than the kernel
 *
 * The rules are those of copy_struct_from_user(), for memory that the kernel can access directly:
 * members that an older program does not know count as zero; members that the kernel does not know
 * must be zero.
 */
#ifndef _HWT_DEVICE_SIZED_H
#define _HWT_DEVICE_SIZED_H

#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>

/*
 * Copy a program's structure @from to the kernel's structure @to. The program may change @from at
 * any time, so the copy reads each member only once. Return 0, or -E2BIG if a member that the
 * kernel does not know is not zero.
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

/* Copy a kernel's structure to a program's: members that the kernel does not know become zero. */
static inline void hwt_sized_store(void *to, size_t to_size, const void *from, size_t size)
{
	if (to_size > size) {
		memset((u8 *)to + size, 0, to_size - size);
		to_size = size;
	}
	memcpy(to, from, to_size);
}

#endif /* _HWT_DEVICE_SIZED_H */
