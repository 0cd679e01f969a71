// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory is charged to the memory cgroup of who asks for it, however that is done: at its limit
 * there is ENOMEM, nobody is killed, and nobody else notices.
 *
 * hwt-test: check stock
 * hwt-test: long
 * hwt-test: timeout 400
 */
#include "kselftest_harness.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "hwt_dev.h"

#define CGROUP		"/sys/fs/cgroup"
#define GROUP		CGROUP "/hwt-cgroup"
#define GROUP_MAX	(16L << 20)

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* The value behind a word in a file of such lines; -1 if it is not there. */
static long read_word(const char *path, const char *word)
{
	FILE *file = fopen(path, "r");
	char name[64];
	long value = -1, n;

	while (file && fscanf(file, "%63s %ld", name, &n) == 2)
		if (!strcmp(name, word))
			value = n;
	if (file)
		fclose(file);
	return value;
}

/*
 * What the child in the group tells, in memory that both have touched. It has all it needs
 * before it comes to the limit: a page fault there would have it killed, and rightly so.
 */
struct told {
	int error;		/* what ended it */
	int unready;		/* something before that failed, in that line */
	unsigned int made;
	unsigned int listed;
	unsigned int worked;	/* of what needs no memory */
	int error_again;
	bool full;
	bool go_on;
	bool done;
};

/* The group, and the memory; NULL if they are not to be had. */
static volatile struct told *make_group(void)
{
	struct told *told;
	char text[32];

	rmdir(GROUP);
	snprintf(text, sizeof(text), "%ld", GROUP_MAX);
	if (mkdir(GROUP, 0755) || !write_file(GROUP "/memory.max", text))
		return NULL;
	/* Not there without swap in the kernel. */
	write_file(GROUP "/memory.swap.max", "0");
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	if (told == MAP_FAILED)
		return NULL;
	memset(told, 0, sizeof(*told));
	return told;
}

FIXTURE(group) {
	volatile struct told *told;
	int fd;
};

FIXTURE_SETUP(group)
{
	/* No SKIP() here: the harness of 6.1 goes on with the test after it. */
	ASSERT_TRUE(write_file(CGROUP "/cgroup.subtree_control", "+memory"));
	self->told = make_group();
	ASSERT_NE(NULL, (void *)self->told);
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(group)
{
	close(self->fd);
	rmdir(GROUP);
}

/* The child cannot do what it needs for the test. */
static void give_up(volatile struct told *told, int line)
{
	told->unready = line;
	told->full = true;
	told->done = true;
	_exit(1);
}

#define NEED(_true)					\
do {							\
	if (!(_true))					\
		give_up(told, __LINE__);		\
} while (0)

/* Each way of using up memory makes as many as it can. */
static bool join(void)
{
	volatile char stack[65536];
	unsigned int i;

	for (i = 0; i < sizeof(stack); i += 512)
		stack[i] = 0;
	return write_file(GROUP "/cgroup.procs", "0") && !mlockall(MCL_CURRENT);
}

/* Until the parent has looked at the group. */
static void tell_full(volatile struct told *told)
{
	told->full = true;
	while (!told->go_on)
		sleep_ns(10 * MSEC);
}

/* At the limit: what is there works, and what is given back can be had again. */
static void go_on_at_the_limit(volatile struct told *told, int fd, const __u64 *id)
{
	struct hwt_event event;
	struct hwt_get_args get;
	unsigned int i, tries;

	told->worked += hwt_move(fd, id[0], 0, 0) == HWT_STATE_PENDING;
	told->worked += hwt_next(fd, &event) == 1 && event.id == id[0];
	told->worked += !hwt_get(fd, id[1], &get);
	for (i = 1; i < 64; i++)
		told->worked += hwt_del(fd, id[i]) == HWT_STATE_PENDING;
	for (tries = 0; tries < PATIENCE_MS / 100; tries++) {
		told->error_again = hwt_add(fd, 0, HOUR, 0, NULL);
		if (told->error_again != -ENOMEM)
			break;
		sleep_ns(100 * MSEC);
	}
}

#define WORKED	(3 + 63)

static void by_ioctl(volatile struct told *told)
{
	static __u64 id[64];
	int fd = hwt_open(O_NONBLOCK), ret;

	NEED(fd >= 0 && join());
	do {
		ret = hwt_add(fd, 0, HOUR, 0, &id[told->made % 64]);
		told->made += !ret;
	} while (!ret);
	told->error = ret;
	tell_full(told);
	go_on_at_the_limit(told, fd, id);
}

static void by_periodic(volatile struct told *told)
{
	static __u64 id[64];
	int fd = hwt_open(O_NONBLOCK), i, ret;

	NEED(fd >= 0 && join());
	for (i = 0; i < 64; i++)
		NEED(!hwt_add(fd, 0, HOUR, 0, &id[i]));
	told->made = 64;
	do {
		ret = hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, HOUR, SEC, 0, NULL);
		told->made += !ret;
	} while (!ret);
	told->error = ret;
	tell_full(told);
	go_on_at_the_limit(told, fd, id);
}

