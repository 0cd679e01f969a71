// SPDX-License-Identifier: GPL-2.0-only
/*
 * The binary interface: each call works from 64-bit and 32-bit programs. Numbers, sizes and
 * offsets are those of the tables in hwt(4): tests/static/abi.py compares them.
 *
 * hwt-test: shared
 * hwt-test: m32 quick
 */
#include "kselftest_harness.h"

#include "context.h"

/* A value for each 64-bit field that a half of it would not pass for. */
#define DATA	0xfedcba9876543210ULL

/* The whole interface once, with values that do not fit 32 bits. */
TEST_F(ctx, every_call)
{
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.tick_ns = 5000000000ULL,
		.ticks_per_wheel = 16,
		.levels = 2,
		.clock = CLOCK_BOOTTIME,
		.max_pending = 1ULL << 40,
	};
	struct hwt_schedule_args schedule = {
		.size = sizeof(schedule),
		.mode = HWT_MODE_FIXED_RATE,
		.time_ns = 1ULL << 50,
		.period_ns = 1ULL << 51,
		.user_data = DATA,
	};
	struct hwt_modify_args modify = {
		.size = sizeof(modify),
		.flags = HWT_SET_USER_DATA | HWT_ABSOLUTE,
		.time_ns = 1,
		.period_ns = 1ULL << 52,
		.user_data = ~DATA,
	};
	struct hwt_cancel_args cancel = { .size = sizeof(cancel) };
	struct hwt_stop_args stop = { .size = sizeof(stop) };
	struct hwt_stats_args stats;
	struct hwt_info_args info;
	struct hwt_get_args get;
	struct hwt_event event;

	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_SETUP, &setup));
	ASSERT_EQ(0, hwt_info(self->fd, &info));
	EXPECT_EQ(5000000000ULL, info.tick_ns);
	EXPECT_EQ(16U, info.ticks_per_wheel);
	EXPECT_EQ(2U, info.levels);
	EXPECT_EQ(CLOCK_BOOTTIME, info.clock);
	EXPECT_EQ(1ULL << 40, info.max_pending);

	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_SCHEDULE, &schedule));
	EXPECT_NE(0ULL, schedule.id);
	ASSERT_EQ(0, hwt_get(self->fd, schedule.id, &get));
	EXPECT_EQ((__u32)HWT_STATE_PENDING, get.state);
	EXPECT_EQ((__u32)HWT_MODE_FIXED_RATE, get.mode);
	EXPECT_EQ(DATA, get.user_data);
	EXPECT_LE(1ULL << 50, get.deadline_ns);
	EXPECT_GE((1ULL << 50) + 5000000000ULL, get.remaining_ns);
	EXPECT_LE(1ULL << 49, get.remaining_ns);
	EXPECT_EQ(1ULL << 51, get.period_ns);

	modify.id = schedule.id;
	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_MODIFY, &modify));
	EXPECT_EQ((__u32)HWT_STATE_PENDING, modify.was);
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(schedule.id, event.id);
	EXPECT_EQ(~DATA, event.user_data);
	EXPECT_EQ(5000000000ULL, event.deadline_ns);
	EXPECT_EQ((__u32)HWT_EVENT_EXPIRED, event.kind);
	ASSERT_EQ(0, hwt_get(self->fd, schedule.id, &get));
	EXPECT_EQ(1ULL << 52, get.period_ns);

	cancel.id = schedule.id;
	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_CANCEL, &cancel));
	EXPECT_EQ((__u32)HWT_STATE_PENDING, cancel.was);

	schedule.mode = HWT_MODE_ONE_SHOT;
	schedule.flags = HWT_ABSOLUTE;
	schedule.time_ns = 1ULL << 60;
	schedule.period_ns = 0;
	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_SCHEDULE, &schedule));
	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_STOP, &stop));
	EXPECT_EQ(1ULL, stop.stopped);
	ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
	EXPECT_EQ((__u32)HWT_EVENT_STOPPED, event.kind);
	EXPECT_EQ((__u32)HWT_EVENT_LAST, event.flags);
	EXPECT_LE(1ULL << 60, event.deadline_ns);
	EXPECT_GT((1ULL << 60) + 5000000000ULL, event.deadline_ns);
	EXPECT_EQ(DATA, event.user_data);

	ASSERT_EQ(0, hwt_stats(self->fd, &stats));
	EXPECT_EQ(2ULL, stats.scheduled);
	EXPECT_EQ(1ULL, stats.modified);
	EXPECT_EQ(1ULL, stats.cancelled);
	EXPECT_EQ(1ULL, stats.expired);
	EXPECT_EQ(1ULL, stats.stopped);
	EXPECT_EQ(2ULL, stats.read);
}

TEST_HARNESS_MAIN
