// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt, the shared wheel, one ioctl for each operation
 */
#include "user_bench.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "hwt_uapi.h"

static int device;
static __u64 *ids;
static clockid_t engine_clock;
static bool engine_known;

/* The thread of the shared wheel: the kernel's only one that is named "hwt". */
static void find_engine(void)
{
	DIR *proc = opendir("/proc");
	char path[300], name[16];
	struct dirent *entry;
	FILE *file;

	while (proc && !engine_known && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && !strcmp(name, "hwt\n"))
			engine_known = !clock_getcpuclockid(strtol(entry->d_name, NULL, 10),
							    &engine_clock);
		fclose(file);
	}
	if (proc)
		closedir(proc);
}

static __u64 hwt_engine_ns(void)
{
	struct timespec time = { };

	if (engine_known)
		clock_gettime(engine_clock, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

static void hwt_open(const struct run *run)
{
	device = open("/dev/hwt", O_RDWR | O_CLOEXEC);
	if (device < 0)
		give_up_errno("/dev/hwt");
	find_engine();
	if (!engine_known)
		give_up("no kernel thread \"hwt\"");
	ids = alloc_touched(run->count, sizeof(*ids));
}

static void hwt_create(const struct run *run, const struct todo *todo, unsigned int count)
{
	struct hwt_schedule_args args = { .size = sizeof(args) };
	unsigned int i;

	if (run->deadline_ns)
		args.flags = HWT_ABSOLUTE;
	for (i = 0; i < count; i++) {
		args.time_ns = run->deadline_ns ? run->deadline_ns : todo[i].delay_ns;
		args.user_data = todo[i].timer;
		if (ioctl(device, HWT_IOC_SCHEDULE, &args))
			give_up_errno("HWT_IOC_SCHEDULE");
		ids[todo[i].timer] = args.id;
	}
}

static void hwt_rearm(const struct run *run, const struct todo *todo, unsigned int count)
{
	struct hwt_modify_args args = { .size = sizeof(args) };
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++) {
		args.id = ids[todo[i].timer];
		args.time_ns = todo[i].delay_ns;
		if (ioctl(device, HWT_IOC_MODIFY, &args))
			give_up_errno("HWT_IOC_MODIFY");
		if (args.was != HWT_STATE_PENDING)
			give_up("HWT_IOC_MODIFY: was in state %#x", args.was);
	}
}

static void hwt_cancel(const struct run *run, const struct todo *todo, unsigned int count)
{
	struct hwt_cancel_args args = { .size = sizeof(args) };
	unsigned int i;

	(void)run;
	for (i = 0; i < count; i++) {
		args.id = ids[todo[i].timer];
		if (ioctl(device, HWT_IOC_CANCEL, &args))
			give_up_errno("HWT_IOC_CANCEL");
		if (args.was != HWT_STATE_PENDING)
			give_up("HWT_IOC_CANCEL: was in state %#x", args.was);
	}
}

static void hwt_reap(const struct run *run)
{
	struct pollfd poll_fd = { .fd = device, .events = POLLIN };
	struct hwt_event events[EVENTS];
	unsigned int seen = 0, i;
	ssize_t got;

	if (poll(&poll_fd, 1, -1) != 1)
		give_up_errno("poll");
	reap_first();
	while (seen < run->count) {
		got = read(device, events, sizeof(events));
		if (got <= 0)
			give_up_errno("read");
		got /= sizeof(events[0]);
		for (i = 0; i < got; i++) {
			if (ids[events[i].user_data] != events[i].id)
				give_up("the event of another timer");
		}
		seen += got;
	}
}

const struct peer peer_hwt = {
	.name		= "hwt",
	.what		= "/dev/hwt, an ioctl for each operation, reads of 256 events",
	.open		= hwt_open,
	.create		= hwt_create,
	.rearm		= hwt_rearm,
	.cancel		= hwt_cancel,
	.reap		= hwt_reap,
	.engine_ns	= hwt_engine_ns,
};
