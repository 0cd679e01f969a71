// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients are killed at random points. They run programs of the fuzzer (tests/fuzz), most with
 * several threads or processes that use the same contexts.
 *
 * An observer of the same user must not be affected. All resources of killed clients are given
 * back: the user's limits can be used in full, and no thread or module reference is left.
 *
 * hwt-test: only stock rt debug stock612 cloud rt612 kcsan debug612 rtdebug newest clang
 * hwt-test: check stock debug
 * hwt-test: timeout 900
 * hwt-test: load max_user_timeouts=50000
 */
#include "kselftest_harness.h"
#include <sys/prctl.h>

#include "recover.h"

/* A client runs one of these repeatedly until it is killed. */
static const char * const programs[] = {
	/* Many timeouts, some with two threads */
	"open rings:0000000008 mmap op:f700000000a5 push op:f7 push enter:00000000ff list",
	"open rings:0000000008 mmap op:f700000000a5 push enter:00000000ff reap thread modify",
	"open schedule:00000000010504 epoll thread:03 epoll poll read modify epoll poll modify read",
	/* Set-ups; two contexts and a duplicate, shared with a child */
	"open setup:0000000000000001 dup:0001 schedule thread:03 read:01 cancel schedule modify read",
	"open open:01 setup:0100000200000002 schedule:01000000010504 fork:04 read:01 list:01 cancel",
	/* Rings that another thread or a child uses, too */
	"open rings:000000000606 mmap op:a000000000a5 push enter thread:03 mmap:0001 remap:0104 poll",
	"open rings:000000000303 mmap op:c00000000002 push thread enter:00000000000105 reap fork reap",
};

FIXTURE(kill) {
	struct observer observer;
	__u64 seed;
};

FIXTURE_SETUP(kill)
{
	self->seed = first_seed(_metadata);
	observer_start(_metadata, &self->observer, 1000);
	/* Let the user's limits apply to the clients. */
	ASSERT_EQ(0, set_capability(CAP_SYS_RESOURCE, false));
	/* Adopt the children of killed clients. */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
}

FIXTURE_TEARDOWN(kill)
{
}

/* Run the fuzzer, which prints a line to the pipe for each run of the program. */
static void client_run(const char *program, int output)
{
	char path[256];

	setpgid(0, 0);
	/* Without this, execl() would give root the capability again. */
	prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE);
	snprintf(path, sizeof(path), "%s/fuzz", getenv("HWT_BIN"));
	dup2(output, STDOUT_FILENO);
	execl(path, path, "--again", "1000000", program, NULL);
	_exit(127);
}

static bool has_run(int output)
{
	int bytes = 0;

	ioctl(output, FIONREAD, &bytes);
	return bytes > 200;
}

static bool kill_one(struct __test_metadata *_metadata, __u64 *seed, unsigned int when)
{
	const char *program = programs[next_random(seed) % ARRAY_SIZE(programs)];
	__u64 wait = next_random(seed) % (30 * MSEC);
	int output[2];
	pid_t pid;
	bool ran;

	ASSERT_EQ(0, pipe(output));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		client_run(program, output[1]);
	/* Also here, so that the group exists before kill(-pid). */
	setpgid(pid, pid);
	/* Three of four clients are killed after some runs, the others earlier. */
	if (when % 4)
		EXPECT_TRUE(until(has_run(output[0])));
	sleep_ns(wait);
	ASSERT_EQ(0, kill(-pid, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_end(pid));
	/* Reap the children of the client, which this process has adopted. */
	while (waitpid(-pid, NULL, 0) > 0)
		;
	ran = has_run(output[0]);
	close(output[0]);
	close(output[1]);
	return ran;
}

TEST_F_TIMEOUT(kill, at_random_points, 2500)
{
	unsigned int n = rounds(100, 20), ran = 0, i;
	__u64 seed = self->seed;

	for (i = 0; i < n && _metadata->passed; i++)
		ran += kill_one(_metadata, &seed, i);
	TH_LOG("%u rounds; %u clients were running", i, ran);
	EXPECT_EQ(n, i);
	EXPECT_LE(n / 2, ran);
	observer_end(_metadata, &self->observer);
	EXPECT_TRUE(until(!context_threads(NULL) && !hwt_users()));
	user_whole(_metadata);
}

TEST_HARNESS_MAIN
