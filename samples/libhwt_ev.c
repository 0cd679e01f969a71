// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A libev program with 100,000 timeouts, whose timers are replaced by libhwt: the same program
 * twice, and what each way has cost.
 *
 * What one needs to do so is the adapter, the first half: timer_start() and timer_stop() instead
 * of ev_timer_again() and ev_timer_stop(), all timeouts on one descriptor which libev watches.
 * Before libev goes to sleep, the adapter carries out by one system call what has changed
 * since: a timer that was pushed back ten times meanwhile is pushed back once.
 *
 * libev's own timers are a heap in the program's memory: for a single operation that is hard to
 * beat. What is to be seen here is how near it comes, for timeouts that also outlive a change
 * of the loop, can be listed and saved, or be shared with other threads and processes.
 *
 * hwt-test: libs hwt ev
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <ev.h>
#include <getopt.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libhwt.h"

/* -- The adapter --------------------------------------------------------- */

#define NONE	UINT32_MAX	/* no slot */

struct timer {
	void		(*expire)(struct timer *timer);
	uint32_t	slot;
};

/*
 * What the kernel knows a timer by. An event names the slot, never the timer: that may be gone
 * by the time when the event is read.
 */
struct slot {
	struct timer	*timer;		/* NULL: was stopped */
	uint64_t	id;		/* 0: the kernel has none */
	uint64_t	delay_ns;
	uint32_t	next;		/* free, or changed */
	bool		changed;	/* the kernel is to be told */
};

#define QUEUE	4096

struct timers {
	struct ev_loop		*loop;
	struct libhwt		*hwt;
	struct libhwt_queue	*queue;
	ev_io			readable;
	ev_prepare		before_sleep;
	struct slot		*slots;
	uint32_t		slots_max;
	uint32_t		free;
	uint32_t		changed;
	uint32_t		sent[QUEUE];	/* slots of the operations in the queue */
	unsigned int		sent_n;
};

static void slot_change(struct timers *timers, uint32_t number)
{
	struct slot *slot = &timers->slots[number];

	if (slot->changed)
		return;
	slot->changed = true;
	slot->next = timers->changed;
	timers->changed = number;
}

static void slot_free(struct timers *timers, uint32_t number)
{
	timers->slots[number].next = timers->free;
	timers->free = number;
}

static uint32_t slot_alloc(struct timers *timers)
{
	uint32_t number, max = timers->slots_max;

	if (timers->free == NONE) {
		timers->slots_max = max ? 2 * max : 1024;
		timers->slots = realloc(timers->slots,
					timers->slots_max * sizeof(*timers->slots));
		if (!timers->slots)
			err(1, "timers");
		for (number = max; number < timers->slots_max; number++)
			slot_free(timers, number);
	}
	number = timers->free;
	timers->free = timers->slots[number].next;
	memset(&timers->slots[number], 0, sizeof(*timers->slots));
	return number;
}

static void timer_init(struct timer *timer, void (*expire)(struct timer *timer))
{
	timer->expire = expire;
	timer->slot = NONE;
}

/* Also if it is running already: then it is pushed back. */
static void timer_start(struct timers *timers, struct timer *timer, uint64_t delay_ns)
{
	struct slot *slot;

	if (timer->slot == NONE) {
		timer->slot = slot_alloc(timers);
		timers->slots[timer->slot].timer = timer;
	}
	slot = &timers->slots[timer->slot];
	slot->delay_ns = delay_ns;
	slot_change(timers, timer->slot);
}

/* The timer may be freed afterwards. */
static void timer_stop(struct timers *timers, struct timer *timer)
{
	if (timer->slot == NONE)
		return;
	timers->slots[timer->slot].timer = NULL;
	slot_change(timers, timer->slot);
	timer->slot = NONE;
}

static void timer_result(struct timers *timers, uint32_t number, const struct hwt_op *op)
{
	struct slot *slot = &timers->slots[number];

	/*
	 * The event was in the ring already, or has just been read. It will not be taken for
	 * one of ours: its id is not that of the slot any more.
	 */
	if (op->result == -ENOENT) {
		slot->id = 0;
		slot_change(timers, number);
		return;
	}
	if (op->result < 0)
		errx(1, "libhwt: %s", strerror(-op->result));
	if (op->opcode == HWT_OP_SCHEDULE)
		slot->id = op->id;
	if (op->opcode == HWT_OP_CANCEL)
		slot_free(timers, number);
}

