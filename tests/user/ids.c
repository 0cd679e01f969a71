// SPDX-License-Identifier: GPL-2.0-only
/*
 * When an id is valid, as hwt(4) describes under "Ids", with and without rings; and keys.
 *
 * hwt-test: shared
 * hwt-test: timeout 600
 * hwt-test: m32
 */
#include "kselftest_harness.h"
#include <pthread.h>

#include "fixtures.h"

/* An id with any wrong bit is unknown, and the call does not change its arguments. */
TEST_F(ctx, near_misses)
{
	static const __u64 far[] = { 0, 1, 0xffffffff, 2ULL << 32, HWT_NEVER, HWT_NEVER >> 1 };
	struct hwt_get_args get, same = { .size = sizeof(same) };
	unsigned int i;
	__u64 id;

	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, &id));
	for (i = 0; i < 64 + ARRAY_SIZE(far); i++) {
		same.id = i < 64 ? id ^ 1ULL << i : far[i - 64];
		EXPECT_EQ(-ENOENT, hwt_get(self->fd, same.id, &get));
		EXPECT_EQ(0, memcmp(&get, &same, sizeof(get)));
		EXPECT_EQ(-ENOENT, hwt_del(self->fd, same.id));
		EXPECT_EQ(-ENOENT, hwt_move(self->fd, same.id, 0, 0));
	}
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id));
}

/* Only events that were stored are read and end their ids; all others stay. */
TEST_F(ctx, fault_half_way_ends_only_what_was_read)
{
	long page = sysconf(_SC_PAGESIZE);
	struct hwt_event event;
	struct hwt_get_args get;
	__u64 id[6];
	char *p;
	int i;

	p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, mprotect(p + page, page, PROT_NONE));
	for (i = 0; i < 6; i++) {
		ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, 0, i, &id[i]));
		ASSERT_TRUE(hwt_wait_expired(self->fd, i + 1));
	}
	ASSERT_EQ(2, hwt_read(self->fd, (void *)(p + page - 160), 6));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(-ENOENT, hwt_get(self->fd, id[i], &get));
	for (i = 2; i < 6; i++) {
		ASSERT_EQ(0, hwt_get(self->fd, id[i], &get));
		EXPECT_EQ((__u32)HWT_STATE_EVENT, get.state);
	}
	/* Without room for one event, no id ends. */
	EXPECT_EQ(-EFAULT, hwt_read(self->fd, (void *)(p + page - 32), 4));
	EXPECT_EQ(0, hwt_get(self->fd, id[2], &get));
	/* An event that was half stored can still be withdrawn. */
	EXPECT_EQ(HWT_STATE_EVENT, hwt_del(self->fd, id[2]));
	EXPECT_EQ(1, hwt_read(self->fd, (void *)(p + page - 64), 3));
	memcpy(&event, p + page - 64, sizeof(event));
	EXPECT_EQ(id[3], event.id);
	for (i = 4; i < 6; i++) {
		ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
		EXPECT_EQ(id[i], event.id);
	}
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	munmap(p, 2 * page);
}

