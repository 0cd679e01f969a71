/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * user_bench: declarations shared by its files
 *
 *	user_bench.c	options, the order of the runs, results
 *	measure.c	a run of a peer, in its own process
 *	single.c	opening and closing; the lateness of a single timer
 *	system.c	memory, limits
 *	peer_*.c	the peers: interfaces by which a program can have many timers
 */
#ifndef USER_BENCH_H
#define USER_BENCH_H

/* From tests/user/lib; first, because it defines _GNU_SOURCE. */
#include "guest.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Maximum number of timers in one call of a peer (-b), and of events that a peer takes at once. */
extern unsigned int batch_size;
#define BATCH_MAX	4096
#define EVENTS		256

enum operation { CREATE, REARM, CANCEL, OPERATIONS };

/* An operation on a timer: the timer's number, from 0, and its new delay. */
struct todo {
	__u32	timer;
	__u64	delay_ns;
};

/* If not 0, all timers are due at this time on CLOCK_MONOTONIC, not after their delays. */
extern __u64 deadline_ns;

static inline __u64 time_of(const struct todo *todo)
{
	return deadline_ns ? deadline_ns : todo->delay_ns;
}

/**
 * struct peer - an interface for many timers
 * @name:      in the results
 * @what:      description for the help
 * @open:      prepare for @count timers, and touch the memory for them; may be NULL
 * @operate:   create and arm up to batch_size timers, push them back, or disarm and destroy them
 * @reap:      wait until @count timers have fired, and take their events. NULL: the peer has no
 *             timers.
 *
 * Each run is a new process, so peers keep their state in static variables and free nothing. They
 * call give_up() after errors. A peer without batches executes the operations one by one.
 */
struct peer {
	const char *name;
	const char *what;
	void (*open)(unsigned int count);
	void (*operate)(enum operation op, const struct todo *todo, unsigned int count);
	void (*reap)(unsigned int count);
};

extern const struct peer peer_syscall, peer_hwt, peer_hwt_rings, peer_hwt_keys, peer_hwt_uring,
	peer_hwt_uring_batch, peer_timerfd, peer_uring, peer_uring_batch;

static inline struct timespec to_timespec(__u64 ns)
{
	return (struct timespec) {
		.tv_sec = ns / SEC,
		.tv_nsec = ns % SEC,
	};
}

/* -- measure.c ----------------------------------------------------------- */

/* The figures; user_bench.c has their names. The first three are in the operations' order. */
enum figure {
	CREATE_WALL, REARM_WALL, CANCEL_WALL,
	REAP_CPU, REAP_DUE,
	MEMORY_SLAB, MEMORY_RSS,
	FIGURES
};

/**
 * struct outcome - the result of a run, in memory shared with the parent process
 * @value:    per timer; NAN if not measured
 * @done:     number of timers of each operation, fewer than requested after the time limit
 * @took_ns:  duration of each operation
 * @spins:    turns of a process that uses all CPU time that no other needs
 * @late:     the common deadline came before all timers were created
 * @finished: the run has finished
 * @why:      else, the reason
 */
struct outcome {
	double		value[FIGURES];
	unsigned int	done[OPERATIONS];
	__u64		took_ns[OPERATIONS];
	volatile __u64	spins;
	bool		late;
	bool		finished;
	char		why[200];
};

extern struct outcome *outcome;

/* Seconds for an operation on all timers; the limit of create is CREATE_PATIENCE times that. */
extern unsigned int time_limit;
#define CREATE_PATIENCE	10

/* The minimum delay, so that no timer fires while create, rearm and cancel are measured. */
static inline __u64 delay_floor_ns(void)
{
	return (CREATE_PATIENCE + 4) * time_limit * SEC;
}

void measure_operations(const struct peer *peer, struct todo *const todo[OPERATIONS],
			unsigned int count);
void measure_reap(const struct peer *peer, const struct todo *create, unsigned int count,
		  __u64 lead_ns);

/* For peers. */
void give_up(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void give_up_errno(const char *call) __attribute__((noreturn));
void *alloc_touched(size_t count, size_t size);

/* -- single.c ------------------------------------------------------------ */

void measure_single(void);

/* -- peer_hwt.c ---------------------------------------------------------- */

int hwt_device_open(__u64 features, __u32 setup_flags);

/* -- system.c ------------------------------------------------------------ */

/* The kernel's objects, the machine's free memory, this process's pages; in bytes. */
struct memory {
	double	slab;
	double	free;
	double	rss;
};

void sleep_until(__u64 when_ns);
void memory_read(struct memory *memory);
void memory_settle(void);
bool memory_is_short(void);
void limits_raise(unsigned int timers);
void limits_restore(void);
void write_number(const char *path, long long value);

#endif /* USER_BENCH_H */
