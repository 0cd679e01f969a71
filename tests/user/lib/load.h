/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A load that checks hwt's promise: a timeout fires once, never before its deadline, or is
 * cancelled. Threads schedule, modify, cancel and read at random, all on the same contexts.
 *
 * Each timeout has a slot, which one thread at a time may use. Each event is compared with the slot
 * of its timeout: this finds events that are early, that come twice, and those of timeouts that
 * were cancelled or never existed. At the end, all remaining timeouts are made to fire or
 * cancelled, which finds those that were lost, and the statistics are compared with the calls.
 */
#ifndef HWT_LOAD_H
#define HWT_LOAD_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "hwt_dev.h"

#define LOAD_THREADS	64
#define LOAD_EVENTS	64

enum load_operation { LOAD_SCHEDULE, LOAD_MODIFY, LOAD_CANCEL, LOAD_READ, LOAD_OPERATIONS };

/* A timeout. @busy is the lock of the other members. */
struct load_slot {
	bool	busy, live;
	__u32	generation;
	__u64	id, earliest_ns;
};

struct load_context {
	int			fd;
	struct load_slot	*slots;
	__u64			scheduled, cancelled, read;
};

struct load_result {
	__u64	done[LOAD_OPERATIONS];
	__u64	scheduled, cancelled, fired;
	__u64	refused;	/* schedules beyond a limit, or without memory */
	__u64	wrong;		/* failures, of which the first ten are reported */
};

struct load {
	unsigned int		threads, contexts, timeouts;	/* @timeouts in each context */
	unsigned int		seed;
	struct load_context	*context;
	struct load_result	result;
};

/* Set by a signal handler or another thread to end the load. */
static volatile sig_atomic_t load_over;

