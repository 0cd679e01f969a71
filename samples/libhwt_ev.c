// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A libev program with 100,000 timeouts. It runs once with the timers of libev and once with those
 * of libhwt, and prints the costs of both.
 *
 * The first half is the adapter, which other programs can use: timer_start() and timer_stop()
 * instead of ev_timer_again() and ev_timer_stop(). All timeouts are on one descriptor, which libev
 * watches. The key of a timer is its address. Before libev goes to sleep, the adapter carries out
 * all changes of the turn (since the last sleep) with one system call: a timer that was pushed back
 * ten times is pushed back once.
 *
 * libev keeps its own timers in a heap in the program's memory, which is hard to beat for a single
 * operation. The program shows how close libhwt comes to that, with timeouts that also outlive a
 * change of the loop, can be listed and saved, or be shared with other threads and processes.
 *
 * hwt-test: libs hwt ev
 */
#include <dirent.h>
#include <err.h>
#include <ev.h>
#include <getopt.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libhwt.h"

/* -- The adapter --------------------------------------------------------- */

/* A timer. All members but @expire are 0 before its first start. */
struct timer {
	void		(*expire)(struct timer *timer);
	uint64_t	due_ns;		/* 0: not running */
	struct hwt_op	*op;		/* in the queue, if @turn is the present turn */
	uint64_t	turn;		/* the last turn in which it was changed */
};

#define QUEUE	4096

struct timers {
	struct ev_loop		*loop;
	struct libhwt		*hwt;
	struct libhwt_queue	*queue;
	ev_io			readable;
	ev_prepare		before_sleep;
	ev_check		after_sleep;
	uint64_t		turn;		/* the number of submissions, plus 1 */
	uint64_t		now_ns;		/* as ev_now(), also updated after submissions */
};

static void check(int ret)
{
	if (ret < 0)
		errx(1, "libhwt: %s", strerror(-ret));
}

static void timers_now_update(struct timers *timers)
{
	timers->now_ns = libhwt_now(timers->hwt);
}

static void timers_submit(struct timers *timers)
{
	struct hwt_op ops[64];
	int i, n;

	check(libhwt_queue_submit(timers->queue));
	timers->turn++;
	timers_now_update(timers);
	while ((n = libhwt_queue_results(timers->queue, ops, 64)) > 0) {
		/* Ignore failed cancels: these timers have fired. */
		for (i = 0; i < n; i++)
			if (ops[i].opcode == HWT_OP_SCHEDULE)
				check(ops[i].result);
	}
}

/* Queue an operation for a timer, or replace the one that it has in this turn. */
static void timer_change(struct timers *timers, struct timer *timer, struct hwt_op op)
{
	if (timer->turn != timers->turn) {
		timer->op = libhwt_queue_get(timers->queue);
		if (!timer->op) {
			timers_submit(timers);
			timer->op = libhwt_queue_get(timers->queue);
		}
		timer->turn = timers->turn;
	}
	/*
	 * Once its deadline has passed, the timer may have an event in the ring. Look for it after
	 * any submission above, which updates the time and lets events into the ring.
	 */
	if (timer->due_ns && timer->due_ns <= timers->now_ns)
		check(libhwt_queue_forget(timers->queue, (uintptr_t)timer));
	op.id = (uintptr_t)timer;
	*timer->op = op;
}

/* Start a timer, or move it if it is running already. */
static void timer_start(struct timers *timers, struct timer *timer, uint64_t delay_ns)
{
	uint64_t due_ns = timers->now_ns + delay_ns;

	timer_change(timers, timer, (struct hwt_op) {
		.opcode = HWT_OP_SCHEDULE,
		.flags = HWT_ARM_ABSOLUTE,
		.time_ns = due_ns,
	});
	timer->due_ns = due_ns;
}

/* Stop a timer, which may be freed afterwards. */
static void timer_stop(struct timers *timers, struct timer *timer)
{
	if (timer->due_ns)
		timer_change(timers, timer, (struct hwt_op) { .opcode = HWT_OP_CANCEL });
	timer->due_ns = 0;
}

static void timer_event(const struct hwt_event *event)
{
	struct timer *timer = (struct timer *)(uintptr_t)event->id;

	/* The timer of an earlier event has stopped this one. */
	if (!event->kind)
		return;
	timer->due_ns = 0;
	timer->expire(timer);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *watcher, int revents)
{
	(void)loop;
	(void)revents;
	timers_submit(watcher->data);
}

