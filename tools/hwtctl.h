/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations that the files of hwtctl share
 */
#ifndef HWTCTL_H
#define HWTCTL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "hwt_uapi.h"

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

/* Exit codes */
#define DONE	0
#define FAILED	1
#define USAGE	2

/* -- hwtctl.c: messages and options -------------------------------------- */

#define DEVICE	"/dev/hwt"

extern const char *device_path;

/* Print "hwtctl: ...", followed by ": strerror" if @error (an errno of either sign) is not 0. */
void complain(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Do the same, and end the program. */
void fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));
void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* As getopt_long(), but handles --help and invalid options itself, and ends the program then. */
int next_option(int argc, char **argv, const char *letters, const struct option *options);
/* Return the argument of an option --NAME that takes a number, or a duration, of a range. */
__u64 option_number(const char *name, __u64 min, __u64 max);
__u64 option_duration(const char *name, __u64 min, __u64 max);
/* Return the operand after the options, or NULL. A second one is a usage error. */
const char *last_operand(int argc, char **argv);
/* Any operand is a usage error. */
void no_operand(int argc, char **argv);

/* Print a heading: bold on a terminal, unless NO_COLOR is set. */
void put_heading(const char *format, ...) __attribute__((format(printf, 1, 2)));

void *must_alloc(void *memory, size_t size);

