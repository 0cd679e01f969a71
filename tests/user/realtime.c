// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts on CLOCK_REALTIME: dates, and the event when the clock is set. All dates are before
 * 2038, for 32-bit programs.
 *
 * hwt-test: timeout 180
 * hwt-test: m32
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sys/timex.h>

#include "hwt_ring.h"

/* Signed, because the test also computes with negative jumps */
#define YEARS	((__s64)(10 * 365 * 24 * HOUR))

#define BACK	((__s64)(10 * SEC))

/* Tolerance of comparisons of times */
#define MARGIN	SEC

static __u64 real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* CLOCK_REALTIME minus CLOCK_MONOTONIC before the test sets the clock */
static __s64 home;

/* Set the clock @ahead of the true time. */
static int travel(__s64 ahead)
{
	__u64 ns = now_ns() + home + ahead;
	struct timespec to = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };

	return clock_settime(CLOCK_REALTIME, &to) ? -errno : 0;
}

static bool events(int fd, __u64 count)
{
	return until(hwt_waiting(fd) >= count) && hwt_waiting(fd) == count;
}

/* Wait until the wheel has seen the present clock: until a timeout that is due has fired. */
static bool passed_by(int fd)
{
	struct hwt_get_args get;
	__u64 id;

	if (hwt_add(fd, HWT_ARM_ABSOLUTE, 0, 0, &id))
		return false;
	return until(hwt_get(fd, id, &get) || get.state == HWT_STATE_EVENT) &&
	       hwt_del(fd, id) == HWT_STATE_EVENT;
}

static bool about(__s64 value, __s64 wanted)
{
	return value > wanted - (__s64)MARGIN && value < wanted + (__s64)MARGIN;
}

/* Return whether the event reports @times sets of the clock, by @jump in all. */
static bool is_jump(const struct hwt_event *event, __s64 jump, __u64 times)
{
	return event->kind == HWT_EVENT_CLOCK_SET && !event->id && !event->user_data &&
	       !event->flags && !event->generation && !event->reserved &&
	       event->overruns == times - 1 &&
	       about(event->fired_ns - event->deadline_ns, jump) &&
	       about(real_ns() - event->fired_ns, 0);
}

FIXTURE(real) {
	int fd;
};

FIXTURE_SETUP(real)
{
	home = real_ns() - now_ns();
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_EQ(0, hwt_setup(self->fd, CLOCK_REALTIME, HWT_SETUP_TELL_CLOCK_SET));
}

FIXTURE_TEARDOWN(real)
{
	travel(0);
	close(self->fd);
}

/* Return whether HWT_IOC_GET agrees with the date and with the present clock. */
static bool remains(int fd, __u64 id, __u64 date)
{
	__u64 before = real_ns(), after;
	struct hwt_get_args get;

	if (hwt_get(fd, id, &get))
		return false;
	after = real_ns();
	return get.state == HWT_STATE_PENDING && get.deadline_ns >= date &&
	       get.deadline_ns < date + hwt_param("tick_us") * USEC &&
	       get.remaining_ns <= get.deadline_ns - before &&
	       get.remaining_ns >= get.deadline_ns - after;
}

/*
 * Contexts with HWT_SETUP_TELL_CLOCK_SET get an event, others do not; dates do not change. A date
 * that the first jump passes over fires after the event of the jump.
 */
TEST_F(real, told_of_each_jump)
{
	static const __s64 places[] = {
		100 * SEC, 0, -BACK, -YEARS, 0, -YEARS, -YEARS + 3 * HOUR, 0,
	};
	int fds[3] = { self->fd, hwt_open(O_NONBLOCK), hwt_open(O_NONBLOCK) }, j;
	__u64 date = real_ns() + YEARS, soon = real_ns() + 70 * SEC, id;
	struct hwt_event event;
	unsigned int i;
	__s64 last = 0;

	ASSERT_EQ(0, hwt_setup(fds[1], CLOCK_REALTIME, HWT_SETUP_TELL_CLOCK_SET));
	ASSERT_EQ(0, hwt_setup(fds[2], CLOCK_REALTIME, 0));
	EXPECT_EQ(0, hwt_wait(self->fd, 0));
	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, date, 0, &id));
	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, soon, 1, NULL));
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		ASSERT_EQ(0, travel(places[i]));
		for (j = 0; j < 2; j++) {
			ASSERT_EQ(POLLIN, hwt_wait(fds[j], PATIENCE_MS));
			ASSERT_EQ(1, hwt_read(fds[j], &event, 1));
			EXPECT_TRUE(is_jump(&event, places[i] - last, 1));
			if (!i && !j)
				ASSERT_EQ(1, hwt_next(self->fd, &event));
			EXPECT_TRUE(i || j || (event.user_data == 1 && event.fired_ns >= soon));
			EXPECT_EQ(-EAGAIN, hwt_read(fds[j], &event, 1));
		}
		EXPECT_TRUE(remains(self->fd, id, date));
		last = places[i];
	}
	ASSERT_TRUE(passed_by(fds[2]));
	EXPECT_EQ(-EAGAIN, hwt_read(fds[2], &event, 1));
	close(fds[1]);
	close(fds[2]);
}