static void on_check(struct ev_loop *loop, ev_check *watcher, int revents)
{
	(void)loop;
	(void)revents;
	timers_now_update(watcher->data);
}

static void on_readable(struct ev_loop *loop, ev_io *watcher, int revents)
{
	struct timers *timers = watcher->data;
	const struct hwt_event *events;
	int i, n;

	(void)loop;
	(void)revents;
	/* First, since events of timers that were stopped must not come. */
	timers_submit(timers);
	/* Once: libev reports the descriptor again if events are left. */
	n = libhwt_queue_peek(timers->queue, &events);
	check(n);
	timers_now_update(timers);
	for (i = 0; i < n; i++)
		timer_event(&events[i]);
	libhwt_queue_seen(timers->queue, n);
}

static void timers_init(struct timers *timers, struct ev_loop *loop)
{
	const struct libhwt_options keys = { .size = sizeof(keys), .flags = HWT_SETUP_KEYS };
	const struct libhwt_queue_options sizes = {
		.size = sizeof(sizes),
		.ops = QUEUE,
		.events = QUEUE,
	};

	/* Turn 0 is that of timers that have never been started. */
	*timers = (struct timers) { .loop = loop, .turn = 1 };
	check(libhwt_open(&timers->hwt, &keys));
	check(libhwt_queue_new(&timers->queue, timers->hwt, &sizes));
	timers_now_update(timers);
	ev_io_init(&timers->readable, on_readable, libhwt_fd(timers->hwt), EV_READ);
	timers->readable.data = timers;
	ev_io_start(loop, &timers->readable);
	ev_prepare_init(&timers->before_sleep, on_prepare);
	timers->before_sleep.data = timers;
	ev_prepare_start(loop, &timers->before_sleep);
	/* Update the time before any other watcher starts a timer. */
	ev_check_init(&timers->after_sleep, on_check);
	ev_set_priority(&timers->after_sleep, EV_MAXPRI);
	timers->after_sleep.data = timers;
	ev_check_start(loop, &timers->after_sleep);
}

static void timers_end(struct timers *timers)
{
	ev_io_stop(timers->loop, &timers->readable);
	ev_prepare_stop(timers->loop, &timers->before_sleep);
	ev_check_stop(timers->loop, &timers->after_sleep);
	libhwt_close(timers->hwt);
}

/* -- The program --------------------------------------------------------- */

#define SEC	1000000000ULL
#define HOUR_NS	(3600 * SEC)
#define LAPS	20

/* Only one of the two timers is in use. */
struct connection {
	struct timer		timer;
	ev_timer		ev;
	uint64_t		due_ns;		/* 0: nothing is due */
	bool			cancelled;
	struct connection	*rival;		/* stopped when this one expires */
};

static unsigned int count = 100000;
static struct connection *connections;
static struct ev_loop *loop;
static struct timers timers;
static bool with_libev;
static unsigned int fired, expected, wrong, laps;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * SEC + now.tv_nsec;
}

static void connection_wait(struct connection *connection, uint64_t delay_ns)
{
	if (with_libev) {
		connection->ev.repeat = delay_ns / 1e9;
		ev_timer_again(loop, &connection->ev);
	} else {
		timer_start(&timers, &connection->timer, delay_ns);
	}
}

static void connection_stop(struct connection *connection)
{
	if (with_libev)
		ev_timer_stop(loop, &connection->ev);
	else
		timer_stop(&timers, &connection->timer);
}

static void connection_expired(struct connection *connection)
{
	/* libev has its times as floating point: allow a microsecond. */
	if (!connection->due_ns || clock_ns(CLOCK_MONOTONIC) + 1000 < connection->due_ns)
		wrong++;
	connection->due_ns = 0;
	if (connection->rival) {
		connection_stop(connection->rival);
		connection->rival->due_ns = 0;
	}
	if (++fired == expected)
		ev_break(loop, EVBREAK_ALL);
}

static void on_timer(struct timer *timer)
{
	connection_expired((struct connection *)((char *)timer -
						 offsetof(struct connection, timer)));
}

static void on_ev_timer(struct ev_loop *ev_loop, ev_timer *watcher, int revents)
{
	(void)revents;
	ev_timer_stop(ev_loop, watcher);
	connection_expired(watcher->data);
}

/* Set the time from which delays count to now. */
static void now_update(void)
{
	ev_now_update(loop);
	if (!with_libev)
		timers_now_update(&timers);
}

/* -- Measuring ----------------------------------------------------------- */

enum { ARM, PUSH_BACK, CANCEL, FIRE, FIGURES };

