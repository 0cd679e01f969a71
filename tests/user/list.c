// SPDX-License-Identifier: GPL-2.0-only
/*
 * HWT_IOC_LIST. For saving and restoring, see lib_basic.c; for overruns, see periodic.c.
 *
 * hwt-test: shared
 * hwt-test: timeout 180
 * hwt-test: m32
 */
#include "kselftest_harness.h"
#include <pthread.h>

#include "fixtures.h"

#define COUNT	4000

/* Kinds of timeouts, created in turn */
static const struct kind {
	__u32 mode, state;
	__u64 time_ns, period_ns, slack_ns;
} kinds[] = {
	{ .time_ns = HOUR, .state = HWT_STATE_PENDING },
	{ .time_ns = HOUR, .slack_ns = SEC, .state = HWT_STATE_PENDING },
	{ HWT_MODE_FIXED_RATE, HWT_STATE_PENDING, HOUR, SEC, 0 },
	{ HWT_MODE_FIXED_DELAY, HWT_STATE_PENDING, HOUR, SEC, 0 },
	{ .time_ns = HWT_NEVER, .state = HWT_STATE_PENDING },
	/* These have an unread event. */
	{ .time_ns = 0, .state = HWT_STATE_EVENT },
	{ HWT_MODE_FIXED_RATE, HWT_STATE_EVENT | HWT_STATE_PENDING, 0, 24 * HOUR, 0 },
};

#define KIND(_i)	(&kinds[(_i) % ARRAY_SIZE(kinds)])
#define PERIOD(_i)	(KIND(_i)->period_ns ? KIND(_i)->period_ns + (_i) : 0)

/* Indexed by user_data */
static __u64 ids[COUNT];
static struct hwt_list_entry entries[2 * COUNT];

static int list_at(int fd, __u64 *cursor, void *to, __u32 *count)
{
	const __u64 cursor_before = *cursor;
	const __u32 count_before = *count;
	int ret = hwt_list(fd, cursor, to, count);

	/* An error changes nothing. */
	if (ret && (cursor_before != *cursor || count_before != *count))
		return -1000;
	return ret;
}

/* List all timeouts, fewer than @max, @chunk at a time. Return their number or an error. */
static int list_all(int fd, struct hwt_list_entry *to, __u32 max, __u32 chunk)
{
	__u32 total = 0, count, room;
	__u64 cursor = 0;
	int ret;

	for (;;) {
		room = chunk < max - total ? chunk : max - total;
		count = room;
		ret = list_at(fd, &cursor, &to[total], &count);
		if (ret)
			return ret;
		if (!count)
			return total;
		if (count > room)
			return -1001;
		total += count;
	}
}

static int add(int fd, unsigned int i)
{
	const struct kind *kind = KIND(i);

	return hwt_arm(fd, &ids[i], .mode = kind->mode, .period_ns = PERIOD(i),
		       .time_ns = kind->time_ns + (kind->time_ns == HOUR ? i * 10 * MSEC : 0),
		       .slack_ns = kind->slack_ns, .user_data = i);
}

/* Create @count timeouts, and wait until all due ones have fired. */
static bool fill(int fd, unsigned int count)
{
	unsigned int i, due = 0;

	for (i = 0; i < count; i++) {
		if (add(fd, i))
			return false;
		due += !!(KIND(i)->state & HWT_STATE_EVENT);
	}
	return hwt_wait_expired(fd, due);
}

/* Check that the @n entries are the @count timeouts, each once. Return the number of errors. */
static unsigned int compare(unsigned int n, unsigned int count)
{
	const struct hwt_list_entry *got = entries;
	static unsigned char seen[COUNT];
	unsigned int odd = 0;

	memset(seen, 0, sizeof(seen));
	for (; got < entries + n; got++) {
		__u64 i = got->user_data;

		odd += i >= count || seen[i]++ || got->id != ids[i] ||
		       got->mode != KIND(i)->mode || got->state != KIND(i)->state ||
		       got->period_ns != PERIOD(i) || got->overruns || got->reserved;
	}
	return odd + (n != count);
}

TEST_F_TIMEOUT(ctx, all_in_chunks_of_any_size, 120)
{
	static const __u32 chunks[] = { 1, 7, 63, 64, 65, 128, 1000, COUNT, 2 * COUNT };
	unsigned int i, total = quick() ? COUNT / 10 : COUNT;
	__u32 count = ~0U;
	__u64 cursor = 0;
	int n;

	ASSERT_TRUE(fill(self->fd, total));
	for (i = 0; i < ARRAY_SIZE(chunks); i++) {
		n = list_all(self->fd, entries, 2 * COUNT, chunks[i]);
		EXPECT_EQ(0U, compare(n, total));
	}
	/* In one call, with a count that is larger than the array */
	memset(entries, 0xff, sizeof(entries));
	ASSERT_EQ(0, list_at(self->fd, &cursor, entries, &count));
	EXPECT_EQ(0U, compare(count, total));
	EXPECT_EQ(HWT_NEVER, entries[total].id);
}

