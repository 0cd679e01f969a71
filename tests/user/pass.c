// SPDX-License-Identifier: GPL-2.0-only
/*
 * A context without a kernel thread: its callers drive its timeouts. What the tasks that wait, poll
 * and query find, and that no task of the kernel works for a program.
 *
 * hwt-test: timeout 120
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "fixtures.h"
#include "guest.h"

static int epoll_for(int fd, __u32 events)
{
	struct epoll_event event = { .events = events };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	return epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -1 : epoll;
}

static bool reported(int epoll, int timeout_ms)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, timeout_ms) == 1 && (event.events & EPOLLIN);
}

TEST_F(ctx, no_thread)
{
	if (contexts_have_threads())
		SKIP(return, "thread_contexts=1");
	ASSERT_EQ(0, hwt_add(self->fd, 0, MSEC, 1, NULL));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	EXPECT_EQ(0U, context_threads(NULL));
}

/* A reader with little room leaves due timeouts, of which all tasks that wait are told. */
TEST_F(ctx, more_than_one_step)
{
	int epoll = epoll_for(self->fd, EPOLLIN | EPOLLET), n = 0, i, ret;
	struct hwt_event events[3];
	__u64 at = now_ns() + 500 * MSEC;

	ASSERT_LE(0, epoll);
	for (i = 0; i < 5000; i++)
		ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, at + i % 7 * MSEC, i, NULL));
	while (n < 5000) {
		ASSERT_TRUE(reported(epoll, PATIENCE_MS));
		/* A short read means that nothing is due. */
		do {
			ret = hwt_read(self->fd, events, 3);
			n += ret > 0 ? ret : 0;
		} while (ret == 3);
	}
	EXPECT_EQ(5000, n);
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, events, 3));
	close(epoll);
}

/* A poll that was woken for a timeout that was pushed back finds nothing, and sleeps on. */
TEST_F(ctx, pushed_back)
{
	__u64 begin = now_ns(), id;
	struct hwt_event event;

	ASSERT_EQ(0, hwt_add(self->fd, 0, 50 * MSEC, 1, &id));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id, 0, 300 * MSEC));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	EXPECT_LE(begin + 300 * MSEC, now_ns());
	EXPECT_EQ(1, hwt_read(self->fd, &event, 1));
	EXPECT_LE(begin + 300 * MSEC, event.fired_ns);
}

/* An operation on a timeout that is due finds it fired, although no task has called read(). */
TEST_F(ctx, operations_on_what_is_due)
{
	struct hwt_get_args get;
	__u64 id[3];
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, hwt_add(self->fd, 0, MSEC, i, &id[i]));
	sleep_ns(50 * MSEC);
	ASSERT_EQ(0, hwt_get(self->fd, id[0], &get));
	EXPECT_EQ((__u32)HWT_STATE_EVENT, get.state);
	EXPECT_EQ(HWT_STATE_EVENT, hwt_move(self->fd, id[1], 0, HOUR));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_del(self->fd, id[2]));
}

struct waiter {
	pthread_t thread;
	int fd;
	int ret;
};

static void *wait_run(void *arg)
{
	struct waiter *waiter = arg;

	waiter->ret = hwt_wait(waiter->fd, PATIENCE_MS);
	return NULL;
}

/*
 * A pass that ends before the interrupt wakes the other tasks itself. The query below runs when the
 * tick begins, so in some rounds it comes before the interrupt.
 */
TEST_F(ctx, query_before_the_interrupt)
{
	struct waiter waiter = { .fd = self->fd };
	unsigned int rounds = quick() ? 50 : 300, i;
	struct hwt_event event;
	__u64 at;

	for (i = 0; i < rounds; i++) {
		at = (now_ns() / MSEC + 5) * MSEC;
		ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, at, i, NULL));
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
		ASSERT_EQ(0, pthread_create(&waiter.thread, NULL, wait_run, &waiter));
		while (now_ns() < at)
			;
		hwt_now(self->fd);
		pthread_join(waiter.thread, NULL);
		ASSERT_EQ(POLLIN, waiter.ret);
		ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
		ASSERT_LE(0, hwt_del_all(self->fd));
	}
}

/* A program that reads the ring without system calls is told when it has to call. */
TEST_F(rings, word_in_the_ring)
{
	struct hwt_rings *shared = self->ring.shared;
	__u64 at = now_ns() + 20 * MSEC;
	struct hwt_event event;

	if (contexts_have_threads())
		SKIP(return, "thread_contexts=1");
	EXPECT_EQ(0U, shared->due);
	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, at, 5, NULL));
	EXPECT_LE(at, shared->next_ns);
	EXPECT_GE(at + 2 * MSEC, shared->next_ns);
	EXPECT_TRUE(until(__atomic_load_n(&shared->due, __ATOMIC_ACQUIRE)));
	EXPECT_LE(at, now_ns());
	EXPECT_FALSE(ring_pop(&self->ring, &event));
	ASSERT_EQ(0, ring_enter(&self->ring, 0, 0, 0));
	EXPECT_TRUE(ring_pop(&self->ring, &event));
	EXPECT_EQ(0U, shared->due);
	EXPECT_EQ(HWT_NEVER, shared->next_ns);
	/* Any call corrects the word, which a late interrupt may have set: here, the test does. */
	shared->due = 1;
	EXPECT_EQ(0, hwt_wait(self->fd, 0));
	EXPECT_EQ(0U, shared->due);
	shared->due = 1;
	ASSERT_EQ(0, ring_enter(&self->ring, 0, 0, 0));
	EXPECT_EQ(0U, shared->due);
	/* epoll_wait() moves events to the ring, without a further call. */
	ASSERT_EQ(0, hwt_add(self->fd, 0, MSEC, 6, NULL));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	EXPECT_TRUE(ring_pop(&self->ring, &event));
	EXPECT_EQ(6ULL, event.user_data);
}

TEST_HARNESS_MAIN
