// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bad input to /dev/hwt: each call returns its error and changes nothing.
 *
 * hwt-test: m32 quick
 */
#include "kselftest_harness.h"

#include "fixtures.h"
#include "guest.h"
#include "ioctls.h"

FIXTURE(each) {
	int fd;
	unsigned int page;
	struct ring ring;
	union ioctl_args *args;	/* three pages, before an inaccessible one */
	char *end;
};

FIXTURE_VARIANT(each) {
	const struct ioctl_case *ioctl;
};

FIXTURE_VARIANT_ADD(each, info) { &ioctls[0] };
FIXTURE_VARIANT_ADD(each, setup) { &ioctls[1] };
FIXTURE_VARIANT_ADD(each, schedule) { &ioctls[2] };
FIXTURE_VARIANT_ADD(each, modify) { &ioctls[3] };
FIXTURE_VARIANT_ADD(each, cancel) { &ioctls[4] };
FIXTURE_VARIANT_ADD(each, get) { &ioctls[5] };
FIXTURE_VARIANT_ADD(each, stats) { &ioctls[6] };
FIXTURE_VARIANT_ADD(each, list) { &ioctls[7] };
FIXTURE_VARIANT_ADD(each, rings) { &ioctls[8] };
FIXTURE_VARIANT_ADD(each, enter) { &ioctls[9] };

FIXTURE_SETUP(each)
{
	char *p;

	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->page = sysconf(_SC_PAGESIZE);
	p = mmap(NULL, 4 * self->page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)p);
	/* Keep the page mapped, or the rings would be mapped there. */
	ASSERT_EQ(0, mprotect(p + 3 * self->page, self->page, PROT_NONE));
	self->args = (void *)p;
	self->end = p + 3 * self->page;
	ioctl_prepare(_metadata, variant->ioctl, self->fd, &self->ring, self->args);
}

FIXTURE_TEARDOWN(each)
{
	munmap(self->args, 4 * self->page);
	ring_unmap(&self->ring);
	close(self->fd);
}

TEST_F(each, bad_pointer)
{
	void *bad[] = { NULL, (void *)8, self->end, (void *)-8L, self->end - 8 };
	struct hwt_stats_args before = hwt_now(self->fd);
	unsigned int i;

	/* At the last address, only the size can be read. */
	memcpy(self->end - 8, &variant->ioctl->size, 4);
	memset(self->end - 4, 0, 4);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(-EFAULT, hwt_call(self->fd, variant->ioctl->request, bad[i]));
	EXPECT_TRUE(stats_same(hwt_now(self->fd), before));
}

/* Good arguments, at the end of a mapping: the kernel must not access more. */
TEST_F(each, good_arguments)
{
	__u32 size = variant->ioctl->size;

	memcpy(self->end - size, self->args, size);
	EXPECT_EQ(0, hwt_call(self->fd, variant->ioctl->request, self->end - size));
	EXPECT_EQ(size, *(__u32 *)(self->end - size));
}

TEST_F(each, size)
{
	const struct {
		__u32 size;
		int error;
	} bad[] = {
		{ 0, -EINVAL }, { 1, -EINVAL }, { 4, -EINVAL }, { 8, -EINVAL },
		{ variant->ioctl->first_size - 1, -EINVAL }, { self->page + 1, -E2BIG },
		{ ~0U, -E2BIG },
	};
	struct hwt_stats_args before = hwt_now(self->fd);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		self->args->size = bad[i].size;
		EXPECT_EQ(bad[i].error, hwt_call(self->fd, variant->ioctl->request, self->args));
	}
	EXPECT_TRUE(stats_same(hwt_now(self->fd), before));
}

/* Structures of a newer header: unknown members must be zero. */
TEST_F(each, larger)
{
	__u32 known = variant->ioctl->size, size;
	char *bytes = (char *)self->args;
	struct hwt_stats_args before = hwt_now(self->fd);

	for (size = known + 1; size <= self->page; size += size / 3 + 1) {
		self->args->size = size;
		bytes[size - 1] = 1;
		EXPECT_EQ(-E2BIG, hwt_call(self->fd, variant->ioctl->request, bytes));
		bytes[size - 1] = 0;
		bytes[known] = 1;
		EXPECT_EQ(-E2BIG, hwt_call(self->fd, variant->ioctl->request, bytes));
		bytes[known] = 0;
	}
	EXPECT_TRUE(stats_same(hwt_now(self->fd), before));
	self->args->size = self->page;
	/* Bytes after the structure are neither read nor written. */
	memset(bytes + self->page, 0x55, 64);
	EXPECT_EQ(0, hwt_call(self->fd, variant->ioctl->request, bytes));
	EXPECT_EQ(self->page, self->args->size);
	EXPECT_EQ(0, bytes[known] | bytes[self->page - 1]);
	EXPECT_EQ(0x55, bytes[self->page]);
}

