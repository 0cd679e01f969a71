// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the timers of Netty, Kafka and Dubbo promise, and their tests check,
 * translated: delays, stop and what it hands back, overflow, cancels.
 *
 * hwt-test: shared
 * hwt-test: timeout 120
 */
#include "hwt_ktest.h"

static void __init test_delay(void)
{
	struct hwt_wheel *wheel = kt_wheel("delay");
	static struct kt kt[64];
	int i, fired, early = 0, done = 0;

	kt_init(&kt[0], wheel, &kt_ops);
	kt_schedule(&kt[0], 10 * KT_SECOND);
	msleep(100);
	/* The machine may have been away for long: then this says nothing. */
	fired = kt_expirations(&kt[0]);
	KTEST(!fired || hwt_wheel_now(wheel) >= kt[0].earliest, "not before its delay");
	hwt_cancel_sync(&kt[0].timeout);

	for (i = 0; i < ARRAY_SIZE(kt); i++) {
		kt_init(&kt[i], wheel, &kt_ops);
		kt_schedule(&kt[i], i * (KT_MS / 7 + i * (KT_MS / 9)));
	}
	for (i = 0; i < ARRAY_SIZE(kt); i++) {
		done += KT_WAIT(kt_releases(&kt[i]) == 1);
		early += atomic_read(&kt[i].early);
	}
	KTEST(done == ARRAY_SIZE(kt), "after their delays they fire: %d", done);
	KTEST(early == 0, "none of them early: %d", early);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

/* -- Stop ---------------------------------------------------------------- */

struct handed {
	unsigned int	n, odd;
	struct kt	*first, *last;
};

static void take(struct hwt_timeout *timeout, void *arg)
{
	struct handed *handed = arg;
	struct kt *kt = kt_of(timeout);

	handed->n++;
	if (kt < handed->first || kt > handed->last ||
	    !hwt_cancelled(timeout) || hwt_pending(timeout) ||
	    hwt_expired(timeout) || !hwt_running(timeout) ||
	    hwt_schedule(timeout, 0) != -ESHUTDOWN ||
	    hwt_cancel(timeout) || atomic_inc_return(&kt->early) != 1)
		handed->odd++;
}

static void __init test_stop(void)
{
	struct hwt_wheel *wheel = kt_wheel("stop");
	static struct kt kt[8];
	struct handed handed = { .first = &kt[3], .last = &kt[7] };
	int i, ok;

	for (i = 0; i < 8; i++) {
		kt_init(&kt[i], wheel, &kt_ops);
		kt_schedule(&kt[i], i < 3 ? 0 : KT_HOUR << (i - 3));
	}
	hwt_schedule(&kt[7].timeout, U64_MAX);
	for (i = 0, ok = 0; i < 3; i++)
		ok += KT_WAIT(kt_releases(&kt[i]) == 1);
	KTEST(ok == 3, "three of eight have run");
	handed.n = 0;
	KTEST(hwt_wheel_stop(wheel, take, &handed) == 5 && handed.n == 5 &&
	      handed.odd == 0, "stop with five pending gives exactly these, cancelled");
	for (i = 0, ok = 0; i < 8; i++)
		ok += kt_releases(&kt[i]) == 1 && !hwt_held(&kt[i].timeout) &&
		      kt_expirations(&kt[i]) == (i < 3) &&
		      atomic_read(&kt[i].cancelled) == 0 &&
		      hwt_cancelled(&kt[i].timeout) == (i >= 3);
	KTEST(ok == 8, "each is let go once, and ->cancelled is not called");
	KTEST(hwt_wheel_pending(wheel) == 0, "none is pending");
	KTEST(kt_schedule(&kt[0], 0) == -ESHUTDOWN && !hwt_held(&kt[0].timeout) &&
	      hwt_expired(&kt[0].timeout), "schedule after stop is refused, nothing changed");
	KTEST(hwt_wheel_stop(wheel, take, &handed) == 0 && handed.n == 5,
	      "a second stop gives none");
	KTEST(hwt_cancel_sync(&kt[4].timeout) == 0 &&
	      hwt_shutdown_sync(&kt[4].timeout) == 0, "_sync on a stopped wheel");
	hwt_wheel_destroy(wheel);

	wheel = kt_wheel("stop");
	for (i = 0; i < 8; i++) {
		kt_init(&kt[i], wheel, &kt_ops);
		kt_schedule(&kt[i], KT_HOUR);
	}
	hwt_cancel(&kt[0].timeout);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 7,
	      "stop with one cancelled and seven pending gives seven");
	for (i = 0, ok = 0; i < 8; i++)
		ok += kt_releases(&kt[i]) == 1 && kt_expirations(&kt[i]) == 0 &&
		      atomic_read(&kt[i].cancelled) == 1;
	KTEST(ok == 8, "without a function, each one's ->cancelled is called once");
	hwt_wheel_destroy(wheel);
}

