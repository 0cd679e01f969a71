/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A coverage-guided fuzzer for /dev/hwt. It runs in the guest, as root.
 *
 *   calls.c    the system calls of programs
 *   fields.c   values for the fields of structures
 *   run.c      executes a program, on two threads and in children
 *   program.c  programs as text; random programs, mutations
 *   cover.c    the edges of hwt.ko that a program reaches (KCOV)
 *   main.c     the corpus, and the loop
 *
 * A program is a sequence of calls with bytes as arguments. Each call interprets its bytes, but
 * with 0 it always does what a well-behaved program would do.
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
 * @rare:   bitmap of the bytes that are 0 most of the time
 */
struct kind {
	const char	*name;
	unsigned int	weight;
	unsigned int	args;
	unsigned int	rare;
};

/* run.c uses the numbers of these two. */
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

/* Results of earlier calls of the program. */
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
	uint32_t		value;		/* the valid flags; the constant */
};

enum {
	IOCTL_INFO, IOCTL_SETUP, IOCTL_SCHEDULE, IOCTL_MODIFY, IOCTL_CANCEL, IOCTL_GET,
	IOCTL_LIST, IOCTL_STATS, IOCTL_RINGS, IOCTL_ENTER, IOCTLS,
};

/* The first field is the size; its value is the correct size. */
struct ioctl {
	unsigned long		request;
	const struct field	*fields;	/* ends with a field of 0 bytes */
};

extern const struct ioctl ioctls[IOCTLS];
extern const struct field op_fields[];

uint64_t value_count(uint8_t byte);
/* Fill in a structure, except addresses, by a byte for each field. */
void fields_fill(char *to, const struct field *fields, const uint8_t *bytes);

/* -- run.c --------------------------------------------------------------- */

void run_init(void);
void run_program(const struct program *program);
/* Send the calling thread a signal every @us microseconds; 0: no more. */
void run_alarm(unsigned int us);
/*
 * Make the @nth allocation or user copy of the calling thread's next call fail, if the kernel can
 * inject faults; 0: none. Calls that a signal ends do not fail.
 */
void run_fail(unsigned int nth);
/* Call @fn. Return false if @fn accessed memory that is not mapped. */
bool run_guarded(void (*fn)(void *arg), void *arg);
/* Return whether no other thread or child executes the same program. */
bool run_alone(void);
void die(const char *what) __attribute__((__noreturn__));

/* -- program.c ----------------------------------------------------------- */

struct random {
	uint64_t	state;
};

uint32_t random_below(struct random *random, uint32_t n);
/* Return a random kind of call, by the weights. */
unsigned int random_kind(struct random *random);
/* Print a program to @text, which has room for TEXT_MAX. Return the length. */
size_t program_print(const struct program *program, char *text);
/* Parse a line of text. Return false if it is no program. */
bool program_parse(struct program *program, const char *text);
void program_random(struct program *program, struct random *random);
/* Change a program at random; it may get a part of @other. */
void program_mutate(struct program *program, const struct program *other,
		    struct random *random);
void program_remove(struct program *program, unsigned int at, unsigned int n);

/* -- cover.c ------------------------------------------------------------- */

#define THREADS		2
#define EDGES		65536
#define FEATURES_MAX	EDGES

/* Return false if there is no KCOV; then no edges are reported. */
bool cover_init(void);
/* Enable KCOV for the calling thread; @thread is 0 or 1. */
void cover_thread(unsigned int thread);
void cover_none(void);
void cover_call_begin(void);
void cover_call_end(void);
/* List the features reached since the last call. No thread may be executing a program. */
unsigned int cover_take(uint32_t *features);

#endif /* FUZZ_H */
