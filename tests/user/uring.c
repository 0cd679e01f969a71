// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timeouts that are commands of io_uring: each completes exactly once.
 *
 * hwt-test: only stock612 rt612 debug612 rtdebug newest clang
 * hwt-test: libs uring
 * hwt-test: timeout 600
 */
#include "kselftest_harness.h"
#include <liburing.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "fixtures.h"
#include "guest.h"

#define QUEUE		1024
#define NO_RESULT	1234

/* -- Commands ------------------------------------------------------------ */

struct uring {
	struct io_uring ring;
	unsigned int flags;		/* IORING_SETUP_ */
	unsigned int sqe_flags;		/* IOSQE_ */
};

static int uring_init(struct uring *uring, unsigned int flags, unsigned int sqe_flags)
{
	uring->flags = flags;
	uring->sqe_flags = sqe_flags;
	return io_uring_queue_init(QUEUE, &uring->ring, flags);
}

static int uring_submit(struct uring *uring)
{
	return io_uring_submit(&uring->ring);
}

static struct io_uring_sqe *uring_sqe(struct uring *uring)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(&uring->ring))) {
		uring_submit(uring);
		if (uring->flags & IORING_SETUP_SQPOLL)
			io_uring_sqring_wait(&uring->ring);
	}
	memset(sqe, 0, sizeof(*sqe));
	sqe->flags = uring->sqe_flags;
	return sqe;
}

static struct io_uring_sqe *uring_command(struct uring *uring, int fd, __u32 op, __u64 name,
					  __u64 addr, __u32 flags, __u64 time_ns)
{
	const struct hwt_uring_cmd cmd = { .time_ns = time_ns, .flags = flags };
	struct io_uring_sqe *sqe = uring_sqe(uring);

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = op;
	sqe->user_data = name;
	sqe->addr = addr;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	return sqe;
}

static void uring_arm(struct uring *uring, int fd, __u64 name, __u32 flags, __u64 time_ns)
{
	uring_command(uring, fd, HWT_URING_ARM, name, name, flags, time_ns);
}

static void uring_move(struct uring *uring, int fd, __u64 name, __u64 target, __u32 flags,
		       __u64 time_ns)
{
	uring_command(uring, fd, HWT_URING_MODIFY, name, target, flags, time_ns);
}

static void uring_cancel(struct uring *uring, int fd, __u64 name, __u64 target)
{
	uring_command(uring, fd, HWT_URING_CANCEL, name, target, 0, 0);
}

/* Wait for the next completion. Return its result, and store its user_data. */
static int uring_reap(struct uring *uring, int timeout_ms, __u64 *name)
{
	struct __kernel_timespec patience = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * MSEC,
	};
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_wait_cqe_timeout(&uring->ring, &cqe, &patience);
	} while (ret == -EINTR);
	if (ret)
		return ret;
	ret = cqe->res;
	if (name)
		*name = cqe->user_data;
	io_uring_cqe_seen(&uring->ring, cqe);
	return ret;
}

/* Submit, and wait for the completion of @name. NO_RESULT: another one came. */
static int uring_do(struct uring *uring, __u64 name)
{
	__u64 got = 0;
	int ret;

	uring_submit(uring);
	ret = uring_reap(uring, PATIENCE_MS, &got);
	return got == name ? ret : NO_RESULT;
}

/* Return whether there are no completions: that of a no-op must be the next. */
static int uring_empty(struct uring *uring)
{
	struct io_uring_sqe *sqe = uring_sqe(uring);

	io_uring_prep_nop(sqe);
	sqe->flags = 0;
	sqe->user_data = ~0ULL;
	return uring_do(uring, ~0ULL) == 0;
}

/* Arm a timeout that does not fire. Wait until it is armed, since a worker may do this. */
static bool uring_hold(struct uring *uring, int fd, __u64 name)
{
	__u64 scheduled = hwt_now(fd).scheduled;

	uring_arm(uring, fd, name, 0, HOUR);
	uring_submit(uring);
	return until(hwt_now(fd).scheduled == scheduled + 1);
}

/*
 * If a ring is closed with outstanding commands while the submitting task lives, an assertion in
 * io_uring is wrong (6.12: io_lockdep_assert_cq_locked()). Expect its report, in this process.
 */
static pid_t expecting;

