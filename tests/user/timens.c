// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time namespaces: a caller's times are on the clock of its own namespace, wherever the context was
 * opened. Times in rings are in the namespace of the caller of HWT_IOC_RINGS.
 *
 * hwt-test: shared
 * hwt-test: m32
 */
#include "kselftest_harness.h"

#include "hwt_ring.h"

FIXTURE(elsewhere) {
	int fd;
	__u64 tick;
};

FIXTURE_VARIANT(elsewhere) {
	clockid_t clock;
	long offset;	/* seconds */
};

FIXTURE_VARIANT_ADD(elsewhere, monotonic_ahead) { CLOCK_MONOTONIC, 1000000 };
FIXTURE_VARIANT_ADD(elsewhere, monotonic_behind) { CLOCK_MONOTONIC, -1 };
FIXTURE_VARIANT_ADD(elsewhere, boottime_ahead) { CLOCK_BOOTTIME, 2000000 };
FIXTURE_VARIANT_ADD(elsewhere, boottime_behind) { CLOCK_BOOTTIME, -1 };

/* Open the context outside of the namespace; children are inside. */
FIXTURE_SETUP(elsewhere)
{
	struct hwt_info_args info;

	self->fd = hwt_open_private(variant->clock);
	ASSERT_EQ(0, hwt_info(self->fd, &info));
	self->tick = info.tick_ns;
	/* No SKIP(): after it, the harness of 6.1 runs the test all the same. */
	ASSERT_EQ(0, timens_for_children(variant->clock, variant->offset));
}

FIXTURE_TEARDOWN(elsewhere)
{
	close(self->fd);
}

/* Return whether @b may be @a rounded up to a tick. */
static bool is_rounded(__u64 a, __u64 b, __u64 tick)
{
	return b >= a && b < a + tick;
}

/* Checks inside the namespace. The timeout @id was scheduled outside. */
static void inside(struct __test_metadata *_metadata, int fd, clockid_t clock, __u64 expected,
		   __u64 id, __u64 outside)
{
	struct hwt_list_entry entry;
	struct hwt_info_args info;
	struct hwt_event event;
	struct hwt_get_args get;
	__u64 now, deadline;

	now = clock_ns(clock);
	EXPECT_GT(100 * SEC, now - expected);
	EXPECT_EQ(0, hwt_info(fd, &info));
	EXPECT_LE(now, info.now_ns);
	EXPECT_GE(clock_ns(clock), info.now_ns);

	/* The same instant, on the clock inside. */
	EXPECT_EQ(0, hwt_get(fd, id, &get));
	EXPECT_EQ(outside, get.deadline_ns);
	EXPECT_EQ(1, hwt_entries(fd, &entry, 1));
	EXPECT_EQ(outside, entry.deadline_ns);
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(outside, event.deadline_ns);
	EXPECT_LE(outside, event.fired_ns);

	deadline = clock_ns(clock) + 100 * MSEC;
	EXPECT_EQ(0, hwt_add(fd, HWT_ARM_ABSOLUTE, deadline, 0, &id));
	EXPECT_EQ(0, hwt_get(fd, id, &get));
	EXPECT_LE(deadline, get.deadline_ns);
	EXPECT_GT(deadline + info.tick_ns, get.deadline_ns);
	EXPECT_GE(100 * MSEC + info.tick_ns, get.remaining_ns);
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(get.deadline_ns, event.deadline_ns);
	EXPECT_LE(deadline, event.fired_ns);
	EXPECT_GE(clock_ns(clock), event.fired_ns);

	/* A delay does not depend on the namespace. */
	now = clock_ns(clock);
	EXPECT_EQ(0, hwt_add(fd, 0, 50 * MSEC, 0, NULL));
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_LE(now + 50 * MSEC, event.fired_ns);

	/* Zero is past even if the clock inside is behind, and HWT_NEVER stays HWT_NEVER. */
	EXPECT_EQ(0, hwt_add(fd, HWT_ARM_ABSOLUTE, 0, 0, NULL));
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(0, hwt_add(fd, HWT_ARM_ABSOLUTE, HWT_NEVER, 0, &id));
	EXPECT_EQ(0, hwt_get(fd, id, &get));
	EXPECT_EQ(HWT_NEVER, get.deadline_ns);
	EXPECT_EQ(HWT_NEVER, get.remaining_ns);
	/* The last deadline that fits inside may not fit outside, but must be far away. */
	EXPECT_EQ(0, hwt_add(fd, HWT_ARM_ABSOLUTE, HWT_NEVER >> 1, 0, &id));
	EXPECT_EQ(0, hwt_get(fd, id, &get));
	EXPECT_LE(HWT_NEVER >> 2, get.remaining_ns);
	EXPECT_EQ(2, hwt_del_all(fd));
}

