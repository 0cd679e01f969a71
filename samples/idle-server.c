// SPDX-License-Identifier: GPL-2.0-only
/*
 * An echo server that closes connections after a silence. All their timeouts are on
 * one descriptor of /dev/hwt, beside the sockets in one epoll set:
 *
 *	accept		HWT_IOC_SCHEDULE, with the socket as user data
 *	traffic		HWT_IOC_MODIFY pushes the deadline back
 *	peer closes	HWT_IOC_CANCEL
 *	event read	the connection has been silent: close it
 *
 * What makes it simple: an id ends when its event is read or it is cancelled, and
 * moving a timeout withdraws an event that was not read. So no event ever
 * concerns a connection that is gone, or one from which something was heard since.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hwt_uapi.h"

#define NS_PER_MS	1000000ULL
#define EVENTS		256

struct connection {
	bool		open;
	uint64_t	id;		/* of its timeout */
	uint64_t	heard_ns;	/* when something came from it, last */
};

struct server {
	int			listener;
	int			timeouts;	/* /dev/hwt */
	int			signals;
	int			epoll;
	uint64_t		idle_ms;
	uint64_t		slack_ms;
	bool			quiet;
	bool			full;		/* no more descriptors: not accepting */
	struct connection	*connections;	/* by descriptor */
	unsigned int		connections_max;

	unsigned long		open;
	unsigned long		accepted;
	unsigned long		refused;
	unsigned long		idle;		/* closed after a silence */
	unsigned long		gone;		/* closed by the peer */
	unsigned long		pushed_back;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);	/* what /dev/hwt counts by */
	return now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

/* -- Timeouts ------------------------------------------------------------ */

static bool timeout_start(struct server *server, int fd)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.time_ns = server->idle_ms * NS_PER_MS,
		.slack_ns = server->slack_ms * NS_PER_MS,
		.user_data = fd,
	};

	server->connections[fd].heard_ns = now_ns();
	if (ioctl(server->timeouts, HWT_IOC_SCHEDULE, &args))
		return false;
	server->connections[fd].id = args.id;
	return true;
}

static void timeout_push_back(struct server *server, int fd)
{
	struct hwt_modify_args args = {
		.size = sizeof(args),
		.id = server->connections[fd].id,
		.time_ns = server->idle_ms * NS_PER_MS,
		.slack_ns = server->slack_ms * NS_PER_MS,
	};

	server->connections[fd].heard_ns = now_ns();
	if (ioctl(server->timeouts, HWT_IOC_MODIFY, &args))
		err(1, "HWT_IOC_MODIFY");
	server->pushed_back++;
}

static void timeout_cancel(struct server *server, int fd)
{
	struct hwt_cancel_args args = {
		.size = sizeof(args),
		.id = server->connections[fd].id,
	};

	if (ioctl(server->timeouts, HWT_IOC_CANCEL, &args))
		err(1, "HWT_IOC_CANCEL");
}

/* -- Connections --------------------------------------------------------- */

static void watch(struct server *server, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

/* Its timeout has ended already. */
static void connection_close(struct server *server, int fd)
{
	server->connections[fd].open = false;
	server->open--;
	close(fd);
	if (server->full) {
		server->full = false;
		watch(server, server->listener);
	}
}

static void connection_open(struct server *server, int fd)
{
	if ((unsigned int)fd >= server->connections_max ||
	    !timeout_start(server, fd)) {
		server->refused++;
		close(fd);
		return;
	}
	server->connections[fd].open = true;
	server->open++;
	server->accepted++;
	watch(server, fd);
}

static void listener_ready(struct server *server)
{
	int fd;

	for (;;) {
		fd = accept4(server->listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			connection_open(server, fd);
			continue;
		}
		switch (errno) {
		case EAGAIN:
			return;
		case EINTR:
		case ECONNABORTED:
			break;
		case EMFILE:
		case ENFILE:
		case ENOBUFS:
		case ENOMEM:
			/* Until a connection is closed. */
			if (!server->open)
				err(1, "accept");
			epoll_ctl(server->epoll, EPOLL_CTL_DEL, server->listener,
				  NULL);
			server->full = true;
			return;
		default:
			err(1, "accept");
		}
	}
}

static void connection_ready(struct server *server, int fd)
{
	char buffer[4096];
	ssize_t got;

	/* Closed by an earlier event of the same epoll_wait(). */
	if (!server->connections[fd].open)
		return;
	got = recv(fd, buffer, sizeof(buffer), 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		timeout_cancel(server, fd);
		connection_close(server, fd);
		server->gone++;
		return;
	}
	timeout_push_back(server, fd);
	/* What the peer does not take at once is dropped: not the point here. */
	if (send(fd, buffer, got, MSG_NOSIGNAL | MSG_DONTWAIT) < got)
		return;
}

static void timeouts_ready(struct server *server)
{
	struct hwt_event events[EVENTS];
	ssize_t got = read(server->timeouts, events, sizeof(events));
	size_t i;
	int fd;

	if (got < 0) {
		/* A push-back after the same epoll_wait() may have withdrawn them all. */
		if (errno == EAGAIN || errno == EINTR)
			return;
		err(1, "read of /dev/hwt");
	}
	for (i = 0; i < got / sizeof(events[0]); i++) {
		fd = events[i].user_data;
		if (!server->connections[fd].open ||
		    server->connections[fd].id != events[i].id)
			errx(1, "an event for a connection that is gone");
		if (!server->quiet)
			printf("connection %d: silent for %llu ms, closed\n", fd,
			       (events[i].fired_ns -
				server->connections[fd].heard_ns) / NS_PER_MS);
		connection_close(server, fd);
		server->idle++;
	}
}

/* -- The rest ------------------------------------------------------------ */

static void print_totals(struct server *server)
{
	struct hwt_stats_args stats = { .size = sizeof(stats) };

	if (ioctl(server->timeouts, HWT_IOC_STATS, &stats))
		err(1, "HWT_IOC_STATS");
	printf("open %lu accepted %lu idle %lu gone %lu pushed-back %lu armed %llu refused %lu\n",
	       server->open, server->accepted, server->idle, server->gone,
	       server->pushed_back, stats.timeouts, server->refused);
}

/* False: time to go. */
static bool signals_ready(struct server *server)
{
	struct signalfd_siginfo info;

	if (read(server->signals, &info, sizeof(info)) != sizeof(info))
		return true;
	print_totals(server);
	return info.ssi_signo == SIGUSR1;
}

static void server_run(struct server *server)
{
	struct epoll_event events[EVENTS];
	int count, i, fd;

	for (;;) {
		count = epoll_wait(server->epoll, events, EVENTS, -1);
		if (count < 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (i = 0; i < count; i++) {
			fd = events[i].data.fd;
			if (fd == server->listener)
				listener_ready(server);
			else if (fd == server->timeouts)
				timeouts_ready(server);
			else if (fd != server->signals)
				connection_ready(server, fd);
			else if (!signals_ready(server))
				return;
		}
	}
}

static void server_listen(struct server *server, uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);
	int on = 1;

	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
				  0);
	if (server->listener < 0)
		err(1, "socket");
	setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(server->listener, (struct sockaddr *)&address, length) ||
	    listen(server->listener, SOMAXCONN) ||
	    getsockname(server->listener, (struct sockaddr *)&address, &length))
		err(1, "listen");
	printf("listening on 127.0.0.1:%u, closing after %llu ms of silence\n",
	       ntohs(address.sin_port), (unsigned long long)server->idle_ms);
}

