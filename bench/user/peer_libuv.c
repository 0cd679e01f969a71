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
	fired++;
}

static void libuv_open(unsigned int count)
{
	int ret = uv_loop_init(&loop);

	if (ret)
		give_up("uv_loop_init: %s", uv_strerror(ret));
	timers = alloc_touched(count, sizeof(*timers));
}

static void libuv_operate(enum operation op, const struct todo *todo, unsigned int count)
{
	/* The deadline is rounded up, as the loop's present time is rounded down. */
	__u64 common_ms = deadline_ns ? deadline_ns / MSEC + 1 - uv_now(&loop) : 0;

	for (; count--; todo++) {
		uv_timer_t *timer = &timers[todo->timer];

		if (op == CANCEL)
			uv_close((uv_handle_t *)timer, NULL);
		else if ((op == CREATE && uv_timer_init(&loop, timer)) ||
			 uv_timer_start(timer, on_timer, deadline_ns ? common_ms :
					todo->delay_ns / MSEC, 0))
			give_up("uv_timer_start");
	}
	/* An iteration of the loop destroys the closed handles. */
	if (op == CANCEL)
		uv_run(&loop, UV_RUN_NOWAIT);
	if (fired)
		give_up("a timer has fired");
}

static void libuv_reap(unsigned int count)
{
	while (fired < count)
		uv_run(&loop, UV_RUN_ONCE);
}

const struct peer peer_libuv = {
	"libuv", "uv_timer_init and uv_timer_start; uv_close; callbacks",
	libuv_open, libuv_operate, libuv_reap,
};
