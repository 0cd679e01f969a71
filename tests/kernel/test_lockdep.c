// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lockdep checks each function that waits: if its caller holds a mutex that a callback may take,
 * lockdep reports it, before a deadlock. The callback only calls might_lock().
 *
 * A report switches lockdep off for good. So the test provokes the report silently, while no
 * other CPU and no interrupt takes a lock, and switches lockdep on again.
 *
 * hwt-test: only debug debug612 rtdebug
 */
#include <linux/debug_locks.h>
#include <linux/mutex.h>
#include <linux/smp.h>

#include "hwt_ktest.h"

static atomic_t parked;
static bool unparked;

/* Park a CPU. lockdep holds its own lock with interrupts off only, so not on a parked CPU. */
static void park(void *unused)
{
	atomic_inc(&parked);
	while (!READ_ONCE(unparked))
		cpu_relax();
}

/* Return true if lockdep would report that the mutex is taken here. */
static bool reported(struct mutex *mutex)
{
	unsigned long flags;
	int was = debug_locks;
	bool found;

	preempt_disable();
	atomic_set(&parked, 0);
	WRITE_ONCE(unparked, false);
	smp_call_function(park, NULL, false);
	while (atomic_read(&parked) < num_online_cpus() - 1)
		cpu_relax();
	local_irq_save(flags);
	debug_locks_silent = 1;
	might_lock(mutex);
	found = !debug_locks;
	debug_locks = was;
	debug_locks_silent = 0;
	local_irq_restore(flags);
	WRITE_ONCE(unparked, true);
	preempt_enable();
	return found;
}

/* On the wheel of the timeout whose callback takes the mutex. */
static struct hwt_timeout other;

#define WAIT(name, call)						\
static void name(struct hwt_timeout *timeout)				\
{									\
	call;								\
}

WAIT(wait_wait, hwt_wait(timeout, U64_MAX))
/* Without workers, each callback of the shard delays that of @other. */
WAIT(wait_other, hwt_wait(&other, U64_MAX))
WAIT(wait_cancel, hwt_cancel_sync(timeout))
WAIT(wait_flush, hwt_wheel_flush(hwt_timeout_wheel(timeout)))
WAIT(wait_barrier, hwt_wheel_barrier(hwt_timeout_wheel(timeout)))
WAIT(wait_stop, hwt_wheel_stop(hwt_timeout_wheel(timeout), NULL, NULL))
WAIT(wait_destroy, hwt_wheel_destroy(hwt_timeout_wheel(timeout)))

static const struct way {
	const char	*name;
	void		(*wait)(struct hwt_timeout *timeout);
} ways[] = {
	{ "a function that does not wait", kt_nothing },
	{ "hwt_wait()", wait_wait },
	{ "hwt_wait() for another timeout", wait_other },
	{ "hwt_cancel_sync()", wait_cancel },
	{ "hwt_wheel_flush()", wait_flush },
	{ "hwt_wheel_barrier()", wait_barrier },
	{ "hwt_wheel_stop()", wait_stop },
	{ "hwt_wheel_destroy()", wait_destroy },
};

static struct {
	struct hwt_timeout	timeout;
	const struct way	*way;
	struct mutex		mutex;		/* held by the waiter */
	struct task_struct	*waiter;	/* the task that is about to wait */
	bool			inside, left, ended, reported;
} scene;

static int waiter_main(void *unused)
{
	mutex_lock(&scene.mutex);
	WRITE_ONCE(scene.waiter, current);
	scene.way->wait(&scene.timeout);
	WRITE_ONCE(scene.ended, true);
	mutex_unlock(&scene.mutex);
	return kt_thread_end(0);
}

/* Is the waiter asleep, or back? Before it sleeps, hwt has told lockdep that it will wait. */
static bool waits(void)
{
	struct task_struct *waiter = READ_ONCE(scene.waiter);

	return READ_ONCE(scene.ended) ||
	       (waiter && READ_ONCE(waiter->__state) & TASK_NORMAL);
}

