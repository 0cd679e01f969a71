// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings in shared memory: creation, operations, events, a full ring.
 *
 * hwt-test: timeout 150
 * hwt-test: m32 quick
 * hwt-test: shared
 */
#include "kselftest_harness.h"

#include "fixtures.h"

/* -- Creation ------------------------------------------------------------ */

TEST_F(ctx, arguments)
{
	static const __u32 bad[] = { 0, HWT_RING_ENTRIES_MAX + 1, 1U << 31, -1U };
	static const __u32 sizes[] = {
		0, 1, HWT_OP_SIZE_VER1 - 8, HWT_OP_SIZE_VER1 + 4, HWT_OP_SIZE_MAX + 8, -1U,
	};
	struct ring ring = { .fd = self->fd };
	struct hwt_rings_args args;
	int fd = self->fd;
	unsigned int i;

	EXPECT_EQ(-EINVAL, ring_enter(&ring, 0, 0, 0));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, hwt_rings(fd, 0, bad[i], 8, &args));
		EXPECT_EQ(-EINVAL, hwt_rings(fd, 0, 8, bad[i], &args));
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		EXPECT_EQ(-EINVAL, hwt_with(fd, RINGS, rings, .op_entries = 8, .event_entries = 8,
					    .op_size = sizes[i]));
	EXPECT_EQ(0, hwt_rings(fd, 0, 3, 1000, &args));
	EXPECT_EQ(4U, args.op_entries);
	EXPECT_EQ(1024U, args.event_entries);
	EXPECT_EQ(-EBUSY, hwt_rings(fd, 0, 8, 8, &args));
	/* HWT_IOC_SETUP must come before rings. */
	EXPECT_EQ(-EBUSY, hwt_setup(fd, CLOCK_MONOTONIC, 0));
}

/* The largest rings: all zero but next_ns, all mapped. For the layout, see tests/fuzz/calls.c. */
TEST_F(ctx, largest)
{
	struct ring ring;
	char *p;

	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, HWT_RING_ENTRIES_MAX, HWT_RING_ENTRIES_MAX));
	p = (char *)ring.shared;
	EXPECT_EQ(0UL, (unsigned long)((char *)ring.ops - p) % 64);
	EXPECT_EQ(0UL, (unsigned long)((char *)ring.events - p) % 64);
	EXPECT_EQ(0UL, ring.size % sysconf(_SC_PAGESIZE));
	EXPECT_EQ(HWT_NEVER, ring.shared->next_ns);
	ring.shared->next_ns = 0;
	EXPECT_TRUE(!*p && !memcmp(p, p + 1, ring.size - 1));
	memset(p, 0xff, ring.size);
	ring_unmap(&ring);
}

/* Operations of a program with a newer header than the kernel's */
TEST_F(ctx, larger_operations)
{
	struct hwt_rings_args args = {
		.size = sizeof(args),
		.op_entries = 4,
		.event_entries = 4,
		.op_size = sizeof(struct hwt_op) + 16,
	};
	struct ring ring;
	char *ops;
	int i;

	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_RINGS, &args));
	ASSERT_EQ(0, ring_map(&ring, self->fd, &args));
	ops = (char *)ring.ops;
	for (i = 0; i < 3; i++)
		*(struct hwt_op *)(ops + i * args.op_size) = op_schedule(HOUR, i);
	/* A member that the kernel does not know */
	ops[1 * args.op_size + sizeof(struct hwt_op) + 3] = 1;
	__atomic_store_n(&ring.shared->op_tail, 3, __ATOMIC_RELEASE);
	ASSERT_EQ(3, ring_enter(&ring, 3, 0, 0));
	EXPECT_EQ(0, ((struct hwt_op *)ops)->result);
	EXPECT_EQ(-E2BIG, ((struct hwt_op *)(ops + args.op_size))->result);
	EXPECT_EQ(0, ((struct hwt_op *)(ops + 2 * args.op_size))->result);
	EXPECT_EQ(2ULL, hwt_timeouts(self->fd));
	ring_unmap(&ring);
}

/* -- Operations ---------------------------------------------------------- */

