// SPDX-License-Identifier: GPL-2.0-only
/*
 * BH wheels: the context of their callbacks, what a callback may do (free its timeout, schedule it
 * again, wait for others), waits that do not sleep, periodic timeouts, the stop, many timeouts in
 * one tick. With ticks of a jiffy, and with shorter ones.
 *
 * hwt-test: timeout 240
 */
#include <linux/bottom_half.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kprobes.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "hwt_ktest.h"
#include "hwt_ktest_compat.h"

#define KT_MANY		(KT_SLOW ? 20000 : 200000)

/* -- Context ----------------------------------------------------------------- */

static atomic_t odd;

static void check_context(struct hwt_timeout *timeout)
{
	if (!in_serving_softirq() || in_hardirq() || irqs_disabled() || !rcu_read_lock_held() ||
	    !hwt_running(timeout) || hwt_pending(timeout) || hwt_held(timeout))
		atomic_inc(&odd);
	kt_expire(timeout);
}

static void __init test_context(struct hwt_wheel *wheel)
{
	struct kt kt;

	atomic_set(&odd, 0);
	kt_setup(&kt, wheel, check_context);
	KTEST(kt_schedule(&kt, 3 * KT_MS) == 0 && KT_WAIT(kt_expirations(&kt) == 1),
	      "a timeout of a BH wheel fires");
	KTEST(!atomic_read(&odd) && !atomic_read(&kt.early),
	      "in a softirq, as an RCU reader, not early, after its hold");
	KTEST(hwt_cancel_sync(&kt.timeout) == 0 && hwt_expired(&kt.timeout) &&
	      !hwt_running(&kt.timeout), "it is idle then");
	KTEST(kt_schedule(&kt, KT_HOUR) == 0 && hwt_cancel(&kt.timeout) &&
	      !hwt_pending(&kt.timeout) && KT_WAIT(!hwt_held(&kt.timeout)),
	      "a cancelled one is let go");
	/* Beyond what a timer of timer_list can do exactly. */
	KTEST(kt_schedule(&kt, KT_SECOND) == 0 && KT_WAIT(kt_expirations(&kt) == 2) &&
	      !atomic_read(&kt.early), "a second is not early");
	hwt_shutdown_sync(&kt.timeout);
	KTEST(kt_schedule(&kt, 0) == -ESHUTDOWN, "a shutdown is for good");
}

/* -- What a callback may do ---------------------------------------------------- */

static atomic_t freed;

static void free_timeout(struct hwt_timeout *timeout)
{
	atomic_inc(&freed);
	memset(timeout, 0x5a, sizeof(*timeout));
	kfree(timeout);
}

/* Schedule timeouts that their callbacks free: each second one soon, the others after @delay. */
static bool __init schedule_1000(struct hwt_wheel *wheel, u64 delay)
{
	struct hwt_timeout *timeout;
	unsigned int i, n = 0;

	atomic_set(&freed, 0);
	for (i = 0; i < 1000; i++) {
		timeout = kmalloc(sizeof(*timeout), GFP_KERNEL | __GFP_NOFAIL);
		hwt_timeout_setup(timeout, wheel, free_timeout);
		n += !hwt_schedule(timeout, i % 2 ? delay : i % 20 * KT_MS);
	}
	return n == 1000;
}

static void __init test_free(struct hwt_wheel *wheel)
{
	KTEST(schedule_1000(wheel, KT_MS) && KT_WAIT(atomic_read(&freed) == 1000),
	      "callbacks free their timeouts");
}

static void again(struct hwt_timeout *timeout)
{
	kt_expire(timeout);
	if (kt_expirations(kt_of(timeout)) < 5)
		hwt_schedule(timeout, KT_MS);
}

static struct kt other;
static int own_result, other_result;

static void wait_inside(struct hwt_timeout *timeout)
{
	own_result = hwt_cancel_sync(timeout);
	other_result = hwt_cancel_sync(&other.timeout);
	kt_expire(timeout);
}

