// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that scribbles over its rings harms only itself. Three children write random values
 * all over the mapping while operations are submitted. A neighbour gets exactly its own events,
 * never early. Takes longest on the debug kernel.
 *
 * hwt-test: timeout 150
 */
#include "kselftest_harness.h"
#include <sys/prctl.h>

#include "fixtures.h"
#include "observer.h"

/* Not by quick(): the debug kernel notices most errors, so the test is longest there. */
static unsigned int duration_s(void)
{
	if (env_is("HWT_QUICK", "1"))
		return 2;
	return debug_kernel() ? 30 : 4;
}

/* Return a number of random magnitude and sign. */
static __u32 any_word(__u64 *state)
{
	__u32 small = next_random(state) >> (32 + next_random(state) % 32);

	return next_random(state) & 1 ? small : -small;
}

/* Write random words, and plausible indices, so that the rings are not always full or empty. */
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

static pid_t scribbler(struct ring *ring, __u64 state)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		scribble(ring, &state);
}

/* Submit operations that are partly valid, so that some succeed in spite of the scribblers. */
static void submit_some(struct ring *ring, __u64 *state)
{
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
	hwt_wait(ring->fd, 0);
}

static bool be_hostile(int fd, __u64 end, __u64 *state)
{
	pid_t scribblers[3];
	struct ring ring;
	bool good = true;
	int i;

	if (fd < 0 || ring_make(&ring, fd, 0, 64, 64))
		return false;
	for (i = 0; i < 3; i++)
		scribblers[i] = scribbler(&ring, next_random(state));
	while (now_ns() < end)
		submit_some(&ring, state);
	/* Sometimes cancel all while the children still have the context. */
	if (next_random(state) & 1)
		hwt_del_all(fd);
	ring_close(&ring);
	for (i = 0; i < 3; i++)
		good &= scribblers[i] > 0 && child_kill(scribblers[i]) == -SIGKILL;
	return good;
}

TEST_F_TIMEOUT(ctx, neighbour_is_not_harmed, 200)
{
	__u64 end = now_ns() + duration_s() * SEC, state = 88172645463325252ULL, step;
	struct observer neighbour;

	observer_start(_metadata, &neighbour, 250);
	while (now_ns() < end) {
		step = now_ns() + 500 * MSEC;
		ASSERT_TRUE(be_hostile(hwt_open(0), step < end ? step : end, &state));
	}
	observer_end(_metadata, &neighbour);
}

TEST_HARNESS_MAIN