/* -- Past the wheel's length --------------------------------------------- */

static struct kt again;

static void again_expire(struct hwt_timeout *timeout)
{
	struct kt *kt = kt_note_expired(timeout);

	if (kt_expirations(kt) < 4)
		kt_schedule(kt, 100 * KT_MS);
	atomic_inc_return_release(&kt->expired);
}

static const struct hwt_ops again_ops = { .expire = again_expire, .release = kt_release };

static void __init test_past_length(u32 buckets, u32 levels)
{
	struct hwt_wheel_params params = {
		.name = "length", .ticks_per_wheel = buckets, .levels = levels,
	};
	struct hwt_wheel *wheel = hwt_wheel_create(&params);
	u64 began;

	kt_init(&again, wheel, &again_ops);
	began = hwt_wheel_now(wheel);
	kt_schedule(&again, 100 * KT_MS);
	KTEST(KT_WAIT(kt_expirations(&again) == 5) && KT_WAIT(kt_releases(&again) == 1) &&
	      again.at >= began + 500 * KT_MS && !atomic_read(&again.early),
	      "%u levels of %u buckets: re-armed past its length, five times, never early",
	      levels, buckets);
	hwt_wheel_destroy(wheel);
}

/* -- Never, and at once -------------------------------------------------- */

static void __init test_never(void)
{
	static const u64 far[] __initconst = {
		U64_MAX, U64_MAX - 1, 1ULL << 63, S64_MAX,
	};
	struct hwt_wheel *wheel = kt_wheel("never");
	struct kt kt, soon;
	int i;

	kt_init(&kt, wheel, &kt_ops);
	kt_init(&soon, wheel, &kt_ops);
	for (i = 0; i < ARRAY_SIZE(far); i++) {
		hwt_schedule_at(&kt.timeout, far[i]);
		KTEST(hwt_pending(&kt.timeout) && hwt_deadline(&kt.timeout) == U64_MAX &&
		      hwt_remaining(&kt.timeout) == U64_MAX,
		      "a deadline of %llx: pending, never", far[i]);
		atomic_set(&soon.expired, 0);
		hwt_schedule(&soon.timeout, 5 * KT_MS);
		KTEST(KT_WAIT(kt_expirations(&soon) == 1) &&
		      !kt_expirations(&kt) && hwt_pending(&kt.timeout),
		      "does not fire when others do");
		KTEST(hwt_cancel(&kt.timeout), "and can be cancelled");
		hwt_schedule(&kt.timeout, far[i]);
		KTEST(hwt_deadline(&kt.timeout) == U64_MAX, "a delay of %llx", far[i]);
		hwt_schedule_slack(&kt.timeout, KT_HOUR, far[i]);
		KTEST(hwt_deadline(&kt.timeout) > hwt_wheel_now(wheel) + KT_HOUR / 2 &&
		      hwt_deadline(&kt.timeout) <= S64_MAX, "a slack of %llx", far[i]);
	}
	hwt_schedule(&kt.timeout, U64_MAX);
	KTEST(hwt_schedule(&kt.timeout, 0) == (HWT_WAS_PENDING | HWT_WAS_HELD) &&
	      KT_WAIT(kt_expirations(&kt) == 1), "pulled forward from never, it fires");
	hwt_schedule(&kt.timeout, U64_MAX);
	KTEST(KT_WAIT(hwt_wheel_pending(wheel) == 1) &&
	      hwt_cancel_sync(&kt.timeout) == 1, "cancel_sync of never");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init test_at_once(void)
{
	struct hwt_wheel *wheel = kt_wheel("at-once");
	struct kt kt, far;
	u64 past[4];
	int i;

	kt_init(&kt, wheel, &kt_ops);
	kt_init(&far, wheel, &kt_ops);
	hwt_schedule(&far.timeout, KT_HOUR);
	past[0] = 0;
	past[1] = 1;
	past[2] = hwt_wheel_now(wheel) - KT_MS;
	past[3] = hwt_wheel_now(wheel);
	for (i = 0; i < ARRAY_SIZE(past); i++) {
		kt.task = NULL;
		hwt_schedule_at(&kt.timeout, past[i]);
		KTEST(KT_WAIT(kt_expirations(&kt) == i + 1) && kt.task && kt.task != current,
		      "a deadline of %llu, passed: fires, not inside the call", past[i]);
	}
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt) == i + 1) && kt.task != current,
	      "a delay of 0 fires, not inside the call");
	KTEST(!kt_expirations(&far), "what is an hour away does not");
	hwt_wheel_destroy(wheel);
}