/* An event in the ring counts as read. An event outside can be withdrawn, and then never comes. */
TEST_F(ctx, outside_of_the_ring_can_be_withdrawn)
{
	static const int left[] = { 0, 2, 7 };
	struct hwt_get_args get;
	struct hwt_event event;
	struct ring ring;
	__u64 id[8];
	int i;

	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, 4, 2));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, 0, i, &id[i]));
		ASSERT_TRUE(hwt_wait_expired(self->fd, i + 1));
	}
	/* Events enter the ring only in a call, after the call's operations. */
	EXPECT_EQ(0U, ring_unread(&ring));
	EXPECT_EQ((__u32)HWT_RINGS_MORE, ring_flags(&ring));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_del(self->fd, id[1]));
	EXPECT_EQ(HWT_STATE_EVENT, ring_do(&ring, op_cancel(id[3]), NULL));
	/* Two events are in the ring, so their ids have ended; the others wait for room. */
	EXPECT_EQ(2U, ring_unread(&ring));
	EXPECT_EQ((__u32)HWT_RINGS_MORE, ring_flags(&ring));
	EXPECT_EQ(-ENOENT, hwt_del(self->fd, id[0]));
	EXPECT_EQ(-ENOENT, hwt_move(self->fd, id[2], 0, HOUR));
	EXPECT_EQ(-ENOENT, hwt_get(self->fd, id[2], &get));
	EXPECT_EQ(-ENOENT, ring_do(&ring, op_cancel(id[2]), NULL));
	EXPECT_EQ(HWT_STATE_EVENT, ring_do(&ring, op_cancel(id[4]), NULL));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_del(self->fd, id[5]));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_move(self->fd, id[6], 0, HOUR));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(1, ring_next(&ring, &event));
		EXPECT_EQ(id[left[i]], event.id);
	}
	EXPECT_EQ(0U, ring_unread(&ring));
	EXPECT_EQ(0U, ring_flags(&ring));
	/* Withdrawing the last event that waits clears HWT_RINGS_MORE. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id[6], 0, 0));
	ASSERT_TRUE(until(hwt_waiting(self->fd) && ring_flags(&ring) == HWT_RINGS_MORE));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_del(self->fd, id[6]));
	EXPECT_EQ(0, ring_enter(&ring, 0, 0, 0));
	EXPECT_EQ(0U, ring_flags(&ring) | ring_unread(&ring));
}

/* Overruns count while the event waits outside the ring. Entering the ring does not end the id. */
TEST_F(ctx, periodic_in_the_ring)
{
	struct hwt_event event = {};
	struct ring ring;
	__u64 id;
	int i;

	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, 4, 8));
	ASSERT_EQ(0, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, 0, 5 * MSEC, 3, &id));
	ASSERT_TRUE(hwt_wait_expired(self->fd, 20));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, ring_next(&ring, &event));
		EXPECT_EQ(id, event.id);
		EXPECT_EQ(0U, event.flags);
		EXPECT_LE(i ? 0ULL : 10ULL, event.overruns);
	}
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id, 0, HOUR) & HWT_STATE_PENDING);
}

TEST_F_TIMEOUT(ctx, never_twice, 100)
{
	unsigned int rounds = quick() ? 50 : 1000, n = 0, i, k;
	struct hwt_event event;
	struct ring ring;
	__u64 *id;

	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, 8, 16));
	id = calloc(rounds * 10, sizeof(*id));
	ASSERT_NE(NULL, id);
	for (i = 0; i < rounds; i++) {
		/* Half of these fire, and enter the ring. */
		for (k = 0; k < 8; k++)
			ASSERT_EQ(0, hwt_add(self->fd, 0, k % 2 ? HOUR : 0, 0, &id[n++]));
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, &id[n++]));
		ASSERT_EQ(0, ring_do(&ring, op_schedule(HOUR, 0), &id[n++]));
		for (k = 1; k < 10; k += 2)
			ASSERT_EQ(HWT_STATE_PENDING,
				  ring_do(&ring, op_cancel(id[n - 10 + k]), NULL));
		ASSERT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id[n - 2]));
		for (k = 0; k < 4; k++)
			ASSERT_EQ(1, ring_next(&ring, &event));
	}
	for (i = 0; i < n; i++)
		ASSERT_EQ(-ENOENT, hwt_del(self->fd, id[i]));
	qsort(id, n, sizeof(*id), by_value);
	EXPECT_NE(0ULL, id[0]);
	for (i = 1; i < n; i++)
		ASSERT_NE(id[i - 1], id[i]);
	free(id);
}

/* -- Keys; for threads that race for them, see process.c ---------------------- */

FIXTURE(keys) {
	int fd;
};

FIXTURE_VARIANT(keys) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(keys, own) { 0 };
FIXTURE_VARIANT_ADD(keys, thread) { HWT_SETUP_THREAD };

FIXTURE_SETUP(keys)
{
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_EQ(0, hwt_with(self->fd, SETUP, setup, .flags = HWT_SETUP_KEYS | variant->flags));
}

