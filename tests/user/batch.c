// SPDX-License-Identifier: GPL-2.0-only
/*
 * HWT_IOC_BATCH: each operation does what the ioctl of its name does, one that fails does so
 * alone, and what stops the call half-way leaves no timeout whose id nobody knows.
 *
 * hwt-test: timeout 120
 * hwt-test: m32
 * hwt-test: shared
 */
#include "kselftest_harness.h"
#include <pthread.h>

#include "alarm.h"
#include "fixtures.h"

#define OP	((long)sizeof(struct hwt_op))

/* -- What the operations do ---------------------------------------------- */

/* What is out may hold anything before. */
TEST_F(ctx, schedule_and_get)
{
	struct hwt_op ops[3], get[3];
	struct hwt_get_args args;
	__u64 before = now_ns();
	int i;

	ops[0] = op_schedule(HOUR, 10);
	ops[1] = op_schedule(before + 2 * HOUR, 11);
	ops[1].flags = HWT_ARM_ABSOLUTE;
	ops[1].slack_ns = SEC;
	ops[2] = op_schedule(HOUR, 12);
	ops[2].mode = HWT_MODE_FIXED_DELAY;
	ops[2].period_ns = 5 * SEC;
	for (i = 0; i < 3; i++) {
		ops[i].result = -77;
		ops[i].id = ~0ULL;
	}
	ASSERT_EQ(3, hwt_batch(self->fd, ops, 3));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, ops[i].result);
		EXPECT_TRUE(ops[i].id && ops[i].id != ~0ULL);
		EXPECT_NE(ops[(i + 1) % 3].id, ops[i].id);
		memset(&get[i], 0xa5, sizeof(get[i]));
		get[i].opcode = HWT_OP_GET;
		get[i].flags = 0;
		get[i].id = ops[i].id;
	}
	ASSERT_EQ(3, hwt_batch(self->fd, get, 3));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, hwt_get(self->fd, ops[i].id, &args));
		EXPECT_EQ(HWT_STATE_PENDING, get[i].result);
		EXPECT_EQ(10ULL + i, get[i].user_data);
		EXPECT_EQ(args.mode, get[i].mode);
		EXPECT_EQ(args.deadline_ns, get[i].deadline_ns);
		EXPECT_EQ(args.period_ns, get[i].period_ns);
		EXPECT_EQ(0ULL, get[i].overruns);
		/* The later answer has less left. */
		EXPECT_LE(args.remaining_ns, get[i].remaining_ns);
		EXPECT_GE(7202 * SEC, get[i].remaining_ns);
	}
	EXPECT_LE(before + HOUR, get[0].deadline_ns);
	EXPECT_LE(before + 2 * HOUR, get[1].deadline_ns);
	EXPECT_EQ(5 * SEC, get[2].period_ns);
	EXPECT_EQ((__u32)HWT_MODE_FIXED_DELAY, get[2].mode);
}

TEST_F(ctx, one_after_the_other)
{
	struct hwt_op ops[8];
	__u64 id;

	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 1, &id));
	ops[0] = op_modify(id, 2 * HOUR);
	ops[0].flags = HWT_ARM_USER_DATA;
	ops[0].user_data = 2;
	ops[1] = op_get(id);
	ops[2] = op_modify(id, 100 * SEC);
	ops[3] = op_get(id);
	ops[4] = op_modify(id, 100 * SEC);
	ops[4].flags = HWT_ARM_USER_DATA;
	ops[4].user_data = 3;
	ops[5] = op_get(id);
	ops[6] = op_cancel(id);
	ops[7] = op_get(id);
	ASSERT_EQ(8, hwt_batch(self->fd, ops, 8));
	EXPECT_EQ(HWT_STATE_PENDING, ops[0].result);
	EXPECT_EQ(HWT_STATE_PENDING, ops[1].result);
	EXPECT_EQ(2ULL, ops[1].user_data);
	EXPECT_LT(HOUR, ops[1].remaining_ns);
	EXPECT_EQ(2ULL, ops[3].user_data);
	EXPECT_GE(101 * SEC, ops[3].remaining_ns);
	EXPECT_EQ(3ULL, ops[5].user_data);
	EXPECT_EQ(HWT_STATE_PENDING, ops[6].result);
	EXPECT_EQ(-ENOENT, ops[7].result);
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));
}

/* -- Errors of one ------------------------------------------------------- */

/* Stand for the ids of two timeouts that are there: none has these. */
#define ONE		1ULL
#define PERIODIC	3ULL

