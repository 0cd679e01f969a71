// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspend and hibernation: a freezable wheel stands still while tasks are frozen, other wheels do
 * not, and each clock counts the time that it should.
 *
 * The test uses the test modes of the kernel (/sys/power/pm_test). "freezer" freezes all tasks, and
 * thaws them after a delay. "core" also suspends devices, CPUs and clocks, and returns after a
 * delay instead of calling the firmware. Meanwhile the CPU of the caller is busy waiting, so the
 * wheels are pinned to other CPUs.
 *
 * hwt-test: timeout 120
 */
#include <linux/ktime.h>
#include <linux/suspend.h>
#include <trace/events/power.h>

#include "hwt_ktest.h"

/* -- Suspend and hibernation --------------------------------------------- */

/* Suspend in test mode @mode for @seconds; hibernation always takes 5 s. */
static int __init fall_asleep(const char *mode, const char *state, const char *seconds)
{
	int ret;

	ret = kt_write("/sys/power/pm_test", mode) ?:
	      kt_write("/sys/module/suspend/parameters/pm_test_delay", seconds) ?:
	      kt_write("/sys/power/state", state);
	kt_write("/sys/power/pm_test", "none");
	return ret;
}

/* True from the end of freezing until the start of thawing. */
static bool frozen_now;

static void note_suspend(void *data, const char *action, int val, bool start)
{
	if (!strcmp(action, "freeze_processes"))
		WRITE_ONCE(frozen_now, !start);
	else if (!strcmp(action, "thaw_processes"))
		WRITE_ONCE(frozen_now, false);
}

/* -- Timeouts ------------------------------------------------------------ */

/* @frozen: firings while tasks were frozen; @place: order among all firings; @cpu: its CPU */
struct item {
	struct kt	kt;
	atomic_t	frozen;
	int		place;
	unsigned int	cpu;
};

static atomic_t places;

static void item_expire(struct hwt_timeout *timeout)
{
	struct item *item = container_of(kt_note_expired(timeout), struct item, kt);

	if (READ_ONCE(frozen_now))
		atomic_inc(&item->frozen);
	item->place = atomic_inc_return(&places);
	item->cpu = raw_smp_processor_id();
	atomic_inc_return_release(&item->kt.expired);
}

static const struct hwt_timeout_ops item_ops = { .expire = item_expire, .release = kt_release };

static void __init arm(struct item *item, struct hwt_wheel *wheel, u64 delay_ns)
{
	memset(item, 0, sizeof(*item));
	kt_init(&item->kt, wheel, &item_ops);
	kt_schedule(&item->kt, delay_ns);
}

/* Did the timeout fire once, not early, and was it released? */
static bool good(const struct item *item)
{
	return kt_expirations(&item->kt) == 1 && !atomic_read(&item->kt.early) &&
	       kt_releases(&item->kt) == 1;
}

/* -- The freezer --------------------------------------------------------- */

#define ITEMS	50

static struct actor {
	const char		*name;
	u32			flags;
	unsigned int		workers;
	struct hwt_wheel	*wheel;
	struct item		item[ITEMS];
	struct item		beat;
	/* Used by a callback while tasks are frozen: scheduled, cancelled, cancelled by _sync. */
	struct item		poked, dropped, taken;
	int			took;
	/* A wheel with the same parameters, which is destroyed while tasks are frozen. */
	struct hwt_wheel	*doomed;
	struct item		left;
	int			ended;
} actors[] = {
	{ "freezable", HWT_FREEZABLE },
	{ "freezable, workers", HWT_FREEZABLE, 2 },
	{ "not freezable", 0 },
	{ "not freezable, workers", 0, 2 },
};

/* A callback on a wheel that is not frozen uses the timeouts of the wheels in actors[]. */
static atomic_t meddled;
/* It has created and destroyed a freezable wheel while tasks were frozen. */
static bool created_frozen;

/* Without PREEMPT_RCU, a destroy waits for the CPU on which the kernel waits with mdelay(). */
#define STILL_FROZEN	(!IS_ENABLED(CONFIG_PREEMPT_RCU) || READ_ONCE(frozen_now))

