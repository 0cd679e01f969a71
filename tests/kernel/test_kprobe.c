// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupted at any instruction. A kprobe's handler runs in the place of the
 * instruction that it sits on, in an NMI-like context (x86): so one that schedules or
 * cancels plays the part of another CPU, or of an NMI, at exactly that instruction, each
 * time. Here it is the instructions of schedule and cancel, and of the engine's functions,
 * and the kernel's timekeeper and scheduler, whose locks are held then.
 *
 * hwt-test: long
 * hwt-test: timeout 240
 * hwt-test: args park=1
 */
#include <linux/cpu.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "hwt_ktest.h"
#include "hwt_ktest_probe.h"

static unsigned int seed;
module_param(seed, uint, 0444);	/* which instructions are chosen; 0: from the time */

static bool park;
module_param(park, bool, 0444);	/* take the other CPUs off line while code is changed */

/* -- The other CPUs ------------------------------------------------------ */

static struct cpumask parked;

/*
 * QEMU before 8.1, emulating, can have one CPU go on with an instruction as it was before
 * another one changed it: with a breakpoint that is gone, for ever, or with half of a jump. (Its
 * "accel/tcg: Always lock pages before translation" mends that.) So code is changed while there
 * is only one CPU.
 */
static void __init park_others(void)
{
	unsigned int cpu, this = cpumask_first(cpu_online_mask);

	for_each_present_cpu(cpu)
		if (park && cpu != this && cpu_online(cpu) && !remove_cpu(cpu))
			cpumask_set_cpu(cpu, &parked);
}

static void __init unpark_others(void)
{
	unsigned int cpu;

	for_each_cpu(cpu, &parked)
		if (add_cpu(cpu))
			pr_info("# CPU %u does not come back\n", cpu);
	cpumask_clear(&parked);
}

/* -- Probes -------------------------------------------------------------- */
#define PROBES_MOST	4096

static struct kprobe *probes, **registered;
static unsigned int probes_n;

static int on_probe(struct kprobe *probe, struct pt_regs *regs);

/* By address: to find a name takes longer than all the rest. */
static bool probe_at(u8 *function, unsigned int offset)
{
	struct kprobe *probe = &probes[probes_n];

	if (probes_n == PROBES_MOST || !kt_probe(probe, function + offset, on_probe))
		return false;
	registered[probes_n] = probe;
	probes_n++;
	return true;
}

/*
 * Probes on a part of the instructions of a function, another one each time: about one in
 * @step bytes. To make them all takes minutes in an emulated guest.
 */
static unsigned int __init probe_function(const char *name, unsigned int step,
					  struct rnd_state *rnd)
{
	unsigned int offset, length, n = 0;
	u8 *function = kt_function(name, &length);

	for (offset = 0; function && offset < length; offset++)
		if (probe_at(function, offset)) {
			n++;
			offset += prandom_u32_state(rnd) % (2 * step - 1);
		}
	return n;
}

static void __init remove_probes(void)
{
	if (probes_n)
		unregister_kprobes(registered, probes_n);
	probes_n = 0;
}

/* -- What a handler does ------------------------------------------------- */

enum action { NEAR, FAR, CANCEL, CANCEL_NEAR, PERIODIC, NEAR_TWICE, ACTIONS };

static const char * const action_name[] = {
	"near", "far", "cancel", "cancel and near", "periodic", "twice near",
};

static struct hwt_wheel *wheel;

static struct {
	struct kt	kt;
	atomic_t	armed, holds, hits, strange;
} one;

#define TIMEOUT (&one.kt.timeout)

/* Which probe acts, once; NULL: none, or the handler has taken it. */
static struct kprobe *target;
static enum action target_action;
static struct task_struct *target_task;
/* Handlers that are through: the timeout is theirs from taking the target until then. */
static unsigned int acted;
static unsigned int not_nmi;

static void note_schedule(int ret)
{
	if (ret < 0) {
		atomic_inc(&one.strange);
		return;
	}
	if (!(ret & HWT_WAS_PENDING))
		atomic_inc(&one.armed);
	if (!(ret & HWT_WAS_HELD))
		atomic_inc(&one.holds);
}

static void note_cancel(bool hit)
{
	atomic_add(hit, &one.hits);
}

