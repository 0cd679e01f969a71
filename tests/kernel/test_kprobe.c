// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interruptions at chosen instructions. A kprobe's handler runs before its instruction, in an
 * NMI-like context (x86), so a handler that schedules acts as an NMI, or as another CPU, there. The
 * probes are in hwt_schedule_periodic_at(), and in functions of the kernel's timekeeper and
 * scheduler, which hold locks. torture_nmi.c probes all other functions of hwt.
 *
 * hwt-test: long
 * hwt-test: timeout 240
 */
#include "hwt_ktest.h"
#include "hwt_ktest_probe.h"

static struct hwt_wheel *wheel;
static struct task_struct *target_task;

/* -- A periodic timeout that is scheduled again -------------------------- */

static struct hwt_periodic periodic;
static u64 periodic_first;
static unsigned int periodic_seen, periodic_open;

/*
 * Preemption must be off from the write of the new request to the change of the state. Otherwise
 * the engine could fire at the old deadline, and go on with the new period.
 */
static int on_periodic(struct kprobe *probe, struct pt_regs *regs)
{
	if (current != target_task || (u64)atomic64_read(&periodic.set.first_ns) != periodic_first)
		return 0;
	periodic_seen++;
	/* On x86 the breakpoint counts as an NMI, which PREEMPT_MASK does not include. */
	periodic_open += !(preempt_count() & PREEMPT_MASK) &&
			 hwt_deadline(&periodic.timeout) < periodic_first;
	return 0;
}

static void __init test_periodic(void)
{
	struct kprobe probe;
	unsigned int offset, length, n = 0;
	u8 *function;

	wheel = kt_wheel("kprobe");
	hwt_periodic_init(&periodic, wheel, &kt_nothing_ops);
	periodic_first = hwt_wheel_now(wheel) + KT_HOUR;
	hwt_schedule_periodic_at(&periodic, periodic_first, KT_HOUR, HWT_MODE_FIXED_RATE);
	target_task = current;
	function = kt_function("hwt_schedule_periodic_at", &length);
	for (offset = 0; function && offset < length; offset++) {
		if (!kt_probe(&probe, function + offset, on_periodic))
			continue;
		n++;
		periodic_first += KT_HOUR;
		hwt_schedule_periodic_at(&periodic, periodic_first, KT_HOUR, HWT_MODE_FIXED_RATE);
		unregister_kprobe(&probe);
	}
	target_task = NULL;
	KTEST(n > 5 && periodic_seen,
	      "a periodic schedule: new request at %u of %u instructions", periodic_seen, n);
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		KTEST(!periodic_open, "preemption is off at these, except for %u", periodic_open);
	hwt_wheel_destroy(wheel);
}

/* -- The kernel's own functions ------------------------------------------ */

/*
 * A probe on a kernel function, which may hold a lock that a call of hwt must not take. The
 * handler schedules on any CPU that executes the function.
 */
static struct kt own[16];
/* Two CPUs may be in the handler at once: only one of them may use a timeout. */
static atomic_t own_busy[ARRAY_SIZE(own)];
static atomic_t visits, own_odd, own_armed, own_holds;
/*
 * Maximum number of visits of a probe, after which the handler does nothing. In the scheduler,
 * visits cause visits: a schedule of the handler wakes the engine.
 */
#define VISITS_MOST	30
static unsigned int visits_end;

static void own_schedule(int ret)
{
	atomic_add(ret < 0, &own_odd);
	/* The engine, on another CPU, may have fired it already: then this arms it anew. */
	atomic_add(ret >= 0 && !(ret & HWT_WAS_PENDING), &own_armed);
	atomic_add(ret >= 0 && !(ret & HWT_WAS_HELD), &own_holds);
}

static int on_visit(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned int n = atomic_inc_return(&visits);
	atomic_t *busy = &own_busy[n % ARRAY_SIZE(own)];
	struct kt *kt = &own[n % ARRAY_SIZE(own)];

	if (IS_ENABLED(CONFIG_X86) && !in_nmi())
		atomic_inc(&own_odd);
	if ((int)(n - READ_ONCE(visits_end)) > 0)
		return 0;
	if (atomic_cmpxchg(busy, 0, 1) != 0)
		return 0;
	if (!hwt_held(&kt->timeout)) {
		WRITE_ONCE(kt->earliest, hwt_wheel_now(wheel) + n % 4 * KT_MS);
		own_schedule(hwt_schedule(&kt->timeout, n % 4 * KT_MS));
		if (n % 3 == 0) {
			own_schedule(hwt_schedule(&kt->timeout, KT_HOUR));
			own_schedule(hwt_schedule_earlier(&kt->timeout,
							  n % 4 * KT_MS));
		}
		hwt_remaining(&kt->timeout);
	}
	atomic_set_release(busy, 0);
	return 0;
}

