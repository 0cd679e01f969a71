// SPDX-License-Identifier: GPL-2.0-only
/*
 * libhwt's queue. For several threads, see tests/unit/libhwt_threads.c.
 *
 * hwt-test: shared
 * hwt-test: timeout 180
 * hwt-test: m32
 * hwt-test: libs hwt
 */
#include "kselftest_harness.h"
#include <sys/epoll.h>
#include <sys/resource.h>

#include "guest.h"
#include "hwt_ring.h"
#include "libhwt.h"

#define PATIENCE_NS	(PATIENCE_MS * MSEC)

static int queue_make(struct libhwt_queue **queue, struct libhwt *hwt, unsigned int ops,
		      unsigned int events)
{
	struct libhwt_queue_options options = {
		.size = sizeof(options),
		.ops = ops,
		.events = events,
	};

	return libhwt_queue_new(queue, hwt, &options);
}

FIXTURE(queue) {
	struct libhwt *hwt;
	struct libhwt_queue *queue;
};

#define OPS	8
#define EVENTS	4

FIXTURE_SETUP(queue)
{
	ASSERT_EQ(0, libhwt_open(&self->hwt, NULL));
	/* Sizes are rounded up to a power of two. */
	ASSERT_EQ(0, queue_make(&self->queue, self->hwt, OPS - 1, EVENTS - 1));
}

FIXTURE_TEARDOWN(queue)
{
	libhwt_close(self->hwt);
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
	EXPECT_EQ(0, libhwt_queue_results(self->queue, ops, OPS));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	ASSERT_EQ(2, libhwt_queue_results(self->queue, ops, OPS));
	EXPECT_EQ(0, libhwt_queue_results(self->queue, ops, OPS));
	EXPECT_TRUE(!ops[0].result && ops[0].user_data == 11);
	EXPECT_TRUE(!ops[1].result && ops[1].user_data == 12);
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
	EXPECT_EQ(-EAGAIN, libhwt_queue_key_after(self->queue, 0, 0));
	EXPECT_EQ(-EAGAIN, libhwt_queue_key_at(self->queue, 0, 0));
	EXPECT_EQ(NULL, libhwt_queue_get(self->queue));
	/* Results take room until they are taken or dropped. */
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

/* Arm @count timeouts 2 ms apart, with @keys from key 1 on. Wait until all have fired. */
static bool fire(struct libhwt *hwt, unsigned int count, bool keys)
{
	__u64 before = hwt_now(libhwt_fd(hwt)).expired;
	unsigned int i;

	for (i = 0; i < count; i++)
		if (keys ? libhwt_key_after(hwt, i + 1, i * 2 * MSEC) :
			   libhwt_after(hwt, i * 2 * MSEC, i, NULL))
			return false;
	return hwt_wait_expired(libhwt_fd(hwt), before + count);
}

/* More events than fit in the ring: none is lost, and all come in order. */
TEST_F(queue, events_in_order)
{
	struct hwt_event events[40];
	__u64 want = 0;
	int i, ret;

	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, libhwt_after(self->hwt, (i + 1) * 2 * MSEC, i, NULL));
	sleep_ns(100 * MSEC);
	while (want < 100) {
		/* Fewer events than the ring has, as many, and more */
		ret = libhwt_next(self->hwt, events, 1 + want % 5, PATIENCE_NS);
		ASSERT_LT(0, ret);
		ASSERT_GE(1 + want % 5, (__u64)ret);
		for (i = 0; i < ret; i++)
			ASSERT_EQ(want++, events[i].user_data);
	}
	EXPECT_EQ(0, libhwt_next(self->hwt, events, 5, 0));
	EXPECT_EQ(0, libhwt_next(self->hwt, events, 5, 20 * MSEC));
	EXPECT_EQ(-EINVAL, libhwt_next(self->hwt, events, 0, 0));
	ASSERT_TRUE(fire(self->hwt, 30, false));
	EXPECT_EQ(30, libhwt_next(self->hwt, events, 40, 0));
	for (i = 0; i < 30; i++)
		EXPECT_EQ(i, events[i].user_data);
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
	/* Still known: its event is not in the ring yet. */
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
	/* The queue accepts operations, and they fail one by one. */
	ASSERT_EQ(0, libhwt_queue_after(self->queue, 0, 0));
	EXPECT_EQ(-ESHUTDOWN, libhwt_queue_next(self->queue, events, 3, HWT_NEVER));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(-ESHUTDOWN, op.result);
}

