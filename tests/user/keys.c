// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts with keys: the program's own numbers name its timeouts.
 *
 * hwt-test: m32
 * hwt-test: shared
 */
#include "kselftest_harness.h"
#include <pthread.h>

#include "hwt_ring.h"

FIXTURE(keys) {
	int fd;
	struct ring ring;	/* with make_ring() */
};

FIXTURE_SETUP(keys)
{
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_EQ(0, hwt_with(self->fd, SETUP, setup, .flags = HWT_SETUP_KEYS));
}

FIXTURE_TEARDOWN(keys)
{
	ring_unmap(&self->ring);
	close(self->fd);
}

static struct hwt_op op_key(__u64 time_ns, __u64 key)
{
	return (struct hwt_op) { .opcode = HWT_OP_SCHEDULE, .time_ns = time_ns, .id = key };
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
		/* It is over: the next one is new. */
		EXPECT_EQ(-ENOENT, hwt_del(self->fd, keys[i]));
		EXPECT_EQ(0, hwt_key(self->fd, 0, HOUR, keys[i]));
		EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, keys[i]));
	}
	EXPECT_EQ(0ULL, hwt_timeouts(self->fd));
}

/* An event that was not read is withdrawn. */
TEST_F(keys, schedule_withdraws_the_event)
{
	struct hwt_event event;

	ASSERT_EQ(0, hwt_key(self->fd, 0, 0, 5));
	ASSERT_EQ(POLLIN, hwt_wait(self->fd, PATIENCE_MS));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_key(self->fd, 0, HOUR, 5));
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	EXPECT_EQ(1ULL, hwt_now(self->fd).pending);
}

TEST_F(keys, of_another_mode)
{
	struct hwt_list_entry entry;

	ASSERT_EQ(0, hwt_key(self->fd, 0, HOUR, 5));
	ASSERT_EQ(0, hwt_arm(self->fd, NULL, .mode = HWT_MODE_FIXED_RATE, .time_ns = HOUR,
			     .period_ns = HOUR, .id = 5));
	ASSERT_EQ(1, hwt_entries(self->fd, &entry, 1));
	EXPECT_EQ((__u32)HWT_MODE_FIXED_RATE, entry.mode);
	EXPECT_EQ(5ULL, entry.id);
	EXPECT_EQ(1ULL, hwt_now(self->fd).cancelled);
	EXPECT_EQ(1ULL, hwt_timeouts(self->fd));
}

TEST_F(keys, bad_arguments)
{
	ASSERT_EQ(0, hwt_key(self->fd, 0, HOUR, 5));
	/* The key is the data. */
	EXPECT_EQ(-EINVAL, hwt_arm(self->fd, NULL, .id = 6, .user_data = 1));
	EXPECT_EQ(-EINVAL, hwt_move(self->fd, 5, HWT_ARM_USER_DATA, 0));
	EXPECT_EQ(-EINVAL, hwt_key(self->fd, HWT_ARM_USER_DATA, 0, 5));
	EXPECT_EQ(-ENOENT, hwt_move(self->fd, 6, 0, 0));
	/* It comes first. */
	EXPECT_EQ(-EBUSY, hwt_with(self->fd, SETUP, setup));
	EXPECT_EQ(1ULL, hwt_timeouts(self->fd));
	EXPECT_EQ(1, hwt_stop(self->fd));
	EXPECT_EQ(-ESHUTDOWN, hwt_key(self->fd, 0, HOUR, 5));
	EXPECT_EQ(-ESHUTDOWN, hwt_key(self->fd, 0, HOUR, 7));
}

#define MANY	20000

/* The table grows and shrinks; each is told of once, and found. */
TEST_F_TIMEOUT(keys, many, 120)
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

/* -- Rings ------------------------------------------------------------------ */

/*
 * An event is in the ring only after a call that has come after it: what one turn of a loop
 * cancels or moves does not come up in the next.
 */
TEST_F(keys, no_stale_event_in_the_ring)
{
	struct ring *ring = &self->ring;
	struct hwt_event event;
	__u64 key;

	ASSERT_EQ(0, ring_make(ring, self->fd, 0, 64, 64));
	/* By ioctls: a call that is slow could find that they have fired. */
	for (key = 1; key <= 3; key++)
		ASSERT_EQ(0, hwt_key(self->fd, 0, 0, key));
	ASSERT_TRUE(hwt_wait_expired(self->fd, 3));
	EXPECT_EQ(POLLIN, hwt_wait(self->fd, 0));
	EXPECT_EQ(0U, ring_unread(ring));
	EXPECT_EQ((__u32)HWT_RINGS_MORE, ring_flags(ring));
	/* Start and stop, in one turn, with nothing known of what has fired. */
	ring_push(ring, op_cancel(1));
	ring_push(ring, op_key(HOUR, 2));
	ring_push(ring, op_key(HOUR, 4));
	ring_push(ring, op_cancel(4));
	ASSERT_EQ(4, ring_enter(ring, 4, 0, 0));
	ASSERT_TRUE(ring_pop(ring, &event));
	EXPECT_EQ(3ULL, event.id);
	EXPECT_FALSE(ring_pop(ring, &event));
	EXPECT_EQ(1ULL, hwt_timeouts(self->fd));
	/* A call that waits moves them as well. */
	ring_push(ring, op_key(20 * MSEC, 2));
	ASSERT_EQ(1, ring_enter(ring, 1, 1, HWT_NEVER));
	ASSERT_TRUE(ring_pop(ring, &event));
	EXPECT_EQ(2ULL, event.id);
}

/* -- Threads: see also process.c --------------------------------------------- */

/*
 * New data for an id, while the context gets keys: an entry has no room for both. What goes wrong
 * is in the table of keys.
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

TEST_F_TIMEOUT(keys, data_while_it_gets_keys, 60)
{
	unsigned int rounds = quick() ? 500 : 3000, i;
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
