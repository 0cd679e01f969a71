/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Creation and removal of /dev/hwt, for the module's init and exit
 */
#ifndef _HWT_CHARDEV_H
#define _HWT_CHARDEV_H

struct dentry;

int hwt_chardev_init(struct dentry *debugfs);
void hwt_chardev_exit(void);

#endif /* _HWT_CHARDEV_H */
