/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An observer beside a test: `hwtctl stress` in one context. It schedules, modifies, cancels and
 * reads until it is interrupted. Then it reports whether a timeout was lost, fired early or fired
 * twice, whether it got foreign events, and whether the statistics match its calls.
 */
#ifndef HWT_OBSERVER_H
#define HWT_OBSERVER_H

#include "hwt_ring.h"

struct observer {
	pid_t	pid;
	int	report;
};

static inline void observer_start(struct __test_metadata *_metadata, struct observer *observer,
				  const char *timeouts)
{
	char path[256];
	int ends[2];

	observer->pid = 0;
	/* hwtctl is built for x86-64. */
	if (env_is("HWT_KERNEL", "i386") || env_is("HWT_KERNEL", "arm64"))
		return;
	ASSERT_EQ(0, pipe(ends));
	observer->report = ends[0];
	observer->pid = fork();
	ASSERT_LE(0, observer->pid);
	if (!observer->pid) {
		snprintf(path, sizeof(path), "%s/hwtctl", getenv("HWT_BIN"));
		dup2(ends[1], STDOUT_FILENO);
		execl(path, path, "stress", "--json", "--quiet", "--seconds", "100000",
		      "--threads", "1", "--contexts", "1", "--timeouts", timeouts, NULL);
		_exit(127);
	}
	close(ends[1]);
}

static inline void observer_end(struct __test_metadata *_metadata, struct observer *observer)
{
	unsigned long long fired = 0;
	char text[1024] = "", *at;

	if (!observer->pid)
		return;
	ASSERT_EQ(0, kill(observer->pid, SIGINT));
	EXPECT_LT(0, read(observer->report, text, sizeof(text) - 1));
	EXPECT_EQ(0, child_end(observer->pid));
	TH_LOG("the observer: %s", text);
	EXPECT_NE(NULL, strstr(text, "\"kept\":true"));
	at = strstr(text, "\"fired\":");
	EXPECT_TRUE(at && sscanf(at, "\"fired\":%llu", &fired) == 1 && fired);
	close(observer->report);
}

/*
 * Check that the user has all of its timeouts and wheels free. No counter shows this, so create
 * as many as the limits allow: fewer means a leak. The module must be loaded with small limits,
 * the caller must not have CAP_SYS_RESOURCE, and no context may be open.
 */
static inline void user_whole(struct __test_metadata *_metadata)
{
	unsigned int timeouts = hwt_param("max_user_timeouts"), n = 0;
	unsigned int wheels = hwt_param("max_user_wheels"), i;
	int fd[16], ret;

	ASSERT_GT(16, wheels);
	/* The contexts share one of the wheels. */
	wheels--;
	for (i = 0; i <= wheels; i++) {
		fd[i] = hwt_open(0);
		ASSERT_LE(0, fd[i]);
		ret = hwt_setup(fd[i], CLOCK_MONOTONIC);
		EXPECT_EQ(i < wheels ? 0 : -ENOSPC, ret)
			TH_LOG("wheel %u of %u", i, wheels);
	}
	do {
		ret = hwt_add(fd[0], 0, HOUR, 0, NULL);
		n += !ret;
	} while (!ret && n <= timeouts);
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(timeouts, n);
	for (i = 0; i <= wheels; i++)
		close(fd[i]);
}

#endif /* HWT_OBSERVER_H */
