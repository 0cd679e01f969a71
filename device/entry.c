// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hwt: the life of a timeout of a program
 */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "hwt.h"
#include "device/context.h"
#include "device/entry.h"
#include "device/event.h"
#include "device/pass.h"
#include "device/thread.h"
#include "device/uring.h"
#include "device/user.h"

static struct kmem_cache *hwt_one_shot_cache;

/* -- Time ---------------------------------------------------------------- */

/* Return the time of the tick for which an entry is armed, or was armed last. */
static u64 hwt_entry_tick_ns(const struct hwt_entry *entry)
{
	return hwt_tick_ns(entry->ctx, hwt_entry_tick(entry));
}

/*
 * Return the deadline for which an entry is armed, or was armed last. While a wheel runs the
 * callback of a periodic timeout, return the deadline of this firing until hwt_event_add() has
 * stored it in the entry, and the next deadline afterwards. Called with entries.xa_lock held.
 */
u64 hwt_entry_due(const struct hwt_entry *entry)
{
	u64 due = hwt_entry_tick_ns(entry);

	if (!entry->ctx->wheel || entry->due_ns != due)
		return due;
	return hwt_deadline(&entry->timeout) ?: due;
}

/* Return the ns until an entry is due, 0 if it is not pending. Called with entries.xa_lock held. */
u64 hwt_entry_remaining(const struct hwt_entry *entry)
{
	u64 due = hwt_entry_due(entry), now = hwt_context_now(entry->ctx);

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
	/* No memory cgroup is charged for the table, so begin with the smallest table. */
	.nelem_hint		= 3,
	.automatic_shrinking	= true,
};

int hwt_keys_init(struct hwt_context *ctx)
{
	return rhashtable_init(&ctx->keys, &hwt_key_params);
}

/*
 * Find the entry of an id for an operation. If the timeout is due, fire it first, so that the
 * operation finds it in the state after the firing. Return NULL if no entry has the id, or if the
 * firing has freed the entry.
 */
struct hwt_entry *hwt_entry_find(struct hwt_context *ctx, u64 id)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_entry *entry;

	if (ctx->keyed)
		entry = rhashtable_lookup_fast(&ctx->keys, &id, hwt_key_params);
	else
		entry = xa_load(&ctx->entries, lower_32_bits(id));
	if (!entry || entry->id != id)
		return NULL;
	return ctx->wheel || !hwt_pass_settle(entry) ? entry : NULL;
}

/* Allocate at most as many entries as were handed out before: so at most half remain unused. */
static void *hwt_prealloc_take(struct hwt_prealloc *prealloc)
{
	u32 n = min3(prealloc->ahead, prealloc->taken, (u32)HWT_PREALLOC_MAX);

	if (!prealloc->n && n > 1) {
		if (kmem_cache_alloc_bulk(hwt_one_shot_cache, HWT_GFP_USER | __GFP_ZERO, n,
					  prealloc->entries))
			prealloc->n = n;
		else
			prealloc->taken = 0;
	}
	prealloc->taken++;
	return prealloc->n ? prealloc->entries[--prealloc->n] :
			  kmem_cache_zalloc(hwt_one_shot_cache, HWT_GFP_USER);
}

void hwt_prealloc_free(struct hwt_prealloc *prealloc)
{
	if (prealloc->n)
		kmem_cache_free_bulk(hwt_one_shot_cache, prealloc->n, prealloc->entries);
}

/* Free an entry that is not in the table, and that no wheel holds. */
void hwt_entry_free(struct hwt_entry *entry)
{
	hwt_user_drop_timeout(entry->ctx->user);
	if (hwt_entry_periodic(entry))
		kfree(entry);
	else
		kmem_cache_free(hwt_one_shot_cache, entry);
}

/*
 * Allocate an entry, and count it against the limit of its user. @prealloc: memory for one-shots,
 * or NULL. Return the entry or an ERR_PTR().
 */
struct hwt_entry *hwt_entry_alloc(struct hwt_context *ctx, struct hwt_prealloc *prealloc,
				  const struct hwt_op *op)
{
	struct hwt_entry *entry;
	int ret;

	if (!hwt_user_add_timeout(ctx->user)) {
		xa_lock(&ctx->entries);
		ret = hwt_context_limited(ctx, HWT_LIMIT_USER_TIMEOUTS);
		xa_unlock(&ctx->entries);
		return ERR_PTR(ret);
	}
	if (op->mode != HWT_MODE_ONE_SHOT)
		entry = kzalloc(sizeof(*entry), HWT_GFP_USER);
	else
		entry = prealloc ? hwt_prealloc_take(prealloc) :
				   kmem_cache_zalloc(hwt_one_shot_cache, HWT_GFP_USER);
	if (!entry) {
		hwt_user_drop_timeout(ctx->user);
		return ERR_PTR(-ENOMEM);
	}
	entry->ctx = ctx;
	INIT_LIST_HEAD(&entry->ready);
	entry->id = op->id;
	entry->user_data = op->user_data;
	entry->due_ns = HWT_NEVER;
	entry->mode = op->mode;
	entry->holds = 1;
	if (hwt_entry_periodic(entry))
		entry->period_ns = op->period_ns;
	return entry;
}

