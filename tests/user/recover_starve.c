// SPDX-License-Identifier: GPL-2.0-only
/*
 * Real-time threads take all CPUs for seconds, so that the threads of the wheels get no CPU time,
 * or little if real-time threads are throttled.
 *
 * Timeouts that were due meanwhile fire afterwards, each once, none early, in the order of their
 * deadlines. Periods that have passed are counted, and new timeouts fire as usual.
 *
 * hwt-test: check stock rt
 * hwt-test: long
 * hwt-test: timeout 200
 */
#include "kselftest_harness.h"

#include "recover.h"

#define RUNTIME		"/proc/sys/kernel/sched_rt_runtime_us"
#define STARVED		(3500 * MSEC)
#define ONE_SHOTS	200
#define NEW		240		/* a timeout scheduled afterwards */
#define STEP		(15 * MSEC)	/* ONE_SHOTS steps are less than STARVED */
#define PERIODIC	1000
#define CONTEXTS	3
#define HOGS		64

static bool be_fifo(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return !sched_setscheduler(0, SCHED_FIFO, &param);
}

struct context {
	int	fd;
	__u64	one_shots;	/* one-shots that have come */
	struct periods periods;
};

FIXTURE(starve) {
	struct context ctx[CONTEXTS];
	bool *stop;		/* tells the hogs to end */
	pid_t hog[HOGS];
	int hogs;
	__u64 runtime;
};

FIXTURE_VARIANT(starve) {
	const char *runtime;
	bool none;		/* no CPU time at all */
};

FIXTURE_VARIANT_ADD(starve, throttled) { "950000", false };
FIXTURE_VARIANT_ADD(starve, unthrottled) { "-1", true };

/* Open a context without a thread, or with an ordinary or a real-time one. */
static void open_context(struct __test_metadata *_metadata, struct context *ctx, int kind)
{
	*ctx = (struct context) { .fd = hwt_open(O_NONBLOCK) };
	ASSERT_EQ(0, hwt_with(ctx->fd, SETUP, setup, .flags = kind ? HWT_SETUP_THREAD : 0,
			      .priority = kind == 2 ? HWT_PRIO_FIFO_LOW : HWT_PRIO_NORMAL));
}

FIXTURE_SETUP(starve)
{
	int i;

	for (i = 0; i < CONTEXTS; i++)
		open_context(_metadata, &self->ctx[i], i);
	self->stop = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->stop);
	self->hogs = sysconf(_SC_NPROCESSORS_ONLN);
	ASSERT_GE(HOGS, self->hogs);
	/* Run above the hogs. */
	ASSERT_EQ(0, mlockall(MCL_CURRENT));
	ASSERT_TRUE(be_fifo(90));
	/* Last, because a failed set-up is not torn down. */
	self->runtime = read_number(RUNTIME);
	ASSERT_TRUE(write_text(RUNTIME, variant->runtime));
}

FIXTURE_TEARDOWN(starve)
{
	char text[32];
	int i;

	/* Also after a failure: end the hogs. */
	__atomic_store_n(self->stop, true, __ATOMIC_RELAXED);
	snprintf(text, sizeof(text), "%lld", (long long)self->runtime);
	EXPECT_TRUE(write_text(RUNTIME, text));
	for (i = 0; i < CONTEXTS; i++)
		close(self->ctx[i].fd);
}

static void schedule_all(struct __test_metadata *_metadata, struct context *ctx, __u64 begin)
{
	int i;

	ASSERT_EQ(0, periods_begin(&ctx->periods, ctx->fd, begin, PERIODIC));
	/* Latest deadline first: the order of arming must not matter. */
	for (i = ONE_SHOTS - 1; i >= 0; i--)
		ASSERT_EQ(0, hwt_add(ctx->fd, HWT_ARM_ABSOLUTE, begin + i * STEP, i, NULL));
}

/* Keep a CPU busy. The time limit frees the machine if the test has died. */
static void hog(const bool *stop, int cpu)
{
	__u64 end = now_ns() + 3 * STARVED;

	if (!stay_on_cpu(cpu) || !be_fifo(60))
		_exit(1);
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED))
		if (now_ns() > end)
			_exit(2);
	_exit(0);
}

static void reap_until(struct __test_metadata *_metadata, struct context *ctx, __u64 count)
{
	struct hwt_event event;

	while (ctx->one_shots < count) {
		ASSERT_EQ(1, hwt_next(ctx->fd, &event));
		EXPECT_LE(event.deadline_ns, event.fired_ns);
		if (event.user_data == PERIODIC) {
			periods_add(&ctx->periods, &event);
			continue;
		}
		/* One-shots come in the order of their deadlines. */
		EXPECT_EQ(ctx->one_shots++, event.user_data);
		EXPECT_EQ(ctx->periods.first + event.user_data * STEP, event.deadline_ns);
	}
}

/* Check that all timeouts come, and a new one as usual. */
static void finish(struct __test_metadata *_metadata, struct context *ctx)
{
	reap_until(_metadata, ctx, ONE_SHOTS);
	ctx->one_shots = NEW;
	ASSERT_EQ(0, hwt_add(ctx->fd, HWT_ARM_ABSOLUTE, ctx->periods.first + NEW * STEP, NEW,
			     NULL));
	reap_until(_metadata, ctx, NEW + 1);
	periods_check(_metadata, &ctx->periods);
}

TEST_F_TIMEOUT(starve, by_real_time_threads, 150)
{
	struct context *low = &self->ctx[2];
	__u64 begin, before, after;
	int i;

	/* Arm before the first deadline, since overdue timeouts come in the order of arming. */
	begin = now_ns() / MSEC * MSEC + 4 * SEC;
	for (i = 0; i < CONTEXTS; i++)
		schedule_all(_metadata, &self->ctx[i], begin);
	ASSERT_GT(begin - SEC / 2, now_ns());
	sleep_ns(begin - SEC / 2 - now_ns());
	/* If a fork fails, the teardown ends the other hogs. */
	for (i = 0; i < self->hogs; i++) {
		self->hog[i] = fork();
		if (!self->hog[i])
			hog(self->stop, i);
		ASSERT_LT(0, self->hog[i]);
	}
	sleep_ns(SEC);
	before = hwt_now(low->fd).expired;
	sleep_ns(STARVED - SEC);
	after = hwt_now(low->fd).expired;
	__atomic_store_n(self->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < self->hogs; i++)
		EXPECT_EQ(0, child_end(self->hog[i]));
	/* Judge by the wheel with a real-time thread: ordinary threads may get some CPU time. */
	TH_LOG("%llu fired, then %llu", (unsigned long long)before, (unsigned long long)after);
	if (variant->none)
		EXPECT_EQ(before, after);
	EXPECT_GT(ONE_SHOTS, before);
	for (i = 0; i < CONTEXTS; i++)
		finish(_metadata, &self->ctx[i]);
}

TEST_HARNESS_MAIN
