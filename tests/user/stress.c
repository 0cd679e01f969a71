// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that schedule, modify, cancel and read at random, all on the same contexts: each timeout
 * fires once and never early, or is cancelled. The check itself notices foreign events.
 *
 * hwt-test: check stock
 * hwt-test: timeout 150
 * hwt-test: load max_timeouts=500 max_user_timeouts=1000000
 */
#include "kselftest_harness.h"
#include <sys/resource.h>

#include "guest.h"
#include "load.h"

static void stress(struct __test_metadata *_metadata, struct load *load)
{
	const struct load_result *result = &load->result;

	ASSERT_TRUE(load_open(load));
	load_run(load, quick() ? SEC : 3 * SEC);
	TH_LOG("scheduled %llu, fired %llu, cancelled %llu, refused %llu", result->scheduled,
	       result->fired, result->cancelled, result->refused);
	EXPECT_EQ(0, result->wrong);
	EXPECT_NE(0, result->fired);
	EXPECT_EQ(result->scheduled, result->fired + result->cancelled);
}

TEST(all_operations)
{
	struct load load = { .threads = 4, .contexts = 4, .timeouts = 400 };
	int i;

	stress(_metadata, &load);
	for (i = 0; i < LOAD_OPERATIONS; i++)
		EXPECT_NE(0, load.result.done[i]);
	EXPECT_NE(0, load.result.cancelled);
	EXPECT_EQ(0, load.result.refused);
}

TEST(many_contexts)
{
	struct load load = { .threads = 4, .contexts = 1500, .timeouts = 5 };
	struct rlimit limit = { 2000, 2000 };

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	stress(_metadata, &load);
}

TEST(beyond_the_limit)
{
	struct load load = { .threads = 2, .contexts = 1, .timeouts = 20000 };

	stress(_metadata, &load);
	EXPECT_NE(0, load.result.refused);
}

TEST(strangers_are_noticed)
{
	struct load load = { .threads = 2, .contexts = 1, .timeouts = 400 };

	ASSERT_TRUE(load_open(&load));
	ASSERT_EQ(0, hwt_add(load.context[0].fd, 0, 0, 3, NULL));
	ASSERT_EQ(0, hwt_add(load.context[0].fd, 0, 0, UINT32_MAX, NULL));
	load_run(&load, SEC);
	/* Two events, and the statistics. */
	EXPECT_EQ(3, load.result.wrong);
}

TEST_HARNESS_MAIN
