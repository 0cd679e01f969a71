// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each call by itself: what it returns, what it changes, what the queries say. Deadlines that
 * have passed, and those that never come. The limit max_pending: exact, and what exceeds it gets
 * -EAGAIN and is not changed.
 *
 * hwt-test: shared
 * hwt-test: timeout 120
 */
#include "hwt_ktest.h"

#define BOTH (HWT_WAS_PENDING | HWT_WAS_HELD)

static struct kt fixed = { .timeout = HWT_TIMEOUT_INIT(fixed.timeout, &kt_ops) };

static void __init test_wheel_life(void)
{
	struct hwt_wheel_params params;
	struct hwt_wheel *wheel = hwt_wheel_create(NULL);
	struct kt kt;

	hwt_wheel_get_params(wheel, &params);
	KTEST(params.tick_ns == KT_MS && params.ticks_per_wheel == 8192 &&
	      params.levels == 3 && params.clock == HWT_CLOCK_MONOTONIC &&
	      params.flags == 0 && params.max_pending == 0,
	      "the defaults are 1 ms, 8192 buckets, 3 levels, monotonic, no limit");
	KTEST(!strcmp(params.name, "hwt"), "its name is hwt");
	KTEST(hwt_wheel_pending(wheel) == 0, "nothing is pending on a new wheel");

	kt_init(&kt, wheel, &kt_ops);
	KTEST(!hwt_cancel(&kt.timeout) && hwt_cancel_sync(&kt.timeout) == 0, "nothing to cancel");
	KTEST(kt_schedule(&kt, KT_HOUR) == 0, "the first schedule");
	KTEST(hwt_wheel_pending(wheel) == 1, "one is pending");
	KTEST(hwt_cancel_sync(&kt.timeout) == 1 && hwt_wheel_pending(wheel) == 0,
	      "none is pending after cancel_sync");

	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 0, "stop of an empty wheel");
	KTEST(kt_stopped(wheel), "it is stopped");
	KTEST(hwt_wheel_destroy(wheel) == 0, "a stopped wheel can be destroyed");

	wheel = hwt_wheel_create(NULL);
	KTEST(hwt_wheel_destroy(wheel) == 0, "another one without being used");
}

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

static void __init test_conditions(struct hwt_wheel *wheel)
{
	u64 deadline;
	struct kt kt;

	kt_init(&kt, wheel, &kt_ops);
	KTEST(hwt_schedule_pending(&kt.timeout, KT_HOUR) == -ENOENT &&
	      hwt_schedule_pending_at(&kt.timeout, KT_HOUR) == -ENOENT &&
	      !hwt_held(&kt.timeout), "schedule_pending leaves an idle one alone");
	KTEST(hwt_schedule_earlier(&kt.timeout, KT_HOUR) == 0 &&
	      hwt_pending(&kt.timeout), "schedule_earlier arms an idle one");
	deadline = hwt_deadline(&kt.timeout);
	KTEST(hwt_schedule_earlier(&kt.timeout, KT_HOUR * 2) == BOTH &&
	      hwt_deadline(&kt.timeout) == deadline, "schedule_earlier does not push back");
	KTEST(hwt_schedule_flags(&kt.timeout, deadline, 0, KT_EARLIER_AT) == BOTH &&
	      hwt_deadline(&kt.timeout) == deadline, "nor move to the same tick");
	KTEST(hwt_schedule_flags(&kt.timeout, deadline - KT_MS, 0, KT_EARLIER_AT) == BOTH &&
	      hwt_deadline(&kt.timeout) == deadline - KT_MS, "it pulls forward");
	KTEST(hwt_schedule_pending_at(&kt.timeout, deadline) == BOTH &&
	      hwt_deadline(&kt.timeout) == deadline, "schedule_pending pushes a pending one back");
	KTEST(hwt_schedule_pending(&kt.timeout, KT_HOUR / 2) == BOTH &&
	      hwt_deadline(&kt.timeout) < deadline, "and pulls it forward");
	hwt_cancel(&kt.timeout);
	KTEST(hwt_schedule_pending(&kt.timeout, KT_HOUR) == -ENOENT &&
	      hwt_cancelled(&kt.timeout), "it leaves a cancelled one alone");
	KTEST((hwt_schedule_earlier(&kt.timeout, KT_HOUR * 2) & ~HWT_WAS_HELD) == 0 &&
	      hwt_deadline(&kt.timeout) > deadline,
	      "the deadline of a cancelled one holds nothing back");
	KTEST(hwt_schedule_earlier(&kt.timeout, 0) == BOTH &&
	      KT_WAIT(kt_expirations(&kt) == 1), "pulled forward to now it fires");
	hwt_cancel_sync(&kt.timeout);
}

