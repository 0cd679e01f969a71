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
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PARAMETERS	"/sys/module/hwt/parameters"
#define CONTEXTS	"/sys/kernel/debug/hwt/contexts"
#define UNLISTED	"/sys/kernel/debug/hwt/unlisted_contexts"

/* A kernel thread: a bit of the flags in /proc/PID/stat, from linux/sched.h */
#define PF_KTHREAD	0x00200000

#define WATCH_MIN_NS	(10 * NSEC_PER_MSEC)

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
	COUNTER(stopped, true),
	COUNTER(expired, true),
	COUNTER(overruns, true),
	COUNTER(read, true),
	COUNTER(rejected, true),
#undef COUNTER
};

struct context {
	pid_t			pid;
	int			fd;		/* -1: no descriptor was found */
	char			name[16];
	struct context_fdinfo	info;		/* not @hwt: only a mapping is known */
	bool			known;		/* @stats are valid */
	struct hwt_stats_args	stats;
	__u64			taken_ns;	/* time at which @stats were taken */
};

/* A kernel thread of the module */
struct thread {
	pid_t	pid;
	char	name[16];
	__u64	cpu_ns;
	__u64	taken_ns;
};

/* All contexts and threads, or all wheels, at one moment */
struct sample {
	struct context	*contexts;
	struct thread	*threads;
	struct wheel	*wheels;	/* with --wheels; then there is nothing else */
	unsigned int	contexts_count;
	unsigned int	threads_count;
	unsigned int	wheels_count;
	unsigned int	unlisted;	/* contexts without a directory or a descriptor */
};

struct view {
	struct target		target;
	bool			json;
	bool			wheels;
	dev_t			device;
	volatile sig_atomic_t	over;
};

/* Return the parameter that set the limit which was met last, or NULL. */
static const char *limit_name(const struct hwt_stats_args *stats)
{
	static const char *const names[] = {
		[HWT_LIMIT_TIMEOUTS] = "max_timeouts",
		[HWT_LIMIT_USER_TIMEOUTS] = "max_user_timeouts",
		[HWT_LIMIT_PENDING] = "max_pending",
		[HWT_LIMIT_USER_WHEELS] = "max_user_wheels",
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
	context->taken_ns = clock_ns(CLOCK_MONOTONIC);
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

/* Add a context of debugfs, unless it was found by its descriptor. */
static void shown_add(struct sample *sample, const char *number)
{
	struct context context = { .fd = -1, .known = true }, *other;
	char path[sizeof(CONTEXTS) + NAME_MAX + 8], line[128], key[32];
	long long value;
	unsigned int i;
	FILE *file;

	context.info.number = strtoull(number, NULL, 10);
	for (i = 0; i < sample->contexts_count; i++)
		if (sample->contexts[i].info.number == context.info.number)
			return;
	snprintf(path, sizeof(path), CONTEXTS "/%s/stats", number);
	file = fopen(path, "r");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "command ", 8))
			name_unescape(context.name, context.name + sizeof(context.name) - 1,
				      line + 8);
		if (sscanf(line, "%31s %lld", key, &value) != 2)
			continue;
		if (!strcmp(key, "pid"))
			context.pid = value;
		fdinfo_note(&context.info, key, value);
		for (i = 0; i < ARRAY_SIZE(counters); i++)
			if (!strcmp(key, counters[i].name))
				*(__u64 *)((char *)&context.stats + counters[i].at) = value;
		if (!strcmp(key, "limit"))
			context.stats.limit = value;
	}
	fclose(file);
	/* Complete the context of a mapping, if the process that opened it still has one. */
	for (i = 0; i < sample->contexts_count; i++) {
		other = &sample->contexts[i];
		if (other->pid == context.pid && !other->info.hwt) {
			other->info = context.info;
			other->stats = context.stats;
			other->known = true;
			return;
		}
	}
	context_add(sample, &context);
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
	thread.taken_ns = clock_ns(CLOCK_MONOTONIC);
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

/*
 * Count the contexts without a directory in debugfs and without a descriptor. Their mappings, if
 * any, are rows without figures.
 */
static unsigned int unlisted_count(const struct sample *sample)
{
	char path[sizeof(CONTEXTS) + 24];
	FILE *file = fopen(UNLISTED, "r");
	unsigned int count = 0, i;

	if (!file)
		return 0;
	if (fscanf(file, "%u", &count) != 1)
		count = 0;
	fclose(file);
	for (i = 0; i < sample->contexts_count && count; i++) {
		snprintf(path, sizeof(path), CONTEXTS "/%llu", sample->contexts[i].info.number);
		if (sample->contexts[i].info.hwt && access(path, F_OK))
			count -= context_first(sample, 0, i);
	}
	return count;
}

