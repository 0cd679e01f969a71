// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes repeatedly use up the memory of the machine or of the memory cgroup, until they are
 * killed. Pending timeouts fire, none early and none lost, since firing allocates no memory; new
 * timeouts may be refused.
 *
 * hwt-test: long
 * hwt-test: only stock
 * hwt-test: timeout 400
 */
#include "kselftest_harness.h"

#include "recover.h"

#define GROUP		CGROUP "/hwt-recover"
#define GROUP_MAX	"33554432"
#define MUCH		(sizeof(size_t) > 4 ? (size_t)(8ULL << 30) : 1UL << 31)

FIXTURE(memory) {
	struct observer observer;
};

FIXTURE_VARIANT(memory) {
	bool group;
};

FIXTURE_VARIANT_ADD(memory, of_the_machine) { false };
FIXTURE_VARIANT_ADD(memory, of_the_group) { true };

FIXTURE_SETUP(memory)
{
	if (variant->group) {
		ASSERT_TRUE(make_group(GROUP, GROUP_MAX));
		ASSERT_TRUE(write_text(GROUP "/cgroup.procs", "0"));
	}
	/* Protect the test and the observer from the OOM killer. */
	ASSERT_TRUE(write_text("/proc/self/oom_score_adj", "-1000"));
	observer_start(_metadata, &self->observer, 250);
}

FIXTURE_TEARDOWN(memory)
{
	if (variant->group) {
		write_text(CGROUP "/cgroup.procs", "0");
		rmdir(GROUP);
	}
}

static int hog(void)
{
	unsigned long i;
	char *p;

	if (!write_text("/proc/self/oom_score_adj", "1000"))
		return 1;
	p = mmap(NULL, MUCH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return 2;
	for (i = 0; i < MUCH; i += 4096)
		p[i] = 1;
	return 3;
}

TEST_F_TIMEOUT(memory, exhausted, 300)
{
	unsigned int n = given("HWT_ROUNDS", 3), i;
	int kmsg = log_open();

	ASSERT_LE(0, kmsg);
	write_text("/dev/kmsg", "hwt-expect-begin: oom-killer|[Oo]ut of memory|oom_reaper");
	for (i = 0; i < n; i++) {
		EXPECT_EQ(-SIGKILL, IN_CHILD(hog()));
		/* The message may come after the child's end. */
		EXPECT_TRUE(until(log_has(kmsg, "Killed process")));
	}
	write_text("/dev/kmsg", "hwt-expect-end");
	close(kmsg);
	observer_end(_metadata, &self->observer);
}

TEST_HARNESS_MAIN
