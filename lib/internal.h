/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Declarations that the files of libhwt share. Functions here begin with hwtlib_; the shared
 * library does not export them.
 */
#ifndef LIBHWT_INTERNAL_H
#define LIBHWT_INTERNAL_H

#include <stdbool.h>
#include <time.h>

#include "libhwt.h"

#define NSEC_PER_SEC	1000000000ULL

/**
 * struct libhwt - a context
 * @fd:    its descriptor, O_NONBLOCK
 * @clock: its clock
 * @keyed: true if its ids are keys
 * @queue: its queue, or NULL. In a child after fork() the queue is all zeroes.
 *
 * Constant once other threads may see it.
 */
struct libhwt {
	int			fd;
	clockid_t		clock;
	bool			keyed;
	struct libhwt_queue	*queue;
};

/* Return: 0 or a negative errno. */
int hwtlib_call(const struct libhwt *context, unsigned long request, void *args);

/*
 * Copy a structure that begins with its size, by the rules of copy_struct_from_user(). @from NULL:
 * all zeroes. The structures have not grown yet, so a smaller one is -EINVAL.
 */
int hwtlib_copy_options(void *to, size_t size, const void *from);

uint64_t hwtlib_clock_ns(clockid_t clock);

/* Return the end of a wait that begins now, on CLOCK_MONOTONIC. HWT_NEVER: there is no end. */
uint64_t hwtlib_wait_end(uint64_t timeout_ns);

/* libhwt_next(), for a context that has a queue. */
int hwtlib_queue_wait(struct libhwt_queue *queue, struct hwt_event *events, unsigned int max,
		      uint64_t timeout_ns);
void hwtlib_queue_free(struct libhwt *context);

#endif /* LIBHWT_INTERNAL_H */
