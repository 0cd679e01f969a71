// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings in shared memory: what is done to the mapping, and who has it: processes, threads,
 * time namespaces.
 *
 * hwt-test: timeout 150
 * hwt-test: m32
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "hwt_ring.h"

#define ENTRIES	64

FIXTURE(rings) {
	int fd;
	long page;
	struct ring ring;
};

FIXTURE_SETUP(rings)
{
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->page = sysconf(_SC_PAGESIZE);
	ASSERT_EQ(0, ring_make(&self->ring, self->fd, 0, ENTRIES, ENTRIES));
}

FIXTURE_TEARDOWN(rings)
{
	ring_unmap(&self->ring);
	close(self->fd);
}

/* -- Mappings ------------------------------------------------------------ */

#define RW	(PROT_READ | PROT_WRITE)

/* Returns 0, or the errno. */
static int try_map(int fd, size_t size, int prot, int flags, long offset)
{
	void *p = mmap(NULL, size, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, size);
	return 0;
}

TEST(map_before_rings)
{
	int fd = hwt_open(0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(EINVAL, try_map(fd, sysconf(_SC_PAGESIZE), RW, MAP_SHARED, 0));
	close(fd);
}

TEST_F(rings, map_what_is_not_there)
{
	size_t size = self->ring.size;

	EXPECT_EQ(EINVAL, try_map(self->fd, size, RW, MAP_PRIVATE, 0));
	EXPECT_EQ(EINVAL, try_map(self->fd, size, PROT_READ, MAP_PRIVATE, 0));
	EXPECT_EQ(ENXIO, try_map(self->fd, size + self->page, RW, MAP_SHARED, 0));
	EXPECT_EQ(ENXIO, try_map(self->fd, size, RW, MAP_SHARED, self->page));
	EXPECT_EQ(ENXIO, try_map(self->fd, self->page, RW, MAP_SHARED, size));
	EXPECT_EQ(ENXIO, try_map(self->fd, self->page, RW, MAP_SHARED, 1L << 30));
	EXPECT_EQ(0, ring_do(&self->ring, op_schedule(SEC, 0), NULL));
}

/* A part, the whole, once more: all is the same memory. */
TEST_F(rings, map_again)
{
	struct hwt_rings *again, *constant;
	char *tail;

	again = mmap(NULL, self->page, RW, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)again);
	constant = mmap(NULL, self->ring.size, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)constant);
	ASSERT_EQ(0, ring_do(&self->ring, op_schedule(0, 5), NULL));
	ASSERT_TRUE(ring_wait(&self->ring, 1));
	EXPECT_EQ(1U, again->op_head);
	EXPECT_EQ(1U, constant->event_tail);
	again->event_head = 1;
	EXPECT_EQ(0U, ring_unread(&self->ring));
	munmap(again, self->page);
	/* From the middle of them. */
	tail = mmap(NULL, self->page, RW, MAP_SHARED, self->fd, self->ring.size - self->page);
	EXPECT_NE(MAP_FAILED, (void *)tail);
	EXPECT_EQ(0, memcmp(tail, (char *)constant + self->ring.size - self->page, self->page));
	munmap(tail, self->page);
	munmap(constant, self->ring.size);
}

/* The signal that ended a child that did that; 0: it came to its end. */
static int in_child(void (*fn)(char *p), char *p)
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		fn(p);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Not what the rings are about: a reserved field, if it is the first page. */
static void touch(char *p)
{
	((volatile struct hwt_rings *)p)->reserved[0] = 1;
}

/* Whatever is done to the mapping, only the program notices. */
TEST_F(rings, mapping_is_changed)
{
	struct ring *ring = &self->ring;
	size_t size = ring->size;
	char *p = (char *)ring->shared, *q;

	ASSERT_LT(self->page, (long)size);
	/* Grown: there is nothing beyond. */
	q = mremap(p, size, 2 * size, MREMAP_MAYMOVE);
	if (q != MAP_FAILED) {
		EXPECT_EQ(0, in_child(touch, q));
		EXPECT_EQ(SIGBUS, in_child(touch, q + size));
		p = q;
		ring->ops = (void *)((char *)p + ((char *)ring->ops - (char *)ring->shared));
		ring->events = (void *)((char *)p + ((char *)ring->events - (char *)ring->shared));
		ring->shared = (void *)p;
		munmap(p + size, size);
	}
	ASSERT_EQ(0, ring_do(ring, op_schedule(0, 0), NULL));
	/* Thrown away, which is for good. */
	if (!madvise(p + size - self->page, self->page, MADV_DONTNEED))
		EXPECT_EQ(SIGBUS, in_child(touch, p + size - self->page));
	madvise(p, self->page, MADV_REMOVE);
	madvise(p, self->page, MADV_MERGEABLE);
	madvise(p, self->page, MADV_HUGEPAGE);
	mlock(p, self->page);
	EXPECT_EQ(0, mprotect(p, self->page, PROT_READ));
	EXPECT_EQ(SIGSEGV, in_child(touch, p));
	EXPECT_EQ(0, mprotect(p, self->page, RW));
	/* A part is gone; the kernel has its own mapping. */
	EXPECT_EQ(0, munmap(p + self->page, size - self->page));
	EXPECT_EQ(0, ring_do(ring, op_schedule(0, 0), NULL));
	EXPECT_EQ(0, munmap(p, self->page));
	EXPECT_TRUE(hwt_fire(self->fd, 2 * ENTRIES));
	ring->shared = NULL;
}

