// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bad input to /dev/hwt: each gets its error, and nothing changes by it.
 *
 * hwt-test: m32
 */
#include "kselftest_harness.h"
#include <stddef.h>

#include "hwt_dev.h"

union args {
	__u32				size;
	struct {
		__u32			same_size;
		__u32			flags;
	};
	struct hwt_info_args		info;
	struct hwt_setup_args		setup;
	struct hwt_schedule_args	schedule;
	struct hwt_modify_args		modify;
	struct hwt_cancel_args		cancel;
	struct hwt_get_args		get;
	struct hwt_stop_args		stop;
	struct hwt_stats_args		stats;
	struct hwt_list_args		list;
	char				page[8192];
};

/* Each ioctl with arguments that are good. STOP last: it ends the context. */
static const struct ioctl {
	const char	*name;
	unsigned long	request;
	__u32		size;
	__u32		first_size;	/* of the first version */
	__u32		flags;		/* that are known */
	size_t		reserved;	/* where the reserved field is, 0: none */
	union args	good;
} ioctls[] = {
	{
		"SETUP", HWT_IOC_SETUP, sizeof(struct hwt_setup_args), HWT_SETUP_SIZE_VER1,
		HWT_SETUP_COARSE_CLOCK | HWT_SETUP_TELL_CLOCK_SET | HWT_SETUP_BUSY_WAIT |
		HWT_SETUP_CPU,
		offsetof(struct hwt_setup_args, reserved),
		{ .setup = { .clock = CLOCK_REALTIME } },
	},
	{
		"INFO", HWT_IOC_INFO, sizeof(struct hwt_info_args), HWT_INFO_SIZE_VER1,
		0, offsetof(struct hwt_info_args, reserved), { .size = 0 },
	},
	{
		"SCHEDULE", HWT_IOC_SCHEDULE, sizeof(struct hwt_schedule_args),
		HWT_SCHEDULE_SIZE_VER1,
		HWT_ABSOLUTE, offsetof(struct hwt_schedule_args, reserved),
		{ .schedule = { .time_ns = HWT_NEVER } },
	},
	{
		"MODIFY", HWT_IOC_MODIFY, sizeof(struct hwt_modify_args), HWT_MODIFY_SIZE_VER1,
		HWT_ABSOLUTE | HWT_SET_USER_DATA,
		offsetof(struct hwt_modify_args, reserved),
		{ .modify = { .time_ns = HWT_NEVER } },
	},
	{
		"GET", HWT_IOC_GET, sizeof(struct hwt_get_args), HWT_GET_SIZE_VER1,
		0, 0, { .size = 0 },
	},
	{
		"CANCEL", HWT_IOC_CANCEL, sizeof(struct hwt_cancel_args), HWT_CANCEL_SIZE_VER1,
		0, offsetof(struct hwt_cancel_args, reserved), { .size = 0 },
	},
	{
		"STATS", HWT_IOC_STATS, sizeof(struct hwt_stats_args), HWT_STATS_SIZE_VER1,
		0, 0, { .size = 0 },
	},
	{
		"STOP", HWT_IOC_STOP, sizeof(struct hwt_stop_args), HWT_STOP_SIZE_VER1,
		0, 0, { .size = 0 },
	},
	{
		"LIST", HWT_IOC_LIST, sizeof(struct hwt_list_args), HWT_LIST_SIZE_VER1, 0, 0,
		{ .list = { .count = 1, .entry_size = sizeof(struct hwt_list_entry) } },
	},
};

FIXTURE(each) {
	int fd;
	unsigned int page;
	union args *args;	/* what follows it is not there */
};

FIXTURE_VARIANT(each) {
	int nr;
};

FIXTURE_VARIANT_ADD(each, setup) { .nr = 0 };
FIXTURE_VARIANT_ADD(each, info) { .nr = 1 };
FIXTURE_VARIANT_ADD(each, schedule) { .nr = 2 };
FIXTURE_VARIANT_ADD(each, modify) { .nr = 3 };
FIXTURE_VARIANT_ADD(each, get) { .nr = 4 };
FIXTURE_VARIANT_ADD(each, cancel) { .nr = 5 };
FIXTURE_VARIANT_ADD(each, stats) { .nr = 6 };
FIXTURE_VARIANT_ADD(each, stop) { .nr = 7 };
FIXTURE_VARIANT_ADD(each, list) { .nr = 8 };

FIXTURE_SETUP(each)
{
	char *p;

	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->page = sysconf(_SC_PAGESIZE);
	p = mmap(NULL, 4 * self->page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)p);
	ASSERT_EQ(0, munmap(p + 3 * self->page, self->page));
	self->args = (void *)p;
}

