// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a wheel's thread that waits busily looks after beside its timeouts: params.poll.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/preempt.h>

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

/**
 * struct poller - what is polled for
 * @kt:    armed by @poll when it is wanted
 * @calls: how many there were
 * @odd:   calls that were not as they should be
 * @want:  set by the test, cleared by the call that arms @kt
 * @task:  who calls
 * @wheel: to be flushed and stopped, from the next call, which clears it
 * @flush: what that returned
 * @stop:  the same
 */
struct poller {
	struct kt		kt;
	atomic_long_t		calls;
	atomic_t		odd;
	atomic_t		want;
	struct task_struct	*task;
	struct hwt_wheel	*wheel;
	int			flush, stop;
};

static void poll(void *arg)
{
	struct poller *poller = arg;
	/* Pairs with test_polled(). */
	struct hwt_wheel *wheel = xchg(&poller->wheel, NULL);

	if (!poller->task)
		poller->task = current;
	if (poller->task != current || !(current->flags & PF_KTHREAD) ||
	    in_interrupt() || irqs_disabled())
		atomic_inc(&poller->odd);
	/* It may sleep. */
	might_sleep();
	if (atomic_cmpxchg(&poller->want, 1, 0) == 1)
		hwt_schedule(&poller->kt.timeout, 5 * KT_MS);
	if (wheel) {
		poller->flush = hwt_wheel_flush(wheel);
		poller->stop = hwt_wheel_stop(wheel, NULL, NULL);
	}
	atomic_long_inc_return_release(&poller->calls);
}

static void __init test_refused(void)
{
	struct hwt_wheel_params params = { .name = "refused", .poll = poll };
	struct hwt_wheel *wheel;

	wheel = hwt_wheel_create(&params);
	KTEST(PTR_ERR_OR_ZERO(wheel) == -EINVAL, "create refuses it if the thread sleeps");
	wheel = hwt_wheel_get_shared(&params);
	KTEST(PTR_ERR_OR_ZERO(wheel) == -EINVAL, "get_shared refuses it");
	params.wait = HWT_WAIT_BUSY;
	params.cpus = cpumask_of(0);
	wheel = hwt_wheel_get_shared(&params);
	KTEST(PTR_ERR_OR_ZERO(wheel) == -EINVAL, "get_shared refuses it with its wheel too");
}

/* So many calls more. */
static bool polled(struct poller *poller, long more)
{
	long before = atomic_long_read_acquire(&poller->calls);

	return KT_WAIT(atomic_long_read_acquire(&poller->calls) - before >= more);
}

static struct poller poller;

static void __init test_polled(void)
{
	struct hwt_wheel_params params = {
		.name		= "polled",
		.cpus		= cpumask_of(cpumask_last(cpu_online_mask)),
		.wait		= HWT_WAIT_BUSY,
		.poll		= poll,
		.poll_arg	= &poller,
	}, got;
	struct hwt_wheel *wheel = hwt_wheel_create(&params);
	struct kt kt;
	long calls;
	int i;

	KTEST(!IS_ERR(wheel), "a wheel that polls");
	if (IS_ERR(wheel))
		return;
	hwt_wheel_get_params(wheel, &got);
	KTEST(got.poll == poll && got.poll_arg == &poller, "its parameters tell");
	KTEST(polled(&poller, 1000), "called again and again while nothing is pending");

	kt_init(&kt, wheel, &kt_ops);
	hwt_schedule(&kt.timeout, KT_HOUR);
	KTEST(polled(&poller, 1000), "... while something is");
	for (i = 0; i < 20; i++) {
		hwt_schedule(&kt.timeout, 2 * KT_MS);
		if (!KT_WAIT(kt_expirations(&kt) == i + 1))
			break;
	}
	KTEST(i == 20, "timeouts fire meanwhile");
	KTEST(polled(&poller, 1000), "... and it is still called");

	kt_init(&poller.kt, wheel, &kt_ops);
	for (i = 0; i < 20; i++) {
		atomic_set(&poller.want, 1);
		if (!KT_WAIT(kt_expirations(&poller.kt) == i + 1))
			break;
	}
	KTEST(i == 20, "what it schedules fires");
	/* Pairs with poll(). */
	xchg(&poller.wheel, wheel);
	KTEST(polled(&poller, 2) && poller.flush == -EDEADLK && poller.stop == -EDEADLK,
	      "it cannot flush or stop the wheel: %d, %d", poller.flush, poller.stop);
	KTEST(!hwt_cancel(&kt.timeout) && polled(&poller, 1), "called after all that");

	KTEST(hwt_wheel_destroy(wheel) == 0, "destroyed");
	calls = atomic_long_read(&poller.calls);
	msleep(50);
	KTEST(atomic_long_read(&poller.calls) == calls, "not called after that");
	KTEST(!atomic_read(&poller.odd), "always on one thread of the kernel, in process context");
}

static void __init selftest(void)
{
	test_refused();
	test_polled();
}

KSTM_MODULE_LOADERS(test_poll);
MODULE_DESCRIPTION("hwt: what a thread that waits busily polls");
MODULE_LICENSE("GPL");
