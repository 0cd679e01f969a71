// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit test of timing wheels: the buckets, the changes of a state, the life of timeouts
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/hwt.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "buckets.h"
#include "state.h"

/* -- Buckets --------------------------------------------------------------- */

#define COUNT	500
#define TICKS	20000		/* several revolutions of the top level */

struct buckets_case {
	unsigned int bits;
	unsigned int levels;
};

static const struct buckets_case buckets_cases[] = { { 4, 1 }, { 6, 1 }, { 3, 3 }, { 6, 2 } };

static void buckets_case_name(const struct buckets_case *param, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "%u levels of %u buckets", param->levels,
		 1U << param->bits);
}

KUNIT_ARRAY_PARAM(buckets, buckets_cases, buckets_case_name);

static void set_tick(struct hwt_timeout *timeout, u64 tick)
{
	atomic64_set(&timeout->state, tick << HWT_TICK_SHIFT | HWT_F_ARMED);
}

static u64 tick_of(const struct hwt_timeout *timeout)
{
	return hwt_state_tick(hwt_timeout_state(timeout));
}

/*
 * Advance to a tick: all timeouts whose tick has come must be due, and no other. Return the number
 * of timeouts that were due.
 */
static unsigned int buckets_step(struct kunit *test, struct hwt_buckets *buckets,
				 struct hwt_timeout *timeouts, u64 now)
{
	struct hwt_timeout *timeout;
	unsigned int n, fired = 0;
	u64 soonest = U64_MAX;

	for (n = 0; n < COUNT; n++)
		if (hwt_linked(&timeouts[n]))
			soonest = min(soonest, tick_of(&timeouts[n]));
	KUNIT_EXPECT_LE(test, hwt_buckets_next_tick(buckets), soonest);
	while (!hwt_buckets_advance(buckets, now, 16, false))
		;
	while (!list_empty(&buckets->due)) {
		timeout = list_first_entry(&buckets->due, struct hwt_timeout, link);
		hwt_buckets_take_due(timeout);
		/* The tick was raised after the insertion: insert the timeout for its new tick. */
		if (tick_of(timeout) > now)
			hwt_buckets_insert(buckets, timeout);
		else
			fired++;
	}
	for (n = 0; n < COUNT; n++)
		if (hwt_linked(&timeouts[n]))
			KUNIT_EXPECT_GT(test, tick_of(&timeouts[n]), now);
	return fired;
}

static void buckets_test(struct kunit *test)
{
	const struct buckets_case *param = test->param_value;
	struct hwt_timeout *timeout, *timeouts;
	struct rnd_state random;
	struct hwt_buckets buckets;
	unsigned int fired = 0, n;
	u64 now = 0;
	void *memory;

	timeouts = kunit_kcalloc(test, COUNT, sizeof(*timeouts), GFP_KERNEL);
	memory = kunit_kzalloc(test, hwt_buckets_size(param->bits, param->levels), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, timeouts);
	KUNIT_ASSERT_NOT_NULL(test, memory);
	hwt_buckets_init(&buckets, param->bits, param->levels, now, memory);
	prandom_seed_state(&random, 1);
	while (now < TICKS) {
		for (n = 0; n < COUNT / 10; n++) {
			timeout = &timeouts[prandom_u32_state(&random) % COUNT];
			if (!hwt_linked(timeout)) {
				set_tick(timeout, now + 1 + prandom_u32_state(&random) % TICKS);
				hwt_buckets_insert(&buckets, timeout);
			} else if (n % 2) {
				set_tick(timeout, tick_of(timeout) + n);
			} else {
				hwt_buckets_remove(&buckets, timeout);
			}
		}
		now += 1 + prandom_u32_state(&random) % 300;
		fired += buckets_step(test, &buckets, timeouts, now);
	}
	KUNIT_EXPECT_GT(test, fired, COUNT / 2);
}

/* -- Changes of a state: all combinations of bits -------------------------- */

