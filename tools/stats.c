// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl stats: the module's parameters and threads, and the statistics of contexts
 *
 * The contexts shown are those of processes that the caller may inspect. /proc/PID/fd has their
 * descriptors, and fdinfo the numbers of their timeouts. For the other statistics a copy of the
 * descriptor is needed, which the caller may or may not get. Root finds contexts without a
 * descriptor in debugfs; other users find only their mappings, in /proc/PID/maps.
 */
#include "hwtctl.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PARAMETERS	"/sys/module/hwt/parameters"
#define CONTEXTS	"/sys/kernel/debug/hwt/contexts"

/* A kernel thread: a bit of the flags in /proc/PID/stat, from linux/sched.h */
#define PF_KTHREAD	0x00200000

static const struct {
	const char *name;
	size_t at;
	bool rate;		/* a sum that grows: its rate is shown */
} counters[] = {
#define COUNTER(name, rate) { #name, offsetof(struct hwt_stats_args, name), rate }
	COUNTER(timeouts, false),
	COUNTER(pending, false),
	COUNTER(events, false),
	COUNTER(scheduled, true),
	COUNTER(modified, true),
	COUNTER(cancelled, true),
	COUNTER(expired, true),
	COUNTER(overruns, true),
	COUNTER(read, true),
	COUNTER(rejected, true),
#undef COUNTER
};

/* Return the parameter that set the limit which was met last, or NULL. */
static const char *limit_name(const struct hwt_stats_args *stats)
{
	static const char *const names[] = {
		[HWT_LIMIT_TIMEOUTS] = "max_timeouts",
		[HWT_LIMIT_USER_TIMEOUTS] = "max_user_timeouts",
		[HWT_LIMIT_PENDING] = "max_pending",
	};

	if (!stats->limit)
		return NULL;
	return stats->limit < ARRAY_SIZE(names) ? names[stats->limit] : "unknown";
}

static __u64 counter(const struct hwt_stats_args *stats, unsigned int i)
{
	return *(const __u64 *)((const char *)stats + counters[i].at);
}

/* -- Collecting ---------------------------------------------------------- */

/* Read /proc/PID/stat. @flags: PF_ of the kernel. Return false if there is no such process. */
static bool process_read(pid_t pid, char *name, size_t room, unsigned int *flags, __u64 *cpu_ns)
{
	unsigned long long user, system;
	char line[512], *begin, *end;
	long hertz = sysconf(_SC_CLK_TCK);
	FILE *file;

	snprintf(line, sizeof(line), "/proc/%d/stat", (int)pid);
	file = fopen(line, "r");
	if (!file)
		return false;
	/* Read it as a whole: the name of the process may contain newlines and parentheses. */
	line[fread(line, 1, sizeof(line) - 1, file)] = 0;
	fclose(file);
	begin = strchr(line, '(');
	end = strrchr(line, ')');
	if (!begin || !end)
		return false;
	*end = 0;
	snprintf(name, room, "%s", begin + 1);
	if (sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu", flags,
		   &user, &system) != 3)
		return false;
	*cpu_ns = (user + system) * NSEC_PER_SEC / hertz;
	return true;
}

static void context_add(struct sample *sample, struct context *context)
{
	context->taken_ns = context->taken_ns ?: clock_ns(CLOCK_MONOTONIC);
	sample->contexts = must_alloc(sample->contexts, (sample->contexts_count + 1) *
				      sizeof(*context));
	sample->contexts[sample->contexts_count++] = *context;
}

static void descriptor_add(struct sample *sample, pid_t pid, int fd, const char *name)
{
	struct context context = { .pid = pid, .fd = fd };
	int copy, ret;

	if (!fdinfo_read(pid, fd, &context.info))
		return;
	snprintf(context.name, sizeof(context.name), "%s", name);
	copy = descriptor_get(pid, fd);
	if (copy >= 0) {
		context.stats.size = sizeof(context.stats);
		ret = hwt_call(copy, HWT_IOC_STATS, &context.stats);
		context.known = !ret;
		/* Close it soon, since the context lives for as long as the copy is open. */
		close(copy);
	}
	context_add(sample, &context);
}

