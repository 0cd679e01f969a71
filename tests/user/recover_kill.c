// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients are killed at random points, again and again: several threads and processes each,
 * which do a bit of everything to the same contexts, on the shared wheel and on private ones,
 * with rings and mappings.
 *
 * An observer's timeouts, of which some are on the shared wheel and the others on a private one,
 * all fire, none early, and its counts add up. All that the dead had is given back: the same
 * user can have as much as ever, no thread and no reference to the module is left. Recovery: at
 * once; the next client is there when the one before it is reaped.
 *
 * Rounds: HWT_ROUNDS on the kernel's command line; the seed is printed, HWT_SEED takes it.
 *
 * hwt-test: check stock debug
 * hwt-test: timeout 900
 * hwt-test: load max_shared=300 max_user_timeouts=50000 max_user_wheels=6
 */
#include "kselftest_harness.h"
#include <sys/epoll.h>
#include <sys/prctl.h>

#include "caps.h"
#include "recover.h"
#include "user_whole.h"

#define CONTEXTS	3
#define THREADS		3
#define IDS		64
#define BATCH		200	/* a few, and it has more than may be on the shared wheel */
#define STEPS		14	/* kinds of what a client does */

/* -- A client ---------------------------------------------------------------- */

struct client {
	__u64		seed;
	int		fd[CONTEXTS];
	struct ring	ring[CONTEXTS];
	__u64		id[IDS];
};

/* Shared by its threads, who do not care what the others make of it. */
static struct client client;

/* How often a step of each kind has succeeded; outlives the clients. */
static unsigned long *done;

static void client_open(unsigned int i, __u64 *seed)
{
	client.fd[i] = hwt_open(O_NONBLOCK);
	if (client.fd[i] < 0)
		_exit(1);
	if (next_random(seed) % 4 == 0)
		hwt_private(client.fd[i],
			    next_random(seed) % 2 ? CLOCK_BOOTTIME : CLOCK_REALTIME, 0);
	if (next_random(seed) % 3 == 0)
		ring_make(&client.ring[i], client.fd[i], 0, 16, 16);
}

static bool client_batch(int fd, __u64 *seed)
{
	struct hwt_op ops[BATCH];
	unsigned int i, n = next_random(seed) % BATCH + 1;

	for (i = 0; i < n; i++)
		ops[i] = i % 8 ? op_schedule(next_random(seed) % (20 * MSEC), i) :
				 op_cancel(client.id[i % IDS]);
	return hwt_batch(fd, ops, n) > 0;
}

static bool client_ring(unsigned int c, __u64 *seed)
{
	struct ring *ring = &client.ring[c];
	struct hwt_event event;
	unsigned int i;
	bool did;

	if (!ring->shared)
		return false;
	for (i = 0; i < 8; i++)
		ring_push(ring, op_schedule(next_random(seed) % (5 * MSEC), i));
	did = ring_enter(ring, 8, next_random(seed) % 4, 2 * MSEC) > 0;
	while (ring_pop(ring, &event))
		;
	return did;
}

/* Another mapping; the one that others use stays. */
static bool client_map(unsigned int c)
{
	struct ring *ring = &client.ring[c];
	void *p;

	if (!ring->shared)
		return false;
	p = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	return p != MAP_FAILED && !munmap(p, ring->size);
}

static bool client_epoll(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	bool did = false;

	if (epfd >= 0 && !epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev))
		did = epoll_wait(epfd, &ev, 1, 2) >= 0;
	if (epfd >= 0)
		close(epfd);
	return did;
}

/* Returns whether it could be done. */
static bool client_step(unsigned int kind, __u64 *seed)
{
	unsigned int c = next_random(seed) % CONTEXTS, i = next_random(seed) % IDS;
	__u64 soon = next_random(seed) % (10 * MSEC);
	struct hwt_list_entry entries[80];
	struct hwt_event events[16];
	struct hwt_get_args get;
	int fd = client.fd[c];

	switch (kind) {
	case 0:
	case 1:
		return !hwt_add(fd, 0, soon, i, &client.id[i]);
	case 2:
		return !hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, soon, MSEC, i, &client.id[i]);
	case 3:
		return !hwt_add(fd, 0, HOUR, i, &client.id[i]);
	case 4:
		return hwt_move(fd, client.id[i], 0, soon) >= 0;
	case 5:
		return hwt_del(fd, client.id[i]) >= 0;
	case 6:
		return client_batch(fd, seed);
	case 7:
		return hwt_entries(fd, entries, 80) >= 0;
	case 8:
		return hwt_read(fd, events, 16) > 0;
	case 9:
		return hwt_wait(fd, 2) > 0;
	case 10:
		return client_ring(c, seed);
	case 11:
		return client_map(c);
	case 12:
		return client_epoll(fd);
	case 13:
		if (next_random(seed) % 200 == 0)
			hwt_stop(fd);
		return !hwt_get(fd, client.id[i], &get);
	}
	return false;
}

