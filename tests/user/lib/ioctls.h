/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of all ioctls, with valid arguments.
 */
#ifndef HWT_IOCTLS_H
#define HWT_IOCTLS_H

#include <stddef.h>

#include "hwt_ring.h"

union ioctl_args {
	struct {
		__u32			size;
		__u32			flags;
	};
	struct hwt_info_args		info;
	struct hwt_setup_args		setup;
	struct hwt_schedule_args	schedule;
	struct hwt_modify_args		modify;
	struct hwt_cancel_args		cancel;
	struct hwt_get_args		get;
	struct hwt_stats_args		stats;
	struct hwt_list_args		list;
	struct hwt_rings_args		rings;
	struct hwt_enter_args		enter;
};

struct ioctl_case {
	const char	*name;
	unsigned long	request;
	__u32		size;
	__u32		first_size;	/* in the first version */
	__u32		flags;		/* all known flags */
	bool		has_id;
	size_t		reserved;	/* offset of the reserved field, 0: none */
	union ioctl_args good;
};

#define IOCTL(_NAME, _name, ...)						\
{										\
	.name = #_NAME,								\
	.request = HWT_IOC_##_NAME,						\
	.size = sizeof(struct hwt_##_name##_args),				\
	.first_size = HWT_##_NAME##_SIZE_VER1, ##__VA_ARGS__			\
}

#define RESERVED(_name)	.reserved = offsetof(struct hwt_##_name##_args, reserved)

static const struct ioctl_case ioctls[] = {
	IOCTL(INFO, info),
	IOCTL(SETUP, setup, .good.setup.flags = HWT_SETUP_REALTIME, .flags = HWT_SETUP_BOOTTIME |
	      HWT_SETUP_REALTIME | HWT_SETUP_TELL_CLOCK_SET | HWT_SETUP_BUSY_WAIT |
	      HWT_SETUP_CPU | HWT_SETUP_THREAD | HWT_SETUP_KEYS),
	/* The id is an output: its previous value does not matter. */
	IOCTL(SCHEDULE, schedule, .flags = HWT_ARM_ABSOLUTE,
	      .good.schedule = { .time_ns = HWT_NEVER, .id = 0x11 }),
	IOCTL(MODIFY, modify, RESERVED(modify), .flags = HWT_ARM_ABSOLUTE | HWT_ARM_USER_DATA |
	      HWT_ARM_EARLIER | HWT_ARM_PENDING | HWT_ARM_UNLESS_PENDING,
	      .has_id = true, .good.modify.time_ns = HWT_NEVER),
	IOCTL(CANCEL, cancel, .has_id = true, .flags = HWT_CANCEL_ALL),
	IOCTL(GET, get, .has_id = true),
	IOCTL(STATS, stats, RESERVED(stats)),
	IOCTL(LIST, list, .good.list = { .count = 2, .entry_size = sizeof(struct hwt_list_entry) }),
	IOCTL(RINGS, rings, RESERVED(rings), .good.rings = {
		.op_entries = 4, .event_entries = 4, .op_size = sizeof(struct hwt_op),
	}),
	IOCTL(ENTER, enter, .flags = HWT_ENTER_ABSOLUTE | HWT_ENTER_SIGMASK),
};

/* Fill in the arguments, for a new context; create @ring if the ioctl needs one. */
static inline void ioctl_prepare(struct __test_metadata *_metadata, const struct ioctl_case *ioctl,
				 int fd, struct ring *ring, void *to)
{
	static struct hwt_list_entry entries[2];
	union ioctl_args args = ioctl->good;
	__u64 id = 0;

	args.size = ioctl->size;
	if (ioctl->request != HWT_IOC_SETUP)
		ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 1, &id));
	/* The id has the same offset in all structures. */
	if (ioctl->has_id)
		args.cancel.id = id;
	if (ioctl->request == HWT_IOC_LIST)
		args.list.entries = (uintptr_t)entries;
	if (ioctl->request == HWT_IOC_ENTER)
		ASSERT_EQ(0, ring_make(ring, fd, 0, 4, 4));
	memcpy(to, &args, ioctl->size);
}

#endif /* HWT_IOCTLS_H */
