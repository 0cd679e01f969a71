// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings in shared memory: mappings, threads that submit. For time namespaces, see timens.c.
 *
 * hwt-test: timeout 150
 * hwt-test: m32
 * hwt-test: shared
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "fixtures.h"
#include "guest.h"

#define RW	(PROT_READ | PROT_WRITE)

/* Only a mapping of the whole is accepted. Any other leaves the events to read(). */
TEST_F(ctx, map_a_part)
{
	long page = sysconf(_SC_PAGESIZE);
	struct hwt_rings_args args;
	struct hwt_event event;
	unsigned int i;

	ASSERT_EQ(0, hwt_rings(self->fd, 0, ENTRIES, ENTRIES, &args));

	const size_t size = args.map_size;
	const struct {
		int prot, flags;
		size_t size;
		long offset;
	} bad[] = {
		{ RW, MAP_PRIVATE, size, 0 },
		{ PROT_READ, MAP_PRIVATE, size, 0 },
		{ RW, MAP_SHARED, page, 0 },
		{ PROT_READ, MAP_SHARED, page, page },
		{ RW, MAP_SHARED, size - page, page },
		{ RW, MAP_SHARED, size + page, 0 },
		{ RW, MAP_SHARED, size, page },
		{ RW, MAP_SHARED, page, size },
		{ RW, MAP_SHARED, page, 1L << 30 },
	};

	ASSERT_LT(page, (long)size);
	ASSERT_TRUE(hwt_fire(self->fd, 1));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(MAP_FAILED, mmap(NULL, bad[i].size, bad[i].prot, bad[i].flags,
					   self->fd, bad[i].offset));
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_EQ(1, hwt_read(self->fd, &event, 1));
}

/* Mappings show the same memory. */
TEST_F(rings, map_again)
{
	struct hwt_rings *again, *constant;

	again = mmap(NULL, self->ring.size, RW, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)again);
	constant = mmap(NULL, self->ring.size, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)constant);
	ASSERT_EQ(0, ring_do(&self->ring, op_schedule(0, 5), NULL));
	ASSERT_TRUE(ring_wait(&self->ring, 1));
	EXPECT_EQ(1U, again->op_head);
	EXPECT_EQ(1U, constant->event_tail);
	again->event_head = 1;
	EXPECT_EQ(0U, ring_unread(&self->ring));
	munmap(again, self->ring.size);
	munmap(constant, self->ring.size);
}

/* Write to a mapped page. In the first page, this is a reserved member. */
static int touch(void *p)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	((volatile struct hwt_rings *)p)->reserved[0] = 1;
	return 0;
}

/* Changes of a mapping affect only the program. */
TEST_F(rings, mapping_is_changed)
{
	long page = sysconf(_SC_PAGESIZE);
	struct ring *ring = &self->ring;
	size_t size = ring->size;
	char *p = (char *)ring->shared, *q;

	ASSERT_LT(page, (long)size);
	/* A grown mapping has no pages beyond the rings. */
	q = mremap(p, size, 2 * size, MREMAP_MAYMOVE);
	if (q != MAP_FAILED) {
		EXPECT_EQ(0, IN_CHILD(touch(q)));
		EXPECT_EQ(-SIGBUS, IN_CHILD(touch(q + size)));
		p = q;
		ring->ops = (void *)((char *)p + ((char *)ring->ops - (char *)ring->shared));
		ring->events = (void *)((char *)p + ((char *)ring->events - (char *)ring->shared));
		ring->shared = (void *)p;
		munmap(p + size, size);
	}
	ASSERT_EQ(0, ring_do(ring, op_schedule(0, 0), NULL));
	/* A page that was dropped does not come back. */
	if (!madvise(p + size - page, page, MADV_DONTNEED))
		EXPECT_EQ(-SIGBUS, IN_CHILD(touch(p + size - page)));
	madvise(p, page, MADV_REMOVE);
	madvise(p, page, MADV_MERGEABLE);
	madvise(p, page, MADV_HUGEPAGE);
	mlock(p, page);
	EXPECT_EQ(0, mprotect(p, page, PROT_READ));
	EXPECT_EQ(-SIGSEGV, IN_CHILD(touch(p)));
	EXPECT_EQ(0, mprotect(p, page, RW));
	/* The kernel does not need the program's mapping. */
	EXPECT_EQ(0, munmap(p + page, size - page));
	EXPECT_EQ(0, ring_do(ring, op_schedule(0, 0), NULL));
	EXPECT_EQ(0, munmap(p, page));
	EXPECT_TRUE(hwt_fire(self->fd, 2 * ENTRIES));
	EXPECT_EQ(0, ring_enter(ring, 0, ENTRIES, 0));
	ring->shared = NULL;
}

