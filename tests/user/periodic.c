// SPDX-License-Identifier: GPL-2.0-only
/*
 * Periodic timeouts: fixed rate, fixed delay, overruns.
 *
 * hwt-test: timeout 120
 */
#include "kselftest_harness.h"
#include <sys/epoll.h>

#include "fixtures.h"
#include "guest.h"

static __u64 round_up(__u64 ns, __u64 tick)
{
	return (ns + tick - 1) / tick * tick;
}

static int add_at(int fd, __u32 mode, __u64 first, __u64 period, __u64 *id)
{
	return hwt_arm(fd, id, .flags = HWT_ARM_ABSOLUTE, .mode = mode, .time_ns = first,
		       .period_ns = period, .user_data = 42);
}

/*
 * Each event stands for overruns + 1 periods, so the events tell how many periods are over. The
 * phase does not drift, however late the events are.
 */
TEST_F(ctx, fixed_rate_keeps_its_phase)
{
	__u64 first = now_ns() + 50 * MSEC, period = 30 * MSEC + 12345, id, over = 0, last;
	bool thread = contexts_have_threads();
	struct hwt_event event;
	int i;

	ASSERT_EQ(0, add_at(self->fd, HWT_MODE_FIXED_RATE, first, period, &id));
	for (i = 0; i < 20; i++) {
		sleep_ns(i % 3 * 40 * MSEC);
		ASSERT_EQ(1, hwt_next(self->fd, &event));
		EXPECT_EQ(id, event.id);
		EXPECT_EQ(42ULL, event.user_data);
		EXPECT_EQ((__u32)HWT_EVENT_EXPIRED, event.kind);
		EXPECT_EQ(0U, event.flags);
		EXPECT_LE(round_up(first + over * period, self->tick), event.deadline_ns);
		over += event.overruns + 1;
		last = round_up(first + (over - 1) * period, self->tick);
		/* The deadline is that of the last of these periods, unless a thread was late. */
		EXPECT_TRUE(event.deadline_ns == last || (thread && event.deadline_ns < last));
		/* All of these periods are over. */
		EXPECT_LE(first + (over - 1) * period, event.fired_ns);
	}
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id) & HWT_STATE_PENDING);
}

/*
 * While its event is unread, a timeout counts overruns, and has no second event. With a fixed delay
 * each overrun is a firing, so there are at most as many as periods have passed.
 */
TEST_F(ctx, unread_periods_are_overruns)
{
	__u64 first, period = 10 * MSEC, id, overruns = 0;
	struct hwt_list_entry entry;
	struct hwt_get_args get;
	struct hwt_event event[2];
	__u32 mode;

	for (mode = HWT_MODE_FIXED_RATE; mode <= HWT_MODE_FIXED_DELAY; mode++) {
		first = now_ns() + 20 * MSEC;
		ASSERT_EQ(0, add_at(self->fd, mode, first, period, &id));
		ASSERT_TRUE(until(!hwt_get(self->fd, id, &get) && get.overruns >= 10));
		EXPECT_EQ((__u32)(HWT_STATE_PENDING | HWT_STATE_EVENT), get.state);
		EXPECT_EQ(mode, get.mode);
		EXPECT_EQ(period, get.period_ns);
		ASSERT_EQ(1, hwt_entries(self->fd, &entry, 1));
		EXPECT_LE(get.overruns, entry.overruns);
		EXPECT_LE(get.deadline_ns, entry.deadline_ns);

		ASSERT_EQ(1, hwt_read(self->fd, event, 1));
		EXPECT_EQ(id, event[0].id);
		EXPECT_LE(entry.overruns, event[0].overruns);
		/* The last counted period was over at the firing. */
		EXPECT_LE(first + event[0].overruns * period, event[0].fired_ns);
		if (mode == HWT_MODE_FIXED_RATE)
			EXPECT_LE(event[0].deadline_ns,
				  round_up(first + event[0].overruns * period, self->tick));

		/* The next event counts from 0, the total in GET goes on. */
		ASSERT_EQ(1, hwt_next(self->fd, &event[1]));
		EXPECT_LT(event[0].deadline_ns, event[1].deadline_ns);
		ASSERT_EQ(0, hwt_get(self->fd, id, &get));
		EXPECT_LE(event[0].overruns + event[1].overruns, get.overruns);
		overruns += get.overruns;
		EXPECT_LE(0, hwt_del(self->fd, id));
		EXPECT_EQ(-EAGAIN, hwt_read(self->fd, event, 1));
	}
	EXPECT_LE(overruns, hwt_now(self->fd).overruns);
	EXPECT_EQ(4ULL, hwt_now(self->fd).read);
}

/* The shortest period, and a first deadline long ago (the longest: kernel/test_periodic.c) */
TEST_F(ctx, extreme_period)
{
	struct hwt_event event;
	__u64 id;

	ASSERT_EQ(0, add_at(self->fd, HWT_MODE_FIXED_RATE, 1, 1, &id));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_LT(1000000000ULL, event.overruns);
	EXPECT_GT(event.fired_ns, event.overruns);
	EXPECT_LE(0, hwt_del(self->fd, id));
	EXPECT_EQ(0, hwt_wait(self->fd, 50));
}

