// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl bench: the cost of a timeout for a program, by ioctl, rings and timerfd
 *
 *	schedule	create a timeout (timerfd: create one and set it)
 *	modify		push it back
 *	cancel		end it (timerfd: close)
 *	expire		all are due at once: from then until the program has the last event
 *
 * The figures are nanoseconds per timeout, the median of several runs. Each operation
 * visits the timeouts in another random order. "make bench" of the sources measures
 * more, and more carefully.
 */
#include "hwtctl.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define HOUR		(3600 * NSEC_PER_SEC)
#define RING_OPS	4096
#define RING_EVENTS	65536
#define EVENTS		256
#define REPETITIONS_MAX	1000
#define SPARE_FDS	64
#define PATIENCE_MS	20000

enum operation { SCHEDULE, MODIFY, CANCEL, EXPIRE, OPERATIONS };

static const char *const operation_names[OPERATIONS] = {
	"schedule", "modify", "cancel", "expire",
};

/* The timeouts that all ways work on, and the order in which these are visited */
static __u64 count = 10000;
static __u32 *order;
static __u64 *ids;
static int *timers;		/* timerfds */
static int fd;			/* of /dev/hwt, or epoll */

static struct {
	struct hwt_rings_args	args;
	struct hwt_rings	*rings;
	struct hwt_op		*ops;
	struct hwt_event	*events;
} ring;

/* A way to have timeouts. Its functions end the program if they fail. */
struct way {
	const char	*name;
	__u64		feature;
	void		(*open)(void);
	void		(*close)(void);
	/* Carry out @operation for all timeouts, in order; @flags: HWT_ARM_ABSOLUTE or 0 */
	void		(*apply)(enum operation operation, __u64 time_ns, __u32 flags);
	/* Wait for events, and take some. Return their number. */
	unsigned int	(*reap)(void);
};

static void must(int ret, const char *what)
{
	if (ret)
		fail(ret, "bench: %s", what);
}

/* -- One ioctl for each -------------------------------------------------- */

static void hwt_open(void)
{
	fd = context_open(0, NULL);
}

static void fd_close(void)
{
	close(fd);
}

static void ioctl_schedule(__u32 i, __u64 time_ns, __u32 flags)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.flags = flags,
		.time_ns = time_ns,
		.user_data = i,
	};

	must(hwt_call(fd, HWT_IOC_SCHEDULE, &args), "schedule");
	ids[i] = args.id;
}

static void ioctl_modify(__u32 i, __u64 time_ns)
{
	struct hwt_modify_args args = {
		.size = sizeof(args),
		.id = ids[i],
		.time_ns = time_ns,
	};

	must(hwt_call(fd, HWT_IOC_MODIFY, &args), "modify");
}

static void ioctl_cancel(__u32 i)
{
	struct hwt_cancel_args args = { .size = sizeof(args), .id = ids[i] };

	must(hwt_call(fd, HWT_IOC_CANCEL, &args), "cancel");
}

static void ioctl_apply(enum operation operation, __u64 time_ns, __u32 flags)
{
	__u64 i;

	for (i = 0; i < count; i++) {
		if (operation == SCHEDULE)
			ioctl_schedule(order[i], time_ns, flags);
		else if (operation == MODIFY)
			ioctl_modify(order[i], time_ns);
		else
			ioctl_cancel(order[i]);
	}
}

static unsigned int hwt_reap(void)
{
	struct hwt_event events[EVENTS];
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	int ready = poll(&pollfd, 1, PATIENCE_MS);
	ssize_t got;

	if (ready <= 0)
		fail(ready ? errno : 0, "bench: no event has come for 20 s");
	got = read(fd, events, sizeof(events));
	if (got <= 0)
		fail(got ? errno : 0, "bench: reading events");
	return got / sizeof(events[0]);
}

/* -- Through rings ------------------------------------------------------- */

static void op_fill(struct hwt_op *op, enum operation operation, __u32 i, __u64 time_ns,
		    __u32 flags)
{
	static const __u32 opcodes[] = { HWT_OP_SCHEDULE, HWT_OP_MODIFY, HWT_OP_CANCEL };

	memset(op, 0, sizeof(*op));
	op->opcode = opcodes[operation];
	op->flags = flags;
	if (operation != SCHEDULE)
		op->id = ids[i];
	if (operation != CANCEL)
		op->time_ns = time_ns;
	if (operation == SCHEDULE)
		op->user_data = i;
}

