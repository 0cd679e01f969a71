/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of the structures of hwt_uapi.h, and what a byte of a program makes of one.
 */
#ifndef FIELDS_H
#define FIELDS_H

#include "fuzz.h"

#define IDS		16
/* Entries of a list that there is room for. */
#define LIST_ROOM	256
#define PAGE		4096UL

/* What earlier calls of the program have given. */
struct known {
	uint64_t	ids[IDS];
	unsigned int	ids_n;
	unsigned int	staged;
	uint64_t	cursor;
};

extern struct known known;

enum field_kind {
	FIELD_SIZE, FIELD_ZERO, FIELD_CONST, FIELD_FLAGS, FIELD_MODE, FIELD_TIME,
	FIELD_SPAN, FIELD_ID, FIELD_DATA, FIELD_CLOCK, FIELD_TICK, FIELD_POWER, FIELD_LEVELS,
	FIELD_COUNT, FIELD_ROOM, FIELD_STAGED, FIELD_ENTRIES, FIELD_CURSOR, FIELD_CPU, FIELD_SMALL,
	FIELD_OPCODE, FIELD_BUFFER,
};

struct field {
	uint8_t			offset;
	uint8_t			bytes;
	enum field_kind		kind;
	uint32_t		value;		/* flags that there are, the constant */
};

enum {
	IOCTL_INFO, IOCTL_SETUP, IOCTL_SCHEDULE, IOCTL_MODIFY, IOCTL_CANCEL, IOCTL_GET,
	IOCTL_LIST, IOCTL_STOP, IOCTL_STATS, IOCTL_BATCH, IOCTL_RINGS, IOCTL_ENTER, IOCTLS,
};

/* The first field is the size; its value is what is right. */
struct ioctl {
	unsigned long		request;
	const struct field	*fields;	/* up to one of 0 bytes */
};

extern const struct ioctl ioctls[IOCTLS];
/* Of an operation of many. */
extern const struct field op_fields[];

uint64_t value_count(uint8_t byte);
/* Fills a structure in, but for addresses: a byte for each field. */
void fields_fill(char *to, const struct field *fields, const uint8_t *bytes);

#endif /* FIELDS_H */
