// SPDX-License-Identifier: GPL-2.0-only
/*
 * A million timeouts of one context, due in one tick. How late are the timeouts of another, on
 * the wheel that both share? The figures are told; what is checked is that no more of the one
 * are on that wheel than max_shared, and that nothing is lost or early. docs/limits.md says what
 * the lateness is bounded by.
 *
 * hwt-test: check stock
 * hwt-test: only stock rt
 * hwt-test: noload
 * hwt-test: long
 * hwt-test: timeout 500
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "fdinfo.h"
#include "guest.h"
#include "hwt_ring.h"

#define BATCH	1024
#define PROBES	4000

/* What the many have to tell. */
struct told {
	long shared;
	__u64 deadline;
	__u64 last;		/* when the last one fired */
	bool armed;
};

FIXTURE(neighbours) {
	volatile struct told *told;
	pid_t pid;
	int fd;
};

FIXTURE_VARIANT(neighbours) {
	const char *params;
	unsigned int total;	/* timeouts of the one context */
	unsigned int epolls;	/* so many epoll instances watch it */
	unsigned int listers;	/* so many threads do nothing but list its timeouts */
};

FIXTURE_VARIANT_ADD(neighbours, a_million) { "", 1000000, 0, 0 };
FIXTURE_VARIANT_ADD(neighbours, who_wait_for_events) { "", 20000, 500, 0 };
FIXTURE_VARIANT_ADD(neighbours, who_list) { "", 20000, 0, 8 };
/* To compare. */
FIXTURE_VARIANT_ADD(neighbours, without_limit) { "max_shared=1048576", 1000000, 0, 0 };

FIXTURE_SETUP(neighbours)
{
	int file = open_module("hwt");

	ASSERT_EQ(0, load_module(file, variant->params));
	close(file);
	self->told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->told);
	self->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(neighbours)
{
	if (self->pid)
		child_kill(self->pid);
	close(self->fd);
	EXPECT_TRUE(until(!unload_module("hwt")));
}

/* -- The many ---------------------------------------------------------------- */

static void arm(struct __test_metadata *_metadata, int fd, unsigned int count, __u32 flags,
		__u64 time_ns)
{
	static struct hwt_op ops[BATCH];
	unsigned int n, step, i;

	for (n = 0; n < count; n += step) {
		step = count - n < BATCH ? count - n : BATCH;
		for (i = 0; i < step; i++) {
			ops[i] = op_schedule(time_ns, n + i);
			ops[i].flags = flags;
		}
		EXPECT_EQ(step, hwt_batch(fd, ops, step));
		EXPECT_EQ(0, ops[step - 1].result);
	}
}

static void watch(struct __test_metadata *_metadata, int fd, unsigned int epolls)
{
	const struct rlimit enough = { .rlim_cur = 2048, .rlim_max = 2048 };
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	setrlimit(RLIMIT_NOFILE, &enough);
	while (epolls--)
		EXPECT_EQ(0, epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, &event));
}

static void *list_for_ever(void *arg)
{
	static struct hwt_list_entry entries[BATCH];

	while (hwt_entries((intptr_t)arg, entries, BATCH) >= 0)
		;
	return NULL;
}

static void be_many(struct __test_metadata *_metadata, volatile struct told *told,
		    unsigned int total, unsigned int epolls, unsigned int listers)
{
	unsigned int n = 0, strange = 0, i;
	int fd = hwt_open(0), other = hwt_open(0), ret;
	static struct hwt_event events[BATCH];
	bool *seen = calloc(total, 1);
	__u64 begun = now_ns(), data;
	pthread_t thread;

	EXPECT_NE(NULL, seen);
	watch(_metadata, fd, epolls);
	/* How long will it take to arm them? They are to be there before they are due. */
	arm(_metadata, other, total / 16, 0, HOUR);
	close(other);
	told->deadline = now_ns() + (now_ns() - begun) * 32 + 3 * SEC;
	arm(_metadata, fd, total, HWT_ABSOLUTE, told->deadline);
	told->shared = fd_number(fd, "hwt-shared");
	/* They end with the process. */
	while (listers--)
		EXPECT_EQ(0, pthread_create(&thread, NULL, list_for_ever, (void *)(intptr_t)fd));
	told->armed = true;
	while (n < total && _metadata->passed) {
		ret = hwt_read(fd, events, BATCH);
		EXPECT_LT(0, ret);
		for (i = 0; (int)i < ret; i++, n++) {
			data = events[i].user_data;
			strange += data >= total || seen[data] ||
				   events[i].fired_ns < told->deadline;
			seen[data % total] = true;
			told->last = events[i].fired_ns;
		}
	}
	EXPECT_EQ(0U, strange);
	free(seen);
}

/* -- The other --------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void tell(struct __test_metadata *_metadata, const char *when, __u64 *late, unsigned int n)
{
	ASSERT_LT(0, n);
	qsort(late, n, sizeof(*late), by_value);
	TH_LOG("%u %s that tick: half are late by up to %llu us, 99 %% by %llu us, all by %llu us",
	       n, when, late[(n - 1) / 2] / USEC, late[(n - 1) * 99 / 100] / USEC,
	       late[n - 1] / USEC);
}

TEST_F_TIMEOUT(neighbours, lateness, 400)
{
	static __u64 late[2][PROBES];
	__u64 tick = hwt_param("tick_us") * USEC, max_shared = hwt_param("max_shared"), first;
	volatile struct told *told = self->told;
	unsigned int n[2] = {}, i;
	struct hwt_event event;
	int fd = self->fd;
	bool after;

	self->pid = fork();
	ASSERT_LE(0, self->pid);
	if (!self->pid) {
		be_many(_metadata, told, variant->total, variant->epolls, variant->listers);
		_exit(!_metadata->passed);
	}
	while (!told->armed && !waitpid(self->pid, NULL, WNOHANG))
		sleep_ns(10 * MSEC);
	ASSERT_TRUE(told->armed);
	ASSERT_EQ(max_shared < variant->total ? max_shared : variant->total, told->shared);
	ASSERT_LT(now_ns(), told->deadline);

	/* One each tick, on the wheel that all share: a quarter of them before it. */
	first = told->deadline / tick * tick - PROBES / 4 * tick;
	for (i = 0; i < PROBES; i++)
		ASSERT_EQ(0, hwt_add(fd, HWT_ABSOLUTE, first + i * tick, i, NULL));
	ASSERT_EQ(PROBES, fd_number(fd, "hwt-shared"));
	for (i = 0; i < PROBES; i++) {
		ASSERT_EQ(POLLIN, hwt_wait(fd, 10 * PATIENCE_MS));
		ASSERT_EQ(1, hwt_read(fd, &event, 1));
		ASSERT_LE(event.deadline_ns, event.fired_ns);
		after = event.deadline_ns >= told->deadline / tick * tick;
		late[after][n[after]++] = event.fired_ns - event.deadline_ns;
	}
	EXPECT_EQ(-EAGAIN, hwt_read(fd, &event, 1));
	EXPECT_EQ(0, child_end(self->pid));
	self->pid = 0;
	TH_LOG("%u of one context, %ld of them on the shared wheel, fired within %llu ms",
	       variant->total, told->shared, (told->last - told->deadline) / MSEC);
	tell(_metadata, "before", late[0], n[0]);
	tell(_metadata, "from", late[1], n[1]);
}

TEST_HARNESS_MAIN