static void meddle(struct hwt_timeout *timeout)
{
	struct hwt_wheel *wheel;
	unsigned int i;

	if (!READ_ONCE(frozen_now) || atomic_xchg(&meddled, 1))
		return;
	wheel = kt_wheel("late", .flags = HWT_FREEZABLE, .workers = 1, .shards = 1);
	created_frozen = !IS_ERR(wheel) && hwt_wheel_destroy(wheel) == 0 && STILL_FROZEN;
	for (i = 0; i < ARRAY_SIZE(actors); i++) {
		kt_schedule(&actors[i].poked.kt, 0);
		hwt_cancel(&actors[i].dropped.kt.timeout);
		actors[i].took = hwt_cancel_sync(&actors[i].taken.kt.timeout);
		actors[i].ended = hwt_wheel_destroy(actors[i].doomed) == 0 &&
				  STILL_FROZEN;
	}
}

static const struct hwt_timeout_ops meddler_ops = { .expire = meddle };

static void __init actor_begin(struct actor *actor, const struct cpumask *cpus)
{
	unsigned int i;

	actor->wheel = kt_wheel("freeze", .flags = actor->flags, .workers = actor->workers,
				.cpus = cpus);
	for (i = 0; i < ITEMS; i++)
		arm(&actor->item[i], actor->wheel, i * 30 * KT_MS);
	arm(&actor->poked, actor->wheel, KT_HOUR);
	arm(&actor->dropped, actor->wheel, KT_HOUR);
	arm(&actor->taken, actor->wheel, KT_HOUR);
	actor->doomed = kt_wheel("doomed", .flags = actor->flags, .workers = actor->workers,
				 .cpus = cpus);
	arm(&actor->left, actor->doomed, KT_HOUR);
	kt_init_periodic(&actor->beat.kt, actor->wheel, &item_ops);
	hwt_schedule_periodic(&actor->beat.kt.periodic, 0, 10 * KT_MS, HWT_MODE_FIXED_RATE);
}

static bool actor_done(struct actor *actor)
{
	unsigned int i;

	for (i = 0; i < ITEMS; i++)
		if (!good(&actor->item[i]))
			return false;
	return true;
}

static void __init actor_end(struct actor *actor, bool slept)
{
	bool freezable = actor->flags & HWT_FREEZABLE;
	unsigned int i, frozen = 0, odd = 0;

	KTEST(KT_WAIT(actor_done(actor)), "%s: in the end each has fired once, none early",
	      actor->name);
	hwt_cancel_sync(&actor->beat.kt.timeout);
	for (i = 0; i < ITEMS; i++) {
		frozen += atomic_read(&actor->item[i].frozen);
		odd += i && actor->item[i - 1].place >= actor->item[i].place;
	}
	if (!actor->workers)
		KTEST(odd == 0, "%s: firings out of the order of deadlines: %u",
		      actor->name, odd);
	frozen += atomic_read(&actor->beat.frozen);
	frozen += atomic_read(&actor->poked.frozen);
	if (slept && freezable) {
		KTEST(frozen == 0, "%s: firings while tasks were frozen: %u",
		      actor->name, frozen);
		/* The number depends on the emulator: a second of pm_test may be shorter. */
		KTEST(hwt_overruns_total(&actor->beat.kt.periodic) > 10,
		      "%s: a periodic timeout has missed %llu periods", actor->name,
		      hwt_overruns_total(&actor->beat.kt.periodic));
	} else if (slept) {
		KTEST(frozen > 10, "%s: timeouts fired while tasks were frozen: %u",
		      actor->name, frozen);
	}
	if (slept) {
		KTEST(atomic_read(&meddled) && KT_WAIT(good(&actor->poked)),
		      "%s: a timeout scheduled meanwhile fires", actor->name);
		KTEST(KT_WAIT(kt_releases(&actor->dropped.kt) == 1) &&
		      kt_expirations(&actor->dropped.kt) == 0,
		      "%s: a timeout cancelled meanwhile is released", actor->name);
		KTEST(actor->took == 1 && kt_expirations(&actor->taken.kt) == 0 &&
		      kt_releases(&actor->taken.kt) == 1,
		      "%s: a cancel_sync meanwhile did not wait", actor->name);
		KTEST(actor->ended && kt_releases(&actor->left.kt) == 1,
		      "%s: another wheel was destroyed meanwhile", actor->name);
	} else {
		hwt_wheel_destroy(actor->doomed);
	}
	KTEST(hwt_wheel_destroy(actor->wheel) == 0, "%s: the wheel is destroyed", actor->name);
}

