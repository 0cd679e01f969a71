/* SPDX-License-Identifier: GPL-2.0-only */
/* Without CONFIG_LOCKDEP hwt.h names a type and uses nothing. */
#ifndef _SHIM_LINUX_LOCKDEP_H
#define _SHIM_LINUX_LOCKDEP_H

struct lock_class_key;

#endif /* _SHIM_LINUX_LOCKDEP_H */
