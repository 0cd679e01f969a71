// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lateness of a user's timeouts, while another user loads /dev/hwt as far as its limits allow.
 * The test prints figures, a line for each row. It checks that no timeout is lost or early, that
 * cancelled timeouts count as long as they are in memory, and that scheduling does not sleep.
 *
 * The attacker has few timeouts by default; with "-b", for bench/bench.py, as many as allowed.
 *
 * hwt-test: check stock
 * hwt-test: only stock rt
 * hwt-test: noload
 * hwt-test: long
 * hwt-test: timeout 400
 */
#include "kselftest_harness.h"
#include <grp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "guest.h"
#include "hwt_ring.h"

#define ATTACKER	1001
#define VICTIM		1002

#define AT_ONCE		64	/* operations of a ring */
#define EVENTS		1024
#define CONTEXTS	255
#define FLOODERS	8
#define PROBES		4000
#define MOST		100000	/* timeouts of the flooding user */
#define SECONDS		30

/* In memory that all processes share */
static struct told {
	volatile bool armed;		/* the attacker has armed its timeouts */
	__u64 deadline;			/* when the attack begins */
	unsigned int n;			/* timeouts or calls measured */
	unsigned int strange;		/* wrong results and events */
	unsigned int slept;		/* sleeps in calls that schedule */
	volatile unsigned long made[2 * FLOODERS];	/* rounds of each flooder */
	__u64 fired[PROBES];		/* lateness of the event, ns */
	__u64 woken[PROBES];		/* lateness of the read() that returns it */
	__u64 call[PROBES];		/* duration of a call that schedules, ns */
} *told;

/* Index of pairs: 0 for the small numbers, 1 for the full ones ("-b") */
static unsigned int full;
static unsigned int flooders = FLOODERS;
static bool and_close;		/* flooders close their context instead of cancelling */
static const unsigned int probes[2] = { 500, PROBES };

/* An attack and a measurement */
static const struct row {
	const char *name;
	void (*attack)(void);
	unsigned int contexts[2];
	unsigned int each[2];		/* timeouts of a context, all due at once */
	__u64 period;			/* of each timeout; 0: one-shots */
	unsigned int listers;		/* threads that list its timeouts */
	bool reads;			/* the attacker reads its events, else it sleeps */
	void (*measure)(void);
	uid_t user;			/* user whose calls are measured, with CAP_SYS_RESOURCE */
} *row;

/* -- Processes and figures -------------------------------------------------- */

static void load(struct __test_metadata *_metadata, const char *params)
{
	int file = open_module("hwt");

	ASSERT_EQ(0, load_module(file, params));
	close(file);
	ASSERT_EQ(0, chmod(HWT_DEV, 0666));
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)told);
}

static void unload(struct __test_metadata *_metadata, pid_t attacker)
{
	if (attacker > 0) {
		kill(-attacker, SIGKILL);
		waitpid(attacker, NULL, 0);
	}
	/* Killed processes may still be closing their files. */
	EXPECT_TRUE(until(!unload_module("hwt")));
}

/* Run a function in a child as user @uid; if @privileged, with CAP_SYS_RESOURCE. */
static pid_t start_as(uid_t uid, bool privileged, void (*run)(void))
{
	const struct rlimit files = { 1 << 20, 1 << 20 };
	pid_t pid = fork();

	/* By both: the parent may kill the group before the child runs. */
	setpgid(pid > 0 ? pid : 0, 0);
	if (pid)
		return pid;
	if (setrlimit(RLIMIT_NOFILE, &files) || setgroups(0, NULL) || setresgid(uid, uid, uid) ||
	    setresuid(uid, uid, privileged ? 0 : uid) ||
	    (privileged && set_capability(CAP_SYS_RESOURCE, true)))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run();
	_exit(0);
}

/* Print median, p99 and worst in the format of bench/results.py. */
static void print_figures(const char *op, __u64 *ns)
{
	unsigned int n = told->n, median, p99;

	qsort(ns, n, sizeof(*ns), by_value);
	/* This row does not measure @op. */
	if (!n || !ns[n - 1])
		return;
	printf("@bench bench=neighbours peer=hwt row=%s op=%s n=%u unit=us ", row->name, op, n);
	median = (n - 1) / 2;
	p99 = (n - 1) * 99 / 100;
	printf("median=%.1f p99=%.1f worst=%.1f\n", ns[median] / 1e3, ns[p99] / 1e3,
	       ns[n - 1] / 1e3);
	fflush(stdout);
}