/* The figure of "fire" is processor time, including that of the kernel's threads. */
static const char *const names[FIGURES] = {
	"arm (ns)", "push back (ns)", "cancel (ns)", "fire (ns)"
};

struct result {
	double	ns[FIGURES];
	double	program_bytes;
	double	kernel_bytes;
};

static uint64_t random_next(void)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static void shuffle(uint32_t *order)
{
	uint32_t i, j, swap;

	for (i = count - 1; i; i--) {
		j = random_next() % (i + 1);
		swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
}

/* Return the value of a line "NAME: 1234 kB" of a file of /proc, in bytes; 0 if there is none. */
static double kilobytes(const char *path, const char *name)
{
	unsigned long value = 0;
	char line[256];
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, strlen(name)))
			value = strtoul(line + strlen(name), NULL, 10);
	}
	if (file)
		fclose(file);
	return value * 1024.0;
}

/* Read the first line of /proc/PID/NAME. */
static bool proc_read(const char *pid, const char *name, char *text, int size)
{
	char path[300];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	file = fopen(path, "r");
	if (!file)
		return false;
	ok = fgets(text, size, file);
	fclose(file);
	return ok;
}

/* Return the processor time of this program and of the kernel's threads named hwt... */
static uint64_t cpu_ns(void)
{
	uint64_t sum = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char text[80];

	while (proc && (entry = readdir(proc))) {
		if (proc_read(entry->d_name, "comm", text, sizeof(text)) &&
		    !strncmp(text, "hwt", 3) &&
		    proc_read(entry->d_name, "schedstat", text, sizeof(text)))
			sum += strtoull(text, NULL, 10);
	}
	if (proc)
		closedir(proc);
	return sum;
}

/* Measure calls of @what for @n random connections, with the loop's turn that carries them out. */
static void each(struct result *result, int figure, uint32_t *order, unsigned int n,
		 void (*what)(struct connection *connection))
{
	uint64_t begin;
	unsigned int i;

	shuffle(order);
	now_update();
	begin = clock_ns(CLOCK_MONOTONIC);
	for (i = 0; i < n; i++)
		what(&connections[order[i]]);
	ev_run(loop, EVRUN_NOWAIT);
	result->ns[figure] = (double)(clock_ns(CLOCK_MONOTONIC) - begin) / n;
}

static void arm(struct connection *connection)
{
	connection_wait(connection, HOUR_NS + random_next() % HOUR_NS);
}

static void push_back(struct connection *connection)
{
	connection_wait(connection, 2 * HOUR_NS + random_next() % HOUR_NS);
}

static void cancel(struct connection *connection)
{
	connection_stop(connection);
	connection->cancelled = true;
}

/* Let all timeouts that were not cancelled fire within half a second, after the last was moved. */
static void fire(struct result *result)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), delay_ns, lead_ns;
	unsigned int i;

	lead_ns = 3 * count * result->ns[PUSH_BACK];
	lead_ns += SEC / 5;
	now_update();
	for (i = 0; i < count; i++) {
		if (connections[i].cancelled)
			continue;
		delay_ns = lead_ns + random_next() % (SEC / 2);
		connections[i].due_ns = begin + delay_ns;
		connection_wait(&connections[i], delay_ns);
		expected++;
	}
	ev_run(loop, EVRUN_NOWAIT);
	begin = cpu_ns();
	if (fired < expected)
		ev_run(loop, 0);
	result->ns[FIRE] = (double)(cpu_ns() - begin) / expected;
	/* Handle any further events: the caller finds that too many have fired. */
	ev_run(loop, EVRUN_NOWAIT);
}

/* Let pairs of timeouts fire at once: the first stops the second, which may have an event, too. */
static void race(void)
{
	struct connection *pair;
	unsigned int i, n = count < 2000 ? count & ~1U : 2000;

	fired = 0;
	expected = n / 2;
	now_update();
	for (i = 0; i < n; i++) {
		pair = &connections[i & ~1U];
		connections[i].rival = i % 2 ? pair : pair + 1;
		connections[i].due_ns = clock_ns(CLOCK_MONOTONIC);
		connection_wait(&connections[i], SEC / 10);
	}
	ev_run(loop, 0);
	ev_run(loop, EVRUN_NOWAIT);
	if (fired != expected)
		wrong++;
}

