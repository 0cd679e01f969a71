// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each call by itself: its result, its effect, and the queries after it. All flags of a schedule.
 * A reference for each hold. Deadlines that have passed, or never come. The limit max_pending is
 * exact, and a schedule beyond it returns -EAGAIN and changes nothing.
 *
 * hwt-test: shared
 * hwt-test: timeout 120
 */
#include "hwt_ktest.h"

#define BOTH (HWT_WAS_PENDING | HWT_WAS_HELD)

static struct kt fixed = { .timeout = HWT_TIMEOUT_INIT(fixed.timeout, &kt_ops) };

static void __init test_static_initialiser(struct hwt_wheel *wheel)
{
	KTEST(!hwt_pending(&fixed.timeout) && !hwt_running(&fixed.timeout) &&
	      !hwt_held(&fixed.timeout) && !hwt_expired(&fixed.timeout) &&
	      !hwt_cancelled(&fixed.timeout) && !hwt_timeout_wheel(&fixed.timeout),
	      "a static timeout is idle and has no wheel");
	KTEST(hwt_schedule(&fixed.timeout, 0) == -EINVAL &&
	      hwt_schedule_at(&fixed.timeout, 0) == -EINVAL &&
	      hwt_schedule_slack(&fixed.timeout, 0, 1) == -EINVAL &&
	      hwt_schedule_earlier(&fixed.timeout, 0) == -EINVAL &&
	      hwt_schedule_pending(&fixed.timeout, 0) == -EINVAL &&
	      hwt_schedule_pending_at(&fixed.timeout, 0) == -EINVAL,
	      "without a wheel each schedule returns -EINVAL");
	KTEST(!hwt_cancel(&fixed.timeout) && hwt_try_cancel(&fixed.timeout) == 0 &&
	      hwt_cancel_sync(&fixed.timeout) == 0, "without a wheel each cancel returns 0");
	KTEST(hwt_deadline(&fixed.timeout) == 0 && hwt_remaining(&fixed.timeout) == 0,
	      "without a wheel there is no deadline");
	hwt_timeout_set_wheel(&fixed.timeout, wheel);
	KTEST(hwt_timeout_wheel(&fixed.timeout) == wheel && kt_schedule(&fixed, KT_MS) == 0 &&
	      KT_WAIT(kt_expirations(&fixed) == 1), "with a wheel it fires");
	hwt_shutdown_sync(&fixed.timeout);
}

