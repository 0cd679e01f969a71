/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An observer beside a test: a load in one context, in a child. It schedules, modifies, cancels and
 * reads until the test ends it. Then it reports whether a timeout was lost, fired early or fired
 * twice, whether it got foreign events, and whether the statistics match its calls.
 */
#ifndef HWT_OBSERVER_H
#define HWT_OBSERVER_H

#include "hwt_ring.h"
#include "load.h"

struct observer {
	pid_t	pid;
	int	report;
};

static inline void observer_stop(int signal)
{
	load_over = signal;
}

static inline void observer_start(struct __test_metadata *_metadata, struct observer *observer,
				  unsigned int timeouts)
{
	struct load load = { .threads = 1, .contexts = 1, .timeouts = timeouts };
	int ends[2];

	ASSERT_EQ(0, pipe2(ends, O_CLOEXEC));
	observer->report = ends[0];
	observer->pid = fork();
	ASSERT_LE(0, observer->pid);
	if (!observer->pid) {
		signal(SIGINT, observer_stop);
		if (!load_open(&load))
			_exit(1);
		load_run(&load, HOUR);
		_exit(write(ends[1], &load.result, sizeof(load.result)) < 0);
	}
	close(ends[1]);
}

static inline void observer_end(struct __test_metadata *_metadata, struct observer *observer)
{
	struct load_result result = {};

	ASSERT_EQ(0, kill(observer->pid, SIGINT));
	EXPECT_EQ((ssize_t)sizeof(result), read(observer->report, &result, sizeof(result)));
	EXPECT_EQ(0, child_end(observer->pid));
	TH_LOG("the observer: scheduled %llu, fired %llu, cancelled %llu, wrong %llu",
	       result.scheduled, result.fired, result.cancelled, result.wrong);
	EXPECT_EQ(0, result.wrong);
	EXPECT_NE(0, result.fired);
	close(observer->report);
}

/*
 * Check that the user has all of its timeouts free. No counter shows this, so create as many as the
 * limit allows: fewer means a leak. The module must be loaded with a small limit, and no context
 * may be open.
 */
static inline void user_whole(struct __test_metadata *_metadata)
{
	unsigned int timeouts = hwt_param("max_user_timeouts"), n = 0;
	int fd = hwt_open(0), ret;

	ASSERT_LE(0, fd);
	do {
		ret = hwt_add(fd, 0, HOUR, 0, NULL);
		n += !ret;
	} while (!ret && n <= timeouts);
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(timeouts, n);
	close(fd);
}

#endif /* HWT_OBSERVER_H */