/* -- Attacks ---------------------------------------------------------------- */

/*
 * Arm timeouts by a ring, which is fastest; @count is rounded up to a multiple of AT_ONCE. If the
 * attacker reads its events, use the ioctl, because a context with rings has no read().
 */
static void arm(int fd, unsigned int count, __u32 flags, __u64 time_ns)
{
	struct hwt_op op = op_schedule(time_ns, 0);
	struct ring ring;
	unsigned int n, i;

	for (n = 0; row->reads && n < count; n++)
		told->strange += !!hwt_add(fd, flags, time_ns, n, NULL);
	if (row->reads)
		return;
	op.flags = flags;
	op.mode = row->period ? HWT_MODE_FIXED_RATE : HWT_MODE_ONE_SHOT;
	op.period_ns = row->period;
	if (ring_make(&ring, fd, 0, AT_ONCE, 1)) {
		told->strange++;
		return;
	}
	for (n = 0; n < count; n += AT_ONCE) {
		for (i = 0; i < AT_ONCE; i++)
			ring_push(&ring, op);
		told->strange += ring_enter(&ring, AT_ONCE, 0, 0) != AT_ONCE ||
				 ring.ops[AT_ONCE - 1].result;
	}
	ring_unmap(&ring);
}

/* Read all events of a context. Each must come once, and none early. */
static void read_all(int fd, unsigned int count)
{
	static struct hwt_event events[EVENTS];
	bool *seen = calloc(count, 1);
	unsigned int n = 0, i;
	int ret;

	while (n < count) {
		ret = hwt_read(fd, events, EVENTS);
		told->strange += ret <= 0;
		for (i = 0; (int)i < ret; i++, n++) {
			told->strange += events[i].user_data >= count ||
					 seen[events[i].user_data] ||
					 events[i].fired_ns < told->deadline;
			seen[events[i].user_data % count] = true;
		}
	}
	free(seen);
}

static void *list_for_ever(void *arg)
{
	static struct hwt_list_entry entries[EVENTS];

	while (hwt_entries((intptr_t)arg, entries, EVENTS) >= 0)
		;
	return NULL;
}

/* Open contexts with many timeouts, all due at once. */
static void hold(void)
{
	unsigned int contexts = row->contexts[full], i;
	long each = row->each[full];
	int fd[CONTEXTS];
	pthread_t thread;
	__u64 begun;

	/* Measure how long arming takes, to set a deadline after it. */
	for (i = 0; i < 2; i++) {
		begun = now_ns();
		fd[i] = hwt_open(0);
		arm(fd[i], each / 16, 0, HOUR);
	}
	told->deadline = now_ns() + (now_ns() - begun) * 32 * contexts + 3 * SEC;
	close(fd[0]);
	close(fd[1]);
	for (i = 0; i < contexts; i++) {
		fd[i] = hwt_open(0);
		arm(fd[i], each, HWT_ARM_ABSOLUTE, told->deadline);
	}
	for (i = 0; i < row->listers; i++)
		told->strange += !!pthread_create(&thread, NULL, list_for_ever,
						  (void *)(intptr_t)fd[0]);
	told->armed = true;
	if (row->reads)
		read_all(fd[0], each);
	else
		pause();
}

/* Let a timeout fire each millisecond, with thousands of epoll entries to wake. */
static void wait_often(void)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int fd = hwt_open(0), epoll = epoll_create1(0);
	struct hwt_event event;
	unsigned int i;

	for (i = 0; i < row->each[full]; i++)
		told->strange += !!epoll_ctl(epoll, EPOLL_CTL_ADD, dup(fd), &watched);
	told->strange += !!hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, 0, MSEC, 0, NULL);
	told->armed = true;
	while (hwt_read(fd, &event, 1) == 1)
		;
}

/*
 * In several processes, schedule and cancel, or close contexts with many timeouts, faster than
 * the wheel's thread releases timeouts.
 */
