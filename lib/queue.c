// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * libhwt: queues
 *
 * A queue is the two rings of a context, in memory shared with the kernel. The ring of operations
 * has three indices, of which the kernel moves the second:
 *
 *	result_head   <=   rings->op_head   <=   op_tail, also in rings->op_tail
 *	 next result        next to be            next to be
 *	 to be taken        carried out           added
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

/**
 * struct libhwt_queue - the queue of a context
 * @context:     the context
 * @live:        true; false in a child of fork(), which finds this structure zeroed
 * @op_lock:     protects @op_tail and @result_head, and is held while results are copied
 * @ops:         the ring of operations
 * @op_mask:     its number of entries - 1
 * @op_tail:     index of the next operation to be added
 * @result_head: index of the next operation whose result will be taken
 * @event_lock:  held while events are taken
 * @events:      the ring of events
 * @event_mask:  its number of entries - 1
 * @event_head:  index of the next event to be taken
 * @rings:       the shared memory
 * @map_size:    its size
 */
struct libhwt_queue {
	struct libhwt		*context;
	bool			live;
	pthread_mutex_t		op_lock;
	struct hwt_op		*ops;
	uint32_t		op_mask;
	uint32_t		op_tail;
	uint32_t		result_head;
	pthread_mutex_t		event_lock;
	struct hwt_event	*events;
	uint32_t		event_mask;
	uint32_t		event_head;
	struct hwt_rings	*rings;
	size_t			map_size;
};

#define OPS_DEFAULT	256
#define EVENTS_DEFAULT	1024

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* -- Creation and destruction -------------------------------------------- */

