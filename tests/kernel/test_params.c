// SPDX-License-Identifier: GPL-2.0-only
/*
 * Valid and invalid parameters of a wheel. Shared wheels: one for each set of parameters, which
 * exists while it has users.
 *
 * hwt-test: timeout 120
 */
#include <linux/cpumask.h>
#include <linux/log2.h>

#include "hwt_ktest.h"

/* CPUs that are not online, CPU 0, and none at all. */
static struct cpumask offline, first, none;

static void test_clock_set(struct hwt_wheel *wheel, s64 jump_ns, void *arg)
{
}

struct wanted {
	const char		*what;
	struct hwt_wheel_params	params;
};

static const struct wanted bad[] __initconst = {
	{ "1 bucket", { .ticks_per_wheel = 1 } },
	{ "65537 buckets", { .ticks_per_wheel = 65537 } },
	{ "2^32 - 1 buckets", { .ticks_per_wheel = U32_MAX } },
	{ "7 levels", { .levels = 7 } },
	{ "2^32 - 1 levels", { .levels = U32_MAX } },
	{ "clock 3", { .clock = 3 } },
	{ "clock -1", { .clock = -1 } },
	{ "flag 8", { .flags = 8 } },
	{ "flag 2^31", { .flags = 1U << 31 } },
	{ "all flags", { .flags = U32_MAX } },
	{ "max_pending 2^63", { .max_pending = 1ULL << 63 } },
	{ "max_pending 2^64 - 1", { .max_pending = U64_MAX } },
	{ "a tick of 2^63 - 1 ns", { .tick_ns = S64_MAX } },
	{ "a tick of 2^64 - 1 ns", { .tick_ns = U64_MAX } },
	{ "tick times buckets over 2^63",
	  { .tick_ns = 1ULL << 48, .ticks_per_wheel = 65536 } },
	{ "257 workers", { .workers = HWT_WORKERS_MAX + 1 } },
	{ "2^31 workers", { .workers = 1U << 31 } },
	{ "2^32 - 1 workers", { .workers = U32_MAX } },
	{ "257 shards", { .shards = HWT_SHARDS_MAX + 1 } },
	{ "busy waiting of two shards",
	  { .wait = HWT_WAIT_BUSY, .cpus = &first, .shards = 2 } },
	{ "no CPU", { .cpus = &none } },
	{ "CPUs that are not online", { .cpus = &offline } },
	{ "priority 3", { .priority = 3 } },
	{ "priority -1", { .priority = -1 } },
	{ "wait 2", { .wait = 2, .cpus = &first } },
	{ "wait -1", { .wait = -1, .cpus = &first } },
	{ "busy waiting on any CPU", { .wait = HWT_WAIT_BUSY } },
	{ "busy waiting with low FIFO",
	  { .wait = HWT_WAIT_BUSY, .cpus = &first, .priority = HWT_PRIO_FIFO_LOW } },
	{ "busy waiting with FIFO",
	  { .wait = HWT_WAIT_BUSY, .cpus = &first, .priority = HWT_PRIO_FIFO } },
	{ "clock_set on CLOCK_MONOTONIC", { .clock_set = test_clock_set } },
	{ "clock_set on CLOCK_BOOTTIME",
	  { .clock_set = test_clock_set, .clock = HWT_CLOCK_BOOTTIME } },
	{ "BH with workers", { .flags = HWT_BH, .workers = 1 } },
	{ "BH with cpus", { .flags = HWT_BH, .cpus = cpu_online_mask } },
	{ "BH with FIFO", { .flags = HWT_BH, .priority = HWT_PRIO_FIFO } },
	{ "BH, freezable", { .flags = HWT_BH | HWT_FREEZABLE } },
};

static void __init shared_refused(const char *what, const struct hwt_wheel_params *params)
{
	struct hwt_wheel *wheel = hwt_wheel_get_shared(params);

	KTEST(PTR_ERR_OR_ZERO(wheel) == -EINVAL, "%s: get_shared returns -EINVAL", what);
	if (!IS_ERR(wheel))
		hwt_wheel_put(wheel);
}

static void __init test_bad(void)
{
	struct hwt_wheel *wheel;
	unsigned int i;

	cpumask_andnot(&offline, cpu_possible_mask, cpu_online_mask);
	cpumask_set_cpu(0, &first);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		wheel = hwt_wheel_create(&bad[i].params);
		KTEST(PTR_ERR_OR_ZERO(wheel) == -EINVAL, "%s: create returns -EINVAL", bad[i].what);
		if (!IS_ERR(wheel))
			hwt_wheel_destroy(wheel);
		shared_refused(bad[i].what, &bad[i].params);
	}
}

