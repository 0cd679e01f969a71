// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recipes: handles, retry, debounce.
 *
 * hwt-test: timeout 120
 */
#include <linux/cpumask.h>
#include <linux/slab.h>

#include "hwt_ktest.h"
#include "hwt_ktest_probe.h"

static struct hwt_wheel *wheel;

/* -- Handles ----------------------------------------------------------------- */

/* A record of the callbacks of a handle. */
struct shot {
	u64			earliest;
	int			again;		/* number of times that it schedules itself again */
	bool			keep;		/* take a reference in the callback */
	struct hwt_handle	*handle;	/* the argument of the callback */
	atomic_t		fired, early, cancelled;
	atomic_t		odd;		/* wrong results in the callback */
};

static void shot_fn(struct hwt_handle *handle)
{
	struct shot *shot = handle->data;
	u64 now = hwt_wheel_now(hwt_timeout_wheel(&handle->timeout));
	int ret;

	if (now < shot->earliest)
		atomic_inc(&shot->early);
	if (shot->handle && shot->handle != handle)
		atomic_inc(&shot->odd);
	shot->handle = handle;
	if (shot->keep)
		hwt_handle_get(handle);
	if (shot->again) {
		shot->again--;
		shot->earliest = now + KT_MS;
		hwt_handle_get(handle);
		ret = hwt_schedule(&handle->timeout, KT_MS);
		if (ret != HWT_WAS_HELD)
			atomic_inc(&shot->odd);
		if (ret < 0 || ret & HWT_WAS_HELD)
			hwt_handle_put(handle);
	}
	atomic_inc_return_release(&shot->fired);
}

static void shot_cancelled(struct hwt_handle *handle)
{
	struct shot *shot = handle->data;

	atomic_inc(&shot->cancelled);
}

static struct hwt_handle *shoot(struct shot *shot, u64 delay_ns)
{
	shot->earliest = hwt_wheel_now(wheel) + delay_ns;
	return hwt_new_timeout(wheel, delay_ns, shot_fn, shot_cancelled, shot, GFP_KERNEL);
}

static int shots_fired(const struct shot *shot)
{
	return atomic_read_acquire(&shot->fired);
}

/* Wait until the caller has the only reference: the hold ends soon after the callback. */
static bool __init alone(struct hwt_handle *handle)
{
	return KT_WAIT(refcount_read(&handle->refs) == 1);
}

static void __init test_life(void)
{
	static struct shot shots[7];
	struct hwt_handle *handle;
	int i, odd = 0;

	handle = shoot(&shots[0], 20 * KT_MS);
	KTEST(!IS_ERR(handle) && handle->data == &shots[0] && hwt_pending(&handle->timeout) &&
	      hwt_timeout_wheel(&handle->timeout) == wheel, "a new handle is pending");
	KTEST(KT_WAIT(shots_fired(&shots[0]) == 1) && shots[0].handle == handle,
	      "it fires, with its data");
	KTEST(alone(handle) && hwt_expired(&handle->timeout) && shots_fired(&shots[0]) == 1,
	      "it fires once, and the caller keeps a reference");
	hwt_handle_put(handle);

	handle = shoot(&shots[1], 20 * KT_MS);
	hwt_handle_put(handle);
	KTEST(KT_WAIT(shots_fired(&shots[1]) == 1), "a handle put before it fires: it fires");

	handle = shoot(&shots[2], KT_HOUR);
	KTEST(hwt_cancel(&handle->timeout), "a handle cancelled, and put");
	hwt_handle_put(handle);
	handle = shoot(&shots[3], KT_HOUR);
	KTEST(hwt_cancel_sync(&handle->timeout) == 1 && refcount_read(&handle->refs) == 1,
	      "after cancel_sync the caller has the last reference");
	KTEST(atomic_read(&shots[3].cancelled) == 1 && !atomic_read(&shots[0].cancelled),
	      "its cancelled function was called, that of a fired handle was not");
	hwt_handle_put(handle);
	handle = shoot(&shots[4], KT_HOUR);
	KTEST(hwt_cancel(&handle->timeout) && alone(handle) && hwt_cancelled(&handle->timeout),
	      "after a cancel the caller soon has the last reference");
	shots[4].earliest = 0;
	hwt_handle_get(handle);
	KTEST(hwt_schedule(&handle->timeout, 0) == 0, "a new hold with a new reference begins");
	hwt_handle_put(handle);
	KTEST(KT_WAIT(shots_fired(&shots[4]) == 1), "it fires");

	shots[5].keep = true;
	handle = shoot(&shots[5], 0);
	hwt_handle_put(handle);
	KTEST(KT_WAIT(shots_fired(&shots[5]) == 1) && shots[5].handle == handle &&
	      alone(handle), "its function takes a reference");
	hwt_handle_put(handle);

	shots[6].again = 3;
	handle = shoot(&shots[6], KT_MS);
	KTEST(KT_WAIT(shots_fired(&shots[6]) == 4) && alone(handle),
	      "its function schedules it again: one hold, with one reference");
	hwt_handle_put(handle);
	for (i = 0; i < ARRAY_SIZE(shots); i++)
		odd += atomic_read(&shots[i].early) || atomic_read(&shots[i].odd);
	KTEST(odd == 0 && !shots_fired(&shots[2]) && !shots_fired(&shots[3]),
	      "none was early, no cancelled handle has fired");
}

