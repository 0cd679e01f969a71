// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts: descriptors of /dev/hwt, this program's own and other processes'
 */
#include "hwtctl.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int hwt_call(int fd, unsigned long request, void *args)
{
	return ioctl(fd, request, args) < 0 ? -errno : 0;
}

/* -- Names --------------------------------------------------------------- */

static const char *const clocks[] = {
	[CLOCK_REALTIME] = "realtime",
	[CLOCK_MONOTONIC] = "monotonic",
	[CLOCK_BOOTTIME] = "boottime",
};

const char *clock_name(int clock)
{
	if (clock < 0 || clock >= (int)ARRAY_SIZE(clocks) || !clocks[clock])
		return "unknown";
	return clocks[clock];
}

bool clock_parse(const char *name, int *clock)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		if (clocks[i] && !strcmp(clocks[i], name)) {
			*clock = i;
			return true;
		}
	}
	return false;
}

const char *mode_name(unsigned int mode)
{
	static const char *const names[] = {
		[HWT_MODE_ONE_SHOT] = "one-shot",
		[HWT_MODE_FIXED_RATE] = "fixed-rate",
		[HWT_MODE_FIXED_DELAY] = "fixed-delay",
	};

	return mode < ARRAY_SIZE(names) ? names[mode] : "unknown";
}

/* -- Options ------------------------------------------------------------- */

bool target_option(int option, struct target *target)
{
	switch (option) {
	case 'p':
		target->pid = option_number("pid", 1, INT_MAX);
		return true;
	case 'f':
		target->fd = option_number("fd", 0, INT_MAX);
		return true;
	}
	return false;
}

bool target_given(const struct target *target)
{
	if (target->fd >= 0 && !target->pid)
		usage_error("--fd requires --pid");
	return target->pid;
}

void setup_clock(struct setup *setup, int clock)
{
	setup->args.flags &= ~(HWT_SETUP_REALTIME | HWT_SETUP_BOOTTIME);
	setup->args.flags |= clock == CLOCK_REALTIME ? HWT_SETUP_REALTIME :
			     clock == CLOCK_BOOTTIME ? HWT_SETUP_BOOTTIME : 0;
}

bool setup_option(int option, struct setup *setup)
{
	int clock;

	switch (option) {
	case 'C':
		if (!clock_parse(optarg, &clock))
			usage_error("--clock: '%s' is not monotonic, boottime or realtime",
				    optarg);
		setup_clock(setup, clock);
		break;
	case 'T':
		setup->args.tick_ns = option_duration("tick", 1, HWT_NEVER);
		break;
	case 'H':
		setup->args.flags |= HWT_SETUP_THREAD;
		break;
	default:
		return false;
	}
	setup->wanted = true;
	return true;
}

/* -- Contexts of this program -------------------------------------------- */

/* End the program, because the device cannot be opened; errno has the reason. */
static void __attribute__((noreturn)) device_fail(void)
{
	int error = errno;
	struct group *group;
	struct stat st;
	FILE *groups;

	if (error == EACCES && !stat(device_path, &st)) {
		if ((st.st_mode & 060) != 060)
			fail(0, "%s: Permission denied: only root may use it", device_path);
		/* getgrgid() would load libraries, which a static program should not. */
		groups = fopen("/etc/group", "re");
		while ((group = groups ? fgetgrent(groups) : NULL))
			if (group->gr_gid == st.st_gid)
				fail(0, "%s: Permission denied: only group %s may use it",
				     device_path, group->gr_name);
		fail(0, "%s: Permission denied: only group %u may use it", device_path,
		     st.st_gid);
	}
	/* Loading the module creates DEVICE, and no file of another name. */
	if (((error == ENOENT && !strcmp(device_path, DEVICE)) || error == ENODEV ||
	     error == ENXIO) && access("/sys/module/hwt", F_OK))
		fail(0, "%s: %s: the module is not loaded; run 'modprobe hwt'",
		     device_path, strerror(error));
	fail(error, "%s", device_path);
}

static void context_setup(int fd, const struct setup *setup)
{
	struct hwt_setup_args args = setup->args;
	char asked[TIME_TEXT], limit[TIME_TEXT];
	struct hwt_info_args info;
	__u64 longest;
	int ret;

	/* A new context has the default number of buckets; with a thread it has more. */
	context_info(fd, &info);
	longest = INT64_MAX / (args.ticks_per_wheel ?: info.ticks_per_wheel);
	duration_format(asked, args.tick_ns);
	args.size = sizeof(args);
	ret = hwt_call(fd, HWT_IOC_SETUP, &args);
	if (ret == -EINVAL && args.tick_ns > longest)
		fail(0, "%s: a tick of %s is too long: the longest is %s", device_path, asked,
		     duration_format(limit, longest));
	if (ret)
		fail(ret, "%s: setting up a context%s%s", device_path,
		     args.flags & HWT_SETUP_THREAD ? " with a thread" : "",
		     ret == -EINVAL ? " (see HWT_IOC_SETUP in hwt(4))" :
		     ret == -EPERM ? " (requires CAP_SYS_NICE)" : "");
	context_info(fd, &info);
	if (!args.tick_ns || args.tick_ns >= info.tick_ns)
		return;
	/* The kernel has raised the tick. */
	duration_format(limit, info.tick_ns);
	if (!setup->saved)
		fail(0, "%s: a tick of %s is too short: the shortest is %s (min_tick_us)",
		     device_path, asked, limit);
	complain(0, "%s: a tick of %s is too short: using %s (min_tick_us)", device_path, asked,
		 limit);
}

int context_open(int flags, const struct setup *setup)
{
	int fd = open(device_path, O_RDWR | O_CLOEXEC | flags);

	if (fd < 0)
		device_fail();
	if (setup && setup->wanted)
		context_setup(fd, setup);
	return fd;
}