static void flood(void)
{
	unsigned int me = 0, n, i;
	struct ring ring;

	while (me < flooders - 1 && fork())
		me++;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (ring_open(&ring, AT_ONCE, 1) < 0) {
			told->strange++;
			return;
		}
		for (n = 0; n < 8192 || !and_close; n += AT_ONCE) {
			for (i = 0; i < AT_ONCE; i++)
				ring_push(&ring, op_schedule(HOUR, 0));
			ring_enter(&ring, AT_ONCE, 0, 0);
			for (i = 0; i < AT_ONCE && !and_close; i++)
				ring_push(&ring, op_cancel(ring.ops[i].id));
			ring_enter(&ring, AT_ONCE, 0, 0);
			told->made[me]++;
			told->armed = true;
		}
		ring_close(&ring);
	}
}

/* -- Lateness --------------------------------------------------------------- */

/*
 * Measure a timeout in each tick, an eighth of them before the attack begins. The lateness counts
 * from the deadline, or from arming if that came later because the attacker left too little time.
 */
static void probe(void)
{
	__u64 tick = hwt_param("tick_us") * USEC, first, now;
	static struct hwt_event events[EVENTS];
	static __u64 armed[PROBES];
	int fd = hwt_open(0), ret;
	unsigned int i;
	__u64 since;

	first = told->deadline / tick * tick - probes[full] / 8 * tick;
	for (i = 0; i < probes[full]; i++) {
		armed[i] = now_ns();
		told->strange += !!hwt_add(fd, HWT_ARM_ABSOLUTE, first + i * tick, i, NULL);
	}
	while (told->n < probes[full]) {
		ret = hwt_read(fd, events, EVENTS);
		now = now_ns();
		told->strange += ret <= 0;
		for (i = 0; (int)i < ret; i++, told->n++) {
			since = events[i].deadline_ns;
			told->strange += events[i].fired_ns < since ||
					 since != first + events[i].user_data * tick;
			if (since < armed[events[i].user_data])
				since = armed[events[i].user_data];
			told->fired[told->n] = events[i].fired_ns - since;
			told->woken[told->n] = now - since;
		}
	}
}

static unsigned int sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void schedule(void)
{
	__u64 start = now_ns(), begun;
	unsigned int before;
	int fd = hwt_open(0);

	while (told->n < probes[full] && now_ns() - start < 20 * SEC) {
		sleep_ns(MSEC);
		before = sleeps();
		begun = now_ns();
		told->strange += !!hwt_add(fd, 0, HOUR, 0, NULL);
		told->call[told->n++] = now_ns() - begun;
		told->slept += sleeps() - before;
	}
}

FIXTURE(neighbours) {
	pid_t attacker;
};

FIXTURE_VARIANT(neighbours) {
	struct row row;
};

FIXTURE_VARIANT_ADD(neighbours, alone) { { "alone", NULL, .measure = probe } };
FIXTURE_VARIANT_ADD(neighbours, together) { {
	"together", hold, { 8, 64 }, { 4096, 16384 }, .measure = probe
} };
FIXTURE_VARIANT_ADD(neighbours, periodic) { {
	"periodic", hold, { 8, 255 }, { 1024, 16384 }, .period = MSEC, .measure = probe
} };
FIXTURE_VARIANT_ADD(neighbours, dup) { {
	"dup", wait_often, { 1, 1 }, { 5000, 500000 }, .measure = probe
} };
FIXTURE_VARIANT_ADD(neighbours, flood) { { "flood", flood, .measure = probe } };
/* One context, whose events the attacker reads */
FIXTURE_VARIANT_ADD(neighbours, one_context) { {
	"one_context", hold, { 1, 1 }, { 100000, 1000000 }, .reads = true, .measure = probe
} };
FIXTURE_VARIANT_ADD(neighbours, listed) { {
	"listed", hold, { 1, 1 }, { 20000, 20000 }, .listers = 8, .reads = true, .measure = probe
} };
/* Calls of a privileged process, of another user and of the attacker */
FIXTURE_VARIANT_ADD(neighbours, call_alone) { { "call_alone", NULL, .measure = schedule } };
FIXTURE_VARIANT_ADD(neighbours, call_of_root) { { "call_of_root", flood, .measure = schedule } };
FIXTURE_VARIANT_ADD(neighbours, call_of_same_user) { {
	"call_of_same_user", flood, .measure = schedule, .user = ATTACKER
} };

