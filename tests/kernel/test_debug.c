// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwt.ko with debug=1 reports timeouts that were never initialised or were copied, and timeouts
 * that are initialised or freed while they are held, and does no harm. For modules that are
 * unloaded and leave timeouts behind, see module-debug.sh.
 *
 * hwt-test: load debug=1
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "hwt_ktest.h"

static struct hwt_wheel *wheel;

/*
 * Reports are limited to 10 in 5 s of each kind. So reports that the harness must see come before
 * calls that only must do no harm.
 */
#define wanted(regex)	pr_info("hwt-expect-begin: %s\n", regex)
#define wanted_end()	pr_info("hwt-expect-end\n")

#define UNUSABLE "hwt: BUG: timeout .* is used and was never initialised, or was copied"
#define HELD "hwt: BUG: timeout .* is initialised while it is held: kt_expire"

/* Wait for the collection: debug=1 tracks a timeout only after it was collected. */
static bool __init collected(const struct hwt_timeout *timeout)
{
	return KT_WAIT(!(hwt_timeout_state(timeout) & HWT_F_SUBMITTED));
}

/* Correct uses of memory with old contents. For all other correct clients: module-debug-clean.sh */
static void __init test_proper(void)
{
	struct kt *kt, used;
	int i, odd = 0;

	/* Memory with arbitrary contents, a copy of a used timeout included. */
	kt_init(&used, wheel, &kt_ops);
	hwt_schedule(&used.timeout, KT_HOUR);
	hwt_cancel_sync(&used.timeout);
	kt = kmalloc(sizeof(*kt), GFP_KERNEL);
	for (i = 0; kt && i < 3; i++) {
		if (i < 2)
			memset(kt, i ? 0xff : 0, sizeof(*kt));
		else
			memcpy(kt, &used, sizeof(*kt));
		hwt_timeout_init(&kt->timeout, wheel, &kt_plain_ops);
		odd += hwt_schedule(&kt->timeout, KT_HOUR) != 0;
		odd += hwt_shutdown_sync(&kt->timeout) != 1;
	}
	KTEST(kt && odd == 0, "initialised in memory with arbitrary contents");
	kfree(kt);

	/* A used timeout, partly overwritten so that its state says that it is held. */
	kt = kmalloc(sizeof(*kt), GFP_KERNEL);
	for (i = 0, odd = 0; kt && i < 2; i++) {
		hwt_timeout_init(&kt->timeout, wheel, &kt_plain_ops);
		hwt_schedule(&kt->timeout, KT_HOUR);
		odd += !collected(&kt->timeout) || hwt_shutdown_sync(&kt->timeout) != 1;
		memset(&kt->timeout, 0x6b, offsetofend(struct hwt_timeout, shard));
	}
	KTEST(kt && odd == 0, "initialised over a used timeout");
	kfree(kt);
}

static void __init test_refused(struct hwt_timeout *timeout, const char *what)
{
	bool ok;

	wanted(UNUSABLE);
	ok = hwt_schedule(timeout, 0) == -EINVAL && !hwt_cancel(timeout);
	wanted_end();
	KTEST(ok, "%s: refused and reported", what);
}

static bool __init refused_all(struct hwt_periodic *periodic)
{
	struct hwt_timeout *timeout = &periodic->timeout;
	const struct hwt_shard *shard = timeout->shard;

	return hwt_schedule(timeout, 0) == -EINVAL &&
	       hwt_schedule_at(timeout, 0) == -EINVAL &&
	       hwt_schedule_slack(timeout, 0, 1) == -EINVAL &&
	       hwt_schedule_flags(timeout, 0, 1, HWT_SCHEDULE_AT) == -EINVAL &&
	       hwt_schedule_earlier(timeout, 0) == -EINVAL &&
	       hwt_schedule_flags(timeout, 0, 0, KT_EARLIER_AT) == -EINVAL &&
	       hwt_schedule_pending(timeout, 0) == -EINVAL &&
	       hwt_schedule_pending_at(timeout, 0) == -EINVAL &&
	       hwt_schedule_periodic(periodic, 0, 1, HWT_MODE_FIXED_RATE) == -EINVAL &&
	       hwt_schedule_periodic_at(periodic, 0, 1, HWT_MODE_FIXED_RATE) == -EINVAL &&
	       hwt_schedule_periodic_at(periodic, 0, 1, HWT_MODE_FIXED_DELAY) == -EINVAL &&
	       (hwt_timeout_set_wheel(timeout, hwt_system_wheel), timeout->shard == shard) &&
	       !hwt_cancel(timeout) && hwt_cancel_sync(timeout) == 0 &&
	       hwt_shutdown_sync(timeout) == 0 && hwt_wait(timeout, 0) == 0;
}

