// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: rings in memory that is shared with the program
 *
 * The program may write anything there at any time. So the kernel reads an index once, and uses
 * only its distance from the kernel's own copy. It copies an operation before it looks at the
 * operation, and never reads back a value that it has written.
 */
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/op.h"
#include "device/ring.h"

/**
 * struct hwt_rings_ctx - the rings of a context
 * @mem:        the shared memory, mapped for the kernel as long as this structure exists
 * @ops:        the ring of operations, in @mem
 * @events:     the ring of events, in @mem
 * @op_mask:    number of @ops, minus 1. Constant, as are all above and the next four.
 * @event_mask: number of @events, minus 1
 * @offset:     the time namespace's offset, as the creator of the rings has it
 * @flags:      HWT_RINGS_POLL or 0
 * @memcg:      the creator's memory cgroup, for the wheel's thread to charge
 * @submit:     held while operations are run
 * @op_head:    index of the next operation to run; protected by @submit
 * @event_tail: index of the next event to write; protected by the lock of the context's table.
 *              Pollers read it without the lock.
 * @state:      the flags last written to @mem; protected likewise, and also read without the lock
 * @pages_n:    number of @pages; constant
 * @pages:      the pages of @mem
 */
struct hwt_rings_ctx {
	struct hwt_rings	*mem;
	struct hwt_op		*ops;
	struct hwt_event	*events;
	u32			op_mask;
	u32			event_mask;
	s64			offset;
	u32			flags;
	struct mem_cgroup	*memcg;
	struct mutex		submit;		/* not inside the table's lock */
	u32			op_head;
	u32			event_tail;
	u32			state;
	unsigned int		pages_n;
	struct page		*pages[];
};

/* -- Events -------------------------------------------------------------- */

/*
 * Events moved to the ring before the lock is released. Not many: when an event comes up, the
 * wheel's thread also moves events that have waited for room.
 */
#define HWT_RINGS_FILL_STEP	8

/* Return the number of events not reaped; the size of the ring if the head makes no sense. */
static u32 hwt_rings_unread(const struct hwt_rings_ctx *rings)
{
	/*
	 * Barrier unread.head, pairs with program.head in the program and fill.tail in
	 * hwt_rings_fill(): the program is done with the events before its head, and the tail that
	 * this function reads next is not behind the head.
	 */
	u32 head = smp_load_acquire(&rings->mem->event_head);

	return min(READ_ONCE(rings->event_tail) - head, rings->event_mask + 1);
}

/* Write the flags that tell the program whether events wait for room, or none will come. */
static void hwt_rings_tell(struct hwt_context *ctx, struct hwt_rings_ctx *rings)
	__must_hold(&ctx->entries.xa_lock)
{
	u32 state = 0;

	if (!list_empty(&ctx->ready))
		state = HWT_RINGS_MORE;
	else if (ctx->stopped)
		state = HWT_RINGS_END;
	if (state == rings->state)
		return;
	WRITE_ONCE(rings->state, state);
	/*
	 * Barrier tell.flags, pairs with program.flags in the program: a program that sees the end
	 * sees all events. fill.wmb does that as well, for events that were moved in this call.
	 */
	smp_store_release(&rings->mem->flags, state);
}

/**
 * hwt_rings_fill() - move a few events to the ring, if it has room
 * @ctx: the context, which has rings
 *
 * Entries whose last event was moved may have been freed afterwards.
 */
void hwt_rings_fill(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_rings_ctx *rings = ctx->rings;
	u32 room = rings->event_mask + 1 - hwt_rings_unread(rings);
	struct hwt_entry *entry;
	struct hwt_event event;

	room = min_t(u32, room, HWT_RINGS_FILL_STEP);
	while (room-- && !list_empty(&ctx->ready)) {
		entry = list_first_entry(&ctx->ready, struct hwt_entry, ready);
		hwt_event_fill(entry, &event, rings->offset);
		memcpy(&rings->events[rings->event_tail & rings->event_mask], &event,
		       sizeof(event));
		WRITE_ONCE(rings->event_tail, rings->event_tail + 1);
		/*
		 * Barrier fill.tail, pairs with program.tail in the program and unread.head in
		 * hwt_rings_unread(): a program that sees the tail sees the events before it.
		 */
		smp_store_release(&rings->mem->event_tail, rings->event_tail);
		/*
		 * Barrier fill.wmb, pairs with ready.rmb in hwt_rings_ready() and program.flags in
		 * the program: a task that finds the list empty finds the event here.
		 */
		smp_wmb();
		hwt_event_taken(entry);
	}
	hwt_rings_tell(ctx, rings);
}

/**
 * hwt_rings_ready() - is there an event in the ring?
 * @ctx: the context
 *
 * Without the lock, after the caller has found no event in the context's list.
 *
 * Return: true if there is one; false also if there are no rings.
 */
