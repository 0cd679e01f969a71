// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings in shared memory: waiting for events by HWT_IOC_ENTER and epoll.
 *
 * hwt-test: timeout 150
 * hwt-test: m32
 * hwt-test: shared
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sys/epoll.h>

#include "fixtures.h"
#include "guest.h"

static struct hwt_enter_args enter(int fd, __u32 flags, __u32 wait, __u64 timeout_ns,
				   __u64 sigmask)
{
	struct hwt_enter_args args = {
		.size = sizeof(args),
		.flags = flags,
		.wait = wait,
		.timeout_ns = timeout_ns,
		.sigmask = sigmask,
	};
	int ret = hwt_call(fd, HWT_IOC_ENTER, &args);

	if (ret)
		args.result = ret;
	return args;
}

/* The reason for which a call ended, and the number of events */
TEST_F(rings, enter_says_what_happened)
{
	struct hwt_enter_args args;
	__u64 end = now_ns() + 60 * MSEC;
	struct hwt_event event;
	int i;

	for (i = 1; i <= 3; i++)
		ring_push(&self->ring, op_schedule(i * 20 * MSEC, i));
	EXPECT_EQ(3, ring_enter(&self->ring, 3, 3, HWT_NEVER));
	EXPECT_LE(end, now_ns());
	EXPECT_EQ(0, enter(self->fd, 0, 3, HWT_NEVER, 0).result);
	while (ring_pop(&self->ring, &event))
		i--;
	EXPECT_EQ(1, i);
	args = enter(self->fd, 0, 1, 0, 0);
	EXPECT_EQ(-ETIME, args.result);
	EXPECT_EQ(0U, args.events);
	end = now_ns() + 30 * MSEC;
	args = enter(self->fd, HWT_ENTER_ABSOLUTE, 1, end, 0);
	EXPECT_EQ(-ETIME, args.result);
	EXPECT_LE(end, now_ns());
	EXPECT_EQ(-ETIME, enter(self->fd, HWT_ENTER_ABSOLUTE, 1, 1, 0).result);
	/* Too few events do not shorten the wait. */
	ASSERT_TRUE(hwt_fire(self->fd, 3));
	end = now_ns() + 50 * MSEC;
	EXPECT_EQ(-ETIME, enter(self->fd, 0, 4, 50 * MSEC, 0).result);
	EXPECT_LE(end, now_ns());
	EXPECT_EQ(0, enter(self->fd, 0, 1, 1ULL << 63, 0).result);
	args = enter(self->fd, HWT_ENTER_ABSOLUTE, 2, now_ns() + HOUR, 0);
	EXPECT_EQ(0, args.result);
	EXPECT_EQ(3U, args.events);
	ASSERT_TRUE(hwt_fire(self->fd, ENTRIES - 3));
	EXPECT_EQ(0, enter(self->fd, 0, ENTRIES, 0, 0).result);
	/* A mask without HWT_ENTER_SIGMASK */
	EXPECT_EQ(-EINVAL, enter(self->fd, 0, 0, 0, 1).result);
}

static volatile int caught;

static void on_signal(int number)
{
	caught = number;
}

/* As with ppoll(), the mask is in force during the wait only, and may unblock a signal. */
TEST_F(rings, enter_with_a_signal_mask)
{
	const struct sigaction action = { .sa_handler = on_signal };
	const __u64 bit = 1ULL << (SIGUSR1 - 1), none = 0;
	sigset_t blocked, now;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &blocked, NULL));
	ASSERT_EQ(0, raise(SIGUSR1));
	/* The signal stays blocked without a mask, and with a mask that blocks it. */
	EXPECT_EQ(-ETIME, enter(self->fd, 0, 1, MSEC, 0).result);
	EXPECT_EQ(-ETIME, enter(self->fd, HWT_ENTER_SIGMASK, 1, MSEC, bit).result);
	EXPECT_EQ(0, caught);
	EXPECT_EQ(-EINTR, enter(self->fd, HWT_ENTER_SIGMASK, 1, HWT_NEVER, none).result);
	EXPECT_EQ(SIGUSR1, caught);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, NULL, &now));
	EXPECT_EQ(1, sigismember(&now, SIGUSR1));
	/* Without a pending signal, the time runs out and the old mask is restored. */
	EXPECT_EQ(-ETIME, enter(self->fd, HWT_ENTER_SIGMASK, 1, MSEC, none).result);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, NULL, &now));
	EXPECT_EQ(1, sigismember(&now, SIGUSR1));
}

