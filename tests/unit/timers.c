// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of libhwt's timers, in virtual time, against a model: an array that is searched for each
 * callback. timers [seed [operations]]
 *
 * The model knows the deadline of each timer, and the number of the call that set it. At each
 * callback it must be the timer's turn: of all timers that are due by the clock and were set before
 * the run, it has the earliest deadline, and was set first of those. After a run none is left.
 * Half of the random sets are on a device, which is simulated here, and refuses some timers.
 *
 * Compiled with FUZZ, the operations come from libFuzzer.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "hwt_timers.h"
#include "tap.h"
#include "timers_device.h"

#define ITEMS		60
#define MS		UINT64_C(1000000)
#define SEC		(1000 * MS)
#define START		(1000 * SEC)

/* -- Random operations and their model ----------------------------------------- */

/* An object, which is allocated anew when it has been freed. */
struct item {
	struct libhwt_periodic	periodic;	/* its timer is the timer */
	uint64_t		word;		/* the deadline, if the timer watches it */
	unsigned int		index;
};

/* What the model knows of a timer. */
struct model {
	bool		pending, watched;
	uint64_t	deadline, period, order;
};

static struct {
	const uint8_t		*data;		/* of the fuzzer, or NULL */
	size_t			left;
	uint64_t		seed, now, order, limit, mask, callbacks;
	unsigned int		max_run, called;
	bool			in_run, failed, device;
	struct libhwt_timers	*timers;
	struct item		*item[ITEMS];
	struct model		model[ITEMS];
} run;

/* Return a number below @n, by splitmix64, or of the fuzzer's bytes, which may end. */
static uint64_t pick(uint64_t n)
{
	uint64_t z = 0;
	unsigned int i;

	if (run.data) {
		for (i = 0; i < (n > 256 ? 8 : 1) && run.left; i++, run.left--)
			z = z << 8 | *run.data++;
		return z % n;
	}
	z = run.seed += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % n;
}

/* Return a span of time; each order of magnitude is equally likely. */
static uint64_t span(void)
{
	return pick(16) ? pick(UINT64_C(1) << pick(45)) : 0;
}

static void require(bool condition, const char *what, int line)
{
	if (condition || run.failed)
		return;
	run.failed = true;
	printf("# timers.c:%d: not true: %s\n", line, what);
	if (run.data)
		abort();
}

#define REQUIRE(condition)	require(condition, #condition, __LINE__)

/* -- A device ------------------------------------------------------------------- */

#define REFUSED		(-ENOSPC)

/* Timeouts of the device; the key 0 is that of a free one. An event comes when it is taken. */
static struct hwtlib_due timeouts[ITEMS];
static uint64_t device_late;
static bool device_refuses, device_refused;
static bool device_interrupted;
static int device_fd = STDIN_FILENO;

static struct hwtlib_due *timeout_of(uint64_t key)
{
	unsigned int i;

	for (i = 0; i < ITEMS; i++)
		if (timeouts[i].key == key)
			return &timeouts[i];
	return NULL;
}

static int fake_arm(struct libhwt *context, uint64_t key, uint64_t deadline)
{
	struct hwtlib_due *timeout = timeout_of(key);

	REQUIRE(context && key);
	if (device_refuses && !pick(4)) {
		device_refused = true;
		return REFUSED;
	}
	if (!timeout)
		timeout = timeout_of(0);
	REQUIRE(timeout);
	*timeout = (struct hwtlib_due) { key, deadline };
	return 0;
}

static int fake_cancel(struct libhwt *context, uint64_t key)
{
	struct hwtlib_due *timeout = timeout_of(key);

	REQUIRE(context);
	if (!timeout)
		return -ENOENT;
	timeout->key = 0;
	return 0;
}

