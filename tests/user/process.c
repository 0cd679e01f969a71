// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes and threads: fork, dup, descriptors passed on, close under who waits, many
 * threads on one descriptor, a thousand processes, and clients that are killed.
 *
 * hwt-test: timeout 300
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <signal.h>

#include "context.h"
#include "process.h"

static int use_inherited(int fd, __u64 id)
{
	struct hwt_get_args get;

	if (hwt_get(fd, id, &get) || hwt_add(fd, 0, 50 * MSEC, 2, NULL))
		return 1;
	return hwt_move(fd, id, 0, 2 * HOUR) != HWT_STATE_PENDING;
}

TEST_F(ctx, fork_shares_the_context)
{
	struct hwt_event event;
	struct hwt_get_args get;
	__u64 id;

	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 1, &id));
	EXPECT_EQ(0, IN_CHILD(use_inherited(self->fd, id)));
	/* The child's timeout outlives it. */
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(2ULL, event.user_data);
	EXPECT_NE(id, event.id);
	ASSERT_EQ(0, hwt_get(self->fd, id, &get));
	EXPECT_LT(HOUR, get.remaining_ns);
}

/* Reads until the end of the file. Returns how many events, or a negative error. */
static int read_to_the_end(int fd)
{
	struct hwt_event events[16];
	int total = 0, ret;

	while ((ret = hwt_read(fd, events, 16)) > 0)
		total += ret;
	return ret ? ret : total;
}

/* Parent and child read from the same context: each event goes to one of them. */
TEST(fork_shares_the_events)
{
	int total = quick() ? 500 : 2000, fd = hwt_open(0), mine, theirs = -1, p[2], i, ret;
	pid_t pid;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pipe(p));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		ret = read_to_the_end(fd);
		_exit(write(p[1], &ret, sizeof(ret)) != sizeof(ret));
	}
	for (i = 0; i < total; i++)
		ASSERT_EQ(0, hwt_add(fd, 0, i % 50 * MSEC, i, NULL));
	/* Those that have not fired by then get an event all the same. */
	ASSERT_LE(0, hwt_stop(fd));
	mine = read_to_the_end(fd);
	ASSERT_EQ((ssize_t)sizeof(theirs), read(p[0], &theirs, sizeof(theirs)));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_LE(0, mine);
	EXPECT_LE(0, theirs);
	EXPECT_EQ(total, mine + theirs);
	TH_LOG("%d events were read by the child", theirs);
	close(p[0]);
	close(p[1]);
	close(fd);
}

TEST_F(ctx, dup_is_the_same_context)
{
	struct hwt_event event;
	int copy = dup(self->fd);

	ASSERT_LE(0, copy);
	ASSERT_EQ(0, hwt_add(copy, 0, 20 * MSEC, 1, NULL));
	close(copy);
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(1ULL, event.user_data);
}

static int make_and_send(int sock)
{
	int fd = hwt_open(O_NONBLOCK);

	if (fd < 0 || hwt_add(fd, 0, 50 * MSEC, 77, NULL))
		return 1;
	return send_fd(sock, fd) ? 2 : 0;
}

/* The descriptor goes to another process, and its maker goes away. */
TEST(passed_on)
{
	struct hwt_event event;
	int sock[2], fd, number;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ(0, IN_CHILD(make_and_send(sock[1])));
	fd = receive_fd(sock[0], &number);
	ASSERT_LE(0, fd);
	ASSERT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(77ULL, event.user_data);
	close(fd);
	/* And one that no process ever receives. */
	fd = hwt_open(0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, NULL));
	ASSERT_EQ(0, send_fd(sock[1], fd));
	close(fd);
	close(sock[0]);
	close(sock[1]);
}

/* Both have it from then on, unread events and ids as well. */
static int use_passed(int sock, const __u64 *id)
{
	struct hwt_event event;
	int number, fd = receive_fd(sock, &number);

	if (fd < 0 || hwt_next(fd, &event) != 1 || event.user_data != 1)
		return 1;
	if (hwt_del(fd, id[1]) != HWT_STATE_PENDING || hwt_del(fd, id[0]) != -ENOENT)
		return 2;
	return hwt_add(fd, 0, 0, 3, NULL) ? 3 : 0;
}

TEST_F(ctx, passed_on_and_kept)
{
	struct hwt_get_args get;
	struct hwt_event event;
	int sock[2];
	__u64 id[2];
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 1, &id[0]));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 2, &id[1]));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* It has the one that is sent only. */
		close(self->fd);
		_exit(use_passed(sock[1], id));
	}
	ASSERT_EQ(0, send_fd(sock[0], self->fd));
	EXPECT_EQ(0, child_status(pid));
	EXPECT_EQ(-ENOENT, hwt_get(self->fd, id[1], &get));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(3ULL, event.user_data);
	close(sock[0]);
	close(sock[1]);
}

