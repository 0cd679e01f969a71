// SPDX-License-Identifier: GPL-2.0-only
/*
 * libev: a heap in the program, with four children in each node
 */
#include "user_bench.h"
#include <ev.h>

static struct ev_loop *loop;
static ev_timer *timers;
static unsigned int fired;
static __u64 loop_ns;	/* the loop's present time, on CLOCK_MONOTONIC */

static void on_timer(struct ev_loop *l, ev_timer *timer, int events)
{
	fired++;
}

static void libev_open(unsigned int count)
{
	loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
	if (!loop)
		give_up("ev_loop_new");
	timers = alloc_touched(count, sizeof(*timers));
	ev_now_update(loop);
	loop_ns = now_ns();
}

static void libev_operate(enum operation op, const struct todo *todo, unsigned int count)
{
	for (; count--; todo++) {
		__u64 ns = deadline_ns ? deadline_ns - loop_ns : todo->delay_ns;
		double seconds = (double)ns / SEC;
		ev_timer *timer = &timers[todo->timer];

		if (op == CREATE) {
			ev_timer_init(timer, on_timer, seconds, 0.);
			ev_timer_start(loop, timer);
		} else if (op == REARM) {
			/* libev's manual recommends this for timeouts that are pushed back. */
			timer->repeat = seconds;
			ev_timer_again(loop, timer);
		} else {
			ev_timer_stop(loop, timer);
		}
	}
	if (fired)
		give_up("a timer has fired");
}

static void libev_reap(unsigned int count)
{
	while (fired < count)
		ev_run(loop, EVRUN_ONCE);
}

const struct peer peer_libev = {
	"libev", "ev_timer_start; ev_timer_again; ev_timer_stop; callbacks",
	libev_open, libev_operate, libev_reap,
};
