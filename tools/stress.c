// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl stress: threads that schedule, modify, cancel and read, all on the same contexts
 *
 * The promise to check: every timeout either fires once, never before its deadline, or is
 * cancelled. Each timeout has a slot, which one thread at a time may use. Each event is
 * compared with the slot of its timeout: this finds events that are early, that come
 * twice, and those of timeouts that were cancelled or never existed. At the end all
 * remaining timeouts are made to fire or cancelled: this finds those that were lost.
 */
#include "hwtctl.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* How long to wait for the next event at the end, before the remaining timeouts count as lost */
#define PATIENCE_MS	20000
#define EVENTS		64
#define BAR		30
#define THREADS_MAX	1024
#define CONTEXTS_MAX	100000
#define SLOTS_MAX	16777216

enum operation { SCHEDULE, MODIFY, CANCEL, READ, OPERATIONS };

static const char *const operation_names[OPERATIONS] = {
	"schedule", "modify", "cancel", "read",
};

/* Counters, apart from those of the operations */
enum count {
	FIRED,		/* events of live timeouts */
	REFUSED,	/* schedules: a limit was reached, or memory was lacking */
	TOO_LATE,	/* modify, cancel: the event of the timeout had been read */
	EARLY,
	STRANGE,	/* events that match no live timeout */
	LOST,
	ERRORS,		/* calls that failed in an unexpected way */
	MISCOUNTED,	/* contexts with wrong statistics */
	COUNTS,
};

static const char *const count_names[COUNTS] = {
	"fired", "refused", "too_late", "early", "strange", "lost", "errors", "miscounted",
};

/* A timeout. @busy is the lock of the other members. */
struct slot {
	bool	busy;
	bool	live;
	__u32	generation;
	__u64	id;
	__u64	earliest_ns;
};

struct context {
	int		fd;
	struct slot	*slots;
	__u64		scheduled;
	__u64		cancelled;
	__u64		read;
};

#define LATE_BUCKETS	64	/* powers of two of nanoseconds */

/* A thread and its counters, which the main thread reads meanwhile */
struct worker {
	pthread_t	thread;
	__u64		random;
	__u64		operations[OPERATIONS];
	__u64		counts[COUNTS];
	__u64		late[LATE_BUCKETS];
	__u64		late_max_ns;
} __attribute__((aligned(64)));

static struct {
	__u64		seconds;
	unsigned int	threads;
	unsigned int	contexts;
	unsigned int	timeouts;
	unsigned int	mix[OPERATIONS];
	unsigned int	mix_sum;
	__u64		seed;
	bool		json;
	bool		quiet;
} stress = {
	.seconds = 10,
	.contexts = 4,
	.timeouts = 10000,
	.mix = { 40, 30, 20, 10 },
	.mix_sum = 100,
};

static struct context *contexts;
static struct worker *workers;
static volatile sig_atomic_t over;

/* -- Counting ------------------------------------------------------------ */

