// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: one ioctl for each operation, or rings; with ids or with keys
 */
#include "user_bench.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "hwt_uapi.h"

#define ENGINES	2

static int device;
static __u64 *ids;

/*
 * The kernel's threads that serve the context: that of the shared wheel, and its own, which
 * it gets when it has very many timeouts.
 */
static const char * const engine_names[ENGINES] = { "hwt_device\n", "hwt_private\n" };
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

/* Look for no more threads from now on: that would take time that is measured. */
void hwt_engines_final(void)
{
	engines_final = true;
}

__u64 hwt_engine_ns(void)
{
	unsigned int i;
	__u64 ns = 0;

	if (!engines_final && !engine_known[ENGINES - 1])
		find_engines();
	for (i = 0; i < ENGINES; i++) {
		if (engine_known[i])
			ns += clock_ns(engine_clock[i]);
	}
	return ns;
}

/* Returns a descriptor of a device that has all of these HWT_FEATURE_ bits, set up so. */
int hwt_device_open(__u64 features, __u32 setup_flags)
{
	struct hwt_setup_args setup = { .size = sizeof(setup), .flags = setup_flags };
	struct hwt_info_args info = { .size = sizeof(info) };
	int fd = open("/dev/hwt", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		give_up_errno("/dev/hwt");
	if (ioctl(fd, HWT_IOC_INFO, &info))
		give_up_errno("HWT_IOC_INFO");
	if (features & ~info.features)
		give_up("/dev/hwt cannot do this on this kernel (features %#llx)",
			info.features);
	if (ioctl(fd, HWT_IOC_SETUP, &setup))
		give_up_errno("HWT_IOC_SETUP");
	find_engines();
	if (!engine_known[0])
		give_up("no kernel thread \"hwt_device\"");
	return fd;
}

static bool keyed;	/* a timer's number is its key */

static void hwt_open(unsigned int count)
{
	device = hwt_device_open(0, keyed ? HWT_SETUP_KEYS : 0);
	ids = alloc_touched(count, sizeof(*ids));
}

static void control(unsigned long request, const char *name, void *args)
{
	if (ioctl(device, request, args))
		give_up_errno(name);
}

/* -- One by one ---------------------------------------------------------- */

static void hwt_create(const struct todo *todo)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.flags = deadline_ns ? HWT_ARM_ABSOLUTE : 0,
		.time_ns = time_of(todo),
		.user_data = todo->timer,
	};

	control(HWT_IOC_SCHEDULE, "HWT_IOC_SCHEDULE", &args);
	ids[todo->timer] = args.id;
}

static void hwt_rearm(const struct todo *todo)
{
	struct hwt_modify_args args = {
		.size = sizeof(args),
		.id = ids[todo->timer],
		.time_ns = todo->delay_ns,
	};

	control(HWT_IOC_MODIFY, "HWT_IOC_MODIFY", &args);
	if (args.was != HWT_STATE_PENDING)
		give_up("HWT_IOC_MODIFY: was in state %#x", args.was);
}

static void hwt_cancel(const struct todo *todo)
{
	struct hwt_cancel_args args = { .size = sizeof(args), .id = ids[todo->timer] };

	control(HWT_IOC_CANCEL, "HWT_IOC_CANCEL", &args);
	if (args.was != HWT_STATE_PENDING)
		give_up("HWT_IOC_CANCEL: was in state %#x", args.was);
}

static void hwt_operate(enum operation op, const struct todo *todo, unsigned int count)
{
	for (; count--; todo++) {
		if (op == CREATE)
			hwt_create(todo);
		else if (op == REARM)
			hwt_rearm(todo);
		else
			hwt_cancel(todo);
	}
}

static void check_event(const struct hwt_event *event)
{
	if (ids[event->user_data] != event->id)
		give_up("the event of another timer");
}