/* After a stop, withdrawing the last event ends the events. */
TEST_F(queue, stopped_and_withdrawn)
{
	struct hwt_event event;
	uint64_t id;

	ASSERT_EQ(0, libhwt_after(self->hwt, HOUR, 0, &id));
	ASSERT_EQ(0, libhwt_stop(self->hwt, NULL));
	EXPECT_EQ(HWT_STATE_EVENT, libhwt_cancel(self->hwt, id));
	EXPECT_EQ(-ESHUTDOWN, libhwt_next(self->hwt, &event, 1, 0));
}

TEST_F(queue, next_submits)
{
	__u64 begin = libhwt_now(self->hwt);
	struct hwt_event event;
	struct hwt_op op;
	int wait;

	EXPECT_EQ(-EINVAL, libhwt_queue_next(self->queue, &event, 0, 0));
	EXPECT_EQ(0, libhwt_queue_next(self->queue, &event, 1, 0));
	ASSERT_EQ(0, libhwt_queue_after(self->queue, 10 * MSEC, 21));
	ASSERT_EQ(1, libhwt_queue_next(self->queue, &event, 1, PATIENCE_NS));
	EXPECT_EQ(21, event.user_data);
	EXPECT_LE(begin + 10 * MSEC, event.fired_ns);
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(event.id, op.id);

	/* Also without a wait, and with a wait that times out */
	for (wait = 0; wait < 2; wait++) {
		begin = now_ns();
		ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, 22 + wait));
		EXPECT_EQ(0, libhwt_queue_next(self->queue, &event, 1, wait * 30 * MSEC));
		EXPECT_LE(begin + wait * 30 * MSEC, now_ns());
		ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
		EXPECT_EQ(22 + wait, (int)op.user_data);
	}

	/* Also if an event is there already */
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
	/* The operation has been carried out. */
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(0, op.result);
}

/* Wait for one event, in a queue with an operation that was not submitted. Return 0 if it came. */
static int wait_in_queue(struct libhwt *hwt)
{
	struct libhwt_queue *queue;
	struct hwt_event event;

	if (queue_make(&queue, hwt, OPS, EVENTS) || libhwt_queue_after(queue, HOUR, 0))
		return 1;
	return 1 - libhwt_queue_next(queue, &event, 1, HOUR);
}

/* A wait goes on after a stop, also if operations were added before. */
TEST(stopped_and_continued)
{
	struct libhwt *hwt;
	pid_t pid;

	ASSERT_EQ(0, libhwt_open(&hwt, NULL));
	pid = fork();
	if (!pid)
		_exit(wait_in_queue(hwt));
	EXPECT_TRUE(stop_and_go(pid));
	EXPECT_EQ(0, libhwt_after(hwt, 0, 0, NULL));
	EXPECT_EQ(0, child_end(pid));
	libhwt_close(hwt);
}

