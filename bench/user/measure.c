// SPDX-License-Identifier: GPL-2.0-only
/*
 * A run of a peer, in its own process, so that memory, descriptors and timers do not last until the
 * next run.
 */
#include "user_bench.h"
#include <stdarg.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* Time before the common deadline in which a run only waits; and the end of it, which counts. */
#define BEFORE_DUE_NS	(20 * MSEC)
#define BEFORE_REAP_NS	MSEC

struct outcome *outcome;
unsigned int time_limit = 3;
__u64 deadline_ns;

/* End the process, with a reason. */
void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(outcome->why, sizeof(outcome->why), format, args);
	va_end(args);
	_exit(1);
}

void give_up_errno(const char *call)
{
	give_up("%s: %s", call, strerror(errno));
}

/*
 * Allocate memory without later page faults in a measurement, and always from new pages, unlike
 * malloc().
 */
void *alloc_touched(size_t count, size_t size)
{
	void *memory = mmap(NULL, count * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		give_up_errno("mmap");
	return memset(memory, 0xff, count * size);
}

/* Read inherited memory, which on some kernels (UML) faults once more. */
static void touch(const struct todo *todo, unsigned int count)
{
	static volatile __u32 sink;
	unsigned int i;

	for (i = 0; i < count; i++)
		sink = todo[i].timer;
	(void)sink;
}

/* -- create, rearm, cancel ----------------------------------------------- */

static void do_all(const struct peer *peer, enum operation op, const struct todo *todo,
		   unsigned int count)
{
	__u64 limit_ns = time_limit * SEC * (op == CREATE ? CREATE_PATIENCE : 1);
	__u64 start = now_ns();
	unsigned int done = 0, step;

	while (done < count && now_ns() - start < limit_ns) {
		/* Checked so rarely that the time is not affected. */
		if (op == CREATE && !(done & 0xffff) && memory_is_short())
			give_up("memory is short");
		step = count - done < batch_size ? count - done : batch_size;
		peer->operate(op, todo + done, step);
		done += step;
		outcome->done[op] = done;
	}
	if (op == CREATE && done < count)
		give_up("not created in %llu s", limit_ns / SEC);
}

static void measure_operation(const struct peer *peer, enum operation op,
			      const struct todo *todo, unsigned int count)
{
	__u64 start_ns = now_ns();

	do_all(peer, op, todo, count);
	outcome->took_ns[op] = now_ns() - start_ns;
	outcome->value[CREATE_WALL + op] = (double)outcome->took_ns[op] / outcome->done[op];
}

static void peer_open(const struct peer *peer, unsigned int count)
{
	if (peer->open)
		peer->open(count);
}

void measure_operations(const struct peer *peer, struct todo *const todo[OPERATIONS],
			unsigned int count)
{
	struct memory before, after;
	unsigned int op;
	__u64 start;

	for (op = 0; op < OPERATIONS; op++)
		touch(todo[op], count);
	memory_settle();
	memory_read(&before);
	peer_open(peer, count);
	start = now_ns();
	measure_operation(peer, CREATE, todo[CREATE], count);
	memory_read(&after);
	outcome->value[MEMORY_SLAB] = (after.slab - before.slab) / count;
	outcome->value[MEMORY_RSS] = (after.rss - before.rss) / count;
	measure_operation(peer, REARM, todo[REARM], count);
	measure_operation(peer, CANCEL, todo[CANCEL], count);
	if (now_ns() - start >= delay_floor_ns())
		give_up("too slow: timers have fired in between");
}

/* -- reap ---------------------------------------------------------------- */

/* Use the CPU whenever it is idle: the turns that are missing are time of others. */
static void spin(void)
{
	struct sched_param param = {};
	cpu_set_t cpu;
	pid_t pid;

	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	pid = fork();
	if (pid < 0)
		give_up_errno("fork");
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sched_setscheduler(0, SCHED_IDLE, &param))
		_exit(1);
	for (;;)
		outcome->spins++;
}

void measure_reap(const struct peer *peer, const struct todo *create, unsigned int count,
		  __u64 lead_ns)
{
	__u64 ns[3], spins[3];
	double each = count;
	int i;

	spin();
	peer_open(peer, count);
	deadline_ns = now_ns() + lead_ns;
	do_all(peer, CREATE, create, count);
	if (now_ns() > deadline_ns - BEFORE_DUE_NS) {
		outcome->late = true;
		return;
	}
	for (i = 0; i < 3; i++) {
		if (i < 2)
			sleep_until(deadline_ns - (i ? BEFORE_REAP_NS : BEFORE_DUE_NS));
		else
			peer->reap(count);
		ns[i] = now_ns();
		spins[i] = outcome->spins;
	}
	outcome->value[REAP_DUE] = (ns[2] - deadline_ns) / each;
	outcome->value[REAP_CPU] = (ns[2] - ns[1] - (double)(spins[2] - spins[1]) *
				    (ns[1] - ns[0]) / (spins[1] - spins[0])) / each;
}
