// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each function and each error of libhwt, except those of its queue.
 *
 * hwt-test: shared
 * hwt-test: timeout 180
 * hwt-test: m32
 * hwt-test: libs hwt
 */
#include "kselftest_harness.h"
#include <limits.h>

#include "guest.h"
#include "hwt_ring.h"
#include "libhwt.h"

#define PATIENCE_NS	(PATIENCE_MS * MSEC)
#define FDS_OPEN	names_in("/proc/self/fd", "")

static int open_flags(struct libhwt **hwt, unsigned int flags, __u64 max_pending)
{
	const struct libhwt_options options = {
		.size = sizeof(options),
		.flags = flags,
		.max_pending = max_pending,
	};

	return libhwt_open(hwt, &options);
}

FIXTURE(lib) {
	struct libhwt *hwt;
};

FIXTURE_SETUP(lib)
{
	ASSERT_EQ(0, libhwt_open(&self->hwt, NULL));
}

FIXTURE_TEARDOWN(lib)
{
	libhwt_close(self->hwt);
}

/* -- Contexts ------------------------------------------------------------ */

TEST(open_refuses)
{
	struct {
		int error;
		struct libhwt_options options;
	} bad[] = {
		{ -ENOENT, { .device = "/dev/hwt-is-not-here" } },
		{ -ENOTTY, { .device = "/dev/null" } },
		{ -ENOTTY, { .device = "/dev/null", .levels = 7 } },
		{ -EINVAL, { .levels = 7 } },
		{ -EINVAL, { .flags = HWT_SETUP_REALTIME | HWT_SETUP_BOOTTIME } },
		{ -EINVAL, { .priority = 3 } },
		/* A CPU requires HWT_SETUP_CPU. */
		{ -EINVAL, { .cpu = 1 } },
	};
	struct {
		struct libhwt_options	options;
		unsigned char		more[16];
	} newer = { .options.size = sizeof(newer) };
	struct libhwt *hwt = NULL;
	unsigned int fds = FDS_OPEN, i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		bad[i].options.size = sizeof(bad[i].options);
		EXPECT_EQ(bad[i].error, libhwt_open(&hwt, &bad[i].options));
	}
	bad[0].options.size--;
	EXPECT_EQ(-EINVAL, libhwt_open(&hwt, &bad[0].options));
	newer.more[15] = 1;
	EXPECT_EQ(-E2BIG, libhwt_open(&hwt, &newer.options));
	/* The failed calls have closed their files and stored nothing. */
	EXPECT_EQ(fds, FDS_OPEN);
	EXPECT_EQ(NULL, hwt);

	/* Unknown options are accepted if they are 0. */
	newer.more[15] = 0;
	ASSERT_EQ(0, libhwt_open(&hwt, &newer.options));
	libhwt_close(hwt);
	EXPECT_EQ(fds, FDS_OPEN);
	libhwt_close(NULL);
}

TEST(a_wheel_of_its_own)
{
	static const struct libhwt_options options = {
		.size = sizeof(options),
		.device = HWT_DEV,
		.flags = HWT_SETUP_BOOTTIME,
		.tick_ns = 5 * MSEC,
		.max_pending = 3,
		.ticks_per_wheel = 64,
		.levels = 2,
	};
	struct hwt_info_args info = { .size = sizeof(info) };
	struct libhwt *hwt;

	ASSERT_EQ(0, libhwt_open(&hwt, &options));
	ASSERT_EQ(0, libhwt_info(hwt, &info));
	EXPECT_EQ(5 * MSEC, info.tick_ns);
	EXPECT_EQ(64, info.ticks_per_wheel);
	EXPECT_EQ(2, info.levels);
	EXPECT_EQ(CLOCK_BOOTTIME, info.clock);
	EXPECT_EQ(3, info.max_pending);
	/* The call keeps the size, for the next call. */
	ASSERT_EQ(0, libhwt_info(hwt, &info));
	info.size = 0;
	EXPECT_EQ(-EINVAL, libhwt_info(hwt, &info));
	libhwt_close(hwt);
	/* Default options do not call HWT_IOC_SETUP, so the program still can. */
	ASSERT_EQ(0, open_flags(&hwt, 0, 0));
	EXPECT_EQ(0, hwt_setup(libhwt_fd(hwt), CLOCK_BOOTTIME, 0));
	libhwt_close(hwt);
}

