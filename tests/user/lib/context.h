/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fixture "ctx": a context of its own for each test. Include it after
 * kselftest_harness.h.
 */
#ifndef HWT_CONTEXT_H
#define HWT_CONTEXT_H

#include "hwt_ring.h"

FIXTURE(ctx) {
	int fd;
	__u64 tick;
};

FIXTURE_SETUP(ctx)
{
	struct hwt_info_args info;

	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, hwt_info(self->fd, &info));
	self->tick = info.tick_ns;
}

FIXTURE_TEARDOWN(ctx)
{
	close(self->fd);
}

#endif /* HWT_CONTEXT_H */
