/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts in /proc/PID/fdinfo and in debugfs
 */
#ifndef _HWT_DEVICE_SHOW_H
#define _HWT_DEVICE_SHOW_H

struct dentry;
struct file;
struct seq_file;

void hwt_show_fdinfo(struct seq_file *m, struct file *file);
void hwt_show_init(struct dentry *dir);

#endif /* _HWT_DEVICE_SHOW_H */
