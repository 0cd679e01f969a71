// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of /dev/hwt that was written from its manual page, hwt(4), alone: it includes no
 * header of hwt, and takes each number and each layout from the page. That all of these are those
 * of hwt_uapi.h is seen by tests/static/abi.py. It works so from 64-bit and 32-bit programs.
 *
 * hwt-test: shared
 * hwt-test: m32 quick
 */
#include "kselftest_harness.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define IOC_SCHEDULE	0xe702
#define IOC_CANCEL	0xe704
#define IOC_STOP	0xe706
#define IOC_RINGS	0xe709
#define IOC_ENTER	0xe70a

enum { ONE_SHOT, FIXED_RATE };
enum { PENDING = 1, EVENT = 2 };
enum { EXPIRED = 1, STOPPED = 2 };
enum { OP_SCHEDULE = 1, OP_MODIFY, OP_CANCEL, OP_GET };
enum { RINGS_MORE = 1, RINGS_END = 2 };
#define LAST		1
#define ABSOLUTE	0x10
#define NEVER		0xffffffffffffffffULL
#define MSEC		1000000ULL
#define HOUR		(3600 * 1000 * MSEC)
#define PATIENCE_MS	20000

struct event {
	uint64_t id, user_data, deadline_ns, fired_ns, overruns;
	uint32_t kind, flags;
	uint64_t reserved[2];
};

struct schedule {
	uint32_t size, flags, mode, was;
	uint64_t time_ns, period_ns, slack_ns, user_data, id;
};

struct cancel {
	uint32_t size, flags;
	uint64_t id;
	uint32_t was, count;
};

struct stop {
	uint32_t size, flags;
	uint64_t stopped;
};

/* time_ns is also deadline_ns, slack_ns also remaining_ns. */
struct op {
	uint32_t opcode, flags, mode;
	int32_t result;
	uint64_t id, time_ns, period_ns, slack_ns, user_data, overruns;
};

struct rings_args {
	uint32_t size, flags, op_entries, event_entries;
	uint64_t map_size;
	uint32_t ops_offset, events_offset, op_size, reserved;
};

struct enter {
	uint32_t size, flags, submit, wait;
	uint64_t timeout_ns, sigmask;
	uint32_t events;
	int32_t result;
};

struct rings {
	uint32_t op_head, event_tail, flags, reserved[13];
	uint32_t op_tail, reserved2[15];
	uint32_t event_head, reserved3[15];
};

_Static_assert(sizeof(struct event) == 64 && sizeof(struct schedule) == 56 &&
	       sizeof(struct cancel) == 24 && sizeof(struct stop) == 16 &&
	       sizeof(struct op) == 64 && sizeof(struct rings_args) == 40 &&
	       sizeof(struct enter) == 40 && sizeof(struct rings) == 192,
	       "the sizes that the page gives");

FIXTURE(client) {
	int fd;
};

