// SPDX-License-Identifier: GPL-2.0-only
/*
 * What timers of this kind promise (the subjects are those of the Netty, Kafka and
 * Dubbo timers' own tests), asked of /dev/hwt.
 *
 * hwt-test: timeout 240
 */
#include "kselftest_harness.h"

#include "fixtures.h"

static __u64 tick_ns(void)
{
	return hwt_param("tick_us") * USEC;
}

/* Netty: a timeout should expire after its delay. Likewise at an absolute time. */
TEST_F(ctx, after_its_delay)
{
	static const unsigned int delays_us[] = {
		0, 777, 1000, 2331, 3000, 10000, 100000, 511000, 512000, 513000,
	};
	__u64 before, after, delay, start;
	struct hwt_event event;
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(delays_us); i++) {
		delay = delays_us[i / 2] * USEC;
		before = now_ns();
		start = i % 2 ? before : 0;
		ASSERT_EQ(0, hwt_add(self->fd, i % 2 ? HWT_ABSOLUTE : 0, start + delay, i, NULL));
		after = i % 2 ? before : now_ns();
		ASSERT_EQ(1, hwt_next(self->fd, &event));
		EXPECT_LE(event.fired_ns, now_ns());
		EXPECT_EQ((__u64)i, event.user_data);
		EXPECT_EQ((__u32)HWT_EVENT_EXPIRED, event.kind);
		EXPECT_EQ((__u32)HWT_EVENT_LAST, event.flags);
		EXPECT_EQ(0ULL, event.overruns);
		EXPECT_EQ(0ULL, event.reserved[0] | event.reserved[1]);
		/* Due at the first tick at or after the deadline, and not early. */
		EXPECT_EQ(0ULL, event.deadline_ns % tick_ns());
		EXPECT_LE(before + delay, event.deadline_ns);
		EXPECT_GT(after + delay + tick_ns(), event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
	}
}

/*
 * Netty: very many timeouts, all between delay and delay + 2 ticks. Not early holds for
 * each; how late depends on the machine, so that is only told, and bounded by what
 * even emulation does.
 */
TEST_F_TIMEOUT(ctx, many_at_once, 120)
{
	int total = quick() ? 10000 : 50000, n = 0, ret, i;
	struct hwt_event events[256];
	__u64 late, sum = 0, worst = 0;
	__u64 *deadline;
	char *seen;

	deadline = calloc(total, sizeof(*deadline));
	seen = calloc(total, 1);
	ASSERT_NE(NULL, deadline);
	ASSERT_NE(NULL, seen);
	for (i = 0; i < total; i++) {
		deadline[i] = now_ns() + 500 * MSEC;
		ASSERT_EQ(0, hwt_add(self->fd, 0, 500 * MSEC, i, NULL));
	}
	while (n < total) {
		ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
		ret = hwt_read(self->fd, events, ARRAY_SIZE(events));
		ASSERT_LT(0, ret);
		for (i = 0; i < ret; i++) {
			ASSERT_GT((__u64)total, events[i].user_data);
			ASSERT_EQ(0, seen[events[i].user_data]);
			seen[events[i].user_data] = 1;
			ASSERT_LE(deadline[events[i].user_data], events[i].fired_ns);
			late = events[i].fired_ns - events[i].deadline_ns;
			sum += late;
			if (late > worst)
				worst = late;
		}
		n += ret;
	}
	TH_LOG("%d timeouts: late by %llu us on average, %llu at most", total,
	       sum / total / USEC, worst / USEC);
	EXPECT_GT(PATIENCE_MS * MSEC, worst);
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, events, 1));
	free(seen);
	free(deadline);
}

/* Netty: overflow of the deadline. It never fires and can be cancelled. */
TEST_F(ctx, never)
{
	static const __u64 never[] = { HWT_NEVER, HWT_NEVER - 1, 1ULL << 63 };
	struct hwt_get_args get;
	__u64 id[2 * ARRAY_SIZE(never)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(id); i++) {
		ASSERT_EQ(0, hwt_add(self->fd, i % 2 ? HWT_ABSOLUTE : 0, never[i / 2], i,
				     &id[i]));
		ASSERT_EQ(0, hwt_get(self->fd, id[i], &get));
		EXPECT_EQ((__u32)HWT_STATE_PENDING, get.state);
		EXPECT_EQ(HWT_NEVER, get.deadline_ns);
		EXPECT_EQ(HWT_NEVER, get.remaining_ns);
	}
	EXPECT_EQ(0, hwt_wait(self->fd, 50));
	for (i = 0; i < ARRAY_SIZE(id); i++)
		EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id[i]));
}

/* With slack: somewhere in the window. */
TEST_F(ctx, slack)
{
	static const unsigned int slack_ms[] = { 1, 10, 100, 1000 };
	struct hwt_event event;
	__u64 due, slack_ns;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(slack_ms); i++) {
		due = now_ns() + 50 * MSEC;
		slack_ns = slack_ms[i] * MSEC;
		ASSERT_EQ(0, hwt_arm(self->fd, NULL, .flags = HWT_ABSOLUTE, .time_ns = due,
				     .slack_ns = slack_ns));
		ASSERT_EQ(1, hwt_next(self->fd, &event));
		EXPECT_LE(due, event.deadline_ns);
		EXPECT_GT(due + slack_ns + tick_ns(), event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
	}
}

/*
 * So many in two buckets that a look at them takes longer than a tick: the wheel falls
 * behind. But it goes on to take in what is new: what is past fires at once, and not when
 * the wheel has caught up, which takes longer each time.
 */
TEST_F_TIMEOUT(ctx, overfull_buckets, 200)
{
	unsigned int many = quick() ? 50000 : 200000, i;
	struct hwt_event event;

	ASSERT_EQ(0, hwt_with(self->fd, SETUP, setup, .clock = CLOCK_MONOTONIC,
			      .tick_ns = MSEC, .ticks_per_wheel = 2, .levels = 1));
	for (i = 0; i < many; i++)
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, hwt_add(self->fd, HWT_ABSOLUTE, 0, i, NULL));
		ASSERT_EQ(1, hwt_next(self->fd, &event));
		ASSERT_EQ((__u64)i, event.user_data);
	}
}

TEST_HARNESS_MAIN
