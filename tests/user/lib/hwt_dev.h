/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of /dev/hwt for the test programs. They return 0 or more, or a negative errno, so that
 * one comparison checks the error.
 */
#ifndef HWT_DEV_H
#define HWT_DEV_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "hwt_uapi.h"

#define HWT_DEV		"/dev/hwt"
#define USEC		1000ULL
#define MSEC		1000000ULL
#define SEC		1000000000ULL
#define HOUR		(3600 * SEC)

/* Maximum wait for an immediate effect: the guest may be very slow. */
#define PATIENCE_MS	20000

static inline int hwt_open(int flags)
{
	return open(HWT_DEV, O_RDWR | O_CLOEXEC | flags);
}

/* Return -errno. Static analysers do not know that errno is positive, so make sure of it. */
static inline int hwt_errno(void)
{
	int error = errno;

	return error > 0 ? -error : -EIO;
}

static inline int hwt_call(int fd, unsigned long request, void *args)
{
	return ioctl(fd, request, args) < 0 ? hwt_errno() : 0;
}

/* Call an ioctl with the given members, all others 0: hwt_with(fd, SETUP, setup, .levels = 2). */
#define hwt_with(_fd, _NAME, _name, ...)				\
({									\
	struct hwt_##_name##_args _args = {				\
		.size = sizeof(_args), __VA_ARGS__			\
	};								\
									\
	hwt_call(_fd, HWT_IOC_##_NAME, &_args);				\
})

static inline __u64 clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * SEC + now.tv_nsec;
}

