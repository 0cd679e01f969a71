/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fault injection: each allocation and each copy to or from user memory that a call makes
 * fails once, by /proc/PID/fail-nth (get_user(), put_user() and per-CPU memory do not).
 *
 * A call is repeated with n = 1, 2, ... until it ends before the n-th of its points. It does not
 * have the same points each time (a cache wants a page now and then), so it has to end early
 * several times in a row. Skipped where the kernel cannot do that; but not on the debug kernel.
 */
#ifndef HWT_FAULT_H
#define HWT_FAULT_H

#include "guest.h"
#include "observer.h"

/* More points than any call has: it does not come to its end. */
#define FAULT_MOST	20000
/* Calls in a row that do not come to their point. */
#define FAULT_MISSES	4
/* Of points that are another's matter, one of so many. */
#define FAULT_STRIDE	16

/* Before main(). */
static __attribute__((constructor)) void fault_begin(void)
{
	if (fault_knobs() && !access("/proc/self/fail-nth", W_OK))
		return;
	if (debug_kernel()) {
		printf("# FAILED: the debug kernel injects no faults\n");
		exit(1);
	}
	printf("# this kernel injects no faults\n");
	exit(4);
}

/* Whose points count: 0, the calling thread's; else those of a thread of the kernel. */
static inline int fault_open(pid_t pid)
{
	char path[64];

	if (!pid)
		return open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/fail-nth", pid);
	return open(path, O_RDWR | O_CLOEXEC);
}

static inline bool fault_arm(int nth, unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	return pwrite(nth, text, len, 0) == len;
}

/* Of a call that was armed for point @n, which it did not come to: how many it has come to. */
static inline unsigned int fault_points(int nth, unsigned int n)
{
	char text[16] = "";

	return pread(nth, text, sizeof(text) - 1, 0) > 0 ? n - atoi(text) : 0;
}

/* Returns whether the point was come to. Reading and writing these are points, too. */
static inline bool fault_disarm(int nth)
{
	char text[16] = "";
	bool hit = pread(nth, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;

	while (pwrite(nth, "0", 1, 0) < 0 && errno == EFAULT)
		;
	return hit;
}

/**
 * struct fault_call - what is called again and again
 * @pid:     whose points count, see fault_open()
 * @others:  so many points at the beginning are another's matter: of these only some
 * @hit:     at least so many points are made to fail
 * @failed:  at least so many calls have failed for it
 * @prepare: before each call; may be NULL
 * @call:    returns 0 or a negative errno
 * @check:   after each; @hit: how many points of it were made to fail. @ret is 0 if none was, or
 *           something is wrong with the call itself.
 */
struct fault_call {
	pid_t	pid;
	unsigned int others, hit, failed;
	void	(*prepare)(struct __test_metadata *_metadata, void *arg);
	int	(*call)(void *arg);
	void	(*check)(struct __test_metadata *_metadata, void *arg, int ret,
			 unsigned int hit);
};

static inline void each_fault(struct __test_metadata *_metadata, const struct fault_call *call,
			      void *arg)
{
	unsigned int n, hits = 0, failed = 0, misses = 0;
	int nth = fault_open(call->pid), ret;
	bool hit;

	ASSERT_LE(0, nth);
	for (n = 1; misses < FAULT_MISSES && n < FAULT_MOST;
	     n += n + FAULT_STRIDE <= call->others ? FAULT_STRIDE : 1) {
		if (call->prepare)
			call->prepare(_metadata, arg);
		ASSERT_TRUE(fault_arm(nth, n));
		ret = call->call(arg);
		hit = fault_disarm(nth);
		misses = hit ? 0 : misses + 1;
		hits += hit;
		failed += hit && ret < 0;
		if (!hit)
			EXPECT_EQ(0, ret);
		call->check(_metadata, arg, ret, hit);
		if (!_metadata->passed) {
			TH_LOG("with point %u made to fail (%d), %d was returned", n, hit, ret);
			break;
		}
	}
	/* Else it has no end. */
	EXPECT_EQ(FAULT_MISSES, misses);
	EXPECT_LE(call->hit, hits);
	EXPECT_LE(call->failed, failed);
	TH_LOG("%u points, %u calls failed", hits, failed);
	close(nth);
}

/*
 * There is a report if a thread's stack could not be had, or what is not made at a program's will.
 * It need not come: stacks are kept for the next thread.
 */
static inline void fault_expect_begin(void)
{
	write_text("/dev/kmsg", "hwt-expect-begin: vmalloc error: size|fault: of a stack");
	write_text("/dev/kmsg", "fault: of a stack, perhaps");
}

static inline void fault_expect_end(void)
{
	write_text("/dev/kmsg", "hwt-expect-end");
}

/* -- The state of a context ----------------------------------------------- */

#define STATE_ENTRIES	512

struct state {
	struct hwt_info_args	info;
	struct hwt_stats_args	stats;
	long			private, timeouts, events, stopped;
	unsigned int		n;
	struct hwt_list_entry	list[STATE_ENTRIES];
};

/* All but the time that passes, zeroed where there is nothing. */
static inline void state_take(struct __test_metadata *_metadata, int fd, struct state *state)
{
	unsigned int i;
	int n;

	memset(state, 0, sizeof(*state));
	ASSERT_EQ(0, hwt_info(fd, &state->info));
	state->info.now_ns = 0;
	ASSERT_EQ(0, hwt_stats(fd, &state->stats));
	n = hwt_entries(fd, state->list, STATE_ENTRIES);
	ASSERT_LE(0, n);
	ASSERT_GT(STATE_ENTRIES, n);
	state->n = n;
	for (i = 0; i < state->n; i++)
		state->list[i].remaining_ns = 0;
	state->private = fd_number(fd, "hwt-private");
	state->timeouts = fd_number(fd, "hwt-timeouts");
	state->events = fd_number(fd, "hwt-events");
	state->stopped = fd_number(fd, "hwt-stopped");
	/* What is told here and there is the same. */
	EXPECT_EQ(state->n, state->stats.timeouts);
	EXPECT_EQ((__u64)state->timeouts, state->stats.timeouts);
	EXPECT_EQ((__u64)state->events, state->stats.events);
}

static inline bool state_same(const struct state *a, const struct state *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static inline void state_differ(const struct state *a, const struct state *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;
	unsigned int i;

	stats_same(b->stats, a->stats);
	for (i = 0; i < sizeof(*a) / 8; i++)
		if (x[i] != y[i])
			fprintf(stderr, "# at %u: %llx -> %llx\n", i * 8,
				(unsigned long long)x[i], (unsigned long long)y[i]);
}

static inline const struct hwt_list_entry *state_find(const struct state *state, __u64 id)
{
	unsigned int i;

	for (i = 0; i < state->n; i++)
		if (state->list[i].id == id)
			return &state->list[i];
	return NULL;
}

#endif /* HWT_FAULT_H */
