// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Sessions on epoll: "a?" begins a request of session a, "a!" ends it. hwt-test: libs hwt */
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <libhwt_timers.h>

static struct session {
	struct libhwt_timer idle, request;
} sessions[256];
static struct libhwt_timers *timers;

static void on_idle(struct libhwt_timer *t)
{
	struct session *s = LIBHWT_CONTAINER(t, struct session, idle);

	libhwt_timer_stop(timers, &s->request);
	dprintf(1, "%c is idle\n", (int)(s - sessions));
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

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0), i;
	unsigned char packet[16];

	for (i = 0; i < 256; i++) {
		libhwt_timer_init(&sessions[i].idle, on_idle);
		libhwt_timer_init(&sessions[i].request, on_late);
	}
	timers = libhwt_timers_new(NULL);
	epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event);
	for (;;) {
		libhwt_timers_run(timers);
		if (epoll_wait(epoll, &event, 1, libhwt_timers_wait_ms(timers)) < 1)
			continue;
		if (read(0, packet, sizeof(packet)) < 2)
			return 0;
		on_packet(&sessions[packet[0]], packet[1]);
	}
}