static void *blocked_reader(void *arg)
{
	struct hwt_event event = { 0 };

	if (hwt_read(*(int *)arg, &event, 1) != 1)
		return NULL;
	return (void *)(uintptr_t)event.user_data;
}

/* A reader keeps the context; closing under it does it no harm. */
TEST(close_under_a_reader)
{
	int fd = hwt_open(0), copy;
	pthread_t thread;
	void *data = NULL;

	ASSERT_LE(0, fd);
	copy = fd;
	ASSERT_EQ(0, hwt_add(fd, 0, 150 * MSEC, 99, NULL));
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 1, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, blocked_reader, &copy));
	sleep_ns(50 * MSEC);
	EXPECT_EQ(0, close(fd));
	ASSERT_EQ(0, pthread_join(thread, &data));
	EXPECT_EQ((uintptr_t)99, (uintptr_t)data);
}

/* A copy is closed while others wait by it: the context is still there, and they wait on. */
TEST_F(ctx, close_of_a_copy_under_a_reader)
{
	int copy = dup(self->fd);
	pthread_t thread;
	void *data = NULL;

	ASSERT_LE(0, copy);
	fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) & ~O_NONBLOCK);
	ASSERT_EQ(0, pthread_create(&thread, NULL, blocked_reader, &copy));
	sleep_ns(50 * MSEC);
	EXPECT_EQ(0, close(copy));
	ASSERT_EQ(0, hwt_add(self->fd, 0, 50 * MSEC, 98, NULL));
	ASSERT_EQ(0, pthread_join(thread, &data));
	EXPECT_EQ((uintptr_t)98, (uintptr_t)data);
}

static void *blocked_enter(void *arg)
{
	return (void *)(intptr_t)ring_enter(arg, 0, 1, HWT_NEVER);
}

/* The same with rings: what waits for an event still gets it. For more see rings.c. */
TEST(close_under_enter)
{
	int fd = hwt_open(0);
	struct ring ring;
	pthread_t thread;
	void *ret = NULL;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ring_make(&ring, fd, 0, 1, 4));
	ASSERT_EQ(0, hwt_add(fd, 0, 150 * MSEC, 99, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, blocked_enter, &ring));
	sleep_ns(50 * MSEC);
	EXPECT_EQ(0, close(fd));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ((intptr_t)0, (intptr_t)ret);
	EXPECT_EQ(1U, ring_unread(&ring));
	ring_unmap(&ring);
}

/* Closing at once, with timeouts in every state, a few hundred times. */
TEST_F(ctx, open_and_close)
{
	int rounds = quick() ? 100 : 500, fd, i, was;
	long stopped;
	__u64 id;

	for (i = 0; i < rounds; i++) {
		fd = hwt_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, hwt_add(fd, 0, 0, 0, NULL));
		ASSERT_EQ(0, hwt_add(fd, 0, MSEC, 0, NULL));
		ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, &id));
		ASSERT_EQ(0, hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, 0, 1000, 0, NULL));
		was = i % 3 ? HWT_STATE_PENDING : hwt_del(fd, id);
		ASSERT_EQ(HWT_STATE_PENDING, was);
		stopped = i % 5 ? 1 : hwt_stop(fd);
		ASSERT_LT(0, stopped);
		if (i % 7 == 0)
			sleep_ns(2 * MSEC);
		ASSERT_EQ(0, close(fd));
	}
}

/* -- Threads on one descriptor ------------------------------------------- */

#define THREADS	4
#define IDS	64

struct worker {
	pthread_t thread;
	__u64 *ids;			/* shared, whoever gets them first */
	__u64 made, cancelled, last;
	int fd;
	int error;			/* the first that is not allowed */
	unsigned int seed;
	unsigned int rounds;
};

static int allow(struct worker *worker, int ret, int allowed)
{
	if (ret < 0 && ret != allowed && !worker->error)
		worker->error = ret;
	return ret;
}

static void worker_read(struct worker *worker)
{
	struct hwt_event events[8];
	int n = allow(worker, hwt_read(worker->fd, events, 8), -EAGAIN);

	while (n > 0)
		worker->last += events[--n].flags & HWT_EVENT_LAST;
}

