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

/* Waits of 292 years and more have no end. */
#define FOREVER(ns)	((ns) > INT64_MAX)

uint64_t hwtlib_wait_end(uint64_t timeout_ns)
{
	uint64_t end_ns;

	if (FOREVER(timeout_ns))
		return HWT_NEVER;
	end_ns = hwtlib_clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	return FOREVER(end_ns) ? HWT_NEVER : end_ns;
}

uint64_t hwtlib_wait_left(uint64_t end_ns)
{
	uint64_t now_ns;

	if (end_ns == HWT_NEVER)
		return HWT_NEVER;
	now_ns = hwtlib_clock_ns(CLOCK_MONOTONIC);
	return now_ns < end_ns ? end_ns - now_ns : 0;
}

static int file_take(struct libhwt *context, struct hwt_event *events, unsigned int max)
{
	ssize_t got;

	/* What it returns is an int. */
	if (max > INT_MAX / sizeof(*events))
		max = INT_MAX / sizeof(*events);
	got = read(context->fd, events, max * sizeof(*events));
	if (got < 0)
		return errno == EAGAIN ? 0 : -errno;
	return got ? (int)(got / sizeof(*events)) : -ESHUTDOWN;
}

static int file_wait(struct libhwt *context, uint64_t timeout_ns)
{
	struct pollfd pollfd = { .fd = context->fd, .events = POLLIN };
	struct timespec timeout = {
		.tv_sec = timeout_ns / NSEC_PER_SEC,
		.tv_nsec = timeout_ns % NSEC_PER_SEC,
	};

	if (ppoll(&pollfd, 1, timeout_ns == HWT_NEVER ? NULL : &timeout, NULL) < 0)
		return -errno;
	return 0;
}

static int take(struct libhwt *context, struct hwt_event *events, unsigned int max)
{
	return context->rings ? hwtlib_rings_take(context->queue, events, max) :
				file_take(context, events, max);
}

static int wait(struct libhwt *context, uint64_t timeout_ns)
{
	return context->rings ? hwtlib_rings_wait(context->queue, timeout_ns) :
				file_wait(context, timeout_ns);
}

int libhwt_next(struct libhwt *context, struct hwt_event *events, unsigned int max,
		uint64_t timeout_ns)
{
	uint64_t end_ns, left_ns;
	int ret;

	if (!max)
		return -EINVAL;
	ret = take(context, events, max);
	if (ret || !timeout_ns)
		return ret;
	/* Another thread may take what woke this one: then wait for what is left. */
	end_ns = hwtlib_wait_end(timeout_ns);
	do {
		left_ns = hwtlib_wait_left(end_ns);
		if (!left_ns)
			return 0;
		ret = wait(context, left_ns);
		if (ret)
			return ret;
		ret = take(context, events, max);
	} while (!ret);
	return ret;
}
