// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of N timers to a program, for hwt and its alternatives
 *
 *	create		create a timer and arm it
 *	rearm		push its deadline back
 *	cancel		disarm and destroy it
 *	cpu		all timers are due at once: all CPU time until the last event, with that of
 *			interrupts and kernel threads
 *	due		the same by the wall clock, from the deadline on
 *	open, close	a context or a timerfd
 *	late		a single timer: from its deadline to the program
 *	mem-slab	the kernel's objects, by the growth of "Slab" in /proc/meminfo: it needs an
 *			idle machine
 *	mem-rss		the process's pages, with its own data about the timers
 *
 * All figures are for one timer; README.md describes the lines of results. Delays are relative, and
 * from a fixed mix above a minimum, so that no timer fires during a measurement. Each operation
 * visits the timers in its own random order, the same in every run. Each run is a process. In each
 * repetition, all peers run once.
 */
#include "user_bench.h"
#include "hwt_ring.h"
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PEERS		ARRAY_SIZE(all_peers)
#define NUMBERS_MAX	16
#define TIMERS_MAX	100000000

static const struct peer *const all_peers[] = {
	&peer_syscall, &peer_hwt, &peer_hwt_rings, &peer_hwt_keys, &peer_hwt_uring,
	&peer_hwt_uring_batch, &peer_timerfd, &peer_uring, &peer_uring_batch,
};

static bool gone[PEERS], reap_gone[PEERS];

static unsigned int numbers[NUMBERS_MAX] = { 1000, 10000, 100000, 1000000 };
static unsigned int numbers_count = 4;
static unsigned int repetitions = 5;
unsigned int batch_size = 32;

static struct todo *todos[OPERATIONS];

static volatile sig_atomic_t interrupted;

/* -- The operations and their order --------------------------------------- */

static __u64 random_below(__u64 *state, __u64 limit)
{
	return (next_random(state) >> 16) % limit;
}

static __u64 random_delay_ns(__u64 *state)
{
	__u64 floor_ns = delay_floor_ns();

	switch (random_below(state, 3)) {
	case 0:
		return floor_ns + (1000 + random_below(state, 4000)) * MSEC;
	case 1:
		return floor_ns + 30 * SEC;
	default:
		return floor_ns + (3600 + random_below(state, 11 * 3600)) * SEC;
	}
}

static void shuffle(struct todo *todo, unsigned int count, __u64 *state)
{
	struct todo other;
	unsigned int i, j;

	for (i = count; i > 1; i--) {
		j = random_below(state, i);
		other = todo[i - 1];
		todo[i - 1] = todo[j];
		todo[j] = other;
	}
}

/* Allocate for all runs: freed memory would hide how much a later run grows. */
static void todos_alloc(unsigned int count)
{
	unsigned int op;

	for (op = 0; op < OPERATIONS; op++) {
		todos[op] = malloc(count * sizeof(*todos[op]));
		if (!todos[op]) {
			perror("malloc");
			exit(1);
		}
	}
}

/* Called before the fork: the runs only read the lists. */
static void todos_make(unsigned int count)
{
	__u64 state = 0x9e3779b97f4a7c15ULL;
	unsigned int op, i;

	for (i = 0; i < count; i++) {
		todos[CREATE][i].timer = i;
		todos[CREATE][i].delay_ns = random_delay_ns(&state);
		todos[REARM][i] = todos[CREATE][i];
		todos[REARM][i].delay_ns += (10000 + random_below(&state, 50000)) *
					    MSEC;
		todos[CANCEL][i] = todos[REARM][i];
	}
	for (op = 0; op < OPERATIONS; op++)
		shuffle(todos[op], count, &state);
}

/* -- Runs ---------------------------------------------------------------- */

static void on_interrupt(int signal)
{
	interrupted = signal;
}

static void run_prepare(unsigned int seconds)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	alarm(seconds);
	/* If memory runs out, kill this process. */
	write_number("/proc/self/oom_score_adj", 1000);
}

/*
 * Run a peer in a process. Return true if it finished. @lead_ns: 0: the operations; else: reap.
 * Without a @peer, measure a single timer.
 */