/* Return the number of mappings of the device, each of which keeps a context. */
static int mappings_count(pid_t pid)
{
	unsigned long long offset, inode;
	unsigned int major, minor;
	char path[32], *line = NULL;
	struct stat st;
	size_t size = 0;
	int count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	file = stat(device_path, &st) ? NULL : fopen(path, "r");
	if (!file)
		return 0;
	/* A mapping begins at offset 0. Its further parts, after an madvise(), do not. */
	while (getline(&line, &size, file) > 0)
		if (sscanf(line, "%*s %*s %llx %x:%x %llu", &offset, &major, &minor, &inode) == 4 &&
		    !offset && makedev(major, minor) == st.st_dev && inode == st.st_ino)
			count++;
	free(line);
	fclose(file);
	return count;
}

/* Return true if no row from @begin on, before row @i, has the same context. */
static bool context_first(const struct sample *sample, unsigned int begin, unsigned int i)
{
	__u64 number = sample->contexts[i].info.number;

	for (; begin < i; begin++)
		if (sample->contexts[begin].info.number == number)
			return false;
	return true;
}

/*
 * Add the contexts of a process: those of its descriptors, and the mappings beyond those that these
 * may have. Return the number of descriptors or a negative errno.
 */
static int process_add(struct view *view, struct sample *sample, pid_t pid, const char *name)
{
	unsigned int begin = sample->contexts_count, end, at;
	int *fds, count, mappings, i;

	count = descriptors_find(pid, view->device, &fds);
	for (i = 0; i < count; i++)
		descriptor_add(sample, pid, fds[i], name);
	free(fds);
	mappings = mappings_count(pid);
	end = sample->contexts_count;
	for (at = begin; at < end; at++)
		mappings -= sample->contexts[at].info.rings && context_first(sample, begin, at);
	for (; mappings > 0; mappings--) {
		struct context context = { .pid = pid, .fd = -1 };

		snprintf(context.name, sizeof(context.name), "%s", name);
		context_add(sample, &context);
	}
	return count;
}

/* Copy a name, in which the kernel has escaped newlines and backslashes as octal numbers. */
static void name_unescape(char *to, const char *end, const char *from)
{
	unsigned int c;

	while (*from && to < end) {
		if (*from == '\\' && sscanf(from, "\\%3o", &c) == 1) {
			*to++ = c;
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = 0;
}

/* Read the next context in the file of debugfs. Return false at its end. */
static bool shown_read(FILE *file, struct context *context)
{
	char line[128], key[32];
	bool any = false;
	long long value;
	unsigned int i;

	*context = (struct context) { .fd = -1, .known = true };
	/* An empty line ends a context. */
	while (fgets(line, sizeof(line), file) && *line != '\n') {
		any = true;
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "command ", 8))
			name_unescape(context->name, context->name + sizeof(context->name) - 1,
				      line + 8);
		if (sscanf(line, "%31s %lld", key, &value) != 2)
			continue;
		if (!strcmp(key, "pid"))
			context->pid = value;
		fdinfo_note(&context->info, key, value);
		for (i = 0; i < ARRAY_SIZE(counters); i++)
			if (!strcmp(key, counters[i].name))
				*(__u64 *)((char *)&context->stats + counters[i].at) = value;
		if (!strcmp(key, "limit"))
			context->stats.limit = value;
	}
	return any;
}

/* Store the contexts of debugfs. Only root can read it. */
static void shown_take(struct sample *shown)
{
	FILE *file = fopen(CONTEXTS, "r");
	struct context context;

	memset(shown, 0, sizeof(*shown));
	if (!file)
		return;
	while (shown_read(file, &context))
		context_add(shown, &context);
	fclose(file);
}

static const struct context *context_find(const struct sample *sample, __u64 number)
{
	unsigned int i;

	for (i = 0; i < sample->contexts_count; i++)
		if (sample->contexts[i].info.number == number)
			return &sample->contexts[i];
	return NULL;
}

/* Add a context of debugfs, unless it was found by its descriptor. */
static void shown_add(struct sample *sample, struct context *context)
{
	struct context *other;
	unsigned int i;

	if (context_find(sample, context->info.number))
		return;
	/* Complete the context of a mapping, if the process that opened it still has one. */
	for (i = 0; i < sample->contexts_count; i++) {
		other = &sample->contexts[i];
		if (other->pid == context->pid && !other->info.hwt) {
			other->info = context->info;
			other->stats = context->stats;
			other->known = true;
			return;
		}
	}
	context_add(sample, context);
}