static const struct wanted good[] __initconst = {
	{ "2 buckets, 1 level", { .ticks_per_wheel = 2, .levels = 1 } },
	{ "2 buckets, 6 levels", { .ticks_per_wheel = 2, .levels = 6 } },
	{ "3 buckets", { .ticks_per_wheel = 3 } },
	{ "513 buckets", { .ticks_per_wheel = 513 } },
	{ "65536 buckets, 6 levels", { .ticks_per_wheel = 65536, .levels = 6 } },
	{ "65535 buckets, 1 level", { .ticks_per_wheel = 65535, .levels = 1 } },
	{ "a tick of 1 ns", { .tick_ns = 1 } },
	{ "a tick of 1 ms + 1 ns", { .tick_ns = KT_MS + 1 } },
	{ "a tick of 7.654321 ms", { .tick_ns = 7654321 } },
	{ "a tick of 2^23 ns", { .tick_ns = 1 << 23 } },
	{ "a tick of an hour", { .tick_ns = KT_HOUR } },
	{ "max_pending of 2^63 - 1", { .max_pending = S64_MAX } },
	{ "boottime", { .clock = HWT_CLOCK_BOOTTIME } },
	{ "coarse", { .flags = HWT_COARSE_CLOCK } },
	{ "boottime, coarse",
	  { .clock = HWT_CLOCK_BOOTTIME, .flags = HWT_COARSE_CLOCK, .tick_ns = 100 * KT_MS } },
	{ "freezable", { .flags = HWT_FREEZABLE, .workers = 1 } },
	{ "BH", { .flags = HWT_BH } },
	{ "256 workers", { .workers = HWT_WORKERS_MAX } },
	{ "workers with FIFO", { .workers = 2, .priority = HWT_PRIO_FIFO } },
	{ "an explicit mask of all CPUs", { .cpus = cpu_possible_mask } },
	{ "busy waiting on CPU 0", { .wait = HWT_WAIT_BUSY, .cpus = &first } },
	{ "realtime, clock_set",
	  { .clock = HWT_CLOCK_REALTIME, .clock_set = test_clock_set, .clock_set_arg = &first } },
};

/* As requested, with defaults for 0, buckets rounded up, and the tick raised to 1 ms. */
static bool __init as_asked(const struct hwt_wheel_params *made,
			    const struct hwt_wheel_params *asked)
{
	return made->tick_ns == max(asked->tick_ns, KT_MS) &&
	       made->ticks_per_wheel == roundup_pow_of_two(asked->ticks_per_wheel ?: 8192) &&
	       made->levels == (asked->levels ?: 3) && made->clock == asked->clock &&
	       made->flags == asked->flags && made->max_pending == asked->max_pending &&
	       made->workers == asked->workers && !made->cpus == !asked->cpus &&
	       (!made->cpus || made->shards == 1) &&
	       made->priority == asked->priority && made->wait == asked->wait &&
	       made->clock_set == asked->clock_set && made->clock_set_arg == asked->clock_set_arg;
}

/*
 * Read the clock of a wheel, or with @delays the time from which its delays count. The coarse
 * clock lags behind if its CPU stood still, and delays that count from it end early by as much.
 */
static u64 __init clock_ns(const struct hwt_wheel_params *params, bool delays)
{
	bool coarse = delays && (params->flags & HWT_COARSE_CLOCK);

	if (params->clock == HWT_CLOCK_REALTIME)
		return ktime_get_real_ns();
	if (params->clock == HWT_CLOCK_BOOTTIME)
		return coarse ? ktime_to_ns(ktime_get_coarse_boottime()) + TICK_NSEC :
				ktime_get_boottime_ns();
	return coarse ? ktime_get_coarse_ns() + TICK_NSEC : ktime_get_ns();
}