/* The library sets O_NONBLOCK and FD_CLOEXEC on an adopted descriptor, too. */
TEST_F(lib, adopt)
{
	int own = libhwt_fd(self->hwt), fd, null;
	struct libhwt *hwt = NULL;
	struct hwt_event event;
	unsigned int fds;

	EXPECT_EQ(O_NONBLOCK, fcntl(own, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(FD_CLOEXEC, fcntl(own, F_GETFD));
	null = open("/dev/null", O_RDWR);
	ASSERT_LE(0, null);
	EXPECT_EQ(-EBADF, libhwt_adopt(&hwt, -1));
	EXPECT_EQ(-ENOTTY, libhwt_adopt(&hwt, null));
	fd = open("/dev/hwt", O_RDONLY);
	EXPECT_EQ(-EBADF, libhwt_adopt(&hwt, fd));
	close(fd);
	EXPECT_EQ(NULL, hwt);
	EXPECT_EQ(0, close(null));

	fds = FDS_OPEN;
	fd = hwt_open(0);
	ASSERT_EQ(0, hwt_add(fd, 0, 0, 7, NULL));
	ASSERT_EQ(0, fcntl(fd, F_SETFD, 0));
	ASSERT_EQ(0, libhwt_adopt(&hwt, fd));
	EXPECT_EQ(fd, libhwt_fd(hwt));
	EXPECT_EQ(O_NONBLOCK, fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	ASSERT_EQ(1, libhwt_next(hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(7, event.user_data);
	libhwt_close(hwt);
	EXPECT_EQ(fds, FDS_OPEN);
}

/* -- Timeouts ------------------------------------------------------------ */

TEST_F(lib, after_at_and_every)
{
	enum { AFTER, AT, EVERY } how;
	struct hwt_get_args get = { .size = sizeof(get) };
	__u64 due, data = ~0ULL;
	struct hwt_event event;
	uint64_t id;

	EXPECT_EQ(-EINVAL, libhwt_every(self->hwt, 0, 0, &id));
	for (how = AFTER; how <= EVERY; how++, data--) {
		due = libhwt_now(self->hwt) + 20 * MSEC;
		ASSERT_EQ(0, how == AT ? libhwt_at(self->hwt, due, data, &id) :
			     how == AFTER ? libhwt_after(self->hwt, 20 * MSEC, data, &id) :
					    libhwt_every(self->hwt, 20 * MSEC, data, &id));
		ASSERT_EQ(1, libhwt_next(self->hwt, &event, 1, PATIENCE_NS));
		EXPECT_EQ(id, event.id);
		EXPECT_EQ(data, event.user_data);
		EXPECT_LE(due, event.deadline_ns);
		EXPECT_TRUE(how != AT || event.deadline_ns < due + SEC);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
	}
	ASSERT_EQ(0, libhwt_get(self->hwt, id, &get));
	EXPECT_EQ(HWT_MODE_FIXED_RATE, get.mode);
	EXPECT_EQ(20 * MSEC, get.period_ns);
	EXPECT_LE(0, libhwt_cancel(self->hwt, id));
}

TEST_F(lib, schedule_and_reschedule)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.mode = HWT_MODE_FIXED_DELAY,
		.time_ns = HOUR,
		.period_ns = 2 * HOUR,
		.user_data = 3,
	};
	struct hwt_modify_args modify = {
		.size = sizeof(modify),
		.flags = HWT_ARM_USER_DATA,
		.time_ns = 5 * HOUR,
		.period_ns = 4 * HOUR,
		.user_data = 6,
	};
	struct hwt_get_args get = { .size = sizeof(get) };

	ASSERT_EQ(0, libhwt_schedule(self->hwt, &args));
	modify.id = args.id;
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_reschedule(self->hwt, &modify));
	ASSERT_EQ(0, libhwt_get(self->hwt, args.id, &get));
	EXPECT_EQ(HWT_MODE_FIXED_DELAY, get.mode);
	EXPECT_EQ(4 * HOUR, get.period_ns);
	EXPECT_EQ(6, get.user_data);
	EXPECT_LT(4 * HOUR, get.remaining_ns);

	modify.id++;
	EXPECT_EQ(-ENOENT, libhwt_reschedule(self->hwt, &modify));
	modify.size = 8;
	EXPECT_EQ(-EINVAL, libhwt_reschedule(self->hwt, &modify));
	args.size = 8;
	EXPECT_EQ(-EINVAL, libhwt_schedule(self->hwt, &args));
}

TEST_F(lib, get_modify_cancel)
{
	__u64 deadline = libhwt_now(self->hwt) + 7 * HOUR;
	struct hwt_stats_args stats = { .size = sizeof(stats) };
	struct hwt_get_args get = { .size = sizeof(get) };
	struct hwt_event event;
	uint64_t id;

	ASSERT_EQ(0, libhwt_after(self->hwt, HWT_NEVER, 9, &id));
	ASSERT_EQ(0, libhwt_get(self->hwt, id, &get));
	EXPECT_EQ(id, get.id);
	EXPECT_EQ(9, get.user_data);
	EXPECT_EQ(HWT_NEVER, get.remaining_ns);
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_modify(self->hwt, id, 3 * HOUR));
	ASSERT_EQ(0, libhwt_get(self->hwt, id, &get));
	EXPECT_LT(2 * HOUR, get.remaining_ns);
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_modify_at(self->hwt, id, deadline));
	ASSERT_EQ(0, libhwt_get(self->hwt, id, &get));
	EXPECT_LE(deadline, get.deadline_ns);
	EXPECT_GT(deadline + SEC, get.deadline_ns);
	EXPECT_EQ(9, get.user_data);
	get.size = 0;
	EXPECT_EQ(-EINVAL, libhwt_get(self->hwt, id, &get));

	/* A timeout that has fired and was not read becomes pending again. */
	ASSERT_LE(0, libhwt_modify(self->hwt, id, 0));
	ASSERT_EQ(POLLIN, hwt_wait(libhwt_fd(self->hwt), PATIENCE_MS));
	EXPECT_EQ(HWT_STATE_EVENT, libhwt_modify(self->hwt, id, HOUR));
	EXPECT_EQ(0, libhwt_next(self->hwt, &event, 1, 0));
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_cancel(self->hwt, id));
	get.size = sizeof(get);
	EXPECT_EQ(-ENOENT, libhwt_get(self->hwt, id, &get));
	EXPECT_EQ(-ENOENT, libhwt_modify(self->hwt, id, HOUR));
	EXPECT_EQ(-ENOENT, libhwt_modify_at(self->hwt, id, HOUR));
	EXPECT_EQ(-ENOENT, libhwt_cancel(self->hwt, id));

	EXPECT_EQ(0, libhwt_cancel_all(self->hwt));
	ASSERT_EQ(0, libhwt_after(self->hwt, HOUR, 0, NULL));
	ASSERT_EQ(0, libhwt_every(self->hwt, HOUR, 0, NULL));
	EXPECT_EQ(2, libhwt_cancel_all(self->hwt));
	ASSERT_EQ(0, libhwt_stats(self->hwt, &stats));
	EXPECT_TRUE(stats_same(stats, (struct hwt_stats_args) {
		.scheduled = 3, .modified = 4, .cancelled = 3, .expired = 1,
	}));
	stats.size = 4;
	EXPECT_EQ(-EINVAL, libhwt_stats(self->hwt, &stats));
}