static void __init test_freezer(void)
{
	const struct cpumask *other = cpumask_of(kt_other_cpu(0));
	struct hwt_wheel *wheel = kt_wheel("meddler", .cpus = other);
	struct hwt_periodic meddler;
	unsigned int i;
	int ret;

	/* The kernel waits with mdelay(): an emulated CPU 1 may not know the speed of that. */
	kt_stay_on(cpumask_of(0));
	for (i = 0; i < ARRAY_SIZE(actors); i++)
		actor_begin(&actors[i], other);
	hwt_periodic_init(&meddler, wheel, &meddler_ops);
	hwt_schedule_periodic(&meddler, 0, 10 * KT_MS, HWT_MODE_FIXED_DELAY);
	ret = fall_asleep("freezer", "freeze", "1");
	kt_stay_on(NULL);
	if (ret)
		KTEST_SKIP("this kernel does not freeze tasks: %d", ret);
	for (i = 0; i < ARRAY_SIZE(actors); i++)
		actor_end(&actors[i], !ret);
	if (!ret)
		KTEST(created_frozen, "a freezable wheel is created and destroyed meanwhile");
	hwt_wheel_destroy(wheel);
}

/* -- Time in suspend ----------------------------------------------------- */

/* Return the offset of a clock from CLOCK_MONOTONIC. */
static s64 offset(enum tk_offsets which)
{
	return ktime_to_ns(ktime_mono_to_any(0, which));
}

static atomic64_t told_ns;

static void tell(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	atomic64_add(jump_ns, &told_ns);
}

/* @counts: the clock counts the time in suspend */
static struct sleeper {
	const char		*name;
	enum hwt_clock		clock;
	u32			flags;
	unsigned int		workers;
	bool			counts;
	struct hwt_wheel	*wheel;
	struct item		near, far, after;
} sleepers[] = {
	{ "monotonic", HWT_CLOCK_MONOTONIC },
	{ "monotonic, coarse", HWT_CLOCK_MONOTONIC, HWT_COARSE_CLOCK },
	{ "boottime", HWT_CLOCK_BOOTTIME, 0, 0, true },
	{ "boottime, coarse", HWT_CLOCK_BOOTTIME, HWT_COARSE_CLOCK, 0, true },
	{ "boottime, freezable", HWT_CLOCK_BOOTTIME, HWT_FREEZABLE, 0, true },
	{ "boottime, workers", HWT_CLOCK_BOOTTIME, 0, 2, true },
	{ "realtime", HWT_CLOCK_REALTIME, 0, 0, true },
	{ "realtime, freezable, workers", HWT_CLOCK_REALTIME, HWT_FREEZABLE, 2, true },
};

/*
 * Longer than suspend and resume take on CLOCK_MONOTONIC, so that none fires before: hibernation
 * allocates its image before the clocks stop, which took 2.5 s on a busy machine.
 */
#define NEAR	(KT_SLOW ? 20 * KT_SECOND : 8 * KT_SECOND)

static void __init sleeper_begin(struct sleeper *sleeper, unsigned int cpu)
{
	u64 now;

	sleeper->wheel = kt_wheel("suspend", .clock = sleeper->clock, .flags = sleeper->flags,
				  .workers = sleeper->workers, .cpus = cpumask_of(cpu),
				  .clock_set = sleeper->clock == HWT_CLOCK_REALTIME ? tell : NULL);
	/* Arm far away first, so that they cannot fire before they are moved. */
	arm(&sleeper->near, sleeper->wheel, KT_HOUR);
	arm(&sleeper->far, sleeper->wheel, KT_HOUR);
	now = hwt_wheel_now(sleeper->wheel);
	sleeper->near.kt.earliest = now + NEAR;
	hwt_schedule_at(&sleeper->near.kt.timeout, now + NEAR);
	hwt_schedule_at(&sleeper->far.kt.timeout, now + KT_HOUR);
}

