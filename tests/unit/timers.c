// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of libhwt's timers, in virtual time, against a model: an array that is searched for each
 * callback. timers [seed [operations]]
 *
 * The model knows the deadline of each timer, and the number of the call that set it. At each
 * callback it must be the timer's turn: of all timers that are due by the clock and were set before
 * the run, it has the earliest deadline, and was set first of those. After a run none is left.
 *
 * Compiled with FUZZ, the operations come from libFuzzer.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hwt_timers.h"
#include "tap.h"

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
	bool			in_run, failed;
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
		/* Also a time that has passed. */
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
	uint64_t next = libhwt_timers_next(run.timers);
	unsigned int i, pending = 0;

	for (i = 0; i < ITEMS; i++) {
		if (!run.model[i].pending)
			continue;
		pending++;
		REQUIRE(next <= rounded(run.model[i].deadline) || next <= run.now);
	}
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
	if (pick(2))
		libhwt_timers_stop_all(run.timers);
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

/* -- What users of libev's and libuv's timers rely on ---------------------------- */

static struct libhwt_timers *set;
static struct libhwt_timer timer[8];
static int calls[8], order[64], called;
static void (*on_call)(int i);

static void note(struct libhwt_timer *which)
{
	int i = which - timer;

	calls[i]++;
	if (called < 64)
		order[called] = i;
	called++;
	if (on_call)
		on_call(i);
}

static void begin(const struct libhwt_timers_options *options)
{
	int i;

	set = libhwt_timers_new(options);
	CHECK(set);
	CHECK(libhwt_timers_run_at(set, START) == 0);
	for (i = 0; i < 8; i++)
		libhwt_timer_init(&timer[i], note);
	memset(calls, 0, sizeof(calls));
	called = 0;
	on_call = NULL;
}

static void end(void)
{
	libhwt_timers_free(set);
}

static void stop_and_free(void)
{
	begin(NULL);
	libhwt_timer_set(set, &timer[0], 10 * MS);
	libhwt_timer_stop(set, &timer[0]);
	libhwt_timer_stop(set, &timer[0]);
	CHECK(libhwt_timers_count(set) == 0);
	CHECK(libhwt_timers_wait_ns(set) == LIBHWT_NEVER);
	CHECK(libhwt_timers_wait_ms(set) == -1);
	CHECK(libhwt_timers_run_at(set, START + SEC) == 0);
	end();
}

static void never_early(void)
{
	uint64_t ns;

	begin(NULL);
	for (ns = 0; ns < 3 * LIBHWT_TICK; ns += 9973) {
		uint64_t now = libhwt_timers_now(set);

		libhwt_timer_set(set, &timer[0], ns);
		CHECK(!ns || libhwt_timers_run_at(set, now + ns - 1) == 0);
		CHECK(libhwt_timers_wait_ns(set) <= LIBHWT_TICK);
		CHECK(libhwt_timers_run_at(set, now + ns + LIBHWT_TICK - 1) == 1);
	}
	end();
}

static void in_order(void)
{
	int i;

	begin(NULL);
	/* The same deadline: in the order of the calls, also after a store. */
	for (i = 0; i < 8; i++)
		libhwt_timer_set(set, &timer[i], 50 * MS - i);
	for (i = 7; i >= 0; i--)
		libhwt_timer_set(set, &timer[i], 60 * MS);
	CHECK(libhwt_timers_run_at(set, START + SEC) == 8);
	for (i = 0; i < 8; i++)
		CHECK(order[i] == 7 - i);
	end();
}

static void set_again(int i)
{
	libhwt_timer_set(set, &timer[i], 0);
}

/* libuv: a timer that sets itself to 0 fires once in each turn. */
static void no_starvation(void)
{
	int n;

	begin(NULL);
	on_call = set_again;
	libhwt_timer_set(set, &timer[0], 0);
	for (n = 1; n <= 5; n++) {
		CHECK(libhwt_timers_run_at(set, START + n * 2 * LIBHWT_TICK) == 1);
		CHECK(libhwt_timers_wait_ns(set) <= LIBHWT_TICK);
	}
	CHECK(calls[0] == 5);
	end();
}

static void stop_next(int i)
{
	libhwt_timer_stop(set, &timer[(i + 1) % 8]);
}

/* libev: a callback stops a timer that is due in the same run. */
static void stopped_by_another(void)
{
	int i;

	begin(NULL);
	on_call = stop_next;
	for (i = 0; i < 8; i++)
		libhwt_timer_set(set, &timer[i], 10 * MS);
	CHECK(libhwt_timers_run_at(set, START + SEC) == 4);
	CHECK(calls[0] && !calls[1] && calls[2] && !calls[3]);
	CHECK(libhwt_timers_count(set) == 0);
	end();
}