/* Not in the program that a test executes */
static __attribute__((constructor)) void expect_begin(void)
{
	if (access("/proc/lockdep", F_OK) || getenv("HWT_URING_EXECUTED"))
		return;
	expecting = getpid();
	write_text("/dev/kmsg", "hwt-expect-begin: io_get_cqe_overflow|rings are closed\n");
	write_text("/dev/kmsg", "rings are closed\n");
}

static __attribute__((destructor)) void expect_end(void)
{
	if (expecting != getpid())
		return;
	/* The kernel closes rings asynchronously. */
	sleep(2);
	write_text("/dev/kmsg", "hwt-expect-end\n");
}

/* -- One ring, of each kind ---------------------------------------------- */

FIXTURE(ring) {
	struct uring uring;
	int fd;
};

FIXTURE_VARIANT(ring) {
	unsigned int flags;
	unsigned int sqe_flags;
	unsigned int many;
};

FIXTURE_VARIANT_ADD(ring, plain) { .many = 10000 };
FIXTURE_VARIANT_ADD(ring, coop) { .flags = IORING_SETUP_COOP_TASKRUN, .many = 10000 };
FIXTURE_VARIANT_ADD(ring, defer) {
	.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	.many = 10000,
};

FIXTURE_VARIANT_ADD(ring, sqpoll) { .flags = IORING_SETUP_SQPOLL, .many = 10000 };
FIXTURE_VARIANT_ADD(ring, big_entries) {
	.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32, .many = 1000,
};

/* A worker issues the commands, without io_uring's locks. */
FIXTURE_VARIANT_ADD(ring, worker) { .sqe_flags = IOSQE_ASYNC, .many = 2000 };

static int open_keyed(void)
{
	int fd = hwt_open(O_NONBLOCK), ret;

	ret = hwt_with(fd, SETUP, setup, .flags = HWT_SETUP_KEYS);
	return ret ? ret : fd;
}

FIXTURE_SETUP(ring)
{
	self->fd = open_keyed();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, uring_init(&self->uring, variant->flags, variant->sqe_flags));
}

FIXTURE_TEARDOWN(ring)
{
	io_uring_queue_exit(&self->uring.ring);
	close(self->fd);
}

TEST_F(ring, completes_when_it_is_due)
{
	const struct hwt_uring_cmd with_slack = { .time_ns = 30 * MSEC, .slack_us = 10000 };
	__u64 due = now_ns() + 50 * MSEC;
	struct io_uring_sqe *sqe;
	struct hwt_event event;

	uring_arm(&self->uring, self->fd, 1, HWT_ARM_ABSOLUTE, due);
	EXPECT_EQ(0, uring_do(&self->uring, 1));
	EXPECT_LE(due, now_ns());

	due = now_ns() + 30 * MSEC;
	sqe = uring_command(&self->uring, self->fd, HWT_URING_ARM, 2, 2, 0, 0);
	memcpy(sqe->cmd, &with_slack, sizeof(with_slack));
	EXPECT_EQ(0, uring_do(&self->uring, 2));
	EXPECT_LE(due, now_ns());

	/* A past deadline, and the key of a command that has completed. */
	uring_arm(&self->uring, self->fd, 1, HWT_ARM_ABSOLUTE, 0);
	EXPECT_EQ(0, uring_do(&self->uring, 1));

	/* There is no event, and no timeout is left. */
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	EXPECT_TRUE(stats_are(self->fd, .scheduled = 3, .expired = 3));
	EXPECT_TRUE(uring_empty(&self->uring));
}

TEST_F(ring, modify_moves_it)
{
	struct hwt_list_entry entry;
	__u64 name, due;

	ASSERT_TRUE(uring_hold(&self->uring, self->fd, 1));
	due = now_ns() + 20 * MSEC;
	uring_move(&self->uring, self->fd, 10, 1, HWT_ARM_ABSOLUTE, due);
	uring_submit(&self->uring);
	EXPECT_EQ(0, uring_reap(&self->uring, PATIENCE_MS, &name));
	EXPECT_EQ(0, uring_reap(&self->uring, PATIENCE_MS, &name));
	EXPECT_LE(due, now_ns());

	uring_arm(&self->uring, self->fd, 2, 0, 600 * SEC);
	uring_submit(&self->uring);
	ASSERT_TRUE(until(hwt_timeouts(self->fd) == 1));
	uring_move(&self->uring, self->fd, 20, 2, 0, HOUR);
	EXPECT_EQ(0, uring_do(&self->uring, 20));
	ASSERT_EQ(1, hwt_entries(self->fd, &entry, 1));
	EXPECT_LT(HOUR / 2, entry.remaining_ns);
}

