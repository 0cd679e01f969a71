/* SPDX-License-Identifier: GPL-2.0-only */
/* Where __vmalloc_array() is declared. */
#include <linux/slab.h>