FIXTURE_TEARDOWN(keys)
{
	close(self->fd);
}

TEST_F(keys, schedule_moves)
{
	struct hwt_info_args info;
	const __u64 keys[] = { 0, 1, 0xffff888100000000ULL, ~0ULL };
	struct hwt_event event;
	struct hwt_get_args get;
	unsigned int i;

	ASSERT_EQ(0, hwt_info(self->fd, &info));
	EXPECT_EQ(1U, info.keys);
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		EXPECT_EQ(0, hwt_key(self->fd, 0, HOUR, keys[i]));
		EXPECT_EQ(HWT_STATE_PENDING, hwt_key(self->fd, 0, 2 * HOUR, keys[i]));
		ASSERT_EQ(0, hwt_get(self->fd, keys[i], &get));
		EXPECT_EQ(keys[i], get.user_data);
		EXPECT_LT(HOUR, get.remaining_ns);
	}
	EXPECT_EQ(4ULL, hwt_timeouts(self->fd));
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		EXPECT_EQ(HWT_STATE_PENDING, hwt_key(self->fd, 0, 0, keys[i]));
		ASSERT_EQ(1, hwt_next(self->fd, &event));
		EXPECT_EQ(keys[i], event.id);
		EXPECT_EQ(keys[i], event.user_data);
		/* The timeout has ended, so the next one of this key is new. */
		EXPECT_EQ(-ENOENT, hwt_del(self->fd, keys[i]));
		EXPECT_EQ(0, hwt_key(self->fd, 0, HOUR, keys[i]));
		EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, keys[i]));
	}
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));
}

TEST_F(keys, schedule_withdraws_the_event)
{
	struct hwt_event event;

	ASSERT_EQ(0, hwt_key(self->fd, 0, 0, 5));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_key(self->fd, 0, HOUR, 5));
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	EXPECT_EQ(1ULL, hwt_now(self->fd).pending);
}

TEST_F(keys, bad_arguments)
{
	ASSERT_EQ(0, hwt_key(self->fd, 0, HOUR, 5));
	/* The key is the data, so there is no other. */
	EXPECT_EQ(-EINVAL, hwt_arm(self->fd, NULL, .id = 6, .user_data = 1));
	EXPECT_EQ(-EINVAL, hwt_move(self->fd, 5, HWT_ARM_USER_DATA, 0));
	EXPECT_EQ(-EINVAL, hwt_key(self->fd, HWT_ARM_USER_DATA, 0, 5));
	EXPECT_EQ(-ENOENT, hwt_move(self->fd, 6, 0, 0));
	/* HWT_IOC_SETUP must come first. */
	EXPECT_EQ(-EBUSY, hwt_with(self->fd, SETUP, setup));
	EXPECT_EQ(1ULL, hwt_timeouts(self->fd));
}

/* Schedule or modify by an ioctl or, unless @ring is NULL, by an operation in the ring. */
static int op_do(int fd, struct ring *ring, struct hwt_op *op, __u64 *remaining_ns)
{
	struct hwt_schedule_args schedule = {
		.size = sizeof(schedule), .flags = op->flags, .mode = op->mode, .id = op->id,
		.time_ns = op->time_ns, .period_ns = op->period_ns, .slack_ns = op->slack_ns,
	};
	struct hwt_modify_args modify = {
		.size = sizeof(modify), .flags = op->flags, .id = op->id,
		.time_ns = op->time_ns, .period_ns = op->period_ns, .slack_ns = op->slack_ns,
	};
	struct hwt_op *done;
	int ret;

	if (ring) {
		done = ring_push(ring, *op);
		ring_enter(ring, 1, 0, 0);
		*op = *done;
		return done->result;
	}
	if (op->opcode == HWT_OP_SCHEDULE) {
		ret = hwt_call(fd, HWT_IOC_SCHEDULE, &schedule);
		op->generation = schedule.generation;
		return ret ?: (int)schedule.was;
	}
	ret = hwt_call(fd, HWT_IOC_MODIFY, &modify);
	op->generation = modify.generation;
	*remaining_ns = modify.remaining_ns;
	return ret ?: (int)modify.was;
}

