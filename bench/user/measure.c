// SPDX-License-Identifier: GPL-2.0-only
/*
 * A run of a peer, in its own process, so that memory, descriptors and timers do not last until the
 * next run.
 */
#include "user_bench.h"
#include <stdarg.h>
#include <sys/mman.h>

/* Time for a thread of the kernel to finish a peer's work. */
#define ENGINE_LAG_NS	(300 * MSEC)
/* Time before the common deadline in which a run only waits. */
#define BEFORE_DUE_NS	(20 * MSEC)

struct outcome *outcome;
unsigned int time_limit = 3;
__u64 deadline_ns;

static __u64 first_ns;

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
	__u64 engine_ns = peer->engine_ns ? peer->engine_ns() : 0, start_ns = now_ns();
	double done;

	do_all(peer, op, todo, count);
	outcome->took_ns[op] = now_ns() - start_ns;
	done = outcome->done[op];
	outcome->value[CREATE_WALL + op] = outcome->took_ns[op] / done;
	if (peer->engine_ns) {
		sleep_until(now_ns() + ENGINE_LAG_NS);
		outcome->value[CREATE_ENGINE + op] = (peer->engine_ns() - engine_ns) / done;
	}
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

/* A peer calls this when it knows that the first timer has fired. */
void reap_first(void)
{
	first_ns = now_ns();
}

void measure_reap(const struct peer *peer, const struct todo *create, unsigned int count,
		  __u64 lead_ns)
{
	double each = count;
	__u64 engine_ns, end_ns;

	peer_open(peer, count);
	deadline_ns = now_ns() + lead_ns;
	do_all(peer, CREATE, create, count);
	if (now_ns() > deadline_ns - BEFORE_DUE_NS) {
		outcome->late = true;
		return;
	}
	sleep_until(deadline_ns - BEFORE_DUE_NS);
	engine_ns = peer->engine_ns ? peer->engine_ns() : 0;
	peer->reap(count);
	end_ns = now_ns();
	outcome->value[REAP_WALL] = (end_ns - first_ns) / each;
	outcome->value[REAP_DUE] = (end_ns - deadline_ns) / each;
	if (peer->engine_ns)
		outcome->value[REAP_ENGINE] = (peer->engine_ns() - engine_ns) / each;
}