FIXTURE_SETUP(client)
{
	self->fd = open("/dev/hwt", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(client)
{
	close(self->fd);
}

/* 0, or a negative error number. Each structure of arguments begins with its size. */
#define CALL(_request, _args)						\
({									\
	(_args)->size = sizeof(*(_args));				\
	ioctl(self->fd, (_request), (_args)) < 0 ? -errno : 0;		\
})

/* A value of which no half would pass for it */
#define DATA	0xfedcba9876543210ULL

TEST_F(client, one_by_one)
{
	/* It fires now, and not again for a long time. */
	struct schedule schedule = {
		.flags = ABSOLUTE, .mode = FIXED_RATE, .time_ns = 1, .period_ns = 1ULL << 62,
		.user_data = DATA,
	};
	struct schedule never = { .time_ns = NEVER, .user_data = ~DATA };
	struct pollfd pollfd = { .fd = self->fd, .events = POLLIN };
	struct cancel cancel = {};
	struct stop stop = {};
	struct event event;

	ASSERT_EQ(0, CALL(IOC_SCHEDULE, &schedule));
	ASSERT_EQ(1, poll(&pollfd, 1, PATIENCE_MS));
	ASSERT_EQ(64, read(self->fd, &event, sizeof(event)));
	EXPECT_TRUE(event.id == schedule.id && event.user_data == DATA && !event.overruns &&
		    event.deadline_ns && event.deadline_ns <= event.fired_ns &&
		    event.kind == EXPIRED && !event.flags);
	cancel.id = schedule.id;
	ASSERT_EQ(0, CALL(IOC_CANCEL, &cancel));
	EXPECT_TRUE(cancel.was == PENDING && cancel.count == 1);
	EXPECT_EQ(-ENOENT, CALL(IOC_CANCEL, &cancel));

	ASSERT_EQ(0, CALL(IOC_SCHEDULE, &never));
	ASSERT_EQ(0, CALL(IOC_STOP, &stop));
	EXPECT_EQ(1, stop.stopped);
	ASSERT_EQ(64, read(self->fd, &event, sizeof(event)));
	EXPECT_TRUE(event.id == never.id && event.user_data == ~DATA &&
		    event.deadline_ns == NEVER && event.kind == STOPPED && event.flags == LAST);
	ASSERT_EQ(1, poll(&pollfd, 1, 0));
	EXPECT_EQ(POLLIN | POLLHUP, pollfd.revents);
	EXPECT_EQ(-ESHUTDOWN, CALL(IOC_SCHEDULE, &schedule));
}

static uint32_t load(const uint32_t *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *to, uint32_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELEASE);
}

static int enter(int fd, uint32_t submit, uint32_t wait)
{
	struct enter args = {
		.size = sizeof(args), .submit = submit, .wait = wait,
		.timeout_ns = PATIENCE_MS * MSEC,
	};

	return ioctl(fd, IOC_ENTER, &args) < 0 ? -errno : (int)args.submit;
}

#define COUNT	40

TEST_F(client, rings)
{
	struct rings_args args = { .op_entries = 50, .event_entries = 5, .op_size = 64 };
	struct event *events, event;
	struct stop stop = {};
	struct rings *rings;
	uint32_t at, i;
	struct op *ops;
	uint64_t id;
	int sum = 0;

	ASSERT_EQ(0, CALL(IOC_RINGS, &args));
	EXPECT_TRUE(args.op_entries == 64 && args.event_entries == 8);
	rings = mmap(NULL, args.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)rings);
	ops = (void *)((char *)rings + args.ops_offset);
	events = (void *)((char *)rings + args.events_offset);
	EXPECT_TRUE(read(self->fd, &event, 64) == -1 && errno == EBUSY);

	ops[0] = (struct op) { .opcode = OP_SCHEDULE, .time_ns = HOUR, .user_data = DATA };
	store(&rings->op_tail, 1);
	ASSERT_EQ(1, enter(self->fd, 1, 0));
	id = ops[0].id;
	ops[1] = (struct op) { .opcode = OP_MODIFY, .id = id, .time_ns = 2 * HOUR };
	ops[2] = (struct op) { .opcode = OP_GET, .id = id };
	ops[3] = (struct op) { .opcode = OP_CANCEL, .id = id };
	store(&rings->op_tail, 4);
	ASSERT_EQ(3, enter(self->fd, 3, 0));
	EXPECT_TRUE(!ops[0].result && id && ops[1].result == PENDING &&
		    ops[2].result == PENDING && ops[3].result == PENDING);
	EXPECT_TRUE(ops[2].user_data == DATA && ops[2].mode == ONE_SHOT &&
		    ops[2].time_ns > ops[2].slack_ns && ops[2].slack_ns > HOUR);

	for (i = 0; i < COUNT; i++)
		ops[4 + i] = (struct op) {
			.opcode = OP_SCHEDULE, .time_ns = 10 * MSEC, .user_data = i,
		};
	store(&rings->op_tail, 4 + COUNT);
	ASSERT_EQ(COUNT, enter(self->fd, COUNT, 1));
	EXPECT_EQ(4 + COUNT, load(&rings->op_head));
	for (i = 0; i < COUNT; i++)
		EXPECT_TRUE(!ops[4 + i].result && ops[4 + i].id);

	/* There is room for eight events at a time. */
	for (at = 0; at < COUNT; at++) {
		if (at == load(&rings->event_tail))
			ASSERT_EQ(0, enter(self->fd, 0, 1));
		ASSERT_NE(at, load(&rings->event_tail));
		event = events[at & (args.event_entries - 1)];
		store(&rings->event_head, at + 1);
		sum += event.user_data;
		EXPECT_TRUE(event.kind == EXPIRED && event.flags == LAST);
	}
	EXPECT_EQ(COUNT * (COUNT - 1) / 2, sum);
	EXPECT_EQ(0, load(&rings->flags) & RINGS_MORE);

	ASSERT_EQ(0, CALL(IOC_STOP, &stop));
	EXPECT_EQ(RINGS_END, load(&rings->flags) & RINGS_END);
	munmap(rings, args.map_size);
}

TEST_HARNESS_MAIN
