// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bad input to /dev/hwt: each gets its error, and nothing changes by it.
 *
 * hwt-test: m32
 */
#include "kselftest_harness.h"
#include <stddef.h>

#include "fixtures.h"
#include "guest.h"

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

FIXTURE(each) {
	int fd;
	unsigned int page;
	union args *args;	/* what follows it is not there */
	char *end;
};

/* Each ioctl with arguments that are good. */
FIXTURE_VARIANT(each) {
	unsigned long	request;
	__u32		size;
	__u32		first_size;	/* of the first version */
	size_t		reserved;	/* where the reserved field is, 0: none */
	__u32		flags;		/* that are known */
	union args	good;
};

#define IOCTL(_NAME, _name)						\
	.request = HWT_IOC_##_NAME,						\
	.size = sizeof(struct hwt_##_name##_args),				\
	.first_size = HWT_##_NAME##_SIZE_VER1
#define RESERVED(_name)								\
	.reserved = offsetof(struct hwt_##_name##_args, reserved)

FIXTURE_VARIANT_ADD(each, setup) {
	IOCTL(SETUP, setup), .good.setup.flags = HWT_SETUP_REALTIME,
	.flags = HWT_SETUP_BOOTTIME | HWT_SETUP_REALTIME | HWT_SETUP_TELL_CLOCK_SET |
		 HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU | HWT_SETUP_PRIVATE | HWT_SETUP_KEYS,
};

FIXTURE_VARIANT_ADD(each, info) { IOCTL(INFO, info) };
FIXTURE_VARIANT_ADD(each, schedule) {
	IOCTL(SCHEDULE, schedule), .flags = HWT_ARM_ABSOLUTE,
	.good.schedule.time_ns = HWT_NEVER,
};

FIXTURE_VARIANT_ADD(each, modify) {
	IOCTL(MODIFY, modify), RESERVED(modify), .flags = HWT_ARM_ABSOLUTE | HWT_ARM_USER_DATA,
	.good.modify.time_ns = HWT_NEVER,
};

FIXTURE_VARIANT_ADD(each, get) { IOCTL(GET, get) };
FIXTURE_VARIANT_ADD(each, cancel) { IOCTL(CANCEL, cancel), .flags = HWT_CANCEL_ALL };
FIXTURE_VARIANT_ADD(each, stats) { IOCTL(STATS, stats) };
FIXTURE_VARIANT_ADD(each, stop) { IOCTL(STOP, stop) };
FIXTURE_VARIANT_ADD(each, list) {
	IOCTL(LIST, list),
	.good.list = { .count = 1, .entry_size = sizeof(struct hwt_list_entry) },
};

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
	self->end = p + 3 * self->page;
}

FIXTURE_TEARDOWN(each)
{
	munmap(self->args, 3 * self->page);
	close(self->fd);
}

/* Good arguments; id is that of a timeout if the ioctl wants one. */
static void prepare(int fd, const struct _fixture_variant_each *ioctl, union args *args)
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

TEST_F(each, bad_pointer)
{
	__u64 before = digest(self->fd);

	EXPECT_EQ(-EFAULT, hwt_call(self->fd, variant->request, NULL));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, variant->request, (void *)8));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, variant->request, self->end));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, variant->request, (void *)-8L));
	/* The size can be read, the rest cannot. */
	memcpy(self->end - 8, &variant->size, 4);
	memset(self->end - 4, 0, 4);
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, variant->request, self->end - 8));
	EXPECT_EQ(before, digest(self->fd));
}

/* Good arguments, up to the last byte of a mapping. */
TEST_F(each, good_arguments)
{
	prepare(self->fd, variant, self->args);
	memcpy(self->end - variant->size, self->args, variant->size);
	EXPECT_EQ(0, hwt_call(self->fd, variant->request, self->end - variant->size));
	EXPECT_EQ(variant->size, *(__u32 *)(self->end - variant->size));
}

TEST_F(each, size)
{
	static const __u32 bad[] = { 0, 1, 4, 8 };
	__u64 before;
	unsigned int i;

	prepare(self->fd, variant, self->args);
	before = digest(self->fd);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		self->args->size = bad[i];
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, variant->request, self->args));
	}
	self->args->size = variant->first_size - 1;
	EXPECT_EQ(-EINVAL, hwt_call(self->fd, variant->request, self->args));
	self->args->size = self->page + 1;
	EXPECT_EQ(-E2BIG, hwt_call(self->fd, variant->request, self->args));
	self->args->size = ~0U;
	EXPECT_EQ(-E2BIG, hwt_call(self->fd, variant->request, self->args));
	EXPECT_EQ(before, digest(self->fd));
}

/* From a header of the future: what is not known must be zero. */
TEST_F(each, larger)
{
	char *bytes = (char *)self->args;
	__u64 before;
	__u32 size;

	prepare(self->fd, variant, self->args);
	before = digest(self->fd);
	for (size = variant->size + 1; size <= self->page; size += size / 3 + 1) {
		self->args->size = size;
		bytes[size - 1] = 1;
		EXPECT_EQ(-E2BIG, hwt_call(self->fd, variant->request, bytes));
		bytes[size - 1] = 0;
		bytes[variant->size] = 1;
		EXPECT_EQ(-E2BIG, hwt_call(self->fd, variant->request, bytes));
		bytes[variant->size] = 0;
	}
	EXPECT_EQ(before, digest(self->fd));
	self->args->size = self->page;
	/* What is behind it is not looked at, nor written. */
	bytes[self->page] = 1;
	memset(bytes + self->page + 1, 0x55, 64);
	EXPECT_EQ(0, hwt_call(self->fd, variant->request, bytes));
	EXPECT_EQ(self->page, self->args->size);
	EXPECT_EQ(0, bytes[variant->size]);
	EXPECT_EQ(0, bytes[self->page - 1]);
	EXPECT_EQ(1, bytes[self->page]);
	EXPECT_EQ(0x55, bytes[self->page + 1]);
}