static void __init test_never_initialised(void)
{
	static struct hwt_periodic zeroed, garbage, copy;
	struct kt original;

	test_refused(&zeroed.timeout, "zeroed memory");
	memset(&garbage, 0xa5, sizeof(garbage));
	test_refused(&garbage.timeout, "garbage");
	memset(&garbage, 0xff, sizeof(garbage));
	test_refused(&garbage.timeout, "other garbage");

	kt_init(&original, wheel, &kt_ops);
	copy.timeout = original.timeout;
	test_refused(&copy.timeout, "a copy");
	hwt_schedule(&original.timeout, KT_HOUR);
	/* The original is in a bucket, so the copy's links point there, too. */
	collected(&original.timeout);
	copy.timeout = original.timeout;
	test_refused(&copy.timeout, "a copy of a pending timeout");

	/* The limit of 10 reports in 5 s may be reached. */
	msleep(5500);
	wanted(UNUSABLE);
	KTEST(refused_all(&copy), "all calls refuse a copy");
	KTEST(hwt_schedule(&original.timeout, 0) > 0 && KT_WAIT(kt_releases(&original) == 1) &&
	      hwt_shutdown_sync(&original.timeout) == 0, "the original is unchanged, and fires");
	KTEST(refused_all(&zeroed) && refused_all(&garbage),
	      "all calls refuse zeroed memory and garbage");
	wanted_end();
}

static void __init test_initialised_twice(void)
{
	/* Keeps the wheel's thread from ending the holds of other timeouts. */
	static struct kt_stay blocker;
	struct kt kt, beat;
	u64 deadline;
	int n;

	kt_init(&kt, wheel, &kt_ops);
	hwt_schedule(&kt.timeout, KT_HOUR);
	collected(&kt.timeout);
	deadline = hwt_deadline(&kt.timeout);
	wanted(HELD);
	hwt_timeout_init(&kt.timeout, wheel, &kt_plain_ops);
	wanted_end();
	KTEST(hwt_pending(&kt.timeout) && hwt_deadline(&kt.timeout) == deadline,
	      "initialised while it is pending: reported, and still pending");
	KTEST(hwt_schedule(&kt.timeout, 0) == (HWT_WAS_PENDING | HWT_WAS_HELD) &&
	      KT_WAIT(kt_releases(&kt) == 1) && kt_expirations(&kt) == 1,
	      "it fires, with its first callbacks");

	hwt_schedule(&kt.timeout, KT_HOUR);
	collected(&kt.timeout);
	kt_stay_begin(&blocker, wheel);
	hwt_cancel(&kt.timeout);
	wanted(HELD);
	hwt_timeout_init(&kt.timeout, wheel, &kt_plain_ops);
	wanted_end();
	complete_all(&blocker.out);
	KTEST(KT_WAIT(kt_releases(&kt) == 2) && hwt_cancelled(&kt.timeout),
	      "initialised while it is cancelled and held: reported, and released");
	hwt_timeout_init(&kt.timeout, wheel, &kt_ops);
	KTEST(!hwt_cancelled(&kt.timeout) && hwt_schedule(&kt.timeout, 0) == 0 &&
	      KT_WAIT(kt_releases(&kt) == 3), "initialised after its hold: idle");
	hwt_shutdown_sync(&kt.timeout);
	hwt_shutdown_sync(&blocker.kt.timeout);

	kt_init_periodic(&beat, wheel, &kt_plain_ops);
	hwt_schedule_periodic(&beat.periodic, 0, KT_MS, HWT_MODE_FIXED_RATE);
	KT_WAIT(kt_expirations(&beat) > 3);
	wanted(HELD);
	hwt_periodic_init(&beat.periodic, wheel, &kt_plain_ops);
	wanted_end();
	n = kt_expirations(&beat);
	KTEST(hwt_pending(&beat.timeout) && KT_WAIT(kt_expirations(&beat) > n + 3),
	      "a periodic timeout: reported, and still fires");
	KTEST(hwt_shutdown_sync(&beat.timeout) == 1, "until it is cancelled");
}

static void moves_itself(struct hwt_timeout *timeout)
{
	hwt_timeout_set_wheel(timeout, hwt_system_bh_wheel);
	kt_expire(timeout);
}