TEST_F(rings, in_order_and_in_place)
{
	static const int results[] = {
		0, HWT_STATE_PENDING, HWT_STATE_PENDING, -EINVAL, HWT_STATE_PENDING, -ENOENT,
	};
	struct ring *ring = &self->ring;
	struct hwt_op *op[6];
	__u64 id;
	int i;

	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 1, &id));
	op[0] = ring_push(ring, op_schedule(HOUR, 5));
	op[1] = ring_push(ring, op_get(id));
	op[2] = ring_push(ring, op_modify(id, 10 * SEC));
	op[3] = ring_push(ring, (struct hwt_op) { .opcode = 77 });
	op[4] = ring_push(ring, op_cancel(id));
	op[5] = ring_push(ring, op_get(id));
	EXPECT_EQ(0, ring_enter(ring, 0, 0, 0));
	EXPECT_EQ(0U, ring_op_head(ring));
	/* Carry out two operations, then all that are queued. */
	EXPECT_EQ(2, ring_enter(ring, 2, 0, 0));
	EXPECT_EQ(2U, ring_op_head(ring));
	EXPECT_EQ(4, ring_enter(ring, ENTRIES, 0, 0));
	EXPECT_EQ(6U, ring_op_head(ring));
	for (i = 0; i < 6; i++)
		EXPECT_EQ(results[i], op[i]->result);
	EXPECT_EQ(1ULL, op[1]->user_data);
	EXPECT_LT(SEC, op[1]->remaining_ns);
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, op[0]->id));
	EXPECT_EQ(0, ring_enter(ring, -1U, 0, 0));
}

/* Placeholders for the ids of two timeouts; no timeout has these ids */
#define ONE		1ULL
#define PERIODIC	3ULL

static const struct bad_op {
	int		error;
	struct hwt_op	op;
} bad_ops[] = {
	{ EINVAL, { .opcode = 0 } },
	{ EINVAL, { .opcode = 5 } },
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .flags = 1U << 31 } },
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .mode = 3 } },
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .mode = 3, .period_ns = 1 } },
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .mode = HWT_ARM_ABSOLUTE, .period_ns = 1 } },
	/* A one-shot with a period; periodic without a period, or with slack */
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .period_ns = 1 } },
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .mode = HWT_MODE_FIXED_RATE } },
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .mode = HWT_MODE_FIXED_DELAY } },
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .mode = HWT_MODE_FIXED_RATE, .period_ns = SEC,
		    .slack_ns = 1 } },
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .mode = HWT_MODE_FIXED_DELAY, .period_ns = SEC,
		    .slack_ns = 1 } },
	{ EINVAL, { .opcode = HWT_OP_SCHEDULE, .flags = HWT_ARM_EARLIER } },
	{ ENOENT, { .opcode = HWT_OP_MODIFY } },
	{ ENOENT, { .opcode = HWT_OP_MODIFY, .id = ~0ULL } },
	{ EINVAL, { .opcode = HWT_OP_MODIFY, .id = ONE, .flags = 4 } },
	{ EINVAL, { .opcode = HWT_OP_MODIFY, .id = ONE, .mode = 1 } },
	{ EINVAL, { .opcode = HWT_OP_MODIFY, .id = ONE, .flags = HWT_ARM_USER_DATA,
		    .period_ns = SEC } },
	{ EINVAL, { .opcode = HWT_OP_MODIFY, .id = PERIODIC, .flags = HWT_ARM_USER_DATA,
		    .slack_ns = 1 } },
	{ EINVAL, { .opcode = HWT_OP_MODIFY, .id = ONE, .user_data = 1 } },
	{ ENOENT, { .opcode = HWT_OP_CANCEL } },
	{ ENOENT, { .opcode = HWT_OP_CANCEL, .id = 2 } },
	{ EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .flags = 1 } },
	{ EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .mode = 1 } },
	{ EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .time_ns = 1 } },
	{ EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .period_ns = 1 } },
	{ EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .slack_ns = 1 } },
	{ EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .user_data = 1 } },
	{ EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .overruns = 1 } },
	{ ENOENT, { .opcode = HWT_OP_GET } },
	{ ENOENT, { .opcode = HWT_OP_GET, .id = ~0ULL } },
	{ EINVAL, { .opcode = HWT_OP_GET, .id = ONE, .flags = 1 } },
};

