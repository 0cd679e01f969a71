// SPDX-License-Identifier: GPL-2.0-only
/*
 * No uninitialized kernel memory reaches a program. The debug kernel fills freed slab objects and
 * pages (slub_debug=P, page_poison=1) and local variables (CONFIG_INIT_STACK_ALL_PATTERN) with
 * patterns, for which the test searches structures of arguments, events, arrays and rings. Bytes
 * after a structure or an array stay unchanged; for calls that fail, see badinput.c.
 *
 * hwt-test: only debug debug612
 */
#include "kselftest_harness.h"

#include "guest.h"
#include "ioctls.h"

/* The program's content of output buffers */
#define OURS	0x11

/* Freed slab objects, pages, local variables; surroundings of slab objects */
static const unsigned char patterns[] = { 0x6b, 0xaa, 0xfe, 0x5a, 0xbb, 0xcc };

/* Return the offset of a pattern, or -1. No member is smaller than 32 bits. */
static long poison_at(const void *start, size_t size)
{
	const __u32 *words = start;
	unsigned int i;
	size_t at;

	for (at = 0; at < size / 4; at++)
		for (i = 0; i < sizeof(patterns); i++)
			if (words[at] == patterns[i] * 0x01010101U)
				return at * 4;
	return -1;
}

static bool all(const void *start, size_t size, unsigned char value)
{
	const unsigned char *bytes = start;

	while (size--)
		if (*bytes++ != value)
			return false;
	return true;
}

FIXTURE(poison) {
	int fd;
};

FIXTURE_SETUP(poison)
{
	ASSERT_TRUE(file_has("/proc/cmdline", "slub_debug=P"));
	ASSERT_TRUE(file_has("/proc/cmdline", "page_poison=1"));
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 1, NULL));
	ASSERT_EQ(0, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, HOUR, HOUR, 2, NULL));
}

FIXTURE_TEARDOWN(poison)
{
	close(self->fd);
}

/* Call an ioctl in a new context, with a structure of @size bytes. */
static void check_ioctl(struct __test_metadata *_metadata, const struct ioctl_case *c,
			__u32 size)
{
	__u32 buffer[1024];
	unsigned char *bytes = (void *)buffer;
	struct ring ring = {};
	int fd = hwt_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	memset(bytes, OURS, sizeof(buffer));
	ioctl_prepare(_metadata, c, fd, &ring, bytes);
	if (size > c->size)
		memset(bytes + c->size, 0, size - c->size);
	else
		memset(bytes + size, OURS, c->size - size);
	buffer[0] = size;

	ASSERT_EQ(0, hwt_call(fd, c->request, bytes));
	EXPECT_EQ(-1, poison_at(bytes, size));
	EXPECT_EQ(size, buffer[0]);
	if (size > c->size)
		EXPECT_TRUE(all(bytes + c->size, size - c->size, 0));
	EXPECT_TRUE(all(bytes + size, sizeof(buffer) - size, OURS));
	if (!_metadata->passed)
		TH_LOG("%s, size %u", c->name, size);
	ring_unmap(&ring);
	close(fd);
}

TEST_F(poison, structures)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ioctls); i++) {
		check_ioctl(_metadata, &ioctls[i], ioctls[i].size);
		check_ioctl(_metadata, &ioctls[i], ioctls[i].first_size);
		check_ioctl(_metadata, &ioctls[i], ioctls[i].size + 8);
		check_ioctl(_metadata, &ioctls[i], 2048);
	}
}

/* Read and check @count events. Return the sum of their overruns. */
static __u64 check_events(struct __test_metadata *_metadata, int fd, unsigned int count)
{
	struct hwt_event events[16];
	__u64 overruns = 0;
	unsigned int n = 0;
	int ret;

	memset(events, OURS, sizeof(events));
	while (n < count) {
		ASSERT_LT(0, hwt_wait(fd, PATIENCE_MS));
		ret = hwt_read(fd, events + n, count - n);
		ASSERT_LT(0, ret);
		n += ret;
	}
	EXPECT_EQ(-1, poison_at(events, n * sizeof(events[0])));
	while (n--) {
		EXPECT_EQ(events[n].kind != HWT_EVENT_CLOCK_SET, !!events[n].generation);
		EXPECT_EQ(0ULL, events[n].reserved);
		overruns += events[n].overruns;
	}
	EXPECT_TRUE(all(events + count, sizeof(events) - count * sizeof(events[0]), OURS));
	return overruns;
}

TEST_F(poison, events)
{
	__u64 id;

	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 3, NULL));
	ASSERT_EQ(0, hwt_add(self->fd, HWT_ARM_ABSOLUTE, 0, 4, NULL));
	check_events(_metadata, self->fd, 2);
	ASSERT_EQ(0, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, 0, MSEC, 5, &id));
	sleep_ns(30 * MSEC);
	EXPECT_LT(0, check_events(_metadata, self->fd, 1));
	ASSERT_LE(0, hwt_del(self->fd, id));
}

static bool clock_shift(long seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += seconds;
	return !clock_settime(CLOCK_REALTIME, &now);
}

TEST_F(poison, clock_set)
{
	int fd = hwt_open(O_NONBLOCK);

	ASSERT_EQ(0, hwt_setup(fd, CLOCK_REALTIME, HWT_SETUP_TELL_CLOCK_SET));
	ASSERT_TRUE(clock_shift(10));
	check_events(_metadata, fd, 1);
	/* Restore the clock for later tests. */
	ASSERT_TRUE(clock_shift(-10));
	close(fd);
}

#define MANY	150	/* entries of more than a page */

TEST_F(poison, list)
{
	struct hwt_list_entry entries[MANY + 10];
	unsigned int i;

	for (i = 2; i < MANY; i++)
		ASSERT_EQ(0, hwt_add(self->fd, 0, HWT_NEVER, i, NULL));
	memset(entries, OURS, sizeof(entries));
	ASSERT_EQ(MANY, hwt_entries(self->fd, entries, MANY + 10));
	EXPECT_EQ(-1, poison_at(entries, MANY * sizeof(entries[0])));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0ULL, entries[i].reserved);
	EXPECT_TRUE(all(entries + MANY, 10 * sizeof(entries[0]), OURS));
}

TEST_F(poison, rings)
{
	struct hwt_op op = op_schedule(0, 0);
	unsigned int round, i;
	struct ring ring;
	size_t used;
	int fd;

	/* Vary the sizes, so that the last page is not always full. */
	for (round = 0; round < 64; round++) {
		fd = hwt_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, ring_make(&ring, fd, 0, 1 << round % 10, 1 << round % 7));
		EXPECT_EQ(HWT_NEVER, ring.shared->next_ns);
		ring.shared->next_ns = 0;
		EXPECT_TRUE(all(ring.shared, ring.size, 0));
		used = (char *)(ring.events + ring.event_mask + 1) - (char *)ring.shared;
		ASSERT_LE(used, ring.size);
		/* Each opcode, and an unknown one */
		for (i = 0; i <= ring.op_mask && i < 8; i++) {
			op.opcode = 1 + i % 5;
			ASSERT_TRUE(ring_push(&ring, op));
		}
		ASSERT_EQ((long)i, ring_enter(&ring, i, 1, PATIENCE_MS * MSEC));
		EXPECT_EQ(-1, poison_at(ring.shared, ring.size));
		EXPECT_TRUE(all((char *)ring.shared + used, ring.size - used, 0));
		EXPECT_TRUE(all(ring.shared->reserved, sizeof(ring.shared->reserved), 0));
		ring_close(&ring);
	}
}

TEST_HARNESS_MAIN
