/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The header of every test module: hwt.h, hwt_ktest_util.h, and sub-tests.
 *
 * The summary of kselftest_module.h only counts the assertions. KTEST() also prints a line
 * "ok N - text" or "not ok N - text" for the harness (see tests/README.md). For __init functions
 * only.
 */
#ifndef _HWT_KTEST_H
#define _HWT_KTEST_H

#include "hwt.h"
#include "hwt_ktest_util.h"
#include "kselftest_module.h"

KSTM_MODULE_GLOBALS();
MODULE_DESCRIPTION("hwt: a test of hwt.h");
MODULE_LICENSE("GPL");

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

/* One skipped sub-test, with the reason. */
#define KTEST_SKIP(fmt, ...) do {					\
	skipped_tests++;						\
	pr_info("ok %u - # SKIP " fmt "\n",				\
		total_tests + skipped_tests, ##__VA_ARGS__);		\
} while (0)

#endif /* _HWT_KTEST_H */