/* Due, and its turn has not come. */
static void __init test_pushed_back(void)
{
	struct hwt_wheel *wheel = kt_wheel("pushed", .workers = 1, .shards = 1);
	static struct kt_stay stay;
	struct kt kt;

	KTEST(kt_stay_begin(&stay, wheel), "the only worker is in a callback");
	kt_init(&kt, wheel, &kt_ops);
	hwt_schedule_at(&kt.timeout, 0);
	KTEST(KT_WAIT(kt_stats(wheel).collected == 2), "another one is due");
	KTEST(hwt_schedule(&kt.timeout, KT_HOUR) == BOTH, "and is pushed back");
	kt_stay_end(&stay);
	KTEST(hwt_wheel_flush(wheel) == 0 && kt_expirations(&kt) == 0 &&
	      hwt_pending(&kt.timeout), "then it is not due any more");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

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
	kt_init(&kt, wheel, &kt_ops);
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_expirations(&kt) == 1),
	      "initialised again it lives again");
	hwt_shutdown_sync(&kt.timeout);
}

/* -- Seen from the callback ---------------------------------------------- */

static struct {
	struct kt	kt;
	atomic_t	stay;
	bool		running, pending, expired, held, cancelled;
	u64		deadline;
	int		self_schedule;
	bool		self_cancel;
} inside;

static void inside_expire(struct hwt_timeout *timeout)
{
	if (kt_expirations(&inside.kt) == 0) {
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
	while (atomic_read(&inside.stay))
		usleep_range(500, 1000);
}

static const struct hwt_timeout_ops inside_ops = { .expire = inside_expire, .release = kt_release };

static void __init test_callback(struct hwt_wheel *wheel)
{
	struct hwt_timeout *timeout = &inside.kt.timeout;

	kt_init(&inside.kt, wheel, &inside_ops);
	atomic_set(&inside.stay, 1);
	KTEST(hwt_try_cancel(timeout) == 0, "try_cancel of an idle one: nothing");
	hwt_schedule(timeout, KT_HOUR);
	KTEST(hwt_try_cancel(timeout) == HWT_WAS_PENDING && hwt_cancelled(timeout),
	      "try_cancel of a pending one: pending");
	/* Whether or not that was let go already: what follows is another hold. */
	hwt_cancel_sync(timeout);
	atomic_set(&inside.kt.released, 0);
	hwt_schedule(timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&inside.kt) == 1), "its callback runs");
	KTEST(inside.running && inside.held && inside.expired && !inside.pending &&
	      !inside.cancelled && inside.deadline == 0,
	      "in its callback: running, held, expired, not pending");
	KTEST(!inside.self_cancel, "a one-shot cannot be cancelled in its callback");
	KTEST(inside.self_schedule == HWT_WAS_HELD, "but scheduled: it was held, and not pending");
	KTEST(hwt_running(timeout) && hwt_pending(timeout), "from outside: running and pending");
	KTEST(hwt_try_cancel(timeout) == (HWT_WAS_PENDING | HWT_IS_RUNNING), "try_cancel: both");
	KTEST(hwt_try_cancel(timeout) == HWT_IS_RUNNING, "once more: running, not pending");
	KTEST(kt_releases(&inside.kt) == 0, "all that is one hold");
	atomic_set(&inside.stay, 0);
	KTEST(KT_WAIT(kt_releases(&inside.kt) == 1) && !hwt_running(timeout) &&
	      !hwt_held(timeout), "let go when the callback has returned");
	KTEST(kt_expirations(&inside.kt) == 1, "cancelled in time, it ran once");
	hwt_schedule(timeout, 0);
	KTEST(KT_WAIT(kt_releases(&inside.kt) == 2) && hwt_expired(timeout) &&
	      !hwt_cancelled(timeout), "fired once more: expired, not cancelled");
	KTEST(!hwt_cancel(timeout) && hwt_expired(timeout), "a cancel after that changes nothing");
	hwt_shutdown_sync(timeout);
}

/* The clock that delays of the wheel count from. The coarse one may be late by any time that
 * its CPU has stood still for; what is scheduled fires early by as much, and no more.
 */
static u64 __init base_clock(enum hwt_clock clock, u32 flags)
{
	bool boottime = clock == HWT_CLOCK_BOOTTIME;

	if (flags & HWT_COARSE_CLOCK)
		return boottime ? ktime_to_ns(ktime_get_coarse_boottime()) :
				  ktime_get_coarse_ns();
	return boottime ? ktime_get_boottime_ns() : ktime_get_ns();
}