FIXTURE_TEARDOWN(each)
{
	munmap(self->args, 3 * self->page);
	close(self->fd);
}

/* Good arguments; id is that of a timeout if the ioctl wants one. */
static void prepare(int fd, const struct ioctl *ioctl, union args *args)
{
	__u64 id = 0;

	memset(args, 0, sizeof(*args));
	memcpy(args, &ioctl->good, ioctl->size);
	args->size = ioctl->size;
	if (ioctl->request == HWT_IOC_MODIFY || ioctl->request == HWT_IOC_GET ||
	    ioctl->request == HWT_IOC_CANCEL) {
		hwt_add(fd, 0, HWT_NEVER, 0, &id);
		args->cancel.id = id;
	}
}

/* What the context looks like: to see that a refused call has changed nothing. */
static __u64 digest(int fd)
{
	struct hwt_stats_args stats;
	struct hwt_info_args info;

	hwt_stats(fd, &stats);
	hwt_info(fd, &info);
	return ((stats.timeouts * 1000 + stats.scheduled) * 1000 + stats.cancelled) * 1000 +
	       stats.modified * 100 + stats.stopped + info.ticks_per_wheel;
}

TEST_F(each, good_arguments)
{
	const struct ioctl *ioctl = &ioctls[variant->nr];

	prepare(self->fd, ioctl, self->args);
	EXPECT_EQ(0, hwt_call(self->fd, ioctl->request, self->args));
	EXPECT_EQ(ioctl->size, self->args->size);
}

TEST_F(each, bad_pointer)
{
	const struct ioctl *ioctl = &ioctls[variant->nr];
	char *end = (char *)self->args + 3 * self->page;
	__u64 before = digest(self->fd);

	EXPECT_EQ(-EFAULT, hwt_call(self->fd, ioctl->request, NULL));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, ioctl->request, (void *)8));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, ioctl->request, end));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, ioctl->request, (void *)-8L));
	/* The size can be read, the rest cannot. */
	memcpy(end - 8, &ioctl->size, 4);
	memset(end - 4, 0, 4);
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, ioctl->request, end - 8));
	EXPECT_EQ(before, digest(self->fd));
}

/* Up to the last byte of a mapping is good. */
TEST_F(each, at_the_end_of_a_mapping)
{
	const struct ioctl *ioctl = &ioctls[variant->nr];
	char *end = (char *)self->args + 3 * self->page;

	prepare(self->fd, ioctl, self->args);
	memcpy(end - ioctl->size, self->args, ioctl->size);
	EXPECT_EQ(0, hwt_call(self->fd, ioctl->request, end - ioctl->size));
}

TEST_F(each, size)
{
	const struct ioctl *ioctl = &ioctls[variant->nr];
	static const __u32 bad[] = { 0, 1, 4, 8 };
	__u64 before;
	unsigned int i;

	prepare(self->fd, ioctl, self->args);
	before = digest(self->fd);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		self->args->size = bad[i];
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, ioctl->request, self->args));
	}
	self->args->size = ioctl->first_size - 1;
	EXPECT_EQ(-EINVAL, hwt_call(self->fd, ioctl->request, self->args));
	self->args->size = self->page + 1;
	EXPECT_EQ(-E2BIG, hwt_call(self->fd, ioctl->request, self->args));
	self->args->size = ~0U;
	EXPECT_EQ(-E2BIG, hwt_call(self->fd, ioctl->request, self->args));
	EXPECT_EQ(before, digest(self->fd));
}

/* From a header of the future: what is not known must be zero. */
TEST_F(each, larger)
{
	const struct ioctl *ioctl = &ioctls[variant->nr];
	char *bytes = (char *)self->args;
	__u64 before;
	__u32 size;

	prepare(self->fd, ioctl, self->args);
	before = digest(self->fd);
	for (size = ioctl->size + 1; size <= self->page; size += size / 3 + 1) {
		self->args->size = size;
		bytes[size - 1] = 1;
		EXPECT_EQ(-E2BIG, hwt_call(self->fd, ioctl->request, bytes));
		bytes[size - 1] = 0;
		bytes[ioctl->size] = 1;
		EXPECT_EQ(-E2BIG, hwt_call(self->fd, ioctl->request, bytes));
		bytes[ioctl->size] = 0;
	}
	EXPECT_EQ(before, digest(self->fd));
	self->args->size = self->page;
	/* What is behind it is not looked at, nor written. */
	bytes[self->page] = 1;
	memset(bytes + self->page + 1, 0x55, 64);
	EXPECT_EQ(0, hwt_call(self->fd, ioctl->request, bytes));
	EXPECT_EQ(self->page, self->args->size);
	EXPECT_EQ(0, bytes[ioctl->size]);
	EXPECT_EQ(0, bytes[self->page - 1]);
	EXPECT_EQ(1, bytes[self->page]);
	EXPECT_EQ(0x55, bytes[self->page + 1]);
}

