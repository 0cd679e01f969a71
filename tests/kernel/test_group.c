// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups: counting, cancelling and shutting down all members, waiting for their callbacks, and
 * freeing them afterwards, or meanwhile if they have reference counts.
 *
 * hwt-test: shared
 * hwt-test: timeout 120
 */
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/slab.h>

#include "hwt_ktest.h"
#include "hwt_ktest_compat.h"
#include "hwt_ktest_probe.h"

/* The first wheel runs callbacks on its own thread, the second on workers. */
static struct hwt_wheel *wheels[2];

/* True while no callback of the group may begin, and the number of callbacks that did. */
static bool over;
static atomic_t after;

/* -- Members that record their callbacks ---------------------------------- */

struct item {
	struct kt		kt;
	struct hwt_member	member;
};

static void item_expire(struct hwt_timeout *timeout)
{
	atomic_add(READ_ONCE(over), &after);
	kt_expire(timeout);
}

static const struct hwt_timeout_ops item_ops = {
	.expire = item_expire, .cancelled = kt_cancelled, .release = kt_release,
};

static const struct hwt_timeout_ops item_plain_ops = { .expire = item_expire };

static void __init item_join(struct item *item, struct hwt_group *group,
			     struct hwt_wheel *wheel, const struct hwt_timeout_ops *ops)
{
	kt_init(&item->kt, wheel, ops);
	hwt_group_join(group, &item->member, &item->kt.timeout);
}

/* Create a group of @n members, on the two wheels in turn. */
static struct item * __init items_make(struct hwt_group *group, unsigned int n,
				       const struct hwt_timeout_ops *ops)
{
	struct item *items = kt_alloc(n, sizeof(*items));
	unsigned int i;

	hwt_group_init(group, NULL, NULL);
	for (i = 0; i < n; i++)
		item_join(&items[i], group, wheels[i % 2], ops);
	return items;
}

static void __init items_schedule(struct item *items, unsigned int n, u64 delay_ns,
				  u64 more_ns)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		hwt_schedule(&items[i].kt.timeout, delay_ns + i * more_ns);
}

static struct {
	unsigned int expired, cancelled, released, held;
} sum;

static void __init items_sum(const struct item *items, unsigned int n)
{
	unsigned int i;

	memset(&sum, 0, sizeof(sum));
	for (i = 0; i < n; i++) {
		sum.expired += kt_expirations(&items[i].kt);
		sum.cancelled += atomic_read(&items[i].kt.cancelled);
		sum.released += kt_releases(&items[i].kt);
		sum.held += hwt_held(&items[i].kt.timeout);
	}
}

static unsigned int __init items_released(const struct item *items, unsigned int n)
{
	items_sum(items, n);
	return sum.released;
}

/* -- Counting and cancelling ----------------------------------------------- */