TEST(keys)
{
	struct hwt_get_args get = { .size = sizeof(get) };
	struct hwt_list_entry *entries;
	const uint64_t key = ~0ULL - 3;
	struct hwt_event event;
	struct libhwt *hwt;
	uint64_t ids[2];
	__u64 deadline;
	size_t count;

	ASSERT_EQ(0, open_flags(&hwt, HWT_SETUP_KEYS, 0));
	EXPECT_EQ(0, libhwt_key_after(hwt, key, HOUR));
	EXPECT_EQ(0, libhwt_key_after(hwt, 0, HOUR));
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_key_after(hwt, key, 2 * HOUR));
	ASSERT_EQ(0, libhwt_get(hwt, key, &get));
	EXPECT_LT(HOUR, get.remaining_ns);
	deadline = libhwt_now(hwt) + 4 * HOUR;
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_key_at(hwt, key, deadline));
	ASSERT_EQ(0, libhwt_get(hwt, key, &get));
	EXPECT_LE(deadline, get.deadline_ns);
	EXPECT_GT(deadline + SEC, get.deadline_ns);
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_key_after(hwt, key, 0));
	ASSERT_EQ(1, libhwt_next(hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(key, event.id);
	EXPECT_EQ(key, event.user_data);
	EXPECT_EQ(0, libhwt_key_at(hwt, key, deadline));

	/* The restore creates one timeout and moves the other. */
	ASSERT_EQ(0, libhwt_save(hwt, &entries, &count));
	ASSERT_EQ(2, count);
	ASSERT_LE(0, libhwt_cancel(hwt, key));
	ASSERT_LE(0, libhwt_modify(hwt, 0, 3 * HOUR));
	ASSERT_EQ(0, libhwt_restore(hwt, entries, count, ids));
	EXPECT_EQ(key, ids[0] + ids[1]);
	ASSERT_EQ(0, libhwt_get(hwt, key, &get));
	ASSERT_EQ(0, libhwt_get(hwt, 0, &get));
	EXPECT_GT(2 * HOUR, get.remaining_ns);
	free(entries);
	libhwt_close(hwt);
}

TEST_F(lib, next_waits_as_long_as_it_is_told)
{
	/* The longest finite wait, and the shortest endless one */
	static const __u64 waits[] = { INT64_MAX, 1ULL << 63, HWT_NEVER };
	__u64 begin = now_ns();
	struct hwt_event event;
	unsigned int i;

	EXPECT_EQ(-EINVAL, libhwt_next(self->hwt, &event, 0, 0));
	EXPECT_EQ(0, libhwt_next(self->hwt, &event, 1, 0));
	EXPECT_EQ(0, libhwt_next(self->hwt, &event, 1, 30 * MSEC));
	EXPECT_LE(begin + 30 * MSEC, now_ns());
	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		ASSERT_EQ(0, libhwt_after(self->hwt, 5 * MSEC, 0, NULL));
		EXPECT_EQ(1, libhwt_next(self->hwt, &event, 1, waits[i]));
	}
}