/* Check the result of an operation, and keep the id of a new timeout. */
static void op_done(const struct hwt_op *op, enum operation operation, __u32 i)
{
	must(op->result < 0 ? op->result : 0, operation_names[operation]);
	if (operation == SCHEDULE)
		ids[i] = op->id;
}

static void ring_open(void)
{
	char *map;

	hwt_open();
	ring.args = (struct hwt_rings_args) {
		.size = sizeof(ring.args),
		.op_entries = RING_OPS,
		.event_entries = RING_EVENTS,
		.op_size = sizeof(struct hwt_op),
	};
	must(hwt_call(fd, HWT_IOC_RINGS, &ring.args), "HWT_IOC_RINGS");
	map = mmap(NULL, ring.args.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail(errno, "bench: mapping the rings");
	ring.rings = (void *)map;
	ring.ops = (void *)(map + ring.args.ops_offset);
	ring.events = (void *)(map + ring.args.events_offset);
}

static void ring_close(void)
{
	munmap(ring.rings, ring.args.map_size);
	fd_close();
}

static void ring_enter(__u32 submit, __u32 wait)
{
	struct hwt_enter_args args = {
		.size = sizeof(args),
		.submit = submit,
		.wait = wait,
		.timeout_ns = PATIENCE_MS * NSEC_PER_MSEC,
	};

	must(hwt_call(fd, HWT_IOC_ENTER, &args), "HWT_IOC_ENTER");
}

static void ring_apply(enum operation operation, __u64 time_ns, __u32 flags)
{
	__u32 mask = ring.args.op_entries - 1, tail = ring.rings->op_tail, head, i;
	__u64 done, n;

	for (done = 0; done < count; done += n) {
		n = count - done < ring.args.op_entries ? count - done :
							  ring.args.op_entries;
		for (i = 0; i < n; i++)
			op_fill(&ring.ops[(tail + i) & mask], operation, order[done + i],
				time_ns, flags);
		__atomic_store_n(&ring.rings->op_tail, tail + n, __ATOMIC_RELEASE);
		do {
			ring_enter(n, 0);
			head = __atomic_load_n(&ring.rings->op_head, __ATOMIC_ACQUIRE);
		} while (head != tail + (__u32)n);
		for (i = 0; i < n; i++)
			op_done(&ring.ops[(tail + i) & mask], operation, order[done + i]);
		tail += n;
	}
}

static unsigned int ring_reap(void)
{
	__u32 head = ring.rings->event_head, tail;

	tail = __atomic_load_n(&ring.rings->event_tail, __ATOMIC_ACQUIRE);
	if (head == tail) {
		ring_enter(0, 1);
		tail = __atomic_load_n(&ring.rings->event_tail, __ATOMIC_ACQUIRE);
		if (head == tail)
			fail(0, "bench: no event has come for 20 s");
	}
	__atomic_store_n(&ring.rings->event_head, tail, __ATOMIC_RELEASE);
	return tail - head;
}

/* -- timerfd ------------------------------------------------------------- */

static void timerfd_open(void)
{
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0)
		fail(errno, "bench: epoll_create1");
}

static void timerfd_set(__u32 i, __u64 time_ns, __u32 flags)
{
	struct itimerspec spec = {
		.it_value.tv_sec = time_ns / NSEC_PER_SEC,
		.it_value.tv_nsec = time_ns % NSEC_PER_SEC,
	};

	if (timerfd_settime(timers[i], flags ? TFD_TIMER_ABSTIME : 0, &spec, NULL))
		fail(errno, "bench: timerfd_settime");
}

static void timerfd_apply(enum operation operation, __u64 time_ns, __u32 flags)
{
	__u64 i;

	for (i = 0; i < count; i++) {
		__u32 timer = order[i];

		if (operation == CANCEL) {
			close(timers[timer]);
			continue;
		}
		if (operation == SCHEDULE) {
			timers[timer] = timerfd_create(CLOCK_MONOTONIC,
						       TFD_CLOEXEC | TFD_NONBLOCK);
			if (timers[timer] < 0)
				fail(errno, "bench: timerfd_create");
		}
		timerfd_set(timer, time_ns, flags);
	}
}

static unsigned int timerfd_reap(void)
{
	struct epoll_event events[EVENTS];
	__u64 overruns;
	int got, i;

	got = epoll_wait(fd, events, EVENTS, PATIENCE_MS);
	if (got <= 0)
		fail(got ? errno : 0, "bench: no event has come for 20 s");
	for (i = 0; i < got; i++)
		if (read(events[i].data.fd, &overruns, sizeof(overruns)) !=
		    sizeof(overruns))
			fail(errno, "bench: read");
	return got;
}