static int fake_get(struct libhwt *context, uint64_t key, uint64_t *deadline)
{
	struct hwtlib_due *timeout = timeout_of(key);

	REQUIRE(context);
	if (timeout)
		*deadline = timeout->deadline + device_late > run.now ? timeout->deadline : 0;
	return timeout ? 0 : -ENOENT;
}

static int fake_take(struct libhwt *context, struct hwtlib_due *due, unsigned int max)
{
	unsigned int i, n = 0;

	REQUIRE(context);
	if (device_interrupted)
		return -EINTR;
	for (i = 0; i < ITEMS && n < max; i++) {
		if (!timeouts[i].key || timeouts[i].deadline + device_late > run.now)
			continue;
		due[n++] = timeouts[i];
		timeouts[i].key = 0;
	}
	return n;
}

static int fake_fd(const struct libhwt *context)
{
	(void)context;
	return device_fd;
}

static void fake_close(struct libhwt *context)
{
	REQUIRE(context);
}

int hwtlib_device_open(struct hwtlib_device *device, clockid_t clock)
{
	(void)clock;
	*device = (struct hwtlib_device) {
		(struct libhwt *)timeouts, MS, fake_arm, fake_cancel, fake_get, fake_take, fake_fd,
		fake_close
	};
	return 0;
}

/* Return the time at which a timer of a deadline may fire. */
static uint64_t rounded(uint64_t deadline)
{
	return (deadline + run.mask) & ~run.mask;
}

static bool model_before(const struct model *one, const struct model *two)
{
	return one->deadline < two->deadline ||
	       (one->deadline == two->deadline && one->order < two->order);
}

/* Return the timer whose turn it is in the present run, or NULL. */
static struct model *model_next(void)
{
	struct model *pos, *next = NULL;

	for (pos = run.model; pos < run.model + ITEMS; pos++)
		if (pos->pending && pos->order < run.limit && rounded(pos->deadline) <= run.now &&
		    (!next || model_before(pos, next)))
			next = pos;
	return next;
}

static void model_set(unsigned int i, uint64_t deadline)
{
	run.model[i] = (struct model) {
		.pending = deadline != LIBHWT_NEVER, .deadline = deadline, .order = run.order++,
	};
}

static void expire(struct libhwt_timer *timer);

static void item_renew(unsigned int i)
{
	struct item *item = run.item[i];

	if (item) {
		libhwt_timer_stop(run.timers, &item->periodic.timer);
		REQUIRE(!timeout_of((uintptr_t)&item->periodic.timer));
		free(item);
	}
	run.model[i].pending = false;
	item = malloc(sizeof(*item));
	if (!item)
		abort();
	memset(item, 0x6b, sizeof(*item));
	item->index = i;
	libhwt_timer_init(&item->periodic.timer, expire);
	run.item[i] = item;
}

/* Store a later deadline in the word that a timer watches, or an earlier one if it is not set. */
static void touch(unsigned int i, uint64_t deadline)
{
	struct model *model = &run.model[i];

	if (!model->watched || !model->pending || deadline < model->deadline)
		return;
	run.item[i]->word = deadline;
	model->deadline = deadline;
}

