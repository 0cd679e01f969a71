// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl top: wheels, contexts, and the lateness of callbacks, again and again
 *
 * The screen needs no more of a terminal than to go home and to clear the rest: no library. Without
 * a terminal, each screen is a paragraph with all rows.
 */
#include "hwtctl.h"
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define INTERVAL_MIN_NS	(10 * NSEC_PER_MSEC)

/* Rows of the screen that are no rows of the three tables, without and with the histogram */
#define ROWS_FIXED	8
#define ROWS_HISTOGRAM	3
/* A smaller screen has no histogram; one that is still smaller scrolls. */
#define ROWS_DRAWN	16
#define ROWS_MIN	12
#define COLUMNS		79

/* What is shown, at one moment */
struct moment {
	struct sample	sample;
	struct wheel	*wheels;
	int		wheels_count;	/* -1: unknown */
	const char	*why;		/* the reason for that */
	__u64		taken_ns;
};

static struct view view = { .target.fd = -1 };
static volatile sig_atomic_t over;

static void moment_take(struct moment *moment)
{
	moment->taken_ns = clock_ns(CLOCK_MONOTONIC);
	moment->wheels = NULL;
	moment->wheels_count = 0;
	if (!view.target.pid)
		moment->wheels_count = wheels_take(&moment->wheels, &moment->why);
	sample_take(&view, &moment->sample);
}

static void moment_free(struct moment *moment)
{
	free(moment->wheels);
	sample_free(&moment->sample);
}

static const struct wheel *wheel_before(const struct moment *old, const struct wheel *wheel)
{
	int i;

	for (i = 0; i < old->wheels_count; i++)
		if (!strcmp(old->wheels[i].name, wheel->name))
			return &old->wheels[i];
	return NULL;
}

/* Return the part of a CPU that the threads have used since @old, in percent. */
static double threads_percent(const struct moment *now, const struct moment *old)
{
	const struct sample *sample = &now->sample, *before = &old->sample;
	__u64 used = 0;
	unsigned int i, j;

	for (i = 0; i < sample->threads_count; i++)
		for (j = 0; j < before->threads_count; j++)
			if (sample->threads[i].pid == before->threads[j].pid &&
			    sample->threads[i].cpu_ns > before->threads[j].cpu_ns)
				used += sample->threads[i].cpu_ns - before->threads[j].cpu_ns;
	return 100.0 * used / (now->taken_ns - old->taken_ns);
}

/* -- Wheels -------------------------------------------------------------- */

static int wheel_by_pending(const void *a, const void *b)
{
	const struct wheel *x = a, *y = b;

	if (x->counters[WHEEL_PENDING] == y->counters[WHEEL_PENDING])
		return strverscmp(x->name, y->name);
	return x->counters[WHEEL_PENDING] < y->counters[WHEEL_PENDING] ? 1 : -1;
}

/* Print the two lines of a heading: a left-aligned word, and six right-aligned columns. */
static void put_headings(const char *const (*words)[7])
{
	unsigned int line, i;

	for (line = 0; line < 2; line++) {
		put_heading("%-17s", words[line][0]);
		for (i = 1; i < 7; i++)
			put_heading(i < 6 ? "%10s" : "%12s", words[line][i]);
		printf("\n");
	}
}

static void put_column(double value)
{
	printf("  ");
	put_short(value);
}

/* Print the rate of a sum of counters; a dash if there was no such wheel or context before. */
static void put_rate(bool known, __u64 now, __u64 before, __u64 ns)
{
	if (known)
		put_column(per_second(now, before, ns));
	else
		printf("%10s", "-");
}

static void put_wheel(const struct wheel *wheel, const struct wheel *before)
{
	static const struct wheel none;
	const struct wheel *old = before ?: &none;
	const __u64 *a = wheel->counters, *b = old->counters;
	__u64 ns = wheel->taken_ns - old->taken_ns;
	char text[18], slowest[TIME_TEXT];

	printf("%-17s", name_escape(text, sizeof(text), wheel->name));
	put_column(a[WHEEL_PENDING]);
	put_rate(before, a[WHEEL_SCHEDULED] + a[WHEEL_REARMED],
		 b[WHEEL_SCHEDULED] + b[WHEEL_REARMED], ns);
	put_rate(before, a[WHEEL_EXPIRED], b[WHEEL_EXPIRED], ns);
	put_rate(before, a[WHEEL_LATE], b[WHEEL_LATE], ns);
	put_rate(before, a[WHEEL_BEHIND], b[WHEEL_BEHIND], ns);
	printf(" %11s\n", duration_format(slowest, wheel->slowest_ns));
}

static void put_more(unsigned int count)
{
	if (count)
		printf("... and %u more\n", count);
}