/* Of so many operations that have been carried out. Remembers some ids. */
static int take_results(volatile struct told *told, const struct hwt_op *ops, unsigned int n,
			__u64 *id)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (ops[i].result)
			return ops[i].result;
		id[told->made++ % 64] = ops[i].id;
	}
	return 0;
}

#define OPS	256

static void fill_ops(struct hwt_op *ops)
{
	unsigned int i;

	for (i = 0; i < OPS; i++)
		ops[i] = (struct hwt_op){ .opcode = HWT_OP_SCHEDULE, .time_ns = HOUR };
}

static void by_batch(volatile struct told *told)
{
	static struct hwt_op ops[OPS];
	static __u64 id[64];
	struct hwt_batch_args args;
	int fd = hwt_open(O_NONBLOCK), ret;

	NEED(fd >= 0 && join());
	do {
		fill_ops(ops);
		args = (struct hwt_batch_args){
			.size = sizeof(args),
			.ops = (uintptr_t)ops,
			.count = OPS,
			.op_size = sizeof(ops[0]),
		};
		ret = hwt_call(fd, HWT_IOC_BATCH, &args);
		NEED(!ret && args.count == OPS);
		ret = take_results(told, ops, OPS, id);
	} while (!ret);
	told->error = ret;
	tell_full(told);
	go_on_at_the_limit(told, fd, id);
}

/* With rings events cannot be read, so what is tried at the limit is less. */
static void go_on_with_rings(volatile struct told *told, int fd, const __u64 *id)
{
	struct hwt_get_args get;
	unsigned int i, tries;

	told->worked += hwt_move(fd, id[0], 0, 2 * HOUR) == HWT_STATE_PENDING;
	told->worked += !hwt_get(fd, id[0], &get);
	told->worked += !hwt_get(fd, id[1], &get);
	for (i = 1; i < 64; i++)
		told->worked += hwt_del(fd, id[i]) == HWT_STATE_PENDING;
	for (tries = 0; tries < PATIENCE_MS / 100; tries++) {
		told->error_again = hwt_add(fd, 0, HOUR, 0, NULL);
		if (told->error_again != -ENOMEM)
			break;
		sleep_ns(100 * MSEC);
	}
}

static void with_rings(volatile struct told *told, bool poll)
{
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.clock = CLOCK_MONOTONIC,
		.flags = HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU,
	};
	struct hwt_rings_args args = {
		.size = sizeof(args),
		.flags = poll ? HWT_RINGS_POLL : 0,
		.op_entries = OPS,
		.event_entries = 64,
	};
	struct hwt_enter_args enter;
	static __u64 id[64];
	int fd = hwt_open(O_NONBLOCK), ret;
	struct hwt_rings *rings;
	struct hwt_op *ops;
	__u32 tail = 0;

	NEED(fd >= 0);
	NEED(!poll || !hwt_call(fd, HWT_IOC_SETUP, &setup));
	/* The cgroup is that of the process when it makes the rings. */
	NEED(write_file(GROUP "/cgroup.procs", "0"));
	NEED(!hwt_call(fd, HWT_IOC_RINGS, &args));
	rings = mmap(NULL, args.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(rings != MAP_FAILED);
	ops = (void *)((char *)rings + args.ops_offset);
	NEED(join());
	do {
		fill_ops(ops);
		tail += OPS;
		__atomic_store_n(&rings->op_tail, tail, __ATOMIC_RELEASE);
		while (!poll && __atomic_load_n(&rings->op_head, __ATOMIC_ACQUIRE) != tail) {
			enter = (struct hwt_enter_args){
				.size = sizeof(enter),
				.submit = OPS,
			};
			NEED(!hwt_call(fd, HWT_IOC_ENTER, &enter) && enter.submit);
		}
		while (__atomic_load_n(&rings->op_head, __ATOMIC_ACQUIRE) != tail)
			sleep_ns(MSEC);
		ret = take_results(told, ops, OPS, id);
	} while (!ret);
	told->error = ret;
	tell_full(told);
	go_on_with_rings(told, fd, id);
}

static void by_rings(volatile struct told *told)
{
	with_rings(told, false);
}

/* Here it is the wheel's thread that asks for memory. */
static void by_polled_rings(volatile struct told *told)
{
	with_rings(told, true);
}

FIXTURE_VARIANT(group) {
	void (*use_up)(volatile struct told *told);
};

FIXTURE_VARIANT_ADD(group, ioctl) { by_ioctl };
FIXTURE_VARIANT_ADD(group, periodic) { by_periodic };
FIXTURE_VARIANT_ADD(group, batch) { by_batch };
FIXTURE_VARIANT_ADD(group, rings) { by_rings };
FIXTURE_VARIANT_ADD(group, polled_rings) { by_polled_rings };