bool hwt_rings_ready(const struct hwt_context *ctx)
{
	const struct hwt_rings_ctx *rings;

	/*
	 * Barrier ready.rmb, pairs with fill.wmb in hwt_rings_fill(): an event that has left the
	 * list is found in the ring.
	 */
	smp_rmb();
	/*
	 * Barrier look.rings (spare), pairs with create.rings in hwt_rings_create(): the rings are
	 * complete. At each look.rings, the address dependency would order that as well.
	 */
	rings = smp_load_acquire(&ctx->rings);
	return rings && hwt_rings_unread(rings);
}

/* Do events wait for room, and is there room? Read without the lock. */
static bool hwt_rings_can_fill(const struct hwt_rings_ctx *rings)
{
	return (READ_ONCE(rings->state) & HWT_RINGS_MORE) &&
	       hwt_rings_unread(rings) <= rings->event_mask;
}

/*
 * Move events that wait for room, if there is room. May be part of a wait's condition, since
 * nothing here sleeps. Return the number of events to reap.
 */
static u32 hwt_rings_refill(struct hwt_context *ctx)
{
	do {
		xa_lock(&ctx->entries);
		hwt_rings_fill(ctx);
		xa_unlock(&ctx->entries);
		cond_resched();
	} while (hwt_rings_can_fill(ctx->rings) && !fatal_signal_pending(current));
	return hwt_rings_unread(ctx->rings);
}

/* -- Operations ---------------------------------------------------------- */

/* Run up to @max operations. Return their number, or -EINVAL. */
static int hwt_rings_submit(struct hwt_context *ctx, struct hwt_rings_ctx *rings, u32 max)
	__must_hold(&rings->submit)
{
	struct hwt_prealloc prealloc = {};
	struct hwt_op *slot, op;
	u32 n, done;

	/* Barrier submit.tail, pairs with program.op in the program: the operations are there. */
	n = smp_load_acquire(&rings->mem->op_tail) - rings->op_head;
	if (n > rings->op_mask + 1)
		return -EINVAL;
	n = min(n, max);
	for (done = 0; done < n && !fatal_signal_pending(current); done++) {
		slot = &rings->ops[rings->op_head & rings->op_mask];
		memcpy(&op, slot, sizeof(op));
		/* No barrier between CPUs: the compiler must not read the slot again. */
		barrier();
		prealloc.ahead = n - done;
		hwt_op_run(ctx, &op, rings->offset, &prealloc);
		memcpy(slot, &op, sizeof(op));
		rings->op_head++;
		/* Barrier submit.head, pairs with program.done: the program sees the result. */
		smp_store_release(&rings->mem->op_head, rings->op_head);
		cond_resched();
	}
	hwt_prealloc_free(&prealloc);
	return done;
}

/* Operations run by the wheel's thread before it looks at the wheel again. */
#define HWT_RINGS_POLL_STEP	64

/**
 * hwt_rings_poll() - run operations in rings that have HWT_RINGS_POLL
 * @arg: the context; the caller is the thread of its private wheel
 */
void hwt_rings_poll(void *arg)
{
	struct hwt_context *ctx = arg;
	/* Barrier look.rings (spare), pairs with create.rings in hwt_rings_create(): as above. */
	struct hwt_rings_ctx *rings = smp_load_acquire(&ctx->rings);
	struct mem_cgroup *old;

	if (!rings || !(rings->flags & HWT_RINGS_POLL))
		return;
	mutex_lock(&rings->submit);
	old = set_active_memcg(rings->memcg);
	hwt_rings_submit(ctx, rings, HWT_RINGS_POLL_STEP);
	set_active_memcg(old);
	mutex_unlock(&rings->submit);
	if (hwt_rings_can_fill(rings))
		hwt_rings_refill(ctx);
}

/* -- HWT_IOC_ENTER ------------------------------------------------------- */

static bool hwt_rings_enough(struct hwt_context *ctx, u32 want)
{
	/* Barrier read.stopped (spare), pairs with stop.stopped in hwt_context_stop(): as there. */
	bool stopped = smp_load_acquire(&ctx->stopped);

	return hwt_rings_refill(ctx) >= want || stopped;
}

/* Wait for @want events, a stop or the timeout. Return 0 or -ERESTARTSYS. */
static int hwt_rings_wait(struct hwt_context *ctx, u32 want, u64 timeout_ns)
{
	ktime_t timeout = timeout_ns > KTIME_MAX ? KTIME_MAX : ns_to_ktime(timeout_ns);
	int ret;

	want = min(want, ctx->rings->event_mask + 1);
	ret = wait_event_interruptible_hrtimeout(ctx->wait, hwt_rings_enough(ctx, want),
						 timeout);
	return ret == -ETIME ? 0 : ret;
}

/**
 * hwt_rings_enter() - HWT_IOC_ENTER
 * @ctx:   the context
 * @enter: the arguments; submit becomes the number of operations run
 *
 * Return: 0 or a negative error.
 */