static const struct bad {
	const char	*what;
	int		error;
	struct hwt_op	op;
} bad[] = {
	{ "opcode 0", EINVAL, { .opcode = 0 } },
	{ "opcode 5", EINVAL, { .opcode = 5 } },
	{ "opcode 2^32 - 1", EINVAL, { .opcode = -1U } },
	{ "schedule: flag 2", EINVAL, { .opcode = HWT_OP_SCHEDULE, .flags = 2 } },
	{ "schedule: flag 2^31", EINVAL, { .opcode = HWT_OP_SCHEDULE, .flags = 1U << 31 } },
	{ "schedule: mode 3", EINVAL, { .opcode = HWT_OP_SCHEDULE, .mode = 3 } },
	{ "schedule: one-shot with a period", EINVAL,
	  { .opcode = HWT_OP_SCHEDULE, .period_ns = 1 } },
	{ "schedule: one-shot that never comes again", EINVAL,
	  { .opcode = HWT_OP_SCHEDULE, .period_ns = HWT_NEVER } },
	{ "schedule: mode 2^32 - 1", EINVAL, { .opcode = HWT_OP_SCHEDULE, .mode = ~0U } },
	{ "schedule: mode 3 with a period", EINVAL,
	  { .opcode = HWT_OP_SCHEDULE, .mode = 3, .period_ns = 1 } },
	{ "schedule: rate without a period", EINVAL,
	  { .opcode = HWT_OP_SCHEDULE, .mode = HWT_MODE_FIXED_RATE } },
	{ "schedule: delay without a period", EINVAL,
	  { .opcode = HWT_OP_SCHEDULE, .mode = HWT_MODE_FIXED_DELAY } },
	{ "schedule: rate with slack", EINVAL,
	  { .opcode = HWT_OP_SCHEDULE, .mode = HWT_MODE_FIXED_RATE, .period_ns = SEC,
	    .slack_ns = 1 } },
	{ "schedule: delay with slack", EINVAL,
	  { .opcode = HWT_OP_SCHEDULE, .mode = HWT_MODE_FIXED_DELAY, .period_ns = SEC,
	    .slack_ns = 1 } },
	{ "schedule: overruns", EINVAL, { .opcode = HWT_OP_SCHEDULE, .overruns = 1 } },
	{ "modify: id 0", ENOENT, { .opcode = HWT_OP_MODIFY } },
	{ "modify: no such id", ENOENT, { .opcode = HWT_OP_MODIFY, .id = ~0ULL } },
	{ "modify: flag 4", EINVAL, { .opcode = HWT_OP_MODIFY, .id = ONE, .flags = 4 } },
	{ "modify: mode", EINVAL, { .opcode = HWT_OP_MODIFY, .id = ONE, .mode = 1 } },
	{ "modify: a period for a one-shot", EINVAL,
	  { .opcode = HWT_OP_MODIFY, .id = ONE, .flags = HWT_ARM_USER_DATA, .period_ns = SEC } },
	{ "modify: slack for a periodic one", EINVAL,
	  { .opcode = HWT_OP_MODIFY, .id = PERIODIC, .flags = HWT_ARM_USER_DATA, .slack_ns = 1 } },
	{ "modify: overruns", EINVAL, { .opcode = HWT_OP_MODIFY, .id = ONE, .overruns = 1 } },
	{ "cancel: id 0", ENOENT, { .opcode = HWT_OP_CANCEL } },
	{ "cancel: no such id", ENOENT, { .opcode = HWT_OP_CANCEL, .id = 2 } },
	{ "cancel: flags", EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .flags = 1 } },
	{ "cancel: mode", EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .mode = 1 } },
	{ "cancel: time", EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .time_ns = 1 } },
	{ "cancel: period", EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .period_ns = 1 } },
	{ "cancel: slack", EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .slack_ns = 1 } },
	{ "cancel: data", EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .user_data = 1 } },
	{ "cancel: overruns", EINVAL, { .opcode = HWT_OP_CANCEL, .id = ONE, .overruns = 1 } },
	{ "get: id 0", ENOENT, { .opcode = HWT_OP_GET } },
	{ "get: no such id", ENOENT, { .opcode = HWT_OP_GET, .id = ~0ULL } },
	{ "get: flags", EINVAL, { .opcode = HWT_OP_GET, .id = ONE, .flags = 1 } },
};

#define BAD	((int)ARRAY_SIZE(bad))

