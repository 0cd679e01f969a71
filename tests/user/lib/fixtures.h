/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Common fixtures: a context, and a context with rings. Include after kselftest_harness.h.
 */
#ifndef HWT_FIXTURES_H
#define HWT_FIXTURES_H

#include "hwt_ring.h"

FIXTURE(ctx) {
	int fd;
	__u64 tick;
};

FIXTURE_SETUP(ctx)
{
	struct hwt_info_args info;

	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_EQ(0, hwt_info(self->fd, &info));
	self->tick = info.tick_ns;
}

FIXTURE_TEARDOWN(ctx)
{
	close(self->fd);
}

#define ENTRIES	64

FIXTURE(rings) {
	int fd;
	struct ring ring;
};

FIXTURE_SETUP(rings)
{
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ring_make(&self->ring, self->fd, 0, ENTRIES, ENTRIES));
}

FIXTURE_TEARDOWN(rings)
{
	ring_unmap(&self->ring);
	close(self->fd);
}

#endif /* HWT_FIXTURES_H */
