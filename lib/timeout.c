// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * libhwt: timeouts, one by one, and all of a context
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

int libhwt_after(struct libhwt *context, uint64_t delay_ns, uint64_t user_data, uint64_t *id)
{
	struct hwt_schedule_args args = {
		.time_ns = delay_ns,
		.user_data = user_data,
	};

	return schedule(context, &args, id);
}

int libhwt_at(struct libhwt *context, uint64_t deadline_ns, uint64_t user_data, uint64_t *id)
{
	struct hwt_schedule_args args = {
		.flags = HWT_ARM_ABSOLUTE,
		.time_ns = deadline_ns,
		.user_data = user_data,
	};

	return schedule(context, &args, id);
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

static int key_schedule(struct libhwt *context, struct hwt_schedule_args *args)
{
	int ret;

	args->size = sizeof(*args);
	ret = libhwt_schedule(context, args);
	return ret ? ret : (int)args->was;
}

int libhwt_key_after(struct libhwt *context, uint64_t key, uint64_t delay_ns)
{
	struct hwt_schedule_args args = { .id = key, .time_ns = delay_ns };

	return key_schedule(context, &args);
}

int libhwt_key_at(struct libhwt *context, uint64_t key, uint64_t deadline_ns)
{
	struct hwt_schedule_args args = {
		.flags = HWT_ARM_ABSOLUTE,
		.id = key,
		.time_ns = deadline_ns,
	};

	return key_schedule(context, &args);
}

/* -- Ids and keys -------------------------------------------------------- */

int libhwt_reschedule(struct libhwt *context, struct hwt_modify_args *args)
{
	int ret = hwtlib_call(context, HWT_IOC_MODIFY, args);

	return ret ? ret : (int)args->was;
}

int libhwt_modify(struct libhwt *context, uint64_t id, uint64_t delay_ns)
{
	struct hwt_modify_args args = {
		.size = sizeof(args),
		.id = id,
		.time_ns = delay_ns,
	};

	return libhwt_reschedule(context, &args);
}

int libhwt_modify_at(struct libhwt *context, uint64_t id, uint64_t deadline_ns)
{
	struct hwt_modify_args args = {
		.size = sizeof(args),
		.flags = HWT_ARM_ABSOLUTE,
		.id = id,
		.time_ns = deadline_ns,
	};

	return libhwt_reschedule(context, &args);
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

int libhwt_stop(struct libhwt *context, uint64_t *stopped)
{
	struct hwt_stop_args args = { .size = sizeof(args) };
	int ret = hwtlib_call(context, HWT_IOC_STOP, &args);

	if (!ret && stopped)
		*stopped = args.stopped;
	return ret;
}

/* -- All of them --------------------------------------------------------- */

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

/* Room for more than there are when it is asked, since some may come meanwhile. */
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
		do {
			ret = libhwt_list(context, &cursor, all + have, room - have);
		} while (ret == -EINTR);
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

static struct hwt_op restore_op(const struct libhwt *context,
				const struct hwt_list_entry *entry)
{
	struct hwt_op op = {
		.opcode = HWT_OP_SCHEDULE,
		.mode = entry->mode,
		.id = entry->id,
		.period_ns = entry->period_ns,
		.user_data = context->keyed ? 0 : entry->user_data,
	};

	/* One that is not pending is due now, by a delay of 0. */
	if (!(entry->state & HWT_STATE_PENDING))
		return op;
	if (context->clock == CLOCK_REALTIME) {
		op.flags = HWT_ARM_ABSOLUTE;
		op.time_ns = entry->deadline_ns;
	} else {
		op.time_ns = entry->remaining_ns;
	}
	return op;
}

#define RESTORE_STEP	128

/* Return: how many were made, the first ones, and why not all. */
static size_t restore_some(struct libhwt *context, const struct hwt_list_entry *entries,
			   size_t count, uint64_t *ids, int *error)
{
	struct hwt_op ops[RESTORE_STEP];
	size_t made = 0;
	int i, n, ret;

	while (made < count && !*error) {
		n = count - made < RESTORE_STEP ? count - made : RESTORE_STEP;
		for (i = 0; i < n; i++)
			ops[i] = restore_op(context, &entries[made + i]);
		ret = libhwt_batch(context, ops, n);
		if (ret < 0)
			*error = ret;
		/* What was made after one that failed is not wanted. */
		for (i = 0; i < ret; i++) {
			if (ops[i].result < 0 && !*error)
				*error = ops[i].result;
			else if (ops[i].result >= 0 && *error)
				libhwt_cancel(context, ops[i].id);
			else if (!*error)
				ids[made++] = ops[i].id;
		}
	}
	return made;
}

int libhwt_restore(struct libhwt *context, const struct hwt_list_entry *entries, size_t count,
		   uint64_t *ids)
{
	uint64_t *made = ids ? ids : calloc(count + !count, sizeof(*made));
	int error = 0;
	size_t n;

	if (!made)
		return -ENOMEM;
	n = restore_some(context, entries, count, made, &error);
	while (error && n)
		libhwt_cancel(context, made[--n]);
	if (!ids)
		free(made);
	return error;
}