/*
 * Add the contexts without a descriptor, which only debugfs has. @before: its contexts before the
 * descriptors were looked up. A context that was opened or closed meanwhile may have had one.
 */
static void shown_add_all(struct sample *sample, const struct sample *before)
{
	struct sample now;
	unsigned int i;

	shown_take(&now);
	for (i = 0; i < now.contexts_count; i++)
		if (context_find(before, now.contexts[i].info.number))
			shown_add(sample, &now.contexts[i]);
	free(now.contexts);
}

static void process_look(struct view *view, struct sample *sample, pid_t pid)
{
	struct thread thread = { .pid = pid };
	unsigned int flags;

	if (!process_read(pid, thread.name, sizeof(thread.name), &flags, &thread.cpu_ns))
		return;
	if (!(flags & PF_KTHREAD)) {
		process_add(view, sample, pid, thread.name);
		return;
	}
	if (strncmp(thread.name, "hwt", 3))
		return;
	sample->threads = must_alloc(sample->threads, (sample->threads_count + 1) *
				     sizeof(thread));
	sample->threads[sample->threads_count++] = thread;
}

/* Add the contexts of the process of --pid. Return true if debugfs may know more about them. */
static bool target_look(struct view *view, struct sample *sample)
{
	pid_t pid = view->target.pid;
	unsigned int flags, i;
	char name[16];
	__u64 cpu;
	int count;

	if (!process_read(pid, name, sizeof(name), &flags, &cpu))
		fail(ESRCH, "process %d", (int)pid);
	count = process_add(view, sample, pid, name);
	if (count < 0)
		process_fail(count, pid, "");
	for (i = 0; i < sample->contexts_count; i++)
		if (!sample->contexts[i].info.hwt)
			return true;
	return !count;
}

/* Keep only the contexts that --pid and --fd choose. */
static void target_keep(struct view *view, struct sample *sample)
{
	const struct target *target = &view->target;
	unsigned int i, kept = 0;

	for (i = 0; i < sample->contexts_count; i++)
		if (sample->contexts[i].pid == target->pid &&
		    (target->fd < 0 || sample->contexts[i].fd == target->fd))
			sample->contexts[kept++] = sample->contexts[i];
	sample->contexts_count = kept;
	if (kept)
		return;
	if (target->fd < 0)
		fail(0, "process %d does not have %s open", (int)target->pid, device_path);
	fail(0, "descriptor %d of process %d is not %s", target->fd, (int)target->pid,
	     device_path);
}

static int by_pid(const struct dirent **a, const struct dirent **b)
{
	return strtol((*a)->d_name, NULL, 10) - strtol((*b)->d_name, NULL, 10);
}

static int is_pid(const struct dirent *entry)
{
	return isdigit((unsigned char)entry->d_name[0]);
}

/* Look at all processes, except the one of --pid, which target_look() has added. */
static void processes_look(struct view *view, struct sample *sample)
{
	struct dirent **entries;
	int count, i;
	pid_t pid;

	count = scandir("/proc", &entries, is_pid, by_pid);
	if (count < 0)
		fail(errno, "/proc");
	for (i = 0; i < count; i++) {
		pid = strtol(entries[i]->d_name, NULL, 10);
		if (pid != view->target.pid)
			process_look(view, sample, pid);
		free(entries[i]);
	}
	free(entries);
}

void sample_take(struct view *view, struct sample *sample)
{
	struct sample shown;
	bool all = true;

	memset(sample, 0, sizeof(*sample));
	shown_take(&shown);
	if (view->target.pid)
		all = target_look(view, sample) && shown.contexts_count;
	/* A context of debugfs may have its descriptor in any process. */
	if (all) {
		processes_look(view, sample);
		shown_add_all(sample, &shown);
	}
	free(shown.contexts);
	if (view->target.pid)
		target_keep(view, sample);
}

void sample_free(struct sample *sample)
{
	free(sample->contexts);
	free(sample->threads);
}

const struct context *context_before(const struct sample *old, const struct context *context)
{
	unsigned int i;

	for (i = 0; old && i < old->contexts_count; i++) {
		const struct context *other = &old->contexts[i];

		if (other->pid == context->pid && other->fd == context->fd &&
		    other->info.number == context->info.number && other->known && context->known &&
		    other->stats.scheduled <= context->stats.scheduled)
			return other;
	}
	return NULL;
}

