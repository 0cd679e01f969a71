/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Print all changes of a state in the model. "tests/unit/state table" prints those of the module's
 * functions, and verify.py compares the two.
 */
#define MUT(n)	(false)
#include "state.pml"

#define SHOW(a, b)	old, a, b, new, act

init {
	short old, new;
	byte bits, tick, i;

	for (bits : 0 .. 127) {
		old = (1 << 8) | bits;
		for (tick : 0 .. 2) {
			for (i : 0 .. 1) {
				state_schedule(old, tick, i);
				printf("schedule %d %d %d %d %d\n", SHOW(tick, i));
				state_finish(old, tick, i);
				printf("finish %d %d %d %d %d\n", SHOW(tick, i))
			}
			for (i : 0 .. 2) {
				state_fire(old, tick, i);
				printf("fire %d %d %d %d %d\n", SHOW(tick, i))
			}
			state_fire_bh(old, tick, 0, 3);
			printf("fire_bh %d %d %d %d %d\n", SHOW(tick, 0))
		}
		for (i : 0 .. 1) {
			state_delete(old, i * SHUTDOWN);
			printf("delete %d %d %d %d %d\n", SHOW(i, 0));
			state_cancel(old, i * SHUTDOWN);
			printf("cancel %d %d %d %d %d\n", SHOW(i, 0));
			state_collect(old, i);
			printf("collect %d %d %d %d %d\n", SHOW(i, 0));
			state_end(old, i);
			printf("end %d %d %d %d %d\n", SHOW(i, 0))
		}
		state_hand_back(old);
		printf("hand_back %d %d %d %d %d\n", SHOW(0, 0));
		state_hand_back_bh(old);
		printf("hand_back_bh %d %d %d %d %d\n", SHOW(0, 0))
	}
}
