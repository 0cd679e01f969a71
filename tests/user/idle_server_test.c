// SPDX-License-Identifier: GPL-2.0-only
/*
 * samples/libhwt_epoll.c and libhwt_uv.c with a thousand connections: silent connections are
 * closed, none early; traffic keeps a connection open; each connection has one timeout.
 *
 * The test does not depend on the machine's speed. A starved server may close a connection before
 * reading its last byte, so only answered bytes count as heard.
 *
 * hwt-test: check stock
 * hwt-test: timeout 300
 * hwt-test: libs hwt
 */
#include "kselftest_harness.h"
#include <arpa/inet.h>
#include <sys/resource.h>

#include "guest.h"
#include "hwt_ring.h"

#define HOUR_MS		3600000
#define CLIENTS		1000
#define FILES		4096
#define GIVE_UP_NS	(100 * SEC)	/* maximum duration, after the clients fall silent */

/* Long enough to establish and answer a thousand connections */
static int silence_ms(void)
{
	return slow_kernel() ? 15000 : 3000;
}

struct client {
	int fd;			/* -1: the server has closed it */
	bool waiting;		/* for the answer to its last byte */
	uint64_t sent_ns;	/* when its last byte was sent, or before */
	uint64_t heard_ns;	/* when the server last heard from it, or before */
};

/* Static: each test runs in a process of its own. */
static struct client clients[CLIENTS];
static int nr_open = CLIENTS, answers;
static pid_t server;

FIXTURE(server) { };
FIXTURE_VARIANT(server) {
	const char *name;
	rlim_t files;		/* limit of descriptors, in one of the tests */
};

/* Few descriptors: further connections wait. libuv would close them, so it gets enough. */
FIXTURE_VARIANT_ADD(server, epoll) { .name = "libhwt_epoll", .files = 300 };
FIXTURE_VARIANT_ADD(server, uv) { .name = "libhwt_uv", .files = FILES };

FIXTURE_SETUP(server)
{
	struct rlimit files = { FILES, FILES };

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
}

FIXTURE_TEARDOWN(server)
{
	if (server > 0)
		child_kill(server);
}

static void server_start(struct __test_metadata *_metadata, const char *name, int idle_ms,
			 rlim_t files)
{
	struct rlimit limit = { files, files };
	struct sockaddr_in to = { .sin_family = AF_INET };
	char path[256], line[256] = "", idle[32];
	unsigned int port = 0, i;
	int pipes[2];

	snprintf(path, sizeof(path), "%s/%s", getenv("HWT_BIN") ?: ".", name);
	snprintf(idle, sizeof(idle), "%d", idle_ms);
	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	server = fork();
	ASSERT_LE(0, server);
	if (!server) {
		dup2(pipes[1], STDOUT_FILENO);
		setrlimit(RLIMIT_NOFILE, &limit);
		execl(path, name, idle, "0", NULL);
		_exit(127);
	}
	close(pipes[1]);
	/* The server prints its port. */
	ASSERT_LT(0, read(pipes[0], line, sizeof(line) - 1));
	ASSERT_TRUE(sscanf(line, "listening on 127.0.0.1:%u", &port) == 1);
	to.sin_port = htons(port);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (i = 0; i < CLIENTS; i++) {
		clients[i].fd = socket(AF_INET, SOCK_STREAM, 0);
		clients[i].heard_ns = now_ns();
		ASSERT_EQ(0, connect(clients[i].fd, (struct sockaddr *)&to, sizeof(to)));
	}
}

/* Return the number of the server's timeouts; -1: it has no context. */
static long armed(void)
{
	char process[16];
	long count = -1;
	int fd;

	snprintf(process, sizeof(process), "%d", server);
	for (fd = 3; fd < 32 && count < 0; fd++)
		count = fd_number_of(process, fd, "hwt-timeouts");
	return count;
}

/* Send a byte at intervals, if the previous one was answered. */
static void client_send(struct client *client)
{
	if (client->fd < 0 || client->waiting ||
	    now_ns() - client->sent_ns < silence_ms() * MSEC / 10)
		return;
	client->sent_ns = now_ns();
	client->waiting = send(client->fd, "x", 1, MSG_NOSIGNAL) == 1;
}

static void client_receive(struct __test_metadata *_metadata, struct client *client)
{
	char buffer[16];
	ssize_t got;

	if (client->fd < 0)
		return;
	got = recv(client->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	if (got > 0) {
		client->heard_ns = client->sent_ns;
		client->waiting = false;
		answers += got;
	} else if (got == 0 || errno != EAGAIN) {
		EXPECT_LE(client->heard_ns + silence_ms() * MSEC, now_ns());
		close(client->fd);
		client->fd = -1;
		nr_open--;
	}
}

/* Every other connection is silent, the rest talk for twice the idle time. */
TEST_F_TIMEOUT(server, the_silent_are_closed_and_none_early, 290)
{
	uint64_t talk_until, give_up;
	int i;

	server_start(_metadata, variant->name, silence_ms(), FILES);
	talk_until = now_ns() + 2 * silence_ms() * MSEC;
	give_up = talk_until + GIVE_UP_NS;
	while (nr_open && now_ns() < give_up) {
		for (i = 0; i < CLIENTS; i += 2)
			if (now_ns() < talk_until)
				client_send(&clients[i]);
		sleep_ns(50 * MSEC);
		for (i = 0; i < CLIENTS; i++)
			client_receive(_metadata, &clients[i]);
	}
	EXPECT_EQ(0, nr_open);
	EXPECT_LT(0, answers);
	EXPECT_TRUE(until(armed() == 0));
}

TEST_F_TIMEOUT(server, those_who_leave_are_forgotten, 290)
{
	long least = variant->files < CLIENTS ? 200 : CLIENTS;
	int i;

	server_start(_metadata, variant->name, HOUR_MS, variant->files);
	ASSERT_TRUE(until(armed() >= least));
	EXPECT_GE(CLIENTS, armed());
	/* Keep the last connections: the server must accept the others to get there. */
	for (i = 0; i < CLIENTS - 100; i++)
		close(clients[i].fd);
	EXPECT_TRUE(until(armed() == 100));
}

TEST_HARNESS_MAIN
