// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings whose operations the thread of a private wheel looks for: no system call at all.
 *
 * hwt-test: timeout 150
 */
#include "kselftest_harness.h"
#include <sys/prctl.h>

#include "hwt_ring.h"

#define ENTRIES	64

/* The last CPU is the wheel's, the first one ours. */
static int setup_busy(int fd)
{
	return stay_on_cpu(0) ? hwt_busy(fd, last_cpu()) : -errno;
}

FIXTURE(polled) {
	int fd;
	struct ring ring;
};

FIXTURE_SETUP(polled)
{
	/* No SKIP() here: the harness of 6.1 goes on with the test after it. */
	ASSERT_LT(0U, last_cpu());
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, setup_busy(self->fd));
	ASSERT_EQ(0, ring_make(&self->ring, self->fd, HWT_RINGS_POLL, ENTRIES, ENTRIES));
}

FIXTURE_TEARDOWN(polled)
{
	ring_unmap(&self->ring);
	close(self->fd);
}

/* Waits for the result of what was just pushed. */
static long done(struct ring *ring, struct hwt_op *slot)
{
	return !slot ? -ENOSPC : ring_wait_ops(ring) ? slot->result : -ETIMEDOUT;
}

TEST_F(polled, no_system_call)
{
	struct ring *ring = &self->ring;
	struct hwt_op *slot = ring_push(ring, op_schedule(HOUR, 1));
	struct hwt_event event;
	__u64 id, before;

	EXPECT_EQ(0, done(ring, slot));
	id = slot->id;
	slot = ring_push(ring, op_get(id));
	EXPECT_EQ(HWT_STATE_PENDING, done(ring, slot));
	EXPECT_EQ(1ULL, slot->user_data);
	before = now_ns();
	EXPECT_EQ(HWT_STATE_PENDING, done(ring, ring_push(ring, op_modify(id, 50 * MSEC))));
	ASSERT_TRUE(ring_wait(ring, 1));
	ASSERT_TRUE(ring_pop(ring, &event));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(before + 50 * MSEC, event.fired_ns);
	EXPECT_EQ(-ENOENT, done(ring, ring_push(ring, op_cancel(id))));
	EXPECT_EQ(0, done(ring, ring_push(ring, op_schedule(HWT_NEVER, 1))));
	EXPECT_EQ(-EINVAL, done(ring, ring_push(ring, (struct hwt_op) { .opcode = 9 })));
}

/* The thread has nothing to do for a while, and is there at once. */
TEST_F(polled, after_a_pause)
{
	struct ring *ring = &self->ring;
	int i;

	for (i = 0; i < 3; i++) {
		sleep_ns(200 * MSEC);
		EXPECT_EQ(0, done(ring, ring_push(ring, op_schedule(0, i))));
		EXPECT_TRUE(ring_wait(ring, i + 1));
	}
}

/* Thousands, each once, in rings that are full again and again. */
TEST_F_TIMEOUT(polled, many, 60)
{
	unsigned int total = quick() ? 2000 : 20000, made = 0, seen = 0;
	struct ring *ring = &self->ring;
	__u64 limit = now_ns() + 50 * SEC;
	static bool came[20000];
	struct hwt_event event;

	while (seen < total && now_ns() < limit) {
		while (made < total && ring_push(ring, op_schedule(0, made)))
			made++;
		while (ring_pop(ring, &event)) {
			ASSERT_GT((__u64)made, event.user_data);
			ASSERT_FALSE(came[event.user_data]);
			came[event.user_data] = true;
			seen++;
		}
	}
	EXPECT_EQ(total, seen);
	EXPECT_EQ(total, ring_op_head(ring));
}

/* What waits for room moves as soon as there is any. */
TEST_F(polled, full_ring)
{
	struct ring *ring = &self->ring;
	struct hwt_event event;
	unsigned int i;

	for (i = 0; i < 5 * ENTRIES; i++) {
		while (!ring_push(ring, op_schedule(i * MSEC, i)))
			ASSERT_TRUE(ring_wait_ops(ring));
	}
	ASSERT_TRUE(hwt_wait_expired(self->fd, 5 * ENTRIES));
	EXPECT_EQ((__u32)ENTRIES, ring_unread(ring));
	EXPECT_EQ((__u32)HWT_RINGS_MORE, ring_flags(ring));
	for (i = 0; i < 5 * ENTRIES; i++) {
		ASSERT_TRUE(ring_wait(ring, 1));
		ASSERT_TRUE(ring_pop(ring, &event));
		EXPECT_EQ((__u64)i, event.user_data);
	}
	/* The last event is there a moment before the flag goes. */
	EXPECT_TRUE(until(!ring_flags(ring)));
}

