// SPDX-License-Identifier: GPL-2.0-only
/*
 * One run of one peer. It has a process of its own, so that memory, descriptors and
 * timers of one run are not there in the next.
 */
#include "user_bench.h"
#include <stdarg.h>
#include <sys/mman.h>

/* A peer whose work a thread of the kernel ends is given so long to do that. */
#define ENGINE_LAG_NS	(300 * NSEC_PER_MSEC)
/* From here on a run only waits for the common deadline. */
#define BEFORE_DUE_NS	(20 * NSEC_PER_MSEC)

struct outcome *outcome;
unsigned int time_limit = 3;

static __u64 first_ns;

struct meter {
	__u64	wall;
	__u64	cpu;
	__u64	engine;
};

/* Ends the process. */
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
 * Nothing that is measured waits for its first page fault, and nothing comes from pages that
 * are there already, as it may with malloc().
 */
void *alloc_touched(size_t count, size_t size)
{
	void *memory = mmap(NULL, count * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		give_up_errno("mmap");
	return memset(memory, 0xff, count * size);
}

/* The same for what was inherited, which on some kernels (UML) faults once more. */
static void touch(const struct todo *todo, unsigned int count)
{
	static volatile __u32 sink;
	unsigned int i;

	for (i = 0; i < count; i++)
		sink = todo[i].timer;
	(void)sink;
}

static void meter_read(const struct peer *peer, struct meter *meter)
{
	meter->engine = peer->engine_ns ? peer->engine_ns() : 0;
	meter->cpu = cpu_ns();
	meter->wall = now_ns();
}

/* -- create, rearm, cancel ----------------------------------------------- */

static void do_all(const struct run *run, enum operation op, const struct todo *todo)
{
	const operate_fn operate[OPERATIONS] = {
		[CREATE] = run->peer->create,
		[REARM]	 = run->peer->rearm,
		[CANCEL] = run->peer->cancel,
	};
	__u64 limit_ns = time_limit * NSEC_PER_SEC * (op == CREATE ? CREATE_PATIENCE : 1);
	__u64 start = now_ns();
	unsigned int done = 0, step;

	while (done < run->count && now_ns() - start < limit_ns) {
		/* Too seldom to be seen in the time. */
		if (op == CREATE && !(done & 0xffff) && memory_is_short())
			give_up("memory is short");
		step = run->count - done < BATCH ? run->count - done : BATCH;
		operate[op](run, todo + done, step);
		done += step;
		outcome->done[op] = done;
	}
	if (op == CREATE && done < run->count)
		give_up("not made in %llu s", limit_ns / NSEC_PER_SEC);
}

static void measure_operation(const struct run *run, enum operation op,
			      const struct todo *todo)
{
	const struct peer *peer = run->peer;
	struct meter start, end;
	double done;

	meter_read(peer, &start);
	do_all(run, op, todo);
	end.wall = now_ns();
	end.cpu = cpu_ns();
	done = outcome->done[op];
	outcome->took_ns[op] = end.wall - start.wall;
	outcome->value[CREATE_WALL + op] = (end.wall - start.wall) / done;
	outcome->value[CREATE_CPU + op] = (end.cpu - start.cpu) / done;
	if (peer->engine_ns) {
		sleep_until(now_ns() + ENGINE_LAG_NS);
		end.engine = peer->engine_ns();
		outcome->value[CREATE_ENGINE + op] = (end.engine - start.engine) / done;
	}
}

static void measure_memory(const struct run *run, const struct memory *before)
{
	struct memory after;

	memory_read(&after);
	outcome->value[MEMORY_SLAB] = (after.slab - before->slab) / run->count;
	outcome->value[MEMORY_RSS] = (after.rss - before->rss) / run->count;
	outcome->value[MEMORY_FREE] = (before->free - after.free) / run->count;
}

void measure_operations(struct run *run, struct todo *const todo[OPERATIONS])
{
	struct memory before;
	unsigned int op;
	__u64 start;

	for (op = 0; op < OPERATIONS; op++)
		touch(todo[op], run->count);
	memory_settle();
	memory_read(&before);
	run->peer->open(run);
	start = now_ns();
	measure_operation(run, CREATE, todo[CREATE]);
	measure_memory(run, &before);
	measure_operation(run, REARM, todo[REARM]);
	measure_operation(run, CANCEL, todo[CANCEL]);
	if (now_ns() - start >= delay_floor_ns())
		give_up("so slow that timers have fired in between");
}

/* -- reap ---------------------------------------------------------------- */

/* The peer has seen that the first timer has fired. */
void reap_first(void)
{
	first_ns = now_ns();
}

void measure_reap(struct run *run, const struct todo *create, __u64 lead_ns)
{
	const struct peer *peer = run->peer;
	struct meter start, end;
	double count = run->count;

	peer->open(run);
	run->deadline_ns = now_ns() + lead_ns;
	do_all(run, CREATE, create);
	if (now_ns() > run->deadline_ns - BEFORE_DUE_NS) {
		outcome->late = true;
		return;
	}
	sleep_until(run->deadline_ns - BEFORE_DUE_NS);
	meter_read(peer, &start);
	peer->reap(run);
	meter_read(peer, &end);
	outcome->value[REAP_WALL] = (end.wall - first_ns) / count;
	outcome->value[REAP_DUE] = (end.wall - run->deadline_ns) / count;
	outcome->value[REAP_CPU] = (end.cpu - start.cpu) / count;
	if (peer->engine_ns)
		outcome->value[REAP_ENGINE] = (end.engine - start.engine) / count;
}