/* Print the wheels in @room lines. */
static void put_wheels(const struct moment *now, const struct moment *old, int room)
{
	static const char *const words[2][7] = {
		{ "", "TIMEOUTS", "SCHEDULES", "CALLBACKS", "LATE", "BEHIND", "SLOWEST" },
		{ "WHEEL", "PENDING", "A SECOND", "A SECOND", "A SECOND", "A SECOND", "CALLBACK" },
	};
	int count = now->wheels_count, shown = count > room ? room - 1 : count, i;

	put_headings(words);
	if (count < 0)
		printf("%s\n", now->why);
	if (shown < count)
		qsort(now->wheels, count, sizeof(*now->wheels), wheel_by_pending);
	for (i = 0; i < shown; i++)
		put_wheel(&now->wheels[i], wheel_before(old, &now->wheels[i]));
	put_more(count > shown ? count - shown : 0);
	printf("\n");
}

/* -- Contexts ------------------------------------------------------------ */

static int context_by_timeouts(const void *a, const void *b)
{
	const struct context *x = a, *y = b;

	if (x->info.timeouts != y->info.timeouts)
		return x->info.timeouts < y->info.timeouts ? 1 : -1;
	return x->pid != y->pid ? x->pid - y->pid : x->fd - y->fd;
}

static void put_context(const struct context *context, const struct context *before)
{
	static const struct context none;
	const struct context *old = before ?: &none;
	const struct hwt_stats_args *a = &context->stats, *b = &old->stats;
	__u64 ns = context->taken_ns - old->taken_ns;
	char name[11];

	printf("%6d %-10s", (int)context->pid, name_escape(name, sizeof(name), context->name));
	if (context->info.hwt) {
		put_column(context->info.timeouts);
		put_column(context->info.events);
	} else {
		printf("%10s%10s", "?", "?");
	}
	if (!context->known) {
		printf("%10s%10s%10s%12s\n", "?", "?", "?", "?");
		return;
	}
	put_rate(before, a->scheduled + a->modified, b->scheduled + b->modified, ns);
	put_rate(before, a->expired, b->expired, ns);
	put_rate(before, a->overruns, b->overruns, ns);
	printf("  ");
	put_rate(before, a->rejected, b->rejected, ns);
	printf("\n");
}

static void put_contexts(const struct moment *now, const struct moment *old, unsigned int room)
{
	static const char *const words[2][7] = {
		{ "", "TIMEOUTS", "EVENTS", "SCHEDULES", "FIRINGS", "OVERRUNS", "REFUSALS" },
		{ "PROCESS", "NOW", "UNREAD", "A SECOND", "A SECOND", "A SECOND", "A SECOND" },
	};
	const struct sample *sample = &now->sample;
	unsigned int count = sample->contexts_count, shown = count > room ? room - 1 : count, i;

	put_headings(words);
	if (!count)
		printf("no process has %s open\n", device_path);
	else
		qsort(sample->contexts, count, sizeof(*sample->contexts), context_by_timeouts);
	for (i = 0; i < shown; i++)
		put_context(&sample->contexts[i],
			    context_before(&old->sample, &sample->contexts[i]));
	put_more(count - shown);
}

/* -- The histogram ------------------------------------------------------- */

struct histogram {
	unsigned int	begin, end;	/* the buckets that have callbacks */
	__u64		most;
	__u64		callbacks[LATENESS_MAX];
	double		rate[LATENESS_MAX];
};

/* Add up the histograms of all wheels. */
static void histogram_fill(struct histogram *sum, const struct moment *now,
			   const struct moment *old)
{
	const struct wheel *wheel, *before;
	unsigned int n;
	int i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < now->wheels_count; i++) {
		wheel = &now->wheels[i];
		before = wheel_before(old, wheel);
		for (n = 0; n < LATENESS_MAX; n++) {
			sum->callbacks[n] += wheel->lateness[n];
			if (before)
				sum->rate[n] += per_second(wheel->lateness[n], before->lateness[n],
							   wheel->taken_ns - before->taken_ns);
		}
	}
	for (n = LATENESS_MAX; n-- > 0; ) {
		if (!sum->callbacks[n])
			continue;
		sum->begin = n;
		sum->end = sum->end ?: n + 1;
		if (sum->callbacks[n] > sum->most)
			sum->most = sum->callbacks[n];
	}
}

/* Add the first rows to the next one, until there are @room at most. */
static void histogram_shrink(struct histogram *sum, unsigned int room)
{
	for (; sum->end - sum->begin > room; sum->begin++) {
		sum->callbacks[sum->begin + 1] += sum->callbacks[sum->begin];
		sum->rate[sum->begin + 1] += sum->rate[sum->begin];
		if (sum->callbacks[sum->begin + 1] > sum->most)
			sum->most = sum->callbacks[sum->begin + 1];
	}
}

