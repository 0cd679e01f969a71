// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client for scripts: creates wheels, and keeps timeouts on them while it is loaded. See
 * the parameters.
 */
#include <linux/module.h>

#include "hwt_ktest_util.h"

static unsigned int wheels = 1;
module_param(wheels, uint, 0444);	/* number of wheels */

static bool shared;
module_param(shared, bool, 0444);	/* get the shared wheel instead of creating one */

static unsigned int tick_us;
module_param(tick_us, uint, 0444);	/* their tick, 0: hwt's default */

static unsigned int buckets;
module_param(buckets, uint, 0444);	/* their buckets, 0: hwt's default */

static unsigned int levels;
module_param(levels, uint, 0444);	/* their levels, 0: hwt's default */

static unsigned int armed;
module_param(armed, uint, 0444);	/* timeouts on each wheel that are due in an hour */

static unsigned int busy;
module_param(busy, uint, 0444);
MODULE_PARM_DESC(busy, "Timeouts on each wheel that arm themselves again, and that a thread moves");

static unsigned int slow_ms;
module_param(slow_ms, uint, 0444);	/* duration of each callback */

static bool self;
module_param(self, bool, 0444);		/* each callback calls hwt_cancel_sync() for its timeout */

static unsigned int workers;
module_param(workers, uint, 0444);	/* threads of each wheel that run callbacks */

struct client_wheel {
	struct hwt_wheel	*wheel;
	struct hwt_timeout	*timeouts;
	struct task_struct	*thread;
};

static struct client_wheel *clients;

static void client_expire(struct hwt_timeout *timeout)
{
	if (slow_ms)
		msleep(slow_ms);
	if (self)
		hwt_cancel_sync(timeout);
	hwt_schedule(timeout, NSEC_PER_MSEC);
}

static int client_thread(void *arg)
{
	struct client_wheel *client = arg;
	unsigned int i = 0;

	while (!kthread_should_stop()) {
		hwt_schedule(&client->timeouts[i % busy], i % 3 * NSEC_PER_MSEC);
		hwt_cancel(&client->timeouts[(i + 1) % busy]);
		if (i++ % 64 == 0)
			usleep_range(100, 1000);
	}
	return 0;
}

static int client_start(struct client_wheel *client, unsigned int number)
{
	struct hwt_wheel_params params = {
		.tick_ns = tick_us * (u64)NSEC_PER_USEC,
		.ticks_per_wheel = buckets,
		.levels = levels,
		.workers = workers,
	};
	char name[HWT_NAME_MAX];
	unsigned int i;

	snprintf(name, sizeof(name), "client%u", number);
	params.name = name;
	client->wheel = shared ? hwt_wheel_get_shared(&params) :
				 hwt_wheel_create(&params);
	if (IS_ERR(client->wheel))
		return PTR_ERR(client->wheel);
	hwt_wheel_get_params(client->wheel, &params);
	if (number == 0)
		pr_info("a wheel has ticks of %llu us, %u buckets, %u levels\n",
			div_u64(params.tick_ns, NSEC_PER_USEC), params.ticks_per_wheel,
			params.levels);
	client->timeouts = kt_alloc(max(busy + armed, 1U), sizeof(*client->timeouts));
	for (i = 0; i < busy + armed; i++) {
		hwt_timeout_setup(&client->timeouts[i], client->wheel, client_expire);
		hwt_schedule(&client->timeouts[i], i < busy ? i * NSEC_PER_USEC : KT_HOUR);
	}
	if (busy)
		client->thread = kt_thread(client_thread, client, number);
	return PTR_ERR_OR_ZERO(client->thread);
}

static void client_end(struct client_wheel *client)
{
	unsigned int i;

	if (IS_ERR_OR_NULL(client->wheel))
		return;
	kt_thread_stop(client->thread);
	/* A shared wheel keeps running; destroying a private wheel cancels its timeouts. */
	for (i = 0; i < busy + armed && shared; i++)
		hwt_shutdown_sync(&client->timeouts[i]);
	if (shared)
		hwt_wheel_put(client->wheel);
	else
		hwt_wheel_destroy(client->wheel);
	vfree(client->timeouts);
}

static void kt_client_exit(void)
{
	unsigned int i;

	for (i = 0; i < wheels; i++)
		client_end(&clients[i]);
	vfree(clients);
}

static int __init kt_client_init(void)
{
	unsigned int i;
	int ret;

	clients = kt_alloc(wheels, sizeof(*clients));
	for (i = 0; i < wheels; i++) {
		ret = client_start(&clients[i], i);
		if (ret) {
			kt_client_exit();
			return ret;
		}
	}
	return 0;
}

module_init(kt_client_init);
module_exit(kt_client_exit);
MODULE_DESCRIPTION("hwt: a client for the scripts of the tests");
MODULE_LICENSE("GPL");
