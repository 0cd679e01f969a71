// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a callback must not wait for: -EDEADLK, and nothing has changed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "hwt.h"
#include "hwt_ktest.h"
#include "hwt_ktest_util.h"

KSTM_MODULE_GLOBALS();

struct tried {
	int	cancel_sync, shutdown_sync, destroy;
	long	stop;
	int	times;
};

static struct tried in_expire, in_cancelled, in_release, in_handback;

static void try_all(struct hwt_timeout *timeout, struct tried *tried)
{
	struct hwt_wheel *wheel = hwt_timeout_wheel(timeout);

	tried->times++;
	tried->cancel_sync = hwt_cancel_sync(timeout);
	tried->shutdown_sync = hwt_shutdown_sync(timeout);
	tried->stop = hwt_wheel_stop(wheel, NULL, NULL);
	tried->destroy = hwt_wheel_destroy(wheel);
}

static bool __init refused(const struct tried *tried)
{
	return tried->times == 1 && tried->cancel_sync == -EDEADLK &&
	       tried->shutdown_sync == -EDEADLK && tried->stop == -EDEADLK &&
	       tried->destroy == -EDEADLK;
}

static void dead_expire(struct hwt_timeout *timeout)
{
	try_all(timeout, &in_expire);
	kt_expire(timeout);
}

static void dead_cancelled(struct hwt_timeout *timeout)
{
	try_all(timeout, &in_cancelled);
	kt_cancelled(timeout);
}

static void dead_release(struct hwt_timeout *timeout)
{
	if (in_release.times == 0)
		try_all(timeout, &in_release);
	kt_release(timeout);
}

static void dead_handback(struct hwt_timeout *timeout, void *arg)
{
	try_all(timeout, &in_handback);
}

static const struct hwt_ops dead_ops = {
	.expire		= dead_expire,
	.cancelled	= dead_cancelled,
	.release	= dead_release,
};

static void __init selftest(void)
{
	struct hwt_wheel *wheel = kt_wheel("deadlock");
	struct kt kt, bystander;

	kt_init(&kt, wheel, &dead_ops);
	kt_init(&bystander, wheel, &kt_ops);
	kt_schedule(&bystander, KT_HOUR);

	kt_schedule(&kt, 0);
	KTEST(KT_WAIT(kt_releases(&kt) == 1) && refused(&in_expire),
	      "_sync on oneself, stop and destroy from ->expire: %d %d %ld %d",
	      in_expire.cancel_sync, in_expire.shutdown_sync, in_expire.stop,
	      in_expire.destroy);
	KTEST(refused(&in_release), "from ->release: %d %d %ld %d",
	      in_release.cancel_sync, in_release.shutdown_sync, in_release.stop,
	      in_release.destroy);
	KTEST(hwt_expired(&kt.timeout) && !hwt_cancelled(&kt.timeout) &&
	      !hwt_wheel_stopped(wheel) && hwt_pending(&bystander.timeout),
	      "nothing has changed");

	kt_schedule(&kt, KT_HOUR);
	hwt_cancel(&kt.timeout);
	KTEST(KT_WAIT(kt_releases(&kt) == 2) && refused(&in_cancelled),
	      "from ->cancelled on the wheel's thread: %d %d %ld %d",
	      in_cancelled.cancel_sync, in_cancelled.shutdown_sync,
	      in_cancelled.stop, in_cancelled.destroy);
	in_cancelled.times = 0;
	in_release.times = 0;
	kt_schedule(&kt, KT_HOUR);
	KTEST(hwt_cancel_sync(&kt.timeout) == 1 && kt_releases(&kt) == 3 &&
	      refused(&in_cancelled) && refused(&in_release),
	      "from ->cancelled and ->release in cancel_sync");
	KTEST(hwt_schedule(&kt.timeout, KT_HOUR) == 0, "it is not shut down");
	KTEST(hwt_wheel_stop(wheel, dead_handback, NULL) == 2,
	      "the wheel stops, with two pending");
	KTEST(in_handback.times == 2 && in_handback.cancel_sync == -EDEADLK &&
	      in_handback.shutdown_sync == -EDEADLK &&
	      in_handback.stop == -EDEADLK && in_handback.destroy == -EDEADLK,
	      "from a stop's own function: %d %d %ld %d",
	      in_handback.cancel_sync, in_handback.shutdown_sync,
	      in_handback.stop, in_handback.destroy);
	KTEST(hwt_wheel_destroy(wheel) == 0, "the wheel is destroyed");
}

KSTM_MODULE_LOADERS(test_deadlock);
MODULE_DESCRIPTION("hwt: what a callback must not wait for");
MODULE_LICENSE("GPL");