/* A full ring ends any wait. */
TEST(enter_waits_for_a_full_ring)
{
	struct ring ring;

	ASSERT_LE(0, ring_open(&ring, 4, 4));
	ASSERT_TRUE(hwt_fire(ring.fd, 10));
	EXPECT_EQ(0, ring_enter(&ring, 0, 5, HWT_NEVER));
	EXPECT_EQ(0, ring_enter(&ring, 0, -1U, HWT_NEVER));
	/* Events outside the ring enter when there is room, and end the wait. */
	ring.shared->event_head = 4;
	EXPECT_EQ(0, ring_enter(&ring, 0, 4, HWT_NEVER));
	EXPECT_EQ(4U, ring_unread(&ring));
	ring_close(&ring);
}

TEST(no_more_after_cancels)
{
	struct ring ring;
	__u64 ids[6];
	int i;

	ASSERT_LE(0, ring_open(&ring, 4, 4));
	for (i = 0; i < 6; i++)
		ASSERT_EQ(0, hwt_add(ring.fd, 0, 0, i, &ids[i]));
	ASSERT_TRUE(until(ring_enter(&ring, 0, 0, 0) == 0 && ring_flags(&ring)));
	for (i = 0; i < 6; i++)
		hwt_del(ring.fd, ids[i]);
	EXPECT_EQ(0U, ring_flags(&ring));
	ring_close(&ring);
}

/* Let a pass become due that has to put so many timeouts off, and adds no event. */
static void put_off(int fd, unsigned int count)
{
	__u64 due = now_ns() + SEC, id;

	while (count--)
		if (hwt_add(fd, HWT_ARM_ABSOLUTE, due, 0, &id) || hwt_move(fd, id, 0, HOUR) < 0)
			_exit(1);
	while (now_ns() < due + 2 * MSEC)
		sleep_ns(MSEC);
}

static bool pass_is_due(int fd)
{
	struct hwt_info_args info;

	return !hwt_info(fd, &info) && info.next_ns <= info.now_ns;
}

/* A signal, or the end of its time, ends a call in the middle of a pass. */
TEST_F_TIMEOUT(ctx, calls_end_in_a_pass, 120)
{
	int rounds = 10, fd = self->fd;
	struct hwt_event event;
	struct ring ring;

	ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));
	while (!pass_is_due(fd) && rounds--) {
		put_off(fd, 20000);
		ASSERT_EQ(0, alarm_every(500, 0));
		EXPECT_EQ(-EINTR, hwt_read(fd, &event, 1));
		ASSERT_EQ(0, alarm_every(0, 0));
	}
	EXPECT_LT(0, rounds);
	put_off(fd, 5000);
	ASSERT_EQ(0, ring_make(&ring, fd, 0, 4, 4));
	EXPECT_EQ(-ETIME, enter(fd, 0, 1, 0, 0).result);
	EXPECT_TRUE(pass_is_due(fd));
	ring_unmap(&ring);
}

TEST_F(rings, signal_ends_the_wait)
{
	ASSERT_EQ(0, alarm_every(10000, SA_RESTART));
	EXPECT_EQ(-EINTR, ring_enter(&self->ring, 0, 1, HWT_NEVER));
	/* A call that has carried out operations returns their number. */
	ring_push(&self->ring, op_schedule(HOUR, 0));
	ring_push(&self->ring, op_schedule(HOUR, 0));
	EXPECT_EQ(2, ring_enter(&self->ring, 2, 1, HWT_NEVER));
	ASSERT_EQ(0, alarm_every(0, 0));
}

/* Return 0 if the wait goes on after a stop, with a deadline or without, until an event comes. */
static int waits_on(int fd, __u64 timeout_ns, __u32 flags)
{
	pid_t pid = fork();

	if (!pid)
		_exit(-enter(fd, flags, 1, timeout_ns, 0).result);
	if (!stop_and_go(pid) || hwt_add(fd, 0, 0, 0, NULL))
		return child_kill(pid);
	return child_end(pid);
}

/* A wait that no handler has interrupted goes on, unless the call has to return a number. */
TEST_F(rings, stopped_and_continued)
{
	const __u64 end = now_ns() + HOUR;

	EXPECT_EQ(0, waits_on(self->fd, HWT_NEVER, 0));
	self->ring.shared->event_head++;
	EXPECT_EQ(0, waits_on(self->fd, end, HWT_ENTER_ABSOLUTE));
	self->ring.shared->event_head++;
	EXPECT_EQ(0, waits_on(self->fd, end, HWT_ENTER_ABSOLUTE | HWT_ENTER_SIGMASK));
	self->ring.shared->event_head++;
	EXPECT_EQ(EINTR, waits_on(self->fd, HOUR, 0));
}

