// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device and its contexts: HWT_IOC_INFO, HWT_IOC_SETUP, HWT_IOC_STATS.
 *
 * hwt-test: shared
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sys/stat.h>

#include "fixtures.h"
#include "guest.h"

TEST(node_is_for_root_only)
{
	struct stat st;

	ASSERT_EQ(0, stat(HWT_DEV, &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	EXPECT_EQ(0600, (int)(st.st_mode & 07777));
}

TEST_F(ctx, info)
{
	struct hwt_info_args info;
	__u64 before, after;

	before = now_ns();
	ASSERT_EQ(0, hwt_info(self->fd, &info));
	after = now_ns();
	EXPECT_EQ((__u32)sizeof(info), info.size);
	EXPECT_EQ(0U, info.flags);
	EXPECT_EQ(CLOCK_MONOTONIC, info.clock);
	EXPECT_EQ(hwt_param("tick_us") * USEC, info.tick_ns);
	EXPECT_EQ((__u32)contexts_have_threads(), info.thread);
	EXPECT_EQ(info.thread ? 0 : HWT_NEVER, info.next_ns);
	EXPECT_LE(before, info.now_ns);
	EXPECT_GE(after, info.now_ns);
	EXPECT_EQ(hwt_param("max_timeouts"), info.max_timeouts);
	EXPECT_EQ(0ULL, info.max_pending);
	/* HWT_FEATURE_URING depends on the kernel. */
	EXPECT_EQ((__u64)(HWT_FEATURE_SETUP | HWT_FEATURE_BOOTTIME | HWT_FEATURE_REALTIME |
			  HWT_FEATURE_LIST | HWT_FEATURE_RINGS | HWT_FEATURE_THREAD |
			  HWT_FEATURE_KEYS),
		  info.features & ~(__u64)HWT_FEATURE_URING);
	EXPECT_EQ((__u32)sizeof(struct hwt_event), info.event_size);
	EXPECT_EQ(0U, info.keys);
}

/* Zeroes stand for defaults. SETUP works once, and before the first timeout. */
TEST_F(ctx, setup_makes_what_fits)
{
	const __u64 tick = hwt_param("tick_us") * USEC, least = hwt_param("min_tick_us") * USEC;
	const bool threads = contexts_have_threads();
	const __u32 ticks = threads ? hwt_param("ticks_per_wheel") : 64;
	const __u32 levels = threads ? hwt_param("levels") : 5;
	const struct {
		__u32 flags;
		__u64 tick_ns;
		__u32 ticks, levels;
		int thread;
		struct hwt_info_args want;
	} wheels[] = {
		{ 0, 0, 0, 0, 0, { .clock = CLOCK_MONOTONIC, .tick_ns = tick,
		  .ticks_per_wheel = ticks, .levels = levels } },
		{ 0, 2 * MSEC, 0, 0, 0, { .clock = CLOCK_MONOTONIC, .tick_ns = 2 * MSEC,
		  .ticks_per_wheel = ticks, .levels = levels } },
		{ HWT_SETUP_THREAD, 5 * MSEC, 100, 2, 1, { .clock = CLOCK_MONOTONIC,
		  .tick_ns = 5 * MSEC, .ticks_per_wheel = 128, .levels = 2 } },
		{ HWT_SETUP_BOOTTIME, 0, 0, 0, 0, { .clock = CLOCK_BOOTTIME, .tick_ns = tick,
		  .ticks_per_wheel = ticks, .levels = levels } },
		{ 0, 1000, 0, 0, 0, { .clock = CLOCK_MONOTONIC, .tick_ns = least,
		  .ticks_per_wheel = ticks, .levels = levels } },
	};
	struct hwt_info_args info;
	unsigned int i;
	__u64 id;

	for (i = 0; i < ARRAY_SIZE(wheels); i++) {
		ASSERT_EQ(0, hwt_with(self->fd, SETUP, setup, .flags = wheels[i].flags,
				      .tick_ns = wheels[i].tick_ns, .levels = wheels[i].levels,
				      .ticks_per_wheel = wheels[i].ticks));
		ASSERT_EQ(0, hwt_info(self->fd, &info));
		EXPECT_EQ(wheels[i].want.clock, info.clock);
		EXPECT_EQ(wheels[i].want.tick_ns, info.tick_ns);
		EXPECT_EQ(wheels[i].want.ticks_per_wheel, info.ticks_per_wheel);
		EXPECT_EQ(wheels[i].want.levels, info.levels);
		EXPECT_EQ(wheels[i].thread || threads, info.thread);
		EXPECT_EQ((long)info.thread, fd_number(self->fd, "hwt-thread"));
		EXPECT_EQ(-EBUSY, hwt_setup(self->fd, CLOCK_MONOTONIC, 0));
		close(self->fd);
		self->fd = hwt_open(O_NONBLOCK);
	}
	ASSERT_EQ(0, hwt_add(self->fd, 0, SEC, 0, &id));
	EXPECT_EQ(-EBUSY, hwt_setup(self->fd, CLOCK_MONOTONIC, 0));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id));
	EXPECT_EQ(-EBUSY, hwt_setup(self->fd, CLOCK_MONOTONIC, 0));
}

