// SPDX-License-Identifier: GPL-2.0-only
/*
 * load SECONDS: network load over the loopback device, by a server, and a client that keeps
 * connections open. Half of the client's steps are requests with an answer, a quarter is data
 * without an answer (so that acknowledgments are delayed), and a quarter closes a connection and
 * opens another. The kernel adds retransmission, delayed acknowledgment, keep-alive, handshakes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS	64
#define SIZE	4096
#define COUNT	1000

static const struct sockaddr_in address = {
	.sin_family = AF_INET,
	.sin_port = 7000,
	.sin_addr = { .s_addr = 0x0100007f },
};

static char buffer[SIZE];

static void watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

/* Echo data that begins with 'e'. */
static void serve(int listener)
{
	struct epoll_event events[EVENTS];
	int epoll = epoll_create1(0), n, i, fd;
	ssize_t size;

	watch(epoll, listener);
	for (;;) {
		n = epoll_wait(epoll, events, EVENTS, -1);
		for (i = 0; i < n; i++) {
			fd = events[i].data.fd;
			if (fd == listener) {
				fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
				if (fd >= 0)
					watch(epoll, fd);
				continue;
			}
			size = read(fd, buffer, SIZE);
			if (size <= 0 ||
			    (buffer[0] == 'e' && write(fd, buffer, size) != size))
				close(fd);
		}
	}
}

static int open_connection(int epoll)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		err(1, "connect");
	watch(epoll, fd);
	return fd;
}

static unsigned long request(int seconds)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	time_t end = time(NULL) + seconds;
	struct epoll_event events[EVENTS];
	int epoll = epoll_create1(0), n, i;
	unsigned long steps = 0;
	int fds[COUNT];

	for (i = 0; i < COUNT; i++)
		fds[i] = open_connection(epoll);
	while (time(NULL) < end) {
		int batch = random() % 32;

		for (; batch; batch--, steps++) {
			int *fd = &fds[random() % COUNT];

			buffer[0] = random() % 3 ? 'e' : 'n';
			if (random() % 4) {
				send(*fd, buffer, 1 + random() % 1024, MSG_DONTWAIT);
			} else {
				close(*fd);
				*fd = open_connection(epoll);
			}
		}
		n = epoll_wait(epoll, events, EVENTS, 0);
		for (i = 0; i < n; i++)
			recv(events[i].data.fd, buffer, SIZE, MSG_DONTWAIT);
		nanosleep(&pause, NULL);
	}
	return steps;
}

int main(int argc, char **argv)
{
	const struct rlimit files = { .rlim_cur = 100000, .rlim_max = 100000 };
	int listener, seconds = argc == 2 ? atoi(argv[1]) : 0;
	pid_t server;

	if (!seconds)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_NOFILE, &files);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (const struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, 1024))
		err(1, "listen");
	server = fork();
	if (server < 0)
		err(1, "fork");
	if (!server)
		serve(listener);
	srandom(1);
	printf("network: %d connections, %lu steps\n", COUNT, request(seconds));
	kill(server, SIGKILL);
	return 0;
}