/* Check that a child cannot use the queue. Return 0 if all checks pass. */
static int child(struct libhwt *hwt, struct libhwt_queue *queue)
{
	const struct hwt_event *events;
	struct hwt_event event;
	struct hwt_op op = {};

	if (libhwt_queue_add(queue, &op, 1) != -ECHILD ||
	    libhwt_queue_after(queue, 0, 0) != -ECHILD ||
	    libhwt_queue_submit(queue) != -ECHILD ||
	    libhwt_queue_results(queue, &op, 1) != -ECHILD ||
	    libhwt_queue_next(queue, &event, 1, 0) != -ECHILD ||
	    libhwt_queue_get(queue) ||
	    libhwt_queue_peek(queue, &events) != -ECHILD ||
	    libhwt_queue_forget(queue, 0) != -ECHILD)
		return 1;
	libhwt_queue_seen(queue, 1);
	if (libhwt_next(hwt, &event, 1, 0) != -ECHILD)
		return 2;
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
	EXPECT_EQ(0, IN_CHILD(child(self->hwt, self->queue)));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(0, op.result);
	EXPECT_EQ(1, op.user_data);
	ASSERT_EQ(1, libhwt_next(self->hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(3, event.user_data);
}

TEST_F(queue, get)
{
	static const struct hwt_op zeroes;
	struct hwt_op *op, ops[OPS];
	int i;

	/* Go round the ring: used entries are zeroed as well. */
	for (i = 0; i < 3 * OPS; i++) {
		op = libhwt_queue_get(self->queue);
		ASSERT_NE(NULL, op);
		ASSERT_EQ(0, memcmp(op, &zeroes, sizeof(*op)));
		*op = op_schedule(HOUR, 99);
		op->user_data = i;
		ASSERT_EQ(0, libhwt_queue_results(self->queue, ops, OPS));
		ASSERT_EQ(0, libhwt_queue_submit(self->queue));
		ASSERT_EQ(1, libhwt_queue_results(self->queue, ops, OPS));
		ASSERT_EQ(0, ops[0].result);
		ASSERT_EQ(i, ops[0].user_data);
	}
	/* Fill the ring, in place and by copy: the order is kept. */
	for (i = 0; i < OPS; i += 2) {
		*libhwt_queue_get(self->queue) = op_schedule(HOUR, i);
		ASSERT_EQ(0, libhwt_queue_after(self->queue, HOUR, i + 1));
	}
	EXPECT_EQ(NULL, libhwt_queue_get(self->queue));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	EXPECT_EQ(NULL, libhwt_queue_get(self->queue));
	ASSERT_EQ(OPS, libhwt_queue_results(self->queue, ops, OPS));
	for (i = 0; i < OPS; i++)
		EXPECT_EQ(i, ops[i].user_data);
}

TEST_F(queue, peek_and_seen)
{
	const struct hwt_event *events;
	int i, ret, n = 0;

	EXPECT_EQ(0, libhwt_queue_peek(self->queue, &events));
	ASSERT_TRUE(fire(self->hwt, 11, false));
	while ((ret = libhwt_queue_peek(self->queue, &events)) > 0) {
		ASSERT_GE(EVENTS, ret);
		for (i = 0; i < ret; i++)
			ASSERT_EQ(n + i, (int)events[i].user_data);
		/* Take some events; the next peek begins with the rest. */
		i = ret > 3 ? 3 : ret;
		libhwt_queue_seen(self->queue, i);
		n += i;
	}
	EXPECT_EQ(0, ret);
	EXPECT_EQ(11, n);
	ASSERT_EQ(0, libhwt_stop(self->hwt, NULL));
	EXPECT_EQ(-ESHUTDOWN, libhwt_queue_peek(self->queue, &events));
}

/* -- Keys ---------------------------------------------------------------- */

FIXTURE(keys) {
	struct libhwt *hwt;
	struct libhwt_queue *queue;
};

FIXTURE_SETUP(keys)
{
	struct libhwt_options options = { .size = sizeof(options), .flags = HWT_SETUP_KEYS };

	ASSERT_EQ(0, libhwt_open(&self->hwt, &options));
	ASSERT_EQ(0, queue_make(&self->queue, self->hwt, OPS, EVENTS));
}

FIXTURE_TEARDOWN(keys)
{
	libhwt_close(self->hwt);
}

TEST_F(keys, schedule_or_move)
{
	__u64 deadline = libhwt_now(self->hwt) + 3 * HOUR;
	struct hwt_get_args get = { .size = sizeof(get) };
	struct hwt_event event;
	struct hwt_op ops[4];

	ASSERT_EQ(0, libhwt_queue_key_after(self->queue, 5, HOUR));
	ASSERT_EQ(0, libhwt_queue_key_at(self->queue, 5, deadline));
	ASSERT_EQ(0, libhwt_queue_key_after(self->queue, 6, 5 * MSEC));
	ASSERT_EQ(0, libhwt_queue_cancel(self->queue, 7));
	ASSERT_EQ(1, libhwt_queue_next(self->queue, &event, 1, PATIENCE_NS));
	EXPECT_EQ(6, event.id);
	ASSERT_EQ(4, libhwt_queue_results(self->queue, ops, 4));
	EXPECT_EQ(0, ops[0].result);
	EXPECT_EQ(HWT_STATE_PENDING, ops[1].result);
	EXPECT_EQ(0, ops[2].result);
	EXPECT_EQ(-ENOENT, ops[3].result);
	ASSERT_EQ(0, libhwt_get(self->hwt, 5, &get));
	EXPECT_LE(deadline, get.deadline_ns);
	EXPECT_GT(deadline + SEC, get.deadline_ns);
}

/* A queued cancel keeps the event out of the ring, whichever call moves events to the ring. */
TEST_F(keys, operations_come_before_events)
{
	const struct hwt_event *events;
	struct hwt_event event;
	struct hwt_op *op;
	int way;

	for (way = 0; way < 4; way++) {
		ASSERT_EQ(0, libhwt_key_after(self->hwt, 1, 0));
		ASSERT_TRUE(hwt_wait_expired(libhwt_fd(self->hwt), way + 1));
		op = libhwt_queue_get(self->queue);
		ASSERT_NE(NULL, op);
		*op = op_cancel(1);
		EXPECT_EQ(0, way == 0 ? libhwt_next(self->hwt, &event, 1, 0) :
			     way == 1 ? libhwt_next(self->hwt, &event, 1, MSEC) :
			     way == 2 ? libhwt_queue_next(self->queue, &event, 1, 0) :
					libhwt_queue_peek(self->queue, &events));
		EXPECT_EQ(HWT_STATE_EVENT, op->result);
		EXPECT_EQ(1, libhwt_queue_results(self->queue, NULL, 1));
	}
}

TEST_F(keys, forget)
{
	const struct hwt_event *events;
	struct hwt_event event[8];

	ASSERT_TRUE(fire(self->hwt, EVENTS, true));
	EXPECT_EQ(0, libhwt_queue_forget(self->queue, 1));
	ASSERT_EQ(EVENTS, libhwt_queue_peek(self->queue, &events));
	EXPECT_EQ(0, libhwt_queue_forget(self->queue, 9));
	EXPECT_EQ(1, libhwt_queue_forget(self->queue, 3));
	EXPECT_EQ(0, libhwt_queue_forget(self->queue, 3));
	EXPECT_EQ(HWT_EVENT_EXPIRED, events[1].kind);
	EXPECT_EQ(0, events[2].kind);
	/* The next peek does not begin with a forgotten event. */
	EXPECT_EQ(1, libhwt_queue_forget(self->queue, 1));
	ASSERT_EQ(EVENTS - 1, libhwt_queue_peek(self->queue, &events));
	EXPECT_EQ(2, events[0].id);
	ASSERT_EQ(EVENTS - 2, libhwt_next(self->hwt, event, 8, 0));
	EXPECT_EQ(2, event[0].id);
	EXPECT_EQ(4, event[1].id);
	/* With all events forgotten, a wait is for new events. */
	ASSERT_EQ(0, libhwt_key_after(self->hwt, 1, 0));
	ASSERT_TRUE(hwt_wait_expired(libhwt_fd(self->hwt), EVENTS + 1));
	ASSERT_EQ(1, libhwt_queue_peek(self->queue, &events));
	EXPECT_EQ(1, libhwt_queue_forget(self->queue, 1));
	EXPECT_EQ(0, libhwt_queue_peek(self->queue, &events));
	EXPECT_EQ(0, libhwt_next(self->hwt, event, 8, 10 * MSEC));
	EXPECT_EQ(0, hwt_wait(libhwt_fd(self->hwt), 0));
}

/*
 * The loop of libhwt_fd(3). Three timeouts are due again before the next call, which takes two
 * events, so events are always left. The other descriptor is always ready.
 */
static void loop(struct __test_metadata *_metadata, bool queued, __u32 edge)
{
	struct libhwt_options options = { .size = sizeof(options), .flags = HWT_SETUP_KEYS };
	struct epoll_event context = { .events = EPOLLIN | edge }, other = { .events = EPOLLIN };
	struct epoll_event ready[2];
	int epoll = epoll_create1(EPOLL_CLOEXEC), pipes[2], turn, served = 0, i, n;
	struct libhwt_queue *queue;
	struct hwt_event events[2];
	struct libhwt *hwt;
	bool due = false;

	ASSERT_EQ(0, libhwt_open(&hwt, &options));
	if (queued)
		ASSERT_EQ(0, queue_make(&queue, hwt, OPS, EVENTS));
	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	ASSERT_EQ(1, write(pipes[1], "x", 1));
	other.data.fd = pipes[0];
	context.data.fd = libhwt_fd(hwt);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, other.data.fd, &other));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, context.data.fd, &context));
	ASSERT_TRUE(fire(hwt, 3, true));
	for (turn = 1; turn <= 20; turn++) {
		n = epoll_wait(epoll, ready, 2, due ? 0 : PATIENCE_MS);
		for (i = 0; i < n; i++) {
			served += ready[i].data.fd == other.data.fd;
			due |= ready[i].data.fd == context.data.fd;
		}
		EXPECT_EQ(turn, served);
		ASSERT_TRUE(due);
		ASSERT_EQ(2, libhwt_next(hwt, events, 2, 0));
		due = edge;
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, libhwt_key_after(hwt, events[i].id, 0));
		ASSERT_TRUE(hwt_wait_expired(libhwt_fd(hwt), 3 + 2 * turn));
	}
	libhwt_close(hwt);
	close(pipes[0]);
	close(pipes[1]);
	close(epoll);
}

