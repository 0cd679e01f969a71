// SPDX-License-Identifier: GPL-2.0-only
/* The allocator behind include/linux/slab.h. */
#include <stdlib.h>
#include <string.h>

#include <linux/slab.h>

unsigned int shim_allocated;
unsigned int shim_fail_at;

static void *shim_alloc(size_t n, size_t size, int fill)
{
	void *block;

	if (shim_fail_at && !--shim_fail_at)
		return NULL;
	block = calloc(n, size);
	if (!block)
		abort();
	memset(block, fill, n * size);
	shim_allocated++;
	return block;
}

void *kvmalloc_array(size_t n, size_t size, gfp_t gfp)
{
	(void)gfp;
	return shim_alloc(n, size, 0x6b);
}

void *__vmalloc_array(size_t n, size_t size, gfp_t gfp)
{
	return kvmalloc_array(n, size, gfp);
}

void *kvcalloc(size_t n, size_t size, gfp_t gfp)
{
	(void)gfp;
	return shim_alloc(n, size, 0);
}

void kvfree(const void *block)
{
	if (block)
		shim_allocated--;
	free((void *)block);
}
