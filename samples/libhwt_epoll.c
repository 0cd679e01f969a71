// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * An echo server on epoll that closes connections after a silence.
 *
 * The key of a timeout is the descriptor of its connection. In a turn of the loop the handlers add
 * their changes to a queue. Before the loop waits again, one system call carries out the changes
 * and then brings events. A turn handles at most EVENTS of them, so that all descriptors get their
 * turns; epoll reports the rest again. A connection that is heard of or closed drops its event.
 *
 * hwt-test: libs hwt
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <libhwt.h>

/* Events in a turn. The handler of each adds one operation; the queue has room for 256. */
#define EVENTS	64

static int epoll, listener;
static bool full;		/* no descriptor is free: not accepting */
static struct libhwt *hwt;
static struct libhwt_queue *queue;
static uint64_t idle_ns = 10000000000;

static int check(int ret)
{
	if (ret < 0)
		errx(1, "libhwt: %s", strerror(-ret));
	return ret;
}

static void watch(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

static void connection_close(int fd)
{
	check(libhwt_queue_forget(queue, fd));
	close(fd);
	if (full)
		watch(listener);
	full = false;
}

static void listener_ready(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		watch(fd);
		check(libhwt_queue_key_after(queue, fd, idle_ns));
	} else if (errno == EMFILE || errno == ENFILE) {
		epoll_ctl(epoll, EPOLL_CTL_DEL, listener, NULL);
		full = true;
	}
}

static void connection_ready(int fd)
{
	char buffer[4096];
	ssize_t got = recv(fd, buffer, sizeof(buffer), 0);

	if (got > 0) {
		check(libhwt_queue_key_after(queue, fd, idle_ns));
		check(libhwt_queue_forget(queue, fd));
		/* Data that cannot be sent at once is dropped. */
		send(fd, buffer, got, MSG_NOSIGNAL | MSG_DONTWAIT);
	} else if (got == 0 || errno != EAGAIN) {
		check(libhwt_queue_cancel(queue, fd));
		connection_close(fd);
	}
}

/* Carry out the changes of a turn, and close the silent connections. */
static void turn_end(void)
{
	struct hwt_event events[EVENTS];
	struct hwt_op ops[EVENTS];
	int i, n;

	check(libhwt_queue_submit(queue));
	n = check(libhwt_queue_results(queue, ops, EVENTS));
	for (i = 0; i < n; i++) {
		/* A limit is reached, and a new connection has no timeout: close it. */
		if (ops[i].opcode == HWT_OP_SCHEDULE && ops[i].result < 0)
			connection_close(ops[i].id);
	}
	n = check(libhwt_next(hwt, events, EVENTS, 0));
	for (i = 0; i < n; i++)
		connection_close(events[i].id);
}

static void server_listen(unsigned int port)
{
	struct sockaddr_in address = { AF_INET, htons(port), { htonl(INADDR_LOOPBACK) }, {} };
	socklen_t length = sizeof(address);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, SOMAXCONN) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		err(1, "listen");
	printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
	fflush(stdout);
	watch(listener);
}

/* libhwt_epoll [IDLE_MS [PORT]] */
int main(int argc, char **argv)
{
	const struct libhwt_options keys = { .size = sizeof(keys), .flags = HWT_SETUP_KEYS };
	struct epoll_event events[EVENTS];
	int i, n;

	if (argc > 1)
		idle_ns = strtoull(argv[1], NULL, 10) * 1000000;
	check(libhwt_open(&hwt, &keys));
	check(libhwt_queue_new(&queue, hwt, NULL));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	watch(libhwt_fd(hwt));
	server_listen(argc > 2 ? strtoul(argv[2], NULL, 10) : 7007);
	for (;;) {
		n = epoll_wait(epoll, events, EVENTS, -1);
		for (i = 0; i < n; i++) {
			if (events[i].data.fd == listener)
				listener_ready();
			else if (events[i].data.fd != libhwt_fd(hwt))
				connection_ready(events[i].data.fd);
		}
		turn_end();
	}
}
