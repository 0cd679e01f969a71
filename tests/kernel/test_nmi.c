// SPDX-License-Identifier: GPL-2.0-only
/*
 * Real NMIs, injected by the host, that schedule, re-arm and cancel: timeouts of their
 * own, and one that the interrupted CPU and another one are at as well.
 *
 * hwt-test: long
 * hwt-test: timeout 120
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

#ifdef CONFIG_X86

#include <asm/nmi.h>

#define OWN	64

static struct hwt_wheel *wheel;
static struct kt own[OWN], common;
static atomic_t nmis, odd, armed, holds, hits;
static atomic_t own_scheduled;
static bool listening;

static void note_common(int ret)
{
	if (ret < 0) {
		atomic_inc(&odd);
		return;
	}
	if (!(ret & HWT_WAS_PENDING))
		atomic_inc(&armed);
	if (!(ret & HWT_WAS_HELD))
		atomic_inc(&holds);
}

static int handler(unsigned int type, struct pt_regs *regs)
{
	struct hwt_wheel_stats stats;
	unsigned int n;
	struct kt *kt;

	n = atomic_inc_return(&nmis);
	/* One that comes late is nobody else's. */
	if (!READ_ONCE(listening))
		return NMI_HANDLED;
	atomic_add(!in_nmi(), &odd);

	/* One that this handler alone schedules: due, and near. */
	kt = &own[n % OWN];
	if (!hwt_held(&kt->timeout)) {
		kt->earliest = hwt_wheel_now(wheel) + n % 5 * KT_MS;
		atomic_add(hwt_schedule(&kt->timeout, n % 5 * KT_MS) != 0, &odd);
		atomic_inc(&own_scheduled);
	}
	/* One that everybody is at. */
	switch (n % 4) {
	case 0:
		note_common(hwt_schedule(&common.timeout, KT_HOUR));
		break;
	case 1:
		note_common(hwt_schedule_earlier(&common.timeout, KT_MS));
		break;
	case 2:
		note_common(hwt_schedule_at(&common.timeout, 0));
		break;
	default:
		atomic_add(hwt_cancel(&common.timeout), &hits);
	}
	hwt_remaining(&common.timeout);
	hwt_wheel_get_stats(wheel, &stats);
	atomic_add(hwt_wheel_stopped(wheel), &odd);
	return NMI_HANDLED;
}

/* The other CPU's part in it. */
static int bother(void *arg)
{
	unsigned int n = 0;

	while (!kthread_should_stop()) {
		if (n++ % 2)
			note_common(hwt_schedule(&common.timeout, n % 4 ? KT_HOUR : 0));
		else
			atomic_add(hwt_cancel(&common.timeout), &hits);
		if (n % 32 == 0)
			usleep_range(100, 1000);
	}
	return 0;
}

static void __init test_injected(int wanted)
{
	unsigned long heard = jiffies;
	struct hwt_wheel_stats stats;
	struct task_struct *thread;
	unsigned int i, n = 0, fired = 0, early = 0, held = 0;

	/* They arrive on CPU 0. */
	kt_stay_on(cpumask_of(0));
	thread = kt_thread(bother, NULL, 1);
	pr_info("hwt-host: inject-nmi %d 5\n", wanted);
	/* Two at once may become one, so the end is when no more come. */
	while (n < wanted && time_before(jiffies, heard + 3 * HZ)) {
		if (n != atomic_read(&nmis)) {
			n = atomic_read(&nmis);
			heard = jiffies;
		}
		for (i = 0; i < 200; i++) {
			note_common(hwt_schedule(&common.timeout, i % 8 ? KT_HOUR : 0));
			hwt_wheel_now(wheel);
			if (i % 4 == 0)
				atomic_add(hwt_cancel(&common.timeout), &hits);
		}
		usleep_range(500, 1500);
	}
	kt_thread_stop(thread);
	kt_stay_on(NULL);
	WRITE_ONCE(listening, false);
	n = atomic_read(&nmis);
	if (!n) {
		KTEST_SKIP("the host injects no NMIs");
		return;
	}
	for (i = 0; i < OWN; i++)
		KT_WAIT(!hwt_held(&own[i].timeout));
	/* Fired, released: whoever cancels now finds nothing of them. */
	for (i = 0; i < OWN; i++) {
		held += hwt_cancel_sync(&own[i].timeout) != 0;
		fired += kt_expirations(&own[i]);
		early += atomic_read(&own[i].early);
		atomic_add(kt_releases(&own[i]) != kt_expirations(&own[i]), &odd);
	}
	KTEST(n > wanted / 2 && n <= wanted, "%u NMIs of %d", n, wanted);
	KTEST(fired == atomic_read(&own_scheduled) && !held,
	      "%d scheduled by them, %u fired", atomic_read(&own_scheduled), fired);
	KTEST(early == 0, "none early");
	/* No more than was counted may come on top: one cancel, of a last schedule. */
	atomic_add(hwt_cancel_sync(&common.timeout), &hits);
	hwt_wheel_get_stats(wheel, &stats);
	KTEST(stats.scheduled == atomic_read(&armed) + atomic_read(&own_scheduled) &&
	      stats.cancelled == atomic_read(&hits) &&
	      stats.scheduled == stats.expired + stats.cancelled &&
	      stats.expired == fired + kt_expirations(&common),
	      "the common one: %d armed = %d fired + %d cancelled",
	      atomic_read(&armed), kt_expirations(&common), atomic_read(&hits));
	KTEST(atomic_read(&holds) == kt_releases(&common), "%d holds, %d releases",
	      atomic_read(&holds), kt_releases(&common));
	KTEST(atomic_read(&odd) == 0, "all calls answer as they must");
}

static void __init selftest(void)
{
	int i;

	wheel = kt_wheel("nmi");
	kt_init(&common, wheel, &kt_ops);
	for (i = 0; i < OWN; i++)
		kt_init(&own[i], wheel, &kt_ops);
	listening = true;
	if (register_nmi_handler(NMI_UNKNOWN, handler, 0, KBUILD_MODNAME)) {
		KTEST_SKIP("no NMI handler can be registered");
	} else {
		test_injected(kt_quick() ? 100 : 500);
		/* One that is still on its way must find somebody. */
		msleep(200);
		unregister_nmi_handler(NMI_UNKNOWN, KBUILD_MODNAME);
	}
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

#else /* !CONFIG_X86 */

static void __init selftest(void)
{
	KTEST_SKIP("for x86 only");
}

#endif

KSTM_MODULE_LOADERS(test_nmi);
MODULE_DESCRIPTION("hwt: from injected NMIs");
MODULE_LICENSE("GPL");
