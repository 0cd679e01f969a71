/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* A flow: what the program in the kernel and the daemon share. */
#define FLOWS	100000

struct flow {
	/* ns on CLOCK_MONOTONIC, for libhwt_timer_watch() */
	unsigned long long deadline;
	/* source address, source port, destination port; 0: the place is free */
	unsigned long long key;
};