static void __init test_schedule(struct hwt_wheel *wheel)
{
	u64 before, after, deadline, remaining;
	struct kt kt;

	kt_init(&kt, wheel, &kt_ops);
	KTEST(!hwt_held(&kt.timeout) && !hwt_pending(&kt.timeout),
	      "an initialised timeout is idle");
	before = hwt_wheel_now(wheel);
	KTEST(hwt_schedule(&kt.timeout, KT_HOUR) == 0, "schedule of an idle timeout returns 0");
	after = hwt_wheel_now(wheel);
	KTEST(hwt_pending(&kt.timeout) && hwt_held(&kt.timeout) &&
	      !hwt_running(&kt.timeout) && !hwt_expired(&kt.timeout) &&
	      !hwt_cancelled(&kt.timeout), "it is pending and held only");
	deadline = hwt_deadline(&kt.timeout);
	KTEST(deadline >= before + KT_HOUR && deadline < after + KT_HOUR + KT_MS &&
	      deadline == kt_ms(deadline) * KT_MS, "its deadline is rounded up to a tick");
	remaining = hwt_remaining(&kt.timeout);
	after = hwt_wheel_now(wheel);
	KTEST(remaining <= deadline - before && remaining >= deadline - after,
	      "the remaining time fits the deadline");

	deadline += 7 * KT_MS;
	KTEST(hwt_schedule_at(&kt.timeout, deadline) == BOTH &&
	      hwt_deadline(&kt.timeout) == deadline,
	      "schedule_at moves a pending timeout, to the exact tick");
	KTEST(hwt_schedule_at(&kt.timeout, deadline - 9 * KT_MS - 1) == BOTH &&
	      hwt_deadline(&kt.timeout) == deadline - 9 * KT_MS, "moved back, rounded up");
	KTEST(hwt_wheel_pending(wheel) == 1, "after two moves it counts once");
	KTEST(hwt_cancel(&kt.timeout), "cancel returns true");
	KTEST(!hwt_pending(&kt.timeout) && hwt_cancelled(&kt.timeout) &&
	      !hwt_expired(&kt.timeout) && hwt_deadline(&kt.timeout) == 0 &&
	      hwt_remaining(&kt.timeout) == 0, "it is cancelled, not pending, without a deadline");
	KTEST(!hwt_cancel(&kt.timeout) && hwt_cancelled(&kt.timeout),
	      "a second cancel returns false and changes nothing");
	KTEST(KT_WAIT(kt_releases(&kt) == 1) && !hwt_held(&kt.timeout),
	      "the engine ends the hold");
	KTEST(atomic_read(&kt.cancelled) == 1 && kt_expirations(&kt) == 0,
	      "->cancelled was called once, ->expire was not");
	KTEST(hwt_schedule(&kt.timeout, KT_HOUR) == 0 &&
	      !hwt_cancelled(&kt.timeout), "scheduled again, it is not cancelled");
	hwt_cancel(&kt.timeout);
	KTEST(!(hwt_schedule(&kt.timeout, KT_HOUR) & HWT_WAS_PENDING),
	      "a schedule after a cancel: it was not pending");
	KTEST(hwt_cancel_sync(&kt.timeout) == 1 && !hwt_held(&kt.timeout),
	      "cancel_sync of a pending timeout returns 1, and ends its hold");
	KTEST(hwt_cancel_sync(&kt.timeout) == 0, "a second one returns 0");
	KTEST(kt_expirations(&kt) == 0, "it has not fired");
	KTEST(hwt_schedule_at(&kt.timeout, 1) == 0 && KT_WAIT(kt_expirations(&kt) == 1) &&
	      kt.task != current, "with a deadline in the past it fires, not in the call");
	hwt_shutdown_sync(&kt.timeout);
}

static void __init test_slack(struct hwt_wheel *wheel)
{
	u64 base = (hwt_wheel_now(wheel) + KT_HOUR) & ~(KT_MS * 4096 - 1);
	u64 deadline;
	struct kt kt;

	base = kt_ms(base) * KT_MS;
	kt_init(&kt, wheel, &kt_ops);
	KTEST(hwt_schedule_flags(&kt.timeout, base + 1, 0, HWT_SCHEDULE_AT) == 0 &&
	      hwt_deadline(&kt.timeout) == base + KT_MS, "a slack of 0: the exact tick");
	hwt_schedule_flags(&kt.timeout, base, 999 * KT_MS, HWT_SCHEDULE_AT);
	deadline = hwt_deadline(&kt.timeout);
	KTEST(deadline >= base && deadline <= base + 999 * KT_MS,
	      "the deadline is within the slack");
	KTEST((kt_ms(deadline) & 511) == 0, "999 ticks of slack reach a multiple of 512 ticks");
	hwt_schedule_flags(&kt.timeout, deadline - 3 * KT_MS, 3 * KT_MS, HWT_SCHEDULE_AT);
	KTEST(hwt_deadline(&kt.timeout) == deadline, "a slack up to a round tick: that tick");
	hwt_schedule_flags(&kt.timeout, deadline - 3 * KT_MS, 2 * KT_MS + 999999, HWT_SCHEDULE_AT);
	KTEST(hwt_deadline(&kt.timeout) < deadline, "the end of the slack is rounded down");
	hwt_schedule_flags(&kt.timeout, base, U64_MAX, HWT_SCHEDULE_AT);
	KTEST(hwt_deadline(&kt.timeout) >= base, "a slack of U64_MAX: not early");
	KTEST(hwt_schedule_slack(&kt.timeout, 5 * KT_MS, KT_MS * 10) == BOTH &&
	      KT_WAIT(kt_expirations(&kt) == 1), "with a slack it fires");
	hwt_cancel_sync(&kt.timeout);
}

