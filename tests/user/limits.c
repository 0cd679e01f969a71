// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits: timeouts of a context, pending timeouts of a private wheel, memory of a cgroup.
 *
 * hwt-test: load max_timeouts=200000
 * hwt-test: long
 * hwt-test: timeout 180
 */
#include "kselftest_harness.h"
#include <signal.h>
#include <sys/stat.h>

#include "hwt_dev.h"

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

TEST_F_TIMEOUT(ctx, max_timeouts, 150)
{
	struct hwt_stats_args stats;
	struct hwt_info_args info;
	struct hwt_event event;
	__u64 id[2], i;
	int other;

	ASSERT_EQ(0, hwt_info(self->fd, &info));
	ASSERT_EQ(200000ULL, info.max_timeouts);
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, &id[0]));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, &id[1]));
	for (i = 2; i < info.max_timeouts; i++)
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add(self->fd, 0, HOUR, 0, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, 0, 1, 0, NULL));
	ASSERT_EQ(0, hwt_stats(self->fd, &stats));
	EXPECT_EQ(info.max_timeouts, stats.timeouts);
	EXPECT_EQ(info.max_timeouts, stats.scheduled);
	EXPECT_EQ(2ULL, stats.rejected);
	/* What is there can be moved. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id[0], 0, HOUR));

	/* A cancel makes room for one; */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id[0]));
	EXPECT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add(self->fd, 0, HOUR, 0, NULL));

	/* an expiry not until the event was read. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id[1], 0, 0));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	EXPECT_EQ(-EAGAIN, hwt_add(self->fd, 0, HOUR, 0, NULL));
	ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
	EXPECT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add(self->fd, 0, HOUR, 0, NULL));

	/* Another context has a limit of its own. */
	other = hwt_open(0);
	ASSERT_LE(0, other);
	EXPECT_EQ(0, hwt_add(other, 0, HOUR, 0, NULL));
	close(other);
}

/* Netty: maxPendingTimeouts of 2 refuses the third. */
TEST_F(ctx, max_pending)
{
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.clock = CLOCK_MONOTONIC,
		.max_pending = 2,
	};
	struct hwt_stats_args stats;
	struct hwt_info_args info;
	struct hwt_get_args get;
	struct hwt_event event;
	__u64 id[3], fourth = 0;

	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_SETUP, &setup));
	ASSERT_EQ(0, hwt_info(self->fd, &info));
	EXPECT_EQ(2ULL, info.max_pending);
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, &id[0]));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 1, &id[1]));
	EXPECT_EQ(-EAGAIN, hwt_add(self->fd, 0, HOUR, 2, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, 0, 1, 0, NULL));
	ASSERT_EQ(0, hwt_stats(self->fd, &stats));
	EXPECT_EQ(2ULL, stats.timeouts);
	EXPECT_EQ(2ULL, stats.rejected);
	/* The pending ones can be moved. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id[0], 0, 2 * HOUR));

	/* Again after a cancel, */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id[0]));
	EXPECT_EQ(0, hwt_add(self->fd, 0, HOUR, 2, &id[2]));
	EXPECT_EQ(-EAGAIN, hwt_add(self->fd, 0, HOUR, 3, NULL));

	/* and after an expiry, read or not: it is not pending any more. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id[1], 0, 0));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	EXPECT_EQ(0, hwt_add(self->fd, 0, HOUR, 4, &fourth));
	EXPECT_EQ(-EAGAIN, hwt_add(self->fd, 0, HOUR, 5, NULL));

	/* To be pending again it needs room; refused, it keeps its event. */
	EXPECT_EQ(-EAGAIN, hwt_move(self->fd, id[1], 0, HOUR));
	ASSERT_EQ(0, hwt_get(self->fd, id[1], &get));
	EXPECT_EQ((__u32)HWT_STATE_EVENT, get.state);
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, fourth));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_move(self->fd, id[1], 0, 0));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(id[1], event.id);
	EXPECT_EQ(1, hwt_stop(self->fd));
}