/* A signal ends a long call after some operations or events; further calls do the rest. */
TEST_F_TIMEOUT(ctx, signal_half_way, 120)
{
	/* Several times the period of the signals, on a fast machine too. */
	const __u32 count = 8192;
	unsigned int calls, i;
	struct ring large;
	__u32 done, before;
	long ret;

	ASSERT_EQ(0, ring_make(&large, self->fd, 0, count, count));
	for (i = 0; i < count; i++)
		ring_push(&large, op_schedule(HOUR, i));
	ASSERT_EQ(0, alarm_every(500, SA_RESTART));
	for (calls = 0, done = 0; done < count; done += ret, calls++) {
		ret = ring_enter(&large, count, 0, 0);
		ASSERT_LT(0, ret);
	}
	EXPECT_LT(1U, calls);
	EXPECT_EQ(count, ring_op_head(&large));
	for (i = 0; i < count; i++)
		ASSERT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, large.ops[i].id, 0, 0));
	ASSERT_TRUE(hwt_wait_expired(self->fd, count));
	for (ret = -EINTR; ret == -EINTR; ) {
		before = ring_unread(&large);
		ret = enter(self->fd, 0, count, HWT_NEVER, 0).result;
		ASSERT_LT(before, ring_unread(&large));
	}
	ASSERT_EQ(0, alarm_every(0, 0));
	EXPECT_EQ(0, ret);
	EXPECT_EQ(count, ring_unread(&large));
	ring_unmap(&large);
}

struct waiter {
	pthread_t	thread;
	struct ring	*ring;
	__u32		wait;
	volatile long	ret;
};

static void *waiter_run(void *arg)
{
	struct waiter *waiter = arg;

	waiter->ret = ring_enter(waiter->ring, 0, waiter->wait, HWT_NEVER);
	return NULL;
}

/* Threads wait for different numbers of events, while another submits. */
TEST_F(rings, several_wait)
{
	struct waiter waiters[4];
	int i;

	for (i = 0; i < 4; i++) {
		waiters[i] = (struct waiter) { .ring = &self->ring, .wait = i + 1, .ret = 77 };
		ASSERT_EQ(0, pthread_create(&waiters[i].thread, NULL, waiter_run, &waiters[i]));
	}
	for (i = 0; i < 4; i++) {
		sleep_ns(50 * MSEC);
		EXPECT_EQ(77, waiters[i].ret);
		EXPECT_EQ(0, ring_do(&self->ring, op_schedule(0, i), NULL));
		ASSERT_TRUE(until(waiters[i].ret != 77));
		pthread_join(waiters[i].thread, NULL);
		EXPECT_EQ(0, waiters[i].ret);
	}
}

static struct ring ring;
static volatile bool over;

/* Submit full rings of invalid operations in a loop. */
static void *submit_all(void *arg)
{
	sigset_t set;

	(void)arg;
	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	while (!over) {
		__atomic_store_n(&ring.shared->op_tail, ring_op_head(&ring) + ring.op_mask + 1,
				 __ATOMIC_RELEASE);
		ring_enter(&ring, ring.op_mask + 1, 0, 0);
	}
	return NULL;
}

TEST_F_TIMEOUT(ctx, signal_while_another_one_submits, 60)
{
	__u64 end = now_ns() + 40 * SEC;
	pthread_t thread;
	long ret;

	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, HWT_RING_ENTRIES_MAX, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, submit_all, NULL));
	ASSERT_EQ(0, alarm_every(20000, 0));
	do {
		ret = ring_enter(&ring, 1, 0, 0);
	} while (ret != -EINTR && now_ns() < end);
	ASSERT_EQ(0, alarm_every(0, 0));
	over = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(-EINTR, ret);
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));
	ring_unmap(&ring);
}

/* Each new event is an edge, even if events wait already; with rings, also if the ring is full. */
TEST(epoll_edge)
{
	struct epoll_event ev;
	struct ring ring = {};
	int rings, fd, ep, i;

	for (rings = 0; rings < 2; rings++) {
		fd = rings ? ring_open(&ring, 4, 4) : hwt_open(O_NONBLOCK);
		ep = epoll_create1(0);
		ev.events = EPOLLIN | EPOLLET;
		ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
		for (i = 0; i < 8; i++) {
			ASSERT_EQ(0, rings ? ring_do(&ring, op_schedule(0, i), NULL) :
					     hwt_add(fd, 0, 0, i, NULL));
			ASSERT_EQ(1, epoll_wait(ep, &ev, 1, PATIENCE_MS));
			EXPECT_EQ((__u32)EPOLLIN, ev.events);
			ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 20));
		}
		ring_unmap(&ring);
		close(ep);
		close(fd);
	}
}

TEST_HARNESS_MAIN
