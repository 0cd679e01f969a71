/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of hwtctl share
 */
#ifndef HWTCTL_H
#define HWTCTL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "hwt_uapi.h"

/* As libhwt's, VERSION in lib/Makefile. What the device knows has a number of its own. */
#define HWTCTL_VERSION	"1.0.0"

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

extern const char *device_path;

/* "hwtctl: ...", with ": strerror" if @error (an errno, of either sign) is not 0. */
void complain(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, and the end of the program. */
void fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));
void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* As getopt_long(), but takes care of --help and of what is wrong. Return: -1 at the end. */
int next_option(int argc, char **argv, const char *letters, const struct option *options);
/* For options --NAME whose argument is a number, or a duration. */
__u64 option_number(const char *name, __u64 min, __u64 max);
__u64 option_duration(const char *name);
/* The operand that may follow the options, or NULL. More than one is wrong. */
const char *last_operand(int argc, char **argv);

/* A heading: bold on a terminal, unless NO_COLOR is set. */
void put_heading(const char *format, ...) __attribute__((format(printf, 1, 2)));

void *must_alloc(void *memory, size_t size);

int cmd_info(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_sleep(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_save(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_stress(int argc, char **argv);
int cmd_bench(int argc, char **argv);

/* -- times.c ------------------------------------------------------------- */

#define TIME_TEXT	32

/*
 * NUMBER[UNIT], or several NUMBERUNIT in a row; no unit: seconds; "infinity" and
 * "never": HWT_NEVER. A fraction of a nanosecond counts as a whole one.
 */
bool duration_parse(const char *text, __u64 *ns);
/* @SECONDS[.FRACTION], or YYYY-MM-DDTHH:MM[:SS[.FRACTION]][Z] (no Z: local time). */
bool date_parse(const char *text, __u64 *ns);
bool date_like(const char *text);
bool number_parse(const char *text, __u64 max, __u64 *number);

/* In the unit that fits best. Both return @buffer, of TIME_TEXT bytes. */
char *duration_format(char *buffer, __u64 ns);
char *date_format(char *buffer, __u64 ns);

__u64 clock_ns(clockid_t clock);

/* -- json.c -------------------------------------------------------------- */

/*
 * Escape what is not printable ASCII, as hwtctl(1) says. A name that does not fit is cut off
 * before a character, never within an escape. Return: @buffer.
 */
char *name_escape(char *buffer, size_t size, const char *name);

void json_put_string(FILE *to, const char *string);
/* A time, which may be HWT_NEVER: null */
void json_put_time(FILE *to, const char *key, __u64 ns);

/* -- context.c: descriptors of /dev/hwt ---------------------------------- */

/* Of which process, and which descriptor; from the options --pid and --fd */
struct target {
	pid_t	pid;		/* 0: none was asked for */
	int	fd;		/* -1: the only one it has */
};

/* The options that make a private wheel. */
struct wheel_options {
	bool			wanted;
	bool			keys;	/* its ids are keys */
	int			clock;
	struct hwt_setup_args	args;
};

/* What is known of a context beyond HWT_IOC_INFO, from /proc/PID/fdinfo or debugfs. */
struct context_fdinfo {
	bool	hwt;		/* it is one */
	bool	private;
	int	clock;
	__u64	number;		/* of its directory in debugfs; 0: it has none */
	__u64	tick_ns;
	__u64	timeouts;
	__u64	events;
};

/* Return: 0 or a negative errno. */
int hwt_call(int fd, unsigned long request, void *args);

/* These end the program if it cannot be. */
int context_open(int flags, const struct wheel_options *wheel);
int target_open(const struct target *target);
void context_info(int fd, struct hwt_info_args *info);
void context_stats(int fd, struct hwt_stats_args *stats);

/* A copy of another process's descriptor. Return: it, or a negative errno. */
int descriptor_get(pid_t pid, int fd);
/*
 * The descriptors of /dev/hwt that a process has, in @fds, which the caller frees in any case.
 * Return: how many, or a negative errno.
 */
int descriptors_find(pid_t pid, dev_t device, int **fds);
bool fdinfo_read(pid_t pid, int fd, struct context_fdinfo *info);
/* Note a value of fdinfo, without "hwt-", or of debugfs. */
void fdinfo_note(struct context_fdinfo *info, const char *key, long long value);
/* End the program: @what of the process cannot be looked at. */
void process_fail(int error, pid_t pid, const char *what) __attribute__((noreturn));
/* The device's number; ends the program if there is no device. */
dev_t device_number(void);

/* All timeouts, by deadline, those that never fire last. The caller frees them. */
struct hwt_list_entry *context_list(int fd, size_t *count);

const char *clock_name(int clock);
bool clock_parse(const char *name, int *clock);
const char *mode_name(unsigned int mode);

/* Options that several commands have; true if @option was one of them. */
#define OPTION_PID	{ "pid", required_argument, NULL, 'p' }
#define OPTION_FD	{ "fd", required_argument, NULL, 'f' }
#define OPTION_CLOCK	{ "clock", required_argument, NULL, 'C' }
#define OPTION_TICK	{ "tick", required_argument, NULL, 'T' }
bool target_option(int option, struct target *target);
bool wheel_option(int option, struct wheel_options *wheel);
/* To be asked after the options. Return: another process's it is. */
bool target_given(const struct target *target);

/* -- run.c --------------------------------------------------------------- */

/* A context of this program's, with names for its timeouts */
struct run {
	int	fd;
	int	clock;
	bool	json;
	bool	verbose;
	bool	keep_going;
	bool	ended;		/* the end of the file was read */
	__u64	awaited;	/* id of which an event is waited for; 0: it came, or none is */
	void	*by_name;
	void	*by_id;
};

void run_begin(struct run *run, const struct wheel_options *wheel);
/* Carry out the lines of a file ("-": standard input). Return: none has failed. */
bool run_script(struct run *run, const char *path);
/* Print events until there are no timeouts any more. */
void run_rest(struct run *run);
/* Return: NULL, or why the timeout cannot be called so. */
const char *run_set_name(struct run *run, const char *name, __u64 id);
/* Return: NULL if it has none. */
const char *run_name_of(const struct run *run, __u64 id);

/* -- save.c -------------------------------------------------------------- */

void list_print(int fd, const struct run *run, bool json);
/* @path NULL: standard output. Return: 0 or a negative errno. */
int save_write(int fd, const struct run *run, const char *path);

/* -- stats.c ------------------------------------------------------------- */

void stats_print_one(int fd, bool json);
/* A parameter of the module. Return: it could be read. */
bool parameter_read(const char *name, char *value, int room);

/* -- wheels.c ------------------------------------------------------------ */

void wheels_print(bool json);

#endif /* HWTCTL_H */
