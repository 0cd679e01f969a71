// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every ioctl of /dev/hwt, and read(), with each of its allocations and user copies made to fail
 * once; rings are in fault_rings.c, open() is in fault_load.c. In poll(), io_uring's reading and
 * passing a descriptor on all points are the kernel's.
 *
 * A call that fails says ENOMEM or EFAULT, has changed nothing, and works right afterwards.
 * The exception is that of hwt_uapi.h: where only the answer could not be stored, it says
 * EFAULT and has been carried out, whole; a new timeout was taken back. At the end the user
 * can have as many timeouts and wheels as ever, and no memory is lost.
 *
 * hwt-test: long
 * hwt-test: only debug debug612
 * hwt-test: timeout 600
 * hwt-test: load max_shared=64 max_user_timeouts=300 max_user_wheels=3
 */
#include "kselftest_harness.h"
#include <sys/uio.h>

#include "fault_each.h"

#define SHARED		64	/* as max_shared above */
#define OPS		70	/* more than are handled at once */

/* The arguments of the last call. */
static struct hwt_schedule_args schedule;
static struct hwt_modify_args modify;
static struct hwt_setup_args setup;
static struct hwt_op ops[OPS];

/* The next one is one more than may be on the shared wheel. */
static void as_many_as_share(struct __test_metadata *_metadata, struct env *env)
{
	unsigned int i;

	for (i = 0; i < SHARED; i++)
		ASSERT_EQ(0, hwt_add(env->fd, 0, HOUR, i, NULL));
}

/* -- The calls ------------------------------------------------------------- */

static int call_info(struct env *env)
{
	struct hwt_info_args info;
	int ret = hwt_info(env->fd, &info);

	return ret ? ret : info.tick_ns == env->before.info.tick_ns ? 0 : -EPROTO;
}

static int call_stats(struct env *env)
{
	struct hwt_stats_args stats;
	int ret = hwt_stats(env->fd, &stats);

	return ret ? ret : memcmp(&stats, &env->before.stats, sizeof(stats)) ? -EPROTO : 0;
}

static int call_get(struct env *env)
{
	struct hwt_get_args get;
	int ret = hwt_get(env->fd, env->periodic, &get);

	return ret ? ret : get.state == HWT_STATE_PENDING && get.user_data == 2 ? 0 : -EPROTO;
}

/* One that is cut short goes on with the next call. */
static int call_list(struct env *env)
{
	static struct hwt_list_entry list[SHARED + 8];
	struct hwt_list_args args = { .size = sizeof(args), .entry_size = sizeof(list[0]) };
	unsigned int total = 0;
	int ret;

	do {
		args.entries = (uintptr_t)(list + total);
		args.count = SHARED + 8 - total;
		ret = hwt_call(env->fd, HWT_IOC_LIST, &args);
		total += ret ? 0 : args.count;
	} while (!ret && args.count && total < SHARED);
	return ret ? ret : total == SHARED ? 0 : -EPROTO;
}

static int call_setup_with(struct env *env, __s32 clock, __u32 flags, __u32 priority)
{
	setup = (struct hwt_setup_args) {
		.size = sizeof(setup),
		.flags = flags,
		.tick_ns = 2 * MSEC,
		.ticks_per_wheel = 4096,
		.levels = 6,
		.clock = clock,
		.priority = priority,
	};
	return hwt_call(env->fd, HWT_IOC_SETUP, &setup);
}

static int call_setup(struct env *env)
{
	return call_setup_with(env, CLOCK_BOOTTIME, 0, HWT_SETUP_FIFO_LOW);
}

static int call_setup_tell(struct env *env)
{
	return call_setup_with(env, CLOCK_REALTIME, HWT_SETUP_TELL_CLOCK_SET, 0);
}

static bool done_setup(const struct env *env)
{
	const struct hwt_info_args *info = &env->after.info;

	return info->clock == setup.clock && info->tick_ns == 2 * MSEC &&
	       info->ticks_per_wheel == 4096 && info->levels == 6 && env->after.private == 1 &&
	       changed(env, (struct change) { .private = true, .wheel = true });
}

static int call_schedule_with(struct env *env, __u32 flags, __u32 mode, __u64 period_ns)
{
	schedule = (struct hwt_schedule_args) {
		.size = sizeof(schedule),
		.flags = flags,
		.mode = mode,
		.time_ns = HOUR,
		.period_ns = period_ns,
		.user_data = 7,
	};
	if (flags & HWT_ABSOLUTE)
		schedule.time_ns += now_ns();
	return hwt_call(env->fd, HWT_IOC_SCHEDULE, &schedule);
}

static int call_schedule(struct env *env)
{
	return call_schedule_with(env, HWT_ABSOLUTE, HWT_MODE_ONE_SHOT, 0);
}

static int call_schedule_periodic(struct env *env)
{
	return call_schedule_with(env, 0, HWT_MODE_FIXED_DELAY, SEC);
}