/* -- Flags ------------------------------------------------------------------ */

/* Schedule an idle or a pending timeout. @deadline returns 1 if its deadline has changed. */
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

		/* The new deadline is an hour earlier. */
		ret = combine(&kt, true, flags, &moved);
		moves = !(flags & HWT_SCHEDULE_UNLESS_PENDING);
		odd += moved != moves || ret != BOTH;
	}
	KTEST(odd == 0, "flags: all combinations, idle and pending: %u wrong", odd);

	hwt_cancel_sync(&kt.timeout);
	hwt_schedule(&kt.timeout, KT_HOUR);
	moved = hwt_deadline(&kt.timeout);
	KTEST(hwt_schedule_flags(&kt.timeout, moved, 0, KT_EARLIER_AT) == BOTH &&
	      hwt_deadline(&kt.timeout) == moved, "earlier: the same tick changes nothing");
	KTEST(hwt_schedule_flags(&kt.timeout, 2 * KT_HOUR, 0, HWT_SCHEDULE_EARLIER |
				 HWT_SCHEDULE_PENDING) == BOTH &&
	      hwt_deadline(&kt.timeout) == moved, "earlier, pending: a later tick changes nothing");
	KTEST(hwt_schedule_flags(&kt.timeout, 2 * KT_HOUR, KT_HOUR, HWT_SCHEDULE_PENDING) == BOTH &&
	      hwt_remaining(&kt.timeout) > 2 * KT_HOUR - KT_SECOND * KT_PATIENCE &&
	      hwt_remaining(&kt.timeout) <= 3 * KT_HOUR, "pending, with slack: moved within it");
	KTEST(hwt_schedule_flags(&kt.timeout, 0, 0, HWT_SCHEDULE_PERIODIC) == -EINVAL &&
	      hwt_schedule_flags(&kt.timeout, 0, 0, 0x20) == -EINVAL, "other flags are refused");
	hwt_cancel(&kt.timeout);
	KTEST(hwt_schedule_pending(&kt.timeout, KT_HOUR) == -ENOENT &&
	      hwt_cancelled(&kt.timeout), "pending: a cancelled timeout is not changed");
	KTEST((hwt_schedule_earlier(&kt.timeout, KT_HOUR * 4) & ~HWT_WAS_HELD) == 0 &&
	      hwt_remaining(&kt.timeout) > 3 * KT_HOUR,
	      "earlier: the old deadline of a cancelled timeout does not count");
	KTEST(hwt_schedule_earlier(&kt.timeout, 0) == BOTH &&
	      KT_WAIT(kt_expirations(&kt) == 1), "earlier: moved to now, it fires");
	hwt_cancel_sync(&kt.timeout);
	KTEST(hwt_schedule_unless_pending(&kt.timeout, KT_MS) == 0 &&
	      KT_WAIT(kt_expirations(&kt) == 2), "unless pending: an idle timeout fires");
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
	KTEST(hwt_schedule_ref(&kt.timeout, KT_HOUR, 0, 0, ref_get, ref_put,
			       &kt.timeout) == 0 &&
	      atomic_read(&refs) == 1, "ref: a new hold has a reference");
	KTEST(hwt_schedule_ref(&kt.timeout, KT_HOUR, 0, 0, ref_get, ref_put,
			       &kt.timeout) == BOTH &&
	      atomic_read(&refs) == 1, "ref: the same hold has no second reference");
	KTEST(hwt_schedule_ref(&kt.timeout, 0, 0, HWT_SCHEDULE_PERIODIC, ref_get, ref_put,
			       &kt.timeout) ==
	      -EINVAL && atomic_read(&refs) == 1, "ref: none after an error");
	KTEST(hwt_cancel_sync(&kt.timeout) == 1 && atomic_read(&refs) == 0, "ref: put by cancel");
	KTEST(hwt_schedule_ref(&kt.timeout, 0, 0, 0, ref_get, ref_put,
			       &kt.timeout) == 0 &&
	      KT_WAIT(atomic_read(&refs) == 0) && kt_expirations(&kt) == 1,
	      "ref: it is put after the callback");

	kt_init_periodic(&beat, wheel, &ops);
	KTEST(hwt_schedule_periodic_ref(&beat.periodic, 0, KT_MS, HWT_MODE_FIXED_RATE, ref_get,
					ref_put, &beat.timeout) == 0 &&
	      KT_WAIT(kt_expirations(&beat) > 2) &&
	      atomic_read(&refs) == 1, "ref: a periodic timeout keeps one");
	KTEST(hwt_schedule_periodic_ref(&beat.periodic, 0, 0, HWT_MODE_FIXED_RATE, ref_get,
					ref_put, &beat.timeout) == -EINVAL &&
	      atomic_read(&refs) == 1,
	      "ref: none after a periodic error");
	hwt_shutdown_sync(&beat.timeout);
	hwt_shutdown_sync(&kt.timeout);
	KTEST(atomic_read(&refs) == 0, "ref: none is left");
}