static void add(__u64 *count, __u64 n)
{
	__atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

static __u64 get(const __u64 *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

/* xorshift64* */
static __u64 random_below(struct worker *worker, __u64 limit)
{
	worker->random ^= worker->random >> 12;
	worker->random ^= worker->random << 25;
	worker->random ^= worker->random >> 27;
	return ((worker->random * 0x2545f4914f6cdd1dULL) >> 16) % limit;
}

static __u64 random_delay(struct worker *worker)
{
	static const __u64 longest_ms[] = { 10, 1000, 1000, 10000 };
	__u64 longest = longest_ms[random_below(worker, 4)];

	return random_below(worker, longest * NSEC_PER_MSEC);
}

/* Count a failure, and report the first ten. */
static void went_wrong(struct worker *worker, enum count what, int ret, const char *which)
{
	static int said;

	add(&worker->counts[what], 1);
	if (__atomic_fetch_add(&said, 1, __ATOMIC_RELAXED) < 10)
		complain(ret, "stress: %s", which);
}

/* -- Operations ---------------------------------------------------------- */

static bool slot_try(struct slot *slot)
{
	return !__atomic_exchange_n(&slot->busy, true, __ATOMIC_ACQUIRE);
}

static void slot_release(struct slot *slot)
{
	__atomic_store_n(&slot->busy, false, __ATOMIC_RELEASE);
}

/* Lock a random slot, of a live timeout or free. Return NULL if a few tries found none. */
static struct slot *slot_find(struct worker *worker, struct context *ctx, bool live)
{
	struct slot *slot;
	int try;

	for (try = 0; try < 8; try++) {
		slot = &ctx->slots[random_below(worker, stress.timeouts)];
		if (!slot_try(slot))
			continue;
		if (slot->live == live)
			return slot;
		slot_release(slot);
	}
	return NULL;
}

static void do_schedule(struct worker *worker, struct context *ctx, struct slot *slot)
{
	__u64 delay = random_delay(worker);
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.time_ns = delay,
		.user_data = (__u64)(slot->generation + 1) << 32 | (slot - ctx->slots),
	};
	int ret;

	slot->earliest_ns = clock_ns(CLOCK_MONOTONIC) + delay;
	ret = hwt_call(ctx->fd, HWT_IOC_SCHEDULE, &args);
	if (!ret) {
		slot->live = true;
		slot->id = args.id;
		slot->generation++;
		add(&ctx->scheduled, 1);
	} else if (ret == -ENOSPC || ret == -ENOMEM) {
		add(&worker->counts[REFUSED], 1);
	} else {
		went_wrong(worker, ERRORS, ret, "schedule");
	}
}

/* ENOENT: another thread has read its event, and is about to take the slot in check_event(). */
static void do_modify(struct worker *worker, struct context *ctx, struct slot *slot,
		      __u64 delay)
{
	struct hwt_modify_args args = {
		.size = sizeof(args),
		.id = slot->id,
		.time_ns = delay,
	};
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	int ret = hwt_call(ctx->fd, HWT_IOC_MODIFY, &args);

	if (!ret)
		slot->earliest_ns = now + delay;
	else if (ret == -ENOENT)
		add(&worker->counts[TOO_LATE], 1);
	else
		went_wrong(worker, ERRORS, ret, "modify");
}

static void do_cancel(struct worker *worker, struct context *ctx, struct slot *slot)
{
	struct hwt_cancel_args args = { .size = sizeof(args), .id = slot->id };
	int ret = hwt_call(ctx->fd, HWT_IOC_CANCEL, &args);

	if (!ret) {
		slot->live = false;
		add(&ctx->cancelled, 1);
	} else if (ret == -ENOENT) {
		add(&worker->counts[TOO_LATE], 1);
	} else {
		went_wrong(worker, ERRORS, ret, "cancel");
	}
}

static void count_late(struct worker *worker, __u64 late_ns)
{
	int bucket = late_ns ? 63 - __builtin_clzll(late_ns) : 0;

	worker->late[bucket]++;
	if (late_ns > worker->late_max_ns)
		worker->late_max_ns = late_ns;
}

static void check_event(struct worker *worker, struct context *ctx,
			const struct hwt_event *event)
{
	__u32 index = event->user_data, generation = event->user_data >> 32;
	struct slot *slot = &ctx->slots[index];

	if (index >= stress.timeouts) {
		went_wrong(worker, STRANGE, 0, "an event of an unknown timeout");
		return;
	}
	/* The thread that has the slot is in a system call, perhaps the one that created it. */
	while (!slot_try(slot))
		sched_yield();
	if (!slot->live || generation != slot->generation || event->id != slot->id ||
	    event->kind != HWT_EVENT_EXPIRED || event->flags != HWT_EVENT_LAST ||
	    event->overruns) {
		went_wrong(worker, STRANGE, 0, "an event of a timeout that has ended");
	} else {
		if (event->fired_ns < slot->earliest_ns ||
		    event->fired_ns < event->deadline_ns)
			went_wrong(worker, EARLY, 0, "an early event");
		else
			count_late(worker, event->fired_ns - event->deadline_ns);
		slot->live = false;
		add(&worker->counts[FIRED], 1);
	}
	slot_release(slot);
}

/* Read and check events. Return their number. */
static int do_read(struct worker *worker, struct context *ctx)
{
	struct hwt_event events[EVENTS];
	ssize_t got;
	int i;

	got = read(ctx->fd, events, sizeof(events));
	if (got < 0) {
		if (errno != EAGAIN && errno != EINTR)
			went_wrong(worker, ERRORS, errno, "read");
		return 0;
	}
	got /= sizeof(events[0]);
	add(&ctx->read, got);
	for (i = 0; i < got; i++)
		check_event(worker, ctx, &events[i]);
	add(&worker->operations[READ], got);
	return got;
}

static void do_operation(struct worker *worker)
{
	struct context *ctx = &contexts[random_below(worker, stress.contexts)];
	unsigned int draw = random_below(worker, stress.mix_sum);
	enum operation operation = SCHEDULE;
	struct slot *slot;

	while (draw >= stress.mix[operation])
		draw -= stress.mix[operation++];
	if (operation == READ) {
		do_read(worker, ctx);
		return;
	}
	slot = slot_find(worker, ctx, operation != SCHEDULE);
	if (!slot)
		return;
	if (operation == SCHEDULE)
		do_schedule(worker, ctx, slot);
	else if (operation == MODIFY)
		do_modify(worker, ctx, slot, random_delay(worker));
	else
		do_cancel(worker, ctx, slot);
	slot_release(slot);
	add(&worker->operations[operation], 1);
}

static void *work(void *arg)
{
	while (!over)
		do_operation(arg);
	return NULL;
}

/* -- The end ------------------------------------------------------------- */

static __u64 live_count(const struct context *ctx)
{
	__u64 count = 0;
	unsigned int i;

	for (i = 0; i < stress.timeouts; i++)
		count += ctx->slots[i].live;
	return count;
}

/* After the threads have ended, let all remaining timeouts fire or cancel them, and check. */
static void settle(struct worker *worker, struct context *ctx)
{
	struct pollfd pollfd = { .fd = ctx->fd, .events = POLLIN };
	struct hwt_stats_args stats;
	unsigned int i;
	__u64 live;

	for (i = 0; i < stress.timeouts; i++) {
		struct slot *slot = &ctx->slots[i];

		if (slot->live && i % 2)
			do_cancel(worker, ctx, slot);
		else if (slot->live)
			do_modify(worker, ctx, slot, 0);
	}
	while (live_count(ctx) && poll(&pollfd, 1, PATIENCE_MS) > 0)
		while (do_read(worker, ctx))
			;
	/* Read events that should not be there, too. */
	while (do_read(worker, ctx))
		;
	live = live_count(ctx);
	if (live)
		went_wrong(worker, LOST, 0, "lost timeouts");
	add(&worker->counts[LOST], live ? live - 1 : 0);

	context_stats(ctx->fd, &stats);
	if (stats.scheduled != ctx->scheduled || stats.cancelled != ctx->cancelled ||
	    stats.read != ctx->read || stats.timeouts || stats.events)
		went_wrong(worker, MISCOUNTED, 0, "wrong statistics of a context");
}

/* -- Output -------------------------------------------------------------- */

static __u64 operations_sum(enum operation operation)
{
	__u64 sum = 0;
	unsigned int i;

	for (i = 0; i < stress.threads; i++)
		sum += get(&workers[i].operations[operation]);
	return sum;
}

static __u64 counts_sum(enum count count)
{
	__u64 sum = 0;
	unsigned int i;

	for (i = 0; i < stress.threads; i++)
		sum += get(&workers[i].counts[count]);
	return sum;
}

static __u64 wrong_sum(void)
{
	return counts_sum(EARLY) + counts_sum(STRANGE) + counts_sum(LOST) +
	       counts_sum(ERRORS) + counts_sum(MISCOUNTED);
}

static void put_bar(double part)
{
	int i;

	fprintf(stderr, "\r[");
	for (i = 0; i < BAR; i++)
		fputc(i < part * BAR ? '#' : '.', stderr);
	fprintf(stderr, "] ");
}

static void put_progress(bool bar, __u64 since, __u64 step_ns)
{
	static __u64 before;
	__u64 sum = 0, lasted = clock_ns(CLOCK_MONOTONIC) - since;
	double seconds = (double)lasted / NSEC_PER_SEC;
	int i;

	for (i = 0; i < OPERATIONS; i++)
		sum += operations_sum(i);
	if (bar)
		put_bar(seconds / stress.seconds);
	fprintf(stderr, "%.0f of %llu s, %.0f operations/s, %llu refused, %llu wrong%s",
		seconds, stress.seconds, (sum - before) * (double)NSEC_PER_SEC / step_ns,
		counts_sum(REFUSED), wrong_sum(), bar ? "\033[K" : "\n");
	before = sum;
}

/* Wait for the duration of the run, or until a signal comes, and show the progress. */
static void watch_progress(__u64 since)
{
	bool bar = isatty(STDERR_FILENO);
	__u64 step_ns = bar ? NSEC_PER_SEC / 5 : NSEC_PER_SEC;
	__u64 end = since + stress.seconds * NSEC_PER_SEC, now = since, next;
	struct timespec left;

	while (!over && now < end) {
		next = now + step_ns < end ? now + step_ns : end;
		left.tv_sec = (next - now) / NSEC_PER_SEC;
		left.tv_nsec = (next - now) % NSEC_PER_SEC;
		nanosleep(&left, NULL);
		next = clock_ns(CLOCK_MONOTONIC);
		if (!stress.quiet)
			put_progress(bar, since, next - now);
		now = next;
	}
	if (bar && !stress.quiet)
		fputc('\n', stderr);
}

/* Return an upper bound of the lateness of @percent percent of the events, in ns. */
static __u64 late_below(unsigned int percent)
{
	__u64 all = 0, sum = 0;
	unsigned int i, bucket;

	for (i = 0; i < stress.threads; i++)
		for (bucket = 0; bucket < LATE_BUCKETS; bucket++)
			all += workers[i].late[bucket];
	for (bucket = 0; bucket < LATE_BUCKETS - 1; bucket++) {
		for (i = 0; i < stress.threads; i++)
			sum += workers[i].late[bucket];
		if (sum * 100 >= all * percent)
			break;
	}
	return 2ULL << bucket;
}

static __u64 late_max(void)
{
	__u64 max = 0;
	unsigned int i;

	for (i = 0; i < stress.threads; i++)
		if (workers[i].late_max_ns > max)
			max = workers[i].late_max_ns;
	return max;
}

static void contexts_sum(__u64 *scheduled, __u64 *cancelled)
{
	unsigned int i;

	*scheduled = 0;
	*cancelled = 0;
	for (i = 0; i < stress.contexts; i++) {
		*scheduled += contexts[i].scheduled;
		*cancelled += contexts[i].cancelled;
	}
}

static void report_text(const __u64 *operations, double seconds)
{
	char half[TIME_TEXT], most[TIME_TEXT], worst[TIME_TEXT];
	__u64 scheduled, cancelled;
	int i;

	printf("%.1f s, %u threads, %u contexts of up to %u timeouts, seed %llu\n",
	       seconds, stress.threads, stress.contexts, stress.timeouts, stress.seed);
	for (i = 0; i < OPERATIONS; i++)
		printf("%-9s %12llu %12.0f/s\n", operation_names[i], operations[i],
		       operations[i] / seconds);
	contexts_sum(&scheduled, &cancelled);
	if (counts_sum(FIRED))
		printf("late      half < %s, 99 %% < %s, at most %s\n",
		       duration_format(half, late_below(50)),
		       duration_format(most, late_below(99)),
		       duration_format(worst, late_max()));
	printf("scheduled %llu: fired %llu, cancelled %llu; refused %llu, too late %llu\n",
	       scheduled, counts_sum(FIRED), cancelled, counts_sum(REFUSED),
	       counts_sum(TOO_LATE));
	printf("early %llu, strange %llu, lost %llu, errors %llu, miscounted %llu: %s\n",
	       counts_sum(EARLY), counts_sum(STRANGE), counts_sum(LOST), counts_sum(ERRORS),
	       counts_sum(MISCOUNTED), wrong_sum() ? "BROKEN" : "every promise kept");
}

static void report_json(const __u64 *operations, double seconds)
{
	__u64 scheduled, cancelled;
	int i;

	printf("{\"seconds\":%.3f,\"threads\":%u,\"contexts\":%u,\"timeouts\":%u,\"seed\":%llu",
	       seconds, stress.threads, stress.contexts, stress.timeouts, stress.seed);
	for (i = 0; i < OPERATIONS; i++)
		printf(",\"%s_operations\":%llu", operation_names[i], operations[i]);
	contexts_sum(&scheduled, &cancelled);
	printf(",\"late_max_ns\":%llu,\"scheduled\":%llu,\"cancelled\":%llu", late_max(),
	       scheduled, cancelled);
	for (i = 0; i < COUNTS; i++)
		printf(",\"%s\":%llu", count_names[i], counts_sum(i));
	printf(",\"kept\":%s}\n", wrong_sum() ? "false" : "true");
}

/* -- Begin and end ------------------------------------------------------- */

static void on_signal(int signal)
{
	over = signal;
}

static void raise_limit(unsigned int descriptors)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= descriptors)
		return;
	limit.rlim_cur = descriptors;
	if (limit.rlim_max < descriptors)
		limit.rlim_max = descriptors;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void contexts_open(void)
{
	unsigned int i;

	raise_limit(stress.contexts + 64);
	contexts = must_alloc(NULL, stress.contexts * sizeof(*contexts));
	for (i = 0; i < stress.contexts; i++) {
		contexts[i] = (struct context) { .fd = context_open(O_NONBLOCK, NULL) };
		contexts[i].slots = calloc(stress.timeouts, sizeof(struct slot));
		if (!contexts[i].slots)
			fail(ENOMEM, "allocating %u timeouts", stress.timeouts);
	}
}

