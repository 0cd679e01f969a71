// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that do nothing but make and cancel timeouts, or close their context with many, more
 * of them than there are CPUs: faster than the wheel's thread lets go of them. What is cancelled
 * and still in memory counts, so it is never more than their user may have; each of them goes
 * on, and the timeouts of another user still fire. How late those are is told.
 *
 * hwt-test: check stock
 * hwt-test: long
 * hwt-test: only stock rt
 * hwt-test: timeout 240
 * hwt-test: load max_user_timeouts=100000
 */
#include "kselftest_harness.h"
#include <sys/prctl.h>
#include <sys/stat.h>

#include "hwt_ring.h"
#include "process.h"

#define PROCESSES	16
#define AT_ONCE		64
#define SECONDS		30
#define MOST		100000	/* as max_user_timeouts above */
#define OTHER		4001	/* another user */

/* Rounds of each process. */
static volatile unsigned long *made;

static void make(struct ring *ring, unsigned int me)
{
	unsigned int i;

	for (i = 0; i < AT_ONCE; i++)
		ring_push(ring, op_schedule(HOUR, i));
	ring_enter(ring, AT_ONCE, 0, 0);
	made[me]++;
}

static void make_and_cancel(unsigned int me)
{
	struct ring ring;
	unsigned int i;

	ring_open(&ring, AT_ONCE, 1);
	for (;;) {
		make(&ring, me);
		for (i = 0; i < AT_ONCE; i++)
			ring_push(&ring, op_cancel(ring.ops[i].id));
		ring_enter(&ring, AT_ONCE, 0, 0);
	}
}

static void make_and_close(unsigned int me)
{
	struct ring ring;
	unsigned int i;

	for (;;) {
		ring_open(&ring, AT_ONCE, 1);
		for (i = 0; i < 8192 / AT_ONCE; i++)
			make(&ring, me);
		ring_close(&ring);
	}
}

/* One-shots in memory, whoever they belong to; -1: that is not told. */
static long objects(void)
{
	FILE *file = fopen("/proc/slabinfo", "re");
	char line[256];
	long n = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "hwt_entry ", 10))
			n = atol(line + 10);
	if (file)
		fclose(file);
	return n;
}

FIXTURE(flood) {
	pid_t group;		/* of the processes */
	int fd;
};

FIXTURE_VARIANT(flood) {
	void (*run)(unsigned int me);
};

FIXTURE_VARIANT_ADD(flood, cancel) { make_and_cancel };
FIXTURE_VARIANT_ADD(flood, close) { make_and_close };

FIXTURE_SETUP(flood)
{
	unsigned int i;

	ASSERT_EQ(0, chmod(HWT_DEV, 0666));
	self->fd = open_as(OTHER);
	ASSERT_LE(0, self->fd);
	made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)made);
	for (i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		ASSERT_LE(0, pid);
		if (!pid) {
			setpgid(0, self->group);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			variant->run(i);
		}
		self->group = self->group ?: pid;
		setpgid(pid, self->group);
	}
}

FIXTURE_TEARDOWN(flood)
{
	kill(-self->group, SIGKILL);
	while (waitpid(-self->group, NULL, 0) > 0)
		;
	close(self->fd);
	chmod(HWT_DEV, 0600);
}

TEST_F_TIMEOUT(flood, memory_and_neighbour, 110)
{
	__u64 end, late, worst = 0, rounds = 0;
	struct hwt_event event;
	unsigned long before;
	long n, most = 0;
	unsigned int i;

	end = now_ns() + SECONDS * SEC;
	while (now_ns() < end) {
		ASSERT_EQ(0, hwt_add(self->fd, 0, 10 * MSEC, rounds, NULL));
		ASSERT_LT(0, hwt_wait(self->fd, 60000));
		ASSERT_EQ(1, hwt_read(self->fd, &event, 1));
		ASSERT_EQ(rounds++, event.user_data);
		ASSERT_LE(event.deadline_ns, event.fired_ns);
		late = event.fired_ns - event.deadline_ns;
		worst = late > worst ? late : worst;
		n = objects();
		ASSERT_LE(0, n);
		most = n > most ? n : most;
	}
	TH_LOG("at most %ld timeouts in memory; of %llu of a neighbour one was late by %llu ms",
	       most, rounds, worst / MSEC);
	/* And what the allocator keeps at hand. */
	EXPECT_GE(MOST + MOST / 10, most);
	/* Without a bound it is what the machine can make in that time. */
	EXPECT_LT(MOST / 2, most);
	EXPECT_LT(0ULL, rounds);
	for (i = 0; i < PROCESSES; i++) {
		before = made[i];
		EXPECT_TRUE(until(made[i] != before));
	}
}

TEST_HARNESS_MAIN
