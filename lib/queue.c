// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * libhwt: many operations at once
 *
 * A queue is a ring of operations, in memory shared with the kernel or not, with three places
 * in it:
 *
 *	result_head   <=   op_head   <=   op_tail
 *	 next result      next to be      next to be
 *	 to be taken     carried out        added
 *
 * With rings, op_head is moved by the kernel; else by libhwt_queue_submit().
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

/**
 * struct libhwt_queue - the queue of a context
 * @context:     whose
 * @live:        it is not that of a parent: fork() gives a child zeroes here
 * @kind:        LIBHWT_QUEUE_
 * @polled:      the kernel carries out operations by itself
 * @op_lock:     protects the places, and who adds, takes results, or submits without rings
 * @ops:         the ring of operations
 * @op_mask:     its entries - 1
 * @op_tail:     the next one to be added
 * @op_head:     the next one to be carried out, if there are no rings
 * @result_head: the next one whose result will be taken
 * @event_lock:  held by who takes events out of the ring
 * @events:      the ring of events, or NULL
 * @event_mask:  its entries - 1
 * @event_head:  the next one to be taken
 * @rings:       the shared memory, or NULL
 * @map_size:    its size
 */
struct libhwt_queue {
	struct libhwt		*context;
	bool			live;
	unsigned int		kind;
	bool			polled;
	pthread_mutex_t		op_lock;
	struct hwt_op		*ops;
	uint32_t		op_mask;
	uint32_t		op_tail;
	uint32_t		op_head;
	uint32_t		result_head;
	pthread_mutex_t		event_lock;
	const struct hwt_event	*events;
	uint32_t		event_mask;
	uint32_t		event_head;
	struct hwt_rings	*rings;
	size_t			map_size;
};

#define OPS_DEFAULT	256
#define EVENTS_DEFAULT	1024

#define FLAGS	(LIBHWT_QUEUE_POLL | LIBHWT_QUEUE_NO_RINGS | LIBHWT_QUEUE_NO_BATCH)

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Copy out of a ring, round its end if it must be. */
static void ring_get(void *to, const void *ring, size_t size, uint32_t mask, uint32_t at,
		     uint32_t count)
{
	uint32_t first = min_u32(count, mask + 1 - (at & mask));

	memcpy(to, (const char *)ring + (at & mask) * size, first * size);
	memcpy((char *)to + first * size, ring, (count - first) * size);
}

static void ring_put(struct hwt_op *ring, uint32_t mask, uint32_t at,
		     const struct hwt_op *from, uint32_t count)
{
	uint32_t first = min_u32(count, mask + 1 - (at & mask));

	memcpy(&ring[at & mask], from, first * sizeof(*ring));
	memcpy(ring, from + first, (count - first) * sizeof(*ring));
}

/* -- Without rings ------------------------------------------------------- */

/* What HWT_IOC_BATCH refuses of members that an ioctl does not have. */
static bool op_valid(const struct hwt_op *op)
{
	switch (op->opcode) {
	case HWT_OP_SCHEDULE:
		return !op->overruns;
	case HWT_OP_MODIFY:
		return !op->mode && !op->overruns;
	case HWT_OP_CANCEL:
		return !op->flags && !op->mode && !op->time_ns && !op->period_ns &&
		       !op->slack_ns && !op->user_data && !op->overruns;
	case HWT_OP_GET:
		return !op->flags;
	default:
		return false;
	}
}

static int op_schedule(struct libhwt *context, struct hwt_op *op)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.flags = op->flags,
		.mode = op->mode,
		.time_ns = op->time_ns,
		.period_ns = op->period_ns,
		.slack_ns = op->slack_ns,
		.user_data = op->user_data,
	};
	int ret = libhwt_schedule(context, &args);

	if (!ret)
		op->id = args.id;
	return ret;
}

static int op_modify(struct libhwt *context, const struct hwt_op *op)
{
	struct hwt_modify_args args = {
		.size = sizeof(args),
		.flags = op->flags,
		.id = op->id,
		.time_ns = op->time_ns,
		.period_ns = op->period_ns,
		.slack_ns = op->slack_ns,
		.user_data = op->user_data,
	};

	return libhwt_reschedule(context, &args);
}