TEST_F(ring, cancel_ends_it)
{
	__u64 names = 0, name;
	int i, ret;

	ASSERT_TRUE(uring_hold(&self->uring, self->fd, 1));
	/* sqe->user_data belongs to the program: two commands may have the same. */
	uring_command(&self->uring, self->fd, HWT_URING_ARM, 1, 100, 0, HOUR);
	uring_cancel(&self->uring, self->fd, 2, 1);
	uring_submit(&self->uring);
	for (i = 0; i < 2; i++) {
		ret = uring_reap(&self->uring, PATIENCE_MS, &name);
		EXPECT_EQ(name == 1 ? -ECANCELED : 0, ret);
		names |= name;
	}
	EXPECT_EQ(3, names);
	ASSERT_TRUE(until(hwt_now(self->fd).scheduled == 2));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, 100));
	EXPECT_EQ(-ECANCELED, uring_do(&self->uring, 1));
	EXPECT_EQ(0, hwt_timeouts(self->fd));
	uring_cancel(&self->uring, self->fd, 2, 1);
	EXPECT_EQ(-ENOENT, uring_do(&self->uring, 2));
}

TEST_F(ring, errors)
{
	static const struct {
		int error;
		__u32 op, flags, len;
		__u64 name, addr, time_ns;
	} bad[] = {
		{ EEXIST, HWT_URING_ARM, 0, 0, 2, 1, 0 },
		{ EINVAL, HWT_URING_ARM, HWT_ARM_USER_DATA, 0, 2, 2, 0 },
		{ EINVAL, HWT_URING_ARM, 0, 1, 2, 2, 0 },
		{ ENOENT, HWT_URING_MODIFY, 0, 0, 2, 2, 0 },
		{ EINVAL, HWT_URING_MODIFY, HWT_ARM_USER_DATA, 0, 2, 1, 0 },
		{ ENOENT, HWT_URING_CANCEL, 0, 0, 2, 2, 0 },
		{ EINVAL, HWT_URING_CANCEL, 0, 0, 2, 1, 1 },
		{ EINVAL, HWT_URING_CANCEL, HWT_ARM_ABSOLUTE, 0, 2, 1, 0 },
		{ ENOTTY, HWT_URING_CANCEL + 1, 0, 0, 2, 1, 0 },
		{ ENOTTY, HWT_IOC_SCHEDULE, 0, 0, 2, 0, 0 },
	};
	int plain = hwt_open(O_NONBLOCK), reader = open(HWT_DEV, O_RDONLY | O_CLOEXEC);
	struct uring *uring = &self->uring;
	struct io_uring_sqe *sqe;
	unsigned int i;

	ASSERT_TRUE(uring_hold(uring, self->fd, 1));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		sqe = uring_command(uring, self->fd, bad[i].op, bad[i].name, bad[i].addr,
				    bad[i].flags, bad[i].time_ns);
		sqe->len = bad[i].len;
		EXPECT_EQ(-bad[i].error, uring_do(uring, bad[i].name))
			TH_LOG("number %u", i);
	}
	/* A context without keys, and a read-only descriptor */
	uring_arm(uring, plain, 2, 0, 0);
	EXPECT_EQ(-EINVAL, uring_do(uring, 2));
	uring_arm(uring, reader, 2, 0, 0);
	EXPECT_EQ(-EBADF, uring_do(uring, 2));
	close(plain);
	close(reader);
	EXPECT_TRUE(stats_are(self->fd, .timeouts = 1, .pending = 1, .scheduled = 1));
	EXPECT_TRUE(uring_empty(uring));
}

TEST_F(ring, limit_of_pending)
{
	close(self->fd);
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_EQ(0, hwt_with(self->fd, SETUP, setup, .max_pending = 2, .flags = HWT_SETUP_KEYS));
	ASSERT_TRUE(uring_hold(&self->uring, self->fd, 1));
	ASSERT_TRUE(uring_hold(&self->uring, self->fd, 2));
	uring_arm(&self->uring, self->fd, 3, 0, 0);
	EXPECT_EQ(-ENOSPC, uring_do(&self->uring, 3));
	/* io_uring must not repeat the attempt. */
	EXPECT_EQ(1, hwt_now(self->fd).rejected);
	EXPECT_EQ(2, hwt_timeouts(self->fd));
}