static void *worker_run(void *arg)
{
	struct worker *worker = arg;
	struct hwt_get_args get;
	unsigned int i, r;
	__u64 *slot, id;
	int ret;

	for (i = 0; i < worker->rounds; i++) {
		r = rand_r(&worker->seed);
		slot = &worker->ids[r / 8 % IDS];
		id = __atomic_load_n(slot, __ATOMIC_RELAXED);
		switch (r % 8) {
		case 0:
		case 1:
			if (!allow(worker, hwt_add(worker->fd, 0, r % 5 * MSEC, r, &id), 0)) {
				worker->made++;
				__atomic_store_n(slot, id, __ATOMIC_RELAXED);
			}
			break;
		case 2:
			ret = hwt_add_periodic(worker->fd, 1 + r / 8 % 2, r % 5 * MSEC,
					       MSEC, r, &id);
			if (!allow(worker, ret, 0)) {
				worker->made++;
				__atomic_store_n(slot, id, __ATOMIC_RELAXED);
			}
			break;
		case 3:
		case 4:
			if (allow(worker, hwt_del(worker->fd, id), -ENOENT) >= 0)
				worker->cancelled++;
			break;
		case 5:
			allow(worker, hwt_move(worker->fd, id, 0, r % 3 * MSEC), -ENOENT);
			break;
		case 6:
			allow(worker, hwt_get(worker->fd, id, &get), -ENOENT);
			break;
		case 7:
			worker_read(worker);
			break;
		}
	}
	return NULL;
}

static __u64 shared_ids[IDS];

/* Let them loose. @rounds: -1 is for ever. */
static int workers_start(struct worker *workers, int fd, unsigned int seed, unsigned int rounds)
{
	int i, ret = 0;

	for (i = 0; i < THREADS && !ret; i++) {
		workers[i] = (struct worker) {
			.fd = fd,
			.seed = seed + i,
			.rounds = rounds,
			.ids = shared_ids,
		};
		ret = pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]);
	}
	return ret;
}

/* Add up what they did, and read what is left after a stop. */
static void workers_end(struct worker *workers, struct worker *sum)
{
	__u64 last;
	int i;

	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		sum->error = sum->error ?: workers[i].error;
		sum->made += workers[i].made;
		sum->cancelled += workers[i].cancelled;
		sum->last += workers[i].last;
	}
	if (hwt_stop(sum->fd) < 0)
		sum->error = -EIO;
	do {
		last = sum->last;
		worker_read(sum);
	} while (last != sum->last);
}

/* Every timeout that was made ends in one way: cancelled, or by a last event. */
TEST_F_TIMEOUT(ctx, threads_on_one_descriptor, 100)
{
	struct worker workers[THREADS], sum = { .fd = self->fd };
	struct hwt_stats_args stats;

	ASSERT_EQ(0, workers_start(workers, self->fd, 12345, quick() ? 5000 : 20000));
	workers_end(workers, &sum);
	EXPECT_EQ(0, sum.error);
	EXPECT_EQ(sum.made, sum.cancelled + sum.last);
	ASSERT_EQ(0, hwt_stats(self->fd, &stats));
	EXPECT_EQ(sum.made, stats.scheduled);
	EXPECT_EQ(sum.cancelled, stats.cancelled);
	EXPECT_EQ(0ULL, stats.timeouts);
	EXPECT_EQ(0ULL, stats.events);
	TH_LOG("%llu made, %llu cancelled, %llu firings, %llu stopped",
	       (unsigned long long)sum.made, (unsigned long long)sum.cancelled,
	       (unsigned long long)stats.expired, (unsigned long long)stats.stopped);
}

/* A stop in the middle of it: from one instant on, nothing more gets in. */
TEST_F_TIMEOUT(ctx, stop_under_threads, 60)
{
	struct worker workers[THREADS], sum = { .fd = self->fd };

	ASSERT_EQ(0, workers_start(workers, self->fd, 54321, quick() ? 5000 : 20000));
	sleep_ns(50 * MSEC);
	EXPECT_LE(0, hwt_stop(self->fd));
	workers_end(workers, &sum);
	EXPECT_TRUE(!sum.error || sum.error == -ESHUTDOWN);
	EXPECT_EQ(sum.made, sum.cancelled + sum.last);
	EXPECT_EQ(POLLIN | POLLHUP, hwt_wait(self->fd, 0));
}

/* -- Many processes ------------------------------------------------------ */

/*
 * One of many: a context of its own, a few timeouts, each read once and none early. One
 * that is to be killed waits for an hour's too.
 */
