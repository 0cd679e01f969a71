/* SPDX-License-Identifier: GPL-2.0-only */
/* Where older kernels declare kvmalloc() and its like. */
#include <linux/slab.h>
