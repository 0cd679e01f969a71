/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A signal again and again, for calls that it must interrupt, or must not.
 */
#ifndef HWT_ALARM_H
#define HWT_ALARM_H

#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t alarms;

static inline void count_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* SIGALRM every @usec from now on, 0: no more. @flags: SA_RESTART or 0. */
static inline int alarm_every(unsigned int usec, int flags)
{
	struct itimerval timer = {
		.it_interval.tv_usec = usec,
		.it_value.tv_usec = usec,
	};
	struct sigaction action = { .sa_handler = count_alarm, .sa_flags = flags };

	return sigaction(SIGALRM, &action, NULL) ?: setitimer(ITIMER_REAL, &timer, NULL);
}

#endif /* HWT_ALARM_H */