/* Each bad one between two good ones. */
TEST_F(ctx, one_that_fails_does_so_alone)
{
	struct hwt_op ops[2 * BAD + 1];
	struct hwt_get_args was[2], is;
	__u64 id[2];
	int i;

	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, now_ns() + HOUR, 99, &id[0]));
	ASSERT_EQ(0, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, HOUR, HOUR, 99, &id[1]));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, hwt_get(self->fd, id[i], &was[i]));
	for (i = 0; i <= BAD; i++) {
		ops[2 * i] = op_schedule(HOUR, i);
		if (i == BAD)
			break;
		ops[2 * i + 1] = bad[i].op;
		if (bad[i].op.id == ONE || bad[i].op.id == PERIODIC)
			ops[2 * i + 1].id = id[bad[i].op.id == PERIODIC];
	}
	ASSERT_EQ(2 * BAD + 1, hwt_batch(self->fd, ops, 2 * BAD + 1));
	for (i = 0; i <= BAD; i++) {
		EXPECT_EQ(0, ops[2 * i].result);
		EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, ops[2 * i].id));
		if (i == BAD)
			break;
		EXPECT_EQ(-bad[i].error, ops[2 * i + 1].result)
			TH_LOG("%s", bad[i].what);
	}
	/* Those that they were about are as they were. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, hwt_get(self->fd, id[i], &is));
		is.remaining_ns = was[i].remaining_ns;
		EXPECT_EQ(0, memcmp(&was[i], &is, sizeof(is)));
	}
	EXPECT_EQ(2ULL, hwt_timeouts(self->fd));
}

TEST_F(ctx, limit_and_stop)
{
	struct hwt_op ops[6];
	int i;

	ASSERT_EQ(0, hwt_with(self->fd, SETUP, setup, .max_pending = 2));
	for (i = 0; i < 4; i++)
		ops[i] = op_schedule(HOUR, 0);
	ASSERT_EQ(4, hwt_batch(self->fd, ops, 4));
	EXPECT_EQ(0, ops[0].result);
	EXPECT_EQ(0, ops[1].result);
	EXPECT_EQ(-ENOSPC, ops[2].result);
	EXPECT_EQ(-ENOSPC, ops[3].result);
	ASSERT_EQ(2, hwt_stop(self->fd));
	ops[2] = op_schedule(SEC, 0);
	ops[3] = op_modify(ops[0].id, SEC);
	ops[4] = op_get(ops[0].id);
	ops[5] = op_cancel(ops[1].id);
	ASSERT_EQ(4, hwt_batch(self->fd, ops + 2, 4));
	EXPECT_EQ(-ESHUTDOWN, ops[2].result);
	EXPECT_EQ(-ESHUTDOWN, ops[3].result);
	EXPECT_EQ(HWT_STATE_EVENT, ops[4].result);
	EXPECT_EQ(HWT_STATE_EVENT, ops[5].result);
	EXPECT_EQ(1ULL, hwt_timeouts(self->fd));
}

/* -- Errors of the call -------------------------------------------------- */

#define BATCH(...)							\
	hwt_with(self->fd, BATCH, batch, .ops = (uintptr_t)&op, __VA_ARGS__)

TEST_F(ctx, bad_arguments)
{
	static const __u32 sizes[] = { 0, 1, OP - 1, OP + 1, HWT_OP_SIZE_MAX + 8, -1U };
	struct hwt_batch_args args = { .size = sizeof(args) - 1, .op_size = OP };
	struct hwt_op op = op_schedule(SEC, 0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		EXPECT_EQ(-EINVAL, BATCH(.count = 1, .op_size = sizes[i]));
	EXPECT_EQ(-EINVAL, BATCH(.count = 1, .op_size = OP, .flags = 1));
	EXPECT_EQ(-EINVAL, hwt_call(self->fd, HWT_IOC_BATCH, &args));
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));
	/* No operation: no look at them. */
	EXPECT_EQ(0, hwt_batch(self->fd, (void *)8, 0));
}

