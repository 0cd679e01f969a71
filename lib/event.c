// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * libhwt: events
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "internal.h"

/* Waits of 292 years and more, which do not fit into 63 bits, have no end. */
#define FOREVER(ns)	((ns) > INT64_MAX)

uint64_t hwtlib_wait_end(uint64_t timeout_ns)
{
	uint64_t end_ns;

	if (FOREVER(timeout_ns))
		return HWT_NEVER;
	end_ns = hwtlib_clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	return FOREVER(end_ns) ? HWT_NEVER : end_ns;
}

static int file_take(struct libhwt *context, struct hwt_event *events, unsigned int max)
{
	ssize_t got;

	/* The number of bytes must fit into an int, which this function returns. */
	if (max > INT_MAX / sizeof(*events))
		max = INT_MAX / sizeof(*events);
	got = read(context->fd, events, max * sizeof(*events));
	if (got < 0)
		return errno == EAGAIN ? 0 : -errno;
	return got / sizeof(*events);
}

/* Wait until the descriptor is readable. Return 1, 0 if it is not in time, or a negative errno. */
static int file_wait(struct libhwt *context, uint64_t end_ns)
{
	struct pollfd pollfd = { .fd = context->fd, .events = POLLIN };
	uint64_t now_ns = hwtlib_clock_ns(CLOCK_MONOTONIC);
	uint64_t left_ns = now_ns < end_ns ? end_ns - now_ns : 0;
	struct timespec timeout = {
		.tv_sec = left_ns / NSEC_PER_SEC,
		.tv_nsec = left_ns % NSEC_PER_SEC,
	};
	int ret;

	ret = ppoll(&pollfd, 1, end_ns == HWT_NEVER ? NULL : &timeout, NULL);
	return ret < 0 ? -errno : ret;
}

int libhwt_next(struct libhwt *context, struct hwt_event *events, unsigned int max,
		uint64_t timeout_ns)
{
	uint64_t end_ns;
	int ret;

	if (!max)
		return -EINVAL;
	if (context->queue)
		return hwtlib_queue_wait(context->queue, events, max, timeout_ns);
	ret = file_take(context, events, max);
	if (ret || !timeout_ns)
		return ret;
	end_ns = hwtlib_wait_end(timeout_ns);
	do {
		ret = file_wait(context, end_ns);
		if (ret <= 0)
			return ret;
		/* Another thread may have taken the event that woke this one. */
		ret = file_take(context, events, max);
	} while (!ret);
	return ret;
}