/* -- Shut down ------------------------------------------------------------------ */

static void __init test_dead(struct hwt_wheel *wheel)
{
	struct kt kt;

	kt_init(&kt, wheel, &kt_ops);
	hwt_schedule(&kt.timeout, KT_HOUR);
	KTEST(hwt_shutdown_sync(&kt.timeout) == 1 && kt_releases(&kt) == 1,
	      "shutdown_sync of a pending timeout returns 1, and ends its hold");
	KTEST(hwt_schedule(&kt.timeout, 0) == -ESHUTDOWN &&
	      hwt_schedule_at(&kt.timeout, 0) == -ESHUTDOWN &&
	      hwt_schedule_slack(&kt.timeout, 0, 1) == -ESHUTDOWN &&
	      hwt_schedule_earlier(&kt.timeout, 0) == -ESHUTDOWN &&
	      hwt_schedule_pending(&kt.timeout, 0) == -ESHUTDOWN,
	      "then each schedule returns -ESHUTDOWN");
	KTEST(!hwt_held(&kt.timeout) && hwt_cancelled(&kt.timeout) &&
	      hwt_shutdown_sync(&kt.timeout) == 0 &&
	      hwt_cancel_sync(&kt.timeout) == 0 && !hwt_cancel(&kt.timeout),
	      "it stays cancelled, and each cancel returns 0");
	hwt_reopen(&kt.timeout);
	KTEST(hwt_cancelled(&kt.timeout) && !hwt_held(&kt.timeout), "reopen: it stays cancelled");
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_expirations(&kt) == 1),
	      "reopen: it fires again");
	hwt_reopen(&kt.timeout);
	KTEST(hwt_expired(&kt.timeout), "reopen without a shutdown: no change");
	hwt_shutdown_sync(&kt.timeout);
	kt_init(&kt, wheel, &kt_ops);
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_expirations(&kt) == 1),
	      "initialised again, it fires again");
	hwt_shutdown_sync(&kt.timeout);
}

/* -- Queries in the callback --------------------------------------------- */

static struct kt_stay stay;

static struct {
	bool		running, pending, expired, held, cancelled;
	u64		deadline;
	int		self_schedule;
	bool		self_cancel;
} inside;

static void inside_expire(struct hwt_timeout *timeout)
{
	if (kt_expirations(&stay.kt) == 0) {
		inside.running = hwt_running(timeout);
		inside.pending = hwt_pending(timeout);
		inside.expired = hwt_expired(timeout);
		inside.held = hwt_held(timeout);
		inside.cancelled = hwt_cancelled(timeout);
		inside.deadline = hwt_deadline(timeout);
		inside.self_cancel = hwt_cancel(timeout);
		inside.self_schedule = hwt_schedule(timeout, KT_HOUR);
	}
	kt_expire(timeout);
	kt_stay_here(timeout);
}

