/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What timers.c needs of a context of /dev/hwt. Only libhwt has it: timers_device.c. The two files
 * that vendor.sh writes are compiled without LIBHWT_WITH_DEVICE, and have no device.
 */
#ifndef LIBHWT_TIMERS_DEVICE_H
#define LIBHWT_TIMERS_DEVICE_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

struct libhwt;

/**
 * struct hwtlib_due - an event of the device
 * @key:      the key of the timeout that has ended, which is the address of the timer
 * @deadline: the deadline that the timeout had
 */
struct hwtlib_due {
	uint64_t	key;
	uint64_t	deadline;
};

/**
 * struct hwtlib_device - a context with keys
 * @context: the context
 * @tick_ns: the tick of its wheel
 * @arm:     arm the timeout of a key for a deadline, or move it there; negative: an errno
 * @cancel:  end the timeout of a key; its event does not come
 * @get:     store the deadline of a key's timeout, or 0 if it has an event; negative: no timeout
 * @take:    take up to @max events. Return their number, or a negative errno
 * @fd:      return the descriptor, which is readable while there are events
 * @close:   close the context
 */
struct hwtlib_device {
	struct libhwt	*context;
	uint64_t	tick_ns;
	int		(*arm)(struct libhwt *context, uint64_t key, uint64_t deadline);
	int		(*cancel)(struct libhwt *context, uint64_t key);
	int		(*get)(struct libhwt *context, uint64_t key, uint64_t *deadline);
	int		(*take)(struct libhwt *context, struct hwtlib_due *due, unsigned int max);
	int		(*fd)(const struct libhwt *context);
	void		(*close)(struct libhwt *context);
};

#ifdef LIBHWT_WITH_DEVICE
/* Create a context on a clock. Return: 0, or a negative errno, and then nothing is stored. */
int hwtlib_device_open(struct hwtlib_device *device, clockid_t clock);
#else
static inline int hwtlib_device_open(struct hwtlib_device *device, clockid_t clock)
{
	(void)device;
	(void)clock;
	return -ENOTSUP;
}
#endif

#endif /* LIBHWT_TIMERS_DEVICE_H */