static int op_get(struct libhwt *context, struct hwt_op *op)
{
	struct hwt_get_args args = { .size = sizeof(args) };
	int ret = libhwt_get(context, op->id, &args);

	if (ret)
		return ret;
	op->mode = args.mode;
	op->deadline_ns = args.deadline_ns;
	op->period_ns = args.period_ns;
	op->remaining_ns = args.remaining_ns;
	op->user_data = args.user_data;
	op->overruns = args.overruns;
	return args.state;
}

static int op_call(struct libhwt *context, struct hwt_op *op)
{
	if (!op_valid(op))
		return -EINVAL;
	switch (op->opcode) {
	case HWT_OP_SCHEDULE:
		return op_schedule(context, op);
	case HWT_OP_MODIFY:
		return op_modify(context, op);
	case HWT_OP_CANCEL:
		return libhwt_cancel(context, op->id);
	default:
		return op_get(context, op);
	}
}

static int ops_call(struct libhwt *context, struct hwt_op *ops, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		ops[i].result = op_call(context, &ops[i]);
	return count;
}

static int ops_batch(struct libhwt *context, struct hwt_op *ops, unsigned int count)
{
	unsigned int done = 0;
	int ret = 0;

	while (done < count && !ret) {
		struct hwt_batch_args args = {
			.size = sizeof(args),
			.ops = (uintptr_t)(ops + done),
			.count = count - done,
			.op_size = sizeof(*ops),
		};

		ret = hwtlib_call(context, HWT_IOC_BATCH, &args);
		if (!ret)
			done += args.count;
		else if (ret == -EINTR)
			ret = 0;
	}
	return done || !ret ? (int)done : ret;
}

int libhwt_batch(struct libhwt *context, struct hwt_op *ops, unsigned int count)
{
	/* What it returns is an int. */
	if (count > INT32_MAX)
		return -EINVAL;
	return context->features & HWT_FEATURE_BATCH ? ops_batch(context, ops, count) :
						       ops_call(context, ops, count);
}

/* With op_lock held. */
static int submit_plain(struct libhwt_queue *queue)
{
	struct libhwt *context = queue->context;
	uint32_t at, count;
	struct hwt_op *ops;
	int ret;

	while (queue->op_head != queue->op_tail) {
		at = queue->op_head & queue->op_mask;
		count = min_u32(queue->op_tail - queue->op_head, queue->op_mask + 1 - at);
		ops = &queue->ops[at];
		ret = queue->kind == LIBHWT_QUEUE_BATCH ? ops_batch(context, ops, count) :
							  ops_call(context, ops, count);
		if (ret < 0)
			return ret;
		queue->op_head += ret;
	}
	return 0;
}

/* -- With rings ---------------------------------------------------------- */

static int enter(const struct libhwt_queue *queue, uint32_t submit, uint32_t wait,
		 uint64_t timeout_ns)
{
	struct hwt_enter_args args = {
		.size = sizeof(args),
		.submit = submit,
		.wait = wait,
		.timeout_ns = timeout_ns,
	};

	return hwtlib_call(queue->context, HWT_IOC_ENTER, &args);
}

/* The next one to be carried out. With rings, the lock is not needed. */
static uint32_t queue_op_head(const struct libhwt_queue *queue)
{
	/* Pairs with the kernel's release (hwt_rings_submit()): the results are there. */
	return queue->rings ? __atomic_load_n(&queue->rings->op_head, __ATOMIC_ACQUIRE) :
			      queue->op_head;
}

/* Operations that are there to be carried out by a call. */
static uint32_t rings_pending(const struct libhwt_queue *queue)
{
	if (queue->polled)
		return 0;
	/* Nothing is read by it but a number: the kernel has an acquire of its own. */
	return __atomic_load_n(&queue->rings->op_tail, __ATOMIC_RELAXED) -
	       __atomic_load_n(&queue->rings->op_head, __ATOMIC_RELAXED);
}