static const struct hwt_timeout_ops inside_ops = { .expire = inside_expire, .release = kt_release };

static void __init test_callback(struct hwt_wheel *wheel)
{
	struct hwt_timeout *timeout = &stay.kt.timeout;

	kt_stay_init(&stay, wheel, &inside_ops);
	KTEST(hwt_try_cancel(timeout) == 0, "try_cancel of an idle timeout returns 0");
	hwt_schedule(timeout, KT_HOUR);
	KTEST(hwt_try_cancel(timeout) == HWT_WAS_PENDING && hwt_cancelled(timeout),
	      "try_cancel of a pending timeout: pending");
	/* End this hold, so that the releases of the next hold can be counted. */
	hwt_cancel_sync(timeout);
	atomic_set(&stay.kt.released, 0);
	hwt_schedule(timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&stay.kt) == 1), "its callback runs");
	KTEST(inside.running && inside.held && inside.expired && !inside.pending &&
	      !inside.cancelled && inside.deadline == 0,
	      "in its callback: running, held, expired, not pending");
	KTEST(!inside.self_cancel, "in its callback: cancel of a one-shot fails");
	KTEST(inside.self_schedule == HWT_WAS_HELD, "in its callback: schedule finds it held");
	KTEST(hwt_running(timeout) && hwt_pending(timeout), "then it is running and pending");
	KTEST(hwt_try_cancel(timeout) == (HWT_WAS_PENDING | HWT_IS_RUNNING), "try_cancel: both");
	KTEST(hwt_try_cancel(timeout) == HWT_IS_RUNNING, "try_cancel again: running only");
	KTEST(kt_releases(&stay.kt) == 0, "its release is not called yet");
	complete_all(&stay.out);
	KTEST(KT_WAIT(kt_releases(&stay.kt) == 1) && !hwt_running(timeout) &&
	      !hwt_held(timeout), "its release is called when the callback has returned");
	KTEST(kt_expirations(&stay.kt) == 1, "the cancelled schedule has not fired");
	hwt_schedule(timeout, 0);
	KTEST(KT_WAIT(kt_releases(&stay.kt) == 2) && hwt_expired(timeout) &&
	      !hwt_cancelled(timeout), "it fires once more: expired, not cancelled");
	KTEST(!hwt_cancel(timeout) && hwt_expired(timeout), "a cancel does not change that");
	hwt_shutdown_sync(timeout);
}

/* -- Never ------------------------------------------------------------------ */

static void __init test_never(struct hwt_wheel *wheel)
{
	static const u64 far[] __initconst = { U64_MAX, U64_MAX - 1, 1ULL << 63, S64_MAX };
	struct kt kt, soon;
	int i;

	kt_init(&kt, wheel, &kt_ops);
	kt_init(&soon, wheel, &kt_ops);
	for (i = 0; i < ARRAY_SIZE(far); i++) {
		hwt_schedule_at(&kt.timeout, far[i]);
		KTEST(hwt_pending(&kt.timeout) && hwt_deadline(&kt.timeout) == U64_MAX &&
		      hwt_remaining(&kt.timeout) == U64_MAX,
		      "a deadline of %llx: pending, but never due", far[i]);
		hwt_schedule(&soon.timeout, 5 * KT_MS);
		KTEST(KT_WAIT(kt_expirations(&soon) == i + 1) && !kt_expirations(&kt) &&
		      hwt_cancel(&kt.timeout), "another one fires, and it is cancelled");
		hwt_schedule(&kt.timeout, far[i]);
		KTEST(hwt_deadline(&kt.timeout) == U64_MAX, "a delay of %llx: never due", far[i]);
		hwt_schedule_slack(&kt.timeout, KT_HOUR, far[i]);
		KTEST(hwt_deadline(&kt.timeout) > hwt_wheel_now(wheel) + KT_HOUR / 2 &&
		      hwt_deadline(&kt.timeout) <= S64_MAX, "a slack of %llx: not early", far[i]);
	}
	hwt_schedule(&kt.timeout, U64_MAX);
	KTEST(hwt_cancel_sync(&kt.timeout) == 1, "cancel_sync of a timeout that is never due");
	hwt_schedule(&kt.timeout, U64_MAX);
	KTEST(hwt_schedule(&kt.timeout, 0) == BOTH && KT_WAIT(kt_expirations(&kt) == 1),
	      "moved from never to now, it fires");
	hwt_shutdown_sync(&kt.timeout);
	hwt_shutdown_sync(&soon.timeout);
}

