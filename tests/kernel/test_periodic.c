// SPDX-License-Identifier: GPL-2.0-only
/*
 * Periodic timeouts: fixed rate with overruns, fixed delay, changes, and the ways to end them.
 *
 * hwt-test: shared
 */
#include "hwt_ktest.h"

#define MOST	64

static struct {
	struct kt		kt;
	unsigned int		sleep_ms;	/* in the callback */
	unsigned int		last;		/* the firing that cancels the timeout; 0: none */
	unsigned int		change;		/* the firing that calls @change_fn; 0: none */
	int			(*change_fn)(void);
	int			change_ret;
	bool			cancel_ret, pending, pending_after, expired;
	struct {
		u64	began, ended, overruns, total;
	} at[MOST];
} p;

static void p_expire(struct hwt_timeout *timeout)
{
	u64 now = hwt_wheel_now(hwt_timeout_wheel(timeout));
	unsigned int n = atomic_read(&p.kt.expired);

	if (n < MOST) {
		p.at[n].began = now;
		p.at[n].overruns = hwt_overruns(&p.kt.periodic);
		p.at[n].total = hwt_overruns_total(&p.kt.periodic);
	}
	p.pending = hwt_pending(timeout);
	p.expired = hwt_expired(timeout);
	if (p.sleep_ms)
		msleep(p.sleep_ms);
	if (n + 1 == p.change)
		p.change_ret = p.change_fn();
	if (n + 1 == p.last) {
		p.cancel_ret = hwt_cancel(timeout);
		p.pending_after = hwt_pending(timeout);
	}
	if (n < MOST)
		p.at[n].ended = hwt_wheel_now(hwt_timeout_wheel(timeout));
	atomic_inc_return_release(&p.kt.expired);
}

static const struct hwt_timeout_ops p_ops = {
	.expire = p_expire, .cancelled = kt_cancelled, .release = kt_release,
};

static void __init p_init(struct hwt_wheel *wheel)
{
	memset(&p, 0, sizeof(p));
	kt_init_periodic(&p.kt, wheel, &p_ops);
}

static unsigned int fired(void)
{
	return kt_expirations(&p.kt);
}

static bool __init p_released(int n)
{
	return KT_WAIT(kt_releases(&p.kt) == n) && fired();
}

static void __init test_fixed_rate(struct hwt_wheel *wheel)
{
	const u64 period = 10 * KT_MS;
	u64 first = hwt_wheel_now(wheel) + 25 * KT_MS;
	unsigned int i, early = 0, odd = 0;

	p_init(wheel);
	p.last = 30;
	KTEST(hwt_schedule_periodic_at(&p.kt.periodic, first, period,
				       HWT_MODE_FIXED_RATE) == 0 &&
	      hwt_pending(&p.kt.timeout), "fixed rate: armed");
	KTEST(p_released(1) && fired() == 30, "fixed rate: fires 30 times");
	for (i = 0; i < 30; i++) {
		early += p.at[i].began < first + (i + p.at[i].total) * period;
		odd += p.at[i].total != p.at[i].overruns +
					(i ? p.at[i - 1].total : 0);
	}
	KTEST(early == 0, "fixed rate: firings before their deadlines: %u", early);
	KTEST(odd == 0, "fixed rate: the overruns add up");
	KTEST(p.pending && p.expired, "in the callback: expired, and pending again");
	KTEST(p.cancel_ret && !p.pending_after, "in the callback: cancel returns true");
	KTEST(atomic_read(&p.kt.cancelled) == 1 && hwt_cancelled(&p.kt.timeout) &&
	      !hwt_held(&p.kt.timeout), "all firings were one hold, with one ->cancelled");
	msleep(50);
	KTEST(fired() == 30, "after that it does not fire");
}

static void __init test_slow_callback(struct hwt_wheel *wheel)
{
	unsigned int i, odd = 0;
	u64 first, missed;

	p_init(wheel);
	p.last = 5;
	p.sleep_ms = 58;
	first = hwt_wheel_now(wheel);
	hwt_schedule_periodic_at(&p.kt.periodic, first, 10 * KT_MS, HWT_MODE_FIXED_RATE);
	KTEST(p_released(1) && fired() == 5, "slow callback: fires 5 times");
	for (i = 1; i < 5; i++) {
		/* The periods missed since the previous firing. */
		missed = p.at[i].total - p.at[i - 1].total;
		odd += missed < 2 || missed != p.at[i].overruns;
		odd += p.at[i].began < first + (i + p.at[i].total) * 10 * KT_MS;
		odd += p.at[i].began < p.at[i - 1].ended;
	}
	KTEST(odd == 0, "slow callback: the periods that it takes are overruns");
}

