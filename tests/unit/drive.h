/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wheel against the simplest possible model: an array of timeouts that is
 * scanned at every step. What to do next is drawn from a source of numbers, which is
 * a generator (random.c) or a fuzzer's bytes (fuzz.c).
 */
#ifndef _DRIVE_H
#define _DRIVE_H

#include <linux/types.h>

#define DRIVE_ITEMS_MAX	200

/* Where choices come from. */
struct source {
	u64		state;		/* of the generator */
	const u8	*bytes;		/* if set, numbers come from these */
	size_t		size;		/* of them that are left */
};

/* Of the wheel, and the operations to do; a fuzzer's bytes may be used up before. */
struct drive_shape {
	unsigned int	bits, levels;
	u64		ops;
};

/* Called when wheel and model disagree; must not return. */
void drive_failed(const char *file, int line, const char *what, u64 op);

u64 source_pick(struct source *source, u64 n);
void drive(struct source *source, const struct drive_shape *shape);

#endif /* _DRIVE_H */
