// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes and threads: dup, descriptors passed on, close under who waits, many threads on one
 * descriptor. Clients that are killed are in recover_kill.c, many at once in hwtctl-stress.sh.
 *
 * hwt-test: timeout 300
 */
#include "kselftest_harness.h"
#include <pthread.h>

#include "context.h"
#include "process.h"

/* Uses the descriptor, and sends another one back. */
static int use_passed(int sock, __u64 id)
{
	int number, fd = receive_fd(sock, &number), own = hwt_open(O_NONBLOCK);
	struct hwt_event event;

	if (hwt_next(fd, &event) != 1 || event.user_data != 1)
		return 1;
	if (hwt_del(fd, id) != HWT_STATE_PENDING || hwt_add(fd, 0, 0, 3, NULL))
		return 2;
	return hwt_add(own, 0, 50 * MSEC, 77, NULL) || send_fd(sock, own) ? 3 : 0;
}

TEST_F(ctx, passed_on)
{
	int sock[2], fd, number;
	struct hwt_event event;
	__u64 id;

	/* Both have the context from then on, unread events and ids as well. */
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 1, NULL));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 2, &id));
	ASSERT_EQ(0, send_fd(sock[0], self->fd));
	EXPECT_EQ(0, IN_CHILD(use_passed(sock[1], id)));
	EXPECT_EQ(-ENOENT, hwt_del(self->fd, id));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(3ULL, event.user_data);
	/* The child has sent one of its own, and is gone. */
	fd = receive_fd(sock[0], &number);
	ASSERT_LE(0, fd);
	ASSERT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(77ULL, event.user_data);
	/* And one that no process ever receives. */
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, NULL));
	ASSERT_EQ(0, send_fd(sock[1], fd));
	close(fd);
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

/* A copy is closed while a thread waits by it: the thread waits on, by the same context. */
TEST_F(ctx, dup_is_the_same_context)
{
	int copy = dup(self->fd);
	struct hwt_event event;
	void *data = NULL;
	pthread_t thread;

	ASSERT_LE(0, copy);
	fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) & ~O_NONBLOCK);
	ASSERT_EQ(0, hwt_add(copy, 0, 150 * MSEC, 98, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, blocked_reader, &copy));
	sleep_ns(50 * MSEC);
	EXPECT_EQ(0, hwt_add(copy, 0, 200 * MSEC, 97, NULL));
	EXPECT_EQ(0, close(copy));
	ASSERT_EQ(0, pthread_join(thread, &data));
	EXPECT_EQ((uintptr_t)98, (uintptr_t)data);
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(97ULL, event.user_data);
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

/* Whoever gets them first. */
static __u64 shared_ids[IDS];

struct worker {
	pthread_t thread;
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
		slot = &shared_ids[r / 8 % IDS];
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

static int workers_start(struct worker *workers, int fd, unsigned int seed, unsigned int rounds)
{
	int i, ret = 0;

	for (i = 0; i < THREADS && !ret; i++) {
		workers[i] = (struct worker) {
			.fd = fd,
			.seed = seed + i,
			.rounds = rounds,
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
static void each_ends_once(struct __test_metadata *_metadata, int fd, unsigned int seed, bool stop)
{
	struct worker workers[THREADS], sum = { .fd = fd };
	struct hwt_stats_args stats;

	ASSERT_EQ(0, workers_start(workers, fd, seed, quick() ? 5000 : 20000));
	/* In the middle of it: from one instant on, nothing more gets in. */
	if (stop) {
		sleep_ns(50 * MSEC);
		EXPECT_LE(0, hwt_stop(fd));
	}
	workers_end(workers, &sum);
	EXPECT_TRUE(!sum.error || (stop && sum.error == -ESHUTDOWN));
	EXPECT_EQ(sum.made, sum.cancelled + sum.last);
	ASSERT_EQ(0, hwt_stats(fd, &stats));
	EXPECT_EQ(sum.made, stats.scheduled);
	EXPECT_EQ(sum.cancelled, stats.cancelled);
	EXPECT_EQ(0ULL, stats.timeouts);
	EXPECT_EQ(0ULL, stats.events);
	EXPECT_EQ(POLLIN | POLLHUP, hwt_wait(fd, 0));
	TH_LOG("%llu made, %llu cancelled, %llu firings, %llu stopped", sum.made, sum.cancelled,
	       stats.expired, stats.stopped);
}

TEST_F_TIMEOUT(ctx, threads_on_one_descriptor, 100)
{
	each_ends_once(_metadata, self->fd, 12345, false);
}

TEST_F_TIMEOUT(ctx, stop_under_threads, 100)
{
	each_ends_once(_metadata, self->fd, 54321, true);
}

TEST_HARNESS_MAIN