static void __init test_late_start(struct hwt_wheel *wheel)
{
	u64 now = hwt_wheel_now(wheel);

	p_init(wheel);
	p.last = 1;
	hwt_schedule_periodic_at(&p.kt.periodic, now - 95 * KT_MS, 10 * KT_MS,
				 HWT_MODE_FIXED_RATE);
	KTEST(p_released(1) && p.at[0].overruns >= 9,
	      "a first deadline in the past: the periods since then are overruns");
	p_init(wheel);
	p.last = 3;
	hwt_schedule_periodic(&p.kt.periodic, 0, 1, HWT_MODE_FIXED_RATE);
	KTEST(p_released(1) && p.at[2].overruns > 0, "a period of 1 ns: overruns, no burst");
}

static void __init test_fixed_delay(struct hwt_wheel *wheel)
{
	unsigned int i, early = 0, odd = 0;

	p_init(wheel);
	p.last = 10;
	p.sleep_ms = 5;
	hwt_schedule_periodic(&p.kt.periodic, 0, 20 * KT_MS, HWT_MODE_FIXED_DELAY);
	KTEST(p_released(1) && fired() == 10, "fixed delay: fires ten times");
	for (i = 1; i < 10; i++) {
		early += p.at[i].began < p.at[i - 1].ended + 20 * KT_MS;
		odd += p.at[i].overruns || p.at[i].total;
	}
	KTEST(early == 0, "fixed delay: the period counts from the end of the callback");
	KTEST(odd == 0, "fixed delay: no overruns");
}

/* -- Changes ------------------------------------------------------------- */

static int to_one_shot(void)
{
	return hwt_schedule(&p.kt.timeout, 5 * KT_MS);
}

static int to_delay(void)
{
	return hwt_schedule_periodic(&p.kt.periodic, 40 * KT_MS, 30 * KT_MS,
				     HWT_MODE_FIXED_DELAY);
}

static int cancel_and_again(void)
{
	hwt_cancel(&p.kt.timeout);
	return hwt_schedule_periodic(&p.kt.periodic, 5 * KT_MS, 5 * KT_MS,
				     HWT_MODE_FIXED_RATE);
}

static int earlier(void)
{
	/* The timeout is not armed, so any deadline is earlier. */
	return hwt_schedule_earlier(&p.kt.timeout, KT_HOUR);
}

/* Begin with a fixed rate, which @fn changes in the callback number @change. */
static void __init p_change(struct hwt_wheel *wheel, unsigned int change, int (*fn)(void),
			    unsigned int last, u64 period)
{
	p_init(wheel);
	p.change = change;
	p.change_fn = fn;
	p.last = last;
	hwt_schedule_periodic(&p.kt.periodic, 0, period, HWT_MODE_FIXED_RATE);
}