@STATE@
static void state_test(struct kunit *test)
{
	unsigned int bits;

	for (bits = 0; bits <= HWT_F_ALL; bits++)
		if (hwt_state_valid(bits))
			check_from((u64)MIDDLE << HWT_TICK_SHIFT | bits);
	KUNIT_EXPECT_EQ(test, faults, 0);
	KUNIT_EXPECT_GT(test, cases, 10000);
	KUNIT_EXPECT_FALSE(test, hwt_state_valid(HWT_F_REARM));
	KUNIT_EXPECT_FALSE(test, hwt_state_valid(HWT_F_PENDING | HWT_F_SHUTDOWN));
}

/* -- The life of a timeout ------------------------------------------------- */

struct object {
	struct hwt_periodic periodic;	/* with a one-shot, only its timeout is used */
	struct completion ended;
	unsigned int expired, cancelled, released;
	u64 fired_ns;
};

static struct object *object_of(struct hwt_timeout *timeout)
{
	return container_of(timeout, struct object, periodic.timeout);
}

static void object_expire(struct hwt_timeout *timeout)
{
	object_of(timeout)->fired_ns = hwt_wheel_now(hwt_timeout_wheel(timeout));
	object_of(timeout)->expired++;
}

static void object_cancelled(struct hwt_timeout *timeout)
{
	object_of(timeout)->cancelled++;
}

static void object_release(struct hwt_timeout *timeout)
{
	object_of(timeout)->released++;
	complete(&object_of(timeout)->ended);
}

static const struct hwt_timeout_ops object_ops = {
	.expire = object_expire, .cancelled = object_cancelled, .release = object_release,
};

static int wheel_init(struct kunit *test)
{
	test->priv = hwt_wheel_create(NULL);
	return PTR_ERR_OR_ZERO(test->priv);
}

static void wheel_exit(struct kunit *test)
{
	if (!IS_ERR_OR_NULL(test->priv))
		hwt_wheel_destroy(test->priv);
}

static struct hwt_timeout *object_init(struct kunit *test, struct object *object)
{
	*object = (struct object) { };
	init_completion(&object->ended);
	hwt_periodic_init(&object->periodic, test->priv, &object_ops);
	return &object->periodic.timeout;
}

static void expire_test(struct kunit *test)
{
	struct object object;
	struct hwt_timeout *timeout = object_init(test, &object);
	u64 deadline = hwt_wheel_now(test->priv) + hwt_msecs(20);

	KUNIT_EXPECT_EQ(test, hwt_schedule_at(timeout, deadline), 0);
	KUNIT_EXPECT_TRUE(test, hwt_pending(timeout));
	wait_for_completion(&object.ended);
	KUNIT_EXPECT_GE(test, object.fired_ns, deadline);
	KUNIT_EXPECT_EQ(test, object.expired, 1);
	KUNIT_EXPECT_EQ(test, object.cancelled, 0);
	KUNIT_EXPECT_TRUE(test, hwt_expired(timeout));
	KUNIT_EXPECT_FALSE(test, hwt_held(timeout));
	hwt_shutdown_sync(timeout);
}

static void move_test(struct kunit *test)
{
	struct object object;
	struct hwt_timeout *timeout = object_init(test, &object);

	hwt_schedule(timeout, hwt_secs(1000));
	KUNIT_EXPECT_EQ(test, hwt_schedule(timeout, hwt_secs(2000)),
			HWT_WAS_PENDING | HWT_WAS_HELD);
	KUNIT_EXPECT_EQ(test, hwt_schedule_earlier(timeout, hwt_secs(3000)),
			HWT_WAS_PENDING | HWT_WAS_HELD);
	KUNIT_EXPECT_LE(test, hwt_remaining(timeout), hwt_secs(2000) + hwt_msecs(10));
	hwt_schedule(timeout, hwt_msecs(10));
	wait_for_completion(&object.ended);
	KUNIT_EXPECT_EQ(test, object.expired, 1);
	hwt_shutdown_sync(timeout);
	KUNIT_EXPECT_EQ(test, hwt_schedule(timeout, 0), -ESHUTDOWN);
}