static void __init test_good(const char *what, const struct hwt_wheel_params *asked)
{
	static struct hwt_wheel_params made;
	const struct hwt_timeout_ops *ops;
	u64 before, between, after;
	struct kt now, soon, far;
	struct hwt_wheel *wheel;

	/* A BH wheel takes neither ->cancelled nor ->release. */
	ops = asked->flags & HWT_BH ? &kt_plain_ops : &kt_ops;
	made = *asked;
	made.name = "a name longer than is kept";
	wheel = hwt_wheel_create(&made);
	KTEST(!IS_ERR(wheel), "%s: a wheel is created", what);
	if (IS_ERR(wheel))
		return;
	hwt_wheel_get_params(wheel, &made);
	KTEST(as_asked(&made, asked), "%s: as requested, rounded: tick %llu, %u buckets, %u levels",
	      what, made.tick_ns, made.ticks_per_wheel, made.levels);
	KTEST(!strcmp(made.name, "a name longer t"), "%s: its name is truncated", what);
	before = clock_ns(&made, false);
	between = hwt_wheel_now(wheel);
	after = clock_ns(&made, false);
	KTEST(before <= between && between <= after, "%s: its time is that of its clock", what);
	kt_init(&now, wheel, ops);
	kt_init(&soon, wheel, ops);
	kt_init(&far, wheel, ops);
	hwt_schedule_at(&now.timeout, 0);
	soon.earliest = clock_ns(&made, true) + 20 * KT_MS;
	hwt_schedule(&soon.timeout, 20 * KT_MS);
	hwt_schedule(&far.timeout, 100 * 365 * 24 * KT_HOUR);
	KTEST(KT_WAIT(kt_expirations(&now) == 1), "%s: a deadline in the past fires", what);
	KTEST(made.tick_ns > KT_SECOND ||
	      KT_WAIT(kt_expirations(&soon) == 1), "%s: 20 ms fire", what);
	KTEST(!atomic_read(&soon.early), "%s: 20 ms are not early", what);
	KTEST(hwt_pending(&far.timeout) && hwt_remaining(&far.timeout) > KT_HOUR,
	      "%s: a century stays pending", what);
	KTEST(hwt_wheel_destroy(wheel) == 0, "%s: the wheel is destroyed", what);
}

/* -- Shared wheels -------------------------------------------------------- */

static const struct wanted unshared[] __initconst = {
	{ "max_pending", { .max_pending = 1 } },
	{ "cpus", { .cpus = cpu_possible_mask } },
	{ "busy waiting", { .wait = HWT_WAIT_BUSY, .cpus = &first } },
	{ "clock_set", { .clock = HWT_CLOCK_REALTIME, .clock_set = test_clock_set } },
};

static struct hwt_wheel * __init get(struct hwt_wheel_params params)
{
	struct hwt_wheel *wheel = hwt_wheel_get_shared(&params);

	return IS_ERR(wheel) ? NULL : wheel;
}

#define GET(...) get((struct hwt_wheel_params) { __VA_ARGS__ })

static const struct hwt_wheel_params different[] __initconst = {
	{ .name = "one" },
	{ .name = "one", .tick_ns = 2 * KT_MS },
	{ .name = "one", .ticks_per_wheel = 256 },
	{ .name = "one", .levels = 2 },
	{ .name = "one", .clock = HWT_CLOCK_BOOTTIME },
	{ .name = "one", .flags = HWT_COARSE_CLOCK },
	{ .name = "one", .workers = 1 },
	{ .name = "one", .workers = 2 },
	{ .name = "one", .shards = 2 },
	{ .name = "one", .shards = 3 },
	{ .name = "one", .priority = HWT_PRIO_FIFO_LOW },
	{ .name = "one", .priority = HWT_PRIO_FIFO },
};

static void __init test_different(void)
{
	struct hwt_wheel *wheel[ARRAY_SIZE(different)], *same;
	int i, j, odd = 0, others = 0;

	for (i = 0; i < ARRAY_SIZE(unshared); i++)
		shared_refused(unshared[i].what, &unshared[i].params);
	for (i = 0; i < ARRAY_SIZE(wheel); i++) {
		wheel[i] = get(different[i]);
		odd += !wheel[i];
		for (j = 0; j < i; j++)
			odd += wheel[j] == wheel[i];
	}
	KTEST(odd == 0, "each set of parameters has its own wheel");
	for (i = 0; i < ARRAY_SIZE(wheel); i++) {
		same = get(different[i]);
		others += same != wheel[i];
		if (same)
			hwt_wheel_put(same);
	}
	KTEST(others == 0, "the same parameters get the same wheel");
	for (i = 0; i < ARRAY_SIZE(wheel); i++)
		if (wheel[i])
			hwt_wheel_put(wheel[i]);
}