static void operate_on(unsigned int i)
{
	struct item *item = run.item[i];
	struct libhwt_timer *timer = &item->periodic.timer;
	struct model *model = &run.model[i];
	uint64_t ns = span(), slack;

	switch (pick(16)) {
	case 0 ... 4:
		libhwt_timer_set(run.timers, timer, ns);
		model_set(i, run.now + ns);
		break;
	case 5:
		ns = pick(run.now) + (pick(2) ? run.now : 0);
		libhwt_timer_set_at(run.timers, timer, ns);
		model_set(i, ns);
		break;
	case 6:
		slack = span();
		libhwt_timer_set_slack(run.timers, timer, ns, slack);
		REQUIRE(timer->deadline >= run.now + ns &&
			timer->deadline <= run.now + ns + slack);
		model_set(i, timer->deadline);
		break;
	case 7:
		libhwt_timer_set(run.timers, timer, LIBHWT_NEVER);
		model_set(i, LIBHWT_NEVER);
		break;
	case 8:
		ns += run.now;
		slack = 1 + span();
		libhwt_timer_every(run.timers, &item->periodic, ns, slack);
		model_set(i, ns);
		model->period = slack;
		break;
	case 9:
		item->word = run.now + ns;
		libhwt_timer_watch(run.timers, timer, &item->word);
		model_set(i, item->word);
		model->watched = true;
		break;
	case 10:
		touch(i, run.now + ns);
		break;
	case 11 ... 12:
		libhwt_timer_disarm(timer);
		model->pending = false;
		break;
	case 13 ... 14:
		libhwt_timer_stop(run.timers, timer);
		model->pending = false;
		REQUIRE(!libhwt_timer_pending(timer));
		break;
	default:
		item_renew(i);
		return;
	}
	REQUIRE(libhwt_timer_pending(timer) == model->pending);
	if (model->pending)
		REQUIRE(libhwt_timer_remaining(run.timers, timer) ==
			(model->deadline > run.now ? model->deadline - run.now : 0));
}

static void expire(struct libhwt_timer *timer)
{
	struct item *item = LIBHWT_CONTAINER(timer, struct item, periodic.timer);
	struct model *model = &run.model[item->index];
	unsigned int own = item->index, n;
	uint64_t missed;

	run.called++;
	run.callbacks++;
	REQUIRE(run.in_run && run.called <= run.max_run);
	REQUIRE(model->pending && model == model_next());
	if (model->period) {
		missed = (run.now - model->deadline) / model->period;
		REQUIRE(item->periodic.overruns == missed);
		model->deadline += (missed + 1) * model->period;
		model->order = run.order++;
	} else {
		model->pending = false;
	}
	REQUIRE(libhwt_timer_pending(timer) == model->pending);
	REQUIRE(libhwt_timers_run(run.timers) == 0);
	/* The callback's own timer is one in four: the callback may free it. */
	for (n = pick(4); n; n--)
		operate_on(pick(4) ? pick(ITEMS) : own);
}

static void check_next(void)
{
	uint64_t next = libhwt_timers_next(run.timers), late = 0;
	unsigned int i, pending = 0;

	if (run.device)
		late = run.mask + 3 * LIBHWT_TICK;

	for (i = 0; i < ITEMS; i++) {
		if (!run.model[i].pending)
			continue;
		pending++;
		REQUIRE(next <= rounded(run.model[i].deadline) + late || next <= run.now);
	}
	if (next != LIBHWT_NEVER)
		next = next > run.now ? next - run.now : 0;
	REQUIRE(libhwt_timers_wait_ns(run.timers) == next);
	REQUIRE(libhwt_timers_count(run.timers) >= pending);
	REQUIRE(pending || libhwt_timers_count(run.timers) || next == LIBHWT_NEVER);
}

static void count_pending(struct libhwt_timer *timer, void *arg)
{
	REQUIRE(libhwt_timer_pending(timer));
	++*(unsigned int *)arg;
}

/* Let time go on, or back, and run. */
static void turn(void)
{
	unsigned int i, n, pending = 0, counted = 0;

	if (pick(50))
		run.now += span();
	else
		run.now -= pick(run.now);
	run.limit = run.order;
	run.called = 0;
	run.in_run = true;
	n = libhwt_timers_run_at(run.timers, run.now);
	run.in_run = false;
	REQUIRE(n == run.called);
	REQUIRE(n == run.max_run || !model_next());
	for (i = 0; i < ITEMS; i++)
		pending += run.model[i].pending;
	libhwt_timers_for_each(run.timers, count_pending, &counted);
	REQUIRE(counted == pending);
}

