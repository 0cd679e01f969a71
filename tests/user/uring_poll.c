// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring without hwt's commands, on any kernel: polls, reads, and their end with the ring. For
 * polling beside the device's own rings, see epoll_edge in rings_wait.c.
 *
 * hwt-test: only stock rt debug stock612 cloud rt612 kcsan debug612 rtdebug newest clang
 * hwt-test: libs uring
 * hwt-test: shared
 */
#include "kselftest_harness.h"
#include <liburing.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "hwt_ring.h"

#define ENTRIES	64

FIXTURE(ring) {
	struct io_uring ring;
	int fd;
};

FIXTURE_SETUP(ring)
{
	self->fd = hwt_open(0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring, 0));
}

FIXTURE_TEARDOWN(ring)
{
	io_uring_queue_exit(&self->ring);
	close(self->fd);
}

struct completion {
	__u64 user_data;
	int res;
};

/* Wait for a completion. Its result is -ETIME if none comes. */
static struct completion reap(struct io_uring *ring)
{
	struct __kernel_timespec patience = { .tv_sec = PATIENCE_MS / 1000 };
	struct completion result = { .res = -ETIME };
	struct io_uring_cqe *cqe;

	if (!io_uring_wait_cqe_timeout(ring, &cqe, &patience)) {
		result = (struct completion) { cqe->user_data, cqe->res };
		io_uring_cqe_seen(ring, cqe);
	}
	return result;
}

static int submit_poll(struct io_uring *ring, int fd, __u64 data, bool once)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (once)
		io_uring_prep_poll_add(sqe, fd, POLLIN);
	else
		io_uring_prep_poll_multishot(sqe, fd, POLLIN);
	io_uring_sqe_set_data64(sqe, data);
	return io_uring_submit(ring);
}

static int submit_read(struct io_uring *ring, int fd, void *buffer, size_t size, __u64 data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_read(sqe, fd, buffer, size, 0);
	io_uring_sqe_set_data64(sqe, data);
	return io_uring_submit(ring);
}

static int read_now(struct io_uring *ring, int fd, void *buffer, size_t size)
{
	return submit_read(ring, fd, buffer, size, 0) == 1 ? reap(ring).res : -EIO;
}

TEST_F(ring, poll_completes_when_an_event_comes)
{
	__u64 due = now_ns() + 50 * MSEC, id;
	struct completion cqe;
	struct hwt_event event;
	int i;

	ASSERT_EQ(1, submit_poll(&self->ring, self->fd, 1, true));
	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, due, 7, &id));
	cqe = reap(&self->ring);
	EXPECT_LE(due, now_ns());
	EXPECT_EQ(1, cqe.user_data);
	EXPECT_EQ(POLLIN, cqe.res);
	/* A poll completes at once if an event is there. */
	ASSERT_EQ(1, submit_poll(&self->ring, self->fd, 2, true));
	EXPECT_EQ(POLLIN, reap(&self->ring).res);
	ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(7, event.user_data);
	/* A multishot poll completes for each event. */
	ASSERT_EQ(1, submit_poll(&self->ring, self->fd, 3, false));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, hwt_add(self->fd, 0, 0, i, NULL));
		EXPECT_EQ(3, reap(&self->ring).user_data);
		ASSERT_EQ(1, hwt_next(self->fd, &event));
	}
}

/* A failed or cancelled read takes no event. For sizes and RWF_NOWAIT, see events.c. */
TEST_F(ring, read_that_fails)
{
	struct hwt_event event = {}, other;
	struct io_uring_sqe *sqe;
	struct completion cqe;
	int i;

	ASSERT_EQ(1, submit_read(&self->ring, self->fd, &event, sizeof(event), 6));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 6, 0);
	io_uring_sqe_set_data64(sqe, 60);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		cqe = reap(&self->ring);
		EXPECT_EQ(cqe.user_data == 6 ? -ECANCELED : 0, cqe.res);
	}
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 9, NULL));
	ASSERT_TRUE(hwt_wait(self->fd, PATIENCE_MS) & POLLIN);
	EXPECT_EQ(-EFAULT, read_now(&self->ring, self->fd, NULL, sizeof(event)));
	ASSERT_EQ(1, hwt_next(self->fd, &other));
	EXPECT_EQ(9, other.user_data);
	EXPECT_EQ(0, event.id);
}

/*
 * Each event completes one of the waiting reads, also if it comes between two looks of a read, and
 * other task work of io_uring is pending. Requests that are left end with the ring and the process;
 * otherwise the module could not be unloaded after this test.
 */