static void __init test_inside(struct hwt_wheel *wheel)
{
	struct kt kt;

	kt_setup(&kt, wheel, again);
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_expirations(&kt) == 5),
	      "a callback schedules its own timeout");
	hwt_shutdown_sync(&kt.timeout);
	kt_setup(&other, wheel, kt_expire);
	hwt_schedule(&other.timeout, KT_HOUR);
	kt_setup(&kt, wheel, wait_inside);
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1) && own_result == -EDEADLK && other_result == 1 &&
	      !hwt_held(&other.timeout),
	      "in a callback, a _sync call of the own timeout fails, and that of another works");
	hwt_shutdown_sync(&kt.timeout);
	hwt_shutdown_sync(&other.timeout);
}

/* -- Waiting ------------------------------------------------------------------- */

static bool began, leave, left;

static void spin_here(struct hwt_timeout *timeout)
{
	unsigned long end = jiffies + 10 * HZ;

	/* Pairs with the acquire of the test. */
	smp_store_release(&began, true);
	while (!READ_ONCE(leave) && time_before(jiffies, end))
		cpu_relax();
	mdelay(1);
	WRITE_ONCE(left, true);
}

/* Let the callback leave 20 ms after the wait for it has begun. */
static enum hrtimer_restart let_leave(struct hrtimer *timer)
{
	WRITE_ONCE(leave, true);
	return HRTIMER_NORESTART;
}

