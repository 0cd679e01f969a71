/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts, statistics and rings, for the programs that test /dev/hwt.
 */
#ifndef HWT_RING_H
#define HWT_RING_H

#include "process.h"

#include <sys/mman.h>

/* Test the condition each millisecond until it holds; false if it never does. */
#define until(_condition)						\
({									\
	unsigned int _tries = PATIENCE_MS;				\
									\
	while (!(_condition) && --_tries)				\
		sleep_ns(MSEC);						\
	_tries > 0;							\
})

/* xorshift; the state must not be 0. */
static inline __u64 next_random(__u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Compare two __u64, for qsort(). */
static inline int by_value(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* -- Contexts ------------------------------------------------------------ */

static inline unsigned int last_cpu(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) - 1;
}

static inline bool stay_on_cpu(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

/* Return the number of entries listed. */
static inline int hwt_entries(int fd, struct hwt_list_entry *entries, __u32 count)
{
	__u64 cursor = 0;
	int ret = hwt_list(fd, &cursor, entries, &count);

	return ret ? ret : (int)count;
}

/* Return the present statistics; all bits are set if the call failed. */
static inline struct hwt_stats_args hwt_now(int fd)
{
	struct hwt_stats_args stats;

	if (hwt_stats(fd, &stats))
		memset(&stats, 0xff, sizeof(stats));
	return stats;
}

/* Compare the counters: stats_are(fd, .timeouts = 3, .pending = 2); all others must be 0. */
#define stats_are(_fd, ...)							\
	stats_same(hwt_now(_fd), (struct hwt_stats_args) { __VA_ARGS__ })

static inline bool stats_same(struct hwt_stats_args got, struct hwt_stats_args want)
{
	const __u64 *x = (const __u64 *)&got, *y = (const __u64 *)&want;
	bool same = true;
	unsigned int i;

	for (i = 1; i <= 11; i++) {
		if (x[i] == y[i])
			continue;
		fprintf(stderr, "# counter %u: %llu, wanted %llu\n", i, (unsigned long long)x[i],
			(unsigned long long)y[i]);
		same = false;
	}
	return same;
}

static inline __u64 hwt_timeouts(int fd)
{
	return hwt_now(fd).timeouts;
}

/* -- Operations ---------------------------------------------------------- */

static inline struct hwt_op op_schedule(__u64 time_ns, __u64 data)
{
	return (struct hwt_op) {
		.opcode = HWT_OP_SCHEDULE,
		.time_ns = time_ns,
		.user_data = data,
	};
}

static inline struct hwt_op op_modify(__u64 id, __u64 time_ns)
{
	return (struct hwt_op) { .opcode = HWT_OP_MODIFY, .id = id, .time_ns = time_ns };
}

static inline struct hwt_op op_cancel(__u64 id)
{
	return (struct hwt_op) { .opcode = HWT_OP_CANCEL, .id = id };
}

static inline struct hwt_op op_get(__u64 id)
{
	return (struct hwt_op) { .opcode = HWT_OP_GET, .id = id };
}

/* -- Rings --------------------------------------------------------------- */

struct ring {
	int			fd;
	size_t			size;
	struct hwt_rings	*shared;
	struct hwt_op		*ops;
	struct hwt_event	*events;
	__u32			op_mask;
	__u32			event_mask;
};

static inline int hwt_rings(int fd, __u32 flags, __u32 ops, __u32 events,
			    struct hwt_rings_args *args)
{
	*args = (struct hwt_rings_args) {
		.size = sizeof(*args),
		.flags = flags,
		.op_entries = ops,
		.event_entries = events,
		.op_size = sizeof(struct hwt_op),
	};
	return hwt_call(fd, HWT_IOC_RINGS, args);
}

/* Return -ENOMEM whatever the error of mmap(). */
static inline int ring_map(struct ring *ring, int fd, const struct hwt_rings_args *args)
{
	char *p = mmap(NULL, args->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (!p || (void *)p == MAP_FAILED)
		return -ENOMEM;
	*ring = (struct ring) {
		.fd = fd,
		.size = args->map_size,
		.shared = (void *)p,
		.ops = (void *)(p + args->ops_offset),
		.events = (void *)(p + args->events_offset),
		.op_mask = args->op_entries - 1,
		.event_mask = args->event_entries - 1,
	};
	return 0;
}

static inline int ring_make(struct ring *ring, int fd, __u32 flags, __u32 ops, __u32 events)
{
	struct hwt_rings_args args;
	int ret = hwt_rings(fd, flags, ops, events, &args);

	*ring = (struct ring) { .fd = fd };
	return ret < 0 ? ret : ring_map(ring, fd, &args);
}

static inline void ring_unmap(struct ring *ring)
{
	if (ring->shared)
		munmap(ring->shared, ring->size);
	ring->shared = NULL;
}

/* Fields of the kernel are loaded with acquire semantics, our own are stored with release. */

static inline __u32 ring_op_head(const struct ring *ring)
{
	return __atomic_load_n(&ring->shared->op_head, __ATOMIC_ACQUIRE);
}

static inline __u32 ring_event_tail(const struct ring *ring)
{
	return __atomic_load_n(&ring->shared->event_tail, __ATOMIC_ACQUIRE);
}

static inline __u32 ring_flags(const struct ring *ring)
{
	return __atomic_load_n(&ring->shared->flags, __ATOMIC_ACQUIRE);
}

/* Queue an operation. Return its slot, which will hold the result; NULL: the ring is full. */
static inline struct hwt_op *ring_push(struct ring *ring, struct hwt_op op)
{
	__u32 tail = ring->shared->op_tail;
	struct hwt_op *slot = &ring->ops[tail & ring->op_mask];

	if (tail - ring_op_head(ring) > ring->op_mask)
		return NULL;
	*slot = op;
	__atomic_store_n(&ring->shared->op_tail, tail + 1, __ATOMIC_RELEASE);
	return slot;
}

static inline __u32 ring_unread(const struct ring *ring)
{
	return ring_event_tail(ring) - ring->shared->event_head;
}

static inline bool ring_pop(struct ring *ring, struct hwt_event *event)
{
	__u32 head = ring->shared->event_head;

	if (head == ring_event_tail(ring))
		return false;
	*event = ring->events[head & ring->event_mask];
	__atomic_store_n(&ring->shared->event_head, head + 1, __ATOMIC_RELEASE);
	return true;
}

/* Return the number of operations carried out; -EINTR if a signal came before the first. */
static inline long ring_enter(const struct ring *ring, __u32 submit, __u32 wait,
			      __u64 timeout_ns)
{
	struct hwt_enter_args args = {
		.size = sizeof(args),
		.submit = submit,
		.wait = wait,
		.timeout_ns = timeout_ns,
	};
	int ret = hwt_call(ring->fd, HWT_IOC_ENTER, &args);

	if (!ret && !args.submit && args.result == -EINTR)
		ret = -EINTR;
	return ret ? ret : (long)args.submit;
}

/* Move events to the ring, and wait until it has @count. */
static inline bool ring_wait(const struct ring *ring, __u32 count)
{
	return !ring_enter(ring, 0, count, PATIENCE_MS * MSEC) && ring_unread(ring) >= count;
}

/* Wait for the next event and take it. Return 1, or a negative error. */
static inline long ring_next(struct ring *ring, struct hwt_event *event)
{
	long ret;

	if (ring_pop(ring, event))
		return 1;
	ret = ring_enter(ring, 0, 1, PATIENCE_MS * MSEC);
	if (ret)
		return ret;
	return ring_pop(ring, event) ? 1 : -ETIMEDOUT;
}

/* Carry out one operation. Return its result, and store its id if @id is not NULL. */
static inline long ring_do(struct ring *ring, struct hwt_op op, __u64 *id)
{
	struct hwt_op *slot = ring_push(ring, op);
	long ret;

	if (!slot)
		return -ENOSPC;
	ret = ring_enter(ring, 1, 0, 0);
	if (ret != 1)
		return ret < 0 ? ret : -EIO;
	if (id)
		*id = slot->id;
	return slot->result;
}

/* Return the number of events that wait in the kernel. */
static inline __u64 hwt_waiting(int fd)
{
	return hwt_now(fd).events;
}

/* Wait until timeouts have fired @count times since the context was opened. */
static inline bool hwt_wait_expired(int fd, __u64 count)
{
	return until(hwt_now(fd).expired >= count);
}

/* Let @count timeouts fire, a millisecond apart. Data goes on from the number scheduled. */
static inline bool hwt_fire(int fd, unsigned int count)
{
	struct hwt_stats_args stats = hwt_now(fd);
	unsigned int i;

	for (i = 0; i < count; i++)
		if (hwt_add(fd, 0, i * MSEC, stats.scheduled + i, NULL))
			return false;
	return hwt_wait_expired(fd, stats.expired + count);
}

/* Open a context with rings of these sizes. Return the descriptor or an error. */
static inline int ring_open(struct ring *ring, __u32 ops, __u32 events)
{
	int fd = hwt_open(O_NONBLOCK), ret;

	*ring = (struct ring) { .fd = fd };
	if (fd < 0)
		return fd;
	ret = ring_make(ring, fd, 0, ops, events);
	return ret < 0 ? ret : fd;
}

static inline void ring_close(struct ring *ring)
{
	ring_unmap(ring);
	close(ring->fd);
}

#endif /* HWT_RING_H */