TEST_F(each, unknown_flags_and_padding)
{
	char *bytes = (char *)self->args;
	__u64 before;
	int bit, i;

	prepare(self->fd, variant, self->args);
	before = digest(self->fd);
	for (bit = 0; bit < 32; bit++) {
		if (variant->flags & 1U << bit)
			continue;
		self->args->flags = 1U << bit;
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, variant->request, bytes));
	}
	self->args->flags = variant->flags | 1U << 31;
	EXPECT_EQ(-EINVAL, hwt_call(self->fd, variant->request, bytes));
	self->args->flags = 0;
	for (i = 0; variant->reserved && i < 4; i++) {
		bytes[variant->reserved + i] = 0x80;
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, variant->request, bytes));
		bytes[variant->reserved + i] = 0;
	}
	EXPECT_EQ(before, digest(self->fd));
}

/* The answer cannot be stored. A timeout nobody knows of must not stay. */
TEST_F(each, read_only_arguments)
{
	__u64 before;

	prepare(self->fd, variant, self->args);
	before = hwt_timeouts(self->fd);
	ASSERT_EQ(0, mprotect(self->args, self->page, PROT_READ));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, variant->request, self->args));
	ASSERT_EQ(0, mprotect(self->args, self->page, PROT_READ | PROT_WRITE));
	/* What is not a new timeout has been carried out. */
	EXPECT_EQ(before - (variant->request == HWT_IOC_CANCEL), hwt_timeouts(self->fd));
}

TEST_F(ctx, unknown_ioctls)
{
	static union args args;
	unsigned int nr;

	args.size = sizeof(struct hwt_stats_args);
	for (nr = _IOC_NR(HWT_IOC_ENTER) + 1; nr < 256; nr++)
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IO(HWT_IOC_MAGIC, nr), &args));
	for (nr = 0; nr < 256; nr++)
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IO(HWT_IOC_MAGIC + 1, nr), &args));
	/* Known ones with a direction and a size are not known. */
	for (nr = _IOC_NR(HWT_IOC_SETUP); nr <= _IOC_NR(HWT_IOC_ENTER); nr++) {
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IOWR(HWT_IOC_MAGIC, nr, args.stats), &args));
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

static const struct hwt_setup_args bad_setups[] = {
	{ .flags = HWT_SETUP_TELL_CLOCK_SET },
	{ .flags = HWT_SETUP_BOOTTIME | HWT_SETUP_TELL_CLOCK_SET },
	{ .flags = HWT_SETUP_BOOTTIME | HWT_SETUP_REALTIME },
	{ .ticks_per_wheel = 1 },
	{ .ticks_per_wheel = 65537 },
	{ .ticks_per_wheel = ~0U },
	{ .levels = 7 },
	{ .levels = ~0U },
	/* The tick times the buckets overflows. */
	{ .tick_ns = 1ULL << 62, .ticks_per_wheel = 2 },
	{ .tick_ns = HWT_NEVER },
	{ .max_pending = 1ULL << 63 },
};

TEST_F(ctx, setup_values)
{
	struct hwt_info_args before, after;
	struct hwt_setup_args args;
	unsigned int i;

	ASSERT_EQ(0, hwt_info(self->fd, &before));
	for (i = 0; i < ARRAY_SIZE(bad_setups); i++) {
		args = bad_setups[i];
		args.size = sizeof(args);
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, HWT_IOC_SETUP, &args)) {
			TH_LOG("number %u", i);
		}
	}
	ASSERT_EQ(0, hwt_info(self->fd, &after));
	before.now_ns = 0;
	after.now_ns = 0;
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	/* The largest that is good. */
	EXPECT_EQ(0, hwt_with(self->fd, SETUP, setup,
			      .tick_ns = 1ULL << 61, .ticks_per_wheel = 2, .levels = 6,
			      .max_pending = HWT_NEVER >> 1));
	EXPECT_EQ(0, hwt_add(self->fd, 0, 1ULL << 61, 0, NULL));
	EXPECT_EQ(1, hwt_stop(self->fd));
}

/* These have no good arguments of their own here: see rings.c. */
TEST_F(ctx, bad_pointers_of_the_others)
{
	static const unsigned long requests[] = { HWT_IOC_RINGS, HWT_IOC_ENTER };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(requests); i++) {
		EXPECT_EQ(-EFAULT, hwt_call(self->fd, requests[i], NULL));
		EXPECT_EQ(-EFAULT, hwt_call(self->fd, requests[i], (void *)-4096L));
	}
}

/* A program that does not learn does not fill the log. */
TEST_F(ctx, bad_setups_are_not_all_logged)
{
	int kmsg = log_open(), logged = 0, i;
	struct hwt_setup_args args;

	ASSERT_LE(0, kmsg);
	for (i = 0; i < 1000; i++) {
		args = bad_setups[i % ARRAY_SIZE(bad_setups)];
		args.size = sizeof(args);
		ASSERT_EQ(-EINVAL, hwt_call(self->fd, HWT_IOC_SETUP, &args));
	}
	while (log_has(kmsg, "hwt"))
		logged++;
	EXPECT_GT(100, logged);
	close(kmsg);
}

TEST_HARNESS_MAIN