static void sample_take(struct view *view, struct sample *sample)
{
	struct dirent **shown;
	int shown_count, i;
	bool all = true;

	memset(sample, 0, sizeof(*sample));
	if (view->wheels) {
		sample->wheels_count = wheels_take(&sample->wheels);
		return;
	}
	/* Before /proc, so that a context opened meanwhile does not seem to lack a descriptor. */
	shown_count = scandir(CONTEXTS, &shown, is_pid, versionsort);
	if (view->target.pid)
		all = target_look(view, sample) && shown_count > 0;
	/* A context of debugfs may have its descriptor in any process. */
	if (all)
		processes_look(view, sample);
	for (i = 0; i < shown_count; i++) {
		if (all)
			shown_add(sample, shown[i]->d_name);
		free(shown[i]);
	}
	if (shown_count >= 0)
		free(shown);
	if (view->target.pid)
		target_keep(view, sample);
	else
		sample->unlisted = unlisted_count(sample);
}

static void sample_free(struct sample *sample)
{
	free(sample->contexts);
	free(sample->threads);
	free(sample->wheels);
}

/* Return the same context in the previous sample, or NULL. */
static const struct context *context_before(const struct sample *old,
					    const struct context *context)
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

static const struct thread *thread_before(const struct sample *old,
					  const struct thread *thread)
{
	unsigned int i;

	for (i = 0; old && i < old->threads_count; i++)
		if (old->threads[i].pid == thread->pid)
			return &old->threads[i];
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

bool parameter_read(const char *name, char *value, int room)
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

/* Print the threads in @room lines. Return the number of lines printed. */
static unsigned int put_threads(const struct sample *sample, const struct sample *old,
				unsigned int room)
{
	unsigned int i;

	put_heading("    PID  THREAD              CPU TIME%s", old ? "   CPU %" : "");
	printf("\n");
	for (i = 0; i < sample->threads_count; i++) {
		const struct thread *thread = &sample->threads[i];
		const struct thread *before = thread_before(old, thread);
		char name[4 * sizeof(thread->name)];

		if (i + 1 == room && sample->threads_count > room) {
			printf("         ... and %u more\n", sample->threads_count - i++);
			break;
		}
		printf("%7d  %-16s %9.2f s", (int)thread->pid,
		       name_escape(name, sizeof(name), thread->name),
		       (double)thread->cpu_ns / NSEC_PER_SEC);
		if (before)
			printf(" %7.1f", 100 * per_second(thread->cpu_ns, before->cpu_ns,
							  thread->taken_ns -
							  before->taken_ns) /
							  NSEC_PER_SEC);
		printf("\n");
	}
	if (!sample->threads_count)
		printf("      -  no wheel has been created yet\n");
	printf("\n");
	return 2 + (i ?: 1);
}

static void put_row(const struct context *context, const struct context *before)
{
	/* Scheduled, modified, cancelled, expired, read: as in the heading of put_contexts(). */
	static const unsigned int shown[] = { 3, 4, 5, 7, 9 };
	char fd[12] = "-", name[13];
	unsigned int i;
	__u64 value;

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
		value = counter(&context->stats, shown[i]);
		if (!context->known)
			printf("       ?");
		else if (before)
			put_short(per_second(value, counter(&before->stats, shown[i]),
					     context->taken_ns - before->taken_ns));
		else
			put_short(value);
	}
	printf("\n");
}

static void put_contexts(const struct sample *sample, const struct sample *old,
			 unsigned int room)
{
	unsigned int i;

	put_heading("    PID   FD COMMAND      CLK     NOW  EVENTS%s",
		    old ? " SCHED/s MODIF/s CANCL/s EXPIR/s  READ/s" :
			  "   SCHED   MODIF   CANCL   EXPIR    READ");
	printf("\n");
	for (i = 0; i < sample->contexts_count; i++) {
		const struct context *context = &sample->contexts[i];

		if (i + 1 == room && sample->contexts_count > room) {
			printf("        ... and %u more\n", sample->contexts_count - i);
			break;
		}
		put_row(context, context_before(old, context));
	}
	if (!sample->contexts_count)
		printf("      -    - no process has %s open\n", device_path);
	if (sample->unlisted)
		printf("        not in debugfs, beyond 1,000 of a user: %u without a descriptor\n",
		       sample->unlisted);
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

static void put_context_json(const struct context *context, const struct context *before)
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
	printf(",\"clock\":\"%s\",\"tick_ns\":%llu,\"private\":%s",
	       clock_name(context->info.clock), context->info.tick_ns,
	       context->info.private ? "true" : "false");
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

static void put_json(const struct view *view, const struct sample *sample,
		     const struct sample *old)
{
	unsigned int i;

	for (i = 0; i < sample->threads_count && !view->target.pid; i++) {
		printf("{\"thread\":");
		json_put_string(stdout, sample->threads[i].name);
		printf(",\"pid\":%d,\"cpu_ns\":%llu}\n", (int)sample->threads[i].pid,
		       sample->threads[i].cpu_ns);
	}
	for (i = 0; i < sample->contexts_count; i++)
		put_context_json(&sample->contexts[i],
				 context_before(old, &sample->contexts[i]));
	if (sample->unlisted)
		printf("{\"unlisted\":%u}\n", sample->unlisted);
}

/* Print a sample. @old: the previous one, or NULL; @rows: rows of the screen, or 0 */
static void put_sample(const struct view *view, const struct sample *sample,
		       const struct sample *old, unsigned int rows)
{
	unsigned int used = 2;		/* rows of a heading and of the cursor */

	if (!view->target.pid && !old)
		put_parameters(view->json);
	if (view->json) {
		put_json(view, sample, old);
		return;
	}
	used += !!sample->unlisted;
	if (!view->target.pid) {
		/* Leave room for contexts, even if there are many threads. */
		used += put_threads(sample, old, rows ? rows / 3 + 1 : UINT_MAX);
	}
	put_contexts(sample, old, rows > used ? rows - used : rows ? 1 : UINT_MAX);
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
		put_contexts(&sample, NULL, UINT_MAX);
	sample_free(&sample);
}

/* -- Repetition ---------------------------------------------------------- */

static struct view view = { .target.fd = -1 };

static void on_signal(int signal)
{
	view.over = signal;
}

static void watch_wait(__u64 ns, const sigset_t *mask)
{
	struct timespec timeout = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};

	ppoll(NULL, 0, &timeout, mask);
}