TEST(other_descriptors_get_their_turns)
{
	loop(_metadata, false, 0);
	loop(_metadata, false, EPOLLET);
	loop(_metadata, true, 0);
	loop(_metadata, true, EPOLLET);
}

/* -- Rings --------------------------------------------------------------- */

/* The descriptor is replaced by another file, on which any system call would fail. */
TEST(reaping_is_no_system_call)
{
	const struct hwt_event *first;
	struct hwt_event events[10];
	struct libhwt_queue *queue;
	struct libhwt *hwt;
	int i, null, fd;

	ASSERT_EQ(0, libhwt_open(&hwt, NULL));
	ASSERT_EQ(0, libhwt_queue_new(&queue, hwt, NULL));
	ASSERT_TRUE(fire(hwt, 10, false));
	/* This call moves all events to the ring. */
	ASSERT_EQ(10, libhwt_queue_peek(queue, &first));
	null = open("/dev/null", O_RDWR);
	fd = dup(libhwt_fd(hwt));
	ASSERT_LE(0, null);
	ASSERT_LE(0, fd);
	ASSERT_EQ(libhwt_fd(hwt), dup2(null, libhwt_fd(hwt)));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, libhwt_next(hwt, events, 1, 0));
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

/* A context has at most one queue; after a stop, none can be created. */
TEST_F(queue, busy)
{
	struct libhwt_queue *queue = NULL;
	struct hwt_event event;
	struct libhwt *other;

	EXPECT_EQ(-EBUSY, libhwt_queue_new(&queue, self->hwt, NULL));
	/* A second struct libhwt on the same context cannot have the rings. */
	ASSERT_EQ(0, libhwt_adopt(&other, dup(libhwt_fd(self->hwt))));
	EXPECT_EQ(-EBUSY, libhwt_queue_new(&queue, other, NULL));
	EXPECT_EQ(-EBUSY, libhwt_next(other, &event, 1, 0));
	libhwt_close(other);

	ASSERT_EQ(0, libhwt_open(&other, NULL));
	ASSERT_EQ(0, libhwt_stop(other, NULL));
	EXPECT_EQ(-EBUSY, libhwt_queue_new(&queue, other, NULL));
	EXPECT_EQ(NULL, queue);
	libhwt_close(other);
}