FIXTURE_SETUP(neighbours)
{
	load(_metadata, "");
}

FIXTURE_TEARDOWN(neighbours)
{
	unload(_metadata, self->attacker);
}

TEST_F_TIMEOUT(neighbours, lateness, 250)
{
	pid_t pid;

	row = &variant->row;
	if (row->attack) {
		self->attacker = start_as(ATTACKER, false, row->attack);
		ASSERT_LT(0, self->attacker);
		while (!told->armed && !waitpid(self->attacker, NULL, WNOHANG))
			sleep_ns(10 * MSEC);
		ASSERT_TRUE(told->armed);
	}
	/* An attack without a deadline has begun already. */
	if (!told->deadline)
		told->deadline = now_ns() + 2 * SEC;
	pid = start_as(row->measure == probe ? VICTIM : row->user, row->measure == schedule,
		       row->measure);
	EXPECT_EQ(0, child_end(pid));
	if (row->reads) {
		EXPECT_EQ(0, child_end(self->attacker));
		self->attacker = 0;
	}
	EXPECT_EQ(0U, told->strange);
	/* On PREEMPT_RT, spin locks sleep. */
	EXPECT_TRUE(!told->slept || !access("/sys/kernel/realtime", F_OK));
	TH_LOG("%u measured, calls have slept %u times", told->n, told->slept);
	print_figures("fired", told->fired);
	print_figures("woken", told->woken);
	print_figures("call", told->call);
}

/* -- Memory of the flooding user --------------------------------------------- */

/* Return the number of one-shots of all users in memory; -1 without slabinfo. */
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
	pid_t attacker;
};

FIXTURE_VARIANT(flood) {
	bool and_close;
};

FIXTURE_VARIANT_ADD(flood, cancel) { false };
FIXTURE_VARIANT_ADD(flood, close) { true };

FIXTURE_SETUP(flood)
{
	load(_metadata, "max_user_timeouts=100000");
	flooders = 2 * FLOODERS;
	and_close = variant->and_close;
	self->attacker = start_as(ATTACKER, false, flood);
	ASSERT_LT(0, self->attacker);
}

FIXTURE_TEARDOWN(flood)
{
	unload(_metadata, self->attacker);
}

/* The user's limit holds, each flooder makes progress, and a neighbour's timeouts fire. */
TEST_F_TIMEOUT(flood, memory_and_neighbour, 110)
{
	__u64 end = now_ns() + SECONDS * SEC, rounds = 0;
	struct hwt_event event;
	unsigned long before;
	long n, most = 0;
	unsigned int i;
	int fd;

	if (full || objects() < 0)
		SKIP(return, "needs slabinfo, and no \"-b\"");
	fd = open_as(VICTIM);
	while (now_ns() < end) {
		ASSERT_EQ(0, hwt_add(fd, 0, 10 * MSEC, rounds, NULL));
		ASSERT_LT(0, hwt_wait(fd, 60000));
		ASSERT_EQ(1, hwt_read(fd, &event, 1));
		ASSERT_EQ(rounds++, event.user_data);
		ASSERT_LE(event.deadline_ns, event.fired_ns);
		n = objects();
		ASSERT_LE(0, n);
		most = n > most ? n : most;
	}
	TH_LOG("at most %ld timeouts in memory", most);
	/* The allocator keeps some free objects. */
	EXPECT_GE(MOST + MOST / 10, most);
	/* The flood must have come close to the limit. */
	EXPECT_LT(MOST / 2, most);
	for (i = 0; i < flooders; i++) {
		before = told->made[i];
		EXPECT_TRUE(until(told->made[i] != before));
	}
	close(fd);
}

#define main harness_main
TEST_HARNESS_MAIN
#undef main

int main(int argc, char **argv)
{
	full = argc > 1 && !strcmp(argv[1], "-b");
	return harness_main(1, argv);
}
