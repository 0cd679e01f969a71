// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random runs of drive.c over wheels of all shapes: random [options]
 *
 *   -o N  operations in all (default 1000000)
 *   -r N  runs of each shape (default 4); there are 96 of them
 *   -s N  seed
 *   -b N  only wheels with so many bits
 *   -l N  only wheels with so many levels
 *
 * With -b, -l and -r 1, the seed is that of the one run: what a failure prints.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/kernel.h>

#include "drive.h"
#include "hwt_wheel.h"
#include "tap.h"

static struct drive_shape shape;
static u64 seed;

void drive_failed(const char *file, int line, const char *what, u64 op)
{
	printf("# %s:%d: not true: %s\n", file, line, what);
	printf("# at operation %" PRIu64 "; to see it again: random -b %u -l %u -r 1 -s %"
	       PRIu64 " -o %" PRIu64 "\n", op, shape.bits, shape.levels, seed, op + 1);
	tap_point(false, "random operations on all shapes");
	exit(1);
}

static u64 mix(u64 base, unsigned int bits, unsigned int levels, unsigned int run)
{
	struct source source = { .state = base + bits + (levels << 8) + (run << 16) };

	return source_pick(&source, 1ULL << 48);
}

int main(int argc, char **argv)
{
	u64 ops = 1000000, runs = 4, base = 1, bits = 0, levels = 0;
	u64 *const values[] = { &ops, &runs, &base, &bits, &levels };
	static const char names[] = "orsbl";
	unsigned int b, l, r, shapes, all = 0;
	const char *name;
	int option;

	while ((option = getopt(argc, argv, "o:r:s:b:l:")) != -1) {
		name = strchr(names, option);
		if (!name)
			return 2;
		*values[name - names] = strtoull(optarg, NULL, 0);
	}
	if (bits > HWT_BITS_MAX || levels > HWT_LEVELS_MAX || !runs)
		return 2;

	shapes = (bits ? 1 : HWT_BITS_MAX) * (levels ? 1 : HWT_LEVELS_MAX) * runs;
	shape.ops = DIV_ROUND_UP(ops, shapes);
	for (b = 1; b <= HWT_BITS_MAX; b++) {
		if (bits && b != bits)
			continue;
		for (l = 1; l <= HWT_LEVELS_MAX; l++) {
			for (r = 0; r < runs && (!levels || l == levels); r++) {
				struct source source = { 0 };

				shape.bits = b;
				shape.levels = l;
				seed = shapes == 1 ? base : mix(base, b, l, r);
				source.state = seed;
				drive(&source, &shape);
				all++;
			}
		}
		tap_point(true, "wheels of %u bits: %u runs of %" PRIu64 " operations",
			  b, shapes / (bits ? 1 : HWT_BITS_MAX), shape.ops);
	}
	printf("# %u runs, %" PRIu64 " operations\n", all, all * shape.ops);
	return 0;
}