static void act(enum action action)
{
	switch (action) {
	case NEAR_TWICE:
		note_schedule(hwt_schedule(TIMEOUT, KT_MS));
		note_schedule(hwt_schedule(TIMEOUT, 0));
		break;
	case NEAR:
		note_schedule(hwt_schedule(TIMEOUT, 0));
		break;
	case FAR:
		note_schedule(hwt_schedule(TIMEOUT, KT_HOUR));
		break;
	case CANCEL_NEAR:
		note_cancel(hwt_cancel(TIMEOUT));
		note_schedule(hwt_schedule_earlier(TIMEOUT, 0));
		break;
	case CANCEL:
		note_cancel(hwt_cancel(TIMEOUT));
		break;
	case PERIODIC:
		note_schedule(hwt_schedule_periodic(&one.kt.periodic, 0, 2 * KT_MS,
						    HWT_FIXED_DELAY));
		break;
	default:
		break;
	}
	hwt_remaining(TIMEOUT);
	hwt_wheel_pending(wheel);
}

static int on_probe(struct kprobe *probe, struct pt_regs *regs)
{
	if (probe != READ_ONCE(target) || READ_ONCE(target_task) != current)
		return 0;
	if (cmpxchg(&target, probe, NULL) != probe)
		return 0;
	if (IS_ENABLED(CONFIG_X86) && !in_nmi())
		not_nmi++;
	act(target_action);
	/* Pairs with interrupt(). */
	smp_store_release(&acted, acted + 1);
	return 0;
}

/* -- The instructions of hwt --------------------------------------------- */

enum scene {
	SUBMIT_NEW, SUBMIT_EARLIER, SUBMIT_LATER, SUBMIT_CANCEL, SUBMIT_MOVE,
	SYNC, SUBMIT_SCENES,
	FIRE = SUBMIT_SCENES, REPEAT, RECLAIM, SCENES,
};

static const char * const scene_name[] = {
	"schedule", "pull forward", "push back", "cancel", "move if pending",
	"cancel_sync", "fire", "repeat", "reclaim",
};

/* Does what the scene is about, on the thread that is to be interrupted. */
static void __init play(enum scene scene)
{
	switch (scene) {
	case SUBMIT_NEW:
		note_schedule(hwt_schedule(TIMEOUT, 0));
		break;
	case SUBMIT_EARLIER:
		note_schedule(hwt_schedule_at(TIMEOUT, hwt_wheel_now(wheel)));
		break;
	case SUBMIT_LATER:
		note_schedule(hwt_schedule_at(TIMEOUT, hwt_wheel_now(wheel) + KT_HOUR));
		break;
	case SUBMIT_CANCEL:
		note_cancel(hwt_cancel(TIMEOUT));
		break;
	case SUBMIT_MOVE:
		/* -ENOENT is an answer too. */
		hwt_schedule_pending(TIMEOUT, KT_HOUR);
		break;
	case SYNC:
		note_cancel(hwt_cancel_sync(TIMEOUT) == 1);
		break;
	case FIRE:
	case REPEAT:
	case RECLAIM:
		/* The engine does: only wait. */
		KT_WAIT(!READ_ONCE(target) || !hwt_held(TIMEOUT) ||
			kt_expirations(&one.kt) > 3);
		break;
	default:
		break;
	}
}

/* How the timeout is when the scene begins. */
static void __init stage(enum scene scene)
{
	switch (scene) {
	case SUBMIT_EARLIER:
	case SUBMIT_CANCEL:
	case SYNC:
		note_schedule(hwt_schedule(TIMEOUT, KT_HOUR));
		break;
	case SUBMIT_LATER:
	case SUBMIT_MOVE:
		note_schedule(hwt_schedule(TIMEOUT, 3 * KT_MS));
		break;
	case FIRE:
		note_schedule(hwt_schedule(TIMEOUT, KT_MS));
		break;
	case REPEAT:
		note_schedule(hwt_schedule_periodic(&one.kt.periodic, 0, KT_MS, HWT_FIXED_RATE));
		break;
	case RECLAIM:
		note_schedule(hwt_schedule(TIMEOUT, KT_HOUR));
		note_cancel(hwt_cancel(TIMEOUT));
		break;
	default:
		break;
	}
}

static unsigned int lost, unbalanced, unreleased, strange;

/* Nothing is lost: what is armed near fires, and the counts add up. */
static void __init settle(struct hwt_wheel_stats *before, enum scene scene,
			  enum action action, struct kprobe *probe)
{
	struct hwt_wheel_stats after;
	bool odd = false;
	u64 remaining;
	int n, hits;

