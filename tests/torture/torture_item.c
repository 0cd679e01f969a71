// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timeouts: created, borrowed, dropped and freed
 *
 * Two counts: @users counts the contexts that may call hwt for the timeout. @refs keeps the memory:
 * one reference for all users, and one for each hold, put by ->release, by the caller to which the
 * hold is given back, or by ->expire on a BH wheel. A timeout without users may still be held,
 * until it fires or its wheel is stopped.
 *
 * The last reference may be put in any context. From then on hwt must not touch the timeout, so it
 * is poisoned at once. A grace period later the reaper checks the poison, closes the ledger, and
 * frees the timeout. Some timeouts that no other context can find are freed at once, for KASAN.
 */
#include "torture.h"

#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

static struct tt_item __rcu **tt_table;
static unsigned int tt_slots;
static atomic64_t tt_ids;

static atomic_t tt_allocated;
static LLIST_HEAD(tt_dead);
static struct task_struct *tt_reaper;

/* So many timeouts that no more TT_ONCE are created: hwt would fall ever further behind. */
bool tt_items_plenty(void)
{
	return atomic_read(&tt_allocated) > TT_PLENTY;
}

/*
 * Allocate a timeout, mostly from memory that was one a moment ago. The struct hwt_periodic is left
 * uninitialised.
 */
static struct tt_item *tt_item_alloc(void)
{
	struct tt_item *item = kmalloc(sizeof(*item), GFP_KERNEL);

	if (!item)
		return NULL;
	memset((void *)item + sizeof(item->periodic), 0, sizeof(*item) - sizeof(item->periodic));
	atomic_inc(&tt_allocated);
	return item;
}

/*
 * Create a timeout of which the caller is the owner and only user. The caller has the wheel from
 * tt_wheel_get(). @bare: without ->release. On a BH wheel each is, and is counted nevertheless if
 * the wheel is: periodic ones are not, because their callbacks do not end their hold. Process
 * context; NULL if there is no memory.
 */
struct tt_item *tt_item_new(struct tt_wheel *wheel, enum tt_kind kind, bool bare,
			    struct rnd_state *rnd)
{
	static const u64 least[] = { 0, 0, 0, KT_MS, 3 * KT_MS, 50 * KT_MS, KT_HOUR };
	struct tt_item *item = tt_item_alloc();

	if (!item)
		return NULL;
	item->magic = TT_MAGIC;
	item->kind = kind;
	item->id = atomic64_inc_return(&tt_ids);
	item->wheel = wheel;
	item->private = kind == TT_ONCE;
	item->counted = tt_is_bh(wheel) ? wheel->counted && kind != TT_BEAT && kind != TT_MIXED :
					  !bare;
	item->ops = bare || tt_is_bh(wheel) ? &tt_ops_bare :
		    tt_one_in(rnd, 3) ? &tt_ops_quiet : &tt_ops_full;
	item->least = least[tt_pick(rnd, ARRAY_SIZE(least))];
	item->due = U64_MAX;
	/* While hwt converts a delay to a date, the wall clock may be set: no floor is known. */
	item->floor = tt_realtime(wheel) && !tt_exact(item) ? 0 : U64_MAX;
	item->base = item->floor;
	item->clean = true;
	refcount_set(&item->users, 1);
	refcount_set(&item->refs, 1);
	atomic_inc(&wheel->users);
	atomic_inc(&wheel->items);
	tt_init(item);
	return item;
}

/* Put a timeout into the table, where all actors find it; NULL: empty the slot. */
void tt_item_publish(unsigned int slot, struct tt_item *item)
{
	if (item)
		WRITE_ONCE(item->slot, slot);
	rcu_assign_pointer(tt_table[slot], item);
}

/* Become a user of the timeout in that slot; NULL if there is none. Any context. */
struct tt_item *tt_item_borrow(unsigned int slot)
{
	struct tt_item *item;

	rcu_read_lock();
	item = rcu_dereference(tt_table[slot % tt_slots]);
	if (item && !refcount_inc_not_zero(&item->users))
		item = NULL;
	rcu_read_unlock();
	return item;
}

struct tt_item *tt_item_borrow_any(struct rnd_state *rnd)
{
	unsigned int slot = tt_pick(rnd, tt_slots);

	/* An interrupt does not change the slot of the task that it has interrupted. */
	if (in_task())
		this_cpu_write(tt_busy_with, slot);
	return tt_item_borrow(slot);
}

