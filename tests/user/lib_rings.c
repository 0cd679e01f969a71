// SPDX-License-Identifier: GPL-2.0-only
/*
 * libhwt's queue: by rings, by batches, and by a call for each operation. For several threads see
 * tests/unit/libhwt_threads.c.
 *
 * hwt-test: shared
 * hwt-test: timeout 180
 * hwt-test: m32
 * hwt-test: libs hwt
 */
#include "kselftest_harness.h"

#include "alarm.h"
#include "hwt_ring.h"
#include "libhwt.h"
#include "process.h"

#define PATIENCE_NS	(PATIENCE_MS * MSEC)

static int queue_flags(int kind)
{
	return kind == LIBHWT_QUEUE_RINGS ? 0 :
	       kind == LIBHWT_QUEUE_BATCH ? LIBHWT_QUEUE_NO_RINGS :
	       LIBHWT_QUEUE_NO_RINGS | LIBHWT_QUEUE_NO_BATCH;
}

static int queue_make(struct libhwt_queue **queue, struct libhwt *hwt, unsigned int flags,
		      unsigned int ops, unsigned int events)
{
	struct libhwt_queue_options options = {
		.size = sizeof(options),
		.flags = flags,
		.ops = ops,
		.events = events,
	};

	return libhwt_queue_new(queue, hwt, &options);
}

FIXTURE(queue) {
	struct libhwt *hwt;
	struct libhwt_queue *queue;
};

/* Each in all three ways */
FIXTURE_VARIANT(queue) {
	int kind;
};

FIXTURE_VARIANT_ADD(queue, rings) { LIBHWT_QUEUE_RINGS };
FIXTURE_VARIANT_ADD(queue, batch) { LIBHWT_QUEUE_BATCH };
FIXTURE_VARIANT_ADD(queue, calls) { LIBHWT_QUEUE_CALLS };

#define OPS	8
#define EVENTS	4

FIXTURE_SETUP(queue)
{
	ASSERT_EQ(0, libhwt_open(&self->hwt, NULL));
	/* One less: rounded up */
	ASSERT_EQ(0, queue_make(&self->queue, self->hwt, queue_flags(variant->kind),
				OPS - 1, EVENTS - 1));
}

FIXTURE_TEARDOWN(queue)
{
	libhwt_close(self->hwt);
}

TEST_F(queue, is_the_only_one_and_of_that_kind)
{
	struct libhwt_queue *queue = NULL;

	EXPECT_EQ(variant->kind, libhwt_queue_kind(self->queue));
	EXPECT_EQ(-EBUSY, libhwt_queue_new(&queue, self->hwt, NULL));
	EXPECT_EQ(NULL, queue);
}

TEST_F(queue, operations_and_their_results)
{
	struct hwt_get_args get = { .size = sizeof(get) };
	__u64 deadline = libhwt_now(self->hwt) + 3 * HOUR;
	struct hwt_op ops[OPS];
	uint64_t id;

	EXPECT_EQ(0, libhwt_queue_submit(self->queue));
	EXPECT_EQ(0, libhwt_queue_results(self->queue, ops, OPS));

	ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, 11));
	ASSERT_EQ(0, libhwt_queue_at(self->queue, deadline, 12));
	/* Nothing happens before. */
	EXPECT_EQ(0, libhwt_queue_results(self->queue, ops, OPS));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	ASSERT_EQ(2, libhwt_queue_results(self->queue, ops, OPS));
	EXPECT_EQ(0, libhwt_queue_results(self->queue, ops, OPS));
	EXPECT_EQ(0, ops[0].result);
	EXPECT_EQ(11, ops[0].user_data);
	EXPECT_EQ(0, ops[1].result);
	EXPECT_EQ(12, ops[1].user_data);
	id = ops[1].id;
	ASSERT_EQ(0, libhwt_get(self->hwt, id, &get));
	EXPECT_LE(deadline, get.deadline_ns);
	EXPECT_GT(deadline + SEC, get.deadline_ns);

	ASSERT_EQ(0, libhwt_queue_modify(self->queue, id, 5 * HOUR));
	ASSERT_EQ(0, libhwt_queue_modify_at(self->queue, ops[0].id, deadline));
	ops[2] = op_get(id);
	ops[3] = op_get(ops[0].id);
	ASSERT_EQ(2, libhwt_queue_add(self->queue, &ops[2], 2));
	ASSERT_EQ(0, libhwt_queue_cancel(self->queue, id));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	/* Some at a time */
	ASSERT_EQ(2, libhwt_queue_results(self->queue, ops, 2));
	EXPECT_EQ(HWT_STATE_PENDING, ops[0].result);
	EXPECT_EQ(HWT_STATE_PENDING, ops[1].result);
	ASSERT_EQ(3, libhwt_queue_results(self->queue, ops, OPS));
	EXPECT_EQ(HWT_STATE_PENDING, ops[0].result);
	EXPECT_EQ(12, ops[0].user_data);
	EXPECT_LT(4 * HOUR, ops[0].remaining_ns);
	EXPECT_EQ(HWT_STATE_PENDING, ops[1].result);
	EXPECT_LE(deadline, ops[1].deadline_ns);
	EXPECT_EQ(HWT_STATE_PENDING, ops[2].result);
	EXPECT_EQ(-ENOENT, libhwt_get(self->hwt, id, &get));
}

