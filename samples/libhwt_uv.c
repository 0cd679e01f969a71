// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Sessions on libuv: "a?" begins a request of session a, "a!" ends it. hwt-test: libs hwt uv_a */
#include <stdio.h>
#include <unistd.h>
#include <uv.h>
#include <libhwt_timers.h>

static struct session {
	struct libhwt_timer idle, request;
} sessions[256];
static struct libhwt_timers *timers;

static void on_idle(struct libhwt_timer *t)
{
	dprintf(1, "%c is idle\n", (int)(LIBHWT_CONTAINER(t, struct session, idle) - sessions));
}

static void on_late(struct libhwt_timer *t)
{
	dprintf(1, "%c is late\n", (int)(LIBHWT_CONTAINER(t, struct session, request) - sessions));
}

static void on_packet(struct session *s, char kind)
{
	libhwt_timer_set(timers, &s->idle, 3000000000);
	if (kind == '?')
		libhwt_timer_set(timers, &s->request, 1000000000);
	else
		libhwt_timer_disarm(&s->request);
}

/* For standard input, and for the descriptor of the timers. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
	unsigned char packet[16];

	if (poll->data)
		libhwt_timers_run(timers);
	else if (status || !events || read(0, packet, sizeof(packet)) < 2)
		uv_stop(poll->loop);
	else
		on_packet(&sessions[packet[0]], packet[1]);
}

int main(void)
{
	uv_poll_t input = {}, due = { .data = sessions };
	int i;

	for (i = 0; i < 256; i++) {
		libhwt_timer_init(&sessions[i].idle, on_idle);
		libhwt_timer_init(&sessions[i].request, on_late);
	}
	timers = libhwt_timers_new(NULL);
	uv_poll_init(uv_default_loop(), &input, 0);
	uv_poll_start(&input, UV_READABLE, on_readable);
	uv_poll_init(uv_default_loop(), &due, libhwt_timers_fd(timers));
	uv_poll_start(&due, UV_READABLE, on_readable);
	return !uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