/* Wait for other tasks to execute the probed function. */
static void __init stir(void)
{
	unsigned long end = jiffies + (KT_SLOW ? 1000 : 300) * HZ / 1000;
	int before = atomic_read(&visits);

	while (time_before(jiffies, end) && atomic_read(&visits) - before < VISITS_MOST)
		usleep_range(500, 1500);
}

static bool __init visit(const char *name, unsigned int places)
{
	unsigned int length, i, offset, hit = 0;
	u8 *function = kt_function(name, &length);
	struct kprobe probe;
	int visited;

	for (i = 0; i < places && function; i++) {
		visited = atomic_read(&visits);
		WRITE_ONCE(visits_end, visited + VISITS_MOST);
		for (offset = i * length / places; offset < length; offset++)
			if (kt_probe(&probe, function + offset, on_visit))
				break;
		if (offset >= length)
			continue;
		stir();
		unregister_kprobe(&probe);
		hit += atomic_read(&visits) != visited;
	}
	return hit;
}

static void __init test_kernel(const char *what, const char * const *names,
			       unsigned int n_names, unsigned int places)
{
	unsigned int i, functions = 0, fired = 0, held = 0, released = 0, early = 0;
	struct kt far;

	wheel = kt_wheel("kprobe");
	kt_init(&far, wheel, &kt_ops);
	hwt_schedule(&far.timeout, KT_HOUR);
	atomic_set(&visits, 0);
	atomic_set(&own_odd, 0);
	atomic_set(&own_armed, 0);
	atomic_set(&own_holds, 0);
	for (i = 0; i < ARRAY_SIZE(own); i++)
		kt_init(&own[i], wheel, &kt_ops);
	for (i = 0; i < n_names; i++)
		functions += visit(names[i], places);
	if (!functions) {
		KTEST_SKIP("%s: no function can be probed", what);
		goto out;
	}
	for (i = 0; i < ARRAY_SIZE(own); i++) {
		KT_WAIT(!hwt_held(&own[i].timeout));
		held += hwt_cancel_sync(&own[i].timeout) != 0;
		fired += kt_expirations(&own[i]);
		released += kt_releases(&own[i]);
		early += atomic_read(&own[i].early);
	}
	KTEST(atomic_read(&own_armed) > 0, "%s: %d visits, %d new schedules", what,
	      atomic_read(&visits), atomic_read(&own_armed));
	KTEST(fired == atomic_read(&own_armed) && !held, "%s: all of these fire: %u", what, fired);
	KTEST(released == atomic_read(&own_holds), "%s: each hold is released: %u", what, released);
	KTEST(early == 0, "%s: none fires early", what);
	KTEST(atomic_read(&own_odd) == 0, "%s: all in NMI context, no error", what);
out:
	KTEST(!kt_expirations(&far), "%s: a timeout of an hour has not fired", what);
	KTEST(hwt_wheel_destroy(wheel) == 0, "%s: the wheel is destroyed", what);
}

/* Functions that hold these locks. Their names differ from version to version. */
static const char * const time_names[] __initconst = {
	"timekeeping_update", "timekeeping_update_from_shadow", "update_vsyscall",
	"timekeeping_advance",
};

static const char * const sched_names[] __initconst = {
	"try_to_wake_up", "ttwu_do_activate", "enqueue_task_fair", "enqueue_entity",
};

static void __init selftest(void)
{
	unsigned int length;

	if (kt_told("HWT_PATCHING=0")) {
		KTEST_SKIP("this emulator may execute stale code after a change");
		return;
	}
	kt_function("hwt_schedule", &length);
	if (!length) {
		KTEST_SKIP("no kprobes on this kernel");
		return;
	}
	test_kernel("timekeeper", time_names, ARRAY_SIZE(time_names), kt_quick() ? 2 : 8);
	test_kernel("scheduler", sched_names, ARRAY_SIZE(sched_names), kt_quick() ? 1 : 4);
	test_periodic();
}

KSTM_MODULE_LOADERS(test_kprobe);
