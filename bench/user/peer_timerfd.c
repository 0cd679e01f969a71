// SPDX-License-Identifier: GPL-2.0-only
/*
 * timerfd and epoll: a descriptor for each timer
 */
#include "user_bench.h"
#include <sys/epoll.h>
#include <sys/timerfd.h>

static int epoll;
static int *fds;

static void timerfd_open(unsigned int count)
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		give_up_errno("epoll_create1");
	fds = alloc_touched(count, sizeof(*fds));
}

static void set(int fd, const struct todo *todo)
{
	struct itimerspec spec = { .it_value = to_timespec(time_of(todo)) };

	if (timerfd_settime(fd, deadline_ns ? TFD_TIMER_ABSTIME : 0, &spec, NULL))
		give_up_errno("timerfd_settime");
}

static void make(int *fd, const struct todo *todo)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = todo->timer };

	*fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (*fd < 0)
		give_up_errno("timerfd_create");
	set(*fd, todo);
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, *fd, &event))
		give_up_errno("epoll_ctl");
}

static void timerfd_operate(enum operation op, const struct todo *todo, unsigned int count)
{
	for (; count--; todo++) {
		int *fd = &fds[todo->timer];

		if (op == CREATE)
			make(fd, todo);
		else if (op == REARM)
			set(*fd, todo);
		else if (close(*fd))	/* also removes it from the epoll set */
			give_up_errno("close");
	}
}

static void timerfd_reap(unsigned int count)
{
	struct epoll_event events[EVENTS];
	unsigned int seen = 0;
	__u64 fired;
	int got, i;

	while (seen < count) {
		got = epoll_wait(epoll, events, EVENTS, -1);
		if (got <= 0)
			give_up_errno("epoll_wait");
		for (i = 0; i < got; i++) {
			if (read(fds[events[i].data.u32], &fired, sizeof(fired)) !=
			    sizeof(fired) || fired != 1)
				give_up_errno("read");
		}
		seen += got;
	}
}

const struct peer peer_timerfd = {
	"timerfd", "timerfd_create, timerfd_settime and epoll_ctl; close; epoll_wait and read",
	timerfd_open, timerfd_operate, timerfd_reap,
};
