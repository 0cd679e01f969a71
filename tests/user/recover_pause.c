// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine stands still for a while, like a guest that is paused or moved to another host.
 * Whether its clocks stop or jump, pending timeouts fire once, none early, and periods that have
 * passed are counted. The RTC shows that the host did pause the guest (see tests/README.md); the
 * test is skipped without an RTC.
 *
 * hwt-test: long
 * hwt-test: only stock
 * hwt-test: timeout 300
 */
#include "kselftest_harness.h"

#include "recover.h"

#define PAUSE		10	/* seconds, by default */
#define NAP		(200 * MSEC)
#define RTC		"/sys/class/rtc/rtc0/since_epoch"

static __attribute__((constructor)) void need_rtc(void)
{
	if (read_number(RTC) != ~0ULL)
		return;
	printf("# no RTC, which is needed to measure the pause\n");
	exit(4);
}

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };

#define CLOCKS	ARRAY_SIZE(clocks)

FIXTURE(pause) {
	struct observer observer;
	struct periods periods[CLOCKS];
	int fd[CLOCKS];
};

FIXTURE_SETUP(pause)
{
	unsigned int i;
	__u64 now;

	observer_start(_metadata, &self->observer, 250);
	for (i = 0; i < CLOCKS; i++) {
		self->fd[i] = hwt_open(O_NONBLOCK);
		ASSERT_EQ(0, hwt_setup(self->fd[i], clocks[i], 0));
		/* On a tick, so that deadlines are not rounded up. */
		now = clock_ns(clocks[i]) / PERIOD * PERIOD;
		ASSERT_EQ(0, periods_begin(&self->periods[i], self->fd[i], now + 2 * PERIOD, 0));
	}
}

FIXTURE_TEARDOWN(pause)
{
}

TEST_F_TIMEOUT(pause, of_the_machine, 280)
{
	unsigned int pause = given("HWT_PAUSE", PAUSE), i, n;
	__u64 rtc = read_number(RTC), begun = now_ns(), passed, gone;
	struct hwt_event event;
	char line[64];

	sleep_ns(SEC);
	/* Without the newline, the line would wait for the next message. */
	snprintf(line, sizeof(line), "hwt-host: pause %u\n", pause);
	ASSERT_TRUE(write_text("/dev/kmsg", line));
	/* Wait until the RTC is ahead of the naps by most of the pause: other clocks may stop. */
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
	sleep_ns(SEC);
	observer_end(_metadata, &self->observer);
	for (i = 0; i < CLOCKS; i++) {
		for (n = 0; n < 20; n++) {
			ASSERT_EQ(1, hwt_next(self->fd[i], &event));
			EXPECT_LE(event.deadline_ns, event.fired_ns);
			periods_add(&self->periods[i], &event);
		}
		TH_LOG("clock %d:", clocks[i]);
		periods_check(_metadata, &self->periods[i]);
		close(self->fd[i]);
	}
}

TEST_HARNESS_MAIN
