// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that stop in the middle of a call: on a page fault that nobody handles, in a frozen cgroup,
 * without CPU time. Other tasks use the context meanwhile.
 *
 * hwt-test: timeout 150
 */
#include "kselftest_harness.h"
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "fixtures.h"
#include "guest.h"
#include "process.h"

struct reader {
	pthread_t thread;
	int fd;
	struct hwt_event *event;
};

static void *reader_run(void *arg)
{
	struct reader *reader = arg;

	return (void *)(long)hwt_read(reader->fd, reader->event, 1);
}

/* While a reader's page is absent, another reader gets its event. It reads the next one then. */
TEST_F(ctx, fault_that_is_not_handled)
{
	struct reader reader = { .fd = self->fd };
	long page = sysconf(_SC_PAGESIZE);
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage zero = { };
	struct hwt_event event;
	void *result;
	__u64 id;

	if (uffd < 0)
		SKIP(return, "no userfaultfd");
	reader.event = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)reader.event);
	range.range.start = (unsigned long)reader.event;
	range.range.len = page;
	zero.range = range.range;
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_API, &api));
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_REGISTER, &range));

	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 1, NULL));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, reader_run, &reader));
	ASSERT_EQ(POLLIN, hwt_wait(uffd, PATIENCE_MS));
	EXPECT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(1ULL, event.user_data);
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 2, &id));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id));
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 3, NULL));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_ZEROPAGE, &zero));
	ASSERT_EQ(0, pthread_join(reader.thread, &result));
	EXPECT_EQ(1L, (long)result);
	EXPECT_EQ(3ULL, reader.event->user_data);
	munmap(reader.event, page);
	close(uffd);
}

#define GROUP	CGROUP "/hwt-frozen"

/* Enter the group, and wait for the event 5. Return 0 if it comes. */
static int frozen_child(int fd)
{
	struct hwt_event event;

	if (!write_text(GROUP "/cgroup.procs", "0"))
		return 1;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	if (hwt_add(fd, 0, HOUR, 4, NULL))
		return 2;
	return hwt_read(fd, &event, 1) == 1 && event.user_data == 5 ? 0 : 3;
}

/* A reader in a frozen group stops nobody, and reads on after the thaw. */
TEST_F(ctx, frozen)
{
	struct hwt_stats_args stats;
	struct hwt_event event;
	pid_t child;

	ASSERT_TRUE(make_group(GROUP, "max"));
	child = fork();
	if (!child)
		_exit(frozen_child(self->fd));
	/* The child has scheduled its timeout, and waits in read(). */
	ASSERT_TRUE(until(!hwt_stats(self->fd, &stats) && stats.pending == 1));
	sleep_ns(50 * MSEC);
	ASSERT_TRUE(write_text(GROUP "/cgroup.freeze", "1"));
	ASSERT_TRUE(until(file_has(GROUP "/cgroup.events", "frozen 1")));
	ASSERT_EQ(0, hwt_add(self->fd, 0, 20 * MSEC, 6, NULL));
	EXPECT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(6ULL, event.user_data);
	ASSERT_EQ(0, hwt_add(self->fd, 0, 20 * MSEC, 5, NULL));
	sleep_ns(50 * MSEC);
	ASSERT_TRUE(write_text(GROUP "/cgroup.freeze", "0"));
	EXPECT_EQ(0, child_end(child));
	rmdir(GROUP);
}

static bool over;

/* With the lowest priority, change the context all the time. */
static void *idle_run(void *arg)
{
	struct sched_param param = { };
	int fd = *(int *)arg;
	__u64 id;

	if (!stay_on_cpu(0) || sched_setscheduler(0, SCHED_IDLE, &param))
		return arg;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		if (hwt_add(fd, 0, HOUR, 0, &id) || hwt_del(fd, id) != HWT_STATE_PENDING)
			return arg;
	return NULL;
}

static void *spin_run(void *arg)
{
	if (!stay_on_cpu(0))
		return arg;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* A real-time task does not wait for a task of SCHED_IDLE that has lost its CPU in a call. */
TEST_F_TIMEOUT(ctx, without_cpu_time, 60)
{
	struct sched_param param = { .sched_priority = 1 };
	pthread_t idle, spin;
	struct hwt_event event;
	void *result;
	int i;

	ASSERT_EQ(0, pthread_create(&idle, NULL, idle_run, &self->fd));
	ASSERT_EQ(0, pthread_create(&spin, NULL, spin_run, &self->fd));
	ASSERT_TRUE(stay_on_cpu(0));
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &param));
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, hwt_add(self->fd, 0, 3 * MSEC, 1, NULL));
		ASSERT_EQ(1, hwt_next(self->fd, &event));
	}
	param.sched_priority = 0;
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_OTHER, &param));
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(idle, &result));
	EXPECT_EQ(NULL, result);
	ASSERT_EQ(0, pthread_join(spin, &result));
	EXPECT_EQ(NULL, result);
}

TEST_HARNESS_MAIN
