/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a user can have as much as ever.
 */
#ifndef HWT_USER_WHOLE_H
#define HWT_USER_WHOLE_H

#include "hwt_dev.h"

/*
 * Nothing tells how many timeouts and wheels a user has, so make as many as there can be:
 * neither less, because something was not given back, nor more. The module is loaded with
 * small limits, and the test does without CAP_SYS_RESOURCE. No context may be open.
 */
static inline void user_whole(struct __test_metadata *_metadata)
{
	unsigned int timeouts = hwt_param("max_user_timeouts"), n = 0;
	unsigned int wheels = hwt_param("max_user_wheels"), i;
	int fd[16], ret;

	ASSERT_GT(16, wheels);
	/* One of the wheels is that which the contexts share. */
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

#endif /* HWT_USER_WHOLE_H */