/* An empty context, an emptied one, and cursors beyond the end */
TEST_F(ctx, beyond_the_end)
{
	static const __u64 beyond[] = {
		16, 1000, 0x7fffffff, 0xffffffff, 0x100000000, 1ULL << 63, ~0ULL,
	};
	unsigned int i, again;
	__u64 cursor, id;
	__u32 count;

	EXPECT_EQ(0, list_all(self->fd, entries, 2, 1));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, &id));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id));
	EXPECT_EQ(0, list_all(self->fd, entries, 2, 1));
	ASSERT_TRUE(fill(self->fd, 16));
	for (i = 0; i < ARRAY_SIZE(beyond); i++) {
		cursor = beyond[i];
		/* The cursor must not wrap to the beginning. */
		for (again = 0; again < 2; again++) {
			count = 10;
			EXPECT_EQ(0, list_at(self->fd, &cursor, entries, &count));
			EXPECT_EQ(0U, count);
		}
	}
}

TEST_F(ctx, says_the_same_as_get)
{
	struct hwt_list_entry *e = entries;
	unsigned int total = 1000, i;
	__u64 before, after;

	ASSERT_TRUE(fill(self->fd, total));
	before = now_ns();
	ASSERT_EQ((int)total, list_all(self->fd, entries, COUNT, 200));
	after = now_ns();
	for (i = 0; i < total; i++, e++) {
		struct hwt_get_args get;

		ASSERT_EQ(0, hwt_get(self->fd, e->id, &get));
		EXPECT_EQ(get.state, e->state);
		EXPECT_EQ(get.mode, e->mode);
		EXPECT_EQ(get.user_data, e->user_data);
		EXPECT_EQ(get.deadline_ns, e->deadline_ns);
		EXPECT_EQ(get.period_ns, e->period_ns);
		EXPECT_EQ(get.overruns, e->overruns);
		if (!(e->state & HWT_STATE_PENDING)) {
			EXPECT_EQ(0ULL, e->remaining_ns);
		} else if (e->deadline_ns == HWT_NEVER) {
			EXPECT_EQ(HWT_NEVER, e->remaining_ns);
		} else {
			EXPECT_LE(e->remaining_ns, e->deadline_ns - before);
			EXPECT_GE(e->remaining_ns, e->deadline_ns - after);
		}
	}
}

static volatile bool over;

static void *bustle(void *arg)
{
	int fd = *(int *)arg;
	static __u64 mine[300];
	unsigned int n = 12345, i;

	while (!over) {
		n = n * 1664525 + 1013904223;
		i = (n >> 8) % 300;
		if (mine[i])
			hwt_del(fd, mine[i]);
		mine[i] = 0;
		if (n >> 31)
			hwt_add(fd, 0, HOUR, COUNT + i, &mine[i]);
	}
	return NULL;
}

static int by_id(const void *a, const void *b)
{
	const struct hwt_list_entry *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

TEST_F_TIMEOUT(ctx, while_others_come_and_go, 120)
{
	unsigned int total = 1000, rounds = quick() ? 20 : 100, kept, round;
	static const __u32 chunks[] = { 1, 7, 64, 300, 5000 };
	int n, i, odd = 0, strangers = 0;
	pthread_t thread;

	ASSERT_TRUE(fill(self->fd, total / 2));
	ASSERT_EQ(0, pthread_create(&thread, NULL, bustle, &self->fd));
	/* Mix the slots of lasting timeouts with those of the other thread. */
	for (i = total / 2; i < (int)total; i++) {
		ASSERT_EQ(0, add(self->fd, i));
		sleep_ns(50 * USEC);
	}
	for (round = 0; round < rounds; round++) {
		n = list_all(self->fd, entries, 2 * COUNT,
			     chunks[round % ARRAY_SIZE(chunks)]);
		ASSERT_LE((int)total, n);
		/* Each lasting timeout comes once, each of the thread's at most once. */
		qsort(entries, n, sizeof(entries[0]), by_id);
		for (i = 0, kept = 0; i < n; i++) {
			const struct hwt_list_entry *e = &entries[i];

			odd += i && e->id == e[-1].id;
			if (e->user_data < COUNT) {
				kept++;
				odd += e->id != ids[e->user_data] ||
				       e->mode != KIND(e->user_data)->mode;
			} else {
				strangers++;
				odd += e->mode || e->period_ns || e->state != HWT_STATE_PENDING ||
				       e->remaining_ns > HOUR + SEC;
			}
		}
		EXPECT_EQ(total, kept);
	}
	over = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, odd);
	EXPECT_LT(0, strangers);
}