static inline void load_count(__u64 *count, __u64 n)
{
	__atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

static inline void load_wrong(struct load *load, const char *what, int ret)
{
	__u64 said = __atomic_fetch_add(&load->result.wrong, 1, __ATOMIC_RELAXED);

	if (said < 10)
		fprintf(stderr, "# load: %s: %s\n", what, strerror(-ret));
}

static inline unsigned int load_random(unsigned int *state, unsigned int limit)
{
	return (rand_r(state) * (__u64)RAND_MAX + rand_r(state)) % limit;
}

static inline bool load_try(struct load_slot *slot)
{
	return !__atomic_exchange_n(&slot->busy, true, __ATOMIC_ACQUIRE);
}

static inline void load_release(struct load_slot *slot)
{
	__atomic_store_n(&slot->busy, false, __ATOMIC_RELEASE);
}

static inline void load_schedule(struct load *load, struct load_context *ctx,
				 struct load_slot *slot, __u64 delay)
{
	__u64 data = (__u64)(slot->generation + 1) << 32 | (slot - ctx->slots);
	int ret;

	slot->earliest_ns = now_ns() + delay;
	ret = hwt_add(ctx->fd, 0, delay, data, &slot->id);
	if (!ret) {
		slot->live = true;
		slot->generation++;
		load_count(&ctx->scheduled, 1);
	} else if (ret == -ENOSPC || ret == -ENOMEM) {
		load_count(&load->result.refused, 1);
	} else {
		load_wrong(load, "schedule", ret);
	}
}

/* ENOENT: another thread has read the event, and waits for the slot in load_check(). */
static inline void load_modify(struct load *load, struct load_context *ctx,
			       struct load_slot *slot, __u64 delay)
{
	__u64 now = now_ns();
	int ret = hwt_with(ctx->fd, MODIFY, modify, .id = slot->id, .time_ns = delay);

	if (!ret)
		slot->earliest_ns = now + delay;
	else if (ret != -ENOENT)
		load_wrong(load, "modify", ret);
}

static inline void load_cancel(struct load *load, struct load_context *ctx,
			       struct load_slot *slot)
{
	int ret = hwt_with(ctx->fd, CANCEL, cancel, .id = slot->id);

	if (!ret) {
		slot->live = false;
		load_count(&ctx->cancelled, 1);
	} else if (ret != -ENOENT) {
		load_wrong(load, "cancel", ret);
	}
}

static inline void load_check(struct load *load, struct load_context *ctx,
			      const struct hwt_event *event)
{
	__u32 index = event->user_data, generation = event->user_data >> 32;
	struct load_slot *slot = &ctx->slots[index];

	if (index >= load->timeouts) {
		load_wrong(load, "an event of an unknown timeout", 0);
		return;
	}
	/* The thread that has the slot is in a call, perhaps the one that created the timeout. */
	while (!load_try(slot))
		sched_yield();
	if (!slot->live || generation != slot->generation || event->id != slot->id ||
	    event->kind != HWT_EVENT_EXPIRED || event->flags != HWT_EVENT_LAST ||
	    event->overruns) {
		load_wrong(load, "an event of a timeout that has ended", 0);
	} else {
		if (event->fired_ns < slot->earliest_ns || event->fired_ns < event->deadline_ns)
			load_wrong(load, "an early event", 0);
		slot->live = false;
		load_count(&load->result.fired, 1);
	}
	load_release(slot);
}

/* Read and check events. Return their number. */
static inline int load_read(struct load *load, struct load_context *ctx)
{
	struct hwt_event events[LOAD_EVENTS];
	ssize_t got = read(ctx->fd, events, sizeof(events));
	int i;

	if (got < 0) {
		if (errno != EAGAIN && errno != EINTR)
			load_wrong(load, "read", hwt_errno());
		return 0;
	}
	got /= sizeof(events[0]);
	load_count(&ctx->read, got);
	for (i = 0; i < got; i++)
		load_check(load, ctx, &events[i]);
	load_count(&load->result.done[LOAD_READ], got);
	return got;
}

static inline void load_step(struct load *load, unsigned int *random)
{
	static const unsigned int longest_ms[] = { 10, 1000, 1000, 10000 };
	static const unsigned int percent[LOAD_OPERATIONS] = { 40, 30, 20, 10 };
	struct load_context *ctx = &load->context[load_random(random, load->contexts)];
	struct load_slot *slot = &ctx->slots[load_random(random, load->timeouts)];
	__u64 delay = load_random(random, longest_ms[load_random(random, 4)] * 1000) * USEC;
	unsigned int draw = load_random(random, 100), operation;
	bool creates;

	for (operation = 0; draw >= percent[operation]; operation++)
		draw -= percent[operation];
	if (operation == LOAD_READ) {
		load_read(load, ctx);
		return;
	}
	if (!load_try(slot))
		return;
	/* An operation that does not suit the slot is left out. */
	creates = operation == LOAD_SCHEDULE;
	if (slot->live == creates)
		goto out;
	if (operation == LOAD_SCHEDULE)
		load_schedule(load, ctx, slot, delay);
	else if (operation == LOAD_MODIFY)
		load_modify(load, ctx, slot, delay);
	else
		load_cancel(load, ctx, slot);
	load_count(&load->result.done[operation], 1);
out:
	load_release(slot);
}

static inline void *load_work(void *arg)
{
	struct load *load = arg;
	unsigned int random = __atomic_fetch_add(&load->seed, 1, __ATOMIC_RELAXED);

	while (!load_over)
		load_step(load, &random);
	return NULL;
}

static inline __u64 load_live(const struct load *load, const struct load_context *ctx)
{
	__u64 live = 0;
	unsigned int i;

	for (i = 0; i < load->timeouts; i++)
		live += ctx->slots[i].live;
	return live;
}

/* When the threads have ended: make the remaining timeouts fire or cancel them, and check. */
static inline void load_settle(struct load *load, struct load_context *ctx)
{
	struct load_result *result = &load->result;
	struct hwt_stats_args stats;
	unsigned int i;

	for (i = 0; i < load->timeouts; i++) {
		if (ctx->slots[i].live && i % 2)
			load_cancel(load, ctx, &ctx->slots[i]);
		else if (ctx->slots[i].live)
			load_modify(load, ctx, &ctx->slots[i], 0);
	}
	while (load_live(load, ctx) && hwt_wait(ctx->fd, PATIENCE_MS) > 0)
		while (load_read(load, ctx))
			;
	/* Read events that should not be there, too. */
	while (load_read(load, ctx))
		;
	if (load_live(load, ctx))
		load_wrong(load, "lost timeouts", 0);
	result->scheduled += ctx->scheduled;
	result->cancelled += ctx->cancelled;
	if (hwt_stats(ctx->fd, &stats) || stats.scheduled != ctx->scheduled ||
	    stats.cancelled != ctx->cancelled || stats.read != ctx->read || stats.timeouts ||
	    stats.events)
		load_wrong(load, "wrong statistics of a context", 0);
}

/* Open the contexts. Return whether all are open. */
static inline bool load_open(struct load *load)
{
	unsigned int i;

	load->context = calloc(load->contexts, sizeof(*load->context));
	for (i = 0; load->context && i < load->contexts; i++) {
		load->context[i].fd = hwt_open(O_NONBLOCK);
		load->context[i].slots = calloc(load->timeouts, sizeof(struct load_slot));
		if (load->context[i].fd < 0 || !load->context[i].slots)
			return false;
	}
	return load->context;
}

/* Run the load for @ns, or until load_over is set, and close the contexts. */
static inline void load_run(struct load *load, __u64 ns)
{
	pthread_t threads[LOAD_THREADS];
	__u64 end = now_ns() + ns;
	unsigned int i;

	for (i = 0; i < load->threads; i++)
		if (pthread_create(&threads[i], NULL, load_work, load))
			abort();
	while (!load_over && now_ns() < end)
		sleep_ns(10 * MSEC);
	load_over = 1;
	for (i = 0; i < load->threads; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < load->contexts; i++) {
		load_settle(load, &load->context[i]);
		close(load->context[i].fd);
		free(load->context[i].slots);
	}
	free(load->context);
	load_over = 0;
}

#endif /* HWT_LOAD_H */