/* -- max_pending ---------------------------------------------------------- */

#define OBJECTS	16
#define LIMIT	5

static struct kt many[OBJECTS];

static struct hwt_wheel * __init limited(u64 max_pending)
{
	struct hwt_wheel *wheel = kt_wheel("limited", .max_pending = max_pending);
	int i;

	for (i = 0; i < OBJECTS; i++)
		kt_init(&many[i], wheel, &kt_ops);
	return wheel;
}

static void __init test_limit(void)
{
	struct hwt_wheel *wheel = limited(2);

	KTEST(hwt_schedule(&many[0].timeout, KT_HOUR) == 0 &&
	      hwt_schedule(&many[1].timeout, KT_HOUR) == 0, "two are accepted");
	KTEST(hwt_schedule(&many[2].timeout, KT_HOUR) == -EAGAIN &&
	      hwt_schedule_at(&many[2].timeout, 0) == -EAGAIN &&
	      hwt_schedule_earlier(&many[2].timeout, 0) == -EAGAIN, "the third gets -EAGAIN");
	KTEST(!hwt_held(&many[2].timeout) && !hwt_pending(&many[2].timeout) &&
	      !hwt_cancel(&many[2].timeout) && hwt_wheel_pending(wheel) == 2,
	      "the third is not changed");
	KTEST(hwt_schedule(&many[1].timeout, 2 * KT_HOUR) == BOTH, "but a pending one can move");
	KTEST(hwt_schedule_pending(&many[2].timeout, KT_HOUR) == -ENOENT,
	      "a schedule_pending of an idle timeout gets -ENOENT, not -EAGAIN");

	KTEST(hwt_cancel(&many[0].timeout) && hwt_schedule(&many[2].timeout, KT_HOUR) == 0,
	      "after a cancel one more is accepted, at once");
	KTEST(hwt_schedule(&many[0].timeout, KT_HOUR) == -EAGAIN &&
	      hwt_cancelled(&many[0].timeout), "after a cancel a second one is refused");
	KTEST(hwt_cancel_sync(&many[2].timeout) == 1 &&
	      !(hwt_schedule(&many[0].timeout, KT_HOUR) & HWT_WAS_PENDING),
	      "after a cancel_sync one more is accepted");

	hwt_schedule(&many[1].timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&many[1]) == 1) &&
	      hwt_schedule(&many[3].timeout, KT_HOUR) == 0, "after an expiry one more is accepted");
	KTEST(hwt_schedule(&many[1].timeout, KT_HOUR) == -EAGAIN, "but not a second one");
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 2, "stop hands back two");
	hwt_wheel_destroy(wheel);
}

/* The place of a one-shot is free while its callback executes. */
static int self_ret, other_ret;

static void self_expire(struct hwt_timeout *timeout)
{
	self_ret = hwt_schedule(timeout, KT_HOUR);
	other_ret = hwt_schedule(&many[1].timeout, KT_HOUR);
	kt_expire(timeout);
}