static void __init test_wait(struct hwt_wheel *wheel)
{
	static struct hrtimer timer;
	bool saw, running, deleted, gone;
	struct kt kt;
	int tried, busy, ret;

	if (num_online_cpus() < 2) {
		KTEST_SKIP("a wait for a callback needs two CPUs");
		return;
	}
	hrtimer_setup(&timer, let_leave, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	began = false;
	leave = false;
	left = false;
	kt_setup(&kt, wheel, spin_here);
	/*
	 * The callback must run on the other CPU: schedule it there, or this task would be
	 * interrupted by it. Any CPU may have started the timer, so try until it does.
	 */
	hwt_schedule(&kt.timeout, 0);
	hrtimer_start(&timer, ms_to_ktime(200), HRTIMER_MODE_REL_HARD);
	/* Pairs with spin_here(). */
	while (!smp_load_acquire(&began))
		cpu_relax();
	running = hwt_running(&kt.timeout) || READ_ONCE(left);
	tried = hwt_try_cancel(&kt.timeout);
	busy = hwt_try_delete(&kt.timeout);
	gone = READ_ONCE(left);
	deleted = hwt_delete(&kt.timeout);
	local_bh_disable();
	ret = hwt_cancel_sync(&kt.timeout);
	saw = READ_ONCE(left);
	local_bh_enable();
	KTEST(running && (tried == HWT_IS_RUNNING || tried == 0) && !deleted,
	      "a callback that is executing is seen, and is not given back");
	KTEST(busy == -EBUSY || (busy == 0 && gone), "and hwt_try_delete() says so");
	KTEST(ret == 0 && saw, "a _sync call with bottom halves off waits for the callback");
	hrtimer_cancel(&timer);
	hwt_shutdown_sync(&kt.timeout);
}

/* -- Periodic, stop, many ---------------------------------------------------------- */

static void __init test_periodic(struct hwt_wheel *wheel)
{
	struct kt kt;

	kt_init_periodic(&kt, wheel, &kt_plain_ops);
	KTEST(hwt_schedule_periodic(&kt.periodic, 0, 5 * KT_MS, HWT_MODE_FIXED_DELAY) == -EINVAL,
	      "a fixed delay is refused");
	KTEST(hwt_schedule_periodic(&kt.periodic, 0, 5 * KT_MS, HWT_MODE_FIXED_RATE) == 0 &&
	      KT_WAIT(kt_expirations(&kt) >= 5), "a fixed rate fires again and again");
	KTEST(hwt_pending(&kt.timeout) && hwt_cancel_sync(&kt.timeout) == 1 &&
	      !hwt_held(&kt.timeout), "a cancel ends it");
	hwt_shutdown_sync(&kt.timeout);
}

static atomic_t handed;

static void take(struct hwt_timeout *timeout, void *arg)
{
	if (!in_softirq() || hwt_held(timeout) || !hwt_running(timeout))
		atomic_inc(&odd);
	atomic_inc(&handed);
	kfree(timeout);
}

static void __init test_stop(struct hwt_wheel *wheel)
{
	atomic_set(&odd, 0);
	atomic_set(&handed, 0);
	KTEST(schedule_1000(wheel, KT_HOUR) && hwt_wheel_flush(wheel) == 0 &&
	      hwt_wheel_barrier(wheel) == 0, "a flush and a barrier return");
	KTEST(hwt_wheel_stop(wheel, take, NULL) == atomic_read(&handed) &&
	      atomic_read(&handed) + atomic_read(&freed) == 1000 && atomic_read(&handed) >= 500,
	      "a stop hands each timeout back that has not fired");
	KTEST(!atomic_read(&odd), "its function runs with bottom halves off, after the hold");
	KTEST(hwt_wheel_destroy(wheel) == 0, "a destroy returns");
}

static atomic_t fired;

static void count_fired(struct hwt_timeout *timeout)
{
	atomic_inc(&fired);
}

static void __init test_many(struct hwt_wheel *wheel)
{
	struct hwt_timeout *timeouts = kt_alloc(KT_MANY, sizeof(*timeouts));
	unsigned int i, n = 0;
	u64 at;

	atomic_set(&fired, 0);
	at = hwt_wheel_now(wheel) + KT_SECOND / 2;
	for (i = 0; i < KT_MANY; i++) {
		hwt_timeout_setup(&timeouts[i], wheel, count_fired);
		n += !hwt_schedule_at(&timeouts[i], at);
		if (i % 1000 == 0)
			cond_resched();
	}
	KTEST(n == KT_MANY && KT_WAIT(atomic_read(&fired) == KT_MANY),
	      "all timeouts of one tick fire, in several softirqs");
	KTEST(hwt_wheel_pending(wheel) == 0, "none is pending then");
	vfree(timeouts);
}

/* -- hwt_delete() ----------------------------------------------------------------- */

static void __init test_delete(struct hwt_wheel *wheel)
{
	unsigned long flags;
	static struct kt kt[40];
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(kt); i++)
		kt_init(&kt[i], wheel, &kt_plain_ops);
	KTEST(!hwt_delete(&kt[0].timeout), "an idle timeout is not given back");
	hwt_schedule(&kt[0].timeout, KT_HOUR);
	KTEST(hwt_delete(&kt[0].timeout) && !hwt_held(&kt[0].timeout) &&
	      hwt_cancelled(&kt[0].timeout) && !hwt_delete(&kt[0].timeout),
	      "one that was just scheduled is given back, once");
	KTEST(hwt_schedule(&kt[0].timeout, KT_HOUR) == 0 && hwt_try_delete(&kt[0].timeout) == 1 &&
	      !hwt_held(&kt[0].timeout) && hwt_try_delete(&kt[0].timeout) == 0,
	      "hwt_try_delete() does the same for a timeout whose callback is not executing");
	for (i = 0; i < ARRAY_SIZE(kt); i++)
		hwt_schedule(&kt[i].timeout, KT_HOUR);
	for (n = 0, i = 0; i < ARRAY_SIZE(kt); i++)
		n += hwt_delete(&kt[i].timeout) && !hwt_held(&kt[i].timeout);
	KTEST(n == ARRAY_SIZE(kt), "those behind others on the list are given back");
	for (i = 0; i < ARRAY_SIZE(kt); i++)
		hwt_schedule(&kt[i].timeout, KT_HOUR);
	hwt_wheel_flush(wheel);
	for (n = 0, i = 0; i < ARRAY_SIZE(kt); i++)
		n += hwt_delete(&kt[i].timeout) && !hwt_held(&kt[i].timeout);
	KTEST(n == ARRAY_SIZE(kt), "those in buckets are given back");
	hwt_schedule(&kt[0].timeout, KT_HOUR);
	hwt_cancel(&kt[0].timeout);
	KTEST(!hwt_delete(&kt[0].timeout) && !hwt_held(&kt[0].timeout),
	      "after a cancel nothing is given back, and the timeout is in no list");
	/* On PREEMPT_RT, the shard's lock may not be taken with interrupts off. */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		local_irq_save(flags);
	for (n = 0, i = 0; i < 20; i++) {
		hwt_schedule(&kt[i].timeout, KT_HOUR);
		n += hwt_delete(&kt[i].timeout);
	}
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		local_irq_restore(flags);
	KTEST(n == 20, "with interrupts off, they are given back");
	KTEST(hwt_wheel_pending(wheel) == 0, "none is pending");
	for (i = 0; i < ARRAY_SIZE(kt); i++)
		hwt_shutdown_sync(&kt[i].timeout);
}

