// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: rings in memory that is shared with the program
 *
 * The program may write anything to this memory at any time. So the kernel reads each index of the
 * program once, uses only its distance from the kernel's own index, and copies an operation before
 * looking at it. The kernel reads only one member that it has written itself: due. A program that
 * changes this member causes a pass without work.
 */
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/op.h"
#include "device/pass.h"
#include "device/ring.h"

/**
 * struct hwt_rings_ctx - the rings of a context
 * @mem:        the shared memory, mapped for the kernel as long as this structure exists: a struct
 *              hwt_rings, then the ring of operations, @op_size bytes each. Constant.
 * @events:     the ring of events in @mem. Constant.
 * @op_mask:    number of entries of the ring of operations, minus 1. Constant.
 * @event_mask: number of entries of @events, minus 1. Constant.
 * @op_size:    the size of the program's version of struct hwt_op. Constant.
 * @offset:     the result of hwt_context_offset() in the task that created the rings. Constant.
 * @submit:     held while operations are run. Taken before entries.xa_lock.
 * @op_head:    index of the next operation to run; protected by @submit
 * @event_tail: index of the next event to write; written under entries.xa_lock
 * @state:      the flags last written to @mem (HWT_RINGS_); protected by entries.xa_lock
 * @pages_n:    number of @pages. Constant.
 * @pages:      the pages of @mem. Constant.
 */
struct hwt_rings_ctx {
	struct hwt_rings	*mem;
	struct hwt_event	*events;
	u32			op_mask;
	u32			event_mask;
	u32			op_size;
	s64			offset;
	struct mutex		submit;		/* taken before entries.xa_lock */
	u32			op_head;
	u32			event_tail;
	u32			state;
	unsigned int		pages_n;
	struct page		*pages[];
};

/* -- Events -------------------------------------------------------------- */

/* Number of operations, or of steps of hwt_rings_refill(), between two checks for a signal */
#define HWT_RINGS_SIGNAL_STEP	16

/*
 * Return true if a signal is to end a loop after @steps steps. Do not check at each step: task work
 * of io_uring also makes signal_pending() true, and each call has to make some progress.
 */
static bool hwt_rings_interrupted(u32 steps)
{
	return !(steps % HWT_RINGS_SIGNAL_STEP) && signal_pending(current);
}

/* Return the number of unread events in the ring. With an invalid head, the ring counts as full. */
static u32 hwt_rings_unread(const struct hwt_rings_ctx *rings)
{
	/*
	 * Barrier unread.head, pairs with program.head in the program and fill.tail in
	 * hwt_rings_fill(): the program has read the events before this head, so the kernel may
	 * overwrite them. The tail read below is at least as new as the tail that the program read
	 * before it stored this head, so the head is not beyond the tail.
	 */
	u32 head = smp_load_acquire(&rings->mem->event_head);

	return min(READ_ONCE(rings->event_tail) - head, rings->event_mask + 1);
}

/*
 * Tell the program whether events wait (HWT_RINGS_MORE). A program that finds HWT_RINGS_MORE
 * cleared must also find the new tail of the ring. A plain store is enough for this: if this task
 * has moved the last event, fill.wmb orders the two stores; if another task has moved it, the lock
 * does.
 */
void hwt_rings_tell(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_rings_ctx *rings = ctx->rings;
	u32 state = list_empty(&ctx->ready) ? 0 : HWT_RINGS_MORE;

	if (state == rings->state)
		return;
	rings->state = state;
	WRITE_ONCE(rings->mem->flags, state);
}

/* Return the rings, or NULL if the program has not mapped them. Needs no lock. */
static struct hwt_rings_ctx *hwt_rings_mapped(const struct hwt_context *ctx)
{
	/*
	 * Barrier look.rings, pairs with create.rings in hwt_rings_mmap(): a task or an interrupt
	 * that sees the pointer sees initialised rings. READ_ONCE() would do: all accesses to the
	 * rings use the pointer, and this address dependency orders them.
	 */
	return smp_load_acquire(&ctx->rings);
}

/*
 * Tell the program whether HWT_IOC_ENTER or poll() has something to fire. Called with
 * entries.xa_lock held, or by the interrupt of the timer.
 */
void hwt_rings_due(struct hwt_context *ctx, bool due)
{
	struct hwt_rings_ctx *rings = hwt_rings_mapped(ctx);

	/* No barrier: due guards no data, it only asks the program for HWT_IOC_ENTER or poll(). */
	if (rings)
		WRITE_ONCE(rings->mem->due, due);
}

/* Tell the program when something will be due. @ns: on the context's clock, or HWT_NEVER */
void hwt_rings_next(struct hwt_context *ctx, u64 ns)
	__must_hold(&ctx->entries.xa_lock)
{
	if (ctx->rings)
		WRITE_ONCE(ctx->rings->mem->next_ns, hwt_time_to_user(ns, ctx->rings->offset));
}