static bool made(const struct env *env)
{
	const struct hwt_list_entry *new = state_find(&env->after, schedule.id);

	return new && new->user_data == 7 && new->mode == schedule.mode &&
	       new->state == HWT_STATE_PENDING && !state_find(&env->before, schedule.id);
}

static bool done_schedule(const struct env *env)
{
	return made(env) && kept(env) &&
	       changed(env, (struct change) { .timeouts = 1, .scheduled = 1 });
}

/* Nobody knows its id. */
static bool undone_schedule(const struct env *env)
{
	return changed(env, (struct change) { .scheduled = 1, .cancelled = 1 });
}

/* The same, with a wheel of the context's own from now on. */
static bool done_schedule_parted(const struct env *env)
{
	const struct change by = { .timeouts = 1, .scheduled = 1, .private = true };

	return made(env) && kept(env) && changed(env, by);
}

static bool undone_schedule_parted(const struct env *env)
{
	return changed(env, (struct change) { .scheduled = 1, .cancelled = 1, .private = true });
}

static int call_modify(struct env *env)
{
	modify = (struct hwt_modify_args) {
		.size = sizeof(modify),
		.flags = HWT_SET_USER_DATA,
		.id = env->pending,
		.time_ns = 2 * HOUR,
		.user_data = 77,
	};
	return hwt_call(env->fd, HWT_IOC_MODIFY, &modify);
}

/* All of the others as they were, and nothing of it is half-done. */
static bool done_modify(const struct env *env)
{
	const struct hwt_list_entry *now = state_find(&env->after, env->pending);

	return now && now->user_data == 77 && now->state == HWT_STATE_PENDING &&
	       now->deadline_ns > now_ns() + HOUR && kept_but(env, env->pending) &&
	       changed(env, (struct change) { .modified = 1, .list = true });
}

static int call_cancel(struct env *env)
{
	struct hwt_cancel_args cancel = { .size = sizeof(cancel), .id = env->pending };

	return hwt_call(env->fd, HWT_IOC_CANCEL, &cancel);
}

static bool done_cancel(const struct env *env)
{
	return !state_find(&env->after, env->pending) && kept_but(env, env->pending) &&
	       changed(env, (struct change) { .timeouts = -1, .cancelled = 1 });
}

static int call_stop(struct env *env)
{
	return hwt_stop(env->fd) < 0 ? hwt_errno() : 0;
}

static bool done_stop(const struct env *env)
{
	return env->after.stopped && env->after.n == env->before.n &&
	       env->after.stats.stopped == 2 && env->after.stats.events == env->before.n;
}

/* -- read() ------------------------------------------------------------------ */

static struct hwt_event event;

static bool done_read(const struct env *env)
{
	return event.id == env->fired && event.user_data == 3 && kept_but(env, env->fired) &&
	       changed(env, (struct change) { .timeouts = -1, .events = -1, .read = 1 });
}

static int call_read(struct env *env)
{
	int ret;

	memset(&event, 0, sizeof(event));
	ret = hwt_read(env->fd, &event, 1);
	return ret < 0 ? ret : ret == 1 ? 0 : -EPROTO;
}

static int call_readv(struct env *env)
{
	struct iovec iov[] = {
		{ &event, 16 }, { (char *)&event + 16, 32 }, { (char *)&event + 48, 16 },
	};
	ssize_t ret;

	memset(&event, 0, sizeof(event));
	ret = readv(env->fd, iov, 3);
	return ret < 0 ? hwt_errno() : ret == sizeof(event) ? 0 : -EPROTO;
}

/* -- Batches ---------------------------------------------------------------- */

/* How many it says were carried out. */
static long batched;

static int call_batch(struct env *env)
{
	unsigned int i;

	for (i = 0; i < OPS; i++) {
		switch (i % 4) {
		case 0:
			ops[i] = op_schedule(HOUR, i);
			break;
		case 1:
			ops[i] = op_modify(env->pending, HOUR + i * SEC);
			break;
		case 2:
			ops[i] = op_get(env->pending);
			break;
		case 3:
			ops[i] = op_cancel(env->pending + 0x1000000000);
			break;
		}
		ops[i].result = UNTOUCHED;
	}
	batched = hwt_batch(env->fd, ops, OPS);
	return batched < 0 ? batched : 0;
}

/*
 * Each has the result that it should have, or was not carried out as far as this tells. Those
 * whose ids were stored are there, and no other: what could not be stored was taken back.
 */