static void __init test_limit_self(void)
{
	struct hwt_wheel *wheel = limited(1);
	struct hwt_periodic periodic;

	kt_setup(&many[0], wheel, self_expire);
	hwt_schedule(&many[0].timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&many[0]) == 1) && self_ret == HWT_WAS_HELD &&
	      other_ret == -EAGAIN, "a callback can take the place of its own timeout");
	KTEST(hwt_cancel_sync(&many[0].timeout) == 1, "its timeout was pending");

	hwt_periodic_init(&periodic, wheel, &kt_nothing_ops);
	KTEST(hwt_schedule_periodic(&periodic, KT_HOUR, KT_HOUR, HWT_MODE_FIXED_RATE) == 0 &&
	      hwt_schedule(&many[1].timeout, KT_HOUR) == -EAGAIN, "a periodic timeout counts");
	KTEST(hwt_cancel_sync(&periodic.timeout) == 1 &&
	      hwt_schedule(&many[1].timeout, KT_HOUR) == 0, "a cancelled one does not");
	KTEST(hwt_schedule_periodic(&periodic, KT_HOUR, KT_HOUR, HWT_MODE_FIXED_RATE) == -EAGAIN,
	      "beyond the limit a periodic schedule gets -EAGAIN");
	hwt_wheel_destroy(wheel);
}

/* -- Exact under contention ---------------------------------------------- */

static atomic_t accepted, refused;

static int contend(void *arg)
{
	unsigned int i = 0;
	int ret;

	while (!kthread_should_stop()) {
		struct hwt_timeout *timeout = &many[i++ * 7 % OBJECTS].timeout;

		ret = hwt_schedule(timeout, i % 3 ? KT_HOUR : KT_MS);
		if (ret == -EAGAIN)
			atomic_inc(&refused);
		else if (ret >= 0)
			atomic_inc(&accepted);
		if (i % 5 == 0)
			hwt_cancel(&many[i % OBJECTS].timeout);
		if (i % 1024 == 0)
			usleep_range(100, 200);
	}
	return 0;
}

static void __init test_limit_contention(void)
{
	struct hwt_wheel *wheel = limited(LIMIT);
	struct task_struct *thread[3];
	int i, n;

	for (i = 0; i < ARRAY_SIZE(thread); i++)
		thread[i] = kt_thread(contend, NULL, i);
	msleep(300);
	KT_WAIT(atomic_read(&accepted) && atomic_read(&refused));
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		kt_thread_stop(thread[i]);
	for (n = 0; n < OBJECTS; n++)
		hwt_cancel_sync(&many[n].timeout);
	KTEST(atomic_read(&accepted) && atomic_read(&refused),
	      "threads at the limit: some schedules are accepted, some refused");
	KTEST(hwt_wheel_pending(wheel) == 0, "none is pending in the end");
	for (i = 0, n = 0; i < OBJECTS; i++)
		n += hwt_schedule(&many[i].timeout, KT_HOUR) == 0;
	KTEST(n == LIMIT, "then exactly %d schedules are accepted: %d", LIMIT, n);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == LIMIT, "a stop hands them back");
	hwt_wheel_destroy(wheel);
}

/* -- Units ------------------------------------------------------------------- */

static void __init test_units(void)
{
	u16 seconds = 65535;

	KTEST(hwt_secs(seconds) == 65535000000000ULL && hwt_msecs(seconds) == 65535000000ULL,
	      "units: 64 bits, also from a u16");
	KTEST(hwt_secs(U64_MAX / NSEC_PER_SEC) == U64_MAX / NSEC_PER_SEC * NSEC_PER_SEC &&
	      hwt_secs(U64_MAX / NSEC_PER_SEC + 1) == U64_MAX && hwt_msecs(U64_MAX) == U64_MAX,
	      "units: U64_MAX if it does not fit");
}

static void __init selftest(void)
{
	struct hwt_wheel *wheel = kt_wheel("basics");

	test_limit();
	test_limit_self();
	test_limit_contention();
	test_never(wheel);
	test_static_initialiser(wheel);
	test_schedule(wheel);
	test_slack(wheel);
	test_combinations(wheel);
	test_references(wheel);
	test_dead(wheel);
	test_callback(wheel);
	test_units();
	KTEST(hwt_wheel_pending(wheel) == 0, "no timeout is left pending");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

KSTM_MODULE_LOADERS(test_basics);
