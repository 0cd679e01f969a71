/* SPDX-License-Identifier: GPL-2.0-only */
/* Test points without numbers, which run.py adds. */
#ifndef _TAP_H
#define _TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include <linux/compiler.h>

static inline __printf(2, 3) void tap_point(bool passed, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("%sok - %s", passed ? "" : "not ", sizeof(long) == 4 ? "32 bit: " : "");
	vprintf(format, args);
	printf("\n");
	fflush(stdout);
	va_end(args);
}

/* Fail the test that runs, unless the condition is true. */
#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			printf("# %s:%d: not true: %s\n", __FILE__,	\
			       __LINE__, #condition);			\
			tap_passed = false;				\
		}							\
	} while (0)

static bool tap_passed __maybe_unused;

/* A test: a function that is called once, or with 1, 2, ... up to the @last of tap_run(). */
struct tap_test {
	const char *name;
	void (*once)(void);
	void (*for_each)(unsigned int n);
};

/* Run tests, up to one without a name. Return the exit code of the program. */
static inline int tap_run(const struct tap_test *test, unsigned int last)
{
	int failed = 0;
	unsigned int n;

	for (; test->name; test++) {
		tap_passed = true;
		if (test->once)
			test->once();
		for (n = 1; test->for_each && n <= last && tap_passed; n++)
			test->for_each(n);
		if (!tap_passed && test->for_each)
			printf("# with %u\n", n - 1);
		tap_point(tap_passed, "%s", test->name);
		failed |= !tap_passed;
	}
	return failed;
}

#endif /* _TAP_H */
