// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * libhwt: single timeouts, and all timeouts of a context
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "internal.h"

int libhwt_schedule(struct libhwt *context, struct hwt_schedule_args *args)
{
	return hwtlib_call(context, HWT_IOC_SCHEDULE, args);
}

static int schedule(struct libhwt *context, struct hwt_schedule_args *args, uint64_t *id)
{
	int ret;

	args->size = sizeof(*args);
	ret = libhwt_schedule(context, args);
	if (!ret && id)
		*id = args->id;
	return ret;
}

static int schedule_once(struct libhwt *context, uint64_t time_ns, uint32_t flags,
			 uint64_t user_data, uint64_t *id)
{
	struct hwt_schedule_args args = {
		.flags = flags,
		.time_ns = time_ns,
		.user_data = user_data,
	};

	return schedule(context, &args, id);
}

int libhwt_after(struct libhwt *context, uint64_t delay_ns, uint64_t user_data, uint64_t *id)
{
	return schedule_once(context, delay_ns, 0, user_data, id);
}

int libhwt_at(struct libhwt *context, uint64_t deadline_ns, uint64_t user_data, uint64_t *id)
{
	return schedule_once(context, deadline_ns, HWT_ARM_ABSOLUTE, user_data, id);
}

int libhwt_every(struct libhwt *context, uint64_t period_ns, uint64_t user_data, uint64_t *id)
{
	struct hwt_schedule_args args = {
		.mode = HWT_MODE_FIXED_RATE,
		.time_ns = period_ns,
		.period_ns = period_ns,
		.user_data = user_data,
	};

	return schedule(context, &args, id);
}

/* -- Keys ---------------------------------------------------------------- */

static int key_schedule(struct libhwt *context, uint64_t key, uint64_t time_ns, uint32_t flags)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.flags = flags,
		.id = key,
		.time_ns = time_ns,
	};
	int ret = libhwt_schedule(context, &args);

	return ret ? ret : (int)args.was;
}

int libhwt_key_after(struct libhwt *context, uint64_t key, uint64_t delay_ns)
{
	return key_schedule(context, key, delay_ns, 0);
}

int libhwt_key_at(struct libhwt *context, uint64_t key, uint64_t deadline_ns)
{
	return key_schedule(context, key, deadline_ns, HWT_ARM_ABSOLUTE);
}

/* -- Ids and keys -------------------------------------------------------- */

int libhwt_reschedule(struct libhwt *context, struct hwt_modify_args *args)
{
	int ret = hwtlib_call(context, HWT_IOC_MODIFY, args);

	return ret ? ret : (int)args->was;
}

static int modify(struct libhwt *context, uint64_t id, uint64_t time_ns, uint32_t flags)
{
	struct hwt_modify_args args = {
		.size = sizeof(args),
		.flags = flags,
		.id = id,
		.time_ns = time_ns,
	};

	return libhwt_reschedule(context, &args);
}

int libhwt_modify(struct libhwt *context, uint64_t id, uint64_t delay_ns)
{
	return modify(context, id, delay_ns, 0);
}

int libhwt_modify_at(struct libhwt *context, uint64_t id, uint64_t deadline_ns)
{
	return modify(context, id, deadline_ns, HWT_ARM_ABSOLUTE);
}

int libhwt_cancel(struct libhwt *context, uint64_t id)
{
	struct hwt_cancel_args args = { .size = sizeof(args), .id = id };
	int ret = hwtlib_call(context, HWT_IOC_CANCEL, &args);

	return ret ? ret : (int)args.was;
}

int libhwt_cancel_all(struct libhwt *context)
{
	struct hwt_cancel_args args = { .size = sizeof(args), .flags = HWT_CANCEL_ALL };
	int ret = hwtlib_call(context, HWT_IOC_CANCEL, &args);

	return ret ? ret : (int)args.count;
}

int libhwt_get(struct libhwt *context, uint64_t id, struct hwt_get_args *get)
{
	get->id = id;
	return hwtlib_call(context, HWT_IOC_GET, get);
}

/* -- All timeouts of a context ------------------------------------------- */

int libhwt_list(struct libhwt *context, uint64_t *cursor, struct hwt_list_entry *entries,
		unsigned int max)
{
	struct hwt_list_args args = {
		.size = sizeof(args),
		.cursor = *cursor,
		.entries = (uintptr_t)entries,
		.count = max,
		.entry_size = sizeof(*entries),
	};
	int ret = hwtlib_call(context, HWT_IOC_LIST, &args);

	if (ret)
		return ret;
	*cursor = args.cursor;
	return args.count;
}

/* Number of entries that a call of libhwt_list() has room for, at least */
#define SAVE_STEP	256

int libhwt_save(struct libhwt *context, struct hwt_list_entry **entries, size_t *count)
{
	struct hwt_list_entry *all = NULL, *more;
	size_t have = 0, room = 0;
	uint64_t cursor = 0;
	int ret;

	do {
		if (room - have < SAVE_STEP) {
			room = 2 * room + SAVE_STEP;
			more = realloc(all, room * sizeof(*all));
			if (!more) {
				free(all);
				return -ENOMEM;
			}
			all = more;
		}
		ret = libhwt_list(context, &cursor, all + have, room - have);
		if (ret < 0) {
			free(all);
			return ret;
		}
		have += ret;
	} while (ret);
	*entries = all;
	*count = have;
	return 0;
}

/* Return 0 if a timeout was created, HWT_STATE_ bits if one was moved, or an error. */
static int restore_one(struct libhwt *context, const struct hwt_list_entry *entry, uint64_t *id)
{
	struct hwt_schedule_args args = {
		.mode = entry->mode,
		.id = entry->id,
		.period_ns = entry->period_ns,
		.user_data = context->keyed ? 0 : entry->user_data,
	};
	int ret;

	/* A timeout that is not pending has fired already, so it fires at once: its delay is 0. */
	if ((entry->state & HWT_STATE_PENDING) && context->clock == CLOCK_REALTIME) {
		args.flags = HWT_ARM_ABSOLUTE;
		args.time_ns = entry->deadline_ns;
	} else if (entry->state & HWT_STATE_PENDING) {
		args.time_ns = entry->remaining_ns;
	}
	ret = schedule(context, &args, id);
	return ret ? ret : (int)args.was;
}

int libhwt_restore(struct libhwt *context, const struct hwt_list_entry *entries, size_t count,
		   uint64_t *ids)
{
	uint64_t id = 0, *made = calloc(count + !count, sizeof(*made));
	size_t n, created = 0;
	int ret = 0;

	if (!made)
		return -ENOMEM;
	for (n = 0; n < count; n++) {
		ret = restore_one(context, &entries[n], &id);
		if (ret < 0)
			break;
		if (!ret)
			made[created++] = id;
		if (ids)
			ids[n] = id;
	}
	/* Do not cancel timeouts that existed before the call. */
	while (ret < 0 && created)
		libhwt_cancel(context, made[--created]);
	free(made);
	return ret < 0 ? ret : 0;
}
