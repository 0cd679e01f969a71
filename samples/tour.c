// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tour of /dev/hwt: use its main functions, and print the results. The exit status is 0 only if
 * all results are as promised. "tour delays", "tour cancel", ... show one part.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "hwt_uapi.h"

#define NS_PER_MS	1000000ULL
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static bool broken_promise;

static void promise(bool kept, const char *what)
{
	if (!kept) {
		printf("  NOT AS PROMISED: %s\n", what);
		broken_promise = true;
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

static double ms(uint64_t ns)
{
	return (double)ns / NS_PER_MS;
}

static int context(void)
{
	int fd = open("/dev/hwt", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		err(1, "/dev/hwt");
	return fd;
}

static uint64_t schedule(int fd, uint64_t delay_ns, uint64_t period_ns,
			 uint64_t user_data)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.mode = period_ns ? HWT_MODE_FIXED_RATE : HWT_MODE_ONE_SHOT,
		.time_ns = delay_ns,
		.period_ns = period_ns,
		.user_data = user_data,
	};

	if (ioctl(fd, HWT_IOC_SCHEDULE, &args))
		err(1, "HWT_IOC_SCHEDULE");
	return args.id;
}

/* Wait for the next event. */
static void next_event(int fd, struct hwt_event *event)
{
	if (read(fd, event, sizeof(*event)) != sizeof(*event))
		err(1, "read");
}

/* -- The parts ----------------------------------------------------------- */

static void tour_info(void)
{
	struct hwt_info_args info = { .size = sizeof(info) };
	int fd = context();

	if (ioctl(fd, HWT_IOC_INFO, &info))
		err(1, "HWT_IOC_INFO");
	printf("  /dev/hwt: tick %.3f ms, %u levels, the first of %u buckets,\n"
	       "  at most %llu timeouts for each open file\n",
	       ms(info.tick_ns), info.levels, info.ticks_per_wheel,
	       info.max_timeouts);
	close(fd);
}

/* Schedule timeouts of all delays on one descriptor, longest first. */
static void tour_delays(void)
{
	static const unsigned int delays_ms[] = {
		2000, 1000, 700, 350, 200, 100, 50, 20, 7, 3, 1, 0,
	};
	uint64_t begin[ARRAY_SIZE(delays_ms)], asked, took;
	struct hwt_event event;
	int fd = context();
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(delays_ms); i++) {
		begin[i] = now_ns();
		schedule(fd, delays_ms[i] * NS_PER_MS, 0, i);
	}
	printf("     asked for        took        late\n");
	for (i = 0; i < ARRAY_SIZE(delays_ms); i++) {
		next_event(fd, &event);
		if (event.user_data >= ARRAY_SIZE(delays_ms))
			errx(1, "an event that should not be");
		asked = delays_ms[event.user_data] * NS_PER_MS;
		took = event.fired_ns - begin[event.user_data];
		printf("  %9.3f ms  %9.3f ms  %+7.3f ms\n", ms(asked), ms(took),
		       ms(took) - ms(asked));
		promise(took >= asked, "never early");
	}
	close(fd);
}

static void tour_cancel(void)
{
	uint64_t delay_ns = 200 * NS_PER_MS;
	struct hwt_cancel_args args = { .size = sizeof(args) };
	struct hwt_event event;
	int fd = context();

	args.id = schedule(fd, delay_ns, 0, 'A');
	schedule(fd, 2 * delay_ns, 0, 'B');
	printf("  A in 200 ms, B in 400 ms\n");
	if (ioctl(fd, HWT_IOC_CANCEL, &args))
		err(1, "HWT_IOC_CANCEL");
	printf("  A cancelled; it was %spending\n",
	       args.was & HWT_STATE_PENDING ? "" : "not ");
	promise(args.was == HWT_STATE_PENDING, "A was pending");
	promise(ioctl(fd, HWT_IOC_CANCEL, &args) && errno == ENOENT,
		"a second cancel finds nothing");
	next_event(fd, &event);
	printf("  %c fires\n", (int)event.user_data);
	promise(event.user_data == 'B', "only B fires");
	close(fd);
}

/* Push a timeout back several times, as programs do with idle timeouts. */
static void tour_push_back(void)
{
	uint64_t delay_ns = 300 * NS_PER_MS, begin, heard = 0;
	struct hwt_modify_args args = {
		.size = sizeof(args),
		.time_ns = delay_ns,
	};
	struct hwt_event event;
	int fd = context(), i;

	begin = now_ns();
	args.id = schedule(fd, delay_ns, 0, 0);
	for (i = 0; i < 4; i++) {
		usleep(50000);
		heard = now_ns();
		if (ioctl(fd, HWT_IOC_MODIFY, &args))
			err(1, "HWT_IOC_MODIFY");
	}
	next_event(fd, &event);
	printf("  300 ms, pushed back 4 times, 50 ms apart: fired after %.3f ms,\n"
	       "  %.3f ms after the last push\n",
	       ms(event.fired_ns - begin), ms(event.fired_ns - heard));
	promise(event.fired_ns - heard >= delay_ns, "never early");
	close(fd);
}

