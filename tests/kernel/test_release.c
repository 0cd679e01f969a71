// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pattern with reference counts: get, schedule, put if it was held or refused;
 * put in ->release. Objects are freed by whoever puts last. Whether each hold is
 * released exactly once is whether the counts add up; KASAN sees what is touched
 * after it was freed.
 *
 * hwt-test: long
 * hwt-test: timeout 120
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kref.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

#define THREADS	3
#define SLOTS	64

struct object {
	struct hwt_timeout	timeout;
	struct kref		kref;
	u32			magic;
};

static struct object __rcu *slot[SLOTS];
static DEFINE_SPINLOCK(slot_lock);
static struct hwt_wheel *wheel;
static atomic_t made, freed, holds, released, armed, hits, expired, odd;

#define MAGIC	0x68777421

static void object_free(struct kref *kref)
{
	struct object *object = container_of(kref, struct object, kref);

	if (hwt_held(&object->timeout) || object->magic != MAGIC)
		atomic_inc(&odd);
	object->magic = 0;
	atomic_inc(&freed);
	kfree(object);
}

static void object_put(struct object *object)
{
	kref_put(&object->kref, object_free);
}

static void object_schedule(struct object *object, u64 delay, unsigned int how)
{
	int ret;

	kref_get(&object->kref);
	if (how == 0)
		ret = hwt_schedule_earlier(&object->timeout, delay);
	else if (how == 1)
		ret = hwt_schedule_slack(&object->timeout, delay, delay);
	else
		ret = hwt_schedule(&object->timeout, delay);
	if (ret >= 0 && !(ret & HWT_WAS_PENDING))
		atomic_inc(&armed);
	if (ret < 0 || (ret & HWT_WAS_HELD))
		object_put(object);
	else
		atomic_inc(&holds);
}

static void object_expire(struct hwt_timeout *timeout)
{
	struct object *object = container_of(timeout, struct object, timeout);

	if (object->magic != MAGIC)
		atomic_inc(&odd);
	if (atomic_inc_return(&expired) % 4 == 0)
		object_schedule(object, KT_MS, 2);
}

static void object_release(struct hwt_timeout *timeout)
{
	atomic_inc(&released);
	object_put(container_of(timeout, struct object, timeout));
}

static const struct hwt_ops object_ops = {
	.expire		= object_expire,
	.release	= object_release,
};

static struct object *object_make(void)
{
	struct object *object = kzalloc(sizeof(*object), GFP_KERNEL);

	if (!object)
		return NULL;
	atomic_inc(&made);
	object->magic = MAGIC;
	kref_init(&object->kref);
	hwt_timeout_init(&object->timeout, wheel, &object_ops);
	return object;
}

/* What is in the slot, with a reference. */
static struct object *slot_get(unsigned int n)
{
	struct object *object;

	spin_lock(&slot_lock);
	object = rcu_dereference_protected(slot[n], true);
	if (object)
		kref_get(&object->kref);
	spin_unlock(&slot_lock);
	return object;
}

/* Put another one there; the caller gets the old one, and its reference. */
static struct object *slot_swap(unsigned int n, struct object *object)
{
	spin_lock(&slot_lock);
	object = rcu_replace_pointer(slot[n], object, true);
	spin_unlock(&slot_lock);
	return object;
}

static void act(struct rnd_state *rnd)
{
	u32 random = prandom_u32_state(rnd);
	unsigned int n = random % SLOTS;
	struct object *object;

	if (random >> 28 == 0) {
		/* Drop it without a look: what is pending goes on by itself. */
		object = slot_swap(n, object_make());
		if (object)
			object_put(object);
		return;
	}
	object = slot_get(n);
	if (!object)
		return;
	switch (random >> 28) {
	case 1 ... 3:
		atomic_add(hwt_cancel(&object->timeout), &hits);
		break;
	case 4:
		atomic_add(hwt_cancel_sync(&object->timeout), &hits);
		break;
	case 5:
		atomic_add(hwt_shutdown_sync(&object->timeout), &hits);
		break;
	case 6:
		atomic_add(!!(hwt_try_cancel(&object->timeout) & HWT_WAS_PENDING),
			   &hits);
		break;
	default:
		object_schedule(object, random >> 12 & 0x1fffff, random >> 8 & 3);
	}
	object_put(object);
}

static int worker(void *arg)
{
	struct rnd_state rnd;
	unsigned int n = 0;

	prandom_seed_state(&rnd, (unsigned long)arg);
	while (!kthread_should_stop()) {
		act(&rnd);
		if (++n % 64 == 0)
			cond_resched();
	}
	return 0;
}

static void __init test_threads(bool stop_first)
{
	struct task_struct *thread[THREADS];
	struct hwt_wheel_stats stats;
	struct object *object;
	long handed = 0;
	int i;

	wheel = kt_wheel("release");
	for (i = 0; i < SLOTS; i++)
		slot_swap(i, object_make());
	for (i = 0; i < THREADS; i++)
		thread[i] = kt_thread(worker, (void *)(i + 1UL), i);
	msleep(kt_quick() ? 1000 : 5000);
	if (stop_first)
		handed = hwt_wheel_stop(wheel, NULL, NULL);
	for (i = 0; i < THREADS; i++)
		kt_thread_stop(thread[i]);
	for (i = 0; i < SLOTS; i++) {
		object = slot_swap(i, NULL);
		if (object)
			object_put(object);
	}
	/* Nobody has a reference now but those that are held. */
	KTEST(KT_WAIT(atomic_read(&made) == atomic_read(&freed)),
	      "%d objects made, %d freed", atomic_read(&made), atomic_read(&freed));
	KTEST(KT_WAIT(atomic_read(&holds) == atomic_read(&released)),
	      "%d holds, %d releases", atomic_read(&holds), atomic_read(&released));
	hwt_wheel_get_stats(wheel, &stats);
	KTEST(stats.scheduled == atomic_read(&armed) &&
	      stats.expired == atomic_read(&expired) && stats.handed_back == handed &&
	      stats.pending == 0 &&
	      stats.scheduled == stats.expired + stats.cancelled + handed,
	      "%d armed = %llu cancelled + %d fired + %ld handed back",
	      atomic_read(&armed), stats.cancelled, atomic_read(&expired), handed);
	/* A _sync that cancels in several rounds says so once. */
	KTEST(stats.cancelled >= atomic_read(&hits) &&
	      stats.cancelled - atomic_read(&hits) < atomic_read(&hits) / 100,
	      "the callers know of %d cancels", atomic_read(&hits));
	KTEST(atomic_read(&odd) == 0, "none was held or gone when it should not be");
	KTEST(atomic_read(&holds) > 100 && atomic_read(&hits) > 100 &&
	      atomic_read(&expired) > 10, "and there was something to see");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
	atomic_set(&armed, 0);
	atomic_set(&hits, 0);
	atomic_set(&expired, 0);
	atomic_set(&holds, 0);
	atomic_set(&released, 0);
}

static void __init selftest(void)
{
	test_threads(false);
	test_threads(true);
}

KSTM_MODULE_LOADERS(test_release);
MODULE_DESCRIPTION("hwt: whose memory it is");
MODULE_LICENSE("GPL");
