// SPDX-License-Identifier: GPL-2.0-only
/*
 * All memory is charged to the memory cgroup of the caller: at the group's limit calls fail with
 * ENOMEM, no process is killed, and no other process is affected.
 *
 * hwt-test: check stock
 * hwt-test: timeout 400
 */
#include "kselftest_harness.h"
#include <signal.h>

#include "guest.h"
#include "observer.h"

#define GROUP		CGROUP "/hwt-cgroup"
#define GROUP_MAX	(8L << 20)
#define OPS		256
#define IDS		64

enum way { IOCTL, PERIODIC, RINGS, LARGE_RINGS, LARGE_WHEELS };

/*
 * Results of the child in the group, in shared memory that is present already: a page fault at
 * the group's limit would kill the child.
 */
struct told {
	int error;		/* of the call that failed */
	unsigned int made;
	unsigned int listed;
	unsigned int worked;	/* operations that succeeded without new memory */
	int error_again;
	bool full;
	bool go_on;
};

FIXTURE(group) {
	volatile struct told *told;
	struct observer neighbour;
};

FIXTURE_VARIANT(group) {
	enum way way;
};

FIXTURE_VARIANT_ADD(group, ioctl) { IOCTL };
FIXTURE_VARIANT_ADD(group, periodic) { PERIODIC };
FIXTURE_VARIANT_ADD(group, rings) { RINGS };
FIXTURE_VARIANT_ADD(group, large_rings) { LARGE_RINGS };
FIXTURE_VARIANT_ADD(group, large_wheels) { LARGE_WHEELS };

FIXTURE_SETUP(group)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", GROUP_MAX);
	/* No SKIP(): after it, the harness of 6.1 runs the test all the same. */
	ASSERT_TRUE(make_group(GROUP, text));
	self->told = mmap(NULL, sizeof(*self->told), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->told);
	memset((void *)self->told, 0, sizeof(*self->told));
	observer_start(_metadata, &self->neighbour, 100);
}

FIXTURE_TEARDOWN(group)
{
	rmdir(GROUP);
}

/* End the child if a condition fails. The line determines the exit status. */
#define NEED(_true)					\
do {							\
	if (!(_true))					\
		_exit(__LINE__ % 127 + 1);		\
} while (0)

static bool join(void)
{
	volatile char stack[65536];
	unsigned int i;

	for (i = 0; i < sizeof(stack); i += 512)
		stack[i] = 0;
	return write_text(GROUP "/cgroup.procs", "0") && !mlockall(MCL_CURRENT);
}

/* Carry out OPS operations. Return the first error. */
static int by_ops(volatile struct told *told, struct ring *ring, __u64 *id)
{
	unsigned int i;

	for (i = 0; i < OPS; i++)
		NEED(ring_push(ring, op_schedule(HOUR, 0)));
	while (ring_op_head(ring) != ring->shared->op_tail)
		NEED(ring_enter(ring, OPS, 0, 0) > 0);
	for (i = 0; i < OPS; i++) {
		if (ring->ops[i].result)
			return ring->ops[i].result;
		id[told->made++ % IDS] = ring->ops[i].id;
	}
	return 0;
}

static int add_soon(int fd)
{
	int ret;

	(void)until((ret = hwt_add(fd, 0, HOUR, 0, NULL)) != -ENOMEM);
	return ret;
}

/* Create timeouts until memory is used up, then use the timeouts. */
static void use_up(volatile struct told *told, enum way way)
{
	int fd = hwt_open(O_NONBLOCK), other = hwt_open(O_NONBLOCK), ret, i;
	struct hwt_event event;
	struct hwt_get_args get;
	static __u64 id[IDS];
	struct ring ring;

	NEED(fd >= 0 && other >= 0);
	NEED(way != RINGS || !ring_make(&ring, fd, 0, OPS, 64));
	NEED(join());
	do {
		if (way == RINGS) {
			ret = by_ops(told, &ring, id);
			continue;
		}
		if (way == PERIODIC && told->made >= IDS)
			ret = hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, HOUR, SEC, 0, NULL);
		else
			ret = hwt_add(fd, 0, HOUR, 0, &id[told->made % IDS]);
		told->made += !ret;
	} while (!ret);
	told->error = ret;
	told->listed = hwt_timeouts(fd);

	/* Wait until the parent has read the group's counters. */
	told->full = true;
	while (!told->go_on)
		sleep_ns(10 * MSEC);

	/* At the limit, existing timeouts work. */
	told->worked += hwt_move(fd, id[0], 0, 0) == HWT_STATE_PENDING;
	told->worked += hwt_wait(fd, PATIENCE_MS) == POLLIN;
	told->worked += (way == RINGS ? ring_wait(&ring, 1) && ring_pop(&ring, &event) :
					hwt_read(fd, &event, 1) == 1) && event.id == id[0];
	told->worked += !hwt_get(fd, id[1], &get);
	for (i = 1; i < IDS; i++)
		told->worked += hwt_del(fd, id[i]) == HWT_STATE_PENDING;
	/* Freed memory can be used again soon, also that of a closed context. */
	told->error_again = add_soon(other);
	close(fd);
	for (i = 0; way == IOCTL && !told->error_again && i < 5000; i++)
		told->error_again = add_soon(other);
}