static void timers_submit(struct timers *timers)
{
	struct hwt_op ops[64];
	unsigned int done = 0;
	int i, n, ret;

	ret = libhwt_queue_submit(timers->queue);
	if (ret)
		errx(1, "libhwt: %s", strerror(-ret));
	while ((n = libhwt_queue_results(timers->queue, ops, 64)) > 0) {
		for (i = 0; i < n; i++)
			timer_result(timers, timers->sent[done++], &ops[i]);
	}
	timers->sent_n = 0;
}

static void timer_send(struct timers *timers, uint32_t number)
{
	struct slot *slot = &timers->slots[number];

	if (!slot->timer && !slot->id) {
		slot_free(timers, number);
		return;
	}
	if (!slot->timer)
		libhwt_queue_cancel(timers->queue, slot->id);
	else if (slot->id)
		libhwt_queue_modify(timers->queue, slot->id, slot->delay_ns);
	else
		libhwt_queue_after(timers->queue, slot->delay_ns, number);
	timers->sent[timers->sent_n++] = number;
	if (timers->sent_n == QUEUE)
		timers_submit(timers);
}

static void timers_flush(struct timers *timers)
{
	uint32_t number;

	while (timers->changed != NONE) {
		number = timers->changed;
		timers->changed = timers->slots[number].next;
		timers->slots[number].changed = false;
		timer_send(timers, number);
		/* Results may bring back some as changed. */
		if (timers->changed == NONE && timers->sent_n)
			timers_submit(timers);
	}
}

static void on_prepare(struct ev_loop *loop, ev_prepare *watcher, int revents)
{
	(void)loop;
	(void)revents;
	timers_flush(watcher->data);
}

static void timer_event(struct timers *timers, const struct hwt_event *event)
{
	uint32_t number = event->user_data;
	struct slot *slot = &timers->slots[number];
	struct timer *timer = slot->timer;

	/* Of a timer that was cancelled or pushed back when the event was on its way */
	if (slot->id != event->id)
		return;
	slot->id = 0;
	/* ... or has been so since: that is still to be sent. */
	if (slot->changed)
		return;
	slot_free(timers, number);
	timer->slot = NONE;
	timer->expire(timer);
}

static void on_readable(struct ev_loop *loop, ev_io *watcher, int revents)
{
	struct timers *timers = watcher->data;
	struct hwt_event events[256];
	int i, n;

	(void)loop;
	(void)revents;
	do {
		n = libhwt_next(timers->hwt, events, 256, 0);
		if (n < 0 && n != -EINTR)
			errx(1, "libhwt: %s", strerror(-n));
		for (i = 0; i < n; i++)
			timer_event(timers, &events[i]);
	} while (n == 256);
}

static void timers_init(struct timers *timers, struct ev_loop *loop, unsigned int flags)
{
	const struct libhwt_queue_options options = {
		.size = sizeof(options),
		.flags = flags,
		.ops = QUEUE,
		.events = QUEUE,
	};
	int ret;

	memset(timers, 0, sizeof(*timers));
	timers->loop = loop;
	timers->free = NONE;
	timers->changed = NONE;
	ret = libhwt_open(&timers->hwt, NULL);
	if (!ret)
		ret = libhwt_queue_new(&timers->queue, timers->hwt, &options);
	if (ret)
		errx(1, "/dev/hwt: %s", strerror(-ret));
	ev_io_init(&timers->readable, on_readable, libhwt_fd(timers->hwt), EV_READ);
	timers->readable.data = timers;
	ev_io_start(loop, &timers->readable);
	ev_prepare_init(&timers->before_sleep, on_prepare);
	timers->before_sleep.data = timers;
	ev_prepare_start(loop, &timers->before_sleep);
}

static void timers_end(struct timers *timers)
{
	ev_io_stop(timers->loop, &timers->readable);
	ev_prepare_stop(timers->loop, &timers->before_sleep);
	libhwt_close(timers->hwt);
	free(timers->slots);
}

/* -- The program --------------------------------------------------------- */

#define SEC	1000000000ULL
#define HOUR_NS	(3600 * SEC)