static void bounded(void)
{
	struct libhwt_timers_options options = { .size = sizeof(options), .max_run = 3 };
	int i;

	begin(&options);
	for (i = 0; i < 8; i++)
		libhwt_timer_set(set, &timer[i], (8 - i) * MS);
	CHECK(libhwt_timers_run_at(set, START + SEC) == 3);
	CHECK(libhwt_timers_wait_ns(set) == 0);
	CHECK(libhwt_timers_run_at(set, START + SEC) == 3);
	CHECK(libhwt_timers_run_at(set, START + SEC) == 2);
	for (i = 0; i < 8; i++)
		CHECK(order[i] == 7 - i);
	end();
}

static void a_day(void)
{
	uint64_t now = START, wait;
	int n = 0;

	begin(NULL);
	/* A day of deadlines a minute apart, each reached by sleeping as the set says. */
	libhwt_timer_set(set, &timer[0], 60 * SEC);
	while (calls[0] < 24 * 60 && n++ < 24 * 60 * 8) {
		wait = libhwt_timers_wait_ns(set);
		CHECK(wait != LIBHWT_NEVER);
		now += wait;
		if (libhwt_timers_run_at(set, now))
			libhwt_timer_set(set, &timer[0], 60 * SEC);
	}
	CHECK(calls[0] == 24 * 60);
	CHECK(now - START >= 24 * 3600 * SEC);
	CHECK(now - START < 24 * 3600 * SEC + 24 * 60 * LIBHWT_TICK);
	end();
}

static struct libhwt_periodic beat;
static uint64_t missed;

static void on_beat(struct libhwt_timer *which)
{
	missed = beat.overruns;
	if (++called == 3)
		libhwt_timer_stop(set, which);
}

/* A period keeps its phase, periods that are missed are counted, and a callback may end it. */
static void periods(void)
{
	begin(NULL);
	libhwt_timer_init(&beat.timer, on_beat);
	libhwt_timer_every(set, &beat, START + 10 * MS, 10 * MS);
	CHECK(libhwt_timers_run_at(set, START + 35 * MS) == 1 && missed == 2);
	CHECK(libhwt_timer_deadline(&beat.timer) == START + 40 * MS);
	CHECK(libhwt_timers_run_at(set, START + 42 * MS) == 1 && missed == 0);
	CHECK(libhwt_timers_run_at(set, START + 62 * MS) == 1 && missed == 1);
	CHECK(libhwt_timers_run_at(set, START + SEC) == 0 && called == 3);
	libhwt_timer_every(set, &beat, START + 2 * SEC, 10 * MS);
	libhwt_timer_disarm(&beat.timer);
	CHECK(libhwt_timers_run_at(set, START + 3 * SEC) == 0);
	CHECK(libhwt_timers_count(set) == 0);
	end();
}

/* The descriptor is readable when a timer is due, not before, and not after the run. */
static void descriptor(void)
{
	struct pollfd ready = { .events = POLLIN };
	uint64_t asked, now;

	set = libhwt_timers_new(NULL);
	libhwt_timer_init(&timer[0], note);
	calls[0] = 0;
	on_call = NULL;
	ready.fd = libhwt_timers_fd(set);
	CHECK(ready.fd >= 0 && libhwt_timers_fd(set) == ready.fd);
	CHECK(poll(&ready, 1, 0) == 0);
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
		calls[0] = 0;
		on_call = NULL;
		libhwt_timer_set(set, &timer[0], 20 * MS);
		asked = libhwt_timers_now(set);
		while (!libhwt_timers_run(set))
			poll(NULL, 0, libhwt_timers_wait_ms(set));
		CHECK(libhwt_timers_now(set) >= asked + 20 * MS);
		libhwt_timers_free(set);
	}
}

static void refused(void)
{
	struct libhwt_timers_options options = { .size = sizeof(options), .flags = 3 };

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
	{ "timers: a stopped timer may be freed", .once = stop_and_free },
	{ "timers: never early, and within a tick", .once = never_early },
	{ "timers: equal deadlines fire in the order of the calls", .once = in_order },
	{ "timers: a timer set to 0 in a callback waits for the next run", .once = no_starvation },
	{ "timers: a callback stops another timer that is due", .once = stopped_by_another },
	{ "timers: a bounded run", .once = bounded },
	{ "timers: 24 hours", .once = a_day },
	{ "timers: periods", .once = periods },
	{ "timers: the descriptor", .once = descriptor },
	{ "timers: real time, three clocks", .once = real_time },
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
