// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each call by itself: what it returns, what it changes, what the queries say. All flags of a
 * schedule, a reference for each hold. Deadlines that have passed, and those that never come. The
 * limit max_pending: exact, and what exceeds it gets -EAGAIN and is not changed.
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
	      "a static timeout is nothing yet and has no wheel");
	KTEST(hwt_schedule(&fixed.timeout, 0) == -EINVAL &&
	      hwt_schedule_at(&fixed.timeout, 0) == -EINVAL &&
	      hwt_schedule_slack(&fixed.timeout, 0, 1) == -EINVAL &&
	      hwt_schedule_earlier(&fixed.timeout, 0) == -EINVAL &&
	      hwt_schedule_pending(&fixed.timeout, 0) == -EINVAL &&
	      hwt_schedule_pending_at(&fixed.timeout, 0) == -EINVAL,
	      "without a wheel every schedule is refused");
	KTEST(!hwt_cancel(&fixed.timeout) && hwt_try_cancel(&fixed.timeout) == 0 &&
	      hwt_cancel_sync(&fixed.timeout) == 0, "without a wheel a cancel finds nothing");
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
	KTEST(hwt_schedule(&kt.timeout, KT_HOUR) == 0, "schedule says it was idle");
	after = hwt_wheel_now(wheel);
	KTEST(hwt_pending(&kt.timeout) && hwt_held(&kt.timeout) &&
	      !hwt_running(&kt.timeout) && !hwt_expired(&kt.timeout) &&
	      !hwt_cancelled(&kt.timeout), "it is pending and held, nothing else");
	deadline = hwt_deadline(&kt.timeout);
	KTEST(deadline >= before + KT_HOUR && deadline < after + KT_HOUR + KT_MS &&
	      deadline == kt_ms(deadline) * KT_MS, "its deadline is rounded up to a tick");
	remaining = hwt_remaining(&kt.timeout);
	after = hwt_wheel_now(wheel);
	KTEST(remaining <= deadline - before && remaining >= deadline - after,
	      "what remains fits the deadline");

	deadline += 7 * KT_MS;
	KTEST(hwt_schedule_at(&kt.timeout, deadline) == BOTH &&
	      hwt_deadline(&kt.timeout) == deadline,
	      "schedule_at of a pending one moves it, to the ns on a tick");
	KTEST(hwt_schedule_at(&kt.timeout, deadline - 9 * KT_MS - 1) == BOTH &&
	      hwt_deadline(&kt.timeout) == deadline - 9 * KT_MS, "and back again, rounded up");
	KTEST(hwt_wheel_pending(wheel) == 1, "moved ones count once");
	KTEST(hwt_cancel(&kt.timeout), "cancel hits");
	KTEST(!hwt_pending(&kt.timeout) && hwt_cancelled(&kt.timeout) &&
	      !hwt_expired(&kt.timeout) && hwt_deadline(&kt.timeout) == 0 &&
	      hwt_remaining(&kt.timeout) == 0, "it is cancelled, not pending");
	KTEST(!hwt_cancel(&kt.timeout) && hwt_cancelled(&kt.timeout),
	      "a second cancel finds nothing and changes nothing");
	KTEST(KT_WAIT(kt_releases(&kt) == 1) && !hwt_held(&kt.timeout),
	      "after a while it is let go");
	KTEST(atomic_read(&kt.cancelled) == 1 && kt_expirations(&kt) == 0,
	      "its cancelled callback has run once, expire has not");
	KTEST(hwt_schedule(&kt.timeout, KT_HOUR) == 0 &&
	      !hwt_cancelled(&kt.timeout), "scheduled again it is new");
	hwt_cancel(&kt.timeout);
	KTEST(!(hwt_schedule(&kt.timeout, KT_HOUR) & HWT_WAS_PENDING),
	      "scheduled after a cancel it was not pending");
	KTEST(hwt_cancel_sync(&kt.timeout) == 1 && !hwt_held(&kt.timeout),
	      "cancel_sync says that it was pending, and lets it go");
	KTEST(hwt_cancel_sync(&kt.timeout) == 0, "a second one finds nothing");
	KTEST(kt_expirations(&kt) == 0, "nothing has fired");
	KTEST(hwt_schedule_at(&kt.timeout, 1) == 0 && KT_WAIT(kt_expirations(&kt) == 1) &&
	      kt.task != current, "a deadline that has passed fires, not inside the call");
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
	      hwt_deadline(&kt.timeout) == base + KT_MS, "a slack of 0 is none");
	hwt_schedule_flags(&kt.timeout, base, 999 * KT_MS, HWT_SCHEDULE_AT);
	deadline = hwt_deadline(&kt.timeout);
	KTEST(deadline >= base && deadline <= base + 999 * KT_MS,
	      "with a slack the deadline is inside of it");
	KTEST((kt_ms(deadline) & 511) == 0, "999 ticks of slack reach a multiple of 512 ticks");
	hwt_schedule_flags(&kt.timeout, deadline - 3 * KT_MS, 3 * KT_MS, HWT_SCHEDULE_AT);
	KTEST(hwt_deadline(&kt.timeout) == deadline, "slack up to a round tick: that tick");
	hwt_schedule_flags(&kt.timeout, deadline - 3 * KT_MS, 2 * KT_MS + 999999, HWT_SCHEDULE_AT);
	KTEST(hwt_deadline(&kt.timeout) < deadline, "the end of the slack is rounded down");
	hwt_schedule_flags(&kt.timeout, base, U64_MAX, HWT_SCHEDULE_AT);
	KTEST(hwt_deadline(&kt.timeout) >= base, "an endless slack");
	KTEST(hwt_schedule_slack(&kt.timeout, 5 * KT_MS, KT_MS * 10) == BOTH &&
	      KT_WAIT(kt_expirations(&kt) == 1), "with slack it fires as well");
	hwt_cancel_sync(&kt.timeout);
}

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
	KTEST(hwt_schedule_flags(&kt.timeout, moved, 0, KT_EARLIER_AT) == BOTH &&
	      hwt_deadline(&kt.timeout) == moved, "earlier: the same tick is left as it is");
	KTEST(hwt_schedule_flags(&kt.timeout, 2 * KT_HOUR, 0, HWT_SCHEDULE_EARLIER |
				 HWT_SCHEDULE_PENDING) == BOTH &&
	      hwt_deadline(&kt.timeout) == moved, "earlier and pending: later is left as it is");
	KTEST(hwt_schedule_flags(&kt.timeout, 2 * KT_HOUR, KT_HOUR, HWT_SCHEDULE_PENDING) == BOTH &&
	      hwt_remaining(&kt.timeout) > 2 * KT_HOUR - KT_SECOND * KT_PATIENCE &&
	      hwt_remaining(&kt.timeout) <= 3 * KT_HOUR, "pending, with slack: moved, within it");
	KTEST(hwt_schedule_flags(&kt.timeout, 0, 0, HWT_SCHEDULE_PERIODIC) == -EINVAL &&
	      hwt_schedule_flags(&kt.timeout, 0, 0, 0x20) == -EINVAL, "other flags are refused");
	hwt_cancel(&kt.timeout);
	KTEST(hwt_schedule_pending(&kt.timeout, KT_HOUR) == -ENOENT &&
	      hwt_cancelled(&kt.timeout), "pending: a cancelled one is left alone");
	KTEST((hwt_schedule_earlier(&kt.timeout, KT_HOUR * 4) & ~HWT_WAS_HELD) == 0 &&
	      hwt_remaining(&kt.timeout) > 3 * KT_HOUR,
	      "earlier: the deadline of a cancelled one holds nothing back");
	KTEST(hwt_schedule_earlier(&kt.timeout, 0) == BOTH &&
	      KT_WAIT(kt_expirations(&kt) == 1), "earlier: pulled forward to now it fires");
	hwt_cancel_sync(&kt.timeout);
	KTEST(hwt_schedule_unless_pending(&kt.timeout, KT_MS) == 0 &&
	      KT_WAIT(kt_expirations(&kt) == 2), "unless pending: another one fires");
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

