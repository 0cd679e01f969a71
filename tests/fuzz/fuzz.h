/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A coverage-guided fuzzer for /dev/hwt. It runs in the guest, as root.
 *
 *   calls.c    what a program is made of: system calls
 *   fields.c   values for the fields of structures
 *   run.c      carries a program out, on two threads and in children
 *   program.c  programs as text; making and changing them
 *   cover.c    which edges of hwt.ko a program has reached (KCOV)
 *   main.c     the corpus, and the loop
 *
 * A program is a sequence of calls, each with some bytes as arguments. What a byte means is
 * up to the call, but 0 is always what a well-behaved program would do.
 */
#ifndef FUZZ_H
#define FUZZ_H

/* Included first, for _GNU_SOURCE. */
#include "hwt_dev.h"
#include "guest.h"

#include <stddef.h>

#define COUNT(_array)	(sizeof(_array) / sizeof(*(_array)))

#define CALLS_MAX	30
#define ARGS_MAX	14
#define TEXT_MAX	(CALLS_MAX * (16 + 2 * ARGS_MAX))

struct call {
	uint8_t		kind;
	uint8_t		args[ARGS_MAX];
};

struct program {
	unsigned int	n;
	struct call	calls[CALLS_MAX];
};

/* -- calls.c ------------------------------------------------------------- */

/**
 * struct kind - a kind of call
 * @name:   its name in the text of a program
 * @weight: how often it is chosen, against the others
 * @args:   how many bytes of arguments it has
 * @rare:   bitmap: of these, those that are seldom not 0
 */
struct kind {
	const char	*name;
	unsigned int	weight;
	unsigned int	args;
	unsigned int	rare;
};

/* The numbers of these two are known to run.c. */
enum { KIND_FORK, KIND_THREAD };

unsigned int kinds_count(void);
const struct kind *kind_get(unsigned int kind);
void calls_init(void);
void calls_begin(void);
void calls_end(void);
void call_run(const struct call *call);
const char *calls_broken(void);

/* -- fields.c ------------------------------------------------------------ */

#define IDS		16
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
	FIELD_SPAN, FIELD_ID, FIELD_DATA, FIELD_TICK, FIELD_POWER, FIELD_LEVELS,
	FIELD_COUNT, FIELD_ROOM, FIELD_ENTRIES, FIELD_CURSOR, FIELD_CPU, FIELD_SMALL, FIELD_OPCODE,
	FIELD_BUFFER,
};

struct field {
	uint8_t			offset;
	uint8_t			bytes;
	enum field_kind		kind;
	uint32_t		value;		/* flags that there are, the constant */
};

enum {
	IOCTL_INFO, IOCTL_SETUP, IOCTL_SCHEDULE, IOCTL_MODIFY, IOCTL_CANCEL, IOCTL_GET,
	IOCTL_LIST, IOCTL_STOP, IOCTL_STATS, IOCTL_RINGS, IOCTL_ENTER, IOCTLS,
};

/* The first field is the size; its value is what is right. */
struct ioctl {
	unsigned long		request;
	const struct field	*fields;	/* up to one of 0 bytes */
};

extern const struct ioctl ioctls[IOCTLS];
extern const struct field op_fields[];

uint64_t value_count(uint8_t byte);
/* Fills a structure in, but for addresses: a byte for each field. */
void fields_fill(char *to, const struct field *fields, const uint8_t *bytes);

/* -- run.c --------------------------------------------------------------- */

void run_init(void);
void run_program(const struct program *program);
/* A signal comes soon, and again and again, until it is set to 0. For the calling thread. */
void run_alarm(unsigned int us);
/*
 * The @nth allocation or user copy that the calling thread's next call comes to fails, if the
 * kernel can do that; 0: none. Not in calls that have a signal end them.
 */
void run_fail(unsigned int nth);
/* Calls @fn; returns false if that has touched memory that is not there. */
bool run_guarded(void (*fn)(void *arg), void *arg);
/* Nobody else is at work on the same program. */
bool run_alone(void);
void die(const char *what) __attribute__((__noreturn__));

/* -- program.c ----------------------------------------------------------- */

struct random {
	uint64_t	state;
};

uint32_t random_below(struct random *random, uint32_t n);
/* A kind of call, by the weights. */
unsigned int random_kind(struct random *random);
/* Returns the length; @text has room for TEXT_MAX. */
size_t program_print(const struct program *program, char *text);
/* Up to the end of the line. Returns false if it is none. */
bool program_parse(struct program *program, const char *text);
void program_random(struct program *program, struct random *random);
/* @other: a part of it may be taken. */
void program_mutate(struct program *program, const struct program *other,
		    struct random *random);
void program_remove(struct program *program, unsigned int at, unsigned int n);

/* -- cover.c ------------------------------------------------------------- */

#define THREADS		2
#define EDGES		65536
#define FEATURES_MAX	EDGES

/* Returns false if there is no KCOV: all goes on, but blindly. */
bool cover_init(void);
/* Each thread for itself: @thread is 0 or 1. */
void cover_thread(unsigned int thread);
void cover_none(void);
void cover_call_begin(void);
void cover_call_end(void);
/* What was reached since the last time, in a list of features, without a thread at work. */
unsigned int cover_take(uint32_t *features);

#endif /* FUZZ_H */
