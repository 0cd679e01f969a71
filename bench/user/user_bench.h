/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * user_bench: what its parts share
 *
 *	user_bench.c	options, which peer runs when, results
 *	measure.c	one run of one peer, in a process of its own
 *	system.c	memory, limits
 *	peer_*.c	the peers: each one way for a program to have many timers
 */
#ifndef USER_BENCH_H
#define USER_BENCH_H

/* Of tests/user/lib, and first, for _GNU_SOURCE. */
#include "guest.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Timers that a peer is handed in one call (-b), and most events it takes in one. */
extern unsigned int batch_size;
#define BATCH_MAX	4096
#define EVENTS		256

enum operation { CREATE, REARM, CANCEL, OPERATIONS };

/* One operation of many: the timer's number, from 0, and its new delay. */
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
 * struct peer - a way to have many timers
 * @name:      in the output
 * @what:      for people
 * @open:      get ready for that many timers, the memory to know them by touched; NULL: no need
 * @operate:   make and arm up to batch_size timers, push them back, or disarm and destroy them
 * @reap:      wait until that many timers have fired, and take each one's event. Calls
 *             reap_first() when it knows of the first one. NULL: there is nothing to reap.
 * @engine_ns: CPU time that a thread of the kernel has spent for this peer; NULL: none
 *             does
 *
 * Each run is in a new process, so peers keep their state in static variables and free
 * nothing; what fails calls give_up(). A peer without a way to submit many operations at
 * once goes through them one by one.
 */
struct peer {
	const char *name;
	const char *what;
	void (*open)(unsigned int count);
	void (*operate)(enum operation op, const struct todo *todo, unsigned int count);
	void (*reap)(unsigned int count);
	__u64 (*engine_ns)(void);
};

extern const struct peer peer_syscall, peer_hwt, peer_hwt_rings, peer_hwt_keys, peer_hwt_uring,
	peer_hwt_uring_batch, peer_timerfd, peer_posix, peer_uring, peer_uring_batch, peer_libuv,
	peer_libev;

static inline struct timespec to_timespec(__u64 ns)
{
	return (struct timespec) {
		.tv_sec = ns / SEC,
		.tv_nsec = ns % SEC,
	};
}

/* -- measure.c ----------------------------------------------------------- */

/* What is measured; user_bench.c has the names. The first are in the operations' order. */
enum figure {
	CREATE_WALL, REARM_WALL, CANCEL_WALL,
	CREATE_ENGINE, REARM_ENGINE, CANCEL_ENGINE,
	REAP_WALL, REAP_DUE, REAP_ENGINE,
	MEMORY_SLAB, MEMORY_RSS,
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
	return (CREATE_PATIENCE + 4) * time_limit * SEC;
}

void measure_operations(const struct peer *peer, struct todo *const todo[OPERATIONS],
			unsigned int count);
void measure_reap(const struct peer *peer, const struct todo *create, unsigned int count,
		  __u64 lead_ns);

/* For peers. */
void give_up(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void give_up_errno(const char *call) __attribute__((noreturn));
void reap_first(void);
void *alloc_touched(size_t count, size_t size);

/* -- peer_hwt.c ---------------------------------------------------------- */

int hwt_device_open(__u64 features, __u32 setup_flags);
__u64 hwt_engine_ns(void);

/* -- system.c ------------------------------------------------------------ */

/* Bytes: the kernel's objects, the machine's free memory, this process's pages. */
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