TEST_F(ctx, fixed_delay_counts_from_the_firing)
{
	__u64 period = 20 * MSEC, first = now_ns() + 10 * MSEC, id, fired = 0;
	struct hwt_event event;
	int i;

	ASSERT_EQ(0, add_at(self->fd, HWT_MODE_FIXED_DELAY, first, period, &id));
	for (i = 0; i < 15; i++) {
		ASSERT_EQ(1, hwt_next(self->fd, &event));
		EXPECT_EQ(id, event.id);
		EXPECT_LE(first, event.fired_ns);
		EXPECT_LE(i ? fired + period : first, event.deadline_ns);
		fired = event.fired_ns;
	}
	EXPECT_LE(0, hwt_del(self->fd, id));
}

TEST_F(ctx, modify_starts_anew)
{
	struct hwt_get_args get;
	struct hwt_event event;
	__u64 id, first;

	ASSERT_EQ(0, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, 0, 10 * MSEC, 1, &id));
	ASSERT_TRUE(until(!hwt_get(self->fd, id, &get) && get.overruns));
	first = now_ns() + 30 * MSEC;
	/* The unread event is withdrawn with its overruns. */
	ASSERT_EQ(HWT_STATE_PENDING | HWT_STATE_EVENT,
		  hwt_was(self->fd, MODIFY, modify, .flags = HWT_ARM_ABSOLUTE | HWT_ARM_USER_DATA,
			  .id = id, .time_ns = first, .period_ns = HOUR, .user_data = 2));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(2ULL, event.user_data);
	EXPECT_EQ(0ULL, event.overruns);
	EXPECT_EQ(round_up(first, self->tick), event.deadline_ns);
	ASSERT_EQ(0, hwt_get(self->fd, id, &get));
	EXPECT_EQ(HOUR, get.period_ns);
	EXPECT_EQ(0ULL, get.overruns);
	EXPECT_EQ((__u32)HWT_STATE_PENDING, get.state);

	/* A period of 0 keeps the period. */
	ASSERT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id, 0, 0));
	ASSERT_EQ(0, hwt_get(self->fd, id, &get));
	EXPECT_EQ(HOUR, get.period_ns);
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(0, hwt_wait(self->fd, 50));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id));
}

/* A cancel also withdraws the event, even if the timeout fires at the same time. */
TEST_F(ctx, no_event_after_cancel)
{
	struct hwt_event event;
	int i, was, seen = 0;
	__u64 id;

	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, hwt_add_periodic(self->fd, i % 2 ? HWT_MODE_FIXED_RATE :
						HWT_MODE_FIXED_DELAY, 0, 1000, i, &id));
		sleep_ns(i * 50 * USEC % (3 * MSEC));
		was = hwt_del(self->fd, id);
		ASSERT_EQ(HWT_STATE_PENDING, was & HWT_STATE_PENDING);
		seen |= was;
		ASSERT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	}
	EXPECT_EQ(HWT_STATE_PENDING | HWT_STATE_EVENT, seen);
	EXPECT_EQ(0, hwt_wait(self->fd, 50));
}

/* -- Between a firing and the next deadline ------------------------------ */

/* Epoll entries to wake at each event: the wheel is busy with this while the event is read. */
#define TOLD	800

static void tell_many(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC), i;

	for (i = 0; i < TOLD; i++)
		epoll_ctl(ep, EPOLL_CTL_ADD, fcntl(fd, F_DUPFD_CLOEXEC, 0), &ev);
}

/*
 * GET during a firing returns the next deadline once there is an event, and not before; also when
 * the event has been read.
 */
TEST_F_TIMEOUT(ctx, get_while_it_fires, 60)
{
	__u64 first, period = HOUR, id;
	int rounds = quick() ? 100 : 500, i;
	struct hwt_event event;
	struct hwt_get_args get;

	tell_many(self->fd);
	ASSERT_EQ(0, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, period, period, 0, &id));
	for (i = 0; i < rounds; i++) {
		/* A reader on the CPU of the wheel's thread would be too late. */
		stay_on_cpu(i % (last_cpu() + 1));
		first = round_up(now_ns() + 2 * self->tick, self->tick);
		ASSERT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id, HWT_ARM_ABSOLUTE, first));
		do {
			ASSERT_EQ(0, hwt_get(self->fd, id, &get));
			ASSERT_EQ(get.state & HWT_STATE_EVENT ? first + period : first,
				  get.deadline_ns);
			ASSERT_EQ(get.state & HWT_STATE_EVENT,
				  get.remaining_ns > period / 2 ? HWT_STATE_EVENT : 0);
		} while (!(get.state & HWT_STATE_EVENT));
		ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
		ASSERT_EQ(first, event.deadline_ns);
		ASSERT_EQ(0, hwt_get(self->fd, id, &get));
		ASSERT_EQ((__u32)HWT_STATE_PENDING, get.state);
		ASSERT_EQ(first + period, get.deadline_ns);
	}
}

TEST_HARNESS_MAIN
