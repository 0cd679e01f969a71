// SPDX-License-Identifier: GPL-2.0-only
/*
 * POSIX timers: a queued real-time signal for each (SIGEV_SIGNAL), taken by sigwaitinfo().
 * Every timer counts against RLIMIT_SIGPENDING from its making on.
 */
#include "user_bench.h"
#include <signal.h>

static sigset_t signals;
static timer_t *timers;

static void posix_open(const struct run *run)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		give_up_errno("sigprocmask");
	timers = alloc_touched(run->count, sizeof(*timers));
}

static void set(timer_t timer, int flags, __u64 ns)
{
	struct itimerspec spec = { .it_value = to_timespec(ns) };

	if (timer_settime(timer, flags, &spec, NULL))
		give_up_errno("timer_settime");
}

static void posix_make(const struct run *run, const struct todo *todo, unsigned int count)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	timer_t *timer;
	unsigned int i;

	for (i = 0; i < count; i++) {
		timer = &timers[todo[i].timer];
		event.sigev_value.sival_int = todo[i].timer;
		if (timer_create(CLOCK_MONOTONIC, &event, timer)) {
			if (errno == EAGAIN)
				give_up("timer_create: EAGAIN, RLIMIT_SIGPENDING is reached");
			give_up_errno("timer_create");
		}
		if (run->deadline_ns)
			set(*timer, TIMER_ABSTIME, run->deadline_ns);
		else
			set(*timer, 0, todo[i].delay_ns);
	}
}

static void posix_rearm(const struct run *run, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++)
		set(timers[todo[i].timer], 0, todo[i].delay_ns);
}

static void posix_cancel(const struct run *run, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++) {
		if (timer_delete(timers[todo[i].timer]))
			give_up_errno("timer_delete");
	}
}

static void posix_reap(const struct run *run)
{
	unsigned int seen;
	siginfo_t info;

	for (seen = 0; seen < run->count; seen++) {
		if (sigwaitinfo(&signals, &info) < 0)
			give_up_errno("sigwaitinfo");
		if (!seen)
			reap_first();
		if (info.si_code != SI_TIMER || info.si_overrun)
			give_up("a signal that is not a timer's first");
	}
}

const struct peer peer_posix = {
	.name	= "posix",
	.what	= "timer_create (SIGEV_SIGNAL) and timer_settime; timer_delete; sigwaitinfo",
	.open	= posix_open,
	.create	= posix_make,
	.rearm	= posix_rearm,
	.cancel	= posix_cancel,
	.reap	= posix_reap,
};