TEST_F(polled, enter)
{
	struct ring *ring = &self->ring;

	EXPECT_EQ(-EINVAL, ring_enter(ring, 1, 0, 0));
	EXPECT_EQ(-EINVAL, ring_enter(ring, -1U, 0, 0));
	EXPECT_EQ(0, ring_enter(ring, 0, 0, 0));
	ring_push(ring, op_schedule(50 * MSEC, 0));
	EXPECT_EQ(0, ring_enter(ring, 0, 1, HWT_NEVER));
	EXPECT_EQ(1U, ring_unread(ring));
	EXPECT_EQ(POLLIN, hwt_wait(self->fd, 0));
}

/* Nonsense is not carried out, and does no harm. */
TEST_F(polled, tail_too_far_ahead)
{
	struct ring *ring = &self->ring;

	ring->shared->op_tail = ENTRIES + 1;
	sleep_ns(50 * MSEC);
	EXPECT_EQ(0U, ring_op_head(ring));
	EXPECT_EQ(0ULL, hwt_now(self->fd).scheduled);
	ring->shared->op_tail = 0;
	EXPECT_EQ(0, done(ring, ring_push(ring, op_schedule(0, 0))));
}

TEST_F(polled, stop)
{
	struct ring *ring = &self->ring;
	int i;

	for (i = 0; i < 10; i++)
		ring_push(ring, op_schedule(HOUR, i));
	ASSERT_TRUE(ring_wait_ops(ring));
	EXPECT_EQ(10, hwt_stop(self->fd));
	EXPECT_EQ(10U, ring_unread(ring));
	EXPECT_EQ((__u32)HWT_RINGS_END, ring_flags(ring));
	EXPECT_EQ(-ESHUTDOWN, done(ring, ring_push(ring, op_schedule(0, 0))));
}

/* The ioctls and the thread, at the same time. */
TEST_F_TIMEOUT(polled, beside_ioctls, 60)
{
	unsigned int rounds = quick() ? 200 : 2000, i;
	struct ring *ring = &self->ring;
	__u64 id;

	for (i = 0; i < rounds; i++) {
		while (!ring_push(ring, op_schedule(HWT_NEVER, i)))
			ASSERT_TRUE(ring_wait_ops(ring));
		ASSERT_EQ(0, hwt_add(self->fd, 0, HWT_NEVER, i, &id));
		ASSERT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id));
	}
	ASSERT_TRUE(ring_wait_ops(ring));
	EXPECT_EQ((__u64)rounds, hwt_timeouts(self->fd));
	EXPECT_EQ(2ULL * rounds, hwt_now(self->fd).scheduled);
}

/*
 * Closed in the midst of thousands of operations: nothing that is made then may stay. That the
 * module can be unloaded shows it.
 */
static void close_early(struct __test_metadata *_metadata, __u32 entries, __u64 delay_ns)
{
	int fd = hwt_open(0);
	struct ring ring;
	__u32 i;

	ASSERT_EQ(0, setup_busy(fd));
	ASSERT_EQ(0, ring_make(&ring, fd, HWT_RINGS_POLL, entries, 8));
	for (i = 0; i < entries; i++)
		ring.ops[i] = op_schedule(delay_ns, i);
	__atomic_store_n(&ring.shared->op_tail, entries, __ATOMIC_RELEASE);
	close(fd);
	ring_unmap(&ring);
}

TEST(close_while_polled)
{
	int i;

	if (!last_cpu())
		SKIP(return, "one CPU");
	for (i = 0; i < 10; i++) {
		close_early(_metadata, 16384, 0);
		close_early(_metadata, 16384, HWT_NEVER);
		close_early(_metadata, 64, 0);
	}
}

/* Killed with all of it: likewise. */
TEST(killed_while_polled)
{
	struct ring ring;
	pid_t pid;
	int fd, i;

	if (!last_cpu())
		SKIP(return, "one CPU");
	for (i = 0; i < 5; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			fd = hwt_open(0);
			if (fd < 0 || setup_busy(fd) ||
			    ring_make(&ring, fd, HWT_RINGS_POLL, 256, 256))
				_exit(1);
			for (;;) {
				ring_push(&ring, op_schedule(0, 0));
				ring.shared->event_head = ring_event_tail(&ring);
			}
		}
		sleep_ns(100 * MSEC);
		EXPECT_EQ(-SIGKILL, child_kill(pid));
	}
}

TEST_HARNESS_MAIN
