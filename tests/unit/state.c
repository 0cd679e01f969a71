// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a timeout (core/state.h): every combination of bits, every relation of ticks
 *
 * state		checks the invariants of each change
 * state table	prints all changes in the form of tests/verify/model/transitions.pml
 */
#include <stdio.h>
#include <string.h>

#include "shim.h"
#include "core/state.h"

#define MIDDLE	5		/* the tick of each state; schedules also use other ticks */

static const u64 ticks[] = { 0, MIDDLE - 1, MIDDLE, MIDDLE + 1, HWT_TICK_NEVER };
static const u64 sets[] = { 0, HWT_F_SHUTDOWN };

static void nobody(struct hwt_timeout *timeout)
{
	(void)timeout;
}

static const struct hwt_timeout_ops ops[] = {
	{ }, { .release = nobody }, { .cancelled = nobody },
	{ .release = nobody, .cancelled = nobody },
};

static unsigned int cases, faults;

/* Check a property of a change. Print the first ten faults. */
#define HOLDS(what)							\
do {									\
	if (!(what) && faults++ < 10)					\
		printf("# %s: from %#llx to %#llx, action %d: not: %s\n", __func__, \
		       (unsigned long long)old, (unsigned long long)change.state, \
		       change.action, #what);				\
} while (0)

#define GAINS(bit)	(!((old | ~change.state) & (bit)))
#define SAME(bits)	(((change.state ^ old) & (bits)) == 0)
#define TICK_SAME	(hwt_state_tick(change.state) == hwt_state_tick(old))

static void every(u64 old, struct hwt_change change)
{
	/* A callback of a BH wheel, after the hold. */
	bool bh = change.action == HWT_CALL && !(change.state & HWT_F_HELD);

	cases++;
	HOLDS(hwt_state_valid(change.state));
	/* A change that sets SUBMITTED is followed by a push, and no other change is. */
	HOLDS((change.action == HWT_SUBMIT) ==
	      (!(old & HWT_F_SUBMITTED) && (change.state & HWT_F_SUBMITTED)));
	/* What ends a hold is followed by a release, gives the timeout back, or calls after it. */
	HOLDS((change.action == HWT_RELEASE || change.action == HWT_GIVE_BACK || bh) ==
	      ((old & HWT_F_HELD) && !(change.state & HWT_F_HELD)));
	HOLDS(bh || (change.action == HWT_CALL || change.action == HWT_CALL_CANCELLED) ==
	      ((change.state & HWT_F_RUNNING) && (change.action != HWT_NOTHING) &&
	       (!(old & HWT_F_RUNNING) || change.state == old)) ||
	      change.action >= HWT_OWE_CALL || change.action <= HWT_LINK);
	HOLDS(change.action < HWT_OWE_CALL || change.action == HWT_RELEASE ||
	      change.action == HWT_GIVE_BACK || change.state == old);
	HOLDS(SAME(HWT_F_SHUTDOWN) || GAINS(HWT_F_SHUTDOWN));
}

static void try_schedule(u64 old, u64 tick, unsigned int flags)
{
	struct hwt_change change = hwt_state_schedule(old, tick, flags);

	every(old, change);
	HOLDS(!(old & HWT_F_SHUTDOWN) == (change.action != HWT_REFUSED_SHUTDOWN));
	if (old & HWT_F_SHUTDOWN)
		return;
	HOLDS((change.action == HWT_REFUSED_NOT_PENDING) ==
	      ((flags & HWT_SCHEDULE_PENDING) && !(old & HWT_F_PENDING)));
	if (change.action == HWT_UNCHANGED) {
		HOLDS(old & HWT_F_PENDING);
		HOLDS((flags & HWT_SCHEDULE_UNLESS_PENDING) ||
		      ((flags & HWT_SCHEDULE_EARLIER) && tick >= hwt_state_tick(old)));
	}
	if (change.action >= HWT_UNCHANGED)
		return;
	HOLDS((change.state & HWT_F_ARMED) && hwt_state_tick(change.state) == tick);
	HOLDS(!(change.state & (HWT_F_REARM | HWT_F_CANCELLED | HWT_F_EXPIRED)));
	HOLDS(!(change.state & HWT_F_PERIODIC) == !(flags & HWT_SCHEDULE_PERIODIC));
	HOLDS(SAME(HWT_F_RUNNING) && (SAME(HWT_F_SUBMITTED) || GAINS(HWT_F_SUBMITTED)));
	HOLDS(!(flags & HWT_SCHEDULE_EARLIER) || !(old & HWT_F_ARMED) ||
	      tick < hwt_state_tick(old));
	/* Without an action, a runner reads the state in time: at its end, or at the old tick. */
	HOLDS(change.action != HWT_NOTHING || (old & HWT_F_RUNNING) ||
	      ((old & HWT_F_ARMED) && tick >= hwt_state_tick(old)));
}

static void try_cancel(u64 old, u64 set)
{
	struct hwt_change change = hwt_state_cancel(old, set);

	every(old, change);
	HOLDS(!(change.state & HWT_F_PENDING) && TICK_SAME);
	HOLDS(!set || (change.state & HWT_F_SHUTDOWN));
	HOLDS(SAME(HWT_F_RUNNING) && (SAME(HWT_F_SUBMITTED) || GAINS(HWT_F_SUBMITTED)));
	HOLDS(!(old & HWT_F_PENDING) || (change.state & HWT_F_CANCELLED));
	HOLDS((old & HWT_F_PENDING) || (change.state | set) == (old | set));
	/* A cancel does not end a hold. */
	HOLDS(!(old & HWT_F_HELD) == !(change.state & HWT_F_HELD));
}

static void try_collect(u64 old, const struct hwt_timeout_ops *client)
{
	struct hwt_change change = hwt_state_collect(old, client);

	if (!(old & HWT_F_SUBMITTED))
		return;
	every(old, change);
	HOLDS(SAME(~HWT_F_SUBMITTED) && TICK_SAME);
	HOLDS((change.action == HWT_LINK) ==
	      ((old & (HWT_F_ARMED | HWT_F_RUNNING)) == HWT_F_ARMED));
	/* A collect calls no client. */
	HOLDS(change.action != HWT_RELEASE ||
	      (!client->release && !(client->cancelled && (old & HWT_F_CANCELLED))));
	HOLDS(change.action == HWT_OWE_CALL || !(change.state & HWT_F_SUBMITTED));
}

static void try_end(u64 old, const struct hwt_timeout_ops *client)
{
	struct hwt_change change = hwt_state_end(old, client);

	if (!(old & HWT_F_SUBMITTED) || (old & HWT_F_RUNNING))
		return;
	every(old, change);
	HOLDS(!(change.state & HWT_F_SUBMITTED) && TICK_SAME);
	HOLDS((change.action == HWT_LINK) == !!(old & HWT_F_ARMED));
	HOLDS((change.action == HWT_CALL_CANCELLED) ==
	      (!(old & HWT_F_ARMED) && (old & HWT_F_CANCELLED) && client->cancelled));
}

static void try_delete(u64 old, u64 set)
{
	struct hwt_change change = hwt_state_delete(old, set);

	/* hwt_delete() collects a timeout that is SUBMITTED and RUNNING first. */
	if ((old & HWT_F_SUBMITTED) && ((old & HWT_F_RUNNING) || !(old & HWT_F_PENDING)))
		return;
	every(old, change);
	HOLDS(!(change.state & HWT_F_PENDING) && TICK_SAME && SAME(HWT_F_RUNNING));
	HOLDS(!set || (change.state & HWT_F_SHUTDOWN));
	HOLDS(!(old & HWT_F_PENDING) || (change.state & HWT_F_CANCELLED));
	HOLDS((old & HWT_F_PENDING) || (change.state | set) == (old | set));
	/* What is given back is held by nobody; what is not, is left as it was held. */
	HOLDS((change.action == HWT_GIVE_BACK) ==
	      ((old & HWT_F_PENDING) && !(old & HWT_F_RUNNING)));
	HOLDS(change.action != HWT_GIVE_BACK || !(change.state & HWT_F_HELD));
}

/* Where a timeout goes that is not due, or was touched. Return false if it fires. */
static bool try_due(u64 old, u64 now, u64 touched, struct hwt_change change)
{
	bool due = (old & HWT_F_ARMED) && hwt_state_tick(old) <= now;

	if (change.action == HWT_CALL) {
		HOLDS(due && touched <= now);
		return false;
	}
	HOLDS((change.action == HWT_LINK) == !!(old & HWT_F_ARMED));
	HOLDS(change.state == old ||
	      (due && touched > now && hwt_state_tick(change.state) == touched &&
	       SAME(HWT_F_ALL)));
	HOLDS(change.state != old || !due);
	return true;
}

static void try_fire(u64 old, u64 now, u64 touched)
{
	struct hwt_change change = hwt_state_fire(old, now, touched);

	if ((old & HWT_F_RUNNING) || !(old & (HWT_F_ARMED | HWT_F_SUBMITTED)))
		return;
	every(old, change);
	if (try_due(old, now, touched, change))
		return;
	HOLDS(SAME(HWT_F_SUBMITTED | HWT_F_PERIODIC) && TICK_SAME);
	HOLDS(change.action != HWT_CALL ||
	      (!(change.state & HWT_F_ARMED) && (change.state & HWT_F_EXPIRED)));
	HOLDS(change.action != HWT_CALL ||
	      !(change.state & HWT_F_REARM) == !(old & HWT_F_PERIODIC));
}

static void try_fire_bh(u64 old, u64 now, u64 touched, u64 next)
{
	struct hwt_change change = hwt_state_fire_bh(old, now, touched, next);

	if ((old & HWT_F_RUNNING) || !(old & (HWT_F_ARMED | HWT_F_SUBMITTED)))
		return;
	if (old & HWT_F_SUBMITTED) {
		HOLDS(change.action == HWT_NOTHING && change.state == old);
		return;
	}
	if (try_due(old, now, touched, change))
		return;
	/* Only a periodic timeout is held during the call: it is armed for its next tick. */
	HOLDS(!(old & HWT_F_PERIODIC) == !(change.state & HWT_F_HELD));
	HOLDS(SAME(HWT_F_PERIODIC | HWT_F_SUBMITTED | HWT_F_RUNNING));
	HOLDS((change.state & HWT_F_EXPIRED) && !(change.state & HWT_F_CANCELLED));
	if (old & HWT_F_PERIODIC)
		HOLDS(hwt_state_tick(change.state) == next && (change.state & HWT_F_REARM) &&
		      (change.state & HWT_F_ARMED));
	else
		every(old, change);
	HOLDS(hwt_state_valid(change.state));
}

static void try_hand_back_bh(u64 old)
{
	struct hwt_change change = hwt_state_hand_back_bh(old);

	if (old & HWT_F_RUNNING)
		return;
	HOLDS((change.action == HWT_CALL) ==
	      ((old & (HWT_F_ARMED | HWT_F_SUBMITTED)) == HWT_F_ARMED));
	HOLDS(change.action == HWT_CALL || change.state == old);
	if (change.action != HWT_CALL)
		return;
	every(old, change);
	HOLDS(!(change.state & HWT_F_HELD) && (change.state & HWT_F_CANCELLED) && TICK_SAME);
}

static void try_hand_back(u64 old)
{
	struct hwt_change change = hwt_state_hand_back(old);

	if ((old & HWT_F_RUNNING) || !(old & (HWT_F_ARMED | HWT_F_SUBMITTED)))
		return;
	every(old, change);
	HOLDS((change.action == HWT_CALL) == !!(old & HWT_F_ARMED));
	HOLDS(change.action != HWT_CALL ||
	      (!(change.state & HWT_F_PENDING) && (change.state & HWT_F_CANCELLED)));
	HOLDS(SAME(HWT_F_SUBMITTED) && TICK_SAME);
}

static void try_finish(u64 old, u64 tick, bool notify)
{
	struct hwt_change change = hwt_state_finish(old, tick, notify);

	if (!(old & HWT_F_RUNNING))
		return;
	every(old, change);
	HOLDS(change.action == HWT_CALL_CANCELLED || !(change.state & HWT_F_RUNNING));
	HOLDS(SAME(HWT_F_SUBMITTED));
	HOLDS((change.action == HWT_LINK) ==
	      (change.action != HWT_CALL_CANCELLED && (old & HWT_F_PENDING)));
	/* A tick that was scheduled during the callback stays. */
	HOLDS(!(old & HWT_F_ARMED) || TICK_SAME);
	HOLDS(!GAINS(HWT_F_ARMED) || hwt_state_tick(change.state) == tick);
	HOLDS(change.action != HWT_CALL_CANCELLED || (notify && !(old & HWT_F_PENDING)));
}

static void try_reopen(u64 old)
{
	struct hwt_change change = { .action = HWT_NOTHING };

	cases++;
	change.state = hwt_state_reopen(old);
	HOLDS(hwt_state_valid(change.state) && SAME(~HWT_F_SHUTDOWN));
	HOLDS(!(change.state & HWT_F_SHUTDOWN));
}

static void check_from(u64 old)
{
	unsigned int i, j, flags;

	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		for (flags = 0; flags < 0x20; flags++)
			try_schedule(old, ticks[i], flags);
		for (j = 0; j < ARRAY_SIZE(ticks); j++) {
			try_fire(old, ticks[i], ticks[j]);
			try_fire_bh(old, ticks[i], ticks[j], MIDDLE + 2);
		}
		try_finish(old, ticks[i], false);
		try_finish(old, ticks[i], true);
	}
	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		try_cancel(old, sets[i]);
		try_delete(old, sets[i]);
	}
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		try_collect(old, &ops[i]);
		try_end(old, &ops[i]);
	}
	try_hand_back(old);
	try_hand_back_bh(old);
	try_reopen(old);
}

