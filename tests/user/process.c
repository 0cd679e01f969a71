// SPDX-License-Identifier: GPL-2.0-only
/*
 * Descriptors that are passed on, or closed under a reader; threads that race for the same ids and
 * keys. For killed clients, see recover_kill.c; for many contexts, see stress.c.
 *
 * hwt-test: timeout 300
 */
#include "kselftest_harness.h"
#include <pthread.h>

#include "fixtures.h"

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

	/* Both processes share the context, with unread events and ids. */
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 1, NULL));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 2, &id));
	ASSERT_EQ(0, send_fd(sock[0], self->fd));
	EXPECT_EQ(0, IN_CHILD(use_passed(sock[1], id)));
	EXPECT_EQ(-ENOENT, hwt_del(self->fd, id));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(3ULL, event.user_data);
	/* The child has sent a context of its own, and has exited. */
	fd = receive_fd(sock[0], &number);
	ASSERT_LE(0, fd);
	ASSERT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(77ULL, event.user_data);
	/* A descriptor that no process receives */
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, NULL));
	ASSERT_EQ(0, send_fd(sock[1], fd));
	close(fd);
	close(sock[0]);
	close(sock[1]);
}

static bool reading;

static void *blocked_reader(void *arg)
{
	struct hwt_event event = { 0 };

	__atomic_store_n(&reading, true, __ATOMIC_SEQ_CST);
	if (hwt_read(*(int *)arg, &event, 1) != 1)
		return NULL;
	return (void *)(uintptr_t)event.user_data;
}

/* A waiting reader keeps the context when its descriptor is closed: the only one or a duplicate. */
TEST_F(ctx, close_under_a_reader)
{
	int fds[2] = { hwt_open(O_NONBLOCK), dup(self->fd) }, fd, i;
	struct hwt_event event;
	pthread_t thread;
	void *data;

	for (i = 0; i < 2; i++) {
		fd = fds[i];
		ASSERT_LE(0, fd);
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
		ASSERT_EQ(0, hwt_add(fd, 0, 300 * MSEC, 99, NULL));
		ASSERT_EQ(0, hwt_add(fd, 0, 350 * MSEC, 97, NULL));
		ASSERT_EQ(0, pthread_create(&thread, NULL, blocked_reader, &fd));
		while (!__atomic_exchange_n(&reading, false, __ATOMIC_SEQ_CST))
			sleep_ns(MSEC);
		sleep_ns(50 * MSEC);
		EXPECT_EQ(0, close(fd));
		ASSERT_EQ(0, pthread_join(thread, &data));
		EXPECT_EQ((uintptr_t)99, (uintptr_t)data);
	}
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(97ULL, event.user_data);
}

#define THREADS	4
#define IDS	64
#define KEYS	8

/* Ids that all threads use; with keys, the keys */
static __u64 shared_ids[IDS];

struct worker {
	pthread_t thread;
	__u64 last;
	int fd;
	int error;			/* the first unexpected one */
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
	unsigned int i, r, mode;
	__u64 *slot, id;
	int ret;

	for (i = 0; i < worker->rounds; i++) {
		r = rand_r(&worker->seed);
		slot = &shared_ids[r / 8 % IDS];
		id = __atomic_load_n(slot, __ATOMIC_RELAXED);
		switch (r % 8) {
		case 0:
		case 1:
		case 2:
			mode = r % 8 == 2 ? 1 + r / 8 % 2 : HWT_MODE_ONE_SHOT;
			ret = hwt_arm(worker->fd, &id, .mode = mode, .id = id,
				      .time_ns = r % 5 * MSEC, .period_ns = mode ? MSEC : 0);
			if (!allow(worker, ret, 0))
				__atomic_store_n(slot, id, __ATOMIC_RELAXED);
			break;
		case 3:
		case 4:
			allow(worker, hwt_del(worker->fd, id), -ENOENT);
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

/* Check that each timeout ends once, by a cancel or by its last event. */
static void each_ends_once(struct __test_metadata *_metadata, bool keys, bool cancel)
{
	struct worker workers[THREADS], rest = { .fd = hwt_open(O_NONBLOCK) };
	struct hwt_list_entry entries[2 * KEYS];
	struct hwt_stats_args stats;
	__u64 sum = 0;
	unsigned int i;

	ASSERT_EQ(0, hwt_with(rest.fd, SETUP, setup, .flags = keys ? HWT_SETUP_KEYS : 0));
	for (i = 0; i < IDS; i++)
		shared_ids[i] = keys ? i % KEYS : 0;
	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker) {
			.fd = rest.fd,
			.seed = 12345 + i,
			.rounds = quick() ? 5000 : 20000,
		};
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]));
	}
	if (cancel) {
		sleep_ns(50 * MSEC);
		EXPECT_LE(0, hwt_del_all(rest.fd));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		EXPECT_EQ(0, workers[i].error);
		sum += workers[i].last;
	}
	EXPECT_GE(keys ? KEYS : 2 * KEYS, hwt_entries(rest.fd, entries, 2 * KEYS));
	EXPECT_LE(0, hwt_del_all(rest.fd));
	stats = hwt_now(rest.fd);
	EXPECT_EQ(stats.scheduled, stats.cancelled + sum);
	EXPECT_EQ(0ULL, stats.timeouts + stats.pending + stats.events);
	EXPECT_EQ(0, hwt_wait(rest.fd, 0));
	close(rest.fd);
}

TEST_F_TIMEOUT(ctx, threads_on_one_descriptor, 200)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		each_ends_once(_metadata, i & 1, i & 2);
}

TEST_HARNESS_MAIN