TEST_F(each, unknown_flags_and_padding)
{
	const struct ioctl *ioctl = &ioctls[variant->nr];
	char *bytes = (char *)self->args;
	__u64 before;
	int bit, i;

	prepare(self->fd, ioctl, self->args);
	before = digest(self->fd);
	for (bit = 0; bit < 32; bit++) {
		if (ioctl->flags & 1U << bit)
			continue;
		self->args->flags = 1U << bit;
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, ioctl->request, bytes));
	}
	self->args->flags = ioctl->flags | 1U << 31;
	EXPECT_EQ(-EINVAL, hwt_call(self->fd, ioctl->request, bytes));
	self->args->flags = 0;
	for (i = 0; ioctl->reserved && i < 4; i++) {
		bytes[ioctl->reserved + i] = 0x80;
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, ioctl->request, bytes));
		bytes[ioctl->reserved + i] = 0;
	}
	EXPECT_EQ(before, digest(self->fd));
}

/* The answer cannot be stored. A timeout nobody knows of must not stay. */
TEST_F(each, read_only_arguments)
{
	const struct ioctl *ioctl = &ioctls[variant->nr];
	struct hwt_stats_args before, after;

	prepare(self->fd, ioctl, self->args);
	ASSERT_EQ(0, hwt_stats(self->fd, &before));
	ASSERT_EQ(0, mprotect(self->args, self->page, PROT_READ));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, ioctl->request, self->args));
	ASSERT_EQ(0, mprotect(self->args, self->page, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, hwt_stats(self->fd, &after));
	/* What is not a new timeout has been carried out. */
	before.timeouts -= ioctl->request == HWT_IOC_CANCEL;
	EXPECT_EQ(before.timeouts, after.timeouts);
}

FIXTURE(ctx) {
	int fd;
};

FIXTURE_SETUP(ctx)
{
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(ctx)
{
	close(self->fd);
}

TEST_F(ctx, unknown_ioctls)
{
	static union args args;
	unsigned int nr, i;

	args.size = sizeof(struct hwt_stats_args);
	for (nr = _IOC_NR(HWT_IOC_ENTER) + 1; nr < 256; nr++)
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IO(HWT_IOC_MAGIC, nr), &args));
	for (nr = 0; nr < 256; nr++)
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IO(HWT_IOC_MAGIC + 1, nr), &args));
	/* Known ones with a direction and a size are not known. */
	for (i = 0; i < ARRAY_SIZE(ioctls); i++) {
		nr = _IOC_NR(ioctls[i].request);
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IOC(_IOC_READ | _IOC_WRITE,
							   HWT_IOC_MAGIC, nr,
							   ioctls[i].size), &args));
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IOC(_IOC_WRITE, HWT_IOC_MAGIC, nr, 0),
					    &args));
	}
	/* Terminal and file ioctls that anybody may try. */
	EXPECT_EQ(-ENOTTY, hwt_call(self->fd, 0x5401, &args));
	EXPECT_EQ(-ENOTTY, hwt_call(self->fd, 0, &args));
	EXPECT_EQ(-ENOTTY, hwt_call(self->fd, 0xffffffff, &args));
}

TEST_F(ctx, unknown_ids)
{
	static const __u64 bad[] = { 0, 1, 0xffffffff, 1ULL << 32, HWT_NEVER, HWT_NEVER >> 1 };
	struct hwt_get_args get;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-ENOENT, hwt_get(self->fd, bad[i], &get));
		EXPECT_EQ(-ENOENT, hwt_del(self->fd, bad[i]));
		EXPECT_EQ(-ENOENT, hwt_move(self->fd, bad[i], 0, 0));
	}
}

TEST_F(ctx, schedule_values)
{
	static const struct {
		__u32 mode;
		__u64 period_ns;
		__u64 slack_ns;
	} bad[] = {
		{ 3, 0, 0 },
		{ 3, 1, 0 },
		{ ~0U, 0, 0 },
		{ HWT_MODE_ONE_SHOT, 1, 0 },
		{ HWT_MODE_ONE_SHOT, HWT_NEVER, 0 },
		{ HWT_MODE_FIXED_RATE, 0, 0 },
		{ HWT_MODE_FIXED_DELAY, 0, 0 },
		{ HWT_MODE_FIXED_RATE, SEC, 1 },
		{ HWT_MODE_FIXED_DELAY, SEC, 1 },
	};
	struct hwt_schedule_args args;
	struct hwt_stats_args stats;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		args = (struct hwt_schedule_args) {
			.size = sizeof(args),
			.mode = bad[i].mode,
			.period_ns = bad[i].period_ns,
			.slack_ns = bad[i].slack_ns,
		};
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, HWT_IOC_SCHEDULE, &args));
	}
	ASSERT_EQ(0, hwt_stats(self->fd, &stats));
	EXPECT_EQ(0ULL, stats.timeouts);
	EXPECT_EQ(0ULL, stats.scheduled);
}

