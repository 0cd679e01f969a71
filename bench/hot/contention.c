// SPDX-License-Identifier: GPL-2.0-only
/*
 * contention [-q]: hwt's hot path on several real cores at once
 *
 * Peers
 *	hwt		the caller's CPU time
 *	hwt-all		that, and the engine's until it has collected all submissions
 *	locked		the same buckets, each operation by its caller under one spinlock
 *
 * Operations, each by 1 to all cores at once
 *	arm		each thread arms its own timeouts, at absolute deadlines
 *	push_back	each thread pushes back its own timeouts, which are in buckets
 *	push_back_same	all threads push back the same 64 timeouts
 *	cancel		each thread cancels its own timeouts, which are in buckets
 *	arm_other	each thread arms a few thousand of its own timeouts ...
 *	cancel_other	... and then cancels those of the next thread
 *
 * Each operation visits the objects in its own random order. Times are the threads' CPU time, so
 * that other load counts little; waiting for a spinlock is CPU time. The engine's thread is not
 * pinned; with as many threads as cores it shares a core.
 */
#include <unistd.h>

#include "core/clock.h"
#include "core/engine.h"
#include "core/kick.h"
#include "core/wheel.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"
#include "bench.h"

#define ITEMS_MAX	1000000U		/* of a thread */
#define ITEMS_ALL	8000000U	/* of all threads, as far as memory goes */
#define SAME		64
#define CHUNK		8192

enum op { ARM, PUSH_BACK, PUSH_BACK_SAME, CANCEL, ARM_OTHER, CANCEL_OTHER, OPS };

static const char * const op_names[OPS] = {
	"arm", "push_back", "push_back_same", "cancel", "arm_other", "cancel_other",
};

struct worker {
	pthread_t		thread;
	unsigned int		number;
	struct bench_item	*items;
	u32			*order[OPS];
	u64			random;
	u64			ns[OPS];
};

static unsigned int items_each;
static unsigned int workers_count;
static struct worker *workers;
static struct hwt_wheel *wheel;
static struct hwt_shard *base;	/* if @locked */
static bool locked;	/* the peer: buckets and a lock */
static pthread_barrier_t phase_barrier, chunk_barrier;
static u64 base_ns, base_tsc;

/* -- The peers ----------------------------------------------------------- */

static void never_fires(struct hwt_timeout *timeout)
{
	abort();
}

static const struct hwt_timeout_ops ops = { .expire = never_fires };

static void arm(struct hwt_timeout *timeout, u64 deadline_ns)
{
	if (locked)
		base_arm(base, timeout, deadline_ns);
	else
		hwt_schedule_at(timeout, deadline_ns);
}

static void cancel(struct hwt_timeout *timeout)
{
	if (locked)
		base_cancel(base, timeout);
	else
		hwt_cancel(timeout);
}

static void wheel_make(void)
{
	if (locked)
		base = base_create(ktime_get_ns());
	else
		wheel = hwt_wheel_create(NULL);
	if (IS_ERR(wheel))
		exit(1);
}

/* Destroy the wheel. Each timeout must have been armed twice and cancelled twice. */
static void wheel_unmake(void)
{
	struct hwt_wheel_stats stats;
	u64 expected = 2ULL * workers_count * items_each;

	if (locked) {
		base_destroy(base);
		return;
	}
	hwt_wheel_get_stats(wheel, &stats);
	if (stats.scheduled != expected || stats.cancelled != expected) {
		fprintf(stderr, "scheduled %lu, cancelled %lu, instead of %lu\n",
			stats.scheduled, stats.cancelled, expected);
		exit(1);
	}
	hwt_wheel_destroy(wheel);
}

/* Wait until the engine has collected all submissions. */
static void wheel_settle(void)
{
	unsigned int i, j;

	if (locked)
		return;
	hwt_engine_kick(wheel->first_shard, 0);
	for (i = 0; i < workers_count; i++)
		for (j = 0; j < items_each; j++)
			while (hwt_timeout_state(&workers[i].items[j].timeout) &
			       HWT_F_SUBMITTED)
				usleep(100);
}

static u64 engine_ns(void)
{
	clockid_t clock;

	if (locked)
		return 0;
	pthread_getcpuclockid(wheel->first_shard->thread->thread, &clock);
	return shim_clock_ns(clock);
}

/* -- The workers --------------------------------------------------------- */

static void chunks(struct worker *worker)
{
	struct worker *other = &workers[(worker->number + 1) % workers_count];
	u64 random = worker->random, begin;
	unsigned int chunk, i, end;

	for (chunk = 0; chunk < items_each; chunk = end) {
		end = min(chunk + CHUNK, items_each);
		begin = shim_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (i = chunk; i < end; i++)
			arm(&worker->items[worker->order[ARM_OTHER][i]].timeout,
			    base_ns + bench_delay(&random));
		worker->ns[ARM_OTHER] += shim_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		pthread_barrier_wait(&chunk_barrier);
		begin = shim_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (i = chunk; i < end; i++)
			cancel(&other->items[other->order[ARM_OTHER][i]].timeout);
		worker->ns[CANCEL_OTHER] +=
			shim_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		pthread_barrier_wait(&chunk_barrier);
	}
}