/* A signal shortens a call, but the call returns some entries, and the next one continues. */
TEST_F_TIMEOUT(ctx, signals_lose_nothing, 120)
{
	/* Limited in time: a slow kernel may do little but handle signals. */
	__u64 end = now_ns() + 2 * SEC;
	int ret, round, rounds = quick() ? 5 : 20;
	__u32 total, count;
	__u64 cursor;

	ASSERT_TRUE(fill(self->fd, COUNT));
	ASSERT_EQ(0, alarm_every(200, 0));
	for (round = 0; round < rounds && (!round || now_ns() < end); round++) {
		cursor = 0;
		total = 0;
		do {
			count = 2 * COUNT - total;
			ret = list_at(self->fd, &cursor, &entries[total], &count);
			if (!ret)
				total += count;
		} while (!ret && count);
		EXPECT_EQ(0, ret);
		EXPECT_EQ(0U, compare(total, COUNT));
	}
	ASSERT_EQ(0, alarm_every(0, 0));
}

/* For the other members, see badinput.c. */
TEST_F(ctx, bad_counts_and_sizes)
{
	const __u32 size = sizeof(entries[0]);
	const struct {
		__u32 count, entry_size;
		int ret;
	} tries[] = {
		{ 0, size, -EINVAL },
		{ 10, 0, -EINVAL },
		{ 10, size - 8, -EINVAL },
		{ 10, HWT_LIST_ENTRY_SIZE_MAX + 1, -EINVAL },
		{ 10, ~0U, -EINVAL },
		{ 10, size, 0 },
	};
	unsigned int i;

	ASSERT_TRUE(fill(self->fd, 16));
	for (i = 0; i < ARRAY_SIZE(tries); i++)
		EXPECT_EQ(tries[i].ret, hwt_with(self->fd, LIST, list,
						 .entries = (uintptr_t)entries,
						 .count = tries[i].count,
						 .entry_size = tries[i].entry_size));
	EXPECT_EQ(0U, compare(10, 10));
}

/* Entries of a program with a newer header: the kernel zeroes members that it does not know. */
TEST_F(ctx, larger_entries)
{
	struct {
		struct hwt_list_entry entry;
		__u64 more[2];
	} large[4];
	unsigned int i;

	memset(large, 0xff, sizeof(large));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 7, NULL));
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 7, NULL));
	ASSERT_EQ(0, hwt_with(self->fd, LIST, list, .entries = (uintptr_t)large, .count = 3,
			      .entry_size = sizeof(large[0])));
	for (i = 0; i < 2; i++)
		EXPECT_TRUE(large[i].entry.user_data == 7 && !large[i].more[0] &&
			    !large[i].more[1]);
	EXPECT_EQ(~0ULL, large[2].entry.id);
}

/*
 * If only a part of the buffer can be written, the call returns fewer entries and the next call
 * continues. A bad buffer in between loses nothing.
 */
TEST_F(ctx, half_a_buffer)
{
	static const char constant[64];
	void *bad[] = { NULL, (void *)8, (void *)-4096L, (void *)constant };
	long page = sysconf(_SC_PAGESIZE), room = 4 * page;
	unsigned int total = 1000, got = 0, i;
	__u64 cursor = 0;
	__u32 count;
	char *p;
	int ret;

	p = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0);
	ASSERT_NE(MAP_FAILED, (void *)p);
	ASSERT_EQ(0, mprotect(p + room, page, PROT_NONE));
	ASSERT_TRUE(fill(self->fd, total));
	while (got < total) {
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			count = 100;
			EXPECT_EQ(-EFAULT, list_at(self->fd, &cursor, bad[i], &count));
		}
		count = total;
		ret = list_at(self->fd, &cursor, p + 32, &count);
		ASSERT_EQ(0, ret);
		/* More entries may have been stored than counted. */
		ASSERT_LT(0U, count);
		ASSERT_GE(room / sizeof(entries[0]), count);
		memcpy(&entries[got], p + 32, count * sizeof(entries[0]));
		got += count;
	}
	EXPECT_EQ(0U, compare(got, total));
	munmap(p, room + page);
}

TEST_HARNESS_MAIN