static bool run_once(const struct peer *peer, unsigned int timers, __u64 lead_ns)
{
	unsigned int patience = 2 * delay_floor_ns() / SEC +
				2 * lead_ns / SEC + 30;
	int status;
	pid_t pid;

	outcome->finished = false;
	outcome->late = false;
	outcome->why[0] = 0;
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (!pid) {
		run_prepare(patience);
		if (!peer)
			measure_single();
		else if (lead_ns)
			measure_reap(peer, todos[CREATE], timers, lead_ns);
		else
			measure_operations(peer, todos, timers);
		outcome->finished = true;
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
		if (interrupted)
			kill(pid, SIGKILL);
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(outcome->why, sizeof(outcome->why), "not finished in %u s", patience);
	else if (WIFSIGNALED(status))
		snprintf(outcome->why, sizeof(outcome->why), "killed by signal %d",
			 WTERMSIG(status));
	return outcome->finished;
}

static bool run_reap(const struct peer *peer, unsigned int timers)
{
	__u64 lead_ns = outcome->took_ns[CREATE] * 3 / 2 + 300 * MSEC;
	int try;

	for (try = 0; try < 4; try++) {
		if (!run_once(peer, timers, lead_ns))
			return false;
		if (!outcome->late)
			return true;
		lead_ns *= 2;
	}
	snprintf(outcome->why, sizeof(outcome->why), "not created before they are due");
	return false;
}

/* -- Results ------------------------------------------------------------- */

static const struct {
	const char *op;
	const char *unit;
	unsigned int least;	/* timers */
} figures[FIGURES] = {
	[CREATE_WALL]	= { "create", "ns" },
	[REARM_WALL]	= { "rearm", "ns" },
	[CANCEL_WALL]	= { "cancel", "ns" },
	[REAP_CPU]	= { "cpu", "ns" },
	[REAP_DUE]	= { "due", "ns" },
	/* The memory of fewer timers is less than the changes by other processes. */
	[MEMORY_SLAB]	= { "mem-slab", "bytes", 10000 },
	[MEMORY_RSS]	= { "mem-rss", "bytes", 10000 },
};

static void print_results(const struct peer *peer, unsigned int timers)
{
	unsigned int i;

	for (i = 0; i < OPERATIONS; i++) {
		if (outcome->done[i] && outcome->done[i] < timers)
			printf("%s, %s: of the first %u timers only, which took %.1f s\n",
			       peer->name, figures[i].op, outcome->done[i],
			       (double)outcome->took_ns[i] / SEC);
	}
	for (i = 0; i < FIGURES; i++) {
		if (!isnan(outcome->value[i]) && timers >= figures[i].least)
			printf("@bench bench=user peer=%s op=%s n=%u unit=%s value=%.1f\n",
			       peer->name, figures[i].op, timers, figures[i].unit,
			       outcome->value[i]);
	}
}

/* Run the operations and the reap of a peer once. */
static void run_peer(unsigned int index, unsigned int timers)
{
	const struct peer *peer = all_peers[index];
	unsigned int i;

	memset(outcome, 0, sizeof(*outcome));
	for (i = 0; i < FIGURES; i++)
		outcome->value[i] = NAN;
	if (!run_once(peer, timers, 0)) {
		if (interrupted)
			return;
		printf("skip: %s from %u timers on: after at least %u were created: %s\n",
		       peer->name, timers, outcome->done[CREATE], outcome->why);
		gone[index] = true;
		return;
	}
	if (peer->reap && !reap_gone[index] && !run_reap(peer, timers)) {
		if (interrupted)
			return;
		printf("skip: %s, reap from %u timers on: %s\n", peer->name, timers,
		       outcome->why);
		reap_gone[index] = true;
	}
	print_results(peer, timers);
}

static void run_number(unsigned int timers)
{
	unsigned int r, i;

	todos_make(timers);
	for (r = 0; r < repetitions; r++) {
		if (timers == numbers[0] && !interrupted && !run_once(NULL, 0, 0))
			printf("skip: a single timer: %s\n", outcome->why);
		for (i = 0; i < PEERS && !interrupted; i++) {
			if (gone[i])
				continue;
			printf("%u timers, %u of %u: %s\n", timers, r + 1, repetitions,
			       all_peers[i]->name);
			run_peer(i, timers);
		}
	}
}

/* -- Options ------------------------------------------------------------- */

static void usage(void)
{
	unsigned int i;

	printf("Usage: user_bench [OPTION]...\n"
	       "Measure the cost of create, rearm, cancel and reap for many timers.\n\n"
	       "  -q          1000 and 10000 timers, 3 repetitions, -t 1\n"
	       "  -n LIST     numbers of timers (1000,10000,100000,1000000)\n"
	       "  -b N        operations at once, if a peer has batches, a power of two (32)\n"
	       "  -r N        repetitions (5)\n"
	       "  -t SECONDS  time limit for an operation on all timers (3); then the cost is that\n"
	       "              of the timers done so far. The limit of create is %d times that.\n"
	       "  -h          show this help\n\nPeers:\n", CREATE_PATIENCE);
	for (i = 0; i < PEERS; i++)
		printf("  %-16s %s\n", all_peers[i]->name, all_peers[i]->what);
	printf("\nRaises limits as far as allowed, and restores those of the system at the end.\n");
}

static void __attribute__((noreturn)) bad_option(const char *what, const char *value)
{
	fprintf(stderr, "user_bench: %s: %s; try -h\n", what, value);
	exit(2);
}

static unsigned int parse_number(const char *text, unsigned int max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || !value || value > max)
		bad_option("not a number, or out of range", text);
	return value;
}

static void parse_numbers(char *list)
{
	char *item;

	for (numbers_count = 0; (item = strsep(&list, ","));) {
		if (numbers_count == NUMBERS_MAX)
			bad_option("too many numbers", item);
		numbers[numbers_count++] = parse_number(item, TIMERS_MAX);
	}
}

static void parse_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "qn:b:r:t:h")) != -1) {
		switch (c) {
		case 'q':
			numbers_count = 2;
			repetitions = 3;
			time_limit = 1;
			break;
		case 'n':
			parse_numbers(optarg);
			break;
		case 'b':
			batch_size = parse_number(optarg, BATCH_MAX);
			if (batch_size & (batch_size - 1))
				bad_option("not a power of two", optarg);
			break;
		case 'r':
			repetitions = parse_number(optarg, 1000);
			break;
		case 't':
			time_limit = parse_number(optarg, 1000);
			break;
		case 'h':
			usage();
			exit(0);
		default:
			exit(2);
		}
	}
	if (optind < argc)
		bad_option("unknown argument", argv[optind]);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_interrupt };
	unsigned int i, most = 1;

	parse_options(argc, argv);
	outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcome == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (i = 0; i < numbers_count; i++)
		most = numbers[i] > most ? numbers[i] : most;
	/* End in order after a signal, to restore the limits of the system. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	todos_alloc(most);
	limits_raise(most);
	for (i = 0; i < numbers_count && !interrupted; i++)
		run_number(numbers[i]);
	limits_restore();
	return interrupted ? 128 + interrupted : 0;
}
