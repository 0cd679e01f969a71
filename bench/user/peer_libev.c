// SPDX-License-Identifier: GPL-2.0-only
/*
 * libev: a heap with four children to a node, in the program
 */
#include "user_bench.h"
#include <ev.h>

static struct ev_loop *loop;
static ev_timer *timers;
static unsigned int fired;
static __u64 loop_ns;	/* what the loop takes for now, on CLOCK_MONOTONIC */

static void on_timer(struct ev_loop *l, ev_timer *timer, int events)
{
	(void)l;
	(void)timer;
	(void)events;
	if (!fired++)
		reap_first();
}

static void libev_open(const struct run *run)
{
	loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
	if (!loop)
		give_up("ev_loop_new");
	timers = alloc_touched(run->count, sizeof(*timers));
	ev_now_update(loop);
	loop_ns = now_ns();
}

static double seconds(__u64 ns)
{
	return (double)ns / NSEC_PER_SEC;
}

static void libev_create(const struct run *run, const struct todo *todo, unsigned int count)
{
	__u64 common_ns = run->deadline_ns - loop_ns;
	ev_timer *timer;
	unsigned int i;

	for (i = 0; i < count; i++) {
		timer = &timers[todo[i].timer];
		ev_timer_init(timer, on_timer, seconds(run->deadline_ns ? common_ns :
						       todo[i].delay_ns), 0.);
		ev_timer_start(loop, timer);
	}
}

/* As its manual advises for timeouts that are pushed back. */
static void libev_rearm(const struct run *run, const struct todo *todo, unsigned int count)
{
	ev_timer *timer;
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++) {
		timer = &timers[todo[i].timer];
		timer->repeat = seconds(todo[i].delay_ns);
		ev_timer_again(loop, timer);
	}
}

static void libev_cancel(const struct run *run, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++)
		ev_timer_stop(loop, &timers[todo[i].timer]);
	if (fired)
		give_up("a timer has fired");
}

static void libev_reap(const struct run *run)
{
	while (fired < run->count)
		ev_run(loop, EVRUN_ONCE);
}

const struct peer peer_libev = {
	.name	= "libev",
	.what	= "ev_timer_start; ev_timer_again; ev_timer_stop; callbacks",
	.open	= libev_open,
	.create	= libev_create,
	.rearm	= libev_rearm,
	.cancel	= libev_cancel,
	.reap	= libev_reap,
};
