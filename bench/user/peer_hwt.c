// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: one ioctl for each operation, up to BATCH in one, or rings
 */
#include "user_bench.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "hwt_uapi.h"

#define ENGINES	2

static int device;
static __u64 *ids;

/*
 * The kernel's threads that serve the context: that of the wheel that all share, and one
 * of its own that it gets when it has very many timeouts.
 */
static const char * const engine_names[ENGINES] = { "hwt\n", "hwt_private\n" };
static clockid_t engine_clock[ENGINES];
static bool engine_known[ENGINES];
static bool engines_final;

static void find_engine(const char *pid, const char *comm)
{
	unsigned int i;

	for (i = 0; i < ENGINES; i++) {
		if (!engine_known[i] && !strcmp(comm, engine_names[i]))
			engine_known[i] = !clock_getcpuclockid(strtol(pid, NULL, 10),
							       &engine_clock[i]);
	}
}

static void find_engines(void)
{
	DIR *proc = opendir("/proc");
	char path[300], name[20];
	struct dirent *entry;
	FILE *file;

	while (proc && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file))
			find_engine(entry->d_name, name);
		fclose(file);
	}
	if (proc)
		closedir(proc);
}

/* From now on nothing looks for more of them: that would take time that is measured. */
void hwt_engines_final(void)
{
	engines_final = true;
}

__u64 hwt_engine_ns(void)
{
	struct timespec time;
	unsigned int i;
	__u64 ns = 0;

	if (!engines_final && !engine_known[ENGINES - 1])
		find_engines();
	for (i = 0; i < ENGINES; i++) {
		if (engine_known[i] && !clock_gettime(engine_clock[i], &time))
			ns += time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
	}
	return ns;
}