static void __init test_counts(void)
{
	enum { N = 600 };	/* more than one step of a walk */
	struct hwt_periodic beat;
	struct hwt_member member;
	struct hwt_group group;
	struct item *items = items_make(&group, N, &item_ops);
	int i, odd;

	KTEST(hwt_group_pending(&group) == 0, "of %d idle timeouts none is pending", N);
	KTEST(hwt_group_cancel(&group) == 0 && hwt_group_cancel_sync(&group) == 0,
	      "none is cancelled");
	for (i = 0; i < N; i++)
		if (i % 3)
			hwt_schedule(&items[i].kt.timeout, i % 2 ? KT_HOUR : U64_MAX);
	KTEST(hwt_group_pending(&group) == 400, "400 are scheduled, on two wheels");
	KTEST(hwt_wheel_pending(wheels[0]) + hwt_wheel_pending(wheels[1]) == 400,
	      "the counts of the wheels agree");
	for (i = 0; i < 30; i++)
		hwt_cancel(&items[i].kt.timeout);
	KTEST(hwt_group_pending(&group) == 380, "20 of them are cancelled: 380");
	for (i = 30; i < 60; i++)
		hwt_group_leave(&group, &items[i].member);
	KTEST(hwt_group_pending(&group) == 360, "20 pending members leave: 360");
	for (i = 60; i < 90; i++)
		hwt_schedule(&items[i].kt.timeout, 0);
	for (i = 60, odd = 0; i < 90; i++)
		odd += !KT_WAIT(kt_releases(&items[i].kt) == 1);
	KTEST(odd == 0 && hwt_group_pending(&group) == 340, "20 pending, 10 idle ones fire: 340");
	for (i = 30; i < 60; i++)
		hwt_group_join(&group, &items[i].member, &items[i].kt.timeout);
	KTEST(hwt_group_pending(&group) == 360, "members that left join again: 360");

	hwt_periodic_init(&beat, wheels[1], &kt_nothing_ops);
	hwt_schedule_periodic(&beat, 0, KT_MS, HWT_MODE_FIXED_RATE);
	hwt_group_join(&group, &member, &beat.timeout);
	KTEST(KT_WAIT(hwt_expired(&beat.timeout)) && hwt_group_pending(&group) == 361,
	      "a periodic timeout counts once: 361");

	KTEST(hwt_group_cancel(&group) == 361, "all 361 are cancelled");
	KTEST(hwt_group_pending(&group) == 0 && hwt_group_cancel(&group) == 0,
	      "none is pending any more");
	KTEST(KT_WAIT(items_released(items, N) == 410), "all holds have ended");
	items_sum(items, N);
	KTEST(sum.expired == 30 && sum.cancelled == 380, "no more members have fired");
	for (i = 0, odd = 0; i < N; i += 3)
		odd += hwt_cancelled(&items[i].kt.timeout);
	KTEST(odd == 0, "the idle members are not cancelled");
	KTEST(hwt_group_cancel_sync(&group) == 0 && !hwt_held(&beat.timeout),
	      "the hold of the periodic timeout has ended");
	hwt_group_leave(&group, &member);

	for (i = 0; i < N; i++)
		hwt_group_leave(&group, &items[i].member);
	items_schedule(items, N, KT_HOUR, 0);
	KTEST(hwt_group_pending(&group) == 0 && hwt_group_cancel(&group) == 0 &&
	      hwt_group_shutdown_sync(&group) == 0,
	      "an empty group has no pending member, and cancels none");
	for (i = 0, odd = 0; i < N; i++)
		odd += hwt_shutdown_sync(&items[i].kt.timeout) != 1;
	KTEST(odd == 0, "timeouts that have left stay scheduled");
	vfree(items);
}

/* -- Waiting ---------------------------------------------------------------- */

static void __init test_sync(const char *what, u64 (*sync)(struct hwt_group *group),
			     const struct hwt_timeout_ops *ops)
{
	int round, i, odd = 0, unbalanced = 0, held = 0, hits;
	bool shutdown = sync == hwt_group_shutdown_sync;
	enum { N = 300 };
	struct hwt_group group;
	struct item *items;

	atomic_set(&after, 0);
	for (round = 0; round < 10; round++) {
		items = items_make(&group, N, ops);
		items_schedule(items, N, 0, round * (KT_MS / 100));
		hits = sync(&group);
		WRITE_ONCE(over, true);
		items_sum(items, N);
		held += sum.held + hwt_group_pending(&group);
		unbalanced += sum.expired + hits != N ||
			      (ops->release && (sum.released != N || sum.cancelled != hits));
		odd += sync(&group) != 0;
		for (i = 0; i < N && shutdown; i++)
			odd += hwt_schedule(&items[i].kt.timeout, 0) != -ESHUTDOWN;
		WRITE_ONCE(over, false);
		if (!shutdown) {
			items_schedule(items, N, KT_HOUR, 0);
			odd += sync(&group) != N;
		}
		/* Free the memory: no timeout may be used after the sync. */
		vfree(items);
	}
	msleep(50);
	KTEST(held == 0, "%s: none is held on return", what);
	KTEST(unbalanced == 0, "%s: each timeout has fired or was cancelled", what);
	KTEST(odd == 0, "%s: the results of repeated calls and of later schedules", what);
	KTEST(atomic_read(&after) == 0, "%s: none fires after it", what);
}

