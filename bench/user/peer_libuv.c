// SPDX-License-Identifier: GPL-2.0-only
/*
 * libuv: a binary heap in the program, whole milliseconds
 */
#include "user_bench.h"
#include <uv.h>

static uv_loop_t loop;
static uv_timer_t *timers;
static unsigned int fired;

static void on_timer(uv_timer_t *timer)
{
	(void)timer;
	if (!fired++)
		reap_first();
}

static void libuv_open(const struct run *run)
{
	int ret = uv_loop_init(&loop);

	if (ret)
		give_up("uv_loop_init: %s", uv_strerror(ret));
	timers = alloc_touched(run->count, sizeof(*timers));
}

static void libuv_create(const struct run *run, const struct todo *todo, unsigned int count)
{
	/* Rounded up, and so is what the loop takes for now rounded down. */
	__u64 common_ms = run->deadline_ns / NSEC_PER_MSEC + 1 - uv_now(&loop);
	uv_timer_t *timer;
	unsigned int i;

	for (i = 0; i < count; i++) {
		timer = &timers[todo[i].timer];
		if (uv_timer_init(&loop, timer) ||
		    uv_timer_start(timer, on_timer, run->deadline_ns ? common_ms :
				   todo[i].delay_ns / NSEC_PER_MSEC, 0))
			give_up("uv_timer_start");
	}
}

static void libuv_rearm(const struct run *run, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++) {
		if (uv_timer_start(&timers[todo[i].timer], on_timer,
				   todo[i].delay_ns / NSEC_PER_MSEC, 0))
			give_up("uv_timer_start");
	}
}

/* The loop ends the life of closed handles, so it has to go round; here, for BATCH of them. */
static void libuv_cancel(const struct run *run, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++)
		uv_close((uv_handle_t *)&timers[todo[i].timer], NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
	if (fired)
		give_up("a timer has fired");
}

static void libuv_reap(const struct run *run)
{
	while (fired < run->count)
		uv_run(&loop, UV_RUN_ONCE);
}

const struct peer peer_libuv = {
	.name	= "libuv",
	.what	= "uv_timer_init and uv_timer_start; uv_close; callbacks",
	.open	= libuv_open,
	.create	= libuv_create,
	.rearm	= libuv_rearm,
	.cancel	= libuv_cancel,
	.reap	= libuv_reap,
};
