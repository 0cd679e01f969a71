/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sub-tests of test modules that are counted one by one.
 *
 * On top of kselftest_module.h, whose summary only says how many assertions
 * there were: prints "ok N - text" and "not ok N - text" for the harness (see
 * tests/README.md). Only for __init functions, after KSTM_MODULE_GLOBALS().
 */
#ifndef _HWT_KTEST_H
#define _HWT_KTEST_H

#include "kselftest_module.h"

/* One sub-test: passed if @cond. */
#define KTEST(cond, fmt, ...) do {					\
	bool __passed = !!(cond);					\
									\
	total_tests++;							\
	if (!__passed)							\
		failed_tests++;						\
	pr_info("%sok %u - " fmt "\n", __passed ? "" : "not ",		\
		total_tests + skipped_tests, ##__VA_ARGS__);		\
} while (0)

/* One sub-test that cannot run here. */
#define KTEST_SKIP(fmt, ...) do {					\
	skipped_tests++;						\
	pr_info("ok %u - # SKIP " fmt "\n",				\
		total_tests + skipped_tests, ##__VA_ARGS__);		\
} while (0)

#endif /* _HWT_KTEST_H */
