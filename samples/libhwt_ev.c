// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Sessions on libev: "a?" begins a request of session a, "a!" ends it. hwt-test: libs hwt ev */
#include <stdio.h>
#include <unistd.h>
#include <ev.h>
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
static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	unsigned char packet[16];

	if (io->fd)
		libhwt_timers_run(timers);
	else if (!(events & EV_READ) || read(0, packet, sizeof(packet)) < 2)
		ev_break(loop, EVBREAK_ALL);
	else
		on_packet(&sessions[packet[0]], packet[1]);
}

int main(void)
{
	ev_io input, due;
	int i;

	for (i = 0; i < 256; i++) {
		libhwt_timer_init(&sessions[i].idle, on_idle);
		libhwt_timer_init(&sessions[i].request, on_late);
	}
	timers = libhwt_timers_new(NULL);
	ev_io_init(&input, on_readable, 0, EV_READ);
	ev_io_start(EV_DEFAULT, &input);
	ev_io_init(&due, on_readable, libhwt_timers_fd(timers), EV_READ);
	ev_io_start(EV_DEFAULT, &due);
	return !ev_run(EV_DEFAULT, 0);
}
