/* SPDX-License-Identifier: GPL-2.0-only */
/* Wheels in debugfs */
#ifndef _HWT_CORE_DEBUGFS_H
#define _HWT_CORE_DEBUGFS_H

#include "core/wheel.h"

struct dentry *hwt_debugfs_init(void);
void hwt_debugfs_exit(void);
void hwt_debugfs_add(struct hwt_wheel *wheel);
void hwt_debugfs_remove(struct hwt_wheel *wheel);

#endif /* _HWT_CORE_DEBUGFS_H */
