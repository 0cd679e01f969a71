// SPDX-License-Identifier: GPL-2.0-only
/*
 * What users of timeouts would write again and again; thin over hwt.h
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "hwt.h"

/* -- Timeouts that are not embedded ------------------------------------------ */

static void hwt_handle_expire(struct hwt_timeout *timeout)
{
	struct hwt_handle *handle = container_of(timeout, struct hwt_handle, timeout);

	handle->fn(handle);
}

static void hwt_handle_cancelled(struct hwt_timeout *timeout)
{
	struct hwt_handle *handle = container_of(timeout, struct hwt_handle, timeout);

	if (handle->cancelled)
		handle->cancelled(handle);
}

static void hwt_handle_release(struct hwt_timeout *timeout)
{
	hwt_handle_put(container_of(timeout, struct hwt_handle, timeout));
}

static const struct hwt_timeout_ops hwt_handle_ops = {
	.expire		= hwt_handle_expire,
	.cancelled	= hwt_handle_cancelled,
	.release	= hwt_handle_release,
};

/**
 * hwt_new_timeout() - make a timeout, and schedule it
 * @wheel:    the wheel
 * @delay_ns: from now, ns
 * @fn:       called when it expires, as hwt_timeout_ops.expire
 * @cancelled: called when it was cancelled, as hwt_timeout_ops.cancelled; NULL: nothing is
 * @data:     anything; handle->data
 * @gfp:      how to allocate. What the caller is not allowed to wait for, this is not.
 *
 * Any context that @gfp is good for; not NMI, and as for hwt_handle_put(). For those who
 * arm once and at most cancel (hwt_cancel(&handle->timeout)) or wait (hwt_wait()). To
 * schedule it again: hwt_handle_get() first, and hwt_handle_put() if that returned an
 * error or HWT_WAS_HELD.
 *
 * Return: a handle, the caller's until hwt_handle_put(); or ERR_PTR: -ENOMEM, -EINVAL without @fn,
 * or as hwt_schedule().
 */
struct hwt_handle *hwt_new_timeout(struct hwt_wheel *wheel, u64 delay_ns,
				   void (*fn)(struct hwt_handle *handle),
				   void (*cancelled)(struct hwt_handle *handle), void *data,
				   gfp_t gfp)
{
	struct hwt_handle *handle;
	int ret;

	if (!fn)
		return ERR_PTR(-EINVAL);
	handle = kmalloc(sizeof(*handle), gfp);
	if (!handle)
		return ERR_PTR(-ENOMEM);
	hwt_timeout_init(&handle->timeout, wheel, &hwt_handle_ops);
	/* The caller's, and the hold's. */
	refcount_set(&handle->refs, 2);
	handle->fn = fn;
	handle->cancelled = cancelled;
	handle->data = data;
	ret = hwt_schedule(&handle->timeout, delay_ns);
	if (ret < 0) {
		kfree(handle);
		return ERR_PTR(ret);
	}
	return handle;
}
EXPORT_SYMBOL_GPL(hwt_new_timeout);

/**
 * hwt_handle_put() - give back a reference
 * @handle: from hwt_new_timeout() or hwt_handle_get()
 *
 * Any context but NMI; on PREEMPT_RT, with preemption and interrupts on (as for kfree()). A
 * timeout that is pending still fires: cancel it first if it must not.
 */
void hwt_handle_put(struct hwt_handle *handle)
{
	if (refcount_dec_and_test(&handle->refs))
		kfree(handle);
}
EXPORT_SYMBOL_GPL(hwt_handle_put);

/* -- Recipes ------------------------------------------------------------------ */

static u64 hwt_sum(u64 a, u64 b)
{
	u64 sum;

	return check_add_overflow(a, b, &sum) ? U64_MAX : sum;
}

/**
 * hwt_debounce() - an event has come: call when it has been quiet for a while
 * @timeout:  the timeout
 * @debounce: for how long, and how long at the most; calls with one of them exclude each
 *            other, by the caller's means
 *
 * Any context.
 *
 * Return: as hwt_schedule().
 */
int hwt_debounce(struct hwt_timeout *timeout, struct hwt_debounce *debounce)
{
	struct hwt_wheel *wheel = hwt_timeout_wheel(timeout);
	u64 now;
	int ret;

	if (!wheel)
		return -EINVAL;
	now = hwt_wheel_now(wheel);
	ret = hwt_schedule_pending_at(timeout, min(hwt_sum(now, debounce->quiet_ns),
						   hwt_sum(debounce->first_ns, debounce->most_ns)));
	if (ret != -ENOENT)
		return ret;
	/* It has fired, or was cancelled: this event is the first of the next time. */
	debounce->first_ns = now;
	return hwt_schedule_at(timeout, hwt_sum(now, min(debounce->quiet_ns,
							 debounce->most_ns)));
}
EXPORT_SYMBOL_GPL(hwt_debounce);

/**
 * hwt_retry() - it has failed: schedule the next try
 * @timeout: fires when it is time to try again
 * @backoff: how often, and how long to wait; calls with one of them exclude each other, by
 *           the caller's means
 *
 * Any context but NMI; on PREEMPT_RT, with preemption and interrupts on (as for
 * get_random_u32()).
 *
 * Return: as hwt_schedule(); -ETIME if there have been @limit tries: nothing was scheduled.
 */
int hwt_retry(struct hwt_timeout *timeout, struct hwt_backoff *backoff)
{
	u32 doubled = min(backoff->tries, 63U), jitter_pct = min(backoff->jitter_pct, 100U);
	u64 delay = backoff->most_ns;
	int ret;

	if (backoff->limit && backoff->tries >= backoff->limit)
		return -ETIME;
	if (backoff->first_ns <= delay >> doubled)
		delay = backoff->first_ns << doubled;
	delay -= mul_u64_u32_shr(mul_u64_u32_div(delay, jitter_pct, 100), get_random_u32(), 32);
	ret = hwt_schedule(timeout, delay);
	if (ret >= 0)
		backoff->tries++;
	return ret;
}
EXPORT_SYMBOL_GPL(hwt_retry);