TEST_F(rings, one_that_fails_does_so_alone)
{
	struct hwt_get_args was[2], is;
	struct hwt_op op;
	unsigned int i;
	__u64 id[2];

	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, now_ns() + HOUR, 99, &id[0]));
	ASSERT_EQ(0, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, HOUR, HOUR, 99, &id[1]));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, hwt_get(self->fd, id[i], &was[i]));
	for (i = 0; i < ARRAY_SIZE(bad_ops); i++) {
		op = bad_ops[i].op;
		if (op.id == ONE || op.id == PERIODIC)
			op.id = id[op.id == PERIODIC];
		EXPECT_EQ(-bad_ops[i].error, ring_do(&self->ring, op, NULL))
			TH_LOG("number %u", i);
	}
	/* The two timeouts are unchanged. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, hwt_get(self->fd, id[i], &is));
		is.remaining_ns = was[i].remaining_ns;
		EXPECT_EQ(0, memcmp(&was[i], &is, sizeof(is)));
	}
	EXPECT_EQ(2ULL, hwt_timeouts(self->fd));
}

TEST_F(rings, tail_too_far_ahead)
{
	struct ring *ring = &self->ring;
	static const __u32 bad[] = { ENTRIES + 1, 1U << 31, -1U };
	unsigned int i;

	ring_push(ring, op_schedule(HOUR, 0));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ring->shared->op_tail = bad[i];
		EXPECT_EQ(-EINVAL, ring_enter(ring, 1, 0, 0));
		/* Without operations to submit, the tail does not matter. */
		EXPECT_EQ(0, ring_enter(ring, 0, 0, 0));
	}
	EXPECT_EQ(0U, ring_op_head(ring));
	EXPECT_EQ(0ULL, hwt_now(self->fd).scheduled);
	ring->shared->op_tail = 1;
	EXPECT_EQ(1, ring_enter(ring, 1, 0, 0));
}

/* The kernel never reads the fields that it writes. */
TEST_F(rings, kernels_fields_are_its_own)
{
	struct ring *ring = &self->ring;
	struct hwt_event event;

	ring->shared->op_head = 1234;
	ring->shared->event_tail = 5678;
	ring->shared->flags = -1U;
	ring->shared->op_tail = 1;
	ring->ops[0] = op_schedule(0, 42);
	EXPECT_EQ(1, ring_enter(ring, 1, 0, 0));
	EXPECT_EQ(1U, ring_op_head(ring));
	ASSERT_EQ(0, ring_enter(ring, 0, 1, HWT_NEVER));
	EXPECT_EQ(1U, ring_event_tail(ring));
	ASSERT_TRUE(ring_pop(ring, &event));
	EXPECT_EQ(42ULL, event.user_data);
}

/* -- Events -------------------------------------------------------------- */

/* Events enter the ring in the next HWT_IOC_ENTER or poll(), in the order in which they came. */
TEST_F(rings, reap)
{
	struct ring *ring = &self->ring;
	struct hwt_event event;
	__u64 first = now_ns() + SEC, id[3];
	struct hwt_op op;
	int i;

	for (i = 0; i < 3; i++) {
		op = op_schedule(first + 20 * MSEC * (2 - i), i);
		op.flags = HWT_ARM_ABSOLUTE;
		ASSERT_EQ(0, ring_do(ring, op, &id[i]));
	}
	ASSERT_TRUE(hwt_wait_expired(self->fd, 3));
	EXPECT_EQ(0U, ring_unread(ring));
	EXPECT_EQ((__u32)HWT_RINGS_MORE, ring_flags(ring));
	EXPECT_EQ(3ULL, hwt_waiting(self->fd));
	EXPECT_EQ(POLLIN, hwt_wait(self->fd, 0));
	EXPECT_EQ(3U, ring_unread(ring));
	EXPECT_EQ(0U, ring_flags(ring));
	EXPECT_EQ(POLLIN, hwt_wait(self->fd, 0));
	/* Events in the ring count as read: see ids.c. */
	EXPECT_EQ(0ULL, hwt_waiting(self->fd));
	EXPECT_EQ(3ULL, hwt_now(self->fd).read);
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));
	for (i = 2; i >= 0; i--) {
		ASSERT_TRUE(ring_pop(ring, &event));
		EXPECT_TRUE(event.id == id[i] && event.user_data == (__u64)i &&
			    event.kind == HWT_EVENT_EXPIRED && event.flags == HWT_EVENT_LAST);
		EXPECT_LE(first + 20 * MSEC * (2 - i), event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
		EXPECT_GE(now_ns(), event.fired_ns);
		EXPECT_EQ(0ULL, event.reserved | event.overruns);
	}
	EXPECT_FALSE(ring_pop(ring, &event));
	EXPECT_EQ(0, hwt_wait(self->fd, 0));
}