/* Stop a timeout that is due, with an operation that the full queue has no room for. */
static void stop_when_full(void)
{
	unsigned int i;

	if (with_libev || count <= QUEUE)
		return;
	now_update();
	connection_wait(&connections[0], SEC / 100);
	ev_run(loop, EVRUN_NOWAIT);
	for (i = 1; i <= QUEUE; i++)
		connection_wait(&connections[i], HOUR_NS);
	usleep(100000);
	for (i = 0; i <= QUEUE; i++)
		connection_stop(&connections[i]);
	/* If the first one fires nevertheless, connection_expired() counts that as wrong. */
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
}

/* Start a timeout again that is due before its handler returns: each time is a turn of its own. */
static void on_lap(struct timer *timer)
{
	struct hwt_get_args get = { .size = sizeof(get) };

	if (++laps == LAPS) {
		ev_break(loop, EVBREAK_ALL);
		return;
	}
	timer_start(&timers, timer, 0);
	timers_submit(&timers);
	/* There is no such timeout if its event is in the ring already. */
	do {
		usleep(1000);
	} while (!libhwt_get(timers.hwt, (uintptr_t)timer, &get) &&
		 get.state != HWT_STATE_EVENT);
}

/* A timeout that is always due does not keep other descriptors from their turns. */
static void take_turns(void)
{
	struct timer *timer = &connections[0].timer;
	unsigned int before = ev_iteration(loop);

	if (with_libev)
		return;
	timer->expire = on_lap;
	laps = 0;
	now_update();
	timer_start(&timers, timer, 0);
	ev_run(loop, 0);
	if (ev_iteration(loop) - before < LAPS)
		wrong++;
}

static double program_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void measure(struct result *result)
{
	uint32_t *order = calloc(count, sizeof(*order));
	double program, kernel;
	unsigned int i;

	connections = calloc(count, sizeof(*connections));
	if (!order || !connections)
		err(1, "connections");
	for (i = 0; i < count; i++) {
		order[i] = i;
		connections[i].timer.expire = on_timer;
		ev_init(&connections[i].ev, on_ev_timer);
		connections[i].ev.data = &connections[i];
	}
	fired = 0;
	expected = 0;
	program = program_bytes();
	kernel = kilobytes("/proc/meminfo", "Slab:");
	each(result, ARM, order, count, arm);
	result->program_bytes = (program_bytes() - program) / count +
				(with_libev ? sizeof(ev_timer) : sizeof(struct timer));
	result->kernel_bytes = (kilobytes("/proc/meminfo", "Slab:") - kernel) / count;
	each(result, PUSH_BACK, order, count, push_back);
	each(result, CANCEL, order, count / 2, cancel);
	fire(result);
	if (fired != expected)
		wrong++;
	race();
	stop_when_full();
	take_turns();
	free(connections);
	free(order);
}

static void measure_with(struct result *result, bool libev)
{
	with_libev = libev;
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!loop)
		errx(1, "libev cannot make a loop");
	if (!libev)
		timers_init(&timers, loop);
	measure(result);
	if (!libev)
		timers_end(&timers);
	ev_loop_destroy(loop);
}

static void usage(void)
{
	puts("Usage: libhwt_ev [OPTION]...\n"
	     "Arm, push back, cancel and let fire many timeouts, in a libev program with libev's\n"
	     "timers and in the same with libhwt, and print what each has cost.\n"
	     "\n"
	     "  -n, --count=COUNT  so many timeouts (default 100000)\n"
	     "  -h, --help         print this");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "help",  no_argument,       NULL, 'h' },
		{ }
	};
	struct result libev, libhwt;
	char *end;
	int option, i;

	while ((option = getopt_long(argc, argv, "n:h", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			count = strtoul(optarg, &end, 10);
			if (*end || count < 2 || count > 10000000)
				errx(2, "--count=%s is not a number in 2..10000000", optarg);
			break;
		case 'h':
			usage();
			return 0;
		default:
			return 2;
		}
	}
	measure_with(&libev, true);
	measure_with(&libhwt, false);

	printf("%u timeouts\n", count);
	printf("%-28s %10s %10s\n", "", "libev", "libhwt");
	for (i = 0; i < FIGURES; i++)
		printf("%-28s %10.0f %10.0f\n", names[i], libev.ns[i], libhwt.ns[i]);
	printf("%-28s %10.0f %10.0f\n", "memory, program (bytes)", libev.program_bytes,
	       libhwt.program_bytes);
	printf("%-28s %10.0f %10.0f\n", "memory, kernel (bytes)", libev.kernel_bytes,
	       libhwt.kernel_bytes);
	if (wrong)
		errx(1, "timeouts fired that should not, or did not though they should");
	return 0;
}
