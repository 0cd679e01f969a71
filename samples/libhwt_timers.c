// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * An echo server of lines on epoll: libhwt_timers [IDLE_MS [REQUEST_MS [PORT]]]
 *
 * Each connection has two timers: it is closed after a silence, or if a line takes too long.
 *
 * hwt-test: libs hwt
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <libhwt_timers.h>

struct connection {
	int fd;
	struct libhwt_timer idle, request;
};

static struct libhwt_timers *timers;
static uint64_t idle_ns = 10000000000, request_ns = 2000000000;

static void connection_close(struct connection *c)
{
	libhwt_timer_stop(timers, &c->idle);
	libhwt_timer_stop(timers, &c->request);
	close(c->fd);
	free(c);
}

static void on_idle(struct libhwt_timer *timer)
{
	connection_close(LIBHWT_CONTAINER(timer, struct connection, idle));
}

static void on_late(struct libhwt_timer *timer)
{
	connection_close(LIBHWT_CONTAINER(timer, struct connection, request));
}

static void connection_open(int epoll, int fd)
{
	struct connection *c = malloc(sizeof(*c));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };

	if (fd < 0 || !c || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)) {
		close(fd);
		free(c);
		return;
	}
	c->fd = fd;
	libhwt_timer_init(&c->idle, on_idle);
	libhwt_timer_init(&c->request, on_late);
	libhwt_timer_set(timers, &c->idle, idle_ns);
}

static void connection_ready(struct connection *c)
{
	char buffer[4096];
	ssize_t got = recv(c->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

	if (got <= 0) {
		connection_close(c);
		return;
	}
	send(c->fd, buffer, got, MSG_NOSIGNAL | MSG_DONTWAIT);
	libhwt_timer_set(timers, &c->idle, idle_ns);
	if (buffer[got - 1] == '\n')
		libhwt_timer_disarm(&c->request);
	else if (!libhwt_timer_pending(&c->request))
		libhwt_timer_set(timers, &c->request, request_ns);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { AF_INET, htons(argc > 3 ? atoi(argv[3]) : 7007), {}, {} };
	int epoll = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM, 0), i, n;
	struct epoll_event events[64], event = { .events = EPOLLIN };

	if (argc > 1)
		idle_ns = strtoull(argv[1], NULL, 10) * 1000000;
	if (argc > 2)
		request_ns = strtoull(argv[2], NULL, 10) * 1000000;
	timers = libhwt_timers_new(NULL);
	if (!timers || bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, SOMAXCONN) || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event))
		err(1, "listen");
	for (;;) {
		n = epoll_wait(epoll, events, 64, libhwt_timers_wait_ms(timers));
		for (i = 0; i < n; i++) {
			if (events[i].data.ptr)
				connection_ready(events[i].data.ptr);
			else
				connection_open(epoll, accept(listener, NULL, NULL));
		}
		libhwt_timers_run(timers);
	}
}