/* What is wrong with an operation is in its result, and the same for each kind of queue. */
TEST_F(queue, errors_are_alone)
{
	static const struct {
		struct hwt_op	op;
		int		result;
	} bad[] = {
		{ { .opcode = 0 }, -EINVAL },
		{ { .opcode = 99 }, -EINVAL },
		{ { .opcode = HWT_OP_CANCEL }, -ENOENT },
		{ { .opcode = HWT_OP_CANCEL, .id = 12345 }, -ENOENT },
		{ { .opcode = HWT_OP_CANCEL, .time_ns = 1 }, -EINVAL },
		{ { .opcode = HWT_OP_CANCEL, .flags = HWT_ABSOLUTE }, -EINVAL },
		{ { .opcode = HWT_OP_MODIFY, .id = 12345 }, -ENOENT },
		{ { .opcode = HWT_OP_MODIFY, .mode = 1 }, -EINVAL },
		{ { .opcode = HWT_OP_MODIFY, .flags = 0x80 }, -EINVAL },
		{ { .opcode = HWT_OP_GET, .id = 12345 }, -ENOENT },
		{ { .opcode = HWT_OP_GET, .flags = 1 }, -EINVAL },
		{ { .opcode = HWT_OP_SCHEDULE, .mode = 99 }, -EINVAL },
		{ { .opcode = HWT_OP_SCHEDULE, .overruns = 1 }, -EINVAL },
		{ { .opcode = HWT_OP_SCHEDULE, .mode = HWT_MODE_FIXED_RATE }, -EINVAL },
		{ { .opcode = HWT_OP_SCHEDULE, .flags = HWT_SET_USER_DATA }, -EINVAL },
	};
	struct hwt_op ops[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, 1));
		ASSERT_EQ(1, libhwt_queue_add(self->queue, &bad[i].op, 1));
		ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, 2));
		ASSERT_EQ(0, libhwt_queue_submit(self->queue));
		ASSERT_EQ(3, libhwt_queue_results(self->queue, ops, 3));
		EXPECT_EQ(0, ops[0].result);
		EXPECT_EQ(bad[i].result, ops[1].result) {
			TH_LOG("operation %u", i);
		}
		EXPECT_EQ(0, ops[2].result);
	}
}

TEST_F(queue, full)
{
	struct hwt_op ops[2 * OPS] = {};
	int i;

	for (i = 0; i < 2 * OPS; i++)
		ops[i] = op_schedule(HOUR, i);
	EXPECT_EQ(0, libhwt_queue_add(self->queue, ops, 0));
	EXPECT_EQ(3, libhwt_queue_add(self->queue, ops, 3));
	EXPECT_EQ(OPS - 3, libhwt_queue_add(self->queue, ops + 3, 2 * OPS - 3));
	EXPECT_EQ(-EAGAIN, libhwt_queue_add(self->queue, ops, 1));
	EXPECT_EQ(-EAGAIN, libhwt_queue_after(self->queue, 0, 0));
	EXPECT_EQ(-EAGAIN, libhwt_queue_at(self->queue, 0, 0));
	EXPECT_EQ(-EAGAIN, libhwt_queue_modify(self->queue, 0, 0));
	EXPECT_EQ(-EAGAIN, libhwt_queue_modify_at(self->queue, 0, 0));
	EXPECT_EQ(-EAGAIN, libhwt_queue_cancel(self->queue, 0));
	/* Results take room, too, until they are taken or forgotten. */
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	EXPECT_EQ(-EAGAIN, libhwt_queue_after(self->queue, 0, 0));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, ops, 1));
	EXPECT_EQ(0, ops[0].user_data);
	EXPECT_EQ(1, libhwt_queue_add(self->queue, ops + 1, 2));
	EXPECT_EQ(-EAGAIN, libhwt_queue_after(self->queue, 0, 0));
	EXPECT_EQ(OPS - 1, libhwt_queue_results(self->queue, NULL, 2 * OPS));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, ops, OPS));
	EXPECT_EQ(1, ops[0].user_data);
}