/* A refused structure stays unchanged. */
TEST_F(each, unknown_flags_and_padding)
{
	const struct ioctl_case *ioctl = variant->ioctl;
	char *bytes = (char *)self->args, before[256];
	struct hwt_stats_args stats = hwt_now(self->fd);
	unsigned int bit, i;

	for (bit = 0; bit <= 32; bit++) {
		if (bit < 32 && ioctl->flags & 1U << bit)
			continue;
		self->args->flags = bit < 32 ? 1U << bit : ioctl->flags | 1U << 31;
		memcpy(before, bytes, sizeof(before));
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, ioctl->request, bytes));
		EXPECT_EQ(0, memcmp(before, bytes, sizeof(before)));
	}
	self->args->flags = 0;
	for (i = 0; ioctl->reserved && i < 4; i++) {
		bytes[ioctl->reserved + i] = 0x80;
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, ioctl->request, bytes));
		bytes[ioctl->reserved + i] = 0;
	}
	EXPECT_TRUE(stats_same(hwt_now(self->fd), stats));
}

/* The answer cannot be stored: a new timeout, whose id is unknown, must not stay. */
TEST_F(each, read_only_arguments)
{
	const unsigned long request = variant->ioctl->request;
	__u64 before = hwt_timeouts(self->fd);

	ASSERT_EQ(0, mprotect(self->args, self->page, PROT_READ));
	EXPECT_EQ(-EFAULT, hwt_call(self->fd, request, self->args));
	ASSERT_EQ(0, mprotect(self->args, self->page, PROT_READ | PROT_WRITE));
	/* All other operations have been carried out. */
	EXPECT_EQ(before - (request == HWT_IOC_CANCEL), hwt_timeouts(self->fd));
}

TEST_F(ctx, unknown_ioctls)
{
	static const unsigned int others[] = { 0x5401, 0, 0xffffffff };
	union ioctl_args args = { .size = sizeof(struct hwt_stats_args) };
	unsigned int nr;

	for (nr = _IOC_NR(HWT_IOC_ENTER) + 1; nr < 256; nr++)
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IO(HWT_IOC_MAGIC, nr), &args));
	for (nr = 0; nr < 256; nr++)
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IO(HWT_IOC_MAGIC + 1, nr), &args));
	/* Known numbers with a direction or a size are unknown ioctls. */
	for (nr = _IOC_NR(HWT_IOC_SETUP); nr <= _IOC_NR(HWT_IOC_ENTER); nr++) {
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IOWR(HWT_IOC_MAGIC, nr, args.stats), &args));
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, _IOC(_IOC_WRITE, HWT_IOC_MAGIC, nr, 0),
					    &args));
	}
	/* TCGETS, which isatty() tries, and nonsense */
	for (nr = 0; nr < ARRAY_SIZE(others); nr++)
		EXPECT_EQ(-ENOTTY, hwt_call(self->fd, others[nr], &args));
}

#define BUSY_ON_CPU	(HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU)

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
	{ .priority = HWT_PRIO_FIFO + 1 },
	{ .priority = ~0U },
	{ .priority = HWT_SETUP_CPU },
	{ .flags = HWT_SETUP_CPU, .priority = HWT_PRIO_FIFO + 1 },
	{ .cpu = 1 },
	{ .cpu = ~0U },
	{ .flags = HWT_SETUP_BUSY_WAIT },
	{ .flags = HWT_SETUP_BUSY_WAIT, .cpu = 1 },
	{ .flags = BUSY_ON_CPU, .priority = HWT_PRIO_FIFO_LOW },
	{ .flags = BUSY_ON_CPU, .priority = HWT_PRIO_FIFO },
	{ .flags = BUSY_ON_CPU, .cpu = ~0U },
	{ .flags = HWT_SETUP_CPU, .cpu = 8192 },
	{ .flags = HWT_SETUP_CPU, .cpu = 1U << 31 },
	{ .flags = HWT_SETUP_CPU, .cpu = ~0U },
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
		EXPECT_EQ(-EINVAL, hwt_call(self->fd, HWT_IOC_SETUP, &args))
			TH_LOG("number %u", i);
	}
	ASSERT_EQ(0, hwt_info(self->fd, &after));
	before.now_ns = 0;
	after.now_ns = 0;
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	if (!contexts_have_threads())
		EXPECT_TRUE(until(!context_threads(NULL)));
	/* The largest valid values */
	EXPECT_EQ(0, hwt_with(self->fd, SETUP, setup,
			      .tick_ns = 1ULL << 61, .ticks_per_wheel = 2, .levels = 6,
			      .max_pending = HWT_NEVER >> 1));
	EXPECT_EQ(0, hwt_add(self->fd, 0, 1ULL << 61, 0, NULL));
	EXPECT_EQ(1, hwt_del_all(self->fd));
}

/* Messages about bad set-ups are rate-limited. */
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