static void cancel_test(struct kunit *test)
{
	struct object object;
	struct hwt_timeout *timeout = object_init(test, &object);

	hwt_schedule(timeout, hwt_secs(1000));
	KUNIT_EXPECT_TRUE(test, hwt_cancel(timeout));
	KUNIT_EXPECT_FALSE(test, hwt_cancel(timeout));
	wait_for_completion(&object.ended);
	KUNIT_EXPECT_EQ(test, object.cancelled, 1);
	hwt_schedule(timeout, hwt_secs(1000));
	KUNIT_EXPECT_EQ(test, hwt_cancel_sync(timeout), 1);
	KUNIT_EXPECT_FALSE(test, hwt_held(timeout));
	KUNIT_EXPECT_EQ(test, object.released, 2);
	/* hwt_delete() ends the hold without a call. */
	hwt_schedule(timeout, hwt_secs(1000));
	KUNIT_EXPECT_TRUE(test, hwt_delete(timeout));
	KUNIT_EXPECT_FALSE(test, hwt_held(timeout));
	KUNIT_EXPECT_EQ(test, object.released, 2);
	/* A barrier of built-in code waits for the holds of all clients that are about to end. */
	hwt_schedule(timeout, hwt_secs(1000));
	hwt_cancel(timeout);
	KUNIT_EXPECT_EQ(test, hwt_wheel_barrier(test->priv), 0);
	KUNIT_EXPECT_EQ(test, object.released, 3);
	KUNIT_EXPECT_EQ(test, object.expired, 0);
}

static void periodic_test(struct kunit *test)
{
	struct object object;
	struct hwt_timeout *timeout = object_init(test, &object);

	KUNIT_EXPECT_EQ(test, hwt_schedule_periodic(&object.periodic, 0, hwt_msecs(10),
						    HWT_MODE_FIXED_RATE), 0);
	while (READ_ONCE(object.expired) < 3)
		msleep(20);
	KUNIT_EXPECT_TRUE(test, hwt_pending(timeout));
	KUNIT_EXPECT_EQ(test, hwt_shutdown_sync(timeout), 1);
	KUNIT_EXPECT_EQ(test, object.released, 1);
}

static void hand_back(struct hwt_timeout *timeout, void *arg)
{
	++*(unsigned int *)arg;
}

static void stop_test(struct kunit *test)
{
	struct object object[3];
	unsigned int n, handed_back = 0;

	for (n = 0; n < ARRAY_SIZE(object); n++)
		hwt_schedule(object_init(test, &object[n]), hwt_secs(1000 + 100000 * n));
	KUNIT_EXPECT_EQ(test, hwt_wheel_pending(test->priv), ARRAY_SIZE(object));
	KUNIT_EXPECT_EQ(test, hwt_wheel_stop(test->priv, hand_back, &handed_back),
			ARRAY_SIZE(object));
	KUNIT_EXPECT_EQ(test, handed_back, ARRAY_SIZE(object));
	for (n = 0; n < ARRAY_SIZE(object); n++)
		KUNIT_EXPECT_EQ(test, object[n].released, 1);
	KUNIT_EXPECT_EQ(test, hwt_schedule(&object[0].periodic.timeout, 0), -ESHUTDOWN);
}

static struct kunit_case data_cases[] = {
	KUNIT_CASE_PARAM(buckets_test, buckets_gen_params),
	KUNIT_CASE(state_test),
	{}
};

static struct kunit_suite data_suite = {
	.name = "hwt-data",
	.test_cases = data_cases,
};

static struct kunit_case life_cases[] = {
	KUNIT_CASE(expire_test),
	KUNIT_CASE(move_test),
	KUNIT_CASE(cancel_test),
	KUNIT_CASE(periodic_test),
	KUNIT_CASE(stop_test),
	{}
};

static struct kunit_suite life_suite = {
	.name = "hwt-life",
	.init = wheel_init,
	.exit = wheel_exit,
	.test_cases = life_cases,
};

kunit_test_suites(&data_suite, &life_suite);

MODULE_DESCRIPTION("KUnit test of timing wheels");
MODULE_LICENSE("GPL");
