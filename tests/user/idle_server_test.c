// SPDX-License-Identifier: GPL-2.0-only
/*
 * samples/idle-server.c with a thousand connections: the silent ones are closed, none
 * of them early; traffic keeps a connection open; nothing is lost count of.
 *
 * Nothing here fails because the machine is slow: a server that is starved may close
 * a connection whose last byte it has not read yet. What it has answered, it has read.
 *
 * hwt-test: check stock
 * hwt-test: timeout 300
 */
#include "kselftest_harness.h"
#include <arpa/inet.h>
#include <signal.h>
#include <sys/resource.h>

#include "hwt_dev.h"
#include "process.h"

#define HOUR_MS		3600000
#define CLIENTS		1000
#define GIVE_UP_NS	(100 * SEC)	/* for what must happen at all */

/* Long enough for a thousand connections to be made, and to be answered, in time. */
static int silence_ms(void)
{
	return slow_kernel() ? 15000 : 3000;
}

struct client {
	int fd;			/* -1: the server has closed it */
	bool waiting;		/* for the answer to its last byte */
	bool early;		/* closed sooner than @heard_ns allows */
	uint64_t sent_ns;	/* before that byte was sent */
	uint64_t heard_ns;	/* not after the server has heard from it */
};

/* What the server prints on SIGUSR1 and in the end. */
struct totals {
	unsigned long open, accepted, idle, gone, pushed, armed;
};

/* Each test is a process of its own. */
static struct client clients[CLIENTS];
static FILE *out;
static pid_t server;

FIXTURE(server) { };

FIXTURE_SETUP(server)
{
	struct rlimit files = { 4096, 4096 };

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
}

FIXTURE_TEARDOWN(server)
{
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
}

/* Start it, and connect all clients. */
static void server_start(struct __test_metadata *_metadata, int idle_ms)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char path[256], line[256] = "", idle[32];
	unsigned int port = 0, i;
	int pipes[2];

	snprintf(path, sizeof(path), "%s/idle-server", getenv("HWT_BIN") ?: ".");
	snprintf(idle, sizeof(idle), "--idle=%d", idle_ms);
	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	server = fork();
	ASSERT_LE(0, server);
	if (!server) {
		dup2(pipes[1], STDOUT_FILENO);
		execl(path, "idle-server", "--port=0", idle, "--quiet", NULL);
		_exit(127);
	}
	close(pipes[1]);
	out = fdopen(pipes[0], "r");
	/* It says where it listens. */
	ASSERT_NE(NULL, fgets(line, sizeof(line), out));
	ASSERT_TRUE(sscanf(line, "listening on 127.0.0.1:%u", &port) == 1);
	to.sin_port = htons(port);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (i = 0; i < CLIENTS; i++) {
		clients[i].fd = socket(AF_INET, SOCK_STREAM, 0);
		clients[i].heard_ns = now_ns();
		ASSERT_EQ(0, connect(clients[i].fd, (struct sockaddr *)&to, sizeof(to)));
	}
}

/* The next totals; false if there are none. */
static bool read_totals(struct totals *totals)
{
	char line[256];

	return fgets(line, sizeof(line), out) &&
	       sscanf(line,
		      "open %lu accepted %lu idle %lu gone %lu pushed-back %lu armed %lu",
		      &totals->open, &totals->accepted, &totals->idle, &totals->gone,
		      &totals->pushed, &totals->armed) == 6;
}

/* Ask until all have been accepted, and so many are open. */
static bool wait_totals(unsigned long open, struct totals *totals)
{
	uint64_t give_up = now_ns() + GIVE_UP_NS;

	do {
		sleep_ns(50 * MSEC);
		if (kill(server, SIGUSR1) || !read_totals(totals))
			return false;
		if (totals->accepted == CLIENTS && totals->open == open)
			return true;
	} while (now_ns() < give_up);
	return false;
}

/* One byte, if the one before was answered. */
static void client_send(struct client *client)
{
	if (client->fd < 0 || client->waiting)
		return;
	client->sent_ns = now_ns();
	client->waiting = send(client->fd, "x", 1, MSG_NOSIGNAL) == 1;
}