static struct kt_stay sleeper;

static u64 (*sync_group)(struct hwt_group *group);

/* Return -EBADE if the call did not wait for the sleeper. */
static long do_sync(void *group)
{
	long ret = sync_group(group);

	return kt_expirations(&sleeper.kt) == 1 && kt_releases(&sleeper.kt) == 1 ? ret : -EBADE;
}

static void __init test_running(const char *what, u64 (*sync)(struct hwt_group *group))
{
	struct kt_call calls[2];
	long ret[2];
	enum { N = 600 };	/* more than one step of a walk */
	struct hwt_member member;
	struct hwt_group group;
	struct item *items;
	int i, expired;

	sync_group = sync;
	hwt_group_init(&group, NULL, NULL);
	kt_stay_init(&sleeper, wheels[0], &kt_stay_ops);
	hwt_group_join(&group, &member, &sleeper.kt.timeout);
	hwt_schedule(&sleeper.kt.timeout, 0);
	KTEST(KT_WAIT(kt_inside(&sleeper)), "%s: the first member's callback sleeps", what);
	items = kt_alloc(N, sizeof(*items));
	for (i = 0; i < N; i++)
		item_join(&items[i], &group, wheels[1], &item_ops);
	items_schedule(items, N, 20 * KT_MS, KT_MS);
	for (i = 0; i < 2; i++)
		kt_call_begin(&calls[i], do_sync, &group);
	KTEST(KT_WAIT(hwt_group_pending(&group) == 0),
	      "%s: the other members are cancelled at once", what);
	/* A callback may have begun before the cancel. */
	msleep(20);
	items_sum(items, N);
	expired = sum.expired;
	msleep(100);
	items_sum(items, N);
	KTEST(sum.expired == expired, "%s: they do not fire while it sleeps", what);
	KTEST(kt_inside(&sleeper) && !kt_call_done(&calls[0]) && !kt_call_done(&calls[1]),
	      "%s: two calls wait for it", what);
	complete_all(&sleeper.out);
	for (i = 0; i < 2; i++)
		ret[i] = kt_call_end(&calls[i]);
	KTEST(ret[0] >= 0 && ret[1] >= 0, "%s: they return after its release", what);
	items_sum(items, N);
	KTEST(ret[0] + ret[1] + sum.expired == N && sum.held == 0 && sum.released == N,
	      "%s: together they have cancelled %ld", what, ret[0] + ret[1]);
	vfree(items);
}

/* -- Threads and callbacks that keep scheduling ----------------------------- */

enum { STUBBORN = 64 };

static struct item *stubborn;

static int stubborn_thread(void *arg)
{
	bool dead[STUBBORN] = { };
	unsigned int n = 0, revived = 0;
	int ret;

	while (!kthread_should_stop()) {
		ret = hwt_schedule(&stubborn[n % STUBBORN].kt.timeout, n % 3 * (KT_MS / 2));
		if (ret == -ESHUTDOWN)
			dead[n % STUBBORN] = true;
		else
			revived += dead[n % STUBBORN];
		if (n++ % 512 == 0)
			usleep_range(50, 100);
	}
	return revived;
}

static void stubborn_expire(struct hwt_timeout *timeout)
{
	hwt_schedule(timeout, 0);
	item_expire(timeout);
}

static const struct hwt_timeout_ops stubborn_ops = {
	.expire = stubborn_expire, .cancelled = kt_cancelled, .release = kt_release,
};

