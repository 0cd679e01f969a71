// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps a pointer for test_leaver while that is away. It uses nothing of hwt's, so it does
 * not keep hwt.ko.
 *
 * hwt-test: manual
 */
#include <linux/module.h>

#include "test_keeper.h"

void *test_kept;
EXPORT_SYMBOL_GPL(test_kept);

MODULE_DESCRIPTION("hwt: keeps a pointer");
MODULE_LICENSE("GPL");