static const struct way ways[] = {
	{ "ioctl", 0, hwt_open, fd_close, ioctl_apply, hwt_reap },
	{ "rings", HWT_FEATURE_RINGS, ring_open, ring_close, ring_apply, ring_reap },
	{ "timerfd", 0, timerfd_open, fd_close, timerfd_apply, timerfd_reap },
};

static bool is_timerfd(const struct way *way)
{
	return way->reap == timerfd_reap;
}

/* -- Measuring ----------------------------------------------------------- */

static double results[ARRAY_SIZE(ways)][OPERATIONS][REPETITIONS_MAX];

static void shuffle(void)
{
	static __u64 state = 0x9e3779b97f4a7c15ULL;
	__u64 i, j;
	__u32 other;

	for (i = count - 1; i > 0; i--) {
		state ^= state >> 12;
		state ^= state << 25;
		state ^= state >> 27;
		j = ((state * 0x2545f4914f6cdd1dULL) >> 16) % (i + 1);
		other = order[i];
		order[i] = order[j];
		order[j] = other;
	}
}

/* Measure one operation. Return nanoseconds per timeout. */
static double measure(const struct way *way, enum operation operation, __u64 time_ns)
{
	__u64 begin;

	shuffle();
	begin = clock_ns(CLOCK_MONOTONIC);
	way->apply(operation, time_ns, 0);
	return (double)(clock_ns(CLOCK_MONOTONIC) - begin) / count;
}

static void watch_timers(const struct way *way)
{
	struct epoll_event event = { .events = EPOLLIN };
	__u64 i;

	for (i = 0; i < count && is_timerfd(way); i++) {
		event.data.fd = timers[i];
		if (epoll_ctl(fd, EPOLL_CTL_ADD, timers[i], &event))
			fail(errno, "bench: epoll_ctl");
	}
}

static void close_timers(const struct way *way)
{
	__u64 i;

	for (i = 0; i < count && is_timerfd(way); i++)
		close(timers[i]);
}