/* A fixed rate from time 0: its deadlines are multiples of the period inside, not outside. */
static void rate_inside(struct __test_metadata *_metadata, int fd, clockid_t clock)
{
	const __u64 period = 70 * MSEC;	/* does not divide the offsets */
	struct hwt_info_args info;
	struct hwt_event event;
	__u64 deadline, id = 0;
	int i;

	EXPECT_EQ(0, hwt_info(fd, &info));
	EXPECT_EQ(0, hwt_arm(fd, &id, .flags = HWT_ARM_ABSOLUTE, .mode = HWT_MODE_FIXED_RATE,
			     .period_ns = period));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(1, hwt_next(fd, &event));
		EXPECT_GT(info.tick_ns, event.deadline_ns % period);
	}
	deadline = clock_ns(clock) + 20 * MSEC;
	EXPECT_LE(0, hwt_move(fd, id, HWT_ARM_ABSOLUTE, deadline));
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_LE(deadline, event.deadline_ns);
	EXPECT_GT(deadline + info.tick_ns, event.deadline_ns);
}

/* The first child is in the new namespace. */
TEST_F(elsewhere, own_time)
{
	__u64 ahead = variant->offset * SEC, now = clock_ns(variant->clock), id;
	struct hwt_get_args get;

	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, now + 100 * MSEC, 0, &id));
	ASSERT_EQ(0, hwt_get(self->fd, id, &get));
	EXPECT_TRUE(is_rounded(now + 100 * MSEC, get.deadline_ns, self->tick));
	EXPECT_EQ(0, IN_CHILD((inside(_metadata, self->fd, variant->clock, now + ahead, id,
				      get.deadline_ns + ahead), !_metadata->passed)));
}

TEST_F(elsewhere, own_phase)
{
	EXPECT_EQ(0, IN_CHILD((rate_inside(_metadata, self->fd, variant->clock),
			       !_metadata->passed)));
}

/* Times in rings are @ahead behind the times that the ioctls return inside. */
static int ring_inside(struct ring *ring, clockid_t clock, __s64 ahead, __u64 tick)
{
	__u64 deadline = clock_ns(clock) - ahead + HOUR, id;
	struct hwt_op op = op_schedule(deadline, 0), *slot;
	struct hwt_get_args get;
	struct hwt_event event;

	op.flags = HWT_ARM_ABSOLUTE;
	if (ring_do(ring, op, &id))
		return 1;
	slot = ring_push(ring, op_get(id));
	if (ring_enter(ring, 1, 0, 0) != 1 || slot->result != HWT_STATE_PENDING ||
	    !is_rounded(deadline, slot->deadline_ns, tick) || slot->remaining_ns > HOUR + tick)
		return 2;
	if (hwt_get(ring->fd, id, &get) || get.deadline_ns != slot->deadline_ns + ahead)
		return 3;
	deadline -= HOUR - 20 * MSEC;
	op = op_modify(id, deadline);
	op.flags = HWT_ARM_ABSOLUTE;
	if (ring_do(ring, op, NULL) != HWT_STATE_PENDING || ring_next(ring, &event) != 1 ||
	    event.id != id || !is_rounded(deadline, event.deadline_ns, tick) ||
	    event.fired_ns < deadline || event.fired_ns > clock_ns(clock) - ahead)
		return 4;
	return 0;
}

TEST_F(elsewhere, rings_made_outside)
{
	struct ring ring;

	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, 4, 4));
	EXPECT_EQ(0, IN_CHILD(ring_inside(&ring, variant->clock, variant->offset * SEC,
					  self->tick)));
}

static int ring_made_inside(int fd, clockid_t clock, __u64 tick)
{
	struct ring ring;

	return ring_make(&ring, fd, 0, 4, 4) ? 9 : ring_inside(&ring, clock, 0, tick);
}

TEST_F(elsewhere, rings_made_inside)
{
	EXPECT_EQ(0, IN_CHILD(ring_made_inside(self->fd, variant->clock, self->tick)));
}

TEST_HARNESS_MAIN
