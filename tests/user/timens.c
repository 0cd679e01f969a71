// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time namespaces: a program in one gives and gets the times of its own clock.
 *
 * hwt-test: shared
 */
#include "kselftest_harness.h"
#include "process.h"
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

FIXTURE_SETUP(timens)
{
	/* No SKIP() here: the harness of 6.1 goes on with the test after it. */
	ASSERT_EQ(0, timens_for_children(variant->clock, variant->offset));
}

FIXTURE_TEARDOWN(timens)
{
}

/* A context on the clock, in the namespace. */
static int open_inside(clockid_t clock)
{
	return clock == CLOCK_MONOTONIC ? hwt_open(O_NONBLOCK) : hwt_open_private(clock);
}

static void inside(struct __test_metadata *_metadata, clockid_t clock, __u64 expected)
{
	int fd = open_inside(clock);
	struct hwt_info_args info;
	__u64 now, deadline, id;
	struct hwt_event event;
	struct hwt_get_args get;

	/* Is this really another time? */
	now = clock_ns(clock);
	EXPECT_GT(100 * SEC, now - expected);
	EXPECT_EQ(0, hwt_info(fd, &info));
	EXPECT_LE(now, info.now_ns);
	EXPECT_GE(clock_ns(clock), info.now_ns);

	deadline = now + 100 * MSEC;
	EXPECT_EQ(0, hwt_add(fd, HWT_ARM_ABSOLUTE, deadline, 0, &id));
	EXPECT_EQ(0, hwt_get(fd, id, &get));
	EXPECT_LE(deadline, get.deadline_ns);
	EXPECT_GT(deadline + info.tick_ns, get.deadline_ns);
	EXPECT_GE(100 * MSEC + info.tick_ns, get.remaining_ns);
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(get.deadline_ns, event.deadline_ns);
	EXPECT_LE(deadline, event.fired_ns);
	EXPECT_GE(clock_ns(clock), event.fired_ns);

	/* A delay does not depend on it. */
	now = clock_ns(clock);
	EXPECT_EQ(0, hwt_add(fd, 0, 50 * MSEC, 0, NULL));
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_LE(now + 50 * MSEC, event.fired_ns);

	/* Zero is past, also where the clock has been put back; never is never. */
	EXPECT_EQ(0, hwt_add(fd, HWT_ARM_ABSOLUTE, 0, 0, NULL));
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(0, hwt_add(fd, HWT_ARM_ABSOLUTE, HWT_NEVER, 0, &id));
	EXPECT_EQ(0, hwt_get(fd, id, &get));
	EXPECT_EQ(HWT_NEVER, get.deadline_ns);
	EXPECT_EQ(HWT_NEVER, get.remaining_ns);
	/* The last time that fits here may not fit outside; it is far away. */
	EXPECT_EQ(0, hwt_add(fd, HWT_ARM_ABSOLUTE, HWT_NEVER >> 1, 0, &id));
	EXPECT_EQ(0, hwt_get(fd, id, &get));
	EXPECT_LE(HWT_NEVER >> 2, get.remaining_ns);
	EXPECT_EQ(2, hwt_stop(fd));
}

/* A rate that began at zero: its deadlines are multiples of the period here, not outside. */
static void rate_inside(struct __test_metadata *_metadata, clockid_t clock)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.flags = HWT_ARM_ABSOLUTE,
		.mode = HWT_MODE_FIXED_RATE,
		.period_ns = 70 * MSEC,	/* does not divide the offsets */
	};
	int fd = open_inside(clock), i;
	struct hwt_info_args info;
	struct hwt_event event;
	__u64 deadline;

	EXPECT_EQ(0, hwt_info(fd, &info));
	EXPECT_EQ(0, hwt_call(fd, HWT_IOC_SCHEDULE, &args));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(1, hwt_next(fd, &event));
		EXPECT_GT(info.tick_ns, event.deadline_ns % args.period_ns);
	}
	deadline = clock_ns(clock) + 20 * MSEC;
	EXPECT_LE(0, hwt_move(fd, args.id, HWT_ARM_ABSOLUTE, deadline));
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_LE(deadline, event.deadline_ns);
	EXPECT_GT(deadline + info.tick_ns, event.deadline_ns);
}

/* The first child is in the new namespace. */
TEST_F(timens, own_time)
{
	__u64 expected = clock_ns(variant->clock) + variant->offset * SEC;

	EXPECT_EQ(0, IN_CHILD((inside(_metadata, variant->clock, expected), !_metadata->passed)));
}

TEST_F(timens, own_phase)
{
	EXPECT_EQ(0, IN_CHILD((rate_inside(_metadata, variant->clock), !_metadata->passed)));
}

TEST_HARNESS_MAIN