/* Something has come, an answer or the end. Returns the number of answers. */
static int client_receive(struct client *client)
{
	char buffer[16];
	ssize_t got = recv(client->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

	if (got > 0) {
		client->heard_ns = client->sent_ns;
		client->waiting = false;
		return got;
	}
	if (got == 0 || errno != EAGAIN) {
		client->early = now_ns() - client->heard_ns < silence_ms() * MSEC;
		close(client->fd);
		client->fd = -1;
	}
	return 0;
}

/* Take what comes for so long. Returns the number of answers. */
static int clients_receive(uint64_t until_ns)
{
	struct pollfd polls[CLIENTS];
	int answers = 0, i;

	while (now_ns() < until_ns) {
		for (i = 0; i < CLIENTS; i++) {
			polls[i].fd = clients[i].fd;	/* -1 is skipped */
			polls[i].events = POLLIN;
		}
		poll(polls, CLIENTS, 50);
		for (i = 0; i < CLIENTS; i++) {
			if (polls[i].fd >= 0 && polls[i].revents)
				answers += client_receive(&clients[i]);
		}
	}
	return answers;
}

static int count_open(void)
{
	int open = 0, i;

	for (i = 0; i < CLIENTS; i++)
		open += clients[i].fd >= 0;
	return open;
}

/* Every other connection is silent, the rest talk for three times the idle time. */
TEST_F_TIMEOUT(server, the_silent_are_closed_and_none_early, 290)
{
	int answers = 0, early = 0, talking, i;
	uint64_t talk_until, give_up;
	struct totals totals;

	server_start(_metadata, silence_ms());
	talk_until = now_ns() + 3 * silence_ms() * MSEC;
	while (now_ns() < talk_until) {
		for (i = 0; i < CLIENTS; i += 2)
			client_send(&clients[i]);
		answers += clients_receive(now_ns() + silence_ms() * MSEC / 10);
	}
	talking = count_open();
	give_up = now_ns() + GIVE_UP_NS;
	while (count_open() && now_ns() < give_up)
		answers += clients_receive(now_ns() + 100 * MSEC);

	for (i = 0; i < CLIENTS; i++)
		early += clients[i].early;
	TH_LOG("%d answers; %d were still open when they fell silent", answers,
	       talking);
	EXPECT_EQ(0, count_open());
	EXPECT_EQ(0, early);
	EXPECT_LT(0, answers);

	ASSERT_TRUE(wait_totals(0, &totals));
	EXPECT_EQ(0, totals.armed);
	EXPECT_EQ(CLIENTS, totals.idle);
	EXPECT_EQ(0, totals.gone);
	/* Each answered byte pushed back once; of the last ones, the answer is lost. */
	EXPECT_LE((unsigned long)answers, totals.pushed);
}

/* Clients that leave: their timeouts go with them. Told to stop, it says what is open. */
TEST_F_TIMEOUT(server, those_who_leave_are_forgotten, 290)
{
	struct totals totals;
	int i;

	server_start(_metadata, HOUR_MS);
	ASSERT_TRUE(wait_totals(CLIENTS, &totals));
	EXPECT_EQ(CLIENTS, totals.armed);
	for (i = 100; i < CLIENTS; i++) {
		close(clients[i].fd);
		clients[i].fd = -1;
	}
	ASSERT_TRUE(wait_totals(100, &totals));
	EXPECT_EQ(100, totals.armed);
	EXPECT_EQ(0, totals.idle);
	EXPECT_EQ(CLIENTS - 100, totals.gone);

	ASSERT_EQ(0, kill(server, SIGTERM));
	ASSERT_TRUE(read_totals(&totals));
	EXPECT_EQ(CLIENTS, totals.accepted);
	EXPECT_EQ(100, totals.open);
	EXPECT_EQ(100, totals.armed);
	EXPECT_EQ(0, child_status(server));
	server = 0;
}

TEST_HARNESS_MAIN