static void __init test_stubborn(void)
{
	int round, rounds = kt_quick() ? 3 : 10, i, odd = 0, before;
	struct task_struct *thread[2];
	struct hwt_group group;

	atomic_set(&after, 0);
	for (round = 0; round < rounds; round++) {
		stubborn = items_make(&group, STUBBORN, &stubborn_ops);
		thread[0] = kt_thread(stubborn_thread, NULL, 0);
		thread[1] = kt_thread(stubborn_thread, NULL, 1);
		odd += !KT_WAIT(kt_expirations(&stubborn[STUBBORN - 1].kt) > 3);
		/* Timeouts may be scheduled again after this cancel, but must not be lost. */
		hwt_group_cancel(&group);
		hwt_group_shutdown_sync(&group);
		WRITE_ONCE(over, true);
		items_sum(stubborn, STUBBORN);
		before = sum.expired;
		odd += sum.held || hwt_group_pending(&group);
		usleep_range(5000, 6000);
		items_sum(stubborn, STUBBORN);
		odd += sum.expired != before || sum.held;
		for (i = 0; i < 2; i++)
			odd += kt_thread_stop(thread[i]) != 0;
		vfree(stubborn);
		WRITE_ONCE(over, false);
	}
	KTEST(odd == 0 && atomic_read(&after) == 0,
	      "shutdown_sync ends what two threads and the callbacks keep scheduling, %d times",
	      rounds);
}

/* -- Objects with references ------------------------------------------------ */

/* An object that is open until its timeout fires or is cancelled. */
struct object {
	struct kref		ref;		/* one reference while open, one for the hold */
	struct hwt_timeout	timeout;
	struct hwt_member	member;
};

static struct hwt_group objects;
static atomic_t made, freed, closed;

static struct object *object_of(struct hwt_timeout *timeout)
{
	return container_of(timeout, struct object, timeout);
}

static void object_free(struct kref *ref)
{
	struct object *object = container_of(ref, struct object, ref);

	hwt_group_leave(&objects, &object->member);
	atomic_inc(&freed);
	kfree(object);
}

static bool object_get(struct hwt_timeout *timeout)
{
	return kref_get_unless_zero(&object_of(timeout)->ref);
}

static void object_put(struct hwt_timeout *timeout)
{
	kref_put(&object_of(timeout)->ref, object_free);
}

static void object_close(struct hwt_timeout *timeout)
{
	atomic_add(READ_ONCE(over), &after);
	atomic_inc(&closed);
	object_put(timeout);
}

static const struct hwt_timeout_ops object_ops = {
	.expire = object_close, .cancelled = object_close, .release = object_put,
};

static void object_make(unsigned int n)
{
	struct object *object = kmalloc(sizeof(*object), GFP_KERNEL | __GFP_NOFAIL);
	int ret;

	atomic_inc(&made);
	kref_init(&object->ref);
	hwt_timeout_init(&object->timeout, wheels[n % 2], &object_ops);
	hwt_group_join(&objects, &object->member, &object->timeout);
	kref_get(&object->ref);
	ret = hwt_schedule(&object->timeout, n % 8 ? n % 8 * KT_MS : KT_HOUR);
	if (ret < 0) {
		/* The group is shut down already. */
		object_put(&object->timeout);
		object_close(&object->timeout);
	}
}

static int object_thread(void *arg)
{
	unsigned int n = 0;

	while (!kthread_should_stop()) {
		object_make(n);
		if (++n % 64 == 0)
			usleep_range(500, 1000);
	}
	return 0;
}

