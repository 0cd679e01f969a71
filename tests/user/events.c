// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading events: read, readv, O_NONBLOCK, signals, bad buffers, several readers.
 *
 * hwt-test: shared
 * hwt-test: timeout 400
 */
#include "kselftest_harness.h"
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "fixtures.h"

#define EVENT	((ssize_t)sizeof(struct hwt_event))

static void set_blocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

TEST_F(ctx, nowait_reads_what_is_there)
{
	struct hwt_event event;
	struct iovec iov = { .iov_base = &event, .iov_len = sizeof(event) };

	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	EXPECT_EQ(0, hwt_wait(self->fd, 0));
	set_blocking(self->fd);
	EXPECT_TRUE(preadv2(self->fd, &iov, 1, -1, RWF_NOWAIT) < 0 && errno == EAGAIN);
	ASSERT_TRUE(hwt_fire(self->fd, 1));
	EXPECT_EQ(EVENT, preadv2(self->fd, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_TRUE(preadv2(self->fd, &iov, 1, -1, RWF_NOWAIT) < 0 && errno == EAGAIN);
}

/* For AIO, a kernel thread polls if a wake-up does not say for what. */
TEST_F(ctx, aio_polls)
{
	struct iocb request = { .aio_fildes = self->fd, .aio_lio_opcode = IOCB_CMD_POLL,
				.aio_buf = POLLIN }, *list = &request;
	struct hwt_event event;
	aio_context_t aio = 0;
	struct io_event done;

	if (syscall(__NR_io_setup, 1, &aio))
		SKIP(return, "this kernel has no AIO");
	ASSERT_EQ(1, syscall(__NR_io_submit, aio, 1, &list));
	ASSERT_EQ(0, hwt_add(self->fd, 0, 20 * MSEC, 7, NULL));
	EXPECT_EQ(1, syscall(__NR_io_getevents, aio, 1, 1, &done, NULL));
	EXPECT_TRUE(done.res & POLLIN);
	EXPECT_EQ(1, hwt_next(self->fd, &event));
	syscall(__NR_io_destroy, aio);
}

TEST_F(ctx, buffer_below_one_event)
{
	char buf[sizeof(struct hwt_event)];

	EXPECT_TRUE(read(self->fd, buf, 0) < 0 && errno == EINVAL);
	ASSERT_TRUE(hwt_fire(self->fd, 1));
	EXPECT_TRUE(read(self->fd, buf, 0) < 0 && errno == EINVAL);
	EXPECT_TRUE(read(self->fd, buf, EVENT - 1) < 0 && errno == EINVAL);
	EXPECT_EQ(EVENT, read(self->fd, buf, EVENT));
}

/* A read returns as many events as fit, in their order. readv() can split an event. */
TEST_F(ctx, as_many_as_fit)
{
	struct hwt_event events[8];
	char *p = (char *)&events[3];
	struct iovec iov[3] = {
		{ .iov_base = p, .iov_len = 20 },
		{ .iov_base = p + 20, .iov_len = 60 },
		{ .iov_base = p + 80, .iov_len = 48 },
	};
	unsigned int i;

	ASSERT_TRUE(hwt_fire(self->fd, 6));
	memset(events, 0xff, sizeof(events));
	EXPECT_EQ(3 * EVENT, read(self->fd, events, 3 * EVENT + EVENT / 2));
	EXPECT_EQ(HWT_NEVER, events[3].id);
	ASSERT_EQ(2 * EVENT, readv(self->fd, iov, 3));
	EXPECT_EQ(1, hwt_read(self->fd, events + 5, 3));
	for (i = 0; i < 6; i++) {
		EXPECT_EQ((__u64)i, events[i].user_data);
		EXPECT_EQ((__u32)HWT_EVENT_LAST, events[i].flags);
	}
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, events, 8));
}

/* A signal ends or restarts a waiting read. If an event is there, the read ignores the signal. */
TEST_F(ctx, signals)
{
	__u64 due = now_ns() + 200 * MSEC;
	struct hwt_event event;
	sigset_t usr1, old;

	set_blocking(self->fd);
	ASSERT_EQ(0, alarm_every(20000, 0));
	EXPECT_EQ(-EINTR, hwt_read(self->fd, &event, 1));
	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, due, 9, NULL));
	alarms = 0;
	ASSERT_EQ(0, alarm_every(20000, SA_RESTART));
	EXPECT_EQ(1, hwt_read(self->fd, &event, 1));
	ASSERT_EQ(0, alarm_every(0, 0));
	EXPECT_LE(due, now_ns());
	EXPECT_EQ(9ULL, event.user_data);
	EXPECT_LT(0, alarms);

	ASSERT_TRUE(hwt_fire(self->fd, 1));
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, &old);
	raise(SIGUSR1);
	EXPECT_EQ(1, hwt_read(self->fd, &event, 1));
	signal(SIGUSR1, SIG_IGN);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* A signal ends a large read early; the next read returns the rest. */