/* Returns a descriptor of a device that has all of these HWT_FEATURE_ bits. */
int hwt_device_open(__u64 features)
{
	struct hwt_info_args info = { .size = sizeof(info) };
	int fd = open("/dev/hwt", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		give_up_errno("/dev/hwt");
	if (ioctl(fd, HWT_IOC_INFO, &info))
		give_up_errno("HWT_IOC_INFO");
	if (features & ~info.features)
		give_up("/dev/hwt cannot do this on this kernel (features %#llx)",
			info.features);
	find_engines();
	if (!engine_known[0])
		give_up("no kernel thread \"hwt\"");
	return fd;
}

static void hwt_open(const struct run *run)
{
	device = hwt_device_open(0);
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

	hwt_engines_final();
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

/* -- Many operations at once --------------------------------------------- */

typedef void (*carry_out_fn)(unsigned int count);

/*
 * Where operations go and their results are, BATCH of them, the same for each call as in an
 * event loop; in a ring, where the first is.
 */
static struct hwt_op *ops;
static __u32 ops_first;

static struct hwt_op *op_at(unsigned int i)
{
	return &ops[(ops_first + i) % BATCH];
}

static void make_all(carry_out_fn carry_out, const struct run *run, const struct todo *todo,
		     unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		*op_at(i) = (struct hwt_op) {
			.opcode = HWT_OP_SCHEDULE,
			.flags = run->deadline_ns ? HWT_ABSOLUTE : 0,
			.time_ns = run->deadline_ns ? run->deadline_ns : todo[i].delay_ns,
			.user_data = todo[i].timer,
		};
	carry_out(count);
	for (i = 0; i < count; i++) {
		if (op_at(i)->result)
			give_up("HWT_OP_SCHEDULE: %s", strerror(-op_at(i)->result));
		ids[todo[i].timer] = op_at(i)->id;
	}
}

static void carry_out_and_check(carry_out_fn carry_out, unsigned int count)
{
	unsigned int i;

	carry_out(count);
	for (i = 0; i < count; i++) {
		if (op_at(i)->result != HWT_STATE_PENDING)
			give_up("operation %u: %d", op_at(i)->opcode, op_at(i)->result);
	}
}

static void move_all(carry_out_fn carry_out, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		*op_at(i) = (struct hwt_op) {
			.opcode = HWT_OP_MODIFY,
			.id = ids[todo[i].timer],
			.time_ns = todo[i].delay_ns,
		};
	carry_out_and_check(carry_out, count);
}

static void cancel_all(carry_out_fn carry_out, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		*op_at(i) = (struct hwt_op) {
			.opcode = HWT_OP_CANCEL,
			.id = ids[todo[i].timer],
		};
	carry_out_and_check(carry_out, count);
}

/* -- ... by an ioctl ----------------------------------------------------- */

static void batch_open(const struct run *run)
{
	hwt_open(run);
	ops = alloc_touched(BATCH, sizeof(*ops));
}

static void carry_out_batch(unsigned int count)
{
	struct hwt_batch_args args = {
		.size = sizeof(args),
		.ops = (uintptr_t)ops,
		.count = count,
		.op_size = sizeof(*ops),
	};

	if (ioctl(device, HWT_IOC_BATCH, &args))
		give_up_errno("HWT_IOC_BATCH");
	if (args.count != count)
		give_up("HWT_IOC_BATCH: not all");
}

static void batch_create(const struct run *run, const struct todo *todo, unsigned int count)
{
	make_all(carry_out_batch, run, todo, count);
}

static void batch_rearm(const struct run *run, const struct todo *todo, unsigned int count)
{
	(void)run;
	move_all(carry_out_batch, todo, count);
}

static void batch_cancel(const struct run *run, const struct todo *todo, unsigned int count)
{
	(void)run;
	cancel_all(carry_out_batch, todo, count);
}

const struct peer peer_hwt_batch = {
	.name		= "hwt-batch",
	.what		= "/dev/hwt, 32 operations in an ioctl, reads of 256 events",
	.open		= batch_open,
	.create		= batch_create,
	.rearm		= batch_rearm,
	.cancel		= batch_cancel,
	.reap		= hwt_reap,
	.engine_ns	= hwt_engine_ns,
};

/* -- ... by rings -------------------------------------------------------- */

/* Of events, as many as a program may let come up before it looks. */
#define RING_EVENTS	4096

static struct hwt_rings *rings;
static struct hwt_event *ring_events;

static void rings_open(const struct run *run)
{
	struct hwt_rings_args args = {
		.size = sizeof(args),
		.op_entries = BATCH,
		.event_entries = RING_EVENTS,
	};

	hwt_open(run);
	if (ioctl(device, HWT_IOC_RINGS, &args))
		give_up_errno("HWT_IOC_RINGS");
	rings = mmap(NULL, args.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);
	if (rings == MAP_FAILED)
		give_up_errno("mmap");
	ops = (void *)((char *)rings + args.ops_offset);
	ring_events = (void *)((char *)rings + args.events_offset);
}

static void enter(unsigned int submit, unsigned int wait)
{
	struct hwt_enter_args args = {
		.size = sizeof(args),
		.submit = submit,
		.wait = wait,
		.timeout_ns = HWT_NEVER,
	};

	if (ioctl(device, HWT_IOC_ENTER, &args))
		give_up_errno("HWT_IOC_ENTER");
	if (args.submit != submit)
		give_up("HWT_IOC_ENTER: not all");
}

static void carry_out_rings(unsigned int count)
{
	__atomic_store_n(&rings->op_tail, ops_first + count, __ATOMIC_RELEASE);
	enter(count, 0);
}

static void rings_create(const struct run *run, const struct todo *todo, unsigned int count)
{
	make_all(carry_out_rings, run, todo, count);
	ops_first += count;
}

static void rings_rearm(const struct run *run, const struct todo *todo, unsigned int count)
{
	(void)run;
	move_all(carry_out_rings, todo, count);
	ops_first += count;
}

static void rings_cancel(const struct run *run, const struct todo *todo, unsigned int count)
{
	(void)run;
	cancel_all(carry_out_rings, todo, count);
	ops_first += count;
}

static void rings_reap(const struct run *run)
{
	const struct hwt_event *event;
	__u32 head = 0, tail;

	hwt_engines_final();
	while (head < run->count) {
		tail = __atomic_load_n(&rings->event_tail, __ATOMIC_ACQUIRE);
		/*
		 * Nothing there: have what did not fit moved, and sleep until there is
		 * something, as an event loop does. It does not wait for more than one.
		 */
		if (head == tail) {
			enter(0, 1);
			continue;
		}
		if (!head)
			reap_first();
		while (head != tail) {
			event = &ring_events[head++ % RING_EVENTS];
			if (ids[event->user_data] != event->id)
				give_up("the event of another timer");
		}
		__atomic_store_n(&rings->event_head, head, __ATOMIC_RELEASE);
	}
}

const struct peer peer_hwt_rings = {
	.name		= "hwt-rings",
	.what		= "the same by rings, without a system call for events",
	.open		= rings_open,
	.create		= rings_create,
	.rearm		= rings_rearm,
	.cancel		= rings_cancel,
	.reap		= rings_reap,
	.engine_ns	= hwt_engine_ns,
};
