// SPDX-License-Identifier: GPL-2.0-only
/*
 * What no other test of the device comes to: see tests/vm/coverage.
 *
 * hwt-test: load reclaim_ms=10000 max_user_timeouts=0 max_user_wheels=0
 * hwt-test: timeout 150
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "caps.h"
#include "hwt_ring.h"

/* More than a user may have leaving before it has to wait (HWT_LEAVING_MAX). */
#define MANY		102400
#define STEP		1024

FIXTURE(ctx) {
	int fd;
};

FIXTURE_SETUP(ctx)
{
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(ctx)
{
	close(self->fd);
}

static __u64 timeouts(int fd)
{
	struct hwt_stats_args stats;

	return hwt_stats(fd, &stats) ? ~0ULL : stats.timeouts;
}

/*
 * Many are cancelled, and the wheel's thread is in no hurry to let go of them (reclaim_ms): who
 * makes another one has to wait, but not for ever.
 */
TEST_F_TIMEOUT(ctx, after_many_cancels, 140)
{
	static struct hwt_op ops[STEP];
	static __u64 ids[MANY];
	__u64 begin, cancelled, waited;
	unsigned int n, i;

	for (n = 0; n < MANY; n += STEP) {
		for (i = 0; i < STEP; i++)
			ops[i] = op_schedule(HOUR, n + i);
		ASSERT_EQ(STEP, hwt_batch(self->fd, ops, STEP));
		for (i = 0; i < STEP; i++) {
			ASSERT_EQ(0, ops[i].result);
			ids[n + i] = ops[i].id;
		}
	}
	/* The wheel has put all of them in their places. */
	sleep_ns(SEC);
	begin = now_ns();
	for (n = 0; n < MANY; n += STEP) {
		for (i = 0; i < STEP; i++)
			ops[i] = op_cancel(ids[n + i]);
		ASSERT_EQ(STEP, hwt_batch(self->fd, ops, STEP));
		for (i = 0; i < STEP; i++)
			ASSERT_EQ(HWT_STATE_PENDING, ops[i].result);
	}
	EXPECT_EQ(0ULL, timeouts(self->fd));
	cancelled = now_ns();
	EXPECT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
	waited = now_ns() - cancelled;
	TH_LOG("cancelled in %llu ms; the next one took %llu us",
	       (unsigned long long)(cancelled - begin) / MSEC, (unsigned long long)waited / USEC);
	/* That it takes long is not to be had always: the thread may come by on its own. flood.c
	 * shows that there is a limit.
	 */
	for (i = 1; i < 10; i++)
		EXPECT_EQ(0, hwt_add(self->fd, 0, HOUR, i, NULL));
	EXPECT_EQ(10ULL, timeouts(self->fd));
}

/* Nothing could be stored: what was made is taken back, what was cancelled is. */
TEST_F(ctx, batch_of_all_kinds_to_read_only_memory)
{
	long page = sysconf(_SC_PAGESIZE);
	struct hwt_op *ops = mmap(NULL, page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 kept, gone;

	ASSERT_NE(MAP_FAILED, (void *)ops);
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 1, &kept));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 2, &gone));
	ops[0] = op_get(kept);
	ops[1] = op_schedule(HOUR, 3);
	ops[2] = op_schedule(HOUR, 4);
	ops[2].period_ns = SEC;		/* a one-shot has none */
	ops[3] = op_modify(kept, 2 * HOUR);
	ops[4] = op_cancel(gone);
	ASSERT_EQ(0, mprotect(ops, page, PROT_READ));
	EXPECT_EQ(-EFAULT, hwt_batch(self->fd, ops, 5));
	EXPECT_EQ(1ULL, timeouts(self->fd));
	EXPECT_EQ(-ENOENT, hwt_del(self->fd, gone));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, kept));
	munmap(ops, page);
}

TEST_F(ctx, info_with_a_reserved_field)
{
	struct hwt_info_args args = { .size = sizeof(args), .reserved2 = 1 };

	EXPECT_EQ(-EINVAL, hwt_call(self->fd, HWT_IOC_INFO, &args));
	args.reserved2 = 0;
	EXPECT_EQ(0, hwt_call(self->fd, HWT_IOC_INFO, &args));
}

/* A thread of a priority, on any CPU. */
TEST_F(ctx, priority_on_any_cpu)
{
	struct hwt_setup_args args = { .size = sizeof(args), .clock = CLOCK_MONOTONIC,
				       .priority = HWT_SETUP_FIFO_LOW };
	struct hwt_event event;

	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_SETUP, &args));
	ASSERT_EQ(0, hwt_add(self->fd, 0, MSEC, 7, NULL));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(7ULL, event.user_data);
}

/* With no limit, whoever it is may have more than the default of 16. */
TEST(private_wheels_without_limit)
{
	struct hwt_setup_args args = { .size = sizeof(args), .clock = CLOCK_MONOTONIC };
	int fd[20];
	size_t i;

	/* Else there is no limit anyway. */
	ASSERT_EQ(0, set_capability(CAP_SYS_RESOURCE, false));
	for (i = 0; i < 20; i++) {
		fd[i] = hwt_open(O_NONBLOCK);
		ASSERT_LE(0, fd[i]);
	}
	for (i = 0; i < 20; i++)
		EXPECT_EQ(0, hwt_call(fd[i], HWT_IOC_SETUP, &args));
	for (i = 0; i < 20; i++)
		close(fd[i]);
}

/* -- Waiting for another one's operations ---------------------------------- */

static struct ring ring;
static bool over;

static volatile sig_atomic_t alarms;

static void count_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* All of the ring, again and again: operations that are refused. */
static void *submit_all(void *arg)
{
	sigset_t set;

	(void)arg;
	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		__atomic_store_n(&ring.shared->op_tail, ring_op_head(&ring) + ring.op_mask + 1,
				 __ATOMIC_RELEASE);
		ring_enter(&ring, ring.op_mask + 1, 0, 0);
	}
	return NULL;
}

TEST_F_TIMEOUT(ctx, signal_while_another_one_submits, 60)
{
	struct itimerval often = { .it_interval.tv_usec = 20000, .it_value.tv_usec = 20000 };
	__u64 end = now_ns() + 40 * SEC;
	pthread_t thread;
	long ret;

	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, HWT_RING_ENTRIES_MAX, 1));
	signal(SIGALRM, count_alarm);
	over = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, submit_all, NULL));
	setitimer(ITIMER_REAL, &often, NULL);
	do {
		ret = ring_enter(&ring, 1, 0, 0);
	} while (ret != -EINTR && now_ns() < end);
	often = (struct itimerval) { };
	setitimer(ITIMER_REAL, &often, NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	TH_LOG("%d signals", (int)alarms);
	EXPECT_EQ(-EINTR, ret);
	EXPECT_EQ(0ULL, timeouts(self->fd));
	ring_unmap(&ring);
}

TEST_HARNESS_MAIN