/* -- The table -------------------------------------------------------------- */

/* The model has no EXPIRED; its PERIODIC has that bit. */
static unsigned int model(u64 state)
{
	return hwt_state_tick(state) << 8 | (state & 0x3f) | (state & HWT_F_PERIODIC ? 0x40 : 0);
}

static void print(const char *what, unsigned int a, unsigned int b, struct hwt_change change,
		  unsigned int old)
{
	printf("%s %u %u %u %u %d\n", what, old, a, b, model(change.state),
	       change.action == HWT_REFUSED_SHUTDOWN ? 10 : change.action);
}

static void print_from(unsigned int old, u64 state)
{
	unsigned int i, tick;

	for (tick = 0; tick < 3; tick++) {
		for (i = 0; i < 2; i++) {
			print("schedule", tick, i,
			      hwt_state_schedule(state, tick, i ? HWT_SCHEDULE_PERIODIC : 0), old);
			print("finish", tick, i, hwt_state_finish(state, tick, i), old);
		}
		for (i = 0; i < 3; i++)
			print("fire", tick, i, hwt_state_fire(state, tick, i), old);
		print("fire_bh", tick, 0, hwt_state_fire_bh(state, tick, 0, 3), old);
	}
	for (i = 0; i < 2; i++) {
		print("delete", i, 0, hwt_state_delete(state, sets[i]), old);
		print("cancel", i, 0, hwt_state_cancel(state, sets[i]), old);
		print("collect", i, 0, hwt_state_collect(state, &ops[i]), old);
		print("end", i, 0, hwt_state_end(state, &ops[2 * i]), old);
	}
	print("hand_back", 0, 0, hwt_state_hand_back(state), old);
	print("hand_back_bh", 0, 0, hwt_state_hand_back_bh(state), old);
}

int main(int argc, char **argv)
{
	unsigned int bits;
	bool whole, known;

	if (argc == 2 && !strcmp(argv[1], "table")) {
		for (bits = 0; bits < 0x80; bits++)
			print_from(1 << 8 | bits, 1ULL << HWT_TICK_SHIFT | (bits & 0x3f) |
				   (bits & 0x40 ? HWT_F_PERIODIC : 0));
		return 0;
	}
	for (bits = 0; bits <= HWT_F_ALL; bits++)
		if (hwt_state_valid(bits))
			check_from((u64)MIDDLE << HWT_TICK_SHIFT | bits);
	whole = !faults && cases > 10000;
	printf("%s - life: %u changes of a state keep the invariants\n", whole ? "ok" : "not ok",
	       cases);
	/* The checks above rely on this function. */
	known = !hwt_state_valid(HWT_F_REARM) && !hwt_state_valid(HWT_F_PENDING | HWT_F_SHUTDOWN);
	printf("%s - life: invalid states are recognized\n", known ? "ok" : "not ok");
	return !whole || !known;
}
