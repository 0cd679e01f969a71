// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring timeouts, each request submitted by itself or up to BATCH at once. The kernel
 * finds the one to move or cancel by going through a list of all, so with many of them the
 * time limit ends that.
 *
 * And the same with the commands of /dev/hwt instead of io_uring's own requests.
 */
#include "user_bench.h"
#include <liburing.h>

#include "hwt_uapi.h"

/* What marks the completion of a request about a timeout, not of the timeout. */
#define REQUEST		0x100000000ULL

typedef void (*prepare_fn)(struct io_uring_sqe *sqe, const struct todo *todo,
			   struct __kernel_timespec *time);

static struct io_uring ring;

/* The result of a timeout whose time has come. */
static int fired = -ETIME;

/*
 * With room for a completion of each timeout, as far as the kernel has it (65536); the rest
 * goes to a list that the kernel keeps meanwhile.
 */
static int ring_init(unsigned int timers, unsigned int flags, struct io_uring_params *params)
{
	*params = (struct io_uring_params) {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | flags,
		.cq_entries = timers + BATCH,
	};
	return io_uring_queue_init_params(BATCH, &ring, params);
}

static void uring_open(const struct run *run)
{
	struct io_uring_params params;
	int ret = ring_init(run->count, IORING_SETUP_COOP_TASKRUN, &params);

	/* Before 5.19. */
	if (ret == -EINVAL)
		ret = ring_init(run->count, 0, &params);
	if (ret)
		give_up("io_uring_setup: %s", strerror(-ret));
	if (!(params.features & IORING_FEAT_NODROP))
		give_up("this io_uring drops completions");
}

static void check(const struct io_uring_cqe *cqe)
{
	/* A timeout that was cancelled says so. All else must have succeeded. */
	if (cqe->res != (cqe->user_data & REQUEST ? 0 : -ECANCELED))
		give_up("io_uring: %s: %s",
			cqe->user_data & REQUEST ? "request" : "timeout",
			strerror(-cqe->res));
}

/* What has completed so far. Without a system call. */
static void take_completions(void)
{
	struct io_uring_cqe *cqe;
	unsigned int head, got = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		check(cqe);
		got++;
	}
	io_uring_cq_advance(&ring, got);
}

static struct __kernel_timespec kernel_timespec(__u64 ns)
{
	return (struct __kernel_timespec) {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};
}

static void submit(prepare_fn prepare, const struct todo *todo, unsigned int count)
{
	struct __kernel_timespec times[BATCH];
	struct io_uring_sqe *sqe;
	unsigned int i;
	int ret;

	for (i = 0; i < count; i++) {
		sqe = io_uring_get_sqe(&ring);
		if (!sqe)
			give_up("io_uring_get_sqe: the queue is full");
		times[i] = kernel_timespec(todo[i].delay_ns);
		prepare(sqe, &todo[i], &times[i]);
	}
	ret = io_uring_submit(&ring);
	if (ret != (int)count)
		give_up("io_uring_submit: %s", ret < 0 ? strerror(-ret) : "not all");
	take_completions();
}

static void submit_singly(prepare_fn prepare, const struct todo *todo, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		submit(prepare, todo + i, 1);
}

/* -- io_uring's own requests --------------------------------------------- */

static __u64 common_ns;

static void prepare_create(struct io_uring_sqe *sqe, const struct todo *todo,
			   struct __kernel_timespec *time)
{
	if (common_ns)
		*time = kernel_timespec(common_ns);
	io_uring_prep_timeout(sqe, time, 0, common_ns ? IORING_TIMEOUT_ABS : 0);
	io_uring_sqe_set_data64(sqe, todo->timer);
}

static void prepare_rearm(struct io_uring_sqe *sqe, const struct todo *todo,
			  struct __kernel_timespec *time)
{
	io_uring_prep_timeout_update(sqe, time, todo->timer, 0);
	io_uring_sqe_set_data64(sqe, REQUEST | todo->timer);
}

static void prepare_cancel(struct io_uring_sqe *sqe, const struct todo *todo,
			   struct __kernel_timespec *time)
{
	(void)time;
	io_uring_prep_timeout_remove(sqe, todo->timer, 0);
	io_uring_sqe_set_data64(sqe, REQUEST | todo->timer);
}

static void single_create(const struct run *run, const struct todo *todo, unsigned int count)
{
	common_ns = run->deadline_ns;
	submit_singly(prepare_create, todo, count);
}

static void single_rearm(const struct run *run, const struct todo *todo, unsigned int count)
{
	(void)run;
	submit_singly(prepare_rearm, todo, count);
}

static void single_cancel(const struct run *run, const struct todo *todo, unsigned int count)
{
	(void)run;
	submit_singly(prepare_cancel, todo, count);
}

static void batch_create(const struct run *run, const struct todo *todo, unsigned int count)
{
	common_ns = run->deadline_ns;
	submit(prepare_create, todo, count);
}

static void batch_rearm(const struct run *run, const struct todo *todo, unsigned int count)
{
	(void)run;
	submit(prepare_rearm, todo, count);
}

static void batch_cancel(const struct run *run, const struct todo *todo, unsigned int count)
{
	(void)run;
	submit(prepare_cancel, todo, count);
}

