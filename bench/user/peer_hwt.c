// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: one ioctl for each operation, or rings; with ids or with keys
 */
#include "user_bench.h"

#include "hwt_ring.h"

static int device;
static __u64 *ids;

/* Open and set up the device. Give up if it does not have all @features (HWT_FEATURE_ bits). */
int hwt_device_open(__u64 features, __u32 setup_flags)
{
	struct hwt_info_args info;
	int fd = hwt_open(0), ret;

	if (fd < 0)
		give_up_errno("/dev/hwt");
	if (hwt_info(fd, &info))
		give_up_errno("HWT_IOC_INFO");
	if (features & ~info.features)
		give_up("/dev/hwt cannot do this on this kernel (features %#llx)",
			info.features);
	ret = hwt_with(fd, SETUP, setup, .flags = setup_flags);
	if (ret)
		give_up_errno("HWT_IOC_SETUP");
	return fd;
}

static bool keyed;	/* the number of a timer is its key */

static void ids_open(unsigned int count)
{
	device = hwt_device_open(0, keyed ? HWT_SETUP_KEYS : 0);
	ids = alloc_touched(count, sizeof(*ids));
}

/* -- One by one ---------------------------------------------------------- */

static void hwt_create(const struct todo *todo)
{
	if (hwt_add(device, deadline_ns ? HWT_ARM_ABSOLUTE : 0, time_of(todo), todo->timer,
		    &ids[todo->timer]))
		give_up_errno("HWT_IOC_SCHEDULE");
}

static void hwt_rearm(const struct todo *todo)
{
	int was = hwt_move(device, ids[todo->timer], 0, todo->delay_ns);

	if (was != HWT_STATE_PENDING)
		give_up("HWT_IOC_MODIFY: %d", was);
}

static void hwt_cancel(const struct todo *todo)
{
	int was = hwt_del(device, ids[todo->timer]);

	if (was != HWT_STATE_PENDING)
		give_up("HWT_IOC_CANCEL: %d", was);
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
	struct hwt_event events[EVENTS];
	unsigned int seen = 0;
	int got, i;

	if (hwt_wait(device, -1) != POLLIN)
		give_up_errno("poll");
	while (seen < count) {
		got = hwt_read(device, events, EVENTS);
		if (got <= 0)
			give_up_errno("read");
		for (i = 0; i < got; i++)
			check_event(&events[i]);
		seen += got;
	}
}

const struct peer peer_hwt = {
	"hwt", "/dev/hwt, an ioctl for each operation, reads of 256 events",
	ids_open, hwt_operate, hwt_reap,
};

/* -- Rings --------------------------------------------------------------- */

#define RING_EVENTS	4096

/* The rings; and the index of the next operation. Results replace operations. */
static struct ring ring;
static __u32 ops_first;

static void rings_open(unsigned int count)
{
	ids_open(count);
	if (ring_make(&ring, device, 0, batch_size, RING_EVENTS))
		give_up_errno("HWT_IOC_RINGS");
}

static void rings_operate(enum operation op, const struct todo *todo, unsigned int count)
{
	static const int expected[OPERATIONS] = { 0, HWT_STATE_PENDING, HWT_STATE_PENDING };
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct hwt_op *it = &ring.ops[(ops_first + i) & ring.op_mask];

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
	__atomic_store_n(&ring.shared->op_tail, ops_first + count, __ATOMIC_RELEASE);
	if (ring_enter(&ring, count, 0, 0) != count)
		give_up("HWT_IOC_ENTER: not all");
	for (i = 0; i < count; i++) {
		const struct hwt_op *it = &ring.ops[(ops_first + i) & ring.op_mask];

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

	while (head < count) {
		tail = ring_event_tail(&ring);
		/* The ring is empty: have it filled, or sleep until an event, as an event loop. */
		if (head == tail) {
			if (ring_enter(&ring, 0, 1, HWT_NEVER))
				give_up_errno("HWT_IOC_ENTER");
			continue;
		}
		while (head != tail)
			check_event(&ring.events[head++ % RING_EVENTS]);
		__atomic_store_n(&ring.shared->event_head, head, __ATOMIC_RELEASE);
	}
}

static void keys_open(unsigned int count)
{
	keyed = true;
	rings_open(count);
}

const struct peer peer_hwt_rings = {
	"hwt-rings", "/dev/hwt, operations and events by rings",
	rings_open, rings_operate, rings_reap,
};

const struct peer peer_hwt_keys = {
	"hwt-keys", "the same with keys instead of ids",
	keys_open, rings_operate, rings_reap,
};
