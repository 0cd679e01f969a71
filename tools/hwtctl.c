// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl - the command line of /dev/hwt: which command it is, options, messages
 */
#include "hwtctl.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *device_path = "/dev/hwt";

/* -- What it can do ------------------------------------------------------ */

static const struct command {
	const char	*name;
	int		(*run)(int argc, char **argv);
	const char	*what;
	const char	*operands;
	const char	*help;
} commands[] = {
	{ "info", cmd_info, "what the device is and can do", "",
	  "  -j, --json           as one JSON object\n"
	  "  -p, --pid PID        of the context that this process has\n"
	  "  -f, --fd N           ... as descriptor N, if it has several\n"
	  "      --clock CLOCK    of a private wheel: monotonic, boottime or realtime\n"
	  "      --tick DURATION  of a private wheel with this tick\n" },
	{ "stats", cmd_stats, "parameters, threads, contexts and what they do",
	  "[SECONDS]",
	  "  -j, --json           as JSON objects, one a line\n"
	  "  -p, --pid PID        only of the context that this process has\n"
	  "  -f, --fd N           ... as descriptor N, if it has several\n"
	  "  -w, --watch          again and again, every SECONDS (1), with rates\n"
	  "  -n, --count N        end after so many times\n"
	  "      --wheels         what the wheels tell in debugfs\n" },
	{ "run", cmd_run, "carry out a script of timeouts, print their events",
	  "[FILE]",
	  "  -j, --json           print JSON objects, one a line\n"
	  "  -v, --verbose        print what schedule, modify and cancel did, too\n"
	  "  -k, --keep-going     go on after a line that fails\n"
	  "      --no-wait        do not wait for what is left at the end\n"
	  "      --clock CLOCK    on monotonic (default), boottime or realtime\n"
	  "      --tick DURATION  on a private wheel with this tick\n"
	  "\nFILE is a script, '-' or none standard input. Its lines:\n"
	  "  schedule NAME TIME [every=PERIOD|pause=PERIOD] [slack=TIME] [data=N]\n"
	  "  modify NAME TIME [period=PERIOD] [slack=TIME] [data=N]\n"
	  "  cancel NAME          get NAME\n"
	  "  wait DURATION        wait NAME (for its next event)\n"
	  "  wait next            wait all\n"
	  "  idle DURATION        (reads no events meanwhile)\n"
	  "  list                 stats\n"
	  "  save [FILE]          stop\n"
	  "  echo WORDS\n"
	  "  # and what follows is a comment\n"
	  "TIME is a duration (1.5s, 300ms, 1h30m; ns us ms s m h d), '@SECONDS' of the\n"
	  "clock, 'never', or, with --clock realtime, 2030-12-31T23:59:59[Z].\n" },
	{ "sleep", cmd_sleep, "sleep so long", "DURATION...",
	  "\nDurations are added up; without a unit they are seconds.\n" },
	{ "list", cmd_list, "timeouts of a context", "[SCRIPT]",
	  "  -j, --json           as JSON objects, one a line\n"
	  "  -p, --pid PID        of the context that this process has\n"
	  "  -f, --fd N           ... as descriptor N, if it has several\n"
	  "      --clock CLOCK    for SCRIPT, as of run\n"
	  "      --tick DURATION  for SCRIPT, as of run\n"
	  "\nWith SCRIPT ('-': standard input), of a new context after that has been run.\n" },
	{ "save", cmd_save, "write down the timeouts of a context", "[SCRIPT]",
	  "  -o, --output FILE    to this file, not to standard output\n"
	  "  -p, --pid PID        of the context that this process has\n"
	  "  -f, --fd N           ... as descriptor N, if it has several\n"
	  "      --clock CLOCK    for SCRIPT, as of run\n"
	  "      --tick DURATION  for SCRIPT, as of run\n"
	  "\nWith SCRIPT ('-': standard input), of a new context after that has been run.\n" },
	{ "restore", cmd_restore, "make saved timeouts again", "[FILE]",
	  "  -j, --json           print JSON objects, one a line\n"
	  "  -p, --pid PID        in the context that this process has, and end\n"
	  "  -f, --fd N           ... as descriptor N, if it has several\n"
	  "\nFILE is what save wrote, '-' or none standard input. Without --pid they are made\n"
	  "in a new context, and their events are printed, as by run.\n" },
	{ "stress", cmd_stress, "many threads at it; is every promise kept?", "",
	  "  -s, --seconds N      for so long (10)\n"
	  "  -t, --threads N      so many threads (one per CPU)\n"
	  "  -c, --contexts N     so many open files, which all threads use (4)\n"
	  "  -n, --timeouts N     timeouts at a time, of each of them (10000)\n"
	  "  -m, --mix S:M:C:R    of schedule, modify, cancel, read (40:30:20:10)\n"
	  "      --seed N         for the same random numbers again\n"
	  "  -j, --json           the result as one JSON object\n"
	  "  -q, --quiet          no progress\n" },
	{ "bench", cmd_bench, "what it costs, against timerfd", "",
	  "  -n, --timeouts N     with so many (10000)\n"
	  "  -r, --repetitions N  the median of so many (5)\n"
	  "      --only LIST      of ioctl,rings,timerfd\n"
	  "  -j, --json           as JSON objects, one a line\n" },
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
	       "  -h, --help         this; after COMMAND: more about it\n"
	       "  -V, --version      which version it is\n\n"
	       "Exit status: 0 it is done, 1 it failed, 2 it was called in a wrong way.\n"
	       "More in hwtctl(1).\n");
}