/* Those of a program that knows more than the kernel: what it does not use is zero. */
TEST_F(ctx, larger_operations)
{
	struct {
		struct hwt_op op;
		__u64 more[3];
	} ops[3] = {
		{ op_schedule(HOUR, 1), {} },
		{ op_schedule(HOUR, 2), { 0, 0, 1 } },
		{ op_schedule(HOUR, 3), {} },
	};
	struct hwt_batch_args args = {
		.size = sizeof(args),
		.ops = (uintptr_t)ops,
		.count = 3,
		.op_size = sizeof(ops[0]),
	};

	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_BATCH, &args));
	EXPECT_EQ(3U, args.count);
	EXPECT_EQ(0, ops[0].op.result);
	EXPECT_EQ(-E2BIG, ops[1].op.result);
	EXPECT_EQ(0, ops[2].op.result);
	EXPECT_EQ(2ULL, hwt_timeouts(self->fd));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, ops[2].op.id));
}

TEST_F(ctx, counts)
{
	static const unsigned int counts[] = { 1, 2, 63, 64, 65, 127, 128, 129, 1000 };
	static struct hwt_op ops[1001];
	__u64 total = 0;
	unsigned int i, n;

	for (n = 0; n < ARRAY_SIZE(counts); n++) {
		for (i = 0; i <= counts[n]; i++) {
			ops[i] = op_schedule(HOUR, i);
			ops[i].result = 77;
		}
		ASSERT_EQ((long)counts[n], hwt_batch(self->fd, ops, counts[n]));
		for (i = 0; i < counts[n]; i++)
			ASSERT_EQ(0, ops[i].result);
		/* Not one too many. */
		EXPECT_EQ(77, ops[i].result);
		total += counts[n];
		EXPECT_EQ(total, hwt_timeouts(self->fd));
	}
}

TEST_F(ctx, bad_address_at_once)
{
	void *bad_ops[] = { NULL, (void *)8, (void *)-64L, (void *)-4096L };
	struct hwt_batch_args args = {
		.size = sizeof(args),
		.ops = ~0ULL - 63,
		.count = 3,
		.op_size = sizeof(struct hwt_op),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad_ops); i++)
		EXPECT_EQ(-EFAULT, hwt_batch(self->fd, bad_ops[i], 100));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, HWT_IOC_BATCH, &args));
	args.ops = 1ULL << 63;
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, HWT_IOC_BATCH, &args));
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));
}

/* Pages whose last one is protected; filled with schedules, whose data is their number. */
static struct hwt_op *make_ops(int pages, int prot, long shift)
{
	long page = sysconf(_SC_PAGESIZE), i;
	char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hwt_op *ops = (void *)(p + shift);

	if (p == MAP_FAILED)
		return NULL;
	for (i = 0; i < (pages * page - shift) / OP; i++)
		ops[i] = op_schedule(HOUR, i);
	return mprotect(p + (pages - 1) * page, page, prot) ? NULL : ops;
}

/* Read, but nothing could be stored: new timeouts are taken back, others are as they were told. */
TEST_F(ctx, read_only_at_once)
{
	long page = sysconf(_SC_PAGESIZE);
	struct hwt_op *ops = make_ops(1, PROT_READ, 0);
	__u64 kept, gone;

	ASSERT_NE(NULL, ops);
	EXPECT_EQ(-EFAULT, hwt_batch(self->fd, ops, 1));
	EXPECT_EQ(-EFAULT, hwt_batch(self->fd, ops, page / OP));
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));

	/* Of all kinds. */
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 1, &kept));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 2, &gone));
	ASSERT_EQ(0, mprotect(ops, page, PROT_READ | PROT_WRITE));
	ops[0] = op_get(kept);
	ops[2].period_ns = SEC;		/* a one-shot has none */
	ops[3] = op_modify(kept, 2 * HOUR);
	ops[4] = op_cancel(gone);
	ASSERT_EQ(0, mprotect(ops, page, PROT_READ));
	EXPECT_EQ(-EFAULT, hwt_batch(self->fd, ops, 5));
	EXPECT_EQ(1ULL, hwt_timeouts(self->fd));
	EXPECT_EQ(-ENOENT, hwt_del(self->fd, gone));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, kept));
	munmap(ops, page);
}

