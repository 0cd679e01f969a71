// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Print a line on the first of each month, at midnight. libhwt knows no calendar: the program
 * computes the next date, and does so again when the date has come or the clock was set.
 *
 * hwt-test: libs hwt
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <libhwt.h>

#define KEY	1
#define SEC	1000000000ULL

static void check(int ret)
{
	if (ret < 0)
		errx(1, "libhwt: %s", strerror(-ret));
}

/* Return the beginning of the next month, in the time zone of the program. */
static uint64_t next_month(uint64_t now_ns)
{
	struct tm first = { .tm_mday = 1, .tm_isdst = -1 }, now;
	time_t now_s = now_ns / SEC;

	localtime_r(&now_s, &now);
	first.tm_year = now.tm_year;
	/* mktime() takes month 12, after December, as January of the next year. */
	first.tm_mon = now.tm_mon + 1;
	return mktime(&first) * SEC;
}

/* libhwt_monthly [MONTHS] */
int main(int argc, char **argv)
{
	const struct libhwt_options options = {
		.size = sizeof(options),
		.flags = HWT_SETUP_REALTIME | HWT_SETUP_TELL_CLOCK_SET | HWT_SETUP_KEYS,
	};
	int months = argc > 1 ? atoi(argv[1]) : 12;
	uint64_t now_ns, due_ns;
	struct hwt_event event;
	struct libhwt *hwt;

	setvbuf(stdout, NULL, _IOLBF, 0);
	check(libhwt_open(&hwt, &options));
	due_ns = next_month(libhwt_now(hwt));
	while (months > 0) {
		check(libhwt_key_at(hwt, KEY, due_ns));
		/* The date has come, or the clock was set: perhaps beyond the date, or back. */
		check(libhwt_next(hwt, &event, 1, HWT_NEVER));
		now_ns = libhwt_now(hwt);
		if (now_ns >= due_ns && months--)
			puts("a month has begun");
		due_ns = next_month(now_ns);
	}
	libhwt_close(hwt);
	return 0;
}
