// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels: created, and stopped or destroyed while they are in use
 *
 * The keeper puts a new wheel into a place of the table, and takes out the old wheel. Then
 *
 *   - the keeper stops the old wheel at once, while its timeouts are scheduled and cancelled, with
 *     or without a hand-back function; or it waits until the wheel has no users, and stops or
 *     destroys it with all pending timeouts;
 *   - the threads see that the wheel is leaving, and drop their timeouts;
 *   - after the last timeout was freed, the sums of the ledgers are compared with the wheel's
 *     counters:
 *
 *       scheduled, expired   equal.
 *       rearmed        equal, except that hwt_schedule_earlier() may leave a timeout as it was.
 *       cancelled      at least as many as in the ledgers: a _sync may cancel more than once.
 *       handed_back    equal to the result of the stop, and to the calls of its function.
 *       rejected       the schedules refused with -EAGAIN, and at most those with -ESHUTDOWN (a
 *                      schedule of a timeout that was shut down is not counted).
 *       pending        0, and so is scheduled - cancelled - handed_back - fired one-shots.
 *       clock_sets     0 on other clocks than the wall clock.
 *       holds          0 after the stop, once the wheel has no users.
 *       jumps          on the wall clock, clock_set was told of each, to the nanosecond (checked
 *                      at the end of the run, after the last setting).
 */
#include "torture.h"

#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#define TT_STAYING	2U	/* wheels that are not replaced */

static struct tt_wheel __rcu **tt_place;
static struct task_struct *tt_keeper;
static unsigned int tt_generation;

/* Return a number that changes when a wheel begins to leave: the threads then drop its timeouts. */
unsigned int tt_wheels_generation(void)
{
	return READ_ONCE(tt_generation);
}

u64 tt_wheel_now(const struct tt_wheel *wheel)
{
	/* In NMI hwt reads the fast clock, and adds a tick because that may step back. */
	if (in_nmi() || !(wheel->params.flags & HWT_COARSE_CLOCK))
		return hwt_wheel_now(wheel->wheel);
	switch (wheel->params.clock) {
	case HWT_CLOCK_BOOTTIME:
		return ktime_to_ns(ktime_get_coarse_boottime()) + TICK_NSEC;
	case HWT_CLOCK_REALTIME:
		return ktime_to_ns(ktime_get_coarse_real()) + TICK_NSEC;
	default:
		return ktime_get_coarse_ns() + TICK_NSEC;
	}
}

static void tt_clock_set(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
	struct tt_wheel *own = arg;

	atomic64_add(jump_ns, &own->jumps_ns);
}

static void tt_wheel_shape(struct tt_wheel *wheel, struct rnd_state *rnd)
{
	static const u64 tick[] = {
		KT_MS, KT_MS, 1234567, 2 * KT_MS, 4 * KT_MS, 10 * KT_MS, 99999999,
	};
	struct hwt_wheel_params *params = &wheel->params;
	unsigned int made = tt_sum(TT_MADE), cpu;

	params->name = "torture";
	params->tick_ns = tick[tt_pick(rnd, ARRAY_SIZE(tick))];
	params->levels = 1 + tt_pick(rnd, 6);
	params->ticks_per_wheel = 2U << tt_pick(rnd, 9);
	params->clock = tt_pick(rnd, 3);
	params->flags = tt_pick(rnd, 4);	/* any of coarse and freezable */
	params->max_pending = tt_one_in(rnd, 4) ? 1 + tt_pick(rnd, 100) : 0;
	params->workers = tt_one_in(rnd, 2) ? tt_pick(rnd, 5) : 0;
	params->priority = tt_one_in(rnd, 8) ? HWT_PRIO_FIFO_LOW : HWT_PRIO_NORMAL;
	if (params->clock == HWT_CLOCK_REALTIME && tt_one_in(rnd, 2)) {
		params->clock_set = tt_clock_set;
		params->clock_set_arg = wheel;
	}
	/* The CPU may be offline when the wheel is created: then tt_wheel_make() tries without. */
	cpu = tt_pick(rnd, nr_cpu_ids);
	if (tt_one_in(rnd, 4) && cpu_possible(cpu))
		params->cpus = cpumask_of(cpu);
	if (made >= TT_STAYING)
		return;
	/*
	 * The first wheels stay until the end, to find late timeouts: their clock is never set, and
	 * a timeout on the wrong level of their default shape is late by minutes.
	 */
	params->tick_ns = 0;
	params->levels = 0;
	params->ticks_per_wheel = 0;
	params->clock = tt_pick(rnd, 2);
	params->clock_set = NULL;
	params->max_pending = 0;
}

