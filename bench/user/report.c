// SPDX-License-Identifier: GPL-2.0-only
/*
 * The figures of all runs with one number of timers, and how they are printed
 */
#include "user_bench.h"
#include <math.h>

/*
 * With fewer timers, what else the machine does is as large as their memory. And free pages
 * that CPUs keep for themselves, some megabytes, are not in MemFree.
 */
#define MEMORY_TIMERS	10000
#define FREE_TIMERS	1000000

static const struct {
	const char *op;
	const char *unit;
} figures[FIGURES] = {
	[CREATE_WALL]	= { "create", "ns" },
	[CREATE_CPU]	= { "create-cpu", "ns" },
	[CREATE_ENGINE]	= { "create-engine", "ns" },
	[REARM_WALL]	= { "rearm", "ns" },
	[REARM_CPU]	= { "rearm-cpu", "ns" },
	[REARM_ENGINE]	= { "rearm-engine", "ns" },
	[CANCEL_WALL]	= { "cancel", "ns" },
	[CANCEL_CPU]	= { "cancel-cpu", "ns" },
	[CANCEL_ENGINE]	= { "cancel-engine", "ns" },
	[REAP_WALL]	= { "reap", "ns" },
	[REAP_DUE]	= { "due", "ns" },
	[REAP_CPU]	= { "reap-cpu", "ns" },
	[REAP_ENGINE]	= { "reap-engine", "ns" },
	[MEMORY_SLAB]	= { "mem-slab", "bytes" },
	[MEMORY_RSS]	= { "mem-rss", "bytes" },
	[MEMORY_FREE]	= { "mem-free", "bytes" },
};

/* In the order of the table's columns. */
static const enum figure columns[] = {
	CREATE_WALL, CREATE_CPU, REARM_WALL, REARM_CPU, CANCEL_WALL, CANCEL_CPU,
	REAP_WALL, REAP_DUE, REAP_CPU, MEMORY_SLAB, MEMORY_RSS, MEMORY_FREE,
};

struct spread {
	double		median;
	double		low;
	double		high;
	unsigned int	runs;
};

static unsigned int peers_max, runs_max;
static double *samples;	/* by peer, figure and repetition */
static struct outcome *latest;	/* by peer */

static double *sample(unsigned int peer, unsigned int figure)
{
	return samples + ((size_t)peer * FIGURES + figure) * runs_max;
}

/* Forgets what was there. */
void report_start(unsigned int peers, unsigned int repetitions)
{
	size_t i, count = (size_t)peers * FIGURES * repetitions;

	peers_max = peers;
	runs_max = repetitions;
	free(samples);
	free(latest);
	samples = malloc(count * sizeof(*samples));
	latest = calloc(peers, sizeof(*latest));
	if (!samples || !latest) {
		perror("malloc");
		exit(1);
	}
	for (i = 0; i < count; i++)
		samples[i] = NAN;
}

void report_add(unsigned int peer, unsigned int repetition)
{
	unsigned int i;

	latest[peer] = *outcome;
	for (i = 0; i < FIGURES; i++)
		sample(peer, i)[repetition] = outcome->value[i];
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct spread spread(unsigned int peer, unsigned int figure)
{
	const double *from = sample(peer, figure);
	double *sorted = malloc(runs_max * sizeof(*sorted));
	struct spread result = { .median = NAN };
	unsigned int i, n = 0;

	if (!sorted)
		return result;
	for (i = 0; i < runs_max; i++) {
		if (!isnan(from[i]))
			sorted[n++] = from[i];
	}
	if (n) {
		qsort(sorted, n, sizeof(*sorted), compare);
		result = (struct spread) {
			.median	= (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
			.low	= sorted[0],
			.high	= sorted[n - 1],
			.runs	= n,
		};
	}
	free(sorted);
	return result;
}

static bool wanted(unsigned int figure, unsigned int timers)
{
	switch (figure) {
	case MEMORY_SLAB:
	case MEMORY_RSS:
		return timers >= MEMORY_TIMERS;
	case MEMORY_FREE:
		return timers >= FREE_TIMERS;
	default:
		return true;
	}
}

static void print_lines(const char *peer, unsigned int index, unsigned int timers)
{
	struct spread s;
	unsigned int i;

	for (i = 0; i < FIGURES; i++) {
		s = spread(index, i);
		if (!s.runs || !wanted(i, timers))
			continue;
		printf("@bench bench=user peer=%s op=%s n=%u unit=%s", peer, figures[i].op,
		       timers, figures[i].unit);
		printf(" median=%.1f low=%.1f high=%.1f runs=%u\n", s.median, s.low, s.high,
		       s.runs);
	}
}

static void print_row(const char *peer, unsigned int index, unsigned int timers)
{
	struct spread s;
	unsigned int i;

	printf("%-14s", peer);
	for (i = 0; i < ARRAY_SIZE(columns); i++) {
		s = spread(index, columns[i]);
		if (s.runs && wanted(columns[i], timers))
			printf(" %10.0f", s.median);
		else
			printf(" %10s", "-");
	}
	printf("\n");
}

static void print_notes(const char *peer, unsigned int index, unsigned int timers)
{
	static const char * const names[OPERATIONS] = { "create", "rearm", "cancel" };
	const struct outcome *last = &latest[index];
	unsigned int i;

	for (i = 0; i < OPERATIONS; i++) {
		if (last->done[i] && last->done[i] < timers)
			printf("  %s, %s: of the first %u timers only, which took %.1f s\n",
			       peer, names[i], last->done[i],
			       (double)last->took_ns[i] / NSEC_PER_SEC);
	}
}

void report_print(const struct peer *const peers[], unsigned int timers)
{
	unsigned int i;

	printf("\n%u timers, ns or bytes for each of them\n%-14s", timers, "");
	for (i = 0; i < ARRAY_SIZE(columns); i++)
		printf(" %10s", figures[columns[i]].op);
	printf("\n");
	for (i = 0; i < peers_max; i++) {
		if (spread(i, CREATE_WALL).runs)
			print_row(peers[i]->name, i, timers);
	}
	for (i = 0; i < peers_max; i++)
		print_notes(peers[i]->name, i, timers);
	printf("\n");
	for (i = 0; i < peers_max; i++)
		print_lines(peers[i]->name, i, timers);
	fflush(stdout);
}
