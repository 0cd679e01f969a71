// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that are sent again, with exponential back-off, until they succeed or a limit is
 * reached.
 *
 * This shows a timeout that its own callback schedules again, with growing delays; timeouts without
 * reference counts and ->release, which hwt_shutdown_sync() ends for good before their memory is
 * freed; a shared wheel.
 *
 * There is no real network: an attempt fails or succeeds as the parameters say.
 * State in debugfs, hwt_retry/:
 *
 *   requests   a line for each request: its outcome, and how long it waited before each retry, in
 *              microseconds
 *   cancel     write the number of a request to cancel it
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/time64.h>

#include "hwt.h"

#define RETRY_REQUESTS_MAX	1000
#define RETRY_LIMIT_MAX		16
#define RETRY_FAILS_MAX		16
#define RETRY_DELAY_MAX_MS	(24 * 60 * 60 * 1000)

static unsigned int requests = 4;
module_param(requests, uint, 0444);
MODULE_PARM_DESC(requests, "number of requests, 1 to 1000 (default 4)");

static unsigned int base_ms = 50;
module_param(base_ms, uint, 0444);
MODULE_PARM_DESC(base_ms, "delay before the first retry, doubled for each further one (default 50)");

static unsigned int max_ms = 10000;
module_param(max_ms, uint, 0444);
MODULE_PARM_DESC(max_ms, "longest delay between two attempts (default 10000)");

static unsigned int limit = 4;
module_param(limit, uint, 0444);
MODULE_PARM_DESC(limit, "retries before a request is given up, 1 to 16 (default 4)");

static unsigned int jitter_pct = 10;
module_param(jitter_pct, uint, 0444);
MODULE_PARM_DESC(jitter_pct, "percent by which a delay is shortened at random, at most, 0 to 100 (default 10)");

static unsigned int fails[RETRY_FAILS_MAX] = { 0, 1, 3, 99 };
static int fails_count = 4;
module_param_array(fails, uint, &fails_count, 0444);
MODULE_PARM_DESC(fails, "attempts of each request that fail, repeated over the requests (default 0,1,3,99)");

enum retry_outcome {
	RETRY_WAITING,
	RETRY_SUCCEEDED,
	RETRY_GIVEN_UP,
	RETRY_CANCELLED,
};

static const char * const retry_outcome_names[] = {
	[RETRY_WAITING]		= "waiting",
	[RETRY_SUCCEEDED]		= "succeeded",
	[RETRY_GIVEN_UP]	= "given-up",
	[RETRY_CANCELLED]	= "cancelled",
};

/**
 * struct retry_request - a request and its retries
 * @timeout:   waits for the next attempt
 * @fails:     attempts that will fail, for the simulation
 * @cancelled: the request was cancelled; may be set at any time
 * @lock:      protects what follows
 * @outcome:   RETRY_WAITING, or how it ended
 * @attempts:  number of times that it was sent
 * @began_ns:  when the latest wait began
 * @waited_ns: length of the wait before each retry
 */
struct retry_request {
	struct hwt_timeout	timeout;
	unsigned int		fails;
	bool			cancelled;
	struct mutex		lock;		/* protects what follows */
	enum retry_outcome	outcome;
	unsigned int		attempts;
	u64			began_ns;
	u64			waited_ns[RETRY_LIMIT_MAX];
};

static struct retry_request *retry_table;
static struct hwt_wheel *retry_wheel;
static struct dentry *retry_dir;
static bool retry_stopped;

static unsigned int retry_id(const struct retry_request *request)
{
	return request - retry_table;
}

static void retry_finish(struct retry_request *request, enum retry_outcome outcome)
{
	request->outcome = outcome;
	pr_info("request %u: %s after %u attempts\n", retry_id(request),
		retry_outcome_names[outcome], request->attempts);
}

/*
 * Return the delay before a retry, ns: twice the delay before the previous retry, up to max_ms. The
 * jitter shortens it at random, so that requests that failed together are not sent together again.
 */
static u64 retry_delay(unsigned int retries)
{
	u64 delay_ns = min((u64)base_ms << retries, (u64)max_ms) * NSEC_PER_MSEC;
	u64 jitter_ns = div_u64(delay_ns * jitter_pct, 100);

	return delay_ns - mul_u64_u32_shr(jitter_ns, get_random_u32(), 32);
}

/* Send the request; if that fails, wait for the next attempt or give up. */
static void retry_attempt(struct retry_request *request)
{
	unsigned int retries = request->attempts;

	lockdep_assert_held(&request->lock);

	if (request->attempts++ >= request->fails) {
		retry_finish(request, RETRY_SUCCEEDED);
		return;
	}
	if (retries >= limit) {
		retry_finish(request, RETRY_GIVEN_UP);
		return;
	}
	request->began_ns = hwt_wheel_now(retry_wheel);
	/* A schedule fails after the timeout was shut down. */
	if (hwt_schedule(&request->timeout, retry_delay(retries)) < 0)
		retry_finish(request, RETRY_CANCELLED);
}