static void __init test_changes(struct hwt_wheel *wheel)
{
	const int both = HWT_WAS_PENDING | HWT_WAS_HELD;
	u64 now;

	p_init(wheel);
	hwt_schedule_periodic(&p.kt.periodic, KT_HOUR, KT_HOUR, HWT_MODE_FIXED_RATE);
	p.last = 3;
	now = hwt_wheel_now(wheel);
	KTEST(hwt_schedule_periodic(&p.kt.periodic, 5 * KT_MS, 30 * KT_MS,
				    HWT_MODE_FIXED_RATE) == both && p_released(1) &&
	      fired() == 3 && p.at[2].began >= now + 65 * KT_MS,
	      "scheduled again before it fired: only the new period counts");

	p_init(wheel);
	hwt_schedule_periodic(&p.kt.periodic, KT_HOUR, KT_MS, HWT_MODE_FIXED_RATE);
	KTEST(hwt_schedule(&p.kt.timeout, 5 * KT_MS) == both &&
	      p_released(1) && fired() == 1 && !hwt_pending(&p.kt.timeout),
	      "a one-shot schedule makes it a one-shot");
	KTEST(hwt_schedule_periodic(&p.kt.periodic, 0, KT_MS, HWT_MODE_FIXED_RATE) == 0 &&
	      KT_WAIT(fired() >= 3), "a periodic schedule makes it periodic again");
	KTEST(hwt_shutdown_sync(&p.kt.timeout) == 1, "shutdown_sync ends it");

	p_change(wheel, 2, to_one_shot, 0, 5 * KT_MS);
	KTEST(p_released(1) && fired() == 3 && p.change_ret == both &&
	      !p.pending, "in its callback, a one-shot schedule: fires once more");

	p_change(wheel, 2, to_delay, 4, 5 * KT_MS);
	KTEST(p_released(1) && fired() == 4 && p.change_ret == both &&
	      p.at[2].began >= p.at[1].began + 40 * KT_MS &&
	      p.at[3].began >= p.at[2].ended + 30 * KT_MS &&
	      p.at[3].total == 0, "in its callback, another period and mode: both take effect");

	p_change(wheel, 1, cancel_and_again, 3, KT_HOUR);
	KTEST(p_released(1) && fired() == 3 && p.change_ret == HWT_WAS_HELD,
	      "in its callback, a cancel and a schedule: fires on");

	p_change(wheel, 1, earlier, 0, KT_MS);
	KTEST(KT_WAIT(fired() == 1) && KT_WAIT(!hwt_running(&p.kt.timeout)) &&
	      p.change_ret == both && hwt_remaining(&p.kt.timeout) > KT_HOUR / 2,
	      "in its callback, schedule_earlier: arms it, as it is not armed");
	KTEST(hwt_cancel_sync(&p.kt.timeout) == 1, "cancel_sync returns 1");
}

/* -- Ends ---------------------------------------------------------------- */

static unsigned int handed;

static void take(struct hwt_timeout *timeout, void *arg)
{
	handed += timeout == &p.kt.timeout && !hwt_pending(timeout);
}

static void __init test_ends(void)
{
	struct hwt_wheel *wheel = kt_wheel("ends");
	unsigned int n;

	p_init(wheel);
	KTEST(hwt_schedule_periodic(&p.kt.periodic, 0, 0, HWT_MODE_FIXED_RATE) == -EINVAL &&
	      hwt_schedule_periodic_at(&p.kt.periodic, 0, 0, HWT_MODE_FIXED_RATE) == -EINVAL,
	      "a period of 0 returns -EINVAL");
	KTEST(hwt_schedule_periodic(&p.kt.periodic, 0, 1, 7) == -EINVAL,
	      "an unknown mode returns -EINVAL");
	KTEST(!hwt_held(&p.kt.timeout), "the timeout is still idle");

	hwt_schedule_periodic(&p.kt.periodic, U64_MAX, KT_MS, HWT_MODE_FIXED_RATE);
	KTEST(hwt_deadline(&p.kt.timeout) == U64_MAX &&
	      hwt_cancel_sync(&p.kt.timeout) == 1, "a first deadline of U64_MAX never comes");
	hwt_schedule_periodic(&p.kt.periodic, 0, U64_MAX, HWT_MODE_FIXED_RATE);
	KTEST(KT_WAIT(fired() == 1) && KT_WAIT(!hwt_running(&p.kt.timeout)) &&
	      hwt_deadline(&p.kt.timeout) == U64_MAX &&
	      hwt_cancel_sync(&p.kt.timeout) == 1, "fixed rate: a period of U64_MAX never ends");
	hwt_schedule_periodic(&p.kt.periodic, 0, U64_MAX, HWT_MODE_FIXED_DELAY);
	KTEST(KT_WAIT(fired() == 2) && KT_WAIT(!hwt_running(&p.kt.timeout)) &&
	      hwt_deadline(&p.kt.timeout) == U64_MAX &&
	      hwt_cancel_sync(&p.kt.timeout) == 1, "fixed delay: a period of U64_MAX never ends");

	p_init(wheel);
	hwt_schedule_periodic(&p.kt.periodic, 0, KT_MS, HWT_MODE_FIXED_RATE);
	KTEST(KT_WAIT(fired() >= 3) && hwt_cancel(&p.kt.timeout),
	      "cancel returns true, even between two firings");
	p_released(1);
	n = fired();
	msleep(20);
	KTEST(fired() == n, "after that it does not fire");

	p_init(wheel);
	p.sleep_ms = 20;
	hwt_schedule_periodic(&p.kt.periodic, 0, KT_MS, HWT_MODE_FIXED_RATE);
	KTEST(KT_WAIT(hwt_running(&p.kt.timeout)) &&
	      hwt_cancel_sync(&p.kt.timeout) == 1 && !hwt_running(&p.kt.timeout) &&
	      kt_releases(&p.kt) == 1 && atomic_read(&p.kt.cancelled) == 1,
	      "cancel_sync during its callback waits, cancels and releases once");
	n = fired();
	msleep(20);
	KTEST(fired() == n, "after that it does not fire");

	hwt_schedule_periodic(&p.kt.periodic, 0, KT_MS, HWT_MODE_FIXED_RATE);
	KTEST(KT_WAIT(hwt_running(&p.kt.timeout)) &&
	      hwt_wheel_stop(wheel, take, NULL) == 1 && handed == 1 &&
	      kt_releases(&p.kt) == 2 && atomic_read(&p.kt.cancelled) == 1,
	      "stop during its callback hands it back once");
	hwt_wheel_destroy(wheel);
}