/* Move all timers to a new set. */
static void move(const struct libhwt_timers_options *options)
{
	struct libhwt_timers *to = libhwt_timers_new(options);

	if (!to)
		abort();
	libhwt_timers_run_at(to, run.now);
	device_refused = false;
	libhwt_timers_move_all(run.timers, to);
	REQUIRE(libhwt_timers_count(run.timers) == 0);
	libhwt_timers_free(run.timers);
	run.timers = to;
}

static void drive(uint64_t operations)
{
	struct libhwt_timers_options options = { .size = sizeof(options) };
	uint64_t n;
	unsigned int i;

	options.granularity_ns = pick(4) ? 0 : UINT64_C(1) << pick(34);
	options.max_run = pick(4) ? 0 : 1 + pick(20);
	run.device = pick(2);
	options.flags = run.device ? LIBHWT_ANY : 0;
	device_refuses = pick(2);
	device_refused = false;
	device_late = 0;
	memset(timeouts, 0, sizeof(timeouts));
	for (run.mask = LIBHWT_TICK; run.mask < options.granularity_ns; run.mask <<= 1)
		;
	run.mask--;
	run.max_run = options.max_run ?: ~0U;
	run.timers = libhwt_timers_new(&options);
	if (!run.timers)
		abort();
	run.now = START + pick(START);
	run.order = 1;
	libhwt_timers_run_at(run.timers, run.now);
	for (i = 0; i < ITEMS; i++)
		item_renew(i);
	for (n = 0; n < operations && !run.failed && (!run.data || run.left); n++) {
		if (pick(8))
			operate_on(pick(ITEMS));
		else if (pick(200))
			turn();
		else
			move(&options);
		check_next();
	}
	if (pick(2)) {
		libhwt_timers_stop_all(run.timers);
		for (i = 0; i < ITEMS; i++)
			REQUIRE(!timeouts[i].key);
	}
	REQUIRE(!libhwt_timers_context(run.timers) == !run.device);
	REQUIRE(libhwt_timers_error(run.timers) == (device_refused ? REFUSED : 0));
	libhwt_timers_free(run.timers);
	for (i = 0; i < ITEMS; i++) {
		free(run.item[i]);
		run.item[i] = NULL;
	}
}

#ifdef FUZZ
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	run.data = data;
	run.left = size;
	drive(~UINT64_C(0));
	return 0;
}
#else

static uint64_t operations = 1000000;

static void random_operations(void)
{
	uint64_t seed = run.seed, done, each = 2000;

	for (done = 0; done < operations && !run.failed; done += each) {
		run.seed = seed + done;
		drive(each);
	}
	if (run.failed)
		printf("# repeat with: timers %llu %llu\n",
		       (unsigned long long)(seed + done - each), (unsigned long long)each);
	printf("# %llu operations, %llu callbacks\n", (unsigned long long)done,
	       (unsigned long long)run.callbacks);
	CHECK(!run.failed && run.callbacks > operations / 100);
}

/* -- What the model does not have ------------------------------------------------ */

static struct libhwt_timers *set;
static struct libhwt_timer timer[8];
static struct libhwt_periodic beat;
static int calls[8], beats;

static void note(struct libhwt_timer *which)
{
	calls[which - timer]++;
}

static void note_beat(struct libhwt_timer *which)
{
	beats += which == &beat.timer;
}

static void begin(const struct libhwt_timers_options *options)
{
	int i;

	device_refuses = false;
	device_late = 0;
	memset(timeouts, 0, sizeof(timeouts));
	run.now = START;
	set = libhwt_timers_new(options);
	CHECK(set && libhwt_timers_run_at(set, START) == 0);
	for (i = 0; i < 8; i++)
		libhwt_timer_init(&timer[i], note);
	memset(calls, 0, sizeof(calls));
}

static void end(void)
{
	libhwt_timers_free(set);
}

