/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time namespaces.
 */
#ifndef HWT_TIMENS_H
#define HWT_TIMENS_H

#include <sched.h>

#include "hwt_dev.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

/* Children made from now on have this clock so many seconds ahead. Returns 0 or an error. */
static inline int timens_for_children(clockid_t clock, long ahead)
{
	char text[64];
	int fd, len = snprintf(text, sizeof(text), "%d %ld 0\n", clock, ahead);
	bool done;

	if (unshare(CLONE_NEWTIME))
		return -errno;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	done = write(fd, text, len) == len;
	close(fd);
	return done ? 0 : -EIO;
}

#endif /* HWT_TIMENS_H */