/* Move up to HWT_STEP events to the ring if it has room, and update its flags. */
void hwt_rings_fill(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_rings_ctx *rings = ctx->rings;
	u32 room = rings->event_mask + 1 - hwt_rings_unread(rings);
	struct hwt_entry *entry;

	room = min_t(u32, room, HWT_STEP);
	while (room-- && !list_empty(&ctx->ready)) {
		entry = list_first_entry(&ctx->ready, struct hwt_entry, ready);
		hwt_event_fill(entry, &rings->events[rings->event_tail & rings->event_mask],
			       rings->offset);
		WRITE_ONCE(rings->event_tail, rings->event_tail + 1);
		/*
		 * Barrier fill.tail, pairs with program.tail in the program and unread.head in
		 * hwt_rings_unread(): a program that sees this tail sees the events before it. If
		 * the program then stores a head, a task that sees this head also sees this tail.
		 */
		smp_store_release(&rings->mem->event_tail, rings->event_tail);
		/*
		 * Barrier fill.wmb, pairs with ready.rmb in hwt_rings_ready() and program.flags in
		 * the program: a task that no longer finds the event in the list, or a program that
		 * finds HWT_RINGS_MORE cleared, finds the event in the ring.
		 */
		smp_wmb();
		hwt_event_taken(entry);
	}
	hwt_rings_tell(ctx);
}

/* Return true if a mapped ring has an unread event. The caller has found none in the list. */
bool hwt_rings_ready(const struct hwt_context *ctx)
{
	const struct hwt_rings_ctx *rings;

	/*
	 * Barrier ready.rmb, pairs with fill.wmb in hwt_rings_fill(): if an event was moved to the
	 * ring before the caller looked at the list, the event is found in the ring below.
	 */
	smp_rmb();
	rings = hwt_rings_mapped(ctx);
	return rings && hwt_rings_unread(rings);
}

/*
 * Return true if a pass has work, or if the shared member due is set. The timer's interrupt may set
 * due just after a pass has done the work. Only the end of a pass clears due, so another pass is
 * needed, even if it has no work.
 */
bool hwt_rings_pass_due(struct hwt_context *ctx)
{
	return hwt_pass_due(ctx) || (!ctx->wheel && READ_ONCE(ctx->rings->mem->due));
}

/*
 * Fire what is due, and move events to the ring, until no event is left or the ring is full. Stop
 * earlier at a signal; after @steps, if the ring has @want events; at the time @end, unless events
 * that are there already make it @want. Never sleep for an event, because the condition of a
 * wait_event_*() calls this function. Return the number of unread events in the ring.
 */
u32 hwt_rings_refill(struct hwt_context *ctx, u32 want, u32 steps, ktime_t end)
{
	const struct hwt_rings_ctx *rings = ctx->rings;
	u32 n = 0, unread;

	do {
		if (hwt_rings_pass_due(ctx))
			hwt_pass_run(ctx, false);
		xa_lock(&ctx->entries);
		hwt_rings_fill(ctx);
		xa_unlock(&ctx->entries);
		cond_resched();
		unread = hwt_rings_unread(rings);
	} while ((++n < steps || unread < want) && unread <= rings->event_mask &&
		 (!list_empty(&ctx->ready) || hwt_pass_due(ctx)) &&
		 ((unread < want && !list_empty(&ctx->ready)) || ktime_get() < end) &&
		 !task_sigpending(current) && !hwt_rings_interrupted(n));
	return unread;
}

/* -- Operations ---------------------------------------------------------- */

/*
 * Run up to @max operations of the ring, and end at a signal: at the limit of a memory cgroup, an
 * operation may take milliseconds. Return how many were run, or -EINVAL if the tail is not valid.
 */
static int hwt_rings_submit(struct hwt_context *ctx, struct hwt_rings_ctx *rings, u32 max)
	__must_hold(&rings->submit)
{
	struct hwt_prealloc prealloc = {};
	u32 n, done, size = rings->op_size;
	void *slot;

	/*
	 * Barrier submit.tail, pairs with program.op in the program: if this task sees the
	 * program's tail, it sees all operations before that tail.
	 */
	n = smp_load_acquire(&rings->mem->op_tail) - rings->op_head;
	if (n > rings->op_mask + 1)
		return -EINVAL;
	n = min(n, max);
	for (done = 0; done < n; ) {
		slot = (void *)(rings->mem + 1) + (size_t)(rings->op_head & rings->op_mask) * size;
		prealloc.ahead = n - done;
		hwt_op_run_sized(ctx, slot, size, rings->offset, &prealloc);
		rings->op_head++;
		/*
		 * Barrier submit.head, pairs with program.done in the program: a program that sees
		 * this head sees the results of all operations before it.
		 */
		smp_store_release(&rings->mem->op_head, rings->op_head);
		cond_resched();
		if (hwt_rings_interrupted(++done))
			break;
	}
	hwt_prealloc_free(&prealloc);
	return done;
}