/* The mapping keeps the context, as any descriptor does. */
TEST_F(rings, mapping_outlives_the_descriptor)
{
	struct hwt_event event;
	__u64 before = now_ns();

	ASSERT_EQ(0, hwt_add(self->fd, 0, 100 * MSEC, 3, NULL));
	close(self->fd);
	ASSERT_TRUE(ring_wait(&self->ring, 1));
	EXPECT_LE(before + 100 * MSEC, now_ns());
	ASSERT_TRUE(ring_pop(&self->ring, &event));
	EXPECT_EQ(3ULL, event.user_data);
	ring_unmap(&self->ring);
	self->fd = -1;
}

/* Pages that somebody else still has outlive both. */
TEST_F(rings, pages_in_a_pipe)
{
	struct iovec iov;
	int pipes[2];
	char buf[64];

	ASSERT_EQ(0, pipe(pipes));
	memset(self->ring.ops, 0x5a, 64);
	iov = (struct iovec) { .iov_base = self->ring.ops, .iov_len = 64 };
	ASSERT_EQ(64, vmsplice(pipes[1], &iov, 1, 0));
	ring_unmap(&self->ring);
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(64, read(pipes[0], buf, 64));
	EXPECT_EQ(0x5a, buf[0]);
	EXPECT_EQ(0x5a, buf[63]);
	close(pipes[0]);
	close(pipes[1]);
}

TEST_F(rings, core_dump)
{
	const struct rlimit limit = { 64 << 20, 64 << 20 };
	char dir[] = "/tmp/hwt-core.XXXXXX", name[64];
	int status, fd;
	pid_t pid;

	if (access("/proc/self/coredump_filter", F_OK))
		SKIP(return, "a kernel without core dumps");
	ASSERT_NE(NULL, mkdtemp(dir));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		fd = open("/proc/self/coredump_filter", O_WRONLY);
		if (fd < 0 || write(fd, "0x1ff", 5) != 5 || chdir(dir) ||
		    setrlimit(RLIMIT_CORE, &limit))
			_exit(1);
		signal(SIGABRT, SIG_DFL);
		abort();
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGABRT, WTERMSIG(status));
	snprintf(name, sizeof(name), "%s/core", dir);
	unlink(name);
	snprintf(name, sizeof(name), "%s/core.%d", dir, pid);
	unlink(name);
	rmdir(dir);
	EXPECT_EQ(0, ring_do(&self->ring, op_schedule(0, 0), NULL));
}

/* -- Processes and threads ----------------------------------------------- */