	/* Pending and not far away: it has to fire, more than once if it repeats. */
	n = kt_expirations(&one.kt);
	remaining = hwt_remaining(TIMEOUT);
	if (hwt_pending(TIMEOUT) && remaining < KT_HOUR / 2 &&
	    !KT_WAIT(kt_expirations(&one.kt) > n || !hwt_pending(TIMEOUT) ||
		     hwt_remaining(TIMEOUT) > KT_HOUR / 2)) {
		lost++;
		odd = true;
	}
	note_cancel(hwt_cancel_sync(TIMEOUT) == 1);
	hwt_wheel_get_stats(wheel, &after);
	hits = after.cancelled - before->cancelled;
	/* A periodic one fires more often than it is armed, and ends by a cancel. */
	if (after.pending != before->pending ||
	    after.scheduled - before->scheduled != atomic_read(&one.armed) ||
	    after.expired - before->expired != kt_expirations(&one.kt) ||
	    hits < atomic_read(&one.hits) ||
	    /* A _sync that has to cancel twice says so once. */
	    hits - (scene == SYNC ? 1 : 0) > atomic_read(&one.hits)) {
		unbalanced++;
		odd = true;
	}
	if (hwt_held(TIMEOUT) ||
	    atomic_read(&one.holds) != kt_releases(&one.kt) ||
	    atomic_read(&one.kt.cancelled) > hits) {
		unreleased++;
		odd = true;
	}
	if (atomic_read(&one.strange)) {
		strange++;
		odd = true;
	}
	if (odd)
		pr_info("# %s interrupted by %s at %pS: armed %d, holds %d, hits %d, expired %d, released %d, cancelled %d, word %llx; stats: pending %+lld, scheduled %+lld, expired %+lld, cancelled %+d\n",
			scene_name[scene], action_name[action], probe->addr,
			atomic_read(&one.armed),
			atomic_read(&one.holds), atomic_read(&one.hits),
			kt_expirations(&one.kt), kt_releases(&one.kt),
			atomic_read(&one.kt.cancelled), hwt_timeout_state(TIMEOUT),
			after.pending - before->pending,
			after.scheduled - before->scheduled,
			after.expired - before->expired, hits);
}

/* One interruption. Returns whether the scene came by the probe. */
static bool __init interrupt(struct kprobe *probe, enum scene scene,
			     enum action action, struct task_struct *engine)
{
	struct hwt_wheel_stats before;
	unsigned int was = acted;

	before = kt_stats(wheel);
	memset(&one, 0, sizeof(one));
	kt_init_periodic(&one.kt, wheel, &kt_ops);
	if (scene >= SUBMIT_SCENES) {
		target_task = engine;
		target_action = action;
		/* Armed before, or the engine may be through with it. */
		WRITE_ONCE(target, probe);
		stage(scene);
	} else {
		stage(scene);
		target_task = current;
		target_action = action;
		WRITE_ONCE(target, probe);
	}
	play(scene);
	if (!xchg(&target, NULL)) {
		/* Taken: the handler, on the engine's CPU, may still be at it. */
		KT_WAIT(smp_load_acquire(&acted) != was);
	}
	settle(&before, scene, action, probe);
	return acted != was;
}

/*
 * All probes, scenes and actions, in random order, until the time is up. Each scene has
 * its own threads' functions: those of the engine are skipped for the submitter, because
 * it does not come by.
 */
static void __init test_instructions(const char *what, const char * const *names,
				     unsigned int n_names, enum scene first,
				     enum scene end, unsigned int step,
				     unsigned int seconds)
{
	unsigned int i, n, rounds = 0, hits = 0, found = 0;
	unsigned long stop;
	struct rnd_state rnd;
	static struct kt far, probe_engine;
	struct task_struct *engine;
	unsigned long *covered;
	u32 random;

	wheel = kt_wheel("kprobe");
	kt_init(&far, wheel, &kt_ops);
	kt_init(&probe_engine, wheel, &kt_ops);
	hwt_schedule(&far.timeout, KT_HOUR);
	hwt_schedule(&probe_engine.timeout, 0);
	KT_WAIT(kt_releases(&probe_engine) == 1);
	engine = probe_engine.task;

	prandom_seed_state(&rnd, seed);
	park_others();
	for (i = 0; i < n_names; i++) {
		n = probe_function(names[i], step, &rnd);
		found += !!n;
		pr_info("# %s: %u instructions%s\n", names[i], n,
			n ? "" : " (inlined, or not to be probed)");
	}
	unpark_others();
	covered = bitmap_zalloc(PROBES_MOST, GFP_KERNEL);
	KTEST(found && covered, "%s: %u functions, %u instructions", what, found, probes_n);
	lost = 0;
	unbalanced = 0;
	unreleased = 0;
	strange = 0;
	not_nmi = 0;
	stop = jiffies + seconds * HZ;
	while (found && covered && time_before(jiffies, stop) &&
	       lost + unbalanced + unreleased + strange < 20) {
		random = prandom_u32_state(&rnd);
		i = random % probes_n;
		/* What was never hit is tried less often. */
		if (interrupt(&probes[i], first + (random >> 16) % (end - first),
			      (random >> 24) % ACTIONS, engine)) {
			hits++;
			__set_bit(i, covered);
		}
		rounds++;
		cond_resched();
	}
	park_others();
	remove_probes();
	unpark_others();
	pr_info("# %s: interrupted %u times in %u rounds, at %u of the instructions\n",
		what, hits, rounds,
		covered ? bitmap_weight(covered, PROBES_MOST) : 0);
	KTEST(hits > 5, "%s: interrupted %u times", what, hits);
	KTEST(not_nmi == 0, "%s: as by an NMI", what);
	KTEST(lost == 0, "%s: nothing is lost", what);
	KTEST(unbalanced == 0, "%s: what was armed fired or was cancelled, once", what);
	KTEST(unreleased == 0, "%s: each hold is released, once", what);
	KTEST(strange == 0, "%s: no call fails", what);
	KTEST(!kt_expirations(&far) && hwt_wheel_pending(wheel) == 1,
	      "%s: what is an hour away has not fired", what);
	hwt_wheel_destroy(wheel);
	bitmap_free(covered);
}

