// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a timeout, to its expiry or the cancel of all. For ids, see ids.c; for races of
 * cancel and modify, see process.c; for deadlines that never come, kernel/test_basics.c and
 * timens.c. "Netty" marks a test that Netty's timer has as well.
 *
 * hwt-test: timeout 300
 */
#include "kselftest_harness.h"

#include "fixtures.h"

/* Netty: a timeout should expire after its delay. Likewise at an absolute time. */
TEST_F(ctx, after_its_delay)
{
	static const unsigned int delays_us[] = {
		0, 777, 1000, 2331, 3000, 10000, 100000, 511000, 512000, 513000,
	};
	__u64 before, after, delay, start, id;
	struct hwt_get_args get, due;
	struct hwt_event event;
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(delays_us); i++) {
		delay = delays_us[i / 2] * USEC;
		before = now_ns();
		start = i % 2 ? before : 0;
		ASSERT_EQ(0, hwt_add(self->fd, i % 2 ? HWT_ARM_ABSOLUTE : 0, start + delay, i,
				     &id));
		after = i % 2 ? before : now_ns();
		ASSERT_EQ(0, hwt_get(self->fd, id, &get));
		EXPECT_TRUE(get.id == id && get.user_data == i && get.mode == HWT_MODE_ONE_SHOT &&
			    !get.period_ns && !get.overruns);
		EXPECT_GE(delay + self->tick, get.remaining_ns);
		ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
		ASSERT_EQ(0, hwt_get(self->fd, id, &due));
		EXPECT_TRUE(due.state == HWT_STATE_EVENT && !due.remaining_ns &&
			    due.deadline_ns == get.deadline_ns);
		ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
		EXPECT_EQ(-ENOENT, hwt_get(self->fd, id, &due));
		EXPECT_EQ(-ENOENT, hwt_move(self->fd, id, 0, 0));
		EXPECT_EQ(-ENOENT, hwt_del(self->fd, id));
		EXPECT_LE(event.fired_ns, now_ns());
		EXPECT_EQ((__u64)i, event.user_data);
		EXPECT_EQ(get.deadline_ns, event.deadline_ns);
		EXPECT_EQ((__u32)HWT_EVENT_EXPIRED, event.kind);
		EXPECT_EQ((__u32)HWT_EVENT_LAST, event.flags);
		EXPECT_EQ(0ULL, event.overruns);
		EXPECT_EQ(0ULL, event.reserved);
		/* Due at the first tick at or after the requested time, and never early */
		EXPECT_EQ(0ULL, event.deadline_ns % self->tick);
		EXPECT_LE(before + delay, event.deadline_ns);
		EXPECT_GT(after + delay + self->tick, event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
	}
}

/* With slack, a timeout fires in its window. */
TEST_F(ctx, slack)
{
	static const unsigned int slack_ms[] = { 1, 10, 100, 1000 };
	struct hwt_event event;
	__u64 due, slack_ns;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(slack_ms); i++) {
		due = now_ns() + 50 * MSEC;
		slack_ns = slack_ms[i] * MSEC;
		ASSERT_EQ(0, hwt_arm(self->fd, NULL, .flags = HWT_ARM_ABSOLUTE, .time_ns = due,
				     .slack_ns = slack_ns));
		ASSERT_EQ(1, hwt_next(self->fd, &event));
		EXPECT_LE(due, event.deadline_ns);
		EXPECT_GT(due + slack_ns + self->tick, event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
	}
}

/* A cancel of all ends each timeout once, although some fire meanwhile. */
TEST_F_TIMEOUT(ctx, cancel_all_while_others_fire, 100)
{
	unsigned int far = quick() ? 20000 : 100000, near = 500, i;
	struct hwt_stats_args stats;
	struct hwt_event event;
	__u64 start;

	/* A cancel of all proceeds by id, so the timeouts that fire come last. */
	for (i = 0; i < far; i++)
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, i, NULL));
	start = now_ns();
	for (i = 0; i < near; i++)
		ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, start + i * MSEC, far + i, NULL));
	/* Wait for the first event: the wheel has collected all timeouts. */
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	EXPECT_EQ((int)(far + near), hwt_del_all(self->fd));
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	stats = hwt_now(self->fd);
	EXPECT_EQ(far + near, stats.cancelled);
	EXPECT_EQ(0ULL, stats.timeouts + stats.pending + stats.events);
}

TEST_HARNESS_MAIN
