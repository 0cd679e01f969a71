// SPDX-License-Identifier: GPL-2.0-only
/*
 * The binary interface: numbers, sizes and offsets are what they have always been, in
 * 64-bit and 32-bit programs, and each call works from both.
 *
 * hwt-test: m32 quick
 */
#include "kselftest_harness.h"
#include <stddef.h>

#include "hwt_dev.h"

#define SIZE(_type, _size, _align)					\
	_Static_assert(sizeof(struct _type) == (_size) &&		\
		       _Alignof(struct _type) == (_align), #_type)
#define FIELD(_type, _field, _offset, _size)				\
	_Static_assert(offsetof(struct _type, _field) == (_offset) &&	\
		       sizeof(((struct _type *)0)->_field) == (_size),	\
		       #_type "." #_field)
#define NUMBER(_name, _value)						\
	_Static_assert((_name) == (_value), #_name)

/*
 * Each structure, member and number of the header: tests/static/abi.py sees to that. What is
 * here stays, but for HWT_ABI_VERSION and the size of a structure of arguments, which grow.
 */
SIZE(hwt_event, 64, 8);
FIELD(hwt_event, id, 0, 8);
FIELD(hwt_event, user_data, 8, 8);
FIELD(hwt_event, deadline_ns, 16, 8);
FIELD(hwt_event, fired_ns, 24, 8);
FIELD(hwt_event, overruns, 32, 8);
FIELD(hwt_event, kind, 40, 4);
FIELD(hwt_event, flags, 44, 4);
FIELD(hwt_event, reserved, 48, 16);

SIZE(hwt_info_args, 96, 8);
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
FIELD(hwt_info_args, max_shared, 72, 8);
FIELD(hwt_info_args, max_user_timeouts, 80, 8);
FIELD(hwt_info_args, max_user_wheels, 88, 4);
FIELD(hwt_info_args, reserved2, 92, 4);

SIZE(hwt_setup_args, 48, 8);
FIELD(hwt_setup_args, size, 0, 4);
FIELD(hwt_setup_args, flags, 4, 4);
FIELD(hwt_setup_args, tick_ns, 8, 8);
FIELD(hwt_setup_args, ticks_per_wheel, 16, 4);
FIELD(hwt_setup_args, levels, 20, 4);
FIELD(hwt_setup_args, clock, 24, 4);
FIELD(hwt_setup_args, reserved, 28, 4);
FIELD(hwt_setup_args, max_pending, 32, 8);
FIELD(hwt_setup_args, cpu, 40, 4);
FIELD(hwt_setup_args, priority, 44, 4);

SIZE(hwt_schedule_args, 56, 8);
FIELD(hwt_schedule_args, size, 0, 4);
FIELD(hwt_schedule_args, flags, 4, 4);
FIELD(hwt_schedule_args, mode, 8, 4);
FIELD(hwt_schedule_args, reserved, 12, 4);
FIELD(hwt_schedule_args, time_ns, 16, 8);
FIELD(hwt_schedule_args, period_ns, 24, 8);
FIELD(hwt_schedule_args, slack_ns, 32, 8);
FIELD(hwt_schedule_args, user_data, 40, 8);
FIELD(hwt_schedule_args, id, 48, 8);

SIZE(hwt_modify_args, 56, 8);
FIELD(hwt_modify_args, size, 0, 4);
FIELD(hwt_modify_args, flags, 4, 4);
FIELD(hwt_modify_args, id, 8, 8);
FIELD(hwt_modify_args, time_ns, 16, 8);
FIELD(hwt_modify_args, period_ns, 24, 8);
FIELD(hwt_modify_args, slack_ns, 32, 8);
FIELD(hwt_modify_args, user_data, 40, 8);
FIELD(hwt_modify_args, was, 48, 4);
FIELD(hwt_modify_args, reserved, 52, 4);

SIZE(hwt_cancel_args, 24, 8);
FIELD(hwt_cancel_args, size, 0, 4);
FIELD(hwt_cancel_args, flags, 4, 4);
FIELD(hwt_cancel_args, id, 8, 8);
FIELD(hwt_cancel_args, was, 16, 4);
FIELD(hwt_cancel_args, reserved, 20, 4);

SIZE(hwt_get_args, 64, 8);
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

SIZE(hwt_list_entry, 64, 8);
FIELD(hwt_list_entry, id, 0, 8);
FIELD(hwt_list_entry, user_data, 8, 8);
FIELD(hwt_list_entry, deadline_ns, 16, 8);
FIELD(hwt_list_entry, remaining_ns, 24, 8);
FIELD(hwt_list_entry, period_ns, 32, 8);
FIELD(hwt_list_entry, overruns, 40, 8);
FIELD(hwt_list_entry, state, 48, 4);
FIELD(hwt_list_entry, mode, 52, 4);
FIELD(hwt_list_entry, reserved, 56, 8);

SIZE(hwt_list_args, 32, 8);
FIELD(hwt_list_args, size, 0, 4);
FIELD(hwt_list_args, flags, 4, 4);
FIELD(hwt_list_args, cursor, 8, 8);
FIELD(hwt_list_args, entries, 16, 8);
FIELD(hwt_list_args, count, 24, 4);
FIELD(hwt_list_args, entry_size, 28, 4);

SIZE(hwt_stop_args, 16, 8);
FIELD(hwt_stop_args, size, 0, 4);
FIELD(hwt_stop_args, flags, 4, 4);
FIELD(hwt_stop_args, stopped, 8, 8);

SIZE(hwt_stats_args, 88, 8);
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

SIZE(hwt_op, 64, 8);
FIELD(hwt_op, opcode, 0, 4);
FIELD(hwt_op, flags, 4, 4);
FIELD(hwt_op, mode, 8, 4);
FIELD(hwt_op, result, 12, 4);
FIELD(hwt_op, id, 16, 8);
FIELD(hwt_op, time_ns, 24, 8);
FIELD(hwt_op, deadline_ns, 24, 8);
FIELD(hwt_op, period_ns, 32, 8);
FIELD(hwt_op, slack_ns, 40, 8);
FIELD(hwt_op, remaining_ns, 40, 8);
FIELD(hwt_op, user_data, 48, 8);
FIELD(hwt_op, overruns, 56, 8);

SIZE(hwt_batch_args, 24, 8);
FIELD(hwt_batch_args, size, 0, 4);
FIELD(hwt_batch_args, flags, 4, 4);
FIELD(hwt_batch_args, ops, 8, 8);
FIELD(hwt_batch_args, count, 16, 4);
FIELD(hwt_batch_args, op_size, 20, 4);

SIZE(hwt_rings, 192, 4);
FIELD(hwt_rings, op_head, 0, 4);
FIELD(hwt_rings, event_tail, 4, 4);
FIELD(hwt_rings, flags, 8, 4);
FIELD(hwt_rings, reserved, 12, 52);
FIELD(hwt_rings, op_tail, 64, 4);
FIELD(hwt_rings, reserved2, 68, 60);
FIELD(hwt_rings, event_head, 128, 4);
FIELD(hwt_rings, reserved3, 132, 60);

SIZE(hwt_rings_args, 40, 8);
FIELD(hwt_rings_args, size, 0, 4);
FIELD(hwt_rings_args, flags, 4, 4);
FIELD(hwt_rings_args, op_entries, 8, 4);
FIELD(hwt_rings_args, event_entries, 12, 4);
FIELD(hwt_rings_args, map_size, 16, 8);
FIELD(hwt_rings_args, ops_offset, 24, 4);
FIELD(hwt_rings_args, events_offset, 28, 4);
FIELD(hwt_rings_args, op_size, 32, 4);
FIELD(hwt_rings_args, event_size, 36, 4);

SIZE(hwt_enter_args, 24, 8);
FIELD(hwt_enter_args, size, 0, 4);
FIELD(hwt_enter_args, flags, 4, 4);
FIELD(hwt_enter_args, submit, 8, 4);
FIELD(hwt_enter_args, wait, 12, 4);
FIELD(hwt_enter_args, timeout_ns, 16, 8);

SIZE(hwt_uring_cmd, 16, 8);
FIELD(hwt_uring_cmd, time_ns, 0, 8);
FIELD(hwt_uring_cmd, flags, 8, 4);
FIELD(hwt_uring_cmd, slack_us, 12, 4);

NUMBER(HWT_ABI_VERSION, 3);
NUMBER(HWT_NEVER, 0xffffffffffffffffULL);
NUMBER(HWT_EVENT_EXPIRED, 1);
NUMBER(HWT_EVENT_STOPPED, 2);
NUMBER(HWT_EVENT_CLOCK_SET, 3);
NUMBER(HWT_EVENT_LAST, 0x1);
NUMBER(HWT_FEATURE_SETUP, 0x1);
NUMBER(HWT_FEATURE_BOOTTIME, 0x2);
NUMBER(HWT_FEATURE_REALTIME, 0x4);
NUMBER(HWT_FEATURE_LIST, 0x8);
NUMBER(HWT_FEATURE_BATCH, 0x10);
NUMBER(HWT_FEATURE_RINGS, 0x20);
NUMBER(HWT_FEATURE_URING, 0x40);
NUMBER(HWT_FEATURE_PLACE, 0x80);
NUMBER(HWT_SETUP_COARSE_CLOCK, 0x1);
NUMBER(HWT_SETUP_TELL_CLOCK_SET, 0x2);
NUMBER(HWT_SETUP_BUSY_WAIT, 0x4);
NUMBER(HWT_SETUP_CPU, 0x8);
NUMBER(HWT_SETUP_NORMAL, 0);
NUMBER(HWT_SETUP_FIFO_LOW, 1);
NUMBER(HWT_SETUP_FIFO, 2);
NUMBER(HWT_MODE_ONE_SHOT, 0);
NUMBER(HWT_MODE_FIXED_RATE, 1);
NUMBER(HWT_MODE_FIXED_DELAY, 2);
NUMBER(HWT_ABSOLUTE, 0x1);
NUMBER(HWT_SET_USER_DATA, 0x2);
NUMBER(HWT_STATE_PENDING, 0x1);
NUMBER(HWT_STATE_EVENT, 0x2);
NUMBER(HWT_OP_SCHEDULE, 1);
NUMBER(HWT_OP_MODIFY, 2);
NUMBER(HWT_OP_CANCEL, 3);
NUMBER(HWT_OP_GET, 4);
NUMBER(HWT_RINGS_MORE, 0x1);
NUMBER(HWT_RINGS_END, 0x2);
NUMBER(HWT_RINGS_POLL, 0x1);
NUMBER(HWT_RING_ENTRIES_MAX, 65536);
NUMBER(HWT_URING_ARM, 0xe740);
NUMBER(HWT_URING_MODIFY, 0xe741);
NUMBER(HWT_URING_CANCEL, 0xe742);
NUMBER(HWT_INFO_SIZE_VER1, 72);
NUMBER(HWT_SETUP_SIZE_VER1, 40);
NUMBER(HWT_SCHEDULE_SIZE_VER1, 56);
NUMBER(HWT_MODIFY_SIZE_VER1, 56);
NUMBER(HWT_CANCEL_SIZE_VER1, 24);
NUMBER(HWT_GET_SIZE_VER1, 64);
NUMBER(HWT_STOP_SIZE_VER1, 16);
NUMBER(HWT_STATS_SIZE_VER1, 88);
NUMBER(HWT_LIST_SIZE_VER1, 32);
NUMBER(HWT_BATCH_SIZE_VER1, 24);
NUMBER(HWT_RINGS_SIZE_VER1, 40);
NUMBER(HWT_ENTER_SIZE_VER1, 24);
NUMBER(HWT_IOC_MAGIC, 0xe7);
NUMBER(HWT_IOC_INFO, 0xe700);
NUMBER(HWT_IOC_SETUP, 0xe701);
NUMBER(HWT_IOC_SCHEDULE, 0xe702);
NUMBER(HWT_IOC_MODIFY, 0xe703);
NUMBER(HWT_IOC_CANCEL, 0xe704);
NUMBER(HWT_IOC_GET, 0xe705);
NUMBER(HWT_IOC_STOP, 0xe706);
NUMBER(HWT_IOC_STATS, 0xe707);
NUMBER(HWT_IOC_LIST, 0xe708);
NUMBER(HWT_IOC_BATCH, 0xe709);
NUMBER(HWT_IOC_RINGS, 0xe70a);
NUMBER(HWT_IOC_ENTER, 0xe70b);

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
