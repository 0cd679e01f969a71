// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the life of a timeout of a program
 */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "hwt.h"
#include "core/client.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/time.h"
#include "device/uring.h"
#include "device/user.h"

static struct kmem_cache *hwt_one_shot_cache;
static struct kmem_cache *hwt_periodic_cache;

static const struct hwt_timeout_ops hwt_entry_ops;

/* -- References ---------------------------------------------------------- */

void hwt_entry_put(struct hwt_entry *entry)
{
	struct hwt_context *ctx = entry->ctx;

	if (!refcount_dec_and_test(&entry->refs))
		return;
	if (entry->charged)
		hwt_user_drop_timeout(ctx->user);
	kmem_cache_free(hwt_entry_periodic(entry) ? hwt_periodic_cache :
						    hwt_one_shot_cache, entry);
	hwt_context_put(ctx);
}

/* -- Time ---------------------------------------------------------------- */

/* Return the time of the tick for which an entry is armed or, if not armed, was armed last. */
static u64 hwt_entry_tick_ns(const struct hwt_entry *entry)
{
	u64 tick = hwt_timeout_state(&entry->timeout) >> HWT_TICK_SHIFT;

	return tick == HWT_TICK_NEVER ? HWT_NEVER : tick * entry->ctx->tick_ns;
}

/*
 * Return the deadline for which an entry is armed or, if not armed, was armed last. While the
 * callback of a periodic timeout executes, the timeout is not armed: before hwt_entry_fire() stores
 * the deadline of this firing in entry->due_ns, return that deadline; afterwards, return the next
 * deadline. Called with entries.xa_lock held.
 */
u64 hwt_entry_due(const struct hwt_entry *entry)
{
	u64 next = hwt_deadline(&entry->timeout), due = hwt_entry_tick_ns(entry);

	return next && entry->due_ns == due ? next : due;
}

/* Return the ns until an entry is due, 0 if it is not pending. Called with entries.xa_lock held. */
u64 hwt_entry_remaining(const struct hwt_entry *entry)
{
	u64 due = hwt_entry_due(entry), now = hwt_wheel_now(entry->ctx->wheel);

	if (entry->final)
		return 0;
	if (due == HWT_NEVER)
		return HWT_NEVER;
	return due > now ? due - now : 0;
}

/* Describe an entry in @to, for HWT_IOC_LIST. Called with entries.xa_lock held. */
void hwt_entry_describe(const struct hwt_entry *entry, struct hwt_list_entry *to, s64 offset)
{
	*to = (struct hwt_list_entry) {
		.id		= entry->id,
		.user_data	= hwt_entry_user_data(entry),
		.deadline_ns	= hwt_time_to_user(hwt_entry_due(entry), offset),
		.remaining_ns	= hwt_entry_remaining(entry),
		.period_ns	= hwt_entry_period(entry),
		.overruns	= hwt_entry_overruns(entry),
		.state		= hwt_entry_state(entry),
		.mode		= entry->mode,
	};
}

/* -- Creation and end ---------------------------------------------------- */

static const struct rhashtable_params hwt_key_params = {
	.key_len		= sizeof_field(struct hwt_entry, id),
	.key_offset		= offsetof(struct hwt_entry, id),
	.head_offset		= offsetof(struct hwt_entry, node),
	/* Begin with the smallest table, because no memory cgroup is charged for the table. */
	.nelem_hint		= 3,
	.automatic_shrinking	= true,
};

int hwt_keys_init(struct hwt_context *ctx)
{
	return rhashtable_init(&ctx->keys, &hwt_key_params);
}

struct hwt_entry *hwt_entry_find(struct hwt_context *ctx, u64 id)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_entry *entry;

	if (ctx->keyed)
		return rhashtable_lookup_fast(&ctx->keys, &id, hwt_key_params);
	entry = xa_load(&ctx->entries, lower_32_bits(id));
	return entry && entry->id == id ? entry : NULL;
}

/* Allocate at most as many entries as were handed out so far: at most half of all stay unused. */
static void hwt_prealloc_fill(struct hwt_prealloc *prealloc)
{
	u32 n = min3(prealloc->ahead, prealloc->taken, (u32)HWT_PREALLOC_MAX);

	if (n < 2)
		return;
	if (kmem_cache_alloc_bulk(hwt_one_shot_cache, HWT_GFP_USER, n, prealloc->entries))
		prealloc->n = n;
	else
		prealloc->taken = 0;
}

static void *hwt_prealloc_take(struct hwt_prealloc *prealloc)
{
	if (!prealloc->n)
		hwt_prealloc_fill(prealloc);
	prealloc->taken++;
	return prealloc->n ? prealloc->entries[--prealloc->n] :
			  kmem_cache_alloc(hwt_one_shot_cache, HWT_GFP_USER);
}

