/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests that pull things away from under the device share: a ledger of timeouts, in
 * which each is accounted for, and rounds.
 */
#ifndef HWT_PULL_H
#define HWT_PULL_H

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"
#include "hwt_ring.h"

/* How often: on a slow kernel all takes its time. */
static inline unsigned int rounds(unsigned int normal, unsigned int slow)
{
	return given("HWT_ROUNDS", slow_kernel() ? slow : normal);
}

/* xorshift; the seed is told by whoever begins with one. */
static inline __u64 next_random(__u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* HWT_SEED on the kernel's command line, or a new one. */
static inline __u64 first_seed(void)
{
	const char *env = getenv("HWT_SEED");
	__u64 seed = env ? strtoull(env, NULL, 0) : now_ns();

	return seed ? seed : 1;
}

/* -- The ledger ------------------------------------------------------------ */

#define LEDGER_SLOTS	256

/**
 * struct ledger - a context and what is known of each of its timeouts
 * @fd:        the context, which nobody else uses
 * @seed:      of what it does
 * @slot:      the timeouts that are there; @id is 0 if there is none. user_data is the index.
 * @made:      were scheduled
 * @refused:   could not be, for want of memory
 * @moved:     were pushed back or pulled forward
 * @cancelled: were ended before their event was read
 * @read:      had their event read
 * @early:     ... before their deadline. Must stay 0, as the next one.
 * @wrong:     what cannot be: events of nobody, twice, of another kind, unexpected errors
 * @latest_ns: the longest time from a deadline to its event
 */
struct ledger {
	int	fd;
	__u64	seed;
	struct {
		__u64	id;
		__u64	due;
	} slot[LEDGER_SLOTS];
	__u64	made;
	__u64	refused;
	__u64	moved;
	__u64	cancelled;
	__u64	read;
	__u64	early;
	__u64	wrong;
	__u64	latest_ns;
};

static inline bool ledger_open(struct ledger *ledger, __u64 seed)
{
	*ledger = (struct ledger) { .fd = hwt_open(O_NONBLOCK), .seed = seed };
	return ledger->fd >= 0;
}

static inline unsigned int ledger_pending(const struct ledger *ledger)
{
	unsigned int i, n = 0;

	for (i = 0; i < LEDGER_SLOTS; i++)
		n += ledger->slot[i].id != 0;
	return n;
}

static inline void ledger_add(struct ledger *ledger, unsigned int i, __u64 due)
{
	int ret = hwt_add(ledger->fd, HWT_ABSOLUTE, due, i, &ledger->slot[i].id);

	ledger->slot[i].due = due;
	if (!ret) {
		ledger->made++;
		return;
	}
	ledger->slot[i].id = 0;
	ledger->refused += ret == -ENOMEM;
	ledger->wrong += ret != -ENOMEM;
}

/* One that has an event is pending again, and the event was none. */
static inline void ledger_move(struct ledger *ledger, unsigned int i, __u64 due)
{
	int ret = hwt_move(ledger->fd, ledger->slot[i].id, HWT_ABSOLUTE, due);

	ledger->slot[i].due = due;
	ledger->moved += ret >= 0;
	ledger->wrong += ret < 0;
}

static inline void ledger_cancel(struct ledger *ledger, unsigned int i)
{
	int ret = hwt_del(ledger->fd, ledger->slot[i].id);

	ledger->slot[i].id = 0;
	ledger->cancelled += ret >= 0;
	ledger->wrong += ret < 0;
}

static inline void ledger_event(struct ledger *ledger, const struct hwt_event *event)
{
	__u64 i = event->user_data, due;

	if (i >= LEDGER_SLOTS || ledger->slot[i].id != event->id ||
	    event->kind != HWT_EVENT_EXPIRED || event->flags != HWT_EVENT_LAST) {
		ledger->wrong++;
		return;
	}
	due = ledger->slot[i].due;
	ledger->slot[i].id = 0;
	ledger->read++;
	ledger->early += event->fired_ns < due || event->deadline_ns < due ||
			 event->fired_ns < event->deadline_ns || now_ns() < event->fired_ns;
	if (event->fired_ns - due > ledger->latest_ns)
		ledger->latest_ns = event->fired_ns - due;
}

/* Takes what has come. */
static inline void ledger_reap(struct ledger *ledger)
{
	struct hwt_event events[32];
	int ret, i;

	while ((ret = hwt_read(ledger->fd, events, 32)) > 0)
		for (i = 0; i < ret; i++)
			ledger_event(ledger, &events[i]);
	ledger->wrong += ret != -EAGAIN;
}

/* A little of everything; nothing is due later than within a tenth of a second. */
static inline void ledger_step(struct ledger *ledger)
{
	unsigned int i = next_random(&ledger->seed) % LEDGER_SLOTS, dice;
	__u64 due = now_ns() + next_random(&ledger->seed) % (100 * MSEC);

	dice = next_random(&ledger->seed) % 8;
	if (!ledger->slot[i].id)
		ledger_add(ledger, i, due);
	else if (dice < 2)
		ledger_move(ledger, i, due);
	else if (dice == 2)
		ledger_cancel(ledger, i);
	if (dice < 6)
		return;
	/* Others are to have the processor, too. */
	sleep_ns(MSEC);
	hwt_wait(ledger->fd, 5);
	ledger_reap(ledger);
}

/* Until all have come; false: some do not. */
static inline bool ledger_settle(struct ledger *ledger)
{
	__u64 end = now_ns() + 3 * PATIENCE_MS * MSEC;

	while (ledger_pending(ledger) && now_ns() < end) {
		hwt_wait(ledger->fd, 1000);
		ledger_reap(ledger);
	}
	return !ledger_pending(ledger);
}

/* Nothing lost, nothing early, counts add up. Ends it. */
static inline void ledger_close(struct __test_metadata *_metadata, struct ledger *ledger,
				const char *name)
{
	unsigned long long made = ledger->made;
	struct hwt_stats_args stats;

	EXPECT_TRUE(ledger_settle(ledger)) {
		TH_LOG("%s: %u do not come", name, ledger_pending(ledger));
	}
	ASSERT_EQ(0, hwt_stats(ledger->fd, &stats));
	TH_LOG("%s: %llu made, %llu moved, %llu cancelled, %llu read", name, made,
	       (unsigned long long)ledger->moved, (unsigned long long)ledger->cancelled,
	       (unsigned long long)ledger->read);
	TH_LOG("... %llu refused, the latest came after %llu us",
	       (unsigned long long)ledger->refused, (unsigned long long)ledger->latest_ns / USEC);
	EXPECT_LT(0, ledger->read);
	EXPECT_EQ(0, ledger->early);
	EXPECT_EQ(0, ledger->wrong);
	EXPECT_EQ(ledger->made, ledger->read + ledger->cancelled);
	EXPECT_EQ(ledger->made, stats.scheduled);
	EXPECT_EQ(ledger->moved, stats.modified);
	EXPECT_EQ(ledger->cancelled, stats.cancelled);
	EXPECT_EQ(ledger->read, stats.read);
	EXPECT_LE(ledger->read, stats.expired);
	EXPECT_EQ(0, stats.timeouts);
	EXPECT_EQ(0, stats.events);
	close(ledger->fd);
}

/* -- One that is kept by a thread, while others do what they do ---------------- */

struct ledger_thread {
	struct ledger	ledger;
	pthread_t	thread;
	bool		stop;
};

static inline void *ledger_keep(void *arg)
{
	struct ledger_thread *keeper = arg;

	while (!__atomic_load_n(&keeper->stop, __ATOMIC_RELAXED))
		ledger_step(&keeper->ledger);
	return NULL;
}

/* Of one that is open. */
static inline bool ledger_run(struct ledger_thread *keeper)
{
	keeper->stop = false;
	return !pthread_create(&keeper->thread, NULL, ledger_keep, keeper);
}

static inline bool ledger_start(struct ledger_thread *keeper, __u64 seed)
{
	return ledger_open(&keeper->ledger, seed) && ledger_run(keeper);
}

static inline void ledger_end(struct __test_metadata *_metadata, struct ledger_thread *keeper,
			      const char *name)
{
	__atomic_store_n(&keeper->stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(keeper->thread, NULL));
	ledger_close(_metadata, &keeper->ledger, name);
}

#endif /* HWT_PULL_H */