/* -- Output -------------------------------------------------------------- */

double per_second(__u64 now, __u64 before, __u64 ns)
{
	/* It is that of another context with the same number, or has wrapped. */
	if (now < before || !ns)
		return 0;
	return (double)(now - before) * NSEC_PER_SEC / ns;
}

void put_short(double value)
{
	static const char units[] = " kMGT";
	int unit = 0;

	/* A counter that grows at all is not shown as 0. */
	if (value > 0 && value < 0.95) {
		printf(" %7.2f", value);
		return;
	}
	if (value < 99999.5) {
		printf(" %7.0f", value);
		return;
	}
	while (value >= 999.5 && units[unit + 1]) {
		value /= 1000;
		unit++;
	}
	printf(" %6.*f%c", value < 99.95 ? 1 : 0, value, units[unit]);
}

static bool parameter_read(const char *name, char *value, int room)
{
	char path[300];
	FILE *file;
	bool read;

	snprintf(path, sizeof(path), PARAMETERS "/%s", name);
	file = fopen(path, "r");
	if (!file)
		return false;
	read = fgets(value, room, file);
	fclose(file);
	if (read)
		value[strcspn(value, "\n")] = 0;
	return read;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void put_parameters(bool json)
{
	struct dirent **entries;
	char value[64];
	int count, i, width = 0;

	count = scandir(PARAMETERS, &entries, is_shown, alphasort);
	if (count < 0) {
		complain(errno, PARAMETERS);
		return;
	}
	if (json)
		printf("{\"parameters\":{");
	else
		put_heading("Parameters:");
	for (i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		if (!parameter_read(name, value, sizeof(value)))
			snprintf(value, sizeof(value), "?");
		if (json) {
			printf("%s\"%s\":", i ? "," : "", name);
			json_put_string(stdout, value);
		} else {
			if (width + strlen(name) + strlen(value) + 2 > 66) {
				printf("\n           ");
				width = 0;
			}
			width += printf(" %s=%s", name, value);
		}
		free(entries[i]);
	}
	free(entries);
	printf(json ? "}}\n" : "\n\n");
}

static void put_threads(const struct sample *sample)
{
	unsigned int i;

	put_heading("    PID  THREAD              CPU TIME");
	printf("\n");
	for (i = 0; i < sample->threads_count; i++) {
		const struct thread *thread = &sample->threads[i];
		char name[4 * sizeof(thread->name)];

		printf("%7d  %-16s %9.2f s\n", (int)thread->pid,
		       name_escape(name, sizeof(name), thread->name),
		       (double)thread->cpu_ns / NSEC_PER_SEC);
	}
	if (!sample->threads_count)
		printf("      -  no thread of hwt is visible here\n");
	printf("\n");
}

static void put_row(const struct context *context)
{
	/* Scheduled, modified, cancelled, expired, read: as in the heading of put_contexts(). */
	static const unsigned int shown[] = { 3, 4, 5, 6, 8 };
	char fd[12] = "-", name[13];
	unsigned int i;

	if (context->fd >= 0)
		snprintf(fd, sizeof(fd), "%d", context->fd);
	name_escape(name, sizeof(name), context->name);
	printf("%7d %4s %-12s %-4.4s", (int)context->pid, fd, name,
	       context->info.hwt ? clock_name(context->info.clock) : "?");
	if (context->info.hwt) {
		put_short(context->info.timeouts);
		put_short(context->info.events);
	} else {
		printf("       ?       ?");
	}
	for (i = 0; i < ARRAY_SIZE(shown); i++) {
		if (context->known)
			put_short(counter(&context->stats, shown[i]));
		else
			printf("       ?");
	}
	printf("\n");
}

static void put_contexts(const struct sample *sample)
{
	unsigned int i;

	put_heading("    PID   FD COMMAND      CLK     NOW  EVENTS%s",
		    "   SCHED   MODIF   CANCL   EXPIR    READ");
	printf("\n");
	for (i = 0; i < sample->contexts_count; i++)
		put_row(&sample->contexts[i]);
	if (!sample->contexts_count)
		printf("      -    - no process has %s open\n", device_path);
}

static void put_counters(const struct hwt_stats_args *stats, bool json, bool first)
{
	const char *limit = limit_name(stats);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		if (json)
			printf("%s\"%s\":%llu", first && !i ? "" : ",", counters[i].name,
			       counter(stats, i));
		else
			printf("%-10s  %llu\n", counters[i].name, counter(stats, i));
	}
	if (!json)
		printf("limit       %s\n", limit ?: "-");
	else if (limit)
		printf(",\"limit\":\"%s\"", limit);
	else
		printf(",\"limit\":null");
}

