// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of the shared wheel whose objects have reference counts. Its exit cancels the timeouts
 * and relies on hwt_wheel_barrier(). Run by module-barrier.sh.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "hwt_ktest_util.h"

static unsigned int workers;
module_param(workers, uint, 0444);	/* as kt_client's, to get the same shared wheel */

struct object {
	struct hwt_timeout	timeout;
	refcount_t		refs;
};

static struct hwt_wheel *wheel;
static struct object *objects[50];
static atomic_t live;

static void object_put(struct object *object)
{
	if (refcount_dec_and_test(&object->refs)) {
		kfree(object);
		atomic_dec(&live);
	}
}

static void unloader_expire(struct hwt_timeout *timeout)
{
	usleep_range(500, 1000);
}

/* Executes code of this module after the object is freed. */
static void unloader_release(struct hwt_timeout *timeout)
{
	object_put(container_of(timeout, struct object, timeout));
	usleep_range(100, 200);
}

static const struct hwt_timeout_ops unloader_ops = {
	.expire = unloader_expire, .release = unloader_release,
};

static void __exit unloader_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		hwt_cancel(&objects[i]->timeout);
		object_put(objects[i]);
	}
	hwt_wheel_barrier(wheel);
	if (atomic_read(&live))
		pr_err("%d objects are left behind the barrier\n", atomic_read(&live));
	/* Keep the guest alive after a failure: the releases need the code of this module. */
	while (atomic_read(&live))
		msleep(100);
	hwt_wheel_put(wheel);
}

static int __init unloader_init(void)
{
	struct hwt_wheel_params params = { .workers = workers };
	unsigned int i;

	wheel = hwt_wheel_get_shared(&params);
	if (IS_ERR(wheel))
		return PTR_ERR(wheel);
	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		objects[i] = kzalloc(sizeof(*objects[i]), GFP_KERNEL | __GFP_NOFAIL);
		atomic_inc(&live);
		/* One reference for objects[], one for the hold. */
		refcount_set(&objects[i]->refs, 2);
		hwt_timeout_init(&objects[i]->timeout, wheel, &unloader_ops);
		hwt_schedule(&objects[i]->timeout, i % 3 ? KT_HOUR : 0);
	}
	return 0;
}
module_init(unloader_init);
module_exit(unloader_exit);

MODULE_DESCRIPTION("hwt: a client that unloads after a barrier");
MODULE_LICENSE("GPL");
