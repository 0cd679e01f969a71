// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls on one context that race: HWT_IOC_SETUP with a schedule and with debugfs, HWT_IOC_ENTER
 * with another task that takes the events, read() with the mapping of rings.
 *
 * hwt-test: timeout 120
 */
#include "kselftest_harness.h"
#include <dirent.h>
#include <pthread.h>

#include "fixtures.h"

#define CONTEXTS	"/sys/kernel/debug/hwt/contexts"

struct task {
	pthread_t thread;
	pthread_barrier_t start;
	struct ring *ring;
	__u64 delay_ns;
	int fd;
	long ret;
	bool end;
};

static bool task_start(struct task *task, void *(*run)(void *))
{
	return !pthread_barrier_init(&task->start, NULL, 2) &&
	       !pthread_create(&task->thread, NULL, run, task);
}

static long task_end(struct task *task)
{
	__atomic_store_n(&task->end, true, __ATOMIC_RELAXED);
	pthread_join(task->thread, NULL);
	pthread_barrier_destroy(&task->start);
	return task->ret;
}

/* Add to the task's counter, which only the task writes. */
static void task_count(struct task *task, long more)
{
	__atomic_store_n(&task->ret, task->ret + more, __ATOMIC_RELAXED);
}

static long task_counted(const struct task *task)
{
	return __atomic_load_n(&task->ret, __ATOMIC_RELAXED);
}

static bool task_ends(const struct task *task)
{
	return __atomic_load_n(&task->end, __ATOMIC_RELAXED);
}

/* Rounds are limited by time, since destroying a wheel takes some grace periods. */
static __u64 rounds_end(void)
{
	return now_ns() + (quick() ? 2 : 8) * SEC;
}

/* -- SETUP --------------------------------------------------------------- */

static void *add_run(void *arg)
{
	struct task *task = arg;

	pthread_barrier_wait(&task->start);
	sleep_ns(task->delay_ns);
	task->ret = hwt_add(task->fd, 0, 0, 77, NULL);
	return NULL;
}

/* The timeout is on the context's final wheel, and no wheel with a timeout is destroyed. */
TEST(setup_races_with_schedule)
{
	int rounds, ret, done = 0;
	__u64 end = rounds_end(), begin, took = 0;
	struct hwt_event event;
	struct task task = {};

	for (rounds = 0; now_ns() < end; rounds++) {
		task.fd = hwt_open(O_NONBLOCK);
		ASSERT_LE(0, task.fd);
		/* Vary the delay, to meet the end of SETUP, where it takes effect. */
		task.delay_ns = took * (rounds % 8) / 5;
		ASSERT_TRUE(task_start(&task, add_run));
		pthread_barrier_wait(&task.start);
		begin = now_ns();
		ret = hwt_setup(task.fd, CLOCK_MONOTONIC, 0);
		took = now_ns() - begin;
		ASSERT_EQ(0, task_end(&task));
		ASSERT_TRUE(!ret || ret == -EBUSY);
		done += !ret;
		ASSERT_EQ(1, hwt_next(task.fd, &event));
		ASSERT_EQ(77ULL, event.user_data);
		/* One timeout: not counted twice, and none left. */
		ASSERT_TRUE(stats_are(task.fd, .scheduled = 1, .expired = 1, .read = 1));
		ASSERT_EQ(0, close(task.fd));
	}
	printf("# %d of %d were set up\n", done, rounds);
}

/* Return the number of contexts that debugfs shows. */
static long read_contexts(void)
{
	FILE *file = fopen(CONTEXTS, "r");
	char line[200];
	long lines = 0;

	while (file && fgets(line, sizeof(line), file))
		lines += !strncmp(line, "clockid ", strlen("clockid "));
	if (file)
		fclose(file);
	return lines;
}

static void *debugfs_run(void *arg)
{
	struct task *task = arg;

	while (!task_ends(task))
		task_count(task, read_contexts());
	return NULL;
}

/* A context is created, set up and closed while another task reads the file of all contexts. */
TEST(setup_races_with_debugfs)
{
	__u64 end = rounds_end();
	struct task task = {};
	int fd;

	if (access(CONTEXTS, R_OK))
		SKIP(return, "no debugfs");
	ASSERT_TRUE(task_start(&task, debugfs_run));
	while (now_ns() < end) {
		fd = hwt_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, hwt_setup(fd, CLOCK_MONOTONIC, 0));
		ASSERT_EQ(0, close(fd));
	}
	fd = hwt_open(O_NONBLOCK);
	EXPECT_TRUE(until(task_counted(&task) > 0));
	task_end(&task);
	EXPECT_EQ(0, close(fd));
}

/* -- ENTER --------------------------------------------------------------- */

static void *pop_run(void *arg)
{
	struct task *task = arg;
	struct hwt_event event;

	while (!task_ends(task))
		task_count(task, ring_pop(task->ring, &event));
	return NULL;
}

/* Another task may take the event before the waiter looks. */
TEST_F(rings, enter_races_with_taker)
{
	struct task task = { .ring = &self->ring };
	__u64 end = rounds_end();
	int rounds;

	ASSERT_TRUE(task_start(&task, pop_run));
	for (rounds = 0; now_ns() < end; rounds++) {
		struct hwt_enter_args args = {
			.size = sizeof(args),
			.wait = 1,
			.timeout_ns = 2 * MSEC,
		};

		ASSERT_EQ(0, hwt_add(self->fd, 0, 0, rounds, NULL));
		ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_ENTER, &args));
		ASSERT_TRUE(!args.result || args.result == -ETIME);
	}
	EXPECT_TRUE(until(!ring_enter(&self->ring, 0, 0, 0) && task_counted(&task) == rounds));
	EXPECT_EQ(rounds, task_end(&task));
}

static void *read_run(void *arg)
{
	struct task *task = arg;
	struct hwt_event event;

	pthread_barrier_wait(&task->start);
	task->ret = hwt_read(task->fd, &event, 1);
	return NULL;
}

/* read() returns the event, or EBUSY if the rings came first, and does not wait. */
TEST_F(ctx, read_races_with_rings)
{
	int rounds, ret, busy = 0;
	__u64 end = rounds_end();
	struct hwt_rings_args args;
	struct task task = {};
	struct ring ring;

	for (rounds = 0; now_ns() < end; rounds++) {
		task.fd = hwt_open(0);
		ASSERT_LE(0, task.fd);
		ASSERT_EQ(0, hwt_rings(task.fd, 0, ENTRIES, ENTRIES, &args));
		ASSERT_EQ(0, hwt_add(task.fd, 0, 0, rounds, NULL));
		ASSERT_EQ(POLLIN, hwt_wait(task.fd, PATIENCE_MS));
		ASSERT_TRUE(task_start(&task, read_run));
		pthread_barrier_wait(&task.start);
		ASSERT_EQ(0, ring_map(&ring, task.fd, &args));
		ret = task_end(&task);
		ASSERT_TRUE(ret == 1 || ret == -EBUSY);
		busy += ret == -EBUSY;
		ring_unmap(&ring);
		ASSERT_EQ(0, close(task.fd));
	}
	printf("# %d of %d readers found rings\n", busy, rounds);
}

TEST_HARNESS_MAIN
