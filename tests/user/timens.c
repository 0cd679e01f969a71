// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time namespaces: a program in one gives and gets the times of its own clock.
 *
 * hwt-test: shared
 */
#include "kselftest_harness.h"
#include "hwt_ring.h"
#include "timens.h"

FIXTURE(timens) { };

FIXTURE_VARIANT(timens) {
	clockid_t clock;
	long offset;
};

FIXTURE_VARIANT_ADD(timens, monotonic_ahead) { CLOCK_MONOTONIC, 1000000 };
FIXTURE_VARIANT_ADD(timens, monotonic_behind) { CLOCK_MONOTONIC, -1 };
FIXTURE_VARIANT_ADD(timens, boottime_ahead) { CLOCK_BOOTTIME, 2000000 };
FIXTURE_VARIANT_ADD(timens, boottime_behind) { CLOCK_BOOTTIME, -1 };

static clockid_t clock_id;
static __u64 outside;
static long offset;

FIXTURE_SETUP(timens)
{
	/* No SKIP() here: the harness of 6.1 goes on with the test after it. */
	ASSERT_EQ(0, timens_for_children(variant->clock, variant->offset));
	clock_id = variant->clock;
	offset = variant->offset;
	outside = clock_ns(clock_id);
}

FIXTURE_TEARDOWN(timens)
{
}

/* A context on the clock, in the namespace. */
static int open_inside(void)
{
	int fd = hwt_open(O_NONBLOCK);

	return clock_id != CLOCK_MONOTONIC && hwt_private(fd, clock_id, 0) ? -1 : fd;
}

static int inside(void *arg)
{
	int fd = open_inside();
	__u64 now, deadline, id, tick;
	struct hwt_info_args info;
	struct hwt_event event;
	struct hwt_get_args get;

	(void)arg;
	/* Is this really another time? */
	now = clock_ns(clock_id);
	if (now - outside - offset * SEC > 100 * SEC)
		return 1;
	if (hwt_info(fd, &info) || info.now_ns < now || info.now_ns > clock_ns(clock_id))
		return 3;
	tick = info.tick_ns;

	deadline = now + 100 * MSEC;
	if (hwt_add(fd, HWT_ABSOLUTE, deadline, 0, &id) || hwt_get(fd, id, &get))
		return 4;
	if (get.deadline_ns < deadline || get.deadline_ns >= deadline + tick ||
	    get.remaining_ns > 100 * MSEC + tick)
		return 5;
	if (hwt_next(fd, &event) != 1 || event.deadline_ns != get.deadline_ns ||
	    event.fired_ns < deadline || event.fired_ns > clock_ns(clock_id))
		return 6;

	/* A delay does not depend on it. */
	now = clock_ns(clock_id);
	if (hwt_add(fd, 0, 50 * MSEC, 0, NULL) || hwt_next(fd, &event) != 1 ||
	    event.fired_ns < now + 50 * MSEC)
		return 7;

	/* Zero is past, also where the clock has been put back; never is never. */
	if (hwt_add(fd, HWT_ABSOLUTE, 0, 0, NULL) || hwt_next(fd, &event) != 1)
		return 8;
	if (hwt_add(fd, HWT_ABSOLUTE, HWT_NEVER, 0, &id) || hwt_get(fd, id, &get) ||
	    get.deadline_ns != HWT_NEVER || get.remaining_ns != HWT_NEVER)
		return 9;
	/* The last time that fits here may not fit outside; it is far away. */
	if (hwt_add(fd, HWT_ABSOLUTE, HWT_NEVER >> 1, 0, &id) || hwt_get(fd, id, &get) ||
	    get.remaining_ns < HWT_NEVER >> 2)
		return 10;

	/* Periodic: modify, the same conversion. */
	if (hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, 3600 * SEC, SEC, 0, &id))
		return 11;
	deadline = clock_ns(clock_id) + 20 * MSEC;
	if (hwt_move(fd, id, HWT_ABSOLUTE, deadline) != HWT_STATE_PENDING ||
	    hwt_next(fd, &event) != 1 || event.deadline_ns < deadline ||
	    event.deadline_ns >= deadline + tick)
		return 12;
	if (hwt_stop(fd) != 3 || hwt_read(fd, &event, 1) != 1)
		return 13;
	close(fd);
	return 0;
}

/* A rate that began at zero: its deadlines are multiples of the period here, not outside. */
static int rate_inside(void *arg)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.flags = HWT_ABSOLUTE,
		.mode = HWT_MODE_FIXED_RATE,
		.period_ns = 70 * MSEC,	/* does not divide the offsets */
	};
	int fd = open_inside(), i;
	struct hwt_info_args info;
	struct hwt_event event;

	(void)arg;
	if (hwt_info(fd, &info) || hwt_call(fd, HWT_IOC_SCHEDULE, &args))
		return 2;
	for (i = 0; i < 5; i++) {
		if (hwt_next(fd, &event) != 1)
			return 3;
		if (event.deadline_ns % args.period_ns >= info.tick_ns)
			return 4;
	}
	close(fd);
	return 0;
}

/* The first child is in the new namespace. */
TEST_F(timens, own_time)
{
	EXPECT_EQ(0, in_child(inside, NULL));
}

TEST_F(timens, own_phase)
{
	EXPECT_EQ(0, in_child(rate_inside, NULL));
}

TEST_HARNESS_MAIN
