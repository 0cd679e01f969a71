// SPDX-License-Identifier: GPL-2.0-only
/*
 * Callbacks that leave their context changed: each is reported by name, the preemption count is
 * restored, and the engine goes on. A second callback, mend_*, undoes all other changes.
 */
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>

#include "hwt_ktest.h"

static DEFINE_SPINLOCK(leaked_spinlock);
static DEFINE_RAW_SPINLOCK(leaked_raw);
static DEFINE_MUTEX(leaked_mutex);

/* The context in which a callback is called. */
static struct {
	int	preempt, rcu;
	bool	irqs_off, softirqs_off;
} seen;

static void look(struct hwt_timeout *timeout)
{
	seen.preempt = preempt_count();
	seen.rcu = rcu_preempt_depth();
	seen.irqs_off = irqs_disabled();
	seen.softirqs_off = in_softirq();
	/* A kernel with checks reports a sleep in atomic context. */
	usleep_range(1000, 2000);
	kt_expire(timeout);
}

/* Define a function that changes its context, or undoes such a change, and then calls @counts. */
#define FUNCTION(name, leave, counts)					\
static void name(struct hwt_timeout *timeout)				\
{									\
	leave;								\
	counts(timeout);						\
}

#define CALLBACK(name, leave)	FUNCTION(name, leave, expire_then_mend)

/*
 * The timeout that undoes the change. The callback that leaks schedules it for the past, so that it
 * comes next, and the engine does not sleep before it.
 */
static struct kt *mender;

static void expire_then_mend(struct hwt_timeout *timeout)
{
	struct kt *mending = xchg(&mender, NULL);

	if (mending)
		hwt_schedule_at(&mending->timeout, 0);
	kt_expire(timeout);
}

FUNCTION(leak_in_cancelled, preempt_disable(), kt_cancelled)
FUNCTION(leak_in_release, preempt_disable(), kt_release)
CALLBACK(leak_preemption, preempt_disable(); preempt_disable())
/* __release() and __acquire() hide the imbalance from sparse. */
CALLBACK(leak_rcu, rcu_read_lock(); rcu_read_lock(); __release(RCU); __release(RCU))
CALLBACK(leak_interrupts, local_irq_disable())
CALLBACK(leak_softirqs, local_bh_disable())
CALLBACK(mend_rcu, __acquire(RCU); __acquire(RCU); rcu_read_unlock(); rcu_read_unlock())
/* Not a restore: a sleep of the engine may have enabled interrupts already. */
CALLBACK(mend_interrupts, local_irq_enable())
CALLBACK(mend_softirqs, local_bh_enable())
CALLBACK(leak_spinlock, spin_lock(&leaked_spinlock); __release(&leaked_spinlock))
CALLBACK(leak_raw_spinlock, raw_spin_lock(&leaked_raw); __release(&leaked_raw))
CALLBACK(leak_mutex, mutex_lock(&leaked_mutex))

/* Raise the preemption count again, because the engine has restored it. */
static void spinlock_again(void)
	__acquires(&leaked_spinlock)
{
	__acquire(&leaked_spinlock);
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

CALLBACK(mend_spinlock, spinlock_again(); spin_unlock(&leaked_spinlock))
CALLBACK(mend_raw_spinlock, __acquire(&leaked_raw); preempt_disable(); raw_spin_unlock(&leaked_raw))
CALLBACK(mend_mutex, mutex_unlock(&leaked_mutex))

static struct hwt_wheel *wheel;

/* Run @fn once as a callback. Return true if it was called, and nothing is left to cancel. */
static bool __init runs(void (*fn)(struct hwt_timeout *timeout), struct kt *kt,
			struct hwt_timeout_ops *ops)
{
	ops->expire = fn;
	hwt_schedule(&kt->timeout, 0);
	if (!KT_WAIT(kt_expirations(kt) == 1))
		return false;
	return hwt_shutdown_sync(&kt->timeout) == 0;
}

static bool __init clean(void)
{
	static struct hwt_timeout_ops ops;
	bool ok = true;
	struct kt kt;
	int i;

	for (i = 0; i < 5; i++) {
		memset(&seen, 0xff, sizeof(seen));
		kt_init(&kt, wheel, &ops);
		ok &= runs(look, &kt, &ops) && !seen.preempt && !seen.rcu &&
		      !seen.irqs_off && !seen.softirqs_off;
		usleep_range(5000, 6000);
	}
	return ok;
}

/* Run @leaking, and @mending next. Return true if each was called once. */
static bool __init leaks(struct kt *leaking, struct kt *mending)
{
	mender = mending;
	hwt_schedule(&leaking->timeout, 0);
	return KT_WAIT(kt_expirations(leaking) == 1) &&
	       (!mending || KT_WAIT(kt_expirations(mending) == 1)) &&
	       hwt_shutdown_sync(&leaking->timeout) == 0 &&
	       (!mending || hwt_shutdown_sync(&mending->timeout) == 0);
}

/* The kernel may complain, too, while the engine runs in the changed context. */
#define ALSO	(IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP) ?		\
		 "|sleeping function called from invalid context" : "")

/*
 * A macro, so that the timeouts of each leak have a lockdep class of their own: a lock that one
 * callback leaks is held during the next callback.
 */