/* Each condition, for a key without a timeout, with a pending one, and with an unread event */
TEST_F(keys, conditions)
{
	static const struct {
		__u32	was;
		__u32	flags;
		__u64	time_ns;
		bool	kept;
		__u64	slack_ns;
		__u64	period_ns;
	} cases[] = {
		{ 0, HWT_ARM_EARLIER, HOUR, false, 0, 0 },
		{ 0, HWT_ARM_PENDING, HOUR, true, 0, 0 },
		{ 0, HWT_ARM_UNLESS_PENDING, HOUR, false, 0, 0 },
		{ HWT_STATE_EVENT, HWT_ARM_EARLIER, HOUR, false, 0, 0 },
		{ HWT_STATE_EVENT, HWT_ARM_PENDING, HOUR, true, 0, 0 },
		{ HWT_STATE_EVENT, HWT_ARM_UNLESS_PENDING, HOUR, false, 0, 0 },
		{ HWT_STATE_PENDING, HWT_ARM_EARLIER, 2 * HOUR, true, 0, 0 },
		{ HWT_STATE_PENDING, HWT_ARM_EARLIER, HOUR / 2, false, 0, 0 },
		{ HWT_STATE_PENDING, HWT_ARM_EARLIER, HWT_NEVER, true, 0, 0 },
		/* The tick within the slack is a multiple of 2^31 ms: 24 days. */
		{ HWT_STATE_PENDING, HWT_ARM_EARLIER, HOUR / 2, true, 1000 * HOUR, 0 },
		{ HWT_STATE_PENDING, HWT_ARM_EARLIER | HWT_ARM_ABSOLUTE, 1, false, 0, 0 },
		{ HWT_STATE_PENDING, HWT_ARM_PENDING, 2 * HOUR, false, 0, 0 },
		{ HWT_STATE_PENDING, HWT_ARM_PENDING | HWT_ARM_EARLIER, 2 * HOUR, true, 0, 0 },
		{ HWT_STATE_PENDING, HWT_ARM_UNLESS_PENDING, 2 * HOUR, true, 0, 0 },
		{ HWT_STATE_PENDING, HWT_ARM_UNLESS_PENDING | HWT_ARM_EARLIER, 1, true, 0, 0 },
		/* Another mode: the timeout would be replaced. */
		{ HWT_STATE_PENDING, HWT_ARM_EARLIER, 2 * HOUR, true, 0, HOUR },
		{ HWT_STATE_PENDING, HWT_ARM_EARLIER, HOUR / 2, false, 0, HOUR },
		{ HWT_STATE_PENDING, HWT_ARM_PENDING, HOUR / 2, true, 0, HOUR },
		{ HWT_STATE_PENDING, HWT_ARM_UNLESS_PENDING, HOUR / 2, true, 0, HOUR },
	};
	__u64 generation = 0, remaining_ns;
	struct hwt_get_args before, after;
	struct hwt_event event;
	struct ring ring;
	unsigned int i;

	ASSERT_EQ(0, ring_make(&ring, self->fd, 0, 4, 16));
	for (i = 0; i < 4 * ARRAY_SIZE(cases); i++) {
		__typeof__(cases[0]) c = cases[i / 4];
		bool modify = i % 2;
		struct hwt_op op = {
			.opcode = modify ? HWT_OP_MODIFY : HWT_OP_SCHEDULE,
			.flags = c.flags,
			.mode = c.period_ns ? HWT_MODE_FIXED_RATE : 0,
			.id = 5,
			.time_ns = c.time_ns,
			.period_ns = c.period_ns,
			.slack_ns = c.slack_ns,
		};

		if (modify && (!c.was || c.period_ns))
			continue;
		if (c.was)
			ASSERT_EQ(0, hwt_key(self->fd, 0, c.was & HWT_STATE_EVENT ? 0 : HOUR, 5));
		if (c.was & HWT_STATE_EVENT)
			ASSERT_TRUE(until(hwt_waiting(self->fd)));
		hwt_get(self->fd, 5, &before);
		generation += !!c.was;
		EXPECT_EQ(c.period_ns && !c.kept ? 0 : (int)c.was,
			  op_do(self->fd, i & 2 ? &ring : NULL, &op, &remaining_ns))
			TH_LOG("number %u", i);
		EXPECT_EQ(c.kept ? 0 : ++generation, op.generation);
		if (i % 4 == 1)
			EXPECT_TRUE(c.was == HWT_STATE_PENDING ?
				    remaining_ns - HOUR / 2 < HOUR : !remaining_ns);
		hwt_get(self->fd, 5, &after);
		if (!(i & 2 && c.was & HWT_STATE_EVENT))
			EXPECT_EQ(c.kept, before.state == after.state &&
				  before.deadline_ns == after.deadline_ns);
		while (ring_pop(&ring, &event))
			EXPECT_EQ(generation, event.generation);
		hwt_del(self->fd, 5);
	}
}