TEST_F(ring, is_a_timeout_like_any_other)
{
	struct hwt_list_entry entry;
	struct hwt_get_args get;

	ASSERT_TRUE(uring_hold(&self->uring, self->fd, 77));
	ASSERT_EQ(1, hwt_entries(self->fd, &entry, 1));
	EXPECT_EQ(77, entry.id);
	EXPECT_EQ(77, entry.user_data);
	EXPECT_EQ(HWT_STATE_PENDING, entry.state);
	EXPECT_EQ(HWT_MODE_ONE_SHOT, entry.mode);
	ASSERT_EQ(0, hwt_get(self->fd, entry.id, &get));
	EXPECT_EQ(77, get.user_data);
	EXPECT_EQ(entry.deadline_ns, get.deadline_ns);

	/* A key cannot be changed. */
	EXPECT_EQ(-EINVAL, hwt_with(self->fd, MODIFY, modify, .flags = HWT_ARM_USER_DATA,
				    .id = entry.id, .time_ns = HOUR));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, entry.id, 0, 20 * MSEC));
	EXPECT_EQ(0, uring_do(&self->uring, 77));
	EXPECT_EQ(-ENOENT, hwt_get(self->fd, entry.id, &get));
}

TEST_F(ring, beside_timeouts_with_events)
{
	struct hwt_event event;

	ASSERT_EQ(0, hwt_key(self->fd, 0, 0, 5));
	uring_arm(&self->uring, self->fd, 4, 0, 0);
	EXPECT_EQ(0, uring_do(&self->uring, 4));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(5, event.id);
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	/* Commands and timeouts with events share the keys. */
	ASSERT_EQ(0, hwt_key(self->fd, 0, HOUR, 6));
	uring_arm(&self->uring, self->fd, 6, 0, 0);
	EXPECT_EQ(-EEXIST, uring_do(&self->uring, 6));
	uring_cancel(&self->uring, self->fd, 7, 6);
	EXPECT_EQ(0, uring_do(&self->uring, 7));
	/* HWT_IOC_SCHEDULE of a command's key moves the command. */
	ASSERT_TRUE(uring_hold(&self->uring, self->fd, 8));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_key(self->fd, 0, 0, 8));
	EXPECT_EQ(0, uring_do(&self->uring, 8));
}

TEST_F(ring, cancel_all_ends_them)
{
	struct hwt_event event;
	__u64 names = 0, name;
	int i;

	for (i = 0; i < 10; i++)
		uring_arm(&self->uring, self->fd, i, 0, HOUR);
	uring_submit(&self->uring);
	ASSERT_TRUE(until(hwt_timeouts(self->fd) == 10));
	EXPECT_EQ(10, hwt_del_all(self->fd));
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(-ECANCELED, uring_reap(&self->uring, PATIENCE_MS, &name));
		names |= 1 << name;
	}
	EXPECT_EQ(0x3ff, names);
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	uring_arm(&self->uring, self->fd, 1, 0, 0);
	EXPECT_EQ(0, uring_do(&self->uring, 1));
	EXPECT_EQ(10, hwt_now(self->fd).cancelled);
	EXPECT_EQ(0, hwt_timeouts(self->fd));
	EXPECT_TRUE(uring_empty(&self->uring));
}

TEST_F_TIMEOUT(ring, each_of_many_completes_once, 120)
{
	unsigned int many = quick() ? variant->many / 10 : variant->many, i;
	unsigned char *seen = calloc(many, 1);
	__u64 name;
	int ret;

	ASSERT_TRUE(seen);
	for (i = 0; i < many; i++)
		uring_arm(&self->uring, self->fd, (__u64)i << 32, 0, i * 7919 % 200 * MSEC);
	uring_submit(&self->uring);
	for (i = 0; i < many; i++) {
		ret = uring_reap(&self->uring, PATIENCE_MS, &name);
		ASSERT_EQ(0, ret);
		ASSERT_GT(many, name >> 32);
		ASSERT_EQ(0, seen[name >> 32]);
		seen[name >> 32] = 1;
	}
	EXPECT_EQ(0, hwt_timeouts(self->fd));
	EXPECT_TRUE(uring_empty(&self->uring));
	free(seen);
}