static void callback(struct hwt_timeout *timeout)
{
	WRITE_ONCE(scene.inside, true);
	if (KT_WAIT(waits()))
		scene.reported = reported(&scene.mutex);
	/* Pairs with test_way(), which then sees @reported. */
	smp_store_release(&scene.left, true);
}

static const struct {
	const char		*name;
	struct hwt_timeout_ops	ops;
} callbacks[] = {
	{ "->expire", { .expire = callback } },
	{ "->cancelled", { .expire = kt_nothing, .cancelled = callback } },
	{ "->release", { .expire = kt_nothing, .release = callback } },
};

/* lockdep remembers dependencies, so each test has a mutex of a class of its own. */
static struct lock_class_key keys[ARRAY_SIZE(ways) * ARRAY_SIZE(callbacks)];

static void __init test_way(const struct way *way, unsigned int n)
{
	const struct hwt_timeout_ops *ops = &callbacks[n].ops;
	struct hwt_wheel *wheel = kt_wheel("lockdep");
	struct task_struct *thread;
	bool ok;

	memset(&scene, 0, sizeof(scene));
	scene.way = way;
	mutex_init(&scene.mutex);
	lockdep_set_class(&scene.mutex, &keys[(way - ways) * ARRAY_SIZE(callbacks) + n]);
	hwt_timeout_init(&scene.timeout, wheel, ops);
	hwt_timeout_init(&other, wheel, &kt_nothing_ops);
	hwt_schedule(&scene.timeout, ops->cancelled ? KT_HOUR : 0);
	if (ops->cancelled)
		hwt_cancel(&scene.timeout);
	ok = KT_WAIT(READ_ONCE(scene.inside));
	thread = kt_thread(waiter_main, NULL, 0);
	/* Pairs with callback(): the test sees @reported. */
	ok &= KT_WAIT(smp_load_acquire(&scene.left));
	kt_thread_stop(thread);
	KTEST(ok && scene.reported == (way->wait != kt_nothing) && debug_locks,
	      "%s with a mutex that %s takes: %sreported", way->name, callbacks[n].name,
	      scene.reported ? "" : "not ");
	if (way->wait != wait_destroy)
		hwt_wheel_destroy(wheel);
}

/* -- Wheels that are created and put under locks of callbacks --------------------- */

static DEFINE_MUTEX(creator_mutex);

static void lock_expire(struct hwt_timeout *timeout)
{
	mutex_lock(&creator_mutex);
	mutex_unlock(&creator_mutex);
}

static void put_release(struct hwt_timeout *timeout)
{
	hwt_wheel_put(hwt_timeout_wheel(timeout));
}

static const struct hwt_timeout_ops put_ops = { .expire = lock_expire, .release = put_release };

/*
 * A callback takes a mutex, under which another wheel is created, and the ->release puts the last
 * reference to its wheel: nothing waits in a circle.
 */
static void __init test_create(void)
{
	struct hwt_wheel_params params = { .name = "circle", .levels = 1 };
	struct hwt_wheel *shared = hwt_wheel_get_shared(&params), *created;
	static struct hwt_timeout timeout;

	mutex_lock(&creator_mutex);
	created = hwt_wheel_create(NULL);
	mutex_unlock(&creator_mutex);
	hwt_timeout_init(&timeout, shared, &put_ops);
	hwt_schedule(&timeout, 0);
	KTEST(KT_WAIT(!kt_count_threads("circle", true)) && debug_locks,
	      "a wheel is created under the mutex of a callback, whose ->release puts its wheel");
	KTEST(hwt_wheel_destroy(created) == 0, "the wheel is destroyed");
}

static void __init selftest(void)
{
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(ways); i++)
		for (n = 0; n < ARRAY_SIZE(callbacks); n++)
			/* hwt_wait() does not wait for releases. */
			if (ways[i].wait != wait_wait || !callbacks[n].ops.release)
				test_way(&ways[i], n);
	test_create();
}

KSTM_MODULE_LOADERS(test_lockdep);