void context_info(int fd, struct hwt_info_args *info)
{
	int ret;

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	ret = hwt_call(fd, HWT_IOC_INFO, info);
	if (ret == -ENOTTY)
		fail(0, "%s: this is not a device of hwt", device_path);
	if (ret)
		fail(ret, "%s: HWT_IOC_INFO", device_path);
}

void context_stats(int fd, struct hwt_stats_args *stats)
{
	int ret;

	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	ret = hwt_call(fd, HWT_IOC_STATS, stats);
	if (ret)
		fail(ret, "%s: reading the statistics", device_path);
}

/* Compare two timeouts: the earlier deadline comes first, "never" last. */
static int by_deadline(const void *a, const void *b)
{
	const struct hwt_list_entry *x = a, *y = b;

	if (x->deadline_ns != y->deadline_ns)
		return x->deadline_ns < y->deadline_ns ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

struct hwt_list_entry *context_list(int fd, size_t *count)
{
	struct hwt_list_entry *entries = NULL;
	struct hwt_list_args args = {
		.size = sizeof(args),
		.entry_size = sizeof(*entries),
	};
	size_t room = 0;
	int ret;

	*count = 0;
	do {
		if (*count == room) {
			room = room ? 2 * room : 1024;
			entries = must_alloc(entries, room * sizeof(*entries));
		}
		args.entries = (uintptr_t)&entries[*count];
		args.count = room - *count < UINT_MAX ? room - *count : UINT_MAX;
		ret = hwt_call(fd, HWT_IOC_LIST, &args);
		if (ret == -EINTR)
			continue;
		if (ret)
			fail(ret, "%s: listing the timeouts", device_path);
		*count += args.count;
	} while (ret || args.count);
	qsort(entries, *count, sizeof(*entries), by_deadline);
	return entries;
}

/* -- Contexts of other processes ----------------------------------------- */

dev_t device_number(void)
{
	struct stat st;

	if (stat(device_path, &st))
		device_fail();
	if (!S_ISCHR(st.st_mode))
		fail(0, "%s: this is not a device of hwt", device_path);
	return st.st_rdev;
}

int descriptor_get(pid_t pid, int fd)
{
	int copy, pidfd = syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0)
		return -errno;
	copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (copy < 0)
		copy = -errno;
	close(pidfd);
	return copy;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int descriptors_find(pid_t pid, dev_t device, int **fds)
{
	const struct dirent *entry;
	char path[32];
	struct stat st;
	int count = 0;
	DIR *dir;

	*fds = NULL;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &st, 0) ||
		    !S_ISCHR(st.st_mode) || st.st_rdev != device)
			continue;
		*fds = must_alloc(*fds, (count + 1) * sizeof(**fds));
		(*fds)[count++] = strtol(entry->d_name, NULL, 10);
	}
	closedir(dir);
	if (count)
		qsort(*fds, count, sizeof(**fds), by_number);
	return count;
}

void fdinfo_note(struct context_fdinfo *info, const char *key, long long value)
{
	if (!strcmp(key, "clockid")) {
		info->clock = value;
		info->hwt = true;
	} else if (!strcmp(key, "tick-ns") || !strcmp(key, "tick_ns")) {
		info->tick_ns = value;
	} else if (!strcmp(key, "thread")) {
		info->thread = value;
	} else if (!strcmp(key, "timeouts")) {
		info->timeouts = value;
	} else if (!strcmp(key, "events")) {
		info->events = value;
	} else if (!strcmp(key, "rings")) {
		info->rings = value;
	} else if (!strcmp(key, "context")) {
		info->number = value;
	}
}

bool fdinfo_read(pid_t pid, int fd, struct context_fdinfo *info)
{
	char line[128], key[32];
	long long value;
	FILE *file;

	memset(info, 0, sizeof(*info));
	snprintf(line, sizeof(line), "/proc/%d/fdinfo/%d", (int)pid, fd);
	file = fopen(line, "r");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "hwt-%31[^:]: %lld", key, &value) == 2)
			fdinfo_note(info, key, value);
	fclose(file);
	return info->hwt;
}

void process_fail(int error, pid_t pid, const char *what)
{
	if (error == -EACCES || error == -EPERM)
		fail(0, "%sprocess %d: %s: access requires root or the right to trace the process",
		     what, (int)pid, strerror(-error));
	fail(error, "%sprocess %d", what, (int)pid);
}

/* Return the only descriptor of the device that a process has. */
static int target_find(pid_t pid)
{
	int *fds, fd, count = descriptors_find(pid, device_number(), &fds);

	if (count < 0)
		process_fail(count, pid, "");
	if (!fds)
		fail(0, "process %d does not have %s open", (int)pid, device_path);
	if (count > 1)
		fail(0, "process %d has %s open %d times, first as descriptor %d; choose with --fd",
		     (int)pid, device_path, count, fds[0]);
	fd = fds[0];
	free(fds);
	return fd;
}

int target_open(const struct target *target)
{
	int from = target->fd < 0 ? target_find(target->pid) : target->fd;
	struct hwt_info_args info = { .size = sizeof(info) };
	int ret, fd = descriptor_get(target->pid, from);
	char what[32];

	snprintf(what, sizeof(what), "descriptor %d of ", from);
	if (fd < 0)
		process_fail(fd, target->pid, what);
	ret = hwt_call(fd, HWT_IOC_INFO, &info);
	if (ret == -ENOTTY || (!ret && info.event_size != sizeof(struct hwt_event)))
		fail(0, "descriptor %d of process %d is not %s", from,
		     (int)target->pid, device_path);
	if (ret)
		process_fail(ret, target->pid, what);
	return fd;
}