/* Turn a third of the wheels into BH wheels, the second wheel always and the first one never. */
static void tt_wheel_turn_bh(struct tt_wheel *wheel, struct rnd_state *rnd)
{
	struct hwt_wheel_params *params = &wheel->params;
	unsigned int made = tt_sum(TT_MADE);

	wheel->counted = true;
	if (made != 1 && (!made || !tt_one_in(rnd, 3)))
		return;
	wheel->counted = made == 1 || tt_one_in(rnd, 2);
	params->flags = HWT_BH | (params->flags & HWT_COARSE_CLOCK);
	if (tt_one_in(rnd, 2))
		params->tick_ns = TICK_NSEC;
	params->workers = 0;
	params->priority = HWT_PRIO_NORMAL;
	params->cpus = NULL;
	params->clock_set = NULL;
}

static struct tt_wheel *tt_wheel_make(struct rnd_state *rnd)
{
	struct tt_wheel *wheel = kzalloc(sizeof(*wheel), GFP_KERNEL);
	unsigned int begun;

	if (!wheel)
		return NULL;
	tt_wheel_shape(wheel, rnd);
	tt_wheel_turn_bh(wheel, rnd);
	begun = tt_wall_begin();
	wheel->offset = ktime_to_ns(ktime_mono_to_real(0));
	wheel->wheel = hwt_wheel_create(&wheel->params);
	if (IS_ERR(wheel->wheel) && PTR_ERR(wheel->wheel) == -EINVAL && wheel->params.cpus) {
		wheel->params.cpus = NULL;
		wheel->wheel = hwt_wheel_create(&wheel->params);
	}
	if (IS_ERR(wheel->wheel)) {
		tt_fail(TT_ANSWER, NULL, "create returned %ld", PTR_ERR(wheel->wheel));
		kfree(wheel);
		return NULL;
	}
	wheel->offset_known = !tt_wall_changed(begun);
	/* Get the parameters as they were rounded. */
	hwt_wheel_get_params(wheel->wheel, &wheel->params);
	wheel->id = tt_sum(TT_MADE);
	tt_count(TT_MADE);
	return wheel;
}

/* Get a wheel, which is not destroyed until tt_wheel_put(); NULL if its place is empty. */
struct tt_wheel *tt_wheel_get(struct rnd_state *rnd)
{
	struct tt_wheel *wheel;

	rcu_read_lock();
	wheel = rcu_dereference(tt_place[tt_pick(rnd, tt_wheels)]);
	if (wheel)
		atomic_inc(&wheel->users);
	rcu_read_unlock();
	return wheel;
}

void tt_wheel_put(struct tt_wheel *wheel)
{
	atomic_dec(&wheel->users);
}

static bool tt_wait_for_zero(atomic_t *count, const char *what)
{
	if (KT_WAIT_FOR(!atomic_read_acquire(count), 2 * tt_patience))
		return true;
	tt_fail(TT_LEAK, NULL, "%d %s of a wheel are left", atomic_read(count), what);
	return false;
}

static void tt_check_sum(struct tt_wheel *wheel, const char *what, u64 counted, u64 least,
			 u64 most)
{
	if (counted < least || counted > most)
		tt_fail(TT_SUMS, NULL, "wheel %u: counter of %s: %llu, ledgers: %llu to %llu",
			wheel->id, what, counted, least, most);
}