static void __init test_same(void)
{
	struct hwt_wheel *a, *b, *c, *d, *private;
	struct hwt_wheel_params params;
	struct kt kt;

	a = GET(.name = "first", .levels = 2);
	b = GET(.name = "second", .levels = 2);
	c = hwt_wheel_get_shared(NULL);
	d = GET(.tick_ns = KT_MS, .ticks_per_wheel = 8000, .levels = 2);
	KTEST(a && a == b, "the same parameters with another name get the same wheel");
	KTEST(c == hwt_system_wheel, "no parameters get hwt_system_wheel");
	KTEST(a == d, "explicit defaults, after rounding, get the same wheel");
	hwt_wheel_get_params(a, &params);
	KTEST(!strcmp(params.name, "first"), "the first user names the wheel");
	private = hwt_wheel_create(NULL);
	KTEST(private && private != a, "a private wheel is another wheel");
	hwt_wheel_get_params(private, &params);
	KTEST(as_asked(&params, &(struct hwt_wheel_params) { }) && !strcmp(params.name, "hwt"),
	      "it has the default parameters, and the name hwt");

	KTEST(hwt_wheel_stop(a, NULL, NULL) == -EBUSY &&
	      hwt_wheel_destroy(a) == -EBUSY && !kt_stopped(a) &&
	      hwt_wheel_stop(hwt_system_wheel, NULL, NULL) == -EBUSY &&
	      hwt_wheel_destroy(hwt_system_wheel) == -EBUSY,
	      "stop and destroy of a shared wheel and of hwt_system_wheel return -EBUSY");
	hwt_wheel_put(d);
	hwt_wheel_put(c);
	hwt_wheel_put(b);
	kt_init(&kt, a, &kt_ops);
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_releases(&kt) == 1),
	      "the wheel works until its last user puts it");
	hwt_wheel_put(a);

	a = GET(.name = "third", .levels = 2);
	hwt_wheel_get_params(a, &params);
	KTEST(!strcmp(params.name, "third") && !kt_stats(a).scheduled,
	      "after the last put, the next user gets a new wheel");
	hwt_wheel_put(a);
	hwt_wheel_destroy(private);
}

/* -- The last put, in a callback ----------------------------------------- */

static struct {
	struct kt	kt;
	bool		in_release;
	long		stop, destroy;
} last;

static void last_expire(struct hwt_timeout *timeout)
{
	struct hwt_wheel *wheel = hwt_timeout_wheel(timeout);

	last.stop = hwt_wheel_stop(wheel, NULL, NULL);
	last.destroy = hwt_wheel_destroy(wheel);
	if (!last.in_release)
		hwt_wheel_put(wheel);
	kt_expire(timeout);
}

static void last_release(struct hwt_timeout *timeout)
{
	/* The hold is over. */
	if (last.in_release)
		hwt_wheel_put(hwt_timeout_wheel(timeout));
	atomic_inc_return_release(&last.kt.released);
}

static const struct hwt_timeout_ops last_ops = { .expire = last_expire, .release = last_release };

static void __init test_last(bool in_release)
{
	struct hwt_wheel *wheel;
	int i, ok = 0;

	last.in_release = in_release;
	for (i = 0; i < 20; i++) {
		wheel = GET(.name = "last", .levels = 1);
		if (!wheel || kt_stats(wheel).scheduled)
			break;
		kt_init(&last.kt, wheel, &last_ops);
		hwt_schedule(&last.kt.timeout, 0);
		ok += KT_WAIT(atomic_read_acquire(&last.kt.released) == 1) &&
		      kt_expirations(&last.kt) == 1 &&
		      (last.stop == -EBUSY || last.stop == -EDEADLK) &&
		      (last.destroy == -EBUSY || last.destroy == -EDEADLK);
	}
	KTEST(ok == 20, "the last put is in ->%s, %d times",
	      in_release ? "release" : "expire", ok);
}

/* -- Concurrent gets and puts -------------------------------------------- */