static void __init test_clock(const char *name, enum hwt_clock clock, u32 flags)
{
	struct hwt_wheel *wheel = kt_wheel(name, .clock = clock, .flags = flags);
	u64 before, now, after, tick;
	struct kt kt;

	before = base_clock(clock, 0);
	now = hwt_wheel_now(wheel);
	after = base_clock(clock, 0);
	KTEST(before <= now && now <= after, "%s: its time is the clock's", name);
	tick = kt_wheel_tick(wheel);
	KTEST(tick >= kt_ms(after) && tick <= kt_ms(hwt_wheel_now(wheel)),
	      "%s: its tick is the clock's", name);
	kt_init(&kt, wheel, &kt_ops);
	kt.earliest = base_clock(clock, flags) + 200 * KT_MS;
	hwt_schedule(&kt.timeout, 200 * KT_MS);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1) && !atomic_read(&kt.early),
	      "%s: fires, and not early", name);
	hwt_wheel_destroy(wheel);
}

/* -- Never, and at once --------------------------------------------------- */

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

static void __init test_at_once(struct hwt_wheel *wheel)
{
	u64 past[] = { 0, 1, hwt_wheel_now(wheel) - KT_MS, hwt_wheel_now(wheel) };
	struct kt kt;
	int i;

	kt_init(&kt, wheel, &kt_ops);
	for (i = 0; i < ARRAY_SIZE(past); i++) {
		hwt_schedule_at(&kt.timeout, past[i]);
		KTEST(KT_WAIT(kt_expirations(&kt) == i + 1) && kt.task != current,
		      "a deadline of %llu, passed: fires, not inside the call", past[i]);
	}
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt) == i + 1) && kt.task != current,
	      "a delay of 0 fires, not inside the call");
	hwt_shutdown_sync(&kt.timeout);
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
	KTEST(kt_stats(wheel).rejected == 3, "three refusals are counted");
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

static const struct hwt_timeout_ops self_ops = { .expire = self_expire };

static void __init test_limit_self(void)
{
	struct hwt_wheel *wheel = limited(1);
	struct hwt_periodic periodic;

	kt_init(&many[0], wheel, &self_ops);
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

/* A cancel at the tick of expiry: each one fires or is cancelled, and gives its place back once. */
static void __init test_limit_at_expiry(void)
{
	enum { N = 64 };
	struct hwt_wheel *wheel = kt_wheel("close", .max_pending = N);
	int round, i, hits, fired, odd = 0, both = 0;
	static struct kt kt[N];
	u64 deadline;

	for (i = 0; i < N; i++)
		kt_init(&kt[i], wheel, &kt_plain_ops);
	for (round = 0; round < 50; round++) {
		deadline = hwt_wheel_now(wheel) + 4 * KT_MS;
		for (i = 0; i < N; i++) {
			atomic_set(&kt[i].expired, 0);
			odd += hwt_schedule_at(&kt[i].timeout, deadline) != 0;
		}
		/* From the deadline to a bit after it: somewhere there it fires. */
		while (hwt_wheel_now(wheel) < deadline + round * 60 * NSEC_PER_USEC)
			cpu_relax();
		for (i = 0, hits = 0; i < N; i++)
			hits += hwt_cancel(&kt[i].timeout);
		for (i = 0, fired = 0; i < N; i++) {
			hwt_cancel_sync(&kt[i].timeout);
			fired += kt_expirations(&kt[i]);
		}
		/* Not before: one that is about to fire has ended, and is not counted yet. */
		odd += hwt_wheel_pending(wheel) != 0 || hits + fired != N;
		both += hits && fired;
	}
	pr_info("# %d of 50 rounds had both cancels that hit and expiries\n", both);
	KTEST(odd == 0, "the count is exact after cancels at the tick of expiry");
	hwt_wheel_destroy(wheel);
}

static void __init selftest(void)
{
	struct hwt_wheel *wheel = kt_wheel("basics");

	test_wheel_life();
	test_limit();
	test_limit_self();
	test_limit_contention();
	test_limit_at_expiry();
	test_never(wheel);
	test_at_once(wheel);
	test_static_initialiser(wheel);
	test_schedule(wheel);
	test_slack(wheel);
	test_conditions(wheel);
	test_pushed_back();
	test_dead(wheel);
	test_callback(wheel);
	test_clock("monotonic", HWT_CLOCK_MONOTONIC, 0);
	test_clock("boottime", HWT_CLOCK_BOOTTIME, 0);
	test_clock("coarse", HWT_CLOCK_MONOTONIC, HWT_COARSE_CLOCK);
	test_clock("coarse-boot", HWT_CLOCK_BOOTTIME, HWT_COARSE_CLOCK);
	KTEST(hwt_wheel_pending(wheel) == 0, "nothing is left pending");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

KSTM_MODULE_LOADERS(test_basics);