/* -- Save and restore ---------------------------------------------------- */

#define COUNT	1000

static int fill(struct libhwt *hwt)
{
	int i, ret = 0;

	for (i = 0; i < COUNT && !ret; i++) {
		if (i % 4 == 3)
			ret = libhwt_every(hwt, HOUR + i * SEC, i, NULL);
		else
			ret = libhwt_after(hwt, i % 4 ? HOUR + i * SEC : HWT_NEVER, i, NULL);
	}
	return ret;
}

/* Return the entry with @user_data, or NULL. */
static const struct hwt_list_entry *find(const struct hwt_list_entry *got, size_t count,
					 __u64 user_data)
{
	size_t i;

	for (i = 0; i < count && got[i].user_data != user_data; i++)
		;
	return i < count ? &got[i] : NULL;
}

TEST_F(lib, save_and_restore)
{
	struct hwt_list_entry *before, *after;
	const struct hwt_list_entry *entry;
	size_t count = 7, count2, i;
	uint64_t cursor = 0;
	struct libhwt *other;
	uint64_t *ids;

	ASSERT_EQ(0, libhwt_save(self->hwt, &before, &count));
	EXPECT_EQ(0, count);
	ASSERT_EQ(0, libhwt_restore(self->hwt, before, count, NULL));
	free(before);

	ASSERT_EQ(0, fill(self->hwt));
	ASSERT_EQ(0, libhwt_save(self->hwt, &before, &count));
	ASSERT_EQ(COUNT, count);
	/* libhwt_list() stores as many entries as fit. */
	EXPECT_EQ(-EINVAL, libhwt_list(self->hwt, &cursor, before, 0));
	EXPECT_EQ(70, libhwt_list(self->hwt, &cursor, before, 70));
	EXPECT_EQ(COUNT - 70, libhwt_list(self->hwt, &cursor, before + 70, COUNT));
	EXPECT_EQ(0, libhwt_list(self->hwt, &cursor, before, COUNT));
	ASSERT_EQ(0, libhwt_open(&other, NULL));
	ids = calloc(count, sizeof(*ids));
	ASSERT_EQ(0, libhwt_restore(other, before, count, ids));
	ASSERT_EQ(0, libhwt_save(other, &after, &count2));
	ASSERT_EQ(COUNT, count2);
	for (i = 0; i < COUNT; i++) {
		entry = find(after, count2, before[i].user_data);
		ASSERT_NE(NULL, entry);
		EXPECT_EQ(entry->id, ids[i]);
		EXPECT_EQ(entry->mode, before[i].mode);
		EXPECT_EQ(entry->period_ns, before[i].period_ns);
		EXPECT_EQ(entry->state, before[i].state);
		if (before[i].remaining_ns == HWT_NEVER) {
			EXPECT_EQ(HWT_NEVER, entry->remaining_ns);
			continue;
		}
		/* The time was rounded up to a tick, and some of it has passed. */
		EXPECT_GE(before[i].remaining_ns + 10 * MSEC, entry->remaining_ns);
		EXPECT_LE(before[i].remaining_ns, entry->remaining_ns + PATIENCE_NS);
	}
	free(ids);
	free(before);
	free(after);
	libhwt_close(other);
}