/* -- Shut down ------------------------------------------------------------------ */

static void __init test_dead(struct hwt_wheel *wheel)
{
	struct kt kt;

	kt_init(&kt, wheel, &kt_ops);
	hwt_schedule(&kt.timeout, KT_HOUR);
	KTEST(hwt_shutdown_sync(&kt.timeout) == 1 && kt_releases(&kt) == 1,
	      "shutdown_sync says that it was pending, and lets it go");
	KTEST(hwt_schedule(&kt.timeout, 0) == -ESHUTDOWN &&
	      hwt_schedule_at(&kt.timeout, 0) == -ESHUTDOWN &&
	      hwt_schedule_slack(&kt.timeout, 0, 1) == -ESHUTDOWN &&
	      hwt_schedule_earlier(&kt.timeout, 0) == -ESHUTDOWN &&
	      hwt_schedule_pending(&kt.timeout, 0) == -ESHUTDOWN,
	      "a dead timeout cannot be scheduled");
	KTEST(!hwt_held(&kt.timeout) && hwt_cancelled(&kt.timeout) &&
	      hwt_shutdown_sync(&kt.timeout) == 0 &&
	      hwt_cancel_sync(&kt.timeout) == 0 && !hwt_cancel(&kt.timeout),
	      "it stays cancelled, and there is nothing to cancel");
	hwt_reopen(&kt.timeout);
	KTEST(hwt_cancelled(&kt.timeout) && !hwt_held(&kt.timeout), "reopen: nothing else changes");
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_expirations(&kt) == 1),
	      "reopen: it fires again");
	hwt_reopen(&kt.timeout);
	KTEST(hwt_expired(&kt.timeout), "reopen: of an open one: nothing changes");
	hwt_shutdown_sync(&kt.timeout);
	kt_init(&kt, wheel, &kt_ops);
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_expirations(&kt) == 1),
	      "initialised again it lives again");
	hwt_shutdown_sync(&kt.timeout);
}