int hwt_rings_enter(struct hwt_context *ctx, struct hwt_enter_args *enter)
{
	/* Barrier look.rings (spare), pairs with create.rings in hwt_rings_create(): as above. */
	struct hwt_rings_ctx *rings = smp_load_acquire(&ctx->rings);
	int ret = 0;

	if (enter->flags || !rings)
		return -EINVAL;
	if (enter->submit) {
		if (rings->flags & HWT_RINGS_POLL)
			return -EINVAL;
		if (mutex_lock_interruptible(&rings->submit))
			return -EINTR;
		ret = hwt_rings_submit(ctx, rings, enter->submit);
		mutex_unlock(&rings->submit);
		if (ret < 0)
			return ret;
		enter->submit = ret;
	}
	if (enter->wait)
		ret = hwt_rings_wait(ctx, enter->wait, enter->timeout_ns);
	else
		hwt_rings_refill(ctx);
	return ret < 0 && !enter->submit ? -EINTR : 0;
}

/* -- Creation and destruction -------------------------------------------- */

/* Free rings, which may be NULL. No program has them mapped. */
void hwt_rings_free(struct hwt_rings_ctx *rings)
{
	unsigned int i;

	if (!rings)
		return;
	if (rings->mem)
		vunmap(rings->mem);
	/* A page that is still pinned stays until it is unpinned. */
	for (i = 0; i < rings->pages_n && rings->pages[i]; i++)
		__free_page(rings->pages[i]);
	mem_cgroup_put(rings->memcg);
	kvfree(rings);
}

static struct hwt_rings_ctx *hwt_rings_alloc(u32 op_entries, u32 event_entries)
{
	size_t head = sizeof(struct hwt_rings), ops, size;
	struct hwt_rings_ctx *rings;
	unsigned int i, n;

	ops = array_size(op_entries, sizeof(struct hwt_op));
	size = head + ops + array_size(event_entries, sizeof(struct hwt_event));
	n = PAGE_ALIGN(size) >> PAGE_SHIFT;
	rings = kvzalloc(struct_size(rings, pages, n), HWT_GFP_USER);
	if (!rings)
		return NULL;
	rings->pages_n = n;
	for (i = 0; i < n; i++) {
		rings->pages[i] = alloc_page(HWT_GFP_USER | __GFP_ZERO);
		if (!rings->pages[i])
			goto fail;
	}
	rings->mem = vmap(rings->pages, n, VM_MAP, PAGE_KERNEL);
	if (!rings->mem)
		goto fail;
	rings->ops = (void *)rings->mem + head;
	rings->events = (void *)rings->ops + ops;
	rings->op_mask = op_entries - 1;
	rings->event_mask = event_entries - 1;
	mutex_init(&rings->submit);
	return rings;
fail:
	hwt_rings_free(rings);
	return NULL;
}

static bool hwt_ring_entries_valid(u32 entries)
{
	return entries && entries <= HWT_RING_ENTRIES_MAX;
}

/**
 * hwt_rings_create() - HWT_IOC_RINGS
 * @ctx:  the context
 * @args: the arguments, which are filled in
 *
 * Return: 0 or a negative error.
 */
int hwt_rings_create(struct hwt_context *ctx, struct hwt_rings_args *args)
{
	struct hwt_rings_ctx *rings;
	int ret = 0;

	if (args->flags & ~HWT_RINGS_POLL || !hwt_ring_entries_valid(args->op_entries) ||
	    !hwt_ring_entries_valid(args->event_entries))
		return -EINVAL;
	args->op_entries = roundup_pow_of_two(args->op_entries);
	args->event_entries = roundup_pow_of_two(args->event_entries);
	rings = hwt_rings_alloc(args->op_entries, args->event_entries);
	if (!rings)
		return -ENOMEM;
	rings->flags = args->flags;
	rings->memcg = get_mem_cgroup_from_mm(current->mm);

	xa_lock(&ctx->entries);
	if (ctx->rings || ctx->closing) {
		ret = -EBUSY;
	} else if ((args->flags & HWT_RINGS_POLL) && !ctx->busy) {
		ret = -EINVAL;
	} else {
		/* From now on, the times of operations are those of this clock. */
		WRITE_ONCE(ctx->fixed, true);
		rings->offset = hwt_context_offset(ctx);
		/*
		 * Barrier create.rings, pairs with look.rings in hwt_rings_ready(),
		 * hwt_rings_poll(), hwt_rings_enter() and hwt_rings_mmap(): the rings are
		 * complete.
		 */
		smp_store_release(&ctx->rings, rings);
	}
	xa_unlock(&ctx->entries);
	if (ret) {
		hwt_rings_free(rings);
		return ret;
	}
	args->map_size = (u64)rings->pages_n << PAGE_SHIFT;
	args->ops_offset = (void *)rings->ops - (void *)rings->mem;
	args->events_offset = (void *)rings->events - (void *)rings->mem;
	args->op_size = sizeof(struct hwt_op);
	args->event_size = sizeof(struct hwt_event);
	hwt_rings_refill(ctx);
	/* A task that waits in read() must fail now. */
	hwt_context_wake(ctx);
	return 0;
}

/* mmap(). The mapping keeps the file open, and with it the context and the pages. */
int hwt_rings_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct hwt_context *ctx = file->private_data;
	/* Barrier look.rings (spare), pairs with create.rings in hwt_rings_create(): as above. */
	struct hwt_rings_ctx *rings = smp_load_acquire(&ctx->rings);

	if (!rings || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	return vm_map_pages(vma, rings->pages, rings->pages_n);
}