/* -- hwt_try_delete() ------------------------------------------------------------- */

static struct hwt_periodic brief[200];
static bool brief_armed, mix_ends;

static void brief_expire(struct hwt_timeout *timeout)
{
	udelay(5);
}

static const struct hwt_timeout_ops brief_ops = { .expire = brief_expire };

/* Arm all for one tick. Callbacks of a BH wheel then execute on this CPU, because it is busy. */
static int arm_brief(void *wheel)
{
	unsigned int i;
	u64 at;

	while (!READ_ONCE(mix_ends)) {
		cond_resched();
		if (READ_ONCE(brief_armed))
			continue;
		at = hwt_wheel_now(wheel) + 8 * KT_MS;
		for (i = 0; i < ARRAY_SIZE(brief); i++)
			hwt_schedule_periodic_at(&brief[i], at, KT_HOUR, HWT_MODE_FIXED_RATE);
		/* Pairs with test_try_delete(), which looks at the timeouts after this. */
		smp_store_release(&brief_armed, true);
	}
	return kt_thread_end(0);
}

/* Delete each second timeout about when its callback begins. It is pending before and after. */
static void __init test_try_delete(struct hwt_wheel *wheel)
{
	unsigned int busy = 0, wrong = 0, i;
	unsigned long end = jiffies + 5 * HZ;
	struct task_struct *thread;
	u64 until;
	int ret;

	if (!cpu_online(1)) {
		KTEST_SKIP("a delete during a callback needs two CPUs");
		return;
	}
	kt_stay_on(cpumask_of(0));
	brief_armed = false;
	mix_ends = false;
	for (i = 0; i < ARRAY_SIZE(brief); i++)
		hwt_periodic_init(&brief[i], wheel, &brief_ops);
	thread = kt_thread(arm_brief, wheel, 1);
	while (busy < 300 && time_before(jiffies, end)) {
		cond_resched();
		/* Pairs with arm_brief(): if this is true, all timeouts are armed. */
		if (!smp_load_acquire(&brief_armed))
			continue;
		for (i = 1; i < ARRAY_SIZE(brief); i += 2) {
			while (!hwt_expired(&brief[i - 1].timeout) && time_before(jiffies, end))
				cond_resched();
			until = ktime_get_ns() + get_random_u32() % (20 * NSEC_PER_USEC);
			while (ktime_get_ns() < until)
				cpu_relax();
			ret = hwt_try_delete(&brief[i].timeout);
			busy += ret == -EBUSY;
			for (; ret == -EBUSY; ret = hwt_try_delete(&brief[i].timeout))
				cond_resched();
			wrong += ret != 1 || hwt_running(&brief[i].timeout);
		}
		WRITE_ONCE(brief_armed, false);
	}
	WRITE_ONCE(mix_ends, true);
	kt_thread_stop(thread);
	kt_stay_on(NULL);
	KTEST(!wrong, "it deletes no timeout whose callback is executing: %u times, of %u",
	      wrong, busy);
	for (i = 0; i < ARRAY_SIZE(brief); i++)
		hwt_shutdown_sync(&brief[i].timeout);
}

/* A lock that an interrupt handler takes: hwt_delete() is called under it. */
static DEFINE_RAW_SPINLOCK(irq_lock);
static struct hwt_timeout irq_timeout;

/*
 * Two tasks, softirqs and interrupts schedule, cancel and delete the same timeouts: none of them
 * waits for ever, no timeout stays held, and each is cancelled or given back as often as it was
 * armed.
 */
