/* SPDX-License-Identifier: GPL-2.0-only */
/* Wheels in debugfs */
#ifndef _HWT_CORE_DEBUGFS_H
#define _HWT_CORE_DEBUGFS_H

#include "core/wheel.h"

extern struct dentry *hwt_debugfs_root;

void hwt_debugfs_init(void);
void hwt_debugfs_add(struct hwt_wheel *wheel);

#endif /* _HWT_CORE_DEBUGFS_H */
