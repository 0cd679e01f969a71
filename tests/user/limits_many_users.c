// SPDX-License-Identifier: GPL-2.0-only
/*
 * More users than the module's table of users has places: each is counted by itself.
 *
 * hwt-test: load max_user_timeouts=1
 */
#include "kselftest_harness.h"

#include "hwt_dev.h"

#define FIRST		5000
#define USERS		200

/* Whoever opens it counts. */
static int open_as(uid_t uid)
{
	int fd, error;

	if (setresuid(uid, -1, 0))
		return -errno;
	fd = hwt_open(O_NONBLOCK);
	error = errno;
	if (setresuid(0, 0, 0))
		return -EPERM;
	return fd < 0 ? -error : fd;
}

TEST(each_has_its_own_count)
{
	static int fd[USERS], again[USERS];
	unsigned int i;

	for (i = 0; i < USERS; i++) {
		fd[i] = open_as(FIRST + i);
		ASSERT_LE(0, fd[i]);
		again[i] = open_as(FIRST + i);
		ASSERT_LE(0, again[i]);
	}
	for (i = 0; i < USERS; i++)
		EXPECT_EQ(0, hwt_add(fd[i], 0, HOUR, i, NULL));
	for (i = 0; i < USERS; i++)
		EXPECT_EQ(-EAGAIN, hwt_add(again[i], 0, HOUR, i, NULL));
	/* What one gives back, only that one may have. */
	for (i = 0; i < USERS; i += 2)
		close(fd[i]);
	for (i = 0; i < USERS; i++)
		EXPECT_EQ(i % 2 ? -EAGAIN : 0, hwt_add(again[i], 0, HOUR, i, NULL));
	for (i = 0; i < USERS; i++) {
		if (i % 2)
			close(fd[i]);
		close(again[i]);
	}
}

TEST_HARNESS_MAIN
