// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command of io_uring that arms a timeout, with each of its allocations and those of io_uring
 * made to fail once: in the submitting task, and in io_uring's worker. The commands that modify and
 * cancel allocate nothing; for the table of timeouts see fault_ioctl.c.
 *
 * Each command completes once. A failed one changes nothing, and succeeds when repeated.
 *
 * hwt-test: long
 * hwt-test: only debug612
 * hwt-test: libs uring
 * hwt-test: timeout 900
 * hwt-test: load max_user_timeouts=300
 */
#include "kselftest_harness.h"
#include <liburing.h>

#include "fault_scene.h"

#define OLD_NAME	5	/* a command that is armed before the call */
#define NEW_NAME	7

static struct io_uring uring;
static unsigned int outstanding;	/* submitted, and not completed */
static int context = -1;		/* duplicate of env->fd, which scene_prepare() closes */

/* Submit a command. If an earlier submit failed, submit its entry instead of a new one. */
static int uring_arm(struct env *env, __u64 name, __u32 flags, __u64 time_ns,
		     unsigned int sqe_flags)
{
	const struct hwt_uring_cmd cmd = { .time_ns = time_ns, .flags = flags };
	struct io_uring_sqe *sqe;
	int ret;

	if (io_uring_sq_ready(&uring))
		goto submit;
	sqe = io_uring_get_sqe(&uring);
	if (!sqe)
		return -EPROTO;
	memset(sqe, 0, sizeof(*sqe));
	sqe->flags = sqe_flags;
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = env->fd;
	sqe->cmd_op = HWT_URING_ARM;
	sqe->user_data = name;
	sqe->addr = name;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
submit:
	ret = io_uring_submit(&uring);
	if (ret < 0)
		return ret;
	outstanding += ret;
	return ret == 1 ? 0 : -EPROTO;
}

static bool uring_take(__u64 *name, int *res)
{
	struct io_uring_cqe *cqe;

	/* A peek that failed by a fault is repeated by the caller. */
	if (io_uring_peek_cqe(&uring, &cqe) || !cqe)
		return false;
	*name = cqe->user_data;
	*res = cqe->res;
	io_uring_cqe_seen(&uring, cqe);
	outstanding--;
	return true;
}

static bool uring_reap(__u64 *name, int *res)
{
	return until(uring_take(name, res));
}

/* Wait for the next completion, which must be that of @want. Return its result. */
static int uring_result(__u64 want)
{
	__u64 name;
	int res;

	return uring_reap(&name, &res) && name == want ? res : -EPROTO;
}

/* Wait until the command is armed or has completed. */
static int uring_armed(struct env *env)
{
	__u64 end = now_ns() + PATIENCE_MS * MSEC, name;
	struct hwt_stats_args stats;
	int res;

	do {
		if (uring_take(&name, &res))
			return name == NEW_NAME && res < 0 ? res : -EPROTO;
		/* The fault may hit this call. */
		if (!hwt_stats(env->fd, &stats) &&
		    stats.scheduled == env->before.stats.scheduled + 1)
			return 0;
		sleep_ns(MSEC / 10);
	} while (now_ns() < end);
	return -EPROTO;
}

/* End the commands of the previous context: each completes once. */
static void end_commands(struct __test_metadata *_metadata)
{
	__u64 name;
	int res;

	if (context < 0)
		return;
	EXPECT_LE(0, hwt_del_all(context));
	while (outstanding) {
		ASSERT_TRUE(uring_reap(&name, &res));
		EXPECT_EQ(-ECANCELED, res);
	}
	EXPECT_FALSE(uring_take(&name, &res));
	close(context);
	context = -1;
}

static void commands(struct __test_metadata *_metadata, struct env *env)
{
	end_commands(_metadata);
	context = dup(env->fd);
	ASSERT_LE(0, context);
	some(_metadata, env);
	ASSERT_EQ(0, uring_arm(env, OLD_NAME, 0, HOUR, 0));
	ASSERT_EQ(1, outstanding);
}

static int call_arm_with(struct env *env, unsigned int sqe_flags)
{
	int ret = uring_arm(env, NEW_NAME, 0, HOUR, sqe_flags);

	return ret ? ret : uring_armed(env);
}

static int call_arm(struct env *env)
{
	return call_arm_with(env, 0);
}

static int call_arm_async(struct env *env)
{
	return call_arm_with(env, IOSQE_ASYNC);
}

static bool made(const struct env *env)
{
	const struct hwt_list_entry *new = state_find(&env->after, NEW_NAME);

	return new && new->state == HWT_STATE_PENDING && outstanding == 2 && kept(env);
}

static bool done_arm(const struct env *env)
{
	return made(env) && changed(env, (struct change) { .timeouts = 1, .scheduled = 1 });
}

/* Arm a timeout that is due, and wait for its completion. */
static int call_due(struct env *env)
{
	int ret = uring_arm(env, NEW_NAME, HWT_ARM_ABSOLUTE, 0, 0);

	return ret ? ret : uring_result(NEW_NAME);
}

static bool done_due(const struct env *env)
{
	const struct change by = { .scheduled = 1, .expired = 1 };

	return outstanding == 1 && changed(env, by);
}

FIXTURE(uring) { };

/* Minimum number of faults, and of calls that they make fail */
FIXTURE_VARIANT(uring) {
	unsigned int hit, failed;
	bool worker;		/* the worker's points fail, not the task's */
	int (*call)(struct env *env);
	bool (*done)(const struct env *env);
};

FIXTURE_VARIANT_ADD(uring, arm) { 2, 1, false, call_arm, done_arm };
FIXTURE_VARIANT_ADD(uring, arm_due) { 1, 1, false, call_due, done_due };
FIXTURE_VARIANT_ADD(uring, arm_async) { 1, 0, false, call_arm_async, done_arm };
FIXTURE_VARIANT_ADD(uring, worker_arms) { 1, 1, true, call_arm_async, done_arm };

FIXTURE_SETUP(uring)
{
	env.keys = true;
	scene_begin(_metadata);
	ASSERT_EQ(0, io_uring_queue_init(8, &uring, 0));
}

FIXTURE_TEARDOWN(uring)
{
	end_commands(_metadata);
	io_uring_queue_exit(&uring);
	scene_end(_metadata);
}

TEST_F_TIMEOUT(uring, each_point, 400)
{
	static struct scene scene;
	pid_t worker = 0;

	scene = (struct scene) {
		.populate = commands,
		.call = variant->call,
		.done = variant->done,
		.any = true,
	};
	if (variant->worker) {
		env.scene = &scene;
		/* io_uring uses an idle worker again, so this one will run the commands. */
		scene_prepare(_metadata, &env);
		ASSERT_EQ(0, call_arm_async(&env));
		ASSERT_LT(0, threads_named("/proc/self/task", "iou-wrk", &worker));
	}
	scene_run(_metadata, &scene, worker, variant->hit, variant->failed);
	/* Now io_uring has its objects cached, and the points are the module's own. */
	scene_run(_metadata, &scene, worker, variant->hit, variant->failed);
}

TEST_HARNESS_MAIN