#define WORKED	(4 + IDS - 1)

static int ask_for_much(int fd, enum way way)
{
	struct hwt_rings_args rings;

	return way == LARGE_WHEELS ?
	       hwt_with(fd, SETUP, setup, .ticks_per_wheel = 65536, .levels = 2) :
	       hwt_rings(fd, 0, HWT_RING_ENTRIES_MAX / 2, HWT_RING_ENTRIES_MAX / 2, &rings);
}

#define ROUNDS	20

/* Ask for megabytes at a time, until a call fails. Failed calls must not leave memory behind. */
static void use_much(volatile struct told *told, enum way way)
{
	/* Use memory, so that the last wheel lacks about half of its size, not a few pages. */
	static char ballast[3 << 18];
	int fd[32], ret = 0, round;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = hwt_open(0);
		NEED(fd[i] >= 0);
	}
	NEED(join());
	if (way == LARGE_WHEELS)
		memset(ballast, 1, sizeof(ballast));
	for (n = 0; !ret && n < ARRAY_SIZE(fd); n++)
		ret = ask_for_much(fd[n], way);
	told->error = ret;
	told->made = n - !!ret;
	NEED(ret && told->made);
	/* Repeat the failed call: a leak would change the result. */
	for (round = 0; round < ROUNDS; round++)
		told->worked += ask_for_much(fd[n - 1], way) == -ENOMEM;
	close(fd[0]);
	told->error_again = ask_for_much(fd[n - 1], way);
	told->full = true;
}

TEST_F_TIMEOUT(group, at_its_limit, 300)
{
	bool large = variant->way >= LARGE_RINGS;
	__u64 end = now_ns() + 120 * SEC;
	volatile struct told *told = self->told;
	long used;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		(large ? use_much : use_up)(told, variant->way);
		_exit(0);
	}
	while (!told->full && now_ns() < end)
		sleep_ns(10 * MSEC);
	EXPECT_TRUE(told->full);
	used = read_number(GROUP "/memory.current");
	told->go_on = true;
	EXPECT_EQ(0, child_end(pid));
	observer_end(_metadata, &self->neighbour);
	EXPECT_EQ(-ENOMEM, told->error);
	EXPECT_EQ(0, told->error_again);
	EXPECT_EQ(large ? ROUNDS : WORKED, (int)told->worked);
	EXPECT_EQ(0, read_word(GROUP "/memory.events", "oom"));
	EXPECT_EQ(0, read_word(GROUP "/memory.events", "oom_kill"));
	TH_LOG("%u in %ld of %ld bytes", told->made, used, GROUP_MAX);
	if (large)
		return;
	/* In a ring, operations after the failed one may succeed. */
	EXPECT_LE(told->made, told->listed);
	EXPECT_GE(told->made + (variant->way < RINGS ? 0 : OPS), told->listed);
	EXPECT_LT(5000U, told->made);
	EXPECT_LT(GROUP_MAX - GROUP_MAX / 8, used);
	EXPECT_GE(GROUP_MAX, used);
	EXPECT_LT(0, read_word(GROUP "/memory.events", "max"));
}

#define KEYED	900

static long slab_pages(void)
{
	write_text("/proc/sys/vm/stat_refresh", "1");
	return read_word("/proc/vmstat", "nr_slab_unreclaimable");
}

/* No cgroup is charged for a table of keys, so an empty one must be small. */
TEST(empty_tables_of_keys)
{
	int fd[KEYED], i;
	long before;

	if (debug_kernel())
		SKIP(return, "KASAN and kmemleak need more memory for each object");
	for (i = 0; i < KEYED; i++)
		fd[i] = hwt_open(0);
	before = slab_pages();
	for (i = 0; i < KEYED; i++)
		ASSERT_EQ(0, hwt_with(fd[i], SETUP, setup, .flags = HWT_SETUP_KEYS));
	EXPECT_GT(KEYED * 600L, (slab_pages() - before) * sysconf(_SC_PAGESIZE));
}

TEST_HARNESS_MAIN