void hwt_prealloc_free(struct hwt_prealloc *prealloc)
{
	if (prealloc->n)
		kmem_cache_free_bulk(hwt_one_shot_cache, prealloc->n, prealloc->entries);
}

/* Allocate an entry with one reference; for a one-shot, from @prealloc if that is not NULL. */
struct hwt_entry *hwt_entry_alloc(struct hwt_context *ctx, struct hwt_prealloc *prealloc,
				  const struct hwt_op *op)
{
	bool periodic = op->mode != HWT_MODE_ONE_SHOT;
	struct hwt_entry *entry;

	if (prealloc && !periodic)
		entry = hwt_prealloc_take(prealloc);
	else
		entry = kmem_cache_alloc(periodic ? hwt_periodic_cache : hwt_one_shot_cache,
					 HWT_GFP_USER);
	if (!entry)
		return NULL;
	refcount_inc(&ctx->refs);
	entry->ctx = ctx;
	INIT_LIST_HEAD(&entry->ready);
	entry->id = op->id;
	entry->user_data = op->user_data;
	entry->due_ns = HWT_NEVER;
	refcount_set(&entry->refs, 1);
	entry->mode = op->mode;
	entry->kind = 0;
	entry->final = false;
	entry->charged = false;
	entry->uring = false;
	if (periodic) {
		/* Clear members that hwt_deadline() may read before the first firing sets them. */
		memset(&entry->periodic, 0, sizeof(entry->periodic));
		entry->period_ns = op->period_ns;
		entry->overruns = 0;
		entry->missed = 0;
	}
	/* Set no wheel (NULL): the functions that put the entry into the table set the shard. */
	hwt_timeout_init(&entry->timeout, NULL, &hwt_entry_ops);
	return entry;
}

/* Count a timeout against the limits of its context and its user. Return 0 or -ENOSPC. */
static int hwt_entry_charge(struct hwt_context *ctx)
	__must_hold(&ctx->entries.xa_lock)
{
	if (ctx->stats.timeouts >= hwt_context_max_timeouts(ctx))
		return hwt_context_limited(ctx, HWT_LIMIT_TIMEOUTS);
	if (!hwt_user_add_timeout(ctx->user))
		return hwt_context_limited(ctx, HWT_LIMIT_USER_TIMEOUTS);
	ctx->stats.timeouts++;
	return 0;
}

/*
 * Charge an entry, and give it a slot of the table. entries.xa_lock may be dropped meanwhile to
 * allocate memory. After an error, the caller puts the entry; this ends the charge to the user.
 */
static int hwt_entry_reserve(struct hwt_context *ctx, struct hwt_entry *entry, u32 *slot)
	__must_hold(&ctx->entries.xa_lock)
{
	int ret;

	ret = hwt_entry_charge(ctx);
	if (ret)
		return ret;
	entry->charged = true;
	ret = __xa_alloc(&ctx->entries, slot, entry,
			 ctx->keyed ? XA_LIMIT(0, HWT_KEYED_MAX - 1) : xa_limit_32b, HWT_GFP_USER);
	if (ret)
		ctx->stats.timeouts--;
	return ret;
}

/* Complete an insertion. With ctx->fixed set, HWT_IOC_SETUP can no longer change wheel or keys. */
static void hwt_entry_inserted(struct hwt_context *ctx, struct hwt_entry *entry)
	__must_hold(&ctx->entries.xa_lock)
{
	hwt_timeout_set_shard(&entry->timeout, ctx->shard);
	WRITE_ONCE(ctx->fixed, true);
	ctx->stats.pending++;
}

/*
 * Put an entry into the table, and give it an id. entries.xa_lock may be dropped meanwhile. After
 * an error, the caller puts the entry.
 */
int hwt_entry_insert(struct hwt_context *ctx, struct hwt_entry *entry)
	__must_hold(&ctx->entries.xa_lock)
{
	u32 slot;
	int ret = hwt_entry_reserve(ctx, entry, &slot);

	if (ret)
		return ret;
	/* This context has no keys: HWT_IOC_SETUP fails while stats.timeouts counts the entry. */
	if (!++ctx->generation)
		ctx->generation = 1;
	entry->id = (u64)ctx->generation << 32 | slot;
	hwt_entry_inserted(ctx, entry);
	return 0;
}

/*
 * Put @entry into the table and the hash of keys, unless another entry has the key. Return the
 * entry that has the key now, or an ERR_PTR(). If the result is not @entry, the caller puts @entry.
 * entries.xa_lock may be dropped meanwhile.
 */
