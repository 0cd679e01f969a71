/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loading and unloading modules, for tests that are not given one ("hwt-test: noload"). A
 * call returns 0 or a negative errno.
 */
#ifndef HWT_MODULE_H
#define HWT_MODULE_H

#include <sys/syscall.h>

#include "hwt_dev.h"

/* One of those that were built. */
static inline int open_module(const char *name)
{
	const char *dir = getenv("HWT_MODULES");
	char path[256];

	snprintf(path, sizeof(path), "%s/%s.ko", dir ? dir : ".", name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static inline int load_module(int file, const char *params)
{
	return syscall(SYS_finit_module, file, params, 0) ? hwt_errno() : 0;
}

/* Refused at once while it is in use. */
static inline int unload_module(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? hwt_errno() : 0;
}

#endif /* HWT_MODULE_H */
