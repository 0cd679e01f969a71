// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Timers in a process, on the buckets of core/buckets.c
 *
 * A timer is linked for the first multiple of the granularity that is not before its deadline. A
 * call that sets a later deadline, or disarms the timer, only stores the deadline. When the cursor
 * reaches the time for which the timer was linked, its deadline decides whether the timer is due,
 * is linked again, or leaves the set.
 *
 * A set on the device has a timeout of the device for each timer, with the timer's address as its
 * key, armed for the time for which the timer would be linked in the process. When the event of the
 * timeout is taken, the timer is handled as if the cursor had reached that time. Until then it is
 * held: linked with LINKED_HELD, for a time that is later by @lag of struct set. If the cursor
 * reaches this later time, the device is late, or another process has moved or cancelled the
 * timeout, so the set asks the device. If the program has pushed the timer back since it was armed,
 * the program's deadline counts. A timer that the device refuses, because of a limit or for want of
 * memory, is linked as in a set in the process.
 */
#include "port.h"
#include "core/buckets.h"
#include "timers_device.h"

/* Four levels of 256 buckets: 52 days; later deadlines take rounds. */
#define SET_BITS	8
#define SET_LEVELS	4
#define NSEC_PER_MSEC	UINT64_C(1000000)
#define NSEC_PER_SEC	UINT64_C(1000000000)
#define GRANULARITY_MAX	(UINT64_C(1) << 40)
/* The latest time for which a timer is linked. Later ones are never reached. */
#define LINKED_MAX	((HWT_TICK_NEVER - 1) << LIBHWT_TICK_SHIFT)
/* Flags in @linked of a timer, below the tick: the device has a timeout for it, which is late. */
#define LINKED_HELD	UINT64_C(1)
#define LINKED_LATE	UINT64_C(2)
/* Events that are taken from the device at once. */
#define EVENTS		64

/**
 * struct set - a set of timers
 * @head:    the part that the inline functions use, and that the program knows
 * @buckets: the timers
 * @ready:   in a run, timers of one tick that are due, in order; else empty
 * @later:   in a run, timers that were set by its callbacks, and wait for the next run; else empty
 * @count:   number of timers linked
 * @held:    number of these that the device holds
 * @limit:   in a run, timers with this @order or a later one were set after its beginning
 * @mask:    the granularity, less 1
 * @max_run: maximum number of callbacks of a run
 * @clock:   the clock
 * @running: true in a run
 * @fd:      a timerfd, the descriptor of libhwt_timers_fd() in the process, or -1
 * @fd_ns:   the time for which @fd is armed; LIBHWT_NEVER: it is not
 * @poll_fd: on the device, the descriptor of libhwt_timers_fd(), or -1
 * @device:  the device; its context is NULL if the set is in the process
 * @lag:     more than an event of the device is normally late, a multiple of LIBHWT_TICK
 * @error:   the last error of @arm of struct hwtlib_device; 0: none
 * @owner:   the thread that uses the set
 */
struct set {
	struct libhwt_timers	head;
	struct hwt_buckets	buckets;
	struct list_head	ready;
	struct list_head	later;
	size_t			count;
	size_t			held;
	u64			limit;
	u64			mask;
	unsigned int		max_run;
	clockid_t		clock;
	bool			running;
	int			fd;
	u64			fd_ns;
	int			poll_fd;
	struct hwtlib_device	device;
	u64			lag;
	int			error;
#ifdef LIBHWT_DEBUG
	pthread_t		owner;
#endif
};

static struct set *set_of(struct libhwt_timers *timers)
{
	struct set *set = container_of(timers, struct set, head);

#ifdef LIBHWT_DEBUG
	if (!pthread_equal(set->owner, pthread_self())) {
		fprintf(stderr, "libhwt: a set of timers is used by another thread\n");
		abort();
	}
#endif
	return set;
}

static struct libhwt_timer *timer_at(struct list_head *node)
{
	return list_entry(node, struct libhwt_timer, link);
}

/* -- Time ------------------------------------------------------------------ */

