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

/* Add an operation. Return 0, or an error. */
static int add(struct libhwt_queue *queue, struct hwt_op op)
{
	int ret = libhwt_queue_add(queue, &op, 1);

	return ret == 1 ? 0 : ret;
}

/* Submit the queue, and wait for the next event. */
static int next(struct libhwt *hwt, struct libhwt_queue *queue, struct hwt_event *event, __u64 wait)
{
	int ret = libhwt_queue_submit(queue);

	return ret ? ret : libhwt_next(hwt, event, 1, wait);
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
	struct hwt_op ops[OPS];
	uint64_t id;

	EXPECT_EQ(0, libhwt_queue_submit(self->queue));
	EXPECT_EQ(0, libhwt_queue_results(self->queue, ops, OPS));

	ASSERT_EQ(0, add(self->queue, op_schedule(HOUR, 11)));
	ASSERT_EQ(0, add(self->queue, op_schedule(3 * HOUR, 12)));
	EXPECT_EQ(0, libhwt_queue_results(self->queue, ops, OPS));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	ASSERT_EQ(2, libhwt_queue_results(self->queue, ops, OPS));
	EXPECT_EQ(0, libhwt_queue_results(self->queue, ops, OPS));
	EXPECT_TRUE(!ops[0].result && ops[0].user_data == 11);
	EXPECT_TRUE(!ops[1].result && ops[1].user_data == 12);
	id = ops[1].id;

	ops[2] = op_modify(id, 5 * HOUR);
	ops[3] = op_get(id);
	ASSERT_EQ(2, libhwt_queue_add(self->queue, &ops[2], 2));
	ASSERT_EQ(0, add(self->queue, op_cancel(id)));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, ops, 1));
	EXPECT_EQ(HWT_STATE_PENDING, ops[0].result);
	ASSERT_EQ(2, libhwt_queue_results(self->queue, ops, OPS));
	EXPECT_EQ(HWT_STATE_PENDING, ops[0].result);
	EXPECT_EQ(12, ops[0].user_data);
	EXPECT_LT(4 * HOUR, ops[0].remaining_ns);
	EXPECT_EQ(HWT_STATE_PENDING, ops[1].result);
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
	/* Results take room until they are taken or dropped. */
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	EXPECT_EQ(-EAGAIN, add(self->queue, op_schedule(0, 0)));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, ops, 1));
	EXPECT_EQ(0, ops[0].user_data);
	EXPECT_EQ(1, libhwt_queue_add(self->queue, ops + 1, 2));
	EXPECT_EQ(-EAGAIN, add(self->queue, op_schedule(0, 0)));
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

/* A wait carries out the operations that were added. */
TEST_F(queue, next_submits)
{
	__u64 begin = libhwt_now(self->hwt);
	struct hwt_event event;
	struct hwt_op op;

	ASSERT_EQ(0, add(self->queue, op_schedule(10 * MSEC, 21)));
	ASSERT_EQ(1, libhwt_next(self->hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(21, event.user_data);
	EXPECT_LE(begin + 10 * MSEC, event.fired_ns);
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(event.id, op.id);
}

TEST_F(queue, waits_are_interrupted)
{
	struct hwt_event event;
	struct hwt_op op;

	ASSERT_EQ(0, alarm_every(20000, 0));
	EXPECT_EQ(-EINTR, libhwt_next(self->hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(-EINTR, libhwt_next(self->hwt, &event, 1, HWT_NEVER));
	ASSERT_EQ(0, add(self->queue, op_schedule(HOUR, 0)));
	EXPECT_EQ(-EINTR, libhwt_next(self->hwt, &event, 1, HWT_NEVER));
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

	if (queue_make(&queue, hwt, OPS, EVENTS) || add(queue, op_schedule(HOUR, 0)))
		return 1;
	return 1 - libhwt_next(hwt, &event, 1, HOUR);
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
	struct hwt_event event;
	struct hwt_op op = {};

	if (libhwt_queue_add(queue, &op, 1) != -ECHILD ||
	    libhwt_queue_submit(queue) != -ECHILD ||
	    libhwt_queue_results(queue, &op, 1) != -ECHILD)
		return 1;
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

	ASSERT_EQ(0, add(self->queue, op_schedule(HOUR, 1)));
	EXPECT_EQ(0, IN_CHILD(child(self->hwt, self->queue)));
	ASSERT_EQ(0, libhwt_queue_submit(self->queue));
	ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
	EXPECT_EQ(0, op.result);
	EXPECT_EQ(1, op.user_data);
	ASSERT_EQ(1, libhwt_next(self->hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(3, event.user_data);
}

/* A queued cancel keeps the event out of the ring, whichever call moves events to the ring. */
TEST_F(queue, operations_come_before_events)
{
	struct hwt_event event;
	struct hwt_op op;
	uint64_t id;
	int way;

	for (way = 0; way < 3; way++) {
		ASSERT_EQ(0, libhwt_after(self->hwt, 0, 0, &id));
		ASSERT_TRUE(hwt_wait_expired(libhwt_fd(self->hwt), way + 1));
		ASSERT_EQ(0, add(self->queue, op_cancel(id)));
		EXPECT_EQ(0, way == 0 ? libhwt_next(self->hwt, &event, 1, 0) :
			     way == 1 ? libhwt_next(self->hwt, &event, 1, MSEC) :
					next(self->hwt, self->queue, &event, 0));
		ASSERT_EQ(1, libhwt_queue_results(self->queue, &op, 1));
		EXPECT_EQ(HWT_STATE_EVENT, op.result);
	}
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
	struct hwt_event events[10];
	struct libhwt_queue *queue;
	struct libhwt *hwt;
	int i, null, fd;

	ASSERT_EQ(0, libhwt_open(&hwt, NULL));
	ASSERT_EQ(0, libhwt_queue_new(&queue, hwt, NULL));
	ASSERT_TRUE(fire(hwt, 10, false));
	/* This call moves all events to the ring. */
	ASSERT_EQ(0, add(queue, op_get(1)));
	ASSERT_EQ(0, libhwt_queue_submit(queue));
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

/* A context has at most one queue. */
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
	ASSERT_EQ(1, next(hwt, queue, &event, PATIENCE_NS));
	EXPECT_EQ(2, event.user_data);
	libhwt_close(hwt);
}

TEST_HARNESS_MAIN