static void *client_thread(void *arg)
{
	__u64 seed = client.seed + (uintptr_t)arg * 0x9e3779b97f4a7c15;
	unsigned int kind;

	for (;;) {
		kind = next_random(&seed) % STEPS;
		if (client_step(kind, &seed))
			__atomic_add_fetch(&done[kind], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Until it is killed. Sometimes in two processes. */
static void client_run(__u64 seed, int ready)
{
	pthread_t thread;
	uintptr_t i;

	setpgid(0, 0);
	memset(&client, 0, sizeof(client));
	client.seed = seed;
	for (i = 0; i < CONTEXTS; i++)
		client_open(i, &seed);
	/* Half of them are killed while they are still at this. */
	if (write(ready, "", 1) != 1)
		_exit(2);
	if (next_random(&seed) % 4 == 0 && !fork())
		client.seed++;
	for (i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, client_thread, (void *)i))
			_exit(3);
	client_thread(NULL);
}

/* -- The killing --------------------------------------------------------------- */

FIXTURE(kill) {
	struct observer observer;
	__u64 seed;
};

FIXTURE_SETUP(kill)
{
	self->seed = first_seed(_metadata);
	/* More than may be on the shared wheel. */
	observer_start(_metadata, &self->observer, "1000");
	/* The user's limits are for the clients. */
	ASSERT_EQ(0, set_capability(CAP_SYS_RESOURCE, false));
	/* Those whose parent was killed. */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	done = mmap(NULL, STEPS * sizeof(*done), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)done);
}

FIXTURE_TEARDOWN(kill)
{
}

static __u64 references(void)
{
	return read_number("/sys/module/hwt/refcnt");
}

static unsigned long all_done(void)
{
	unsigned long sum = 0;
	unsigned int i;

	for (i = 0; i < STEPS; i++)
		sum += __atomic_load_n(&done[i], __ATOMIC_RELAXED);
	return sum;
}

/* Else there was nothing to take from them. Some are killed before they have done anything. */
static void something_done(struct __test_metadata *_metadata, unsigned int clients)
{
	unsigned long sum = all_done();
	char line[STEPS * 12] = "";
	unsigned int i;

	for (i = 0; i < STEPS; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " %lu", done[i]);
	TH_LOG("steps of clients, by kind:%s", line);
	EXPECT_LE(clients / 10, sum);
}

static void kill_one(struct __test_metadata *_metadata, __u64 *seed, unsigned int when)
{
	__u64 wait = next_random(seed) % (30 * MSEC);
	unsigned long before = all_done();
	int ready[2];
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(ready[0]);
		client_run(*seed, ready[1]);
	}
	/* So that both kill(-pid) and the child find the group. */
	setpgid(pid, pid);
	close(ready[1]);
	/* From 0 to 3: at once, when all is open, or when it has done something; and some time. */
	if (when >= 2)
		EXPECT_EQ(1, read(ready[0], &c, 1));
	if (when == 3)
		until(all_done() != before);
	sleep_ns(wait);
	ASSERT_EQ(0, kill(-pid, SIGKILL));
	close(ready[0]);
	EXPECT_EQ(-SIGKILL, child_end(pid));
	/* Its own child, if it had one, which is now this process's. */
	while (waitpid(-pid, NULL, 0) > 0)
		;
}

TEST_F_TIMEOUT(kill, at_random_points, 2500)
{
	unsigned int n = rounds(100, 20), i;
	__u64 seed = self->seed;

	/* The observer's is seen. */
	EXPECT_TRUE(!self->observer.pid || until(private_threads(NULL) == 1));
	for (i = 0; i < n && _metadata->passed; i++)
		kill_one(_metadata, &seed, i % 4);
	TH_LOG("%u rounds", i);
	EXPECT_EQ(n, i);
	something_done(_metadata, n);
	observer_end(_metadata, &self->observer);
	/* They may take a moment to go. */
	EXPECT_TRUE(until(!private_threads(NULL) && !references()));
	user_whole(_metadata);
}

TEST_HARNESS_MAIN
