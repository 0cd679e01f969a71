/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fault injection by /proc/PID/fail-nth: each allocation and each user copy of a call fails once
 * (except get_user(), put_user() and per-CPU memory). Each of these is a "point".
 *
 * A call is repeated with n = 1, 2, ... until it ends before its n-th point. Its points vary (a
 * slab cache needs a page now and then), so it has to end early several times in a row. The test
 * is skipped on a kernel without fault injection, but fails if that is the debug kernel.
 */
#ifndef HWT_FAULT_H
#define HWT_FAULT_H

#include "guest.h"
#include "observer.h"

/* More points than any call has: a loop that gets here has no end. */
#define FAULT_MOST	20000
/* Calls in a row that end before their point. */
#define FAULT_MISSES	4
/* Of the first points, which are not the module's, one in FAULT_STRIDE is made to fail. */
#define FAULT_STRIDE	16

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

/* Open fail-nth of a kernel thread; with @pid 0, of the calling thread. */
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

/* Return the number of points that were passed, if point @n was armed and not reached. */
static inline unsigned int fault_points(int nth, unsigned int n)
{
	char text[16] = "";

	return pread(nth, text, sizeof(text) - 1, 0) > 0 ? n - atoi(text) : 0;
}

/* Disarm, and return whether the point was reached. The accesses here are points, too. */
static inline bool fault_disarm(int nth)
{
	char text[16] = "";
	bool hit = pread(nth, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;

	while (pwrite(nth, "0", 1, 0) < 0 && errno == EFAULT)
		;
	return hit;
}

/**
 * struct fault_call - a call to repeat with faults
 * @pid:     thread whose points count, see fault_open()
 * @others:  number of first points that are not the module's; only some of them fail
 * @hit:     minimum number of points that must be made to fail
 * @failed:  minimum number of calls that must fail because of that
 * @prepare: runs before each call; may be NULL
 * @call:    returns 0 or a negative errno
 * @check:   runs after each call; @hit: number of faults in the call, 0 or 1. Without a fault,
 *           @ret must be 0.
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
			TH_LOG("fault at point %u (reached: %d): result %d", n, hit, ret);
			break;
		}
	}
	/* Otherwise the loop ended at FAULT_MOST. */
	EXPECT_EQ(FAULT_MISSES, misses);
	EXPECT_LE(call->hit, hits);
	EXPECT_LE(call->failed, failed);
	TH_LOG("%u points, %u calls failed", hits, failed);
	close(nth);
}

/*
 * Expect the kernel's report of a thread's stack that could not be allocated. It may not come,
 * because stacks of ended threads are used again; the second line matches in any case.
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
	long			thread, timeouts, events;
	unsigned int		n;
	struct hwt_list_entry	list[STATE_ENTRIES];
};

/* Store the state without times that pass; all else is zeroed, for state_same(). */
static inline void state_take(struct __test_metadata *_metadata, int fd, struct state *state)
{
	unsigned int i;
	int n;

	memset(state, 0, sizeof(*state));
	ASSERT_EQ(0, hwt_info(fd, &state->info));
	state->info.now_ns = 0;
	state->info.next_ns = 0;
	ASSERT_EQ(0, hwt_stats(fd, &state->stats));
	n = hwt_entries(fd, state->list, STATE_ENTRIES);
	ASSERT_LE(0, n);
	ASSERT_GT(STATE_ENTRIES, n);
	state->n = n;
	for (i = 0; i < state->n; i++)
		state->list[i].remaining_ns = 0;
	state->thread = fd_number(fd, "hwt-thread");
	state->timeouts = fd_number(fd, "hwt-timeouts");
	state->events = fd_number(fd, "hwt-events");
	/* LIST, STATS and fdinfo must agree. */
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