static int citizen(unsigned int n, bool doomed, int ready, int start)
{
	int fd = hwt_open(0), i, wanted = doomed ? 5 : 4;
	struct hwt_event event;
	__u64 base, seen = 0;
	char byte = 0;

	if (fd < 0 || write(ready, &byte, 1) != 1)
		return 1;
	/* All are there before anybody begins. */
	if (read(start, &byte, 1) != 0)
		return 2;
	base = now_ns();
	for (i = 0; i < 4; i++)
		if (hwt_add(fd, HWT_ABSOLUTE, base + (n * 7 + i * 90) % 400 * MSEC,
			    n * 4 + i, NULL))
			return 3;
	if (hwt_add(fd, 0, HOUR, 0, NULL))
		return 4;
	for (i = 0; i < wanted; i++) {
		if (hwt_read(fd, &event, 1) != 1 || event.user_data / 4 != n)
			return 5;
		if (event.fired_ns < base + (n * 7 + event.user_data % 4 * 90) % 400 * MSEC)
			return 6;
		seen |= 1 << event.user_data % 4;
	}
	return seen == 0xf ? 0 : 7;
}

#define CITIZENS	1000

/* A thousand at once; every tenth is killed in the middle of it, and no other minds. */
TEST_F_TIMEOUT(ctx, a_thousand_processes, 200)
{
	unsigned int count = quick() ? CITIZENS / 10 : CITIZENS, i;
	static pid_t pid[CITIZENS];
	int ready[2], start[2], status;
	struct hwt_event event;
	char byte;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(start));
	for (i = 0; i < count; i++) {
		pid[i] = fork();
		ASSERT_LE(0, pid[i]);
		if (!pid[i]) {
			close(start[1]);
			close(self->fd);
			_exit(citizen(i, i % 10 == 0, ready[1], start[0]));
		}
	}
	for (i = 0; i < count; i++)
		ASSERT_EQ(1, read(ready[0], &byte, 1));
	close(start[1]);
	sleep_ns(200 * MSEC);
	for (i = 0; i < count; i += 10)
		ASSERT_EQ(0, kill(pid[i], SIGKILL));
	for (i = 0; i < count; i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(i % 10 ? 0 : SIGKILL, status);
	}
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 1, NULL));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	close(ready[0]);
	close(ready[1]);
	close(start[0]);
}

/* -- Killed clients ------------------------------------------------------ */

/* A client that says when it has count timeouts pending, and then waits. */
static pid_t client_start(unsigned int count, int *ready)
{
	unsigned int i;
	int fd, p[2];
	pid_t pid;

	if (pipe(p))
		return -1;
	pid = fork();
	if (pid) {
		close(p[1]);
		*ready = p[0];
		return pid;
	}
	fd = hwt_open(0);
	for (i = 0; i < count; i++)
		if (hwt_add(fd, 0, HOUR + i * MSEC, i, NULL))
			_exit(1);
	if (write(p[1], "r", 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

TEST_F_TIMEOUT(ctx, killed_with_a_hundred_thousand_pending, 150)
{
	unsigned int count = quick() ? 20000 : 100000, i, n = 0, early = 0;
	struct hwt_event events[64];
	int ready, status, ret, j;
	__u64 base, before;
	char byte;
	pid_t pid;

	pid = client_start(count, &ready);
	ASSERT_LT(0, pid);
	ASSERT_EQ(1, read(ready, &byte, 1));
	close(ready);
	/* Its neighbour notices nothing before, during and after it. */
	base = now_ns();
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, hwt_add(self->fd, HWT_ABSOLUTE, base + i * MSEC, i, NULL));
	sleep_ns(100 * MSEC);
	before = now_ns();
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	TH_LOG("gone after %llu ms", (unsigned long long)((now_ns() - before) / MSEC));
	while (n < 1000) {
		ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
		ret = hwt_read(self->fd, events, 64);
		ASSERT_LT(0, ret);
		for (j = 0; j < ret; j++)
			early += events[j].fired_ns < base + events[j].user_data * MSEC;
		n += ret;
	}
	EXPECT_EQ(1000U, n);
	EXPECT_EQ(0U, early);
	/* That the module unloads now, and leaves no object, is seen after the test. */
}

/* At any point of whatever it is doing, with a shared or a private wheel. */
TEST_F_TIMEOUT(ctx, killed_at_any_point, 100)
{
	int rounds = quick() ? 10 : 40, i, status;
	static struct worker workers[THREADS];
	struct hwt_event event;
	pid_t pid;

	for (i = 0; i < rounds; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			workers_start(workers, i % 4 == 3 ? hwt_open_private(CLOCK_MONOTONIC) :
				      hwt_open(0), i * THREADS, -1U);
			for (;;)
				pause();
		}
		sleep_ns((5 + i * 7 % 50) * MSEC);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
	}
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 1, NULL));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
}

TEST_HARNESS_MAIN
