// SPDX-License-Identifier: GPL-2.0-only
// libhwt from C++: each function is called by somebody who has no /dev/hwt. Run by lib.sh.
#include <cerrno>
#include <cstdio>

#include "libhwt.h"
// Twice does no harm.
#include "libhwt.h"

// Every function, with the types of C++; only to be compiled and linked.
static int all(libhwt *hwt)
{
	hwt_info_args info = {};
	hwt_stats_args stats = {};
	hwt_schedule_args schedule = {};
	hwt_modify_args modify = {};
	hwt_get_args get = {};
	hwt_list_entry entry = {}, *entries;
	hwt_event event = {};
	hwt_op op = {};
	libhwt_queue *queue;
	libhwt_queue_options options = {};
	uint64_t id, cursor = 0;
	size_t count;
	int sum = 0;

	op.opcode = HWT_OP_SCHEDULE;
	op.time_ns = 5;
	sum += libhwt_adopt(&hwt, 0) + libhwt_fd(hwt) + (int)libhwt_now(hwt);
	sum += libhwt_info(hwt, &info) + libhwt_stats(hwt, &stats);
	sum += libhwt_after(hwt, 1, 2, &id) + libhwt_at(hwt, 1, 2, &id);
	sum += libhwt_every(hwt, 1, 2, &id) + libhwt_schedule(hwt, &schedule);
	sum += libhwt_modify(hwt, id, 1) + libhwt_modify_at(hwt, id, 1);
	sum += libhwt_reschedule(hwt, &modify) + libhwt_cancel(hwt, id);
	sum += libhwt_get(hwt, id, &get) + libhwt_stop(hwt, &id);
	sum += libhwt_list(hwt, &cursor, &entry, 1) + libhwt_save(hwt, &entries, &count);
	sum += libhwt_restore(hwt, &entry, 1, &id) + libhwt_next(hwt, &event, 1, HWT_NEVER);
	sum += libhwt_batch(hwt, &op, 1) + libhwt_queue_new(&queue, hwt, &options);
	sum += libhwt_queue_kind(queue) + libhwt_queue_add(queue, &op, 1);
	sum += libhwt_queue_after(queue, 1, 2) + libhwt_queue_at(queue, 1, 2);
	sum += libhwt_queue_modify(queue, id, 1) + libhwt_queue_modify_at(queue, id, 1);
	sum += libhwt_queue_cancel(queue, id) + libhwt_queue_submit(queue);
	sum += libhwt_queue_results(queue, &op, 1) + libhwt_queue_next(queue, &event, 1, 0);
	libhwt_close(hwt);
	return sum;
}

int main(int argc, char **)
{
	libhwt_options options = libhwt_options();
	libhwt *hwt = 0;

	options.size = sizeof(options);
	options.device = "/dev/hwt-is-not-here";
	if (libhwt_open(&hwt, &options) != -ENOENT)
		return 1;
	options.device = "/dev/null";
	if (libhwt_open(&hwt, &options) != -ENOTTY || hwt)
		return 1;
	return argc > 100 ? all(hwt) : 0;
}