/* A mapping keeps the context, as a descriptor does. */
TEST_F(rings, mapping_outlives_the_descriptor)
{
	__u64 before = now_ns();

	ASSERT_EQ(0, hwt_add(self->fd, 0, 50 * MSEC, 3, NULL));
	close(self->fd);
	/* The program is told, although without a descriptor no call can move the event. */
	ASSERT_TRUE(until(ring_flags(&self->ring) == HWT_RINGS_MORE || self->ring.shared->due));
	EXPECT_LE(before + 50 * MSEC, now_ns());
	ring_unmap(&self->ring);
	self->fd = -1;
}

/* Pages in a pipe outlive the mapping and the descriptor. */
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

static int dump_core(void *dir)
{
	const struct rlimit limit = { 64 << 20, 64 << 20 };

	signal(SIGABRT, SIG_DFL);
	if (chdir(dir) || setrlimit(RLIMIT_CORE, &limit) ||
	    !write_text("/proc/self/coredump_filter", "0x1ff"))
		return 1;
	abort();
}

TEST_F(rings, core_dump)
{
	char dir[] = "/tmp/hwt-core.XXXXXX", command[64];

	if (access("/proc/self/coredump_filter", F_OK))
		SKIP(return, "a kernel without core dumps");
	ASSERT_NE(NULL, mkdtemp(dir));
	EXPECT_EQ(-SIGABRT, IN_CHILD(dump_core(dir)));
	snprintf(command, sizeof(command), "rm -r %s", dir);
	EXPECT_EQ(0, system(command));
	EXPECT_EQ(0, ring_do(&self->ring, op_schedule(0, 0), NULL));
}

#define SUBMITTERS	3

static volatile bool stop;

/* Return the number of operations carried out; -1: a call has failed. */
static void *submit(void *ring)
{
	long done = 0, ret;

	while (!stop) {
		ret = ring_enter(ring, 3, 0, 0);
		if (ret < 0)
			return (void *)-1L;
		done += ret;
	}
	return (void *)done;
}

/* Several threads submit; each operation is carried out once. */
TEST_F_TIMEOUT(rings, several_submit, 60)
{
	unsigned int total = quick() ? 1000 : 5000, made = 0, i;
	__u64 limit = now_ns() + 50 * SEC;
	pthread_t thread[SUBMITTERS];
	long done = 0;
	void *ret;

	for (i = 0; i < SUBMITTERS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, submit, &self->ring));
	while ((made < total || ring_op_head(&self->ring) != total) && now_ns() < limit) {
		if (made < total && ring_push(&self->ring, op_schedule(HOUR, made)))
			made++;
		else
			sched_yield();
	}
	stop = true;
	for (i = 0; i < SUBMITTERS; i++) {
		pthread_join(thread[i], &ret);
		EXPECT_LE(0, (long)ret);
		done += (long)ret;
	}
	EXPECT_EQ((long)total, done);
	EXPECT_EQ((__u64)total, hwt_now(self->fd).scheduled);
}

TEST_HARNESS_MAIN