#define RACE_CANCEL	0x10000000000ULL
#define RACE_MOVE	0x20000000000ULL
#define RACE_ROUNDS	40
#define RACE_SIZE	100U

/* Arm, move and cancel commands with keys and names from @base on. */
static void race(struct __test_metadata *_metadata, struct uring *uring, int fd, __u64 base)
{
	int arm[RACE_SIZE], move[RACE_SIZE], cancel[RACE_SIZE], *to, round, ret;
	unsigned int i;
	__u64 name;

	for (round = 0; round < RACE_ROUNDS; round++) {
		for (i = 0; i < RACE_SIZE; i++) {
			arm[i] = NO_RESULT;
			move[i] = NO_RESULT;
			cancel[i] = NO_RESULT;
			uring_arm(uring, fd, base + i, 0, round % 7 * MSEC);
		}
		for (i = 0; i < RACE_SIZE; i++)
			uring_move(uring, fd, RACE_MOVE | (base + i), base + i, 0,
				   round % 10 * MSEC);
		uring_submit(uring);
		sleep_ns(round * 250 * USEC);
		for (i = 0; i < RACE_SIZE; i++)
			uring_cancel(uring, fd, RACE_CANCEL | (base + i), base + i);
		uring_submit(uring);
		for (i = 0; i < 3 * RACE_SIZE; i++) {
			ret = uring_reap(uring, PATIENCE_MS, &name);
			to = name & RACE_CANCEL ? cancel : name & RACE_MOVE ? move : arm;
			name = (name & ~(RACE_CANCEL | RACE_MOVE)) - base;
			ASSERT_GT(RACE_SIZE, name);
			ASSERT_EQ(NO_RESULT, to[name]);
			to[name] = ret;
		}
		for (i = 0; i < RACE_SIZE; i++) {
			ASSERT_EQ(cancel[i] ? -ENOENT : 0, cancel[i]);
			ASSERT_EQ(cancel[i] ? 0 : -ECANCELED, arm[i]);
			ASSERT_TRUE(!move[i] || move[i] == -ENOENT);
		}
	}
	EXPECT_TRUE(uring_empty(uring));
}

/*
 * Two processes with a ring each move and cancel timeouts of one context at about the time when
 * these fire. Each command completes once, and its result agrees with that of its cancel.
 */
TEST_F_TIMEOUT(ring, fires_or_is_cancelled, 120)
{
	struct uring own;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		EXPECT_EQ(0, uring_init(&own, variant->flags, variant->sqe_flags));
		race(_metadata, &own, self->fd, 1 << 20);
		_exit(!_metadata->passed);
	}
	race(_metadata, &self->uring, self->fd, 0);
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(0, hwt_timeouts(self->fd));
}

/* Cancel timeouts by id, while io_uring cancels the commands of a closed ring. */
static void *cancel_all(void *arg)
{
	struct hwt_list_entry entries[16];
	int fd = *(int *)arg, i, n;

	while ((n = hwt_entries(fd, entries, 16)) >= 0) {
		for (i = 0; i < n; i++) {
			if (entries[i].user_data == ~0ULL)
				return NULL;
			hwt_del(fd, entries[i].id);
		}
	}
	return (void *)1;
}

TEST_F_TIMEOUT(ring, closed_while_others_cancel, 120)
{
	pthread_t thread;
	void *failed;
	int round, i;

	for (round = 0; round < 20; round++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, cancel_all, &self->fd));
		for (i = 0; i < 500; i++)
			uring_arm(&self->uring, self->fd, i, 0, i < 2 ? HOUR : i % 8 * MSEC);
		uring_submit(&self->uring);
		io_uring_queue_exit(&self->uring.ring);
		ASSERT_EQ(0, uring_init(&self->uring, variant->flags, variant->sqe_flags));
		ASSERT_TRUE(until(hwt_timeouts(self->fd) == 0));
		/* Tell the thread to end. */
		ASSERT_EQ(0, hwt_key(self->fd, 0, HOUR, ~0ULL));
		ASSERT_EQ(0, pthread_join(thread, &failed));
		ASSERT_EQ(NULL, failed);
		ASSERT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, ~0ULL));
	}
	for (i = 0; i < 1000; i++)
		uring_arm(&self->uring, self->fd, i, 0, i % 8 * MSEC);
	uring_submit(&self->uring);
	EXPECT_LE(0, hwt_del_all(self->fd));
	io_uring_queue_exit(&self->uring.ring);
	EXPECT_TRUE(until(hwt_timeouts(self->fd) == 0));
	ASSERT_EQ(0, uring_init(&self->uring, variant->flags, variant->sqe_flags));
}