static void workers_start(void)
{
	unsigned int i;
	int ret;

	if (posix_memalign((void **)&workers, 64, stress.threads * sizeof(*workers)))
		fail(ENOMEM, "allocating %u threads", stress.threads);
	memset(workers, 0, stress.threads * sizeof(*workers));
	for (i = 0; i < stress.threads; i++) {
		/* Must not be 0: the generator would return nothing else. */
		workers[i].random = (stress.seed + i + 1) * 0x9e3779b97f4a7c15ULL | 1;
		ret = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
		if (ret)
			fail(0, "creating a thread: %s", strerror(ret));
	}
}

static void parse_mix(void)
{
	char *rest = optarg, *item;
	__u64 value;
	int i;

	stress.mix_sum = 0;
	for (i = 0; i < OPERATIONS; i++) {
		item = strsep(&rest, ":");
		if (!item || !number_parse(item, 1000, &value))
			usage_error("--mix: give four numbers up to 1000, such as 40:30:20:10");
		stress.mix[i] = value;
		stress.mix_sum += value;
	}
	if (rest)
		usage_error("--mix: give four numbers up to 1000, such as 40:30:20:10");
	/* All other operations need timeouts that were scheduled. */
	if (!stress.mix[SCHEDULE])
		usage_error("--mix: the first number must not be 0");
}

