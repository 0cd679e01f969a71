// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that scribbles over its rings harms itself: two threads and a child write random
 * values to all of the mapping while operations are submitted. A neighbour on the same wheel
 * sees exactly its own events, never early. A minute in all on the debug kernel.
 *
 * hwt-test: timeout 150
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "hwt_ring.h"

/* Not as quick() has it: the kernel that notices what goes wrong gets the most of it. */
static unsigned int duration_s(void)
{
	if (env_is("HWT_QUICK", "1"))
		return 2;
	return debug_kernel() ? 30 : 6;
}

static __u64 next_random(__u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* -- The scribbler ------------------------------------------------------- */

/* Numbers that may mean something, beside those that hardly do. */
static __u32 any_word(__u64 *state)
{
	__u64 random = next_random(state);

	switch (random >> 62) {
	case 0:
		return random & 7;
	case 1:
		return random & 0xffff;
	case 2:
		return -(random & 0xffff);
	default:
		return random;
	}
}

struct scribbler {
	pthread_t	thread;
	struct ring	*ring;
	volatile bool	*stop;
	__u64		state;
};

/* An index now and then, so that the rings are not full or empty most of the time. */
static void scribble(struct ring *ring, __u64 *state)
{
	volatile __u32 *words = (void *)ring->shared;
	__u32 count = ring->size / 4, i;

	for (i = 0; i < 64; i++)
		words[next_random(state) % count] = any_word(state);
	ring->shared->op_tail = ring_op_head(ring) + any_word(state) % 70;
	ring->shared->event_head = ring_event_tail(ring) - any_word(state) % 70;
	words[next_random(state) % (sizeof(struct hwt_rings) / 4)] = any_word(state);
}

static void *scribbler_run(void *arg)
{
	struct scribbler *scribbler = arg;

	while (!*scribbler->stop)
		scribble(scribbler->ring, &scribbler->state);
	return NULL;
}

/*
 * Which ring's operation is an accident; so some of the calls are as they should be, on
 * whatever is there.
 */
static void submit_some(struct ring *ring, __u64 *state)
{
	struct hwt_op ops[8];
	unsigned int i;

	for (i = 0; i < 8; i++)
		ring->ops[next_random(state) & ring->op_mask] = (struct hwt_op) {
			.opcode = next_random(state) % 5,
			.flags = next_random(state) & 1,
			.id = ring->events[next_random(state) & ring->event_mask].id,
			.time_ns = next_random(state) >> (next_random(state) & 63),
			.user_data = next_random(state),
		};
	ring->shared->op_tail = ring_op_head(ring) + next_random(state) % 65;
	ring_enter(ring, any_word(state), any_word(state) & 1, next_random(state) % MSEC);
	memcpy(ops, ring->ops, sizeof(ops));
	hwt_batch(ring->fd, ops, 8);
	/* From where others write meanwhile, and to there. */
	hwt_batch(ring->fd, ring->ops, ring->op_mask + 1);
	hwt_wait(ring->fd, 0);
}

/* One life of a hostile context. */
static bool be_hostile(int fd, __u32 flags, __u64 until, __u64 *state)
{
	struct scribbler scribblers[2];
	volatile bool stop = false;
	struct ring ring;
	__u64 own;
	pid_t child;
	int i;

	if (ring_make(&ring, fd, flags, 64, 64))
		return false;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		own = *state ^ 0x5555;
		for (;;)
			scribble(&ring, &own);
	}
	for (i = 0; i < 2; i++) {
		scribblers[i] = (struct scribbler) {
			.ring = &ring,
			.stop = &stop,
			.state = next_random(state),
		};
		if (pthread_create(&scribblers[i].thread, NULL, scribbler_run,
				   &scribblers[i]))
			return false;
	}
	while (now_ns() < until)
		submit_some(&ring, state);
	stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(scribblers[i].thread, NULL);
	/* Once in a while the context ends while the child has it still. */
	if (next_random(state) & 1)
		hwt_stop(fd);
	ring_unmap(&ring);
	close(fd);
	if (child < 0 || kill(child, SIGKILL) || waitpid(child, NULL, 0) != child)
		return false;
	return true;
}

/* -- The neighbour ------------------------------------------------------- */

#define NEIGHBOURS	50