struct hwt_entry *hwt_entry_insert_key(struct hwt_context *ctx, struct hwt_entry *entry)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_entry *old = hwt_entry_find(ctx, entry->id);
	u32 slot;
	int ret;

	if (old)
		return old;
	ret = hwt_entry_reserve(ctx, entry, &slot);
	if (ret)
		return ERR_PTR(ret);
	/* Look for the key again: another task may have inserted it while the lock was dropped. */
	entry->slot = slot;
	old = rhashtable_lookup_get_insert_fast(&ctx->keys, &entry->node, hwt_key_params);
	if (!old) {
		hwt_entry_inserted(ctx, entry);
		return entry;
	}
	__xa_erase(&ctx->entries, slot);
	ctx->stats.timeouts--;
	/* Return -ENOMEM also for -EBUSY and -E2BIG, which say that the hash cannot grow now. */
	return IS_ERR(old) ? ERR_PTR(-ENOMEM) : old;
}

/**
 * hwt_entry_arm() - arm an entry, for the first time or again
 * @entry:     the entry
 * @op:        the operation, which has the time and the slack
 * @period_ns: the period, if the entry is periodic
 * @offset:    the result of hwt_context_offset()
 *
 * This call gets a reference to the entry for a hold that it begins.
 *
 * Return: 0 or a negative error.
 */
int hwt_entry_arm(struct hwt_entry *entry, const struct hwt_op *op, u64 period_ns,
		  s64 offset)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	bool rate = entry->mode == HWT_MODE_FIXED_RATE;
	bool absolute = op->flags & HWT_ARM_ABSOLUTE;
	u64 time_ns = op->time_ns;
	int ret;

	if (absolute)
		time_ns = hwt_time_from_user(time_ns, offset, rate ? period_ns : 0);
	refcount_inc(&entry->refs);
	if (!hwt_entry_periodic(entry))
		ret = hwt_schedule_flags(&entry->timeout, time_ns, op->slack_ns,
					 absolute ? HWT_SCHEDULE_AT : 0);
	else
		ret = absolute ?
			hwt_schedule_periodic_at(&entry->periodic, time_ns, period_ns,
						 entry->mode) :
			hwt_schedule_periodic(&entry->periodic, time_ns, period_ns,
					      entry->mode);
	/* If no new hold has begun, drop this reference: the table or the caller has another. */
	if (ret < 0 || (ret & HWT_WAS_HELD))
		refcount_dec(&entry->refs);
	if (ret == -EAGAIN)
		return hwt_context_limited(entry->ctx, HWT_LIMIT_PENDING);
	return min(ret, 0);
}

/**
 * hwt_entry_modify() - arm an entry in the table for another time, and withdraw its event
 * @entry:     the entry
 * @op:        the operation, which has the time, the slack and, with HWT_ARM_USER_DATA, new data
 * @period_ns: the new period, if the entry is periodic
 * @offset:    the result of hwt_context_offset()
 *
 * Return: the previous HWT_STATE_ bits, or a negative error, after which nothing has changed.
 */
int hwt_entry_modify(struct hwt_entry *entry, const struct hwt_op *op, u64 period_ns,
		     s64 offset)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	u32 was;
	int ret;

	if (entry->ctx->closing)
		return -ESHUTDOWN;
	ret = hwt_entry_arm(entry, op, period_ns, offset);
	if (ret)
		return ret;
	was = hwt_entry_state(entry);
	hwt_event_drop(entry);
	entry->due_ns = HWT_NEVER;
	entry->ctx->stats.pending += entry->final;
	entry->final = false;
	if (op->flags & HWT_ARM_USER_DATA)
		entry->user_data = op->user_data;
	if (hwt_entry_periodic(entry)) {
		entry->period_ns = period_ns;
		entry->missed = 0;
	}
	entry->ctx->stats.modified++;
	return was;
}

/* End an entry that was removed from the table: drop its event, its command, and a reference. */
static void hwt_entry_end(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	hwt_event_drop(entry);
	hwt_uring_end(entry, -ECANCELED);
	hwt_entry_set_final(entry);
	ctx->stats.timeouts--;
	hwt_event_wake_end(ctx);
	hwt_entry_put(entry);
}

/* Remove an entry from the table, and so end its id. This call may free the entry. */
void hwt_entry_remove(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	if (ctx->keyed)
		rhashtable_remove_fast(&ctx->keys, &entry->node, hwt_key_params);
	__xa_erase(&ctx->entries, ctx->keyed ? entry->slot : lower_32_bits(entry->id));
	hwt_entry_end(entry);
}

/*
 * Carry out HWT_IOC_STOP for an entry. Return true if its timeout was pending. In this case, if the
 * entry has a command of io_uring, complete the command, and remove the entry. If the entry has
 * neither a command nor an unread event, add an event.
 */
bool hwt_entry_stop(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	u64 due = hwt_entry_due(entry);

	if (entry->final)
		return false;
	hwt_cancel(&entry->timeout);
	hwt_entry_set_final(entry);
	entry->ctx->stats.stopped++;
	if (entry->uring) {
		hwt_uring_end(entry, -ESHUTDOWN);
		hwt_entry_remove(entry);
		return true;
	}
	if (!hwt_entry_has_event(entry))
		hwt_event_add(entry, HWT_EVENT_STOPPED, due,
			      hwt_wheel_now(entry->ctx->wheel));
	return true;
}

