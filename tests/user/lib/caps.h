/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Capabilities of the calling thread, without a library.
 */
#ifndef HWT_CAPS_H
#define HWT_CAPS_H

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Have it in effect, or not; what is permitted stays. Returns 0 or a negative errno. */
static inline int set_capability(int cap, bool set)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	if (set)
		data[cap / 32].effective |= 1U << cap % 32;
	else
		data[cap / 32].effective &= ~(1U << cap % 32);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

#endif /* HWT_CAPS_H */
