// SPDX-License-Identifier: GPL-2.0-only
/*
 * libhwt's timers on the device. tests/unit/timers.c has them in the process, and on a simulated
 * device.
 *
 * hwt-test: shared
 * hwt-test: m32
 * hwt-test: libs hwt
 */
#include "kselftest_harness.h"

#include "guest.h"
#include "hwt_ring.h"
#include "libhwt.h"

#define TIMERS	8

/* Static: each test runs in a process of its own. */
static struct libhwt_timers *timers;
static struct libhwt_timer timer[TIMERS];
static int order[64], called;

static void note(struct libhwt_timer *which)
{
	order[called++] = which - timer;
}

static struct libhwt *begin(unsigned int flags)
{
	struct libhwt_timers_options options = { .size = sizeof(options), .flags = flags };
	int i;

	timers = libhwt_timers_new(&options);
	for (i = 0; i < TIMERS; i++)
		libhwt_timer_init(&timer[i], note);
	return timers ? libhwt_timers_context(timers) : NULL;
}

static long on_device(void)
{
	return fd_number(libhwt_fd(libhwt_timers_context(timers)), "hwt-timeouts");
}

/* Run a loop until so many callbacks were called. Return whether they were. */
static bool loop(int want, bool with_fd)
{
	struct pollfd ready = { .fd = with_fd ? libhwt_timers_fd(timers) : -1, .events = POLLIN };
	__u64 end = now_ns() + PATIENCE_MS * MSEC;

	while (called < want && now_ns() < end) {
		poll(&ready, 1, with_fd ? PATIENCE_MS : libhwt_timers_wait_ms(timers));
		libhwt_timers_run(timers);
	}
	return called >= want;
}

/* Each loop of a program, and each clock */
TEST(timers_fire_in_order)
{
	unsigned int clock;
	bool with_fd;
	__u64 first;
	int i;

	for (clock = 0; clock <= LIBHWT_TIMERS_REALTIME; clock++) {
		with_fd = clock != LIBHWT_TIMERS_BOOTTIME;
		called = 0;
		ASSERT_NE(NULL, begin(clock | (with_fd ? LIBHWT_ANY : LIBHWT_DEVICE)));
		for (i = 0; i < TIMERS; i++)
			libhwt_timer_set(timers, &timer[i], (10 - i) * 10 * MSEC);
		first = libhwt_timer_deadline(&timer[TIMERS - 1]);
		EXPECT_EQ(TIMERS, on_device());
		/* Later: the device is not told. Never, and stopped */
		libhwt_timer_set(timers, &timer[5], 110 * MSEC);
		libhwt_timer_disarm(&timer[4]);
		libhwt_timer_stop(timers, &timer[3]);
		EXPECT_EQ(TIMERS - 1, on_device());
		EXPECT_TRUE(loop(1, with_fd));
		EXPECT_LE(first, libhwt_timers_update(timers));
		EXPECT_TRUE(loop(6, with_fd));
		for (i = 0; i < 6; i++)
			EXPECT_EQ("762105"[i] - '0', order[i]);
		EXPECT_EQ(0, libhwt_timers_count(timers));
		EXPECT_EQ(0, on_device());
		EXPECT_EQ(0, libhwt_timers_error(timers));
		libhwt_timers_free(timers);
	}
}

/* Move and cancel timers of the parent, and free the copy of its set. */
static int child(struct libhwt *hwt)
{
	if (libhwt_modify(hwt, (uintptr_t)&timer[0], 20 * MSEC) < 0 ||
	    libhwt_modify(hwt, (uintptr_t)&timer[1], 2500 * MSEC) < 0 ||
	    libhwt_cancel(hwt, (uintptr_t)&timer[2]) < 0)
		return 1;
	libhwt_timers_free(timers);
	return 0;
}

TEST(another_process_moves_and_cancels)
{
	struct libhwt *hwt = begin(LIBHWT_DEVICE);

	ASSERT_NE(NULL, hwt);
	libhwt_timer_set(timers, &timer[0], HOUR);
	libhwt_timer_set(timers, &timer[1], 2 * SEC);
	libhwt_timer_set(timers, &timer[2], HOUR);
	libhwt_timer_set(timers, &timer[3], HOUR);
	EXPECT_EQ(0, IN_CHILD(child(hwt)));
	EXPECT_EQ(3, on_device());
	EXPECT_TRUE(loop(2, true));
	EXPECT_EQ(1, on_device());
	EXPECT_EQ(2, libhwt_timers_count(timers));
	EXPECT_TRUE(order[0] == 0 && order[1] == 1);
	libhwt_timers_free(timers);
}

/* A descriptor that reports events of another program does not keep the loop awake. */
TEST(events_that_others_take)
{
	struct libhwt *hwt = begin(LIBHWT_DEVICE);
	struct ring ring;
	int fd;

	ASSERT_NE(NULL, hwt);
	fd = libhwt_timers_fd(timers);
	ASSERT_EQ(0, ring_make(&ring, libhwt_fd(hwt), 0, 4, 4));
	ASSERT_EQ(0, hwt_key(libhwt_fd(hwt), 0, 0, 77));
	ASSERT_EQ(POLLIN, hwt_wait(fd, PATIENCE_MS));
	libhwt_timers_run(timers);
	EXPECT_EQ(0, hwt_wait(fd, 10));
	libhwt_timers_free(timers);
	ring_unmap(&ring);
}

TEST_HARNESS_MAIN