static inline __u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_ns(__u64 ns)
{
	struct timespec left = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* -- The ioctls with common arguments ------------------------------------ */

/* Schedule with the given members, and store the id if @_id is not NULL. */
#define hwt_arm(_fd, _id, ...)						\
({									\
	struct hwt_schedule_args _args = {				\
		.size = sizeof(_args), __VA_ARGS__			\
	};								\
	int _ret = hwt_call(_fd, HWT_IOC_SCHEDULE, &_args);		\
	__u64 *_to = _id;						\
									\
	if (!_ret && _to)						\
		*_to = _args.id;					\
	_ret;								\
})

static inline int hwt_add(int fd, __u32 flags, __u64 time_ns, __u64 data, __u64 *id)
{
	return hwt_arm(fd, id, .flags = flags, .time_ns = time_ns, .user_data = data);
}

/* As hwt_with(). Return the previous HWT_STATE_ bits. */
#define hwt_was(_fd, _NAME, _name, ...)					\
({									\
	struct hwt_##_name##_args _args = {				\
		.size = sizeof(_args), __VA_ARGS__			\
	};								\
									\
	hwt_call(_fd, HWT_IOC_##_NAME, &_args) ?: (int)_args.was;	\
})

/* Schedule a key. Return its previous HWT_STATE_ bits; 0: the timeout is new. */
static inline int hwt_key(int fd, __u32 flags, __u64 time_ns, __u64 key)
{
	return hwt_was(fd, SCHEDULE, schedule, .flags = flags, .time_ns = time_ns, .id = key);
}

static inline int hwt_add_periodic(int fd, __u32 mode, __u64 delay_ns, __u64 period_ns,
				   __u64 data, __u64 *id)
{
	return hwt_arm(fd, id, .mode = mode, .time_ns = delay_ns, .period_ns = period_ns,
		       .user_data = data);
}

/* Return the previous HWT_STATE_ bits. */
static inline int hwt_move(int fd, __u64 id, __u32 flags, __u64 time_ns)
{
	return hwt_was(fd, MODIFY, modify, .flags = flags, .id = id, .time_ns = time_ns);
}

/* Return the previous HWT_STATE_ bits. */
static inline int hwt_del(int fd, __u64 id)
{
	return hwt_was(fd, CANCEL, cancel, .id = id);
}

static inline int hwt_get(int fd, __u64 id, struct hwt_get_args *args)
{
	memset(args, 0, sizeof(*args));
	args->size = sizeof(*args);
	args->id = id;
	return hwt_call(fd, HWT_IOC_GET, args);
}

/* Cancel all timeouts. Return their number. */
static inline int hwt_del_all(int fd)
{
	struct hwt_cancel_args args = { .size = sizeof(args), .flags = HWT_CANCEL_ALL };

	return hwt_call(fd, HWT_IOC_CANCEL, &args) ?: (int)args.count;
}

static inline int hwt_info(int fd, struct hwt_info_args *args)
{
	memset(args, 0, sizeof(*args));
	args->size = sizeof(*args);
	return hwt_call(fd, HWT_IOC_INFO, args);
}

static inline int hwt_stats(int fd, struct hwt_stats_args *args)
{
	memset(args, 0, sizeof(*args));
	args->size = sizeof(*args);
	return hwt_call(fd, HWT_IOC_STATS, args);
}

/* Return the flag of HWT_IOC_SETUP for @clock. */
static inline __u32 hwt_clock_flag(clockid_t clock)
{
	return clock == CLOCK_REALTIME ? HWT_SETUP_REALTIME :
	       clock == CLOCK_BOOTTIME ? HWT_SETUP_BOOTTIME : 0;
}

static inline int hwt_setup(int fd, clockid_t clock, __u32 flags)
{
	return hwt_with(fd, SETUP, setup, .flags = flags | hwt_clock_flag(clock));
}

static inline int hwt_open_private(clockid_t clock)
{
	int fd = hwt_open(O_NONBLOCK);

	if (fd >= 0 && hwt_setup(fd, clock, 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* @count: in: the room in @entries; out: the number of entries stored. */
static inline int hwt_list(int fd, __u64 *cursor, void *entries, __u32 *count)
{
	struct hwt_list_args args = {
		.size = sizeof(args),
		.cursor = *cursor,
		.entries = (uintptr_t)entries,
		.count = *count,
		.entry_size = sizeof(struct hwt_list_entry),
	};
	int ret = hwt_call(fd, HWT_IOC_LIST, &args);

	*cursor = args.cursor;
	*count = args.count;
	return ret;
}

/* -- Events -------------------------------------------------------------- */

/* Return the number of events read. */
static inline int hwt_read(int fd, struct hwt_event *events, unsigned int max)
{
	ssize_t ret = read(fd, events, max * sizeof(*events));

	return ret < 0 ? -errno : (int)(ret / (ssize_t)sizeof(*events));
}

/* Return revents, or 0 if the time is over. */
static inline int hwt_wait(int fd, int timeout_ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	int ret;

	do {
		ret = poll(&pollfd, 1, timeout_ms);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret ? pollfd.revents : 0;
}

/* Wait for the next event and read it. Return 1, or the result of read() or of the wait. */
static inline int hwt_next(int fd, struct hwt_event *event)
{
	int ret = hwt_wait(fd, PATIENCE_MS);

	if (ret <= 0)
		return ret ? ret : -ETIMEDOUT;
	return hwt_read(fd, event, 1);
}

/* Read an unsigned number, or Y for 1, from a file; ~0 if there is none. */
static inline __u64 read_number(const char *path)
{
	unsigned long long value = ~0ULL;
	FILE *file = fopen(path, "r");

	if (file && fscanf(file, "%llu", &value) != 1)
		value = fgetc(file) == 'Y' ? 1 : ~0ULL;
	if (file)
		fclose(file);
	return value;
}

#define hwt_param(name)	read_number("/sys/module/hwt/parameters/" name)

#define contexts_have_threads()	(hwt_param("thread_contexts") == 1)

static inline bool env_is(const char *name, const char *value)
{
	const char *env = getenv(name);

	return env && !strcmp(env, value);
}

/* A kernel with all debugging options: debug or debug612. */
static inline bool debug_kernel(void)
{
	return env_is("HWT_KERNEL", "debug") || env_is("HWT_KERNEL", "debug612");
}

/* Run fewer rounds: in a quick run, and on a kernel that checks each access or lock. */
static inline bool quick(void)
{
	return env_is("HWT_QUICK", "1") || env_is("HWT_SLOW", "1");
}

#endif /* HWT_DEV_H */
