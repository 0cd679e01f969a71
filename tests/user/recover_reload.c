// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module is loaded and unloaded repeatedly, while threads open and use the device. Unloading
 * fails while the device is in use. open() finds no device, or one that works. While the device is
 * open, no timeout is lost or early.
 *
 * hwt-test: check stock debug
 * hwt-test: long
 * hwt-test: noload
 * hwt-test: timeout 1800
 */
#include "kselftest_harness.h"

#include "recover.h"

#define USERS		3

static bool stop;

/* Of all threads */
static struct {
	__u64	opened;
	__u64	none;		/* open() found no device, or one that was removed */
	__u64	made, read, early;
	__u64	in_use;		/* unloading failed */
	__u64	wrong;
} counts;

static void count(__u64 *counter, __u64 n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* Arm some timeouts. The event of each must come, by read() or by the ring. */
static void use_timeouts(__u64 *seed, int fd, struct ring *ring)
{
	unsigned int i, n = next_random(seed) % 8 + 1;
	__u64 due = now_ns() + next_random(seed) % (4 * MSEC);
	struct hwt_event event;

	for (i = 0; i < n; i++)
		count(hwt_add(fd, HWT_ARM_ABSOLUTE, due, i, NULL) ? &counts.wrong :
								     &counts.made, 1);
	if (ring->shared)
		count(&counts.wrong, !ring_wait(ring, n));
	while (n-- && (ring->shared ? ring_pop(ring, &event) : hwt_next(fd, &event) == 1)) {
		count(&counts.read, 1);
		count(&counts.early, now_ns() < due || event.fired_ns < due);
	}
}

static void use(__u64 *seed, int fd, struct ring *ring)
{
	unsigned int i;

	switch (next_random(seed) % 5) {
	case 0:
		count(&counts.wrong, hwt_setup(fd, CLOCK_MONOTONIC, 0) != 0);
		break;
	case 1:
		/* A mapping holds the context, and so the module, longer than the descriptor. */
		count(&counts.wrong, ring_make(ring, fd, 0, 16, 16) != 0);
		break;
	case 2:
		/* Closing the descriptor ends these. */
		for (i = 0; i < 50; i++)
			count(&counts.wrong, hwt_add(fd, 0, i % 2 ? HOUR : i * USEC, i, NULL) != 0);
		return;
	}
	use_timeouts(seed, fd, ring);
}

/* Pause twice as long as the use took, on average, so that the device is unused at times. */
static void use_nothing(__u64 *seed, __u64 since)
{
	sleep_ns(next_random(seed) % (4 * (now_ns() - since) + MSEC));
}

static void *user_main(void *arg)
{
	__u64 *seed = arg, begin;
	struct ring ring;
	int fd;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		begin = now_ns();
		fd = hwt_open(O_NONBLOCK);
		if (fd >= 0) {
			count(&counts.opened, 1);
			ring = (struct ring) {};
			use(seed, fd, &ring);
			close(fd);
			if (ring.shared)
				sleep_ns(next_random(seed) % MSEC);
			ring_unmap(&ring);
			use_nothing(seed, begin);
		} else if (errno == ENOENT || errno == ENODEV || errno == ENXIO) {
			count(&counts.none, 1);
			/* Retry at once at times, to meet the moment of a load. */
			if (next_random(seed) % 4)
				sleep_ns(next_random(seed) % (8 * MSEC));
		} else {
			count(&counts.wrong, 1);
		}
	}
	return NULL;
}

FIXTURE(reload) {
	pthread_t thread[USERS];
	__u64 seeds[USERS];
	__u64 seed;
	int file;
};

FIXTURE_SETUP(reload)
{
	unsigned int i;

	self->seed = first_seed(_metadata);
	self->file = open_module("hwt");
	ASSERT_LE(0, self->file);
	for (i = 0; i < USERS; i++) {
		self->seeds[i] = self->seed + 1 + i;
		ASSERT_EQ(0, pthread_create(&self->thread[i], NULL, user_main, &self->seeds[i]));
	}
}

FIXTURE_TEARDOWN(reload)
{
}

static void go(struct __test_metadata *_metadata)
{
	__u64 end = now_ns() + 2 * PATIENCE_MS * MSEC;
	int ret;

	while ((ret = unload_module("hwt")) == -EAGAIN && now_ns() < end) {
		count(&counts.in_use, 1);
		sleep_ns(100 * USEC);
	}
	ASSERT_EQ(0, ret);
}

TEST_F_TIMEOUT(reload, under_attempted_use, 2500)
{
	unsigned int n = rounds(50, 10), i;
	int fd;

	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, load_module(self->file, ""));
		sleep_ns(next_random(&self->seed) % (10 * MSEC));
		go(_metadata);
	}
	/* Load once more, for threads that are still in use(). */
	ASSERT_EQ(0, load_module(self->file, ""));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < USERS; i++)
		ASSERT_EQ(0, pthread_join(self->thread[i], NULL));
	TH_LOG("%u rounds: opened %llu times, no device %llu times; unload refused %llu times", n,
	       counts.opened, counts.none, counts.in_use);
	EXPECT_LT(0, counts.opened);
	EXPECT_LT(0, counts.none);
	EXPECT_LT(0, counts.made);
	EXPECT_EQ(counts.made, counts.read);
	EXPECT_EQ(0, counts.early);
	EXPECT_EQ(0, counts.wrong);
	EXPECT_LT(0, counts.in_use);
	fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	close(fd);
	go(_metadata);
}

TEST_HARNESS_MAIN
