// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine stands still for a while, as when a guest is paused, or moved to another host:
 * whether its clock stands still, too, or jumps, what was pending fires once, none early, and
 * periods that have passed are counted. Recovery: at once; what is due by then comes first.
 *
 * The host is asked for it through the kernel log (see tests/README.md), and the machine's own
 * clock, which goes on, tells that it was done. Skipped where there is none.
 *
 * How many seconds: HWT_PAUSE on the kernel's command line.
 *
 * hwt-test: long
 * hwt-test: only stock
 * hwt-test: timeout 300
 */
#include "kselftest_harness.h"

#include "pull.h"

#define PAUSE		20	/* seconds, normally */
#define PERIOD		(10 * MSEC)
#define NAP		(200 * MSEC)
#define RTC		"/sys/class/rtc/rtc0/since_epoch"

static __attribute__((constructor)) void need_rtc(void)
{
	if (read_number(RTC) != ~0ULL)
		return;
	printf("# no clock here that goes on while the machine stands still\n");
	exit(4);
}

/* A timeout with a period, on each clock, of which each period is accounted for. */
struct periods {
	int	fd;
	__u64	first;
	__u64	n;		/* periods that events have told of */
	__u64	deadline, fired;
};

static void periods_begin(struct __test_metadata *_metadata, struct periods *periods,
			  clockid_t clock)
{
	struct hwt_setup_args setup = { .size = sizeof(setup), .clock = clock };
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.flags = HWT_ABSOLUTE,
		.mode = HWT_MODE_FIXED_RATE,
		.period_ns = PERIOD,
	};

	*periods = (struct periods) { .fd = hwt_open(O_NONBLOCK) };
	ASSERT_LE(0, periods->fd);
	ASSERT_EQ(0, hwt_call(periods->fd, HWT_IOC_SETUP, &setup));
	/* On a tick, so that its deadlines are told as they are. */
	periods->first = (clock_ns(clock) / PERIOD + 2) * PERIOD;
	args.time_ns = periods->first;
	ASSERT_EQ(0, hwt_call(periods->fd, HWT_IOC_SCHEDULE, &args));
}

static void periods_reap(struct __test_metadata *_metadata, struct periods *periods)
{
	struct hwt_event event;

	while (hwt_read(periods->fd, &event, 1) == 1) {
		EXPECT_LE(event.deadline_ns, event.fired_ns);
		periods->n += event.overruns + 1;
		periods->deadline = event.deadline_ns;
		periods->fired = event.fired_ns;
	}
}

/* All that have passed when it last fired were told of, and no other. */
static void periods_end(struct __test_metadata *_metadata, struct periods *periods,
			const char *name)
{
	unsigned int tries;

	for (tries = 0; tries < 20; tries++) {
		hwt_wait(periods->fd, PATIENCE_MS);
		periods_reap(_metadata, periods);
	}
	TH_LOG("%s: %llu periods", name, (unsigned long long)periods->n);
	EXPECT_LE((periods->deadline - periods->first) / PERIOD + 1, periods->n);
	EXPECT_GE((periods->fired - periods->first) / PERIOD + 1, periods->n);
	close(periods->fd);
}

FIXTURE(pause) {
	struct ledger_thread keeper;
	struct periods monotonic, boottime, realtime;
};

FIXTURE_SETUP(pause)
{
	ASSERT_TRUE(ledger_start(&self->keeper, first_seed()));
	periods_begin(_metadata, &self->monotonic, CLOCK_MONOTONIC);
	periods_begin(_metadata, &self->boottime, CLOCK_BOOTTIME);
	periods_begin(_metadata, &self->realtime, CLOCK_REALTIME);
}

FIXTURE_TEARDOWN(pause)
{
}

TEST_F_TIMEOUT(pause, of_the_machine, 280)
{
	unsigned int pause = given("HWT_PAUSE", PAUSE);
	__u64 rtc = read_number(RTC), begun = now_ns(), passed, gone;
	char line[64];

	sleep_ns(SEC);
	snprintf(line, sizeof(line), "hwt-host: pause %u", pause);
	ASSERT_TRUE(write_text("/dev/kmsg", line));
	/* Until much of that has passed for the machine without a nap in it, whenever the host
	 * comes to it. This clock may stand still or not.
	 */
	gone = SEC;
	do {
		sleep_ns(NAP);
		gone += NAP;
		passed = (read_number(RTC) - rtc) * SEC;
	} while (passed < gone + pause * SEC * 3 / 4 && passed < (pause + 120) * SEC);
	TH_LOG("%llu s have passed, %llu of them in naps; the clock has seen %llu ms",
	       (unsigned long long)passed / SEC, (unsigned long long)gone / SEC,
	       (unsigned long long)(now_ns() - begun) / MSEC);
	EXPECT_LE(gone + pause * SEC * 3 / 4, passed);
	/* Then everything goes on for a while. */
	sleep_ns(2 * SEC);
	ledger_end(_metadata, &self->keeper, "across the pause");
	periods_end(_metadata, &self->monotonic, "monotonic");
	periods_end(_metadata, &self->boottime, "boottime");
	periods_end(_metadata, &self->realtime, "realtime");
}

TEST_HARNESS_MAIN