/* Become a user of the timeout at @address, if there is one there. Any context. */
struct tt_item *tt_item_borrow_at(unsigned long address)
{
	struct tt_item *there = tt_item_of((struct hwt_timeout *)address), *item;
	unsigned int slot;

	if (address % sizeof(long) || copy_from_kernel_nofault(&slot, &there->slot, sizeof(slot)))
		return NULL;
	item = tt_item_borrow(slot);
	if (item && item != there) {
		tt_item_return(item);
		item = NULL;
	}
	return item;
}

static void tt_add_up(struct tt_item *item)
{
	atomic64_t *sums = item->wheel->n;
	int fired = atomic_read(&item->n[TT_N_FIRED]);
	unsigned int n;

	for (n = 0; n < TT_TALLIES; n++)
		atomic64_add(atomic_read(&item->n[n]), &sums[n]);
	if (item->kind == TT_BEAT)
		atomic64_add(fired, &sums[TT_N_FIRED_BEAT]);
	else if (item->kind == TT_MIXED)
		atomic64_add(fired, &sums[TT_N_FIRED_ANY]);
}

static void tt_bury(struct tt_item *item)
{
	struct tt_wheel *wheel = item->wheel;

	tt_audit(item);
	tt_add_up(item);
	item->magic = 0;
	kfree(item);
	atomic_dec(&tt_allocated);
	/* Last: afterwards the keeper may destroy the wheel. */
	atomic_dec_return_release(&wheel->items);
}

/* Put a reference to the memory. Any context. */
void tt_item_put(struct tt_item *item)
{
	if (!refcount_dec_and_test(&item->refs))
		return;
	/* A private one is put by its owner or in its callbacks, where memory can be freed. */
	if (item->private && item->id % 2) {
		tt_bury(item);
		return;
	}
	memset(&item->periodic, TT_POISONED, sizeof(item->periodic));
	llist_add(&item->dead, &tt_dead);
}

/* Put a user. An owner removes the timeout from the table before. Any context. */
void tt_item_return(struct tt_item *item)
{
	if (!refcount_dec_and_test(&item->users))
		return;
	if (!item->counted && !item->idle) {
		/* No hold has a reference: the reaper calls hwt_shutdown_sync(). */
		llist_add(&item->dead, &tt_dead);
		return;
	}
	atomic_dec(&item->wheel->users);
	tt_item_put(item);
}

static void tt_reap(struct llist_node *list)
{
	struct tt_item *item, *next;
	void *odd;

	/* Wait for tt_item_borrow() of CPUs that have read these from the table. */
	synchronize_rcu();
	llist_for_each_entry_safe(item, next, list, dead)
		if (!item->counted && !item->idle) {
			tt_shutdown_sync(item);
			memset(&item->periodic, TT_POISONED, sizeof(item->periodic));
			atomic_dec(&item->wheel->users);
		}
	/* Time for a faulty write to hit the poison. */
	usleep_range(500, 1500);
	llist_for_each_entry_safe(item, next, list, dead) {
		odd = memchr_inv(&item->periodic, TT_POISONED, sizeof(item->periodic));
		if (odd)
			tt_fail(TT_POISON, item, "written to at offset %td, after its last release",
				odd - (void *)item);
		tt_bury(item);
	}
}

static int tt_reaper_main(void *arg)
{
	struct llist_node *list;

	while (!kthread_should_stop()) {
		list = llist_del_all(&tt_dead);
		if (list)
			tt_reap(list);
		else
			usleep_range(500, 2000);
	}
	return 0;
}

int tt_items_start(unsigned int slots)
{
	tt_slots = slots;
	tt_table = kvcalloc(slots, sizeof(*tt_table), GFP_KERNEL);
	if (!tt_table)
		return -ENOMEM;
	tt_reaper = tt_run(tt_reaper_main, NULL, "reaper", 0);
	return PTR_ERR_OR_ZERO(tt_reaper);
}

/* Called after all wheels were destroyed, so that no timeouts are left. */
void tt_items_stop(void)
{
	tt_stop(tt_reaper);
	if (!llist_empty(&tt_dead))
		tt_fail(TT_LEAK, NULL, "the reaper has left timeouts that are to be freed");
	if (atomic_read(&tt_allocated))
		tt_fail(TT_LEAK, NULL, "%d timeouts are left", atomic_read(&tt_allocated));
	kvfree(tt_table);
	tt_table = NULL;
}