/* Cancel the timeout of an entry, and remove the entry from the table. The entry may be freed. */
void hwt_entry_cancel(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	hwt_cancel(&entry->timeout);
	hwt_entry_remove(entry);
	ctx->stats.cancelled++;
}

/* Replace @old by @entry, of the same key. On error, @old is unchanged; the caller puts @entry. */
int hwt_entry_replace(struct hwt_entry *old, struct hwt_entry *entry, const struct hwt_op *op,
		      s64 offset)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;
	int ret;

	if (ctx->closing)
		return -ESHUTDOWN;
	if (!entry->charged && !hwt_user_add_timeout(ctx->user))
		return hwt_context_limited(ctx, HWT_LIMIT_USER_TIMEOUTS);
	entry->charged = true;
	hwt_timeout_set_shard(&entry->timeout, ctx->shard);
	/*
	 * If @old is pending, its cancel makes room for @entry within max_pending. So arming @entry
	 * fails only if @old was not pending. In that case, hwt_cancel() has changed nothing.
	 */
	hwt_cancel(&old->timeout);
	ret = hwt_entry_arm(entry, op, op->period_ns, offset);
	if (ret)
		return ret;
	/* The slot and the key exist already, so replacing @old needs no memory and cannot fail. */
	entry->slot = old->slot;
	__xa_store(&ctx->entries, entry->slot, entry, 0);
	rhashtable_replace_fast(&ctx->keys, &old->node, &entry->node, hwt_key_params);
	ctx->stats.timeouts++;
	ctx->stats.pending++;
	ctx->stats.cancelled++;
	hwt_entry_end(old);
	return 0;
}

/* -- Callbacks ----------------------------------------------------------- */

/* Handle the firing of an entry. Return true if the caller has to wake readers. */
static bool hwt_entry_fire(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;
	u64 due = hwt_entry_tick_ns(entry), now = hwt_wheel_now(ctx->wheel), overruns;

	ctx->stats.expired++;
	if (entry->uring) {
		hwt_uring_end(entry, 0);
		/* The entry is not freed yet: the hold has a reference until ->release. */
		hwt_entry_remove(entry);
		return false;
	}
	if (!hwt_entry_periodic(entry)) {
		hwt_entry_set_final(entry);
		hwt_event_add(entry, HWT_EVENT_EXPIRED, due, now);
		return true;
	}
	overruns = hwt_overruns(&entry->periodic);
	if (!hwt_entry_has_event(entry)) {
		entry->overruns = overruns;
		ctx->stats.overruns += overruns;
		hwt_event_add(entry, HWT_EVENT_EXPIRED, due, now);
		return true;
	}
	entry->due_ns = due;
	entry->fired_ns = now;
	entry->overruns += overruns + 1;
	ctx->stats.overruns += overruns + 1;
	return false;
}

static void hwt_entry_expire(struct hwt_timeout *timeout)
{
	struct hwt_entry *entry = container_of(timeout, struct hwt_entry, timeout);
	struct hwt_context *ctx = entry->ctx;
	bool wake = false;

	xa_lock(&ctx->entries);
	/*
	 * Fire only if the timeout was not cancelled or stopped (both set entry->final) or modified
	 * (then it is armed again) before this task took the lock.
	 */
	if (!entry->final && !(hwt_timeout_state(timeout) & HWT_F_ARMED))
		wake = hwt_entry_fire(entry);
	xa_unlock(&ctx->entries);
	if (wake)
		hwt_event_wake(ctx);
}

static void hwt_entry_release(struct hwt_timeout *timeout)
{
	hwt_entry_put(container_of(timeout, struct hwt_entry, timeout));
}

static const struct hwt_timeout_ops hwt_entry_ops = {
	.expire		= hwt_entry_expire,
	.release	= hwt_entry_release,
};

/* -- The module ---------------------------------------------------------- */

int __init hwt_entries_init(void)
{
	hwt_one_shot_cache = kmem_cache_create("hwt_entry",
					       offsetofend(struct hwt_entry, timeout), 0,
					       SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT, NULL);
	hwt_periodic_cache = kmem_cache_create("hwt_entry_periodic",
					       sizeof(struct hwt_entry), 0,
					       SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT, NULL);
	if (hwt_one_shot_cache && hwt_periodic_cache)
		return 0;
	hwt_entries_exit();
	return -ENOMEM;
}

void hwt_entries_exit(void)
{
	kmem_cache_destroy(hwt_one_shot_cache);
	kmem_cache_destroy(hwt_periodic_cache);
}
