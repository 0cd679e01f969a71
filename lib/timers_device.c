// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The device as the engine of libhwt's timers: a context with keys
 */
#define LIBHWT_WITH_DEVICE
#include "internal.h"
#include "timers_device.h"

static int device_get(struct libhwt *context, uint64_t key, uint64_t *deadline)
{
	struct hwt_get_args get = { .size = sizeof(get) };
	int ret = libhwt_get(context, key, &get);

	*deadline = get.state & HWT_STATE_PENDING ? get.deadline_ns : 0;
	return ret;
}

static int device_take(struct libhwt *context, struct hwtlib_due *due, unsigned int max)
{
	struct hwt_event events[64];
	int i, n;

	n = libhwt_next(context, events, max < 64 ? max : 64, 0);
	for (i = 0; i < n; i++)
		due[i] = (struct hwtlib_due) { events[i].id, events[i].deadline_ns };
	return n;
}

int hwtlib_device_open(struct hwtlib_device *device, clockid_t clock)
{
	const struct libhwt_options options = {
		.size = sizeof(options),
		.flags = HWT_SETUP_KEYS | (clock == CLOCK_BOOTTIME ? HWT_SETUP_BOOTTIME :
					   clock == CLOCK_REALTIME ? HWT_SETUP_REALTIME : 0),
	};
	struct hwt_info_args info = { .size = sizeof(info) };
	struct libhwt *context;
	int ret;

	ret = libhwt_open(&context, &options);
	if (ret)
		return ret;
	ret = libhwt_info(context, &info);
	if (ret) {
		libhwt_close(context);
		return ret;
	}
	*device = (struct hwtlib_device) {
		.context = context,
		.tick_ns = info.tick_ns,
		.arm = libhwt_key_at,
		.cancel = libhwt_cancel,
		.get = device_get,
		.take = device_take,
		.fd = libhwt_fd,
		.close = libhwt_close,
	};
	return 0;
}