/* A child has the same rings; it takes its turn. */
TEST_F(rings, fork)
{
	struct ring *ring = &self->ring;
	struct hwt_event event;
	int status;
	pid_t pid;

	ASSERT_EQ(0, ring_do(ring, op_schedule(0, 1), NULL));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (ring_do(ring, op_schedule(0, 2), NULL) || !ring_wait(ring, 2) ||
		    !ring_pop(ring, &event) || event.user_data != 1)
			_exit(1);
		_exit(ring_do(ring, op_schedule(50 * MSEC, 3), NULL) != 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(3U, ring_op_head(ring));
	EXPECT_EQ(0, ring_enter(ring, 0, 2, HWT_NEVER));
	ASSERT_TRUE(ring_pop(ring, &event));
	EXPECT_EQ(2ULL, event.user_data);
	ASSERT_TRUE(ring_pop(ring, &event));
	EXPECT_EQ(3ULL, event.user_data);
}

#define SUBMITTERS	3

struct submitter {
	pthread_t	thread;
	struct ring	*ring;
	volatile bool	*stop;
	unsigned long	done;
	bool		failed;
};

static void *submitter_run(void *arg)
{
	struct submitter *submitter = arg;
	long ret;

	while (!*submitter->stop) {
		ret = ring_enter(submitter->ring, 3, 0, 0);
		if (ret < 0) {
			submitter->failed = true;
			break;
		}
		submitter->done += ret;
	}
	return NULL;
}

/* Several call, each operation is carried out once. */
TEST_F_TIMEOUT(rings, several_submit, 60)
{
	unsigned int total = quick() ? 1000 : 10000, made = 0, i;
	struct submitter submitters[SUBMITTERS];
	volatile bool stop = false;
	struct hwt_stats_args stats;
	unsigned long done = 0;
	__u64 limit;

	for (i = 0; i < SUBMITTERS; i++) {
		submitters[i] = (struct submitter) { .ring = &self->ring, .stop = &stop };
		ASSERT_EQ(0, pthread_create(&submitters[i].thread, NULL, submitter_run,
					    &submitters[i]));
	}
	limit = now_ns() + 50 * SEC;
	while ((made < total || ring_op_head(&self->ring) != total) && now_ns() < limit) {
		if (made < total && ring_push(&self->ring, op_schedule(3600 * SEC, made)))
			made++;
		else
			sched_yield();
	}
	stop = true;
	for (i = 0; i < SUBMITTERS; i++) {
		pthread_join(submitters[i].thread, NULL);
		EXPECT_FALSE(submitters[i].failed);
		done += submitters[i].done;
	}
	EXPECT_EQ((unsigned long)total, done);
	ASSERT_EQ(0, hwt_stats(self->fd, &stats));
	EXPECT_EQ((__u64)total, stats.scheduled);
}

#define AHEAD	1000000L

/* In a time namespace that is ahead of its parent's, which has made the rings. */
static int child_ahead(struct ring *ring, __u64 outside)
{
	__u64 now = now_ns();
	struct hwt_op op;
	__u64 id;

	/* Is this really another time? */
	if (now < outside + AHEAD * SEC)
		return 1;
	/* A batch is in the time of its caller, the rings are not. */
	op = op_schedule(now + 3600 * SEC, 0);
	op.flags = HWT_ABSOLUTE;
	if (hwt_batch(ring->fd, &op, 1) != 1 || op.result)
		return 2;
	id = op.id;
	op = op_get(id);
	if (hwt_batch(ring->fd, &op, 1) != 1 || op.deadline_ns < now + 3600 * SEC ||
	    op.remaining_ns > 3601 * SEC)
		return 3;
	if (ring_do(ring, op_get(id), NULL) != HWT_STATE_PENDING ||
	    ring->ops[0].deadline_ns > outside + 7200 * SEC)
		return 4;
	op = op_schedule(outside + 7200 * SEC, 0);
	op.flags = HWT_ABSOLUTE;
	if (ring_do(ring, op, &id))
		return 5;
	op = op_get(id);
	if (hwt_batch(ring->fd, &op, 1) != 1 || op.deadline_ns < now + 3600 * SEC ||
	    op.remaining_ns > 7200 * SEC)
		return 6;
	/* An event, too. */
	return ring_do(ring, op_schedule(0, 0), NULL) || !ring_wait(ring, 1) ||
	       ring->events[0].fired_ns > outside + 3600 * SEC ? 7 : 0;
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

TEST_F(rings, time_namespace)
{
	__u64 outside = now_ns();
	int status, fd, len;
	char text[64];
	pid_t pid;

	if (unshare(CLONE_NEWTIME))
		SKIP(return, "no time namespaces");
	len = snprintf(text, sizeof(text), "%d %ld 0\n", CLOCK_MONOTONIC, AHEAD);
	fd = open("/proc/self/timens_offsets", O_WRONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ(len, write(fd, text, len));
	close(fd);
	/* The child is in it, this process is not. */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(child_ahead(&self->ring, outside));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* Two ask for rings at once: one gets them. */
static void *maker_run(void *arg)
{
	struct hwt_rings_args args;

	return (void *)(long)hwt_rings((long)arg, 0, 64, 64, &args);
}

TEST(two_make_rings)
{
	pthread_t thread;
	void *one, *other;
	int i, fd;

	for (i = 0; i < 100; i++) {
		fd = hwt_open(0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, pthread_create(&thread, NULL, maker_run, (void *)(long)fd));
		one = maker_run((void *)(long)fd);
		ASSERT_EQ(0, pthread_join(thread, &other));
		EXPECT_EQ(-EBUSY, (long)one + (long)other);
		close(fd);
	}
}

TEST_HARNESS_MAIN
