// SPDX-License-Identifier: GPL-2.0-only
/*
 * Common uses of timeouts; a thin layer over hwt.h
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "core/callback.h"

/* -- Timeouts that are not embedded ------------------------------------------ */

void hwt_handle_expire(struct hwt_timeout *timeout)
{
	struct hwt_handle *handle = container_of(timeout, struct hwt_handle, timeout);

	handle->fn(handle);
}

void hwt_handle_cancelled(struct hwt_timeout *timeout)
{
	struct hwt_handle *handle = container_of(timeout, struct hwt_handle, timeout);

	if (handle->cancelled)
		handle->cancelled(handle);
}

static void hwt_handle_release(struct hwt_timeout *timeout)
{
	hwt_handle_put(container_of(timeout, struct hwt_handle, timeout));
}

const struct hwt_timeout_ops hwt_handle_ops = {
	.expire		= hwt_handle_expire,
	.cancelled	= hwt_handle_cancelled,
	.release	= hwt_handle_release,
};

/**
 * hwt_new_timeout() - allocate a timeout, and schedule it
 * @wheel:    the wheel
 * @delay_ns: the delay from now, ns
 * @fn:       called when the timeout expires, as hwt_timeout_ops.expire
 * @cancelled: called when the timeout was cancelled, as hwt_timeout_ops.cancelled; or NULL
 * @data:     anything; stored in handle->data
 * @gfp:      the flags of the allocation
 *
 * Any context that @gfp allows, but not NMI; on PREEMPT_RT, with preemption and interrupts on (as
 * for kfree()). This is for timeouts that are scheduled once, and then at most cancelled (by
 * hwt_cancel() of &hwt_handle.timeout) or waited for (hwt_wait()). To schedule such a timeout
 * again, first call hwt_handle_get(), to get a reference for the new hold. If the schedule call
 * returns an error or HWT_WAS_HELD, no new hold has begun: call hwt_handle_put().
 *
 * Return: a handle with a reference that the caller puts by hwt_handle_put(); or ERR_PTR: -ENOMEM,
 * -EINVAL if @fn is NULL, or an error of hwt_schedule().
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
	/* The caller gets one reference, and the hold gets one. */
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
 * hwt_handle_put() - drop a reference
 * @handle: the handle; the caller has a reference from hwt_new_timeout() or hwt_handle_get()
 *
 * Any context but NMI; on PREEMPT_RT, with preemption and interrupts on (as for kfree()). This
 * does not cancel the timeout: if it is pending, it still fires.
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
 * hwt_debounce() - handle an event: fire once no event has come for a while
 * @timeout:  the timeout
 * @debounce: the quiet time and the maximum delay. The caller serializes calls with the same
 *            @debounce.
 *
 * Any context.
 *
 * Return: the same as hwt_schedule().
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
	/* The timeout is not pending: this event is the first of a new series. */
	debounce->first_ns = now;
	return hwt_schedule_at(timeout, hwt_sum(now, min(debounce->quiet_ns,
							 debounce->most_ns)));
}
EXPORT_SYMBOL_GPL(hwt_debounce);

/**
 * hwt_retry() - schedule the next try after a failure
 * @timeout: the timeout, which fires when it is time to try again
 * @backoff: the delays and the number of tries. The caller serializes calls with the same @backoff.
 *
 * Any context but NMI; on PREEMPT_RT, with preemption and interrupts on (as for
 * get_random_u32()).
 *
 * Return: the same as hwt_schedule(); or -ETIME after backoff->limit tries, with nothing scheduled.
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