/*
 * Put @entry into the table, under its key or a new id. Return @entry, or another entry that has
 * the key already, or an ERR_PTR(); in the last two cases, the caller frees @entry. The function
 * may drop entries.xa_lock to allocate memory.
 */
struct hwt_entry *hwt_entry_insert(struct hwt_context *ctx, struct hwt_entry *entry)
	__must_hold(&ctx->entries.xa_lock)
{
	struct hwt_entry *old = ctx->keyed ? hwt_entry_find(ctx, entry->id) : NULL;
	u32 slot;
	int ret;

	/*
	 * ctx->wheel and ctx->keyed do not change any more: HWT_IOC_SETUP takes the lock, and fails
	 * while stats.timeouts is not 0.
	 */
	if (ctx->wheel)
		hwt_thread_init(entry);
	if (old)
		return old;
	if (ctx->stats.timeouts >= hwt_context_max_timeouts(ctx))
		return ERR_PTR(hwt_context_limited(ctx, HWT_LIMIT_TIMEOUTS));
	ctx->stats.timeouts++;
	ret = __xa_alloc(&ctx->entries, &slot, entry,
			 ctx->keyed ? XA_LIMIT(0, HWT_KEYED_MAX - 1) : xa_limit_32b, HWT_GFP_USER);
	if (!ret && ctx->keyed) {
		/* Another task may have added the key while the lock was dropped. */
		entry->slot = slot;
		old = rhashtable_lookup_get_insert_fast(&ctx->keys, &entry->node, hwt_key_params);
		if (old)
			__xa_erase(&ctx->entries, slot);
		/* The errors -EBUSY and -E2BIG also mean that the hash table cannot grow now. */
		ret = IS_ERR(old) ? -ENOMEM : 0;
	} else if (!ret) {
		if (!++ctx->id_high)
			ctx->id_high = 1;
		entry->id = (u64)ctx->id_high << 32 | slot;
	}
	if (ret || old) {
		ctx->stats.timeouts--;
		return ret ? ERR_PTR(ret) : old;
	}
	WRITE_ONCE(ctx->fixed, true);
	ctx->stats.pending++;
	return entry;
}

/* Return the time of an operation: the delay, or the deadline on the context's clock. */
static u64 hwt_entry_time(const struct hwt_entry *entry, const struct hwt_op *op, u64 period_ns,
			  s64 offset)
{
	bool rate = entry->mode == HWT_MODE_FIXED_RATE;

	if (!(op->flags & HWT_ARM_ABSOLUTE))
		return op->time_ns;
	return hwt_time_from_user(op->time_ns, offset, rate ? period_ns : 0);
}

/*
 * Check the conditions of an operation (HWT_ARM_EARLIER, HWT_ARM_PENDING, HWT_ARM_UNLESS_PENDING)
 * for an entry in the table. Return 0 if they hold. Otherwise set op->generation to 0, and return
 * the entry's HWT_STATE_ bits, which are not 0.
 */
int hwt_entry_refuse(struct hwt_entry *entry, struct hwt_op *op, u64 period_ns, s64 offset)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	bool kept = op->flags & (entry->final ? HWT_ARM_PENDING : HWT_ARM_UNLESS_PENDING);
	struct hwt_context *ctx = entry->ctx;
	u64 ns;

	if (!entry->final && op->flags & HWT_ARM_EARLIER) {
		ns = hwt_entry_time(entry, op, period_ns, offset);
		if (!(op->flags & HWT_ARM_ABSOLUTE))
			ns = hwt_context_now(ctx) + min_t(u64, ns, S64_MAX);
		ns = hwt_tick_ns(ctx, hwt_pass_slack_tick(ctx, ns, op->slack_ns));
		kept |= ns >= hwt_entry_due(entry);
	}
	if (!kept)
		return 0;
	op->generation = 0;
	return hwt_entry_state(entry);
}

/*
 * Arm an entry, for the first time or again. @op has the time and the slack, and gets the
 * generation. @offset: the result of hwt_context_offset(). Return 0 or a negative error.
 */
int hwt_entry_arm(struct hwt_entry *entry, struct hwt_op *op, u64 period_ns, s64 offset)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	u64 time_ns = hwt_entry_time(entry, op, period_ns, offset);
	struct hwt_context *ctx = entry->ctx;
	int ret = 0;

	if (ctx->wheel)
		ret = hwt_thread_arm(entry, op, time_ns, period_ns);
	else
		ret = hwt_pass_arm(entry, op, time_ns);
	if (ret)
		return ret;
	ctx->generation += ctx->generation == U32_MAX ? 2 : 1;
	entry->generation = ctx->generation;
	op->generation = ctx->generation;
	return 0;
}

static void hwt_entry_disarm(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	if (entry->ctx->wheel)
		hwt_cancel(&entry->timeout);
	else if (hwt_linked(&entry->timeout))
		hwt_buckets_remove(&entry->ctx->pass.buckets, &entry->timeout);
}

