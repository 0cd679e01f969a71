// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * libhwt: contexts
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "internal.h"

int hwtlib_call(const struct libhwt *context, unsigned long request, void *args)
{
	return ioctl(context->fd, request, args) < 0 ? -errno : 0;
}

int hwtlib_copy_options(void *to, size_t size, const void *from)
{
	const unsigned char *bytes = from;
	size_t size_from, i;

	memset(to, 0, size);
	if (!from)
		return 0;
	memcpy(&size_from, from, sizeof(size_from));
	if (size_from < size)
		return -EINVAL;
	for (i = size; i < size_from; i++) {
		if (bytes[i])
			return -E2BIG;
	}
	memcpy(to, from, size);
	return 0;
}

uint64_t hwtlib_clock_ns(clockid_t clock)
{
	struct timespec now;

	/* This does not fail: every kernel has the clocks that contexts use. */
	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static int context_new(struct libhwt **context, int fd)
{
	struct hwt_info_args info = { .size = sizeof(info) };
	struct libhwt *new = calloc(1, sizeof(*new));
	int ret;

	if (!new)
		return -ENOMEM;
	new->fd = fd;
	ret = libhwt_info(new, &info);
	if (ret) {
		free(new);
		return ret;
	}
	new->clock = info.clock;
	new->keyed = info.keys;
	*context = new;
	return 0;
}

/* Set up a context. Options that are all zero are the default, and need no call. */
static int setup(int fd, const struct libhwt_options *options)
{
	static const struct hwt_setup_args defaults = { .size = sizeof(defaults) };
	struct hwt_setup_args args = {
		.size = sizeof(args),
		.flags = options->flags,
		.tick_ns = options->tick_ns,
		.ticks_per_wheel = options->ticks_per_wheel,
		.levels = options->levels,
		.max_pending = options->max_pending,
		.cpu = options->cpu,
		.priority = options->priority,
	};

	if (!memcmp(&args, &defaults, sizeof(args)))
		return 0;
	return ioctl(fd, HWT_IOC_SETUP, &args) < 0 ? -errno : 0;
}

static int device_open(const struct libhwt_options *options, int *fd)
{
	const char *path = options->device ? options->device : "/dev/hwt";
	int ret;

	*fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return -errno;
	ret = setup(*fd, options);
	if (ret)
		close(*fd);
	return ret;
}

int libhwt_open(struct libhwt **context, const struct libhwt_options *options)
{
	struct libhwt_options known;
	int fd, ret;

	ret = hwtlib_copy_options(&known, sizeof(known), options);
	if (ret)
		return ret;
	ret = device_open(&known, &fd);
	if (ret)
		return ret;
	ret = context_new(context, fd);
	if (ret)
		close(fd);
	return ret;
}

int libhwt_adopt(struct libhwt **context, int fd)
{
	struct libhwt *new;
	int flags, ret;

	flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	/* A queue maps its rings for reading and writing, so the descriptor must allow both. */
	if ((flags & O_ACCMODE) != O_RDWR)
		return -EBADF;
	ret = context_new(&new, fd);
	if (ret)
		return ret;
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
		ret = -errno;
		free(new);
		return ret;
	}
	*context = new;
	return 0;
}

void libhwt_close(struct libhwt *context)
{
	if (!context)
		return;
	hwtlib_queue_free(context);
	close(context->fd);
	free(context);
}

int libhwt_fd(const struct libhwt *context)
{
	return context->fd;
}

uint64_t libhwt_now(const struct libhwt *context)
{
	return hwtlib_clock_ns(context->clock);
}

int libhwt_info(struct libhwt *context, struct hwt_info_args *info)
{
	return hwtlib_call(context, HWT_IOC_INFO, info);
}

int libhwt_stats(struct libhwt *context, struct hwt_stats_args *stats)
{
	return hwtlib_call(context, HWT_IOC_STATS, stats);
}
