/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * user_bench: what its parts share
 *
 *	user_bench.c	options, and which peer runs when
 *	measure.c	one run of one peer, in a process of its own
 *	report.c	figures of all runs, and how they are printed
 *	system.c	clocks, memory, limits
 *	peer_*.c	the peers: each one way for a program to have many timers
 */
#ifndef USER_BENCH_H
#define USER_BENCH_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/types.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

/* Most timers that a peer is handed in one call, and most events it takes in one. */
#define BATCH		32
#define EVENTS		256

/* One operation of many: on which timer, from 0, and its new delay. */
struct todo {
	__u32	timer;
	__u64	delay_ns;
};

/**
 * struct run - what is measured
 * @peer:        by whom
 * @count:       timers
 * @deadline_ns: 0: each timer has its own delay. Else all are due at this time on
 *               CLOCK_MONOTONIC.
 */
struct run {
	const struct peer	*peer;
	unsigned int		count;
	__u64			deadline_ns;
};

/* An operation, on up to BATCH timers. */
typedef void (*operate_fn)(const struct run *run, const struct todo *todo,
			   unsigned int count);

/**
 * struct peer - a way to have many timers
 * @name:      in the output
 * @what:      for people
 * @open:      get ready for run->count timers, the memory to know them by touched
 * @create:    make timers and arm them
 * @rearm:     push their deadlines back
 * @cancel:    disarm and unmake them
 * @reap:      wait until all have fired, and take each one's event. Calls reap_first()
 *             when it knows of the first one. NULL: there is nothing to reap.
 * @engine_ns: CPU time that a thread of the kernel has spent for this peer; NULL: none
 *             does
 *
 * Each run is in a new process, so peers keep what they know in static variables and
 * tidy nothing up; what fails calls give_up(). A peer for which it is no advantage to be
 * given many timers at once goes through them one by one.
 */
struct peer {
	const char *name;
	const char *what;
	void (*open)(const struct run *run);
	operate_fn create;
	operate_fn rearm;
	operate_fn cancel;
	void (*reap)(const struct run *run);
	__u64 (*engine_ns)(void);
};

extern const struct peer peer_syscall, peer_hwt, peer_hwt_batch, peer_hwt_rings,
	peer_hwt_uring, peer_hwt_uring_batch, peer_timerfd, peer_posix, peer_uring,
	peer_uring_batch, peer_libuv, peer_libev;

static inline struct timespec to_timespec(__u64 ns)
{
	return (struct timespec) {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};
}

/* -- measure.c ----------------------------------------------------------- */

enum operation { CREATE, REARM, CANCEL, OPERATIONS };

/* What is measured; report.c has their names. The first come in operations' order. */
enum figure {
	CREATE_WALL, REARM_WALL, CANCEL_WALL,
	CREATE_CPU, REARM_CPU, CANCEL_CPU,
	CREATE_ENGINE, REARM_ENGINE, CANCEL_ENGINE,
	REAP_WALL, REAP_DUE, REAP_CPU, REAP_ENGINE,
	MEMORY_SLAB, MEMORY_RSS, MEMORY_FREE,
	FIGURES
};

/**
 * struct outcome - what a run's process tells: memory shared with the one that started it
 * @value:    per timer; NAN if not measured
 * @done:     timers that the operation was carried out on: fewer than asked for if the
 *            time was over
 * @took_ns:  time the operation took
 * @late:     the common deadline came before all timers were made
 * @finished: the run came to its end
 * @why:      else, why not
 */
struct outcome {
	double		value[FIGURES];
	unsigned int	done[OPERATIONS];
	__u64		took_ns[OPERATIONS];
	bool		late;
	bool		finished;
	char		why[200];
};

extern struct outcome *outcome;

/* Seconds for an operation on all timers; creating them may take so much longer. */
extern unsigned int time_limit;
#define CREATE_PATIENCE	10

/* The least delay, so that nothing fires while create, rearm and cancel are measured. */
static inline __u64 delay_floor_ns(void)
{
	return (CREATE_PATIENCE + 4) * time_limit * NSEC_PER_SEC;
}

void measure_operations(struct run *run, struct todo *const todo[OPERATIONS]);
void measure_reap(struct run *run, const struct todo *create, __u64 lead_ns);

/* For peers. */
void give_up(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void give_up_errno(const char *call) __attribute__((noreturn));
void reap_first(void);
void *alloc_touched(size_t count, size_t size);

/* -- peer_hwt.c ---------------------------------------------------------- */

int hwt_device_open(__u64 features);
__u64 hwt_engine_ns(void);
void hwt_engines_final(void);

/* -- report.c ------------------------------------------------------------ */

void report_start(unsigned int peers, unsigned int repetitions);
void report_add(unsigned int peer, unsigned int repetition);
void report_print(const struct peer *const peers[], unsigned int timers);

/* -- system.c ------------------------------------------------------------ */

/* Bytes: the kernel's objects, the machine's free memory, this process's pages. */
struct memory {
	double	slab;
	double	free;
	double	rss;
};

__u64 now_ns(void);
__u64 cpu_ns(void);
void sleep_until(__u64 when_ns);
void memory_read(struct memory *memory);
void memory_settle(void);
bool memory_is_short(void);
void limits_raise(unsigned int timers);
void limits_restore(void);
void write_number(const char *path, long long value);

#endif /* USER_BENCH_H */