static const char * const submit_names[] __initconst = {
	"hwt_schedule", "hwt_schedule_at", "hwt_schedule_flags", "hwt_submit",
	"hwt_cancel", "hwt_cancel_claim", "hwt_wheel_kick",
	"hwt_count_cancel", "hwt_reclaim_soon", "llist_add_batch",
	"hwt_cancel_sync", "hwt_sync", "hwt_sync_cancel",
};

static const char * const engine_names[] __initconst = {
	"hwt_engine_thread", "hwt_engine_pass", "hwt_engine_sleep",
	"hwt_engine_fire", "hwt_fire_claim", "hwt_engine_wait", "hwt_collect",
	"hwt_intake_pop", "hwt_collect_taken", "hwt_finish",
	"hwt_end_hold", "hwt_periodic_begin", "hwt_call_cancelled",
	"hwt_call_begin", "hwt_call_end", "hwt_call_release",
	"hwt_buckets_insert", "hwt_buckets_remove", "hwt_buckets_advance",
};

/* -- A periodic one that is scheduled anew ------------------------------- */

static struct hwt_periodic periodic;
static u64 periodic_first;
static unsigned int periodic_seen, periodic_open;

/*
 * Once its period is written the new schedule has to take effect at once: by the old one the
 * engine may fire meanwhile, and would go on with the new period.
 */
static int on_periodic(struct kprobe *probe, struct pt_regs *regs)
{
	if (current != target_task || (u64)atomic64_read(&periodic.set.first_ns) != periodic_first)
		return 0;
	periodic_seen++;
	/* The breakpoint's own context counts as an NMI, not here. */
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
	hwt_schedule_periodic_at(&periodic, periodic_first, KT_HOUR, HWT_FIXED_RATE);
	target_task = current;
	park_others();
	function = kt_function("hwt_schedule_periodic_at", &length);
	for (offset = 0; function && offset < length; offset++) {
		if (!kt_probe(&probe, function + offset, on_periodic))
			continue;
		n++;
		periodic_first += KT_HOUR;
		hwt_schedule_periodic_at(&periodic, periodic_first, KT_HOUR, HWT_FIXED_RATE);
		unregister_kprobe(&probe);
	}
	unpark_others();
	target_task = NULL;
	KTEST(n > 5 && periodic_seen,
	      "a periodic one is scheduled anew: seen at %u of %u instructions", periodic_seen, n);
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		KTEST(!periodic_open, "nobody comes between: at %u", periodic_open);
	hwt_wheel_destroy(wheel);
}

/* -- The kernel's own functions ------------------------------------------ */

/*
 * A probe on a kernel function, which may hold what a careless callee would spin on. The
 * handler schedules, re-arms and cancels on whatever CPU comes by.
 */
static struct kt own[16];
/* Two CPUs may come by at once: only one gets a timeout, until it is through. */
static atomic_t own_busy[ARRAY_SIZE(own)];
static atomic_t visits, own_odd, own_armed, own_holds;
/* Visits of one probe, after which it does nothing any more. Those of the scheduler feed
 * themselves: what the handler schedules wakes the engine, which comes by the probe.
 */
#define VISITS_MOST	30
static unsigned int visits_end;