/* A callback waits for a periodic timeout, which does not fire again because of a stop. */
static struct {
	struct kt_stay	beat;
	struct kt	waiter;
	struct kt	far;
	int		waited;
	bool		began, far_handed;
} stopped;

static void stopped_wait(struct hwt_timeout *timeout)
{
	WRITE_ONCE(stopped.began, true);
	stopped.waited = hwt_wait(&stopped.beat.kt.timeout, U64_MAX);
	kt_expire(timeout);
}

static void stopped_hand_back(struct hwt_timeout *timeout, void *arg)
{
	if (timeout == &stopped.far.timeout)
		WRITE_ONCE(stopped.far_handed, true);
}

static long stopped_stop(void *wheel)
{
	return hwt_wheel_stop(wheel, stopped_hand_back, NULL);
}

static void __init test_waiter_in_stop(void)
{
	struct hwt_wheel *wheel = kt_wheel("waiter", .workers = 2);
	struct kt_call stop;

	init_completion(&stopped.beat.out);
	kt_init_periodic(&stopped.beat.kt, wheel, &kt_stay_ops);
	kt_setup(&stopped.waiter, wheel, stopped_wait);
	kt_init(&stopped.far, wheel, &kt_nothing_ops);
	hwt_schedule(&stopped.far.timeout, KT_HOUR);
	hwt_schedule_periodic(&stopped.beat.kt.periodic, 0, KT_MS, HWT_MODE_FIXED_RATE);
	KTEST(KT_WAIT(kt_inside(&stopped.beat)), "the callback of a periodic timeout is executing");
	hwt_schedule(&stopped.waiter.timeout, 0);
	KTEST(KT_WAIT(READ_ONCE(stopped.began)), "another callback waits for it");
	kt_call_begin(&stop, stopped_stop, wheel);
	KTEST(KT_WAIT(READ_ONCE(stopped.far_handed)), "a stop hands back a pending timeout");
	/* The first round of the stop has ended by now. */
	msleep(20);
	complete_all(&stopped.beat.out);
	KTEST(kt_call_end(&stop) == 2,
	      "the stop ends the wait, and has handed back two");
	KTEST(stopped.waited == -ERESTARTSYS, "the wait returns -ERESTARTSYS: %d", stopped.waited);
	hwt_wheel_destroy(wheel);
}

static void __init selftest(void)
{
	static const unsigned int workers[] __initconst = { 0, 1, 4 };
	struct hwt_wheel *wheel;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		wheel = kt_wheel("periodic", .workers = workers[i]);
		KTEST(!IS_ERR(wheel), "a wheel with %u workers", workers[i]);
		test_fixed_rate(wheel);
		test_slow_callback(wheel);
		test_late_start(wheel);
		test_fixed_delay(wheel);
		test_changes(wheel);
		KTEST(hwt_wheel_pending(wheel) == 0, "no timeout is left pending");
		KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	}
	test_ends();
	test_waiter_in_stop();
}

KSTM_MODULE_LOADERS(test_periodic);