static void put_command_help(void)
{
	printf("Usage: hwtctl %s [OPTION]...%s%s\n"
	       "%c%s.\n\n"
	       "  -h, --help           this\n%s",
	       command->name, *command->operands ? " " : "", command->operands,
	       command->what[0] - 'a' + 'A', command->what + 1, command->help);
}

/* -- Messages ------------------------------------------------------------ */

/* Errors of /dev/hwt, which are negative, and what to do about them */
static const struct {
	int		error;
	const char	*text;
} advice[] = {
	{ ENOSPC, "a limit is reached, see 'hwtctl info'" },
	{ ENOTTY, "this is not hwt's device" },
	{ ESHUTDOWN, "the context was stopped for good, open another" },
};

static void message(int error, const char *format, va_list args)
{
	char text[PATH_MAX + 256], shown[4 * sizeof(text)];
	unsigned int i;

	/* In order, if both go to one place. */
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

void *must_alloc(void *memory, size_t size)
{
	memory = realloc(memory, size);
	if (!memory)
		fail(ENOMEM, "%zu bytes", size);
	return memory;
}

/* -- Options ------------------------------------------------------------- */

/* What was printed must have got there. */
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

	if (!number_parse(optarg, max, &number) || number < min)
		usage_error("--%s: '%s' is no number from %llu to %llu", name, optarg, min,
			    max);
	return number;
}

__u64 option_duration(const char *name)
{
	__u64 ns;

	if (!duration_parse(optarg, &ns))
		usage_error("--%s: '%s' is no duration", name, optarg);
	return ns;
}

const char *last_operand(int argc, char **argv)
{
	if (optind + 1 < argc)
		usage_error("'%s' is too much", argv[optind + 1]);
	return optind < argc ? argv[optind] : NULL;
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
	unsigned int i;
	int option;

	/* getopt's messages begin with it. */
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
		usage_error("which command?");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[optind], commands[i].name))
			command = &commands[i];
	if (!command)
		usage_error("'%s' is no command", argv[optind]);
	argc -= optind;
	argv += optind;
	argv[0] = name;
	/* Begin anew. */
	optind = 0;
	return finish(command->run(argc, argv));
}