static void hwt_reap(unsigned int count)
{
	struct pollfd poll_fd = { .fd = device, .events = POLLIN };
	struct hwt_event events[EVENTS];
	unsigned int seen = 0, i;
	ssize_t got;

	hwt_engines_final();
	if (poll(&poll_fd, 1, -1) != 1)
		give_up_errno("poll");
	reap_first();
	while (seen < count) {
		got = read(device, events, sizeof(events));
		if (got <= 0)
			give_up_errno("read");
		got /= sizeof(events[0]);
		for (i = 0; i < got; i++)
			check_event(&events[i]);
		seen += got;
	}
}

const struct peer peer_hwt = {
	"hwt", "/dev/hwt, an ioctl for each operation, reads of 256 events",
	hwt_open, hwt_operate, hwt_reap, hwt_engine_ns,
};

/* -- Rings --------------------------------------------------------------- */

/* Of events, as many as a program may let come up before it looks. */
#define RING_EVENTS	4096

/* Operations and then their results, batch_size of them; where the next is. */
static struct hwt_op *ops;
static __u32 ops_first;

static struct hwt_rings *rings;
static struct hwt_event *ring_events;

static void rings_open(unsigned int count)
{
	struct hwt_rings_args args = {
		.size = sizeof(args),
		.op_entries = batch_size,
		.event_entries = RING_EVENTS,
		.op_size = sizeof(struct hwt_op),
	};

	hwt_open(count);
	control(HWT_IOC_RINGS, "HWT_IOC_RINGS", &args);
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

	control(HWT_IOC_ENTER, "HWT_IOC_ENTER", &args);
	if (args.submit != submit)
		give_up("HWT_IOC_ENTER: not all");
}

static void rings_operate(enum operation op, const struct todo *todo, unsigned int count)
{
	static const int expected[OPERATIONS] = { 0, HWT_STATE_PENDING, HWT_STATE_PENDING };
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct hwt_op *it = &ops[(ops_first + i) & (batch_size - 1)];

		/* With keys, a schedule also pushes back. */
		if (op == CREATE || (op == REARM && keyed))
			*it = (struct hwt_op) {
				.opcode = HWT_OP_SCHEDULE,
				.flags = op == CREATE && deadline_ns ? HWT_ARM_ABSOLUTE : 0,
				.time_ns = op == CREATE ? time_of(&todo[i]) : todo[i].delay_ns,
				.user_data = keyed ? 0 : todo[i].timer,
				.id = keyed ? todo[i].timer : 0,
			};
		else
			*it = (struct hwt_op) {
				.opcode = op == REARM ? HWT_OP_MODIFY : HWT_OP_CANCEL,
				.id = keyed ? todo[i].timer : ids[todo[i].timer],
				.time_ns = op == REARM ? todo[i].delay_ns : 0,
			};
	}
	__atomic_store_n(&rings->op_tail, ops_first + count, __ATOMIC_RELEASE);
	enter(count, 0);
	for (i = 0; i < count; i++) {
		const struct hwt_op *it = &ops[(ops_first + i) & (batch_size - 1)];

		if (it->result != expected[op])
			give_up("operation %u: %d", it->opcode, it->result);
		if (op == CREATE)
			ids[todo[i].timer] = it->id;
	}
	ops_first += count;
}

static void rings_reap(unsigned int count)
{
	__u32 head = 0, tail;

	hwt_engines_final();
	while (head < count) {
		tail = __atomic_load_n(&rings->event_tail, __ATOMIC_ACQUIRE);
		/*
		 * No event: have those that wait moved, or sleep until there is one, as an event
		 * loop does.
		 */
		if (head == tail) {
			enter(0, 1);
			continue;
		}
		if (!head)
			reap_first();
		while (head != tail)
			check_event(&ring_events[head++ % RING_EVENTS]);
		__atomic_store_n(&rings->event_head, head, __ATOMIC_RELEASE);
	}
}

static void keys_open(unsigned int count)
{
	keyed = true;
	rings_open(count);
}

const struct peer peer_hwt_rings = {
	"hwt-rings", "/dev/hwt, many operations by rings, events too",
	rings_open, rings_operate, rings_reap, hwt_engine_ns,
};

const struct peer peer_hwt_keys = {
	"hwt-keys", "the same with keys instead of ids",
	keys_open, rings_operate, rings_reap, hwt_engine_ns,
};
