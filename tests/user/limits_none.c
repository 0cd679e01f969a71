// SPDX-License-Identifier: GPL-2.0-only
/*
 * No limits for users, and a module that is slow to let go of what was cancelled.
 *
 * hwt-test: long
 * hwt-test: load reclaim_ms=10000 max_user_timeouts=0 max_user_wheels=0
 * hwt-test: timeout 150
 */
#include "kselftest_harness.h"

#include "caps.h"
#include "fixtures.h"

/* More than a user may have leaving before it has to wait (HWT_LEAVING_MAX). */
#define MANY		102400
#define STEP		1024

/*
 * Many are cancelled, and the wheel's thread is in no hurry to let go of them (reclaim_ms): who
 * makes another one has to wait, but not for ever.
 */
TEST_F_TIMEOUT(ctx, after_many_cancels, 140)
{
	static struct hwt_op ops[STEP];
	static __u64 ids[MANY];
	__u64 begin, cancelled, waited;
	unsigned int n, i;

	for (n = 0; n < MANY; n += STEP) {
		for (i = 0; i < STEP; i++)
			ops[i] = op_schedule(HOUR, n + i);
		ASSERT_EQ(STEP, hwt_batch(self->fd, ops, STEP));
		for (i = 0; i < STEP; i++) {
			ASSERT_EQ(0, ops[i].result);
			ids[n + i] = ops[i].id;
		}
	}
	/* The wheel has put all of them in their places. */
	sleep_ns(100 * MSEC);
	begin = now_ns();
	for (n = 0; n < MANY; n += STEP) {
		for (i = 0; i < STEP; i++)
			ops[i] = op_cancel(ids[n + i]);
		ASSERT_EQ(STEP, hwt_batch(self->fd, ops, STEP));
	}
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));
	cancelled = now_ns();
	EXPECT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
	waited = now_ns() - cancelled;
	TH_LOG("cancelled in %llu ms; the next one took %llu us", (cancelled - begin) / MSEC,
	       waited / USEC);
	/* That it takes long is not to be had always: the thread may come by on its own. flood.c
	 * shows that there is a limit.
	 */
	for (i = 1; i < 10; i++)
		EXPECT_EQ(0, hwt_add(self->fd, 0, HOUR, i, NULL));
	EXPECT_EQ(10ULL, hwt_timeouts(self->fd));
}

/* With no limit a user may have more private wheels than the default of 16. */
TEST(private_wheels)
{
	int fd[20];
	size_t i;

	/* Else there is no limit anyway. */
	ASSERT_EQ(0, set_capability(CAP_SYS_RESOURCE, false));
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = hwt_open(O_NONBLOCK);
		EXPECT_EQ(0, hwt_private(fd[i], CLOCK_MONOTONIC, 0));
	}
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

TEST_HARNESS_MAIN