static void __init test_refused(void)
{
	struct hwt_wheel *full = kt_wheel("full", .max_pending = 1);
	struct hwt_handle *first, *handle;
	static struct shot shot;

	handle = hwt_new_timeout(wheel, 0, NULL, NULL, &shot, GFP_KERNEL);
	KTEST(IS_ERR(handle) && PTR_ERR(handle) == -EINVAL, "refused: no function");
	handle = hwt_new_timeout(NULL, 0, shot_fn, NULL, &shot, GFP_KERNEL);
	KTEST(IS_ERR(handle) && PTR_ERR(handle) == -EINVAL, "refused: no wheel");
	first = hwt_new_timeout(full, KT_HOUR, shot_fn, NULL, &shot, GFP_KERNEL);
	handle = hwt_new_timeout(full, KT_HOUR, shot_fn, NULL, &shot, GFP_KERNEL);
	KTEST(!IS_ERR(first) && IS_ERR(handle) && PTR_ERR(handle) == -EAGAIN,
	      "refused: beyond max_pending");
	KTEST(hwt_wheel_stop(full, NULL, NULL) == 1 && refcount_read(&first->refs) == 1 &&
	      hwt_cancelled(&first->timeout), "a stop puts the reference of the hold");
	hwt_handle_put(first);
	handle = hwt_new_timeout(full, 0, shot_fn, NULL, &shot, GFP_KERNEL);
	KTEST(IS_ERR(handle) && PTR_ERR(handle) == -ESHUTDOWN, "refused: a stopped wheel");
	hwt_wheel_destroy(full);
	KTEST(shots_fired(&shot) == 0, "none of these fires");
}

/* -- Retry ------------------------------------------------------------------- */

/* Is the next try after a delay of @least_ns to @most_ns, rounded up to a tick? */
static bool __init next_try(struct hwt_timeout *timeout, struct hwt_backoff *backoff,
			    u64 least_ns, u64 most_ns)
{
	u64 before = hwt_wheel_now(wheel), deadline;
	u32 tries = backoff->tries;
	int ret = hwt_retry(timeout, backoff);

	/* A try without a delay may have fired by now, and has no deadline then. */
	deadline = hwt_deadline(timeout) ?: least_ns ? 0 : before;
	if (ret >= 0 && backoff->tries == tries + 1 && deadline >= before + least_ns &&
	    deadline <= hwt_wheel_now(wheel) + most_ns + KT_MS)
		return true;
	pr_info("# try %u: %d, %llu us\n", tries, ret,
		div_u64(deadline - before, NSEC_PER_USEC));
	return false;
}