/* Round and round, by odd numbers. */
TEST_F(queue, wraps)
{
	struct hwt_op ops[OPS] = {};
	__u64 added = 0, got = 0;
	int round, i, n, ret;

	for (round = 0; round < 500; round++) {
		n = 1 + round % 5;
		for (i = 0; i < n; i++)
			ops[i] = op_schedule(HWT_NEVER, added + i);
		ret = libhwt_queue_add(self->queue, ops, n);
		ASSERT_LT(0, ret);
		added += ret;
		ASSERT_EQ(0, libhwt_queue_submit(self->queue));
		ret = libhwt_queue_results(self->queue, ops, 3);
		ASSERT_LT(0, ret);
		for (i = 0; i < ret; i++, got++) {
			ASSERT_EQ(0, ops[i].result);
			ASSERT_EQ(got, ops[i].user_data);
		}
	}
	EXPECT_LE(added - OPS, got);
}

/* -- Events -------------------------------------------------------------- */

/* More than fit in the ring: none is lost, and all come in order. */
TEST_F(queue, events_in_order)
{
	struct hwt_event events[5];
	__u64 want = 0;
	int i, ret;

	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, libhwt_after(self->hwt, (i + 1) * 2 * MSEC, i, NULL));
	sleep_ns(100 * MSEC);
	while (want < 100) {
		/* Less, as much and more than the ring */
		ret = libhwt_next(self->hwt, events, 1 + want % 5, PATIENCE_NS);
		ASSERT_LT(0, ret);
		ASSERT_GE(1 + want % 5, (__u64)ret);
		for (i = 0; i < ret; i++)
			ASSERT_EQ(want++, events[i].user_data);
	}
	EXPECT_EQ(0, libhwt_next(self->hwt, events, 5, 0));
	EXPECT_EQ(0, libhwt_next(self->hwt, events, 5, 20 * MSEC));
	EXPECT_EQ(-EINVAL, libhwt_next(self->hwt, events, 0, 0));
}

/* Arm so many, two ticks apart, and wait until all have fired. */
static bool fire(struct libhwt *hwt, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (libhwt_after(hwt, i * 2 * MSEC, i, NULL))
			return false;
	return hwt_wait_expired(libhwt_fd(hwt), count);
}

/* One call gives all that there are, if there is room for them. */
TEST_F(queue, all_at_once)
{
	struct hwt_event events[40];
	int i;

	ASSERT_TRUE(fire(self->hwt, 30));
	EXPECT_EQ(30, libhwt_next(self->hwt, events, 40, 0));
	for (i = 0; i < 30; i++)
		EXPECT_EQ(i, events[i].user_data);
}

TEST_F(queue, the_descriptor_is_readable)
{
	struct hwt_event events[3];
	int i, n = 0;

	EXPECT_EQ(0, hwt_wait(libhwt_fd(self->hwt), 0));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, libhwt_after(self->hwt, 0, 0, NULL));
	while (n < 10) {
		ASSERT_EQ(POLLIN, hwt_wait(libhwt_fd(self->hwt), PATIENCE_MS));
		i = libhwt_next(self->hwt, events, 3, 0);
		ASSERT_LE(0, i);
		n += i;
	}
	EXPECT_EQ(0, hwt_wait(libhwt_fd(self->hwt), 0));
}