/* -- HWT_IOC_ENTER ------------------------------------------------------- */

/* Block exactly the signals of @mask, as ppoll() does. Store the previous mask in @saved. */
static void hwt_sigmask_set(u64 mask, sigset_t *saved)
{
	sigset_t blocked;

	siginitset(&blocked, mask);
#if _NSIG_WORDS > 1 && BITS_PER_LONG == 32
	blocked.sig[1] = upper_32_bits(mask);
#endif
	sigdelsetmask(&blocked, sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigprocmask(SIG_SETMASK, &blocked, saved);
}

/* Restore @saved: now or, if a signal interrupted the wait, after the signal was delivered. */
static void hwt_sigmask_restore(sigset_t *saved, bool interrupted)
{
	if (!interrupted) {
		sigprocmask(SIG_SETMASK, saved, NULL);
		return;
	}
	current->saved_sigmask = *saved;
	set_restore_sigmask();
}

/* Return the time until which HWT_IOC_ENTER may wait; KTIME_MAX if there is no limit. */
static ktime_t hwt_enter_end(const struct hwt_enter_args *enter)
{
	u64 ns = enter->timeout_ns;

	if (!(enter->flags & HWT_ENTER_ABSOLUTE))
		return ktime_add_safe(ktime_get(), min_t(u64, ns, KTIME_MAX));
	return min_t(u64, hwt_time_from_user(ns, hwt_time_offset(CLOCK_MONOTONIC), 0), KTIME_MAX);
}

/* Return the time that is left until @end; KTIME_MAX if @end never comes. */
static ktime_t hwt_enter_left(ktime_t end)
{
	return end == KTIME_MAX ? end : max_t(ktime_t, ktime_sub(end, ktime_get()), 0);
}

/* Return the number of steps in which hwt_rings_refill() fills an empty ring, and runs passes. */
static u32 hwt_enter_steps(const struct hwt_rings_ctx *rings)
{
	return HWT_REFILL_STEPS + rings->event_mask / HWT_STEP;
}

/* Wait for @enter->wait events, a signal or the timeout. Return the value for @enter->result. */
static int hwt_rings_wait(struct hwt_context *ctx, const struct hwt_enter_args *enter)
{
	u32 want = min(enter->wait, ctx->rings->event_mask + 1);
	u32 steps = hwt_enter_steps(ctx->rings);
	ktime_t end = hwt_enter_end(enter);
	sigset_t saved;
	int ret;

	if (enter->flags & HWT_ENTER_SIGMASK)
		hwt_sigmask_set(enter->sigmask, &saved);
	ret = wait_event_interruptible_hrtimeout(ctx->wait,
						 hwt_rings_refill(ctx, want, steps, end) >= want,
						 hwt_enter_left(end));
	if (enter->flags & HWT_ENTER_SIGMASK)
		hwt_sigmask_restore(&saved, ret == -ERESTARTSYS);
	return ret == -ERESTARTSYS ? -EINTR : ret;
}

/* Carry out HWT_IOC_ENTER. */
int hwt_ioctl_enter(struct hwt_context *ctx, void *args)
{
	struct hwt_enter_args *enter = args;
	struct hwt_rings_ctx *rings = hwt_rings_mapped(ctx);
	int ret;

	if (enter->flags & ~(HWT_ENTER_ABSOLUTE | HWT_ENTER_SIGMASK) || !rings ||
	    (enter->sigmask && !(enter->flags & HWT_ENTER_SIGMASK)))
		return -EINVAL;
	if (enter->submit) {
		if (mutex_lock_interruptible(&rings->submit))
			return -ERESTARTNOHAND;
		ret = hwt_rings_submit(ctx, rings, enter->submit);
		mutex_unlock(&rings->submit);
		if (ret < 0)
			return ret;
		enter->submit = ret;
	}
	enter->result = 0;
	if (enter->wait)
		enter->result = hwt_rings_wait(ctx, enter);
	else
		hwt_rings_refill(ctx, 0, hwt_enter_steps(rings), KTIME_MAX);
	/*
	 * SIGSTOP, a tracer, a suspend or task work of io_uring may interrupt the wait though no
	 * signal handler runs. The kernel then restarts the call, unless the call has to return the
	 * number of its operations, or its relative timeout would begin anew. (A restart block
	 * could keep the time, but it points to a function of hwt, which may be unloaded before.)
	 */
	if (enter->result == -EINTR && !enter->submit &&
	    (enter->flags & HWT_ENTER_ABSOLUTE || enter->timeout_ns > KTIME_MAX))
		return -ERESTARTNOHAND;
	enter->events = hwt_rings_unread(rings);
	return 0;
}

/* -- Creation and destruction -------------------------------------------- */

/* Free @rings, which may be NULL. No program has the rings mapped any more. */
void hwt_rings_free(struct hwt_rings_ctx *rings)
{
	unsigned int i;

	if (!rings)
		return;
	vunmap(rings->mem);
	/* Drop a reference to each page: a page that is still pinned is freed later. */
	for (i = 0; i < rings->pages_n && rings->pages[i]; i++)
		__free_page(rings->pages[i]);
	kvfree(rings);
}

static struct hwt_rings_ctx *hwt_rings_alloc(u32 op_entries, u32 op_size, u32 event_entries)
{
	size_t events, size;
	struct hwt_rings_ctx *rings;
	unsigned int i, n;

	events = sizeof(struct hwt_rings) + array_size(op_entries, op_size);
	size = events + array_size(event_entries, sizeof(struct hwt_event));
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
	rings->events = (void *)rings->mem + events;
	rings->op_mask = op_entries - 1;
	rings->event_mask = event_entries - 1;
	rings->op_size = op_size;
	mutex_init(&rings->submit);
	return rings;
fail:
	hwt_rings_free(rings);
	return NULL;
}

/*
 * Carry out HWT_IOC_RINGS. The rings become active only when the program maps them, so a program
 * that cannot map them works without rings. Until the rings are mapped, a further call with the
 * same sizes returns the same rings.
 */
int hwt_ioctl_rings(struct hwt_context *ctx, void *arg)
{
	struct hwt_rings_args *args = arg;
	struct hwt_rings_ctx *rings, *old;
	int ret = 0;

	if (args->flags || args->reserved || args->op_size < HWT_OP_SIZE_VER1 ||
	    args->op_size > HWT_OP_SIZE_MAX || args->op_size % sizeof(u64) ||
	    !args->op_entries || args->op_entries > HWT_RING_ENTRIES_MAX ||
	    !args->event_entries || args->event_entries > HWT_RING_ENTRIES_MAX)
		return -EINVAL;
	args->op_entries = roundup_pow_of_two(args->op_entries);
	args->event_entries = roundup_pow_of_two(args->event_entries);
	rings = hwt_rings_alloc(args->op_entries, args->op_size, args->event_entries);
	if (!rings)
		return -ENOMEM;

	xa_lock(&ctx->entries);
	old = ctx->created_rings;
	if (ctx->rings ||
	    (old && (old->op_mask != rings->op_mask || old->op_size != rings->op_size ||
		     old->event_mask != rings->event_mask))) {
		ret = -EBUSY;
	} else if (!old) {
		/* Keep HWT_IOC_SETUP from changing the clock: rings->offset depends on it. */
		WRITE_ONCE(ctx->fixed, true);
		rings->offset = hwt_context_offset(ctx);
		ctx->created_rings = rings;
	}
	xa_unlock(&ctx->entries);
	/* Rings of the same sizes have the same layout. */
	args->map_size = (u64)rings->pages_n << PAGE_SHIFT;
	args->ops_offset = sizeof(*rings->mem);
	args->events_offset = (void *)rings->events - (void *)rings->mem;
	if (ret || old)
		hwt_rings_free(rings);
	return ret;
}

/* Map the rings as a whole. The mapping refers to the file, and so keeps the context. */
int hwt_rings_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct hwt_context *ctx = file->private_data;
	struct hwt_rings_ctx *rings;
	int ret;

	xa_lock(&ctx->entries);
	rings = ctx->created_rings;
	xa_unlock(&ctx->entries);
	if (!rings || !(vma->vm_flags & VM_SHARED) || vma->vm_pgoff ||
	    vma_pages(vma) != rings->pages_n)
		return -EINVAL;
	ret = vm_map_pages(vma, rings->pages, rings->pages_n);
	if (ret)
		return ret;
	xa_lock(&ctx->entries);
	/*
	 * Barrier create.rings, pairs with look.rings in hwt_rings_mapped(): a task or an interrupt
	 * that sees the pointer sees initialised rings.
	 */
	smp_store_release(&ctx->rings, rings);
	hwt_rings_tell(ctx);
	hwt_rings_next(ctx, atomic64_read(&ctx->pass.next_ns));
	/* Do not store 0: due is 0 from the start, and the interrupt may just have stored 1. */
	if (hwt_pass_due(ctx))
		hwt_rings_due(ctx, true);
	xa_unlock(&ctx->entries);
	/* Wake the tasks that wait in read(), because read() has to fail with EBUSY from now on. */
	hwt_event_wake(ctx);
	return 0;
}