static void __init test_references(void)
{
	unsigned long end = jiffies + (kt_quick() ? 1 : 3) * HZ;
	struct task_struct *thread[2];
	int round = 0, i;
	u64 hits = 0;

	atomic_set(&after, 0);
	hwt_group_init(&objects, object_get, object_put);
	for (i = 0; i < 2; i++)
		thread[i] = kt_thread(object_thread, NULL, i);
	while (time_before(jiffies, end)) {
		switch (round++ % 4) {
		case 0:
			hits += hwt_group_cancel_sync(&objects);
			break;
		case 1:
			usleep_range(5000, 10000);
			hits += hwt_group_cancel(&objects);
			break;
		case 2:
			usleep_range(5000, 10000);
			hits += hwt_group_shutdown_sync(&objects);
			break;
		case 3:
			hwt_group_pending(&objects);
			break;
		}
	}
	for (i = 0; i < 2; i++)
		kt_thread_stop(thread[i]);
	hits += hwt_group_shutdown_sync(&objects);
	WRITE_ONCE(over, true);
	KTEST(hwt_group_pending(&objects) == 0, "objects: the last call leaves none pending");
	/* An object whose last reference is gone may yet have to be freed by another thread. */
	KTEST(KT_WAIT(atomic_read(&freed) == atomic_read(&made)),
	      "objects: %d created, %d freed", atomic_read(&made), atomic_read(&freed));
	KTEST(atomic_read(&closed) == atomic_read(&made) && atomic_read(&after) == 0,
	      "objects: each is closed once, none after the last call");
	KTEST(hits > 0 && hits < atomic_read(&made) && round > 3,
	      "objects: %llu cancelled in %d calls, all others have fired", hits, round);
	WRITE_ONCE(over, false);
}

/*
 * At first ->get fails, as if all members were being freed. Later, each ->put makes the member
 * leave and join again.
 */
static struct hwt_group puts_group;
static bool puts_gone;
static unsigned int puts;

static bool puts_get(struct hwt_timeout *timeout)
{
	return !puts_gone;
}

static void puts_put(struct hwt_timeout *timeout)
{
	struct item *item = container_of(timeout, struct item, kt.timeout);

	puts++;
	if (puts_gone || puts > 1000)
		return;
	hwt_group_leave(&puts_group, &item->member);
	hwt_group_join(&puts_group, &item->member, timeout);
}

static void __init test_puts(void)
{
	enum { N = 600 };	/* more than one step of a walk */
	struct item *items = items_make(&puts_group, N, &item_plain_ops);

	puts_group.get = puts_get;
	puts_group.put = puts_put;
	puts_gone = true;
	items_schedule(items, N, KT_HOUR, 0);
	KTEST(hwt_group_cancel_sync(&puts_group) == N && puts == 0,
	      "a reference that was not got is not put: %u puts", puts);
	puts_gone = false;
	puts = 0;
	items_schedule(items, N, KT_HOUR, 0);
	KTEST(hwt_group_cancel_sync(&puts_group) == N && puts == N,
	      "a call ends although members join meanwhile: %u puts", puts);
	puts = 1000;
	hwt_group_shutdown_sync(&puts_group);
	vfree(items);
}

/* -- Members that join and leave meanwhile ---------------------------------- */

enum { STAY = 500, MOVE = 50 };

static struct hwt_group moving;
static struct item mover[MOVE];
static bool joined[MOVE];
static struct hrtimer mover_timer;
static bool moving_ends;

/* One step in the life of a member. Only this function makes it join and leave. */
static void move(unsigned int n)
{
	struct item *item = &mover[n % MOVE];
	bool *in = &joined[n % MOVE];

	switch (n / MOVE % 4) {
	case 0:
		hwt_group_join(&moving, &item->member, &item->kt.timeout);
		*in = true;
		fallthrough;
	case 1:
		hwt_schedule(&item->kt.timeout, KT_HOUR + n);
		break;
	case 2:
		hwt_cancel(&item->kt.timeout);
		break;
	case 3:
		hwt_group_leave(&moving, &item->member);
		*in = false;
		break;
	}
}

static enum hrtimer_restart mover_interrupt(struct hrtimer *timer)
{
	static unsigned int n;
	int i;

	for (i = 0; i < 3; i++)
		move(n++);
	hrtimer_forward_now(timer, ns_to_ktime(KT_MS / 2));
	return READ_ONCE(moving_ends) ? HRTIMER_NORESTART : HRTIMER_RESTART;
}

