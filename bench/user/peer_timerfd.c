// SPDX-License-Identifier: GPL-2.0-only
/*
 * timerfd and epoll: a descriptor for each timer
 */
#include "user_bench.h"
#include <sys/epoll.h>
#include <sys/timerfd.h>

static int epoll;
static int *fds;

static void timerfd_open(const struct run *run)
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		give_up_errno("epoll_create1");
	fds = alloc_touched(run->count, sizeof(*fds));
}

static void set(int fd, int flags, __u64 ns)
{
	struct itimerspec spec = { .it_value = to_timespec(ns) };

	if (timerfd_settime(fd, flags, &spec, NULL))
		give_up_errno("timerfd_settime");
}

static void timerfd_make(const struct run *run, const struct todo *todo, unsigned int count)
{
	struct epoll_event event = { .events = EPOLLIN };
	unsigned int i;
	int fd;

	for (i = 0; i < count; i++) {
		fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (fd < 0)
			give_up_errno("timerfd_create");
		if (run->deadline_ns)
			set(fd, TFD_TIMER_ABSTIME, run->deadline_ns);
		else
			set(fd, 0, todo[i].delay_ns);
		event.data.u32 = todo[i].timer;
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
			give_up_errno("epoll_ctl");
		fds[todo[i].timer] = fd;
	}
}

static void timerfd_rearm(const struct run *run, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++)
		set(fds[todo[i].timer], 0, todo[i].delay_ns);
}

/* Closing it takes it out of the epoll set too. */
static void timerfd_cancel(const struct run *run, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++) {
		if (close(fds[todo[i].timer]))
			give_up_errno("close");
	}
}

static void timerfd_reap(const struct run *run)
{
	struct epoll_event events[EVENTS];
	unsigned int seen = 0;
	__u64 fired;
	int got, i;

	while (seen < run->count) {
		got = epoll_wait(epoll, events, EVENTS, -1);
		if (got <= 0)
			give_up_errno("epoll_wait");
		if (!seen)
			reap_first();
		for (i = 0; i < got; i++) {
			if (read(fds[events[i].data.u32], &fired, sizeof(fired)) !=
			    sizeof(fired) || fired != 1)
				give_up_errno("read");
		}
		seen += got;
	}
}

const struct peer peer_timerfd = {
	.name	= "timerfd",
	.what	= "timerfd_create, timerfd_settime and epoll_ctl; close; epoll_wait and read",
	.open	= timerfd_open,
	.create	= timerfd_make,
	.rearm	= timerfd_rearm,
	.cancel	= timerfd_cancel,
	.reap	= timerfd_reap,
};