/* Compare a stopped wheel's counters with the ledgers, after its timeouts were freed. */
static void tt_check_sums(struct tt_wheel *wheel, long taken, int handed)
{
	u64 n[TT_WHEEL_TALLIES], shots;
	struct hwt_wheel_stats stats;
	unsigned int i;

	for (i = 0; i < TT_WHEEL_TALLIES; i++)
		n[i] = atomic64_read(&wheel->n[i]);
	shots = n[TT_N_FIRED] - n[TT_N_FIRED_BEAT] - n[TT_N_FIRED_ANY];
	hwt_wheel_get_stats(wheel->wheel, &stats);
	tt_check_sum(wheel, "scheduled", stats.scheduled, n[TT_N_ARMED], n[TT_N_ARMED]);
	tt_check_sum(wheel, "rearmed", stats.rearmed, n[TT_N_REARMED],
		     n[TT_N_REARMED] + n[TT_N_KEPT]);
	tt_check_sum(wheel, "expired", stats.expired, n[TT_N_FIRED], n[TT_N_FIRED]);
	tt_check_sum(wheel, "cancelled", stats.cancelled, n[TT_N_HITS], U64_MAX);
	tt_check_sum(wheel, "handed back", stats.handed_back, taken, taken);
	tt_check_sum(wheel, "hand-backs one by one", n[TT_N_HANDED], wheel->muted ? 0 : taken,
		     taken);
	if (!wheel->muted)
		tt_check_sum(wheel, "calls for them", handed, taken, taken);
	tt_check_sum(wheel, "rejected", stats.rejected, n[TT_N_AGAIN],
		     n[TT_N_AGAIN] + n[TT_N_CLOSED]);
	tt_check_sum(wheel, "pending", stats.pending, 0, 0);
	tt_check_sum(wheel, "sets of the clock", stats.clock_sets, 0,
		     tt_realtime(wheel) ? U64_MAX : 0);
	/* It is not known how many firings of a TT_MIXED were those of a one-shot. */
	tt_check_sum(wheel, "armed one-shots that have not ended",
		     n[TT_N_ARMED] - stats.cancelled - stats.handed_back - shots, 0,
		     n[TT_N_FIRED_ANY]);
}

/* Compare the jumps that clock_set was told with the clock, after the last setting. */
static void tt_check_jumps(struct tt_wheel *wheel)
{
	s64 jumps = ktime_to_ns(ktime_mono_to_real(0)) - wheel->offset;

	if (!wheel->params.clock_set || !wheel->offset_known)
		return;
	if (!KT_WAIT_FOR(atomic64_read(&wheel->jumps_ns) == jumps, tt_patience))
		tt_fail(TT_SUMS, NULL, "wheel %u: clock jumped %lld, clock_set was told %lld",
			wheel->id, jumps, atomic64_read(&wheel->jumps_ns));
}

/* Called after the stop of a wheel without users. */
static void tt_check_holds(struct tt_wheel *wheel)
{
	int holds = atomic_read(&wheel->holds);

	if (holds)
		tt_fail(TT_SYNC, NULL, "wheel %u is stopped, and %d timeouts are held", wheel->id,
			holds);
}

static long tt_wheel_stop(struct tt_wheel *wheel, atomic_t *handed, bool mute)
{
	long taken;

	WRITE_ONCE(wheel->muted, mute);
	/* Pairs with tt_is_leaving(): a caller that is refused sees @leaving. */
	smp_mb();
	tt_count(TT_STOP);
	taken = mute ? hwt_wheel_stop(wheel->wheel, NULL, NULL) :
		       hwt_wheel_stop(wheel->wheel, tt_handback, handed);
	if (taken < 0)
		tt_fail(TT_ANSWER, NULL, "stop returned %ld", taken);
	if (hwt_wheel_flush(wheel->wheel) != -ESHUTDOWN)
		tt_fail(TT_ANSWER, NULL, "wheel %u is stopped, and can be flushed", wheel->id);
	if (hwt_wheel_pending(wheel->wheel))
		tt_fail(TT_SYNC, NULL, "wheel %u is stopped, and has pending timeouts", wheel->id);
	if (hwt_wheel_stop(wheel->wheel, NULL, NULL) != 0)
		tt_fail(TT_ANSWER, NULL, "a second stop did not return 0");
	return taken;
}