static void own_schedule(int ret)
{
	atomic_add(ret < 0, &own_odd);
	/* The engine, on another CPU, may be quicker than the handler: then it is another one. */
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

/* Something for the functions to do. */
static void __init stir(void)
{
	unsigned long end = jiffies + (KT_SLOW ? 1000 : 300) * HZ / 1000;
	int before = atomic_read(&visits);

	while (time_before(jiffies, end) && atomic_read(&visits) - before < VISITS_MOST)
		usleep_range(500, 1500);
}

static bool __init visit(const char *name, unsigned int places)
{
	unsigned int length, i, offset, hit = 0, found = 0;
	u8 *function = kt_function(name, &length);
	int visited;

	for (i = 0; i < places && function; i++) {
		struct kprobe *probe = &probes[0];

		probes_n = 0;
		for (offset = i * length / places; offset < length; offset++)
			if (probe_at(function, offset))
				break;
		if (offset >= length)
			continue;
		found++;
		visited = atomic_read(&visits);
		/* Registered for the other handler: this one takes its place. */
		unregister_kprobe(probe);
		WRITE_ONCE(visits_end, visited + VISITS_MOST);
		if (!kt_probe(probe, function + offset, on_visit))
			continue;
		stir();
		unregister_kprobe(probe);
		hit += atomic_read(&visits) != visited;
	}
	probes_n = 0;
	pr_info("# %s: probed at %u places, %u of them were come by\n", name, found,
		hit);
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
	park_others();
	for (i = 0; i < n_names; i++)
		functions += visit(names[i], places);
	unpark_others();
	if (!functions) {
		KTEST_SKIP("%s: none of its functions can be probed", what);
		goto out;
	}
	for (i = 0; i < ARRAY_SIZE(own); i++) {
		KT_WAIT(!hwt_held(&own[i].timeout));
		held += hwt_cancel_sync(&own[i].timeout) != 0;
		fired += kt_expirations(&own[i]);
		released += kt_releases(&own[i]);
		early += atomic_read(&own[i].early);
	}
	KTEST(atomic_read(&own_armed) > 0, "%s: %d handlers, %d schedules", what,
	      atomic_read(&visits), atomic_read(&own_armed));
	KTEST(fired == atomic_read(&own_armed) && !held, "%s: %u have fired", what, fired);
	KTEST(released == atomic_read(&own_holds), "%s: %u are released", what, released);
	KTEST(early == 0, "%s: none early", what);
	KTEST(atomic_read(&own_odd) == 0, "%s: all as by an NMI, and as it must be", what);
out:
	KTEST(!kt_expirations(&far), "%s: what is an hour away has not fired", what);
	KTEST(hwt_wheel_destroy(wheel) == 0, "%s: the wheel is destroyed", what);
}

/* What has these locks or counts in its hand changes from version to version. */
static const char * const time_names[] __initconst = {
	"timekeeping_update", "timekeeping_update_from_shadow", "update_vsyscall",
	"timekeeping_advance",
};

static const char * const sched_names[] __initconst = {
	"try_to_wake_up", "ttwu_do_activate", "enqueue_task_fair", "enqueue_entity",
};

static void __init selftest(void)
{
	unsigned int seconds = kt_quick() ? 2 : 6, length;
	unsigned int step = kt_quick() || KT_SLOW ? 40 : 8;

	if (!seed)
		seed = ktime_get_ns();
	pr_info("# seed=%u\n", seed);

	probes = vzalloc(array_size(PROBES_MOST, sizeof(*probes)));
	registered = vzalloc(array_size(PROBES_MOST, sizeof(*registered)));
	if (!probes || !registered) {
		KTEST(false, "memory for the probes");
		goto out;
	}
	park_others();
	kt_function("hwt_schedule", &length);
	unpark_others();
	if (!length) {
		KTEST_SKIP("no kprobes on this kernel");
		goto out;
	}
	test_kernel("timekeeper", time_names, ARRAY_SIZE(time_names),
		    kt_quick() ? 2 : 8);
	test_kernel("scheduler", sched_names, ARRAY_SIZE(sched_names),
		    kt_quick() ? 1 : 4);
	test_instructions("submitter", submit_names, ARRAY_SIZE(submit_names),
			  SUBMIT_NEW, SUBMIT_SCENES, step, seconds);
	test_instructions("engine", engine_names, ARRAY_SIZE(engine_names), FIRE,
			  SCENES, step, seconds);
	test_periodic();
out:
	vfree(registered);
	vfree(probes);
}

KSTM_MODULE_LOADERS(test_kprobe);