/* -- Cancel against expiry ----------------------------------------------- */

static void __init test_cancel_at_expiry(u64 limit)
{
	struct hwt_wheel_params params = { .name = "close", .max_pending = limit };
	struct hwt_wheel *wheel = hwt_wheel_create(&params);
	static struct kt kt[64];
	int round, i, hits, fired, odd = 0, both = 0;
	u64 deadline;

	for (i = 0; i < ARRAY_SIZE(kt); i++)
		kt_init(&kt[i], wheel, &kt_plain_ops);
	for (round = 0; round < 50; round++) {
		deadline = hwt_wheel_now(wheel) + 4 * KT_MS;
		for (i = 0; i < ARRAY_SIZE(kt); i++) {
			atomic_set(&kt[i].expired, 0);
			odd += hwt_schedule_at(&kt[i].timeout, deadline) != 0;
		}
		/* From the deadline to a bit after it: somewhere there it fires. */
		while (hwt_wheel_now(wheel) < deadline + round * 60 * NSEC_PER_USEC)
			cpu_relax();
		for (i = 0, hits = 0; i < ARRAY_SIZE(kt); i++)
			hits += hwt_cancel(&kt[i].timeout);
		for (i = 0, fired = 0; i < ARRAY_SIZE(kt); i++) {
			hwt_cancel_sync(&kt[i].timeout);
			fired += kt_expirations(&kt[i]);
		}
		/* Not before: one that is about to fire has ended, and is not counted yet. */
		odd += hwt_wheel_pending(wheel) != 0;
		odd += hits + fired != ARRAY_SIZE(kt);
		both += hits && fired;
	}
	pr_info("# %d of 50 rounds had both cancels that hit and expiries\n", both);
	KTEST(odd == 0, "limit %llu: the count is exact after cancels at the tick of expiry",
	      limit);
	hwt_wheel_destroy(wheel);
}

static void __init selftest(void)
{
	test_delay();
	test_stop();
	test_past_length(32, 1);
	test_past_length(8, 3);
	test_past_length(2, 6);
	test_never();
	test_at_once();
	test_cancel_at_expiry(64);
}

KSTM_MODULE_LOADERS(test_promises);
MODULE_DESCRIPTION("hwt: what other timers promise");
MODULE_LICENSE("GPL");