int cmd_info(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_sleep(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_save(int argc, char **argv);
int cmd_restore(int argc, char **argv);

/* -- times.c ------------------------------------------------------------- */

#define TIME_TEXT	32

/*
 * Parse NUMBER[UNIT], or several NUMBERUNIT in a row. Without a unit it is seconds; "infinity",
 * "inf" and "never" are HWT_NEVER. A fraction of a nanosecond counts as a whole one.
 */
bool duration_parse(const char *text, __u64 *ns);
/* Parse @SECONDS[.FRACTION], or YYYY-MM-DDTHH:MM[:SS[.FRACTION]][Z] (no Z: local time). */
bool date_parse(const char *text, __u64 *ns);
bool date_like(const char *text);
bool number_parse(const char *text, __u64 max, __u64 *number);

#define WRONG_TEXT	256

/*
 * Parse a duration or a number from @min to @max. Return NULL, or why @text is none, with the
 * range; the next call overwrites that.
 */
const char *duration_wrong(const char *text, __u64 min, __u64 max, __u64 *ns);
const char *number_wrong(const char *text, __u64 min, __u64 max, __u64 *number);

/* Format a duration, in the unit that fits best, or a date. Return @buffer, of TIME_TEXT bytes. */
char *duration_format(char *buffer, __u64 ns);
char *date_format(char *buffer, __u64 ns);

__u64 clock_ns(clockid_t clock);

/* -- json.c -------------------------------------------------------------- */

/*
 * Escape all characters but printable ASCII, as hwtctl(1) says. A name that does not fit is cut
 * off before a character, never within an escape. Return @buffer.
 */
char *name_escape(char *buffer, size_t size, const char *name);

void json_put_string(FILE *to, const char *string);
/* Write a field that is a time; HWT_NEVER is written as null. */
void json_put_time(FILE *to, const char *key, __u64 ns);

/* -- context.c: descriptors of /dev/hwt ---------------------------------- */

/* The process and the descriptor that the options --pid and --fd choose */
struct target {
	pid_t	pid;		/* 0: none was asked for */
	int	fd;		/* -1: the only descriptor that it has */
};

/* The set-up of a new context */
struct setup {
	bool			wanted;	/* the context is set up by @args */
	bool			saved;	/* @args are those of a save, not of options */
	struct hwt_setup_args	args;
};

/* Facts about a context from /proc/PID/fdinfo or debugfs. */
struct context_fdinfo {
	bool	hwt;		/* it is a context */
	bool	thread;		/* a kernel thread drives its timeouts */
	bool	rings;		/* its rings have been mapped */
	int	clock;
	__u64	number;		/* unique */
	__u64	tick_ns;
	__u64	timeouts;
	__u64	events;
};

/* Return: 0 or a negative errno. */
int hwt_call(int fd, unsigned long request, void *args);

/* These end the program if they fail. */
int context_open(int flags, const struct setup *setup);
int target_open(const struct target *target);
void context_info(int fd, struct hwt_info_args *info);
void context_stats(int fd, struct hwt_stats_args *stats);

/* Return a copy of another process's descriptor, or a negative errno. */
int descriptor_get(pid_t pid, int fd);
/*
 * Store the descriptors of /dev/hwt that a process has in @fds, which the caller frees in any case.
 * Return their number, or a negative errno.
 */
int descriptors_find(pid_t pid, dev_t device, int **fds);
bool fdinfo_read(pid_t pid, int fd, struct context_fdinfo *info);
/* Store a value of fdinfo, whose key begins with "hwt-" there, or of debugfs. */
void fdinfo_note(struct context_fdinfo *info, const char *key, long long value);
/* End the program because of an error with a process. The message begins with @what. */
void process_fail(int error, pid_t pid, const char *what) __attribute__((noreturn));
/* Return the device's number; end the program if there is no device. */
dev_t device_number(void);

/* Return all timeouts, by deadline, those that never fire last. The caller frees the array. */
struct hwt_list_entry *context_list(int fd, size_t *count);

const char *clock_name(int clock);
bool clock_parse(const char *name, int *clock);
/* Set the clock of a new context. */
void setup_clock(struct setup *setup, int clock);
const char *mode_name(unsigned int mode);

/* Options that several commands have. The functions return true if @option is one of theirs. */
#define OPTION_PID	{ "pid", required_argument, NULL, 'p' }
#define OPTION_FD	{ "fd", required_argument, NULL, 'f' }
#define OPTION_CLOCK	{ "clock", required_argument, NULL, 'C' }
#define OPTION_TICK	{ "tick", required_argument, NULL, 'T' }
#define OPTION_THREAD	{ "thread", no_argument, NULL, 'H' }
bool target_option(int option, struct target *target);
bool setup_option(int option, struct setup *setup);
/* Call this after all options. Return true if the context of another process was chosen. */
bool target_given(const struct target *target);

/* -- run.c --------------------------------------------------------------- */

/* A context of this program, with names for its timeouts */
struct run {
	int	fd;
	int	clock;
	bool	json;
	bool	verbose;
	bool	keep_going;
	bool	keys;		/* the ids are keys */
	__u64	awaited;	/* id of the timeout whose event is awaited; 0: none, or it came */
	void	*by_name;
	void	*by_id;
};

void run_begin(struct run *run, const struct setup *setup);
/* Carry out the lines of a file ("-": standard input). Return true if none has failed. */
bool run_script(struct run *run, const char *path);
/* Print events until there are no timeouts any more. */
void run_rest(struct run *run);
/* Name a timeout. Return NULL, or the reason why it cannot have this name. */
const char *run_set_name(struct run *run, const char *name, __u64 id);
/* Return the name of a timeout, or NULL if it has none. */
const char *run_name_of(const struct run *run, __u64 id);

/* -- save.c -------------------------------------------------------------- */

void list_print(int fd, const struct run *run, bool json);
/*
 * Save a context to @path (NULL: standard output), as hwtctl(1) describes for each kind of file.
 * Return 0 or a negative errno.
 */
int save_write(int fd, const struct run *run, const char *path);

/* -- stats.c ------------------------------------------------------------- */

struct context {
	pid_t			pid;
	int			fd;		/* -1: no descriptor was found */
	char			name[16];
	struct context_fdinfo	info;		/* not @hwt: only a mapping is known */
	bool			known;		/* @stats are valid */
	struct hwt_stats_args	stats;
	__u64			taken_ns;	/* time at which @stats were taken */
};

/* A kernel thread of the module */
struct thread {
	pid_t	pid;
	char	name[16];
	__u64	cpu_ns;
};

/* All contexts and threads at one moment */
struct sample {
	struct context	*contexts;
	struct thread	*threads;
	unsigned int	contexts_count;
	unsigned int	threads_count;
};

/* The contexts to look at, and how to print them */
struct view {
	struct target	target;
	dev_t		device;
	bool		json;
};

void sample_take(struct view *view, struct sample *sample);
void sample_free(struct sample *sample);
/* Return the same context in the previous sample, or NULL. */
const struct context *context_before(const struct sample *old, const struct context *context);
/* Print an object, with rates since @before unless that is NULL. */
void context_put_json(const struct context *context, const struct context *before);
void thread_put_json(const struct thread *thread);
void stats_print_one(int fd, bool json);
/* Return the rate of a counter that grew from @before to @now within @ns; 0 if it went back. */
double per_second(__u64 now, __u64 before, __u64 ns);
/* Print a number with at most five characters, right-aligned in eight columns. */
void put_short(double value);

/* -- wheels.c ------------------------------------------------------------ */

enum wheel_counter {
	WHEEL_PENDING,
	WHEEL_SCHEDULED,
	WHEEL_EXPIRED,
	WHEEL_LATE,
	WHEEL_BEHIND,
	WHEEL_OVERRUNS,
	WHEEL_REJECTED,
	WHEEL_WAKEUPS,
	WHEEL_CLOCK_SETS,
	WHEEL_REARMED,
	WHEEL_COUNTERS,
};

#define LATENESS_MAX	64

/* A wheel, and its counters at one moment */
struct wheel {
	char	name[NAME_MAX + 1];	/* of its directory */
	__u64	taken_ns;
	__u64	counters[WHEEL_COUNTERS];
	__u64	slowest_ns;
	__u64	lateness[LATENESS_MAX];	/* [n]: callbacks that were late by less than 2^n ns */
};

void wheels_print(bool json);
/*
 * Store the wheels and their counters in @wheels, which the caller frees. Return their number; -1
 * if debugfs cannot be read, for the reason @why.
 */
int wheels_take(struct wheel **wheels, const char **why);
/* Print an object, with rates since @before unless that is NULL. */
void wheel_put_json(const struct wheel *wheel, const struct wheel *before);

#endif /* HWTCTL_H */