static void server_setup(struct server *server)
{
	struct rlimit files;
	sigset_t signals;

	/* As many connections as we are allowed. */
	if (getrlimit(RLIMIT_NOFILE, &files))
		err(1, "getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files))
		err(1, "setrlimit");
	server->connections_max = files.rlim_max < 1048576 ? files.rlim_max : 1048576;
	server->connections = calloc(server->connections_max,
				     sizeof(*server->connections));
	if (!server->connections)
		err(1, "calloc");

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	server->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (server->signals < 0)
		err(1, "signalfd");

	server->timeouts = open("/dev/hwt", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (server->timeouts < 0)
		err(1, "/dev/hwt");
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0)
		err(1, "epoll_create1");
}

static void usage(void)
{
	puts("Usage: idle-server [OPTION]...\n"
	     "Echo what comes on TCP connections of the loopback interface, and close those\n"
	     "that have been silent for a while.\n"
	     "\n"
	     "  -p, --port=PORT   listen there (default 7007; 0: any free one)\n"
	     "  -i, --idle=MS     silence after which a connection is closed (default 10000)\n"
	     "  -s, --slack=MS    how much later it may be closed (default: a tenth of that)\n"
	     "  -q, --quiet       do not print a line for each connection closed\n"
	     "  -h, --help        print this\n"
	     "\n"
	     "SIGUSR1 prints totals. SIGINT and SIGTERM print them too, and end the server.");
}

static uint64_t parse(const char *text, const char *option, uint64_t min,
		      uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min ||
	    value > max)
		errx(2, "--%s=%s is not a number in %llu..%llu", option, text,
		     (unsigned long long)min, (unsigned long long)max);
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "port",  required_argument, NULL, 'p' },
		{ "idle",  required_argument, NULL, 'i' },
		{ "slack", required_argument, NULL, 's' },
		{ "quiet", no_argument,       NULL, 'q' },
		{ "help",  no_argument,       NULL, 'h' },
		{ }
	};
	const uint64_t day_ms = 24 * 60 * 60 * 1000;
	struct server server = { .idle_ms = 10000 };
	bool slack_set = false;
	uint16_t port = 7007;
	int option;

	while ((option = getopt_long(argc, argv, "p:i:s:qh", options, NULL)) != -1) {
		switch (option) {
		case 'p':
			port = parse(optarg, "port", 0, UINT16_MAX);
			break;
		case 'i':
			server.idle_ms = parse(optarg, "idle", 1, day_ms);
			break;
		case 's':
			server.slack_ms = parse(optarg, "slack", 0, day_ms);
			slack_set = true;
			break;
		case 'q':
			server.quiet = true;
			break;
		case 'h':
			usage();
			return 0;
		default:
			fprintf(stderr, "Try 'idle-server --help'.\n");
			return 2;
		}
	}
	if (optind < argc)
		errx(2, "'%s' is one argument too many; try --help", argv[optind]);
	if (!slack_set)
		server.slack_ms = server.idle_ms / 10;

	setvbuf(stdout, NULL, _IOLBF, 0);
	server_setup(&server);
	server_listen(&server, port);
	watch(&server, server.listener);
	watch(&server, server.timeouts);
	watch(&server, server.signals);
	server_run(&server);
	free(server.connections);
	return 0;
}