/* Dates stay, and a timeout that has fired fires again. */
TEST(restore_on_the_wall_clock)
{
	struct hwt_get_args get = { .size = sizeof(get) };
	const struct hwt_list_entry *entry;
	struct hwt_list_entry *entries;
	__u64 before = clock_ns(CLOCK_REALTIME);
	struct hwt_event event;
	struct libhwt *hwt;
	uint64_t ids[2];
	size_t count;

	ASSERT_EQ(0, open_flags(&hwt, HWT_SETUP_REALTIME, 0));
	EXPECT_LE(before, libhwt_now(hwt));
	EXPECT_GE(clock_ns(CLOCK_REALTIME) + SEC, libhwt_now(hwt));
	ASSERT_EQ(0, libhwt_at(hwt, libhwt_now(hwt) + HOUR, 76, NULL));
	ASSERT_EQ(0, libhwt_after(hwt, 0, 77, NULL));
	ASSERT_EQ(POLLIN, hwt_wait(libhwt_fd(hwt), PATIENCE_MS));
	ASSERT_EQ(0, libhwt_save(hwt, &entries, &count));
	ASSERT_EQ(2, count);
	libhwt_close(hwt);
	sleep_ns(50 * MSEC);

	ASSERT_EQ(0, open_flags(&hwt, HWT_SETUP_REALTIME, 0));
	ASSERT_EQ(0, libhwt_restore(hwt, entries, count, ids));
	ASSERT_EQ(1, libhwt_next(hwt, &event, 1, PATIENCE_NS));
	EXPECT_EQ(77, event.user_data);
	EXPECT_EQ(HWT_EVENT_EXPIRED, event.kind);
	entry = find(entries, count, 76);
	ASSERT_NE(NULL, entry);
	ASSERT_EQ(0, libhwt_get(hwt, ids[entry - entries], &get));
	EXPECT_EQ(entry->deadline_ns, get.deadline_ns);
	free(entries);
	libhwt_close(hwt);
}

TEST(restore_is_all_or_nothing)
{
	struct hwt_list_entry entries[200] = {};
	struct hwt_stats_args stats = { .size = sizeof(stats) };
	struct libhwt *hwt;
	uint64_t ids[200];
	int i;

	for (i = 0; i < 200; i++) {
		entries[i].id = i;
		entries[i].state = HWT_STATE_PENDING;
		entries[i].remaining_ns = HOUR;
	}
	ASSERT_EQ(0, open_flags(&hwt, 0, 150));
	EXPECT_EQ(-ENOSPC, libhwt_restore(hwt, entries, 200, NULL));
	EXPECT_EQ(-ENOSPC, libhwt_restore(hwt, entries, 200, ids));
	/* A bad entry in the middle of entries that would fit */
	entries[3].mode = 99;
	EXPECT_EQ(-EINVAL, libhwt_restore(hwt, entries, 100, NULL));
	ASSERT_EQ(0, libhwt_stats(hwt, &stats));
	EXPECT_EQ(0, stats.timeouts);
	EXPECT_LT(100, stats.cancelled);
	EXPECT_EQ(HWT_LIMIT_PENDING, stats.limit);
	libhwt_close(hwt);

	/* A timeout that existed before stays. */
	ASSERT_EQ(0, open_flags(&hwt, HWT_SETUP_KEYS, 0));
	ASSERT_EQ(0, libhwt_key_after(hwt, 0, 2 * HOUR));
	EXPECT_EQ(-EINVAL, libhwt_restore(hwt, entries, 100, NULL));
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_cancel(hwt, 0));
	ASSERT_EQ(0, libhwt_stats(hwt, &stats));
	EXPECT_EQ(0, stats.timeouts);
	libhwt_close(hwt);
}

TEST_HARNESS_MAIN
