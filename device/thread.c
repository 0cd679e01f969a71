// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: contexts that have a wheel of their own
 *
 * The code here uses hwt.h as any other kernel module does. So a program with such a context runs,
 * and tests, the engine that kernel code uses.
 */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/nospec.h>
#include <linux/xarray.h>

#include "hwt.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/thread.h"

/*
 * Choose the CPU and the priority of the wheel's thread, and how it waits. The limits of the
 * program's cgroups do not apply to this thread, so the program needs CAP_SYS_NICE.
 */
int hwt_thread_params(const struct hwt_setup_args *args, struct hwt_wheel_params *params)
{
	bool pinned = args->flags & HWT_SETUP_CPU;
	bool busy = args->flags & HWT_SETUP_BUSY_WAIT;

	if (args->priority > HWT_PRIO_FIFO || (args->cpu && !pinned) ||
	    (busy && (!pinned || args->priority)))
		return -EINVAL;
	if (!(args->flags & HWT_SETUP_THREAD))
		return pinned || args->priority ? -EINVAL : 0;
	if (!capable(CAP_SYS_NICE))
		return -EPERM;
	params->priority = args->priority;
	if (pinned) {
		if (args->cpu >= nr_cpu_ids || !cpu_online(args->cpu))
			return -EINVAL;
		params->cpus = cpumask_of(array_index_nospec(args->cpu, nr_cpu_ids));
	}
	if (busy)
		params->wait = HWT_WAIT_BUSY;
	return 0;
}

static void hwt_thread_expire(struct hwt_timeout *timeout)
{
	struct hwt_entry *entry = container_of(timeout, struct hwt_entry, timeout);
	struct hwt_context *ctx = entry->ctx;
	bool wake = false;

	xa_lock(&ctx->entries);
	/*
	 * Do not fire if another task has taken the lock before this task, and has cancelled the
	 * timeout (then entry->final is set) or modified it (then it is armed again).
	 */
	if (!entry->final && !(hwt_timeout_state(timeout) & HWT_F_ARMED))
		wake = hwt_entry_fire(entry, hwt_context_now(ctx));
	xa_unlock(&ctx->entries);
	if (wake)
		hwt_event_wake(ctx);
}

/* A hold has ended: free the entry if this was the last. Its place in the table counts as one. */
static void hwt_thread_release(struct hwt_timeout *timeout)
{
	struct hwt_entry *entry = container_of(timeout, struct hwt_entry, timeout);
	struct hwt_context *ctx = entry->ctx;

	xa_lock(&ctx->entries);
	if (!--entry->holds)
		hwt_entry_free(entry);
	xa_unlock(&ctx->entries);
}

static const struct hwt_timeout_ops hwt_thread_ops = {
	.expire		= hwt_thread_expire,
	.release	= hwt_thread_release,
};

void hwt_thread_init(struct hwt_entry *entry)
{
	hwt_timeout_init(&entry->timeout, entry->ctx->wheel, &hwt_thread_ops);
}

/* Arm an entry. @time_ns: a delay, or a deadline on the context's clock. Return 0 or an error. */
int hwt_thread_arm(struct hwt_entry *entry, const struct hwt_op *op, u64 time_ns, u64 period_ns)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	bool absolute = op->flags & HWT_ARM_ABSOLUTE;
	int ret;

	if (!hwt_entry_periodic(entry))
		ret = hwt_schedule_flags(&entry->timeout, time_ns, op->slack_ns,
					 absolute ? HWT_SCHEDULE_AT : 0);
	else
		ret = absolute ?
			hwt_schedule_periodic_at(&entry->periodic, time_ns, period_ns,
						 entry->mode) :
			hwt_schedule_periodic(&entry->periodic, time_ns, period_ns,
					      entry->mode);
	if (ret == -EAGAIN)
		return hwt_context_limited(entry->ctx, HWT_LIMIT_PENDING);
	if (ret < 0)
		return ret;
	if (!(ret & HWT_WAS_HELD))
		entry->holds++;
	return 0;
}
