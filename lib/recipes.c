// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * libhwt: common uses of timeouts; a thin layer over its other functions
 */
#include <errno.h>
#include <sys/random.h>

#include "internal.h"

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Return HWT_NEVER if the sum does not fit. */
static uint64_t sum_ns(uint64_t a, uint64_t b)
{
	return b <= HWT_NEVER - a ? a + b : HWT_NEVER;
}

/* -- Debounce ------------------------------------------------------------ */

/*
 * Handle an event of a series that has begun. Return as libhwt_modify(). -ENOENT: the series has
 * ended, because the event of the timeout was read or the timeout was cancelled.
 */
static int series_move(struct libhwt *context, uint64_t id, const struct libhwt_debounce *debounce,
		       uint64_t now_ns)
{
	uint64_t latest_ns = sum_ns(debounce->first_ns, debounce->most_ns);
	struct hwt_get_args get = { .size = sizeof(get) };
	int ret;

	if (now_ns < latest_ns)
		return libhwt_modify_at(context, id, min_u64(latest_ns,
							     sum_ns(now_ns, debounce->quiet_ns)));
	/* Do not move it: a program that reads too rarely would withdraw the event each time. */
	ret = libhwt_get(context, id, &get);
	return ret ? ret : (int)get.state;
}

/* Return the deadline of a series that begins. */
static uint64_t series_begin(struct libhwt_debounce *debounce, uint64_t now_ns)
{
	debounce->first_ns = now_ns;
	return sum_ns(now_ns, min_u64(debounce->quiet_ns, debounce->most_ns));
}

int libhwt_debounce(struct libhwt *context, struct libhwt_debounce *debounce, uint64_t user_data,
		    uint64_t *id)
{
	uint64_t now_ns = libhwt_now(context);
	int ret = *id ? series_move(context, *id, debounce, now_ns) : -ENOENT;

	if (ret != -ENOENT)
		return ret;
	return libhwt_at(context, series_begin(debounce, now_ns), user_data, id);
}

int libhwt_key_debounce(struct libhwt *context, uint64_t key, struct libhwt_debounce *debounce)
{
	uint64_t now_ns = libhwt_now(context);
	int ret = series_move(context, key, debounce, now_ns);

	if (ret != -ENOENT)
		return ret;
	return libhwt_key_at(context, key, series_begin(debounce, now_ns));
}

/* -- Retry --------------------------------------------------------------- */

static uint32_t random_u32(void)
{
	uint32_t random;

	/* Early in a boot the kernel has no random numbers yet: the clock must do. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = hwtlib_clock_ns(CLOCK_MONOTONIC) * 2654435761U;
	return random;
}

/* Return a random number below @most_ns, or 0 if that is 0. */
static uint64_t random_part(uint64_t most_ns)
{
	uint64_t random = random_u32();

	return (most_ns >> 32) * random + ((most_ns & UINT32_MAX) * random >> 32);
}

/* Compute the delay before the next try. Return 0, or -ETIME after the last try. */
static int next_delay(const struct libhwt_backoff *backoff, uint64_t *delay_ns)
{
	unsigned int doubled = min_u64(backoff->tries, 63);
	uint64_t percent = min_u64(backoff->jitter_pct, 100), delay = backoff->most_ns;

	if (backoff->limit && backoff->tries >= backoff->limit)
		return -ETIME;
	if (backoff->first_ns <= delay >> doubled)
		delay = backoff->first_ns << doubled;
	if (percent)
		delay -= random_part(delay / 100 * percent + delay % 100 * percent / 100);
	*delay_ns = delay;
	return 0;
}

int libhwt_retry(struct libhwt *context, struct libhwt_backoff *backoff, uint64_t user_data,
		 uint64_t *id)
{
	uint64_t delay_ns;
	int ret = next_delay(backoff, &delay_ns);

	if (ret)
		return ret;
	ret = *id ? libhwt_modify(context, *id, delay_ns) : -ENOENT;
	if (ret == -ENOENT)
		ret = libhwt_after(context, delay_ns, user_data, id);
	if (ret >= 0)
		backoff->tries++;
	return ret;
}

int libhwt_key_retry(struct libhwt *context, uint64_t key, struct libhwt_backoff *backoff)
{
	uint64_t delay_ns;
	int ret = next_delay(backoff, &delay_ns);

	if (ret)
		return ret;
	ret = libhwt_key_after(context, key, delay_ns);
	if (ret >= 0)
		backoff->tries++;
	return ret;
}