TEST_F(queue, stop)
{
	uint64_t stopped = 99, id;
	struct hwt_event events[3];
	struct hwt_op op;
	int i, ret, n = 0;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, libhwt_after(self->hwt, HOUR, i, &id));
	ASSERT_EQ(0, libhwt_stop(self->hwt, &stopped));
	EXPECT_EQ(10, stopped);
	ASSERT_EQ(0, libhwt_stop(self->hwt, NULL));
	EXPECT_EQ(-ESHUTDOWN, libhwt_after(self->hwt, 0, 0, NULL));
	/* The last one has no room in a ring yet. */
	EXPECT_EQ(-ESHUTDOWN, libhwt_modify(self->hwt, id, 0));
	while ((ret = libhwt_next(self->hwt, events, 3, PATIENCE_NS)) > 0) {
		for (i = 0; i < ret; i++)
			EXPECT_EQ(HWT_EVENT_STOPPED, events[i].kind);
		n += ret;
	}
	EXPECT_EQ(10, n);
	EXPECT_EQ(-ESHUTDOWN, ret);
	EXPECT_EQ(-ESHUTDOWN, libhwt_next(self->hwt, events, 3, 0));
	EXPECT_EQ(-ESHUTDOWN, libhwt_next(self->hwt, events, 3, HWT_NEVER));
	/* Operations say so for themselves. */
	ASSERT_EQ(0, libhwt_queue_after(self->queue, 0, 0));
	EXPECT_EQ(-ESHUTDOWN, libhwt_queue_next(self->queue, events, 3, HWT_NEVER));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(-ESHUTDOWN, op.result);
}

/* -- Submit and wait ----------------------------------------------------- */

TEST_F(queue, next_submits)
{
	__u64 begin = libhwt_now(self->hwt);
	struct hwt_event event;
	struct hwt_op op;

	EXPECT_EQ(-EINVAL, libhwt_queue_next(self->queue, &event, 0, 0));
	EXPECT_EQ(0, libhwt_queue_next(self->queue, &event, 1, 0));
	ASSERT_EQ(0, libhwt_queue_after(self->queue, 10 * MSEC, 21));
	ASSERT_EQ(1, libhwt_queue_next(self->queue, &event, 1, PATIENCE_NS));
	EXPECT_EQ(21, event.user_data);
	EXPECT_LE(begin + 10 * MSEC, event.fired_ns);
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(event.id, op.id);

	/* Also without waiting, and also if it is in vain. */
	ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, 22));
	EXPECT_EQ(0, libhwt_queue_next(self->queue, &event, 1, 0));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(22, op.user_data);
	begin = now_ns();
	ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, 23));
	EXPECT_EQ(0, libhwt_queue_next(self->queue, &event, 1, 30 * MSEC));
	EXPECT_LE(begin + 30 * MSEC, now_ns());
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(23, op.user_data);

	/* ... and with an event that is there already. */
	ASSERT_EQ(0, libhwt_after(self->hwt, 0, 24, NULL));
	ASSERT_EQ(POLLIN, hwt_wait(libhwt_fd(self->hwt), PATIENCE_MS));
	ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, 25));
	EXPECT_EQ(1, libhwt_queue_next(self->queue, &event, 1, HWT_NEVER));
	EXPECT_EQ(24, event.user_data);
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(25, op.user_data);
}

TEST_F(queue, waits_are_interrupted)
{
	struct hwt_event event;
	struct hwt_op op;

	ASSERT_EQ(0, alarm_every(20000, 0));
	EXPECT_EQ(-EINTR, libhwt_next(self->hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(-EINTR, libhwt_next(self->hwt, &event, 1, HWT_NEVER));
	EXPECT_EQ(-EINTR, libhwt_queue_next(self->queue, &event, 1, PATIENCE_NS));
	ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, 0));
	EXPECT_EQ(-EINTR, libhwt_queue_next(self->queue, &event, 1, HWT_NEVER));
	ASSERT_EQ(0, alarm_every(0, 0));
	/* What was to be carried out has been. */
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(0, op.result);
}

/* -- Processes ----------------------------------------------------------- */

/* In a child. Return: 0 if all is as it is to be. */
static int child(struct libhwt *hwt, struct libhwt_queue *queue, bool rings)
{
	struct hwt_event event;
	struct hwt_op op = {};

	if (libhwt_queue_kind(queue) != -ECHILD || libhwt_queue_add(queue, &op, 1) != -ECHILD ||
	    libhwt_queue_after(queue, 0, 0) != -ECHILD ||
	    libhwt_queue_submit(queue) != -ECHILD ||
	    libhwt_queue_results(queue, &op, 1) != -ECHILD ||
	    libhwt_queue_next(queue, &event, 1, 0) != -ECHILD)
		return 1;
	if (libhwt_next(hwt, &event, 1, 0) != (rings ? -ECHILD : 0))
		return 2;
	/* The context is its, too. */
	if (libhwt_after(hwt, 0, 3, NULL))
		return 3;
	libhwt_close(hwt);
	return 0;
}