static void __init test_moving(void)
{
	unsigned long end = jiffies + (kt_quick() ? 1 : 3) * HZ;
	struct item *items = items_make(&moving, STAY, &item_ops);
	int round = 0, odd = 0, hits = 0, i;
	u64 n;

	for (i = 0; i < MOVE; i++)
		kt_init(&mover[i].kt, wheels[i % 2], i % 4 < 2 ? &item_ops : &item_plain_ops);
	hrtimer_setup(&mover_timer, mover_interrupt, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	hrtimer_start(&mover_timer, ns_to_ktime(KT_MS), HRTIMER_MODE_REL_HARD);
	while (time_before(jiffies, end)) {
		items_schedule(items, STAY, KT_HOUR, 0);
		n = hwt_group_pending(&moving);
		odd += n < STAY || n > STAY + MOVE;
		switch (round++ % 3) {
		case 0:
			n = hwt_group_cancel(&moving);
			break;
		case 1:
			n = hwt_group_cancel_sync(&moving);
			items_sum(items, STAY);
			odd += sum.held;
			break;
		case 2:
			usleep_range(1000, 2000);
			n = hwt_group_cancel_sync(&moving);
			break;
		}
		/* There is no upper bound: a call may cancel a moving member twice. */
		odd += n < STAY;
		hits += n - STAY;
		for (i = 0; i < STAY; i++)
			odd += hwt_pending(&items[i].kt.timeout);
	}
	WRITE_ONCE(moving_ends, true);
	hrtimer_cancel(&mover_timer);
	KTEST(odd == 0 && round > 3, "members join and leave: %d calls cancel the others", round);
	for (i = 0; i < MOVE; i++) {
		if (joined[i])
			hwt_group_leave(&moving, &mover[i].member);
		hwt_shutdown_sync(&mover[i].kt.timeout);
	}
	KTEST(hits, "moving members were cancelled %d times", hits);
	KTEST(hwt_group_shutdown_sync(&moving) == 0 && hwt_group_pending(&moving) == 0,
	      "no member is left pending");
	vfree(items);
}

/* -- From a callback -------------------------------------------------------- */

static struct {
	struct item		item;
	struct hwt_group	group;
	u64			(*sync)(struct hwt_group *group);
	u64			ret;
	bool			pending, running;
} inside;

static void inside_expire(struct hwt_timeout *timeout)
{
		/* A callback may make its own timeout leave and join. */
	hwt_group_leave(&inside.group, &inside.item.member);
	hwt_group_join(&inside.group, &inside.item.member, timeout);
	inside.pending = hwt_group_pending(&inside.group);
	inside.ret = inside.sync(&inside.group);
	inside.running = hwt_running(timeout);
	kt_expire(timeout);
}

static const struct hwt_timeout_ops inside_ops = { .expire = inside_expire, .release = kt_release };

static void __init test_inside(const char *what, u64 (*sync)(struct hwt_group *group),
			       struct hwt_wheel *wheel)
{
	enum { N = 20 };
	struct item *items = items_make(&inside.group, N, &item_ops);
	int ret;

	inside.sync = sync;
	item_join(&inside.item, &inside.group, wheel, &inside_ops);
	items_schedule(items, N, KT_HOUR, 0);
	hwt_schedule(&inside.item.kt.timeout, 0);
	KTEST(KT_WAIT(kt_releases(&inside.item.kt) == 1), "%s: from a member's callback", what);
	items_sum(items, N);
	KTEST(inside.ret == N && inside.pending && inside.running && sum.held == 0 &&
	      sum.released == N && sum.cancelled == N,
	      "%s: it cancels all other members, and does not wait for itself", what);
	ret = hwt_schedule(&inside.item.kt.timeout, 0);
	if (sync == hwt_group_shutdown_sync)
		KTEST(ret == -ESHUTDOWN, "%s: its own timeout is shut down, too", what);
	else
		KTEST(ret == 0 && KT_WAIT(kt_releases(&inside.item.kt) == 2),
		      "%s: its own timeout can be scheduled again", what);
	hwt_group_shutdown_sync(&inside.group);
	KTEST(hwt_schedule(&inside.item.kt.timeout, 0) == -ESHUTDOWN,
	      "%s: a shutdown of the group from outside includes it", what);
	vfree(items);
}

/* -- No wheel, stopped wheel ------------------------------------------------ */

static struct kt nowhere = { .timeout = HWT_TIMEOUT_INIT(nowhere.timeout, &kt_ops) };

static void __init test_odd(void)
{
	struct hwt_wheel *wheel = kt_wheel("stopped");
	struct hwt_member member;
	struct hwt_group group;
	struct item item;

	hwt_group_init(&group, NULL, NULL);
	hwt_group_join(&group, &member, &nowhere.timeout);
	item_join(&item, &group, wheel, &item_ops);
	hwt_schedule(&item.kt.timeout, KT_HOUR);
	KTEST(hwt_group_pending(&group) == 1, "a timeout without a wheel is not pending");
	KTEST(hwt_wheel_stop(wheel, NULL, NULL) == 1 && hwt_group_pending(&group) == 0 &&
	      hwt_group_cancel(&group) == 0 && hwt_group_cancel_sync(&group) == 0 &&
	      hwt_group_shutdown_sync(&group) == 0, "after a stop of the wheel, none is cancelled");
	hwt_wheel_destroy(wheel);
}

/* -- Steps ------------------------------------------------------------------- */

#ifdef CONFIG_KPROBES
static struct task_struct *walker;
static struct irq_work unlocked;	/* runs as soon as interrupts are on again */
static unsigned int calls, most;	/* calls since then, and the most */

static void calls_end(struct irq_work *work)
{
	calls = 0;
}

static int calls_probe(struct kprobe *probe, struct pt_regs *regs)
{
	if (current == walker) {
		irq_work_queue(&unlocked);
		most = max(most, ++calls);
	}
	return 0;
}

static void __init test_steps(void)
{
	struct kprobe probe;
	struct hwt_group group;
	struct item *items = items_make(&group, 1000, &item_plain_ops);

	unlocked = IRQ_WORK_INIT_HARD(calls_end);
	items_schedule(items, 1000, KT_HOUR, 0);
	walker = current;
	if (kt_probe_entry(&probe, "hwt_cancel", calls_probe)) {
		hwt_group_cancel(&group);
		unregister_kprobe(&probe);
		KTEST(most > 1 && most <= 32, "at most %u are cancelled with interrupts off", most);
	}
	irq_work_sync(&unlocked);
	hwt_group_shutdown_sync(&group);
	vfree(items);
}
#else
static void __init test_steps(void) { }
#endif

static void __init selftest(void)
{
	wheels[0] = kt_wheel("group");
	wheels[1] = kt_wheel("group", .tick_ns = 2 * KT_MS, .levels = 2, .workers = 2);
	test_counts();
	test_steps();
	test_sync("cancel_sync", hwt_group_cancel_sync, &item_ops);
	test_sync("cancel_sync, no release", hwt_group_cancel_sync, &item_plain_ops);
	test_sync("shutdown_sync", hwt_group_shutdown_sync, &item_ops);
	test_sync("shutdown_sync, no release", hwt_group_shutdown_sync, &item_plain_ops);
	test_running("cancel_sync", hwt_group_cancel_sync);
	test_running("shutdown_sync", hwt_group_shutdown_sync);
	test_stubborn();
	test_references();
	test_puts();
	test_moving();
	test_inside("cancel_sync", hwt_group_cancel_sync, wheels[0]);
	test_inside("shutdown_sync", hwt_group_shutdown_sync, wheels[0]);
	test_inside("cancel_sync, on a worker", hwt_group_cancel_sync, wheels[1]);
	test_odd();
	KTEST(hwt_wheel_pending(wheels[0]) + hwt_wheel_pending(wheels[1]) == 0,
	      "no timeout is left pending");
	KTEST(hwt_wheel_destroy(wheels[0]) == 0 && hwt_wheel_destroy(wheels[1]) == 0,
	      "the wheels are destroyed");
}

KSTM_MODULE_LOADERS(test_group);