/* Indices wrap many times, and each timeout has exactly one event. */
TEST_F_TIMEOUT(ctx, wraps, 120)
{
	static const struct {
		__u32 ops, events;
		unsigned int total;
	} sizes[] = { { 1, 1, 1000 }, { 2, 8, 2000 }, { 64, 4, 5000 } };
	unsigned int total, made, seen, i;
	static bool came[5000];
	struct hwt_event event;
	struct ring ring;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_LE(0, ring_open(&ring, sizes[i].ops, sizes[i].events));
		total = quick() ? sizes[i].total / 10 : sizes[i].total;
		memset(came, 0, sizeof(came));
		for (made = 0, seen = 0; seen < total; ) {
			while (made < total && ring_push(&ring, op_schedule(0, made)))
				made++;
			ASSERT_LE(0, ring_enter(&ring, sizes[i].ops, 1, SEC));
			for (; ring_pop(&ring, &event); seen++) {
				ASSERT_GT((__u64)made, event.user_data);
				ASSERT_FALSE(came[event.user_data]);
				came[event.user_data] = true;
			}
		}
		EXPECT_EQ(total, ring_op_head(&ring));
		EXPECT_EQ(total, ring_event_tail(&ring));
		EXPECT_EQ(0ULL, hwt_waiting(ring.fd));
		ring_close(&ring);
	}
}

/* Also with events from before the rings, and more events than one call moves. */
TEST(full_ring)
{
	int fd = hwt_open_private(CLOCK_MONOTONIC);
	struct hwt_event event;
	struct ring ring;
	unsigned int i;

	ASSERT_TRUE(hwt_fire(fd, 513));
	ASSERT_EQ(1, hwt_read(fd, &event, 1));
	EXPECT_EQ(0ULL, event.user_data);
	ASSERT_EQ(0, ring_make(&ring, fd, 0, 1, 512));
	EXPECT_EQ((__u32)HWT_RINGS_MORE, ring_flags(&ring));
	EXPECT_EQ(0, ring_enter(&ring, 0, 0, 0));
	EXPECT_EQ(512U, ring_unread(&ring));
	EXPECT_EQ(0U, ring_flags(&ring));
	ASSERT_TRUE(hwt_fire(fd, 587));
	EXPECT_EQ(512U, ring_unread(&ring));
	EXPECT_EQ((__u32)HWT_RINGS_MORE, ring_flags(&ring));
	EXPECT_EQ(587ULL, hwt_waiting(fd));
	/* Room alone moves no event; the system call does. */
	ASSERT_TRUE(ring_pop(&ring, &event));
	EXPECT_EQ(1ULL, event.user_data);
	EXPECT_EQ(512U, ring_event_tail(&ring));
	EXPECT_EQ(0, ring_enter(&ring, 0, 0, 0));
	EXPECT_EQ(513U, ring_event_tail(&ring));
	EXPECT_EQ(586ULL, hwt_waiting(fd));
	/* A new event moves none either, and comes after those that wait. */
	ASSERT_TRUE(hwt_fire(fd, 1));
	EXPECT_EQ(513U, ring_event_tail(&ring));
	for (i = 2; i < 1101; i++) {
		if (!ring_unread(&ring)) {
			EXPECT_EQ((__u32)HWT_RINGS_MORE, ring_flags(&ring));
			ASSERT_EQ(0, ring_enter(&ring, 0, 0, 0));
		}
		ASSERT_TRUE(ring_pop(&ring, &event));
		EXPECT_EQ((__u64)i, event.user_data);
	}
	EXPECT_FALSE(ring_pop(&ring, &event));
	EXPECT_EQ(0U, ring_flags(&ring));
	EXPECT_EQ(0ULL, hwt_waiting(fd));
	ring_close(&ring);
}

/* With an invalid event_head the ring counts as full, and no event is lost. */
TEST(head_beyond_the_tail)
{
	struct hwt_event event;
	struct ring ring;

	ASSERT_LE(0, ring_open(&ring, 4, 4));
	ring.shared->event_head = 7;
	ASSERT_TRUE(hwt_fire(ring.fd, 3));
	EXPECT_EQ(0U, ring_event_tail(&ring));
	EXPECT_EQ((__u32)HWT_RINGS_MORE, ring_flags(&ring));
	EXPECT_EQ(3ULL, hwt_waiting(ring.fd));
	EXPECT_EQ(0, ring_enter(&ring, 0, 4, HWT_NEVER));
	EXPECT_EQ(POLLIN, hwt_wait(ring.fd, 0));
	ring.shared->event_head = 0;
	EXPECT_EQ(0, ring_enter(&ring, 0, 3, HWT_NEVER));
	EXPECT_EQ(3U, ring_unread(&ring));
	ASSERT_TRUE(ring_pop(&ring, &event));
	EXPECT_EQ(0ULL, event.user_data);
	ring_close(&ring);
}

TEST_HARNESS_MAIN