static void parse_options(int argc, char **argv)
{
	enum { SEED = 256 };
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "threads", required_argument, NULL, 't' },
		{ "contexts", required_argument, NULL, 'c' },
		{ "timeouts", required_argument, NULL, 'n' },
		{ "mix", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, SEED },
		{ "json", no_argument, NULL, 'j' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int option;

	stress.threads = sysconf(_SC_NPROCESSORS_ONLN);
	stress.seed = clock_ns(CLOCK_REALTIME) % 1000000;
	while ((option = next_option(argc, argv, "s:t:c:n:m:jqh", options)) != -1) {
		switch (option) {
		case 's':
			stress.seconds = option_number("seconds", 1, 86400 * 365);
			break;
		case 't':
			stress.threads = option_number("threads", 1, THREADS_MAX);
			break;
		case 'c':
			stress.contexts = option_number("contexts", 1, CONTEXTS_MAX);
			break;
		case 'n':
			stress.timeouts = option_number("timeouts", 1, SLOTS_MAX);
			break;
		case 'm':
			parse_mix();
			break;
		case SEED:
			stress.seed = option_number("seed", 0, ~0ULL);
			break;
		case 'j':
			stress.json = true;
			break;
		case 'q':
			stress.quiet = true;
			break;
		}
	}
	if (optind < argc)
		usage_error("unexpected operand '%s'", argv[optind]);
}

int cmd_stress(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	__u64 operations[OPERATIONS], since;
	double seconds;
	unsigned int i;

	parse_options(argc, argv);
	contexts_open();
	/* A signal ends the run, and the results are printed all the same. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	since = clock_ns(CLOCK_MONOTONIC);
	workers_start();
	watch_progress(since);
	over = 1;
	for (i = 0; i < stress.threads; i++)
		pthread_join(workers[i].thread, NULL);
	seconds = (double)(clock_ns(CLOCK_MONOTONIC) - since) / NSEC_PER_SEC;
	for (i = 0; i < OPERATIONS; i++)
		operations[i] = operations_sum(i);
	for (i = 0; i < stress.contexts; i++) {
		settle(&workers[0], &contexts[i]);
		close(contexts[i].fd);
		free(contexts[i].slots);
	}
	if (stress.json)
		report_json(operations, seconds);
	else
		report_text(operations, seconds);
	i = wrong_sum();
	free(contexts);
	free(workers);
	return i ? FAILED : DONE;
}