static void __init test_backoff(void)
{
	static const unsigned int seconds[] = { 10, 20, 40, 80, 160, 300, 300, 300 };
	struct hwt_backoff backoff = { .first_ns = 10 * KT_SECOND, .most_ns = 300 * KT_SECOND };
	int i, odd, low = 0, high = 0;
	u64 delay, before;
	struct kt kt;

	kt_init(&kt, wheel, &kt_plain_ops);
	for (i = 0, odd = 0; i < ARRAY_SIZE(seconds); i++)
		odd += !next_try(&kt.timeout, &backoff, seconds[i] * KT_SECOND,
				 seconds[i] * KT_SECOND);
	KTEST(odd == 0, "retry: delays double, up to the longest");
	for (i = 0; i < 100; i++)
		odd += !next_try(&kt.timeout, &backoff, 300 * KT_SECOND, 300 * KT_SECOND);
	KTEST(odd == 0 && backoff.tries == 108, "retry: then they stay, without a limit");
	backoff.tries = 0;
	KTEST(next_try(&kt.timeout, &backoff, 10 * KT_SECOND, 10 * KT_SECOND),
	      "retry: tries set to 0: it begins anew");

	backoff = (struct hwt_backoff) { .first_ns = KT_HOUR, .most_ns = KT_HOUR, .limit = 3 };
	for (i = 0, odd = 0; i < 3; i++)
		odd += !next_try(&kt.timeout, &backoff, KT_HOUR, KT_HOUR);
	hwt_cancel(&kt.timeout);
	KTEST(odd == 0 && hwt_retry(&kt.timeout, &backoff) == -ETIME &&
	      hwt_retry(&kt.timeout, &backoff) == -ETIME && backoff.tries == 3 &&
	      !hwt_pending(&kt.timeout), "retry: at the limit: -ETIME, not scheduled");
	backoff.tries = 0;
	KTEST(next_try(&kt.timeout, &backoff, KT_HOUR, KT_HOUR), "retry: tries set to 0: again");

	backoff = (struct hwt_backoff) {
		.first_ns = 100 * KT_SECOND, .most_ns = 200 * KT_SECOND, .jitter_pct = 30,
	};
	odd = !next_try(&kt.timeout, &backoff, 70 * KT_SECOND, 100 * KT_SECOND);
	for (i = 0; i < 300; i++) {
		before = hwt_wheel_now(wheel);
		odd += !next_try(&kt.timeout, &backoff, 140 * KT_SECOND, 200 * KT_SECOND);
		delay = hwt_deadline(&kt.timeout) - before;
		low += delay < 160 * KT_SECOND;
		high += delay > 180 * KT_SECOND;
	}
	/* The probability that one of these counts is 0 is 10^-50. */
	KTEST(odd == 0 && low && high, "retry: a jitter of 30%%: %d low, %d high", low, high);
	backoff.jitter_pct = 100;
	for (i = 0, odd = 0; i < 100; i++)
		odd += !next_try(&kt.timeout, &backoff, 0, 200 * KT_SECOND);
	KTEST(odd == 0, "retry: a jitter of 100%%: any delay");
	hwt_cancel_sync(&kt.timeout);
}

static void __init test_backoff_extremes(void)
{
	struct hwt_backoff backoff = { .first_ns = U64_MAX, .most_ns = U64_MAX };
	struct kt kt;

	kt_init(&kt, wheel, &kt_plain_ops);
	KTEST(hwt_retry(&kt.timeout, &backoff) == 0 && hwt_retry(&kt.timeout, &backoff) >= 0 &&
	      hwt_deadline(&kt.timeout) == U64_MAX && backoff.tries == 2,
	      "retry: a delay of U64_MAX never ends");
	backoff = (struct hwt_backoff) { .first_ns = 1ULL << 62, .most_ns = U64_MAX, .tries = 2 };
	KTEST(hwt_retry(&kt.timeout, &backoff) >= 0 && hwt_deadline(&kt.timeout) == U64_MAX,
	      "retry: a delay that does not fit never ends");
	backoff = (struct hwt_backoff) { .first_ns = U64_MAX, .most_ns = KT_HOUR };
	KTEST(next_try(&kt.timeout, &backoff, KT_HOUR, KT_HOUR),
	      "retry: the first delay is limited by the longest");
	backoff = (struct hwt_backoff) { .first_ns = 1, .most_ns = KT_HOUR, .tries = U32_MAX - 1 };
	KTEST(next_try(&kt.timeout, &backoff, KT_HOUR, KT_HOUR), "retry: after 2^32 - 2 tries");
	backoff = (struct hwt_backoff) { .most_ns = KT_HOUR, .tries = U32_MAX - 1 };
	KTEST(next_try(&kt.timeout, &backoff, 0, 0), "retry: a first delay of 0 stays 0");
	KTEST(KT_WAIT(kt_expirations(&kt) == 1), "retry: a delay of 0 fires");
	backoff = (struct hwt_backoff) { .first_ns = KT_HOUR, .jitter_pct = 100 };
	KTEST(next_try(&kt.timeout, &backoff, 0, 0) && KT_WAIT(kt_expirations(&kt) == 2),
	      "retry: a longest delay of 0 fires");
	backoff = (struct hwt_backoff) {
		.first_ns = U64_MAX, .most_ns = U64_MAX, .jitter_pct = 1, .limit = U32_MAX,
	};
	KTEST(hwt_retry(&kt.timeout, &backoff) >= 0 && hwt_pending(&kt.timeout) &&
	      hwt_deadline(&kt.timeout) == U64_MAX, "retry: U64_MAX, jitter 1%%: never");
	hwt_shutdown_sync(&kt.timeout);
	backoff = (struct hwt_backoff) { .first_ns = 1, .most_ns = 1, .tries = 7, .limit = 8 };
	KTEST(hwt_retry(&kt.timeout, &backoff) == -ESHUTDOWN && backoff.tries == 7,
	      "retry: an error is not a try");
	hwt_timeout_init(&kt.timeout, NULL, &kt_plain_ops);
	KTEST(hwt_retry(&kt.timeout, &backoff) == -EINVAL && backoff.tries == 7,
	      "retry: without a wheel: -EINVAL, not a try");
}