static int comes_and_goes(void *arg)
{
	struct hwt_wheel_params params = { .name = "coming" };
	struct hwt_wheel *wheel;
	int fired = 0;
	struct kt kt;

	while (!kthread_should_stop()) {
		params.levels = 1 + fired % 2;
		wheel = hwt_wheel_get_shared(&params);
		if (IS_ERR(wheel))
			return kt_thread_end(PTR_ERR(wheel));
		kt_init(&kt, wheel, &kt_ops);
		hwt_schedule(&kt.timeout, fired % 3 ? KT_MS / 2 : KT_HOUR);
		if (fired % 3)
			KT_WAIT(kt_releases(&kt) == 1);
		hwt_shutdown_sync(&kt.timeout);
		hwt_wheel_put(wheel);
		if (kt_releases(&kt) != 1)
			return kt_thread_end(-EBADE);
		fired++;
	}
	return fired;
}

static void __init test_coming_and_going(void)
{
	struct task_struct *thread[3];
	int i, ret, least = INT_MAX;

	for (i = 0; i < 3; i++)
		thread[i] = kt_thread(comes_and_goes, NULL, i);
	msleep(500);
	for (i = 0; i < 3; i++) {
		ret = kt_thread_stop(thread[i]);
		least = min(least, ret);
	}
	KTEST(least > 0, "three threads get and put shared wheels, each at least %d times", least);
}

/* -- Puts without a reference ---------------------------------------------- */

static void __init put_warns(struct hwt_wheel *wheel)
{
	pr_info("hwt-expect-begin: module test_params puts a wheel to which it has no reference\n");
	hwt_wheel_put(wheel);
	pr_info("hwt-expect-end\n");
}

static void __init test_puts(void)
{
	struct hwt_wheel *wheel = kt_wheel("private");
	struct hwt_wheel_params params = { .name = "put", .levels = 2 };
	struct kt kt;

	put_warns(wheel);
	KTEST(!kt_stopped(wheel), "put of a private wheel only warns");
	KTEST(hwt_wheel_destroy(wheel) == 0, "the private wheel can be destroyed");

	put_warns(hwt_system_wheel);
	kt_init(&kt, hwt_system_wheel, &kt_ops);
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_releases(&kt) == 1),
	      "put of hwt_system_wheel only warns");

	/* As if another module had a reference, too. */
	wheel = __hwt_wheel_get_shared(&params, NULL);
	KTEST(hwt_wheel_get_shared(&params) == wheel, "two modules get a wheel");
	hwt_wheel_put(wheel);
	put_warns(wheel);
	KTEST(!kt_stopped(wheel), "a second put does not take the other module's reference");
	__hwt_wheel_put(wheel, NULL);
	put_warns(wheel);
	KTEST(hwt_wheel_get_shared(NULL) == hwt_system_wheel, "put of a freed wheel only warns");
	hwt_wheel_put(hwt_system_wheel);
}

static bool __init rounded(struct kt *kt, u64 at, u64 tick_ns)
{
	u64 want = div64_u64(at + tick_ns - 1, tick_ns) * tick_ns;

	hwt_schedule_at(&kt->timeout, at);
	return hwt_deadline(&kt->timeout) == want;
}

/* Deadlines are rounded up to a tick exactly, even centuries ahead. */
static void __init test_rounding(u64 tick_ns)
{
	struct hwt_wheel *wheel = kt_wheel("rounding", .tick_ns = tick_ns);
	u64 far, base = hwt_wheel_now(wheel) + KT_HOUR;
	unsigned int bit, odd = 0;
	int delta;
	struct kt kt;

	kt_init(&kt, wheel, &kt_ops);
	for (bit = 42; bit < 63; bit++) {
		far = base + (1ULL << bit);
		for (delta = -2; delta <= 2; delta++) {
			/* Close to a multiple of the tick, and close to a power of two. */
			odd += !rounded(&kt, div64_u64(far, tick_ns) * tick_ns + delta, tick_ns);
			odd += !rounded(&kt, far + delta, tick_ns);
		}
	}
	KTEST(odd == 0, "deadlines are rounded up to a tick of %llu ns", tick_ns);
	hwt_wheel_destroy(wheel);
}

static void __init selftest(void)
{
	unsigned int i;

	test_bad();
	for (i = 0; i < ARRAY_SIZE(good); i++)
		test_good(good[i].what, &good[i].params);
	test_different();
	test_same();
	test_last(false);
	test_last(true);
	test_coming_and_going();
	test_puts();
	test_rounding(KT_MS);
	test_rounding(KT_MS + 1);
	test_rounding(1 << 20);
	test_rounding((1 << 20) + 1);
	test_rounding(7654321);
	test_rounding(KT_SECOND);
}

KSTM_MODULE_LOADERS(test_params);
