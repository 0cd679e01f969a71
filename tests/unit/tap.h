/* SPDX-License-Identifier: GPL-2.0-only */
/* Test points without numbers: run.py, which knows them all, numbers them. */
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

#endif /* _TAP_H */