void context_put_json(const struct context *context, const struct context *before)
{
	unsigned int i;

	printf("{\"pid\":%d,\"fd\":", (int)context->pid);
	if (context->fd < 0)
		printf("null,\"command\":");
	else
		printf("%d,\"command\":", context->fd);
	json_put_string(stdout, context->name);
	if (!context->info.hwt) {
		printf("}\n");
		return;
	}
	printf(",\"clock\":\"%s\",\"tick_ns\":%llu,\"thread\":%s",
	       clock_name(context->info.clock), context->info.tick_ns,
	       context->info.thread ? "true" : "false");
	if (context->known)
		put_counters(&context->stats, true, false);
	else
		printf(",\"timeouts\":%llu,\"events\":%llu", context->info.timeouts,
		       context->info.events);
	for (i = 0; before && i < ARRAY_SIZE(counters); i++)
		if (counters[i].rate)
			printf(",\"%s_per_s\":%.1f", counters[i].name,
			       per_second(counter(&context->stats, i),
					  counter(&before->stats, i),
					  context->taken_ns - before->taken_ns));
	printf("}\n");
}

void thread_put_json(const struct thread *thread)
{
	printf("{\"kernel_thread\":");
	json_put_string(stdout, thread->name);
	printf(",\"pid\":%d,\"cpu_ns\":%llu}\n", (int)thread->pid, thread->cpu_ns);
}

static void put_sample(const struct view *view, const struct sample *sample)
{
	unsigned int i;

	if (!view->target.pid)
		put_parameters(view->json);
	if (!view->json) {
		if (!view->target.pid)
			put_threads(sample);
		put_contexts(sample);
		return;
	}
	for (i = 0; i < sample->threads_count && !view->target.pid; i++)
		thread_put_json(&sample->threads[i]);
	for (i = 0; i < sample->contexts_count; i++)
		context_put_json(&sample->contexts[i], NULL);
}

void stats_print_one(int fd, bool json)
{
	struct hwt_stats_args stats;

	context_stats(fd, &stats);
	if (json)
		printf("{\"stats\":{");
	put_counters(&stats, json, true);
	if (json)
		printf("}}\n");
}

/* Print all counters of one context of another process, each on a line. */
static void put_target(struct view *view)
{
	struct sample sample;
	int *fds, fd, count = descriptors_find(view->target.pid, view->device, &fds);

	free(fds);
	if (count || view->target.fd >= 0) {
		fd = target_open(&view->target);
		stats_print_one(fd, false);
		close(fd);
		return;
	}
	/* Contexts without a descriptor: the table, if there are several, or no figures. */
	sample_take(view, &sample);
	if (sample.contexts_count == 1 && sample.contexts[0].known)
		put_counters(&sample.contexts[0].stats, false, true);
	else
		put_contexts(&sample);
	sample_free(&sample);
}

int cmd_stats(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "wheels", no_argument, NULL, 'W' },
		{ "help", no_argument, NULL, 'h' },
		OPTION_PID, OPTION_FD, { }
	};
	struct view view = { .target.fd = -1 };
	struct sample sample;
	bool wheels = false;
	int option;

	while ((option = next_option(argc, argv, "jp:f:h", options)) != -1) {
		if (option == 'j')
			view.json = true;
		else if (option == 'W')
			wheels = true;
		else
			target_option(option, &view.target);
	}
	no_operand(argc, argv);
	if (target_given(&view.target) && wheels)
		usage_error("--wheels excludes --pid");
	if (wheels) {
		wheels_print(view.json);
		return DONE;
	}
	view.device = device_number();
	if (view.target.pid && !view.json) {
		put_target(&view);
		return DONE;
	}
	sample_take(&view, &sample);
	put_sample(&view, &sample);
	sample_free(&sample);
	return DONE;
}