/* Several jumps make one event. Its times differ by the sum of the jumps, without elapsed time. */
TEST_F(real, told_of_several_at_once)
{
	struct hwt_event event;

	ASSERT_EQ(0, travel(100 * SEC));
	ASSERT_TRUE(events(self->fd, 1));
	sleep_ns(2 * SEC);
	ASSERT_EQ(0, travel(300 * SEC));
	ASSERT_TRUE(passed_by(self->fd));
	ASSERT_EQ(0, travel(-(__s64)(50 * SEC)));
	ASSERT_TRUE(passed_by(self->fd));
	EXPECT_EQ(1ULL, hwt_waiting(self->fd));
	ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
	EXPECT_EQ(2ULL, event.overruns);
	EXPECT_TRUE(is_jump(&event, -50 * (__s64)SEC, 3));
	ASSERT_EQ(0, travel(0));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_TRUE(is_jump(&event, 50 * SEC, 1));
}

/*
 * After a set back, an expired timeout does not fire again, and its event stays. The event of the
 * jump is not a timeout: it has no id and is not listed.
 */
TEST_F(real, event_outlives_set_back)
{
	struct hwt_list_entry entries[2];
	struct hwt_event event;
	struct hwt_get_args get;
	__u64 id;

	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, real_ns(), 0, &id));
	ASSERT_TRUE(events(self->fd, 1));
	ASSERT_EQ(0, travel(-YEARS));
	ASSERT_TRUE(events(self->fd, 2));
	EXPECT_EQ(-ENOENT, hwt_get(self->fd, 0, &get));
	EXPECT_EQ(-ENOENT, hwt_del(self->fd, 0));
	EXPECT_EQ(-ENOENT, hwt_move(self->fd, 0, 0, SEC));
	EXPECT_EQ(1, hwt_entries(self->fd, entries, 2));
	EXPECT_TRUE(stats_are(self->fd, .timeouts = 1, .events = 2, .scheduled = 1,
			      .expired = 1));
	ASSERT_TRUE(passed_by(self->fd));
	ASSERT_EQ(0, hwt_get(self->fd, id, &get));
	EXPECT_EQ((__u32)HWT_STATE_EVENT, get.state);
	EXPECT_EQ(0ULL, get.remaining_ns);
	ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ((__u32)HWT_EVENT_EXPIRED, event.kind);
	ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
	EXPECT_EQ((__u32)HWT_EVENT_CLOCK_SET, event.kind);
	ASSERT_EQ(0, travel(0));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	ASSERT_TRUE(passed_by(self->fd));
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
}

/* A delay becomes a date at the call, so a set of the clock shortens or prolongs the delay. */
TEST_F(real, delay_is_a_date)
{
	struct hwt_event event;
	struct hwt_get_args get;
	__u64 id;

	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 1, NULL));
	ASSERT_EQ(0, travel(2 * HOUR));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ((__u32)HWT_EVENT_CLOCK_SET, event.kind);
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(1ULL, event.user_data);
	ASSERT_EQ(0, hwt_add(self->fd, 0, 60 * SEC, 2, &id));
	ASSERT_EQ(0, travel(0));
	ASSERT_TRUE(passed_by(self->fd));
	ASSERT_EQ(0, hwt_get(self->fd, id, &get));
	EXPECT_EQ((__u32)HWT_STATE_PENDING, get.state);
	EXPECT_LT(HOUR, get.remaining_ns);
}

static bool shift(__s64 ns)
{
	struct timex tx = {
		.modes = ADJ_SETOFFSET | ADJ_NANO,
		.time.tv_sec = ns / (__s64)SEC,
	};

	return adjtimex(&tx) >= 0;
}

/*
 * Set the clock forward and back by the same amount while the wheel is busy. If the wheel reads
 * the clock only in between, it must not fire by that time afterwards.
 */
TEST_F(real, there_and_back_again)
{
	unsigned int rounds = quick() ? 100 : 500, i, early = 0;
	struct hwt_event event;
	__u64 id;

	ASSERT_EQ(0, travel(-YEARS));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	for (i = 0; i < rounds; i++) {
		/* Make the wheel read the clock, by chance between the two sets. */
		ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 0, NULL));
		ASSERT_TRUE(shift(HOUR));
		ASSERT_TRUE(shift(-(__s64)HOUR));
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR / 2, 0, &id));
		ASSERT_TRUE(passed_by(self->fd));
		early += hwt_del(self->fd, id) != HWT_STATE_PENDING;
		while (hwt_read(self->fd, &event, 1) == 1)
			;
	}
	EXPECT_EQ(0U, early);
	/* passed_by() does not wait for the tick after the last set. */
	EXPECT_TRUE(until(hwt_read(self->fd, &event, 1) != 1 && !hwt_timeouts(self->fd)));
}

static volatile bool over;

static void *set_often(void *arg)
{
	(void)arg;
	while (!over) {
		travel(-BACK);
		travel(0);
	}
	return NULL;
}

/* Create, use and close contexts while another thread sets the clock. */
TEST_F(real, come_and_go_while_it_is_set)
{
	__u64 end = now_ns() + SEC;
	struct hwt_event event;
	pthread_t thread;
	int i, fd;

	ASSERT_EQ(0, pthread_create(&thread, NULL, set_often, NULL));
	for (i = 0; i < 4 || now_ns() < end; i++) {
		fd = hwt_open(O_NONBLOCK);
		ASSERT_EQ(0, hwt_setup(fd, CLOCK_REALTIME, HWT_SETUP_TELL_CLOCK_SET));
		ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, NULL));
		if (i % 2)
			ASSERT_EQ(1, hwt_next(fd, &event));
		if (i % 3)
			ASSERT_EQ(1, hwt_del_all(fd));
		close(fd);
	}
	over = true;
	pthread_join(thread, NULL);
}

TEST_HARNESS_MAIN