TEST_F(queue, is_the_parents)
{
	struct hwt_event event;
	struct hwt_op op;

	ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, 1));
	EXPECT_EQ(0, IN_CHILD(child(self->hwt, self->queue,
				    variant->kind == LIBHWT_QUEUE_RINGS)));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(0, op.result);
	EXPECT_EQ(1, op.user_data);
	ASSERT_EQ(1, libhwt_next(self->hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(3, event.user_data);
}

/* -- Rings only ---------------------------------------------------------- */

/* With something else as the descriptor, any system call on it would fail. */
TEST(reaping_is_no_system_call)
{
	struct hwt_event events[10];
	struct libhwt_queue *queue;
	struct libhwt *hwt;
	int i, ret, null, fd;

	ASSERT_EQ(0, libhwt_open(&hwt, NULL));
	ASSERT_EQ(0, libhwt_queue_new(&queue, hwt, NULL));
	ASSERT_EQ(LIBHWT_QUEUE_RINGS, libhwt_queue_kind(queue));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, libhwt_after(hwt, 5 * i * MSEC, i, NULL));
	sleep_ns(50 * MSEC);
	null = open("/dev/null", O_RDWR);
	fd = dup(libhwt_fd(hwt));
	ASSERT_LE(0, null);
	ASSERT_LE(0, fd);
	ASSERT_EQ(libhwt_fd(hwt), dup2(null, libhwt_fd(hwt)));
	for (i = 0; i < 10; i++) {
		ASSERT_TRUE(until(ret = libhwt_next(hwt, events, 1, 0)));
		ASSERT_EQ(1, ret);
		EXPECT_EQ(i, events[0].user_data);
	}
	EXPECT_EQ(0, libhwt_next(hwt, events, 10, 0));
	EXPECT_EQ(-ENOTTY, libhwt_next(hwt, events, 10, SEC));
	ASSERT_EQ(libhwt_fd(hwt), dup2(fd, libhwt_fd(hwt)));
	EXPECT_EQ(0, libhwt_next(hwt, events, 10, 10 * MSEC));
	libhwt_close(hwt);
	close(fd);
	close(null);
}

/* Rings that belong to somebody else */
TEST(busy)
{
	struct libhwt *hwt, *other;
	struct libhwt_queue *queue = NULL;
	struct hwt_event event;

	ASSERT_EQ(0, libhwt_open(&hwt, NULL));
	ASSERT_EQ(0, libhwt_adopt(&other, dup(libhwt_fd(hwt))));
	ASSERT_EQ(0, libhwt_queue_new(&queue, hwt, NULL));
	queue = NULL;
	EXPECT_EQ(-EBUSY, libhwt_queue_new(&queue, other, NULL));
	EXPECT_EQ(NULL, queue);
	EXPECT_EQ(-EBUSY, libhwt_next(other, &event, 1, 0));
	/* But not for a queue of another kind, for what it can do without events. */
	ASSERT_EQ(0, queue_make(&queue, other, LIBHWT_QUEUE_NO_RINGS, 0, 0));
	EXPECT_EQ(0, libhwt_queue_after(queue, 0, 9));
	EXPECT_EQ(0, libhwt_queue_submit(queue));
	libhwt_close(other);
	ASSERT_EQ(1, libhwt_next(hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(9, event.user_data);
	libhwt_close(hwt);
}

TEST(stopped_before)
{
	struct libhwt_queue *queue = NULL;
	struct libhwt *hwt;

	ASSERT_EQ(0, libhwt_open(&hwt, NULL));
	ASSERT_EQ(0, libhwt_stop(hwt, NULL));
	EXPECT_EQ(-EBUSY, libhwt_queue_new(&queue, hwt, NULL));
	EXPECT_EQ(NULL, queue);
	libhwt_close(hwt);
}

TEST(options)
{
	struct {
		struct libhwt_queue_options	options;
		unsigned char			more[16];
	} newer = { .options.size = sizeof(newer) };
	struct libhwt_queue_options *options = &newer.options;
	struct libhwt_queue *queue = NULL;
	struct libhwt *hwt;
	struct hwt_op op = {};
	int i;

	ASSERT_EQ(0, libhwt_open(&hwt, NULL));
	newer.more[3] = 1;
	EXPECT_EQ(-E2BIG, libhwt_queue_new(&queue, hwt, options));
	newer.more[3] = 0;
	options->size = sizeof(*options) - 1;
	EXPECT_EQ(-EINVAL, libhwt_queue_new(&queue, hwt, options));
	options->size = sizeof(newer);
	options->flags = 0x8;
	EXPECT_EQ(-EINVAL, libhwt_queue_new(&queue, hwt, options));
	options->flags = 0;
	options->ops = HWT_RING_ENTRIES_MAX + 1;
	EXPECT_EQ(-EINVAL, libhwt_queue_new(&queue, hwt, options));
	options->ops = 1;
	options->events = HWT_RING_ENTRIES_MAX + 1;
	EXPECT_EQ(-EINVAL, libhwt_queue_new(&queue, hwt, options));
	options->events = 1;
	/* The shared wheel does not wait busily. */
	options->flags = LIBHWT_QUEUE_POLL;
	EXPECT_EQ(-EINVAL, libhwt_queue_new(&queue, hwt, options));
	options->flags = LIBHWT_QUEUE_POLL | LIBHWT_QUEUE_NO_RINGS;
	EXPECT_EQ(-EOPNOTSUPP, libhwt_queue_new(&queue, hwt, options));
	EXPECT_EQ(NULL, queue);
	/* After all that one can still be made, the smallest. */
	options->flags = 0;
	ASSERT_EQ(0, libhwt_queue_new(&queue, hwt, options));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, libhwt_queue_add(queue, &op, 1));
		EXPECT_EQ(-EAGAIN, libhwt_queue_add(queue, &op, 1));
		ASSERT_EQ(0, libhwt_queue_submit(queue));
		ASSERT_EQ(1, libhwt_queue_results(queue, NULL, 1));
	}
	libhwt_close(hwt);
}

