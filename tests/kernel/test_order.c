// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timeouts fire in the order of their ticks, whatever level of the wheel they came from. Within a
 * tick there is no order.
 *
 * hwt-test: long
 * hwt-test: timeout 120
 */
#include <linux/prandom.h>

#include "hwt_ktest.h"

struct item {
	struct hwt_timeout	timeout;
	u64			tick;
};

static struct item **fired;
static unsigned int fired_n;

static void item_expire(struct hwt_timeout *timeout)
{
	fired[fired_n] = container_of(timeout, struct item, timeout);
	/* Pairs with end(): who sees the number sees what fired. */
	smp_store_release(&fired_n, fired_n + 1);
}

static const struct hwt_timeout_ops item_ops = { .expire = item_expire };

/* How many fired after one that they should have fired before. */
static unsigned int __init disorder(unsigned int n)
{
	unsigned int i, odd = 0;

	for (i = 1; i < n; i++)
		odd += fired[i - 1]->tick > fired[i]->tick;
	return odd;
}

#define SLOW	(KT_SLOW ? 2 : 1)

static struct hwt_wheel *wheel;
static struct item *item;
static unsigned int armed;
/* What was due by the time it was armed may fire after what has a later tick. */
static bool too_slow;

static void __init begin(u32 buckets, u32 levels, unsigned int n)
{
	wheel = kt_wheel("order", .ticks_per_wheel = buckets, .levels = levels);
	item = kt_alloc(n, sizeof(*item));
	fired = kt_alloc(n, sizeof(*fired));
	fired_n = 0;
	armed = 0;
	too_slow = false;
	kt_stay_on(cpumask_of(raw_smp_processor_id()));
}

static void __init arm(u64 tick)
{
	item[armed].tick = tick;
	hwt_timeout_init(&item[armed].timeout, wheel, &item_ops);
	hwt_schedule_at(&item[armed].timeout, tick * KT_MS);
	too_slow |= kt_wheel_tick(wheel) >= tick - 1;
	armed++;
}

static void __init end(const char *what)
{
	unsigned int odd;

	kt_stay_on(NULL);
	/* Pairs with item_expire(). */
	KTEST(KT_WAIT(smp_load_acquire(&fired_n) == armed), "%s: all %u fire", what, armed);
	hwt_wheel_destroy(wheel);
	odd = fired_n == armed ? disorder(armed) : armed;
	if (too_slow)
		KTEST_SKIP("%s: the machine was too slow in arming them", what);
	else
		KTEST(odd == 0, "%s: in the order of ticks: %u are not", what, odd);
	vfree(fired);
	vfree(item);
}

/* Deadlines anywhere in @spread ticks, armed in one go. */
static void __init test_spread(const char *what, u32 buckets, u32 levels,
			       unsigned int n, unsigned int spread)
{
	struct rnd_state rnd;
	u64 base;

	begin(buckets, levels, n);
	prandom_seed_state(&rnd, n + spread);
	base = kt_wheel_tick(wheel) + 500 * SLOW;
	while (armed < n)
		arm(base + prandom_u32_state(&rnd) % spread);
	end(what);
}

static void __init selftest(void)
{
	unsigned int n = kt_quick() ? 1000 : 5000;

	test_spread("a few ticks", 512, 3, n, 10);
	test_spread("two levels", 64, 3, n, 800);
	test_spread("one level, with rounds", 64, 1, n, 800);
	test_spread("many levels", 2, 6, n, 300);
}

KSTM_MODULE_LOADERS(test_order);