/* -- Debounce ---------------------------------------------------------------- */

/* Report an event. Is the deadline that of the event, or the latest one? */
static bool __init debounced(struct hwt_timeout *timeout, struct hwt_debounce *debounce,
			     bool first)
{
	u64 before = hwt_wheel_now(wheel), was = debounce->first_ns, after, latest, deadline;
	int ret = hwt_debounce(timeout, debounce);

	after = hwt_wheel_now(wheel);
	deadline = hwt_deadline(timeout);
	if (first && (debounce->first_ns < before || debounce->first_ns > after))
		return false;
	if (!first && debounce->first_ns != was)
		return false;
	latest = debounce->first_ns + debounce->most_ns;
	if (latest < debounce->most_ns)
		latest = U64_MAX;
	return ret == (first ? 0 : HWT_WAS_PENDING | HWT_WAS_HELD) &&
	       deadline >= min(before + debounce->quiet_ns, latest) &&
	       deadline < min(after + debounce->quiet_ns, latest) + KT_MS;
}

static void __init test_debounce(void)
{
	struct hwt_debounce debounce = { .quiet_ns = KT_HOUR, .most_ns = KT_HOUR + 30 * KT_MS };
	struct kt kt;
	u64 deadline;
	int i, odd, n;

	kt_init(&kt, wheel, &kt_plain_ops);
	KTEST(debounced(&kt.timeout, &debounce, true), "debounce: the first event arms it");
	for (i = 0, odd = 0; i < 10; i++) {
		usleep_range(5000, 6000);
		odd += !debounced(&kt.timeout, &debounce, false);
	}
	KTEST(odd == 0, "debounce: each later event moves it");
	deadline = debounce.first_ns + debounce.most_ns;
	KTEST(hwt_deadline(&kt.timeout) == kt_tick(deadline),
	      "debounce: but not beyond the maximum delay");
	hwt_cancel_sync(&kt.timeout);
	usleep_range(5000, 6000);
	KTEST(debounced(&kt.timeout, &debounce, true), "debounce: an event after a cancel");
	hwt_cancel_sync(&kt.timeout);

	/* Events do not stop, so only the maximum delay makes it fire. */
	debounce = (struct hwt_debounce) { .quiet_ns = KT_HOUR, .most_ns = 50 * KT_MS };
	kt.earliest = hwt_wheel_now(wheel) + 50 * KT_MS;
	KTEST(KT_WAIT(({
		hwt_debounce(&kt.timeout, &debounce);
		kt_expirations(&kt);
	})) && !atomic_read(&kt.early), "debounce: fires after the maximum delay");
	hwt_cancel_sync(&kt.timeout);
	n = kt_expirations(&kt);
	debounce = (struct hwt_debounce) { .quiet_ns = 20 * KT_MS, .most_ns = U64_MAX };
	kt.earliest = hwt_wheel_now(wheel) + 20 * KT_MS;
	KTEST(debounced(&kt.timeout, &debounce, true) &&
	      KT_WAIT(kt_expirations(&kt) == n + 1) && !atomic_read(&kt.early),
	      "debounce: fires after the quiet time");
	/* End the hold, so that the next event returns 0. */
	hwt_cancel_sync(&kt.timeout);
	debounce.quiet_ns = KT_HOUR;
	KTEST(debounced(&kt.timeout, &debounce, true), "debounce: an event after it fired");
	KTEST(debounced(&kt.timeout, &debounce, false), "debounce: no maximum delay");
	hwt_cancel_sync(&kt.timeout);

	debounce = (struct hwt_debounce) { .quiet_ns = U64_MAX, .most_ns = U64_MAX };
	KTEST(hwt_debounce(&kt.timeout, &debounce) == 0 &&
	      hwt_deadline(&kt.timeout) == U64_MAX && hwt_cancel_sync(&kt.timeout) == 1,
	      "debounce: both times U64_MAX: never due");
	debounce.most_ns = KT_HOUR;
	KTEST(hwt_debounce(&kt.timeout, &debounce) == 0 &&
	      hwt_deadline(&kt.timeout) == kt_tick(debounce.first_ns + KT_HOUR) &&
	      hwt_cancel_sync(&kt.timeout) == 1, "debounce: only the maximum delay");
	debounce = (struct hwt_debounce) { .quiet_ns = KT_HOUR };
	KTEST(hwt_debounce(&kt.timeout, &debounce) == 0 && KT_WAIT(kt_expirations(&kt) == n + 2),
	      "debounce: a maximum delay of 0 fires");
	hwt_cancel_sync(&kt.timeout);
	debounce = (struct hwt_debounce) { .most_ns = KT_HOUR };
	KTEST(hwt_debounce(&kt.timeout, &debounce) == 0 && KT_WAIT(kt_expirations(&kt) == n + 3),
	      "debounce: a quiet time of 0 fires");
	hwt_shutdown_sync(&kt.timeout);
	KTEST(hwt_debounce(&kt.timeout, &debounce) == -ESHUTDOWN, "debounce: -ESHUTDOWN");
	hwt_timeout_init(&kt.timeout, NULL, &kt_plain_ops);
	KTEST(hwt_debounce(&kt.timeout, &debounce) == -EINVAL, "debounce: no wheel: -EINVAL");
}