/* An event has the generation of the call that armed its timeout. */
TEST_F(keys, generations)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args), .mode = HWT_MODE_FIXED_RATE, .id = 5,
		.time_ns = MSEC, .period_ns = MSEC,
	};
	struct hwt_event event;
	__u64 i;

	for (i = 1; i < 5; i++) {
		ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_SCHEDULE, &args));
		EXPECT_EQ(i, args.generation);
		ASSERT_EQ(1, hwt_next(self->fd, &event));
		EXPECT_EQ(i, event.generation);
		if (i % 2)
			EXPECT_NE(-ENOENT, hwt_del(self->fd, 5));
	}
}

#define MANY	20000

/* The table grows and shrinks; each timeout is listed once, and found. */
TEST_F_TIMEOUT(keys, many, 300)
{
	static struct hwt_list_entry entries[MANY];
	static bool seen[MANY];
	unsigned int n;

	for (n = 0; n < MANY; n++)
		ASSERT_EQ(0, hwt_key(self->fd, 0, HOUR, n * 64ULL));
	ASSERT_EQ(MANY, hwt_entries(self->fd, entries, MANY));
	for (n = 0; n < MANY; n++) {
		ASSERT_EQ(0ULL, entries[n].id % 64);
		ASSERT_FALSE(seen[entries[n].id / 64]);
		seen[entries[n].id / 64] = true;
	}
	for (n = 0; n < MANY; n++)
		ASSERT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, n * 64ULL));
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));
}

/*
 * A thread that sets the data of an id, while the context gets keys. An entry has room for data or
 * a key, so a modify at the wrong moment would damage the table of keys.
 */
struct intruder {
	pthread_t thread;
	volatile int fd;
	volatile bool over;
};

static void *intrude(void *arg)
{
	struct intruder *intruder = arg;

	while (!intruder->over)
		hwt_with(intruder->fd, MODIFY, modify, .flags = HWT_ARM_USER_DATA, .id = 5,
			 .time_ns = HOUR, .user_data = 0x4141414141414141ULL);
	return NULL;
}

TEST_F_TIMEOUT(keys, data_while_it_gets_keys, 300)
{
	/* To open and close a context with a thread takes 20 times as long. */
	unsigned int rounds = contexts_have_threads() ? 100 : quick() ? 500 : 3000, i;
	struct intruder intruder = { .fd = self->fd };
	int fd;

	ASSERT_EQ(0, pthread_create(&intruder.thread, NULL, intrude, &intruder));
	for (i = 0; i < rounds; i++) {
		fd = hwt_open(O_NONBLOCK);
		intruder.fd = fd;
		ASSERT_EQ(0, hwt_with(fd, SETUP, setup, .flags = HWT_SETUP_KEYS));
		ASSERT_EQ(0, hwt_key(fd, 0, HOUR, 5));
		ASSERT_EQ(-ENOENT, hwt_del(fd, 6));
		ASSERT_EQ(HWT_STATE_PENDING, hwt_del(fd, 5));
		intruder.fd = self->fd;
		close(fd);
	}
	intruder.over = true;
	pthread_join(intruder.thread, NULL);
}

TEST_HARNESS_MAIN