/* The kernel's own polling: no call at all */
TEST(polled)
{
	static const struct hwt_setup_args wheel = {
		.size = sizeof(wheel),
		.flags = HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU,
		.cpu = 1,
	};
	static const struct libhwt_options options = {
		.size = sizeof(options),
		.wheel = &wheel,
	};
	struct libhwt_queue *queue;
	struct hwt_event event;
	struct libhwt *hwt;
	struct hwt_op op;
	int i, ret;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one processor");
	ASSERT_EQ(0, libhwt_open(&hwt, &options));
	ASSERT_EQ(0, queue_make(&queue, hwt, LIBHWT_QUEUE_POLL, 4, 4));
	ASSERT_EQ(LIBHWT_QUEUE_RINGS, libhwt_queue_kind(queue));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, libhwt_queue_after(queue, 0, i));
		/* Nothing to do for it */
		if (i % 2)
			ASSERT_EQ(0, libhwt_queue_submit(queue));
		ASSERT_TRUE(until(ret = libhwt_queue_results(queue, &op, 1)));
		ASSERT_EQ(1, ret);
		EXPECT_EQ(0, op.result);
		if (i % 4)
			ret = libhwt_next(hwt, &event, 1, PATIENCE_NS);
		else
			ret = libhwt_queue_next(queue, &event, 1, PATIENCE_NS);
		ASSERT_EQ(1, ret);
		EXPECT_EQ(op.id, event.id);
		EXPECT_EQ(i, event.user_data);
	}
	libhwt_close(hwt);
}

/* Nothing of a context is left when it is closed. */
TEST(close_gives_back)
{
	struct libhwt_queue *queue;
	struct libhwt *hwt;
	char line[512];
	int i, found = 0;
	FILE *maps;

	for (i = 0; i < 60; i++) {
		ASSERT_EQ(0, libhwt_open(&hwt, NULL));
		ASSERT_EQ(0, queue_make(&queue, hwt, queue_flags(1 + i % 3), 4096, 4096));
		ASSERT_EQ(0, libhwt_queue_after(queue, 0, 0));
		ASSERT_EQ(0, libhwt_queue_submit(queue));
		libhwt_close(hwt);
	}
	maps = fopen("/proc/self/maps", "r");
	ASSERT_NE(NULL, maps);
	while (fgets(line, sizeof(line), maps))
		found += !!strstr(line, HWT_DEV);
	fclose(maps);
	EXPECT_EQ(0, found);
}

TEST_HARNESS_MAIN