/* Compare two contexts: the one with more timeouts comes first. */
static int by_timeouts(const void *a, const void *b)
{
	const struct context *x = a, *y = b;

	if (x->info.timeouts != y->info.timeouts)
		return x->info.timeouts < y->info.timeouts ? 1 : -1;
	return x->pid != y->pid ? x->pid - y->pid : x->fd - y->fd;
}

/* Return the number of rows of the terminal; 0 if the output is not one. */
static unsigned int screen_rows(void)
{
	struct winsize size = { };

	if (view.json || !isatty(STDOUT_FILENO))
		return 0;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	return size.ws_row ?: 24;
}

/* Print a sample after each interval. The first one is not printed, since rates need two. */
static void watch(__u64 interval_ns, __u64 count)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct sample old, sample;
	sigset_t blocked, mask;
	unsigned int rows;
	__u64 i;

	/* Signals are handled only in watch_wait(). */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);

	sample_take(&view, &old);
	for (i = 0; !count || i < count; i++) {
		watch_wait(interval_ns, &mask);
		if (view.over)
			break;
		sample_take(&view, &sample);
		rows = screen_rows();
		if (rows) {
			if (sample.contexts)
				qsort(sample.contexts, sample.contexts_count,
				      sizeof(*sample.contexts), by_timeouts);
			printf("\033[H\033[J");
		} else if (i && !view.json) {
			printf("\n");
		}
		/* Of the rows, two are those of the heading and of the cursor. */
		if (view.wheels)
			wheels_put(sample.wheels, sample.wheels_count, old.wheels,
				   old.wheels_count, view.json,
				   rows > 2 ? rows - 2 : rows ? 1 : UINT_MAX);
		else
			put_sample(&view, &sample, &old, rows);
		if (fflush(stdout))
			break;
		sample_free(&old);
		old = sample;
	}
	sample_free(&old);
}

int cmd_stats(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "watch", optional_argument, NULL, 'w' },
		{ "count", required_argument, NULL, 'n' },
		{ "wheels", no_argument, NULL, 'W' },
		{ "help", no_argument, NULL, 'h' },
		OPTION_PID, OPTION_FD, { }
	};
	__u64 interval_ns = NSEC_PER_SEC, count = 0;
	bool again = false;
	struct sample sample;
	const char *operand, *wrong;
	int option;

	while ((option = next_option(argc, argv, "jw::n:p:f:h", options)) != -1) {
		switch (option) {
		case 'j':
			view.json = true;
			break;
		case 'w':
			again = true;
			if (optarg)
				interval_ns = option_duration("watch", WATCH_MIN_NS,
							      HWT_NEVER - 1);
			break;
		case 'n':
			count = option_number("count", 1, ~0ULL);
			break;
		case 'W':
			view.wheels = true;
			break;
		default:
			target_option(option, &view.target);
		}
	}
	operand = last_operand(argc, argv);
	if (operand && !again)
		usage_error("operand '%s' requires --watch", operand);
	if (count && !again)
		usage_error("--count requires --watch");
	wrong = operand ? duration_wrong(operand, WATCH_MIN_NS, HWT_NEVER - 1, &interval_ns) : NULL;
	if (wrong)
		usage_error("--watch: %s", wrong);
	if (target_given(&view.target) && view.wheels)
		usage_error("--wheels excludes --pid");
	if (view.wheels && !again) {
		wheels_print(view.json);
		return DONE;
	}
	if (!view.wheels)
		view.device = device_number();
	if (again) {
		watch(interval_ns, count);
		return DONE;
	}
	if (view.target.pid && !view.json) {
		put_target(&view);
		return DONE;
	}
	sample_take(&view, &sample);
	put_sample(&view, &sample, NULL, 0);
	sample_free(&sample);
	return DONE;
}
