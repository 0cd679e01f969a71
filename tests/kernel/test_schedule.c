// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shapes of a schedule: flags and all their combinations, a reference for each hold, a timeout
 * with a function only, one that is opened again after a shutdown, the system's wheel, units.
 *
 * hwt-test: shared
 */
#include "hwt_ktest.h"

#define BOTH	(HWT_WAS_PENDING | HWT_WAS_HELD)

/* -- Flags ------------------------------------------------------------------ */

/* What one of the combinations does to a timeout that is idle, or pending for @deadline. */
static int __init combine(struct kt *kt, bool pending, unsigned int flags, u64 *deadline)
{
	struct hwt_wheel *wheel = hwt_timeout_wheel(&kt->timeout);
	u64 time_ns = KT_HOUR;
	int ret;

	hwt_cancel_sync(&kt->timeout);
	*deadline = 0;
	if (pending) {
		hwt_schedule_at(&kt->timeout, hwt_wheel_now(wheel) + 2 * KT_HOUR);
		*deadline = hwt_deadline(&kt->timeout);
	}
	if (flags & HWT_SCHEDULE_AT)
		time_ns += hwt_wheel_now(wheel);
	ret = hwt_schedule_flags(&kt->timeout, time_ns, 0, flags);
	/* Now whether it has moved. */
	*deadline = hwt_deadline(&kt->timeout) != *deadline;
	return ret;
}

static void __init test_combinations(struct hwt_wheel *wheel)
{
	unsigned int flags, odd = 0;
	bool moves;
	struct kt kt;
	u64 moved;
	int ret;

	kt_init(&kt, wheel, &kt_plain_ops);
	for (flags = 0; flags < 0x10; flags++) {
		ret = combine(&kt, false, flags, &moved);
		moves = !(flags & HWT_SCHEDULE_PENDING);
		odd += moved != moves || ret != (moves ? 0 : -ENOENT);

		/* An hour earlier than it was. */
		ret = combine(&kt, true, flags, &moved);
		moves = !(flags & HWT_SCHEDULE_UNLESS_PENDING);
		odd += moved != moves || ret != BOTH;
	}
	KTEST(odd == 0, "flags: all combinations, idle and pending: %u are wrong", odd);

	hwt_cancel_sync(&kt.timeout);
	hwt_schedule(&kt.timeout, KT_HOUR);
	moved = hwt_deadline(&kt.timeout);
	KTEST(hwt_schedule_flags(&kt.timeout, 2 * KT_HOUR, 0, HWT_SCHEDULE_EARLIER |
				 HWT_SCHEDULE_PENDING) == BOTH &&
	      hwt_deadline(&kt.timeout) == moved, "earlier and pending: later is left as it is");
	KTEST(hwt_schedule_unless_pending(&kt.timeout, 0) == BOTH &&
	      hwt_deadline(&kt.timeout) == moved, "unless pending: it is left as it is");
	KTEST(hwt_schedule_flags(&kt.timeout, 2 * KT_HOUR, KT_HOUR, HWT_SCHEDULE_PENDING) == BOTH &&
	      hwt_remaining(&kt.timeout) > 2 * KT_HOUR - KT_SECOND * KT_PATIENCE &&
	      hwt_remaining(&kt.timeout) <= 3 * KT_HOUR, "pending, with slack: moved, within it");
	KTEST(hwt_schedule_flags(&kt.timeout, 0, 0, HWT_SCHEDULE_PERIODIC) == -EINVAL &&
	      hwt_schedule_flags(&kt.timeout, 0, 0, 0x20) == -EINVAL, "other flags are refused");
	hwt_cancel_sync(&kt.timeout);
	KTEST(hwt_schedule_unless_pending(&kt.timeout, KT_MS) == 0 &&
	      KT_WAIT(kt_expirations(&kt) == 1), "unless pending: another one fires");
	hwt_shutdown_sync(&kt.timeout);
}

/* -- References ------------------------------------------------------------- */

static atomic_t refs;

static void ref_get(struct hwt_timeout *timeout)
{
	atomic_inc(&refs);
}

static void ref_put(struct hwt_timeout *timeout)
{
	atomic_dec(&refs);
}