struct neighbour {
	struct ring	ring;
	__u64		due[NEIGHBOURS];
	__u64		id[NEIGHBOURS];
	bool		out[NEIGHBOURS];
	__u64		state;
	unsigned long	seen;
	unsigned long	wrong;
};

static void neighbour_add(struct neighbour *neighbour, unsigned int i)
{
	__u64 delay = MSEC + next_random(&neighbour->state) % (50 * MSEC);
	struct hwt_op op = op_schedule(now_ns() + delay, i);

	op.flags = HWT_ABSOLUTE;
	neighbour->due[i] = op.time_ns;
	neighbour->out[i] = true;
	neighbour->wrong += ring_do(&neighbour->ring, op, &neighbour->id[i]) != 0;
}

static void neighbour_check(struct neighbour *neighbour, const struct hwt_event *event)
{
	__u64 now = now_ns(), i = event->user_data;

	neighbour->seen++;
	if (i >= NEIGHBOURS || !neighbour->out[i] || event->id != neighbour->id[i] ||
	    event->kind != HWT_EVENT_EXPIRED || event->flags != HWT_EVENT_LAST ||
	    event->overruns || event->deadline_ns < neighbour->due[i] ||
	    event->fired_ns < event->deadline_ns || event->fired_ns > now) {
		neighbour->wrong++;
		return;
	}
	neighbour->out[i] = false;
}

/* Returns false if one never came. */
static bool neighbour_finish(struct neighbour *neighbour)
{
	__u64 limit = now_ns() + PATIENCE_MS * MSEC;
	struct hwt_event event;
	unsigned int i, out;

	do {
		ring_enter(&neighbour->ring, 0, 1, 10 * MSEC);
		while (ring_pop(&neighbour->ring, &event))
			neighbour_check(neighbour, &event);
		for (out = 0, i = 0; i < NEIGHBOURS; i++)
			out += neighbour->out[i];
	} while (out && now_ns() < limit);
	return !out;
}

/* The exit status of its process. */
static int neighbour_run(__u64 until)
{
	struct neighbour neighbour = { .state = 0x2545f4914f6cdd1dULL };
	int fd = hwt_open(0);
	unsigned int i;

	if (fd < 0 || ring_make(&neighbour.ring, fd, 0, 64, 64))
		return 1;
	while (now_ns() < until) {
		for (i = 0; i < NEIGHBOURS; i++)
			neighbour_add(&neighbour, i);
		if (!neighbour_finish(&neighbour))
			return 2;
		if (neighbour.wrong)
			return 3;
	}
	/* Not one more. */
	return !neighbour.seen || ring_enter(&neighbour.ring, 0, 1, 100 * MSEC) ||
	       ring_unread(&neighbour.ring) ? 4 : 0;
}

/* -- Both ---------------------------------------------------------------- */

/* @make: gives the descriptor of a new context. */
static void hostile(struct __test_metadata *_metadata, int (*make)(void), __u32 flags)
{
	__u64 until = now_ns() + duration_s() * SEC, state = 88172645463325252ULL, step;
	unsigned int lives = 0;
	int status, fd;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(neighbour_run(until));
	while (now_ns() < until) {
		fd = make();
		ASSERT_LE(0, fd);
		step = now_ns() + 500 * MSEC;
		ASSERT_TRUE(be_hostile(fd, flags, step < until ? step : until, &state));
		lives++;
	}
	EXPECT_LT(0U, lives);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

static int on_the_shared_wheel(void)
{
	return hwt_open(0);
}

static int on_a_wheel_that_polls(void)
{
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.flags = HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU,
		.cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1,
	};
	int fd = hwt_open(0);

	return fd < 0 ? fd : hwt_call(fd, HWT_IOC_SETUP, &setup) ?: fd;
}

FIXTURE(both) {
};

FIXTURE_SETUP(both)
{
}

FIXTURE_TEARDOWN(both)
{
}

TEST_F_TIMEOUT(both, shared_wheel, 200)
{
	hostile(_metadata, on_the_shared_wheel, 0);
}

TEST_F_TIMEOUT(both, wheel_that_polls, 200)
{
	hostile(_metadata, on_a_wheel_that_polls, HWT_RINGS_POLL);
}

TEST_HARNESS_MAIN
