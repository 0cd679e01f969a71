// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: conversion of times between a context's clock and a program's time namespace
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/time64.h>
#include <linux/time_namespace.h>

#include "hwt.h"
#include "device/time.h"

/* Return the ns that the time namespace of the caller adds to @clock, a clockid_t. */
s64 hwt_time_offset(int clock)
{
	struct timespec64 offset = {};

	switch (clock) {
	case CLOCK_MONOTONIC:
		timens_add_monotonic(&offset);
		break;
	case CLOCK_BOOTTIME:
		timens_add_boottime(&offset);
		break;
	}
	return timespec64_to_ns(&offset);
}

/*
 * Convert a deadline from the program's time namespace to the context's clock. @rate: the period of
 * a timeout with a fixed rate, otherwise 0. If the result is negative, return 0 or, with a fixed
 * rate, the first deadline that is not negative. Return HWT_NEVER if it does not fit into an s64.
 */
u64 hwt_time_from_user(u64 ns, s64 offset, u64 rate)
{
	u64 missed;
	s64 host;

	if (ns > S64_MAX || check_sub_overflow((s64)ns, offset, &host))
		return HWT_NEVER;
	if (host >= 0)
		return host;
	if (!rate)
		return 0;
	div64_u64_rem(-(host + 1), rate, &missed);
	return rate - 1 - missed;
}

/* Convert a time on the context's clock to the program's time namespace. */
u64 hwt_time_to_user(u64 ns, s64 offset)
{
	s64 user;

	if (ns == HWT_NEVER || check_add_overflow((s64)ns, offset, &user))
		return HWT_NEVER;
	return max_t(s64, user, 0);
}