static void retry_expire(struct hwt_timeout *timeout)
{
	struct retry_request *request =
		container_of(timeout, struct retry_request, timeout);

	mutex_lock(&request->lock);
	request->waited_ns[request->attempts - 1] = hwt_wheel_now(retry_wheel) -
						    request->began_ns;
	/*
	 * A cancel that comes while this callback runs finds nothing to cancel: check here whether
	 * the request was cancelled.
	 */
	if (READ_ONCE(retry_stopped) || READ_ONCE(request->cancelled))
		retry_finish(request, RETRY_CANCELLED);
	else
		retry_attempt(request);
	mutex_unlock(&request->lock);
}

static void retry_dropped(struct hwt_timeout *timeout)
{
	struct retry_request *request =
		container_of(timeout, struct retry_request, timeout);

	mutex_lock(&request->lock);
	retry_finish(request, RETRY_CANCELLED);
	mutex_unlock(&request->lock);
}

static const struct hwt_timeout_ops retry_ops = {
	.expire		= retry_expire,
	.cancelled	= retry_dropped,
};

static void retry_start(struct retry_request *request)
{
	mutex_init(&request->lock);
	hwt_timeout_init(&request->timeout, retry_wheel, &retry_ops);
	request->fails = fails[retry_id(request) % fails_count];
	mutex_lock(&request->lock);
	retry_attempt(request);
	mutex_unlock(&request->lock);
}

static int retry_requests_show(struct seq_file *seq, void *unused)
{
	struct retry_request *request;
	unsigned int i;

	seq_puts(seq, "request  attempts  outcome    waits (us)\n");
	for (request = retry_table; request < retry_table + requests; request++) {
		mutex_lock(&request->lock);
		seq_printf(seq, "%-8u %-9u %-9s ", retry_id(request),
			   request->attempts, retry_outcome_names[request->outcome]);
		for (i = 0; i < RETRY_LIMIT_MAX && request->waited_ns[i]; i++)
			seq_printf(seq, " %lld", ktime_to_us(request->waited_ns[i]));
		seq_putc(seq, '\n');
		mutex_unlock(&request->lock);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(retry_requests);

static ssize_t retry_cancel_write(struct file *file, const char __user *buffer,
				  size_t size, loff_t *pos)
{
	struct retry_request *request;
	unsigned int id;
	int err;

	err = kstrtouint_from_user(buffer, size, 10, &id);
	if (err)
		return err;
	if (id >= requests)
		return -ENOENT;
	request = &retry_table[id];
	WRITE_ONCE(request->cancelled, true);
	hwt_cancel(&request->timeout);	/* retry_dropped() follows if it was pending */
	return size;
}

static const struct file_operations retry_cancel_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= retry_cancel_write,
};

static int __init retry_check(void)
{
	if (requests < 1 || requests > RETRY_REQUESTS_MAX) {
		pr_err("requests=%u is not in 1..%u\n", requests, RETRY_REQUESTS_MAX);
		return -EINVAL;
	}
	if (limit < 1 || limit > RETRY_LIMIT_MAX) {
		pr_err("limit=%u is not in 1..%u\n", limit, RETRY_LIMIT_MAX);
		return -EINVAL;
	}
	if (jitter_pct > 100) {
		pr_err("jitter_pct=%u is not in 0..100\n", jitter_pct);
		return -EINVAL;
	}
	if (base_ms < 1 || base_ms > RETRY_DELAY_MAX_MS) {
		pr_err("base_ms=%u is not in 1..%u\n", base_ms, RETRY_DELAY_MAX_MS);
		return -EINVAL;
	}
	if (max_ms < base_ms || max_ms > RETRY_DELAY_MAX_MS) {
		pr_err("max_ms=%u is not in base_ms..%u\n", max_ms, RETRY_DELAY_MAX_MS);
		return -EINVAL;
	}
	return 0;
}

static int __init retry_init(void)
{
	int err = retry_check();
	unsigned int i;

	if (err)
		return err;

	retry_wheel = hwt_wheel_get_shared(NULL);
	if (IS_ERR(retry_wheel))
		return PTR_ERR(retry_wheel);

	retry_table = kvcalloc(requests, sizeof(*retry_table), GFP_KERNEL);
	if (!retry_table) {
		hwt_wheel_put(retry_wheel);
		return -ENOMEM;
	}

	for (i = 0; i < requests; i++)
		retry_start(&retry_table[i]);

	/* Ignore errors: the module works without debugfs. */
	retry_dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("requests", 0444, retry_dir, NULL, &retry_requests_fops);
	debugfs_create_file("cancel", 0200, retry_dir, NULL, &retry_cancel_fops);
	return 0;
}
module_init(retry_init);

static void __exit retry_exit(void)
{
	unsigned int i;

	/* Waits for accesses in progress. No request is shown or cancelled from here on. */
	debugfs_remove_recursive(retry_dir);
	WRITE_ONCE(retry_stopped, true);
	/* From here on, a schedule by the callback fails. */
	for (i = 0; i < requests; i++)
		hwt_shutdown_sync(&retry_table[i].timeout);
	kvfree(retry_table);
	hwt_wheel_put(retry_wheel);
}
module_exit(retry_exit);

MODULE_AUTHOR("The hwt project");
MODULE_DESCRIPTION("hwt sample: requests retried with exponential back-off");
MODULE_LICENSE("GPL");