/* Is the remaining time right? In suspend, only clocks with @counts make it shorter. */
static bool __init remains(struct sleeper *sleeper, u64 begun, u64 begun_end, u64 slept)
{
	u64 before, after, remaining;

	before = ktime_get_ns();
	remaining = hwt_remaining(&sleeper->far.kt.timeout);
	after = ktime_get_ns();
	if (sleeper->counts)
		remaining += slept;
	/* The deadline is rounded up to a tick. */
	return remaining <= KT_HOUR - (before - begun_end) + KT_MS &&
	       remaining >= KT_HOUR - (after - begun);
}

static void __init test_suspend(const char *state)
{
	s64 boot = offset(TK_OFFS_BOOT), real = offset(TK_OFFS_REAL), slept;
	unsigned int cpu = kt_other_cpu(0), i, last = 0;
	struct sleeper *sleeper;
	u64 begun, begun_end;
	int ret;

	atomic64_set(&told_ns, 0);
	begun = ktime_get_ns();
	for (i = 0; i < ARRAY_SIZE(sleepers); i++)
		sleeper_begin(&sleepers[i], cpu);
	begun_end = ktime_get_ns();
	ret = fall_asleep("core", state, "3");
	slept = offset(TK_OFFS_BOOT) - boot;
	real = offset(TK_OFFS_REAL) - real;
	if (ret)
		KTEST_SKIP("%s: this machine does not suspend: %d", state, ret);
	else
		KTEST(slept > 0 && real > 0, "%s: suspended for %lld ms", state,
		      div_s64(slept, NSEC_PER_MSEC));
	for (i = 0; i < ARRAY_SIZE(sleepers); i++) {
		sleeper = &sleepers[i];
		KTEST(remains(sleeper, begun, begun_end, slept),
		      "%s, %s: the time in suspend is %scounted", state, sleeper->name,
		      sleeper->counts ? "" : "not ");
		if (sleeper->clock == HWT_CLOCK_REALTIME)
			last++;
	}
	KTEST(KT_WAIT(atomic64_read(&told_ns) == last * real),
	      "%s: wheels on the wall clock learn the whole change of the clock", state);
	for (i = 0; i < ARRAY_SIZE(sleepers); i++) {
		sleeper = &sleepers[i];
		KTEST(KT_WAIT(good(&sleeper->near)), "%s, %s: a timeout fires, and not early",
		      state, sleeper->name);
		/* While its CPU was offline, the thread may have run on another CPU. */
		arm(&sleeper->after, sleeper->wheel, 0);
		KTEST(KT_WAIT(good(&sleeper->after)) && sleeper->after.cpu == cpu,
		      "%s, %s: the thread is back on its CPU", state, sleeper->name);
		if (!ret && sleeper->counts)
			KTEST(sleeper->near.place < sleepers[0].near.place,
			      "%s, %s: before the monotonic timeout", state, sleeper->name);
	}
	for (i = 0; i < ARRAY_SIZE(sleepers); i++) {
		KTEST(hwt_cancel_sync(&sleepers[i].far.kt.timeout) == 1,
		      "%s, %s: the timeout of an hour is still pending", state, sleepers[i].name);
		hwt_wheel_destroy(sleepers[i].wheel);
	}
}

static void __init selftest(void)
{
	int ret = register_trace_suspend_resume(note_suspend, NULL);

	if (ret) {
		KTEST_SKIP("no tracepoint of suspend on this kernel: %d", ret);
		return;
	}
	test_freezer();
	test_suspend("mem");
	if (!kt_quick())
		test_suspend("disk");
	unregister_trace_suspend_resume(note_suspend, NULL);
	tracepoint_synchronize_unregister();
}

KSTM_MODULE_LOADERS(test_freeze);