/* The descriptor is readable when a timer is due, not before, and not after the run. */
static void descriptor(void)
{
	struct pollfd ready = { .events = POLLIN };
	uint64_t asked, now;

	set = libhwt_timers_new(NULL);
	libhwt_timer_init(&timer[0], note);
	calls[0] = 0;
	ready.fd = libhwt_timers_fd(set);
	CHECK(ready.fd >= 0 && libhwt_timers_fd(set) == ready.fd);
	asked = libhwt_timers_update(set);
	CHECK(poll(&ready, 1, 2) == 0 && libhwt_timers_now(set) > asked);
	CHECK(libhwt_timers_wait_ns(set) == LIBHWT_NEVER && libhwt_timers_wait_ms(set) == -1);
	libhwt_timer_set(set, &timer[0], 3600 * SEC);
	asked = libhwt_timers_now(set);
	libhwt_timer_set(set, &timer[0], 20 * MS);
	CHECK(poll(&ready, 1, 10000) == 1);
	now = libhwt_timers_now(set);
	CHECK(now >= asked + 20 * MS);
	CHECK(libhwt_timers_run(set) == 1 && calls[0] == 1);
	CHECK(poll(&ready, 1, 0) == 0);
	libhwt_timers_free(set);
}

/* epoll_wait() takes the time that the set says, and the timer is due after it. */
static void real_time(void)
{
	struct libhwt_timers_options options = { .size = sizeof(options) };
	uint64_t asked;
	unsigned int flags;

	for (flags = 0; flags <= LIBHWT_TIMERS_REALTIME; flags++) {
		options.flags = flags;
		set = libhwt_timers_new(&options);
		CHECK(set);
		libhwt_timer_init(&timer[0], note);
			libhwt_timer_set(set, &timer[0], 20 * MS);
		asked = libhwt_timers_now(set);
		while (!libhwt_timers_run(set))
			poll(NULL, 0, libhwt_timers_wait_ms(set));
		CHECK(libhwt_timers_now(set) >= asked + 20 * MS);
		libhwt_timers_free(set);
	}
}

static unsigned int run_at(uint64_t ns)
{
	run.now = START + ns;
	return libhwt_timers_run_at(set, run.now);
}

/* If the clock was set back since the last run, the next run must not wait for it. */
static void set_back(void)
{
	struct pollfd ready = { .events = POLLIN };

	begin(NULL);
	CHECK(run_at(libhwt_timers_update(set)) == 0);
	libhwt_timer_set_at(set, &timer[0], libhwt_timers_update(set) + SEC);
	CHECK(libhwt_timers_wait_ms(set) == 0);
	ready.fd = libhwt_timers_fd(set);
	CHECK(poll(&ready, 1, 2000) == 1);
	CHECK(libhwt_timers_run(set) == 0 && libhwt_timers_wait_ns(set) > SEC / 2);
	end();
}

static void *rise(void *word)
{
	uint64_t n;

	for (n = 1; n <= 3000000; n++)
		__atomic_store_n((uint64_t *)word, n << 32 | n, __ATOMIC_RELAXED);
	return NULL;
}

/* Another thread stores a word whose two halves agree. */
static void watched_word(void)
{
	static uint64_t word __attribute__((aligned(8))) = UINT64_C(1) << 32 | 1;
	uint64_t read, torn = 0;
	pthread_t thread;

	begin(NULL);
	libhwt_timer_watch(set, &timer[0], &word);
	CHECK(pthread_create(&thread, NULL, rise, &word) == 0);
	do {
		read = libhwt_timer_deadline(&timer[0]);
		torn += read >> 32 != (uint32_t)read;
	} while (read >> 32 < 3000000);
	CHECK(pthread_join(thread, NULL) == 0 && torn == 0);
	end();
}