TEST_F(ctx, read_only)
{
	const unsigned long refused[] = {
		HWT_IOC_SETUP, HWT_IOC_SCHEDULE, HWT_IOC_MODIFY, HWT_IOC_CANCEL, HWT_IOC_RINGS,
		HWT_IOC_ENTER,
	};
	struct hwt_list_entry entry;
	struct hwt_stats_args stats;
	struct hwt_info_args info;
	struct hwt_get_args get;
	struct hwt_event event;
	unsigned int i;
	int fd;

	fd = open(HWT_DEV, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(refused); i++)
		EXPECT_EQ(-EBADF, hwt_call(fd, refused[i], NULL))
			TH_LOG("number %u", i);
	EXPECT_EQ(0, hwt_info(fd, &info));
	EXPECT_EQ(0, hwt_stats(fd, &stats));
	EXPECT_EQ(0, hwt_entries(fd, &entry, 1));
	EXPECT_EQ(-ENOENT, hwt_get(fd, 1, &get));
	EXPECT_EQ(0, hwt_wait(fd, 0));
	EXPECT_EQ(-EAGAIN, hwt_read(fd, &event, 1));
	close(fd);
	fd = open(HWT_DEV, O_WRONLY | O_CLOEXEC);
	EXPECT_EQ(0, hwt_add(fd, 0, 0, 0, NULL));
	EXPECT_EQ(-EBADF, hwt_read(fd, &event, 1));
	close(fd);
}

TEST_F(ctx, cancel_all)
{
	struct hwt_cancel_args args = { .size = sizeof(args), .flags = HWT_CANCEL_ALL };
	struct hwt_event event;
	unsigned int i;

	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, i, NULL));
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, i, NULL));
	ASSERT_TRUE(hwt_wait_expired(self->fd, 1));
	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_CANCEL, &args));
	EXPECT_EQ(101U, args.count);
	EXPECT_TRUE(stats_are(self->fd, .scheduled = 101, .cancelled = 101, .expired = 1));
	EXPECT_EQ(-EAGAIN, hwt_read(self->fd, &event, 1));
	args.id = 1;
	EXPECT_EQ(-EINVAL, hwt_call(self->fd, HWT_IOC_CANCEL, &args));
	args.flags = 0;
	ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, &args.id));
	ASSERT_EQ(0, hwt_call(self->fd, HWT_IOC_CANCEL, &args));
	EXPECT_EQ(1U, args.count);
	ASSERT_EQ(0, hwt_add(self->fd, 0, 0, 7, NULL));
	ASSERT_EQ(1, hwt_next(self->fd, &event));
	EXPECT_EQ(7ULL, event.user_data);
}