/* An event while the callback executes must cause another callback. */
static void __init test_debounce_calling(void)
{
	struct hwt_debounce debounce = { .quiet_ns = KT_MS, .most_ns = KT_HOUR };
	static struct kt_stay calling;
	u64 before;

	kt_stay_init(&calling, wheel, &kt_stay_ops);
	hwt_debounce(&calling.kt.timeout, &debounce);
	KT_WAIT(kt_inside(&calling));
	before = hwt_wheel_now(wheel);
	KTEST(hwt_debounce(&calling.kt.timeout, &debounce) == HWT_WAS_HELD &&
	      debounce.first_ns >= before && hwt_pending(&calling.kt.timeout),
	      "debounce: an event during the callback is a first event");
	complete_all(&calling.out);
	KTEST(KT_WAIT(kt_expirations(&calling.kt) == 2), "debounce: the callback runs again");
	hwt_shutdown_sync(&calling.kt.timeout);
}

/* -- An event while it fires ------------------------------------------------- */

/* A probe delays the first schedule of late_task until the timeout has fired. */
static struct kt late;
static struct task_struct *late_task;

static int late_probe(struct kprobe *probe, struct pt_regs *regs)
{
	u64 end = ktime_get_mono_fast_ns() + KT_SECOND;

		/* Once, as in a long NMI. The wheel's thread is on another CPU. */
	if (cmpxchg(&late_task, current, NULL) == current)
		while (!kt_releases(&late) && ktime_get_mono_fast_ns() < end)
			cpu_relax();
	return 0;
}

static void __init test_debounce_late(void)
{
	struct hwt_debounce debounce = { .quiet_ns = 20 * KT_MS, .most_ns = KT_HOUR };
	struct kprobe at, pending;
	int first, second;

	if (num_online_cpus() < 2 || !kt_probe_entry(&at, "hwt_schedule_at", late_probe)) {
		KTEST_SKIP("needs two CPUs and kprobes");
		return;
	}
	KTEST(kt_probe_entry(&pending, "hwt_schedule_flags", late_probe),
	      "a probe in hwt_schedule_flags()");
	/* The wheel's thread must not be on the CPU where the probe spins. */
	kt_stay_on(cpumask_of(0));
	kt_init(&late, kt_wheel("late", .cpus = cpumask_of(kt_other_cpu(0))), &kt_ops);
	first = hwt_debounce(&late.timeout, &debounce);
	WRITE_ONCE(late_task, current);
	second = hwt_debounce(&late.timeout, &debounce);
	kt_stay_on(NULL);
	unregister_kprobe(&pending);
	unregister_kprobe(&at);
	KTEST(kt_expirations(&late) >= 1 && !READ_ONCE(late_task), "it fires meanwhile");
	/* Each result of 0 means a new hold, which has one release. */
	hwt_shutdown_sync(&late.timeout);
	KTEST(first == 0 && second == 0 && kt_releases(&late) == 2,
	      "debounce: both events begin a hold: %d, %d, released %d", first,
	      second, kt_releases(&late));
	KTEST(hwt_wheel_destroy(hwt_timeout_wheel(&late.timeout)) == 0, "that wheel is destroyed");
}

static void __init selftest(void)
{
	wheel = kt_wheel("recipes");
	test_life();
	test_refused();
	test_backoff();
	test_backoff_extremes();
	test_debounce();
	test_debounce_calling();
	test_debounce_late();
	KTEST(hwt_wheel_pending(wheel) == 0, "no timeout is left pending");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

KSTM_MODULE_LOADERS(test_recipes);