TEST_F(ctx, half_way)
{
	static const struct {
		int prot;		/* of the last page */
		long shift;		/* an operation lies across the border */
	} ends[] = { { PROT_NONE, 0 }, { PROT_NONE, 24 }, { PROT_READ, 0 }, { PROT_READ, 24 } };
	long page = sysconf(_SC_PAGESIZE), shift, good, all, i;
	struct hwt_get_args args;
	struct hwt_op *ops;
	__u64 before;
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(ends); n++) {
		before = hwt_timeouts(self->fd);
		shift = ends[n].shift;
		good = (2 * page - shift) / OP;
		all = (3 * page - shift) / OP;
		ops = make_ops(3, ends[n].prot, shift);
		ASSERT_NE(NULL, ops);
		/* Many more than there are. */
		EXPECT_EQ(good, hwt_batch(self->fd, ops, -1U))
			TH_LOG("number %u", n);
		EXPECT_EQ(before + good, hwt_timeouts(self->fd));
		for (i = 0; i < good; i++) {
			ASSERT_EQ(0, ops[i].result);
			ASSERT_EQ(0, hwt_get(self->fd, ops[i].id, &args));
			ASSERT_EQ((__u64)i, args.user_data);
		}
		/* The next call, for the rest, tells why. */
		EXPECT_EQ(-EFAULT, hwt_batch(self->fd, ops + good, all - good));
		EXPECT_EQ(before + good, hwt_timeouts(self->fd));
		munmap((char *)ops - shift, 3 * page);
	}
}

/* -- Signals, threads ---------------------------------------------------- */

#define CHUNK	1048576L

/* So many chunks of memory that are all the same one. */
static void *same_memory(int chunks)
{
	int fd = memfd_create("ops", 0), i;
	char *p;

	if (fd < 0 || ftruncate(fd, CHUNK))
		return NULL;
	p = mmap(NULL, chunks * CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	for (i = 0; i < chunks; i++)
		if (mmap(p + i * CHUNK, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, 0) == MAP_FAILED)
			return NULL;
	close(fd);
	return p;
}

TEST_F_TIMEOUT(ctx, signal_half_way, 60)
{
	long all = 512 * (CHUNK / OP), done;
	struct hwt_op *ops = same_memory(512);
	long i;

	ASSERT_NE(NULL, ops);
	for (i = 0; i < CHUNK / OP; i++)
		ops[i] = op_get(1);
	ASSERT_EQ(0, alarm_every(50000, SA_RESTART));
	done = hwt_batch(self->fd, ops, all);
	ASSERT_EQ(0, alarm_every(0, 0));
	EXPECT_LT(0, done);
	EXPECT_LT(done, all);
	munmap(ops, 512 * CHUNK);
}

#define THREADS	4

static unsigned int rounds;

/* Returns how much was wrong. */
static void *make_and_cancel(void *arg)
{
	int fd = *(int *)arg;
	struct hwt_op ops[150];
	unsigned int i, round;
	long wrong = 0;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < 150; i++)
			ops[i] = op_schedule(HOUR, i);
		wrong += hwt_batch(fd, ops, 150) != 150;
		for (i = 0; i < 150; i++) {
			wrong += ops[i].result != 0;
			ops[i] = op_cancel(ops[i].id);
		}
		wrong += hwt_batch(fd, ops, 150) != 150;
		for (i = 0; i < 150; i++)
			wrong += ops[i].result != HWT_STATE_PENDING;
	}
	return (void *)wrong;
}

TEST_F_TIMEOUT(ctx, several_threads, 60)
{
	pthread_t thread[THREADS];
	struct hwt_stats_args stats;
	unsigned int i;
	void *wrong;

	rounds = quick() ? 10 : 100;
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, make_and_cancel, &self->fd));
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &wrong);
		EXPECT_EQ(NULL, wrong);
	}
	stats = hwt_now(self->fd);
	EXPECT_EQ(0ULL, stats.timeouts);
	EXPECT_EQ((__u64)THREADS * rounds * 150, stats.scheduled);
	EXPECT_EQ(stats.scheduled, stats.cancelled);
}

/* Killed in the middle of a batch: all of it is gone with it. */
TEST_F_TIMEOUT(ctx, killed_half_way, 60)
{
	struct hwt_op *ops = same_memory(64);
	__u64 left, id;
	pid_t pid;
	long i;

	ASSERT_NE(NULL, ops);
	for (i = 0; i < CHUNK / OP; i++)
		ops[i] = op_schedule(HWT_NEVER, i);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(hwt_batch(self->fd, ops, 64 * (CHUNK / OP)) < 0);
	EXPECT_TRUE(until(hwt_timeouts(self->fd) > 1000));
	EXPECT_EQ(-SIGKILL, child_kill(pid));
	/* The context is ours too, and whole: a schedule and its cancel work. */
	left = hwt_timeouts(self->fd);
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, &id));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id));
	EXPECT_EQ(left, hwt_timeouts(self->fd));
	munmap(ops, 64 * CHUNK);
}

TEST_HARNESS_MAIN