/* The neighbour: one timeout after the other, as long as the child is at it. */
static unsigned int neighbour(struct __test_metadata *_metadata, int fd,
			      const volatile bool *until)
{
	__u64 begun = now_ns();
	struct hwt_event event;
	unsigned int n = 0;

	while (!*until && now_ns() - begun < 120 * SEC) {
		EXPECT_EQ(0, hwt_add(fd, 0, MSEC, n, NULL));
		EXPECT_EQ(1, hwt_next(fd, &event));
		EXPECT_EQ((__u64)n++, event.user_data);
	}
	return n;
}

TEST_F_TIMEOUT(group, at_its_limit, 300)
{
	volatile struct told *told = self->told;
	unsigned int rounds;
	int status;
	long used;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(self->fd);
		variant->use_up(told);
		told->done = true;
		_exit(0);
	}
	rounds = neighbour(_metadata, self->fd, &told->full);
	ASSERT_TRUE(told->full);
	used = read_number(GROUP "/memory.current");
	told->go_on = true;
	rounds += neighbour(_metadata, self->fd, &told->done);
	if (!told->done)
		kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_TRUE(told->done);
	EXPECT_EQ(0, told->unready);
	EXPECT_EQ(-ENOMEM, told->error);
	TH_LOG("%u timeouts in %ld of %ld bytes; the neighbour had %u", told->made, used,
	       GROUP_MAX, rounds);
	EXPECT_LT(10000U, told->made);
	EXPECT_LT(GROUP_MAX - GROUP_MAX / 8, used);
	EXPECT_GE(GROUP_MAX, used);
	EXPECT_EQ((unsigned int)WORKED, told->worked);
	EXPECT_EQ(0, told->error_again);
	EXPECT_LT(0, read_word(GROUP "/memory.events", "max"));
	EXPECT_EQ(0, read_word(GROUP "/memory.events", "oom"));
	EXPECT_EQ(0, read_word(GROUP "/memory.events", "oom_kill"));
	EXPECT_LT(0U, rounds);
}

/* -- What is large in itself ---------------------------------------------- */

FIXTURE(large) {
	volatile struct told *told;
};

FIXTURE_SETUP(large)
{
	ASSERT_TRUE(write_file(CGROUP "/cgroup.subtree_control", "+memory"));
	self->told = make_group();
	ASSERT_NE(NULL, (void *)self->told);
}

FIXTURE_TEARDOWN(large)
{
	rmdir(GROUP);
}

FIXTURE_VARIANT(large) {
	bool wheels;
};

FIXTURE_VARIANT_ADD(large, rings) { false };
FIXTURE_VARIANT_ADD(large, wheels) { true };

static int ask_for_much(int fd, bool wheel)
{
	struct hwt_rings_args rings = {
		.size = sizeof(rings),
		.op_entries = HWT_RING_ENTRIES_MAX / 2,
		.event_entries = HWT_RING_ENTRIES_MAX / 2,
	};
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.clock = CLOCK_MONOTONIC,
		.ticks_per_wheel = 65536,
		.levels = 2,
	};

	return wheel ? hwt_call(fd, HWT_IOC_SETUP, &setup) :
		       hwt_call(fd, HWT_IOC_RINGS, &rings);
}

/* Each of these is megabytes: some fit, the next one does not, and none is left behind. */
static void use_much(volatile struct told *told, bool wheel)
{
	int fd[32], ret = 0, round;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = hwt_open(0);
		NEED(fd[i] >= 0);
	}
	NEED(join());
	for (n = 0; !ret && n < ARRAY_SIZE(fd); n++)
		ret = ask_for_much(fd[n], wheel);
	told->error = ret;
	told->made = n - !!ret;
	NEED(ret && told->made);
	/* What has failed has left nothing: the same again and again. */
	for (round = 0; round < 20; round++)
		told->worked += ask_for_much(fd[n - 1], wheel) == -ENOMEM;
	/* The first gives back what it has. */
	close(fd[0]);
	told->error_again = ask_for_much(fd[n - 1], wheel);
	told->done = true;
}

TEST_F_TIMEOUT(large, at_its_limit, 120)
{
	volatile struct told *told = self->told;
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		use_much(told, variant->wheels);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, told->unready);
	EXPECT_TRUE(told->done);
	TH_LOG("%u fit", told->made);
	EXPECT_EQ(-ENOMEM, told->error);
	EXPECT_EQ(20U, told->worked);
	EXPECT_EQ(0, told->error_again);
	EXPECT_EQ(0, read_word(GROUP "/memory.events", "oom"));
	EXPECT_EQ(0, read_word(GROUP "/memory.events", "oom_kill"));
}

TEST_HARNESS_MAIN
