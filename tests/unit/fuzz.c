// SPDX-License-Identifier: GPL-2.0-only
/*
 * drive.c with a fuzzer's bytes for choices: the shape first, then the operations.
 * Small wheels only, of which there are many a second; random.c does the rest.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "drive.h"
#include "hwt_wheel.h"

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t size);

void drive_failed(const char *file, int line, const char *what, u64 op)
{
	printf("# %s:%d: not true: %s\n# at operation %" PRIu64
	       "; to see it again: fuzz <the file named below>\n",
	       file, line, what, op);
	fflush(stdout);
	abort();
}

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t size)
{
	struct source source = { .bytes = bytes, .size = size };
	struct drive_shape shape = { .ops = ~0ULL };

	shape.bits = 1 + source_pick(&source, 8);
	shape.levels = 1 + source_pick(&source, HWT_LEVELS_MAX);
	drive(&source, &shape);
	return 0;
}