static void uring_reap(const struct run *run)
{
	struct io_uring_cqe *cqes[EVENTS];
	unsigned int seen = 0, got, i;
	int ret;

	while (seen < run->count) {
		ret = io_uring_wait_cqe(&ring, cqes);
		if (ret)
			give_up("io_uring_wait_cqe: %s", strerror(-ret));
		if (!seen)
			reap_first();
		got = io_uring_peek_batch_cqe(&ring, cqes, EVENTS);
		for (i = 0; i < got; i++) {
			if (cqes[i]->res != fired)
				give_up("io_uring: timeout: %s", strerror(-cqes[i]->res));
		}
		io_uring_cq_advance(&ring, got);
		seen += got;
	}
}

const struct peer peer_uring = {
	.name	= "io_uring",
	.what	= "IORING_OP_TIMEOUT, IORING_TIMEOUT_UPDATE, IORING_OP_TIMEOUT_REMOVE",
	.open	= uring_open,
	.create	= single_create,
	.rearm	= single_rearm,
	.cancel	= single_cancel,
	.reap	= uring_reap,
};

const struct peer peer_uring_batch = {
	.name	= "io_uring-batch",
	.what	= "the same, 32 at once",
	.open	= uring_open,
	.create	= batch_create,
	.rearm	= batch_rearm,
	.cancel	= batch_cancel,
	.reap	= uring_reap,
};

/* -- Commands of /dev/hwt ------------------------------------------------ */

static int device;

static void hwt_uring_open(const struct run *run)
{
	device = hwt_device_open(HWT_FEATURE_URING);
	uring_open(run);
	fired = 0;
}

/* A new timeout is known by its timer's number, as io_uring's are. */
static void prepare_command(struct io_uring_sqe *sqe, __u32 command, const struct todo *todo,
			    struct hwt_uring_cmd args)
{
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = device;
	sqe->cmd_op = command;
	if (command == HWT_URING_ARM) {
		sqe->user_data = todo->timer;
	} else {
		sqe->addr = todo->timer;
		sqe->user_data = REQUEST | todo->timer;
	}
	memcpy(sqe->cmd, &args, sizeof(args));
}

static void prepare_arm(struct io_uring_sqe *sqe, const struct todo *todo,
			struct __kernel_timespec *time)
{
	(void)time;
	prepare_command(sqe, HWT_URING_ARM, todo, (struct hwt_uring_cmd) {
		.time_ns = common_ns ?: todo->delay_ns,
		.flags = common_ns ? HWT_ABSOLUTE : 0,
	});
}

static void prepare_move(struct io_uring_sqe *sqe, const struct todo *todo,
			 struct __kernel_timespec *time)
{
	(void)time;
	prepare_command(sqe, HWT_URING_MODIFY, todo, (struct hwt_uring_cmd) {
		.time_ns = todo->delay_ns,
	});
}

static void prepare_end(struct io_uring_sqe *sqe, const struct todo *todo,
			struct __kernel_timespec *time)
{
	(void)time;
	prepare_command(sqe, HWT_URING_CANCEL, todo, (struct hwt_uring_cmd) {});
}

static void hwt_single_create(const struct run *run, const struct todo *todo,
			      unsigned int count)
{
	common_ns = run->deadline_ns;
	submit_singly(prepare_arm, todo, count);
}

static void hwt_single_rearm(const struct run *run, const struct todo *todo,
			     unsigned int count)
{
	(void)run;
	submit_singly(prepare_move, todo, count);
}

static void hwt_single_cancel(const struct run *run, const struct todo *todo,
			      unsigned int count)
{
	(void)run;
	submit_singly(prepare_end, todo, count);
}

static void hwt_batch_create(const struct run *run, const struct todo *todo,
			     unsigned int count)
{
	common_ns = run->deadline_ns;
	submit(prepare_arm, todo, count);
}

static void hwt_batch_rearm(const struct run *run, const struct todo *todo,
			    unsigned int count)
{
	(void)run;
	submit(prepare_move, todo, count);
}

static void hwt_batch_cancel(const struct run *run, const struct todo *todo,
			     unsigned int count)
{
	(void)run;
	submit(prepare_end, todo, count);
}

static void hwt_uring_reap(const struct run *run)
{
	hwt_engines_final();
	uring_reap(run);
}

const struct peer peer_hwt_uring = {
	.name		= "hwt-uring",
	.what		= "/dev/hwt: HWT_URING_ARM, HWT_URING_MODIFY, HWT_URING_CANCEL of io_uring",
	.open		= hwt_uring_open,
	.create		= hwt_single_create,
	.rearm		= hwt_single_rearm,
	.cancel		= hwt_single_cancel,
	.reap		= hwt_uring_reap,
	.engine_ns	= hwt_engine_ns,
};

const struct peer peer_hwt_uring_batch = {
	.name		= "hwt-uring-batch",
	.what		= "the same, 32 at once",
	.open		= hwt_uring_open,
	.create		= hwt_batch_create,
	.rearm		= hwt_batch_rearm,
	.cancel		= hwt_batch_cancel,
	.reap		= hwt_uring_reap,
	.engine_ns	= hwt_engine_ns,
};