static bool done_batch(const struct env *env)
{
	static const int want[] = { 0, HWT_STATE_PENDING, HWT_STATE_PENDING, -ENOENT };
	unsigned int i, n = 0, stored = 0, no_memory = 0;
	const struct hwt_list_entry *now;

	for (i = 0; i < OPS; i++) {
		if (ops[i].result == UNTOUCHED)
			continue;
		stored++;
		if (i % 4 == 0 && ops[i].result == -ENOMEM) {
			no_memory++;
			continue;
		}
		if (ops[i].result != want[i % 4])
			return false;
		if (i % 4)
			continue;
		now = state_find(&env->after, ops[i].id);
		if (!now || now->user_data != i)
			return false;
		n++;
	}
	/* Those it says have a result; without a fault that is all of them. */
	return stored >= batched && (env->hit || batched == OPS) && no_memory <= env->hit &&
	       kept_but(env, env->pending) && state_find(&env->after, env->pending) &&
	       env->after.n == env->before.n + n &&
	       env->after.stats.scheduled - env->before.stats.scheduled ==
	       env->after.stats.cancelled - env->before.stats.cancelled + n;
}

/* -- All of them ------------------------------------------------------------ */

/* A copy in, a copy out. */
FIXTURE_VARIANT_ADD(scene, info) { 2, 2, { some, call_info, unchanged, .any = false } };
FIXTURE_VARIANT_ADD(scene, stats) { 2, 2, { some, call_stats, unchanged, .any = false } };
FIXTURE_VARIANT_ADD(scene, get) { 2, 2, { some, call_get, unchanged, .any = false } };
/* Two pages of entries: a fault with the second is no error, the call ends early. */
FIXTURE_VARIANT_ADD(scene, list) { 5, 3, { as_many_as_share, call_list, unchanged, .any = false } };
FIXTURE_VARIANT_ADD(scene, setup) { 10, 6, { empty, call_setup, done_setup, .again = -EBUSY } };
FIXTURE_VARIANT_ADD(scene, setup_tell) {
	11, 6, { empty, call_setup_tell, done_setup, .again = -EBUSY },
};

FIXTURE_VARIANT_ADD(scene, schedule) {
	3, 3, { some, call_schedule, done_schedule, .undone = undone_schedule },
};

FIXTURE_VARIANT_ADD(scene, schedule_periodic) {
	3, 3, { some, call_schedule_periodic, done_schedule, .undone = undone_schedule },
};

FIXTURE_VARIANT_ADD(scene, schedule_first) {
	3, 3, { empty, call_schedule, done_schedule, .undone = undone_schedule },
};

/* A wheel, and a node of the table. */
FIXTURE_VARIANT_ADD(scene, schedule_parts) {
	12, 6,
	{ as_many_as_share, call_schedule, done_schedule_parted, .undone = undone_schedule_parted },
};

FIXTURE_VARIANT_ADD(scene, modify) { 2, 2, { some, call_modify, done_modify, .any = false } };
FIXTURE_VARIANT_ADD(scene, cancel) { 2, 2, { some, call_cancel, done_cancel, .again = -ENOENT } };
FIXTURE_VARIANT_ADD(scene, stop) { 2, 2, { some, call_stop, done_stop, .any = false } };
/* read() tries again: no fault is seen in it. */
FIXTURE_VARIANT_ADD(scene, read) { 1, 0, { some, call_read, done_read, .any = false } };
FIXTURE_VARIANT_ADD(scene, readv) { 2, 0, { some, call_readv, done_read, .any = false } };
FIXTURE_VARIANT_ADD(scene, batch) { 20, 4, { some, call_batch, done_batch, .any = false } };

/* -- The thread that makes threads ------------------------------------------- */

#define KTHREADD	2

/* No thread is to be had: EAGAIN, as fork() says, which counts as refused. */
static bool undone_rejected(const struct env *env)
{
	return changed(env, (struct change) { .rejected = 1 });
}

/* A stack may be one that was kept for the next thread: then fewer fail. */
FIXTURE_VARIANT_ADD(scene, thread_setup) {
	5, 3, { empty, call_setup, done_setup, .again = -EBUSY, .any = true, .pid = KTHREADD },
};

FIXTURE_VARIANT_ADD(scene, thread_schedule_parts) {
	5, 3,
	{ as_many_as_share, call_schedule, done_schedule_parted, .undone = undone_rejected,
	  .any = true, .pid = KTHREADD },
};

/* -- What a failed call leaves possible ----------------------------------------- */

/* HWT_IOC_SETUP is only for a context that nothing has been asked of. */
static void check_first(struct __test_metadata *_metadata, void *arg, int ret, unsigned int hit)
{
	struct env *env = arg;
	bool nothing;

	(void)hit;
	state_take(_metadata, env->fd, &env->after);
	nothing = ret && !env->after.stats.scheduled;
	EXPECT_EQ(nothing ? 0 : -EBUSY, call_setup(env)) {
		TH_LOG("after %d", ret);
	}
}

TEST_F_TIMEOUT(limited, call_that_fails_is_none, 300)
{
	static const struct scene scene = { .populate = empty, .call = call_schedule };
	const struct fault_call call = {
		.passes = given("HWT_ROUNDS", 1),
		.prepare = scene_prepare,
		.call = scene_call,
		.check = check_first,
	};
	struct fault_count count;

	env.scene = &scene;
	count = each_fault(_metadata, &call, &env);
	EXPECT_LE(call.passes * 2, count.failed);
}

TEST_HARNESS_MAIN