static int submit_rings(struct libhwt_queue *queue)
{
	uint32_t target = __atomic_load_n(&queue->rings->op_tail, __ATOMIC_RELAXED);
	uint32_t left;
	int ret;

	if (queue->polled)
		return 0;
	/* Other threads may be at it too. */
	for (;;) {
		left = target - queue_op_head(queue);
		if (!left || left > queue->op_mask + 1)
			return 0;
		ret = enter(queue, left, 0, 0);
		if (ret && ret != -EINTR)
			return ret;
	}
}

/*
 * With event_lock held. Return: as hwtlib_rings_take(); *@more: there are more outside of the
 * ring, which now has room.
 */
static int events_take(struct libhwt_queue *queue, struct hwt_event *events, unsigned int max,
		       bool *more)
{
	uint32_t flags, tail, count;

	/* In this order: who sees the end, sees all that came before it. */
	flags = __atomic_load_n(&queue->rings->flags, __ATOMIC_ACQUIRE);
	/* Pairs with the kernel's release (hwt_rings_fill()): the events are there. */
	tail = __atomic_load_n(&queue->rings->event_tail, __ATOMIC_ACQUIRE);
	count = min_u32(tail - queue->event_head, max);
	*more = flags & HWT_RINGS_MORE;
	if (!count)
		return flags & HWT_RINGS_END ? -ESHUTDOWN : 0;
	ring_get(events, queue->events, sizeof(*events), queue->event_mask,
		 queue->event_head, count);
	queue->event_head += count;
	/* Pairs with the kernel's acquire (hwt_rings_unread()): they may be overwritten. */
	__atomic_store_n(&queue->rings->event_head, queue->event_head, __ATOMIC_RELEASE);
	return count;
}

int hwtlib_rings_take(struct libhwt_queue *queue, struct hwt_event *events, unsigned int max)
{
	unsigned int total = 0;
	bool more;
	int ret;

	if (!queue->live)
		return -ECHILD;
	if (max > INT32_MAX)
		max = INT32_MAX;
	pthread_mutex_lock(&queue->event_lock);
	do {
		ret = events_take(queue, events + total, max - total, &more);
		if (ret > 0)
			total += ret;
		/*
		 * There is more outside of the ring: the kernel moves it in. If nothing came of
		 * it here the flag may be stale: one more look below is enough.
		 */
		if (more && total < max && enter(queue, 0, 0, 0))
			break;
	} while (more && ret > 0 && total < max);
	if (!total && !ret && more)
		ret = events_take(queue, events, max, &more);
	pthread_mutex_unlock(&queue->event_lock);
	return total ? (int)total : ret;
}

int hwtlib_rings_wait(struct libhwt_queue *queue, uint64_t timeout_ns)
{
	return enter(queue, 0, 1, timeout_ns);
}

/* -- Making and unmaking ------------------------------------------------- */