static int rings_map(struct libhwt_queue *queue, const struct libhwt_queue_options *options)
{
	struct hwt_rings_args args = {
		.size = sizeof(args),
		.op_entries = options->ops ? options->ops : OPS_DEFAULT,
		.event_entries = options->events ? options->events : EVENTS_DEFAULT,
		.op_size = sizeof(struct hwt_op),
	};
	struct libhwt *context = queue->context;
	char *map;
	int ret;

	ret = hwtlib_call(context, HWT_IOC_RINGS, &args);
	if (ret)
		return ret;
	map = mmap(NULL, args.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, context->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	/* Do not map the rings in a child of fork(), which would change those of the parent. */
	madvise(map, args.map_size, MADV_DONTFORK);
	queue->rings = (struct hwt_rings *)map;
	queue->map_size = args.map_size;
	queue->ops = (struct hwt_op *)(map + args.ops_offset);
	queue->op_mask = args.op_entries - 1;
	queue->events = (struct hwt_event *)(map + args.events_offset);
	queue->event_mask = args.event_entries - 1;
	return 0;
}

static struct libhwt_queue *queue_alloc(void)
{
	struct libhwt_queue *queue;

	queue = mmap(NULL, sizeof(*queue), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (queue == MAP_FAILED)
		return NULL;
	if (madvise(queue, sizeof(*queue), MADV_WIPEONFORK)) {
		munmap(queue, sizeof(*queue));
		return NULL;
	}
	return queue;
}

int libhwt_queue_new(struct libhwt_queue **queue, struct libhwt *context,
		     const struct libhwt_queue_options *options)
{
	struct libhwt_queue_options known;
	struct libhwt_queue *new;
	int ret;

	ret = hwtlib_copy_options(&known, sizeof(known), options);
	if (ret)
		return ret;
	if (known.flags)
		return -EINVAL;
	if (context->queue)
		return -EBUSY;
	new = queue_alloc();
	if (!new)
		return -ENOMEM;
	new->context = context;
	/* The last step that can fail: once the rings are mapped, read() returns no events. */
	ret = rings_map(new, &known);
	if (ret) {
		munmap(new, sizeof(*new));
		return ret;
	}
	pthread_mutex_init(&new->op_lock, NULL);
	pthread_mutex_init(&new->event_lock, NULL);
	new->live = true;
	context->queue = new;
	*queue = new;
	return 0;
}

void hwtlib_queue_free(struct libhwt *context)
{
	struct libhwt_queue *queue = context->queue;

	if (!queue)
		return;
	/* A child of fork() has neither the rings nor the locks. */
	if (queue->live) {
		munmap(queue->rings, queue->map_size);
		pthread_mutex_destroy(&queue->op_lock);
		pthread_mutex_destroy(&queue->event_lock);
	}
	munmap(queue, sizeof(*queue));
}

/* -- The kernel ---------------------------------------------------------- */

/* Return the index of the next operation to be carried out. Needs no lock. */
static uint32_t queue_op_head(const struct libhwt_queue *queue)
{
	/* Pairs with the kernel's release in hwt_rings_submit(): the caller sees the results. */
	return __atomic_load_n(&queue->rings->op_head, __ATOMIC_ACQUIRE);
}

/* Return the index of the next operation to be added. */
static uint32_t queue_tail(struct libhwt_queue *queue)
{
	uint32_t tail;

	pthread_mutex_lock(&queue->op_lock);
	tail = queue->op_tail;
	pthread_mutex_unlock(&queue->op_lock);
	return tail;
}

/*
 * Carry out the operations that were added, let events into the ring, and wait if @args->wait is
 * not 0. Operations go first, so no event of a timeout that they move or cancel enters the ring.
 */
static int enter(struct libhwt_queue *queue, struct hwt_enter_args *args)
{
	args->size = sizeof(*args);
	args->flags = HWT_ENTER_ABSOLUTE;
	/* If another thread has carried out some meanwhile, the kernel still stops at the tail. */
	args->submit = queue_tail(queue) - queue_op_head(queue);
	return hwtlib_call(queue->context, HWT_IOC_ENTER, args);
}

/* -- Operations ---------------------------------------------------------- */

int libhwt_queue_add(struct libhwt_queue *queue, const struct hwt_op *ops, unsigned int count)
{
	uint32_t room, i;

	if (!queue->live)
		return -ECHILD;
	pthread_mutex_lock(&queue->op_lock);
	room = queue->op_mask + 1 - (queue->op_tail - queue->result_head);
	count = min_u32(count, room);
	for (i = 0; i < count; i++)
		queue->ops[queue->op_tail++ & queue->op_mask] = ops[i];
	/* Pairs with the kernel's acquire in hwt_rings_submit(), which sees the operations. */
	__atomic_store_n(&queue->rings->op_tail, queue->op_tail, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&queue->op_lock);
	return room ? (int)count : -EAGAIN;
}

int libhwt_queue_submit(struct libhwt_queue *queue)
{
	struct hwt_enter_args args = {};
	uint32_t target;
	int ret;

	if (!queue->live)
		return -ECHILD;
	target = queue_tail(queue);
	/* Other threads may carry out operations too, and move the head past the target. */
	while ((int32_t)(target - queue_op_head(queue)) > 0) {
		ret = enter(queue, &args);
		if (ret && ret != -EINTR)
			return ret;
	}
	return 0;
}

int libhwt_queue_results(struct libhwt_queue *queue, struct hwt_op *ops, unsigned int max)
{
	uint32_t count, i;

	if (!queue->live)
		return -ECHILD;
	pthread_mutex_lock(&queue->op_lock);
	count = min_u32(queue_op_head(queue) - queue->result_head, max);
	for (i = 0; ops && i < count; i++)
		ops[i] = queue->ops[(queue->result_head + i) & queue->op_mask];
	queue->result_head += count;
	pthread_mutex_unlock(&queue->op_lock);
	return count;
}

/* -- Events -------------------------------------------------------------- */

/* Free the entries of the first events in the ring. */
static void events_seen(struct libhwt_queue *queue, uint32_t count)
{
	queue->event_head += count;
	/* Pairs with the kernel's acquire in hwt_rings_unread(): reads come before reuse. */
	__atomic_store_n(&queue->rings->event_head, queue->event_head, __ATOMIC_RELEASE);
}

static uint32_t queue_event_tail(const struct libhwt_queue *queue)
{
	/* Pairs with the kernel's release in hwt_rings_fill(): events before the tail are seen. */
	return __atomic_load_n(&queue->rings->event_tail, __ATOMIC_ACQUIRE);
}

/*
 * Find contiguous events in the ring. If there are none, let in events that wait in the kernel, or
 * are due. Return their number, or as libhwt_next().
 */
static int events_find(struct libhwt_queue *queue, const struct hwt_event **events)
{
	/* No order: the word only asks for one call, which finds the events of what is due. */
	uint32_t due = __atomic_load_n(&queue->rings->due, __ATOMIC_RELAXED);
	struct hwt_enter_args args = {};
	uint32_t flags, tail, at;
	int ret;

	do {
		/* Pairs with hwt_rings_fill(): without MORE, moved events are before the tail. */
		flags = __atomic_load_n(&queue->rings->flags, __ATOMIC_ACQUIRE);
		tail = queue_event_tail(queue);
		if (queue->event_head != tail) {
			at = queue->event_head & queue->event_mask;
			*events = &queue->events[at];
			return min_u32(tail - queue->event_head, queue->event_mask + 1 - at);
		}
		if (!(flags & HWT_RINGS_MORE) && !due)
			return 0;
		due = 0;
		ret = enter(queue, &args);
	} while (ret >= 0 || ret == -EINTR);
	return ret;
}

/* Take events from the ring. Return as libhwt_next(), but without waiting. */
static int events_take(struct libhwt_queue *queue, struct hwt_event *events, unsigned int max)
{
	const struct hwt_event *from = NULL;
	unsigned int total = 0;
	int n;

	max = min_u32(max, INT32_MAX);
	pthread_mutex_lock(&queue->event_lock);
	do {
		n = events_find(queue, &from);
		if (n > 0) {
			n = min_u32(n, max - total);
			memcpy(events + total, from, n * sizeof(*from));
			events_seen(queue, n);
			total += n;
		}
	} while (n > 0 && total < max);
	pthread_mutex_unlock(&queue->event_lock);
	return total ? (int)total : n;
}

int hwtlib_queue_wait(struct libhwt_queue *queue, struct hwt_event *events, unsigned int max,
		      uint64_t timeout_ns)
{
	struct hwt_enter_args args = {
		.size = sizeof(args),
		.flags = HWT_ENTER_ABSOLUTE,
		.wait = 1,
	};
	int ret;

	if (!queue->live)
		return -ECHILD;
	ret = events_take(queue, events, max);
	if (ret || !timeout_ns)
		return ret;
	args.timeout_ns = hwtlib_wait_end(timeout_ns);
	/*
	 * Submit before the call that waits: after a stop, a tracer or a suspend, the kernel
	 * restarts only a call without operations.
	 */
	ret = libhwt_queue_submit(queue);
	if (!ret)
		ret = events_take(queue, events, max);
	while (!ret && !args.result) {
		ret = hwtlib_call(queue->context, HWT_IOC_ENTER, &args);
		if (!ret)
			ret = events_take(queue, events, max);
		/* Another thread may have taken the event that woke this one. */
	}
	return ret || args.result == -ETIME ? ret : args.result;
}
