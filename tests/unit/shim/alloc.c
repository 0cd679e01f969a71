// SPDX-License-Identifier: GPL-2.0-only
/* Memory allocations that are counted, filled, and fail on demand. */
#include <string.h>

#include "shim.h"

unsigned int shim_allocated;
unsigned int shim_fail_at;

void *shim_alloc_filled(size_t size, int byte)
{
	void *block;

	if (shim_fail_at && !--shim_fail_at)
		return NULL;
	/* The size is not rounded up, so that the address sanitizer knows the end. */
	if (posix_memalign(&block, 64, size))
		abort();
	__atomic_add_fetch(&shim_allocated, 1, __ATOMIC_RELAXED);
	return memset(block, byte, size);
}

void shim_free(const void *block)
{
	if (block)
		__atomic_sub_fetch(&shim_allocated, 1, __ATOMIC_RELAXED);
	free((void *)block);
}