TEST_F(ctx, setup_values)
{
	static const struct hwt_setup_args bad[] = {
		{ .clock = CLOCK_REALTIME_COARSE },
		{ .clock = CLOCK_TAI },
		{ .clock = CLOCK_MONOTONIC, .flags = HWT_SETUP_TELL_CLOCK_SET },
		{ .clock = CLOCK_BOOTTIME, .flags = HWT_SETUP_TELL_CLOCK_SET },
		{ .clock = CLOCK_MONOTONIC_RAW },
		{ .clock = -1 },
		{ .clock = 1000 },
		{ .clock = CLOCK_MONOTONIC, .ticks_per_wheel = 1 },
		{ .clock = CLOCK_MONOTONIC, .ticks_per_wheel = 65537 },
		{ .clock = CLOCK_MONOTONIC, .ticks_per_wheel = ~0U },
		{ .clock = CLOCK_MONOTONIC, .levels = 7 },
		{ .clock = CLOCK_MONOTONIC, .levels = ~0U },
		/* The tick times the buckets overflows. */
		{ .clock = CLOCK_MONOTONIC, .tick_ns = 1ULL << 62, .ticks_per_wheel = 2 },
		{ .clock = CLOCK_MONOTONIC, .tick_ns = HWT_NEVER },
		{ .clock = CLOCK_MONOTONIC, .max_pending = 1ULL << 63 },
	};
	struct hwt_info_args before, after;
	struct hwt_setup_args args;
	unsigned int i;
	int ret;

	ASSERT_EQ(0, hwt_info(self->fd, &before));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		args = bad[i];
		args.size = sizeof(args);
		ret = hwt_call(self->fd, HWT_IOC_SETUP, &args);
		if (ret != -EINVAL)
			TH_LOG("number %u", i);
		EXPECT_EQ(-EINVAL, ret);
	}
	ASSERT_EQ(0, hwt_info(self->fd, &after));
	before.now_ns = 0;
	after.now_ns = 0;
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	/* The largest that is good. */
	args = (struct hwt_setup_args) {
		.size = sizeof(args),
		.clock = CLOCK_MONOTONIC,
		.tick_ns = 1ULL << 61,
		.ticks_per_wheel = 2,
		.levels = 6,
		.max_pending = HWT_NEVER >> 1,
	};
	EXPECT_EQ(0, hwt_call(self->fd, HWT_IOC_SETUP, &args));
	EXPECT_EQ(0, hwt_add(self->fd, 0, 1ULL << 61, 0, NULL));
	EXPECT_EQ(1, hwt_stop(self->fd));
}

/* How many records with this text has the kernel log from the descriptor's place on? */
static int log_records(int kmsg, const char *text)
{
	char line[8192];
	int found = 0;
	ssize_t n;

	while ((n = read(kmsg, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		line[n] = 0;
		found += !!strstr(line, text);
	}
	return found;
}

/* A program that does not learn does not fill the log. */
TEST_F(ctx, bad_setups_are_not_all_logged)
{
	static const struct hwt_setup_args bad[] = {
		{ .clock = CLOCK_MONOTONIC, .ticks_per_wheel = 1 },
		{ .clock = CLOCK_MONOTONIC, .levels = 7 },
		{ .clock = CLOCK_MONOTONIC, .tick_ns = 1ULL << 62, .ticks_per_wheel = 2 },
		{ .clock = CLOCK_MONOTONIC, .max_pending = 1ULL << 63 },
	};
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), i;
	struct hwt_setup_args args;

	ASSERT_LE(0, kmsg);
	lseek(kmsg, 0, SEEK_END);
	for (i = 0; i < 1000; i++) {
		args = bad[i % ARRAY_SIZE(bad)];
		args.size = sizeof(args);
		ASSERT_EQ(-EINVAL, hwt_call(self->fd, HWT_IOC_SETUP, &args));
	}
	EXPECT_GT(100, log_records(kmsg, "hwt"));
	close(kmsg);
}

TEST_HARNESS_MAIN