#define RIVALS	4

struct rival {
	pthread_t thread;
	pthread_barrier_t *start;
	unsigned int rings;	/* entries of rings; 0: ask for a wheel */
	int fd;
	int ret;
};

static void *rival_run(void *arg)
{
	struct hwt_rings_args args;
	struct rival *rival = arg;

	pthread_barrier_wait(rival->start);
	rival->ret = rival->rings ? hwt_rings(rival->fd, 0, rival->rings, 64, &args) :
				    hwt_setup(rival->fd, CLOCK_MONOTONIC, 0);
	return NULL;
}

/* One of several concurrent calls of SETUP or RINGS succeeds. The others leave nothing behind. */
TEST_F_TIMEOUT(ctx, has_one_winner, 120)
{
	struct rival rivals[RIVALS];
	pthread_barrier_t start;
	int round, i, won, busy;

	pthread_barrier_init(&start, NULL, RIVALS);
	for (round = 0; round < 110; round++) {
		for (i = 0; i < RIVALS; i++) {
			rivals[i] = (struct rival) {
				.start = &start,
				.rings = round >= 10 ? 8 << i : 0,
				.fd = self->fd,
			};
			ASSERT_EQ(0, pthread_create(&rivals[i].thread, NULL, rival_run,
						    &rivals[i]));
		}
		for (i = 0, won = 0, busy = 0; i < RIVALS; i++) {
			pthread_join(rivals[i].thread, NULL);
			won += rivals[i].ret == 0;
			busy += rivals[i].ret == -EBUSY;
		}
		EXPECT_EQ(1, won);
		EXPECT_EQ(RIVALS - 1, busy);
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, 0, NULL));
		close(self->fd);
		self->fd = hwt_open(O_NONBLOCK);
		ASSERT_LE(0, self->fd);
	}
}

/* Only timeouts that will fire count as pending: not a one-shot with an event. */
TEST_F(ctx, stats_are_exact)
{
	struct hwt_event events[2];
	__u64 id[4];
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, hwt_add(self->fd, 0, HOUR, i, &id[i]));
	ASSERT_EQ(0, hwt_add_periodic(self->fd, HWT_MODE_FIXED_RATE, 0, HOUR, i, NULL));
	ASSERT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id[0], 0, 2 * HOUR));
	ASSERT_EQ(HWT_STATE_PENDING, hwt_move(self->fd, id[1], 0, 0));
	ASSERT_EQ(HWT_STATE_PENDING, hwt_del(self->fd, id[2]));
	ASSERT_TRUE(hwt_wait_expired(self->fd, 2));
	EXPECT_TRUE(stats_are(self->fd, .timeouts = 4, .pending = 3, .events = 2, .scheduled = 5,
			      .modified = 2, .cancelled = 1, .expired = 2));
	EXPECT_EQ(1, fd_number(self->fd, "hwt-clockid"));
	EXPECT_EQ(4, fd_number(self->fd, "hwt-timeouts"));
	EXPECT_EQ(2, fd_number(self->fd, "hwt-events"));
	ASSERT_EQ(2, hwt_read(self->fd, events, 2));
	EXPECT_TRUE(stats_are(self->fd, .timeouts = 3, .pending = 3, .scheduled = 5, .modified = 2,
			      .cancelled = 1, .expired = 2, .read = 2));
}

TEST_F(ctx, is_a_stream)
{
	char buf[128];

	EXPECT_TRUE(lseek(self->fd, 0, SEEK_SET) < 0 && errno == ESPIPE);
	EXPECT_TRUE(pread(self->fd, buf, sizeof(buf), 0) < 0 && errno == ESPIPE);
	EXPECT_TRUE(write(self->fd, buf, sizeof(buf)) < 0 && errno == EINVAL);
	/* mmap() fails without rings. */
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->fd, 0));
	EXPECT_EQ(EINVAL, errno);
}

TEST_HARNESS_MAIN
