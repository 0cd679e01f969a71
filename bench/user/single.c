// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opening and closing, and a single timer from its deadline to the program that sleeps
 */
#include "user_bench.h"
#include "hwt_ring.h"
#include <sys/timerfd.h>

#define ROUNDS	201

enum { HWT, RINGS, TIMERFD, WAYS };
enum { OPEN, CLOSE, LATE, SUBJECTS };

static __u64 ns[WAYS][SUBJECTS][ROUNDS];

static int open_one(int way)
{
	return way == TIMERFD ? timerfd_create(CLOCK_MONOTONIC, 0) : hwt_open(0);
}

/* Sleep until a deadline at the beginning of a tick, and return the lateness. */
static __u64 sleep_one(int way, int fd, struct ring *ring)
{
	__u64 deadline = now_ns() / MSEC * MSEC + 3 * MSEC;
	struct itimerspec spec = { .it_value = to_timespec(deadline) };
	struct hwt_event event;
	__u64 fired;
	bool done;

	if (way == TIMERFD)
		done = !timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) &&
		       read(fd, &fired, sizeof(fired)) == sizeof(fired);
	else
		done = !hwt_add(fd, HWT_ARM_ABSOLUTE, deadline, 0, NULL) &&
		       (way == RINGS ? !ring_enter(ring, 0, 1, HWT_NEVER) &&
				       ring_pop(ring, &event) : hwt_read(fd, &event, 1) == 1);
	if (!done)
		give_up_errno("a single timer");
	return now_ns() - deadline;
}

/* Print medians of one round of all ways. */
void measure_single(void)
{
	static const char *const ways[] = { "hwt", "hwt-rings", "timerfd" };
	static const char *const subjects[] = { "open", "close", "late" };
	int fd[WAYS], way, subject, i;
	struct ring ring;
	__u64 begin;

	for (way = 0; way < WAYS; way++) {
		fd[way] = open_one(way);
		if (fd[way] < 0)
			give_up_errno("open");
	}
	if (ring_make(&ring, fd[RINGS], 0, 1, 1))
		give_up_errno("HWT_IOC_RINGS");
	for (i = 0; i < ROUNDS; i++)
		for (way = 0; way < WAYS; way++)
			ns[way][LATE][i] = sleep_one(way, fd[way], &ring);
	ring_close(&ring);
	close(fd[HWT]);
	for (i = 0; i < ROUNDS; i++)
		for (way = 0; way < WAYS; way += TIMERFD) {
			begin = now_ns();
			fd[way] = open_one(way);
			ns[way][OPEN][i] = now_ns() - begin;
			begin = now_ns();
			close(fd[way]);
			ns[way][CLOSE][i] = now_ns() - begin;
		}
	for (way = 0; way < WAYS; way++)
		for (subject = 0; subject < SUBJECTS; subject++) {
			if (way == RINGS && subject != LATE)
				continue;
			qsort(ns[way][subject], ROUNDS, sizeof(__u64), by_value);
			printf("@bench bench=user peer=%s op=%s n=1 unit=ns value=%llu\n",
			       ways[way], subjects[subject],
			       (unsigned long long)ns[way][subject][ROUNDS / 2]);
		}
	fflush(stdout);
}
