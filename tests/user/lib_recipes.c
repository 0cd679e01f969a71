// SPDX-License-Identifier: GPL-2.0-only
/*
 * libhwt: retry and debounce, with ids and with keys
 *
 * hwt-test: shared
 * hwt-test: m32
 * hwt-test: libs hwt
 */
#include "kselftest_harness.h"

#include "hwt_dev.h"
#include "libhwt.h"

#define KEY	77

/* Static: each test runs in a process of its own. */
static struct libhwt *hwt;
static uint64_t id;
static bool keys;

FIXTURE(recipes) { };
FIXTURE_VARIANT(recipes) { unsigned int flags; };
FIXTURE_VARIANT_ADD(recipes, ids) { .flags = 0 };
FIXTURE_VARIANT_ADD(recipes, keys) { .flags = HWT_SETUP_KEYS };

FIXTURE_SETUP(recipes)
{
	const struct libhwt_options options = { .size = sizeof(options), .flags = variant->flags };

	ASSERT_EQ(0, libhwt_open(&hwt, &options));
	keys = variant->flags;
	id = keys ? KEY : 0;
}

FIXTURE_TEARDOWN(recipes)
{
	libhwt_close(hwt);
}

static int retry(struct libhwt_backoff *backoff)
{
	return keys ? libhwt_key_retry(hwt, KEY, backoff) : libhwt_retry(hwt, backoff, KEY, &id);
}

static int debounce(struct libhwt_debounce *series)
{
	return keys ? libhwt_key_debounce(hwt, KEY, series) :
		      libhwt_debounce(hwt, series, KEY, &id);
}

/* Return the deadline of the timeout; 0: there is no timeout. */
static __u64 deadline(void)
{
	struct hwt_get_args get = { .size = sizeof(get) };

	return libhwt_get(hwt, id, &get) ? 0 : get.deadline_ns;
}

/* Retry, and return whether the delay is from @low_ns to @high_ns. */
static bool delayed(struct libhwt_backoff *backoff, __u64 low_ns, __u64 high_ns)
{
	__u64 before = now_ns();
	int ret = retry(backoff);
	__u64 due = deadline();

	return ret >= 0 && due >= before + low_ns && due <= now_ns() + high_ns + SEC;
}

TEST_F(recipes, delays_double_up_to_the_longest)
{
	struct libhwt_backoff backoff = { .first_ns = HOUR, .most_ns = 5 * HOUR, .limit = 4 };

	EXPECT_TRUE(delayed(&backoff, HOUR, HOUR));
	EXPECT_TRUE(delayed(&backoff, 2 * HOUR, 2 * HOUR));
	/* A timeout that has ended is created again. */
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_cancel(hwt, id));
	EXPECT_TRUE(delayed(&backoff, 4 * HOUR, 4 * HOUR));
	EXPECT_TRUE(delayed(&backoff, 5 * HOUR, 5 * HOUR));
	EXPECT_LE(0, libhwt_cancel(hwt, id));
	EXPECT_EQ(-ETIME, retry(&backoff));
	EXPECT_EQ(0, deadline());
	backoff.limit = 0;
	backoff.tries = 1000;
	EXPECT_TRUE(delayed(&backoff, 5 * HOUR, 5 * HOUR));
	backoff.tries = 0;
	EXPECT_EQ(HWT_STATE_PENDING, retry(&backoff));
	/* An error does not count as a try. */
	ASSERT_EQ(0, libhwt_stop(hwt, NULL));
	EXPECT_EQ(-ESHUTDOWN, retry(&backoff));
	EXPECT_EQ(1, backoff.tries);
}

TEST_F(recipes, delays_are_shortened_at_random)
{
	struct libhwt_backoff backoff = { 10 * HOUR, 10 * HOUR, .jitter_pct = 50 };
	int i, early = 0;

	for (i = 0; i < 100; i++) {
		EXPECT_TRUE(delayed(&backoff, 5 * HOUR, 10 * HOUR));
		early += deadline() < now_ns() + 7 * HOUR;
	}
	EXPECT_TRUE(early > 0 && early < 100);
	backoff.jitter_pct = 1000;
	EXPECT_TRUE(delayed(&backoff, 0, 10 * HOUR));
	/* One percent of HWT_NEVER is still beyond any deadline. */
	backoff = (struct libhwt_backoff) { HWT_NEVER, HWT_NEVER, .jitter_pct = 1 };
	EXPECT_LE(0, retry(&backoff));
	EXPECT_EQ(HWT_NEVER, deadline());
}

TEST_F(recipes, each_event_puts_off_but_not_for_ever)
{
	struct libhwt_debounce series = { .quiet_ns = HOUR, .most_ns = HOUR + 50 * MSEC };
	__u64 first, latest;
	int i;

	EXPECT_EQ(0, debounce(&series));
	first = series.first_ns;
	latest = first + series.most_ns;
	EXPECT_TRUE(deadline() >= first + HOUR && deadline() < first + HOUR + 10 * MSEC);
	for (i = 0; i < 6; i++) {
		sleep_ns(20 * MSEC);
		EXPECT_EQ(HWT_STATE_PENDING, debounce(&series));
	}
	EXPECT_EQ(first, series.first_ns);
	EXPECT_TRUE(deadline() >= latest && deadline() < latest + 10 * MSEC);
	/* A new series after a cancel, without a maximum */
	EXPECT_EQ(HWT_STATE_PENDING, libhwt_cancel(hwt, id));
	series.most_ns = HWT_NEVER;
	EXPECT_EQ(0, debounce(&series));
	EXPECT_EQ(HWT_STATE_PENDING, debounce(&series));
}

/* After the maximum delay a call does not withdraw the event. */
TEST_F(recipes, a_series_ends_without_a_pause)
{
	struct libhwt_debounce series = { .quiet_ns = HOUR, .most_ns = 20 * MSEC };
	struct hwt_stats_args stats = { .size = sizeof(stats) };
	struct hwt_event event;

	ASSERT_EQ(0, debounce(&series));
	ASSERT_EQ(POLLIN, hwt_wait(libhwt_fd(hwt), PATIENCE_MS));
	EXPECT_EQ(HWT_STATE_EVENT, debounce(&series));
	ASSERT_EQ(0, libhwt_stats(hwt, &stats));
	EXPECT_EQ(0, stats.modified);
	ASSERT_EQ(1, libhwt_next(hwt, &event, 1, 0));
	EXPECT_EQ(KEY, event.user_data);
	EXPECT_EQ(0, debounce(&series));
}

TEST_HARNESS_MAIN