TEST(options)
{
	struct newer {
		struct libhwt_queue_options	options;
		unsigned char			more[16];
	} good = { .options = { .size = sizeof(good), .ops = 1, .events = 1 } }, bad[5];
	const int errors[] = { -E2BIG, -EINVAL, -EINVAL, -EINVAL, -EINVAL };
	struct libhwt_queue *queue = NULL;
	struct hwt_op op = {};
	struct libhwt *hwt;
	int i;

	for (i = 0; i < 5; i++)
		bad[i] = good;
	bad[0].more[3] = 1;
	bad[1].options.size = sizeof(bad[1].options) - 1;
	bad[2].options.flags = 1;
	bad[3].options.ops = HWT_RING_ENTRIES_MAX + 1;
	bad[4].options.events = HWT_RING_ENTRIES_MAX + 1;
	ASSERT_EQ(0, libhwt_open(&hwt, NULL));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(errors[i], libhwt_queue_new(&queue, hwt, &bad[i].options));
	EXPECT_EQ(NULL, queue);
	/* The smallest queue can still be created. */
	ASSERT_EQ(0, libhwt_queue_new(&queue, hwt, &good.options));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, libhwt_queue_add(queue, &op, 1));
		EXPECT_EQ(-EAGAIN, libhwt_queue_add(queue, &op, 1));
		ASSERT_EQ(0, libhwt_queue_submit(queue));
		ASSERT_EQ(1, libhwt_queue_results(queue, NULL, 1));
	}
	libhwt_close(hwt);
	EXPECT_FALSE(file_has("/proc/self/maps", HWT_DEV));
}