/* The device has what it accepts, and is told only of earlier deadlines, stops and expiries. */
static void on_the_device(void)
{
	struct libhwt_timers_options options = { .size = sizeof(options), .flags = LIBHWT_DEVICE };
	struct hwtlib_due *first;
	int i;

	begin(&options);
	for (i = 0; i < 4; i++)
		libhwt_timer_set(set, &timer[i], (4 - i) * SEC);
	first = timeout_of((uintptr_t)&timer[3]);
	CHECK(first && first->deadline - START - SEC < LIBHWT_TICK);
	libhwt_timer_set(set, &timer[3], SEC + 1);
	libhwt_timer_set(set, &timer[3], 10 * SEC);
	libhwt_timer_disarm(&timer[2]);
	CHECK(first && first->deadline - START - SEC < LIBHWT_TICK);
	libhwt_timer_stop(set, &timer[1]);
	CHECK(!timeout_of((uintptr_t)&timer[1]));
	CHECK(run_at(9 * SEC) == 1 && calls[0] == 1 && libhwt_timers_count(set) == 1);
	first = timeout_of((uintptr_t)&timer[3]);
	CHECK(first && first->deadline - START - 10 * SEC < LIBHWT_TICK);
	CHECK(run_at(10 * SEC + LIBHWT_TICK) == 1 && calls[3] == 1);
	end();
}

/* Other processes move and cancel timers, and the device is late. */
static void moved_by_others(void)
{
	struct libhwt_timers_options options = { .size = sizeof(options), .flags = LIBHWT_ANY };
	int i;

	begin(&options);
	for (i = 0; i < 3; i++)
		libhwt_timer_set(set, &timer[i], 10 * SEC);
	libhwt_timer_init(&beat.timer, note_beat);
	libhwt_timer_every(set, &beat, START + 10 * SEC + 1, 60 * SEC);
	timeout_of((uintptr_t)&timer[0])->key = 0;
	timeout_of((uintptr_t)&timer[1])->deadline = START + 20 * SEC;
	timeout_of((uintptr_t)&timer[2])->deadline = START + 5 * SEC;
	CHECK(run_at(5 * SEC) + run_at(5 * SEC + LIBHWT_TICK) == 1 && calls[2] == 1);
	device_late = SEC;
	CHECK(run_at(10 * SEC + 5 * LIBHWT_TICK) == 0);
	CHECK(!libhwt_timer_pending(&timer[0]));
	CHECK(libhwt_timer_deadline(&timer[1]) == START + 20 * SEC);
	CHECK(run_at(12 * SEC) == 1 && beats == 1);
	CHECK(libhwt_timer_deadline(&beat.timer) == START + 70 * SEC + 1);
	CHECK(run_at(22 * SEC) == 1 && calls[1] == 1 && libhwt_timers_count(set) == 1);
	end();
}

/* What the program sets later than others have, counts; a move to another set asks the device. */
static void pushed_beside_others(void)
{
	struct libhwt_timers_options options = { .size = sizeof(options), .flags = LIBHWT_ANY };
	struct libhwt_timers *from;
	int i;

	begin(&options);
	for (i = 0; i < 4; i++)
		libhwt_timer_set(set, &timer[i], 10 * SEC);
	timeout_of((uintptr_t)&timer[0])->key = 0;
	timeout_of((uintptr_t)&timer[1])->deadline = START + 5 * SEC;
	timeout_of((uintptr_t)&timer[2])->deadline = START + 3600 * SEC;
	timeout_of((uintptr_t)&timer[3])->key = 0;
	for (i = 0; i < 3; i++)
		libhwt_timer_set(set, &timer[i], 30 * SEC);
	CHECK(run_at(6 * SEC) == 0);
	from = set;
	set = libhwt_timers_new(&options);
	libhwt_timers_run_at(set, run.now);
	libhwt_timers_move_all(from, set);
	libhwt_timers_free(from);
	CHECK(!libhwt_timer_pending(&timer[3]));
	libhwt_timer_set(set, &timer[5], 4 * SEC);
	timeout_of((uintptr_t)&timer[5])->deadline = LIBHWT_NEVER;
	CHECK(run_at(11 * SEC) == 0 && run_at(29 * SEC) == 0);
	CHECK(run_at(30 * SEC + LIBHWT_TICK) == 3 && calls[0] && calls[1] && calls[2]);
	libhwt_timer_stop(set, &timer[5]);
	CHECK(!timeout_of((uintptr_t)&timer[5]) && libhwt_timers_count(set) == 0);
	end();
}

