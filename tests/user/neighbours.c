// SPDX-License-Identifier: GPL-2.0-only
/*
 * The share of a CPU that a busy process keeps beside an attacker in another cgroup, whose timeouts
 * are due all the time. The test checks that this is at least three quarters of its fair share, and
 * prints the figures for bench/bench.py.
 *
 * hwt-test: check stock
 * hwt-test: only stock
 * hwt-test: long
 * hwt-test: timeout 200
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "guest.h"
#include "hwt_ring.h"

#define VICTIM		CGROUP "/hwt-victim"
#define ATTACKER	CGROUP "/hwt-attacker"
#define CONTEXTS	15
#define EACH		1500

/* The attack has begun; in memory that all processes share. */
static volatile bool *armed;

static void *spin(void *turns)
{
	volatile __u64 *n = turns;

	for (;;)
		(*n)++;
	return NULL;
}

static void victim(void)
{
	static __u64 turns;

	spin(&turns);
}

/* -- Attacks ---------------------------------------------------------------- */

static void none(void)
{
	*armed = true;
	pause();
}

static void spin_often(void)
{
	static __u64 turns[CONTEXTS];
	pthread_t thread;
	int i;

	for (i = 1; i < CONTEXTS; i++)
		pthread_create(&thread, NULL, spin, &turns[i]);
	*armed = true;
	spin(turns);
}

static void arm(struct pollfd *contexts)
{
	int i, n;

	for (i = 0; i < CONTEXTS; i++) {
		contexts[i].fd = hwt_open(O_NONBLOCK);
		contexts[i].events = POLLIN;
		for (n = 0; n < EACH; n++)
			if (hwt_add_periodic(contexts[i].fd, HWT_MODE_FIXED_RATE, 0, MSEC, n, NULL))
				_exit(1);
	}
	*armed = true;
}

static void arm_only(void)
{
	struct pollfd contexts[CONTEXTS];

	arm(contexts);
	pause();
}

static void arm_and_read(void)
{
	struct pollfd contexts[CONTEXTS];
	struct hwt_event events[256];
	int i;

	arm(contexts);
	while (poll(contexts, CONTEXTS, -1) > 0)
		for (i = 0; i < CONTEXTS; i++)
			while (hwt_read(contexts[i].fd, events, ARRAY_SIZE(events)) ==
			       ARRAY_SIZE(events))
				;
}

/* -- Processes and figures -------------------------------------------------- */

/* Let only CPU 0 work, or all again. */
static void other_cpus(const char *online)
{
	char path[64];
	int cpu;

	for (cpu = 1; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
		write_text(path, online);
	}
}

/* Run a function in a child in a cgroup. */
static pid_t start_in(const char *group, int niceness, void (*run)(void))
{
	char path[64];
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	if (write_text(path, "0") && !setpriority(PRIO_PROCESS, 0, niceness))
		run();
	_exit(1);
}

/* Return the number of interrupts since the boot. */
static __u64 interrupts(void)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long n = 0;
	static char line[4096];

	while (file && !n && fgets(line, sizeof(line), file))
		sscanf(line, "intr %llu", &n);
	if (file)
		fclose(file);
	return n;
}

/* CPU time of the processes, interrupts, time */
enum { ATTACKERS, VICTIMS, INTERRUPTS, TIME, COUNTS };

static void count(const clockid_t clock[2], __u64 now[COUNTS])
{
	now[ATTACKERS] = clock_ns(clock[0]);
	now[VICTIMS] = clock_ns(clock[1]);
	now[INTERRUPTS] = interrupts();
	now[TIME] = now_ns();
}

FIXTURE(neighbours) { };

FIXTURE_VARIANT(neighbours) {
	const char *name;
	void (*attack)(void);
	const char *file;	/* of the attacker's group; NULL: it is in that of the victim */
	const char *limit;
	int niceness;
	unsigned int fair;	/* share of the victim, percent */
};

FIXTURE_VARIANT_ADD(neighbours, alone) { "alone", none, "weight", "100", 0, 100 };
FIXTURE_VARIANT_ADD(neighbours, spins) { "spins", spin_often, "weight", "100", 0, 50 };
FIXTURE_VARIANT_ADD(neighbours, silent) { "silent", arm_only, "weight", "100", 0, 100 };
FIXTURE_VARIANT_ADD(neighbours, silent_max) { "silent,max", arm_only, "max", "10000", 0, 100 };
FIXTURE_VARIANT_ADD(neighbours, reads) { "reads", arm_and_read, "weight", "100", 0, 50 };
FIXTURE_VARIANT_ADD(neighbours, max) { "reads,max", arm_and_read, "max", "10000", 0, 90 };
FIXTURE_VARIANT_ADD(neighbours, weight) { "reads,weight", arm_and_read, "weight", "25", 0, 80 };
FIXTURE_VARIANT_ADD(neighbours, nice) { "reads,nice", arm_and_read, NULL, NULL, 19, 98 };

FIXTURE_SETUP(neighbours)
{
	char path[64];

	armed = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)armed);
	other_cpus("0");
	ASSERT_EQ(1, sysconf(_SC_NPROCESSORS_ONLN));
	ASSERT_TRUE(write_text(CGROUP "/cgroup.subtree_control", "+cpu"));
	ASSERT_EQ(0, mkdir(VICTIM, 0755));
	ASSERT_EQ(0, mkdir(ATTACKER, 0755));
	if (variant->file) {
		snprintf(path, sizeof(path), "%s/cpu.%s", ATTACKER, variant->file);
		ASSERT_TRUE(write_text(path, variant->limit));
	}
}

FIXTURE_TEARDOWN(neighbours)
{
	other_cpus("1");
	rmdir(VICTIM);
	rmdir(ATTACKER);
}

static void figure(const char *row, const char *op, const char *unit, double value)
{
	printf("@bench bench=neighbours peer=hwt row=%s op=%s n=%u unit=%s value=%.1f\n", row, op,
	       (unsigned int)(CONTEXTS * EACH), unit, value);
}

TEST_F_TIMEOUT(neighbours, share_of_a_busy_process, 60)
{
	__u64 before[COUNTS], grown[COUNTS];
	clockid_t clock[2];
	pid_t pid[2];
	int i;

	pid[0] = start_in(variant->file ? ATTACKER : VICTIM, variant->niceness, variant->attack);
	EXPECT_TRUE(until(*armed));
	pid[1] = start_in(VICTIM, 0, victim);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, clock_getcpuclockid(pid[i], &clock[i]));
	sleep_ns(200 * MSEC);
	count(clock, before);
	sleep_ns(4 * SEC);
	count(clock, grown);
	for (i = 0; i < COUNTS; i++)
		grown[i] -= before[i];
	for (i = 0; i < 2; i++)
		EXPECT_EQ(-SIGKILL, child_kill(pid[i]));
	EXPECT_LE(variant->fair * grown[TIME] * 3 / 400, grown[VICTIMS]);
	figure(variant->name, "victim", "percent", 100. * grown[VICTIMS] / grown[TIME]);
	figure(variant->name, "attacker", "percent", 100. * grown[ATTACKERS] / grown[TIME]);
	figure(variant->name, "interrupts", "per_s", (double)grown[INTERRUPTS] * SEC / grown[TIME]);
}

TEST_HARNESS_MAIN
