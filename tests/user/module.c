// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device and its module: the parameter, and loading and unloading around users.
 *
 * hwt-test: noload
 * hwt-test: timeout 120
 */
#include "kselftest_harness.h"

#include "guest.h"
#include "hwt_module.h"

static int load(const char *params)
{
	int file = open_module("hwt"), ret;

	if (file < 0)
		return hwt_errno();
	ret = load_module(file, params);
	close(file);
	return ret;
}

static int unload(void)
{
	return unload_module("hwt");
}

TEST(max_timeouts_out_of_range)
{
	static const char * const bad[] = { "0", "1073741825", "4294967295" };
	char params[64], text[128];
	unsigned int i;
	int kmsg;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		kmsg = log_open();
		ASSERT_LE(0, kmsg);
		snprintf(params, sizeof(params), "max_timeouts=%s", bad[i]);
		EXPECT_EQ(-EINVAL, load(params));
		snprintf(text, sizeof(text), "max_timeouts=%s is out of range: 1 to 1073741824",
			 bad[i]);
		EXPECT_TRUE(log_has(kmsg, text));
		close(kmsg);
		EXPECT_EQ(-1, access(HWT_DEV, F_OK));
	}
}

TEST(max_timeouts_of_one)
{
	struct hwt_event event;
	__u64 id;
	int fd;

	ASSERT_EQ(0, load("max_timeouts=1"));
	EXPECT_EQ(1ULL, hwt_param("max_timeouts"));
	fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, hwt_add(fd, 0, HOUR, 0, &id));
	EXPECT_EQ(-EAGAIN, hwt_add(fd, 0, HOUR, 0, NULL));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(fd, id));
	EXPECT_EQ(0, hwt_add(fd, 0, 0, 0, NULL));
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(0, hwt_add(fd, 0, HOUR, 0, NULL));
	close(fd);
	EXPECT_EQ(0, unload());
}

TEST(unload_while_in_use_is_refused)
{
	struct hwt_event event;
	int fd;

	ASSERT_EQ(0, load(""));
	fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	EXPECT_EQ(0, hwt_add(fd, 0, 0, 0, NULL));
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(-EWOULDBLOCK, unload());
	close(fd);
	EXPECT_EQ(0, unload());
	EXPECT_EQ(-1, access(HWT_DEV, F_OK));
}

/* Right after the close: what is not let go yet must not be run over. */
TEST(unload_at_once_after_close)
{
	int rounds = quick() ? 5 : 20, i, j, fd, count, ret;
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.clock = CLOCK_MONOTONIC,
	};

	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, load(""));
		fd = hwt_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ret = i % 3 == 2 ? hwt_call(fd, HWT_IOC_SETUP, &setup) : 0;
		ASSERT_EQ(0, ret);
		count = i % 2 ? 2000 : 10;
		for (j = 0; j < count; j++)
			ASSERT_EQ(0, hwt_add(fd, 0, j % 3 ? HOUR : j % 7 * MSEC, 0, NULL));
		ASSERT_EQ(0, hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, 0, 1, 0, NULL));
		close(fd);
		ASSERT_EQ(0, unload());
	}
}

FIXTURE(slow_tick) {
	__u64 next;	/* the first tick from now on */
};

FIXTURE_SETUP(slow_tick)
{
	__u64 tick, count;
	char params[64];

	/* Ticks count from the clock's zero, and are at most an hour. */
	self->next = now_ns() + 45 * SEC;
	count = 1 + self->next / HOUR;
	tick = self->next / count;
	snprintf(params, sizeof(params), "tick_us=%llu", (unsigned long long)(tick / USEC));
	ASSERT_EQ(0, load(params));
}

FIXTURE_TEARDOWN(slow_tick)
{
}

/* What was cancelled is let go after a while, not with the next tick. */
TEST_F_TIMEOUT(slow_tick, unload_does_not_wait_for_a_tick, 100)
{
	__u64 id, before;
	int fd;

	fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, &id));
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 1, NULL));
	ASSERT_EQ(HWT_STATE_PENDING, hwt_del(fd, id));
	sleep_ns(50 * MSEC);
	close(fd);
	before = now_ns();
	ASSERT_GT(self->next, before + 20 * SEC);
	EXPECT_EQ(0, unload());
	EXPECT_GT(before + 20 * SEC, now_ns());
}

TEST_HARNESS_MAIN
