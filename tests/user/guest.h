/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tests ask of the guest that they run in.
 */
#ifndef HWT_GUEST_H
#define HWT_GUEST_H

#include "hwt_dev.h"

/* A number that NAME on the kernel's command line gives, or what the test takes by itself. */
static inline unsigned int given(const char *name, unsigned int normal)
{
	const char *env = getenv(name);

	return env && atoi(env) > 0 ? (unsigned int)atoi(env) : normal;
}

static inline bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

#endif /* HWT_GUEST_H */
