// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files of the wheels in debugfs: with units for hwtctl stats --wheels, counters for hwtctl top
 *
 * Unknown values are printed as they are, so that this works with a newer module.
 */
#include "hwtctl.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHEELS	"/sys/kernel/debug/hwt/wheels"

/* A function that prints a line, which has no newline any more. */
typedef void (*line_fn)(char *line, bool json, bool first);

/* Print the lines of a file with @put. Print nothing if the wheel is gone. */
static void put_lines(const char *wheel, const char *name, line_fn put, bool json)
{
	char path[sizeof(WHEELS) + 2 * NAME_MAX], line[512];
	bool first = true;
	FILE *file;

	snprintf(path, sizeof(path), WHEELS "/%s/%s", wheel, name);
	file = fopen(path, "r");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (*line == '#')
			continue;
		put(line, json, first);
		first = false;
	}
	fclose(file);
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* Return true if a value of this name is a string in JSON, even if it looks like a number. */
static bool is_text(const char *name)
{
	return !strcmp(name, "name") || !strcmp(name, "creator") || !strcmp(name, "module") ||
	       !strcmp(name, "cpus");
}

/* "NAME VALUE" */
static void put_value(char *line, bool json, bool first)
{
	char *value = strchr(line, ' '), buffer[TIME_TEXT], shown[4 * NAME_MAX];
	size_t end;

	(void)first;
	if (!value)
		return;
	*value++ = 0;
	if (json) {
		printf(",\"%s\":", line);
		if (is_number(value) && !is_text(line))
			printf("%s", value);
		else
			json_put_string(stdout, value);
		return;
	}
	end = strlen(line);
	if (end > 3 && !strcmp(line + end - 3, "_ns") && is_number(value)) {
		line[end - 3] = 0;
		value = duration_format(buffer, strtoull(value, NULL, 10));
	}
	printf("  %-17s%s\n", line, name_escape(shown, sizeof(shown), value));
}

/* "LEVEL BUCKET_NS OCCUPIED BUCKETS" */
static void put_level(char *line, bool json, bool first)
{
	unsigned long long ns, occupied, buckets;
	unsigned int level;
	char buffer[TIME_TEXT];

	if (sscanf(line, "%u %llu %llu %llu", &level, &ns, &occupied, &buckets) != 4)
		return;
	if (json)
		printf("%s{\"level\":%u,\"bucket_ns\":%llu,\"occupied\":%llu,\"buckets\":%llu}",
		       first ? "" : ",", level, ns, occupied, buckets);
	else
		printf("  level %-11u%llu of %llu buckets of %s\n", level, occupied, buckets,
		       duration_format(buffer, ns));
}

/* "BELOW_NS CALLBACKS" */
static void put_lateness(char *line, bool json, bool first)
{
	unsigned long long below, count;
	char buffer[TIME_TEXT];

	if (sscanf(line, "%llu %llu", &below, &count) != 2)
		return;
	if (json)
		printf("%s{\"below_ns\":%llu,\"callbacks\":%llu}", first ? "" : ",", below, count);
	else if (count)
		printf("  late by < %-11s%llu\n", duration_format(buffer, below), count);
}

/* Print the lines of a file; in JSON, as an array that is called @key. */
static void put_list(const char *wheel, const char *name, const char *key, line_fn put,
		     bool json)
{
	if (json)
		printf(",\"%s\":[", key);
	put_lines(wheel, name, put, json);
	if (json)
		printf("]");
}

static void put_wheel(const char *wheel, bool json)
{
	char shown[4 * NAME_MAX];

	if (json) {
		printf("{\"wheel\":");
		json_put_string(stdout, wheel);
	} else {
		put_heading("%s", name_escape(shown, sizeof(shown), wheel));
		printf("\n");
	}
	put_lines(wheel, "params", put_value, json);
	put_lines(wheel, "stats", put_value, json);
	/* In JSON "levels" is taken: it is one of the parameters. */
	put_list(wheel, "levels", "occupancy", put_level, json);
	put_list(wheel, "lateness", "lateness", put_lateness, json);
	if (json)
		printf("}\n");
}

static int is_wheel(const struct dirent *entry)
{
	return isdigit((unsigned char)entry->d_name[0]);
}

/* Return the number of wheels, and the list of their directories, which the caller frees. */
/*
 * Store the names of the wheels' directories in @wheels, which the caller frees. Return their
 * number; -1 if there is a reason @why debugfs cannot be read.
 */
static int wheels_find(struct dirent ***wheels, const char **why)
{
	static char text[256];
	int n = scandir(WHEELS, wheels, is_wheel, versionsort);

	if (n >= 0)
		return n;
	snprintf(text, sizeof(text), "%s: %s: %s", WHEELS, strerror(errno), errno == EACCES ?
		 "only root has access" : access("/sys/module/hwt", F_OK) ?
		 "the module is not loaded; run 'modprobe hwt'" :
		 "debugfs is not mounted; run 'mount -t debugfs none /sys/kernel/debug'");
	*why = text;
	return -1;
}