TEST_F_TIMEOUT(ctx, signal_half_way, 300)
{
	const unsigned int count = 20000;
	struct hwt_event *events = calloc(count, EVENT);
	unsigned int i, total = 0, reads = 0;
	struct timespec shortest;
	__u64 sum = 0;
	ssize_t n;

	ASSERT_NE(NULL, events);
	ASSERT_TRUE(hwt_fire(self->fd, count));
	ASSERT_EQ(0, alarm_every(500, SA_RESTART));
	do {
		n = read(self->fd, events, count * EVENT);
		for (i = 0; n > 0 && i < (size_t)n / EVENT; i++)
			sum += events[i].user_data;
		total += n > 0 ? n / EVENT : 0;
		reads++;
	} while (n > 0 && total < count);
	ASSERT_EQ(0, alarm_every(0, 0));
	EXPECT_EQ(count, total);
	EXPECT_EQ((__u64)count * (count - 1) / 2, sum);
	/* Without high-resolution timers, one read may be over before the first signal. */
	ASSERT_EQ(0, clock_getres(CLOCK_MONOTONIC, &shortest));
	EXPECT_TRUE(reads > 1 || shortest.tv_nsec > 1);
}

/* A read faults absent pages in: new ones, and ones shared with a parent. */
TEST_F(ctx, absent_pages_are_brought_in)
{
	long page = sysconf(_SC_PAGESIZE);
	struct hwt_event *events;
	int i;

	events = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)events);
	ASSERT_TRUE(hwt_fire(self->fd, 8 * page / EVENT));
	ASSERT_EQ((int)(4 * page / EVENT), hwt_read(self->fd, events, 4 * page / EVENT));
	for (i = 0; i < 4 * page / EVENT; i++)
		ASSERT_EQ((__u64)i, events[i].user_data);
	EXPECT_EQ(0, IN_CHILD(hwt_read(self->fd, events, 4 * page / EVENT) !=
			      (int)(4 * page / EVENT)));
	/* The child's read wrote to the child's copy. */
	EXPECT_EQ(0ULL, events[0].user_data);
	munmap(events, 8 * page);
}

#define READERS	4

struct reader {
	pthread_t thread;
	int fd;
	unsigned int per_read;
	unsigned int total;
	__u64 sum;		/* of the data */
	int end;
};

static void *reader_run(void *arg)
{
	struct reader *reader = arg;
	struct hwt_event events[16];
	int i;

	while ((reader->end = hwt_read(reader->fd, events, reader->per_read)) > 0) {
		reader->total += reader->end;
		for (i = 0; i < reader->end; i++)
			reader->sum += events[i].user_data;
	}
	return NULL;
}

/* Each event goes to exactly one reader, and each reader wakes up. */
TEST_F_TIMEOUT(ctx, several_readers, 60)
{
	unsigned int total = quick() ? 2000 : 10000, read = 0, i;
	struct reader readers[READERS];
	struct ring ring;
	__u64 sum = 0;

	set_blocking(self->fd);
	for (i = 0; i < READERS; i++) {
		readers[i] = (struct reader) { .fd = self->fd, .per_read = i ? 16 : 1 };
		ASSERT_EQ(0, pthread_create(&readers[i].thread, NULL, reader_run,
					    &readers[i]));
	}
	for (i = 0; i < total; i++)
		ASSERT_EQ(0, hwt_add(self->fd, 0, i % 64 * MSEC, i, NULL));
	EXPECT_TRUE(until(hwt_now(self->fd).read == total));
	/* Rings wake all readers. */
	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, 1, 1));
	for (i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		EXPECT_EQ(-EBUSY, readers[i].end);
		read += readers[i].total;
		sum += readers[i].sum;
	}
	ring_unmap(&ring);
	EXPECT_EQ(total, read);
	EXPECT_EQ((__u64)total * (total - 1) / 2, sum);
}

TEST_HARNESS_MAIN
