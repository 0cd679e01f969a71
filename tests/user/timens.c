// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time namespaces: a program in one gives and gets the times of its own clock.
 */
#include "kselftest_harness.h"
#include <sched.h>

#include "hwt_dev.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

FIXTURE(timens) {
	__u64 outside;
};

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
	char text[64];
	int fd, len;

	/* No SKIP() here: the harness of 6.1 goes on with the test after it. */
	ASSERT_EQ(0, unshare(CLONE_NEWTIME));
	len = snprintf(text, sizeof(text), "%d %ld 0\n", variant->clock, variant->offset);
	fd = open("/proc/self/timens_offsets", O_WRONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ(len, write(fd, text, len));
	close(fd);
	self->outside = clock_ns(variant->clock);
}

FIXTURE_TEARDOWN(timens)
{
}

static int inside(clockid_t clock, __u64 outside, long offset)
{
	struct hwt_setup_args setup = { .size = sizeof(setup), .clock = clock };
	int fd = hwt_open(O_NONBLOCK);
	__u64 now, deadline, id, tick;
	struct hwt_info_args info;
	struct hwt_event event;
	struct hwt_get_args get;

	/* Is this really another time? */
	now = clock_ns(clock);
	if (now - outside - offset * SEC > 100 * SEC)
		return 1;
	if (clock != CLOCK_MONOTONIC && hwt_call(fd, HWT_IOC_SETUP, &setup))
		return 2;
	if (hwt_info(fd, &info) || info.now_ns < now || info.now_ns > clock_ns(clock))
		return 3;
	tick = info.tick_ns;

	deadline = now + 100 * MSEC;
	if (hwt_add(fd, HWT_ABSOLUTE, deadline, 0, &id) || hwt_get(fd, id, &get))
		return 4;
	if (get.deadline_ns < deadline || get.deadline_ns >= deadline + tick ||
	    get.remaining_ns > 100 * MSEC + tick)
		return 5;
	if (hwt_next(fd, &event) != 1 || event.deadline_ns != get.deadline_ns ||
	    event.fired_ns < deadline || event.fired_ns > clock_ns(clock))
		return 6;

	/* A delay does not depend on it. */
	now = clock_ns(clock);
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
	deadline = clock_ns(clock) + 20 * MSEC;
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
static int rate_inside(clockid_t clock)
{
	struct hwt_setup_args setup = { .size = sizeof(setup), .clock = clock };
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.flags = HWT_ABSOLUTE,
		.mode = HWT_MODE_FIXED_RATE,
		.period_ns = 70 * MSEC,	/* does not divide the offsets */
	};
	int fd = hwt_open(O_NONBLOCK), i;
	struct hwt_info_args info;
	struct hwt_event event;

	if (clock != CLOCK_MONOTONIC && hwt_call(fd, HWT_IOC_SETUP, &setup))
		return 1;
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

TEST_F(timens, own_time)
{
	int status;
	pid_t pid;

	/* The first child is in the new namespace. */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(inside(variant->clock, self->outside, variant->offset));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_F(timens, own_phase)
{
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(rate_inside(variant->clock));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_HARNESS_MAIN