/* Pending is exact when cancels race with the tick in which they are due. */
TEST_F(ctx, max_pending_stays_exact)
{
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.clock = CLOCK_MONOTONIC,
		.max_pending = 10,
	};
	struct hwt_event event[10];
	__u64 id[10], deadline;
	int round, i, ret;

	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_SETUP, &setup));
	for (round = 0; round < 100; round++) {
		deadline = now_ns() / MSEC * MSEC + 2 * MSEC;
		for (i = 0; i < 10; i++)
			ASSERT_EQ(0, hwt_add(self->fd, HWT_ABSOLUTE, deadline, i, &id[i]));
		while (now_ns() + 100 * USEC < deadline + round % 20 * 10 * USEC)
			;
		for (i = 0; i < 10; i++) {
			ret = hwt_del(self->fd, id[i]);
			ASSERT_TRUE(ret == HWT_STATE_PENDING || ret == HWT_STATE_EVENT);
		}
		ASSERT_EQ(-EAGAIN, hwt_read(self->fd, event, 10));
	}
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add(self->fd, 0, HOUR, 0, NULL));
}

/* -- Memory -------------------------------------------------------------- */

#define CGROUP		"/sys/fs/cgroup"
#define GROUP		CGROUP "/hwt-limits"
#define GROUP_MAX	(16UL << 20)

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* The value behind a word in a file of such lines; -1 if it is not there. */
static long read_word(const char *path, const char *word)
{
	FILE *file = fopen(path, "r");
	char name[64];
	long value = -1, n;

	while (file && fscanf(file, "%63s %ld", name, &n) == 2)
		if (!strcmp(name, word))
			value = n;
	if (file)
		fclose(file);
	return value;
}

/* What the child tells. In memory that both have touched: at the limit it is dear. */
struct told {
	int error;
	unsigned int made;
	unsigned int listed;
	int error_again;
	bool done;
};

static void use_up_memory(volatile struct told *told)
{
	struct hwt_stats_args stats;
	int fd, other, ret, i;

	if (!write_file(GROUP "/cgroup.procs", "0"))
		return;
	fd = hwt_open(O_NONBLOCK);
	other = hwt_open(O_NONBLOCK);
	if (fd < 0 || other < 0)
		return;
	/* Warm everything up first. */
	hwt_stats(fd, &stats);
	do {
		ret = hwt_add(fd, 0, HOUR, 0, NULL);
		if (!ret)
			told->made++;
	} while (!ret);
	told->error = ret;
	hwt_stats(fd, &stats);
	told->listed = stats.timeouts;
	close(fd);
	/* They are let go soon, and then there is memory again. */
	for (i = 0; i < 100; i++) {
		told->error_again = hwt_add(other, 0, HOUR, 0, NULL);
		if (!told->error_again)
			break;
		sleep_ns(100 * MSEC);
	}
	told->done = true;
}

/* ENOMEM, and nobody is killed for it. */
TEST_F_TIMEOUT(ctx, memory_cgroup, 150)
{
	volatile struct told *told;
	char text[32];
	int status;
	pid_t pid;

	if (!write_file(CGROUP "/cgroup.subtree_control", "+memory"))
		SKIP(return, "no memory controller in " CGROUP);
	rmdir(GROUP);
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	snprintf(text, sizeof(text), "%lu", GROUP_MAX);
	ASSERT_TRUE(write_file(GROUP "/memory.max", text));
	told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)told);
	told->done = false;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		use_up_memory(told);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_TRUE(told->done);
	EXPECT_EQ(-ENOMEM, told->error);
	TH_LOG("%u timeouts in %lu bytes", told->made, GROUP_MAX);
	EXPECT_LT(10000U, told->made);
	EXPECT_EQ(told->made, told->listed);
	EXPECT_EQ(0, told->error_again);
	EXPECT_LT(0, read_word(GROUP "/memory.events", "max"));
	EXPECT_EQ(0, read_word(GROUP "/memory.events", "oom"));
	EXPECT_EQ(0, read_word(GROUP "/memory.events", "oom_kill"));
	EXPECT_EQ(0, rmdir(GROUP));
	/* Others have not noticed. */
	EXPECT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
}

TEST_HARNESS_MAIN