static void operate(struct worker *worker, enum op op)
{
	const u32 *order = worker->order[op];
	struct bench_item *items = worker->items;
	u64 random = worker->random;
	unsigned int i;

	switch (op) {
	case ARM:
		for (i = 0; i < items_each; i++)
			arm(&items[order[i]].timeout, base_ns + bench_delay(&random));
		break;
	case PUSH_BACK:
		for (i = 0; i < items_each; i++)
			arm(&items[order[i]].timeout, base_ns + bench_later(&random));
		break;
	case PUSH_BACK_SAME:
		/*
		 * The TSC is common to all cores. Multiplied by 1000, each deadline is
		 * some ticks later than the one before.
		 */
		for (i = 0; i < items_each; i++)
			arm(&workers[0].items[i % SAME].timeout,
			    base_ns + 4 * 3600ULL * NSEC_PER_SEC +
			    (__builtin_ia32_rdtsc() - base_tsc) * 1000);
		break;
	case CANCEL:
		for (i = 0; i < items_each; i++)
			cancel(&items[order[i]].timeout);
		break;
	default:
		break;
	}
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	enum op op;
	u64 begin;
	u32 i;

	bench_pin(pthread_self(), worker->number);
	shim_thread_start(worker->number);
	for (i = 0; i < items_each; i++)
		hwt_timeout_init(&worker->items[i].timeout, locked ? NULL : wheel, &ops);
	for (op = ARM; op < OPS; op++)
		worker->ns[op] = 0;
	for (op = ARM; op <= ARM_OTHER; op++) {
		pthread_barrier_wait(&phase_barrier);
		if (op == ARM_OTHER) {
			chunks(worker);
		} else {
			begin = shim_clock_ns(CLOCK_THREAD_CPUTIME_ID);
			operate(worker, op);
			worker->ns[op] = shim_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		}
		pthread_barrier_wait(&phase_barrier);
	}
	free(current);
	return NULL;
}

/* -- Repetitions --------------------------------------------------------- */

static void print(enum op op, const char *name, double ns)
{
	printf("@bench bench=contention peer=%s op=%s threads=%u n=%u unit=ns value=%.2f\n", name,
	       op_names[op], workers_count, items_each, ns / workers_count / items_each);
}

/* One repetition with some threads. */
static void run(unsigned int threads)
{
	double engine[OPS] = { }, sum;
	enum op op;
	unsigned int i;

	workers_count = threads;
	base_ns = ktime_get_ns();
	base_tsc = __builtin_ia32_rdtsc();
	wheel_make();
	pthread_barrier_init(&phase_barrier, NULL, threads + 1);
	pthread_barrier_init(&chunk_barrier, NULL, threads);
	for (i = 0; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			exit(1);
	for (op = ARM; op <= ARM_OTHER; op++) {
		engine[op] = engine_ns();
		pthread_barrier_wait(&phase_barrier);
		pthread_barrier_wait(&phase_barrier);
		wheel_settle();
		engine[op] = engine_ns() - engine[op];
	}
	for (i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (op = ARM; op < OPS; op++) {
		sum = 0;
		for (i = 0; i < threads; i++)
			sum += workers[i].ns[op];
		print(op, locked ? "locked" : "hwt", sum);
		/* The engine's part of the two alternating operations is not known. */
		if (!locked && op < ARM_OTHER)
			print(op, "hwt-all", sum + engine[op]);
	}
	pthread_barrier_destroy(&phase_barrier);
	pthread_barrier_destroy(&chunk_barrier);
	wheel_unmake();
}

static void make_workers(unsigned int n)
{
	unsigned int i;
	enum op op;

	workers = calloc(n, sizeof(*workers));
	for (i = 0; workers && i < n; i++) {
		workers[i].number = i;
		workers[i].random = i + 1;
		workers[i].items = shim_alloc(items_each * sizeof(struct bench_item));
		for (op = ARM; op < OPS; op++) {
			workers[i].order[op] = shim_alloc(items_each * sizeof(u32));
			bench_shuffle(workers[i].order[op], items_each, i * OPS + op);
		}
	}
}

int main(int argc, char **argv)
{
	bool quick = bench_quick(argc, argv);
	unsigned int all, threads, i, runs = quick ? 3 : 7;

	shim_start();
	all = bench_find_cores();
	if (!all)
		return 1;
	items_each = min(quick ? ITEMS_MAX / 10 : ITEMS_MAX, ITEMS_ALL / all);
	make_workers(all);
	if (!workers)
		return 1;
	printf("contention: 1 to %u threads, %u timeouts each, %u repetitions\n", all,
	       items_each, runs);
	fflush(stdout);
	for (i = 0; i < runs; i++)
		/* 1, 2, 4, ... and all cores. */
		for (threads = 1; threads; threads = threads == all ? 0 : min(threads * 2, all)) {
			locked = false;
			run(threads);
			locked = true;
			run(threads);
		}
	return 0;
}