static void sleep_until(__u64 ns)
{
	struct timespec until = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

/* Measure "expire". Try again with more time if the timeouts are due before all are scheduled. */
static double measure_expire(const struct way *way, double schedule_ns)
{
	__u64 lead = 100 * NSEC_PER_MSEC + 3 * schedule_ns * count, due, got = 0;
	bool late;

	do {
		way->open();
		due = clock_ns(CLOCK_MONOTONIC) + lead;
		way->apply(SCHEDULE, due, HWT_ARM_ABSOLUTE);
		watch_timers(way);
		late = clock_ns(CLOCK_MONOTONIC) >= due;
		if (late) {
			close_timers(way);
			way->close();
			lead *= 2;
		}
	} while (late);
	sleep_until(due);
	while (got < count)
		got += way->reap();
	due = clock_ns(CLOCK_MONOTONIC) - due;
	close_timers(way);
	way->close();
	return (double)due / count;
}

static void measure_way(const struct way *way, unsigned int repetition)
{
	double (*to)[REPETITIONS_MAX] = results[way - ways];

	way->open();
	to[SCHEDULE][repetition] = measure(way, SCHEDULE, HOUR);
	to[MODIFY][repetition] = measure(way, MODIFY, 2 * HOUR);
	to[CANCEL][repetition] = measure(way, CANCEL, 0);
	way->close();
	to[EXPIRE][repetition] = measure_expire(way, to[SCHEDULE][repetition]);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *values, unsigned int number)
{
	qsort(values, number, sizeof(*values), by_size);
	return number % 2 ? values[number / 2] :
			    (values[number / 2 - 1] + values[number / 2]) / 2;
}

/* -- Options and results ------------------------------------------------- */

/* Raise the limit of descriptors to one for each timer. Return the number of possible timers. */
static __u64 timers_limit(__u64 wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		fail(errno, "bench: reading the limit of descriptors");
	if (limit.rlim_cur < wanted + SPARE_FDS) {
		limit.rlim_cur = wanted + SPARE_FDS;
		if (limit.rlim_max < limit.rlim_cur)
			limit.rlim_max = limit.rlim_cur;
		/* Only privileged users may exceed the hard limit. */
		if (setrlimit(RLIMIT_NOFILE, &limit) && !getrlimit(RLIMIT_NOFILE, &limit)) {
			limit.rlim_cur = limit.rlim_max;
			setrlimit(RLIMIT_NOFILE, &limit);
		}
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	return limit.rlim_cur < wanted + SPARE_FDS ? limit.rlim_cur - SPARE_FDS : wanted;
}

static void parse_only(bool *chosen)
{
	char *rest = optarg, *item;
	unsigned int i;

	memset(chosen, 0, ARRAY_SIZE(ways) * sizeof(*chosen));
	while ((item = strsep(&rest, ","))) {
		for (i = 0; i < ARRAY_SIZE(ways) && strcmp(ways[i].name, item) != 0; i++)
			;
		if (i == ARRAY_SIZE(ways))
			usage_error("--only: '%s' is not ioctl, rings or timerfd", item);
		chosen[i] = true;
	}
}

static void report_text(const bool *chosen, unsigned int repetitions)
{
	unsigned int operation, i;

	printf("%llu timeouts, ns for each, median of %u\n%-10s", count, repetitions, "");
	for (i = 0; i < ARRAY_SIZE(ways); i++)
		if (chosen[i])
			printf(" %9s", ways[i].name);
	printf("\n");
	for (operation = 0; operation < OPERATIONS; operation++) {
		printf("%-10s", operation_names[operation]);
		for (i = 0; i < ARRAY_SIZE(ways); i++)
			if (chosen[i])
				printf(" %9.0f", median(results[i][operation],
							repetitions));
		printf("\n");
	}
}

static void put_json(const struct way *way, unsigned int operation,
		     unsigned int repetitions)
{
	printf("{\"way\":\"%s\",\"operation\":\"%s\",\"ns\":%.1f,", way->name,
	       operation_names[operation],
	       median(results[way - ways][operation], repetitions));
	printf("\"timeouts\":%llu,\"repetitions\":%u}\n", count, repetitions);
}

static void report_json(const bool *chosen, unsigned int repetitions)
{
	unsigned int operation, i;

	for (i = 0; i < ARRAY_SIZE(ways); i++)
		for (operation = 0; chosen[i] && operation < OPERATIONS; operation++)
			put_json(&ways[i], operation, repetitions);
}

/* Leave out the ways that the kernel does not have, with a message. */
static void check_ways(bool *chosen)
{
	struct hwt_info_args info;
	unsigned int i;

	hwt_open();
	context_info(fd, &info);
	fd_close();
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		if (chosen[i] && ways[i].feature && !(info.features & ways[i].feature)) {
			complain(0, "bench: %s of this kernel does not have %s", device_path,
				 ways[i].name);
			chosen[i] = false;
		}
	}
	if (count > info.max_timeouts)
		fail(0, "bench: a context of %s has at most %llu timeouts", device_path,
		     info.max_timeouts);
}

static void prepare(bool *chosen)
{
	__u64 limit, i;

	check_ways(chosen);
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		if (!chosen[i] || !is_timerfd(&ways[i]))
			continue;
		limit = timers_limit(count);
		if (limit < count) {
			complain(0, "bench: using %llu timeouts: 'ulimit -n' limits timerfd",
				 limit);
			count = limit;
		}
	}
	order = must_alloc(NULL, count * sizeof(*order));
	ids = must_alloc(NULL, count * sizeof(*ids));
	timers = must_alloc(NULL, count * sizeof(*timers));
	for (i = 0; i < count; i++)
		order[i] = i;
}

int cmd_bench(int argc, char **argv)
{
	enum { ONLY = 256 };
	static const struct option options[] = {
		{ "timeouts", required_argument, NULL, 'n' },
		{ "repetitions", required_argument, NULL, 'r' },
		{ "only", required_argument, NULL, ONLY },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	bool chosen[ARRAY_SIZE(ways)], json = false;
	unsigned int repetitions = 5, r, i;
	int option;

	memset(chosen, true, sizeof(chosen));
	while ((option = next_option(argc, argv, "n:r:jh", options)) != -1) {
		switch (option) {
		case 'n':
			count = option_number("timeouts", 1, 100000000);
			break;
		case 'r':
			repetitions = option_number("repetitions", 1, REPETITIONS_MAX);
			break;
		case ONLY:
			parse_only(chosen);
			break;
		case 'j':
			json = true;
			break;
		}
	}
	if (optind < argc)
		usage_error("unexpected operand '%s'", argv[optind]);
	prepare(chosen);
	for (r = 0; r < repetitions; r++)
		for (i = 0; i < ARRAY_SIZE(ways); i++)
			if (chosen[i])
				measure_way(&ways[i], r);
	if (json)
		report_json(chosen, repetitions);
	else
		report_text(chosen, repetitions);
	free(order);
	free(ids);
	free(timers);
	return DONE;
}
