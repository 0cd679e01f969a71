// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl run: a script of timeouts; hwtctl sleep
 *
 * Lines take precedence over events: the program reads events only while it waits for the
 * next line, in a "wait", and at the end. When the program ends in any way, its context and
 * all timeouts are freed, so it need not handle signals.
 */
#include "hwtctl.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_LENGTH	63
#define LINE_MAX_LENGTH	4096
#define WORDS_MAX	64

/* -- Names --------------------------------------------------------------- */

struct named {
	__u64	id;
	char	name[NAME_MAX_LENGTH + 1];
};

static int compare_names(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int compare_ids(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static struct named *find_name(const struct run *run, const char *name)
{
	struct named key = { };
	struct named **found;

	if (strlen(name) > NAME_MAX_LENGTH)
		return NULL;
	memcpy(key.name, name, strlen(name) + 1);
	found = tfind(&key, &run->by_name, compare_names);
	return found ? *found : NULL;
}

static struct named *find_id(const struct run *run, __u64 id)
{
	struct named key = { .id = id };
	struct named **found = tfind(&key, &run->by_id, compare_ids);

	return found ? *found : NULL;
}

const char *run_name_of(const struct run *run, __u64 id)
{
	const struct named *named = find_id(run, id);

	return named ? named->name : NULL;
}

static const char *name_check(const struct run *run, const char *name)
{
	const char *p;
	__u64 ns;

	if (!isalpha((unsigned char)*name) && *name != '_')
		return "a name begins with a letter or _";
	for (p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_-.:", *p))
			return "a name consists of letters, digits, _ - . :";
	if (p - name > NAME_MAX_LENGTH)
		return "the name is too long";
	/* "wait" gives these words another meaning. */
	if (!strcmp(name, "all") || !strcmp(name, "next") || duration_parse(name, &ns))
		return "this word is reserved";
	if (find_name(run, name))
		return "a timeout with this name exists";
	return NULL;
}

const char *run_set_name(struct run *run, const char *name, __u64 id)
{
	const char *bad = name_check(run, name);
	struct named *named;

	if (bad)
		return bad;
	named = must_alloc(NULL, sizeof(*named));
	named->id = id;
	memcpy(named->name, name, strlen(name) + 1);
	if (!tsearch(named, &run->by_name, compare_names) ||
	    !tsearch(named, &run->by_id, compare_ids))
		fail(ENOMEM, "storing a name");
	return NULL;
}

static void forget(struct run *run, __u64 id)
{
	struct named *named = find_id(run, id);

	if (!named)
		return;
	tdelete(named, &run->by_name, compare_names);
	tdelete(named, &run->by_id, compare_ids);
	free(named);
}

static void forget_all(struct run *run)
{
	/* The first member of a node of tsearch() is the address of its element. */
	while (run->by_id)
		forget(run, (*(struct named **)run->by_id)->id);
}

/* -- Events -------------------------------------------------------------- */

/* Print the name of a timeout, or #id if it has none. */
static void put_who(const struct run *run, __u64 id)
{
	const char *name = run_name_of(run, id);

	if (name)
		printf("%s", name);
	else
		printf("#%llu", id);
}

/* Print "name":"...","id":N, or only the id of a timeout without a name. */
static void put_who_json(const struct run *run, __u64 id)
{
	const char *name = run_name_of(run, id);

	if (name)
		printf("\"name\":\"%s\",", name);
	printf("\"id\":%llu", id);
}

static const char *kind_name(unsigned int kind)
{
	switch (kind) {
	case HWT_EVENT_EXPIRED:
		return "expired";
	case HWT_EVENT_CLOCK_SET:
		return "clock-set";
	}
	return "unknown";
}

static void put_event(const struct run *run, const struct hwt_event *event)
{
	char text[TIME_TEXT];

	if (run->json) {
		printf("{\"event\":\"%s\",", kind_name(event->kind));
		put_who_json(run, event->id);
		printf(",\"data\":%llu", event->user_data);
		json_put_time(stdout, "deadline_ns", event->deadline_ns);
		printf(",\"fired_ns\":%llu,\"overruns\":%llu,\"last\":%s}\n",
		       event->fired_ns, event->overruns,
		       event->flags & HWT_EVENT_LAST ? "true" : "false");
		return;
	}
	put_who(run, event->id);
	printf(" %s", kind_name(event->kind));
	/* hwt promises that this does not happen. */
	if (event->kind == HWT_EVENT_EXPIRED && event->fired_ns < event->deadline_ns)
		printf(", EARLY by %s",
		       duration_format(text, event->deadline_ns - event->fired_ns));
	else if (event->kind == HWT_EVENT_EXPIRED)
		printf(", %s late",
		       duration_format(text, event->fired_ns - event->deadline_ns));
	if (event->overruns)
		printf(", %llu overruns", event->overruns);
	printf("\n");
}

/* Read and print events. Return their number. */
static int run_events(struct run *run)
{
	struct hwt_event events[64];
	ssize_t got;
	int i;

	got = read(run->fd, events, sizeof(events));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got < 0)
		fail(errno, "%s: reading events", device_path);
	got /= sizeof(events[0]);
	for (i = 0; i < got; i++) {
		put_event(run, &events[i]);
		if (run->awaited == events[i].id)
			run->awaited = 0;
		if (events[i].flags & HWT_EVENT_LAST)
			forget(run, events[i].id);
	}
	fflush(stdout);
	return got;
}

/* Wait for events or for @input (-1: none), until @until_ns. Return true if there is input. */
static bool run_poll(const struct run *run, int input, __u64 until_ns)
{
	struct pollfd fds[] = {
		{ .fd = run->fd, .events = POLLIN },
		{ .fd = input, .events = POLLIN },
	};
	struct timespec timeout;
	__u64 now = clock_ns(CLOCK_MONOTONIC), left = until_ns > now ? until_ns - now : 0;

	timeout.tv_sec = left / NSEC_PER_SEC;
	timeout.tv_nsec = left % NSEC_PER_SEC;
	if (ppoll(fds, 2, until_ns == HWT_NEVER ? NULL : &timeout, NULL) < 0) {
		if (errno != EINTR)
			fail(errno, "poll");
		return false;
	}
	return fds[1].revents;
}

static void wait_until(struct run *run, __u64 until_ns)
{
	while (clock_ns(CLOCK_MONOTONIC) < until_ns) {
		run_poll(run, -1, until_ns);
		run_events(run);
	}
}

/* Return true if the context has timeouts, of which events may come. */
static bool anything_left(const struct run *run)
{
	struct hwt_stats_args stats;

	context_stats(run->fd, &stats);
	return stats.timeouts;
}

static void wait_next(struct run *run)
{
	while (anything_left(run) && !run_events(run))
		run_poll(run, -1, HWT_NEVER);
}

static void wait_for(struct run *run, __u64 id)
{
	run->awaited = id;
	while (run->awaited && anything_left(run)) {
		if (!run_events(run))
			run_poll(run, -1, HWT_NEVER);
	}
	run->awaited = 0;
}

void run_rest(struct run *run)
{
	while (anything_left(run)) {
		if (!run_events(run))
			run_poll(run, -1, HWT_NEVER);
	}
}

/* -- Lines --------------------------------------------------------------- */

/* A line of the script that is being carried out */
struct line {
	struct run	*run;
	const char	*path;
	unsigned int	number;
	int		count;
	char		*words[WORDS_MAX];
};

/* Report an error of a line. Return false, which the caller returns. */
static bool __attribute__((format(printf, 3, 4)))
bad_line(const struct line *line, int error, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain(error, "%s:%u: %s", line->path, line->number, text);
	return false;
}

/* Report the error of an ioctl, if there is one. Return true if there is none. */
static bool line_done(const struct line *line, int ret)
{
	return ret ? bad_line(line, ret, "%s %s", line->words[0], line->words[1]) : true;
}

static bool line_name(const struct line *line, __u64 *id)
{
	const struct named *named = find_name(line->run, line->words[1]);

	if (!named) {
		bad_line(line, 0, "%s %s: no timeout has this name", line->words[0],
			 line->words[1]);
		return false;
	}
	*id = named->id;
	return true;
}

/* The arguments that schedule and modify have in common */
struct plan {
	__u64	time_ns;
	__u64	period_ns;
	__u64	slack_ns;
	__u64	data;
	__u64	key;
	bool	keyed;		/* @key is valid */
	__u32	flags;
	__u32	mode;
};

static bool plan_time(const struct line *line, const char *word, struct plan *plan)
{
	if (!date_like(word)) {
		if (!duration_parse(word, &plan->time_ns))
			return bad_line(line, 0, "'%s' is not a time", word);
		return true;
	}
	if (*word != '@' && line->run->clock != CLOCK_REALTIME)
		return bad_line(line, 0, "'%s' is a date, which requires --clock realtime",
				word);
	if (!date_parse(word, &plan->time_ns))
		return bad_line(line, 0, "'%s' is not a date", word);
	plan->flags |= HWT_ARM_ABSOLUTE;
	return true;
}

/* Parse an option such as "every=1s". */
static bool plan_option(const struct line *line, const char *word, bool new,
			struct plan *plan)
{
	const char *value = strchr(word, '='), *wrong;
	const bool keys = line->run->keys;
	size_t length = value ? value - word : 0;
	__u32 mode;

#define IS(name) (length == strlen(name) && !memcmp(word, name, length))
	if (IS("slack")) {
		wrong = duration_wrong(value + 1, 0, HWT_NEVER, &plan->slack_ns);
	} else if (!keys && IS("data")) {
		plan->flags |= new ? 0 : HWT_ARM_USER_DATA;
		wrong = number_wrong(value + 1, 0, ~0ULL, &plan->data);
	} else if (new && keys && IS("key")) {
		plan->keyed = true;
		wrong = number_wrong(value + 1, 1, ~0ULL, &plan->key);
	} else if (new && (IS("every") || IS("pause"))) {
		mode = IS("every") ? HWT_MODE_FIXED_RATE : HWT_MODE_FIXED_DELAY;
		if (plan->mode && plan->mode != mode)
			return bad_line(line, 0, "every excludes pause");
		plan->mode = mode;
		wrong = duration_wrong(value + 1, 1, HWT_NEVER, &plan->period_ns);
	} else if (!new && IS("period")) {
		wrong = duration_wrong(value + 1, 1, HWT_NEVER, &plan->period_ns);
	} else {
		return bad_line(line, 0, "'%s' is not an option of %s%s", word, line->words[0],
				keys ? " with --keys" : "");
	}
#undef IS
	return !wrong || bad_line(line, 0, "%.*s: %s", (int)length, word, wrong);
}

static bool plan_parse(const struct line *line, bool new, struct plan *plan)
{
	int i;

	memset(plan, 0, sizeof(*plan));
	if (!plan_time(line, line->words[2], plan))
		return false;
	for (i = 3; i < line->count; i++)
		if (!plan_option(line, line->words[i], new, plan))
			return false;
	if (plan->mode && plan->slack_ns)
		return bad_line(line, 0, "slack excludes every and pause");
	return true;
}

/* With --verbose, print what was done, and the previous state of the timeout. */
static void put_done(const struct run *run, const char *done, __u64 id, __u32 was)
{
	const char *before = was & HWT_STATE_EVENT ?
			     was & HWT_STATE_PENDING ? "pending, with an event" :
						       "expired" : "pending";

	if (!run->verbose)
		return;
	if (run->json) {
		printf("{\"done\":\"%s\",", done);
		put_who_json(run, id);
		if (was)
			printf(",\"was\":\"%s\"", before);
		printf("}\n");
		return;
	}
	printf("%s ", done);
	put_who(run, id);
	if (was)
		printf(", was %s\n", before);
	else
		printf(", id %llu\n", id);
}

static bool do_schedule(const struct line *line)
{
	struct hwt_schedule_args args = { .size = sizeof(args) };
	const bool keys = line->run->keys;
	const char *name = line->words[1];
	/* With keys, a timeout that exists is moved. */
	const struct named *old = keys ? find_name(line->run, name) : NULL;
	const char *bad = old ? NULL : name_check(line->run, name);
	struct plan plan;
	int ret;

	if (bad)
		return bad_line(line, 0, "'%s': %s", name, bad);
	if (!plan_parse(line, true, &plan))
		return false;
	if (keys && !old && !plan.keyed)
		return bad_line(line, 0, "'%s': a new timeout requires key=N", name);
	if (keys && plan.keyed && find_id(line->run, plan.key) != old)
		return bad_line(line, 0, "'%s': the name and the key belong to different timeouts",
				name);
	args.id = old ? old->id : plan.key;
	args.flags = plan.flags;
	args.mode = plan.mode;
	args.time_ns = plan.time_ns;
	args.period_ns = plan.period_ns;
	args.slack_ns = plan.slack_ns;
	args.user_data = plan.data;
	ret = hwt_call(line->run->fd, HWT_IOC_SCHEDULE, &args);
	if (ret)
		return line_done(line, ret);
	if (!old)
		run_set_name(line->run, name, args.id);
	put_done(line->run, "scheduled", args.id, args.was);
	return true;
}

static bool do_modify(const struct line *line)
{
	struct hwt_modify_args args = { .size = sizeof(args) };
	struct plan plan;
	int ret;

	if (!line_name(line, (void *)&args.id) || !plan_parse(line, false, &plan))
		return false;
	args.flags = plan.flags;
	args.time_ns = plan.time_ns;
	args.period_ns = plan.period_ns;
	args.slack_ns = plan.slack_ns;
	args.user_data = plan.data;
	ret = hwt_call(line->run->fd, HWT_IOC_MODIFY, &args);
	if (ret == -EINVAL)
		return bad_line(line, 0,
				"modify %s: a one-shot has no period, a periodic timeout no slack",
				line->words[1]);
	if (!ret)
		put_done(line->run, "modified", args.id, args.was);
	return line_done(line, ret);
}

static bool do_cancel_all(const struct line *line)
{
	struct hwt_cancel_args args = { .size = sizeof(args), .flags = HWT_CANCEL_ALL };
	int ret = hwt_call(line->run->fd, HWT_IOC_CANCEL, &args);

	if (ret)
		return line_done(line, ret);
	forget_all(line->run);
	if (line->run->verbose && line->run->json)
		printf("{\"done\":\"cancelled\",\"count\":%u}\n", args.count);
	else if (line->run->verbose)
		printf("cancelled %u\n", args.count);
	return true;
}

static bool do_cancel(const struct line *line)
{
	struct hwt_cancel_args args = { .size = sizeof(args) };
	int ret;

	if (!strcmp(line->words[1], "all"))
		return do_cancel_all(line);
	if (!line_name(line, (void *)&args.id))
		return false;
	ret = hwt_call(line->run->fd, HWT_IOC_CANCEL, &args);
	if (!ret)
		put_done(line->run, "cancelled", args.id, args.was);
	/* The timeout does not exist any more, even if the cancel has failed. */
	forget(line->run, args.id);
	return line_done(line, ret);
}

static void put_get(const struct run *run, const struct hwt_get_args *args)
{
	char text[TIME_TEXT];

	if (run->json) {
		printf("{\"get\":true,");
		put_who_json(run, args->id);
		printf(",\"data\":%llu,\"mode\":\"%s\",\"pending\":%s,\"event\":%s",
		       args->user_data, mode_name(args->mode),
		       args->state & HWT_STATE_PENDING ? "true" : "false",
		       args->state & HWT_STATE_EVENT ? "true" : "false");
		json_put_time(stdout, "deadline_ns", args->deadline_ns);
		json_put_time(stdout, "remaining_ns", args->remaining_ns);
		printf(",\"period_ns\":%llu,\"overruns\":%llu}\n", args->period_ns,
		       args->overruns);
		return;
	}
	put_who(run, args->id);
	printf(": %s", mode_name(args->mode));
	if (args->state & HWT_STATE_PENDING)
		printf(", pending, left: %s", duration_format(text, args->remaining_ns));
	if (args->state & HWT_STATE_EVENT)
		printf(", expired");
	if (args->period_ns)
		printf(", period: %s", duration_format(text, args->period_ns));
	if (args->overruns)
		printf(", overruns: %llu", args->overruns);
	printf("\n");
}

static bool do_get(const struct line *line)
{
	struct hwt_get_args args = { .size = sizeof(args) };
	int ret;

	if (!line_name(line, (void *)&args.id))
		return false;
	ret = hwt_call(line->run->fd, HWT_IOC_GET, &args);
	if (!ret)
		put_get(line->run, &args);
	return line_done(line, ret);
}

static bool do_wait(const struct line *line)
{
	const char *word = line->words[1];
	__u64 until, id;

	if (!strcmp(word, "all")) {
		run_rest(line->run);
	} else if (!strcmp(word, "next")) {
		wait_next(line->run);
	} else if (duration_parse(word, &until)) {
		if (__builtin_add_overflow(until, clock_ns(CLOCK_MONOTONIC), &until))
			until = HWT_NEVER;
		wait_until(line->run, until);
	} else {
		if (!line_name(line, &id))
			return false;
		wait_for(line->run, id);
	}
	return true;
}

/* Read no events for a while, like a program that is busy with something else. */
static bool do_idle(const struct line *line)
{
	struct timespec left;
	__u64 ns;
	const char *wrong = duration_wrong(line->words[1], 0, HWT_NEVER - 1, &ns);

	if (wrong)
		return bad_line(line, 0, "%s", wrong);
	left.tv_sec = ns / NSEC_PER_SEC;
	left.tv_nsec = ns % NSEC_PER_SEC;
	while (nanosleep(&left, &left) && errno == EINTR)
		;
	return true;
}

static bool do_list(const struct line *line)
{
	list_print(line->run->fd, line->run, line->run->json);
	return true;
}

static bool do_stats(const struct line *line)
{
	stats_print_one(line->run->fd, line->run->json);
	return true;
}

static bool do_save(const struct line *line)
{
	const char *path = line->count > 1 ? line->words[1] : NULL;
	int ret = save_write(line->run->fd, line->run, path);

	/* Positive: the error is that of a file, not of /dev/hwt. */
	return ret ? bad_line(line, -ret, "%s", path ? path : "save") : true;
}

static bool do_echo(const struct line *line)
{
	int i;

	printf(line->run->json ? "{\"echo\":[" : "");
	for (i = 1; i < line->count; i++) {
		if (line->run->json) {
			printf(i > 1 ? "," : "");
			json_put_string(stdout, line->words[i]);
		} else {
			printf("%s%s", i > 1 ? " " : "", line->words[i]);
		}
	}
	printf(line->run->json ? "]}\n" : "\n");
	return true;
}

static const struct {
	const char *name;
	bool (*carry_out)(const struct line *line);
	int min, max;		/* number of words, the command included */
} line_commands[] = {
	{ "schedule", do_schedule, 3, WORDS_MAX },
	{ "modify", do_modify, 3, WORDS_MAX },
	{ "cancel", do_cancel, 2, 2 },
	{ "get", do_get, 2, 2 },
	{ "wait", do_wait, 2, 2 },
	{ "idle", do_idle, 2, 2 },
	{ "list", do_list, 1, 1 },
	{ "stats", do_stats, 1, 1 },
	{ "save", do_save, 1, 2 },
	{ "echo", do_echo, 1, WORDS_MAX },
};

static bool run_line(struct run *run, const char *path, unsigned int number, char *text)
{
	struct line line = { .run = run, .path = path, .number = number };
	char *word, *rest;
	unsigned int i;

	for (word = strtok_r(text, " \t\r", &rest); word && *word != '#';
	     word = strtok_r(NULL, " \t\r", &rest)) {
		if (line.count == WORDS_MAX)
			return bad_line(&line, 0, "more than %d words", WORDS_MAX);
		line.words[line.count++] = word;
	}
	if (!line.count)
		return true;
	for (i = 0; i < ARRAY_SIZE(line_commands); i++) {
		if (strcmp(line_commands[i].name, line.words[0]) != 0)
			continue;
		if (line.count < line_commands[i].min || line.count > line_commands[i].max)
			return bad_line(&line, 0, "too %s words for '%s'",
					line.count < line_commands[i].min ? "few" : "many",
					line.words[0]);
		return line_commands[i].carry_out(&line);
	}
	return bad_line(&line, 0, "unknown command '%s'", line.words[0]);
}

/* -- Scripts ------------------------------------------------------------- */

struct input {
	const char	*path;
	int		fd;
	bool		end;
	size_t		length;		/* bytes in @text */
	char		text[LINE_MAX_LENGTH + 1];
};

/* Read once from the input, and print events until there is input. */
static void input_fill(struct run *run, struct input *input)
{
	ssize_t got;

	while (!run_poll(run, input->fd, HWT_NEVER))
		run_events(run);
	got = read(input->fd, input->text + input->length,
		   LINE_MAX_LENGTH - input->length);
	if (got < 0 && errno != EINTR)
		fail(errno, "%s", input->path);
	if (got > 0)
		input->length += got;
	input->end = !got;
}

/* Copy the next line to @line. Return false at the end of the input. */
static bool input_line(struct run *run, struct input *input, char *line)
{
	char *end;

	for (;;) {
		end = memchr(input->text, '\n', input->length);
		if (end || input->end)
			break;
		if (input->length == LINE_MAX_LENGTH)
			fail(0, "%s: a line has more than %d bytes", input->path,
			     LINE_MAX_LENGTH);
		input_fill(run, input);
	}
	/* The last line may lack its newline. */
	if (!end) {
		if (!input->length)
			return false;
		end = input->text + input->length++;
	}
	*end = 0;
	if (strlen(input->text) != (size_t)(end - input->text))
		fail(0, "%s: this is not a text file", input->path);
	memcpy(line, input->text, end + 1 - input->text);
	input->length -= end + 1 - input->text;
	memmove(input->text, end + 1, input->length);
	return true;
}

bool run_script(struct run *run, const char *path)
{
	struct input input = { .path = "standard input", .fd = STDIN_FILENO };
	char line[LINE_MAX_LENGTH + 1];
	unsigned int number = 0;
	bool good = true;

	if (strcmp(path, "-") != 0) {
		input.path = path;
		input.fd = open(path, O_RDONLY | O_CLOEXEC);
		if (input.fd < 0)
			fail(errno, "%s", path);
	}
	/* A user at a terminal may try again. */
	run->keep_going |= isatty(input.fd);
	while (input_line(run, &input, line)) {
		if (!run_line(run, input.path, ++number, line)) {
			good = false;
			if (!run->keep_going)
				break;
		}
		fflush(stdout);
	}
	if (input.fd != STDIN_FILENO)
		close(input.fd);
	return good;
}

void run_begin(struct run *run, const struct setup *setup)
{
	struct hwt_info_args info;

	run->fd = context_open(O_NONBLOCK, setup);
	context_info(run->fd, &info);
	run->clock = info.clock;
	run->keys = info.keys;
}

int cmd_run(int argc, char **argv)
{
	enum { NO_WAIT = 256, KEYS };
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "keep-going", no_argument, NULL, 'k' },
		{ "no-wait", no_argument, NULL, NO_WAIT },
		{ "keys", no_argument, NULL, KEYS },
		{ "help", no_argument, NULL, 'h' },
		OPTION_CLOCK, OPTION_TICK, OPTION_THREAD, { }
	};
	struct setup setup = { };
	struct run run = { };
	bool wait = true, good;
	const char *path;
	int option;

	while ((option = next_option(argc, argv, "jvkh", options)) != -1) {
		switch (option) {
		case 'j':
			run.json = true;
			break;
		case 'v':
			run.verbose = true;
			break;
		case 'k':
			run.keep_going = true;
			break;
		case NO_WAIT:
			wait = false;
			break;
		case KEYS:
			setup.args.flags |= HWT_SETUP_KEYS;
			setup.wanted = true;
			break;
		default:
			setup_option(option, &setup);
		}
	}
	path = last_operand(argc, argv);
	run_begin(&run, &setup);
	good = run_script(&run, path ? path : "-");
	if (wait && (good || run.keep_going))
		run_rest(&run);
	return good ? DONE : FAILED;
}

/* -- sleep --------------------------------------------------------------- */

int cmd_sleep(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct hwt_schedule_args args = { .size = sizeof(args) };
	struct hwt_event event;
	ssize_t got;
	__u64 ns;
	int fd, ret;

	while (next_option(argc, argv, "h", options) != -1)
		;
	if (optind == argc)
		usage_error("a duration is missing");
	for (; optind < argc; optind++) {
		if (!duration_parse(argv[optind], &ns))
			usage_error("'%s' is not a duration", argv[optind]);
		if (__builtin_add_overflow(args.time_ns, ns, &args.time_ns))
			args.time_ns = HWT_NEVER;
	}
	fd = context_open(0, NULL);
	ret = hwt_call(fd, HWT_IOC_SCHEDULE, &args);
	if (ret)
		fail(ret, "%s: scheduling", device_path);
	do {
		got = read(fd, &event, sizeof(event));
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		fail(errno, "%s: reading events", device_path);
	close(fd);
	return DONE;
}
