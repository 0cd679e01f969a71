// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory, and limits that prevent many timers
 */
#include "user_bench.h"
#include <sys/resource.h>

void sleep_until(__u64 when_ns)
{
	struct timespec when = to_timespec(when_ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

/* -- Memory -------------------------------------------------------------- */

/* Return the value of a line "name: 123 kB" of a file, in bytes; -1 if there is none. */
static double read_field(const char *path, const char *name)
{
	size_t length = strlen(name);
	FILE *file = fopen(path, "r");
	double bytes = -1;
	char line[256];

	if (!file)
		return -1;
	while (bytes < 0 && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, length))
			bytes = strtod(line + length, NULL) * 1024;
	}
	fclose(file);
	return bytes;
}

void memory_read(struct memory *memory)
{
	FILE *refresh = fopen("/proc/sys/vm/stat_refresh", "r");

	/* A read by root makes the kernel add up its per-CPU counts. */
	if (refresh) {
		(void)fgetc(refresh);
		fclose(refresh);
	}
	memory->slab = read_field("/proc/meminfo", "Slab:");
	memory->free = read_field("/proc/meminfo", "MemFree:");
	memory->rss = read_field("/proc/self/smaps_rollup", "Rss:");
	/* VmRSS may be wrong by some pages for each CPU. */
	if (memory->rss < 0)
		memory->rss = read_field("/proc/self/status", "VmRSS:");
}

/* Wait until earlier processes have freed their memory, for 3 s at most. */
void memory_settle(void)
{
	struct memory before, after;
	int i, quiet = 0;

	memory_read(&after);
	for (i = 0; i < 30 && quiet < 2; i++) {
		before = after;
		sleep_until(now_ns() + 100 * MSEC);
		memory_read(&after);
		quiet = after.slab > before.slab - (64 << 10) &&
			after.free < before.free + (256 << 10) ? quiet + 1 : 0;
	}
}

bool memory_is_short(void)
{
	double total = read_field("/proc/meminfo", "MemTotal:");

	return read_field("/proc/meminfo", "MemAvailable:") < total / 20;
}

/* -- Limits -------------------------------------------------------------- */

#define SPARE	1000

static struct sysctl {
	const char	*path;
	long long	before;
} sysctls[] = {
	{ .path = "/proc/sys/fs/nr_open" },
	{ .path = "/proc/sys/fs/epoll/max_user_watches" },
};

void write_number(const char *path, long long value)
{
	FILE *file = fopen(path, "w");

	if (file) {
		fprintf(file, "%lld\n", value);
		fclose(file);
	}
}

static void raise_limit(int resource, unsigned int timers)
{
	struct rlimit limit;
	rlim_t want = (rlim_t)timers + SPARE;

	if (getrlimit(resource, &limit) || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = want;
	if (limit.rlim_max < want)
		limit.rlim_max = want;
	if (!setrlimit(resource, &limit))
		return;
	/* Without privileges, use the hard limit. */
	getrlimit(resource, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(resource, &limit);
}

/* Raise limits as far as allowed. If one stays too low, the creation of timers fails. */
void limits_raise(unsigned int timers)
{
	long long want = (long long)timers + SPARE;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sysctls); i++) {
		sysctls[i].before = read_number(sysctls[i].path);
		if (sysctls[i].before < want)
			write_number(sysctls[i].path, want);
		else
			sysctls[i].before = -1;
	}
	raise_limit(RLIMIT_NOFILE, timers);
}

void limits_restore(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sysctls); i++) {
		if (sysctls[i].before > 0)
			write_number(sysctls[i].path, sysctls[i].before);
	}
}