/* One of the timers only is in use. */
struct connection {
	struct timer	timer;
	ev_timer	ev;
	uint64_t	due_ns;		/* 0: nothing is due */
	bool		cancelled;
};

static unsigned int count = 100000;
static struct connection *connections;
static struct ev_loop *loop;
static struct timers timers;
static bool with_libev;
static unsigned int fired, expected, wrong;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * SEC + now.tv_nsec;
}

static void connection_expired(struct connection *connection)
{
	/* libev has its times as floating point: allow a microsecond. */
	if (!connection->due_ns || clock_ns(CLOCK_MONOTONIC) + 1000 < connection->due_ns)
		wrong++;
	connection->due_ns = 0;
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

/* -- Measuring ----------------------------------------------------------- */

enum { ARM, PUSH_BACK, CANCEL, FIRE, FIGURES };

/* Of a fire: processor time, that of the kernel's thread included */
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

/* A line "NAME: 1234 kB" of a file of /proc, in bytes; 0 if there is none. */
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

/* The first line of /proc/PID/NAME */
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

/* Processor time of this program and of the kernel's threads for timeouts (named hwt...). */
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

/* For each of the first @n in a random order, and have it carried out. */
static void each(struct result *result, int figure, uint32_t *order, unsigned int n,
		 void (*what)(struct connection *connection))
{
	uint64_t begin;
	unsigned int i;

	shuffle(order);
	ev_now_update(loop);
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

/* Those that are left, within half a second, when all of them have been told so. */
static void fire(struct result *result)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), delay_ns, lead_ns;
	unsigned int i;

	lead_ns = 3 * count * result->ns[PUSH_BACK];
	lead_ns += SEC / 5;
	ev_now_update(loop);
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
	/* Nothing comes that is not expected. */
	ev_run(loop, EVRUN_NOWAIT);
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
		timer_init(&connections[i].timer, on_timer);
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
	free(connections);
	free(order);
}

static void measure_libev(struct result *result)
{
	with_libev = true;
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!loop)
		errx(1, "libev cannot make a loop");
	measure(result);
	ev_loop_destroy(loop);
}

static const char *measure_libhwt(struct result *result, unsigned int flags)
{
	static const char *const kinds[] = {
		[LIBHWT_QUEUE_RINGS] = "rings",
		[LIBHWT_QUEUE_BATCH] = "batches",
		[LIBHWT_QUEUE_CALLS] = "single calls",
	};
	const char *kind;

	with_libev = false;
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!loop)
		errx(1, "libev cannot make a loop");
	timers_init(&timers, loop, flags);
	kind = kinds[libhwt_queue_kind(timers.queue)];
	measure(result);
	timers_end(&timers);
	ev_loop_destroy(loop);
	return kind;
}

static void usage(void)
{
	puts("Usage: libhwt_ev [OPTION]...\n"
	     "Arm, push back, cancel and let fire many timeouts, in a libev program with libev's\n"
	     "timers and in the same with libhwt, and print what each has cost.\n"
	     "\n"
	     "  -n, --count=COUNT  so many timeouts (default 100000)\n"
	     "  -b, --batches      libhwt is to use batches, not rings\n"
	     "  -c, --calls        libhwt is to use a system call for each operation\n"
	     "  -h, --help         print this");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count",   required_argument, NULL, 'n' },
		{ "batches", no_argument,       NULL, 'b' },
		{ "calls",   no_argument,       NULL, 'c' },
		{ "help",    no_argument,       NULL, 'h' },
		{ }
	};
	struct result libev, libhwt;
	unsigned int flags = 0;
	const char *kind;
	char *end;
	int option, i;

	while ((option = getopt_long(argc, argv, "n:bch", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			count = strtoul(optarg, &end, 10);
			if (*end || count < 2 || count > 10000000)
				errx(2, "--count=%s is not a number in 2..10000000", optarg);
			break;
		case 'b':
			flags = LIBHWT_QUEUE_NO_RINGS;
			break;
		case 'c':
			flags = LIBHWT_QUEUE_NO_RINGS | LIBHWT_QUEUE_NO_BATCH;
			break;
		case 'h':
			usage();
			return 0;
		default:
			return 2;
		}
	}
	measure_libev(&libev);
	kind = measure_libhwt(&libhwt, flags);

	printf("%u timeouts; libhwt by %s\n", count, kind);
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