static int rings_new(struct libhwt_queue *queue, uint32_t ops, uint32_t events)
{
	struct hwt_rings_args args = {
		.size = sizeof(args),
		.flags = queue->polled ? HWT_RINGS_POLL : 0,
		.op_entries = ops,
		.event_entries = events,
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
	/* A child's use of them would be noticed by the parent only. */
	madvise(map, args.map_size, MADV_DONTFORK);
	queue->rings = (struct hwt_rings *)map;
	queue->map_size = args.map_size;
	queue->ops = (struct hwt_op *)(map + args.ops_offset);
	queue->op_mask = args.op_entries - 1;
	queue->events = (const struct hwt_event *)(map + args.events_offset);
	queue->event_mask = args.event_entries - 1;
	return 0;
}

static uint32_t roundup_pow_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

static int options_check(struct libhwt_queue_options *options)
{
	if (!options->ops)
		options->ops = OPS_DEFAULT;
	if (!options->events)
		options->events = EVENTS_DEFAULT;
	if (options->flags & ~FLAGS || options->ops > HWT_RING_ENTRIES_MAX ||
	    options->events > HWT_RING_ENTRIES_MAX)
		return -EINVAL;
	options->ops = roundup_pow_of_two(options->ops);
	return 0;
}

static unsigned int best_kind(const struct libhwt *context, unsigned int flags)
{
	if ((context->features & HWT_FEATURE_RINGS) && !(flags & LIBHWT_QUEUE_NO_RINGS))
		return LIBHWT_QUEUE_RINGS;
	if ((context->features & HWT_FEATURE_BATCH) && !(flags & LIBHWT_QUEUE_NO_BATCH))
		return LIBHWT_QUEUE_BATCH;
	return LIBHWT_QUEUE_CALLS;
}

static struct libhwt_queue *queue_alloc(size_t size)
{
	struct libhwt_queue *queue;

	queue = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (queue == MAP_FAILED)
		return NULL;
	if (madvise(queue, size, MADV_WIPEONFORK)) {
		munmap(queue, size);
		return NULL;
	}
	return queue;
}

int libhwt_queue_new(struct libhwt_queue **queue, struct libhwt *context,
		     const struct libhwt_queue_options *options)
{
	struct libhwt_queue_options known;
	struct libhwt_queue *new;
	size_t size = sizeof(*new);
	unsigned int kind;
	int ret;

	ret = hwtlib_copy_options(&known, sizeof(known), options,
				  sizeof(struct queue_options_ver1));
	if (ret)
		return ret;
	ret = options_check(&known);
	if (ret)
		return ret;
	if (context->queue)
		return -EBUSY;
	kind = best_kind(context, known.flags);
	if ((known.flags & LIBHWT_QUEUE_POLL) && kind != LIBHWT_QUEUE_RINGS)
		return -EOPNOTSUPP;

	/* Behind it is the ring of operations, where it is not shared. */
	if (kind != LIBHWT_QUEUE_RINGS)
		size += known.ops * sizeof(struct hwt_op);
	new = queue_alloc(size);
	if (!new)
		return -ENOMEM;
	new->context = context;
	new->ops = (struct hwt_op *)(new + 1);
	new->op_mask = known.ops - 1;
	new->kind = kind;
	new->polled = known.flags & LIBHWT_QUEUE_POLL;
	if (kind == LIBHWT_QUEUE_RINGS) {
		ret = rings_new(new, known.ops, known.events);
		if (ret) {
			munmap(new, size);
			return ret;
		}
	}
	pthread_mutex_init(&new->op_lock, NULL);
	pthread_mutex_init(&new->event_lock, NULL);
	new->live = true;
	context->queue = new;
	context->size = size;
	context->rings = kind == LIBHWT_QUEUE_RINGS;
	*queue = new;
	return 0;
}

void hwtlib_queue_free(struct libhwt *context)
{
	struct libhwt_queue *queue = context->queue;

	if (!queue)
		return;
	/* A child does not have the rings, and no locks. */
	if (queue->live) {
		if (queue->rings)
			munmap(queue->rings, queue->map_size);
		pthread_mutex_destroy(&queue->op_lock);
		pthread_mutex_destroy(&queue->event_lock);
	}
	munmap(queue, context->size);
}

int libhwt_queue_kind(const struct libhwt_queue *queue)
{
	return queue->live ? (int)queue->kind : -ECHILD;
}

/* -- Using it ------------------------------------------------------------ */

int libhwt_queue_add(struct libhwt_queue *queue, const struct hwt_op *ops, unsigned int count)
{
	uint32_t room;

	if (!queue->live)
		return -ECHILD;
	pthread_mutex_lock(&queue->op_lock);
	room = queue->op_mask + 1 - (queue->op_tail - queue->result_head);
	if (count > room)
		count = room;
	ring_put(queue->ops, queue->op_mask, queue->op_tail, ops, count);
	queue->op_tail += count;
	/* Pairs with the kernel's acquire (hwt_rings_submit()): the operations are there. */
	if (queue->rings)
		__atomic_store_n(&queue->rings->op_tail, queue->op_tail, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&queue->op_lock);
	return room ? (int)count : -EAGAIN;
}

static int add_one(struct libhwt_queue *queue, const struct hwt_op *op)
{
	int ret = libhwt_queue_add(queue, op, 1);

	return ret < 0 ? ret : 0;
}

int libhwt_queue_after(struct libhwt_queue *queue, uint64_t delay_ns, uint64_t user_data)
{
	struct hwt_op op = {
		.opcode = HWT_OP_SCHEDULE,
		.time_ns = delay_ns,
		.user_data = user_data,
	};

	return add_one(queue, &op);
}

int libhwt_queue_at(struct libhwt_queue *queue, uint64_t deadline_ns, uint64_t user_data)
{
	struct hwt_op op = {
		.opcode = HWT_OP_SCHEDULE,
		.flags = HWT_ABSOLUTE,
		.time_ns = deadline_ns,
		.user_data = user_data,
	};

	return add_one(queue, &op);
}

int libhwt_queue_modify(struct libhwt_queue *queue, uint64_t id, uint64_t delay_ns)
{
	struct hwt_op op = {
		.opcode = HWT_OP_MODIFY,
		.id = id,
		.time_ns = delay_ns,
	};

	return add_one(queue, &op);
}

int libhwt_queue_modify_at(struct libhwt_queue *queue, uint64_t id, uint64_t deadline_ns)
{
	struct hwt_op op = {
		.opcode = HWT_OP_MODIFY,
		.flags = HWT_ABSOLUTE,
		.id = id,
		.time_ns = deadline_ns,
	};

	return add_one(queue, &op);
}

int libhwt_queue_cancel(struct libhwt_queue *queue, uint64_t id)
{
	struct hwt_op op = { .opcode = HWT_OP_CANCEL, .id = id };

	return add_one(queue, &op);
}

int libhwt_queue_submit(struct libhwt_queue *queue)
{
	int ret;

	if (!queue->live)
		return -ECHILD;
	if (queue->rings)
		return submit_rings(queue);
	pthread_mutex_lock(&queue->op_lock);
	ret = submit_plain(queue);
	pthread_mutex_unlock(&queue->op_lock);
	return ret;
}

int libhwt_queue_results(struct libhwt_queue *queue, struct hwt_op *ops, unsigned int max)
{
	uint32_t count;

	if (!queue->live)
		return -ECHILD;
	pthread_mutex_lock(&queue->op_lock);
	count = min_u32(queue_op_head(queue) - queue->result_head, max);
	if (ops)
		ring_get(ops, queue->ops, sizeof(*ops), queue->op_mask,
			 queue->result_head, count);
	queue->result_head += count;
	pthread_mutex_unlock(&queue->op_lock);
	return count;
}

/*
 * Nothing was there: carry out, and wait, by one call. Return: as libhwt_next(), or -EINTR also
 * if only another thread has taken what this one was woken for.
 */
static int submit_and_wait(struct libhwt_queue *queue, struct hwt_event *events,
			   unsigned int max, uint64_t timeout_ns)
{
	uint64_t end_ns = hwtlib_wait_end(timeout_ns);
	int ret;

	ret = enter(queue, rings_pending(queue), 1, timeout_ns);
	if (ret && ret != -EINTR)
		return ret;
	/* What a signal may have left over. */
	if (rings_pending(queue)) {
		int left = submit_rings(queue);

		if (left)
			return left;
	}
	if (!ret)
		ret = hwtlib_rings_take(queue, events, max);
	/* Of a signal during the wait the kernel says nothing: it has carried out something. */
	if (!ret && hwtlib_wait_left(end_ns))
		ret = -EINTR;
	return ret;
}

int libhwt_queue_next(struct libhwt_queue *queue, struct hwt_event *events, unsigned int max,
		      uint64_t timeout_ns)
{
	int ret;

	if (!max)
		return -EINVAL;
	if (!queue->live)
		return -ECHILD;
	if (queue->rings && timeout_ns && rings_pending(queue)) {
		ret = hwtlib_rings_take(queue, events, max);
		if (!ret)
			return submit_and_wait(queue, events, max, timeout_ns);
		/* What fails now is told by the next call. */
		submit_rings(queue);
		return ret;
	}
	ret = libhwt_queue_submit(queue);
	return ret ? ret : libhwt_next(queue->context, events, max, timeout_ns);
}