/*
 * Arm an entry in the table for another time, and withdraw its event. @op has the time, the slack
 * and, with HWT_ARM_USER_DATA, new data. @period_ns: the new period of a periodic entry. Return the
 * previous HWT_STATE_ bits, or a negative error. An error changes nothing. If a condition in
 * op->flags (see hwt_entry_refuse()) does not hold, set op->generation to 0, change nothing else,
 * and return the present HWT_STATE_ bits.
 */
int hwt_entry_modify(struct hwt_entry *entry, struct hwt_op *op, u64 period_ns, s64 offset)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	int ret = hwt_entry_refuse(entry, op, period_ns, offset);
	u32 was = hwt_entry_state(entry);

	if (ret)
		return ret;
	ret = hwt_entry_arm(entry, op, period_ns, offset);
	if (ret)
		return ret;
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

/* End an entry that was removed from the table. Free it, unless a wheel still holds its timeout. */
static void hwt_entry_end(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	hwt_event_drop(entry);
	hwt_uring_end(entry, -ECANCELED);
	hwt_entry_set_final(entry);
	entry->ctx->stats.timeouts--;
	if (!--entry->holds)
		hwt_entry_free(entry);
}

/* Remove an entry, which is not armed, from the table: its id ends. This may free the entry. */
void hwt_entry_remove(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	if (ctx->keyed)
		rhashtable_remove_fast(&ctx->keys, &entry->node, hwt_key_params);
	__xa_erase(&ctx->entries, ctx->keyed ? entry->slot : lower_32_bits(entry->id));
	hwt_entry_end(entry);
}

/* Cancel the timeout of an entry, and remove the entry from the table. The entry may be freed. */
void hwt_entry_cancel(struct hwt_entry *entry)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;

	hwt_entry_disarm(entry);
	hwt_entry_remove(entry);
	ctx->stats.cancelled++;
}

/*
 * Replace @old by @entry, which has the same key. Return 0, an error or, if a condition does not
 * hold, @old's HWT_STATE_ bits. Unless the result is 0, @old is unchanged, and the caller frees
 * @entry.
 */
int hwt_entry_replace(struct hwt_entry *old, struct hwt_entry *entry, struct hwt_op *op,
		      s64 offset)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	int ret = hwt_entry_refuse(old, op, op->period_ns, offset);
	struct hwt_context *ctx = entry->ctx;
	bool final = old->final;

	if (ret)
		return ret;
	/*
	 * If @old is pending, its disarm makes room under max_pending, so hwt_entry_arm() cannot
	 * fail. Else the disarm does nothing, and hwt_entry_arm() may fail. If the wheel's thread
	 * is about to fire @old then, it waits for this lock: leave @old as it was.
	 */
	hwt_entry_disarm(old);
	hwt_entry_set_final(old);
	ctx->stats.pending++;
	ret = hwt_entry_arm(entry, op, op->period_ns, offset);
	if (ret) {
		old->final = final;
		ctx->stats.pending -= final;
		return ret;
	}
	/* The slot and the key exist already, so these stores need no memory, and cannot fail. */
	entry->slot = old->slot;
	__xa_store(&ctx->entries, entry->slot, entry, 0);
	rhashtable_replace_fast(&ctx->keys, &old->node, &entry->node, hwt_key_params);
	ctx->stats.timeouts++;
	ctx->stats.cancelled++;
	hwt_entry_end(old);
	return 0;
}

/* -- Firing ----------------------------------------------------------------- */

/*
 * Fire an entry, which is not armed any more. Return true if an event was added. If the timeout is
 * a command of io_uring, this removes the entry from the table, and may free it.
 */
bool hwt_entry_fire(struct hwt_entry *entry, u64 now_ns)
	__must_hold(&entry->ctx->entries.xa_lock)
{
	struct hwt_context *ctx = entry->ctx;
	u64 due = hwt_entry_tick_ns(entry), overruns;
	bool added;

	ctx->stats.expired++;
	if (entry->uring) {
		hwt_uring_end(entry, 0);
		hwt_entry_remove(entry);
		return false;
	}
	if (!hwt_entry_periodic(entry)) {
		hwt_entry_set_final(entry);
		return hwt_event_add(entry, due, now_ns);
	}
	overruns = ctx->wheel ? hwt_overruns(&entry->periodic) :
			hwt_pass_rearm(entry, now_ns, &due);
	added = hwt_event_add(entry, due, now_ns);
	overruns += !added;
	entry->overruns += overruns;
	ctx->stats.overruns += overruns;
	return added;
}

/* -- The module ---------------------------------------------------------- */

int __init hwt_entries_init(void)
{
	hwt_one_shot_cache = kmem_cache_create("hwt_entry",
					       offsetofend(struct hwt_entry, timeout), 0,
					       SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT, NULL);
	return hwt_one_shot_cache ? 0 : -ENOMEM;
}

void hwt_entries_exit(void)
{
	kmem_cache_destroy(hwt_one_shot_cache);
}