static struct hwt_timeout shared[4];
static atomic64_t armed, back;

static void mix(u32 random)
{
	struct hwt_timeout *timeout = &shared[random % ARRAY_SIZE(shared)];
	int ret;

	switch (random >> 8 & 7) {
	case 0:
		if (hwt_cancel(timeout))
			atomic64_inc(&back);
		break;
	case 1:
	case 2:
	case 3:
		if (hwt_delete(timeout))
			atomic64_inc(&back);
		break;
	default:
		ret = hwt_schedule_flags(timeout, random & 0x800 ? KT_HOUR : 2 * KT_HOUR, 0, 0);
		if (ret >= 0 && !(ret & HWT_WAS_PENDING))
			atomic64_inc(&armed);
	}
}

static enum hrtimer_restart take_lock(struct hrtimer *timer)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&irq_lock, flags);
	hwt_schedule(&irq_timeout, KT_HOUR);
	raw_spin_unlock_irqrestore(&irq_lock, flags);
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		mix(get_random_u32());
	hrtimer_forward_now(timer, ns_to_ktime(200 * NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

static enum hrtimer_restart mix_softirq(struct hrtimer *timer)
{
	unsigned int i;

	for (i = 0; i < 10; i++)
		mix(get_random_u32());
	hrtimer_forward_now(timer, ns_to_ktime(100 * NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

/* Delete a timeout under the lock for which an interrupt handler of the other CPU may wait. */
static bool delete_locked(void)
{
	unsigned long flags;
	bool deleted;

	/* On PREEMPT_RT, the shard's lock may not be taken under a raw lock. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return hwt_delete(&irq_timeout);
	raw_spin_lock_irqsave(&irq_lock, flags);
	deleted = hwt_delete(&irq_timeout);
	raw_spin_unlock_irqrestore(&irq_lock, flags);
	return deleted;
}

static int mix_task(void *unused)
{
	int n = 0;

	while (!READ_ONCE(mix_ends)) {
		mix(get_random_u32());
		n += delete_locked();
		cond_resched();
	}
	return kt_thread_end(n > 0);
}

static void __init test_delete_mix(struct hwt_wheel *wheel)
{
	unsigned long end = jiffies + 3 * HZ;
	static struct hrtimer hard, soft;
	struct task_struct *thread;
	unsigned int i, n = 0;

	hwt_timeout_setup(&irq_timeout, wheel, kt_nothing);
	for (i = 0; i < ARRAY_SIZE(shared); i++)
		hwt_timeout_setup(&shared[i], wheel, kt_nothing);
	mix_ends = false;
	/* The interrupts come to this CPU. */
	kt_stay_on(cpumask_of(0));
	thread = kt_thread(mix_task, NULL, 1);
	hrtimer_setup(&hard, take_lock, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	hrtimer_setup(&soft, mix_softirq, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	hrtimer_start(&hard, ms_to_ktime(1), HRTIMER_MODE_REL_HARD);
	hrtimer_start(&soft, ms_to_ktime(1), HRTIMER_MODE_REL_SOFT);
	while (time_before(jiffies, end)) {
		mix(get_random_u32());
		/* Without the lock: the handler may interrupt this, and then wait for the lock. */
		hwt_schedule(&irq_timeout, KT_HOUR);
		if (get_random_u32() % 2)
			n += delete_locked();
		cond_resched();
	}
	hrtimer_cancel(&hard);
	hrtimer_cancel(&soft);
	WRITE_ONCE(mix_ends, true);
	kt_stay_on(NULL);
	KTEST(kt_thread_stop(thread) == 1 && n > 0,
	      "hwt_delete() works under a lock that an interrupt takes");
	for (i = 0; i < ARRAY_SIZE(shared); i++)
		if (hwt_delete(&shared[i]))
			atomic64_inc(&back);
	KTEST(atomic64_read(&armed) == atomic64_read(&back) && atomic64_read(&armed) > 0,
	      "each timeout that was armed was cancelled or given back, once");
	for (n = 0, i = 0; i < ARRAY_SIZE(shared); i++)
		n += hwt_held(&shared[i]);
	KTEST(n == 0, "no timeout is held then, by no list");
	atomic64_set(&armed, 0);
	atomic64_set(&back, 0);
	hwt_shutdown_sync(&irq_timeout);
	for (i = 0; i < ARRAY_SIZE(shared); i++)
		hwt_shutdown_sync(&shared[i]);
}

/* -- Touch ------------------------------------------------------------------------ */

static void __init test_touch(struct hwt_wheel *wheel)
{
	u64 now = hwt_wheel_now(wheel);
	struct kt kt;

	kt_init(&kt, wheel, &kt_plain_ops);
	hwt_touch(&kt.timeout, now + KT_HOUR);
	KTEST(!hwt_pending(&kt.timeout), "a touch does not arm");
	hwt_schedule_at(&kt.timeout, now + 20 * KT_MS);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1), "an earlier schedule takes a touch along");
	now = hwt_wheel_now(wheel);
	WRITE_ONCE(kt.earliest, now + 300 * KT_MS);
	hwt_schedule_at(&kt.timeout, now + 100 * KT_MS);
	hwt_touch(&kt.timeout, now + 300 * KT_MS);
	KTEST(hwt_deadline(&kt.timeout) >= now + 300 * KT_MS &&
	      hwt_deadline(&kt.timeout) < now + 310 * KT_MS, "the deadline is that of the touch");
	KTEST(KT_WAIT(kt_expirations(&kt) == 2) && !atomic_read(&kt.early),
	      "a touched timeout fires at its later time");
	now = hwt_wheel_now(wheel);
	hwt_schedule_at(&kt.timeout, now + 50 * KT_MS);
	hwt_touch(&kt.timeout, now);
	KTEST(KT_WAIT(kt_expirations(&kt) == 3) && kt.at >= now + 50 * KT_MS,
	      "a touch does not pull forward");
	now = hwt_wheel_now(wheel);
	hwt_schedule_at(&kt.timeout, now + KT_HOUR);
	hwt_touch(&kt.timeout, now + 2 * KT_HOUR);
	hwt_schedule_flags(&kt.timeout, now + 20 * KT_MS, 0, KT_EARLIER_AT);
	KTEST(KT_WAIT(kt_expirations(&kt) == 4), "an earlier schedule undoes a touch");
	now = hwt_wheel_now(wheel);
	hwt_schedule_at(&kt.timeout, now + KT_HOUR);
	hwt_touch(&kt.timeout, now + 2 * KT_HOUR);
	KTEST(hwt_delete(&kt.timeout) && !hwt_held(&kt.timeout), "a touched one is given back");
	hwt_shutdown_sync(&kt.timeout);
}

#define TOUCHES		(KT_SLOW ? 3000 : 30000)

static struct kt touched;
static atomic_t met;
static u64 touch_ns;

static void meet(unsigned int number)
{
	atomic_inc(&met);
	while (atomic_read(&met) < number)
		cpu_relax();
}

static void arm_and_touch(unsigned int round)
{
	meet(4 * round + 2);
	if (!hwt_schedule_unless_pending(&touched.timeout, KT_HOUR))
		hwt_touch(&touched.timeout, touch_ns + round * KT_HOUR);
	meet(4 * round + 4);
}

static int touches(void *cancels)
{
	unsigned int round;

	for (round = 0; round < TOUCHES; round++) {
		if (cancels) {
			meet(4 * round + 2);
			hwt_touch(&touched.timeout, touch_ns + round * KT_HOUR);
			hwt_cancel(&touched.timeout);
			meet(4 * round + 4);
		} else {
			arm_and_touch(round);
		}
		cond_resched();
	}
	return kt_thread_end(0);
}

/* Two CPUs arm a timeout, or one touches and cancels it: which calls undo the touch */
static void __init test_touch_of_another(struct hwt_wheel *wheel, bool cancels)
{
	unsigned int round, wrong = 0;
	struct task_struct *other;
	u64 deadline;
	int was = 0;

	if (num_online_cpus() == 1) {
		KTEST_SKIP("there is only one CPU");
		return;
	}
	kt_init(&touched, wheel, &kt_plain_ops);
	touch_ns = hwt_wheel_now(wheel) + 10 * KT_HOUR;
	atomic_set(&met, 0);
	kt_stay_on(cpumask_of(0));
	other = kt_thread(touches, cancels ? &met : NULL, 1);
	for (round = 0; round < TOUCHES && !IS_ERR(other); round++) {
		if (cancels) {
			hwt_schedule_at(&touched.timeout, touch_ns - KT_HOUR);
			meet(4 * round + 2);
			was = hwt_schedule_at(&touched.timeout, touch_ns - 2 * KT_HOUR);
			meet(4 * round + 4);
		} else {
			arm_and_touch(round);
		}
		deadline = hwt_deadline(&touched.timeout);
		wrong += cancels ? !(was & HWT_WAS_PENDING) && deadline >= touch_ns :
				   deadline < touch_ns + round * KT_HOUR;
		hwt_cancel_sync(&touched.timeout);
		cond_resched();
	}
	kt_thread_stop(other);
	kt_stay_on(NULL);
	KTEST(round == TOUCHES && wrong == 0, "a touch beside %s: %u are wrong",
	      cancels ? "a cancel" : "a schedule", wrong);
}

/* A callback, or a cancel in a pass, must not leave cancelled timeouts held. */
static struct kt cancelled_kt;

static void cancel_other(struct hwt_timeout *timeout)
{
	hwt_cancel(&cancelled_kt.timeout);
	kt_expire(timeout);
}

static void __init test_reclaim(struct hwt_wheel *wheel)
{
	struct kt kt;

	kt_init(&cancelled_kt, wheel, &kt_plain_ops);
	hwt_schedule(&cancelled_kt.timeout, KT_HOUR);
	hwt_wheel_flush(wheel);
	kt_setup(&kt, wheel, cancel_other);
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1) && KT_WAIT(!hwt_held(&cancelled_kt.timeout)),
	      "a timeout that a callback cancels is let go");
	hwt_schedule(&cancelled_kt.timeout, KT_HOUR);
	hwt_cancel(&cancelled_kt.timeout);
	KTEST(KT_WAIT(!hwt_held(&cancelled_kt.timeout)), "and so is the next one");
	hwt_shutdown_sync(&cancelled_kt.timeout);
	hwt_shutdown_sync(&kt.timeout);
}

/* -- Times of timer_list ------------------------------------------------------------- */

static int schedule_now(void *timeout)
{
	hwt_schedule(timeout, 0);
	return kt_thread_end(0);
}

/*
 * CLOCK_REALTIME is set back during a softirq, which has read the time before. The softirq must not
 * run the wheel's timer again and again until the clock shows that time once more.
 */
static void __init test_set_back(void)
{
	s64 home = ktime_to_ns(ktime_mono_to_real(0));
	static struct kt kt, next;
	struct task_struct *thread;
	struct hwt_wheel *wheel;
	struct timespec64 ts;
	u64 passes;

	if (num_online_cpus() < 2) {
		KTEST_SKIP("a set of the clock during a softirq needs two CPUs");
		return;
	}
	wheel = kt_wheel("bh", .flags = HWT_BH, .clock = HWT_CLOCK_REALTIME);
	began = false;
	leave = false;
	kt_setup(&kt, wheel, spin_here);
	kt_setup(&next, wheel, kt_expire);
	kt_stay_on(cpumask_of(0));
	thread = kt_thread(schedule_now, &kt.timeout, 1);
	/* Pairs with spin_here(). */
	while (!IS_ERR(thread) && !smp_load_acquire(&began))
		cpu_relax();
	passes = kt_stats(wheel).passes;
	ts = ns_to_timespec64(ktime_get_ns() + home - 20 * KT_SECOND);
	do_settimeofday64(&ts);
	hwt_schedule(&next.timeout, KT_SECOND);
	WRITE_ONCE(leave, true);
	KTEST(KT_WAIT(kt_expirations(&next) == 1), "a timeout fires after the clock was set back");
	passes = kt_stats(wheel).passes - passes;
	KTEST(passes < 100, "passes until then: %llu", passes);
	ts = ns_to_timespec64(ktime_get_ns() + home);
	do_settimeofday64(&ts);
	kt_thread_stop(thread);
	kt_stay_on(NULL);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

static void __init test_jiffies(void)
{
	u64 second = hwt_jiffies_until(jiffies + HZ);

	KTEST(!hwt_jiffies_until(jiffies) && !hwt_jiffies_until(jiffies - HZ),
	      "a value that jiffies has reached is now");
	KTEST(second > hwt_jiffies(HZ / 2) && second <= hwt_jiffies(HZ),
	      "a second is a second: %llu ns", second);
	KTEST(hwt_jiffies_until(jiffies + MAX_JIFFY_OFFSET + HZ) == U64_MAX,
	      "the maximum of jiffies is never");
}

static bool wanted, begun;

static void begin_and_rearm(struct hwt_timeout *timeout)
{
	WRITE_ONCE(begun, true);
	mdelay(1);
	hwt_schedule(timeout, KT_HOUR);
}

/* Keep CPU 1 busy, so that the timeout fires there. */
static int schedule_wanted(void *timeout)
{
	while (!READ_ONCE(mix_ends)) {
		if (xchg(&wanted, false))
			hwt_schedule(timeout, 0);
		cond_resched();
	}
	return kt_thread_end(0);
}

static int linger(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	mdelay(2);
	return 0;
}

/* Cancel a timeout whose callback arms it, and returns, when the cancel has dropped the lock. */
static void __init test_cancel_beside_rearm(struct hwt_wheel *wheel)
{
	struct kretprobe probe = { .kp.symbol_name = "hwt_delete_held", .handler = linger };
	struct task_struct *thread;
	unsigned int i, wrong = 0;
	struct kt kt;

	if (!cpu_online(1) || register_kretprobe(&probe)) {
		KTEST_SKIP("a cancel beside a callback needs two CPUs and kretprobes");
		return;
	}
	kt_stay_on(cpumask_of(0));
	kt_setup(&kt, wheel, begin_and_rearm);
	mix_ends = false;
	thread = kt_thread(schedule_wanted, &kt.timeout, 1);
	for (i = 0; i < 20; i++) {
		WRITE_ONCE(begun, false);
		WRITE_ONCE(wanted, true);
		/* ksoftirqd of this CPU may have to run the callback. */
		while (!READ_ONCE(begun))
			cond_resched();
		hwt_cancel_sync(&kt.timeout);
		wrong += hwt_held(&kt.timeout);
	}
	WRITE_ONCE(mix_ends, true);
	kt_thread_stop(thread);
	kt_stay_on(NULL);
	unregister_kretprobe(&probe);
	KTEST(!wrong, "a _sync call cancels what a callback arms meanwhile: not %u times", wrong);
	hwt_shutdown_sync(&kt.timeout);
}

/* -- All ------------------------------------------------------------------------------ */

static void __init test_wheel(struct hwt_wheel *wheel)
{
	test_context(wheel);
	test_free(wheel);
	test_inside(wheel);
	test_reclaim(wheel);
	test_wait(wheel);
	test_cancel_beside_rearm(wheel);
	test_periodic(wheel);
	test_delete(wheel);
	test_try_delete(wheel);
	test_delete_mix(wheel);
	test_touch(wheel);
	test_touch_of_another(wheel, false);
	test_touch_of_another(wheel, true);
	test_many(wheel);
}

static void __init selftest(void)
{
	struct hwt_wheel *wheel;
	u64 ticks[] = { TICK_NSEC, KT_MS };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		wheel = kt_wheel("bh", .flags = HWT_BH, .tick_ns = ticks[i]);
		test_wheel(wheel);
		test_stop(wheel);
	}
	test_context(hwt_system_bh_wheel);
	test_set_back();
	test_jiffies();
	wheel = kt_wheel("thread", .tick_ns = KT_MS);
	test_delete(wheel);
	test_try_delete(wheel);
	test_delete_mix(wheel);
	test_touch(wheel);
	test_touch_of_another(wheel, false);
	test_touch_of_another(wheel, true);
	hwt_wheel_destroy(wheel);
}

KSTM_MODULE_LOADERS(test_bh);