static void __init test_references(struct hwt_wheel *wheel)
{
	static const struct hwt_timeout_ops ops = { .expire = kt_expire, .release = ref_put };
	struct kt kt, beat;

	kt_init(&kt, wheel, &ops);
	KTEST(hwt_schedule_ref(&kt.timeout, KT_HOUR, 0, 0, ref_get, ref_put) == 0 &&
	      atomic_read(&refs) == 1, "ref: a new hold has one");
	KTEST(hwt_schedule_ref(&kt.timeout, KT_HOUR, 0, 0, ref_get, ref_put) == BOTH &&
	      atomic_read(&refs) == 1, "ref: the same hold has no second one");
	KTEST(hwt_schedule_ref(&kt.timeout, 0, 0, HWT_SCHEDULE_PERIODIC, ref_get, ref_put) ==
	      -EINVAL && atomic_read(&refs) == 1, "ref: an error has none");
	KTEST(hwt_cancel_sync(&kt.timeout) == 1 && atomic_read(&refs) == 0, "ref: put by a cancel");
	KTEST(hwt_schedule_ref(&kt.timeout, 0, 0, 0, ref_get, ref_put) == 0 &&
	      KT_WAIT(atomic_read(&refs) == 0) && kt_expirations(&kt) == 1,
	      "ref: put after the callback");

	kt_init_periodic(&beat, wheel, &ops);
	KTEST(hwt_schedule_periodic_ref(&beat.periodic, 0, KT_MS, HWT_FIXED_RATE, ref_get,
					ref_put) == 0 && KT_WAIT(kt_expirations(&beat) > 2) &&
	      atomic_read(&refs) == 1, "ref: a periodic one keeps its own");
	KTEST(hwt_schedule_periodic_ref(&beat.periodic, 0, 0, HWT_FIXED_RATE, ref_get, ref_put) ==
	      -EINVAL && atomic_read(&refs) == 1, "ref: a periodic error has none");
	hwt_shutdown_sync(&beat.timeout);
	hwt_shutdown_sync(&kt.timeout);
	KTEST(atomic_read(&refs) == 0, "ref: none is left");
}

/* -- Making and closing ------------------------------------------------------- */

static void __init test_setup(struct hwt_wheel *wheel)
{
	struct kt kt, other;

	hwt_timeout_setup(&kt_clear(&kt)->timeout, wheel, kt_expire);
	hwt_timeout_setup(&kt_clear(&other)->timeout, wheel, kt_nothing);
	KTEST(kt.timeout.ops != other.timeout.ops && kt.timeout.ops->expire == kt_expire &&
	      !kt.timeout.ops->cancelled && !kt.timeout.ops->release, "setup: a function only");
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_expirations(&kt) == 1),
	      "setup: it fires");
	hwt_shutdown_sync(&kt.timeout);
	hwt_shutdown_sync(&other.timeout);
}

static void __init test_reopen(struct hwt_wheel *wheel)
{
	struct kt kt;

	kt_init(&kt, wheel, &kt_ops);
	hwt_schedule(&kt.timeout, KT_HOUR);
	KTEST(hwt_shutdown_sync(&kt.timeout) == 1 &&
	      hwt_schedule(&kt.timeout, 0) == -ESHUTDOWN, "reopen: it is shut down");
	hwt_reopen(&kt.timeout);
	KTEST(hwt_cancelled(&kt.timeout) && !hwt_held(&kt.timeout), "reopen: nothing else changes");
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_expirations(&kt) == 1),
	      "reopen: it fires again");
	hwt_reopen(&kt.timeout);
	KTEST(hwt_expired(&kt.timeout), "reopen: of an open one: nothing changes");
	hwt_shutdown_sync(&kt.timeout);
}

/* -- The system's wheel -------------------------------------------------------- */

static void __init test_system_wheel(void)
{
	struct hwt_wheel *shared = hwt_wheel_get_shared(NULL);
	struct kt kt;

	KTEST(shared == hwt_system_wheel, "system: it is the shared wheel of the defaults");
	hwt_wheel_put(shared);
	kt_init(&kt, hwt_system_wheel, &kt_ops);
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_expirations(&kt) == 1),
	      "system: it is there without users");
	hwt_schedule(&kt.timeout, KT_HOUR);
	hwt_cancel(&kt.timeout);
	KTEST(hwt_wheel_barrier(hwt_system_wheel) == 0 && kt_releases(&kt) == 2,
	      "system: a barrier is all that a client needs before it goes");
	KTEST(hwt_wheel_stop(hwt_system_wheel, NULL, NULL) == -EBUSY &&
	      hwt_wheel_destroy(hwt_system_wheel) == -EBUSY, "system: nobody can stop it");
}

/* -- Units ------------------------------------------------------------------- */

static void __init test_units(void)
{
	u16 seconds = 65535;

	KTEST(hwt_secs(seconds) == 65535000000000ULL && hwt_msecs(seconds) == 65535000000ULL &&
	      hwt_usecs(seconds) == 65535000ULL, "units: 64 bits, also of 16");
	KTEST(hwt_secs(U64_MAX / NSEC_PER_SEC) == U64_MAX / NSEC_PER_SEC * NSEC_PER_SEC &&
	      hwt_secs(U64_MAX / NSEC_PER_SEC + 1) == U64_MAX && hwt_msecs(U64_MAX) == U64_MAX &&
	      hwt_usecs(U64_MAX / 1000 + 1) == U64_MAX, "units: what does not fit never comes");
}

static void __init selftest(void)
{
	struct hwt_wheel *wheel = kt_wheel("schedule");

	test_combinations(wheel);
	test_references(wheel);
	test_setup(wheel);
	test_reopen(wheel);
	test_system_wheel();
	test_units();
	KTEST(hwt_wheel_pending(wheel) == 0, "nothing is left pending");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

KSTM_MODULE_LOADERS(test_schedule);