static u64 set_clock(const struct set *set)
{
	struct timespec now;

	clock_gettime(set->clock, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + (u64)now.tv_nsec;
}

/*
 * Return the set's time. With a descriptor, the set does not learn when a turn ends, so its time is
 * that of the clock, except in a run.
 */
static u64 set_now(struct set *set)
{
	u64 now = set->head.now;

	if (now != LIBHWT_STALE)
		return now;
	now = set_clock(set);
	if (set->fd < 0 || set->running)
		set->head.now = now;
	return now;
}

static u64 time_add(u64 time, u64 more)
{
	return more < LIBHWT_NEVER - time ? time + more : LIBHWT_NEVER;
}

/* Return the time for which a timer of a deadline is linked. */
static u64 set_round(const struct set *set, u64 deadline)
{
	return deadline < LINKED_MAX - set->mask ? (deadline + set->mask) & ~set->mask : LINKED_MAX;
}

/* Return true if timers wait for a run, whatever the time; in a callback, perhaps in @ready. */
static bool set_run_due(const struct set *set)
{
	return !list_empty(&set->buckets.due) || !list_empty(&set->ready) ||
	       !list_empty(&set->later);
}

/* Return the time of the next run; 0 if timers wait for one, even if the clock was set back. */
static u64 set_next(struct set *set)
{
	u64 tick = hwt_buckets_next_tick(&set->buckets);

	if (set_run_due(set))
		return 0;
	return tick == HWT_TICK_NEVER ? LIBHWT_NEVER : tick << LIBHWT_TICK_SHIFT;
}

/* -- The descriptor ---------------------------------------------------------- */

#ifdef __linux__
/* Arm the descriptor for a time. @ns: LIBHWT_NEVER to disarm it */
static void set_fd_arm(struct set *set, u64 ns)
{
	struct itimerspec at;

	if (set->fd < 0 || ns == set->fd_ns)
		return;
	set->fd_ns = ns;
	memset(&at, 0, sizeof(at));
	if (ns != LIBHWT_NEVER) {
		/* A time of 0 would disarm it. In 32 bits, a late time wakes the loop in vain. */
		at.it_value.tv_sec = (time_t)min(ns / NSEC_PER_SEC,
						 sizeof(time_t) == 4 ? (u64)INT_MAX : LIBHWT_NEVER);
		at.it_value.tv_nsec = ns ? (long)(ns % NSEC_PER_SEC) : 1;
	}
	timerfd_settime(set->fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL);
}

/* After a run: clear the descriptor, and arm it for the next timer. */
static void set_fd_rearm(struct set *set)
{
	u64 expired;

	if (set->fd < 0)
		return;
	/* Fails if the timer has not expired (EAGAIN), or if the clock was set (ECANCELED). */
	if (read(set->fd, &expired, sizeof(expired)) > 0 || errno == ECANCELED)
		set->fd_ns = LIBHWT_NEVER;
	/* Also for what the device holds: if another process has cancelled it, no event comes. */
	set_fd_arm(set, set_next(set));
	set->head.now = LIBHWT_STALE;
}

/* Return a descriptor that is readable while that of the device or that of the process is. */
static int set_fd_both(struct set *set)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;

	memset(&event, 0, sizeof(event));
	event.events = EPOLLIN;
	if (fd >= 0 && (epoll_ctl(fd, EPOLL_CTL_ADD, set->device.fd(set->device.context), &event) ||
			epoll_ctl(fd, EPOLL_CTL_ADD, set->fd, &event))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Another program has mapped rings of the context, and gets its events: do not wait for them. */
static void set_fd_lost(struct set *set)
{
	if (set->poll_fd >= 0)
		epoll_ctl(set->poll_fd, EPOLL_CTL_DEL, set->device.fd(set->device.context), NULL);
}

int libhwt_timers_fd(struct libhwt_timers *timers)
{
	struct set *set = set_of(timers);

	if (set->fd < 0) {
		set->fd = timerfd_create(set->clock, TFD_CLOEXEC | TFD_NONBLOCK);
		if (set->fd < 0)
			return -errno;
		if (!set->running)
			set_fd_rearm(set);
	}
	if (!set->device.context)
		return set->fd;
	if (set->poll_fd < 0)
		set->poll_fd = set_fd_both(set);
	return set->poll_fd < 0 ? -errno : set->poll_fd;
}

static void set_fd_close(struct set *set)
{
	if (set->fd >= 0)
		close(set->fd);
	if (set->poll_fd >= 0)
		close(set->poll_fd);
}
#else
static void set_fd_arm(struct set *set, u64 ns)
{
	(void)set;
	(void)ns;
}

static void set_fd_rearm(struct set *set)
{
	(void)set;
}

static void set_fd_lost(struct set *set)
{
	(void)set;
}

int libhwt_timers_fd(struct libhwt_timers *timers)
{
	(void)timers;
	return -ENOTSUP;
}

static void set_fd_close(struct set *set)
{
	(void)set;
}
#endif

/* -- Timers ------------------------------------------------------------------ */

static u64 timer_key(const struct libhwt_timer *timer)
{
	return (uintptr_t)timer;
}

/* Put a timer that the device holds for a time, and that is in no list, into the buckets. */
static void set_insert_held(struct set *set, struct libhwt_timer *timer, u64 time)
{
	timer->linked = ((min(time, LINKED_MAX / 2) & ~(LIBHWT_TICK - 1)) + set->lag) | LINKED_HELD;
	set->held++;
	hwt_buckets_insert(&set->buckets, timer);
}

/* Take a timer out of its list. Return true if the device goes on to have a timeout for it. */
static inline bool set_remove(struct set *set, struct libhwt_timer *timer)
{
	hwt_buckets_remove(&set->buckets, timer);
	if (likely(!(timer->linked & LINKED_HELD)))
		return false;
	set->held--;
	timer->linked &= ~(LINKED_HELD | LINKED_LATE);
	return true;
}

/* A timer was linked: arm the descriptor for it. A run does so at its end. */
static inline void set_fd_linked(struct set *set, const struct libhwt_timer *timer)
{
	u64 time = timer->linked & ~(LIBHWT_TICK - 1);

	if (unlikely(set->fd >= 0) && !set->running && time < set->fd_ns)
		set_fd_arm(set, time);
}

/* Put a timer that is in no list into the buckets, for @linked. */
static inline void set_insert_own(struct set *set, struct libhwt_timer *timer)
{
	hwt_buckets_insert(&set->buckets, timer);
	set_fd_linked(set, timer);
}

/*
 * The same in a set on the device, which has a timeout for the timer unless the timer is due
 * already, or never. @held: the device has one for another time.
 */
static hwt_cold void set_insert_device(struct set *set, struct libhwt_timer *timer, bool held)
{
	int ret;

	if (timer->linked >> LIBHWT_TICK_SHIFT > set->buckets.cursor && !(timer->linked >> 63)) {
		ret = set->device.arm(set->device.context, timer_key(timer), timer->linked);
		if (ret >= 0) {
			set_insert_held(set, timer, timer->linked);
			set_fd_linked(set, timer);
			return;
		}
		set->error = ret;
	}
	if (held)
		set->device.cancel(set->device.context, timer_key(timer));
	set_insert_own(set, timer);
}

/* Put a timer that is in no list into the buckets. @held: the device has a timeout for it. */
static inline void set_insert(struct set *set, struct libhwt_timer *timer, u64 deadline, bool held)
{
	timer->linked = set_round(set, deadline);
	if (unlikely(set->device.context))
		set_insert_device(set, timer, held);
	else
		set_insert_own(set, timer);
}

/* Return the time for which a held timer was armed on the device, or at which it was found late. */
static u64 set_armed(const struct set *set, const struct libhwt_timer *timer)
{
	return (timer->linked & ~(LIBHWT_TICK - 1)) - set->lag;
}

/* Return the time for which a timer is linked, or for which the device has it; 0: it is late. */
static u64 set_linked(const struct set *set, const struct libhwt_timer *timer)
{
	if (likely(!(timer->linked & LINKED_HELD)))
		return timer->linked;
	return timer->linked & LINKED_LATE ? 0 : set_armed(set, timer);
}

/* Put a timer into the buckets for a deadline, or move it there. The caller stores the deadline. */
static inline void set_link(struct set *set, struct libhwt_timer *timer, u64 deadline)
{
	bool held = false;

	timer->order = set->head.order;
	set->head.order += LIBHWT_ORDER;
	if (hwt_linked(timer)) {
		/* Leave it where it is if that is not too late. */
		if (set_linked(set, timer) <= set_round(set, deadline))
			return;
		held = set_remove(set, timer);
		set->count--;
	}
	set->count++;
	set_insert(set, timer, deadline, held);
}

/* Let go of a timer that is in no list any more. */
static void set_let_go(struct set *set, struct libhwt_timer *timer)
{
	timer->linked = LIBHWT_NEVER;
	set->count--;
}

/* Take a timer that the device holds out of the set. */
static hwt_cold void set_stop_held(struct set *set, struct libhwt_timer *timer)
{
	set_remove(set, timer);
	set_let_go(set, timer);
	/* A set that is being freed has no device any more. */
	if (set->device.context)
		set->device.cancel(set->device.context, timer_key(timer));
}

/* Take a timer out of the set. */
static inline void set_stop(struct set *set, struct libhwt_timer *timer)
{
	if (unlikely(timer->linked & LINKED_HELD)) {
		set_stop_held(set, timer);
		return;
	}
	hwt_buckets_remove(&set->buckets, timer);
	set_let_go(set, timer);
}

void libhwt_timer_link(struct libhwt_timers *timers, struct libhwt_timer *timer,
		       uint64_t deadline_ns)
{
	set_link(set_of(timers), timer, deadline_ns);
	timer->deadline = deadline_ns;
}

void libhwt_timer_set_slow(struct libhwt_timers *timers, struct libhwt_timer *timer,
			   uint64_t delay_ns)
{
	libhwt_timer_set_at(timers, timer, time_add(set_now(set_of(timers)), delay_ns));
}

void libhwt_timer_set_slack(struct libhwt_timers *timers, struct libhwt_timer *timer,
			    uint64_t delay_ns, uint64_t slack_ns)
{
	u64 first = time_add(set_now(set_of(timers)), delay_ns);
	u64 tick = (first >> LIBHWT_TICK_SHIFT) + ((first & (LIBHWT_TICK - 1)) != 0);
	u64 last = time_add(first, slack_ns) >> LIBHWT_TICK_SHIFT;

	if (last > tick && last < HWT_TICK_NEVER)
		first = max(first, hwt_tick_relax(tick, last - tick) << LIBHWT_TICK_SHIFT);
	libhwt_timer_set_at(timers, timer, first);
}

void libhwt_timer_every(struct libhwt_timers *timers, struct libhwt_periodic *periodic,
			uint64_t first_ns, uint64_t period_ns)
{
	periodic->period_ns = max(period_ns, 1);
	periodic->overruns = 0;
	set_link(set_of(timers), &periodic->timer, first_ns);
	periodic->timer.deadline = first_ns;
	periodic->timer.order |= LIBHWT_PERIODIC;
}

void libhwt_timer_watch(struct libhwt_timers *timers, struct libhwt_timer *timer,
			const uint64_t *word)
{
	set_link(set_of(timers), timer, libhwt_word_read(word));
	timer->deadline = (uintptr_t)word;
	timer->order |= LIBHWT_WATCHED;
}

void libhwt_timer_stop(struct libhwt_timers *timers, struct libhwt_timer *timer)
{
	struct set *set = set_of(timers);

	if (hwt_linked(timer))
		set_stop(set, timer);
}

uint64_t libhwt_timer_remaining(struct libhwt_timers *timers, const struct libhwt_timer *timer)
{
	u64 deadline = libhwt_timer_deadline(timer), now = set_now(set_of(timers));

	if (deadline == LIBHWT_NEVER)
		return LIBHWT_NEVER;
	return deadline > now ? deadline - now : 0;
}

/* -- The device -------------------------------------------------------------- */

/* Return true if the program has pushed a held timer back, or disarmed it, since it was armed. */
static bool set_pushed(const struct set *set, const struct libhwt_timer *timer)
{
	/* The device's deadlines, which set_moved() stores, need not be those of ticks. */
	return libhwt_timer_deadline(timer) > set_armed(set, timer) + LIBHWT_TICK - 1;
}

/*
 * Another process has moved a held timer, or cancelled it (LIBHWT_NEVER): store the deadline,
 * unless the program's own counts, or a watched word has it.
 */
static void set_moved(const struct set *set, struct libhwt_timer *timer, u64 deadline)
{
	if (!set_pushed(set, timer) &&
	    (!(timer->order & LIBHWT_WATCHED) || deadline == LIBHWT_NEVER))
		timer->deadline = deadline;
}

/*
 * Ask the device for the deadline of a held timer: 0: it has an event, LIBHWT_NEVER: no timeout, or
 * an error. If another process has changed it, store it.
 */
static u64 set_ask(const struct set *set, struct libhwt_timer *timer)
{
	u64 linked = set_linked(set, timer), armed = set_armed(set, timer), deadline;
	int ret = set->device.get(set->device.context, timer_key(timer), &deadline);

	deadline = ret < 0 ? LIBHWT_NEVER : min(deadline, LIBHWT_NEVER - 1);
	/* The device rounds to its ticks. */
	if (ret == -ENOENT ||
	    (!ret && deadline && (deadline < linked || deadline > armed + set->lag)))
		set_moved(set, timer, deadline);
	return deadline;
}

/*
 * Take the events of the device: each timer goes to the due list. No function of the program runs
 * meanwhile, so the timers of all events are there.
 */
static hwt_cold void set_take(struct set *set)
{
	struct hwtlib_due due[EVENTS];
	int i, n;

	do {
		n = set->device.take(set->device.context, due, EVENTS);
		for (i = 0; i < n; i++) {
			struct libhwt_timer *timer = (struct libhwt_timer *)(uintptr_t)due[i].key;

			/* Ignore a timeout that another process has scheduled after its end. */
			if (!hwt_linked(timer) || !(timer->linked & LINKED_HELD))
				continue;
			if (due[i].deadline < set_linked(set, timer))
				set_moved(set, timer, due[i].deadline);
			set_remove(set, timer);
			list_add_tail(&timer->link, &set->buckets.due);
		}
	} while (n == EVENTS);
	/* After a signal, the descriptor is still readable, and the next run takes the events. */
	if (n < 0 && n != -EINTR)
		set_fd_lost(set);
}

/* A held timer has no event yet. Hold it again, and return true, if the device has its timeout. */
static hwt_cold bool set_hold(struct set *set, struct libhwt_timer *timer)
{
	u64 now = (set->buckets.cursor + 1) << LIBHWT_TICK_SHIFT;
	bool pushed = set_pushed(set, timer);
	u64 deadline = set_ask(set, timer);

	set->held--;
	timer->linked &= ~(LINKED_HELD | LINKED_LATE);
	if (deadline == LIBHWT_NEVER) {
		/* After another error than -ENOENT: no event must come for a freed timer. */
		set->device.cancel(set->device.context, timer_key(timer));
		return false;
	}
	if (deadline <= now) {
		set_insert_held(set, timer, now);
		timer->linked |= LINKED_LATE;
	} else if (pushed && libhwt_timer_deadline(timer) < deadline) {
		set_insert(set, timer, libhwt_timer_deadline(timer), true);
	} else {
		set_insert_held(set, timer, deadline);
	}
	return true;
}

/* -- Runs -------------------------------------------------------------------- */

/*
 * Decide about a timer that was taken out of its list, at the tick of the cursor. Return true if it
 * is due now; else it is let go, linked again, or waits for the next run.
 */
static bool set_due(struct set *set, struct libhwt_timer *timer)
{
	u64 deadline;

	if (unlikely(timer->linked & LINKED_HELD) && set_hold(set, timer))
		return false;
	deadline = libhwt_timer_deadline(timer);
	if (deadline == LIBHWT_NEVER) {
		set_let_go(set, timer);
		return false;
	}
	if (set_round(set, deadline) >> LIBHWT_TICK_SHIFT > set->buckets.cursor) {
		set_insert(set, timer, deadline, false);
		return false;
	}
	if (timer->order >= set->limit) {
		list_add_tail(&timer->link, &set->later);
		return false;
	}
	return true;
}

/* Return true if a timer is to fire before another, or has the same deadline and was set before. */
static bool timer_before(const struct list_head *a, const struct list_head *b)
{
	const struct libhwt_timer *one = list_entry(a, const struct libhwt_timer, link);
	const struct libhwt_timer *two = list_entry(b, const struct libhwt_timer, link);
	u64 first = libhwt_timer_deadline(one), second = libhwt_timer_deadline(two);

	return first < second || (first == second && one->order < two->order);
}

/* Merge two sorted chains, linked by @next and ended by NULL. */
static struct list_head *chain_merge(struct list_head *a, struct list_head *b)
{
	struct list_head *first = NULL, **end = &first;

	while (a && b) {
		struct list_head **from = timer_before(b, a) ? &b : &a;

		*end = *from;
		end = &(*from)->next;
		*from = (*from)->next;
	}
	*end = a ? a : b;
	return first;
}

/*
 * Sort @ready, bottom up: chain[n] has 2^n timers, or none. The deadline of a watched timer may
 * change meanwhile, which makes the order wrong, but the list complete.
 */
static void ready_sort(struct list_head *ready)
{
	struct list_head *chain[8 * sizeof(size_t)], *node = ready->next, *next, *sorted = NULL;
	unsigned int n, top = 0;

	ready->prev->next = NULL;
	for (; node; node = next) {
		next = node->next;
		node->next = NULL;
		for (n = 0; n < top && chain[n]; n++) {
			node = chain_merge(chain[n], node);
			chain[n] = NULL;
		}
		if (n == top)
			top++;
		chain[n] = node;
	}
	for (n = 0; n < top; n++)
		sorted = chain_merge(chain[n], sorted);
	INIT_LIST_HEAD(ready);
	for (; sorted; sorted = next) {
		next = sorted->next;
		list_add_tail(sorted, ready);
	}
}

/*
 * Move the timers of the due list that are due to @ready, in order. Take them from both ends in
 * turn, and prefetch the next one: those from the end go to @back, which then follows @ready.
 */
static void set_gather(struct set *set)
{
	struct list_head *due = &set->buckets.due, *ready = &set->ready, back;
	struct list_head *last, *node;
	bool from_end = false;

	INIT_LIST_HEAD(&back);
	while (!list_empty(due)) {
		struct libhwt_timer *timer = timer_at(from_end ? due->prev : due->next);

		prefetchw(from_end ? due->next->next : due->prev->prev);
		hwt_buckets_take_due(timer);
		/* Before the first of @back, or after the last of @ready. */
		if (set_due(set, timer))
			list_add_tail(&timer->link, from_end ? back.next : ready);
		from_end = !from_end;
	}
	list_splice_tail_init(&back, ready);
	last = ready->next;
	for (node = last->next; last != ready && node != ready; last = node, node = node->next)
		if (timer_before(node, last)) {
			ready_sort(ready);
			return;
		}
}

/* Before the callback of a timer, which may free it: let go of it, or begin its next period. */
static void set_begin(struct set *set, struct libhwt_timer *timer, u64 now)
{
	struct libhwt_periodic *periodic = container_of(timer, struct libhwt_periodic, timer);

	if (!(timer->order & LIBHWT_PERIODIC)) {
		set_let_go(set, timer);
		return;
	}
	periodic->overruns = (now - timer->deadline) / periodic->period_ns;
	timer->deadline = time_add(timer->deadline + periodic->overruns * periodic->period_ns,
				   periodic->period_ns);
	timer->order = set->head.order | LIBHWT_PERIODIC;
	set->head.order += LIBHWT_ORDER;
	set_insert(set, timer, timer->deadline, false);
}

/* Call back the timers of @ready, up to @max. Return their number. */
static unsigned int set_fire(struct set *set, u64 now, unsigned int max)
{
	struct list_head *ready = &set->ready;
	unsigned int n = 0;

	while (n < max && !list_empty(ready)) {
		struct libhwt_timer *timer = timer_at(ready->next);

		prefetchw(ready->next->next);
		hwt_buckets_take_due(timer);
		if (!set_due(set, timer))
			continue;
		set_begin(set, timer, now);
		n++;
		timer->fn(timer);
	}
	return n;
}

unsigned int libhwt_timers_run_at(struct libhwt_timers *timers, uint64_t now_ns)
{
	struct set *set = set_of(timers);
	struct hwt_buckets *buckets = &set->buckets;
	u64 tick = now_ns >> LIBHWT_TICK_SHIFT;
	unsigned int n = 0;

	if (set->running)
		return 0;
	set->running = true;
	set->head.now = now_ns;
	set->limit = set->head.order;
	if (tick < buckets->cursor)
		hwt_buckets_rebase(buckets, tick);
	if (set->device.context) {
		while (!hwt_buckets_advance(buckets, tick, UINT_MAX, false))
			;
		set_take(set);
	}
	do {
		while (!hwt_buckets_advance(buckets, tick, UINT_MAX, true))
			;
		set_gather(set);
		n += set_fire(set, now_ns, set->max_run - n);
	} while (n < set->max_run && (buckets->cursor < tick || !list_empty(&buckets->due)));
	list_splice_init(&set->ready, &buckets->due);
	list_splice_tail_init(&set->later, &buckets->due);
	set->running = false;
	set_fd_rearm(set);
	return n;
}

unsigned int libhwt_timers_run(struct libhwt_timers *timers)
{
	return libhwt_timers_run_at(timers, set_clock(set_of(timers)));
}

/* -- Sets -------------------------------------------------------------------- */

uint64_t libhwt_timers_next(struct libhwt_timers *timers)
{
	struct set *set = set_of(timers);

	return set_run_due(set) ? set->buckets.cursor << LIBHWT_TICK_SHIFT : set_next(set);
}

static u64 set_wait(struct set *set, u64 now)
{
	u64 next = set_next(set);

	if (next == LIBHWT_NEVER)
		return LIBHWT_NEVER;
	return next > now ? next - now : 0;
}

uint64_t libhwt_timers_wait_ns(struct libhwt_timers *timers)
{
	struct set *set = set_of(timers);

	return set_wait(set, set_now(set));
}

int libhwt_timers_wait_ms(struct libhwt_timers *timers)
{
	struct set *set = set_of(timers);
	u64 ns = set_wait(set, set_clock(set));

	set->head.now = LIBHWT_STALE;
	if (ns == LIBHWT_NEVER)
		return -1;
	return (int)min((ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, INT_MAX);
}

uint64_t libhwt_timers_now(struct libhwt_timers *timers)
{
	return set_now(set_of(timers));
}

uint64_t libhwt_timers_update(struct libhwt_timers *timers)
{
	struct set *set = set_of(timers);

	set->head.now = LIBHWT_STALE;
	return set_now(set);
}

size_t libhwt_timers_count(const struct libhwt_timers *timers)
{
	return container_of(timers, const struct set, head)->count;
}

/* The argument of a function that set_each() calls */
struct each {
	struct set	*set;
	void		(*fn)(struct libhwt_timer *timer, void *arg);
	void		*arg;
};

static void each_pending(struct libhwt_timer *timer, void *arg)
{
	struct each *each = (struct each *)arg;

	if (timer->deadline != LIBHWT_NEVER)
		each->fn(timer, each->arg);
}

static void list_each(struct list_head *list, void (*fn)(struct libhwt_timer *timer, void *arg),
		      void *arg)
{
	struct list_head *node, *next;

	for (node = list->next; node != list; node = next) {
		next = node->next;
		fn(timer_at(node), arg);
	}
}

/* Call a function for all timers, disarmed ones included. It may stop the timer passed to it. */
static void set_each(struct set *set, void (*fn)(struct libhwt_timer *timer, void *arg), void *arg)
{
	list_each(&set->ready, fn, arg);
	list_each(&set->later, fn, arg);
	hwt_buckets_for_each(&set->buckets, fn, arg);
}

void libhwt_timers_for_each(struct libhwt_timers *timers,
			    void (*fn)(struct libhwt_timer *timer, void *arg), void *arg)
{
	struct each each = { set_of(timers), fn, arg };

	set_each(each.set, each_pending, &each);
}

static void each_stop(struct libhwt_timer *timer, void *arg)
{
	libhwt_timer_stop((struct libhwt_timers *)arg, timer);
}

void libhwt_timers_stop_all(struct libhwt_timers *timers)
{
	set_each(set_of(timers), each_stop, timers);
}

static void each_move(struct libhwt_timer *timer, void *arg)
{
	struct each *each = (struct each *)arg;
	struct set *to = (struct set *)each->arg;
	u64 deadline, order = timer->order;

	if (timer->linked & LINKED_HELD)
		set_ask(each->set, timer);
	deadline = libhwt_timer_deadline(timer);
	set_stop(each->set, timer);
	if (deadline == LIBHWT_NEVER)
		return;
	to->count++;
	set_insert(to, timer, deadline, false);
	/* Later calls on @to get higher numbers than all timers in it. */
	to->head.order = max(to->head.order, (order & ~(u64)(LIBHWT_ORDER - 1)) + LIBHWT_ORDER);
}

void libhwt_timers_move_all(struct libhwt_timers *from, struct libhwt_timers *to)
{
	struct each each = { container_of(from, struct set, head), NULL, set_of(to) };

	set_each(each.set, each_move, &each);
	set_fd_rearm(each.set);
}

void libhwt_timers_adopt(struct libhwt_timers *timers)
{
#ifdef LIBHWT_DEBUG
	container_of(timers, struct set, head)->owner = pthread_self();
#else
	(void)timers;
#endif
}

struct libhwt *libhwt_timers_context(const struct libhwt_timers *timers)
{
	return container_of(timers, const struct set, head)->device.context;
}

int libhwt_timers_error(struct libhwt_timers *timers)
{
	struct set *set = set_of(timers);
	int error = set->error;

	set->error = 0;
	return error;
}

/* Return the mask of a granularity, which is rounded up to a power of two. */
static u64 granularity_mask(u64 ns)
{
	u64 granularity = LIBHWT_TICK;

	while (granularity < ns)
		granularity <<= 1;
	return granularity - 1;
}

struct libhwt_timers *libhwt_timers_new(const struct libhwt_timers_options *options)
{
	static const clockid_t clocks[] = {
		CLOCK_MONOTONIC,
#ifdef CLOCK_BOOTTIME
		CLOCK_BOOTTIME,
#else
		CLOCK_MONOTONIC,
#endif
		CLOCK_REALTIME,
	};
	const unsigned int where = LIBHWT_DEVICE | LIBHWT_ANY;
	struct libhwt_timers_options all;
	struct set *set;
	int ret;

	memset(&all, 0, sizeof(all));
	if (options)
		all = *options;
	if ((options && all.size != sizeof(all)) || (all.flags & where) == where ||
	    (all.flags & ~where) > LIBHWT_TIMERS_REALTIME || all.granularity_ns > GRANULARITY_MAX) {
		errno = EINVAL;
		return NULL;
	}
	set = (struct set *)malloc(sizeof(*set) + hwt_buckets_size(SET_BITS, SET_LEVELS));
	if (!set) {
		errno = ENOMEM;
		return NULL;
	}
	memset(set, 0, sizeof(*set));
	set->clock = clocks[all.flags & ~where];
	set->mask = granularity_mask(all.granularity_ns);
	set->max_run = all.max_run ? all.max_run : UINT_MAX;
	set->fd = -1;
	set->fd_ns = LIBHWT_NEVER;
	set->poll_fd = -1;
	if (all.flags & where) {
		ret = hwtlib_device_open(&set->device, set->clock);
		if (ret && (all.flags & LIBHWT_DEVICE)) {
			free(set);
			errno = -ret;
			return NULL;
		}
		set->lag = (set->device.tick_ns / LIBHWT_TICK + 2) << LIBHWT_TICK_SHIFT;
	}
	set->head.now = LIBHWT_STALE;
	INIT_LIST_HEAD(&set->ready);
	INIT_LIST_HEAD(&set->later);
	libhwt_timers_adopt(&set->head);
	hwt_buckets_init(&set->buckets, SET_BITS, SET_LEVELS, set_clock(set) >> LIBHWT_TICK_SHIFT,
			 set + 1);
	return &set->head;
}

void libhwt_timers_free(struct libhwt_timers *timers)
{
	struct set *set;

	if (!timers)
		return;
	set = set_of(timers);
	/* A child of fork() must not cancel what the device has for its parent. */
	if (set->device.context)
		set->device.close(set->device.context);
	set->device.context = NULL;
	libhwt_timers_stop_all(timers);
	set_fd_close(set);
	free(set);
}