TEST_F(ring, descriptor_closed_while_armed)
{
	__u64 due = now_ns() + 100 * MSEC, name;
	char seen[128];

	uring_arm(&self->uring, self->fd, 1, HWT_ARM_ABSOLUTE, due);
	uring_arm(&self->uring, self->fd, 2, 0, HOUR);
	uring_submit(&self->uring);
	ASSERT_TRUE(until(hwt_now(self->fd).scheduled == 2));
	close(self->fd);
	snprintf(seen, sizeof(seen), "%s/hwtctl stats --json | grep '\"pid\":%d,\"fd\":null'",
		 getenv("HWT_BIN"), getpid());
	EXPECT_EQ(0, system(seen));
	/* Commands keep the context. Those that have not completed end with the ring. */
	EXPECT_EQ(0, uring_reap(&self->uring, PATIENCE_MS, &name));
	EXPECT_EQ(1, name);
	EXPECT_LE(due, now_ns());
	self->fd = open_keyed();
	ASSERT_LE(0, self->fd);
	EXPECT_TRUE(uring_empty(&self->uring));
}

/* -- A process that exits or calls execve() ------------------------------ */

/* In the program that a test executes: report, and wait to be killed. */
__attribute__((constructor)) static void executed(void)
{
	const char *fd = getenv("HWT_URING_EXECUTED");

	if (!fd)
		return;
	if (write(atoi(fd), "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Arm timeouts, and wait to be killed, or execute a program that writes to @told. */
static void arm_and_go(unsigned int flags, unsigned int sqe_flags, int fd, unsigned int many,
		       int told)
{
	struct uring uring;
	char number[16];
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (uring_init(&uring, flags, sqe_flags))
		_exit(1);
	for (i = 0; i < many; i++)
		uring_arm(&uring, fd, i, 0, HOUR);
	uring_submit(&uring);
	if (told < 0)
		for (;;)
			pause();
	if (!until(hwt_timeouts(fd) == many))
		_exit(2);
	snprintf(number, sizeof(number), "%d", told);
	setenv("HWT_URING_EXECUTED", number, 1);
	execl("/proc/self/exe", "uring", NULL);
	_exit(3);
}

TEST_F_TIMEOUT(ring, killed_or_executes_with_many_outstanding, 200)
{
	unsigned int many = (quick() ? 1 : 5) * variant->many;
	int told[2], executes;
	__u64 begin;
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(told));
	for (executes = 0; executes < 2; executes++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			arm_and_go(variant->flags, variant->sqe_flags, self->fd, many,
				   executes ? told[1] : -1);
		if (executes) {
			close(told[1]);
			ASSERT_EQ(1, read(told[0], &byte, 1));
		}
		/* When the new program runs, the commands have ended. */
		EXPECT_TRUE(executes ? !hwt_timeouts(self->fd) :
				       until(hwt_timeouts(self->fd) == many));
		begin = now_ns();
		EXPECT_EQ(-SIGKILL, child_kill(pid));
		EXPECT_GT(PATIENCE_MS * MSEC, now_ns() - begin);
		EXPECT_TRUE(until(hwt_timeouts(self->fd) == 0));
	}
}

#define GROUP	CGROUP "/hwt-uring"

/* Task work of contexts that are always due never ends. Yet the task freezes, stops and ends. */
TEST_F_TIMEOUT(ring, stops_and_ends_while_always_due, 120)
{
	struct uring uring;
	int fd[8], i, key;
	clockid_t clock;
	__u64 used;
	pid_t pid;

	mkdir(GROUP, 0755);
	for (i = 0; i < 8; i++)
		ASSERT_LE(0, fd[i] = open_keyed());
	pid = fork();
	if (!pid) {
		write_text(GROUP "/cgroup.procs", "0");
		uring_init(&uring, variant->flags, variant->sqe_flags);
		for (i = 0; i < 8; i++)
			uring_arm(&uring, fd[i], 1, 0, HWT_NEVER);
		uring_submit(&uring);
		for (;;)
			uring_reap(&uring, PATIENCE_MS, NULL);
	}
	for (i = 0; i < 8; i++) {
		EXPECT_TRUE(until(hwt_timeouts(fd[i]) == 1));
		for (key = 2; key < 1500; key++)
			EXPECT_EQ(0, hwt_arm(fd[i], NULL, .id = key, .period_ns = 1,
					     .mode = HWT_MODE_FIXED_RATE));
	}
	EXPECT_TRUE(write_text(GROUP "/cgroup.freeze", "1"));
	clock_getcpuclockid(pid, &clock);
	sleep(1);
	used = clock_ns(clock);
	sleep(1);
	EXPECT_GT(SEC / 2, clock_ns(clock) - used);
	EXPECT_TRUE(write_text(GROUP "/cgroup.freeze", "0"));
	kill(pid, SIGSTOP);
	EXPECT_EQ(pid, waitpid(pid, NULL, WUNTRACED));
	EXPECT_EQ(-SIGKILL, child_kill(pid));
}

/* The ring lives on: commands of a dead child expire, or end if they would have to carry a pass. */
TEST_F(ring, child_arms_and_dies)
{
	__u64 due = now_ns() + 500 * MSEC, name;
	pid_t pid;

	if (variant->flags & IORING_SETUP_SINGLE_ISSUER)
		SKIP(return, "only the creator may use such a ring");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		uring_arm(&self->uring, self->fd, 1, HWT_ARM_ABSOLUTE, due);
		uring_arm(&self->uring, self->fd, 2, 0, HOUR);
		uring_arm(&self->uring, self->fd, 3, 0, HOUR);
		uring_submit(&self->uring);
		_exit(until(hwt_now(self->fd).scheduled == 3) ? 0 : 1);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(0, uring_reap(&self->uring, PATIENCE_MS, &name));
	EXPECT_EQ(1, name);
	EXPECT_LE(due, now_ns());
	/* The thread of the ring lives on, too. */
	if (variant->flags & IORING_SETUP_SQPOLL)
		EXPECT_EQ(2, hwt_del_all(self->fd));
	EXPECT_EQ(-ECANCELED, uring_reap(&self->uring, PATIENCE_MS, &name));
	EXPECT_EQ(-ECANCELED, uring_reap(&self->uring, PATIENCE_MS, &name));
}

static int arm_inside(unsigned int flags, unsigned int sqe_flags)
{
	int fd = open_keyed(), i;
	struct uring uring;
	__u64 due;

	if (fd < 0 || uring_init(&uring, flags, sqe_flags))
		return 1;
	due = now_ns() + 50 * MSEC;
	uring_arm(&uring, fd, 1, HWT_ARM_ABSOLUTE, due);
	if (uring_do(&uring, 1) || now_ns() < due)
		return 2;
	if (!uring_hold(&uring, fd, 1))
		return 3;
	due = now_ns() + 50 * MSEC;
	uring_move(&uring, fd, 2, 1, HWT_ARM_ABSOLUTE, due);
	uring_submit(&uring);
	/* The completions of the move and of the moved command */
	for (i = 0; i < 2; i++)
		if (uring_reap(&uring, PATIENCE_MS, NULL))
			return 4;
	if (now_ns() < due)
		return 5;
	return 0;
}

TEST_F(ring, deadlines_are_those_of_the_submitter)
{
	ASSERT_EQ(0, timens_for_children(CLOCK_MONOTONIC, 1000000));
	EXPECT_EQ(0, IN_CHILD(arm_inside(variant->flags, variant->sqe_flags)));
}

/* -- Other kinds of rings, and programs ------------------------------------ */

/* The file cannot be polled for completions: refused (6.12), or served as on any ring (7.2). */
TEST_F(ctx, iopoll)
{
	__u64 end = now_ns() + PATIENCE_MS * MSEC;
	int fd = self->fd, ret;
	struct uring uring;

	ASSERT_EQ(0, hwt_with(fd, SETUP, setup, .flags = HWT_SETUP_KEYS));
	ASSERT_EQ(0, uring_init(&uring, IORING_SETUP_IOPOLL, 0));
	uring_arm(&uring, fd, 1, 0, 0);
	uring_submit(&uring);
	/* A wait on such a ring does not see completions that are not polled, so repeat it. */
	do {
		ret = uring_reap(&uring, 10, NULL);
	} while ((ret == -ETIME || ret == -EAGAIN) && now_ns() < end);
	EXPECT_TRUE(ret == -EOPNOTSUPP || ret == 0)
		TH_LOG("%d", ret);
	io_uring_queue_exit(&uring.ring);
	EXPECT_EQ(0, hwt_timeouts(fd));
}

/* The carrier is cancelled when an ioctl has run its pass: the timer stays armed for the next. */
TEST_F(ctx, carrier_is_cancelled_after_the_pass)
{
	const __u64 delays[] = { HOUR, 400 * MSEC, 100 * MSEC };
	struct hwt_stats_args stats = { .size = sizeof(stats) };
	unsigned int i, fired = 0;
	struct uring uring;

	ASSERT_EQ(0, hwt_with(self->fd, SETUP, setup, .flags = HWT_SETUP_KEYS));
	ASSERT_EQ(0, uring_init(&uring, IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER,
				0));
	for (i = 0; i < ARRAY_SIZE(delays); i++)
		uring_arm(&uring, self->fd, i + 1, 0, delays[i]);
	uring_submit(&uring);
	usleep(200000);
	ASSERT_EQ(0, ioctl(self->fd, HWT_IOC_STATS, &stats));
	ASSERT_EQ(0, hwt_with(self->fd, CANCEL, cancel, .id = 1));
	for (i = 0; i < ARRAY_SIZE(delays); i++)
		fired += uring_reap(&uring, PATIENCE_MS, NULL) == 0;
	EXPECT_EQ(2, fired);
	io_uring_queue_exit(&uring.ring);
}

/* A ring is closed while the task that is to complete a command is stopped: no worker spins. */
TEST_F(ctx, submitter_is_stopped)
{
	struct uring uring;
	pid_t child;

	ASSERT_EQ(0, hwt_with(self->fd, SETUP, setup, .flags = HWT_SETUP_KEYS));
	ASSERT_EQ(0, uring_init(&uring, 0, 0));
	child = fork();
	if (!child) {
		uring_arm(&uring, self->fd, 1, 0, HOUR);
		uring_submit(&uring);
		io_uring_queue_exit(&uring.ring);
		raise(SIGSTOP);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, NULL, WUNTRACED));
	EXPECT_EQ(1, hwt_timeouts(self->fd));
	EXPECT_EQ(0, hwt_with(self->fd, CANCEL, cancel, .flags = HWT_CANCEL_ALL));
	io_uring_queue_exit(&uring.ring);
	usleep(100000);
	/* Only grep itself runs. */
	EXPECT_TRUE(until(!system("grep -q ' 1/' /proc/loadavg")));
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	EXPECT_EQ(0, hwt_timeouts(self->fd));
}

/* Overwrite submission entries while the kernel's thread reads them: no timeout may be left. */
TEST_F_TIMEOUT(ctx, submission_entries_are_scribbled_over, 60)
{
	__u64 end = now_ns() + (quick() ? 1 : 3) * SEC;
	unsigned int seed = 1, i, n = 0;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct uring uring;

	ASSERT_EQ(0, hwt_with(self->fd, SETUP, setup, .flags = HWT_SETUP_KEYS));
	ASSERT_EQ(0, uring_init(&uring, IORING_SETUP_SQPOLL, 0));
	while (now_ns() < end) {
		for (i = 0; i < 64; i++)
			uring_arm(&uring, self->fd, rand_r(&seed) % 64, 0,
				  rand_r(&seed) % 3 * MSEC);
		uring_submit(&uring);
		for (i = 0; i < 10000; i++) {
			sqe = &uring.ring.sq.sqes[rand_r(&seed) % QUEUE];
			sqe->user_data = rand_r(&seed) % 64;
			sqe->addr = rand_r(&seed) % 2 * (rand_r(&seed) % 64);
			sqe->cmd_op = HWT_URING_ARM + rand_r(&seed) % 4;
			((__u32 *)sqe->cmd)[rand_r(&seed) % 4] = rand_r(&seed) % 4;
		}
		while (!io_uring_peek_cqe(&uring.ring, &cqe)) {
			io_uring_cqe_seen(&uring.ring, cqe);
			n++;
		}
	}
	TH_LOG("%u completions", n);
	EXPECT_LT(0, n);
	io_uring_queue_exit(&uring.ring);
	EXPECT_TRUE(until(hwt_timeouts(self->fd) == 0));
}

TEST_HARNESS_MAIN