/* No event comes for a timer that the program has pushed back, and another process cancelled. */
static void descriptor_beside_others(void)
{
	struct libhwt_timers_options options = { .size = sizeof(options), .flags = LIBHWT_DEVICE };
	struct pollfd ready = { .events = POLLIN };
	int polls = 0;

	device_fd = timerfd_create(CLOCK_MONOTONIC, 0);
	begin(&options);
	run.now = LIBHWT_NEVER / 2;
	libhwt_timers_run(set);
	ready.fd = libhwt_timers_fd(set);
	libhwt_timer_set(set, &timer[0], 10 * MS);
	libhwt_timer_set(set, &timer[0], 30 * MS);
	timeout_of((uintptr_t)&timer[0])->key = 0;
	while (!calls[0] && polls++ < 5 && poll(&ready, 1, 5000) == 1)
		libhwt_timers_run(set);
	CHECK(calls[0] == 1);
	end();
	close(device_fd);
	device_fd = STDIN_FILENO;
}

/* After a signal, a set still waits for the events of its device. */
static void interrupted(void)
{
	struct libhwt_timers_options options = { .size = sizeof(options), .flags = LIBHWT_DEVICE };
	struct pollfd ready = { .events = POLLIN };
	int ends[2];

	CHECK(pipe(ends) == 0 && write(ends[1], "", 1) == 1);
	device_fd = ends[0];
	begin(&options);
	ready.fd = libhwt_timers_fd(set);
	device_interrupted = true;
	CHECK(run_at(SEC) == 0);
	device_interrupted = false;
	CHECK(poll(&ready, 1, 0) == 1);
	end();
	device_fd = STDIN_FILENO;
	close(ends[0]);
	close(ends[1]);
}

static void refused(void)
{
	struct libhwt_timers_options options = { .size = sizeof(options), .flags = 3 };

	CHECK(!libhwt_timers_new(&options) && errno == EINVAL);
	options.flags = LIBHWT_DEVICE | LIBHWT_ANY;
	CHECK(!libhwt_timers_new(&options) && errno == EINVAL);
	options = (struct libhwt_timers_options) { .size = 1 };
	CHECK(!libhwt_timers_new(&options) && errno == EINVAL);
	options = (struct libhwt_timers_options) { .size = sizeof(options),
						   .granularity_ns = LIBHWT_NEVER };
	CHECK(!libhwt_timers_new(&options) && errno == EINVAL);
	libhwt_timers_free(NULL);
	CHECK(sizeof(struct libhwt_timer) <= 48);
}

static const struct tap_test tests[] = {
	{ "timers: random operations, with callbacks that set, disarm, stop and free",
	  .once = random_operations },
	{ "timers: the descriptor", .once = descriptor },
	{ "timers: real time, three clocks", .once = real_time },
	{ "timers: a timeout of the device for each timer", .once = on_the_device },
	{ "timers: others move and cancel timers of the device", .once = moved_by_others },
	{ "timers: the program pushes what others have changed", .once = pushed_beside_others },
	{ "timers: the descriptor beside others", .once = descriptor_beside_others },
	{ "timers: the clock was set back", .once = set_back },
	{ "timers: a word that another thread stores", .once = watched_word },
	{ "timers: a signal while events of the device are taken", .once = interrupted },
	{ "timers: options that are refused", .once = refused },
	{ },
};

int main(int argc, char **argv)
{
	run.seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	if (argc > 2)
		operations = strtoull(argv[2], NULL, 0);
	return tap_run(tests, 1);
}
#endif
