// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl on a terminal: the screen of top, and ^C.
 *
 * hwt-test: only stock rt debug stock612 cloud rt612 kcsan debug612 rtdebug newest clang
 * hwt-test: timeout 120
 */
#include "kselftest_harness.h"
#include <pty.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "hwt_ring.h"

#define INTERRUPT	"\x03"
#define BOLD		"\033[1m"

struct terminal {
	int	fd;
	pid_t	pid;
	size_t	length;
	char	said[1 << 16];
};

static void begin(struct terminal *terminal, const char *arguments)
{
	static const struct winsize size = { .ws_row = 20, .ws_col = 80 };
	char command[256];

	snprintf(command, sizeof(command), "exec %s/hwtctl %s",
		 getenv("HWT_BIN") ?: "/hwt/bin", arguments);
	memset(terminal, 0, sizeof(*terminal));
	terminal->pid = forkpty(&terminal->fd, NULL, NULL, &size);
	if (!terminal->pid) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
}

/* Read until the output has @text, or ends. Return whether it has @text. */
static bool says(struct terminal *terminal, const char *text)
{
	size_t room = sizeof(terminal->said) - 1;
	ssize_t got;

	while (!strstr(terminal->said, text)) {
		if (terminal->length == room || hwt_wait(terminal->fd, 30000) <= 0)
			return false;
		got = read(terminal->fd, terminal->said + terminal->length,
			   room - terminal->length);
		/* EIO: the other side is closed. */
		if (got <= 0)
			return false;
		terminal->length += got;
	}
	return true;
}

/* Wait for the end of the program. Return the result of child_end(). */
static int end(struct terminal *terminal)
{
	int status;

	says(terminal, "\x01that it never says");
	status = child_end(terminal->pid);
	close(terminal->fd);
	return status;
}

FIXTURE(tty) {
	struct terminal terminal;
};

FIXTURE_SETUP(tty)
{
	memset(&self->terminal, 0, sizeof(self->terminal));
	/* A guest does not mount devpts. */
	mkdir("/dev/pts", 0755);
	if (access("/dev/pts/ptmx", F_OK))
		ASSERT_EQ(0, mount("devpts", "/dev/pts", "devpts", 0, NULL));
}

FIXTURE_TEARDOWN(tty)
{
}

TEST_F_TIMEOUT(tty, top, 60)
{
	begin(&self->terminal, "top --interval 0.1");
	EXPECT_TRUE(says(&self->terminal, "\033[H\033[Jwheels: 2 "));
	EXPECT_TRUE(says(&self->terminal, BOLD "WHEEL"));
	EXPECT_TRUE(says(&self->terminal, BOLD "PROCESS"));
	EXPECT_TRUE(says(&self->terminal, BOLD "LATENESS"));
	self->terminal.length = 0;
	memset(self->terminal.said, 0, sizeof(self->terminal.said));
	EXPECT_TRUE(says(&self->terminal, "\033[H\033[Jwheels: 2 "));
	EXPECT_EQ(1, write(self->terminal.fd, INTERRUPT, 1));
	EXPECT_EQ(0, end(&self->terminal));
}

/* Headings are bold, except with NO_COLOR or on a dumb terminal. */
TEST_F_TIMEOUT(tty, bold_headings, 60)
{
	static const struct {
		const char *name, *value;
		bool bold;
	} cases[] = {
		{ "NO_COLOR", "", true },
		{ "NO_COLOR", "1", false },
		{ "TERM", "dumb", false },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_EQ(0, setenv(cases[i].name, cases[i].value, 1));
		begin(&self->terminal, "info");
		EXPECT_TRUE(says(&self->terminal, "features"));
		EXPECT_EQ(0, end(&self->terminal));
		EXPECT_EQ(cases[i].bold, !!strstr(self->terminal.said, BOLD "device"));
		EXPECT_EQ(cases[i].bold, !!strstr(self->terminal.said, "\033["));
		unsetenv(cases[i].name);
	}
}

/* Rows that do not fit on the screen are counted. Contexts with most timeouts come first. */
TEST_F_TIMEOUT(tty, top_of_many, 60)
{
	const char *first;
	int fds[20], i, j;

	for (i = 0; i < 20; i++) {
		/* These are closed on exec, so hwtctl has no duplicates. */
		fds[i] = hwt_open(0);
		ASSERT_LE(0, fds[i]);
		for (j = 0; j < i; j++)
			ASSERT_EQ(0, hwt_add(fds[i], 0, HWT_NEVER, 0, NULL));
	}
	begin(&self->terminal, "top --interval 0.5 --count 2");
	EXPECT_TRUE(says(&self->terminal, "... and "));
	EXPECT_TRUE(says(&self->terminal, " more\r\n"));
	EXPECT_EQ(0, end(&self->terminal));
	first = strstr(self->terminal.said, "hwtctl_tty");
	ASSERT_NE(NULL, first);
	EXPECT_EQ(0, strncmp(first, "hwtctl_tty        19 ", 21))
		TH_LOG("%.40s", first);
	for (i = 0; i < 20; i++)
		close(fds[i]);
}

/* A mapping keeps a context. Root has its figures from debugfs, another user has none. */
TEST_F_TIMEOUT(tty, only_mapped, 60)
{
	int fd = hwt_open(0), other;
	struct ring ring, second;
	char row[64];

	ASSERT_EQ(0, hwt_add(fd, 0, HWT_NEVER, 0, NULL));
	ASSERT_EQ(0, ring_make(&ring, fd, 0, 16, 16));
	close(fd);
	snprintf(row, sizeof(row), "%7d    - hwtctl_tty   mono       1 ", getpid());
	begin(&self->terminal, "stats");
	EXPECT_TRUE(says(&self->terminal, row));
	EXPECT_EQ(0, end(&self->terminal));
	snprintf(row, sizeof(row), "stats --pid %d", getpid());
	begin(&self->terminal, row);
	EXPECT_TRUE(says(&self->terminal, "timeouts    1\r\n"));
	EXPECT_EQ(0, end(&self->terminal));
	other = hwt_open(0);
	/* Become another user, and stay the owner of the process's files in /proc. */
	ASSERT_EQ(0, setresuid(1000, 1000, 1000));
	ASSERT_EQ(0, prctl(PR_SET_DUMPABLE, 1));
	snprintf(row, sizeof(row), "%7d    - hwtctl_tty   ?          ? ", getpid());
	begin(&self->terminal, "stats");
	EXPECT_TRUE(says(&self->terminal, row));
	EXPECT_EQ(0, end(&self->terminal));
	ring_unmap(&ring);
	ASSERT_EQ(0, ring_make(&second, other, 0, 16, 16));
	begin(&self->terminal, "stats");
	EXPECT_FALSE(says(&self->terminal, row));
	EXPECT_EQ(0, end(&self->terminal));
}

/* A script from a terminal: after the message about a bad line, the next line is read. */
TEST_F_TIMEOUT(tty, typed_in, 60)
{
	static const char lines[] = "nonsense\nschedule a 10ms\n";

	begin(&self->terminal, "run");
	EXPECT_EQ((ssize_t)strlen(lines), write(self->terminal.fd, lines, strlen(lines)));
	EXPECT_TRUE(says(&self->terminal, "hwtctl: standard input:1: unknown command 'nonsense'"));
	EXPECT_TRUE(says(&self->terminal, "a expired"));
	EXPECT_EQ(1, write(self->terminal.fd, "\x04", 1));
	EXPECT_EQ(1, end(&self->terminal));
}

TEST_HARNESS_MAIN