/* Limit the address space to its size plus @more bytes; 0: no limit. */
static bool limit_memory(size_t more)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	FILE *statm = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;
	bool ok = statm && fscanf(statm, "%lu", &pages) == 1;

	if (statm)
		fclose(statm);
	if (more)
		limit.rlim_cur = pages * sysconf(_SC_PAGESIZE) + more;
	return ok && !setrlimit(RLIMIT_AS, &limit);
}

/* If the rings cannot be mapped, the context works without them, and mapping can be retried. */
TEST(no_memory)
{
	struct libhwt_queue *queue = NULL;
	struct hwt_event event;
	struct libhwt *hwt;
	int i;

	ASSERT_EQ(0, libhwt_open(&hwt, NULL));
	ASSERT_EQ(0, libhwt_after(hwt, 0, 1, NULL));
	ASSERT_TRUE(limit_memory(64 << 10));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(-ENOMEM, queue_make(&queue, hwt, 4096, 4096));
	EXPECT_EQ(NULL, queue);
	EXPECT_EQ(-EINVAL, hwt_with(libhwt_fd(hwt), ENTER, enter));
	EXPECT_EQ(1, libhwt_next(hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(1, event.user_data);
	EXPECT_EQ(0, libhwt_next(hwt, &event, 1, 0));
	ASSERT_TRUE(limit_memory(0));
	EXPECT_EQ(-EBUSY, queue_make(&queue, hwt, 4096, 8192));
	ASSERT_EQ(0, libhwt_after(hwt, 0, 2, NULL));
	ASSERT_EQ(0, queue_make(&queue, hwt, 4096, 4096));
	ASSERT_EQ(1, libhwt_queue_next(queue, &event, 1, PATIENCE_NS));
	EXPECT_EQ(2, event.user_data);
	libhwt_close(hwt);
}

TEST_HARNESS_MAIN