TEST_F(ring, many_reads_wait)
{
	struct hwt_event events[ENTRIES] = {};
	struct completion cqe;
	int round, i;
	__u64 seen;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < ENTRIES; i++)
			ASSERT_EQ(1, submit_read(&self->ring, self->fd, &events[i],
						 sizeof(events[i]), i));
		for (i = 0; i < ENTRIES; i++)
			ASSERT_EQ(0, hwt_add(self->fd, 0, round ? i * 30000ULL : i % 4 * 10 * MSEC,
					     i, NULL));
		for (seen = 0, i = 0; i < ENTRIES; i++) {
			cqe = reap(&self->ring);
			ASSERT_EQ((int)sizeof(events[0]), cqe.res);
			ASSERT_GT(ENTRIES, events[cqe.user_data].user_data);
			seen |= 1ULL << events[cqe.user_data].user_data;
		}
		ASSERT_EQ(~0ULL, seen);
	}
	for (i = 0; i < ENTRIES / 2; i++) {
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, i, NULL));
		ASSERT_EQ(1, submit_poll(&self->ring, self->fd, i, true));
		ASSERT_EQ(1, submit_read(&self->ring, self->fd, &events[i], sizeof(events[i]), i));
	}
}

TEST_F(ring, read_waits_for_an_event)
{
	static const struct {
		int		file_flags;
		unsigned int	sqe_flags;
		bool		registered;	/* the buffer is registered */
	} kinds[] = {
		{ 0, 0, false },
		/* io_uring waits in spite of O_NONBLOCK. */
		{ O_NONBLOCK, 0, false },
		{ 0, IOSQE_ASYNC, false },
		{ 0, 0, true },
	};
	struct hwt_event events[2];
	struct iovec buffer = { .iov_base = events, .iov_len = sizeof(events) };
	struct io_uring_sqe *sqe;
	struct completion cqe;
	unsigned int i;
	__u64 id;

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &buffer, 1));
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		memset(events, 0, sizeof(events));
		ASSERT_EQ(0, fcntl(self->fd, F_SETFL, kinds[i].file_flags));
		sqe = io_uring_get_sqe(&self->ring);
		if (kinds[i].registered)
			io_uring_prep_read_fixed(sqe, self->fd, events, sizeof(events), 0, 0);
		else
			io_uring_prep_read(sqe, self->fd, events, sizeof(events), 0);
		sqe->flags |= kinds[i].sqe_flags;
		sqe->user_data = i;
		ASSERT_EQ(1, io_uring_submit(&self->ring));
		ASSERT_EQ(0, hwt_add(self->fd, 0, 50 * MSEC, 9, &id));
		cqe = reap(&self->ring);
		EXPECT_EQ(i, cqe.user_data);
		EXPECT_EQ((int)sizeof(events[0]), cqe.res)
			TH_LOG("kind %u", i);
		EXPECT_EQ(id, events[0].id);
		EXPECT_EQ(9, events[0].user_data);
	}
}

TEST_F(ring, read_beside_rings_is_refused)
{
	struct hwt_event event;
	struct ring ring;

	ASSERT_EQ(1, submit_read(&self->ring, self->fd, &event, sizeof(event), 1));
	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, 64, 64));
	/* A waiting read fails at the latest when an event comes. */
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 0, NULL));
	EXPECT_EQ(-EBUSY, reap(&self->ring).res);
	EXPECT_TRUE(ring_wait(&ring, 1));
	EXPECT_EQ(-EBUSY, read_now(&self->ring, self->fd, &event, sizeof(event)));
	ring_unmap(&ring);
}

/* Commands require Linux 6.7, where io_uring can cancel them. */
static bool kernel_has_commands(void)
{
	struct utsname name;
	int major, minor;

	if (uname(&name) || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 7);
}

/* HWT_IOC_INFO agrees with the kernel's version. For the commands themselves, see uring.c. */
TEST_F(ring, commands_are_there_or_refused)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
	struct hwt_info_args info;
	bool there;

	ASSERT_EQ(0, hwt_info(self->fd, &info));
	there = info.features & HWT_FEATURE_URING;
	EXPECT_EQ(kernel_has_commands(), there);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = self->fd;
	sqe->cmd_op = HWT_URING_ARM;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	/* -EINVAL: the context has no keys. */
	EXPECT_EQ(there ? -EINVAL : -EOPNOTSUPP, reap(&self->ring).res);
}

TEST_HARNESS_MAIN
