// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared wheels: one for each set of parameters, for as long as somebody uses it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

static struct hwt_wheel * __init get(struct hwt_wheel_params params)
{
	struct hwt_wheel *wheel = hwt_wheel_get_shared(&params);

	return IS_ERR(wheel) ? NULL : wheel;
}

#define GET(...) get((struct hwt_wheel_params) { __VA_ARGS__ })

static void __init test_same(void)
{
	struct hwt_wheel *a, *b, *c, *d, *private;
	struct hwt_wheel_params params;
	struct kt kt;

	a = GET(.name = "first");
	b = GET(.name = "second");
	c = hwt_wheel_get_shared(NULL);
	d = GET(.tick_ns = KT_MS, .ticks_per_wheel = 500, .levels = 3);
	KTEST(a && a == b, "the same parameters give the same wheel, whatever its name");
	KTEST(a == c, "no parameters are the defaults");
	KTEST(a == d, "and so are the defaults by name, after rounding");
	hwt_wheel_get_params(a, &params);
	KTEST(!strcmp(params.name, "first"), "it has its first user's name");
	private = hwt_wheel_create(NULL);
	KTEST(private && private != a, "a private wheel is another one");

	KTEST(hwt_wheel_stop(a, NULL, NULL) == -EBUSY &&
	      hwt_wheel_destroy(a) == -EBUSY && !hwt_wheel_stopped(a),
	      "stop and destroy of a shared wheel are refused");
	hwt_wheel_put(d);
	hwt_wheel_put(c);
	hwt_wheel_put(b);
	kt_init(&kt, a, &kt_ops);
	KTEST(hwt_schedule(&kt.timeout, 0) == 0 && KT_WAIT(kt_releases(&kt) == 1),
	      "it works for as long as one user is left");
	KTEST(!hwt_wheel_stopped(a), "and is not stopped");
	hwt_wheel_put(a);

	a = GET(.name = "third");
	hwt_wheel_get_params(a, &params);
	KTEST(!strcmp(params.name, "third") && hwt_wheel_state(a) == HWT_INIT,
	      "after the last user left, it is a new one");
	hwt_wheel_put(a);
	hwt_wheel_destroy(private);
}

static void __init test_different(void)
{
	struct hwt_wheel *wheel[6];
	int i, j, odd = 0;

	wheel[0] = GET(.name = "one");
	wheel[1] = GET(.name = "one", .tick_ns = 2 * KT_MS);
	wheel[2] = GET(.name = "one", .ticks_per_wheel = 256);
	wheel[3] = GET(.name = "one", .levels = 2);
	wheel[4] = GET(.name = "one", .clock = HWT_CLOCK_BOOTTIME);
	wheel[5] = GET(.name = "one", .flags = HWT_COARSE_CLOCK);
	for (i = 0; i < 6; i++)
		for (j = 0; j <= i; j++)
			odd += !wheel[i] || (i != j && wheel[i] == wheel[j]);
	KTEST(odd == 0, "each parameter makes a difference");
	for (i = 0; i < 6; i++)
		hwt_wheel_put(wheel[i]);
	KTEST(!GET(.max_pending = 1), "a limit is for private wheels");
}

/* -- The last user leaves in a callback ---------------------------------- */

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
	/* By now nothing of it is held. */
	if (last.in_release)
		hwt_wheel_put(hwt_timeout_wheel(timeout));
	atomic_inc_return_release(&last.kt.released);
}

static const struct hwt_ops last_ops = {
	.expire		= last_expire,
	.release	= last_release,
};

static void __init test_last(bool in_release)
{
	struct hwt_wheel *wheel;
	int i, ok = 0;

	last.in_release = in_release;
	for (i = 0; i < 20; i++) {
		wheel = GET(.name = "last", .levels = 1);
		if (!wheel || hwt_wheel_state(wheel) != HWT_INIT)
			break;
		kt_init(&last.kt, wheel, &last_ops);
		hwt_schedule(&last.kt.timeout, 0);
		ok += KT_WAIT(atomic_read_acquire(&last.kt.released) == 1) &&
		      kt_expirations(&last.kt) == 1 &&
		      (last.stop == -EBUSY || last.stop == -EDEADLK) &&
		      (last.destroy == -EBUSY || last.destroy == -EDEADLK);
	}
	KTEST(ok == 20, "the last user leaves in ->%s, %d times",
	      in_release ? "release" : "expire", ok);
}

/* -- Coming and going ---------------------------------------------------- */

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
	msleep(kt_quick() ? 1000 : 3000);
	for (i = 0; i < 3; i++) {
		ret = kt_thread_stop(thread[i]);
		least = min(least, ret);
	}
	KTEST(least > 0, "three users come and go: %d times", least);
}

/* -- What is not shared cannot be given back ----------------------------- */

static void __init test_private(void)
{
	struct hwt_wheel *wheel = kt_wheel("private");

	pr_info("hwt-expect-begin: WARNING: .* hwt_wheel_put\n");
	hwt_wheel_put(wheel);
	pr_info("hwt-expect-end\n");
	KTEST(!hwt_wheel_stopped(wheel), "put of a private wheel: a warning, nothing else");
	KTEST(hwt_wheel_destroy(wheel) == 0, "it can be destroyed");
}

static void __init selftest(void)
{
	test_same();
	test_different();
	test_last(false);
	test_last(true);
	test_coming_and_going();
	test_private();
}

KSTM_MODULE_LOADERS(test_shared);
MODULE_DESCRIPTION("hwt: shared wheels");
MODULE_LICENSE("GPL");
