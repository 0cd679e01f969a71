// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recipes of docs/recipes.md that the other samples do not use: changes are saved after
 * a quiet time (debounce), a device cancels all of its requests when it is removed (group),
 * and a message is logged after a delay (a timeout that is not embedded).
 *
 * There is no real device. The log shows what happens.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/time64.h>

#include "hwt.h"

static unsigned int changes = 10;
module_param(changes, uint, 0444);
MODULE_PARM_DESC(changes, "changes made while it is loaded (default 10)");

static unsigned int requests = 10;
module_param(requests, uint, 0444);
MODULE_PARM_DESC(requests, "requests that are never answered (default 10)");

static struct hwt_wheel *cook_wheel;

/* -- Debounce ------------------------------------------------------------- */

/* Save when nothing has changed for 100 ms, but at most a second after the first change. */
static struct hwt_debounce cook_quiet = {
	.quiet_ns	= 100 * NSEC_PER_MSEC,
	.most_ns	= NSEC_PER_SEC,
};

static unsigned int cook_unsaved;
static DEFINE_SPINLOCK(cook_lock);	/* protects cook_unsaved and cook_quiet */

static void cook_save_expire(struct hwt_timeout *timeout)
{
	unsigned int n;

	spin_lock(&cook_lock);
	n = cook_unsaved;
	cook_unsaved = 0;
	spin_unlock(&cook_lock);
	pr_info("saved %u changes\n", n);
}

static const struct hwt_timeout_ops cook_save_ops = { .expire = cook_save_expire };

static struct hwt_timeout cook_save = HWT_TIMEOUT_INIT(cook_save, &cook_save_ops);

static void cook_change(void)
{
	spin_lock(&cook_lock);
	cook_unsaved++;
	hwt_debounce(&cook_save, &cook_quiet);
	spin_unlock(&cook_lock);
}

/* -- A group --------------------------------------------------------------- */

/* A request has a reference until it ends, and one for the hold of its timeout. */
struct cook_request {
	struct kref		ref;
	struct hwt_timeout	timeout;
	struct hwt_member	member;
};

static struct hwt_group cook_requests;
static atomic_t cook_freed;

static struct cook_request *cook_request_of(struct hwt_timeout *timeout)
{
	return container_of(timeout, struct cook_request, timeout);
}

static void cook_request_free(struct kref *ref)
{
	struct cook_request *request = container_of(ref, struct cook_request, ref);

	hwt_group_leave(&cook_requests, &request->member);
	atomic_inc(&cook_freed);
	kfree(request);
}

/* Return false if the request is being freed, and has yet to leave the group. */
static bool cook_request_get(struct hwt_timeout *timeout)
{
	return kref_get_unless_zero(&cook_request_of(timeout)->ref);
}

static void cook_request_put(struct hwt_timeout *timeout)
{
	kref_put(&cook_request_of(timeout)->ref, cook_request_free);
}

/* End a request, because it took too long or was cancelled: put its first reference. */
static void cook_request_end(struct hwt_timeout *timeout)
{
	cook_request_put(timeout);
}

static const struct hwt_timeout_ops cook_request_ops = {
	.expire		= cook_request_end,
	.cancelled	= cook_request_end,
	.release	= cook_request_put,
};

static int cook_request_send(void)
{
	struct cook_request *request = kmalloc(sizeof(*request), GFP_KERNEL);

	if (!request)
		return -ENOMEM;
	kref_init(&request->ref);
	hwt_timeout_init(&request->timeout, cook_wheel, &cook_request_ops);
	hwt_group_join(&cook_requests, &request->member, &request->timeout);
	kref_get(&request->ref);
	/* Not held, not shut down, on a wheel that is not stopped: cannot fail. */
	hwt_schedule(&request->timeout, 30ULL * NSEC_PER_SEC);
	return 0;
}

/* -- A timeout that is not embedded ---------------------------------------- */

static struct hwt_handle *cook_note;

static void cook_note_fn(struct hwt_handle *handle)
{
	pr_info("%s\n", (const char *)handle->data);
}

static int cook_note_write(void)
{
	cook_note = hwt_new_timeout(cook_wheel, hwt_msecs(200), cook_note_fn, NULL,
				    "200 ms have passed", GFP_KERNEL);
	return PTR_ERR_OR_ZERO(cook_note);
}

/* Drop the note. Afterwards cook_note_fn() is not executing, whether or not it was called. */
static void cook_note_drop(void)
{
	hwt_cancel_sync(&cook_note->timeout);
	hwt_handle_put(cook_note);
}

/* -- Initialisation and exit ------------------------------------------------- */

static void cook_requests_end(void)
{
	u64 n = hwt_group_shutdown_sync(&cook_requests);

	/* The group skips a member that is being freed: wait for its release. */
	hwt_wheel_barrier(cook_wheel);
	pr_info("%llu of %u requests were pending\n", n, requests);
}

static void cook_go(void)
{
	cook_requests_end();
	hwt_shutdown_sync(&cook_save);
	hwt_wheel_put(cook_wheel);
}

static int __init cook_init(void)
{
	unsigned int i;
	int err = 0;

	cook_wheel = hwt_wheel_get_shared(NULL);
	if (IS_ERR(cook_wheel))
		return PTR_ERR(cook_wheel);
	hwt_timeout_set_wheel(&cook_save, cook_wheel);
	hwt_group_init(&cook_requests, cook_request_get, cook_request_put);
	for (i = 0; i < requests && !err; i++)
		err = cook_request_send();
	if (!err)
		err = cook_note_write();
	if (err) {
		cook_go();
		return err;
	}
	for (i = 0; i < changes; i++) {
		cook_change();
		usleep_range(1000, 2000);
	}
	return 0;
}
module_init(cook_init);

static void __exit cook_exit(void)
{
	cook_note_drop();
	cook_go();
	pr_info("%d requests freed\n", atomic_read(&cook_freed));
}
module_exit(cook_exit);

MODULE_AUTHOR("The hwt project");
MODULE_DESCRIPTION("hwt sample: debounce, a group, a timeout that is not embedded");
MODULE_LICENSE("GPL");
