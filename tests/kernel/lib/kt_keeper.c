// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps a pointer for kt_leaver while that is unloaded. This module does not depend on hwt.ko,
 * and so does not keep it loaded.
 */
#include <linux/module.h>

#include "kt_keeper.h"

void *test_kept;
EXPORT_SYMBOL_GPL(test_kept);

MODULE_DESCRIPTION("hwt: keeps a pointer");
MODULE_LICENSE("GPL");