/* Stop and destroy a wheel that is not in the table any more. */
static void tt_wheel_end(struct tt_wheel *wheel, struct rnd_state *rnd)
{
	/* Even a short run needs a call of tt_handback(). */
	bool must = !tt_ending() && !tt_sum(TT_HANDED);
	/* Without a function, the references of holds on a BH wheel would be lost. */
	bool lent = tt_is_bh(wheel) && wheel->counted;
	bool at_once = tt_one_in(rnd, 2) || must, direct = !at_once && !lent && tt_one_in(rnd, 3);
	bool mute = (direct || tt_one_in(rnd, 2)) && !must && !lent;
	atomic_t handed = ATOMIC_INIT(0);
	long taken = 0;
	int ret;

	WRITE_ONCE(wheel->leaving, true);
	/* Wait for tt_wheel_get() of CPUs that have read the wheel from the table. */
	synchronize_rcu();
	WRITE_ONCE(tt_generation, tt_generation + 1);
	if (at_once)
		taken = tt_wheel_stop(wheel, &handed, mute);
	if (!tt_wait_for_zero(&wheel->users, "users"))
		return;
	if (direct) {
		WRITE_ONCE(wheel->muted, true);
	} else {
		if (!at_once)
			taken = tt_wheel_stop(wheel, &handed, mute);
		tt_check_holds(wheel);
		if (!tt_wait_for_zero(&wheel->items, "timeouts"))
			return;
		tt_check_sums(wheel, taken, atomic_read(&handed));
	}
	tt_count(TT_DESTROY);
	ret = hwt_wheel_destroy(wheel->wheel);
	if (ret)
		tt_fail(TT_ANSWER, NULL, "destroy returned %d", ret);
	if (direct) {
		tt_check_holds(wheel);
		if (!tt_wait_for_zero(&wheel->items, "timeouts"))
			return;
	}
	kfree(wheel);
}

/* Put a wheel, or NULL, into a place, and end the old one. */
static void tt_wheel_replace(unsigned int place, struct tt_wheel *wheel, struct rnd_state *rnd)
{
	struct tt_wheel *old = rcu_dereference_protected(tt_place[place], true);

	rcu_assign_pointer(tt_place[place], wheel);
	if (old)
		tt_wheel_end(old, rnd);
}

static int tt_keeper_main(void *arg)
{
	unsigned int stay = min(tt_wheels - 1, TT_STAYING);
	struct tt_wheel *wheel;
	struct rnd_state rnd;

	tt_seed_for(&rnd, 1);
	while (!kthread_should_stop()) {
		msleep(tt_ending() ? 20 : tt_pick(&rnd, 2 * TT_WHEEL_MS));
		if (tt_ending())
			continue;
		wheel = tt_wheel_make(&rnd);
		if (wheel)
			tt_wheel_replace(stay + tt_pick(&rnd, tt_wheels - stay), wheel, &rnd);
	}
	return 0;
}

int tt_wheels_start(void)
{
	struct tt_wheel *wheel;
	struct rnd_state rnd;
	unsigned int n;

	tt_seed_for(&rnd, 2);
	tt_place = kcalloc(tt_wheels, sizeof(*tt_place), GFP_KERNEL);
	if (!tt_place)
		return -ENOMEM;
	for (n = 0; n < tt_wheels; n++) {
		wheel = tt_wheel_make(&rnd);
		if (!wheel)
			return -ENOMEM;
		rcu_assign_pointer(tt_place[n], wheel);
	}
	tt_keeper = tt_run(tt_keeper_main, NULL, "keeper", 0);
	return PTR_ERR_OR_ZERO(tt_keeper);
}

/* Called after the threads have dropped all timeouts. */
void tt_wheels_stop(void)
{
	struct rnd_state rnd;
	unsigned int n;

	tt_stop(tt_keeper);
	if (!tt_place)
		return;
	tt_seed_for(&rnd, 3);
	for (n = 0; n < tt_wheels; n++) {
		if (rcu_access_pointer(tt_place[n]))
			tt_check_jumps(rcu_dereference_protected(tt_place[n], true));
		tt_wheel_replace(n, NULL, &rnd);
	}
	kfree(tt_place);
	tt_place = NULL;
}
