// SPDX-License-Identifier: GPL-2.0-only
/*
 * POSIX timers: each has a queued real-time signal (SIGEV_SIGNAL), taken by sigwaitinfo(). Each
 * existing timer counts against RLIMIT_SIGPENDING.
 */
#include "user_bench.h"
#include <signal.h>

static sigset_t signals;
static timer_t *timers;

static void posix_open(unsigned int count)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		give_up_errno("sigprocmask");
	timers = alloc_touched(count, sizeof(*timers));
}

static void make(timer_t *timer, const struct todo *todo)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGRTMIN,
		.sigev_value.sival_int = todo->timer,
	};

	if (!timer_create(CLOCK_MONOTONIC, &event, timer))
		return;
	if (errno == EAGAIN)
		give_up("timer_create: EAGAIN, RLIMIT_SIGPENDING is reached");
	give_up_errno("timer_create");
}

static void posix_operate(enum operation op, const struct todo *todo, unsigned int count)
{
	for (; count--; todo++) {
		struct itimerspec spec = { .it_value = to_timespec(time_of(todo)) };
		timer_t *timer = &timers[todo->timer];

		if (op == CANCEL) {
			if (timer_delete(*timer))
				give_up_errno("timer_delete");
			continue;
		}
		if (op == CREATE)
			make(timer, todo);
		if (timer_settime(*timer, deadline_ns ? TIMER_ABSTIME : 0, &spec, NULL))
			give_up_errno("timer_settime");
	}
}

static void posix_reap(unsigned int count)
{
	unsigned int seen;
	siginfo_t info;

	for (seen = 0; seen < count; seen++) {
		if (sigwaitinfo(&signals, &info) < 0)
			give_up_errno("sigwaitinfo");
		if (!seen)
			reap_first();
		if (info.si_code != SI_TIMER || info.si_overrun)
			give_up("a signal of no timer, or an overrun");
	}
}

const struct peer peer_posix = {
	"posix", "timer_create (SIGEV_SIGNAL) and timer_settime; timer_delete; sigwaitinfo",
	posix_open, posix_operate, posix_reap, NULL,
};
