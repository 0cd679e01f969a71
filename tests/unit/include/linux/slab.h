/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is counted, poisoned and refused on demand; see alloc.c. */
#ifndef _SHIM_LINUX_SLAB_H
#define _SHIM_LINUX_SLAB_H

#include <linux/types.h>

/* Blocks in use. */
extern unsigned int shim_allocated;
/* The so-many-th allocation from now fails; 0: none does. */
extern unsigned int shim_fail_at;

#define PAGE_SIZE			4096UL
#define PAGE_ALLOC_COSTLY_ORDER		3

void *__vmalloc_array(size_t n, size_t size, gfp_t gfp);
void *kvmalloc_array(size_t n, size_t size, gfp_t gfp);
void *kvcalloc(size_t n, size_t size, gfp_t gfp);
void kvfree(const void *block);

#endif /* _SHIM_LINUX_SLAB_H */
