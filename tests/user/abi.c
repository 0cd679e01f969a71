// SPDX-License-Identifier: GPL-2.0-only
/*
 * The binary interface: numbers, sizes and offsets are what they were in version 1, in
 * 64-bit and 32-bit programs, and each call works from both.
 *
 * hwt-test: m32
 */
#include "kselftest_harness.h"
#include <stddef.h>

#include "hwt_dev.h"

#define SIZE(_type, _size)						\
	_Static_assert(sizeof(struct _type) == (_size) &&		\
		       _Alignof(struct _type) == 8, #_type)
#define FIELD(_type, _field, _offset, _size)				\
	_Static_assert(offsetof(struct _type, _field) == (_offset) &&	\
		       sizeof(((struct _type *)0)->_field) == (_size),	\
		       #_type "." #_field)

SIZE(hwt_event, 64);
FIELD(hwt_event, id, 0, 8);
FIELD(hwt_event, user_data, 8, 8);
FIELD(hwt_event, deadline_ns, 16, 8);
FIELD(hwt_event, fired_ns, 24, 8);
FIELD(hwt_event, overruns, 32, 8);
FIELD(hwt_event, kind, 40, 4);
FIELD(hwt_event, flags, 44, 4);
FIELD(hwt_event, reserved, 48, 16);

SIZE(hwt_info_args, HWT_INFO_SIZE_VER1);
FIELD(hwt_info_args, size, 0, 4);
FIELD(hwt_info_args, flags, 4, 4);
FIELD(hwt_info_args, version, 8, 4);
FIELD(hwt_info_args, clock, 12, 4);
FIELD(hwt_info_args, tick_ns, 16, 8);
FIELD(hwt_info_args, ticks_per_wheel, 24, 4);
FIELD(hwt_info_args, levels, 28, 4);
FIELD(hwt_info_args, now_ns, 32, 8);
FIELD(hwt_info_args, max_timeouts, 40, 8);
FIELD(hwt_info_args, max_pending, 48, 8);
FIELD(hwt_info_args, features, 56, 8);
FIELD(hwt_info_args, event_size, 64, 4);
FIELD(hwt_info_args, reserved, 68, 4);
_Static_assert(HWT_INFO_SIZE_VER1 == 72, "");

SIZE(hwt_setup_args, HWT_SETUP_SIZE_VER1);
FIELD(hwt_setup_args, size, 0, 4);
FIELD(hwt_setup_args, flags, 4, 4);
FIELD(hwt_setup_args, tick_ns, 8, 8);
FIELD(hwt_setup_args, ticks_per_wheel, 16, 4);
FIELD(hwt_setup_args, levels, 20, 4);
FIELD(hwt_setup_args, clock, 24, 4);
FIELD(hwt_setup_args, reserved, 28, 4);
FIELD(hwt_setup_args, max_pending, 32, 8);
_Static_assert(HWT_SETUP_SIZE_VER1 == 40, "");

SIZE(hwt_schedule_args, HWT_SCHEDULE_SIZE_VER1);
FIELD(hwt_schedule_args, size, 0, 4);
FIELD(hwt_schedule_args, flags, 4, 4);
FIELD(hwt_schedule_args, mode, 8, 4);
FIELD(hwt_schedule_args, reserved, 12, 4);
FIELD(hwt_schedule_args, time_ns, 16, 8);
FIELD(hwt_schedule_args, period_ns, 24, 8);
FIELD(hwt_schedule_args, slack_ns, 32, 8);
FIELD(hwt_schedule_args, user_data, 40, 8);
FIELD(hwt_schedule_args, id, 48, 8);
_Static_assert(HWT_SCHEDULE_SIZE_VER1 == 56, "");

SIZE(hwt_modify_args, HWT_MODIFY_SIZE_VER1);
FIELD(hwt_modify_args, size, 0, 4);
FIELD(hwt_modify_args, flags, 4, 4);
FIELD(hwt_modify_args, id, 8, 8);
FIELD(hwt_modify_args, time_ns, 16, 8);
FIELD(hwt_modify_args, period_ns, 24, 8);
FIELD(hwt_modify_args, slack_ns, 32, 8);
FIELD(hwt_modify_args, user_data, 40, 8);
FIELD(hwt_modify_args, was, 48, 4);
FIELD(hwt_modify_args, reserved, 52, 4);
_Static_assert(HWT_MODIFY_SIZE_VER1 == 56, "");

SIZE(hwt_cancel_args, HWT_CANCEL_SIZE_VER1);
FIELD(hwt_cancel_args, size, 0, 4);
FIELD(hwt_cancel_args, flags, 4, 4);
FIELD(hwt_cancel_args, id, 8, 8);
FIELD(hwt_cancel_args, was, 16, 4);
FIELD(hwt_cancel_args, reserved, 20, 4);
_Static_assert(HWT_CANCEL_SIZE_VER1 == 24, "");

SIZE(hwt_get_args, HWT_GET_SIZE_VER1);
FIELD(hwt_get_args, size, 0, 4);
FIELD(hwt_get_args, flags, 4, 4);
FIELD(hwt_get_args, id, 8, 8);
FIELD(hwt_get_args, state, 16, 4);
FIELD(hwt_get_args, mode, 20, 4);
FIELD(hwt_get_args, user_data, 24, 8);
FIELD(hwt_get_args, deadline_ns, 32, 8);
FIELD(hwt_get_args, remaining_ns, 40, 8);
FIELD(hwt_get_args, period_ns, 48, 8);
FIELD(hwt_get_args, overruns, 56, 8);
_Static_assert(HWT_GET_SIZE_VER1 == 64, "");

SIZE(hwt_stop_args, HWT_STOP_SIZE_VER1);
FIELD(hwt_stop_args, size, 0, 4);
FIELD(hwt_stop_args, flags, 4, 4);
FIELD(hwt_stop_args, stopped, 8, 8);
_Static_assert(HWT_STOP_SIZE_VER1 == 16, "");

SIZE(hwt_stats_args, HWT_STATS_SIZE_VER1);
FIELD(hwt_stats_args, size, 0, 4);
FIELD(hwt_stats_args, flags, 4, 4);
FIELD(hwt_stats_args, timeouts, 8, 8);
FIELD(hwt_stats_args, events, 16, 8);
FIELD(hwt_stats_args, scheduled, 24, 8);
FIELD(hwt_stats_args, modified, 32, 8);
FIELD(hwt_stats_args, cancelled, 40, 8);
FIELD(hwt_stats_args, stopped, 48, 8);
FIELD(hwt_stats_args, expired, 56, 8);
FIELD(hwt_stats_args, overruns, 64, 8);
FIELD(hwt_stats_args, read, 72, 8);
FIELD(hwt_stats_args, rejected, 80, 8);
_Static_assert(HWT_STATS_SIZE_VER1 == 88, "");

SIZE(hwt_list_entry, 64);
FIELD(hwt_list_entry, id, 0, 8);
FIELD(hwt_list_entry, user_data, 8, 8);
FIELD(hwt_list_entry, deadline_ns, 16, 8);
FIELD(hwt_list_entry, remaining_ns, 24, 8);
FIELD(hwt_list_entry, period_ns, 32, 8);
FIELD(hwt_list_entry, overruns, 40, 8);
FIELD(hwt_list_entry, state, 48, 4);
FIELD(hwt_list_entry, mode, 52, 4);
FIELD(hwt_list_entry, reserved, 56, 8);

SIZE(hwt_list_args, HWT_LIST_SIZE_VER1);
FIELD(hwt_list_args, size, 0, 4);
FIELD(hwt_list_args, flags, 4, 4);
FIELD(hwt_list_args, cursor, 8, 8);
FIELD(hwt_list_args, entries, 16, 8);
FIELD(hwt_list_args, count, 24, 4);
FIELD(hwt_list_args, entry_size, 28, 4);
_Static_assert(HWT_LIST_SIZE_VER1 == 32, "");

_Static_assert(HWT_IOC_INFO == 0xE700, "");
_Static_assert(HWT_IOC_SETUP == 0xE701, "");
_Static_assert(HWT_IOC_SCHEDULE == 0xE702, "");
_Static_assert(HWT_IOC_MODIFY == 0xE703, "");
_Static_assert(HWT_IOC_CANCEL == 0xE704, "");
_Static_assert(HWT_IOC_GET == 0xE705, "");
_Static_assert(HWT_IOC_STOP == 0xE706, "");
_Static_assert(HWT_IOC_STATS == 0xE707, "");
_Static_assert(HWT_IOC_LIST == 0xE708, "");
_Static_assert(HWT_EVENT_EXPIRED == 1 && HWT_EVENT_STOPPED == 2, "");
_Static_assert(HWT_EVENT_LAST == 1, "");
_Static_assert(HWT_STATE_PENDING == 1 && HWT_STATE_EVENT == 2, "");
_Static_assert(HWT_MODE_ONE_SHOT == 0 && HWT_MODE_FIXED_RATE == 1 &&
	       HWT_MODE_FIXED_DELAY == 2, "");
_Static_assert(HWT_ABSOLUTE == 1 && HWT_SET_USER_DATA == 2, "");
_Static_assert(HWT_SETUP_COARSE_CLOCK == 1, "");

/* A value for each 64-bit field that a half of it would not pass for. */
#define DATA	0xfedcba9876543210ULL

/* The whole interface once, with values that do not fit 32 bits. */
TEST(every_call)
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
	int fd;

	fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, hwt_call(fd, HWT_IOC_SETUP, &setup));
	ASSERT_EQ(0, hwt_info(fd, &info));
	EXPECT_EQ(5000000000ULL, info.tick_ns);
	EXPECT_EQ(16U, info.ticks_per_wheel);
	EXPECT_EQ(2U, info.levels);
	EXPECT_EQ(CLOCK_BOOTTIME, info.clock);
	EXPECT_EQ(1ULL << 40, info.max_pending);

	ASSERT_EQ(0, hwt_call(fd, HWT_IOC_SCHEDULE, &schedule));
	EXPECT_NE(0ULL, schedule.id);
	ASSERT_EQ(0, hwt_get(fd, schedule.id, &get));
	EXPECT_EQ((__u32)HWT_STATE_PENDING, get.state);
	EXPECT_EQ((__u32)HWT_MODE_FIXED_RATE, get.mode);
	EXPECT_EQ(DATA, get.user_data);
	EXPECT_LE(1ULL << 50, get.deadline_ns);
	EXPECT_GE((1ULL << 50) + 5000000000ULL, get.remaining_ns);
	EXPECT_LE(1ULL << 49, get.remaining_ns);
	EXPECT_EQ(1ULL << 51, get.period_ns);

	modify.id = schedule.id;
	ASSERT_EQ(0, hwt_call(fd, HWT_IOC_MODIFY, &modify));
	EXPECT_EQ((__u32)HWT_STATE_PENDING, modify.was);
	ASSERT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(schedule.id, event.id);
	EXPECT_EQ(~DATA, event.user_data);
	EXPECT_EQ(5000000000ULL, event.deadline_ns);
	EXPECT_EQ((__u32)HWT_EVENT_EXPIRED, event.kind);
	ASSERT_EQ(0, hwt_get(fd, schedule.id, &get));
	EXPECT_EQ(1ULL << 52, get.period_ns);

	cancel.id = schedule.id;
	ASSERT_EQ(0, hwt_call(fd, HWT_IOC_CANCEL, &cancel));
	EXPECT_EQ((__u32)HWT_STATE_PENDING, cancel.was);

	schedule.mode = HWT_MODE_ONE_SHOT;
	schedule.flags = HWT_ABSOLUTE;
	schedule.time_ns = 1ULL << 60;
	schedule.period_ns = 0;
	ASSERT_EQ(0, hwt_call(fd, HWT_IOC_SCHEDULE, &schedule));
	ASSERT_EQ(0, hwt_call(fd, HWT_IOC_STOP, &stop));
	EXPECT_EQ(1ULL, stop.stopped);
	ASSERT_EQ(1, hwt_read(fd, &event, 1));
	EXPECT_EQ((__u32)HWT_EVENT_STOPPED, event.kind);
	EXPECT_EQ((__u32)HWT_EVENT_LAST, event.flags);
	EXPECT_LE(1ULL << 60, event.deadline_ns);
	EXPECT_GT((1ULL << 60) + 5000000000ULL, event.deadline_ns);
	EXPECT_EQ(DATA, event.user_data);

	ASSERT_EQ(0, hwt_stats(fd, &stats));
	EXPECT_EQ(2ULL, stats.scheduled);
	EXPECT_EQ(1ULL, stats.modified);
	EXPECT_EQ(1ULL, stats.cancelled);
	EXPECT_EQ(1ULL, stats.expired);
	EXPECT_EQ(1ULL, stats.stopped);
	EXPECT_EQ(2ULL, stats.read);
	close(fd);
}

TEST_HARNESS_MAIN