static void put_histogram(const struct histogram *sum, int width)
{
	char late[TIME_TEXT];
	unsigned int n;
	__u64 mark;

	width = width < 50 ? 8 : width - 42;
	printf("\n");
	put_heading("%-18s%10s%10s", "LATENESS", "CALLBACKS", "A SECOND");
	printf("\n");
	for (n = sum->begin; n < sum->end; n++) {
		printf("below %-12s", duration_format(late, 1ULL << n));
		put_column(sum->callbacks[n]);
		put_column(sum->rate[n]);
		printf("  ");
		/* Rounded up: a row that has callbacks has a bar. */
		for (mark = 0; mark * sum->most < sum->callbacks[n] * width; mark++)
			putchar('#');
		printf("\n");
	}
	printf("late: by 2 ticks or more; behind: by more than 512 ticks\n");
}

/* -- The screen ---------------------------------------------------------- */

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Print a moment on @rows rows of @width columns; 0 rows: as many as needed. */
static void put_screen(const struct moment *now, const struct moment *old, unsigned int rows,
		       unsigned int width)
{
	unsigned int wheels = now->wheels_count < 0 ? 1 : now->wheels_count;
	unsigned int contexts = now->sample.contexts_count ?: 1, bars, room = UINT_MAX;
	bool drawn = !view.target.pid && now->wheels_count >= 0 && (!rows || rows >= ROWS_DRAWN);
	struct histogram sum;

	histogram_fill(&sum, now, old);
	bars = drawn ? sum.end - sum.begin : 0;
	if (rows) {
		room = (rows < ROWS_MIN ? ROWS_MIN : rows) - ROWS_FIXED -
		       (drawn ? ROWS_HISTOGRAM : 0);
		/* Each table has a third, and the next ones what it does not need. */
		wheels = least(wheels, room - least(bars, room / 3) - least(contexts, room / 3));
		contexts = least(contexts, room - wheels - least(bars, room / 3));
		bars = least(bars, room - wheels - contexts);
	}
	if (!view.target.pid) {
		if (now->wheels_count < 0)
			printf("wheels: ?");
		else
			printf("wheels: %d", now->wheels_count);
		printf("   contexts: %u   CPU of the threads of hwt: %.1f %%\n\n",
		       now->sample.contexts_count, threads_percent(now, old));
		put_wheels(now, old, wheels);
	}
	put_contexts(now, old, contexts);
	if (!drawn)
		return;
	histogram_shrink(&sum, bars);
	put_histogram(&sum, width);
}

static void put_json(const struct moment *now, const struct moment *old)
{
	const struct sample *sample = &now->sample;
	unsigned int i;
	int n;

	for (n = 0; n < now->wheels_count; n++)
		wheel_put_json(&now->wheels[n], wheel_before(old, &now->wheels[n]));
	for (i = 0; i < sample->threads_count && !view.target.pid; i++)
		thread_put_json(&sample->threads[i]);
	for (i = 0; i < sample->contexts_count; i++)
		context_put_json(&sample->contexts[i],
				 context_before(&old->sample, &sample->contexts[i]));
}

/* -- Repetition ---------------------------------------------------------- */

static void on_signal(int signal)
{
	over = signal;
}

static void pause_for(__u64 ns, const sigset_t *mask)
{
	struct timespec timeout = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};

	ppoll(NULL, 0, &timeout, mask);
}

static void put_moment(const struct moment *now, const struct moment *old, bool first)
{
	struct winsize size = { };

	if (view.json) {
		put_json(now, old);
	} else if (isatty(STDOUT_FILENO)) {
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
		printf("\033[H\033[J");
		put_screen(now, old, size.ws_row ?: 24, size.ws_col ?: COLUMNS);
	} else {
		printf("%s", first ? "" : "\n");
		put_screen(now, old, 0, COLUMNS);
	}
}

/* Print a screen after each interval. The first moment is not printed, since rates need two. */
static void watch(__u64 interval_ns, __u64 count)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct moment old, now;
	sigset_t blocked, mask;
	__u64 i;

	/* Signals are handled only in pause_for(), and while a screen is written: it may block. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);

	moment_take(&old);
	for (i = 0; !count || i < count; i++) {
		pause_for(interval_ns, &mask);
		if (over)
			break;
		moment_take(&now);
		sigprocmask(SIG_SETMASK, &mask, NULL);
		put_moment(&now, &old, !i);
		moment_free(&old);
		old = now;
		if (fflush(stdout) || over)
			break;
		sigprocmask(SIG_BLOCK, &blocked, NULL);
	}
	moment_free(&old);
}

int cmd_top(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		OPTION_PID, OPTION_FD, { }
	};
	__u64 interval_ns = NSEC_PER_SEC, count = 0;
	int option;

	while ((option = next_option(argc, argv, "ji:n:p:f:h", options)) != -1) {
		if (option == 'j')
			view.json = true;
		else if (option == 'i')
			interval_ns = option_duration("interval", INTERVAL_MIN_NS, HWT_NEVER - 1);
		else if (option == 'n')
			count = option_number("count", 1, ~0ULL);
		else
			target_option(option, &view.target);
	}
	no_operand(argc, argv);
	target_given(&view.target);
	view.device = device_number();
	watch(interval_ns, count);
	return DONE;
}
