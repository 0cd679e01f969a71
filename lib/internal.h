/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the files of libhwt share. Functions here begin with hwtlib_; the shared library does
 * not export them.
 */
#ifndef LIBHWT_INTERNAL_H
#define LIBHWT_INTERNAL_H

#include <stdbool.h>
#include <time.h>

#include "libhwt.h"

#define NSEC_PER_SEC	1000000000ULL

/**
 * struct libhwt - a context
 * @fd:       its descriptor, O_NONBLOCK
 * @clock:    of its wheel
 * @features: HWT_FEATURE_ bits of the kernel
 * @queue:    its queue, or NULL. In a child after fork() it is all zeroes.
 * @size:     of @queue, as mapped
 * @rings:    @queue has rings: events come by them
 *
 * Constant once others may see it.
 */
struct libhwt {
	int			fd;
	clockid_t		clock;
	uint64_t		features;
	struct libhwt_queue	*queue;
	size_t			size;
	bool			rings;
};

/* Return: 0 or a negative errno. */
int hwtlib_call(const struct libhwt *context, unsigned long request, void *args);

/* Options as they were in the first version: what a caller gives at least. These never change. */
struct options_ver1 {
	size_t				size;
	const char			*device;
	const struct hwt_setup_args	*wheel;
};

struct queue_options_ver1 {
	size_t		size;
	unsigned int	flags;
	unsigned int	ops;
	unsigned int	events;
};

/*
 * Copy a structure that has its size in front, from a caller who may know a smaller or a larger
 * one, as copy_struct_from_user() does. @from NULL: as all 0. @size_min: that of the first version.
 */
int hwtlib_copy_options(void *to, size_t size, const void *from, size_t size_min);

uint64_t hwtlib_clock_ns(clockid_t clock);

/* A time to wait until, and what of it is left. HWT_NEVER is never over. */
uint64_t hwtlib_wait_end(uint64_t timeout_ns);
uint64_t hwtlib_wait_left(uint64_t end_ns);

/* Take what there is, without waiting. Return: as libhwt_next(). */
int hwtlib_rings_take(struct libhwt_queue *queue, struct hwt_event *events, unsigned int max);
/* Wait until there is something to take. Return: 0 or a negative errno. */
int hwtlib_rings_wait(struct libhwt_queue *queue, uint64_t timeout_ns);

void hwtlib_queue_free(struct libhwt *context);

#endif /* LIBHWT_INTERNAL_H */
