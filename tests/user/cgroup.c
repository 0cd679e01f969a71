// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory is charged to the memory cgroup of the caller, by each way to ask for it: at the limit
 * there is ENOMEM, no process is killed, and no other process notices.
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
 * What the child in the group tells, in memory that both have touched. It has all it needs
 * before it comes to the limit: a page fault there would have it killed, and rightly so.
 */
struct told {
	int error;		/* what ended it */
	unsigned int made;
	unsigned int listed;
	unsigned int worked;	/* of what needs no memory */
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
	/* No SKIP() here: the harness of 6.1 goes on with the test after it. */
	ASSERT_TRUE(make_group(GROUP, text));
	self->told = mmap(NULL, sizeof(*self->told), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->told);
	memset((void *)self->told, 0, sizeof(*self->told));
	observer_start(_metadata, &self->neighbour, "100");
}

FIXTURE_TEARDOWN(group)
{
	rmdir(GROUP);
}

/* What the child cannot do without; which line it was is its exit status, more or less. */
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

/* Carry out so many operations. Return: the first error of one. */
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

/* Make as many as there is memory for, then go on with what is there. */
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

	/* Until the parent has looked at the group. */
	told->full = true;
	while (!told->go_on)
		sleep_ns(10 * MSEC);

	/* At the limit what is there works, */
	told->worked += hwt_move(fd, id[0], 0, 0) == HWT_STATE_PENDING;
	told->worked += hwt_wait(fd, PATIENCE_MS) == POLLIN;
	told->worked += (way == RINGS ? ring_wait(&ring, 1) && ring_pop(&ring, &event) :
					hwt_read(fd, &event, 1) == 1) && event.id == id[0];
	told->worked += !hwt_get(fd, id[1], &get);
	for (i = 1; i < IDS; i++)
		told->worked += hwt_del(fd, id[i]) == HWT_STATE_PENDING;
	/* and what is given back can be had again, soon; so can what a closed context had. */
	told->error_again = add_soon(other);
	close(fd);
	for (i = 0; way == IOCTL && !told->error_again && i < 5000; i++)
		told->error_again = add_soon(other);
}

#define WORKED	(4 + IDS - 1)

static int ask_for_much(int fd, enum way way)
{
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.ticks_per_wheel = 65536,
		.levels = 2,
	};
	struct hwt_rings_args rings;

	return way == LARGE_WHEELS ? hwt_call(fd, HWT_IOC_SETUP, &setup) :
	       hwt_rings(fd, 0, HWT_RING_ENTRIES_MAX / 2, HWT_RING_ENTRIES_MAX / 2, &rings);
}

#define ROUNDS	20

/* Each of these is megabytes: some fit, the next one does not, and none is left behind. */
static void use_much(volatile struct told *told, enum way way)
{
	/* With this, half of a wheel is what does not fit: not a matter of a few pages. */
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
	/* What has failed has left nothing: the same again and again. */
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
	/* Of many operations at once, those behind the one that failed may fit. */
	EXPECT_LE(told->made, told->listed);
	EXPECT_GE(told->made + (variant->way < RINGS ? 0 : OPS), told->listed);
	EXPECT_LT(5000U, told->made);
	EXPECT_LT(GROUP_MAX - GROUP_MAX / 8, used);
	EXPECT_GE(GROUP_MAX, used);
	EXPECT_LT(0, read_word(GROUP "/memory.events", "max"));
}

TEST_HARNESS_MAIN