static void tour_periodic(void)
{
	const uint64_t period_ns = 20 * NS_PER_MS;
	uint64_t id, periods = 0, first = 0;
	struct hwt_cancel_args cancel = { .size = sizeof(cancel) };
	struct hwt_event event = { };
	int fd = context(), i;

	id = schedule(fd, period_ns, period_ns, 0);
	printf("  every 20 ms; after the third event nobody reads for 150 ms\n"
	       "  event  overruns  deadlines that are over\n");
	for (i = 1; i <= 6; i++) {
		if (i == 4)
			usleep(150000);
		next_event(fd, &event);
		if (i == 1)
			first = event.deadline_ns - event.overruns * period_ns;
		periods += event.overruns + 1;
		printf("  %5d  %8llu  %llu\n", i, event.overruns,
		       (unsigned long long)periods);
		promise(event.id == id, "its id");
	}
	/* Count over all events: other events than the fourth may be late, too. */
	promise(periods >= 6 + 5, "missed periods are counted");
	promise((event.deadline_ns - first) / period_ns + 1 == periods,
		"no period lost, none counted twice");
	cancel.id = id;
	if (ioctl(fd, HWT_IOC_CANCEL, &cancel))
		err(1, "HWT_IOC_CANCEL");
	close(fd);
}

/* Schedule many timeouts, and check that none is lost. */
static void tour_many(void)
{
	struct hwt_stats_args stats = { .size = sizeof(stats) };
	const unsigned int count = 20000;
	struct pollfd poll_fd = { .fd = context(), .events = POLLIN };
	struct hwt_event events[256];
	unsigned int i, seen = 0, early = 0, reads = 0;
	uint64_t begin = now_ns();
	ssize_t got;

	for (i = 0; i < count; i++)
		schedule(poll_fd.fd, (i % 1000) * NS_PER_MS, 0, now_ns());
	printf("  %u timeouts of 0 to 999 ms scheduled in %.0f ms\n", count,
	       ms(now_ns() - begin));
	while (seen < count && poll(&poll_fd, 1, 10000) == 1) {
		got = read(poll_fd.fd, events, sizeof(events));
		if (got < 0)
			err(1, "read");
		got /= sizeof(events[0]);
		reads++;
		for (i = 0; i < got; i++)
			early += events[i].fired_ns < events[i].deadline_ns;
		seen += got;
	}
	if (ioctl(poll_fd.fd, HWT_IOC_STATS, &stats))
		err(1, "HWT_IOC_STATS");
	printf("  %u events in %u reads, %u of them early\n", seen, reads, early);
	printf("  statistics: scheduled %llu, expired %llu, read %llu, left %llu\n",
	       stats.scheduled, stats.expired, stats.read, stats.timeouts);
	promise(seen == count && !early, "all of them, none early");
	promise(stats.scheduled == count && stats.expired == count &&
		stats.read == count && !stats.timeouts, "exact statistics");
	close(poll_fd.fd);
}

static const struct {
	const char *name;
	const char *title;
	void (*show)(void);
} parts[] = {
	{ "info", "What there is", tour_info },
	{ "delays", "Twelve timeouts on one descriptor", tour_delays },
	{ "cancel", "A cancel", tour_cancel },
	{ "push-back", "A deadline that is pushed back", tour_push_back },
	{ "periodic", "A periodic one, with overruns", tour_periodic },
	{ "many", "Many", tour_many },
};

static void usage(void)
{
	unsigned int i;

	printf("Usage: tour [PART]...\nShow what /dev/hwt does. Parts, by default all:");
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		printf(" %s", parts[i].name);
	printf("\n");
}

static void show(const char *name)
{
	bool known = false;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		if (name && strcmp(name, parts[i].name) != 0)
			continue;
		known = true;
		printf("%s (tour %s)\n", parts[i].title, parts[i].name);
		parts[i].show();
	}
	if (!known)
		errx(2, "no part '%s'; try --help", name);
}

int main(int argc, char **argv)
{
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		usage();
		return 0;
	}
	if (argc == 1)
		show(NULL);
	for (i = 1; i < argc; i++)
		show(argv[i]);
	return broken_promise;
}
