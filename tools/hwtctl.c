// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl - the command line of /dev/hwt: table of commands, options, messages
 */
#include "hwtctl.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *device_path = DEVICE;

/* -- Commands ------------------------------------------------------------ */

static int cmd_help(int argc, char **argv);

static const struct command {
	const char	*name;
	int		(*run)(int argc, char **argv);
	const char	*what;
	const char	*operands;
	const char	*help;
} commands[] = {
	{ "info", cmd_info, "describe the device: clock, tick, limits, features", "",
	  "  -j, --json           print one JSON object\n"
	  "  -p, --pid PID        describe the context of this process\n"
	  "  -f, --fd N           choose its descriptor N, if it has several contexts\n"
	  "      --clock CLOCK    describe one on this clock: monotonic, boottime or realtime\n"
	  "      --tick DURATION  describe one with this tick\n"
	  "      --thread         describe one with a kernel thread\n" },
	{ "stats", cmd_stats, "show parameters, threads, contexts and wheels", "",
	  "  -j, --json           print JSON objects, one on each line\n"
	  "  -p, --pid PID        show the context of this process only\n"
	  "  -f, --fd N           choose its descriptor N, if it has several contexts\n"
	  "      --wheels         show only the wheels (needs root and debugfs)\n" },
	{ "top", cmd_top, "watch wheels and contexts at work, and how late callbacks are", "",
	  "  -i, --interval DURATION  time between two screens (1s)\n"
	  "  -n, --count N        stop after N screens\n"
	  "  -j, --json           print JSON objects, one on each line\n"
	  "  -p, --pid PID        show the context of this process only\n"
	  "  -f, --fd N           choose its descriptor N, if it has several contexts\n"
	  "\nWheels and the lateness of callbacks need root and debugfs.\n" },
	{ "run", cmd_run, "carry out a script of timeouts, and print their events",
	  "[FILE]",
	  "  -j, --json           print JSON objects, one on each line\n"
	  "  -v, --verbose        print the results of schedule, modify and cancel\n"
	  "  -k, --keep-going     continue after a line that fails\n"
	  "      --no-wait        exit after the last line, do not wait for timeouts\n"
	  "      --keys           the ids are keys, which the script chooses\n"
	  "      --clock CLOCK    the clock: monotonic, boottime or realtime\n"
	  "      --tick DURATION  the length of a tick\n"
	  "      --thread         have a kernel thread drive the timeouts\n"
	  "\nFILE is a script; '-' or no FILE is standard input. Its lines:\n"
	  "  schedule NAME TIME [every=PERIOD|pause=PERIOD] [slack=DURATION] [data=N] [key=N]\n"
	  "  modify NAME TIME [period=PERIOD] [slack=DURATION] [data=N]\n"
	  "  cancel NAME          cancel all\n"
	  "  get NAME\n"
	  "  wait DURATION        wait NAME (for its next event)\n"
	  "  wait next            wait all\n"
	  "  idle DURATION        (reads no events meanwhile)\n"
	  "  list                 stats\n"
	  "  save [FILE]          stop\n"
	  "  echo WORDS\n"
	  "  # begins a comment\n"
	  "DURATION and PERIOD: 1.5s, 300ms, 1h30m (units: ns us ms s m h d), or 'never'.\n"
	  "TIME: a DURATION from now, '@SECONDS' of the clock, or, with --clock realtime,\n"
	  "2030-12-31T23:59:59[Z]. There, a set of the clock shortens or prolongs durations.\n" },
	{ "sleep", cmd_sleep, "sleep for a duration", "DURATION...",
	  "\nDurations are added up; a number without a unit is in seconds.\n" },
	{ "list", cmd_list, "list the timeouts of a context", "[SCRIPT]",
	  "  -j, --json           print JSON objects, one on each line\n"
	  "  -p, --pid PID        list the context of this process\n"
	  "  -f, --fd N           choose its descriptor N, if it has several contexts\n"
	  "      --clock CLOCK    clock for SCRIPT, as for run\n"
	  "      --tick DURATION  tick for SCRIPT, as for run\n"
	  "      --thread         a thread for SCRIPT, as for run\n"
	  "\nSCRIPT ('-': standard input) is run in a new context, which is then listed.\n" },
	{ "save", cmd_save, "write the timeouts of a context to a file", "[SCRIPT]",
	  "  -o, --output FILE    write to FILE instead of standard output\n"
	  "  -p, --pid PID        save the context of this process\n"
	  "  -f, --fd N           choose its descriptor N, if it has several contexts\n"
	  "      --clock CLOCK    clock for SCRIPT, as for run\n"
	  "      --tick DURATION  tick for SCRIPT, as for run\n"
	  "      --thread         a thread for SCRIPT, as for run\n"
	  "\nSCRIPT ('-': standard input) is run in a new context, which is then saved.\n" },
	{ "restore", cmd_restore, "create saved timeouts again", "[FILE]",
	  "  -j, --json           print JSON objects, one on each line\n"
	  "  -p, --pid PID        restore into the context of this process\n"
	  "  -f, --fd N           choose its descriptor N, if it has several contexts\n"
	  "\nFILE was written by save; '-' or no FILE is standard input. Without --pid, use a\n"
	  "new context, and print its events as run does.\n" },
	{ "help", cmd_help, "print help on a command, or the list of commands", "[COMMAND]", "" },
};

static const struct command *command;

