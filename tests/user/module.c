// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of the module, and unloading it. For ranges of parameters, see module-params.sh.
 *
 * hwt-test: noload
 * hwt-test: timeout 120
 */
#include "kselftest_harness.h"
#include <sys/stat.h>

#include "guest.h"
#include "hwt_ring.h"

static int load(const char *params)
{
	int file = open_module("hwt"), ret;

	if (file < 0)
		return hwt_errno();
	ret = load_module(file, params);
	close(file);
	return ret;
}

/* More users than the module's hash table has buckets */
TEST(each_user_has_its_own_count)
{
	static int fd[30], again[ARRAY_SIZE(fd)];
	unsigned int i;
	bool made;

	ASSERT_EQ(0, load("max_user_timeouts=1"));
	ASSERT_EQ(0, chmod(HWT_DEV, 0666));
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = open_as(5000 + i);
		again[i] = open_as(5000 + i);
		ASSERT_LE(0, again[i]);
		EXPECT_EQ(0, hwt_add(fd[i], 0, HOUR, i, NULL));
		EXPECT_EQ(-ENOSPC, hwt_add(again[i], 0, HOUR, i, NULL));
	}
	/* A user that closes its context has room again; the others do not. */
	for (i = 0; i < ARRAY_SIZE(fd); i += 2)
		close(fd[i]);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		made = i % 2 ? !hwt_add(again[i], 0, HOUR, i, NULL) :
			       until(!hwt_add(again[i], 0, HOUR, i, NULL));
		EXPECT_EQ(i % 2 == 0, made);
		if (i % 2)
			close(fd[i]);
		close(again[i]);
	}
	EXPECT_EQ(0, unload_module("hwt"));
}

/* Unloading fails while the device is open. After the close, it waits for unreleased timeouts. */
TEST(unload_at_once_after_close)
{
	int i, j, fd, count;

	/* Both numbers of timeouts with both kinds of wheel. */
	for (i = 0; i < 6; i++) {
		ASSERT_EQ(0, load(""));
		fd = i % 3 == 2 ? hwt_open_private(CLOCK_MONOTONIC) : hwt_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		count = i % 2 ? 2000 : 10;
		for (j = 0; j < count; j++)
			ASSERT_EQ(0, hwt_add(fd, 0, j % 3 ? HOUR : j % 7 * MSEC, 0, NULL));
		ASSERT_EQ(0, hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, 0, 1, 0, NULL));
		EXPECT_EQ(-EWOULDBLOCK, unload_module("hwt"));
		close(fd);
		ASSERT_EQ(0, unload_module("hwt"));
		EXPECT_EQ(-1, access(HWT_DEV, F_OK));
	}
}

TEST_HARNESS_MAIN