#define TEST_LEAK(what, leak, mend, name) do {				\
	static const struct hwt_timeout_ops leak_ops = { .expire = leak };	\
	static const struct hwt_timeout_ops mend_ops = { .expire = mend };	\
	struct kt leaking, mending;						\
	bool ok;								\
										\
	pr_info("hwt-expect-begin: callback (leak|mend)_%s .*left its context changed%s\n", \
		name, mend_ops.expire ? ALSO : "");				\
	kt_init(&leaking, wheel, &leak_ops);					\
	kt_init(&mending, wheel, &mend_ops);					\
	ok = leaks(&leaking, mend_ops.expire ? &mending : NULL) && clean();	\
	pr_info("hwt-expect-end\n");						\
	KTEST(ok, "%s: reported, survived", what);			\
} while (0)

static void __init test_cancelled_and_release(void)
{
	static const struct hwt_timeout_ops cancelled_ops = {
		.expire = kt_expire, .cancelled = leak_in_cancelled,
	};
	static const struct hwt_timeout_ops release_ops = {
		.expire = kt_expire, .release = leak_in_release,
	};
	struct kt kt, kt2;
	int before;

	pr_info("hwt-expect-begin: callback leak_in_cancelled .*left its context changed\n");
	kt_init(&kt, wheel, &cancelled_ops);
	hwt_schedule(&kt.timeout, KT_HOUR);
	hwt_cancel(&kt.timeout);
	KTEST(KT_WAIT(atomic_read(&kt.cancelled) == 1) && clean(),
	      "in ->cancelled: reported, restored");
	hwt_schedule(&kt.timeout, KT_HOUR);
	before = preempt_count();
	hwt_cancel_sync(&kt.timeout);
	KTEST(atomic_read(&kt.cancelled) == 2 && preempt_count() == before,
	      "in ->cancelled in the caller of cancel_sync: restored");
	pr_info("hwt-expect-end\n");

	pr_info("hwt-expect-begin: callback leak_in_release .*left its context changed\n");
	kt_init(&kt2, wheel, &release_ops);
	hwt_schedule(&kt2.timeout, 0);
	KTEST(KT_WAIT(kt_releases(&kt2) == 1) && clean(),
	      "in ->release: reported, restored");
	hwt_schedule(&kt2.timeout, KT_HOUR);
	hwt_cancel_sync(&kt2.timeout);
	KTEST(kt_releases(&kt2) == 2 && preempt_count() == before,
	      "in ->release in the caller of cancel_sync: restored");
	pr_info("hwt-expect-end\n");
}

static void __init test_softirq(void)
{
	struct hwt_wheel *bh = kt_wheel("hygiene-bh", .flags = HWT_BH);
	struct kt kt;

	pr_info("hwt-expect-begin: callback leak_preemption .*left its context changed\n");
	kt_setup(&kt, bh, leak_preemption);
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1) && hwt_wheel_destroy(bh) == 0,
	      "in a softirq: reported, restored");
	pr_info("hwt-expect-end\n");
}

static void __init selftest(void)
{
	/* One CPU: DEBUG_SPINLOCK checks that the CPU that took a spinlock releases it. */
	wheel = kt_wheel("hygiene", .cpus = cpumask_of(0));
	KTEST(clean(), "callbacks run with preemption and interrupts on");

	if (IS_ENABLED(CONFIG_PREEMPT_COUNT)) {
		TEST_LEAK("preemption", leak_preemption, NULL, "preemption");
		/* Lockdep would report the wheel's lock inside the raw spinlock, and switch off. */
		if (IS_ENABLED(CONFIG_PREEMPT_RT) && IS_ENABLED(CONFIG_PROVE_LOCKING))
			KTEST_SKIP("lockdep reports the raw spinlock");
		else
			TEST_LEAK("raw spinlock", leak_raw_spinlock, mend_raw_spinlock,
				  "raw_spinlock");
	} else {
		KTEST_SKIP("this kernel does not count preemption: locks and counts");
	}
	if (IS_ENABLED(CONFIG_PREEMPT_RCU))
		TEST_LEAK("RCU section", leak_rcu, mend_rcu, "rcu");
	else
		KTEST_SKIP("this kernel does not count RCU sections");
	TEST_LEAK("interrupts off", leak_interrupts, mend_interrupts, "interrupts");
	/* On PREEMPT_RT, disabling soft interrupts takes a lock. */
	TEST_LEAK("soft interrupts off", leak_softirqs,
		  IS_ENABLED(CONFIG_PREEMPT_RT) ? mend_softirqs : NULL, "softirqs");
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT) || IS_ENABLED(CONFIG_PREEMPT_RT))
		TEST_LEAK("spinlock", leak_spinlock, mend_spinlock, "spinlock");
	else
		KTEST_SKIP("this kernel does not notice a leaked spinlock");
	if (IS_ENABLED(CONFIG_LOCKDEP))
		TEST_LEAK("mutex", leak_mutex, mend_mutex, "mutex");
	else
		KTEST_SKIP("this kernel does not notice a leaked mutex");
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT)) {
		test_cancelled_and_release();
		test_softirq();
	} else {
		KTEST_SKIP("this kernel does not count preemption: other functions");
	}
	KTEST(clean() && hwt_wheel_pending(wheel) == 0, "callbacks run as before");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

KSTM_MODULE_LOADERS(test_hygiene);