void wheels_print(bool json)
{
	struct dirent **wheels;
	const char *why;
	int n = wheels_find(&wheels, &why), i;

	if (n < 0)
		fail(0, "%s", why);
	for (i = 0; i < n; i++) {
		if (i && !json)
			printf("\n");
		put_wheel(wheels[i]->d_name, json);
		free(wheels[i]);
	}
	free(wheels);
}

/* -- Counters, for top ---------------------------------------------------- */

static const struct {
	const char	*name;
	bool		rate;		/* a sum that grows: its rate is shown */
} watched[WHEEL_COUNTERS] = {
	[WHEEL_PENDING]		= { "pending", false },
	[WHEEL_SCHEDULED]	= { "scheduled", true },
	[WHEEL_EXPIRED]		= { "expired", true },
	[WHEEL_LATE]		= { "late", true },
	[WHEEL_BEHIND]		= { "behind", true },
	[WHEEL_OVERRUNS]	= { "overruns", true },
	[WHEEL_REJECTED]	= { "rejected", true },
	[WHEEL_WAKEUPS]		= { "wakeups", true },
	[WHEEL_CLOCK_SETS]	= { "clock_sets", true },
	[WHEEL_REARMED]		= { "rearmed", true },
};

/* Read a line of the files "stats", "shards" and "lateness". */
static void note_stats(struct wheel *wheel, const char *line)
{
	unsigned long long value;
	unsigned int i;
	char key[32];

	if (sscanf(line, "%31s %llu", key, &value) != 2)
		return;
	for (i = 0; i < WHEEL_COUNTERS; i++)
		if (!strcmp(key, watched[i].name))
			wheel->counters[i] = value;
}

static void note_shard(struct wheel *wheel, const char *line)
{
	unsigned long long slowest;

	if (sscanf(line, "%*u %*u %*u %*u %*u %*u %*u %*u %llu", &slowest) == 1 &&
	    slowest > wheel->slowest_ns)
		wheel->slowest_ns = slowest;
}

static void note_lateness(struct wheel *wheel, const char *line)
{
	unsigned long long below, count;

	if (sscanf(line, "%llu %llu", &below, &count) == 2 && below)
		wheel->lateness[LATENESS_MAX - 1 - __builtin_clzll(below)] = count;
}

/* Read a file of the wheel. Return false if the wheel is gone. */
static bool wheel_read(struct wheel *wheel, const char *name,
		       void (*note)(struct wheel *wheel, const char *line))
{
	char line[sizeof(WHEELS) + sizeof(wheel->name) + 16];
	FILE *file;

	snprintf(line, sizeof(line), WHEELS "/%s/%s", wheel->name, name);
	file = fopen(line, "r");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		note(wheel, line);
	fclose(file);
	return true;
}

int wheels_take(struct wheel **wheels, const char **why)
{
	struct dirent **found;
	int n = wheels_find(&found, why), count = 0, i;

	*wheels = NULL;
	if (n < 0)
		return n;
	*wheels = must_alloc(NULL, (n + 1) * sizeof(**wheels));
	for (i = 0; i < n; i++) {
		struct wheel *wheel = &(*wheels)[count];

		memset(wheel, 0, sizeof(*wheel));
		snprintf(wheel->name, sizeof(wheel->name), "%s", found[i]->d_name);
		wheel->taken_ns = clock_ns(CLOCK_MONOTONIC);
		count += wheel_read(wheel, "stats", note_stats) &&
			 wheel_read(wheel, "shards", note_shard) &&
			 wheel_read(wheel, "lateness", note_lateness);
		free(found[i]);
	}
	free(found);
	return count;
}

void wheel_put_json(const struct wheel *wheel, const struct wheel *before)
{
	const char *comma = "";
	unsigned int i;

	printf("{\"wheel\":");
	json_put_string(stdout, wheel->name);
	for (i = 0; i < WHEEL_COUNTERS; i++)
		printf(",\"%s\":%llu", watched[i].name, wheel->counters[i]);
	for (i = 0; before && i < WHEEL_COUNTERS; i++)
		if (watched[i].rate)
			printf(",\"%s_per_s\":%.1f", watched[i].name,
			       per_second(wheel->counters[i], before->counters[i],
					  wheel->taken_ns - before->taken_ns));
	printf(",\"slowest_ns\":%llu,\"lateness\":[", wheel->slowest_ns);
	for (i = 0; i < LATENESS_MAX; i++) {
		if (!wheel->lateness[i])
			continue;
		printf("%s{\"below_ns\":%llu,\"callbacks\":%llu}", comma, 1ULL << i,
		       wheel->lateness[i]);
		comma = ",";
	}
	printf("]}\n");
}