static void put_help(void)
{
	unsigned int i;

	printf("Usage: hwtctl [--device PATH] COMMAND [OPTION]... [OPERAND]\n"
	       "Timeouts of /dev/hwt from the command line.\n\nCommands:\n");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-8s  %s\n", commands[i].name, commands[i].what);
	printf("\nOptions:\n"
	       "  -d, --device PATH  the device (/dev/hwt)\n"
	       "  -h, --help         print this help; after COMMAND, help on COMMAND\n"
	       "  -V, --version      print the version\n\n"
	       "Exit status: 0 success, 1 failure, 2 usage error.\n"
	       "See hwtctl(1) for more.\n");
}

static void put_command_help(void)
{
	printf("Usage: hwtctl %s [OPTION]...%s%s\n"
	       "%c%s.\n\n"
	       "  -h, --help           print this help\n%s",
	       command->name, *command->operands ? " " : "", command->operands,
	       command->what[0] - 'a' + 'A', command->what + 1, command->help);
}

/* -- Messages ------------------------------------------------------------ */

/* What to do about errors of /dev/hwt, which message() gets as negative numbers */
static const struct {
	int		error;
	const char	*text;
} advice[] = {
	{ ENOSPC, "a limit is reached; 'hwtctl info' shows the limits" },
	{ ENOTTY, "this is not a device of hwt" },
};

static void message(int error, const char *format, va_list args)
{
	char text[PATH_MAX + 256], shown[4 * sizeof(text)];
	unsigned int i;

	/* Keep the order of the two streams, which may go to the same file. */
	fflush(stdout);
	vsnprintf(text, sizeof(text), format, args);
	fprintf(stderr, "hwtctl: %s", name_escape(shown, sizeof(shown), text));
	if (error)
		fprintf(stderr, ": %s", strerror(abs(error)));
	for (i = 0; i < ARRAY_SIZE(advice); i++)
		if (advice[i].error == -error)
			fprintf(stderr, ": %s", advice[i].text);
	fprintf(stderr, "\n");
}

void complain(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	message(error, format, args);
	va_end(args);
}

void fail(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	message(error, format, args);
	va_end(args);
	exit(FAILED);
}

static void __attribute__((noreturn)) try_help(void)
{
	fprintf(stderr, "Try 'hwtctl %s%s--help'.\n", command ? command->name : "",
		command ? " " : "");
	exit(USAGE);
}

void usage_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	message(0, format, args);
	va_end(args);
	try_help();
}

/* Return true if headings are bold. An empty NO_COLOR does not count (https://no-color.org). */
static bool in_bold(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
	       !(term && !strcmp(term, "dumb"));
}

void put_heading(const char *format, ...)
{
	bool bold = in_bold();
	va_list args;

	va_start(args, format);
	printf("%s", bold ? "\033[1m" : "");
	vprintf(format, args);
	printf("%s", bold ? "\033[0m" : "");
	va_end(args);
}

void *must_alloc(void *memory, size_t size)
{
	memory = realloc(memory, size);
	if (!memory)
		fail(ENOMEM, "allocating %zu bytes", size);
	return memory;
}

/* -- Options ------------------------------------------------------------- */

/* Return the exit code: @code, or FAILED if the output could not be written. */
static int finish(int code)
{
	if (fflush(stdout) || ferror(stdout)) {
		complain(errno, "standard output");
		return FAILED;
	}
	return code;
}

int next_option(int argc, char **argv, const char *letters, const struct option *options)
{
	int option = getopt_long(argc, argv, letters, options, NULL);

	switch (option) {
	case 'h':
		put_command_help();
		exit(finish(DONE));
	case '?':
		try_help();
	}
	return option;
}

__u64 option_number(const char *name, __u64 min, __u64 max)
{
	__u64 number;
	const char *wrong = number_wrong(optarg, min, max, &number);

	if (wrong)
		usage_error("--%s: %s", name, wrong);
	return number;
}

__u64 option_duration(const char *name, __u64 min, __u64 max)
{
	__u64 ns;
	const char *wrong = duration_wrong(optarg, min, max, &ns);

	if (wrong)
		usage_error("--%s: %s", name, wrong);
	return ns;
}

const char *last_operand(int argc, char **argv)
{
	if (optind + 1 < argc)
		usage_error("unexpected operand '%s'", argv[optind + 1]);
	return optind < argc ? argv[optind] : NULL;
}

void no_operand(int argc, char **argv)
{
	if (optind < argc)
		usage_error("unexpected operand '%s'", argv[optind]);
}

static const struct command *command_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	usage_error("unknown command '%s'", name);
}

static int cmd_help(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	const char *name;

	while (next_option(argc, argv, "h", options) != -1)
		;
	name = last_operand(argc, argv);
	if (name) {
		command = command_find(name);
		put_command_help();
	} else {
		put_help();
	}
	return DONE;
}

static const struct option global_options[] = {
	{ "device", required_argument, NULL, 'd' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ }
};

int main(int argc, char **argv)
{
	char name[] = "hwtctl";
	int option;

	/* Messages of getopt_long() begin with argv[0]. */
	argv[0] = name;
	while ((option = getopt_long(argc, argv, "+d:hV", global_options, NULL)) != -1) {
		switch (option) {
		case 'd':
			device_path = optarg;
			break;
		case 'h':
			put_help();
			return finish(DONE);
		case 'V':
			printf("hwtctl %s\n", HWTCTL_VERSION);
			return finish(DONE);
		default:
			try_help();
		}
	}
	if (optind == argc)
		usage_error("a command is missing");
	command = command_find(argv[optind]);
	argc -= optind;
	argv += optind;
	argv[0] = name;
	/* Reset getopt_long() for the arguments of the command. */
	optind = 0;
	return finish(command->run(argc, argv));
}