/* -- Seen from the callback ---------------------------------------------- */

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
	KTEST(hwt_try_cancel(timeout) == 0, "try_cancel of an idle one: nothing");
	hwt_schedule(timeout, KT_HOUR);
	KTEST(hwt_try_cancel(timeout) == HWT_WAS_PENDING && hwt_cancelled(timeout),
	      "try_cancel of a pending one: pending");
	/* Whether or not that was let go already: what follows is another hold. */
	hwt_cancel_sync(timeout);
	atomic_set(&stay.kt.released, 0);
	hwt_schedule(timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&stay.kt) == 1), "its callback runs");
	KTEST(inside.running && inside.held && inside.expired && !inside.pending &&
	      !inside.cancelled && inside.deadline == 0,
	      "in its callback: running, held, expired, not pending");
	KTEST(!inside.self_cancel, "a one-shot cannot be cancelled in its callback");
	KTEST(inside.self_schedule == HWT_WAS_HELD, "but scheduled: it was held, and not pending");
	KTEST(hwt_running(timeout) && hwt_pending(timeout), "from outside: running and pending");
	KTEST(hwt_try_cancel(timeout) == (HWT_WAS_PENDING | HWT_IS_RUNNING), "try_cancel: both");
	KTEST(hwt_try_cancel(timeout) == HWT_IS_RUNNING, "once more: running, not pending");
	KTEST(kt_releases(&stay.kt) == 0, "all that is one hold");
	complete_all(&stay.out);
	KTEST(KT_WAIT(kt_releases(&stay.kt) == 1) && !hwt_running(timeout) &&
	      !hwt_held(timeout), "let go when the callback has returned");
	KTEST(kt_expirations(&stay.kt) == 1, "cancelled in time, it ran once");
	hwt_schedule(timeout, 0);
	KTEST(KT_WAIT(kt_releases(&stay.kt) == 2) && hwt_expired(timeout) &&
	      !hwt_cancelled(timeout), "fired once more: expired, not cancelled");
	KTEST(!hwt_cancel(timeout) && hwt_expired(timeout), "a cancel after that changes nothing");
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
		      "a deadline of %llx: pending, never", far[i]);
		hwt_schedule(&soon.timeout, 5 * KT_MS);
		KTEST(KT_WAIT(kt_expirations(&soon) == i + 1) && !kt_expirations(&kt) &&
		      hwt_cancel(&kt.timeout), "does not fire when others do, and is cancelled");
		hwt_schedule(&kt.timeout, far[i]);
		KTEST(hwt_deadline(&kt.timeout) == U64_MAX, "a delay of %llx", far[i]);
		hwt_schedule_slack(&kt.timeout, KT_HOUR, far[i]);
		KTEST(hwt_deadline(&kt.timeout) > hwt_wheel_now(wheel) + KT_HOUR / 2 &&
		      hwt_deadline(&kt.timeout) <= S64_MAX, "a slack of %llx", far[i]);
	}
	hwt_schedule(&kt.timeout, U64_MAX);
	KTEST(hwt_cancel_sync(&kt.timeout) == 1, "cancel_sync of never");
	hwt_schedule(&kt.timeout, U64_MAX);
	KTEST(hwt_schedule(&kt.timeout, 0) == BOTH && KT_WAIT(kt_expirations(&kt) == 1),
	      "pulled forward from never, it fires");
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
	      hwt_schedule_earlier(&many[2].timeout, 0) == -EAGAIN, "the third is refused");
	KTEST(!hwt_held(&many[2].timeout) && !hwt_pending(&many[2].timeout) &&
	      !hwt_cancel(&many[2].timeout) && hwt_wheel_pending(wheel) == 2,
	      "and has not changed");
	KTEST(hwt_schedule(&many[1].timeout, 2 * KT_HOUR) == BOTH, "a pending one can be moved");
	KTEST(hwt_schedule_pending(&many[2].timeout, KT_HOUR) == -ENOENT,
	      "what wants no place is not refused for lack of one");

	KTEST(hwt_cancel(&many[0].timeout) && hwt_schedule(&many[2].timeout, KT_HOUR) == 0,
	      "after a cancel there is a place, at once");
	KTEST(hwt_schedule(&many[0].timeout, KT_HOUR) == -EAGAIN &&
	      hwt_cancelled(&many[0].timeout), "one, not two");
	KTEST(hwt_cancel_sync(&many[2].timeout) == 1 &&
	      !(hwt_schedule(&many[0].timeout, KT_HOUR) & HWT_WAS_PENDING),
	      "after a cancel_sync too");

	hwt_schedule(&many[1].timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&many[1]) == 1) &&
	      hwt_schedule(&many[3].timeout, KT_HOUR) == 0, "after an expiry there is a place");
	KTEST(hwt_schedule(&many[1].timeout, KT_HOUR) == -EAGAIN, "one, not two");
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 2, "stop hands back two");
	hwt_wheel_destroy(wheel);
}