static void __init test_moved(void)
{
	struct hwt_wheel *gone = kt_wheel("gone");
	static struct kt_stay stay;
	struct kt kt;

	kt_init(&kt, wheel, &kt_ops);
	hwt_schedule(&kt.timeout, KT_HOUR);
	wanted("hwt: BUG: timeout .* is moved to another wheel while it is held: kt_expire");
	hwt_timeout_set_wheel(&kt.timeout, wheel);
	wanted_end();
	KTEST(hwt_cancel_sync(&kt.timeout) == 1, "moved while it is held: reported");

	wanted("a timeout with ->cancelled or ->release is put on BH wheel hwt_system_bh: kt_");
	hwt_timeout_set_wheel(&kt.timeout, hwt_system_bh_wheel);
	wanted_end();
	KTEST(hwt_schedule(&kt.timeout, 0) == -EINVAL, "->release on a BH wheel: reported");
	wanted("hwt: BUG: timeout .* is moved to another wheel while its moves_itself .*exec");
	kt_setup(&kt, hwt_system_bh_wheel, moves_itself);
	hwt_schedule(&kt.timeout, 0);
	KTEST(KT_WAIT(kt_expirations(&kt) == 1), "moved in its softirq: reported");
	hwt_delete(&kt.timeout);
	wanted_end();

	kt_stay_init(&stay, wheel, &kt_stay_release_ops);
	hwt_schedule(&stay.kt.timeout, KT_HOUR);
	hwt_cancel(&stay.kt.timeout);
	KTEST(KT_WAIT(kt_inside(&stay)) && !hwt_held(&stay.kt.timeout),
	      "a release executes, and the timeout is not held any more");
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT)) {	/* else, hwt looks for no ->release */
		wanted("hwt: BUG: timeout .* is moved to another wheel while its kt_stay_release ");
		hwt_timeout_set_wheel(&stay.kt.timeout, wheel);
		wanted_end();
	}
	complete_all(&stay.out);
	KTEST(hwt_cancel_sync(&stay.kt.timeout) == 0 && !kt_inside(&stay),
	      "moved meanwhile: reported");
	/* As the contract says: no report, and no access to a wheel that was destroyed. */
	hwt_timeout_set_wheel(&stay.kt.timeout, wheel);
	hwt_timeout_set_wheel(&stay.kt.timeout, gone);
	hwt_wheel_destroy(gone);
	hwt_timeout_set_wheel(&stay.kt.timeout, wheel);
}

static void freed_expire(struct hwt_timeout *timeout)
{
}

/* The harness sees two reports: the message itself, and the WARN() that prints it. */
#define WARNED "WARNING: .*debug_print_object"

/*
 * Free a timeout while it is pending. Its memory stays valid for RCU readers, and is used once more
 * here: hwt reports that, and leaves the timeout as it is. @zero: as kfree_sensitive().
 */
static void __init test_freed_one(struct kmem_cache *cache, bool zero, const char *regex)
{
	struct hwt_timeout *timeout = kmem_cache_alloc(cache, GFP_KERNEL), copy;

	if (!timeout)
		return;
	hwt_timeout_setup(timeout, wheel, freed_expire);
	hwt_schedule(timeout, KT_HOUR);
	collected(timeout);
	wanted(regex);
	rcu_read_lock();
	memcpy(&copy, timeout, sizeof(copy));
	if (zero)
		memset(timeout, 0, sizeof(*timeout));
	kmem_cache_free(cache, timeout);
	if (zero) {
		/* Repair the wheel's lists. Debug objects know already that the object is gone. */
		copy.tracked = 0;
		memcpy(timeout, &copy, sizeof(copy));
	}
	rcu_read_unlock();
	wanted_end();
	KTEST(hwt_cancel_sync(timeout) == 1, "%s while it is pending: reported",
	      zero ? "zeroed and freed" : "freed");
}

/* The kernel prints at most 5 of these reports until it is booted again. */
static void __init test_freed(void)
{
	struct kmem_cache *cache = kmem_cache_create("hwt_test_freed", sizeof(struct hwt_timeout),
						     0, SLAB_TYPESAFE_BY_RCU, NULL);

	if (!cache)
		return;
	test_freed_one(cache, false, "ODEBUG: free active .*type: hwt_timeout hint: freed_expire|"
		       WARNED);
	test_freed_one(cache, true, "ODEBUG: free active .*type: hwt_timeout hint: |" WARNED);
	kmem_cache_destroy(cache);
}

static void __init selftest(void)
{
	wheel = kt_wheel("debug");
	test_proper();
	test_never_initialised();
	test_initialised_twice();
	test_moved();
	if (IS_ENABLED(CONFIG_DEBUG_OBJECTS_FREE))
		test_freed();
	else
		KTEST_SKIP("this kernel does not check freed objects");
	KTEST(hwt_wheel_pending(wheel) == 0 && hwt_wheel_destroy(wheel) == 0,
	      "no timeout is left pending, and the wheel is destroyed");
}

KSTM_MODULE_LOADERS(test_debug);