/* A callback's own place is free while it runs. */
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
	      other_ret == -EAGAIN, "a callback can take its own place again");
	KTEST(hwt_cancel_sync(&many[0].timeout) == 1, "it was pending");

	hwt_periodic_init(&periodic, wheel, &kt_nothing_ops);
	KTEST(hwt_schedule_periodic(&periodic, KT_HOUR, KT_HOUR, HWT_FIXED_RATE) == 0 &&
	      hwt_schedule(&many[1].timeout, KT_HOUR) == -EAGAIN, "a periodic one takes a place");
	KTEST(hwt_cancel_sync(&periodic.timeout) == 1 &&
	      hwt_schedule(&many[1].timeout, KT_HOUR) == 0, "and gives it back once");
	KTEST(hwt_schedule_periodic(&periodic, KT_HOUR, KT_HOUR, HWT_FIXED_RATE) == -EAGAIN,
	      "a periodic one is refused");
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
	      "threads at the limit: some accepted, some refused");
	KTEST(hwt_wheel_pending(wheel) == 0, "none pending in the end");
	for (i = 0, n = 0; i < OBJECTS; i++)
		n += hwt_schedule(&many[i].timeout, KT_HOUR) == 0;
	KTEST(n == LIMIT, "then exactly %d are accepted again: %d", LIMIT, n);
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == LIMIT, "and handed back");
	hwt_wheel_destroy(wheel);
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
	KTEST(hwt_wheel_pending(wheel) == 0, "nothing is left pending");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

KSTM_MODULE_LOADERS(test_basics);
